"""`Px4Sitl`: real PX4s as the autopilot of all drones, stepped together in lockstep."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep
from typing import Any, NoReturn

import numpy as np

from musls_control.autopilot import Autopilot, DroneSetpoints, MotorCommands
from musls_control.child_processes import lines_of
from musls_control.estimate import Estimate
from musls_control.px4 import RotorLayout
from musls_control.px4.frames import world_enu_ned, yaw_enu_ned
from musls_control.px4.offboard import target_system
from musls_control.px4.takeoff import TakeoffState
from musls_description.config.errors import ConfigError
from musls_sim.px4.install import FLIGHT_LOGS, Firmware, Px4Error
from musls_sim.px4.links import OFFBOARD, CommandLink, HilLink, mavlink
from musls_sim.px4.process import (
    PX4_API_PORT,
    Instance,
    Px4Process,
    XrceAgent,
    claim_instances,
    make_root,
)
from musls_sim.px4.sensors import ORIGIN_ALTITUDE_M, RATE_HZ, Px4Sensors, geodetic_deg

# ---------- One drone's PX4: its process, its links, and what it says when something is wrong

CONSOLE_LINES = 4
"""Number of PX4's own lines that an error repeats."""

_COMPLAINT = re.compile(r"\b(ERROR|WARN|Parameter .* not found)\b")


class SitlVehicle:
    """One PX4 from its start to its end.

    Attributes:
        name: "drone_1" and so on.
        hil: The simulator's link, from `connect` on.
    """

    hil: HilLink
    _process: Px4Process

    def __init__(
        self,
        index: int,
        instance: Instance,
        firmware: Firmware,
        root: Path,
        log: Path,
        *,
        system_id: int | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """`index`: drone, from 0; `root`: empty working folder; the instance is closed with it.

        `system_id`: of its MAVLink; default the instance's. `variables`: for PX4's scripts.
        """
        self.index = index
        self.name = f"drone_{index + 1}"
        self._instance = instance
        self._firmware = firmware
        self._root = root
        self._log = log
        self._variables = dict(variables or {})
        self.commands = CommandLink(
            instance.api, PX4_API_PORT + instance.number, system_id or instance.number + 1
        )
        self._start_s = self._connected = False

    def start(self, airframe: str) -> None:
        """Start PX4 with an airframe script (raises Px4Error)."""
        make_root(self._root, self._firmware.etc, airframe)
        self._process = Px4Process(
            self._firmware, self._instance.number, self._root, self._log, self._variables
        )
        self._start_s = True

    def connect(self, patience_s: float) -> None:
        """Wait until PX4 has connected to the simulator."""
        deadline = monotonic() + patience_s
        self._instance.listener.settimeout(0.1)
        while not self._connected:
            self.check_alive()
            if monotonic() > deadline:
                self.fail(f"did not connect to the simulator within {patience_s:g} s")
            with suppress(TimeoutError):
                self.hil = HilLink(self._instance.listener.accept()[0], self.fail)
                self._connected = True

    @property
    def is_up(self) -> bool:
        """Whether it answers and knows where it is."""
        commands = self.commands
        return self.hil.answering and commands.heard and bool(commands.positions_ned_m)

    @property
    def in_offboard(self) -> bool:
        """Whether set-points fly it."""
        return self.commands.main_mode == OFFBOARD

    def check_alive(self) -> None:
        """Raise if the process has ended (raises Px4Error)."""
        if self._process.exit_text is not None:
            self.fail("ended")

    def complaints(self) -> list[str]:
        """Warnings and errors on PX4's console so far."""
        return [line for line in lines_of(self._process.console) if _COMPLAINT.search(line)]

    def fail(self, what: str) -> NoReturn:
        """Raise an error that repeats PX4's own words and names its log (raises Px4Error)."""
        if self._connected:
            # A process whose connection is gone ends a moment later; then its exit is the news.
            self._process.wait_a_moment()
        self.commands.poll()
        exit_text = self._process.exit_text
        how = f" ({exit_text})" if exit_text else ""
        words = list(self.commands.texts)[-CONSOLE_LINES:] or self.complaints()[-CONSOLE_LINES:]
        quote = f'; it said: "{" | ".join(words)}"' if words else ""
        raise Px4Error(
            f"{self.name}: PX4 instance {self._instance.number} {what}{how}{quote}; "
            f"its console is kept in {self._log}"
        )

    def ask_to_end(self) -> None:
        """Begin to end PX4 (several end side by side)."""
        if self._connected:
            self.hil.close()
        if self._start_s:
            self._process.ask_to_end()

    def close(self) -> None:
        """End PX4 for certain, keep its flight log if it wrote one, free everything."""
        if self._start_s:
            self._process.end()
        for flight_log in self._root.glob(FLIGHT_LOGS):
            with suppress(OSError):
                shutil.copy2(flight_log, self._log.with_suffix(".ulg"))
        if self._start_s:
            self._instance.remove_socket()
        self._instance.close()


# ---------- All of them together

BOOT_LIMIT_S = 60.0
"""Wall-clock time for PX4's start-up scripts."""

ALIGN_S = 8.0
"""Simulated time for PX4's estimator to align and settle."""

OFFSET_S = 2.0
"""Last part of `ALIGN_S`, over which the estimated positions are averaged."""

STEP_LIMIT_S = 15.0
"""Simulated time for PX4 to accept a mode or to arm."""

ASK_EVERY_S = 0.5

PERIOD_US = 4000
FIRST_TIME_US = 1_000_000

ANSWER_LIMIT_S = 10.0
"""Wall-clock time for an answer to a frame of sensors; usual is a fraction of a millisecond."""

CONNECT_LIMIT_S = 30.0

RESEND_EVERY = 50
"""Cycles after which an unchanged set-point is sent again: PX4 leaves offboard mode without."""

HEARTBEAT_EVERY = 250
LISTEN_EVERY = 5

CONSOLE_CYCLES = 125
"""Half a second, in which PX4 tells why it gave up."""

GROUND_SETPOINT_BELOW_M = 5.0
"""PX4 takes off as soon as the set-point is above its estimated height. So that the estimate's
error alone does not do it, the set-point is this much below the ground while the plan is there."""

_TAKEOFF_STATES = {
    mavlink.MAV_LANDED_STATE_TAKEOFF: TakeoffState.RAMPUP,
    mavlink.MAV_LANDED_STATE_IN_AIR: TakeoffState.FLIGHT,
    mavlink.MAV_LANDED_STATE_LANDING: TakeoffState.FLIGHT,
}


class Px4Sitl(Autopilot):
    """One PX4 SITL per drone, see `musls_control.autopilot.Autopilot`.

    Attributes:
        rate_hz: 250, the rate of the sensor frames.
        firmware: Version and path of the PX4.
        realtime: Whether it goes no faster than real time before it is armed.
    """

    rate_hz = RATE_HZ
    has_sensors = has_failsafe = True
    realtime = False
    boot_limit_s = BOOT_LIMIT_S

    def __init__(
        self,
        firmware: Firmware,
        layouts: Sequence[RotorLayout],
        airframes: Sequence[str],
        sensors: Px4Sensors | None,
        *,
        parameters: Mapping[str, float],
        log_folder: Path,
    ) -> None:
        """`layouts`: rotors as PX4 is to believe them to be, one per drone.

        `sensors`: what PX4 measures; None where another simulator tells it.
        """
        self.firmware = firmware
        self._layouts = tuple(layouts)
        self._airframes = airframes
        self._parameters = dict(parameters)
        self._sensors = sensors
        self._log_folder = log_folder
        self._answer_limit_s = ANSWER_LIMIT_S
        self._omega_min = np.array([layout.omega_min_rad_s for layout in layouts])
        self._omega_span = np.array([layout.omega_max_rad_s for layout in layouts])
        self._omega_span -= self._omega_min
        self._folder: TemporaryDirectory[str] | None = None
        self._vehicles: list[SitlVehicle] = []
        n = len(layouts)
        self._offset_ned_m = np.zeros((n, 3))
        self._ground_enu_m = np.zeros(n)
        self._sent = np.full((n, 11), np.nan)
        self._time_us = FIRST_TIME_US
        self._cycles = 0
        self._sent_at = -RESEND_EVERY
        self._was_in_air = np.zeros(n, dtype=bool)
        self._dismissed = np.zeros(n, dtype=bool)
        self._deaf = np.zeros(n, dtype=bool)

    @property
    def landed(self) -> np.ndarray:
        """The land detectors' verdicts, (n_drones,) bool."""
        return np.array(
            [v.commands.landed_state == mavlink.MAV_LANDED_STATE_ON_GROUND for v in self._vehicles]
        )

    @property
    def takeoff_state(self) -> np.ndarray:
        """Take-off states as far as PX4 tells them by MAVLink, (n_drones,) int."""
        return np.array(
            [
                _TAKEOFF_STATES.get(v.commands.landed_state, TakeoffState.READY)
                if v.hil.armed
                else TakeoffState.DISARMED
                for v in self._vehicles
            ]
        )

    @property
    def armed(self) -> np.ndarray:
        """Whether the motors may turn, (n_drones,) bool."""
        return np.array([v.hil.armed for v in self._vehicles])

    @property
    def clock_s(self) -> float:
        """PX4's time, that of the last frame of sensors."""
        return self._time_us * 1e-6

    def listen(self, drone: int, *, hears: bool) -> None:
        """Send set-points to a drone (from 0) again, or none; what it does is PX4's affair."""
        self._deaf[drone] = not hears

    def start(self, setpoint: DroneSetpoints, estimate: Estimate) -> None:
        """Start all PX4s and bring them up to armed; the estimate is the true state."""
        try:
            self._boot(estimate)
            self._prepare(setpoint, estimate)
        except BaseException:
            self.close()
            raise

    def _prepare(self, setpoint: DroneSetpoints, estimate: Estimate) -> None:
        self._ground_enu_m = estimate.drones.position_enu_m[:, 2].copy()
        self._arm(setpoint, estimate)
        # Only an armed PX4 answers every frame. Before, one that is started by a script may have
        # lost samples in Gazebo on a busy machine, and believe to be decimetres off its place.
        self._keep_errors(estimate, setpoint)

    def _boot(self, estimate: Estimate) -> None:
        """Start all PX4s and let them find where they are, at real-time speed.

        Their start-up scripts take real time; simulated time is not to run away from them.
        """
        self._launch()
        limit_s = self.boot_limit_s
        deadline = next_frame = monotonic()
        deadline += limit_s
        while not all(vehicle.is_up for vehicle in self._vehicles):
            self._cycle(estimate)
            for vehicle in self._vehicles:
                vehicle.check_alive()
                if monotonic() > deadline and not vehicle.is_up:
                    vehicle.fail(f"did not find its position within {limit_s:g} s")
            next_frame += 1.0 / RATE_HZ
            sleep(max(next_frame - monotonic(), 0.0))
        self._check_parameters()
        self._measure_offsets(estimate)

    def _measure_offsets(self, estimate: Estimate) -> None:
        """Wait until the estimators have settled, and measure their position offsets."""
        self._advance_for(ALIGN_S - OFFSET_S, estimate)
        self._keep_errors(estimate)

    def _keep_errors(self, estimate: Estimate, setpoint: DroneSetpoints | None = None) -> None:
        """Measure the position offsets on the ground, estimated minus true, a mean over `OFFSET_S`.

        Added to a place in the world this gives the place in PX4's local frame, whose origin is
        its first noisy fix.
        """
        for vehicle in self._vehicles:
            vehicle.commands.positions_ned_m.clear()
        self._advance_for(OFFSET_S, estimate, setpoint)
        for i, vehicle in enumerate(self._vehicles):
            positions_ned_m = vehicle.commands.positions_ned_m
            if not positions_ned_m:
                vehicle.fail("lost its position estimate on the ground")
            self._offset_ned_m[i] = np.mean(positions_ned_m, axis=0)
        self._offset_ned_m -= world_enu_ned(estimate.drones.position_enu_m)

    def _arm(self, setpoint: DroneSetpoints, estimate: Estimate) -> None:
        """Switch all PX4s to offboard mode and arm them; requests are repeated."""
        self._advance_for(1.0, estimate, setpoint)  # PX4 takes the mode only when set-points come
        asks: tuple[
            tuple[str, Callable[[CommandLink], None], Callable[[SitlVehicle], bool]], ...
        ] = (
            ("enter offboard mode", CommandLink.ask_offboard, lambda v: v.in_offboard),
            ("arm", CommandLink.ask_arm, lambda v: v.hil.armed),
        )
        for what, ask, is_done in asks:
            asked_s = 0.0
            while rest := [vehicle for vehicle in self._vehicles if not is_done(vehicle)]:
                for vehicle in rest:
                    if asked_s >= STEP_LIMIT_S:
                        answer = vehicle.commands.answer
                        vehicle.fail(f"refused to {what} for {STEP_LIMIT_S:g} s ({answer})")
                    ask(vehicle.commands)
                self._advance_for(ASK_EVERY_S, estimate, setpoint)
                asked_s += ASK_EVERY_S

    def _advance_for(
        self, duration_s: float, estimate: Estimate, setpoint: DroneSetpoints | None = None
    ) -> None:
        next_frame = monotonic()
        for _ in range(round(duration_s * RATE_HZ)):
            if setpoint is not None:
                self._guide(setpoint)
            self._cycle(estimate)
            if self.realtime:
                next_frame += 1.0 / RATE_HZ
                sleep(max(next_frame - monotonic(), 0.0))

    def step(
        self,
        time_s: float,
        setpoint: DroneSetpoints,
        estimate: Estimate,
        out: MotorCommands,
    ) -> MotorCommands:
        """Advance all PX4s by 4 ms; the estimate is the true state, the time is for messages."""
        self._guide(setpoint)
        self._cycle(estimate)
        self._supervise(time_s, np.isnan(setpoint.position_enu_m[:, 2]), estimate)
        return self._motors(out)

    def _motors(self, out: MotorCommands) -> MotorCommands:
        rotors = out.throttle.shape[1]
        for i, vehicle in enumerate(self._vehicles):
            out.throttle[i] = vehicle.hil.controls[:rotors]
            running = self._omega_min[i] + self._omega_span[i] * out.throttle[i]
            out.omega_cmd_rad_s[i] = running if vehicle.hil.armed else 0.0
        return out

    def close(self) -> None:
        """End all PX4s and remove their working folders; may be called at any time, repeatedly."""
        for vehicle in self._vehicles:
            vehicle.ask_to_end()
        for vehicle in self._vehicles:
            vehicle.close()
        if self._folder is not None:
            self._folder.cleanup()

    def _launch(self) -> None:
        """Start the processes and wait until all are connected."""
        try:
            self._folder = TemporaryDirectory(prefix="musls-px4-", ignore_cleanup_errors=True)
            self._log_folder.mkdir(parents=True, exist_ok=True)
            for old in self._log_folder.glob("drone_*.*"):
                old.unlink()
            for i, instance in enumerate(claim_instances(len(self._layouts))):
                root = Path(self._folder.name) / str(instance.number)
                log = self._log_folder / f"drone_{i + 1}.log"
                self._vehicles.append(self._vehicle(i, instance, root, log))
            for vehicle, airframe in zip(self._vehicles, self._airframes, strict=True):
                vehicle.start(airframe)
        except OSError as error:
            raise Px4Error(f"PX4's working folder cannot be made: {error}") from error
        for vehicle in self._vehicles:
            vehicle.connect(CONNECT_LIMIT_S)

    def _vehicle(self, index: int, instance: Instance, root: Path, log: Path) -> SitlVehicle:
        return SitlVehicle(index, instance, self.firmware, root, log)

    def _check_parameters(self) -> None:
        """Refuse parameters that this PX4 does not know; without them it would fly on."""
        for vehicle in self._vehicles:
            for line in vehicle.complaints():
                for name in self._parameters:
                    if "not found" in line and name in line.replace(".", " ").split():
                        raise ConfigError(
                            f"autopilot.parameters.{name}: {self.firmware.text} has no such "
                            f'parameter ({vehicle.name}: "{line}")'
                        )

    def _cycle(self, estimate: Estimate) -> None:
        """One frame of sensors to all, then the answers of all."""
        self._time_us += PERIOD_US
        self._cycles += 1
        assert self._sensors is not None
        sample = self._sensors.sample(estimate.drones)
        for vehicle in self._vehicles:
            vehicle.hil.send(self._time_us, sample, vehicle.index)
        for vehicle in self._vehicles:
            # Before PX4's outputs run there are no answers: none must be waited for.
            answering = vehicle.hil.answering
            patience = self._answer_limit_s if answering else 1.0 / RATE_HZ
            if not vehicle.hil.receive(self._time_us, patience) and answering:
                vehicle.fail(f"stopped answering: nothing for {patience:g} s")
        self._talk()

    def _talk(self) -> None:
        """Listen to what the vehicles say by MAVLink, and send them heartbeats."""
        if self._cycles % LISTEN_EVERY == 0:
            for vehicle in self._vehicles:
                vehicle.commands.poll()
        if self._cycles % HEARTBEAT_EVERY == 0:
            for vehicle in self._vehicles:
                vehicle.commands.send_heartbeat()

    def _guide(self, setpoint: DroneSetpoints) -> None:
        """Hand changed set-points on, unchanged ones now and then."""
        for i in np.flatnonzero(~setpoint.armed.astype(bool) & ~self._dismissed).tolist():
            self._vehicles[i].commands.disarm()
            self._dismissed[i] = True
        rows = setpoint.data[:, :11]
        if self._cycles - self._sent_at < RESEND_EVERY and np.array_equal(
            rows, self._sent, equal_nan=True
        ):
            return
        self._sent[:] = rows
        self._sent_at = self._cycles
        position = setpoint.position_enu_m.copy()
        waiting = ~self._was_in_air & (position[:, 2] < self._ground_enu_m + 1e-3)
        position[waiting, 2] -= GROUND_SETPOINT_BELOW_M
        place = world_enu_ned(position) + self._offset_ned_m
        velocity = world_enu_ned(setpoint.velocity_enu_m_s)
        acceleration = world_enu_ned(setpoint.acceleration_enu_m_s2)
        yaw = yaw_enu_ned(setpoint.yaw_enu_rad)
        for i, vehicle in enumerate(self._vehicles):
            if self._deaf[i] or self._dismissed[i]:
                continue
            vehicle.commands.send_setpoint(
                self._time_us // 1000,
                place[i],
                velocity[i],
                acceleration[i],
                yaw[i],
                -setpoint.yaw_rate_enu_rad_s[i],
            )

    def _supervise(self, time_s: float, sinking: np.ndarray, estimate: Estimate) -> None:
        """End the flight if a PX4 stops flying it; after a landing PX4 disarms by itself."""
        for i, vehicle in enumerate(self._vehicles):
            if self._deaf[i] or self._dismissed[i]:
                continue  # its failsafe may leave offboard mode, land and disarm
            in_air = vehicle.commands.landed_state in _TAKEOFF_STATES
            self._was_in_air[i] |= in_air
            down = self._was_in_air[i] and sinking[i] and not in_air
            if not vehicle.hil.armed and not down:
                self._give_up(vehicle, f"disarmed at {time_s:.2f} s of the flight", estimate)
            if not vehicle.in_offboard:
                self._give_up(
                    vehicle, f"left offboard mode at {time_s:.2f} s of the flight", estimate
                )

    def _give_up(self, vehicle: SitlVehicle, what: str, estimate: Estimate) -> NoReturn:
        """Fail, but let PX4 say why: its words wait for its clock, which only frames move."""
        for _ in range(CONSOLE_CYCLES):
            self._cycle(estimate)
        vehicle.fail(what)


class GraphPx4(Px4Sitl):
    """Real PX4s that take no set-points from here: a ROS graph arms and guides them over DDS.

    Attributes:
        origin_error_m: Distance of the origin of each PX4's local frame from the drone's place,
            (n,); the mean of the last seconds on the ground.
    """

    has_failsafe = False
    realtime = True  # PX4's DDS client leaves an agent that is silent for 1.5 s of PX4's time

    def __init__(self, agent: XrceAgent, *args: Any, **options: Any) -> None:
        """The agent is closed with it."""
        super().__init__(*args, **options)
        self.agent = agent
        self.origin_error_m = np.zeros(len(self._layouts))

    def _prepare(self, setpoint: DroneSetpoints, estimate: Estimate) -> None:
        place_ned_m = world_enu_ned(estimate.drones.position_enu_m)
        self.origin_error_m = np.linalg.norm(self._offset_ned_m + place_ned_m, axis=1)

    def step(
        self, time_s: float, setpoint: DroneSetpoints, estimate: Estimate, out: MotorCommands
    ) -> MotorCommands:
        """Advance all PX4s by 4 ms (raises Px4Error)."""
        self._cycle(estimate)
        return self._motors(out)

    def close(self) -> None:
        """End all PX4s and the agent; may be called repeatedly."""
        super().close()
        self.agent.close()

    def _vehicle(self, index: int, instance: Instance, root: Path, log: Path) -> SitlVehicle:
        return SitlVehicle(
            index,
            instance,
            self.firmware,
            root,
            log,
            system_id=target_system(index + 1),
            variables=self.agent.variables(index),
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for vehicle in self._vehicles:
            if any("not found" in line and "UXRCE_DDS" in line for line in vehicle.complaints()):
                vehicle.fail("has no uxrce_dds_client, which a flight through ROS needs")

    def _measure_offsets(self, estimate: Estimate) -> None:
        """Set the origin of each local frame to a place instead of to the first noisy fix.

        Set-points that come through the graph are not corrected by measured offsets.
        """
        place_ned_m = world_enu_ned(estimate.drones.position_enu_m)
        latitude, longitude = geodetic_deg(place_ned_m)
        for i, vehicle in enumerate(self._vehicles):
            altitude_m = ORIGIN_ALTITUDE_M - place_ned_m[i, 2]
            vehicle.commands.set_origin(latitude[i], longitude[i], altitude_m)
        super()._measure_offsets(estimate)
