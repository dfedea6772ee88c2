"""Plant stage of chains of rigid links."""

from __future__ import annotations

from numba import carray

from musls_description.numerics.compiled import CompiledStage
from musls_description.numerics.records import pointer
from musls_sim.plants.rigid_links.period import (
    NOT_FINITE,
    RUNAWAY,
    SPURIOUS_ENERGY,
    advance_refined,
)
from musls_sim.plants.rigid_links.step_control import LEVELS, LIMIT
from musls_sim.session.compiled_stages.world import (
    command_of,
    note_peaks,
    vector_at,
    world_at,
    wrenches_at,
)


@CompiledStage
def move(address):
    """One period of physics; the verdict is one of `period`'s."""
    w = world_at(address)
    levels = carray(pointer(w.levels), (1,), LEVELS)
    limits = carray(pointer(w.limits), (levels[0].last + 1, w.n_cables), LIMIT)
    body, enu = wrenches_at(w, w.wrench_body), wrenches_at(w, w.wrench_enu)
    inputs = command_of(w), vector_at(w.wind), body, enu
    w.verdict = advance_refined(w.plant, levels, limits, inputs)
    if w.verdict in (NOT_FINITE, RUNAWAY, SPURIOUS_ENERGY):
        w.failed = 1
    else:
        note_peaks(w)
