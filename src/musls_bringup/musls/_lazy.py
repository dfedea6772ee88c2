"""Names of a module that are imported when they are first used; its stub says where they are."""

import ast
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

_IMPORTING = threading.RLock()
"""Held while a name is imported: threads that import modules in circles, each from another end, see
half of them."""


def attach(
    package: str, file: str, modules: tuple[str, ...] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make `__getattr__`, `__dir__` and `__all__` of a module from the imports of its stub.

    Args:
        package: `__name__` of the module.
        file: `__file__` of the module; the stub lies beside it.
        modules: Its modules, to be imported on first use; not in `__all__`.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    origins = {
        name.asname or name.name: (str(line.module), name.name)
        for line in stub.body
        if isinstance(line, ast.ImportFrom) and line.module != package
        for name in line.names
    }

    def get(name: str) -> Any:
        """Import what a name stands for, once."""
        with _IMPORTING:
            if name in modules:
                return import_module(f"{package}.{name}")
            if name not in origins:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
            module, origin = origins[name]
            value = getattr(__import__(module, fromlist=[origin]), origin)  # also a module of it
            setattr(sys.modules[package], name, value)
            return value

    def names() -> list[str]:
        """All names, for completion."""
        return sorted({*vars(sys.modules[package]), *origins, *modules})

    return get, names, sorted(origins)
