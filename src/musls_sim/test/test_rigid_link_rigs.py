"""Rigs on chains of rigid links: trees and loops, against statics, momenta and other models."""

import numpy as np
import pytest
from plant_helpers import as_rig, hovering_plant

from musls_description.config.errors import ConfigError
from musls_description.hanging.rig_tree import build_rig_tree
from musls_description.numerics.rotations import matrix
from musls_description.system.system_files import load_system
from musls_sim.plants.interface import CutCable, PlantInputs, ReleaseHook
from musls_sim.plants.rigid_links.plant import ChainStart, RigidLinksPlant
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.compose import build_plant

G = 9.80665
FREE = {"anchors": {"anchor_1": {"kind": "free"}}}
BEAM = {"mass_kg": 0.6, "shape": {"kind": "box", "size_m": [1.0, 0.1, 0.1]}}
RING = {"position_enu_m": [0, 0, 3.0], "mass_kg": 0.05}
ABOVE = {"kind": "equilibrium", "drones": [{"position_enu_m": [0, 0, 4.0]}]}
LINE_KG = 0.004


def rig(load, drones, anchors, cables, start, model="rigid_links", links=5, **more):
    """A plant of a rig in the air; cables are (length, (body, point), (body, point))."""
    system = {
        "name": "rig",
        "load": load,
        "drones": [{"from": "x500"}] * drones,
        "anchors": anchors,
        "cables": [
            {
                "mass_kg": LINE_KG, "length_m": length, "radius_m": 0.001, "links": links,
                "ends": [{"body": body, "point_m": point} for body, point in ends],
            }
            for length, *ends in cables
        ],
    }  # fmt: skip
    scenario = {
        "system": system, "cable_model": model, "start": start, "mission": {"duration_s": 1.0},
        "world": {"ground": {"height_m": -100.0}}, **more,
    }  # fmt: skip
    return build_plant(load_scenario(scenario))


def bridle(**more):
    """A drone, a ring and two legs of 0.7 and 0.9 m to a beam."""
    cables = [
        (1.0, ("anchor_1", [0, 0, 0]), ("drone_1", [0, 0, -0.05])),
        (0.7, ("load", [0.4, 0, 0]), ("anchor_1", [0, 0, 0])),
        (0.9, ("anchor_1", [0, 0, 0]), ("load", [-0.4, 0, 0])),
    ]
    return rig(BEAM, 1, [RING], cables, ABOVE, rig=FREE, **more)


def test_legs_of_a_bridle_pull_as_their_triangle_says():
    """Force of each leg W l / (2 median); their own weight is 1 % of it."""
    plant = bridle()
    median = 0.5 * np.sqrt(2 * 0.7**2 + 2 * 0.9**2 - 0.8**2)
    ring = plant.state.anchor_motion[0, :3]
    load = plant.state.position_enu_m[0]
    assert ring - load == pytest.approx([0.0, 0.0, median], abs=2e-3)
    weight_n = (0.6 + LINE_KG) * G
    tension = plant.state.tension_n.mean(axis=1)
    assert tension[1:] == pytest.approx(weight_n * np.array([0.7, 0.9]) / (2 * median), rel=0.01)
    assert tension[0] == pytest.approx((0.65 + 2.5 * LINE_KG) * G, rel=1e-4)
    # The leg that is given from the ring to the load, whose chain begins at the load, is shown so.
    nodes = plant.cable_nodes_enu_m(2)
    hook = load + matrix(plant.state.orientation_wxyz[0]) @ [-0.4, 0.0, 0.0]
    assert nodes[[0, -1]] == pytest.approx(np.array([ring, hook]), abs=1e-9)
    assert plant.state.tension_n[2, 0] > plant.state.tension_n[2, 1]
    along = plant.cable_end_rotations(2)[:, :, 0]
    assert along[0] == pytest.approx((nodes[1] - nodes[0]) * 5 / 0.9, abs=1e-9)
    assert plant.segment_tensions_n(2)[0] == pytest.approx(plant.state.tension_n[2, 0], rel=0.01)


def pushed(plant, periods, seed=0):
    """Fly with random forces and moments on load and drones, and their impulse and moment."""
    rng = np.random.default_rng(seed)
    n = 1 + plant.system.n_drones
    inputs = PlantInputs.zeros(plant.system)
    impulse = np.zeros(3)
    for k in range(periods):
        if k % 25 == 0:
            inputs.wrench_enu[:, 3:] = rng.normal(size=(n, 3)) * 3.0
            inputs.wrench_enu[1:, 5] += 7.0
            inputs.wrench_enu[:, :3] = rng.normal(size=(n, 3)) * 0.02
        plant.step(inputs)
        impulse += plant.period_s * inputs.wrench_enu[:, 3:].sum(axis=0)
    return impulse


def momentum(plant):
    """Momentum of all bodies, (3,), and the sum of sizes, from their records."""
    b = plant.records.bodies
    arms = np.einsum("kij,kj->ki", b["rotation"], b["com"])
    each = b["mass"][:, None] * (b["velocity"] + np.cross(b["omega"], arms))
    return each.sum(axis=0), b["mass"].sum()


def gaps_m(plant):
    """Distances of the ends of cables at closings from their places."""
    b = plant.records.bodies
    far = []
    for row in plant.tree.closings:
        link = b[row.link]
        tip = link["position"] + link["rotation"] @ row.point_m
        place = row.place_m
        if row.body >= 0:
            place = b["position"][row.body] + b["rotation"][row.body] @ place
        far.append(np.linalg.norm(tip - place))
    return np.array(far)


def two_lines(**more):
    box = {"mass_kg": 0.8, "shape": {"kind": "box", "size_m": [0.4, 0.4, 0.1]}}
    cables = [(1.5, ("load", [x, 0, 0.05]), ("drone_1", [x, 0, -0.05])) for x in (0.15, -0.15)]
    return rig(box, 1, [], cables, ABOVE, **more)


@pytest.mark.parametrize("make", [bridle, two_lines])
def test_pushed_loops_keep_momentum_energy_and_their_ends_together(make):
    plant = make()
    plant.set_rotor_speeds(np.zeros((1, 4)))
    assert len(plant.tree.closings) == 1
    before, mass = momentum(plant)
    impulse = pushed(plant, 150)
    after, _ = momentum(plant)
    expected = before + impulse - [0.0, 0.0, mass * G * 150 * plant.period_s]
    assert np.linalg.norm(after) > 1.0
    assert after == pytest.approx(expected, abs=1e-9)
    ledger = plant.records.system[0]["ledger"]
    missing = max(ledger["spurious"], ledger["lost"])
    assert missing < 2e-3 * (ledger["kinetic"] + ledger["exchanged"])
    assert gaps_m(plant).max() < 1e-4


def test_a_slung_load_written_as_a_rig_moves_as_before():
    one, _, _ = hovering_plant(load_system("x500_trio_swivel"))
    system = as_rig(one.system)
    t = one.records
    start = ChainStart(
        build_rig_tree(system, []), t.bodies["rotation"].copy(), t.bodies["position"].copy()
    )
    other = RigidLinksPlant(system, start, physics_step_s=one.physics_step_s)
    other.set_rotor_speeds(one.state.rotor_speed_rad_s.copy())
    assert [body.name for body in other.tree.bodies] == [body.name for body in one.tree.bodies]
    inputs = PlantInputs.zeros(one.system)
    rng = np.random.default_rng(1)
    for _ in range(50):
        inputs.wrench_enu[:] = rng.normal(size=(4, 6)) * [0.02, 0.02, 0.02, 1.0, 1.0, 1.0]
        one.step(inputs)
        other.step(inputs)
    np.testing.assert_allclose(other.state.motion, one.state.motion, atol=1e-8)
    np.testing.assert_allclose(other.state.tension_n, one.state.tension_n, atol=1e-6)


def test_a_load_on_fixed_anchors_is_a_bifilar_pendulum():
    """w = (distance / 2) sqrt(m g / (J l)) of a slow turn; the drone flies beside.

    Both lines end at what does not move: two closings to the world.
    """
    load = {"mass_kg": 0.5, "inertia_kg_m2": [[0.01, 0, 0], [0, 0.01, 0], [0, 0, 0.02]],
            "collision": {"size_m": [0.1, 0.1, 0.1]}}  # fmt: skip
    turn = 0.02
    drop = 1.5 - np.sqrt(1.5**2 - (0.3 * np.sin(turn / 2)) ** 2)
    start = {
        "kind": "state",
        "load": {"position_enu_m": [0, 0, 2.5 + drop],
                 "orientation_wxyz": [np.cos(turn / 2), 0, 0, np.sin(turn / 2)]},
        "drones": [{"position_enu_m": [1, 0, 4.0]}],
    }  # fmt: skip
    held = [{"position_enu_m": [0, 0, 4.0]}]
    lines = [(1.5, ("load", [s * 0.15, 0, 0]), ("anchor_1", [s * 0.15, 0, 0])) for s in (1, -1)]
    plant = rig(load, 1, held, [*lines, (1.5, ("anchor_1", [0, 0, 0]), ("drone_1", [0, 0, 0]))],
                start)  # fmt: skip
    assert [closing.body for closing in plant.tree.closings] == [-1, -1, -1]
    inputs = PlantInputs.zeros(plant.system)
    inputs.wrench_body[1, 5] = plant.system.drones[0].mass_kg * G  # it stays
    plant.set_rotor_speeds(np.zeros((1, 4)))
    yaw = []
    for _ in range(1500):
        plant.step(inputs)
        w, _, _, z = plant.state.orientation_wxyz[0]
        yaw.append(2.0 * np.arctan2(z, w))
    crossings = np.flatnonzero(np.diff(np.sign(yaw)))
    rate = np.pi / (np.mean(np.diff(crossings)) * plant.period_s)
    assert rate == pytest.approx(0.15 * np.sqrt(0.5 * G / (0.02 * 1.5)), rel=0.02)
    assert plant.state.anchor_motion[0, :3] == pytest.approx([0.0, 0.0, 4.0])


def test_four_parallel_cables_share_a_weight_that_their_lengths_do_not_share():
    """Statically indeterminate, as four legs of a bridle: evenly, as massless cables do."""
    box = {"mass_kg": 0.8, "shape": {"kind": "box", "size_m": [0.4, 0.4, 0.1]}}
    corners = [(sx * 0.15, sy * 0.15) for sx in (1, -1) for sy in (1, -1)]
    cables = [(1.5, ("load", [x, y, 0.05]), ("drone_1", [x, y, 0])) for x, y in corners]
    plant = rig(box, 1, [], cables, ABOVE)
    inputs = PlantInputs.zeros(plant.system)
    inputs.rotor_command_rad_s[:] = plant.state.rotor_speed_rad_s
    for _ in range(50):
        plant.step(inputs)
    assert plant.state.tension_n[:, 0] == pytest.approx(np.full(4, 0.2 * G), rel=1e-4)
    assert np.abs(plant.state.velocity_enu_m_s).max() < 1e-6


def test_cut_loops_fall_apart():
    """Cut ends: between links of a chain, at a closing, at the load; the beam falls in the end."""
    plant = bridle()
    plant.set_rotor_speeds(np.zeros((1, 4)))
    inputs = PlantInputs.zeros(plant.system)
    inputs.wrench_body[1, 5] = 2.7 * G
    plant.apply(CutCable(3, 2))  # counted from the ring
    nodes = plant.cable_nodes_enu_m(2)
    for _ in range(25):
        plant.step(inputs)
    steps = np.linalg.norm(np.diff(plant.cable_nodes_enu_m(2), axis=0), axis=1)
    assert np.argmax(steps) == 1 and steps[1] > 0.2
    assert np.linalg.norm(np.diff(nodes, axis=0), axis=1) == pytest.approx(0.18, abs=1e-9)
    plant.apply(ReleaseHook(2, "load"))
    assert plant.hook_is_open(1)
    for _ in range(25):
        plant.step(inputs)
    assert plant.state.motion[0, 13:16] == pytest.approx([0.0, 0.0, -G], abs=0.5)
    assert plant.state.tension_n[1, 0] == 0.0


def test_a_closing_lets_go():
    plant = two_lines()
    plant.apply(ReleaseHook(2, "drone"))
    inputs = PlantInputs.zeros(plant.system)
    for _ in range(5):
        plant.step(inputs)
    assert plant.state.tension_n[1, 1] == 0.0
    assert plant.state.tension_n[0].min() > 0.2
    assert gaps_m(plant)[0] > 1e-3


OFF_CENTRE = (0.5, ("load", [0, 0, 0]), ("anchor_1", [0.1, 0, 0]))


@pytest.mark.parametrize(
    ("cables", "more", "words"),
    [
        ([(1.0, ("anchor_1", [0, 0, 0]), ("drone_1", [0, 0, 0])), OFF_CENTRE], {"rig": FREE},
         "cable_2 of rig pulls beside the centre of anchor_1, which has no inertia"),
        ([(2.0, ("load", [0, 0, 0]), ("drone_1", [0, 0, 0]))],
         {"physics": {"exact_friction": True}}, "exact_friction = true: system rig is a rig"),
        ([(1.0, ("anchor_1", [0, 0, 0]), ("anchor_2", [0, 0, 0])), OFF_CENTRE], {},
         "cable_1 of rig joins two anchors that do not move"),
    ],
)  # fmt: skip
def test_what_chains_cannot_be_is_refused(cables, more, words):
    with pytest.raises(ConfigError) as refused:
        rig(BEAM, 1, [RING, RING], cables, ABOVE, **more)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
