"""Planned control (`nmpc`): errors in figure eights, slots, and solve times.

python benchmarks/planned_control.py eights|slots|times|solvers
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from time import thread_time
from typing import Any

import numpy as np

import musls
from musls_bringup.benchmark.benchmark import SCORES, fly_scored

EIGHTS = {  # length and width [m], time of a turn [s]
    "slow": (5.0, 4.0, 8.0 * math.pi),
    "medium": (5.0, 4.0, 4.0 * math.pi),
    "medium plus": (2.0, 2.0, 2.0 * math.pi),
    "fast": (5.0, 4.0, 2.0 * math.pi),
}
"""Figure eights of Sun et al., Science Robotics 2025."""

CONTROLLERS: dict[str, dict[str, Any]] = {
    "nmpc": {},
    "nmpc, half the step": {"physics.step_size_s": 0.001},
    "payload, direct": {"controller": {"kind": "payload", "output": "direct"}},
    "payload, direct, INDI": {
        "controller": {"kind": "payload", "output": "direct"},
        "autopilot.tracker": "indi",
    },
    "payload, autopilot": {"controller": {"kind": "payload", "output": "autopilot"}},
}

SLOTS = {  # opening [m], place and attitude of the gate, roll of the load in it
    "tilted, 0.8 m": (0.8, 2.4, [0.0, -0.4, 2.4], [0.9239, 0.3827, 0.0, 0.0], 0.8),
    "upright, 0.8 m": (0.8, 3.0, [0.0, 0.0, 2.5], [1.0, 0.0, 0.0, 0.0], 0.0),
    "level, 0.6 m": (4.0, 0.6, [0.0, 0.0, 2.15], [1.0, 0.0, 0.0, 0.0], 0.0),
}


def eights() -> Iterator[list[str]]:
    """Rms errors of the load in the four figure eights."""
    yield ["figure eight", "controller", "rms [m]", "rms [deg]", "tension [N]", "not valid"]
    for name, (length_m, width_m, turn_s) in EIGHTS.items():
        stage = {"kind": "figure_eight", "length_m": length_m, "width_m": width_m, "height_m": 2.0,
                 "turn_s": turn_s, "ramp_s": turn_s, "cruise_s": turn_s}  # fmt: skip
        for controller, settings in CONTROLLERS.items():
            row = flown("eight_agile", {"mission.stages": [stage], **settings})
            yield [name, controller, *figures(row, "rms_m", "rms_deg", "max_tension_n", "reason")]


def slots() -> Iterator[list[str]]:
    """Passages through slots that are narrower than the formation."""
    yield ["slot", "step", "rms [m]", "tension [N]", "drones' centres [m]", "not valid"]
    for name, (width_m, height_m, place, attitude, roll) in SLOTS.items():
        gate = {"kind": "gate", "name": "slot", "width_m": width_m, "height_m": height_m,
                "frame_m": 0.1, "position_enu_m": place, "orientation_wxyz": attitude}  # fmt: skip
        set_up = {
            "world.obstacles": [gate],
            "mission.stages.0.tilts_rad": [[0, 0], [roll, 0], [0, 0]],
        }
        for step in ("auto", 0.001):
            row = flown("tilted_gate", {**set_up, "physics.step_size_s": step})
            values = figures(row, "rms_m", "max_tension_n", "closest_m", "reason")
            yield [name, str(step), *values]


def times() -> Iterator[list[str]]:
    """Processor time of a plan."""
    yield ["drones", "plans", "median [ms]", "95 % [ms]", "most [ms]"]
    for name in ("solo", "duo", "tilted_gate", "quad", "hexa"):
        scenario = musls.load_scenario(name, {"controller": "nmpc", "start": "air", "events": []})
        with musls.Session(scenario, force=True) as session:
            while session.time_s < 6.0:
                session.advance(250)
            found = session.numbers()["controller"]
        names = ("plans", "solve_median_ms", "solve_p95_ms", "solve_max_ms")
        yield [str(scenario.system.n_drones), *(f"{found[key]:.0f}" for key in names)]


def solvers() -> Iterator[list[str]]:
    """One step of a plan in the tilted gate by CasADi's solvers, against ProxQP at 1e-9."""
    import casadi as ca

    with musls.Session(musls.load_scenario("tilted_gate", {"cable_model": "massless"})) as session:
        session.advance(850)  # to 3.4 s, before the gate
        flying = session.flying
        problem, n = flying.problem, 3
        reference = flying._wanted(session.reference)
        x, u = reference.copy(), np.zeros((problem.nodes, problem.nu))
        measured = flying._measured(session.estimate)
        for _ in range(6):
            x[0, : len(measured)] = measured
            x, u, _ = problem.solve(x, u, reference)
        given = problem.programme(x, u, reference)
        load = [5 * n + problem.nu + k * (problem.nx + problem.nu) for k in range(problem.nodes)]
    quiet = {"error_on_fail": False}
    tried = {
        "ProxQP": ("proxqp", {"proxqp": {"eps_abs": 1e-9}}),
        "PIQP": ("piqp", {}),
        **{f"OSQP, {e:g}": ("osqp", {"osqp": {"verbose": False, "eps_abs": e, "eps_rel": e}})
           for e in (1e-3, 1e-4, 1e-5)},
    }  # fmt: skip
    found = {}
    for name, (kind, options) in tried.items():
        solver = ca.conic("step", kind, problem.shapes, {**quiet, **options})
        found[name] = timed(lambda solver=solver: np.array(solver(**given)["x"]).ravel())
    z, took_s = timed(lambda: problem.solve(x, u, reference)[0][1:])
    yield ["solver", "median [ms]", "load's place, farthest from ProxQP [mm]"]
    best = found["ProxQP"][0]
    places = np.array([best[k : k + 3] for k in load])
    off = 1e3 * np.abs(z[:, :3] - places).max()
    yield ["HPIPM, the whole step", f"{1e3 * took_s:.0f}", f"{off:.2f}"]
    for name, (other, took_s) in found.items():
        off = 1e3 * max(np.abs(other[k : k + 3] - best[k : k + 3]).max() for k in load)
        yield [name, f"{1e3 * took_s:.0f}", f"{off:.2f}"]


def timed(solve: Callable[[], np.ndarray]) -> tuple[np.ndarray, float]:
    """Answer and median processor time of five calls."""
    took = []
    for _ in range(5):
        begin_s = thread_time()
        answer = solve()
        took.append(thread_time() - begin_s)
    return answer, float(np.median(took))


def flown(name: str, overrides: dict[str, Any]) -> dict[str, Any]:
    """Scores of a flight, or the reason why there are none."""
    try:
        return fly_scored(musls.load_scenario(name, overrides))
    except musls.MuslsError as error:
        return {**dict.fromkeys(SCORES), "reason": str(error)}


def figures(row: dict[str, Any], *names: str) -> list[str]:
    """Cells of a table."""
    return [row[k] if isinstance(row[k], str) else f"{row[k] or np.nan:.3g}" for k in names]


if __name__ == "__main__":
    for line in {"eights": eights, "slots": slots, "times": times, "solvers": solvers}[
        sys.argv[1]
    ]():
        print("| " + " | ".join(line) + " |", flush=True)
