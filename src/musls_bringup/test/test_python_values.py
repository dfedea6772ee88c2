"""Values that Python programs give: NumPy's numbers, and numbers beyond all physics."""

import subprocess
import sys

import numpy as np
import pytest

import musls
from musls_analysis.recordings.readers import read_recording
from musls_description.config.errors import ConfigError

HOP = {
    "system": "x500_duo",
    "start": "air",
    "formation": {"radius_m": 1.0, "height_m": 2.38},
    "mission": {"settle_s": 0.1, "stages": [{"kind": "hold", "duration_s": 0.1}]},
}


def test_numpy_numbers_and_arrays_are_numbers():
    changes = {
        "seed": np.int32(3),
        "formation.radius_m": np.float32(1.0),
        "wind.mean_enu_m_s": np.array([0.5, 0.0, 0.0]),
        "autopilot.flight_log": np.bool_(False),
        "cable_model": np.str_("massless"),
    }
    scenario = musls.load_scenario(HOP, changes)
    assert scenario.seed == 3 and scenario.wind.mean_enu_m_s == (0.5, 0.0, 0.0)
    with musls.Session(scenario, force=np.bool_(True)) as session:
        session.advance(np.int64(2))
        force = {"force_enu_n": np.array([0.0, 0.0, 1.0]), "duration_s": np.float32(0.1)}
        session.apply({"kind": "poke", **force})
        assert session.tick == 2
    envs = pytest.importorskip("musls.learning", exc_type=ImportError)
    env = envs.TransportEnv(overrides=changes, periods_per_step=np.int64(5))
    env.close()


@pytest.mark.parametrize("periods", [1.5, "1", None, np.float64(2.0)])
def test_advance_takes_whole_numbers(periods):
    with musls.Session(musls.load_scenario(HOP)) as session:
        with pytest.raises(TypeError, match="advance: periods must be a whole number"):
            session.advance(periods)
        with pytest.raises(ConfigError, match="periods = -1: a flight does not go back"):
            session.advance(-1)
        assert session.tick == 0


def test_a_deleted_working_folder_is_said(tmp_path):
    program = """
import os, musls
scenario = musls.load_scenario("hold")
os.rmdir(os.getcwd())
for act in (
    lambda: musls.load_scenario("hold"),
    lambda: musls.fly(scenario, out="x"),
    lambda: musls.sweep("time_step", out="x"),
):
    try:
        act()
    except musls.ConfigError as error:
        print(error)
"""
    gone = tmp_path / "gone"
    gone.mkdir()
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=gone, capture_output=True, text=True, timeout=60
    )
    assert told.stdout.count("present folder: No such file") == 3, told.stderr


@pytest.mark.parametrize("model", ["rigid_links", "elastic", "massless", "rigid_rods"])
def test_a_drag_that_no_air_has_is_refused_and_a_large_one_flies(model):
    most = {"system.load.drag_n_s_m": 99.0 * 1.66, "system.drones.drag_n_s_m": 99.0 * 2.064}
    for key, drag in most.items():
        for value, fits in ((1e6, False), (drag, True)):
            changes = {"cable_model": model, key: [value] * 3}
            if not fits:
                with pytest.raises(ConfigError, match=r"drag_n_s_m = 1e\+06 N s/m: would stop"):
                    musls.load_scenario("hold", changes)
                continue
            with musls.Session(musls.load_scenario("hold", changes)) as session:
                begin = session.state.position_enu_m.copy()
                session.advance(50)
                assert np.abs(session.state.position_enu_m - begin).max() < 0.02
    with pytest.raises(ConfigError, match=r"drag_n_s2_m_rad at full speed"):
        musls.load_scenario("hold", {"system.drones.rotors.drag_n_s2_m_rad": 1e6})


def test_a_layer_thicker_than_its_drum_is_refused():
    with pytest.raises(ConfigError, match=r"layer_m = 1e\+09: a layer of cable is not thicker"):
        musls.load_scenario("crane", {"system.winches.0.layer_m": 1e9})
    with pytest.raises(ConfigError, match="layer_m belongs to kind: drum, not to feed"):
        musls.load_scenario("winch_delivery", {"system.winches.0.layer_m": 1e9})


@pytest.mark.parametrize("last", ["1e300", "nan", "-2e9"])
def test_recorded_set_points_beyond_all_numbers(tmp_path, last):
    path = tmp_path / "a.csv"
    path.write_text(f"time_s,x_m,y_m,z_m,yaw_rad\n0,0,0,1,0\n1,0,0,1,0\n{last},0,0,1,0\n")
    with pytest.raises(ConfigError, match=r"a\.csv, line 4: .* beyond 1e\+09"):
        musls.load_scenario("hold", {"mission.stages": [{"kind": "recorded", "path": str(path)}]})


def test_cables_of_more_links_than_are_flown_are_refused_by_their_number():
    assert musls.load_scenario("hold", {"system.cables.links": 201}).system.cables[0].links == 201
    with pytest.raises(ConfigError, match=r"links = 1001: .* less than or equal to 1000"):
        musls.load_scenario("hold", {"system.cables.links": 1001})


def test_recorded_times_that_are_no_times_apart(tmp_path):
    header = "t," + ",".join(f"{b}_{p}" for b in ("load", "d1") for p in PARTS)
    times = ["0", "1e-300", "0.1", "0.2"]
    rows = [f"{t}," + ",".join(f"0.{k}{j}" for j in range(12)) for k, t in enumerate(times)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    run = read_recording(path)
    assert run.bodies["load"].time_s.tolist() == [1e-300, 0.1, 0.2]
    assert "1 sample of load at the time of another dropped" in run.warnings
    speed = np.diff(run.bodies["load"].position_enu_m, axis=0) / 0.1
    assert np.isfinite(speed).all()


PARTS = ("x", "y", "z", "roll", "pitch", "yaw")


@pytest.mark.parametrize("level", ["rotor_speeds", "ideal_thrust_moment"])
@pytest.mark.parametrize("value", [-1e5, 1e9])
def test_an_absurd_command_is_the_controllers(level, value):
    class Mine(musls.Controller):
        def step(self, time_s, reference, estimate):
            return np.full((2, 4), value)

    Mine.level = level
    with pytest.raises(musls.UserCodeError, match=rf"Mine.step at .* returned {value}.*within"):
        musls.fly(HOP, controller=Mine)


def test_forces_that_are_not_finite_name_what_jams():
    from musls_sim.plants.interface import PlantInputs
    from musls_sim.plants.rigid_links.period import NOT_FINITE
    from musls_sim.plants.rigid_links.plant import message

    for contact, named in ((["load", "drones", "cables"], True), (["load", "drones"], False)):
        session = musls.Session(musls.load_scenario("solo", {"physics.contact": contact}))
        inputs = PlantInputs.zeros(session.scenario.system)
        told = message(session.plant, inputs, NOT_FINITE)
        assert "rotor commands" not in told and ("cables that jam" in told) is named
        inputs.rotor_command_rad_s[0, 0] = np.nan
        assert "check rotor commands" in message(session.plant, inputs, NOT_FINITE)
    for name, fits in (("hold", True), ("quad", False)):  # drones on given paths
        plant = musls.Session(musls.load_scenario(name)).plant
        plant.records.system[0]["guided"] = 1
        told = message(plant, PlantInputs.zeros(plant.system), NOT_FINITE)
        assert ("choose cable model elastic or massless" in told) is not fits
