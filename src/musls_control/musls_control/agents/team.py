"""`controller.kind: agents`: an agent on each drone, and the network between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import partial
from threading import active_count
from time import thread_time
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from musls_control.agents.agent import AGENTS, Agent, Body, Message, NotKnownError, Now, Post
from musls_control.agents.network import Network, NetworkSpec
from musls_control.agents.silence import FLIES_ALONE, HoldThenLand, ages_of_lost, cut_off_drones
from musls_control.controllers import (
    Controller,
    ControlLevel,
    ControlSetup,
    level_of,
)
from musls_control.estimate import Estimate
from musls_control.reference import LoadReference
from musls_description.config.errors import ConfigError
from musls_description.config.registry import UserCodeError, file_of, load_class, user_code
from musls_description.config.schema import spec
from musls_description.numerics.arrays import Array
from musls_description.numerics.vectors import body_z_in_world, cross, rotate_back_by

WIDTHS = {
    ControlLevel.DRONE_SETPOINTS: (4,),
    ControlLevel.FORCES: (3, 4, 7, 10),
    ControlLevel.AUTOPILOT_FORCES: (3, 4),
    ControlLevel.THRUST_MOMENT: (4,),
    ControlLevel.THRUST_RATES: (4,),
}
"""Levels that a drone has for itself, and the numbers of a command."""

SLOW_AFTER = 100
"""Calls over which the time of an agent is averaged."""

Known = Literal["load", "reference"]


@spec
class AgentsSpec:
    """Each drone decides for itself.

    Attributes:
        kind: "agents".
        agent: Class of the agents: "my.py:Follower", "package.module:Follower" or a shipped one;
            or one for each drone.
        leader: Number of the drone that knows the load's set-point.
        knows: Further knowledge of every drone: "load" for the load's motion, "reference" for its
            set-point.
        network: Network between them.
        parameters: Arguments of the classes, by name.
    """

    kind: Literal["agents"] = "agents"
    agent: str | tuple[str, ...]
    leader: Annotated[int, Field(ge=1)] = 1
    knows: tuple[Known, ...] = ()
    network: NetworkSpec = Field(default_factory=NetworkSpec)
    parameters: dict[str, Any] = field(default_factory=dict, hash=False)

    def build(self, setup: ControlSetup) -> Controller:
        """Make an agent for each drone."""
        return Agents(self.agents(setup.system.n_drones), self)

    def agents(self, n: int) -> list[Agent]:
        """Make the agents of n drones, without any knowledge yet."""
        sources = (self.agent,) * n if isinstance(self.agent, str) else self.agent
        if len(sources) != n:
            raise ConfigError(f"controller.agent has {len(sources)} entries for {n} drones")
        if self.leader > n:
            raise ConfigError(f"controller.leader = {self.leader}: there are {n} drones")
        return [_make(source, self.parameters) for source in sources]

    def post(self, setup: ControlSetup, number: int) -> Post:
        """Place of a drone among the others."""
        system = setup.slung
        n = setup.slung.n_drones
        k = number - 1
        return Post(
            number,
            n,
            self.leader,
            system.drones[k],
            system.cables[k],
            np.array(setup.formation.offsets_m(n)[k]),
            float(setup.formation.azimuths_rad(n)[k] + np.pi),
            system.load.mass_kg,
            setup.gravity_m_s2,
            setup.period_s,
            self.knows,
            setup,
        )


def _make(source: str, parameters: dict[str, Any]) -> Agent:
    """Make an agent of a class by its name or its place."""
    kind = load_class(source) if ":" in source else AGENTS[source]
    if not issubclass(kind, Agent):
        raise ConfigError(f"controller.agent = {source}: the class must inherit musls.Agent")
    if missing_methods := sorted(getattr(kind, "__abstractmethods__", ())):
        raise ConfigError(
            f"controller.agent = {source}: the class has no method {missing_methods[0]}"
        )
    with user_code(lambda: " before the flight", kind, "__init__"):
        agent: Agent = kind(**parameters)
        return agent


def now_of(
    agent: Agent,
    time_s: float,
    own: Body,
    load: Array,
    reference: LoadReference,
    heard: Mapping[int, Message],
    tension_n: float,
    pull_enu_n: Array,
) -> Now:
    """Knowledge of an agent's drone; `load`, (16,), and `reference` as far as it may know them."""
    post = agent.post
    name = type(agent).__name__

    def unknown(what: str, key: str) -> NotKnownError:
        return NotKnownError(
            f"{name} of drone_{post.number} reads {what}, which it does not know: "
            f"controller.knows: [{key}] gives it to every drone"
        )

    def seen() -> Body:
        if "load" not in post.knows:
            raise unknown("the load's motion", "load")
        return Body(load)

    def told() -> LoadReference:
        if not post.leads and "reference" not in post.knows:
            raise unknown("the load's set-point", "reference")
        return reference

    silent_s = post.setup.silent_s
    silent = frozenset(
        number for number, message in heard.items() if silent_s and message.age_s > silent_s
    )
    return Now(time_s, own, tension_n, pull_enu_n, heard, seen, told, silent)


class Agents(Controller):
    """Asks each agent for its command, with what its drone knows and nothing else.

    Attributes:
        agents: One for each drone.
    """

    network: Network

    def __init__(self, agents: list[Agent], spec: AgentsSpec) -> None:
        self.agents = agents
        self._spec = spec
        levels = [level_of(agent) for agent in agents]  # type: ignore[arg-type]  # has a level, too
        if len(set(levels)) > 1:
            raise ConfigError(
                f"controller.agent: drone_1 decides at level {levels[0].value}, another one at "
                f"{next(x for x in levels if x is not levels[0]).value}; must be the same for all"
            )
        if levels[0] not in WIDTHS:
            level_names = ", ".join(level.value for level in WIDTHS)
            raise ConfigError(
                f"{type(agents[0]).__name__}.level = {levels[0].value}: an agent commands its own "
                f"drone; choose one of {level_names}"
            )
        self.level = levels[0]  # type: ignore[misc]  # by the classes
        self._alone: dict[int, HoldThenLand] = {}
        self._columns = max(WIDTHS[self.level])
        self._spent_s = np.zeros(len(agents))
        self._calls = 0
        self._slow = set[int]()
        self._tell = any(type(agent).tell is not Agent.tell for agent in agents)

    def prepare(self, setup: ControlSetup) -> None:
        """Tell each agent its place among the others."""
        super().prepare(setup)
        n = len(self.agents)
        self.network = Network(self._spec.network, n, self._spec.leader, setup.seed)
        self._thrusts_n = np.full(n, np.nan)
        self._pulls_enu_n = np.zeros((n, 3))
        self._yaws_rad = setup.formation.azimuths_rad(n) + np.pi
        for k, agent in enumerate(self.agents):
            post = self._spec.post(setup, k + 1)
            with user_code(lambda: " before the flight", type(agent), "prepare"):
                agent.prepare(post)

    def start(self, time_s: float, estimate: Estimate) -> None:
        """Begin with a network on which nothing is under way."""
        self.network.clear()
        self._thrusts_n[:] = np.nan
        self._starts = True

    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Commands of all agents, (n, columns); they decide at the same time."""
        network = self.network
        places_enu_m = estimate.drones.position_enu_m
        network.arrive(time_s)
        self._look_for_silence(time_s, reference, estimate)

        def ask(what: str) -> list[Any]:
            """Answers of the agents; of one whose drone is cut off none."""
            network.arrive(time_s)
            answers: list[Any] = []
            for k, agent in enumerate(self.agents):
                if k in self._alone:
                    answers.append(None)
                    continue
                now = self._now(k, time_s, reference, estimate)
                when = partial("{} of drone_{} at {:.3f} s".format, "", k + 1, time_s)
                begun_s = thread_time()
                threads = active_count()
                with user_code(when, type(agent), what):
                    answers.append(getattr(agent, what)(now))
                    if active_count() > threads:
                        raise RuntimeError(
                            "it has started a thread; an agent acts when it is asked"
                        )
                self._spent_s[k] += thread_time() - begun_s
            for k, agent in enumerate(self.agents):
                network.send(time_s, k + 1, agent.outbox, places_enu_m)
                agent.outbox.clear()
            return answers

        if self._starts:
            ask("start")
        if self._tell:
            ask("tell")
        answers = ask("decide")
        for k, lands in self._alone.items():
            now = self._now(k, time_s, reference, estimate)
            answers[k] = lands.command(now, level_of(self.agents[k]), self._columns)  # type: ignore[arg-type]
        rows = [self._checked(k, time_s, answer) for k, answer in enumerate(answers)]
        self._starts = False
        if len({len(row) for row in rows}) > 1:
            raise UserCodeError("agents return 3 numbers and 4: must be the same for all drones")
        commands = np.array(rows)
        self._count_time()
        self._columns = commands.shape[1]
        if self.level is ControlLevel.FORCES and commands.shape[1] < 7:
            commands = self._with_moments(commands, reference.yaw_rad, estimate)
        self._keep_thrusts(commands)
        return commands

    def _count_time(self) -> None:
        """Report once an agent that would be too slow on its drone, by its time on a processor."""
        self._calls += 1
        if self._calls % SLOW_AFTER:
            return
        slow = self._spent_s > SLOW_AFTER * self.setup.period_s
        for k in np.flatnonzero(slow).tolist():
            if k not in self._slow and self._calls > SLOW_AFTER:  # the first ones may compile
                self._slow.add(k)
                name = type(self.agents[k]).__name__
                takes_ms = 1e3 * self._spent_s[k] / SLOW_AFTER
                what = f"{name} of drone_{k + 1} takes {takes_ms:.1f} ms to decide"
                self.happened.append(
                    ("slow_agent", f"{what}, a period has {1e3 * self.setup.period_s:g} ms")
                )
        self._spent_s[:] = 0.0

    def _look_for_silence(
        self, time_s: float, reference: LoadReference, estimate: Estimate
    ) -> None:
        """Find drones that nobody hears any more, and let those that hear nobody land."""
        silent_s = self.setup.silent_s
        if silent_s is None or self._starts:
            return
        ages_s = self.network.ages_s(time_s)
        for k in np.flatnonzero(cut_off_drones(ages_s, silent_s)).tolist():
            if k not in self._alone and self.level in FLIES_ALONE:
                now = self._now(k, time_s, reference, estimate)
                self._alone[k] = HoldThenLand(self.agents[k].post, now)
                what = f"drone_{k + 1} hears nobody: it holds its place, then lands"
                self.happened.append(("cut_off", what))
        for k, age_s in enumerate(ages_of_lost(ages_s, silent_s).tolist()):
            if age_s == age_s:
                self.network.silent.setdefault(f"drone_{k + 1}", f"no message for {age_s:.1f} s")

    def numbers(self) -> dict[str, float]:
        """Messages of the network."""
        return self.network.numbers()

    def _checked(self, k: int, time_s: float, answer: Any) -> Array:
        """Numbers of a command, (columns,); refused in one line where they are none."""
        kind = type(self.agents[k])
        widths = WIDTHS[self.level]  # type: ignore[index]
        when = partial("{} of drone_{} at {:.3f} s".format, "", k + 1, time_s)
        with user_code(when, kind, "decide"):
            row = np.asarray(answer, float)
        if row.shape not in [(width,) for width in widths]:
            allowed_widths = " or ".join(map(str, widths))
            raise UserCodeError(
                f"{file_of(kind)}: {kind.__name__}.decide of drone_{k + 1} at {time_s:.3f} s "
                f"returned an array of shape {row.shape}, must have {allowed_widths} numbers"
            )
        if not np.isfinite(row).all():
            column = int(np.flatnonzero(~np.isfinite(row))[0])
            raise UserCodeError(
                f"{file_of(kind)}: {kind.__name__}.decide of drone_{k + 1} at {time_s:.3f} s "
                f"returned {row[column]} in column {column}; must be finite"
            )
        return row

    def _now(self, k: int, time_s: float, reference: LoadReference, estimate: Estimate) -> Now:
        """Knowledge of a drone; nothing of the estimate can be reached through it."""
        own = Body(estimate.data[k + 1])
        self._pulls_enu_n[k] = self._pull(k, own)
        messages = self.network.heard_by(k + 1, time_s)
        tension_n = float(estimate.tension_n[k, 1])
        pull_enu_n = self._pulls_enu_n[k].copy()
        return now_of(
            self.agents[k],
            time_s,
            own,
            estimate.data[0],
            reference,
            messages,
            tension_n,
            pull_enu_n,
        )

    def _pull(self, k: int, own: Body) -> Array:
        """Force of the cable on a drone: m (a + g) minus its commanded thrust."""
        if not np.isfinite(self._thrusts_n[k]):
            return np.zeros(3)
        up = np.array(body_z_in_world(own.orientation_wxyz))
        specific_force_m_s2 = own.acceleration_enu_m_s2 + [0.0, 0.0, self.setup.gravity_m_s2]
        pull: Array = (
            self.setup.system.drones[k].mass_kg * specific_force_m_s2 - self._thrusts_n[k] * up
        )
        return pull

    def _with_moments(self, forces: Array, yaw_rad: float, estimate: Estimate) -> Array:
        """Forces with yaws and the moments against those of the cables, (n, 7).

        A cable that pulls beside the centre of mass would tilt its drone; each knows its own pull.
        """
        rows = np.zeros((len(forces), 7))
        rows[:, : forces.shape[1]] = forces
        if forces.shape[1] == 3:
            rows[:, 3] = yaw_rad + self._yaws_rad
        for k, turn in enumerate(estimate.drones.orientation_wxyz):
            pull = rotate_back_by(turn, self._pulls_enu_n[k])
            rows[k, 4:] = cross(pull, self.setup.system.drones[k].cable_attachment_m)
        return rows

    def _keep_thrusts(self, commands: Array) -> None:
        if self.level in (ControlLevel.FORCES, ControlLevel.AUTOPILOT_FORCES):
            self._thrusts_n[:] = np.linalg.norm(commands[:, :3], axis=1)
        elif self.level in (ControlLevel.THRUST_MOMENT, ControlLevel.THRUST_RATES):
            self._thrusts_n[:] = commands[:, 0]
