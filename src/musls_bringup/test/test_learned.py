"""`controller: learned`: a policy file flies as the environment steps it."""

import hashlib
import json
import re

import numpy as np
import pytest

import musls
from musls_bringup.benchmark.benchmark import cases, fly_case, write
from musls_bringup.catalogue.overrides import flight_overrides
from musls_control.controllers.learned import Policy, shipped_policies
from musls_description.config.errors import ConfigError
from musls_description.config.registry import UserCodeError

onnx = pytest.importorskip("onnx", reason="the package onnx is not installed")
pytest.importorskip("onnxruntime", reason="the extra learned is not installed")

STEPS, PERIODS = 12, 5
OVERRIDES = {"start": "air", "system.cables.links": 3, "mission.stages.0.duration_s": 2.0}
OBSERVED, DRONES = 18 * 4 + 2 * 3 + 6, 3
COLUMNS = {
    "accelerations": 5,
    "forces": 3,
    "thrust_moment": 4,
    "rotor_speeds": 4,
    "drone_setpoints": 3,
}


def write_policy(path, weights, bias, kind="FLOAT", inputs=None, nodes=(), metadata=None):
    """An ONNX file of tanh(observation @ weights + bias), (OBSERVED, size) and (size,).

    `metadata` besides the scale of its actions, 1.
    """
    number = getattr(onnx.TensorProto, kind)
    dtype = {"FLOAT": np.float32, "DOUBLE": np.float64}[kind]
    constants = [
        onnx.numpy_helper.from_array(np.asarray(array, dtype), name)
        for name, array in (("weights", weights), ("bias", bias))
    ]
    tensor = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [
            onnx.helper.make_node("MatMul", ["obs", "weights"], ["product"]),
            onnx.helper.make_node("Add", ["product", "bias"], ["sum"]),
            *(nodes or [onnx.helper.make_node("Tanh", ["sum"], ["action"])]),
        ],
        "policy",
        [tensor(name, number, ["batch", len(weights)]) for name in (inputs or ["obs"])],
        [tensor("action", number, ["batch", len(bias)])],
        constants,
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.helper.set_model_props(model, {"action_scale": "1", **(metadata or {})})
    onnx.save(model, path)
    return path


def linear(size, scale=0.02):
    generator = np.random.default_rng(3)
    return scale * generator.standard_normal((OBSERVED, size)), np.zeros(size)


def scenario(path, level="forces", history=0, **more):
    controller = {"kind": "learned", "policy": str(path), "level": level, "history": history}
    controller["periods_per_step"] = level and PERIODS
    controller = {key: value for key, value in controller.items() if value is not None}
    return musls.load_scenario("hold", OVERRIDES | {"controller": controller} | more)


def flown(chosen):
    with musls.Session(chosen) as session:
        session.advance(STEPS * PERIODS)
        return session.state.motion.copy()


@pytest.mark.parametrize("level", COLUMNS)
@pytest.mark.parametrize("noisy", [False, True])
def test_the_flight_is_the_environments_bit_for_bit(tmp_path, level, noisy):
    gymnasium = pytest.importorskip("gymnasium", reason="the extra rl is not installed")
    import musls.learning

    size, history = DRONES * COLUMNS[level], 2 if noisy else 0
    seen = OBSERVED + history * size
    generator = np.random.default_rng(3)
    weights, bias = 0.02 * generator.standard_normal((seen, size)), np.zeros(size)
    path = write_policy(tmp_path / "policy.onnx", weights, bias)
    estimation = {"estimation": {"kind": "mocap" if noisy else "truth"}}
    changes = OVERRIDES | estimation
    env = gymnasium.make(
        "musls/Transport-v0",
        scenario="hold",
        level=level,
        overrides=changes,
        history=history,
        periods_per_step=PERIODS,
    ).unwrapped
    goal = musls.load_scenario("hold").mission.stages[0].position_m
    observation, _ = env.reset(seed=5, options={"goal_position_enu_m": goal})
    assert observation.shape == (seen,) and observation.dtype == np.float32
    network = Policy(str(path))
    network.check(seen, size, "test", "test")
    for _ in range(STEPS):
        action = network(observation).ravel()
        assert 1e-3 < np.abs(action).max() < 1.0
        assert np.allclose(action, np.tanh(observation @ weights), atol=1e-5)
        observation, _, terminated, _, _ = env.step(action)
        assert not terminated
    stepped = env.worlds.batch.motion[0].copy()
    seed = int(env.worlds.seeds[0])
    env.close()
    flight = flown(scenario(path, level, seed=seed, history=history, **estimation))
    assert np.array_equal(flight, stepped)
    assert np.ptp(flight[:, 3:6]) > 1e-3, "it does act"


@pytest.mark.parametrize("history", [0, 2])
def test_each_drone_flies_by_itself_as_in_the_environment_of_agents(tmp_path, history):
    """The same network once a drone, bit for bit; the file says so."""
    pytest.importorskip("pettingzoo", reason="the extra rl is not installed")
    from musls.learning import TransportParallelEnv

    columns = COLUMNS["accelerations"]
    seen = 18 * (1 + DRONES) + 8 + history * columns
    weights = 0.02 * np.random.default_rng(3).standard_normal((seen, columns))
    path = write_policy(
        tmp_path / "each.onnx", weights, np.zeros(columns), metadata={"decentralised": "true"}
    )
    env = TransportParallelEnv(
        scenario="hold", level="accelerations", history=history, periods_per_step=PERIODS,
        overrides=OVERRIDES | {"estimation": {"kind": "truth"}},
    )  # fmt: skip
    goal = musls.load_scenario("hold").mission.stages[0].position_m
    told, _ = env.reset(seed=5, options={"goal_position_enu_m": goal})
    assert all(env.observation_space(name).shape == (seen,) for name in env.agents)
    network = Policy(str(path))
    network.check(seen, columns, "one drone", "test")
    apart = []
    for _ in range(STEPS):
        actions = {name: network(observed).ravel() for name, observed in told.items()}
        apart.append(np.ptp(np.stack(list(actions.values())), axis=0).max())
        told, _, ended, _, _ = env.step(actions)
        assert len(ended) == DRONES and not any(ended.values())
    assert min(apart) > 1e-3, "drones that see different things do different things"
    stepped, seed = env.worlds.batch.motion[0].copy(), int(env.worlds.seeds[0])
    env.close()
    more = {"seed": seed, "estimation": {"kind": "truth"}}
    flight = flown(scenario(path, "accelerations", history=history, **more))
    assert np.array_equal(flight, stepped)
    central = {"controller.decentralised": False, **more}
    said = refusal(scenario(path, "accelerations", history=history, **central))
    assert f"input 'obs' has shape ['batch', {seen}], must be [1, " in said
    wide = write_policy(tmp_path / "wide.onnx", np.zeros((40, 15)), np.zeros(15))
    said = refusal(scenario(wide, "accelerations", **{"controller.decentralised": True}))
    assert "must be [1, 80] or [80], the observation of one drone" in said


def turning(yaw):
    c, s = np.cos(yaw), np.sin(yaw)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize("level", ["accelerations", "forces"])
def test_a_policy_knows_no_north(tmp_path, level):
    """The flight to a turned goal is the turned flight."""
    weights, bias = linear(DRONES * COLUMNS[level], 0.06)
    path = write_policy(tmp_path / "policy.onnx", weights, bias)
    paths, yaw = [], 2.0
    for angle in (0.0, yaw):
        turned = {"estimation.kind": "truth", "mission.stages.0.yaw_rad": angle}
        paths.append(flown(scenario(path, level, **turned))[:, 0:6])
    for columns in (slice(0, 3), slice(3, 6)):
        first, second = (path[:, columns] for path in paths)
        assert np.abs(first @ turning(yaw).T - second).max() < 1e-4
        assert np.ptp(first[:, 0]) > 0.02


def test_the_flight_goes_on_to_its_end_and_takes_over_after_the_lift(tmp_path):
    path = write_policy(tmp_path / "zero.onnx", np.zeros((OBSERVED, 9)), np.zeros(9))
    ground = {"start": "ground", "mission.settle_s": 0.2, "mission.stages.0.duration_s": 0.2}
    run = musls.fly(scenario(path, "drone_setpoints", **ground))
    assert run.time_s[-1] > 5.0
    assert not run.warnings


def refusal(chosen):
    with pytest.raises(musls.ConfigError) as caught:
        musls.Session(chosen)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_bad_files_are_named_in_one_line(tmp_path):
    assert "there is no such file" in refusal(scenario(tmp_path / "none.onnx"))
    text = tmp_path / "text.onnx"
    text.write_text("not a network")
    assert f"controller.policy = {text}: not an ONNX model" in refusal(scenario(text))
    few = write_policy(tmp_path / "few.onnx", np.zeros((40, 9)), np.zeros(9))
    expected = "input 'obs' has shape ['batch', 40], must be [1, 84] or [84], the observation"
    assert expected in refusal(scenario(few))
    many = write_policy(tmp_path / "many.onnx", np.zeros((OBSERVED, 12)), np.zeros(12))
    expected = "output 'action' has shape [1, 12], must be [1, 9] or [9] (3 drones, 3 each at "
    assert expected in refusal(scenario(many))
    musls.Session(scenario(many, "rotor_speeds")).close()
    two = write_policy(
        tmp_path / "two.onnx", np.zeros((OBSERVED, 9)), np.zeros(9), inputs=["obs", "memory"]
    )
    assert "2 inputs (obs, memory), must be one" in refusal(scenario(two))


TRAINED = {"level": "drone_setpoints", "periods_per_step": "2", "history": "1", "by": "PPO"}


def test_a_file_says_how_it_was_trained_and_a_scenario_may_say_otherwise(tmp_path):
    size = DRONES * COLUMNS["drone_setpoints"]
    weights = np.random.default_rng(3).standard_normal((OBSERVED + size, size))
    told = write_policy(tmp_path / "told.onnx", weights, np.zeros(size), metadata=TRAINED)
    silent = write_policy(tmp_path / "silent.onnx", weights, np.zeros(size))
    more = {"seed": 2, "controller.periods_per_step": 2}
    flight = flown(scenario(told, None, None, seed=2))
    assert np.array_equal(flight, flown(scenario(silent, "drone_setpoints", 1, **more)))
    slow = flown(scenario(told, None, None, seed=2, **{"controller.periods_per_step": 9}))
    assert not np.array_equal(flight, slow)


def test_the_scale_is_that_of_the_training_and_none_flies_without(tmp_path):
    weights, bias = linear(DRONES * 5, 0.01)
    scaled = {s: write_policy(tmp_path / f"{s}.onnx", weights, bias, metadata={"action_scale": s})
              for s in ("0.5", "2")}  # fmt: skip
    gently, strongly = (flown(scenario(path, "accelerations")) for path in scaled.values())
    moved, more = (np.abs(each[1:, 3:6]).max() for each in (gently, strongly))
    assert more > 1.5 * moved > 0.0
    told = {"controller.action_scale": 0.5}
    assert np.array_equal(gently, flown(scenario(scaled["2"], "accelerations", **told)))
    silent = onnx.load(scaled["2"])
    del silent.metadata_props[:]
    path = tmp_path / "silent.onnx"
    onnx.save(silent, path)
    expected = f"controller.policy = {path}: its metadata lack action_scale"
    assert expected in refusal(scenario(path, "accelerations"))
    assert np.array_equal(gently, flown(scenario(path, "accelerations", **told)))


@pytest.mark.parametrize(
    ("key", "value"),
    [("level", "high"), ("history", "-1"), ("action_scale", "0"), ("decentralised", "perhaps")],
)
def test_metadata_that_say_nonsense_are_named(tmp_path, key, value):
    path = write_policy(
        tmp_path / "p.onnx", np.zeros((OBSERVED, 9)), np.zeros(9), metadata={key: value}
    )
    expected = f"controller.policy = {path}: metadata: {key} = '{value}': "
    assert expected in refusal(scenario(path, None, None))


def test_the_command_line_and_the_benchmark_take_a_file_as_controller(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_policy("mine.onnx", np.zeros((OBSERVED, 9)), np.zeros(9), metadata={"level": "forces"})
    flown_with = flight_overrides(None, None, None, "mine.onnx")
    assert musls.load_scenario("circle_payload", flown_with).controller.kind == "learned"
    assert len(cases(["mine.onnx"], quick=True)) == 4
    with pytest.raises(musls.ConfigError, match=r"none\.onnx: there is no such file"):
        cases(["none.onnx"], quick=True)


def test_a_benchmarks_results_do_not_depend_on_the_policys_folder(tmp_path):
    root = [onnx.helper.make_node("Sqrt", ["sum"], ["action"])]  # nan: the reason names the file
    written = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        path = write_policy(
            folder / "mine.onnx", np.zeros((OBSERVED, 9)), np.full(9, -1.0), nodes=root,
            metadata={"level": "forces"},
        )  # fmt: skip
        case = cases([str(path)], quick=True)[0]
        row = fly_case({**case, "scenario": {**case["scenario"], "cable_model": "massless"}})
        assert "mine.onnx: output 'action'" in row["reason"]
        files = write([row], folder / "out", [str(path)])
        texts = [file.read_text() for file in files if file.suffix != ".png"]
        assert not any(str(tmp_path) in text for text in texts)
        written.append(json.loads(texts[0]))
    assert written[0] == written[1]
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    assert written[0]["controllers"] == {"mine.onnx": {"file": "mine.onnx", "sha256": sha256}}
    with pytest.raises(musls.ConfigError, match=r"2 files are called mine\.onnx"):
        cases([str(tmp_path / one / "mine.onnx") for one in "ab"], quick=True)


@pytest.mark.parametrize("level", ["forces", "drone_setpoints"])
def test_a_policy_that_returns_nan_ends_the_flight_and_is_named(tmp_path, level):
    weights = np.zeros((OBSERVED, 9))
    weights[5] = -2.0  # the actions lift the load; above 0.01 m/s their root is nan
    root = [onnx.helper.make_node("Sqrt", ["sum"], ["action"])]
    path = write_policy(tmp_path / "nan.onnx", weights, np.full(9, 0.01), nodes=root)
    with pytest.raises(UserCodeError) as caught:
        musls.fly(scenario(path, level))
    found = re.fullmatch(
        rf"controller.policy = {re.escape(str(path))}: output 'action' at (\d\.\d+) s is nan for "
        r"drone_1 in column 0; must be finite",
        str(caught.value),
    )
    assert found
    assert caught.value.recording.time_s[-1] == pytest.approx(float(found[1]), abs=0.05)


def test_stable_baselines_trains_and_its_file_does_what_the_model_does(tmp_path):
    ppo = pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed").PPO
    import musls.learning

    worlds = musls.learning.for_sb3("musls/Track-v0", 8, threads=1)
    settings = musls.learning.PPO_SETTINGS | {"n_steps": 4, "batch_size": 32}
    model = ppo("MlpPolicy", worlds, seed=1, device="cpu", **settings)
    model.learn(64)
    seen = worlds.unnormalize_obs(worlds.reset())  # what it sees counts for the scales
    path = tmp_path / "mine.onnx"
    musls.learning.save_policy(model, path)
    network = Policy(str(path))
    network.check(seen.shape[1], 9, "test", "test")
    expected = 0.2 * model.predict(worlds.normalize_obs(seen), deterministic=True)[0]
    actions = np.array([network(one).ravel() for one in seen])
    np.testing.assert_allclose(actions, expected, atol=1e-5)
    assert network.metadata["action_scale"] == "6.0"
    worlds.close()


@pytest.mark.parametrize("name", shipped_policies())
def test_a_shipped_policy_has_a_name_and_beats_the_formation(name):
    """At its own task, with goals that it was not trained on."""
    pytest.importorskip("gymnasium", reason="the extra rl is not installed")
    from musls.learning import TASKS, TransportVectorEnv

    network, means = Policy(name), []
    for learned in (False, True):
        env = TransportVectorEnv(64, TASKS[name.removesuffix("_policy")], threads=1)
        seen, _ = env.reset(seed=7)
        network.check(seen.shape[1], env.action_space.shape[1], "test", "test")
        total = np.zeros(64)
        for _ in range(125):
            actions = [network(one).ravel() if learned else np.zeros(9) for one in seen]
            seen, reward, failed, *_ = env.step(np.array(actions))
            assert not failed.any()
            total += reward
        means.append(total.mean())
    assert means[1] > means[0] + 0.1
    settings = flight_overrides(None, None, None, name)
    assert musls.load_scenario("hold", settings).controller.kind == name


def test_shipped_policies_are_controllers_and_a_wrong_name_is_told():
    named = {name for name in musls.controllers if name.endswith("_policy")}
    assert named == set(shipped_policies())
    with pytest.raises(ConfigError, match="unknown controller 'hover_polic': did you mean 'hover_"):
        musls.load_scenario("hold", {"controller": "hover_polic"})
    four = musls.load_scenario("hold", {"controller": "hover_policy", "system": "x500_quad"})
    with pytest.raises(ConfigError, match=r"hover_policy: input .* the observation of 4 drones"):
        musls.Session(four)
