"""Result folders, and the signals that end a run.

A run writes into its folder from the begin; the folder is complete when its summary is there. What
a killed run leaves is a folder without one, whose recording is read up to its last whole chunk.
While it goes on its folder is locked; the system ends the lock with the process, however that ends.
A folder that holds a bag is removed by nothing but `--overwrite`, when the next run is complete.

Three signals ask a run to end: Ctrl-C, SIGTERM and SIGHUP, all alike. The first one breaks off
whatever is being done. What was flown by then is written all the same; one more, or the first one
after the flight, leaves the report out. Bag, scenario and summary are kept in any case, but for a
third signal while they are written.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import IO, Any

from musls_description.config.errors import MuslsError, lock

UNFINISHED = ".unfinished"
"""File in the folder of a run that goes on, which locks it, failed or was killed."""

MARKS = ("summary.json", "comparison.json", UNFINISHED)
"""Every result folder holds one of these files; only such folders are ever overwritten."""

_LONGEST = 200
"""Characters of a name that go into that of the older folder; most file systems take 255."""


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
    if os.path.isfile(out / UNFINISHED):
        _locked(out / UNFINISHED).close()
    if not overwrite:
        raise ResultError(f"output folder {out} exists; --overwrite replaces it")
    if not any(os.path.isfile(out / mark) for mark in MARKS):
        raise ResultError(
            f"{out} is not a result of musls (no {' or '.join(MARKS[:2])} in it): not overwritten"
        )
    for mark in out.rglob(UNFINISHED):  # a flight that is a part of it may go on
        _locked(mark).close()


def _locked(mark: Path) -> IO[bytes]:
    """Lock a file of a result folder, for as long as it is open.

    Raises:
        ResultError: Another run has the lock, or has taken the folder away meanwhile.
    """
    with ExitStack() as failing:
        file = failing.enter_context(mark.open("rb"))
        try:
            lock(file)
        except BlockingIOError:
            raise _in_use(mark.parent) from None
        except OSError:
            pass  # this file system has no locks
        if not _is(mark, file):
            raise _in_use(mark.parent)
        failing.pop_all()
    return file


def _made(folder: Path) -> IO[bytes]:
    """Make a folder and lock it (raises ResultError: another run was faster)."""
    try:
        folder.mkdir()
        (folder / UNFINISHED).touch()
        return _locked(folder / UNFINISHED)
    except (FileExistsError, ResultError):
        raise _in_use(folder) from None


def _is(path: Path, file: IO[bytes]) -> bool:
    """Whether an open file still has this path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except OSError:
        return False


def _in_use(folder: Path) -> ResultError:
    return ResultError(
        f"output folder {folder}: another run writes into it; wait for its end, or --out names "
        "another folder"
    )


def check_older(out: Path | None, *names: str, overwrite: bool) -> None:
    """Refuse a folder in which files of these names would be replaced."""
    older = [out / name for name in names if out is not None and os.path.lexists(out / name)]
    if older and not overwrite:
        raise ResultError(f"{older[0]} exists; --overwrite replaces it")


def chosen_folder(out: Path | None, name: str, *, overwrite: bool) -> Path:
    """The folder asked for, else the default one of a name."""
    folder = out or default_folder(name)
    check_folder(folder, overwrite=overwrite)
    return folder


@contextmanager
def result_folder(out: Path, *, overwrite: bool) -> Iterator[Path]:
    """Context with a new, locked result folder, which is removed where the block fails.

    It is kept if it holds a bag, or if the exception of a signal has an attribute `kept` that says
    what is. With `overwrite` an older folder is replaced, and put back if the new one is removed.
    A bag in which nothing was flown is removed by whoever made it.
    """
    check_folder(out, overwrite=overwrite)
    out = Path(os.path.realpath(out))  # "." and links: the folder itself is replaced
    older = out.with_name(f".{out.name[:_LONGEST]}.older")
    parents = [parent for parent in out.parents if not os.path.lexists(parent)]
    replaces = makes = False
    own: IO[bytes] | None = None
    with ExitStack() as files:
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            if os.path.lexists(out):
                mark = next(out / mark for mark in reversed(MARKS) if os.path.isfile(out / mark))
                before = files.enter_context(_locked(mark))
                shutil.rmtree(older, ignore_errors=True)
                if sys.platform == "win32":  # does not rename a folder with open files
                    before.close()
                replaces = True
                out.rename(older)
            makes = True
            own = files.enter_context(_made(out))
            yield out
            if sys.platform == "win32":  # does not remove open files
                own.close()
            (out / UNFINISHED).unlink(missing_ok=True)
            if replaces:
                shutil.rmtree(older, ignore_errors=True)
        except BaseException as error:
            bag = own is not None and os.path.isdir(out) and any(out.rglob("*.mcap"))
            if bag:
                _say_kept(error, out)
            elif own is not None and isinstance(error, StopRequested) and error.kept:
                pass
            elif own is not None and _is(out / UNFINISHED, own):
                shutil.rmtree(out, ignore_errors=True)
            elif makes and own is None and not isinstance(error, ResultError):
                with suppress(OSError):
                    (out / UNFINISHED).unlink(missing_ok=True)
                    out.rmdir()
            if replaces and os.path.lexists(older) and not os.path.lexists(out):
                older.rename(out)
            if isinstance(error, OSError):
                remark = f"; what was made is in {out}" if bag else ""
                reason = f"output folder {out} cannot be written: {error.strerror or error}{remark}"
                raise ResultError(reason) from error
            raise
        finally:
            for parent in parents:
                with suppress(OSError):  # not empty: it holds the result
                    parent.rmdir()


def _say_kept(error: BaseException, place: Path) -> None:
    """Add to an error where the flight is, or the flights are, made before it."""
    remark = f"what was flown is kept in {place}"
    parts = any(place.glob("*/*/**/*.mcap"))
    if isinstance(error, StopRequested):
        error.kept = remark if parts else error.kept or remark
    elif isinstance(error, MuslsError) and remark not in str(error):
        error.args = (f"{error}; {remark}",)


ENDING = [n for n in signal.Signals if n.name in ("SIGINT", "SIGTERM", "SIGHUP")]
"""The signals; Windows has no SIGHUP."""

GIVE_UP = 3
"""Number of signals after which the program stops waiting for results."""


class StopRequested(KeyboardInterrupt):
    """One of the signals came.

    Its `exit_code` is what a shell expects of a process that a signal ended: 128 and its number.
    `kept` says where what was flown is, if it is anywhere.
    """

    def __init__(self, number: int, kept: str = "") -> None:
        self.exit_code = 128 + number
        self.kept = kept
        super().__init__(f"ended by {signal.Signals(number).name}")

    @property
    def name(self) -> str:
        """Name of the signal."""
        return signal.Signals(self.exit_code - 128).name

    def __str__(self) -> str:
        return f"{super().__str__()}: {self.kept}" if self.kept else super().__str__()


def catch() -> None:
    """Turn each signal into `StopRequested`, except those that the process ignores.

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
        """The flight is over and its results are written: a signal waits, the third does not.

        A signal that ends the flight does it itself.
        """
        self._held = True
        self._in_flight = self._count

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
        if self._held and self._count < GIVE_UP:
            return
        if not self._held:
            self.hold()
        raise StopRequested(number)
