"""Files of pictures: PNG of one moment, GIF and MP4 of a span of time; whole or not at all."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
from PIL import Image

from musls_analysis.scene import Subject
from musls_analysis.view.picture import Layout, Picture, PictureOptions
from musls_control.child_processes import ending, last_words
from musls_description.config.errors import ConfigError, MuslsError, install_command, whole_file

PNG_SCALE = 2.0
MP4_SCALE = 1.5
MAX_FRAMES = {"gif": 4000, "mp4": 20_000}
"""Pillow keeps all frames of a GIF in memory, 0.6 MB each."""
SLOWEST = 0.001
"""Frames, and seconds of flight, per second of a film."""
MAX_GIF_FRAMES_PER_S = 50.0
"""Viewers slow down delays below 0.02 s."""
_PALETTE_SAMPLES = 12


@dataclass(frozen=True)
class FilmOptions:
    """Frame rate and speed of a film.

    Attributes:
        fps: Frames per second.
        speed: Shown seconds per second of film.
    """

    fps: float = 20.0
    speed: float = 1.0

    def __post_init__(self) -> None:
        for name, value, most in (("fps", self.fps, 120.0), ("speed", self.speed, 1000.0)):
            if not SLOWEST <= value <= most:
                raise ConfigError(f"{name} is {value:g}, must be from {SLOWEST:g} to {most:g}")

    def times_s(self, window_s: tuple[float, float], kind: str = "mp4") -> np.ndarray:
        """Shown time of each frame of a "gif" or "mp4"."""
        if kind == "gif" and self.fps > MAX_GIF_FRAMES_PER_S:
            raise ConfigError(f"--fps is {self.fps:g}, a gif has at most {MAX_GIF_FRAMES_PER_S:g}")
        start_s, end_s = window_s
        count = max(round((end_s - start_s) / self.speed * self.fps), 1)
        if count > MAX_FRAMES[kind]:
            raise ConfigError(
                f"a film of {count} frames, at most {MAX_FRAMES[kind]} are made: choose a "
                "--stage, a higher --speed or a lower --fps"
            )
        return start_s + np.arange(count) * self.speed / self.fps


def write_png(
    subjects: Sequence[Subject],
    window_s: tuple[float, float],
    time_s: float,
    path: Path,
    options: PictureOptions,
) -> None:
    """Write the picture of a moment."""
    if not window_s[0] - 1e-9 <= time_s <= window_s[1] + 1e-9:
        raise ConfigError(
            f"{subjects[0].recording.source}: picture at {time_s:g} s: must be a time from "
            f"{window_s[0]:.2f} to {window_s[1]:.2f} s"
        )
    picture = Picture(subjects, window_s, options, PNG_SCALE, framed_s=(time_s, time_s))
    image = Image.fromarray(picture.draw(time_s))
    with whole_file(path) as work:
        image.save(work, "PNG", dpi=(200, 200))


def write_film(
    subjects: Sequence[Subject],
    window_s: tuple[float, float],
    path: Path,
    options: PictureOptions,
    film: FilmOptions,
    progress: Callable[[float], None],
) -> None:
    """Write an animated GIF or, through ffmpeg, an H.264 film, as the file's name ends."""
    kind = path.suffix[1:].lower()
    times_s = film.times_s(window_s, kind)
    program = ffmpeg_program() if kind == "mp4" else ""
    picture = Picture(subjects, window_s, options, 1.0 if kind == "gif" else MP4_SCALE)

    def frames() -> Iterator[np.ndarray]:
        for k, time_s in enumerate(times_s):
            progress((k + 1) / len(times_s))
            yield picture.draw(time_s, film.speed)

    with whole_file(path) as work:
        if kind == "gif":
            some = times_s[:: max(len(times_s) // _PALETTE_SAMPLES, 1)]
            colours = palette(np.concatenate([picture.draw(t, film.speed) for t in some]))
            _write_gif(frames(), colours, film.fps, len(times_s), work)
        else:
            _write_mp4(frames(), program, film.fps, options.layout, path, work)


def _write_gif(
    frames: Iterable[np.ndarray], colours: Image.Image, fps: float, count: int, work: Path
) -> None:
    """Write a GIF with one palette for all frames, which plays for ever."""
    each = (
        Image.fromarray(frame).quantize(palette=colours, dither=Image.Dither.NONE)
        for frame in frames
    )
    # Delays are whole hundredths of a second; their sum stays right.
    ends_cs = np.round(100.0 * np.arange(count + 1) / fps)
    delays_ms = [10 * int(end - start) for start, end in pairwise(ends_cs)]
    next(each).save(work, "GIF", save_all=True, append_images=each, duration=delays_ms, loop=0)


def palette(picture: np.ndarray) -> Image.Image:
    """Image that holds the 255 colours that stand for those of a picture (height, width, 3).

    Nearly all of a picture is white: every colour counts by the root of how often it comes, else
    few colours would be left for thin lines.
    """
    pixels = picture.reshape(-1, 3)
    near = (pixels // 4).astype(np.int64) @ [1 << 16, 1 << 8, 1]
    _, first, counts = np.unique(near, return_index=True, return_counts=True)
    weighted = np.repeat(pixels[first], np.ceil(np.sqrt(counts)).astype(int), axis=0)
    quantized = Image.fromarray(weighted[None]).quantize(255, Image.Quantize.MEDIANCUT, kmeans=3)
    colours = np.array(quantized.getpalette(), np.uint8).reshape(-1, 3)[:255]
    colours[colours.min(axis=1) > 245] = 255  # the page: Pillow takes the colour nearest to 252
    image = Image.new("P", (1, 1))
    image.putpalette(colours.tobytes())
    return image


def _write_mp4(
    frames: Iterable[np.ndarray], program: str, fps: float, layout: Layout, path: Path, work: Path
) -> None:
    size = f"{round(layout.width_px * MP4_SCALE)}x{round(layout.height_px * MP4_SCALE)}"
    command = [
        program,
        "-loglevel",
        "error",
        "-y",
        "-f",
        "rawvideo",
        "-pix_fmt",
        "rgb24",
        "-s",
        size,
        "-r",
        f"{fps:g}",
        "-i",
        "-",
        "-c:v",
        "libx264",
        "-preset",
        "veryfast",
        "-crf",
        "20",
        "-pix_fmt",
        "yuv420p",
        "-movflags",
        "+faststart",
        "-f",
        "mp4",
        str(work.resolve()),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        to_ffmpeg = process.stdin
        assert to_ffmpeg is not None  # a pipe, as asked for
        try:
            for frame in frames:
                to_ffmpeg.write(frame.data)
        except BrokenPipeError:
            pass  # ffmpeg has ended, and says why
        output = process.communicate()[1].decode(errors="replace").strip()
    if process.returncode:
        reason = last_words(output) or ending(process.returncode)
        raise MuslsError(f"{path}: ffmpeg failed: {reason}")


def ffmpeg_program() -> str:
    """Path of ffmpeg: of the package imageio-ffmpeg, else on the PATH."""
    if find_spec("imageio_ffmpeg"):
        import imageio_ffmpeg

        return imageio_ffmpeg.get_ffmpeg_exe()
    program = shutil.which("ffmpeg")
    if program is None:
        command = install_command("imageio-ffmpeg")
        raise MuslsError(f"--mp4 needs ffmpeg: {command}; --gif does not need it")
    return program
