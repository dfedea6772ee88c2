"""Wind: a constant part and gusts, the same everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from musls_description.schema import Number, Positive, spec

Array = NDArray[np.float64]


MAX_WIND_M_S = 100.0
"""Along an axis; the strongest gust ever measured near the ground had 113 m/s."""

Velocity = Annotated[float, Field(ge=-MAX_WIND_M_S, le=MAX_WIND_M_S, allow_inf_nan=False), Number]
Deviation = Annotated[float, Field(ge=0.0, le=MAX_WIND_M_S / 2.0, allow_inf_nan=False), Number]


@spec
class WindSpec:
    """Constant wind and gusts (first-order Gauss-Markov process per axis).

    Attributes:
        mean_enu_m_s: Constant part.
        gust_std_m_s: Standard deviation of the gusts along each axis.
        gust_time_s: Correlation time of the gusts.
    """

    mean_enu_m_s: tuple[Velocity, Velocity, Velocity] = (0.0, 0.0, 0.0)
    gust_std_m_s: tuple[Deviation, Deviation, Deviation] = (0.0, 0.0, 0.0)
    gust_time_s: Positive = 2.0


class Wind:
    """Wind over time; `velocity_enu_m_s` holds the present value."""

    _BLOCK = 1000

    def __init__(self, spec: WindSpec, period_s: float, generator: np.random.Generator) -> None:
        """Start with a gust from the stationary distribution.

        Args:
            spec: Mean and gusts.
            period_s: Time between calls of `step`.
            generator: Source of the gusts.
        """
        self._mean = np.array(spec.mean_enu_m_s)
        self._std = np.array(spec.gust_std_m_s)
        self._keep = float(np.exp(-period_s / spec.gust_time_s))
        self._generator = generator
        self._gust = self._std * generator.standard_normal(3)
        self._block = np.zeros((self._BLOCK, 3))
        self._next = self._BLOCK
        self.steady = not self._std.any()
        self.velocity_enu_m_s = self._mean + self._gust

    def add(self, sign: float, velocity_enu_m_s: Sequence[float]) -> None:
        """Let more wind blow, or take it away again.

        Args:
            sign: 1 or -1.
            velocity_enu_m_s: Of the air, (3,).
        """
        self._mean = self._mean + sign * np.array(velocity_enu_m_s)
        self.velocity_enu_m_s = self._mean + self._gust

    def step(self) -> None:
        """Advance by one period."""
        if self.steady:
            return
        if self._next == self._BLOCK:
            scale = self._std * np.sqrt(1.0 - self._keep**2)
            self._block = scale * self._generator.standard_normal(self._block.shape)
            self._next = 0
        self._gust = self._keep * self._gust + self._block[self._next]
        self._next += 1
        self.velocity_enu_m_s = self._mean + self._gust
