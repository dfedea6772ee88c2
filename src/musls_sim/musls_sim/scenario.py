"""A scenario: one YAML file that says everything about a run.

System, start, formation, mission, autopilot, estimation, wind, physics, recording and seed. The
resolved scenario, system written out, is saved beside every result and can be flown again.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from musls_control.formation import Cone
from musls_control.mission import MissionSpec
from musls_description.errors import ConfigError
from musls_description.library import expand_system, system_path
from musls_description.names import near_names
from musls_description.schema import (
    Finite,
    Positive,
    build,
    parse_yaml,
    read_text,
    read_yaml,
    spec,
)
from musls_description.system import SlungLoadSystem
from musls_sim.plants.rigid_links.stability import CONTROL_PERIOD_S
from musls_sim.px4.sensors import Px4SensorSpec
from musls_sim.sensors.estimation import AnyEstimation, MotionCaptureSpec
from musls_sim.wind import WindSpec

MIN_STEP_S = 1e-6
"""Smallest physics step that may be asked for; smaller ones would never end."""


def _divides_period(step_s: float | str) -> float | str:
    if step_s == "auto":
        return step_s
    allowed = MIN_STEP_S <= step_s <= CONTROL_PERIOD_S
    ratio = CONTROL_PERIOD_S / step_s if allowed else 0.0
    if not allowed or abs(ratio - round(ratio)) > 1e-6:
        raise ValueError(
            f"the step must divide the control period {CONTROL_PERIOD_S:g} s: "
            f"0.004, 0.002, 0.001, 0.0005, ... down to {MIN_STEP_S:g}, or auto"
        )
    return step_s


Step = Annotated[float | Literal["auto"], AfterValidator(_divides_period)]


@spec
class AutopilotSpec:
    """Flight stack of the drones.

    Attributes:
        kind: "builtin" is the PX4-equivalent cascade, "px4" a real PX4 SITL per drone.
        parameters: PX4 parameters by their PX4 names that differ from PX4's x500 defaults.
            MPC_THR_HOVER defaults to the throttle that carries the drone alone, as a pilot sets it.
        sensors: What a real PX4 measures; the built-in autopilot goes by `estimation` instead.
    """

    kind: Literal["builtin", "px4"] = "builtin"
    parameters: dict[str, Finite] = Field(default_factory=dict)
    sensors: Px4SensorSpec = Field(default_factory=Px4SensorSpec)


@spec
class PhysicsSpec:
    """How the plant is stepped.

    Attributes:
        step_size_s: Time step that divides 4 ms, or "auto" for the largest stable one.
        gravity_m_s2: Gravity.
        exact_friction: Joint friction as exact constraints (slow) instead of regularised.
        refine: Halve the step for the moments in which a jerk asks for it.
    """

    step_size_s: Step = "auto"
    gravity_m_s2: Positive = 9.80665
    exact_friction: bool = False
    refine: bool = True


@spec
class RecordingSpec:
    """What is written to the bag.

    Attributes:
        rate_hz: Rate of poses, twists, tensions and rotor speeds; must divide 250 Hz.
        shape_rate_hz: Rate of the cable shapes; must divide `rate_hz`.
    """

    rate_hz: Annotated[float, Field(gt=0.0, le=250.0)] = 50.0
    shape_rate_hz: Annotated[float, Field(gt=0.0, le=250.0)] = 10.0

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        for over, under, name in (
            (1.0 / CONTROL_PERIOD_S, self.rate_hz, "rate_hz must divide 250 Hz"),
            (self.rate_hz, self.shape_rate_hz, "shape_rate_hz must divide rate_hz"),
        ):
            if abs(over / under - round(over / under)) > 1e-9:
                raise ValueError(f"{name} (250, 125, 50, 25, 10, 5, ...), not {under:g}")


@spec
class Scenario:
    """Everything about one run.

    Attributes:
        name: Short name, also of the output folder.
        description: One line for people.
        system: Load, drones, cables.
        start: "ground": all standing, cables slack; "air": hanging in equilibrium at the first
            stage's first set-point.
        formation: Places of the drones around the load.
        mission: What is flown.
        autopilot: Who flies.
        estimation: What the drones know of their state; a real PX4 estimates it by itself.
        cable_model: How the cables are modelled; "rigid_links" is the seed paper's.
        wind: Moving air.
        physics: How it is stepped.
        recording: What is recorded.
        seed: Seed of all noise; the same seed gives the same run bit for bit.
    """

    name: Annotated[str, Field(pattern=r"^[\w.+-]+$")]
    description: str = ""
    system: SlungLoadSystem
    start: Literal["ground", "air"] = "ground"
    formation: Cone = Field(default_factory=Cone)
    mission: MissionSpec
    autopilot: AutopilotSpec = Field(default_factory=AutopilotSpec)
    estimation: AnyEstimation = Field(default_factory=MotionCaptureSpec)
    cable_model: Literal["rigid_links"] = "rigid_links"
    wind: WindSpec = Field(default_factory=WindSpec)
    physics: PhysicsSpec = Field(default_factory=PhysicsSpec)
    recording: RecordingSpec = Field(default_factory=RecordingSpec)
    seed: Annotated[int, Field(ge=0)] = 0


def load_scenario(path: Path, overrides: Sequence[str] = ()) -> Scenario:
    """Read a scenario file, write out its system, apply overrides, check everything.

    Args:
        path: YAML file.
        overrides: `key.path=value` each; a key below a list holds for all its elements unless an
            index picks one (`system.cables.links=29`, `system.cables.0.links=5`).

    Raises:
        ConfigError: Anything wrong, in one line.
    """
    text = read_text(path)
    data = parse_yaml(text, str(path))
    if not isinstance(data, Mapping):
        raise ConfigError(f"{path}: expected a mapping of Scenario, not {data!r}")
    data = copy.deepcopy(dict(data))
    data.setdefault("name", path.stem)
    # An override of the system itself comes first: others may reach into the new system.
    overrides = sorted(overrides, key=lambda o: not o.startswith("system="))
    folder = path.parent
    for override in overrides:
        if override.startswith("system="):
            data["system"], folder = override.removeprefix("system="), Path()
    data["system"] = _system_data(data.get("system"), path, folder)
    for override in overrides:
        if not override.startswith("system="):
            _apply(data, override)
    where = " --set ".join([str(path), *overrides])
    return build(Scenario, data, where, text)


def _system_data(system: Any, scenario: Path, folder: Path) -> Any:
    """Data of a scenario's system: a shipped name, a file in a folder, or written out."""
    if isinstance(system, str):
        path = system_path(system, relative_to=folder)
        return expand_system(read_yaml(path), str(path))
    return expand_system(system, str(scenario))


def _apply(data: dict, override: str) -> None:
    """Set one `key.path=value` in plain data."""
    key, equals, value = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {override}: expected key.path=value")
    _set(data, key.strip().split("."), parse_yaml(value, f"--set {key}"), override)


def _set(data: Any, path: list[str], value: Any, override: str) -> None:
    if isinstance(data, list):
        if path[0].isdigit():
            if int(path[0]) >= len(data):
                raise ConfigError(f"--set {override}: index {path[0]} of {len(data)} elements")
            if len(path) == 1:
                data[int(path[0])] = value
            else:
                _set(data[int(path[0])], path[1:], value, override)
            return
        for item in data:
            _set(item, path, value, override)
        return
    if not isinstance(data, dict):
        raise ConfigError(f"--set {override}: there is nothing below a plain value")
    if len(path) == 1:
        data[path[0]] = value
    else:
        if data.get(path[0]) is None:
            data[path[0]] = {}
        _set(data[path[0]], path[1:], value, override)


def scenario_path(name: str, shipped: Path) -> Path:
    """Find a scenario by shipped name or by file.

    Args:
        name: A shipped name, a path that ends in .yaml, or a result folder with a scenario.yaml.
        shipped: Folder of the shipped scenarios.

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
            raise ConfigError(f"scenario file {path}: no such file")
        return path
    if os.path.isfile(path / "scenario.yaml"):
        return path / "scenario.yaml"
    if name and os.path.isdir(path):
        raise ConfigError(f"{path}: a folder without scenario.yaml is no result of musls")
    raise ConfigError(f"unknown scenario '{name}': {near_names(name, names)}")
