"""Time hysteresis on a flag, counted in whole steps so that no rounding of times can matter."""

from __future__ import annotations

import numba
from numba import float64, int64

from musls_control.px4_cascade.layout import HYSTERESIS_DTYPE
from musls_description.compiled import compiled

#: Slack for times that are whole multiples of the step but not in binary.
TIME_TOLERANCE_S = 1e-9


@compiled(int64(numba.from_dtype(HYSTERESIS_DTYPE), int64, float64, float64))
def update_hysteresis(flag, requested, rise_time_s, dt_s):
    """Follow a request: rising only after it has stood for a time, falling at once.

    Source: PX4 v1.15 source, lib/hysteresis.
    """
    if requested != flag.requested:
        flag.requested = requested
        flag.ticks = 0
    else:
        flag.ticks += 1
    if flag.requested == 0:
        flag.state = 0
    elif flag.ticks * dt_s >= rise_time_s - TIME_TOLERANCE_S:
        flag.state = 1
    return flag.state
