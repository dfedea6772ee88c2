"""The topics of a bag, as CDR bytes of the present state: what the recorder writes, published."""

from __future__ import annotations

from collections.abc import Iterator

from musls_description.system import SlungLoadSystem
from musls_sim.plants.interface import Plant
from musls_sim.recording import topics
from musls_sim.recording.bag_recorder import omega_enu
from musls_sim.recording.row_buffer import RowBuffer
from musls_sim.recording.row_template import RECORD_HEAD_SIZE, probe_row, row_template


class StateMessages:
    """Messages of one kind of row.

    Attributes:
        topics: Topic and message type, in the order of `render`.
    """

    def __init__(self, system: SlungLoadSystem, *, shapes: bool) -> None:
        """Prepare.

        Args:
            system: Whose state it is.
            shapes: The cables' shapes instead of the state of the bodies.
        """
        build, columns = (
            (topics.shape_messages(system), topics.shape_columns(system))
            if shapes
            else (topics.state_messages(system), topics.state_columns(system))
        )
        messages, _ = probe_row(build, columns)
        self.topics = [(topic, message.__msgtype__) for topic, message in messages]
        numbers = {topic: k for k, topic in enumerate(dict(self.topics))}
        self._buffer = RowBuffer(row_template(build, columns, numbers), columns, 1)
        self._shapes, self._cables = shapes, range(system.n_drones)

    def render(self, time_s: float, plant: Plant) -> Iterator[tuple[str, bytes]]:
        """Topic and message, CDR with its header, of the plant's state at a time."""
        buffer, derived = self._buffer, None
        if self._shapes:
            buffer.append(round(time_s * 1e9), *[plant.cable_nodes_enu_m(i) for i in self._cables])
        else:
            state = plant.state
            buffer.append(
                round(time_s * 1e9), state.position_enu_m, state.orientation_wxyz,
                state.velocity_enu_m_s, state.omega_body_rad_s, state.rotor_speed_rad_s,
                state.cable_force_n,
            )  # fmt: skip
            derived = {"omega_enu_rad_s": omega_enu(buffer)}
        rendered = buffer.render(derived=derived)
        data, ends = bytes(rendered.data), [*rendered.offsets[1:].tolist(), len(rendered.data)]
        for (topic, _), start, end in zip(
            self.topics, rendered.offsets.tolist(), ends, strict=True
        ):
            yield topic, data[start + RECORD_HEAD_SIZE : end]
