"""`musls modes`: table and files."""

import numpy as np

from musls_bringup.cli import main


def test_it_prints_modes_and_writes_matrices_with_names(tmp_path, capsys):
    out = tmp_path / "modes"
    args = ["modes", "solo", "--set", "cable_model=massless", "--out", str(out)]
    assert main(args) == 0
    printed = capsys.readouterr().out
    assert "pendulum" in printed and "attitude" in printed
    with np.load(out / "model.npz") as model:
        assert model["A"].shape == (len(model["states"]),) * 2
        assert model["D"].shape == (len(model["outputs"]), len(model["inputs"]))
    assert (out / "modes.png").stat().st_size > 10_000
    assert main(args) == 2
    assert "--overwrite replaces it" in capsys.readouterr().err


def test_bad_input_is_one_line(tmp_path, capsys):
    for more, line in (
        (
            ["--inputs", "torques"],
            "inputs = 'torques' is unknown: allowed are rotor_speeds, forces",
        ),
        (["--at", "-1"], "at = -1: a time of the flight is 0 s or later"),
        (["--set", "cable_model=elastic"], "cable_model = elastic: no linear model"),
    ):
        out = tmp_path / "none"
        assert main(["modes", "solo", *more, "--out", str(out)]) == 2
        error = capsys.readouterr().err
        assert line in error and error.count("\n") == 1
        assert not out.exists()
