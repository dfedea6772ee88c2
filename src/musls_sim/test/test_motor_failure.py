"""A motor that stops on a drone in the air, against the closed form of its turn."""

import numpy as np
import pytest

from musls_bringup.catalogue.scenarios import load_scenario
from musls_control.controllers import Controller
from musls_sim.session.session import Session

SPEED = 600.0


class Constant(Controller):
    """The same speed for all rotors."""

    level = "rotor_speeds"

    def step(self, time_s, reference, estimate):
        """See `Controller.step`."""
        return np.full((1, 4), SPEED)


@pytest.mark.parametrize("cable_model", ["rigid_links", "elastic"])
@pytest.mark.parametrize("rotor", [1, 3])
def test_angular_acceleration_of_a_free_drone(cable_model, rotor):
    """J domega/dt = -(r x k w^2 e_z + s c k w^2 e_z): what the rotor that stops gave.

    The cable is slack and pulls at the centre of mass; s is 1 for a rotor that turns clockwise.
    """
    changes = {
        "cable_model": cable_model,
        "system.cables.links": 2,
        "system.cables.mass_kg": 1e-4,
        "system.drones.cable_attachment_m": [0, 0, 0],
        "system.drones.rotors.drag_n_s2_m_rad": 0.0,
        "start": {
            "kind": "state",
            "load": {"position_enu_m": [0, 0, 10]},
            "drones": [{"position_enu_m": [0.9, 0, 11.5], "orientation_wxyz": [0, 0, 0, 1]}],
        },
        "mission.stages": [{"kind": "hold", "position_m": [0, 0, 10], "duration_s": 5.0}],
        "events": [{"kind": "rotor_failure", "drone": 1, "rotor": rotor, "when": {"time_s": 0.3}}],
    }
    scenario = load_scenario("solo", changes)
    drone = scenario.system.drones[0]
    stopped = drone.rotors[rotor - 1]
    thrust_n = stopped.thrust_coefficient_n_s2 * SPEED**2
    turn = 1.0 if stopped.spin == "cw" else -1.0
    lever = np.cross(stopped.position_m, [0.0, 0.0, thrust_n])
    gave = lever + [0.0, 0.0, turn * stopped.moment_ratio_m * thrust_n]
    expected = -np.linalg.solve(np.array(drone.inertia_kg_m2), gave)
    with Session(scenario, controller=Constant()) as session:
        session.advance(75)
        assert not session.events.happened
        before = session.state.omega_body_rad_s[1].copy()
        session.advance(1)
        gained = (session.state.omega_body_rad_s[1] - before) / session.plant.period_s
    assert session.events.happened[0].what == f"drone_1: rotor {rotor} stopped"
    np.testing.assert_allclose(gained, expected, rtol=2e-3, atol=0.02 * np.abs(expected).max())
