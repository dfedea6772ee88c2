"""What steers and what pushes the recorded drones in the engagement, from poses alone.

    .venv/bin/python benchmarks/control_law.py ../shared/flights ../shared/flights_2044

PX4's position loop wants an acceleration, and the drone leans for it: g times the lean is regressed
on how far the set-point is, on velocity, the integral and acceleration. Then the forces: mass times
acceleration, less the thrust along the lean, less the pull of the cables (from the load's balance)
leave a push that neither explains. Both are done alike with the flight simulated for each
recording, drones as the other flight tells, taken at the rows of the recording. Times are from the
first row.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter1d

from musls_analysis.comparison.cycles import CutStage, cut
from musls_analysis.paper.flights import one_mission, some_cycles
from musls_analysis.recordings.recording import LOAD
from musls_bringup import api
from musls_bringup.papers.reproduce import faults_override, fit_drones, paper
from musls_description.numerics.arrays import Array
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.numerics.rotations import rotate, yaw_of
from musls_description.system.system_files import load_system

STAGE, DRONES = "engage", ("drone_1", "drone_2", "drone_3")
SYSTEM = load_system("x500_trio_flown")
BASE = [f"system={SYSTEM.name}", "system.cables.links=5"]
STEP_S, SMOOTH_S, LAST_S = 0.05, 0.3, 12.0
"""Grid, standard deviation of the smoothing of what is differentiated, end of both recordings."""
TAUT_S, TURNS_S = 1.2, 6.5
"""Cables are taut from, set-points stand until."""
ANSWERS_S = 0.1
"""A lean follows what it answers by about so much."""


@dataclass(frozen=True)
class Motion:
    """A body on the grid: place (T, 3), g times the lean (T, 2), heading (T,), set-point (T, 2)."""

    place_m: Array
    lean_m_s2: Array
    yaw_rad: Array
    wanted_m: Array


def motions(flown: CutStage, rows_s: Array, time_s: Array) -> dict[str, Motion]:
    """The bodies of a flight as its rows tell, both times from the start of its cycle."""
    start_s = flown.cycles[0].start_s
    found = {}
    for name in (LOAD, *DRONES):
        track, setpoint = flown.recording.bodies[name], flown.recording.setpoints[name]
        row = np.searchsorted(track.time_s, rows_s + start_s - 1e-6).clip(0, len(track.time_s) - 1)
        held = np.searchsorted(setpoint.time_s, time_s + start_s + 1e-6, side="right") - 1
        q = track.orientation_wxyz[row]
        up = rotate(q, np.tile([0.0, 0.0, 1.0], (len(q), 1)))
        values = np.column_stack(
            [
                track.position_enu_m[row],
                STANDARD_GRAVITY_M_S2 * up[:, :2] / up[:, 2:],
                np.unwrap(yaw_of(q)),
            ]
        )
        grid = np.array([np.interp(time_s, rows_s, column) for column in values.T]).T
        wanted = setpoint.position_enu_m[held.clip(0), :2]
        found[name] = Motion(grid[:, :3], grid[:, 3:5], grid[:, 5], wanted)
    return found


def smooth(values: Array, derivative: int = 0) -> Array:
    """Smoothed values on the grid (T, k), or their derivative by time."""
    wide = SMOOTH_S / STEP_S
    found = gaussian_filter1d(values, wide, axis=0, order=derivative, mode="nearest")
    return np.asarray(found) / STEP_S**derivative


def law(bodies: dict[str, Motion]) -> tuple[Array, Array]:
    """Gains on place, velocity, integral and acceleration, all drones together; deviations (4,).

    Each drone has four constants of its own: what its integrators begin with, in the world, and
    its tilts, in its body.
    """
    later = round(ANSWERS_S / STEP_S)
    blocks, leans = [], []
    for k, name in enumerate(DRONES):
        its = bodies[name]
        off = its.wanted_m - its.place_m[:, :2]
        terms = (smooth(off), -smooth(its.place_m[:, :2], 1), smooth(np.cumsum(off, 0) * STEP_S))
        terms = (*terms, -smooth(its.place_m[:, :2], 2))
        c, s = np.cos(its.yaw_rad), np.sin(its.yaw_rad)
        one, none = np.ones(len(c)), np.zeros(len(c))
        for axis, own in enumerate(((one, none, c, -s), (none, one, s, c))):
            block = np.zeros((len(c), 4 + 4 * len(DRONES)))
            block[:, :4] = np.column_stack([term[:, axis] for term in terms])
            block[:, 4 + 4 * k : 8 + 4 * k] = np.column_stack(own)
            blocks.append(block[:-later])
            leans.append(smooth(its.lean_m_s2)[later:, axis])
    A, b = np.vstack(blocks), np.concatenate(leans)
    inverse = np.linalg.pinv(A.T @ A, hermitian=True)
    gains = inverse @ (A.T @ b)
    correlated = 2.0 * SMOOTH_S / STEP_S  # rows that say the same
    spread = np.sqrt(np.diag(inverse) * np.var(b - A @ gains) * correlated)
    return gains[:4], spread[:4]


def pull_in(bodies: dict[str, Motion]) -> Array:
    """How far the drones are nearer to the middle than their set-points, in the mean (T,) [mm]."""
    middle = np.mean([bodies[name].wanted_m for name in DRONES], axis=0)
    inward = []
    for name in DRONES:
        outward = bodies[name].wanted_m - middle
        outward /= np.linalg.norm(outward, axis=1, keepdims=True)
        off = bodies[name].wanted_m - bodies[name].place_m[:, :2]
        inward.append(np.sum(off * outward, axis=1))
    return 1e3 * np.mean(inward, axis=0)


def pushes(bodies: dict[str, Motion]) -> Array:
    """Push forward, towards the load, that thrust and cable leave (drones, T) [m/s2]."""
    load = bodies[LOAD].place_m
    along = np.array([smooth(bodies[name].place_m - load) for name in DRONES])
    along /= np.linalg.norm(along, axis=2, keepdims=True)
    weight = SYSTEM.load.mass_kg * (smooth(load, 2) + [0.0, 0.0, STANDARD_GRAVITY_M_S2])
    tension = np.linalg.solve(np.moveaxis(along, 0, 2), weight[..., None])[..., 0].T
    found = []
    for name, drone, line, pull in zip(DRONES, SYSTEM.drones, along, tension, strict=True):
        its = bodies[name]
        acceleration = smooth(its.place_m, 2)
        lift = drone.mass_kg * (STANDARD_GRAVITY_M_S2 + acceleration[:, 2]) + pull * line[:, 2]
        thrust = lift[:, None] * smooth(its.lean_m_s2) / STANDARD_GRAVITY_M_S2
        left = acceleration[:, :2] + (pull[:, None] * line[:, :2] - thrust) / drone.mass_kg
        found.append(left[:, 0] * np.cos(its.yaw_rad) + left[:, 1] * np.sin(its.yaw_rad))
    return np.array(found)


def main() -> None:
    """Fly and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("flights", type=Path, nargs=2)
    places = parser.parse_args().flights
    both = [some_cycles([place]) for place in places]
    time_s = np.arange(0.0, LAST_S, STEP_S)
    stands = (time_s >= TAUT_S) & (time_s < TURNS_S)
    flights = {}
    for place, real, other in zip(places, both, both[::-1], strict=True):
        overrides = one_mission(real, paper(BASE), BASE).overrides
        told = faults_override(fit_drones(other, BASE).imperfections)
        sim = cut(api.fly(paper([*BASE, *overrides, told])), STAGE)
        recorded = real[STAGE][0]
        rows_s = recorded.recording.time_s - recorded.cycles[0].start_s
        flights[f"{place.name}, recorded"] = motions(recorded, rows_s, time_s)
        flights[f"{place.name}, simulated"] = motions(sim, rows_s, time_s)
    print("| lean answers | place, 1/s2 | velocity, 1/s | integral, 1/s3 | acceleration |")
    print("|---|---|---|---|---|")
    for name, bodies in flights.items():
        cells = (f"{x:.2f} +- {s:.2f}" for x, s in zip(*law(bodies), strict=True))
        print(f"| {name} |", " | ".join(cells), "|")
    print("\nDrones nearer to the middle than their set-points, mean of three, mm")
    shown = np.flatnonzero(stands)[:: round(0.6 / STEP_S)]
    print("| s |", " | ".join(f"{time_s[k]:.1f}" for k in shown), "|")
    for name, bodies in flights.items():
        print(f"| {name} |", " | ".join(f"{x:.0f}" for x in pull_in(bodies)[shown]), "|")
    print("\nPush towards the load that thrust and cable leave, means of a second, m/s2")
    seconds = range(2, round(LAST_S) - 1)
    print("| s |", " | ".join(f"{s} to {s + 1}" for s in seconds), "| spread |")
    for name, bodies in flights.items():
        for drone, push in zip(DRONES, pushes(bodies), strict=True):
            means = [push[(time_s >= s) & (time_s < s + 1)].mean() for s in seconds]
            cells = " | ".join(f"{x:.2f}" for x in means)
            print(f"| {name}, {drone} | {cells} | {np.std(push[time_s >= seconds[0]]):.3f} |")


if __name__ == "__main__":
    main()
