"""The network between agents: links that carry few messages, late, and lose some.

Each link has a generator of its own, so that what happens on one does not change another. Where a
link is not free, the newest message waits for it, in the place of an older one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from itertools import count
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from musls_control.agents.agent import EVERYBODY, Message
from musls_description.config.errors import ConfigError
from musls_description.config.schema import NonNegative, Positive, spec
from musls_description.numerics.arrays import Array

HEADER_BYTES = 40
"""Bytes of a message beside its numbers of 8 bytes, as of UDP and RTPS without options."""

ROUNDING_S = 1e-9

Pair = tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]]


@spec
class NetworkSpec:
    """Network between the agents.

    Attributes:
        links: Who hears whom: "all", "ring" (neighbours by number), "star" (the leader and each
            other), "none", or pairs [from, to].
        rate_hz: Most messages a second on a link; None for one each control period.
        delay_s: Delay of a message.
        jitter_s: Largest further delay, drawn evenly; messages may overtake each other.
        loss: Share of the messages that are lost.
        burst: Mean number of messages that are lost in a row (Gilbert-Elliott); 1 for
            independent losses.
        range_m: Distance of two drones beyond which nothing arrives; None for any.
        bytes_s: Bytes a second on a link, with 40 for each message's header; None for any.
    """

    links: Literal["all", "ring", "star", "none"] | tuple[Pair, ...] = "all"
    rate_hz: Positive | None = None
    delay_s: NonNegative = 0.0
    jitter_s: NonNegative = 0.0
    loss: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    burst: Annotated[float, Field(ge=1.0, le=1e6)] = 1.0
    range_m: Positive | None = None
    bytes_s: Positive | None = None

    def pairs(self, n_drones: int, leader: int) -> list[tuple[int, int]]:
        """Links as pairs (from, to) of drones' numbers, from 1."""
        numbers = range(1, n_drones + 1)
        every = [(i, j) for i in numbers for j in numbers if i != j]
        if self.links == "all":
            return every
        if self.links == "ring":
            return [(i, j) for i, j in every if (i - j) % n_drones in (1, n_drones - 1)]
        if self.links == "star":
            return [pair for pair in every if leader in pair]
        if self.links == "none":
            return []
        assert not isinstance(self.links, str)
        for pair in self.links:
            if pair not in every:
                raise ConfigError(
                    f"controller.network.links: {list(pair)} is no link between two of "
                    f"{n_drones} drones"
                )
        return list(dict.fromkeys(self.links))


class _Link:
    """One direction between two drones."""

    def __init__(self, spec: NetworkSpec, seed: tuple[int, ...]) -> None:
        self._spec, self._draw = spec, np.random.default_rng(seed)
        self._bad = False
        self.free_at_s = 0.0
        self.sent = self.lost = self.arrived = 0

    def loses(self) -> bool:
        """Whether a message is lost; two states with the mean and the runs that were asked for."""
        loss, burst = self._spec.loss, self._spec.burst
        if burst == 1.0 or loss == 1.0:
            return bool(self._draw.random() < loss)
        ends = 1.0 / burst
        begins = min(ends * loss / (1.0 - loss), 1.0)
        self._bad = bool(self._draw.random() < (1.0 - ends if self._bad else begins))
        return self._bad

    def late_s(self) -> float:
        """Delay of a message."""
        return self._spec.delay_s + self._spec.jitter_s * float(self._draw.random())


class Network:
    """Carries messages between the drones of one flight.

    Attributes:
        links: Links by (from, to), with what they have sent, lost and brought.
    """

    def __init__(self, spec: NetworkSpec, n_drones: int, leader: int, seed: int) -> None:
        """`seed`: of the flight."""
        self._spec, self._order = spec, count()
        self.links = {pair: _Link(spec, (seed, 69, *pair)) for pair in spec.pairs(n_drones, leader)}
        self._waiting: dict[tuple[int, int], tuple[float, Array]] = {}
        self._under_way: list[tuple[float, int, tuple[int, int], float, Array]] = []
        self._newest: dict[tuple[int, int], tuple[float, Array]] = {}

    def send(
        self,
        time_s: float,
        source: int,
        messages: Iterable[tuple[int, Array]],
        places_enu_m: Array,
    ) -> None:
        """Send messages of a drone over its links, as far as they are free.

        `places_enu_m`: of the drones, (n, 3).
        """
        for to, numbers in messages:
            for pair in self.links:
                if pair[0] == source and to in (EVERYBODY, pair[1]):
                    self._waiting[pair] = time_s, numbers
        for pair in [pair for pair in self._waiting if pair[0] == source]:
            if time_s >= self.links[pair].free_at_s - ROUNDING_S:
                self._transmit(time_s, pair, *self._waiting.pop(pair), places_enu_m)

    def _transmit(
        self,
        time_s: float,
        pair: tuple[int, int],
        sent_s: float,
        numbers: Array,
        places_enu_m: Array,
    ) -> None:
        """Put a message on a link."""
        spec, link = self._spec, self.links[pair]
        takes_s = 0.0
        if spec.bytes_s is not None:
            takes_s = (HEADER_BYTES + 8 * len(numbers)) / spec.bytes_s
        apart_s = max(takes_s, 0.0 if spec.rate_hz is None else 1.0 / spec.rate_hz)
        link.free_at_s = time_s + apart_s
        link.sent += 1
        late_s, lost = takes_s + link.late_s(), link.loses()
        if spec.range_m is not None:
            one, other = (places_enu_m[number - 1] for number in pair)
            lost |= bool(np.linalg.norm(one - other) > spec.range_m)
        if lost:
            link.lost += 1
        else:
            entry = time_s + late_s, next(self._order), pair, sent_s, numbers
            heapq.heappush(self._under_way, entry)

    def arrive(self, time_s: float) -> None:
        """Let arrive what is due."""
        while self._under_way and self._under_way[0][0] <= time_s + ROUNDING_S:
            _, _, pair, sent_s, numbers = heapq.heappop(self._under_way)
            self.links[pair].arrived += 1
            if pair not in self._newest or self._newest[pair][0] <= sent_s:
                self._newest[pair] = sent_s, numbers

    def heard_by(self, number: int, time_s: float) -> dict[int, Message]:
        """Newest message from each drone that has reached this one."""
        return {
            source: Message(numbers, time_s - sent_s)
            for (source, to), (sent_s, numbers) in self._newest.items()
            if to == number
        }

    def numbers(self) -> dict[str, float]:
        """Sent, lost and arrived messages of all links."""
        links = self.links.values()
        return {
            "messages_sent": float(sum(link.sent for link in links)),
            "messages_lost": float(sum(link.lost for link in links)),
            "messages_arrived": float(sum(link.arrived for link in links)),
        }
