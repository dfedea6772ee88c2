"""Real PX4s that fly the drones of a Gazebo world over their own Gazebo bridge."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NoReturn

import numpy as np

from musls_control.estimate import Estimate
from musls_control.px4 import RotorLayout
from musls_description.numerics.arrays import Array
from musls_description.writers.sdf import drone_name
from musls_sim.plants.gazebo import WORLD, BridgedPlant
from musls_sim.px4.install import Firmware
from musls_sim.px4.process import Instance
from musls_sim.px4.sitl import PERIOD_US, Px4Sitl, SitlVehicle

# ---------- Whether PX4 has done all its work, as the kernel sees it (Linux)

WIRES = "ZMQbg/IO/"
"""Start of the names of the threads that carry Gazebo's messages, in Gazebo and in PX4."""

LISTENERS = "px4"
"""Threads that take Gazebo's messages in; they carry the program's name."""

QUEUES = "wq:"
"""Start of the names of PX4's work queues: estimator, controllers, drivers."""

_FIRST = {LISTENERS: 1, "wq:INS0": 2}
"""Work goes from the wires to the listeners, then to the estimator's queue and to the others."""


class WorkThreads:
    """The threads of a PX4 that carry its flight, or of a Gazebo server that speak to PX4.

    A queue that is out of work sleeps; one that is running or waits for a processor does not.
    """

    def __init__(self, pid: int) -> None:
        self._tasks = Path(f"/proc/{pid}/task")
        self._files: list[int] = []

    def find(self) -> None:
        """Look up the present work threads of PX4's processes, whose modules start and end them.

        None are found where there is no /proc.
        """
        self.close()
        pairs = []
        with suppress(OSError):
            for task in self._tasks.iterdir():
                with suppress(OSError):
                    name = (task / "comm").read_text().rstrip("\n")
                    if name == LISTENERS or name.startswith((WIRES, QUEUES)):
                        file = os.open(task / "stat", os.O_RDONLY | os.O_CLOEXEC)
                        order = 0 if name.startswith(WIRES) else _FIRST.get(name, 3)
                        pairs.append((order, file))
        self._files = [file for _, file in sorted(pairs)]

    def __len__(self) -> int:
        """Number of threads found."""
        return len(self._files)

    @property
    def busy(self) -> bool:
        """Whether one of those found has work to do."""
        return any(map(_running, self._files))

    def close(self) -> None:
        """Forget them."""
        for file in self._files:
            os.close(file)
        self._files = []


def _running(file: int) -> bool:
    """Whether a thread runs or waits for a processor; one that has ended does not."""
    try:
        return os.pread(file, 64, 0).partition(b") ")[2][:1] == b"R"
    except OSError:
        return False


BOOT_LIMIT_S = 180.0
"""Wall-clock time for PX4's start-up scripts, which ask Gazebo's slow `gz` command."""

ANSWER_LIMIT_S = 20.0
"""Wall-clock time for a motor command."""

SETTLE_LIMIT_S = 1.0
"""Wall-clock time for PX4 to finish its work of a control period; usual is a millisecond."""

SETTLE_LOOK_S = 5e-5
FIND_EVERY = 250
"""Cycles after which threads are looked for again."""


class BridgeLink:
    """Motor commands of a vehicle, in the place of the simulator's link."""

    def __init__(self, plant: BridgedPlant, index: int, layout: RotorLayout) -> None:
        """`index`: drone, from 0."""
        self._motors = plant.motors
        self._index = index
        self._min = layout.omega_min_rad_s
        self._span = layout.omega_max_rad_s - layout.omega_min_rad_s

    @property
    def answering(self) -> bool:
        """Whether any motor command has come."""
        return bool(self._motors.heard[self._index])

    @property
    def armed(self) -> bool:
        """Whether the motors are commanded to turn: armed ones idle."""
        return bool(self._motors.speed_rad_s[self._index].any())

    @property
    def controls(self) -> Array:
        """Latest motor commands in [0, 1], (n_rotors,)."""
        share = (self._motors.speed_rad_s[self._index] - self._min) / self._span
        return np.clip(share, 0.0, 1.0)


class BridgedVehicle(SitlVehicle):
    """One PX4 whose bridge is attached to a model of the world."""

    def __init__(self, link: BridgeLink, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.hil = link  # type: ignore[assignment]
        self.threads: WorkThreads | None = None

    def connect(self, patience_s: float) -> None:
        """Return at once: PX4 connects to Gazebo by itself while the world runs."""
        self.check_alive()
        self.threads = WorkThreads(self._process.pid)

    def close(self) -> None:
        """End PX4 for certain, keep its flight log if it wrote one, free everything.

        See `SitlVehicle.close`.
        """
        if self.threads is not None:
            self.threads.close()
        super().close()


class Px4InGazebo(Px4Sitl):
    """One PX4 per drone of a Gazebo world, see `musls_control.autopilot.Autopilot`.

    The plant moves the world in the flight; before it, while PX4s boot and are armed, this does.
    """

    realtime = True
    boot_limit_s = BOOT_LIMIT_S

    def __init__(
        self,
        plant: BridgedPlant,
        firmware: Firmware,
        layouts: Sequence[RotorLayout],
        airframes: Sequence[str],
        **options: Any,
    ) -> None:
        self._plant = plant
        self._standing = True
        self._server_threads = WorkThreads(os.getpid())
        super().__init__(firmware, layouts, airframes, None, **options)
        plant.ask = self._ask

    def _vehicle(self, index: int, instance: Instance, root: Path, log: Path) -> SitlVehicle:
        link = BridgeLink(self._plant, index, self._layouts[index])
        # The model in a Gazebo that runs already.
        variables = {
            "PX4_SIMULATOR": "gz",
            "PX4_GZ_STANDALONE": "1",
            "PX4_GZ_WORLD": WORLD,
            "PX4_GZ_MODEL_NAME": drone_name(self._plant.system, index),
        }
        return BridgedVehicle(link, index, instance, self.firmware, root, log, variables=variables)

    def start(self, setpoint: Any, estimate: Estimate) -> None:
        """See `Px4Sitl.start`; from here on the plant moves the world."""
        super().start(setpoint, estimate)
        self._standing = False

    def _cycle(self, estimate: Estimate) -> None:
        """Listen and speak to all; the sensors go from Gazebo to PX4 by themselves."""
        self._time_us += PERIOD_US
        self._cycles += 1
        if self._standing:
            self._plant.stand()
        self._settle()
        self._talk()

    def _ask(self, drones: list[int], waited_s: float) -> None:
        """See `BridgedPlant.ask`."""
        for i in drones:
            self._vehicles[i].check_alive()
            if waited_s >= ANSWER_LIMIT_S:
                self._vehicles[i].fail(f"stopped answering: nothing for {ANSWER_LIMIT_S:g} s")

    def _settle(self) -> None:
        """Wait until every PX4 has used the sensors: motor commands do not need its estimator.

        Where that runs late, samples of the accelerometer overflow their queue of eight and the
        estimate jumps by what they would have told. Before it arms there are no commands to wait
        for at all, and samples may still be in this process.
        """
        vehicles = [v for v in self._vehicles if isinstance(v, BridgedVehicle)]
        threads = [self._server_threads, *(v.threads for v in vehicles if v.threads is not None)]
        if self._cycles % FIND_EVERY == 1:
            for each in threads:
                each.find()
        deadline = monotonic() + SETTLE_LIMIT_S
        while any(each.busy for each in threads) and monotonic() < deadline:
            sleep(SETTLE_LOOK_S)

    def close(self) -> None:
        """End all PX4s and remove their working folders; may be called at any time, repeatedly.

        See `Px4Sitl.close`.
        """
        super().close()
        self._server_threads.close()

    def _give_up(self, vehicle: SitlVehicle, what: str, estimate: Estimate) -> NoReturn:
        self._standing = True
        super()._give_up(vehicle, what, estimate)
