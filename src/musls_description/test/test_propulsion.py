"""Air, propellers, motors and batteries against closed forms of the delivery quadcopter's paper.

C1 to C6 are the figures that its equations give (Pappalardo et al., Machines 2023).
"""

import math

import pytest

from musls_description.config.errors import ConfigError
from musls_description.config.schema import build, to_data
from musls_description.system.drone import Drone
from musls_description.system.propulsion import (
    Atmosphere,
    Battery,
    Motor,
    PropellerConstants,
    PropellerGeometry,
    Propulsion,
)
from musls_description.system.slung_system import SlungLoadSystem
from musls_description.system.system_files import build_system, load_system

PAPER_MASS_KG, PAPER_GRAVITY = 10.0224, 9.81
RPM = math.pi / 30.0


@pytest.fixture
def drone():
    return load_system("delivery").drones[0]


@pytest.mark.parametrize(
    ("altitude_m", "temperature_c", "density"),
    [(0, 0, 1.2930), (0, 15, 1.22566), (0, 20, 1.20474), (0, 25, 1.18453), (1000, 15, 1.08707),
     (5300, 15, 0.62741)],
)  # fmt: skip
def test_density_of_the_air(altitude_m, temperature_c, density):  # C1
    air = Atmosphere(altitude_m=altitude_m, temperature_c=temperature_c)
    assert air.density_kg_m3 == pytest.approx(density, abs=5e-6 + 5e-6 * density)


def test_coefficients_of_a_propeller():  # C2
    two = PropellerGeometry(diameter_m=0.5588, pitch_m=0.18796)
    assert two.blade_angle_rad == pytest.approx(0.0906623, abs=1e-7)
    assert two.drag_number == pytest.approx(0.0271997, abs=1e-7)
    assert two.thrust_number == pytest.approx(0.0738031, abs=1e-7)
    assert two.moment_number == pytest.approx(0.00503344, abs=1e-8)
    assert two.moment_ratio_m == pytest.approx(0.0381107, abs=1e-7)
    three = PropellerGeometry(diameter_m=0.5588, pitch_m=0.18796, blades=3)
    assert three.thrust_number == pytest.approx(0.1107047, abs=1e-7)
    assert three.moment_number == pytest.approx(0.0113252, abs=1e-7)


def test_thrust_and_torque_of_the_delivery_drone(drone):  # C3
    rotor = drone.rotors[0]
    assert rotor.thrust_coefficient_n_s2 == pytest.approx(2.35689e-4, rel=1e-5)
    assert rotor.moment_coefficient_n_m_s2 == pytest.approx(8.98227e-6, rel=1e-5)
    for rpm, thrust_n, moment in ((1000, 2.5846, 0.09850), (4000, 41.3539, 1.57603)):
        speed = rpm * RPM
        assert rotor.thrust_coefficient_n_s2 * speed**2 == pytest.approx(thrust_n, abs=1e-4)
        assert rotor.moment_coefficient_n_m_s2 * speed**2 == pytest.approx(moment, abs=1e-5)


def hover_power_w(drone, mass_kg):
    rotor, motor = drone.rotors[0], drone.propulsion.motor
    speed = math.sqrt(mass_kg * PAPER_GRAVITY / 4.0 / rotor.thrust_coefficient_n_s2)
    current = motor.current_a(rotor.moment_coefficient_n_m_s2 * speed**2)
    return speed / RPM, current, 4.0 * current * motor.voltage_v(speed, current)


def test_power_and_time_of_hovering(drone):  # C4
    rpm, current_a, power_w = hover_power_w(drone, PAPER_MASS_KG)
    assert rpm == pytest.approx(3083.84, abs=0.01)
    assert current_a == pytest.approx(10.81, abs=0.005)
    assert power_w == pytest.approx(1373.0, rel=2e-3)
    battery = drone.propulsion.battery
    assert battery.duration_s(power_w) / 60.0 == pytest.approx(19.3, rel=0.02)  # Table 8


def test_hover_without_resistance_lasts_energy_over_power():
    battery = Battery(capacity_ah=10.0, cells=12)
    assert battery.duration_s(1373.147) == pytest.approx(444.0 * 3600.0 / 1373.147, rel=1e-9)


def test_battery_gives_the_power_and_no_more_than_it_can():
    battery = Battery(capacity_ah=1.0, cells=4, resistance_ohm=0.1)
    for charge in (0.0, 0.5, 1.0):
        current = battery.current_a(charge, 100.0)
        assert current * (battery.rest_v(charge) - 0.1 * current) == pytest.approx(100.0)
    largest = battery.rest_v(1.0) ** 2 / 0.4
    assert battery.current_a(1.0, 10.0 * largest) == pytest.approx(battery.rest_v(1.0) / 0.2)


def test_top_speed_tilt_and_ceiling(drone):  # C5, Table 8
    rotor = drone.rotors[0]
    assert rotor.speed_max_rad_s / RPM == pytest.approx(4271.5, abs=0.1)
    assert rotor.max_thrust_n == pytest.approx(47.16, abs=0.005)
    ratio = drone.max_thrust_n / (PAPER_MASS_KG * PAPER_GRAVITY)
    assert ratio == pytest.approx(1.9186, abs=2e-4)
    assert math.degrees(math.acos(1.0 / ratio)) == pytest.approx(58.9, abs=1.0)
    payload_kg = drone.max_thrust_n / PAPER_GRAVITY - PAPER_MASS_KG
    assert payload_kg == pytest.approx(9.21, abs=0.01)
    # The paper's ceiling follows from its own tilt: density ratio cos(58.9 deg).
    wanted = Atmosphere(temperature_c=15.0).density_kg_m3 * math.cos(math.radians(58.9))
    ceiling = Atmosphere(altitude_m=5233.0, temperature_c=15.0).density_kg_m3
    assert ceiling == pytest.approx(wanted, rel=1e-3)


def test_top_speed_obeys_the_motor_equation():
    motor = Motor(speed_constant_rpm_v=900, resistance_ohm=0.1, idle_current_a=0.5, gear_ratio=0.5)
    top = motor.top_speed_rad_s(1e-6, 14.8)
    current = motor.current_a(1e-6 * top**2)
    assert motor.voltage_v(top, current) == pytest.approx(14.8)
    limited = Motor(speed_constant_rpm_v=900, resistance_ohm=0.1, max_current_a=current / 2.0)
    assert limited.current_a(1e-6 * limited.top_speed_rad_s(1e-6, 14.8) ** 2) <= current / 2 + 1e-9


def test_scaling_of_hover(drone):  # speed with the root of mass over density, C6
    after, _, _ = hover_power_w(drone, 8.0224)
    before, _, _ = hover_power_w(drone, PAPER_MASS_KG)
    assert after / before == pytest.approx(0.89468, abs=1e-5)
    data = to_data(drone)
    data["propulsion"]["air"] = {"altitude_m": 2000.0, "temperature_c": 15.0}
    high = build(Drone, data, "high")
    ratio = high.propulsion.air.density_kg_m3 / drone.propulsion.air.density_kg_m3
    rpm, _, _ = hover_power_w(high, PAPER_MASS_KG)
    assert rpm / before == pytest.approx(ratio**-0.5)


def test_what_follows_is_not_written(drone):
    system = load_system("delivery")
    data = to_data(system)
    assert "thrust_coefficient_n_s2" not in data["drones"][0]["rotors"][0]
    assert build(SlungLoadSystem, data, "again") == system


def test_the_rotors_own_constants_win(drone):
    data = to_data(drone)
    for rotor in data["rotors"]:
        rotor["speed_max_rad_s"] = 300.0
    own = build(Drone, data, "own")
    assert {rotor.speed_max_rad_s for rotor in own.rotors} == {300.0}
    assert own.rotors[0].moment_ratio_m == drone.rotors[0].moment_ratio_m


def test_thrust_constants_follow_the_density():
    spec = PropellerConstants(thrust_n_s2=1e-5, moment_ratio_m=0.016)
    propulsion = Propulsion(air=Atmosphere(altitude_m=1000.0), propeller=spec)
    found = propulsion.rotor_constants()["thrust_coefficient_n_s2"]
    assert found == pytest.approx(1e-5 * 1.08707 / 1.225, rel=1e-5)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda d: d["propulsion"]["battery"].pop("cells"), "battery.cells is missing"),
        (lambda d: d["propulsion"].pop("motor"), "a battery needs a motor"),
        (lambda d: d["propulsion"].pop("propeller"), "rotors.0.thrust_coefficient_n_s2 is missing"),
        (lambda d: d["propulsion"].pop("battery"), "rotors.0.speed_max_rad_s is missing"),
        (lambda d: d.pop("propulsion"), "rotors.0.thrust_coefficient_n_s2 is missing"),
        (lambda d: d["propulsion"]["battery"].update(cell_empty_v=4.5), "cell voltages must"),
        (lambda d: d["propulsion"]["battery"].update(reserve=1.0), "must be below start_charge"),
        (lambda d: d["propulsion"]["air"].update(altitude_m=1e6), "altitude_m"),
        (lambda d: d["propulsion"]["propeller"].update(kind="wing"), "wing"),
        (lambda d: d["propulsion"]["propeller"].update(zero_lift_angle_rad=0.5), "no thrust"),
    ],
)
def test_what_cannot_be(change, what):
    data = to_data(load_system("delivery"))
    change(data["drones"][0])
    with pytest.raises(ConfigError, match=what) as caught:
        build_system(data, "mine.yaml")
    assert "\n" not in str(caught.value)
