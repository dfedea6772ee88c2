"""The decorator that compiles every numba function of the distribution.

Where the compiled code is kept is said by `code_cache`.
"""

from __future__ import annotations

import functools
import gc
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, ClassVar, Generic, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from llvmlite.binding import add_symbol
from numba import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaExperimentalFeatureWarning
from numba.core.event import Event, Listener, register
from numba.extending import lower_builtin, lower_cast, models, register_model, typeof_impl

from musls_description.config.errors import MuslsError
from musls_description.numerics.code_cache import cached_in, folder_of

# A function of the begin of a record takes records that go on after it: all are mere pointers.
warnings.filterwarnings(
    "ignore", ".*considered a subtype of Record", category=NumbaExperimentalFeatureWarning
)

Function = TypeVar("Function", bound=Callable[..., Any])
Made = TypeVar("Made")

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
    """Lets the collector of garbage wait while numba compiles: it takes a tenth of that time.

    What numba leaves then counts as old, and is looked through with all that is old, not at once:
    0.1 GB of garbage, of the 0.6 GB of a first flight, waits for that.
    """

    def __init__(self) -> None:
        self._compilations = 0
        self._collects = False

    def __enter__(self) -> None:
        """Something is compiled, perhaps for something else; numba's lock is held."""
        if self._compilations == 0:
            self._collects = gc.isenabled()
            gc.disable()
        self._compilations += 1

    def __exit__(self, *_: object) -> None:
        """End the compilation and collect garbage again after the last one."""
        self._compilations -= 1
        if self._compilations == 0 and self._collects:
            gc.freeze()  # all objects are never looked at again
            gc.unfreeze()  # but as old ones
            gc.enable()

    def on_start(self, event: Event) -> None:
        """Begin to compile a function."""
        self.__enter__()

    def on_end(self, event: Event) -> None:
        """End it."""
        self.__exit__()


_GARBAGE = _Garbage()
register("numba:compile", _GARBAGE)


def _with_room(work: Callable[[], Any]) -> Any:
    """Call a function with room for the frames of all that it calls.

    Python 3.11 and later take 16 kB at a time for frames, and give them back when the first call in
    them returns: one that a compiler makes a million times just there maps and unmaps memory each
    time, a tenth of a first start. For a frame that says that it needs 560 kB Python takes 1 MB,
    and the rest of it serves the frames of what is called.
    """
    return work()


_with_room.__code__ = _with_room.__code__.replace(co_stacksize=70_000)  # of 8 bytes


class _made_once(Generic[Made]):  # noqa: N801 (used as a decorator)
    """A property that is made when it is first used, by one thread.

    numba's lock comes before all others: a thread that compiles needs what others make.
    """

    def __init__(self, make: Callable[[Any], Made]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __get__(self, owner: Any, _: type | None = None) -> Made:
        """Value for an object, which finds it in its dictionary from then on."""
        if owner is None:
            return cast(Made, self)
        name = self._make.__name__
        with global_compiler_lock:
            if name not in vars(owner):
                vars(owner)[name] = self._make(owner)
            return cast(Made, vars(owner)[name])


def compiled(*, shared: bool = False, inlined: bool = False) -> Callable[[Function], Function]:
    """Make the decorator for a compiled function.

    `shared`: Python and compiled code both call it: it is compiled once, with both entries.
    `inlined`: it is inlined in its callers at any size; for what one or two of them call in a loop.

    No fast-math: results are to repeat bit for bit. NumPy's error model: a division by zero gives
    inf as in C++ and costs no branch. The compiled code releases Python's global lock.
    """

    def decorate(function: Function) -> Function:
        made = CompiledFunction(function, shared=shared, inlined=inlined)
        return cast(Function, made)  # is called as itself

    return decorate


class CompiledFunction:
    """A function that Python and compiled code call, compiled for whichever does.

    numba compiles two entries to each function, one that unpacks Python's objects and one for C. To
    a small function they are two thirds of the work, and most are called by compiled code alone:
    for that a function is compiled without them, apart, and kept in a folder of its own.
    """

    def __init__(self, function: Callable[..., Any], *, shared: bool, inlined: bool) -> None:
        functools.update_wrapper(self, function)
        self._made_ns = time.time_ns()
        self._shared = shared
        self._inlined = inlined

    def __call__(self, *arguments: Any) -> Any:
        """Call it from Python."""
        return self.from_python(*arguments)

    def __reduce__(self) -> str:
        return self.__qualname__  # type: ignore[attr-defined, no-any-return, unused-ignore]

    @_made_once
    def from_python(self) -> Any:
        """Dispatcher of numba's that Python calls."""
        make_ready(self)
        return self._dispatcher("python", no_cpython_wrapper=False)

    @_made_once
    def from_compiled(self) -> Any:
        """Dispatcher that compiled code calls; it may have no entry for Python."""
        if self._shared:
            return self.from_python
        return self._dispatcher("compiled", no_cpython_wrapper=True)

    @_made_once
    def from_card(self) -> Any:
        """Dispatcher that code for a graphics card calls."""
        return _for_card(self)

    def _dispatcher(self, caller: str, **entries: bool) -> Any:
        function = self.__wrapped__  # type: ignore[attr-defined, unused-ignore]
        folder = _folder_in(function, self._made_ns, caller)
        # Options of `jit` that numba's types do not know.
        options: dict[str, Any] = {"no_cfunc_wrapper": True, **entries}
        options["forceinline"] = self._inlined  # said in any case, or callees would inherit it
        make: Any = numba.njit(
            cache=folder is not None, error_model="numpy", fastmath=False, nogil=True, **options
        )
        return cached_in(folder, lambda: make(function))


class CompiledStage:
    """A function of one address (of a record) that compiled code calls by its own address.

    Whoever calls it takes over nothing of its code, so that it is compiled once for all of them.
    They call it by name, as any function, or by an address that they are given, see
    `records.call_at`, for which it takes one address and gives nothing back.

    Attributes:
        on_demand: Whether it is not compiled for its callers.
        wait: Called before it is compiled: waits for another process that does it, if there is one.
        compile_beside: Has stages compiled in another process; None where there is no such.
    """

    compile_beside: ClassVar[Callable[[Sequence[CompiledStage]], None] | None] = None

    def __init__(
        self,
        function: Callable[..., Any],
        gives: types.Type = types.void,
        takes: Sequence[types.Type] = (),
        on_demand: bool = False,
    ) -> None:
        """Make it from a function.

        Args:
            function: The function, of an address and of `takes`.
            gives: Type that it gives back.
            takes: Types of its further arguments.
            on_demand: It is not compiled for its callers: whoever needs it asks for its address
                before.
        """
        functools.update_wrapper(self, function)  # type: ignore[arg-type, unused-ignore]
        self._made_ns = time.time_ns()
        self._signature = gives(types.int64, *takes)
        self.on_demand = on_demand
        self.wait: Callable[[], object] = lambda: None
        self._symbol = f"{function.__module__}.{function.__qualname__}"
        self._place = np.zeros(1, dtype=np.int64)
        add_symbol(self._symbol, self._place.ctypes.data)
        lower_builtin(self, types.VarArg(types.Any))(self._generate_call)

    def __call__(self, address: int, *arguments: float) -> Any:
        """Call it from Python."""
        return self._function.ctypes(address, *arguments)

    def __reduce__(self) -> str:
        return self.__qualname__  # type: ignore[attr-defined, no-any-return, unused-ignore]

    @_made_once
    def address(self) -> int:
        """Address of the compiled function in this process; compiles it on first use."""
        return int(self._function.address)

    @_made_once
    def from_card(self) -> Any:
        """Dispatcher that code for a graphics card calls."""
        return _for_card(self)

    def _generate_call(self, context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        """Code that calls it: its address is read when it is called."""
        word = ir.IntType(64)
        place = builder.module.globals.get(self._symbol)
        if place is None:
            place = ir.GlobalVariable(builder.module, word, self._symbol)
        gives = signature.return_type
        result = ir.VoidType() if gives == types.void else context.get_value_type(gives)
        kind = ir.FunctionType(result, [argument.type for argument in arguments]).as_pointer()
        called = builder.call(builder.inttoptr(builder.load(place), kind), arguments)
        return context.get_dummy_value() if gives == types.void else called

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
        """Whether it has been compiled since its sources were changed."""
        folder = self._folder
        name = self.__qualname__  # type: ignore[attr-defined, unused-ignore]
        return folder is not None and any(folder.glob(f"*.{name}-*"))

    def compile(self) -> None:
        """Compile it, and not the stages that it calls."""
        self._compiled  # noqa: B018 (compiles it)

    @functools.cached_property
    def _folder(self) -> Path | None:
        function = self.__wrapped__  # type: ignore[attr-defined, unused-ignore]
        return _folder_in(function, self._made_ns, "stage")

    @_made_once
    def _function(self) -> Any:
        """The function ready to be called, and all that it calls."""
        make_ready(self)
        self._place[0] = self._compiled.address
        return self._compiled

    @_made_once
    def _compiled(self) -> Any:
        self.wait()
        function = self.__wrapped__  # type: ignore[attr-defined, unused-ignore]
        folder = self._folder
        make: Any = numba.cfunc(
            self._signature, cache=folder is not None, error_model="numpy", fastmath=False
        )
        with _GARBAGE:
            return _with_room(lambda: cached_in(folder, lambda: make(function)))


def _folder_in(function: Any, made_ns: int, caller: str) -> Path | None:
    """Folder in which compiled code of a function is kept for a kind of caller, if it is kept.

    Raises:
        MuslsError: numba is told not to compile.
    """
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined, unused-ignore]
        raise MuslsError("NUMBA_DISABLE_JIT is set, and what musls flies has to be compiled")
    with global_compiler_lock, _GARBAGE:  # which syntax trees of sources make much of, too
        folder = folder_of(function, made_ns)
    return folder and folder / caller


def make_ready(function: CompiledFunction | CompiledStage) -> None:
    """Compile all stages that a function calls by name, or read their code from the cache."""
    stages = list(_stages_of(function, set()))
    if stages and CompiledStage.compile_beside is not None:
        itself = [function] if isinstance(function, CompiledStage) else []
        CompiledStage.compile_beside([*itself, *reversed(stages[1:])])  # here the first one begins
    for stage in stages:
        stage.address  # noqa: B018 (compiles it)


def _stages_of(function: Any, seen: set[int]) -> Iterator[CompiledStage]:
    """Stages that a function calls, directly or not, each behind those that it calls."""
    python = function.__wrapped__
    names = dict.fromkeys(_names_in(python.__code__))  # in their order
    named = [python.__globals__.get(name) for name in names]
    modules = [module for module in named if isinstance(module, ModuleType)]
    in_modules = [getattr(module, name, None) for module in modules for name in names]
    for called in named + in_modules:
        if id(called) in seen:
            continue
        seen.add(id(called))
        if isinstance(called, CompiledStage):
            if not called.on_demand:
                yield from _stages_of(called, seen)
                yield called
        elif isinstance(called, CompiledFunction):
            yield from _stages_of(called, seen)


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _names_in(part)


def _for_card(function: CompiledFunction | CompiledStage) -> Any:
    from numba import cuda  # takes half a second, and few have a card

    return cuda.jit(device=True)(function.__wrapped__)  # type: ignore[union-attr, unused-ignore]


class _StageType(types.Callable, types.Opaque):  # type: ignore[misc, unused-ignore]
    """Type of a `CompiledStage` in compiled code: that code calls it by the address it has then."""

    def __init__(self, stage: CompiledStage) -> None:
        self.stage = stage
        super().__init__(f"stage {stage._symbol}")

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """Types of a call, which the arguments are converted to."""
        return self.stage._signature

    def get_call_signatures(self) -> Any:
        """All types of calls, and whether there are more."""
        return (self.stage._signature,), False

    def get_impl_key(self, sig: Any) -> Any:
        """What the code of a call is known by."""
        return self.stage


register_model(_StageType)(models.OpaqueModel)


@typeof_impl.register(CompiledStage)
def _type_of_stage(stage: CompiledStage, _: Any) -> types.Type:
    if _CARD.get():
        return cast(types.Type, numba.typeof(stage.from_card))
    return _StageType(stage)


class _Called(types.Dispatcher):  # type: ignore[misc, unused-ignore]
    """Type of a `CompiledFunction` in compiled code: it is compiled once for arguments of a kind.

    numba would compile it once for arrays and once for those that are fields of a record, and
    once for each constant.
    """

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """Types of a call."""
        return super().get_call_type(context, tuple(map(_as_argument, args)), kws)


register_model(_Called)(models.OpaqueModel)


def _as_argument(given: Any) -> Any:
    """Type that an argument is passed as."""
    if isinstance(given, types.NestedArray):
        return types.Array(given.dtype, given.ndim, "C")
    return types.unliteral(given)


@lower_cast(types.NestedArray, types.Array)  # type: ignore[untyped-decorator, unused-ignore]
def _field_as_array(context: Any, builder: Any, given: Any, wanted: Any, value: Any) -> Any:
    """A field of a record that is passed as an array: it is laid out alike."""
    return value


@typeof_impl.register(CompiledFunction)
def _type_in_compiled_code(function: CompiledFunction, _: Any) -> types.Type:
    if _CARD.get():
        return cast(types.Type, numba.typeof(function.from_card))
    return _Called(function.from_compiled)
