"""The simulator's link to one PX4: sensors out, motor commands back, in lockstep (MAVLink HIL)."""

from __future__ import annotations

import socket
from time import monotonic

import numpy as np
from numpy.typing import NDArray
from pymavlink.dialects.v20 import common as mavlink

from musls_sim.px4.sensors import TEMPERATURE_DEG_C, Fix, Sample

Array = NDArray[np.float64]

FIELDS_IMU = 0x003F
FIELDS_ALL = 0x1BFF
"""Accelerometer, gyro, magnetometer, pressure, altitude, temperature; no differential pressure."""

GPS_EPH_CM, GPS_EPV_CM = 30, 40
"""Accuracy that the receiver claims; PX4 waits for less than 3 and 5 m."""

SATELLITES = 14
MAX_CONTROLS = 16


class LinkError(Exception):
    """PX4 closed the connection or does not answer; the message says which."""


class HilLink:
    """Connection to one PX4.

    Attributes:
        answering: Whether the first answer has come; from then on every frame gets one.
        controls: Latest motor commands in [0, 1], (16,).
        armed: Whether PX4 says it is armed.
    """

    def __init__(self, connection: socket.socket) -> None:
        """Take over an accepted connection."""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = connection
        self._mavlink = mavlink.MAVLink(None, srcSystem=1, srcComponent=1)
        self._mavlink.robust_parsing = True
        self._answered_us = 0
        self.answering = False
        self.controls = np.zeros(MAX_CONTROLS)
        self.armed = False

    def send(self, time_us: int, sample: Sample, drone: int) -> None:
        """Send one drone's sensors.

        Args:
            time_us: Simulated time, PX4's only clock.
            sample: Sensors of all drones.
            drone: Which one, from 0.

        Raises:
            LinkError: PX4 has closed the connection.
        """
        messages = [_hil_sensor(time_us, sample, drone)]
        if sample.fix is not None:
            # PX4 stamps it on arrival, so it goes before the sensor frame that moves the clock.
            messages.insert(0, _hil_gps(time_us, sample.fix, drone))
        try:
            self._connection.sendall(b"".join(self._pack(m) for m in messages))
        except OSError as error:
            raise LinkError("closed the simulator link") from error

    def receive(self, time_us: int, patience_s: float) -> bool:
        """Wait for the answer to the frame of a time.

        Args:
            time_us: The frame's time.
            patience_s: How long to wait, wall-clock time.

        Returns:
            Whether it came.

        Raises:
            LinkError: PX4 has closed the connection.
        """
        deadline = monotonic() + patience_s
        while self._answered_us < time_us:
            left = deadline - monotonic()
            if left <= 0.0:
                return False
            self._connection.settimeout(left)
            try:
                data = self._connection.recv(4096)
            except TimeoutError:
                return False
            except OSError as error:
                raise LinkError("closed the simulator link") from error
            if not data:
                raise LinkError("closed the simulator link")
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


def _hil_sensor(time_us: int, sample: Sample, drone: int) -> mavlink.MAVLink_hil_sensor_message:
    force = sample.specific_force_frd_m_s2[drone].tolist()
    omega = sample.omega_frd_rad_s[drone].tolist()
    field, pressures, altitudes = (
        sample.magnetic_frd_gauss,
        sample.pressure_hpa,
        sample.altitude_m,
    )
    if field is None or pressures is None or altitudes is None:
        magnetic, pressure, altitude = [0.0, 0.0, 0.0], 0.0, 0.0
        fields = FIELDS_IMU
    else:
        magnetic = field[drone].tolist()
        pressure, altitude = float(pressures[drone]), float(altitudes[drone])
        fields = FIELDS_ALL
    return mavlink.MAVLink_hil_sensor_message(
        time_us, *force, *omega, *magnetic, pressure, 0.0, altitude, TEMPERATURE_DEG_C, fields
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
