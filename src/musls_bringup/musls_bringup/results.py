"""Result folders: made whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from musls_description.errors import MuslsError

MARKS = ("summary.json", "comparison.json")
"""Every result folder holds one of these files; only such folders are ever overwritten."""


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
        ResultError: `out` exists (see `check_folder`), or cannot be written.
    """
    check_folder(out, overwrite=overwrite)
    out = Path(os.path.realpath(out))  # "." and links: the folder itself is replaced
    work = out.parent / f".{out.name}.partial-{os.getpid()}"
    made = [parent for parent in work.parents if not parent.exists()]
    try:
        work.mkdir(parents=True)
        yield work
        if overwrite and out.exists():
            shutil.rmtree(out)
        work.rename(out)
    except OSError as error:
        reason = error.strerror or error
        raise ResultError(f"output folder {out} cannot be written: {reason}") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
        for parent in made:
            with suppress(OSError):  # not empty: it holds the result
                parent.rmdir()
