"""Fits: statistics against Monte Carlo, known parameters come back, what is wrong is said."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from musls_analysis.estimation.estimator import (
    Derivatives,
    best_change,
    choose,
    correlation_time,
    left_out,
    uncertainty,
)
from musls_analysis.estimation.replays import WORTH, fit_replays
from musls_analysis.estimation.system_parameters import GROUPS, Setup, parameters, put_all
from musls_analysis.recordings.recording import PoseTrack, Recording
from musls_analysis.replay import Replay, ReplaySpec
from musls_analysis.replay.replay import with_links
from musls_description.config.errors import ConfigError
from musls_description.system.drone import NO_INERTIA, BoxShape
from musls_description.system.system_files import load_system

SPEC = ReplaySpec(lead_in_s=1.0, physics_step_s=0.004)
NOISE_M, NOISE_RAD = 0.002, 0.005
TRUTH = {"length": 2.45, "load_origin_x": 0.01, "load_origin_z": -0.05, "load_tilt_y": 0.03}


@pytest.fixture(scope="module")
def system():
    return with_links(load_system("x500_trio_swivel"), "rigid_links:2")


def swaying_drones(time_s):
    """Three drones that sway together, off the load's resonance, facing the middle."""
    tracks = {}
    for i, azimuth in enumerate(np.arange(3) * 2.0 * np.pi / 3.0):
        place = np.array([np.cos(azimuth), np.sin(azimuth), 3.2])
        sway = np.column_stack([
            0.08 * np.sin(1.1 * time_s), 0.05 * np.sin(3.0 * time_s), 0.05 * np.sin(0.9 * time_s),
        ])  # fmt: skip
        facing = Rotation.from_euler("z", azimuth + np.pi).as_quat(scalar_first=True)
        tracks[f"drone_{i + 1}"] = PoseTrack(time_s, place + sway, np.tile(facing, (len(sway), 1)))
    return tracks


def made_up(system, duration_s):
    """What motion capture would see without noise, of a system that differs from the start."""
    time = np.arange(0.0, duration_s, 0.02)
    hanging = np.tile([0.0, 0.0, 0.95], (len(time), 1)), np.tile([1.0, 0, 0, 0], (len(time), 1))
    drones = swaying_drones(time)
    setup = put_all(Setup(system, SPEC), TRUTH)
    drawn_along = Recording({"load": PoseTrack(time, *hanging), **drones})
    load = Replay(drawn_along, setup.spec).run(setup.system).load
    return Recording({"load": load, **drones}, source="made up")


@pytest.fixture(scope="module")
def brief(system):
    """Long enough for what does not ask how exact a value is."""
    return made_up(system, 4.0)


@pytest.fixture(scope="module")
def replay(brief):
    """Ready to be replayed; smoothing is the slow part of that."""
    return Replay(brief, SPEC)


@pytest.fixture(scope="module")
def unflown():
    """A short recording whose load stands still, for what is refused before any replay."""
    time = np.arange(0.0, 3.0, 0.02)
    load = np.tile([0.0, 0.0, 0.95], (len(time), 1)), np.tile([1.0, 0, 0, 0], (len(time), 1))
    return Replay(Recording({"load": PoseTrack(time, *load), **swaying_drones(time)}), SPEC)


def noisy(recording, seed, share=1.0):
    """Independent noise on every pose."""
    random = np.random.default_rng(seed)
    bodies = {}
    for name, track in recording.bodies.items():
        by = share * NOISE_RAD * random.normal(size=(len(track.time_s), 3))
        turn = Rotation.from_rotvec(by)
        orientation = Rotation.from_quat(track.orientation_wxyz, scalar_first=True) * turn
        shift = share * NOISE_M * random.normal(size=(len(track.time_s), 3))
        position = track.position_enu_m + shift
        bodies[name] = PoseTrack(track.time_s, position, orientation.as_quat(scalar_first=True))
    return replace(recording, bodies=bodies)


def deviations(result):
    """Errors of the estimates in standard deviations."""
    true = np.array([TRUTH[name] for name in result.values])
    return (result.value - true) / result.uncertainty.std


@pytest.mark.slow
def test_known_parameters_come_back_within_what_is_stated(system):
    """Four parameters: errors are at most twice what is stated (docs: 1.6 times)."""
    result = fit_replays([Replay(noisy(made_up(system, 7.0), seed=0), SPEC)], system, list(TRUTH))
    assert result.converged and result.at_bound == ("",) * 4
    assert np.all(result.uncertainty.std < [0.008, 0.008, 0.008, 0.03])
    # What is left is how exactly noisy poses tell the load's state when it is let go.
    before, after = (at["translational_error_m"] for at in result.errors[0])
    assert after < 0.5 * before
    assert 0.3 < np.sqrt(np.mean(np.square(deviations(result)))) < 2.0


@pytest.mark.slow
def test_a_bound_that_is_hit_is_said(replay, system):
    result = fit_replays([replay], system, ["load_origin_z"], {"load_origin_z": (-0.03, 0.03)})
    assert result.at_bound == ("lower",)
    assert result.value[0] == pytest.approx(-0.03, abs=1e-4)
    assert np.isnan(result.uncertainty.std[0])


@pytest.mark.slow
def test_parameters_with_the_same_effect_are_named(replay, system):
    """Only the sum of attachment and recorded origin tells where the cable's end is."""
    names = ["attachment_z", "drone_origin_z", "load_tilt_y"]
    result = fit_replays([replay], system, names)
    assert ("attachment_z", "drone_origin_z") in result.alike
    assert result.uncertainty.std[0] > 10.0 * 0.005
    assert result.uncertainty.std[2] < 0.05


@pytest.mark.slow
def test_worker_processes_find_the_same(replay, system):
    names = ["load_tilt_y"]
    alone, team = (fit_replays([replay], system, names, workers=workers) for workers in (1, 2))
    assert np.allclose(alone.value, team.value, rtol=1e-9)


@pytest.fixture(scope="module")
def places(brief):
    """The same recording by a single marker on the load."""
    load = brief.bodies["load"]
    unknown = np.full_like(load.orientation_wxyz, np.nan)
    marker = replace(load, orientation_wxyz=unknown)
    return Replay(replace(brief, bodies={**brief.bodies, "load": marker}), SPEC)


@pytest.mark.slow
def test_a_length_comes_back_from_places_alone(places, system):
    others = {name: value for name, value in TRUTH.items() if name != "length"}
    setup = put_all(Setup(system, SPEC), others)
    places.spec = setup.spec
    result = fit_replays([places], setup.system, ["length"])
    assert result.value[0] == pytest.approx(TRUTH["length"], abs=5e-3)
    assert "geodesic_error_deg" not in result.errors[0][0]


@pytest.mark.parametrize("group", GROUPS)
def test_what_is_put_in_is_read_back(group, system):
    """Also: a value changes the setup, and the present value leaves it alone."""
    setup = Setup(system, SPEC)
    for parameter in parameters([group], setup)[group]:
        value = parameter.read(setup) * 1.07 + (parameter.scale if not parameter.log else 1e-4)
        changed = parameter.put(setup, value)
        assert changed != setup, parameter.name
        if not parameter.name.startswith(("load_com", "load_inertia")):  # they count from here
            assert parameter.read(changed) == pytest.approx(value, rel=1e-12), parameter.name
        assert parameter.lower < parameter.upper
        assert parameter.from_scale(parameter.to_scale(value)) == pytest.approx(value)


def test_the_inertia_of_a_load_with_a_shape_is_put_in(system):
    shape = BoxShape(size_m=(0.4, 0.3, 0.1))
    load = replace(system.load, shape=shape, inertia_kg_m2=NO_INERTIA)
    changed = put_all(Setup(replace(system, load=load), SPEC), {"load_inertia": 1.5})
    expected = 1.5 * np.array(load.inertia_kg_m2)
    np.testing.assert_allclose(changed.system.load.inertia_kg_m2, expected, rtol=1e-12)


def test_a_shifted_centre_of_mass_leaves_the_rest_in_place(system):
    """Attachments, box and recorded point keep their places on the load."""
    start = Setup(system, replace(SPEC, offsets_m={"load": (0.01, 0.0, -0.07)}))
    moved = put_all(start, {"load_com_z": 0.02})
    shift = np.array(moved.system.load.cable_attachments_m) - system.load.cable_attachments_m
    assert np.allclose(shift, [0.0, 0.0, -0.02])
    assert np.allclose(moved.spec.offset_m("load"), [0.01, 0.0, -0.09])
    assert moved.system.load.collision.center_m == pytest.approx((0.0, 0.0, -0.02))


@pytest.mark.parametrize(
    ("names", "bounds", "words"),
    [
        (["dampin"], {}, "did you mean 'damping'"),
        (["length", "length"], {}, "given twice"),
        (["length"], {"damping": (1e-4, 1e-3)}, "not fitted"),
        (["length"], {"length": (3.0, 2.0)}, "must be below"),
        (["damping"], {"damping": (0.0, 1e-3)}, "must be > 0"),
    ],
)
def test_bad_fits_are_refused(unflown, system, names, bounds, words):
    with pytest.raises(ConfigError, match=words):
        fit_replays([unflown], system, names, bounds)


def autoregressive(random, n, rho):
    """Noise of unit variance whose neighbours are correlated by rho."""
    series = np.empty(n)
    series[0] = random.normal()
    for k in range(1, n):
        series[k] = rho * series[k - 1] + np.sqrt(1.0 - rho**2) * random.normal()
    return series


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
def test_correlation_time(rho):
    """(1 + rho) / (1 - rho) for a first-order process."""
    series = autoregressive(np.random.default_rng(3), 40_000, rho)
    assert correlation_time(series) == pytest.approx((1.0 + rho) / (1.0 - rho), rel=0.15)


@pytest.mark.parametrize("rho", [0.0, 0.7])
def test_deviations_of_a_linear_fit_cover_the_truth(rho):
    """Channels of different noise, correlated in time; nominal coverage of 2 sigma is 95 %."""
    random = np.random.default_rng(0)
    k, sigma = 400, np.array([1.0, 1.0, 3.0])
    slow = np.sin(np.linspace(0.0, 3.0, k))
    jacobian = np.ones((k, 3, 2))
    jacobian[:, :, 1] = slow[:, None] * [1.0, 2.0, 0.5]
    inside = []
    for _ in range(200):
        noise = sigma * np.column_stack([autoregressive(random, k, rho) for _ in range(3)])
        flat = jacobian.reshape(-1, 2)
        estimate = np.linalg.lstsq(flat, noise.ravel(), rcond=None)[0]
        residual = noise - (flat @ estimate).reshape(k, 3)
        inside.append(np.abs(estimate) < 2.0 * uncertainty(jacobian, residual).std)
    assert 0.88 < np.mean(inside) < 0.99


def test_a_parameter_without_effect_has_no_deviation():
    random = np.random.default_rng(1)
    jacobian = random.normal(size=(50, 6, 3))
    jacobian[:, :, 1] = 0.0
    found = uncertainty(jacobian, random.normal(size=(50, 6)))
    assert np.isinf(found.std[1]) and np.all(np.isfinite(found.std[[0, 2]]))


@pytest.mark.parametrize(
    ("model", "name", "words"),
    [
        ("rigid_links:2", "ea", "'ea' has no effect with rigid_links:2, .* --cable-model elastic"),
        ("elastic:2", "damping", "no effect with elastic:2, .* --cable-model rigid_links"),
    ],
)
def test_what_a_cable_model_does_not_have_is_not_fitted(unflown, system, model, name, words):
    with pytest.raises(ConfigError, match=words):
        fit_replays([unflown], system, [name], cable_model=model)


@pytest.mark.slow
def test_the_stiffness_of_elastic_cables_comes_back(brief, system):
    """A flight made up with EA 800 N; the fit starts at twice that.

    The load hardly moves with the stretch, so the fit's error is flat about its least value: 870.
    """
    soft = put_all(Setup(system, SPEC), {"ea": 800.0, "axial_damping": 8.0})
    made = Replay(brief, SPEC).run(soft.system, cable_model="elastic:2").load
    replay = Replay(replace(brief, bodies={**brief.bodies, "load": made}), SPEC)
    start = put_all(soft, {"ea": 1600.0}).system
    result = fit_replays([replay], start, ["ea"], cable_model="elastic:2")
    assert result.values["ea"] == pytest.approx(800.0, rel=0.1)


# ---------- Several recordings: what helps on those left out


def made_up_recordings(random, at=(0.05, -0.03, 0.0), own=0.0):
    """Residuals that three columns explain, the third with a change of each recording's own."""
    found = []
    for _ in range(4):
        jacobian = random.normal(size=(600, 3))
        change = np.array(at) + [0.0, 0.0, own * random.normal()]
        residual = -jacobian @ change + 0.01 * random.normal(size=600)
        found.append(Derivatives(residual[:, None], jacobian[:, None]))
    return found


def test_what_helps_on_recordings_left_out_is_kept_in_the_order_of_its_worth():
    random, groups = np.random.default_rng(3), {"one": [0], "two": [1], "three": [2]}
    found = made_up_recordings(random)
    assert choose(found, groups, WORTH) == ["one", "two"]
    np.testing.assert_allclose(best_change(found, [0, 1]), [0.05, -0.03], atol=2e-3)
    # A matter of each day fits every recording, and none that is left out.
    ownish = made_up_recordings(random, own=0.05)
    assert np.abs(best_change(ownish[:1], [2])).max() > 0.01
    assert choose(ownish, groups, WORTH) == ["one", "two"]
    one, two = (left_out(found, columns)[0] for columns in ([0, 1], []))
    assert np.std(one) == pytest.approx(0.01, rel=0.1) and np.std(two) > 4.0 * np.std(one)


def test_a_parameter_that_does_not_exist_is_refused(unflown, system):
    with pytest.raises(ConfigError, match="nothing to fit called 'colour'"):
        fit_replays([unflown, unflown], system, ["colour"])
