"""Makes a recording of what a recorder has in memory: the one that reading its bag would give."""

from __future__ import annotations

import numpy as np

from musls_analysis.recordings.bag import read_bag
from musls_analysis.recordings.recording import (
    AccelerationTrack,
    BatteryTrack,
    CableTrack,
    Event,
    PoseTrack,
    Recording,
    RotorTrack,
    TwistTrack,
    WrenchTrack,
    stages_from_changes,
)
from musls_sim.recording.recorder import BagRecorder, MemoryRecorder
from musls_sim.recording.signals import NODES, battery_rows, body_names, flown_names


def recording_from(recorder: MemoryRecorder, source: str = "") -> Recording:
    """Copy what was recorded, so that the recorder may go on.

    A `BagRecorder` whose memory was too small is closed, and its bag is read.

    Args:
        recorder: Of a flight.
        source: Where it came from, for people; default: the bag's folder, or "memory".

    Raises:
        ConfigError: Nothing was recorded.
    """
    if isinstance(recorder, BagRecorder):
        source = source or str(recorder.folder)
        if not recorder.whole:
            recorder.close()
            return read_bag(recorder.folder)
    bodies = body_names(recorder.system)
    time_s = _seconds(recorder.state.stamps_ns())
    state = {name: np.moveaxis(c, 1, 0).copy() for name, c in recorder.state.columns().items()}
    poses = {
        body: PoseTrack(time_s, *pose)
        for body, *pose in zip(
            bodies, state["position_enu_m"], state["orientation_wxyz"], strict=True
        )
    }
    twists = {
        body: TwistTrack(time_s, *twist)
        for body, *twist in zip(
            bodies, state["velocity_enu_m_s"], state["omega_body_rad_s"], strict=True
        )
    }
    shape_s, shape = _seconds(recorder.shape.stamps_ns()), recorder.shape.columns()
    free = state.get("free_length_m")
    cables = {
        f"cable_{i}": CableTrack(
            time_s,
            force[:, :, 0].copy(),
            shape_s,
            list(shape[NODES.format(i)].copy()),
            *(() if free is None else (time_s, free[i - 1])),
        )
        for i, force in enumerate(state["cable_force_n"], start=1)
    }
    n = recorder.system.n_drones
    wrenches = {
        anchor: WrenchTrack(time_s, wrench[:, :3], wrench[:, 3:])
        for anchor, wrench in zip(bodies[1 + n :], state.get("anchor_wrench_n", ()), strict=True)
    }
    rotors = {
        drone: RotorTrack(time_s, speed)
        for drone, speed in zip(bodies[1 : 1 + n], state["rotor_speed_rad_s"], strict=True)
    }
    stages_s = [stage.stamp_ns / 1e9 for stage in recorder.stages]
    names = [stage.text for stage in recorder.stages]
    events = tuple(Event(e.stamp_ns / 1e9, e.kind.strip(), e.what.strip()) for e in recorder.events)
    start_s, end_s = (float(time_s[0]), float(time_s[-1])) if len(time_s) else (0.0, 0.0)
    return Recording(
        poses, _setpoints(recorder), cables, rotors,
        stages_from_changes(stages_s, names, start_s, end_s), source or "memory", (), twists,
        events, _batteries(recorder), wrenches, setpoint_accelerations=_accelerations(recorder),
    )  # fmt: skip


def _batteries(recorder: MemoryRecorder) -> dict[str, BatteryTrack]:
    time_s = _seconds(recorder.battery.stamps_ns())
    (values,) = recorder.battery.columns().values()  # in a bag these have single precision
    values = values.astype(np.float32).astype(np.float64)
    return {
        f"drone_{i + 1}": BatteryTrack(time_s, of[:, 0], -of[:, 1], of[:, 3])
        for i, of in zip(battery_rows(recorder.system), np.moveaxis(values, 1, 0), strict=True)
        if len(time_s)
    }


def _accelerations(recorder: MemoryRecorder) -> dict[str, AccelerationTrack]:
    """Of each drone those that were asked of it."""
    (asked,) = recorder.acceleration.columns().values()
    time_s, given = _seconds(recorder.acceleration.stamps_ns()), np.isfinite(asked.sum(axis=2))
    return {
        f"drone_{i + 1}": AccelerationTrack(time_s[given[:, i]], asked[given[:, i], i].copy())
        for i in range(recorder.system.n_drones)
        if given[:, i].any()
    }


def _setpoints(recorder: MemoryRecorder) -> dict[str, PoseTrack]:
    """Of each body the set-points that differ from the one before."""
    columns = recorder.setpoint.columns()
    time_s = _seconds(recorder.setpoint.stamps_ns())
    if not len(time_s):
        return {}
    return {
        body: PoseTrack(
            time_s, columns["position_enu_m"][:, k], columns["orientation_wxyz"][:, k]
        ).changes()
        for k, body in enumerate(flown_names(recorder.system))
    }


def _seconds(stamps_ns: np.ndarray) -> np.ndarray:
    """The formula with which a bag's stamps are read."""
    return stamps_ns / 1e9
