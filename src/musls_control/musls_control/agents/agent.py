"""An agent: the part of a controller that sits on one drone and knows what that drone knows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from musls_control.controllers import ControlLevel, ControlSetup
from musls_control.reference import LoadReference
from musls_description.config.errors import ConfigError
from musls_description.config.registry import Registry
from musls_description.numerics.arrays import Array
from musls_description.system.drone import Drone
from musls_description.system.slung_system import Cable

EVERYBODY = 0
"""Number that addresses all drones, see `Agent.send`."""


class NotKnownError(ConfigError):
    """An agent asks for something that its drone does not know."""


class Body:
    """Motion of one body at one time, not to be written.

    Attributes:
        data: All numbers in the order of the fields, (16,).
        position_enu_m: Centre of mass, world, (3,).
        velocity_enu_m_s: World, (3,).
        orientation_wxyz: Unit quaternion, body FLU to world ENU, (4,).
        omega_body_rad_s: Body frame FLU, (3,).
        acceleration_enu_m_s2: Zero at rest and in hover, (3,).
    """

    def __init__(self, row: Array) -> None:
        """`row`: of `BodyMotion.data`, (16,); it is copied."""
        data = row.copy()
        data.flags.writeable = False
        self.data: Array = data
        self.position_enu_m = data[0:3]
        self.velocity_enu_m_s = data[3:6]
        self.orientation_wxyz = data[6:10]
        self.omega_body_rad_s = data[10:13]
        self.acceleration_enu_m_s2 = data[13:16]


@dataclass(frozen=True)
class Message:
    """Newest message of another drone that has arrived.

    Attributes:
        numbers: Content, (k,).
        age_s: Time since it was sent.
    """

    numbers: Array
    age_s: float


class Now:
    """Knowledge of one drone at one time.

    Attributes:
        time_s: Time of the flight.
        own: Motion of the drone by its own estimate.
        tension_n: Tension of its cable at the drone; NaN where no estimator tells it.
        pull_enu_n: Force of the cable on the drone that follows from its acceleration, its attitude
            and the thrust that it was told to give, world, (3,); zero before its first command
            and at levels without a thrust.
        heard: Newest message of each drone from which one has arrived, by its number.
        silent: Drones that are in `heard` and taken for lost: nothing came from them for
            `contingency.silent_s`; nobody without a contingency.
    """

    def __init__(
        self,
        time_s: float,
        own: Body,
        tension_n: float,
        pull_enu_n: Array,
        heard: Mapping[int, Message],
        load: Callable[[], Body],
        reference: Callable[[], LoadReference],
        silent: frozenset[int] = frozenset(),
    ) -> None:
        """`load` and `reference` raise `NotKnownError` where the drone does not know them."""
        self.time_s = time_s
        self.own = own
        self.tension_n = tension_n
        self.pull_enu_n = pull_enu_n
        self.heard = MappingProxyType(dict(heard))
        self._load = load
        self._reference = reference
        self.silent = silent

    @property
    def load(self) -> Body:
        """Motion of the load; raises `NotKnownError` unless `knows` has "load"."""
        return self._load()

    @property
    def reference(self) -> LoadReference:
        """Set-point of the load; raises `NotKnownError` for all but the leader.

        With "reference" in `knows` every drone has it.
        """
        return self._reference()


@dataclass(frozen=True)
class Post:
    """Place of an agent among the others, known before the flight.

    Attributes:
        number: Number of its drone, from 1.
        n_drones: Number of drones.
        leader: Number of the leader.
        drone: Description of its drone.
        cable: Description of its cable.
        place_m: Place of its drone in the formation, from the load, load at yaw zero, (3,).
        yaw_rad: Heading of its drone there, which looks at the load, load at yaw zero.
        load_mass_kg: Mass of the load, as everybody believes it to be.
        gravity_m_s2: Gravity.
        period_s: Time between two calls of `Agent.decide`.
        knows: Further knowledge of every drone: "load", "reference".
        setup: Description of the whole system, which all drones have.
    """

    number: int
    n_drones: int
    leader: int
    drone: Drone
    cable: Cable
    place_m: Array
    yaw_rad: float
    load_mass_kg: float
    gravity_m_s2: float
    period_s: float
    knows: tuple[str, ...]
    setup: ControlSetup

    @property
    def leads(self) -> bool:
        """Whether this agent is the leader."""
        return self.number == self.leader


class Agent(ABC):
    """Base of agents: each drone has an object of such a class, and they share nothing.

    Attributes:
        level: Level of its commands: "drone_setpoints", "forces", "autopilot_forces",
            "thrust_moment" or "thrust_rates", with a row of `ControlLevel`.
        post: Place among the others, from `prepare` on.
    """

    level: ClassVar[ControlLevel | str]
    post: Post

    def prepare(self, post: Post) -> None:
        """Take the place among the others; called once, before the flight.

        A class that overrides this method must first call `super().prepare(post)`.
        """
        self.post = post

    def start(self, now: Now) -> None:  # noqa: B027 (optional)
        """Begin to decide; called before the first `decide` and again after each pause."""

    def tell(self, now: Now) -> None:  # noqa: B027 (optional)
        """Send what has been measured; called before any drone decides.

        On a link without delay it arrives in time for `decide` of the same period.
        """

    @abstractmethod
    def decide(self, now: Now) -> Sequence[float] | Array:
        """Return the command of this drone for the coming control period, a row of the level."""

    def send(self, to: int, numbers: Sequence[float] | Array) -> None:
        """Send numbers to a drone, or to all others (`EVERYBODY`); links and rates are limited.

        What a link cannot take now, it takes at its next time in place of what waited there.
        """
        self.outbox.append((to, np.array(numbers, float).ravel()))

    @cached_property
    def outbox(self) -> list[tuple[int, Array]]:
        """Numbers that were sent since the network looked last, with their addressees."""
        return []


AGENTS: Registry[Any] = Registry(
    "agent",
    "musls.agents",
    {
        "admittance": "musls_control.agents.admittance:AdmittanceCarrier",
        "central": "musls_control.agents.central:CentralCarrier",
        "consensus": "musls_control.agents.consensus:ConsensusCarrier",
        "distances": "musls_control.agents.distances:DistanceKeeper",
        "policy": "musls_control.agents.policy:PolicyAgent",
    },
)
"""Shipped classes of agents by name."""
