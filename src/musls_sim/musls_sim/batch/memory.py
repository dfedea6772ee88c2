"""What a world of a batch has besides a session: the changes that its events make."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_description.numerics.records import located
from musls_sim.session.compiled_stages.world import CHANGE
from musls_sim.session.guidance import MissionGuidance
from musls_sim.session.session import Session


def changes_of(
    session: Session, arrays: dict[str, NDArray[Any]], mission: bool
) -> NDArray[np.void]:
    """Changes of the arrays by the events of a flight, rows of `CHANGE`; places from their start.

    `arrays` are packed behind each other. The events happen here one after another, at their times
    and without a flight between them: what they write depends on numbers that no flight changes.
    Nobody waits for what is there, times are those of the plan. The arrays are then those of the
    end.
    """
    if not session.scenario.events:
        return np.zeros(0, CHANGE)
    guidance, events, written = session.guidance, session.events, session.plant.write
    assert isinstance(guidance, MissionGuidance)
    guidance.flight.player.plan = replace(guidance.plan, waits=guidance.plan.waits[:0])
    rows, tick, end_s = [], 0, guidance.planned_s if mission else 0.0
    while True:
        time_s = tick * session.plant.period_s
        if tick == 0 or time_s < end_s:
            guidance.step(tick)
        written.clear()
        events.step(tick)
        for array, where, values in written:
            begin = located(array, arrays)
            if begin is None:
                continue  # of a stage that Python does
            places = begin + np.tensordot(array.strides, np.indices(array.shape), 1)[where]
            words = np.broadcast_to(values, places.shape).copy().view(np.int64)
            changes = zip(places.ravel().tolist(), words.ravel().tolist(), strict=True)
            rows += [(tick, *change) for change in changes]
        next_s = min(events.next_s, guidance.next_s if time_s < end_s else np.inf)
        if np.isinf(next_s):
            return np.array(rows, CHANGE)
        tick = max(tick + 1, ceil(next_s / session.plant.period_s))
