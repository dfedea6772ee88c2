"""Result folders: made whole or not at all, and only one run at a time for each.

A run writes into `.NAME.partial` beside its folder NAME and renames that at its end. As long as it
lives it locks the file `.run` in there: a second run with the same folder learns it before it
begins, and what a killed run leaves behind has no lock. The next run in the same place keeps its
recording as `NAME_killed` or, where there is none, deletes it.

Three signals ask a run to end: Ctrl-C, SIGTERM and SIGHUP, all alike. Before anything is flown they
end the command at once. In flight the first one stops the flight, whose results are then written;
one more, or the first one after the flight, leaves the report out. Bag, scenario and summary are
kept in any case, unless a third one comes while they are written.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from musls_description.errors import MuslsError

MARKS = ("summary.json", "comparison.json")
"""Every result folder holds one of these files; only such folders are ever overwritten."""

_OWNER = ".run"
_SUFFIX = ".partial"
_LONGEST = 200
"""Characters of a name that go into its partial folder's; most file systems take 255."""


class ResultError(MuslsError):
    """A result folder cannot be written."""


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
        ResultError: As `check_folder`; a living run is writing `out`, or it cannot be written.
    """
    check_folder(out, overwrite=overwrite)
    out = Path(os.path.realpath(out))  # "." and links: the folder itself is replaced
    work = out.parent / f".{out.name[:_LONGEST]}{_SUFFIX}"
    made = [parent for parent in out.parents if not os.path.lexists(parent)]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            os.lstat(out)  # a name that is too long shows now, not after the work
        with _claimed(work, out):
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
def _claimed(work: Path, out: Path) -> Iterator[None]:
    """Make the partial folder and lock it as long as the block runs."""
    if work.is_dir():
        with _abandoned(work) as free:
            if not free:
                owner = work / _OWNER
                who = owner.read_text(encoding="utf-8") if owner.is_file() else ""
                who = who or f"its files are in {work}"
                raise ResultError(f"another run is writing {out} ({who}): name another folder")
            put_aside(work, out.name)
    work.mkdir()
    with (work / _OWNER).open("w", encoding="utf-8") as lock:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        lock.write(f"process {os.getpid()}{_on_host()}")  # locked before it says whose it is
        lock.flush()
        yield


def _on_host() -> str:
    return f" on {socket.gethostname()}"


@contextmanager
def _abandoned(work: Path) -> Iterator[bool]:
    """Whether the run of a partial folder is dead; while the block runs nobody else takes it."""
    with ExitStack() as stack:
        try:
            lock = stack.enter_context((work / _OWNER).open("r+", encoding="utf-8"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = lock.read().endswith(_on_host())  # another machine's lock may be invisible here
        except OSError:  # no such file, locked, or no locks here
            free = False
        yield free


def leftovers(parent: Path) -> Iterator[tuple[Path, str]]:
    """Partial folders in a folder whose runs are dead, with the names that they were to get.

    While the caller has one, no other process takes it.
    """
    for work in sorted(parent.glob(f".*{_SUFFIX}")):
        with _abandoned(work) as free:
            if free:
                yield work, work.name[1:].removesuffix(_SUFFIX)


def put_aside(work: Path, name: str) -> Path | None:
    """Keep what a killed run recorded beside where its result was to be, and return where.

    None if there was no recording and the folder is deleted.

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


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals."""

GIVE_UP = 3
"""With so many signals results are no longer waited for."""


class EndAsked(SystemExit):
    """One of the signals came; no `KeyboardInterrupt`, which typer would make an exit code of 130.

    Its `exit_code` is what a shell expects of a process that a signal ended: 128 and its number.
    """

    def __init__(self, number: int) -> None:
        """Keep the exit code."""
        self.exit_code = 128 + number
        super().__init__(self.exit_code)


def catch() -> None:
    """Let each of the signals raise `EndAsked`, but leave those alone that are to be ignored.

    `nohup` ignores SIGHUP, and shells SIGINT for what they start in the background.
    """
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _raise)


def _raise(number: int, frame: FrameType | None) -> None:
    raise EndAsked(number)


class Ending:
    """A context manager around a run that is to keep its results when it is asked to end.

    It takes over the signals that would raise an exception; others, such as SIGTERM in a program
    that uses musls as a library, keep their meaning. Outside the main thread it does nothing.
    `number` is the first signal that came, 0 without any.
    """

    def __init__(self) -> None:
        self.number = 0
        self._count = 0
        self._stop: Callable[[], None] | None = None
        self._skippable = False
        self._before: dict[int, Any] = {}

    @property
    def name(self) -> str | None:
        """Name of the first signal; None without any."""
        return signal.Signals(self.number).name if self.number else None

    def keep_with(self, stop: Callable[[], None]) -> None:
        """From now on there is something to keep."""
        self._stop = stop

    @contextmanager
    def skippable(self) -> Iterator[None]:
        """Around work that one more signal breaks off; with two signals it does not begin.

        Raises:
            EndAsked: It is to be left out.
        """
        self._skippable = True
        try:
            if self._count > 1:
                raise EndAsked(self.number)
            yield
        finally:
            self._skippable = False

    def __enter__(self) -> Ending:
        if threading.current_thread() is threading.main_thread():
            for number in ENDING:
                handler = signal.getsignal(number)
                if callable(handler):  # SIG_DFL and SIG_IGN are not
                    self._before[number] = signal.signal(number, self._asked)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _asked(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        self.number = self.number or number
        if self._stop is None or self._skippable:
            raise EndAsked(number)
        if self._count >= GIVE_UP:
            raise KeyboardInterrupt
        self._stop()
