"""Values over time by name: "load.z_m" of a recording.

Sweeps, papers, the pages and the charts name what they show by owner (a body, a cable, an anchor)
and quantity; what a quantity is stands here alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from musls_analysis.comparison.errors import error_track, setpoint_pose
from musls_analysis.recordings.recording import Recording
from musls_description.config.documented_keys import split_unit
from musls_description.config.errors import ConfigError, near_names
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import near, roll_pitch_yaw, rotate


class Values(NamedTuple):
    """A quantity over time.

    Attributes:
        time_s: Sample times (T,).
        values: Values in the unit of the quantity's name (T,); angles are unwrapped.
        setpoints: Set-points at these times (T,); NaN where there are none.
    """

    time_s: Array
    values: Array
    setpoints: Array


def _place(axis: int) -> Callable[[Recording, str], Values]:
    def values(recording: Recording, body: str) -> Values:
        track = recording.bodies[body]
        setpoint_m = np.full_like(track.position_enu_m, np.nan)
        if body in recording.setpoints:
            setpoint_m = setpoint_pose(recording, body).position_enu_m
        return Values(track.time_s, track.position_enu_m[:, axis], setpoint_m[:, axis])

    return values


def _angle(axis: int) -> Callable[[Recording, str], Values]:
    def values(recording: Recording, body: str) -> Values:
        track = recording.bodies[body]
        angle = np.unwrap(roll_pitch_yaw(track.orientation_wxyz)[:, axis])
        target_angle = np.full_like(angle, np.nan)
        if body in recording.setpoints:
            target = roll_pitch_yaw(setpoint_pose(recording, body).orientation_wxyz)[:, axis]
            target_angle = near(target, angle)
        return Values(track.time_s, np.degrees(angle), np.degrees(target_angle))

    return values


def _distance(recording: Recording, body: str) -> Values:
    error = error_track(recording, body)
    return Values(error.time_s, error.translational_error_m, np.zeros(len(error.time_s)))


def _geodesic(recording: Recording, body: str) -> Values:
    error = error_track(recording, body)
    return Values(error.time_s, np.degrees(error.geodesic_error_rad), np.zeros(len(error.time_s)))


def _largest_tension(recording: Recording, cable: str) -> Values:
    return _unasked(*recording.cables[cable].largest())


def _free_length(recording: Recording, cable: str) -> Values:
    track = recording.cables[cable]
    return _unasked(track.free_length_time_s, track.free_length_m)


def _turning(axis: int) -> Callable[[Recording, str], Values]:
    def values(recording: Recording, body: str) -> Values:
        track = recording.bodies[body]
        twist = recording.twists[body]
        omega = twist.at(track.time_s).omega_body_rad_s
        return _unasked(track.time_s, rotate(track.orientation_wxyz, omega)[:, axis])

    return values


def _rotors_rpm(recording: Recording, drone: str) -> Values:
    track = recording.rotors[drone]
    return _unasked(track.time_s, track.speed_rad_s.mean(axis=1) * 30.0 / np.pi)


def _column(tracks: str, column: str, index: int | None = None) -> Callable[..., Values]:
    def values(recording: Recording, owner: str) -> Values:
        track = getattr(recording, tracks)[owner]
        column_values = np.asarray(getattr(track, column), float)
        return _unasked(track.time_s, column_values if index is None else column_values[:, index])

    return values


def _unasked(time_s: Array, values: Array) -> Values:
    return Values(time_s, values, np.full(len(values), np.nan))


POSE = ("x_m", "y_m", "z_m", "roll_deg", "pitch_deg", "yaw_deg")
"""Quantities of a body's pose, world."""

ERRORS = ("translational_error_m", "geodesic_error_deg")
"""Distance and angle to the reference (eq. 12 and 13 of the seed paper)."""

TENSION = "tension_n"
"""Tension of a cable at the load."""

QUANTITIES: Mapping[str, Callable[[Recording, str], Values]] = {
    **{name: _place(k) for k, name in enumerate(POSE[:3])},
    **{name: _angle(k) for k, name in enumerate(POSE[3:])},
    "translational_error_m": _distance,
    "geodesic_error_deg": _geodesic,
    TENSION: _column("cables", "tension_n", 0),
    "largest_tension_n": _largest_tension,
    "free_length_m": _free_length,
    "speed_rpm": _rotors_rpm,
    "charge": _column("batteries", "charge"),
    "power_w": _column("batteries", "power_w"),
    "voltage_v": _column("batteries", "voltage_v"),
    **{f"v{axis}_m_s": _column("twists", "velocity_enu_m_s", k) for k, axis in enumerate("xyz")},
    **{f"omega_{axis}_rad_s": _turning(k) for k, axis in enumerate("xyz")},
    **{f"force_{axis}_n": _column("wrenches", "force_enu_n", k) for k, axis in enumerate("xyz")},
}
"""All quantities: values over time by recording and owner, a KeyError where it has none."""


def find_values(recording: Recording, name: str) -> Values | None:
    """A quantity by its name, such as "load.z_m"; None where the recording has it not."""
    owner, _, quantity = name.partition(".")
    try:
        return QUANTITIES[quantity](recording, owner)
    except KeyError:
        return None


def values_of(recording: Recording, name: str) -> Values:
    """Values of a quantity in a recording.

    Raises:
        ConfigError: The recording has it not.
    """
    values = find_values(recording, name)
    if values is None:
        near = near_names(name.partition(".")[2], QUANTITIES)
        raise ConfigError(f"no signal '{name}' in this flight: {near}")
    return values


def owners(recording: Recording, quantity: str) -> Iterable[tuple[str, Values]]:
    """All bodies, cables or drones that have a quantity, with its values."""
    for owner in dict.fromkeys([*recording.bodies, *recording.cables]):
        values = find_values(recording, f"{owner}.{quantity}")
        if values is not None and len(values.time_s):
            yield owner, values


def text_of(name: str) -> str:
    """Text of a quantity, "load vx [m/s]" for "load.vx_m_s"."""
    owner, _, quantity = name.partition(".")
    words, unit = split_unit(quantity)
    return f"{owner.replace('_', ' ')} {words}" + (f" [{unit}]" if unit else "")
