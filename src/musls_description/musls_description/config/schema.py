"""Strict, typed configuration: validated frozen dataclasses read from YAML.

Every specification of the project (system, scenario, sweep) is a frozen dataclass made with
`spec`. Building one from Python or from a file checks every field; what is wrong ends in a
`ConfigError` of one line that names the place, the value and what is allowed.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast, get_args

import numpy as np
import yaml
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic_core import ArgsKwargs, PydanticCustomError
from typing_extensions import dataclass_transform

from musls_description.config.errors import ConfigError, close_names, near_names
from musls_description.config.strict_yaml import place_of, shown

T = TypeVar("T")

LARGEST = 1e9
"""No quantity of a flight, in SI units, is larger; sums and squares of such stay finite."""

SMALLEST = 1e-12
"""Least value of what must be above 0, so that quotients stay finite."""


def _no_truth_value(value: Any) -> Any:
    """YAML reads `yes` and `on` as true, which pydantic would take for 1."""
    if isinstance(value, bool):
        raise ValueError("must be a number, not true or false")
    return value


def _not_vanishing(value: float) -> float:
    if value < SMALLEST:
        raise ValueError(f"must be at least {SMALLEST:g}")
    return value


# Bounds come before the check for truth values, so that they become a part of pydantic's own float.
Number = BeforeValidator(_no_truth_value)
"""Annotation for a field of numbers: Annotated[float, Field(gt=0.0), Number]."""

Finite = Annotated[float, Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False), Number]
"""Number of any sign, at most 1e9 in size."""

Positive = Annotated[
    float,
    Field(gt=0.0, le=LARGEST, allow_inf_nan=False),
    AfterValidator(_not_vanishing),
    Number,
]
"""Number above 0 (at least 1e-12), at most 1e9."""

NonNegative = Annotated[float, Field(ge=0.0, le=LARGEST, allow_inf_nan=False), Number]
"""Number from 0 to 1e9."""

Fraction = Annotated[float, Field(ge=0.0, le=1.0), Number]
"""Number from 0 to 1."""


def _three(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, (list, tuple)) or len(value) != 3:
        raise ValueError("must be a list of three, one for each axis")
    return value


PerAxis = BeforeValidator(_three)
"""Annotation for a field of three numbers: Annotated[tuple[float, float, float], PerAxis]."""

Vector3 = Annotated[tuple[Finite, Finite, Finite], PerAxis]
"""Three numbers, one for each axis."""

Matrix3 = tuple[Vector3, Vector3, Vector3]
"""Three rows of three numbers."""

FileName = Annotated[str, Field(pattern=r"^[\w+][\w.+-]*$", max_length=100)]
"""Name of a file or folder, without its place; not hidden, no option."""


Edges = Annotated[tuple[Positive, Positive, Positive], PerAxis]
"""Edge lengths of a box along x, y, z [m]."""


def _unit(value: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    norm = float(np.linalg.norm(value))
    if abs(norm - 1.0) > 1e-3:
        raise ValueError(f"a unit quaternion [w, x, y, z] is needed, this one has norm {norm:.3g}")
    if abs(norm - 1.0) < 1e-15:
        return value  # what was written from a unit quaternion comes back as it was
    w, x, y, z = (part / norm for part in value)
    return (w, x, y, z)


Quaternion = Annotated[tuple[Finite, Finite, Finite, Finite], AfterValidator(_unit)]
"""Orientation [w, x, y, z], a body's frame to the world."""


@dataclass_transform(kw_only_default=True, frozen_default=True)
def spec(cls: type[T]) -> type[T]:
    """Make a class a validated, frozen, keyword-only dataclass.

    Construction raises `ConfigError` (one line: field, value, what is allowed) instead of
    pydantic's own error.
    """
    unknown_refused: Any = classmethod(_known_keys)
    cls._known_keys = model_validator(mode="before")(unknown_refused)  # type: ignore[attr-defined]
    config = ConfigDict(json_schema_extra={"additionalProperties": False})
    decorate = pydantic_dataclass(frozen=True, kw_only=True, repr=False, config=config)
    new_class = cast(type[T], decorate(cls))
    validating_init = new_class.__init__

    @functools.wraps(validating_init)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            validating_init(self, *args, **kwargs)
        except ValidationError as error:
            raise ConfigError(describe(error, kwargs, new_class.__name__)) from None

    new_class.__init__ = init  # type: ignore[method-assign]  # that is what a decorator is for
    if cls.__repr__ is object.__repr__:
        new_class.__repr__ = _without_defaults  # type: ignore[method-assign]
    return new_class


def _without_defaults(self: Any) -> str:
    """Text of a specification in Python, without the fields that have their default."""
    texts = []
    for name, field in type(self).__pydantic_fields__.items():
        value = getattr(self, name)
        if field.is_required() or value != field.get_default(call_default_factory=True):
            texts.append(f"{name}={value!r}")
    return f"{type(self).__name__}({', '.join(texts)})"


def _known_keys(cls: Any, data: Any) -> Any:
    """Refuse a key that a specification does not have, and keep what it has for the message."""
    entries = (data.kwargs or {}) if isinstance(data, ArgsKwargs) else data
    names = [field.name for field in dataclasses.fields(cls)]
    for key in entries if isinstance(entries, Mapping) else ():
        if key not in names:
            below = _paths_below(cls, key, entries[key])
            given_names = {"key": key, "names": below or names}
            raise PydanticCustomError(_UNKNOWN, "unknown key", given_names)
    return data


def _paths_below(cls: Any, key: str, value: Any) -> list[str]:
    """Paths of a key in the parts of a specification, those first that have what is in its value.

    Such as system.load.mass_kg of {load: {mass: 2}}.
    """
    fitting = list[str]()
    others = list[str]()
    for name, field in cls.__pydantic_fields__.items():
        for kind in get_args(field.annotation) or (field.annotation,):
            fields = getattr(kind, "__pydantic_fields__", {})
            if key not in fields:
                continue
            annotation = fields[key].annotation
            parts = [
                part
                for part_kind in get_args(annotation) or (annotation,)
                for part in getattr(part_kind, "__dataclass_fields__", ())
            ]
            inner = [str(one) for one in value] if isinstance(value, Mapping) else []
            near = [match for one in inner for match in close_names(one, parts)[:1]]
            fitting += [f"{name}.{key}.{match}" for match in near]
            others.append(f"{name}.{key}")
    return list(dict.fromkeys([*fitting, *others]))


_UNKNOWN = "unknown_key"
_IN_YAML = {
    **dict.fromkeys(("tuple_type", "list_type"), "must be a list"),
    **dict.fromkeys(("float_parsing", "float_type"), "must be a number, without its unit"),
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), "must be a whole number"),
    "finite_number": "must be finite",
    "dataclass_type": "must be a mapping",
}
"""Kinds of errors of which pydantic speaks in words of Python."""
_MISSING = ("missing", "missing_argument", "missing_keyword_only_argument")


def describe(error: ValidationError, data: Any, where: str) -> str:
    """Say the first error of a validation in one line; of missing keys all.

    `where`: name of data that do not know theirs.
    """
    # A union reports one error per alternative; the longest path is the one that was meant.
    errors = error.errors(include_url=False)
    first = max(errors, key=lambda e: len(e["loc"]) + (e["type"] == _UNKNOWN))
    if first["type"] in _MISSING:
        return _missing([e for e in errors if e["type"] in _MISSING], data, where)
    path = _keys_of_input(first["loc"], data)
    kind = first["type"]
    if kind == _UNKNOWN:
        unknown = first["ctx"]["key"]
        if path and path[-1] == unknown:  # a kind, which pydantic names, too
            path = path[:-1]
        path = (*path, unknown)
    place, keys = place_of(data, path, where, inside=kind != _UNKNOWN)
    field = shown(".".join(map(str, keys)), 200)
    if kind == _UNKNOWN:
        names = list(first["ctx"]["names"])
        paths = [f"'{name}'" for name in names[:3] if "." in name]
        near = f"did you mean {' or '.join(paths)}?" if paths else near_names(path[-1], names)
        return f"{place}: unknown key '{field}': {near}"
    if kind == "union_tag_invalid":
        tags = [tag.strip("' ") for tag in first["ctx"]["expected_tags"].split(",")]
        tag = first["ctx"]["tag"]
        return f"{place}: {field}.kind = '{shown(tag)}': {near_names(tag, tags)}"
    if kind == "union_tag_not_found":
        return f"{place}: {field}.kind is missing or no name"
    text = _IN_YAML.get(kind, first["msg"].removeprefix("Value error, "))
    text = (text[:1].lower() + text[1:]).replace("input should", "must")
    value = first["input"]
    if isinstance(value, Mapping) or dataclasses.is_dataclass(value) or type(value) is ArgsKwargs:
        return f"{place}: {field + ': ' if field else ''}{text}"
    return f"{place}: {field + ' = ' if field else ''}{shown(repr(value))}: {text}"


def _missing(errors: Sequence[Any], data: Any, where: str) -> str:
    """All missing keys, those of each file together."""
    fields: dict[str, dict[str, None]] = {}
    for error in errors:
        path = (*_keys_of_input(error["loc"][:-1], data), error["loc"][-1])
        place, keys = place_of(data, path, where, inside=False)
        fields.setdefault(place, {})[".".join(map(str, keys))] = None
    return "; ".join(
        f"{place}: {', '.join(names)} {'is' if len(names) == 1 else 'are'} missing"
        for place, names in fields.items()
    )


def _keys_of_input(location: Sequence, data: Any) -> tuple:
    """Keep of an error's location only what the user wrote: keys and indices, not type names."""
    parts = []
    for part in location:
        in_mapping = isinstance(data, Mapping) and part in data
        in_list = isinstance(data, (list, tuple)) and isinstance(part, int) and part < len(data)
        if in_mapping or in_list:
            data = data[part]
        elif dataclasses.is_dataclass(data) and hasattr(data, str(part)):
            data = getattr(data, part)
        else:
            continue
        parts.append(part)
    return tuple(parts)


def build(cls: type[T], data: Any, where: str) -> T:
    """Build a specification from plain data; `where`: name of data that do not know theirs."""
    if not isinstance(data, Mapping):
        raise ConfigError(f"{where}: expected a mapping of {cls.__name__}, not {shown(repr(data))}")
    try:
        return adapter(cls).validate_python(data)
    except ValidationError as error:
        raise ConfigError(describe(error, data, where)) from None


adapter: Callable[[Any], TypeAdapter[Any]] = functools.cache(TypeAdapter)
"""Reader of a class from plain data, for `spec` classes and others."""


def to_data(value: Any) -> Any:
    """Turn a specification into plain mappings, lists and scalars: the inverse of `build`.

    NumPy's numbers and arrays become Python's, paths become texts.
    """
    if dataclasses.is_dataclass(value):
        if hasattr(value, "as_written"):  # some of its fields follow from others
            return to_data(value.as_written())
        return {f.name: to_data(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: to_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_data(item) for item in value]
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    return str(value) if isinstance(value, Path) else value


_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""libyaml's emitter, where it was built in, takes a third of the time and writes the same."""


def to_yaml(value: Any) -> str:
    """Write a specification (or plain data) as YAML with numbers at full precision."""
    return yaml.dump(
        to_data(value),
        Dumper=_DUMPER,
        sort_keys=False,
        allow_unicode=True,
        width=100,
        default_flow_style=None,  # what holds plain values alone stands on one line
    )
