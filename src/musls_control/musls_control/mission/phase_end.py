"""Why a phase of a flight ended, in one line that is recorded with the flight.

The player knows what its rows waited for, the guard and people why a plan was replaced, the land
detectors when a flight is over; `FlightGuidance` reports it, for the session and the ROS graph.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from musls_control.autopilot import DISARM_AFTER_LANDING_S, LANDING_TIMEOUT_S

PHASE = "phase"
"""Kind of the event in a bag and on a ROS graph."""

ENDED = "ended"
CUT_SHORT = "was cut short"


@dataclass(frozen=True)
class Reason:
    """Reason for the end of a phase.

    Attributes:
        why: Reason, in words.
        planned: Whether the flight goes on as planned.
    """

    why: str
    planned: bool = True


LANDED = Reason(
    f"the land detectors of all drones (speed, thrust, rotation) hold for "
    f"{DISARM_AFTER_LANDING_S:g} s: disarmed"
)

NOT_LANDED = Reason(
    f"disarmed {LANDING_TIMEOUT_S:g} s after the plan's end, although not all land detectors hold",
    planned=False,
)

ALL_DISARMED = Reason("all drones are disarmed")

PLAN_OVER = Reason("the plan is over")

DISARMED = "disarmed"
"""Last phase of a flight that lands."""


DIVERGED = "the simulation diverged"


def at_the_end(*, landed: bool, lands: bool = True) -> Reason:
    """Reason for the end of a plan that `lands`, or ends in the air."""
    if not lands:
        return PLAN_OVER
    return LANDED if landed else NOT_LANDED


def sentence(phase: str, reason: Reason) -> str:
    """End of a phase in one line: "lift ended: after its 7.2 s"."""
    return f"{phase} {ENDED if reason.planned else CUT_SHORT}: {reason.why}"


def was_cut_short(text: str) -> bool:
    """Whether a line made by `sentence` says that a phase did not end as planned."""
    return text.partition(": ")[0].endswith(CUT_SHORT)


def in_place(wait: NDArray[np.void], rate_hz: float) -> Reason:
    """Reason where a row has waited for load and drones: `WAIT` says what is in place."""
    parts = [f"drones within {float(wait['near']):.2f} m of their places"]
    low_m, high_m = float(wait["lowest"]), float(wait["highest"])
    if np.isfinite(low_m):
        parts.append(f"load {low_m:.2f} to {high_m:.2f} m high")
    elif np.isfinite(high_m):
        parts.append(f"load below {high_m:.2f} m")
    if wait["still"]:
        parts.append(f"load at rest for {int(wait['still']) / rate_hz:g} s")
    return Reason(", ".join(parts))


GATES = {
    "hooked": "all hooks are closed",
    "rested": "the load rests and the cables are slack",
    "released": "nothing hangs on the drones any more",
    "weighed": "the load is weighed",
}
"""Conditions under which the gates of a delivery are passed."""
