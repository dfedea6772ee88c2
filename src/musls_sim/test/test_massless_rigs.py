"""Massless cables of rigs, several to a body: against slung loads and closed forms."""

import numpy as np
import pytest
from massless_rigs import motion_now, random_plant
from plant_helpers import as_rig

from musls_description.config.errors import ConfigError
from musls_sim.plants.interface import PlantInputs
from musls_sim.plants.massless.light_lines import MasslessPlant
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.compose import build_plant

G = 9.80665


@pytest.mark.parametrize("n", [1, 3, 7])
def test_a_slung_load_written_as_a_rig_moves_as_before_through_impacts(n):
    rng = np.random.default_rng(n)
    one = random_plant(rng, n, slack=range(0, n - 1, 2), still=True)
    other = MasslessPlant(as_rig(one.system), motion_now(one), ground_height_enu_m=None)
    inputs = PlantInputs.zeros(one.system)
    for _ in range(150):
        inputs.wrench_enu[:] = rng.normal(size=(1 + n, 6)) * [0.1, 0.1, 0.1, 4.0, 4.0, 4.0]
        one.step(inputs)
        other.step(inputs)
    assert other.happened
    assert len(one.happened) == len(other.happened)
    np.testing.assert_allclose(other.state.motion, one.state.motion, atol=1e-6, rtol=1e-6)


def rig(load, drones, anchors, cables, start, **more):
    """A plant of a rig; cables are (length, (body, point), (body, point))."""
    system = {
        "name": "rig",
        "load": load,
        "drones": [{"from": "x500"}] * drones,
        "anchors": anchors,
        "cables": [
            {
                "mass_kg": 0.001, "length_m": length, "radius_m": 0.001, "links": 1,
                "ends": [{"body": body, "point_m": point} for body, point in ends],
            }
            for length, *ends in cables
        ],
    }  # fmt: skip
    scenario = {
        "system": system, "cable_model": "massless", "start": start,
        "mission": {"duration_s": 1.0}, **more,
    }  # fmt: skip
    return build_plant(load_scenario(scenario))


FREE = {"anchors": {"anchor_1": {"kind": "free"}}}
BEAM = {"mass_kg": 0.6, "shape": {"kind": "box", "size_m": [1.0, 0.1, 0.1]}}
RING = {"position_enu_m": [0, 0, 3.0], "mass_kg": 0.05}


def test_unequal_legs_of_a_bridle_pull_as_their_triangle_says():
    """The centre of the beam hangs below the ring; T_i from the three forces of the beam."""
    at = {"kind": "equilibrium", "drones": [{"position_enu_m": [0, 0, 4.0]}]}
    legs = (0.7, ("load", [0.4, 0, 0]), ("anchor_1", [0, 0, 0])), (
        0.9, ("load", [-0.4, 0, 0]), ("anchor_1", [0, 0, 0]),
    )  # fmt: skip
    plant = rig(BEAM, 1, [RING], [(1.0, ("anchor_1", [0, 0, 0]), ("drone_1", [0, 0, 0])), *legs],
                at, rig=FREE)  # fmt: skip
    # The ring is above the middle of the base 0.8 of a triangle with sides 0.7 and 0.9 (median).
    median = 0.5 * np.sqrt(2 * 0.7**2 + 2 * 0.9**2 - 0.8**2)
    load, ring = plant.state.position_enu_m[0], plant.state.anchor_motion[0, :3]
    assert ring - load == pytest.approx([0.0, 0.0, median], abs=1e-5)
    # Forces along the legs add up to the weight along the median, whose half closes a triangle
    # with half of each: T_i = W l_i / (2 m).
    expected = 0.6 * G * np.array([0.7, 0.9]) / (2.0 * median)
    assert plant.state.tension_n[1:, 0] == pytest.approx(expected, rel=1e-4)
    assert plant.state.tension_n[0, 0] == pytest.approx(0.65 * G, rel=1e-4)


def test_two_lines_of_one_drone_are_a_torsion_spring_that_swings_at_its_rate():
    """Bifilar pendulum: w = (distance / 2) sqrt(m g / (J l)); a prescribed heavy drone holds it."""
    load = {"mass_kg": 0.5, "inertia_kg_m2": [[0.01, 0, 0], [0, 0.01, 0], [0, 0, 0.02]],
            "collision": {"size_m": [0.1, 0.1, 0.1]}}  # fmt: skip
    turn = 0.02
    drop = 1.5 - np.sqrt(1.5**2 - (0.3 * np.sin(turn / 2)) ** 2)
    start = {
        "kind": "state",
        "load": {"position_enu_m": [0, 0, 2.5 + drop],
                 "orientation_wxyz": [np.cos(turn / 2), 0, 0, np.sin(turn / 2)]},
        "drones": [{"position_enu_m": [5, 0, 4.0]}],
    }  # fmt: skip
    held = [{"position_enu_m": [0, 0, 4.0]}]
    plant = rig(
        load, 1, held,
        [(1.5, ("load", [s * 0.15, 0, 0]), ("anchor_1", [s * 0.15, 0, 0])) for s in (1, -1)]
        + [(9.0, ("anchor_1", [0, 0, 0]), ("drone_1", [0, 0, 0]))],
        start,
    )  # fmt: skip
    inputs = PlantInputs.zeros(plant.system)
    yaw = []
    for _ in range(1500):
        plant.step(inputs)
        w, _, _, z = plant.state.orientation_wxyz[0]
        yaw.append(2.0 * np.arctan2(z, w))
    crossings = np.flatnonzero(np.diff(np.sign(yaw)))
    rate = np.pi / (np.mean(np.diff(crossings)) * plant.period_s)
    assert rate == pytest.approx(0.15 * np.sqrt(0.5 * G / (0.02 * 1.5)), rel=0.02)


def test_four_parallel_cables_share_a_weight_that_their_lengths_do_not_share():
    """Statically indeterminate: all at their length, together they carry the box."""
    box = {"mass_kg": 0.8, "shape": {"kind": "box", "size_m": [0.4, 0.4, 0.1]}}
    corners = [(sx * 0.15, sy * 0.15) for sx in (1, -1) for sy in (1, -1)]
    start = {"kind": "equilibrium", "drones": [{"position_enu_m": [0, 0, 4.0]}]}
    cables = [(1.5, ("load", [x, y, 0.05]), ("drone_1", [x, y, 0])) for x, y in corners]
    plant = rig(box, 1, [], cables, start)
    assert plant.state.tension_n[:, 0] == pytest.approx(np.full(4, 0.2 * G), rel=1e-4)
    audit = plant.audit
    for _ in range(100):
        plant.step(PlantInputs.zeros(plant.system))  # the rotors stop, all falls: energy stays
    assert np.isfinite(plant.state.motion).all()
    assert plant.audit.energy_j == pytest.approx(audit.energy_j + plant.audit.work_j, abs=0.3)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"anchors": {"anchor_1": {"kind": "path", "time_s": [0, 1],
                                   "position_enu_m": [[0, 0, 3], [1, 0, 3]]}}}, "is driven"),
        ({}, "does not reach over"),
    ],
)  # fmt: skip
def test_what_lines_without_mass_cannot_be_is_refused(changes, says):
    start = {"kind": "state", "load": {"position_enu_m": [0, 0, 1]},
             "drones": [{"position_enu_m": [0, 0, 5]}]}  # fmt: skip
    cables = [(1.0, ("anchor_1", [0, 0, 0]), ("drone_1", [0, 0, 0])),
              (1.0, ("load", [0, 0, 0]), ("anchor_1", [0, 0, 0]))]  # fmt: skip
    with pytest.raises(ConfigError) as refused:
        rig(BEAM, 1, [RING], cables, start, rig=changes)
    assert says in str(refused.value)
