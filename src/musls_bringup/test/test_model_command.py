"""`musls model`: files, terminal, bad input."""

import os
from xml.etree import ElementTree

import pytest
import yaml

from musls_bringup.cli import main
from musls_description.config.schema import to_data
from musls_description.system.system_files import load_system


def failed(capsys, *args):
    """The one error line of a command that must end with exit code 2."""
    assert main(["model", *map(str, args)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("musls: error: ") and captured.err.count("\n") == 1
    return captured.err


@pytest.mark.parametrize("spawn", ["ground", "hover"])
@pytest.mark.parametrize(("kind", "version"), [("world", "1.10"), ("sdf-1.9", "1.9")])
def test_sdf_goes_to_the_terminal(capsys, kind, version, spawn):
    assert main(["model", "x500_solo", "--format", kind, "--spawn", spawn, "--world", "w"]) == 0
    root = ElementTree.fromstring(capsys.readouterr().out)
    assert (root.tag, root.get("version")) == ("sdf", version)
    assert root.find("world").get("name") == "w"


def test_a_world_asks_the_list_of_findings(capsys, tmp_path):
    """A system that cannot lift its load is written with --force; other formats do not fly."""
    system = to_data(load_system("x500_solo"))
    system["load"]["mass_kg"] = 5.0
    file = tmp_path / "heavy.yaml"
    file.write_text(yaml.safe_dump(system))
    said = failed(capsys, file, "--format", "world")
    assert "cannot lift the load: thrust margin" in said and "--force" in said
    assert main(["model", str(file), "--format", "world", "--force"]) == 0
    assert main(["model", str(file), "--format", "sdf-1.9"]) == 0


def test_hover_hangs_the_load_one_metre_high(capsys):
    assert main(["model", "x500_trio", "--spawn", "hover", "--radius", "0.8"]) == 0
    world = ElementTree.fromstring(capsys.readouterr().out).find("world")
    place = world.find("model[@name='load']/pose").text.split()
    assert float(place[2]) == 1.0


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("world", "x500_solo.sdf"),
        ("sdf-1.9", "x500_solo-1.9.sdf"),
        ("xacro", "x500_solo.urdf.xacro"),
        ("urdf", "x500_solo.urdf"),
    ],
)
def test_files_are_named_after_the_system(tmp_path, capsys, kind, name):
    if kind == "urdf":
        pytest.importorskip("xacro", reason="xacro, which makes URDF, is not installed")
    out = tmp_path / "new" / "folder"
    assert main(["model", "x500_solo", "--format", kind, "--out", str(out)]) == 0
    assert capsys.readouterr().out.strip() == str(out / name)
    assert os.listdir(out) == [name]
    ElementTree.parse(out / name)


def test_out_may_be_a_file_and_is_only_replaced_when_asked(tmp_path, capsys):
    path = tmp_path / "trio.sdf"
    path.write_text("mine")
    assert "--overwrite" in failed(capsys, "x500_solo", "--out", path)
    assert path.read_text() == "mine"
    assert main(["model", "x500_solo", "--out", str(path), "--overwrite"]) == 0
    assert ElementTree.parse(path).getroot().tag == "sdf"
    assert os.listdir(tmp_path) == ["trio.sdf"]


def test_separate_models_are_folders(tmp_path, capsys):
    assert main(["model", "x500_solo", "--format", "sdf", "--out", str(tmp_path)]) == 0
    assert sorted(os.listdir(tmp_path)) == ["cable_1", "load", "x500_1"]
    assert sorted(os.listdir(tmp_path / "load")) == ["model.config", "model.sdf"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["x500_tro"], ["x500_trio"]),
        (["x500_trio", "--format", "sfd"], ["'sfd'", "'sdf'"]),
        (["x500_trio", "--format", "sdf"], ["--out"]),
        (["x500_trio", "--spawn", "grund"], ["'grund'", "'ground'"]),
        (["x500_trio", "--format", "urdf", "--spawn", "hover"], ["--spawn", "urdf"]),
        (["x500_trio", "--format", "xacro", "--drones", "rigid"], ["--drones", "xacro"]),
        (["x500_trio", "--drones", "motor"], ["'motor'", "'motors'"]),
        (["x500_trio", "--world", "a b"], ["'a b'"]),
        (["x500_trio", "--step", "0"], ["0 s"]),
        (["x500_trio", "--step", "nan"], ["nan"]),
        (["x500_trio", "--step", "1e300"], ["--step", "1e+300"]),
        (["x500_trio", "--spawn", "hover", "--radius", "5"], ["do not reach"]),
        (["x500_trio", "--spawn", "hover", "--radius", "1e300"], ["--radius", "1e+300"]),
        (["x500_trio", "--spawn", "hover", "--radius", "nan"], ["--radius", "nan"]),
        (["x500_trio", "--out", "n" * 400], ["name too long"]),
        (["n" * 400 + ".yaml"], ["no such file"]),
        (["x500_trio", "--spawn", "hover", "--radius", "-1"], ["--radius", "-1"]),
    ],
)
def test_bad_input_is_one_line(capsys, args, words):
    line = failed(capsys, *args)
    assert all(word in line for word in words), line


def test_a_folder_that_cannot_be_made_is_said(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    line = failed(capsys, "x500_solo", "--out", tmp_path / "file" / "below")
    assert "cannot be written" in line or "exists" in line
    assert os.listdir(tmp_path) == ["file"]


def test_a_worlds_step_is_what_the_cables_allow_and_a_longer_one_is_warned_about(capsys):
    """1 ms: Gazebo aborts with the trio dropped from hover at 2 and 4 ms, and not at 1 ms."""
    assert main(["model", "x500_trio"]) == 0
    captured = capsys.readouterr()
    world = ElementTree.fromstring(captured.out).find("world")
    assert (world.findtext("physics/max_step_size"), captured.err) == ("0.001", "")
    assert main(["model", "x500_trio", "--step", "0.002"]) == 0
    captured = capsys.readouterr()
    assert "<max_step_size>0.002</max_step_size>" in captured.out
    assert captured.err.startswith("musls: warning: --step 0.002 s: ") and "0.001 s" in captured.err


def test_a_model_to_include_is_a_folder(tmp_path, capsys):
    assert main(["model", "x500_solo", "--format", "model", "--out", str(tmp_path)]) == 0
    assert {p.name for p in (tmp_path / "x500_solo").iterdir()} == {
        *("model.sdf", "model.config", "recipe.sdf")
    }
    capsys.readouterr()
    assert "--out FOLDER" in failed(capsys, "x500_solo", "--format", "model")
    assert "--lean has no meaning" in failed(capsys, "x500_solo", "--format", "sdf-1.9", "--lean")
    assert "--pace has no meaning" in failed(capsys, "x500_solo", "--format", "sdf", "--pace", "1")
    assert "--pace" in failed(capsys, "x500_solo", "--pace", "-1")
