"""Figures of studies show the numbers of the table; normal draws have their moments."""

from __future__ import annotations

import numpy as np
import pytest

from musls_analysis.figures.style import styled
from musls_analysis.sweep.figures import _usual, distribution_figure, map_figure, parallel_figure
from musls_analysis.sweep.plan import MapFigure, SweepSpec, load_sweep, points
from musls_description.config.errors import ConfigError

ERROR = "errors.load.hold.translational_error_m"


def study(tmp_path, text):
    path = tmp_path / "study.yaml"
    path.write_text(f"scenario: hold\nmetrics: [{{name: top_m, signal: load.z_m}}]\n{text}")
    return load_sweep(path)


def rows(sweep: SweepSpec):
    return [
        {**point, "status": "finished", ERROR: 0.001 * k, "top_m": 1.0 + k, "max_tension_n": 5.0}
        for k, point in enumerate(points(sweep))
    ]


def test_map_has_the_mean_of_every_cell(tmp_path):
    sweep = study(
        tmp_path,
        "parameters: {system.load.mass_kg: [1, 2], seed: [1, 2, 3], wind.gust_time_s: [2, 3]}",
    )
    with styled():
        drawn = map_figure(sweep, MapFigure(metrics=(ERROR, "top_m")), rows(sweep))
    cells = drawn.axes[0].collections[0].get_array()
    # Rows vary fastest in the last parameter, over which the mean is taken; millimetres.
    np.testing.assert_allclose(np.ravel(cells), [0.5, 6.5, 2.5, 8.5, 4.5, 10.5])
    titled = [ax.get_title(loc="left") for ax in drawn.axes[:2]]
    assert titled == ["translational error: load, hold", "top"]
    assert drawn.axes[0].get_xlabel() == "mass [kg]"


def test_usual_figures_show_what_was_asked_for(tmp_path):
    def kinds(text):
        sweep = study(tmp_path, text)
        return {figure.kind: figure for figure in _usual(sweep, rows(sweep))}

    two = kinds("parameters: {system.load.mass_kg: [1, 2], seed: [1, 2]}")
    assert two["map"].metrics == (ERROR, "top_m")
    assert ("top_m",) in two["metric"].panels
    draws = kinds(
        "sampling: {kind: random, runs: 8}\n"
        "parameters: {system.load.mass_kg: {min: 1, max: 2}, wind.gust_time_s: {min: 1, max: 2},"
        " seed: {min: 0, max: 9, integer: true}}"
    )
    assert set(draws) == {"parallel", "distribution", "metric", "fan"}


def test_distribution_names_its_percentiles(tmp_path):
    sweep = study(
        tmp_path,
        "sampling: {kind: random, runs: 101}\nparameters: {system.load.mass_kg: {min: 1, max: 2}}",
    )
    figure = next(f for f in _usual(sweep, rows(sweep)) if f.kind == "distribution")
    drawn = distribution_figure(sweep, figure, rows(sweep))
    texts = [text.get_text() for text in drawn.axes[0].texts]
    assert texts == ["5 %\n5", "50 %\n50", "95 %\n95"]
    lines = [line.get_xdata()[0] for line in drawn.axes[0].lines]
    np.testing.assert_allclose(lines, [5, 25, 50, 75, 95])


def test_parallel_lines_go_through_the_values(tmp_path):
    sweep = study(
        tmp_path, "parameters: {system.load.mass_kg: [1, 2, 4], cable_model: [elastic, massless]}"
    )
    figure = parallel_figure(sweep, type("F", (), {"metrics": ("top_m",)})(), rows(sweep))
    lines = np.array([line.get_ydata() for line in figure.axes[0].lines])
    np.testing.assert_allclose(lines[:, 0], [0, 0, 1 / 3, 1 / 3, 1, 1])
    np.testing.assert_allclose(lines[:, 1], [0, 1] * 3)


@pytest.mark.parametrize("kind", ["random", "latin_hypercube"])
def test_normal_draws(tmp_path, kind):
    sweep = study(
        tmp_path,
        f"sampling: {{kind: {kind}, runs: 4000, seed: 3}}\n"
        "parameters: {a.b: {mean: 2.0, std: 0.1}, c.d: {mean: 0.0, std: 1.0, min: 0.0}}",
    )
    drawn = np.array([[p["a.b"], p["c.d"]] for p in points(sweep)])
    assert drawn[:, 0].mean() == pytest.approx(2.0, abs=0.01)
    assert drawn[:, 0].std() == pytest.approx(0.1, rel=0.05)
    assert drawn[:, 1].min() >= 0.0
    assert drawn[:, 1].mean() == pytest.approx(np.sqrt(2.0 / np.pi), rel=0.05)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("parameters: {a: {mean: 1}}", "both mean and std"),
        ("parameters: {a: {mean: 1, std: 0.1}}", "need sampling random"),
        (
            "sampling: {kind: random, runs: 3}\nparameters: {a: {mean: 1, std: 1, count: 3}}",
            "count",
        ),
        (
            "sampling: {kind: random, runs: 3}\nparameters: {a: {mean: 1, std: 1, min: 3, max: 2}}",
            "below",
        ),
        ("parameters: {a: [1]}\nfigures: [{kind: map, metrics: [top_m]}]", "needs two parameters"),
        (
            "parameters: {a: [1], b: [2]}\nfigures: [{kind: map, y: c, metrics: [x]}]",
            "no parameter 'c'",
        ),
    ],
)
def test_bad_studies_are_one_line(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message):
        study(tmp_path, text)


def test_parameters_have_names_of_their_own_and_units(tmp_path):
    keys = ["system.load.mass_kg", "system.drones.mass_kg", "wind.mean_enu_m_s.0", "seed"]
    sweep = study(tmp_path, f"parameters: {{{', '.join(f'{key}: [1, 2]' for key in keys)}}}")
    assert [sweep.label(key) for key in keys] == [
        "load mass [kg]", "drones mass [kg]", "mean enu 0 [m/s]", "seed",
    ]  # fmt: skip
