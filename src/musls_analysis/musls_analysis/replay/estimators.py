"""Load estimators on recordings: the load from the recorded motion of the drones, never seen.

Velocities, accelerations and body rates are those of the smoothed poses. Where the recording has
the rotors' speeds, their forces follow from these. Where it has none, a drone's thrust points along
its z axis and is as large as it must be with the tension that keeps its cable at its length
(`taut_tensions`): across the z axis the cable's force is then what attitude and acceleration of the
drone say, along it what the motion of the load says. What a drone pulls along its cable cannot be
observed without its thrust.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from musls_analysis.recordings.recording import interpolated
from musls_analysis.replay.motion import ReplayMotion, ReplaySpec
from musls_analysis.replay.replay import (
    MASSLESS,
    NOTE_EVERY,
    LoadPrediction,
    Replay,
    as_recorded,
    plant_at_start,
    starts_slack,
)
from musls_control.estimate import Estimate
from musls_control.estimators import (
    LOAD_ESTIMATORS,
    DroneErrors,
    DroneSensors,
    EstimatorSetup,
    LoadEstimator,
)
from musls_control.estimators.taut import cable_records, directions, load_record, taut_tensions
from musls_description.config.errors import ConfigError, MuslsError
from musls_description.config.registry import user_code
from musls_description.config.schema import build
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import rotate
from musls_description.system.slung_system import SlungLoadSystem
from musls_sim.plants.rigid_body import rotor_records
from musls_sim.session.load_estimation import rotor_forces
from musls_sim.specs.physics import CONTROL_PERIOD_S

SMOOTHED = DroneErrors(0.014, 0.014, 0.35, 0.03)
"""Errors of smoothed recorded poses, of the accelerations that follow, and of thrust: they last a
tenth of a second, 2 mm and 0.05 m/s2 of them."""

DISTURBANCE_M_S2 = 0.1
DISTURBANCE_RAD_S2 = 0.5
"""Accelerations of a recorded load that no model explains: wind, drag, what hangs on it."""


class EstimateDivergedError(MuslsError):
    """An estimate that is no number any more."""


def check_estimator(source: Any) -> Any:
    """Specification of an estimator by its kind, or a mapping with its keys.

    Raises:
        ConfigError: The kind or a key is unknown, or it needs the load itself.
    """
    data = source if isinstance(source, Mapping) else {"kind": source}
    kind = data.get("kind")
    estimator = build(LOAD_ESTIMATORS[str(kind)], data, "estimator")
    if kind == "mocap" or getattr(estimator, "load_imu", None) is not None:
        raise ConfigError(f"estimator {kind}: a replay has the drones alone, no camera or IMU")
    return estimator


def estimate_load(
    replay: Replay, system: SlungLoadSystem, chosen: Any, spec: ReplaySpec | None = None
) -> LoadPrediction:
    """Estimate the load along a recording with an estimator's specification.

    It begins at rest, hanging or standing where the recording begins with slack cables.

    Raises:
        ConfigError: The numbers of drones differ.
        EstimateDivergedError: The estimate is no number any more.
        UserCodeError: Your own estimator failed.
    """
    replay.check(system)
    spec = spec or replay.spec
    motion = ReplayMotion(replay.recorded, spec)
    setup = EstimatorSetup(
        system,
        spec.gravity_m_s2,
        CONTROL_PERIOD_S,
        SMOOTHED,
        disturbance_m_s2=DISTURBANCE_M_S2,
        disturbance_rad_s2=DISTURBANCE_RAD_S2,
    )
    estimator: LoadEstimator = chosen.build(setup)
    periods = int(motion.duration_s / CONTROL_PERIOD_S)
    time_s: Array = CONTROL_PERIOD_S * np.arange(periods, dtype=np.float64)
    drones = drone_motion(motion, time_s)
    on_ground = starts_slack(system, motion)
    state = plant_at_start(MASSLESS, system, motion, spec)[0].state
    estimate = Estimate.zeros(system.n_drones)
    estimate.position_enu_m[0] = state.position_enu_m[0]
    estimate.orientation_wxyz[0] = state.orientation_wxyz[0]
    estimate.drones.data[:] = drones[0]
    speeds = _rotor_speeds(replay, motion, time_s)
    carried = None if speeds is not None else _Carried(setup)
    rotors = rotor_records(system)
    sensors = DroneSensors(estimate.drones, np.zeros((system.n_drones, 3)))
    rows: list[tuple[Array, ...]] = []
    for tick, now in enumerate(time_s):
        estimate.drones.data[:] = drones[tick]
        if speeds is not None:
            rotor_forces(drones[tick], rotors, speeds[tick], sensors.rotor_force_enu_n)
        elif carried is not None:
            carried.write(sensors, estimate)
        with user_code(lambda: f" at {now:.3f} s of the replay"):  # noqa: B023 (called in the loop)
            if tick == 0:
                estimator.start(sensors, estimate, on_ground=on_ground)
            estimator.step(sensors, estimate)
        position = estimate.position_enu_m[0].copy()
        quaternion = estimate.orientation_wxyz[0].copy()
        if not abs(np.linalg.norm(quaternion) - 1.0) < 1e-3 or not np.isfinite(position).all():
            raise EstimateDivergedError(
                f"estimator {chosen.kind}: diverged {now:.2f} s from the start"
            )
        if now >= spec.lead_in_s and tick % NOTE_EVERY == 0:
            clock = np.array(motion.clock_s(now))
            rows.append((clock, position, quaternion, *motion.load_at(now)))
    clock_s, *poses = map(np.array, zip(*rows, strict=True))
    return LoadPrediction(
        as_recorded(spec, clock_s, *poses[:2]),
        as_recorded(spec, clock_s, *poses[2:], known=motion.load_has_attitude),
    )


def drone_motion(motion: ReplayMotion, time_s: Array) -> Array:
    """Rows of `BodyMotion` of the recorded drones at evenly spaced times, (k, n, 16)."""
    poses = [motion.drones_at(time) for time in time_s]
    position, attitude = (np.array(part) for part in zip(*poses, strict=True))
    step_s = time_s[1] - time_s[0]
    rows = np.zeros((*position.shape[:2], 16))
    velocity = np.gradient(position, step_s, axis=0)
    rows[..., 0:3] = position
    rows[..., 3:6] = velocity
    rows[..., 6:10] = attitude
    rows[..., 13:16] = np.gradient(velocity, step_s, axis=0)
    for k in range(position.shape[1]):
        turns = Rotation.from_quat(attitude[:, k], scalar_first=True)
        between = (turns[:-2].inv() * turns[2:]).as_rotvec() / (2.0 * step_s)
        rows[1:-1, k, 10:13] = between
    return rows


def _rotor_speeds(replay: Replay, motion: ReplayMotion, time_s: Array) -> Array | None:
    """Recorded speeds of the rotors at times of the replay, (k, n, rotors), None without."""
    tracks = [replay.rotors.get(name) for name in replay.recorded.drones]
    clock_s = np.array([motion.clock_s(time) for time in time_s])
    speeds = []
    for track in tracks:
        if track is None:
            return None
        speeds.append(interpolated(clock_s, track.time_s, track.speed_rad_s))
    return np.stack(speeds, axis=1)


class _Carried:
    """Forces of rotors whose speeds are not recorded, from what the drones have to carry."""

    def __init__(self, setup: EstimatorSetup) -> None:
        self._cables = cable_records(setup.system)
        self._load = load_record(setup.system, setup.gravity_m_s2, setup.period_s)
        self._gravity = np.array([0.0, 0.0, setup.gravity_m_s2])

    def write(self, sensors: DroneSensors, estimate: Estimate) -> None:
        """Write the forces into the sensors, for the load as it is estimated so far."""
        drones = sensors.drones
        cables = self._cables
        tension = taut_tensions(estimate.records[0], drones.records, cables, self._load[0])
        pull = tension[:, None] * directions(estimate.records[:1], drones.records, cables)[0]
        mass = (cables["drone_mass"] + 0.5 * cables["mass"])[:, None]
        up = rotate(drones.orientation_wxyz, np.array([0.0, 0.0, 1.0]))
        carried = mass * (drones.acceleration_enu_m_s2 + self._gravity) + pull
        sensors.rotor_force_enu_n[:] = np.sum(carried * up, axis=1)[:, None] * up
