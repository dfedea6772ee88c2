"""Drums that keep the stretch: cable lies on the drum as long as it was when it was wound on.

A turn of angle y takes radius * y of stretched cable, radius * y / (1 + strain) of its free length.
What was wound on last comes off first, with the strain that it was wound with. The compiled step
knows one length of cable per angle and drum; here it is chosen anew before every control period, so
that the strain on the drum changes from period to period.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from musls_sim.plants.elastic import columns as c

if TYPE_CHECKING:
    from musls_sim.plants.elastic.tables import Tables

SAME_STRAIN = 1e-9
"""Difference below which cable is wound to the layer before."""


class DrumMemory:
    """Strain of the cable on one drum, from the bottom to the top.

    Attributes:
        pieces: Angle at which each piece ends and its strain; the first one is on it from the
            start, without strain, the last one begins at the drum's present angle.
    """

    def __init__(self, tables: Tables, winch: int) -> None:
        """Begin with unstretched cable on the drum.

        Args:
            tables: Of the engine; the rows of the drum and of its cable are written.
            winch: Index of the winch.
        """
        self._row = tables.shafts[winch]
        cable, self._end = tables.turning[winch, [c.S_CABLE, c.S_END]]
        self._tables, self._kind, self._cable = tables, tables.kinds[cable], tables.cables[cable]
        self._radius_m = float(self._row[c.RADIUS])
        self._start_m, self._wound_m = float(self._cable[c.START_LENGTH]), float(self._row[c.WOUND])
        self.pieces: list[tuple[float, float]] = [(np.inf, 0.0)]
        self._angle = float(self._row[c.Y])
        self._out_m = self._radius_m * self._angle
        self._strain = 0.0

    def begin(self, period_s: float) -> None:
        """Set the cable per angle of the coming period."""
        row, y = self._row, self._angle
        speed = row[c.YV] if row[c.BY_RATE] == 0.0 else row[[c.DRIVE, c.DRIVE + 1]].mean()
        turned = float(speed) * period_s
        self._strain = self._strain_at_exit()
        if turned > 0.0:
            ratio = self._paid_out(y + turned) / turned
        else:
            ratio = self._radius_m / (1.0 + self._strain)
        shift = self._out_m - ratio * y
        row[c.RADIUS] = ratio
        row[c.WOUND] = self._wound_m - shift
        self._cable[c.START_LENGTH] = self._start_m + shift

    def end(self) -> None:
        """Note what was wound on or came off."""
        y = float(self._row[c.Y])
        if y > self._angle:
            self._out_m += self._paid_out(y)
            while self.pieces[-1][0] <= y:
                self.pieces.pop()
        elif y < self._angle:
            self._out_m += self._radius_m * (y - self._angle) / (1.0 + self._strain)
            if abs(self._strain - self.pieces[-1][1]) > SAME_STRAIN:
                self.pieces.append((self._angle, self._strain))
        self._angle = y

    def _paid_out(self, angle: float) -> float:
        """Free length that comes off from the present angle to a larger one [m]."""
        length, at = 0.0, self._angle
        for end, strain in reversed(self.pieces):
            upto = min(end, angle)
            length += self._radius_m * (upto - at) / (1.0 + strain)
            at = upto
            if at >= angle:
                break
        return length

    def _strain_at_exit(self) -> float:
        """Of the segment at the drum; slack cable is wound on without strain."""
        first, count = self._kind[c.FIRST_NODE], self._kind[c.SEGMENTS]
        near = first + (count if self._end == 1 else 0)
        far = near + (-1 if self._end == 1 else 1)
        nodes = self._tables.nodes[:, c.X : c.X + 3]
        rest = float(self._cable[c.REST_LENGTH] / count)
        return max(0.0, float(np.linalg.norm(nodes[near] - nodes[far])) / rest - 1.0)
