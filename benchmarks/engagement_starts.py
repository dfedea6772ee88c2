"""Unknown starts of the engagement: how much of the load's error do the recordings leave open?

    .venv/bin/python benchmarks/engagement_starts.py ../shared/flights --imperfections FILE

Before the engagement the load stands on the ground and the cables lie as they fell. The recorded
cycle has one such start, of which it tells the place of the load (to about the 15 mm by which its
recorded point is known) and little else. Starts are drawn within what the recordings leave open,
flown, and compared with the recorded cycle: all causes together, then one by one. With --variants
other causes are flown, one flight each.

Each flight takes 3 to 4 s on an idle machine (5 links), so the tables take some minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from musls_analysis.comparison.compare import CompareOptions, StageComparison, compare_stage
from musls_analysis.comparison.cycles import CutStage, Cycle, cut
from musls_analysis.paper.flights import some_cycles
from musls_bringup.api import fly
from musls_bringup.shipped import find_scenario
from musls_description.config.errors import MuslsError

STOOD = (-0.003, -0.057, 0.079)
"""Place of the recorded load [m] and its yaw [rad]."""
UNSURE = (0.015, 0.03)
"""Standard deviations of the load's place (its recorded point is no better known) and yaw."""
LENGTH_M = 0.004
"""Standard deviation of a cable's length, from the recorded distances of load and drones."""
NUDGE_N = 0.5
"""Standard deviation of pushes on the hovering drones: the cables come to lie otherwise."""
WIND_M_S = 0.2
"""Standard deviation of each component of a steady draught."""
EARLIER_S = (0.005, 0.1)
"""The step came so much before the first recorded row: what the recorded ramp of yaw allows."""
PUSH_S, PUSH_AT_S, TURN_AT_S, NUDGE_AT_S, NUDGE_S = 0.1, 2.0, 3.0, 17.0, 0.5
TURN_RAD_PER_N_M = 0.026
"""Turn of the load on the ground by a moment of `PUSH_S` (4 N m: 6 degrees)."""
CAUSES = ("place", "cables' lay", "lengths", "wind", "step time")
PAPER_MM, PAPER_DEG = 38.7, 17.2
LENGTHS_M = "system.cables.{}.length_m={:.4f}"

VARIANTS = {
    "as given": [],
    "ground friction 0.2 instead of 0.8": ["system.ground_friction=0.2"],
    "ground friction 1": ["system.ground_friction=1.0"],
    "cable 2 25 mm shorter": ["system.cables.1.length_m=2.395"],
    "elastic, EA 2.4e5 N": ["cable_model=elastic"],
    "elastic, EA 2e3 N": ["cable_model=elastic", "system.cables.elastic={ea_n: 2000}"],
    "load stands on 12 x 12 cm, 8 cm high": ["system.load.collision.size_m=[0.12,0.12,0.08]"],
    "drop-outs of motion capture, 30 %": ["estimation={kind: mocap, dropout_fraction: 0.3}"],
    "five times the joints' damping": ["system.cables.joint.damping_n_m_s_rad=0.01"],
    "friction of the joints, 1e-3 N m": ["system.cables.joint.friction_n_m=0.001"],
    "jitter of set-points, 50 ms": ["imperfections.setpoint_jitter_s=0.05"],
    "inertia of the load 8 % larger": [
        "system.load.inertia_kg_m2=[[0.011011,0.000354,-0.000117],[0.000354,0.01485,-0.000347],"
        "[-0.000117,-0.000347,0.022677]]"
    ],
    "load of 1.5 kg instead of 1.66": ["system.load.mass_kg=1.5"],
}
"""Other possible causes of the load's error: overrides of the scenario by name."""


@dataclass(frozen=True)
class Start:
    """A drawn start.

    Attributes:
        overrides: Of the scenario.
        earlier_s: By which the recorded step came before its first row.
    """

    overrides: tuple[str, ...]
    earlier_s: float = 0.0


@dataclass(frozen=True)
class Result:
    """Outcome of one start.

    Attributes:
        load_mm: Translational error of the load.
        load_deg: Geodesic error of the load.
        drones_mm: Translational errors of the drones, (n,).
        stood_off_mm: Distance of the load's compared point from the recorded one before lift-off.
        drones_off_mm: Mean distance of the drones from the recorded ones then.
    """

    load_mm: float
    load_deg: float
    drones_mm: np.ndarray
    stood_off_mm: float
    drones_off_mm: float


def main() -> None:
    """Draw, fly and print."""
    options = arguments()
    study = Study(options)
    if options.variants:
        print("| variant | load | drones |\n|---|---|---|")
        for name, overrides in VARIANTS.items():
            found = study.flown(Start(tuple(overrides)))
            drones = ", ".join(f"{mm:.0f}" for mm in found.drones_mm)
            print(
                f"| {name} | {found.load_mm:.1f} mm, {found.load_deg:.1f} deg | {drones} mm |",
                flush=True,
            )
        return
    together = study.many(CAUSES, options.samples)
    rows = [row("all of them", together)]
    for cause in CAUSES if options.each else ():
        rows.append(row(f"{cause} alone", study.many((cause,), options.each)))
    print("\n| unknown | starts | load: median [5 %, 95 %] | yaw and tilt | below the paper's |")
    print("|---|---|---|---|---|", *rows, "", alike(together), sep="\n")


def arguments() -> argparse.Namespace:
    """Options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("flights", type=Path)
    parser.add_argument("--imperfections", default="")
    parser.add_argument("--offset", default="-0.0285,0.0067,-0.06", help="recorded point [m]")
    parser.add_argument("--samples", type=int, default=30, help="starts, all causes together")
    parser.add_argument("--each", type=int, default=6, help="starts for each cause alone")
    parser.add_argument("--set", action="append", default=[], help="more key=value")
    parser.add_argument("--variants", action="store_true", help="fly other causes instead")
    return parser.parse_args()


class Study:
    """Flies starts and compares them with the recorded engagement."""

    def __init__(self, options: argparse.Namespace) -> None:
        """Read the recording."""
        self._real = some_cycles([options.flights])["engage"]
        self._point = [float(x) for x in options.offset.split(",")]
        self._plain = ["system.cables.links=5", *options.set]
        if options.imperfections:
            self._plain.append(f"imperfections={options.imperfections}")
        scenario = find_scenario("engage", self._plain)
        self._lengths_m = [cable.length_m for cable in scenario.system.cables]

    def many(self, causes: Sequence[str], count: int) -> list[Result]:
        """Fly drawn starts; one that cannot be flown is said and left out."""
        found = []
        for seed in range(count):
            said = f"{', '.join(causes)}, start {seed}:"
            try:
                its = self.flown(drawn(causes, seed, self._lengths_m))
            except MuslsError as error:
                print(said, f"left out: {error}", flush=True)
                continue
            found.append(its)
            print(
                f"{said} {its.load_mm:.1f} mm, {its.load_deg:.1f} deg; before lift-off load "
                f"{its.stood_off_mm:.0f} mm, drones {its.drones_off_mm:.0f} mm off",
                flush=True,
            )
        return found

    def compared(self, start: Start) -> StageComparison:
        """Fly one start and compare."""
        flown = cut(fly(find_scenario("engage", [*self._plain, *start.overrides])), "engage")
        how = CompareOptions(offsets_m={"load": self._point})
        real = [_earlier(one, start.earlier_s) for one in self._real]
        return compare_stage("engage", real, [flown], how)

    def flown(self, start: Start) -> Result:
        """Fly one start; its errors."""
        compared = self.compared(start)
        before = compared.phase * compared.period_s < 0.5
        apart = {
            body: 1e3
            * np.nanmean(
                np.linalg.norm(
                    (its.position_enu_m - compared.real[body].position_enu_m)[before], axis=1
                )
            )
            for body, its in compared.sim.items()
        }
        errors = compared.errors
        drones = [1e3 * e.translational_error_m for body, e in errors.items() if body != "load"]
        load = errors["load"]
        return Result(
            1e3 * load.translational_error_m, load.geodesic_error_deg, np.array(drones),
            apart.pop("load"), float(np.mean(list(apart.values()))),
        )  # fmt: skip


def drawn(causes: Sequence[str], seed: int, lengths_m: Sequence[float]) -> Start:
    """Draw a start of the cycle in `../shared/flights`, see `drawn_at`."""
    return drawn_at(STOOD, UNSURE, causes, seed, lengths_m)


def drawn_at(
    stood: Sequence[float],
    unsure: tuple[float, float],
    causes: Sequence[str],
    seed: int,
    lengths_m: Sequence[float],
) -> Start:
    """Draw a start.

    Args:
        stood: Place of the load x, y [m] and its yaw [rad].
        unsure: Standard deviations of place [m] and yaw [rad].
        causes: Which of `CAUSES` are drawn; the others stay as they are in the scenario.
        seed: The same seed draws the same value of a cause, alone or with others.
        lengths_m: Of the cables, as given.
    """
    rng = {cause: np.random.default_rng([seed, k]) for k, cause in enumerate(CAUSES)}
    overrides, events, earlier_s = [f"seed={seed}"], [], 0.0
    if "place" in causes:
        place = np.array(stood[:2]) + unsure[0] * rng["place"].standard_normal(2)
        turn = stood[2] + unsure[1] * rng["place"].standard_normal()
        # One after the other: a load that turns as it slides has less friction, and slides on.
        events.append(poke("load", PUSH_AT_S, PUSH_S, force_that_moves(place), 0.0))
        moment_n_m = turn / TURN_RAD_PER_N_M
        events.append(poke("load", TURN_AT_S, PUSH_S, np.zeros(2), moment_n_m))
    if "cables' lay" in causes:
        for k in range(len(lengths_m)):
            push = NUDGE_N * rng["cables' lay"].standard_normal(2)
            events.append(poke(f"drone_{k + 1}", NUDGE_AT_S, NUDGE_S, push, 0.0))
    if "lengths" in causes:
        off = LENGTH_M * rng["lengths"].standard_normal(len(lengths_m))
        overrides += [
            LENGTHS_M.format(k, length + more)
            for k, (length, more) in enumerate(zip(lengths_m, off, strict=True))
        ]
    if "wind" in causes:
        x, y = (WIND_M_S * rng["wind"].standard_normal(2)).tolist()
        overrides.append(f"wind.mean_enu_m_s=[{x:.3f}, {y:.3f}, 0]")
    if "step time" in causes:
        earlier_s = float(rng["step time"].uniform(*EARLIER_S))
    if events:
        overrides.append(f"events=[{', '.join(events)}]")
    return Start(tuple(overrides), earlier_s)


def poke(body: str, time_s: float, lasts_s: float, force_n: np.ndarray, moment_n_m: float) -> str:
    """An event as YAML."""
    x, y = force_n
    return (
        f"{{kind: poke, when: {{time_s: {time_s}}}, duration_s: {lasts_s}, body: {body}, "
        f"force_enu_n: [{x:.3f}, {y:.3f}, 0], moment_enu_n_m: [0, 0, {moment_n_m:.3f}]}}"
    )


def force_that_moves(by_m: np.ndarray) -> np.ndarray:
    """Force of `PUSH_S` after which a load of 1.66 kg, friction 0.8, has slid so far (2,) [N].

    It speeds up with a for `PUSH_S` and slides on until friction has stopped it:
    a t^2 / 2 + (a t)^2 / (2 mu g).
    """
    mass_kg, friction_m_s2 = 1.66, 0.8 * 9.81
    far_m = float(np.linalg.norm(by_m))
    if far_m < 1e-4:
        return np.zeros(2)
    square, linear = PUSH_S**2 / (2.0 * friction_m_s2), PUSH_S**2 / 2.0
    a = (-linear + np.sqrt(linear**2 + 4.0 * square * far_m)) / (2.0 * square)
    return mass_kg * (a + friction_m_s2) * np.asarray(by_m) / far_m


def _earlier(real: CutStage, by_s: float) -> CutStage:
    cycles = tuple(Cycle(c.start_s - by_s, c.end_s - by_s) for c in real.cycles)
    return replace(real, cycles=cycles)


def row(name: str, found: Sequence[Result]) -> str:
    """A row of the table."""
    mm, deg = np.array([r.load_mm for r in found]), np.array([r.load_deg for r in found])
    share = np.mean(mm <= PAPER_MM), np.mean(deg <= PAPER_DEG)
    return (
        f"| {name} | {len(found)} | {_spread(mm)} mm | {_spread(deg)} deg | "
        f"{100 * share[0]:.0f} % ({PAPER_MM} mm), {100 * share[1]:.0f} % ({PAPER_DEG} deg) |"
    )


def _spread(values: np.ndarray) -> str:
    low, middle, high = np.percentile(values, [5, 50, 95])
    return f"{middle:.1f} [{low:.1f}, {high:.1f}]"


def alike(found: Sequence[Result]) -> str:
    """Of the starts that are nearest to the recording before lift-off, best and worst."""
    near = sorted(found, key=lambda r: r.stood_off_mm + r.drones_off_mm)[: max(2, len(found) // 3)]
    best, worst = (f(near, key=lambda r: r.load_mm) for f in (min, max))
    off = [r.stood_off_mm for r in near], [r.drones_off_mm for r in near]
    return (
        f"of the {len(near)} starts nearest to the recording before lift-off (load within "
        f"{max(off[0]):.0f} mm, drones within {max(off[1]):.0f} mm) the best has "
        f"{best.load_mm:.1f} mm, {best.load_deg:.1f} deg (load {best.stood_off_mm:.0f} mm, drones "
        f"{best.drones_off_mm:.0f} mm off before lift-off), the worst {worst.load_mm:.1f} mm, "
        f"{worst.load_deg:.1f} deg ({worst.stood_off_mm:.0f} and {worst.drones_off_mm:.0f} mm)"
    )


if __name__ == "__main__":
    main()
