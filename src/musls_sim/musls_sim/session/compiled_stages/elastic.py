"""Plant stage of elastic cables."""

from __future__ import annotations

from musls_description.numerics.compiled import CompiledStage
from musls_description.numerics.records import copy_numbers, copy_table, record_at, table_at
from musls_sim.plants.elastic.engine import REFINEMENTS
from musls_sim.plants.elastic.state import SYSTEM
from musls_sim.plants.elastic.step import advance
from musls_sim.session.compiled_stages.world import (
    command_of,
    note_peaks,
    vector_at,
    world_at,
    wrenches_at,
)


@CompiledStage
def move(address):
    """One period of physics; the verdict is the number of steps, 0 for the usual one, or < 0."""
    w = world_at(address)
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
        note_peaks(w)
