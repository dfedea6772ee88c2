"""From power-up to armed: what happens before mission time zero, while the drones stand still."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic, sleep

import numpy as np
from numpy.typing import NDArray

from musls_sim.px4.command_link import OFFBOARD
from musls_sim.px4.vehicle import Vehicle

Array = NDArray[np.float64]

BOOT_LIMIT_S = 60.0
"""Wall-clock time for PX4's start-up scripts."""

ALIGN_S = 8.0
"""Simulated time for PX4's estimator to align and settle."""

SURVEY_S = 2.0
"""Last part of it, over which the estimated positions are averaged."""

STEP_LIMIT_S = 15.0
"""Simulated time for PX4 to accept a mode or to arm."""

ASK_EVERY_S = 0.5


class StartUp:
    """Brings all vehicles up together."""

    def __init__(
        self,
        vehicles: Sequence[Vehicle],
        cycle: Callable[[], None],
        period_s: float,
        *,
        realtime: bool = False,
        boot_limit_s: float | None = None,
    ) -> None:
        """Prepare.

        Args:
            vehicles: Connected ones.
            cycle: Sends one frame of sensors to all and takes their answers.
            period_s: Simulated time of a cycle.
            realtime: Go no faster than real time after booting either.
            boot_limit_s: Wall-clock time for PX4's start-up scripts; default `BOOT_LIMIT_S`.
        """
        self._boot_limit_s = BOOT_LIMIT_S if boot_limit_s is None else boot_limit_s
        self._vehicles, self._cycle, self._period_s = vehicles, cycle, period_s
        self._realtime = realtime

    def boot(self) -> None:
        """Run at real-time speed until every PX4 answers and knows where it is.

        Its start-up scripts take real time; simulated time is not to run away from them.

        Raises:
            Px4Error: One ended or did not get there.
        """
        deadline = monotonic() + self._boot_limit_s
        next_frame = monotonic()
        while not all(_up(vehicle) for vehicle in self._vehicles):
            self._cycle()
            for vehicle in self._vehicles:
                vehicle.check_alive()
                if monotonic() > deadline and not _up(vehicle):
                    vehicle.fail(f"did not find its position within {self._boot_limit_s:g} s")
            next_frame += self._period_s
            sleep(max(next_frame - monotonic(), 0.0))

    def survey(self, true_ned_m: Array) -> Array:
        """Let the estimators settle, then see where they believe to be.

        Args:
            true_ned_m: Where the drones stand, (n, 3).

        Returns:
            Estimated minus true position, (n, 3): added to a place in the world it gives the place
            in PX4's local frame, whose origin is its first noisy fix.
        """
        self._advance_for(ALIGN_S - SURVEY_S)
        for vehicle in self._vehicles:
            vehicle.commands.positions_ned_m.clear()
        self._advance_for(SURVEY_S)
        for vehicle in self._vehicles:
            if not vehicle.commands.positions_ned_m:
                vehicle.fail("lost its position estimate on the ground")
        estimated = [np.mean(v.commands.positions_ned_m, axis=0) for v in self._vehicles]
        return np.array(estimated) - true_ned_m

    def arm(self, guide: Callable[[], None]) -> None:
        """Into offboard mode, then armed, all together.

        Args:
            guide: Sends the first set-points where due.

        Raises:
            Px4Error: One refused.
        """
        self._advance_for(1.0, guide)  # PX4 takes the mode only when set-points come
        self._ask("enter offboard mode", lambda v: v.commands.ask_offboard(), _in_offboard, guide)
        self._ask("arm", lambda v: v.commands.ask_arm(), _is_armed, guide)

    def _ask(
        self,
        what: str,
        ask: Callable[[Vehicle], None],
        done: Callable[[Vehicle], bool],
        guide: Callable[[], None],
    ) -> None:
        """Ask again and again until all have done it."""
        asked_s = 0.0
        while not all(done(vehicle) for vehicle in self._vehicles):
            for vehicle in self._vehicles:
                if not done(vehicle):
                    if asked_s >= STEP_LIMIT_S:
                        answer = vehicle.commands.state.answer
                        vehicle.fail(f"refused to {what} for {STEP_LIMIT_S:g} s ({answer})")
                    ask(vehicle)
            self._advance_for(ASK_EVERY_S, guide)
            asked_s += ASK_EVERY_S

    def _advance_for(self, duration_s: float, guide: Callable[[], None] | None = None) -> None:
        next_frame = monotonic()
        for _ in range(round(duration_s / self._period_s)):
            if guide is not None:
                guide()
            self._cycle()
            if self._realtime:
                next_frame += self._period_s
                sleep(max(next_frame - monotonic(), 0.0))


def _up(vehicle: Vehicle) -> bool:
    commands = vehicle.commands
    return vehicle.hil.answering and commands.state.heard and bool(commands.positions_ned_m)


def _in_offboard(vehicle: Vehicle) -> bool:
    return vehicle.commands.state.main_mode == OFFBOARD


def _is_armed(vehicle: Vehicle) -> bool:
    return vehicle.hil.armed
