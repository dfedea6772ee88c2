"""`musls describe`: every key has a meaning, and the schema takes what the program takes."""

from __future__ import annotations

import jsonschema
import pytest

from musls_bringup.catalogue.keys import schema_of
from musls_bringup.catalogue.shipped import SCENARIOS, SWEEPS
from musls_bringup.cli import main
from musls_bringup.cli.describe import file_schema, reference_page
from musls_description.config.documented_keys import ANY_NAME, Keys, unit_of
from musls_description.config.strict_yaml import parse_yaml
from musls_description.system.system_files import SYSTEMS


def test_every_key_says_what_it_means():
    silent = [
        key.path
        for file in ("scenario", "sweep")
        for key in Keys(schema_of(file)).all()
        if not key.meaning and key.name != ANY_NAME
    ]
    assert not silent


@pytest.mark.parametrize(
    ("file", "folder"), [("scenario", SCENARIOS), ("system", SYSTEMS), ("sweep", SWEEPS)]
)
def test_schema_accepts_all_shipped_files(file, folder):
    validator = jsonschema.Draft7Validator(file_schema(file))
    validator.check_schema(validator.schema)
    paths = sorted(folder.glob("*.yaml"))
    assert paths
    for path in paths:
        data = parse_yaml(path.read_text(), str(path))
        errors = [
            f"{path.name}: {e.json_path} {e.message[:200]}" for e in validator.iter_errors(data)
        ]
        assert not errors


@pytest.mark.parametrize(
    "change",
    [
        {"misson": {}},
        {"cable_model": "ropes"},
        {"mission": {"stages": [{"kind": "circle", "radius": 2}]}},
        {"mission": {"stages": [{"kind": "circle", "radius_m": -2}]}},
        {"mission": {"stages": [{"radius_m": 2}]}},
        {"autopilot": {"parameters": {"MPC_XY_P": 1000}}},
        {"start": {"kind": "moon"}},
    ],
)
def test_schema_refuses_what_the_program_refuses(change):
    data = {"system": "x500_trio", "mission": {"stages": [{"kind": "hold"}]}}
    validator = jsonschema.Draft7Validator(file_schema("scenario"))
    assert validator.is_valid(data)
    assert not validator.is_valid({**data, **change})


def test_one_key(capsys):
    assert main(["describe", "mission.stages.0.circle.speed_m_s"]) == 0
    out = capsys.readouterr().out
    assert "Speed along the circle." in out
    assert "m/s; number > 0; default 0.3" in out
    assert main(["describe", "rotors.moment_ratio_m"]) == 0
    assert "follows from others" in capsys.readouterr().out


def test_part_of_a_name_finds_all_of_them(capsys):
    assert main(["describe", "damping"]) == 0
    out = capsys.readouterr().out
    assert "system.cables.joint.damping_n_m_s_rad" in out
    assert "system.winches.damping_n_m_s_rad" in out


@pytest.mark.parametrize("name", ["no_such_key", "system.cable.links.colour", "é" * 500, "..", "["])
def test_unknown_key_is_one_line(name, capsys):
    status = main(["describe", name])
    said = capsys.readouterr()
    assert status == 2
    assert len(said.err.splitlines()) == 1


def test_units_follow_from_names():
    wanted = {"speed_m_s": "m/s", "damping_n_m_s_rad": "N m s/rad", "position_enu_m": "m",
              "inertia_kg_m2": "kg m²", "links": "", "mean_enu_m_s": "m/s"}  # fmt: skip
    assert {name: unit_of(name) for name in wanted} == wanted


def test_page_has_every_key_of_a_scenario():
    page = reference_page()
    for key in Keys(schema_of("scenario")).all():
        assert f"| `{key.name}` |" in page


def test_words_of_the_meaning_find_a_key(capsys):
    assert main(["describe", "number of drones"]) == 0
    assert capsys.readouterr().out.startswith("system.drones\n")
    assert main(["describe", "number of unicorns"]) == 2
    assert "no key 'number of unicorns'" in capsys.readouterr().err
