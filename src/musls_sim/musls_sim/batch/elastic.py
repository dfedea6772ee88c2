"""Worlds with elastic cables."""

from __future__ import annotations

from musls_description.numerics.compiled import compiled
from musls_description.numerics.records import copy_numbers, copy_table, record_at, table_at
from musls_sim.batch.world import (
    begin_period,
    command_of,
    end_period,
    vector_at,
    world_at,
    wrenches_at,
)
from musls_sim.plants.elastic.engine import REFINEMENTS
from musls_sim.plants.elastic.state import SYSTEM
from musls_sim.plants.elastic.step import advance


@compiled()
def advance_worlds(address, apart, count, periods):
    """See `massless.advance_worlds`."""
    for i in range(count):
        w = world_at(address + i * apart)
        for _ in range(periods):
            if w.finished != 0 or w.failed != 0 or w.halted != 0:
                break
            begin_period(w)
            t = record_at(w.plant, SYSTEM)
            copy_table(table_at(t.command), command_of(w))
            copy_numbers(t.wind, vector_at(w.wind))
            copy_table(table_at(t.wrench_body), wrenches_at(w, w.wrench_body))
            copy_table(table_at(t.wrench_enu), wrenches_at(w, w.wrench_enu))
            steps = advance(w.plant, w.substeps, REFINEMENTS, w.period)
            w.verdict = 0 if steps == w.substeps else steps
            if w.verdict < 0:
                w.failed = 1
            else:
                end_period(w)
