"""A motor's test table, as its maker or a thrust stand writes it: `musls new drone --table`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from musls_bringup.new.rotors import MOST_THRUST_N, SPEEDS_RPM
from musls_description.config.errors import ConfigError
from musls_description.config.strict_yaml import shown
from musls_description.config.text_tables import TextRow, naming, read_lines, rows_of
from musls_description.numerics.arrays import Array
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.system.propulsion import Motor

GRAM_N = 1e-3 * STANDARD_GRAVITY_M_S2
KG_N = STANDARD_GRAVITY_M_S2
RPM = 2.0 * math.pi / 60.0
_QUANTITIES = {  # how makers head the columns of a test table, and the size of their units
    "thrust": (r"thrust|pull", {"g": GRAM_N, "gf": GRAM_N, "kg": KG_N, "kgf": KG_N, "n": 1.0}),
    "speed": (
        r"(?:motor )?(?:optical |electrical )?(?:rpm|speed|rotation)",
        {"rpm": RPM, "r/min": RPM, "1/min": RPM, "rad/s": 1.0},
    ),
    "torque": (r"torque", {"nm": 1.0, "ncm": 1e-2, "mnm": 1e-3}),
    "power": (r"(?:input |electrical )?(?:power|watts)", {"w": 1.0, "": 1.0}),
    "voltage": (r"voltage|volts", {"v": 1.0, "": 1.0}),
    "current": (r"current|amps", {"a": 1.0, "": 1.0}),
}

ALIKE = 10.0
"""Thrust over squared speed of two rows differs by less, from a third of the full speed on."""


class RotorTable:
    """Thrust and torque of a rotor, rows from little to full throttle.

    Attributes:
        thrust_n: Thrust of one rotor, (rows,), rising.
        speed_rad_s: Speed of the rotor, (rows,).
        torque_n_m: Torque of the rotor, (rows,); None where the table has none.
    """

    def __init__(self, thrust_n: Array, speed_rad_s: Array, torque_n_m: Array | None) -> None:
        self.thrust_n = thrust_n
        self.speed_rad_s = speed_rad_s
        self.torque_n_m = torque_n_m

    def at(self, thrust_n: float, quantity: Array) -> float:
        """A quantity of the table at a thrust."""
        return float(np.interp(thrust_n, self.thrust_n, quantity))


class MotorTable(RotorTable):
    """A motor's test table.

    Attributes:
        power_w: Electrical, (rows,); None where the table has neither that nor voltage and current.
    """

    def __init__(self, path: Path) -> None:
        """Read it; raises ConfigError where columns or units are missing."""
        with naming(path):
            head, *rows = list(rows_of(read_lines(path))) or [TextRow(1, [])]
            columns = _columns_of(head.cells)
            for quantity in ("thrust", "speed"):
                if quantity not in columns:
                    raise ConfigError(
                        f"no column of the {quantity} with its unit, such as Thrust (g) or RPM; "
                        f"columns: {', '.join(head.cells) or 'none'}"
                    )
            values = _values_of(rows, head.cells, columns)
            _question(values["thrust"], values["speed"])
        super().__init__(values["thrust"], values["speed"], values.get("torque"))
        self.power_w = values.get("power")
        if self.power_w is None and {"voltage", "current"} <= values.keys():
            self.power_w = values["voltage"] * values["current"]

    def motor(self, speed_constant_rpm_v: float) -> tuple[Motor, float]:
        """Motor whose power fits the table best, and by how much it misses, of the power.

        Fitted are resistance and idle current: power = speed K_t I + R I^2, I = torque / K_t + I_0.
        """
        if self.torque_n_m is None or self.power_w is None:
            raise ConfigError("--kv: the table needs columns of torque and of power")
        torque_n_m = self.torque_n_m
        power_w = self.power_w

        def missed(guess: Array) -> Array:
            motor = Motor(
                speed_constant_rpm_v=speed_constant_rpm_v,
                resistance_ohm=guess[0],
                idle_current_a=guess[1],
            )
            currents = [motor.current_a(torque) for torque in torque_n_m]
            volts = map(motor.voltage_v, self.speed_rad_s, currents)
            return np.array([v * i for v, i in zip(volts, currents, strict=True)]) / power_w - 1.0

        fit = least_squares(missed, [0.05, 0.5], bounds=(0.0, [10.0, 100.0]), x_scale=[0.05, 0.5])
        resistance, idle = (float(f"{value:.3g}") for value in fit.x)
        motor = Motor(
            speed_constant_rpm_v=speed_constant_rpm_v,
            resistance_ohm=resistance,
            idle_current_a=idle,
        )
        return motor, float(np.abs(missed(np.array([resistance, idle]))).max())


def _columns_of(names: Sequence[str]) -> dict[str, list[tuple[int, float]]]:
    """Places and sizes of the units of the columns of each quantity; the thrust first."""
    columns: dict[str, list[tuple[int, float]]] = {}
    for quantity, (words, units) in _QUANTITIES.items():
        for k, name in enumerate(names):
            head = re.match(rf"\s*({words})\b([^(\[]*)(?:[(\[]([^)\]]*)[)\]])?\s*$", name, re.I)
            if not head:
                continue
            unit = re.sub(r"[\s*.\u00b7]", "", (head[3] or "").lower())
            if not unit:  # Thrust kgf, or a column named RPM
                unit = (head[2].split() or [head[1].split()[-1] if head[1] else ""])[-1].lower()
                unit = unit if unit in units else ""
            if unit in units:
                columns.setdefault(quantity, []).append((k, units[unit]))
    return columns


def _values_of(
    rows: Sequence[TextRow], names: Sequence[str], columns: Mapping[str, list[tuple[int, float]]]
) -> dict[str, Array]:
    """Numbers of each quantity in SI units, from little to full thrust; rows at rest left out.

    Of two columns of one quantity the first counts that is not empty. A stand that is pushed the
    other way measures negative thrusts and torques.
    """
    values: dict[str, Array] = {}
    for quantity, places in columns.items():
        for k, size in places:
            numbers = size * np.array([_number_in(row, k, names[k]) for row in rows])
            if quantity in ("thrust", "torque") and numbers.sum() < 0.0:
                numbers = -numbers
            if quantity not in values or not values[quantity].any():
                values[quantity] = numbers
    turning = np.all([numbers > 0.0 for numbers in values.values()], axis=0)
    if turning.sum() < 2:
        raise ConfigError("fewer than two rows of numbers above 0")
    order = np.argsort(values["thrust"][turning], kind="stable")
    return {quantity: numbers[turning][order] for quantity, numbers in values.items()}


def _number_in(row: TextRow, k: int, name: str) -> float:
    text = row.cells[k] if k < len(row.cells) else ""
    try:
        number = float(text)
    except ValueError:
        what = f"{shown(text)} is no number" if text else "a number is missing"
        raise ConfigError(f"line {row.line}, {shown(name)}: {what}") from None
    if not math.isfinite(number):
        raise ConfigError(f"line {row.line}, {shown(name)}: {text}: must be a finite number")
    return number


def _question(thrust_n: Array, speed_rad_s: Array) -> None:
    """Refuse what no propeller does; separators of thousands and units are mistaken so."""
    full_rpm = float(speed_rad_s.max()) / RPM
    if not SPEEDS_RPM[0] <= full_rpm <= SPEEDS_RPM[1]:
        low, high = SPEEDS_RPM
        raise ConfigError(
            f"{full_rpm:.4g} rpm at full throttle: a propeller turns at {low:g} to {high:g} rpm"
        )
    if thrust_n[-1] > MOST_THRUST_N:
        raise ConfigError(f"a thrust of {thrust_n[-1]:.4g} N: at most {MOST_THRUST_N:g} N")
    fast = speed_rad_s > speed_rad_s.max() / 3.0
    constant = thrust_n[fast] / speed_rad_s[fast] ** 2
    odd = int(np.argmax(np.abs(np.log(constant / np.median(constant)))))
    if not 1.0 / ALIKE < constant[odd] / np.median(constant) < ALIKE:
        raise ConfigError(
            f"{thrust_n[fast][odd]:.4g} N at {speed_rad_s[fast][odd] / RPM:.4g} rpm: of a "
            "propeller the thrust goes with the squared speed; are these the numbers of one?"
        )
