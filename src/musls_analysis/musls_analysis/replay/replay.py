"""Predict the load of a recording from the motion of its drones: the cable model alone.

The drones are moved along their recorded (smoothed) poses, see `musls_sim.plants.prescribed`.
A recording starts in the middle of a motion that says nothing about the cables, so the load is
first drawn along its recorded pose by a soft spring and damper (the lead-in) and then let go;
only the time after that counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from musls_analysis.errors import geodesic_error_rad, translational_error_m
from musls_analysis.recording import LOAD, PoseTrack, Recording
from musls_analysis.replay.path import SmoothPath, smooth_path
from musls_description.errors import ConfigError
from musls_description.spawn import hanging_equilibrium, slung_between
from musls_description.system import SlungLoadSystem
from musls_sim.plants.prescribed import DronePath, EnergyAudit, PrescribedPlant

Array = NDArray[np.float64]

START_UP_S = 1.0
"""Time over which the recorded motion starts from rest, by running its clock slowly at first."""

GUIDE_RAD_S = 2.0 * np.pi * 1.5
"""Natural frequency of the spring that draws the load along during the lead-in."""


@dataclass(frozen=True)
class ReplaySpec:
    """How to replay.

    Attributes:
        lead_in_s: Time during which the load is drawn along.
        physics_step_s: Time step. Prescribed ends are infinitely stiff, so cables that snap taut
            need a finer step than in a flight.
        gravity_m_s2: Gravity.
        offsets_m: Where each body's recorded reference point lies in the body's own frame (FLU,
            from the centre of mass), by name of the body; "drones" holds for all of them.
    """

    lead_in_s: float = 2.0
    physics_step_s: float = 0.001
    gravity_m_s2: float = 9.80665
    offsets_m: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class ReplayResult:
    """What a replay came to.

    Attributes:
        load: Predicted reference point of the load, from the end of the lead-in.
        measured: Recorded load at the same times.
        end_force_n: Force that moved each drone's end of the cable (the cable's pull is the
            opposite), world, (k, n, 3).
        end_power_w: Power put in at each drone, (k, n).
        tension_n: Tension at load and drone, (k, n, 2).
        audit: Energy balance.
        position_miss_m: Largest distance between prescribed and reached drone positions.
        attitude_miss_rad: Largest angle between prescribed and reached attitudes.
    """

    load: PoseTrack
    measured: PoseTrack
    end_force_n: Array
    end_power_w: Array
    tension_n: Array
    audit: EnergyAudit
    position_miss_m: float
    attitude_miss_rad: float

    @property
    def translational_error_m(self) -> float:
        """Mean distance (12) between predicted and measured load."""
        return float(
            translational_error_m(self.load.position_enu_m, self.measured.position_enu_m).mean()
        )

    @property
    def geodesic_error_rad(self) -> float:
        """Mean angle (13) between predicted and measured load."""
        return float(
            geodesic_error_rad(self.load.orientation_wxyz, self.measured.orientation_wxyz).mean()
        )


class Replay:
    """One recording, ready to be replayed with one system or many.

    Attributes:
        paths: Smoothed motion of the centre of mass of every body.
        start_s: Time of the recording at which the replay starts.
        end_s: And ends.
    """

    def __init__(self, recording: Recording, spec: ReplaySpec) -> None:
        """Smooth the recorded motion.

        Args:
            recording: With the load and all drones.
            spec: How to replay.

        Raises:
            ConfigError: A body is missing or has too few samples, or the recording is too short.
        """
        if LOAD not in recording.bodies or not recording.drones:
            have = ", ".join(recording.bodies)
            raise ConfigError(f"{recording.source}: replay needs load and drones, it has {have}")
        self.spec = spec
        self.drones = recording.drones
        self.paths: dict[str, SmoothPath] = {
            name: smooth_path(
                _shifted(track, _offset(spec, name), -1.0),
                f"{recording.source}: {name}",
                exact=name == LOAD,  # it is compared with, and it may turn fast
            )
            for name, track in recording.bodies.items()
        }
        self.start_s = max(path.start_s for path in self.paths.values())
        self.end_s = min(path.end_s for path in self.paths.values())
        if self.end_s - self.start_s < spec.lead_in_s + 1.0:
            raise ConfigError(
                f"{recording.source}: {self.end_s - self.start_s:.1f} s in which all bodies are "
                f"recorded, a replay needs the lead-in of {spec.lead_in_s:g} s and a second more"
            )

    def run(
        self, system: SlungLoadSystem, progress: Callable[[float], None] | None = None
    ) -> ReplayResult:
        """Move the drones of a system as recorded.

        Args:
            system: As many drones as in the recording.
            progress: Told the share done, now and then.

        Raises:
            ConfigError: The numbers of drones differ.
            SimulationDiverged: The physics failed.
        """
        if system.n_drones != len(self.drones):
            raise ConfigError(
                f"{system.name} has {system.n_drones} drones, the recording {len(self.drones)}"
            )
        plant = self._plant(system)
        track = _Track(system, self.spec, plant)
        path = self._eased_in(plant.state.orientation[1:].copy())
        periods = int((self.end_s - self.start_s + START_UP_S / 2.0) / plant.period_s) - 1
        for k in range(periods):
            lead_in = plant.time_s < self.spec.lead_in_s
            plant.follow(path, self._guide(plant) if lead_in else None)
            if not lead_in and k % 5 == 0:
                now = plant.time_s
                track.note(self.clock_s(now), path(now), self._load_at(now))
            if progress is not None and k % 50 == 0:
                progress(k / periods)
        return track.result()

    def _drones_at(self, time_s: float) -> tuple[Array, Array]:
        poses = [self.paths[name].at(self.clock_s(time_s)) for name in self.drones]
        return np.array([p for p, _ in poses]), np.array([q for _, q in poses])

    def _eased_in(self, attitudes: Array) -> DronePath:
        """The drones' path, from given attitudes at the start into the recorded ones, (n, 4)."""

        def path(time_s: float) -> tuple[Array, Array]:
            positions, recorded = self._drones_at(time_s)
            if time_s >= START_UP_S:
                return positions, recorded
            share = time_s / START_UP_S
            share = share**2 * (3.0 - 2.0 * share)
            same_side = np.where(np.sum(attitudes * recorded, axis=1) < 0.0, -1.0, 1.0)
            mixed = (1.0 - share) * attitudes + share * same_side[:, None] * recorded
            return positions, mixed / _norm(mixed)

        return path

    def _load_at(self, time_s: float) -> tuple[Array, Array]:
        return self.paths[LOAD].at(self.clock_s(time_s))

    def clock_s(self, time_s: float) -> float:
        """Recorded time at a time of the replay: starts slowly, then runs along."""
        share = min(time_s / START_UP_S, 1.0)
        # The integral of share^2 (3 - 2 share), the smooth step of the clock's rate.
        eased = share**3 - share**4 / 2.0
        return self.start_s + START_UP_S * eased + max(time_s - START_UP_S, 0.0)

    def _plant(self, system: SlungLoadSystem) -> PrescribedPlant:
        """The plant hanging at rest below the drones' first poses, or lying below slack cables."""
        position, orientation = self._drones_at(0.0)
        load, load_orientation = self._load_at(0.0)
        yaws = _yaw(orientation)
        reach = min(c.length_m for c in system.cables)
        slack = np.linalg.norm(position - load, axis=1).max() < 0.95 * reach
        options = {
            "physics_step_s": self.spec.physics_step_s,
            "gravity_m_s2": self.spec.gravity_m_s2,
        }
        if slack:
            ground = load[2] + system.load.collision.bottom_m
            turn = Rotation.from_rotvec([0.0, 0.0, float(_yaw(load_orientation))]).as_matrix()
            start = slung_between(system, load, turn, position, yaws, self.spec.gravity_m_s2)
            return PrescribedPlant(system, start, ground_height_enu_m=ground, **options)
        rest = hanging_equilibrium(
            system, position, self.spec.gravity_m_s2, float(_yaw(load_orientation)), yaws
        )
        return PrescribedPlant(system, rest.configuration, ground_height_enu_m=None, **options)

    def _guide(self, plant: PrescribedPlant) -> Callable[[float], Array]:
        """Spring and damper, critically damped, from the load to its recorded motion."""
        load, path = plant.system.load, self.paths[LOAD]
        inertia = np.mean(np.diag(load.inertia_kg_m2))

        def wrench(time_s: float) -> Array:
            motion = plant.load_motion
            position, orientation = path.at(self.clock_s(time_s))
            velocity = path.velocity_at(self.clock_s(time_s))
            present = Rotation.from_matrix(motion[:9].reshape(3, 3))
            turn = (Rotation.from_quat(orientation, scalar_first=True) * present.inv()).as_rotvec()
            w = GUIDE_RAD_S
            force = w**2 * (position - motion[9:12]) + 2.0 * w * (velocity - motion[15:18])
            moment = w**2 * turn - 2.0 * w * motion[12:15]
            return np.concatenate([inertia * moment, load.mass_kg * force])

        return wrench


class _Track:
    """Collects a replay's results."""

    def __init__(self, system: SlungLoadSystem, spec: ReplaySpec, plant: PrescribedPlant) -> None:
        self._system, self._spec, self._plant = system, spec, plant
        self._rows: list[tuple] = []
        self._miss = np.zeros(2)

    def note(self, clock_s: float, drones: tuple[Array, Array], load: tuple[Array, Array]) -> None:
        plant, state = self._plant, self._plant.state
        distance = np.linalg.norm(state.position_enu_m[1:] - drones[0], axis=1).max()
        angle = geodesic_error_rad(state.orientation[1:], drones[1] / _norm(drones[1])).max()
        self._miss = np.maximum(self._miss, [distance, angle])
        weight = [[0.0, 0.0, d.mass_kg * self._spec.gravity_m_s2] for d in self._system.drones]
        inertial = [
            d.mass_kg * a
            for d, a in zip(self._system.drones, state.acceleration_enu_m_s2[1:], strict=True)
        ]
        force = plant.end_wrench[:, 3:] - np.array(weight) - np.array(inertial)
        power = np.sum(force * state.velocity_enu_m_s[1:], axis=1)
        self._rows.append((
            clock_s, state.position_enu_m[0].copy(), state.orientation[0].copy(), load[0],
            load[1] / np.linalg.norm(load[1]), force, power, state.tension_n.copy(),
        ))  # fmt: skip

    def result(self) -> ReplayResult:
        columns = [np.array(column) for column in zip(*self._rows, strict=True)]
        time, position, orientation, true_position, true_orientation, force, power, tension = (
            columns
        )
        offset = _offset(self._spec, LOAD)
        return ReplayResult(
            _shifted(PoseTrack(time, position, orientation), offset, 1.0),
            _shifted(PoseTrack(time, true_position, true_orientation), offset, 1.0),
            force, power, tension, self._plant.audit, float(self._miss[0]), float(self._miss[1]),
        )  # fmt: skip


def _offset(spec: ReplaySpec, name: str) -> Array:
    fallback = spec.offsets_m.get("drones", (0.0, 0.0, 0.0)) if name != LOAD else (0.0, 0.0, 0.0)
    return np.array(spec.offsets_m.get(name, fallback))


def _shifted(track: PoseTrack, offset_m: Array, sign: float) -> PoseTrack:
    """The track of a point at an offset in the body's frame."""
    rotation = Rotation.from_quat(track.orientation_wxyz, scalar_first=True)
    position = track.position_enu_m + sign * rotation.apply(offset_m)
    return PoseTrack(track.time_s, position, track.orientation_wxyz)


def _yaw(quaternion: Array) -> Array:
    """Yaw of quaternions [w, x, y, z], (...) [rad]."""
    w, x, y, z = np.moveaxis(quaternion, -1, 0)
    return np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))


def _norm(quaternions: Array) -> Array:
    return np.linalg.norm(quaternions, axis=1, keepdims=True)
