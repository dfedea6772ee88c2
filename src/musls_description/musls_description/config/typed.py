"""Arguments of public functions are what their annotations say, or a TypeError names them."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin
from typing import get_type_hints as hints_of

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")


def typed(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments of each call before anything is done; NumPy's numbers are numbers.

    Raises:
        TypeError: An argument is of another type than its annotation; names the argument.
    """
    signature = inspect.signature(function)

    @functools.cache
    def hints() -> dict[str, Any]:  # at the first call, when all names that they use are there
        named = dict(function.__annotations__)
        named.pop("return", None)  # may be there for type checkers only
        names = inspect.unwrap(function).__globals__
        return hints_of(SimpleNamespace(__annotations__=named), names, include_extras=True)

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:  # Python says it better
            return function(*args, **kwargs)
        for name, hint in hints().items():
            if name in given and not _fits(given[name], hint):
                raise TypeError(
                    f"{function.__qualname__.removesuffix('.__init__')}: {name} must be "
                    f"{_words(hint)}, not {_shown(given[name])}"
                )
        return function(*args, **kwargs)

    return checked


def _fits(value: Any, hint: Any) -> bool:
    if hint is Any:
        return True
    origin, inner = get_origin(hint), get_args(hint)
    if hasattr(alias := origin or hint, "__value__"):  # such as NDArray since NumPy 2.5
        return _fits(value, alias.__value__)
    if origin is Annotated:
        return _fits(value, inner[0])
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is Literal:
        return value in inner
    if origin is not None and issubclass(origin, Mapping):
        keys, values = inner
        return isinstance(value, Mapping) and all(
            _fits(key, keys) and _fits(item, values) for key, item in value.items()
        )
    if origin is not None and origin is not tuple and issubclass(origin, Sequence):
        several = isinstance(value, Sequence) or (isinstance(value, np.ndarray) and value.ndim > 0)
        several = several and not isinstance(value, (str, bytes))
        return several and all(_fits(item, inner[0]) for item in value)
    if hint is float or hint is int:
        number = Real if hint is float else Integral
        return isinstance(value, number) and not isinstance(value, bool)
    if hint is bool:
        return isinstance(value, (bool, np.bool_))
    if origin is type:
        return isinstance(value, type)
    kind = NoneType if hint is None else origin or hint
    return not isinstance(kind, type) or isinstance(value, kind)


def _words(hint: Any) -> str:
    """An annotation without the modules of its names."""
    text = hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", text).replace("NoneType", "None")


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{text if len(text) <= LONGEST else text[:LONGEST] + '...'} ({type(value).__name__})"


LONGEST = 60
"""Of a value that a message shows."""
