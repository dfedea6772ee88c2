"""Metrics, time series, table and figures of a sweep."""

import csv
import json

import numpy as np
import pytest

from musls_analysis.comparison.errors import error_track
from musls_analysis.comparison.quantities import find_values
from musls_analysis.comparison.summary import summarise
from musls_analysis.recordings.bag import read_bag
from musls_analysis.sweep.figures import metric_text, value_text, write_figures
from musls_analysis.sweep.plan import Metric, load_sweep, make_plan, signal_names
from musls_analysis.sweep.store import (
    Outcome,
    Store,
    chosen_metric,
    extract,
    make_rows,
    pack,
    unpack,
    usual_metrics,
    write_table,
)

SWEEP = """
scenario: engage.yaml
repetitions: 2
parameters:
  system.cables.links: {values: [5, 15], label: links}
  system.cables.joint.friction_n_m: {values: [0, 1.5e-4], label: "joint friction [N m]"}
metrics: [{name: top_m, signal: load.z_m, reduce: max}]
figures:
  - {kind: overlay, stage: STAGE, signals: [load.z_m, load.yaw_deg]}
  - {kind: metric, panels: [[real_time_factor], [top_m]]}
"""
SCENARIO = "system: x500_trio\nmission: {stages: [{kind: engage, height_m: 0.5, yaw_rad: 1.7}]}\n"


@pytest.fixture(scope="module")
def recording(flight_bag):
    return read_bag(flight_bag)


@pytest.fixture(scope="module")
def summary(recording):
    return {"real_time_factor": 12.0, "landed": True, **summarise(recording)}


@pytest.fixture(scope="module")
def series(recording):
    return unpack(pack(extract(recording, ["load", "drone_1", "cable_1", "cable_99"])))


def test_table_says_which_runs_nobody_should_learn_from(summary):
    assert usual_metrics(summary)["warnings"] == ""
    said = ["collision at 4.9 s: drone_2 and drone_6 at 4.3 m/s", "cable_1 is pulled with 90 N"]
    assert usual_metrics({**summary, "warnings": said})["warnings"] == "; ".join(said)


def test_series_survive_to_seven_digits(recording, series):
    time, z, wanted = find_values(series, "load.z_m")
    track = recording.bodies["load"]
    np.testing.assert_allclose(time, track.time_s, rtol=1e-6)
    np.testing.assert_allclose(z, track.position_enu_m[:, 2], rtol=1e-6, atol=1e-6)
    held = recording.setpoints["load"].held_at(track.time_s).position_enu_m[:, 2]
    np.testing.assert_allclose(wanted, held, rtol=1e-6, atol=1e-6)
    errors = error_track(recording, "load")
    np.testing.assert_allclose(
        find_values(series, "load.translational_error_m")[1],
        errors.translational_error_m,
        atol=1e-5,
    )
    np.testing.assert_allclose(
        np.radians(find_values(series, "load.geodesic_error_deg")[1]),
        errors.geodesic_error_rad, atol=1e-3,
    )  # fmt: skip


def test_signals_of_other_bodies_are_absent(series):
    assert (
        find_values(series, "drone_2.x_m") is None
        and find_values(series, "cable_99.tension_n") is None
    )
    assert all(find_values(series, name) for name in signal_names(["load", "drone_1", "cable_1"]))


def test_usual_metrics_are_those_of_the_summary(summary):
    row = usual_metrics(summary)
    assert row["real_time_factor"] == 12.0
    cables = summary["cables"].values()
    assert row["max_tension_n"] == max(cable["max_tension_n"] for cable in cables)
    found = {key: value for key, value in row.items() if key.startswith("errors.load.")}
    assert found
    for key, value in found.items():
        _, body, stage, kind = key.split(".")
        assert value == summary["errors"][body][stage][kind]


def test_chosen_metrics(summary, series, recording):
    def value(**metric):
        return chosen_metric(Metric(**metric), summary, series)

    tensions = [cable["max_tension_n"] for cable in summary["cables"].values()]
    assert value(path="cables.*.max_tension_n", reduce="min") == min(tensions)
    assert value(path="cables.*.max_tension_n", reduce="mean") == pytest.approx(np.mean(tensions))
    assert value(path="cables.cable_1.nothing") is None
    assert value(path="landed") == 1.0
    z = recording.bodies["load"].position_enu_m[:, 2]
    assert value(signal="load.z_m", reduce="range") == pytest.approx(np.ptp(z), abs=1e-5)
    stage = recording.stages[1]
    inside = recording.stage_mask(stage, recording.bodies["load"].time_s)
    assert value(signal="load.z_m", stage=stage.name, reduce="mean") == pytest.approx(
        z[inside].mean(), abs=1e-3
    )
    assert value(signal="load.z_m", stage="no_such_stage") is None
    # Less the set-point: its root mean squares along x, y and z are those of the distance.
    inside = {"stage": stage.name, "against": "setpoint", "reduce": "rms"}
    along = [value(signal=f"load.{axis}_m", **inside) for axis in "xyz"]
    errors = summary["errors"]["load"][stage.name]
    assert np.linalg.norm(along) == pytest.approx(errors["translational_error_rms_m"], rel=1e-3)
    # Less another body: the ways from their beginnings.
    ways = [recording.bodies[b].position_enu_m[:, 0] for b in ("load", "drone_1")]
    apart = np.abs(ways[0] - ways[0][0] - ways[1] + ways[1][0]).max()
    found = value(signal="load.x_m", against="drone_1", reduce="largest")
    assert found == pytest.approx(apart, abs=1e-5)
    assert value(signal="load.x_m", against="drone_9", reduce="largest") is None


@pytest.fixture
def swept(tmp_path, summary, series, recording):
    stage = recording.stages[-2].name
    (tmp_path / "s.yaml").write_text(SWEEP.replace("STAGE", "engage"))
    (tmp_path / "engage.yaml").write_text(SCENARIO)
    plan = make_plan(load_sweep(tmp_path / "s.yaml"), tmp_path / "engage.yaml")
    store = Store(tmp_path / "out")
    renamed = json.loads(json.dumps(summary).replace(f'"{stage}"', '"engage"'))
    with store.opened("x"):
        for k, run in enumerate(plan.runs):
            about = {"point": run.point, "settings": run.settings}
            if k == 3:
                failed = {"id": run.id, "status": "failed", "reason": "it, diverged"}
                store.write(Outcome(failed), about)
            elif k != 5:  # not made yet
                made = {"id": run.id, "status": "finished", "reason": None, "summary": renamed}
                store.write(Outcome(made, pack(series)), about)
    return plan, store


def test_the_table_has_a_row_per_run(swept):
    plan, store = swept
    rows = make_rows(plan, store)
    assert [row["id"] for row in rows] == [r.id for k, r in enumerate(plan.runs) if k != 5]
    written = write_table(rows, store.folder)
    with (store.folder / "table.csv").open(newline="") as file:
        read = list(csv.DictReader(file))
    assert [row["status"] for row in read].count("failed") == 1
    assert read[3]["reason"] == "it, diverged" and read[3]["top_m"] == ""
    assert float(read[0]["top_m"]) == rows[0]["top_m"]
    assert {row["system.cables.links"] for row in read} == {"5", "15"}
    pyarrow = pytest.importorskip("pyarrow.parquet")
    assert written[1].name == "table.parquet"
    table = pyarrow.read_table(written[1]).to_pylist()
    assert [row["top_m"] for row in table] == [row.get("top_m") for row in rows]
    assert [row["system.cables.joint.friction_n_m"] for row in table[:3]] == [0.0, 0.0, 1.5e-4]


def test_figures_are_drawn_with_failed_and_missing_runs(swept):
    plan, store = swept
    written = write_figures(plan.sweep, make_rows(plan, store), store)
    assert [path.name for path in written] == ["overlay_engage.png", "metrics.png"]
    assert all(path.stat().st_size > 10_000 for path in written)


def test_without_any_finished_run_there_is_no_figure(swept):
    plan, store = swept
    rows = [r for r in make_rows(plan, store) if r["status"] == "failed"]
    assert write_figures(plan.sweep, rows, store) == []


def test_small_values_have_a_power_of_ten():
    assert [value_text(v) for v in (0, 1.5e-4, 0.15)] == ["0", "1.5×10⁻⁴", "0.15"]


def test_metrics_have_units():
    assert metric_text("errors.load.engage.translational_error_m") == (
        "translational error [mm]", "load, engage", 1000.0
    )  # fmt: skip
    assert metric_text("max_tension_n").axis == "max tension [N]"
