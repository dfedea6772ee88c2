"""The elastic plant with today's systems: hover, flight, ground, prescribed drones, changes."""

import dataclasses

import numpy as np
import pytest
from plant_helpers import G, formation, with_cables, without_drag

from musls_description.config.errors import ConfigError
from musls_description.hanging.cone import with_places
from musls_description.hanging.equilibrium import hanging_equilibrium
from musls_description.hanging.ground import ground_spawn
from musls_description.hanging.hang import hang
from musls_description.system.system_files import load_system, system_names
from musls_sim.plants.elastic.output import momenta
from musls_sim.plants.elastic.plant import ElasticPlant, build
from musls_sim.plants.interface import (
    Change,
    LoadMass,
    PlantInputs,
    PlantSetup,
    PrescribedMotion,
    ReleaseHook,
    RotorEfficiency,
)
from musls_sim.plants.rigid_links.plant import RigidLinksPlant
from musls_sim.plants.trim import trim_speeds_rad_s
from musls_sim.specs.physics import BodyState, PhysicsSpec, StartSpec


def hovering(system, **options):
    """An elastic plant at rest in the air, inputs that hold it, and the rigid equilibrium."""
    share = min(1.0, system.cables[0].length_m / 2.0)  # short cables: a small formation
    height = max(1.2 + 2.0 * share, 0.7 + system.cables[0].length_m)
    drones = formation(system, radius=share, height=height)
    rest = hanging_equilibrium(system, drones)
    speeds = trim_speeds_rad_s(system, rest)
    plant = ElasticPlant(system, rest.configuration, rotor_speed_rad_s=speeds, **options)
    inputs = PlantInputs.zeros(system)
    inputs.rotor_command_rad_s[:] = speeds
    return plant, inputs, rest


def accelerations(plant):
    """Largest acceleration of any body or node [m/s2]."""
    t = plant.tables
    bodies, nodes = t.bodies["acceleration"], t.nodes["acceleration"]
    return max(np.abs(bodies).max(), np.abs(nodes).max())


@pytest.mark.parametrize("name", system_names(slung=True))
def test_hanging_start_is_an_equilibrium_of_the_elastic_cables(name):
    """Nothing accelerates by more than 1e-6 g, and the tensions are the static ones."""
    plant, inputs, rest = hovering(load_system(name))
    assert accelerations(plant) < 1e-6 * G
    assert plant.state.tension_n[:, 0] == pytest.approx(rest.load_end_tension_n, rel=1e-5)
    top = rest.cable_force_n + np.array([[0.0, 0.0, k.mass_kg * G] for k in plant.system.cables])
    assert plant.state.tension_n[:, 1] == pytest.approx(np.linalg.norm(top, axis=1), rel=2e-4)
    before = plant.state.position_enu_m.copy()
    for _ in range(250):
        plant.step(inputs)
    assert np.abs(plant.state.position_enu_m - before).max() < 1e-6
    assert plant.refined_periods == 0


@pytest.mark.parametrize("segments", [1, 4, 200])
def test_hanging_start_rests_with_any_number_of_segments(segments):
    plant, _, _ = hovering(load_system("x500_trio"), segments=segments)
    assert accelerations(plant) < 1e-6 * G
    assert plant.cable_nodes_enu_m(0).shape == (segments + 1, 3)


@pytest.mark.parametrize("name", system_names(slung=True))
def test_ground_holds_load_drones_and_cables(name):
    system = load_system(name)
    plant = ElasticPlant(system, ground_spawn(system))
    start = plant.state.position_enu_m.copy()
    inputs = PlantInputs.zeros(system)
    for _ in range(500):
        plant.step(inputs)
    assert np.abs(plant.state.position_enu_m - start).max() < 0.005
    assert np.abs(plant.state.velocity_enu_m_s).max() < 1e-3
    for i in range(system.n_drones):
        assert plant.cable_nodes_enu_m(i)[:, 2].min() > -0.01


def test_friction_holds_a_box_without_creep_and_slides_at_its_limit():
    system = load_system("x500_solo")
    plant = ElasticPlant(system, ground_spawn(system))
    inputs = PlantInputs.zeros(system)
    for _ in range(250):
        plant.step(inputs)
    weight = system.drones[0].mass_kg * G
    inputs.wrench_enu[1, 4] = 0.7 * system.ground_friction * weight
    for _ in range(250):
        plant.step(inputs)
    assert np.abs(plant.state.velocity_enu_m_s[1]).max() < 1e-5
    inputs.wrench_enu[1, 4] = 1.3 * system.ground_friction * weight
    for _ in range(15):  # the springs under the feet give way first
        plant.step(inputs)
    speed = plant.state.velocity_enu_m_s[1, 1]
    for _ in range(25):
        plant.step(inputs)
    gained = (plant.state.velocity_enu_m_s[1, 1] - speed) / 0.1
    assert gained == pytest.approx(0.3 * system.ground_friction * G, rel=0.1)


@pytest.mark.parametrize("bending_damping_n_m2_s", [0.0, 1.4e-4])
def test_dropped_load_comes_to_rest_on_its_box_without_bouncing(bending_damping_n_m2_s):
    """Also where slack segments shrink to nothing and their directions turn as they like."""
    system = load_system("x500_solo")
    line = dataclasses.replace(
        system.cables[0].elastic, bending_damping_n_m2_s=bending_damping_n_m2_s
    )
    system = with_cables(system, elastic=line)
    plant, inputs, _ = hovering(system, ground_height_enu_m=0.0)
    heights = []
    plant.apply(RotorEfficiency(1, None, 0.0))
    for _ in range(750):
        plant.step(inputs)
        heights.append(plant.state.position_enu_m[0, 2])
    audit = plant.audit
    assert audit.missing_j > -1e-3 * abs(audit.start_j), "no energy from nothing"
    assert min(heights) > -0.05
    assert np.abs(plant.state.velocity_enu_m_s[0]).max() < 0.05


@pytest.mark.parametrize("gets_heavier", [False, True])
@pytest.mark.parametrize("mass_kg", [1e2, 1e6])
def test_ground_holds_any_load(mass_kg, gets_heavier):
    """It sinks in by 0.1 mm whatever it weighs, from the start or from one moment on."""
    system = load_system("x500_trio")
    factor = mass_kg / system.load.mass_kg
    heavy = dataclasses.replace(
        system.load,
        mass_kg=mass_kg,
        inertia_kg_m2=tuple((factor * np.array(system.load.inertia_kg_m2)).tolist()),
    )
    if not gets_heavier:
        system = dataclasses.replace(system, load=heavy)
    plant, inputs = ElasticPlant(system, ground_spawn(system)), PlantInputs.zeros(system)
    for k in range(250):
        plant.step(inputs)
        if k == 50 and gets_heavier:
            plant.apply(LoadMass(mass_kg=mass_kg))
    half_m = system.load.collision.size_m[2] / 2.0
    assert plant.state.position_enu_m[0, 2] == pytest.approx(half_m - 1e-4, abs=2e-6)
    weight_n = max(cable.mass_kg for cable in system.cables) * G
    assert plant.state.tension_n.max() < 2.0 * weight_n


def test_a_line_that_is_stretched_beyond_all_rubber_is_refused():
    system = load_system("x500_trio")
    with pytest.raises(ConfigError, match=r"system\.cables\.0\.elastic: .* N at the start would"):
        hovering(system, ea_n=0.5)


def test_tension_of_a_slack_cable_is_never_negative():
    """Load and drones fall, the drones go up again: end lumps push by 0.37 N, no tension."""
    plant, inputs, _ = hovering(load_system("x500_trio"))
    pushed = 0.0
    for k in range(250):
        inputs.rotor_command_rad_s[:] = 0.0 if k < 60 else 900.0
        plant.step(inputs)
        assert plant.state.tension_n.min() >= 0.0
        nodes = plant.cable_nodes_enu_m(0)
        along = (nodes[1] - nodes[0]) / np.linalg.norm(nodes[1] - nodes[0])
        pushed = min(pushed, plant.end_force_n(0, 0) @ along)
    assert pushed < -0.1


def test_tension_balances_the_load_in_motion():
    """m (a - g) = sum of the cable forces, mean over a step against its end: a smooth manoeuvre."""
    plant, inputs, _ = hovering(load_system("x500_trio"))
    inputs.rotor_command_rad_s *= np.array([[1.06], [1.0], [0.96]])
    for _ in range(100):
        plant.step(inputs)
    engine = plant
    pull = sum(engine.end_force_n(i, 0) for i in range(3))
    expected = 1.66 * (engine.body(0, "acceleration") + [0, 0, G])
    assert np.abs(engine.body(0, "acceleration")).max() > 0.3
    assert pull == pytest.approx(expected, abs=1e-6)


def test_hover_thrust_and_pushes_change_momentum_exactly():
    system = without_drag(load_system("x500_trio"))
    plant, inputs, _ = hovering(system, ground_height_enu_m=None)
    before = momenta(plant.tables)[0]
    push = np.array([0.4, -0.3, 0.6])
    inputs.wrench_enu[0, 3:] = push
    for _ in range(5):
        plant.step(inputs)
    gained = momenta(plant.tables)[0] - before
    assert gained == pytest.approx(push * 0.02, abs=2e-5)  # the thrusts turn with the drones
    inputs.rotor_command_rad_s[:] = 0.0
    plant.state.rotor_speed_rad_s[:] = 0.0
    before = momenta(plant.tables)[0]
    for _ in range(25):
        plant.step(inputs)
    gained = momenta(plant.tables)[0] - before
    expected = (push - np.array([0.0, 0.0, system.mass_kg * G])) * 0.1
    assert gained == pytest.approx(expected, abs=1e-10)


def test_one_of_four_lost_and_let_go_the_momentum_is_exact():
    """Neither the loss nor the hook changes momentum; with all motors off only the weight does."""
    system = without_drag(load_system("x500_quad"))
    plant, inputs, _ = hovering(system, ground_height_enu_m=None)
    plant.apply(RotorEfficiency(1, None, 0.0))
    for _ in range(40):
        plant.step(inputs)
    before = momenta(plant.tables)[0]
    assert before[2] < -1.0  # it falls, and the load begins to lean
    plant.apply(ReleaseHook(1, "load"))
    inputs.rotor_command_rad_s[:] = 0.0
    plant.state.rotor_speed_rad_s[:] = 0.0
    assert momenta(plant.tables)[0] == pytest.approx(before, abs=1e-12)
    for _ in range(50):
        plant.step(inputs)
    gained = momenta(plant.tables)[0] - before
    assert gained == pytest.approx([0.0, 0.0, -system.mass_kg * G * 0.2], abs=1e-6)


def test_wrench_body_turns_with_the_body():
    plant, inputs, _ = hovering(load_system("x500_trio"), ground_height_enu_m=None)
    inputs.wrench_body[2] = [0.0, 0.0, 0.01, 0.0, 0.0, 0.5]
    before = plant.body(2, "acceleration").copy()
    up = plant.body(2, "rotation")[:, 2].copy()
    plant.step(inputs)
    gained = plant.body(2, "velocity") / 0.004
    assert gained @ up > 0.5 / 2.11 * 0.3
    assert before == pytest.approx(np.zeros(3), abs=1e-6)
    assert plant.state.omega_body_rad_s[2, 2] > 0.0


def test_a_failed_rotor_loses_its_thrust():
    plant, inputs, _ = hovering(load_system("x500_trio"))
    plant.apply(RotorEfficiency(2, 1, 0.0))
    plant.step(inputs)
    assert plant.state.acceleration_enu_m_s2[2, 2] < -0.5
    plant.apply(RotorEfficiency(2, 1, 1.0))
    with pytest.raises(ConfigError, match="drone 9"):
        plant.apply(RotorEfficiency(9, None, 0.0))
    with pytest.raises(ConfigError, match="elastic"):
        plant.apply(Change())


def test_prescribed_drones_are_where_they_are_told_and_the_work_is_accounted_for():
    system = load_system("x500_trio")
    plant, inputs, _ = hovering(system)
    start = plant.state.position_enu_m[1:].copy()
    turned = plant.state.orientation_wxyz[1:].copy()

    def pose(time):
        return start + [0.2 * (1.0 - np.cos(2.0 * time)), 0.1 * np.sin(time) ** 2, 0.0], turned

    inputs.motion = PrescribedMotion(pose)
    for _ in range(500):
        plant.step(inputs)
    assert plant.state.position_enu_m[1:] == pytest.approx(pose(2.0)[0], abs=1e-9)
    assert plant.state.orientation_wxyz[1:] == pytest.approx(turned, abs=1e-9)
    audit = plant.audit
    assert audit.absolute_work_j > 0.1
    assert abs(audit.missing_j) < 0.02 * audit.absolute_work_j
    # What the drones need: weight of everything, up to the motion.
    total = sum(plant.holding_wrench(1 + i)[2] for i in range(plant.system.n_drones))
    assert total == pytest.approx(system.mass_kg * G, rel=0.1)


def test_the_order_of_the_cables_does_not_matter():
    system = load_system("x500_trio")
    order = [2, 0, 1]
    load = dataclasses.replace(
        system.load, cable_attachments_m=tuple(system.load.cable_attachments_m[k] for k in order)
    )
    shuffled = dataclasses.replace(
        system,
        load=load,
        drones=tuple(system.drones[k] for k in order),
        cables=tuple(system.cables[k] for k in order),
    )
    results = []
    for which, rows in ((system, [0, 1, 2]), (shuffled, order)):
        places = formation(system)[rows]
        rest = hanging_equilibrium(which, places)
        speeds = trim_speeds_rad_s(which, rest)
        plant = ElasticPlant(which, rest.configuration, rotor_speed_rad_s=speeds)
        inputs = PlantInputs.zeros(which)
        factors = np.array([1.05, 1.0, 0.97])[rows]
        inputs.rotor_command_rad_s[:] = speeds * factors[:, None]
        inputs.wrench_enu[0, 3:] = [0.3, 0.1, 0.0]
        for _ in range(50):
            plant.step(inputs)
        back = np.argsort([0, *(1 + np.array(rows))])
        results.append(plant.state.motion[back].copy())
    same = np.sign(np.sum(results[0][:, 6:10] * results[1][:, 6:10], axis=1))
    results[1][:, 6:10] *= same[:, None]  # q and -q are the same rotation
    assert results[0] == pytest.approx(results[1], abs=1e-6)


@pytest.mark.slow
def test_a_stiff_line_flies_as_the_rigid_links_do():
    """EA 1e6 N without bending, a manoeuvre of 0.4 s."""
    base = load_system("x500_trio_swivel")
    joint = dataclasses.replace(base.cables[0].joint, damping_n_m_s_rad=1e-5)
    cables = tuple(dataclasses.replace(k, joint=joint) for k in base.cables)
    system = dataclasses.replace(base, cables=cables)
    rest = hanging_equilibrium(system, formation(system))
    speeds = trim_speeds_rad_s(system, rest)
    ends = []
    start = {"start": rest.configuration, "rotor_speed_rad_s": speeds}
    for plant in (
        RigidLinksPlant(system, physics_step_s=0.001, **start),
        RigidLinksPlant(system, physics_step_s=0.0005, **start),
        ElasticPlant(system, ea_n=1e6, **start),
    ):
        inputs = PlantInputs.zeros(system)
        inputs.rotor_command_rad_s[:] = speeds * [[1.05], [1.0], [0.97]]
        for _ in range(100):
            plant.step(inputs)
        ends.append(plant.state.position_enu_m.copy())
    moved = np.abs(ends[0][0] - rest.configuration.load_position_enu_m).max()
    assert moved > 0.02
    assert np.abs(ends[0] - ends[1]).max() < 0.001 * moved
    assert np.abs(ends[2] - ends[1]).max() < 0.01 * moved


def test_a_scenario_builds_it_on_the_ground_in_the_air_and_in_a_state():
    system = load_system("x500_trio")
    hanging = hang(system, with_places(formation(system)))

    def made(start):
        return build(PlantSetup(system, start, PhysicsSpec(), hanging))

    assert made(StartSpec()).state.position_enu_m[0, 2] == pytest.approx(0.05, abs=1e-6)
    assert made(StartSpec(kind="air")).state.tension_n.min() > 5.0
    drones = tuple(
        BodyState(position_enu_m=tuple(place), velocity_enu_m_s=(0.2, 0.0, 0.0))
        for place in formation(system, height=2.5)
    )
    load = BodyState(position_enu_m=(0.0, 0.0, 1.0), velocity_enu_m_s=(0.2, 0.0, 0.0))
    plant = made(StartSpec(kind="state", load=load, drones=drones))
    assert plant.state.position_enu_m[1:] == pytest.approx(formation(system, height=2.5), abs=1e-6)
    assert plant.state.velocity_enu_m_s[:, 0] == pytest.approx(0.2)
    before = momenta(plant.tables)[0]
    assert before[0] == pytest.approx(0.2 * system.mass_kg)
    plant.step(PlantInputs.zeros(system))
    assert plant.state.acceleration_enu_m_s2[0, 2] == pytest.approx(-G, rel=0.02)
