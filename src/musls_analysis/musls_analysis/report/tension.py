"""When cables are slack."""

from __future__ import annotations

import numpy as np

from musls_analysis.recordings.recording import CableTrack

DEFAULT_SLACK_THRESHOLD_N = 0.5
"""Tension at the load below which a cable counts as slack: about twice the weight of the seed
paper's cable, and under a tenth of its share of the load."""


def slack_mask(cable: CableTrack, slack_threshold_n: float) -> np.ndarray:
    """Which samples are slack: tension at the load end below the threshold (T,)."""
    return cable.tension_n[:, 0] < slack_threshold_n


def slack_intervals(cable: CableTrack, slack_threshold_n: float) -> list[tuple[float, float]]:
    """When the cable was slack.

    Args:
        cable: The cable.
        slack_threshold_n: Slack is a tension below it.

    Returns:
        First slack sample and first taut sample after it (or the last sample), in seconds.
    """
    mask = slack_mask(cable, slack_threshold_n)
    edges = np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    last = len(mask) - 1
    return [
        (float(cable.time_s[start]), float(cable.time_s[min(end, last)]))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
