"""Strict, typed configuration: validated frozen dataclasses read from YAML.

Every specification of the project (system, scenario, sweep) is a frozen dataclass made with
`spec`. Building one from Python or from a file checks every field; what is wrong ends in a
`ConfigError` of one line that names the place, the value and what is allowed.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as pydantic_dataclass
from pydantic_core import ArgsKwargs
from typing_extensions import dataclass_transform

from musls_description.errors import ConfigError
from musls_description.names import near_names

T = TypeVar("T")

Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Vector3 = tuple[Finite, Finite, Finite]
Matrix3 = tuple[Vector3, Vector3, Vector3]


def _box_edges(edges: Vector3) -> Vector3:
    if min(edges) <= 0.0:
        raise ValueError(f"all three edges must be > 0, not {list(edges)}")
    return edges


Edges = Annotated[Vector3, AfterValidator(_box_edges)]
"""Edge lengths of a box along x, y, z [m]."""


@dataclass_transform(kw_only_default=True, frozen_default=True)
def spec(cls: type[T]) -> type[T]:
    """Make a class a validated, frozen, keyword-only dataclass.

    Construction raises `ConfigError` (one line: field, value, what is allowed) instead of
    pydantic's own error.
    """
    made = pydantic_dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))(cls)
    validating_init = made.__init__

    @functools.wraps(validating_init)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            validating_init(self, *args, **kwargs)
        except ValidationError as error:
            raise ConfigError(describe(error, made, kwargs, made.__name__)) from None

    made.__init__ = init  # type: ignore[method-assign]
    return made


def describe(
    error: ValidationError,
    root: type,
    data: Any,
    where: str,
    line_of: Callable[[Sequence], int | None] = lambda path: None,
) -> str:
    """Say the first error of a validation in one line.

    Args:
        error: What pydantic found.
        root: Dataclass that was to be built; its fields give the near names.
        data: What it was to be built from.
        where: File, or name of the class.
        line_of: Line number of a path of keys in the file, None where unknown.
    """
    # A union reports one error per alternative; the longest path is the one that was meant.
    # Of equals an unknown key says most: the missing one is probably just misspelt.
    unknown = ("unexpected_keyword_argument", "extra_forbidden")
    first = max(error.errors(), key=lambda e: (len(e["loc"]), e["type"] in unknown))
    path = _keys_of_input(first["loc"], data)
    line = line_of(path)
    place = where if line is None else f"{where}, line {line}"
    field = ".".join(str(part) for part in path)
    kind, shown = first["type"], first["input"]
    if kind in unknown:
        names = _field_names(root, first["loc"][:-1])
        return f"{place}: unknown key '{field}': {near_names(str(path[-1]), names)}"
    if kind in ("missing", "missing_argument", "missing_keyword_only_argument"):
        return f"{place}: {'.'.join(map(str, (*path, first['loc'][-1])))} is missing"
    if kind == "union_tag_invalid":
        tags = [tag.strip("' ") for tag in first["ctx"]["expected_tags"].split(",")]
        tag = first["ctx"]["tag"]
        return f"{place}: {field}.kind = '{tag}': {near_names(tag, tags)}"
    text = first["msg"].removeprefix("Value error, ")
    text = text[:1].lower() + text[1:]
    if isinstance(shown, Mapping) or dataclasses.is_dataclass(shown) or type(shown) is ArgsKwargs:
        return f"{place}: {field + ': ' if field else ''}{text}"
    return f"{place}: {field} = {_short(shown)}: {text}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _keys_of_input(location: Sequence, data: Any) -> tuple:
    """Keep of an error's location only what the user wrote: keys and indices, not type names."""
    kept = []
    for part in location:
        in_mapping = isinstance(data, Mapping) and part in data
        in_list = isinstance(data, (list, tuple)) and isinstance(part, int) and part < len(data)
        if in_mapping or in_list:
            data = data[part]
        elif dataclasses.is_dataclass(data) and hasattr(data, str(part)):
            data = getattr(data, part)
        else:
            continue
        kept.append(part)
    return tuple(kept)


def _field_names(root: type, path: Sequence) -> list[str]:
    """Field names of the dataclass at a path below `root` (of all candidates in a union)."""
    kinds = [root]
    for part in path:
        if isinstance(part, int):
            continue
        below = []
        for kind in kinds:
            if dataclasses.is_dataclass(kind) and part in kind.__pydantic_fields__:
                below += _dataclasses_in(kind.__pydantic_fields__[part].annotation)
            elif dataclasses.is_dataclass(kind) and part == _tag(kind):
                below.append(kind)
        kinds = below or kinds
    return sorted({f.name for kind in kinds for f in dataclasses.fields(kind)})


def _tag(kind: type) -> str | None:
    """Value of the discriminating `kind` field of a union member, None where it has none."""
    for field in dataclasses.fields(kind):
        if field.name == "kind" and isinstance(field.default, str):
            return field.default
    return None


def _dataclasses_in(annotation: Any) -> list[type]:
    if dataclasses.is_dataclass(annotation):
        return [annotation]
    found: list[type] = []
    for part in getattr(annotation, "__args__", ()):
        found += _dataclasses_in(part)
    return found


# ------------------------------------------------------------------------------------- YAML


class _StrictLoader(yaml.SafeLoader):
    """Safe loader that reads 1e-3 as a number and refuses a key given twice."""


def _construct_mapping(loader: _StrictLoader, node: yaml.MappingNode) -> dict:
    seen: dict = {}
    for key_node, _ in node.value:
        key = key_node.value
        if key in seen and key != "<<":
            raise yaml.constructor.ConstructorError(
                None, None, f"key '{key}' is given twice", key_node.start_mark
            )
        seen[key] = True
    loader.flatten_mapping(node)
    return {
        loader.construct_object(k, True): loader.construct_object(v, True) for k, v in node.value
    }


_StrictLoader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)


def _construct_scalar(loader: _StrictLoader, node: yaml.ScalarNode) -> Any:
    # YAML 1.1 reads 1e-3 (no dot) as text; everybody means the number.
    text = loader.construct_scalar(node)
    if node.style is None and any(c in text for c in "eE"):
        try:
            number = float(text)
        except ValueError:
            return text
        if math.isfinite(number):
            return number
    return text


_StrictLoader.add_constructor("tag:yaml.org,2002:str", _construct_scalar)


def parse_yaml(text: str, where: str) -> Any:
    """Parse YAML text.

    Raises:
        ConfigError: The text is no YAML, or gives a key twice; names file and line.
    """
    try:
        return yaml.load(text, Loader=_StrictLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{where}{line}: {error.problem or 'not valid YAML'}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{where}: not valid YAML: {str(error).splitlines()[0]}") from None


def read_yaml(path: Path) -> Any:
    """Read a YAML file.

    Raises:
        ConfigError: File missing, unreadable or not YAML.
    """
    return parse_yaml(read_text(path), str(path))


def read_text(path: Path) -> str:
    """Read a UTF-8 text file.

    Raises:
        ConfigError: File missing, unreadable or not text.
    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None


def _node_line(text: str, path: Sequence) -> int | None:
    """Line (from 1) of the deepest part of a path of keys that stands in the YAML text."""
    try:
        node = yaml.compose(text, Loader=_StrictLoader)
    except yaml.YAMLError:
        return None
    line = None
    for part in path:
        if isinstance(node, yaml.MappingNode):
            found = [(k, v) for k, v in node.value if k.value == str(part)]
            if not found:
                continue
            key, node = found[0]
            line = key.start_mark.line + 1
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            if part >= len(node.value):
                break
            node = node.value[part]
            line = node.start_mark.line + 1
    return line


def build(cls: type[T], data: Any, where: str, text: str | None = None) -> T:
    """Build a specification from plain data.

    Args:
        cls: Class made with `spec`.
        data: Mapping of its fields, as YAML gives it.
        where: Name of the file (or of what else the data came from) for the error.
        text: The YAML text, if the error is to name the line.

    Raises:
        ConfigError: Unknown, missing or invalid field.
    """
    if not isinstance(data, Mapping):
        raise ConfigError(f"{where}: expected a mapping of {cls.__name__}, not {_short(data)}")
    try:
        return _adapter(cls).validate_python(data)
    except ValidationError as error:
        line_of = (lambda path: _node_line(text, path)) if text else (lambda path: None)
        raise ConfigError(describe(error, cls, data, where, line_of)) from None


@functools.cache
def _adapter(cls: type[T]) -> TypeAdapter[T]:
    return TypeAdapter(cls)


def to_data(value: Any) -> Any:
    """Turn a specification into plain mappings, lists and scalars: the inverse of `build`."""
    if dataclasses.is_dataclass(value):
        return {f.name: to_data(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: to_data(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_data(item) for item in value]
    return value


class _Dumper(yaml.SafeDumper):
    pass


def _represent_list(dumper: _Dumper, items: list) -> yaml.Node:
    flow = all(not isinstance(i, (dict, list)) for i in items)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=flow)


_Dumper.add_representer(list, _represent_list)


def to_yaml(value: Any) -> str:
    """Write a specification (or plain data) as YAML with numbers at full precision."""
    return yaml.dump(to_data(value), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
