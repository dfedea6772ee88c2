"""From forces of drones to the acceleration set-points that make an autopilot exert them."""

from __future__ import annotations

import math

import numpy as np

from musls_control.autopilot import DroneSetpoints
from musls_control.controllers.payload.cable_law import MIN_UPWARDS
from musls_control.estimate import BodyMotion
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import compiled
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2 as GRAVITY_M_S2
from musls_description.numerics.rotations import rotate
from musls_description.numerics.vectors import norm
from musls_description.system.slung_system import RigSystem

SMOOTHING_S = 0.2
"""Of motor commands and set-points, before the hover thrust is taken from them."""

THRUST = np.dtype(
    [
        ("command", float),  # mean of the motors, smoothed
        ("ratio", float),  # collective command over hover thrust, smoothed
        ("ratio_now", float),
        ("coefficient", float),  # thrust of all rotors over their squared speed
        ("slowest", float),  # speeds of the rotors for the commands 0 and 1
        ("fastest", float),
        ("share", float),  # of a new sample
    ]
)
"""Estimated thrust of a drone."""


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
        self._asked = setpoint.data
        self.thrust = np.zeros(system.n_drones, THRUST)
        self.thrust["share"] = period_s / (period_s + SMOOTHING_S)
        for row, drone in zip(self.thrust, system.drones, strict=True):
            row["coefficient"] = sum(rotor.thrust_coefficient_n_s2 for rotor in drone.rotors)
            row["slowest"] = drone.rotors[0].speed_min_rad_s
            row["fastest"] = drone.rotors[0].speed_max_rad_s

    @property
    def hover_thrust(self) -> Array:
        """Collective command that the autopilots take for their hover, (n,)."""
        return np.asarray(self.thrust["command"] / self.thrust["ratio"])

    def throttle(self, rotor_speed_rad_s: Array) -> Array:
        """Motor commands that give rotor speeds, (n, n_rotors)."""
        slowest, fastest = self.thrust["slowest"][:, None], self.thrust["fastest"][:, None]
        return np.asarray((rotor_speed_rad_s - slowest) / (fastest - slowest))

    def start(
        self, rotor_speed_rad_s: Array, drones: BodyMotion, hover_thrust: Array | None = None
    ) -> None:
        """Take over in flight from the present rotor speeds, (n, n_rotors).

        `hover_thrust`: the autopilots', (n,); where they do not tell it, the present command is
        about that of hover at the present tilt.
        """
        up = rotate(drones.orientation_wxyz, np.array([0.0, 0.0, 1.0]))[:, 2]
        command = np.maximum(self.throttle(rotor_speed_rad_s).mean(axis=1), 0.05)
        ratio = 1.0 / np.maximum(up, 0.5) if hover_thrust is None else command / hover_thrust
        self.thrust["command"] = command
        self.thrust["ratio"] = self.thrust["ratio_now"] = ratio

    def __call__(self, commands: Array, throttle: Array) -> None:
        """Write the set-points.

        Commands are forces of each drone's rotors, world ENU, (n, 3) [N], or with the drone's yaw
        as fourth column, (n, 4) or more; `throttle` is that of the last period, (n, n_rotors).
        """
        ask_autopilot(self._asked, commands, throttle, self.thrust)


@compiled()
def ask_autopilot(setpoint, commands, throttle, thrust):
    """Write acceleration set-points; the formulas are those of `ForcesToSetpoints`."""
    for i in range(commands.shape[0]):
        drone, command = thrust[i], throttle[i]
        if command.min() > 0.01 and command.max() < 0.99:
            drone.command += drone.share * (command.mean() - drone.command)
            drone.ratio += drone.share * (drone.ratio_now - drone.ratio)
        x, y, z = commands[i, 0], commands[i, 1], commands[i, 2]
        z = max(z, MIN_UPWARDS * norm((x, y, z)), 1e-3)
        size = norm((x, y, z))
        speed = math.sqrt(size / drone.coefficient)
        collective = (speed - drone.slowest) / (drone.fastest - drone.slowest)
        drone.ratio_now = max(collective, 0.0) * drone.ratio / drone.command
        row = setpoint[i]
        row[:6] = math.nan
        row[6], row[7] = GRAVITY_M_S2 * x / z, GRAVITY_M_S2 * y / z
        row[8] = GRAVITY_M_S2 * (drone.ratio_now * z / size - 1.0)
        if commands.shape[1] > 3:
            row[9] = commands[i, 3]
