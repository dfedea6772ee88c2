"""Random rigs for the tests of the elastic cables, and what may be done to a rig without harm."""

import copy
import dataclasses

import numpy as np
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from musls_sim.plants.elastic.rig import Rig, RigBody, RigCable

LAW = [(0.0, 0.0), (0.01, 20.0), (0.03, 200.0), (0.05, 600.0)]


def number(low, high):
    """A number between two bounds."""
    return st.floats(low, high, allow_nan=False, allow_subnormal=False)


def vector(size):
    """A vector whose components are at most `size`."""
    return st.tuples(*[number(-size, size)] * 3).map(np.array)


@st.composite
def bodies(draw, anchored, place):
    """A rigid body that moves and tumbles, or an anchor."""
    position = draw(vector(1.0)) + [2.0 * place, 0.0, 0.0]
    rotation = Rotation.from_rotvec(draw(vector(2.0))).as_matrix()
    if anchored:
        return RigBody(prescribed=True, position_enu_m=position, rotation=rotation)
    mass = 10.0 ** draw(number(-1.0, 0.7))
    radii = np.array(draw(st.tuples(*[number(0.05, 0.3)] * 3)))
    inertia = mass * 0.2 * np.diag([*(radii**2).sum() - radii**2])
    return RigBody(
        mass_kg=mass,
        inertia_kg_m2=inertia,
        position_enu_m=position,
        rotation=rotation,
        velocity_enu_m_s=draw(vector(1.0)),
        omega_enu_rad_s=draw(vector(3.0)),
    )


def bowed(begin, end, bow, segments):
    """Nodes on a parabola between two points, all segments equally long."""
    at = np.linspace(0.0, 1.0, segments + 1)
    for _ in range(50):
        share = at[:, None]
        nodes = begin + share * (end - begin) + 4.0 * bow * share * (1.0 - share)
        arc = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(nodes, axis=0), axis=1)))
        if arc[-1] < 1e-6:
            break
        at = np.interp(np.linspace(0.0, arc[-1], segments + 1), arc, at)
    return nodes


@st.composite
def cables(draw, parts, ends):
    """A cable between two bodies: taut or with slack, straight or with a bow."""
    points = np.array([draw(vector(0.2)) for _ in range(2)])
    a, b = (parts[k] for k in ends)
    begin = a.position_enu_m + a.rotation @ points[0]
    end = b.position_enu_m + b.rotation @ points[1]
    n = draw(st.integers(1, 8))
    ei = 10.0 ** draw(number(-4.0, 0.3)) if draw(st.booleans()) else 0.0
    nodes = bowed(begin, end, draw(vector(0.2)) / (1.0 + 20.0 * ei), n)
    length = max(np.linalg.norm(np.diff(nodes, axis=0), axis=1).sum(), 0.1)
    ea = 10.0 ** draw(number(0.0, 6.3))
    tabulated, rod = draw(st.integers(0, 4)) == 0, draw(st.integers(0, 3)) == 0
    if ei > 1e-3:  # what cannot be pushed together has next to no bending stiffness
        rod, tabulated, ea = True, False, max(ea, 1e3 * ei)
    # Not stretched (or compressed) by more than a body of 1 kg at 2 m/s would do: no catapults.
    most = min(0.2, 0.02 if tabulated else 2.0 / np.sqrt(ea))
    slackness = draw(number(-most, most if rod else 0.3))
    velocities = [
        p.velocity_enu_m_s + np.cross(p.omega_enu_rad_s, p.rotation @ x)
        for p, x in zip((a, b), points, strict=True)
    ]
    chord = np.linalg.norm(end - begin)
    along = (end - begin) / chord if chord > 1e-3 else np.array([1.0, 0.0, 0.0])
    clamps = tuple(
        p.rotation.T @ along if ei > 0.0 and draw(st.booleans()) else None for p in (a, b)
    )
    return RigCable(
        ends,
        points,
        nodes,
        length * (1.0 + slackness),
        10.0 ** draw(number(-3.0, -0.3)),
        ea_n=ea,
        law=LAW if tabulated else None,
        damping_n_s=draw(st.sampled_from([0.0, 2.4e-4])) * ea,
        slack=not rod,
        ei_n_m2=ei,
        bending_damping_n_m2_s=ei * draw(st.sampled_from([0.0, 1e-3])),
        clamps=clamps,
        velocities_enu_m_s=np.linspace(*velocities, n + 1),
    )


@st.composite
def rigs(draw, anchors=True, gravity=9.81):
    """One to three bodies, up to two anchors, one to four cables between any of them."""
    free = draw(st.integers(1, 3))
    fixed = draw(st.integers(0, 2)) if anchors else 0
    free = max(free, 2 - fixed)
    parts = [draw(bodies(k >= free, k)) for k in range(free + fixed)]
    pairs = [(i, j) for i in range(free) for j in range(free + fixed) if i != j]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=4))
    lines = [draw(cables(parts, pair)) for pair in chosen]
    return Rig(parts, lines, gravity_m_s2=gravity)


def moved(rig, matrix, shift):
    """The same rig turned, or mirrored, by an orthogonal matrix, and shifted."""
    rig = copy.deepcopy(rig)
    proper = np.linalg.det(matrix) > 0.0
    own = np.eye(3) if proper else np.diag([1.0, -1.0, 1.0])  # a mirrored body in its own frame
    sign = 1.0 if proper else -1.0
    for b in rig.bodies:
        b.position_enu_m = matrix @ b.position_enu_m + shift
        b.velocity_enu_m_s = matrix @ b.velocity_enu_m_s
        b.omega_enu_rad_s = sign * matrix @ b.omega_enu_rad_s
        b.rotation = matrix @ b.rotation @ own
        b.inertia_kg_m2 = own @ b.inertia_kg_m2 @ own
    for k in rig.cables:
        k.points_m = k.points_m @ own
        k.nodes_enu_m = k.nodes_enu_m @ matrix.T + shift
        k.velocities_enu_m_s = k.velocities_enu_m_s @ matrix.T
        k.clamps = tuple(None if axis is None else own @ axis for axis in k.clamps)
    return rig


def shuffled(rig, body_order, cable_order, flips):
    """The same rig with bodies and cables in another order, and some cables from B to A."""
    places = np.argsort(body_order)
    lines = []
    for k, flip in zip(cable_order, flips, strict=True):
        line = rig.cables[k]
        ends = tuple(int(places[b]) for b in line.bodies)
        if flip:
            line = dataclasses.replace(
                line,
                bodies=ends[::-1],
                points_m=line.points_m[::-1],
                nodes_enu_m=line.nodes_enu_m[::-1],
                velocities_enu_m_s=line.velocities_enu_m_s[::-1],
                clamps=tuple(None if a is None else -a for a in line.clamps[::-1]),
            )
        else:
            line = dataclasses.replace(line, bodies=ends)
        lines.append(line)
    return dataclasses.replace(rig, bodies=[rig.bodies[b] for b in body_order], cables=lines)


def positions(engine):
    """Positions of all bodies and of the nodes of each cable."""
    return (
        engine.tables.bodies["position"].copy(),
        [engine.nodes_enu_m(k).copy() for k in range(len(engine.rig.cables))],
    )
