"""Drones that decide for themselves: closed forms, what they know, and the network between them."""

import re
import time
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

import musls
from musls_bringup.catalogue.scenarios import load_scenario
from musls_control.agents.agent import EVERYBODY, Agent
from musls_control.agents.network import HEADER_BYTES, Network, NetworkSpec
from musls_description.config.errors import ConfigError, MuslsError
from musls_description.config.strict_yaml import parse_yaml

G = 9.80665
MASS_KG, HALF_M, LENGTH_M, RADIUS_M = 1.2, 0.8, 1.5, 1.0


HOVER = {"kind": "hold", "position_m": [0, 0, 2], "duration_s": 60.0}


def beam(*, model="massless", stages=(HOVER,), **parameters):
    """Two drones on a beam that hangs level, hooks at both sides of its middle."""
    mass_kg = 1e-6 if model == "massless" else 0.02
    return load_scenario({
        "name": "beam",
        "system": {
            "name": "beam",
            "load": {
                "mass_kg": MASS_KG,
                "shape": {"kind": "box", "size_m": [1.7, 0.1, 0.06]},
                "cable_attachments_m": [[HALF_M, 0, 0], [-HALF_M, 0, 0]],
            },
            "drones": {"from": "x500"},
            "cables": {"from": "rope", "length_m": LENGTH_M, "links": 5, "mass_kg": mass_kg},
        },
        "cable_model": model,
        "start": "air",
        "estimation": {"kind": "truth"},
        "controller": {"kind": "agents", "agent": "admittance", "parameters": parameters},
        "formation": {"radius_m": RADIUS_M},
        "mission": {"stages": list(stages)},
    })  # fmt: skip


def tilt_deg(state):
    """Angle by which the beam's second end lies lower than its first."""
    w, x, y, z = state.orientation_wxyz[0]
    return float(np.degrees(np.arcsin(2.0 * (w * y - x * z))))


def tilt_after(scenario, seconds):
    """Tilt of the beam at a time."""
    session = musls.Session(scenario)
    session.advance(round(seconds / 0.004))
    return tilt_deg(session.plant.state)


@pytest.mark.parametrize(
    ("model", "internal_n", "wrong_kg"),
    [
        ("massless", 4.0, 0.2),
        pytest.param("massless", 4.0, -0.3, marks=pytest.mark.slow),
        pytest.param("rigid_links", 4.0, 0.2, marks=pytest.mark.slow),
        pytest.param("elastic", 4.0, 0.2, marks=pytest.mark.slow),
    ],
)
def test_a_mass_that_is_wrong_tilts_the_beam_as_the_closed_form_says(model, internal_n, wrong_kg):
    scenario = beam(model=model, internal_n=internal_n, load_mass_kg=MASS_KG + wrong_kg)
    closed_deg = np.degrees(np.arctan(wrong_kg * G / (2.0 * internal_n)))
    found_deg = tilt_after(scenario, 45.0)
    assert found_deg == pytest.approx(closed_deg, rel=0.01 if model == "massless" else 0.02)


@pytest.mark.slow
def test_an_internal_force_that_presses_makes_the_beam_unstable():
    """A disturbance of the start grows with it and dies without."""
    pulls, presses = (
        [tilt_after(beam(internal_n=t, load_mass_kg=MASS_KG + 0.01), s) for s in (10.0, 35.0)]
        for t in (2.0, -1.5)
    )
    assert abs(pulls[1] - pulls[0]) < 1.0
    assert abs(presses[1]) > 3.0 * abs(presses[0]) > 0.0


def test_followers_go_where_the_leader_pulls_and_come_to_rest():
    """Nobody tells them: the leader alone has the set-point, which moves by 3 m.

    Meanwhile the internal force spreads the cables: each leans by atan(2 t / (m g)) at the end.
    """
    points = [[0.0, 0.0, 2.0], [3.0, 0.0, 2.0]]
    go = {"kind": "min_derivative", "speed_m_s": 0.5, "acceleration_m_s2": 0.5, "points": points}
    stay = {"kind": "hold", "position_m": points[1], "duration_s": 60.0}
    session = musls.Session(beam(stages=(go, stay), internal_n=4.0))
    before = session.plant.state.position_enu_m.copy()
    session.advance(round(60.0 / 0.004))
    moved = session.plant.state.position_enu_m - before
    lean = np.arctan(2.0 * 4.0 / (MASS_KG * G))
    wider_m = LENGTH_M * np.sin(lean) - (RADIUS_M - HALF_M)
    assert moved[:, 0] == pytest.approx([3.0 - wider_m, 3.0, 3.0 - 2.0 * wider_m], abs=0.03)
    assert np.abs(session.plant.state.velocity_enu_m_s).max() < 0.03


@pytest.mark.parametrize("links", ["all", "ring"])
def test_drones_that_keep_their_distances_fly_on_with_their_velocity(links):
    """Shaken at the start by a push on the load, of which they know nothing."""
    velocity = (0.3, -0.2)
    controller = {
        "kind": "agents",
        "agent": "distances",
        "parameters": {"velocity_m_s": list(velocity)},
        "network": {"links": links, "rate_hz": 50.0},
    }
    changes = {
        "controller": controller,
        "start": "air",
        "cable_model": "massless",
        "mission.stages.0.duration_s": 60.0,
        "events": [
            {"kind": "poke", "when": {"time_s": 1.0}, "force_enu_n": [0, 3, 0], "duration_s": 1.0}
        ],
    }
    session = musls.Session(load_scenario("hold", changes))
    wanted = session.scenario.formation.offsets_m(3)
    session.advance(round(40.0 / 0.004))
    state = session.plant.state
    for i in range(3):
        j = (i + 1) % 3
        apart_m = np.linalg.norm((state.position_enu_m[1 + i] - state.position_enu_m[1 + j])[:2])
        assert apart_m == pytest.approx(np.linalg.norm((wanted[i] - wanted[j])[:2]), rel=0.02)
    assert state.velocity_enu_m_s[1:, :2] == pytest.approx(np.tile(velocity, (3, 1)), abs=0.02)


class Talks(Agent):
    """Carries its share at its place, and says where it is; notes what it hears."""

    level = "drone_setpoints"

    def start(self, now):
        self.place, self.ages = now.own.position_enu_m, []

    def decide(self, now):
        self.send(EVERYBODY, now.own.position_enu_m)
        self.ages.append({number: message.age_s for number, message in now.heard.items()})
        return [*self.place, 0.0]


class Reads(Talks):
    """Reads what it is told to by its parameter."""

    def __init__(self, what="own"):
        self._what = what

    def decide(self, now):
        getattr(now, self._what)
        return super().decide(now)


def trio(agent, seconds=12.0, **keys):
    """The trio in a hover, flown by agents of this file."""
    controller = {"kind": "agents", "agent": f"test_agents:{agent}", **keys}
    changes = {"controller": controller, "start": "air", "cable_model": "massless"}
    return load_scenario("hold", changes | {"mission.stages.0.duration_s": seconds})


def test_news_are_as_old_as_the_network_makes_them():
    session = musls.Session(trio("Talks", network={"delay_s": 0.05, "rate_hz": 20.0}))
    session.advance(500)
    agents = session.flying.agents
    ages = np.array([heard[2] for heard in agents[0].ages[50:]])
    assert ages.min() == pytest.approx(0.052, abs=0.001)
    assert ages.max() == pytest.approx(0.052 + 0.05, abs=0.005)
    assert set(agents[0].ages[-1]) == {2, 3}
    assert session.flying.numbers()["messages_lost"] == 0.0


@pytest.mark.parametrize(
    ("what", "keys", "key"),
    [
        ("load", {}, "load"),
        ("reference", {"leader": 2}, "reference"),
        ("load", {"knows": ["load"]}, ""),
        ("reference", {"knows": ["reference"]}, ""),
    ],
)
def test_an_agent_knows_what_its_drone_knows(what, keys, key):
    session = musls.Session(trio("Reads", parameters={"what": what}, **keys))
    if not key:
        session.advance(10)
        return
    with pytest.raises(MuslsError, match=rf"does not know.*knows: \[{key}\]"):
        session.advance(10)


def test_what_an_agent_gets_is_its_own_and_cannot_be_written():
    session = musls.Session(trio("Talks"))
    session.advance(3)
    for agent in session.flying.agents:
        with pytest.raises(ValueError, match="read-only"):
            agent.place[0] = 1.0


@pytest.mark.parametrize("burst", [1.0, 5.0])
def test_a_link_loses_its_share_in_runs_of_the_given_length(burst):
    network = Network(NetworkSpec(loss=0.3, burst=burst), 2, 1, seed=4)
    for k in range(20_000):
        network.send(0.004 * k, 1, [(EVERYBODY, np.zeros(1))], np.zeros((2, 3)))
    lost = np.isnan(network.links[1, 2].messages[:, 1]).astype(int)
    edges = np.flatnonzero(np.diff([0, *lost, 0]))
    runs = edges[1::2] - edges[::2]
    assert np.mean(lost) == pytest.approx(0.3, abs=0.03)
    assert runs.mean() == pytest.approx(burst if burst > 1.0 else 1.0 / 0.7, rel=0.1)


def test_a_link_carries_so_many_bytes_a_second_and_so_far():
    network = Network(NetworkSpec(bytes_s=1000.0, range_m=5.0), 2, 1, seed=0)
    near, far = np.zeros((2, 3)), np.diag([9.0, 0.0, 0.0])[:2]
    for k in range(250):
        network.send(0.004 * k, 1, [(2, np.zeros(5))], near)
    link = network.links[1, 2]
    sent, lost, arrived = link.counts(2.0)
    assert sent == arrived == pytest.approx(1000.0 / (HEADER_BYTES + 40), abs=1)
    network.send(4.0, 1, [(2, np.zeros(5))], far)
    assert (lost, link.counts(5.0)[1]) == (0, 1)


def test_links_are_those_that_were_asked_for():
    pairs = {
        kind: len(NetworkSpec(links=kind).pairs(4, 1)) for kind in ("all", "ring", "star", "none")
    }
    assert pairs == {"all": 12, "ring": 8, "star": 6, "none": 0}
    assert NetworkSpec(links=((1, 3),)).pairs(4, 1) == [(1, 3)]
    with pytest.raises(ConfigError, match=r"links: \[1, 5\] is no link between two of 4 drones"):
        NetworkSpec(links=((1, 5),)).pairs(4, 1)


def test_flights_with_a_network_that_loses_repeat_by_their_seed():
    def ages(seed):
        network = {"loss": 0.5, "jitter_s": 0.1}
        scenario = load_scenario(
            "hold",
            {
                "controller": {"kind": "agents", "agent": "test_agents:Talks", "network": network},
                "start": "air",
                "cable_model": "massless",
                "seed": seed,
            },
        )
        session = musls.Session(scenario)
        session.advance(200)
        return session.flying.agents[0].ages

    assert ages(3) == ages(3) != ages(4)


class Wrong(Talks):
    """Makes a mistake."""

    def __init__(self, mistake="none"):
        self._mistake = mistake

    def decide(self, now):
        row = super().decide(now)
        if self._mistake == "raises":
            raise ZeroDivisionError("a bug")
        if self._mistake == "thread":
            Thread(target=time.sleep, args=(0.5,), daemon=True).start()
        if self._mistake == "slow":
            end_s = time.thread_time() + 0.005
            while time.thread_time() < end_s:
                pass
        wrong = {"short": row[:2], "infinite": [np.inf] * 4, "nothing": None, "text": "up"}
        wrong |= {"nan": [*row[:3], np.nan]}
        return wrong.get(self._mistake, row)


@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        ("short", r"returned an array of shape \(2,\), must have 4 numbers"),
        ("infinite", "returned inf in column 0; must be finite"),
        ("nan", "returned nan in column 3; must be finite"),
        ("nothing", "float.*NoneType|shape"),
        ("text", "could not convert string to float"),
        ("raises", "a bug"),
        ("thread", "it has started a thread"),
    ],
)
def test_a_mistake_of_an_agent_is_one_line_that_names_it(mistake, text):
    session = musls.Session(trio("Wrong", parameters={"mistake": mistake}))
    with pytest.raises(
        MuslsError, match=rf"Wrong\.decide .*of drone_1 at 0\.000 s.*({text})"
    ) as told:
        session.advance(10)
    assert "\n" not in str(told.value)


def test_an_agent_that_is_too_slow_for_its_drone_is_an_event():
    session = musls.Session(trio("Wrong", parameters={"mistake": "slow"}))
    session.advance(210)
    slow = [event.what for event in session.events.happened if event.kind == "slow_agent"]
    assert [re.sub(r"\d\.\d ms to", "x ms to", what) for what in slow] == [
        f"Wrong of drone_{k} takes x ms to decide, a period has 4 ms" for k in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ({"agent": "test_agents:Nobody"}, "Nobody"),
        ({"agent": "test_agents:NetworkSpec"}, r"must inherit musls\.Agent"),
        ({"agent": ["admittance", "admittance"]}, "2 entries for 3 drones"),
        ({"agent": "admitance"}, "admittance"),
        ({"agent": "admittance", "leader": 7}, "there are 3 drones"),
        (
            {"agent": ["admittance", "admittance", "test_agents:Talks"]},
            "must be the same for all",
        ),
        ({"agent": "admittance", "network": {"loss": 2.0}}, "network.loss"),
    ],
)
def test_agents_that_cannot_fly_are_refused_in_one_line(keys, text):
    with pytest.raises(ConfigError, match=text):
        musls.Session(load_scenario("hold", {"controller": {"kind": "agents", **keys}}))


PAGE = Path(__file__).parents[3] / "docs" / "agents.md"


@pytest.mark.skipif(not PAGE.is_file(), reason="docs/ come with a checkout")
def test_the_agent_and_the_keys_of_the_page_fly_as_they_stand(tmp_path, monkeypatch):
    code, keys = (
        re.search(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)[1]
        for language in ("py", "yaml")
    )
    monkeypatch.chdir(tmp_path)
    Path("spring.py").write_text(code, encoding="utf-8")
    controller = parse_yaml(keys, "docs/agents.md")["controller"]
    scenario = load_scenario(
        "hold", {"controller": controller, "start": "air", "cable_model": "massless"}
    )
    session = musls.Session(scenario)
    before = session.plant.state.position_enu_m.copy()
    session.advance(1250)
    assert np.abs(session.plant.state.position_enu_m - before).max() < 0.2
    numbers = session.flying.numbers()
    assert 0.1 < numbers["messages_lost"] / numbers["messages_sent"] < 0.35
