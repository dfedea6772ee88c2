"""Machines with many pulleys: a tower crane and the rig of a motion suspension system.

Both after the Modelica library of papers `003_*`, which gives no masses, lengths or stiffnesses:
those here are ours.
"""

import numpy as np
from elastic_rigs import anchor, point_mass, pulley, winch

from musls_sim.plants.elastic.cables.line import linear_strain
from musls_sim.plants.elastic.engine import Engine
from musls_sim.plants.elastic.rig import Rig, RigBody, RigCable
from musls_sim.plants.elastic.start import nodes_between

STEEL_EA_N, STEEL_KG_M = 3e6, 0.4  # 10 mm rope
CRANE_LOAD_KG, CRANE_FALL_M = 1000.0, 10.0
CRANE_START_S, CRANE_TIME_S, CRANE_WAY_M = 2.0, 4.0, 5.0


def line(bodies, places, segments, tension, ea=STEEL_EA_N, density=STEEL_KG_M, points=None):
    """A cable between two places, stretched by a tension."""
    nodes = np.linspace(places[0], places[1], segments + 1)
    length = np.linalg.norm(nodes[-1] - nodes[0]) / (1.0 + tension / ea)
    ends = np.zeros((2, 3)) if points is None else np.array(points, float)
    return RigCable(bodies, ends, nodes, length, density * length, ea_n=ea, damping_n_s=5e-3 * ea)


def crane():
    """Tower crane: 9 cables, 6 pulleys, 1 winch, 70 segments; the load hangs on two falls.

    Main rope: winch (ground) - tower top - trolley - pulley on the load - trolley - jib end.
    Trolley rope: trolley - jib end pulley - jib root pulley - trolley, and a slack tag line from
    the load to the ground.
    """
    places = {
        "winch": (0.0, 0.0, 0.0),
        "top": (0.0, 0.0, 30.0),
        "trolley": (10.0, 0.0, 29.5),
        "end": (30.0, 0.0, 30.0),
        "tip": (30.5, 0.0, 29.0),
        "root": (0.5, 0.0, 29.0),
        "peg": (18.0, 6.0, 0.0),
    }
    names = list(places)
    bodies = [anchor(p) for p in places.values()]
    row = {name: k for k, name in enumerate(names)}
    top = np.array(places["trolley"])
    hook = top - [0.0, 0.0, CRANE_FALL_M]
    load = RigBody(
        CRANE_LOAD_KG, 200.0 * np.eye(3), hook - [0.0, 0.0, 0.8], drag_n_s_m=np.full(3, 2.0)
    )
    bodies.append(load)
    row["load"] = len(bodies) - 1
    pull = 0.5 * CRANE_LOAD_KG * 9.80665
    at_hook = (0.0, 0.0, 0.8)
    # Both falls begin 0.3 m from the trolley's middle.
    left, right = np.array([-0.3, 0.0, 0.0]), np.array([0.3, 0.0, 0.0])

    def between(a, b, segments, tension, shift_a=0.0, shift_b=0.0):
        def place(name, shift):
            return (hook if name == "load" else np.array(places[name])) + shift

        def point(name, shift):
            return at_hook if name == "load" else np.zeros(3) + shift

        return line((row[a], row[b]), (place(a, shift_a), place(b, shift_b)), segments, tension,
                    points=(point(a, shift_a), point(b, shift_b)))  # fmt: skip

    cables = [
        between("winch", "top", 6, pull),
        between("top", "trolley", 10, pull, 0.0, left),
        between("trolley", "load", 15, pull, left),
        between("load", "trolley", 15, pull, 0.0, right),
        between("trolley", "end", 6, pull, right),
        between("trolley", "tip", 6, 2000.0),
        between("tip", "root", 6, 2000.0),
        between("root", "trolley", 4, 2000.0),
        between("load", "peg", 2, 0.0),
    ]
    cables[8].length_m *= 1.02
    cables[8].mass_kg = 0.1 * cables[8].length_m
    size = cables[8].segments, cables[8].length_m, cables[8].mass_kg, 9.80665
    strain = linear_strain(STEEL_EA_N)
    cables[8].nodes_enu_m = nodes_between(hook, np.array(places["peg"]), *size, strain)
    pulleys = [
        pulley((0, 1), (1, 0), radius_m=0.2, inertia=0.5),
        pulley((1, 1), (2, 0), radius_m=0.15, inertia=0.2),
        pulley((2, 1), (3, 0), radius_m=0.15, inertia=0.2),
        pulley((3, 1), (4, 0), radius_m=0.15, inertia=0.2),
        pulley((5, 1), (6, 0), radius_m=0.1, inertia=0.05),
        pulley((6, 1), (7, 0), radius_m=0.1, inertia=0.05),
    ]
    drum = winch(0, 0, "drum", 50.0, 0.25, 4.0)
    return Rig(bodies, cables, winches=[drum], pulleys=pulleys, by_rate=(0,)), row


def trolley_path(row):
    """The trolley drives 5 m forward, smoothly (quintic)."""
    start = np.array([10.0, 0.0, 29.5])

    def motion(t):
        s = np.clip((t - CRANE_START_S) / CRANE_TIME_S, 0.0, 1.0)
        out = np.zeros(18)
        way = CRANE_WAY_M
        out[:3] = start + [way * s**3 * (10.0 - 15.0 * s + 6.0 * s**2), 0.0, 0.0]
        out[3] = way * 30.0 * s**2 * (1.0 - s) ** 2 / CRANE_TIME_S
        out[6] = way * 60.0 * s * (1.0 - 3.0 * s + 2.0 * s**2) / CRANE_TIME_S**2
        return out

    return {row["trolley"]: lambda begin, end: np.array([motion(begin), motion(end)])}


def crane_engine():
    """The crane at rest, its trolley about to drive."""
    rig, row = crane()
    engine = Engine(rig)
    left = engine.relax()
    engine.paths = trolley_path(row)
    engine.restart()
    return engine, row, left


def gravity_rig(radius=0.11, ring_kg=0.1):
    """Four winches on the floor, four pulleys under the ceiling, 9 cables, 57 segments.

    The ropes meet in a ring, from which one rope holds a fixed arm below it.
    """
    corners = [(-1.0, -1.5), (1.0, -1.5), (-1.0, 1.5), (1.0, 1.5)]
    half = np.hypot(1.0, 1.5)
    ring_z, ceiling_z, arm_z = 2.2, 4.0, 1.2
    bodies = [anchor((2.0 * x, 2.0 * y, 0.0)) for x, y in corners]
    bodies += [anchor((x, y, ceiling_z)) for x, y in corners]
    bodies += [point_mass((0.0, 0.0, ring_z), ring_kg, 1e-2), anchor((0.0, 0.0, arm_z))]
    rise = (ceiling_z - ring_z) / np.hypot(half, ceiling_z - ring_z)
    pull = 4.0 / radius
    cables, pulleys, winches = [], [], []
    for k, (x, y) in enumerate(corners):
        floor, ceiling = np.array([2.0 * x, 2.0 * y, 0.0]), np.array([x, y, ceiling_z])
        ring = np.array([0.0, 0.0, ring_z])
        options = {"ea": 1e5, "density": 6e-3}
        cables.append(line((k, 4 + k), (floor, ceiling), 7, pull, **options))
        cables.append(line((4 + k, 8), (ceiling, ring), 6, pull, **options))
        pulleys.append(pulley((2 * k, 1), (2 * k + 1, 0), radius_m=0.04, inertia=2e-4))
        winches.append(winch(2 * k, 0, "drum", 5.0, radius, 5e-3, damping_n_m_s_rad=0.4))
    down = np.array([[0.0, 0.0, ring_z], [0.0, 0.0, arm_z]])
    cables.append(line((8, 9), down, 5, 4.0 * pull * rise, ea=1e5, density=6e-3))
    return Rig(bodies, cables, winches=winches, pulleys=pulleys), rise
