"""Options for facts that a recording's file lacks: units, axes, names, origins and clocks.

What a command was told about a file is kept beside it in `NAME.recording.yaml`, so that the next
command need not be told again.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from musls_description.config.errors import ConfigError
from musls_description.config.schema import Vector3, build, spec, to_data, to_yaml
from musls_description.config.strict_yaml import parse_yaml, read_text, shown
from musls_description.hanging.cone import Cone

LARGEST_CLOCK_S = 1e11
"""Three thousand years; clocks of computers begin in 1970."""

LENGTHS_M = {"m": 1.0, "cm": 1e-2, "mm": 1e-3, "in": 0.0254, "ft": 0.3048}
ANGLES_RAD = {"rad": 1.0, "deg": 0.017453292519943295}
TIMES_S = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
FACTORS = {"length": LENGTHS_M, "angle": ANGLES_RAD, "time": TIMES_S}
"""SI value of each unit, by quantity."""

Unit = Literal["m", "cm", "mm", "in", "ft", "rad", "deg", "s", "ms", "us", "ns"]


_NAMES = {
    "meter": "m",
    "metre": "m",
    "centimeter": "cm",
    "centimetre": "cm",
    "millimeter": "mm",
    "millimetre": "mm",
    "inch": "in",
    "inches": "in",
    "foot": "ft",
    "feet": "ft",
    "radian": "rad",
    "degree": "deg",
    "second": "s",
}


def unit_named(text: str, quantity: str) -> str:
    """The unit that a file names, such as mm, Millimeters or inches.

    Raises:
        ConfigError: It is none of this quantity.
    """
    name = text.strip().lower()
    unit = _NAMES.get(name, _NAMES.get(name.removesuffix("s"), name))
    if unit not in FACTORS[quantity]:
        choices = ", ".join(FACTORS[quantity])
        raise ConfigError(f"unit {shown(text)} of {quantity}: must be one of {choices}")
    return unit


def _one_of_each(units: tuple[Unit, ...]) -> tuple[Unit, ...]:
    for quantity, factors in FACTORS.items():
        matches = [unit for unit in units if unit in factors]
        if len(matches) > 1:
            raise ValueError(f"two units of {quantity}: {' and '.join(matches)}")
    return units


@spec
class ReadOptions:
    """Options of a reader: what the file of a recording does not say.

    Attributes:
        format: Name of the reader ("vicon", "motive", ..., see `musls list readers`); None finds
            out.
        units: Units of the file's numbers, at most one each of length (m, cm, mm, in, ft), angle
            (rad, deg) and time (s, ms, us, ns); others as the file or its format says, else SI.
        columns: Names of a table's columns, for a table that has none or others: t (or sec and
            nanosec), body (whose name stands in the row), x, y, z, qw, qx, qy, qz, roll, pitch,
            yaw, r11 to r33, - for one that is left out; with units (t_ns) and bodies (load_x).
            Columns behind these are left out.
        axes: "z-up", "y-up" (then ENU is x, -z, y) or "ned" (bodies FRD); None as its format has
            it, else z-up.
        angles: Convention of three angles, where a format has several: "roll-pitch-yaw"
            (about the fixed axes x, y, z), "helical" (axis times angle) or "euler-xyz" (about the
            turned axes x, y, z); None finds out.
        bodies: Name in the file of a body: of a rigid body, a TF frame or a topic of poses, e.g.
            {"load": "box"} or {"load": "/vrpn/box/pose"}; others are recognised by their names.
        origins_m: Origin of a body's poses in the world, ENU [m], for instance of a PX4 whose
            local frame begins where it was started.
        clocks_s: Offset added to the stamps of a body's measured poses [s].
        formation: Places of the drones' set-points if only the load's were recorded; the default
            is the virtual cone of the paper's flights (radius 1.0 m, height 2.2962 m).
        drop_stale: Leave out samples that repeat the one before: the logger wrote an old value
            again, so its time is wrong. Applies to measurements, never to set-points.
    """

    format: str | None = None
    units: Annotated[tuple[Unit, ...], AfterValidator(_one_of_each)] = ()
    columns: tuple[str, ...] = ()
    axes: Literal["z-up", "y-up", "ned"] | None = None
    angles: Literal["roll-pitch-yaw", "helical", "euler-xyz"] | None = None
    bodies: Mapping[str, str] = Field(default_factory=dict)
    origins_m: Mapping[str, Vector3] = Field(default_factory=dict)
    clocks_s: Mapping[str, Annotated[float, Field(ge=-LARGEST_CLOCK_S, le=LARGEST_CLOCK_S)]] = (
        Field(default_factory=dict)
    )
    formation: Cone = Field(default_factory=Cone)
    drop_stale: bool = True

    def unit(self, quantity: str) -> str | None:
        """The unit that was given of "length", "angle" or "time"."""
        return next((unit for unit in self.units if unit in FACTORS[quantity]), None)


def file_of_options(recording: Path) -> Path:
    """Path of the file that keeps a recording's options."""
    whole = Path(os.path.abspath(recording))  # "" and "." have no name, "/" never has one
    return whole.parent / f"{whole.name}.recording.yaml"


def kept_options(recording: Path) -> dict[str, Any]:
    """Options that an earlier command kept, as plain data; empty without any."""
    file = file_of_options(recording)
    if not file.is_file():
        return {}
    data = parse_yaml(read_text(file), str(file))
    build(ReadOptions, data, str(file))
    return dict(data)


def with_kept(recording: Path, options: ReadOptions | None) -> ReadOptions:
    """Options in which defaults are replaced by those kept beside the file."""
    file_options = kept_options(recording)
    if not file_options:
        return options or ReadOptions()
    return build(
        ReadOptions, {**file_options, **_changed(options or ReadOptions())}, str(recording)
    )


def keep_options(recording: Path, options: ReadOptions) -> Path | None:
    """Keep options beside the recording; returns the file, or None if it had them.

    Raises:
        OSError: The folder cannot be written.
    """
    data = {**kept_options(recording), **_changed(options)}
    if data == kept_options(recording):
        return None
    file = file_of_options(recording)
    file.write_text(
        f"# How musls reads {recording.name}; written by a command that was told so.\n"
        + to_yaml(data),
        encoding="utf-8",
    )
    return file


def _changed(options: ReadOptions) -> dict[str, Any]:
    """Fields that are not their defaults, as plain data."""
    usual = ReadOptions()
    return {
        field.name: to_data(value)
        for field in dataclasses.fields(options)
        if (value := getattr(options, field.name)) != getattr(usual, field.name)
    }
