"""Rigs that begin and end on the ground: bridles, cables between drones, several to a drone."""

import numpy as np
import pytest

import musls
from musls_bringup.before.verdict import judge
from musls_description.hanging.ground import Ground
from musls_description.hanging.rig_places import (
    Incidence,
    equivalent_formation,
    rig_on_ground,
    rig_places_m,
)
from musls_description.numerics.rotations import matrix
from musls_sim.session.compose import flight_plan

G = 9.80665
X500_KG = 2.064307692307692


def cable(length_m, one, other, mass_kg=0.001):
    return {
        "mass_kg": mass_kg, "length_m": length_m, "radius_m": 0.0015, "links": 8,
        "ends": [one, other],
    }  # fmt: skip


def load(*point):
    return {"body": "load", "point_m": list(point)}


def drone(i, *point):
    return {"body": f"drone_{i}", "point_m": list(point or (0, 0, 0))}


def ring(i):
    return {"body": f"anchor_{i}"}


def box(mass_kg, *size_m):
    return {"mass_kg": mass_kg, "shape": {"kind": "box", "size_m": list(size_m)}}


def knots(*masses_kg):
    return [{"position_enu_m": [0, 0, 3], "mass_kg": kg} for kg in masses_kg]


PLATE = box(1.2, 1.0, 0.8, 0.06)

KINDS = {
    "bridle": {
        "drones": 1, "load": box(0.5, 1.0, 0.1, 0.1), "anchors": knots(0.02),
        "cables": [
            cable(1.0, ring(1), drone(1)),
            cable(0.75, load(0.45, 0, 0.05), ring(1)), cable(0.75, load(-0.45, 0, 0.05), ring(1)),
        ],
    },
    "unequal legs": {
        "drones": 1, "load": box(0.6, 1.0, 0.1, 0.1), "anchors": knots(0.02),
        "cables": [
            cable(1.0, ring(1), drone(1)),
            cable(0.7, load(0.4, 0, 0.05), ring(1)), cable(0.9, load(-0.4, 0, 0.05), ring(1)),
        ],
    },
    "two cables to a drone": {
        "drones": 1, "load": box(0.5, 0.4, 0.2, 0.2),
        "cables": [
            cable(1.5, load(s * 0.15, 0, 0.1), drone(1, s * 0.15, 0, -0.05)) for s in (1, -1)
        ],
    },
    "four cables to a drone": {
        "drones": 1, "load": box(0.7, 0.5, 0.5, 0.06),
        "cables": [
            cable(1.5, load(s * 0.15, t * 0.15, 0.03), drone(1, s * 0.15, t * 0.15, -0.03))
            for s in (1, -1) for t in (1, -1)
        ],
    },
    "a bridle below one drone, two cables below another": {
        "drones": 2, "load": box(1.0, 2.0, 0.1, 0.1), "anchors": knots(0.03),
        "cables": [
            cable(1.2, ring(1), drone(1)),
            cable(0.6, load(0.9, 0, 0.05), ring(1)), cable(0.6, load(0.4, 0, 0.05), ring(1)),
            cable(1.7, load(-0.9, 0.05, 0.05), drone(2, 0, -0.1, -0.03)),
            cable(1.7, load(-0.9, -0.05, 0.05), drone(2, 0, 0.1, -0.03)),
        ],
    },
    "two drones on a yoke with a heavy knot": {
        "drones": 2, "load": box(0.5, 0.3, 0.1, 0.1), "anchors": knots(0.2),
        "cables": [
            cable(1.5, ring(1), drone(1)), cable(1.5, ring(1), drone(2)),
            cable(0.8, load(0, 0, 0.05), ring(1)),
        ],
    },
    "four drones, two rings": {
        "drones": 4, "load": PLATE, "anchors": knots(0.03, 0.03),
        "cables": [
            *(cable(1.5, ring(1 + i // 2), drone(1 + i)) for i in range(4)),
            *(cable(0.8, load(s * 0.4, t * 0.2, 0.03), ring(1 if s > 0 else 2))
              for s in (1, -1) for t in (1, -1)),
        ],
    },
    "two drones that are tied to each other": {
        "drones": 2, "load": PLATE,
        "cables": [
            cable(2.0, load(0.45, 0, 0.03), drone(1)), cable(2.0, load(-0.45, 0, 0.03), drone(2)),
            cable(3.0, drone(1), drone(2)),
        ],
    },
}  # fmt: skip


def rig(kind, cable_model="elastic", overrides=(), **more):
    parts = KINDS[kind]
    free = {f"anchor_{i + 1}": {"kind": "free"} for i in range(len(parts.get("anchors", [])))}
    scenario = {
        "name": "rig",
        "system": {**parts, "name": "rig", "drones": [{"from": "x500"}] * parts["drones"]},
        "cable_model": cable_model,
        "start": "ground",
        "rig": {"anchors": free},
        "mission": {
            "settle_s": 3.0,
            "stages": [{"kind": "hold", "position_m": [0, 0, 1.0], "duration_s": 4}],
        },
    }
    return musls.load_scenario({**scenario, **more}, dict(overrides))


def means(run):
    """Mean tensions at both ends, height of the load and of the drones, in the stage's last 2 s."""
    stage = next(stage for stage in run.stages if stage.name == "hold")
    end_s = stage.end_s - 0.1

    def mean(time_s, values):
        return values[(time_s > end_s - 2.0) & (time_s < end_s)].mean(axis=0)

    tension_n = [
        mean(run.cable(k).time_s, run.cable(k).tension_n) for k in range(1, 1 + len(run.cables))
    ]
    names = ["load", *(f"drone_{i + 1}" for i in range(len(run.drones)))]
    height_m = [mean(run.body(b).time_s, run.body(b).position_enu_m)[2] for b in names]
    return np.array(tension_n), np.array(height_m)


MODELS = ("elastic", "massless", "rigid_links")

QUICK = ("bridle", "two cables to a drone")
SLOW = [pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS if kind not in QUICK]


@pytest.mark.parametrize("kind", [*QUICK, *SLOW])
def test_all_models_fly_it_from_the_ground_alike(kind):
    found = {}
    for model in MODELS:
        scenario = rig(kind, model)
        run = musls.fly(scenario)
        assert run.warnings == ()
        assert run.body("load").position_enu_m[-1][2] == pytest.approx(
            -scenario.system.load.collision.bottom_m, abs=2e-3
        )
        for i in range(scenario.system.n_drones):
            assert run.body(f"drone_{i + 1}").position_enu_m[-1][2] < 0.25
        found[model] = means(run)
    tension_n, height_m = found["elastic"]
    for model in ("massless", "rigid_links"):
        other_n, other_m = found[model]
        assert height_m == pytest.approx(other_m, rel=0.01)
        assert tension_n == pytest.approx(other_n, rel=0.01, abs=0.01 * tension_n.max())


def test_legs_of_a_bridle_pull_as_their_geometry_says():
    tension_n, _ = means(musls.fly(rig("bridle", "massless")))
    upright = np.sqrt(0.75**2 - 0.45**2) / 0.75
    assert tension_n[1:, 0] == pytest.approx(np.full(2, 0.25 * G / upright), rel=0.01)
    assert tension_n[0, 0] == pytest.approx(0.52 * G, rel=0.01)


@pytest.mark.parametrize("cable_model", MODELS)
def test_two_cables_of_one_drone_turn_the_load_with_it(cable_model):
    turn = {
        "stages": [{"kind": "hold", "position_m": [0, 0, 1.0], "yaw_rad": 0.8, "duration_s": 10}]
    }
    run = musls.fly(rig("two cables to a drone", cable_model, mission=turn))
    body = run.body("load")
    stage = next(stage for stage in run.stages if stage.name == "hold")
    w, _, _, z = body.orientation_wxyz[body.time_s < stage.end_s][-1]
    assert 2.0 * np.arctan2(z, w) == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("kind", KINDS)
def test_everything_stands_on_slack_cables_with_room(kind):
    system = rig(kind).system
    free = list(range(1, 1 + len(system.anchors)))
    places = rig_places_m(system, free, {})
    ground = rig_on_ground(system, free, places, np.zeros(2))
    incidence = Incidence.of(system)
    chords = incidence.chords_of(ground.place_enu_m, ground.orientation_wxyz)
    assert (np.linalg.norm(chords, axis=1) / incidence.length_m).max() < 0.97
    for nodes, chord, cable_ in zip(ground.nodes_enu_m, chords, system.cables, strict=True):
        assert nodes[-1] - nodes[0] == pytest.approx(chord, abs=1e-9)
        lengths = np.linalg.norm(np.diff(nodes, axis=0), axis=1)
        assert lengths == pytest.approx(np.full(8, cable_.length_m / 8), rel=1e-6)
    for i in range(system.n_drones):
        bottom = ground.place_enu_m[1 + i, 2] + system.drones[i].collision.bottom_m
        assert bottom == pytest.approx(0.0, abs=1e-9)


SLOPE = {"ground": {"slope_deg": 8.0, "uphill_deg": 0.0}}


@pytest.mark.parametrize("kind", KINDS)
def test_everything_stands_on_a_slope_with_its_cables_along_it(kind):
    scenario = rig(kind, world=SLOPE)
    system = scenario.system
    free = list(range(1, 1 + len(system.anchors)))
    ground = Ground.of(scenario.world, system)
    places = rig_places_m(system, free, {})
    stands = rig_on_ground(system, free, places, np.zeros(2), ground=ground)
    up = np.array([-np.sin(np.radians(8.0)), 0.0, np.cos(np.radians(8.0))])
    bodies = [system.load, *system.drones]
    for part, place, turn in zip(bodies, stands.place_enu_m, stands.orientation_wxyz, strict=False):
        assert matrix(turn)[:, 2] == pytest.approx(up, abs=1e-9)
        assert place @ up == pytest.approx(-part.collision.bottom_m, abs=1e-9)
    chords = Incidence.of(system).chords_of(stands.place_enu_m, stands.orientation_wxyz)
    for nodes, chord, cable_ in zip(stands.nodes_enu_m, chords, system.cables, strict=True):
        assert nodes[-1] - nodes[0] == pytest.approx(chord, abs=1e-9)
        lengths = np.linalg.norm(np.diff(nodes, axis=0), axis=1)
        assert lengths == pytest.approx(np.full(8, cable_.length_m / 8), rel=1e-6)
        assert (nodes @ up).min() > -1e-9


@pytest.mark.slow
@pytest.mark.parametrize("cable_model", MODELS)
def test_two_cables_lift_a_box_off_a_slope_and_set_it_down_there(cable_model):
    mission = {"stages": [{"kind": "hold", "position_m": [0, 3, 1.5], "duration_s": 4}]}
    run = musls.fly(rig("two cables to a drone", cable_model, world=SLOPE, mission=mission))
    assert run.warnings == ()
    tension_n, _ = means(run)
    weight_n = 0.5 * G
    assert tension_n[:, 0].sum() == pytest.approx(weight_n, rel=0.01)
    up = np.array([-np.sin(np.radians(8.0)), 0.0, np.cos(np.radians(8.0))])
    assert run.body("load").position_enu_m[[0, -1]] @ up == pytest.approx(0.1, abs=2e-3)
    assert run.body("drone_1").position_enu_m[[0, -1]] @ up == pytest.approx(0.24, abs=3e-3)


@pytest.mark.parametrize("cable_model", MODELS)
def test_batch_of_rigs_is_each_flight_alone(cable_model):
    scenario = rig("bridle", cable_model)
    batch = musls.Batch(scenario, 2)
    with musls.Session(scenario) as session:
        for _ in range(18):  # up to where the load hangs
            batch.advance(250)
            session.advance(250)
        np.testing.assert_array_equal(batch.motion[0], session.state.motion)
        np.testing.assert_array_equal(batch.tension_n[0], session.state.tension_n)
        assert session.state.tension_n[0, 0] > 4.0


def test_drones_fly_a_tether_from_the_ground_and_back():
    scenario = musls.load_scenario("tether", {"start": {"kind": "ground"}})
    run = musls.fly(scenario)
    assert run.warnings == ()
    plan = flight_plan(scenario)
    assert plan.stage_names[-1] == "land"
    for i in (1, 2):
        assert run.body(f"drone_{i}").position_enu_m[-1][2] == pytest.approx(0.24, abs=0.005)
    # While it hangs, the drones hold all of its weight.
    row = int(np.argmax(plan.stage == plan.stage_names.index("own_paths")))
    lifted = plan.held.thrust_enu_n[row].sum(axis=0)
    assert lifted == pytest.approx([0.0, 0.0, (0.3 + 2 * X500_KG) * G], rel=1e-3, abs=0.01)


def test_the_equivalent_of_a_bridle_is_its_line_from_where_the_legs_meet():
    mixed = rig("a bridle below one drone, two cables below another").system
    like = equivalent_formation(mixed, "x")
    knot, middle = like.load.cable_attachments_m
    assert knot == pytest.approx([0.65, 0.0, 0.05 + np.sqrt(0.6**2 - 0.25**2)], abs=1e-6)
    assert middle == pytest.approx([-0.9, 0.0, 0.05])
    lengths = [k.length_m for k in like.cables]
    assert lengths == pytest.approx([1.2, np.sqrt(1.7**2 - 0.05**2)], rel=1e-3)
    assert like.mass_kg == pytest.approx(mixed.mass_kg)


COURSE = {
    "stages": [
        {"kind": "waypoints", "points": [[0, 0, 1.2], [1.5, 0, 1.2]], "speed_m_s": 0.7},
        {"kind": "hold", "position_m": [1.5, 0, 1.2], "duration_s": 5},
    ]
}


@pytest.mark.parametrize(
    "kind",
    ["bridle", "two cables to a drone", "a bridle below one drone, two cables below another"],
)
def test_payload_carries_a_rig_closer_to_its_course_than_the_formation(kind):
    errors = {}
    for controller in ("formation", "payload"):
        run = musls.fly(rig(kind, "massless", controller={"kind": controller}, mission=COURSE))
        assert run.warnings == ()
        errors[controller] = {
            row.stage: row.translational_error_m for row in run.errors() if row.body == "load"
        }
    for stage in ("waypoints", "hold"):
        assert errors["payload"][stage] < 0.6 * errors["formation"][stage]


def test_check_names_cables_that_hang_slack():
    found = judge(rig("two drones that are tied to each other", "massless"))
    assert found.can_be_flown
    assert any("next to nothing hangs on cable_3" in line for line in found.cautions)
    hung = judge(rig("bridle"))
    assert not any("next to nothing" in line for line in hung.cautions)
    carried_n = (0.5 + 0.02 + 0.003 + X500_KG) * G
    assert hung.margins.formation[0].thrust_n == pytest.approx(carried_n, rel=1e-3)


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("two drones on a yoke with a heavy knot", "several drones of rig hold anchor_1"),
        ("two drones that are tied to each other", "cable_3 of rig joins drone_1 and drone_2"),
    ],
)
def test_payload_refuses_what_is_no_formation_alike(kind, says):
    with pytest.raises(musls.MuslsError) as refused:
        musls.Session(rig(kind, controller={"kind": "payload"})).close()
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"system.cables.0.length_m": 0.3}, "does not reach from"),
        ({"formation.places_m": [[0, 0, 1], [1, 0, 1]]}, "2 places for 1 drone"),
        ({"cable_model": "rigid_rods"}, "choose cable_model: elastic"),
        ({"start": {"kind": "air", "swing_deg": 10}}, "start.swing_deg"),
    ],
)
def test_what_cannot_start_is_refused_in_a_line(changes, says):
    with pytest.raises(musls.MuslsError) as refused:
        musls.Session(rig("two cables to a drone", overrides=changes)).close()
    assert says in str(refused.value)
