"""Rigs that several tests of the elastic cables need."""

import numpy as np

from musls_description.system.slung_system import EndOfCable, Pulley, Winch
from musls_sim.plants.elastic.rig import Rig, RigBody, RigCable

G = 9.81
X, Y, Z = np.eye(3)


def anchor(position=(0.0, 0.0, 0.0)):
    """A place that does not move."""
    return RigBody(prescribed=True, position_enu_m=np.array(position, float))


def mote(position, mass=1e-9):
    """A body that is next to nothing: a free end."""
    return point_mass(position, mass, 1e-12)


def point_mass(position, mass, inertia=1e-3):
    """A body whose turning does not matter."""
    return RigBody(
        mass_kg=mass, inertia_kg_m2=inertia * np.eye(3), position_enu_m=np.array(position, float)
    )


def winch(cable, end, kind="feed", stored_m=0.0, radius_m=None, inertia=None, **options):
    """A winch by index of a cable and its end."""
    return Winch(
        cable=cable + 1, end=end + 1, kind=kind, stored_length_m=stored_m,
        radius_m=radius_m, inertia_kg_m2=inertia, **options,
    )  # fmt: skip


def pulley(*sides, radius_m=0.05, inertia=0.0, **options):
    """A pulley by index of both cables and of their ends."""
    ends = [EndOfCable(cable=cable + 1, end=end + 1) for cable, end in sides]
    return Pulley(body="load", cables=ends, radius_m=radius_m, inertia_kg_m2=inertia, **options)


def straight(begin, end, segments):
    """Nodes evenly on a line."""
    return np.linspace(np.array(begin, float), np.array(end, float), segments + 1)


def hanging_rig(segments, length=1.0, mass=1.0, tip=1e-9, ea=1e6, gravity=G, **options):
    """A cable that hangs from the origin with a point mass at its end, in equilibrium."""
    weights = tip * gravity + (np.arange(segments)[::-1] + 0.5) * mass / segments * gravity
    steps = length / segments * (1.0 + weights / ea)
    heights = -np.concatenate([[0.0], np.cumsum(steps)])
    nodes = np.column_stack([0.0 * heights, 0.0 * heights, heights])
    cable = RigCable((0, 1), np.zeros((2, 3)), nodes, length, mass, ea_n=ea, **options)
    inertia = 1e-12 if tip < 1e-6 else 1e-3
    end = point_mass(nodes[-1], tip, inertia)
    return Rig([anchor(), end], [cable], gravity_m_s2=gravity)


def beam_rig(
    segments,
    *,
    ei=1.0,
    length=1.0,
    mass=0.1,
    clamp_factor=2.0,
    end_clamp=False,
    ea=1e6,
    damping=0.0,
):
    """A rod along x without gravity, clamped at the origin, its end free (a mote)."""
    cable = RigCable(
        (0, 1),
        np.zeros((2, 3)),
        straight((0, 0, 0), (length, 0, 0), segments),
        length,
        mass,
        ea_n=ea,
        slack=False,
        ei_n_m2=ei,
        bending_damping_n_m2_s=damping,
        clamps=(X, X if end_clamp else None),
        clamp_factor=clamp_factor,
    )
    return Rig([anchor(), mote((length, 0, 0))], [cable], gravity_m_s2=0.0)


def frequencies(engine, axis, count=3):
    """Lowest angular frequencies of small oscillations along a world axis, of nodes and bodies.

    The derivative of the accelerations by the positions, by central differences of `restart`.
    """
    t = engine.tables
    free = [b for b in range(len(t.bodies)) if t.bodies[b]["free"]]
    places = [(t.bodies, b) for b in free]
    for cable in t.cables:
        places += [(t.nodes, cable["first_node"] + i) for i in range(1, cable["segments"])]
    step = 1e-6
    matrix = np.empty((len(places), len(places)))
    for k, (table, row) in enumerate(places):
        sides = []
        for sign in (1.0, -1.0):
            table["position"][row, axis] += sign * step
            engine.restart()
            sides.append(np.array([a["acceleration"][i, axis] for a, i in places]))
            table["position"][row, axis] -= sign * step
        matrix[:, k] = (sides[0] - sides[1]) / (2.0 * step)
    squares = np.sort(-np.linalg.eigvals(matrix).real)
    return np.sqrt(squares[:count])


def run(engine, time_s):
    """Advance by a time."""
    for _ in range(round(time_s / engine.period_s)):
        engine.advance()


def period_of(signal, dt):
    """Period of a decaying oscillation about zero, from its zero crossings."""
    signs = np.signbit(signal)
    k = np.flatnonzero(signs[1:] != signs[:-1])
    at = dt * (k + signal[k] / (signal[k] - signal[k + 1]))
    return 2.0 * (at[-1] - at[0]) / (len(at) - 1)
