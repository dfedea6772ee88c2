"""Makes a film of a minute from our own scenes: `python docs/pictures/film.py FOLDER [LIVE.png]`.

FOLDER holds flights and parts; those that are missing are made. LIVE.png, a screenshot of `musls
fly circle --live`, is shown at the end. Needs ffmpeg (imageio-ffmpeg); the film is not committed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import musls
from musls_analysis.figures import style
from musls_analysis.recordings.recording import RecordedStage
from musls_analysis.view.film import FilmOptions, ffmpeg_program, write_film
from musls_analysis.view.opened import open_subject
from musls_analysis.view.picture import PictureOptions, new_canvas, pixels

PART_S, FPS, WORLDS = 7.5, 30, 1000
WIDTH_PX, HEIGHT_PX = 1440, 960
"""Of the films that `write_film` writes."""

SCENES: dict[str, tuple[str, dict[str, Any], float, float, PictureOptions]] = {
    "Take-off": ("circle", {}, 0.0, 20.0, PictureOptions()),
    "A circle": ("circle_payload", {}, 30.0, 60.0, PictureOptions(-40.0, 24.0)),
    "A cable snaps taut and breaks": ("snap_and_break", {}, 14.0, 26.0, PictureOptions()),
    "A drone is lost": ("hexa_survives", {}, 0.0, np.inf, PictureOptions()),
    "Through a gate": ("gate", {"cable_model": "massless"}, 0.0, np.inf, PictureOptions()),
    "A crane": ("crane", {}, 0.0, np.inf, PictureOptions()),
}
"""Scenario, its changes, from and to when it is shown [s], and the camera."""


def film_flight(title: str, path: Path, folder: Path) -> None:
    """Fly a scene, if that has not been done, and draw it as `musls view --mp4` does."""
    scenario, changes, begin_s, end_s, look = SCENES[title]
    run = folder / path.stem
    if not run.exists():
        musls.fly(scenario, set=changes, out=run)
    subject = open_subject(run)
    window_s = (max(begin_s, subject.start_s), min(end_s, subject.end_s))
    one = replace(
        subject.recording, stages=[RecordedStage(title, *window_s)]
    )  # its name is the headline
    subject = replace(subject, recording=one)
    film = FilmOptions(FPS, (window_s[1] - window_s[0]) / PART_S)
    write_film([subject], window_s, path, look, film, lambda share: None)


def thousand_worlds() -> Iterator[np.ndarray]:
    """Loads of a thousand worlds, each pushed another way, from above."""
    batch = musls.Batch(musls.load_scenario("transport"), worlds=WORLDS)
    start_enu_m = batch.position_enu_m[0, 0].copy()
    rng, side = np.random.default_rng(1), np.ceil(np.sqrt(WORLDS * WIDTH_PX / HEIGHT_PX))
    force_n = 6.0 * rng.standard_normal((WORLDS, 2))
    places = np.stack(np.divmod(np.arange(WORLDS), side)[::-1], axis=-1)
    canvas = new_canvas(WIDTH_PX / 1.5, HEIGHT_PX / 1.5, 1.5)
    with style.styled():
        ax = canvas.figure.add_axes((0.02, 0.02, 0.96, 0.88))
        ax.set(xlim=(-1, side + 1), ylim=(-1, places[:, 1].max() + 2), aspect="equal")
        ax.axis("off")
        ax.set_title("A thousand worlds in one call", fontsize=13)
        drones = ax.plot([], [], ".", ms=2.5, color=style.colour("drone_1"))[0]
        load = ax.plot([], [], "s", ms=3.5, color=style.colour("load"))[0]
        for _ in range(round(PART_S * FPS)):
            time_s = float(batch.time_s[0])
            batch.wrench_enu[:, 0, 3:5] = force_n * ((time_s % 2.5) < 0.5)
            batch.advance(8)
            shown = (batch.position_enu_m[..., :2] - start_enu_m[:2]) * 0.7 + places[:, None]
            load.set_data(*shown[:, 0].T)
            drones.set_data(*shown[:, 1:].reshape(-1, 2).T)
            canvas.draw()
            yield pixels(canvas)


def still(path: Path) -> Iterator[np.ndarray]:
    """A picture for as long as a part, on white."""
    page = Image.new("RGB", (WIDTH_PX, HEIGHT_PX), "white")
    with Image.open(path) as image:
        image.thumbnail(page.size)
        page.paste(image, ((WIDTH_PX - image.width) // 2, (HEIGHT_PX - image.height) // 2))
    yield from [np.asarray(page)] * round(PART_S * FPS)


def encode(frames: Iterable[np.ndarray], path: Path) -> None:
    """Write frames as the other parts are written, an interrupted one under another name."""
    work = path.with_suffix(".part.mp4")
    size = f"-f rawvideo -pix_fmt rgb24 -s {WIDTH_PX}x{HEIGHT_PX} -r {FPS} -i - "
    how = "-loglevel error -y " + size + "-c:v libx264 -preset veryfast -crf 20 -pix_fmt yuv420p"
    with subprocess.Popen(
        [ffmpeg_program(), *how.split(), str(work)], stdin=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        for frame in frames:
            process.stdin.write(frame.tobytes())
    work.rename(path)


def main() -> None:
    """Make what is missing and join it."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    parts = [folder / f"{title.lower().replace(' ', '_')}.mp4" for title in SCENES]
    for title, path in zip(SCENES, parts, strict=True):
        if not path.exists():
            film_flight(title, path, folder)
    parts.append(folder / "worlds.mp4")
    if not parts[-1].exists():
        encode(thousand_worlds(), parts[-1])
    if len(sys.argv) > 2:
        parts.append(folder / "live.mp4")
        encode(still(Path(sys.argv[2])), parts[-1])
    names = folder / "parts.txt"
    names.write_text("".join(f"file '{part.name}'\n" for part in parts))
    words = f"-loglevel error -y -f concat -i {names} -c copy {folder / 'musls.mp4'}"
    subprocess.run([ffmpeg_program(), *words.split()], check=True)


if __name__ == "__main__":
    main()
