"""Simulated sensors of a real PX4 against what each must read in a known state."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pymavlink.dialects.v20 import common as mavlink

from musls_control.estimate import BodyMotion
from musls_description.config.errors import ConfigError
from musls_sim.px4 import links
from musls_sim.px4 import sensors as px4_sensors
from musls_sim.px4.sensors import Px4Sensors
from musls_sim.specs.estimation import Px4SensorSpec

G = 9.80665
SILENT = Px4SensorSpec(
    gyro_noise_rad_s=0.0,
    accelerometer_noise_m_s2=0.0,
    magnetometer_noise_gauss=0.0,
    barometer_noise_hpa=0.0,
    gps_horizontal_noise_m=0.0,
    gps_vertical_noise_m=0.0,
    gps_velocity_noise_m_s=0.0,
)


def sensors(spec=SILENT, seed=0):
    return Px4Sensors(spec, G, 0.004, np.random.default_rng(seed))


def facing(yaw_enu_rad):
    truth = BodyMotion.zeros(1)
    truth.orientation_wxyz[0] = np.cos(yaw_enu_rad / 2), 0.0, 0.0, np.sin(yaw_enu_rad / 2)
    return truth


def test_at_rest_and_in_free_fall():
    rest = sensors().sample(BodyMotion.zeros(2))
    np.testing.assert_allclose(rest.specific_force_frd_m_s2, [[0.0, 0.0, -G]] * 2, atol=1e-12)
    falling = BodyMotion.zeros(1)
    falling.acceleration_enu_m_s2[0] = 0.0, 0.0, -G
    np.testing.assert_allclose(sensors().sample(falling).specific_force_frd_m_s2, 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("axis_flu", "turned_to"),  # +90 degrees about a body axis: where gravity's reaction points
    [((1.0, 0.0, 0.0), [0.0, -G, 0.0]), ((0.0, 1.0, 0.0), [-G, 0.0, 0.0])],
)
def test_a_tilted_accelerometer(axis_flu, turned_to):
    truth = BodyMotion.zeros(1)
    truth.orientation_wxyz[0] = [np.sqrt(0.5), *(np.sqrt(0.5) * np.array(axis_flu))]
    force = sensors().sample(truth).specific_force_frd_m_s2[0]
    np.testing.assert_allclose(force, turned_to, atol=1e-12)


def test_gyro_is_forward_right_down():
    truth = BodyMotion.zeros(1)
    truth.omega_body_rad_s[0] = 0.1, 0.2, 0.3
    np.testing.assert_allclose(sensors().sample(truth).omega_frd_rad_s[0], [0.1, -0.2, -0.3])


@given(st.floats(-np.pi, np.pi))
@settings(max_examples=30)
def test_the_compass_shows_the_heading(yaw_enu_rad):
    x, y, z = sensors().sample(facing(yaw_enu_rad)).magnetic_frd_gauss[0]
    heading = px4_sensors.MAGNETIC_DECLINATION_RAD - np.arctan2(y, x)
    wrong = heading - (np.pi / 2.0 - yaw_enu_rad)
    assert abs(np.angle(np.exp(1j * wrong))) < 1e-9
    assert z > 0.0  # north of the equator the field dips
    assert np.linalg.norm([x, y, z]) == pytest.approx(px4_sensors.MAGNETIC_STRENGTH_GAUSS)


def test_fixes_lie_where_the_drones_are():
    truth = BodyMotion.zeros(1)
    truth.position_enu_m[0] = 30.0, 40.0, 5.0
    truth.velocity_enu_m_s[0] = 1.0, 2.0, 3.0
    run = sensors()
    fix = next(s.fix for s in (run.sample(truth) for _ in range(100)) if s.fix is not None)
    lat, lon = np.deg2rad([fix.latitude_deg[0], fix.longitude_deg[0]])
    lat0 = np.deg2rad(px4_sensors.ORIGIN_LATITUDE_DEG)
    lon0 = np.deg2rad(px4_sensors.ORIGIN_LONGITUDE_DEG)
    # Great circle by the haversine formula and its azimuth, on PX4's sphere.
    h = np.sin((lat - lat0) / 2) ** 2 + np.cos(lat0) * np.cos(lat) * np.sin((lon - lon0) / 2) ** 2
    east = np.sin(lon - lon0) * np.cos(lat)
    north = np.cos(lat0) * np.sin(lat) - np.sin(lat0) * np.cos(lat) * np.cos(lon - lon0)
    assert 2 * 6371000.0 * np.arcsin(np.sqrt(h)) == pytest.approx(50.0, abs=1e-3)
    assert np.arctan2(east, north) == pytest.approx(np.arctan2(30.0, 40.0), abs=1e-4)
    assert fix.altitude_m[0] == px4_sensors.ORIGIN_ALTITUDE_M + 5.0
    np.testing.assert_allclose(fix.velocity_ned_m_s[0], [2.0, 1.0, -3.0])


def test_the_barometer_follows_the_standard_atmosphere():
    # Tabulated: sea level, 1000 m, 5000 m (ISO 2533).
    for height, expected in ((0.0, 1013.25), (1000.0, 898.746), (5000.0, 540.199)):
        pressure = px4_sensors.pressure_hpa(np.array([height]))
        assert pressure[0] == pytest.approx(expected, rel=2e-4)
        assert px4_sensors.pressure_altitude_m(pressure)[0] == pytest.approx(height, abs=1e-6)


def test_rates():
    run = sensors(Px4SensorSpec(gps_rate_hz=5.0))
    samples = [run.sample(BodyMotion.zeros(1)) for _ in range(2500)]
    assert sum(s.fix is not None for s in samples) == 50
    assert sum(s.magnetic_frd_gauss is not None for s in samples) == 500


def test_noise_is_as_documented_and_repeats():
    spec, truth = Px4SensorSpec(), BodyMotion.zeros(3)
    first, again = sensors(spec, 7), sensors(spec, 7)
    samples = [first.sample(truth) for _ in range(5000)]
    for sample in samples[:50]:
        same = again.sample(truth)
        np.testing.assert_array_equal(sample.omega_frd_rad_s, same.omega_frd_rad_s)
    slow = [s for s in samples if s.pressure_hpa is not None]
    fixes = [s.fix for s in samples if s.fix is not None]
    for values, deviation in (
        ([s.omega_frd_rad_s for s in samples], spec.gyro_noise_rad_s),
        ([s.specific_force_frd_m_s2 for s in samples], spec.accelerometer_noise_m_s2),
        ([s.magnetic_frd_gauss for s in slow], spec.magnetometer_noise_gauss),
        ([s.pressure_hpa for s in slow], spec.barometer_noise_hpa),
        ([f.altitude_m for f in fixes], spec.gps_vertical_noise_m),
        ([f.velocity_ned_m_s for f in fixes], spec.gps_velocity_noise_m_s),
        (
            [np.deg2rad(f.latitude_deg) * px4_sensors.EARTH_RADIUS_M for f in fixes],
            spec.gps_horizontal_noise_m,
        ),
    ):
        spread = np.std(np.array(values), axis=0)
        assert np.mean(spread) == pytest.approx(deviation, rel=0.1)


@pytest.mark.parametrize(
    "wrong", [{"gps_rate_hz": 0.0}, {"gps_rate_hz": 100.0}, {"gyro_noise_rad_s": -1.0}]
)
def test_impossible_sensors_are_refused(wrong):
    (field,) = wrong
    with pytest.raises(ConfigError, match=field):
        Px4SensorSpec(**wrong)


def test_field_masks_are_what_px4_looks_for():
    groups = {"accel": 0x7, "gyro": 0x38, "mag": 0x1C0, "baro": 0x1A00, "diff": 0x400}
    assert groups["accel"] | groups["gyro"] == links.FIELDS_IMU
    assert sum(groups.values()) - groups["diff"] == links.FIELDS_ALL
    assert groups["diff"] == mavlink.HIL_SENSOR_UPDATED_DIFF_PRESSURE
