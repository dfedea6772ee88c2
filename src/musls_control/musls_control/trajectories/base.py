"""Interface of trajectories, their declarations, helpers, and the watch over those of users."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum
from functools import wraps
from numbers import Real
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from pydantic import Field

from musls_description.config.errors import ConfigError
from musls_description.config.registry import UserCodeError, file_of, user_code
from musls_description.config.schema import Finite
from musls_description.numerics.arrays import Array

Repetitions = Annotated[int, Field(ge=1, le=10000)]
Point2 = tuple[Finite, Finite]

ORDERS = 5
"""Position and its first to fourth derivatives: velocity, acceleration, jerk, snap."""

AT_A_CORNER_S = 1e-9
"""Times this close below a corner of a path count as the corner itself (rounding of times)."""


class CycleRule(str, Enum):
    """Feature of a recorded stage's set-point at which one cycle ends and the next begins."""

    ANGLE = "angle"
    """Cycles begin at an angle round the centre of a circle."""
    OSCILLATION = "oscillation"
    """Cycles begin at the passage through the middle of a harmonic motion."""
    STEP_UP = "step_up"
    """A cycle begins where the set-point steps up and ends where it goes down again."""
    WHOLE = "whole"
    """The whole stage is one cycle."""


class Trajectory(ABC):
    """Base of trajectories, ours and users' own: what others need to know of the load's path.

    Attributes:
        kind: Name in scenario files and of the stage in recordings.
        duration_s: Duration of all repetitions.
        period_s: Length of one repetition.
        snaps_taut: Slack cables snap taut, which needs a finer step of the physics.
        sets_load_down: The set-point goes below the ground's level on purpose.
        cycle_rule: Rule by which recordings of it are cut into cycles.
        recorded_as: Other names under which recordings hold this stage, the preferred one first.
    """

    snaps_taut: ClassVar[bool] = False
    sets_load_down: ClassVar[bool] = False
    cycle_rule: ClassVar[CycleRule] = CycleRule.WHOLE
    recorded_as: ClassVar[tuple[str, ...]] = ()

    if TYPE_CHECKING:  # fields or properties, as each class likes

        @property
        def kind(self) -> str: ...
        @property
        def duration_s(self) -> float: ...
        @property
        def period_s(self) -> float: ...

    @abstractmethod
    def derivatives(self, time_s: Array) -> Array:
        """Poses at times in [0, duration_s] with four exact time derivatives, (k, 5, 4).

        At a corner of a path (a jump of the velocity) the derivatives are those of the part that
        begins there; at `duration_s`, where nothing begins, those of the part that ends. A jump of
        the pose itself has no derivative and adds none.
        """

    def pose(self, time_s: Array) -> Array:
        """Poses at times in [0, duration_s]: x, y, z [m], yaw [rad, continuous], (k, 4)."""
        return self.derivatives(time_s)[:, 0]

    def tilt(self, time_s: Array) -> Array:
        """Roll and pitch of the load [rad] and their first to fourth time derivatives, (k, 5, 2).

        With the yaw they are the attitude: turn by the yaw about z, then by the pitch about the new
        y, then by the roll about the new x axis. Level unless a trajectory says otherwise.
        """
        return np.zeros((len(time_s), ORDERS, 2))


class Once(Trajectory):
    """A trajectory that does not repeat."""

    @property
    @abstractmethod
    def duration_s(self) -> float:
        """Duration."""

    @property
    def period_s(self) -> float:
        """The whole duration."""
        return self.duration_s


class Periodic(Trajectory):
    """Duration of a trajectory that repeats; for classes with `period_s` and `repetitions`."""

    repetitions: int

    @property
    @abstractmethod
    def period_s(self) -> float:
        """Length of one repetition."""

    @property
    def duration_s(self) -> float:
        """Duration of all repetitions."""
        return self.period_s * self.repetitions


def at_rest(pose: Array) -> Array:
    """Derivatives of poses that do not move, (k, c) to (k, 5, c)."""
    derivatives = np.zeros((len(pose), ORDERS, pose.shape[1]))
    derivatives[:, 0] = pose
    return derivatives


def polyline(time_s: Array, corners_s: Array, poses: Array) -> Array:
    """Straight moves between corners, and their derivatives, (k, 5, c).

    Corners are passed at ascending times, (m,), with poses, (m, c); two at the same time are a
    jump, which adds no derivative. At a corner the part that begins counts, at the last one the
    part that ends.
    """
    parts_s = np.diff(corners_s)
    lengths_s = np.where(parts_s > AT_A_CORNER_S, parts_s, np.inf)
    rates = np.diff(poses, axis=0) / lengths_s[:, None]
    last = int(np.searchsorted(corners_s, corners_s[-1] - AT_A_CORNER_S)) - 1
    part = np.searchsorted(corners_s, time_s + AT_A_CORNER_S, side="right") - 1
    part = np.clip(part, 0, max(last, 0))
    values = at_rest(poses[part] + rates[part] * (time_s - corners_s[part])[:, None])
    values[:, 1] = rates[part]
    return values


def smoothstep(share: Any) -> Any:
    """Share of the way for shares s in [0, 1] of the time, 3 s^2 - 2 s^3: at rest at both ends."""
    return share**2 * (3.0 - 2.0 * share)


# ---------- Trajectories that users write

_SHAPES = {"pose": (4,), "derivatives": (ORDERS, 4), "tilt": (ORDERS, 2)}
"""Methods that take times, and what they return for each time."""

_NEEDED = ("pose", "derivatives", "duration_s")


def watched(kind: type) -> type:
    """Wrap the methods of a user's class: they check their results and name where they failed.

    The class is changed in place, once; what it inherits is left alone.
    """
    if not isinstance(kind, type):
        raise ConfigError(f"trajectory {kind!r}: must be a class")
    fields = getattr(kind, "__dataclass_fields__", {})
    abstract = getattr(kind, "__abstractmethods__", ())
    lacks = [name for name in _NEEDED if not hasattr(kind, name) or name in abstract]
    missing_names = [name for name in lacks if name not in fields]
    if missing_names:
        raise ConfigError(f"{file_of(kind)}: trajectory {kind.__name__} has no {missing_names[0]}")
    if not hasattr(kind, "tilt"):
        kind.tilt = Trajectory.tilt  # type: ignore[attr-defined]
    for name in (*_SHAPES, "duration_s", "period_s"):
        member = vars(kind).get(name)
        if isinstance(member, property) and not hasattr(member.fget, "__wrapped__"):
            setattr(kind, name, property(_watched(kind, member.fget)))
        elif callable(member) and not hasattr(member, "__wrapped__"):
            setattr(kind, name, _watched(kind, member))
    return kind


def _watched(kind: type, function: Any) -> Callable[..., Any]:
    """Wrap a function: its exceptions and wrong results become one line."""
    name = function.__name__

    @wraps(function)
    def call(self: Any, *times: Array) -> Any:
        with user_code(str, kind, name):
            result = function(self, *times)
        line = function.__code__.co_firstlineno
        where = f"{file_of(kind)}, line {line}: {kind.__name__}.{name}"
        if name not in _SHAPES:
            if isinstance(result, Real):
                return result
            raise UserCodeError(f"{where} returned {type(result).__name__}, must be a number")
        return _numbers(result, times[0], _SHAPES[name], where)

    return call


def _numbers(result: Any, time_s: Array, shape: tuple[int, ...], where: str) -> Array:
    """Numbers that a method returned for times, checked for their shape."""
    right_shape = (len(time_s), *shape)
    try:
        if np.iscomplexobj(result):
            raise TypeError("complex numbers")
        numbers = np.asarray(result, np.float64)
    except (TypeError, ValueError) as error:
        raise UserCodeError(
            f"{where} returned {type(result).__name__}, must be numbers of shape {right_shape}"
        ) from error
    if numbers.shape != right_shape:
        raise UserCodeError(
            f"{where} returned an array of shape {numbers.shape} for {len(time_s)} times, "
            f"must be {right_shape}"
        )
    if not np.isfinite(numbers).all():
        row = np.argwhere(~np.isfinite(numbers))[0]
        raise UserCodeError(f"{where} returned {numbers[tuple(row)]} at {time_s[row[0]]:.3f} s")
    return numbers
