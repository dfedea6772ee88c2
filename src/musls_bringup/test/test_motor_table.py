"""A motor's test table: rotors hover as it says, and the motor that made it is found again."""

import numpy as np
import pytest
import yaml

from musls_bringup.cli import main
from musls_bringup.new.motor_table import GRAM_N, MotorTable
from musls_description.config.errors import ConfigError
from musls_description.system.propulsion import Motor

MOTOR = Motor(speed_constant_rpm_v=700, resistance_ohm=0.12, idle_current_a=0.8)
SPEED = np.linspace(200.0, 700.0, 11)  # rad/s
THRUST = 1.9e-5 * SPEED**2 * (1.0 + 1e-4 * (SPEED - 200.0))  # a blade that bends: no constant
TORQUE = 0.015 * THRUST
CURRENT = np.array([MOTOR.current_a(torque) for torque in TORQUE])
POWER = CURRENT * [MOTOR.voltage_v(*of) for of in zip(SPEED, CURRENT, strict=True)]
HEADS = {
    "maker": ["Throttle", "Thrust (g)", "Voltage (V)", "Torque (N*m)", "RPM", "Power (W)"],
    "stand": ["ESC [us]", "Thrust [kgf]", "Voltage [V]", "Torque [N·m]", "Speed [RPM]", "Watts"],
}


def written(folder, kind, separator=",", point="."):
    grams = THRUST / GRAM_N / (1000.0 if kind == "stand" else 1.0)
    percent = [f"{k}%" for k in range(50, 105, 5)]
    still = ["0%", "0", "16", "0", "0", "0"]
    rows = [[*row[:1], *(f"{v:.6g}".replace(".", point) for v in row[1:])]
            for row in zip(percent, grams, 0 * SPEED + 16.0, TORQUE, SPEED * 30.0 / np.pi, POWER,
                           strict=True)]  # fmt: skip
    path = folder / f"{kind}.csv"
    path.write_text("\n".join(separator.join(row) for row in [HEADS[kind], still, *rows]))
    return path


@pytest.mark.parametrize(
    ("kind", "separator", "point"), [("maker", ",", "."), ("stand", ";", ","), ("maker", "\t", ".")]
)
def test_the_motor_that_made_a_table_is_found(tmp_path, kind, separator, point):
    table = MotorTable(written(tmp_path, kind, separator, point))
    np.testing.assert_allclose(table.thrust_n, THRUST, rtol=1e-5)
    motor, missed = table.motor(700.0)
    assert motor.resistance_ohm == pytest.approx(0.12, rel=0.01)
    assert motor.idle_current_a == pytest.approx(0.8, rel=0.01)
    assert missed < 1e-3


def test_an_airframe_hovers_as_its_table_says(tmp_path, monkeypatch, capsys):
    """One row at full throttle would be 5 % off in the speed of the hover."""
    monkeypatch.chdir(tmp_path)
    table = written(tmp_path, "maker")
    words = ["new", "drone", "own", "--mass", "1.6", "--table", str(table), "--kv", "700"]
    assert main(words) == 0
    assert "power of the fitted motor: within 0.0 % of each row" in capsys.readouterr().out
    made = yaml.safe_load((tmp_path / "own.yaml").read_text())
    constant = made["propulsion"]["propeller"]["thrust_n_s2"]
    hover_n = 1.6 * 9.80665 / 4.0
    assert np.sqrt(hover_n / constant) == pytest.approx(np.interp(hover_n, THRUST, SPEED), rel=1e-3)
    top = made["rotors"][0]["speed_max_rad_s"]
    assert constant * top**2 == pytest.approx(THRUST[-1], rel=1e-3)
    assert made["propulsion"]["motor"]["resistance_ohm"] == pytest.approx(0.12, rel=0.01)
    assert main(["new", "system", "mine", "--drone", "own.yaml"]) == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "no column of the thrust with its unit"),
        ("Thrust,RPM\n1,2\n", "no column of the thrust with its unit"),
        ("Thrust (g),RPM\n100,2000\n", "fewer than two rows of numbers above 0"),
        ("Thrust (g),RPM\n100,2000\n200,\n", "line 3, RPM: a number is missing"),
        ("Thrust (g),RPM\n0,0\n200,nan\n300,5000\n", "line 3, RPM: nan: must be a finite number"),
        ("Thrust (g),RPM\n100,2000\ninf,3000\n", r"line 3, Thrust \(g\): inf: must be a finite"),
        ("Thrust (g),RPM\n100,2000\n200,fast\n", "line 3, RPM: fast is no number"),
        ("Thrust (g)\tRPM\n200\t4,000\n450\t6,000\n", "line 2: 4,000 is 4000 .* or 4 with a dec"),
        ("Thrust (g);RPM\n200;4.000\n450;6.000\n", "line 2: 4.000 is 4 .* or 4000 with a dec"),
        ("Thrust (g),RPM\n200.5,4.000\n450,6.000\n", "6 rpm at full throttle"),
        ("Thrust (g),RPM\n200,4000\n1.012,9000\n450,6000\n", "goes with the squared speed"),
        ("Thrust (kg),RPM\n2000,4000\n4500,6000\n", "a thrust of 4.413e.04 N"),
        ("", "no column"),
    ],
)
def test_a_table_that_says_too_little(tmp_path, text, words):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ConfigError, match=words):
        MotorTable(tmp_path / "t.csv")


def test_a_motor_needs_torque_and_power(tmp_path):
    (tmp_path / "t.csv").write_text("Thrust (g),RPM\n100,2000\n200,2800\n")
    with pytest.raises(ConfigError, match="--kv: the table needs columns of torque and of power"):
        MotorTable(tmp_path / "t.csv").motor(700.0)


@pytest.mark.parametrize(
    "text",
    [
        "RPM\tThrust (g)\tTorque (Nm)\n4,000\t200\t0.03\n9,000\t1,012.0\t0.15\n",
        "RPM;Thrust (g);Torque (Nm)\n4.000;200;0,03\n9.000;1.012,0;0,15\n",
        'RPM,Thrust (g),Torque (Nm)\n"4,000",200,0.03\n"9,000","1,012",0.15\n',
        "RPM;Thrust (g);Torque (Nm)\n4 000;200;0,03\n9\u202f000;1\u00a0012;0,15\n",
        "RPM;Thrust (g);Torque (Nm)\n4'000;200;0.03\n9\u2019000;1'012;0.15\n",
        "RPM,Thrust gf,Torque Ncm\n4000,-200,-3\n9000,-1012,-15\n",
        "Motor Electrical Speed (RPM),Motor Optical Speed (RPM),Thrust (kgf),Torque (N\u00b7m)\n"
        "0,4000,0.2,-0.03\n0,9000,1.012,-0.15\n",
    ],
)
def test_numbers_are_read_as_their_country_writes_them(tmp_path, text):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    table = MotorTable(tmp_path / "t.csv")
    np.testing.assert_allclose(table.thrust_n / GRAM_N, [200.0, 1012.0])
    np.testing.assert_allclose(table.speed_rad_s * 30.0 / np.pi, [4000.0, 9000.0])
    np.testing.assert_allclose(table.torque_n_m, [0.03, 0.15])
