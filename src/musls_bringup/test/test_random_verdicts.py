"""What `check` says of scenarios whose parts do not suit each other is what their flights show."""

from __future__ import annotations

import os

import pytest
from random_verdicts import row_of

MORE = int(os.environ.get("MUSLS_RANDOM_SYSTEMS", "0"))

CODES = {
    ("free", 2): 1, ("free", 10): 1, ("free", 13): 1, ("free", 14): 0, ("free", 18): 0,
    ("free", 20): 2, ("free", 24): 1,
}  # fmt: skip
"""Exit codes of `check`. Seed 13 is refused for its cables, and its controller does not fly a point
mass: `fly` once named the controller first. Seeds 2, 10 and 24 only the flight refuses."""


@pytest.mark.parametrize(("style", "seed"), CODES)
def test_check_and_flight_agree(style, seed):
    row = row_of(style, seed)
    assert not row["differs"], row
    assert row["check"] == CODES[style, seed], row


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(MORE))
@pytest.mark.parametrize("style", ["free", "changed"])
def test_many_agree(style, seed):
    row = row_of(style, seed)
    assert not row["differs"], row
