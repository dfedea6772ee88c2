"""The payload controller flies shipped systems: load feedback pays, on every way to the rotors."""

import json
from pathlib import Path

import numpy as np
import pytest

from musls_control.controllers import Controller, ControlLevel
from musls_description.config.errors import ConfigError
from musls_sim.recording import MemoryRecorder
from musls_sim.recording.signals import Rate
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session

SHIPPED = Path(__file__).parents[2] / "musls_bringup" / "musls_bringup" / "scenarios"
SYSTEMS = ["solo", "duo", "hold", "quad", "hexa", "typhoon"]


def scenario(name, *overrides):
    return load_scenario(SHIPPED / f"{name}.yaml", ["start.kind=air", *overrides])


def flown(chosen, from_s, until_s):
    """Distance of the load to its set-point from a time on, and the session at the end."""
    misses = []
    with Session(chosen) as session:
        while session.time_s < until_s and not session.finished:
            if session.time_s >= from_s:
                gap = session.reference.position_enu_m - session.state.position_enu_m[0]
                misses.append(np.linalg.norm(gap))
            session.advance(1)
    return np.array(misses), session


def octos(folder):
    """System file of three octorotors of 5 kg with a crate of 4 kg on 3 m."""
    angles = np.radians(22.5 + 45.0 * np.arange(8))
    rotors = [
        {
            "position_m": [0.5 * float(np.cos(a)), 0.5 * float(np.sin(a)), 0.0],
            "spin": ("ccw", "cw")[k % 2],
            "thrust_coefficient_n_s2": 6e-5,
            "moment_ratio_m": 0.025,
            "time_constant_up_s": 0.04,
            "time_constant_down_s": 0.05,
            "speed_min_rad_s": 60.0,
            "speed_max_rad_s": 550.0,
        }
        for k, a in enumerate(angles)
    ]
    drone = {
        "mass_kg": 5,
        "inertia_kg_m2": np.diag([0.2, 0.2, 0.35]).tolist(),
        "model": "octo",
        "cable_attachment_m": [0, 0, -0.05],
        "collision": {"size_m": [1.0, 1.0, 0.3]},
        "rotors": rotors,
    }
    load = {
        "mass_kg": 4,
        "inertia_kg_m2": np.diag([0.06, 0.08, 0.09]).tolist(),
        "cable_attachments_m": [[0.2, 0, 0.14], [-0.1, 0.15, 0.14], [-0.1, -0.15, 0.14]],
        "collision": {"size_m": [0.4, 0.3, 0.28]},
    }
    cables = {"from": "rope", "mass_kg": 0.06, "length_m": 3}
    path = folder / "octos.yaml"
    path.write_text(json.dumps(dict(name="octos", load=load, drones=[drone] * 3, cables=cables)))
    return path


@pytest.mark.parametrize("output", ["direct", "autopilot"])
@pytest.mark.parametrize("airframe", ["crazyflie", "hold", "octo"])
def test_gains_follow_from_the_airframe(airframe, output, tmp_path):
    """27 g with rotors of 60 ms, 2.1 kg with 19 ms, 5 kg with 45 ms: all hold a load that is hit.

    A drone that follows the angular acceleration that its force gives a small load drives it:
    Crazyflies then tumble within 3 s.
    """
    chosen = scenario(
        "crazyflie" if airframe == "crazyflie" else "hold",
        "mission.stages=[{kind: hold, duration_s: 12, position_m: [0, 0, 1]}]",
        f"controller={{kind: payload, output: {output}}}",
        "cable_model=massless",
        *([f"system={octos(tmp_path)}"] if airframe == "octo" else []),
    )
    ahead_s = chosen.mission.settle_s + 4.0
    swing = []
    with Session(chosen) as session:
        weight = session.scenario.system.load.mass_kg * 9.8
        while session.time_s < ahead_s + 6.0:
            hit = ahead_s - 1.0 < session.time_s < ahead_s - 0.8
            session.inputs.wrench_enu[0, 3] = 0.3 * weight if hit else 0.0
            session.advance(5)
            if session.time_s > ahead_s:
                gap = session.reference.position_enu_m - session.state.position_enu_m[0]
                tilt = np.linalg.norm(session.state.orientation_wxyz[0, 1:3])
                swing.append([session.time_s, np.linalg.norm(gap), tilt])
    time_s, far_m, tilt = np.array(swing).T
    assert tilt.max() < 0.45  # half the angle
    assert tilt[time_s > ahead_s + 5.0].max() < 0.05
    assert far_m[time_s > ahead_s + 5.0].max() < 0.7 * far_m.max()


def pushed(system, controller, *overrides):
    """Distances of a load that is pushed with 1.5 N from 2 to 5 s, and times, until 16 s."""
    chosen = scenario(
        system,
        "mission.stages=[{kind: hold, position_m: [0, 0, 2], duration_s: 16}]",
        "events=[{kind: poke, when: {time_s: 2}, body: load, force_enu_n: [1.5, 0, 0], "
        "duration_s: 3}]",
        f"controller={controller}",
        *overrides,
    )
    away = []
    with Session(chosen) as session:
        while session.time_s < 15.0:
            session.advance(5)
            gap = session.reference.position_enu_m - session.state.position_enu_m[0]
            below = session.state.position_enu_m[1:].mean(axis=0) - session.state.position_enu_m[0]
            swing = np.degrees(np.arctan2(np.hypot(*below[:2]), below[2]))
            away.append([session.time_s, np.linalg.norm(gap), swing])
    return np.array(away).T


def test_spread_cables_hold_a_load_below_drones_in_their_places():
    """Five, pushed by 0.3 of the weight: 0.29 m on average, formation 0.71, directions 2.6 m."""
    data = {
        "system": {
            "name": "five",
            "load": {
                "mass_kg": 2.0,
                "shape": {"kind": "box", "size_m": [0.8, 0.8, 0.15]},
                "cable_attachments_m": [
                    [round(0.4 * np.cos(a), 4), round(0.4 * np.sin(a), 4), 0.075]
                    for a in 2.0 * np.pi * np.arange(5) / 5.0
                ],
            },
            "drones": {"from": "x500"},
            "cables": {"length_m": 16.0, "material": "polyester", "diameter_m": 0.001, "links": 10},
        },
        "cable_model": "massless",
        "start": "air",
        "mission": {"stages": [{"kind": "hold", "position_m": [0, 0, 5], "duration_s": 12}]},
        "events": [
            {"kind": "poke", "when": {"time_s": 1}, "body": "load", "force_enu_n": [6, 0, 0],
             "duration_s": 2}
        ],
    }  # fmt: skip
    away = {}
    for name, keys in {
        "formation": {"kind": "formation"},
        "places": {"kind": "payload"},
        "directions": {"kind": "payload", "feedback": "directions"},
    }.items():
        with Session(load_scenario(data | {"controller": keys})) as session:
            gaps = []
            while session.time_s < 11.0:
                session.advance(5)
                gap = session.reference.position_enu_m - session.state.position_enu_m[0]
                gaps.append(np.linalg.norm(gap))
        away[name] = np.mean(gaps)
    assert away["places"] < 0.8 * away["formation"] < away["directions"]


def test_what_only_feedback_of_directions_has_is_told():
    chosen = scenario("hold", "controller={kind: payload, feedback: places, feed_forward: full}")
    with pytest.raises(ConfigError, match=r"feed_forward = full is for controller\.feedback"):
        Session(chosen)


@pytest.mark.parametrize("output", ["direct", "autopilot"])
def test_after_a_push_it_is_no_worse_than_the_formation(output):
    """Farthest, and place and swing ten seconds later; cables that brake reach 0.96 m."""
    time_s, far_m, swing_deg = pushed("solo", f"{{kind: payload, output: {output}}}")
    _, base_m, base_deg = pushed("solo", "formation")
    late = time_s > 12.0
    assert far_m.max() < 0.7 * base_m.max()
    assert far_m[late].max() < 0.5 * base_m[late].max()
    assert swing_deg[late].max() < 0.5 * base_deg[late].max()


def test_an_incremental_tracker_tells_the_observer_of_a_push_that_cables_carry():
    """Two drones: nothing but what the tracker measures tells a push from false tensions."""
    direct = "{kind: payload, output: direct}"
    time_s, far_m, _ = pushed("duo", direct, "autopilot.tracker=indi")
    _, base_m, _ = pushed("duo", "formation")
    after = time_s > 5.0
    assert far_m.max() < 0.8 * base_m.max()  # twice as far without it
    assert far_m[after].max() < base_m[after].max()


@pytest.mark.slow
@pytest.mark.parametrize("output", ["direct", "autopilot"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_default_gains_hold_every_shipped_system(name, output):
    hold = "mission.stages=[{kind: hold, duration_s: 9, position_m: [0, 0, 1]}]"
    chosen = scenario(
        name, hold, f"controller={{kind: payload, output: {output}}}", "system.cables.links=3"
    )
    misses, session = flown(chosen, 4.0, 5.0)
    assert misses.max() < 0.03
    assert session.state.tension_n.min() > 0.0
    tilt = 1.0 - 2.0 * np.sum(session.state.orientation_wxyz[1:, 1:3] ** 2, axis=1)
    assert tilt.min() > np.cos(0.35)


@pytest.mark.slow
@pytest.mark.parametrize(("feedback", "most_rad"), [("directions", 0.01), ("places", 0.02)])
def test_the_yaw_of_a_load_on_undamped_cables_dies_away(feedback, most_rad):
    """Spread massless cables swing in yaw with 1 Hz, faster than drones can answer.

    Late feedback of the rate would make it grow by half every four seconds: 0.03 rad after 4 s,
    0.3 rad after 20 s, and the load tumbles. Drones in their places damp it a little, 0.024 rad
    in the beginning.
    """
    keys = f"controller={{kind: payload, output: direct, feedback: {feedback}}}"
    chosen = scenario("circle_payload", keys, "cable_model=massless")
    yaws = []
    with Session(chosen) as session:
        while session.time_s < 20.0:
            if session.time_s >= 16.0:
                w, x, y, z = session.state.orientation_wxyz[0]
                yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
                yaws.append(np.sin(yaw - session.reference.yaw_rad))
            session.advance(5)
    assert np.sqrt(np.mean(np.square(yaws))) < most_rad


@pytest.mark.slow
@pytest.mark.parametrize("output", ["direct", "autopilot"])
@pytest.mark.parametrize(("name", "most_m"), [("circle", 0.307 / 4.0), ("shm", 1.061 / 4.0)])
def test_load_feedback_quarters_the_error_of_the_formation(name, most_m, output):
    """Mean distance to the set-point; the formation's are 307 and 1061 mm (docs/results.md)."""
    chosen = scenario(f"{name}_payload", f"controller.output={output}")
    misses, _ = flown(chosen, 1.6, 23.0)
    assert misses.mean() < most_m


def test_the_formation_spreads_the_drones_and_minimum_norm_does_not():
    """Cables as steep as the load allows bring the drones over their attachments."""
    base = ["system.cables.links=3", "estimation.kind=truth"]

    def distance(allocation):
        chosen = scenario(
            "hold", *base, f"controller={{kind: payload, output: direct, allocation: {allocation}}}"
        )
        _, session = flown(chosen, 0.0, 5.0)
        first, second = session.state.position_enu_m[1:3]
        return np.linalg.norm(first - second)

    assert distance("formation") == pytest.approx(np.sqrt(3.0), abs=0.03)
    assert distance("min_norm") < 0.6
    assert distance("qp, apart_m: 1.2") == pytest.approx(1.2, abs=0.02)


def test_what_the_drones_cannot_keep_is_an_event_once():
    """Four metres between drones on cables of 2.5 m: minimum norm instead."""
    chosen = scenario(
        "circle_payload", "controller.allocation=qp", "controller.apart_m=6",
        "cable_model=massless", "start=air",
    )  # fmt: skip
    with Session(chosen) as session:
        session.advance(251)  # compiled flights report once in a second
        told = [e for e in session.events.happened if e.kind == "allocation_infeasible"]
    assert len(told) == 1 and "6.00 m apart" in told[0].what


def test_direct_output_does_not_fly_real_px4s(tmp_path):
    chosen = scenario("hold", "controller={kind: payload, output: direct}", "autopilot.kind=px4")
    with pytest.raises(ConfigError, match=r"px4|PX4"):
        Session(chosen, autopilot_logs=tmp_path)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ("output: autopilot", "controller.output = autopilot cannot fly rigid rods"),
        ("output: direct, allocation: qp", "controller.allocation is for cables"),
        ("output: direct, gains: {cable_rate_1_s: 3}", "gains.cable_rate_1_s is for cables"),
        ("output: direct, feed_forward: full", "feed_forward = full is for cables"),
    ],
)
def test_what_rods_do_not_have_is_refused(keys, told):
    chosen = load_scenario(
        SHIPPED / "rotortm_rods_circle6.yaml", [f"controller={{kind: payload, {keys}}}"]
    )
    with pytest.raises(ConfigError, match=told):
        Session(chosen)


class GivenForces(Controller):
    """Asks an autopilot for forces that are known."""

    level = ControlLevel.AUTOPILOT_FORCES

    def step(self, time_s, reference, estimate):
        return np.array([[0.5, 1.0, 30.0], [0.0, 0.0, 30.0], [-1.0, 2.0 + time_s, 30.0]])


def test_accelerations_that_an_autopilot_is_asked_for_are_recorded():
    """PX4 points the thrust along (a_x, a_y, g), so that a_x = g F_x / F_z; 50 Hz."""
    chosen = scenario("hold")
    recorder = MemoryRecorder(chosen.system, step_period_s=0.004)
    with Session(chosen, controller=GivenForces, observers=[recorder]) as session:
        session.advance(50)
    recorded = recorder.rows[Rate.ACCELERATION]
    stamps, (asked,) = recorded.stamps_ns(), recorded.columns().values()
    assert stamps.tolist() == [20_000_000 * k for k in range(10)]
    g = 9.80665
    assert asked[:, 0, :2] == pytest.approx(np.tile([g * 0.5 / 30, g / 30], (10, 1)))
    assert asked[:, 1, :2] == pytest.approx(0.0)
    assert asked[:, 2, 1] == pytest.approx(g * (2.0 + 0.02 * np.arange(10)) / 30)


def test_wrong_keys_are_named():
    with pytest.raises(ConfigError, match=r"controller\.gains.*cable_stiffness"):
        scenario("hold", "controller={kind: payload, gains: {cable_stiffness: 3}}")
    with pytest.raises(ConfigError, match=r"controller\.output"):
        scenario("hold", "controller={kind: payload, output: motors}")


@pytest.mark.parametrize(("keys", "most_m"), [("", 0.015), ("autopilot.tracker=indi", 0.015)])
def test_a_load_that_is_heavier_than_known_is_held(keys, most_m):
    """A fifth more: observer, or measured forces, hold the load; without both it sags by 40 mm."""
    sag = {}
    for name, more in {"held": keys, "sags": "controller.disturbance_1_s=0"}.items():
        chosen = scenario(
            "circle_payload",
            "mission.stages=[{kind: hold, duration_s: 4, position_m: [0, 0, 1]}]",
            "events=[{kind: load_mass, when: {time_s: 0.1}, mass_kg: 1.992}]",
            "controller.output=direct",
            "system.cables.links=3",
            *filter(None, [more]),
        )
        misses, _ = flown(chosen, 0.5, 3.0)
        sag[name] = misses.max()
    assert sag["sags"] > 0.03
    assert sag["held"] < most_m


def test_incremental_tracker_leaves_a_yaw_that_cables_hold_alone():
    """Light drones on cables with locked twist: with feedback in yaw they turn at 1 rad/s."""
    chosen = scenario(
        "eight_agile",
        "mission.stages=[{kind: hold, duration_s: 8, position_m: [0, 0, 2]}]",
        "controller={kind: payload, output: direct}",
        "autopilot.tracker=indi",
    )
    with Session(chosen) as session:
        session.advance(1750)
        turning = 0.0
        for _ in range(250):
            session.advance(1)
            turning = max(turning, np.abs(session.state.omega_body_rad_s[1:, 2]).max())
    assert turning < 0.1


def test_incremental_tracker_needs_a_controller_of_forces():
    chosen = scenario("circle_payload", "cable_model=massless", "autopilot.tracker=indi")
    with pytest.raises(ConfigError, match=r"autopilot\.tracker = indi .* autopilot_forces"):
        Session(chosen)
