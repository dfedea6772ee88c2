"""A rigid drone with any rotors in free air, flown by the PX4-equivalent cascade."""

from __future__ import annotations

import numpy as np
from numba import njit

from musls_control.autopilot import DroneSetpoints, MotorCommands
from musls_control.estimate import Estimate
from musls_control.px4 import Px4Cascade
from musls_control.px4.allocation import gains, rotor_layout
from musls_description.numerics.rotations import from_roll_pitch_yaw
from musls_description.system.drone import Box, Drone, Rotor

DT_S, SUBSTEPS, GRAVITY = 0.004, 2, 9.80665


def make_drone(rotors, mass_kg, inertia_kg_m2, model="own"):
    return Drone(
        mass_kg=mass_kg,
        inertia_kg_m2=inertia_kg_m2,
        cable_attachment_m=(0.0, 0.0, 0.0),
        rotors=tuple(Rotor(**rotor) for rotor in rotors),
        collision=Box(size_m=(0.3, 0.3, 0.1)),
        model=model,
    )


class RigidDrone:
    """Position, attitude and rotor speeds of one drone.

    Attributes:
        position, velocity: ENU, (3,).
        orientation: Body FLU to world, (4,).
        rate: Body rate, (3,).
        speed: Rotor speeds, (n_rotors,).
    """

    def __init__(self, drone: Drone) -> None:
        self.mass, self.inertia = drone.mass_kg, np.array(drone.inertia_kg_m2, float)
        self.inverse = np.linalg.inv(self.inertia)
        self.place = np.array([r.position_m for r in drone.rotors])
        self.k = np.array([r.thrust_coefficient_n_s2 for r in drone.rotors])
        spin = np.array([1.0 if r.spin == "ccw" else -1.0 for r in drone.rotors])
        self.ratio = spin * np.array([r.moment_ratio_m for r in drone.rotors])
        self.up = np.array([r.time_constant_up_s for r in drone.rotors])
        self.down = np.array([r.time_constant_down_s for r in drone.rotors])
        self.position, self.velocity = np.zeros(3), np.zeros(3)
        self.orientation, self.rate = np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(3)
        self.speed = np.sqrt(drone.mass_kg * GRAVITY / self.k.sum()) * np.ones(len(self.k))
        self.acceleration = np.zeros(3)

    def advance(self, speed_command, duration_s=DT_S, substeps=SUBSTEPS):
        """Semi-implicit Euler with exact rotor lags."""
        _advance(
            (self.mass, self.inertia, self.inverse, self.place, self.k, self.ratio),
            (self.up, self.down),
            (self.position, self.velocity, self.orientation, self.rate, self.acceleration),
            self.speed,
            np.ascontiguousarray(speed_command),
            duration_s / substeps,
            substeps,
        )


@njit  # not cached: pytest gives this module a name that other processes cannot import
def _advance(constants, lags, motion, speed, command, h, substeps):
    mass, inertia, inverse, place, k, ratio = constants
    up, down = lags
    position, velocity, q, rate, acceleration = motion
    for _ in range(substeps):
        thrust, moment = 0.0, np.zeros(3)
        for i in range(len(speed)):
            lag = up[i] if command[i] > speed[i] else down[i]
            speed[i] = command[i] + (speed[i] - command[i]) * np.exp(-h / lag)
            f = k[i] * speed[i] ** 2
            thrust += f
            moment[0] += place[i, 1] * f
            moment[1] -= place[i, 0] * f
            moment[2] -= ratio[i] * f
        w, x, y, z = q[0], q[1], q[2], q[3]
        acceleration[0] = 2.0 * (x * z + w * y) * thrust / mass
        acceleration[1] = 2.0 * (y * z - w * x) * thrust / mass
        acceleration[2] = (1.0 - 2.0 * (x * x + y * y)) * thrust / mass - GRAVITY
        velocity += h * acceleration
        position += h * velocity
        spin = inertia @ rate
        gyroscopic = np.array(
            [
                rate[1] * spin[2] - rate[2] * spin[1],
                rate[2] * spin[0] - rate[0] * spin[2],
                rate[0] * spin[1] - rate[1] * spin[0],
            ]
        )
        rate += h * (inverse @ (moment - gyroscopic))
        a, b, c = 0.5 * h * rate[0], 0.5 * h * rate[1], 0.5 * h * rate[2]
        q[0] = w - x * a - y * b - z * c
        q[1] = x + w * a + y * c - z * b
        q[2] = y + w * b + z * a - x * c
        q[3] = z + w * c + x * b - y * a
        q /= np.sqrt(np.sum(q * q))


def fly_to(drone, start_rpy, goal_enu_m, yaw_rad, duration_s, parameters=None):
    """Fly from the origin to a goal; returns positions, orientations and body rates."""
    body = RigidDrone(drone)
    body.orientation = from_roll_pitch_yaw(np.array(start_rpy))
    limits = drone.rotors[0]
    throttle = (body.speed[0] - limits.speed_min_rad_s) / (
        limits.speed_max_rad_s - limits.speed_min_rad_s
    )
    own = gains(drone, GRAVITY) | {"MPC_THR_HOVER": float(np.clip(throttle, 0.1, 0.8))}
    autopilot = Px4Cascade(rotor_layout(drone), parameters=own | (parameters or {}))
    autopilot.reset(in_flight=True)
    setpoint, estimate = DroneSetpoints.unset(1), Estimate.zeros(1)
    measured = estimate.drones
    out = MotorCommands.zeros(1, len(drone.rotors))
    setpoint.armed[0], setpoint.position_enu_m[0] = 1.0, goal_enu_m
    setpoint.yaw_enu_rad[0] = yaw_rad
    history = []
    for k in range(round(duration_s / DT_S)):
        measured.position_enu_m[0], measured.velocity_enu_m_s[0] = body.position, body.velocity
        measured.orientation_wxyz[0], measured.omega_body_rad_s[0] = body.orientation, body.rate
        measured.acceleration_enu_m_s2[0] = body.acceleration
        autopilot.step(k * DT_S, setpoint, estimate, out)
        body.advance(out.omega_cmd_rad_s[0])
        history.append(np.concatenate([body.position, body.orientation, body.rate]))
    history = np.array(history)
    return history[:, :3], history[:, 3:7], history[:, 7:]
