"""Roots without scipy, and with it where Newton's method gets nowhere."""

import sys

import numpy as np
import pytest

from musls_description import spawn
from musls_description.spawn import bisected, root


def test_newton_finds_a_root_to_the_last_digits(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)  # importing it would fail
    found = root(
        lambda x: np.array([x[0] ** 2 + x[1] - 3.0, x[0] - np.exp(-x[1])]), np.ones(2), 0.1
    )
    assert np.abs([found[0] ** 2 + found[1] - 3.0, found[0] - np.exp(-found[1])]).max() < 1e-14


def test_of_many_roots_the_one_that_is_near():
    """x0 + x1 = 2 from (5, 1): straight down on the line, to (3, -1)."""
    found = root(lambda x: np.array([x[0] + x[1] - 2.0]), np.array([5.0, 1.0]), 1e-12)
    assert found == pytest.approx([3.0, -1.0], abs=1e-6)


def test_scipy_is_asked_where_newton_gives_up(monkeypatch):
    monkeypatch.setattr(spawn, "STEPS", 0)
    found = root(lambda x: np.array([np.arctan(x[0] - 1.0)]), np.array([4.0]), 1e-9)
    assert found == pytest.approx([1.0], abs=1e-9)


def test_nothing_where_there_is_no_root():
    assert root(lambda x: x**2 + 1.0, np.array([0.3]), 1e-6) is None


def test_bisection():
    found = bisected(np.cos, 0.0, 2.0)
    assert found == pytest.approx(0.5 * np.pi, abs=4e-16)
    assert bisected(lambda x: x, 0.0, 1.0) == 0.0
    with pytest.raises(ValueError, match="no change of sign between 0 and 1"):
        bisected(np.cos, 0.0, 1.0)
