"""Worlds with chains of rigid links."""

from __future__ import annotations

from numba import carray

from musls_description.numerics.compiled import compiled
from musls_description.numerics.records import pointer
from musls_sim.batch.world import (
    begin_period,
    command_of,
    end_period,
    vector_at,
    world_at,
    wrenches_at,
)
from musls_sim.plants.rigid_links.period import (
    NOT_FINITE,
    RUNAWAY,
    SPURIOUS_ENERGY,
    advance_refined,
)
from musls_sim.plants.rigid_links.step_control import LEVELS, LIMIT


@compiled()
def advance_worlds(address, apart, count, periods):
    """See `massless.advance_worlds`."""
    for i in range(count):
        w = world_at(address + i * apart)
        levels = carray(pointer(w.levels), (1,), LEVELS)
        limits = carray(pointer(w.limits), (levels[0].last + 1, w.n_drones), LIMIT)
        for _ in range(periods):
            if w.finished != 0 or w.failed != 0 or w.halted != 0:
                break
            begin_period(w)
            body, enu = wrenches_at(w, w.wrench_body), wrenches_at(w, w.wrench_enu)
            inputs = command_of(w), vector_at(w.wind), body, enu
            w.verdict = advance_refined(w.plant, levels, limits, inputs)
            if w.verdict in (NOT_FINITE, RUNAWAY, SPURIOUS_ENERGY):
                w.failed = 1
            else:
                end_period(w)
