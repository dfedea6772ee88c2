"""Where scene, strip and scales stand in a picture."""

from __future__ import annotations

from dataclasses import dataclass

_LEFT_PX, _RIGHT_PX, _TOP_PX = 60.0, 30.0, 88.0
_STRIP_PX, _BELOW_PX = 84.0, 44.0
"""Height of the strip, and of its ticks and legend below it."""
STRIP_ROOM_PX = 22.0
"""Above the strip, for the names of the stages."""


@dataclass(frozen=True)
class Layout:
    """Sizes of a picture before it is scaled; texts have the same size in each layout.

    Attributes:
        width_px: Width.
        height_px: Height.
        bar_px: Length of the bar of tensions.
    """

    width_px: int
    height_px: int
    bar_px: float

    @property
    def scene_px(self) -> tuple[float, float, float, float]:
        """Left, top, right, bottom of what the camera fills."""
        return _LEFT_PX, _TOP_PX, self.width_px - _LEFT_PX, self.strip_px[1] - 40.0

    @property
    def strip_px(self) -> tuple[float, float, float, float]:
        """Left, top, right, bottom of the strip."""
        bottom = self.height_px - _BELOW_PX
        return _LEFT_PX, bottom - _STRIP_PX, self.width_px - _RIGHT_PX, bottom

    @property
    def bar_left_px(self) -> float:
        """Left end of the bar of tensions."""
        return self.width_px - _RIGHT_PX - self.bar_px


WIDE = Layout(960, 640, 240.0)
NARROW = Layout(580, 560, 150.0)
"""For a phone or one column: texts are larger compared with the picture."""
