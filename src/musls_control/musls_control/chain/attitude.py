"""From a desired force vector per drone to thrust and moment: geometric attitude control on SO(3).

T. Lee, M. Leok, N. H. McClamroch, "Geometric tracking control of a quadrotor UAV on SE(3)", IEEE
CDC 2010, eq. 10 to 23, for body frames FLU (z along the thrust). With R_d the attitude whose z axis
is along the desired force F and whose x axis looks along the desired yaw:

    f   = F . R e3
    e_R = 1/2 vee(R_d^T R - R^T R_d),     e_W = W - R^T R_d W_d
    M   = J (-wn^2 e_R - 2 zeta wn e_W) + W x J W - J (W x R^T R_d W_d - R^T R_d dW_d/dt)

The gains are multiplied by the inertia, so that a small error about axis i obeys
e'' + 2 zeta_i wn_i e' + wn_i^2 e = 0 whatever the drone's size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from musls_control.estimate import BodyMotion
from musls_control.px4.allocation import rotor_lag_s
from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import (
    add,
    body_axes_in_world,
    column,
    cross,
    dot,
    elementwise,
    put,
    rotate,
    rotate_back,
    scale,
    sub,
    unit,
    unit_rates,
    write_matrix,
)
from musls_description.system.drone import Drone

SMALLEST = 1e-9
"""Forces [N] and cross products below this have no direction."""

DRONE = np.dtype(
    [
        ("inertia", np.float64, (3, 3)),  # about the centre of mass, body frame
        ("force", np.float64, 3),  # wanted, weight included [N, ENU]
        ("yaw", np.float64),  # wanted
        ("rate", np.float64, 3),  # of the wanted attitude in its own frame, `reference_rates`
        ("acceleration", np.float64, 3),  # its derivative
        ("thrust", np.float64),  # result along the body's z axis, never negative
        ("moment", np.float64, 3),  # result [N m, body]
    ]
)


BANDWIDTH = 0.3
"""Natural frequency of roll and pitch times the time constant of the rotors; 12 rad/s for an x500.
Higher ones let the lag of the rotors eat up the damping."""


def tilting_rad_s(drones: Sequence[Drone]) -> float:
    """Natural frequency of roll and pitch that suits the rotors of all drones."""
    return BANDWIDTH / max(rotor_lag_s(drone) for drone in drones)


class GeometricAttitude:
    """Attitude control of all drones.

    Attributes:
        drones: What is wanted, and what follows: (n,) records of `DRONE`.
        gains: On the error of attitude [1/s^2] and of body rate [1/s], (2, 3).
    """

    def __init__(
        self,
        inertia_kg_m2: ArrayLike,
        natural_frequency_rad_s: Sequence[float] = (12.0, 12.0, 4.0),
        damping_ratio: Sequence[float] = (0.8, 0.8, 0.8),
    ) -> None:
        """Choose gains.

        Inertias are about the centres of mass, body frames, (n, 3, 3). Natural frequencies and
        damping ratios are those of roll, pitch, yaw, (3,); frequencies well below the inverse of
        the rotors' time constant.
        """
        inertia = np.array(inertia_kg_m2, np.float64)
        frequency = np.array(natural_frequency_rad_s, np.float64)
        damping = np.array(damping_ratio, np.float64)
        self.drones = np.zeros(len(inertia), DRONE)
        self.drones["inertia"] = inertia
        self.gains = np.stack([frequency**2, 2.0 * damping * frequency])

    @classmethod
    def of(cls, drones: Sequence[Drone]) -> GeometricAttitude:
        """Make the control of drones with gains that suit their rotors; yaw is slower."""
        tilting = tilting_rad_s(drones)
        inertia = np.array([drone.inertia_kg_m2 for drone in drones])
        return cls(inertia, (tilting, tilting, tilting / 3.0))

    def step(self, motion: BodyMotion) -> None:
        """Compute thrust and moment of all drones from their measured motion.

        Without a force, thrust is zero and the present direction of thrust is kept; where the force
        is along the desired heading, the present left side of the body is.
        """
        attitude_moments(self.drones, self.gains, motion.orientation_wxyz, motion.omega_body_rad_s)


@compiled()
def desired_axes(desired, force, yaw_rad, present):
    """Write the desired attitude (eq. 12 to 15 of the paper)."""
    z, size = unit(force)
    if size < SMALLEST:
        z = column(present, 2)
    y, size = unit(cross(z, (math.cos(yaw_rad), math.sin(yaw_rad), 0.0)))
    if size < SMALLEST:
        side = column(present, 1)
        y, size = unit(sub(side, scale(dot(z, side), z)))
    write_matrix(desired, (*cross(y, z), *y, *z))


@compiled()
def attitude_error(r, desired):
    """Return the error 1/2 vee(Q - Q^T), Q = R^T R_d, positive towards the desired attitude."""
    x, y, z = column(r, 0), column(r, 1), column(r, 2)
    x_d, y_d, z_d = column(desired, 0), column(desired, 1), column(desired, 2)
    return (
        0.5 * (dot(z, y_d) - dot(y, z_d)),
        0.5 * (dot(x, z_d) - dot(z, x_d)),
        0.5 * (dot(y, x_d) - dot(x, y_d)),
    )


@compiled()
def attitude_moments(drones, gains, orientation, omega):
    """Compute thrust and moment of all drones, see `GeometricAttitude.step`."""
    r, desired = np.empty((3, 3)), np.empty((3, 3))
    for i in range(drones.shape[0]):
        drone, w = drones[i], omega[i]
        write_matrix(r, body_axes_in_world(orientation[i]))
        desired_axes(desired, drone.force, drone.yaw, r)
        drone.thrust = max(dot(drone.force, column(r, 2)), 0.0)
        feed = rotate_back(r, rotate(desired, drone.rate))
        ahead = sub(rotate_back(r, rotate(desired, drone.acceleration)), cross(w, feed))
        error = elementwise(gains[0], attitude_error(r, desired))
        control = add(error, elementwise(gains[1], sub(feed, w)))
        gyroscopic = cross(w, rotate(drone.inertia, w))
        put(drone.moment, add(gyroscopic, rotate(drone.inertia, add(ahead, control))))


@compiled()
def reference_rates(force, force_rate, force_acceleration, yaw):
    """Return body rate and angular acceleration of a desired attitude, in its own frame.

    `yaw` is the wanted one with two derivatives. The desired axes are differentiated:
    b3 = F / |F|, b2 = b3 x c / |b3 x c| with the heading c, b1 = b2 x b3; then
    hat(W) = R^T R', hat(W') = R^T R'' - hat(W)^2, with hat(W)^2 = W W^T - |W|^2.
    """
    b3 = unit_rates(force, force_rate, force_acceleration)
    cos, sin, turn, turn_rate = math.cos(yaw[0]), math.sin(yaw[0]), yaw[1], yaw[2]
    heading = (
        (cos, sin, 0.0),
        (-turn * sin, turn * cos, 0.0),
        (-turn_rate * sin - turn * turn * cos, turn_rate * cos - turn * turn * sin, 0.0),
    )
    b2 = unit_rates(*_product(b3, heading))
    b1 = _product(b2, b3)
    x, y, z = dot(b3[0], b2[1]), dot(b1[0], b3[1]), dot(b2[0], b1[1])
    second = dot(b3[0], b2[2]), dot(b1[0], b3[2]), dot(b2[0], b1[2])
    return (x, y, z), sub(second, (y * z, z * x, x * y))


@compiled()
def _product(a, b):
    """Cross product of two vectors with two derivatives each."""
    one = add(cross(a[1], b[0]), cross(a[0], b[1]))
    middle = cross(a[1], b[1])
    two = add(add(cross(a[2], b[0]), scale(2.0, middle)), cross(a[0], b[2]))
    return cross(a[0], b[0]), one, two
