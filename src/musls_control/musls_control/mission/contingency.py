"""Notices the loss of a drone or of a cable, and finds the rest of the flight without it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from musls_control.estimate import Estimate
from musls_control.mission.plan import FlightPlan
from musls_control.mission.rest_of_flight import (
    Situation,
    aside,
    goes_on,
    landed,
    landed_clear,
    rest_of_flight,
    room_to_land,
    sentence,
)
from musls_control.mission.spec import ContingencySpec, MissionSpec
from musls_description.config.errors import ConfigError
from musls_description.hanging.hang import Hanging
from musls_description.hanging.reallocation import Reallocation
from musls_description.numerics.arrays import Array
from musls_description.system.drone import tip_radius_m

LONGEST_GAP_S = 0.5
"""Over a longer time between two looks nothing is known of the forces meanwhile."""

MIN_DRONES = 4
"""From so many on the loss of one can be survived."""

MIN_LEFT = 3
"""With fewer drones no new formation is looked for."""


# ---------- How the loss of a drone or of a cable is noticed: by measurements only


class LossDetector:
    """Watches places of drones and forces of cables."""

    def __init__(self, spec: ContingencySpec, even_share_n: Array) -> None:
        """`even_share_n`: even part of the load's weight, of each cable, (n,)."""
        self._spec, self._slack_n = spec, spec.slack_share * even_share_n
        self.begin()

    def begin(self) -> None:
        """Forget what was seen."""
        n, self._looked_s = len(self._slack_n), np.nan
        self._slack_s, self._taut_s, self._carried = *np.zeros((2, n)), np.zeros(n, bool)

    def fallen(self, estimate: Estimate, setpoint_enu_m: Array) -> list[tuple[int, str]]:
        """Drones (from 0) that fall, and the measurement that shows it.

        `setpoint_enu_m`: where the drones are to be, (n, 3).
        """
        drones = estimate.drones
        below = setpoint_enu_m[:, 2] - drones.position_enu_m[:, 2]
        sinking = -drones.velocity_enu_m_s[:, 2]
        found = (below > self._spec.drop_m) & (sinking > self._spec.sink_m_s)
        return [
            (int(i), f"{below[i]:.2f} m below its set-point, sinking at {sinking[i]:.1f} m/s")
            for i in np.flatnonzero(found)
        ]

    def slackened(
        self, time_s: float, estimate: Estimate, *, lifting: bool = False
    ) -> list[tuple[int, str]]:
        """Cables (from 0) that have carried nothing for too long, and what was seen.

        A force that nobody knows (NaN) tells nothing.
        `lifting`: the load is only being taken up: a cable that has not carried yet, for as long as
        it may be slack, is not lost, it is late.
        """
        since_s, self._looked_s = time_s - self._looked_s, time_s
        since_s = since_s if since_s < LONGEST_GAP_S else 0.0
        slack = estimate.tension_n[:, 0] < self._slack_n
        self._taut_s = np.where(slack, 0.0, self._taut_s + since_s)
        self._carried |= self._taut_s > self._spec.slack_s
        counts = slack & self._carried if lifting else slack
        self._slack_s = np.where(counts, self._slack_s + since_s, 0.0)
        late = self._slack_s > self._spec.slack_s
        return [
            (int(i), f"no force in its cable for {self._slack_s[i]:.1f} s")
            for i in np.flatnonzero(late)
        ]


# ---------- What is done then


class LossKind(Enum):
    """Why a drone does not carry any more."""

    FALLS = "falls"
    SLACK = "has no load on its cable and flies on"
    UNGUIDED = "hovers or sinks where it is"


@dataclass(frozen=True)
class Loss:
    """A drone (from 0) that does not carry any more, and what was seen."""

    drone: int
    kind: LossKind
    why: str


@dataclass(frozen=True)
class Answer:
    """The rest of a flight without a drone.

    Attributes:
        goes_on: Whether the mission goes on in it, after its first phase.
        what: What it is, in words.
    """

    plan: FlightPlan
    goes_on: bool
    what: str


class Contingency:
    """Watches for losses and answers them with the rest of the flight; it commands nothing.

    Attributes:
        gone: Drones that do not fly any more, or that nobody guides, since the answer, (n,).
        answers: The formations that were found, one for each loss; None where there was none.
    """

    def __init__(
        self, spec: ContingencySpec, hanging: Hanging, mission: MissionSpec, *, ahead: bool = False
    ) -> None:
        """`ahead`: find the formations now; a loss without one that was found is not answered.

        Each takes up to a second, for which a flight in real time cannot wait.
        """
        system, n = hanging.system, hanging.system.n_drones
        if n < MIN_DRONES:
            raise ConfigError(
                f"contingency: {system.name} has {n} drones; the loss of one can be survived by "
                f"{MIN_DRONES} or more"
            )
        if mission.kind == "delivery":  # another plan has not its gates
            spec = replace(spec, then="land")
        self.spec, self._hanging, self._mission = spec, hanging, mission
        self._detector = LossDetector(
            spec, np.full(n, system.load.mass_kg * hanging.gravity_m_s2 / n)
        )
        self.gone, self._noted = np.zeros(n, bool), dict[int, LossKind]()
        self._offsets_m = hanging.formation.offsets_m(n)
        self._found: dict[tuple[tuple[int, ...], ...], Reallocation | None] = {}
        self.answers: list[Reallocation | None] = []
        self._ahead = False
        for drone in range(n) if ahead else ():
            for kind in (LossKind.FALLS, LossKind.UNGUIDED):
                self._formation(Loss(drone, kind, ""))
        self._ahead = ahead

    def begin(self) -> None:
        """Begin a flight with all drones."""
        self._detector.begin()
        self.gone[:], self._noted, self.answers = False, {}, []
        self._offsets_m = self._hanging.formation.offsets_m(len(self.gone))

    def look(
        self, time_s: float, estimate: Estimate, setpoint_enu_m: Array, *, lifting: bool
    ) -> list[Loss]:
        """Losses found in the measurements; each is returned until it is answered or noted.

        Args:
            time_s: Of the measurements.
            estimate: Places and velocities of the drones, tensions of the cables; NaN where nobody
                knows.
            setpoint_enu_m: Where the drones are to be, (n, 3).
            lifting: See `LossDetector.slackened`.
        """
        detector = self._detector
        seen = [
            Loss(drone, LossKind.FALLS, why)
            for drone, why in detector.fallen(estimate, setpoint_enu_m)
        ]
        for drone, why in detector.slackened(time_s, estimate, lifting=lifting):
            seen.append(Loss(drone, LossKind.SLACK, why))
        return [loss for loss in seen if self.can_answer(loss)]

    def can_answer(self, loss: Loss) -> bool:
        """Whether a loss is news, and something can be done about it in time."""
        known = loss.drone in self._noted
        return not known and (not self._ahead or self._key(loss) in self._found)

    def note(self, loss: Loss) -> None:
        """Note that a drone does not carry any more; later answers count with that."""
        self._noted[loss.drone] = loss.kind

    def without(self, loss: Loss, plan: FlightPlan, row: int, drones_enu_m: Array) -> Answer | None:
        """The rest of a flight without a drone, from a row of its plan.

        `drones_enu_m`: where the drones are, (n, 3).

        Returns:
            None where the others would come too near a drone that does not fall. A load that is set
            down may go so far back that the drone, which stayed behind, is in its place again.
        """
        spec, system, mission = self.spec, self._hanging.system, self._mission
        found, formation, n = self._formation(loss), self._hanging.formation, len(self.gone)
        noted = self._noted | {loss.drone: loss.kind}
        offsets = (formation.offsets_m(n) if found is None else found.offsets_m).copy()
        for drone, kind in noted.items():
            slack = kind is LossKind.SLACK
            offsets[drone] = aside(formation, n, drone) if slack else np.nan
        now = Situation(plan, row, plan.drone_position_enu_m[row].copy(), offsets)
        place, lands = drones_enu_m[loss.drone], replace(spec, then="land")
        tries = [(spec, now)]
        if loss.kind is LossKind.UNGUIDED:
            back = replace(now, shift_m=(place - now.drones_enu_m[loss.drone])[:2])
            tries += [(lands, now), (lands, back)]
        for asked, begin in tries:
            way = rest_of_flight(begin, found, system, mission, asked)
            if loss.kind is not LossKind.UNGUIDED or self._is_clear(way, loss.drone, place):
                self._noted, self._offsets_m = noted, offsets
                self.gone = np.isnan(offsets[:, 0])
                self.answers.append(found)
                return Answer(way, goes_on(found, asked), sentence(found, asked))
        return None

    def down(self, plan: FlightPlan, row: int) -> FlightPlan:
        """The way down, after a loss, from a row of the plan that is flown."""
        drones = plan.drone_position_enu_m[row].copy()
        now = Situation(plan, row, drones, self._offsets_m)
        return landed(now, self._hanging.system, self._mission, self.spec, reforms=True)

    def beside(self, plan: FlightPlan, load_enu_m: Array, drones_enu_m: Array) -> FlightPlan:
        """A landing that begins to spread out, clear of the drones on the ground."""
        room = room_to_land(self._hanging.system, self.spec.clearance_m)
        return landed_clear(plan, load_enu_m, self.gone, drones_enu_m, *room)

    def _key(self, loss: Loss) -> tuple[tuple[int, ...], ...]:
        """Numbers (from 1) of the drones that do not carry, hang from the load, stay in place."""
        lost = self._noted | {loss.drone: loss.kind}
        hanging = [
            d for d, k in lost.items() if k is not LossKind.SLACK and self.spec.hook == "hold"
        ]
        stays = [loss.drone] if loss.kind is LossKind.UNGUIDED else []
        return tuple(
            tuple(sorted(drone + 1 for drone in drones)) for drones in (lost, hanging, stays)
        )

    def _formation(self, loss: Loss) -> Reallocation | None:
        key = lost, hanging, stays = self._key(loss)
        if key not in self._found:
            few = len(self.gone) - len(lost) < MIN_LEFT
            self._found[key] = (
                None
                if few
                else self._hanging.without(
                    lost,
                    margin=self.spec.margin,
                    clearance_m=self.spec.clearance_m,
                    hanging=hanging,
                    hovering=stays,
                )
            )
        return self._found[key]

    def _is_clear(self, way: FlightPlan, drone: int, place_enu_m: Array) -> bool:
        """Whether the others keep clear of what is above and below a place.

        On the way to their new places they may be as near as they are already.
        """
        radii = np.array([tip_radius_m(d) for d in self._hanging.system.drones])
        others = np.arange(len(radii)) != drone
        level = way.drone_position_enu_m[:, others, :2] - place_enu_m[:2]
        tips_m = (np.linalg.norm(level, axis=2) - radii[others] - radii[drone]).min(axis=1)
        clear_m = 0.5 * self.spec.clearance_m
        allowed_m = np.where(way.stage == 0, np.clip(tips_m[0], 0.0, clear_m), clear_m)
        return bool((tips_m >= allowed_m).all())
