"""Random systems on massless cables, and their equations once more, in NumPy and in other words."""

import dataclasses

import numpy as np
from scipy.spatial.transform import Rotation

from musls_control.estimate import BodyMotion
from musls_description.system.system_files import load_system
from musls_sim.plants.interface import PlantInputs
from musls_sim.plants.massless.light_lines import MasslessPlant

G = 9.80665


def system_of(lengths, anchors, hooks, *, load_mass=1.0, inertia=None, masses=None, inertias=None):
    """A system without air drag; the drones are x500 with changed mass, inertia and hook."""
    trio = load_system("x500_trio")
    n = len(lengths)
    rotors = tuple(dataclasses.replace(r, drag_n_s2_m_rad=0.0) for r in trio.drones[0].rotors)
    drones = []
    for i in range(n):
        changes = {"cable_attachment_m": tuple(map(float, hooks[i])), "rotors": rotors}
        if masses is not None:
            changes["mass_kg"] = float(masses[i])
        if inertias is not None:
            changes["inertia_kg_m2"] = as_rows(inertias[i])
        drones.append(dataclasses.replace(trio.drones[0], **changes))
    load = dataclasses.replace(
        trio.load,
        mass_kg=float(load_mass),
        inertia_kg_m2=trio.load.inertia_kg_m2 if inertia is None else as_rows(inertia),
        cable_attachments_m=as_rows(anchors),
    )
    cables = tuple(dataclasses.replace(trio.cables[0], length_m=float(k)) for k in lengths)
    return dataclasses.replace(trio, load=load, drones=tuple(drones), cables=cables)


def as_rows(matrix):
    return tuple(tuple(map(float, row)) for row in matrix)


def random_inertia(rng, size):
    """Inertia of a body of mass 1 and about a size: of four random points."""
    points = rng.normal(size=(6, 3)) * size
    points -= points.mean(axis=0)
    return sum((p @ p) * np.eye(3) - np.outer(p, p) for p in points) / 6.0


def random_plant(rng, n, slack=(), still=False):
    """n drones anywhere around a turned load, cables at their length but for those in `slack`."""
    load_mass = rng.uniform(0.2, 3.0)
    masses = rng.uniform(0.3, 3.0, n)
    anchors, hooks = rng.normal(size=(n, 3)) * 0.3, rng.normal(size=(n, 3)) * 0.1
    lengths = rng.uniform(0.3, 2.0, n)
    system = system_of(
        lengths, anchors, hooks,
        load_mass=load_mass, inertia=load_mass * random_inertia(rng, 0.2), masses=masses,
        inertias=[m * random_inertia(rng, 0.15) for m in masses],
    )  # fmt: skip
    position = np.zeros((1 + n, 3))
    position[0] = [0.0, 0.0, 50.0] + rng.normal(size=3)
    turns = Rotation.random(1 + n, random_state=int(rng.integers(2**31)))
    for i in range(n):
        along = rng.normal(size=3) * [1.0, 1.0, 0.6] + [0.0, 0.0, 1.0]
        along *= lengths[i] / np.linalg.norm(along) * (0.8 if i in slack else 1.0)
        anchor = position[0] + turns[0].apply(anchors[i])
        position[1 + i] = anchor + along - turns[1 + i].apply(hooks[i])
    size = 0.0 if still else 1.0
    start = BodyMotion.of(
        position, turns.as_quat(scalar_first=True),
        size * rng.normal(size=(1 + n, 3)), size * rng.normal(size=(1 + n, 3)) * 2.0,
    )  # fmt: skip
    return MasslessPlant(system, start, ground_height_enu_m=None)


class Dense:
    """All bodies with six coordinates each (world, about their centres), constraints by rows.

    Nothing of the plant's formulas: a Jacobian of the distances of all bodies and its change.
    """

    def __init__(self, system, motion):
        self.n = system.n_drones
        parts = [system.load, *system.drones]
        self.turn = Rotation.from_quat(motion.orientation_wxyz, scalar_first=True).as_matrix()
        self.x, self.v = motion.position_enu_m, motion.velocity_enu_m_s
        self.w = np.einsum("nij,nj->ni", self.turn, motion.omega_body_rad_s)
        self.mass = np.zeros((6 * (1 + self.n), 6 * (1 + self.n)))
        self.inertia = []
        for i, part in enumerate(parts):
            world = self.turn[i] @ np.array(part.inertia_kg_m2) @ self.turn[i].T
            self.inertia.append(world)
            at = 6 * i
            self.mass[at : at + 3, at : at + 3] = part.mass_kg * np.eye(3)
            self.mass[at + 3 : at + 6, at + 3 : at + 6] = world
        self.ends = [
            (0, self.turn[0] @ system.load.cable_attachments_m[k], 1 + k,
             self.turn[1 + k] @ np.array(system.drones[k].cable_attachment_m))
            for k in range(self.n)
        ]  # fmt: skip
        self.u = np.hstack([self.v, self.w]).ravel()
        rows, self.bias, self.distance = [], [], []
        for load, a, drone, b in self.ends:
            e = self.x[drone] + b - self.x[load] - a
            d = np.linalg.norm(e)
            u = e / d
            row = np.zeros(6 * (1 + self.n))
            for body, arm, sign in ((load, a, -1.0), (drone, b, 1.0)):
                row[6 * body : 6 * body + 3] = sign * u
                row[6 * body + 3 : 6 * body + 6] = sign * np.cross(arm, u)
            v = self.velocity(drone, b) - self.velocity(load, a)
            spin = np.cross(self.w[drone], np.cross(self.w[drone], b))
            spin -= np.cross(self.w[load], np.cross(self.w[load], a))
            rows.append(row)
            self.bias.append(u @ spin + (v @ v - (u @ v) ** 2) / d)
            self.distance.append(d)
        self.jacobian = np.array(rows)
        self.bias = np.array(self.bias)
        self.rate = self.jacobian @ self.u

    def scale(self, velocity):
        """How large the terms of momentum and angular momentum are."""
        p = np.abs(self.mass @ velocity).reshape(-1, 6)
        return p.sum() + (np.abs(self.x).sum(axis=1) * p[:, :3].sum(axis=1)).sum()

    def velocity(self, body, arm):
        return self.v[body] + np.cross(self.w[body], arm)

    def force(self, gravity, wrench_enu):
        """Generalised force of gravity, gyroscopic moments and wrenches (moment, force)."""
        out = np.zeros(6 * (1 + self.n))
        for i in range(1 + self.n):
            at = 6 * i
            out[at : at + 3] = wrench_enu[i, 3:] - [0.0, 0.0, gravity * self.mass[at, at]]
            out[at + 3 : at + 6] = wrench_enu[i, :3] - np.cross(
                self.w[i], self.inertia[i] @ self.w[i]
            )
        return out

    def accelerations(self, taut, force):
        """Solve mass and constraints of the taut cables as one system; (6 (1 + n),), tensions."""
        j = self.jacobian[taut]
        k = len(j)
        system = np.block([[self.mass, j.T], [j, np.zeros((k, k))]])
        solution = np.linalg.solve(system, np.concatenate([force, -self.bias[taut]]))
        size = len(self.mass)
        tension = np.zeros(self.n)
        tension[taut] = solution[size:]
        return solution[:size], tension


def motion_now(plant):
    """State of a plant as a `BodyMotion`."""
    y = plant.records.bodies["state"]
    return BodyMotion.of(
        *(y[field].copy() for field in ("position", "attitude", "velocity", "omega"))
    )


def momenta(plant, about=(0.0, 0.0, 0.0)):
    """Momentum, angular momentum about a point and kinetic energy of load and drones."""
    dense = Dense(plant.system, motion_now(plant))
    parts = [plant.system.load, *plant.system.drones]
    linear, angular, energy = np.zeros(3), np.zeros(3), 0.0
    for i, part in enumerate(parts):
        linear += part.mass_kg * dense.v[i]
        angular += part.mass_kg * np.cross(dense.x[i] - about, dense.v[i])
        angular += dense.inertia[i] @ dense.w[i]
        energy += 0.5 * (
            part.mass_kg * dense.v[i] @ dense.v[i] + dense.w[i] @ dense.inertia[i] @ dense.w[i]
        )
    return linear, angular, energy


def set_motion(plant, velocity_enu_m_s, omega_body_rad_s):
    """Give all bodies velocities."""
    plant.records.bodies["state"]["velocity"][:] = velocity_enu_m_s
    plant.records.bodies["state"]["omega"][:] = omega_body_rad_s
    plant.forget_inputs()


POINT_INERTIA = 1e-3 * np.eye(3)


def pair(length=0.5, masses=(0.25, 0.07)):
    """A drone over a load that hangs in its centre: RotorTM's figures, as two points."""
    return system_of(
        [length], [[0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0]],
        load_mass=masses[1], inertia=POINT_INERTIA, masses=[masses[0]], inertias=[POINT_INERTIA],
    )  # fmt: skip


def level(system, positions, velocities=None, **options):
    """A plant with all bodies level, without ground, gravity 9.81."""
    n = 1 + system.n_drones
    start = BodyMotion.of(np.array(positions, float), np.tile([1.0, 0.0, 0.0, 0.0], (n, 1)))
    if velocities is not None:
        start.velocity_enu_m_s[:] = velocities
    options = {"gravity_m_s2": 9.81, "ground_height_enu_m": None, **options}
    return MasslessPlant(system, start, **options)


def run(plant, thrust_n, duration_s, look=None):
    """Fly with ideal thrusts held for a time; `look(plant)` after every period."""
    inputs = PlantInputs.zeros(plant.system)
    inputs.wrench_body[1:, 5] = thrust_n
    seen = []
    for _ in range(round(duration_s / plant.period_s)):
        plant.step(inputs)
        if look is not None:
            seen.append(look(plant))
    return np.array(seen)


TRIANGLE = np.array([[-0.154, -0.267, 0.01125], [0.3083, 0.0, 0.01125], [-0.154, 0.267, 0.01125]])


def triangle(length=1.0, masses=(0.25, 0.25, 0.25)):
    """Three dragonflies over the triangular load of RotorTM."""
    return system_of(
        [length] * 3, TRIANGLE, np.zeros((3, 3)),
        load_mass=0.278, inertia=np.diag([0.00625019392, 0.00625019392, 0.01245978846]),
        masses=masses, inertias=[np.diag([6.01e-4, 5.89e-4, 1.076e-3])] * 3,
    )  # fmt: skip


def triangle_hover(gravity=9.81):
    """Positions of load and drones at rest, tensions and thrusts of the triangle."""
    arms = np.vstack([np.hstack([np.eye(3)] * 3), np.hstack([skew(r) for r in TRIANGLE])])
    forces = np.linalg.pinv(arms) @ [0.0, 0.0, 0.278 * gravity, 0.0, 0.0, 0.0]
    tension = forces.reshape(3, 3)[:, 2]
    positions = np.vstack([np.zeros(3), TRIANGLE + [0.0, 0.0, 1.0]])
    return positions, tension, tension + 0.25 * gravity


def skew(r):
    return np.array([[0.0, -r[2], r[1]], [r[2], 0.0, -r[0]], [-r[1], r[0], 0.0]])
