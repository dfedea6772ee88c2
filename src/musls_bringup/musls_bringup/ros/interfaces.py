"""Source packages of the ROS messages that no wheel provides: px4_msgs and tf2_msgs.

Written from `px4_msgs.yaml`, the facts of PX4's interface. colcon builds them like any other
interface package.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from musls_description.schema import build, read_text, read_yaml, spec

TABLE = Path(__file__).with_name("px4_msgs.yaml")
"""The messages of PX4 that the nodes use."""


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
    """The messages of one release of PX4.

    Attributes:
        px4_release: Tag of px4_msgs.
        messages: By name.
    """

    px4_release: Annotated[str, Field(pattern=r"^v\d+\.\d+\.\d+$")]
    messages: dict[str, MessageFacts]


@dataclass(frozen=True)
class InterfacePackage:
    """A ROS package that holds only messages.

    Attributes:
        name: Of the package.
        version: Of what it describes.
        messages: By name.
        depends: Packages whose messages it uses.
    """

    name: str
    version: str
    messages: dict[str, MessageFacts]
    depends: Sequence[str] = ()

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


def px4_msgs() -> InterfacePackage:
    """The messages of PX4 that the nodes use."""
    interface = px4_interface()
    return InterfacePackage("px4_msgs", interface.px4_release.lstrip("v"), interface.messages)


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
ament_export_dependencies(rosidl_default_runtime)
ament_package()
"""
