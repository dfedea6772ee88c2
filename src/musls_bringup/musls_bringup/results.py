"""Result folders: made whole or not at all, and only one run at a time for each.

A run writes into `.NAME.partial` beside its folder NAME and renames that at its end. The partial
folder is also the claim on NAME: it holds the file `.run`, locked as long as the run lives, so that
a second run with the same folder learns it before it begins. What a killed run leaves behind has no
lock any more: the next run in the same place keeps its recording as `NAME_killed` or, where there
is none, deletes it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import IO, NamedTuple

from musls_description.errors import MuslsError

MARKS = ("summary.json", "comparison.json")
"""Every result folder holds one of these files; only such folders are ever overwritten."""

_OWNER = ".run"
_SUFFIX = ".partial"
_LONGEST = 200
"""Characters of a name that go into its partial folder's; most file systems take 255."""


class ResultError(MuslsError):
    """A result folder cannot be written."""


class Owner(NamedTuple):
    """The run that writes a partial folder.

    Attributes:
        pid: Its process.
        host: Its machine.
        name: Name of the folder that it makes.
    """

    pid: int
    host: str
    name: str


def default_folder(name: str) -> Path:
    """`runs/NAME_DATE_TIME` below the present folder."""
    # Milliseconds, because runs are started side by side.
    now = datetime.now()
    return Path("runs") / f"{name}_{now:%Y-%m-%d_%H-%M-%S}-{now.microsecond // 1000:03d}"


def check_folder(out: Path, *, overwrite: bool) -> None:
    """Refuse a folder that must not be written.

    Raises:
        ResultError: It exists and `overwrite` is not given, or is no result of musls.
    """
    if not os.path.lexists(out):
        return
    if not overwrite:
        raise ResultError(f"output folder {out} exists; --overwrite replaces it")
    if not any(os.path.isfile(out / mark) for mark in MARKS):
        raise ResultError(
            f"{out} is not a result of musls (no {' or '.join(MARKS)} in it): not overwritten"
        )


@contextmanager
def result_folder(out: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a temporary folder that becomes `out` when the block ends without an error.

    Raises:
        ResultError: `out` exists (see `check_folder`), a living run is writing it, or it cannot be
            written.
    """
    check_folder(out, overwrite=overwrite)
    out = Path(os.path.realpath(out))  # "." and links: the folder itself is replaced
    made = [parent for parent in out.parents if not os.path.lexists(parent)]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            os.lstat(out)  # a name that is too long shows now, not after the work
        with _claimed(out) as work:
            try:
                yield work
                _finish(work, out, overwrite=overwrite)
            except BaseException:
                shutil.rmtree(work, ignore_errors=True)
                raise
    except OSError as error:
        reason = error.strerror or error
        raise ResultError(f"output folder {out} cannot be written: {reason}") from error
    finally:
        for parent in made:
            with suppress(OSError):  # not empty: it holds the result
                parent.rmdir()


@contextmanager
def _claimed(out: Path) -> Iterator[Path]:
    """Make the partial folder and lock it as long as the block runs."""
    work = out.parent / f".{out.name[:_LONGEST]}{_SUFFIX}"
    # The lock has to be there when the folder appears under its name, hence the renaming.
    fresh = Path(tempfile.mkdtemp(_SUFFIX, f".{out.name[:_LONGEST]}-", out.parent))
    try:
        fresh.chmod(0o777 & ~_umask())
        with (fresh / _OWNER).open("w", encoding="utf-8") as lock:
            with suppress(OSError):  # a file system without locks: the process number has to do
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            json.dump(Owner(os.getpid(), socket.gethostname(), out.name)._asdict(), lock)
            lock.flush()
            _take_name(fresh, work, out)
            yield work
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _take_name(fresh: Path, work: Path, out: Path) -> None:
    """Give the folder its name, unless a living run has it; what a dead one left is put aside."""
    for _ in range(3):
        try:
            os.rename(fresh, work)  # fails where a folder with files in it exists
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        with _abandoned(work) as owner:
            if owner is not None:
                put_aside(work, out.name)
                continue
        raise ResultError(f"another run is writing {out} ({_describe(work)}): name another folder")
    raise ResultError(f"another run is writing {out}: name another folder")


def _describe(work: Path) -> str:
    owner = _owner(work)
    return f"process {owner.pid} on {owner.host}" if owner else f"its files are in {work}"


def _owner(work: Path) -> Owner | None:
    """What a partial folder says about its run; None without such a file."""
    try:
        return Owner(**json.loads((work / _OWNER).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


@contextmanager
def _abandoned(work: Path) -> Iterator[Owner | None]:
    """The run that left a partial folder behind; None if it may be alive.

    While the block runs nobody else takes the folder for abandoned.
    """
    owner = _owner(work)
    # A lock of another machine may be invisible here.
    if owner is None or owner.host != socket.gethostname():
        yield None
        return
    try:
        lock: IO[str] = (work / _OWNER).open("r+", encoding="utf-8")
    except OSError:
        yield None
        return
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
            return
        except OSError:  # no locks here
            if _is_alive(owner.pid):
                yield None
                return
        yield owner


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def leftovers(parent: Path) -> Iterator[tuple[Path, str]]:
    """Partial folders in a folder whose runs are dead, with the names that they were to get.

    While the caller has one, no other process takes it.
    """
    for work in sorted(parent.glob(f".*{_SUFFIX}")):
        with _abandoned(work) as owner:
            if owner is not None:
                yield work, owner.name


def put_aside(work: Path, name: str) -> Path | None:
    """Keep what a killed run recorded beside where its result was to be.

    Args:
        work: Its partial folder, see `leftovers`.
        name: Of the folder that it was to become.

    Returns:
        Where it is now; None if there was no recording and the folder is deleted.

    Raises:
        OSError: It cannot be renamed.
    """
    if not any(file.stat().st_size for file in work.glob("bag/*.mcap")):
        shutil.rmtree(work)
        return None
    for k in range(1, 1000):
        kept = work.parent / f"{name[:_LONGEST]}_killed{f'_{k}' if k > 1 else ''}"
        if not os.path.lexists(kept):
            work.rename(kept)
            (kept / _OWNER).unlink()
            return kept
    raise OSError(errno.EEXIST, f"{kept} and all lower numbers exist already")


def _finish(work: Path, out: Path, *, overwrite: bool) -> None:
    """Turn the partial folder into the result."""
    (work / _OWNER).unlink()
    if not (overwrite and os.path.lexists(out)):
        work.rename(out)
        return
    older = Path(tempfile.mkdtemp(prefix=f".{out.name[:_LONGEST]}-older-", dir=out.parent))
    out.rename(older / out.name)  # out of the way at once, deleted after
    try:
        work.rename(out)
    except OSError:
        (older / out.name).rename(out)
        raise
    finally:
        shutil.rmtree(older, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
