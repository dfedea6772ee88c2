"""Many flights at once: on a cluster of processes they are those of single runs, bit for bit."""

from __future__ import annotations

import csv
import re
import signal
from pathlib import Path

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


PAGE = Path(__file__).parents[3] / "docs" / "sweeps.md"


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.skipif(not PAGE.is_file(), reason="docs/ come with a checkout")
def test_the_documented_slurm_job_is_one_worker_with_a_thread_per_core():
    """Flights are made in processes below the worker's threads, so these must be as many as cores.

    As far as this can be tested without Slurm: the script that would be submitted.
    """
    handler = signal.getsignal(signal.SIGINT)
    jobqueue = pytest.importorskip("dask_jobqueue", reason="the extra slurm is not installed")
    signal.signal(signal.SIGINT, handler)  # the import has replaced it
    (call,) = re.findall(r"# cluster = SLURMCluster\((.*)\)", PAGE.read_text(encoding="utf-8"))
    settings = eval(f"dict({call})")
    options = {"dashboard_address": None, "host": "127.0.0.1"}
    with jobqueue.SLURMCluster(**settings, scheduler_options=options) as cluster:
        script = cluster.job_script()
    cores, queue = settings["cores"], settings["queue"]
    for line in (f"-p {queue}", "-n 1", f"--cpus-per-task={cores}", f"-t {settings['walltime']}"):
        assert f"#SBATCH {line}\n" in script
    assert f"--nthreads {cores} " in script and "--nworkers" not in script
    assert "dask_worker tcp://127.0.0.1:" in script
