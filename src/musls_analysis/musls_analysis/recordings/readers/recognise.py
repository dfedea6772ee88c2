"""Finds out what a recording is and reads it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from musls_analysis.recordings.raw_bag import STORAGE_SUFFIXES, storage_in
from musls_analysis.recordings.readers.bags import read_bag_of_any_kind
from musls_analysis.recordings.readers.excerpt import is_excerpt, read_excerpt
from musls_analysis.recordings.readers.flight_log import is_flight_log, read_flight_log
from musls_analysis.recordings.readers.options import ReadOptions
from musls_analysis.recordings.recording import Recording
from musls_description.errors import ConfigError

_HEAD_BYTES = 65536


def read_recording(path: Path | str, options: ReadOptions | None = None) -> Recording:
    """Read a flight, real or simulated.

    Args:
        path: Bag (folder or .mcap, .db3), result folder of `musls fly`, folder with one storage
            file, log file of the seed paper's flights, or CSV excerpt.
        options: What the recording does not say.

    Returns:
        The recording, its poses at strictly increasing times; what was dropped is in `warnings`.

    Raises:
        ConfigError: Missing, empty, damaged or of an unknown kind.
    """
    path, options = Path(path), options or ReadOptions()
    if not path.exists():
        raise ConfigError(f"{path}: no such file or folder")
    if path.is_dir():
        recording = read_bag_of_any_kind(_bag_in(path), options)
        return replace(recording, source=str(path))
    if path.suffix in STORAGE_SUFFIXES:
        return read_bag_of_any_kind(path, options)
    first_lines = _first_lines(path)
    if is_excerpt(first_lines[0]):
        return read_excerpt(path, options)
    if is_flight_log(first_lines):
        return read_flight_log(path, options)
    raise ConfigError(
        f"{path}: not a recording: neither a bag nor a flight log (35 + 20 n columns) nor a CSV "
        "with a column load_x"
    )


def _bag_in(folder: Path) -> Path:
    """The bag that a folder is or holds."""
    for candidate in (folder, folder / "bag"):
        if found := storage_in(candidate):
            return found
    several = any(f.suffix in STORAGE_SUFFIXES for f in folder.iterdir())
    what = "several storage files in it" if several else "no metadata.yaml and no bag/ in it"
    raise ConfigError(f"{folder}: not a recording ({what})")


def _first_lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    if not head.strip():
        raise ConfigError(f"{path}: the file is empty")
    if b"\0" in head:
        raise ConfigError(f"{path}: not a recording (binary, but no .mcap or .db3)")
    lines = head.decode("utf-8", errors="replace").splitlines()
    return [line for line in lines if line.strip()][:20]
