"""Inner control loops down to the rotors: attitude, body rates, INDI, mixing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import ArrayLike

from musls_control.autopilot import DroneSetpoints
from musls_control.estimate import BodyMotion
from musls_control.px4.allocation import rotor_lag_s
from musls_description.config.errors import ConfigError
from musls_description.numerics import rotations
from musls_description.numerics.arrays import Array, Records
from musls_description.numerics.compiled import compiled
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2 as GRAVITY_M_S2
from musls_description.numerics.vectors import (
    add,
    body_axes_in_world,
    column,
    cross,
    dot,
    elementwise,
    increase,
    norm,
    put,
    rotate,
    rotate_back,
    rotate_by,
    scale,
    sub,
    unit,
    unit_rates,
    write_matrix,
)
from musls_description.system.drone import (
    CANNOT_STEER,
    Drone,
    can_steer,
    thrust_limits_n,
    wrench_of_thrusts,
)
from musls_description.system.slung_system import RigSystem

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
        ("unmodelled_force", np.float64, 3),  # what `Incremental` finds, else 0 [N, ENU]
        ("unmodelled_moment", np.float64, 3),  # likewise [N m, body]
    ],
    align=True,
)


BANDWIDTH = 0.3
"""Natural frequency of roll and pitch times the time constant of the rotors; 12 rad/s for an x500.
Higher ones let the lag of the rotors eat up the damping."""

DAMPING = 0.8
"""Damping ratio of the attitude."""


def tilting_rad_s(drones: Sequence[Drone]) -> float:
    """Natural frequency of roll and pitch that suits the rotors of all drones."""
    return BANDWIDTH / max(rotor_lag_s(drone) for drone in drones)


class GeometricAttitude:
    """Geometric attitude control on SO(3): thrust and moment of each drone for a wanted force.

    T. Lee, M. Leok, N. H. McClamroch, "Geometric tracking control of a quadrotor UAV on SE(3)",
    IEEE CDC 2010, eq. 10 to 23, for body frames FLU (z along the thrust). With R_d the attitude
    whose z axis is along the desired force F and whose x axis looks along the desired yaw:

        f   = F . R e3
        e_R = 1/2 vee(R_d^T R - R^T R_d),     e_W = W - R^T R_d W_d
        M   = J (-wn^2 e_R - 2 zeta wn e_W) + W x J W - J (W x R^T R_d W_d - R^T R_d dW_d/dt)

    The gains are multiplied by the inertia, so that a small error about axis i obeys
    e'' + 2 zeta_i wn_i e' + wn_i^2 e = 0 for any drone's size.

    Attributes:
        drones: Set-points and outputs: (n,) records of `DRONE`.
        gains: Gains of attitude error [1/s^2] and body-rate error [1/s], (2, 3).
    """

    def __init__(
        self,
        inertia_kg_m2: ArrayLike,
        natural_frequency_rad_s: Sequence[float] = (12.0, 12.0, 4.0),
        damping_ratio: Sequence[float] = (DAMPING, DAMPING, DAMPING),
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
    x_d = column(desired, 0)
    y_d = column(desired, 1)
    z_d = column(desired, 2)
    return (
        0.5 * (dot(z, y_d) - dot(y, z_d)),
        0.5 * (dot(x, z_d) - dot(z, x_d)),
        0.5 * (dot(y, x_d) - dot(x, y_d)),
    )


@compiled()
def attitude_moments(drones, gains, orientation, omega):
    """Compute thrust and moment of all drones from their measured motion.

    Without a force, thrust is zero and the present direction of thrust is kept; where the force
    is along the desired heading, the present left side of the body is.
    """
    r = np.empty((3, 3))
    desired = np.empty((3, 3))
    for i in range(drones.shape[0]):
        drone = drones[i]
        w = omega[i]
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
    cos = math.cos(yaw[0])
    sin = math.sin(yaw[0])
    turn = yaw[1]
    turn_rate = yaw[2]
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


# ---------- Body rates


LARGEST_MISS_RAD = 0.3
"""Largest integral of the error of a body rate."""

RATE = np.dtype(
    [
        ("inertia", float, (3, 3)),
        ("gain", float, 3),  # K, about each axis of the body [1/s]
        ("missed", float, 3),  # integral of the error [rad]
    ],
    align=True,
)
"""Memory of the rate controller of a drone."""


def rate_control(drones: Sequence[Drone]) -> Records:
    """The rate controllers of drones, (n,) of `RATE`, with gains that suit their rotors."""
    records: Records = np.zeros(len(drones), RATE)
    records["inertia"] = [drone.inertia_kg_m2 for drone in drones]
    records["gain"] = np.array([2.0, 2.0, 1.0]) * tilting_rad_s(drones)
    return records


@compiled()
def rate_moments(drones, wanted, omega, period, moment):
    """Compute the moments that bring body rates to the wanted ones, (n, 3).

    J w' = J (K e + K^2 / 8 int e), e = w_d - w: damped by sqrt(2), and the integral (at most
    `LARGEST_MISS_RAD`) carries the moment of a cable that pulls beside the middle.
    """
    for i in range(len(drones)):
        drone = drones[i]
        w = omega[i]
        error = sub(wanted[i], w)
        k = drone.gain
        for axis in range(3):
            miss_rad = drone.missed[axis] + period * error[axis]
            drone.missed[axis] = min(max(miss_rad, -LARGEST_MISS_RAD), LARGEST_MISS_RAD)
        integral = elementwise(scale(1.0 / 8.0, elementwise(k, k)), drone.missed)
        turning = rotate(drone.inertia, add(elementwise(k, error), integral))
        put(moment[i], add(turning, cross(w, rotate(drone.inertia, w))))


# ---------- Incremental control


CUT_OFF_HZ = 8.0
"""Cut-off frequency of the filter; its delay is 0.225 / CUT_OFF_HZ, 28 ms."""

SMOOTHED = np.dtype([("value", float, 3), ("past", float, (2, 3))], align=True)
"""A filtered vector and the filter's memory (direct form II, transposed)."""

SENSED = np.dtype(
    [
        ("mass", float),
        ("inertia", float, (3, 3)),
        ("rate", float, 3),  # body rate of the period before
        ("counted", float, 3),  # f_c, late as the thrust is
        ("share", float, 3),  # of a new sample in it
        ("begun", float),  # 0 before the first sample
        ("filter", float, 5),  # coefficients of H
        ("force", SMOOTHED),  # f - f_c, world [N]
        ("moment", SMOOTHED),  # tau - tau_c, body [N m]
    ],
    align=True,
)
"""Memory of an incremental controller for a drone."""


class Incremental:
    """Measured and modelled forces and moments of all drones.

    E. Tal and S. Karaman, "Accurate tracking of aggressive quadrotor trajectories using incremental
    nonlinear dynamic inversion and differential flatness", IEEE TCST 2021; S. Sun et al., "Agile
    and cooperative aerial manipulation of a cable-suspended load", Science Robotics 2025, with the
    force of the cable. From accelerometer, gyro and rotor speeds, with the rotors' force T z and
    moment M_r,

        f = m a - T z,      tau = J w' + w x J w - M_r

    are the force of cable, weight and air on a drone and their moment. A controller of forces
    counts on f_c and tau_c. Both are smoothed by the same filter H, a Butterworth of second order,
    and the drone gets

        F = F_d - H (f - f_c),      M = M_d - H (tau - tau_c),

    with the controller's force F_d and the moment M_d of the geometric attitude control. Where the
    controller counts on f_c = m a_d - F_d at once, this is the incremental law F = m a_d - H f of
    the papers but for f_c - H f_c. A cable, though, pulls with the thrust, which is late: f_c is
    delayed as the thrust is, sideways by the lag of the attitude, upwards by that of the rotors.

    The moment in yaw is left as it is, as in the public code of arXiv 2508.01522: a taut cable
    whose twist is locked holds the yaw of its drone, so it answers each moment with the opposite
    one, and feedback of that grows.

    Attributes:
        drones: (n,) records of `SENSED`.
        wrench: Wrench of the rotors over their squared speeds, (n, 4, n_rotors).
    """

    def __init__(self, drones: Sequence[Drone], period_s: float, turn_s: float) -> None:
        """Prepare; `turn_s` is the lag with which the drones turn their thrust."""
        self.drones: Records = np.zeros(len(drones), SENSED)
        self.drones["mass"] = [drone.mass_kg for drone in drones]
        self.drones["inertia"] = [drone.inertia_kg_m2 for drone in drones]
        thrust = [[rotor.thrust_coefficient_n_s2 for rotor in drone.rotors] for drone in drones]
        self.wrench = np.array([wrench_of_thrusts(drone) for drone in drones])
        self.wrench *= np.array(thrust)[:, None, :]
        numerator, denominator = scipy.signal.butter(2, CUT_OFF_HZ, fs=1.0 / period_s)
        self.drones["filter"] = [*numerator, *denominator[1:]]
        for record, drone in zip(self.drones, drones, strict=True):
            late = np.array([turn_s, turn_s, rotor_lag_s(drone)])
            record["share"] = period_s / (period_s + late)

    def start(self, motion: BodyMotion) -> None:
        """Begin as if everything were as counted on."""
        self.drones["rate"] = motion.omega_body_rad_s
        for name in ("force", "moment"):
            self.drones[name] = 0.0
        self.drones["begun"] = 0.0


@compiled()
def measure(drones, bodies, speeds, wrenches, commands, period):
    """Filter the part of each drone's measured force and moment that the model does not explain.

    Commands are those of `ControlLevel.FORCES`, (n, 10): where the force that is counted on is NaN,
    the moment alone is measured. Speeds are those of the rotors, (n, n_rotors) [rad/s].
    """
    for i in range(len(drones)):
        drone = drones[i]
        body = bodies[i]
        wrench = wrenches[i] @ (speeds[i] * speeds[i])
        omega = (body.omega[0], body.omega[1], body.omega[2])
        turning = scale(1.0 / period, sub(omega, drone.rate))
        put(drone.rate, omega)
        gyroscopic = cross(omega, rotate(drone.inertia, omega))
        moment = add(rotate(drone.inertia, turning), gyroscopic)
        moment = sub(moment, (wrench[1], wrench[2], wrench[3]))
        moment = add(moment, commands[i, 4:7])
        smooth(drone.moment, (moment[0], moment[1], 0.0), drone.filter)  # not in yaw, see above
        if math.isfinite(commands[i, 7]):
            force = scale(drone.mass, body.acceleration)
            force = sub(force, rotate_by(body.attitude, (0.0, 0.0, wrench[0])))
            counted_force = commands[i, 7:10]
            if drone.begun == 0.0:
                put(drone.counted, counted_force)
                drone.begun = 1.0
            increase(drone.counted, elementwise(drone.share, sub(counted_force, drone.counted)))
            smooth(drone.force, sub(force, drone.counted), drone.filter)


@compiled()
def smooth(signal, sample, coefficients):
    """Advance a filter by a sample."""
    b0, b1, b2, a1, a2 = coefficients
    for k in range(3):
        x = sample[k]
        y = b0 * x + signal.past[0, k]
        signal.past[0, k] = b1 * x - a1 * y + signal.past[1, k]
        signal.past[1, k] = b2 * x - a2 * y
        signal.value[k] = y


# ---------- Mixing


ROTOR = np.dtype(
    [
        ("thrust", np.float64),  # newtons of this rotor per newton of the drone's thrust
        ("roll", np.float64),  # ... per newton metre about each axis of the body
        ("pitch", np.float64),
        ("yaw", np.float64),
        ("least_n", np.float64),
        ("most_n", np.float64),
        ("coefficient_n_s2", np.float64),  # thrust over speed squared
    ],
    align=True,
)


class RotorMixer:
    """Rotor speeds of all drones, through the true geometry of the rotors.

    Rotor i at (x_i, y_i) with thrust t_i >= 0 and moment ratio c_i (positive for counter-clockwise
    rotors, whose reaction turns the body clockwise) gives, body FLU,

        f = sum t_i,   M = sum (y_i t_i, -x_i t_i, -c_i t_i),

    and the smallest thrusts with a given wrench are its pseudo-inverse. What the rotors cannot
    deliver is given up in this order, as in M. Faessler, D. Falanga, D. Scaramuzza, "Thrust mixing,
    saturation, and body-rate control for accurate aggressive quadrotor flight", IEEE RA-L 2017: yaw
    first, then thrust as far as roll and pitch need, then roll and pitch, both by the same share.

    Attributes:
        rotors: Shares and limits of each rotor, (n, n_rotors) of `ROTOR`.
    """

    def __init__(self, drones: Sequence[Drone]) -> None:
        """Invert the geometry."""
        counts = {len(drone.rotors) for drone in drones}
        if len(counts) != 1:
            raise ConfigError(f"all drones need the same number of rotors, not {sorted(counts)}")
        self.n_drones = len(drones)
        self.n_rotors = counts.pop()
        self.rotors = np.zeros((self.n_drones, self.n_rotors), ROTOR)
        for number, (rotors, drone) in enumerate(zip(self.rotors, drones, strict=True), 1):
            if not can_steer(drone):
                raise ConfigError(f"drone_{number}: {CANNOT_STEER}")
            inverse = np.linalg.pinv(wrench_of_thrusts(drone))
            for name, share in zip(("thrust", "roll", "pitch", "yaw"), inverse.T, strict=True):
                rotors[name] = share
            rotors["least_n"], rotors["most_n"] = thrust_limits_n(drone)
            rotors["coefficient_n_s2"] = [r.thrust_coefficient_n_s2 for r in drone.rotors]

    def step(self, thrust_n: Array, moment_body_n_m: Array, speed_rad_s: Array) -> None:
        """Write rotor speeds, (n, n_rotors), for thrusts, (n,), and body moments, (n, 3)."""
        mix(self.rotors, thrust_n, moment_body_n_m, speed_rad_s)


@compiled()
def mix(all_rotors, thrust, moment, speed):
    """Compute rotor speeds, see `RotorMixer.step`."""
    for i in range(all_rotors.shape[0]):
        rotors = all_rotors[i]
        row = speed[i]
        tilting_share(rotors, moment[i, 0], moment[i, 1], row)
        collective = nearest_collective(rotors, row, thrust[i])
        share = 1.0
        for k in range(row.shape[0]):
            rotor = rotors[k]
            row[k] += collective * rotor.thrust
            yaw = rotor.yaw * moment[i, 2]
            if yaw > 0.0:
                share = min(share, (rotor.most_n - row[k]) / yaw)
            elif yaw < 0.0:
                share = min(share, (rotor.least_n - row[k]) / yaw)
        share = max(share, 0.0)
        for k in range(row.shape[0]):
            rotor = rotors[k]
            newtons = row[k] + share * rotor.yaw * moment[i, 2]
            newtons = min(max(newtons, rotor.least_n), rotor.most_n)  # rounding
            row[k] = math.sqrt(newtons / rotor.coefficient_n_s2)


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


# ---------- Forces as acceleration set-points of an autopilot


MIN_UPWARDS = 0.3
"""Least vertical part of a force, as an autopilot limits the tilt anyway."""

SMOOTHING_S = 0.2
"""Time constant of the filter of motor commands and set-points, from which the hover thrust is
taken."""

THRUST = np.dtype(
    [
        ("command", float),  # mean of the motors, smoothed
        ("ratio", float),  # collective command over hover thrust, smoothed
        ("ratio_now", float),
        ("coefficient", float),  # thrust of all rotors over their squared speed
        ("slowest", float),  # speeds of the rotors for the commands 0 and 1
        ("fastest", float),
        ("share", float),  # of a new sample
    ],
    align=True,
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
        self._last_setpoint = setpoint.data
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
        slowest = self.thrust["slowest"][:, None]
        fastest = self.thrust["fastest"][:, None]
        return np.asarray((rotor_speed_rad_s - slowest) / (fastest - slowest))

    def start(
        self, rotor_speed_rad_s: Array, drones: BodyMotion, hover_thrust: Array | None = None
    ) -> None:
        """Take over in flight from the present rotor speeds, (n, n_rotors).

        `hover_thrust`: the autopilots', (n,); where they do not tell it, the present command is
        about that of hover at the present tilt.
        """
        up = rotations.rotate(drones.orientation_wxyz, np.array([0.0, 0.0, 1.0]))[:, 2]
        command = np.maximum(self.throttle(rotor_speed_rad_s).mean(axis=1), 0.05)
        ratio = 1.0 / np.maximum(up, 0.5) if hover_thrust is None else command / hover_thrust
        self.thrust["command"] = command
        self.thrust["ratio"] = self.thrust["ratio_now"] = ratio

    def __call__(self, commands: Array, throttle: Array) -> None:
        """Write the set-points.

        Commands are forces of each drone's rotors, world ENU, (n, 3) [N], or with the drone's yaw
        as fourth column, (n, 4) or more; `throttle` is that of the last period, (n, n_rotors).
        """
        ask_autopilot(self._last_setpoint, commands, throttle, self.thrust)


@compiled()
def ask_autopilot(setpoint, commands, throttle, thrust):
    """Write acceleration set-points; the formulas are those of `ForcesToSetpoints`."""
    for i in range(commands.shape[0]):
        drone = thrust[i]
        command = throttle[i]
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
        row[6] = GRAVITY_M_S2 * x / z
        row[7] = GRAVITY_M_S2 * y / z
        row[8] = GRAVITY_M_S2 * (drone.ratio_now * z / size - 1.0)
        if commands.shape[1] > 3 and math.isfinite(commands[i, 3]):
            row[9] = commands[i, 3]
