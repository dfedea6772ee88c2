"""Swing of the load in yaw after the tension engagement: its inertia and damping.

    .venv/bin/python benchmarks/yaw_swing.py ../shared/flights ../shared/flights_2044

Once it has left the ground, the load hangs from three taut cables whose directions follow from the
recorded drones and its own recorded place. Their tensions T_i balance its weight and acceleration,
m (a + g) = sum T_i u_i, so that its yaw psi is the only unknown:

    I psi'' = sum (r_i x T_i u_i)_z - losses

How each lift-off went is not known, so angle and rate at the start are fitted to each flight.
Candidates for what else is wrong are fitted to one flight and used in the other. The error is the
root mean square of the yaw; lift-off, controller and pendulum swing play no part in it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.interpolate import make_smoothing_spline
from scipy.optimize import least_squares

from musls_analysis.paper.flights import some_cycles
from musls_analysis.recordings.recording import LOAD, Recording
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import compiled
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2 as GRAVITY_M_S2
from musls_description.numerics.rotations import from_roll_pitch_yaw, roll_pitch_yaw, rotate
from musls_description.system.slung_system import slung_system
from musls_description.system.system_files import load_system

POINT_M = (-0.0285, 0.0067, -0.06)
"""Recorded point of the load in its frame."""
FROM_S, UNTIL_S, STEP_S = 1.5, 12.0, 0.01
"""Time after the step of the set-point: from when it is in the air to the end of the excerpts."""
ANGLES_RAD = np.linspace(-2.2, 2.2, 121)
"""Of the load against the formation, at which torques are worked out."""
SMOOTH_S3 = 1e-3
"""Of the splines through recorded places."""

SCALES = {
    "inertia": 0.1, "damping": 2e-3, "friction": 0.01, "air": 1e-3, "spring": 0.05, "hook": 0.02,
}  # fmt: skip
UNITS = {
    "inertia": "times 0.0210 kg m2", "damping": "N m s", "friction": "N m", "air": "N m s2",
    "spring": "N m/rad", "hook": "m nearer to the load",
}  # fmt: skip
JOINT = 0.002
"""Damping of a joint in Table I [N m s]; three of them turn with the load."""
AS_SIMULATED = {"damping": 3.0 * JOINT}
CANDIDATES: tuple[tuple[str, ...], ...] = (
    (), ("inertia",), ("damping",), ("inertia", "damping"), ("inertia", "friction"),
    ("inertia", "air"), ("damping", "spring"), ("damping", "hook"),
    ("inertia", "damping", "spring"), ("inertia", "damping", "hook"),
)  # fmt: skip


@dataclass
class Swing:
    """The engagement of one flight.

    Attributes:
        time_s: Recorded rows in the window, (k,).
        yaw_rad: Of the load then, (k,).
        grid_s: (m,).
        formation_rad: Angle of the drones about their middle then, (m,).
        torques: Torque of the cables by angle, by how much nearer the drones' hooks are, (m, 121).
    """

    name: str
    time_s: Array
    yaw_rad: Array
    grid_s: Array
    formation_rad: Array
    torques: dict[float, Array] = field(default_factory=dict)


def swing_of(recording: Recording, begin_s: float) -> Swing:
    """Torques along a recorded flight."""
    system = slung_system(load_system("x500_trio_flown"), "yaw")
    track = recording.bodies[LOAD]
    time_s, rows = np.unique(track.time_s - begin_s, return_index=True)
    angles = roll_pitch_yaw(track.orientation_wxyz)[rows]
    angles[:, 2] = np.unwrap(angles[:, 2])
    grid_s = np.arange(FROM_S, min(UNTIL_S, time_s[-1]), STEP_S)
    point = rotate(track.orientation_wxyz, np.tile(POINT_M, (len(track.time_s), 1)))
    place = (track.position_enu_m - point)[rows]
    flown = time_s > FROM_S - 0.7
    splines = [make_smoothing_spline(time_s[flown], x[flown], lam=SMOOTH_S3) for x in place.T]
    load = np.column_stack([s(grid_s) for s in splines])
    force = np.column_stack([s.derivative(2)(grid_s) for s in splines]) + [0.0, 0.0, GRAVITY_M_S2]
    tilt = np.column_stack([np.interp(grid_s, time_s, x) for x in angles[:, :2].T])
    poses = [recording.bodies[f"drone_{i + 1}"].held_at(begin_s + grid_s) for i in range(3)]
    drones = np.array([
        [make_smoothing_spline(t - begin_s, x, lam=0.1 * SMOOTH_S3)(grid_s) for x in p.T]
        for t, p in (
            (b.time_s[rows], b.position_enu_m[rows])
            for b in (recording.bodies[f"drone_{i + 1}"] for i in range(3))
        )
    ]).transpose(0, 2, 1)  # fmt: skip
    own = (drones - drones.mean(axis=0))[..., :2] @ np.array([1.0, 1.0j])
    nominal = np.exp(2j * np.pi * np.arange(3) / 3.0)
    formation = np.unwrap(np.angle(np.sum(own * nominal.conj()[:, None], axis=0)))
    used = (time_s >= FROM_S) & (time_s <= grid_s[-1])
    found = Swing(recording.source, time_s[used], angles[used, 2], grid_s, formation)
    for nearer in (0.0, SCALES["hook"]):
        hooks = np.array([
            place + rotate(pose.orientation_wxyz, np.tile(its.cable_attachment_m, (len(place), 1))
                           + [nearer, 0.0, 0.0])
            for place, pose, its in zip(drones, poses, system.drones, strict=True)
        ])  # fmt: skip
        found.torques[nearer] = np.column_stack([
            _torque(system.load.cable_attachments_m, system.load.mass_kg * force, load, hooks,
                    np.column_stack([tilt, formation + angle]))
            for angle in ANGLES_RAD
        ])  # fmt: skip
    return found


def _torque(
    attachments: Sequence[Sequence[float]], force: Array, load: Array, hooks: Array, angles: Array
) -> Array:
    """Torque of the cables about the vertical (m,) for given roll, pitch, yaw (m, 3)."""
    q = from_roll_pitch_yaw(angles)
    arms = np.array([rotate(q, np.tile(point, (len(load), 1))) for point in attachments])
    along = hooks - load - arms
    along /= np.linalg.norm(along, axis=2, keepdims=True)
    tension = np.linalg.solve(np.moveaxis(along, 0, 2), force[:, :, None])[:, :, 0]
    moment = np.cross(arms, along)[..., 2]
    return np.asarray(np.einsum("im,mi->m", moment, tension))


@compiled()
def integrated(torques, formation, inertia, damping, friction, air, spring, angle, rate, low, gap):
    """Yaw at every row of the table (m,)."""
    found = np.empty(len(formation))
    last = torques.shape[1] - 2
    for i in range(len(formation)):
        found[i] = angle
        turning = (formation[min(i + 1, len(formation) - 1)] - formation[max(i - 1, 0)]) / (
            2.0 * STEP_S
        )
        at = (angle - formation[i] - low) / gap
        k = min(max(int(at), 0), last)
        torque = torques[i, k] + (at - k) * (torques[i, k + 1] - torques[i, k])
        slip = rate - turning
        torque -= damping * slip + friction * np.tanh(slip / 0.05) + air * slip * abs(slip)
        torque -= spring * (angle - formation[i])
        rate += STEP_S * torque / inertia
        angle += STEP_S * rate
    return found


def yaw_of(swing: Swing, values: dict[str, float], start: Sequence[float]) -> Array:
    """Predicted yaw at the recorded rows (k,)."""
    inertia = slung_system(load_system("x500_trio_swivel"), "yaw").load.inertia_kg_m2[2][2]
    plain, near = swing.torques[0.0], swing.torques[SCALES["hook"]]
    torques = plain + values.get("hook", 0.0) / SCALES["hook"] * (near - plain)
    losses = [values.get(name, 0.0) for name in ("damping", "friction", "air", "spring")]
    found = integrated(
        torques, swing.formation_rad, inertia * values.get("inertia", 1.0), *losses,
        float(start[0]), float(start[1]), ANGLES_RAD[0], ANGLES_RAD[1] - ANGLES_RAD[0],
    )  # fmt: skip
    return np.interp(swing.time_s, swing.grid_s, found)


def fitted(
    swings: Sequence[Swing], names: Sequence[str], given: dict[str, float]
) -> tuple[dict[str, float], list[float]]:
    """Values fitted to some swings, each with a start of its own; errors [deg]."""

    def values(x: Array) -> dict[str, float]:
        free = {n: (n == "inertia") + SCALES[n] * v for n, v in zip(names, x, strict=False)}
        return {**given, **free}

    def errors(x: Array) -> list[Array]:
        starts = x[len(names) :].reshape(-1, 2)
        return [
            (yaw_of(s, values(x), start) - s.yaw_rad) / np.sqrt(len(s.yaw_rad))
            for s, start in zip(swings, starts, strict=True)
        ]

    begin = [0.3] * len(names)
    for s in swings:
        ends = np.interp([FROM_S, FROM_S + 0.1], s.time_s, s.yaw_rad)
        begin += [ends[0], (ends[1] - ends[0]) / 0.1]
    found = least_squares(lambda x: np.concatenate(errors(x)), begin, x_scale=0.3)
    return values(found.x), [float(np.degrees(np.linalg.norm(e))) for e in errors(found.x)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("flights", type=Path, nargs="+")
    cuts = [some_cycles([place])["engage"][0] for place in parser.parse_args().flights]
    swings = [swing_of(one.recording, one.cycles[0].start_s) for one in cuts]
    print("| free | fitted to all | errors | fitted to each | errors with what the others tell |")
    print("|---|---|---|---|---|")
    given = ", ".join(f"{fitted([s], (), AS_SIMULATED)[1][0]:.1f} deg" for s in swings)
    print(f"| nothing, damping of three joints | {3 * JOINT:g} N m s | {given} | | |")
    for names in CANDIDATES:
        found, errors = fitted(swings, names, {})
        alone = [fitted([s], names, {})[0] for s in swings]
        rest = [[s for s in swings if s is not swing] for swing in swings]
        others = [
            fitted([swing], (), fitted(its, names, {})[0])[1][0]
            for swing, its in zip(swings, rest, strict=True)
        ]
        cells = (
            ", ".join(names) or "nothing",
            _in_words(found, names),
            ", ".join(f"{e:.1f} deg" for e in errors),
            "; ".join(_in_words(its, names) for its in alone),
            ", ".join(f"{e:.1f} deg" for e in others),
        )
        print(f"| {' | '.join(cells)} |", flush=True)


def _in_words(values: dict[str, float], names: Sequence[str]) -> str:
    return ", ".join(f"{values[n]:.3g} {UNITS[n]}" for n in names)


if __name__ == "__main__":
    main()
