"""Drones that fall silent: who counts as lost, what the others do, and what the silent one does."""

import numpy as np
import pytest
from test_agents import Talks

import musls
from musls_bringup.catalogue.scenarios import load_scenario
from musls_control.agents.silence import ages_of_lost, cut_off_drones, silence_of

NAN = np.nan


def ages(groups, n, dead=()):
    """Ages of a network that has fallen apart for 2 s; of drones that never talked none."""
    table = np.full((n, n), 2.0)
    for group in groups:
        table[np.ix_(group, group)] = 0.01
    np.fill_diagonal(table, NAN)
    table[:, list(dead)] = NAN
    return table


@pytest.mark.parametrize(
    ("groups", "n", "alone", "given_up"),
    [
        ([range(6)], 6, [], []),
        ([[0, 1, 2, 3, 5], [4]], 6, [4], [4]),
        ([[0, 1, 2, 3], [4, 5]], 6, [4, 5], [4, 5]),
        ([[0, 1, 2], [3, 4, 5]], 6, [0, 1, 2, 3, 4, 5], []),  # no group may carry the load alone
        ([[0, 1], [2]], 3, [2], [2]),
        ([[0], [1]], 2, [0, 1], []),
        ([[k] for k in range(4)], 4, [0, 1, 2, 3], []),
    ],
)
def test_a_minority_is_cut_off_and_lost_to_the_others(groups, n, alone, given_up):
    table = ages(groups, n)
    assert np.flatnonzero(cut_off_drones(table, 0.5)).tolist() == alone
    assert np.flatnonzero(np.isfinite(ages_of_lost(table, 0.5))).tolist() == given_up
    assert not cut_off_drones(table, 3.0).any() and not silence_of(table, 3.0).any()


def test_who_never_talked_is_not_lost():
    """Not heard at all is no news, such as links that there are not."""
    table = ages([[0, 1, 2, 3]], 4, dead=[3])
    assert not cut_off_drones(table, 0.5).any() and not np.isfinite(ages_of_lost(table, 0.5)).any()
    assert not cut_off_drones(np.full((3, 3), NAN), 0.5).any()


class Hovers(Talks):
    """Holds its place; notes who has fallen silent."""

    def decide(self, now):
        self.gone = now.silent
        return super().decide(now)


def quad(event, seconds, agent="test_agent_silence:Hovers", **keys):
    """Four drones in the air, of which one falls silent 2 s after the begin."""
    changes = {
        "controller": {"kind": "agents", "agent": agent, **keys},
        "cable_model": "massless",
        "start": "air",
        "events": [event | {"when": {"time_s": 2.0}}],
    }
    session = musls.Session(load_scenario("quad_survives", changes))
    session.advance(round(seconds / 0.004))
    return session


def test_a_drone_that_is_not_heard_is_given_up_by_the_table_of_answers():
    """Its radio alone has failed: it holds, the others see it silent, its hook opens."""
    session = quad({"kind": "network_outage", "drones": [2]}, 2.8)
    happened = {event.kind: event for event in session.events.happened}
    assert happened["cut_off"].what.startswith("drone_2 hears nobody")
    assert happened["drone_given_up"].what == "drone_2: no message for 0.5 s"
    assert happened["drone_given_up"].time_s == pytest.approx(2.5, abs=0.02)
    assert happened["hook_opened"].time_s == pytest.approx(2.6, abs=0.02)
    assert "reallocated" in happened
    for number in (1, 3, 4):
        assert session.flying.agents[number - 1].gone == {2}
    held_m = session.plant.state.position_enu_m[2]
    assert np.abs(held_m - session.flying.agents[1].place).max() < 0.5  # the hook let it go


def test_without_a_contingency_nobody_is_lost():
    changes = {
        "controller": {"kind": "agents", "agent": "test_agent_silence:Hovers"},
        "cable_model": "massless",
        "start": "air",
        "events": [{"kind": "network_outage", "drones": [2], "when": {"time_s": 1.0}}],
    }
    session = musls.Session(load_scenario("hold", changes))
    session.advance(500)
    assert [event.kind for event in session.events.happened] == ["network_outage"]
    assert session.flying.agents[0].gone == frozenset()


@pytest.mark.slow
def test_where_nobody_hears_anybody_all_set_the_load_down_together():
    session = quad({"kind": "network_outage"}, 16.0)
    kinds = [event.kind for event in session.events.happened]
    assert kinds.count("cut_off") == 4 and "drone_given_up" not in kinds
    state = session.plant.state
    assert state.position_enu_m[0, 2] < 0.2
    assert np.abs(state.velocity_enu_m_s[0]).max() < 0.3
    assert not any(event.kind == "collision" and "drone_1 and drone" in event.what
                   for event in session.events.happened)  # fmt: skip


@pytest.mark.slow
def test_five_drones_close_the_formation_and_carry_on_without_the_sixth():
    """Motors and radio of one stop; the law of the others is that of five drones then."""
    network = {"rate_hz": 50.0, "delay_s": 0.02}
    keys = {"agent": "consensus", "knows": ["load", "reference"], "network": network}
    event = {"kind": "drone_lost", "when": {"time_s": 3.0}, "drone": 1}
    changes = {"cable_model": "massless", "start": "air", "events": [event]}
    controller = {"controller": {"kind": "agents", **keys}}
    session = musls.Session(load_scenario("hexa_survives", changes | controller))
    session.advance(round(9.0 / 0.004))
    away_m = []
    for _ in range(100):
        session.advance(2)
        wanted = session.guidance.reference_at(session.time_s)
        away_m.append(np.linalg.norm(session.plant.state.position_enu_m[0] - wanted.position_enu_m))
    assert max(away_m) < 0.6  # 0.3 m on its way there and back with all six
    left = session.plant.state.position_enu_m[2:]
    assert left[:, 2].min() > session.plant.state.position_enu_m[0, 2] + 1.5
    assert all(len(agent.law.shares) == 15 for agent in session.flying.agents[1:])
