"""Way-points of several trajectories."""

from __future__ import annotations

import itertools
from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field

from musls_description.schema import Finite, NonNegative, Vector3, spec

MOST_POINTS = 10_000


@spec
class Waypoint:
    """A pose on the way; may be written short as [x, y, z] or [x, y, z, yaw].

    Attributes:
        position_m: Place of the load.
        yaw_rad: Yaw of the load.
        hold_s: Time to stay there; 0 goes on without a stop.
    """

    position_m: Vector3
    yaw_rad: Finite = 0.0
    hold_s: NonNegative = 0.0


def _from_numbers(value: Any) -> Any:
    """Write out the short form of a point."""
    if isinstance(value, (list, tuple)) and len(value) in (3, 4):
        point: dict[str, Any] = {"position_m": tuple(value[:3])}
        return {**point, "yaw_rad": value[3]} if len(value) == 4 else point
    return value


Point = Annotated[Waypoint, BeforeValidator(_from_numbers)]
Points = Annotated[tuple[Point, ...], Field(min_length=2, max_length=MOST_POINTS)]


def check_distinct(points: tuple[Waypoint, ...]) -> None:
    """Refuse points without a way between them.

    Raises:
        ValueError: Two successive points coincide.
    """
    for k, (one, other) in enumerate(itertools.pairwise(points)):
        if np.linalg.norm(np.subtract(one.position_m, other.position_m)) < 1e-9:
            raise ValueError(
                f"points.{k} and points.{k + 1} coincide at {list(one.position_m)}; to stay at a "
                "point give it a hold_s"
            )
