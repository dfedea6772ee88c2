"""Motors and batteries in flight: currents, charge, voltage that limits, reaction of the rotors."""

import dataclasses
import math

import numpy as np
import pytest

from musls_bringup.catalogue.scenarios import load_scenario
from musls_description.config.schema import build, to_data
from musls_description.system.slung_system import SlungLoadSystem
from musls_description.system.system_files import load_system
from musls_sim.plants.interface import PlantInputs, PlantState, RotorEfficiency
from musls_sim.power import Power, run_motors
from musls_sim.session.session import Session

PERIOD_S = 0.004


def changed(**propulsion):
    data = to_data(load_system("delivery"))
    for key, values in propulsion.items():
        data["drones"][0]["propulsion"][key].update(values)
    return build(SlungLoadSystem, data, "test")


def hovering(system, mass_kg=10.0224):
    state = PlantState.zeros(system)
    k = system.drones[0].rotors[0].thrust_coefficient_n_s2
    state.rotor_speed_rad_s[:] = math.sqrt(mass_kg * 9.81 / 4.0 / k)
    inputs = PlantInputs.zeros(system)
    inputs.rotor_command_rad_s[:] = state.rotor_speed_rad_s
    return state, inputs


def drive(power, state, inputs):
    """Motors and batteries of a period, as in a flight; which drones ran out of charge."""
    speed, command = state.rotor_speed_rad_s, inputs.rotor_command_rad_s
    own = power.rotors, power.batteries, PERIOD_S, power.reacts, power.reaction
    run_motors(speed, command, state.motion, *own, inputs.wrench_body)
    return power.newly_empty()


def test_nothing_without_propulsion():
    assert Power.of(load_system("x500_trio")) is None


def test_hover_until_empty_takes_the_time_of_the_closed_form():
    system = changed(battery={"capacity_ah": 0.1})
    power = Power(system)
    state, inputs = hovering(system)
    periods = 0
    while not drive(power, state, inputs):
        periods += 1
    draws_w = 1373.147
    battery = system.drones[0].propulsion.battery
    assert periods * PERIOD_S == pytest.approx(battery.duration_s(draws_w), rel=1e-3)
    assert periods * PERIOD_S * 100.0 / 60.0 == pytest.approx(19.3, rel=0.02)  # C4 with 10 A h
    # What the cells gave, less what the resistance took, was drawn.
    assert power.batteries["energy"][0] == pytest.approx(draws_w * periods * PERIOD_S, rel=1e-3)
    assert power.batteries["charge"][0] == 0.0
    inputs.rotor_command_rad_s[:] = 300.0
    drive(power, state, inputs)
    assert not inputs.rotor_command_rad_s.any()  # an empty battery turns nothing


def test_voltage_sags_by_the_resistance():
    system = changed(battery={"resistance_ohm": 0.05})
    power = Power(system)
    drive(power, *hovering(system))
    voltage, current = power.batteries[["voltage", "current"]][0]
    assert voltage == pytest.approx(50.4 - 0.05 * current)
    assert voltage * current == pytest.approx(power.batteries["power"][0])


def test_voltage_limits_the_speed():
    system = changed(battery={"start_charge": 0.05, "resistance_ohm": 0.0})
    drone = system.drones[0]
    power = Power(system)
    state, inputs = hovering(system)
    inputs.rotor_command_rad_s[:] = 1000.0
    drive(power, state, inputs)
    k_m = drone.rotors[0].moment_coefficient_n_m_s2
    top = drone.propulsion.motor.top_speed_rad_s(k_m, drone.propulsion.battery.rest_v(0.05))
    np.testing.assert_allclose(inputs.rotor_command_rad_s, top, rtol=1e-9)


def test_stopped_rotors_draw_nothing():
    system = load_system("delivery")
    power = Power(system)
    power.apply(RotorEfficiency(1, None, 0.0))
    drive(power, *hovering(system))
    assert power.batteries["power"][0] == 0.0


def flight(changes=None, name="delivery"):
    return load_scenario(
        name,
        {
            "start": "air",
            "mission.stages": [{"kind": "hold", "position_m": [0, 0, 2], "duration_s": 1.0}],
        }
        | (changes or {}),
    )


@pytest.mark.parametrize(
    ("name", "mass_kg"), [("delivery", 10.0424), ("delivery_carried", 10.0234)]
)
def test_hover_in_flight_draws_the_power_of_the_closed_form(name, mass_kg):
    with Session(flight(name=name)) as session:
        session.advance(250)
        # Drone, parcel and cable in standard gravity; a power that goes with the mass to the 1.5.
        expected = 1373.147 * (mass_kg * 9.80665 / (10.0224 * 9.81)) ** 1.5
        assert session.power.batteries["power"][0] == pytest.approx(expected, rel=5e-3)


def test_drone_falls_when_the_battery_is_empty():
    short = flight({"system.drones.propulsion.battery.start_charge": 2e-4})
    with (
        pytest.warns(UserWarning, match="the battery of drone_1 lasts for"),
        Session(short) as session,
    ):
        session.advance(200)
        happened = [(event.kind, event.what) for event in session.events.happened]
        assert happened == [("battery_empty", "drone_1")]
        assert session.state.velocity_enu_m_s[1, 2] < -0.5


def test_spinning_up_turns_the_drone_back():
    """C15: what a rotor gains in angular momentum the drone loses; no torque of the air."""
    inertia = 1e-3
    settings = {
        "start": {"kind": "state", "load": {"position_enu_m": [0, 0, 10]},
                  "drones": [{"position_enu_m": [0, 0, 13.2], "orientation_wxyz": [0, 0, 0, 1]}]},
        "system.cables.twist": "free","system.cables.links": 1,
        "controller": {"kind": "open_loop", "thrust_n": [0.0], "moment_body_nm": [[0, 0, 0]]},
    }  # fmt: skip
    settings["system.drones.propulsion.propeller.inertia_kg_m2"] = inertia
    settings["system.drones.rotors.0.moment_ratio_m"] = 0.0
    with Session(flight(settings)) as session:
        session.command.omega_cmd_rad_s[:] = 0.0
        command = session.command.omega_cmd_rad_s
        turn = lambda tick: command.__setitem__((0, 0), 200.0)  # noqa: E731 (rotor 1 turns ccw)
        session.insert_after("control", "turn", turn)
        session.advance(5)
        gained = inertia * session.state.rotor_speed_rad_s[0, 0]
        izz = session.scenario.system.drones[0].inertia_kg_m2[2][2]
        assert gained > 0.01
        assert izz * session.state.omega_body_rad_s[1, 2] == pytest.approx(-gained, rel=5e-3)


def test_turning_rotors_resist_tilting():
    """The gyroscopic moment is -omega x H."""
    system = load_system("delivery")
    drone = dataclasses.replace(
        system.drones[0],
        rotors=tuple(dataclasses.replace(r, spin="ccw") for r in system.drones[0].rotors),
    )
    system = dataclasses.replace(system, drones=(drone,))
    power = Power(system)
    state, inputs = hovering(system)
    state.motion[1, 10:13] = [0.3, -0.2, 0.1]
    drive(power, state, inputs)
    h = 4 * 1.46e-4 * state.rotor_speed_rad_s[0, 0]
    expected = -np.cross([0.3, -0.2, 0.1], [0.0, 0.0, h])
    np.testing.assert_allclose(inputs.wrench_body[1, :3], expected, atol=1e-12)


def test_the_gyroscopic_moment_of_changing_rotors_is_its_mean_over_the_period():
    """Angular momentum half-way between begin and end of the period; its change turns about z."""
    system = load_system("delivery")
    drone = dataclasses.replace(
        system.drones[0],
        rotors=tuple(dataclasses.replace(r, spin="ccw") for r in system.drones[0].rotors),
    )
    system = dataclasses.replace(system, drones=(drone,))
    power = Power(system)
    state, inputs = hovering(system)
    state.motion[1, 10:13] = [0.3, -0.2, 0.1]
    state.rotor_speed_rad_s[:] = 300.0
    inputs.rotor_command_rad_s[:] = 350.0
    drive(power, state, inputs)
    step = 50.0 * (1.0 - np.exp(-PERIOD_S / drone.rotors[0].time_constant_up_s))
    h = 4 * 1.46e-4 * (300.0 + 0.5 * step)
    expected = -np.cross([0.3, -0.2, 0.1], [0.0, 0.0, h]) - [0, 0, 4 * 1.46e-4 * step / PERIOD_S]
    np.testing.assert_allclose(inputs.wrench_body[1, :3], expected, rtol=1e-9)
