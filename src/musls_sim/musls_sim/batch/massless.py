"""Worlds with massless cables or rigid rods."""

from __future__ import annotations

from musls_description.numerics.compiled import compiled
from musls_description.numerics.records import copy_table, record_at, table_at
from musls_sim.batch.world import (
    begin_period,
    command_of,
    end_period,
    vector_at,
    world_at,
    wrenches_at,
)
from musls_sim.plants.massless.records import SYSTEM
from musls_sim.plants.massless.step import advance


@compiled()
def advance_worlds(address, apart, count, periods):
    """Advance worlds, so many bytes apart in memory, each until it finishes, fails or halts."""
    for i in range(count):
        w = world_at(address + i * apart)
        for _ in range(periods):
            if w.finished != 0 or w.failed != 0 or w.halted != 0:
                break
            begin_period(w)
            t = record_at(w.plant, SYSTEM)
            copy_table(table_at(t.command), command_of(w))
            body, enu = wrenches_at(w, w.wrench_body), wrenches_at(w, w.wrench_enu)
            w.verdict = advance(w.plant, w.period, False, vector_at(w.wind), body, enu)
            if w.verdict < 0:
                w.failed = 1
            else:
                end_period(w)
