"""Difference of built-in autopilot and real PX4, split into control chain and estimator.

    musls fly circle --autopilot px4 --set autopilot.flight_log=true --out runs/px4
    .venv/bin/python benchmarks/px4_estimates.py runs/px4

Flies the same with the built-in autopilot, first told the truth, then the truth with the errors
that PX4's estimator made in its own flight log: of position and velocity, then of attitude, too.
What is left then is the control chain's. Needs `pip install pyulog`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from musls_analysis.recordings.bag import read_bag, recording_from
from musls_analysis.recordings.recording import Recording
from musls_bringup.shipped import find_scenario
from musls_description.numerics.rotations import product, relative, slerp
from musls_sim.recording.recorder import MemoryRecorder
from musls_sim.session.session import Session

Array = np.ndarray
PARTS = {"truth": (), "position and velocity": (1, 2), "and attitude": (1, 2, 3)}
RESTING = ("lift", 1.0)
"""Set-points rest in the last second of this stage: there PX4's frame is told from ours."""


def estimator_errors(folder: Path, flight: Recording, drone: int) -> tuple[Array, ...]:
    """Times, errors of position [m], velocity [m/s] (T, 3), attitude (rotation vectors) [rad]."""
    from pyulog import ULog

    log = ULog(str(folder / "px4" / f"drone_{drone}.ulg"))
    topics: dict[str, Any] = {each.name: each.data for each in log.data_list}
    name = f"drone_{drone}"
    body, twist, wanted = flight.bodies[name], flight.twists[name], flight.setpoints[name]
    told, sent = topics["vehicle_local_position"], topics["trajectory_setpoint"]
    velocity = np.column_stack([told["vy"], told["vx"], -told["vz"]])
    begin_s = _clock(1e-6 * told["timestamp"], velocity, twist.time_s, twist.velocity_enu_m_s)
    told_s, sent_s = (1e-6 * each["timestamp"] - begin_s for each in (told, sent))
    place = np.column_stack([told["y"], told["x"], -told["z"]])
    (rest,) = (stage for stage in flight.stages if stage.name == RESTING[0])
    still = (sent_s > rest.end_s - RESTING[1]) & (sent_s < rest.end_s - 0.2)
    there = np.column_stack([sent["position[1]"], sent["position[0]"], -sent["position[2]"]])[still]
    origin = np.median(there - wanted.held_at(sent_s[still]).position_enu_m, axis=0)
    t = body.time_s
    attitude = topics["vehicle_attitude"]
    q = _enu(np.column_stack([attitude[f"q[{k}]"] for k in range(4)]))
    q_s = 1e-6 * attitude["timestamp"] - begin_s
    row = np.clip(np.searchsorted(q_s, t) - 1, 0, len(q_s) - 2)
    share = np.clip((t - q_s[row]) / (q_s[row + 1] - q_s[row]), 0.0, 1.0)
    turn = relative(slerp(q[row], q[row + 1], share), body.orientation_wxyz)
    return (
        t,
        _at(t, told_s, place) - origin - body.position_enu_m,
        _at(t, told_s, velocity) - twist.at(t).velocity_enu_m_s,
        2.0 * turn[:, 1:] * np.sign(turn[:, :1]),
    )


def _clock(log_s: Array, logged: Array, time_s: Array, true: Array) -> float:
    """PX4's time at the flight's zero: where the velocities agree best."""
    moving = time_s < time_s[-1] - 10.0
    offsets = np.arange(log_s[0], log_s[-1] - time_s[moving][-1], 0.05)
    for step in (0.05, 0.002):
        misfit = [
            np.nanvar(_at(time_s[moving] + offset, log_s, logged) - true[moving])
            for offset in offsets
        ]
        best = float(offsets[int(np.argmin(misfit))])
        offsets = best + np.arange(-step, step, 0.002)
    return best


def _at(time_s: Array, known_s: Array, values: Array) -> Array:
    return np.column_stack([np.interp(time_s, known_s, column) for column in values.T])


def _enu(q_ned: Array) -> Array:
    """Attitudes FRD to NED as FLU to ENU."""
    half = np.sqrt(0.5)
    world = np.tile([0.0, half, half, 0.0], (len(q_ned), 1))
    return product(product(world, q_ned), np.tile([0.0, 1.0, 0.0, 0.0], (len(q_ned), 1)))


def fly_told(
    scenario: str, errors: list[tuple[Array, ...]], components: tuple[int, ...]
) -> Recording:
    """Fly with the built-in autopilot that is told the truth with errors."""
    chosen = find_scenario(scenario, ["autopilot.kind=builtin", "estimation={kind: truth}"])
    session = Session(chosen)
    estimator, truth = session.components.estimator, session.components.estimator.step

    def step(state: Any) -> None:
        truth(state)
        if not components:
            return
        drones, now = estimator.estimate.drones, session.time_s
        for i, (t, *its) in enumerate(errors):
            k = int(np.searchsorted(t, now).clip(0, len(t) - 1))
            for part, told in zip((1, 2), ("position_enu_m", "velocity_enu_m_s"), strict=True):
                if part in components:
                    getattr(drones, told)[i] += its[part - 1][k]
            if 3 in components:
                turn = np.array([[1.0, *(0.5 * its[2][k])]])
                turned = product(drones.orientation_wxyz[i : i + 1], turn / np.linalg.norm(turn))
                drones.orientation_wxyz[i] = turned[0]

    estimator.step = step  # type: ignore[method-assign]
    recorder = MemoryRecorder(
        chosen.system, step_period_s=session.plant.period_s, rate_hz=50.0, shape_rate_hz=10.0
    )
    session.observe_with(recorder)
    session.run()
    return recording_from(recorder, "told")


def main() -> None:
    """Print a table: rms difference [mm] of the paths over the flown stage."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("flight", type=Path, help="result of musls fly --autopilot px4")
    parser.add_argument("--stage", default="circle")
    given = parser.parse_args()
    real = read_bag(given.flight / "bag")
    (stage,) = (its for its in real.stages if its.name == given.stage)
    errors = [estimator_errors(given.flight, real, int(d.split("_")[1])) for d in real.drones]
    print(
        "| told | " + " | ".join(real.bodies) + " |",
        "|---" * (1 + len(real.bodies)) + "|",
        sep="\n",
    )
    for name, components in PARTS.items():
        flown = fly_told(str(given.flight), errors, components)
        cells = []
        for body, track in real.bodies.items():
            other = flown.bodies[body]
            t = track.time_s[real.stage_mask(stage, track.time_s)]
            a, b = (_at(t, its.time_s, its.position_enu_m) for its in (track, other))
            cells.append(f"{1e3 * np.sqrt(np.mean(np.sum((a - b) ** 2, axis=1))):.1f} mm")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
