"""Strict YAML: plain values only, every error in one line that names file and line.

PyYAML's safe loader with fewer types (no dates, no numbers in base 8 or 60, no sets or binary data)
and with limits (nesting, number of values with all aliases written out, digits of a number), so
that no text ends in a traceback or fills the memory.
"""

from __future__ import annotations

import copy
import functools
import json
import math
import os
import re
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from musls_description.config.errors import ConfigError, check_regular

MAX_DEPTH = 100
"""Mappings and lists inside one another; a resolved scenario has 7."""

MAX_VALUES = 1_000_000
"""Values of a file with all aliases written out; a resolved scenario has some 1000."""

MAX_BYTES = 20_000_000
"""Of a specification's file; reading more would take minutes."""

MAX_DIGITS = 40
"""Of a whole number; 64 bits have 20."""

RENAMED = {"wheels": "pulleys", "cable_jerked": "cable_impact"}
"""Present names of former keys and kinds of events, which files and overrides may still have."""

_TAG = "tag:yaml.org,2002:"
_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")


def _refuse(problem: str, node: yaml.Node) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def shown(text: str, limit: int = 60) -> str:
    """Shorten a text for a message."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


class _StrictLoader(yaml.SafeLoader):
    """Safe loader that reads 1e-3 as a number and refuses a key given twice."""

    def get_single_node(self) -> yaml.Node | None:
        """Compose the only document; its aliases must not make it endless or huge."""
        node = super().get_single_node()
        if node is not None:
            _count_values(node, {}, 0)
        return node


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


def _construct_text(loader: _StrictLoader, node: yaml.Node) -> Any:
    # YAML 1.1 reads 1e-3 (no dot) as text; everybody means the number.
    text = loader.construct_scalar(node)
    if any("\ud800" <= c <= "\udfff" for c in text):  # "\uD800" in quotes
        raise _refuse(f"{text!a:.60}: half of a character is not text", node)
    if node.style is None and any(c in text for c in "eE"):
        with suppress(ValueError):
            return number if math.isfinite(number := float(text)) else text
    return text


def _construct_number(loader: _StrictLoader, node: yaml.Node) -> int | float:
    text = loader.construct_scalar(node)
    whole = node.tag == _TAG + "int"
    if whole and len(text) > MAX_DIGITS:
        raise _refuse(f"{shown(text, 20)}: a whole number has at most {MAX_DIGITS} digits", node)
    if _BASE_60.fullmatch(text):
        raise _refuse(
            f"{shown(text)}: YAML takes this for a number in base 60; put text in quotes", node
        )
    try:
        return int(text.replace("_", ""), 0) if whole else loader.construct_yaml_float(node)
    except ValueError:
        kind = "whole number (write it without leading zeros)" if whole else "number"
        raise _refuse(f"{shown(text)}: not a {kind}", node) from None


def _construct_truth(loader: _StrictLoader, node: yaml.Node) -> bool:
    text = loader.construct_scalar(node)
    if text.lower() not in loader.bool_values:
        raise _refuse(f"{shown(text)}: not true or false", node)
    truth: bool = loader.bool_values[text.lower()]
    return truth


def _construct_unknown(loader: _StrictLoader, node: yaml.Node) -> Any:
    tag = node.tag.replace(_TAG, "!!")
    raise _refuse(f"values of the YAML type '{shown(tag)}' are not allowed", node)


_StrictLoader.yaml_constructors = {
    _TAG + "map": yaml.SafeLoader.construct_yaml_map,
    _TAG + "seq": yaml.SafeLoader.construct_yaml_seq,
    _TAG + "str": _construct_text,
    _TAG + "value": _construct_text,  # a lone =
    _TAG + "int": _construct_number,
    _TAG + "float": _construct_number,
    _TAG + "bool": _construct_truth,
    _TAG + "null": yaml.SafeLoader.construct_yaml_null,
    None: _construct_unknown,
}
# Dates stay text: no specification has any, and 2024-99-99 is one for YAML alone.
_StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in resolvers if tag != _TAG + "timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _load(text: str, where: str, load: Callable[[_StrictLoader], Any]) -> Any:
    """Apply one of the loader's functions to a text; its errors become one line."""
    if len(text) > MAX_BYTES:
        raise ConfigError(f"{where}: larger than {MAX_BYTES // 1_000_000} MB")
    line, loader = 0, None
    try:
        loader = _StrictLoader(text)
        return load(loader)
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
    line = line or (loader.line + 1 if loader else 0)
    place = f"{where}, line {line}" if line else where
    raise ConfigError(f"{place}: {reason}")


def parse_yaml(text: str, where: str) -> Any:
    """Parse YAML text; what was parsed lately, as in a sweep, is copied."""
    return copy.deepcopy(_parsed(text, where))


@functools.lru_cache(maxsize=32)
def _parsed(text: str, where: str) -> Any:
    return _load(text, where, lambda loader: loader.get_single_data())


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


def line_of(text: str, path: Sequence[str | int]) -> tuple[int | None, int]:
    """Line (from 1) of a path of keys in YAML text, and number of leading parts that are there.

    The line is that of the deepest part that is there, None without any. What stands once for all
    elements of a list, without an index, is found too.
    """
    node = _composed(text)
    line, there = None, 0
    for count, part in enumerate(path, start=1):
        if isinstance(node, yaml.MappingNode):
            _StrictLoader("").flatten_mapping(node)  # merged keys before its own
            found = [
                pair
                for pair in node.value
                if str(part) in (pair[0].value, RENAMED.get(pair[0].value))
            ]
            if not found:
                if isinstance(part, int):  # one mapping that holds for all elements
                    there = count
                    continue
                break
            key, node = found[-1]
            line = key.start_mark.line + 1
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            if part >= len(node.value):
                break
            node = node.value[part]
            line = node.start_mark.line + 1
        else:
            break
        there = count
    return line, there


@functools.lru_cache(maxsize=4)
def _composed(text: str) -> yaml.Node | None:
    """Nodes of a text, None for what is no YAML; kept, since a message may ask for many places."""
    try:
        return _load(text, "", lambda loader: loader.get_single_node())
    except ConfigError:
        return None


# ---------- Where a value came from: its own file, a system's file or an override, for the error

Key = str | int


class Place(NamedTuple):
    """Source of a value: file and line, or override.

    Attributes:
        text: "file, line 3", "file --set key=value", or a class's name.
        skip: Leading keys of the path that the file does not know, e.g. 1 for the `system` of a
            scenario that names a system file.
    """

    text: str
    skip: int


class SourceFile(NamedTuple):
    """A file, by its name for people, and where its content stands in the data.

    Attributes:
        below: Keys below which it stands; () for all.
        text: YAML text; None leaves the line out.
    """

    below: tuple[Key, ...]
    name: str
    text: str | None

    def place(self, path: Sequence[Key]) -> str:
        """Name and line of the value at a path."""
        line, _ = self._line(path)
        name = shown(self.name, 200)
        return name if line is None else f"{name}, line {line}"

    def holds(self, path: Sequence[Key]) -> bool:
        """Whether the value at a path stands in the file (as far as its text is known)."""
        return self._line(path)[1] + len(self.below) >= len(path)

    def _line(self, path: Sequence[Key]) -> tuple[int | None, int]:
        return line_of(self.text, path[len(self.below) :]) if self.text else (None, 0)


class Override(NamedTuple):
    """One `key.path=value`, with the text as the user gave it.

    A list without an index in its path stands for all its elements.

    Attributes:
        origin: What messages call it: "--set" of the command line, "override" from Python.
    """

    path: tuple[str, ...]
    text: str
    origin: str = "--set"

    def reaches(self, path: Sequence[Key]) -> bool | None:
        """Whether it set a value at a path of the data.

        True for the value there or one above it, False for one below it, None for another.
        """
        mine = list(self.path)
        for part in path:
            if not mine:
                return True
            if isinstance(part, int) and not is_index(mine[0]):
                continue  # all elements of a list
            if mine[0] != str(part):
                return None
            mine.pop(0)
        return not mine

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

    def apply(self, data: dict[str, Any]) -> None:
        """Set the value in plain data."""
        key, _, value = self.text.partition("=")
        self._set(data, self.path, parse_yaml(value, f"{self.origin} {shown(key.strip())}"))

    def _set(self, data: Any, path: tuple[str, ...], value: Any) -> None:
        first, *below = path
        key: Key = first
        if isinstance(data, list):
            if not is_index(first):  # all elements
                for item in data:
                    self._set(item, path, value)
                return
            key = int(first)
            if key >= len(data):
                raise ConfigError(
                    f"{self}: index {first} does not exist: the list has {len(data)} elements, "
                    "counted from 0"
                )
        elif not isinstance(data, dict):
            raise ConfigError(f"{self}: a plain value has no keys below it")
        elif below and data.get(key) is None:
            data[key] = {}
        if below:
            self._set(data[key], tuple(below), value)
        else:
            data[key] = copy.deepcopy(value)

    def __str__(self) -> str:
        return f"{self.origin} {shown(self.text, 120)}"


def is_index(key: str) -> bool:
    """Whether a part of an override's path picks an element of a list."""
    return key.isascii() and key.isdigit() and len(key) < 10


@dataclass(frozen=True)
class Sources:
    """Files and overrides that some data was put together from.

    Attributes:
        files: The first one that fits counts, so the special ones come before the general one.
        overrides: In the order in which they were applied.
    """

    files: Sequence[SourceFile]
    overrides: Sequence[Override] = ()

    def place(self, path: Sequence[Key], *, whole: bool = True) -> Place:
        """Say where the value at a path came from.

        `whole` says whether values below it count too; not for a key that is missing or unknown.
        """
        file = next(f for f in self.files if tuple(path[: len(f.below)]) == f.below)
        reach = [(override, override.reaches(path)) for override in self.overrides]
        setting = [override for override, found in reach if found][-1:]
        if whole or not file.holds(path):
            setting += [override for override, found in reach if found is False]
        if setting:
            words = "".join(f" {override}" for override in setting)
            return Place(shown(self.files[-1].name, 200) + words, 0)
        return Place(file.place(path), len(file.below))
