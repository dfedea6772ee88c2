"""Flies the runs of docs/gallery.md and writes its films, numbers and text.

`python docs/pictures/gallery.py FOLDER [NAME ...]`: FOLDER holds the flights; those that are
missing are flown, and those that are named or have no film are drawn.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
FILM_S, FPS = 4.0, 6
LARGEST_BYTES = 400_000


class Show(NamedTuple):
    """One run: what is flown, and the stage that its film shows ("" for all of it).

    `error_in` is the stage whose error the page tells, where the load is to follow something.
    """

    title: str
    text: str
    fly: str
    stage: str = ""
    before: str = ""
    error_in: str = ""


RUNS = {
    "engage": Show(
        "Slack cables snap taut",
        "The drones rise with slack cables until these lift the load with a jerk, three times.",
        "engage",
        "engage",
        error_in="engage",
    ),
    "payload": Show(
        "A controller that knows the load",
        "The paper's circle with feedback of the load's own error.",
        "circle_payload --set cable_model=massless",
        "circle",
        error_in="circle",
    ),
    "gate": Show(
        "Through a gate",
        "Load and formation pass an opening that is 0.4 m wider than they are.",
        "gate --set cable_model=massless",
        error_in="min_derivative",
    ),
    "hexa_survives": Show(
        "A drone is lost",
        "One of six falls out; its hook opens, the others close up and fly on.",
        "hexa_survives",
    ),
    "ring": Show(
        "Twelve drones, one ring",
        "A system from a few sizes, without a line of YAML.",
        "hold --set system=ring_12.yaml --set cable_model=massless",
        error_in="hold",
        before="new system ring_12 --load ring --length 4 --drones 12 --cable 2.5",
    ),
    "delivery": Show(
        "A parcel is delivered",
        "A quadcopter hooks up 2 kg, weighs them, flies along a street and sets them down.",
        "delivery",
    ),
    "winch_delivery": Show(
        "Lowered by a winch",
        "A hovering drone pays out its line until the box stands and the line is slack.",
        "winch_delivery",
    ),
    "crane": Show(
        "A tower crane",
        "Nine ropes, six pulleys, a winch and 1 t of load that swings when the trolley drives off.",
        "crane",
    ),
    "cdpr": Show(
        "A cable-driven parallel robot",
        "Four rods carry a platform along the path of a published robot.",
        "cdpr_pick_and_place",
    ),
    "snap": Show(
        "A cable breaks",
        "Too weak for the jerk, the first cable parts; the other two carry on.",
        "snap_and_break",
    ),
}  # fmt: skip


def film_of(name: str) -> Path:
    """Where its film is."""
    return HERE / f"gallery_{name}.gif"


def musls(words: str) -> None:
    """Run a command as a user types it."""
    program = "import sys; from musls_bringup.cli import main; sys.exit(main())"
    subprocess.run([sys.executable, "-c", program, *shlex.split(words)], check=True)


def flown(name: str, show: Show, folder: Path) -> dict[str, Any]:
    """Content of summary.json, from a flight that is there or is flown now."""
    run = folder / name
    if not run.is_dir():
        if show.before:
            Path("ring_12.yaml").unlink(missing_ok=True)
            musls(show.before)
        musls(f"fly {show.fly} --no-report --out {shlex.quote(str(run))}")
        Path("ring_12.yaml").unlink(missing_ok=True)
    return json.loads((run / "summary.json").read_text(encoding="utf-8"))


def draw(name: str, show: Show, summary: dict[str, Any], folder: Path) -> None:
    """Write the film, `FILM_S` long."""
    spans = [s for s in summary["stages"] if s["name"] == show.stage]
    lasts_s = spans[-1]["end_s"] - spans[0]["start_s"] if spans else summary["sim_time_s"]
    stage = f"--stage {show.stage}" if show.stage else ""
    film = film_of(name)
    musls(
        f"view {shlex.quote(str(folder / name))} --gif --narrow --fps {FPS} --speed "
        f"{lasts_s / FILM_S:.3f} {stage} --out {shlex.quote(str(film))} --overwrite"
    )
    if film.stat().st_size > LARGEST_BYTES:
        raise SystemExit(f"{film}: {film.stat().st_size} bytes, at most {LARGEST_BYTES}")


def numbers(show: Show, summary: dict[str, Any]) -> str:
    """What the flight's summary says in a line."""
    parts = [f"{summary['sim_time_s']:.0f} s"]
    if show.error_in:
        error_m = summary["errors"]["load"][show.error_in]["translational_error_m"]
        stage = show.error_in.replace("_", " ")
        parts.append(f"mean error of the load {1e3 * error_m:.0f} mm in {stage}")
    tensions = [peak["max_n"] for peak in summary["tension"].values()]
    if tensions:
        parts.append(f"largest tension {max(tensions):.1f} N")
    return ", ".join(parts)


def main() -> None:
    """Draw the films and write the page."""
    folder = Path(sys.argv[1])
    parts = [
        "# Gallery\n\nTen runs worth seeing: the command that flies each, and what came out.\n"
    ]
    for name, show in RUNS.items():
        summary = flown(name, show, folder)
        if name in sys.argv[2:] or not film_of(name).exists():
            draw(name, show, summary, folder)
        commands = "\n".join(
            f"musls {words}" for words in (show.before, f"fly {show.fly}") if words
        )
        parts.append(
            f"## {show.title}\n\n{show.text} {numbers(show, summary)}.\n\n"
            f"![{show.title}](pictures/{film_of(name).name})\n\n"
            f"```sh\n{commands}\n```\n"
        )
    (HERE.parent / "gallery.md").write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
