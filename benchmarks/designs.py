"""Random questions to `musls design`: do its picks fly, and are its refusals right?

    python benchmarks/designs.py --questions 30 --out runs/designs

Each question is a load, a wind and a fleet, drawn at random. The pick flies again with noise of two
other seeds. Where a question is refused, random systems are composed without the search: airframe,
number, cone, length and controller at random; those that hang with nearly the required margin fly,
the strongest first. One that keeps what is required is a refusal that was wrong. What is done is
kept in `answers.jsonl` of the folder, and is not asked again.
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from musls_analysis.sweep.store import Store
from musls_bringup.design.answer import Answer, answer
from musls_bringup.design.flights import Hangar, Outcome, Trial
from musls_bringup.design.question import MOST_DRONES, Fixed, Question, ask
from musls_bringup.design.search import Design, Fleet
from musls_bringup.new.templates import cable_length_m
from musls_control.child_processes import worker_threads
from musls_description.config.errors import ConfigError
from musls_description.system.drone import tip_radius_m

FLEETS = (("x500",), ("typhoon",), ("crazyflie",), ("x500", "typhoon"), ("racer", "x500"))
LARGEST_M = {"crazyflie": 0.2}
SEEDS = (101, 202)
FLOWN_AT_MOST = 6
"""Random systems that are flown for a refusal, the strongest ones."""


def drawn(rng: np.random.Generator, model: str) -> dict[str, Any]:
    """A question at random."""
    fleet = FLEETS[rng.integers(len(FLEETS))]
    drone = ask("box", mass_kg=0.1, drones=fleet).fleet
    lift_kg = max(one.max_thrust_n / 9.81 - one.mass_kg for one in drone.values())
    small = LARGEST_M.get(fleet[0])
    kind = str(rng.choice(["box", "plate", "beam", "ring"]))
    length = float(np.exp(rng.uniform(np.log(0.05), np.log(0.15)))) if small else 0.0
    length = length or float(np.exp(rng.uniform(np.log(0.3), np.log(4.0))))
    edges = {
        "box": [length, rng.uniform(0.4, 1.0) * length, rng.uniform(0.1, 0.5) * length],
        "plate": [length, rng.uniform(0.4, 1.0) * length, 0.02 * length],
        "beam": [length, 0.05 * length, 0.05 * length],
        "ring": [length, 0.05 * length, 0.05 * length],
    }[kind]
    wind = 0.0 if small else float(rng.choice([0.0, rng.uniform(0.0, 8.0)]))
    return {
        "load": kind,
        "size_m": [float(f"{edge:.3g}") for edge in edges],
        "mass_kg": float(f"{lift_kg * math.exp(rng.uniform(math.log(0.3), math.log(8.0))):.3g}"),
        "wind_m_s": round(wind, 1),
        "gusts_m_s": round(float(rng.uniform(0.0, 0.5)) * wind, 1),
        "drones": list(fleet),
        "require": "survives_one" if rng.random() < 0.2 else "",
        "cable_model": model,
        "worlds": 0,
    }


def flies(found: Answer, hangar: Hangar) -> list[str]:
    """What the pick lacks of a valid flight with noise of other seeds."""
    choice, lacks = found.choice, []
    for seed in SEEDS:
        hangar.question = replace(found.question, seed=seed)
        trials = [outcome.trial for outcome in (*choice.flights, *choice.losses)]
        for outcome in hangar.fly(trials, "again"):
            told = outcome.faults + ([outcome.failure] if outcome.failure else [])
            lacks += [f"seed {seed}, {outcome.trial.name}: {text}" for text in told]
    return lacks


def at_random(question: Question, rng: np.random.Generator) -> Design | None:
    """One system without the search; None where it does not hang."""
    name = str(rng.choice(list(question.fleet)))
    usual_m = cable_length_m(tip_radius_m(question.fleet[name]))
    fixed = Fixed(
        number=int(rng.integers(1, MOST_DRONES + 1)),
        cone_deg=float(rng.uniform(0.0, 55.0)),
        length_m=max(0.1, usual_m * math.exp(rng.uniform(math.log(0.4), math.log(3.0)))),
        controller="formation" if question.requirements.survives_one else None,
    )
    own = replace(question, fixed=fixed)
    assert fixed.number is not None
    if question.cargo.hooks(fixed.number) is None:
        return None
    designs, _ = Fleet(own, name, fixed.number).best()
    return designs[0] if designs else None


def refusal_is_wrong(
    question: Question, systems: int, hangar: Hangar, rng: np.random.Generator
) -> tuple[str, int]:
    """A random system that keeps what is required, or ""; and how many hung with enough margin."""
    hung = [one for one in (at_random(question, rng) for _ in range(systems)) if one is not None]
    hung.sort(key=lambda one: -one.wind_margin)
    hangar.question = question
    for one in hung[:FLOWN_AT_MOST]:
        winds = (0.0, 90.0) if question.strongest_m_s else (None,)
        flown: list[Outcome] = hangar.fly([Trial(one, wind) for wind in winds], "at random")
        if any(outcome.lacks(question.requirements) for outcome in flown):
            continue
        if question.requirements.survives_one:
            lost = [Trial(one, winds[0], k + 1) for k in range(one.number)]
            if any(o.lacks(question.requirements) for o in hangar.fly(lost, "at random")):
                continue
        return one.name, len(hung)
    return "", len(hung)


def main() -> None:
    """Ask, fly again, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--questions", type=int, default=30)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of questions, from 0")
    parser.add_argument("--systems", type=int, default=500, help="random ones for each refusal")
    parser.add_argument("--model", default="massless", help="of the last flights")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/designs"))
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    kept = chosen.out / "answers.jsonl"
    done = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    answered = {row["number"] for row in done}
    numbers = range(chosen.questions) if chosen.only is None else chosen.only
    for k in (k for k in numbers if k not in answered):
        rng = np.random.default_rng([chosen.seed, k])
        asked = drawn(rng, chosen.model)
        store = Store(chosen.out / f"{k:02d}")
        begin, cpu = perf_counter(), process_time()
        row: dict[str, Any] = {"number": k, "question": asked}
        with store.opened("{}"), worker_threads(chosen.workers) as executor:
            try:
                question = ask(**asked)
                found = answer(question, store, workers=chosen.workers)
                hangar = Hangar(question, store, executor=executor)
                row["choices"] = [choice.design.name for choice in found.choices]
                row["flights"] = found.flights
                row["cpu_s"] = round(found.cpu_s + process_time() - cpu, 1)
                row["wall_s"] = round(perf_counter() - begin, 1)
                if found.choices:
                    row["does_not_fly"] = flies(found, hangar)
                else:
                    row["why"] = found.why_none
                    row["missed"], row["hung"] = refusal_is_wrong(
                        question, chosen.systems, hangar, rng
                    )
            except ConfigError as error:
                row["refused"] = str(error)
        done.append(row)
        with kept.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{k + 1}: {json.dumps(row)}", flush=True)
    _tell(done)


def _tell(done: list[dict[str, Any]]) -> None:
    picked = [row for row in done if row.get("choices")]
    refused = [row for row in done if not row.get("choices")]
    bad = [row for row in picked if row["does_not_fly"]]
    wrong = [row for row in refused if row.get("missed")]
    spent = sorted(row["cpu_s"] for row in done if "cpu_s" in row)
    print(f"{len(done)} questions: {len(picked)} answered, of which {len(bad)} do not fly again")
    print(f"{len(refused)} refused, of which {len(wrong)} wrongly")
    if spent:
        print(f"processor time {spent[len(spent) // 2]:.0f} s in the middle, {spent[-1]:.0f} most")


if __name__ == "__main__":
    main()
