"""The agent of one drone by itself, without the others: what runs on its own computer.

It is the same class as in `team`. Messages come and go with the time at which they were sent; how
late they are the real network decides.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from musls_control.agents.agent import EVERYBODY, Agent, Body, Message
from musls_control.agents.silence import FLIES_ALONE, HoldThenLand, cut_off_drones
from musls_control.agents.team import WIDTHS, AgentsSpec, now_of
from musls_control.controllers import ControlLevel, ControlSetup, level_of
from musls_control.reference import LoadReference
from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Array
from musls_description.numerics.vectors import body_z_in_world

STANDS_AFTER_S = 0.5
"""Age of the task after which its set-point stands where it was last."""


class SingleAgent:
    """One drone's agent, and what its drone does when there are no news.

    Attributes:
        agent: The agent.
        level: Level of its commands.
        hears: Numbers of the drones whose messages it is to hear.
        task_s: Time without a task after which the drone lands.
        alone: Landing of the drone by itself; None while it is not to land.
        why: Reason for that in words.
    """

    def __init__(
        self,
        spec: AgentsSpec,
        setup: ControlSetup,
        number: int,
        *,
        silent_s: float = 1.0,
        task_s: float = 10.0,
    ) -> None:
        """Make the agent of a drone, from 1.

        `silent_s`: time without a message after which a neighbour counts as silent; `task_s`: time
        without a task after which the drone lands.
        """
        n = setup.system.n_drones
        if not 1 <= number <= n:
            raise ConfigError(f"parameter drone = {number}: there are {n} drones")
        self.agent: Agent = spec.agents(n)[number - 1]
        self.agent.prepare(spec.post(setup, number))
        self.level = level_of(self.agent)  # type: ignore[arg-type]  # has a level, too
        if self.level not in FLIES_ALONE or self.level is ControlLevel.FORCES:
            raise ConfigError(
                f"{type(self.agent).__name__}.level = {self.level.value}: on the ROS graph choose "
                "drone_setpoints or autopilot_forces"
            )
        self.hears = [i for i, j in spec.network.pairs(n, spec.leader) if j == number]
        self._silent_s = silent_s
        self.task_s = task_s
        self._newest: dict[int, tuple[float, Array]] = {}
        self.alone: HoldThenLand | None = None
        self.why = ""
        self._starts = True

    def hear(self, source: int, to: int, sent_s: float, numbers: Sequence[float]) -> None:
        """Take a message of another drone, for all or for this one."""
        newer = source not in self._newest or self._newest[source][0] < sent_s
        if source in self.hears and newer and to in (EVERYBODY, self.agent.post.number):
            self._newest[source] = sent_s, np.array(numbers, float)

    def rest(self) -> None:
        """Control was handed back; the agent starts anew."""
        self._starts = True

    def step(
        self,
        time_s: float,
        own: Array,
        load: Array,
        thrust_n: float,
        reference: LoadReference,
        task_age_s: float,
    ) -> tuple[Array, list[tuple[int, Array]]]:
        """Command of this drone, and messages that it sends, (to, numbers).

        `own` and `load` motion, (16,); `thrust_n` that the rotors give now. A drone that is cut
        off, or to which nobody gives a task any more, holds its place and lands: the command is
        position and yaw then, (4,), see `alone`.
        """
        messages = {k: Message(x, time_s - sent_s) for k, (sent_s, x) in self._newest.items()}
        body = Body(own)
        post = self.agent.post
        specific_force_m_s2 = body.acceleration_enu_m_s2 + [0.0, 0.0, post.gravity_m_s2]
        up = np.array(body_z_in_world(body.orientation_wxyz))
        pull_enu_n = post.drone.mass_kg * specific_force_m_s2 - thrust_n * up
        if task_age_s > STANDS_AFTER_S:
            reference = LoadReference(
                np.vstack([reference.derivatives[:1], np.zeros((4, 4))]), reference.tilt
            )
        now = now_of(self.agent, time_s, body, load, reference, messages, np.nan, pull_enu_n)
        if self.alone is None and (why := self._why_alone(messages, task_age_s)):
            self.alone = HoldThenLand(post, now)
            self.why = why
        if self.alone is not None:
            return self.alone.command(now, ControlLevel.DRONE_SETPOINTS, 4), []
        if self._starts:
            self.agent.start(now)
            self._starts = False
        self.agent.tell(now)
        command = np.asarray(self.agent.decide(now), float)
        if command.shape not in [(width,) for width in WIDTHS[self.level]]:
            widths = " or ".join(map(str, WIDTHS[self.level]))
            raise ConfigError(
                f"{type(self.agent).__name__}.decide returned an array of shape {command.shape}, "
                f"must have {widths} numbers"
            )
        outbox = list(self.agent.outbox)
        self.agent.outbox.clear()
        return command, outbox

    def _why_alone(self, messages: dict[int, Message], task_age_s: float) -> str:
        """Why the drone is to land by itself, "" where it is not."""
        n = self.agent.post.n_drones
        own = self.agent.post.number - 1
        ages_s = np.full((n, n), np.nan)
        for number, message in messages.items():
            ages_s[own, number - 1] = message.age_s
        if cut_off_drones(ages_s, self._silent_s)[own]:
            return "cut off: it hears too few of the others"
        return f"no task for {self.task_s:g} s" if task_age_s > self.task_s else ""
