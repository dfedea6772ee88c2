"""Load estimators without a plant: equilibrium and velocity below moving drones."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from musls_control.estimate import Estimate
from musls_control.estimators import DroneErrors, DroneSensors, EstimatorSetup
from musls_control.estimators.quasi_static import QuasiStaticSpec
from musls_control.estimators.taut import cable_records, load_record, taut_tensions
from musls_description.system.system_files import load_system

G, DT = 9.80665, 0.004


def setup(name="x500_trio_swivel"):
    system = load_system(name)
    return EstimatorSetup(system, G, DT, DroneErrors(0.001, 0.001, 0.02, 0.002))


def hanging(system, lean=0.45):
    """Load and drones at rest in a symmetric formation, cables leaning outwards, massless."""
    estimate = Estimate.zeros(system.n_drones)
    estimate.data[0, :3] = 1.0, -2.0, 3.0
    q = Rotation.from_euler("z", 0.4)
    estimate.data[0, 6:10] = q.as_quat(scalar_first=True)
    for i, (place, cable, drone) in enumerate(
        zip(system.load.cable_attachments_m, system.cables, system.drones, strict=True)
    ):
        outward = np.array([place[0], place[1], 0.0])
        size = np.linalg.norm(outward)
        outward = outward / size if size > 1e-6 else np.zeros(3)
        angle = lean if size > 1e-6 else 0.0
        direction = np.sin(angle) * outward + [0.0, 0.0, np.cos(angle)]
        reach = q.apply(np.add(place, cable.length_m * direction))
        estimate.data[1 + i, :3] = estimate.data[0, :3] + reach - drone.cable_attachment_m
    return estimate


@pytest.mark.parametrize("name", ["x500_solo", "x500_duo", "x500_trio_swivel", "x500_hexa"])
@pytest.mark.parametrize("apparent", [(0.0, 0.0), (1.5, -1.0)])
def test_quasi_static_load_hangs_in_the_apparent_gravity(name, apparent):
    """Turned with g - a, the load at rest is the load below accelerating drones."""
    known = setup(name)
    at_rest = hanging(known.system)
    down = np.array([-apparent[0], -apparent[1], -G])
    turn, _ = Rotation.align_vectors([down], [[0.0, 0.0, -1.0]])
    moved = Estimate.zeros(known.system.n_drones)
    for row, still in zip(moved.data, at_rest.data, strict=True):
        row[:3] = turn.apply(still[:3])
        attitude = turn * Rotation.from_quat(still[6:10], scalar_first=True)
        row[6:10] = attitude.as_quat(scalar_first=True)
        row[13:15] = apparent
    truth = moved.data[0].copy()
    moved.data[0, :3] += [0.05, -0.03, 0.02]
    tilt = Rotation.from_quat(truth[6:10], scalar_first=True) * Rotation.from_rotvec(
        [0.05, -0.04, 0]
    )
    moved.data[0, 6:10] = tilt.as_quat(scalar_first=True)
    sensors = DroneSensors(moved.drones, np.zeros((known.system.n_drones, 3)))
    estimator = QuasiStaticSpec().build(known)
    estimator.start(sensors, moved, on_ground=False)
    estimator.step(sensors, moved)
    assert moved.data[0, :3] == pytest.approx(truth[:3], abs=1.5e-3)  # springs stretch 0.5 mm
    off = Rotation.from_quat(moved.data[0, 6:10], scalar_first=True).inv() * Rotation.from_quat(
        truth[6:10], scalar_first=True
    )
    assert off.magnitude() == pytest.approx(0.0, abs=0.01)
    pulls = sum(0.5 * cable.mass_kg for cable in known.system.cables) + known.system.load.mass_kg
    lifted = moved.tension_n[:, 0].sum() * np.cos(0.45 if len(moved.data) > 2 else 0.0)
    assert lifted == pytest.approx(pulls * np.hypot(np.hypot(*apparent), G), rel=1e-2)


def test_quasi_static_velocity_is_that_of_drones_that_move_and_turn_together():
    known = setup()
    estimate = hanging(known.system)
    omega, velocity = np.array([0.0, 0.0, 0.3]), np.array([0.5, -0.2, 0.1])
    for row in estimate.data[1:]:
        row[3:6] = velocity + np.cross(omega, row[:3] - estimate.data[0, :3])
        row[10:13] = omega
    sensors = DroneSensors(estimate.drones, np.zeros((known.system.n_drones, 3)))
    estimator = QuasiStaticSpec().build(known)
    estimator.start(sensors, estimate, on_ground=False)
    assert estimate.data[0, 3:6] == pytest.approx(velocity, abs=1e-3)
    assert estimate.data[0, 10:13] == pytest.approx(omega, abs=5e-3)


def tensions(known, estimate):
    load = load_record(known.system, G, DT)[0]
    cables = cable_records(known.system)
    return taut_tensions(estimate.records[0], estimate.drones.records, cables, load)


def test_taut_cables_carry_a_load_that_rises_with_its_drones():
    known = setup()
    estimate = hanging(known.system)
    estimate.drones.acceleration_enu_m_s2[:, 2] = 2.0
    mass = load_record(known.system, G, DT)[0]["mass"]
    expected = mass * (G + 2.0) / 3.0 / np.cos(0.45)
    assert tensions(known, estimate) == pytest.approx(np.full(3, expected), rel=1e-3)
    estimate.drones.position_enu_m[:, 2] -= 0.1  # all slack
    assert tensions(known, estimate) == pytest.approx(np.zeros(3))


def test_a_pendulum_pulls_with_its_weight_and_its_swing():
    """T = m (g cos + l rate^2) of a load that swings about its centre below a standing drone."""
    known = setup("x500_solo")
    cable, drone = cable_records(known.system)[0], Estimate.zeros(1)
    angle, rate = 0.5, 1.5
    along = np.array([np.sin(angle), 0.0, -np.cos(angle)])
    drone.data[1, :3] = 0.0, 0.0, 5.0
    upper = drone.data[1, :3] + cable["hook"]
    turn = Rotation.from_rotvec([0.0, -angle, 0.0])  # the cable pulls through the load's centre
    arm = np.linalg.norm(cable["attachment"])
    reach = cable["length"] + arm
    drone.data[0, :3] = upper + reach * along
    drone.data[0, 6:10] = turn.as_quat(scalar_first=True)
    drone.data[0, 3:6] = reach * rate * np.array([np.cos(angle), 0.0, np.sin(angle)])
    drone.data[0, 10:13] = 0.0, -rate, 0.0
    mass = load_record(known.system, G, DT)[0]["mass"]
    expected = mass * (G * np.cos(angle) + reach * rate**2)
    assert tensions(known, drone) == pytest.approx([expected], rel=1e-6)
