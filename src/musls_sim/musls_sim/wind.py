"""Wind: a constant part and gusts, the same everywhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from musls_control.brief.brief import WindSpec
from musls_description.numerics.compiled import compiled


class Wind:
    """Wind over time; all arrays keep their memory.

    Attributes:
        mean_enu_m_s: Constant part.
        gust_enu_m_s: Present gust.
        velocity_enu_m_s: Sum of both.
        keep: Share of a gust that is left after a period.
        std_m_s: Standard deviation of gusts, (3,).
        scale_m_s: Standard deviation of what joins it, (3,).
        steady: Whether there are no gusts.
        generator: Random generator of the gusts; a flight draws from a copy of it.
    """

    def __init__(self, spec: WindSpec, period_s: float, generator: np.random.Generator) -> None:
        """Start with a gust from the stationary distribution."""
        self.std_m_s = std = np.array(spec.gust_std_m_s)
        self.keep = float(np.exp(-period_s / spec.gust_time_s))
        self.scale_m_s = std * np.sqrt(1.0 - self.keep**2)
        self.generator = generator
        self.steady = not std.any()
        self.mean_enu_m_s = np.array(spec.mean_enu_m_s)
        self.gust_enu_m_s = std * generator.standard_normal(3)
        self.velocity_enu_m_s = self.mean_enu_m_s + self.gust_enu_m_s

    def add(self, velocity_enu_m_s: Sequence[float]) -> None:
        """Add a wind that blows from now on."""
        self.mean_enu_m_s += velocity_enu_m_s
        self.velocity_enu_m_s[:] = self.mean_enu_m_s + self.gust_enu_m_s


@compiled()
def blow(velocity, mean, gust, keep, change):
    """Advance a gust, (3,), by one period, and write the wind."""
    for k in range(3):
        gust[k] = keep * gust[k] + change[k]
        velocity[k] = mean[k] + gust[k]
