"""From thrust and moment per drone to rotor speeds, through the true geometry of the rotors.

Rotor i at (x_i, y_i) with thrust t_i >= 0 and moment ratio c_i (positive for counter-clockwise
rotors, whose reaction turns the body clockwise) gives, body FLU,

    f = sum t_i,   M = sum (y_i t_i, -x_i t_i, -c_i t_i),

and the smallest thrusts with a given wrench are its pseudo-inverse. What the rotors cannot deliver
is given up in this order, as in M. Faessler, D. Falanga, D. Scaramuzza, "Thrust mixing, saturation,
and body-rate control for accurate aggressive quadrotor flight", IEEE RA-L 2017: yaw first, then
thrust as far as roll and pitch need, then roll and pitch, both by the same share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import compiled
from musls_description.system.drone import Drone, thrust_limits_n, wrench_of_thrusts

ROTOR = np.dtype(
    [
        ("thrust", np.float64),  # newtons of this rotor per newton of the drone's thrust
        ("roll", np.float64),  # ... per newton metre about each axis of the body
        ("pitch", np.float64),
        ("yaw", np.float64),
        ("least_n", np.float64),
        ("most_n", np.float64),
        ("coefficient_n_s2", np.float64),  # thrust over speed squared
    ]
)


class RotorMixer:
    """Rotor speeds of all drones.

    Attributes:
        rotors: Shares and limits of each rotor, (n, n_rotors) of `ROTOR`.
    """

    def __init__(self, drones: Sequence[Drone]) -> None:
        """Invert the geometry."""
        counts = {len(drone.rotors) for drone in drones}
        if len(counts) != 1:
            raise ConfigError(f"all drones need the same number of rotors, not {sorted(counts)}")
        self.n_drones, self.n_rotors = len(drones), counts.pop()
        self.rotors = np.zeros((self.n_drones, self.n_rotors), ROTOR)
        for number, (rotors, drone) in enumerate(zip(self.rotors, drones, strict=True), 1):
            effect = wrench_of_thrusts(drone)
            scale = np.abs(effect).max(axis=1, keepdims=True)
            possible = (scale > 0.0).all() and np.linalg.matrix_rank(effect / scale, 1e-6) == 4
            inverse = np.linalg.pinv(effect) if possible else np.zeros((self.n_rotors, 4))
            if not possible or inverse[:, 0].min() <= 0.0:
                raise ConfigError(
                    f"drone_{number}: these rotors cannot control roll, pitch, yaw and thrust "
                    "independently"
                )
            for name, column in zip(("thrust", "roll", "pitch", "yaw"), inverse.T, strict=True):
                rotors[name] = column
            rotors["least_n"], rotors["most_n"] = thrust_limits_n(drone)
            rotors["coefficient_n_s2"] = [r.thrust_coefficient_n_s2 for r in drone.rotors]

    def step(self, thrust_n: Array, moment_body_n_m: Array, speed_rad_s: Array) -> None:
        """Write rotor speeds, (n, n_rotors), for thrusts, (n,), and body moments, (n, 3)."""
        mix(self.rotors, thrust_n, moment_body_n_m, speed_rad_s)


@compiled()
def mix(all_rotors, thrust, moment, speed):
    """Compute rotor speeds, see `RotorMixer.step`."""
    for i in range(all_rotors.shape[0]):
        rotors, wanted = all_rotors[i], speed[i]
        tilting_share(rotors, moment[i, 0], moment[i, 1], wanted)
        collective = nearest_collective(rotors, wanted, thrust[i])
        share = 1.0
        for k in range(wanted.shape[0]):
            rotor = rotors[k]
            wanted[k] += collective * rotor.thrust
            yaw = rotor.yaw * moment[i, 2]
            if yaw > 0.0:
                share = min(share, (rotor.most_n - wanted[k]) / yaw)
            elif yaw < 0.0:
                share = min(share, (rotor.least_n - wanted[k]) / yaw)
        share = max(share, 0.0)
        for k in range(wanted.shape[0]):
            rotor = rotors[k]
            newtons = wanted[k] + share * rotor.yaw * moment[i, 2]
            newtons = min(max(newtons, rotor.least_n), rotor.most_n)  # rounding
            wanted[k] = math.sqrt(newtons / rotor.coefficient_n_s2)


@compiled()
def tilting_share(rotors, roll, pitch, tilting):
    """Write the thrusts that roll and pitch need, scaled down so that some collective fits.

    With b_k = tilting thrust and c_k = share of the collective, a collective a fits all rotors if
    least_k <= s b_k + a c_k <= most_k; two rotors k, l leave room for one as long as
    s (b_l / c_l - b_k / c_k) <= most_l / c_l - least_k / c_k.
    """
    n = tilting.shape[0]
    for k in range(n):
        tilting[k] = rotors[k].roll * roll + rotors[k].pitch * pitch
    share = 1.0
    for k in range(n):
        one = rotors[k]
        for m in range(n):
            other = rotors[m]
            slope = tilting[m] / other.thrust - tilting[k] / one.thrust
            room = other.most_n / other.thrust - one.least_n / one.thrust
            if slope * share > room and slope > 0.0:
                share = max(room / slope, 0.0)
    for k in range(n):
        tilting[k] *= share


@compiled()
def nearest_collective(rotors, tilting, thrust):
    """Return the thrust nearest to a wanted one that leaves all rotors in their limits."""
    low, high = -math.inf, math.inf
    for k in range(tilting.shape[0]):
        rotor = rotors[k]
        low = max(low, (rotor.least_n - tilting[k]) / rotor.thrust)
        high = min(high, (rotor.most_n - tilting[k]) / rotor.thrust)
    if low > high:  # rounding: the share was chosen so that they meet
        low = high = 0.5 * (low + high)
    return min(max(thrust, low), high)
