"""A recording of `import musls` knows its errors and figures, wherever it comes from."""

import os
import subprocess
import sys
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

import musls
from musls_analysis.recordings.recording import PoseTrack, RecordedEvent, RecordedStage
from musls_bringup.api.recording import Recording
from musls_description.config.errors import ConfigError
from musls_description.config.schema import to_data, to_yaml


@pytest.fixture
def run():
    time_s = np.linspace(0.0, 2.0, 41)
    level = np.tile([1.0, 0.0, 0.0, 0.0], (41, 1))
    load = PoseTrack(time_s, np.column_stack([time_s, 0.0 * time_s, 0.0 * time_s]), level)
    wanted = PoseTrack(time_s[:1], np.zeros((1, 3)), level[:1])
    return Recording(
        {"load": load, "drone_1": load}, {"load": wanted},
        stages=[RecordedStage("lift", 0.0, 1.0), RecordedStage("hold", 1.0, 2.0)],
        events=[RecordedEvent(0.5, "gust", "east")], warnings=["1 row dropped"],
    )  # fmt: skip


def test_a_load_that_sinks_to_the_ground_is_told_in_a_flight_from_the_air():
    """Autopilots of drones that rods join work against each other."""
    changes = {"cable_model": "rigid_rods", "mission.stages.0.duration_s": 5.0}
    with pytest.warns(
        musls.InvalidFlightWarning, match="invalid flight: the load is on the"
    ) as told:
        (line,) = musls.fly(musls.load_scenario("hold", changes)).warnings
    assert told[0].filename == __file__
    assert line.startswith("the load is on the ground at 3.") and line.endswith("in hold")


def test_errors_and_figures(run):
    assert musls.Recording is Recording and Recording.of(run).errors()[0] == run.errors()[0]
    assert run.errors().by_body()["load"]["hold"]["translational_error_m"] == pytest.approx(1.5)
    assert run.plot().axes and run.plot("pose_load").axes
    with pytest.raises(musls.ConfigError, match="no figure 'tensions' of this recording; it has"):
        run.plot("tensions")


def test_a_flight_is_a_table_of_pandas():
    """Each column is the array of that name at the times of the load's poses."""
    pd = pytest.importorskip("pandas")
    changes = {"cable_model": "massless", "start": "air", "mission.stages.0.duration_s": 1.0}
    run = musls.fly(musls.load_scenario("hold", changes))
    table = run.to_pandas()
    assert isinstance(table, pd.DataFrame) and table.index.name == "time_s"
    load, drone, cable = run.body("load"), run.drone(2), run.cable(3)
    np.testing.assert_array_equal(table.index, run.time_s)
    for name, values in {
        "load.position_enu_m.z": load.position_enu_m[:, 2],
        "drone_2.orientation_wxyz.w": drone.orientation_wxyz[:, 0],
        "drone_2.omega_body_rad_s.x": drone.omega_body_rad_s[:, 0],
        "drone_2.rotors.speed_rad_s.4": drone.rotor_speed_rad_s[:, 3],
        "load.setpoint.position_enu_m.z": load.setpoint.held_at(run.time_s).position_enu_m[:, 2],
    }.items():
        np.testing.assert_array_equal(table[name], values, err_msg=name)
    at_drone_n = np.interp(run.time_s, cable.time_s, cable.tension_n[:, 1])
    np.testing.assert_allclose(table["cable_3.tension_n.2"], at_drone_n)
    assert list(dict.fromkeys(table["stage"])) == [stage.name for stage in run.stages]


def test_notebooks_and_terminals_show_it(run):
    html = run._repr_html_()
    assert html.count("<tr>") == 1 + len(run.errors()) and "1 event" in html
    assert "<p>1 row dropped</p>" in html
    console = Console(width=120, record=True, file=StringIO())
    console.print(run)
    assert "lift" in console.export_text()


def test_scenarios_and_systems_written_in_python():
    """The same flight as from files, with NumPy's numbers; a mistake names its key."""
    system = to_data(musls.load_system("x500_trio"))
    system["load"]["mass_kg"] = np.float64(1.66)
    system["load"]["cable_attachments_m"] = np.array(system["load"]["cable_attachments_m"])
    hold = {"kind": "hold", "position_m": np.array([0.0, 0.0, 1.0]), "duration_s": np.float32(0.5)}
    stages = {"settle_s": 0, "stages": [hold]}
    written = {"name": "hold", "system": system, "start": "air", "mission": stages}
    changes = {"start": "air", "mission": stages}
    named = musls.load_scenario("hold", {"system": "x500_trio", **changes})
    written["description"] = named.description
    assert to_data(musls.load_scenario(written)) == to_data(named)
    assert to_data(musls.load_scenario("hold", {"system": system, **changes})) == to_data(named)
    typed = {"system": musls.load_system("x500_trio"), **changes}
    assert to_data(musls.load_scenario("hold", typed)) == to_data(named)
    assert musls.load_scenario(named, {"seed": np.int64(7)}).seed == 7
    assert musls.load_system(system) == named.system
    run = musls.fly("hold", seed=0, set={"system": "x500_trio", **changes})
    other = musls.fly(written)
    assert (run.body("load").position_enu_m == other.body("load").position_enu_m).all()
    system["load"]["mass_kg"] = -1.0
    for source, more in ((written, {}), ("hold", {"system": system})):
        with pytest.raises(musls.ConfigError, match=r"load\.mass_kg = -1\.0"):
            musls.load_scenario(source, more)


def test_parts_from_files_of_ones_own(tmp_path):
    """`from: frame.yaml` lies beside the system's file; its keys are checked as all others."""
    part = to_data(musls.load_system("x500_solo").drones[0])
    (tmp_path / "frame.yaml").write_text(to_yaml({**part, "mass_kg": 2.3}))
    (tmp_path / "own.yaml").write_text(
        "name: own\nload: {mass_kg: 0.5, shape: {kind: box, size_m: [0.2, 0.2, 0.1]},"
        " cable_attachments_m: [[0, 0, 0.05]]}\n"
        "drones: {from: frame.yaml, cable_attachment_m: [0, 0, -0.05]}\ncables: {from: rope}\n"
    )
    drone = musls.load_system(str(tmp_path / "own.yaml")).drones[0]
    assert drone.mass_kg == 2.3 and drone.cable_attachment_m == (0.0, 0.0, -0.05)
    for bad, message in ((None, "no such file"), ("from: x500", "without from"), ("a: [", "line")):
        (tmp_path / "frame.yaml").unlink(missing_ok=True)
        if bad is not None:
            (tmp_path / "frame.yaml").write_text(bad)
        with pytest.raises(musls.ConfigError, match=rf"own.yaml, line 3: from: .*{message}"):
            musls.load_system(str(tmp_path / "own.yaml"))


def test_nested_overrides_leave_the_keys_that_they_do_not_name():
    keys = {"system.load.mass_kg": 2.0, "mission.settle_s": 0.5}
    dotted = musls.load_scenario("hold", {**keys, "autopilot.parameters.MPC_XY_P": 1})
    nested = musls.load_scenario(
        "hold",
        {
            "system": {"load": {"mass_kg": np.float64(2.0)}},
            "mission": {"settle_s": 0.5},
            "autopilot": {"parameters": {"MPC_XY_P": 1}},
        },
    )
    assert to_data(nested) == to_data(dotted)
    longer = musls.load_scenario("hold", {"system": {"cables": {0: {"length_m": 3.0}}}})
    assert [cable.length_m for cable in longer.system.cables] == [3.0, 2.42, 2.42]
    first = {"kind": "hold", "position_m": [0, 0, 2], "duration_s": 1}
    replaced = musls.load_scenario("circle", {"mission": {"stages": {0: first}}})
    assert replaced.mission.stages[0].kind == "hold"
    forces = musls.load_scenario("hold", {"controller": {"kind": "payload"}})
    assert forces.controller.kind == "payload"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"system": {"load": {"mass_kg": -1}}}, r"override system\.load\.mass_kg=-1: .*greater"),
        ({"system": {"lod": {"mass_kg": 1}}}, r"override .*unknown key 'system\.lod': "),
        ({"system": {"name": "x", "load": {}, "cables": []}}, r"override system=.*: "),
        ({"system": "x500_tri"}, r"override system=x500_tri: unknown system"),
        (["seed"], r"override seed: expected key"),
    ],
)
def test_mistakes_in_overrides_are_named_as_python_has_them(changes, message):
    with pytest.raises(musls.ConfigError, match=message) as caught:
        musls.load_scenario("hold", changes)
    assert "--set" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: musls.fly(3), ConfigError, "unknown scenario '3'"),
        (lambda: musls.fly("hold", set=5), ConfigError, "overrides = 5: must be a mapping"),
        (lambda: musls.fly("hold", set=[5]), ConfigError, r"overrides = \[5\]: must be a mapping"),
        (lambda: musls.fly("hold", set="seed=3"), ConfigError, "must be a mapping .*, or a list"),
        (lambda: musls.fly("hold", seed="a"), ConfigError, "seed = 'a': must be a whole number"),
        (lambda: musls.fly("hold", controller="pid"), ConfigError, "not a musls.Controller"),
        (lambda: musls.Session("hold"), TypeError, "scenario must be a Scenario, not 'hold'"),
        (lambda: musls.sweep(3), ConfigError, "unknown sweep '3'"),
        (lambda: musls.load_system(3), ConfigError, "unknown system '3'"),
        (lambda: musls.replay(3), ConfigError, "recording = 3: must be a Recording"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


COMPILING = """
from musls_bringup.flight.fly import second_compiler
from musls_sim.session.compiled_stages.world import end_period, play_plan

with second_compiler((end_period, play_plan)):
    for stage in (play_plan, end_period):
        stage.address
        print(stage._compiled.cache_hits, stage.is_kept)
"""


def test_stages_are_compiled_by_another_process(tmp_path):
    """This one waits for what has begun there, and does itself what has not."""
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    words = [sys.executable, "-c", COMPILING]
    ended = subprocess.run(words, env=env, capture_output=True, text=True, timeout=300)
    assert (ended.returncode, ended.stdout) == (0, "0 True\n1 True\n"), ended.stderr
