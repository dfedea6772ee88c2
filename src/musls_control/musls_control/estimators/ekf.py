"""Extended Kalman filter for the load, from what the drones sense alone.

State: pose and twist of the load. Its error has twelve parts: position (world) and turn (load's
frame, R = R^ exp(turn)), velocity and angular velocity. Cables are massless but for their
weight and taut or slack; their directions and rates follow from load and drones. Newton's law for
a drone gives the force of its cable, f = m (a - g) - (rotors' force), whose part along the cable
is the tension. Between measurements the load moves under these tensions. Measured are, of each
taut cable, its length and the direction of f.

With the direction u of a cable from load to drone, two axes e across it, its attachment a in the
load's frame and its length l, everything linear is made of the columns w(d) = (d, a x R'd):

    slope of the distance of the ends along d      -w(d)'
    wrench of a tension T                           T w(u)
    slope of that wrench by the load's pose        -(T / l) sum w(e) w(e)' + (the turn of R'u)

Noises are those of the drones' estimates (`DroneErrors`), nothing else unless a key says so. The
filter cannot know of contacts. Where its innovations say that it is lost it begins anew.

The idea of cable directions by the drones' IMUs is that of Sun et al. (Science Robotics 2025),
which has the drones and elastic cables in the filter.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import scipy

from musls_control.estimate import MOTION, Estimate
from musls_control.estimators import DroneSensors, EstimatorSetup, LoadEstimator, LoadImuSpec
from musls_control.estimators.taut import LOAD, cable_records, load_record
from musls_description.config.schema import NonNegative, Positive, spec
from musls_description.numerics.arrays import Records
from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import (
    add,
    add_scaled,
    cross,
    dot,
    increase,
    norm,
    put,
    put_quaternion,
    rotate,
    rotate_back_by,
    rotate_by,
    scale,
    sub,
    turned,
    unit,
)

FILTER = np.dtype(
    [
        *LOAD.descr,
        ("position_noise", float),  # of a drone's estimate
        ("attitude_noise", float),
        ("drone_acceleration_noise", float),
        ("force_noise", float),  # of a cable, beyond what follows from these
        ("length_noise", float),
        ("twist_noise", float),  # of the rate between the ends of a cable that does not twist
        ("twist_moment", float),  # of the angular acceleration that it gives the load
        ("sag_lasting", float),  # variance of white noise over that of an error that lasts
        ("acceleration_noise", float),
        ("angular_acceleration_noise", float),
        ("gyro_noise", float),
        ("accelerometer_noise", float),
        ("has_imu", np.int64),
        ("start", float, 4),  # variances of position, turn, velocity, angular velocity
        ("anew", float, 4),
    ],
    align=True,
)
"""Constants of the load and variances of white noise that is fresh in each period."""

STATE = np.dtype(
    [
        ("from_ground", np.int64),  # whether the load stood at the begin
        ("lift", float),  # of the cables, low-pass: taut cables jerk before they lift
        ("lifted", np.int64),  # whether it has been higher than `LIFTED_M` since
        ("innovations", float),  # sum of the squared normalised innovations of the last step
        ("count", float),
        ("all_innovations", float),
        ("all_count", float),
        ("strain", float),  # their mean, low-pass
        ("resets", np.int64),
    ],
    align=True,
)
"""State of the filter in addition to motion and covariance."""

FRAME = np.dtype(
    [
        ("rotors", float, 3),  # force of the drone's rotors at the end of the last period, world
        ("force", float, 3),  # of the cable at its middle, world, without what bends it
        ("aside", float, 3),  # force on the load across the cable, world
        ("along", float, 3),  # direction to the drone
        ("axes", float, (2, 3)),  # two axes across
        ("columns", float, (3, 6)),  # wrench of a unit force along these three, see above
        ("length", float),  # between its ends
        ("tension", float),  # negative if the measured force pushes
        ("aside_noise", float),  # variance of that
        ("friction", float, 3),  # moment of its joint on the load, load frame
        ("effects", float, (3, 6)),  # accelerations of the load by the columns
        ("noise", float),  # variance of the measured force, per axis
    ],
    align=True,
)
"""A cable as load and drones are estimated."""

WORK = np.dtype(
    [
        ("slope", float, (6, 6)),  # of the load's accelerations by its pose
        ("noise", float, (6, 6)),  # covariance of the load's accelerations
        ("step", float, (12, 12)),  # transition of the error over a period
        ("half", float, (12, 12)),
        ("error", float, 12),
        ("row", float, 12),  # slope of a measured number by the error
        ("weighed", float, 12),
    ],
    align=True,
)
"""Memory for one step."""

CHANCE = 0.995
"""Share of flights in which a consistent filter's mean innovation is not larger."""

MODEL_S = 0.1
"""Correlation time of sag and of other errors that no sensor makes, and of strain."""

TWIST_RAD_S2 = 0.15
"""Angular acceleration of a load about a cable that does not twist."""

TWIST_RAD_S = 0.001
"""Rate between the ends of a swinging cable that does not twist."""

DRAG = 0.2
"""Error of a cable's drag over the drag."""

TAUT = 3.0
"""Tension of a taut cable over the standard deviation of its noise, at least."""

OUTLIER = 25.0
"""Squared normalised innovation beyond which a measurement counts as one of as many."""

LOST = 100.0
"""Mean squared normalised innovation over `MODEL_S` that says that the filter is lost."""

MOST_TURN = 0.25
"""Turn of the load in a period beyond which it is lost: no load spins that fast [rad]."""

LIFT_S = 0.3
"""Time constant of the low-pass on the cables' lift."""

LIFTED_M = 0.1
"""Rise from which a load has left its place: where it comes down it stays."""

REACH = 1.05
MOST_SPEED_M_S = 20.0
"""Distance of load and drone by the cable's length, and their relative speed, up to which a lost
load's estimate is kept."""

ANEW = 0.1, 0.5, 1.0, 1.0
"""Standard deviations of a new begin: position by the cables' length, turn [rad], velocity [m/s],
angular velocity [rad/s]."""


@spec
class EkfSpec:
    """Extended Kalman filter from the drones' motion, IMUs and rotor speeds, the load unseen.

    The noise of the drones' sensors is known from `estimation`. The keys below are errors that no
    sensor declares: standard deviations, per axis where there are axes, that last `correlation_s`.

    Attributes:
        kind: "ekf".
        force_noise_n: Error of a cable's force: thrust coefficients, drag and wind on drones.
        length_noise_m: Error of a taut cable's length between its ends.
        acceleration_noise_m_s2: Unmodelled acceleration of the load: wind, drag; left out: 0 in a
            flight, 0.1 on recordings.
        angular_acceleration_noise_rad_s2: Unmodelled angular acceleration of the load; left out:
            0 in a flight, 0.5 on recordings.
        correlation_s: Correlation time of such errors; 0 for white noise.
        start_noise_m: Uncertainty of the load's position at the start; per second of its velocity.
        start_noise_rad: Uncertainty of its attitude at the start; per second of its body rates.
        load_imu: IMU on the load, left out for none.
    """

    kind: Literal["ekf"] = "ekf"
    force_noise_n: NonNegative = 0.0
    length_noise_m: NonNegative = 0.0
    acceleration_noise_m_s2: NonNegative | None = None
    angular_acceleration_noise_rad_s2: NonNegative | None = None
    correlation_s: NonNegative = 0.1
    start_noise_m: Positive = 0.02
    start_noise_rad: Positive = 0.05
    load_imu: LoadImuSpec | None = None

    def build(self, setup: EstimatorSetup) -> Ekf:
        """Make the estimator."""
        estimator = Ekf(self)
        estimator.prepare(setup)
        return estimator


class Ekf(LoadEstimator):
    """Extended Kalman filter of the load; equations in the module's docstring.

    Attributes:
        covariance: Covariance of the error: position [m], turn [rad], velocity [m/s], angular
            velocity [rad/s], (12, 12).
    """

    needs_rotors = True

    def __init__(self, options: EkfSpec | None = None) -> None:
        self._options = options or EkfSpec()
        self.load_imu = self._options.load_imu

    def prepare(self, setup: EstimatorSetup) -> None:
        """Make the tables."""
        super().prepare(setup)
        self._cables = cables = cable_records(setup.system)
        locked = setup.cable_model == "rigid_links" and not setup.system.load.point_mass
        cables["twists"] = [not locked or c.twist != "locked" for c in setup.system.cables]
        if setup.cable_model == "rigid_links" and not setup.system.load.point_mass:
            cables["damping"] = [c.joint_damping_n_m_s_rad for c in setup.system.cables]
            twisting = [
                c.twist == "free" and c.free_twist_damping_n_m_s_rad for c in setup.system.cables
            ]
            cables["twist_damping"] = twisting
        if setup.cable_model == "elastic":
            cables["drag"] = [c.drag_across_n_s2_m3 for c in setup.system.cables]
            cables["compliance"] = [1.0 / c.ea_n for c in setup.system.cables]
        self._load = self._constants(setup)
        self._motion = np.zeros(2, MOTION)  # of the load, and where it stood at the begin
        self._state = np.zeros(1, STATE)
        self.covariance = np.zeros((12, 12))

    def _constants(self, setup: EstimatorSetup) -> Records:
        """Constants of the filter, (1,) of `FILTER`."""
        options = self._options
        errors = setup.errors
        period_s = setup.period_s
        load = np.zeros(1, FILTER)
        for name in LOAD.names or ():
            load[name] = load_record(setup.system, setup.gravity_m_s2, period_s)[name]
        if not setup.system.load.point_mass:  # half of each cable moves with its attachment
            for cable in self._cables:
                arm = cable["attachment"]
                steiner_term = arm @ arm * np.eye(3) - np.outer(arm, arm)
                load["inertia"] += 0.5 * cable["mass"] * steiner_term
            load["inverse_inertia"] = np.linalg.inv(load["inertia"][0])
        load["position_noise"] = errors.position_m**2
        load["attitude_noise"] = errors.attitude_rad**2
        load["drone_acceleration_noise"] = errors.acceleration_m_s2**2
        # An error that lasts for a time T is, over longer times, as white noise of 2 T / period
        # times its variance.
        self._lasting = lasting = max(1.0, 2.0 * options.correlation_s / period_s)
        load["force_noise"] = lasting * options.force_noise_n**2
        load["length_noise"] = lasting * options.length_noise_m**2
        load["sag_lasting"] = 2.0 * MODEL_S / period_s
        load["twist_moment"] = load["sag_lasting"] * TWIST_RAD_S2**2
        load["twist_noise"] = errors.rate_rad_s**2 + load["sag_lasting"] * TWIST_RAD_S**2
        turns = not setup.system.load.point_mass
        push_noise = options.acceleration_noise_m_s2
        turn_noise = options.angular_acceleration_noise_rad_s2
        push_noise = setup.disturbance_m_s2 if push_noise is None else push_noise
        turn_noise = setup.disturbance_rad_s2 if turn_noise is None else turn_noise
        load["acceleration_noise"] = lasting * push_noise**2
        load["angular_acceleration_noise"] = lasting * turn_noise**2 if turns else 0.0
        if self.load_imu is not None:
            load["has_imu"] = True
            load["gyro_noise"] = self.load_imu.gyro_noise_rad_s**2
            load["accelerometer_noise"] = self.load_imu.accelerometer_noise_m_s2**2
        turn = options.start_noise_rad if turns else 0.0
        load["start"] = np.square([options.start_noise_m, turn, options.start_noise_m, turn])
        length_m = max(cable.length_m for cable in setup.system.cables)
        position, turn, velocity, spin = ANEW
        anew = [position * length_m, turn * turns, velocity, spin * turns]
        load["anew"] = np.square(anew)
        return load

    def start(self, sensors: DroneSensors, estimate: Estimate, *, on_ground: bool) -> None:
        """Begin with the load's motion in `estimate` (row 0) and the covariance of the start.

        With `on_ground` the load is at rest until its cables carry its weight.
        """
        self._motion[:] = estimate.records[:1]
        self._state["from_ground"] = on_ground
        begin(self.covariance, self._load[0]["start"])
        imu = np.zeros(6) if sensors.load_imu is None else sensors.load_imu
        inputs = sensors.drones.records, sensors.rotor_force_enu_n, imu
        state = self._motion, self.covariance, self._state
        frames = np.zeros(len(self._cables), FRAME)
        frames["rotors"] = sensors.rotor_force_enu_n
        scratch = frames, np.zeros(1, WORK)
        self._arguments = state, inputs, self._cables, self._load, scratch

    def step(self, sensors: DroneSensors, estimate: Estimate) -> None:
        """Predict by the tensions, correct by lengths and directions."""
        advance(*self._arguments, estimate.records, estimate.tension_n)

    @property
    def innovations(self) -> tuple[float, float]:
        """Sum of the squared normalised innovations of the last step, and their number."""
        return float(self._state[0]["innovations"]), float(self._state[0]["count"])

    @property
    def resets(self) -> int:
        """Number of times that the filter was lost and began anew."""
        return int(self._state[0]["resets"])

    def doubt(self) -> str:
        """Whether the filter was lost, or its innovations are above what chance gives them.

        Below is no doubt: then the stated noises are larger than those of the flight.
        """
        if self.resets:
            return (
                f"load estimator ekf: lost {self.resets} times, and begun anew: "
                "cables, contacts or noises are not those that it knows"
            )
        total = self._state[0]["all_innovations"]
        number = self._state[0]["all_count"]
        independent = number / max(self._lasting, self._load[0]["sag_lasting"])
        if independent < 1.0:
            return ""
        most = 2.0 * scipy.special.gammaincinv(0.5 * independent, CHANCE) / independent
        if total / number <= most:
            return ""
        return (
            f"load estimator ekf: mean normalised innovation {total / number:.3g}, in "
            f"{100 * CHANCE:g} % of flights below {most:.3g} if its noises are true: the load's "
            "estimate errs more than its covariance says"
        )


# ---------- The filter: a function for each of its steps, loops over cables and columns


@compiled()
def advance(state, told, cables, loads, scratch, estimates, tensions):
    """One period of the filter: predict, correct, write the load's motion and tensions.

    `told`: motion of the drones, rotor speeds and accelerations that were measured. `state` and
    `scratch` are changed; the last two arguments are written.
    """
    motion = state[0][0]
    covariance = state[1]
    s = state[2][0]
    c = loads[0]
    drones, rotors, imu = told
    frames = scratch[0]
    work = scratch[1][0]
    lift = measure_forces(drones, rotors, cables, frames, c)
    s.lift += c.period / (LIFT_S + c.period) * (lift - s.lift)
    s.innovations = 0.0
    s.count = 0.0
    standing = state[0][1]
    rise = motion.position[2] - standing.position[2]
    if rise > LIFTED_M:
        s.lifted = 1
    if s.from_ground != 0 and rise <= 0.0 and s.lift < c.mass * c.gravity:
        if s.lifted == 0:
            put(motion.position, standing.position)
            put_quaternion(motion.attitude, standing.attitude)
        put(motion.velocity, (0.0, 0.0, 0.0))
        put(motion.omega, (0.0, 0.0, 0.0))
        put(motion.acceleration, (0.0, 0.0, 0.0))
        begin(covariance, c.start)
    else:
        predict(motion, covariance, drones, imu, cables, frames, work, c)
        correct(motion, covariance, s, drones, imu, cables, frames, work, c)
        s.all_innovations += s.innovations
        s.all_count += s.count
        if is_lost(motion, covariance, s, c):
            if not is_near(motion, drones, cables, c):
                hang_below(motion, drones, cables, frames)
            begin(covariance, c.anew)
            s.strain = 0.0
            s.resets += 1
    out = estimates[0]
    put(out.position, motion.position)
    put(out.velocity, motion.velocity)
    put_quaternion(out.attitude, motion.attitude)
    put(out.omega, motion.omega)
    put(out.acceleration, motion.acceleration)
    specific_force = add(motion.acceleration, (0.0, 0.0, c.gravity))
    for i in range(len(cables)):
        half = 0.5 * cables[i].mass
        tensions[i, 0] = norm(add_scaled(frames[i].force, -half, specific_force))
        tensions[i, 1] = norm(add_scaled(frames[i].force, half, specific_force))


@compiled()
def begin(covariance, variances):
    """Set the covariance of a begin: independent errors."""
    for j in range(12):
        for k in range(12):
            covariance[j, k] = variances[j // 3] if j == k else 0.0


@compiled()
def measure_forces(drones, rotors, cables, frames, c):
    """Compute the forces in the middle of the cables by Newton's law for the drones; their lift.

    Accelerations are means over the period, rotors' forces those at its end.
    """
    lift = 0.0
    for i in range(len(cables)):
        mass = cables[i].drone_mass + 0.5 * cables[i].mass
        specific_force = add(drones[i].acceleration, (0.0, 0.0, c.gravity))
        now = (rotors[i, 0], rotors[i, 1], rotors[i, 2])
        push = scale(0.5, add(frames[i].rotors, now))
        put(frames[i].rotors, now)
        put(frames[i].force, add_scaled(push, -mass, specific_force))
        frames[i].noise = mass * mass * c.drone_acceleration_noise + c.force_noise
        lift += frames[i].force[2]
    return lift


@compiled()
def see(motion, drones, cables, frames, back, c):
    """Compute directions of the cables, and derivatives of what is measured by the state.

    The drones are taken `back` in time [s].
    """
    q = motion.attitude
    for i in range(len(cables)):
        drone = drones[i]
        cable = cables[i]
        frame = frames[i]
        hook = rotate_by(drone.attitude, cable.hook)
        moving = add(drone.velocity, rotate_by(drone.attitude, cross(drone.omega, cable.hook)))
        upper = add_scaled(add(drone.position, hook), -back, moving)
        reach = sub(upper, add(motion.position, rotate_by(q, cable.attachment)))
        frame.length = max(norm(reach), 1e-6)
        along = scale(1.0 / frame.length, reach)
        # Across: by the world's axis that is farthest from the cable.
        x, y, z = abs(along[0]), abs(along[1]), abs(along[2])
        far = (1.0, 0.0, 0.0) if x <= y and x <= z else (0.0, 1.0, 0.0)
        if z < x and z < y:
            far = (0.0, 0.0, 1.0)
        beside = cross(along, far)
        beside = scale(1.0 / norm(beside), beside)
        put(frame.along, along)
        other = cross(along, beside)
        for k in range(3):
            frame.axes[0, k] = beside[k]
            frame.axes[1, k] = other[k]
            axis = along if k == 0 else beside if k == 1 else other
            arm = cross(cable.attachment, rotate_back_by(q, axis))
            turning = rotate(c.inverse_inertia, arm)
            for j in range(3):
                frame.columns[k, j] = axis[j]
                frame.columns[k, 3 + j] = arm[j]
                frame.effects[k, j] = axis[j] / c.mass
                frame.effects[k, 3 + j] = turning[j]
        frame.tension = dot(frame.force, along)


@compiled()
def predict(motion, covariance, drones, imu, cables, frames, work, c):
    """Advance motion and covariance by a period, the load pulled along its cables."""
    dt = c.period
    omega = (motion.omega[0], motion.omega[1], motion.omega[2])
    specific_force = add(motion.acceleration, (0.0, 0.0, c.gravity))
    # Forces are means over the period, so they act where load and drones are in its middle; the
    # drones are told at its end.
    move(motion, 0.5 * dt)
    see(motion, drones, cables, frames, 0.5 * dt, c)
    bend(motion, drones, cables, frames, c)
    spin = rotate(c.inertia, omega)
    push = (0.0, 0.0, 0.0)
    moment = cross(spin, omega)
    friction_by_rate = 0.0
    slope = work.slope
    noise = work.noise
    for j in range(6):
        for k in range(6):
            slope[j, k] = 0.0
            noise[j, k] = 0.0
    for i in range(len(cables)):
        frame = frames[i]
        cable = cables[i]
        tension = max(0.0, frame.tension)
        by_turn = tension / frame.length
        by_place = by_turn * by_turn * c.position_noise + frame.aside_noise
        w = frame.columns
        g = frame.effects
        for j in range(6):
            for k in range(6):
                slope[j, k] -= by_turn * (g[1, j] * w[1, k] + g[2, j] * w[2, k])
                noise[j, k] += frame.noise * g[0, j] * g[0, k]
                noise[j, k] += by_place * (g[1, j] * g[1, k] + g[2, j] * g[2, k])
        # Half of the cable hangs on its attachment; that it weighs is in the load's mass.
        pull = add_scaled(frame.aside, tension, frame.along)
        push = add(push, pull)
        along = rotate_back_by(motion.attitude, frame.along)
        pull = rotate_back_by(motion.attitude, add_scaled(pull, -0.5 * cable.mass, specific_force))
        moment = add(add(moment, cross(cable.attachment, pull)), frame.friction)
        friction_by_rate += cable.damping
        # It turns in the load's frame: a x (f x turn), f the pull there.
        level = dot(cable.attachment, pull)
        turning = rotate(c.inverse_inertia, pull)
        for j in range(3):
            for k in range(3):
                slope[3 + j, 3 + k] += turning[j] * cable.attachment[k]
                slope[3 + j, 3 + k] -= level * c.inverse_inertia[j, k]
                if cable.twists == 0:  # its moment is as large as it must be
                    noise[3 + j, 3 + k] += c.twist_moment * along[j] * along[k]
    move(motion, 0.5 * dt)
    rate = scale(1.0 / c.mass, push)
    turn_rate = rotate(c.inverse_inertia, moment)
    if c.has_imu != 0:
        specific_force = (imu[0], imu[1], imu[2])
        rate = rotate_by(motion.attitude, specific_force)
        feel(motion, specific_force, slope, noise)
    rate = sub(rate, (0.0, 0.0, c.gravity))
    for k in range(3):
        noise[k, k] += c.accelerometer_noise if c.has_imu != 0 else c.acceleration_noise
        noise[3 + k, 3 + k] += c.angular_acceleration_noise
    spread(covariance, omega, spin, friction_by_rate, work, c)
    put(motion.acceleration, rate)
    increase(motion.velocity, scale(dt, rate))
    increase(motion.omega, scale(dt, turn_rate))
    increase(motion.position, scale(0.5 * dt * dt, rate))
    turn(motion, scale(0.5 * dt * dt, turn_rate))


@compiled()
def turn(motion, angle):
    """Turn the load by a rotation vector in its own frame."""
    put_quaternion(motion.attitude, turned(motion.attitude, angle))


@compiled()
def move(motion, dt):
    """Move on with present velocities."""
    increase(motion.position, scale(dt, motion.velocity))
    turn(motion, scale(dt, motion.omega))


@compiled()
def feel(motion, felt, slope, noise):
    """Take the slope of the acceleration that the load's IMU feels, instead of the cables'."""
    q = motion.attitude
    for k in range(3):
        axis = (1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0)
        by_turn = rotate_by(q, cross(axis, felt))
        for j in range(3):
            slope[j, k] = 0.0
            slope[j, 3 + k] = by_turn[j]
        for j in range(6):
            noise[k, j] = 0.0
            noise[j, k] = 0.0


@compiled()
def spread(covariance, omega, spin, friction_by_rate, work, c):
    """Advance the covariance by a period: exp(A dt) to the second order in the slope, symmetric."""
    dt = c.period
    slope = work.slope
    step = work.step
    half = work.half
    for j in range(12):
        for k in range(12):
            step[j, k] = 1.0 if j == k else 0.0
            half[j, k] = 0.0
    for j in range(6):
        step[j, 6 + j] = dt
        for k in range(6):
            step[j, k] += 0.5 * dt * dt * slope[j, k]
            step[6 + j, k] = dt * slope[j, k]
    for k in range(3):
        axis = (1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0)
        turning = cross(omega, axis)
        moment = sub(cross(spin, axis), cross(omega, rotate(c.inertia, axis)))
        change = rotate(c.inverse_inertia, add_scaled(moment, -friction_by_rate, axis))
        for j in range(3):
            step[3 + j, 3 + k] -= dt * turning[j]
            step[9 + j, 9 + k] += dt * change[j]
    for j in range(12):
        for m in range(12):
            factor = step[j, m]
            if factor != 0.0:
                for k in range(12):
                    half[j, k] += factor * covariance[m, k]
    for j in range(12):
        for k in range(j + 1):
            # The noise of an acceleration lasts for the period, so it moves the load, too.
            total = dt * dt * work.noise[j % 6, k % 6]
            total *= (1.0 if j >= 6 else 0.5 * dt) * (1.0 if k >= 6 else 0.5 * dt)
            for m in range(12):
                total += half[j, m] * step[k, m]
            covariance[j, k] = total
            covariance[k, j] = total
    # A turn that nothing measures is known to be less than half a turn.
    for j in range(3, 6):
        if covariance[j, j] > math.pi**2:
            less = math.pi / math.sqrt(covariance[j, j])
            for k in range(12):
                covariance[j, k] *= less
                covariance[k, j] *= less


@compiled()
def bend(motion, drones, cables, frames, c):
    """Take what bends a cable out of its measured force: inertia across, and drag.

    A thin rod between load and drone, accelerated by a and b at its ends, pulls across with
    m (a / 3 + b / 6) at the load and m (a / 6 + b / 3) at the drone, where half of its mass at
    each end would do so with m a / 2 and m b / 2.
    """
    for i in range(len(cables)):
        drone = drones[i]
        cable = cables[i]
        frame = frames[i]
        swing = scale(cable.mass / 6.0, sub(motion.acceleration, drone.acceleration))
        flow = scale(0.5, add(motion.velocity, drone.velocity))
        flow = add_scaled(flow, -dot(flow, frame.along), frame.along)
        drag = scale(-0.5 * cable.drag * cable.length * norm(flow), flow)
        swing = add_scaled(swing, -dot(swing, frame.along), frame.along)
        put(frame.aside, add(swing, drag))
        put(frame.force, add(sub(frame.force, swing), drag))
        frame.aside_noise = c.sag_lasting * DRAG**2 * dot(drag, drag)
        put(frame.friction, friction(motion, drone, cable, frame))


@compiled()
def friction(motion, drone, cable, frame):
    """Return the moment of a cable's joint on the load, load frame."""
    if cable.damping == 0.0 and cable.twist_damping == 0.0:
        return 0.0, 0.0, 0.0
    along = frame.along
    omega = rotate_by(motion.attitude, motion.omega)
    upper = rotate_by(drone.attitude, drone.omega)
    lower = add(motion.velocity, cross(omega, rotate_by(motion.attitude, cable.attachment)))
    swing = scale(1.0 / frame.length, cross(along, sub(drone.velocity, lower)))
    bending = sub(omega, swing)
    twisting = scale(dot(bending, along), along)
    moment = scale(-cable.damping, sub(bending, twisting))
    moment = add_scaled(moment, -cable.twist_damping * dot(sub(omega, upper), along), along)
    return rotate_back_by(motion.attitude, moment)


@compiled()
def correct(motion, covariance, s, drones, imu, cables, frames, work, c):
    """Correct by taut cables' lengths, by cables' directions and by the load's gyro."""
    see(motion, drones, cables, frames, 0.0, c)
    error = work.error
    row = work.row
    for k in range(12):
        error[k] = 0.0
        row[k] = 0.0
    for i in range(len(cables)):
        frame = frames[i]
        cable = cables[i]
        tension = frame.tension
        noise = frame.noise
        length = cable.length * (1.0 + cable.compliance * max(0.0, tension))
        if tension > TAUT * math.sqrt(noise) or frame.length > length:
            hook = dot(cable.hook, cable.hook)
            sag = 0.0
            if tension > 0.0:  # a parabola's, by the weight across the cable
                across = cable.mass * c.gravity * (1.0 - frame.along[2] ** 2) ** 0.5 / tension
                sag = min(cable.length, cable.length * across * across / 24.0)
            by_place = c.position_noise + hook * c.attitude_noise
            for k in range(6):
                row[k] = -frame.columns[0, k]
            variance = by_place + c.length_noise + c.sag_lasting * sag * sag
            take(work, covariance, length - frame.length, variance, s)
        if tension > 0.0:
            by_turn = tension / frame.length
            variance = noise + frame.aside_noise + tension * tension * c.attitude_noise
            for axis in range(2):
                miss_n = 0.0
                for k in range(3):
                    miss_n += frame.axes[axis, k] * frame.force[k]
                for k in range(6):
                    row[k] = -by_turn * frame.columns[1 + axis, k]
                take(work, covariance, miss_n, variance, s)
    for i in range(len(cables)):
        if cables[i].twists == 0 and frames[i].tension > 0.0:
            along = rotate_back_by(motion.attitude, frames[i].along)
            upper = dot(rotate_by(drones[i].attitude, drones[i].omega), frames[i].along)
            sideways = cross(motion.omega, along)
            for k in range(3):
                row[k] = 0.0
                row[3 + k] = sideways[k]
                row[9 + k] = along[k]
            take(work, covariance, upper - dot(motion.omega, along), c.twist_noise, s)
            for k in range(3):
                row[3 + k] = 0.0
                row[9 + k] = 0.0
    if c.has_imu != 0:
        for j in range(6):
            row[j] = 0.0
        for k in range(3):
            row[9 + k] = 1.0
            take(work, covariance, imu[3 + k] - motion.omega[k], c.gyro_noise, s)
            row[9 + k] = 0.0
    increase(motion.position, (error[0], error[1], error[2]))
    turn(motion, (error[3], error[4], error[5]))
    increase(motion.velocity, (error[6], error[7], error[8]))
    increase(motion.omega, (error[9], error[10], error[11]))


@compiled()
def take(work, covariance, miss, variance, s):
    """Take one measured number into error and covariance; `miss`: measured minus predicted."""
    error = work.error
    row = work.row
    products = work.weighed
    size = variance
    innovation = miss
    for j in range(12):
        total = 0.0
        for k in range(12):
            total += covariance[j, k] * row[k]
        products[j] = total
        size += row[j] * total
        innovation -= row[j] * error[j]
    s.innovations += innovation * innovation / size
    s.count += 1.0
    size = max(size, innovation * innovation / OUTLIER)
    for j in range(12):
        gain = products[j] / size
        error[j] += innovation * gain
        for k in range(j + 1):
            covariance[j, k] -= gain * products[k]
            covariance[k, j] = covariance[j, k]


@compiled()
def is_lost(motion, covariance, s, c):
    """Whether innovations, spin or covariance say that the filter has lost the load."""
    if s.count > 0.0:
        s.strain += c.period / MODEL_S * (s.innovations / s.count - s.strain)
    well = s.strain < LOST and norm(motion.omega) * c.period < MOST_TURN
    sizes = norm(motion.position) + norm(motion.velocity)
    for k in range(12):
        well = well and covariance[k, k] >= 0.0
        sizes += covariance[k, k]
    return not (well and sizes < math.inf)


@compiled()
def is_near(motion, drones, cables, c):
    """Whether the load is where its cables can reach, and moves as loads do: only too sure."""
    near = norm(motion.omega) * c.period < MOST_TURN
    for i in range(len(cables)):
        away = norm(sub(drones[i].position, motion.position))
        arm = norm(cables[i].attachment) + norm(cables[i].hook)
        near = near and away < REACH * (cables[i].length + arm)
        near = near and norm(sub(drones[i].velocity, motion.velocity)) < MOST_SPEED_M_S
    return near


@compiled()
def hang_below(motion, drones, cables, frames):
    """Put the load below the drones, level, with its heading, at their mean velocity."""
    q = motion.attitude
    n = len(cables)
    size = math.sqrt(q[0] * q[0] + q[3] * q[3])
    if size > 1e-6:
        put_quaternion(q, (q[0] / size, 0.0, 0.0, q[3] / size))
    else:
        put_quaternion(q, (1.0, 0.0, 0.0, 0.0))
    place = (0.0, 0.0, 0.0)
    velocity = (0.0, 0.0, 0.0)
    for i in range(n):
        drone = drones[i]
        cable = cables[i]
        pull, _ = unit(frames[i].force)
        if not pull[2] > 0.7:  # of a drone that touches something
            pull = (0.0, 0.0, 1.0)
        upper = add(drone.position, rotate_by(drone.attitude, cable.hook))
        lower = sub(add_scaled(upper, -cable.length, pull), rotate_by(q, cable.attachment))
        place = add(place, scale(1.0 / n, lower))
        velocity = add_scaled(velocity, 1.0 / n, drone.velocity)
    put(motion.position, place)
    put(motion.velocity, velocity)
    put(motion.omega, (0.0, 0.0, 0.0))
    put(motion.acceleration, (0.0, 0.0, 0.0))
