"""Open registries: kinds of trajectories, controllers, plants, events and readers by their names.

What users write themselves is a peer of what the distribution ships. It gets into a registry in
one of three ways:

- the decorator `REGISTRY.register("name")` in a module that is imported, such as a file that a
  scenario lists under `extensions`,
- an entry point of an installed package in the registry's group (`musls.controllers = ...`),
- an entry of the distribution itself, given as "module:attribute" and imported when it is
  asked for.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, is_dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import FrameType, ModuleType
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler, PlainValidator
from pydantic_core import core_schema

from musls_description.config.errors import (
    ConfigError,
    MuslsError,
    check_present_folder,
    near_names,
)
from musls_description.config.schema import adapter, spec
from musls_description.config.strict_yaml import shown

T = TypeVar("T")

# ---------- Code of users: loaded and called, with errors that name file and line


class UserCodeError(MuslsError):
    """Code of a user's own failed; the message names file and line."""


RAISED = (Exception, SystemExit)
"""Exceptions that are errors of users' code; `sys.exit` there ends no program of ours."""

_OWNERS: set[str] = set()
"""Packages of users from which something was loaded."""

_PREFIX = "musls_user_"
"""With which the names of modules begin that are files of users."""


@contextmanager
def user_code(
    when: Callable[[], str] = str, kind: type | None = None, method: str = ""
) -> Iterator[None]:
    """Around what calls code of users: whatever that raises is told in one line.

    `when` gives further words, such as " at 0.3 s". With a user's class and its method, errors of
    what is made of its answer are told as the method's, too.

    Raises:
        UserCodeError: It came out of a user's file or package, or somebody called `sys.exit`.
    """
    try:
        yield
    except (MuslsError, KeyboardInterrupt):
        raise
    except BaseException as error:
        ours = kind is None or (_is_ours(kind.__module__) and not isinstance(error, SystemExit))
        if ours and not _frames(error, lambda frame: _is_users(frame.f_globals["__name__"])):
            raise
        raise failure_of(None if ours else kind, method, when(), error) from error


def failure_of(kind: type | None, method: str, when: str, error: BaseException) -> UserCodeError:
    """An error of a method of a user's class, at the deepest line of its file, in one line.

    Without a class it is that of the deepest function of a user's; `when`: " at 0.3 s".
    """
    if kind is None:
        file, line, name = _frames(error, lambda frame: _is_users(frame.f_globals["__name__"]))[-1]
        place = f"{file}, line {line}: {name}"
    else:
        file = file_of(kind)
        place = f"{file}{line_in(error, file)}: {kind.__name__}.{method}"
    return UserCodeError(f"{place} failed{when}: {describe_error(error)}")


def describe_error(error: BaseException) -> str:
    """Kind and text of an error on one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def file_of(kind: type) -> str:
    """File in which a class is written, its module if there is none (in a notebook)."""
    try:
        return inspect.getfile(kind)
    except (TypeError, OSError):
        return kind.__module__


def line_in(error: BaseException, file: str | Path) -> str:
    """Text ", line N" of the deepest place of an error in a file; empty if it lies elsewhere."""
    wanted = os.path.abspath(file)
    if isinstance(error, SyntaxError) and error.filename == wanted:
        return f", line {error.lineno}"
    places = _frames(error, lambda frame: frame.f_code.co_filename == wanted)
    return f", line {places[-1][1]}" if places else ""


def _frames(
    error: BaseException, chosen: Callable[[FrameType], bool]
) -> list[tuple[str, int, str]]:
    """File, line and function of those frames that an error came through."""
    return [
        (frame.f_code.co_filename, line, frame.f_code.co_name)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith("<")  # made by dataclasses
        if isinstance(error, SystemExit) or chosen(frame)
    ]


def _is_users(module: str) -> bool:
    return module.startswith(_PREFIX) or module.partition(".")[0] in _OWNERS


def _is_ours(module: str) -> bool:
    return module.startswith("musls_") and not _is_users(module)


_STAMPS: dict[str, tuple[int, int]] = {}
"""Time of change and size of the files that have been run, by the names of their modules."""


def load_file(path: str | Path) -> ModuleType:
    """Run a Python file as a module of its own; again only when the file has changed.

    Raises:
        ConfigError: No such file, or an error in it (names the line).
    """
    check_present_folder()
    # os.path, because Path raises for names that are too long or hold a NUL.
    file = Path(os.path.abspath(path))
    name = f"{_PREFIX}{file.stem}_{abs(hash(str(file))):x}"
    if not os.path.isfile(file):
        raise ConfigError(f"{shown(str(path), 200)}: no such Python file")
    stat = os.stat(file)
    stamp = (stat.st_mtime_ns, stat.st_size)
    if name in sys.modules and _STAMPS.get(name) == stamp:
        return sys.modules[name]
    found = spec_from_file_location(name, file)
    if found is None or found.loader is None:
        raise ConfigError(f"{path}: not a Python file (its name must end in .py)")
    module = module_from_spec(found)
    sys.modules[name], _STAMPS[name] = module, stamp
    try:
        found.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, RAISED):
            raise
        raise ConfigError(f"{path}{line_in(error, file)}: {describe_error(error)}") from error
    return module


def load_class(source: str) -> type:
    """Find a class given as "file.py:Class" or "package.module:Class"."""
    place, _, name = source.rpartition(":")
    if not place or not name:
        raise ConfigError(f"{source}: expected file.py:Class or package.module:Class")
    if place.endswith(".py"):
        module = load_file(place)
    else:
        try:
            module = importlib.import_module(place)
        except RAISED as error:
            raise ConfigError(f"{place} cannot be imported: {describe_error(error)}") from error
        _OWNERS.add(place.partition(".")[0])
    found = getattr(module, name, None)
    if not inspect.isclass(found):
        classes = [n for n, c in vars(module).items() if _is_own_class(c, module)]
        raise ConfigError(f"{place} has no class {name}: {near_names(name, sorted(classes))}")
    return found


@spec
class OwnClass:
    """A user's own class.

    Attributes:
        kind: "python".
        source: Where the class is: "my.py:MyClass", or "package.module:MyClass".
        parameters: Further arguments of the class, by name.
    """

    kind: Literal["python"] = "python"
    source: Annotated[str, Field(pattern=r"^.+:\w+$")]
    parameters: dict[str, Any] = field(default_factory=dict, hash=False)

    def make(self, base: type, where: str) -> Any:
        """Load the class, which inherits one of ours, and make an object; `where`: its key."""
        found, wrong = load_class(self.source), f"{where}.source = {self.source}: the class"
        if not issubclass(found, base):
            raise ConfigError(f"{wrong} must inherit musls.{base.__name__}")
        if missing := sorted(getattr(found, "__abstractmethods__", ())):
            raise ConfigError(f"{wrong} has no method {missing[0]}")
        with user_code(lambda: " before the flight", found, "__init__"):
            return found(**self.parameters)


def built_function(model: Any, *arguments: Any) -> Callable[..., Any]:
    """The function that `model.build` of a user's specification makes (raises UserCodeError)."""
    kind = type(model)
    with user_code(lambda: " before the flight", kind, "build"):
        function: Callable[..., Any] = model.build(*arguments)
    if not callable(function):
        where = f"{file_of(kind)}: {kind.__name__}.build"
        raise UserCodeError(f"{where} gave {shown(repr(function))}, must be a function")
    return function


def requires(*methods: str) -> Callable[[Any], Any]:
    """Check of a registry: classes have these methods, and not those that a base leaves out."""

    def check(kind: Any) -> Any:
        for name in methods:
            method = getattr(kind, name, None)
            if not callable(method) or getattr(method, "__isabstractmethod__", False):
                raise ConfigError(f"{getattr(kind, '__name__', kind)} has no method {name}")
        return kind

    return check


def _is_own_class(thing: Any, module: ModuleType) -> bool:
    return inspect.isclass(thing) and thing.__module__ == module.__name__


class UnknownName(ConfigError, KeyError):  # noqa: N818 (an answer to a look-up)
    """Nothing in a registry has this name; the message names the near ones."""

    __str__ = Exception.__str__


class Registry(Mapping[str, T], Generic[T]):
    """Things of one sort by name; looking one up imports it if needed.

    Args:
        what: What it holds, in the singular, for messages: "controller".
        group: Group of entry points that installed packages may use: "musls.controllers".
        shipped: The distribution's own, as objects or as "module:attribute".
        prepare: Checks what users bring and makes it fit.
    """

    def __init__(
        self,
        what: str,
        group: str,
        shipped: Mapping[str, str | T],
        prepare: Callable[[Any], Any] = lambda thing: thing,
    ) -> None:
        self.what, self.group, self._prepare = what, group, prepare
        self._entries: dict[str, Any] = dict(shipped)

    def register(self, name: str) -> Callable[[Any], Any]:
        """Make the decorator that enters something under a name.

        Raises:
            ConfigError: The name is taken by something else.
        """

        def enter(thing: Any) -> Any:
            known = self._entries.get(name)
            if known is not None and _origin(known) != _origin(thing):
                raise ConfigError(f"{self.what} '{name}' exists already: choose another name")
            self._entries[name] = self._prepare(thing)
            return thing

        return enter

    def __getitem__(self, name: str) -> T:
        """The thing of a name.

        Raises:
            UnknownName: No such name; names the near ones.
            ConfigError: It cannot be imported.
        """
        entry: Any = self._entries.get(name)
        if entry is None:  # only now: to look through the installed packages takes 15 ms
            if (point := self._installed.get(name)) is None:
                raise UnknownName(self.unknown(name))
            entry = self._prepare(self._load(point))
        elif isinstance(entry, str):
            module, _, attribute = entry.partition(":")
            entry = getattr(import_module(module), attribute)
        thing: T = entry
        self._entries[name] = thing
        return thing

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self._installed

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._entries, *self._installed]))

    def __len__(self) -> int:
        return len(dict.fromkeys([*self._entries, *self._installed]))

    def __repr__(self) -> str:
        return f"<{self.what}: {', '.join(self)}>"

    def unknown(self, name: object) -> str:
        """Text for a name that is not known."""
        return f"unknown {self.what} '{name}': {near_names(str(name), sorted(self))}"

    @cached_property
    def _installed(self) -> dict[str, EntryPoint]:
        """Entry points of installed packages; our own names cannot be replaced by them."""
        return {point.name: point for point in entry_points(group=self.group)}

    def _load(self, point: EntryPoint) -> Any:
        try:
            found = point.load()
        except RAISED as error:
            source = point.dist.name if point.dist else point.value
            raise ConfigError(
                f"{self.what} '{point.name}' of {source} cannot be imported: "
                f"{describe_error(error)}"
            ) from error
        _OWNERS.add(point.module.partition(".")[0])
        return found


def _origin(thing: Any) -> Any:
    """Module and name of a class or function, which a notebook's cell may enter again."""
    name = getattr(thing, "__qualname__", None)
    return thing if name is None else (thing.__module__, name)


def any_of(registry: Registry[Any]) -> Any:
    """Type of a field that holds any specification of a registry, told apart by its `kind`."""

    def validate(value: Any) -> Any:
        if is_dataclass(value) and getattr(value, "kind", None) in registry:
            return value
        if isinstance(value, str):
            value = {"kind": value}
        if not isinstance(value, Mapping):
            raise ValueError(f"expected a mapping with a kind ({', '.join(sorted(registry))})")
        kind = value.get("kind")
        if kind is None:
            raise ValueError(f"kind is missing: choose one of {', '.join(sorted(registry))}")
        if not isinstance(kind, str) or kind not in registry:
            raise ValueError(registry.unknown(kind))
        return adapter(registry[kind]).validate_python(dict(value))

    return Annotated[Any, PlainValidator(validate), OneOf(registry)]


class OneOf:
    """Says in a JSON schema what a field made by `any_of` takes."""

    def __init__(self, registry: Registry[Any]) -> None:
        self._registry = registry

    def __get_pydantic_json_schema__(
        self, core_schema: Any, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """A kind alone, or a mapping whose `kind` decides on the other keys."""
        kinds = {
            name: handler(adapter(thing).core_schema)
            for name, thing in self._registry.items()
            if is_dataclass(thing)
        }
        if not kinds:  # all are users' own
            return {"type": ["string", "object"]}
        rules: list[dict[str, Any]] = [
            {"if": {"properties": {"kind": {"const": name}}, "required": ["kind"]}, "then": below}
            for name, below in kinds.items()
        ]
        mapping: dict[str, Any] = {
            "type": "object",
            "properties": {"kind": {"enum": sorted(self._registry)}},
            "allOf": rules,
            "required": ["kind"],
        }
        return {
            "anyOf": [{"type": "string", "enum": sorted(self._registry)}, mapping],
            KINDS: kinds,
        }


class NameIn:
    """Annotates a text that is a name in a registry."""

    def __init__(self, registry: Registry[Any]) -> None:
        self._registry = registry

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        """Refuse unknown names; the error lists the near ones."""
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, name: str) -> str:
        if name not in self._registry:
            raise ValueError(self._registry.unknown(name))
        return name

    def __get_pydantic_json_schema__(
        self, core_schema: Any, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """All names that are known."""
        return {"type": "string", "enum": sorted(self._registry)}


KINDS = "x-kinds"
"""Key of a JSON schema under which a field with a `kind` has the schema of each."""
