"""The command `musls ros rehearse` without flights: faults, table, exit codes."""

from itertools import count

import pytest

from musls_bringup.catalogue.shipped import find_scenario
from musls_bringup.cli import main
from musls_bringup.ros.rehearsal import (
    FAULTS,
    HEADINGS,
    Row,
    chosen_faults,
    rehearse,
    write_table,
)
from musls_description.config.errors import ConfigError


def test_faults_are_chosen_by_name_and_listed(capsys):
    assert [fault.name for fault in chosen_faults("all")] == list(FAULTS)
    assert [fault.name for fault in chosen_faults("swapped, frozen")] == ["swapped", "frozen"]
    with pytest.raises(ConfigError, match=r"--faults frosen: .*frozen"):
        chosen_faults("frosen")
    assert main(["ros", "rehearse", "--list"]) == 0
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines()] == list(FAULTS)


def test_limits_that_are_broken_are_in_the_table_and_in_the_exit_code(
    tmp_path, monkeypatch, capsys
):
    """The command, with flights that are made up."""
    numbers = count()

    def made_up(scenario, faults, out, say, done, **_):
        out.mkdir()
        rows = [Row(f.name, f.what, broken="" if next(numbers) else "collision") for f in faults]
        write_table(scenario, rows, out)
        return rows

    monkeypatch.setattr("musls_bringup.ros.rehearsal.rehearse", made_up)
    out = str(tmp_path / "out")
    assert main(["ros", "rehearse", "circle", "--faults", "frozen,jump", "--out", out]) == 1
    printed = capsys.readouterr().out
    assert " | ".join(HEADINGS) in printed and "limits broken in frozen: " in printed
    again = ["ros", "rehearse", "circle", "--faults", "jump", "--out", out]
    assert main(again) == 2
    assert main([*again, "--overwrite"]) == 0


def test_real_px4s_are_refused_in_one_line(tmp_path):
    scenario = find_scenario("circle", ["autopilot.kind=px4"])
    with pytest.raises(ConfigError, match=r"autopilot\.kind = px4: a rehearsal flies stand-ins"):
        rehearse(scenario, chosen_faults("frozen"), tmp_path / "out", domain=1)
    assert not (tmp_path / "out").exists()
