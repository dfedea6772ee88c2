"""Statistics of the gusts: a first-order Gauss-Markov process about the mean wind."""

import numpy as np
import pytest

from musls_control.brief.brief import WindSpec
from musls_sim.wind import Wind, blow

DT = 0.004
MEAN, STD, TIME = np.array([3.0, -2.0, 0.5]), np.array([1.5, 0.8, 0.3]), 0.5

SPEC = WindSpec(mean_enu_m_s=tuple(MEAN), gust_std_m_s=tuple(STD), gust_time_s=TIME)


def blown(wind, steps):
    """Wind of the next periods, (steps, 3), drawn and advanced as in a flight."""
    changes = wind.scale_m_s * wind.generator.standard_normal((steps, 3))
    rows = np.zeros((steps, 3))
    for change, row in zip(changes, rows, strict=True):
        blow(wind.velocity_enu_m_s, wind.mean_enu_m_s, wind.gust_enu_m_s, wind.keep, change)
        row[:] = wind.velocity_enu_m_s
    return rows


def record(spec, steps, seed=0, period_s=DT):
    """Wind at every period, start included, (steps + 1, 3)."""
    wind = Wind(spec, period_s, np.random.default_rng(seed))
    start = wind.velocity_enu_m_s.copy()
    return np.vstack([start, blown(wind, steps)])


@pytest.fixture(scope="module")
def gusts():
    """400 s, 800 correlation times."""
    return record(SPEC, 100_000)


def correlation(values, lag):
    """Autocorrelation of each axis at a lag in steps."""
    gap = values - values.mean(axis=0)
    return (gap[lag:] * gap[:-lag]).mean(axis=0) / gap.var(axis=0)


def test_mean_and_standard_deviation(gusts):
    # The mean of a run of length T has the standard deviation std sqrt(2 time / T) = std / 20.
    assert (np.abs(gusts.mean(axis=0) - MEAN) < 4.0 * STD / 20.0).all()
    assert gusts.std(axis=0) == pytest.approx(STD, rel=0.12)


def test_gusts_are_normally_distributed(gusts):
    gap = (gusts - gusts.mean(axis=0)) / gusts.std(axis=0)
    assert (np.abs((gap**3).mean(axis=0)) < 0.4).all()
    assert (gap**4).mean(axis=0) == pytest.approx(3.0, abs=0.6)


@pytest.mark.parametrize("times", [0.2, 0.5, 1.0])
def test_correlation_decays_with_the_gust_time(gusts, times):
    lag = round(times * TIME / DT)
    assert correlation(gusts, lag) == pytest.approx(np.exp(-times), abs=0.12)


def test_correlation_is_gone_after_many_gust_times(gusts):
    assert (np.abs(correlation(gusts, round(8.0 * TIME / DT))) < 0.2).all()


def test_axes_are_independent(gusts):
    assert np.corrcoef(gusts.T)[np.triu_indices(3, 1)] == pytest.approx(0.0, abs=0.2)


def test_small_steps_make_small_changes(gusts):
    """Increments of a Gauss-Markov process: std sqrt(2 (1 - exp(-dt / time)))."""
    expected = STD * np.sqrt(2.0 * (1.0 - np.exp(-DT / TIME)))
    assert np.diff(gusts, axis=0).std(axis=0) == pytest.approx(expected, rel=0.02)


def test_statistics_do_not_depend_on_the_period():
    coarse = record(SPEC, 40_000, period_s=0.05)
    assert coarse.std(axis=0) == pytest.approx(STD, rel=0.05)
    assert correlation(coarse, 10) == pytest.approx(np.exp(-1.0), abs=0.05)


def test_run_starts_in_the_stationary_distribution():
    """No calm at the start: the first value over many seeds has the full standard deviation."""
    first = np.array([record(SPEC, 0, seed)[0] for seed in range(2000)])
    assert (np.abs(first.mean(axis=0) - MEAN) < 0.1 * STD).all()
    assert first.std(axis=0) == pytest.approx(STD, rel=0.08)


def test_wind_without_gusts_is_steady():
    spec = WindSpec(mean_enu_m_s=(3.0, -2.0, 0.5))
    wind = Wind(spec, DT, np.random.default_rng(0))
    assert wind.steady
    assert (record(spec, 100) == MEAN).all()
    assert (record(WindSpec(), 100) == 0.0).all()


def test_gusts_along_one_axis_leave_the_others_steady():
    rows = record(WindSpec(mean_enu_m_s=(1.0, 2.0, 3.0), gust_std_m_s=(0.0, 1.0, 0.0)), 2500)
    assert (rows[:, [0, 2]] == [1.0, 3.0]).all()
    assert rows[:, 1].std() > 0.3


def test_seed_decides_the_gusts():
    spec = WindSpec(gust_std_m_s=(1.0, 1.0, 1.0))
    assert (record(spec, 2500, seed=3) == record(spec, 2500, seed=3)).all()
    assert not (record(spec, 2500, seed=3) == record(spec, 2500, seed=4)).any()


def test_the_memory_stays_the_same():
    """The plant's inputs are this memory: it sees gusts and added wind by itself."""
    wind = Wind(WindSpec(gust_std_m_s=(1.0, 1.0, 1.0)), DT, np.random.default_rng(0))
    seen = wind.velocity_enu_m_s
    before = seen.copy()
    wind.add((1.0, 2.0, 3.0))
    assert seen - before == pytest.approx([1.0, 2.0, 3.0])
    blown(wind, 1)
    assert seen is wind.velocity_enu_m_s and not (seen - before == [1.0, 2.0, 3.0]).any()
