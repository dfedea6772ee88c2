"""Trajectories of the load's set-point: position (ENU) and yaw as functions of time.

Each is a specification (a YAML mapping with its `kind`) with a `duration_s`, a plain NumPy
`pose(t)` that takes arrays of times, and `derivatives(t)` up to the fourth. Heights are those of
the load's centre of mass. What others must know of a kind of trajectory it declares itself, see
`base.Trajectory`.
"""

from __future__ import annotations

from typing import Annotated, Any

from musls_control.trajectories.base import CycleRule, Periodic, Trajectory, watched
from musls_control.trajectories.curves import Circle, FigureEight, Helix, Shm, SmoothCircle
from musls_control.trajectories.straight import (
    Engage,
    Hold,
    Line,
    Quintic,
    Step,
    Waypoint,
    Waypoints,
)
from musls_description.config.registry import AnyOf, Registry

__all__ = [
    "TRAJECTORIES",
    "AnyTrajectory",
    "Circle",
    "CycleRule",
    "Engage",
    "FigureEight",
    "Helix",
    "Hold",
    "Line",
    "Periodic",
    "Quintic",
    "Shm",
    "SmoothCircle",
    "Step",
    "Trajectory",
    "Waypoint",
    "Waypoints",
    "trajectory_of_stage",
]

TRAJECTORIES: Registry[type[Trajectory]] = Registry(
    "trajectory",
    "musls.trajectories",
    {
        **{kind.kind: kind for kind in (Circle, Shm, Engage, Hold, Line, Waypoints, Quintic)},
        **{kind.kind: kind for kind in (SmoothCircle, FigureEight, Helix, Step)},
        # By name: what they need of SciPy takes half a second to import.
        "min_derivative": "musls_control.trajectories.min_derivative:MinDerivative",
        "recorded": "musls_control.trajectories.recorded:RecordedTrajectory",
    },
    watched,
)
"""Classes made with `spec` that follow `Trajectory`, by kind."""

AnyTrajectory = Annotated[Any, AnyOf(TRAJECTORIES)]
"""Type of an entry of a mission's `stages`."""


def trajectory_of_stage(stage: str) -> type[Trajectory] | None:
    """Find the kind of trajectory that a stage of a recording flew, None for other phases.

    Args:
        stage: Name of a stage as recordings hold it, without the number of a repetition
            ("shm", not "shm_2"): a kind, or another name under which one is recorded.
    """
    if stage in TRAJECTORIES:
        return TRAJECTORIES[stage]
    return next((kind for kind in TRAJECTORIES.values() if stage in kind.recorded_as), None)
