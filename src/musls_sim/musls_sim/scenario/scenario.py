"""A scenario: one YAML file that says everything about a run.

System, start, formation, mission, autopilot, estimation, wind, physics, recording and seed. The
resolved scenario, system written out, is saved beside every result and can be flown again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, Field

from musls_control.brief.brief import Brief, LimitsSpec, WindSpec
from musls_control.controllers import AnyController, FormationSpec
from musls_control.mission.spec import ContingencySpec, MissionSpec
from musls_control.px4.parameters import PX4_PARAMETERS
from musls_description.config.errors import ConfigError, check_present_folder
from musls_description.config.registry import Registry, load_file, user_code
from musls_description.config.schema import FileName, Finite, Number, build, spec, to_data
from musls_description.config.strict_yaml import (
    LocatedMapping,
    Override,
    Place,
    located,
    parse_yaml,
    place_of,
    read_text,
    read_yaml,
    shown,
)
from musls_description.hanging.cone import Cone, with_places
from musls_description.hanging.ground import Ground
from musls_description.hanging.hang import Hanging, hang
from musls_description.hanging.rig_places import rig_places_m
from musls_description.numerics.arrays import Array
from musls_description.system.obstacles import WorldSpec, resolve_tables
from musls_description.system.slung_system import AnySystem, RigSystem
from musls_description.system.system_files import expand_system, read_system, system_path
from musls_description.tables import ShownResult, Table
from musls_sim.plants import PLANTS
from musls_sim.scenario.aerodynamics import AnyAerodynamics
from musls_sim.scenario.events import AnyEvent
from musls_sim.sensors.custom import AnySensor
from musls_sim.specs.estimation import AnyEstimation, MotionCaptureSpec, Px4SensorSpec
from musls_sim.specs.imperfections import Imperfections
from musls_sim.specs.physics import CONTROL_PERIOD_S, PhysicsSpec, Start, StartSpec
from musls_sim.specs.rig import RigSpec, resolve_files

OVER_LOAD_M = 0.1
"""Drones that take off beside a high load come so far over it, where their cables allow that."""

FORMED_UP_M = 0.3
"""Height of the drones' places over the ground, at least, where the cables hang slack."""

AUTOPILOTS: Registry[Any] = Registry(
    "autopilot",
    "musls.autopilots",
    {
        "builtin": "musls_sim.autopilots:build",
        "px4": "musls_sim.px4.build:build",
    },
)
"""Functions that build an autopilot from an `AutopilotSetup`, by `autopilot.kind`."""


class _Px4Parameters:
    """Says in a JSON schema what PX4's parameters mean."""

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        """Schema of the parameters that the cascade reads; a real PX4 has more."""
        properties = {
            name: {
                "type": "number",
                "minimum": parameter.minimum,
                "maximum": parameter.maximum,
                "default": parameter.default,
                "description": f"{parameter.meaning[:1].upper()}{parameter.meaning[1:]}.",
            }
            for name, parameter in PX4_PARAMETERS.items()
        }
        return {**handler(core_schema), "properties": properties}


class Tracker(str, Enum):
    """Tracking of the forces that a controller asks for, by thrust and moments.

    Attributes:
        GEOMETRIC: Geometric attitude control.
        INDI: Incremental tracker: accelerometer, gyro and rotor speeds show what the model
            leaves out, and the drones push against it.
    """

    GEOMETRIC = "geometric"
    INDI = "indi"


@spec
class AutopilotSpec:
    """Flight stack of the drones.

    Attributes:
        kind: "builtin" is the PX4-equivalent cascade, "px4" a real PX4 SITL per drone.
        parameters: PX4 parameters by their PX4 names that differ from PX4's x500 defaults.
            MPC_THR_HOVER defaults to the throttle that carries the drone alone, as a pilot sets it.
        sensors: Sensors of a real PX4; the built-in autopilot uses `estimation` instead.
        flight_log: Whether a real PX4 writes its own flight log, kept as px4/drone_i.ulg.
        tracker: Law that converts forces to thrust and moments, for controllers of level `forces`.
    """

    kind: Annotated[
        str, AfterValidator(AUTOPILOTS.known), Field(json_schema_extra=AUTOPILOTS.tell_names)
    ] = "builtin"
    parameters: Annotated[dict[str, Finite], _Px4Parameters()] = Field(default_factory=dict)
    sensors: Px4SensorSpec = Field(default_factory=Px4SensorSpec)
    flight_log: bool = False
    tracker: Tracker = Tracker.GEOMETRIC


@spec
class RecordingSpec:
    """Recorded signals and their rates.

    Attributes:
        rate_hz: Rate of poses, twists, tensions and rotor speeds; must divide 250 Hz.
        shape_rate_hz: Rate of the cable shapes; must divide `rate_hz`.
        tensions: Whether the tension of every link or segment of the cables is recorded, too.
    """

    rate_hz: Annotated[float, Field(ge=0.01, le=250.0, allow_inf_nan=False), Number] = 50.0
    shape_rate_hz: Annotated[float, Field(ge=0.01, le=250.0, allow_inf_nan=False), Number] = 10.0
    tensions: bool = False

    def __post_init__(self) -> None:
        for over, under, name in (
            (1.0 / CONTROL_PERIOD_S, self.rate_hz, "rate_hz must divide 250 Hz"),
            (self.rate_hz, self.shape_rate_hz, "shape_rate_hz must divide rate_hz"),
        ):
            if abs(over / under - round(over / under)) > 1e-9:
                raise ValueError(f"{name} (250, 125, 50, 25, 10, 5, ...), not {under:g}")


CableModel = Annotated[
    str, AfterValidator(PLANTS.known), Field(json_schema_extra=PLANTS.tell_names)
]
"""Name of a plant."""


@spec
class Scenario(ShownResult):
    """Everything about one run.

    Attributes:
        name: Short name, also of the output folder.
        description: Purpose of the scenario in one line.
        system: Load, drones, cables.
        extensions: Python files that are run first: they register trajectories, controllers,
            your own plants or events.
        start: Start of the flight: "ground", "air", or a state.
        formation: Places of the drones around the load; what a file leaves out follows from the
            system.
        mission: Mission: trajectories of the load, one after the other.
        controller: Controller that converts the reference of the load to commands for the drones.
        autopilot: Flight stack of the drones.
        estimation: State estimation of the drones; a real PX4 estimates its state by itself.
        sensors: Your own sensors, beside the load cells of the cables.
        cable_model: Model of the cables; "rigid_links" is the seed paper's.
        events: Events during the flight, such as failures and wind.
        imperfections: Faults of the drones and of their links, or the file that has them.
        rig: Motion of anchors and winches over time, of a rig.
        wind: Mean wind and gusts.
        aerodynamics: Effects of the air besides drag: downwash, ground effect, your own models.
        world: Ground and obstacles.
        physics: Step size of the physics and other numerical settings.
        limits: Limits that the flight must keep, such as the distance between drones.
        contingency: Reaction of the formation to the loss of a drone; left out for none.
        recording: Recorded signals and their rates.
        seed: Seed of all noise; the same seed gives the same run bit for bit.
    """

    name: FileName
    description: str = ""
    system: AnySystem
    extensions: tuple[str, ...] = ()
    start: Start = Field(default_factory=StartSpec)
    formation: Cone = Field(default_factory=Cone)
    mission: MissionSpec
    controller: AnyController = Field(default_factory=FormationSpec)
    autopilot: AutopilotSpec = Field(default_factory=AutopilotSpec)
    estimation: AnyEstimation = Field(default_factory=MotionCaptureSpec)
    sensors: tuple[AnySensor, ...] = ()
    cable_model: CableModel = "rigid_links"
    events: tuple[AnyEvent, ...] = ()
    imperfections: Imperfections = Field(default_factory=Imperfections)
    rig: RigSpec = Field(default_factory=RigSpec)
    wind: WindSpec = Field(default_factory=WindSpec)
    aerodynamics: tuple[AnyAerodynamics, ...] = ()
    world: WorldSpec = Field(default_factory=WorldSpec)
    physics: PhysicsSpec = Field(default_factory=PhysicsSpec)
    limits: LimitsSpec = Field(default_factory=LimitsSpec)
    contingency: ContingencySpec | None = None
    recording: RecordingSpec = Field(default_factory=RecordingSpec)
    seed: Annotated[int, Field(ge=0, lt=2**64), Number] = 0

    @cached_property
    def hanging(self) -> Hanging | None:
        """Equilibrium of load and drones in formation where the mission begins.

        `load_scenario` resolves it; None where no formation is flown (no `mission.stages`, or a
        rig that has none).
        """
        return self._hang(self.formation)

    def hanging_for(self, what: str) -> Hanging:
        """The hanging of a scenario with a formation; raises ConfigError where there is none."""
        return self.brief.hanging_for(what)

    def _hang(self, formation: Cone | Mapping[str, Any]) -> Hanging | None:
        """Resolve a formation, or those of its keys that are given."""
        system = self.system.formation
        mission = self.mission
        if system is None or not mission.stages:
            return None
        pose = mission.stages[0].pose(np.zeros(1))[0]
        pose = np.where(np.isfinite(pose), pose, 0.0)  # the checks before the flight refuse others
        ground = Ground.of(self.world, system)
        return hang(system, formation, self.physics.gravity_m_s2, pose, ground)

    @cached_property
    def brief(self) -> Brief:
        """Record of the planned flight, for all decisions before it starts."""
        brief = Brief(
            name=self.name,
            system=self.system,
            mission=self.mission,
            starts=self.start.kind,
            formation=self.formation,
            controller=self.controller,
            contingency=self.contingency,
            world=self.world,
            limits=self.limits,
            wind=self.wind,
            cable_model=self.cable_model,
            gravity_m_s2=self.physics.gravity_m_s2,
            contact=self.physics.contact,
            parameters=self.autopilot.parameters,
            rates_hz=(self.recording.rate_hz, self.recording.shape_rate_hz),
            seed=self.seed,
        )
        vars(brief)["hanging"] = self.hanging  # of the cached property: it knows what was given
        return brief

    @property
    def inextensible(self) -> bool:
        """Whether cables do not stretch when they jerk."""
        physics = self.physics
        in_dart = physics.engine != "embedded" or physics.exact_friction
        return self.cable_model == "rigid_links" and (in_dart or physics.inextensible)

    def shown(self) -> Iterator[str | Table]:
        """Table of system, mission and flight stack; scenario.yaml of a result has the rest."""
        system = self.system
        drones = self.system.n_drones
        yield f"Scenario {self.name}: {self.description}".rstrip(": ")
        rows = [
            ("system", f"{system.name}: {drones} drones, {system.n_cables} cables"),
            ("start", self.start.kind),
            ("mission", ", ".join(stage.kind for stage in self.mission.all_stages)),
            ("controller", self.controller.kind),
            ("autopilot", self.autopilot.kind),
            ("cable_model", self.cable_model),
            ("events", ", ".join(event.kind for event in self.events) or "none"),
            ("seed", str(self.seed)),
        ]
        yield Table(("key", "value"), rows, names=2)


def as_override(key: str, value: Any) -> str:
    """The override by which a key gets a value; names and paths stand for themselves."""
    if isinstance(value, Path) or (key == "system" and isinstance(value, str)):
        return f"{key}={value}"
    if isinstance(value, str):
        with suppress(ConfigError):  # what is no YAML is quoted, too
            if parse_yaml(value, key) == value:
                return f"{key}={value}"
    return f"{key}={json.dumps(to_data(value))}"  # JSON is YAML, and keeps every digit


@user_code()
def load_scenario(
    source: Path | Mapping[str, Any],
    overrides: Sequence[str] = (),
    origin: str = "--set",
    name: str = "",
) -> Scenario:
    """Read a scenario file, write out its system, apply overrides, check everything.

    `source`: the file, or its contents; files that it names are relative to the current folder.
    `overrides`: `key.path=value` each, `system=NAME` or `imperfections=FILE`; a key below a list
    holds for all its elements unless an index picks one (`system.cables.links=29`,
    `system.cables.0.links=5`). Messages call an override `origin`, and the file `name`, if given.

    Raises:
        ConfigError: Anything wrong, in one line that names the file (the scenario's or the
            system's) or the override.
    """
    check_present_folder()
    if isinstance(source, Mapping):
        path = Path("scenario")
        name = name or "scenario"
        data = located(to_data(source), Place(name))
    else:
        path = source
        name = name or str(source)
        data = parse_yaml(read_text(path), name)
    if not isinstance(data, LocatedMapping):
        raise ConfigError(f"{name}: expected a mapping of Scenario, not {shown(repr(data))}")
    if "cables" in data and not {"system", "mission"} & set(data):
        raise ConfigError(f"{name}: a system, no scenario: musls fly hold --set system={path}")
    data.setdefault("name", path.stem)
    for key in ("start", "controller"):  # short for a mapping; an override may reach into it
        if isinstance(data.get(key), str):
            data[key] = located({"kind": data[key]}, data.places[key])
    _resolve_files(data, path.parent)
    # What an override names as a whole comes first: others may reach into it.
    whole: list[str] = []
    for key, find in (("system", system_path), ("imperfections", _imperfections_path)):
        file_overrides = [o for o in overrides if _names_file(o, key, origin)]
        whole += file_overrides
        if file_overrides:
            text = file_overrides[-1].partition("=")[2]
            place = Place(name, override=f"{origin} {shown(file_overrides[-1])}")
            inline = text.lstrip().startswith("{")
            data[key] = located(parse_yaml(text, str(place)), place) if inline else text
            data.places[key] = place
        if isinstance(data.get(key), str):
            try:
                file = find(data[key], relative_to=Path() if file_overrides else path.parent)
            except ConfigError as error:
                raise ConfigError(f"{place_of(data, (key,), '')[0]}: {error}") from None
            data[key] = read_system(file) if key == "system" else read_yaml(file)
    expand_system(data.get("system"))  # that it is missing is told with all other keys
    for override in overrides:
        if override not in whole:
            Override.parse(override, origin).apply(data)
    for extension in _texts(data.get("extensions")):
        load_file(extension)
    return _resolved(build(Scenario, data, name), data)


def _resolved(scenario: Scenario, data: Mapping[str, Any]) -> Scenario:
    """Complete the formation and the heights of the mission, once, from the system."""
    settings = {key: getattr(scenario.formation, key) for key in data.get("formation") or ()}
    hanging = scenario._hang(settings)
    if hanging is None:
        return _rig_resolved(scenario, settings, data)
    mission = scenario.mission
    if scenario.start.kind == "ground":
        places = hanging.formation.offsets_m(hanging.system.n_drones)
        slack_m = 0.8 * float(hanging.highest_rise_m.min())
        heights = _heights(hanging.system, places, slack_m, mission, data["mission"])
        mission = replace(mission, **heights)
    resolved = replace(scenario, formation=hanging.formation, mission=mission)
    vars(resolved)["hanging"] = hanging  # of the cached property: it knows what was given
    return resolved


RIG_RISE_RATIO = 0.35
"""Rise of a drone over the length of its shortest cable: slack from `SLACK_RATIO` on the ground."""


def _rig_resolved(
    scenario: Scenario, settings: Mapping[str, Any], data: Mapping[str, Any]
) -> Scenario:
    """The same for a rig that starts on the ground or in formation."""
    system = scenario.system
    mission = scenario.mission
    kind = scenario.start.kind
    if system.formation is not None or kind not in ("ground", "air") or not system.drones:
        return scenario
    if system.load is None and not mission.stages:
        return scenario
    free = scenario.rig.free_anchors(system)
    places = rig_places_m(system, free, settings)
    if kind == "ground":
        shortest_m = min(cable.length_m for cable in system.cables)
        heights = _heights(system, places, RIG_RISE_RATIO * shortest_m, mission, data["mission"])
        mission = replace(mission, **heights)
    return replace(scenario, formation=with_places(places), mission=mission)


def _heights(
    system: RigSystem,
    places_m: Array,
    highest_m: float,
    mission: MissionSpec,
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """Heights of a start on the ground that a mission does not give.

    Lowered to short cables, slack up to `highest_m`; raised over a load that is as high, on the way
    into the formation, places (n, 3).
    """
    heights: dict[str, Any] = {}
    if "rise_m" not in settings:
        load_m = 0.0 if system.load is None else system.load.collision.size_m[2]
        rise_m = min(max(mission.rise_m, load_m + OVER_LOAD_M), highest_m)
        if rise_m != mission.rise_m:
            heights["rise_m"] = float(f"{rise_m:.2g}")
    if "slack_height_m" not in settings:
        slack_m = _slack_height_m(system, places_m, mission.slack_height_m)
        if slack_m != mission.slack_height_m:
            heights["slack_height_m"] = float(f"{slack_m:.2g}")
    return heights


def _slack_height_m(system: RigSystem, places_m: Array, usual_m: float) -> float:
    """Set-point of the load at which drones in formation are above the standing load."""
    lowest_m = float(places_m[:, 2].min())
    down_m = max(0.2 * lowest_m, lowest_m - FORMED_UP_M)
    height_m = max(usual_m, -down_m) if down_m > 0.0 else usual_m
    if system.load is None:
        return height_m
    load = system.load.collision
    reach_m = np.hypot(*load.size_m[:2]) / 2.0
    for drone, (x, y, z) in zip(system.drones, places_m, strict=True):
        box = drone.collision
        if np.hypot(x, y) < reach_m + np.hypot(*box.size_m[:2]) / 2.0:
            free_m = load.size_m[2] + OVER_LOAD_M - box.bottom_m - z
            height_m = max(height_m, min(free_m, -load.bottom_m - 0.2 * z))
    return height_m


def _names_file(override: str, key: str, origin: str) -> bool:
    """Whether an override names the file of a key's whole content."""
    name, _, value = override.partition("=")
    if name != key or (key == "imperfections" and "{" in value):
        return False
    if key == "system" and value.strip()[:1] in ("", "["):
        what = "must be a system's name, its file or its keys"
        raise ConfigError(f"{origin} {shown(override)}: {what}")
    return True


def _imperfections_path(name: str, relative_to: Path) -> Path:
    place = relative_to / name
    if not os.path.isfile(place):
        raise ConfigError(f"imperfections file {shown(str(place), 200)}: no such file")
    return place


def _resolve_files(data: dict[str, Any], folder: Path) -> None:
    """Make paths of files absolute; they are relative to the scenario's folder."""
    if extensions := _texts(data.get("extensions")):
        data["extensions"] = [os.path.abspath(folder / name) for name in extensions]
    mission = data.get("mission")
    lists = []
    if isinstance(mission, Mapping):
        own = mission.get("drones")
        lists = [mission.get("stages"), *(own.values() if isinstance(own, Mapping) else ())]
    for stage in (stage for stages in lists if isinstance(stages, list) for stage in stages):
        if isinstance(stage, dict) and isinstance(stage.get("path"), str) and stage["path"]:
            stage["path"] = os.path.abspath(folder / stage["path"])
    resolve_files(data.get("rig"), folder)
    resolve_tables(data.get("world"), folder)
    controller = data.get("controller")
    if not isinstance(controller, LocatedMapping):
        return
    source = controller.get("source")
    if isinstance(source, str) and source.rpartition(":")[0].endswith(".py"):
        file, _, name = source.rpartition(":")
        controller["source"] = f"{os.path.abspath(folder / file)}:{name}"


def _texts(value: Any) -> list[str]:
    """Names in a list; empty for anything else, which validation reports."""
    names = value if isinstance(value, list) else []
    return names if all(isinstance(name, str) for name in names) else []
