"""Random rigs of elastic cables: what holds for every one of them."""

import numpy as np
import pytest
from elastic_random import moved, positions, rigs, shuffled
from elastic_rigs import run
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from musls_sim.plants.elastic.engine import Engine
from musls_sim.plants.elastic.output import momenta

G = 9.81

# The same examples in every run: a test that fails by chance on somebody's machine helps nobody.
several = settings(
    max_examples=40,
    database=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],  # shrinking takes minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def flown(rig):
    """30 ms in steps of 1 ms: what a coarse step does not resolve depends on the solver's ways."""
    engine = Engine(rig, period_s=0.001)
    run(engine, 0.03)
    return engine


def close(one, other, within=1e-6):
    """Whether two sets of positions agree; rounding grows where a line snaps taut."""
    assert one[0] == pytest.approx(other[0], abs=within)
    for a, b in zip(one[1], other[1], strict=True):
        assert a == pytest.approx(b, abs=within)


@several
@given(rigs())
def test_energy_does_not_grow_without_input(rig):
    """Kinetic, potential, strain and bending energy never get past the start's.

    TR-BDF2 keeps energy to the second order of the step: a weight that bounces on a steep table at
    0.6 rad per step is ahead of the start's by 0.6 % of what moves.
    """
    engine = Engine(rig)
    start = engine.energy_j()
    highest, most = start.sum(), start[[0, 2, 3]].sum()
    for _ in range(50):
        engine.advance()
        energy = engine.energy_j()
        highest, most = max(highest, energy.sum()), max(most, energy[[0, 2, 3]].sum())
    assert highest - start.sum() < 0.03 * most


@several
@given(rigs(anchors=False))
def test_momentum_changes_by_the_weight_and_nothing_else(rig):
    engine = Engine(rig)
    before = momenta(engine.tables)[0]
    run(engine, 0.1)
    expected = before + [0.0, 0.0, -rig.mass_kg * G * 0.1]
    assert momenta(engine.tables)[0] == pytest.approx(expected, abs=1e-11 * max(rig.mass_kg, 1.0))


@several
@given(rigs(), st.floats(-3.0, 3.0))
def test_a_turned_and_shifted_rig_moves_turned_and_shifted(rig, angle):
    """About the vertical: gravity stays."""
    turn, shift = Rotation.from_rotvec([0.0, 0.0, angle]).as_matrix(), np.array([0.5, -0.2, 1.5])
    bodies, cables = positions(flown(rig))
    wanted = bodies @ turn.T + shift, [k @ turn.T + shift for k in cables]
    close(positions(flown(moved(rig, turn, shift))), wanted)


@several
@given(rigs(gravity=0.0), st.tuples(*[st.floats(-2.0, 2.0)] * 3))
def test_without_gravity_no_direction_is_special(rig, vector):
    turn = Rotation.from_rotvec(vector).as_matrix()
    bodies, cables = positions(flown(rig))
    close(positions(flown(moved(rig, turn, 0.0))), (bodies @ turn.T, [k @ turn.T for k in cables]))


@several
@given(rigs())
def test_a_mirrored_rig_moves_mirrored(rig):
    mirror = np.diag([1.0, -1.0, 1.0])
    bodies, cables = positions(flown(rig))
    wanted = bodies @ mirror, [k @ mirror for k in cables]
    close(positions(flown(moved(rig, mirror, 0.0))), wanted)


@several
@given(rigs(), st.randoms(use_true_random=False))
def test_order_of_bodies_and_cables_and_their_ends_do_not_matter(rig, random):
    """Which code solves a cable, and what is eliminated first, depends on all three."""
    body_order, cable_order = list(range(len(rig.bodies))), list(range(len(rig.cables)))
    random.shuffle(body_order)
    random.shuffle(cable_order)
    flips = [random.random() < 0.5 for _ in cable_order]
    bodies, cables = positions(flown(rig))
    other = positions(flown(shuffled(rig, body_order, cable_order, flips)))
    wanted = (
        bodies[body_order],
        [cables[k][::-1] if flip else cables[k]
         for k, flip in zip(cable_order, flips, strict=True)],
    )  # fmt: skip
    close(other, wanted, within=1e-5)


@several
@given(rigs())
def test_the_same_rig_gives_the_same_bits(rig):
    one, other = (flown(rig).tables for _ in range(2))
    assert one.nodes.tobytes() == other.nodes.tobytes()
    assert one.bodies.tobytes() == other.bodies.tobytes()
