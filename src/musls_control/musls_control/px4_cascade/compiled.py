"""How every function of the chain is compiled, in one place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numba


def _package_stamp() -> tuple[int, int]:
    """Return a mark that changes with any source file here: newest change, total size."""
    stats = [path.stat() for path in Path(__file__).parent.glob("*.py")]
    return max(s.st_mtime_ns for s in stats), sum(s.st_size for s in stats)


_STAMP = _package_stamp()


def compiled(*signatures) -> Callable:
    """Compile a function with numba; at once when signatures are given, else at the first call.

    The result is kept on disk, so that a second process starts at once. numba discards a kept
    result only when the function's own file changes, but the kernel contains functions of the
    whole package; hence the stamp.

    No fast-math: results are to repeat bit for bit. NumPy's error model: a division by zero gives
    inf as in C++, and costs no branch.
    """

    def decorate(function: Callable) -> Callable:
        dispatcher = numba.njit(cache=True, error_model="numpy", fastmath=False)(function)
        cache_file = getattr(dispatcher._cache, "_cache_file", None)
        if cache_file is not None:
            cache_file._source_stamp = _STAMP
        for signature in signatures:
            dispatcher.compile(signature)
        if signatures:
            dispatcher.disable_compile()
        return dispatcher

    return decorate
