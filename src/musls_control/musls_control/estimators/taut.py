"""A load on massless cables whose upper ends move with the drones: geometry, forces, slopes.

Motions are records of `MOTION`. Slopes are by a small shift of the load in the world and a
small turn in its own frame, six columns.
"""

from __future__ import annotations

import numpy as np
import scipy

from musls_description.numerics.arrays import Array, Records
from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import (
    add,
    body_axes_in_world,
    cross,
    rotate_by,
    sub,
    turned,
)
from musls_description.system.slung_system import SlungLoadSystem

CABLE = np.dtype(
    [
        ("attachment", float, 3),  # on the load, its frame [m]
        ("hook", float, 3),  # on the drone, its frame [m]
        ("length", float),
        ("mass", float),
        ("drone_mass", float),
        ("drag", float),  # across it, per length and squared speed [N s2/m3]
        ("compliance", float),  # strain per force [1/N]
        ("damping", float),  # of its joint with the load [N m s]
        ("twist_damping", float),
        ("twists", np.int64),  # whether its ends turn about it independently
    ],
    align=True,
)

LOAD = np.dtype(
    [
        ("mass", float),
        ("inertia", float, (3, 3)),
        ("inverse_inertia", float, (3, 3)),  # 0 of a point mass, which does not turn
        ("gravity", float),
        ("period", float),
    ],
    align=True,
)


def cable_records(system: SlungLoadSystem) -> Records:
    """Constants of the cables, (n,) of `CABLE`."""
    cables = np.zeros(system.n_cables, CABLE)
    cables["attachment"] = system.load.cable_attachments_m
    cables["hook"] = [drone.cable_attachment_m for drone in system.drones]
    cables["length"] = [cable.length_m for cable in system.cables]
    cables["mass"] = [cable.mass_kg for cable in system.cables]
    cables["drone_mass"] = [drone.mass_kg for drone in system.drones]
    return cables


def load_record(system: SlungLoadSystem, gravity_m_s2: float, period_s: float) -> Records:
    """Constants of the load, (1,) of `LOAD`; half of each cable hangs on it."""
    load = np.zeros(1, LOAD)
    load["mass"] = system.load.mass_kg + 0.5 * sum(cable.mass_kg for cable in system.cables)
    if not system.load.point_mass:
        load["inertia"] = system.load.inertia_kg_m2
        load["inverse_inertia"] = np.linalg.inv(system.load.inertia_kg_m2)
    load["gravity"] = gravity_m_s2
    load["period"] = period_s
    return load


@compiled()
def skew(a):
    """Matrix of the cross product a x."""
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


@compiled()
def matrix_of(q):
    """Rotation matrix of a unit quaternion, (3, 3)."""
    x1, x2, x3, y1, y2, y3, z1, z2, z3 = body_axes_in_world(q)
    return np.array([[x1, y1, z1], [x2, y2, z2], [x3, y3, z3]])


@compiled()
def chord(load, drone, cable):
    """Vector from a cable's end on the load to that on the drone, and its rate, world."""
    q = load.attitude
    p = drone.attitude
    a = cable.attachment
    h = cable.hook
    reach = sub(add(drone.position, rotate_by(p, h)), add(load.position, rotate_by(q, a)))
    upper = add(drone.velocity, rotate_by(p, cross(drone.omega, h)))
    lower = add(load.velocity, rotate_by(q, cross(load.omega, a)))
    return np.array(reach), np.array(sub(upper, lower))


@compiled()
def across(unit, length):
    """Slope of a direction by the vector's end, (3, 3)."""
    return (np.eye(3) - np.outer(unit, unit)) / length


@compiled()
def chord_slope(rotation, cable):
    """Slope of the vector from load to drone, (3, 6)."""
    slope = np.zeros((3, 6))
    for k in range(3):
        slope[k, k] = -1.0
    slope[:, 3:] = rotation @ skew(cable.attachment)
    return slope


@compiled()
def add_wrench(wrench, force, rotation, cable):
    """Add a cable's force in the world and its moment in the load's frame to a wrench, (6,)."""
    wrench[:3] += force
    wrench[3:] += np.array(cross(cable.attachment, force @ rotation))


@compiled()
def wrench_slope(force, slope, rotation, cable):
    """Slope of a cable's wrench on the load: force in the world, moment in its frame, (6, 6).

    `force`: what pulls at the attachment, world; `slope`: of this force, (3, 6).
    """
    arm = skew(cable.attachment)
    back = np.ascontiguousarray(rotation.T)
    out = np.zeros((6, 6))
    out[:3] = slope
    turned_slope = back @ slope
    turned_slope[:, 3:] += skew(back @ force)
    out[3:] = arm @ turned_slope
    return out


@compiled()
def shift(motion, step):
    """Move a load by a shift in the world and a turn in its frame, (6,)."""
    motion.attitude[:] = np.array(turned(motion.attitude, step[3:6]))
    motion.position += step[:3]


def directions(motion: Records, drones: Records, cables: Records) -> tuple[Array, Array]:
    """Directions of the cables from load to drone and their rates, (n, 3) and (n, 3) [1/s]."""
    out = np.empty((len(cables), 3))
    rates = np.empty((len(cables), 3))
    for i, cable in enumerate(cables):
        reach, rate = chord(motion[0], drones[i], cable)
        length = np.linalg.norm(reach)
        out[i] = reach / length
        rates[i] = (rate - out[i] * (out[i] @ rate)) / length
    return out, rates


SLACK_M = 0.01
"""A cable whose ends are nearer than its length by this is slack: sag and noise are less."""

BACK_1_S = 10.0
"""Rate at which a stretch goes back (J. Baumgarte, 1972)."""


def taut_tensions(motion: Records, drones: Records, cables: Records, load: Records) -> Array:
    """Tensions that keep cables at their lengths, or slack, below moving drones, (n,).

    `motion` and `load`: one record each. With the wrench w of a tension of one on the load, M the
    load's inertia, b its weight and gyroscopic moment, the second derivative of each stretch e is

        a - w^T M^-1 (sum w T + b) = -2 k e' - k^2 e,

    a all that the drones' motion and the rates contribute, k = `BACK_1_S`. Tensions are not
    negative (the quadratic programme of massless cables, solved as non-negative least squares).
    """
    n = len(cables)
    rotation = matrix_of(motion["attitude"])
    omega = motion["omega"]
    by_mass = np.eye(6) / load["mass"]
    by_mass[3:, 3:] = load["inverse_inertia"]
    rest = np.zeros(6)
    rest[2] = -load["mass"] * load["gravity"]
    rest[3:] = -np.cross(omega, load["inertia"] @ omega)
    wrenches = np.zeros((n, 6))
    demands = np.zeros(n)
    slack = np.zeros(n, bool)
    for i, cable in enumerate(cables):
        reach, rate = chord(motion, drones[i], cable)
        length = np.linalg.norm(reach)
        slack[i] = length < cable["length"] - SLACK_M
        unit = reach / length
        add_wrench(wrenches[i], unit, rotation, cable)
        inwards = rotation @ np.cross(omega, np.cross(omega, cable["attachment"]))
        demands[i] = unit @ (drones[i]["acceleration"] - inwards)
        demands[i] += (rate @ rate - (unit @ rate) ** 2) / length
        stretch = length - cable["length"]
        demands[i] += 2.0 * BACK_1_S * (unit @ rate) + BACK_1_S**2 * stretch
    demands -= wrenches @ by_mass @ rest
    demands[slack] = 0.0
    wrenches[slack] = 0.0
    root = np.linalg.cholesky(wrenches @ by_mass @ wrenches.T + 1e-9 * np.eye(n))
    tensions_n: Array = scipy.optimize.nnls(root.T, np.linalg.solve(root, demands))[0]
    return tensions_n
