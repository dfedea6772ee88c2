"""Record of a planned flight, `Brief`, for the simulation and for real drones.

A scenario holds one, and the nodes of the ROS graph read one from the same file. Everything that
is decided before a flight (its plan, its controller, whether it may begin) is decided from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from musls_control.controllers import AnyController, FormationSpec
from musls_control.mission.carrying import Carried
from musls_control.mission.delivery import compile_delivery
from musls_control.mission.plan import (
    FlightPlan,
    GroundSpot,
    compile_air_plan,
    compile_plan,
    estimated_duration_s,
)
from musls_control.mission.spec import ContingencySpec, MissionSpec
from musls_description.config.errors import ConfigError
from musls_description.config.schema import Finite, Number, PerAxis, Positive, build, spec
from musls_description.config.strict_yaml import parse_yaml, read_text
from musls_description.hanging.cone import Cone
from musls_description.hanging.ground import Ground
from musls_description.hanging.hang import Hanging, hang
from musls_description.numerics.arrays import Array
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.system.obstacles import WorldSpec
from musls_description.system.slung_system import AnySystem, formation_of, slung_system

# ---------- Wind: a constant part and gusts, the same everywhere

MAX_WIND_M_S = 100.0
"""Largest wind along an axis; the strongest gust ever measured near the ground had 113 m/s."""

Velocity = Annotated[float, Field(ge=-MAX_WIND_M_S, le=MAX_WIND_M_S, allow_inf_nan=False), Number]
Deviation = Annotated[float, Field(ge=0.0, le=MAX_WIND_M_S / 2.0, allow_inf_nan=False), Number]


@spec
class WindSpec:
    """Constant wind and gusts (first-order Gauss-Markov process per axis).

    Attributes:
        mean_enu_m_s: Constant part.
        gust_std_m_s: Standard deviation of the gusts along each axis.
        gust_time_s: Correlation time of the gusts.
    """

    mean_enu_m_s: Annotated[tuple[Velocity, Velocity, Velocity], PerAxis] = (0.0, 0.0, 0.0)
    gust_std_m_s: Annotated[tuple[Deviation, Deviation, Deviation], PerAxis] = (0.0, 0.0, 0.0)
    gust_time_s: Positive = 2.0


@spec
class LimitsSpec:
    """Limits that a flight must keep.

    Attributes:
        separation_m: Least distance between the rotor tips of two drones. A plan that breaks it is
            refused; in flight coming closer is an event `too_close`. None for no limit.
        collision: Effect of a `collision` of a drone with another one, the load, a cable or the
            ground, or of any body with an obstacle: "report" makes an event of it, "end" also ends
            the flight as a failure.
    """

    separation_m: Positive | None = None
    collision: Literal["report", "end"] = "report"


# ---------- The brief


@spec
class Brief:
    """Record of what a flight is about.

    Attributes:
        system: Load, drones, cables.
        mission: Mission that is flown.
        starts: Kind of the start, as `start.kind` of a scenario: "ground", "air", ...
        formation: Places of the drones around the load.
        controller: Controller that turns the load's reference into commands.
        contingency: Reaction to the loss of a drone; None for no reaction.
        world: Ground and obstacles.
        limits: Limits that the flight must keep.
        wind: Mean wind and gusts.
        cable_model: Model of the cables.
        gravity_m_s2: Gravity.
        contact: Bodies that touch things, as `physics.contact`.
        parameters: Parameters of PX4 that differ from its defaults.
        rates_hz: Rates of recording, of everything and of the shapes of cables.
        seed: Seed of what is drawn in flight.
    """

    name: str
    system: AnySystem
    mission: MissionSpec
    starts: str = "ground"
    formation: Cone = Field(default_factory=Cone)
    controller: AnyController = Field(default_factory=FormationSpec)
    contingency: ContingencySpec | None = None
    world: WorldSpec = Field(default_factory=WorldSpec)
    limits: LimitsSpec = Field(default_factory=LimitsSpec)
    wind: WindSpec = Field(default_factory=WindSpec)
    cable_model: str = "rigid_links"
    gravity_m_s2: Positive = STANDARD_GRAVITY_M_S2
    contact: tuple[str, ...] = ("load", "drones")
    parameters: dict[str, Finite] = Field(default_factory=dict)
    rates_hz: tuple[float, float] = (50.0, 10.0)
    seed: int = 0

    @property
    def lands(self) -> bool:
        """Whether the flight starts and ends on the ground."""
        return self.starts == "ground"

    @property
    def in_formation(self) -> bool:
        """Whether the flight begins as a load hangs below its formation, or stands under it."""
        return self.starts in ("ground", "air")

    @property
    def follows_plan(self) -> bool:
        """Whether the drones go where the plan has them; other laws choose their own places."""
        return self.controller.kind == FormationSpec.kind

    @property
    def delivers(self) -> bool:
        """Whether a load is picked up and left; from a start in the air only its way is flown."""
        if self.mission.kind != "delivery" or not self.lands:
            return False
        if not self.follows_plan:
            raise ConfigError(
                "mission.kind = delivery: is flown by the formation, not by controller.kind = "
                f"{self.controller.kind}; choose controller.kind: formation"
            )
        slung_system(self.system, "mission.kind = delivery")
        return True

    @property
    def flight_s(self) -> float:
        """Estimated duration of the flight."""
        return estimated_duration_s(self.mission, lands=self.lands)

    @cached_property
    def hanging(self) -> Hanging | None:
        """Equilibrium of load and drones in formation where the mission begins.

        None where no formation is flown (no `mission.stages`, or a rig that has none).
        """
        system = self.system.formation
        mission = self.mission
        if system is None or not mission.stages:
            return None
        pose = mission.stages[0].pose(np.zeros(1))[0]
        pose = np.where(np.isfinite(pose), pose, 0.0)  # the list of findings refuses others
        ground = Ground.of(self.world, system)
        return hang(system, self.formation, self.gravity_m_s2, pose, ground)

    def hanging_for(self, what: str) -> Hanging:
        """The hanging of a flight in formation; raises ConfigError where there is none."""
        if self.hanging is None:
            slung_system(self.system, what)
            raise ConfigError(f"{what}: mission.stages is missing: no formation is flown")
        return self.hanging

    def plan_from(self, load_enu_m: Array, load_yaw_rad: float, drones_enu_m: Array) -> FlightPlan:
        """Sample the set-points of a flight in formation, once for the same places.

        Args:
            load_enu_m: Place of the load, (3,); not used by a start in the air.
            load_yaw_rad: Yaw of the load.
            drones_enu_m: Places of the drones, (n, 3).

        Raises:
            ConfigError: No formation is flown, or none holds the load.
        """
        places = load_enu_m.tobytes(), load_yaw_rad, drones_enu_m.tobytes()
        if places not in self._last_plan:
            self._last_plan.clear()
            self._last_plan[places] = self._compile(load_enu_m, load_yaw_rad, drones_enu_m)
        return self._last_plan[places]

    @cached_property
    def _last_plan(self) -> dict[tuple[bytes, float, bytes], FlightPlan]:
        """The last plan by the places from which it begins; a plan does not change."""
        return {}

    def _compile(self, load_enu_m: Array, load_yaw_rad: float, drones_enu_m: Array) -> FlightPlan:
        if not self.mission.stages:
            raise ConfigError("mission.stages is missing: real drones fly a load in formation")
        if not self.lands:
            first = self.mission.stages[0].pose(np.zeros(1))[0]
            return compile_air_plan(self.mission, self.formation, first, self.system.n_drones)
        system = formation_of(self.system, "start = ground")
        hanging = self.hanging_for("start = ground")
        places = load_enu_m, load_yaw_rad, drones_enu_m
        spot = GroundSpot.of(system, *places, hanging.ground)
        carried = Carried.of(hanging)
        compiled = compile_delivery if self.delivers else compile_plan
        return compiled(self.mission, self.formation, spot, carried)


FROM_FILE = (
    "name",
    "system",
    "mission",
    "formation",
    "controller",
    "contingency",
    "world",
    "limits",
    "wind",
    "cable_model",
    "seed",
)
"""Keys of a scenario that a brief takes as they are; the others come out of mappings below."""


def read_brief(path: Path) -> Brief:
    """Read the brief of a resolved scenario (as `musls fly` saves it beside every result).

    Raises:
        ConfigError: The file is none, in one line.
    """
    data = parse_yaml(read_text(path), str(path))
    system = data.get("system") if isinstance(data, Mapping) else None
    drones = system.get("drones") if isinstance(system, Mapping) else None
    if not isinstance(drones, list):
        raise ConfigError(
            f"{path}: system.drones is missing: a resolved scenario is needed, such as the "
            "scenario.yaml in a result folder of musls fly"
        )
    if "mission" not in data:
        raise ConfigError(f"{path}: mission is missing")
    entries: dict[str, Any] = {"name": path.stem} | {k: data[k] for k in FROM_FILE if k in data}
    for name, section, key in (
        ("starts", "start", "kind"),
        ("gravity_m_s2", "physics", "gravity_m_s2"),
        ("contact", "physics", "contact"),
        ("parameters", "autopilot", "parameters"),
    ):
        value = data.get(section)
        if isinstance(value, Mapping) and key in value:
            entries[name] = value[key]
        elif section == "start" and isinstance(value, str):
            entries[name] = value
    return build(Brief, entries, str(path))
