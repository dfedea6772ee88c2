"""Load estimators in flight: errors as large as the filter says, refusals, controllers on top."""

import dataclasses
import functools

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from scipy.stats import chi2

import musls
from musls_control.estimate import BodyMotion, Estimate
from musls_control.estimators import DroneErrors, DroneSensors, EstimatorSetup, LoadImuSpec
from musls_control.estimators.ekf import EkfSpec
from musls_description.config.errors import ConfigError
from musls_description.hanging.equilibrium import weightless
from musls_description.system.slung_system import Load
from musls_sim.plants.rigid_body import rotor_records
from musls_sim.session.load_estimation import rotor_forces
from musls_sim.session.session import Session

DT, G = 0.004, 9.80665
SEEDS = 8
POSITION_M, ACCELERATION_M_S2 = 0.002, 0.05
SYSTEMS = {
    1: {"system": "x500_solo", "formation": {"radius_m": 0.0, "height_m": 2.05}},
    2: {"system": "x500_duo", "formation": {"radius_m": 1.0, "height_m": 2.38}},
    3: {"system": "x500_trio_swivel"},
}


def scenario(drones=3, **keys):
    stage = {"kind": "circle", "radius_m": 1.0, "speed_m_s": 1.0, "height_m": 2.0, "repetitions": 1}
    return musls.load_scenario({
        "name": "estimated", "start": "air", "cable_model": "massless", **SYSTEMS[drones],
        "mission": {"stages": [stage]}, **keys,
    })  # fmt: skip


@functools.cache
def flown(drones):
    """Motion of all bodies and rotor speeds of each period of a circle, exactly known."""
    chosen = scenario(drones, estimation={"kind": "truth"})
    motion, speeds = [], []
    with Session(chosen, force=True) as session:
        while session.time_s < 5.0:
            session.advance(1)
            motion.append(session.state.motion.copy())
            speeds.append(session.state.rotor_speed_rad_s.copy())
    return chosen.system, np.array(motion), np.array(speeds)


def errors(truth, motion):
    """Error of pose and twist, (12,), as the filter has it."""
    turns = [Rotation.from_quat(m[6:10], scalar_first=True) for m in (motion, truth)]
    turn = (turns[0].inv() * turns[1]).as_rotvec()
    return np.concatenate([truth[:3] - motion[:3], turn, truth[3:6] - motion[3:6],
                           truth[10:13] - motion[10:13]])  # fmt: skip


def err_at_start(motion, options, generator):
    """Add an error to a load's motion, (16,), as large as a filter says that it is."""
    deviations = [options.start_noise_m, options.start_noise_rad] * 2
    error = np.repeat(deviations, 3) * generator.standard_normal(12)
    motion[:3] += error[:3]
    turn = Rotation.from_quat(motion[6:10], scalar_first=True) * Rotation.from_rotvec(error[3:6])
    motion[6:10] = turn.as_quat(scalar_first=True)
    motion[3:6] += error[6:9]
    motion[10:13] += error[9:]


def filtered(drones, seed, *, imu=False, generator=None):
    """Normalised squared errors each half second, and the mean normalised innovation."""
    system, motion, speeds = flown(drones)
    generator = np.random.default_rng(seed)
    options = EkfSpec(load_imu=LoadImuSpec() if imu else None)
    noise = DroneErrors(POSITION_M, 0.0, ACCELERATION_M_S2, 0.0)
    ekf = options.build(EstimatorSetup(weightless(system), G, DT, noise))
    estimate, rotors = Estimate.zeros(drones), rotor_records(system)
    sensed, force = BodyMotion(motion[0, 1:].copy()), np.zeros((drones, 3))
    felt = np.zeros(6) if imu else None
    sensors = DroneSensors(sensed, force, felt)
    estimate.data[0] = motion[0, 0]
    err_at_start(estimate.data[0], options, generator)
    ekf.start(sensors, estimate, on_ground=False)
    found, innovations = [], np.zeros(2)
    for k in range(1, len(motion)):
        sensed.data[:] = motion[k, 1:]
        rotor_forces(sensed.data, rotors, speeds[k], force)
        sensed.data[:, :3] += POSITION_M * generator.standard_normal((drones, 3))
        sensed.data[:, 13:] += ACCELERATION_M_S2 * generator.standard_normal((drones, 3))
        if felt is not None:
            load = Rotation.from_quat(motion[k, 0, 6:10], scalar_first=True)
            felt[:3] = load.inv().apply(motion[k, 0, 13:] + [0, 0, G])
            felt[3:] = motion[k, 0, 10:13]
            felt += np.repeat([0.02, 0.002], 3) * generator.standard_normal(6)
        ekf.step(sensors, estimate)
        innovations += ekf.innovations
        if k % 125 == 0:
            error = errors(motion[k, 0], estimate.data[0])
            found.append(error @ np.linalg.solve(ekf.covariance, error))
    return np.array(found), innovations[0] / innovations[1]


@pytest.mark.parametrize("imu", [False, True])
def test_errors_are_as_large_as_the_filter_says(imu):
    """Chi-square with twelve degrees: the mean over seeds within its bounds, at all times."""
    runs = [filtered(3, seed, imu=imu) for seed in range(SEEDS)]
    mean = np.mean([nees for nees, _ in runs], axis=0)
    low, high = chi2.ppf([0.0005, 0.9995], 12 * SEEDS) / SEEDS
    nis = np.mean([nis for _, nis in runs])
    assert np.all(mean > low) and np.all(mean < high)
    assert nis == pytest.approx(1.0, abs=0.03)


def nees_in_flight(drones, cables, seed, seconds):
    """Normalised squared errors each half second of a flight with the scenario's own sensors."""
    chosen = scenario(drones, estimation={"load": "ekf"}, cable_model=cables, seed=seed)
    found = []
    with Session(chosen, force=True) as session:
        err_at_start(session.estimate.data[0], EkfSpec(), np.random.default_rng(1000 + seed))
        estimation = session.components.load_estimation
        while session.time_s < seconds:
            session.advance(125)
            error = errors(session.state.motion[0], session.estimate.data[0])
            covariance = estimation.estimator.covariance
            found.append(error @ np.linalg.solve(covariance, error))
    return found


def nees_within(drones, cables, seeds, seconds, chance):
    """Mean normalised squared error over seeds and times, and the interval of that chance."""
    mean = np.mean([nees_in_flight(drones, cables, seed, seconds) for seed in range(seeds)])
    low, high = chi2.ppf([0.5 - 0.5 * chance, 0.5 + 0.5 * chance], 12 * seeds) / seeds
    return mean, low, high


@pytest.mark.parametrize("drones", [1, 2, 3])
def test_errors_in_flight_are_as_large_as_the_declared_sensors_make_them(drones):
    mean, low, high = nees_within(drones, "rigid_links", seeds=6, seconds=3.0, chance=0.999)
    assert low < mean < high


@pytest.mark.slow
@pytest.mark.parametrize("cables", ["massless", "rigid_links", "elastic"])
@pytest.mark.parametrize("drones", [1, 2, 3])
def test_fifty_flights_are_consistent_on_three_systems_and_three_cable_models(drones, cables):
    mean, low, high = nees_within(drones, cables, seeds=50, seconds=6.0, chance=0.95)
    print(f"{drones} drones, {cables}: NEES {mean:.2f}, 95 % within {low:.2f} to {high:.2f}")
    assert low < mean < high


@pytest.mark.parametrize(("speed_m_s", "radius_m"), [(3.0, 1.0), (6.0, 2.0)])
def test_filter_that_has_lost_a_crashed_load_begins_anew_and_says_so(speed_m_s, radius_m):
    """Two drones that feedback of directions cannot hold drag their load over the ground."""
    stage = {"kind": "circle", "radius_m": radius_m, "speed_m_s": speed_m_s, "height_m": 3.0}
    chosen = scenario(
        2, mission={"stages": [stage | {"repetitions": 3}]}, estimation={"load": "ekf"},
        controller={"kind": "payload", "feedback": "directions"},
    )  # fmt: skip
    with Session(chosen, force=True) as session:
        estimator = session.components.load_estimation.estimator
        while session.time_s < 8.0 and not session.finished:
            session.advance(25)
            assert np.isfinite(session.estimate.data).all()
            assert np.linalg.eigvalsh(estimator.covariance)[0] > 0.0
        assert estimator.resets > 0 and "begun anew" in estimator.doubt()


def test_flight_whose_filter_is_inconsistent_says_so_on_its_first_line():
    """Mean innovation within its chi-square bound, or a warning of the flight."""
    hold = {"kind": "hold", "position_m": [0, 0, 2], "duration_s": 3}
    said = []
    weak = {"imperfections": {"drones": [{"thrust_scale": 0.9}] * 3}}
    for keys in ({}, weak):
        load = {"kind": "ekf"}
        run = musls.fly(scenario(mission={"stages": [hold]}, estimation={"load": load}, **keys))
        said.append([line for line in run.warnings if "load estimator ekf" in line])
    assert not said[0] and len(said[1]) == 1
    assert said[1][0].startswith("doubtful at") and "\n" not in said[1][0]


def estimation_errors(drones, load, seconds=6.0, **keys):
    """Rms errors of the load's estimate: position [m], attitude [rad], velocity [m/s]."""
    found = []
    chosen = scenario(drones, estimation={"load": load}, **keys)
    with Session(chosen, force=True) as session:
        while session.time_s < seconds:
            session.advance(25)
            found.append(errors(session.state.motion[0], session.estimate.data[0]))
    found = np.array(found)
    rms = [np.sqrt(np.mean(np.sum(found[:, k : k + 3] ** 2, axis=1))) for k in (0, 3, 6)]
    return rms


@pytest.mark.parametrize("cables", ["massless", "rigid_links"])
def test_three_drones_find_their_load_through_noisy_motion_capture_of_themselves(cables):
    keys = {"cable_model": cables}
    ekf = estimation_errors(3, "ekf", **keys)
    still = estimation_errors(3, "quasi_static", **keys)
    assert ekf[0] < 0.002 and ekf[1] < np.radians(0.5) and ekf[2] < 0.01
    # The circle begins at full speed, and the load swings, of which rest knows nothing.
    assert still[0] < 0.06 and still[1] < np.radians(10.0) and still[2] < 0.2
    assert ekf[0] < 0.1 * still[0]


@pytest.mark.parametrize("drones", [1, 2])
def test_fewer_drones_know_where_their_load_is_and_one_knows_no_yaw(drones):
    position_m, _, velocity_m_s = estimation_errors(drones, "ekf")
    assert position_m < 0.005 and velocity_m_s < 0.02
    with Session(scenario(drones, estimation={"load": "ekf"}), force=True) as session:
        session.advance(1500)
        estimation = session.components.load_estimation
        sigma = np.sqrt(np.diag(estimation.estimator.covariance))
    assert (sigma[5] > 0.2) == (drones == 1)
    assert position_m < 3.0 * np.linalg.norm(sigma[:3])


@pytest.mark.parametrize("load", ["ekf", "quasi_static"])
def test_point_mass_on_three_cables_does_not_turn(load):
    system = musls.load_system("x500_trio_swivel")
    place = ((0.0, 0.0, 0.0),) * 3
    box = system.load.collision
    point = Load(mass_kg=1.66, cable_attachments_m=place, collision=box, point_mass=True)
    light = dataclasses.replace(system, load=point)
    position_m, turn_rad, velocity_m_s = estimation_errors(3, load, seconds=4.0, system=light)
    assert position_m < 0.02 and velocity_m_s < 0.2
    assert turn_rad == pytest.approx(0.0, abs=1e-12)


def test_load_stands_until_it_is_lifted():
    chosen = musls.load_scenario("circle", {"estimation.load": "ekf", "system.cables.links": 6})
    with Session(chosen, force=True) as session:
        start = session.state.motion[0].copy()
        while session.stage != "lift":
            session.advance(10)
            # The cables are taut before they lift: the filter moves by less than a millimetre.
            assert session.estimate.data[0, :3] == pytest.approx(start[:3], abs=2e-3)
        session.advance(1000)
        assert session.state.position_enu_m[0, 2] > start[2] + 0.1
        miss = session.estimate.position_enu_m[0] - session.state.position_enu_m[0]
        assert np.linalg.norm(miss) < 0.01


IDEAL = {"kind": "open_loop", "thrust_n": [25.0, 25.0, 25.0]}
OWN = """
import musls

class Below(musls.LoadEstimator):
    def __init__(self, height_m: float = 2.0):
        self.height_m = height_m

    def step(self, sensors, estimate):
        estimate.position_enu_m[0] = sensors.drones.position_enu_m.mean(axis=0)
        estimate.position_enu_m[0, 2] -= self.height_m
"""


def test_estimator_of_ones_own(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(OWN)
    load = {"kind": "python", "source": f"{file}:Below", "parameters": {"height_m": 1.5}}
    with Session(scenario(estimation={"load": load}), force=True) as session:
        session.advance(3)
        middle = session.estimate.drones.position_enu_m.mean(axis=0)
        assert session.estimate.position_enu_m[0] == pytest.approx(middle - [0, 0, 1.5])
    file.write_text(OWN.replace("sensors.drones", "sensors.birds"))
    session = Session(scenario(estimation={"load": load}), force=True)
    with session, pytest.raises(musls.UserCodeError, match=r"own.py, line 9.*birds"):
        session.advance(1)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"estimation.load": "kalman"}, "ekf"),
        ({"estimation.load.kind": "ekf", "estimation.load.force_noise_n": -0.1}, "force_noise_n"),
        ({"estimation.load": "ekf", "cable_model": "rigid_rods"}, "needs cables"),
        ({"estimation.load": "ekf", "controller": IDEAL}, "no rotors"),
        ({"estimation.load.kind": "python", "estimation.load.source": "no.py:Here"}, "no.py"),
    ],
)
def test_what_cannot_be_estimated_is_told(keys, told):
    with pytest.raises(ConfigError, match=told) as error:
        Session(musls.load_scenario("circle", {"start": "air", **keys}), force=True)
    assert "\n" not in str(error.value)
