"""Brent's method, against SciPy's: the same root to the last bit."""

import numpy as np
import pytest
from scipy.optimize import brentq

from musls_description.numerics.roots import root_between


@pytest.mark.parametrize("tolerance", [2e-12, 1e-15, 1e-6])
def test_roots_are_those_of_scipy(tolerance):
    rng = np.random.default_rng(7)
    found = 0
    while found < 200:
        factors = rng.normal(size=6)
        low, high = np.sort(rng.uniform(-3.0, 3.0, 2))

        def gap(x, factors=factors):
            return float(np.polyval(factors, x) + factors[0] * np.sin(3.0 * x))

        if gap(low) * gap(high) < 0.0:
            found += 1
            scipys = brentq(gap, low, high, xtol=tolerance)
            assert root_between(gap, low, high, tolerance) == scipys


def test_ends_may_be_roots_and_need_two_signs():
    assert root_between(lambda x: x, 0.0, 1.0) == root_between(lambda x: x, -1.0, 0.0) == 0.0
    with pytest.raises(ValueError, match="no change of sign between 1 and 2"):
        root_between(lambda x: x, 1.0, 2.0)
