"""The shipped systems, the numbers of the paper's Table I, and what validation refuses."""

import dataclasses

import numpy as np
import pytest

from musls_description.config.errors import ConfigError
from musls_description.config.schema import build, to_data, to_yaml
from musls_description.config.strict_yaml import parse_yaml, read_yaml
from musls_description.system.slung_system import Cable, CableJoint
from musls_description.system.system_files import SYSTEMS, build_system, load_system, system_names


@pytest.fixture
def trio_data():
    return to_data(read_yaml(SYSTEMS / "x500_trio.yaml"))  # plain, as from Python


@pytest.mark.parametrize("name", system_names())
def test_description_round_trip(name):
    system = load_system(name)
    assert build(type(system), to_data(system), name) == system
    assert build_system(parse_yaml(to_yaml(system), name), name) == system


def test_ships_one_to_six_drones_and_unequal_cables():
    counts = {load_system(name).n_drones for name in system_names()}
    assert {1, 2, 3, 4, 6} <= counts
    unequal = load_system("x500_trio_unequal").cables
    assert len({c.length_m for c in unequal}) == len({c.links for c in unequal}) == 3


def test_trio_is_table_one():
    trio = load_system("x500_trio")
    assert trio.load.mass_kg == 1.66
    assert np.allclose(
        trio.load.inertia_kg_m2,
        [
            [0.0101956, 0.0003278, -0.000108],
            [0.0003278, 0.013750, -0.0003215],
            [-0.000108, -0.0003215, 0.020997],
        ],
        rtol=0,
        atol=0,
    )
    assert trio.load.cable_attachments_m == (
        (0.1, 0.0, 0.03),
        (-0.05, 0.087, 0.03),
        (-0.05, -0.087, 0.03),
    )
    for drone in trio.drones:
        assert drone.mass_kg == 2.11
        assert np.array_equal(drone.inertia_kg_m2, np.diag([0.0216667, 0.0216667, 0.04]))
        assert drone.cable_attachment_m == (0.04, 0.0, 0.0)
        assert drone.max_thrust_n == pytest.approx(4 * 8.54858e-6 * 1000.0**2)
    for cable in trio.cables:
        assert (cable.mass_kg, cable.length_m, cable.radius_m, cable.links) == (
            0.02,
            2.42,
            0.0031,
            15,
        )
        assert cable.joint_damping_n_m_s_rad == 2e-3
        assert (cable.joint.stiffness_n_m_rad, cable.joint.friction_n_m) == (0.0, 0.0)


def test_link_is_a_solid_cylinder():
    cable = Cable(
        mass_kg=0.3, length_m=3.0, radius_m=0.1, links=3, joint=CableJoint(damping_n_m_s_rad=0.0)
    )
    assert cable.link_inertia_kg_m2 == pytest.approx(
        (0.1 * 0.01 / 2, 0.1 * (3 * 0.01 + 1) / 12, 0.1 * (3 * 0.01 + 1) / 12)
    )


def test_bending_damping_keeps_the_cable_when_links_change():
    """A joint stands for one link length: c_j / links is the same for every discretisation."""
    base = load_system("x500_trio").cables[0]
    joint = CableJoint(bending_damping_n_m2_s=2e-3 * base.link_length_m)
    for links in (5, 15, 60):
        cable = dataclasses.replace(base, links=links, joint=joint)
        assert cable.joint_damping_n_m_s_rad == pytest.approx(2e-3 * links / 15)


def paper_trio(**changes):
    """The seed paper's system with a changed cable whose joints say nothing about damping."""
    trio = load_system("x500_trio")
    cable = dataclasses.replace(trio.cables[0], joint=CableJoint(), **changes)
    return dataclasses.replace(trio, cables=(cable,) * 3)


def scaled(system, size):
    """A system that is `size` times as large and looks the same (Froude)."""
    load = dataclasses.replace(system.load, mass_kg=size**3 * system.load.mass_kg)
    cable = system.cables[0]
    cable = dataclasses.replace(
        cable,
        mass_kg=size**3 * cable.mass_kg,
        length_m=size * cable.length_m,
        radius_m=size * cable.radius_m,
    )
    return dataclasses.replace(system, load=load, cables=(cable,) * 3)


def test_joints_of_which_nothing_is_said_are_damped_as_the_papers():
    assert paper_trio().cables[0].joint_damping_n_m_s_rad == pytest.approx(2e-3, rel=0.01)


@pytest.mark.parametrize("size", [0.1, 10.0])
def test_usual_joint_damping_scales_with_the_system(size):
    """A damping moment times a rate is a force times a length: size^4 times sqrt(size)."""
    small, large = (s.cables[0] for s in (paper_trio(), scaled(paper_trio(), size)))
    ratio = large.joint_damping_n_m_s_rad / small.joint_damping_n_m_s_rad
    assert ratio == pytest.approx(size**4.5)


def test_usual_damping_is_of_the_cable_not_of_its_links():
    """Up to the paper's fifteen; links beyond are damped no more in relation than those."""
    few, some, many = (paper_trio(links=links).cables[0] for links in (5, 15, 60))
    of_some = some.joint_damping_n_m_s_rad * some.link_length_m
    assert few.joint_damping_n_m_s_rad * few.link_length_m == pytest.approx(of_some)
    relative = [c.joint_damping_n_m_s_rad / c.link_length_m**2 for c in (some, many)]
    assert relative[0] == pytest.approx(relative[1])


def test_stiffness_and_drag_follow_from_the_radius():
    """Stiffness is that of a braid of HMPE: 2.4e5 N with a radius of 1.5 mm, and as the section."""
    base = cable = dataclasses.replace(load_system("x500_trio").cables[0], diameter_m=None)
    assert base.ea_n == pytest.approx(2.4e5 * (base.radius_m / 0.0015) ** 2)
    thin = dataclasses.replace(cable, radius_m=base.radius_m / 2.0)
    assert thin.ea_n == pytest.approx(base.ea_n / 4.0)
    assert thin.drag_across_n_s2_m3 == pytest.approx(0.5 * 1.225 * 1.1 * base.radius_m)
    still = dataclasses.replace(base.elastic, drag_across_n_s2_m3=0.0)
    assert dataclasses.replace(cable, elastic=still).drag_across_n_s2_m3 == 0.0


def _set(data, path, value):
    *parents, last = path.split(".")
    for part in parents:
        data = data[part]
    data[last] = value


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("load.mass_kg", -1, ["load.mass_kg = -1", "greater than 0"]),
        ("load.mass_kg", float("nan"), ["load.mass_kg", "finite"]),
        ("load.mass_kg", "heavy", ["load.mass_kg = 'heavy'", "number"]),
        ("load.mas_kg", 1, ["unknown key 'load.mas_kg'", "'mass_kg'"]),
        ("load.inertia_kg_m2", [[1, 0, 0], [0, -1, 0], [0, 0, 3]], ["positive definite"]),
        ("load.inertia_kg_m2", [[1, 0, 0], [0, 1, 0], [0, 0, 3]], ["triangle"]),
        ("load.inertia_kg_m2", [[1, 2, 0], [0, 1, 0], [0, 0, 1]], ["symmetric"]),
        ("load.cable_attachments_m", [], ["load.cable_attachments_m", "at least 1"]),
        ("load.collision", {"size_m": [1, 1, 0]}, ["size_m", "greater than 0"]),
        ("cables.links", 0, ["links = 0", "greater than or equal to 1"]),
        ("cables.links", 2.5, ["links = 2.5", "whole number"]),
        (
            "cables.joint",
            {"damping_n_m_s_rad": 0, "bending_damping_n_m2_s": 0},
            ["damping_n_m_s_rad", "bending_damping_n_m2_s"],
        ),
        ("cables.from", "roap", ["unknown part 'roap'", "'rope'", "or a file"]),
        ("drones", [{"from": "x500"}], ["3 load.cable_attachments_m", "1 drones"]),
    ],
)
def test_bad_values_name_place_value_and_rule(trio_data, path, value, words):
    _set(trio_data, path, value)
    with pytest.raises(ConfigError) as error:
        build_system(trio_data, "mine.yaml")
    message = str(error.value)
    assert "\n" not in message
    assert message.startswith("mine.yaml")
    for word in words:
        assert word in message


def test_error_names_the_line():
    text = (SYSTEMS / "x500_trio.yaml").read_text().replace("mass_kg: 1.66", "mass_kg: -1.66")
    line = 1 + text[: text.index("-1.66")].count("\n")
    with pytest.raises(ConfigError, match=rf"mine\.yaml, line {line}: load\.mass_kg = -1\.66"):
        build_system(parse_yaml(text, "mine.yaml"), "mine.yaml")


@pytest.mark.parametrize(
    ("text", "line"), [("a: 1\nb: [1,\n", 3), ("a: 1\nb: 2\na: 3\n", 3), ("a: 1\n b: 2\n", 2)]
)
def test_yaml_errors_name_the_line(text, line):
    with pytest.raises(ConfigError, match=rf"^f\.yaml, line {line}: "):
        parse_yaml(text, "f.yaml")


def test_yaml_reads_exponents_without_a_dot():
    assert parse_yaml("a: 1e-3", "f.yaml") == {"a": 1e-3}


def test_unknown_system_names_the_near_ones():
    with pytest.raises(ConfigError, match="x500_trio"):
        load_system("x500_tri")


def test_a_part_built_in_python_is_checked_too():
    with pytest.raises(ConfigError, match="links = 0"):
        Cable(mass_kg=1, length_m=1, radius_m=0.1, links=0, joint=CableJoint(damping_n_m_s_rad=0.0))


def test_lists_of_equal_parts_are_independent():
    data = read_yaml(SYSTEMS / "x500_trio.yaml")
    from musls_description.system.system_files import expand_system

    expanded = expand_system(data)
    expanded["cables"][0]["joint"]["damping_n_m_s_rad"] = 9.0
    assert expanded["cables"][1]["joint"]["damping_n_m_s_rad"] == 0.002
