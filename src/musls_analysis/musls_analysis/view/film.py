"""Files of pictures: PNG of one moment, GIF and MP4 of a span of time; whole or not at all."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import GifImagePlugin, Image
from scipy.spatial import cKDTree

from musls_analysis.view.picture import Picture, PictureOptions
from musls_analysis.view.scene import Subject
from musls_description.errors import ConfigError, MuslsError

# ---------- Writes an animated GIF frame by frame, with one palette and only what changed.

MOST_FRAMES_PER_S = 50.0
"""Viewers slow down delays below 0.02 s."""
_COLOURS = 255
_UNCHANGED = 255
"""Index of the transparent colour: the pixel keeps the colour it has."""
_LEVELS = 64
"""Of each channel, by which the nearest colour is looked up."""
_MERGED, _POWER, _REFINEMENTS = 4, 0.5, 3


class GifWriter:
    """Writes frames of one size into an open file; `close` ends the animation."""

    def __init__(self, file: BinaryIO, samples: Sequence[np.ndarray], fps: float) -> None:
        """Choose the palette and write the head of the file.

        Args:
            file: Open for writing.
            samples: Frames (height, width, 3), bytes, that show the colours to come.
            fps: Frames per second; delays are rounded to 0.01 s so that their sum stays right.
        """
        self._file, self._fps = file, fps
        self._frames = self._written_cs = 0
        self._last: np.ndarray | None = None
        colours = palette(samples)
        self._nearest = _nearest_table(colours)
        height, width = samples[0].shape[:2]
        table = colours.tobytes().ljust(3 * 256, b"\0")
        file.write(b"GIF89a" + width.to_bytes(2, "little") + height.to_bytes(2, "little"))
        file.write(b"\xf7\x00\x00" + table)  # 256 colours for all frames
        file.write(b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00")  # play for ever

    def add(self, frame: np.ndarray) -> None:
        """Write a frame (height, width, 3), bytes."""
        level = frame // (256 // _LEVELS)
        index = (level[..., 0].astype(np.intp) * _LEVELS + level[..., 1]) * _LEVELS + level[..., 2]
        pixels = self._nearest[index]
        top = left = 0
        part = pixels
        if self._last is not None:
            changed = pixels != self._last
            rows, columns = np.flatnonzero(changed.any(axis=1)), np.flatnonzero(changed.any(axis=0))
            box = np.s_[0:1, 0:1]
            if rows.size:
                top, left = int(rows[0]), int(columns[0])
                box = np.s_[top : rows[-1] + 1, left : columns[-1] + 1]
            part = np.where(changed[box], pixels[box], _UNCHANGED).astype(np.uint8)
        self._last = pixels
        self._frames += 1
        end_cs = round(100.0 * self._frames / self._fps)
        blocks = GifImagePlugin.getdata(
            _paletted(part), (left, top), duration=10 * (end_cs - self._written_cs), disposal=1,
            transparency=_UNCHANGED,
        )  # fmt: skip
        self._written_cs = end_cs
        for block in blocks:
            self._file.write(block)

    def close(self) -> None:
        """Write the end of the animation."""
        self._file.write(b";")


def _paletted(part: np.ndarray) -> Image.Image:
    """Indices (height, width) as an image; its palette is the file's."""
    return Image.frombytes("P", part.shape[::-1], np.ascontiguousarray(part).tobytes())


def palette(samples: Sequence[np.ndarray]) -> np.ndarray:
    """Colours that stand for those of the samples (n, 3), bytes; n <= 255.

    Nearly all of a picture is white, so that median cut would leave few colours for thin lines:
    a colour counts by the root of how often it comes.
    """
    pixels = np.concatenate([sample.reshape(-1, 3) for sample in samples])
    near = (pixels // _MERGED).astype(np.int64) @ [1 << 16, 1 << 8, 1]
    _, first, counts = np.unique(near, return_index=True, return_counts=True)
    weighted = np.repeat(pixels[first], np.ceil(counts**_POWER).astype(int), axis=0)
    quantized = Image.fromarray(weighted[None]).quantize(
        _COLOURS, Image.Quantize.MEDIANCUT, kmeans=_REFINEMENTS
    )
    return np.array(quantized.getpalette(), np.uint8).reshape(-1, 3)[:_COLOURS]


def _nearest_table(colours: np.ndarray) -> np.ndarray:
    """Index of the nearest colour for each combination of levels (64^3,)."""
    middle = np.linspace(0.0, 255.0, _LEVELS)  # the ends stay black and white
    grid = np.stack(np.meshgrid(middle, middle, middle, indexing="ij"), axis=-1).reshape(-1, 3)
    return cKDTree(colours.astype(float)).query(grid)[1].astype(np.uint8)


PNG_SCALE, MP4_SCALE = 2.0, 1.5
MOST_FRAMES = 20_000
_PALETTE_SAMPLES = 12

Progress = Callable[[float], None]


@dataclass(frozen=True)
class FilmOptions:
    """How a film plays.

    Attributes:
        fps: Frames per second.
        speed: Shown seconds per second of film.
    """

    fps: float = 20.0
    speed: float = 1.0

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name, value, most in (("fps", self.fps, 120.0), ("speed", self.speed, 1000.0)):
            if not 0.0 < value <= most:
                raise ConfigError(f"{name} is {value:g}, must be above 0 and at most {most:g}")

    def times_s(self, window_s: tuple[float, float]) -> np.ndarray:
        """Shown time of each frame.

        Raises:
            ConfigError: More frames than a film should have.
        """
        start_s, end_s = window_s
        count = max(round((end_s - start_s) / self.speed * self.fps), 1)
        if count > MOST_FRAMES:
            raise ConfigError(
                f"a film of {count} frames, at most {MOST_FRAMES} are made: choose a --stage, a "
                "higher --speed or a lower --fps"
            )
        return start_s + np.arange(count) * self.speed / self.fps


def write_png(
    subjects: Sequence[Subject],
    window_s: tuple[float, float],
    time_s: float,
    path: Path,
    options: PictureOptions,
) -> None:
    """Write the picture of a moment.

    Raises:
        ConfigError: The moment is outside the window, or an option out of range.
        MuslsError: The file cannot be written.
    """
    if not window_s[0] - 1e-9 <= time_s <= window_s[1] + 1e-9:
        raise ConfigError(
            f"{subjects[0].recording.source}: --png {time_s:g}: must be a time from "
            f"{window_s[0]:.2f} to {window_s[1]:.2f} s"
        )
    picture = Picture(subjects, window_s, options, PNG_SCALE, framed_s=(time_s, time_s))
    image = Image.fromarray(picture.draw(time_s))
    with whole_file(path) as work:
        image.save(work, "PNG", dpi=(200, 200))


def write_gif(
    subjects: Sequence[Subject],
    window_s: tuple[float, float],
    path: Path,
    options: PictureOptions,
    film: FilmOptions,
    progress: Progress,
) -> None:
    """Write an animated GIF.

    Raises:
        ConfigError: An option is out of range.
        MuslsError: The file cannot be written.
    """
    if film.fps > MOST_FRAMES_PER_S:
        raise ConfigError(f"--fps is {film.fps:g}, a gif has at most {MOST_FRAMES_PER_S:g}")
    times_s = film.times_s(window_s)
    picture = Picture(subjects, window_s, options)
    step = max(len(times_s) // _PALETTE_SAMPLES, 1)
    samples = [picture.draw(time_s, film.speed) for time_s in times_s[step // 2 :: step]]
    with whole_file(path) as work, work.open("wb") as file:
        writer = GifWriter(file, samples or [picture.draw(times_s[0], film.speed)], film.fps)
        for k, time_s in enumerate(times_s):
            writer.add(picture.draw(time_s, film.speed))
            progress((k + 1) / len(times_s))
        writer.close()


def write_mp4(
    subjects: Sequence[Subject],
    window_s: tuple[float, float],
    path: Path,
    options: PictureOptions,
    film: FilmOptions,
    progress: Progress,
) -> None:
    """Write an H.264 film through ffmpeg.

    Raises:
        ConfigError: An option is out of range.
        MuslsError: No ffmpeg, or the file cannot be written.
    """
    program = ffmpeg_program()
    times_s, layout = film.times_s(window_s), options.layout
    picture = Picture(subjects, window_s, options, MP4_SCALE)
    size = f"{round(layout.width_px * MP4_SCALE)}x{round(layout.height_px * MP4_SCALE)}"
    with whole_file(path) as work:
        command = [
            program, "-loglevel", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgba", "-s", size,
            "-r", f"{film.fps:g}", "-i", "-", "-c:v", "libx264", "-preset", "veryfast", "-crf",
            "20", "-pix_fmt", "yuv420p", "-movflags", "+faststart", "-f", "mp4",
            str(work.resolve()),
        ]  # fmt: skip
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            to_ffmpeg = process.stdin
            assert to_ffmpeg is not None  # a pipe, as asked for
            try:
                for k, time_s in enumerate(times_s):
                    to_ffmpeg.write(picture.paint(time_s, film.speed))
                    progress((k + 1) / len(times_s))
            except BrokenPipeError:
                pass  # ffmpeg has ended, and says why
            said = process.communicate()[1].decode(errors="replace").strip()
        if process.returncode:
            reason = said.splitlines()[-1] if said else f"exit code {process.returncode}"
            raise MuslsError(f"{path}: ffmpeg failed: {reason}")


def ffmpeg_program() -> str:
    """Path of ffmpeg: of the package imageio-ffmpeg, else on the PATH.

    Raises:
        MuslsError: Neither is there.
    """
    if find_spec("imageio_ffmpeg"):
        import imageio_ffmpeg

        return imageio_ffmpeg.get_ffmpeg_exe()
    program = shutil.which("ffmpeg")
    if program is None:
        raise MuslsError("--mp4 needs ffmpeg: pip install 'musls[view]'; --gif does not need it")
    return program


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary path that becomes `path` when the block ends without an error.

    Raises:
        MuslsError: It cannot be written.
    """
    work = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        yield work
        work.replace(path)
    except OSError as error:
        raise MuslsError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            work.unlink(missing_ok=True)
