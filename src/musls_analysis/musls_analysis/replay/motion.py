"""The recorded motion of all bodies as a replay needs it: smooth, of the right points, eased in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from musls_analysis.recordings.recording import LOAD, Recording
from musls_analysis.replay.path import SmoothPath, smooth_path
from musls_description.errors import ConfigError
from musls_sim.plants.interface import Pose

Array = NDArray[np.float64]
Vector = tuple[float, float, float]

DRONES = "drones"
"""Name that stands for all drones among the offsets."""

START_UP_S = 1.0
"""Time over which the recorded motion starts from rest, by running its clock slowly at first."""


@dataclass(frozen=True)
class ReplaySpec:
    """How to replay, and what the recorded poses are poses of.

    Attributes:
        lead_in_s: Time during which the load is drawn along.
        physics_step_s: Time step of the calm motion; the plant refines it where the energy balance
            asks for it.
        gravity_m_s2: Gravity.
        offsets_m: Where each body's recorded reference point lies in the body's own frame (FLU,
            from the centre of mass), by name of the body; "drones" holds for all of them.
        load_tilt_rad: Rotation vector from the load's frame to the recorded one, in the load's
            frame.
        load_delay_s: How much later than the drones' the load's poses are stamped.
    """

    lead_in_s: float = 2.0
    physics_step_s: float = 0.001
    gravity_m_s2: float = 9.80665
    offsets_m: Mapping[str, Vector] = field(default_factory=dict)
    load_tilt_rad: Vector = (0.0, 0.0, 0.0)
    load_delay_s: float = 0.0

    def offset_m(self, body: str) -> Array:
        """Recorded reference point of a body in its frame, (3,)."""
        nothing = (0.0, 0.0, 0.0)
        common = nothing if body == LOAD else self.offsets_m.get(DRONES, nothing)
        return np.array(self.offsets_m.get(body, common))


class RecordedPaths:
    """Smooth paths of the recorded reference points, whatever they are points of.

    Attributes:
        source: Name of the recording.
        drones: Names of the drones.
        paths: Of every body as recorded.
        load_time_s: When the load's pose was sampled, (k,).
    """

    def __init__(self, recording: Recording) -> None:
        """Smooth a recording.

        Raises:
            ConfigError: A body is missing or has too few samples.
        """
        if LOAD not in recording.bodies or not recording.drones:
            have = ", ".join(recording.bodies)
            raise ConfigError(f"{recording.source}: replay needs load and drones, it has {have}")
        self.source, self.drones = recording.source, recording.drones
        self.paths: dict[str, SmoothPath] = {
            # The load is compared with, and it may turn fast: its path meets every sample.
            name: smooth_path(track, f"{recording.source}: {name}", exact=name == LOAD)
            for name, track in recording.bodies.items()
        }
        self.load_time_s = np.unique(recording.bodies[LOAD].time_s)


class Motion:
    """Centres of mass and attitudes over the time of a replay, which starts at rest.

    Attributes:
        start_s: Recorded time at which the replay starts.
        end_s: And ends.
    """

    def __init__(self, recorded: RecordedPaths, spec: ReplaySpec) -> None:
        """Move the recorded points to the centres of mass.

        Raises:
            ConfigError: An offset of a body that is not recorded; the recording is too short.
        """
        for body in spec.offsets_m:
            if body != DRONES and body not in recorded.paths:
                have = ", ".join([*recorded.paths, DRONES])
                raise ConfigError(f"offset of '{body}': {recorded.source} has {have}")
        self._drones = recorded.drones
        tilt = Rotation.from_rotvec(spec.load_tilt_rad)
        self.paths = {
            name: path.of_body(
                spec.offset_m(name),
                tilt if name == LOAD else Rotation.identity(),
                spec.load_delay_s if name == LOAD else 0.0,
            )
            for name, path in recorded.paths.items()
        }
        self.start_s = max(path.start_s for path in self.paths.values())
        self.end_s = min(path.end_s for path in self.paths.values())
        if self.end_s - self.start_s < spec.lead_in_s + 1.0:
            raise ConfigError(
                f"{recorded.source}: {self.end_s - self.start_s:.1f} s in which all bodies are "
                f"recorded, a replay needs the lead-in of {spec.lead_in_s:g} s and a second more"
            )

    def clock_s(self, time_s: float) -> float:
        """Recorded time at a time of the replay: starts slowly, then runs along."""
        share = min(time_s / START_UP_S, 1.0)
        # The integral of share^2 (3 - 2 share), the smooth step of the clock's rate.
        eased = share**3 - share**4 / 2.0
        return self.start_s + START_UP_S * eased + max(time_s - START_UP_S, 0.0)

    @property
    def duration_s(self) -> float:
        """Time of the replay that the recording gives."""
        return self.end_s - self.start_s + START_UP_S / 2.0

    def load_at(self, time_s: float) -> tuple[Array, Array]:
        """Recorded pose of the load at a time of the replay, (3,) and (4,)."""
        return self.paths[LOAD].at(self.clock_s(time_s))

    def load_velocity_at(self, time_s: float) -> Array:
        """Velocity of the recorded load, (3,) [m/s]."""
        return self.paths[LOAD].velocity_at(self.clock_s(time_s))

    def drones_at(self, time_s: float) -> Pose:
        """Recorded poses of the drones at a time of the replay, (n, 3) and (n, 4), unit."""
        poses = [self.paths[name].at(self.clock_s(time_s)) for name in self._drones]
        attitudes = np.array([q for _, q in poses])
        return np.array([p for p, _ in poses]), _unit(attitudes)

    def eased_in(self, attitudes: Array) -> Callable[[float], Pose]:
        """The drones' path, from given attitudes at the start into the recorded ones, (n, 4)."""

        def path(time_s: float) -> Pose:
            positions, recorded = self.drones_at(time_s)
            if time_s >= START_UP_S:
                return positions, recorded
            share = time_s / START_UP_S
            share = share**2 * (3.0 - 2.0 * share)
            same_side = np.where(np.sum(attitudes * recorded, axis=1) < 0.0, -1.0, 1.0)
            return positions, _unit(
                (1.0 - share) * attitudes + share * same_side[:, None] * recorded
            )

        return path


def _unit(quaternions: Array) -> Array:
    return quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)
