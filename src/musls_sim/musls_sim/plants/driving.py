"""Drives anchors and winches: a step of the session that writes into the plant's inputs."""

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
from musls_description.numerics.rotations import rotate
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

_Rows = Callable[[Array], Array]
"""Rows of an input over consecutive periods, from their borders."""


class RigDriver:
    """Writes the scenario's `rig` inputs of the coming period."""

    def __init__(
        self,
        rig: RigSpec,
        system: RigSystem,
        inputs: PlantInputs,
        state: PlantState,
        period_s: float,
    ) -> None:
        """`state`: of the plant; a thrust acts along an anchor's z axis."""
        self._inputs, self._period_s = inputs, period_s
        self._orientation = state.anchor_motion[:, 6:10]
        self._targets: list[tuple[NDArray[Any], _Rows, int | None]] = []  # and the winch
        self._thrusts: dict[int, Array] = {}
        self._block: list[Array] = []
        for i, anchor in enumerate(system.anchors):
            drive = rig.anchors.get(f"anchor_{i + 1}")
            if isinstance(drive, AnchorForce):
                force = straight(drive.time_s, drive.force_enu_n)
                self._targets.append((inputs.anchor_wrench_enu[i, 3:], force.means, None))
            elif isinstance(drive, AnchorThrust):
                moments = drive.moment_body_n_m or ((0.0, 0.0, 0.0),) * len(drive.time_s)
                wrench = straight(
                    drive.time_s, np.column_stack([moments, np.array(drive.thrust_n)])
                )
                self._thrusts[i] = np.zeros(4)
                self._targets.append((self._thrusts[i], wrench.means, None))
            elif drive is not None and not isinstance(drive, AnchorFree):
                motion = path_motion(drive, anchor.position_enu_m)
                self._targets.append((inputs.anchor_motion[i, :, :9], motion.ends, None))
        for i in range(len(system.winches)):
            winch = rig.winches.get(f"winch_{i + 1}")
            if winch is None:
                continue
            asked = straight(winch.time_s, winch.value)
            self._targets.append((inputs.winch[i, :, None], asked.ends, i))
            if winch.brake is not None:
                closed = straight(winch.time_s, winch.brake, steps=True)
                brake = inputs.winch_brake[i : i + 1]
                self._targets.append((brake, partial(_begins, closed), i))

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return not self._targets and not len(self._inputs.winch)

    def step(self, tick: int) -> None:
        """Write the inputs of the period that begins; ticks follow each other."""
        row = tick % BLOCK
        if row == 0 or not self._block:
            borders = (np.arange(BLOCK + 1.0) + (tick - row)) * self._period_s
            self._block = [rows(borders) for _, rows, _ in self._targets]
        taken = self._inputs.winch_taken
        for (target, _, winch), rows in zip(self._targets, self._block, strict=True):
            if winch is None or not taken[winch]:
                target[:] = rows[row]
        for i in np.flatnonzero(taken).tolist():
            self._ramp(i)
        for i, values in self._thrusts.items():
            pair = np.array([values[:3], [0.0, 0.0, values[3]]])
            turns: Array = np.repeat(self._orientation[i : i + 1], 2, axis=0)
            self._inputs.anchor_wrench_enu[i] = rotate(turns, pair).ravel()

    def _ramp(self, winch: int) -> None:
        """Continue a winch's ramp to the value that an event set."""
        (_, now), (wanted, change) = self._inputs.winch[winch], self._inputs.winch_ramp[winch]
        then = now + change
        if change == 0.0 or (wanted - then) * change <= 0.0:
            then = wanted if change else now
            self._inputs.winch_ramp[winch, 1] = 0.0
        self._inputs.winch[winch] = now, then


def _begins(signal: Polynomials, borders: Array) -> Array:
    """Values at the begin of each period."""
    return signal.ends(borders)[:, 0]
