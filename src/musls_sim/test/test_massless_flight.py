"""Massless cables in whole flights: starts, ground, events in the record, point masses, errors."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from massless_rigs import level, motion_now, pair, run, system_of
from plant_helpers import formation
from scipy.spatial.transform import Rotation

from musls_control.estimate import BodyMotion
from musls_description.config.errors import ConfigError
from musls_description.hanging.equilibrium import freed, hanging_equilibrium, on_massless_cables
from musls_description.hanging.ground import ground_spawn
from musls_description.system.drone import NO_INERTIA
from musls_description.system.obstacles import BoxObstacle, PlaneObstacle
from musls_description.system.system_files import load_system
from musls_sim.plants.elastic.plant import ElasticPlant
from musls_sim.plants.interface import PlantInputs, PrescribedMotion, RotorEfficiency
from musls_sim.plants.massless.light_lines import MasslessPlant
from musls_sim.plants.rigid_body import contact_step_s, feet_constants
from musls_sim.plants.rigid_links.plant import RigidLinksPlant
from musls_sim.plants.trim import trim_speeds_rad_s
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session

G = 9.80665
SHIPPED = Path(__file__).parents[2] / "musls_bringup" / "musls_bringup" / "scenarios"


def scenario(*overrides, name="hold"):
    return load_scenario(SHIPPED / f"{name}.yaml", ["cable_model=massless", *overrides])


def hovering(system, **options):
    rest = on_massless_cables(hanging_equilibrium(freed(system), formation(system)), G)
    motion = BodyMotion.of(*rest.bodies)
    speeds = trim_speeds_rad_s(system, rest)
    return MasslessPlant(system, motion, rotor_speed_rad_s=speeds, **options), speeds


@pytest.mark.parametrize("name", ["x500_solo", "x500_trio", "x500_hexa", "crazyflie_trio"])
def test_a_start_in_the_air_is_an_equilibrium(name):
    system = load_system(name)
    share = min(1.0, system.cables[0].length_m / 2.0)
    places = formation(system, radius=share, height=1.2 + 2.0 * share)
    rest = on_massless_cables(hanging_equilibrium(system, places), G)
    motion = BodyMotion.of(*rest.bodies)
    speeds = trim_speeds_rad_s(system, rest)
    plant = MasslessPlant(system, motion, rotor_speed_rad_s=speeds)
    first = plant.state.position_enu_m.copy()
    np.testing.assert_allclose(plant.state.tension_n[:, 0], rest.load_end_tension_n, rtol=1e-5)
    inputs = PlantInputs.zeros(system)
    inputs.rotor_command_rad_s[:] = speeds
    for _ in range(25):
        plant.step(inputs)
    assert np.abs(plant.state.position_enu_m - first).max() < 1e-6
    assert plant.happened == [] and plant.taut.all()


def test_bodies_stand_on_the_ground_and_do_not_creep():
    system = load_system("x500_trio")
    plant = MasslessPlant(system, BodyMotion.of(*ground_spawn(system).bodies(system)))
    inputs = PlantInputs.zeros(system)
    inputs.wrench_enu[0, 3] = 0.5  # far below friction
    first = plant.state.position_enu_m.copy()
    for _ in range(250):
        plant.step(inputs)
    then = plant.state.position_enu_m.copy()
    assert np.abs(then - first).max() < 1e-3
    refined = plant.refined_periods
    for _ in range(250):
        plant.step(inputs)
    assert np.abs(plant.state.position_enu_m - then).max() < 1e-8
    assert plant.spurious_energy_j < 1e-4 and plant.happened == []
    assert plant.refined_periods == refined < 20  # what stands still takes the steps of the air


def test_a_drone_in_the_corner_of_two_walls_comes_to_rest():
    """On eight corners and three surfaces it is too stiff for the steps of one that stands on four.

    With those it would shake at 3 mm/s and make 0.08 J.
    """
    system = load_system("x500_trio")
    start = BodyMotion.of(*ground_spawn(system).bodies(system))
    x, y = start.position_enu_m[1, :2]
    side = 1.2 * system.drones[0].collision.corners_m[:, :2].max()
    walls = (
        BoxObstacle(name="east", size_m=(0.1, 1.0, 1.0), position_enu_m=(x + side + 0.05, y, 0.5)),
        BoxObstacle(name="north", size_m=(1.0, 0.1, 1.0), position_enu_m=(x, y + side + 0.05, 0.5)),
    )
    plant = MasslessPlant(system, start, obstacles=walls)
    inputs = PlantInputs.zeros(system)
    inputs.wrench_enu[1, 3:5] = 15.0
    for _ in range(1000):
        plant.step(inputs)
    assert np.abs(plant.state.velocity_enu_m_s[1]).max() < 1e-6
    assert plant.spurious_energy_j < 0.01


def test_a_floor_in_the_place_of_the_ground_makes_no_energy():
    """Two surfaces under each foot are stiffer together: 6 J in two seconds with steps for one."""
    system = load_system("x500_trio")
    floors = [
        PlaneObstacle(name=name, point_enu_m=(0.0, 0.0, 0.0), normal_enu=(0.0, 0.0, 1.0))
        for name in ("floor", "carpet")
    ]
    start = BodyMotion.of(*ground_spawn(system).bodies(system))
    start.position_enu_m[1:, 2] += 0.01
    plant = MasslessPlant(system, start, obstacles=floors)
    for _ in range(500):
        plant.step(PlantInputs.zeros(system))
    assert plant.spurious_energy_j < 0.02


def test_the_fastest_motion_of_a_body_on_its_feet_is_damped_critically():
    """Tilt about x of a frame on feet at (+-a, +-b, -h), which takes its slide along y with it."""
    mass_kg, roll = 2.0, 0.02
    a, b, h = 0.25, 0.3, 0.2
    corners = np.array([[x, y, z] for x in (a, -a) for y in (b, -b) for z in (-h, 2.0 * h)])
    inertia = np.diag([roll, roll, 0.04])
    k, c = feet_constants(mass_kg, inertia, corners)
    assert k == pytest.approx(mass_kg * 9.80665 / 4.0 / 5e-4)
    slide, tilt = 4.0 / mass_kg, 4.0 * (b**2 + h**2) / roll
    coupled = 16.0 * h**2 / (mass_kg * roll)
    fastest = 0.5 * (slide + tilt) + np.sqrt(0.25 * (slide - tilt) ** 2 + coupled)
    assert c * fastest == pytest.approx(2.0 * np.sqrt(k * fastest))
    assert contact_step_s(mass_kg, inertia, corners) == pytest.approx(0.9 / np.sqrt(k * fastest))


@pytest.mark.parametrize("speed_m_s", [3.0, 6.0])
def test_a_drone_that_falls_on_one_corner_bounces_as_spring_and_damper_say(speed_m_s):
    """Corner below the centre: no moment. Damping of half the critical one, as k m = c^2.

    The rebound of a spring and damper that do not pull: Schwager and Poeschel, Phys. Rev. E 75,
    051304 (2007).
    """
    system = load_system("x500_trio")
    start = BodyMotion.of(*ground_spawn(system).bodies(system))
    lowest = min(system.drones[0].collision.corners_m, key=lambda place: place[2])
    turn, _ = Rotation.align_vectors([[0.0, 0.0, -1.0]], [lowest])
    start.orientation_wxyz[1] = turn.as_quat()[[3, 0, 1, 2]]
    start.position_enu_m[1, 2] = np.linalg.norm(lowest)
    start.velocity_enu_m_s[1, 2] = -speed_m_s
    plant = MasslessPlant(system, start)
    inputs = PlantInputs.zeros(system)
    fastest_m_s = -np.inf
    for _ in range(50):
        plant.step(inputs)
        fastest_m_s = max(fastest_m_s, plant.state.velocity_enu_m_s[1, 2])
    share = 0.5
    root = np.sqrt(1.0 - share**2)
    angle = np.pi - np.arctan2(2.0 * share * root, 1.0 - 2.0 * share**2)
    assert fastest_m_s / speed_m_s == pytest.approx(np.exp(-share / root * angle), abs=0.03)
    assert plant.spurious_energy_j < 1e-3


@pytest.mark.slow
def test_a_mission_from_the_ground_to_the_ground_tells_its_events():
    flight = scenario("estimation.kind=truth", name="circle")
    with Session(flight) as session:
        while not session.finished:
            session.advance(1)
        kinds = [e.kind for e in session.events.happened]
        times = [e.time_s for e in session.events.happened]
        assert session.result().landed
        assert not session.plant.taut.any()
        assert session.plant.spurious_energy_j < 0.05
    assert kinds.count("cable_taut") - kinds.count("cable_slack") == 0
    assert len(kinds) < 400 and times == sorted(times)


def test_events_are_told_by_the_session_in_their_time():
    thrown = {"position_enu_m": [0.0, 0.0, 1.0], "velocity_enu_m_s": [0.0, 0.0, 0.0]}
    state = {
        "kind": "state", "load": thrown,
        "drones": [{"position_enu_m": [x, y, 3.2]} for x, y in ((1, 0), (-0.5, 0.8), (-0.5, -0.8))],
    }  # fmt: skip
    flight = dataclasses.replace(
        scenario("mission.stages.0.duration_s=0.6", "estimation.kind=truth"),
    )
    data = dataclasses.replace(flight.start, kind="state", **_bodies(state))
    flight = dataclasses.replace(flight, start=data)
    with Session(flight) as session:
        session.advance(150)
        told = session.events.happened
    assert told and told[0].kind == "cable_taut"
    assert "impulse" in told[0].what and told[0].what.startswith("cable_")
    assert told[0].time_s % 0.004 > 1e-9  # inside a period, not at its end


def _bodies(state):
    from musls_sim.specs.physics import BodyState

    def body(entry):
        return BodyState(**{k: tuple(map(float, v)) for k, v in entry.items()})

    return {"load": body(state["load"]), "drones": tuple(body(d) for d in state["drones"])}


def test_a_point_mass_hangs_on_three_cables_and_does_not_turn():
    trio = load_system("x500_trio")
    load = dataclasses.replace(
        trio.load, inertia_kg_m2=NO_INERTIA, point_mass=True, cable_attachments_m=((0.0,) * 3,) * 3
    )
    system = dataclasses.replace(trio, load=load)
    plant, speeds = hovering(system)
    inputs = PlantInputs.zeros(system)
    inputs.rotor_command_rad_s[:] = speeds
    inputs.wrench_enu[0] = [1.0, 2.0, 3.0, 0.5, 0.0, 0.0]  # a moment has nothing to turn
    for _ in range(25):
        plant.step(inputs)
    np.testing.assert_array_equal(plant.state.omega_body_rad_s[0], 0.0)
    lengths = np.linalg.norm(
        [plant.cable_nodes_enu_m(i)[-1] - plant.state.position_enu_m[0] for i in range(3)], axis=1
    )
    np.testing.assert_allclose(lengths, 2.42, atol=1e-10)


def test_a_point_mass_is_a_body_without_arms():
    """The pair of RotorTM, as a body held in its centre and as a point."""
    ends = []
    for point in (False, True):
        system = pair()
        if point:
            load = dataclasses.replace(system.load, inertia_kg_m2=NO_INERTIA, point_mass=True)
            system = dataclasses.replace(system, load=load)
        plant = level(system, [[0, 0, 0], [0, 0, 0.5]], [[1.0, 0.2, 0.0], [0.0, 0.0, 0.0]])
        run(plant, 3.2, 0.5)
        ends.append(plant.state.position_enu_m.copy())
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-14)


@pytest.mark.parametrize("change", [{"point_mass": True}, {"inertia_kg_m2": NO_INERTIA}])
def test_a_load_has_either_inertia_or_a_point_mass(change):
    with pytest.raises(ValueError, match=r"one of shape .*, inertia_kg_m2 and point_mass"):
        dataclasses.replace(load_system("x500_trio").load, **change)


def test_starts_that_cannot_be_are_refused_in_one_line():
    system = load_system("x500_trio")
    motion = BodyMotion.of(*ground_spawn(system).bodies(system))
    motion.position_enu_m[2] += [0.0, 0.0, 3.0]
    with pytest.raises(ConfigError, match=r"cable_2 of 2.42 m does not reach over .* drone_2"):
        MasslessPlant(system, motion)
    with pytest.raises(ConfigError, match="drone 9"):
        MasslessPlant(system, BodyMotion.of(*ground_spawn(system).bodies(system))).apply(
            RotorEfficiency(9, None, 0.0)
        )


def test_a_failed_drone_falls_into_its_cable():
    system = load_system("x500_trio")
    plant, speeds = hovering(system)
    inputs = PlantInputs.zeros(system)
    inputs.rotor_command_rad_s[:] = speeds
    plant.apply(RotorEfficiency(1, None, 0.0))
    for _ in range(50):
        plant.step(inputs)
    assert plant.happened[0].what == "cable_1"
    assert plant.state.acceleration_enu_m_s2[1, 2] < -9.0


def test_prescribed_drones_move_the_load_and_the_work_is_accounted_for():
    """Three drones carried round together: the load goes along, energy is what they put in."""
    system = load_system("x500_trio")
    plant, _ = hovering(system, ground_height_enu_m=None)
    start, turn = plant.state.position_enu_m[1:].copy(), plant.state.orientation_wxyz[1:].copy()

    def path(time_s):
        way = 0.4 * (1.0 - np.cos(1.7 * time_s))
        return start + [way, 0.3 * way, 0.5 * way], turn

    inputs = PlantInputs.zeros(system)
    inputs.motion = PrescribedMotion(path)
    for _ in range(500):
        plant.step(inputs)
        assert np.abs(plant.records.cables["gap"])[plant.taut].max() < 1e-8
    np.testing.assert_allclose(plant.state.position_enu_m[1:], path(2.0)[0], atol=1e-12)
    audit = plant.reaction.audit
    assert abs(audit.missing_j) < 1e-4 * audit.absolute_work_j + 1e-9
    pull = plant.reaction.end_force_n.sum(axis=0)
    expected = system.load.mass_kg * (plant.state.acceleration_enu_m_s2[0] + [0.0, 0.0, G])
    np.testing.assert_allclose(pull, expected, atol=0.02)


# ---------- Limits of the other models


def swung(plant, speeds, duration_s=0.6):
    """Motion of load and drones after a push on the load."""
    inputs = PlantInputs.zeros(plant.system)
    inputs.rotor_command_rad_s[:] = speeds
    inputs.wrench_enu[0, 3:] = [2.0, 1.0, 0.0]
    for _ in range(round(duration_s / 0.004)):
        plant.step(inputs)
    return plant.state.position_enu_m - plant_start(plant)


def plant_start(plant):
    return plant.first_position


def light(system, factor, links):
    cables = tuple(
        dataclasses.replace(k, mass_kg=k.mass_kg * factor, links=links) for k in system.cables
    )
    return dataclasses.replace(system, cables=cables)


@pytest.mark.slow
def test_stiff_light_elastic_cables_become_massless_ones():
    system = load_system("x500_trio")
    plant, speeds = hovering(system, ground_height_enu_m=None)
    plant.first_position = plant.state.position_enu_m.copy()
    way = swung(plant, speeds)
    misses = []
    for factor, ea in ((1.0, 1e4), (0.1, 1e5), (0.01, 1e6)):
        fine = light(system, factor, 4)
        rest = hanging_equilibrium(fine, formation(fine))
        other = ElasticPlant(
            fine, rest.configuration, ea_n=ea, physics_step_s=0.0005,
            rotor_speed_rad_s=trim_speeds_rad_s(fine, rest), ground_height_enu_m=None,
        )  # fmt: skip
        other.first_position = other.state.position_enu_m.copy()
        misses.append(np.abs(swung(other, trim_speeds_rad_s(fine, rest)) - way).max())
    print("elastic", misses)
    assert misses[1] < 0.2 * misses[0] and misses[2] < 0.3 * misses[1]
    assert misses[2] < 3e-4


@pytest.mark.slow
def test_light_rigid_links_become_massless_cables():
    system = load_system("x500_trio_swivel")
    plant, speeds = hovering(system, ground_height_enu_m=None)
    plant.first_position = plant.state.position_enu_m.copy()
    way = swung(plant, speeds)
    misses = []
    for factor in (1.0, 0.1, 0.01):
        fine = light(system, factor, 1)
        joint = dataclasses.replace(fine.cables[0].joint, damping_n_m_s_rad=1e-6)
        fine = dataclasses.replace(
            fine, cables=tuple(dataclasses.replace(k, joint=joint) for k in fine.cables)
        )
        rest = hanging_equilibrium(fine, formation(fine))
        speeds = trim_speeds_rad_s(fine, rest)
        other = RigidLinksPlant(
            fine, rest.configuration, rotor_speed_rad_s=speeds, physics_step_s=0.00025,
            ground_height_enu_m=None,
        )  # fmt: skip
        other.first_position = other.state.position_enu_m.copy()
        misses.append(np.abs(swung(other, speeds) - way).max())
    print("rigid links", misses)
    assert misses[1] < 0.2 * misses[0] and misses[2] < 1e-3


def test_the_random_rigs_are_what_they_say():
    system = system_of([1.0], [[0.0, 0.0, 0.0]], [[0.1, 0.0, 0.0]])
    plant = level(system, [[0, 0, 0], [-0.1, 0, 1.0]])
    assert motion_now(plant).position_enu_m[1, 0] == -0.1 and plant.taut[0]
