"""Tasks of the environments: goals, what happens, and when a world is lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from musls_bringup.learning.environment import Mask, Numbers, Task, TransportVectorEnv
from musls_description.config.errors import ConfigError
from musls_description.system.obstacles import GateObstacle


@dataclass
class Transport(Task):
    """Bring the load to a place up to `range_m` from its start on each axis and hold it there."""

    range_m: float = 0.5

    def begin(self, env: TransportVectorEnv, worlds: Numbers) -> None:
        """Draw the places."""
        shift = env.np_random.uniform(-self.range_m, self.range_m, (len(worlds), 3))
        env.goal.position_enu_m[worlds] += shift


@dataclass
class _Pushed(Task):
    """The load is pushed once, with a force drawn between two, shares of its weight, ENU."""

    from_s: float = 1.0
    to_s: float = 1.3
    low: tuple[float, float, float] = (-0.5, -0.5, -0.5)
    high: tuple[float, float, float] = (0.5, 0.5, 0.5)

    def prepare(self, env: TransportVectorEnv) -> None:
        self._force_n = np.zeros((env.num_envs, 3))

    def begin(self, env: TransportVectorEnv, worlds: Numbers) -> None:
        share = env.np_random.uniform(self.low, self.high, (len(worlds), 3))
        self._force_n[worlds] = env.weight_n * share

    def act(self, env: TransportVectorEnv) -> None:
        time_s = env.batch.time_s
        pushed = (time_s >= self.from_s) & (time_s < self.to_s)
        env.batch.wrench_enu[:, 0, 3:] = np.where(pushed[:, None], self._force_n, 0.0)


@dataclass
class Hover(_Pushed):
    """Hold the load where it is although it is pushed, up to half of its weight on each axis."""


@dataclass
class Recover(_Pushed):
    """Catch a load that is thrown up at the start, so that its cables go slack and snap taut."""

    from_s: float = 0.0
    to_s: float = 0.3
    low: tuple[float, float, float] = (-0.4, -0.4, 1.6)
    high: tuple[float, float, float] = (0.4, 0.4, 2.2)


@dataclass
class Track(Task):
    """Follow a figure eight of `reach_m` to both sides; the time of a round is drawn."""

    action_scale: ClassVar[float] = 6.0  # it has to lead by up to 2.5 m, see the page of the task
    reach_m: float = 1.5
    round_s: tuple[float, float] = (6.0, 12.0)

    def prepare(self, env: TransportVectorEnv) -> None:
        """Make room for the speeds."""
        self._omega = np.zeros(env.num_envs)

    def begin(self, env: TransportVectorEnv, worlds: Numbers) -> None:
        """Draw the times of a round."""
        self._omega[worlds] = 2.0 * np.pi / env.np_random.uniform(*self.round_s, len(worlds))

    def act(self, env: TransportVectorEnv) -> None:
        """Move the goal: x = a sin(w t), y = a/2 sin(2 w t)."""
        omega = self._omega
        goal = env.goal
        for axis, (size, times) in enumerate([(self.reach_m, 1.0), (0.5 * self.reach_m, 2.0)]):
            phase = times * omega * env.batch.time_s
            goal.position_enu_m[:, axis] = env.start_enu_m[0, axis] + size * np.sin(phase)
            goal.velocity_enu_m_s[:, axis] = size * times * omega * np.cos(phase)
            goal.acceleration_enu_m_s2[:, axis] = -size * (times * omega) ** 2 * np.sin(phase)


@dataclass
class Gate(Task):
    """Bring the load to a place beyond a gate; passing beside the opening ends the episode."""

    scenario: ClassVar[str] = "gate"
    overrides: ClassVar[Mapping[str, Any]] = {
        "controller": "formation",
        "cable_model": "massless",
        "estimation": {"kind": "truth"},
    }
    limit_m: float = 8.0
    goal_enu_m: tuple[float, float, float] = (6.0, 0.0, 1.2)
    half_width_m: float = 0.3

    def begin(self, env: TransportVectorEnv, worlds: Numbers) -> None:
        """Put the goal there."""
        env.goal.position_enu_m[worlds] = self.goal_enu_m

    def failed(self, env: TransportVectorEnv) -> Mask:
        """Whether the base task failed, or a body is within its half width of the gate's frame."""
        gate = env.nominal.world.obstacles[0]
        half = self.half_width_m
        if not isinstance(gate, GateObstacle):
            raise ConfigError(f"scenario {env.nominal.name}: world.obstacles[0] must be a gate")
        x, y, z = np.moveaxis(np.abs(env.batch.position_enu_m - gate.position_enu_m), -1, 0)
        inside = (y + half < gate.width_m / 2.0) & (z + half < gate.height_m / 2.0)
        hit: Mask = ((x < half) & ~inside).any(axis=1) | super().failed(env)
        return hit


@dataclass
class LostDrone(Task):
    """Hold the load up although the motors of one of six drones stop, drawn which and when."""

    overrides: ClassVar[Mapping[str, Any]] = {  # high: the lost one hangs below the load
        "system": "x500_hexa",
        "system.load.mass_kg": 1.0,  # five carry it and the lost one with 78 % of their thrust
        "mission.stages.0.position_m": [0.0, 0.0, 6.0],
    }
    between_s: tuple[float, float] = (1.0, 3.0)

    def prepare(self, env: TransportVectorEnv) -> None:
        """Make room for what is drawn."""
        self._which = np.zeros(env.num_envs, int)
        self._at_s = np.zeros(env.num_envs)

    def begin(self, env: TransportVectorEnv, worlds: Numbers) -> None:
        """Draw which and when."""
        self._which[worlds] = env.np_random.integers(env.batch.n_drones, size=len(worlds))
        self._at_s[worlds] = env.np_random.uniform(*self.between_s, len(worlds))

    def act(self, env: TransportVectorEnv) -> None:
        """Stop the motors."""
        is_lost = env.batch.time_s >= self._at_s
        env.batch.motors[is_lost, self._which[is_lost]] = 0.0
