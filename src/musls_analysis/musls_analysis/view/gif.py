"""Writes an animated GIF frame by frame, with one palette and only what changed.

Pillow's own writer keeps all frames in memory and chooses a palette for each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

import numpy as np
from PIL import GifImagePlugin, Image
from scipy.spatial import cKDTree

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
