"""Errors that a user can mend; the command line shows them as one line."""

from __future__ import annotations

import difflib
import errno
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

MAX_LENGTH = 2000
"""Longest message; user input, such as a name of a million letters, may be part of it."""


def one_line(text: str) -> str:
    """Write a text on one line: white space becomes a blank, control characters are escaped."""
    text = " ".join(text.split())
    if len(text) > MAX_LENGTH:
        half = MAX_LENGTH // 2
        text = f"{text[:half]} ... {text[-half:]}"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class MuslsError(Exception):
    """Base of all errors that end a command with one clear line and exit code 2."""

    def __init__(self, message: str = "") -> None:
        super().__init__(one_line(str(message)))


class ConfigError(MuslsError, ValueError):
    """A file, key or value is wrong; the message names it, its value and what is allowed."""


def install_command(*packages: str) -> str:
    """Command that adds packages to the Python that runs, from a clone or a wheel alike."""
    return f"`{sys.executable} -m pip install {' '.join(packages)}`"


# ---------- Files from data


def file_name(text: str) -> str:
    """Name of one file or folder from a text of data, such as a stage's name; never a path."""
    return re.sub(r"^[.-]|[^\w.+-]", "_", text)[:LONGEST_NAME] or "_"


def check_present_folder() -> None:
    """Refuse to work in a folder that has been deleted (raises ConfigError)."""
    try:
        os.getcwd()
    except OSError as error:
        reason = error.strerror or error
        raise ConfigError(f"present folder: {reason}: change to one that exists") from None


def check_regular(path: Path | str) -> None:
    """Refuse to read what is no file: a pipe would be waited for, a device has no end.

    Raises:
        ConfigError: Something else has this name; without the name, as readers put it before.
        OSError: There is nothing that can be read.
    """
    if not stat.S_ISREG(os.stat(path).st_mode) and not os.path.isdir(path):
        raise ConfigError("cannot be read: not a file (a pipe or a device)")


# ---------- Files that cannot be written


def is_full_disk(error: BaseException | None) -> bool:
    """Whether an error comes from a full disk, a full quota or a limit to the size of files."""
    full = errno.ENOSPC, errno.EDQUOT, errno.EFBIG
    while error is not None and not (isinstance(error, OSError) and error.errno in full):
        error = error.__cause__
    return error is not None


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Around what writes a file or folder: where the system refuses that, the error names it."""
    try:
        yield
    except OSError as error:
        raise MuslsError(f"{path} cannot be written: {error.strerror or error}") from error


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary path that becomes `path` when the block ends without an error."""
    work = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        with writing(path):
            yield work
            work.replace(path)
    finally:
        with suppress(OSError):
            work.unlink(missing_ok=True)


# ---------- Suggestions for a wrong name

MAX_NAMES = 60
"""Known names that are listed when none is near."""

LONGEST_NAME = 100
"""Longest name for which similar names are looked for; comparing longer ones would take long."""


def lock(file: IO[Any]) -> None:
    """Lock an open file, until it is closed or the process ends, however it does.

    Raises:
        BlockingIOError: It is locked.
        OSError: The file system has no locks.
    """
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(*error.args) from None
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def close_names(name: object, candidates: Iterable[str]) -> list[str]:
    """Up to three known names near a wrong one, the nearest first."""
    if not isinstance(name, str) or len(name) > LONGEST_NAME:
        return []
    return difflib.get_close_matches(name, list(candidates), n=3, cutoff=0.5)


def near_names(name: object, candidates: Iterable[str]) -> str:
    """Known names near a wrong one, "did you mean 'a' or 'b'?", else all, "known: a, b, c"."""
    names = [str(one) for one in candidates]
    near = close_names(name, names)
    if near:
        return "did you mean " + " or ".join(f"'{n}'" for n in near) + "?"
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return "known: " + (", ".join(names[:MAX_NAMES]) or "none") + more
