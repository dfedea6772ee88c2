"""Which PX4 it is: its version, the parameters it knows, and what differs between releases.

Both are read from the program file before it is started. A build names its version as
`git describe` prints it ("v1.17.0-alpha1"); the names of its parameters are text in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from musls_description.errors import ConfigError

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
        binary: Its path.
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

    Args:
        binary: The program.

    Returns:
        What it is; a file that is no compiled PX4 (a wrapper script) tells neither.
    """
    try:
        content = binary.read_bytes()
    except OSError:
        return Firmware(binary)
    found = _VERSION.search(content)
    version = found[1].decode() if found else "unknown"
    names = frozenset(word[:-1].decode() for word in set(_PARAMETER.findall(content)))
    return Firmware(binary, version, names if names >= _ALWAYS_THERE else None)
