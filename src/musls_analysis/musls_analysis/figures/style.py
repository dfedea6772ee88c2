"""One look for figures, pictures, films and pages: colours, names, fonts, sizes, saving.

Figures are built with matplotlib's object interface; pyplot would only cost start-up time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import matplotlib
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import get_font_names
from matplotlib.lines import Line2D
from matplotlib.text import Annotation
from matplotlib.ticker import LogFormatter
from matplotlib.transforms import Bbox
from PIL import Image

from musls_analysis.figures.colours import OBSTACLE as OBSTACLE
from musls_analysis.figures.colours import colour as colour
from musls_analysis.figures.colours import label as label
from musls_analysis.recordings.recording import RecordedEvent, Recording

if TYPE_CHECKING:
    from musls_analysis.scene import Subject

WIDTH_IN = 7.6
DPI = 130
INK = "#22272e"
"""Text and axes."""
FAINT = "#8b949e"
GRID = "#e3e6ea"
BAND = "#f2f4f7"
"""Behind every second stage."""
EVENT = "#cf222e"
"""Marks of events."""
MAX_EVENTS = 40
"""Marked events of one kind; more would hide the curves."""
CABLE, UNKNOWN_TENSION, SLACK_CABLE = "#8b949e", "#57606a", "#a3adb8"
PULLEY, PULLEY_RIM = "#d1d6de", "#333b47"
SECOND = "#4d7c0f"
"""Everything of a recording that is laid over another one."""
LineStyle = dict[str, Any]
"""Keywords of matplotlib's for how something is drawn."""
SETPOINT_LINE: LineStyle = {"color": INK, "linewidth": 0.9, "dashes": (4, 2), "zorder": 3}
"""Set-points look like this in every figure."""

_SETTINGS = matplotlib.rc_params_from_file(
    Path(__file__).with_suffix(".mplstyle"), use_default_template=False
)


def shown_events(recording: Recording) -> list[RecordedEvent]:
    """Events that are marked: the first `MAX_EVENTS` of each kind."""
    counts: Counter[str] = Counter()
    events = []
    for event in recording.events:
        counts[event.kind] += 1
        if counts[event.kind] <= MAX_EVENTS:
            events.append(event)
    return events


def styled() -> AbstractContextManager[None]:
    """Context in which figures are to be built and saved."""
    return matplotlib.rc_context(_SETTINGS)


def for_paper(width_m: float, font: str) -> AbstractContextManager[None]:
    """Context in which figures of a paper are built: full width, and letters "sans" or "serif"."""
    families = {"sans": ["DejaVu Sans"], "serif": ["STIX Two Text", "STIXGeneral", "DejaVu Serif"]}
    fonts = get_font_names()
    settings: dict[Any, Any] = {
        **_SETTINGS,
        "figure.figsize": (width_m / 0.0254, WIDTH_IN),
        "font.family": [family for family in families[font] if family in fonts],
        "mathtext.fontset": "stix" if font == "serif" else "dejavusans",
        "svg.fonttype": "none",  # text stays text
    }
    return matplotlib.rc_context(settings)


class _PlainNumbers(LogFormatter):
    """The ticks that matplotlib would name, as 0.1 instead of 1e-01."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return f"{x:g}" if super().__call__(x, pos) else ""


def logarithmic(ax: Axes, name: Literal["x", "y"]) -> None:
    """Let an axis be logarithmic; its ticks are plain texts, as all others."""
    ax.set(**{f"{name}scale": "log"})
    axis = ax.xaxis if name == "x" else ax.yaxis
    axis.set_major_formatter(_PlainNumbers())
    axis.set_minor_formatter(_PlainNumbers(labelOnlyBase=False))


class NotebookFigure(Figure):
    """A figure that a notebook shows as it is, without pyplot."""

    def _repr_png_(self) -> bytes:
        png = BytesIO()
        with styled():
            save(self, png)
        return png.getvalue()


def new_figure(
    height_in: float, width_in: float = WIDTH_IN, *, keeps_shape: bool = False
) -> Figure:
    """Make an empty figure; the width is that of a figure over the whole width of a report.

    A narrower one takes more of the width of a narrow paper.
    """
    share = matplotlib.rcParams["figure.figsize"][0] / WIDTH_IN
    share *= max(1.0, min(WIDTH_IN / width_in, 1.0 / share))
    width_in = share * width_in
    height_in = (share if keeps_shape else 1.0) * height_in
    figure = NotebookFigure(figsize=(width_in, height_in), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def size_in(ax: Axes) -> np.ndarray:
    """Width and height of axes [in]."""
    place = ax.get_position()
    figure = ax.figure
    assert isinstance(figure, Figure)  # no figure of ours has subfigures
    return np.array([place.width, place.height]) * figure.get_size_inches()


def keep_apart(notes: Sequence[Annotation]) -> None:
    """Move each note down until it lies over none before it."""
    boxes: list[Bbox] = []
    for note in notes:
        while any(note.get_window_extent().overlaps(other) for other in boxes):
            x, y = note.xyann
            note.xyann = (x, y - 1.0)
        boxes.append(note.get_window_extent())


def save(figure: Figure, path: Path | BytesIO) -> None:
    """Write a PNG at `DPI`; opaque and lightly compressed, which is quicker than `savefig`."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    image.save(path, format="PNG", compress_level=1, dpi=(DPI, DPI))


def setpoint_handle() -> Line2D:
    """Legend entry for set-points."""
    return Line2D([], [], **SETPOINT_LINE, label="set-point")


def body_handles(bodies: Iterable[str]) -> list[Artist]:
    """Legend entries for bodies, or for cables."""
    return [Line2D([], [], color=colour(b), linewidth=1.8, label=label(b)) for b in bodies]


def second_handles(other: Subject | None) -> list[Artist]:
    """Legend entry for a recording that is laid over another one, if there is one."""
    return [] if other is None else [Line2D([], [], color=SECOND, linewidth=1.8, label=other.name)]


def legend_on_top(figure: Figure, handles: Sequence[Artist]) -> float:
    """Put a legend above everything, in as many rows as it needs; returns its height [in]."""
    rows = _legend_rows(figure, handles)
    figure.legend(
        handles=handles,
        loc="upper center",
        ncol=-(-len(handles) // rows),
        bbox_to_anchor=(0.5, 1.0 - 0.08 / figure.get_figheight()),
        borderaxespad=0.0,
    )
    return legend_height_in(figure, handles)


def legend_height_in(figure: Figure, handles: Sequence[Artist]) -> float:
    """Height that `legend_on_top` will take [in]."""
    return 0.19 + 0.17 * _legend_rows(figure, handles)


def _legend_rows(figure: Figure, handles: Sequence[Artist]) -> int:
    """Fewest rows in which the entries fit; they are set column by column."""
    widths_in = [0.5 + 0.062 * len(str(handle.get_label())) for handle in handles]
    for rows in range(1, len(handles)):
        columns = [widths_in[k : k + rows] for k in range(0, len(widths_in), rows)]
        if sum(map(max, columns)) < figure.get_figwidth():
            return rows
    return max(len(handles), 1)


def margins(
    figure: Figure, left: float, right: float, bottom: float, top: float, **spacing: float
) -> None:
    """Set the margins in inches; `wspace` and `hspace` as matplotlib has them."""
    width, height = figure.get_size_inches()
    figure.subplots_adjust(
        left / width, bottom / height, 1.0 - right / width, 1.0 - top / height, **spacing
    )


def hide_time(axes: Iterable[Axes]) -> None:
    """Leave only the line of the time axis where an axis below shows the ticks."""
    for ax in axes:
        ax.xaxis.set_visible(False)
