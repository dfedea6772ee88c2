"""A scenario: one YAML file that says everything about a run.

System, start, formation, mission, autopilot, estimation, wind, physics, recording and seed. The
resolved scenario, system written out, is saved beside every result and can be flown again.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from musls_control.controllers import AnyController, FormationSpec
from musls_control.formation import Cone
from musls_control.mission.spec import MissionSpec
from musls_control.px4_cascade.parameters import PX4_PARAMETERS
from musls_description.drone import tip_radius_m
from musls_description.errors import ConfigError, near_names
from musls_description.library import expand_system, system_path
from musls_description.registry import NameIn, Registry, load_file
from musls_description.schema import Finite, Fraction, NonNegative, Number, Positive, build, spec
from musls_description.strict_yaml import (
    Override,
    SourceFile,
    Sources,
    parse_yaml,
    read_text,
    shown,
)
from musls_description.system import AnySystem, SlungLoadSystem
from musls_sim.plants import PLANTS
from musls_sim.scenario.events import AnyEvent
from musls_sim.scenario.imperfections import Imperfections
from musls_sim.scenario.physics import (
    CONTROL_PERIOD_S,
    PhysicsSpec,
    Start,
    StartSpec,
    WindSpec,
)
from musls_sim.scenario.rig import RigSpec, resolve_files
from musls_sim.scenario.sensors import AnyEstimation, LimitsSpec, MotionCaptureSpec, Px4SensorSpec

# ---------- Loss of a drone: how it is noticed and what is done

MIN_THRUST_MARGIN = 1.1
"""Largest over hover thrust below which a multirotor cannot be controlled any more."""

LEAST_DRONES = 4
"""From so many on the loss of one can be survived."""


@spec
class ContingencySpec:
    """What the formation does when it has lost a drone or a cable.

    Who guides the formation knows the drones' measured places, their set-points and the forces of
    the hooks' load cells, nothing else.

    Attributes:
        drop_m: A drone this far below its set-point that sinks faster than `sink_m_s` is lost.
        sink_m_s: See there.
        slack_share: A cable that carries less than this share of an even part of the load for
            `slack_s` is lost; its drone flies on without load.
        slack_s: See there.
        delay_s: From the measurement that tells to the first command that follows from it: links,
            filters, decision.
        hook: "release" lets the cable of a lost drone go at the load; "hold" lets it hang there.
        then: "continue" goes on with the mission if the drones that are left carry the load with
            `margin`; "land" sets the load down where it is in any case.
        margin: Full thrust over needed thrust that each drone that is left needs to go on.
        clearance_m: Least distance of rotor tips in the new formation.
        speed_m_s: Of the drones on the way to their new places.
        lower_speed_m_s: Of the load when it is set down.
    """

    drop_m: Positive = 0.5
    sink_m_s: Positive = 1.0
    slack_share: Fraction = 0.1
    slack_s: Positive = 1.0
    delay_s: NonNegative = 0.1
    hook: Literal["release", "hold"] = "release"
    then: Literal["continue", "land"] = "continue"
    margin: Annotated[float, Field(ge=MIN_THRUST_MARGIN, le=10.0, allow_inf_nan=False), Number] = (
        1.15
    )
    clearance_m: NonNegative = 0.2
    speed_m_s: Positive = 0.4
    lower_speed_m_s: Positive = 0.3


# ---------- Formation that follows from a system

Array = NDArray[np.float64]

INCLINATION_RAD = 0.363
"""Of the paper's cables from the vertical, 20.8 degrees."""

STEEPEST_RAD = 1.0
"""Inclination beyond which rotors would mostly pull at each other."""

FITTING_SAG_M = 0.2
"""The load may hang so far from its set-point in a formation that counts as fitting."""

FITTING_RAD = np.radians(5.0)
"""The attachments may point so far off the drones in a formation that counts as fitting."""

TIPS_APART_M = 0.4
"""Least distance of the rotor tips of neighbours."""

FITTING_TIPS_M = 0.2
"""Least distance of the rotor tips in a formation that counts as fitting."""

CENTRAL_M = 0.02
"""An attachment nearer to the load's axis has no direction."""

LEVEL_M = 0.02
"""Drones whose heights differ by less fly at one height."""


# The paper's cone (radius 1.0 m, height 2.2962 m) is kept wherever it fits. Elsewhere each drone
# flies in the direction of its cable's attachment, with the cable inclined as in the paper and
# rotor tips apart, and so high that the load hangs at its set-point.


def fitting_formation(system: SlungLoadSystem, given: Mapping[str, Any]) -> Cone:
    """Complete a formation from the system.

    `given`: keys of `formation` that the scenario gives; they are kept.
    """
    if given.get("places_m") is not None:
        return Cone(**given)
    azimuths, even = _azimuths_rad(system)
    first = given.get("first_azimuth_rad")
    if first is None:
        first = float(azimuths[0]) if even else 0.0
    asked = Cone(**{"first_azimuth_rad": first, **given})
    shape = [key for key in ("radius_m", "height_m") if given.get(key) is not None]
    if len(shape) == 2 or _fits(system, asked, given):
        return asked
    if even or "first_azimuth_rad" in given:
        azimuths = asked.azimuths_rad(system.n_drones)
    radius = np.full(system.n_drones, given.get("radius_m", np.nan))
    if np.isnan(radius).any():
        radius = _radii_m(system, azimuths)
    heights = np.full(system.n_drones, given.get("height_m", np.nan))
    if np.isnan(heights).any():
        heights = _heights_m(system, azimuths, radius)
    if even and max(np.ptp(heights), np.ptp(radius)) < LEVEL_M:
        return Cone(
            radius_m=float(radius.mean()),
            height_m=float(heights.mean()),
            first_azimuth_rad=float(first),
        )
    x, y = radius * np.cos(azimuths), radius * np.sin(azimuths)
    places = tuple((float(a), float(b), float(c)) for a, b, c in zip(x, y, heights, strict=True))
    return Cone(
        radius_m=float(radius.mean()), height_m=float(heights.mean()),
        first_azimuth_rad=float(azimuths[0]), places_m=places,
    )  # fmt: skip


def _azimuths_rad(system: SlungLoadSystem) -> tuple[Array, bool]:
    """Direction of each drone in the load's frame, (n,), and whether they are evenly spaced."""
    n = system.n_drones
    even = 2.0 * np.pi * np.arange(n) / n
    places = np.array(system.load.cable_attachments_m)[:, :2]
    if (np.linalg.norm(places, axis=1) < CENTRAL_M).any():
        return even, True
    azimuths = np.arctan2(places[:, 1], places[:, 0])
    off = np.angle(np.exp(1j * (azimuths - even)))
    mean = float(np.angle(np.exp(1j * off).mean()))
    spread = np.abs(np.angle(np.exp(1j * (off - mean)))).max()
    if spread < FITTING_RAD:
        return even + (0.0 if abs(mean) < FITTING_RAD else mean), True
    gaps = np.diff(np.sort(np.mod(azimuths, 2.0 * np.pi)), append=np.nan)
    if n > 1 and np.nanmin(gaps) < np.pi / n / 2.0:  # too close to each other
        return even, True
    return azimuths, False


def _ends(system: SlungLoadSystem, azimuths: Array, radius_m: Array) -> tuple[Array, Array]:
    """How straight cables run from attachment to drone.

    Returns:
        Distance aside, (n,), and what is to be added to the cable's upright part for the height of
        the drone's place over the load's, (n,).
    """
    aside, added = [], []
    for i, drone in enumerate(system.drones):
        at_load = np.array(system.load.cable_attachments_m[i])
        facing = azimuths[i] + np.pi
        cos, sin = np.cos(facing), np.sin(facing)
        x, y, z = drone.cable_attachment_m
        end = [cos * x - sin * y, sin * x + cos * y]
        place = radius_m[i] * np.array([np.cos(azimuths[i]), np.sin(azimuths[i])])
        aside.append(np.linalg.norm(place + end - at_load[:2]))
        added.append(at_load[2] - z)
    return np.array(aside), np.array(added)


def _heights_m(system: SlungLoadSystem, azimuths: Array, radius_m: Array) -> Array:
    """Heights over the load's set-point at which straight cables hold it there, (n,)."""
    aside, added = _ends(system, azimuths, radius_m)
    lengths = np.array([cable.length_m for cable in system.cables])
    # A radius beyond the cables is refused by the checks before the flight, which say why.
    upright = np.sqrt(np.maximum(lengths**2 - aside**2, (0.1 * lengths) ** 2))
    return np.asarray(upright + added)


def _fits(system: SlungLoadSystem, cone: Cone, given: Mapping[str, Any]) -> bool:
    """Whether the load hangs near its set-point and unturned in a formation."""
    azimuths, even = _azimuths_rad(system)
    off = np.angle(np.exp(1j * (azimuths - cone.azimuths_rad(system.n_drones))))
    if not even or ("first_azimuth_rad" not in given and np.abs(off).max() > FITTING_RAD):
        return False
    radius = np.full(system.n_drones, cone.radius_m)
    aside, _ = _ends(system, azimuths, radius)
    if (aside >= [cable.length_m for cable in system.cables]).any():
        return False
    if system.n_drones > 1:
        tips = max(tip_radius_m(drone) for drone in system.drones)
        neighbours = 2.0 * cone.radius_m * np.sin(np.pi / system.n_drones)
        if neighbours < 2.0 * tips + FITTING_TIPS_M:
            return False
    heights = _heights_m(system, azimuths, radius)
    return bool(np.abs(heights - cone.height_m).max() <= FITTING_SAG_M)


def _radii_m(system: SlungLoadSystem, azimuths: Array) -> Array:
    """Radii with cables inclined alike, as in the paper, and rotor tips apart, (n,)."""
    if system.n_drones == 1:
        return np.zeros(1)
    inner = np.linalg.norm(np.array(system.load.cable_attachments_m)[:, :2], axis=1)
    inner += np.array([drone.cable_attachment_m[0] for drone in system.drones])
    lengths = np.array([cable.length_m for cable in system.cables])
    around = np.sort(np.mod(azimuths, 2.0 * np.pi))
    gap = float(np.diff(around, append=around[0] + 2.0 * np.pi).min())
    tips = max(tip_radius_m(drone) for drone in system.drones)
    apart = (2.0 * tips + TIPS_APART_M) / (2.0 * np.sin(min(gap, np.pi) / 2.0))
    needed = np.arcsin(np.clip((apart - inner.min()) / lengths.min(), 0.0, 1.0))
    inclination = min(max(INCLINATION_RAD, float(needed)), STEEPEST_RAD)
    return np.asarray(inner + lengths * np.sin(inclination))


MAX_NAME_LENGTH = 100
"""Of a scenario; the names of folders hold 255 letters, date and time included."""

AUTOPILOTS: Registry[Any] = Registry(
    "autopilot",
    "musls.autopilots",
    {
        "builtin": "musls_sim.autopilots:build",
        "px4": "musls_sim.px4.build:build",
    },
)
"""Functions that build an autopilot from an `AutopilotSetup`, by `autopilot.kind`."""


def _autopilot_kind(name: str) -> str:
    if name not in AUTOPILOTS:
        raise ValueError(AUTOPILOTS.unknown(name))
    return name


class _Px4Parameters:
    """Says in a JSON schema what PX4's parameters mean."""

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        """Those that the cascade reads; a real PX4 knows more."""
        known = {
            name: {
                "type": "number",
                "minimum": parameter.minimum,
                "maximum": parameter.maximum,
                "default": parameter.default,
                "description": f"{parameter.meaning[:1].upper()}{parameter.meaning[1:]}.",
            }
            for name, parameter in PX4_PARAMETERS.items()
        }
        return {**handler(core_schema), "properties": known}


@spec
class AutopilotSpec:
    """Flight stack of the drones.

    Attributes:
        kind: "builtin" is the PX4-equivalent cascade, "px4" a real PX4 SITL per drone.
        parameters: PX4 parameters by their PX4 names that differ from PX4's x500 defaults.
            MPC_THR_HOVER defaults to the throttle that carries the drone alone, as a pilot sets it.
        sensors: What a real PX4 measures; the built-in autopilot goes by `estimation` instead.
        flight_log: Whether a real PX4 writes its own flight log, kept as px4/drone_i.ulg.
    """

    kind: Annotated[str, AfterValidator(_autopilot_kind), NameIn(AUTOPILOTS)] = "builtin"
    parameters: Annotated[dict[str, Finite], _Px4Parameters()] = Field(default_factory=dict)
    sensors: Px4SensorSpec = Field(default_factory=Px4SensorSpec)
    flight_log: bool = False


@spec
class RecordingSpec:
    """What is written to the bag.

    Attributes:
        rate_hz: Rate of poses, twists, tensions and rotor speeds; must divide 250 Hz.
        shape_rate_hz: Rate of the cable shapes; must divide `rate_hz`.
    """

    rate_hz: Annotated[float, Field(ge=0.01, le=250.0, allow_inf_nan=False), Number] = 50.0
    shape_rate_hz: Annotated[float, Field(ge=0.01, le=250.0, allow_inf_nan=False), Number] = 10.0

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        for over, under, name in (
            (1.0 / CONTROL_PERIOD_S, self.rate_hz, "rate_hz must divide 250 Hz"),
            (self.rate_hz, self.shape_rate_hz, "shape_rate_hz must divide rate_hz"),
        ):
            if abs(over / under - round(over / under)) > 1e-9:
                raise ValueError(f"{name} (250, 125, 50, 25, 10, 5, ...), not {under:g}")


def _cable_model(name: str) -> str:
    if name not in PLANTS:
        raise ValueError(PLANTS.unknown(name))
    return name


CableModel = Annotated[str, AfterValidator(_cable_model), NameIn(PLANTS)]
"""Name of a plant."""


@spec
class Scenario:
    """Everything about one run.

    Attributes:
        name: Short name, also of the output folder.
        description: What it is for, in one line.
        system: Load, drones, cables.
        extensions: Python files that are run first: they register trajectories, controllers,
            plants or events of one's own.
        start: How the flight starts: "ground", "air", or a state.
        formation: Places of the drones around the load; what a file leaves out follows from the
            system.
        mission: What is flown: trajectories of the load, one after the other.
        controller: What turns the reference of the load into commands for the drones.
        autopilot: Flight stack of the drones.
        estimation: What the drones know of their state; a real PX4 estimates it by itself.
        cable_model: How the cables are modelled; "rigid_links" is the seed paper's.
        events: What happens to the system during the flight.
        imperfections: Faults of the drones and of their links, or the file that has them.
        rig: Motion of anchors and winches over time, of a rig.
        wind: Mean wind and gusts.
        physics: Step size of the physics and other numerical settings.
        limits: Limits that the flight must keep, such as the distance between drones.
        contingency: What the formation does when it has lost a drone; left out for nothing.
        recording: What is recorded.
        seed: Seed of all noise; the same seed gives the same run bit for bit.
    """

    name: Annotated[str, Field(pattern=r"^[\w.+-]+$", max_length=MAX_NAME_LENGTH)]
    description: str = ""
    system: AnySystem
    extensions: tuple[str, ...] = ()
    start: Start = Field(default_factory=StartSpec)
    formation: Cone = Field(default_factory=Cone)
    mission: MissionSpec
    controller: AnyController = Field(default_factory=FormationSpec)
    autopilot: AutopilotSpec = Field(default_factory=AutopilotSpec)
    estimation: AnyEstimation = Field(default_factory=MotionCaptureSpec)
    cable_model: CableModel = "rigid_links"
    events: tuple[AnyEvent, ...] = ()
    imperfections: Imperfections = Field(default_factory=Imperfections)
    rig: RigSpec = Field(default_factory=RigSpec)
    wind: WindSpec = Field(default_factory=WindSpec)
    physics: PhysicsSpec = Field(default_factory=PhysicsSpec)
    limits: LimitsSpec = Field(default_factory=LimitsSpec)
    contingency: ContingencySpec | None = None
    recording: RecordingSpec = Field(default_factory=RecordingSpec)
    seed: Annotated[int, Field(ge=0, lt=2**64), Number] = 0


def load_scenario(path: Path, overrides: Sequence[str] = ()) -> Scenario:
    """Read a scenario file, write out its system, apply overrides, check everything.

    `overrides`: `key.path=value` each, `system=NAME` or `imperfections=FILE`; a key below a list
    holds for all its elements unless an index picks one (`system.cables.links=29`,
    `system.cables.0.links=5`).

    Raises:
        ConfigError: Anything wrong, in one line that names the file (the scenario's or the
            system's) or the override.
    """
    text = read_text(path)
    file = SourceFile((), str(path), text)
    data = parse_yaml(text, str(path))
    if not isinstance(data, Mapping):
        raise ConfigError(f"{path}: expected a mapping of Scenario, not {shown(repr(data))}")
    data = copy.deepcopy(dict(data))
    data.setdefault("name", path.stem)
    for key in ("start", "controller"):  # short for a mapping; an override may reach into it
        if isinstance(data.get(key), str):
            data[key] = {"kind": data[key]}
    # An override of the system itself comes first: others may reach into the new system.
    systems = [override for override in overrides if override.startswith("system=")]
    folder = path.parent
    for override in systems:
        data["system"], folder = _named_system(override), Path()
    files = [file]
    if isinstance(data.get("system"), str):
        try:
            system_file = system_path(data["system"], relative_to=folder)
        except ConfigError as error:
            origin = f"--set {shown(systems[-1])}" if systems else file.place(("system",))
            raise ConfigError(f"{origin}: {error}") from None
        text = read_text(system_file)
        data["system"] = parse_yaml(text, str(system_file))
        files.insert(0, SourceFile(("system",), str(system_file), text))
    if "system" in data:  # its absence is told with that of all other keys
        data["system"] = expand_system(data["system"], files[0], ("system",))
    _resolve_files(data, path.parent)
    faults = [override for override in overrides if _names_imperfections(override)]
    if faults:
        data["imperfections"] = parse_yaml(faults[-1].partition("=")[2], "--set imperfections")
    files[:0] = _read_imperfections(data, Path() if faults else path.parent, file, faults)
    changes = [Override.parse(o) for o in overrides if o not in (*systems, *faults)]
    for change in changes:
        change.apply(data)
    for extension in _texts(data.get("extensions")):
        load_file(extension)
    scenario = build(Scenario, data, str(path), sources=Sources(files, changes))
    return _with_formation(scenario, data.get("formation"))


def _with_formation(scenario: Scenario, given: Any) -> Scenario:
    """Complete the formation from the system; a result's scenario says it in full."""
    system = scenario.system.formation
    given = given if isinstance(given, Mapping) else {}
    whole = given.get("places_m") is not None or {f.name for f in fields(Cone)} <= set(given)
    if system is None or whole or scenario.mission.duration_s is not None:
        return scenario
    kept = {key: getattr(scenario.formation, key) for key in given}
    return replace(scenario, formation=fitting_formation(system, kept))


def _names_imperfections(override: str) -> bool:
    return override.startswith("imperfections=") and "{" not in override


def _read_imperfections(
    data: dict[str, Any], folder: Path, file: SourceFile, overrides: Sequence[str]
) -> list[SourceFile]:
    """Put the content of the file of imperfections, if one is named, in the place of its name."""
    name = data.get("imperfections")
    if not isinstance(name, str):
        return []
    place = folder / name
    if not os.path.isfile(place):
        key = ("imperfections",)
        origin = f"--set {shown(overrides[-1])}" if overrides else file.place(key)
        raise ConfigError(f"{origin}: imperfections file {shown(str(place), 200)}: no such file")
    text = read_text(place)
    data["imperfections"] = parse_yaml(text, str(place))
    return [SourceFile(("imperfections",), str(place), text)]


def _named_system(override: str) -> str:
    name = override.removeprefix("system=")
    if name.strip()[:1] in ("", "{", "["):
        raise ConfigError(f"--set {shown(override)}: must be a system's name or its file")
    return name


def _resolve_files(data: dict[str, Any], folder: Path) -> None:
    """Make the paths of files, which count from the scenario's folder, absolute."""
    if extensions := _texts(data.get("extensions")):
        data["extensions"] = [os.path.abspath(folder / name) for name in extensions]
    mission = data.get("mission")
    stages = mission.get("stages") if isinstance(mission, Mapping) else None
    for stage in stages if isinstance(stages, list) else ():
        if isinstance(stage, dict) and isinstance(stage.get("path"), str) and stage["path"]:
            stage["path"] = os.path.abspath(folder / stage["path"])
    resolve_files(data.get("rig"), folder)
    controller = data.get("controller")
    if not isinstance(controller, Mapping):
        return
    source = controller.get("source")
    if isinstance(source, str) and source.rpartition(":")[0].endswith(".py"):
        file, _, name = source.rpartition(":")
        data["controller"] = {**controller, "source": f"{os.path.abspath(folder / file)}:{name}"}


def _texts(value: Any) -> list[str]:
    """A list of names; of what is none, nothing: the validation says so."""
    names = value if isinstance(value, list) else []
    return names if all(isinstance(name, str) for name in names) else []


def scenario_path(name: str, shipped: Path) -> Path:
    """Find a scenario by shipped name or by file.

    Raises:
        ConfigError: Neither; names the near ones.
    """
    names = sorted(p.stem for p in shipped.glob("*.yaml"))
    if name in names:
        return shipped / f"{name}.yaml"
    path = Path(name)
    # os.path says no where Path would raise: names too long, folders that may not be read.
    if path.suffix in (".yaml", ".yml"):
        if not os.path.isfile(path):
            raise ConfigError(f"scenario file {shown(name, 200)}: no such file")
        return path
    if os.path.isfile(path / "scenario.yaml"):
        return path / "scenario.yaml"
    if name and os.path.isdir(path):
        raise ConfigError(f"{path}: not a result folder of musls, there is no scenario.yaml in it")
    raise ConfigError(f"unknown scenario '{shown(name)}': {near_names(name, names)}")
