"""YAML 1.2 with plain values only: every error in one line, and every value knows where it stands.

PyYAML's safe loader with the forms of YAML 1.2's core schema. What was read as a mapping knows file
and line of its keys, and an override notes itself there, so that every later error says where a
value came from.
"""

from __future__ import annotations

import copy
import functools
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from musls_description.config.errors import ConfigError, check_regular

Key = str | int


def shown(text: str, limit: int = 60) -> str:
    """Shorten a text for a message."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


# ---------- Where a value was written


class Place(NamedTuple):
    """Location of a value: file and line, or override.

    Attributes:
        file: Name of the file, or of what stands for it.
        line: Line, from 1; 0 where there is none.
        override: "--set key=value" that set it; "" for what the file holds.
    """

    file: str
    line: int = 0
    override: str = ""

    def __str__(self) -> str:
        name = shown(self.file, 200)
        if self.override:
            return f"{name} {self.override}"
        return f"{name}, line {self.line}" if self.line else name


class LocatedMapping(dict[Any, Any]):
    """A mapping that knows where its values were written.

    Attributes:
        place: Place in the file of the mapping.
        places: Place in the file of each key's value.
        is_file: Whether it is the whole content of a file.
    """

    def __init__(self, values: Mapping[Any, Any], place: Place) -> None:
        super().__init__(values)
        self.place = place
        self.is_file = False
        self.places = dict.fromkeys(values, place)

    def __deepcopy__(self, memo: dict[int, Any]) -> LocatedMapping:
        """Copy the values; keys and places do not change."""
        twin = memo[id(self)] = LocatedMapping({}, self.place)
        twin.update((key, copy.deepcopy(value, memo)) for key, value in self.items())
        twin.places = dict(self.places)
        twin.is_file = self.is_file
        return twin

    def take(self, other: LocatedMapping) -> None:
        """Take over the values of another, with their places."""
        self.update(other)
        self.places.update(other.places)


def located(data: Any, place: Place) -> Any:
    """Copy plain data, all of which was written at one place."""
    if isinstance(data, Mapping):
        return LocatedMapping({key: located(data[key], place) for key in data}, place)
    return [located(value, place) for value in data] if isinstance(data, (list, tuple)) else data


def place_of(
    data: Any, path: Sequence[Key], where: str, *, inside: bool = True
) -> tuple[str, tuple[Key, ...]]:
    """Say where the value at a path was written, and what its path is in that file.

    Of what is not there, it is the place of the deepest part that is. `inside`: overrides of parts
    of the value count, too. `where` is the name of data that do not know theirs.
    """
    place = Place(where)
    begin = 0
    for depth, key in enumerate(path):
        if isinstance(data, LocatedMapping):
            if data.is_file:
                place = data.place
                begin = depth
            place = data.places.get(key, place)
        try:
            data = data[key]
        except (LookupError, TypeError):
            break
        if isinstance(key, int) and isinstance(data, LocatedMapping):
            place = data.place
    else:
        overrides = _overrides_in(data) if inside and not place.override else []
        if overrides:
            texts = dict.fromkeys(at.override for at in overrides)
            place = overrides[0]._replace(override=" ".join(texts))
    return str(place), tuple(path[0 if place.override else begin :])


def _overrides_in(data: Any) -> list[Place]:
    """Places of all overrides of values inside data."""
    if isinstance(data, LocatedMapping):
        own = [place for place in data.places.values() if place.override]
        return own + [place for below in data.values() for place in _overrides_in(below)]
    return [p for below in data for p in _overrides_in(below)] if isinstance(data, list) else []


# ---------- Reading


DEEPEST = 50
MOST_VALUES = 1_000_000
LONGEST_NUMBER = 100
"""Levels of a text, its values with those that aliases repeat, and characters of a whole number."""

_TAG = "tag:yaml.org,2002:"
_FORMS = {  # of YAML 1.2's core schema, and merge keys, with the characters that they begin with
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", [*"tTfF"]),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", [*"-+0123456789"]),
    "float": (
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        [*"-+.0123456789"],
    ),
    "merge": (r"<<", ["<"]),
}


class _Loader(yaml.SafeLoader):
    """Safe loader of YAML's core schema, which notes lines and refuses a key given twice."""

    def __init__(self, text: str, where: str) -> None:
        super().__init__(text)
        self.where = where

    def construct_document(self, node: yaml.Node) -> Any:
        """Construct the whole text, if that has an end."""
        _count(node, (), {})
        return super().construct_document(node)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        """Construct a value with all that is in it; every error knows its line."""
        try:
            return super().construct_object(node, deep=True)
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            raise _wrong(node, f"{type(error).__name__}: {error}") from None

    def scalar(self, node: yaml.Node) -> Any:
        """Construct a plain value, which has the form of its tag."""
        kind = node.tag.removeprefix(_TAG)
        text = str(self.construct_scalar(node))
        if kind == "str":
            if any("\ud800" <= c <= "\udfff" for c in text):
                raise _wrong(node, f"{shown(ascii(text))}: half of a character (a surrogate)")
            return text
        if not re.fullmatch(_FORMS[kind][0], text):
            raise _wrong(node, f"{shown(repr(text))}: not of the form of {kind}")
        if kind == "int" and len(text) > LONGEST_NUMBER:
            raise _wrong(node, f"a whole number of {len(text)} digits, at most {LONGEST_NUMBER}")
        if kind == "int":
            return int(text, 0 if text[1:2] in ("x", "o") else 10)
        if kind == "float":
            return self.construct_yaml_float(node)
        return None if kind == "null" else text.lower() == "true"

    def mapping(self, node: yaml.Node) -> Any:
        """Construct a mapping, with the place of each key."""
        if not isinstance(node, yaml.MappingNode):
            raise _wrong(node, f"expected a mapping, but found a {node.id}")
        keys: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _wrong(key, "found unhashable key: a key is a plain value")
            if key.value in keys and key.value != "<<":
                raise _wrong(key, f"key '{shown(key.value)}' is given twice")
            keys.add(key.value)
        mapping = LocatedMapping({}, Place(self.where, node.start_mark.line + 1))
        yield mapping
        mapping.update(self.construct_mapping(node))
        for key, _ in node.value:
            place = Place(self.where, key.start_mark.line + 1)
            mapping.places[self.construct_object(key)] = place


def _wrong(node: yaml.Node, problem: str) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _count(node: yaml.Node, above: tuple[yaml.Node, ...], counts: dict[yaml.Node, int]) -> int:
    """Count the values of a node, each alias again; refuse one that never ends, or is too large."""
    if node in above:
        raise _wrong(node, "contains itself by an alias")
    if len(above) > DEEPEST:
        raise _wrong(node, f"more than {DEEPEST} levels")
    if node not in counts:
        parts = [] if isinstance(node, yaml.ScalarNode) else node.value
        if isinstance(node, yaml.MappingNode):
            parts = [part for pair in parts for part in pair]
        counts[node] = 1 + sum(_count(part, (*above, node), counts) for part in parts)
        if counts[node] > MOST_VALUES:
            raise _wrong(node, f"more than {MOST_VALUES} values (aliases repeat theirs)")
    return counts[node]


_Loader.yaml_constructors = {
    _TAG + "map": _Loader.mapping,
    _TAG + "seq": yaml.SafeLoader.construct_yaml_seq,
    **dict.fromkeys(
        (_TAG + kind for kind in ("str", "null", "bool", "int", "float")), _Loader.scalar
    ),
    None: yaml.SafeLoader.construct_undefined,
}
_Loader.yaml_implicit_resolvers = {}
for _kind, (_form, _first) in _FORMS.items():
    _Loader.add_implicit_resolver(_TAG + _kind, re.compile(f"^(?:{_form})$"), _first)


def parse_yaml(text: str, where: str) -> Any:
    """Parse YAML text; what was parsed lately, as in a sweep, is copied."""
    return copy.deepcopy(_parsed(text, where))


@functools.lru_cache(maxsize=32)
def _parsed(text: str, where: str) -> Any:
    try:
        data = _Loader(text, where).get_single_data()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 0
        if isinstance(error, yaml.reader.ReaderError):  # a character that no text has
            line = 1 + text.count("\n", 0, error.position)
        problem = getattr(error, "problem", None) or f"not valid YAML: {error}".partition("\n")[0]
        if isinstance(error, RecursionError):
            problem = f"more than {DEEPEST} levels"
        place = Place(where, line)
        raise ConfigError(f"{place}: {shown(problem, 120)}") from None
    if isinstance(data, LocatedMapping):
        data.is_file = True
        data.place = Place(where)
    return data


def read_yaml(path: Path) -> Any:
    """Read a YAML file."""
    return parse_yaml(read_text(path), str(path))


def read_json(path: Path) -> Any:
    """Read a JSON file."""
    text = read_text(path)
    try:
        return json.loads(text)
    except (RecursionError, ValueError) as error:
        raise ConfigError(f"{shown(str(path), 200)}: not valid JSON: {error}") from None


def read_text(path: Path) -> str:
    """Read a UTF-8 text file."""
    name = shown(str(path), 200)
    try:
        check_regular(path)
        return path.read_text(encoding="utf-8")
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{name}, line {line}: cannot be read: not UTF-8 text") from None
    except (FileNotFoundError, ValueError):  # a NUL in the name
        raise ConfigError(f"{name}: no such file") from None
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read: {error.strerror or error}") from None


# ---------- Overrides


class Override(NamedTuple):
    """One `key.path=value`, with the text as the user gave it.

    A list without an index in its path stands for all its elements. A kind may stand in the path,
    as in the reference of all keys; in a list it stands for the elements of that kind.

    Attributes:
        origin: Name in messages: "--set" of the command line, "override" from Python.
    """

    path: tuple[str, ...]
    text: str
    origin: str = "--set"

    @classmethod
    def parse(cls, text: str, origin: str = "--set") -> Override:
        """Read `key.path=value`."""
        key, equals, _ = text.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"{origin} {shown(text)}: expected key.path=value")
        path = tuple(key.strip().split("."))
        if len(path) > DEEPEST:
            raise ConfigError(f"{origin} {shown(text)}: more than {DEEPEST} levels")
        return cls(path, text, origin)

    def apply(self, data: LocatedMapping) -> None:
        """Set the value in data, and note there that it was set."""
        key, _, text = self.text.partition("=")
        place = Place(data.place.file, override=str(self))
        value = located(parse_yaml(text, f"{self.origin} {shown(key.strip())}"), place)
        self._set(data, self.path, value, place)

    def _set(self, data: Any, path: Sequence[str], value: Any, place: Place) -> None:
        first, *below = path
        key: Key = first
        if isinstance(data, list):
            if not first.isdecimal():
                for index in range(len(data)):
                    _write_out_kind(data, index, place)
                of_kind = [item for item in data if below and _kind_of(item) == first]
                for item in of_kind or data:
                    self._set(item, path, value, place)
                return
            key = int(first)
            if key >= len(data):
                raise ConfigError(
                    f"{self}: index {shown(first)} does not exist: the list has {len(data)} "
                    "elements, counted from 0"
                )
        elif not isinstance(data, LocatedMapping):
            raise ConfigError(f"{self}: a plain value has no keys below it")
        elif below and first not in data and _kind_of(data) == first:
            return self._set(data, below, value, place)
        elif below and data.get(key) is None:
            data[key] = LocatedMapping({}, place)
            data.places[key] = place
        if below:
            _write_out_kind(data, key, place)
            self._set(data[key], below, value, place)
        else:
            data[key] = copy.deepcopy(value)
        if isinstance(data, LocatedMapping) and all(part.isdecimal() for part in below):
            data.places[key] = place  # also of a list, an element of which was set

    def __str__(self) -> str:
        return f"{self.origin} {shown(self.text, 120)}"


def _kind_of(data: Any) -> Any:
    return data.get("kind") if isinstance(data, LocatedMapping) else None


def _write_out_kind(data: Any, key: Key, place: Place) -> None:
    """Replace a text that stands for a kind alone by the mapping that it stands for."""
    if isinstance(data[key], str):
        data[key] = LocatedMapping({"kind": data[key]}, place)
