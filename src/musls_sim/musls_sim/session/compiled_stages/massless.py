"""Plant stage of massless cables and rigid rods."""

from __future__ import annotations

from musls_description.numerics.compiled import CompiledStage
from musls_description.numerics.records import copy_table, record_at, table_at
from musls_sim.plants.massless.records import SYSTEM
from musls_sim.plants.massless.step import advance
from musls_sim.session.compiled_stages.world import (
    command_of,
    note_peaks,
    vector_at,
    world_at,
    wrenches_at,
)


@CompiledStage
def move(address):
    """One period of physics; the verdict is the number of events, or -1."""
    w = world_at(address)
    t = record_at(w.plant, SYSTEM)
    copy_table(table_at(t.command), command_of(w))
    body, enu = wrenches_at(w, w.wrench_body), wrenches_at(w, w.wrench_enu)
    w.verdict = advance(w.plant, w.period, False, vector_at(w.wind), body, enu)
    if w.verdict < 0:
        w.failed = 1
    else:
        note_peaks(w)
