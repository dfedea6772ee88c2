"""Drives anchors and winches: rows of the plant's inputs over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from musls_control.trajectories.recorded import read_bag_poses
from musls_description.config.errors import ConfigError
from musls_description.config.text_tables import read_table
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import put, rotate_by
from musls_description.system.obstacles import SurfaceMotion
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
"""Columns of a recorded motion."""


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


# ---------- Paths and inputs over time

ROUNDING_S = 1e-9


class Polynomials:
    """Numbers over time by polynomials between knots, held before the first and after the last.

    Attributes:
        knots_s: Begin of each piece, and the end of the last, (pieces + 1,).
        coefficients: Coefficients, the highest power first, (degree + 1, pieces, columns).
        area: Coefficients of their integral over time, in the same order.
    """

    def __init__(
        self, knots_s: Array, coefficients: Array, first: Array, last: Array, derivatives: int = 0
    ) -> None:
        """`knots_s`: increasing, (k + 1,); `first`, `last`: held outside of them, (columns,).

        `coefficients`: as those of SciPy's PPoly, (degree + 1, k, columns); `derivatives`: how many
        of them follow the values in the columns of `ends`.
        """
        around = np.zeros((len(coefficients), len(knots_s) + 1, len(first)))
        around[:, 1:-1] = coefficients
        around[-1, 0] = first
        around[-1, -1] = last
        self.knots_s = np.concatenate([knots_s[:1] - 1.0, knots_s, knots_s[-1:] + 1.0])
        pieces = scipy.interpolate.PPoly(around, self.knots_s)
        self.area = pieces.antiderivative().c
        columns = [pieces.derivative(order).c for order in range(derivatives + 1)]
        columns = [np.pad(c, [(len(around) - len(c), 0), (0, 0), (0, 0)]) for c in columns]
        self.coefficients = np.concatenate(columns, axis=2)

    def means(self, time_s: Array) -> Array:
        """Exact means over consecutive periods with k + 1 borders, (k, columns)."""
        areas = values_at(self.knots_s, self.area, time_s, 0.0)
        means: Array = np.diff(areas, axis=0) / np.diff(time_s)[:, None]
        return means

    def ends(self, time_s: Array) -> Array:
        """Values at both ends of periods with k + 1 borders, (k, 2, columns).

        At a jump each end takes the side within its period.
        """
        sides = (time_s[:-1], ROUNDING_S), (time_s[1:], -ROUNDING_S)
        ends = [values_at(self.knots_s, self.coefficients, at, side) for at, side in sides]
        return np.stack(ends, axis=1)


@compiled()
def value_at(knots: Array, coefficients: Array, column: int, time: float, side: float) -> float:
    """Value of a column at a time, by the piece that there is a little later (`side`)."""
    piece = np.searchsorted(knots, time + side, side="right") - 1
    piece = min(max(piece, 0), len(knots) - 2)
    value = 0.0
    for order in range(len(coefficients)):  # Horner
        value = value * (time - knots[piece]) + coefficients[order, piece, column]
    return value


@compiled()
def mean_of(knots: Array, area: Array, column: int, begin: float, end: float) -> float:
    """Mean of a column between two times, from its integral."""
    before = value_at(knots, area, column, begin, 0.0)
    return (value_at(knots, area, column, end, 0.0) - before) / (end - begin)


@compiled()
def values_at(knots: Array, coefficients: Array, times: Array, side: float) -> Array:
    """Values of all columns at times, (times, columns)."""
    values = np.empty((len(times), coefficients.shape[2]))
    for k in range(len(times)):
        for column in range(coefficients.shape[2]):
            values[k, column] = value_at(knots, coefficients, column, times[k], side)
    return values


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
        knots,
        np.stack([0.0 * slopes if steps else slopes, value[:-1][lasting]]),
        value[0],
        value[-1],
    )


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
        time = np.array(drive.time_s)
        position = np.array(drive.position_enu_m)
        velocity = np.zeros_like(position)
        if drive.velocity_enu_m_s is not None:
            velocity = np.array(drive.velocity_enu_m_s)
        if len(time) == 1:
            pieces = scipy.interpolate.PPoly(
                np.zeros((1, 1, 3)) + position, [time[0], time[0] + 1.0]
            )
        elif drive.linear:
            slopes = np.diff(position, axis=0) / np.diff(time)[:, None]
            pieces = scipy.interpolate.PPoly(np.stack([slopes, position[:-1]]), time)
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


MOTION, FORCE, THRUST, WINCH, BRAKE, SURFACE = range(6)
"""Kinds of inputs: see `write_inputs`."""

TARGET = np.dtype(
    [
        ("kind", np.int64),
        ("index", np.int64),  # of its anchor or winch, from 0
        ("first", np.int64),  # of its numbers: knots, then coefficients
        ("orders", np.int64),
        ("pieces", np.int64),
        ("columns", np.int64),
    ],
    align=True,
)
"""An input of an anchor or winch."""


def surface_motion(motion: SurfaceMotion) -> Polynomials:
    """Pose of a surface, six numbers, and its rates, 12 columns."""
    spline = motion.spline
    ends = spline(spline.x[[0, -1]])
    return Polynomials(spline.x, spline.c.copy(), ends[0], ends[1], 1)


class RigDriver:
    """The scenario's `rig` inputs over time, and the motion of surfaces of its `world`.

    Attributes:
        targets: Anchors and winches that are driven, `TARGET`.
        numbers: Knots and coefficients of all, one after another.
    """

    def __init__(
        self,
        rig: RigSpec,
        system: RigSystem,
        period_s: float,
        surfaces: Sequence[SurfaceMotion] = (),
    ) -> None:
        self._period_s = period_s
        targets = list[tuple[int, ...]]()
        numbers = [np.zeros(0)]
        count = 0

        def add(kind: int, index: int, polynomials: Polynomials) -> None:
            nonlocal count
            coefficients = polynomials.area if kind in (FORCE, THRUST) else polynomials.coefficients
            targets.append((kind, index, count, *coefficients.shape))
            numbers.extend([polynomials.knots_s, coefficients.ravel()])
            count += polynomials.knots_s.size + coefficients.size

        for i, anchor in enumerate(system.anchors):
            drive = rig.anchors.get(f"anchor_{i + 1}")
            if isinstance(drive, AnchorForce):
                add(FORCE, i, straight(drive.time_s, drive.force_enu_n))
            elif isinstance(drive, AnchorThrust):
                moments = drive.moment_body_n_m or ((0.0, 0.0, 0.0),) * len(drive.time_s)
                wrench = np.column_stack([moments, np.array(drive.thrust_n)])
                add(THRUST, i, straight(drive.time_s, wrench))
            elif drive is not None and not isinstance(drive, AnchorFree):
                add(MOTION, i, path_motion(drive, anchor.position_enu_m))
        for i in range(len(system.winches)):
            winch = rig.winches.get(f"winch_{i + 1}")
            if winch is None:
                continue
            add(WINCH, i, straight(winch.time_s, winch.value))
            if winch.brake is not None:
                add(BRAKE, i, straight(winch.time_s, winch.brake, steps=True))
        for i, surface in enumerate(surfaces):
            add(SURFACE, i, surface_motion(surface))
        self.targets = np.array(targets, TARGET)
        self.numbers = np.concatenate(numbers)

    def start(self, inputs: PlantInputs, state: PlantState) -> None:
        """Write the inputs of the first period."""
        write_inputs(
            self.targets,
            self.numbers,
            0.0,
            self._period_s,
            state.anchor_motion,
            inputs.anchor_motion,
            inputs.anchor_wrench_enu,
            inputs.winch,
            inputs.winch_brake,
            inputs.winch_taken,
            inputs.winch_ramp,
            inputs.surface_motion,
        )


@compiled(shared=True)
def write_inputs(
    targets: Any,
    numbers: Array,
    begin: float,
    end: float,
    anchors: Array,
    motion: Array,
    wrench: Array,
    winch: Array,
    brake: NDArray[np.int64],
    taken: NDArray[np.int64],
    ramp: Array,
    surfaces: Array,
) -> None:
    """Write the inputs of a period into those of the plant.

    Winches that events command go their way. `anchors`: their state, (n_anchors, 16): a thrust acts
    along the z axis of one. The arrays after it are fields of `PlantInputs`.
    """
    for target in targets:
        i = target.index
        columns = target.columns
        first = target.first + target.pieces + 1
        knots = numbers[target.first : first]
        count = target.orders * target.pieces * columns
        p = numbers[first : first + count].reshape((target.orders, target.pieces, columns))
        if target.kind == MOTION or target.kind == SURFACE:
            ends = motion[i] if target.kind == MOTION else surfaces[i]
            for column in range(columns):
                ends[0, column] = value_at(knots, p, column, begin, ROUNDING_S)
                ends[1, column] = value_at(knots, p, column, end, -ROUNDING_S)
        elif target.kind == FORCE:
            for column in range(columns):
                wrench[i, 3 + column] = mean_of(knots, p, column, begin, end)
        elif target.kind == THRUST:
            q = anchors[i, 6:10]
            moment = (
                mean_of(knots, p, 0, begin, end),
                mean_of(knots, p, 1, begin, end),
                mean_of(knots, p, 2, begin, end),
            )
            put(wrench[i, :3], rotate_by(q, moment))
            put(wrench[i, 3:], rotate_by(q, (0.0, 0.0, mean_of(knots, p, 3, begin, end))))
        elif taken[i] == 0 and target.kind == WINCH:
            winch[i, 0] = value_at(knots, p, 0, begin, ROUNDING_S)
            winch[i, 1] = value_at(knots, p, 0, end, -ROUNDING_S)
        elif taken[i] == 0:
            brake[i] = value_at(knots, p, 0, begin, ROUNDING_S) != 0.0
    for i in range(len(taken)):
        if taken[i] != 0:
            continue_ramp(winch[i], ramp[i])


@compiled()
def continue_ramp(drive: Array, ramp: Array) -> None:
    """Continue a winch's ramp to the value that an event set."""
    now = drive[1]
    target = ramp[0]
    change = ramp[1]
    then = now + change
    if change == 0.0 or (target - then) * change <= 0.0:
        then = target if change != 0.0 else now
        ramp[1] = 0.0
    drive[0] = now
    drive[1] = then
