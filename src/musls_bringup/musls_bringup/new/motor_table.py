"""A motor's test table, as its maker or a thrust stand writes it: `musls new drone --table`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.optimize import least_squares

from musls_description.config.errors import ConfigError
from musls_description.config.text_tables import TextRow, naming, read_lines, rows_of
from musls_description.numerics.arrays import Array
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.system.propulsion import Motor

GRAM_N, KG_N, RPM = 1e-3 * STANDARD_GRAVITY_M_S2, STANDARD_GRAVITY_M_S2, 2.0 * math.pi / 60.0
_QUANTITIES = {  # how makers head the columns of a test table, and the size of their units
    "thrust": (r"thrust|pull", {"g": GRAM_N, "gf": GRAM_N, "kg": KG_N, "kgf": KG_N, "n": 1.0}),
    "speed": (r"rpm|speed|rotation", {"rpm": RPM, "r/min": RPM}),
    "torque": (r"torque", {"nm": 1.0, "mnm": 1e-3}),
    "power": (r"(?:input |electrical )?(?:power|watts)", {"w": 1.0, "": 1.0}),
    "voltage": (r"voltage|volts", {"v": 1.0, "": 1.0}),
    "current": (r"current|amps", {"a": 1.0, "": 1.0}),
}  # fmt: skip


class MotorTable:
    """A motor's test table, rows from little to full throttle.

    Attributes:
        thrust_n: Of one rotor, (rows,), rising.
        speed_rad_s: Of the rotor, (rows,).
        torque_n_m: Of the rotor, (rows,); None where the table has none.
        power_w: Electrical, (rows,); None where the table has neither that nor voltage and current.
    """

    def __init__(self, path: Path) -> None:
        """Read it; raises ConfigError where columns or units are missing."""
        with naming(path):
            head, *rows = list(rows_of(read_lines(path))) or [TextRow(1, [])]
            columns = _columns_of(head.cells)
            for needed in ("thrust", "speed"):
                if needed not in columns:
                    raise ConfigError(
                        f"no column of the {needed} with its unit, such as Thrust (g) or RPM; "
                        f"columns: {', '.join(head.cells) or 'none'}"
                    )
            table = np.array([_numbers_in(row, columns) for row in rows]).reshape(-1, len(columns))
            table = table[(table > 0.0).all(axis=1)]  # a table may begin with the rotor at rest
            if len(table) < 2:
                raise ConfigError("fewer than two rows of numbers above 0")
        values = dict(zip(columns, table[np.argsort(table[:, 0])].T, strict=True))
        self.thrust_n, self.speed_rad_s = values["thrust"], values["speed"]
        self.torque_n_m = values.get("torque")
        self.power_w = values.get("power")
        if self.power_w is None and {"voltage", "current"} <= values.keys():
            self.power_w = values["voltage"] * values["current"]

    def at(self, thrust_n: float, quantity: Array) -> float:
        """A quantity of the table at a thrust."""
        return float(np.interp(thrust_n, self.thrust_n, quantity))

    def motor(self, speed_constant_rpm_v: float) -> tuple[Motor, float]:
        """Motor whose power fits the table best, and by how much it misses, of the power.

        Fitted are resistance and idle current: power = speed K_t I + R I^2, I = torque / K_t + I_0.
        """
        if self.torque_n_m is None or self.power_w is None:
            raise ConfigError("--kv: the table needs columns of torque and of power")
        torque_n_m, power_w = self.torque_n_m, self.power_w

        def missed(found: Array) -> Array:
            motor = Motor(
                speed_constant_rpm_v=speed_constant_rpm_v,
                resistance_ohm=found[0],
                idle_current_a=found[1],
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


def _columns_of(names: Sequence[str]) -> dict[str, tuple[int, float]]:
    """Index and size of the unit of each quantity that a table has; the thrust first."""
    found = {}
    for quantity, (words, units) in _QUANTITIES.items():
        for k, name in enumerate(names):
            head = re.match(rf"\s*({words})\b[^(\[]*(?:[(\[]([^)\]]*)[)\]])?\s*$", name, re.I)
            unit = re.sub(r"[\s*.\u00b7]", "", (head[2] or "").lower()) if head else None
            if head and not unit and head[1].lower() in units:
                unit = head[1].lower()  # a column named RPM
            if unit in units and quantity not in found:
                found[quantity] = (k, units[unit])
    return found


def _numbers_in(row: TextRow, columns: Mapping[str, tuple[int, float]]) -> list[float]:
    try:
        return [float(row.cells[k].replace(",", "")) * size for k, size in columns.values()]
    except (ValueError, IndexError):
        raise ConfigError(f"line {row.line}: a number is missing") from None
