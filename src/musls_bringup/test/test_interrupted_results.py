"""A signal at every line of what makes, fills and replaces a result folder."""

import signal
from contextlib import suppress

import pytest
from fly_helpers import TINY, contents
from interrupts import interruptions
from mcap.reader import make_reader

from musls_bringup.flight import fly as fly_module
from musls_bringup.flight import results
from musls_bringup.flight.fly import FlyOptions, fly
from musls_bringup.flight.results import result_folder
from musls_sim.recording import BagRecorder
from musls_sim.recording.bag_file import BagFile
from musls_sim.scenario.scenario import load_scenario

pytestmark = pytest.mark.filterwarnings(  # of a lock's file: an interrupt comes before the name
    "ignore::pytest.PytestUnraisableExceptionWarning"
)

OLD = {"x/summary.json": b"old", "x/bag/bag.mcap": b"old"}


def files_in(folder):
    return {k: v for k, v in contents(folder).items() if isinstance(v, bytes)}


def make_old(folder):
    (folder / "x" / "bag").mkdir(parents=True)
    for name, data in OLD.items():
        (folder / name).write_bytes(data)


FOLDER = result_folder, results._locked, results._made, results._is, results.check_folder


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("older", [False, True])
@pytest.mark.parametrize("bag", [False, True])
def test_a_result_is_there_or_the_older_one_whatever_is_interrupted(tmp_path, bag, older, fails):
    number = 0

    def new():
        nonlocal number
        number += 1
        place = tmp_path / f"{number}"
        place.mkdir()
        if older:
            make_old(place)
        return lambda: make(place)

    def make(place):
        with (
            suppress(ZeroDivisionError),
            result_folder(place / "x", overwrite=older) as work,
        ):
            written.clear()
            if bag:
                (work / "bag").mkdir()
                (work / "bag" / "bag.mcap").write_bytes(b"new")
                written.append("bag")
            if fails:
                raise ZeroDivisionError
            (work / "summary.json").write_bytes(b"new")

    written = []
    tried = 0
    for trace, interrupted in interruptions(new, *FOLDER, every="opcode"):
        work = new()
        written.clear()
        with suppress(KeyboardInterrupt):
            interrupted(work)
        tried += 1
        found = files_in(tmp_path / f"{number}")
        places = {name.partition("/")[0] for name in found}
        if written:
            assert found["x/bag/bag.mcap"] == b"new", trace.at
        elif older:
            whole = {k: v for k, v in found.items() if k.startswith("x/")}
            allowed = [OLD, {"x/summary.json": b"new"}]
            if fails and not whole.keys() - {"x/.unfinished"}:  # its cleaning up was broken off
                assert all(found[f".x.older{name[1:]}"] == b"old" for name in OLD), trace.at
            else:
                assert whole in allowed, trace.at
        else:
            assert found in ({}, {"x/summary.json": b"new"}, {"x/.unfinished": b""}), trace.at
        assert places <= {"x", ".x.older"}, trace.at
    assert tried > 100


FLYING = (
    *FOLDER, fly, fly_module.keeping, fly_module.write_results, fly_module.write_summary,
    fly_module.summary_of, fly_module._flown, fly_module._facts, fly_module._Start,
    BagRecorder, BagFile,
)  # fmt: skip


@pytest.mark.slow
def test_a_flight_is_kept_or_the_older_result_whatever_line_a_signal_breaks_off(tmp_path):
    before = signal.getsignal(signal.SIGINT)
    results.catch()
    (tmp_path / "tiny.yaml").write_text(TINY)
    scenario = load_scenario(tmp_path / "tiny.yaml", ["cable_model=massless"])
    number, tried = 0, 0

    def new():
        nonlocal number
        number += 1
        make_old(tmp_path / f"{number}")
        options = FlyOptions(overwrite=True, report=False)
        return lambda: fly(scenario, tmp_path / f"{number}" / "x", options)

    try:
        press = {"interrupt": lambda: signal.raise_signal(signal.SIGINT)}
        for trace, interrupted in interruptions(new, *FLYING, **press):
            work = new()
            with suppress(results.StopRequested):
                interrupted(work)
            tried += 1
            folder = tmp_path / f"{number}"
            found = files_in(folder)
            assert sorted(p.name for p in folder.iterdir()) in (["x"], [".x.older", "x"]), trace.at
            if "x/summary.json" in found:
                assert found["x/summary.json"] != b"old" or found == OLD, trace.at
            if found != OLD:
                with (folder / "x" / "bag" / "bag.mcap").open("rb") as file:
                    assert any(make_reader(file).iter_messages()), trace.at
                assert (folder / "x" / "bag" / "metadata.yaml").is_file(), trace.at
    finally:
        signal.signal(signal.SIGINT, before)
    assert tried > 200
