"""Result folders: made whole or not at all, and only one run at a time for each.

A run writes into `.NAME.partial` beside its folder NAME and renames that at its end. As long as it
lives it locks the file `.run` in there: a second run with the same folder learns it before it
begins, and what a killed run leaves behind has no lock. The next run in the same place keeps its
recording as `NAME_killed` or, where there is none, deletes it.

Three signals ask a run to end: Ctrl-C, SIGTERM and SIGHUP, all alike. The first one breaks off
whatever is being done. What was flown by then is written all the same; one more, or the first one
after the flight, leaves the report out. Bag, scenario and summary are kept in any case; a third
signal while they are written leaves them to the next run in the same place, as a killed run does.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any

from musls_description.config.errors import MuslsError
from musls_description.config.errors import lock as lock_file

MARKS = ("summary.json", "comparison.json")
"""Every result folder holds one of these files; only such folders are ever overwritten."""

_OWNER = ".run"
_SUFFIX = ".partial"
_LONGEST = 200
"""Characters of a name that go into its partial folder's; most file systems take 255."""


SILENT_S = 60.0
"""Within which a run has written into its folder whose it is."""


class ResultError(MuslsError):
    """A result folder cannot be written."""


def default_folder(name: str) -> Path:
    """`runs/NAME_DATE_TIME` below the present folder."""
    # Milliseconds, because runs are started side by side.
    now = datetime.now()
    return Path("runs") / f"{name}_{now:%Y-%m-%d_%H-%M-%S}-{now.microsecond // 1000:03d}"


def check_folder(out: Path, *, overwrite: bool) -> None:
    """Refuse a folder that must not be written."""
    if not os.path.lexists(out):
        return
    if not overwrite:
        raise ResultError(f"output folder {out} exists; --overwrite replaces it")
    if not any(os.path.isfile(out / mark) for mark in MARKS):
        raise ResultError(
            f"{out} is not a result of musls (no {' or '.join(MARKS)} in it): not overwritten"
        )


def check_older(out: Path | None, *names: str, overwrite: bool) -> None:
    """Refuse a folder in which files of these names would be replaced."""
    older = [out / name for name in names if out is not None and (out / name).exists()]
    if older and not overwrite:
        raise ResultError(f"{older[0]} exists; --overwrite replaces it")


def chosen_folder(out: Path | None, name: str, *, overwrite: bool) -> Path:
    """The folder asked for, else the default one of a name."""
    folder = out or default_folder(name)
    check_folder(folder, overwrite=overwrite)
    return folder


@contextmanager
def result_folder(out: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a temporary folder that becomes `out` when the block ends without an error.

    With an error it is deleted, but where that has a `recording` (see `musls_bringup.fly.keeping`)
    or the whole result cannot be renamed: then it stays for the next run in the same place. Flights
    in there that were whole before the error are kept as `NAME_killed`.
    """
    check_folder(out, overwrite=overwrite)
    out = Path(os.path.realpath(out))  # "." and links: the folder itself is replaced
    work = out.parent / f".{out.name[:_LONGEST]}{_SUFFIX}"
    kept = False
    made = [parent for parent in out.parents if not os.path.lexists(parent)]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            os.lstat(out)  # a name that is too long shows now, not after the work
        with _claimed(work, out):
            try:
                yield work
                kept = True
                _finish(work, out, overwrite=overwrite)
            except BaseException as error:
                kept = kept or hasattr(error, "recording")
                if not kept and any(work.glob("*/*/**/*.mcap")):  # flights within the result
                    _say_kept(error, put_aside(work, out.name))
                elif not kept:
                    shutil.rmtree(work, ignore_errors=True)
                raise
    except OSError as error:
        reason = str(error.strerror or error)
        if kept:
            reason += f"; what was made is in {work}"
        raise ResultError(f"output folder {out} cannot be written: {reason}") from error
    finally:
        for parent in made:
            with suppress(OSError):  # not empty: it holds the result
                parent.rmdir()


@contextmanager
def _claimed(work: Path, out: Path) -> Iterator[None]:
    """Make the partial folder and lock it as long as the block runs."""
    owner = work / _OWNER
    if work.is_dir():
        with _abandoned(work) as free:
            if not free:
                writer = owner.read_text(encoding="utf-8") if owner.is_file() else ""
                writer = writer or f"its files are in {work}"
                raise ResultError(f"another run is writing {out} ({writer}): name another folder")
            put_aside(work, out.name)
    work.mkdir()
    with ExitStack() as stack:
        try:
            lock = stack.enter_context(owner.open("w", encoding="utf-8"))
            with suppress(OSError):  # a file system without locks
                lock_file(lock)
            # Locked before it says whose it is.
            lock.write(f"process {os.getpid()} on {socket.gethostname()}")
            lock.flush()
        except BaseException:  # a full disk, a signal: nobody would take it for abandoned
            shutil.rmtree(work, ignore_errors=True)
            raise
        yield


@contextmanager
def _abandoned(work: Path) -> Iterator[bool]:
    """Whether the run of a partial folder is dead; while the block runs nobody else takes it."""
    with ExitStack() as stack:
        try:
            lock = stack.enter_context((work / _OWNER).open("r+", encoding="utf-8"))
            lock_file(lock)
            # Another machine's lock may be invisible here. One that says nothing for so long was
            # left by a run that could not write it.
            writer = lock.read()
            silent_s = time.time() - os.fstat(lock.fileno()).st_mtime
            free = writer.endswith(f" on {socket.gethostname()}")
            free |= not writer and silent_s > SILENT_S
        except OSError:  # no such file, locked, or no locks here
            free = False
        yield free


def leftovers(parent: Path) -> Iterator[tuple[Path, str]]:
    """Partial folders of dead runs, locked for other processes, and the names they were to get."""
    for work in sorted(parent.glob(f".*{_SUFFIX}")):
        with _abandoned(work) as free:
            if free:
                yield work, work.name[1:].removesuffix(_SUFFIX)


def put_aside(work: Path, name: str) -> Path | None:
    """Keep what a killed run recorded beside where its result was to be; None if nothing was."""
    if not any(file.stat().st_size for file in work.rglob("*.mcap")):
        shutil.rmtree(work)
        return None
    for k in range(1, 1000):
        kept = work.parent / f"{name[:_LONGEST]}_killed{f'_{k}' if k > 1 else ''}"
        if not os.path.lexists(kept):
            work.rename(kept)
            (kept / _OWNER).unlink()
            return kept
    raise OSError(errno.EEXIST, f"{kept} and all lower numbers exist already")


def _say_kept(error: BaseException, place: Path | None) -> None:
    """Add to an error where the flights are that were made before it."""
    kept = f"what was flown is kept in {place}"
    if isinstance(error, StopRequested):
        error.kept = kept
    elif isinstance(error, MuslsError):
        error.args = (f"{error}; {kept}",)


def _finish(work: Path, out: Path, *, overwrite: bool) -> None:
    """Turn the partial folder into the result; an older one is put back where that fails."""
    older = out.with_name(f".{out.name[:_LONGEST]}.older")
    shutil.rmtree(older, ignore_errors=True)
    if overwrite and os.path.lexists(out):
        out.rename(older)
    try:
        work.rename(out)
    except OSError:
        if os.path.lexists(older):
            older.rename(out)
        raise
    (out / _OWNER).unlink()
    shutil.rmtree(older, ignore_errors=True)


ENDING = [n for n in signal.Signals if n.name in ("SIGINT", "SIGTERM", "SIGHUP")]
"""The signals; Windows has no SIGHUP."""

GIVE_UP = 3
"""With so many signals results are no longer waited for."""


class StopRequested(KeyboardInterrupt):
    """One of the signals came.

    Its `exit_code` is what a shell expects of a process that a signal ended: 128 and its number.
    `kept` says where what was flown is, if it is anywhere.
    """

    def __init__(self, number: int, kept: str = "") -> None:
        self.exit_code, self.kept = 128 + number, kept
        super().__init__(f"ended by {signal.Signals(number).name}")

    @property
    def name(self) -> str:
        """Name of the signal."""
        return signal.Signals(self.exit_code - 128).name

    def __str__(self) -> str:
        return f"{super().__str__()}: {self.kept}" if self.kept else super().__str__()


def catch() -> None:
    """Let each of the signals raise `StopRequested`, but leave those alone that are to be ignored.

    `nohup` ignores SIGHUP, and shells SIGINT for what they start in the background.
    """
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _raise)


def _raise(number: int, frame: FrameType | None) -> None:
    raise StopRequested(number)


class Ending:
    """A context manager around a run that is to keep its results when it is asked to end.

    It takes over the signals that would raise an exception; others, such as SIGTERM in a program
    that uses musls as a library, keep their meaning. Outside the main thread it does nothing.
    `number` is the first signal that came, 0 without any.
    """

    def __init__(self) -> None:
        self.number = 0
        self._count = self._in_flight = 0
        self._held = False
        self._before: dict[int, Any] = {}

    @property
    def name(self) -> str | None:
        """Name of the first signal; None without any."""
        return signal.Signals(self.number).name if self.number else None

    def hold(self) -> None:
        """The flight is over and its results are written: a signal waits, the third does not."""
        self._held, self._in_flight = True, self._count

    @contextmanager
    def skippable(self) -> Iterator[None]:
        """Around work that a signal breaks off; with one since the flight it does not begin."""
        self._held = False
        try:
            if self._count > self._in_flight:
                raise StopRequested(self.number)
            yield
        finally:
            self._held = True

    def __enter__(self) -> Ending:
        if threading.current_thread() is threading.main_thread():
            for number in ENDING:
                handler = signal.getsignal(number)
                if callable(handler):  # SIG_DFL and SIG_IGN are not
                    self._before[number] = signal.signal(number, self._asked)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _asked(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        self.number = self.number or number
        if not self._held or self._count >= GIVE_UP:
            raise StopRequested(number)
