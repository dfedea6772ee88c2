"""The continuous reference of a plan: through its rows, with consistent derivatives."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trajectory_examples import EXAMPLES

from musls_control.mission.plan import GroundSpot, compile_air_plan, compile_plan
from musls_control.mission.player import FlightPlayer, GoalSettings
from musls_control.mission.spec import MissionSpec
from musls_control.reference import LoadReference, Piece, Reference, Rest, StraightMove
from musls_control.trajectories import Circle, Engage, Hold, Shm
from musls_description.hanging.cone import Cone
from musls_description.numerics.rotations import from_roll_pitch_yaw
from musls_description.system.system_files import load_system

CONE = Cone()
SPOT = GroundSpot(
    np.array([0.4, -0.2, 0.05]),
    0.3,
    Cone(radius_m=2.2).offsets_m(3) + [0.4, -0.2, 0.13 - CONE.height_m],
)


def row_times(plan):
    return np.arange(len(plan.stage)) / plan.rate_hz


def assert_through_rows(plan):
    poses = plan.reference.samples(row_times(plan))[:, 0]
    off = poses - plan.load_pose
    # Where an aborted plan joins the end of the whole one, its yaw jumps by whole turns.
    off[:, 3] = np.sin(off[:, 3] / 2.0)
    assert np.abs(off).max() < 1e-9


def whole_plan(*stages, **settings):
    return compile_plan(MissionSpec(stages=stages, **settings), CONE, SPOT)


# ---------- Whole missions


@pytest.mark.parametrize("rate", [5.0, 7.0, 50.0])
@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_reference_goes_through_all_rows(kind, rate):
    assert_through_rows(whole_plan(EXAMPLES[kind], setpoint_rate_hz=rate))


def test_the_reference_goes_through_all_rows_of_a_long_flight():
    plan = whole_plan(Circle(repetitions=2), Engage(repetitions=2), Shm(), *EXAMPLES.values())
    assert_through_rows(plan)
    in_the_air = compile_air_plan(
        MissionSpec(stages=(Shm(), Circle())), CONE, np.array([0.0, 0.0, 1.0, 0.5]), 3
    )
    assert_through_rows(in_the_air)


@settings(max_examples=20)
@given(
    rate=st.floats(1.0, 250.0),
    turn=st.floats(0.0, 5.0),
    rest=st.floats(0.01, 5.0),
    spool=st.floats(0.1, 4.0),
)
def test_steps_are_at_the_same_row_whatever_the_times(rate, turn, rest, spool):
    engage = Engage(turn_s=turn, rest_s=rest)
    assert_through_rows(whole_plan(engage, setpoint_rate_hz=rate, spool_up_s=spool))


def test_the_reference_is_continuous_but_for_steps():
    plan = whole_plan(Circle(), Shm())
    times = np.arange(0.0, plan.duration_s, 1e-3)
    steps = np.linalg.norm(np.diff(plan.reference.samples(times)[:, 0, :3], axis=0), axis=1)
    # A stage whose length is no multiple of the rows is held until the next row begins.
    assert steps.max() <= 2.0 * 1e-3 + 1e-9


def test_velocity_is_the_rate_of_the_position():
    """The integral of each derivative is the change of the one before, from corner to corner."""
    plan = whole_plan(Circle(), Shm())
    step = 1e-4
    for name in ("tension", "lift", "transit", "circle", "shm", "lower"):
        number = plan.stage_names.index(name)
        rows = np.flatnonzero(plan.stage == number)
        middle = (rows[0] + min(rows[-1], rows[0] + 6)) / 2.0 / plan.rate_hz
        times = middle + step * np.arange(-500, 501)
        samples = plan.reference.samples(times)
        for order in range(4):
            change = samples[-1, order] - samples[0, order]
            rate = samples[:, order + 1]
            integral = step * (rate[1:-1].sum(axis=0) + 0.5 * (rate[0] + rate[-1]))
            assert np.allclose(integral, change, rtol=0, atol=1e-7), (name, order)


def test_whole_turns_of_the_yaw_are_kept():
    plan = whole_plan(Circle(repetitions=3), Hold())
    yaw = plan.reference.samples(row_times(plan))[:, 0, 3]
    assert yaw.max() > 6.0 * np.pi - 0.5
    assert np.allclose(yaw, plan.load_pose[:, 3], rtol=0, atol=1e-9)


def test_at_and_stepped_are_the_samples():
    reference = whole_plan(Circle(), Engage()).reference
    times = 0.004 * np.arange(0, 20000, 7)
    samples = reference.samples(times)
    stepped = reference.stepped(0.004)
    for k in (0, 1, 511, 512, 513, 2700, 3, 19999 // 7):
        assert np.array_equal(
            stepped.at(7 * k).derivatives, reference.samples(0.028 * np.ones(1) * k)[0]
        )
        assert np.allclose(reference.at(times[k]).derivatives, samples[k], rtol=0, atol=1e-12)
    one = reference.at(60.0)
    d = one.derivatives
    assert np.array_equal(one.position_enu_m, d[0, :3]) and one.yaw_rad == d[0, 3]
    assert np.array_equal(one.velocity_enu_m_s, d[1, :3]) and one.yaw_rate_rad_s == d[1, 3]
    assert np.array_equal(one.acceleration_enu_m_s2, d[2, :3])
    assert one.yaw_acceleration_rad_s2 == d[2, 3]
    assert np.array_equal(one.jerk_enu_m_s3, d[3, :3])
    assert np.array_equal(one.snap_enu_m_s4, d[4, :3])


def test_pieces_must_be_in_order():
    rest = Rest(np.zeros(4))
    with pytest.raises(ValueError, match="order"):
        Reference([Piece(1.0, 1.0, rest), Piece(0.0, 0.0, rest)])
    with pytest.raises(ValueError, match="pieces"):
        Reference([])


def test_a_move_stands_still_at_its_end():
    start, end = np.array([0.0, 0.0, 1.0, 0.0]), np.array([2.0, 0.0, 1.0, 1.0])
    reference = Reference([Piece(1.0, 1.0, StraightMove(start, end, 4.0))])
    before, moving, after = reference.samples(np.array([1.0, 4.9, 5.0]))
    assert np.allclose(before[:2], [start, (end - start) / 4.0])
    assert np.allclose(moving[1], (end - start) / 4.0)
    assert np.allclose(after, [end, *np.zeros((4, 4))])


# ---------- Goals, pauses, aborts


MISSION = MissionSpec(stages=(Circle(), Engage()))


def flying(*, to_s):
    player = FlightPlayer(compile_plan(MISSION, CONE, SPOT), CONE, MISSION, GoalSettings())
    player.start(0.0)
    player.at(to_s)
    return player


def circle_s(player):
    plan = player.plan
    return float(np.argmax(plan.stage == plan.stage_names.index("circle"))) / plan.rate_hz + 3.1


@pytest.mark.parametrize("at_s", [1.0, 9.0, 13.5, 21.3, 30.0, 75.0, 90.1])
def test_aborted_flights_keep_rows_and_reference_together(at_s):
    player = flying(to_s=at_s)
    player.abort(at_s)
    assert_through_rows(player.plan)


def test_goals_and_the_way_home_keep_rows_and_reference_together():
    player = flying(to_s=0.0)
    now = circle_s(player)
    player.at(now)
    player.go_to(np.array([2.0, -1.0, 1.8, 2.0]), now)
    assert_through_rows(player.plan)
    moving = player.reference_at(now + 1.0)
    assert np.linalg.norm(moving.velocity_enu_m_s) == pytest.approx(0.4)
    now += 2.0
    player.go_to(np.array([-1.0, -1.0, 1.2, -2.0]), now)
    assert_through_rows(player.plan)
    now += 1.5
    player.abort(now)
    assert_through_rows(player.plan)


def test_a_landing_that_was_moved_turns_the_reference_with_it():
    """Aborted in the engagement's slack part: the end of the plan is moved to the load's place."""
    player = flying(to_s=0.0)
    plan = player.plan
    first = np.argmax(plan.stage == plan.stage_names.index("engage"))
    now = first / plan.rate_hz + 4.0
    player.at(now)
    player.abort(now)
    assert player.plan.load_pose[-1, 3] != pytest.approx(plan.load_pose[-1, 3])
    assert_through_rows(player.plan)


def test_a_paused_reference_rests_where_the_set_point_is_held():
    player = flying(to_s=0.0)
    now = circle_s(player)
    held = player.at(now).load_pose
    assert np.linalg.norm(player.reference_at(now).velocity_enu_m_s) == pytest.approx(0.3)
    player.pause(now)
    paused = player.reference_at(now + 5.0)
    assert np.array_equal(paused.derivatives[0], held) and (paused.derivatives[1:] == 0.0).all()
    player.resume(now + 5.0)
    assert player.reference_at(now + 5.0).velocity_enu_m_s == pytest.approx(
        player.plan.reference.at(now).velocity_enu_m_s
    )


# ---------- What cables can turn


@pytest.mark.parametrize(
    ("name", "held", "axes"),
    [
        ("x500_solo", False, 0),
        ("x500_solo", True, 1),  # its cable does not twist
        ("x500_duo", False, 2),
        ("x500_trio_swivel", False, 3),
    ],
)
def test_cables_turn_a_load_about_as_many_axes_as_they_can(name, held, axes):
    system = load_system(name)
    turnable = system.turnable(twist_held=held)
    assert np.trace(turnable) == pytest.approx(axes)
    assert turnable @ turnable == pytest.approx(turnable, abs=1e-12)
    # A second way: the moments of random forces without a resultant lie within.
    arms = np.array(system.load.cable_attachments_m)
    forces = np.random.default_rng(1).standard_normal((20, *arms.shape))
    moments = np.cross(arms, forces - forces.mean(axis=1, keepdims=True)).sum(axis=1)
    assert moments @ turnable == pytest.approx(moments, abs=1e-9)


def test_reference_within_reach_keeps_what_cables_can_turn_and_the_yaw_of_the_formation():
    derivatives, tilt = np.zeros((5, 4)), np.zeros((5, 2))
    derivatives[:3, 3] = 0.7, 0.5, 0.2
    tilt[0] = 0.1, -0.2
    whole = LoadReference(derivatives, tilt)
    now = from_roll_pitch_yaw(np.array([0.02, 0.03, 0.1]))
    none = replace(whole, within_reach=(np.zeros((3, 3)), now))
    assert none.orientation_wxyz == pytest.approx(now)
    assert not none.omega_body_rad_s.any() and not none.alpha_body_rad_s2.any()
    assert none.yaw_rad == 0.7 and none.yaw_rate_rad_s == 0.5
    every = replace(whole, within_reach=(np.eye(3), now))
    assert every.orientation_wxyz == pytest.approx(whole.orientation_wxyz)
    assert every.omega_body_rad_s == pytest.approx(whole.omega_body_rad_s)
    upright, about_z = np.array([1.0, 0.0, 0.0, 0.0]), np.diag([0.0, 0.0, 1.0])
    level = LoadReference(derivatives, within_reach=(about_z, upright))
    assert level.orientation_wxyz == pytest.approx(from_roll_pitch_yaw(np.array([0, 0, 0.7])))
