"""Margins before a flight against closed forms, and how close drones come to each other."""

import math

import numpy as np
import pytest

from musls_bringup.before.verdict import as_data, judge, look
from musls_bringup.catalogue.scenarios import load_scenario
from musls_control.brief.brief import LimitsSpec
from musls_control.brief.margins import (
    FormationMotion,
    forces_of,
    full_thrust_n,
    hard_moments,
    strong_wind_enu_m_s,
    thrust_at_m,
)
from musls_description.config.errors import ConfigError
from musls_description.hanging.hang import hang
from musls_description.system.drone import propeller_radius_m, tip_radius_m
from musls_description.system.system_files import load_system
from musls_sim.session.collisions import SeparationWatch
from musls_sim.session.session import Session

G = 9.80665
POSE = np.array([0.0, 0.0, 2.0, 0.3])


def moving(**changes):
    values = {
        "pose": POSE, "velocity_enu_m_s": np.zeros(3), "acceleration_enu_m_s2": np.zeros(3),
        "yaw_rate_rad_s": 0.0, "yaw_acceleration_rad_s2": 0.0, "wind_enu_m_s": np.zeros(3),
    }  # fmt: skip
    return FormationMotion(**(values | {k: np.array(v) if isinstance(v, list) else v
                               for k, v in changes.items()}))  # fmt: skip


def test_at_rest_it_is_the_hanging_equilibrium():
    scenario = load_scenario("circle")
    hanging = hang(scenario.system, scenario.formation, load_pose=POSE)
    forces = forces_of(scenario.brief.hanging, moving())
    np.testing.assert_allclose(forces.thrust_enu_n, hanging.rest.drone_force_n, atol=1e-9)


def test_tension_of_a_symmetric_cone():
    """C18: T = m_L g / (n cos alpha)."""
    scenario = load_scenario("quad")
    forces = forces_of(scenario.brief.hanging, moving())
    system = scenario.system
    cables = forces.thrust_enu_n - [0.0, 0.0, system.drones[0].mass_kg * G]
    cables[:, 2] -= system.cables[0].mass_kg * G  # at the load
    cosine = cables[:, 2] / np.linalg.norm(cables, axis=1)
    expected = system.load.mass_kg * G / (4 * cosine)
    np.testing.assert_allclose(forces.tension_n, expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["solo", "circle", "unequal"])
def test_the_drones_give_what_the_whole_system_needs(name):
    scenario = load_scenario(name, {
        "system.load.drag_n_s_m": [0.3, 0.3, 0.3],
        "system.drones.drag_n_s_m": [0.2, 0.2, 0.2],
        "system.drones.rotors.drag_n_s2_m_rad": 0.0,
    })  # fmt: skip
    system = scenario.system
    motion = moving(
        velocity_enu_m_s=[1.0, -0.5, 0.2], acceleration_enu_m_s2=[0.6, 0.8, 0.5],
        wind_enu_m_s=[-3.0, 2.0, 0.0],
    )  # fmt: skip
    forces = forces_of(scenario.brief.hanging, motion)
    air = motion.wind_enu_m_s - motion.velocity_enu_m_s
    drag = (0.3 + 0.2 * system.n_drones) * air
    felt = np.array([0.0, 0.0, G]) + motion.acceleration_enu_m_s2
    np.testing.assert_allclose(forces.thrust_enu_n.sum(axis=0), system.mass_kg * felt - drag,
                               rtol=1e-6, atol=1e-6)  # fmt: skip


def test_one_drone_accelerates_its_load_like_a_pendulum():
    scenario = load_scenario("solo", {"system.drones.rotors.drag_n_s2_m_rad": 0.0})
    forces = forces_of(scenario.brief.hanging, moving(acceleration_enu_m_s2=[3.0, 0.0, 0.0]))
    east, north, up = forces.thrust_enu_n[0]
    assert math.atan2(east, up) == pytest.approx(math.atan2(3.0, G), abs=1e-6)
    assert north == pytest.approx(0.0, abs=1e-6)
    mass_kg = scenario.system.load.mass_kg
    assert forces.tension_n[0] == pytest.approx(mass_kg * math.hypot(3.0, G), rel=1e-6)


def test_wind_tilts_by_drag_over_weight():
    """C11: 3.66 N of drag in a wind of 10 m/s lean a drone of 10.04 kg by 2.13 degrees."""
    scenario = load_scenario("delivery", {
        "system.drones.drag_n_s_m": [0.366, 0.366, 0.366],
        "system.load.drag_n_s_m": [0.0, 0.0, 0.0],
    })  # fmt: skip
    windy = forces_of(scenario.brief.hanging, moving(wind_enu_m_s=[10.0, 0.0, 0.0]))
    east, _, up = windy.thrust_enu_n[0]
    assert math.degrees(math.atan2(-east, up)) == pytest.approx(2.13, abs=0.01)


def test_turning_formation_needs_centripetal_force():
    """Of drones at 1 m from the axis at 2 rad/s: 4 m/s2 inward, on top of what the cables do."""
    scenario = load_scenario("quad", {"system.drones.rotors.drag_n_s2_m_rad": 0.0})
    drone = scenario.system.drones[0]
    turning = forces_of(scenario.brief.hanging, moving(yaw_rate_rad_s=2.0)).thrust_enu_n
    still = forces_of(scenario.brief.hanging, moving()).thrust_enu_n
    places, _ = scenario.formation.poses(np.zeros(3), POSE[3], scenario.system.n_drones)
    inward = -drone.mass_kg * 4.0 * places * [1.0, 1.0, 0.0]
    np.testing.assert_allclose(turning - still, inward, atol=1e-6)


def test_hardest_moment_of_a_circle_is_as_hard_everywhere():
    """Centripetal acceleration v^2 / r with the load's speed; the time does not matter."""
    scenario = load_scenario("solo")
    moment = hard_moments(scenario.brief)[0]
    size = np.linalg.norm(moment.motion.acceleration_enu_m_s2)
    assert moment.stage == "circle"
    assert size == pytest.approx(0.5**2 / 1.5, rel=1e-6)


def test_strong_wind_counts_gusts():
    scenario = load_scenario("wind")
    wind = strong_wind_enu_m_s(scenario.brief)
    assert np.linalg.norm(wind) > np.linalg.norm([2.0, 1.0, 0.0]) + 1.0
    assert np.cross(wind, [2.0, 1.0, 0.0]) == pytest.approx([0, 0, 0], abs=1e-12)


def test_delivery_hovers_as_long_as_its_paper_says():
    told, found = look(load_scenario("delivery"))
    (margins,) = found.formation
    assert not any(finding.refuses for finding in told)
    assert margins.minutes == pytest.approx(19.3, rel=0.02)
    assert margins.thrust_margin == pytest.approx(1.9186 * 10.0224 / 10.0424, rel=1e-3)
    assert margins.level_tilt_deg == pytest.approx(58.6, abs=0.2)
    assert found.first_empty == (1, margins.minutes)
    assert margins.empty_margin < margins.thrust_margin


def test_at_the_ceiling_full_thrust_just_carries():
    scenario = load_scenario("delivery")
    _, found = look(scenario)
    drone = scenario.system.drones[0]
    assert thrust_at_m(drone, found.ceiling_m) == pytest.approx(found.formation[0].thrust_n)
    # Paper: 5.3 km, by a tool whose inputs are not published.
    assert found.ceiling_m == pytest.approx(5300.0, rel=0.05)


def test_thrust_constants_without_propeller_go_with_the_density():
    drone = load_system("x500_trio").drones[0]
    assert thrust_at_m(drone, 0.0) == pytest.approx(drone.max_thrust_n)
    ratio = 1.08707 / 1.22566
    assert thrust_at_m(drone, 1000.0) == pytest.approx(drone.max_thrust_n * ratio, rel=1e-5)


def test_sagging_battery_gives_less_thrust():
    """All currents flow through the battery: U = R_b n I + R I + K_t w / gear."""
    drone = load_system("delivery").drones[0]
    k, k_m = drone.rotors[0].thrust_coefficient_n_s2, drone.rotors[0].moment_coefficient_n_m_s2
    speed = math.sqrt(full_thrust_n(drone, 0.0) / 4.0 / k)
    motor, battery = drone.propulsion.motor, drone.propulsion.battery
    current = motor.current_a(k_m * speed**2)
    at_motor = battery.rest_v(0.0) - 4.0 * battery.resistance_ohm * current
    assert motor.voltage_v(speed, current) == pytest.approx(at_motor)


BATTERY = "system.drones.propulsion.battery."


@pytest.mark.parametrize(
    ("name", "changes", "problem"),
    [
        ("delivery", {"system.load.mass_kg": 15}, "cannot lift the load: thrust margin"),
        ("delivery", {"system.drones.propulsion.air.altitude_m": 5000}, "thrust margin"),
        ("circle", {"limits.separation_m": 1.0}, "limits.separation_m = 1"),
        ("circle", {"formation.height_m": 4.0}, "formation.height_m = 4"),
    ],
)
def test_what_cannot_be_flown(name, changes, problem):
    scenario = load_scenario(name, changes)
    verdict = judge(scenario)
    assert not verdict.can_be_flown and verdict.flown is None
    assert problem in verdict.sentence
    assert as_data(scenario, verdict)["can_be_flown"] is False


@pytest.mark.parametrize(
    ("changes", "caution"),
    [
        ({"wind.mean_enu_m_s": [60, 0, 0]}, "drone_1 has no drag"),
        ({BATTERY + "capacity_ah": 0.2}, "the flight takes"),
        ({BATTERY + "resistance_ohm": 10}, "voltage that is left at the begin"),
        (
            {BATTERY + "capacity_ah": 0.75, "system.load.mass_kg": 5.5},
            "voltage that is left at the end",
        ),
        ({"system.drones.propulsion.propeller.diameter_m": 0.9}, "propellers of 0.9 m"),
    ],
)
def test_what_one_should_know(changes, caution):
    assert not any(caution in finding.text for finding in look(load_scenario("delivery"))[0])
    told, _ = look(load_scenario("delivery", changes))
    assert any(caution in finding.text and not finding.refuses for finding in told), told


@pytest.mark.parametrize(
    ("changes", "caution"),
    [
        ({"system.cables.elastic.break_force_n": 7.0}, "of its break force of 7 N"),
        ({"autopilot.parameters.MPC_TILTMAX_AIR": 1}, "would lean"),
    ],
)
def test_a_margin_of_the_plan_is_a_caution(changes, caution):
    told, _ = look(load_scenario("circle", changes))
    assert any(caution in finding.text and not finding.refuses for finding in told), told


def test_rotor_tips():
    """C18: 0.4974 m arm and 0.2794 m propeller; where it is unknown, half the hubs' distance."""
    assert tip_radius_m(load_system("delivery").drones[0]) == pytest.approx(0.777, abs=5e-4)
    assert propeller_radius_m(load_system("x500_trio").drones[0]) == pytest.approx(0.174)


def test_plan_that_brings_drones_too_close_is_refused():
    with pytest.raises(ConfigError, match=r"limits.separation_m = 1: the plan brings .* drone_1"):
        Session(load_scenario("circle", {"limits.separation_m": 1.0})).close()
    Session(load_scenario("circle", {"limits.separation_m": 0.5})).close()


def test_separation_is_watched_in_flight():
    hold = [{"kind": "hold", "position_m": [0, 0, 1], "duration_s": 2.0}]
    changes = {
        "mission.stages": hold,
        "limits.separation_m": 0.85,
        "events": [{"kind": "poke", "when": {"time_s": 0.1}, "body": "drone_1",
                    "force_enu_n": [-8, 0, 0], "duration_s": 1.0}],
    }  # fmt: skip
    with Session(load_scenario("hold", changes)) as session:
        least = math.inf
        radius = tip_radius_m(session.scenario.system.drones[0])
        while session.time_s < 1.2:
            session.advance(5)
            drones = session.state.position_enu_m[1:]
            gaps = [np.linalg.norm(drones[i] - drones[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
            least = min(least, *gaps)
        assert session.separation.closest.centres_m == pytest.approx(least, abs=0.02)
        closest = session.separation.closest
        assert closest.tips_m == pytest.approx(closest.centres_m - 2 * radius)
        assert [event.kind for event in session.events.happened] == ["poke", "too_close", "poke"]


def test_rotor_tips_closer_than_zero_are_an_event_without_a_limit():
    watch = SeparationWatch(load_system("x500_duo"), LimitsSpec())
    places = np.zeros((3, 3))
    for k, apart_m in enumerate((2.0, 0.5, 0.4, 2.0, 0.5)):
        places[2, 0] = apart_m
        found = watch.look(float(k), places)
        assert [kind for kind, _ in found] == ["rotors_overlap"] * (k in (1, 4))
