"""Rotors from files of flight stacks, in the notations in which they are passed on."""

import struct
from itertools import pairwise

import numpy as np
import pytest

from musls_bringup.cli.new import parameters_in
from musls_bringup.new.flight_stack_files import hubs_of, px4_hubs
from musls_description.config.errors import ConfigError

VALUES = {
    "CA_ROTOR_COUNT": 4,
    "CA_ROTOR0_PX": 0.2, "CA_ROTOR0_PY": 0.2, "CA_ROTOR0_KM": 0.05,
    "CA_ROTOR1_PX": -0.2, "CA_ROTOR1_PY": -0.2, "CA_ROTOR1_KM": 0.05,
    "CA_ROTOR2_PX": 0.2, "CA_ROTOR2_PY": -0.2, "CA_ROTOR2_KM": -0.05,
    "CA_ROTOR3_PX": -0.2, "CA_ROTOR3_PY": 0.2, "CA_ROTOR3_KM": -0.05,
}  # fmt: skip
NOTATIONS = {
    "airframe": "param set-default {} {}",
    "qgroundcontrol": "1\t1\t{}\t{}\t9",
    "ulog_params": "{},{}",
    "ulog_params --format": "{}: {}",
}


def text(notation, values):
    return "\n".join(NOTATIONS[notation].format(*item) for item in values.items()) + "\n"


@pytest.mark.parametrize("notation", NOTATIONS)
def test_hubs_in_all_notations(notation):
    hubs = px4_hubs(text(notation, VALUES), "f")
    assert [spin for _, spin in hubs] == ["ccw", "ccw", "cw", "cw"]
    places = [[0.2, -0.2, 0], [-0.2, 0.2, 0], [0.2, 0.2, 0], [-0.2, -0.2, 0]]
    np.testing.assert_array_equal([place for place, _ in hubs], places)


def test_comments_do_not_count():
    former = "# before the crash:\n# param set-default CA_ROTOR0_PX 0.35 # and\n"
    hubs = px4_hubs(former + text("airframe", VALUES) + former, "f")
    assert hubs[0][0][0] == 0.2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"CA_ROTOR2_KM": 0}, "f: CA_ROTOR2_KM = 0 does not say how the rotor spins"),
        ({"CA_ROTOR2_PX": "1.2.3"}, "f: CA_ROTOR2_PX = 1.2.3: must be a number"),
        ({"CA_ROTOR_COUNT": 6}, "f: CA_ROTOR... of 4 rotors"),
        ({"CA_ROTOR0_AX": 0.2}, "tilted rotors are not modelled"),
    ],
)
def test_what_says_too_little_is_named(change, message):
    with pytest.raises(ConfigError, match=message.replace(".", r"\.")):
        px4_hubs(text("airframe", VALUES | change), "f")


def test_hubs_from_a_log(tmp_path):
    """A ULog with nothing but its first parameters, as the format's description has it."""
    pytest.importorskip("pyulog")
    data = b"ULog\x01\x12\x35\x01" + bytes(8) + struct.pack("<HB40x", 40, ord("B"))
    for name, value in VALUES.items():
        kind, form = (b"int32_t ", "i") if name.endswith("COUNT") else (b"float ", "f")
        key = kind + name.encode()
        body = struct.pack(f"<B{len(key)}s{form}", len(key), key, value)
        data += struct.pack("<HB", len(body), ord("P")) + body
    (tmp_path / "log.ulg").write_bytes(data)
    hubs = px4_hubs(parameters_in(tmp_path / "log.ulg"), "log.ulg")
    assert [spin for _, spin in hubs] == ["ccw", "ccw", "cw", "cw"]
    np.testing.assert_allclose(hubs[0][0], [0.2, -0.2, 0.0], atol=1e-7)
    (tmp_path / "log.ulg").write_bytes(b"no log")
    with pytest.raises(ConfigError, match=r"log\.ulg: no whole ULog"):
        parameters_in(tmp_path / "log.ulg")


def azimuths(hubs):
    """Angle of each rotor, anti-clockwise from ahead [deg], and its spin."""
    angles = [round(np.degrees(np.arctan2(place[1], place[0]))) for place, _ in hubs]
    return [
        (180 if angle == -180 else angle, spin)
        for angle, (_, spin) in zip(angles, hubs, strict=True)
    ]


def test_ardupilot_says_by_its_frame_where_rotors_are():
    hubs = hubs_of("FRAME_CLASS,1\nFRAME_TYPE,1.000000 # X\nMOT_SPIN_MIN 0.15\n", "f", 0.5, 0.06)
    assert azimuths(hubs) == [(-45, "ccw"), (135, "ccw"), (45, "cw"), (-135, "cw")]
    assert np.hypot(*hubs[0][0][:2]) == pytest.approx(0.25)
    assert hubs[0][0][2] == pytest.approx(0.06)
    six = hubs_of("FRAME_CLASS 2\nFRAME_TYPE 0", "f", 0.5, 0.0)
    assert sorted(angle for angle, _ in azimuths(six)) == [-120, -60, 0, 60, 120, 180]
    spins = [spin for _, spin in sorted(azimuths(six))]
    assert all(a != b for a, b in pairwise(spins))  # neighbours


def test_betaflight_says_by_its_mixer_where_rotors_are():
    text = "# version\nmixer QUADX\nset yaw_motors_reversed = {}\n"
    ahead_inwards = azimuths(hubs_of(text.format("OFF"), "f", 0.2, 0.0))
    assert ahead_inwards == [(-135, "cw"), (-45, "ccw"), (135, "ccw"), (45, "cw")]
    outwards = azimuths(hubs_of(text.format("ON"), "f", 0.2, 0.0))
    assert [spin for _, spin in outwards] == ["ccw", "cw", "cw", "ccw"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("FRAME_CLASS,5\nFRAME_TYPE,1", "FRAME_CLASS 5, FRAME_TYPE 1: must be a quad"),
        ("FRAME_CLASS,one", "FRAME_CLASS = one: must be a whole number"),
        ("mixer TRI", "mixer TRI: must be QUADX or QUADP"),
        ("name = mine", "CA_ROTOR... of 0 rotors in it, .* ArduPilot .* Betaflight"),
    ],
)
def test_other_frames_are_refused(text, words):
    with pytest.raises(ConfigError, match=words):
        hubs_of(text, "f", 0.5, 0.0)


QUAD = """
mass:     0.7   # with battery
tbm_fr:   [ 0.08, -0.10, 0.01]
tbm_bl:   [-0.08,  0.10, 0.01]
tbm_br:   [-0.08, -0.10, 0.01]
tbm_fl:   [ 0.08,  0.10, 0.01]
thrust_map: [1.5e-6, 0.0, 0.0]
"""


def test_quadrotor_of_agilicious_has_its_places_and_spins():
    hubs = hubs_of(QUAD, "f", 0.45, 0.05)
    assert [spin for _, spin in hubs] == ["ccw", "ccw", "cw", "cw"]
    places = [[0.08, -0.1, 0.01], [-0.08, 0.1, 0.01], [-0.08, -0.1, 0.01], [0.08, 0.1, 0.01]]
    np.testing.assert_array_equal([place for place, _ in hubs], places)


def test_quadrotor_of_flightmare_has_arms_of_its_length_in_an_x():
    text = (
        "quadrotor_dynamics:\n  mass: 0.73\n  arm_l: 0.17\n  thrust_map: [1.3e-6, 3.8e-3, -1.8]\n"
    )
    hubs = hubs_of(text, "f", 0.45, 0.05)
    assert [spin for _, spin in hubs] == ["ccw", "ccw", "cw", "cw"]
    side = 0.17 / np.sqrt(2.0)
    expected = [[side, -side], [-side, side], [-side, -side], [side, side]]
    np.testing.assert_allclose([place[:2] for place, _ in hubs], expected, atol=1e-12)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tbm_fl:", "tbm_xx:", "f: tbm_fl missing"),
        ("[ 0.08, -0.10, 0.01]", "[0.08, -0.10]", "f: tbm_fr = .* three numbers"),
        ("[ 0.08, -0.10, 0.01]", "[a, b, c]", "f: tbm_fr = .* three numbers"),
    ],
)
def test_quadrotor_of_agilicious_without_its_places_is_refused(old, new, message):
    with pytest.raises(ConfigError, match=message):
        hubs_of(QUAD.replace(old, new), "f", 0.45, 0.05)
