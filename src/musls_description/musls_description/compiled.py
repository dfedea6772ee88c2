"""How every compiled function of the distribution is compiled, in one place.

numba keeps compiled code on disk and compiles again when the file of the function changes. It does
not look at the other files: a function that calls a helper of another module, or uses a constant
of it, would go on with the old one. Here the stamp of a compiled function covers its module and all
modules of this distribution that the module imports, directly or not.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])

_OURS = re.compile(r"^[ \t]*from[ \t]+(musls[\w.]*)[ \t]+import[ \t]+(\(?[\w, \t]*)", re.M)


def compiled(*signatures: Any) -> Callable[[Function], Function]:
    """Make the decorator for a compiled function.

    Args:
        signatures: numba signatures to compile at once. Without any, the function is compiled for
            the types of its first call.

    No fast-math: results are to repeat bit for bit. NumPy's error model: a division by zero gives
    inf as in C++ and costs no branch. The compiled code releases Python's global lock.
    """

    def decorate(function: Function) -> Function:
        dispatcher = numba.njit(cache=True, error_model="numpy", fastmath=False, nogil=True)(
            function
        )
        cache_file = getattr(dispatcher._cache, "_cache_file", None)
        if cache_file is not None:
            cache_file._source_stamp = source_stamp(function.__code__.co_filename)
        for signature in signatures:
            dispatcher.compile(signature)
        if signatures:
            dispatcher.disable_compile()
        return dispatcher

    return decorate


def source_stamp(file: str) -> tuple[tuple[str, int, int], ...]:
    """Name, time of change and size of a source file and of all files of ours that it imports.

    Args:
        file: Path of a module whose imports have been executed.
    """
    seen: set[str] = set()
    open_ends = [str(file)]
    while open_ends:
        path = open_ends.pop()
        if path not in seen:
            seen.add(path)
            open_ends += _imported_files(path)
    stats = [(path, Path(path).stat()) for path in sorted(seen)]
    return tuple((Path(path).name, stat.st_mtime_ns, stat.st_size) for path, stat in stats)


@functools.cache
def _imported_files(path: str) -> tuple[str, ...]:
    """Files of the modules of this distribution that a module's text imports."""
    found = []
    for match in _OURS.finditer(Path(path).read_text(encoding="utf-8")):
        names = [match[1], *(f"{match[1]}.{name.strip(' (')}" for name in match[2].split(","))]
        modules = [sys.modules[name] for name in names if name in sys.modules]
        found += [module.__file__ for module in modules if module.__file__ is not None]
    return tuple(found)
