"""Geometry from taut rows: made-up poses of a known geometry give it back; what is not told."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from musls_analysis.estimation.system_parameters import Setup, put_all
from musls_analysis.estimation.taut_rows import geometry
from musls_analysis.recordings.recording import PoseTrack, Recording
from musls_analysis.replay import Replay, ReplaySpec
from musls_description.config.errors import ConfigError
from musls_description.system.system_files import load_system

TRUTH = {
    "load_origin_x": -0.03, "load_origin_y": 0.02, "load_origin_z": 0.09,
    "length_1": 2.58, "length_2": 2.55, "length_3": 2.57,
}  # fmt: skip
NOISE_M = 0.002


def recorded(phase):
    """Poses of drones at the ends of straight cables from a load that sways and tilts."""
    random = np.random.default_rng(int(10 * phase))
    setup = put_all(Setup(load_system("x500_trio_swivel"), ReplaySpec()), TRUTH)
    system, spec = setup.system, setup.spec
    time_s = np.arange(0.0, 8.0, 0.1)
    wave = np.sin(2.0 * time_s + phase)
    load = np.column_stack([0.2 * np.cos(time_s), wave, 0.1 * np.sin(0.7 * time_s + phase)])
    turn = Rotation.from_euler("xyz", np.column_stack([0.6 * wave, 0.2 * np.cos(time_s), wave]))
    bodies = {}
    for i, cable in enumerate(system.cables):
        azimuth = 2.0 * np.pi * i / 3.0
        lean = np.array([0.35 * np.cos(azimuth), 0.35 * np.sin(azimuth), 0.0])
        along = lean + np.column_stack([0.0 * wave, 0.15 * wave, np.ones_like(wave)])
        along /= np.linalg.norm(along, axis=1, keepdims=True)
        level = Rotation.from_euler("z", np.full((len(wave), 1), azimuth + np.pi))
        length = cable.length_m
        place = load + turn.apply(system.load.cable_attachments_m[i]) + length * along
        place -= level.apply(system.drones[i].cable_attachment_m)
        place += NOISE_M * random.standard_normal(place.shape)
        bodies[f"drone_{i + 1}"] = PoseTrack(time_s, place, level.as_quat(scalar_first=True))
    point = load + turn.apply(spec.offset_m("load"))
    bodies["load"] = PoseTrack(time_s, point, turn.as_quat(scalar_first=True))
    return Replay(Recording(bodies, source=f"made up {phase}"), ReplaySpec())


def test_a_known_geometry_comes_back_and_nothing_else_is_kept():
    found = geometry([recorded(0.0), recorded(1.0)], load_system("x500_trio_swivel"))
    assert {p.name for p in found.parameters} == set(TRUTH)
    stds = found.uncertainty.std
    for p, value, std in zip(found.parameters, found.value, stds, strict=True):
        assert value == pytest.approx(TRUTH[p.name], abs=max(3.0 * std, 5e-4)), p.name
    for errors in found.errors:
        as_given, fitted, others = (at["taut_cables_rms_m"] for at in errors)
        assert as_given > 0.05 and fitted < 0.003 and others < 0.004
    assert set(found.dropped) == {"load_tilt", "attachment", "attachment_i", "load_attachment_i"}
    # Drones that stand level say nothing of their hooks' height apart from the lengths.
    assert any({"length_1", "attachment_1_z"} <= set(names) for names in found.alike)
    assert "hard to tell apart: " in repr(found)


def test_recordings_that_cannot_tell_are_refused():
    with pytest.raises(ConfigError, match="takes two recordings or more"):
        geometry([recorded(0.0)], load_system("x500_trio_swivel"))
    with pytest.raises(ConfigError, match="has 2 drones"):
        geometry([recorded(0.0), recorded(1.0)], load_system("x500_duo"))
