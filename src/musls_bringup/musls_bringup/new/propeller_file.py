"""A propeller's file, as UIUC or APC publish it: `musls new drone --propeller FILE`.

Both give thrust and power at rest by dimensionless numbers, C_T = T / (rho n^2 D^4) and
C_P = P / (rho n^3 D^5) with n in turns per second, at several speeds.

- UIUC (m-selig.ae.illinois.edu/props): columns RPM, CT, CP; the name of the file tells the
  diameter (`apcsf_10x4.7_static_kt0835.txt`). Its other files, columns J, CT, CP, eta, are of
  flight.
- APC (PER3_10x47SF.dat): blocks `PROP RPM = 1000` with columns V, J, Pe, Ct, Cp, ...; the first
  line tells the diameter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from musls_bringup.new.motor_table import RPM, RotorTable
from musls_bringup.new.templates import INCH_M
from musls_description.config.errors import ConfigError
from musls_description.config.strict_yaml import shown
from musls_description.config.text_tables import naming, read_lines
from musls_description.numerics.arrays import Array
from musls_description.system.propulsion import STANDARD_DENSITY_KG_M3, Motor

SMALLEST_MM = 40.0
"""Sizes in a file's name from here on are millimetres (`ef_130x70`)."""

POINTS = 400
"""Speeds at which the table of a propeller is taken, from rest to full throttle."""

LOADED = 0.8
"""Speed of a usual motor at full throttle over that without load, where no resistance is said."""

FURTHER = 1.1
"""Speed over the fastest measured one up to which nothing is said."""

_SIZE = re.compile(r"(?<![0-9.])([0-9]{1,3}(?:\.[0-9]+)?)\s*x\s*[0-9]")


class PropellerFile:
    """Numbers of a propeller at rest, rows from slow to fast.

    Attributes:
        diameter_m: D.
        speed_rad_s: (rows,).
        thrust_number: C_T, (rows,).
        power_number: C_P, (rows,).
    """

    def __init__(self, path: Path, diameter_in: float | None = None) -> None:
        """Read it; a diameter that is given goes before the file's."""
        with naming(path):
            lines = [line.strip() for line in read_lines(path)]
            of_apc = any(line.upper().startswith("PROP RPM") for line in lines)
            rows = sorted(set(_rows_of_apc(lines) if of_apc else _rows_of_uiuc(lines)))
            if len({rpm for rpm, _, _ in rows}) < len(rows):
                raise ConfigError("two rows of one speed")
            if not rows:
                raise ConfigError("no rows of RPM, CT and CP at rest with numbers above 0")
            title = next((line for line in lines if line), "") if of_apc else path.name
            size_in = _diameter_in(title) if diameter_in is None else diameter_in
            if size_in is None:
                raise ConfigError("its diameter is not in its name: say --diameter [inch]")
        self.diameter_m = INCH_M * size_in
        rpm, self.thrust_number, self.power_number = np.array(rows).T
        self.speed_rad_s = RPM * rpm

    def thrust_n(self, speed_rad_s: Array) -> Array:
        """Thrust at speeds, in standard air."""
        turns_s = speed_rad_s / (2.0 * math.pi)
        number = np.interp(speed_rad_s, self.speed_rad_s, self.thrust_number)
        return np.asarray(STANDARD_DENSITY_KG_M3 * number * turns_s**2 * self.diameter_m**4)

    def torque_n_m(self, speed_rad_s: Array) -> Array:
        """Torque at speeds, in standard air: power over speed."""
        turns_s = speed_rad_s / (2.0 * math.pi)
        number = np.interp(speed_rad_s, self.speed_rad_s, self.power_number)
        power = STANDARD_DENSITY_KG_M3 * number * turns_s**3 * self.diameter_m**5
        return np.asarray(power / speed_rad_s)

    def table(self, top_rad_s: float) -> RotorTable:
        """Thrust and torque from little to full throttle."""
        speed_rad_s = np.linspace(0.0, top_rad_s, POINTS + 1)[1:]
        return RotorTable(self.thrust_n(speed_rad_s), speed_rad_s, self.torque_n_m(speed_rad_s))

    def motor(
        self, speed_constant_rpm_v: float, voltage_v: float, resistance_ohm: float | None
    ) -> tuple[Motor, float]:
        """Motor that turns it at a voltage, and its speed [rad/s].

        Without a resistance it has that by which it turns at `LOADED` of its speed without load.
        """
        free_rad_s = RPM * speed_constant_rpm_v * voltage_v
        if resistance_ohm is None:
            top_rad_s = LOADED * free_rad_s
            torque_n_m = float(self.torque_n_m(np.array(top_rad_s)))
            ideal = Motor(speed_constant_rpm_v=speed_constant_rpm_v, resistance_ohm=0.0)
            lost_v = (1.0 - LOADED) * voltage_v
            resistance_ohm = float(f"{lost_v / ideal.current_a(torque_n_m):.3g}")
        motor = Motor(speed_constant_rpm_v=speed_constant_rpm_v, resistance_ohm=resistance_ohm)
        top_rad_s = free_rad_s
        for _ in range(30):  # the moment over squared speed changes little with the speed
            moment_n_m_s2 = float(self.torque_n_m(np.array(top_rad_s))) / top_rad_s**2
            top_rad_s = motor.top_speed_rad_s(moment_n_m_s2, voltage_v)
        return motor, top_rad_s

    def beyond(self, top_rad_s: float) -> str:
        """Note on a full throttle that was not measured; empty if it was."""
        last_rad_s = float(self.speed_rad_s[-1])
        if top_rad_s <= FURTHER * last_rad_s:
            return ""
        return (
            f"full throttle is {top_rad_s / RPM:.0f} rpm, measured is up to "
            f"{last_rad_s / RPM:.0f} rpm: its last CT and CP are taken beyond"
        )


def _diameter_in(name: str) -> float | None:
    """Diameter [inch] that a name tells, such as 10x4.7 or 130x70 (millimetres)."""
    match = _SIZE.search(name)
    if match is None:
        return None
    size = float(match[1])
    return size if size < SMALLEST_MM else 1e-3 * size / INCH_M


_Row = tuple[float, float, float]
"""Speed [rpm], C_T, C_P."""


def _rows_of_uiuc(lines: Sequence[str]) -> Iterator[_Row]:
    places: dict[str, int] = {}
    for line in lines:
        cells = re.split(r"[\s,;]+", line)
        heads = [cell.upper() for cell in cells]
        if {"CT", "CP"} <= set(heads):
            if "RPM" not in heads:
                raise ConfigError(
                    "columns J, CT, CP are of a propeller in flight: take its static file "
                    "(RPM, CT, CP)"
                )
            places = {name: heads.index(name) for name in ("RPM", "CT", "CP")}
        elif places and line:
            yield from _positive([cells[k] if k < len(cells) else "" for k in places.values()])
    if not places:
        raise ConfigError("neither columns RPM, CT, CP (UIUC) nor lines PROP RPM = ... (APC)")


def _rows_of_apc(lines: Sequence[str]) -> Iterator[_Row]:
    """The row at rest, V = 0, of each speed."""
    rpm = ""
    places = dict[str, int]()
    for line in lines:
        if match := re.fullmatch(r"PROP RPM\s*=\s*([0-9.]+)", line, re.IGNORECASE):
            rpm = match[1]
            continue
        cells = line.split()
        heads = [cell.upper() for cell in cells]
        if {"V", "CT", "CP"} <= set(heads):
            places = {name: heads.index(name) for name in ("V", "CT", "CP")}
        elif rpm and places and cells and len(cells) > max(places.values()):
            speed, *numbers = (cells[k] for k in places.values())
            if _number(speed) == 0.0:
                yield from _positive([rpm, *numbers])


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _positive(texts: Sequence[str]) -> Iterator[_Row]:
    """A row whose numbers are above 0; text where a number belongs is refused."""
    rpm, thrust, power = (_number(text) for text in texts)
    bad_texts = [text for text in texts if math.isnan(_number(text)) and "nan" not in text.lower()]
    if bad_texts:
        raise ConfigError(f"{shown(bad_texts[0])} is no number")
    if all(0.0 < number < math.inf for number in (rpm, thrust, power)):
        yield rpm, thrust, power
