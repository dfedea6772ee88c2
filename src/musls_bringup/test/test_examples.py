"""The scripts in examples/ and the code in three pages of docs/ run as they stand.

Those in benchmarks/, whose tables take minutes, find what they import.
"""

import json
import re
import runpy
import sys
from pathlib import Path

import pytest

import musls

ROOT = Path(__file__).parents[3]
EXAMPLES, BENCHMARKS = ROOT / "examples", ROOT / "benchmarks"
PAGE = ROOT / "docs" / "python.md"
MANY, LEARNING = ROOT / "docs" / "batch.md", ROOT / "docs" / "learning.md"

pytestmark = pytest.mark.skipif(not EXAMPLES.is_dir(), reason="examples/ come with a checkout")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, with the examples importable as from their own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield tmp_path
    sys.modules.pop("own_controller", None)


LONG = {"train_ppo.py", "train_sb3.py"}
"""Examples that run for minutes and write files."""


@pytest.mark.parametrize("script", sorted({p.name for p in EXAMPLES.glob("*.py")} - LONG))
def test_an_example_runs_and_writes_nothing(here, script):
    if script == "random_policy.py":
        pytest.importorskip("gymnasium", reason="the extra rl is not installed")
    if script == "export_policy.py":
        pytest.importorskip("onnx", reason="the package onnx is not installed")
        pytest.importorskip("onnxruntime", reason="the extra learned is not installed")
    runpy.run_path(str(EXAMPLES / script), run_name="__main__")
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("script", sorted(p.name for p in BENCHMARKS.glob("*.py")))
def test_a_benchmark_finds_what_it_imports(monkeypatch, script):
    if script == "allocation_qp.py":
        pytest.importorskip("proxsuite", reason="proxsuite is not installed")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    runpy.run_path(str(BENCHMARKS / script), run_name="benchmark")


@pytest.mark.slow
def test_a_policy_is_trained_and_flies(here, monkeypatch, capsys):
    """A few steps only: what comes out is a file that the controller flies with."""
    for package in ("jax", "optax", "onnx", "onnxruntime", "gymnasium"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.setattr(sys, "argv", ["train_ppo.py", "--steps", "5000", "--out", "short.onnx"])
    runpy.run_path(str(EXAMPLES / "train_ppo.py"), run_name="__main__")
    returns = dict(re.findall(r"(formation|learned) +return +(-?\d+\.\d)", capsys.readouterr().out))
    assert float(returns["formation"]) > 110.0 and "learned" in returns
    controller = {"kind": "learned", "policy": "short.onnx"}
    with musls.Session(musls.load_scenario("transport", {"controller": controller})) as session:
        session.advance(50)
        assert session.state.position_enu_m[0, 2] > 1.5


def blocks():
    """Python blocks of the page, by their first line that says something."""
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    return {f"{k}_{text.splitlines()[2][:30]}": text for k, text in enumerate(found)}


def test_the_code_of_the_page_on_learning_runs(here):
    """Its blocks go on from each other."""
    for package in ("gymnasium", "pettingzoo"):
        pytest.importorskip(package, reason="the extra rl is not installed")
    names = {}
    for text in re.findall(r"```python\n(.*?)```", LEARNING.read_text(encoding="utf-8"), re.S):
        exec(compile(text, str(LEARNING), "exec"), names)
    assert len(names["rewards"]) == 6


@pytest.mark.parametrize("name", blocks())
def test_the_code_of_the_page_runs(here, name):
    text = blocks()[name]
    if "gymnasium" in text:
        pytest.importorskip("gymnasium", reason="the extra rl is not installed")
    exec(compile(text, str(PAGE), "exec"), {})
    assert list(here.iterdir()) == []


def test_the_code_of_the_page_on_many_worlds_runs(here):
    """Its blocks go on from each other."""
    blocks = re.findall(r"```python\n(.*?)```", MANY.read_text(encoding="utf-8"), re.S)
    assert len(blocks) == 3
    names = {}
    for text in blocks:
        exec(compile(text, str(MANY), "exec"), names)
    batch = names["batch"]
    assert batch.motion.shape == (8, 4, 16)
    assert batch.time_s.tolist() == [2.0, *[2.2] * 2, 2.0, *[2.2] * 4]


def test_the_study_of_the_page_on_monte_carlo_runs(here):
    page = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
    text = re.findall(r"```python\n(.*?)```", page, re.S)[0]  # the other one starts a cluster
    names = {}
    exec(compile(text, "sweeps.md", "exec"), names)
    largest = max(row["errors.load.hold.translational_error_max_m"] for row in names["study"].rows)
    assert names["run"].errors().by_body()["load"]["hold"]["translational_error_max_m"] == largest
    assert list(here.iterdir()) == []


GALLERY = runpy.run_path(str(ROOT / "docs/pictures/gallery.py"), run_name="gallery")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["payload", "ring", "crane"])  # all ten fly for two minutes
def test_the_gallery_shows_what_its_script_flies(here, monkeypatch, name):
    """Commands are those of the page, its numbers within 10 %; the film can be drawn."""
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    show = GALLERY["RUNS"][name]
    summary = GALLERY["flown"](name, show, here)
    told, flown = (
        [float(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]
        for text in (page.split(show.text, 1)[1].split("\n")[0], GALLERY["numbers"](show, summary))
    )
    assert told == pytest.approx(flown, rel=0.1, abs=1.0)
    assert f"\nmusls fly {show.fly}\n" in page
    if name == "ring":
        monkeypatch.setitem(GALLERY["draw"].__globals__, "HERE", here)
        GALLERY["draw"](name, show, summary, here)
        assert (here / "gallery_ring.gif").stat().st_size > 10_000


def executed(notebook):
    """Names that the cells of a notebook leave behind, run one after another."""
    cells = json.loads((EXAMPLES / notebook).read_text(encoding="utf-8"))["cells"]
    names = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], "outputs are not kept in git"
            exec("".join(cell["source"]), names)
    return names


def test_each_notebook_is_run_here():
    assert {path.name for path in EXAMPLES.glob("*.ipynb")} == {
        "cable_models.ipynb", "flight.ipynb",
    }  # fmt: skip


def test_the_notebook_of_a_flight_runs(here):
    run = executed("flight.ipynb")["run"]
    assert [event.kind for event in run.events] == ["poke", "poke"], "its beginning and its end"
    assert run.body("load").position_enu_m[:, 0].max() > 0.02
    assert list(here.iterdir()) == []


def test_the_notebook_of_cable_models_shows_that_they_agree(here):
    reached_m = executed("cable_models.ipynb")["reached_m"]
    assert min(reached_m.values()) > 0.05
    assert max(reached_m.values()) < 1.1 * min(reached_m.values())
    assert list(here.iterdir()) == []


def test_the_controller_is_short_and_keeps_the_load(here):
    from own_controller import LoadFeedback

    import musls

    lines = (EXAMPLES / "own_controller.py").read_text(encoding="utf-8").split("\nclass ")[1]
    assert len(lines.splitlines()) <= 25
    scenario = musls.load_scenario("hold", {"mission.stages.0.duration_s": 6.0})
    run = musls.fly(scenario, controller=LoadFeedback)
    load = run.body("load").position_enu_m
    assert abs(load[-1] - [0.0, 0.0, 1.0]).max() < 0.02
