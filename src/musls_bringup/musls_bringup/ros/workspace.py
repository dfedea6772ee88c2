"""Builds the missing message packages with colcon and the generator wheels.

They are installed into the Python environment itself, beside the ROS wheels, which put their
libraries there too: after that they are found like any other package. Where a ROS installation or
an overlay already has a package it is left alone, and never shadowed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from musls_bringup.ros.interfaces import (
    DEFAULT_RELEASE,
    ORIGIN_FILE,
    InterfacePackage,
    px4_interface,
    px4_msgs,
    tf2_msgs,
)
from musls_description.errors import MuslsError

GENERATOR = "rosidl_default_generators"


class RosSetupError(MuslsError):
    """ROS 2 is missing, or the message packages cannot be built."""


def missing_packages(px4: str | None = None) -> list[InterfacePackage]:
    """Message packages that Python does not find, or that hold other messages than wanted.

    Args:
        px4: Release or sources of PX4; None takes what is installed if it is whole.
    """
    installed = installed_px4()
    wanted = px4_msgs(px4 or (DEFAULT_RELEASE if installed in (None, OTHER) else installed))
    return [
        package
        for package in (tf2_msgs(), wanted)
        if find_spec(package.name) is None or _is_outdated(package)
    ]


OTHER = "other"
"""px4_msgs that neither fit a release nor say where they are from."""


def installed_px4(prefix: Path = Path(sys.prefix)) -> str | None:
    """Whose messages px4_msgs in this Python environment has.

    Returns:
        A release, a folder of sources, `OTHER`, or None: there is none, or it is of a ROS
        installation and its own affair.
    """
    share = _share("px4_msgs", prefix)
    if share is None:
        return None
    origin = share / ORIGIN_FILE
    if origin.is_file():
        named = origin.read_text(encoding="utf-8").strip()
        return named if named.startswith("v") or (Path(named) / "msg").is_dir() else OTHER
    table = px4_interface()
    fits = [r for r in table.releases if not _is_outdated(px4_msgs(r), prefix)]
    return fits[-1] if fits else OTHER


def _share(name: str, prefix: Path) -> Path | None:
    """Folder of a package that `set_up` has installed; None if it did not."""
    folder = prefix / "share" / name
    return folder if (folder / "msg").is_dir() else None


def _is_outdated(package: InterfacePackage, prefix: Path = Path(sys.prefix)) -> bool:
    """Whether the package in this Python environment has not the wanted messages."""
    share = _share(package.name, prefix)
    if share is None:
        return False  # of a ROS installation
    for name, facts in package.messages.items():
        file = share / "msg" / f"{name}.json"  # REP 2016's description, with the types' hashes
        text = share / "msg" / f"{name}.msg"  # holds the version, which is not in the hash
        if not file.is_file() or facts.type_hash not in file.read_text(encoding="utf-8"):
            return True
        version = _version_in(facts.text)
        if version != _version_in(text.read_text(encoding="utf-8")):
            return True
    return False


def _version_in(text: str) -> int:
    """MESSAGE_VERSION of a message's definition; without one it is 0."""
    found = re.search(r"MESSAGE_VERSION\s*=\s*(\d+)", text)
    return int(found[1]) if found else 0


def check_ros() -> None:
    """Refuse to go on without rclpy and the messages.

    Raises:
        RosSetupError: Says what is missing and what helps.
    """
    if find_spec("rclpy") is None:
        raise RosSetupError(
            "rclpy is missing: ./musls ros setup installs it, or source a ROS 2 Jazzy "
            "installation that runs the same Python"
        )
    missing = [package.name for package in missing_packages()]
    if missing:
        names = " and ".join(missing)
        raise RosSetupError(f"{names} missing or of another version: run ./musls ros setup")


def set_up(say: Callable[[str], None] = lambda text: None, px4: str | None = None) -> list[str]:
    """Build and install the message packages that are missing.

    Args:
        say: Told what is being done.
        px4: Release of PX4 whose messages are wanted, or folder of its sources.

    Returns:
        Names of the packages that were built.

    Raises:
        RosSetupError: Something needed is not there, or the build fails.
    """
    if find_spec("rclpy") is None:
        check_ros()
    packages = missing_packages(px4)
    if not packages:
        return []
    names = [package.name for package in packages]
    if os.environ.get("ROS_DISTRO"):
        raise RosSetupError(
            f"{' and '.join(names)} not found by Python although ROS {os.environ['ROS_DISTRO']} is "
            f"sourced: build px4_msgs of your PX4 in your workspace (tf2_msgs comes with "
            "ROS) and source it"
        )
    if not (Path(sys.prefix) / "share" / GENERATOR).is_dir():
        raise RosSetupError("the message generators are missing: pip install 'musls[ros]'")
    say(f"building {' and '.join(names)} with colcon, about a minute")
    work = Path(sys.prefix) / "ros"
    shutil.rmtree(work, ignore_errors=True)
    for package in packages:
        package.write(work / "src" / package.name)
    _colcon_build(work)
    shutil.rmtree(work)
    return names


def _colcon_build(work: Path) -> None:
    """Run colcon; the log stays in the folder if it fails."""
    prefix = str(Path(sys.prefix))
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([f"{prefix}/bin", os.environ.get("PATH", os.defpath)]),
        "AMENT_PREFIX_PATH": prefix,
        "CMAKE_PREFIX_PATH": prefix,
    }
    environment.pop("PYTHONPATH", None)
    command = [
        *(sys.executable, "-m", "colcon", "--log-base", "log", "build", "--merge-install"),
        *("--install-base", prefix, "--event-handlers", "console_direct+", "--cmake-args"),
        *("-DBUILD_TESTING=OFF", "-DCMAKE_BUILD_TYPE=Release"),
        f"-DPython3_EXECUTABLE={sys.executable}",
    ]
    log = work / "build.log"
    try:
        with log.open("wb") as out:
            done = subprocess.run(
                command, cwd=work, env=environment, stdout=out, stderr=subprocess.STDOUT
            )
    except OSError as error:
        raise RosSetupError(f"{work} cannot be written: {error.strerror or error}") from error
    if done.returncode:
        text = log.read_text(errors="replace").splitlines()
        wrong = next((line for line in text if "Error" in line or "error:" in line), "no reason")
        raise RosSetupError(
            f"the message packages cannot be built ({wrong.strip()}); a C++ compiler and cmake are "
            f"needed (apt install build-essential cmake python3-dev); the whole log is {log}"
        )
