"""Silence: what drones conclude from it, and what a drone does that hears nobody any more.

To its neighbours a drone is lost that they have heard and do not hear any more for `silent_s`; what
its motors do nobody can tell them. A drone that hears fewer than half of those that it has heard is
not in a position to say who is lost: it is cut off itself. So two parts of a network never both
believe that they carry the load alone, as in the elections of a quorum (D. Ongaro and
J. Ousterhout, "In search of an understandable consensus algorithm", USENIX ATC 2014, section 5).

A drone that is cut off holds its place, which is all that its neighbours can count on, and then
lands beside the load. Where nobody hears anybody all drones do so at once, and set the load down.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_control.agents.agent import Now, Post
from musls_control.controllers import ControlLevel
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import from_yaw, rotate, yaw_of
from musls_description.numerics.vectors import cross, rotate_back_by

HOLD_S = 2.0
"""Time for which a drone that is cut off holds its place; its neighbours open its hook then."""

SINK_M_S = 0.3
ASIDE_M_S = 0.3
ASIDE_M = 1.0
"""Speed of its landing, speed and distance by which it goes away from the load once it is free."""

FREE_SHARE = 0.2
"""Pull of the cable over an even share of the load below which a drone counts as free of it."""

STIFFNESS_1_S2 = 4.0
DAMPING_1_S = 3.5
MOST_M_S2 = 2.0
"""Gains of the place, and the largest acceleration that they ask for."""

PULL_S = 0.3
"""Time constant with which the pull is made up for; at once, it would feed the swing."""


def silence_of(ages_s: Array, silent_s: float) -> NDArray[np.bool_]:
    """Mask of the drones that each one (row) has heard and does not hear any more, (n, n).

    `ages_s`: age of the news that each has of each, (n, n); NaN for nothing so far.
    """
    return np.asarray(np.nan_to_num(ages_s, nan=-np.inf) > silent_s)


def cut_off_drones(ages_s: Array, silent_s: float) -> NDArray[np.bool_]:
    """Mask of the drones that hear fewer than half of those that they have heard, (n,)."""
    n_heard = np.isfinite(ages_s).sum(axis=1)
    fresh = n_heard - silence_of(ages_s, silent_s).sum(axis=1)
    return np.asarray(2 * fresh < n_heard)


def ages_of_lost(ages_s: Array, silent_s: float) -> Array:
    """Ages of the drones that no drone hears that is not cut off itself, (n,); NaN for others."""
    listens = ~cut_off_drones(ages_s, silent_s)
    counts = listens[:, None] & np.isfinite(ages_s)
    newest = np.where(counts, ages_s, np.inf).min(axis=0)
    return np.where(np.isfinite(newest) & (newest > silent_s), newest, np.nan)


class HoldThenLand:
    """Behaviour of a drone that is cut off."""

    def __init__(self, post: Post, now: Now) -> None:
        """Begin to hold the place of now."""
        self._post = post
        self._begun_s = now.time_s
        self._before_s = now.time_s
        self._place_m = now.own.position_enu_m.copy()
        self._yaw_rad = float(yaw_of(now.own.orientation_wxyz))
        self._pull_n = now.pull_enu_n.copy()
        self._gone_m = 0.0
        turn = from_yaw(np.array(self._yaw_rad - post.yaw_rad))
        away = rotate(turn, post.place_m)[:2]  # it looks at the load
        self._away = away / max(float(np.linalg.norm(away)), 1e-9)

    def command(self, now: Now, level: ControlLevel, columns: int) -> Array:
        """Command of a level for set-points or forces, (columns,)."""
        target, velocity = self._target(now)
        if level is ControlLevel.DRONE_SETPOINTS:
            row = np.full(columns, np.nan)
            row[0:3] = target
            row[3 if columns == 4 else 9] = self._yaw_rad
            return row
        post = self._post
        own = now.own
        acceleration = STIFFNESS_1_S2 * (target - own.position_enu_m)
        acceleration += DAMPING_1_S * (velocity - own.velocity_enu_m_s)
        acceleration *= min(1.0, MOST_M_S2 / max(float(np.linalg.norm(acceleration)), 1e-9))
        up = np.array([0.0, 0.0, post.gravity_m_s2])
        force = post.drone.mass_kg * (acceleration + up) - self._pull_n
        moment = cross(
            rotate_back_by(own.orientation_wxyz, self._pull_n), post.drone.cable_attachment_m
        )
        counted_force = self._pull_n - post.drone.mass_kg * up
        return np.concatenate([force, [self._yaw_rad], moment, counted_force])[:columns]

    def _target(self, now: Now) -> tuple[Array, Array]:
        """Place and velocity of this time."""
        step_s = now.time_s - self._before_s
        self._before_s = now.time_s
        self._pull_n += min(step_s / PULL_S, 1.0) * (now.pull_enu_n - self._pull_n)
        velocity = np.zeros(3)
        if now.time_s - self._begun_s > HOLD_S:
            share_n = self._post.load_mass_kg * self._post.gravity_m_s2 / self._post.n_drones
            free = float(np.linalg.norm(self._pull_n)) < FREE_SHARE * share_n
            if free and self._gone_m < ASIDE_M:
                self._gone_m += ASIDE_M_S * step_s
                velocity[:2] = ASIDE_M_S * self._away
            velocity[2] = -SINK_M_S
        self._place_m += step_s * velocity
        return self._place_m, velocity


FLIES_ALONE = (
    ControlLevel.DRONE_SETPOINTS,
    ControlLevel.FORCES,
    ControlLevel.AUTOPILOT_FORCES,
)
"""Levels at which `HoldThenLand` can fly a drone."""
