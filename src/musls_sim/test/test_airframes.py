"""Other airframes than the x500 carry their loads: shipped ones, and an x500 by another name."""

from pathlib import Path

import numpy as np
import pytest

from musls_control.px4 import RotorLayout
from musls_control.px4.allocation import gains, rotor_layout
from musls_description.system.system_files import load_system
from musls_sim.autopilots import hover_parameters
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session

SHIPPED = Path(__file__).parents[2] / "musls_bringup" / "musls_bringup" / "scenarios"


def flown(name, *overrides):
    run = Session(load_scenario(SHIPPED / f"{name}.yaml", overrides))
    return run, run.run()


def test_crazyflies_hold_a_load_in_the_air():
    run, _ = flown(
        "crazyflie",
        "mission.stages=[{kind: hold, duration_s: 3, position_m: [0, 0, 0.6]}]",
        "mission.settle_s=0.5",
        "estimation={kind: truth}",
    )
    state = run.plant.state
    assert np.linalg.norm(state.position_enu_m[0] - [0.0, 0.0, 0.6]) < 0.03
    assert np.abs(state.velocity_enu_m_s).max() < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [(), ("autopilot.parameters={}",)], ids=["own", "computed"])
def test_crazyflies_carry_a_load_round_a_circle(parameters):
    run, _ = flown("crazyflie", *parameters)
    assert np.linalg.norm(run.plant.state.position_enu_m[0] - [0.5, 0.0, 0.6]) < 0.2
    assert (run.plant.state.position_enu_m[:, 2] > 0.5).all()


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [(), ("autopilot.parameters={}",)], ids=["own", "computed"])
def test_hexarotors_lift_a_crate_and_land(parameters):
    run, _ = flown(
        "typhoon",
        "mission.stages=[{kind: hold, duration_s: 4, position_m: [0, 0, 0.8]}]",
        *parameters,
    )
    assert run.guidance.landed
    assert np.linalg.norm(run.plant.state.position_enu_m[0, :2]) < 0.3
    assert (run.plant.state.position_enu_m[1:, 2] < 0.3).all()


def test_an_x500_by_another_name_flies():
    """The true moment ratio of 0.016 m used to fall under PX4's rule for 0.05."""
    run, _ = flown(
        "hold", "system.drones.model=foo", "mission.stages.0.duration_s=2",
        "mission.settle_s=0.2", "estimation={kind: truth}",
    )  # fmt: skip
    assert np.linalg.norm(run.plant.state.position_enu_m[0] - [0.0, 0.0, 1.0]) < 0.05


def test_the_x500_is_told_what_px4_tells_it():
    drone = load_system("x500_trio").drones[0]
    assert rotor_layout(drone) == RotorLayout.x500()
    assert gains(drone, 9.80665) == {}
    (parameters, *_) = hover_parameters(load_scenario(SHIPPED / "hold.yaml"))
    assert set(parameters) == {"MPC_THR_HOVER"}
