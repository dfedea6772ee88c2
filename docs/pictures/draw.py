"""Draws the pictures of single flights: `python docs/pictures/draw.py FOLDER [NAME ...]`.

FOLDER holds the flights; those that are missing are flown. The recorded flights that `results` and
`replay` show lie in FLIGHTS, and are left out where they are not at hand.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from shutil import copyfile
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

HERE = Path(__file__).parent
FLIGHTS = HERE.parents[2] / "shared" / "flights"
SMALL_CIRCLE: dict[str, Any] = {
    "start": "air",
    "system.cables.links": 5,
    "mission.stages": [{"kind": "circle", "radius_m": 0.6, "speed_m_s": 0.4, "height_m": 1.0}],
}
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "engage_massless": ("engage", {"cable_model": "massless"}),
    "circle_late": ("circle", {"imperfections.setpoint_delay_s": 0.3}),
    "feedback": (
        "circle",
        {"controller": {"kind": "python", "source": "examples/own_controller.py:LoadFeedback"}},
    ),
    "failure": (
        "hold",
        {
            "system": "x500_quad",
            "cable_model": "elastic",
            "start": "air",
            "formation": {"radius_m": 1.0, "height_m": 2.33},
            "mission.stages": [{"kind": "hold", "position_m": [0, 0, 4], "duration_s": 4}],
            "events": [
                {
                    "kind": "rotor_failure",
                    "name": "weak",
                    "drone": 1,
                    "rotor": 1,
                    "efficiency": 0.7,
                    "when": {"stage": "hold", "after_s": 1},
                },
                {
                    "kind": "cable_cut",
                    "cable": 2,
                    "segment": 3,
                    "when": {"event": "weak", "after_s": 1},
                },
            ],
        },
    ),
    "2.0 kg": ("circle", {**SMALL_CIRCLE, "system.load.mass_kg": 2.0}),
    "model": ("circle", SMALL_CIRCLE),
}
"""Flights that are not a shipped scenario as it is."""


class View(NamedTuple):
    """A picture of `musls view`: run, time, run laid over it, stage by which both are aligned."""

    run: str
    time_s: float
    other: str = ""
    stage: str | None = None
    zoom: float = 1.0
    azimuth_deg: float = -62.0
    elevation_deg: float = 17.0


class Written(NamedTuple):
    """A picture that a replay of a recorded stage wrote: stage and name."""

    run: str
    name: str


class Figure(NamedTuple):
    """A figure of the report: run and name."""

    run: str
    name: str


PICTURES: dict[str, View | Figure | Written] = {
    "circle": View("circle", 30.0),
    "model": View("engage", 20.0),
    "winches": View("crane", 5.0),
    "rigs": View("cdpr_pick_and_place", 3.0),
    "events": View("cable_cut", 5.4),
    "trajectories": Figure("circle", "paths_3d"),
    "controllers": View("circle_payload", 40.0, "circle", "circle"),
    "cable_models": View("engage", 20.5, "engage_massless", "engage"),
    "elastic": View("snap_and_break", 21.8),
    "massless": View("engage_massless", 21.0),
    "imperfections": View("circle", 40.0, "circle_late", "circle"),
    "rotortm": View("rotortm_cables_slalom13", 6.0),
    "own_controller": View("feedback", 40.0, "circle", "circle"),
    "failure_study": View("failure", 3.95),
    "own_recording": View("2.0 kg", 8.0, "model", "circle"),
    "replay": Written("flight_2136_shm.csv", "load.png"),
    "results": View("flight_2136_engage.csv", 162.0, "engage", "engage"),
}


def folder_of(run: str, runs: Path) -> Path:
    """Where a flight lies; it is flown if it is not there."""
    import musls

    if run.endswith(".csv"):
        return FLIGHTS / run
    if not (runs / run / "summary.json").is_file():
        scenario, overrides = RUNS.get(run, (run, {}))
        musls.fly(musls.load_scenario(scenario, overrides), out=runs / run)
    return runs / run


def draw_view(view: View, runs: Path, path: Path) -> None:
    """Write the picture of a moment."""
    from musls_analysis.scene import aligning_shift_s, shown_window
    from musls_analysis.view.film import write_png
    from musls_analysis.view.opened import open_subject
    from musls_analysis.view.picture import NARROW, PictureOptions

    subjects = [replace(open_subject(folder_of(view.run, runs)), name=view.run)]
    if view.other:
        second = replace(open_subject(folder_of(view.other, runs)), name=view.other)
        shift_s, _ = aligning_shift_s(subjects[0].recording, second.recording, view.stage, 0)
        subjects.append(replace(second, shift_s=shift_s))
    options = PictureOptions(view.azimuth_deg, view.elevation_deg, view.zoom, layout=NARROW)
    write_png(subjects, shown_window(subjects, view.stage), view.time_s, path, options)


def draw_figure(figure: Figure, runs: Path, path: Path) -> None:
    """Write a figure of the report, as wide as a column of a paper."""
    from musls_analysis.comparison.summary import summarise
    from musls_analysis.figures.flight import write_for_paper
    from musls_analysis.recordings.readers import read_recording

    flight = read_recording(folder_of(figure.run, runs))
    (written,) = write_for_paper(
        flight, summarise(flight), path.parent / "work", ["png"], [figure.name], 0.12
    )
    written.replace(path)
    written.parent.rmdir()


def copy_written(picture: Written, runs: Path, path: Path) -> None:
    """Replay a recorded stage, if it has not been done, and take a picture of it."""
    from musls_bringup.cli import main as command_line

    folder = runs / f"replay_{Path(picture.run).stem}"
    if not folder.exists():
        command_line(["replay", str(FLIGHTS / picture.run), "--out", str(folder)])
    copyfile(folder / picture.name, path)


def shrink(path: Path, width_px: int = 940) -> None:
    """Keep 255 colours, which takes a third of the bytes, and at most a width."""
    from musls_analysis.view.film import palette

    with Image.open(path) as image:
        small = image.convert("RGB")
    if small.width > width_px:
        size = (width_px, round(small.height * width_px / small.width))
        small = small.resize(size, Image.Resampling.LANCZOS)
    paletted = small.quantize(palette=palette(np.asarray(small)), dither=Image.Dither.NONE)
    paletted.save(path, optimize=True)


def main() -> None:
    """Draw what is named, or all."""
    runs = Path(sys.argv[1])
    for name in sys.argv[2:] or PICTURES:
        what, path = PICTURES[name], HERE / f"{name}.png"
        if what.run.endswith(".csv") and not (FLIGHTS / what.run).is_file():
            print(f"{name}: no {FLIGHTS / what.run}")
            continue
        if isinstance(what, View):
            draw_view(what, runs, path)
        elif isinstance(what, Written):
            copy_written(what, runs, path)
        else:
            draw_figure(what, runs, path)
        shrink(path)
        print(path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
