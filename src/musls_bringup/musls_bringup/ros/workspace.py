"""The ROS message packages that no wheel provides, built with colcon and the generator wheels.

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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from pydantic import Field

from musls_control.child_processes import lines_of
from musls_description.config.errors import ConfigError, MuslsError
from musls_description.config.schema import build, spec
from musls_description.config.strict_yaml import read_text, read_yaml

# ---------- Source packages of the ROS messages that no wheel provides

ORIGIN_FILE = "origin.txt"

TABLE = Path(__file__).with_name("px4_msgs.yaml")
"""The messages of PX4 that the nodes use."""


Release = Annotated[str, Field(pattern=r"^v\d+\.\d+$")]

DEFAULT_RELEASE = "v1.17"
"""Release that is built by default."""


@spec
class MessageFacts:
    """One message as the interface defines it.

    Attributes:
        type_hash: REP-2011 hash of the original definition.
        fields: "type name", in order.
        constants: "type NAME = value".
    """

    type_hash: Annotated[str, Field(pattern=r"^RIHS01_[0-9a-f]{64}$")]
    fields: Annotated[tuple[str, ...], Field(min_length=1)]
    constants: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The .msg file."""
        return "".join(f"{line}\n" for line in (*self.constants, *self.fields))


@spec
class Px4Interface:
    """The messages of the releases of PX4.

    Attributes:
        releases: Releases, oldest first.
        messages: Messages by name, then by the first release that the definition holds for.
    """

    releases: tuple[Release, ...]
    messages: dict[str, dict[Release, MessageFacts]]

    def of(self, release: str) -> dict[str, MessageFacts]:
        """Messages of one release, by name."""
        if release not in self.releases:
            raise ConfigError(
                f"PX4 {release}: messages are known of {', '.join(self.releases)}; of another PX4 "
                "name the folder of its sources"
            )
        until = self.releases[: self.releases.index(release) + 1]
        return {
            name: next(facts[since] for since in reversed(until) if since in facts)
            for name, facts in self.messages.items()
        }


@dataclass(frozen=True)
class InterfacePackage:
    """A ROS package that holds only messages and actions.

    Attributes:
        version: Version of the interface that it describes.
        messages: Messages by name.
        depends: Packages whose messages it uses.
        origin: Release or folder of which they are; installed as `origin.txt`.
        actions: Text of each .action file by name.
    """

    name: str
    version: str
    messages: dict[str, MessageFacts]
    depends: Sequence[str] = ()
    origin: str = ""
    actions: Mapping[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write package.xml, CMakeLists.txt, the .msg and the .action files into a new folder."""
        files = {f"msg/{name}.msg": facts.text for name, facts in self.messages.items()}
        files |= {f"action/{name}.action": text for name, text in self.actions.items()}
        depends = "".join(f"\n  <depend>{name}</depend>" for name in self.depends)
        find = "".join(f"find_package({name} REQUIRED)\n" for name in self.depends)
        uses = "".join(f" {name}" for name in self.depends)
        texts = {
            "package.xml": _PACKAGE_XML.format(
                name=self.name, version=self.version, depends=depends
            ),
            "CMakeLists.txt": _CMAKE.format(
                name=self.name,
                find=find,
                names=" ".join(self.depends),
                uses=f" DEPENDENCIES{uses}" if uses else "",
                messages=" ".join(files),
            ),
            ORIGIN_FILE: f"{self.origin}\n",
            **files,
        }
        for name, text in texts.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")


def px4_interface() -> Px4Interface:
    """Read the table of PX4's messages."""
    return build(Px4Interface, read_yaml(TABLE), str(TABLE))


def px4_msgs(which: str = DEFAULT_RELEASE) -> InterfacePackage:
    """Messages of PX4 that the nodes use, of a release ("v1.17") or a folder of its sources."""
    interface = px4_interface()
    folder = Path(which)
    if (folder / "msg").is_dir():
        messages = {name: _from_sources(folder / "msg", name) for name in interface.messages}
        return InterfacePackage("px4_msgs", "0.0.0", messages, origin=str(folder.resolve()))
    release = re.match(r"v?(\d+\.\d+)", which)
    version = f"v{release[1]}" if release else which
    return InterfacePackage(
        "px4_msgs", f"{version.lstrip('v')}.0", interface.of(version), origin=version
    )


def _from_sources(folder: Path, name: str) -> MessageFacts:
    """A message as a PX4's own sources define it."""
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    for file in (folder / "versioned" / f"{name}.msg", folder / f"{name}.msg"):
        if file.is_file():
            break
    else:
        raise ConfigError(f"{folder}: no {name}.msg there: these are no sources of PX4")
    lines = [line.split("#")[0].strip() for line in read_text(file).splitlines()]
    lines = [" ".join(line.split()) for line in lines if line]
    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg("\n".join(lines) + "\n", f"px4_msgs/msg/{name}"))
    return MessageFacts(
        type_hash=store.hash_rihs01(f"px4_msgs/msg/{name}"),
        fields=tuple(line for line in lines if "=" not in line),
        constants=tuple(line for line in lines if "=" in line),
    )


def tf2_msgs() -> InterfacePackage:
    """The one message of tf2 that is published."""
    transforms = MessageFacts(
        type_hash="RIHS01_e369d0f05a23ae52508854b66f6aa0437f3449d652e8cbf22d5abe85d020f087",
        fields=("geometry_msgs/TransformStamped[] transforms",),
    )
    return InterfacePackage("tf2_msgs", "0.36.0", {"TFMessage": transforms}, ("geometry_msgs",))


def diagnostic_msgs() -> InterfacePackage:
    """The messages of `/diagnostics`."""
    facts = {
        "KeyValue": MessageFacts(
            type_hash="RIHS01_d68081eaa540288c5440753baecef0c4e16e81a5f78ad68902ded5100413bb42",
            fields=("string key", "string value"),
        ),
        "DiagnosticStatus": MessageFacts(
            type_hash="RIHS01_b0e3e692ea2d54a8af2f4ef1930e81556a2db55216b771f8a7d2724ed47bf0e4",
            fields=(
                "byte level",
                "string name",
                "string message",
                "string hardware_id",
                "KeyValue[] values",
            ),
            constants=("byte OK=0", "byte WARN=1", "byte ERROR=2", "byte STALE=3"),
        ),
        "DiagnosticArray": MessageFacts(
            type_hash="RIHS01_5a8a36efb05fb25070fa0fb3810290c0e6cd4862b54a8fb975a1ee8dc55a333e",
            fields=("std_msgs/Header header", "DiagnosticStatus[] status"),
        ),
    }
    return InterfacePackage("diagnostic_msgs", "5.3.6", facts, ("std_msgs",))


def musls_interfaces() -> InterfacePackage:
    """The action of the formation node, which does without it where it is not built."""
    depends = ("action_msgs", "service_msgs", "unique_identifier_msgs")
    actions = {"FlyMission": _FLY_MISSION}
    return InterfacePackage("musls_interfaces", "0.1.0", {}, depends, actions=actions)


_FLY_MISSION = """\
string mission_file         # resolved scenario; empty for the one that the node has
---
bool success                # the mission was flown to its end
string message
---
string stage
string state                # of /formation/state
float64 time_left_s         # of the plan that is flown
float64[] tracking_error_m  # of each drone
"""

_PACKAGE_XML = """\
<?xml version="1.0"?>
<package format="3">
  <name>{name}</name>
  <version>{version}</version>
  <description>The messages of {name} that musls uses, made by `musls ros setup`.</description>
  <maintainer email="musls@example.org">The musls authors</maintainer>
  <license>BSD-3-Clause</license>
  <buildtool_depend>ament_cmake</buildtool_depend>
  <buildtool_depend>rosidl_default_generators</buildtool_depend>{depends}
  <exec_depend>rosidl_default_runtime</exec_depend>
  <member_of_group>rosidl_interface_packages</member_of_group>
  <export><build_type>ament_cmake</build_type></export>
</package>
"""

_CMAKE = """\
cmake_minimum_required(VERSION 3.16)
project({name})
find_package(ament_cmake REQUIRED)
find_package(rosidl_default_generators REQUIRED)
{find}# Targets of the wheels name the Python headers of the machine on which they were built.
foreach(package {names} std_msgs builtin_interfaces)
  set(target ${{package}}::${{package}}__rosidl_generator_py)
  if(TARGET ${{target}})
    get_target_property(folders ${{target}} INTERFACE_INCLUDE_DIRECTORIES)
    list(FILTER folders EXCLUDE REGEX "^/opt/python/")
    set_target_properties(${{target}} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${{folders}}")
  endif()
endforeach()
rosidl_generate_interfaces(${{PROJECT_NAME}} {messages}{uses})
install(FILES origin.txt DESTINATION share/${{PROJECT_NAME}})
ament_export_dependencies(rosidl_default_runtime)
ament_package()
"""

GENERATOR = "rosidl_default_generators"


class RosSetupError(MuslsError):
    """ROS 2 is missing, or the message packages cannot be built."""


def missing_packages(px4: str | None = None) -> list[InterfacePackage]:
    """Message packages that Python does not find, or that hold other messages than wanted."""
    installed = installed_px4()
    px4_package = px4_msgs(
        px4 or (DEFAULT_RELEASE if installed in (None, OTHER_SOURCE) else installed)
    )
    return [
        package
        for package in (tf2_msgs(), diagnostic_msgs(), px4_package)
        if find_spec(package.name) is None or _is_outdated(package)
    ]


OTHER_SOURCE = "other"
"""px4_msgs that neither fit a release nor say where they are from."""


def installed_px4(prefix: Path = Path(sys.prefix)) -> str | None:
    """PX4 version whose messages px4_msgs in this Python environment has.

    A release, a folder of sources, `OTHER_SOURCE`, or None if there is none, or if it is of a ROS
    installation and not ours to change.
    """
    share = _share("px4_msgs", prefix)
    if share is None:
        return None
    origin = share / ORIGIN_FILE
    if origin.is_file():
        text = origin.read_text(encoding="utf-8").strip()
        return text if text.startswith("v") or (Path(text) / "msg").is_dir() else OTHER_SOURCE
    table = px4_interface()
    fits = [r for r in table.releases if not _is_outdated(px4_msgs(r), prefix)]
    return fits[-1] if fits else OTHER_SOURCE


def fits_installed(package: InterfacePackage, prefix: Path = Path(sys.prefix)) -> bool:
    """Whether this Python environment has a package's messages, or they are not ours to know."""
    return not _is_outdated(package, prefix)


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
    match = re.search(r"MESSAGE_VERSION\s*=\s*(\d+)", text)
    return int(match[1]) if match else 0


def check_ros() -> None:
    """Refuse to go on without rclpy and the messages."""
    if find_spec("rclpy") is None:
        raise RosSetupError(
            "rclpy is missing: ./musls ros setup installs it, or source a ROS 2 Jazzy "
            "installation that runs the same Python"
        )
    packages = [package.name for package in missing_packages()]
    if packages:
        names = " and ".join(packages)
        raise RosSetupError(f"{names} missing or of another version: run ./musls ros setup")


def set_up(say: Callable[[str], None] = lambda text: None, px4: str | None = None) -> list[str]:
    """Build and install the message packages that are missing."""
    if find_spec("rclpy") is None:
        check_ros()
    packages = missing_packages(px4)
    if not os.environ.get("ROS_DISTRO") and find_spec("musls_interfaces") is None:
        packages.append(musls_interfaces())
    if not packages:
        return []
    names = [package.name for package in packages]
    if os.environ.get("ROS_DISTRO"):
        raise RosSetupError(
            f"{' and '.join(names)} not found by Python although ROS {os.environ['ROS_DISTRO']} is "
            f"sourced: build px4_msgs of your PX4 in your workspace (the others come "
            "with ROS) and source it"
        )
    if not (Path(sys.prefix) / "share" / GENERATOR).is_dir():
        raise RosSetupError(
            "the message generators are missing: `./musls ros setup` in a clone installs them, or "
            "pip install the wheel's file name followed by [ros]"
        )
    say(f"building {', '.join(names)} with colcon, about a minute")
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
    # colcon would add -l, with which make starts nothing as long as others keep the machine busy.
    environment.setdefault("MAKEFLAGS", f"-j{len(os.sched_getaffinity(0))}")
    command = [
        *(sys.executable, "-m", "colcon", "--log-base", "log", "build", "--merge-install"),
        *("--install-base", prefix, "--event-handlers", "console_direct+", "--cmake-args"),
        *("-DBUILD_TESTING=OFF", "-DCMAKE_BUILD_TYPE=Release"),
        f"-DPython3_EXECUTABLE={sys.executable}",
    ]
    log = work / "build.log"
    try:
        with log.open("wb") as out:
            process = subprocess.run(
                command, cwd=work, env=environment, stdout=out, stderr=subprocess.STDOUT
            )
    except OSError as error:
        raise RosSetupError(f"{work} cannot be written: {error.strerror or error}") from error
    if process.returncode:
        text = lines_of(log.read_text(errors="replace"))
        wrong = next((line for line in text if "Error" in line or "error:" in line), "no reason")
        raise RosSetupError(
            f"the message packages cannot be built ({wrong}); a C++ compiler and cmake are "
            f"needed (apt install build-essential cmake python3-dev); the whole log is {log}"
        )
