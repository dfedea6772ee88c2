"""Ropes by material: stretch, strength, damping, mass and drag follow from what is given."""

import dataclasses
import math
from typing import get_args

import pytest

from musls_description.config.errors import ConfigError
from musls_description.config.schema import to_data
from musls_description.system.rope_materials import MATERIALS, Material
from musls_description.system.slung_system import Cable
from musls_description.system.system_files import build_system, load_system


def rope(**keys):
    """A rope of 2.42 m."""
    return Cable(**{"length_m": 2.42, "links": 10} | keys)


def test_each_name_has_its_properties():
    assert get_args(Material) == tuple(MATERIALS)


# Nominal diameter of 3 mm: mass per length [g/m], stiffness [kN], breaking force [kN].
TABLE = {
    "hmpe": (7.4, 240.0, 11.1),
    "polyester": (6.1, 32.1, 2.8),
    "nylon": (5.3, 6.6, 1.9),
    "steel": (35.9, 364.0, 5.7),
    "aramid": (6.4, 165.0, 7.0),
    "cord": (4.1, 9.5, 0.95),
}


@pytest.mark.parametrize("material", TABLE)
def test_a_rope_of_3_mm_is_that_of_the_page(material):
    """The figures of docs/cable_models.md."""
    found = rope(material=material, diameter_m=0.003)
    g_m, ea_kn, break_kn = TABLE[material]
    assert 1e3 * found.mass_kg / found.length_m == pytest.approx(g_m, abs=0.05)
    assert found.ea_n / 1e3 == pytest.approx(ea_kn, rel=0.01)
    assert found.break_force_n / 1e3 == pytest.approx(break_kn, rel=0.02)
    assert found.radius_m == 0.0015
    assert found.axial_damping_n_s == MATERIALS[material].relaxation_s * found.ea_n
    assert found.drag_across_n_s2_m3 == pytest.approx(0.5 * 1.225 * 1.1 * 0.003)
    assert (found.ei_n_m2 > 0.0) == (material == "steel")


@pytest.mark.parametrize("material", TABLE)
def test_no_rope_is_better_than_its_fibres(material):
    """Specific modulus and strength of yarn by Tension Technology International [MN m/kg]."""
    yarn = {
        "hmpe": (124.0, 3.1), "polyester": (10.0, 0.84), "nylon": (4.0, 0.84), "steel": (26.0, 0.3),
        "aramid": (49.0, 2.03), "cord": (3.5, 0.66),
    }  # fmt: skip
    its, (modulus, strength) = MATERIALS[material], yarn[material]
    assert 0.1 * modulus < its.stiffness_pa / its.mass_kg_m3 / 1e6 < modulus
    assert 0.3 * strength < its.strength_pa / its.mass_kg_m3 / 1e6 < strength


def test_bending_of_a_wire_rope_is_that_of_its_wires():
    """133 wires of 0.2 mm: 133 E pi d^4 / 64, less what their helices take of the stiffness."""
    loose = 133 * 200e9 * math.pi * 0.0002**4 / 64.0
    assert 0.4 * loose < rope(material="steel", diameter_m=0.003).ei_n_m2 < loose


def test_mass_per_length_and_material_give_the_rest():
    by_size = rope(material="polyester", diameter_m=0.004)
    by_mass = rope(material="polyester", mass_kg=by_size.mass_kg)
    assert by_mass.radius_m == pytest.approx(0.002)
    assert by_mass.ea_n == pytest.approx(by_size.ea_n)
    assert by_mass.break_force_n == pytest.approx(by_size.break_force_n)


def test_a_radius_alone_is_a_braid_of_hmpe_that_never_breaks():
    plain, named = rope(radius_m=0.0015, mass_kg=0.018), rope(material="hmpe", diameter_m=0.003)
    assert plain.ea_n == named.ea_n == pytest.approx(2.4e5)
    assert plain.break_force_n is None
    assert plain.rope_words == "hmpe assumed, 3 mm, EA 2.4e+05 N"
    assert named.rope_words == "hmpe, 3 mm, EA 2.4e+05 N, breaks at 1.107e+04 N"


def test_what_is_given_beside_the_material_holds():
    loose = rope(material="nylon", diameter_m=0.003, radius_m=0.004, mass_kg=0.05)
    assert (loose.radius_m, loose.mass_kg) == (0.004, 0.05)
    assert loose.ea_n == rope(material="nylon", diameter_m=0.003).ea_n
    own = rope(material="steel", diameter_m=0.003, elastic={"ea_n": 1e3, "break_force_n": 9.0})
    assert (own.ea_n, own.break_force_n) == (1e3, 9.0)
    assert rope(material="steel", diameter_m=0.003, elastic={"ei_n_m2": 0.0}).ei_n_m2 == 0.0


@pytest.mark.parametrize(
    "keys",
    [
        {"material": "hmpe", "diameter_m": 0.003},
        {"material": "steel", "mass_kg": 0.02},
        {"material": "cord", "radius_m": 0.002},
        {"mass_kg": 0.02, "diameter_m": 0.003},
        {"mass_kg": 0.02, "radius_m": 0.003},
        {"material": "nylon", "mass_kg": 0.02, "radius_m": 0.003, "diameter_m": 0.002},
    ],
)
def test_a_rope_is_written_as_it_was_given(keys):
    made = rope(**keys)
    written = {k: v for k, v in to_data(made).items() if k in keys or "_kg" in k or "radius" in k}
    assert written == keys
    assert Cable(**to_data(made)) == made
    finer = dataclasses.replace(made, links=20)
    assert (finer.mass_kg, finer.radius_m, finer.ea_n) == (made.mass_kg, made.radius_m, made.ea_n)


def test_a_material_takes_the_place_of_the_mass_of_a_part():
    data = to_data(load_system("x500_trio"))
    data["cables"] = {"from": "rope", "material": "nylon"}
    found = build_system(data, "here").cables[0]
    assert found == dataclasses.replace(
        rope(material="nylon", diameter_m=0.003), links=15, joint=found.joint
    )


NAMES = "hmpe, polyester, nylon, steel, aramid, cord"


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"material": "jute", "diameter_m": 0.003},
            "Cable: material = 'jute': must be 'hmpe', 'polyester', 'nylon', 'steel', 'aramid' or "
            "'cord'",
        ),
        ({"material": "hmpe"}, "Cable: material: hmpe needs diameter_m, radius_m or mass_kg"),
        ({"radius_m": 0.001}, f"Cable: mass_kg is missing: give it, or the material ({NAMES})"),
        ({"diameter_m": 0.001}, f"Cable: mass_kg is missing: give it, or the material ({NAMES})"),
        (
            {"mass_kg": 0.01},
            f"Cable: radius_m is missing: give it, diameter_m or material ({NAMES})",
        ),
        ({"material": "hmpe", "diameter_m": 0}, "Cable: diameter_m = 0: must be greater than 0"),
        (
            {"material": "hmpe", "diameter_m": 1e-9},
            "Cable: diameter_m = 1e-09 gives a mass_kg of 1.99e-15, which must be from 1e-12 to "
            "1e+09",
        ),
        ({"material": "hmpe", "mass_kg": math.nan}, "Cable: mass_kg = nan: must be finite"),
    ],
)
def test_what_is_missing_or_wrong_is_named(keys, message):
    with pytest.raises(ConfigError) as error:
        rope(**keys)
    assert str(error.value) == message
