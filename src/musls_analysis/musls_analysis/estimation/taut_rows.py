"""Geometry of a system from the rows of recordings in which its cables are taut, without physics.

A taut cable joins its hook on the drone to its attachment on the load, so that their distance in
the recorded poses is its length, |hook_i - attachment_i| = L_i. Where the load's centre of mass is,
this does not tell.

Groups of parameters are taken in the order of their simplicity, and one is kept if it predicts the
distances of recordings better that it was not fitted to.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from musls_analysis.estimation.estimate import ParameterEstimate, estimate
from musls_analysis.estimation.system_parameters import (
    AXES,
    Setup,
    SystemParameter,
    parameters,
    put_all,
)
from musls_analysis.recordings.recording import LOAD
from musls_analysis.replay.replay import Replay
from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Array
from musls_description.system.slung_system import SlungLoadSystem

TAUT = 0.92
"""Share of the largest distance of load and drone in a recording above which a cable is taut."""

WORTH = 0.05
"""Share of the error of the recordings left out that a group must take away to be kept."""

OUTLIER = 4.0
"""Median absolute deviations beyond which a row counts less (Huber); a logger repeats poses."""

MIN_ROWS = 20


class TautRows:
    """Rows of a recording in which all cables are taut.

    Attributes:
        source: Name of the recording.
        load: Recorded point of the load, (k, 3) [m], and its turns.
        drones: Recorded point and turns of each drone.
    """

    def __init__(self, replay: Replay) -> None:
        """Pick the rows."""
        recorded_paths = replay.recorded
        self.source = recorded_paths.source
        if not recorded_paths.paths[LOAD].has_attitude:
            raise ConfigError(
                f"{self.source}: a geometry needs the load's attitude, which was not recorded"
            )
        time_s = recorded_paths.load_time_s
        poses = {
            name: (
                np.array([path.at(t)[0] for t in time_s]),
                np.array([path.at(t)[1] for t in time_s]),
            )
            for name, path in recorded_paths.paths.items()
        }
        place = poses[LOAD][0]
        far = np.array([np.linalg.norm(poses[d][0] - place, axis=1) for d in recorded_paths.drones])
        taut = (far > TAUT * np.max(far)).all(axis=0)
        if np.sum(taut) < MIN_ROWS:
            raise ConfigError(
                f"{self.source}: {np.sum(taut)} rows in which all cables are taut, a geometry "
                f"needs {MIN_ROWS}"
            )
        rows = {name: (p[taut], q[taut]) for name, (p, q) in poses.items()}
        pose_rows = {n: (p, Rotation.from_quat(q, scalar_first=True)) for n, (p, q) in rows.items()}
        self.load = pose_rows[LOAD]
        self.names = recorded_paths.drones
        self.drones = [pose_rows[name] for name in recorded_paths.drones]

    def residual(self, setup: Setup) -> Array:
        """Distance minus length of each cable, (k, n) [m]."""
        system = setup.system
        spec = setup.spec
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


def candidates(system: SlungLoadSystem) -> dict[str, tuple[str, ...]]:
    """Groups of a geometry, each by the names of its parameters."""
    each = range(1, system.n_drones + 1)

    def of(name: str) -> tuple[str, ...]:
        return tuple(f"{name}_{axis}" for axis in AXES)

    return {
        "load_origin": of("load_origin"),
        "length": tuple(f"length_{i}" for i in each),
        "load_tilt": of("load_tilt"),
        "attachment": of("attachment"),
        "attachment_i": tuple(n for i in each for n in of(f"attachment_{i}")),
        "load_attachment_i": tuple(n for i in each for n in of(f"load_attachment_{i}")),
    }


class TautModel:
    """Distances minus lengths in taut rows of recordings as the model of an estimate."""

    def __init__(
        self, setup: Setup, parameters: Sequence[SystemParameter], rows: Sequence[TautRows]
    ) -> None:
        self.setup = setup
        self.parameters = parameters
        self._rows = rows
        self.recordings = [Path(one.source).name for one in rows]

    def residuals(self, values: Sequence[Array]) -> list[list[Array]]:
        """Residuals of all cables, (k, n) [m]; outliers are moved towards the other rows."""
        names = [p.name for p in self.parameters]
        setups = [
            put_all(self.setup, dict(zip(names, map(float, value), strict=True)))
            for value in values
        ]
        return [[_robust(one.residual(setup)) for one in self._rows] for setup in setups]

    def errors(self, residual: Array) -> dict[str, float]:
        """Root mean square of all cables."""
        return {"taut_cables_rms_m": float(np.sqrt(np.mean(residual**2)))}


def _robust(residual: Array) -> Array:
    off = np.linalg.norm(residual - np.median(residual, axis=0), axis=1)
    weight = np.minimum(1.0, OUTLIER * np.median(off) / np.maximum(off, 1e-12))
    return np.asarray(weight[:, None] * residual)


def geometry(replays: Sequence[Replay], system: SlungLoadSystem) -> ParameterEstimate:
    """Choose and fit the geometry of a system to the taut rows of two recordings or more."""
    if len(replays) < 2:
        raise ConfigError("--geometry: takes two recordings or more, each validated on the others")
    for replay in replays:
        replay.check(system)
    setup = Setup(system, replays[0].spec)
    names = candidates(system)
    # Shifts of all ends come after the ends themselves, which they would be undone by.
    in_order = [name for group in reversed(names.values()) for name in group]
    by_name = {name: p for name, (p,) in parameters(in_order, setup).items()}
    model = TautModel(setup, list(by_name.values()), [TautRows(replay) for replay in replays])
    groups = {name: [by_name[member] for member in members] for name, members in names.items()}
    return estimate(model, groups, WORTH, simplest_first=True)
