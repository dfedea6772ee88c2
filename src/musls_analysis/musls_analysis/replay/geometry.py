"""Geometry of a system from the rows of recordings in which its cables are taut, without physics.

A taut cable joins its hook on the drone to its attachment on the load, so that their distance in
the recorded poses is its length, |hook_i - attachment_i| = L_i. Where the load's centre of mass is,
this does not tell.

Groups of parameters are taken in the order of their simplicity, and one is kept if it predicts the
distances of recordings better that it was not fitted to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from musls_analysis.recordings.recording import LOAD
from musls_analysis.replay import fit
from musls_analysis.replay.identify import INTERVAL, at_start, best_change, left_out
from musls_analysis.replay.replay import Replay
from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Array
from musls_description.system.slung_system import SlungLoadSystem
from musls_description.tables import Shown, Table

TAUT = 0.92
"""Share of the largest distance of load and drone in a recording above which a cable is taut."""

WORTH = 0.05
"""Share of the error of the recordings left out that a group must take away to be kept."""

ROUNDS = 4
"""Linear least-squares steps; distances are nearly linear in the parameters."""

STEP = 1e-3
"""Step of the derivatives in units of a parameter's scale."""

OUTLIER = 4.0
"""Median absolute deviations beyond which a row counts less (Huber); a logger repeats poses."""

MIN_ROWS = 20


class TautRows:
    """Rows of a recording in which all cables are taut.

    Attributes:
        source: Of the recording.
        load: Recorded point of the load, (k, 3) [m], and its turns.
        drones: The same of each drone.
    """

    def __init__(self, replay: Replay) -> None:
        """Pick the rows."""
        recorded = replay.recorded
        self.source = recorded.source
        time_s = recorded.load_time_s
        poses = {
            name: (
                np.array([path.at(t)[0] for t in time_s]),
                np.array([path.at(t)[1] for t in time_s]),
            )
            for name, path in recorded.paths.items()
        }
        place = poses[LOAD][0]
        far = np.array([np.linalg.norm(poses[d][0] - place, axis=1) for d in recorded.drones])
        taut = (far > TAUT * np.max(far)).all(axis=0)
        if np.sum(taut) < MIN_ROWS:
            raise ConfigError(
                f"{self.source}: {np.sum(taut)} rows in which all cables are taut, a geometry "
                f"needs {MIN_ROWS}"
            )
        rows = {name: (p[taut], q[taut]) for name, (p, q) in poses.items()}
        turned = {n: (p, Rotation.from_quat(q, scalar_first=True)) for n, (p, q) in rows.items()}
        self.load = turned[LOAD]
        self.names = recorded.drones
        self.drones = [turned[name] for name in recorded.drones]

    def residual(self, setup: fit.Setup) -> Array:
        """Distance less length of each cable, (k, n) [m]."""
        system, spec = setup.system, setup.spec
        point, turn = self.load
        turn = turn * Rotation.from_rotvec(spec.load_tilt_rad).inv()
        center = point - turn.apply(spec.offset_m(LOAD))
        arms = [turn.apply(a) for a in system.load.cable_attachments_m]
        hooks = [
            p + q.apply(np.array(drone.cable_attachment_m) - spec.offset_m(name))
            for (p, q), drone, name in zip(self.drones, system.drones, self.names, strict=True)
        ]
        along = [hook - center - arm for hook, arm in zip(hooks, arms, strict=True)]
        distance = np.column_stack([np.linalg.norm(v, axis=1) for v in along])
        return np.asarray(distance - [cable.length_m for cable in system.cables])


@dataclass(frozen=True, repr=False)
class Geometry(Shown):
    """Geometry found from taut rows.

    Attributes:
        recordings: Their names.
        parameters: Those that are kept, p.
        start: Values at the beginning, (p,).
        value: Fitted to all recordings, (p,).
        std: Standard deviations, (p,).
        errors_m: Root mean square of distances less lengths in each recording: as given, fitted to
            all, fitted to the others, (r, 3). Rows far from the others count less.
        error_m: Root mean square of those fitted to the others.
        dropped: Groups that are not kept, with that error if they were [m].
        alike: Of all candidates, those that taut rows hardly tell apart, by name.
        singular: Singular values of the derivatives by all candidates (columns of unit length).
        setup: The system, and what the recorded poses are poses of.
    """

    recordings: tuple[str, ...]
    parameters: tuple[fit.Parameter, ...]
    start: Array
    value: Array
    std: Array
    errors_m: Array
    error_m: float
    dropped: dict[str, float]
    alike: tuple[tuple[str, ...], ...]
    singular: Array
    setup: fit.Setup

    def shown(self) -> Iterator[str | Table]:
        """Table of parameters with intervals, errors of each recording, and what was left out."""
        rows = [
            (p.name, f"{v:.4g}", f"{INTERVAL * s:.2g}", p.unit, f"{b:.4g}")
            for p, v, s, b in zip(self.parameters, self.value, self.std, self.start, strict=True)
        ]
        yield Table(("geometry", "value", "+- (90 %)", "unit", "start"), rows)
        errors = [
            (name, *(f"{1e3 * e:.1f} mm" for e in row))
            for name, row in zip(self.recordings, self.errors_m, strict=True)
        ]
        heads = "taut cables, rms", "as given", "fitted to all", "fitted to the others"
        yield Table(heads, errors)
        for name, error_m in self.dropped.items():
            yield (
                f"{name} is left as it is: recordings left out would be within "
                f"{1e3 * error_m:.2f} instead of {1e3 * self.error_m:.2f} mm"
            )
        for names in self.alike:
            yield f"hard to tell apart from taut rows: {', '.join(names)}"


def candidates(system: SlungLoadSystem) -> dict[str, tuple[str, ...]]:
    """Groups of a geometry, each by the names of its parameters."""
    each = range(1, system.n_drones + 1)

    def of(name: str) -> tuple[str, ...]:
        return tuple(f"{name}_{axis}" for axis in fit.AXES)

    return {
        "load_origin": of("load_origin"),
        "length": tuple(f"length_{i}" for i in each),
        "load_tilt": of("load_tilt"),
        "attachment": of("attachment"),
        "attachment_i": tuple(n for i in each for n in of(f"attachment_{i}")),
        "load_attachment_i": tuple(n for i in each for n in of(f"load_attachment_{i}")),
    }


def geometry(replays: Sequence[Replay], system: SlungLoadSystem) -> Geometry:
    """Choose and fit the geometry of a system to the taut rows of two recordings or more."""
    if len(replays) < 2:
        raise ConfigError("--geometry: takes two recordings or more, each held against the others")
    for replay in replays:
        replay.check(system)
    rows = [TautRows(replay) for replay in replays]
    setup = fit.Setup(system, replays[0].spec)
    names = candidates(system)
    # Shifts of all ends come after the ends themselves, which they would be undone by.
    in_order = [name for group in reversed(names.values()) for name in group]
    chosen = fit.parameters(in_order, setup)
    index = {p.name: k for k, p in enumerate(chosen)}
    groups = {name: [index[member] for member in members] for name, members in names.items()}
    start = np.array([p.read(setup) for p in chosen])
    before = found = _derivatives(rows, setup, chosen, start)
    value, kept = start, list[str]()
    for _ in range(ROUNDS):
        from_start = at_start(found, chosen, start, value)
        kept = _worth_it(from_start, groups)
        free = [c for name in kept for c in groups[name]]
        value = start.copy()
        value[free] += fit.slopes([chosen[c] for c in free], start[free]) * best_change(
            from_start, free
        )
        found = _derivatives(rows, setup, chosen, value)
    return _result(rows, setup, chosen, groups, kept, start, value, before, found)


def _worth_it(found: Sequence[fit.Derivatives], groups: dict[str, list[int]]) -> list[str]:
    """Groups in their order, each if recordings left out are predicted better with it."""
    kept: list[str] = []
    error = _rms_m(left_out(found, []))
    for name in groups:
        with_it = _rms_m(left_out(found, [c for k in [*kept, name] for c in groups[k]]))
        if with_it < (1.0 - WORTH) * error:
            kept, error = [*kept, name], with_it
    return kept


def _rms_m(residuals: Sequence[Array]) -> float:
    """Of recordings that count alike."""
    return float(np.sqrt(np.mean([np.mean(r**2) for r in residuals])))


def _derivatives(
    rows: Sequence[TautRows], setup: fit.Setup, chosen: Sequence[fit.Parameter], value: Array
) -> list[fit.Derivatives]:
    """Residuals of each recording and their derivatives, rows beyond `OUTLIER` weighted down."""

    def at(values: Array) -> list[Array]:
        there = fit.put_all(setup, {p.name: float(v) for p, v in zip(chosen, values, strict=True)})
        return [one.residual(there) for one in rows]

    here = at(value)
    there = [at(value + STEP * p.scale * np.eye(len(value))[k]) for k, p in enumerate(chosen)]
    found = []
    for r, residual in enumerate(here):
        off = np.linalg.norm(residual - np.median(residual, axis=0), axis=1)
        weight = np.minimum(1.0, OUTLIER * np.median(off) / np.maximum(off, 1e-12))[:, None]
        columns = [(weight * (moved[r] - residual)).ravel() / STEP for moved in there]
        found.append(fit.Derivatives((weight * residual).ravel(), np.column_stack(columns)))
    return found


def _result(
    rows: Sequence[TautRows],
    setup: fit.Setup,
    chosen: Sequence[fit.Parameter],
    groups: dict[str, list[int]],
    kept: list[str],
    start: Array,
    value: Array,
    before: Sequence[fit.Derivatives],
    found: Sequence[fit.Derivatives],
) -> Geometry:
    free = [c for name in kept for c in groups[name]]
    some = [chosen[c] for c in free]
    n = setup.system.n_cables
    jacobian = np.vstack([one.jacobian for one in found]).reshape(-1, n, len(chosen))
    residual = np.concatenate([one.residual for one in found]).reshape(-1, n)
    others = left_out(found, free)
    stages = zip(
        (one.residual for one in before), (one.residual for one in found), others, strict=True
    )
    std = np.zeros(0)
    if free:
        told = fit.uncertainty(jacobian[:, :, free], residual)
        std = told.std * fit.slopes(some, value[free])
    unit = jacobian.reshape(-1, len(chosen))
    unit = unit / np.maximum(np.linalg.norm(unit, axis=0), 1e-12)
    named = {chosen[c].name: float(value[c]) for c in sorted(free)}
    return Geometry(
        tuple(Path(one.source).name for one in rows),
        tuple(some),
        start[free],
        value[free],
        std,
        np.array([
            [np.sqrt(np.mean(r**2)) for r in stage] for stage in stages
        ]),
        _rms_m(others),
        {
            name: _rms_m(left_out(found, [*free, *groups[name]]))
            for name in groups
            if name not in kept
        },
        tuple(
            tuple(chosen[k].name for k in group)
            for group in fit.uncertainty(jacobian, residual).alike
        ),
        np.linalg.svd(unit, compute_uv=False),
        fit.put_all(setup, named),
    )  # fmt: skip
