"""The PIDs of 002 on the paper's drone: disturbances and steps against closed forms, limits."""

import numpy as np
import pytest
from scipy.signal import TransferFunction, step

from musls_control.autopilot import DroneSetpoints
from musls_control.controllers.pid import CascadedPid, PidSpec
from musls_control.estimate import BodyMotion
from musls_description.config.errors import ConfigError
from musls_description.config.schema import build
from musls_description.numerics.rotations import from_yaw, product, roll_pitch_yaw, rotate

G, DT = 9.81, 0.002
MASS, INERTIA = 10.0224, np.diag([0.27, 0.26, 0.42])
FREE = np.array([1e4]), np.full((1, 3), 1e4)
SPEC = PidSpec()


class Hover:
    """One rigid drone whose thrust and moments act at once; a push acts on its centre of mass."""

    def __init__(self, limits=FREE, mass=MASS, yaw=0.0):
        rows = [SPEC.height, SPEC.sideways, SPEC.roll, SPEC.pitch, SPEC.yaw]
        self.pid = CascadedPid(
            rows, [MASS], INERTIA[None], limits,
            gravity_m_s2=G, period_s=DT, largest_tilt_rad=0.6,
        )  # fmt: skip
        self.mass, self.body = mass, BodyMotion.zeros(1)
        self.body.orientation_wxyz[0] = from_yaw(np.array(yaw))
        self.pid.start(self.body)

    def fly(self, duration_s, place=(0.0, 0.0, 0.0), yaw=0.0, push=(0.0, 0.0, 0.0)):
        """Positions and angles over time, (k, 6)."""
        b, wanted = self.body, DroneSetpoints.zeros(1)
        wanted.position_enu_m[0], wanted.yaw_enu_rad[0] = place, yaw
        history = []
        for _ in range(round(duration_s / DT)):
            thrust, *moment = self.pid.step(wanted, b)[0]
            force = rotate(b.orientation_wxyz[0], np.array([0.0, 0.0, thrust])) + np.array(push)
            b.acceleration_enu_m_s2[0] = force / self.mass - [0.0, 0.0, G]
            b.velocity_enu_m_s[0] += DT * b.acceleration_enu_m_s2[0]
            b.position_enu_m[0] += DT * b.velocity_enu_m_s[0]
            w = b.omega_body_rad_s[0]
            w += DT * np.linalg.solve(INERTIA, moment - np.cross(w, INERTIA @ w))
            turn = np.concatenate([[1.0], 0.5 * DT * w])
            b.orientation_wxyz[0] = product(b.orientation_wxyz[0], turn / np.linalg.norm(turn))
            history.append([*b.position_enu_m[0], *roll_pitch_yaw(b.orientation_wxyz[0])])
        return np.array(history)


def closed_form(gains, times):
    """Unit step of s^3 + D s^2 + P s + I, the derivative of the measured value alone."""
    p, i, d = gains
    return step(TransferFunction([p, i], [1.0, d, p, i]), T=times)[1]


def test_defaults_are_the_forces_of_the_papers_table_over_its_mass_and_inertia():
    lever, yaw_lever = 4.0 * 0.351717, 4.0 * 0.0381107
    for own, table, effect in (
        (SPEC.height, (28.0, 22.0, 18.0), 4.0 / MASS),
        (SPEC.roll, (3.93, 0.09, 15.68), lever / 0.27),
        (SPEC.pitch, (3.93, 0.089, 15.68), lever / 0.26),
        (SPEC.yaw, (129.11, 81.29, 7.17), yaw_lever / 0.42),
    ):
        assert own == pytest.approx(np.array(table) * effect, rel=2e-3)


def test_a_dropped_payload_lets_the_drone_rise_as_the_closed_form_says():
    """2 kg off at once: peak 0.124 m after 1.07 s; the error's integral is 19.62 / 88 m s."""
    flight = Hover(mass=MASS - 2.0)
    height = flight.fly(12.0)[:, 2]
    assert height.max() == pytest.approx(0.124, abs=0.001)
    assert DT * (1 + height.argmax()) == pytest.approx(1.07, abs=0.02)
    assert DT * height.sum() == pytest.approx(2.0 * G / 88.0, rel=2e-3)
    assert abs(height[-1]) < 1e-3


@pytest.mark.parametrize("yaw", [0.0, 2.0])
def test_a_steady_gust_pushes_the_drone_as_far_as_the_closed_form_says(yaw):
    """3.66 N, wind of 10 m/s: 0.061 m after 3.7 s, whatever the heading; then it comes back."""
    flight = Hover(yaw=yaw)
    path = flight.fly(6.0, yaw=yaw, push=(0.0, 3.66, 0.0))
    assert path[:, 1].max() == pytest.approx(0.061, abs=0.001)
    assert DT * path[:, 1].argmax() == pytest.approx(3.7, abs=0.3)
    assert abs(path[:, 0]).max() < 1e-3
    assert path[-1, 1] < path[:, 1].max() - 0.003


def test_steps_of_height_and_yaw_are_those_of_the_transfer_function():
    flight = Hover()
    path = flight.fly(6.0, place=(0.0, 0.0, 0.1), yaw=0.1)
    times = DT * np.arange(1, len(path) + 1)
    assert path[:, 2] == pytest.approx(0.1 * closed_form(SPEC.height, times), abs=1e-3)
    assert path[:, 5] == pytest.approx(0.1 * closed_form(SPEC.yaw, times), abs=4e-3)


def test_a_sideways_step_converges_at_any_heading():
    flight = Hover(yaw=-2.3)
    path = flight.fly(16.0, place=(0.5, -0.8, 0.0), yaw=-2.3)
    assert path[-1, :3] == pytest.approx([0.5, -0.8, 0.0], abs=0.05)
    assert path[:, 1].min() > -0.8 * 1.2


def test_integrals_wait_while_the_output_is_limited_and_pushed_on():
    """From 30 m below with little thrust to spare, and from 40 m beside: no wind-up."""
    weak = np.array([1.2 * MASS * G]), np.full((1, 3), 5.0)
    flight = Hover(weak)
    path = flight.fly(1.0, place=(40.0, 0.0, 30.0))
    assert flight.pid.integrals[0, :3] == pytest.approx(np.zeros(3), abs=1e-12)
    assert np.hypot(path[:, 3], path[:, 4]).max() < 0.7
    flight = Hover(weak)
    path = flight.fly(18.0, place=(0.0, 0.0, 30.0))
    assert path[:, 2].max() < 30.0 * 1.2
    assert path[-1, 2] == pytest.approx(30.0, abs=0.3)


def test_taking_over_holds_tilt_and_moments():
    flight = Hover()
    tilted = np.array([[np.cos(0.05), 0.0, -np.sin(0.05), 0.0]])
    flight.body.orientation_wxyz[:] = tilted
    held = np.array([[0.02, -0.1, 0.005]])
    flight.pid.start(flight.body, held)
    asked = flight.pid.step(DroneSetpoints.zeros(1), flight.body)
    assert asked[0, 1:] == pytest.approx(held[0], abs=1e-9)


def test_gains_are_refused_where_their_loop_is_unstable():
    """C7: the table's height loop holds up to 91.6 kg; C12: its yaw loop from b_T 9.22 mm on."""

    def height(mass_kg):
        return {"height": [4.0 * gain / mass_kg for gain in (28.0, 22.0, 18.0)]}

    def yaw(reach_m):
        return {"yaw": [4.0 * reach_m * gain / 0.42 for gain in (129.11, 81.29, 7.17)]}

    for stable in (height(91.5), yaw(0.0093)):
        build(PidSpec, stable, "controller")
    for unstable in (height(91.8), yaw(0.0091)):
        with pytest.raises(ConfigError, match="unstable"):
            build(PidSpec, unstable, "controller")
