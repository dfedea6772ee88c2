"""Many flights at once: on a cluster of processes they are those of single runs, bit for bit."""

from __future__ import annotations

import csv

import pytest

import musls
from musls_bringup.cli import main

STUDY = """
name: scatter
scenario: hold
set: {cable_model: massless, wind.mean_enu_m_s: [0, 0, 0], mission.stages.0.duration_s: 0.4}
sampling: {kind: latin_hypercube, runs: 8, seed: 1}
parameters:
  system.load.mass_kg: {mean: 1.66, std: 0.05}
  wind.mean_enu_m_s.0: {mean: 0, std: 1.5}
metrics: [{name: sway_m, signal: load.x_m, reduce: range}]
"""


# The flying processes belong to Dask's workers and end with them.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.slow
def test_cluster_of_processes_gives_the_results_of_single_runs(tmp_path, monkeypatch):
    distributed = pytest.importorskip("dask.distributed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scatter.yaml").write_text(STUDY)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster:
        words = ["sweep", "scatter.yaml", "--scheduler", cluster.scheduler_address]
        assert main(words) == 0
    folder = tmp_path / "runs" / "sweep_scatter"
    names = {path.name for path in (folder / "figures").iterdir()}
    assert {"distribution.png", "over_mass_kg.png"} <= names
    rows = list(csv.DictReader((folder / "table.csv").open()))
    assert len(rows) == 8
    for row in rows[:2]:
        scenario = musls.load_scenario(
            "hold",
            {
                "cable_model": "massless",
                "wind.mean_enu_m_s": [float(row["wind.mean_enu_m_s.0"]), 0, 0],
                "mission.stages.0.duration_s": 0.4,
                "system.load.mass_kg": float(row["system.load.mass_kg"]),
            },
        )
        alone = musls.fly(scenario).errors().by_body()["load"]["hold"]
        assert (
            float(row["errors.load.hold.translational_error_m"]) == alone["translational_error_m"]
        )
