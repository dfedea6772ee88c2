"""YAML 1.2 with plain values only: every error in one line, and every value knows where it stands.

PyYAML's safe loader with the types of YAML's core schema: true and false, null, numbers, texts,
lists and mappings, no others. What was read as a mapping knows file and line of its keys, and an
override notes itself there, so that every later error says where a value came from.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from musls_description.config.errors import ConfigError, check_regular

MAX_DEPTH = 100
"""Mappings and lists inside one another; a resolved scenario has 7, Python recurses some 300."""

MAX_VALUES = 1_000_000
"""Values of a file with all aliases written out, which could fill the memory; usual are 1000."""

MAX_DIGITS = 40
"""Of a whole number; 64 bits have 20, and no number with a fraction has more than 309."""

MAX_BYTES = 20_000_000
"""Of a specification's file; reading more would take minutes."""

RENAMED = {"wheels": "pulleys", "cable_jerked": "cable_impact"}
"""Present names of former keys and kinds of events, which files and overrides may still have."""

Key = str | int


def shown(text: str, limit: int = 60) -> str:
    """Shorten a text for a message."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


# ---------- Where a value was written


class Place(NamedTuple):
    """Where a value was written.

    Attributes:
        file: Name of the file, or of what stands for it.
        line: From 1; 0 where there is none.
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
        place: Where it was written itself.
        places: Where the value of a key was.
        lists: The same of the elements of a key's list, by key and index.
        is_file: Whether it is the whole content of a file.
    """

    def __init__(self, values: Mapping[Any, Any], place: Place) -> None:
        super().__init__(values)
        self.place, self.is_file = place, False
        self.places = dict.fromkeys(values, place)
        self.lists: dict[Any, dict[int, Place]] = {}

    def __deepcopy__(self, memo: Any) -> LocatedMapping:
        made = LocatedMapping({}, self.place)
        made.take(self)
        made.update({key: copy.deepcopy(value, memo) for key, value in self.items()})
        made.is_file = self.is_file
        return made

    def take(self, other: LocatedMapping) -> None:
        """Take over the values of another, with their places."""
        self.update(other)
        self.places.update(other.places)
        self.lists.update({key: dict(places) for key, places in other.lists.items()})


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
    place, begin = Place(where), 0
    elements: dict[int, Place] = {}  # of the list that data is
    for depth, key in enumerate(path):
        if isinstance(data, LocatedMapping):
            if data.is_file:
                place, begin = data.place, depth
            place, elements = data.places.get(key, place), data.lists.get(key, {})
        elif isinstance(key, int) and not place.override:
            place, elements = elements.get(key, place), {}
        try:
            data = data[key]
        except (LookupError, TypeError):
            break
    else:
        overrides = _overrides_in(data) if inside and not place.override else []
        overrides += [at for at in elements.values() if inside and at.override]
        if overrides:
            texts = dict.fromkeys(at.override for at in overrides)
            place = overrides[0]._replace(override=" ".join(texts))
    return str(place), tuple(path[0 if place.override else begin :])


def _overrides_in(data: Any) -> list[Place]:
    """Places of all overrides of values inside data."""
    if isinstance(data, LocatedMapping):
        own = [data.places, *data.lists.values()]
        found = [place for places in own for place in places.values() if place.override]
        return found + [place for below in data.values() for place in _overrides_in(below)]
    return [p for below in data for p in _overrides_in(below)] if isinstance(data, list) else []


# ---------- Reading


def _refuse(problem: str, node: yaml.Node) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


class _Loader(yaml.SafeLoader):
    """Safe loader of YAML's core schema, which notes lines and refuses a key given twice."""

    def __init__(self, text: str, where: str) -> None:
        super().__init__(text)
        self.where = where

    def get_single_node(self) -> yaml.Node | None:
        """Compose the only document; its aliases must not make it endless or huge."""
        node = super().get_single_node()
        if node is not None:
            _count_values(node, {}, 0)
        return node

    def mapping(self, node: yaml.MappingNode) -> Any:
        """Construct a mapping, with the place of each key."""
        made = LocatedMapping({}, self._place(node))
        yield made
        made.update(self.construct_mapping(node))
        for key_node, value in node.value:
            key = self.construct_object(key_node)
            made.places[key] = self._place(key_node)
            if isinstance(value, yaml.SequenceNode):
                made.lists[key] = {k: self._place(item) for k, item in enumerate(value.value)}

    def _place(self, node: yaml.Node) -> Place:
        return Place(self.where, node.start_mark.line + 1)

    def plain(self, node: yaml.ScalarNode) -> Any:
        """Construct a value without parts."""
        text, (kind, read) = self.construct_scalar(node), _PLAIN[node.tag.removeprefix(_TAG)]
        try:
            return read(text)
        except (ValueError, KeyError):
            raise _refuse(f"{shown(ascii(text)[1:-1])}: not {kind}", node) from None

    def other(self, node: yaml.Node) -> Any:
        """Refuse what is of no type of the core schema."""
        tag = shown(node.tag.replace(_TAG, "!!"))
        raise _refuse(f"values of the YAML type '{tag}' are not allowed", node)


def _whole(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise ValueError
    return int(text, 0) if text[1:2] in ("x", "o") else int(text)


def _float(text: str) -> float:
    return float(re.sub(r"\.(inf|nan)$", r"\1", text.lower()))


def _text(text: str) -> str:
    text.encode()  # half of a character is no text
    return text


_TAG = "tag:yaml.org,2002:"
_PLAIN: dict[str, tuple[str, Callable[[str], Any]]] = {
    "str": ("text", _text),
    "int": (f"a whole number of at most {MAX_DIGITS} digits", _whole),
    "float": ("a number", _float),
    "bool": ("true or false", lambda text: {"true": True, "false": False}[text.lower()]),
    "null": ("null", lambda text: None),
}
_Loader.yaml_constructors = {
    **{_TAG + kind: _Loader.plain for kind in _PLAIN},
    _TAG + "map": _Loader.mapping,
    _TAG + "seq": yaml.SafeLoader.construct_yaml_seq,
    None: _Loader.other,
}
_Loader.yaml_implicit_resolvers = {}
for _kind, _form, _first in (  # of YAML 1.2's core schema, and merge keys
    ("null", r"~|null|Null|NULL|", "~nN"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("float", r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", "-+."),
    ("merge", r"<<", "<"),
):
    _starts = [*_first, ""] if _kind == "null" else [*_first]
    _Loader.add_implicit_resolver(_TAG + _kind, re.compile(f"^(?:{_form})$"), _starts)


def _count_values(node: yaml.Node, counted: dict[yaml.Node, int | None], depth: int) -> int:
    """Values in a node with all aliases written out; None in `counted` while it is looked at."""
    if depth > MAX_DEPTH:
        raise _refuse(_TOO_DEEP, node)
    below = node.value if isinstance(node, yaml.CollectionNode) else []
    if isinstance(node, yaml.MappingNode):
        _check_keys([key for key, _ in below])
        below = [part for pair in below for part in pair]
    counted[node] = None
    count = 1
    for child in below:
        inside = counted[child] if child in counted else _count_values(child, counted, depth + 1)
        if inside is None:
            raise _refuse("a YAML anchor that contains an alias of itself", child)
        count += inside
    if count > MAX_VALUES:
        raise _refuse(f"more than {MAX_VALUES} values (with aliases written out)", node)
    counted[node] = count
    return count


_TOO_DEEP = f"nested more than {MAX_DEPTH} deep"


def _check_keys(keys: Sequence[yaml.Node]) -> None:
    seen: set[str] = set()
    for key in keys:
        if not isinstance(key, yaml.ScalarNode):
            raise _refuse("a key must be a plain name, not a list or mapping", key)
        if key.value in seen and key.value != "<<":
            raise _refuse(f"key '{shown(key.value)}' is given twice", key)
        seen.add(key.value)


def parse_yaml(text: str, where: str) -> Any:
    """Parse YAML text; what was parsed lately, as in a sweep, is copied."""
    return copy.deepcopy(_parsed(text, where))


@functools.lru_cache(maxsize=32)
def _parsed(text: str, where: str) -> Any:
    if len(text) > MAX_BYTES:
        raise ConfigError(f"{where}: larger than {MAX_BYTES // 1_000_000} MB")
    line, loader = 0, None
    try:
        loader = _Loader(text, where)
        data = loader.get_single_data()
        if isinstance(data, LocatedMapping):
            data.is_file, data.place = True, Place(where)
        return data
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, reason = mark.line + 1 if mark else 0, error.problem or "not valid YAML"
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        reason = f"not valid YAML: a character that is not text, #x{error.character:04x}"
    except RecursionError:
        reason = _TOO_DEEP
    # PyYAML's scanner lets some through, e.g. chr() of \UFFFFFFFF or the digits of %YAML 1.111...
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        reason = f"not valid YAML: {shown(str(error).partition(chr(10))[0])}"
    raise ConfigError(f"{Place(where, line or (loader.line + 1 if loader else 0))}: {reason}")


def read_yaml(path: Path) -> Any:
    """Read a YAML file."""
    return parse_yaml(read_text(path), str(path))


def read_json(path: Path) -> Any:
    """Read a JSON file."""
    try:
        return json.loads(read_text(path))
    except RecursionError:
        reason = _TOO_DEEP
    except ValueError as error:
        if isinstance(error, ConfigError):
            raise
        reason = f"not valid JSON: {error}"
    raise ConfigError(f"{shown(str(path), 200)}: {reason}")


def read_text(path: Path) -> str:
    """Read a UTF-8 text file."""
    name = shown(str(path), 200)
    try:
        check_regular(path)
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise ConfigError(f"{name}: no such file") from None
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}") from None
    except OSError as error:
        raise ConfigError(f"{name}: cannot be read: {error.strerror or error}") from None
    except ValueError:  # a NUL in the name
        raise ConfigError(f"{name}: no such file") from None
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{name}: larger than {MAX_BYTES // 1_000_000} MB")
    try:
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{name}, line {line}: cannot be read: not UTF-8 text") from None


def is_file(path: Path | str) -> bool:
    """Whether there is such a file; no for names that are too long or hold a NUL."""
    return os.path.isfile(path)  # Path.is_file raises for such names


def why_no_file(path: Path) -> str:
    """Why a path is not that of a file; a pipe or links in a circle are there."""
    return "not a file that can be read" if os.path.lexists(path) else "no such file"


def present_key(key: Any, where: str) -> Any:
    """Present name of a key; a former one gets a note that names its place."""
    if key not in RENAMED:
        return key
    warnings.warn(f"{where}: {key} is called {RENAMED[key]} now", FutureWarning, stacklevel=2)
    return RENAMED[key]


# ---------- Overrides


class Override(NamedTuple):
    """One `key.path=value`, with the text as the user gave it.

    A list without an index in its path stands for all its elements.

    Attributes:
        origin: What messages call it: "--set" of the command line, "override" from Python.
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
        where = f"{origin} {shown(text)}"
        path = tuple(present_key(part, where) for part in key.strip().split("."))
        if len(path) > MAX_DEPTH:
            raise ConfigError(f"{where}: more than {MAX_DEPTH} nested keys")
        return cls(path, text, origin)

    def apply(self, data: LocatedMapping) -> None:
        """Set the value in data, and note there that it was set."""
        key, _, text = self.text.partition("=")
        place = Place(data.place.file, override=str(self))
        value = located(parse_yaml(text, f"{self.origin} {shown(key.strip())}"), place)
        self._set(data, self.path, value, place, {})

    def _set(
        self, data: Any, path: Sequence[str], value: Any, place: Place, places: dict[Any, Place]
    ) -> None:
        """Set a value below some data; `places` are those of its elements, if it is a list."""
        first, *below = path
        key: Key = first
        if isinstance(data, list):
            if not is_index(first):  # all elements
                for item in data:
                    self._set(item, path, value, place, {})
                return
            key = int(first)
            if key >= len(data):
                raise ConfigError(
                    f"{self}: index {first} does not exist: the list has {len(data)} elements, "
                    "counted from 0"
                )
        elif isinstance(data, LocatedMapping):
            places = data.places
            if below and data.get(key) is None:
                data[key], places[key] = LocatedMapping({}, place), place
        else:
            raise ConfigError(f"{self}: a plain value has no keys below it")
        if below:
            lists = data.lists if isinstance(data, LocatedMapping) else {}
            self._set(data[key], below, value, place, lists.setdefault(key, {}))
        else:
            data[key], places[key] = copy.deepcopy(value), place

    def __str__(self) -> str:
        return f"{self.origin} {shown(self.text, 120)}"


def is_index(key: str) -> bool:
    """Whether a part of an override's path picks an element of a list."""
    return key.isascii() and key.isdigit() and len(key) < 10
