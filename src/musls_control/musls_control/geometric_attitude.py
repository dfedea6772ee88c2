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
from numpy.typing import ArrayLike, NDArray

from musls_control.estimate import BodyMotion
from musls_description.compiled import compiled
from musls_description.errors import ConfigError
from musls_description.vectors import (
    add,
    body_axes_in_world,
    cross,
    dot,
    put,
    rotate,
    scale,
    sub,
    unit,
    unit_rates,
    write_matrix,
)

Array = NDArray[np.float64]

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


class GeometricAttitude:
    """Attitude control of all drones.

    Attributes:
        drones: What is wanted, and what follows: (n,) records of `DRONE`.
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

        Raises:
            ConfigError: Shapes that do not fit, or a gain that is not positive.
        """
        inertia = np.array(inertia_kg_m2, np.float64)
        frequency = np.array(natural_frequency_rad_s, np.float64)
        damping = np.array(damping_ratio, np.float64)
        if inertia.ndim != 3 or inertia.shape[1:] != (3, 3):
            raise ConfigError(f"inertia_kg_m2 must be (n, 3, 3), not {inertia.shape}")
        for name, values in (
            ("natural_frequency_rad_s", frequency),
            ("damping_ratio", damping),
        ):
            if values.shape != (3,) or not (np.isfinite(values).all() and (values > 0.0).all()):
                raise ConfigError(f"{name} = {values.tolist()}: three positive numbers are needed")
        self.drones = np.zeros(len(inertia), DRONE)
        self.drones["inertia"] = inertia
        self._gains = np.stack([frequency**2, 2.0 * damping * frequency])

    def step(self, motion: BodyMotion) -> None:
        """Compute thrust and moment of all drones from their measured motion.

        Without a force, thrust is zero and the present direction of thrust is kept; where the force
        is along the desired heading, the present left side of the body is.
        """
        attitude_moments(self.drones, self._gains, motion.orientation_wxyz, motion.omega_body_rad_s)


@compiled()
def desired_axes(desired, force, yaw_rad, present):
    """Write the desired attitude (eq. 12 to 15 of the paper)."""
    z, size = unit(force)
    if size < SMALLEST:
        z = present[0, 2], present[1, 2], present[2, 2]
    y, size = unit(cross(z, (math.cos(yaw_rad), math.sin(yaw_rad), 0.0)))
    if size < SMALLEST:
        side = present[0, 1], present[1, 1], present[2, 1]
        y, size = unit(sub(side, scale(dot(z, side), z)))
    x = cross(y, z)
    for k in range(3):
        desired[k, 0], desired[k, 1], desired[k, 2] = x[k], y[k], z[k]


@compiled()
def attitude_moments(drones, gains, orientation, omega):
    """Compute thrust and moment of all drones, see `GeometricAttitude.step`."""
    r, d, relative = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    for i in range(drones.shape[0]):
        drone, w = drones[i], omega[i]
        write_matrix(r, body_axes_in_world(orientation[i]))
        desired_axes(d, drone.force, drone.yaw, r)
        drone.thrust = max(dot(drone.force, (r[0, 2], r[1, 2], r[2, 2])), 0.0)
        for a in range(3):  # R^T R_d: from the desired frame to the body's
            for b in range(3):
                relative[a, b] = r[0, a] * d[0, b] + r[1, a] * d[1, b] + r[2, a] * d[2, b]
        error = (
            0.5 * (relative[1, 2] - relative[2, 1]),
            0.5 * (relative[2, 0] - relative[0, 2]),
            0.5 * (relative[0, 1] - relative[1, 0]),
        )
        feed = rotate(relative, drone.rate)
        ahead = sub(rotate(relative, drone.acceleration), cross(w, feed))
        rate_error = sub(w, feed)
        control = (
            -gains[0, 0] * error[0] - gains[1, 0] * rate_error[0],
            -gains[0, 1] * error[1] - gains[1, 1] * rate_error[1],
            -gains[0, 2] * error[2] - gains[1, 2] * rate_error[2],
        )
        gyroscopic = cross(w, rotate(drone.inertia, w))
        put(drone.moment, add(gyroscopic, rotate(drone.inertia, add(ahead, control))))


@compiled()
def reference_rates(force, force_rate, force_acceleration, yaw, rate, acceleration):
    """Body rate and angular acceleration of the desired attitude, in its own frame.

    The desired axes are differentiated: b3 = F / |F|, b2 = b3 x c / |b3 x c| with the heading c,
    b1 = b2 x b3; then hat(W) = R^T R', hat(W') = R^T R'' - hat(W)^2.
    """
    axes = np.empty((3, 3, 3))  # order of the derivative, world component, body axis
    for i in range(force.shape[0]):
        b3 = unit_rates(force[i], force_rate[i], force_acceleration[i])
        cos, sin = math.cos(yaw[i, 0]), math.sin(yaw[i, 0])
        turn, turn_rate = yaw[i, 1], yaw[i, 2]
        heading = (
            (cos, sin, 0.0),
            (-turn * sin, turn * cos, 0.0),
            (-turn_rate * sin - turn * turn * cos, turn_rate * cos - turn * turn * sin, 0.0),
        )
        b2 = unit_rates(*_product(b3, heading))
        b1 = _product(b2, b3)
        for order in range(3):
            for a in range(3):
                axes[order, a, 0] = b1[order][a]
                axes[order, a, 1] = b2[order][a]
                axes[order, a, 2] = b3[order][a]
        for a in range(3):
            b, c = (a + 1) % 3, (a + 2) % 3
            rate[i, a] = (
                axes[0, 0, c] * axes[1, 0, b]
                + axes[0, 1, c] * axes[1, 1, b]
                + axes[0, 2, c] * axes[1, 2, b]
            )
        for a in range(3):
            b, c = (a + 1) % 3, (a + 2) % 3
            second = (
                axes[0, 0, c] * axes[2, 0, b]
                + axes[0, 1, c] * axes[2, 1, b]
                + axes[0, 2, c] * axes[2, 2, b]
            )
            acceleration[i, a] = second - rate[i, b] * rate[i, c]  # hat(W)^2 = W W^T - |W|^2


@compiled()
def _product(a, b):
    """Cross product of two vectors with two derivatives each."""
    one = add(cross(a[1], b[0]), cross(a[0], b[1]))
    middle = cross(a[1], b[1])
    two = add(add(cross(a[2], b[0]), scale(2.0, middle)), cross(a[0], b[2]))
    return cross(a[0], b[0]), one, two
