"""Finds an installed PX4 SITL."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from musls_sim.px4.errors import Px4Error

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
        binary: The `px4` program.
        etc: Folder of its start-up scripts.
    """

    binary: Path
    etc: Path


def find_px4(
    environment: Mapping[str, str] = os.environ,
    package_folders: tuple[Path, ...] = PACKAGE_FOLDERS,
) -> Px4Install:
    """Find PX4: by PX4_BIN, on PATH, or in an installed px4 package.

    Args:
        environment: Holds PX4_BIN and PATH.
        package_folders: Where packages are installed.

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
