"""Finds an installed PX4 SITL, and what it tells about itself."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from musls_description.config.errors import ConfigError, MuslsError

# ---------- What can go wrong with a real autopilot


class Px4Error(MuslsError):
    """PX4 is missing, did not start, refused, failed or died; the message holds its own words."""


PACKAGE_FOLDERS = (Path("/opt/px4"), Path("/opt/px4-gazebo"))
"""Folder of PX4's own .deb packages and container images."""

START_SCRIPT = Path("init.d-posix") / "rcS"

HOW_TO_GET = (
    "install PX4's package px4_*.deb or px4-gazebo_*.deb (PX4-Autopilot's releases on GitHub), "
    "work in its image px4io/px4-sitl, or name a binary by PX4_BIN"
)


def find_px4(
    environment: Mapping[str, str] = os.environ,
    package_folders: tuple[Path, ...] = PACKAGE_FOLDERS,
) -> Firmware:
    """Find PX4: by PX4_BIN, on PATH, or in an installed px4 package.

    `environment`: holds PX4_BIN and PATH.
    """
    program = find_program("px4", "PX4_BIN", HOW_TO_GET, environment, package_folders)
    firmware = read_firmware(program.resolve())  # links are followed to the installation
    script = firmware.etc / START_SCRIPT
    if not script.is_file():
        raise Px4Error(f"{program}: PX4's scripts are missing, there is no {script}; {HOW_TO_GET}")
    return firmware


def find_program(
    name: str,
    variable: str,
    how_to_get: str,
    environment: Mapping[str, str],
    package_folders: Sequence[Path] = (),
) -> Path:
    """Find a program: by an environment variable, on PATH, or in `bin` of a folder."""
    if path := environment.get(variable):
        if not (os.path.isfile(path) and os.access(path, os.X_OK)):
            raise Px4Error(f"{variable} = {path}: no such program; {how_to_get}")
        return Path(path)
    if on_path := shutil.which(name, path=environment.get("PATH", "")):
        return Path(on_path)
    for folder in package_folders:
        if os.access(folder / "bin" / name, os.X_OK):
            return folder / "bin" / name
    places = ", ".join([variable, "PATH", *map(str, package_folders)])
    raise Px4Error(f"no {name} found ({places}): {how_to_get}")


# ---------- Version, known parameters, and differences between releases

FLIGHT_LOGS = "**/*.ulg"
"""Flight logs below the working folder: `log` in your own build, `fs/log` in packages."""

Profiles = tuple[tuple[tuple[int, int], Mapping[str, float]], ...]

_VERSION = re.compile(rb"\0(v1\.(?:1[3-9]|[2-9]\d)\.\d+[\w.+~-]{0,40})\0")
_RELEASE = re.compile(r"v(\d+)\.(\d+)")
_PARAMETER = re.compile(rb"[A-Z][A-Z0-9_]{2,15}\0")
_ALWAYS_THERE = frozenset({"MPC_THR_HOVER", "COM_DISARM_PRFLT", "SYS_AUTOSTART"})
"""A list of names without these is no list of PX4's parameters."""

NO_FLIGHT_LOG: Profiles = (((1, 17), {"SDLOG_BACKEND": 0.0}), ((0, 0), {"SDLOG_MODE": -1.0}))
"""Switches PX4's flight log off, from a release on; newest first."""

NO_GPS_DELAY: Profiles = (
    ((1, 18), {"SENS_GPS0_DELAY": 0.0, "SENS_GPS1_DELAY": 0.0}),
    ((0, 0), {"EKF2_GPS_DELAY": 0.0}),
)
"""Fixes are not late, likewise; the default is 110 ms in v1.15, later 10 ms after the airframe."""


@dataclass(frozen=True)
class Firmware:
    """A PX4 program.

    Attributes:
        version: Version that it reports; "unknown" if it does not.
        parameters: Names of the parameters that it can know; None if they cannot be told.
    """

    binary: Path
    version: str = "unknown"
    parameters: frozenset[str] | None = field(default=None, repr=False)

    @property
    def etc(self) -> Path:
        """Folder of its start-up scripts."""
        return self.binary.parent.parent / "etc"

    @property
    def text(self) -> str:
        """Name for messages: "PX4 v1.17.0 (/opt/px4/bin/px4)"."""
        return f"PX4 {self.version} ({self.binary})"

    @property
    def release(self) -> tuple[int, int] | None:
        """Major and minor number, or None."""
        match = _RELEASE.match(self.version)
        return (int(match[1]), int(match[2])) if match else None

    @property
    def is_released(self) -> bool:
        """Whether it is a release, not a build of something between two."""
        return re.fullmatch(r"v\d+\.\d+\.\d+", self.version) is not None

    @property
    def sources(self) -> Path | None:
        """Folder of the sources in which it was built (build/TARGET/bin/px4), or None."""
        folder = self.binary.parents[3] if len(self.binary.parents) > 3 else None
        return folder if folder is not None and (folder / "msg").is_dir() else None

    def lacks(self, name: str) -> bool:
        """Whether it certainly does not know a parameter."""
        return self.parameters is not None and name not in self.parameters

    def refuse_unknown(self, names: Iterable[str]) -> None:
        """Refuse a user's parameters that it does not know, before anything starts."""
        for name in filter(self.lacks, names):
            raise ConfigError(f"autopilot.parameters.{name}: {self.text} has no such parameter")

    def switches(self, *, flight_log: bool = False) -> dict[str, float]:
        """Parameters for no delay of the fixes and no flight log, by the names they have here.

        A build between two releases has the names of either, so the names decide; without them
        the release does, and without that the newest one.

        Args:
            flight_log: Leave the flight log as PX4 has it: on while armed.
        """
        release = self.release
        values = dict[str, float]()
        for profiles in (NO_GPS_DELAY,) if flight_log else (NO_FLIGHT_LOG, NO_GPS_DELAY):
            own_first = sorted(profiles, key=lambda p: release is not None and p[0] > release)
            fits = (names for _, names in own_first if not any(map(self.lacks, names)))
            values |= next(fits, {})
        return values


@lru_cache(maxsize=8)
def read_firmware(binary: Path) -> Firmware:
    """Read version and parameters of a PX4 from its program file.

    A file that is no compiled PX4 (a wrapper script) tells neither.
    """
    try:
        content = binary.read_bytes()
    except OSError:
        return Firmware(binary)
    match = _VERSION.search(content)
    version = match[1].decode() if match else "unknown"
    names = frozenset(word[:-1].decode() for word in set(_PARAMETER.findall(content)))
    return Firmware(binary, version, names if names >= _ALWAYS_THERE else None)
