"""Scenario files: what they hold, overrides, and what is refused before anything flies."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musls_control.brief.findings import refuse_or_warn
from musls_control.trajectories import Circle, Engage, Hold
from musls_description.config.errors import ConfigError
from musls_description.config.schema import to_yaml
from musls_description.hanging.hang import MIN_THRUST_MARGIN
from musls_description.system.system_files import SYSTEMS, load_system, system_names
from musls_sim.autopilots import AutopilotSetup
from musls_sim.scenario.scenario import AUTOPILOTS, Scenario, load_scenario
from musls_sim.specs.estimation import MotionCaptureSpec, TruthSpec

SHIPPED = Path(__file__).parents[2] / "musls_bringup" / "musls_bringup" / "scenarios"
TEXTS = {path.stem: path.read_text() for path in SHIPPED.glob("*.yaml")}
NAMES = sorted(k for k, text in TEXTS.items() if "stages:" in text and "equilibrium" not in text)

TINY = """\
description: a test
system: x500_trio
mission:
  stages:
    - {kind: hold, duration_s: 1, position_m: [0, 0, 1]}
    - {kind: circle, radius_m: 1.2}
formation: {height_m: 2.2962}
"""


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY)
    return path


def refused(path, *overrides):
    """The one line with which a scenario is refused."""
    with pytest.raises(ConfigError) as error:
        load_scenario(path, overrides)
    assert "\n" not in str(error.value)
    return str(error.value)


def refused_text(tmp_path, text):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    return refused(path)


# ---------- The shipped


def test_there_are_shipped_scenarios():
    assert {"circle", "engage", "shm", "paper", "hold"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_shipped_scenarios_load_and_say_what_they_are(name):
    scenario = load_scenario(SHIPPED / f"{name}.yaml")
    assert scenario.name == name
    assert scenario.description and "\n" not in scenario.description


@pytest.mark.parametrize("name", NAMES)
def test_a_resolved_scenario_is_the_scenario(name, tmp_path):
    scenario = load_scenario(SHIPPED / f"{name}.yaml", ["seed=7", "wind.mean_enu_m_s=[0.1,0,1e-3]"])
    path = tmp_path / "scenario.yaml"
    path.write_text(to_yaml(scenario))
    again = load_scenario(path)
    assert again == scenario
    assert to_yaml(again) == to_yaml(scenario)


def test_the_resolved_scenario_stands_alone(tiny, tmp_path):
    """System written out: it can be flown where neither system nor part files are known."""
    text = to_yaml(load_scenario(tiny))
    assert "from:" not in text
    system = load_system("x500_trio")
    assert load_scenario(tiny).system == system
    assert text.count("links: 15") == 3


def test_defaults_are_those_of_the_papers_experiment(tiny):
    scenario = load_scenario(tiny)
    assert scenario.name == "tiny"
    assert scenario.start.kind == "ground"
    assert (scenario.formation.radius_m, scenario.formation.height_m) == (1.0, 2.2962)
    assert scenario.mission.setpoint_rate_hz == 5.0
    assert isinstance(scenario.estimation, MotionCaptureSpec)
    assert scenario.physics.step_size_s == "auto"
    assert scenario.seed == 0
    assert not scenario.system.load.drag_n_s_m[0]


# ---------- Overrides


def test_an_override_replaces_a_value(tiny):
    scenario = load_scenario(
        tiny, ["seed=3", "physics.step_size_s=0.001", "formation.radius_m=0.9"]
    )
    assert scenario.seed == 3
    assert scenario.physics.step_size_s == 0.001
    assert scenario.formation.radius_m == 0.9
    # The rest stays.
    assert dataclasses.replace(scenario, seed=0).formation.height_m == 2.2962


def test_an_override_below_a_list_holds_for_all_elements(tiny):
    scenario = load_scenario(tiny, ["system.cables.links=7"])
    assert [cable.links for cable in scenario.system.cables] == [7, 7, 7]


def test_an_index_picks_one_element(tiny):
    scenario = load_scenario(
        tiny, ["system.cables.1.links=7", "system.cables.2.joint.friction_n_m=1"]
    )
    assert [cable.links for cable in scenario.system.cables] == [15, 7, 15]
    assert [cable.joint.friction_n_m for cable in scenario.system.cables] == [0.0, 0.0, 1.0]


def test_an_index_may_end_the_path(tiny):
    override = "system.load.cable_attachments_m.0=[0.2, 0, 0.03]"
    scenario = load_scenario(tiny, [override, "mission.stages.0.position_m.2=1.5"])
    assert scenario.system.load.cable_attachments_m[0] == (0.2, 0.0, 0.03)
    assert scenario.system.load.cable_attachments_m[1] == (-0.05, 0.087, 0.03)
    assert scenario.mission.stages[0].position_m == (0.0, 0.0, 1.5)


def test_a_kind_may_stand_in_the_path_of_an_override(tiny):
    """As in the reference of keys; in a list it picks the elements of that kind."""
    stages = "mission.stages=[{kind: engage}, {kind: hold, duration_s: 9}, engage]"
    gains = "controller.payload.gains.position_1_s2=[1, 2, 3]"
    scenario = load_scenario(
        tiny, [stages, "mission.stages.engage.repetitions=2", "controller=payload", gains]
    )
    engage = Engage(repetitions=2)
    assert scenario.mission.stages == (engage, Hold(duration_s=9.0), engage)
    assert scenario.controller.gains.position_1_s2 == (1.0, 2.0, 3.0)
    with pytest.raises(ConfigError, match=r"unknown key 'controller\.pid'"):
        load_scenario(tiny, ["controller=payload", "controller.pid.gains=1"])
    with pytest.raises(ConfigError, match=r"unknown key 'estimation\.mocap': known: .*rate_hz"):
        load_scenario(tiny, ["estimation.mocap.rate_hz=50"])


def test_an_override_may_be_any_yaml(tiny):
    scenario = load_scenario(
        tiny,
        [
            "wind.gust_std_m_s=[1, 0.5, 1e-1]",
            "mission.stages=[{kind: engage, repetitions: 2}]",
            "estimation={kind: truth}",
        ],
    )
    assert scenario.wind.gust_std_m_s == (1.0, 0.5, 0.1)
    assert scenario.mission.stages == (Engage(repetitions=2),)
    assert scenario.estimation == TruthSpec()


def test_overrides_count_in_their_order(tiny):
    assert load_scenario(tiny, ["seed=3", "seed=4"]).seed == 4


@pytest.mark.parametrize("name", system_names(slung=True))
def test_the_system_is_replaced_by_name(tiny, name):
    scenario = load_scenario(tiny, ["system.load.mass_kg=0.9", f"system={name}"])
    # Whatever the order: other overrides reach into the new system.
    expected = load_system(name)
    assert scenario.system == dataclasses.replace(
        expected, load=dataclasses.replace(expected.load, mass_kg=0.9)
    )


def test_the_system_may_be_a_file_beside_the_scenario(tmp_path):
    (tmp_path / "mine.yaml").write_text(to_yaml(load_system("x500_duo")))
    path = tmp_path / "a.yaml"
    path.write_text(TINY.replace("x500_trio", "mine.yaml"))
    assert load_scenario(path).system == load_system("x500_duo")


def test_an_overriding_system_file_counts_from_the_users_folder(tiny, tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    (here / "mine.yaml").write_text(to_yaml(load_system("x500_duo")))
    monkeypatch.chdir(here)
    assert load_scenario(tiny, ["system=mine.yaml"]).system == load_system("x500_duo")


def test_the_system_may_be_written_out_in_short_form(tmp_path):
    text = TINY.replace(
        "system: x500_trio",
        """\
system:
  name: mine
  load:
    mass_kg: 1.0
    inertia_kg_m2: [[0.01, 0, 0], [0, 0.01, 0], [0, 0, 0.02]]
    cable_attachments_m: [[0.1, 0, 0], [-0.1, 0, 0]]
    collision: {size_m: [0.3, 0.3, 0.1]}
  drones: {from: x500}
  cables: {from: rope, links: 5}""",
    )
    path = tmp_path / "a.yaml"
    path.write_text(text)
    system = load_scenario(path, ["system.cables.1.length_m=2.5"]).system
    assert (system.name, system.n_drones) == ("mine", 2)
    assert [cable.links for cable in system.cables] == [5, 5]
    assert [cable.length_m for cable in system.cables] == [2.42, 2.5]


@settings(max_examples=10)
@given(seed=st.integers(0, 2**63), mass=st.floats(1e-3, 1e3), yaw=st.floats(-1e3, 1e3))
def test_numbers_survive_the_resolved_file_exactly(tmp_path_factory, seed, mass, yaw):
    folder = tmp_path_factory.mktemp("numbers")
    (folder / "tiny.yaml").write_text(TINY)
    overrides = [f"seed={seed}", f"system.load.mass_kg={mass}", f"mission.stages.0.yaw_rad={yaw}"]
    scenario = load_scenario(folder / "tiny.yaml", overrides)
    assert scenario.seed == seed
    assert scenario.system.load.mass_kg == mass
    assert scenario.mission.stages[0].yaw_rad == yaw
    (folder / "scenario.yaml").write_text(to_yaml(scenario))
    assert load_scenario(folder / "scenario.yaml").system.load.mass_kg == mass


# ---------- Bad input


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        pytest.param(
            "mission:",
            "misson:",
            3,
            ["'misson'", "'mission'"],
        ),
        ("formation:", "formatoin:", 7, ["'formatoin'", "'formation'"]),
        ("radius_m", "radus_m", 6, ["mission.stages.1.radus_m", "'radius_m'"]),
        ("kind: circle", "kind: cirle", 6, ["'cirle'", "'circle'"]),
        ("duration_s: 1", "duration_s: -1", 5, ["duration_s = -1", "greater than 0"]),
        ("[0, 0, 1]", "[0, 0]", 5, ["position_m"]),
        ("[0, 0, 1]", "[0, 0, up]", 5, ["position_m.2 = 'up'", "number"]),
        ("system: x500_trio", "start: mars\nsystem: x500_trio", 2, ["'mars'", "'ground'", "'air'"]),
        ("system: x500_trio", "seed: -1\nsystem: x500_trio", 2, ["seed = -1"]),
        ("system: x500_trio", "seed: 1.5\nsystem: x500_trio", 2, ["seed = 1.5", "whole number"]),
    ],
)
def test_bad_keys_and_values_name_file_line_and_what_is_near(tmp_path, old, new, line, words):
    assert old in TINY
    message = refused_text(tmp_path, TINY.replace(old, new, 1))
    assert message.startswith(f"{tmp_path / 'bad.yaml'}, line {line}: "), message
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [1,\n", ["line 2"]),
        (TINY + "mission: {}\n", ["line 8", "mission", "twice"]),
        (TINY.replace("  stages", "\tstages"), ["line 4"]),
        ("", ["mapping", "None"]),
        ("- a\n- b\n", ["mapping", "['a', 'b']"]),
        ("circle", ["mapping", "'circle'"]),
        ("mission: {stages: [{kind: hold}]}", ["system"]),
        ("system: x500_trio", ["mission", "missing"]),
        ("seed: 1", ["system, mission are missing"]),
        ("system: x500_trio\nmission: {stages: []}", ["mission", "stages", "at least 1"]),
        (TINY.replace("x500_trio", "x500_tri"), ["'x500_tri'", "'x500_trio'"]),
        (TINY.replace("x500_trio", "mine.yaml"), ["mine.yaml", "no such file"]),
    ],
)
def test_files_that_are_no_scenario(tmp_path, text, words):
    message = refused_text(tmp_path, text)
    assert all(word in message for word in words), message


@pytest.mark.parametrize("data", [b"\x85\xff\xfe\x00binary", b"a: \x00\n"])
def test_a_binary_file_is_refused(tmp_path, data):
    path = tmp_path / "bad.yaml"
    path.write_bytes(data)
    assert str(path) in refused(path)


def test_a_missing_file_is_refused(tmp_path):
    assert "no such file" in refused(tmp_path / "absent.yaml")


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("seed", ["--set seed", "key.path=value"]),
        ("=3", ["--set =3", "key.path=value"]),
        ("seed=x", ["seed = 'x'", "whole number"]),
        ("a=b", ["'a'", "mission"]),
        ("misson.stages=1", ["'misson'", "'mission'"]),
        ("mission.stages.kind=circl", ["'circl'", "'circle'"]),
        ("mission.stages.0.duration=3", ["'mission.stages.0.duration'", "'duration_s'"]),
        ("mission.stages.5.duration_s=3", ["index 5", "2 elements"]),
        ("mission.stages.0.duration_s.x=3", ["--set", "plain value"]),
        ("mission.stages=[1,", ["--set mission.stages"]),
        ("system=x500_quat", ["'x500_quat'", "'x500_quad'"]),
        ("system.load.mass_kg=-1", ["system.load.mass_kg = -1", "greater than 0"]),
        ("system.load.mas_kg=1", ["'system.load.mas_kg'", "'mass_kg'"]),
        ("system.cables.links=0", ["links = 0", "greater than or equal to 1"]),
        ("system.drones.mass_kg=.nan", ["mass_kg", "finite"]),
        ("system.load.inertia_kg_m2=[[1,0,0],[0,1,0],[0,0,3]]", ["triangle"]),
        ("system.load.inertia_kg_m2=[[1,0,0],[0,-1,0],[0,0,1]]", ["positive definite"]),
        ("system.drones=[]", ["3 load.cable_attachments_m", "0 drones"]),
        ("system.load.cable_attachments_m=[[0,0,0]]", ["1 load.cable_attachments_m", "3 drones"]),
        ("estimation.kind=mocapp", ["'mocapp'", "'mocap'"]),
        ("autopilot.kind=px5", ["autopilot.kind", "px5"]),
        ("cable_model=fem", ["cable_model = 'fem'", "rigid_links"]),
        ("physics.gravity_m_s2=-9.8", ["gravity_m_s2 = -9.8", "greater than"]),
        ("physics.gravity_m_s2=0", ["gravity_m_s2 = 0", "greater than"]),
        ("recording.rate_hz=60", ["rate_hz", "divide 250 Hz", "60"]),
        ("recording.shape_rate_hz=20", ["shape_rate_hz", "divide rate_hz", "20"]),
        ("wind.mean_enu_m_s=5", ["wind.mean_enu_m_s = 5"]),
        ("mission.slack_height_m=.nan", ["slack_height_m", "finite"]),
    ],
)
def test_bad_overrides_name_key_and_value(tiny, override, words):
    message = refused(tiny, override)
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mass_kg: 1.66", "mass_kg: -1", "sys.yaml, line 4: load.mass_kg = -1: "),
        ("mass_kg: 1.66", "mas_kg: 1", "sys.yaml, line 4: unknown key 'load.mas_kg': "),
        ("  mass_kg: 1.66\n", "", "sys.yaml, line 3: load.mass_kg is missing"),
        ("from: rope", "from: roap", "sys.yaml, line 12: unknown part 'roap': "),
        ("from: rope", "from: [1]", "sys.yaml, line 12: unknown part [1]: "),
        ("from: x500", "from: ../x500", "sys.yaml, line 11: unknown part '../x500': "),
        ("{from: rope, ", "{from: rope, links: 0, ", "sys.yaml, line 12: cables.0.links = 0: "),
        ("load:", "load: [", "sys.yaml, line 5: "),
    ],
)
def test_an_error_in_a_system_file_names_that_file_and_line(tmp_path, old, new, message):
    text = (SYSTEMS / "x500_trio.yaml").read_text()
    assert old in text
    (tmp_path / "sys.yaml").write_text(text.replace(old, new, 1))
    assert refused_text(tmp_path, TINY.replace("x500_trio", "sys.yaml")).startswith(
        f"{tmp_path}/{message}"
    )


def test_what_is_missing_in_several_files_is_said_at_once(tmp_path):
    (tmp_path / "sys.yaml").write_text("name: x\n")
    assert refused_text(tmp_path, "system: sys.yaml\n") == (
        f"{tmp_path}/sys.yaml: load, drones, cables are missing; "
        f"{tmp_path}/bad.yaml: mission is missing"
    )


@pytest.mark.parametrize(
    ("overrides", "place"),
    [
        (["seed=-1"], " --set seed=-1: "),
        (["seed=3", "wind.gust_time_s=0"], " --set wind.gust_time_s=0: "),
        (["wind.gust_time_s=0", "seed=3"], " --set wind.gust_time_s=0: "),
        (["system.cables.links=7", "system.cables.1.links=0"], " --set system.cables.1.links=0: "),
        (["system.load.mass_kg=-1", "system=x500_duo"], " --set system.load.mass_kg=-1: "),
        (["system.cables.joint.bending_damping_n_m2_s=1"], " --set system.cables.joint.bend"),
        (["wind.foo.bar=1"], " --set wind.foo.bar=1: unknown key 'wind.foo'"),
        (["seed=3", "mission.stages.1.radus_m=1"], " --set mission.stages.1.radus_m=1: "),
        (["seed=3", f"description={'x' * 500}", "start=sea"], " --set start=sea: "),
    ],
)
def test_an_error_from_an_override_names_it_and_no_other(tiny, overrides, place):
    message = refused(tiny, *overrides)
    assert message.startswith(f"{tiny}{place}"), message
    assert message.count("--set") == 1


def test_an_error_of_the_file_is_not_put_on_overrides(tmp_path):
    (tmp_path / "bad.yaml").write_text(TINY.replace("radius_m: 1.2", "radius_m: -1"))
    message = refused(tmp_path / "bad.yaml", "seed=3", "mission.stages.0.duration_s=2")
    assert message.startswith(f"{tmp_path}/bad.yaml, line 6: mission.stages.1.radius_m = -1: ")


@pytest.mark.parametrize("index", ["²", "٣", "-1", "9" * 30])
def test_only_plain_digits_pick_an_element(tiny, index):
    message = refused(tiny, f"mission.stages.{index}.speed_m_s=3")
    assert "unknown key" in message or f"index {index} does not exist" in message


@pytest.mark.parametrize(
    "override", ["seed=" + "9" * 5000, "seed=yes", "seed=18446744073709551616"]
)
def test_seeds_that_are_none(tiny, override):
    assert "seed" in refused(tiny, override)


@pytest.mark.parametrize(
    "name",
    ["n" * 400, "n" * 400 + ".yaml", '"a\\0.yaml"', "../x500_duo", "3", "[x500_duo]", "{name: x}"],
)
def test_systems_that_no_name_or_file_can_be(tmp_path, name):
    message = refused_text(tmp_path, TINY.replace("x500_trio", name))
    assert message.startswith(f"{tmp_path}/bad.yaml, line 2: ") and len(message) < 600
    assert message.count(str(tmp_path)) <= 2


@pytest.mark.parametrize("name", ["", "{name: x}", "[x]", "n" * 400 + ".yaml", "n" * 400])
def test_overriding_systems_that_are_none(tiny, name):
    message = refused(tiny, f"system={name}")
    assert "--set system" in message and len(message) < 600


def test_a_name_too_long_for_a_folder_is_refused(tiny):
    assert "100 characters" in refused(tiny, "name=" + "n" * 101)
    assert load_scenario(tiny, ["name=" + "n" * 100])


@pytest.mark.parametrize("step", ["0.004", "0.002", "0.001", "0.0005", "0.0001", "auto"])
def test_steps_that_divide_the_control_period(tiny, step):
    chosen = load_scenario(tiny, [f"physics.step_size_s={step}"]).physics.step_size_s
    assert str(chosen) == step


@pytest.mark.parametrize("step", ["0.003", "0.0015", "0.005", "0.0", "-0.001", "1e-9", ".nan"])
def test_other_steps_are_refused(tiny, step):
    message = refused(tiny, f"physics.step_size_s={step}")
    assert "physics.step_size_s = " in message
    assert "0.004" in message and "auto" in message


def test_a_step_that_is_no_number_is_refused(tiny):
    assert "physics.step_size_s = 'fast'" in refused(tiny, "physics.step_size_s=fast")


# ---------- Checks before a flight


def check(scenario, *, force=False):
    """What a flight checks before it starts."""
    refuse_or_warn(scenario.brief, force=force)
    return scenario.hanging


@pytest.mark.filterwarnings(r"ignore:system.cables.1.twist = locked")  # `unequal`: by 7.8 deg
@pytest.mark.parametrize("name", NAMES)
def test_shipped_scenarios_can_fly(name):
    hanging = check(load_scenario(SHIPPED / f"{name}.yaml"))
    assert MIN_THRUST_MARGIN <= hanging.thrust_margin < 3.0
    # The formations are chosen so that the load hangs near its set-point.
    assert abs(hanging.sag_m) < 0.15


def test_thrust_margin_is_that_of_the_rotor_that_works_hardest(tiny):
    """A quarter of the thrust, and what rolls and pitches against the cable below the centre."""
    scenario = load_scenario(tiny)
    hanging = check(scenario)
    n, g = scenario.system.n_drones, scenario.physics.gravity_m_s2
    thrust = hanging.rest.drone_force_n
    # All thrusts together carry all weights.
    assert thrust.sum(axis=0) == pytest.approx([0.0, 0.0, scenario.system.mass_kg * g], abs=1e-6)
    drone, most = scenario.system.drones[0], scenario.system.drones[0].max_thrust_n
    x, y, _ = np.abs([rotor.position_m for rotor in drone.rotors]).mean(axis=0)
    roll, pitch, yaw = np.abs(hanging.rest.drone_moment_n_m).T
    assert roll.max() + pitch.max() > 0.01 and yaw.max() < 1e-3
    shares = np.linalg.norm(thrust, axis=1) / 4.0 + roll / (4.0 * y) + pitch / (4.0 * x)
    assert hanging.thrust_margin == pytest.approx(most / 4.0 / shares.max(), rel=1e-3)
    # The cables lean by little, so that it is not far below the one for vertical cables.
    straight = n * most / (scenario.system.mass_kg * g)
    assert 0.9 * straight < hanging.thrust_margin < straight


def test_the_weakest_drone_counts(tiny):
    hanging = check(load_scenario(tiny, ["system.drones.1.mass_kg=2.4"]))
    assert hanging.weakest == 2


def test_a_load_that_cannot_be_lifted_is_refused_with_the_margin(tiny):
    scenario = load_scenario(tiny, ["system.load.mass_kg=6"])
    margin = scenario.hanging.thrust_margin
    with pytest.raises(ConfigError, match=rf"margin {margin:.2f} .*--force"):
        check(scenario)
    assert margin < 1.0
    check(scenario, force=True)


@pytest.mark.parametrize("radius", [2.7, pytest.param(50.0, marks=pytest.mark.slow)])
def test_a_formation_out_of_the_cables_reach_is_refused(tiny, radius):
    scenario = load_scenario(tiny, [f"formation.radius_m={radius}"])
    with pytest.raises(ConfigError) as error:
        check(scenario)
    message = str(error.value)
    assert f"formation.radius_m = {radius:g}" in message and "drone_1 " in message
    with pytest.raises(ConfigError):  # --force is for thrust only
        check(scenario, force=True)


@pytest.mark.parametrize(
    ("stage", "refused"),
    [
        ("{kind: hold, position_m: [0, 0, 0.2]}", False),
        ("{kind: hold, position_m: [0, 0, 0.02]}", True),
        ("{kind: circle, height_m: 0.02}", True),
        ("{kind: line, start_m: [0, 0, 1], end_m: [0, 1, 0.01]}", True),
        ("{kind: waypoints, points: [{position_m: [0, 0, 1]}, {position_m: [1, 0, -1]}]}", True),
        ("{kind: engage}", False),  # goes below the ground on purpose
    ],
)
def test_a_load_that_would_touch_the_ground_is_refused(tiny, stage, refused):
    scenario = load_scenario(tiny, [f"mission.stages=[{{kind: hold, duration_s: 1}}, {stage}]"])
    if refused:
        with pytest.raises(ConfigError, match=r"mission\.stages\.1: .*ground"):
            check(scenario)
    else:
        check(scenario)


@pytest.mark.parametrize(
    "stage",
    [
        "{kind: hold, position_m: [0, 0, -5]}",
        "{kind: hold, position_m: [0, 0, 0]}",
        "{kind: engage}",
    ],
)
def test_from_the_air_too_the_load_must_not_touch_the_ground(tiny, stage):
    with pytest.raises(ConfigError, match=r"mission\.stages\.0: .*ground"):
        check(load_scenario(tiny, ["start=air", f"mission.stages=[{stage}]"]))


@pytest.mark.parametrize(("height_m", "where"), [(1.2, "below"), (3.6, "above")])
def test_a_formation_that_does_not_fit_the_cables_names_the_height_that_does(tiny, height_m, where):
    scenario = load_scenario(tiny, [f"formation.height_m={height_m}"])
    with pytest.raises(ConfigError, match=rf"height_m = {height_m}.*{where}.*about 2\.29 fits"):
        check(scenario)


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        ("MPC_XY=1", ["'MPC_XY'", "MPC_XY_P"]),
        ("MPC_XY_P=100", ["MPC_XY_P = 100", "[0, 20]"]),
        ("MPC_THR_HOVER=0.05", ["MPC_THR_MIN", "MPC_THR_HOVER"]),
    ],
)
def test_bad_px4_parameters_name_the_near_ones(tiny, tmp_path, parameter, words):
    scenario = load_scenario(tiny, [f"autopilot.parameters.{parameter}"])
    setup = AutopilotSetup(scenario, None, tmp_path, None)  # a start on the ground needs none
    with pytest.raises(ConfigError) as error:
        AUTOPILOTS["builtin"](setup)
    assert all(word in str(error.value) for word in words), error.value


def test_a_scenario_built_in_python_is_checked_too():
    system = load_system("x500_trio")
    scenario = Scenario(name="mine", system=system, mission={"stages": [{"kind": "circle"}]})
    assert scenario.mission.stages == (Circle(),)
    with pytest.raises(ConfigError, match="start"):
        Scenario(name="mine", system=system, mission={"stages": [{"kind": "circle"}]}, start="sea")
