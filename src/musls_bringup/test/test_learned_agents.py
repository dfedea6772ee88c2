"""Policies on drones that know what they know: in environments of PettingZoo and in flight."""

import numpy as np
import pytest
from test_learned import COLUMNS, DRONES, OVERRIDES, PERIODS, STEPS, flown, scenario, write_policy

import musls
from musls_description.config.errors import ConfigError

pytest.importorskip("pettingzoo", reason="the extra rl is not installed")
SEEN, ALL = 18 * (1 + DRONES) + 8, ("load", "reference")
LEVEL, TRUTH = "accelerations", {"cable_model": "massless", "estimation": {"kind": "truth"}}


def environment(**limits):
    """The trio in a hover."""
    from musls.learning import TransportParallelEnv

    return TransportParallelEnv(
        scenario="hold", level=LEVEL, periods_per_step=PERIODS,
        overrides=OVERRIDES | TRUTH, **limits,
    )  # fmt: skip


@pytest.fixture
def policy(tmp_path):
    """A policy of one drone that does something."""
    weights = 0.02 * np.random.default_rng(3).standard_normal((SEEN, COLUMNS[LEVEL]))
    return write_policy(tmp_path / "each.onnx", weights, np.zeros(COLUMNS[LEVEL]))


def agents(files, *, network=None, knows=ALL, **more):
    """The trio, flown by a policy on each drone."""
    parameters = {"policy": files, "level": LEVEL, "periods_per_step": PERIODS}
    controller = {"kind": "agents", "agent": "policy", "knows": list(knows)}
    controller |= {"parameters": parameters | more, "network": network or {}}
    return musls.load_scenario("hold", OVERRIDES | TRUTH | {"controller": controller})


def test_with_an_ideal_network_it_is_the_policy_that_each_drone_asks(policy):
    central = flown(scenario(policy, LEVEL, **TRUTH, **{"controller.decentralised": True}))
    ours = flown(agents(str(policy)))
    np.testing.assert_allclose(ours, central, rtol=0.0, atol=1e-12)
    late = flown(agents(str(policy), network={"delay_s": 0.1}))
    alone = flown(agents(str(policy), network={"links": "none"}, knows=()))
    assert 1e-6 < np.abs(late - central).max() < np.abs(alone - central).max() < 0.1


def test_an_agent_of_the_environment_flies_with_the_same_knowledge(policy):
    """Messages are late: the flight is the environment's."""
    from musls_control.controllers.learned import Policy

    limits = {"network": {"links": "ring", "delay_s": 0.1}, "knows": ALL}
    env = environment(**limits)
    goal = musls.load_scenario("hold").mission.stages[0].position_m
    seen, _ = env.reset(seed=5, options={"goal_position_enu_m": goal})
    network = Policy(str(policy))
    network.check(SEEN, COLUMNS[LEVEL], "one drone", "test")
    for _ in range(STEPS):
        seen, *_ = env.step({name: network(row).ravel() for name, row in seen.items()})
    stepped = env.worlds.batch.motion[0].copy()
    # It sends once a step; the drones send in every period, so that their news are as old.
    flight = flown(agents(str(policy), network=limits["network"]))
    np.testing.assert_allclose(flight, stepped, rtol=0.0, atol=1e-12)


def test_agents_see_what_their_drones_know():
    from pettingzoo.test import parallel_api_test

    whole, ideal = environment(), environment(knows=ALL)
    blind = environment(knows=(), network={"links": "none"})
    seen = [env.reset(seed=3)[0] for env in (whole, ideal, blind)]
    for name in whole.agents:
        np.testing.assert_array_equal(seen[0][name], seen[1][name])
        assert np.abs(seen[0][name] - seen[2][name]).max() > 1e-3
    # Who knows neither load nor others takes them for where its own place says.
    follower = seen[2]["drone_2"]
    np.testing.assert_allclose(follower[:6], 0.0, atol=1e-6)
    np.testing.assert_allclose(follower[18:24], 0.0, atol=1e-6)
    parallel_api_test(environment(knows=["load"], network={"loss": 0.3}), num_cycles=40)


def test_the_state_is_all_there_is_for_a_central_critic():
    env = environment(knows=(), network={"links": "none"})
    env.reset(seed=3)
    parts = env.worlds.parts
    assert env.state_space.contains(env.state())
    np.testing.assert_array_equal(env.state()[:18], parts["load"][0])
    assert env.state().size == sum(part.size for part in parts.values())
    assert env.metadata["name"] == "musls_transport_v0"


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"knows": ["wind"]}, "knows: wind: must be load or reference"),
        ({"network": {"loss": 3}}, "network: loss = 3"),
        ({"knows": [], "leader": 9}, "leader = 9: there are 3 drones"),
    ],
)
def test_limits_that_cannot_be_are_refused(limits, text):
    with pytest.raises(ConfigError, match=text):
        environment(**limits)


def test_policies_that_do_not_fit_are_refused_in_one_line(policy):
    with pytest.raises(ConfigError, match=r"parameters\.policy has 2 files for 3 drones"):
        musls.Session(agents([str(policy)] * 2))
    with pytest.raises(ConfigError, match=r"none\.onnx: there is no such file"):
        musls.Session(agents("none.onnx"))
    each = flown(agents([str(policy)] * 3))
    np.testing.assert_array_equal(each, flown(agents(str(policy))))
