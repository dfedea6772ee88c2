"""What `check` says of random scenarios against their flights, drawn from what may go wrong.

Two styles: "free" draws drones, load, hooks, cables, mission, controller, events and obstacles
one by one; "changed" takes a shipped scenario, multiplies some of its numbers and swaps parts. As a
program it writes a row for each seed (style, count, first seed), the flights in another process:

    python random_verdicts.py free 100 > random_verdicts.csv
    python random_verdicts.py changed 100 0
"""

from __future__ import annotations

import csv
import io
import json
import math
import multiprocessing
import signal
import sys
import tempfile
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import yaml
from random_flights import HEAVY

import musls
from musls_bringup.catalogue.shipped import SCENARIOS, names_in
from musls_bringup.cli.app import run
from musls_description.config.errors import MuslsError
from musls_description.config.schema import to_yaml

# ---------- Style "free": parts that are drawn one by one

LIFTS_KG = {"crazyflie": 0.015, "x500": 1.4, "typhoon_h480": 2.0, "heavy": 10.0}
"""Mass that one drone just carries."""

CONTROLLERS = (
    "formation", "formation", "formation", "formation", "payload", "payload", "payload",
    "rotortm", "rotortm", "pid", "pid", "hover_policy", "transport_policy", "track_policy", "nmpc",
)  # fmt: skip
MODELS = "rigid_links", "rigid_links", "elastic", "massless", "massless", "rigid_rods"


def rounded(value, digits=3):
    """A number as a user writes it."""
    return float(f"{value:.{digits}g}")


def drawn_load(draw, n, share_kg):
    """A load of any size, shape and mass, and hooks that need not suit it."""
    mass_kg = rounded(n * share_kg * float(draw.choice([0.001, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 2.0])))
    size_m = rounded(np.exp(draw.uniform(np.log(0.02), np.log(4.0))))
    high_m = rounded(size_m * draw.uniform(0.05, 1.0))
    shape = {"kind": "box", "size_m": [size_m, rounded(size_m * draw.uniform(0.3, 1.0)), high_m]}
    if draw.random() < 0.2:
        shape = {"kind": "cylinder", "radius_m": size_m / 2.0, "length_m": high_m}
    angle = 2.0 * np.pi * np.arange(n) / n + draw.uniform(0.0, 1.0)
    hooks = 0.4 * size_m * np.column_stack([np.cos(angle), np.sin(angle)])
    kind = draw.choice(["ring", "ring", "ring", "aside", "one", "line", "free"])
    if kind == "aside":
        hooks += size_m * draw.uniform(-0.3, 0.3, 2)
    elif kind == "one":
        hooks[:] = draw.choice([0.0, 0.1 * size_m])
    elif kind == "line":
        hooks[:, 1] = 0.0
    elif kind == "free":
        hooks = size_m * draw.uniform(-0.5, 0.5, (n, 2))
    at = [[rounded(x), rounded(y), high_m / 2.0] for x, y in hooks]
    if draw.random() < 0.1:
        box = {"size_m": [size_m] * 3}
        return {"mass_kg": mass_kg, "point_mass": True, "collision": box,
                "cable_attachments_m": [[0.0, 0.0, 0.0] for _ in range(n)]}  # fmt: skip
    return {"mass_kg": mass_kg, "shape": shape, "cable_attachments_m": at}


def drawn_stage(draw, high_m):
    """A stage of some seconds: slow, fast, far away, too low."""
    kind = draw.choice(["hold", "hold", "circle", "waypoints", "line"])
    speed = rounded(np.exp(draw.uniform(np.log(0.3), np.log(6.0))))
    if kind == "hold":
        place = [rounded(v) for v in draw.uniform(-1.0, 1.0, 2)]
        return {"kind": "hold", "position_m": [*place, high_m], "duration_s": 3.0}
    if kind == "circle":
        radius_m = rounded(draw.uniform(0.3, 1.0) * speed)
        return {"kind": "circle", "radius_m": radius_m, "speed_m_s": speed, "height_m": high_m}
    if kind == "line":
        return {"kind": "line", "start_m": [0, 0, high_m], "end_m": [2, 0, high_m],
                "speed_m_s": speed, "repetitions": 1}  # fmt: skip
    points = draw.uniform(-2.0, 2.0, (3, 3)) * [1.0, 1.0, 0.2] + [0.0, 0.0, high_m]
    return {"kind": "waypoints", "speed_m_s": speed,
            "points": [[rounded(v) for v in point] for point in points]}  # fmt: skip


def drawn_event(draw, n, stages, mass_kg):
    """An event in one of the stages, on one of the drones."""
    name = stages[draw.integers(len(stages))]["kind"]
    when = {"stage": name, "after_s": rounded(draw.uniform(0.0, 2.0))}
    drone = int(draw.integers(1, n + 1))
    return draw.choice([
        {"kind": "load_mass", "mass_kg": rounded(mass_kg * draw.uniform(0.3, 3.0))},
        {"kind": "rotor_failure", "drone": drone, "rotor": 1},
        {"kind": "rotor_failure", "drone": drone, "rotor": 1, "efficiency": 0.7},
        {"kind": "drone_lost", "drone": drone},
        {"kind": "link_lost", "drone": drone},
        {"kind": "cable_cut", "cable": drone},
        {"kind": "release"},
        {"kind": "gust", "velocity_enu_m_s": [rounded(draw.uniform(0.0, 15.0)), 0, 0],
         "duration_s": 2.0},
        {"kind": "mocap_outage", "duration_s": 2.0},
        {"kind": "poke", "body": "load", "force_enu_n": [rounded(5.0 * mass_kg), 0, 0],
         "duration_s": 0.5},
    ]) | {"when": when}  # fmt: skip


def drawn_obstacle(draw, number, high_m):
    """A box, post or gate near the way."""
    place = [rounded(v) for v in draw.uniform(-3.0, 3.0, 2)]
    name, high_m = f"thing_{number}", rounded(draw.uniform(0.1, high_m + 2.0))
    if draw.random() < 0.3:
        return {"kind": "gate", "name": name, "width_m": rounded(draw.uniform(1.0, 5.0)),
                "height_m": 3.0, "position_enu_m": [*place, high_m]}  # fmt: skip
    size_m = [rounded(v) for v in draw.uniform(0.1, 1.5, 3)]
    return {"kind": "box", "name": name, "size_m": size_m, "position_enu_m": [*place, high_m]}


def free_scenario(seed):
    """Data of a scenario whose parts need not suit each other."""
    draw = np.random.default_rng([65, seed])
    n, frame = int(draw.integers(1, 9)), str(draw.choice(list(LIFTS_KG)))
    controller = str(draw.choice(CONTROLLERS))
    if controller.endswith("policy") and draw.random() < 0.8:
        n, frame = 3, "x500"
    share_kg, length_m = LIFTS_KG[frame], rounded(np.exp(draw.uniform(np.log(0.3), np.log(20.0))))
    load = drawn_load(draw, n, share_kg)
    model = "massless" if load.get("point_mass") else str(draw.choice(MODELS))
    drones = HEAVY if frame == "heavy" else {"from": frame}
    if draw.random() < 0.2 and frame != "heavy":
        kg = {"crazyflie": 0.027, "x500": 2.0, "typhoon_h480": 1.6}[frame]
        drones = drones | {"mass_kg": rounded(kg * draw.uniform(0.6, 1.8))}
    high_m = rounded(draw.choice([0.3, 1.0, 1.5, 1.5, 3.0, 3.0]))
    stages = [drawn_stage(draw, high_m) for _ in range(draw.integers(1, 3))]
    data = {
        "name": f"free_{seed}",
        "system": {
            "name": f"{n}_{frame}",
            "load": load,
            "drones": drones,
            "cables": {
                "length_m": length_m,
                "mass_kg": rounded(share_kg * draw.uniform(0.002, 0.1)),
                "radius_m": rounded(math.sqrt(share_kg) * draw.uniform(0.5e-3, 3e-3)),
                "links": 1 if model == "rigid_rods" else int(np.exp(draw.uniform(0.0, 2.5))),
            },
        },
        "cable_model": model,
        "controller": controller,
        "start": str(draw.choice(["ground", "air", "air"])),
        "mission": {"stages": stages, "form_up_s": 4.0},
        "seed": seed,
    }
    if draw.random() < 0.5:
        data["events"] = [drawn_event(draw, n, stages, load["mass_kg"])]
    if draw.random() < 0.3:
        wind = [rounded(v) for v in draw.uniform(-8.0, 8.0, 2)]
        data["wind"] = {"mean_enu_m_s": [*wind, 0], "gust_std_m_s": [1, 1, 0.3]}
    if draw.random() < 0.3:
        things = [drawn_obstacle(draw, k, high_m) for k in range(int(draw.integers(1, 4)))]
        data["world"] = {"obstacles": things}
    if draw.random() < 0.2:
        data["limits"] = {"separation_m": rounded(draw.uniform(0.05, 1.5)),
                          "collision": str(draw.choice(["report", "end"]))}  # fmt: skip
    if draw.random() < (0.3 if n > 3 else 0.02):
        data["contingency"] = {"then": str(draw.choice(["continue", "land"]))}
    if draw.random() < 0.15:
        data["formation"] = {"radius_m": rounded(draw.uniform(0.1, 1.2) * max(length_m, 0.5)),
                             "height_m": rounded(draw.uniform(0.5, 1.1) * length_m)}  # fmt: skip
    return data


# ---------- Style "changed": shipped scenarios, mutated

LONG = ("paper", "gravity_rig", "crane", "cdpr_reel", "rotortm_cables_laps")
"""Shipped scenarios whose flights take minutes."""


def leaves(data, path=()):
    """Paths of the numbers in nested data."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from leaves(value, (*path, key))
    elif isinstance(data, list):
        for k, value in enumerate(data):
            yield from leaves(value, (*path, k))
    elif isinstance(data, int | float) and not isinstance(data, bool) and data:
        yield path


def changed_scenario(seed):
    """Data of a shipped scenario with some of its numbers and parts changed."""
    draw = np.random.default_rng([650, seed])
    names = [name for name in names_in(SCENARIOS) if name not in LONG]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        data = yaml.safe_load(to_yaml(musls.load_scenario(str(draw.choice(names)))))
    data["name"] = f"changed_{seed}_{data.get('name', '')}"
    by_part = {}
    for path in leaves(data):
        if path[0] not in ("seed", "recording"):
            by_part.setdefault(path[:2], []).append(path)
    for _ in range(draw.integers(1, 4)):
        parts = list(by_part)
        paths = by_part[parts[draw.integers(len(parts))]]
        *way, last = paths[draw.integers(len(paths))]
        at = data
        for key in way:
            at = at[key]
        times = float(np.exp(draw.uniform(np.log(0.3), np.log(3.0))))
        at[last] = max(1, round(at[last] * times)) if isinstance(at[last], int) else (
            rounded(at[last] * times, 4))  # fmt: skip
    stages = (data.get("mission") or {}).get("stages") or []
    n = len(data["system"]["drones"])
    if draw.random() < 0.25:
        data["controller"] = str(draw.choice(CONTROLLERS))
    if draw.random() < 0.2:
        data["cable_model"] = str(draw.choice(MODELS))
    if draw.random() < 0.3 and stages and n and data["system"].get("load"):
        event = drawn_event(draw, n, stages, data["system"]["load"]["mass_kg"])
        data["events"] = [*data.get("events", ()), event]
    if draw.random() < 0.15:
        data.setdefault("world", {})["obstacles"] = [drawn_obstacle(draw, 1, 1.0)]
    return data


STYLES = {"free": free_scenario, "changed": changed_scenario}


# ---------- Check against flight

LONGEST_S = 20.0
"""Processor time of each command; compile the cable models before."""


class Cut(BaseException):
    """A command took too long."""


def _cut(number, frame):
    raise Cut


def called(*words):
    """Exit code, standard output and errors of a command; the code is None where it was cut."""
    signal.signal(signal.SIGVTALRM, _cut)
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_S)
    out, told = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(told):
            code = run(list(words))
    except Cut:
        code = None
    except Exception as error:
        code, told = -1, io.StringIO(f"{type(error).__name__}: {error}")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
    return code, out.getvalue(), told.getvalue()


def error_of(told):
    """The error among the lines on standard error."""
    lines = told.splitlines()
    return next((text for text in lines if text.startswith("musls: error: ")), told)


def compared(file, flown):
    """What check says of a scenario's file, what its flight is, and what differs; as cells.

    `flown` calls a command, in this process or another one.
    """
    code, text, told = called("check", str(file), "--json")
    row = {"check": code, "reason": error_of(told), "differs": ""}
    if code is None:
        return row | {"reason": "cut"}
    refused = False
    if code in (0, 1):
        found = json.loads(text)
        refused = "flown" not in found
        row["reason"] = "; ".join(found["problems"]) or found["sentence"]
    out = ["--out", str(file.parent / "flown"), "--overwrite"]
    row["dry"] = called("fly", str(file), "--dry-run")[0]
    row["fly"], text, told = flown("fly", str(file), *out, "--json", "--quiet", "--no-report")
    if row["fly"] is None:
        return row | {"reason": "cut"}
    expected = {0: (0,), 1: (2,) if refused else (2, 3), 2: (2,)}.get(code, ())
    if row["fly"] not in expected:
        row["differs"] = f"code: {told or text}"[:300]
    elif code == 1 and row["fly"] == 3:
        flight = [f"in flight: {line}" for line in json.loads(text)["warnings"]]
        if flight != found["problems"]:
            row["differs"] = f"reason: {'; '.join(flight)}"
    elif row["fly"] == 2:
        said = " ".join(error_of(told).removeprefix("musls: error: ").split())
        first = " ".join((found["problems"][0] if code == 1 else row["reason"]).split())
        first = first.removeprefix("musls: error: ").removeprefix("in flight: ")
        if not said.startswith(first):
            row["differs"] = f"reason: {said}"
    if (row["dry"] == 2) != (code == 2 or refused):
        row["differs"] += f" dry run: {row['dry']}"
    return row


COLUMNS = (
    "seed", "style", "system", "cable_model", "controller", "events", "check", "dry", "fly",
    "differs", "processor_s", "reason",
)  # fmt: skip
"""Exit codes of `check`, `fly --dry-run` and `fly`; empty where a command was cut."""


def row_of(style, seed, flown=called):
    """Row of a scenario, as text."""
    begin_s, data = time.process_time(), STYLES[style](seed)
    controller = data.get("controller", "formation")
    kinds = [event["kind"] for event in data.get("events", ())]
    row = {
        "seed": seed, "style": style, "system": data["system"].get("name", ""),
        "cable_model": data.get("cable_model", ""),
        "controller": controller if isinstance(controller, str) else controller["kind"],
        "events": " ".join(kinds),
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{style}_{seed}.yaml"
        file.write_text(yaml.safe_dump(data, sort_keys=False))
        try:
            row |= compared(file, flown)
        except MuslsError as error:
            row["differs"] = f"{type(error).__name__}: {error}"
    row["reason"] = " ".join(str(row["reason"]).replace(folder, "").split())[:300]
    row["differs"] = " ".join(row["differs"].replace(folder, "").split())
    return row | {"processor_s": f"{time.process_time() - begin_s:.1f}"}


def main(style, count, first=0):
    """Write a row for each seed."""
    out = csv.DictWriter(sys.stdout, COLUMNS)
    out.writeheader()
    rows = []
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as other:
        for seed in range(int(first), int(first) + int(count)):
            rows.append(row_of(style, seed, lambda *words: other.submit(called, *words).result()))
            out.writerow(rows[-1])
            sys.stdout.flush()
    differ = [row["seed"] for row in rows if row["differs"]]
    print(f"{len(rows)} scenarios, {len(differ)} differ: {differ}", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
