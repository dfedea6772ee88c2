"""The decorator that compiles every numba function of the distribution.

numba keeps compiled code on disk and compiles again when the file of the function changes. It does
not look at the other files: a function that calls a helper of another module, or uses a constant
of it, would go on with the old one. Here each module has a cache folder whose name is a hash of
what its source and the sources that it imports say, directly or not, in its own package and in this
distribution. So code is compiled once for all checkouts and environments of a user, wherever they
lie, and comments and docstrings may change. The folders lie in `NUMBA_CACHE_DIR` if that is set,
else in the user's cache, and in a temporary folder where there is no home that can be written.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import functools
import gc
import hashlib
import importlib.util
import os
import re
import shutil
import signal
import stat
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import types
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaExperimentalFeatureWarning
from numba.core.event import Event, Listener, register
from numba.extending import typeof_impl

# A function of the begin of a record takes records that go on after it: all are mere pointers.
warnings.filterwarnings(
    "ignore", ".*considered a subtype of Record", category=NumbaExperimentalFeatureWarning
)

Function = TypeVar("Function", bound=Callable[..., Any])

_FROM = re.compile(r"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import\b[ \t]*(\([^)]*\)|[^\n]*)", re.M)
_TYPE = re.compile(r"^class \w+\((?:NamedTuple|types\.Array)\)", re.M)
_IMPORT = re.compile(r"^[ \t]*import[ \t]+([^\n]+)", re.M)

_settings: Any = numba.config
_USERS_FOLDER = _settings.CACHE_DIR

KEPT_S = 14 * 86400.0
"""A cache of former sources is deleted this long after its last use, when a new one is begun."""


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
        self._compilations, self._collects = 0, False

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


_MAKING = threading.RLock()
"""Held while numba's setting of the cache folder is another one."""


def _cached_in(folder: Path, make: Callable[[], Any]) -> Any:
    """Make a function of numba's that is kept in a folder; numba reads its name meanwhile."""
    with _MAKING:
        before = _settings.CACHE_DIR, _settings.CACHE_LOCATOR_CLASSES
        _settings.CACHE_DIR = str(folder)
        _settings.CACHE_LOCATOR_CLASSES = f"{__name__}.{CacheByContent.__name__}"
        try:
            return make()
        finally:
            _settings.CACHE_DIR, _settings.CACHE_LOCATOR_CLASSES = before


class CacheByContent:
    """Locator of numba's whose folder alone says what the compiled code was made from."""

    def __init__(self) -> None:
        self._path: str = _settings.CACHE_DIR

    @classmethod
    def from_function(cls, function: object, file: object) -> CacheByContent:
        """Locator of a function."""
        return cls()

    def ensure_cache_path(self) -> None:
        """Make the folder; that it can be written is known."""
        Path(self._path).mkdir(exist_ok=True)

    def get_cache_path(self) -> str:
        """Folder of the function."""
        return self._path

    def get_source_stamp(self) -> str:
        """Stamp of the source: empty, since the folder's name identifies it."""
        return ""

    def get_disambiguator(self) -> str:
        """Suffix for functions of one name: empty, since numba compares bytecode, too."""
        return ""


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
        self._signatures, self._shared, self._inlined = signatures, shared, inlined

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

    def _dispatcher(self, caller: str, **entries: bool) -> Any:
        function = self.__wrapped__  # type: ignore[attr-defined, unused-ignore]
        folder = _cache_folder(function.__module__) / caller
        # Options of `jit` that numba's types do not know.
        options: dict[str, Any] = {"no_cfunc_wrapper": True, **entries}
        options["forceinline"] = self._inlined  # said in any case, or callees would inherit it
        make: Any = numba.njit(
            cache=True, error_model="numpy", fastmath=False, nogil=True, **options
        )
        dispatcher: Any = _cached_in(folder, lambda: make(function))
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

    @property
    def is_kept(self) -> bool:
        """Whether stages of its module have been compiled since their sources were changed."""
        return any(self._folder.glob("*"))

    @property
    def _folder(self) -> Path:
        return _cache_folder(self.__module__) / "stage"

    @functools.cached_property
    def _compiled(self) -> Any:
        self.wait()
        function = self.__wrapped__  # type: ignore[attr-defined, unused-ignore]
        make: Any = numba.cfunc(
            self._gives(types.int64), cache=True, error_model="numpy", fastmath=False
        )
        with global_compiler_lock:  # first, as everywhere: numba compiles it while it is made
            return _cached_in(self._folder, lambda: make(function))


@typeof_impl.register(CompiledFunction)
def _type_in_compiled_code(function: CompiledFunction, _: Any) -> types.Dispatcher:
    return types.Dispatcher(function.from_compiled)


def _cache_folder(name: str) -> Path:
    """Cache folder of a module and the present state of its sources."""
    return _begun(_base(), name, source_stamp(name))


def _base() -> Path:
    """Folder of all caches that this process can write."""
    return _writable(_USERS_FOLDER, os.environ.get("XDG_CACHE_HOME", ""))


@functools.cache
def _writable(users_folder: str, users_cache: str) -> Path:
    with contextlib.suppress(OSError):
        if users_folder:
            return _tried(Path(users_folder))
    with contextlib.suppress(OSError, RuntimeError):  # the latter: nobody knows a home
        return _tried(Path(users_cache or Path.home() / ".cache") / "musls")
    return _temporary()


def _tried(folder: Path) -> Path:
    """Return a folder in which this process can write, or raise OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()
    return folder


@functools.cache
def _temporary() -> Path:
    """Folder of this account for temporary caches; not writable by others: code lies in it."""
    folder = Path(tempfile.gettempdir()) / f"musls-{os.getuid()}"
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        own = folder.lstat()
        if stat.S_ISDIR(own.st_mode) and own.st_uid == os.getuid() and not own.st_mode & 0o077:
            return folder
    folder = Path(tempfile.mkdtemp(prefix="musls-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def _begun(base: Path, name: str, stamp: str) -> Path:
    """Make a cache folder, or note that it is in use; delete the old ones of the module."""
    folder = base / f"{name}-{stamp}"
    if not folder.is_dir():
        for old in (*base.glob(f"{name}-*"), *base.glob(f"{_SOURCES}/*")):
            with contextlib.suppress(FileNotFoundError):  # another process does the same
                if time.time() - old.stat().st_mtime > KEPT_S:
                    shutil.rmtree(old, ignore_errors=True) if old.is_dir() else old.unlink()
        folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    return folder


def source_stamp(name: str) -> str:
    """Hash of a module's source and those of all modules of ours that it imports.

    An index of compiled versions names the types that a function was called with, whoever defined
    them, and cannot be read once they are gone. So the names of such types in the module's own
    package and in ours count, too.
    """
    own = name.partition(".")[0]
    seen: set[str] = set()
    open_ends = [name]
    digests = [_types(package) for package in sorted({own, __name__.partition(".")[0]})]
    digests.append(f"numba {numba.__version__}")
    while open_ends:
        name = open_ends.pop()
        file = None if name in seen else _file_of(name)
        seen.add(name)
        if file is None:
            continue
        changed_ns = os.stat(file).st_mtime_ns  # quicker than a Path's, which counts here
        digest, imports = _source(file, changed_ns, _package_of(name, file))
        digests.append(f"{name} {digest}")
        open_ends += [
            found
            for found in imports
            if found.startswith("musls") or found.partition(".")[0] == own
        ]
    return hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()[:16]


def _file_of(name: str) -> str | None:
    """Source of a module, whether this process has imported it or not; None if it has none.

    What a function imports only when it runs counts from the beginning on, or else a stamp would
    depend on what the process has done before.
    """
    if module := sys.modules.get(name):
        return getattr(module, "__file__", None)
    found = _found(name)
    return found.origin if found is not None and found.has_location else None


@functools.cache
def _found(name: str) -> ModuleSpec | None:
    """Where a module is that has not been imported; `find_spec` alone would import its parents."""
    above = name.rpartition(".")[0]
    if not above:
        return importlib.util.find_spec(name)
    if package := sys.modules.get(above):
        folders = getattr(package, "__path__", None)
    else:
        folders = getattr(_found(above), "submodule_search_locations", None)
    return PathFinder.find_spec(name, folders) if folders else None


def _package_of(name: str, file: str) -> str:
    """Package that relative imports of a module start from."""
    module = sys.modules.get(name)
    if module is not None:
        return module.__package__ or ""
    return name if Path(file).stem == "__init__" else name.rpartition(".")[0]


@functools.cache
def _types(package: str) -> str:
    """Definitions in a package of types that compiled functions take."""
    found = {}
    for folder in getattr(sys.modules.get(package), "__path__", []):
        for file in sorted(Path(folder).rglob("*.py")):
            found[file.relative_to(folder)] = _TYPE.findall(file.read_text(encoding="utf-8"))
    return "".join(f"{file}: {types}\n" for file, types in found.items() if types)


@functools.cache
def _source(file: str, changed_ns: int, package: str) -> tuple[str, tuple[str, ...]]:
    """Hash of what a file says, and names that it imports: modules, and what may be one."""
    text = Path(file).read_text(encoding="utf-8")
    found = [word for match in _IMPORT.finditer(text) for word in re.findall(r"[\w.]+", match[1])]
    for match in _FROM.finditer(text):
        dots, origin, names = match.groups()
        if dots:
            above = package.split(".")[: len(package.split(".")) + 1 - len(dots)]
            origin = ".".join([*above, *filter(None, [origin])])
        found += [origin, *(f"{origin}.{name}" for name in re.findall(r"\w+", names))]
    return _meaning(text), tuple(dict.fromkeys(found))


_SOURCES = "sources"
"""Folder within the base: for each text of a module the hash of what it says."""


def _meaning(text: str) -> str:
    """Hash of the syntax tree of a module without docstrings, kept: parsing takes seconds."""
    name = f"{hashlib.sha256(text.encode()).hexdigest()}.{sys.implementation.cache_tag}"
    kept = _base() / _SOURCES / name
    with contextlib.suppress(OSError):
        digest = kept.read_text(encoding="utf-8")
        os.utime(kept)
        return digest
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [line for line in body if not _is_text(line)]  # type: ignore[attr-defined]
    digest = hashlib.sha256(ast.dump(tree).encode()).hexdigest()
    with contextlib.suppress(OSError):
        kept.parent.mkdir(exist_ok=True)
        whole = kept.with_name(f"{name}.{os.getpid()}")
        whole.write_text(digest, encoding="utf-8")
        whole.replace(kept)
    return digest


def _is_text(line: ast.AST) -> bool:
    """Whether a statement is a text that stands alone, as docstrings do."""
    return isinstance(line, ast.Expr) and isinstance(getattr(line.value, "value", None), str)
