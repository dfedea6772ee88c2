"""What a constant rotation between the recorded and the simulated frame of a body is worth.

Motion capture reports the attitude of a frame that somebody laid into the markers. Where it is not
the simulated body's, the geodesic error (eq. 13 of the seed paper) has a constant part that no
model of the motion can remove; the paper's own errors contain it. But a load that hangs askew
because its cables differ gives the same: a record of it standing on level ground tells them apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from musls_analysis.comparison.errors import geodesic_error_rad
from musls_analysis.comparison.mean_cycle import MeanCycle
from musls_description.rotations import chordal_mean, product, relative, rotation_vector


@dataclass(frozen=True)
class FrameWorth:
    """The constant rotation that fits best, and the error with it.

    Attributes:
        rotation_deg: Rotation vector from the simulated body's frame to the recorded one, in the
            body's frame (3,).
        error_deg: Mean angle (eq. 13) with the simulated body turned by it.
    """

    rotation_deg: tuple[float, float, float]
    error_deg: float


def frame_worth(real: MeanCycle, sim: MeanCycle) -> FrameWorth:
    """Fit a constant rotation to two mean cycles of a body.

    Args:
        real: Recorded.
        sim: Simulated, same phases.

    Returns:
        Rotation of the least mean square (chordal) distance; NaN where the relative attitudes are
        so spread that none is nearest.
    """
    known = np.isfinite(real.orientation_wxyz).all(axis=1)
    known &= np.isfinite(sim.orientation_wxyz).all(axis=1)
    q_real, q_sim = real.orientation_wxyz[known], sim.orientation_wxyz[known]
    mean = chordal_mean(relative(q_real, q_sim)[:, None])[0]
    turned = product(q_sim, np.broadcast_to(mean, q_sim.shape))
    x, y, z = np.degrees(rotation_vector(mean)).tolist()
    return FrameWorth((x, y, z), float(np.degrees(np.mean(geodesic_error_rad(q_real, turned)))))
