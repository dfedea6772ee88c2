"""Result folders, and the signals that end a run.

A run writes into its folder from the begin; the folder is complete when its summary is there. What
a killed run leaves is a folder without one, whose recording is read up to its last whole chunk.

Three signals ask a run to end: Ctrl-C, SIGTERM and SIGHUP, all alike. The first one breaks off
whatever is being done. What was flown by then is written all the same; one more, or the first one
after the flight, leaves the report out. Bag, scenario and summary are kept in any case, but for a
third signal while they are written.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Any

from musls_description.config.errors import MuslsError

UNFINISHED = ".unfinished"
"""File in the folder of a run that goes on, failed or was killed."""

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
    if not overwrite:
        raise ResultError(f"output folder {out} exists; --overwrite replaces it")
    if not any(os.path.isfile(out / mark) for mark in MARKS):
        raise ResultError(
            f"{out} is not a result of musls (no {' or '.join(MARKS[:2])} in it): not overwritten"
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
    """Make a result folder; an older one is put back where the block fails and nothing was flown.

    What was flown is the error's `recording` (see `musls_bringup.fly.keeping`), or lies in bags of
    flights that are parts of the result.
    """
    check_folder(out, overwrite=overwrite)
    out = Path(os.path.realpath(out))  # "." and links: the folder itself is replaced
    older = out.with_name(f".{out.name[:_LONGEST]}.older")
    made = [parent for parent in out.parents if not os.path.lexists(parent)]
    begun = False
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(out):
            shutil.rmtree(older, ignore_errors=True)
            out.rename(older)
        out.mkdir()
        begun = True
        (out / UNFINISHED).touch()
        yield out
        (out / UNFINISHED).unlink(missing_ok=True)
        shutil.rmtree(older, ignore_errors=True)
    except BaseException as error:
        inside = begun and any(out.glob("*/*/**/*.mcap"))  # flights that are parts of the result
        flown = inside or hasattr(error, "recording")
        if inside:
            _say_kept(error, out)
        elif not flown:
            if begun:
                shutil.rmtree(out, ignore_errors=True)
            if os.path.lexists(older):
                older.rename(out)
        if isinstance(error, OSError):
            kept = f"; what was made is in {out}" if flown else ""
            reason = f"output folder {out} cannot be written: {error.strerror or error}{kept}"
            raise ResultError(reason) from error
        raise
    finally:
        for parent in made:
            with suppress(OSError):  # not empty: it holds the result
                parent.rmdir()


def _say_kept(error: BaseException, place: Path) -> None:
    """Add to an error where the flights are that were made before it."""
    kept = f"what was flown is kept in {place}"
    if isinstance(error, StopRequested):
        error.kept = kept
    elif isinstance(error, MuslsError) and kept not in str(error):
        error.args = (f"{error}; {kept}",)


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
