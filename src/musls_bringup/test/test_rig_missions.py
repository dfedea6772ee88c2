"""Systems that are no cone fly: each shipped kind against a closed form, margins, and refusals."""

import numpy as np
import pytest
from scipy.optimize import brentq

import musls
from musls_bringup.before.verdict import judge, look
from musls_sim.session.compose import flight_plan

G = 9.80665
X500_KG = 2.064307692307692


def catenary_n(begin, end, length_m, mass_kg):
    """Tensions at both ends of a chain: sinh(u) / u = sqrt(l^2 - v^2) / h, a = h / 2u, T = w y."""
    across, up = np.hypot(*(end - begin)[:2]), end[2] - begin[2]
    u = brentq(lambda u: np.sinh(u) / u - np.sqrt(length_m**2 - up**2) / across, 1e-3, 20.0)
    a = across / (2.0 * u)
    left = a * np.arctanh(up / length_m) - across / 2.0
    return mass_kg / length_m * G * a * np.cosh(np.array([left, left + across]) / a)


def test_tether_between_two_drones_on_paths_hangs_in_catenaries():
    scenario = musls.load_scenario("tether")
    plan = flight_plan(scenario)
    held, places = plan.held, plan.drone_position_enu_m
    for row in (0, len(plan.stage) // 2, len(plan.stage) - 1):
        expected = catenary_n(*places[row], 6.0, 0.3)
        pulls = np.linalg.norm(held.thrust_enu_n[row] - [0.0, 0.0, X500_KG * G], axis=1)
        assert pulls == pytest.approx(expected, rel=5e-3)
    run = musls.fly(scenario)
    cable = run.cable(1)
    ends = cable.shape_enu_m[-1][[0, -1]]
    assert ends == pytest.approx(np.array([[-1.0, 2.0, 7.0], [3.0, 2.0, 6.0]]), abs=0.05)
    assert cable.tension_n[-1] == pytest.approx(catenary_n(*ends, 6.0, 0.3), rel=0.02)
    # The middle of the cable is asked to be where it hangs.
    middle = run.body("load").position_enu_m[-1]
    assert middle == pytest.approx(plan.load_pose[-1, :3], abs=0.05)


def test_bridle_below_a_ring_shares_the_beam_between_its_legs():
    run = musls.fly(musls.load_scenario("bridle"))
    half_n = (0.5 + 0.008) * G / 2.0  # beam, and the lower halves of the legs
    upright = np.sqrt(0.75**2 - 0.45**2) / 0.75
    for leg in (2, 3):
        assert run.cable(leg).tension_n[-1, 0] == pytest.approx(half_n / upright, rel=0.03)
    above_n = (0.5 + 0.02 + 2 * 0.008 + 0.01) * G
    assert run.cable(1).tension_n[-1, 1] == pytest.approx(above_n, rel=0.02)
    assert run.body("load").position_enu_m[-1] == pytest.approx([2.0, 0.0, 2.6], abs=0.05)


def test_two_cables_of_one_drone_hold_the_box_level_when_it_swings():
    """Equal parallel cables make a parallelogram: the box does not turn about y."""
    run = musls.fly(musls.load_scenario("two_lines"))
    x, y, z, w = run.body("load").orientation_wxyz.T[[1, 2, 3, 0]]
    pitch = np.arcsin(np.clip(2.0 * (w * y - z * x), -1.0, 1.0))
    drone = run.body("drone_1").orientation_wxyz
    own = np.arcsin(np.clip(2.0 * (drone[:, 0] * drone[:, 2] - drone[:, 3] * drone[:, 1]), -1, 1))
    assert np.abs(own).max() > np.radians(1.5)  # the drone leans, and the box leans as it does
    assert np.abs(pitch - own).max() < np.radians(1.5)
    ends_n = np.array([run.cable(i).tension_n[-1] for i in (1, 2)])
    assert ends_n.sum(axis=0) == pytest.approx([0.5 * G, 0.52 * G], rel=0.02)


def test_a_drone_that_turns_takes_its_load_with_it():
    """Two lines apart make a torsion spring: the box turns as the drone does."""
    scenario = musls.load_scenario("two_lines", {"mission.drones.drone_1.1.yaw_rad": 1.2})
    plan, run = flight_plan(scenario), musls.fly(scenario)
    w, _, _, z = run.body("load").orientation_wxyz[-1]
    assert plan.load_pose[-1, 3] == pytest.approx(1.2, abs=0.01)
    assert 2.0 * np.arctan2(z, w) == pytest.approx(1.2, abs=0.03)


def test_five_cables_balance_the_plate():
    scenario = musls.load_scenario("five_cables")
    with musls.Session(scenario) as session:
        session.advance(5)
        plant, state = session.plant, session.state
        pull, moment = np.zeros(3), np.zeros(3)
        for i in range(5):
            nodes = plant.cable_nodes_enu_m(i)
            along = (nodes[1] - nodes[0]) / np.linalg.norm(nodes[1] - nodes[0])
            force = plant.segment_tensions_n(i)[0] * along - [0.0, 0.0, 0.015 / 16 * G]
            pull += force
            moment += np.cross(nodes[0] - state.position_enu_m[0], force)
    assert pull == pytest.approx([0.0, 0.0, 1.2 * G], abs=0.02)
    assert moment == pytest.approx(np.zeros(3), abs=0.01)
    told, found = look(scenario)
    all_kg = 1.2 + 5 * 0.015 + 3 * X500_KG
    assert not any(finding.refuses for finding in told)
    assert found.at_rest.thrust_enu_n.sum(axis=0) == pytest.approx([0.0, 0.0, all_kg * G], abs=1e-3)


def test_tether_of_a_ground_winch_is_as_long_as_it_pays_out():
    scenario = musls.load_scenario("tethered")
    run, plan = musls.fly(scenario), flight_plan(scenario)
    assert run.cable(1).free_length_m[-1] == pytest.approx(10.5, abs=1e-6)
    shape = run.cable(1).shape_enu_m[-1]
    expected = catenary_n(shape[0], shape[-1], 10.5, 0.12 * 10.5 / 5.0)
    assert run.cable(1).tension_n[-1] == pytest.approx(expected, abs=0.05)
    assert plan.held.tension_n[-1, 0] == pytest.approx(expected[1], rel=0.03)
    assert np.abs(run.body("drone_1").position_enu_m[-1] - [6.0, 0.0, 8.0]).max() < 0.05


def test_second_load_hangs_below_the_first_and_falls_when_it_is_cut():
    cut = [{"kind": "cable_cut", "when": {"time_s": 3.0}, "cable": 3, "segment": 6}]
    run = musls.fly(musls.load_scenario("load_below", {"events": cut}))
    anchor, before = run.body("anchor_1"), run.cable(3).time_s < 2.9
    assert run.cable(3).tension_n[before][-1, 0] == pytest.approx(0.3 * G, rel=0.02)
    height = np.interp([3.0, 3.3], anchor.time_s, anchor.position_enu_m[:, 2])
    assert height[0] - height[1] == pytest.approx(G * 0.3**2 / 2.0, abs=0.02)
    assert anchor.position_enu_m[-1, 2] == pytest.approx(0.1, abs=0.01)  # its box stands


# ---------- Margins, words, controllers


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"mission.drones.drone_2.1.position_m": [5.1, 2, 6]}, "thrust margin"),
        ({"mission.drones": {"drone_3": [{"kind": "hold"}]}}, "unknown drone 'drone_3'"),
        ({"mission.drones.drone_1.0.position_m": [2e4, 0, 6]}, "mission.drones.drone_1.0: the set"),
        ({"controller": {"kind": "payload"}}, "only drones that carry a load are possible there"),
        ({"controller": {"kind": "pid"}}, "only a load with one cable to each drone is poss"),
        ({"system.cables.0.mass_kg": 9.0}, "cable_1 of 6 m pulls most"),
    ],
)
def test_what_a_rig_cannot_fly_is_refused_with_words_about_it(changes, says):
    with pytest.raises(musls.MuslsError) as refused:
        musls.Session(musls.load_scenario("tether", changes)).close()
    assert says in str(refused.value)
    assert "choose cable_model: elastic" not in str(refused.value)


def test_check_finds_the_moment_at_which_a_tether_is_pulled_taut():
    far = {"mission.drones.drone_2.1.position_m": [4.9, 2, 6]}
    found = judge(musls.load_scenario("tether", far))
    assert not found.can_be_flown
    assert any("own_paths" in line and "thrust margin" in line for line in found.problems)


class Follow(musls.Controller):
    """Holds the drones where they were when it took over."""

    level = "drone_setpoints"

    def start(self, time_s, estimate):
        self.places = estimate.position_enu_m[1:].copy()
        self.sees = (self.setup.system.name, self.setup.system.n_cables)

    def step(self, time_s, reference, estimate):
        return np.column_stack([self.places, np.zeros(len(self.places))])


def test_own_controller_flies_a_rig():
    own = Follow()
    run = musls.fly(musls.load_scenario("tether"), controller=own)
    assert own.sees == ("tether", 1)
    assert run.body("drone_2").position_enu_m[-1] == pytest.approx([2.0, 0.0, 6.0], abs=0.02)


@pytest.mark.parametrize("contact", [["load", "drones"], ["load", "drones", "cables"]])
def test_rope_that_lies_is_found_at_rest(contact):
    """What lies carries nothing: the drone holds what hangs, w h of rope."""
    rope = {"mass_kg": 0.8, "length_m": 8.0, "radius_m": 0.004, "links": 64}
    ends = [{"body": "anchor_1"}, {"body": "drone_1"}]
    scenario = musls.load_scenario(
        {
            "system": {
                "name": "lying", "drones": [{"from": "x500"}],
                "anchors": [{"position_enu_m": [0, 0, 0.01]}], "cables": [rope | {"ends": ends}],
            },
            "cable_model": "elastic",
            "start": {"kind": "equilibrium", "drones": [{"position_enu_m": [3, 0, 2]}]},
            "mission": {"duration_s": 1.0},
            "physics": {"contact": contact},
        }
    )  # fmt: skip
    run = musls.fly(scenario)
    assert run.cable(1).tension_n[0, 1] == pytest.approx(0.1 * G * 2.0, rel=0.08)
    assert np.abs(run.cable(1).shape_enu_m[-1] - run.cable(1).shape_enu_m[0]).max() < 5e-3
    assert run.warnings == ()
