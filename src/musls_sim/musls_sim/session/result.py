"""What a flight says about itself when it is over."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FlightResult:
    """What a flight says about itself.

    Attributes:
        sim_time_s: Simulated time.
        wall_time_s: Time the loop took.
        periods: Control periods flown.
        plant_step_us: Mean time of one control period in the plant but the first, which may
            compile [us].
        controller_step_us: Mean time of one call of the controller [us]; None without one.
        max_tension_n: Largest tension of each cable over all steps, (n_cables,).
        tension_peaks: The same over time: middle of intervals of 20 ms, (k,) [s], and tensions,
            (k, n_cables).
        landed: Whether the drones were found landed at the end.
        interrupted: Whether the user ended it.
    """

    sim_time_s: float
    wall_time_s: float
    periods: int
    plant_step_us: float
    controller_step_us: float | None
    max_tension_n: Array
    tension_peaks: tuple[Array, Array]
    landed: bool
    interrupted: bool
