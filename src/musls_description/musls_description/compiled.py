"""How every compiled function of the distribution is compiled, in one place.

numba keeps compiled code on disk and compiles again when the file of the function changes. It does
not look at the other files: a function that calls a helper of another module, or uses a constant
of it, would go on with the old one. Here the stamp of a compiled function covers its module and all
modules of its own package and of this distribution that the module imports, directly or not.

numba has no public way for that: a cache folder named by a hash of all sources (`NUMBA_CACHE_DIR`)
would compile everything again, for minutes, after an edit of one function.
"""

from __future__ import annotations

import functools
import os
import pickle
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])

_FROM = re.compile(r"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import\b[ \t]*(\([^)]*\)|[^\n]*)", re.M)
_IMPORT = re.compile(r"^[ \t]*import[ \t]+([^\n]+)", re.M)


def compiled(*signatures: Any) -> Callable[[Function], Function]:
    """Make the decorator for a compiled function.

    No fast-math: results are to repeat bit for bit. NumPy's error model: a division by zero gives
    inf as in C++ and costs no branch. The compiled code releases Python's global lock.
    """

    def decorate(function: Function) -> Function:
        dispatcher: Any = numba.njit(cache=True, error_model="numpy", fastmath=False, nogil=True)(
            function
        )
        cache_file = getattr(dispatcher._cache, "_cache_file", None)
        if cache_file is not None:
            cache_file._source_stamp = source_stamp(function.__module__)
            cache_file._load_index = functools.partial(_index_or_none, cache_file._load_index)
        for signature in signatures:
            dispatcher.compile(signature)
        if signatures:
            dispatcher.disable_compile()
        return cast(Function, dispatcher)  # is called as the function itself

    return decorate


def _index_or_none(load_index: Callable[[], dict[Any, str]]) -> dict[Any, str]:
    """The index of compiled versions of a function, empty where it cannot be read.

    Another version of this program may have left an index that names types which this version does
    not have, and a process that was killed may have left half of one: the function is then
    compiled again and the index written anew.
    """
    try:
        return load_index()
    except (ImportError, AttributeError, EOFError, TypeError, ValueError, pickle.UnpicklingError):
        return {}


def source_stamp(name: str) -> tuple[tuple[str, int, int], ...]:
    """Name, time of change and size of a module's file and of all files of ours that it imports."""
    own = name.partition(".")[0]
    seen: set[str] = set()
    open_ends = [name]
    stamps = []
    while open_ends:
        name = open_ends.pop()
        module = sys.modules[name]
        file = getattr(module, "__file__", None)
        if name in seen or file is None:
            continue
        seen.add(name)
        stat = os.stat(file)  # a Path takes longer than the question, which comes a thousand times
        stamps.append((os.path.basename(file), stat.st_mtime_ns, stat.st_size))
        package = module.__package__ or ""
        open_ends += [
            found
            for found in _imports(file, stat.st_mtime_ns, package)
            if found in sys.modules and (found.startswith("musls") or found.split(".")[0] == own)
        ]
    return tuple(sorted(stamps))


@functools.cache
def _imports(file: str, changed_ns: int, package: str) -> tuple[str, ...]:
    """Names that a file's text imports: modules, and what may be a module in a package."""
    text = Path(file).read_text(encoding="utf-8")
    found = [word for match in _IMPORT.finditer(text) for word in re.findall(r"[\w.]+", match[1])]
    for match in _FROM.finditer(text):
        dots, origin, names = match.groups()
        if dots:
            above = package.split(".")[: len(package.split(".")) + 1 - len(dots)]
            origin = ".".join([*above, *filter(None, [origin])])
        found += [origin, *(f"{origin}.{name}" for name in re.findall(r"\w+", names))]
    return tuple(dict.fromkeys(found))
