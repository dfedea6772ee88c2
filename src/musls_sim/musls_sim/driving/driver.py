"""Drives anchors and winches: a step of the session that writes into the plant's inputs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from musls_description.system import RigSystem
from musls_sim.driving.motion import PathMotion, Signal, path_motion
from musls_sim.driving.spec import AnchorForce, AnchorThrust, RigSpec
from musls_sim.plants.interface import PlantInputs, PlantState

Array = NDArray[np.float64]


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
        self._inputs, self._state, self._period_s = inputs, state, period_s
        self._parts: list[Callable[[float, float], None]] = []
        for i, anchor in enumerate(system.anchors):
            drive = rig.anchors.get(f"anchor_{i + 1}")
            if isinstance(drive, AnchorForce):
                self._parts.append(self._force(i, Signal(drive.time_s, drive.force_enu_n)))
            elif isinstance(drive, AnchorThrust):
                self._parts.append(self._thrust(i, drive))
            elif drive is not None:
                self._parts.append(self._path(i, path_motion(drive, anchor.position_enu_m)))
        for i in range(len(system.winches)):
            winch = rig.winches.get(f"winch_{i + 1}")
            if winch is not None:
                self._parts.append(self._winch(i, Signal(winch.time_s, winch.value)))
                if winch.brake is not None:
                    closed = Signal(winch.time_s, winch.brake)
                    self._parts.append(self._brake(i, closed))

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return not self._parts

    def step(self, tick: int) -> None:
        """Write the inputs of the period that begins."""
        begin_s, end_s = tick * self._period_s, (tick + 1) * self._period_s
        for part in self._parts:
            part(begin_s, end_s)

    def _path(self, i: int, motion: PathMotion) -> Callable[[float, float], None]:
        row = self._inputs.anchor_motion[i]
        return lambda begin_s, end_s: motion.ends(begin_s, end_s, row)

    def _force(self, i: int, signal: Signal) -> Callable[[float, float], None]:
        row = self._inputs.anchor_wrench_enu[i]

        def push(begin_s: float, end_s: float) -> None:
            row[3:] = signal.mean(begin_s, end_s)

        return push

    def _thrust(self, i: int, drive: AnchorThrust) -> Callable[[float, float], None]:
        moments = drive.moment_body_n_m or ((0.0, 0.0, 0.0),) * len(drive.time_s)
        signal = Signal(drive.time_s, np.column_stack([drive.thrust_n, moments]))
        row, motion = self._inputs.anchor_wrench_enu[i], self._state.anchor_motion[i]

        def carry(begin_s: float, end_s: float) -> None:
            thrust, *moment = signal.mean(begin_s, end_s)
            rotation = Rotation.from_quat(motion[6:10], scalar_first=True).as_matrix()
            row[:3], row[3:] = rotation @ moment, thrust * rotation[:, 2]

        return carry

    def _winch(self, i: int, signal: Signal) -> Callable[[float, float], None]:
        values = self._inputs.winch

        def turn(begin_s: float, end_s: float) -> None:
            values[i] = signal.mean(begin_s, end_s)

        return turn

    def _brake(self, i: int, closed: Signal) -> Callable[[float, float], None]:
        values = self._inputs.winch_brake

        def hold(begin_s: float, end_s: float) -> None:
            values[i] = closed.at(begin_s) >= 1.0

        return hold
