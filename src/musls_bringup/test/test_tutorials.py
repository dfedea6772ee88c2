"""The tutorials run as they stand: files are written, commands and Python are executed."""

import csv
import json
import re
import runpy
import shlex
import sys
from pathlib import Path

import matplotlib
import pytest

import musls
from musls_bringup.cli import main
from musls_control.trajectories import TRAJECTORIES
from musls_description.system.cable_law import CABLE_LAWS
from musls_sim.scenario.aerodynamics import AERODYNAMICS
from musls_sim.scenario.events import EVENTS
from musls_sim.sensors.custom import SENSORS

DOCS = Path(__file__).parents[3] / "docs"

pytestmark = [
    pytest.mark.skipif(not DOCS.is_dir(), reason="docs/ come with a checkout"),
    pytest.mark.slow,
]


def blocks(page):
    """Language, file name (or None) and text of each block of code of a page."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for info, block in re.findall(r"^```(\w.*?)\n(.*?)^```", text, re.S | re.M):
        title = re.search(r'title="(.+?)"', info)
        yield info.split()[0], title and title.group(1), block


@pytest.fixture
def walk(tmp_path, monkeypatch):
    """Runs a page in an empty folder; returns the names that its Python has in the end."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    known, backend = set(sys.modules), matplotlib.get_backend()
    # What a page registers is gone after it.
    for registry in (TRAJECTORIES, EVENTS, AERODYNAMICS, SENSORS, CABLE_LAWS):
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))

    def run(page):
        names = {}
        for language, title, text in blocks(page):
            if title:
                Path(title).write_text(text, encoding="utf-8")
            elif language == "python":
                exec(compile(text, page, "exec"), names)
            elif language == "sh":
                for line in text.splitlines():
                    words = shlex.split(line, comments=True)
                    assert not words or (words[0] == "musls" and main(words[1:]) == 0), line
        return names

    yield run
    matplotlib.use(backend)
    for name in set(sys.modules) - known:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def load_errors(folder):
    return json.loads((Path(folder) / "summary.json").read_text())["errors"]["load"]


def test_compiled_stages(walk):
    """Barometers show the height of a moment ago, and no period ends a run for them."""
    names = walk("compiled_stages.md")
    session, height_m = names["session"], names["height_m"]
    lagging = session.state.position_enu_m[1:, 2] - 0.1 * session.state.velocity_enu_m_s[1:, 2]
    assert height_m == pytest.approx(lagging, abs=0.02) and height_m.min() > 1.0
    (stage,) = [stage for stage in session.stages if stage.name == "barometers"]
    assert stage.compiled and stage.step is None
    assert "| `own` | own | numbers of your own compiled stages |" in page_of("compiled_stages.md")


def page_of(name):
    """A page with its tables."""
    made = runpy.run_path(str(DOCS / "made_tables.py"))
    return made["filled"]((DOCS / name).read_text(encoding="utf-8"))


def test_first_hour(tmp_path, monkeypatch):
    """Every command of the page, but for the viewer's window."""
    monkeypatch.chdir(tmp_path)
    flown = 0
    for language, _, text in blocks("first_hour.md"):
        for line in text.splitlines() if language == "console" else ():
            words = shlex.split(line, comments=True)
            window = words[1:2] == ["view"] and not {"--png", "--gif"} & {*words}
            if words[:1] != ["musls"] or window:
                continue
            runs = sorted(map(str, Path("runs").glob("circle_*"))) if Path("runs").is_dir() else []
            words = [runs[0] if "DATE_TIME" in word else word for word in words]
            assert main(words[1:]) == 0, line
            flown += words[1] in ("fly", "check")
    assert flown >= 3


def test_own_system(walk):
    names = walk("tutorials/own_system.md")
    assert names["way_m"][0] == pytest.approx(1.0, abs=0.2)
    assert abs(names["way_m"][1:]).max() < 0.1
    assert Path("plank.png").stat().st_size > 10_000


def test_own_controller_halves_the_error(walk):
    error_mm = walk("tutorials/own_controller.md")["error_mm"]
    assert error_mm["feedback"] < 0.5 * error_mm["formation"]


def test_own_recording(walk):
    comparison = walk("tutorials/own_recording.md")["comparison"]
    replayed = json.loads(next(Path("runs/replayed").glob("*.json")).read_text())
    assert replayed
    assert set(comparison.errors) == {"load", "drone_1", "drone_2", "drone_3"}


def test_parameter_study(walk):
    walk("tutorials/parameter_study.md")
    with open("runs/study/table.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 and not any(row["warnings"] for row in rows)
    assert all(float(row["lowest_m"]) > 0.8 for row in rows)
    assert Path("study.pdf").read_bytes().startswith(b"%PDF")
    assert list(Path("runs/study/figures").iterdir())


def test_failure_study(walk):
    names = walk("tutorials/failure_study.md")
    kinds = [event.kind for event in names["run"].events]
    assert "rotor_failure" in kinds and "cable_cut" in kinds
    assert names["session"].state.velocity_enu_m_s[0, 0] > 0.05  # it was pushed to the east


def test_px4_and_ros(walk):
    walk("tutorials/px4_and_ros.md")
    assert "hold" in load_errors("runs/builtin")


def test_without_a_centre(walk):
    """More lost messages: older news, and a load that tilts more."""
    names = walk("tutorials/without_a_centre.md")
    assert max(names["ages_s"]["ideal"].values()) < 0.05 < min(names["ages_s"]["lossy"].values())
    assert "reads the load's motion, which it does not know" in names["refusal"]
    tilts = dict(names["points"])
    assert tilts[0.0] < 0.9 * tilts[0.6]
    assert Path("loss.pdf").read_bytes().startswith(b"%PDF")


def test_train_a_policy(walk):
    pytest.importorskip("gymnasium", reason="the extra rl is not installed")
    mean_return = walk("tutorials/train_a_policy.md")["mean_return"]
    assert mean_return["random"] < 20.0 < 60.0 < mean_return["nothing"] < 90.0
    assert 110.0 < mean_return["formation"] < 125.0
    example = (DOCS.parent / "examples" / "train_ppo.py").read_text(encoding="utf-8")
    lines = {line.strip() for line in example.splitlines()}
    shown = [
        text for language, _, text in blocks("tutorials/train_a_policy.md") if language == "py"
    ]
    assert (
        len(shown) == 4 and {line.strip() for text in shown for line in text.splitlines()} <= lines
    )


def test_extending(walk):
    walk("extending.md")
    events = json.loads(Path("runs/own/summary.json").read_text())["events"]
    assert any(event["kind"] == "breeze_of_page" for event in events)
    assert "pendulum_path" in load_errors("runs/own")
    with musls.Session(musls.load_scenario("own.yaml", {"system.cables.links": 5})) as session:
        session.advance(1)
        assert session.inputs.wrench_enu[0, 3] == pytest.approx(0.5 * 1.225 * 0.5 * 2.0**2)
        session.advance(249)
        drift_n = session.estimate.tension_n[1, 1] - session.state.tension_n[1, 1]
        assert drift_n == pytest.approx(0.2, abs=0.2)
    reading = musls.read_recording("runs/own").signal("sensor_1", "reading")
    assert reading.value[1:, 1] == pytest.approx(0.2 * reading.time_s[1:])
    cable = json.loads(Path("runs/nylon/summary.json").read_text())
    assert "hold" in cable["errors"]["load"]


def test_own_drone(walk):
    walk("own_drone.md")
    assert "hold" in load_errors("runs/mine")
