"""The messages that are built are PX4's and tf2's to the bit."""

import json
import sys
from pathlib import Path

import pytest
from ros_probe import needs_ros
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from musls_bringup.ros.interfaces import px4_interface, px4_msgs, tf2_msgs
from musls_bringup.ros.workspace import check_ros, missing_packages
from musls_description.errors import MuslsError

PX4 = px4_interface().messages


@pytest.mark.parametrize("name", PX4)
def test_fields_give_the_hash_of_px4s_own_definition(name):
    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg(PX4[name].text, f"px4_msgs/msg/{name}"))
    assert store.hash_rihs01(f"px4_msgs/msg/{name}") == PX4[name].type_hash


def test_tf_messages_are_those_of_jazzy():
    store = get_typestore(Stores.ROS2_JAZZY)
    facts = tf2_msgs().messages["TFMessage"]
    assert store.hash_rihs01("tf2_msgs/msg/TFMessage") == facts.type_hash
    del store.types["tf2_msgs/msg/TFMessage"], store.fielddefs["tf2_msgs/msg/TFMessage"]
    store.register(get_types_from_msg(facts.text, "tf2_msgs/msg/TFMessage"))
    assert store.hash_rihs01("tf2_msgs/msg/TFMessage") == facts.type_hash


def test_a_changed_field_changes_the_hash():
    facts = PX4["TrajectorySetpoint"]
    swapped = facts.text.replace("float32 yaw\n", "").replace(
        "float32 yawspeed\n", "float32 yawspeed\nfloat32 yaw\n"
    )
    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg(swapped, "px4_msgs/msg/TrajectorySetpoint"))
    assert store.hash_rihs01("px4_msgs/msg/TrajectorySetpoint") != facts.type_hash


def test_the_source_package_is_complete(tmp_path):
    px4_msgs().write(tmp_path / "px4_msgs")
    written = {p.stem for p in (tmp_path / "px4_msgs" / "msg").glob("*.msg")}
    cmake = (tmp_path / "px4_msgs" / "CMakeLists.txt").read_text()
    assert written == set(PX4) and all(f"msg/{name}.msg" in cmake for name in PX4)
    assert "<name>px4_msgs</name>" in (tmp_path / "px4_msgs" / "package.xml").read_text()


def test_without_ros_one_line_says_what_helps(monkeypatch):
    monkeypatch.setattr("musls_bringup.ros.workspace.find_spec", lambda name: None)
    assert [p.name for p in missing_packages()] == ["tf2_msgs", "px4_msgs"]
    with pytest.raises(MuslsError, match=r"\./musls ros setup"):
        check_ros()


@needs_ros()
@pytest.mark.parametrize("name", PX4)
def test_the_installed_package_has_the_same_hash(name):
    file = Path(sys.prefix) / "share" / "px4_msgs" / "msg" / f"{name}.json"
    if not file.is_file():
        pytest.skip("px4_msgs of a ROS installation")
    assert json.loads(file.read_text())["type_hashes"][0]["hash_string"] == PX4[name].type_hash
