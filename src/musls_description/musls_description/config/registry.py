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

import hashlib
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
from types import ModuleType
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
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
"""Prefix of the names of modules that are users' files."""


@contextmanager
def user_code(
    when: Callable[[], str] = str, kind: type | None = None, method: str = ""
) -> Iterator[None]:
    """Context for calls of users' code: each exception is reported in one line.

    `when` gives further words, such as " at 0.3 s". With a user's class and its method, errors of
    what is made of its answer are told as the method's, too.

    Raises:
        UserCodeError: It came out of a user's file or package, or of the user's class.
    """
    try:
        yield
    except (MuslsError, KeyboardInterrupt):
        raise
    except BaseException as error:
        if kind is not None and (_is_users(kind.__module__) or kind.__module__[:6] != "musls_"):
            file = file_of(kind)
            place = f"{file}{line_in(error, file)}: {kind.__name__}.{method}"
        elif frames := [
            (frame.f_code.co_filename, line, frame.f_code.co_name)
            for frame, line in traceback.walk_tb(error.__traceback__)
            if _is_users(frame.f_globals["__name__"])
            if not frame.f_code.co_filename.startswith("<")  # made by dataclasses
        ]:
            file, number, name = frames[-1]
            place = f"{file}, line {number}: {name}"
        else:
            raise
        raise UserCodeError(f"{place} failed{when()}: {describe_error(error)}") from error


@contextmanager
def _importing(what: str, file: str = "") -> Iterator[None]:
    """Around what runs a module of a user; with the line in its file."""
    try:
        yield
    except RAISED as error:
        raise ConfigError(f"{what}{line_in(error, file)}: {describe_error(error)}") from error


def describe_error(error: BaseException) -> str:
    """Kind and text of an error."""
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def file_of(kind: type) -> str:
    """File in which a class is written, its module if there is none (in a notebook)."""
    try:
        return inspect.getfile(kind)
    except (TypeError, OSError):
        return kind.__module__


def line_in(error: BaseException, file: str) -> str:
    """Text ", line N" of the deepest place of an error in a file; empty if it lies elsewhere."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return f", line {error.lineno}"
    trace = traceback.walk_tb(error.__traceback__)
    lines = [line for frame, line in trace if frame.f_code.co_filename == file]
    return f", line {lines[-1]}" if lines else ""


def _is_users(module: str) -> bool:
    return module.startswith(_PREFIX) or module.partition(".")[0] in _OWNERS


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
    # The same name in all processes: compiled code and what was pickled are found by it.
    place = hashlib.sha256(os.fsencode(file)).hexdigest()[:16]
    name = f"{_PREFIX}{file.stem}_{place}"
    if not os.path.isfile(file):
        raise ConfigError(f"{shown(str(path), 200)}: no such Python file")
    stat = os.stat(file)
    stamp = (stat.st_mtime_ns, stat.st_size)
    if name in sys.modules and _STAMPS.get(name) == stamp:
        return sys.modules[name]
    module_spec = spec_from_file_location(name, file)
    if module_spec is None or module_spec.loader is None:
        raise ConfigError(f"{path}: not a Python file (its name must end in .py)")
    module = module_from_spec(module_spec)
    sys.modules[name] = module
    _STAMPS[name] = stamp
    try:
        with _importing(str(path), str(file)):
            module_spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def load_class(source: str) -> type:
    """Find a class given as "file.py:Class" or "package.module:Class"."""
    place, _, name = source.rpartition(":")
    if not place or not name:
        raise ConfigError(f"{source}: expected file.py:Class or package.module:Class")
    if place.endswith(".py"):
        module = load_file(place)
    else:
        with _importing(f"{place} cannot be imported"):
            module = import_module(place)
        _OWNERS.add(place.partition(".")[0])
    value = getattr(module, name, None)
    if not inspect.isclass(value):
        classes = inspect.getmembers(module, inspect.isclass)
        own = [name for name, kind in classes if kind.__module__ == module.__name__]
        raise ConfigError(f"{place} has no class {name}: {near_names(name, own)}")
    return value


@spec
class OwnClass:
    """A user's own class.

    Attributes:
        kind: "python".
        source: Place of the class: "my.py:MyClass", or "package.module:MyClass".
        parameters: Further arguments of the class, by name.
    """

    kind: Literal["python"] = "python"
    source: Annotated[str, Field(pattern=r"^.+:\w+$")]
    parameters: dict[str, Any] = field(default_factory=dict, hash=False)

    def make(self, base: type, where: str) -> Any:
        """Load the class, which inherits one of ours, and make an object; `where`: its key."""
        own_class = load_class(self.source)
        wrong = f"{where}.source = {self.source}: the class"
        if not issubclass(own_class, base):
            raise ConfigError(f"{wrong} must inherit musls.{base.__name__}")
        if missing_methods := sorted(getattr(own_class, "__abstractmethods__", ())):
            raise ConfigError(f"{wrong} has no method {missing_methods[0]}")
        with user_code(lambda: " before the flight", own_class, "__init__"):
            return own_class(**self.parameters)


def requires(*methods: str, base: Callable[[], type | None] = lambda: None) -> Callable[[Any], Any]:
    """Check of a registry: classes have these methods, and not those that a base leaves out.

    `base`: gives the class that they inherit, which may be defined after the registry.
    """

    def check(kind: Any) -> Any:
        above = base()
        if above and not (inspect.isclass(kind) and issubclass(kind, above)):
            name = getattr(kind, "__name__", kind)
            raise ConfigError(f"{name} must be a class that inherits musls.{above.__name__}")
        for name in methods:
            method = getattr(kind, name, None)
            if not callable(method) or getattr(method, "__isabstractmethod__", False):
                raise ConfigError(f"{getattr(kind, '__name__', kind)} has no method {name}")
        return kind

    return check


class UnknownName(ConfigError, KeyError):  # noqa: N818 (an answer to a look-up)
    """Error of a name that is not in a registry; the message proposes similar names."""

    __str__ = Exception.__str__


class Registry(Mapping[str, T], Generic[T]):
    """Things of one sort by name; looking one up imports it if needed.

    Args:
        what: Kind of its entries, in the singular, for messages: "controller".
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
        self.what = what
        self.group = group
        self._prepare = prepare
        self._entries: dict[str, Any] = dict(shipped)

    def register(self, name: str) -> Callable[[Any], Any]:
        """Make the decorator that enters something under a name.

        Raises:
            ConfigError: The name is taken by something else.
        """

        def enter(thing: Any) -> Any:
            entry = self._entries.get(name)
            if entry is not None and _origin(entry) != _origin(thing):
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
            point = self._installed[self.known(name)]
            source = point.dist.name if point.dist else point.value
            with _importing(f"{self.what} '{name}' of {source} cannot be imported"):
                plugin = point.load()
            _OWNERS.add(point.module.partition(".")[0])
            entry = self._prepare(plugin)
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

    def known(self, name: Any) -> str:
        """Give a name back that is known, for fields of specifications.

        Raises:
            UnknownName: It is not; the message names the near ones.
        """
        if isinstance(name, str) and name in self:
            return name
        raise UnknownName(f"unknown {self.what} '{name}': {near_names(str(name), sorted(self))}")

    def tell_names(self, schema: dict[str, Any]) -> None:
        """Add all names to the JSON schema of a text that is one of them."""
        schema["enum"] = sorted(self)

    @cached_property
    def _installed(self) -> dict[str, EntryPoint]:
        """Entry points of installed packages; our own names cannot be replaced by them."""
        return {point.name: point for point in entry_points(group=self.group)}


def _origin(thing: Any) -> Any:
    """Module and name of a class or function, which a notebook's cell may enter again."""
    name = getattr(thing, "__qualname__", None)
    return thing if name is None else (thing.__module__, name)


class AnyOf:
    """Annotates a field that holds any specification of a registry, told apart by its `kind`."""

    def __init__(self, registry: Registry[Any]) -> None:
        self._registry = registry

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        return core_schema.no_info_plain_validator_function(self._build)

    def _build(self, value: Any) -> Any:
        registry = self._registry
        if is_dataclass(value) and getattr(value, "kind", None) in registry:
            return value
        if isinstance(value, str):
            value = {"kind": value}
        if not isinstance(value, Mapping):
            raise ValueError(f"expected a mapping with a kind ({', '.join(sorted(registry))})")
        kind = value.get("kind")
        if kind is None:
            raise ValueError(f"kind is missing: choose one of {', '.join(sorted(registry))}")
        thing = registry[registry.known(kind)]
        if not is_dataclass(thing):
            name = getattr(thing, "__name__", thing)
            raise ValueError(f"{shown(str(kind))}: {name} must be a class made with musls.spec")
        return adapter(thing).validate_python(dict(value))

    def __get_pydantic_json_schema__(
        self, core_schema: Any, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """A kind alone, or a mapping whose `kind` decides on the other keys."""
        things = [thing for thing in self._registry.values() if is_dataclass(thing)]
        kinds = [handler(adapter(thing).core_schema) for thing in things]
        if not kinds:  # all are users' own
            return {"type": ["string", "object"]}
        return {
            "anyOf": [{"type": "string", "enum": sorted(self._registry)}, *kinds],
            "if": {"type": "object"},
            "then": {"required": ["kind"]},
        }
