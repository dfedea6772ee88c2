"""The massless model as CasADi functions, for your own planners and observers.

The equations of `massless/cables.py` with all cables taut, nothing on the ground: tensions T of
D T = b keep every cable at its length, see `docs/massless.md`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.system.drone import Drone
from musls_description.system.slung_system import Load, SlungLoadSystem

BODY_STATES = 13
"""Position (3) and velocity (3) world, quaternion wxyz (4) body to world between them, body rates
(3): position, quaternion, velocity, rates."""


@dataclass(frozen=True)
class SymbolicSystem:
    """CasADi functions (SX) of a slung-load system on massless taut cables.

    The state x stacks load, drone 1, ..., drone n, each with position (3) [m, ENU], quaternion
    wxyz (4), velocity (3) [m/s, ENU], body rates (3) [rad/s], (13 (1 + n),). Quaternions need not
    have length one. A state whose cables have their lengths keeps them; the functions do not
    look at the lengths themselves. Wind is (3,) [m/s, ENU].

    Attributes:
        dynamics: (x, u, wind) -> x'; u is thrust and moments of each drone, body frame,
            (4 n,) [N, N m].
        rotor_dynamics: (x, speeds, wind) -> x'; rotor speeds, drone by drone, (n r,) [rad/s]; with
            the drag of the rotors.
        tensions: (x, u, wind) -> tensions, negative where a cable would push, (n,) [N].
        stretch: x -> distance of each cable's ends over its length, (n,) [m], and its rate.
    """

    dynamics: ca.Function
    rotor_dynamics: ca.Function
    tensions: ca.Function
    stretch: ca.Function
    n_states: int


def symbolic(
    system: SlungLoadSystem, gravity_m_s2: float = STANDARD_GRAVITY_M_S2
) -> SymbolicSystem:
    """Functions of a system, see `SymbolicSystem`."""
    n = system.n_drones
    r = system.n_rotors
    x = ca.SX.sym("x", BODY_STATES * (1 + n))
    wind = ca.SX.sym("wind", 3)
    u = ca.SX.sym("u", 4 * n)
    speeds = ca.SX.sym("speeds", n * r)
    parts: list[Load | Drone] = [system.load, *system.drones]
    bodies = [
        _Body(part, x[BODY_STATES * i : BODY_STATES * (i + 1)]) for i, part in enumerate(parts)
    ]
    pushes = []
    spun = []
    for i, drone in enumerate(system.drones):
        wrench = u[4 * i : 4 * i + 4]
        pushes.append((bodies[1 + i].rotation @ ca.vertcat(0, 0, wrench[0]), wrench[1:]))
        spun.append(_rotors(drone, bodies[1 + i], speeds[r * i : r * (i + 1)], wind))
    names = ["x", "u", "wind"]
    rate, tension = _motion(system, bodies, pushes, wind, gravity_m_s2)
    rotor_rate, _ = _motion(system, bodies, spun, wind, gravity_m_s2)
    gaps = [_cable(system, bodies, k) for k in range(n)]
    return SymbolicSystem(
        ca.Function("dynamics", [x, u, wind], [rate], names, ["rate"]),
        ca.Function(
            "rotor_dynamics", [x, speeds, wind], [rotor_rate], ["x", "speeds", "wind"], ["rate"]
        ),
        ca.Function("tensions", [x, u, wind], [tension], names, ["tension_n"]),
        ca.Function(
            "stretch",
            [x],
            [ca.vertcat(*(gap.stretch for gap in gaps)), ca.vertcat(*(gap.rate for gap in gaps))],
            ["x"],
            ["stretch_m", "rate_m_s"],
        ),
        BODY_STATES * (1 + n),
    )


class _Body:
    """Symbols of a body."""

    def __init__(self, part: Load | Drone, y: Any) -> None:
        self.part = part
        self.position = y[:3]
        q = y[3:7]
        self.velocity = y[7:10]
        self.omega = y[10:]
        self.inertia = np.array(part.inertia_kg_m2)
        turns = bool(self.inertia.any())  # a point mass does not turn
        self.inverse_inertia = np.linalg.inv(self.inertia) if turns else np.zeros((3, 3))
        w = q[0]
        a = q[1]
        b = q[2]
        c = q[3]
        s = 2.0 / ca.sumsqr(q)
        self.rotation = ca.vertcat(
            ca.horzcat(1 - s * (b * b + c * c), s * (a * b - w * c), s * (a * c + w * b)),
            ca.horzcat(s * (a * b + w * c), 1 - s * (a * a + c * c), s * (b * c - w * a)),
            ca.horzcat(s * (a * c - w * b), s * (b * c + w * a), 1 - s * (a * a + b * b)),
        )
        p = self.omega[0]
        k = self.omega[1]
        m = self.omega[2]
        self.spin = 0.5 * ca.vertcat(
            -a * p - b * k - c * m,
            w * p + b * m - c * k,
            w * k + c * p - a * m,
            w * m + a * k - b * p,
        )

    def point_velocity(self, point: Any) -> Any:
        return self.velocity + self.rotation @ ca.cross(self.omega, point)

    def drag(self, wind: Any) -> Any:
        along = self.rotation.T @ (self.velocity - wind)
        return -self.rotation @ (ca.DM(self.part.drag_n_s_m) * along)

    def accelerations(self, force: Any, moment: Any, gravity_m_s2: float) -> tuple[Any, Any]:
        """Accelerations of the centre (world), and of the body rates for a moment in its frame."""
        linear = force / self.part.mass_kg - ca.vertcat(0, 0, gravity_m_s2)
        gyroscopic = ca.cross(self.omega, self.inertia @ self.omega)
        return linear, self.inverse_inertia @ (moment - gyroscopic)


@dataclass(frozen=True)
class _Cable:
    """Symbols of a cable: direction to the drone, arms of its unit pull in the bodies' frames."""

    along: Any
    stretch: Any
    rate: Any
    across2: Any
    distance: Any
    load_point: Any
    drone_point: Any
    load_arm: Any
    drone_arm: Any


def _cable(system: SlungLoadSystem, bodies: list[_Body], k: int) -> _Cable:
    load = bodies[0]
    drone = bodies[1 + k]
    low = ca.DM(system.load.cable_attachments_m[k])
    high = ca.DM(system.drones[k].cable_attachment_m)
    reach = drone.position + drone.rotation @ high - load.position - load.rotation @ low
    distance = ca.norm_2(reach)
    along = reach / distance
    moving = drone.point_velocity(high) - load.point_velocity(low)
    rate = ca.dot(along, moving)
    return _Cable(
        along,
        distance - system.cables[k].length_m,
        rate,
        ca.sumsqr(moving) - rate**2,
        distance,
        low,
        high,
        ca.cross(low, load.rotation.T @ along),
        ca.cross(high, drone.rotation.T @ along),
    )


def _motion(
    system: SlungLoadSystem,
    bodies: list[_Body],
    pushes: list[tuple[Any, Any]],
    wind: Any,
    gravity_m_s2: float,
) -> tuple[Any, Any]:
    """State's rate and tensions, with a force (world) and a moment (body) on each drone."""
    n = system.n_drones
    load = bodies[0]
    wrenches = [(ca.SX.zeros(3), ca.SX.zeros(3)), *pushes]
    free = [
        body.accelerations(force + body.drag(wind), moment, gravity_m_s2)
        for body, (force, moment) in zip(bodies, wrenches, strict=True)
    ]
    cables = [_cable(system, bodies, k) for k in range(n)]
    D = ca.SX.zeros(n, n)
    b = ca.SX.zeros(n)
    for j, one in enumerate(cables):
        drone = bodies[1 + j]
        ends = [
            body.rotation
            @ (ca.cross(alpha, point) + ca.cross(body.omega, ca.cross(body.omega, point)))
            + linear
            for body, (linear, alpha), point in (
                (load, free[0], one.load_point),
                (drone, free[1 + j], one.drone_point),
            )
        ]
        b[j] = ca.dot(one.along, ends[1] - ends[0]) + one.across2 / one.distance
        for k, other in enumerate(cables):
            turn = load.inverse_inertia @ other.load_arm
            D[j, k] = ca.dot(one.along, other.along) / load.part.mass_kg + ca.dot(
                one.load_arm, turn
            )
        turn = drone.inverse_inertia @ one.drone_arm
        D[j, j] += 1.0 / drone.part.mass_kg + ca.dot(one.drone_arm, turn)
    tension = ca.solve(D, b)
    rates = []
    for i, (body, (linear, alpha)) in enumerate(zip(bodies, free, strict=True)):
        pulls = enumerate(cables) if i == 0 else [(i - 1, cables[i - 1])]
        sign = 1.0 if i == 0 else -1.0
        for k, cable in pulls:
            arm = cable.load_arm if i == 0 else cable.drone_arm
            linear = linear + sign * tension[k] / body.part.mass_kg * cable.along
            alpha = alpha + sign * tension[k] * (body.inverse_inertia @ arm)
        rates += [body.velocity, body.spin, linear, alpha]
    return ca.vertcat(*rates), tension


def _rotors(drone: Drone, body: _Body, speed: Any, wind: Any) -> tuple[Any, Any]:
    """Force (world) and moment (body) of a drone's rotors: thrust, reaction torque, drag."""
    # in the body's frame
    force = ca.SX.zeros(3)
    moment = ca.SX.zeros(3)
    for j, rotor in enumerate(drone.rotors):
        spin = -1.0 if rotor.spin == "ccw" else 1.0
        k = rotor.thrust_coefficient_n_s2
        place = ca.DM(rotor.position_m)
        air = body.rotation.T @ (body.point_velocity(place) - wind)
        across = ca.vertcat(air[0], air[1], 0)
        push = ca.vertcat(0, 0, k * speed[j] ** 2) - rotor.drag_n_s2_m_rad * speed[j] * across
        force += push
        moment += ca.cross(place, push)
        moment += ca.vertcat(0, 0, k * rotor.moment_ratio_m * spin * speed[j] ** 2)
    return body.rotation @ force, moment
