"""From forces to what drones are told: acceleration set-points, and moments against the cables'."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from musls_control.autopilot import DroneSetpoints
from musls_control.estimate import BodyMotion
from musls_control.payload.kernel import ALONG, FORCE, LEAN, payload_forces
from musls_control.px4_cascade.position_control import GRAVITY_M_S2
from musls_description.compiled import compiled
from musls_description.compiled_memory import block_of, borrowed, row_of, table_of
from musls_description.rotations import rotate
from musls_description.system import RigSystem
from musls_description.vectors import cross, rotate_back_by

LEAST_UPWARDS = 0.3
"""Least vertical part of a force, as an autopilot limits the tilt anyway."""


@compiled()
def payload_commands(
    estimate, reference, numbers, inertias, gains, cables, shares, null, places, room, ahead,
    integral, memory, yaws, commands,
):  # fmt: skip
    """Write forces, yaws and moments of all drones into `commands`, (n, 7).

    Other arguments are those of `payload_forces` (`numbers` its `table`), which this returns the
    result of; `yaws` are those of the drones for a load at yaw zero, (n,), and `ahead` goes on with
    the numbers of `lead_tilt`.
    """
    kept = payload_forces(
        estimate, reference, numbers, inertias, gains, cables, shares, null, places, room, ahead,
        integral, memory,
    )  # fmt: skip
    for i in range(commands.shape[0]):
        for k in range(3):
            commands[i, k] = memory[FORCE, i, k]
        commands[i, 3] = yaws[i] + reference[0, 3]
        if ahead[4] > 0.0:
            lead_tilt(ahead, memory[LEAN, i], commands[i])
    hook_moments(estimate, cables, memory[ALONG], commands)
    return kept


PACKED = (
    "table", "inertias", "gains", "cables", "shares", "null", "places", "room", "ahead",
    "integral", "memory", "yaws", "commands",
)  # fmt: skip
"""Order of the arrays of `payload_commands` in the memory of `payload_step`."""


@compiled()
def payload_step(estimate, reference, x, p):
    """Do `payload_commands` with all arrays but two in one memory, see `packed.pack`."""
    return payload_commands(
        borrowed(estimate), borrowed(reference),
        row_of(x, p[0]), block_of(x, p[1]), table_of(x, p[2]), table_of(x, p[3]),
        table_of(x, p[4]), table_of(x, p[5]), table_of(x, p[6]), table_of(x, p[7]), row_of(x, p[8]),
        row_of(x, p[9]), block_of(x, p[10]), row_of(x, p[11]), table_of(x, p[12]),
    )  # fmt: skip


@compiled()
def lead_tilt(ahead, lean, command):
    """Turn a force ahead, so that a drone that answers late is there in time.

    A drone follows a wanted tilt h = (Fx, Fy) / Fz with a lag T. It gets h + T h' instead, with h'
    smoothed by the share T / r: together (1 + T s) / (1 + T s / r), a lead.
    """
    x, y, z = command[0], command[1], command[2]
    if z <= LEAST_UPWARDS * math.sqrt(x * x + y * y + z * z):
        return
    size = math.sqrt(x * x + y * y + z * z)
    x, y = x / z, y / z
    if lean[2] == 0.0:
        lean[0], lean[1], lean[2] = x, y, 1.0
    dx, dy = ahead[4] * (x - lean[0]), ahead[4] * (y - lean[1])
    lean[0] += ahead[3] * (x - lean[0])
    lean[1] += ahead[3] * (y - lean[1])
    far = math.hypot(dx, dy)
    if far > ahead[5]:
        dx, dy = dx * ahead[5] / far, dy * ahead[5] / far
    x, y = x + dx, y + dy
    z = size / math.sqrt(x * x + y * y + 1.0)
    command[0], command[1], command[2] = x * z, y * z, z


@compiled()
def hook_moments(estimate, cables, pull, commands):
    """Write the moments against those of the cables on the drones, columns 4 to 6."""
    for i in range(pull.shape[0]):
        q, c = estimate[1 + i], cables[i]
        x, y, z = rotate_back_by(q[6:10], pull[i])
        moment = cross(c[3:6], (x, y, z))
        commands[i, 4], commands[i, 5], commands[i, 6] = moment


@compiled()
def ask_autopilot(setpoint, commands, throttle, rows):
    """Write acceleration set-points; the formulas are those of `ForcesToSetpoints`."""
    for i in range(commands.shape[0]):
        h, least, most, mean = rows[i], 1.0, 0.0, 0.0
        share = h[6]
        for k in range(throttle.shape[1]):
            mean += throttle[i, k] / throttle.shape[1]
            least, most = min(least, throttle[i, k]), max(most, throttle[i, k])
        if least > 0.01 and most < 0.99:
            h[0] += share * (mean - h[0])
            h[1] += share * (h[2] - h[1])
        x, y, z = commands[i, 0], commands[i, 1], commands[i, 2]
        size = math.sqrt(x * x + y * y + z * z)
        z = max(z, LEAST_UPWARDS * size, 1e-3)
        size = math.sqrt(x * x + y * y + z * z)
        slowest, fastest = h[4], h[5]
        collective = (math.sqrt(size / h[3]) - slowest) / (fastest - slowest)
        h[2] = max(collective, 0.0) * h[1] / h[0]
        row = setpoint[i]
        for k in range(6):
            row[k] = math.nan
        row[6], row[7] = GRAVITY_M_S2 * x / z, GRAVITY_M_S2 * y / z
        row[8] = GRAVITY_M_S2 * (h[2] * z / size - 1.0)
        if commands.shape[1] > 3:
            row[9] = commands[i, 3]


# ---------- Forces of drones as acceleration set-points of an autopilot

Array = NDArray[np.float64]

SMOOTHING_S = 0.2
"""Of motor commands and set-points, before the hover thrust is taken from them."""


class ForcesToSetpoints:
    """Turns wanted forces into the acceleration set-points that make an autopilot exert them.

    PX4 (PositionControl::_accelerationControl, MPC_ACC_DECOUPLE) points the thrust of an
    acceleration set-point (ax, ay, az) along (ax, ay, g), and makes its vertical part
    (az + g) / g times the hover thrust h. A thrust vector F, of which the rotors give |F| at the
    collective command c, thus asks for

        ax = g Fx / Fz,   ay = g Fy / Fz,   az = g (c Fz / (|F| h) - 1).

    The hover thrust is what PX4's estimator says at the time, and PX4 does not tell it. It follows
    from what the motors were commanded and from the set-points of that time: both are smoothed
    alike, and h is their quotient. That also makes up for errors of the thrust curve.
    """

    def __init__(self, system: RigSystem, setpoint: DroneSetpoints, period_s: float) -> None:
        """Read the rotors."""
        self._told = setpoint.data
        self._table = np.array(
            [
                [
                    sum(rotor.thrust_coefficient_n_s2 for rotor in drone.rotors),
                    drone.rotors[0].speed_min_rad_s,
                    drone.rotors[0].speed_max_rad_s,
                ]
                for drone in system.drones
            ]
        )
        # Smoothed motor command, smoothed quotient of command and hover thrust, the present one;
        # then the table and the share of a new sample.
        self._rows = np.zeros((system.n_drones, 7))
        self._rows[:, 3:6] = self._table
        self._rows[:, 6] = period_s / (period_s + SMOOTHING_S)
        self._hover = self._rows[:, :3]

    @property
    def hover_thrust(self) -> Array:
        """Collective command that the autopilots take for their hover, (n,)."""
        thrust: Array = self._hover[:, 0] / self._hover[:, 1]
        return thrust

    def start(self, rotor_speed_rad_s: Array, drones: BodyMotion) -> None:
        """Take over in flight: the present command is about that of hover at the present tilt.

        Rotor speeds are the present ones, (n, n_rotors).
        """
        up = rotate(drones.orientation_wxyz, np.array([0.0, 0.0, 1.0]))[:, 2]
        slowest, fastest = self._table[:, 1], self._table[:, 2]
        command = (rotor_speed_rad_s.mean(axis=1) - slowest) / (fastest - slowest)
        self._hover[:, 0] = np.maximum(command, 0.05)
        self._hover[:, 1] = self._hover[:, 2] = 1.0 / np.maximum(up, 0.5)

    def __call__(self, commands: Array, throttle: Array, drones: BodyMotion) -> None:
        """Write the set-points.

        Commands are forces of each drone's rotors, world ENU, (n, 3) [N], or with the drone's yaw
        as fourth column, (n, 4) or more; `throttle` is that of the last period, (n, n_rotors).
        """
        ask_autopilot(self._told, commands, throttle, self._rows)
