"""Where the values of a specification came from: files and overrides, for the place in an error.

A scenario is put together from its own file, a system's file and overrides on the command line.
An error names the file or override that the wrong value came from.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from musls_description.errors import ConfigError
from musls_description.strict_yaml import MAX_DEPTH, line_of, parse_yaml, shown

Key = str | int


class Place(NamedTuple):
    """Where a value came from.

    Attributes:
        text: "file, line 3", "file --set key=value", or a class's name.
        skip: Leading keys of the path that the file does not know, e.g. 1 for the `system` of a
            scenario that names a system file.
    """

    text: str
    skip: int


class SourceFile(NamedTuple):
    """A file and where its content stands in the data.

    Attributes:
        below: Keys below which it stands; () for all.
        name: For people.
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
    """One `key.path=value`.

    Attributes:
        path: Keys and indices; a list without an index stands for all its elements.
        text: As the user gave it.
    """

    path: tuple[str, ...]
    text: str

    def reaches(self, path: Sequence[Key]) -> bool | None:
        """Whether it set a value at a path of the data.

        Returns:
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
    def parse(cls, text: str) -> Override:
        """Read `key.path=value`.

        Raises:
            ConfigError: There is no key or no equals sign.
        """
        key, equals, _ = text.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--set {shown(text)}: expected key.path=value")
        path = tuple(key.strip().split("."))
        if len(path) > MAX_DEPTH:
            raise ConfigError(f"--set {shown(text)}: more than {MAX_DEPTH} nested keys")
        return cls(path, text)

    def apply(self, data: dict[str, Any]) -> None:
        """Set the value in plain data.

        Raises:
            ConfigError: The value is no YAML, or the path leads nowhere.
        """
        key, _, value = self.text.partition("=")
        self._set(data, self.path, parse_yaml(value, f"--set {shown(key.strip())}"))

    def _set(self, data: Any, path: tuple[str, ...], value: Any) -> None:
        first, *below = path
        if isinstance(data, list):
            chosen = [int(first)] if is_index(first) else range(len(data))
            if is_index(first) and int(first) >= len(data):
                raise ConfigError(
                    f"{self}: index {first} does not exist: the list has {len(data)} elements, "
                    "counted from 0"
                )
            for k in chosen:
                if not is_index(first):
                    self._set(data[k], path, value)
                elif below:
                    self._set(data[k], tuple(below), value)
                else:
                    data[k] = copy.deepcopy(value)
        elif not isinstance(data, dict):
            raise ConfigError(f"{self}: a plain value has no keys below it")
        elif not below:
            data[first] = copy.deepcopy(value)
        else:
            if data.get(first) is None:
                data[first] = {}
            self._set(data[first], tuple(below), value)

    def __str__(self) -> str:
        """As in an error."""
        return f"--set {shown(self.text, 120)}"


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

        Args:
            path: Keys and indices.
            whole: Whether values below it count too; not for a key that is missing or unknown.
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
