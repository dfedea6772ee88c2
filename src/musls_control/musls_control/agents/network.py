"""The network between agents: links that carry few messages, late, and lose some.

Each link has a generator of its own, so that what happens on one does not change another. Where a
link is not free, the newest message waits for it, in the place of an older one.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterable
from itertools import count
from typing import Annotated, Any, Literal

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
            other), "nearest" (the `neighbours` that are nearest at that time), "none", or pairs
            [from, to].
        neighbours: Number of drones that each one hears with "nearest".
        rate_hz: Most messages a second on a link; None for one each control period.
        delay_s: Delay of a message.
        jitter_s: Largest further delay, drawn evenly; messages may overtake each other.
        loss: Share of the messages that are lost.
        burst: Mean number of messages that are lost in a row (Gilbert-Elliott); 1 for
            independent losses.
        range_m: Distance of two drones beyond which nothing arrives; None for any.
        bytes_s: Bytes a second on a link, with 40 for each message's header; None for any.
    """

    links: Literal["all", "ring", "star", "nearest", "none"] | tuple[Pair, ...] = "all"
    neighbours: Annotated[int, Field(ge=1)] = 2
    rate_hz: Positive | None = None
    delay_s: NonNegative = 0.0
    jitter_s: NonNegative = 0.0
    loss: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    burst: Annotated[float, Field(ge=1.0, le=1e6)] = 1.0
    range_m: Positive | None = None
    bytes_s: Positive | None = None

    def pairs(self, n_drones: int, leader: int) -> list[tuple[int, int]]:
        """Links that may be used, as pairs (from, to) of drones' numbers, from 1."""
        numbers = range(1, n_drones + 1)
        every = [(i, j) for i in numbers for j in numbers if i != j]
        if self.links in ("all", "nearest"):
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


class Link:
    """One direction between two drones.

    Attributes:
        free_at_s: Time from which it takes the next message.
        cuts: Number of reasons why nothing gets through now.
        log: Time when it was sent and time when it arrives of each message, NaN for a lost one, one
            after another.
    """

    def __init__(self, spec: NetworkSpec, seed: tuple[int, ...]) -> None:
        self._spec = spec
        self._draw = np.random.default_rng(seed)
        self._bad = False
        self.free_at_s = 0.0
        self.cuts = 0
        self.log = array("d")

    def loses(self) -> bool:
        """Whether a message is lost; two states with the mean and the runs that were asked for."""
        loss = self._spec.loss
        burst = self._spec.burst
        if burst == 1.0 or loss == 1.0:
            return bool(self._draw.random() < loss)
        ends = 1.0 / burst
        begins = min(ends * loss / (1.0 - loss), 1.0)
        self._bad = bool(self._draw.random() < (1.0 - ends if self._bad else begins))
        return self._bad

    def late_s(self) -> float:
        """Delay of a message."""
        return self._spec.delay_s + self._spec.jitter_s * float(self._draw.random())

    @property
    def messages(self) -> Array:
        """Times when messages were sent and when they arrive, NaN for lost ones, (k, 2) [s]."""
        return np.array(self.log).reshape(-1, 2)

    def counts(self, time_s: float) -> tuple[int, int, int]:
        """Messages sent, lost and arrived until a time."""
        arrives_s = self.messages[:, 1]
        n_lost = int(np.isnan(arrives_s).sum())
        return len(arrives_s), n_lost, int((arrives_s <= time_s + ROUNDING_S).sum())

    def ages(self, end_s: float) -> tuple[float, float] | None:
        """Mean and largest age of the news from the first arrival to a time [s]; None without."""
        messages = self.messages
        came = messages[messages[:, 1] <= end_s]
        if not len(came):
            return None
        came = came[np.argsort(came[:, 1], kind="stable")]
        newest_s = np.maximum.accumulate(came[:, 0])
        begins_s = came[:, 1]
        ends_s = np.append(begins_s[1:], end_s)
        young = begins_s - newest_s
        old = ends_s - newest_s
        spans_s = ends_s - begins_s
        total_s = float(spans_s.sum())
        mean_s = float((0.5 * (young + old) * spans_s).sum()) / total_s if total_s else young[-1]
        return float(mean_s), float(old.max())


class Network:
    """Carries messages between the drones of one flight.

    Attributes:
        links: Links by (from, to), with all messages that they were given.
        n_drones: Number of drones.
        silent: Why a drone counts as lost that nobody hears any more, by its name.
    """

    def __init__(self, spec: NetworkSpec, n_drones: int, leader: int, seed: int) -> None:
        """`seed`: of the flight."""
        self._spec = spec
        self._order = count()
        self.n_drones = n_drones
        self.links = {pair: Link(spec, (seed, 69, *pair)) for pair in spec.pairs(n_drones, leader)}
        self._time_s = 0.0
        self.silent = dict[str, str]()
        self.clear()

    def clear(self) -> None:
        """Forget what waits, what is under way and what has arrived."""
        self._waiting: dict[tuple[int, int], tuple[float, Array]] = {}
        self._under_way: list[tuple[float, int, tuple[int, int], float, Array]] = []
        self._newest: dict[tuple[int, int], tuple[float, Array]] = {}

    def cut(self, pairs: Iterable[tuple[int, int]], by: int = 1) -> None:
        """Let nothing through on some links, until they are cut by -1."""
        for pair in pairs:
            if pair in self.links:
                self.links[pair].cuts += by

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
            if time_s < self.links[pair].free_at_s - ROUNDING_S:
                continue
            if self._spec.links == "nearest" and not self._is_near(pair, places_enu_m):
                continue
            self._transmit(time_s, pair, *self._waiting.pop(pair), places_enu_m)

    def _is_near(self, pair: tuple[int, int], places_enu_m: Array) -> bool:
        """Whether a drone is one of those that are nearest to the one that hears it."""
        source, to = pair
        apart_m = np.linalg.norm(places_enu_m - places_enu_m[to - 1], axis=1)
        nearer = int((apart_m < apart_m[source - 1]).sum()) - 1  # it is nearest to itself
        return nearer < self._spec.neighbours

    def _transmit(
        self,
        time_s: float,
        pair: tuple[int, int],
        sent_s: float,
        numbers: Array,
        places_enu_m: Array,
    ) -> None:
        """Put a message on a link."""
        spec = self._spec
        link = self.links[pair]
        takes_s = 0.0
        if spec.bytes_s is not None:
            takes_s = (HEADER_BYTES + 8 * len(numbers)) / spec.bytes_s
        apart_s = max(takes_s, 0.0 if spec.rate_hz is None else 1.0 / spec.rate_hz)
        link.free_at_s = time_s + apart_s
        arrives_s = time_s + takes_s + link.late_s()
        is_lost = link.loses() or link.cuts > 0
        if spec.range_m is not None:
            one, other = (places_enu_m[number - 1] for number in pair)
            is_lost |= bool(np.linalg.norm(one - other) > spec.range_m)
        link.log.extend((sent_s, np.nan if is_lost else arrives_s))
        if not is_lost:
            heapq.heappush(self._under_way, (arrives_s, next(self._order), pair, sent_s, numbers))

    def arrive(self, time_s: float) -> None:
        """Let arrive what is due."""
        while self._under_way and self._under_way[0][0] <= time_s + ROUNDING_S:
            _, _, pair, sent_s, numbers = heapq.heappop(self._under_way)
            if pair not in self._newest or self._newest[pair][0] <= sent_s:
                self._newest[pair] = sent_s, numbers
        self._time_s = time_s

    def heard_by(self, number: int, time_s: float) -> dict[int, Message]:
        """Newest message from each drone that has reached this one."""
        return {
            source: Message(numbers, time_s - sent_s)
            for (source, to), (sent_s, numbers) in self._newest.items()
            if to == number
        }

    def ages_s(self, time_s: float) -> Array:
        """Age of the news that each drone (row) has of each one, (n, n); NaN for nothing."""
        ages = np.full((self.n_drones, self.n_drones), np.nan)
        for (source, to), (sent_s, _) in self._newest.items():
            ages[to - 1, source - 1] = time_s - sent_s
        return ages

    def numbers(self) -> dict[str, float]:
        """Sent, lost and arrived messages of all links."""
        counts = np.array([link.counts(self._time_s) for link in self.links.values()])
        n_sent, n_lost, n_arrived = counts.reshape(-1, 3).sum(axis=0).tolist()
        return {
            "messages_sent": float(n_sent),
            "messages_lost": float(n_lost),
            "messages_arrived": float(n_arrived),
        }

    def by_link(self, end_s: float) -> list[dict[str, Any]]:
        """Messages of each link and the age of the news that it brought, until a time."""
        rows = []
        for (source, to), link in self.links.items():
            n_sent, n_lost, n_arrived = link.counts(end_s)
            mean_s, largest_s = link.ages(end_s) or (None, None)
            row = {"from": source, "to": to, "sent": n_sent, "lost": n_lost, "arrived": n_arrived}
            rows.append(row | {"age_mean_s": mean_s, "age_max_s": largest_s})
        return rows
