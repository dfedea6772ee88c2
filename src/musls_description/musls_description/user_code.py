"""Python files of users: loaded, with errors that name file and line."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

from pydantic import PydanticUserError, TypeAdapter, ValidationError

from musls_description.errors import ConfigError
from musls_description.names import near_names
from musls_description.strict_yaml import shown

_STAMPS: dict[str, tuple[int, int]] = {}
"""Time of change and size of the files that have been run, by the names of their modules."""


def load_file(path: str | Path) -> ModuleType:
    """Run a Python file as a module of its own; again only when the file has changed.

    Raises:
        ConfigError: No such file, or an error in it (names the line).
    """
    # os.path, because Path raises for names that are too long or hold a NUL.
    file = Path(os.path.abspath(path))
    name = f"musls_user_{file.stem}_{abs(hash(str(file))):x}"
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
    except Exception as error:
        del sys.modules[name]
        raise ConfigError(f"{path}{place_of(error, file)}: {describe_error(error)}") from error
    return module


def load_class(source: str) -> type:
    """Find a class given as "file.py:Class" or "package.module:Class".

    Raises:
        ConfigError: No such file, module or class.
    """
    place, _, name = source.rpartition(":")
    if not place or not name:
        raise ConfigError(f"{source}: expected file.py:Class or package.module:Class")
    if place.endswith(".py"):
        module = load_file(place)
    else:
        try:
            module = importlib.import_module(place)
        except Exception as error:
            raise ConfigError(f"{place} cannot be imported: {describe_error(error)}") from error
    found = getattr(module, name, None)
    if not inspect.isclass(found):
        classes = [n for n, c in vars(module).items() if _is_own_class(c, module)]
        raise ConfigError(f"{place} has no class {name}: {near_names(name, sorted(classes))}")
    return found


def check_arguments(function: Any, given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Check named arguments against a signature and its annotations.

    Args:
        function: A function or a class.
        given: Arguments by name.
        where: What they are, for the error: "controller.parameters".

    Returns:
        The arguments, converted to the annotated types.

    Raises:
        ConfigError: An argument is unknown, missing or of a wrong type.
    """
    signature = inspect.signature(function).parameters.values()
    parameters = {p.name: p for p in signature if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    takes_any = any(p.kind is p.VAR_KEYWORD for p in signature)
    for name in given:
        if name not in parameters and not takes_any:
            raise ConfigError(f"{where}: unknown key '{name}': {near_names(name, [*parameters])}")
    missing = [n for n, p in parameters.items() if p.default is p.empty and n not in given]
    if missing:
        raise ConfigError(f"{where}: {', '.join(missing)} missing")
    adapters = _adapters(function.__init__ if inspect.isclass(function) else function)
    checked = dict(given)
    for name in adapters.keys() & given.keys():
        value = given[name]
        try:
            checked[name] = adapters[name].validate_python(value)
        except ValidationError as error:
            text = error.errors()[0]["msg"]
            raise ConfigError(f"{where}.{name} = {value!r}: {text[:1].lower()}{text[1:]}") from None
    return checked


def _adapters(function: Any) -> dict[str, TypeAdapter[Any]]:
    """What checks the arguments of a function whose annotations can be checked."""
    try:
        hints = get_type_hints(function)
    except NameError:  # imported for type checkers only
        return {}
    adapters = {}
    for name, hint in hints.items():
        with suppress(PydanticUserError):  # an array: the function itself is to take what is given
            adapters[name] = TypeAdapter(hint)
    return adapters


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


def place_of(error: BaseException, file: str | Path) -> str:
    """Text ", line N" of the deepest place of an error in a file; empty if it lies elsewhere."""
    wanted = os.path.abspath(file)
    if isinstance(error, SyntaxError) and error.filename == wanted:
        return f", line {error.lineno}"
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == wanted]
    return f", line {lines[-1]}" if lines else ""


def _is_own_class(thing: Any, module: ModuleType) -> bool:
    return inspect.isclass(thing) and thing.__module__ == module.__name__
