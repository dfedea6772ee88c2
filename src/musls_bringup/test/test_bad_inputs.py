"""Whatever is put in: a result, or one clear line; never a traceback, and nothing is written."""

import os
import re
import warnings
from pathlib import Path

import pytest
from bad_inputs import BadInputs, Case

import musls_bringup.fly
from musls_analysis.comparison.cycles import cut
from musls_analysis.recordings.readers import read_recording
from musls_analysis.replay.motion import Motion, RecordedPaths, ReplaySpec
from musls_analysis.sweep.plan import load_sweep, make_plan, points
from musls_bringup.cli.app import main
from musls_bringup.shipped import sweep_scenario_path
from musls_description.config.errors import MAX_LENGTH, MuslsError
from musls_description.config.schema import to_yaml
from musls_description.system.system_files import load_system
from musls_sim.autopilots import hover_parameters
from musls_sim.preflight.checks import refuse_or_warn
from musls_sim.scenario.scenario import load_scenario

SEED = 20261122
CHUNK = 50
FAST, ALL = 200, 1000


class AcceptedError(MuslsError):
    """The input was good by chance; this ends the command before anything is flown."""


def checked_only(scenario, *args, **kwargs):
    """Everything that is checked before a flight, then the end."""
    if not scenario.mission.stages:  # a rig without drones that fly
        to_yaml(scenario)
        raise AcceptedError("accepted")
    refuse_or_warn(scenario)
    hover_parameters(scenario)
    to_yaml(scenario)
    raise AcceptedError("accepted")


def run_directly(case: Case, *, thorough: bool = False) -> None:
    """What reads the file, without the command line, so that every error is seen as it is."""
    name = next(iter(case.files), "")
    if case.kind == "scenario":
        load_scenario(Path(name))
    elif case.kind == "system":
        load_system("sys.yaml")
    elif case.kind == "sweep":
        sweep = load_sweep(Path(name))
        if len(points(sweep)) <= 4:
            make_plan(sweep, sweep_scenario_path(sweep.scenario, Path(name)))
    elif case.kind == "recording":
        recording = read_recording(name)
        for stage in recording.stages:
            try_to(cut, recording, stage.name)
        if thorough:  # smoothing takes its time
            Motion(RecordedPaths(recording), ReplaySpec())


def try_to(function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except MuslsError as error:
        check_message(str(error))


def check_message(message: str) -> None:
    assert message and "\n" not in message and message.isprintable()
    assert len(message) <= MAX_LENGTH + 50


def check(case: Case, capsys, *, thorough: bool = False) -> None:
    """Put one input in."""
    for name, content in case.files.items():
        Path(name).write_bytes(content)
    before = snapshot()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # NumPy's, which would be printed
        warnings.simplefilter("ignore", UserWarning)  # our own, before a flight
        try_to(run_directly, case, thorough=thorough)
        if case.argv:
            capsys.readouterr()
            status = main(case.argv)
            printed = capsys.readouterr()
            assert status in (0, 2), status
            if status == 2:
                last = printed.err.splitlines()[-1]
                assert last.startswith("musls: error: "), printed.err[-500:]
                others = [line for line in printed.err.splitlines()[:-1] if line.strip()]
                assert all(re.match(r"musls: (?!error)", line) for line in others), others
                assert not printed.out
    assert snapshot() == before
    for name in case.files:
        os.unlink(name)


def snapshot() -> set[str]:
    return {str(path) for path in Path().rglob("*")}


def run_chunk(chunk: int, folder: Path, capsys, monkeypatch, *, thorough: bool = False) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(musls_bringup.fly, "fly", checked_only)
    inputs = BadInputs(SEED)
    for k in range(CHUNK * chunk, CHUNK * (chunk + 1)):
        case = inputs.case(k)
        try:
            check(case, capsys, thorough=thorough)
        except BaseException as error:  # whatever it is, say which case makes it again
            error.args = (f"BadInputs({SEED}).case({k}), {case.kind} {case.argv}: {error!s:.2000}",)
            raise


@pytest.mark.parametrize("chunk", range(FAST // CHUNK))
def test_bad_inputs_end_in_one_line(chunk, tmp_path, capsys, monkeypatch):
    run_chunk(chunk, tmp_path, capsys, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(FAST // CHUNK, ALL // CHUNK))
def test_more_bad_inputs_end_in_one_line(chunk, tmp_path, capsys, monkeypatch):
    run_chunk(chunk, tmp_path, capsys, monkeypatch, thorough=True)


def test_the_generator_makes_bad_and_good_inputs_of_all_kinds(tmp_path, monkeypatch):
    """It would be worth nothing if all were refused for the same reason, or none at all."""
    cases = [BadInputs(SEED).case(k) for k in range(FAST)]
    assert {case.kind for case in cases} == {
        "scenario", "system", "sweep", "recording", "command"
    }  # fmt: skip
    monkeypatch.chdir(tmp_path)
    messages, good = [], 0
    for case in cases:
        if case.kind in ("scenario", "system"):
            for name, content in case.files.items():
                Path(name).write_bytes(content)
            try:
                run_directly(case)
                good += 1
            except MuslsError as error:
                messages.append(str(error))
    reasons = {message.partition(": ")[2] for message in messages}
    assert good >= 5 and len(reasons) >= 20


def test_a_case_can_be_made_again():
    assert BadInputs(1).case(7) == BadInputs(1).case(7)
    assert BadInputs(1).case(7) != BadInputs(2).case(7)
