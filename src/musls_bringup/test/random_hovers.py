"""Mean thrust of random hovers over their weight: 1 to 12 drones, cables as users write them.

Run as a program it writes a row for each seed, and at the end how many are off by more than 0.2 %:

    python random_hovers.py 300 > random_hovers.csv
"""

from __future__ import annotations

import csv
import sys
import time
import warnings

import numpy as np
from random_flights import AIRFRAMES, HEAVY

import musls
from musls_description.config.errors import MuslsError

CABLE_MODELS = ("rigid_links", "rigid_links", "rigid_links", "elastic", "massless", "rigid_rods")
LENGTHS_M = {"crazyflie": (0.3, 3.0), "x500": (0.6, 50.0), "typhoon_h480": (0.8, 30.0),
             "heavy": (2.0, 50.0)}  # fmt: skip
CALM_S = 6.0
"""At the end of the hover over which the thrust is averaged."""

ALLOWED = 2e-3


def random_hover(seed):
    """Data of a scenario that hovers for 12 s, from the ground or the air."""
    draw = np.random.default_rng([62, seed])
    n, model = int(draw.integers(1, 13)), str(draw.choice(CABLE_MODELS))
    frame = str(draw.choice(list(AIRFRAMES)))
    own_kg, lift, radius_m, _ = AIRFRAMES[frame]
    length_m = float(f"{np.exp(draw.uniform(*np.log(LENGTHS_M[frame]))):.2g}")
    share_kg = own_kg * lift * float(draw.choice([0.1, 0.2, 0.3]))
    links = 1 if model == "rigid_rods" else int(np.exp(draw.uniform(0.0, np.log(61.0))))
    size_m = float(f"{radius_m * draw.uniform(0.3, 1.5) * max(1.0, 0.5 * n):.2g}")
    angle = 2.0 * np.pi * np.arange(n) / n + draw.uniform(0.0, 1.0)
    at = 0.45 * size_m * (n > 1) * np.column_stack([np.cos(angle), np.sin(angle)])
    cables = {
        "length_m": length_m,
        "mass_kg": float(f"{share_kg * draw.uniform(0.002, 0.05):.1g}"),
        "radius_m": float(f"{np.sqrt(share_kg) * draw.uniform(0.5e-3, 3e-3):.1g}"),
        "links": links,
    }
    if draw.random() < 0.3:
        cables["joint"] = {"damping_n_m_s_rad": float(draw.choice([0.0, 1e-5, 1e-3]))}
    # Clamped rods make one body of all, whose tilt `formation` does not know.
    controller = {"kind": "payload", "output": "direct"} if model == "rigid_rods" else "formation"
    return {
        "name": f"random_hover_{seed}",
        "system": {
            "name": f"{n}_{frame}",
            "load": {
                "mass_kg": float(f"{n * share_kg:.2g}"),
                "shape": {"kind": "box", "size_m": [size_m, size_m, round(0.2 * size_m, 4)]},
                "cable_attachments_m": [[round(float(x), 3), round(float(y), 3), 0.1 * size_m]
                                        for x, y in at],
            },
            "drones": HEAVY if frame == "heavy" else {"from": frame},
            "cables": cables,
        },
        "cable_model": model,
        "controller": controller,
        "start": str(draw.choice(["ground", "air"])),
        "mission": {"stages": [{"kind": "hold", "position_m": [0, 0, 1.5], "duration_s": 12.0}]},
        "seed": seed,
    }  # fmt: skip


def thrust_over_weight(scenario):
    """Mean thrust less change of momentum, in the last seconds of the hold, over the weight.

    Returns:
        The ratio, and what the plant called doubtful.
    """
    system = scenario.system
    mass = np.array([system.load.mass_kg, *(drone.mass_kg for drone in system.drones)])
    thrusts, momenta = [], []
    with musls.Session(scenario, force=True) as session:
        period_s = session.plant.period_s
        while not session.finished:
            session.advance(1)
            if session.stage != "hold":
                if thrusts:
                    break
                continue
            thrusts.append(vertical_thrust(session.state, system))
            momenta.append(mass @ session.state.velocity_enu_m_s[:, 2])
        doubts = [event.what for event in session.plant.happened if event.kind == "doubtful"]
    calm = slice(-int(CALM_S / period_s), None)
    change = (momenta[-1] - momenta[calm][0]) / (period_s * (len(momenta[calm]) - 1))
    if scenario.cable_model in ("rigid_links", "elastic"):  # the other models' cables have no mass
        mass = [*mass, *(cable.mass_kg for cable in system.cables)]
    weight = np.sum(mass) * scenario.physics.gravity_m_s2
    return (np.mean(thrusts[calm]) - change) / weight, doubts


def vertical_thrust(state, system):
    """Vertical force of all rotors [N]."""
    up = 0.0
    for i, drone in enumerate(system.drones):
        _, x, y, _ = state.orientation_wxyz[1 + i]
        thrust = [r.thrust_coefficient_n_s2 for r in drone.rotors] @ state.rotor_speed_rad_s[i] ** 2
        up += thrust * (1.0 - 2.0 * (x * x + y * y))
    return up


COLUMNS = (
    "seed",
    "system",
    "cable_model",
    "start",
    "cable_m",
    "links",
    "joint",
    "thrust_off_percent",
    "remarks",
    "processor_s",
)


def main(count, first=0):
    """Write a row for each seed."""
    out = csv.DictWriter(sys.stdout, COLUMNS)
    out.writeheader()
    off = flown = 0
    for seed in range(first, first + count):
        data, begin_s = random_hover(seed), time.process_time()
        cables = data["system"]["cables"]
        row = {"seed": seed, "system": data["system"]["name"], "cable_model": data["cable_model"],
               "start": data["start"], "cable_m": cables["length_m"], "links": cables["links"],
               "joint": cables.get("joint", {}).get("damping_n_m_s_rad", "")}  # fmt: skip
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ratio, doubts = thrust_over_weight(musls.load_scenario(data))
            flown += 1
            off += abs(ratio - 1.0) > ALLOWED
            row |= {
                "thrust_off_percent": f"{100 * (ratio - 1.0):.3f}",
                "remarks": "; ".join(doubts)[:160],
            }
        except MuslsError as error:
            row["remarks"] = f"{type(error).__name__}: {str(error)[:160]}"
        out.writerow(row | {"processor_s": f"{time.process_time() - begin_s:.1f}"})
        sys.stdout.flush()
    print(f"{flown} of {count} flown, {off} off by more than {100 * ALLOWED:g} %", file=sys.stderr)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
