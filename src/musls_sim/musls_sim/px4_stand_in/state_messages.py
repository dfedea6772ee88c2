"""The topics of a bag, as CDR bytes of the present state: what the recorder writes, published."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from musls_description.system import RigSystem
from musls_sim.plants.interface import Plant
from musls_sim.recording import topics
from musls_sim.recording.row_renderer import render_rows
from musls_sim.recording.row_template import RECORD_HEAD_SIZE, probe_row, row_template


class StateMessages:
    """Messages of one kind of row.

    Attributes:
        topics: Topic and message type, in the order of `render`.
    """

    def __init__(self, system: RigSystem, *, shapes: bool) -> None:
        """Prepare.

        Args:
            system: Whose state it is.
            shapes: The cables' shapes instead of the state of the bodies.
        """
        state, shape, _ = topics.row_kinds(system)
        kind = shape if shapes else state
        messages, _ = probe_row(*kind)
        self.topics = [(topic, message.__msgtype__) for topic, message in messages]
        numbers = {topic: k for k, topic in enumerate(dict(self.topics))}
        self._template = row_template(*kind, numbers)
        self._columns = shape.columns if shapes else topics.state_columns(system)
        self._shapes, self._system = shapes, system

    def render(self, time_s: float, plant: Plant) -> Iterator[tuple[str, bytes]]:
        """Topic and message, CDR with its header, of the plant's state at a time."""
        if self._shapes:
            values = topics.shape_values(plant, self._system)
        else:
            values = topics.state_values(plant.state)
        row: topics.Row = {name: v[None] for name, v in zip(self._columns, values, strict=True)}
        if not self._shapes:
            row = topics.published(row)
        rendered = render_rows(self._template, np.array([round(time_s * 1e9)]), row)
        data, ends = bytes(rendered.data), [*rendered.offsets[1:].tolist(), len(rendered.data)]
        for (topic, _), start, end in zip(
            self.topics, rendered.offsets.tolist(), ends, strict=True
        ):
            yield topic, data[start + RECORD_HEAD_SIZE : end]
