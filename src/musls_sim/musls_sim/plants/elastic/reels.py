"""Winches and wheels of a system in the elastic core."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from musls_description.rigging import Wheel, Winch
from musls_description.system import RigSystem
from musls_sim.driving.motion import Signal
from musls_sim.driving.spec import RigSpec
from musls_sim.plants.elastic import columns as c
from musls_sim.plants.elastic.engine import Engine
from musls_sim.plants.elastic.settle import ANY_TORQUE_N_M
from musls_sim.plants.elastic.winches import RigWheel, RigWinch
from musls_sim.plants.interface import PlantEvent, PlantInputs

Array = NDArray[np.float64]

SPARE_SHARE = 1.01
"""Length on a feed that says nothing of it, over what the scenario pays out."""


def core_end(end: int, cable: int, flipped: Collection[int]) -> int:
    """End of the core's cable (0: A, 1: B) of end 1 or 2 of cable `cable` (from 0)."""
    return end - 1 if cable in flipped else 2 - end


def rig_winches(system: RigSystem, drives: RigSpec, flipped: Collection[int]) -> list[RigWinch]:
    """The winches of a system."""
    made = []
    for i, winch in enumerate(system.winches, start=1):
        drive = drives.winches.get(f"winch_{i}")
        made.append(
            RigWinch(
                winch.cable - 1,
                core_end(winch.end, winch.cable - 1, flipped),
                winch.kind,
                stored_length_m=_stored(winch, drives, i),
                radius_m=winch.radius_m or 1.0,
                inertia_kg_m2=winch.inertia_kg_m2 or 0.0,
                axis=winch.axis,
                by_rate=drive is not None and drive.speed_rad_s is not None,
                friction_nm=winch.friction_n_m,
                viscous_nm_s=winch.damping_n_m_s_rad,
                layer_m=winch.layer_m,
                layer_turns=winch.layer_turns,
                keeps_stretch=winch.keeps_stretch,
            )
        )
    return made


def rig_wheels(system: RigSystem, flipped: Collection[int]) -> list[RigWheel]:
    """The wheels of a system."""
    return [_wheel(wheel, flipped) for wheel in system.wheels]


def _wheel(wheel: Wheel, flipped: Collection[int]) -> RigWheel:
    first, second = (
        (side.cable - 1, core_end(side.end, side.cable - 1, flipped)) for side in wheel.cables
    )
    return RigWheel(
        (first, second),
        radius_m=wheel.radius_m,
        inertia_kg_m2=wheel.inertia_kg_m2,
        axis=wheel.axis,
        friction_nm=wheel.friction_n_m,
        viscous_nm_s=wheel.damping_n_m_s_rad,
        capstan_friction=wheel.capstan_friction,
        efficiency=wheel.efficiency,
        extra_wrap_rad=wheel.extra_wrap_rad,
    )


def _stored(winch: Winch, drives: RigSpec, number: int) -> float:
    """Length on a winch; of a feed that does not say, as much as is asked for."""
    drive = drives.winches.get(f"winch_{number}")
    if winch.stored_length_m is not None:
        return winch.stored_length_m
    if drive is None or drive.feed_m_s is None:
        return 0.0
    times = np.array(drive.time_s)
    rates = Signal(drive.time_s, drive.feed_m_s)
    borders = np.unique(np.concatenate([[0.0], times]))
    if len(borders) < 2:
        return 0.0
    out = np.cumsum(rates.means(borders)[:, 0] * np.diff(borders))
    return float(max(0.0, SPARE_SHARE * out.max()))


class Reels:
    """Hands the inputs of winches on, and tells what becomes of the lengths."""

    def __init__(self, system: RigSystem, engine: Engine, happened: list[PlantEvent]) -> None:
        """Prepare.

        Args:
            system: Its winches.
            engine: The core.
            happened: Takes what a plant has to tell.
        """
        self._engine, self._happened = engine, happened
        self._limits = np.array([w.brake_torque_n_m or ANY_TORQUE_N_M for w in system.winches])
        self._halted = [0.0] * len(system.winches)
        self._changing = np.flatnonzero(engine.tables.kinds[:, c.REELS])

    def drive(self, inputs: PlantInputs) -> None:
        """Hand on the inputs of the coming period."""
        if len(self._limits):
            self._engine.feed[:] = inputs.winch
            self._engine.brake_nm[:] = np.where(inputs.winch_brake, self._limits, 0.0)

    def show(self, free_length_m: Array) -> None:
        """Write the free lengths, and note winches that came to their stops."""
        engine = self._engine
        changing = self._changing
        free_length_m[changing] = engine.tables.cables[changing, c.REST_LENGTH]
        halted = engine.halted[: len(self._halted)].tolist()
        if halted == self._halted:
            return
        for w, (now, before) in enumerate(zip(halted, self._halted, strict=True), start=1):
            if now not in (0.0, before):
                what = "no cable left" if now > 0.0 else "cable reeled in"
                event = PlantEvent(engine.time_s, "winch_stopped", f"winch_{w}: {what}")
                self._happened.append(event)
        self._halted = halted
