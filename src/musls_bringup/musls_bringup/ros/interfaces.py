"""Source packages of the ROS messages that no wheel provides: px4_msgs and tf2_msgs.

Written from `px4_msgs.yaml`, the facts of PX4's interface. colcon builds them like any other
interface package.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from musls_description.errors import ConfigError
from musls_description.schema import build, read_text, read_yaml, spec

ORIGIN_FILE = "origin.txt"

TABLE = Path(__file__).with_name("px4_msgs.yaml")
"""The messages of PX4 that the nodes use."""


Release = Annotated[str, Field(pattern=r"^v\d+\.\d+$")]

DEFAULT_RELEASE = "v1.17"
"""What is built if nobody says which."""


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
        releases: In their order.
        messages: By name, then by the release from which on the definition holds.
    """

    releases: tuple[Release, ...]
    messages: dict[str, dict[Release, MessageFacts]]

    def of(self, release: str) -> dict[str, MessageFacts]:
        """Messages of one release, by name.

        Raises:
            ConfigError: The release is not in the table.
        """
        if release not in self.releases:
            raise ConfigError(
                f"PX4 {release}: messages are known of {', '.join(self.releases)}; of another PX4 "
                "name the folder of its sources"
            )
        until = self.releases[: self.releases.index(release) + 1]
        return {
            name: next(found[known] for known in reversed(until) if known in found)
            for name, found in self.messages.items()
        }


@dataclass(frozen=True)
class InterfacePackage:
    """A ROS package that holds only messages.

    Attributes:
        name: Of the package.
        version: Of what it describes.
        messages: By name.
        depends: Packages whose messages it uses.
        origin: Release or folder of which they are; installed as `origin.txt`.
    """

    name: str
    version: str
    messages: dict[str, MessageFacts]
    depends: Sequence[str] = ()
    origin: str = ""

    def write(self, folder: Path) -> None:
        """Write package.xml, CMakeLists.txt and the .msg files into a new folder."""
        (folder / "msg").mkdir(parents=True)
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
                messages=" ".join(f"msg/{name}.msg" for name in self.messages),
            ),
            ORIGIN_FILE: f"{self.origin}\n",
            **{f"msg/{name}.msg": facts.text for name, facts in self.messages.items()},
        }
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")


def px4_interface(path: Path = TABLE) -> Px4Interface:
    """Read the table of PX4's messages.

    Raises:
        ConfigError: The file is damaged.
    """
    return build(Px4Interface, read_yaml(path), str(path), read_text(path))


def px4_msgs(which: str = DEFAULT_RELEASE) -> InterfacePackage:
    """The messages of PX4 that the nodes use.

    Args:
        which: A release ("v1.17", or a full version such as "v1.17.2"), or the folder of a PX4's
            sources, for a build between releases.

    Raises:
        ConfigError: Neither is known.
    """
    interface, folder = px4_interface(), Path(which)
    if (folder / "msg").is_dir():
        found = {name: _from_sources(folder / "msg", name) for name in interface.messages}
        return InterfacePackage("px4_msgs", "0.0.0", found, origin=str(folder.resolve()))
    release = re.match(r"v?(\d+\.\d+)", which)
    known = f"v{release[1]}" if release else which
    return InterfacePackage("px4_msgs", f"{known.lstrip('v')}.0", interface.of(known), origin=known)


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
