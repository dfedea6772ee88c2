"""Where each drone is in the frame that turns with its set-point: outward, forward, up.

In world axes a formation that turns hides what is fixed in a drone; averaged over drones, one hides
the others. Here each drone has its own numbers.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def turning_frame(drones_enu_m: Array, setpoints_enu_m: Array) -> Array:
    """Places of drones about their centroid, in axes that turn with the formation's set-points.

    Args:
        drones_enu_m: Positions, (n, M, 3).
        setpoints_enu_m: Their set-points at the same times, (n, M, 3).

    Returns:
        Outward, forward (counter-clockwise), up of the centroid, of each drone (n, M, 3) [m].
    """
    own = drones_enu_m - drones_enu_m.mean(axis=0)
    wanted = setpoints_enu_m - setpoints_enu_m.mean(axis=0)
    azimuth = np.arctan2(wanted[..., 1], wanted[..., 0])
    c, s = np.cos(azimuth), np.sin(azimuth)
    found: Array = np.stack(
        [c * own[..., 0] + s * own[..., 1], c * own[..., 1] - s * own[..., 0], own[..., 2]],
        axis=-1,
    )
    return found


def drones_of(bodies: Iterable[str]) -> list[str]:
    """Names of the drones in their order."""
    names = [body for body in bodies if body.startswith("drone_")]
    return sorted(names, key=lambda name: int(name.removeprefix("drone_")))
