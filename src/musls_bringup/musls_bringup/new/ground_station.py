"""Missions of a ground station as way-points of the load: QGroundControl's plans, WPL files.

Formats: QGroundControl, "Plan File Format"; MAVLink, "File Formats" (Mission Plain-Text File
Format) and the commands of MAV_CMD.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from musls_description.config.errors import ConfigError
from musls_description.config.strict_yaml import shown

WAYPOINT = 16
LOITER_UNLIMITED = 17
LOITER_TURNS = 18
LOITER_TIME = 19
RETURN_TO_LAUNCH = 20
LAND = 21
TAKEOFF = 22
SPLINE_WAYPOINT = 82
CHANGE_SPEED = 178

_PLACES = (WAYPOINT, LOITER_UNLIMITED, LOITER_TURNS, LOITER_TIME, SPLINE_WAYPOINT, LAND)
_WITH_HOLD = (WAYPOINT, LOITER_TIME, SPLINE_WAYPOINT)

_OVER_SEA = (0, 5)
_OVER_HOME = (3, 6)
_OVER_GROUND = (10, 11)
"""Frames of MAVLink by what their heights are relative to."""

_RADIUS_M = 6_378_137.0
_FLATTENING = 1.0 / 298.257_223_563
"""Equator and flattening of WGS 84."""

LONGEST_WAY_M = 20_000.0
"""Farthest from home; beyond, one tangent plane is no map any more."""


@dataclass(frozen=True)
class Command:
    """A command of a mission.

    Attributes:
        number: Number in MAV_CMD.
        frame: Frame of its height.
        values: Parameters 1 to 7; NaN for what is not given. 5 to 7 are latitude and longitude
            [deg], and height [m].
    """

    number: int
    frame: int
    values: Sequence[float]


@dataclass(frozen=True)
class GroundMission:
    """Way-points of the load over home, which is the origin.

    Attributes:
        points: x, y, z [m, ENU], yaw [rad], time to stay [s].
        speed_m_s: Speed that the mission asks for; None if it says none.
        left_out: Items that a load on cables cannot do, or does by itself, in words.
    """

    points: Sequence[tuple[float, float, float, float, float]]
    speed_m_s: float | None
    left_out: Sequence[str] = field(default_factory=list)


def read_mission(path: Path) -> GroundMission:
    """Read a .plan file of QGroundControl or a text file that begins with "QGC WPL".

    Places are east and north of home on the tangent plane there, heights over home. Headings are
    clockwise from north, yaw counter-clockwise from east.

    Raises:
        ConfigError: It is no mission, or has no way-point over the ground.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "no text"
        raise ConfigError(f"{path} cannot be read: {why}") from None
    if text.lstrip().startswith("QGC WPL"):
        home, commands, speed_m_s = _wpl(text, path)
    else:
        home, commands, speed_m_s = _plan(text, path)
    return _mission(home, commands, speed_m_s, path)


def _mission(
    home: Sequence[float], commands: Sequence[Command], speed_m_s: float | None, path: Path
) -> GroundMission:
    points: list[tuple[float, float, float, float, float]] = []
    left_out: list[str] = []
    yaw_rad = 0.0
    height_m = math.nan
    for k, command in enumerate(commands, start=1):
        where = f"{path}: item {k}"
        hold_s, _, _, heading_deg, latitude, longitude, altitude_m = command.values
        if command.number in (*_PLACES, TAKEOFF) and math.isfinite(altitude_m):
            height_m = _height_m(command, altitude_m, home, where)
        if command.number == CHANGE_SPEED:
            speed_m_s = command.values[1] if command.values[1] > 0.0 else speed_m_s
        elif command.number == TAKEOFF:
            left_out.append(f"{k}: take-off, which every flight has")
        elif command.number in _PLACES or command.number == RETURN_TO_LAUNCH:
            if math.isfinite(heading_deg) and command.number != RETURN_TO_LAUNCH:
                yaw_rad = math.radians(90.0 - heading_deg)
            east_m, north_m = 0.0, 0.0
            if command.number != RETURN_TO_LAUNCH:
                east_m, north_m = _level_m(latitude, longitude, home, where)
            if command.number in (LAND, RETURN_TO_LAUNCH):
                left_out.append(f"{k}: landing, which every flight has, below its last point")
                height_m = points[-1][2] if points else height_m
            stays_s = hold_s if command.number in _WITH_HOLD and hold_s > 0.0 else 0.0
            if not height_m > 0.0:
                raise ConfigError(f"{where}: height {height_m:g} m over home, must be > 0")
            points.append((east_m, north_m, height_m, yaw_rad, stays_s))
        else:
            left_out.append(f"{k}: command {command.number}")
    if not points:
        raise ConfigError(f"{path}: no way-point in it")
    moves = [math.dist(one[:3], other[:3]) > 1e-6 for one, other in itertools.pairwise(points)]
    apart = [point for point, is_move in zip(points, [True, *moves], strict=True) if is_move]
    return GroundMission(apart, speed_m_s, left_out)


def _height_m(command: Command, altitude_m: float, home: Sequence[float], where: str) -> float:
    """Height over home; ground is flat here."""
    if command.frame in _OVER_SEA:
        return altitude_m - home[2]
    if command.frame in _OVER_HOME + _OVER_GROUND:
        return altitude_m
    raise ConfigError(f"{where}: frame {command.frame} is not of places on the earth")


def _level_m(
    latitude: float, longitude: float, home: Sequence[float], where: str
) -> tuple[float, float]:
    """East and north of home on the plane that touches WGS 84 there."""
    if not (abs(latitude) <= 90.0 and abs(longitude) <= 180.0):
        raise ConfigError(f"{where}: latitude {latitude:g}, longitude {longitude:g} is no place")
    squared = _FLATTENING * (2.0 - _FLATTENING)
    sine = math.sin(math.radians(home[0]))
    across_m = _RADIUS_M / math.sqrt(1.0 - squared * sine * sine)
    along_m = across_m * (1.0 - squared) / (1.0 - squared * sine * sine)
    north_m = along_m * math.radians(latitude - home[0])
    east_m = across_m * math.cos(math.radians(home[0])) * math.radians(longitude - home[1])
    if math.hypot(east_m, north_m) > LONGEST_WAY_M:
        away_km = math.hypot(east_m, north_m) / 1000.0
        raise ConfigError(
            f"{where}: {away_km:.0f} km from home, at most {LONGEST_WAY_M / 1000.0:g} km"
        )
    return east_m, north_m


# ---------- The two formats


def _plan(text: str, path: Path) -> tuple[list[float], list[Command], float | None]:
    """Home, commands and speed of a .plan file."""
    try:
        mission = json.loads(text)["mission"]
        home = [_number(value) for value in mission["plannedHomePosition"]]
        items = list(_simple(mission["items"]))
        commands = [
            Command(int(i["command"]), int(i.get("frame", 3)), [_number(v) for v in i["params"]])
            for i in items
        ]
        speed_m_s = _number(mission.get("hoverSpeed"))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path}: no plan of a ground station: {_reason(error)}") from None
    if len(home) != 3 or any(len(command.values) != 7 for command in commands):
        raise ConfigError(f"{path}: home has three numbers and each item has seven params")
    return home, commands, speed_m_s if speed_m_s > 0.0 else None


def _simple(items: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The simple items; those of a survey are written out in it."""
    for item in items:
        if item.get("type") == "ComplexItem":
            inner = item.get("TransectStyleComplexItem", {}).get("Items")
            if inner is None:
                kind = shown(str(item.get("complexItemType", "ComplexItem")))
                raise ValueError(f"a {kind} without the items that it is made of")
            yield from _simple(inner)
        else:
            yield item


def _wpl(text: str, path: Path) -> tuple[list[float], list[Command], float | None]:
    """Home (the first row), commands and speed of a text file: 12 columns a row."""
    rows = [line.split() for line in text.splitlines()[1:] if line.strip()]
    try:
        numbers = [[float(cell) for cell in row] for row in rows]
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None
    if not numbers or any(len(row) != 12 for row in numbers):
        raise ConfigError(f"{path}: a row of a WPL file has 12 columns")
    commands = [Command(int(row[3]), int(row[2]), row[4:11]) for row in numbers[1:]]
    return numbers[0][8:11], commands, None


def _number(value: Any) -> float:
    """A number of JSON, NaN for null."""
    return math.nan if value is None else float(value)


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return shown(str(error))
