"""Random systems of 1 to 12 drones as users write them: coordinates with few digits, any load."""

from __future__ import annotations

import numpy as np

CABLE_MODELS = ("massless", "rigid_rods", "rigid_links", "elastic")
LOADS = ("point", "beam", "plate", "l", "ring")


def random_scenario(seed):
    """Data of a scenario: a system, a start in the air and a hop."""
    draw = np.random.default_rng([24, seed])
    n, model = 1 + seed % 12, CABLE_MODELS[seed // 12 % 4]
    kinds = [kind for kind in LOADS if model in ("massless", "rigid_rods") or kind != "point"]
    kind = str(draw.choice(kinds))
    length_m = round(float(draw.uniform(1.0, 3.5)), 2)
    spread_m = 0.0 if draw.random() < 0.6 else 0.1 * length_m
    links = int(draw.choice([1, 1, 2, 5, 9]))
    places = attachments(draw, kind, n)
    shape = {
        "point": {"point_mass": True, "collision": {"size_m": [0.2, 0.2, 0.2]}},
        "beam": {"shape": {"kind": "box", "size_m": [round(0.4 * n, 2), 0.15, 0.1]}},
        "plate": {"shape": {"kind": "plate", "length_m": 1.2, "width_m": 0.8, "thickness_m": 0.04}},
        "l": {
            "inertia_kg_m2": [[0.2, 0.03, 0.0], [0.03, 0.2, 0.0], [0.0, 0.0, 0.38]],
            "collision": {"size_m": [1.5, 1.5, 0.1]},
        },
        "ring": {
            "inertia_kg_m2": [[0.25, 0.0, 0.0], [0.0, 0.25, 0.0], [0.0, 0.0, 0.5]],
            "collision": {"size_m": [1.6, 1.6, 0.06]},
        },
    }[kind]
    system = {
        "name": f"random_{seed}",
        "load": {
            "mass_kg": round(n * float(draw.uniform(0.2, 0.5)), 2),
            "cable_attachments_m": places,
            **shape,
        },
        "drones": {"from": "x500"},
        "cables": [
            {
                "mass_kg": 0.02,
                "radius_m": 0.002,
                "links": links,
                "length_m": round(length_m + spread_m * float(draw.uniform(-1.0, 1.0)), 2),
            }
            for _ in range(n)
        ],
    }
    hop = {"kind": "hold", "position_m": [0.0, 0.0, 2.0], "duration_s": 1.0}
    return {
        "name": f"random_{seed}",
        "system": system,
        "start": "air",
        "cable_model": model,
        "mission": {"stages": [hop]},
        "seed": seed,
    }


def attachments(draw, kind, n):
    """Places of the cables on a load, rounded to cm, [[x, y, z], ...]."""
    if kind == "point":
        return [[0.0, 0.0, 0.0]] * n
    if kind == "beam":  # in a line, or zig-zag by 5 cm
        x = 0.4 * (np.arange(n) - (n - 1) / 2.0)
        y = (0.05 if draw.random() < 0.5 else 0.0) * (-1.0) ** np.arange(n)
        places = np.column_stack([x, y, np.full(n, 0.05)])
    elif kind == "plate":
        places = np.column_stack([*draw.uniform([[-0.55], [-0.35]], [[0.55], [0.35]], (2, n)),
                                  np.full(n, 0.02)])  # fmt: skip
    elif kind == "l":  # along two arms; the origin is the centre of mass
        along = np.linspace(0.1, 1.9, n)
        x, y = np.maximum(1.0 - along, 0.0), np.maximum(along - 1.0, 0.0)
        places = np.column_stack([x - 0.25, y - 0.25, np.full(n, 0.05)])
    else:
        angle = 2.0 * np.pi * np.arange(n) / n + draw.uniform(0.0, 1.0)
        places = np.column_stack([0.75 * np.cos(angle), 0.75 * np.sin(angle), np.full(n, 0.03)])
    return [[round(float(v), 2) for v in place] for place in places]
