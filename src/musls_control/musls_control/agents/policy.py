"""A trained policy on each drone, which sees what its drone knows.

What a policy sees and what its actions mean is `controllers.learned`'s, for policies that each
drone asks for itself (`decentralised`). What a drone does not know it makes up: drones of which it
has not heard are in their places in the formation, the load hangs where it would with this drone in
its place, and who does not know the goal takes the load's place for it. The environments of
PettingZoo show agents the same (`belief`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from musls_control.agents.agent import EVERYBODY, Agent, Now, Post
from musls_control.controllers import ControlSetup
from musls_control.controllers.learned import (
    Actions,
    Goal,
    LearnedSpec,
    Observations,
)
from musls_control.estimate import MOTION_COLUMNS
from musls_description.config.errors import ConfigError
from musls_description.config.schema import build
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import from_yaw, rotate, yaw_of


def belief(
    setup: ControlSetup,
    number: int,
    own: Array,
    load: Array | None,
    goal: Goal | None,
    heard: Mapping[int, Array],
) -> tuple[Array, Goal]:
    """Motion of load and drones, (1 + n, 16), and goal, as a drone takes them to be.

    `number` and `own` motion, (16,), of the drone; `load` and `goal` where it knows them; the
    newest motion that it has `heard` of others, by their numbers.
    """
    n = setup.system.n_drones
    places_m = setup.formation.offsets_m(n)
    yaws_rad = setup.formation.azimuths_rad(n) + np.pi
    motion = np.zeros((1 + n, MOTION_COLUMNS))
    if load is None:
        turn = from_yaw(yaw_of(own[6:10]) - yaws_rad[number - 1])
        motion[0, 0:3] = own[0:3] - rotate(turn, places_m[number - 1])
        motion[0, 3:6] = own[3:6]
        motion[0, 6:10] = turn
    else:
        motion[0] = load
    if goal is None:
        still = np.zeros(3)
        goal = Goal(motion[0, 0:3].copy(), still, yaw_of(motion[0, 6:10]), still)
    turn = from_yaw(goal.yaw_rad)
    motion[1:, 0:3] = motion[0, 0:3] + rotate(turn, places_m)
    motion[1:, 3:6] = motion[0, 3:6]
    motion[1:, 6:10] = from_yaw(goal.yaw_rad + yaws_rad)
    for other, numbers in heard.items():
        motion[other] = numbers
    motion[number] = own
    return motion, goal


class PolicyAgent(Agent):
    """Asks a policy for the actions of its drone."""

    def __init__(self, policy: str | Sequence[str], **training: Any) -> None:
        """Read the policy, or those of all drones in their order.

        `training`: keys of `learned` that its file does not say.
        """
        files = [policy] if isinstance(policy, str) else list(policy)
        if not files:
            raise ConfigError("controller.parameters.policy has no file")
        specs = [
            build(LearnedSpec, {"policy": f} | training, "controller.parameters") for f in files
        ]
        self._read = [spec.read() for spec in specs]
        self.level = self._read[0][1].level.control  # type: ignore[misc]  # as it was trained

    def prepare(self, post: Post) -> None:
        """Take the place among the others; called once, before the flight; see `Agent`."""
        super().prepare(post)
        if len(self._read) not in (1, post.n_drones):
            raise ConfigError(
                f"controller.parameters.policy has {len(self._read)} files for {post.n_drones} "
                "drones"
            )
        self._policy, trained = self._read[(post.number - 1) % len(self._read)]
        self._periods = trained.periods_per_step or trained.level.periods_per_step
        self._actions = Actions(trained.level, post.setup, trained.action_scale)
        n, columns = self._actions.shape
        self._observe = Observations(post.setup, trained.history, n * columns)
        at = f"one drone at level {trained.level.value}"
        self._policy.check(self._observe.size_each, columns, "one drone", at)
        self._last = np.zeros((trained.history, n * columns))
        self._calls = 0

    def start(self, now: Now) -> None:
        """Ask for an action in the first period."""
        self._calls = 0
        self._last[:] = 0.0

    def tell(self, now: Now) -> None:
        """Tell the others how this drone moves."""
        self.send(EVERYBODY, now.own.data)

    def decide(self, now: Now) -> Array:
        """Command of the action in force."""
        if self._calls % self._periods == 0:
            self._command = self._ask(now)
        self._calls += 1
        return self._command

    def _ask(self, now: Now) -> Array:
        post = self.post
        own = self.post.number - 1
        goal = None
        if post.leads or "reference" in post.knows:
            reference = now.reference
            goal = Goal(
                reference.position_enu_m,
                reference.velocity_enu_m_s,
                np.array(reference.yaw_rad),
                reference.acceleration_enu_m_s2,
            )
        load = now.load.data if "load" in post.knows else None
        numbers_of = {number: message.numbers for number, message in now.heard.items()}
        motion, goal = belief(post.setup, post.number, now.own.data, load, goal, numbers_of)
        tension_n = np.full((post.n_drones, 2), np.nan_to_num(now.tension_n))
        parts = self._observe.parts(motion, tension_n, goal, self._last)
        output = self._policy(self._observe.each(parts, ())[own]).ravel()
        action = np.zeros(self._actions.shape)
        action[own] = np.clip(output, -1.0, 1.0)
        self._last = np.vstack([action.reshape(1, -1), self._last])[: len(self._last)]
        command: Array = self._actions.commands(action, motion, tension_n, goal)[own]
        return command
