"""Systems of anchors, cables with ends, winches and pulleys: what is taken and what is refused."""

import copy

import pytest

from musls_description.config.errors import ConfigError
from musls_description.config.schema import to_yaml
from musls_description.config.strict_yaml import parse_yaml
from musls_description.system.slung_system import (
    ElasticLine,
    RigSystem,
    SlungLoadSystem,
    slung_system,
)
from musls_description.system.system_files import build_system, load_system

RIG = """
name: two_anchors
load: {mass_kg: 1.0, inertia_kg_m2: [[0.01, 0, 0], [0, 0.01, 0], [0, 0, 0.01]], collision: {size_m: [0.2, 0.2, 0.2]}}
anchors:
  - position_enu_m: [0, 0, 5]
  - {position_enu_m: [2, 0, 5], mass_kg: 0.7}
cables:
  - mass_kg: 0.05
    length_m: 4.0
    radius_m: 0.002
    links: 10
    ends: [{body: anchor_1}, {body: load, point_m: [0, 0, 0.1], clamped: true, clamp_direction: [0, 0, 1]}]
    elastic: {law: [[0, 0], [0.01, 100], [0.02, 400]], ei_n_m2: 0.1, break_force_n: 900}
  - {mass_kg: 0.05, length_m: 4.0, radius_m: 0.002, links: 10, ends: [{body: anchor_2}, {body: load}]}
  - {mass_kg: 0.05, length_m: 4.0, radius_m: 0.002, links: 10, ends: [{body: anchor_2}, {body: load}]}
winches: [{cable: 1, end: 1}]
pulleys: [{body: load, radius_m: 0.05, cables: [{cable: 2, end: 2}, {cable: 3, end: 2}]}]
"""  # noqa: E501


@pytest.fixture
def data():
    return parse_yaml(RIG, "rig.yaml")


def change(data, path, value):
    """Set a value at a dotted path."""
    *above, last = [int(k) if k.isdigit() else k for k in path.split(".")]
    for key in above:
        data = data[key]
    data[last] = value


def test_a_rig_survives_the_way_through_yaml(data):
    system = build_system(data, "rig.yaml")
    assert type(system) is RigSystem
    assert (system.n_cables, system.n_drones, system.n_rotors) == (3, 0, 0)
    assert system.ends(0)[1].body == "load"
    assert system.mass_kg == pytest.approx(1.0 + 3 * 0.05 + 0.7)
    again = build_system(parse_yaml(to_yaml(system), "again"), "again")
    assert again == system
    assert again.formation is None


def test_a_slung_load_is_a_rig_whose_cables_say_where_they_end():
    trio = load_system("x500_trio")
    assert type(trio) is SlungLoadSystem and isinstance(trio, RigSystem)
    assert trio.formation is trio and slung_system(trio, "x") is trio
    near, far = trio.ends(1)
    assert (near.body, near.point_m) == ("load", trio.load.cable_attachments_m[1])
    assert (far.body, far.point_m) == ("drone_2", trio.drones[1].cable_attachment_m)
    assert trio.cables[0].elastic == ElasticLine()
    assert build_system(parse_yaml(to_yaml(trio), "again"), "again") == trio


def test_a_winch_leaves_the_formation():
    data = parse_yaml(to_yaml(load_system("x500_solo")), "solo")
    data["winches"] = [{"cable": 1, "end": 2, "kind": "feed"}]
    system = build_system(data, "solo")
    assert type(system) is RigSystem
    assert type(system.formation) is SlungLoadSystem
    with pytest.raises(ConfigError, match=r"rigid_links: system x500_solo has winches;.*elastic"):
        slung_system(system, "cable_model = rigid_links")


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("cables.0.ends.1.body", "anchor_3", ["cables.0.ends.1.body", "anchor_3", "anchor_2"]),
        ("cables.0.ends", [{"body": "load"}], ["cables.0.ends", "1"]),
        ("cables.0.ends.0.body", "load", ["cables.0.ends", "both are on load"]),
        ("cables.0.ends", None, ["cables.0.ends is missing", "drone_1"]),
        ("cables.0.ends.1.clamp_direction", None, ["cables.0.ends.1", "clamp_direction"]),
        ("cables.0.ends.1.clamp_direction", [0, 0, 0], ["cables.0.ends.1", "not be zero"]),
        ("cables.0.ends.1.clamped", False, ["cables.0.ends.1", "needs clamped"]),
        ("cables.0.elastic.ei_n_m2", 0, ["cables.0.ends.1", "ei_n_m2 is 0"]),
        ("cables.0.elastic.ei_n_m2", -1, ["cables.0.elastic.ei_n_m2 = -1"]),
        ("cables.0.elastic", {"ea_n": -5}, ["cables.0.elastic.ea_n = -5", "greater than 0"]),
        ("cables.0.elastic.ea_n", 5, ["cables.0.elastic", "either ea_n or law"]),
        ("cables.0.elastic.law", [[0, 0]], ["cables.0.elastic", "two pairs"]),
        (
            "cables.0.elastic.law", [[0, 0], [0.02, 10], [0.01, 20]],
            ["cables.0.elastic", "not monotone", "pair 3"],
        ),
        ("cables.0.elastic.law", [[0, 5], [0.02, 10]], ["cables.0.elastic", "[0, 0]"]),
        ("cables.0.elastic.law_interpolation", "spline", ["law_interpolation", "monotone"]),
        ("cables.0.elastic.break_force_n", 0, ["cables.0.elastic.break_force_n = 0"]),
        ("cables.0.length_m", 0, ["cables.0.length_m = 0", "greater than 0"]),
        ("cables.0.length_m", 1e-6, ["cables.0", "segments of 1e-07 m"]),
        ("cables.0.elastik", {}, ["unknown key 'cables.0.elastik'", "elastic"]),
        ("winches.0.cable", 9, ["winches.0", "cable 9", "3 cables"]),
        ("winches.0.end", 3, ["winches.0.end = 3"]),
        ("winches.0.kind", "drum", ["winches.0", "radius_m and inertia_kg_m2"]),
        ("winches.0.radius_m", 0.1, ["winches.0", "belongs to kind: drum"]),
        ("winches", [{"cable": 2, "end": 2}], ["pulleys.0", "taken already by winches.0"]),
        ("pulleys.0.cables", [{"cable": 2, "end": 2}], ["pulleys.0", "two cables, not of 1"]),
        ("pulleys.0.cables.1.cable", 2, ["pulleys.0", "one with itself"]),
        ("pulleys.0.body", "drone_1", ["pulleys.0.body", "unknown body 'drone_1'", "anchor_1"]),
        ("pulleys.0.body", "anchor_1", ["pulleys.0", "anchor_1, but end 2 of cable_2 is on load"]),
        ("anchors.0.orientation_wxyz", [1, 1, 0, 0], ["anchors.0.orientation_wxyz", "unit"]),
        ("anchors.0.inertia_kg_m2", [[1, 0, 0], [0, 1, 0], [0, 0, 1]], ["anchors.0", "mass_kg"]),
        ("anchors", [], ["drones or anchors"]),
        ("cables", [], ["system needs cables"]),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_one_line_with_the_place(data, path, value, words):
    data = copy.deepcopy(data)
    change(data, path, value)
    text = to_yaml(data)
    with pytest.raises(ConfigError) as error:
        build_system(parse_yaml(text, "rig.yaml"), "rig.yaml")
    message = str(error.value)
    assert "\n" not in message and message.startswith("rig.yaml")
    for word in words:
        assert word in message
