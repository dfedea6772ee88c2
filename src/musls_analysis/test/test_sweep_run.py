"""Runs of a sweep: killed and resumed, failing in every way, in processes and on Dask.

The runs are made by `fly` below, which flies nothing and does what the load's mass tells it.
"""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from interrupts import interruptions

from musls_analysis.recordings.recording import PoseTrack, Recording
from musls_analysis.sweep import store as store_module
from musls_analysis.sweep.plan import load_sweep, make_plan
from musls_analysis.sweep.run import SweepProgress, run_sweep
from musls_analysis.sweep.store import Outcome, Store, SweepError, make_rows, pack
from musls_description.config.errors import ConfigError, MuslsError, lock, whole_file, writing

FLYER = "test_sweep_run:fly"
STANDS = Recording({"load": PoseTrack(np.zeros(1), np.zeros((1, 3)), np.eye(4)[:1])})
SCENARIO = "system: x500_trio\nmission: {stages: [{kind: engage, height_m: 0.5, yaw_rad: 1.7}]}\n"
SWEEP = (
    "scenario: engage.yaml\nparameters: {{system.load.mass_kg: {masses}}}\ntimeout_s: {timeout_s}\n"
)

FINE, SLOW, MISTAKE, BUG, ABORTS, KILLED, FLOODS, HANGS, FULL = (
    1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8,
)  # fmt: skip


def fly(scenario, folder):
    with Path(os.environ["MUSLS_TEST_COUNT"]).open("a") as count:
        count.write(f"{scenario.system.load.mass_kg} {scenario.seed}\n")
    match scenario.system.load.mass_kg:
        case 1.1:
            time.sleep(0.25)
        case 1.2:
            raise ConfigError("the rotors\ncannot lift")
        case 1.3:
            raise ZeroDivisionError("a bug")
        case 1.4:
            os.write(2, b"ODE INTERNAL ERROR 1\n")
            os.abort()
        case 1.5:
            os.kill(os.getpid(), signal.SIGKILL)
        case 1.6:
            for _ in range(2000):
                os.write(1, b"nan " * 1024)
        case 1.7 | 17.0:
            bag = folder / "bag"
            bag.mkdir(parents=True)
            (bag / "bag.mcap").write_text("flown so far")
            time.sleep(600)
        case 1.8:
            raise MuslsError("cannot write bag") from OSError(errno.ENOSPC, "full")
    return STANDS, {"real_time_factor": 10.0 + scenario.seed}


@pytest.fixture
def study(tmp_path, monkeypatch):
    """Gives (plan, store, count of runs made) for masses and repetitions."""
    monkeypatch.setenv("MUSLS_TEST_COUNT", str(tmp_path / "count"))
    (tmp_path / "count").touch()
    (tmp_path / "engage.yaml").write_text(SCENARIO)

    def make(masses, more="", timeout_s=30):
        path = tmp_path / "study.yaml"
        path.write_text(SWEEP.format(masses=list(masses), timeout_s=timeout_s) + more)
        plan = make_plan(load_sweep(path), tmp_path / "engage.yaml")
        made = lambda: (tmp_path / "count").read_text().splitlines()  # noqa: E731
        return plan, Store(tmp_path / "out"), made

    return make


def run(plan, store, **how):
    states = []
    with store.opened("name: study\n"):
        watch = lambda t: states.append((t.finished, t.failed, t.left))  # noqa: E731
        progress = run_sweep(plan, store, FLYER, watch, **how)
    return progress, states


def test_failing_runs_are_recorded_with_their_reason_and_cost_nothing_else(study):
    masses = [FINE, MISTAKE, BUG, ABORTS, KILLED, FLOODS]
    plan, store, made = study(masses, timeout_s=600)
    progress, states = run(plan, store, workers=2)
    assert (progress.finished, progress.failed, progress.left) == (2, 4, 0)
    assert states[0] == (0, 0, 6) and len(states) == 7 and len(made()) == 6
    records = {r.point["system.load.mass_kg"]: store.record(r.id) for r in plan.runs}
    reasons = {mass: record["reason"] for mass, record in records.items()}
    assert reasons[FINE] is None and reasons[FLOODS] is None
    assert reasons[MISTAKE] == "the rotors cannot lift"
    assert reasons[BUG] == "ZeroDivisionError: a bug"
    assert reasons[ABORTS] == "the process was ended by SIGABRT: ODE INTERNAL ERROR 1"
    assert reasons[KILLED] == "the process was ended by SIGKILL"
    logs = {mass: store.folder / "logs" / f"{r['id']}.log" for mass, r in records.items()}
    assert not logs[FINE].exists()
    assert "Traceback" in logs[BUG].read_text()
    flood = logs[FLOODS].read_text()
    assert 60_000 < len(flood) < 70_000 and "bytes left out" in flood
    assert not store.scratch.exists()


def test_a_run_that_hangs_is_ended_and_the_next_one_made(study):
    """However slow the machine is, this one takes longer; the next gets a process of its own."""
    plan, store, _ = study([HANGS, 10.0 * HANGS], "keep: bag\n", timeout_s=0.5)
    progress, _ = run(plan, store)
    assert (progress.finished, progress.failed) == (0, 2)
    assert [store.record(r.id)["reason"] for r in plan.runs] == ["took longer than 0.5 s"] * 2
    kept = [store.flight(r.id) / "bag" / "bag.mcap" for r in plan.runs]
    assert [bag.read_text() for bag in kept] == ["flown so far"] * 2
    assert not store.scratch.exists()


def test_a_full_disk_ends_the_sweep_and_what_is_missing_is_made_later(study):
    plan, store, made = study([FINE, FULL, 1.05])
    with pytest.raises(SweepError, match="cannot write bag; --resume goes on where there is room"):
        run(plan, store)
    finished = len(store.finished([r.id for r in plan.runs]))
    assert finished >= 1  # another process may have been on its way
    plan, store, made = study([FINE, 1.05])
    progress, _ = run(plan, store)
    assert (progress.before, progress.finished) == (finished, 2) and len(made()) >= 3


def test_a_sweeps_folder_that_is_full_is_one_line(study, monkeypatch):
    plan, store, _ = study([FINE])

    def full(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MuslsError, match=r"sweep\.yaml cannot be written: No space left"):
        run(plan, store)
    assert not list(store.folder.glob(".*partial*"))


def test_finished_runs_are_not_made_again_and_failed_ones_only_if_asked(study):
    plan, store, made = study([FINE, MISTAKE], "repetitions: 2\n")
    run(plan, store)
    assert len(made()) == 4
    progress, _ = run(plan, store)
    assert len(made()) == 4 and (progress.before, progress.finished, progress.failed) == (4, 2, 2)
    progress, _ = run(plan, store, retry_failed=True)
    assert len(made()) == 6 and (progress.before, progress.finished, progress.failed) == (2, 2, 2)


def test_an_old_folder_takes_new_values_and_mends_damaged_records(study):
    plan, store, made = study([FINE])
    run(plan, store)
    plan, store, made = study([FINE, 1.05, 1.06])
    assert store.finished([r.id for r in plan.runs]) == {plan.runs[0].id}
    damaged = store.folder / "runs" / f"{plan.runs[0].id}.json"
    record = json.loads(damaged.read_text())
    damaged.write_text('{"id": ')
    progress, _ = run(plan, store)
    assert progress.before == 0 and progress.finished == 3 and len(made()) == 4

    mended = json.loads(damaged.read_text())
    times = {"wall_s": 0.0, "cpu_s": 0.0}
    assert {**mended, **times} == {**record, **times}
    assert mended["id"] == damaged.stem and mended["status"] == "finished"
    assert mended["summary"] == {"real_time_factor": 10.0}
    assert mended["settings"]["system"]["load"]["mass_kg"] == FINE


KILLABLE = """
import sys
from pathlib import Path
from musls_analysis.sweep.plan import make_plan
from musls_analysis.sweep.run import run_sweep
from musls_analysis.sweep.plan import load_sweep
from musls_analysis.sweep.store import Store
folder = Path(sys.argv[1])
plan = make_plan(load_sweep(folder / "study.yaml"), folder / "engage.yaml")
store = Store(folder / "out")
with store.opened("name: study"):
    run_sweep(plan, store, "test_sweep_run:fly", lambda progress: None, workers=2)
"""


@pytest.mark.slow
def test_killed_in_the_middle_and_resumed_loses_and_repeats_nothing(study, tmp_path):
    plan, store, made = study([SLOW], "repetitions: 12\n")
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    sweep = subprocess.Popen(
        [sys.executable, "-c", KILLABLE, str(tmp_path)], env={**os.environ, "PYTHONPATH": path}
    )
    ids = [run.id for run in plan.runs]
    while len(store.finished(ids)) < 4:
        assert sweep.poll() is None
        time.sleep(0.02)
    sweep.send_signal(signal.SIGKILL)
    sweep.wait()
    time.sleep(0.6)  # a worker that lived on would finish its run
    done, begun = store.finished(ids), made()
    assert 4 <= len(done) < 12 and len(begun) <= len(done) + 2
    assert len(list((store.folder / "runs").glob("*.json"))) == len(done)

    progress, _ = run(plan, store, workers=2)
    assert (progress.before, progress.finished, progress.left) == (len(done), 12, 0)
    again = made()[len(begun) :]
    assert len(again) == len(set(again)) == 12 - len(done)
    finished_seeds = {store.record(i)["settings"]["seed"] for i in done}
    assert not {int(line.split()[1]) for line in again} & finished_seeds
    assert not store.scratch.exists()


def test_two_sweeps_do_not_share_a_folder(study):
    plan, store, _ = study([FINE])
    with store.opened("x"), pytest.raises(SweepError, match="another sweep is running"):
        run(plan, store)


def test_a_foreign_or_older_folder_is_refused(tmp_path):
    (tmp_path / "mine").mkdir()
    Store(tmp_path / "mine").check(resume=False)
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(SweepError, match="is not a sweep's folder"):
        Store(tmp_path / "mine").check(resume=True)
    with Store(tmp_path / "old").opened("x"):
        pass
    Store(tmp_path / "old").check(resume=True)
    with pytest.raises(SweepError, match="--resume continues it"):
        Store(tmp_path / "old").check(resume=False)


# The flying processes belong to Dask's workers and end with them, after the test.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.slow
def test_runs_on_a_dask_cluster(study):
    distributed = pytest.importorskip("dask.distributed")
    plan, store, made = study([FINE, MISTAKE, ABORTS], "repetitions: 2\n")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None,
        protocol="tcp",
    ) as cluster:  # fmt: skip
        progress, _ = run(plan, store, scheduler=cluster.scheduler_address)
    assert (progress.finished, progress.failed, len(made())) == (2, 4, 6)
    reasons = {store.record(r.id)["reason"] for r in plan.runs}
    assert "the process was ended by SIGABRT: ODE INTERNAL ERROR 1" in reasons


@pytest.mark.parametrize("web", [False, True], ids=["nothing", "a web server"])
def test_no_dask_scheduler_is_one_line(study, monkeypatch, web):
    pytest.importorskip("dask.distributed")
    monkeypatch.setattr("musls_analysis.sweep.run._CONNECT_S", 0.5)
    plan, store, _ = study([FINE])
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"tcp://127.0.0.1:{server.server_port if web else 9}"
        with pytest.raises(SweepError) as caught:
            run(plan, store, scheduler=address)
        server.shutdown()
    assert f"no Dask scheduler at {address}: " in str(caught.value)
    assert "\n" not in str(caught.value)


UNCLOSED = "ignore::pytest.PytestUnraisableExceptionWarning"
"""A file whose interrupt came before its name."""


def finished(mass):
    record = {"id": "b", "status": "finished", "reason": None, "summary": {"mass": mass}}
    return Outcome(record, pack(STANDS), b"new log")


@pytest.mark.filterwarnings(UNCLOSED)
def test_a_row_is_whole_or_not_there_whatever_a_signal_breaks_off(tmp_path):
    """A run that had failed is stored again; its neighbour is not touched."""
    number = 0

    def new():
        nonlocal number
        number += 1
        store = Store(tmp_path / f"{number}")
        with store.opened("name: study\n"):
            store.write(Outcome({"id": "a", "status": "failed", "reason": "old"}, log=b"old"), {})
            store.write(Outcome({"id": "b", "status": "failed", "reason": "old"}, log=b"old"), {})
        return lambda: store.write(finished(1.5), {"point": {}})

    failed = {"id": "b", "status": "failed", "reason": "old"}
    whole = finished(1.5).record | {"point": {}}
    seen = []
    storing = Store.write, store_module._write, whole_file, writing
    for trace, interrupted in interruptions(new, *storing, every="opcode"):
        work = new()
        with suppress(KeyboardInterrupt):
            interrupted(work)
        store, damaged = Store(tmp_path / f"{number}"), []
        done = store.finished(["a", "b"], failed_too=False, damaged=damaged)
        record = store.record("b")
        assert not damaged and record in (failed, whole), trace.at
        assert done == ({"b"} if record == whole else set()), trace.at
        assert record == failed or store.series("b") is not None, trace.at
        assert store.record("a")["reason"] == "old", trace.at
        seen.append(record == whole)
    assert len(seen) > 100 and any(seen) and not all(seen)


@pytest.mark.filterwarnings(UNCLOSED)
@pytest.mark.slow
def test_a_sweep_goes_on_after_a_signal_at_any_line(study, tmp_path):
    """Each run is made once, or again if the signal came before its row was stored."""
    plan, _, made = study([FINE, MISTAKE], "keep: bag\n")
    number = 0

    def new():
        nonlocal number
        number += 1
        store = Store(tmp_path / f"out{number}")
        return lambda: run(plan, store)

    lines = run_sweep, Store, SweepProgress, store_module._write, whole_file, writing, lock
    tried = 0
    for trace, interrupted in interruptions(new, *lines):
        work, before = new(), len(made())
        with suppress(KeyboardInterrupt):
            interrupted(work)
        tried += 1
        store = Store(tmp_path / f"out{number}")
        kept = store.finished([r.id for r in plan.runs], damaged=(damaged := []))
        assert not damaged, trace.at
        again = len(made())
        progress, _ = run(plan, store)
        assert (progress.finished, progress.failed) == (1, 1), trace.at
        assert progress.before == len(kept) and len(made()) - again == 2 - len(kept), trace.at
        assert again - before <= 2 and not store.scratch.exists(), trace.at
        rows = make_rows(plan, store)
        assert [row["status"] for row in rows] == ["finished", "failed"], trace.at
    assert tried > 60
