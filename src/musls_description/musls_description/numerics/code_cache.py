"""Where compiled code is kept: folders whose names say what the code was made from.

numba keeps compiled code on disk and compiles again when the file of the function changes. It does
not look at the other files: a function that calls a helper of another module, or uses a constant
of it, would go on with the old one. Here each module has a cache folder whose name is a hash of
what its source and the sources that it imports say, directly or not, in its own package and in this
distribution. So code is compiled once for all checkouts and environments of a user, wherever they
lie, and comments and docstrings may change. The folders lie in `NUMBA_CACHE_DIR` if that is set,
else in the user's cache, and in a temporary folder where there is no home that can be written.

Code that another machine compiled (`musls compile`) is taken over from the folder that
`MUSLS_COMPILED` names, or from the package `musls_compiled`, if it fits (see `PrecompiledCode`).
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import functools
import hashlib
import importlib.util
import json
import os
import platform
import re
import shutil
import stat
import sys
import sysconfig
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import llvmlite.binding as llvm
import numba

from musls_description.config.errors import MuslsError

_FROM = re.compile(r"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import\b[ \t]*(\([^)]*\)|[^\n]*)", re.M)
_TYPE = re.compile(r"\nclass \w+\((?:NamedTuple|types\.Array)\)")
_IMPORT = re.compile(r"^[ \t]*import[ \t]+([^\n]+)", re.M)

_OURS = "musls"
"""What names of modules of this distribution begin with."""

_settings: Any = numba.config
_USERS_FOLDER = _settings.CACHE_DIR

ROOM_BYTES = 4_000_000
"""Room on the disk for what a function is compiled to, at least."""

KEPT_S = 14 * 86400.0
"""A cache of former sources is deleted this long after its last use, when a new one is begun."""


# ---------- Code that another machine compiled

MANIFEST = "compiled.json"
"""File in a folder of compiled code that says for what it was compiled, see `CodeTarget`, and how
large its files are."""

CODE = "code"
"""Folder beside it, with the cache folders of the modules."""

NATIVE = "native"
"""Target: the processor of this machine, with all it can do."""

_V2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")

TARGETS: dict[str, tuple[str, ...]] = {
    "x86-64-v2": _V2,
    "x86-64-v3": _V3,
    "x86-64-v4": _V4,
}
"""Processors that code can be compiled for beside `NATIVE`, and what they must be able to do, by
LLVM's names (x86-64 psABI, micro-architecture levels)."""


@dataclass(frozen=True)
class CodeTarget:
    """What compiled code runs on.

    Attributes:
        processor: Name of LLVM's, such as "x86-64-v3" or "znver3".
        features: Its abilities as LLVM takes them; "" for those of the name.
        machine: Architecture, such as "x86_64".
        system: Operating system, such as "Linux".
        python: Tag of Python's bytecode, such as "cpython-311".
        numba: Version.
    """

    processor: str
    features: str
    machine: str
    system: str
    python: str
    numba: str

    @classmethod
    def here(cls, target: str = NATIVE) -> CodeTarget:
        """Target of this Python, for a processor of `TARGETS`, or for the one that it runs on."""
        own = target == NATIVE
        return cls(
            processor=llvm.get_host_cpu_name() if own else target,
            features=llvm.get_host_cpu_features().flatten() if own else "",
            machine=platform.machine(),
            system=platform.system(),
            python=sys.implementation.cache_tag or "",
            numba=numba.__version__,
        )

    def environment(self) -> dict[str, str]:
        """Environment variables with which numba compiles for it."""
        return {"NUMBA_CPU_NAME": self.processor, "NUMBA_CPU_FEATURES": self.features}

    def obstacle(self) -> str:
        """Why code for this target cannot be used here, "" if it can."""
        if self.processor in TARGETS:
            able = llvm.get_host_cpu_features()
            lacks = [name for name in TARGETS[self.processor] if not able.get(name)]
            if lacks:
                return f"it is for {self.processor}, and this processor has no {', '.join(lacks)}"
            here = CodeTarget.here(self.processor)
        else:
            here = CodeTarget.here()
        for name, value in asdict(here).items():
            theirs = asdict(self)[name]
            if name != "features" and theirs != value:
                return f"it is for {name} {theirs}, and this is {value}"
        return "" if self.features == here.features else "this processor has other abilities"

    def write(self, folder: Path) -> None:
        """Write into a folder of compiled code what it runs on, and what belongs to it."""
        sizes = {module.name: _sizes_in(module) for module in sorted((folder / CODE).glob("*-*"))}
        text = json.dumps(asdict(self) | {"sizes": sizes}, indent=2)
        (folder / MANIFEST).write_text(f"{text}\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> CodeTarget:
        """Read the manifest of a folder (raises OSError, ValueError, TypeError, LookupError)."""
        said = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if not isinstance(said.pop("sizes"), dict):
            raise ValueError("sizes that are no mapping")
        target = cls(**said)
        if not all(isinstance(value, str) for value in asdict(target).values()):
            raise ValueError("a value that is no text")
        return target


class PrecompiledCode:
    """Compiled code that came with the installation, and fits this machine.

    numba is told its processor, so that what is missing in it is compiled for the same one; and
    what it compiles is kept apart from code for this very processor.

    Attributes:
        folder: Where it lies; it is not written.
        name: Hash of what it was made for, a name for a folder.
    """

    def __init__(self, folder: Path, target: CodeTarget) -> None:
        self.folder = folder
        self.name = hashlib.sha256(repr(target).encode()).hexdigest()[:16]
        self._warned = False
        _settings.CPU_NAME = target.processor
        _settings.CPU_FEATURES = target.features

    @functools.cached_property
    def _sizes(self) -> dict[str, dict[str, int]]:
        """Sizes of the files of each module's code."""
        said = json.loads((self.folder / MANIFEST).read_text(encoding="utf-8"))
        sizes: dict[str, dict[str, int]] = said["sizes"]
        return sizes

    def copy(self, name: str, stamp: str, into: Path) -> bool:
        """Copy the code of a module into a folder that is not there; returns whether it has it."""
        code = self.folder / CODE
        module = code / f"{name}-{stamp}"
        if module.name not in self._sizes:
            if any(code.glob(f"{name}-*")):
                self._warn_once(f"{name} has been changed since", "compiling what was")
            return False
        with tempfile.TemporaryDirectory(dir=into.parent) as beside:
            try:
                copy = shutil.copytree(module, Path(beside) / name)
                is_whole = _sizes_in(copy) == self._sizes[module.name]
            except OSError:
                is_whole = False
            if not is_whole:
                self._warn_once(f"{module.name} is not whole", "compiling what is not")
                return False
            with contextlib.suppress(OSError):  # another process has done the same
                copy.rename(into)
        return True

    def _warn_once(self, reason: str, instead: str) -> None:
        if not self._warned:
            self._warned = True
            _warn(self.folder, reason, instead)


def _sizes_in(module: Path) -> dict[str, int]:
    """Sizes of the files of a module's code."""
    files = [file for file in module.rglob("*") if file.is_file()]
    return {str(file.relative_to(module)): file.stat().st_size for file in sorted(files)}


def _warn(folder: Path, reason: str, instead: str = "compiling") -> None:
    warnings.warn(f"compiled code in {folder}: {reason}; {instead}", stacklevel=2)


def _precompiled() -> PrecompiledCode | None:
    """Compiled code that is named or installed, if it fits; says why it does not."""
    named = os.environ.get("MUSLS_COMPILED")
    if named == "":
        return None
    if named is not None:
        folder = Path(named)
    else:
        package = importlib.util.find_spec("musls_compiled")
        if package is None or package.origin is None:
            return None
        folder = Path(package.origin).parent
    try:
        target = CodeTarget.read(folder)
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        _warn(folder, f"no {MANIFEST} that can be read ({type(error).__name__})")
        return None
    if obstacle := target.obstacle():
        _warn(folder, obstacle)
        return None
    return PrecompiledCode(folder, target)


_PRECOMPILED = _precompiled()


# ---------- numba's cache

_MAKING = threading.RLock()
"""Held while numba's setting of the cache folder is another one."""


def cached_in(folder: Path | None, make: Callable[[], Any]) -> Any:
    """Make a function of numba's that is kept in a folder; numba reads its name meanwhile."""
    if folder is None:
        return make()
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

    def __init__(self, function: FunctionType, file: str) -> None:
        self._path: str = _settings.CACHE_DIR
        self._numbers_and_names = _numbers_and_names(function.__code__, function.__doc__)
        self._py_file = file  # numba names it where it warns that a function cannot be kept

    @classmethod
    def from_function(cls, function: FunctionType, file: str) -> CacheByContent:
        """Locator of a function."""
        return cls(function, file)

    def ensure_cache_path(self) -> None:
        """Make the folder, also where it has been deleted meanwhile; say where there is no room."""
        Path(self._path).mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(self._path).free < ROOM_BYTES:
            raise MuslsError(
                f"no room for compiled code in {self._path}: make some, or let NUMBA_CACHE_DIR"
                " name a folder on another disk"
            )

    def get_cache_path(self) -> str:
        """Folder of the function."""
        return self._path

    def get_source_stamp(self) -> str:
        """Stamp of the source: empty, since the folder's name identifies it."""
        return ""

    def get_disambiguator(self) -> str:
        """Suffix for functions of one name: numba compares bytecode, which does not say them."""
        return hashlib.sha256(self._numbers_and_names.encode()).hexdigest()[:8]


def _numbers_and_names(code: CodeType, docstring: str | None) -> str:
    """What bytecode has by place only, also of functions within."""
    said = [
        _numbers_and_names(constant, None) if isinstance(constant, CodeType) else repr(constant)
        for constant in code.co_consts
        if constant is not None and constant is not docstring
    ]
    return repr((said, code.co_names, code.co_varnames))


# ---------- The folder of a module


def compiled_files(folder: Path | None = None) -> int:
    """Number of functions that are compiled in a folder, by default in that of all caches."""
    return sum(1 for _ in (folder or _base()).rglob("*.nbc"))


def folder_of(function: FunctionType, made_ns: int) -> Path | None:
    """Cache folder of a function that was made at a time (of `time.time_ns`).

    None if nobody can know what it was made from: it is not of a file (but of a notebook, of an
    archive, or of a text that was executed), or a file has been changed since.
    """
    name = function.__module__
    file = _file_of(name)
    if file is None or file != function.__code__.co_filename or not os.path.isfile(file):
        return None
    try:
        stamp, changed_ns = source_state(name)
        if made_ns < changed_ns <= time.time_ns():  # or else a clock is wrong
            return None
        return _begun(_base(), name, stamp)
    except (OSError, SyntaxError, UnicodeDecodeError):  # a file that is just being written
        return None


def _base() -> Path:
    """Folder of all caches that this process can write."""
    base = _writable(_USERS_FOLDER, os.environ.get("XDG_CACHE_HOME", ""))
    return base / _PRECOMPILED.name if _PRECOMPILED else base


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
        for old in (*base.glob(f"{name}-*"), *base.glob(f"{_KEPT}/*")):
            with contextlib.suppress(FileNotFoundError):  # another process does the same
                if time.time() - old.stat().st_mtime > KEPT_S:
                    shutil.rmtree(old, ignore_errors=True) if old.is_dir() else old.unlink()
        base.mkdir(exist_ok=True)
        if not (_PRECOMPILED and _PRECOMPILED.copy(name, stamp, folder)):
            folder.mkdir(exist_ok=True)
    os.utime(folder)
    return folder


def source_state(name: str) -> tuple[str, int]:
    """Hash of a module's source and of those that it imports, and when the last was changed [ns].

    What a module of ours imports of others does not count; of other people's modules all does but
    for what is installed, which changes with its own package.
    An index of compiled versions names the types that a function was called with, whoever defined
    them, and cannot be read once they are gone. So the names of such types in the module's own
    package and in ours count, too.
    """
    own = name.partition(".")[0]
    seen: set[str] = set()
    open_ends = [name]
    digests = [_types(package) for package in sorted({own, __name__.partition(".")[0]})]
    digests.append(f"numba {numba.__version__}")
    last_ns = 0
    ours = own.startswith(_OURS)
    while open_ends:
        name = open_ends.pop()
        file = None if name in seen else _file_of(name)
        seen.add(name)
        if file is None or (_is_installed(file) and not _is_of(name, own)):
            continue
        changed_ns = os.stat(file).st_mtime_ns  # quicker than a Path's, which counts here
        digest, imports = _source(file, changed_ns, _package_of(name, file))
        last_ns = max(last_ns, changed_ns)
        digests.append(f"{name} {digest}")
        open_ends += [found for found in imports if not ours or _is_of(found, own)]
    return hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()[:16], last_ns


def _is_of(name: str, package: str) -> bool:
    return name.startswith(_OURS) or name.partition(".")[0] == package


@functools.cache
def _is_installed(file: str) -> bool:
    """Whether a file is of Python's own library or of an installed package."""
    parts = Path(file).parts
    installed = "site-packages" in parts or "dist-packages" in parts
    return installed or file.startswith(sysconfig.get_path("stdlib"))


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
    if not all(map(str.isidentifier, name.split("."))):  # a text that looked like an import
        return None
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
            with contextlib.suppress(OSError):  # a link to nowhere, such as an editor's lock
                text = file.read_text(encoding="utf-8", errors="replace")
                found[file.relative_to(folder)] = _TYPE.findall(text)
    return "".join(f"{file}: {types}\n" for file, types in found.items() if types)


@functools.cache
def _source(file: str, changed_ns: int, package: str) -> tuple[str, list[str]]:
    """Hash of what a file says, and names that it imports: modules, and what may be one."""
    data = Path(file).read_bytes()
    if not file.endswith(".py"):  # compiled by others
        return hashlib.sha256(data).hexdigest(), []
    text = importlib.util.decode_source(data)
    name = hashlib.sha256(f"{package}\n{text}".encode()).hexdigest()
    made = kept(f"{name}.{sys.implementation.cache_tag}", lambda: _read(text, package).encode())
    digest, *imports = made.decode().split()
    return digest, imports


def _read(text: str, package: str) -> str:
    """Hash of what a text says, then the names that it imports."""
    found = [word for match in _IMPORT.finditer(text) for word in re.findall(r"[\w.]+", match[1])]
    for match in _FROM.finditer(text):
        dots, origin, names = match.groups()
        if dots:
            above = package.split(".")[: len(package.split(".")) + 1 - len(dots)]
            origin = ".".join([*above, *filter(None, [origin])])
        found += [origin, *(f"{origin}.{name}" for name in re.findall(r"\w+", names))]
    return "\n".join([_meaning(text), *dict.fromkeys(found)])


def _meaning(text: str) -> str:
    """Hash of the syntax tree of a module without docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [line for line in body if not _is_text(line)]  # type: ignore[attr-defined]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _is_text(line: ast.AST) -> bool:
    """Whether a statement is a text that stands alone, as docstrings do."""
    return isinstance(line, ast.Expr) and isinstance(getattr(line.value, "value", None), str)


_KEPT = "kept"
"""Folder within the base for what else takes long to make."""


def kept(name: str, make: Callable[[], bytes]) -> bytes:
    """Bytes that are made once for all processes; the name has to say what they are made from."""
    file = _base() / _KEPT / name
    with contextlib.suppress(OSError):
        data = file.read_bytes()
        os.utime(file)
        return data
    if _PRECOMPILED:
        with contextlib.suppress(OSError):
            return (_PRECOMPILED.folder / CODE / _KEPT / name).read_bytes()
    data = make()
    with contextlib.suppress(OSError):
        file.parent.mkdir(exist_ok=True)
        whole = file.with_name(f"{name}.{os.getpid()}")
        whole.write_bytes(data)
        whole.replace(file)
    return data
