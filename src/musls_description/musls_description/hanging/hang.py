"""Equilibrium of a system in its formation, computed once per scenario for all users.

`hang` is the one door to cone, fitting, equilibrium and places on the ground. What it returns holds
all that checks, plants, tables and pictures ask; none of them solves anything again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from musls_description.config.errors import ConfigError
from musls_description.hanging.cone import Cone
from musls_description.hanging.equilibrium import (
    HangingEquilibrium,
    NoEquilibriumError,
    freed,
    hanging_equilibrium,
    on_massless_cables,
)
from musls_description.hanging.fitting import fitting_formation, holds, why_none
from musls_description.hanging.ground import (
    Ground,
    ground_spawn,
    highest_rise_m,
    uneven_rise_m,
    uneven_spawn,
)
from musls_description.hanging.reallocation import Reallocation, reallocate
from musls_description.hanging.tree import Configuration, tips_apart_m
from musls_description.numerics.arrays import Array
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.numerics.rotations import from_matrix, matrix, wrapped, yaw_of
from musls_description.system.drone import thrust_margin
from musls_description.system.slung_system import SlungLoadSystem

PROPOSES = "`musls formation` proposes places that fit"

MIN_THRUST_MARGIN = 1.1
"""Thrust margin below which a multirotor cannot be controlled any more."""


def shown_beside(value: float, limit: float) -> str:
    """A value in as many digits, two at least, as say on which side of a limit it is."""
    for digits in range(2, 7):
        text = f"{value:.{digits}f}"
        if (float(text) < limit) == (value < limit):
            return text
    return f"just below {limit:g}"


def margin_text(margin: float) -> str:
    """A thrust margin, shown on its side of the least one that is needed."""
    return shown_beside(margin, MIN_THRUST_MARGIN)


def margin_sentence(margin: float, drone: int) -> str:
    """A least thrust margin, the number of the drone that has it, and the one that is needed."""
    condition = f"at least {MIN_THRUST_MARGIN:g} is needed"
    return f"thrust margin {margin_text(margin)} (drone_{drone}; {condition})"


def weakest_of(margins: Sequence[float] | Array) -> int:
    """Number of the drone with the least thrust margin, from 1; of equal ones the first."""
    values = np.asarray(margins)
    return int(np.argmax(values <= 1.000001 * values.min())) + 1


@dataclass(frozen=True)
class FormationRefusal:
    """Reason why a system has no equilibrium, or must not be flown.

    Attributes:
        key: Keys of the scenario that are at fault, with their values; "formation" where none was
            given and the system allows none.
        reason: Reason of the refusal.
        remedy: Remedy; empty where there is none.
    """

    key: str
    reason: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.key}: {self.reason}" + (f"; {self.remedy}" if self.remedy else "")


@dataclass(frozen=True, eq=False)
class Hanging:
    """A system at rest in its formation.

    Attributes:
        system: Load, drones and cables.
        formation: Places of the drones in the frame of the load's set-point, complete.
        given: Keys of the formation that were given; the others were chosen to fit the system.
        gravity_m_s2: Gravity.
        load_pose: Set-point of the load: x, y, z [m], yaw [rad], (4,).
        refusal: Why the load does not hang there; None where it does.
        ground: The ground, None where it is flat, at z = 0.
    """

    system: SlungLoadSystem
    formation: Cone
    given: frozenset[str]
    gravity_m_s2: float
    load_pose: Array
    refusal: FormationRefusal | None
    _rest: HangingEquilibrium | None
    ground: Ground | None = None

    @property
    def rest(self) -> HangingEquilibrium:
        """Poses and forces of all bodies; raises the refusal where there are none."""
        if self._rest is None:
            raise ConfigError(str(self.refusal))
        return self._rest

    def refuse(self, reason: str) -> FormationRefusal:
        """Refuse this formation for a reason: the keys at fault, and what would do."""
        if not self.given and self.why_none is not None:
            return FormationRefusal("formation", self.why_none)
        if "places_m" in self.given:
            key = "formation.places_m"
        else:
            keys = sorted(self.given & {"radius_m", "height_m"}, reverse=True)
            values = [(key, getattr(self.formation, key)) for key in keys or self.given]
            key = ", ".join(f"formation.{key} = {value:g}" for key, value in values)
        return FormationRefusal(key or "formation", reason, self.why_none or PROPOSES)

    # ---------- Forces

    @cached_property
    def thrust_margins(self) -> Array:
        """Full over needed thrust of the rotor of each drone that works hardest, (n,).

        0 where its rotors cannot give the thrust without turning the drone.
        """
        loads = zip(
            self.system.drones,
            np.linalg.norm(self.rest.drone_force_n, axis=1),
            self.rest.drone_moment_n_m,
            strict=True,
        )
        return np.array([thrust_margin(*of_one) for of_one in loads])

    @property
    def thrust_margin(self) -> float:
        """Least thrust margin: the figure by which a system is judged, see `margin_sentence`."""
        return float(self.thrust_margins.min())

    @property
    def margin_sentence(self) -> str:
        """Least thrust margin, whose it is, and the one that is needed."""
        return margin_sentence(self.thrust_margin, self.weakest)

    @property
    def weakest(self) -> int:
        """Number of the drone with the least thrust margin, from 1; of equal ones the first."""
        return weakest_of(self.thrust_margins)

    @property
    def shares(self) -> Array:
        """Upright pull of each cable over an even share of the load's weight, (n,)."""
        upright = self.rest.cable_force_n[:, 2]
        shares: Array = len(upright) * upright / upright.sum()
        return shares

    @property
    def drone_end_force_n(self) -> Array:
        """Force of each cable on its drone, world frame, (n, 3)."""
        masses = np.array([drone.mass_kg for drone in self.system.drones])
        force: Array = masses[:, None] * [0.0, 0.0, self.gravity_m_s2] - self.rest.drone_force_n
        return force

    # ---------- Places

    @cached_property
    def _yaws_rad(self) -> tuple[Array, Array]:
        """Yaw of the hanging load and drones, and of their set-points, (1 + n,) each."""
        _, yaws = self.formation.poses(self.load_pose[:3], self.load_pose[3], self.system.n_drones)
        frames = np.array([self.rest.load_rotation, *self.rest.drone_rotations])
        return yaw_of(from_matrix(frames)), np.array([self.load_pose[3], *yaws])

    @property
    def sag_m(self) -> float:
        """Height of the load's set-point above the load at rest."""
        return float(self.load_pose[2] - self.rest.load_position_enu_m[2])

    @property
    def turn_rad(self) -> float:
        """Yaw of the load at rest relative to its set-point."""
        return float(self._turns_rad[0])

    @property
    def drone_turn_rad(self) -> Array:
        """Yaws of the drones, turned by their cables, relative to their set-points, (n,)."""
        return self._turns_rad[1:]

    @property
    def _turns_rad(self) -> Array:
        yaw, setpoint = self._yaws_rad
        return wrapped(yaw - setpoint)

    @property
    def tilt_rad(self) -> float:
        """Angle of the load's z axis from upright; 0 of a point mass."""
        if self.system.load.point_mass:
            return 0.0
        return float(np.arccos(np.clip(self.rest.load_rotation[2, 2], -1.0, 1.0)))

    @property
    def tips_apart_m(self) -> float:
        """Least distance of rotor tips, seen from above; infinite for one drone."""
        return tips_apart_m(self.system, self.formation.offsets_m(self.system.n_drones))

    @cached_property
    def on_ground(self) -> Configuration:
        """Load flat on the ground at the origin, drones around it, cables slack between them."""
        if self.ground is not None:
            return uneven_spawn(self.system, self.ground)
        return ground_spawn(self.system)

    @cached_property
    def on_ground_twists(self) -> Array:
        """Angular velocities and velocities of load and drones in `on_ground`, world, (1 + n, 6).

        They move with the ground below them.
        """
        places, _ = self.on_ground.bodies(self.system)
        if self.ground is None:
            return np.zeros((len(places), 6))
        return np.array([self.ground.twist(place) for place in places])

    @cached_property
    def highest_rise_m(self) -> Array:
        """Height above the ground at which the cable of each drone standing there is taut, (n,)."""
        if self.ground is not None:
            return uneven_rise_m(self.system, self.on_ground)
        return highest_rise_m(self.system)

    # ---------- The same system under other conditions

    @property
    def is_balanced(self) -> bool:
        """Whether straight cables hold the load level in balanced shares, rotors apart."""
        return holds(self.system, self.formation.offsets_m(self.system.n_drones))

    @cached_property
    def why_none(self) -> str | None:
        """Why no formation holds the load level; None if one does."""
        return why_none(self.system)

    @cached_property
    def on_massless_cables(self) -> HangingEquilibrium:
        """Equilibrium of the load below the same drones on straight, massless cables.

        Plants without chains begin here: below a chain the load would hang a little higher.
        """
        try:
            return on_massless_cables(self.rest, self.gravity_m_s2)
        except NoEquilibriumError as error:  # straight cables are longer than chains that sag
            raise ConfigError(str(self.refuse(str(error)))) from None

    def without(
        self,
        lost: Sequence[int],
        *,
        margin: float,
        clearance_m: float,
        hanging: Sequence[int] = (),
        hovering: Sequence[int] = (),
    ) -> Reallocation | None:
        """Formation of the drones that are left when others do not carry any more.

        Args:
            lost: Numbers of the drones that do not carry, from 1.
            margin: Thrust margin that each drone that is left is to keep.
            clearance_m: Least distance of their rotor tips.
            hanging: Lost drones that hang from the load by their cables.
            hovering: Lost drones that stay in their places, or sink there: the others keep clear.

        Returns:
            The formation, whose margin may be too small to carry on; None if nothing holds the
            load.
        """
        return reallocate(
            self.system,
            self.formation,
            self.gravity_m_s2,
            lost,
            margin=margin,
            clearance_m=clearance_m,
            hanging=hanging,
            hovering=hovering,
        )

    def accelerated(self, felt_m_s2: Array, yaw_rad: float) -> tuple[Array, Array]:
        """Pull of the cables where what they carry feels another gravity, as in a turn.

        Args:
            felt_m_s2: Acceleration that holds the load up: upwards at rest, (3,), z > 0.
            yaw_rad: Yaw of the load's set-point.

        Returns:
            Force that each drone needs for its cable, world frame, (n, 3), and the tension of each
            cable at the load, (n,).
        """
        size = float(np.linalg.norm(felt_m_s2))
        places, yaws = self.formation.poses(np.zeros(3), yaw_rad, self.system.n_drones)
        turn = matrix(_upright(felt_m_s2 / size))  # to a frame in which it is upright
        rest = hanging_equilibrium(freed(self.system), places @ turn.T, size, yaw_rad, yaws)
        up = np.array([0.0, 0.0, size])
        pulls = [
            turn.T @ (force - drone.mass_kg * up)
            for force, drone in zip(rest.drone_force_n, self.system.drones, strict=True)
        ]
        return np.array(pulls), rest.load_end_tension_n


def hang(
    system: SlungLoadSystem,
    formation: Cone | Mapping[str, Any],
    gravity_m_s2: float = STANDARD_GRAVITY_M_S2,
    load_pose: Sequence[float] | Array = (0.0, 0.0, 0.0, 0.0),
    ground: Ground | None = None,
) -> Hanging:
    """Resolve how a system hangs.

    Args:
        system: Load, drones and cables; the stiffness of their joints does not count.
        formation: Places of the drones, or some of its keys: what is left out
            follows from the system.
        gravity_m_s2: Gravity.
        load_pose: Set-point of the load: x, y, z [m], yaw [rad], (4,).
        ground: The ground, None where it is flat, at z = 0.

    Raises:
        ConfigError: A formation of another number of drones. That a load does not hang in a
            formation is no error here, see `Hanging.refusal`.
    """
    if isinstance(formation, Cone):
        cone = formation
        keys = frozenset(field.name for field in fields(Cone))
        if cone.places_m is None:
            keys -= {"places_m"}
    else:
        keys = frozenset(key for key, value in formation.items() if value is not None)
        cone = fitting_formation(system, formation)
    pose = np.asarray(load_pose, np.float64)
    places, yaws = cone.poses(pose[:3], pose[3], system.n_drones)
    common = system, cone, keys, gravity_m_s2, pose
    try:
        rest = hanging_equilibrium(freed(system), places, gravity_m_s2, float(pose[3]), yaws)
    except NoEquilibriumError as error:
        refusal = Hanging(*common, None, None).refuse(str(error))
        return Hanging(*common, refusal, None, ground)
    return Hanging(*common, None, rest, ground)


def _upright(direction: Array) -> Array:
    """Rotation by the least angle that turns a unit vector with z > 0 up, quaternion (4,)."""
    x, y, z = direction
    turn: Array = np.array([1.0 + z, y, -x, 0.0])
    turn /= np.linalg.norm(turn)
    return turn
