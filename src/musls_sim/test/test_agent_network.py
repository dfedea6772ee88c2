"""The network between agents: links that come and go, what is recorded, and the same by a seed."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from test_agents import trio

import musls
from musls_analysis.recordings.bag import read_bag
from musls_bringup.flight.fly import FlyOptions, fly
from musls_control.agents.agent import EVERYBODY
from musls_control.agents.network import Network, NetworkSpec
from musls_description.config.errors import ConfigError


def test_nearest_hears_those_that_are_nearest_now():
    """Drones in a row, a metre apart; then the first one flies to the other end."""
    network = Network(NetworkSpec(links="nearest", neighbours=1), 4, 1, seed=0)
    places = np.outer(np.arange(4.0), [1.0, 0.0, 0.0]) + [
        [0.1, 0, 0],
        [0, 0, 0],
        [0, 0, 0],
        [0, 0, 0],
    ]

    def heard(time_s):
        network.clear()
        for source in range(1, 5):
            network.send(time_s, source, [(EVERYBODY, np.zeros(1))], places)
        network.arrive(time_s)
        return {to: set(network.heard_by(to, time_s)) for to in range(1, 5)}

    assert heard(1.0) == {1: {2}, 2: {1}, 3: {2, 4}, 4: {3}}
    places[0, 0] = 3.9
    assert heard(2.0) == {1: {4}, 2: {3}, 3: {2, 4}, 4: {1}}


ALL_LINKS = {(i, j) for i in (1, 2, 3) for j in (1, 2, 3) if i != j}


@pytest.mark.parametrize(
    ("event", "silent"),
    [
        ({"kind": "network_outage"}, ALL_LINKS),
        ({"kind": "network_outage", "drones": [3]}, {(1, 3), (3, 1), (2, 3), (3, 2)}),
        ({"kind": "partition", "groups": [[1, 2]]}, {(1, 3), (3, 1), (2, 3), (3, 2)}),
        ({"kind": "partition", "groups": [[1], [2], [3]]}, ALL_LINKS),
    ],
)
def test_an_event_cuts_links_for_its_time(event, silent):
    """From 1 s to 1.5 s all messages of these links are lost, and no others."""
    session = musls.Session(trio("Talks"))
    session.add_event(musls_event(event | {"when": {"time_s": 1.0}, "duration_s": 0.5}))
    session.advance(500)
    for pair, link in session.flying.network.links.items():
        sent_s = link.messages[np.isnan(link.messages[:, 1]), 0]
        expected_s = np.arange(1.0, 1.5, 0.004) if pair in silent else np.empty(0)
        np.testing.assert_allclose(sent_s, expected_s, atol=1e-9)
    kinds = [(round(e.time_s, 3), e.kind) for e in session.events.happened]
    assert kinds == [(1.0, event["kind"]), (1.5, event["kind"])]


def musls_event(fields):
    """An event of a scenario by its fields."""
    return musls.load_scenario("hold", {"events": [fields]}).events[0]


@pytest.mark.parametrize(
    ("event", "changes", "text"),
    [
        ({"kind": "network_outage"}, {}, "network_outage needs a network between the drones"),
        ({"kind": "network_outage", "drones": [4]}, None, "drone 4, but there are 3"),
        ({"kind": "partition", "groups": [[1, 2], [2]]}, None, "drone 2 is in it twice"),
        ({"kind": "partition", "groups": []}, None, "groups"),
    ],
)
def test_cuts_that_cannot_be_are_refused(event, changes, text):
    changes = {"controller": {"kind": "agents", "agent": "test_agents:Talks"}} | (changes or {})
    if "needs" in text:
        del changes["controller"]
    event = event | {"when": {"time_s": 1.0}, "duration_s": 1.0}
    with pytest.raises(ConfigError, match=text):
        musls.Session(musls.load_scenario("hold", changes | {"start": "air", "events": [event]}))


NOISY = {
    "loss": 0.4,
    "burst": 3.0,
    "jitter_s": 0.05,
    "delay_s": 0.03,
    "rate_hz": 50.0,
}


def test_a_seed_gives_the_same_messages_and_another_one_others():
    def messages(seed):
        session = musls.Session(replace(trio("Talks", network=NOISY), seed=seed))
        session.advance(250)
        return {pair: link.messages.tolist() for pair, link in session.flying.network.links.items()}

    def same(one, other):
        return all(np.array_equal(one[p], other[p], equal_nan=True) for p in one)

    first = messages(3)
    assert same(first, messages(3))
    assert not same(first, messages(4))
    assert not np.array_equal(first[1, 2], first[2, 1], equal_nan=True)


def test_messages_are_recorded_and_shown(tmp_path):
    scenario = trio("Talks", network=NOISY, seconds=4.0)
    summary = fly(scenario, tmp_path / "run", FlyOptions())
    with (tmp_path / "run" / "messages.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert (
        json.loads((tmp_path / "run" / "summary.json").read_text())["network"] == summary["network"]
    )
    recording = read_bag(tmp_path / "run" / "bag")
    for link in summary["network"]:
        own = [r for r in rows if (r["from"], r["to"]) == (str(link["from"]), str(link["to"]))]
        assert len(own) == link["sent"]
        assert sum(not r["arrived_s"] for r in own) == link["lost"]
        heard = recording.signal(f"drone_{link['to']}", "heard")
        column = link["from"] - 1 - (link["from"] > link["to"])
        ages_s = heard.age_s[:, column]
        came = np.array(
            [(float(r["arrived_s"]), float(r["sent_s"])) for r in own if r["arrived_s"]]
        )
        for time_s, age_s in zip(heard.time_s[50:], ages_s[50:], strict=True):
            newest_s = came[came[:, 0] <= time_s - 0.004 + 1e-6, 1].max()
            assert age_s == pytest.approx(time_s - 0.004 - newest_s, abs=0.0041)
        assert np.nanmean(ages_s) == pytest.approx(link["age_mean_s"], rel=0.1)
        assert np.nanmax(ages_s) <= link["age_max_s"] + 0.004
    page = (tmp_path / "run" / "report.html").read_text()
    assert "mean age of news" in page and "drone 1 to 2" in page


def test_flights_without_agents_record_no_network(tmp_path):
    summary = fly(
        musls.load_scenario("hold", {"start": "air"}), tmp_path / "run", FlyOptions(report=False)
    )
    assert summary["network"] == []
    assert not (tmp_path / "run" / "messages.csv").exists()
    assert "heard" not in read_bag(tmp_path / "run" / "bag").signals.get("drone_1", {})
