"""Spawn geometry: slack on the ground, and static equilibrium in the air."""

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from musls_description.config.errors import ConfigError
from musls_description.hanging.equilibrium import (
    hanging_equilibrium,
    link_directions,
    root,
    slack_chain,
    weightless,
)
from musls_description.hanging.ground import ground_spawn
from musls_description.hanging.straight_cables import StraightCables, even_shares, share_balance
from musls_description.hanging.tree import (
    build_tree,
    configuration_from_directions,
    level_rotation,
    universal_chain,
)
from musls_description.system.drone import tip_radius_m
from musls_description.system.system_files import load_system, system_names

G = 9.80665


def forward_kinematics(system, configuration):
    """World pose of every body, written independently of the spawn code: straight from the tree."""
    tree = build_tree(system)
    q = configuration.coordinates
    poses = [(Rotation.from_rotvec(q[:3]).as_matrix(), q[3:6])]
    for k, body in enumerate(tree.bodies[1:], start=1):
        first = tree.first_coordinate[k]
        angles = q[first : first + len(body.axes)]
        turn = Rotation.from_euler(body.axes.upper(), angles).as_matrix()
        rotation, position = poses[body.parent]
        joint = position + rotation @ body.joint_in_parent_position_m
        child = rotation @ body.joint_in_parent_rotation @ turn @ body.joint_in_child_rotation.T
        poses.append((child, joint - child @ body.joint_in_child_position_m))
    return tree, poses


def formation(system, radius=1.0, height=3.2):
    n = system.n_drones
    azimuth = np.arange(n) * 2.0 * np.pi / n
    radius = radius if n > 1 else 0.0
    return np.column_stack([radius * np.cos(azimuth), radius * np.sin(azimuth), np.full(n, height)])


def test_universal_joints_point_where_they_are_asked_to():
    for direction in np.random.default_rng(1).normal(size=(50, 3)):
        direction /= np.linalg.norm(direction)
        angles, frame = universal_chain(np.eye(3), direction[None])
        assert np.allclose(frame[:, 0], direction)
        assert np.allclose(frame, Rotation.from_euler("YZ", angles).as_matrix())


@pytest.mark.parametrize("seed", range(8))
def test_a_free_cable_gives_its_drone_the_yaw_that_is_asked_for(seed):
    """Any chain, one that folds back on itself too: links and drone by forward kinematics."""
    rng, system = np.random.default_rng(seed), load_system("x500_trio_swivel")
    chains = rng.normal(size=(3, system.cables[0].links + 1, 3))
    chains /= np.linalg.norm(chains, axis=2, keepdims=True)
    yaws, load = rng.uniform(-3.0, 3.0, 3), Rotation.random(random_state=seed).as_matrix()
    tree, poses = forward_kinematics(
        system, configuration_from_directions(system, rng.normal(size=3), load, chains, yaws)
    )
    for chain, yaw, first, drone in zip(chains, yaws, tree.first_link, tree.drone, strict=True):
        links = np.array([poses[k][0][:, 0] for k in range(first, drone)])
        assert np.allclose(links, chain[:-1], atol=1e-9)
        assert np.allclose(poses[drone][0], level_rotation(chain[-1], yaw), atol=1e-7)


LINE = [(x, 0.0, 0.02) for x in (0.9, 0.45, 0.0, -0.45, -0.9)]
ROWS = [(x, y, 0.02) for x in (0.9, 0.3, -0.3, -0.9) for y in (0.1, -0.1)]
EDGE = [(1.35 * np.cos(a), 0.18 * np.sin(a), 0.01) for a in np.arange(12) * np.pi / 6.0]


@pytest.mark.parametrize(
    "places", [LINE, [(p[1], p[0], p[2]) for p in LINE], ROWS, EDGE, [(0, 0, 0)] * 4]
)
def test_drones_of_a_beam_stand_apart(places):
    one = load_system("x500_solo")
    load = dataclasses.replace(one.load, cable_attachments_m=tuple(places))
    system = dataclasses.replace(
        one, load=load, drones=one.drones * len(places), cables=one.cables * len(places)
    )
    spawn = ground_spawn(system)
    tree, poses = forward_kinematics(system, spawn)
    at = np.array([poses[k][1][:2] for k in tree.drone])
    gap = np.linalg.norm(at[:, None] - at, axis=2) + 10.0 * np.eye(len(places))
    assert gap.min() > 2.0 * tip_radius_m(one.drones[0]) + 0.2


@pytest.mark.parametrize("name", system_names(slung=True))
def test_ground_spawn_stands_on_the_ground_with_slack_cables(name):
    system = load_system(name)
    configuration = ground_spawn(system, (0.5, -0.3), 0.7)
    tree, poses = forward_kinematics(system, configuration)
    assert poses[0][1][2] + system.load.collision.bottom_m == pytest.approx(0.0, abs=1e-12)
    for i, drone in enumerate(system.drones):
        rotation, position = poses[tree.drone[i]]
        assert position[2] + drone.collision.bottom_m == pytest.approx(0.0, abs=1e-9)
        assert np.allclose(rotation[:, 2], [0, 0, 1], atol=1e-9)
        hook = position + rotation @ drone.cable_attachment_m
        anchor = poses[0][1] + poses[0][0] @ system.load.cable_attachments_m[i]
        distance = np.linalg.norm(hook - anchor)
        assert 0.85 * system.cables[i].length_m < distance < 0.95 * system.cables[i].length_m
        singular = np.abs(
            configuration.joint_angles_rad[i][: 2 * system.cables[i].links][1::2]
        ).max()
        assert np.degrees(singular) < 60.0
        nodes = np.array([poses[k][1] for k in range(tree.first_link[i], tree.drone[i])])
        assert nodes[:, 2].min() > 0.0


@pytest.mark.parametrize("name", system_names(slung=True))
def test_equilibrium_puts_drones_where_asked_and_balances_the_load(name):
    system = load_system(name)
    drones = formation(system, min(1.0, min(cable.length_m for cable in system.cables) / 2.0))
    rest = hanging_equilibrium(system, drones)
    tree, poses = forward_kinematics(system, rest.configuration)
    # Four and six cables leave their shares open: these drones are on springs.
    near_m = 1e-8 if system.n_drones < 4 else 2e-4
    for i in range(system.n_drones):
        assert np.allclose(poses[tree.drone[i]][1], drones[i], atol=near_m)
        assert np.allclose(poses[tree.drone[i]][1], drones[i] + rest.misfit_m[i], atol=1e-8)
    weight = np.array([0.0, 0.0, system.load.mass_kg * G])
    assert np.allclose(rest.cable_force_n.sum(axis=0), weight, atol=1e-8)
    arms = np.array(system.load.cable_attachments_m) @ poses[0][0].T
    assert np.allclose(np.cross(arms, rest.cable_force_n).sum(axis=0), 0.0, atol=1e-8)
    total = system.mass_kg * G
    assert np.allclose(rest.drone_force_n.sum(axis=0), [0, 0, total], atol=1e-8)


def test_three_drone_static_tension_closed_form():
    """Symmetric trio with massless cables: T = m g / (3 cos(angle)), angle by plain geometry."""
    system = load_system("x500_trio")
    sym = tuple((0.1 * np.cos(a), 0.1 * np.sin(a), 0.03) for a in np.arange(3) * 2.0 * np.pi / 3.0)
    system = dataclasses.replace(
        system,
        load=dataclasses.replace(system.load, cable_attachments_m=sym),
        drones=tuple(
            dataclasses.replace(d, cable_attachment_m=(0.0, 0.0, 0.0)) for d in system.drones
        ),
        cables=tuple(dataclasses.replace(c, mass_kg=1e-9) for c in system.cables),
    )
    rest = hanging_equilibrium(system, formation(system))
    sine = (1.0 - 0.1) / 2.42
    expected = 1.66 * G / (3.0 * np.sqrt(1.0 - sine**2))
    assert np.allclose(rest.load_end_tension_n, expected, rtol=1e-6)
    drop = 2.42 * np.sqrt(1.0 - sine**2) + 0.03
    assert rest.configuration.load_position_enu_m == pytest.approx([0, 0, 3.2 - drop], abs=1e-6)


def test_even_shares_of_upright_cables_follow_the_lever():
    """Cables at 1 m and -0.5 m of the centre: one and two thirds of the weight."""
    at_load = np.array([[1.0, 0.0, 0.1], [-0.5, 0.0, 0.1]])
    shares, missed = even_shares(share_balance(at_load, np.tile([0.0, 0.0, 1.0], (2, 1))))
    np.testing.assert_allclose(shares, [2.0 / 3.0, 4.0 / 3.0], atol=1e-5)
    assert missed < 1e-5
    off = np.array([[1.0, 0.0, 0.1], [0.5, 0.0, 0.1]])  # the centre of mass is not between them
    assert even_shares(share_balance(off, np.tile([0.0, 0.0, 1.0], (2, 1))))[1] > 0.1


@pytest.mark.parametrize("name", ["x500_trio", "x500_quad", "x500_hexa"])
def test_straight_cables_balance_where_light_chains_hang(name):
    """Forces, places and balance of the search are those of the equilibrium on massless cables."""
    system = weightless(load_system(name))
    rest = hanging_equilibrium(system, formation(system, height=2.3))
    hooks = np.array([
        turn @ drone.cable_attachment_m
        for turn, drone in zip(rest.drone_rotations, system.drones, strict=True)
    ])  # fmt: skip
    cables = StraightCables(
        system, G, clearance_m=0.0, steepest=1.0, shares=(0.0, 6.0), lean_rad=0.5, hooks_m=hooks
    )
    forces, n = rest.cable_force_n, system.n_drones
    x = cables.unknowns(forces[:, :2] / forces[:, 2:], n * forces[:, 2] / cables.weight_n)
    x[-2:] = Rotation.from_matrix(rest.load_rotation).as_rotvec()[:2]
    np.testing.assert_allclose(cables.forces(x) * cables.weight_n, forces, atol=1e-9)
    assert np.abs(cables.balance(x)).max() < 1e-3  # a load that is turned by yaw, too
    places = rest.bodies[0]
    np.testing.assert_allclose(cables.drones_at(x), places[1:] - places[0], atol=2e-3)
    assert cables.room(x).min() > 0.0


def test_link_directions_balance_every_link():
    """Moments about each link's centre vanish: link along the sum of the forces at its ends."""
    cable = load_system("x500_trio").cables[0]
    force = np.array([1.0, -2.0, 0.3])
    weight = cable.link_mass_kg * G * np.array([0, 0, 1.0])
    for j, direction in enumerate(link_directions(force, cable, G)):
        lower, upper = force + j * weight, force + (j + 1) * weight
        assert np.allclose(np.cross(direction, lower + upper), 0.0, atol=1e-12)


def test_chain_tends_to_the_catenary():
    """Many links: the sag approaches the smooth catenary's, quadratically in the link length."""
    base = load_system("x500_trio").cables[0]
    horizontal, rise = 0.5, 0.02 * G / 2.0
    a = horizontal / (0.02 * G / 2.42)
    height = a * (np.cosh(np.arcsinh(-rise / horizontal)) - 1.0)
    errors = []
    for links in (10, 20, 40):
        cable = dataclasses.replace(base, links=links)
        directions = link_directions(np.array([horizontal, 0.0, -rise]), cable, G)
        nodes = np.cumsum(directions * cable.link_length_m, axis=0)
        errors.append(abs(nodes[:, 2].min() + height))
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.2)
    assert errors[1] / errors[2] == pytest.approx(4.0, rel=0.2)


def test_out_of_reach_is_said():
    system = load_system("x500_trio")
    with pytest.raises(ConfigError, match=r"do not reach: drone_1 would be 2.9. m from .* 2.42 m"):
        hanging_equilibrium(system, formation(system, radius=3.0))


def test_of_many_roots_the_one_that_is_near():
    """x0 + x1 = 2 from (5, 1): straight down on the line, to (3, -1)."""
    found = root(lambda x: np.array([x[0] + x[1] - 2.0]), np.array([5.0, 1.0]), 1e-12)
    assert found == pytest.approx([3.0, -1.0], abs=1e-6)


def test_nothing_where_there_is_no_root():
    assert root(lambda x: x**2 + 1.0, np.array([0.3]), 1e-6) is None


@pytest.mark.parametrize("links", [2, 3, 15])
def test_a_slack_chain_reaches_wherever_its_length_allows(links):
    """Ends one above the other included, where no chain hangs at rest."""
    cable = dataclasses.replace(load_system("x500_solo").cables[0], length_m=2.0, links=links)
    for beside in (0.3, 0.1, 0.01, 1e-4, 0.0):
        for above in (1.97, 1.5, 0.01, 0.0, -0.5):
            directions = slack_chain(cable, np.array([beside, 0.0, above]), G)
            np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1.0)
            end = directions.sum(axis=0) * cable.link_length_m
            np.testing.assert_allclose(end, [beside, 0.0, above], atol=1e-6)
    assert slack_chain(cable, np.array([0.0, 0.0, 2.01]), G) is None


def test_a_cable_that_cannot_reach_on_the_ground_is_named():
    system = load_system("x500_trio")
    load = dataclasses.replace(
        system.load,
        cable_attachments_m=tuple(
            (x, y, z + 3.0 * (i == 1))
            for i, (x, y, z) in enumerate(system.load.cable_attachments_m)
        ),
    )
    with pytest.raises(ConfigError, match=r"cable 2 of 2\.42 m does not reach .* on the ground"):
        ground_spawn(dataclasses.replace(system, load=load))
