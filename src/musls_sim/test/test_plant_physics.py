"""The rigid-link plant, and its skeleton in DART, against closed forms and invariants."""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest
from plant_helpers import G, advance, energy, hovering_plant, momenta, trio
from scipy.special import jn_zeros

from musls_description.config.errors import MuslsError
from musls_description.hanging.ground import ground_spawn
from musls_description.hanging.tree import build_tree
from musls_description.system.system_files import load_system, system_names
from musls_sim.plants.dart.skeleton import build_skeleton, build_world
from musls_sim.plants.rigid_links.plant import RigidLinksPlant
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session

SHIPPED = Path(__file__).parents[2] / "musls_bringup" / "musls_bringup" / "scenarios"


def tumbling(system, step):
    """The system thrown without rotors or ground, random velocities."""
    plant, _, _ = hovering_plant(system, ground_height_enu_m=None, physics_step_s=step)
    plant.state.rotor_speed_rad_s[:] = 0.0
    rng = np.random.default_rng(5)
    plant.start_moving(0.1 * rng.normal(size=plant.tree.n_coordinates))
    return plant


def test_free_fall_keeps_momentum():
    """Only gravity: p(t) = p0 - m g t, angular momentum about the centre of mass is constant.

    At every step, to rounding.
    """
    sizes = []
    for step in (4e-3, 2e-3, 1e-3):
        plant = tumbling(trio(), step)
        command = np.zeros_like(plant.state.rotor_speed_rad_s)
        before = np.concatenate(momenta(plant))
        for _ in range(125):
            advance(plant, command)
        before[2] -= plant.system.mass_kg * G * plant.time_s
        sizes.append(np.linalg.norm(np.concatenate(momenta(plant)) - before))
    assert max(sizes) < 1e-9


def test_energy_never_grows_without_input():
    """Joint damping only: mechanical energy falls in every step."""
    system = trio()
    plant = tumbling(system, 5e-4)
    command = np.zeros_like(plant.state.rotor_speed_rad_s)
    energies = [energy(plant)]
    for _ in range(250):
        advance(plant, command)
        energies.append(energy(plant))
    rise = np.diff(energies).max()
    assert rise < 1e-3 * (energies[0] - energies[-1])
    assert energies[-1] < energies[0] - 0.01


def locked_chain(links, damping=0.0, mass=1.0):
    """Skeleton and world of one hanging 1 m chain: the load fixed, a mote instead of the drone."""
    solo = load_system("x500_solo")
    cable = dataclasses.replace(
        solo.cables[0],
        mass_kg=mass,
        length_m=1.0,
        radius_m=1e-4,
        links=links,
        joint=dataclasses.replace(solo.cables[0].joint, damping_n_m_s_rad=damping),
    )
    tiny = tuple(tuple(1e-12 * (i == j) for j in range(3)) for i in range(3))
    mote = dataclasses.replace(
        solo.drones[0],
        mass_kg=1e-9,
        inertia_kg_m2=tiny,
        cable_attachment_m=(0.0, 0.0, 0.0),
        rotors=tuple(dataclasses.replace(r, drag_n_s2_m_rad=0.0) for r in solo.drones[0].rotors),
    )
    system = dataclasses.replace(solo, cables=(cable,), drones=(mote,))
    skeleton = build_skeleton(build_tree(system))
    import dartpy

    skeleton.getJoint(0).setActuatorType(dartpy.dynamics.ActuatorType.LOCKED)
    positions = np.zeros(skeleton.getNumDofs())
    positions[6] = np.pi  # first link straight down
    skeleton.setPositions(positions)
    return skeleton, build_world(skeleton, 1e-3, 9.81)


def swing_frequencies(links):
    """Small-oscillation frequencies about hanging rest in the plane of the first axes [rad/s]."""
    skeleton, _world = locked_chain(links)
    rest = skeleton.getPositions()
    planar = np.arange(6, 6 + 2 * links, 2)
    mass = skeleton.getMassMatrix()[np.ix_(planar, planar)]
    stiffness = np.empty_like(mass)
    for column, k in enumerate(planar):
        forces = []
        for sign in (1.0, -1.0):
            moved = rest.copy()
            moved[k] += sign * 1e-5
            skeleton.setPositions(moved)
            forces.append(skeleton.getGravityForces()[planar])
        stiffness[:, column] = (forces[0] - forces[1]) / 2e-5
    squares = np.linalg.eigvals(np.linalg.solve(mass, stiffness)).real
    return np.sqrt(np.sort(squares))[:3]


def test_hanging_chain_frequencies_converge_to_the_bessel_zeros():
    """Heavy string of 1 m: omega_n = j_0n / 2 sqrt(g / L)."""
    exact = jn_zeros(0, 3) / 2.0 * np.sqrt(9.81)
    assert exact == pytest.approx([3.766067, 8.644696, 13.552136], abs=1e-6)
    errors = np.array([abs(swing_frequencies(n) / exact - 1.0) for n in (5, 10, 20, 40)])
    assert (errors[-1] < [2e-4, 1e-3, 3e-3]).all()
    assert (errors[1:] < 0.5 * errors[:-1]).all()


def test_hanging_chain_swings_at_its_frequency():
    """First mode in the time domain: zero crossings of the tip a half period apart."""
    links = 20
    skeleton, world = locked_chain(links)
    positions = skeleton.getPositions()
    positions[6] += 0.01
    skeleton.setPositions(positions)
    tip = skeleton.getBodyNode(links)
    xs = []
    for _ in range(8000):
        world.step()
        xs.append(tip.getWorldTransform().translation()[0])
    x = np.array(xs)
    spectrum = np.abs(np.fft.rfft(x * np.hanning(len(x)), 16 * len(x)))
    omega = 2.0 * np.pi * np.fft.rfftfreq(16 * len(x), 1e-3)[spectrum.argmax()]
    assert omega == pytest.approx(3.766067, rel=5e-3)


@pytest.mark.parametrize("name", system_names(slung=True))
def test_equilibrium_start_rests_and_shows_the_static_tension(name):
    """After one second of constant rotor speeds nothing has moved by more than 1 mm."""
    plant, speeds, rest = hovering_plant(load_system(name), ground_height_enu_m=None)
    start = plant.state.position_enu_m.copy()
    nodes = [plant.cable_nodes_enu_m(i) for i in range(plant.system.n_drones)]
    advance(plant, speeds)
    assert np.allclose(plant.state.tension_n[:, 0], rest.load_end_tension_n, rtol=2e-3)
    top = [c.mass_kg * G for c in plant.system.cables]
    upper = np.linalg.norm(rest.cable_force_n + np.outer(top, [0, 0, 1]), axis=1)
    assert np.allclose(plant.state.tension_n[:, 1], upper, rtol=2e-3)
    for _ in range(249):
        advance(plant, speeds)
    assert np.abs(plant.state.position_enu_m - start).max() < 1e-3
    for i, before in enumerate(nodes):
        assert np.abs(plant.cable_nodes_enu_m(i) - before).max() < 1e-3


def test_tension_balances_the_load_in_motion():
    """m (a - g) = sum of the cable forces (eq. 4), in a manoeuvre with unequal thrusts."""
    plant, speeds, _ = hovering_plant(load_system("x500_trio"))
    command = speeds * np.array([[1.1], [1.0], [0.95]])
    largest = 0.0
    for _ in range(100):
        directions = [np.diff(plant.cable_nodes_enu_m(i)[:2], axis=0)[0] for i in range(3)]
        frames = [plant.records.bodies["rotation"][k].copy() for k in plant.tree.first_link]
        advance(plant, command)
        then = [plant.records.bodies["rotation"][k] for k in plant.tree.first_link]
        middle = [0.5 * (a + b) for a, b in zip(frames, then, strict=True)]
        pull = sum(f @ c for f, c in zip(middle, plant.state.cable_force_n[:, 0], strict=True))
        expected = 1.66 * (plant.state.acceleration_enu_m_s2[0] + [0, 0, G])
        assert np.allclose(pull, expected, atol=1e-3)
        largest = max(largest, np.abs(plant.state.acceleration_enu_m_s2[0]).max())
        assert np.allclose(
            [f[:, 0] for f in frames], [d / np.linalg.norm(d) for d in directions], atol=1e-9
        )
    assert largest > 0.5, "the load must move for the test to mean something"


def test_cables_in_free_fall_are_slack():
    plant, speeds, _ = hovering_plant(load_system("x500_trio"), ground_height_enu_m=None)
    plant.state.rotor_speed_rad_s[:] = 0.0
    advance(plant, np.zeros_like(speeds))
    assert np.abs(plant.state.tension_n).max() < 1e-6


def test_hover_thrust_lifts_exactly_the_weight():
    """One drone whose rotors carry all: vertical acceleration (thrust - weight) / mass."""
    system = load_system("x500_solo")
    plant, speeds, _ = hovering_plant(system)
    assert 4 * 8.54858e-6 * speeds[0, 0] ** 2 == pytest.approx(system.mass_kg * G, rel=1e-9)
    faster = speeds * np.sqrt(1.1)
    plant.state.rotor_speed_rad_s[:] = faster
    advance(plant, faster)
    assert np.allclose(plant.state.acceleration_enu_m_s2[:, 2], 0.1 * G, rtol=1e-6)


def test_reaction_torque_turns_the_drone_against_its_rotors():
    system = load_system("x500_solo")
    plant, speeds, _ = hovering_plant(system)
    command = speeds * np.array([1.05, 1.05, 0.95, 0.95])  # faster counter-clockwise rotors
    for _ in range(20):
        advance(plant, command)
    assert plant.state.omega_body_rad_s[1, 2] < -0.01


@pytest.mark.parametrize("name", system_names(slung=True))
def test_ground_holds_load_drones_and_cables(name):
    system = load_system(name)
    plant = RigidLinksPlant(system, ground_spawn(system))
    start = plant.state.position_enu_m.copy()
    off = np.zeros_like(plant.state.rotor_speed_rad_s)
    speeds = []
    for _ in range(500):
        advance(plant, off)
        speeds.append(np.abs(plant.state.velocity_enu_m_s).max(axis=1))
    assert np.abs(plant.state.position_enu_m - start).max() < 0.02
    # Light drones hop by fractions of a millimetre now and then, at up to 0.3 m/s.
    assert np.median(speeds[250:], axis=0).max() < 0.03
    for i in range(system.n_drones):
        assert plant.cable_nodes_enu_m(i)[:, 2].min() > -0.01


def test_body_drag_decelerates_exponentially_in_still_air_and_follows_the_wind():
    base = load_system("x500_solo")
    drag = (0.5, 0.5, 0.5)
    system = dataclasses.replace(
        base,
        load=dataclasses.replace(base.load, drag_n_s_m=drag),
        drones=tuple(dataclasses.replace(d, drag_n_s_m=drag) for d in base.drones),
    )
    plant, speeds, _ = hovering_plant(system)
    wind = np.array([1.0, 0.0, 0.0])
    advance(plant, speeds, wind)
    # Both bodies are pushed by c w / m; the cable couples them only later.
    rotor = 4 * 8.06428e-5 * speeds[0, 0]
    assert plant.state.acceleration_enu_m_s2[0, 0] == pytest.approx(0.5 / 0.5, rel=0.02)
    assert plant.state.acceleration_enu_m_s2[1, 0] == pytest.approx(
        (0.5 + rotor) / base.drones[0].mass_kg, rel=0.05
    )


def test_without_dart_flights_go_on_and_its_engine_says_what_is_missing(monkeypatch):
    """A server without libGL cannot import dartpy, which only one engine needs."""
    monkeypatch.setitem(sys.modules, "dartpy", None)
    for name in ("skeleton", "dart_plant"):
        monkeypatch.delitem(sys.modules, f"musls_sim.plants.dart.{name}", raising=False)
    scenario = load_scenario(SHIPPED / "hold.yaml", ["physics.engine=dart"])
    with pytest.raises(MuslsError, match=r"DART cannot be loaded: .*pip install dartpy"):
        Session(scenario)
