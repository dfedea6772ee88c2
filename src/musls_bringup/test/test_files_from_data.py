"""Files, names and texts from data: none leads elsewhere, waits or ends in a traceback."""

import os
import subprocess
import sys

import pytest
import yaml

from musls_analysis.estimation.estimate import with_fit
from musls_analysis.figures.style import logarithmic, new_figure, styled
from musls_analysis.recordings.readers import read_recording
from musls_analysis.sweep.plan import MetricFigure, load_sweep
from musls_analysis.view.film import FilmOptions
from musls_bringup.cli import main
from musls_control.trajectories.recorded import RecordedTrajectory
from musls_description.config.errors import ConfigError, file_name
from musls_description.config.strict_yaml import read_json, read_text

SWEEP = """\
scenario: hold
parameters: {seed: [0, 1]}
figures: [{kind: metric, name: NAME, panels: [[max_tension_n]]}]
"""


@pytest.mark.parametrize("name", ["../../x", "/tmp/x", "..", ".x", "a/b", "-x", "''"])
def test_a_figures_name_is_a_name(tmp_path, name):
    path = tmp_path / "a.yaml"
    path.write_text(SWEEP.replace("NAME", name))
    with pytest.raises(ConfigError, match=r"figures\.0\.name = "):
        load_sweep(path)
    assert MetricFigure(name="over_mass.2", panels=(("max_tension_n",),)).name == "over_mass.2"


@pytest.mark.parametrize("name", ["..", "../x"])
def test_a_sweeps_and_a_scenarios_name_are_names(tmp_path, monkeypatch, capsys, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text(SWEEP.replace("NAME", "good") + f"name: {name}")
    with pytest.raises(ConfigError, match="name = "):
        load_sweep(tmp_path / "a.yaml")
    assert main(["fly", "hold", "--set", f"name={name}"]) == 2
    assert f"name = '{name}'" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["a.yaml"]


def test_what_is_made_of_a_stages_name_stays_in_its_folder(tmp_path):
    for text in ("../../x", "/x", "..", ".", "", "a b", "a/../b", "n" * 1000):
        name = file_name(text)
        assert name not in ("", ".", "..") and (tmp_path / name).parent == tmp_path
        (tmp_path / name).write_text("")
    assert file_name("engage_2") == "engage_2"


def read_poses(path):
    RecordedTrajectory(path=str(path))


@pytest.mark.parametrize("name", ["a.csv", "a.mcap", "a.yaml"])
@pytest.mark.parametrize("read", [read_text, read_recording, read_poses])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path, name, read):
    path = tmp_path / name
    os.mkfifo(path)
    with pytest.raises(ConfigError) as error:
        read(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("command", ["fly", "sweep", "model", "draw", "formation"])
def test_a_pipe_in_a_files_place_is_not_called_missing(tmp_path, capsys, command):
    os.mkfifo(tmp_path / "a.yaml")
    assert main([command, str(tmp_path / "a.yaml")]) == 2
    assert "a.yaml: cannot be read: not a file" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["fly", "replay", "view", "sweep", "model", "figures", "check"])
def test_links_in_a_circle_end_in_one_line(tmp_path, capsys, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    os.symlink("b.yaml", "a.yaml")
    os.symlink("a.yaml", "b.yaml")
    assert main([command, "a.yaml", *(["--png", "1"] if command == "view" else [])]) == 2
    assert "a.yaml" in capsys.readouterr().err


def test_a_deleted_working_folder_is_said(tmp_path):
    program = (
        "import os, sys; from musls_bringup.cli import main; "
        "os.rmdir(os.getcwd()); sys.exit(main(['describe', 'seed']))"
    )
    gone = tmp_path / "gone"
    gone.mkdir()
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=gone, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 2 and "present folder: No such file" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[1, 2", "[NaN, 1e999"])
def test_json_that_is_none(tmp_path, text):
    path = tmp_path / "fit.json"
    path.write_text(text)
    for read in (read_json, lambda path: with_fit(None, path)):
        with pytest.raises(ConfigError, match=r"fit\.json: (nested more than|not valid JSON)"):
            read(path)


def test_a_film_of_no_frames_is_refused():
    for options in ({"fps": 1e-300}, {"speed": 1e-300}, {"fps": float("nan")}, {"speed": 1e300}):
        with pytest.raises(ConfigError, match=r"must be from 0\.001 to"):
            FilmOptions(**options)


@pytest.mark.parametrize("text", [r"$\frac{$", "$x$", "a_b^c $"])
def test_a_label_is_shown_as_it_is(text):
    with styled():
        figure = new_figure(2.0)
        axes = figure.add_subplot(xlabel=text, title=text)
        axes.plot([1e-4, 1e5], [1e-4, 1e5], label=text)
        axes.legend()
        logarithmic(axes, "x")
        figure.canvas.draw()
        assert not axes.xaxis.label.get_parse_math()
        assert not any("$" in tick.get_text() for tick in axes.get_xticklabels())


@pytest.mark.parametrize("start", ["air", "ground"])
def test_a_phase_shorter_than_a_period_is_refused(capsys, start):
    given = ["--set", f"start={start}", "--set", "mission.form_up_s=1e-9"]
    assert main(["check", "hold", *given]) == 2
    assert "mission.form_up_s = 1e-09: must be greater" in capsys.readouterr().err


@pytest.mark.parametrize("key", ["system.load.drag_n_s_m", "wind.mean_enu_m_s"])
@pytest.mark.parametrize("value", ["0.3", "[1, 2]", "[1, 2, 3, 4]", "x", "null"])
def test_a_number_for_each_axis_is_asked_for(capsys, key, value):
    assert main(["check", "hold", "--set", f"{key}={value}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    shown = repr(yaml.safe_load(value))
    assert line.endswith(f"{key} = {shown}: must be a list of three, one for each axis")


def test_a_mapping_is_asked_for(capsys):
    assert main(["check", "hold", "--set", "wind=4"]) == 2
    assert capsys.readouterr().err.endswith("wind = 4: must be a mapping\n")
