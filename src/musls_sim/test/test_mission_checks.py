"""Missions that never end, reach too far or need too much: refused or announced, with a reason."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from musls_control.brief.findings import (
    bag_bytes_per_s,
    findings,
    refuse_or_warn,
)
from musls_control.mission.delivery import compile_delivery
from musls_control.mission.plan import (
    GroundSpot,
    compile_air_plan,
    compile_plan,
    estimated_duration_s,
)
from musls_control.mission.spec import LONGEST_S
from musls_description.config.errors import ConfigError
from musls_description.hanging.ground import ground_radius_m, ground_spawn
from musls_sim.autopilots import hover_parameters
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session

SHIPPED = Path(__file__).parents[2] / "musls_bringup" / "musls_bringup" / "scenarios"
TEXTS = {path.stem: path.read_text() for path in SHIPPED.glob("*.yaml")}
NAMES = sorted(k for k, text in TEXTS.items() if "stages:" in text and "equilibrium" not in text)


def scenario_of(name="circle", *overrides):
    return load_scenario(SHIPPED / f"{name}.yaml", overrides)


def ground_spot(system):
    """Drones on their places round the load, as `ground_spawn` puts them."""
    load = ground_spawn(system).load_position_enu_m
    angle = 2.0 * np.pi * np.arange(system.n_drones) / system.n_drones
    radius = ground_radius_m(system, 0)
    heights = np.full(system.n_drones, 0.24)
    places = np.column_stack([radius * np.cos(angle), radius * np.sin(angle), heights])
    return GroundSpot(load, 0.0, places)


def plan_of(scenario):
    if scenario.start.kind == "ground":
        compiled = compile_plan if scenario.mission.delivery is None else compile_delivery
        return compiled(scenario.mission, scenario.formation, ground_spot(scenario.system))
    first = scenario.mission.stages[0].pose(np.zeros(1))[0]
    return compile_air_plan(scenario.mission, scenario.formation, first, scenario.system.n_drones)


@pytest.mark.parametrize("name", NAMES)
def test_shipped_missions_pass_without_a_word(name):
    said = [said.text for said in findings(scenario_of(name).brief)]
    assert not [text for text in said if "cable turns drone_" not in text]  # `unequal`: by 7.8 deg


@pytest.mark.parametrize("name", NAMES)
def test_the_estimated_duration_is_about_the_planned_one(name):
    scenario = scenario_of(name)
    estimate = estimated_duration_s(scenario.mission, lands=scenario.start.kind == "ground")
    assert estimate == pytest.approx(plan_of(scenario).duration_s, rel=0.07, abs=3.0)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("mission.take_off_s=1e9", ["take_off_s", "3600"]),
        ("mission.spool_up_s=1e9", ["spool_up_s", "3600"]),
        ("mission.form_up_s=1e9", ["form_up_s", "3600"]),
        ("mission.settle_s=1e9", ["settle_s", "3600"]),
        ("mission.setpoint_rate_hz=1e-3", ["setpoint_rate_hz", "0.1"]),
        ("mission.rise_m=1e9", ["rise_m", "1000"]),
        ("mission.slack_height_m=-1e9", ["slack_height_m", "-1000"]),
        ("mission.vertical_speed_m_s=1e-9", ["vertical_speed_m_s", "0.001"]),
        ("mission.transit_speed_m_s=1e6", ["transit_speed_m_s", "30"]),
        ("mission.transit_yaw_rate_rad_s=1e-9", ["transit_yaw_rate_rad_s", "0.001"]),
        ("mission.landing_speed_m_s=1e-9", ["landing_speed_m_s", "0.001"]),
        ("mission.stages.0.repetitions=100000", ["repetitions", "10000"]),
        ("wind.mean_enu_m_s=[1e5,0,0]", ["wind.mean_enu_m_s", "100"]),
        ("wind.mean_enu_m_s=[200,0,0]", ["wind.mean_enu_m_s", "100"]),
        ("wind.gust_std_m_s=[0,1e3,0]", ["wind.gust_std_m_s", "50"]),
        ("physics.gravity_m_s2=1e6", ["gravity_m_s2", "100"]),
    ],
)
def test_fields_have_limits(override, words):
    with pytest.raises(ConfigError) as error:
        scenario_of("circle", override)
    assert all(word in str(error.value) for word in words), error.value


LONG_LIST = ", ".join(["{position_m: [0, 0, 1]}, {position_m: [1, 0, 1]}"] * 50)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["mission.stages.0.speed_m_s=1e-9"], ["mission.stages.0", "86400 s (a day)"]),
        (["mission.stages=[{kind: hold, duration_s: 1e8}]"], ["mission.stages.0", "a day"]),
        (["mission.stages=[{kind: hold, duration_s: 5e4}, {kind: hold, duration_s: 5e4}]"],
         ["mission: the flight", "a day"]),
        (["mission.stages.0.radius_m=1e8", "mission.stages.0.speed_m_s=1e6"],
         ["mission.stages.0", "10000 m"]),
        (["mission.stages.0.speed_m_s=1000"], ["mission.stages.0", "1000 m/s", "30 m/s"]),
        (["mission.stages=[{kind: shm, omega_rad_s: 1e3}]"], ["mission.stages.0", "m/s"]),
        (["mission.stages.0.radius_m=1e-4", "mission.stages.0.speed_m_s=1"],
         ["mission.stages.0", "rad/s"]),
        (["mission.rise_m=4"], ["mission.rise_m = 4", "drone_1", "taut 0.9"]),
        (["mission.stages=[{kind: hold, position_m: [9e3, 0, 1]}]",
          "mission.transit_speed_m_s=0.05"], ["mission", "a day"]),
    ],
)  # fmt: skip
def test_missions_that_cannot_be_flown_are_refused(overrides, words):
    refusal = next(findings(scenario_of("circle", *overrides).brief))
    assert refusal.refuses
    assert all(word in refusal.text for word in words), refusal


def test_waypoints_are_counted_with_their_repetitions():
    stage = f"mission.stages=[{{kind: waypoints, points: [{LONG_LIST}], repetitions: 2000}}]"
    with pytest.raises(ConfigError, match="100000"):
        scenario_of("circle", stage)


def test_set_points_are_counted_before_they_are_made():
    stage = "mission.stages=[{kind: hold, duration_s: 8e4}]"
    with pytest.raises(ConfigError, match=r"mission\.stages\.0: .* set-points .*rate_hz \(250\)"):
        plan_of(scenario_of("circle", stage, "mission.setpoint_rate_hz=250"))


def test_a_plan_is_no_longer_than_a_day():
    """Also where nothing has been checked before, as in the ROS nodes."""
    two = "{kind: hold, duration_s: 50000}"
    scenario = scenario_of("hold", f"mission.stages=[{two}, {two}]")
    with pytest.raises(ConfigError, match=rf"mission\.stages\.1: .* {LONGEST_S:g} s \(a day\)"):
        plan_of(scenario)


# ---------- Rising


@pytest.mark.parametrize("name", ["x500_trio", "x500_trio_unequal", "x500_solo", "x500_hexa"])
def test_the_highest_rise_is_where_the_shortest_cable_is_taut(name):
    """The refused height is the one at which the ends of the first cable are its length apart."""
    base = ["start=ground", f"system={name}"]
    refusal = next(findings(scenario_of("circle", *base, "mission.rise_m=500").brief))
    highest = float(re.search(r"taut ([\d.]+) m above", refusal.text)[1])
    system = scenario_of("circle", *base).system
    load, drone, cable = system.load, system.drones[0], system.cables[0]
    low = load.cable_attachments_m[0][2] - load.collision.bottom_m
    high = drone.cable_attachment_m[2] - drone.collision.bottom_m + highest
    assert np.hypot(ground_radius_m(system, 0), high - low) == pytest.approx(
        cable.length_m, abs=0.01
    )
    said = findings(scenario_of("circle", *base, f"mission.rise_m={highest - 0.02}").brief)
    assert not [refusal for refusal in said if "rise_m" in refusal.text]


# ---------- Cautions


def caution(*overrides):
    (said,) = findings(scenario_of("circle", *overrides).brief)
    assert not said.refuses
    return said.text


def test_a_very_long_flight_is_announced_with_its_length_and_size():
    text = caution("mission.stages=[{kind: hold, duration_s: 36000}]")
    assert "60" in text and "min" in text and "GB" in text and "recording.rate_hz" in text


def test_a_short_flight_with_a_large_bag_is_announced():
    many = ["recording.rate_hz=250", "recording.shape_rate_hz=250", "system.cables.links=1000"]
    assert "GB" in caution(*many, "mission.stages=[{kind: hold, duration_s: 120}]")


def test_the_announced_size_is_about_that_of_a_bag():
    """Against bags flown with this recorder: hold (11.6 s, 3 drones) and hexa (49.6 s, 6)."""
    assert 11.6 * bag_bytes_per_s(scenario_of("hold").brief) == pytest.approx(1.93e6, rel=0.2)
    assert 49.6 * bag_bytes_per_s(scenario_of("hexa").brief) == pytest.approx(14.9e6, rel=0.2)


def test_wind_that_blows_the_drones_away_is_named():
    text = caution("wind.mean_enu_m_s=[90,60,0]")
    assert text.startswith("wind of 108 m/s") and "blown away" in text
    assert not list(findings(scenario_of("circle", "wind.mean_enu_m_s=[5,5,0]").brief))


def test_cables_that_are_not_slack_before_the_lift_are_named():
    text = caution("mission.slack_height_m=0.5")
    assert "slack_height_m = 0.5" in text and "cable_1" in text


def test_cautions_are_warnings_before_the_flight():
    scenario = scenario_of("hold", "mission.stages.0.duration_s=7200")
    with pytest.warns(UserWarning, match="a long flight"):
        refuse_or_warn(scenario.brief)
    usual = scenario_of("hold")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refuse_or_warn(usual.brief)


# ---------- Gravity


def test_low_gravity_is_named_and_not_a_parameter_that_nobody_set():
    with pytest.raises(ConfigError) as error:
        hover_parameters(scenario_of("circle", "physics.gravity_m_s2=0.5"))
    assert str(error.value).startswith("physics.gravity_m_s2 = 0.5: drone_1 alone hovers at ")


def test_a_drone_too_light_for_its_rotors_is_named():
    with pytest.raises(ConfigError) as error:
        hover_parameters(scenario_of("circle", "system.drones.1.mass_kg=0.05"))
    assert str(error.value).startswith("system.drones.1.mass_kg = 0.05: drone_2 alone hovers at ")


def test_a_drone_is_light_enough_with_a_lower_least_thrust():
    low = ["autopilot.parameters.MPC_THR_MIN=0.01", "autopilot.parameters.MPC_THR_HOVER=0.05"]
    assert hover_parameters(scenario_of("circle", "physics.gravity_m_s2=0.5", *low))


def test_high_gravity_is_named_where_the_rotors_cannot_lift():
    scenario = scenario_of("hold", "physics.gravity_m_s2=30")
    with pytest.raises(ConfigError, match=r"thrust margin .* at gravity 30 m/s2"):
        refuse_or_warn(scenario.brief)


def test_set_points_of_a_file_count_from_the_scenarios_folder(tmp_path, monkeypatch):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "way.csv").write_text("t,x,y,z\n10,0,0,1\n12,1,0,1\n13,1,1,1.5\n")
    file = tmp_path / "mine.yaml"
    file.write_text(
        "system: x500_trio\nmission: {stages: [{kind: recorded, path: deep/way.csv, "
        "columns: [t, x, y, z]}]}\n"
    )
    monkeypatch.chdir("/")
    (stage,) = load_scenario(file).mission.stages
    assert stage.duration_s == 3.0
    file.write_text(file.read_text().replace("way.csv", "absent.csv"))
    with pytest.raises(ConfigError, match=r"deep.absent\.csv: no such file"):
        load_scenario(file)


def test_links_without_damping_that_touch_things_are_announced():
    def fly(damping):
        joint = f"system.cables.joint={{damping_n_m_s_rad: {damping}}}"
        touching = "physics.contact=[load, drones, cables]"
        Session(load_scenario(SHIPPED / "hold.yaml", [joint, touching])).close()

    with pytest.warns(UserWarning, match=r"joints of cable_1 have hardly any damping \(1e-05"):
        fly(1e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fly("null")


def test_light_elastic_cables_are_announced_with_links_that_are_fast():
    def session(links):
        light = ["system.cables.mass_kg=1e-4", f"system.cables.links={links}"]
        return Session(load_scenario(SHIPPED / "circle_elastic.yaml", light))

    with pytest.warns(UserWarning, match=r"a slow flight: the 15 segments.*links = 5 is fast"):
        session(15).close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session(5).close()
