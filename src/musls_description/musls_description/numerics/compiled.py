"""The decorator that compiles every numba function of the distribution.

Where the compiled code is kept is said by `code_cache`.
"""

from __future__ import annotations

import functools
import gc
import signal
import threading
import warnings
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaExperimentalFeatureWarning
from numba.core.event import Event, Listener, register
from numba.extending import typeof_impl

from musls_description.numerics.code_cache import cache_folder, cached_in

# A function of the begin of a record takes records that go on after it: all are mere pointers.
warnings.filterwarnings(
    "ignore", ".*considered a subtype of Record", category=NumbaExperimentalFeatureWarning
)

Function = TypeVar("Function", bound=Callable[..., Any])

_CARD: ContextVar[bool] = ContextVar("_CARD", default=False)
"""Whether functions are compiled for a graphics card instead of for the processor."""

_ENDING = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM")


class _Signals(Listener):
    """Lets signals wait for the end of a compiler pass.

    An exception of their handlers would be lost in one of LLVM's calls back into Python, or in the
    deletion of one of its objects, and leave half-compiled functions.
    """

    def __init__(self) -> None:
        self._passes = 0
        self._came: list[int] = []
        self._handlers: dict[int, Any] = {}

    def on_start(self, event: Event) -> None:
        """A pass begins, perhaps within another one."""
        if threading.current_thread() is threading.main_thread():
            self._passes += 1
            if self._passes == 1:
                numbers = [n for n in signal.Signals if n.name in _ENDING]
                handlers = {number: signal.getsignal(number) for number in numbers}
                self._handlers = {
                    n: handler for n, handler in handlers.items() if callable(handler)
                }
                for number in self._handlers:
                    signal.signal(number, lambda number, frame: self._came.append(number))

    def on_end(self, event: Event) -> None:
        """End the pass: from now on an exception reaches the caller."""
        if threading.current_thread() is threading.main_thread():
            self._passes -= 1
            if self._passes == 0:
                for number, handler in self._handlers.items():
                    signal.signal(number, handler)
            if self._came:
                number = self._came.pop()
                self._handlers[number](number, None)


register("numba:run_pass", _Signals())


class _Garbage(Listener):
    """Lets the collector of garbage wait while numba compiles: it takes a tenth of that time."""

    def __init__(self) -> None:
        self._compilations = 0
        self._collects = False

    def on_start(self, event: Event) -> None:
        """A function is compiled, perhaps for another one; numba holds its lock."""
        if self._compilations == 0:
            self._collects = gc.isenabled()
            gc.disable()
        self._compilations += 1

    def on_end(self, event: Event) -> None:
        """End the compilation and collect garbage again after the last one."""
        self._compilations -= 1
        if self._compilations == 0 and self._collects:
            gc.enable()


register("numba:compile", _Garbage())


def compiled(
    *signatures: Any, shared: bool = False, inlined: bool = False
) -> Callable[[Function], Function]:
    """Make the decorator for a compiled function.

    `shared`: Python and compiled code both call it: it is compiled once, with both entries.
    `inlined`: it is inlined in its callers at any size; for what one or two of them call in a loop.

    No fast-math: results are to repeat bit for bit. NumPy's error model: a division by zero gives
    inf as in C++ and costs no branch. The compiled code releases Python's global lock.
    """

    def decorate(function: Function) -> Function:
        made = CompiledFunction(function, signatures, shared=shared, inlined=inlined)
        return cast(Function, made)  # is called as itself

    return decorate


class CompiledFunction:
    """A function that Python and compiled code call, compiled for whichever does.

    numba compiles two entries to each function, one that unpacks Python's objects and one for C. To
    a small function they are two thirds of the work, and most are called by compiled code alone:
    for that a function is compiled without them, apart, and kept in a folder of its own.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        signatures: Sequence[Any],
        *,
        shared: bool,
        inlined: bool,
    ) -> None:
        functools.update_wrapper(self, function)
        self._signatures = signatures
        self._shared = shared
        self._inlined = inlined

    def __call__(self, *arguments: Any) -> Any:
        """Call it from Python."""
        return self.from_python(*arguments)

    def __reduce__(self) -> str:
        return self.__qualname__  # type: ignore[attr-defined, no-any-return, unused-ignore]

    @functools.cached_property
    def from_python(self) -> Any:
        """Dispatcher of numba's that Python calls."""
        return self._dispatcher("python", no_cpython_wrapper=False)

    @functools.cached_property
    def from_compiled(self) -> Any:
        """Dispatcher that compiled code calls; it may have no entry for Python."""
        if self._shared:
            return self.from_python
        return self._dispatcher("compiled", no_cpython_wrapper=True)

    @functools.cached_property
    def from_card(self) -> Any:
        """Dispatcher that code for a graphics card calls."""
        from numba import cuda  # takes half a second, and few have a card

        return cuda.jit(device=True)(self.__wrapped__)  # type: ignore[attr-defined, unused-ignore]

    def _dispatcher(self, caller: str, **entries: bool) -> Any:
        function = self.__wrapped__  # type: ignore[attr-defined, unused-ignore]
        folder = cache_folder(function.__module__) / caller
        # Options of `jit` that numba's types do not know.
        options: dict[str, Any] = {"no_cfunc_wrapper": True, **entries}
        options["forceinline"] = self._inlined  # said in any case, or callees would inherit it
        make: Any = numba.njit(
            cache=True, error_model="numpy", fastmath=False, nogil=True, **options
        )
        dispatcher: Any = cached_in(folder, lambda: make(function))
        for signature in self._signatures:
            dispatcher.compile(signature)
        if self._signatures:
            dispatcher.disable_compile()
        return dispatcher


class CompiledStage:
    """A function of one address (of a record) that compiled code calls by its own address.

    Whoever calls it takes over nothing of its code, so that it is compiled once for all of them:
    see `records.call_at`, for which it gives nothing back.

    Attributes:
        wait: Waits for another process that compiles it, if there is one.
    """

    def __init__(self, function: Callable[..., Any], gives: types.Type = types.void) -> None:
        functools.update_wrapper(self, function)  # type: ignore[arg-type, unused-ignore]
        self._gives = gives
        self.wait: Callable[[], object] = lambda: None

    def __call__(self, address: int) -> None:
        """Call it from Python."""
        self._compiled.ctypes(address)

    def __reduce__(self) -> str:
        return self.__qualname__  # type: ignore[attr-defined, no-any-return, unused-ignore]

    @functools.cached_property
    def address(self) -> int:
        """Address of the compiled function in this process; compiles it on first use."""
        return int(self._compiled.address)

    def ptx(self, capability: tuple[int, int] = (9, 0)) -> str:
        """Assembly code of the same function for a graphics card, see "Add a compiled stage".

        Args:
            capability: Compute capability of the card, by default that of an H100 or H200.

        Raises:
            Exception: One of numba-cuda's: its packages are missing, or something in the function
                cannot run on a card.
        """
        from numba import cuda

        card = _CARD.set(True)
        try:
            function = self.__wrapped__  # type: ignore[attr-defined, unused-ignore]
            text, _ = cuda.compile_ptx(function, (types.int64,), device=True, cc=capability)
        finally:
            _CARD.reset(card)
        return str(text)

    @property
    def is_kept(self) -> bool:
        """Whether stages of its module have been compiled since their sources were changed."""
        return any(self._folder.glob("*"))

    @property
    def _folder(self) -> Path:
        return cache_folder(self.__module__) / "stage"

    @functools.cached_property
    def _compiled(self) -> Any:
        self.wait()
        function = self.__wrapped__  # type: ignore[attr-defined, unused-ignore]
        make: Any = numba.cfunc(
            self._gives(types.int64), cache=True, error_model="numpy", fastmath=False
        )
        with global_compiler_lock:  # first, as everywhere: numba compiles it while it is made
            return cached_in(self._folder, lambda: make(function))


@typeof_impl.register(CompiledFunction)
def _type_in_compiled_code(function: CompiledFunction, _: Any) -> types.Type:
    if _CARD.get():
        return cast(types.Type, numba.typeof(function.from_card))
    return types.Dispatcher(function.from_compiled)
