"""Trajectories that users write: wrong results of their methods give a one-line error."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_control.trajectories.base import ORDERS
from musls_description.errors import ConfigError, MuslsError
from musls_description.user_code import describe_error, file_of, place_of

Array = NDArray[np.float64]

_SHAPES = {"pose": (4,), "derivatives": (ORDERS, 4), "tilt": (ORDERS, 2)}
"""Methods that take times, and what they return for each time."""

_NEEDED = ("pose", "derivatives", "duration_s")


class TrajectoryError(MuslsError):
    """A user's trajectory failed; the message names file and line."""


def watched(kind: type) -> type:
    """Let the methods of a user's class check what they return and say where they failed.

    Args:
        kind: A trajectory's class; changed in place, once. What it inherits is left alone.

    Raises:
        ConfigError: A method that a trajectory must have is missing.
    """
    if not isinstance(kind, type):
        raise ConfigError(f"trajectory {kind!r}: must be a class")
    fields = getattr(kind, "__dataclass_fields__", {})
    missing = [name for name in _NEEDED if not hasattr(kind, name) and name not in fields]
    if missing:
        raise ConfigError(f"{file_of(kind)}: trajectory {kind.__name__} has no {missing[0]}")
    for name, shape in _SHAPES.items():
        method = vars(kind).get(name)
        if callable(method) and not hasattr(method, "__wrapped__"):
            setattr(kind, name, _checked(kind, method, shape))
    for name in ("duration_s", "period_s"):
        value = vars(kind).get(name)
        if isinstance(value, property) and not hasattr(value.fget, "__wrapped__"):
            setattr(kind, name, property(_located(kind, name, value.fget)))
    return kind


def _located(kind: type, name: str, function: Any) -> Callable[..., Any]:
    """The same function, but its errors name file and line."""

    @wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except MuslsError:
            raise
        except Exception as error:
            file = file_of(kind)
            raise TrajectoryError(
                f"{file}{place_of(error, file)}: {kind.__name__}.{name} failed: "
                f"{describe_error(error)}"
            ) from error

    return call


def _checked(kind: type, method: Any, shape: tuple[int, ...]) -> Callable[..., Any]:
    """The same method, but what it raises or returns wrongly is told in one line."""
    name = method.__name__
    located = _located(kind, name, method)

    @wraps(method)
    def call(self: Any, time_s: Array) -> Array:
        found = located(self, time_s)
        wanted = (len(time_s), *shape)
        where = f"{file_of(kind)}, line {method.__code__.co_firstlineno}: {kind.__name__}.{name}"
        try:
            numbers = np.asarray(found, np.float64)
        except (TypeError, ValueError) as error:
            raise TrajectoryError(
                f"{where} returned {type(found).__name__}, must be numbers of shape {wanted}"
            ) from error
        if numbers.shape != wanted:
            raise TrajectoryError(
                f"{where} returned an array of shape {numbers.shape} for {len(time_s)} times, "
                f"must be {wanted}"
            )
        if not np.isfinite(numbers).all():
            row = np.argwhere(~np.isfinite(numbers))[0]
            raise TrajectoryError(
                f"{where} returned {numbers[tuple(row)]} at {time_s[row[0]]:.3f} s"
            )
        return numbers

    return call
