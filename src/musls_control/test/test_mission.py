"""Missions compiled to set-points: order of phases, sampling, speed limits, whole turns of yaw."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musls_control.mission.plan import (
    GroundSpot,
    compile_air_plan,
    compile_plan,
    estimated_duration_s,
)
from musls_control.mission.spec import PHASES, MissionSpec
from musls_control.trajectories import Circle, Engage, Hold, Line, Shm, Waypoint, Waypoints
from musls_description.config.errors import ConfigError
from musls_description.hanging.cone import Cone

TURN = 2.0 * np.pi
LOAD_HEIGHT = 0.05
GROUND_PHASES = PHASES - {"settle", "transit"}


def standing(n=3, place=(0.0, 0.0), radius=2.2):
    """Load on the ground with its drones around it, in the directions of the formation."""
    offsets = Cone(radius_m=radius, height_m=0.13).offsets_m(n) + [*place, 0.0]
    return GroundSpot(np.array([*place, LOAD_HEIGHT]), 0.0, offsets)


def compiled(*stages, n=3, place=(0.0, 0.0), **settings):
    mission = MissionSpec(stages=stages, **settings)
    return compile_plan(mission, Cone(), standing(n, place))


def rows(plan, name, which=0):
    """Indices of the rows of a stage; of the `which`-th one of that name."""
    numbers = [k for k, known in enumerate(plan.stage_names) if known == name]
    return np.flatnonzero(plan.stage == numbers[which])


def rise_and_turn(plan):
    """Per row, how far load and drones go to the next one [m], and the load's turn [rad]."""
    load = np.linalg.norm(np.diff(plan.load_pose[:, :3], axis=0), axis=1)
    drones = np.linalg.norm(np.diff(plan.drone_position_enu_m, axis=0), axis=2)
    return load, drones, np.abs(np.diff(plan.load_pose[:, 3]))


def in_formation(plan, k):
    """Drones of rows k on the cone over the load's set-point."""
    n = plan.drone_yaw_rad.shape[1]
    return Cone().poses(plan.load_pose[k, :3], plan.load_pose[k, 3], n)


def paper_stages():
    return (
        Circle(radius_m=1.5, speed_m_s=0.3, height_m=1.0, repetitions=2),
        Engage(height_m=0.5, yaw_rad=1.7, repetitions=3),
        Shm(amplitude_m=1.0, omega_rad_s=2.0, height_m=1.0, repetitions=7),
    )


# ---------- Order of phases


def test_phases_of_a_flight_from_the_ground():
    plan = compiled(Circle())
    assert plan.stage_names == (
        "spool_up", "take_off", "form_up", "tension", "lift", "transit", "circle",
        "lower", "slacken", "spread", "land",
    )  # fmt: skip
    # Stages follow each other without going back.
    assert (np.diff(plan.stage) >= 0).all()
    assert set(plan.stage) == set(range(len(plan.stage_names)))
    assert plan.landing_speed_m_s == 0.5


def test_no_transit_where_the_load_is_already():
    assert "transit" not in compiled(Hold(position_m=(0.0, 0.0, 1.0))).stage_names


def test_phases_of_the_papers_flight():
    plan = compiled(*paper_stages())
    assert plan.stage_names == (
        "spool_up", "take_off", "form_up", "tension", "lift", "transit", "circle",
        "transit", "lower", "engage", "tension", "lift", "transit", "shm",
        "lower", "slacken", "spread", "land",
    )  # fmt: skip
    lengths = {name: len(rows(plan, name)) / plan.rate_hz for name in ("circle", "engage", "shm")}
    assert set(plan.stage_names) - PHASES == set(lengths)
    # 2 circles, 3 engagements, 7 periods, to the set-point in which they end.
    assert lengths["circle"] == pytest.approx(2 * TURN * 5.0, abs=0.2)
    assert lengths["engage"] == pytest.approx(3 * Engage().period_s, abs=0.2)
    assert lengths["shm"] == pytest.approx(7 * np.pi, abs=0.2)
    pose = plan.load_pose
    circle, engage, shm = (rows(plan, name) for name in lengths)
    assert pose[circle[-1], 3] - pose[circle[0], 3] == pytest.approx(2 * TURN, abs=0.05)
    steps = np.diff(pose[engage, 2]) > 0.5
    assert steps.sum() == 3
    upwards = np.diff(np.sign(pose[shm, 1])) > 0  # crossings of the middle
    assert upwards.sum() == 7


def test_a_flight_in_the_air_has_no_ground_phases():
    mission = MissionSpec(stages=(Circle(height_m=1.0), Hold(position_m=(2.0, 0.0, 2.0))))
    start = np.array([1.5, 0.0, 1.0, 0.0])
    plan = compile_air_plan(mission, Cone(), start, 3)
    assert plan.stage_names == ("settle", "circle", "transit", "hold")
    assert not GROUND_PHASES & set(plan.stage_names)
    assert plan.landing_speed_m_s is None
    assert np.array_equal(plan.load_pose[0], start)
    position, yaw = in_formation(plan, np.arange(len(plan.stage)))
    assert np.allclose(plan.drone_position_enu_m, position)
    assert np.allclose(plan.drone_yaw_rad, yaw)


# ---------- The ground


def test_the_flight_starts_standing_and_ends_on_the_ground():
    ground = standing(place=(3.0, -2.0))
    mission = MissionSpec(stages=(Hold(position_m=(0.0, 0.0, 1.0)),))
    plan = compile_plan(mission, Cone(), ground)
    spool_up = rows(plan, "spool_up")
    assert (plan.drone_position_enu_m[spool_up] == ground.drone_position_enu_m).all()
    assert len(spool_up) / plan.rate_hz == pytest.approx(mission.spool_up_s)
    last = plan.drone_position_enu_m[-1]
    assert last[:, 2] == pytest.approx(ground.drone_position_enu_m[:, 2])
    # As far from the load's last set-point as they stood from the load, and apart.
    away = np.linalg.norm(last[:, :2] - plan.load_pose[-1, :2], axis=1)
    assert away == pytest.approx([2.2, 2.2, 2.2])
    assert rows(plan, "land").tolist() == [len(plan.stage) - 1]


def test_take_off_is_one_step_up_then_drones_form_up_with_slack_cables():
    ground = standing()
    mission = MissionSpec(stages=(Hold(),))
    plan = compile_plan(mission, Cone(), ground)
    up = ground.drone_position_enu_m + [0.0, 0.0, mission.rise_m]
    assert np.allclose(plan.drone_position_enu_m[rows(plan, "take_off")], up)
    before = np.concatenate([rows(plan, name) for name in ("spool_up", "take_off", "form_up")])
    slack = [0.0, 0.0, mission.slack_height_m, 0.0]
    assert np.allclose(plan.load_pose[before], slack)
    end = rows(plan, "form_up")[-1]
    assert np.allclose(plan.drone_position_enu_m[end], in_formation(plan, [end])[0][0])
    # From the end of the form-up to the spreading out, the drones are in formation.
    flying = np.arange(end, rows(plan, "spread")[0])
    position, yaw = in_formation(plan, flying)
    assert np.allclose(plan.drone_position_enu_m[flying], position)
    assert np.allclose(plan.drone_yaw_rad[flying], yaw)


def test_tension_ends_where_the_load_stands_and_lift_at_the_first_height():
    plan = compiled(Hold(position_m=(0.0, 0.0, 1.3)))
    assert plan.load_pose[rows(plan, "tension")[-1], 2] == pytest.approx(LOAD_HEIGHT)
    assert plan.load_pose[rows(plan, "lift")[-1], 2] == pytest.approx(1.3)
    assert plan.load_pose[rows(plan, "lower")[-1], 2] == pytest.approx(LOAD_HEIGHT)
    assert plan.load_pose[rows(plan, "slacken")[-1], 2] == pytest.approx(-0.5)


def test_an_engagement_starts_on_the_ground_with_slack_cables():
    plan = compiled(Engage())
    names = plan.stage_names
    assert names[names.index("engage") - 1] == "form_up"
    assert not {"tension", "lift"} & set(names[: names.index("engage")])
    engage = rows(plan, "engage")
    assert np.allclose(plan.load_pose[engage[0]], [0.0, 0.0, -0.5, 0.0])
    assert np.allclose(plan.load_pose[engage[30:45]], [0.0, 0.0, -0.5, 1.7])
    assert np.allclose(plan.load_pose[engage[45]], [0.0, 0.0, 0.5, 1.7])
    # The drones turn with the set-point.
    position, _ = in_formation(plan, engage)
    assert np.allclose(plan.drone_position_enu_m[engage], position)


def test_before_a_later_engagement_the_load_is_set_down_at_its_place():
    plan = compiled(Circle(), Engage(center_m=(1.0, 2.0)))
    names = plan.stage_names
    before = names.index("engage")
    assert names[before - 2 : before] == ("transit", "lower")
    lower = rows(plan, "lower")
    assert np.allclose(plan.load_pose[lower, :2], [1.0, 2.0])
    assert plan.load_pose[lower[-1], 2] == pytest.approx(-0.5)
    transit = plan.load_pose[rows(plan, "transit", 1)]
    assert np.allclose(transit[:, 2], 1.0)  # at the height of the stage before


def test_after_an_engagement_the_load_is_lifted_on_the_spot():
    plan = compiled(Engage(center_m=(0.0, 0.0)), Shm(center_m=(1.0, 0.0)))
    names = plan.stage_names
    after = names.index("engage") + 1
    assert names[after : after + 4] == ("tension", "lift", "transit", "shm")
    for name in ("tension", "lift"):
        assert np.allclose(plan.load_pose[rows(plan, name), :2], 0.0)


# ---------- Sampling


@pytest.mark.parametrize("rate", [1.0, 5.0, 7.0, 30.0, 100.0 / 3.0, 250.0])
def test_set_points_are_those_of_the_stage_at_the_set_point_rate(rate):
    stages = (Circle(), Line(start_m=(0.0, -1.0, 1.0), end_m=(0.0, 1.0, 1.2)))
    plan = compiled(*stages, setpoint_rate_hz=rate)
    assert plan.rate_hz == rate
    assert plan.duration_s == pytest.approx(len(plan.stage) / rate)
    for stage in stages:
        part = rows(plan, stage.kind)
        # Sampled in [0, duration): the end belongs to what follows.
        assert len(part) == pytest.approx(stage.duration_s * rate, abs=1.0)
        assert (len(part) - 1) / rate < stage.duration_s <= len(part) / rate + 1e-9
        wanted = stage.pose(np.arange(len(part)) / rate)
        turns = np.round((plan.load_pose[part[0], 3] - wanted[0, 3]) / TURN)
        wanted[:, 3] += TURN * turns
        assert np.allclose(plan.load_pose[part], wanted)


@settings(max_examples=40)
@given(duration=st.floats(0.01, 20.0), rate=st.sampled_from([0.5, 1.0, 3.0, 5.0, 7.0, 50.0, 250.0]))
def test_a_stage_lasts_its_duration_to_the_next_set_point(duration, rate):
    mission = MissionSpec(stages=(Hold(duration_s=duration),), setpoint_rate_hz=rate)
    plan = compile_air_plan(mission, Cone(), np.array([0.0, 0.0, 1.0, 0.0]), 2)
    count = len(rows(plan, "hold"))
    assert count >= 1
    assert duration <= count / rate + 1e-9
    assert (count - 1) / rate < duration


def test_shapes_and_finite_numbers():
    for n in (1, 2, 3, 6):
        plan = compiled(*paper_stages(), n=n)
        k = len(plan.stage)
        assert plan.load_pose.shape == (k, 4)
        assert plan.drone_position_enu_m.shape == (k, n, 3)
        assert plan.drone_yaw_rad.shape == (k, n)
        for array in (plan.load_pose, plan.drone_position_enu_m, plan.drone_yaw_rad):
            assert np.isfinite(array).all()
        assert (np.abs(plan.drone_yaw_rad) <= np.pi).all()


# ---------- Continuity


def allowed_speed(mission, name):
    """Greatest speed of the load's set-point in a phase or stage [m/s]."""
    own = {"circle": 0.3, "shm": 2.0, "line": 0.5, "waypoints": 0.5, "hold": 0.0}
    if name in own:
        return own[name]
    if name == "transit":
        return mission.transit_speed_m_s
    return mission.vertical_speed_m_s if name in ("tension", "lift", "lower", "slacken") else 0.0


@pytest.mark.parametrize("rate", [5.0, 7.0, 250.0])
@pytest.mark.parametrize("settle_s", [2.0, 0.0])
@pytest.mark.parametrize(
    "stages",
    [
        paper_stages(),
        (Hold(position_m=(1.0, 1.0, 2.0), yaw_rad=2.0), Line(start_m=(0, 0, 1), end_m=(1, 0, 1))),
        (
            Waypoints(
                points=[
                    Waypoint(position_m=(1.0, 1.0, 1.0)),
                    Waypoint(position_m=(-1.0, 1.0, 1.5), yaw_rad=0.8),
                ]
            ),
            Circle(center_m=(2.0, 2.0)),
        ),
    ],
    ids=["paper", "hold_line", "waypoints_circle"],
)
def test_no_jumps_of_the_set_points(stages, settle_s, rate):
    """Nothing but take-off and the engagement's step is faster than its limit."""
    mission = MissionSpec(stages=stages, setpoint_rate_hz=rate, settle_s=settle_s)
    plan = compile_plan(mission, Cone(), standing())
    load, drones, turn = rise_and_turn(plan)
    names = [plan.stage_names[k] for k in plan.stage]
    yaw_rate = {"circle": 0.2, "waypoints": 0.2}
    for k, (before, name) in enumerate(pairwise(names)):
        if name == "engage":
            continue
        speed = max(allowed_speed(mission, before), allowed_speed(mission, name))
        spin = max(mission.transit_yaw_rate_rad_s, yaw_rate.get(name, 0.0))
        assert load[k] <= speed / rate + 1e-9, (k, before, name)
        assert turn[k] <= spin / rate + 1e-9, (k, before, name)
        if name in ("take_off", "land"):
            continue
        rim = load[k] + turn[k] * Cone().radius_m
        if name in ("form_up", "spread"):
            rim = 1.5 * 3.0 / mission.form_up_s / rate  # smooth, 1.5 times its mean speed
        assert drones[k].max() <= rim + 1e-9, (k, before, name)


def test_an_engagement_jumps_only_at_its_steps():
    plan = compiled(Circle(), Engage(repetitions=3), Shm())
    load, _, turn = rise_and_turn(plan)
    engage = rows(plan, "engage")
    steps = np.flatnonzero(load[engage[0] - 1 : engage[-1]] > 0.1)
    assert len(steps) == 3
    jumps = load[engage[0] - 1 : engage[-1]][steps]
    assert jumps == pytest.approx([1.0, 1.0, 1.0], abs=0.06)  # the last rest is cut by sampling
    # The turn is made before, with slack cables, and not faster than on the way back.
    assert turn[engage[0] - 1 : engage[-1]][steps] == pytest.approx([0.0] * 3, abs=1e-9)
    assert turn[engage[0] - 1 : engage[-1]].max() == pytest.approx(1.7 / 6.0 * 0.2, rel=1e-6)


def test_form_up_and_spread_stay_above_the_ground_and_apart():
    plan = compiled(*paper_stages())
    position = plan.drone_position_enu_m
    for name in ("form_up", "spread"):
        part = position[rows(plan, name)]
        assert part[:, :, 2].min() > 0.13 + 0.5
        for i in range(3):
            gap = np.linalg.norm(part[:, i] - part[:, (i + 1) % 3], axis=1)
            assert gap.min() > 1.5


def test_drones_land_as_they_stood_round_the_load():
    """Also where they stood in no formation: there they were clear of cables and of each other."""
    places = np.array([[2.0, 0.3, 0.13], [-0.8, 1.9, 0.13], [-0.6, -2.1, 0.13]])
    spot = GroundSpot(np.array([0.0, 0.0, LOAD_HEIGHT]), 0.2, places)
    end = Hold(position_m=(3.0, 1.0, 1.0), yaw_rad=1.4)
    plan = compile_plan(MissionSpec(stages=(end,)), Cone(), spot)
    c, s = np.cos(1.2), np.sin(1.2)
    expected = places @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) + [3.0, 1.0, 0.0]
    np.testing.assert_allclose(plan.drone_position_enu_m[-1], expected, atol=1e-12)


# ---------- Whole turns


@pytest.mark.parametrize("repetitions", [1, 2, 3])
def test_whole_turns_of_the_load_are_not_unwound(repetitions):
    plan = compiled(Circle(repetitions=repetitions), Hold(position_m=(1.5, 0.0, 1.0)))
    yaw = plan.load_pose[:, 3]
    assert (np.diff(yaw) > -1e-9).all()
    hold = rows(plan, "hold")
    assert np.allclose(yaw[hold], repetitions * TURN)
    assert yaw[-1] == pytest.approx(repetitions * TURN)


@settings(max_examples=40)
@given(yaws=st.lists(st.floats(-30.0, 30.0), min_size=2, max_size=5))
def test_between_stages_the_load_turns_the_shorter_way(yaws):
    stages = tuple(Hold(duration_s=1.0, yaw_rad=yaw) for yaw in yaws)
    start = stages[0].pose(np.zeros(1))[0]
    plan = compile_air_plan(MissionSpec(stages=stages), Cone(), start, 1)
    flown = plan.load_pose[:, 3]
    # A turn by exactly half a circle may go either way.
    ends = [rows(plan, "hold", k)[-1] for k in range(plan.stage_names.count("hold"))]
    assert (np.abs(np.diff(flown[ends])) <= np.pi + 1e-6).all()
    turned = np.mod(flown[-1] - yaws[-1] + np.pi, TURN) - np.pi
    assert abs(turned) < 1e-6


def test_after_circles_the_engagement_is_set_down_without_unwinding():
    plan = compiled(Circle(repetitions=2), Engage())
    start, end = rows(plan, "circle")[-1], rows(plan, "engage")[0]
    yaw = plan.load_pose[start : end + 1, 3]
    assert np.ptp(yaw) < 0.1
    assert yaw[-1] == pytest.approx(2 * TURN)


# ---------- Bad input


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"stages": ()}, "stages"),
        ({"stages": (Hold(),), "setpoint_rate_hz": 0.0}, "setpoint_rate_hz"),
        ({"stages": (Hold(),), "setpoint_rate_hz": 251.0}, "setpoint_rate_hz"),
        ({"stages": (Hold(),), "spool_up_s": 0.0}, "spool_up_s"),
        ({"stages": (Hold(),), "settle_s": -1.0}, "settle_s"),
        ({"stages": (Hold(),), "transit_speed_m_s": 0.0}, "transit_speed_m_s"),
        ({"stages": (Hold(),), "slack_height_m": float("nan")}, "slack_height_m"),
        ({"stages": ({"kind": "spiral"},)}, "spiral"),
    ],
)
def test_bad_values_are_refused_in_one_line(values, word):
    with pytest.raises(ConfigError, match=word) as error:
        MissionSpec(**values)
    assert "\n" not in str(error.value)


def test_the_way_into_the_formation_is_a_smoothstep():
    """3 s^2 - 2 s^3 of the way after a share s of the time; the first row has moved already."""
    plan = compiled(Hold(duration_s=2.0), form_up_s=4.0, settle_s=0.0)
    start = plan.drone_position_enu_m[rows(plan, "take_off")[-1]]
    k = rows(plan, "form_up")[:20]
    share = (np.arange(20) + 1.0) / 20.0
    end = in_formation(plan, k)[0][-1]
    wanted = start + (3.0 * share**2 - 2.0 * share**3)[:, None, None] * (end - start)
    assert np.abs(plan.drone_position_enu_m[k] - wanted).max() < 1e-12


def test_the_estimate_of_the_duration_counts_the_time_of_a_turn():
    """1.2 rad at 0.3 rad/s are 4 s, on the spot; the shorter way round counts."""
    for yaw in (1.2, -1.2, TURN - 1.2):
        first, second = Hold(duration_s=1.0), Hold(duration_s=2.0, yaw_rad=yaw)
        mission = MissionSpec(stages=(first, second), settle_s=0.5, transit_yaw_rate_rad_s=0.3)
        assert estimated_duration_s(mission, lands=False) == pytest.approx(
            0.5 + 1.0 + (4.0 + 0.5) + 2.0
        )
