"""`musls check`: table, JSON, files, exit codes."""

import json

import pytest

from musls_bringup.cli.app import run


def test_table(capsys):
    assert run(["check", "delivery"]) == 0
    text = capsys.readouterr().out
    assert "can be flown" in text
    assert "hardest moment: waypoints" in text
    assert "drone_1 runs out first: 19." in text


def test_files_and_json(tmp_path, capsys):
    out = tmp_path / "check"
    assert run(["check", "circle", "--json", "--out", str(out)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((out / "check.json").read_text())
    assert len(printed["formation"]) == 3
    assert (out / "margins.png").stat().st_size > 1000
    assert run(["check", "circle", "--out", str(out)]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert run(["check", "circle", "--out", str(out), "--overwrite"]) == 0


def test_too_heavy_is_exit_code_1(capsys):
    assert run(["check", "circle", "--set", "system.load.mass_kg=8"]) == 1
    text = capsys.readouterr().out
    assert "cannot be flown" in text
    assert text.rstrip().rpartition("\n")[2].startswith("cannot be flown: the rotors cannot lift")


def test_the_last_line_names_what_refuses(capsys):
    assert run(["check", "circle", "--set", "formation.radius_m=50"]) == 1
    assert capsys.readouterr().out.startswith("cannot be flown: formation.radius_m = 50: cables do")


def test_a_margin_just_below_the_limit_is_told_with_a_third_digit(capsys):
    assert run(["check", "circle", "--set", "system.load.mass_kg=2.495"]) == 1
    last = capsys.readouterr().out.rstrip().rpartition("\n")[2]
    assert "thrust margin 1.09" in last and "at least 1.1 is needed" in last


def test_what_is_not_flown_is_told(capsys):
    assert run(["check", "circle", "--for", "2"]) == 0
    text = capsys.readouterr().out
    assert "flown in memory for 2.0 s" in text and "s of the plan were not flown (--for)" in text


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing"],
        ["circle", "--set", "limits.separation_m=-1"],
        ["circle", "--out", ""],
        ["delivery", "--set", "system.drones.propulsion.battery.cells=0"],
    ],
)
def test_bad_input_is_exit_code_2_in_one_line(arguments, capsys):
    assert run(["check", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("musls: error: ") and error.count("\n") == 1
