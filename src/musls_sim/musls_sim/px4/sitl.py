"""`Px4Sitl`: real PX4s as the autopilot of all drones, stepped together in lockstep."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import mkdtemp
from time import monotonic, sleep
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray
from pymavlink.dialects.v20 import common as mavlink

from musls_control.autopilot import Autopilot, DroneSetpoints, MotorCommands
from musls_control.estimate import Estimate
from musls_control.px4_cascade import RotorLayout
from musls_control.px4_cascade.takeoff import TakeoffState
from musls_control.px4_frames import world_enu_ned, yaw_enu_ned
from musls_description.errors import ConfigError
from musls_sim.px4.install import Px4Error, Px4Install, read_firmware
from musls_sim.px4.links import OFFBOARD
from musls_sim.px4.process import DdsLink, Instance, claim_instances
from musls_sim.px4.sensors import ORIGIN_ALTITUDE_M, Sensors, geodetic_deg
from musls_sim.px4.vehicle import Vehicle

# ---------- From power-up to armed

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

        `cycle`: sends one frame of sensors to all and takes their answers.
        `realtime`: go no faster than real time after booting either.
        `boot_limit_s`: wall-clock time for PX4's start-up scripts; default `BOOT_LIMIT_S`.
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
        """Into offboard mode, then armed, all together (raises Px4Error)."""
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


RATE_HZ = 250.0
PERIOD_US = 4000
FIRST_TIME_US = 1_000_000

ANSWER_LIMIT_S = 10.0
"""Wall-clock time for an answer to a frame of sensors; usual is a fraction of a millisecond."""

CONNECT_LIMIT_S = 30.0

RESEND_EVERY = 50
"""Cycles after which an unchanged set-point is sent again: PX4 leaves offboard mode without."""

HEARTBEAT_EVERY = 250
LISTEN_EVERY = 5

LAST_WORDS_CYCLES = 125
"""Half a second, in which PX4 tells why it gave up."""

GROUND_SETPOINT_BELOW_M = 0.3
"""PX4 takes off as soon as the set-point is above its estimated height. So that the estimate's
noise alone does not do it, the set-point is this much below the ground while the plan is there."""

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
    """

    rate_hz = RATE_HZ
    has_sensors = has_failsafe = True

    def __init__(
        self,
        install: Px4Install,
        layouts: Sequence[RotorLayout],
        airframes: Sequence[str],
        sensors: Sensors | None,
        *,
        chosen: Mapping[str, float],
        hover_thrust: Sequence[float],
        log_folder: Path,
        answer_limit_s: float = ANSWER_LIMIT_S,
        dds: DdsLink | None = None,
    ) -> None:
        """Prepare; `start` starts the processes.

        `layouts`: rotors as PX4 is to believe them to be, one per drone.
        `sensors`: what PX4 measures; None where another simulator tells it.
        `hover_thrust`: MPC_THR_HOVER of each drone.
        `answer_limit_s`: wall-clock time after which PX4 counts as hung.
        `dds`: link to a ROS graph, from where they are then flown (`follow`).
        """
        self._install, self._layouts, self._dds = install, tuple(layouts), dds
        self.firmware = read_firmware(install.binary)
        self._airframes, self._chosen, self._sensors = airframes, dict(chosen), sensors
        self._log_folder, self._answer_limit_s = log_folder, answer_limit_s
        self._omega_min = np.array([layout.omega_min_rad_s for layout in layouts])
        self._omega_span = np.array([layout.omega_max_rad_s for layout in layouts])
        self._omega_span -= self._omega_min
        self._hover_thrust = np.array(hover_thrust)
        self._folder: Path | None = None
        self._power_up()

    @property
    def landed(self) -> np.ndarray:
        """The land detectors' verdicts, (n_drones,) bool."""
        return np.array(
            [
                v.commands.state.landed_state == mavlink.MAV_LANDED_STATE_ON_GROUND
                for v in self._vehicles
            ]
        )

    @property
    def takeoff_state(self) -> np.ndarray:
        """Take-off states as far as PX4 tells them by MAVLink, (n_drones,) int."""
        return np.array(
            [
                _TAKEOFF_STATES.get(v.commands.state.landed_state, TakeoffState.READY)
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

    @property
    def hover_thrust(self) -> np.ndarray:
        """MPC_THR_HOVER, (n_drones,); PX4 does not tell its estimate by MAVLink."""
        return self._hover_thrust

    def listen(self, drone: int, *, hears: bool) -> None:
        """Send no set-points to a drone any more, or send them again; what it does is PX4's affair.

        `drone`: from 0.
        """
        self._deaf[drone] = not hears

    def reset(self) -> None:
        """End the processes; `start` starts new ones."""
        self.close()
        self._power_up()

    def start(self, setpoint: DroneSetpoints, estimate: Estimate) -> None:
        """Start all PX4s and bring them up to armed, while the drones stand still.

        Args:
            setpoint: First set-points, (n_drones, 12).
            estimate: True state of load and drones, (1 + n_drones, 16).

        Raises:
            Px4Error: One did not start, failed its checks or refused.
            ConfigError: A chosen parameter does not exist.
        """
        self.boot(estimate)
        self._ground_enu_m = estimate.drones.position_enu_m[:, 2].copy()
        try:
            self._start_up(estimate).arm(lambda: self._guide(setpoint))
        except BaseException:
            self.close()
            raise

    def boot(self, estimate: Estimate) -> np.ndarray:
        """Start all PX4s and let them find where they are, while the drones stand still.

        With a link to a ROS graph their local frames are told to begin there.

        Args:
            estimate: True state of load and drones, (1 + n_drones, 16).

        Returns:
            Estimated minus true position, (n_drones, 3), NED [m]; see `StartUp.survey`.

        Raises:
            Px4Error: One did not start or found no position.
            ConfigError: A chosen parameter does not exist.
        """
        try:
            self._launch()
            start_up = self._start_up(estimate)
            start_up.boot()
            self._check_parameters()
            if self._dds:  # whoever guides them knows no survey
                self._begin_frames(world_enu_ned(estimate.drones.position_enu_m))
            self._offset_ned_m = start_up.survey(world_enu_ned(estimate.drones.position_enu_m))
        except BaseException:
            self.close()
            raise
        return self._offset_ned_m

    def _begin_frames(self, place_ned_m: np.ndarray) -> None:
        """Let each local frame begin at a place instead of at its first noisy fix."""
        latitude, longitude = geodetic_deg(place_ned_m)
        for i, vehicle in enumerate(self._vehicles):
            altitude_m = ORIGIN_ALTITUDE_M - place_ned_m[i, 2]
            vehicle.commands.set_origin(latitude[i], longitude[i], altitude_m)

    def _start_up(self, estimate: Estimate) -> StartUp:
        # PX4's DDS client leaves an agent that does not answer within 1.5 s of PX4's time.
        return StartUp(
            self._vehicles,
            lambda: self._cycle(estimate),
            1.0 / RATE_HZ,
            realtime=self._dds is not None,
        )

    def step(
        self,
        time_s: float,
        setpoint: DroneSetpoints,
        estimate: Estimate,
        out: MotorCommands,
    ) -> MotorCommands:
        """Advance all PX4s by 4 ms and write their motor commands into `out`.

        Args:
            time_s: Mission time, for messages.
            setpoint: Set-points, (n_drones, 12).
            estimate: True state of load and drones, (1 + n_drones, 16).
            out: Commands, (n_drones, 2, n_rotors), overwritten.

        Raises:
            Px4Error: One died, stopped answering, disarmed or left offboard mode.
        """
        self._guide(setpoint)
        self._cycle(estimate)
        self._supervise(time_s, np.isnan(setpoint.position_enu_m[:, 2]), estimate)
        return self._motors(out)

    def follow(self, estimate: Estimate, out: MotorCommands) -> MotorCommands:
        """Advance all PX4s by 4 ms; who arms and guides them is their own affair.

        Args:
            estimate: True state of load and drones, (1 + n_drones, 16).
            out: Commands, (n_drones, 2, n_rotors), overwritten.

        Raises:
            Px4Error: One died or stopped answering.
        """
        self._cycle(estimate)
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
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _power_up(self) -> None:
        """State before `start`."""
        n = len(self._layouts)
        self._vehicles: list[Vehicle] = []
        self._offset_ned_m = np.zeros((n, 3))
        self._ground_enu_m = np.zeros(n)
        self._sent = np.full((n, 11), np.nan)
        self._time_us, self._cycles, self._sent_at = FIRST_TIME_US, 0, -RESEND_EVERY
        self._was_in_air = np.zeros(n, dtype=bool)
        self._dismissed = np.zeros(n, dtype=bool)
        self._deaf = np.zeros(n, dtype=bool)

    def _launch(self) -> None:
        """Start the processes and wait until all are connected."""
        try:
            self._folder = Path(mkdtemp(prefix="musls-px4-"))
            self._log_folder.mkdir(parents=True, exist_ok=True)
            for old in self._log_folder.glob("drone_*.*"):
                old.unlink()
            for i, instance in enumerate(claim_instances(len(self._layouts))):
                root = self._folder / str(instance.number)
                log = self._log_folder / f"drone_{i + 1}.log"
                self._vehicles.append(self._vehicle(i, instance, root, log))
            for vehicle, airframe in zip(self._vehicles, self._airframes, strict=True):
                vehicle.start(airframe)
        except OSError as error:
            raise Px4Error(f"PX4's working folder cannot be made: {error}") from error
        for vehicle in self._vehicles:
            vehicle.connect(CONNECT_LIMIT_S)

    def _vehicle(self, index: int, instance: Instance, root: Path, log: Path) -> Vehicle:
        return Vehicle(index, instance, self._install, root, log, self._dds)

    def _check_parameters(self) -> None:
        """Refuse parameters that this PX4 does not know; without them it would fly on."""
        for vehicle in self._vehicles:
            for line in vehicle.complaints():
                for name in self._chosen:
                    if "not found" in line and name in line.replace(".", " ").split():
                        raise ConfigError(
                            f"autopilot.parameters.{name}: {self.firmware.text} has no such "
                            f'parameter ({vehicle.name}: "{line}")'
                        )
                if self._dds and "not found" in line and "UXRCE_DDS" in line:
                    vehicle.fail("has no uxrce_dds_client, which a flight through ROS needs")

    def _cycle(self, estimate: Estimate) -> None:
        """One frame of sensors to all, then the answers of all."""
        self._time_us += PERIOD_US
        self._cycles += 1
        assert self._sensors is not None
        sample = self._sensors.sample(estimate.drones)
        for vehicle in self._vehicles:
            vehicle.send(self._time_us, sample)
        for vehicle in self._vehicles:
            # Before PX4's outputs run there are no answers: none must be waited for.
            answering = vehicle.hil.answering
            patience = self._answer_limit_s if answering else 1.0 / RATE_HZ
            if not vehicle.receive(self._time_us, patience) and answering:
                vehicle.fail(f"stopped answering: nothing for {patience:g} s")
        self._talk()

    def _talk(self) -> None:
        """Listen to what the vehicles say by MAVLink, and let them know that somebody is there."""
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
            state = vehicle.commands.state
            if self._deaf[i] or self._dismissed[i]:
                continue  # its failsafe may leave offboard mode, land and disarm
            in_air = state.landed_state in _TAKEOFF_STATES
            self._was_in_air[i] |= in_air
            down = self._was_in_air[i] and sinking[i] and not in_air
            if not vehicle.hil.armed and not down:
                self._give_up(vehicle, f"disarmed at {time_s:.2f} s of the flight", estimate)
            if state.main_mode != OFFBOARD:
                self._give_up(
                    vehicle, f"left offboard mode at {time_s:.2f} s of the flight", estimate
                )

    def _give_up(self, vehicle: Vehicle, what: str, estimate: Estimate) -> NoReturn:
        """Fail, but let PX4 say why: its words wait for its clock, which only frames move."""
        for _ in range(LAST_WORDS_CYCLES):
            self._cycle(estimate)
        vehicle.fail(what)
