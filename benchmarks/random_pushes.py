"""Random systems that are pushed in gusts: `payload` beside `formation`.

1 to 8 drones of 27 g to 10 kg on cables of 0.3 to 50 m, in three models of cables; the load is
pushed aside with a third of its weight for two seconds. Run as a program it writes a row for each
seed (a count, and the first seed if that is not 0), and at the end how many were lost and how many
erred less:

    python benchmarks/random_pushes.py 100 9000 payload direct > benchmarks/random_pushes.csv
"""

from __future__ import annotations

import csv
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import musls
from musls_bringup.new.templates import rope_for
from musls_description.config.errors import MuslsError

sys.path.insert(0, str(Path(__file__).parents[1] / "src" / "musls_bringup" / "test"))
from random_flights import AIRFRAMES, HEAVY

MODELS = ("massless", "rigid_links", "elastic")
LENGTHS_M = {"crazyflie": (0.3, 3.0), "x500": (0.6, 50.0), "typhoon_h480": (0.8, 30.0),
             "heavy": (2.0, 50.0)}  # fmt: skip
PUSH_S, LASTS_S, FLIES_S = 3.0, 2.0, 15.0
KINDS = {"formation": {"kind": "formation"}, "payload": {"kind": "payload"},
         "direct": {"kind": "payload", "output": "direct"}}  # fmt: skip


def random_push(seed):
    """Data of a scenario, without its controller, and the length of its cables."""
    draw = np.random.default_rng([66, seed])
    n, model = int(draw.integers(1, 9)), MODELS[seed % 3]
    frame = str(draw.choice(list(AIRFRAMES)))
    own_kg, lift, radius_m, _ = AIRFRAMES[frame]
    length_m = float(f"{np.exp(draw.uniform(*np.log(LENGTHS_M[frame]))):.2g}")
    share_kg = own_kg * lift * float(draw.choice([0.1, 0.2, 0.3]))
    mass_kg = float(f"{n * share_kg:.2g}")
    size_m = float(f"{radius_m * draw.uniform(0.5, 1.5) * max(1.0, 0.5 * n):.2g}")
    angle = 2.0 * np.pi * np.arange(n) / n
    at = 0.45 * size_m * (n > 1) * np.column_stack([np.cos(angle), np.sin(angle)])
    thick_m = float(f"{draw.uniform(0.1, 0.3) * size_m:.2g}")
    turn = draw.uniform(0.0, 2.0 * np.pi)
    force_n = mass_kg * 9.80665 / 3.0 * np.array([np.cos(turn), np.sin(turn), 0.0])
    gust_m_s = float(f"{draw.uniform(0.3, 1.0) * (1.0 if own_kg > 0.1 else 0.3):.2g}")
    rope = rope_for(9.80665 * share_kg)
    return {
        "name": f"random_push_{seed}",
        "system": {
            "name": f"{n}_{frame}",
            "load": {
                "mass_kg": mass_kg,
                "shape": {"kind": "box", "size_m": [size_m, size_m, thick_m]},
                "cable_attachments_m": [[round(float(x), 4), round(float(y), 4), thick_m / 2]
                                        for x, y in at],
            },
            "drones": HEAVY if frame == "heavy" else {"from": frame},
            "cables": {"length_m": length_m, "material": rope.material,
                       "diameter_m": rope.diameter_m, "links": min(rope.links, 10)},
        },
        "cable_model": model,
        "start": "air",
        "wind": {"gust_std_m_s": [gust_m_s] * 3, "gust_time_s": 2.0},
        "mission": {"stages": [
            {"kind": "hold", "position_m": [0, 0, 2.0 + length_m / 5], "duration_s": FLIES_S}
        ]},
        "events": [{"kind": "poke", "when": {"time_s": PUSH_S}, "body": "load",
                    "force_enu_n": force_n.tolist(), "duration_s": LASTS_S}],
        "seed": seed,
    }, length_m  # fmt: skip


def flown(data, controller, length_m):
    """Mean and largest distance of the load from the push on, and why the flight was lost."""
    away = []
    try:
        scenario = musls.load_scenario(data | {"controller": controller})
        with musls.Session(scenario, force=True) as session:
            while session.time_s < FLIES_S and not session.finished:
                session.advance(5)
                if session.time_s > PUSH_S:
                    gap = session.state.position_enu_m[0] - session.reference.position_enu_m
                    away.append(float(np.linalg.norm(gap)))
    except MuslsError as error:
        return np.nan, np.nan, str(error)[:60]
    late = np.mean(away[-50:])
    lost = f"{late:.1f} m off at the end" if late > 0.5 + 0.1 * length_m else ""
    return float(np.mean(away)), float(np.max(away)), lost


def main(count, first=0, kinds=("formation", "payload")):
    """Write a row for each seed."""
    columns = ["seed", "system", "cable_model", "cable_m"]
    columns += [f"{kind}_{what}" for kind in kinds for what in ("mean_m", "most_m", "lost")]
    out = csv.DictWriter(sys.stdout, [*columns, "processor_s"])
    out.writeheader()
    lost, better, compared = dict.fromkeys(kinds, 0), dict.fromkeys(kinds, 0), 0
    for seed in range(first, first + count):
        (data, length_m), begin_s = random_push(seed), time.process_time()
        row = {"seed": seed, "system": data["system"]["name"], "cable_m": length_m,
               "cable_model": data["cable_model"]}  # fmt: skip
        for kind in kinds:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                mean_m, most_m, why = flown(data, KINDS[kind], length_m)
            row |= {f"{kind}_mean_m": f"{mean_m:.3f}", f"{kind}_most_m": f"{most_m:.3f}"}
            row[f"{kind}_lost"] = why
        base = row["formation_lost"]
        compared += not base
        for kind in kinds:
            lost[kind] += bool(row[f"{kind}_lost"]) and not base
            less = float(row[f"{kind}_mean_m"]) < float(row["formation_mean_m"])
            better[kind] += less and not base
        row["processor_s"] = f"{time.process_time() - begin_s:.1f}"
        out.writerow(row)
        sys.stdout.flush()
    for kind in kinds[1:]:
        print(f"{kind}: {lost[kind]} of {compared} lost that formation holds, "
              f"{better[kind]} err less", file=sys.stderr)  # fmt: skip


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    kinds = [word for word in sys.argv[1:] if word in KINDS and word != "formation"]
    main(*numbers, kinds=("formation", *(kinds or ["payload"])))
