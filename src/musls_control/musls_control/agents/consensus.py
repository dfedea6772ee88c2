"""The law of `payload`, computed by every drone from what it knows and what others say.

Each drone runs the whole law (`controllers.payload`: the load's wrench, its shares for the cables,
the force of the drone that each cable asks for) and flies its own row. For that it needs the motion
of the load (`knows: [load]`), of all drones, and the set-point, which the leader passes on unless
all know it. A message holds the newest motion of each drone that its sender has heard of, so that
news go from neighbour to neighbour through any connected network; what is old goes on with its
velocity, and a drone of which nothing was heard counts as in its place.

A drone of which no news come for `contingency.silent_s` is lost: the others close the formation
without it, each by itself (`Hanging.without`), and go on with the law of a system that is smaller.

With an ideal network all drones compute the same numbers, those of `payload`. Otherwise, what their
laws add up over time differs, the integrals of the load's errors and the state of the observer,
and integrators that hold one load together wind up against each other. So the drones agree on
these: x_i of drone i follows

    x_i' = u_i + k mean_j (x_j - x_i),

with what its own law adds, u_i, and the mean over the neighbours that are heard: R. Olfati-Saber,
J. A. Fax and R. M. Murray, "Consensus and cooperation in networked multi-agent systems",
Proceedings of the IEEE 95(1), 2007, eq. 4 with weights 1 / |N_i| and an input. Both x are those of
the time when the message was sent, so that a delay alone makes no difference. A delay d leaves it
stable for 2 k d < pi / 2 (section II.F there, with the largest eigenvalue 2 of these weights).

An observer that is faster than the drones agree finds what the others do too much or too little,
and fights it. So `disturbance_1_s` of the law is k.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Literal

import numpy as np

from musls_control.agents.agent import EVERYBODY, Agent, Now, Post
from musls_control.controllers import ControlLevel, ControlSetup
from musls_control.controllers.payload.controller import PayloadController, PayloadSpec
from musls_control.estimate import MOTION_COLUMNS, Estimate
from musls_control.trajectories.base import ORDERS
from musls_description.config.errors import ConfigError
from musls_description.hanging.cone import with_places
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import from_yaw, rotate, yaw_of

GOES_ON_S = 0.5
"""Time for which old news go on with their velocity; then they stand."""

REMEMBERED_S = 1.0
"""Time for which a drone remembers what its law had added up."""

X = 16
"""Numbers of a message about the law: what it has added up, (15,), and for which drones."""

NOW = slice(0, 20)
COMING = slice(20, 40)
TILT = slice(40, 50)
"""The set-point in a message: derivatives now, those when drones will have answered, the tilt."""


class ConsensusCarrier(Agent):
    """Computes the law of `payload` and flies its own row of it.

    Attributes:
        law: The law, with a memory of its own.
    """

    law: PayloadController

    def __init__(
        self, output: Literal["autopilot", "direct"] = "autopilot", consensus_1_s: float = 1.0
    ) -> None:
        """Choose the output of `payload`, and the rate k of the consensus."""
        if output not in ("autopilot", "direct"):
            raise ConfigError(f"controller.parameters.output = {output}: autopilot or direct")
        self._output = output
        self._rate_1_s = consensus_1_s
        self.level = (  # type: ignore[misc]  # by the parameter
            ControlLevel.FORCES if output == "direct" else ControlLevel.AUTOPILOT_FORCES
        )

    def prepare(self, post: Post) -> None:
        """Take the place among the others; called once, before the flight; see `Agent`."""
        super().prepare(post)
        if "load" not in post.knows:
            raise ConfigError(
                "controller.agent = consensus: every drone needs the load's motion, "
                "controller.knows: [load]"
            )
        if post.setup.rods:
            raise ConfigError("controller.agent = consensus is for cables, not for rigid_rods")
        n = post.n_drones
        self._place_m = post.setup.formation.offsets_m(n)
        self._yaw_rad = post.setup.formation.azimuths_rad(n) + np.pi
        self._left = np.arange(n)
        self._take_law(post.setup)
        self._forget()

    def _take_law(self, setup: ControlSetup) -> None:
        """Make the law of a system, with nothing added up."""
        law = PayloadSpec(output=self._output, disturbance_1_s=self._rate_1_s).build(setup)
        assert isinstance(law, PayloadController)
        self.law = law
        self._estimate = Estimate.zeros(setup.system.n_drones)

    def start(self, now: Now) -> None:
        """Begin with nothing added up, and with nothing heard; who was lost stays so."""
        self._forget()
        self.law.start(now.time_s, self._estimate)

    def _forget(self) -> None:
        n = self.post.n_drones
        self._motion = np.zeros((n, MOTION_COLUMNS))
        self._measured_s = np.full(n, -np.inf)
        self._asked_s = -np.inf
        self._command = np.zeros(TILT.stop)
        self._past: deque[tuple[float, Array]] = deque()

    def tell(self, now: Now) -> None:
        """Tell the neighbours all that is known."""
        self._learn(now)
        ages = np.append(now.time_s - self._measured_s, now.time_s - self._asked_s)
        knowledge = np.concatenate([*self.law.learned, [np.exp2(self._left).sum()]])
        self._past.append((now.time_s, knowledge))
        while self._past[0][0] < now.time_s - REMEMBERED_S:
            self._past.popleft()
        self.send(EVERYBODY, np.concatenate([knowledge, ages, self._command, self._motion.ravel()]))

    def decide(self, now: Now) -> Array:
        """Force of the rotors and yaw; with `output: direct` all columns of `ControlLevel`."""
        self._learn(now)
        self._close_up(now)
        self._agree(now)
        if not np.isfinite(self._asked_s):  # nobody has said where to go: stay
            load = now.load
            self._command[:4] = [*load.position_enu_m, float(yaw_of(load.orientation_wxyz))]
            self._asked_s = -1e9
        self._estimate.data[0] = now.load.data
        for row, k in enumerate(self._left.tolist()):
            self._estimate.data[1 + row] = self._motion_of(k, now)
        present, coming, tilt = self._setpoint(now.time_s)
        own = int(np.flatnonzero(self._left == self.post.number - 1)[0])
        command = self.law.respond(self._estimate, present, tilt, coming)[own]
        width = 4 if self.level is ControlLevel.AUTOPILOT_FORCES else len(command)
        return command[:width].copy()

    def _learn(self, now: Now) -> None:
        """Take the newest of what is measured and heard."""
        own = self.post.number - 1
        self._motion[own] = now.own.data
        self._measured_s[own] = now.time_s
        if self.post.leads or "reference" in self.post.knows:
            reference = now.reference
            self._command[NOW] = reference.derivatives.ravel()
            self._command[COMING] = self.law.coming(reference).ravel()
            self._command[TILT] = reference.tilt.ravel()
            self._asked_s = now.time_s
        self._hear(now)

    def _hear(self, now: Now) -> None:
        """Take what is newer in the neighbours' messages."""
        n = self.post.n_drones
        for message in now.heard.values():
            sent_s = now.time_s - message.age_s
            numbers = message.numbers[X:]
            measured_s = sent_s - numbers[:n]
            asked_s = sent_s - numbers[n]
            request, motion = np.split(numbers[n + 1 :], [TILT.stop])
            for k in np.flatnonzero(measured_s > self._measured_s):
                self._motion[k] = motion.reshape(n, MOTION_COLUMNS)[k]
                self._measured_s[k] = measured_s[k]
            if asked_s > self._asked_s:
                self._command[:] = request
                self._asked_s = asked_s

    def _close_up(self, now: Now) -> None:
        """Go on without the drones of which there are no news any more."""
        setup = self.post.setup
        if setup.silent_s is None or setup.without is None:
            return
        ages_s = now.time_s - self._measured_s
        silent = np.flatnonzero(np.isfinite(ages_s) & (ages_s > setup.silent_s))
        survivors = np.setdiff1d(self._left, silent)
        if len(survivors) == len(self._left):
            return
        self._left = survivors
        lost_drones = np.setdiff1d(np.arange(self.post.n_drones), survivors)
        reallocation = setup.without(tuple((lost_drones + 1).tolist()))
        few = setup.slung.carried_by(survivors.tolist())
        places = (
            self._place_m[survivors] if reallocation is None else reallocation.offsets_m[survivors]
        )
        self._place_m[survivors] = places
        integrals = [part.copy() for part in self.law.learned[:2]]
        self._take_law(replace(setup, system=few, formation=with_places(places)))
        self.law.start(now.time_s, self._estimate)
        for part, before in zip(self.law.learned[:2], integrals, strict=True):
            part[:] = before

    def _agree(self, now: Now) -> None:
        """Go towards what the neighbours' laws had added up when they said so."""
        gaps = []
        for message in now.heard.values():
            sent_s = now.time_s - message.age_s
            then = next((x for time_s, x in self._past if time_s > sent_s - 1e-6), None)
            if then is None or message.age_s > REMEMBERED_S:
                continue
            gap = message.numbers[:X] - then
            if gap[-1] == 0.0:  # both laws are of the same drones
                gaps.append(gap[:-1])
        if gaps:
            step = self._rate_1_s * self.post.period_s * np.mean(gaps, axis=0)
            learned = self.law.learned
            for part, change in zip(learned, np.split(step, len(learned)), strict=True):
                part += change

    def _motion_of(self, k: int, now: Now) -> Array:
        """Motion of a drone (from 0) as far as it is known, (16,)."""
        age_s = now.time_s - self._measured_s[k]
        motion = self._motion[k].copy()
        if np.isfinite(age_s):
            motion[0:3] += min(age_s, GOES_ON_S) * motion[3:6]
            if age_s > GOES_ON_S:
                motion[3:6] = motion[10:] = 0.0
            return motion
        load = now.load
        yaw_rad = yaw_of(load.orientation_wxyz)
        motion[0:3] = load.position_enu_m + rotate(from_yaw(yaw_rad), self._place_m[k])
        motion[3:6] = load.velocity_enu_m_s
        motion[6:10] = from_yaw(yaw_rad + self._yaw_rad[k])
        return motion

    def _setpoint(self, time_s: float) -> tuple[Array, Array, Array]:
        """Derivatives of the set-point now and coming, (5, 4), and its tilt, (5, 2)."""
        age_s = time_s - self._asked_s
        present, coming = (
            moved_on(self._command[part].reshape(ORDERS, 4), age_s) for part in (NOW, COMING)
        )
        return present, coming, self._command[TILT].reshape(ORDERS, 2)


def moved_on(derivatives: Array, age_s: float) -> Array:
    """Derivatives a time later, by their Taylor series; at rest where they are too old, (5, 4)."""
    later = derivatives.copy()
    factor = 1.0
    for order in range(1, ORDERS):
        factor *= min(age_s, GOES_ON_S) / order
        later[: ORDERS - order] += factor * derivatives[order:]
    if age_s > GOES_ON_S:
        later[1:] = 0.0
    return later
