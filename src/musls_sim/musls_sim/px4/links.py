"""The operator's link to one PX4: mode, arming and set-points out, state and words back."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import NoReturn

import numpy as np

from musls_description.config.errors import MuslsError, install_command
from musls_description.numerics.arrays import Array
from musls_sim.px4.sensors import TEMPERATURE_DEG_C, Fix, Px4Sample

try:
    from pymavlink.dialects.v20 import common as mavlink
except ModuleNotFoundError as missing:
    raise MuslsError(
        f"autopilot.kind = px4 needs pymavlink: {install_command('pymavlink')}"
    ) from missing

OFFBOARD = 6
"""Main mode of PX4's custom modes."""

OPERATOR_SYSTEM = 245
FORCED = 21196.0
"""Parameter of the arm command that skips checks: used to disarm only."""

REMEMBERED_TEXTS = 12
REMEMBERED_POSITIONS = 100

_RESULTS = {
    value: entry.name.removeprefix("MAV_RESULT_").lower().replace("_", " ")
    for value, entry in mavlink.enums["MAV_RESULT"].items()
}


class CommandLink:
    """Connection to one PX4's API port.

    Attributes:
        heard: Whether any heartbeat has come.
        main_mode: Main mode in the last heartbeat.
        landed_state: MAV_LANDED_STATE.
        answer: Result of the last command, in words.
        texts: Latest status texts, oldest first.
        positions_ned_m: Latest estimates of its place in its local frame, (3,) each.
    """

    def __init__(self, api: socket.socket, port: int, system_id: int) -> None:
        """`port`: PX4's own port on this machine."""
        api.setblocking(False)
        self._api = api
        self._address = ("127.0.0.1", port)
        self._system = system_id
        self._mavlink = mavlink.MAVLink(self, srcSystem=OPERATOR_SYSTEM, srcComponent=190)
        self._mavlink.robust_parsing = True
        self.heard = False
        self.main_mode = 0
        self.answer = "no answer"
        self.landed_state = mavlink.MAV_LANDED_STATE_UNDEFINED
        self.texts: deque[str] = deque(maxlen=REMEMBERED_TEXTS)
        self.positions_ned_m: deque[Array] = deque(maxlen=REMEMBERED_POSITIONS)

    def poll(self) -> None:
        """Read what has come."""
        while True:
            try:
                data = self._api.recv(65535)
            except (BlockingIOError, ConnectionRefusedError):
                return
            for message in self._mavlink.parse_buffer(data) or ():
                if message.get_srcSystem() == self._system:
                    self._take(message)

    def _take(self, message: mavlink.MAVLink_message) -> None:
        kind = message.get_type()
        if kind == "HEARTBEAT" and message.autopilot == mavlink.MAV_AUTOPILOT_PX4:
            self.heard = True
            self.main_mode = message.custom_mode >> 16 & 0xFF
        elif kind == "LOCAL_POSITION_NED":
            self.positions_ned_m.append(np.array([message.x, message.y, message.z]))
        elif kind == "EXTENDED_SYS_STATE":
            self.landed_state = message.landed_state
        elif kind == "STATUSTEXT":
            text = message.text.strip()
            if text and text not in self.texts:
                self.texts.append(text)
        elif kind == "COMMAND_ACK":
            self.answer = _RESULTS.get(message.result, str(message.result))

    def write(self, data: bytes) -> None:
        """Send a message that pymavlink has packed."""
        with suppress(ConnectionRefusedError, BlockingIOError):  # PX4 is not there yet, or no more
            self._api.sendto(data, self._address)

    def send_heartbeat(self) -> None:
        """Send PX4 the heartbeat of an operator."""
        self._mavlink.heartbeat_send(mavlink.MAV_TYPE_GCS, mavlink.MAV_AUTOPILOT_INVALID, 0, 0, 0)

    def send_setpoint(
        self,
        time_ms: int,
        position: Array,
        velocity: Array,
        acceleration: Array,
        yaw_rad: float,
        yaw_rate_rad_s: float,
    ) -> None:
        """Send a set-point in PX4's local frame, NED, vectors (3,); NaN leaves a part out.

        `time_ms` is PX4's time; yaw [rad] is from north, clockwise.
        """
        values = np.array([*position, *velocity, *acceleration, yaw_rad, yaw_rate_rad_s])
        bits = np.array([1, 2, 4, 8, 16, 32, 64, 128, 256, 1024, 2048])
        left_out = np.isnan(values)
        self._mavlink.set_position_target_local_ned_send(
            time_ms,
            self._system,
            1,
            mavlink.MAV_FRAME_LOCAL_NED,
            int(bits[left_out].sum()),
            *np.where(left_out, 0.0, values).tolist(),
        )

    def set_origin(self, latitude_deg: float, longitude_deg: float, altitude_m: float) -> None:
        """Say where the local frame is to begin; altitude above mean sea level."""
        self._mavlink.set_gps_global_origin_send(
            self._system,
            round(latitude_deg * 1e7),
            round(longitude_deg * 1e7),
            round(altitude_m * 1e3),
        )

    def ask_offboard(self) -> None:
        """Ask for offboard mode."""
        self._command(
            mavlink.MAV_CMD_DO_SET_MODE, mavlink.MAV_MODE_FLAG_CUSTOM_MODE_ENABLED, OFFBOARD
        )

    def ask_arm(self) -> None:
        """Ask to arm, with all of PX4's checks."""
        self._command(mavlink.MAV_CMD_COMPONENT_ARM_DISARM, 1)

    def disarm(self) -> None:
        """Switch the motors off, in flight too."""
        self._command(mavlink.MAV_CMD_COMPONENT_ARM_DISARM, 0, FORCED)

    def _command(self, command: int, *parameters: float) -> None:
        padded = [*parameters, *[0.0] * (7 - len(parameters))]
        self._mavlink.command_long_send(self._system, 1, command, 0, *padded)


# ---------- The simulator's link: sensors out, motor commands back, in lockstep (MAVLink HIL)

FIELDS_IMU = 0x003F
FIELDS_ALL = 0x1BFF
"""Accelerometer, gyro, magnetometer, pressure, altitude, temperature; no differential pressure."""

GPS_EPH_CM = 30
GPS_EPV_CM = 40
"""Accuracy that the receiver claims; PX4 waits for less than 3 and 5 m."""

SATELLITES = 14
MAX_CONTROLS = 16
CLOSED = "closed the simulator link"


class HilLink:
    """Connection to one PX4.

    Attributes:
        answering: Whether the first answer has come; from then on every frame gets one.
        controls: Latest motor commands in [0, 1], (16,).
    """

    def __init__(self, connection: socket.socket, fail: Callable[[str], NoReturn]) -> None:
        """Take over an accepted connection; `fail` raises an error when PX4 has closed it."""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = connection
        self._fail = fail
        self._mavlink = mavlink.MAVLink(None, srcSystem=1, srcComponent=1)
        self._mavlink.robust_parsing = True
        self._answered_us = 0
        self.answering = False
        self.controls = np.zeros(MAX_CONTROLS)
        self.armed = False

    def send(self, time_us: int, sample: Px4Sample, drone: int) -> None:
        """Send the sensors of a drone (from 0); `time_us` is simulated time, PX4's only clock."""
        messages = [_hil_sensor(time_us, sample, drone)]
        if sample.fix is not None:
            # PX4 stamps it on arrival, so it goes before the sensor frame that moves the clock.
            messages.insert(0, _hil_gps(time_us, sample.fix, drone))
        try:
            self._connection.sendall(b"".join(self._pack(m) for m in messages))
        except OSError:
            self._fail(CLOSED)

    def receive(self, time_us: int, patience_s: float) -> bool:
        """Wait, so long in wall-clock time, for the answer to the frame of a time."""
        deadline = monotonic() + patience_s
        while self._answered_us < time_us:
            wait_s = deadline - monotonic()
            if wait_s <= 0.0:
                return False
            self._connection.settimeout(wait_s)
            try:
                data = self._connection.recv(4096)
            except TimeoutError:
                return False
            except OSError:
                data = b""
            if not data:
                self._fail(CLOSED)
            for message in self._mavlink.parse_buffer(data) or ():
                if message.get_type() == "HIL_ACTUATOR_CONTROLS":
                    self._take(message)
        return True

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _take(self, message: mavlink.MAVLink_hil_actuator_controls_message) -> None:
        self._answered_us = message.time_usec
        self.answering = True
        self.controls[:] = message.controls
        self.armed = bool(message.mode & mavlink.MAV_MODE_FLAG_SAFETY_ARMED)

    def _pack(self, message: mavlink.MAVLink_message) -> bytes:
        data = message.pack(self._mavlink)
        self._mavlink.seq = (self._mavlink.seq + 1) % 256
        return data


def _hil_sensor(time_us: int, sample: Px4Sample, drone: int) -> mavlink.MAVLink_hil_sensor_message:
    force = sample.specific_force_frd_m_s2[drone].tolist()
    omega = sample.omega_frd_rad_s[drone].tolist()
    field = sample.magnetic_frd_gauss
    pressure = sample.pressure_hpa
    altitude = sample.altitude_m
    slow = [0.0] * 6
    fields = FIELDS_IMU
    if field is not None and pressure is not None and altitude is not None:
        slow = [*field[drone].tolist(), float(pressure[drone]), 0.0, float(altitude[drone])]
        fields = FIELDS_ALL
    return mavlink.MAVLink_hil_sensor_message(
        time_us, *force, *omega, *slow, TEMPERATURE_DEG_C, fields
    )


def _hil_gps(time_us: int, fix: Fix, drone: int) -> mavlink.MAVLink_hil_gps_message:
    north, east, down = (round(100.0 * v) for v in fix.velocity_ned_m_s[drone].tolist())
    course = np.rad2deg(np.arctan2(east, north)) % 360.0
    return mavlink.MAVLink_hil_gps_message(
        time_us,
        mavlink.GPS_FIX_TYPE_3D_FIX,
        round(1e7 * float(fix.latitude_deg[drone])),
        round(1e7 * float(fix.longitude_deg[drone])),
        round(1e3 * float(fix.altitude_m[drone])),
        GPS_EPH_CM,
        GPS_EPV_CM,
        round(np.hypot(north, east)),
        north,
        east,
        down,
        round(100.0 * course) % 36000,
        SATELLITES,
    )
