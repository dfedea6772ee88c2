"""The messages that are built are PX4's and tf2's to the bit."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ros_probe import needs_ros
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from musls_bringup.ros import workspace
from musls_bringup.ros.graph_flight import check_messages
from musls_bringup.ros.workspace import (
    OTHER_SOURCE,
    _version_in,
    check_ros,
    diagnostic_msgs,
    installed_px4,
    missing_packages,
    musls_interfaces,
    px4_interface,
    px4_msgs,
    tf2_msgs,
)
from musls_description.config.errors import ConfigError, MuslsError
from musls_description.system.system_files import load_system
from musls_sim.px4.install import Firmware
from musls_sim.recording.signals import recorded_topics

PX4 = px4_msgs().messages
VARIANTS = [(n, r) for n, found in px4_interface().messages.items() for r in found]


@pytest.mark.parametrize(("name", "release"), VARIANTS)
def test_fields_give_the_hash_of_px4s_own_definition(name, release):
    facts = px4_interface().messages[name][release]
    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg(facts.text, f"px4_msgs/msg/{name}"))
    assert store.hash_rihs01(f"px4_msgs/msg/{name}") == facts.type_hash


def versions_of(release):
    """Messages with a version in the name of their topic."""
    found = {name: _version_in(facts.text) for name, facts in px4_msgs(release).messages.items()}
    return {name: version for name, version in found.items() if version}


def test_make_does_not_wait_for_a_quiet_machine(monkeypatch, tmp_path):
    """colcon asks make to start nothing above a load; others may keep the machine above it."""
    seen = {}

    def run(command, *, env, **_):
        seen.update(env)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.delenv("MAKEFLAGS", raising=False)
    monkeypatch.setattr(workspace.subprocess, "run", run)
    workspace._colcon_build(tmp_path)
    assert re.fullmatch(r"-j\d+", seen["MAKEFLAGS"])
    build = pytest.importorskip("colcon_cmake.task.cmake.build").CmakeBuildTask
    assert build._get_make_arguments(None, seen) == []
    assert any(word.startswith("-l") for word in build._get_make_arguments(None, {}))


def test_the_documentation_lists_every_recorded_topic():
    listed = (Path(__file__).parents[3] / "docs" / "ros2_reference.md").read_text()
    for topic, kind in recorded_topics(load_system("x500_trio")).items():
        name = re.sub(r"_\d+", "_i", topic)
        assert f"| `{name}` | {kind.replace('/msg/', '/')} |" in listed or topic == "/tf", name


def test_versions_of_the_topics_by_release():
    assert versions_of("v1.15") == {}
    assert versions_of("v1.16.2") == {"VehicleStatus": 1}
    since_17 = {"VehicleLocalPosition": 1, "BatteryStatus": 1}
    assert versions_of("v1.17") == {"VehicleStatus": 1} | since_17
    assert versions_of("v1.18") == {"VehicleStatus": 4, "VehicleCommandAck": 1} | since_17
    with pytest.raises(ConfigError, match=r"PX4 v1\.14: messages are known of v1\.15, .*sources"):
        px4_msgs("v1.14")


def test_messages_of_a_build_between_releases_come_from_its_sources(tmp_path):
    """Versioned ones win, comments and empty lines go, the hash is computed."""
    (tmp_path / "msg" / "versioned").mkdir(parents=True)
    for name, facts in px4_msgs("v1.18").messages.items():
        text = "# what it is\n\n" + facts.text.replace("\n", "   # a comment\n")
        (tmp_path / "msg" / "versioned" / f"{name}.msg").write_text(text)
    (tmp_path / "msg" / "VehicleStatus.msg").write_text("uint8 old\n")
    found = px4_msgs(str(tmp_path))
    assert found.messages == px4_msgs("v1.18").messages and found.origin == str(tmp_path)
    (tmp_path / "msg" / "versioned" / "VehicleCommand.msg").unlink()
    with pytest.raises(ConfigError, match=r"no VehicleCommand\.msg there"):
        px4_msgs(str(tmp_path))


def installed_by_setup(prefix, package):
    """What the build leaves in share."""
    folder = prefix / "share" / package.name / "msg"
    folder.mkdir(parents=True)
    for name, facts in package.messages.items():
        (folder / f"{name}.json").write_text(facts.type_hash)
        (folder / f"{name}.msg").write_text(facts.text)


def test_what_is_installed_is_recognised(tmp_path):
    assert installed_px4(tmp_path) is None
    installed_by_setup(tmp_path, px4_msgs("v1.16"))
    assert installed_px4(tmp_path) == "v1.16"
    (tmp_path / "share" / "px4_msgs" / "msg" / "VehicleStatus.json").write_text("another")
    assert installed_px4(tmp_path) == OTHER_SOURCE
    (tmp_path / "share" / "px4_msgs" / "origin.txt").write_text("v1.18\n")
    assert installed_px4(tmp_path) == "v1.18"


def px4(version, place="/opt/px4/bin/px4"):
    return Firmware(Path(place), version)


def sources(folder, release):
    """A PX4's sources with the messages of a release, and where it is built in them."""
    package = px4_msgs(release)
    (folder / "msg" / "versioned").mkdir(parents=True)
    for name, facts in package.messages.items():
        (folder / "msg" / "versioned" / f"{name}.msg").write_text(facts.text)
    return folder / "build" / "px4_sitl_default" / "bin" / "px4"


def test_messages_of_another_px4_are_refused_before_anything_starts(tmp_path):
    check_messages(px4("v1.18.0"), tmp_path)  # those of a ROS installation are not ours to know
    installed_by_setup(tmp_path, px4_msgs("v1.17"))
    wrong = r"PX4 {} .*messages of {} .*ros setup --px4 {}"
    with pytest.raises(MuslsError, match=wrong.format(r"v1\.18\.0", r"v1\.17", r"v1\.18")):
        check_messages(px4("v1.18.0"), tmp_path)
    for version in ("v1.17.0", "v1.17.0-alpha1", "v1.19.0", "unknown"):
        check_messages(px4(version), tmp_path)


def test_messages_of_a_folder_are_held_against_the_px4_that_is_to_fly(tmp_path):
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    built, other = sources(ours, "v1.18"), sources(theirs, "v1.16")
    prefix = tmp_path / "venv"
    installed_by_setup(prefix, px4_msgs(str(ours)))
    (prefix / "share" / "px4_msgs" / "origin.txt").write_text(f"{ours}\n")
    check_messages(px4("v1.19.0-alpha1", built), prefix)
    check_messages(px4("v1.18.0"), prefix)
    check_messages(px4("v1.17.0-alpha1-3-g0123"), prefix)  # between two: nobody knows
    for firmware, say in ((px4("v1.18.0", other), str(theirs)), (px4("v1.17.0"), r"v1\.17")):
        with pytest.raises(MuslsError, match=rf"messages of {ours} .*ros setup --px4 {say}$"):
            check_messages(firmware, prefix)


@pytest.mark.parametrize("package", [tf2_msgs(), diagnostic_msgs()], ids=lambda p: p.name)
def test_messages_of_ros_are_those_of_jazzy(package):
    jazzy, ours = get_typestore(Stores.ROS2_JAZZY), get_typestore(Stores.ROS2_JAZZY)
    names = {f"{package.name}/msg/{name}": facts for name, facts in package.messages.items()}
    for name in names:
        del ours.types[name], ours.fielddefs[name]
    for name, facts in names.items():
        ours.register(get_types_from_msg(facts.text, name))
    for name, facts in names.items():
        assert jazzy.hash_rihs01(name) == ours.hash_rihs01(name) == facts.type_hash


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


def test_the_action_is_a_whole_source_package_and_nothing_needs_it(tmp_path):
    musls_interfaces().write(tmp_path / "ours")
    written = (tmp_path / "ours" / "action" / "FlyMission.action").read_text()
    goal, result, feedback = written.split("---\n")
    for part, name in ((goal, "mission_file"), (result, "success"), (feedback, "time_left_s")):
        assert name in part
    cmake = (tmp_path / "ours" / "CMakeLists.txt").read_text()
    assert "action/FlyMission.action DEPENDENCIES action_msgs" in cmake
    assert "<depend>action_msgs</depend>" in (tmp_path / "ours" / "package.xml").read_text()
    assert "musls_interfaces" not in [p.name for p in missing_packages()]


def test_without_ros_one_line_says_what_helps(monkeypatch):
    monkeypatch.setattr("musls_bringup.ros.workspace.find_spec", lambda name: None)
    assert [p.name for p in missing_packages()] == ["tf2_msgs", "diagnostic_msgs", "px4_msgs"]
    with pytest.raises(MuslsError, match=r"\./musls ros setup"):
        check_ros()


@needs_ros()
@pytest.mark.parametrize("name", PX4)
def test_the_installed_package_has_the_same_hash(name):
    release = installed_px4()
    if release is None:
        pytest.skip("px4_msgs of a ROS installation")
    file = Path(sys.prefix) / "share" / "px4_msgs" / "msg" / f"{name}.json"
    found = json.loads(file.read_text())["type_hashes"][0]["hash_string"]
    assert found == px4_msgs(release).messages[name].type_hash
