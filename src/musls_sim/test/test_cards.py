"""Graphics cards: the stages of a flight compile for them; whether they run needs a card."""

import re
from types import SimpleNamespace

import pytest

from musls_bringup.catalogue.shipped import SCENARIOS
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session

H200 = 9, 0
"""Compute capability."""

FLIGHTS = {
    "wind": ("wind", "cable_model=massless", "aerodynamics=[ground_effect]"),
    "losses": ("quad_survives", "cable_model=massless"),
    "rigid links": ("circle",),
}

LOADS = re.compile(r"\bld(?:\.global|\.local)?\.(\w+)")


@pytest.fixture(autouse=True)
def card_or_none(monkeypatch):
    """Without a driver numba-cuda compiles for the card that it is told of."""
    pytest.importorskip("numba_cuda", reason="no numba-cuda: pip install 'musls[card]'")
    from numba import cuda

    if not cuda.is_available():
        there = SimpleNamespace(compute_capability=H200)
        monkeypatch.setattr("numba.cuda.dispatcher.get_current_device", lambda: there)


@pytest.mark.slow
@pytest.mark.parametrize("name", FLIGHTS)
def test_the_stages_of_a_flight_compile_for_a_card(name):
    """Records are read number by number, not byte by byte, unless they are copied whole."""
    scenario, *keys = FLIGHTS[name]
    with Session(load_scenario(SCENARIOS / f"{scenario}.yaml", keys)) as session:
        chosen = [stage.choose(0) for stage in session.stages if stage.choose is not None]
        parts = [stage.compiled or () for stage in session.stages]
        stages = [stage for several in [*parts, *chosen] for stage in several]
    assert len(stages) >= 10
    for stage in stages:
        loads = LOADS.findall(stage.ptx(H200))
        assert loads.count("u8") <= 0.1 * len(loads), stage.__name__
