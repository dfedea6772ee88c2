"""Finds an installed PX4 SITL."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from musls_description.errors import ConfigError, MuslsError

# ---------- What can go wrong with a real autopilot


class Px4Error(MuslsError):
    """PX4 is missing, did not start, refused, failed or died; the message holds its own words."""


PACKAGE_FOLDERS = (Path("/opt/px4"), Path("/opt/px4-gazebo"))
"""Where PX4's own .deb packages and container images put it."""

START_SCRIPT = Path("init.d-posix") / "rcS"

HOW_TO_GET = (
    "install PX4's package px4_*.deb or px4-gazebo_*.deb (PX4-Autopilot's releases on GitHub), "
    "work in its image px4io/px4-sitl, or name a binary by PX4_BIN"
)


@dataclass(frozen=True)
class Px4Install:
    """A PX4 SITL on this machine.

    Attributes:
        etc: Folder of its start-up scripts.
    """

    binary: Path
    etc: Path


def find_px4(
    environment: Mapping[str, str] = os.environ,
    package_folders: tuple[Path, ...] = PACKAGE_FOLDERS,
) -> Px4Install:
    """Find PX4: by PX4_BIN, on PATH, or in an installed px4 package.

    `environment`: holds PX4_BIN and PATH.

    Raises:
        Px4Error: There is none, or it lacks its scripts.
    """
    named = environment.get("PX4_BIN")
    if named:
        if not (os.path.isfile(named) and os.access(named, os.X_OK)):
            raise Px4Error(f"PX4_BIN = {named}: no such program; {HOW_TO_GET}")
        return _with_scripts(Path(named))
    on_path = shutil.which("px4", path=environment.get("PATH", ""))
    if on_path:
        return _with_scripts(Path(on_path))
    for folder in package_folders:
        if os.access(folder / "bin" / "px4", os.X_OK):
            return _with_scripts(folder / "bin" / "px4")
    looked = ", ".join(str(folder) for folder in package_folders)
    raise Px4Error(f"no px4 found (PX4_BIN, PATH, {looked}): {HOW_TO_GET}")


def _with_scripts(program: Path) -> Px4Install:
    """The installation that a program belongs to; links are followed."""
    binary = program.resolve()
    etc = binary.parent.parent / "etc"
    if not (etc / START_SCRIPT).is_file():
        raise Px4Error(
            f"{program}: PX4's scripts are missing, there is no {etc / START_SCRIPT}; {HOW_TO_GET}"
        )
    return Px4Install(binary, etc)


# ---------- Version, known parameters, and differences between releases

FLIGHT_LOGS = "**/*.ulg"
"""Below the working folder: `log` in a build of one's own, `fs/log` in packages."""

_VERSION = re.compile(rb"\0(v1\.(?:1[3-9]|[2-9]\d)\.\d+[\w.+~-]{0,40})\0")
_RELEASE = re.compile(r"v(\d+)\.(\d+)")
_PARAMETER = re.compile(rb"[A-Z][A-Z0-9_]{2,15}\0")
_ALWAYS_THERE = frozenset({"MPC_THR_HOVER", "COM_DISARM_PRFLT", "SYS_AUTOSTART"})
"""A list of names without these is no list of PX4's parameters."""


@dataclass(frozen=True)
class Profile:
    """What musls sets in a release of PX4, by its names there.

    Attributes:
        release: First release for which this holds; it holds until the next profile.
        no_flight_log: Switches PX4's flight log off.
        no_gps_delay: Says that fixes are not late.
    """

    release: tuple[int, int]
    no_flight_log: Mapping[str, float]
    no_gps_delay: Mapping[str, float]


_MODE, _BACKEND = {"SDLOG_MODE": -1.0}, {"SDLOG_BACKEND": 0.0}
_EKF2 = {"EKF2_GPS_DELAY": 0.0}
_SENSORS = {"SENS_GPS0_DELAY": 0.0, "SENS_GPS1_DELAY": 0.0}

PROFILES = (
    Profile((1, 15), _MODE, _EKF2),  # default of the delay 110 ms
    Profile((1, 16), _MODE, _EKF2),  # 10 ms, set after the airframe
    Profile((1, 17), _BACKEND, _EKF2),
    Profile((1, 18), _BACKEND, _SENSORS),  # 10 ms, set after the airframe
)
"""In the order of the releases."""


@dataclass(frozen=True)
class Firmware:
    """A PX4 program.

    Attributes:
        version: As it names itself; "unknown" if it does not.
        parameters: Names of the parameters that it can know; None if they cannot be told.
    """

    binary: Path
    version: str = "unknown"
    parameters: frozenset[str] | None = field(default=None, repr=False)

    @property
    def text(self) -> str:
        """For messages: "PX4 v1.17.0 (/opt/px4/bin/px4)"."""
        return f"PX4 {self.version} ({self.binary})"

    @property
    def release(self) -> tuple[int, int] | None:
        """Major and minor number, or None."""
        found = _RELEASE.match(self.version)
        return (int(found[1]), int(found[2])) if found else None

    def lacks(self, name: str) -> bool:
        """Whether it certainly does not know a parameter."""
        return self.parameters is not None and name not in self.parameters

    def refuse_unknown(self, chosen: Iterable[str]) -> None:
        """Refuse a user's parameters that it does not know, before anything starts.

        Raises:
            ConfigError: Names the first one.
        """
        for name in filter(self.lacks, chosen):
            raise ConfigError(f"autopilot.parameters.{name}: {self.text} has no such parameter")

    def switches(self, *, flight_log: bool = False) -> dict[str, float]:
        """Parameters for no delay of the fixes and no flight log, by the names they have here.

        A build between two releases has the names of either, so the names decide; without them
        the release does, and without that the newest one.

        Args:
            flight_log: Leave the flight log as PX4 has it: on while armed.
        """
        kinds = ("no_gps_delay",) if flight_log else ("no_flight_log", "no_gps_delay")
        fits = [p for p in PROFILES if self.release is None or p.release <= self.release]
        own = (fits or [PROFILES[0]])[-1]
        others = [p for p in reversed(PROFILES) if p is not own]
        chosen: dict[str, float] = {}
        for kind in kinds:
            for profile in (own, *others):
                wanted: Mapping[str, float] = getattr(profile, kind)
                if not any(self.lacks(name) for name in wanted):
                    chosen |= wanted
                    break
        return chosen


@lru_cache(maxsize=8)
def read_firmware(binary: Path) -> Firmware:
    """Read version and parameters of a PX4 from its program file.

    A file that is no compiled PX4 (a wrapper script) tells neither.
    """
    try:
        content = binary.read_bytes()
    except OSError:
        return Firmware(binary)
    found = _VERSION.search(content)
    version = found[1].decode() if found else "unknown"
    names = frozenset(word[:-1].decode() for word in set(_PARAMETER.findall(content)))
    return Firmware(binary, version, names if names >= _ALWAYS_THERE else None)
