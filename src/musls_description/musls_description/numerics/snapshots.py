"""Keeps the state of objects and arrays that hang together, and puts it back into them.

What is kept is state, not objects: each object is found by the way that leads to it, and gets its
attributes back in place, so that whoever holds it, or a view of an array, sees the state of then.
The same ways lead to the same objects of what was built alike, in another process, too. Views of an
array stay views of it.
"""

from __future__ import annotations

import io
import marshal
import pickle
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from types import CellType, FunctionType, MappingProxyType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_description.config.errors import ConfigError
from musls_description.numerics.compiled import CompiledFunction, CompiledStage
from musls_description.numerics.layout import root_of
from musls_description.numerics.records import TiedToMemory

ATOMS = (bool, int, float, complex, str, bytes, Enum, type, ModuleType, np.generic, np.dtype)
OTHERS = (*ATOMS, CompiledFunction, CompiledStage)
LIBRARIES = frozenset(sys.stdlib_module_names) | {"numpy", "scipy", "numba", "builtins"}


@dataclass(frozen=True)
class Kept:
    """State of objects; can be pickled.

    Attributes:
        parts: The ways to all objects, and what they are.
        state: Their state, pickled.
    """

    parts: bytes
    state: bytes


class Keeper:
    """Keeps the state of some objects and of all that they lead to.

    An attribute that a class names in `not_kept` stays as it is.
    """

    def __init__(
        self, objects: Mapping[str, object], alike: Mapping[str, object], others: tuple[object, ...]
    ) -> None:
        """`objects`: those by name whose state is kept.

        `alike`: what never changes, is built alike wherever the state may be put back, and is
        taken from there; `others`: objects that stay as they are.
        """
        self._objects = dict(objects)
        every = _walk(alike, ())
        self._alike = {
            way: one
            for way, one in every
            if not (isinstance(one, OTHERS) or way.endswith(".base"))  # views may be of what moves
        }
        self._alike |= {f"other {k}": one for k, one in enumerate(others)}
        self._ways = {id(one): way for way, one in self._alike.items()}

    def _parts(self) -> dict[str, Any]:
        """Objects whose state is kept, by the ways that lead to them."""
        return {way: one for way, one in _walk(self._objects, self._ways) if _is_part(one)}

    def keep(self) -> Kept:
        """Keep the present state (raises ConfigError where an attribute cannot be pickled)."""
        parts = self._parts()
        ways = self._ways | {id(one): way for way, one in parts.items()}
        kinds = [(way, _kind_of(one)) for way, one in parts.items()]
        states = {way: _state_of(one) for way, one in parts.items()}
        try:
            return Kept(_pickled(kinds, {}), _pickled(states, ways))
        except (pickle.PicklingError, TypeError, AttributeError, ConfigError, RecursionError):
            _blame(parts, states, ways)
            raise

    def put_back(self, kept: Kept) -> None:
        """Restore the state of all objects (raises ConfigError where these are not the same)."""
        before = self._parts()
        parts = dict[str, Any]()
        for way, kind in pickle.loads(kept.parts):
            if "." not in way and way not in self._objects:
                raise ConfigError(f"snapshot: of another flight: there is no {way} here")
            parts[way] = _part(kind, before.get(way))
        unpickler = _Unpickler(io.BytesIO(kept.state))
        unpickler.known = self._alike | parts
        for way, state in unpickler.load().items():
            _put_state(parts[way], state)


# ---------- What hangs together


def _walk(objects: Mapping[str, object], stop: Any) -> Iterator[tuple[str, Any]]:
    """Objects and all that they lead to, each once, with the first way that leads to it."""
    seen = set[int]()
    found = deque(objects.items())
    while found:
        way, one = found.popleft()
        if one is None or (isinstance(one, ATOMS) and not isinstance(one, np.void)):
            continue
        if id(one) in seen or id(one) in stop:
            continue
        seen.add(id(one))
        yield way, one
        found.extend((f"{way}.{name}", child) for name, child in _children(one))


def _children(one: Any) -> Iterator[tuple[Any, Any]]:
    """What an object leads to, by names."""
    match one:
        case np.ndarray():
            if (root := root_of(one)) is not one:
                yield "base", root
        case np.void():
            yield "base", one.base
        case dict():
            yield from ((repr(key), value) for key, value in one.items())
        case list() | tuple() | deque():
            yield from enumerate(one)
        case MethodType():
            yield "self", one.__self__
        case partial():
            yield from enumerate((one.func, *one.args, *one.keywords.values()))
        case FunctionType():
            yield from _cells(one).items()
        case _ if _has_attributes(one):
            yield from _attributes(one).items()


def _cells(function: FunctionType) -> dict[str, Any]:
    """Variables of a function that it shares with the one in which it was made."""
    values = dict[str, Any]()
    names = function.__code__.co_freevars
    for name, cell in zip(names, function.__closure__ or (), strict=True):
        try:
            values[name] = cell.cell_contents
        except ValueError:  # has none yet
            continue
    return values


def _has_attributes(one: Any) -> bool:
    """Whether an object is its attributes, and does not say itself how it is pickled."""
    kind = type(one)
    library = kind.__module__.partition(".")[0] in LIBRARIES
    if (library and kind is not SimpleNamespace) or not hasattr(one, "__dict__"):
        return False
    own = ("__reduce_ex__", "__reduce__", "__getstate__", "__getnewargs__")
    plain = all(getattr(kind, name, None) is getattr(object, name, None) for name in own)
    return (plain or isinstance(one, TiedToMemory)) and not isinstance(one, OTHERS)


def _attributes(one: Any) -> dict[str, Any]:
    """Attributes that are kept."""
    left_out = getattr(type(one), "not_kept", ())
    return {name: value for name, value in vars(one).items() if name not in left_out}


def _is_part(one: Any) -> bool:
    """Whether an object is found by its way and changed in place; others are values."""
    if isinstance(one, np.ndarray):
        return root_of(one) is one
    if isinstance(one, FunctionType):
        return "<" in one.__qualname__
    parameters = getattr(type(one), "__dataclass_params__", None)
    return _has_attributes(one) and not (parameters is not None and parameters.frozen)


# ---------- Their state


def _kind_of(one: Any) -> Any:
    """What has to be there in its place."""
    if isinstance(one, np.ndarray):
        return one.dtype, one.shape, "C" if one.flags.c_contiguous else "F"
    if isinstance(one, FunctionType):
        return one.__module__, one.__name__, marshal.dumps(one.__code__)
    return type(one)


def _part(kind: Any, before: Any) -> Any:
    """The object that gets a state: the one that is there, or a new one of its kind."""
    if before is not None and _kind_of(before) == kind:
        return before
    if isinstance(kind, type):
        return object.__new__(kind)
    first, second, third = kind
    if isinstance(first, str):  # a function within another one, which has variables of its own
        code = marshal.loads(third)
        cells = tuple(CellType() for _ in code.co_freevars)
        return FunctionType(code, vars(sys.modules[first]), second, None, cells)
    return np.zeros(second, first, third)


def _state_of(one: Any) -> Any:
    if isinstance(one, np.ndarray):
        return one.tobytes()
    if isinstance(one, FunctionType):
        return {**_cells(one), "": (one.__defaults__, one.__kwdefaults__)}
    return _attributes(one)


def _put_state(one: Any, state: Any) -> None:
    if isinstance(one, np.ndarray):
        one[...] = np.frombuffer(state, one.dtype).reshape(one.shape)
    elif isinstance(one, FunctionType):
        for name, cell in zip(one.__code__.co_freevars, one.__closure__ or (), strict=True):
            if name in state:
                cell.cell_contents = state[name]
        one.__defaults__, one.__kwdefaults__ = state[""]
    else:
        stay = vars(one).keys() - _attributes(one).keys()
        for name in vars(one).keys() - stay:
            del vars(one)[name]
        vars(one).update(state)


def _pickled(thing: object, ways: Mapping[int, str]) -> bytes:
    out = io.BytesIO()
    pickler = _Pickler(out, protocol=5)
    pickler.ways = ways
    pickler.dump(thing)
    return out.getvalue()


def _blame(parts: Mapping[str, Any], states: Mapping[str, Any], ways: Mapping[int, str]) -> None:
    """Name the attribute that cannot be pickled."""
    for way, state in states.items():
        for name, value in state.items() if isinstance(state, dict) else ():
            try:
                _pickled(value, ways)
            except Exception as error:
                owner = type(parts[way]).__name__
                raise ConfigError(f"a snapshot cannot hold {owner}.{name}: {error}") from None


class _Pickler(pickle.Pickler):
    """Writes the ways to objects in their place, and of views where they are in an array."""

    ways: Mapping[int, str]

    def persistent_id(self, one: Any) -> str | None:
        return self.ways.get(id(one))

    def reducer_override(self, one: Any) -> Any:
        if isinstance(one, np.ndarray) and (root := root_of(one)) is not one:
            at = one.ctypes.data - root.ctypes.data if one.size else 0
            return _view, (root, at, one.shape, one.strides, one.dtype)
        if isinstance(one, np.void) and isinstance(one.base, np.ndarray):
            root = root_of(one.base)
            own = np.frombuffer(one, np.uint8)
            return _record, (root, own.ctypes.data - root.ctypes.data, one.dtype)
        return (_constant, (dict(one),)) if isinstance(one, MappingProxyType) else NotImplemented


class _Unpickler(pickle.Unpickler):
    known: Mapping[str, Any]

    def persistent_load(self, way: str) -> Any:
        try:
            return self.known[way]
        except KeyError:
            raise ConfigError(f"snapshot: of another flight: there is no {way} here") from None


def _view(root: NDArray[Any], at: int, shape: Any, strides: Any, dtype: Any) -> NDArray[Any]:
    """View of an array, from a number of bytes on."""
    if not root.size:
        return np.zeros(shape, dtype)
    return np.ndarray(shape, dtype, root.ravel(order="K").data, at, strides)


def _record(root: NDArray[Any], at: int, dtype: Any) -> np.void:
    """Record within an array, from a number of bytes on."""
    record: np.void = _view(root, at, (1,), (dtype.itemsize,), dtype)[0]
    return record


def _constant(values: dict[Any, Any]) -> Mapping[Any, Any]:
    """A mapping that cannot be changed."""
    return MappingProxyType(values)
