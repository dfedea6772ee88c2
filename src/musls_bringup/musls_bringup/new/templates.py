"""Systems and airframes to start from, from a few sizes, for `musls new`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from musls_bringup.new.import_body import RigidBody
from musls_bringup.new.rotors import IDLE
from musls_description.config.errors import ConfigError
from musls_description.config.schema import build, to_data
from musls_description.numerics.arrays import Array, point_inertia
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.system.drone import (
    CANNOT_STEER,
    BoxShape,
    Drone,
    can_steer,
    inertia_of,
)
from musls_description.system.propulsion import Motor
from musls_description.system.rope_materials import Material
from musls_description.system.system_files import build_system

if TYPE_CHECKING:
    from musls_bringup.new.motor_table import RotorTable


FOLDER = Path(__file__).parents[1] / "templates"


def rendered(template: str, values: Mapping[str, Any]) -> str:
    """Text of a template of the folder `templates` with values in it."""
    from jinja2 import Environment, StrictUndefined

    source = (FOLDER / f"{template}.j2").read_text(encoding="utf-8")
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    return environment.from_string(source).render(values)


class LoadKind(str, Enum):
    """Loads that need no drawing."""

    box = "box"
    beam = "beam"
    plate = "plate"
    ring = "ring"
    L = "L"
    point = "point"


EDGES_M = {
    LoadKind.box: (0.4, 0.3, 0.12),
    LoadKind.beam: (2.0, 0.05, 0.05),
    LoadKind.plate: (0.6, 0.4, 0.02),
    LoadKind.ring: (1.0, 0.05, 0.05),
    LoadKind.L: (1.0, 0.05, 0.05),
    LoadKind.point: (0.1, 0.1, 0.1),
}
"""Length, width and height where they are not given. Of a ring the length is its diameter, of an L
that of each arm; the width is that of the ring and of the arms."""

INSET = 0.9
"""Share of the half size at which the outermost cables are attached."""

LOAD_SHARE = 0.2
"""Mass of the load over that of the drones, where it is not given."""


@dataclass(frozen=True)
class StartingLoad:
    """A load in words for its file.

    Attributes:
        body: Keys of the load but mass and attachments, as YAML.
        attachments_m: One per cable, from the centre of mass, (n, 3).
        what: Description in words.
    """

    body: Sequence[str]
    attachments_m: Array
    what: str


def starting_load(
    kind: LoadKind, edges_m: Sequence[float], mass_kg: float, count: int
) -> StartingLoad:
    """Load of a kind with attachments for a number of cables."""
    length, width, height = edges_m
    least = {LoadKind.L: 3, LoadKind.ring: 2}.get(kind, 1)
    if count < least:
        raise ConfigError(f"--drones = {count}: the {kind.value} needs {least} to hang level")
    top = height / 2.0
    if kind == LoadKind.point:
        return StartingLoad(
            [
                "point_mass: true     # all cables pull at its centre, it does not turn",
                f"collision: {{size_m: {_row(edges_m)}}}",
            ],
            np.zeros((count, 3)),
            "a point mass",
        )
    if kind == LoadKind.ring:
        radius = length / 2.0
        across = mass_kg * (radius**2 / 2.0 + height**2 / 12.0)
        inertia = np.diag([across, across, mass_kg * radius**2])
        body = [*_inertia(inertia), f"collision: {{size_m: {_row((length, length, height))}}}"]
        return StartingLoad(body, _around(radius, radius, top, count), f"a ring of {length:g} m")
    if kind == LoadKind.L:
        return _angle(length, width, height, mass_kg, count)
    body = [f"shape: {{kind: box, size_m: {_row(edges_m)}}}   # or cylinder, rod; or inertia_kg_m2"]
    what = f"a {kind.value} of {' x '.join(f'{edge:g}' for edge in edges_m)} m"
    if kind == LoadKind.beam or count == 2:
        row = INSET * length / 2.0 * (np.linspace(1.0, -1.0, count) if count > 1 else np.zeros(1))
        return StartingLoad(body, np.column_stack([row, 0.0 * row, 0.0 * row + top]), what)
    x, y = INSET * length / 2.0, INSET * width / 2.0
    if count == 4:  # the corners
        x, y = math.sqrt(2.0) * x, math.sqrt(2.0) * y
    return StartingLoad(body, _around(x, y, top, count), what)


def _around(x_m: float, y_m: float, z_m: float, count: int) -> Array:
    """Points on an ellipse, their middle above the origin, (count, 3)."""
    if count == 1:
        return np.array([[0.0, 0.0, z_m]])
    angle = 2.0 * np.pi * np.arange(count) / count + (np.pi / 4.0 if count == 4 else 0.0)
    return np.column_stack([x_m * np.cos(angle), y_m * np.sin(angle), z_m + 0.0 * angle])


def _angle(
    arm_m: float, width_m: float, height_m: float, mass_kg: float, count: int
) -> StartingLoad:
    """Two equal arms along x and y that meet in a corner."""
    inertia = np.zeros((3, 3))
    centre = np.array([arm_m / 4.0, arm_m / 4.0, 0.0])
    for size, middle in (
        ((arm_m, width_m, height_m), np.array([arm_m / 2.0, 0.0, 0.0])),
        ((width_m, arm_m, height_m), np.array([0.0, arm_m / 2.0, 0.0])),
    ):
        off = middle - centre
        inertia += inertia_of(BoxShape(size_m=size), mass_kg / 2.0)
        inertia += mass_kg / 2.0 * point_inertia(off)
    along = INSET * arm_m * np.linspace(-1.0, 1.0, count)
    points = np.column_stack([np.maximum(-along, 0.0), np.maximum(along, 0.0), 0.0 * along])
    box = _row((arm_m + width_m / 2.0, arm_m + width_m / 2.0, height_m))
    box_middle = _row((arm_m / 4.0 - width_m / 4.0, arm_m / 4.0 - width_m / 4.0, 0.0))
    body = [*_inertia(inertia), f"collision: {{size_m: {box}, center_m: {box_middle}}}"]
    top = np.array([0.0, 0.0, height_m / 2.0])
    return StartingLoad(body, points - centre + top, f"an L with arms of {arm_m:g} m")


def imported_load(body: RigidBody, names: Sequence[str], file: str) -> StartingLoad:
    """A load as its file has it, with cables at named places."""
    box = _row(body.box_m)
    middle = _row(body.box_middle_m)
    lines = [*_inertia(body.inertia_kg_m2), f"collision: {{size_m: {box}, center_m: {middle}}}"]
    return StartingLoad(lines, body.chosen(names), f"the body of {file}")


def _inertia(inertia: Array) -> list[str]:
    """The key, each entry to ten digits: a rod's moments differ by orders, a plate's add up."""
    moments = np.diag(inertia)
    entries = np.where(
        np.abs(inertia) > NO_PRODUCT * np.sqrt(np.outer(moments, moments)), inertia, 0
    )
    lines = ", ".join(f"[{', '.join(f'{entry + 0.0:.10g}' for entry in row)}]" for row in entries)
    return [f"inertia_kg_m2: [{lines}]   # about the centre of mass"]


NO_PRODUCT = 1e-9
"""Product of inertia over the root of its two moments, up to which it comes from rounding."""


def _row(values: Sequence[float] | Array) -> str:
    return rows(np.array([values]))[0]


def rows(values: Array) -> list[str]:
    """Rows of a matrix as YAML, to five digits of the largest number in it."""
    largest = np.abs(values).max()
    rounded_values = np.round(values, 4 - math.floor(math.log10(largest))) if largest else values
    return [f"[{', '.join(f'{number + 0.0:g}' for number in row)}]" for row in rounded_values]


# ---------- Cables

PULL_N = 6.0
ROPE_M = 0.003
"""Load and diameter of a usual rope."""

ROPE_MATERIAL: Material = "hmpe"

ROPE_LINKS = 10


@dataclass(frozen=True)
class Rope:
    """A cable that suits what it carries.

    Attributes:
        material: Rope material.
        diameter_m: Nominal diameter.
        links: Rigid links of it.
    """

    material: Material
    diameter_m: float
    links: int


def rope_for(pull_n: float) -> Rope:
    """A braid of HMPE for a pull: 3 mm for 6 N, the section as the root of the pull.

    What is handled at all is not as thin as it could be: it holds 1,800 times as much there.
    """
    diameter_m = ROPE_M * (max(pull_n, 1e-3) / PULL_N) ** 0.25
    return Rope(ROPE_MATERIAL, float(f"{diameter_m:.2g}"), ROPE_LINKS)


def cable_length_m(tip_radius_m: float) -> float:
    """Length of a cable that leaves room between rotors of a radius, as 2.5 m between x500s."""
    return float(f"{min(max(2.5 * tip_radius_m / X500_TIP_M, 0.5), 10.0):.2g}")


X500_TIP_M = 0.37

# ---------- Airframes


def airframe(name: str, beside: Path) -> Drone:
    """Airframe of a shipped part or of a file; a relative one is beside a system's file."""
    data = {
        "name": "one",
        "drones": {"from": name},
        "cables": {"from": "rope"},
        "load": {
            "mass_kg": 1.0,
            "point_mass": True,
            "cable_attachments_m": [[0.0, 0.0, 0.0]],
            "collision": {"size_m": [1.0, 1.0, 1.0]},
        },
    }
    drone = build_system(data, str(beside)).drones[0]
    if not can_steer(drone):
        raise ConfigError(f"{name}: {CANNOT_STEER}")
    return drone


LIFT = 1.2
"""Least thrust of an airframe over its weight."""


def imported_drone(body: RigidBody, hook: str, name: str, file: str) -> Drone:
    """A drone as its file has it, with its cable at a named place."""
    keys = {
        "mass_kg": body.mass_kg,
        "inertia_kg_m2": body.inertia_kg_m2,
        "cable_attachment_m": body.chosen([hook])[0],
        "collision": {"size_m": body.box_m, "center_m": body.box_middle_m},
        "model": name,
        "rotors": body.rotors,
    }
    drone = build(Drone, _rounded(keys), file)
    if not can_steer(drone):
        raise ConfigError(f"{file}: {CANNOT_STEER}")
    lift = drone.max_thrust_n / (drone.mass_kg * STANDARD_GRAVITY_M_S2)
    if lift < LIFT:
        raise ConfigError(
            f"{file}: its rotors give {lift:.2f} times its weight, at least {LIFT:g} are needed"
        )
    return drone


def _rounded(value: Any) -> Any:
    """Numbers to ten digits, nothing as 0, arrays as lists."""
    if isinstance(value, dict):
        return {key: _rounded(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_rounded(entry) for entry in value]
    if isinstance(value, str):
        return value
    return float(f"{value:.10g}") if abs(value) > 1e-12 else 0.0


SPREAD_M = 0.064
"""Torque over thrust of a propeller per diameter, C_P / (2 pi C_T) with C_P = 0.04, C_T = 0.1: a
rule of thumb for two blades at rest, to be replaced by a torque from the data sheet."""

ROTORS_ABOVE = 0.24
HOOK_BELOW = 0.2
"""Rotors above the centre of mass and the cable below it, over the height; 6 and 5 cm of 25 cm."""

X500_DRAG = 8.06428e-05
"""Rotor drag of PX4's x500 with propellers of 10 inch [N s^2 / (m rad)]. By the theory of blade
elements it is proportional to chord x radius^2, so to the diameter's third power if alike."""

INCH_M = 0.0254


@dataclass(frozen=True)
class Airframe:
    """Weighed and measured values of a multirotor, and a motor's data sheet.

    Attributes:
        mass_kg: Ready to fly, with battery, without load.
        rotors: 4, 6 or 8, evenly on a circle.
        wheelbase_m: Distance of opposite motors.
        height_m: Height of the plane of the rotors above the feet.
        propeller_in: Diameter in inches.
        thrust_n: Thrust of one rotor at full throttle, from the data sheet.
        speed_rpm: Rotor speed at full throttle.
        torque_n_m: Torque of one rotor at full throttle; None for a usual propeller's.
        hubs: Place and spin of each rotor, where PX4's parameters say them, instead of `rotors`
            and `wheelbase_m`.
        motor: Motor of each rotor, where it is known.
        cells: Cells of the battery in series, where they are known.
        source: Source of thrust and torque, in words.
    """

    mass_kg: float
    rotors: int
    wheelbase_m: float
    height_m: float
    propeller_in: float
    thrust_n: float
    speed_rpm: float
    torque_n_m: float | None = None
    hubs: Sequence[tuple[Array, str]] | None = None
    motor: Motor | None = None
    cells: int | None = None
    source: str = "the data sheet"

    def by(self, table: RotorTable) -> Airframe:
        """The airframe with rotors that hover and have full thrust as a table says."""
        count = len(self.hubs) if self.hubs else self.rotors
        each_n = self.mass_kg * STANDARD_GRAVITY_M_S2 / count
        full_n = float(table.thrust_n[-1])
        hover_rad_s = table.at(each_n, table.speed_rad_s)
        hover_n = table.at(each_n, table.thrust_n)
        torque = table.torque_n_m
        return replace(
            self,
            thrust_n=full_n,
            speed_rpm=60.0 / (2.0 * math.pi) * hover_rad_s * math.sqrt(full_n / hover_n),
            torque_n_m=None if torque is None else full_n * table.at(each_n, torque) / hover_n,
        )

    def _even_hubs(self) -> list[tuple[Array, str]]:
        if self.rotors not in ORDER:
            raise ConfigError(f"--rotors = {self.rotors}: 4, 6 or 8; for others edit the file")
        places = []
        step = 2.0 * math.pi / self.rotors
        for k, spin in ORDER[self.rotors]:
            angle = (k + 0.5) * step
            place = np.array([np.cos(angle), np.sin(angle), 0.0]) * self.wheelbase_m / 2.0
            places.append((place + [0.0, 0.0, ROTORS_ABOVE * self.height_m], spin))
        return places

    def as_text(self) -> dict[str, Any]:
        """Numbers for the template of an airframe."""
        hubs = self.hubs or self._even_hubs()
        rotors = len(hubs)
        place = np.array([place for place, _ in hubs])
        wheelbase_m = 2.0 * float(np.hypot(*place.T[:2]).max())
        weight_n = self.mass_kg * STANDARD_GRAVITY_M_S2
        lift_n = rotors * self.thrust_n
        if lift_n < LIFT * weight_n:
            raise ConfigError(
                f"--thrust = {self.thrust_n:g}: {rotors} rotors give {lift_n:.3g} N, the "
                f"drone weighs {weight_n:.3g} N: at least {LIFT:g} times as much is needed to fly"
            )
        diameter_m = self.propeller_in * INCH_M
        gaps_m = np.linalg.norm(place[:, None, :2] - place[None, :, :2], axis=2)
        apart_m = float(np.min(gaps_m, where=gaps_m > 1e-6, initial=np.inf))  # coaxial ones may be
        if diameter_m >= apart_m:
            raise ConfigError(
                f"--propeller = {self.propeller_in:g}: {diameter_m:.3f} m wide propellers touch, "
                f"neighbouring motors are {apart_m:.3f} m apart"
            )
        speed = self.speed_rpm * 2.0 * math.pi / 60.0
        ratio = self.torque_n_m / self.thrust_n if self.torque_n_m else SPREAD_M * diameter_m
        above_m = ROTORS_ABOVE * self.height_m
        return {
            "mass_kg": f"{self.mass_kg:g}",
            "body": _row([0.5 * wheelbase_m, 0.5 * wheelbase_m, 0.35 * self.height_m]),
            "feet": _row([0.7 * wheelbase_m, 0.7 * wheelbase_m, self.height_m]),
            "feet_middle": _row([0.0, 0.0, above_m - self.height_m / 2.0]),
            "hook": _row([0.0, 0.0, -HOOK_BELOW * self.height_m]),
            "drag": f"{X500_DRAG * (self.propeller_in / 10.0) ** 3:.4g}",
            "constant": f"{self.thrust_n / speed**2:.5g}",
            "ratio": f"{ratio:.4g}",
            "ratio_from": self.source if self.torque_n_m else "a usual propeller",
            "cells": self.cells or 4,
            "idle": f"{IDLE * speed:.1f}",
            "top": f"{speed:.1f}",
            "diameter_m": f"{diameter_m:.4g}",
            "thrust_n": f"{self.thrust_n:.4g}",
            "speed_rpm": f"{self.speed_rpm:.4g}",
            "motor": self.motor
            and {
                key: value
                for key, value in to_data(self.motor).items()
                if key in ("speed_constant_rpm_v", "resistance_ohm", "idle_current_a")
            },
            "hover": f"{weight_n / lift_n:.2f}",
            "places": [(_row(place), spin) for place, spin in hubs],
        }


ORDER = {
    4: ((3, "ccw"), (1, "ccw"), (0, "cw"), (2, "cw")),
    6: tuple((k, "cw" if k % 2 else "ccw") for k in range(6)),
    8: tuple((k, "cw" if k % 2 else "ccw") for k in range(8)),
}
"""Arms in the order of the motors, anti-clockwise from ahead, and how their rotors spin; of four in
the order of PX4's quadrotor x."""
