"""Energy and momentum of shafts and of cable that runs through its nodes."""

from __future__ import annotations

from musls_description.compiled import compiled
from musls_sim.plants.elastic.columns import (
    BR,
    BW,
    FIRST_NODE,
    LINEAR_DENSITY,
    REEL_A,
    REELS,
    REST_LENGTH,
    S_BODY,
    SEGMENTS,
    SPIN_AXIS,
    TURN_INERTIA,
    YV,
    V,
    X,
    Y,
)
from musls_sim.plants.elastic.reeling import side_sign
from musls_sim.plants.elastic.shafts import radius_at


@compiled()
def _passing(t, c, i):
    """Rate at which cable passes node i of a cable towards end B, by the state [m/s]."""
    kind = t.kinds[c]
    passing, n = 0.0, kind[SEGMENTS]
    for end in range(2):
        w = kind[REEL_A + end]
        if w >= 0:
            sh = t.shafts[w]
            rate = side_sign(t.turning[w], c, end) * radius_at(sh, sh[Y])[0] * sh[YV]
            passing += rate * (1.0 - i / n) if end == 0 else -rate * i / n
    return passing


@compiled()
def add_reel_energies(t, out):
    """Add the kinetic energy of shafts and of cable that runs, beyond that of the nodes."""
    for w in range(t.shafts.shape[0]):
        sh = t.shafts[w]
        b = t.turning[w, S_BODY]
        turning = 0.0
        for i in range(3):
            axis = 0.0
            for k in range(3):
                axis += t.bodies[b, BR + 3 * i + k] * sh[SPIN_AXIS + k]
            turning += axis * t.bodies[b, BW + i]
        out[0] += sh[TURN_INERTIA] * sh[YV] * (0.5 * sh[YV] + turning)
    for c in range(t.kinds.shape[0]):
        kind, cable = t.kinds[c], t.cables[c]
        if kind[REELS] == 0:
            continue
        n, first = kind[SEGMENTS], kind[FIRST_NODE]
        rest = cable[REST_LENGTH] / n
        h = 0.5 * cable[LINEAR_DENSITY] * rest
        for s in range(n):
            for i in range(s, s + 2):
                passing = _passing(t, c, i)
                for k in range(3):
                    g = (t.nodes[first + s + 1, X + k] - t.nodes[first + s, X + k]) / rest
                    out[0] += h * passing * g * (t.nodes[first + i, V + k] + 0.5 * passing * g)


@compiled()
def add_reel_momenta(t, linear, angular):
    """Add momentum, and angular momentum about the origin, of shafts and of cable that runs."""
    for w in range(t.shafts.shape[0]):
        sh = t.shafts[w]
        b = t.turning[w, S_BODY]
        for i in range(3):
            for k in range(3):
                axis = t.bodies[b, BR + 3 * i + k] * sh[SPIN_AXIS + k]
                angular[i] += sh[TURN_INERTIA] * sh[YV] * axis
    for c in range(t.kinds.shape[0]):
        kind, cable = t.kinds[c], t.cables[c]
        if kind[REELS] == 0:
            continue
        n, first = kind[SEGMENTS], kind[FIRST_NODE]
        half = 0.5 * cable[LINEAR_DENSITY]  # times rest length times g: half times the gap
        for s in range(n):
            a, b = t.nodes[first + s], t.nodes[first + s + 1]
            for i in range(s, s + 2):
                p, x = half * _passing(t, c, i), t.nodes[first + i]
                u, v, w = p * (b[X] - a[X]), p * (b[X + 1] - a[X + 1]), p * (b[X + 2] - a[X + 2])
                linear[0] += u
                linear[1] += v
                linear[2] += w
                angular[0] += x[X + 1] * w - x[X + 2] * v
                angular[1] += x[X + 2] * u - x[X] * w
                angular[2] += x[X] * v - x[X + 1] * u
