"""Gains of the payload controller from its linear model: stable, with the margins that are told."""

from dataclasses import replace

import numpy as np
import pytest

from musls_control.controllers import ControlSetup
from musls_control.controllers.payload.model import PayloadModel
from musls_control.controllers.payload.synthesis import (
    SPREADING,
    TRACKING,
    Actuator,
    Hanging,
    horizontal_gains,
    place_gains,
    yaw_gains,
)
from musls_description.hanging.cone import Cone
from musls_description.system.system_files import load_system

G, TURN_S = 9.81, 0.08


def hanging(length_m, share):
    """A load of a share of the drones' mass below them."""
    return Hanging(G / length_m, G / length_m * share)


def actuator(turn_s, delay_s):
    """Drones that turn as a second-order system with damping 0.8."""
    frequency = 1.6 / turn_s
    return Actuator(lambda s: frequency**2 / (s * s + 1.6 * frequency * s + frequency**2), delay_s)


def growth_1_s(hangs, gains, turn_s, delay_s, factor=1.0):
    """Largest real part of the poles, the delay as a Padé fraction: a second way to them."""
    s = np.polynomial.Polynomial([0.0, 1.0])
    frequency = 1.6 / turn_s
    answer, below = frequency**2 + 0.0 * s, s * s + 1.6 * frequency * s + frequency**2
    order = 4  # of exp(-T s)
    up = down = np.polynomial.Polynomial([0.0])
    weight = 1.0
    for k in range(order + 1):
        up, down = up + weight * (-s) ** k, down + weight * s**k
        weight *= delay_s * (order - k) / ((k + 1) * (2 * order - k))
    through = gains.direction_1_s2 + hangs.load_1_s2
    law = (gains.direction_1_s2 - hangs.drone_1_s2) * s**2 + gains.rate_1_s * s**3
    law = law + through * (gains.position_1_s2 + gains.velocity_1_s * s)
    plant = s**2 * (s**2 + hangs.load_1_s2 + hangs.drone_1_s2)
    return (plant * below * down + factor * answer * up * law).roots().real.max()


@pytest.mark.parametrize("length_m", [0.7, 2.4, 24.0, 43.7])
@pytest.mark.parametrize("share", [0.03, 0.25, 1.0])
def test_the_loop_is_as_stable_as_its_margins_say(length_m, share):
    hangs, delay_s = hanging(length_m, share), 0.04
    gains = horizontal_gains(hangs, actuator(TURN_S, delay_s), alone=True)
    assert growth_1_s(hangs, gains, TURN_S, delay_s) < -0.02 * np.sqrt(hangs.load_1_s2)
    told = gains.load
    for factor, grows in (
        (0.85 * told.gain_up, False),
        (1.15 * told.gain_up, True),
        (1.15 / told.gain_down, False),  # all that is told is at least true
    ):
        if 0.05 < factor < 50.0:
            assert (growth_1_s(hangs, gains, TURN_S, delay_s, factor) > 0.0) == grows
    for more, grows in ((0.9, False), (1.1, True)):
        late_s = delay_s + more * told.delay_s
        if late_s < 2.0 / np.sqrt(hangs.load_1_s2):  # as far as the fraction is good
            assert (growth_1_s(hangs, gains, TURN_S, late_s) > 0.0) == grows


@pytest.mark.parametrize("length_m", [0.7, 2.4, 24.0])
def test_what_is_demanded_is_kept_where_delays_allow(length_m):
    gains = horizontal_gains(hanging(length_m, 0.25), actuator(TURN_S, 0.04), alone=False)
    assert gains.share == 1.0 and gains.spread is not None
    for found, demand in ((gains.load, TRACKING), (gains.spread, SPREADING)):
        assert min(found.gain_up, found.gain_down) >= demand.gain
        assert found.phase_deg >= demand.phase_deg and found.distance >= demand.distance
        assert found.delay_s >= demand.delays * 0.04


def test_a_system_and_its_likeness_have_the_same_gains_up_to_scale():
    """Lengths by s, times by its root; and delays that stay make a small system slower."""
    base = horizontal_gains(hanging(2.4, 0.25), actuator(TURN_S, 0.04), alone=False)
    for s in (0.1, 0.5, 10.0):
        like = actuator(TURN_S * np.sqrt(s), 0.04 * np.sqrt(s))
        found = horizontal_gains(hanging(2.4 * s, 0.25), like, alone=False)
        for name, power in (
            ("direction_1_s2", -1.0),
            ("rate_1_s", -0.5),
            ("position_1_s2", -1.0),
            ("velocity_1_s", -0.5),
        ):
            assert getattr(found, name) == pytest.approx(getattr(base, name) * s**power, rel=1e-6)
    late = horizontal_gains(hanging(0.24, 0.25), actuator(TURN_S, 0.04), alone=False)
    assert late.position_1_s2 < 10.0 * base.position_1_s2


def test_the_yaw_takes_the_gains_of_the_cables_and_keeps_a_margin():
    hangs, drones = hanging(2.4, 0.25), actuator(TURN_S, 0.04)
    cables = horizontal_gains(hangs, drones, alone=False)
    turning = Hanging(40.0, 0.1, counted=False, rate_share=0.9)
    found = yaw_gains(turning, drones, cables)
    assert found.direction_1_s2 == pytest.approx(cables.direction_1_s2)
    assert found.share > 0.0 and found.load.delay_s > 0.02
    slack = yaw_gains(replace(turning, load_1_s2=4.0), drones, cables)
    assert slack.position_1_s2 < found.position_1_s2


@pytest.mark.parametrize("radius_share", [0.1, 0.3])
def test_the_yaw_of_a_load_of_little_inertia_keeps_most_of_the_demand(radius_share):
    """A load that turns faster than drones follow: 17 degrees, where the swing was passed over."""
    hangs, drones = hanging(2.42, 0.26), actuator(TURN_S, 0.037)
    cables = horizontal_gains(hangs, drones, alone=False)
    found = yaw_gains(Hanging(33.0, 0.12, False, 1.0 - radius_share), drones, cables)
    assert found.share >= 0.8 and found.load.phase_deg >= 32.0
    felt = (1.0 - 0.12 / found.direction_1_s2) * 33.0
    assert found.position_1_s2 == pytest.approx(felt, rel=0.3)


def model_of(name):
    """Model of a shipped system in a formation of 1.2 m radius, 2 m above the load."""
    cone = Cone(radius_m=0.0 if name == "x500_solo" else 1.2, height_m=2.0)
    return PayloadModel(ControlSetup(load_system(name), cone, G, 0.004))


def test_a_load_on_one_cable_goes_aside_as_a_pendulum_does():
    """A push d leans cable and load by d / (m g): its centre goes aside by (l + z) d / (m g)."""
    model = model_of("x500_solo")
    (soft, stiff), compliance = model.held(1e4, 1e4)
    length_m = model.lengths_m[0] + model.attachments_m[0, 2]
    expected = length_m / (model.mass_kg * G)
    np.testing.assert_allclose(np.diag(compliance)[:2], expected, rtol=1e-3)
    assert soft.load_1_s2 == pytest.approx(stiff.load_1_s2, rel=1e-6)
    assert soft.load_1_s2 == pytest.approx(G / length_m, rel=0.05)


def test_cables_that_spread_hold_the_load_more_firmly_than_one():
    spread = model_of("x500_quad")
    (soft, _), _ = spread.held(2.0, 8.0)
    assert soft.load_1_s2 > 1.2 * spread.hanging.load_1_s2
    drones = actuator(TURN_S, 0.04)
    gains = place_gains((soft, replace(soft, load_1_s2=3.0 * soft.load_1_s2)), drones, alone=False)
    for factor in (1.0, 3.0):  # one set of gains for both axes
        along = replace(soft, load_1_s2=factor * soft.load_1_s2)
        through = (gains.direction_1_s2 + soft.load_1_s2) / soft.load_1_s2
        own = gains.direction_1_s2 - soft.drone_1_s2
        direction = own + along.drone_1_s2
        back = through * along.load_1_s2 / (direction + along.load_1_s2)
        likewise = replace(
            gains,
            direction_1_s2=direction,
            position_1_s2=back * gains.position_1_s2,
            velocity_1_s=back * gains.velocity_1_s,
        )
        assert growth_1_s(along, likewise, TURN_S, 0.04) < 0.0
