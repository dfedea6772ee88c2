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
    rest_of_flight,
    sentence,
)
from musls_control.mission.spec import ContingencySpec, MissionSpec
from musls_description.config.errors import ConfigError
from musls_description.hanging.hang import Hanging
from musls_description.hanging.reallocation import Reallocation
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import compiled
from musls_description.system.drone import tip_radius_m

LONGEST_GAP_S = 0.5
"""Time between two checks above which the forces in between are not known."""

MIN_DRONES = 4
"""Least number of drones with which the loss of one can be survived."""

MIN_LEFT = 3
"""Least number of remaining drones for which a new formation is computed."""


# ---------- How the loss of a drone or of a cable is noticed: by measurements only


LOSS = np.dtype(
    [
        ("drop", float),  # limits, see `ContingencySpec` [m, m/s, N, s]
        ("sink", float),
        ("least", float),
        ("longest", float),
        ("looked", float),  # time of the last look [s]
        ("below", float),  # the set-point [m]
        ("sinking", float),  # [m/s]
        ("taut", float),  # for so long [s]
        ("slack", float),  # likewise
        ("carried", np.int64),  # whether the cable has carried something
        ("falls", np.int64),  # what was found
        ("slackened", np.int64),
        ("noted", np.int64),  # whether it is no news
    ],
    align=True,
)
"""Observed state of a drone and of its cable, with the limits."""


@compiled(shared=True)
def look_for_losses(losses, motion, tension, wanted, time, lifting):
    """Look at drones and cables, (n,) records of `LOSS`; once at a time. Tells whether it is news.

    `motion` (1 + n, 16), `tension` (n, 2); unknown values (NaN) are ignored. `wanted`: where
    the drones are to be, (n, 3) or more columns. `lifting`: the load is only being taken up: a
    cable that has not carried yet, for as long as it may be slack, is not lost, it is late.
    """
    news = False
    for i in range(losses.shape[0]):
        loss = losses[i]
        if loss.looked != time:
            since = time - loss.looked
            if not since < LONGEST_GAP_S:
                since = 0.0
            loss.looked = time
            slack = tension[i, 0] < loss.least
            loss.below = wanted[i, 2] - motion[1 + i, 2]
            loss.sinking = -motion[1 + i, 5]
            loss.falls = loss.below > loss.drop and loss.sinking > loss.sink
            loss.taut = 0.0 if slack else loss.taut + since
            if loss.taut > loss.longest:
                loss.carried = 1
            counts = slack and not (lifting and loss.carried == 0)
            loss.slack = loss.slack + since if counts else 0.0
            loss.slackened = loss.slack > loss.longest
        news |= loss.noted == 0 and (loss.falls != 0 or loss.slackened != 0)
    return news


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
        what: Description in words.
    """

    plan: FlightPlan
    goes_on: bool
    what: str


class Contingency:
    """Watches for losses and answers them with the rest of the flight; it commands nothing.

    Attributes:
        gone: Drones that do not fly any more, or that nobody guides, since the answer, (n,).
        losses: Observed state of each drone and its cable, `LOSS`, (n,).
        answers: The formations that were found, one for each loss; None where there was none.
    """

    def __init__(
        self, spec: ContingencySpec, hanging: Hanging, mission: MissionSpec, *, ahead: bool = False
    ) -> None:
        """`ahead`: find the formations now; a loss without one that was found is not answered.

        Each takes up to a second, for which a flight in real time cannot wait.
        """
        system = hanging.system
        n = hanging.system.n_drones
        if n < MIN_DRONES:
            raise ConfigError(
                f"contingency: {system.name} has {n} drones; the loss of one can be survived by "
                f"{MIN_DRONES} or more"
            )
        if mission.kind == "delivery":  # another plan has not its gates
            spec = replace(spec, then="land")
        self.spec = spec
        self._hanging = hanging
        self._mission = mission
        self.losses = np.zeros(n, LOSS)
        self.losses["drop"] = spec.drop_m
        self.losses["sink"] = spec.sink_m_s
        even_n = system.load.mass_kg * hanging.gravity_m_s2 / n
        self.losses["least"] = spec.slack_share * even_n
        self.losses["longest"] = spec.slack_s
        self.gone = np.zeros(n, bool)
        self._noted = dict[int, LossKind]()
        self._offsets_m = hanging.formation.offsets_m(n)
        self._reallocations: dict[tuple[tuple[int, ...], ...], Reallocation | None] = {}
        self.answers: list[Reallocation | None] = []
        self._ahead = False
        for drone in range(n) if ahead else ():
            for kind in (LossKind.FALLS, LossKind.UNGUIDED):
                self._formation(Loss(drone, kind, ""))
        self._ahead = ahead

    def begin(self) -> None:
        """Begin a flight with all drones."""
        for name in ("looked", "taut", "slack", "carried", "falls", "slackened", "noted"):
            self.losses[name] = 0
        self.gone[:] = False
        self._noted = {}
        self.answers = []
        self._offsets_m = self._hanging.formation.offsets_m(len(self.gone))

    def look(
        self, time_s: float, estimate: Estimate, setpoint_enu_m: Array, *, lifting: bool
    ) -> list[Loss]:
        """Losses found in the measurements; each is returned until it is answered or noted.

        What was looked at already at that time is not looked at again.

        Args:
            time_s: Time of the measurements.
            estimate: Places and velocities of the drones, tensions of the cables; NaN where nobody
                knows.
            setpoint_enu_m: Set-points of the drones, (n, 3).
            lifting: See `look_for_losses`.
        """
        setpoints = np.ascontiguousarray(setpoint_enu_m)
        losses = self.losses
        look_for_losses(losses, estimate.data, estimate.tension_n, setpoints, time_s, lifting)
        new_losses = [
            Loss(
                i,
                LossKind.FALLS,
                f"{s['below']:.2f} m below its set-point, sinking at {s['sinking']:.1f} m/s",
            )
            for i, s in enumerate(losses)
            if s["falls"]
        ] + [
            Loss(i, LossKind.SLACK, f"no force in its cable for {s['slack']:.1f} s")
            for i, s in enumerate(losses)
            if s["slackened"]
        ]
        for loss in new_losses:
            losses["noted"][loss.drone] |= not self.can_answer(loss)
        return [loss for loss in new_losses if self.can_answer(loss)]

    @property
    def fallen(self) -> Array:
        """Drones that do not fly any more, (n,): those of `gone` that do not land by themselves."""
        lands = [d for d, kind in self._noted.items() if kind is LossKind.UNGUIDED]
        fallen: Array = self.gone.copy()
        fallen[lands] = False
        return fallen

    @property
    def has_news(self) -> bool:
        """Whether a loss was found at the last look that is not noted yet."""
        signs = self.losses["falls"] | self.losses["slackened"]
        return bool((signs > self.losses["noted"]).any())

    def can_answer(self, loss: Loss) -> bool:
        """Whether a loss is news, and something can be done about it in time."""
        is_noted = loss.drone in self._noted
        return not is_noted and (not self._ahead or self._key(loss) in self._reallocations)

    def note(self, loss: Loss) -> None:
        """Note that a drone does not carry any more; later answers count with that."""
        self._noted[loss.drone] = loss.kind
        self.losses["noted"][loss.drone] = 1

    def without(self, loss: Loss, plan: FlightPlan, row: int, drones_enu_m: Array) -> Answer | None:
        """The rest of a flight without a drone, from a row of its plan.

        `drones_enu_m`: where the drones are, (n, 3).

        Returns:
            None where the others would come too near a drone that does not fall. A load that is set
            down may go so far back that the drone, which stayed behind, is in its place again.
        """
        spec = self.spec
        system = self._hanging.system
        mission = self._mission
        reallocation = self._formation(loss)
        formation = self._hanging.formation
        n = len(self.gone)
        noted = self._noted | {loss.drone: loss.kind}
        offsets = (
            formation.offsets_m(n) if reallocation is None else reallocation.offsets_m
        ).copy()
        for drone, kind in noted.items():
            slack = kind is LossKind.SLACK
            offsets[drone] = aside(formation, n, drone) if slack else np.nan
        places = plan.drone_position_enu_m[row].copy()
        now = Situation(plan, row, places, offsets, self._hanging.ground)
        place = drones_enu_m[loss.drone]
        lands = replace(spec, then="land")
        tries = [(spec, now)]
        if loss.kind is LossKind.UNGUIDED:
            back = replace(now, shift_m=(place - now.drones_enu_m[loss.drone])[:2])
            tries += [(lands, now), (lands, back)]
        for variant, begin in tries:
            way = rest_of_flight(begin, reallocation, system, mission, variant)
            if loss.kind is not LossKind.UNGUIDED or self._is_clear(way, loss.drone, place):
                self._noted = noted
                self._offsets_m = offsets
                self.losses["noted"][list(noted)] = 1
                self.gone = np.isnan(offsets[:, 0])
                self.answers.append(reallocation)
                return Answer(way, goes_on(reallocation, variant), sentence(reallocation, variant))
        return None

    def down(self, plan: FlightPlan, row: int) -> FlightPlan:
        """The way down, after a loss, from a row of the plan that is flown."""
        drones = plan.drone_position_enu_m[row].copy()
        now = Situation(plan, row, drones, self._offsets_m, self._hanging.ground)
        return landed(now, self._hanging.system, self._mission, self.spec, reforms=True)

    def _key(self, loss: Loss) -> tuple[tuple[int, ...], ...]:
        """Numbers (from 1) of the drones that do not carry, hang from the load, stay in place."""
        losses = self._noted | {loss.drone: loss.kind}
        hanging = [
            d for d, k in losses.items() if k is not LossKind.SLACK and self.spec.hook == "hold"
        ]
        stays = [loss.drone] if loss.kind is LossKind.UNGUIDED else []
        return tuple(
            tuple(sorted(drone + 1 for drone in drones)) for drones in (losses, hanging, stays)
        )

    def _formation(self, loss: Loss) -> Reallocation | None:
        key = absent, hanging, stays = self._key(loss)
        if key not in self._reallocations:
            few = len(self.gone) - len(absent) < MIN_LEFT
            self._reallocations[key] = (
                None
                if few
                else self._hanging.without(
                    absent,
                    margin=self.spec.margin,
                    clearance_m=self.spec.clearance_m,
                    hanging=hanging,
                    hovering=stays,
                )
            )
        return self._reallocations[key]

    def _is_clear(self, way: FlightPlan, drone: int, place_enu_m: Array) -> bool:
        """Whether the others keep clear of the space above and below a place.

        On the way to their new places they may be as near as they are already.
        """
        radii = np.array([tip_radius_m(d) for d in self._hanging.system.drones])
        others = np.arange(len(radii)) != drone
        level = way.drone_position_enu_m[:, others, :2] - place_enu_m[:2]
        tips_m = (np.linalg.norm(level, axis=2) - radii[others] - radii[drone]).min(axis=1)
        clear_m = 0.5 * self.spec.clearance_m
        allowed_m = np.where(way.stage == 0, np.clip(tips_m[0], 0.0, clear_m), clear_m)
        return bool((tips_m >= allowed_m).all())
