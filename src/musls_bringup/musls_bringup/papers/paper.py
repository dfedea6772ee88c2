"""A paper's table and figures beside those of our own flights, `musls paper`.

A file in `papers/` lists the rows: what it is, the paper's value, and how ours is found, as a
metric of a flight (`musls_analysis.sweep.plan.Metric`) or a number of `musls check`; and the
figures (`figures.PaperFigure`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import groupby, starmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from pydantic import Field

from musls_analysis.comparison.quantities import text_of, values_of
from musls_analysis.figures import style
from musls_analysis.figures.style import label
from musls_analysis.paper.flights import TABLE_III, some_cycles
from musls_analysis.recordings.recording import Recording
from musls_analysis.report.report import number
from musls_analysis.sweep.plan import Metric
from musls_analysis.sweep.store import chosen_metric
from musls_analysis.view.page import picture, templates
from musls_bringup.before.verdict import as_data, judge
from musls_bringup.catalogue.shipped import find_scenario, named_file
from musls_bringup.flight.fly import fly_run, program
from musls_bringup.flight.results import StopRequested, result_folder
from musls_bringup.papers.reproduce import ReproduceOptions, reproduce
from musls_description.config.errors import ConfigError
from musls_description.config.schema import Finite, build, spec
from musls_description.config.strict_yaml import read_yaml
from musls_sim.scenario.scenario import as_override

PAPERS = Path(__file__).parent
SYSTEM = "x500_trio_swivel"
"""The seed paper's system, for its Table III."""
WHY = "middle of the bodies compared, nothing fitted; `musls reproduce` has --offset and --fit-on"


@spec
class PaperRow:
    """One number of a paper; what is not given here is its group's.

    Attributes:
        what: The quantity.
        paper: The paper's value.
        unit: Unit of both values.
        scenario: Scenario that is flown, or checked.
        set: Keys of the scenario that differ.
        value: Rule by which the number follows from the flight.
        check: Path of the number in what `musls check` finds, instead of `value`.
        why: Differences to the paper, and their reasons.
        comparable: Whether ours over the paper's says something; if not, no ratio is shown.
    """

    what: str
    paper: Finite
    unit: str = ""
    scenario: str = ""
    set: dict[str, Any] = Field(default_factory=dict)
    value: Metric | None = None
    check: str | None = None
    why: str = ""
    comparable: bool = True

    def __post_init__(self) -> None:
        if (self.value is None) == (self.check is None):
            raise ValueError(f"{self.what}: give one of value and check")

    @property
    def wanted(self) -> FlightRequest:
        """Flights and checks that it takes."""
        return FlightRequest(
            self.scenario, tuple(starmap(as_override, self.set.items())), bool(self.check)
        )


class FlightRequest(NamedTuple):
    """A flight, or a check."""

    scenario: str
    overrides: tuple[str, ...]
    check: bool = False

    @property
    def command(self) -> str:
        """Command that flies or checks the same."""
        words = [program(), "check" if self.check else "fly", self.scenario]
        return " ".join([*words, *(f"--set {text}" for text in self.overrides)])


@spec
class PaperGroup:
    """Rows of one table or figure.

    Attributes:
        title: Name of the group.
        rows: The numbers.
    """

    title: str
    rows: tuple[PaperRow, ...]


@spec
class Paper:
    """A paper.

    Attributes:
        title: Title of the paper.
        source: Authors, journal, year.
        notes: Lines below the table.
        table_iii: Whether recorded flights give the seed paper's Table III, too.
        groups: Numbers, by table or figure.
        figures: Figures that are drawn from our flights.
    """

    title: str
    source: str
    notes: tuple[str, ...] = ()
    table_iii: bool = False
    groups: tuple[PaperGroup, ...]
    figures: tuple[PaperFigure, ...] = ()


def _are_mappings(rows: object) -> bool:
    return isinstance(rows, list) and all(isinstance(row, dict) for row in rows)


def load_paper(name: str) -> Paper:
    """A paper by the number of its file."""
    path = named_file("paper", name, PAPERS)
    data = read_yaml(path)
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: must hold a paper's title, source and groups")
    groups = data.get("groups")
    for group in groups if isinstance(groups, list) else ():
        if not (isinstance(group, dict) and _are_mappings(group.get("rows", []))):
            continue  # is told below
        common = {key: group.pop(key) for key in list(group) if key not in ("title", "rows")}
        checked = {key: value for key, value in common.items() if key != "value"}
        group["rows"] = [
            {**(checked if "check" in row else common), **row} for row in group.get("rows", ())
        ]
    return build(Paper, data, str(path))


def reproduce_paper(
    name: str,
    out: Path,
    flights: Sequence[Path] = (),
    *,
    overwrite: bool = False,
    progress: Callable[[int, int], None] = lambda count, total: None,
) -> list[Result]:
    """Fly what a paper shows; writes report.html, summary.json and the flights into a folder.

    `flights` are recordings of the seed paper, for its Table III.

    Raises:
        StopRequested: A signal ended it; the folder holds the flights and numbers up to then.
    """
    paper = load_paper(name)
    if flights and not paper.table_iii:
        raise ConfigError(f"paper {name}: FLIGHTS are for Table III of paper 000")
    if flights:
        some_cycles(flights)  # what is wrong with them shows before anything is flown
    with result_folder(out, overwrite=overwrite) as work:
        outcomes: dict[FlightRequest, tuple[Recording | None, Mapping[str, Any]]] = {}
        flights_of = [
            {
                curve: FlightRequest(scenario, tuple(starmap(as_override, keys.items())))
                for curve, (scenario, keys) in figure.flights.items()
            }
            for figure in paper.figures
        ]
        requests = [row.wanted for group in paper.groups for row in group.rows]
        requests += [flight for curves in flights_of for flight in curves.values()]
        distinct = list(dict.fromkeys(requests))
        progress(0, len(distinct))
        stop: StopRequested | None = None
        cut: str | None = None
        for flight in distinct:
            name = f"{len(outcomes) + 1:02d}_{Path(flight.scenario).stem}"
            try:
                outcomes[flight] = _flown(flight, work / "flights" / name)
                progress(len(outcomes), len(distinct))
            except StopRequested as error:  # no number comes from the flight that it cut
                if not (work / "flights").is_dir():
                    raise
                stop = error
                stop.kept = f"what was flown is kept in {out}"
                cut = f"ended by {stop.name} after {len(outcomes)} of {len(distinct)} flights"
                break
        results = [
            Result(group.title, row, _number(row, *outcomes[row.wanted]))
            for group in paper.groups
            for row in group.rows
            if row.wanted in outcomes
        ]
        pictures = [
            PaperPicture(
                figure.title,
                figure.why,
                picture(draw(figure, recordings(curves, outcomes))),
                [flight.command for flight in curves.values()],
            )
            for figure, curves in zip(paper.figures, flights_of, strict=True)
            if outcomes.keys() >= set(curves.values())
        ]
        if flights and stop is None:
            results += _table_iii(flights, work / "table_iii")
            pictures += [
                PaperPicture(
                    f"Fig. 5 and 8, simulated and recorded: {label(path.stem)}",
                    WHY,
                    picture(path.read_bytes()),
                    [],
                )
                for path in sorted((work / "table_iii" / SYSTEM / "figures").glob("*.png"))
            ]
        _write(paper, results, pictures, work, cut)
    if stop is not None:
        raise stop
    return results


@dataclass(frozen=True)
class Result:
    """A row with our number; None where the flight has it not."""

    group: str
    row: PaperRow
    ours: float | None

    @property
    def ratio(self) -> float | None:
        """Ours over the paper's, where that says something."""
        if self.ours is None or not self.row.paper or not self.row.comparable:
            return None
        return self.ours / self.row.paper


@dataclass(frozen=True)
class PaperPicture:
    """A figure: its title, what differs, the picture as a data URI, commands of its flights."""

    title: str
    why: str
    picture: str
    commands: list[str]


def recordings(
    curves: Mapping[str, FlightRequest], found: Mapping[FlightRequest, Any]
) -> dict[str, Recording]:
    """Recordings of the curves of a figure."""
    return {curve: found[flight][0] for curve, flight in curves.items()}


def _flown(flight: FlightRequest, folder: Path) -> tuple[Recording | None, Mapping[str, Any]]:
    """The flight, and the content of its summary.json; or what the check finds."""
    scenario = find_scenario(flight.scenario, list(flight.overrides))
    if flight.check:
        return None, as_data(scenario, judge(scenario, flown=False))
    return fly_run(scenario, folder)


def _number(row: PaperRow, recording: Recording | None, summary: Mapping[str, Any]) -> float | None:
    metric = row.value or Metric(path=row.check)
    return chosen_metric(metric, summary, recording)


def _table_iii(flights: Sequence[Path], out: Path) -> list[Result]:
    """The seed paper's Table III from its recordings, see `musls_bringup.papers.reproduce`."""
    options = ReproduceOptions(systems=[SYSTEM], seeds=3)
    (column,) = reproduce(flights, out, options)
    results = []
    for stage, comparison in column.comparisons.items():
        for body, errors in comparison.errors.items():
            ours = 1e3 * errors.translational_error_m, errors.geodesic_error_deg
            for unit, paper, value in zip(("mm", "deg"), TABLE_III[stage][body], ours, strict=True):
                row = PaperRow(
                    what=f"{stage}, {label(body)}", paper=paper, unit=unit, check="-", why=WHY
                )
                results.append(Result("Table III, simulated against recorded", row, value))
    return results


def _write(
    paper: Paper,
    results: Sequence[Result],
    pictures: Sequence[PaperPicture],
    folder: Path,
    cut: str | None = None,
) -> None:
    """Write report and numbers; `cut` says of what was ended early how far it came."""
    environment = templates(Path(__file__).parents[1] / "templates")
    environment.filters["number"] = number
    page = environment.get_template("paper.html.j2").render(
        paper=paper,
        groups=groupby(results, lambda result: result.group),
        figures=pictures,
        cut=cut,
    )
    (folder / "report.html").write_text(page, encoding="utf-8")
    rows = [
        {
            "table": r.group,
            "what": r.row.what,
            "unit": r.row.unit,
            "paper": r.row.paper,
            "ours": r.ours,
            "command": r.row.wanted.command,
            "why": r.row.why,
        }
        for r in results
    ]
    about = {"paper": paper.title, "source": paper.source, "partial": cut}
    text = json.dumps({**about, "rows": rows}, indent=2)
    (folder / "summary.json").write_text(text + "\n", encoding="utf-8")


# ---------- Figures: our flights over the paper's axes


LINES = ("#0f6fb8", "#c2410c", "#4d7c0f", "#7e22ce", "#be185d", "#0f766e", "#a16207", "#475569")
PAPER: style.LineStyle = {"color": "black", "linewidth": 1.0, "linestyle": ":", "zorder": 4}
PANEL_IN = 1.5


@spec
class PaperPanel:
    """Axes of a figure.

    Attributes:
        label: Text at the vertical axis, with unit.
        signals: Signals that are drawn, "load.x_m", "cable_1.tension_n", ...
        against: Another body: the difference to it is drawn.
        from_start: The change since the start is drawn.
        paper: Values of the paper: a level, or points [x, y], by their texts.
    """

    label: str
    signals: tuple[str, ...]
    against: str | None = None
    from_start: bool = False
    paper: dict[str, Finite | tuple[tuple[Finite, Finite], ...]] = Field(default_factory=dict)


@spec
class PaperFigure:
    """A figure of a paper.

    Attributes:
        title: Number and subject of the figure.
        scenario: Scenario that is flown.
        set: Keys of the scenario that differ.
        curves: Several flights instead: scenario and keys that differ, by the texts of the legend.
        stage: Stage whose begin is time zero.
        from_s: First time shown.
        until_s: Last time shown.
        x: A signal instead of the time at the horizontal axis.
        panels: Axes, one below the other.
        why: Differences to the paper, and their reasons.
    """

    title: str
    scenario: str = ""
    set: dict[str, Any] = Field(default_factory=dict)
    curves: dict[str, dict[str, Any]] = Field(default_factory=dict)
    stage: str | None = None
    from_s: Finite | None = None
    until_s: Finite | None = None
    x: str | None = None
    panels: tuple[PaperPanel, ...]
    why: str = ""

    @property
    def flights(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """Scenario and keys that differ, by the text of each curve ("" for a single one)."""
        return {
            name: (str(keys.get("scenario", self.scenario)), {**self.set, **_without(keys)})
            for name, keys in (self.curves or {"": {}}).items()
        }


def _without(keys: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if key != "scenario"}


# ---------- Drawing


def draw(figure: PaperFigure, flights: Mapping[str, Recording]) -> bytes:
    """Draw a figure from the flights of its curves; a PNG."""
    with style.styled():
        drawing = drawn_figure(figure, flights)
        png = BytesIO()
        style.save(drawing, png)
    return png.getvalue()


def drawn_figure(figure: PaperFigure, flights: Mapping[str, Recording]) -> Figure:
    """The figure, not written to a file yet."""
    drawing = style.new_figure(0.5 + PANEL_IN * len(figure.panels))
    drawing.set_layout_engine("constrained")
    axes = drawing.subplots(len(figure.panels), 1, sharex=True, squeeze=False)[:, 0]
    for ax, panel in zip(axes, figure.panels, strict=True):
        has_setpoint = False
        for c, (curve, recording) in enumerate(flights.items()):
            begin_s = 0.0
            if figure.stage is not None:
                begin_s = next(s.start_s for s in recording.stages if s.name == figure.stage)
            for s, name in enumerate(panel.signals):
                time_s, values, setpoint = values_of(recording, name)
                if panel.against is not None:
                    other = f"{panel.against}.{name.partition('.')[2]}"
                    their_s, theirs, _ = values_of(recording, other)
                    shift = np.interp(time_s, their_s, theirs - theirs[0])
                    values, setpoint = values - values[0] - shift, np.full(len(values), np.nan)
                elif panel.from_start:
                    values, setpoint = values - values[0], setpoint - values[0]
                x = time_s - begin_s
                mask = np.ones(len(x), bool)
                if figure.from_s is not None:
                    mask &= x >= figure.from_s
                if figure.until_s is not None:
                    mask &= x <= figure.until_s
                if figure.x is not None:
                    at_s, at, _ = values_of(recording, figure.x)
                    x = np.interp(time_s, at_s, at)
                several = not curve or len(panel.signals) > 1
                text = ", ".join(filter(None, [curve, text_of(name) if several else ""]))
                shade = LINES[(c * len(panel.signals) + s) % len(LINES)]
                width = max(2.2 - 0.5 * (c + s), 1.0)  # of two that are the same both are seen
                ax.plot(x[mask], values[mask], color=shade, linewidth=width, label=text)
                if not has_setpoint and figure.x is None and np.isfinite(setpoint).any():
                    ax.plot(x[mask], setpoint[mask], **style.SETPOINT_LINE, label="set-point")
                    has_setpoint = len(panel.signals) == 1
        for text, what in panel.paper.items():
            if isinstance(what, tuple):
                ax.plot(*np.array(what).T, "ko", ms=3.0, zorder=4, label=f"paper: {text}")
            else:
                ax.axhline(what, **PAPER, label=f"paper: {text}")
        ax.set_ylabel(panel.label)
        handles = {handle.get_label(): handle for handle in ax.get_legend_handles_labels()[0]}
        ax.legend(
            handles=list(handles.values()),
            loc="center left",
            bbox_to_anchor=(1.01, 0.5),
            fontsize=7.0,
        )
    axes[-1].set_xlabel("time [s]" if figure.x is None else text_of(figure.x))
    return drawing
