"""Ground that is not flat: slopes, ledges, roofs, pits, decks that move, against statics."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import musls
from musls_description.config.errors import ConfigError
from musls_description.system.obstacles import (
    BoxObstacle,
    CylinderObstacle,
    GroundSpec,
    PlaneObstacle,
    SurfaceMotion,
    WorldSpec,
    begin_motion,
    ground_at,
    move_solids,
    surface_velocity,
)
from musls_description.writers.sdf import world_sdf
from musls_sim.plants.interface import PlantInputs
from musls_sim.scenario.aerodynamics import Aerodynamics, Air, GroundEffect, add_ground_effect
from musls_sim.session.session import Session

G = 9.80665
MODELS = ("massless", "rigid_links", "elastic")
SLOPE = {"ground": {"slope_deg": 8.0, "uphill_deg": 30.0}}
TIMES_S = np.arange(0.0, 60.0, 0.1)
HEAVE_M, HEAVE_RAD_S = 0.3, 1.5
DECK = {
    "kind": "box", "name": "deck", "size_m": [9, 9, 1], "position_enu_m": [0, 0, 0.5],
    "motion": {
        "time_s": TIMES_S.tolist(),
        "shift_enu_m": [[0.0, 0.0, HEAVE_M * np.sin(HEAVE_RAD_S * t)] for t in TIMES_S],
    },
}  # fmt: skip


def box(name: str, size_m: list[float], place: list[float], **more: object) -> dict[str, object]:
    return {"kind": "box", "name": name, "size_m": size_m, "position_enu_m": place, **more}


def scenario(world: dict, model: str = "massless", height_m: float = 1.8, **more: object):
    hold = {"kind": "hold", "position_m": [0, 0, height_m], "duration_s": 1.0}
    overrides = {"start": "ground", "cable_model": model, "world": world, "mission.stages": [hold]}
    return musls.load_scenario("gate", {"controller": "formation", **overrides, **more})


# ---------- The one function, against geometry


def test_the_ground_is_the_highest_of_its_solids():
    turn = Rotation.from_euler("xyz", [0.1, -0.2, 0.7])
    crate = BoxObstacle(
        name="crate", size_m=(2.0, 1.0, 0.8), position_enu_m=(1.0, 2.0, 0.2),
        orientation_wxyz=tuple(turn.as_quat(scalar_first=True)),
    )  # fmt: skip
    pad = CylinderObstacle(name="pad", radius_m=0.5, height_m=1.0, position_enu_m=(-3.0, 0.0, 0.3))
    slab = BoxObstacle(name="slab", size_m=(9.0, 9.0, 0.1), position_enu_m=(0.0, 0.0, 5.0))
    world = WorldSpec(ground=GroundSpec(slope_deg=4.0), obstacles=(crate, pad, slab))
    grounds = world.grounds
    assert [s.name for s in world.surfaces] == ["ground", "crate", "pad", "slab"]
    assert [s.ground for s in world.surfaces] == [True, True, True, False]  # the slab floats
    rng = np.random.default_rng(1)
    for x, y in rng.uniform(-4.0, 4.0, (200, 2)):
        plane_m = x * np.tan(np.radians(4.0))
        # A point of the upright line is in the box if it is in its frame; the highest that is.
        line = np.column_stack([np.full(4001, x), np.full(4001, y), np.linspace(-2.0, 2.0, 4001)])
        inside = np.abs(turn.inv().apply(line - crate.position_enu_m)) <= [1.0, 0.5, 0.4]
        heights = line[inside.all(axis=1), 2]
        expected = max(plane_m, heights.max(initial=-9.0))
        if np.hypot(x + 3.0, y) < 0.5:
            expected = max(expected, 0.8)
        assert ground_at(grounds, x, y)[0] == pytest.approx(expected, abs=1.1e-3)


def test_a_surface_follows_its_table_within_a_period():
    motion = SurfaceMotion(
        time_s=tuple(TIMES_S), shift_enu_m=tuple((np.cos(t), 0.0, np.sin(t)) for t in TIMES_S)
    )
    deck = BoxObstacle(
        name="deck", size_m=(1.0, 1.0, 1.0), position_enu_m=(0.0, 0.0, 2.0), motion=motion
    )
    for t, solids in moved(deck):
        assert solids["shift"][0] == pytest.approx([np.cos(t), 0.0, np.sin(t)], abs=2e-6)
        assert solids["velocity"][0] == pytest.approx([-np.sin(t), 0.0, np.cos(t)], abs=2e-5)
        assert solids["position"][0] == pytest.approx([np.cos(t), 0.0, 2.0 + np.sin(t)], abs=2e-6)


@pytest.mark.parametrize("of_plane", [False, True])
def test_a_surface_turns_as_its_table_says(of_plane):
    """Against SciPy's rotations, and the angular velocity against a difference of them."""

    def angles(t):
        return np.array([5.0 * np.sin(t), 20.0 * np.cos(0.5 * t), 30.0 * t])

    motion = SurfaceMotion(
        time_s=tuple(TIMES_S), roll_pitch_yaw_deg=tuple(map(tuple, map(angles, TIMES_S)))
    )
    heading = Rotation.from_euler("xyz", [0.1, -0.2, 0.7])
    axes = Rotation.identity() if of_plane else heading
    where = {"name": "deck", "motion": motion}
    deck = BoxObstacle(
        size_m=(1.0, 1.0, 1.0), position_enu_m=(1.0, 0.0, 2.0),
        orientation_wxyz=tuple(heading.as_quat(scalar_first=True)), **where,
    )  # fmt: skip
    if of_plane:
        deck = PlaneObstacle(
            point_enu_m=(1.0, 0.0, 2.0), normal_enu=tuple(heading.apply([0.0, 0.0, 1.0])), **where
        )
    upright = Rotation.from_matrix(deck.solids()["upright"][0])

    def turn_at(t):
        roll, pitch, yaw = angles(t)
        turn = Rotation.from_euler("ZYX", [yaw, pitch, roll], degrees=True)
        return axes * turn * axes.inv()

    point = np.array([3.0, 1.0, 2.5])
    for t, solids in moved(deck):
        (solid,) = solids
        expected = turn_at(t) * upright
        assert solid["rotation"] == pytest.approx(expected.as_matrix(), abs=1e-6)
        omega = (turn_at(t + 1e-4) * turn_at(t - 1e-4).inv()).as_rotvec() / 2e-4
        assert solid["omega"] == pytest.approx(omega, abs=1e-5)
        assert surface_velocity(solid, tuple(point)) == pytest.approx(
            np.cross(omega, point - [1.0, 0.0, 2.0]), abs=1e-4
        )


def moved(deck):
    """Times, and solids of a surface that moves, in a period that begins at 3 s."""
    solids = deck.solids()
    solids["motion"] = 1
    motion = deck.motion
    ends = np.array([[*motion.spline(t), *motion.spline(t, 1)] for t in (3.0, 3.004)])
    begin_motion(solids, ends[None], 0.004)
    for since in (0.0, 0.001, 0.0025, 0.004):
        move_solids(solids, since)
        yield 3.0 + since, solids


@pytest.mark.parametrize(
    "world",
    [
        SLOPE,
        {"ground": {"slope_deg": 12.0, "uphill_deg": 250.0, "height_m": -3.0}},
        {"obstacles": [box("ledge", [4, 8, 0.4], [3.0, 0, 0.2])]},
        {"obstacles": [box("roof", [1, 1, 0.5], [0, 0, 0.25])]},
        {"obstacles": [{"kind": "plane", "name": "slope", "point_enu_m": [0, 0, 0],
                        "normal_enu": [-0.139173, 0, 0.990268]}]},
    ],
    ids=["slope", "pit", "ledge", "roof", "crease"],
)  # fmt: skip
def test_bodies_start_with_all_corners_on_the_ground(world):
    flown = scenario(world, height_m=2.5)
    hanging = flown.hanging
    system = hanging.system
    places, attitudes = hanging.on_ground.bodies(system)
    grounds = flown.world.grounds
    for part, place, attitude in zip((system.load, *system.drones), places, attitudes, strict=True):
        turn = Rotation.from_quat(attitude, scalar_first=True)
        corners = place + turn.apply(part.collision.corners_m)
        lowest = corners[np.argsort(part.collision.corners_m[:, 2])[:4]]
        heights = [ground_at(grounds, x, y)[0] for x, y, _ in lowest]
        assert lowest[:, 2] == pytest.approx(heights, abs=1e-6)


# ---------- Statics: what holds a body on a slope


def pushes_n(session: Session, row: int) -> np.ndarray:
    """Sum of the forces of the ground on a body, world, (3,)."""
    plant = session.plant
    if plant.cable_model == "elastic":
        body = plant.tables.bodies[row]
        corners = plant.tables.corners
        span = slice(body["first_corner"], body["first_corner"] + body["corners"])
        acting = corners["normal_force"][span, None] > 0.0
        return (corners["force"][span] * acting).sum(axis=0)
    records = plant.records
    at = row if plant.cable_model == "massless" else records.selected[row]
    body = records.bodies[at]
    corners = records.corners if plant.cable_model == "massless" else records.edges
    span = slice(body["first_corner"], body["first_corner"] + body["corners"])
    return corners["push"][span].sum(axis=0)


@pytest.mark.parametrize("model", MODELS)
def test_a_slope_carries_the_weight_with_friction_of_its_tangent(model):
    with Session(scenario(SLOPE, model)) as session:
        before = session.state.position_enu_m.copy()
        session.advance(125)
        assert session.state.position_enu_m == pytest.approx(before, abs=1.5e-3)
        normal = session.scenario.world.grounds["rotation"][0][:, 2]
        system = session.plant.system
        for row, part in enumerate((system.load, *system.drones)):
            force = pushes_n(session, row)
            up = force @ normal
            across = np.linalg.norm(force - up * normal)
            thrust_n = 0.0  # of rotors that idle
            if row > 0:
                coefficient = part.rotors[0].thrust_coefficient_n_s2
                thrust_n = coefficient * (session.state.rotor_speed_rad_s[row - 1] ** 2).sum()
            # Slack cables that lie beside it pull a little.
            pull_n = 0.05 if model == "massless" else 2.0 * system.cables[0].mass_kg * G
            weight_n = part.mass_kg * G
            angle = np.radians(8.0)
            assert up + thrust_n == pytest.approx(weight_n * np.cos(angle), abs=pull_n)
            assert across == pytest.approx(weight_n * np.sin(angle), abs=pull_n)
            if row == 0:
                assert across / up == pytest.approx(np.tan(angle), abs=0.01)


@pytest.mark.parametrize("model", MODELS)
def test_a_load_stays_on_a_deck_that_heaves(model):
    with Session(scenario({"obstacles": [DECK]}, model), force=True) as session:
        mass_kg = session.plant.system.load.mass_kg
        first = session.state.position_enu_m[0].copy()
        for _ in range(6):
            session.advance(50)
            phase = HEAVE_RAD_S * session.plant.time_s
            deck_m = HEAVE_M * np.sin(phase)
            assert session.state.position_enu_m[0] - first == pytest.approx(
                [0.0, 0.0, deck_m], abs=1.5e-3
            )
            felt = G - HEAVE_M * HEAVE_RAD_S**2 * np.sin(phase)
            assert pushes_n(session, 0)[2] == pytest.approx(mass_kg * felt, rel=0.03)


@pytest.mark.parametrize("model", MODELS)
def test_bodies_stay_on_a_deck_that_rolls(model):
    """They turn with it about an axis 2 m below them: m (a - g) is what the deck pushes with."""
    roll_rad = 0.1
    rate_rad_s = 1.2
    turns_deg = [[np.degrees(roll_rad * np.sin(rate_rad_s * t)), 0.0, 0.0] for t in TIMES_S]
    deck = box("deck", [9, 9, 4], [0, 0, 0])
    deck["motion"] = {"time_s": TIMES_S.tolist(), "roll_pitch_yaw_deg": turns_deg}
    with Session(scenario({"obstacles": [deck]}, model, height_m=3.8), force=True) as session:
        mass_kg = session.plant.system.load.mass_kg
        first = session.state.position_enu_m.copy()
        spins = session.state.omega_body_rad_s[:, :2]
        assert np.linalg.norm(spins, axis=1) == pytest.approx(roll_rad * rate_rad_s, rel=0.02)
        for _ in range(6):
            session.advance(50)
            phase = rate_rad_s * session.plant.time_s
            turn = Rotation.from_rotvec([roll_rad * np.sin(phase), 0.0, 0.0])
            assert session.state.position_enu_m == pytest.approx(turn.apply(first), abs=2.5e-3)
            omega = np.array([roll_rad * rate_rad_s * np.cos(phase), 0.0, 0.0])
            change = np.array([-roll_rad * rate_rad_s**2 * np.sin(phase), 0.0, 0.0])
            lever = turn.apply(first[0])
            acceleration = np.cross(change, lever) + np.cross(omega, np.cross(omega, lever))
            felt = mass_kg * (acceleration + [0.0, 0.0, G])
            assert pushes_n(session, 0) == pytest.approx(felt, abs=0.03 * mass_kg * G)


def test_cables_lie_on_a_slope():
    with Session(scenario(SLOPE, "elastic")) as session:
        session.advance(250)
        nodes = np.concatenate([session.plant.cable_nodes_enu_m(i)[2:-2] for i in range(3)])
        heights = [ground_at(session.scenario.world.grounds, x, y)[0] for x, y, _ in nodes]
        assert (nodes[:, 2] - heights).min() > -0.005


# ---------- Air


def test_ground_effect_counts_along_the_normal_of_the_ground():
    def lift(world: WorldSpec, turn: Rotation) -> np.ndarray:
        session_scenario = scenario({})
        with Session(session_scenario) as session:
            state = session.plant.state
            point = np.array([1.0, 2.0, 1.0 * np.tan(np.radians(8.0)) if turn.magnitude() else 0.0])
            state.position_enu_m[1] = point + turn.apply([0.0, 0.0, 0.3])
            state.orientation_wxyz[1] = turn.as_quat(scalar_first=True)
            state.rotor_speed_rad_s[:] = 600.0
            inputs = PlantInputs.zeros(session.plant.system)
            grounds = None if world.is_flat else world.grounds
            air = Air(session.plant.system, state, np.zeros(3), grounds)
            arrays = Aerodynamics([GroundEffect()], air, inputs).arrays
            add_ground_effect(
                state.motion, air.rotors, state.rotor_speed_rad_s, arrays["near_ground"],
                arrays["grounds"], inputs.wrench_body,
            )  # fmt: skip
            return inputs.wrench_body[1].copy()

    flat = lift(WorldSpec(), Rotation.identity())
    slope = lift(
        WorldSpec(ground=GroundSpec(slope_deg=8.0)), Rotation.from_euler("y", -8.0, degrees=True)
    )
    assert flat[5] > 0.5
    assert slope == pytest.approx(flat, abs=1e-9)


# ---------- What is refused


def test_a_misspelt_column_of_a_motion_is_told(tmp_path):
    (tmp_path / "sea.csv").write_text("time_s,z_m,roll\n0,0,0\n1,0,0\n")
    motion = SurfaceMotion(file=str(tmp_path / "sea.csv"))
    with pytest.raises(ConfigError, match="column 'roll': did you mean 'roll_deg'"):
        motion.first()


def test_a_motion_of_times_alone_is_told(tmp_path):
    """It would stand still, whatever was meant."""
    (tmp_path / "deck.csv").write_text("time_s\n0\n1\n")
    motion = SurfaceMotion(file=str(tmp_path / "deck.csv"))
    with pytest.raises(ConfigError, match=r"no column of x_m, .*: one at least is needed"):
        motion.spline  # noqa: B018 (reads the file)


@pytest.mark.parametrize(
    ("world", "message"),
    [
        ({"ground": {"slope_deg": 45.0}}, "slope of 45.0 deg and slide: that takes"),
        ({"obstacles": [box("rail", [2, 0.1, 0.2], [0, 0, 0.1])]}, "load would stand at"),
        ({"obstacles": [box("tower", [1, 1, 6], [0, 0, 3])]}, "does not reach from the load"),
        ({"ground": {"height_m": 3.0}}, "the plan brings load .* below the ground at"),
        ({"ground": {"motion": {"file": "nowhere.csv"}}}, "nowhere.csv: no such file"),
        ({"ground": {"motion": {"time_s": [0, 0], "shift_enu_m": [[0, 0, 0]] * 2}}}, "increase"),
    ],
)  # fmt: skip
def test_what_no_body_can_stand_on_is_refused(world, message):
    with pytest.raises(ConfigError, match=message):
        Session(scenario(world)).close()


@pytest.mark.parametrize("physics", [{"physics.engine": "dart"}, {"physics.exact_friction": True}])
def test_other_engines_refuse_surfaces_that_move(physics):
    with pytest.raises(ConfigError, match="deck moves as in a table"):
        Session(scenario({"obstacles": [DECK]}, "rigid_links", **physics), force=True).close()


def test_gazebo_has_the_slope_and_refuses_the_deck():
    flown = scenario(SLOPE | {"obstacles": [box("ledge", [1, 1, 1], [9, 9, 0.5])]})
    spawn = flown.hanging.on_ground
    root = ElementTree.fromstring(
        world_sdf(flown.hanging.system, spawn, obstacles=flown.world.surfaces)
    )
    models = {model.get("name"): model for model in root.iter("model")}
    assert "obstacle_ledge" in models
    pose = models["ground"].find("link/pose")
    turn = Rotation.from_quat([float(v) for v in pose.text.split()[3:]])
    assert turn.apply([0.0, 0.0, 1.0]) == pytest.approx(
        flown.world.grounds["rotation"][0][:, 2], abs=1e-6
    )
    with pytest.raises(ConfigError, match="in Gazebo surfaces stand still"):
        deck = scenario({"obstacles": [DECK]}).world.surfaces
        world_sdf(flown.hanging.system, spawn, obstacles=deck)


# ---------- Whole flights


def ends_as_it_began(world: dict, model: str, height_m: float) -> None:
    """Fly, and hold the ends against the ground and the tensions in hover against statics."""
    flown = scenario(world, model, height_m)
    run = musls.fly(flown)
    grounds = flown.world.grounds
    system = flown.hanging.system
    assert not [e for e in run.events if e.kind in ("collision", "drone_lost", "energy")]
    for i, part in enumerate((system.load, *system.drones)):
        place = run.body("load" if i == 0 else f"drone_{i}").position_enu_m[-1]
        turn = Rotation.from_quat(
            run.body("load" if i == 0 else f"drone_{i}").orientation_wxyz[-1], scalar_first=True
        )
        corners = place + turn.apply(part.collision.corners_m)
        lowest = corners[np.argsort(part.collision.corners_m[:, 2])[:4]]
        heights = [ground_at(grounds, x, y)[0] for x, y, _ in lowest]
        assert lowest[:, 2] == pytest.approx(heights, abs=3e-3)
    (hold,) = (stage for stage in run.stages if stage.name == "hold")
    pulls = [run.cable(i + 1) for i in range(system.n_drones)]
    late = (run.time_s > hold.end_s - 0.5) & (run.time_s < hold.end_s)
    mean_n = [cable.tension_n[late].mean() for cable in pulls]
    assert mean_n == pytest.approx(flown.hanging.rest.load_end_tension_n, rel=0.04)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("world", "height_m"),
    [
        ({"ground": {"slope_deg": 8.0, "uphill_deg": 30.0}}, 1.8),
        ({"obstacles": [box("ledge", [4, 8, 0.4], [3.0, 0, 0.2])]}, 1.8),
        ({"obstacles": [box("roof", [9, 9, 3], [0, 0, 1.5])]}, 4.8),
    ],
    ids=["slope", "ledge", "roof"],
)
def test_flights_from_a_slope_a_ledge_and_a_roof_and_back(model, world, height_m):
    ends_as_it_began(world, model, height_m)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("world", [SLOPE, {"obstacles": [DECK]}], ids=["slope", "deck"])
def test_a_batch_flies_slopes_and_decks_as_alone(model, world):
    flown = scenario(world, model, aerodynamics=[{"kind": "ground_effect"}])
    batch = musls.Batch([flown, flown], seeds=[flown.seed] * 2)
    with Session(flown) as session:
        for _ in range(10):
            session.advance(250)
            batch.advance(250)
            assert np.array_equal(batch.position_enu_m[1], session.state.position_enu_m)
