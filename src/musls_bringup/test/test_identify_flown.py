"""`identify` on flights of other numbers of drones than the paper's, with motions of one's own."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from musls_analysis.estimation.estimator import INTERVAL
from musls_analysis.estimation.replays import fit_replays
from musls_analysis.estimation.system_parameters import Setup, put_all
from musls_analysis.recordings.recording import PoseTrack, resample
from musls_analysis.replay import Replay, ReplaySpec
from musls_analysis.replay.replay import with_links
from musls_bringup.api import simulation
from musls_bringup.catalogue.scenarios import load_scenario
from musls_description.config.schema import to_data
from musls_description.system.system_files import load_system

TRUTH = {"length": 2.45, "load_drag": 0.5}
MOTIONS = (
    {"kind": "shm", "repetitions": 1},
    {"kind": "circle", "repetitions": 1, "radius_m": 0.6, "speed_m_s": 0.6},
)
NOISE_M, NOISE_RAD = 0.001, 0.002


def recorded(system, motion, seed):
    """What motion capture makes of a flight, at 20 Hz."""
    changes = {"system": to_data(system), "mission": {"stages": [motion]}, "start": "air"}
    flight = simulation.fly(load_scenario("hold", changes))
    random, bodies = np.random.default_rng(seed), {}
    for body, track in flight.bodies.items():
        time_s = np.arange(flight.start_s, flight.end_s, 0.05)
        pose = resample(track, time_s, gap_limit_s=1.0)
        turn = Rotation.from_rotvec(NOISE_RAD * random.standard_normal((len(time_s), 3)))
        turned = Rotation.from_quat(pose.orientation_wxyz, scalar_first=True) * turn
        place = pose.position_enu_m + NOISE_M * random.standard_normal((len(time_s), 3))
        bodies[body] = PoseTrack(time_s, place, turned.as_quat(scalar_first=True))
    return replace(flight, bodies=bodies, source=motion["kind"])


@pytest.mark.slow
def test_intervals_hold_what_was_flown():
    start = with_links(load_system("x500_duo"), "rigid_links:2")
    cables = tuple(replace(cable, twist="free") for cable in start.cables)
    start = replace(start, cables=cables, load=replace(start.load, drag_n_s_m=(0.1, 0.1, 0.1)))
    spec = ReplaySpec(lead_in_s=1.0, physics_step_s=0.004)
    flown = put_all(Setup(start, spec), TRUTH).system
    replays = [Replay(recorded(flown, motion, k), spec) for k, motion in enumerate(MOTIONS)]
    found = fit_replays(replays, start, [*TRUTH, "load_attachment_1_x"])
    assert {p.name for p in found.parameters} == set(TRUTH)
    assert list(found.dropped) == ["load_attachment_1_x"]
    for p, value, std in zip(found.parameters, found.value, found.uncertainty.std, strict=True):
        # Stated intervals are narrower than errors by up to 1.6, see docs/replay.md.
        assert abs(value - TRUTH[p.name]) < 1.6 * INTERVAL * std, p.name
        assert std < (0.002 if p.name == "length" else 0.1), p.name
    for errors in found.errors:
        as_given, fitted, others = (at["translational_error_m"] for at in errors)
        assert fitted < 0.5 * as_given and others < 0.6 * as_given
    assert "parameter" in repr(found) and "<table" in found._repr_html_()
