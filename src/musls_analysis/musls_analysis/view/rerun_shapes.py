"""Bodies for rerun's viewer, at the stream's present time, below an entity that moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from musls_analysis.view.shapes import DroneShape, LoadShape
from musls_analysis.view.wheels import RIM

if TYPE_CHECKING:
    import rerun as rr

_DISC_HEIGHT_M = 0.012
_LINE_M, _OUTLINE_M = 0.012, 0.003


def rgba(rgb: np.ndarray, alpha: float = 1.0) -> np.ndarray:
    """Bytes (4,) of a colour (3,) and an opacity from 0 to 1."""
    return np.round(255.0 * np.append(rgb, alpha)).astype(np.uint8)


def log_load(
    stream: rr.RecordingStream, path: str, shape: LoadShape, rgb: np.ndarray, outline: bool
) -> None:
    """Log the load's box, solid or as an outline.

    Args:
        stream: Where to.
        path: Entity that has the pose.
        shape: The box.
        rgb: Colour, 0 to 1 (3,).
        outline: Whether it stands for a set-point.
    """
    import rerun as rr

    low, high = shape.corners_m.min(axis=0), shape.corners_m.max(axis=0)
    box = rr.Boxes3D(
        centers=0.5 * (low + high), half_sizes=0.5 * (high - low), colors=rgba(rgb),
        radii=_OUTLINE_M, fill_mode="majorwireframe" if outline else "solid",
    )  # fmt: skip
    stream.log(f"{path}/box", box)


def log_wheels(stream: rr.RecordingStream, path: str, rims: np.ndarray) -> None:
    """Log the rims of the wheels on a body.

    Args:
        stream: Where to.
        path: Entity that has the pose.
        rims: Points in the body's frame, (wheels, points, 3).
    """
    import rerun as rr

    rings = list(np.concatenate([rims, rims[:, :1]], axis=1))
    lines = rr.LineStrips3D(rings, colors=rgba(RIM), radii=_LINE_M)
    stream.log(f"{path}/wheels", lines)


def log_drone(
    stream: rr.RecordingStream, path: str, shape: DroneShape, rgb: np.ndarray, outline: bool
) -> None:
    """Log a drone's arms, gear and rotor discs; only rings and arms for a set-point.

    Args:
        stream: Where to.
        path: Entity that has the pose.
        shape: The drone.
        rgb: Colour, 0 to 1 (3,).
        outline: Whether it stands for a set-point.
    """
    import rerun as rr

    arms = [np.stack([np.zeros(3), hub]) for hub in shape.hubs_m]
    rings = [np.concatenate([disc, disc[:1]]) for disc in shape.discs_m]
    if outline:
        lines = rr.LineStrips3D(arms + rings, colors=rgba(rgb), radii=_OUTLINE_M)
        stream.log(f"{path}/outline", lines)
        return
    gear = list(shape.gear_m)
    colours = [rgba(0.7 * rgb)] * len(arms) + [rgba(np.full(3, 0.3))] * len(gear)
    radii = [_LINE_M] * len(arms) + [0.5 * _LINE_M] * len(gear)
    stream.log(f"{path}/frame", rr.LineStrips3D(arms + gear, colors=colours, radii=radii))
    front = np.where(shape.front, 1.0, 0.6)
    discs = rr.Cylinders3D(
        centers=shape.hubs_m, lengths=[_DISC_HEIGHT_M] * len(arms),
        radii=[shape.rotor_radius_m] * len(arms),
        colors=[rgba(rgb + (1.0 - share) * (1.0 - rgb)) for share in front], fill_mode="solid",
    )  # fmt: skip
    stream.log(f"{path}/rotors", discs)
