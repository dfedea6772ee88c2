"""What a delivery waits for on its way: weighs what the drones carry, opens and closes hooks."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from musls_control.gates import HOOKED, RELEASED, RESTED, WEIGHED, Gate
from musls_control.mission_spec import DeliverySpec
from musls_control.payload_scale import PayloadScale
from musls_description.system import SlungLoadSystem

Array = NDArray[np.float64]

BEFORE_FORMATION = ("", "spool_up", "take_off", "form_up")
"""Phases in which the drones are not yet in formation: giving up waits for its end."""

LANDING = ("spread", "land", "disarmed")
"""Phases in which nothing is left to give up."""


class Hooks(Protocol):
    """Hooks at the load, and who is told what happens."""

    def open(self) -> None:
        """Let the load go at all hooks."""

    def close(self) -> None:
        """Let each hook close, once it is close and slow enough."""

    @property
    def closed(self) -> int:
        """How many have closed since they were asked to."""

    def note(self, time_s: float, kind: str, what: str) -> None:
        """Write down what happened."""


class DeliveryWatch:
    """State of a delivery: what was weighed, which gate it waits at, why it was given up.

    Attributes:
        scale: Weighs what the drones carry.
        payload_kg: Measured mass of the load; None before it was weighed.
        aborted: Why the delivery was given up; empty if it was not.
    """

    def __init__(
        self,
        given: DeliverySpec,
        system: SlungLoadSystem,
        slack_m: float,
        gravity_m_s2: float,
        hooks: Hooks,
    ) -> None:
        """Nothing is known yet.

        Args:
            given: What the mission says.
            system: Drones, cables, load.
            slack_m: By how much the cables are too long while the drones weigh themselves;
                infinite: their hooks are open.
            gravity_m_s2: Gravity.
            hooks: Open and close.
        """
        self._given, self._hooks, self._n_cables = given, hooks, len(system.cables)
        constants = [[r.thrust_coefficient_n_s2 for r in d.rotors] for d in system.drones]
        pairs = list(zip(system.drones, system.cables, strict=True))
        own = [d.mass_kg + hanging_share(c.length_m, slack_m) * c.mass_kg for d, c in pairs]
        self._cables_kg = sum(d.mass_kg + c.mass_kg for d, c in pairs) - sum(own)
        self.scale = PayloadScale(np.array(own), np.array(constants), gravity_m_s2)
        self.payload_kg: float | None = None
        self.aborted = ""
        self._stage = ""
        self._waits_since_s: float | None = None

    def abort(self, why: str) -> None:
        """Abort the delivery as soon as the drones fly in formation; not while they land."""
        if not self.aborted and self._stage not in LANDING:
            self.aborted = why

    @property
    def turns_back(self) -> bool:
        """Whether it was given up and the drones fly in formation."""
        return bool(self.aborted) and self._stage not in BEFORE_FORMATION

    def enter(self, stage: str) -> None:
        """Note that a phase or stage has begun; the present one again changes nothing."""
        before, self._stage = self._stage, stage
        if before == stage:
            return
        if before == "tare":
            self.scale.tare()
        if stage in ("tare", "weigh"):
            self.scale.begin()
        if stage == "pick_up":
            self._hooks.close()

    def passes(self, gate: Gate, time_s: float, load_speed_m_s: float) -> bool:
        """Whether a gate lets the next row through; gives up after its time."""
        if self._waits_since_s is None:
            self._waits_since_s = time_s
            if gate.what == WEIGHED:
                self._weigh(time_s)
        if self._holds(gate, load_speed_m_s):
            self._waits_since_s = None
            if gate.what == RESTED:
                self._hooks.open()
            return True
        if time_s - self._waits_since_s > gate.timeout_s + 1e-9:
            self.abort(f"not {gate.what} after {gate.timeout_s:g} s")
        return False

    def left_share(self) -> Array:
        """Share of the mass each drone has flown with that is left without the load, (n,)."""
        carried = self.scale.masses_kg()
        # The cables go with the drones.
        return np.full(len(carried), 1.0 - (self.payload_kg or 0.0) / carried.sum())

    def _weigh(self, time_s: float) -> None:
        own = self.scale.own_kg
        self.payload_kg = float((self.scale.masses_kg() - own).sum()) - self._cables_kg
        self._hooks.note(time_s, "weighed", f"load: {self.payload_kg:.3f} kg")

    def _holds(self, gate: Gate, load_speed_m_s: float) -> bool:
        if gate.what == HOOKED:
            return self._hooks.closed >= self._n_cables
        slack = self.scale.carried_kg < self._given.slack_share * (self.payload_kg or 0.0)
        if gate.what == RELEASED:
            return slack
        if gate.what == RESTED and self._given.drop == "ground":
            return slack and load_speed_m_s < self._given.rest_speed_m_s
        return True


def slack_while_weighed_m(given: DeliverySpec, standing_m: float, slack_height_m: float) -> float:
    """Slack of the cables while the drones weigh themselves; infinite if the hooks are open.

    Args:
        given: What the mission says.
        standing_m: Height of the load's centre on the ground.
        slack_height_m: Height of its set-point then.
    """
    return float("inf") if given.pick_up == "hook" else standing_m - slack_height_m


def hanging_share(length_m: float, slack_m: float) -> float:
    """Share of a slack cable that its upper end carries, with the lower end as low as possible."""
    return 1.0 if slack_m >= length_m else 1.0 - 0.5 * max(slack_m, 0.0) / length_m
