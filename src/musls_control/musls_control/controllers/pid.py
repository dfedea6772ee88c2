"""`pid`: cascaded PIDs keep drones in formation: height, sideways, roll, pitch, yaw of each.

The control of the delivery drone of 002 (eq. 56 to 58, fig. 15 and table 6 of that paper):

    thrust = m (g + PID(z_d - z)) / (cos(roll) cos(pitch))
    pitch_d = PID(x_d - x),   roll_d = -PID(y_d - y)               x forward, y left of the drone
    M = J (PID(roll_d - roll), PID(pitch_d - pitch), PID(yaw_d - yaw))

Signs: the table's gains of roll are negative. A positive roll does accelerate towards -y, but one
minus is enough, and it belongs to the reference of the roll; in the inner loop it would make the
attitude unstable. Added to the paper, which says nothing about it: the weight is fed forward, the
sideways errors are turned into the drone's heading (integrals too: a cable pulls forward, wherever
the formation turns), tilt and moments have limits, and no integral grows while its output is
limited and its error pushes on.

Table 6 of 002 gives newtons per rotor for its own drone of m = 10.0224 kg and J = (0.27, 0.26,
0.42) kg m2. The paper leaves open whether the height's output is meant per rotor; with one per
rotor a step overshoots by 16 %, else by 46 %. The defaults are the accelerations that follow:

    height          4 (28, 22, 18) / m
    sideways        (0.52, 0.037, 0.74)
    roll, pitch     4 a (3.93, 0.09, 15.68) / J,  4 a (3.93, 0.089, 15.68) / J,  a = 0.3517 m
    yaw             4 b (129.11, 81.29, 7.17) / J,  b = 0.0381 m (from the propeller's geometry)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from musls_control.autopilot import DroneSetpoints
from musls_control.controllers import Controller, ControlLevel, ControlSetup
from musls_control.estimate import BodyMotion, Estimate
from musls_control.reference import LoadReference
from musls_description.config.schema import NonNegative, Positive, spec
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import compiled
from musls_description.numerics.rotations import matrix_to_body, roll_pitch_yaw
from musls_description.numerics.vectors import wrapped
from musls_description.system.drone import Drone, thrust_limits_n, wrench_of_thrusts
from musls_description.system.slung_system import formation_of

PROPORTIONAL, INTEGRAL, DERIVATIVE = range(3)
"""Columns of gains."""

HEIGHT, SIDEWAYS, ROLL, PITCH, YAW = range(5)
"""Rows of gains."""

TILT_LAG_S = 0.03
"""Lag of the wanted tilt that roll and pitch follow. These gains follow a tilt by its rate (P / D
is 0.25 rad/s), so every change of it needs a rate."""

MIN_COSINE = 0.5
"""Lower limit of cos(roll) cos(pitch), by which the thrust of a tilted drone is divided."""


def limits_of(drones: Sequence[Drone], hover_n: Array) -> tuple[Array, Array]:
    """Largest thrust, (n,), and moments, (n, 3), that rotors have left at hover's thrust, (n,)."""
    thrust = []
    moments = []
    for drone, hover in zip(drones, hover_n, strict=True):
        inverse = np.linalg.pinv(wrench_of_thrusts(drone))
        _, most = thrust_limits_n(drone)
        share = inverse[:, 0] * hover
        room = np.maximum(np.minimum(share, most - share), 0.0)
        effort = np.maximum(np.abs(inverse[:, 1:]), 1e-12)
        thrust.append(most.sum())
        moments.append((room[:, None] / effort).min(axis=0))
    return np.array(thrust), np.array(moments)


PID = np.dtype(
    [
        ("height", float, 3),  # gains of proportion, integral and derivative
        ("sideways", float, 3),
        ("turn", float, (3, 3)),  # of roll, pitch and yaw
        ("gravity", float),
        ("period", float),
        ("largest_tilt", float),
    ],
    align=True,
)
"""Gains of all drones."""

DRONE = np.dtype(
    [
        ("mass", float),  # all that it carries, its own included
        ("inertia", float, (3, 3)),
        ("most_thrust", float),
        ("most_turn", float, 3),  # angular acceleration
        ("most_rate", float, 2),  # of the tilt forward and to the left
        ("lean", float, 2),  # tilt forward and to the left that is followed now
        ("integrals", float, 6),  # of errors forward, left, up, and of roll, pitch, yaw
    ],
    align=True,
)
"""A drone's constants and the memory of its PIDs."""


class CascadedPid:
    """The six PIDs of all drones.

    Attributes:
        drones: Constants and memory of the drones, (n,) of `DRONE`.
    """

    def __init__(
        self,
        gains: ArrayLike,
        mass_kg: ArrayLike,
        inertia_kg_m2: ArrayLike,
        limits: tuple[Array, Array],
        *,
        gravity_m_s2: float,
        period_s: float,
        largest_tilt_rad: float,
    ) -> None:
        """Take gains and drones.

        Rows of the gains, (5, 3): HEIGHT (accelerations per error), SIDEWAYS (tilt per error),
        ROLL, PITCH and YAW (angular accelerations per error); columns: proportion, integral and
        derivative. Masses, (n,), are all that a drone carries, its own included; inertias, (n, 3,
        3), are about the centres of mass; limits are those of `limits_of`.
        """
        rows = np.array(gains, np.float64)
        self._pid = np.zeros(1, PID)
        self._pid["height"] = rows[HEIGHT]
        self._pid["sideways"] = rows[SIDEWAYS]
        self._pid["turn"] = rows[ROLL : YAW + 1]
        self._pid["gravity"] = gravity_m_s2
        self._pid["period"] = period_s
        self._pid["largest_tilt"] = largest_tilt_rad
        self.drones = drones = np.zeros(len(np.atleast_1d(mass_kg)), DRONE)
        drones["mass"] = mass_kg
        drones["inertia"] = inertia_kg_m2
        drones["most_thrust"], most_moment = limits
        drones["most_turn"] = most_moment / np.diagonal(drones["inertia"], axis1=1, axis2=2)
        # Forward by the pitch, to the left by the roll.
        rates = drones["most_turn"][:, :2] / rows[ROLL:YAW, DERIVATIVE]
        drones["most_rate"] = rates[:, ::-1]
        self._commands = np.zeros((len(drones), 4))

    @property
    def integrals(self) -> Array:
        """Integrals of the errors forward, left, up, and of roll, pitch, yaw, (n, 6)."""
        values: Array = self.drones["integrals"]
        return values

    def start(self, drones: BodyMotion, moment_n_m: ArrayLike = 0.0) -> None:
        """Take over as after a long hover: the integrals hold tilt and given moments, (n, 3).

        A drone that pulls at a cable leans in its place, and the cable turns it; these slow
        integrals would need a minute to find that.
        """
        pid = self._pid[0]
        own = self.drones
        own["integrals"] = 0.0
        roll, pitch, _ = roll_pitch_yaw(drones.orientation_wxyz).T
        lean = np.stack([pitch, -roll], axis=1)
        size = np.linalg.norm(lean, axis=1, keepdims=True)
        own["lean"] = lean * np.minimum(1.0, pid["largest_tilt"] / np.maximum(size, 1e-12))
        gain = pid["sideways"][INTEGRAL]
        if gain > 0.0:
            own["integrals"][:, :2] = own["lean"] / gain
        moments = np.broadcast_to(np.asarray(moment_n_m, np.float64), (len(own), 3))
        turns = np.linalg.solve(own["inertia"], moments[:, :, None])[:, :, 0]
        gains = pid["turn"][:, INTEGRAL]
        turns = np.clip(turns, -own["most_turn"], own["most_turn"])
        own["integrals"][:, 3:] = np.where(gains > 0.0, turns / np.maximum(gains, 1e-12), 0.0)

    def step(self, wanted: DroneSetpoints, drones: BodyMotion) -> Array:
        """Return thrust along the body's z axis and moment in the body's frame, (n, 4) [N, N m].

        Of the set-points place, velocity, yaw and yaw rate are followed.
        """
        command_drones(self._pid, self.drones, wanted.data, drones.records, self._commands)
        return self._commands


@compiled()
def command_drones(pids, drones, wanted, bodies, commands):
    """Write thrust and moment of each drone, (n, 4), and advance its integrals.

    `wanted`: rows of `DroneSetpoints`, (n, 12).
    """
    pid = pids[0]
    for i in range(len(drones)):
        drone = drones[i]
        body = bodies[i]
        goal = wanted[i]
        roll, pitch, yaw = angles_of(body.attitude)
        upright = math.cos(roll) * math.cos(pitch)
        commands[i, 0] = thrust_of(pid, drone, goal[2], goal[5], body, upright)
        cos = math.cos(yaw)
        sin = math.sin(yaw)
        x, y = goal[0] - body.position[0], goal[1] - body.position[1]
        vx = goal[3] - body.velocity[0]
        vy = goal[4] - body.velocity[1]
        gap = (cos * x + sin * y, cos * y - sin * x)
        speed = (cos * vx + sin * vy, cos * vy - sin * vx)
        forward_rate, left_rate = lean_over(pid, drone, gap, speed)
        angle = (-drone.lean[1] - roll, drone.lean[0] - pitch, goal[9] - yaw)
        rate = (-left_rate, forward_rate, goal[10])
        turn_back(pid, drone, angle, rate, body.omega, commands[i])


@compiled()
def angles_of(q):
    """Return roll, pitch and yaw of a unit quaternion."""
    w, x, y, z = q[0], q[1], q[2], q[3]
    pitch = math.asin(min(1.0, max(-1.0, 2.0 * (w * y - z * x))))
    roll = math.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
    return roll, pitch, math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


@compiled()
def thrust_of(pid, drone, height, climb, body, cosine):
    """Return the thrust that holds a height, and advance its integral."""
    gap = height - body.position[2]
    speed = climb - body.velocity[2]
    gains = pid.height
    acceleration = gains[PROPORTIONAL] * gap + gains[INTEGRAL] * drone.integrals[2]
    acceleration += gains[DERIVATIVE] * speed
    demand = drone.mass * (pid.gravity + acceleration) / max(cosine, MIN_COSINE)
    thrust = min(max(demand, 0.0), drone.most_thrust)
    if not (demand - thrust) * gap > 0.0:  # limited, and the error pushes on
        drone.integrals[2] += pid.period * gap
    return thrust


@compiled()
def lean_over(pid, drone, gap, speed):
    """Follow the tilt forward and to the left that a place asks for; returns its rates."""
    p = pid.sideways[PROPORTIONAL]
    i = pid.sideways[INTEGRAL]
    d = pid.sideways[DERIVATIVE]
    forward = p * gap[0] + i * drone.integrals[0] + d * speed[0]
    left = p * gap[1] + i * drone.integrals[1] + d * speed[1]
    size = math.sqrt(forward * forward + left * left)
    less = min(1.0, pid.largest_tilt / max(size, 1e-12))
    pushes = (1.0 - less) * (forward * gap[0] + left * gap[1]) > 0.0
    if not pushes:
        drone.integrals[0] += pid.period * gap[0]
        drone.integrals[1] += pid.period * gap[1]
    most = drone.most_rate
    forward_rate = (less * forward - drone.lean[0]) / TILT_LAG_S
    left_rate = (less * left - drone.lean[1]) / TILT_LAG_S
    forward_rate = min(max(forward_rate, -most[0]), most[0])
    left_rate = min(max(left_rate, -most[1]), most[1])
    drone.lean[0] += pid.period * forward_rate
    drone.lean[1] += pid.period * left_rate
    return forward_rate, left_rate


@compiled()
def turn_back(pid, drone, angle, rate, omega, command):
    """Write the moment that turns a drone by angles, at rates, and advance the integrals."""
    for k in range(3):
        gap = wrapped(angle[k])
        gains = pid.turn[k]
        demand = gains[PROPORTIONAL] * gap + gains[INTEGRAL] * drone.integrals[3 + k]
        demand += gains[DERIVATIVE] * (rate[k] - omega[k])
        turn = min(max(demand, -drone.most_turn[k]), drone.most_turn[k])
        if not (demand - turn) * gap > 0.0:
            drone.integrals[3 + k] += pid.period * gap
        for j in range(3):
            command[1 + j] = (0.0 if k == 0 else command[1 + j]) + drone.inertia[j, k] * turn


Pid = tuple[Positive, NonNegative, Positive]
"""Gains of proportion, integral and derivative."""

EARTH_M_S2 = 9.81


@spec
class PidSpec:
    """Cascaded PIDs of 002 keep the drones in their places, without feedback of the load.

    Each key holds the proportional, integral and derivative gain.

    Attributes:
        kind: "pid".
        height: Vertical acceleration per error [1/s2, 1/s3, 1/s].
        sideways: Tilt per error of the horizontal position [rad/m, rad/(m s), rad s/m].
        roll: Angular acceleration per error of the angle [1/s2, 1/s3, 1/s].
        pitch: Angular acceleration per error, as for roll.
        yaw: Angular acceleration per error, as for roll.
        largest_tilt_rad: Largest tilt (roll and pitch together) that is asked for.
    """

    kind: Literal["pid"] = "pid"
    height: Pid = (11.175, 8.780, 7.184)
    sideways: Pid = (0.52, 0.037, 0.74)
    roll: Pid = (20.48, 0.469, 81.70)
    pitch: Pid = (21.27, 0.482, 84.84)
    yaw: Pid = (46.86, 29.50, 2.602)
    largest_tilt_rad: Annotated[float, Field(gt=0.0, le=1.0)] = 0.6

    def __post_init__(self) -> None:
        """Refuse gains that no drone can fly with (Routh: P D > I for a mass and for a tilt)."""
        for name in ("height", "sideways", "roll", "pitch", "yaw"):
            p, i, d = getattr(self, name)
            tilts = EARTH_M_S2 if name == "sideways" else 1.0
            if p * d * tilts <= i:
                raise ValueError(
                    f"{name} = {[p, i, d]} is unstable on any drone: the integral's gain must be "
                    f"below {p * d * tilts:.4g}"
                )

    def build(self, setup: ControlSetup) -> Controller:
        """Make the controller."""
        return _FormationByPid(self, formation_of(setup.system, "controller.kind = pid").n_drones)


class _FormationByPid(Controller):
    """Every drone follows its place in the formation round the load's set-point."""

    level = ControlLevel.THRUST_MOMENT

    def __init__(self, spec: PidSpec, n_drones: int) -> None:
        self._spec = spec
        self._n = n_drones

    def prepare(self, setup: ControlSetup) -> None:
        super().prepare(setup)
        system = setup.slung
        settings = self._spec
        mass = np.array([drone.mass_kg for drone in system.drones])
        hanging = system.load.mass_kg + sum(cable.mass_kg for cable in system.cables)
        mass = mass + hanging / self._n
        self._share_n = hanging / self._n * setup.gravity_m_s2
        self._attachments_m = np.array(system.load.cable_attachments_m)
        self._hooks_m = np.array([drone.cable_attachment_m for drone in system.drones])
        offsets_m = setup.formation.offsets_m(self._n)
        self._places = np.column_stack([offsets_m, setup.formation.azimuths_rad(self._n)])
        self._setpoints = DroneSetpoints.zeros(self._n)
        self._pid = CascadedPid(
            [settings.height, settings.sideways, settings.roll, settings.pitch, settings.yaw],
            mass,
            [drone.inertia_kg_m2 for drone in system.drones],
            limits_of(system.drones, mass * setup.gravity_m_s2),
            gravity_m_s2=setup.gravity_m_s2,
            period_s=setup.period_s,
            largest_tilt_rad=settings.largest_tilt_rad,
        )

    def start(self, time_s: float, estimate: Estimate) -> None:
        """Begin as after a long hover: with the present tilts, and moments against the cables'."""
        turn = matrix_to_body(estimate.orientation_wxyz)
        at_load = estimate.position_enu_m[0] + self._attachments_m @ turn[0]
        hooks = np.einsum("nij,ni->nj", turn[1:], self._hooks_m)
        along = at_load - estimate.position_enu_m[1:] - hooks
        along /= np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-9)
        # No tension is measured yet: that of a load at rest, its weight shared evenly.
        tension_n = self._share_n / np.maximum(-along[:, 2:], MIN_COSINE)
        pull = np.einsum("nij,nj->ni", turn[1:], tension_n * along)
        self._pid.start(estimate.drones, -np.cross(self._hooks_m, pull))

    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Thrust and moment of each drone, (n, 4); the formation turns with the load."""
        write_places(self._places, reference.derivatives, self._setpoints.data)
        return self._pid.step(self._setpoints, estimate.drones)


@compiled()
def write_places(places, reference, wanted):
    """Write set-points of drones in their places round the load's reference, (n, 12).

    `places`: offset and azimuth of each drone in the set-point's frame, (n, 4).
    """
    yaw = reference[0, 3]
    rate = reference[1, 3]
    cos = math.cos(yaw)
    sin = math.sin(yaw)
    for i in range(len(places)):
        x = cos * places[i, 0] - sin * places[i, 1]
        y = sin * places[i, 0] + cos * places[i, 1]
        wanted[i, 0] = reference[0, 0] + x
        wanted[i, 1] = reference[0, 1] + y
        wanted[i, 2] = reference[0, 2] + places[i, 2]
        wanted[i, 3] = reference[1, 0] - rate * y
        wanted[i, 4] = reference[1, 1] + rate * x
        wanted[i, 5] = reference[1, 2]
        wanted[i, 9] = yaw + places[i, 3] + math.pi  # each drone faces the load
        wanted[i, 10] = rate
