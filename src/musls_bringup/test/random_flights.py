"""Random flights from the ground: 1 to 12 drones, any length, load and cable model.

Run as a program it writes check's figures beside the flight's, a row for each seed (a count, and
the first seed if that is not 0); with a file of such rows it counts them. 200 take a quarter of an
hour on a machine that is free:

    python random_flights.py 200 > random_flights.csv
    python random_flights.py random_flights.csv
"""

from __future__ import annotations

import csv
import re
import signal
import sys
import time
import warnings
from collections import Counter

import numpy as np

import musls
from musls_bringup.new.templates import rope_for
from musls_control.mission.spec import PHASES
from musls_description.config.errors import MuslsError
from musls_description.system.drone import tip_radius_m

CABLE_MODELS = ("massless", "rigid_links", "elastic", "massless")
AIRFRAMES = {
    "crazyflie": (0.027, 1.5, 0.08, (0.3, 2.0)),
    "x500": (2.11, 0.9, 0.37, (0.6, 20.0)),
    "typhoon_h480": (1.5, 0.5, 0.4, (0.8, 20.0)),
    "heavy": (10.4, 2.0, 0.95, (2.0, 50.0)),
}
"""Mass, lift beyond it over the mass, radius, lengths of cables."""

HEAVY = {
    "mass_kg": 10.4,
    "shape": {"kind": "box", "size_m": [0.7, 0.7, 0.14]},
    "model": "heavy",
    "cable_attachment_m": [0, 0, -0.08],
    "collision": {"size_m": [0.99, 0.99, 0.4], "center_m": [0, 0, -0.104]},
    "rotors": [
        {
            "position_m": [x, y, 0.096],
            "spin": "ccw" if x * y < 0 else "cw",
            "thrust_coefficient_n_s2": 0.00066844,
            "moment_ratio_m": 0.05364,
            "time_constant_up_s": 0.0125,
            "time_constant_down_s": 0.025,
            "speed_min_rad_s": 56.5,
            "speed_max_rad_s": 377.0,
            "drag_n_s2_m_rad": 0.0029,
        }
        for x, y in ((0.5, -0.5), (-0.5, 0.5), (0.5, 0.5), (-0.5, -0.5))
    ],
}


def random_flight(seed):
    """Data of a scenario that lifts a load, carries it a metre or so and sets it down."""
    draw = np.random.default_rng([44, seed])
    n, model = 1 + seed % 12, str(draw.choice(CABLE_MODELS))
    frame = str(draw.choice(list(AIRFRAMES)))
    own_kg, lift, radius_m, lengths = AIRFRAMES[frame]
    length_m = float(f"{np.exp(draw.uniform(*np.log(lengths))):.2g}")
    share_kg = own_kg * lift * float(draw.choice([0.02, 0.1, 0.2, 0.3]))
    mass_kg = float(f"{n * share_kg:.2g}")
    rope = rope_for(9.80665 * share_kg)
    # A ring or a plate, from as wide as a cable is thick to as wide as the drones apart.
    size_m = float(f"{radius_m * draw.uniform(0.3, 1.5) * max(1.0, 0.5 * n):.2g}")
    angle = 2.0 * np.pi * np.arange(n) / n + draw.uniform(0.0, 1.0)
    at = 0.45 * size_m * (n > 1) * np.column_stack([np.cos(angle), np.sin(angle)])
    thick_m = float(f"{draw.uniform(0.05, 0.3) * size_m:.2g}")
    places = [[round(float(x), 3), round(float(y), 3), thick_m / 2] for x, y in at]
    high_m = round(float(draw.uniform(1.0, 2.0)), 1)
    stage = {"kind": "line", "start_m": [0, 0, high_m], "end_m": [1, 0, high_m],
             "speed_m_s": 0.5, "repetitions": 1}  # fmt: skip
    if draw.random() < 0.5:
        stage = {"kind": "hold", "position_m": [0, 0, high_m], "duration_s": 3.0}
    return {
        "name": f"random_flight_{seed}",
        "system": {
            "name": f"{n}_{frame}",
            "load": {
                "mass_kg": mass_kg,
                "shape": {"kind": "box", "size_m": [size_m, size_m, thick_m]},
                "cable_attachments_m": places,
            },
            "drones": HEAVY if frame == "heavy" else {"from": frame},
            "cables": {
                "length_m": length_m,
                "material": rope.material,
                "diameter_m": rope.diameter_m,
                "links": rope.links,
            },
        },
        "cable_model": model,
        "controller": str(draw.choice(["formation", "formation", "payload"])),
        "mission": {"stages": [stage]},
        "seed": seed,
    }


def flown(scenario):
    """Fly; what came of it.

    Returns:
        The run; and least distance of rotor tips and its time, height of the load at the end of
        the lift over the planned one, what went wrong, and the load's greatest height.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        run = musls.fly(scenario)
    time_s, n = np.asarray(run.time_s), scenario.system.n_drones
    radii = [tip_radius_m(drone) for drone in scenario.system.drones]
    at = [run.body(f"drone_{i + 1}").position_enu_m for i in range(n)]
    least_m, when_s = np.inf, 0.0
    for i in range(n):
        for j in range(i):
            gap = np.linalg.norm(at[i] - at[j], axis=1) - radii[i] - radii[j]
            if gap.min() < least_m:
                least_m, when_s = float(gap.min()), float(time_s[gap.argmin()])
    lifted = next((s.start_s for s in run.stages if s.name not in PHASES - {"transit"}), None)
    height = np.nan
    if lifted is not None:
        height_m = np.interp(lifted, time_s, run.body("load").position_enu_m[:, 2])
        standing_m = run.body("load").position_enu_m[0, 2]
        planned_m = scenario.mission.stages[0].pose(np.zeros(1))[0][2]
        height = float((height_m - standing_m) / (planned_m - standing_m))
    wrong = ("collision", "rotors_overlap", "doubtful", "not_in_place")
    told = [f"{e.time_s:.1f} s {e.kind}: {e.what}" for e in run.events if e.kind in wrong]
    highest_m = float(run.body("load").position_enu_m[:, 2].max())
    return run, (least_m, when_s, height, told, highest_m)


COLUMNS = (
    "seed", "system", "cable_model", "controller", "cable_m", "load_kg", "check", "margin",
    "tips_m", "flown_margin", "flown_tips_m", "at_s", "height", "processor_s", "remarks",
)  # fmt: skip
"""Of the table: `margin` and `tips_m` are check's, those of the flight have its name; `height` is
that of the load at the end of the lift over the planned one."""


HIT = re.compile("collision|overlap|doubtful")
"""Remarks that make a flight invalid."""

LONGEST_S = 200.0
"""Processor time of a seed; the first one of a cable model may compile for a minute."""


def _cut(number, frame):
    raise TimeoutError


def main(count, first=0):
    """Write a row for each seed."""
    signal.signal(signal.SIGVTALRM, _cut)
    out = csv.DictWriter(sys.stdout, COLUMNS)
    out.writeheader()
    for seed in range(first, first + count):
        data, begin_s = random_flight(seed), time.process_time()
        system = data["system"]
        row = {
            "seed": seed, "system": system["name"], "cable_model": data["cable_model"],
            "controller": data["controller"], "cable_m": system["cables"]["length_m"],
            "load_kg": system["load"]["mass_kg"],
        }  # fmt: skip
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_S)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                row |= compared(as_scenario(data))
        except TimeoutError:
            row["remarks"] = f"cut after {LONGEST_S:g} s"
        except MuslsError as error:
            row["remarks"] = f"{type(error).__name__}: {str(error)[:120]}"
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        out.writerow(row | {"processor_s": f"{time.process_time() - begin_s:.1f}"})
        sys.stdout.flush()


def compared(scenario):
    """What check says of a scenario, and what its flight shows, as cells of a row."""
    from musls_analysis.comparison.rotor_margins import least_margin
    from musls_bringup.before.verdict import judge

    found = judge(scenario, flown=False)
    closest = found.margins and found.margins.separation
    tips_m = closest.tips_m if closest else np.inf
    margin = f"{found.margins.thrust_margin:.2f}" if found.margins else ""
    row = {"check": "yes" if found.can_be_flown else "no", "margin": margin,
           "tips_m": f"{tips_m:.2f}", "remarks": "; ".join(found.problems)[:120]}  # fmt: skip
    if found.can_be_flown:
        run, (least_m, when_s, height, wrong, _) = flown(scenario)
        wrong.sort(key=lambda remark: not HIT.search(remark))
        worst = least_margin(run, scenario.system)
        row |= {"flown_margin": f"{worst[0]:.2f}" if worst else "", "at_s": f"{when_s:.1f}",
                "flown_tips_m": f"{least_m:.2f}", "height": f"{height:.2f}",
                "remarks": "; ".join(wrong)[:200]}  # fmt: skip
    return row


def summary(path):
    """Print what became of the rows of a table."""
    with open(path) as file:
        rows = list(csv.DictReader(file))
    for key in ("cable_model", "controller"):
        print(key, dict(sorted(Counter(row[key] for row in rows).items())))
    print("drones", dict(Counter(int(row["system"].split("_")[0]) for row in rows)))
    yes = [row for row in rows if row["flown_tips_m"]]
    hit = [row["seed"] for row in yes if HIT.search(row["remarks"])]
    print(f"{len(rows)} systems, {len(yes)} flown, invalid {hit}; of the others:")
    for row in rows:
        if row not in yes:
            print(" ", row["seed"], row["system"], row["check"], row["remarks"])
    number = {key: np.array([float(row[key] or "nan") for row in yes]) for key in COLUMNS[7:14]}
    many = np.isfinite(number["tips_m"])
    closer_m = number["tips_m"][many] - number["flown_tips_m"][many]
    less = number["margin"] - number["flown_margin"]
    print(
        f"tips closer than planned: median {np.median(closer_m):.2f} m, most {closer_m.max():.2f}"
    )
    print(f"margin less than at rest: median {np.nanmedian(less):.2f}, most {np.nanmax(less):.2f}")
    print(f"height {np.nanmin(number['height']):.2f} to {np.nanmax(number['height']):.2f}")
    print(f"processor time: median {np.median(number['processor_s']):.1f} s")
    for row in yes:
        share = float(row["flown_tips_m"]) / float(row["tips_m"])
        if share < 0.5 or row["remarks"] or not 0.9 < float(row["height"]) < 1.1:
            print(*(row[key] for key in COLUMNS if key != "check"))


def as_scenario(data):
    """A scenario from its data."""
    import tempfile
    from pathlib import Path

    import yaml

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scenario.yaml"
        path.write_text(yaml.safe_dump(data))
        return musls.load_scenario(path)


if __name__ == "__main__":
    if sys.argv[1].endswith(".csv"):
        summary(sys.argv[1])
    else:
        main(*(int(word) for word in sys.argv[1:]))
