"""`musls fly --verify`: how well the figures of a flight are converged."""

import json

import pytest

import musls
from musls_analysis.comparison.convergence import Converged
from musls_bringup.cli.app import main
from musls_bringup.verify import check_verifiable


def series(limit, error, order):
    """A figure at h, h/2 and h/4 whose error shrinks by 2**order each time."""
    return tuple(limit + error * 2.0 ** (-order * k) for k in range(3))


@pytest.mark.parametrize("order", [1, 2, 4])
@pytest.mark.parametrize("error", [0.02, -0.003])
def test_error_of_a_converging_figure_is_its_distance_from_the_limit(order, error):
    found = Converged.of("tension.in_flight.max_n", series(1.0, error, order))
    assert found.error == pytest.approx(abs(error), rel=1e-9)


@pytest.mark.parametrize(
    "values",
    [(118.0, 125.0, 47.0), (61.2, 61.1, 116.0), (14.0, 27.0, 36.0)],  # peaks of impacts
)
def test_a_peak_that_does_not_converge_has_no_error(values):
    found = Converged.of("tension.touch_down.max_n", values)
    assert found.error is None
    assert found.text("N").startswith("does not converge")


def test_changes_that_nobody_measures_are_small():
    assert Converged.of("errors.load.hold.translational_error_m", (1e-6, 3e-6, 1e-6)).error < 1e-5
    assert Converged.of("cables.cable_1.slack_fraction", (0.0, 0.0, 0.0)).error == 0.0


def test_text_has_as_many_digits_as_are_known():
    assert Converged((0.3070123, 0.3, 0.3), 0.0003).text("mm", 1e3) == "307.0 mm +- 0.3 mm"


def test_a_calm_flight_converges_in_every_figure(tmp_path, capsys):
    out = tmp_path / "hold"
    assert main(["fly", "hold", "--verify", "--no-report", "--out", str(out)]) == 0
    summary = json.loads((out / "summary.json").read_text())
    found = summary["verification"]
    load = found["figures"]["errors.load.hold.translational_error_m"]
    assert load["values"][0] == summary["errors"]["load"]["hold"]["translational_error_m"]
    assert load["values"][0] != load["values"][1]  # flown with another step
    assert all(figure["error"] is not None for figure in found["figures"].values())
    assert found["max_distance_m"] < 1e-3
    assert (out / "figures" / "convergence.png").is_file()
    assert "verified: load error" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("overrides", "segments", "named"),
    [
        (["autopilot.kind=px4"], False, "autopilot.kind = px4"),
        (["physics.engine=gazebo"], False, "physics.engine = gazebo"),
        (["cable_model=massless"], True, "cable_model = massless has no segments"),
    ],
)
def test_what_cannot_be_verified_says_so(overrides, segments, named):
    scenario = musls.load_scenario("circle", overrides)
    with pytest.raises(musls.ConfigError, match=named):
        check_verifiable(scenario, segments=segments)


def test_finer_segments_are_another_flight():
    scenario = musls.load_scenario("hold")
    steps, both = musls.verify(scenario), musls.verify(scenario, segments=True)
    name = "errors.load.hold.translational_error_m"
    assert steps.figures[name].values[0] == both.figures[name].values[0]
    assert steps.figures[name].values[1] != both.figures[name].values[1]
