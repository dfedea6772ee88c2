"""Question of a designer: a load, the wind, a fleet, what is fixed, and what is required."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, Field

from musls_bringup.design import WORLDS
from musls_bringup.new.templates import EDGES_M, LoadKind, airframe, starting_load
from musls_control.brief.margins import GUST_DEVIATIONS
from musls_control.controllers import CONTROLLERS
from musls_description.config.errors import ConfigError, near_names
from musls_description.config.schema import NonNegative, Number, Positive, build, spec, to_data
from musls_description.config.strict_yaml import parse_yaml, read_yaml, shown
from musls_description.hanging.hang import MIN_THRUST_MARGIN
from musls_description.numerics.arrays import Array
from musls_description.system.drone import Drone, tip_radius_m
from musls_description.system.propulsion import STANDARD_DENSITY_KG_M3
from musls_description.system.rope_materials import Material
from musls_description.system.slung_system import Load, formation_of
from musls_description.system.system_files import SYSTEMS, load_system

MOST_DRONES = 12
"""Largest number of drones that is looked at."""

FACE_DRAG = 1.2
"""Drag coefficient of the faces of a load's box, that of a flat plate across the flow."""

STILL_M_S = 1.0
"""Speed at which the drag of a load is taken where there is less wind."""

UPRIGHT_GUSTS = 0.4
"""Deviation of upright gusts over that of level ones."""

# ---------- The load


@dataclass(frozen=True)
class Cargo:
    """A load without cables.

    Attributes:
        name: Short name.
        what: Description in words.
        mass_kg: Mass.
        keys: Keys of `system.load` as data, without mass, drag and attachments.
        kind: Kind of a load that was given by its sizes; None for one of a file.
        edges_m: Length, width and height of its box, (3,).
        hooks_m: Places of its hooks, (n, 3), load frame; None where they are proposed.
        drag_n_s_m: Air drag of the body along its axes, (3,).
        drag_assumed: Whether the drag was assumed, and not given.
    """

    name: str
    what: str
    mass_kg: float
    keys: Mapping[str, Any]
    kind: LoadKind | None
    edges_m: tuple[float, float, float]
    hooks_m: Sequence[tuple[float, float, float]] | None
    drag_n_s_m: tuple[float, float, float]
    drag_assumed: bool

    def hooks(self, number: int) -> Array | None:
        """Places of the hooks of so many cables, (number, 3); None where it has others."""
        if self.hooks_m is not None:
            return np.array(self.hooks_m) if len(self.hooks_m) == number else None
        assert self.kind is not None
        try:
            places = starting_load(self.kind, self.edges_m, self.mass_kg, number).attachments_m
        except ConfigError:
            return None
        return np.round(places, 4) + 0.0

    def load(self, hooks_m: Array) -> Load:
        """The load with cables at hooks, (n, 3)."""
        data = {
            **self.keys,
            "mass_kg": self.mass_kg,
            "drag_n_s_m": list(self.drag_n_s_m),
            "cable_attachments_m": hooks_m.tolist(),
        }
        return build(Load, data, self.name)


def cargo_of_kind(
    kind: str,
    size_m: Sequence[float],
    mass_kg: float | None,
    hooks_m: Sequence[Sequence[float]] | None = None,
    speed_m_s: float = 0.0,
) -> Cargo:
    """A load from its kind, some of its edges and its mass.

    `size_m`: length, width and height, or the first of them. `speed_m_s`: strongest wind.
    """
    if kind not in [entry.value for entry in LoadKind]:
        raise ConfigError(f"shape {shown(kind)}: {near_names(kind, [k.value for k in LoadKind])}")
    if mass_kg is None or not 1e-3 <= mass_kg <= 1e3:
        raise ConfigError(f"mass = {mass_kg} kg: must be given, from 0.001 to 1000")
    if len(size_m) > 3 or not all(1e-3 <= edge <= 100.0 for edge in size_m):
        raise ConfigError(
            f"size {', '.join(f'{edge:g}' for edge in size_m)}: length, width and height [m], or "
            "the first of them, each from 0.001 to 100"
        )
    named = LoadKind(kind)
    edges = (*size_m, *EDGES_M[named][len(size_m) :])
    length, width, height = (float(edge) for edge in edges)
    found = starting_load(named, (length, width, height), mass_kg, 3)
    keys = parse_yaml("\n".join(found.body), "load")
    drag = _drag((length, width, height), speed_m_s)
    given = None if hooks_m is None else _hooks(hooks_m)
    return Cargo(
        named.value,
        found.what,
        mass_kg,
        to_data(keys),
        named,
        (length, width, height),
        given,
        drag,
        drag_assumed=True,
    )


def cargo_of_file(
    source: str | Mapping[str, Any],
    mass_kg: float | None = None,
    hooks_m: Sequence[Sequence[float]] | None = None,
    speed_m_s: float = 0.0,
) -> Cargo:
    """A load from a shipped system, from a file of a system or of a load, or from its keys."""
    name: str = "load"
    data: Any = source
    if isinstance(source, str):
        name = Path(source).stem
        data = read_yaml(Path(source)) if source.endswith((".yaml", ".yml")) else None
    if data is None or (isinstance(data, Mapping) and {"system", "drones", "cables"} & set(data)):
        system = load_system(str(source) if isinstance(source, str) else dict(source))
        load = formation_of(system, f"a design for {name}").load
    else:
        load = build(Load, to_data(data), str(source) if isinstance(source, str) else "load")
    keys = to_data(load)
    keys.pop("mass_kg")
    hooks = keys.pop("cable_attachments_m", None) or None
    given = keys.pop("drag_n_s_m", None) or [0.0, 0.0, 0.0]
    x, y, z = load.collision.size_m
    if mass_kg is not None and "shape" not in keys and "inertia_kg_m2" in keys:
        keys["inertia_kg_m2"] = (
            np.array(keys["inertia_kg_m2"]) * mass_kg / load.mass_kg
        ).tolist()  # of the same body, heavier
    kind = None
    if hooks_m is not None:
        hooks = hooks_m
    if hooks is None:
        kind = LoadKind.point if load.point_mass else LoadKind.box
    drag = (float(given[0]), float(given[1]), float(given[2]))
    return Cargo(
        name,
        f"the load of {name}, {x:g} x {y:g} x {z:g} m",
        mass_kg or load.mass_kg,
        keys,
        kind,
        (x, y, z),
        None if hooks is None else _hooks(hooks),
        drag if any(drag) else _drag((x, y, z), speed_m_s),
        not any(drag),
    )


def _hooks(given: Sequence[Sequence[float]]) -> tuple[tuple[float, float, float], ...]:
    """Places of hooks, a missing height is 0."""
    found = []
    for place in given:
        if len(place) not in (2, 3) or not all(map(math.isfinite, place)):
            raise ConfigError(f"hooks: {list(place)}: must be x, y and z [m] from the centre")
        found.append((float(place[0]), float(place[1]), float([*place, 0.0][2])))
    if not 1 <= len(found) <= MOST_DRONES:
        raise ConfigError(f"hooks: {len(found)} of them, from 1 to {MOST_DRONES} are possible")
    return tuple(found)


def _drag(edges_m: tuple[float, float, float], speed_m_s: float) -> tuple[float, float, float]:
    """Linear drag of a box that pushes as its faces do at a speed, (3,) [N s/m].

    F = rho C A v^2 / 2 there; in less wind this is too much.
    """
    x, y, z = edges_m
    scale = 0.5 * STANDARD_DENSITY_KG_M3 * FACE_DRAG * max(speed_m_s, STILL_M_S)
    along = (scale * y * z, scale * x * z, scale * x * y)
    return (float(f"{along[0]:.3g}"), float(f"{along[1]:.3g}"), float(f"{along[2]:.3g}"))


# ---------- What is fixed, and what is required


@spec
class Fixed:
    """Parts of the answer that the user has chosen; what is left out is searched.

    Attributes:
        number: Number of drones.
        cone_deg: Angle of the outermost cable from the vertical.
        length_m: Length of the cables.
        material: Material of the cables.
        diameter_m: Nominal diameter of the cables.
        controller: Kind of controller.
    """

    number: Annotated[int, Field(ge=1, le=MOST_DRONES), Number] | None = None
    cone_deg: Annotated[float, Field(ge=0.0, le=57.0), Number] | None = None
    length_m: Annotated[float, Field(ge=0.1, le=100.0), Number] | None = None
    material: Material | None = None
    diameter_m: Annotated[float, Field(ge=1e-4, le=0.1), Number] | None = None
    controller: Annotated[str, AfterValidator(CONTROLLERS.known)] | None = None


@spec
class Requirements:
    """Requirements that each flight of an answer keeps.

    Attributes:
        margin: Full over needed thrust of the rotor that works hardest, on average over a second.
        factor: Breaking force of a cable over its largest tension.
        gap: Least distance of rotor tips in flight [m]; by default half the distance of a rotor
            tip from its drone's axis.
        survives_one: Whether the loss of any one drone must be survived: the load is carried on or
            set down, and nothing else falls.
        hover_min: Time of hover to the battery's reserve [min].
        room: Largest diameter of the place on the ground [m].
        error: Largest distance of the load from its place while it is to stay there [m].
    """

    margin: Annotated[float, Field(ge=MIN_THRUST_MARGIN, le=10.0), Number] = 1.15
    factor: Annotated[float, Field(ge=1.0, le=100.0), Number] = 5.0
    gap: NonNegative | None = None
    survives_one: bool = False
    hover_min: Positive | None = None
    room: Positive | None = None
    error: Positive | None = None

    def gap_m(self, drone: Drone) -> float:
        """Least distance of rotor tips between drones of an airframe."""
        return GAP_SHARE * tip_radius_m(drone) if self.gap is None else self.gap


GAP_SHARE = 0.5
"""Least distance of rotor tips over that of a tip from the axis, where none is required."""


def requirements_of(text: str) -> Requirements:
    """Requirements from a text: "survives_one, hover_min=8, gap 0.5"."""
    known = [field.name for field in fields(Requirements)]
    given: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, value = part.replace("=", " ").partition(" ")
        if name not in known:
            raise ConfigError(f"--require {shown(part)}: {near_names(name, known)}")
        if not value.strip() and name != "survives_one":
            raise ConfigError(f"--require {shown(part)}: needs a number, {name}=NUMBER")
        given[name] = parse_yaml(value.strip() or "true", f"--require {name}")
    return build(Requirements, given, "--require")


MODELS = ("elastic", "rigid_links", "massless")
"""Cable models in which the best few are flown."""

# ---------- The question


@dataclass(frozen=True)
class Question:
    """Everything that is asked.

    Attributes:
        cargo: The load.
        wind_m_s: Mean wind.
        gusts_m_s: Speed that gusts add to it: two standard deviations of the wind.
        fleet: Airframes that may fly, by name.
        fixed: Parts of the answer that are fixed.
        requirements: Requirements.
        cable_model: Model in which the best few are flown.
        worlds: Worlds of the Monte Carlo; 0 for none.
        seed: Seed of all noise.
        settings: Keys of the scenario that differ in all flights, "KEY=VALUE" each.
    """

    cargo: Cargo
    wind_m_s: float
    gusts_m_s: float
    fleet: Mapping[str, Drone]
    fixed: Fixed
    requirements: Requirements
    cable_model: str = "elastic"
    worlds: int = WORLDS
    seed: int = 0
    settings: Sequence[str] = ()

    @property
    def strongest_m_s(self) -> float:
        """Mean wind and gusts."""
        return self.wind_m_s + self.gusts_m_s

    def wind_keys(self, direction_deg: float) -> dict[str, Any]:
        """The wind as a scenario has it, blowing in a direction (0: along the load's x axis)."""
        angle = math.radians(direction_deg)
        gust = self.gusts_m_s / GUST_DEVIATIONS
        mean = [self.wind_m_s * math.cos(angle), self.wind_m_s * math.sin(angle), 0.0]
        deviation = [gust, gust, UPRIGHT_GUSTS * gust]
        return {
            "mean_enu_m_s": [round(part, 6) + 0.0 for part in mean],
            "gust_std_m_s": [round(part, 6) for part in deviation],
        }

    def assumptions(self) -> Iterator[tuple[str, str]]:
        """What is taken for granted, as pairs of a subject and a sentence."""
        cargo = self.cargo
        required = self.requirements
        if cargo.drag_assumed:
            yield (
                "drag of the load",
                f"that of its faces, C = {FACE_DRAG:g}, at {max(self.strongest_m_s, STILL_M_S):g} "
                f"m/s: {', '.join(f'{d:.3g}' for d in cargo.drag_n_s_m)} N s/m along x, y, z",
            )
        if cargo.hooks_m is None:
            yield "hooks", "proposed, spread evenly; strong enough, and in place to a centimetre"
        yield (
            "wind",
            f"{self.wind_m_s:g} m/s on average, gusts add {self.gusts_m_s:g} m/s at two standard "
            "deviations; the same everywhere, from each of the directions that were flown",
        )
        yield (
            "cables",
            f"sold diameters without knots; they break at {required.factor:g} times their largest "
            "tension in any flight, or more",
        )
        yield (
            "thrust",
            f"the rotor that works hardest could give {required.margin:g} times as much, on "
            "average over the worst second of a flight with all drones",
        )
        without = [name for name, drone in self.fleet.items() if battery_of(drone) is None]
        if without:
            yield (
                "energy",
                f"{', '.join(without)}: the airframe's file has no battery (`propulsion`), so that "
                "nothing is known of minutes",
            )


def battery_of(drone: Drone) -> Any:
    """Battery of a drone; None where its file has none."""
    return drone.propulsion.battery if drone.propulsion else None


def fleet_of(names: Sequence[str]) -> dict[str, Drone]:
    """Airframes by shipped name (or its begin), or by file."""
    parts = shipped_airframes()
    found: dict[str, Drone] = {}
    for name in names:
        text = name.strip()
        if text.endswith((".yaml", ".yml")):
            found[text] = airframe(os.path.abspath(text), Path())
            continue
        begins = [part for part in parts if part == text] or [
            part for part in parts if text and part.startswith(text)
        ]
        if len(begins) != 1:
            raise ConfigError(
                f"drones: no airframe {shown(text)}: {near_names(text, parts)}; or a file, "
                "NAME.yaml"
            )
        found[begins[0]] = airframe(begins[0], Path())
    if not found:
        raise ConfigError("drones: name at least one airframe, or a file (musls new drone)")
    return found


def shipped_airframes() -> list[str]:
    """Names of the shipped parts that are airframes."""
    parts = sorted((SYSTEMS / "parts").glob("*.yaml"))
    return [path.stem for path in parts if "rotors" in read_yaml(path)]


def ask(
    load: str | Mapping[str, Any],
    *,
    size_m: Sequence[float] = (),
    mass_kg: float | None = None,
    hooks_m: Sequence[Sequence[float]] | None = None,
    wind_m_s: float = 0.0,
    gusts_m_s: float = 0.0,
    drones: Sequence[str] | str = ("x500",),
    require: str | Mapping[str, Any] | Requirements = "",
    fixed: Mapping[str, Any] | Fixed | None = None,
    cable_model: str = "elastic",
    worlds: int = WORLDS,
    seed: int = 0,
    settings: Sequence[str] = (),
) -> Question:
    """Check everything that is asked, and put it together (raises ConfigError)."""
    for name, speed in (("wind", wind_m_s), ("gusts", gusts_m_s)):
        if not 0.0 <= speed <= 50.0:
            raise ConfigError(f"{name} = {speed:g} m/s: must be from 0 to 50")
    if cable_model not in MODELS:
        raise ConfigError(f"model {shown(cable_model)}: must be one of {', '.join(MODELS)}")
    if worlds < 0 or worlds == 1:
        raise ConfigError(f"worlds = {worlds}: must be 0 for none, or at least 2")
    speed_m_s = wind_m_s + gusts_m_s
    if isinstance(load, str) and load in [kind.value for kind in LoadKind]:
        cargo = cargo_of_kind(load, size_m, mass_kg, hooks_m, speed_m_s)
    else:
        if size_m:
            raise ConfigError("size: belongs to a shape, the file of a load has its own")
        cargo = cargo_of_file(load, mass_kg, hooks_m, speed_m_s)
    names = drones.split(",") if isinstance(drones, str) else drones
    kept = fixed if isinstance(fixed, Fixed) else build(Fixed, dict(fixed or {}), "fixed")
    if cargo.hooks_m is not None and kept.number not in (None, len(cargo.hooks_m)):
        raise ConfigError(
            f"number = {kept.number}: the load has {len(cargo.hooks_m)} hooks, one for each cable; "
            "name as many, or none"
        )
    wanted = require
    if isinstance(wanted, str):
        wanted = requirements_of(wanted)
    elif not isinstance(wanted, Requirements):
        wanted = build(Requirements, dict(wanted), "require")
    if wanted.survives_one and kept.controller not in (None, "formation"):
        raise ConfigError(
            f"controller = {kept.controller}: only formation answers the loss of a drone "
            "(survives_one)"
        )
    model = "massless" if cargo.keys.get("point_mass") else cable_model
    return Question(cargo, wind_m_s, gusts_m_s, fleet_of(names), kept, wanted, model, worlds, seed)
