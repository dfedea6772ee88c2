"""`rotortm`: the control laws of the RotorTM paper (T-RO 2023), as a baseline.

Single cable: eq. 61 to 68; several cables: eq. 69 to 73; rods: eq. 74. Signs as physics wants them:
(63) lacks a minus, (73) has the wrong sign for the error of (67), and (74) needs the attitude that
the force asks for. The authors' code leaves out all feed-forward of cables and attitude;
`feed_forward` adds what follows from jerk and snap of the reference. For one cable, `w = xi x xi'`
and (11) gives m l w' = -xi x u, so a force m l xi x a makes the cable's direction accelerate by a.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from musls_control.chain import attitude_error, desired_axes
from musls_control.controllers import Controller, ControlLevel, ControlSetup
from musls_control.controllers.payload.load_law import LOAD, attitude_reference
from musls_control.controllers.payload.rods import Structure
from musls_control.estimate import Estimate
from musls_control.reference import LoadReference
from musls_description.config.schema import NonNegative, Positive, spec
from musls_description.numerics.arrays import Array, grasp_matrix
from musls_description.numerics.compiled import compiled
from musls_description.numerics.rotations import matrix_to_body
from musls_description.numerics.vectors import (
    add,
    add_scaled,
    body_axes_in_world,
    column,
    cross,
    dot,
    elementwise,
    put,
    rotate,
    rotate_back,
    scale,
    sub,
    unit,
    unit_rates,
    write_matrix,
)

Axes = tuple[NonNegative, NonNegative, NonNegative]


@spec
class RotorTmSpec:
    """RotorTM's geometric laws for one cable, several cables or rods, with the paper's gains.

    Thrust and moment act on the drones at once, without rotors, as in RotorTM. Gains that are
    left out are those of the paper's public files for a point mass, the triangle on cables and the
    triangle on rods; those that are moments go with the inertia, of drones and of loads on cables,
    over that of the paper's: as stiff as they are other ones turn as fast.

    Attributes:
        kind: "rotortm".
        links: "cables", or "rods" for drones fixed to the load.
        feed_forward: Add the feed-forward of cables and attitudes that follows from jerk and snap
            of the reference.
        position: Acceleration of the load per position error.
        velocity: Acceleration of the load per velocity error.
        rotation: Moment per attitude error, of the load on cables, or of the structure of rods.
        rate: Moment per error of the body rate, as for `rotation`.
        drone_rotation: Moment per attitude error of the drones.
        drone_rate: Moment per error of the drones' body rate.
        cable_direction: Angular acceleration of a cable per error of its direction.
        cable_rate: Angular acceleration of a cable per error of its rate.
    """

    kind: Literal["rotortm"] = "rotortm"
    links: Literal["cables", "rods"] = "cables"
    feed_forward: bool = True
    position: Axes | None = None
    velocity: Axes | None = None
    rotation: Axes | None = None
    rate: Axes | None = None
    drone_rotation: Axes | None = None
    drone_rate: Axes | None = None
    cable_direction: Positive = 16.0
    cable_rate: Positive = 6.7

    def build(self, setup: ControlSetup) -> Controller:
        """Make the controller."""
        return RotorTmRods(self) if self.links == "rods" else RotorTmCables(self)


_GAINS: dict[str, dict[str, tuple[float, float, float]]] = {
    "point": {"position": (1.45, 1.45, 3.0), "velocity": (3.7, 3.2, 2.5)},
    "cables": {
        "position": (3.08, 3.08, 6.25),
        "velocity": (2.15, 2.15, 3.42),
        "rotation": (0.55, 0.5, 0.16),
        "rate": (0.162, 0.162, 0.068),
    },
    "rods": {
        "position": (1.2, 1.2, 3.0),
        "velocity": (1.5, 1.5, 2.5),
        "rotation": (20.5, 20.5, 10.0),
        "rate": (5.5, 5.5, 4.0),
    },
}
"""Gains from the public parameter files (code); a point mass does not rotate."""

_DRONE_GAINS = {"rotation": (0.25, 0.25, 0.08), "rate": (0.025, 0.025, 0.005)}
"""Attitude gains of a drone of 0.25 kg."""

_DRONE_INERTIA_KG_M2 = (6.01e-4, 5.89e-4, 1.076e-3)
_LOAD_INERTIA_KG_M2 = 0.02496
"""Inertia of that drone about its axes, and of the triangle: the sum over its axes."""

LAW = np.dtype(
    [
        ("mass", float),  # of the load, or of the whole structure of rods
        ("inertia", float, (3, 3)),
        ("gravity", float),
        ("feed_forward", float),  # 1 or 0
        ("position", float, 3),  # gains as in `RotorTmSpec`
        ("velocity", float, 3),
        ("rotation", float, 3),
        ("rate", float, 3),
        ("cable_direction", float),
        ("cable_rate", float),
        ("turn", float, (3, 3)),  # attitude of the load, and the wanted one of the structure
        ("wanted_turn", float, (3, 3)),
        ("load", LOAD),  # its wanted attitude and body rates
    ],
    align=True,
)

DRONE = np.dtype(
    [
        ("mass", float),
        ("inertia", float, (3, 3)),
        ("rotation", float, 3),  # gains
        ("rate", float, 3),
        ("attachment", float, 3),  # of its cable on the load
        ("length", float),
        ("yaw", float),
        ("pull", float, (3, 3)),  # of its cable on the load, and two derivatives, world
        ("turn", float, (3, 3)),
        ("wanted_turn", float, (3, 3)),
    ],
    align=True,
)


class _Law(Controller):
    """Gains and load law that cables and rods share."""

    level = ControlLevel.IDEAL_THRUST_MOMENT
    keeps_headings = True

    def __init__(self, spec: RotorTmSpec) -> None:
        self._spec = spec

    def _law(self, case: str, mass_kg: float, inertia_kg_m2: Array) -> np.void:
        """Constants and gains of the law, a record of `LAW`."""
        settings = self._spec
        law: np.void = np.zeros(1, LAW)[0]
        law["mass"] = mass_kg
        law["inertia"] = inertia_kg_m2
        law["gravity"] = self.setup.gravity_m_s2
        law["feed_forward"] = settings.feed_forward
        for name, usual in _GAINS[case].items():
            own = getattr(settings, name)
            law[name] = usual if own is None else own
            if own is None and case == "cables" and name in ("rotation", "rate"):
                law[name] *= np.trace(inertia_kg_m2) / _LOAD_INERTIA_KG_M2
        for name in ("cable_direction", "cable_rate"):
            law[name] = getattr(settings, name)
        return law


class RotorTmCables(_Law):
    """Point mass on one cable, or rigid load on several.

    Attributes:
        constants: Gains and load, a record of `LAW`.
        drones: Drones and their cables, (n,) of `DRONE`.
        shares: Forces at the attachments by the load's wrench, (3 n, 6).
    """

    def prepare(self, setup: ControlSetup) -> None:
        """Lay out gains, load and drones for the compiled law."""
        super().prepare(setup)
        system = setup.slung
        n = setup.slung.n_drones
        load = system.load
        self.constants = self._law(
            "point" if n == 1 else "cables", load.mass_kg, np.array(load.inertia_kg_m2)
        )
        self.drones = np.zeros(n, DRONE)
        self.drones["mass"] = [drone.mass_kg for drone in system.drones]
        self.drones["inertia"] = [drone.inertia_kg_m2 for drone in system.drones]
        own_axes = np.diagonal(self.drones["inertia"], axis1=1, axis2=2)
        for name, usual in _DRONE_GAINS.items():
            own = getattr(self._spec, f"drone_{name}")
            self.drones[name] = (
                np.array(usual) * own_axes / _DRONE_INERTIA_KG_M2 if own is None else own
            )
        self.drones["attachment"] = load.cable_attachments_m
        self.drones["length"] = [cable.length_m for cable in system.cables]
        # Wrench of the load to forces at the attachments; rank 5 for two of them.
        self.shares = np.linalg.pinv(grasp_matrix(self.drones["attachment"]))
        self._commands = np.zeros((n, 4))

    def start(self, time_s: float, estimate: Estimate) -> None:
        """Keep the yaws; the paper's drones start at yaw 0, which its law asks for."""
        front = matrix_to_body(estimate.orientation_wxyz[1:])[:, 0]
        self.drones["yaw"] = np.arctan2(front[:, 1], front[:, 0])

    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Thrust and moment of each drone, (n, 4)."""
        attitude_reference(self.constants["load"], reference.derivatives, reference.tilt)
        cable_commands(
            self.constants,
            self.drones,
            self.shares,
            estimate.records,
            reference.derivatives,
            self._commands,
        )
        return self._commands


class RotorTmRods(_Law):
    """Drones fixed to the load: one rigid body with the wrench of all (eq. 74).

    Attributes:
        constants: Gains and structure, a record of `LAW`.
        shares: Thrust and moment of the drones by the wrench of all, (4 n, 4).
    """

    def start(self, time_s: float, estimate: Estimate) -> None:
        """Measure where the drones sit, and add up masses and inertias."""
        body = Structure.of(self.setup.slung, estimate)
        self.constants = self._law("rods", body.mass_kg, body.inertia_kg_m2)
        ease = np.tile([1.0, 0.1, 0.1, 0.1], self.setup.slung.n_drones)  # weights 1 and 10
        weighted = ease[:, None] * body.effect.T
        self.shares = weighted @ np.linalg.inv(body.effect @ weighted)
        self._commands = np.zeros((self.setup.slung.n_drones, 4))

    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Thrust and moment of each drone, (n, 4)."""
        body = estimate.records[0]
        structure_commands(self.constants, self.shares, body, reference.derivatives, self._commands)
        return self._commands


@compiled()
def wanted_acceleration(law, body, reference):
    """Return the acceleration of the load with feedback, gravity included (eq. 61)."""
    gap = sub(reference[0], body.position)
    speed = sub(reference[1], body.velocity)
    correction = add(elementwise(law.position, gap), elementwise(law.velocity, speed))
    return add(add(reference[2], (0.0, 0.0, law.gravity)), correction)


@compiled()
def cable_commands(law, drones, shares, bodies, reference, commands):
    """Write thrust and moment of all drones (eq. 61 to 73)."""
    body = bodies[0]
    r = law.turn
    write_matrix(r, body_axes_in_world(body.attitude))
    acceleration = wanted_acceleration(law, body, reference)
    cable_pulls(law, drones, shares, body, reference, acceleration)
    omega = rotate(r, body.omega)
    for i in range(len(drones)):
        drone = drones[i]
        own = bodies[1 + i]
        m = drones[i].mass
        arm = rotate(r, drone.attachment)
        spin = cross(omega, arm)
        xi, _ = unit(sub(add(body.position, arm), own.position))
        speed = sub(add(body.velocity, spin), own.velocity)
        w = cross(xi, scale(1.0 / drone.length, speed))
        force = drone.pull[0]
        rate = drone.pull[1]
        second = drone.pull[2]
        aim, aim_w, aim_alpha = turning(scale(-1.0, force), scale(-1.0, rate), scale(-1.0, second))
        alpha = scale(-law.cable_direction, cross(aim, xi))
        rate_error = add(w, cross(xi, cross(xi, aim_w)))
        alpha = add_scaled(alpha, -law.cable_rate, rate_error)
        alpha = add_scaled(alpha, -dot(xi, aim_w), cross(w, xi))
        alpha = sub(alpha, cross(xi, cross(xi, aim_alpha)))
        # Acceleration of the attachment, gravity included: what the drone has to follow.
        carried = add(acceleration, cross(omega, spin))
        along = dot(xi, add_scaled(force, m, carried)) + m * drone.length * dot(w, w)
        across = scale(m * drone.length, cross(xi, alpha))
        across = add_scaled(across, -m, cross(xi, cross(xi, carried)))
        lift = add_scaled(across, along, xi)
        lift_rate = add_scaled(rate, m * law.feed_forward, reference[3])
        write_matrix(drone.turn, body_axes_in_world(own.attitude))
        commands[i, 0] = dot(lift, column(drone.turn, 2))
        put(commands[i, 1:], drone_moment(law, drone, own.omega, lift, lift_rate))


@compiled()
def cable_pulls(law, drones, shares, body, reference, wanted):
    """Write the forces of the cables on the load with their first two derivatives."""
    n = len(drones)
    r = law.turn
    load = law.load
    omega = body.omega
    rates = law.mass * law.feed_forward
    whole = scale(law.mass, wanted), scale(rates, reference[3]), scale(rates, reference[4])
    moment = 0.0, 0.0, 0.0
    if n > 1:
        aim = load.wanted_rotation
        aim_omega = rotate_back(r, rotate(aim, load.wanted_rates[0]))
        moment = elementwise(law.rotation, attitude_error(r, aim))
        moment = add(moment, elementwise(law.rate, sub(aim_omega, omega)))
        ahead = rotate_back(r, rotate(aim, load.wanted_rates[1]))
        ahead = rotate(law.inertia, sub(ahead, cross(omega, aim_omega)))
        feed_forward = add(cross(omega, rotate(law.inertia, omega)), ahead)
        moment = add_scaled(moment, law.feed_forward, feed_forward)
    for i in range(n):
        pull = drones[i].pull
        if n == 1:
            for order in range(3):
                put(pull[order], whole[order])
            continue
        rows = shares[3 * i : 3 * i + 3]
        for order in range(3):
            put(pull[order], rotate(r, rotate(rows, rotate_back(r, whole[order]))))
        put(pull[0], add(pull[0], rotate(r, rotate(rows[:, 3:], moment))))
        # Cables that would have to push are asked for nothing downwards, as in the code.
        pull[0, 2] = max(pull[0, 2], 1e-3)


@compiled()
def drone_moment(law, drone, omega, lift, lift_rate):
    """Return the moment that turns a drone towards a wanted thrust."""
    up, size = unit(lift)
    change = add_scaled(lift_rate, -dot(lift_rate, up), up)
    up_rate = scale(law.feed_forward / size, change)
    desired_axes(drone.wanted_turn, lift, drone.yaw, drone.turn)
    spin = rotate_back(drone.turn, cross(up, up_rate))
    moment = elementwise(drone.rotation, attitude_error(drone.turn, drone.wanted_turn))
    moment = add(moment, elementwise(drone.rate, sub(spin, omega)))
    return add(moment, cross(omega, rotate(drone.inertia, omega)))


@compiled()
def structure_commands(law, shares, body, reference, commands):
    """Write thrust and moment of all drones, (n, 4), by those of the whole structure (eq. 74)."""
    acceleration = wanted_acceleration(law, body, reference)
    omega = body.omega
    write_matrix(law.turn, body_axes_in_world(body.attitude))
    desired_axes(law.wanted_turn, acceleration, reference[0, 3], law.turn)
    moment = elementwise(law.rotation, attitude_error(law.turn, law.wanted_turn))
    moment = sub(moment, elementwise(law.rate, omega))
    moment = add(moment, cross(omega, rotate(law.inertia, omega)))
    if law.feed_forward > 0.0:
        pull = add(reference[2], (0.0, 0.0, law.gravity))
        _, spin, alpha = turning(pull, reference[3], reference[4])
        spin = rotate_back(law.turn, spin)
        alpha = rotate_back(law.turn, alpha)
        moment = add(moment, elementwise(law.rate, spin))
        moment = add(moment, rotate(law.inertia, sub(alpha, cross(omega, spin))))
    lift = law.mass * dot(acceleration, column(law.turn, 2))
    for i in range(commands.shape[0]):
        for k in range(4):
            share = shares[4 * i + k]
            commands[i, k] = share[0] * lift + dot(share[1:], moment)


@compiled()
def turning(vector, rate, second):
    """Return the direction of a vector, its angular velocity and acceleration."""
    d, d1, d2 = unit_rates(vector, rate, second)
    return d, cross(d, d1), cross(d, d2)
