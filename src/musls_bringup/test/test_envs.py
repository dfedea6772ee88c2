"""The environments: Gymnasium's own checks, worlds alike, and only the world that fails is lost."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import musls
from musls_description.config.errors import ConfigError
from musls_description.config.registry import UserCodeError

gymnasium = pytest.importorskip("gymnasium", reason="the extra rl is not installed")
from gymnasium.utils.env_checker import check_env  # noqa: E402

import musls.learning  # noqa: E402
from musls.learning import TransportVectorEnv  # noqa: E402

LEVELS = ("accelerations", "forces", "thrust_moment", "rotor_speeds", "drone_setpoints")
PERIODS = 5
"""Control periods an action is held for, where nothing else is said."""


def worlds(number, *arguments, **given):
    return TransportVectorEnv(
        number, *arguments, threads=1, **{"periods_per_step": PERIODS, **given}
    )


def nothing(env):
    return np.zeros(env.action_space.shape)


@pytest.mark.parametrize("name", musls.learning.IDS)
def test_gymnasium_accepts_the_environments(name):
    env = gymnasium.make(name, level="drone_setpoints")
    check_env(env.unwrapped)
    env.close()


@pytest.mark.filterwarnings("ignore:Your observation .* has an unconventional shape")
@pytest.mark.parametrize("given", [{"dict_observations": True, "history": 2}, {"level": "forces"}])
def test_stable_baselines_accepts_the_environment(given):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    checker.check_env(gymnasium.make("musls/Transport-v0", **given).unwrapped)


def test_make_vec_makes_worlds_of_one_batch():
    env = gymnasium.make_vec("musls/Transport-v0", 8, vectorization_mode="vector_entry_point")
    assert env.unwrapped.batch.worlds == 8
    seen, info = env.reset(seed=3)
    assert seen.shape == (8, 84) and env.observation_space.contains(seen)
    assert info["goal_position_enu_m"].std(axis=0).min() > 0.05
    again, _ = env.reset(seed=3)
    np.testing.assert_array_equal(seen, again)


@pytest.mark.parametrize("level", LEVELS)
def test_the_single_environment_is_a_world(level):
    """A world among others moves as one alone, whatever the others do."""
    one = musls.learning.TransportEnv(level=level)
    many = worlds(3, level=level, periods_per_step=None)
    quick = level in ("thrust_moment", "rotor_speeds")
    assert many.step_s == one.worlds.step_s == (0.02 if quick else 0.08)
    goal = [0.2, -0.1, 2.3]
    options = {"goal_position_enu_m": goal, "goal_yaw_rad": 0.3}
    many.reset(seed=1, options=options)
    one.reset(seed=2, options=options)
    generator = np.random.default_rng(0)
    for _ in range(6):
        actions = 0.1 * generator.standard_normal(many.action_space.shape)
        seen, reward, *_ = many.step(actions)
        alone, its_reward, *_ = one.step(actions[1])
    np.testing.assert_array_equal(seen[1], alone)
    assert reward[1] == its_reward
    assert np.abs(seen[0] - seen[1]).max() > 1e-3


def test_accelerations_are_those_of_drones_and_load():
    """Up with 1 m/s2: after a second both have 1 m/s, less the lag of the rotors (0.05 s)."""
    env = worlds(1, level="accelerations")
    env.reset(seed=0)
    action = np.zeros((1, 3, 5))
    action[..., 2] = 1.0
    for _ in range(50):
        env.step(action.reshape(1, -1))
    assert env.batch.velocity_enu_m_s[0, :, 2] == pytest.approx(0.95, abs=0.07)
    assert np.abs(env.batch.velocity_enu_m_s[0, :, :2]).max() < 0.05


@pytest.mark.parametrize(("column", "axis"), [(3, 0), (4, 1)])
def test_rates_turn_the_drones(column, axis):
    env = worlds(1, level="accelerations")
    env.reset(seed=0)
    action = np.zeros((1, 3, 5))
    action[0, 1, column] = 0.4
    for _ in range(4):
        env.step(action.reshape(1, -1))
    rates = env.batch.omega_body_rad_s[0, 1:]
    assert rates[1, axis] > 0.05
    assert np.abs(rates[[0, 2]]).max() < 0.2 * rates[1, axis]


@pytest.mark.parametrize("level", LEVELS)
def test_half_the_action_at_twice_the_scale_is_the_same(level):
    flights = []
    for scale in (1.0, 2.0):
        env = worlds(1, level=level, action_scale=scale)
        env.reset(seed=0)
        action = np.full(env.action_space.shape, 0.1 / scale)
        for _ in range(4):
            env.step(action)
        flights.append(env.batch.motion.copy())
    np.testing.assert_array_equal(*flights)


# ------------------------------------------------------------------------------- ends of episodes


def test_next_step_mode_resets_with_the_next_step():
    env = worlds(2, level="drone_setpoints", duration_s=0.1)
    env.reset(seed=0)
    for _ in range(5):
        seen, _, failed, truncated, _ = env.step(nothing(env))
    assert truncated.all() and not failed.any()
    last = seen.copy()
    seen, reward, failed, truncated, info = env.step(nothing(env))
    assert not truncated.any() and not failed.any() and (reward == 0.0).all()
    assert (info["time_s"] == 0.1 + env.step_s).all() or (env.batch.time_s == 0.0).all()
    assert np.abs(seen - last).max() > 1e-3


def test_same_step_mode_hands_out_the_last_observation():
    envs = [
        worlds(2, level="drone_setpoints", duration_s=0.1, autoreset_mode=mode)
        for mode in ("SameStep", "Disabled")
    ]
    for env in envs:
        env.reset(seed=0)
        for _ in range(5):
            seen, _, _, truncated, info = env.step(nothing(env))
        assert truncated.all()
        if env is envs[0]:
            final, kept = np.stack(list(info["final_obs"])), info["final_info"]
            assert info["_final_obs"].all() and (env.batch.time_s == 0.0).all()
    np.testing.assert_array_equal(final, seen)
    np.testing.assert_array_equal(kept["distance_m"], info["distance_m"])


def test_a_mask_says_which_worlds_begin_anew():
    env = worlds(3, autoreset_mode="Disabled")
    env.reset(seed=0)
    env.step(nothing(env))
    env.reset(options={"reset_mask": np.array([False, True, False])})
    assert env.batch.time_s.tolist() == [env.step_s, 0.0, env.step_s]
    with pytest.raises(ConfigError, match="reset_mask"):
        env.reset(options={"reset_mask": np.array([False, False, False])})


def test_only_the_world_with_a_bad_action_is_lost():
    env = worlds(3, level="drone_setpoints")
    env.reset(seed=0)
    action = nothing(env)
    action[1, 2] = np.nan
    seen, reward, failed, *_ = env.step(action)
    assert failed.tolist() == [False, True, False]
    assert reward[1] == -env.task.fall_penalty and (reward[[0, 2]] > 0.0).all()
    assert np.isfinite(seen).all()
    _, _, failed, *_ = env.step(nothing(env))
    assert not failed.any() and env.batch.time_s[1] == 0.0


def test_a_world_whose_physics_fails_is_lost_alone():
    env = worlds(3, level="drone_setpoints")
    env.reset(seed=0)
    env.batch.wrench_enu[1, 0, 3] = np.nan
    seen, _, failed, *_ = env.step(nothing(env))
    assert failed.tolist() == [False, True, False] and np.isfinite(seen).all()


def test_a_reward_of_ones_own():
    env = worlds(2, level="drone_setpoints", reward=lambda env: env.batch.time_s * 2.0)
    env.reset(seed=0)
    assert env.step(nothing(env))[1] == pytest.approx(2.0 * env.step_s)

    def broken(env):
        return [1.0, 2.0][5]

    env = worlds(2, reward=broken)
    env.reset(seed=0)
    with pytest.raises(UserCodeError, match=r"broken failed: IndexError: list index") as error:
        env.step(nothing(env))
    assert "\n" not in str(error.value)
    env = worlds(2, level="drone_setpoints", reward=lambda env: np.array([1.0, np.nan]))
    env.reset(seed=0)
    assert env.step(nothing(env))[2].tolist() == [False, True]


class Residual(musls.learning.Transport):
    """Sees the load and the time alone; its actions shift the formation by a tenth of the rest."""

    def observe(self, env):
        return {"load": env.parts["load"], "time": env.batch.time_s[:, None]}

    def command(self, env):
        command = super().command(env)
        rest = env.actions.commands(0.0 * env.action, env.batch.estimate, None, env.goal)
        return rest + 0.1 * (command - rest)


def test_observations_and_commands_of_ones_own():
    env = worlds(2, Residual(), level="drone_setpoints", dict_observations=True)
    assert {name: box.shape for name, box in env.single_observation_space.items()} == {
        "load": (18,),
        "time": (1,),
    }
    seen, _ = env.reset(seed=0)
    seen, *_ = env.step(nothing(env) + 1.0)
    assert env.observation_space.contains(seen) and seen["time"][0, 0] == np.float32(env.step_s)
    place = env.goal.position_enu_m[0] + [0.05, 0.05, 0.05]
    shifted = env.actions.places(place, 0.0)
    np.testing.assert_allclose(env.batch.command[0], shifted, atol=1e-12)
    assert worlds(2, Residual(), level="drone_setpoints").observation_space.shape == (2, 19)

    class Wrong(musls.learning.Transport):
        def observe(self, env):
            return {"time": env.batch.time_s[0]}

    with pytest.raises(ConfigError, match=r"observe: time has shape \(\), must be \(2, \.\.\.\)"):
        worlds(2, Wrong())


@pytest.mark.parametrize(
    ("method", "answer", "words"),
    [
        ("command", None, r"command: shape \(\), must be numbers \(2, "),
        ("command", 10**400, r"command: shape \(\), must be numbers"),
        ("reward", "much", r"reward: shape \(\), must be \(2,\) numbers"),
        ("failed", [1, 0], r"failed: shape \(2,\), must be \(2,\) booleans"),
        ("failed", None, r"failed: shape \(\), must be \(2,\) booleans"),
        ("observe", None, "observe: NoneType, must be parts by name"),
        ("observe", {"time": "now"}, "observe: time must be numbers"),
    ],
)
def test_what_a_task_returns_is_checked(method, answer, words):
    own = type("Own", (musls.learning.Transport,), {method: lambda self, env: answer})
    with pytest.raises(ConfigError, match=words):
        env = worlds(2, own())
        env.reset(seed=0)
        env.step(nothing(env))


def test_events_of_the_scenario_happen_in_every_episode():
    push = {"kind": "poke", "when": {"time_s": 0.1}, "duration_s": 0.1, "force_enu_n": [0, 3, 0]}
    env = worlds(2, level="drone_setpoints", overrides={"events": [push]})
    for _ in range(2):
        env.reset(seed=0, options={"goal_position_enu_m": env.start_enu_m[0]})
        for _ in range(12):
            env.step(nothing(env))
        assert (env.batch.velocity_enu_m_s[:, 0, 1] > 0.05).all()


# ------------------------------------------------------------------------ numbers that are drawn


def test_masses_are_drawn_anew_for_each_episode():
    key = "system.load.mass_kg"
    env = worlds(8, "hover", randomise={key: [0.5, 1.5]}, variants=4, level="drone_setpoints")
    drawn = set()
    for _ in range(3):
        env.reset()
        share = env.batch.tension_n[:, :, 0].sum(axis=1) / 9.81
        assert ((share > 0.5) & (share < 1.9)).all()
        drawn |= set(share.round(6))
    assert 2 <= len(drawn) <= 4
    assert len(set(env.scenario_of)) > 1


def test_a_curriculum_changes_the_task_between_episodes():
    env = worlds(16, level="drone_setpoints")
    for range_m in (0.1, 0.4):
        env.task.range_m = range_m
        env.reset(seed=0)
        shift = np.abs(env.goal.position_enu_m - env.start_enu_m[0])
        assert 0.7 * range_m < shift.max() <= range_m


REFUSED = {
    "no world": ({"num_envs": 0}, "num_envs = 0: must be at least 1"),
    "history": ({"history": 10**9}, "history = 1000000000: must be at most 1000"),
    "level": ({"level": "torque"}, "level = torque: choose one of accelerations, forces"),
    "scale": ({"action_scale": 0.0}, "action_scale = 0.0: must be more than 0"),
    "duration": ({"duration_s": 0.0}, "duration_s = 0.0: must be more than 0"),
    "step": ({"periods_per_step": 10**9}, r"a step of 4e\+06 s is longer than"),
    "mode": ({"autoreset_mode": "Later"}, "autoreset_mode = Later: must be one of NextStep"),
    "task": ({"task": "fly"}, "unknown task 'fly'"),
    "ground": ({"scenario": "circle"}, "start.kind = ground"),
    "render": ({"render_mode": "ascii"}, "render_mode = ascii"),
    "key": ({"randomise": {"system.load.mas_kg": [1, 2]}}, "mas_kg"),
    "range": ({"randomise": {"system.load.mass_kg": [2, 1]}}, r"must be \[lowest, highest\]"),
    "value": ({"randomise": {"system.load.mass_kg": [-2, -1]}}, "mass_kg"),
    "structure": (
        {"randomise": {"imperfections.command_latency_s": [0.0, 0.05]}},
        "its structure differs",
    ),
}


@pytest.mark.parametrize(("given", "named"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_named(given, named):
    with pytest.raises(ConfigError, match=named) as error:
        TransportVectorEnv(**{"num_envs": 4, **given})
    assert "\n" not in str(error.value)


def test_a_wrong_action_is_named():
    env = worlds(2)
    env.reset()
    with pytest.raises(ConfigError, match=r"action: shape \(3, 9\), must be \(2, 9\)"):
        env.step(np.zeros((3, 9)))


# ------------------------------------------------------------------------------------- the tasks


def flown(name, level, act, seconds=8.0, number=4):
    """Mean return over the largest possible one, and the share of worlds that are lost."""
    env = worlds(number, name, level=level, duration_s=seconds, autoreset_mode="Disabled")
    env.reset(seed=0)
    total, alive, lost = np.zeros(number), np.ones(number, bool), np.zeros(number, bool)
    steps = round(seconds / env.step_s)
    for _ in range(steps):
        _, reward, failed, *_ = env.step(act(env))
        total += alive * reward
        lost |= alive & failed
        alive &= ~failed
    return total.mean() / steps, lost.mean()


@pytest.mark.parametrize("name", ["transport", "hover", "track", "recover", "lost_drone"])
def test_a_random_policy_fails_where_the_formation_flies(name):
    generator = np.random.default_rng(0)
    random, lost = flown(
        name, "accelerations", lambda e: generator.uniform(-1, 1, e.action_space.shape)
    )
    formation, none = flown(name, "drone_setpoints", nothing)
    assert lost > 0.5 and none == 0.0
    assert formation > 2.0 * random


def test_the_figure_eight_moves_as_its_velocity_says():
    env = worlds(2, "track", level="drone_setpoints")
    env.reset(seed=0)
    places, speeds = [], []
    for _ in range(100):
        env.step(nothing(env))
        places.append(env.goal.position_enu_m.copy())
        speeds.append(env.goal.velocity_enu_m_s.copy())
    moved = np.diff(places, axis=0) / env.step_s
    assert np.abs(moved - 0.5 * (np.array(speeds)[1:] + np.array(speeds)[:-1])).max() < 1e-3


DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.skipif(not DOCS.is_dir(), reason="docs/ come with a checkout")
def test_the_table_of_an_observation_says_what_stands_where():
    made = runpy.run_path(str(DOCS / "made_tables.py"))
    env = TransportVectorEnv(1, "track", threads=1)
    env.reset(seed=2)
    for _ in range(20):
        seen, *_ = env.step(np.full(env.action_space.shape, 0.1))
    n, batch, goal = 3, env.batch, env.goal
    told = made["observed"](env)
    assert sum(row[1] for row in told) == seen.shape[1] == env.observations.size
    found = {}
    for first, count, part, what, one, _ in told:
        found[part, what.partition(",")[0]] = seen[0, first : first + count] * (one or 1.0)
    estimate = batch.estimate[0]
    same = {
        ("load", "position"): estimate[0, 0:3] - goal.position_enu_m[0],
        ("load", "velocity"): estimate[0, 3:6] - goal.velocity_enu_m_s[0],
        ("goal", "its velocity"): goal.velocity_enu_m_s[0],
        ("goal", "its acceleration"): goal.acceleration_enu_m_s2[0],
        ("tension", f"of cable 1 to {n} in turn"): batch.tension_n[0].ravel(),
    }
    for name, expected in same.items():
        np.testing.assert_allclose(found[name], expected, rtol=1e-5, atol=1e-6)
    text = made["tables"]("track")
    assert f"a 1 is {0.5 * env.action_scale:g} m" in text and "|`reach_m`|1.5|" in text


def test_who_passes_beside_the_gate_is_lost():
    env = worlds(2, "gate", level="drone_setpoints", autoreset_mode="Disabled")
    for aside, expected in ((0.0, False), (3.0, True)):
        env.reset(seed=0)
        lost = np.zeros(2, bool)
        for k in range(300):
            env.goal.position_enu_m[:] = [min(0.02 * k, 6.0), aside * min(k / 50, 1.0), 1.2]
            lost |= env.step(nothing(env))[2]
        assert lost.tolist() == [expected] * 2
        assert env.batch.position_enu_m[0, 0, 0] > 2.5


def test_a_lost_drone_falls_and_the_others_stay():
    env = worlds(3, "lost_drone", level="accelerations", autoreset_mode="Disabled")
    env.reset(seed=0)
    for _ in range(160):
        env.step(nothing(env))
    stopped = env.batch.rotor_speed_rad_s.max(axis=2) < 10.0
    assert stopped.sum(axis=1).tolist() == [1, 1, 1]
    assert (env.batch.motors == np.where(stopped, 0.0, 1.0)).all()


def test_pictures_show_the_worlds():
    env = gymnasium.make("musls/Transport-v0", level="drone_setpoints", render_mode="rgb_array")
    env.reset(seed=0, options={"goal_position_enu_m": [0.5, 0.0, 2.5]})
    first = env.render()
    for _ in range(40):
        env.step(np.zeros(9))
    second = env.render()
    assert first.shape == second.shape == (640, 960, 3) and first.dtype == np.uint8
    assert (first != second).any(axis=2).sum() > 500


@pytest.mark.filterwarnings("ignore:.*HumanRendering")
def test_a_window_shows_the_world(monkeypatch):
    """Gymnasium's own wrapper, in a window that needs no screen."""
    pygame = pytest.importorskip("pygame", reason="pygame is not installed")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    env = gymnasium.make("musls/Transport-v0", level="drone_setpoints", render_mode="human")
    env.reset(seed=0)
    env.step(np.zeros(9))
    assert pygame.display.get_surface().get_size() == (960, 640)
    env.close()


# ---------------------------------------------------------------------------------------- agents


@pytest.mark.parametrize("name", ["transport", "lost_drone"])
def test_pettingzoo_accepts_the_drones_as_agents(name):
    checks = pytest.importorskip("pettingzoo.test")
    from musls.learning import TransportParallelEnv

    checks.parallel_api_test(TransportParallelEnv(name, duration_s=2.0), num_cycles=300)


def test_actions_of_agents_are_checked():
    pytest.importorskip("pettingzoo")
    from musls.learning import TransportParallelEnv

    env = TransportParallelEnv(overrides={"cable_model": "massless"})
    env.reset(seed=1)
    whole = {name: env.action_space(name).sample() for name in env.agents}
    first, *others = whole
    for wrong, words in (
        ({name: whole[name] for name in others}, f"missing of {first}"),
        (None, "missing of all of them"),
        (whole | {first: np.zeros(7)}, rf"actions of {first}: shape \(7,\)"),
        (whole | {first: "up"}, f"actions of {first}: must be numbers"),
    ):
        with pytest.raises(ConfigError, match=words):
            env.step(wrong)
    env.step(whole)


def test_an_agent_whose_motors_stop_leaves_and_the_others_go_on():
    pytest.importorskip("pettingzoo")
    from musls.learning import TransportParallelEnv

    level = "accelerations"
    env = TransportParallelEnv("lost_drone", level=level, periods_per_step=PERIODS)
    alone = worlds(1, "lost_drone", level=level, autoreset_mode="Disabled")
    env.reset(seed=3)
    alone.reset(seed=3)
    left = []
    for _ in range(160):
        now = list(env.agents)
        _, rewards, ended, _, _ = env.step({name: np.zeros(5) for name in now})
        reward = alone.step(nothing(alone))[1]
        assert set(rewards.values()) == {reward[0]}
        left += [name for name in now if ended[name]]
    assert len(left) == 1 and len(env.agents) == 5 and left[0] not in env.agents
