"""`musls view`: camera, geometry, poses at a time, alignment of two recordings."""

from dataclasses import replace

import numpy as np
import pytest
from made_up_recordings import flight
from matplotlib.colors import to_rgb

from musls_analysis.figures import space
from musls_analysis.figures.style import SLACK_CABLE, UNKNOWN_TENSION
from musls_analysis.recordings.recording import CableTrack, PoseTrack, RecordedStage, Recording
from musls_analysis.scene import (
    BOX_FACES,
    BoxOutline,
    DroneShape,
    Subject,
    aligning_shift_s,
    framed_points_enu_m,
    sample,
    shown_window,
    stage_at,
    world,
)
from musls_analysis.view.chart import TensionScale, round_up, strip_series, tension_scale
from musls_analysis.view.opened import open_subject
from musls_analysis.view.picture import WIDE, Picture, Rectangle, camera_on, pixels, place_names
from musls_description.config.errors import ConfigError
from musls_description.numerics.rotations import from_roll_pitch_yaw, rotate
from musls_description.system.obstacles import (
    BoxObstacle,
    CylinderObstacle,
    PlaneObstacle,
    faces_enu_m,
    shown_faces,
    triangles,
    widened,
)
from musls_description.system.system_files import load_system

TRIO = load_system("x500_trio")


def subject(recording, **fields):
    return Subject(recording, TRIO, "made_up", **fields)


def standing(body_poses, cables=None, end_s=2.0):
    """A recording of bodies that do not move, from x, y, z, roll, pitch, yaw by body."""
    t = np.array([0.0, 0.5 * end_s, end_s]) if end_s <= 1.0 else np.arange(0.0, end_s + 0.1, 0.25)
    bodies = {
        body: PoseTrack(
            t, np.tile(pose[:3], (len(t), 1)),
            np.tile(from_roll_pitch_yaw(np.array(pose[3:])), (len(t), 1)),
        )
        for body, pose in body_poses.items()
    }  # fmt: skip
    return Recording(bodies, cables=cables or {}, source="made-up")


def trio(load=(0, 0, 1, 0, 0, 0)):
    drones = {f"drone_{i + 1}": (np.cos(a), np.sin(a), 3.2, 0, 0, a + np.pi)
              for i, a in enumerate(np.radians([0, 120, 240]))}  # fmt: skip
    return {"load": load, **drones}


def test_camera_fills_its_frame_and_keeps_all_points_inside():
    points = np.random.default_rng(1).uniform([-3, -2, 0], [2, 4, 3], (200, 3))
    frame = (60.0, 80.0, 900.0, 470.0)
    at, depth = camera_on(points, frame, 640.0, -62.0, 17.0).project(points)
    low, high = at.min(axis=0), at.max(axis=0)
    assert (depth > 0).all()
    assert (low >= np.array(frame[:2]) - 1e-6).all() and (high <= np.array(frame[2:]) + 1e-6).all()
    touched = [low[0] - frame[0], frame[2] - high[0]], [low[1] - frame[1], frame[3] - high[1]]
    assert min(max(pair) for pair in touched) < 1e-6  # one direction is filled on both sides


def test_camera_looks_along_its_azimuth_with_up_up():
    points = BoxOutline(TRIO.load.collision.corners_m).corners_m * 10.0
    camera = camera_on(points, (0.0, 0.0, 200.0, 200.0), 200.0, -90.0, 0.0)  # from the south
    at, depth = camera.project(np.array([[0.0, 0, 0], [0.5, 0, 0], [0, 0, 0.5], [0, 0.5, 0]]))
    east, up, north = at[1] - at[0], at[2] - at[0], at[3] - at[0]
    assert east[0] > 1 and abs(east[1]) < 1e-9
    assert up[1] < -1 and abs(up[0]) < 1e-9
    assert np.linalg.norm(north) < 1e-9 and depth[3] > depth[0]
    assert east[0] == pytest.approx(0.5 * camera.focal_px / depth[0])


def test_points_behind_the_camera_are_not_seen():
    camera = camera_on(np.array([[-1.0, -1, -1], [1, 1, 1]]), (0, 0, 200, 200), 200.0, 0.0, 0.0)
    assert np.isnan(camera.project(camera.position_enu_m + [1.0, 0.0, 0.0])[0]).all()


@pytest.mark.parametrize(
    ("angles", "word"),
    [((400.0, 0.0, 1.0), "azimuth"), ((0.0, 95.0, 1.0), "elevation"), ((0.0, 9.0, 0.0), "zoom"),
     ((np.nan, 9.0, 1.0), "azimuth")],
)  # fmt: skip
def test_camera_options_out_of_range(angles, word):
    with pytest.raises(ConfigError, match=word):
        camera_on(np.zeros((1, 3)), (0, 0, 200, 200), 200.0, *angles)


def test_box_faces_belong_to_their_normals():
    corners = BoxOutline(TRIO.load.collision.corners_m).corners_m
    size = np.array(TRIO.load.collision.size_m)
    for k, face in enumerate(BOX_FACES):
        normal = np.eye(3)[2 - k // 2] * (1.0 if k % 2 else -1.0)
        points = corners[list(face)]
        middle = points.mean(axis=0) - corners.mean(axis=0)
        np.testing.assert_allclose(middle, 0.5 * size * normal, atol=1e-12)
        assert np.cross(points[1] - points[0], points[2] - points[1]) @ normal > 0.0


def test_rotor_discs_lie_round_the_hubs_and_do_not_touch():
    shape = DroneShape.of(TRIO.drones[0])
    hubs = np.array([rotor.position_m for rotor in TRIO.drones[0].rotors])
    np.testing.assert_allclose(shape.discs_m.mean(axis=1), hubs, atol=1e-12)
    assert shape.rotor_radius_m == pytest.approx(0.127, abs=0.001)  # 10 inch propellers
    assert shape.front.tolist() == [True, False, True, False]
    assert shape.gear_m[..., 2].min() == pytest.approx(TRIO.drones[0].collision.bottom_m)


def test_the_recorded_point_is_where_it_was_recorded():
    offset = (0.1, -0.2, -0.07)
    its = subject(standing(trio((1, 2, 3, 0.3, -0.2, 0.9))), offsets_m={"load": offset})
    load = sample(its, np.array([1.0])).bodies["load"]
    point = load.position_enu_m[0] + rotate(load.orientation_wxyz[0], np.array(offset))
    np.testing.assert_allclose(point, [1, 2, 3], atol=1e-12)


def test_straight_cables_join_the_attachments():
    its = subject(standing(trio()))
    sampled = sample(its, np.array([1.0]))
    for i, (name, cable) in enumerate(sampled.cables.items()):
        assert name == f"cable_{i + 1}"
        drone = sampled.bodies[f"drone_{i + 1}"]
        low = np.array([0, 0, 1]) + TRIO.load.cable_attachments_m[i]
        high = world(np.array(TRIO.drones[i].cable_attachment_m), drone.position_enu_m[0],
                     drone.orientation_wxyz[0])  # fmt: skip
        np.testing.assert_allclose(cable.points_enu_m[0], [low, high], atol=1e-12)
        assert cable.slack[0] == (np.linalg.norm(high - low) < 0.97 * 2.42)
        assert np.isnan(cable.tension_n[0])


def test_recorded_cables_are_interpolated_and_gaps_are_straight():
    shape = np.linspace([0, 0, 1], [1, 0, 3], 4)
    times = np.array([0.0, 0.2, 1.4])
    cable = CableTrack(times, np.array([[1.0, 2], [3, 4], [5, 6]]), times,
                       [shape, shape + [0, 1, 0], shape])  # fmt: skip
    its = subject(standing(trio(), {"cable_1": cable}), shift_s=10.0)
    sampled = sample(its, np.array([10.05, 10.2, 10.8])).cables["cable_1"]
    np.testing.assert_allclose(sampled.points_enu_m[0], shape + [0, 0.25, 0], atol=1e-12)
    np.testing.assert_allclose(sampled.points_enu_m[1], shape + [0, 1, 0], atol=1e-12)
    assert len(sampled.points_enu_m[2]) == 2  # more than half a second without a shape
    np.testing.assert_allclose(sampled.tension_n[:2], [1.5, 3.0])


def test_gaps_and_times_outside_are_not_shown():
    still = standing(trio(), end_s=1.0).bodies
    bodies = {b: replace(t, time_s=np.array([0.0, 0.2, 5.0])) for b, t in still.items()}
    places = sample(subject(Recording(bodies)), np.array([-1.0, 0.1, 3.0, 6.0]))
    finite = np.isfinite(places.bodies["load"].position_enu_m).all(axis=1)
    assert finite.tolist() == [False, True, False, False]


@pytest.mark.parametrize("kind", ["circle", "shm", "engage"])
def test_a_known_shift_is_found(kind):
    """Two flights of one stage whose clocks differ, one of them without names of stages."""
    first, other = flight(kind, start_s=7.0), flight(kind, start_s=31.4)
    shift_s, doubts = aligning_shift_s(first, other, kind)
    assert shift_s == pytest.approx(7.0 - 31.4, abs=1e-3) and not doubts
    assert aligning_shift_s(first, other)[0] == pytest.approx(shift_s)
    nameless = replace(other, stages=())
    assert aligning_shift_s(first, nameless)[0] == pytest.approx(shift_s, abs=0.02)


def test_leaving_out_a_cycle_shifts_by_its_period():
    first, other = flight("circle"), flight("circle", start_s=20.0)
    plain, skipped = (aligning_shift_s(first, other, "circle", skip)[0] for skip in (0, 1))
    period_s = 10.0 * np.pi  # 1.5 m at 0.3 m/s
    assert plain - skipped == pytest.approx(period_s, rel=1e-3)


@pytest.mark.parametrize(
    ("first", "other", "words"),
    [
        ("circle", "shm", ["no stage in common", "--stage", "--shift"]),
        (None, None, ["name no stages", "--shift"]),
    ],
)
def test_nothing_to_align_by(first, other, words):
    recordings = [
        replace(flight(kind or "circle"), stages=flight(kind).stages if kind else ())
        for kind in (first, other)
    ]
    with pytest.raises(ConfigError) as error:
        aligning_shift_s(*recordings)
    assert all(word in str(error.value) for word in words), error.value


def test_window_is_the_stage_where_both_are():
    first = subject(flight("shm", start_s=7.0))
    stage = first.recording.stages[1]
    assert shown_window([first], "shm") == (stage.start_s, pytest.approx(stage.end_s))
    late = subject(first.recording, shift_s=3.0)
    start_s, _ = shown_window([first, late], None)
    assert start_s == pytest.approx(late.start_s)
    with pytest.raises(ConfigError, match="does not overlap"):
        shown_window([first, subject(first.recording, shift_s=1e4)], None)
    with pytest.raises(ConfigError, match="no stage 'square'"):
        shown_window([first], "square")


def test_stage_at_a_time():
    recording = replace(
        flight("shm"), stages=(RecordedStage("a", 0.0, 1.0), RecordedStage("b", 1.0, 2.0))
    )
    names = [getattr(stage_at(recording, t), "name", None) for t in (-0.1, 0.0, 1.0, 2.0, 2.1)]
    assert names == [None, "a", "b", "b", None]


def test_colours_of_tension():
    scale = TensionScale(8.0)
    colours = scale.colours(np.array([0.1, 0.6, 8.0, 80.0, np.nan]))
    assert np.allclose(colours[0], to_rgb(SLACK_CABLE))
    assert np.allclose(colours[4], to_rgb(UNKNOWN_TENSION))
    assert np.allclose(colours[2], colours[3])
    assert colours[1, 2] > colours[1, 0] and colours[2, 0] > colours[2, 2]  # blue to orange
    assert [round_up(v) for v in (0.9, 1.0, 6.3, 11.0, 101.0)] == [1.0, 1.0, 8.0, 12.0, 120.0]


def test_scale_counts_the_shown_time_only():
    times = np.arange(0.0, 2.0, 0.01)
    tension = np.where(times < 1.0, 5.0, 30.0)[:, None] * [1.0, 1.0]
    cable = CableTrack(times, tension, np.empty(0))
    its = subject(standing(trio(), {"cable_1": cable}), shift_s=100.0)
    assert tension_scale(its, (100.0, 100.9)).limit_n == 5.0
    assert tension_scale(its, (100.0, 102.0)).limit_n == 30.0


def test_system_and_offsets_must_fit(made_up_flight, flight_bag):
    assert open_subject(flight_bag).name == flight_bag.name
    with pytest.raises(ConfigError, match=r"3 drones recorded, but system x500_duo has 2"):
        open_subject(flight_bag, "x500_duo")
    with pytest.raises(ConfigError, match="no body 'drone_9'"):
        open_subject(flight_bag, offsets_m={"drone_9": (0, 0, 0)})
    shared = open_subject(flight_bag, offsets_m={"drones": (0, 0, -0.1)}).offsets_m
    assert sorted(shared) == ["drone_1", "drone_2", "drone_3"]


def test_a_pulley_is_a_disc_of_its_radius_in_the_plane_of_its_cables():
    poses = {"load": (0.2, 0, 1.45, 0, 0, 0.5), "anchor_1": (-1, 0, 3, 0, 0, 0),
             "anchor_2": (1, 0, 3, 0, 0, 0)}  # fmt: skip
    seen = Subject(standing(poses), load_system("equaliser"), "made_up")
    (rims,) = seen.pulley_rims.values()
    load = seen.recording.bodies["load"]
    (rim,) = world(rims, load.position_enu_m[0], load.orientation_wxyz[0])
    assert np.linalg.norm(rim - [0.2, 0.0, 1.5], axis=1) == pytest.approx(0.03)
    assert rim[:, 1] == pytest.approx(0.0, abs=1e-12)
    camera = camera_on(rim * 5.0, (0.0, 0.0, 200.0, 200.0), 200.0, -90.0, 0.0)
    size = np.ptp(camera.project(rim)[0], axis=0)  # seen from the south: round
    assert size[0] == pytest.approx(size[1], rel=0.02)


def test_names_of_drones_cover_neither_each_other_nor_a_drone():
    drones = {
        f"drone_{i}": Rectangle(100.0 + 15.0 * i, 200.0, 150.0 + 15.0 * i, 225.0) for i in range(4)
    }
    frame = Rectangle(0.0, 60.0, 600.0, 480.0)
    sides: dict[str, int] = {}
    placed = place_names(dict.fromkeys(drones, 50.0), drones, frame, sides)
    for name, label in placed.items():
        assert frame.left <= label.left and label.right <= frame.right
        others = [*drones.values(), *(r for n, r in placed.items() if n != name)]
        assert not any(map(label.overlaps, others)), name
    moved = {name: Rectangle(*(np.array(r) + 2.0)) for name, r in drones.items()}
    for name, label in place_names(dict.fromkeys(drones, 50.0), moved, frame, sides).items():
        assert np.array(label) == pytest.approx(np.array(placed[name]) + 2.0)  # the same side


def test_system_fills_the_picture_of_a_moment():
    its = Subject(flight("circle"), load_system("x500_trio"), "circle")
    picture = Picture([its], (7.0, 30.0), framed_s=(17.3, 17.3))
    shown = sample(its, np.array([17.3]))
    points = framed_points_enu_m(its, shown)
    at, _ = picture.camera.project(points)
    left, top, right, bottom = WIDE.scene_px
    assert at[:, 1].min() == pytest.approx(top) and at[:, 1].max() == pytest.approx(bottom)
    assert left <= at[:, 0].min() and at[:, 0].max() <= right


def test_the_strip_of_a_plan_shows_heights():
    """Where all set-points are met, their distances would say nothing."""
    flown = flight("circle")
    series, title = strip_series([subject(flown)])
    assert title == "distance to the reference [m]"
    series, title = strip_series([subject(replace(flown, setpoints=flown.bodies))])
    assert title == "height [m]" and [s.name for s in series] == list(flown.bodies)
    assert series[0].value == pytest.approx(flown.bodies["load"].position_enu_m[:, 2])


CRATE = BoxObstacle(name="crate", size_m=(0.8, 0.8, 0.8), position_enu_m=(0.9, -1.0, 0.4))
WALL = PlaneObstacle(name="wall", point_enu_m=(0.0, 0.9, 0.0), normal_enu=(0.0, -1.0, 0.0))


@pytest.mark.parametrize("obstacle", [CRATE, WALL])
def test_obstacles_are_in_the_picture_and_in_both_figures_in_space(obstacle):
    bare = replace(standing(trio()), stages=(RecordedStage("hold", 0.0, 2.0),))
    beside = replace(bare, obstacles=(obstacle,))
    for drawn in (
        lambda r: Picture([subject(r)], (0.0, 2.0)).draw(1.0),
        lambda r: drawn_figure(space.top_view_figure(r)),
        lambda r: drawn_figure(space.paths_3d_figure(r)),
    ):
        without, with_it = drawn(bare).astype(int), drawn(beside).astype(int)
        assert (np.abs(without - with_it).max(axis=-1) > 20).mean() > 1e-3


@pytest.mark.parametrize(("gap_m", "shown_to_m"), [(0.8, 3.0), (1.1, 2.0)])
def test_figures_reach_to_what_is_within_a_metre_of_the_flight(gap_m, shown_to_m):
    beside = BoxObstacle(name="crate", size_m=(1, 1, 1), position_enu_m=(2.5 + gap_m, 1.0, 0.5))
    low, high = widened([beside], np.zeros(3), np.full(3, 2.0))
    assert low == pytest.approx(np.zeros(3))
    assert high == pytest.approx([shown_to_m, 2.0, 2.0])


def drawn_figure(figure):
    figure.canvas.draw()
    return pixels(figure.canvas)


def test_faces_of_solids_look_outwards_and_are_cut_at_the_box_that_is_shown():
    pole = CylinderObstacle(
        name="pole", radius_m=0.2, height_m=2.0, position_enu_m=(0.0, 0.0, 1.0),
        orientation_wxyz=(0.8, 0.6, 0.0, 0.0),
    )  # fmt: skip
    for obstacle in (CRATE, pole):
        volume = 0.0
        for face in faces_enu_m(obstacle.solids()[0]):
            a, b = face[1:-1] - face[0], face[2:] - face[0]
            volume += (np.cross(a, b) @ face[0]).sum() / 6.0  # divergence theorem
        assert volume == pytest.approx(0.512 if obstacle is CRATE else np.pi * 0.08, rel=0.02)
    low, high = np.array([-1.0, 0.0, 0.0]), np.array([1.0, 3.0, 2.0])
    ((name, (face,)),) = shown_faces([CRATE, WALL], low, high)
    assert name == "wall" and len(face) == 4
    assert face.min(axis=0) == pytest.approx([-1.0, 0.9, 0.0])
    assert face.max(axis=0) == pytest.approx([1.0, 0.9, 2.0])
    corners, rows = triangles([face])
    a, b, c = corners[rows].transpose(1, 0, 2)
    assert np.linalg.norm(np.cross(b - a, c - a), axis=1).sum() / 2.0 == pytest.approx(4.0)
