"""Cost of a control period of 4 ms in every way to fly, against the bare DART step.

Each case is timed in turns with the skeleton of the paper's trio with 15 links stepped alone, so
that a noisy machine slows both; the ratio is the figure to quote. Times are processor time, the
bare step is the median of short batches: neither counts the time in which other programs have the
processor. Through ROS and the plant's share are wall time: only an idle machine tells them.

    loop         mission, controller, autopilot, motion capture, plant, recording in memory
    plant        the plant's share of it
    unrecorded   the loop without a recorder; `bag` with one that writes files
    observed     unrecorded, with an observer in Python each period; `rows` with one that gets rows
    ground       unrecorded, standing on the ground before the drones take off
    whole        scenarios from begin to end, ground included
    start        scenarios read and their sessions built, up to the first period; once a "period"
    batch        a world of many, on one core
    environment  the same behind the learning environment, 5 periods a step
    ros          scenarios flown through the ROS graph

    .venv/bin/python benchmarks/flight_loop.py
    .venv/bin/python benchmarks/flight_loop.py loop batch --models elastic massless --drones 3
    .venv/bin/python benchmarks/flight_loop.py unrecorded observed rows ground --models massless
    .venv/bin/python benchmarks/flight_loop.py unrecorded --set 'aerodynamics=[{kind: downwash}]'
    .venv/bin/python benchmarks/flight_loop.py whole start --scenarios circle crane --rounds 3
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from musls_bringup.catalogue.shipped import find_scenario
from musls_sim.batch.batch import Batch
from musls_sim.plants.dart.skeleton import bare_step_us
from musls_sim.recording.recorder import BagRecorder, MemoryRecorder
from musls_sim.session.loop import Loop, Observer
from musls_sim.session.session import Session
from musls_sim.specs.physics import CONTROL_PERIOD_S

FLOWN = {1: "solo", 3: "circle", 6: "hexa"}
"""Scenarios by their number of drones."""

TURN = 500
"""Control periods of a turn, two seconds of flight: each end of one cuts what is done together."""


class Observed(Observer):
    """Looks in every period."""

    def observe(self, time_s: float, loop: Loop) -> None:
        """Look."""


class Rows(Observer):
    """Gets the rows of all periods, later."""

    by_rows = True

    def record(self, times_s: Sequence[float], seen: Any) -> None:
        """Look."""


WATCHED = {"observed": Observed, "rows": Rows}
"""Observers of a loop without a recorder."""

Turn = Callable[[], tuple[float, float]]
"""Does a turn; the time it took [s], and the control periods of all worlds in it."""


def spent_s(function: Callable[[], object]) -> float:
    """Processor time of a call."""
    begin = process_time()
    function()
    return process_time() - begin


def flight(name: str, overrides: Sequence[str], kind: str, folder: Path) -> Turn:
    """A turn of a flight; one that is over begins again."""
    scenario = find_scenario(name, overrides)
    session: Session | None = None
    flights = 0

    def begin() -> Session:
        nonlocal flights
        flights += 1
        new = Session(scenario)
        if kind == "bag":
            bag = BagRecorder(
                folder / f"{flights}", scenario.system, step_period_s=CONTROL_PERIOD_S
            )
            new.observe_with(bag)
        elif kind in WATCHED:
            new.observe_with(WATCHED[kind]())
        elif kind != "unrecorded":
            new.observe_with(MemoryRecorder(scenario.system, step_period_s=CONTROL_PERIOD_S))
        new.advance(TURN)
        return new

    def turn() -> tuple[float, float]:
        nonlocal session
        if session is None or session.time_s > session.guidance.planned_s - TURN * CONTROL_PERIOD_S:
            session = begin()
        plant_s = session.plant_s
        loop_s = spent_s(lambda: session.advance(TURN))
        return (session.plant_s - plant_s if kind == "plant" else loop_s), TURN

    return turn


def standing(name: str, overrides: Sequence[str]) -> Turn:
    """A turn before the drones take off, each of a new flight."""
    scenario = find_scenario(name, [*overrides, "start=ground", "mission.spool_up_s=5"])

    def turn() -> tuple[float, float]:
        with closing(Session(scenario)) as session:
            session.advance(TURN // 10)
            return spent_s(lambda: session.advance(TURN)), TURN

    return turn


def whole(name: str) -> Turn:
    """A scenario from begin to end."""

    def turn() -> tuple[float, float]:
        with closing(Session(find_scenario(name, []))) as session:
            return spent_s(session.run), session.tick

    return turn


def start(name: str) -> Turn:
    """A scenario read, its session built."""
    return lambda: (spent_s(lambda: Session(find_scenario(name, [])).close()), 1)


def through_ros(name: str, folder: Path) -> Turn:
    """A scenario from begin to end through the ROS graph, by the clock."""
    from musls_bringup.flight.fly import FlyOptions
    from musls_bringup.ros.graph_flight import fly_through_graph

    def turn() -> tuple[float, float]:
        begin, out = perf_counter(), folder / f"{perf_counter()}"
        summary = fly_through_graph(find_scenario(name, []), out, FlyOptions(report=False))
        return perf_counter() - begin, summary["sim_time_s"] / CONTROL_PERIOD_S

    return turn


def batch(name: str, overrides: Sequence[str], worlds: int) -> Turn:
    """Many worlds on one core."""
    many = Batch(find_scenario(name, overrides), worlds, threads=1)
    return lambda: (spent_s(lambda: many.advance(TURN)), worlds * TURN)


def environment(level: str, worlds: int) -> Turn:
    """Steps of the learning environment on one core."""
    from musls.learning import TransportVectorEnv

    periods = 5
    env = TransportVectorEnv(
        worlds, level=level, periods_per_step=periods, threads=1, duration_s=1e4
    )
    env.reset(seed=0)
    action = np.zeros(env.action_space.shape)
    return lambda: (spent_s(lambda: env.step(action)), worlds * periods)


def cases(given: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Callable[[], Turn]]]:
    """Name of each row of the table, and what builds its turn."""
    for kind in given.kinds:
        if kind in ("whole", "start", "ros"):
            make = {"whole": whole, "start": start, "ros": lambda n: through_ros(n, folder)}[kind]
            yield from ((f"{kind}: {n}", lambda n=n, make=make: make(n)) for n in given.scenarios)
            continue
        if kind == "environment":
            for level in ("accelerations", "drone_setpoints"):
                name = f"environment: {level}, {given.worlds} worlds"
                yield name, lambda level=level: environment(level, given.worlds)
            continue
        for model in given.models:
            for drones in given.drones:
                for links in given.links if model != "massless" else [0]:
                    keys = ["start=air", f"cable_model={model}", "physics.step_size_s=0.004"]
                    keys += [f"system.cables.links={links}"] if links else []
                    about = (FLOWN[drones], [*keys, *given.set])
                    build = partial(flight, *about, kind, folder)
                    if kind == "batch":
                        build = partial(batch, *about, given.worlds)
                    elif kind == "ground":
                        build = partial(standing, *about)
                    yield f"{kind}: {model}, {drones} x {links}", build


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    kinds = ["loop", "plant", "unrecorded", "bag", *WATCHED, "ground", "whole", "start", "batch"]
    kinds += ["environment", "ros"]
    models = ["rigid_links", "elastic", "massless"]
    parser.add_argument("kinds", nargs="*", default=["loop"], help=", ".join(kinds))
    parser.add_argument("--models", nargs="*", default=models, choices=models)
    parser.add_argument("--drones", type=int, nargs="*", default=[1, 3, 6], choices=FLOWN)
    parser.add_argument("--links", type=int, nargs="*", default=[5, 15, 29, 60])
    parser.add_argument("--scenarios", nargs="*", default=["circle"])
    parser.add_argument("--set", action="append", default=[], help="KEY=VALUE of all flights")
    parser.add_argument("--worlds", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=30)
    given = parser.parse_args()
    if unknown := sorted({*given.kinds} - {*kinds}):
        parser.error(f"{unknown[0]}: choose among {', '.join(kinds)}")
    yardstick = Session(find_scenario("circle", ["start=air", "system.cables.links=15"]))
    heads = ("us a period", "bare DART us", "over bare DART")
    print(f"medians [10 %, 90 %] of {given.rounds} turns")
    print(f"{'':44}" + "".join(f"{head:24}" for head in heads) + "x real time")
    with tempfile.TemporaryDirectory() as folder:
        for name, make in cases(given, Path(folder)):
            turn, rows = make(), []
            for _ in range(1 + given.rounds):  # the first one compiles
                spent, periods = turn()
                rows.append([1e6 * spent / periods, _bare_dart_us(yardstick)])
            us, bare = np.array(rows[1:]).T
            cells = _spread(us), _spread(bare), _spread(us / bare)
            line = "".join(f"{cell:24}" for cell in cells)
            print(f"{name:44}{line}{1e6 * CONTROL_PERIOD_S / np.median(us):.1f}", flush=True)


def _bare_dart_us(session: Session) -> float:
    plant = session.plant
    return bare_step_us(plant.system, plant.tree, plant.positions, plant.physics_step_s, 15)


def _spread(values: np.ndarray) -> str:
    low, middle, high = np.percentile(values, [10, 50, 90])
    return f"{middle:.3g} [{low:.3g}, {high:.3g}]"


if __name__ == "__main__":
    main()
