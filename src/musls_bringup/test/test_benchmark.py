"""`musls benchmark`: cases, scores, results."""

import hashlib
import json
import runpy
from pathlib import Path

import numpy as np
import pytest

import musls
from musls_bringup.benchmark import benchmark as bench
from musls_bringup.cli import main
from musls_description.config.errors import ConfigError


def test_every_task_is_a_scenario_that_can_be_read():
    found = bench.cases(("formation", "payload_indi"), quick=False)
    assert len(found) % 2 == 0
    indi = musls.load_scenario(found[-1]["scenario"])
    assert (indi.controller.kind, indi.autopilot.tracker) == ("payload", "indi")
    found = found[: len(found) // 2]
    systems = {"1", "2", "3", "4", "6", "3 ball", "3 agile", "3 x0.1", "3 x0.3", "3 x3", "3 x10"}
    assert len(found) > 30 and {case["system"] for case in found} == systems
    for case in found:
        musls.load_scenario(case["scenario"])
    quick = bench.cases(("formation",), quick=True)
    assert 2 < len(quick) < len(found) and all(case in found for case in quick)


@pytest.mark.parametrize("factor", [0.1, 0.3, 3.0, 10.0])
def test_scaled_systems_are_likenesses_of_the_trio(factor):
    """Masses by the cube, and a rotor's largest thrust with it; lengths; times by the root."""
    trio = musls.load_scenario("circle").system
    (case,) = [
        c for c in bench.cases(("formation",), quick=False) if c["system"] == f"3 x{factor:g}"
    ]
    like = musls.load_scenario(case["scenario"]).system
    assert like.load.mass_kg == pytest.approx(trio.load.mass_kg * factor**3, rel=1e-4)
    assert like.cables[0].length_m == pytest.approx(trio.cables[0].length_m * factor, rel=1e-4)
    for small, big in zip(like.drones, trio.drones, strict=True):
        assert small.max_thrust_n == pytest.approx(big.max_thrust_n * factor**3, rel=1e-3)
        up, base = small.rotors[0].time_constant_up_s, big.rotors[0].time_constant_up_s
        assert up == pytest.approx(base * factor**0.5, rel=1e-4)


def test_scores_of_a_flight_are_those_of_its_recording():
    case = bench.cases(("formation",), quick=True)[0]
    case = {**case, "scenario": {**case["scenario"], "cable_model": "massless"}}
    row = bench.fly_case(case)
    run = musls.fly(musls.load_scenario(case["scenario"]))
    errors = [e for e in run.errors() if e.body == "load" and e.stage == "hold"]
    assert row["rms_m"] == pytest.approx(errors[0].translational_error_rms_m)
    assert row["success"] and row["reason"] == "" and row["slack_share"] == 0.0
    assert row["max_tension_n"] > 9.8 * 1.6 / 3 and row["energy_j"] > 0.0
    assert row["controller_us"] is None  # the formation's set-points need no call
    again = bench.fly_case({**case, "limit_m": 1e-6})
    assert not again["success"] and again["reason"].startswith("rms error")
    assert bench.digest([row]) == bench.digest([{**row, "controller_us": 1.0}])
    assert bench.digest([row]) != bench.digest([{**row, "rms_m": 1.0}])


def test_a_flight_that_fails_is_a_row_with_its_reason(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "import musls\nclass Mine(musls.Controller):\n    level = 'forces'\n"
        "    def step(self, time_s, reference, estimate):\n        raise ValueError('oh')\n"
    )
    name = f"{file}:Mine"
    case = bench.cases((name,), quick=True)[0]
    row = bench.fly_case({**case, "scenario": {**case["scenario"], "cable_model": "massless"}})
    assert not row["success"] and "oh" in row["reason"] and row["rms_m"] is None
    files = {path.name: path for path in bench.write([row], tmp_path / "out", [name])}
    assert files.pop("errors.png").stat().st_size > 5_000
    written = {name: path.read_text() for name, path in files.items()}
    assert json.loads(written["results.json"])["digest"] == bench.digest([row])
    assert written["results.csv"].count("\n") == 2 and "<td>0/1</td>" in written["table.html"]
    assert r"hover\_poke" in written["table.tex"]
    results = json.loads(written["results.json"])
    (told,) = results["controllers"].values()
    assert told == {
        "file": "mine.py:Mine", "sha256": hashlib.sha256(file.read_bytes()).hexdigest()
    }  # fmt: skip
    assert not any(str(tmp_path) in text for text in written.values())
    heads, cells = bench.table([row])
    assert len(heads) == len(cells[0]) and np.isin("-", cells[0])


def test_bad_input_is_one_line(tmp_path, capsys):
    for name, line in (("nonsense", "controller"), (f"{tmp_path}/no.py:Mine", "no.py")):
        with pytest.raises(ConfigError, match=line):
            bench.cases((name,), quick=True)
        assert main(["benchmark", name, "--quick", "--out", str(tmp_path / "out")]) == 2
        assert capsys.readouterr().err.strip().count("\n") == 0
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_controller_that_ends_its_process_fails_its_own_flights(tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text(
        "import os, musls\nclass Mine(musls.Controller):\n    level = 'forces'\n"
        "    def step(self, time_s, reference, estimate):\n        os._exit(3)\n"
    )
    rows = bench.benchmark(("formation", f"{file}:Mine"), quick=True, workers=2)
    assert all(row["rms_m"] for row in rows if row["controller"] == "formation")
    reasons = {row["reason"] for row in rows if row["controller"] == "mine.py:Mine"}
    assert reasons == {"a worker process ended with code 3 (out of memory, or killed)"}


@pytest.mark.slow
def test_an_interrupt_keeps_the_rows_that_were_flown():
    def stop(done, total):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as ended:
        bench.benchmark(("formation",), quick=True, progress=stop)
    (row,) = ended.value.rows
    assert row["rms_m"] > 0.0


def test_a_benchmark_that_was_killed_goes_on(tmp_path, monkeypatch):
    case = bench.cases(("formation",), quick=True)[0]
    short = {**case["scenario"], "cable_model": "massless", "start": "air"}
    two = [{**case, "scenario": {**short, "seed": seed}, "seed": seed} for seed in (1, 2)]
    monkeypatch.setattr(bench, "cases", lambda controllers, *, quick: two)
    kept, counts = tmp_path / "out" / bench.FLOWN, []

    def fly():
        counts.clear()
        note = lambda done, total: counts.append(done)  # noqa: E731
        return bench.benchmark(("formation",), progress=note, kept=kept)

    rows = fly()
    first, second = kept.read_text().splitlines()
    assert counts == [0, 1, 2]
    kept.write_text(f"{first}\n{second[:40]}")  # killed while it wrote the second
    again = fly()
    assert counts == [1, 2] and bench.digest(again) == bench.digest(rows)
    monkeypatch.setattr(bench, "VERSION", "0.0.0")  # of another version: all anew
    fly()
    assert counts == [0, 1, 2]


def test_resume_needs_a_folder(capsys):
    assert main(["benchmark", "--resume"]) == 2
    assert "--resume is for an unfinished benchmark in --out" in capsys.readouterr().err


DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.skipif(not DOCS.is_dir(), reason="docs/ come with a checkout")
def test_pages_and_the_results_that_are_kept_agree():
    """`python docs/made_tables.py` writes the pages."""
    made = runpy.run_path(str(DOCS / "made_tables.py"))
    for name in made["FILLED"]:
        text = (DOCS / name).read_text(encoding="utf-8")
        assert made["filled"](text) == text and made["BLOCK"].search(text), name
    files = sorted(made["LEADERBOARD"].glob("*.json"))
    tasks = len(bench.cases(("formation",), quick=False))
    for path in files:
        results = json.loads(path.read_text(encoding="utf-8"))
        assert results["digest"] == bench.digest(results["rows"]), path.name
        assert len(results["rows"]) == tasks * len(results["controllers"]), path.name
    (row,) = [line for line in made["leaderboard"]().splitlines() if "slalom, 3|" in line]
    rows = [row for path in files for row in json.loads(path.read_text(encoding="utf-8"))["rows"]]
    errors = [r["rms_m"] for r in rows if (r["task"], r["system"]) == ("slalom", "3")]
    assert all(f"{error:.3f}" in row for error in errors) and f"**{min(errors):.3f}**" in row
