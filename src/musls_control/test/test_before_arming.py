"""Before drones are armed: who stands where, reach of cables, distances and speeds of the plan."""

import numpy as np
import pytest

from musls_control.mission.plan import GroundSpot, compile_plan
from musls_control.mission.spec import MissionSpec
from musls_control.real_flight.before_arming import ArmingLimits, _check_places, _check_plan
from musls_description.config.errors import ConfigError
from musls_description.config.schema import build
from musls_description.hanging.cone import Cone
from musls_description.system.system_files import load_system

SYSTEM, CONE, LIMITS = load_system("x500_trio"), Cone(), ArmingLimits()
HOLD = {"kind": "hold", "duration_s": 1.0, "position_m": [0.0, 0.0, 1.0]}


def check(places=None, *, yaw_rad=0.0, tied=True, limits=LIMITS, **mission):
    """Check the plan of drones that stand at places, (3, 3), by default where they belong."""
    if places is None:
        places = Cone(radius_m=1.5).offsets_m(3) * [1.0, 1.0, 0.0] + [0.0, 0.0, 0.24]
    ground = GroundSpot(np.array([0.0, 0.0, 0.05]), yaw_rad, np.asarray(places))
    plan = compile_plan(build(MissionSpec, {"stages": [HOLD], **mission}, ""), CONE, ground)
    _check_places(SYSTEM, plan, ground, limits, tied=tied)
    _check_plan(SYSTEM, plan, limits)


def standing(radius_m=1.5, turned_rad=0.0):
    cone = Cone(radius_m=radius_m, first_azimuth_rad=turned_rad)
    return cone.offsets_m(3) * [1.0, 1.0, 0.0] + [0.0, 0.0, 0.24]


@pytest.mark.parametrize("seed", range(5))
def test_drones_in_about_their_places_may_fly(seed):
    near = np.random.default_rng(seed).uniform(-0.3, 0.3, (3, 2))
    check(standing() + np.column_stack([near, np.zeros(3)]))


@pytest.mark.parametrize("order", [(1, 0, 2), (0, 2, 1), (1, 2, 0), (2, 0, 1)])
def test_drones_in_each_others_places_are_named(order):
    with pytest.raises(ConfigError, match="stand in each other's places") as told:
        check(standing()[list(order)])
    for drone, place in enumerate(order):
        named = f"drone_{drone + 1} would fly to that of drone_{place + 1} (0.50 m;" in str(
            told.value
        )
        assert named == (drone != place)


def test_a_load_that_is_turned_exchanges_the_drones():
    """The formation turns with the load."""
    check(standing(turned_rad=0.9), yaw_rad=0.9)
    with pytest.raises(ConfigError, match="stand in each other's places"):
        check(standing(), yaw_rad=2.0 * np.pi / 3.0)


def test_a_drone_beyond_its_cable_beside_another_ones_place_is_not_taken_for_that_one():
    """Its way to the other's place is shorter, but no exchange of drones would help."""
    places = standing()
    places[2, 0] += 6.0
    with pytest.raises(ConfigError, match=r"drone_3 stands \d\.\d+ m from its attachment"):
        check(places)


@pytest.mark.parametrize("far_m", [6.0, 40.0])
def test_a_drone_beyond_its_cable_is_named_with_what_is_allowed(far_m):
    places = standing()
    places[1, :2] *= far_m / 1.5
    cable, drone = SYSTEM.cables[1], SYSTEM.drones[1]
    root = SYSTEM.load.cable_attachments_m[1] + np.array([0.0, 0.0, 0.05])
    reach_m = cable.length_m + np.linalg.norm(drone.cable_attachment_m)
    told = (
        f"drone_2 stands {np.linalg.norm(places[1] - root):.2f} m from .* reaches {reach_m:.2f} m"
    )
    with pytest.raises(ConfigError, match=told):
        check(places)
    check(places, tied=False, limits=ArmingLimits(setpoint_speed_m_s=50.0))


def test_set_points_that_are_too_fast_are_named():
    with pytest.raises(
        ConfigError, match=r"set-point moves at \d+\.\d\d m/s in stage \w+; 0\.2 m/"
    ):
        check(limits=ArmingLimits(setpoint_speed_m_s=0.2))


def test_a_plan_that_brings_drones_together_is_refused():
    """Both come from the same side, one beside the other."""
    places = standing()
    places[1] = places[0] + [0.0, 0.3, 0.0]
    with pytest.raises(
        ConfigError, match=r"drone_1 and drone_2: .* rotor tips within -0\.\d\d m in"
    ):
        check(places)
