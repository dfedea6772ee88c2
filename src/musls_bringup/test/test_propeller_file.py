"""Propellers as UIUC and APC publish them: the airframe has their own figures."""

import math

import numpy as np
import pytest
import yaml

from musls_bringup.cli import main
from musls_bringup.new.propeller_file import LOADED, RPM, PropellerFile
from musls_description.config.errors import ConfigError

SPEEDS = np.arange(2400.0, 6600.0, 300.0)
THRUST = 0.105 + 4e-6 * (SPEEDS - 2400.0)
POWER = 0.044 + 1e-6 * (SPEEDS - 2400.0)
DIAMETER_M = 0.254
NAME = "apcsf_10x4.7_static_kt0835.txt"


def uiuc(folder, name=NAME):
    rows = [f"{n:.3f} {t:.6f} {p:.6f}" for n, t, p in zip(SPEEDS, THRUST, POWER, strict=True)]
    path = folder / name
    path.write_text("\n".join(["   RPM     CT      CP", *rows]) + "\n")
    return path


def apc(folder):
    """Of later rows the propeller moves; the first speed has no numbers, as files have it."""
    lines = ["", "         10x4.7SF                (10x47SF.dat)", "", "J=V/nD (advance ratio)", ""]
    heads = "V J Pe Ct Cp PWR Torque Thrust"
    for n, t, p in zip([1000, *SPEEDS], [np.nan, *THRUST], [np.nan, *POWER], strict=True):
        numbers = " -NaN -NaN" if math.isnan(t) else f" {t:.6f} {p:.6f}"
        lines += [
            "",
            f"         PROP RPM =       {n:.0f}",
            "",
            heads,
            "(mph) - - - - (Hp) (In-Lbf)",
        ]
        lines += [f"0.0 0.0000 0.0000{numbers} 1.0 1.0 1.0", "1.5 0.1 0.2 0.05 0.02 1.0 1.0 1.0"]
    path = folder / "PER3_10x47SF.dat"
    path.write_text("\n".join(lines) + "\n")
    return path


def thrust_n(speed_rpm, number=None):
    number = np.interp(speed_rpm, SPEEDS, THRUST) if number is None else number
    return number * 1.225 * (speed_rpm / 60.0) ** 2 * DIAMETER_M**4


@pytest.mark.parametrize("written", [uiuc, apc])
def test_the_files_own_figures(tmp_path, written):
    """Thrust from C_T; power from C_P is torque times speed."""
    file = PropellerFile(written(tmp_path))
    assert file.diameter_m == pytest.approx(DIAMETER_M)
    speed_rad_s = SPEEDS * RPM
    np.testing.assert_allclose(file.speed_rad_s, speed_rad_s)
    np.testing.assert_allclose(file.thrust_n(speed_rad_s), thrust_n(SPEEDS), rtol=1e-6)
    power_w = POWER * 1.225 * (SPEEDS / 60.0) ** 3 * DIAMETER_M**5
    np.testing.assert_allclose(file.torque_n_m(speed_rad_s) * speed_rad_s, power_w, rtol=1e-5)


@pytest.mark.parametrize("written", [uiuc, apc])
def test_an_airframe_hovers_as_its_propeller_does(tmp_path, monkeypatch, capsys, written):
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path)
    words = ["new", "drone", "own", "--mass", "1.0", "--propeller", str(path), "--rpm", "6300"]
    assert main(words) == 0
    assert "full throttle: 6300 rpm by --rpm\n" in capsys.readouterr().out
    made = yaml.safe_load((tmp_path / "own.yaml").read_text())["propulsion"]["propeller"]
    assert made["diameter_m"] == pytest.approx(DIAMETER_M)
    hover_n = 1.0 * 9.80665 / 4.0
    hover_rad_s = math.sqrt(hover_n / made["thrust_n_s2"])
    hover_rpm = np.interp(hover_n, thrust_n(SPEEDS), SPEEDS)
    assert hover_rad_s / RPM == pytest.approx(hover_rpm, rel=2e-3)
    ratio_m = np.interp(hover_rpm, SPEEDS, POWER / THRUST) * DIAMETER_M / (2.0 * math.pi)
    assert made["moment_ratio_m"] == pytest.approx(ratio_m, rel=2e-3)
    assert path.name in (tmp_path / "own.yaml").read_text()
    assert main(["new", "system", "mine", "--drone", "own.yaml"]) == 0


def test_a_motor_turns_the_propeller(tmp_path, monkeypatch, capsys):
    """At full throttle the voltage is that of the speed and of the current's resistance."""
    monkeypatch.chdir(tmp_path)
    file = PropellerFile(uiuc(tmp_path))
    motor, top_rad_s = file.motor(500.0, 14.8, 0.2)
    torque_n_m = float(file.torque_n_m(np.array(top_rad_s)))
    current_a = motor.current_a(torque_n_m)
    assert motor.voltage_v(top_rad_s, current_a) == pytest.approx(14.8, rel=1e-9)
    usual, usual_rad_s = file.motor(500.0, 14.8, None)
    assert usual_rad_s == pytest.approx(LOADED * 500.0 * 14.8 * RPM, rel=2e-3)
    assert usual.resistance_ohm > 0.0
    words = ["new", "drone", "own", "--mass", "1.0", "--propeller", NAME, "--cells", "4"]
    assert main([*words, "--kv", "500", "--resistance", "0.2"]) == 0
    assert f"full throttle: {top_rad_s / RPM:.0f} rpm by 500 rpm/V and 14.8 V" in (
        capsys.readouterr().out.replace("\n", " ")
    )
    made = yaml.safe_load((tmp_path / "own.yaml").read_text())
    full_n = float(file.thrust_n(np.array(top_rad_s)))
    constant = made["propulsion"]["propeller"]["thrust_n_s2"]
    top = made["rotors"][0]["speed_max_rad_s"]
    assert constant * top**2 == pytest.approx(full_n, rel=1e-3)
    assert made["propulsion"]["motor"]["resistance_ohm"] == 0.2
    assert main([*words[:2], "fast", *words[3:], "--kv", "900"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "80 % of the speed without load as usual (or --resistance)" in said
    assert "measured is up to 6300 rpm" in said


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a_10x5_4014.txt", "J CT CP eta\n0.1 0.1 0.04 0.3\n", "are of a propeller in flight"),
        ("a_10x5.txt", "RPM CT CP\n", "no rows of RPM, CT and CP at rest"),
        ("a_10x5.txt", "RPM CT CP\n3000 0.1 fast\n", "fast is no number"),
        ("a_10x5.txt", "RPM CT CP\n3000 0.1 0.04\n3000 0.2 0.04\n", "two rows of one speed"),
        ("a_10x5.txt", "1 2 3\n", "neither columns RPM, CT, CP"),
        ("a.txt", "RPM CT CP\n3000 0.1 0.04\n", "say --diameter"),
    ],
)
def test_a_file_that_says_too_little(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError, match=words) as error:
        PropellerFile(tmp_path / name)
    assert name in str(error.value) and "\n" not in str(error.value)


def test_a_diameter_in_millimetres_or_said(tmp_path):
    assert PropellerFile(uiuc(tmp_path, "ef_130x70_static.txt")).diameter_m == pytest.approx(0.13)
    path = uiuc(tmp_path, "nr640_5_15deg_3b_static.txt")
    assert PropellerFile(path, 5.0).diameter_m == pytest.approx(0.127)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--propeller", "nowhere.dat"], "nowhere.dat: no such file"),
        (["--propeller", "900"], "--propeller is 900 inch, must be"),
        (["--propeller", "10", "--cells", "4"], "are for --propeller FILE"),
        (["--propeller", NAME, "--kv", "500"], "--kv and --cells"),
        (["--propeller", NAME, "--table", NAME], "take one"),
        (["--propeller", NAME, "--resistance", "0.1"], "--resistance: needs --kv and --cells"),
        (["--kv", "500"], "--kv: needs --table, to which the motor is fitted, or --propeller FILE"),
    ],
)
def test_words_that_do_not_go_together(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    uiuc(tmp_path)
    assert main(["new", "drone", "own", *words]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "own.yaml").exists()
