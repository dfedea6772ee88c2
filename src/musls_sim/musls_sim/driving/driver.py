"""Drives anchors and winches: a step of the session that writes into the plant's inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_description.rotations import rotate
from musls_description.system import RigSystem
from musls_sim.driving.motion import PathMotion, Signal, path_motion
from musls_sim.driving.spec import AnchorForce, AnchorThrust, RigSpec
from musls_sim.plants.interface import PlantInputs, PlantState

Array = NDArray[np.float64]

BLOCK = 1000
"""Periods that are evaluated at once."""

_Rows = Callable[[Array], Array]
"""Rows of an input over consecutive periods, from their borders."""


class RigDriver:
    """Writes what a scenario's `rig` asks for the coming period."""

    def __init__(
        self,
        rig: RigSpec,
        system: RigSystem,
        inputs: PlantInputs,
        state: PlantState,
        period_s: float,
    ) -> None:
        """Prepare all paths and inputs.

        Args:
            rig: What is asked.
            system: Its anchors and winches.
            inputs: Of the plant; written to.
            state: Of the plant; a thrust acts along an anchor's z axis.
            period_s: Control period.

        Raises:
            ConfigError: A recorded motion cannot be read.
        """
        self._inputs, self._period_s = inputs, period_s
        self._orientation = state.anchor_motion[:, 6:10]
        self._targets: list[tuple[NDArray[Any], _Rows]] = []
        self._winch_of: dict[int, int] = {}
        self._thrusts: dict[int, Array] = {}
        moved: dict[int, PathMotion] = {}
        for i, anchor in enumerate(system.anchors):
            drive = rig.anchors.get(f"anchor_{i + 1}")
            wrench = inputs.anchor_wrench_enu[i]
            if isinstance(drive, AnchorForce):
                force = Signal(drive.time_s, drive.force_enu_n)
                self._targets.append((wrench[3:], force.means))
            elif isinstance(drive, AnchorThrust):
                moments = drive.moment_body_n_m or ((0.0, 0.0, 0.0),) * len(drive.time_s)
                values = np.column_stack([moments, np.array(drive.thrust_n)])
                self._thrusts[i] = np.zeros(4)
                self._targets.append((self._thrusts[i], Signal(drive.time_s, values).means))
            elif drive is not None:
                moved[i] = path_motion(drive, anchor.position_enu_m)
        for first, motions in _neighbours(moved):
            target = inputs.anchor_motion[first : first + len(motions), :, :9]
            self._targets.append((target, _ends(motions)))
        for i in range(len(system.winches)):
            winch = rig.winches.get(f"winch_{i + 1}")
            if winch is not None:
                signal = Signal(winch.time_s, winch.value)
                self._winch_of[len(self._targets)] = i
                self._targets.append((inputs.winch[i], _pairs(signal)))
            if winch is not None and winch.brake is not None:
                closed = Signal(winch.time_s, winch.brake)
                self._winch_of[len(self._targets)] = i
                self._targets.append((inputs.winch_brake[i : i + 1], _begins(closed)))
        self._block: list[Array] = []

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return not self._targets

    def step(self, tick: int) -> None:
        """Write the inputs of the period that begins; ticks follow each other."""
        row = tick % BLOCK
        if row == 0 or not self._block:
            ticks = np.arange(tick - row, tick - row + BLOCK + 1, dtype=np.float64)
            self._block = [rows(ticks * self._period_s) for _, rows in self._targets]
        taken = self._inputs.winch_taken
        for k, ((target, _), rows) in enumerate(zip(self._targets, self._block, strict=True)):
            if k not in self._winch_of or not taken[self._winch_of[k]]:
                target[:] = rows[row]
        for i, values in self._thrusts.items():
            pair: Array = np.zeros((2, 3))
            pair[0], pair[1, 2] = values[:3], values[3]
            turns: Array = np.repeat(self._orientation[i : i + 1], 2, axis=0)
            self._inputs.anchor_wrench_enu[i] = rotate(turns, pair).ravel()


def _neighbours(moved: Mapping[int, PathMotion]) -> list[tuple[int, list[PathMotion]]]:
    """Motions of anchors with consecutive numbers, which are written at once."""
    groups: list[tuple[int, list[PathMotion]]] = []
    for i, motion in moved.items():
        if groups and i == groups[-1][0] + len(groups[-1][1]):
            groups[-1][1].append(motion)
        else:
            groups.append((i, [motion]))
    return groups


def _ends(motions: Sequence[PathMotion]) -> _Rows:
    """Motion of several anchors at begin and end of each period, (k, anchors, 2, 9)."""
    return lambda borders: np.stack([motion.ends(borders) for motion in motions], axis=1)


def _pairs(signal: Signal) -> _Rows:
    """Values at begin and end of each period."""
    return lambda borders: signal.ends(borders)[:, :, 0]


def _begins(signal: Signal) -> _Rows:
    """Values at the begin of each period."""
    return lambda borders: signal.held(borders[:-1])
