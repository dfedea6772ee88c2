"""The agent `consensus`: the law of `payload`, computed by all from what the neighbours say."""

import numpy as np
import pytest

import musls
from musls_bringup.catalogue.scenarios import load_scenario
from musls_description.config.errors import ConfigError

PUSH = {"kind": "poke", "when": {"time_s": 2.5}, "force_enu_n": [1.5, 0.5, 0.0], "duration_s": 1.0}


def flown(controller, seconds, scenario="circle", **changes):
    """Positions of all bodies every 20 ms of a flight with a push, and the session."""
    changes = {"cable_model": "massless", "start": "air", "events": [PUSH]} | changes
    session = musls.Session(load_scenario(scenario, {"controller": controller, **changes}))
    places = []
    for _ in range(round(seconds / 0.02)):
        session.advance(5)
        places.append(session.plant.state.position_enu_m.copy())
    return np.array(places), session


def consensus(network=None, **parameters):
    """Controller of a scenario."""
    keys = {"kind": "agents", "agent": "consensus", "knows": ["load"], "parameters": parameters}
    return keys | {"network": network or {}}


PAYLOAD = {"kind": "payload", "disturbance_1_s": 1.0}
"""The law with an observer as slow as the drones agree."""


@pytest.mark.parametrize(
    ("output", "scenario", "links"),
    [
        ("autopilot", "circle", "all"),
        ("direct", "circle", "ring"),
        pytest.param("direct", "hexa", "all", marks=pytest.mark.slow),
    ],
)
def test_with_an_ideal_network_it_is_payload(output, scenario, links):
    """Into the circle, and through a push that the observer has to find."""
    central, _ = flown(PAYLOAD | {"output": output}, 5.0, scenario)
    ours, _ = flown(consensus({"links": links}, output=output), 5.0, scenario)
    assert np.abs(central[-1] - central[0]).max() > 0.1
    np.testing.assert_allclose(ours, central, rtol=0.0, atol=1e-9)


def test_a_centre_on_one_drone_is_payload_a_period_late():
    """Its commands arrive in the next period; then a network that is late makes it worse."""
    central, _ = flown(PAYLOAD, 5.0)
    away_m = []
    for network in ({"links": "star"}, {"links": "star", "delay_s": 0.06}):
        ours, _ = flown(consensus(network) | {"agent": "central"}, 5.0)
        away_m.append(float(np.linalg.norm(ours[:, 0] - central[:, 0], axis=1).max()))
    assert away_m[0] < 0.02 < away_m[1]


@pytest.mark.slow
def test_worse_networks_carry_the_load_less_well():
    """Old news of the set-point, which moves on, and of the others."""
    central, _ = flown(PAYLOAD, 8.0)
    away_m = []
    for network in (
        {"delay_s": 0.02},
        {"delay_s": 0.2},
        {"delay_s": 0.2, "loss": 0.5, "burst": 10},
    ):
        ours, _ = flown(consensus(network), 8.0)
        away_m.append(float(np.linalg.norm(ours[:, 0] - central[:, 0], axis=1).max()))
    assert 0.0 < away_m[0] < away_m[1] < away_m[2] < 0.2


def test_laws_agree_on_what_they_add_up_as_the_consensus_says():
    """Three drones that all hear each other: gaps vanish with the rate 3 / 2 k."""
    _, session = flown(consensus(consensus_1_s=0.8), 0.5, "hold", events=[])
    integrals = [agent.law.learned[1] for agent in session.flying.agents]
    gap = np.array([1e-3, -2e-3, 5e-4])
    integrals[0] += gap
    session.advance(1)  # nobody has heard of it yet: it tells what it has from now on
    before = integrals[0] - integrals[1]
    session.advance(250)
    after = integrals[0] - integrals[1]
    np.testing.assert_allclose(before, gap, rtol=0.01)
    np.testing.assert_allclose(after, before * np.exp(-1.5 * 0.8 * 1.0), rtol=0.01)


def test_without_news_the_followers_stay_where_they_are():
    """The leader alone knows where to go; the others keep the load in its place against it."""
    ours, _ = flown(consensus({"links": "none"}), 5.0, events=[])
    assert np.isfinite(ours).all()
    assert ours[:, :, 2].min() > 0.5


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (
            {"knows": []},
            r"consensus: every drone needs the load's motion, controller.knows: \[load",
        ),
        ({"parameters": {"output": "rotors"}}, "output = rotors: autopilot or direct"),
    ],
)
def test_what_it_needs_is_said_in_one_line(keys, text):
    changes = {"controller": consensus() | keys, "start": "air", "cable_model": "massless"}
    with pytest.raises(ConfigError, match=text):
        musls.Session(load_scenario("hold", changes))
