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
from numpy.typing import NDArray

from musls_control.controllers.interface import Controller, ControlLevel, ControlSetup
from musls_control.estimate import Estimate
from musls_control.reference import LoadReference
from musls_description.rotations import rotate
from musls_description.schema import NonNegative, Positive, spec

Array = NDArray[np.float64]
Axes = tuple[NonNegative, NonNegative, NonNegative]

UP = np.array([0.0, 0.0, 1.0])


@spec
class RotorTmSpec:
    """RotorTM's geometric laws for one cable, several cables or rods, with the paper's gains.

    Thrust and moment act on the drones at once, without rotors, as in RotorTM. Gains that are
    left out are those of the paper's public files for a point mass, the triangle on cables and the
    triangle on rods.

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
    drone_rotation: Axes = (0.25, 0.25, 0.08)
    drone_rate: Axes = (0.025, 0.025, 0.005)
    cable_direction: Positive = 16.0
    cable_rate: Positive = 6.7

    def build(self, setup: ControlSetup) -> Controller:
        """Make the controller."""
        if self.links == "rods":
            return _Rods(self)
        return _Cables(self)


_GAINS = {
    "point": ((1.45, 1.45, 3.0), (3.7, 3.2, 2.5), (0.0,) * 3, (0.0,) * 3),
    "cables": ((3.08, 3.08, 6.25), (2.15, 2.15, 3.42), (0.55, 0.5, 0.16), (0.162, 0.162, 0.068)),
    "rods": ((1.2, 1.2, 3.0), (1.5, 1.5, 2.5), (20.5, 20.5, 10.0), (5.5, 5.5, 4.0)),
}
"""Position, velocity, rotation and rate, from the public parameter files (code)."""


class _Law(Controller):
    """What cables and rods have in common."""

    level = ControlLevel.IDEAL_THRUST_MOMENT
    case: str

    def __init__(self, given: RotorTmSpec) -> None:
        self.given = given

    def _load_gains(self) -> tuple[Array, Array, Array, Array]:
        given, usual = self.given, _GAINS[self.case]
        chosen = (given.position, given.velocity, given.rotation, given.rate)
        position, velocity, rotation, rate = (
            np.array(usual[k] if value is None else value) for k, value in enumerate(chosen)
        )
        return position, velocity, rotation, rate

    def _wanted_acceleration(self, reference: LoadReference, estimate: Estimate) -> Array:
        """Acceleration of the load with feedback, gravity included (eq. 61)."""
        position, velocity, _, _ = self._load_gains()
        wanted: Array = (
            reference.acceleration_enu_m_s2
            + self.setup.gravity_m_s2 * UP
            + position * (reference.position_enu_m - estimate.position_enu_m[0])
            + velocity * (reference.velocity_enu_m_s - estimate.velocity_enu_m_s[0])
        )
        return wanted


class _Cables(_Law):
    """Point mass on one cable, or rigid load on several."""

    def prepare(self, setup: ControlSetup) -> None:
        """See `Controller.prepare`."""
        super().prepare(setup)
        system = setup.system
        self.n = system.n_drones
        self.case = "point" if self.n == 1 else "cables"
        self.at = np.array(system.load.cable_attachments_m)
        self.length = np.array([c.length_m for c in system.cables])
        self.mass = np.array([d.mass_kg for d in system.drones])
        self.inertia = np.array([d.inertia_kg_m2 for d in system.drones])
        self.load_inertia = np.array(system.load.inertia_kg_m2)
        # Forces at the attachments to force and moment of the load; rank 5 for two of them.
        self.share = np.linalg.pinv(np.vstack([np.tile(np.eye(3), self.n), _hats(self.at)]))
        self.yaw_rad = np.zeros(self.n)

    def start(self, time_s: float, estimate: Estimate) -> None:
        """Keep the yaws; the paper's drones start at yaw 0, which its law asks for."""
        front = _matrices(estimate.orientation_wxyz[1:])[:, :, 0]
        self.yaw_rad = np.arctan2(front[:, 1], front[:, 0])

    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Thrust and moment of each drone, (n, 4)."""
        wanted = self._wanted_acceleration(reference, estimate)
        turn = _matrices(estimate.orientation_wxyz)
        force, rate, second = self._pulls(wanted, reference, estimate, turn[0])
        arm = self.at @ turn[0].T
        omega = turn[0] @ estimate.omega_body_rad_s[0]
        cable = estimate.position_enu_m[0] + arm - estimate.position_enu_m[1:]
        cable_rate = (
            estimate.velocity_enu_m_s[0] + np.cross(omega, arm) - estimate.velocity_enu_m_s[1:]
        )
        xi = cable / np.linalg.norm(cable, axis=1)[:, None]
        w = np.cross(xi, cable_rate / self.length[:, None])
        xi_rate = np.cross(w, xi)
        aim, aim_w, aim_alpha = _direction(-force, -rate, -second)
        alpha = (
            -self.given.cable_direction * np.cross(aim, xi)
            - self.given.cable_rate * (w + np.cross(xi, np.cross(xi, aim_w)))
            - np.sum(xi * aim_w, axis=1)[:, None] * xi_rate
            - np.cross(xi, np.cross(xi, aim_alpha))
        )
        m, length = self.mass[:, None], self.length[:, None]
        # Acceleration of the attachment, gravity included: what the drone has to follow.
        carried = wanted + np.cross(omega, np.cross(omega, arm))
        along = np.sum(xi * (force + m * carried), axis=1)[:, None] * xi
        along += m * length * np.sum(w * w, axis=1)[:, None] * xi
        across = m * length * np.cross(xi, alpha) - m * np.cross(xi, np.cross(xi, carried))
        lift = along + across
        lift_rate = rate + m * (reference.jerk_enu_m_s3 if self.given.feed_forward else 0.0)
        return self._thrust_and_moment(lift, lift_rate, reference, estimate, turn[1:])

    def _pulls(
        self, wanted: Array, reference: LoadReference, estimate: Estimate, turn: Array
    ) -> tuple[Array, Array, Array]:
        """Forces of the cables on the load with their first two derivatives, (n, 3) each."""
        mass = self.setup.system.load.mass_kg
        rates = np.zeros((2, 3))
        if self.given.feed_forward:
            rates = mass * np.array([reference.jerk_enu_m_s3, reference.snap_enu_m_s4])
        if self.n == 1:
            return (mass * wanted)[None], rates[:1], rates[1:]
        _, _, rotation, rate = self._load_gains()
        omega, aim = estimate.omega_body_rad_s[0], turn.T @ reference.rotation
        aim_omega = aim @ reference.omega_body_rad_s
        moment = rotation * _error(aim) + rate * (aim_omega - omega)
        if self.given.feed_forward:
            inertia = self.load_inertia
            moment += np.cross(omega, inertia @ omega) + inertia @ (
                aim @ reference.alpha_body_rad_s2 - np.cross(omega, aim_omega)
            )
        local = self.share @ np.concatenate([mass * (turn.T @ wanted), moment])
        force = local.reshape(self.n, 3) @ turn.T
        # Cables that would have to push are asked for nothing downwards, as in the code.
        force[:, 2] = np.maximum(force[:, 2], 1e-3)
        spread = [
            (self.share[:, :3] @ (turn.T @ change)).reshape(self.n, 3) @ turn.T for change in rates
        ]
        return force, spread[0], spread[1]

    def _thrust_and_moment(
        self, lift: Array, lift_rate: Array, reference: LoadReference, estimate: Estimate,
        turn: Array,
    ) -> Array:  # fmt: skip
        commands = np.empty((self.n, 4))
        size = np.linalg.norm(lift, axis=1)[:, None]
        up = lift / size
        up_rate = (lift_rate - np.sum(lift_rate * up, axis=1)[:, None] * up) / size
        if not self.given.feed_forward:
            up_rate[:] = 0.0
        for k in range(self.n):
            aim = _attitude(up[k], self.yaw_rad[k])
            aim_omega = aim.T @ np.cross(up[k], up_rate[k])
            omega, inertia = estimate.omega_body_rad_s[k + 1], self.inertia[k]
            relative = turn[k].T @ aim
            commands[k, 0] = lift[k] @ turn[k][:, 2]
            commands[k, 1:] = (
                np.array(self.given.drone_rotation) * _error(relative)
                + np.array(self.given.drone_rate) * (relative @ aim_omega - omega)
                + np.cross(omega, inertia @ omega)
            )
        return commands


class _Rods(_Law):
    """Drones fixed to the load: one rigid body with the wrench of all (eq. 74)."""

    case = "rods"

    def start(self, time_s: float, estimate: Estimate) -> None:
        """Measure where the drones sit, and add up masses and inertias."""
        system = self.setup.system
        turn = _matrices(estimate.orientation_wxyz)
        local = (estimate.position_enu_m[1:] - estimate.position_enu_m[0]) @ turn[0]
        masses = np.array([system.load.mass_kg, *(d.mass_kg for d in system.drones)])
        places = np.vstack([np.zeros(3), local])
        self.mass = float(masses.sum())
        self.center = masses @ places / self.mass
        inertia = np.array(system.load.inertia_kg_m2)
        self.turns = np.array([turn[0].T @ r for r in turn[1:]])
        for drone, relative in zip(system.drones, self.turns, strict=True):
            inertia = inertia + relative @ np.array(drone.inertia_kg_m2) @ relative.T
        for m, r in zip(masses, places - self.center, strict=True):
            inertia = inertia + m * ((r @ r) * np.eye(3) - np.outer(r, r))
        self.inertia = inertia
        columns = []
        for r, relative in zip(local - self.center, self.turns, strict=True):
            up = relative[:, 2]
            column = np.zeros((4, 4))
            column[0, 0], column[1:, 0] = up[2], np.cross(r, up)
            column[1:, 1:] = relative
            columns.append(column)
        effect = np.hstack(columns)
        ease = np.tile([1.0, 0.1, 0.1, 0.1], len(columns))  # inverse weights: 1 and 10
        weighted = ease[:, None] * effect.T
        self.share = weighted @ np.linalg.inv(effect @ weighted)

    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Thrust and moment of each drone, (n, 4)."""
        _, _, rotation, rate = self._load_gains()
        wanted = self._wanted_acceleration(reference, estimate)
        (turn,) = _matrices(estimate.orientation_wxyz[:1])
        omega = estimate.omega_body_rad_s[0]
        size = float(np.linalg.norm(wanted))
        up = wanted / size
        aim = _attitude(up, reference.yaw_rad)
        relative = turn.T @ aim
        moment = rotation * _error(relative) - rate * omega + np.cross(omega, self.inertia @ omega)
        if self.given.feed_forward:
            _, spin, alpha = _direction(
                reference.acceleration_enu_m_s2[None] + self.setup.gravity_m_s2 * UP,
                reference.jerk_enu_m_s3[None],
                reference.snap_enu_m_s4[None],
            )
            spin, alpha = relative @ (aim.T @ spin[0]), relative @ (aim.T @ alpha[0])
            moment += rate * spin + self.inertia @ (alpha - np.cross(omega, spin))
        lift = self.mass * wanted @ turn[:, 2]
        found: Array = (self.share @ np.concatenate([[lift], moment])).reshape(-1, 4)
        return found


def _direction(vector: Array, rate: Array, second: Array) -> tuple[Array, Array, Array]:
    """Directions of vectors, (n, 3), their angular velocities and accelerations."""
    size = np.linalg.norm(vector, axis=1)[:, None]
    unit = vector / size
    growth = np.sum(unit * rate, axis=1)[:, None]
    omega = np.cross(vector, rate) / size**2
    alpha = np.cross(vector, second) / size**2 - 2.0 * growth / size * omega
    return unit, omega, alpha


def _attitude(up: Array, yaw_rad: float) -> Array:
    """Attitude whose z axis is given and whose x axis points to a yaw, (3, 3)."""
    y = np.cross(up, [np.cos(yaw_rad), np.sin(yaw_rad), 0.0])
    y /= np.linalg.norm(y)
    return np.column_stack([np.cross(y, up), y, up])


def _error(relative: Array) -> Array:
    """Attitude error of (67) for R^T R_d, positive towards the wanted attitude, (3,)."""
    skew = 0.5 * (relative - relative.T)
    return np.array([skew[2, 1], skew[0, 2], skew[1, 0]])


def _matrices(orientation_wxyz: Array) -> Array:
    """Rotation matrices of quaternions, (n, 3, 3)."""
    axes = [rotate(orientation_wxyz, np.broadcast_to(e, (len(orientation_wxyz), 3)))
            for e in np.eye(3)]  # fmt: skip
    return np.stack(axes, axis=-1)


def _hats(vectors: Array) -> Array:
    """Cross-product matrices side by side, (3, 3 n)."""
    return np.hstack([np.cross(r, np.eye(3)).T for r in vectors])
