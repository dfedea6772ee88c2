"""Drives anchors and winches: rows of the plant's inputs over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from musls_control.trajectories.recorded import read_bag_poses, read_table
from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import compiled
from musls_description.numerics.records import copy_numbers
from musls_description.numerics.vectors import put, rotate_by
from musls_description.system.slung_system import RigSystem
from musls_sim.plants.interface import PlantInputs, PlantState
from musls_sim.specs.rig import (
    AnchorForce,
    AnchorFree,
    AnchorPath,
    AnchorRecording,
    AnchorThrust,
    RigSpec,
)

# ---------- The recorded way of a body, for an anchor that moves so

COLUMNS = ("time_s", "x_enu_m", "y_enu_m", "z_enu_m")
"""Of a recorded motion."""


def bag_of(file: str) -> Path | None:
    """The bag's folder that a file name stands for: itself, or the one in a result of `fly`."""
    path = Path(file)
    return next((p for p in (path, path / "bag") if (p / "metadata.yaml").is_file()), None)


def recorded_path(drive: AnchorRecording) -> tuple[Array, Array]:
    """Times (k,) [s], of a bag from its first pose on, and positions (k, 3) [m, ENU]."""
    bag = bag_of(drive.file)
    if bag is None:
        table = read_table(drive.file, COLUMNS)
        return table[:, 0], table[:, 1:]
    stamps_ns, poses = read_bag_poses(str(bag), f"/{drive.body}/pose")
    return 1e-9 * (stamps_ns - stamps_ns[:1]).astype(np.float64), poses[:, :3]


# ---------- Paths and inputs over time, evaluated for many control periods at once

ROUNDING_S = 1e-9


class Polynomials:
    """Numbers over time by polynomials between knots, held before the first and after the last."""

    def __init__(
        self, knots_s: Array, coefficients: Array, first: Array, last: Array, derivatives: int = 0
    ) -> None:
        """`knots_s`: increasing, (k + 1,); `first`, `last`: held outside of them, (columns,).

        `coefficients`: as those of SciPy's PPoly, (degree + 1, k, columns); `derivatives`: how many
        of them follow the values in the columns of `ends`.
        """
        around = np.zeros((len(coefficients), len(knots_s) + 1, len(first)))
        around[:, 1:-1] = coefficients
        around[-1, 0], around[-1, -1] = first, last
        self._knots = np.concatenate([knots_s[:1] - 1.0, knots_s, knots_s[-1:] + 1.0])
        pieces = scipy.interpolate.PPoly(around, self._knots)
        self._area = pieces.antiderivative()
        self._pieces = [pieces.derivative(order).c for order in range(derivatives + 1)]

    def means(self, time_s: Array) -> Array:
        """Exact means over consecutive periods with k + 1 borders, (k, columns)."""
        means: Array = np.diff(self._area(time_s), axis=0) / np.diff(time_s)[:, None]
        return means

    def ends(self, time_s: Array) -> Array:
        """Values at both ends of periods with k + 1 borders, (k, 2, columns).

        At a jump each end takes the side within its period.
        """
        return np.stack([self._at(time_s[:-1], 1.0), self._at(time_s[1:], -1.0)], axis=1)

    def _at(self, time_s: Array, side: float) -> Array:
        piece = np.searchsorted(self._knots, time_s + side * ROUNDING_S, side="right") - 1
        piece = np.clip(piece, 0, len(self._knots) - 2)
        since = (time_s - self._knots[piece])[:, None]
        found = []
        for coefficients in self._pieces:
            value = np.zeros((len(time_s), coefficients.shape[2]))
            for coefficient in coefficients:  # Horner, in the piece of the side
                value = value * since + coefficient[piece]
            found.append(value)
        return np.concatenate(found, axis=1)


def straight(time_s: Sequence[float], values: ArrayLike, *, steps: bool = False) -> Polynomials:
    """Polynomials that are straight between knots, or, in steps, hold the last knot's value.

    `time_s`: ascending, (k,); one that stands twice is a jump.
    `values`: (k,) or (k, columns).
    """
    time = np.array(time_s, float)
    value = np.array(values, float).reshape(len(time), -1)
    lasting = np.diff(time) > 0.0
    slopes = np.diff(value, axis=0)[lasting] / np.diff(time)[lasting, None]
    knots = np.append(time[:-1][lasting], time[-1])
    return Polynomials(
        knots, np.stack([0.0 * slopes if steps else slopes, value[:-1][lasting]]),
        value[0], value[-1],
    )  # fmt: skip


def path_motion(drive: AnchorPath | AnchorRecording, place_m: Sequence[float]) -> Polynomials:
    """Position, velocity and acceleration of an anchor, 9 columns.

    `place_m`: where it is at the start, (3,).
    """
    pieces: scipy.interpolate.PPoly
    if isinstance(drive, AnchorRecording):
        time, position = recorded_path(drive)
        if len(time) < 4:
            raise ConfigError(f"{drive.file}: needs at least 4 rows, has {len(time)}")
        pieces = scipy.interpolate.CubicSpline(time, position)
    else:
        time, position = np.array(drive.time_s), np.array(drive.position_enu_m)
        velocity = np.zeros_like(position)
        if drive.velocity_enu_m_s is not None:
            velocity = np.array(drive.velocity_enu_m_s)
        if len(time) == 1:
            pieces = scipy.interpolate.PPoly(
                np.zeros((1, 1, 3)) + position, [time[0], time[0] + 1.0]
            )
        elif drive.acceleration_enu_m_s2 is None:
            pieces = scipy.interpolate.CubicHermiteSpline(time, position, velocity)
        else:
            knots = np.stack([position, velocity, np.array(drive.acceleration_enu_m_s2)], axis=1)
            pieces = scipy.interpolate.PPoly.from_bernstein_basis(
                scipy.interpolate.BPoly.from_derivatives(time, knots)
            )
    offset = np.array(place_m, float) if drive.relative else np.zeros(3)
    pieces.c[-1] += offset
    return Polynomials(pieces.x, pieces.c, position[0] + offset, position[-1] + offset, 2)


BLOCK = 1000
"""Periods that are evaluated at once."""

MOTION, FORCE, THRUST, WINCH, BRAKE = range(5)
"""Kinds of inputs: see `write_inputs`."""

TARGET = np.dtype([("kind", np.int64), ("index", np.int64), ("first", np.int64)])
"""Input of an anchor or winch (from 0), and the first of its numbers in a row."""

_Rows = Callable[[Array], Array]
"""Rows of an input over consecutive periods, from their borders."""


class RigDriver:
    """The scenario's `rig` inputs, a row a period.

    Attributes:
        targets: What the numbers of a row are, `TARGET`.
        width: Numbers in a row.
    """

    def __init__(self, rig: RigSpec, system: RigSystem, period_s: float) -> None:
        self.width, self._period_s, self._block = 0, period_s, np.zeros((0, 0))
        self._tick = 0
        self._rows: list[_Rows] = []
        targets: list[tuple[int, int, int]] = []

        def add(kind: int, index: int, rows: _Rows) -> None:
            targets.append((kind, index, self.width))
            self._rows.append(rows)
            self.width += rows(np.array([0.0, period_s])).size

        for i, anchor in enumerate(system.anchors):
            drive = rig.anchors.get(f"anchor_{i + 1}")
            if isinstance(drive, AnchorForce):
                add(FORCE, i, straight(drive.time_s, drive.force_enu_n).means)
            elif isinstance(drive, AnchorThrust):
                moments = drive.moment_body_n_m or ((0.0, 0.0, 0.0),) * len(drive.time_s)
                wrench = np.column_stack([moments, np.array(drive.thrust_n)])
                add(THRUST, i, straight(drive.time_s, wrench).means)
            elif drive is not None and not isinstance(drive, AnchorFree):
                add(MOTION, i, path_motion(drive, anchor.position_enu_m).ends)
        for i in range(len(system.winches)):
            winch = rig.winches.get(f"winch_{i + 1}")
            if winch is None:
                continue
            add(WINCH, i, straight(winch.time_s, winch.value).ends)
            if winch.brake is not None:
                closed = straight(winch.time_s, winch.brake, steps=True)
                add(BRAKE, i, partial(_begins, closed))
        self.targets = np.array(targets, TARGET)

    def fill(self, ahead: Array) -> None:
        """Write the rows of the next periods, (periods, width), from the first one on."""
        ahead[:] = self._ahead(len(ahead))
        self._tick += len(ahead)

    def _ahead(self, periods: int) -> Array:
        """Rows of the next periods, of which a block has a whole number."""
        row = self._tick % BLOCK
        if row == 0:
            borders = (np.arange(BLOCK + 1.0) + self._tick) * self._period_s
            rows = [evaluate(borders).reshape(BLOCK, -1) for evaluate in self._rows]
            self._block = np.concatenate([np.zeros((BLOCK, 0)), *rows], axis=1)
        return self._block[row : row + periods]

    def start(self, inputs: PlantInputs, state: PlantState) -> None:
        """Write the inputs of the first period."""
        write_inputs(
            self.targets, self._ahead(1)[0], state.anchor_motion, inputs.anchor_motion,
            inputs.anchor_wrench_enu, inputs.winch, inputs.winch_brake, inputs.winch_taken,
            inputs.winch_ramp,
        )  # fmt: skip


def _begins(signal: Polynomials, borders: Array) -> Array:
    """Values at the begin of each period."""
    return signal.ends(borders)[:, 0]


@compiled(shared=True)
def write_inputs(
    targets: Any,
    row: Array,
    anchors: Array,
    motion: Array,
    wrench: Array,
    winch: Array,
    brake: NDArray[np.int64],
    taken: NDArray[np.int64],
    ramp: Array,
) -> None:
    """Write a row of inputs into those of the plant; winches that events command go their way.

    `anchors`: their state, (n_anchors, 16): a thrust acts along the z axis of one. The others are
    fields of `PlantInputs`.
    """
    for target in targets:
        i, values = target.index, row[target.first :]
        if target.kind == MOTION:
            for end in range(2):
                copy_numbers(motion[i, end], values[9 * end : 9 * end + 9])
        elif target.kind == FORCE:
            put(wrench[i, 3:], values)
        elif target.kind == THRUST:
            q = anchors[i, 6:10]
            put(wrench[i, :3], rotate_by(q, values))
            put(wrench[i, 3:], rotate_by(q, (0.0, 0.0, values[3])))
        elif taken[i] == 0 and target.kind == WINCH:
            winch[i, 0], winch[i, 1] = values[0], values[1]
        elif taken[i] == 0:
            brake[i] = 1 if values[0] != 0.0 else 0
    for i in range(len(taken)):
        if taken[i] != 0:
            continue_ramp(winch[i], ramp[i])


@compiled()
def continue_ramp(drive: Array, ramp: Array) -> None:
    """Continue a winch's ramp to the value that an event set."""
    now, wanted, change = drive[1], ramp[0], ramp[1]
    then = now + change
    if change == 0.0 or (wanted - then) * change <= 0.0:
        then = wanted if change != 0.0 else now
        ramp[1] = 0.0
    drive[0], drive[1] = now, then
