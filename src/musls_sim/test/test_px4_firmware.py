"""Version of a PX4 binary and the names of its parameters."""

import os
from pathlib import Path

import pytest
from px4_helpers import install_peer

from musls_control.px4.allocation import rotor_layout
from musls_description.config.errors import ConfigError
from musls_description.system.system_files import load_system
from musls_sim.px4 import process
from musls_sim.px4.build import ALWAYS, airframe_scripts
from musls_sim.px4.install import Firmware, Px4Error, read_firmware

THERE = ["MPC_THR_HOVER", "COM_DISARM_PRFLT", "SYS_AUTOSTART"]


def program(folder, version, *names):
    """A file that holds texts as a compiled PX4 does."""
    file = folder / "px4"
    words = [version, "0123456789abcdef0123456789abcdef01234567", *THERE, *names]
    file.write_bytes(b"\x7fELF\1\2\0" + b"\0".join(w.encode() for w in words) + b"\0\3")
    return file


def test_version_and_parameters_are_read_from_the_program(tmp_path):
    found = read_firmware(program(tmp_path, "v1.15.0-alpha1-412-g64f28c4", "SDLOG_MODE"))
    assert (found.version, found.release) == ("v1.15.0-alpha1-412-g64f28c4", (1, 15))
    assert found.lacks("SDLOG_BACKEND") and not found.lacks("SDLOG_MODE")


def test_a_wrapper_script_tells_nothing_and_nothing_is_refused(tmp_path):
    found = read_firmware(install_peer(tmp_path))
    assert (found.version, found.release, found.parameters) == ("unknown", None, None)
    found.refuse_unknown(["NO_SUCH_THING"])


@pytest.mark.parametrize(
    ("version", "switches"),
    [
        ("v1.15.4", {"SDLOG_MODE": -1, "EKF2_GPS_DELAY": 0}),
        ("v1.16.2", {"SDLOG_MODE": -1, "EKF2_GPS_DELAY": 0}),
        ("v1.17.0", {"SDLOG_BACKEND": 0, "EKF2_GPS_DELAY": 0}),
        ("v1.18.0", {"SDLOG_BACKEND": 0, "SENS_GPS0_DELAY": 0, "SENS_GPS1_DELAY": 0}),
        ("unknown", {"SDLOG_BACKEND": 0, "SENS_GPS0_DELAY": 0, "SENS_GPS1_DELAY": 0}),
    ],
)
def test_each_release_is_told_by_its_own_names(version, switches):
    assert Firmware(Path("px4"), version).switches() == switches


def test_the_names_of_a_build_between_releases_win_over_its_number(tmp_path):
    found = read_firmware(program(tmp_path, "v1.17.0-alpha1", "SDLOG_MODE", "EKF2_GPS_DELAY"))
    assert found.switches() == {"SDLOG_MODE": -1, "EKF2_GPS_DELAY": 0}
    assert found.switches(flight_log=True) == {"EKF2_GPS_DELAY": 0}


def test_an_unknown_parameter_is_refused_with_version_and_path(tmp_path):
    found = read_firmware(program(tmp_path, "v1.18.0"))
    words = rf"autopilot\.parameters\.EKF2_GPS_DELAY: PX4 v1\.18\.0 \({found.binary}\) has no such"
    with pytest.raises(ConfigError, match=words):
        found.refuse_unknown(["MPC_THR_HOVER", "EKF2_GPS_DELAY"])
    with pytest.raises(Px4Error, match="has no parameter HTE_THR_RANGE, which musls sets"):
        airframe_scripts(found, [], [{"HTE_THR_RANGE": 0.2}], [{}])


def test_every_px4_lands_when_nobody_guides_it_unless_the_user_says_otherwise():
    layout = rotor_layout(load_system("x500_trio").drones[0])
    found = Firmware(Path("px4"), "v1.18.0")
    ours, theirs = airframe_scripts(
        found, [layout] * 2, [ALWAYS] * 2, [{}, {"COM_OBL_RC_ACT": 5.0}]
    )
    assert "param set-default COM_OF_LOSS_T 1" in ours
    assert "param set-default COM_OBL_RC_ACT 4" in ours
    assert theirs.index("param set COM_OBL_RC_ACT 5") > theirs.index("COM_OBL_RC_ACT 4")


def test_a_socket_of_somebody_else_is_left_alone(tmp_path, monkeypatch):
    """PX4 could not replace it; one of our own is removed once its PX4 has ended."""
    monkeypatch.setattr(process, "SOCKET_FILE", str(tmp_path / "sock-{}"))
    (first,) = process.claim_instances(1)
    socket = tmp_path / f"sock-{first.number}"
    socket.touch()
    first.close()
    (again,) = process.claim_instances(1)
    assert again.number == first.number
    again.remove_socket()
    again.close()
    assert not socket.exists()
    socket.touch()
    if os.geteuid() == 0:
        os.chown(socket, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    (other,) = process.claim_instances(1)
    other.close()
    assert other.number != first.number
