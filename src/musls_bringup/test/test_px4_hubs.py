"""Rotors from PX4's parameters, in the notations in which they are passed on."""

import struct

import numpy as np
import pytest

from musls_bringup.cli.new import parameters_in
from musls_bringup.new.templates import px4_hubs
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
