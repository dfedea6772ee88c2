"""Forces that drones hold while the load hangs, and the share that is fed forward.

Taking a load up and setting it down change the force of a drone within seconds, by more than
position errors and integrators follow: drones without feed-forward are pulled inwards by up to half
a metre. A plan therefore asks for accelerations beside the places, as PX4's
TrajectorySetpoint.acceleration. PX4 points the thrust of (ax, ay, az) along (ax, ay, g) and makes
its vertical part h (1 + az / g), h being the hover thrust (PositionControl::_accelerationControl,
MPC_ACC_DECOUPLE). While a share s of the load's weight is carried, a drone of weight W with a pull
(Fx, Fy, Fz) of its cable needs

    ax = g s Fx / (W + s Fz),   ay = g s Fy / (W + s Fz),

and az = g (c(s) / c(0) - 1), where c(s) is the upright part of the collective command that gives
the thrust, and c(0), for the drone alone, the hover thrust. After a flight the estimator of the
hover thrust has learned the load: while it is set down, az falls by g (1 - c(s) / c(1)).

Between the two nothing changes: what an autopilot's integrators have learned stays right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from musls_control.px4.position_control import GRAVITY_M_S2
from musls_description.hanging.hang import Hanging
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import from_yaw, rotate
from musls_description.system.drone import Drone

TAKE_UP_S = 2.0
"""Time in which the cables take the load's weight, and give it back."""

MOST_UPWARDS_M_S2 = 0.9 * GRAVITY_M_S2
"""Largest vertical feed-forward: PX4's vertical integrator, which compensates it, is limited to 1
g."""

FAR_M = 0.1
NEAR_M = 0.03
"""Largest and least distance at which a drone counts as in its place."""

GIVES_WAY_S2 = 1.0 / (0.95 * 1.8 + 0.4)
LEARNS_S = (0.95 * 1.8 + 0.4) / (0.95 * 0.4)
"""Displacement of a drone per acceleration, and time in which its integrator compensates it: for
slow changes, with PX4's defaults of MPC_XY_P, MPC_XY_VEL_P_ACC and MPC_XY_VEL_I_ACC."""

CLOSE_SHARE = 0.5
CLOSE_M = 0.1
"""Distance of rotor tips below which a pass is reported: as a share of the planned distance, and in
metres."""

LOAD_SHARE = 0.05
"""Largest distance of a lifted load from where it is to hang, as a share of its height above the
ground."""

LONGEST_WAIT_S = 10.0
"""Longest wait for load and drones to be in place."""

STILL_S = 1.0
STILL_SHARE = 0.02
LONGEST_SWINGS = 3.0
"""Time for which the load has to stay near a place before it is lowered to the ground; how near, on
long cables, over their length; and for how many of its swings it is waited for, if these last."""


@dataclass(frozen=True)
class Carried:
    """Forces that the drones hold while the load hangs in formation.

    Attributes:
        weight_n: Weight of each drone alone, (n,).
        pull_n: Force that its thrust adds to that, in the frame of the load's set-point, (n, 3).
        sag_m: Height of the load's set-point above the load.
        gap_m: Smallest distance between the rotor tips of two drones; infinite for one drone.
        thrust_n_s2: Thrust of each drone's rotors over their squared speed, (n,).
        speed_rad_s: Speeds of the rotors at the commands 0 and 1, (n, 2).
        length_m: Length of the longest cable.
    """

    weight_n: Array
    pull_n: Array
    sag_m: float
    gap_m: float
    thrust_n_s2: Array
    speed_rad_s: Array
    length_m: float = 0.0

    @classmethod
    def of(cls, hanging: Hanging) -> Carried | None:
        """Read it from how a system hangs; None where it does not."""
        if hanging.refusal is not None:
            return None
        return cls.by_pull(
            hanging.system.drones,
            hanging.gravity_m_s2,
            -hanging.drone_end_force_n,
            float(hanging.load_pose[3]),
            sag_m=hanging.sag_m,
            gap_m=hanging.tips_apart_m,
            length_m=max(cable.length_m for cable in hanging.system.cables),
        )

    @classmethod
    def by_pull(
        cls,
        drones: Sequence[Drone],
        gravity_m_s2: float,
        pull_enu_n: Array,
        yaw_rad: float,
        *,
        sag_m: float,
        gap_m: float,
        length_m: float,
    ) -> Carried:
        """Forces of drones whose thrusts add a pull, (n, 3), to their weights at a load's yaw."""
        return cls(
            np.array([drone.mass_kg for drone in drones]) * gravity_m_s2,
            rotate(from_yaw(np.full(len(drones), -yaw_rad)), pull_enu_n),
            sag_m,
            gap_m if len(drones) > 1 else np.inf,
            np.array([sum(r.thrust_coefficient_n_s2 for r in d.rotors) for d in drones]),
            np.array([[d.rotors[0].speed_min_rad_s, d.rotors[0].speed_max_rad_s] for d in drones]),
            length_m,
        )

    @property
    def near_m(self) -> float:
        """Distance at which a drone counts as in its place."""
        return float(np.clip(0.25 * self.gap_m, NEAR_M, FAR_M))

    def comes_close(self, share: Array, load_yaw_rad: Array, rate_hz: float) -> bool:
        """Whether a load that turns draws its drones close, where its pull is not fed forward.

        By shares of its weight that are carried, and its yaw, in the rows of a plan, (k,): then
        integrators follow the pull late, and drones are off by what these have not learned yet.
        """
        pull_m_s2 = np.linalg.norm(self.aside_m_s2(1.0, 0.0), axis=1).max(initial=0.0)
        pull = np.exp(1j * load_yaw_rad[share == 1.0]).tolist()  # as complex numbers
        learned = pull[0] if pull else 0.0
        inwards = 0.0
        for now in pull:
            inwards = max(inwards, ((now - learned) * now.conjugate()).real)
            learned += (now - learned) / (rate_hz * LEARNS_S)
        drawn_m = 2.0 * GIVES_WAY_S2 * float(pull_m_s2) * inwards
        return drawn_m > 1e-9 and self.gap_m - drawn_m < max(CLOSE_M, CLOSE_SHARE * self.gap_m)

    @property
    def swing_s(self) -> float:
        """Period in which the load swings, at most."""
        return float(2.0 * np.pi * np.sqrt(self.length_m / GRAVITY_M_S2))

    # All take one share, or many, (k,), and answer with a row for each.

    def aside_m_s2(self, share: float | Array, load_yaw_rad: float) -> Array:
        """Horizontal accelerations to ask for while a share is carried, (n, 2)."""
        pull_enu_n = rotate(from_yaw(np.full(len(self.pull_n), load_yaw_rad)), self.pull_n)
        pull_n = np.multiply.outer(share, np.column_stack([pull_enu_n[:, :2], self.pull_n[:, 2]]))
        return np.asarray(
            GRAVITY_M_S2 * pull_n[..., :2] / (self.weight_n + pull_n[..., 2])[..., None]
        )

    def taken_up_m_s2(self, share: float | Array) -> Array:
        """Vertical acceleration to ask for while the load is taken up, (n,)."""
        upwards = GRAVITY_M_S2 * (self._collective(share) / self._collective(0.0) - 1.0)
        return np.minimum(upwards, MOST_UPWARDS_M_S2)

    def set_down_m_s2(self, share: float | Array) -> Array:
        """Vertical acceleration to ask for while the load is set down, over that before, (n,)."""
        return GRAVITY_M_S2 * (self._collective(share) / self._collective(1.0) - 1.0)

    def _collective(self, share: float | Array) -> Array:
        """Upright part of the collective command while a share is carried, (n,)."""
        thrust_n = np.multiply.outer(share, self.pull_n)
        thrust_n[..., 2] += self.weight_n
        size_n = np.linalg.norm(thrust_n, axis=-1)
        (slowest, fastest) = self.speed_rad_s.T
        command = (np.sqrt(size_n / self.thrust_n_s2) - slowest) / (fastest - slowest)
        return np.asarray(np.maximum(command, 0.05) * thrust_n[..., 2] / size_n)


@dataclass(frozen=True)
class Held:
    """Equilibria of a rig at the rows of a plan.

    Attributes:
        load_pose: Pose of the load, or of the body in its place: x, y, z [m], yaw [rad], (k, 4).
        thrust_enu_n: Force that the rotors of each drone must give, (k, n, 3).
        moment_body_n_m: Moment that they must give, in each drone's frame, (k, n, 3).
        tension_n: Largest tension of each cable, (k, n_cables).
        reason: Why the rig does not hang at the rows after these; "" where it always does.
    """

    load_pose: Array
    thrust_enu_n: Array
    moment_body_n_m: Array
    tension_n: Array
    reason: str = ""
