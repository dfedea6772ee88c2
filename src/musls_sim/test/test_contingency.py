"""Reaction of a formation to the loss of a drone or a cable."""

from dataclasses import replace

import numpy as np
import pytest

from musls_bringup.catalogue.scenarios import load_scenario
from musls_bringup.cli.app import run
from musls_control.brief.findings import findings
from musls_control.estimate import Estimate
from musls_control.mission.contingency import LOSS, look_for_losses
from musls_control.mission.plan import FlightPlan
from musls_control.mission.rest_of_flight import landed_clear
from musls_control.mission.spec import ContingencySpec
from musls_control.reference import Reference
from musls_description.hanging.equilibrium import hanging_equilibrium
from musls_description.system.drone import tip_radius_m
from musls_sim.session.session import Session

BREAK_N = 60.0
"""Break force of the test flights' cables: four times what a drone carries at most."""

FALL_M = 0.5
GIVEN_S = (2.0 * FALL_M / 9.80665) ** 0.5
"""Time in which a drone falls by `drop_m`."""


def hovering(name, **changes):
    """A formation that hangs in the air and loses drone 1."""
    flight = {
        "start": "air",
        "cable_model": "elastic",
        "system.cables.links": 3,
        "system.cables.elastic.break_force_n": BREAK_N,
        "contingency": {},
        "mission.stages": [{"kind": "hold", "position_m": [0, 0, 2.5], "duration_s": 3}],
        "events": [{"kind": "drone_lost", "drone": 1, "when": {"time_s": 2}}],
    }
    return load_scenario(name, flight | changes)


def reallocated(scenario, lost, spec=None, **options):
    """Formation of a scenario without some of its drones."""
    spec = spec or ContingencySpec()
    return scenario.hanging.without(
        lost, margin=spec.margin, clearance_m=spec.clearance_m, **options
    )


class Watched:
    """What a flight showed from the loss on."""

    def __init__(self, scenario, until_s=60.0):
        self.apart_m, self.sinks_m_s, self.off_m, self.touch_m_s = np.inf, 0.0, 0.0, 0.0
        radii = np.array([tip_radius_m(drone) for drone in scenario.system.drones])
        i, j = np.triu_indices(len(radii), 1)
        with Session(scenario) as session:
            while not session.finished and session.time_s < until_s:
                if session.time_s > 1.9:
                    state = session.state
                    drones = state.position_enu_m[1:]
                    tips = np.linalg.norm(drones[i] - drones[j], axis=1) - radii[i] - radii[j]
                    self.apart_m = min(self.apart_m, tips.min())
                    if session.stage in ("lower", "slacken"):
                        sinks = -state.velocity_enu_m_s[0, 2]
                        self.sinks_m_s = max(self.sinks_m_s, sinks)
                    elif session.stage in ("hold", "reform"):
                        off = state.position_enu_m[0] - session.reference.position_enu_m
                        self.off_m = max(self.off_m, np.linalg.norm(off))
                session.advance(1)
        self.session = session
        self.tension_n = session.max_tension_n.max()
        self.events = {event.kind: event for event in session.events.happened}
        self.load_m = session.state.position_enu_m[0]


@pytest.mark.parametrize(("name", "load_kg", "lost"), [("quad", 1.5, 2), ("hexa", 3.3, 1)])
def test_formation_found_is_an_equilibrium_of_the_exact_chains(name, load_kg, lost):
    """A solver of its own finds the load where it should be in the places that were found.

    Three cables leave no choice of forces; of five it takes more even ones, drones 3 mm beside.
    """
    scenario = load_scenario(name, {"system.load.mass_kg": load_kg})
    found = reallocated(scenario, [lost])
    assert found is not None
    system = scenario.system
    left = [i for i in range(system.n_drones) if i != lost - 1]
    anchors = tuple(system.load.cable_attachments_m[i] for i in left)
    few = replace(
        system,
        load=replace(system.load, cable_attachments_m=anchors),
        drones=tuple(system.drones[i] for i in left),
        cables=tuple(system.cables[i] for i in left),
    )
    hangs = hanging_equilibrium(few, found.offsets_m[left])
    at = hangs.configuration
    determinate = len(left) == 3
    np.testing.assert_allclose(at.load_position_enu_m, 0.0, atol=2e-3 if determinate else 6e-3)
    assert np.linalg.norm(hangs.misfit_m, axis=1).max() < (1e-6 if determinate else 4e-3)
    leans = np.degrees(np.arccos(at.load_rotation[2, 2]))
    assert leans == pytest.approx(found.load_tilt_deg, abs=0.5 if determinate else 1.5)
    if determinate:
        np.testing.assert_allclose(hangs.load_end_tension_n, found.tension_n, rtol=0.01)


def test_nothing_holds_a_load_whose_centre_is_outside_of_the_cables():
    """Three neighbours of a ring of six cannot: all their cables pull on one side of the load."""
    assert reallocated(load_scenario("hexa"), [1, 2, 6]) is None


def test_drones_keep_clear_of_each_other():
    scenario = load_scenario("hexa", {"formation": {"radius_m": 0.95, "height_m": 2.33}})
    for clearance_m in (0.2, 0.6):
        found = reallocated(scenario, [1], ContingencySpec(clearance_m=clearance_m))
        places = found.offsets_m[1:]
        i, j = np.triu_indices(5, 1)
        apart = np.linalg.norm(places[i] - places[j], axis=1)
        assert apart.min() > 2 * tip_radius_m(scenario.system.drones[0]) + clearance_m - 0.01


@pytest.mark.parametrize("name", ["quad", "hexa"])
def test_drones_keep_clear_of_one_that_hovers_without_load(name):
    """A drone that nobody hears stays above its place, or sinks there."""
    scenario = load_scenario(name)
    found = reallocated(scenario, [1], hovering=[1])
    stays = scenario.formation.offsets_m(scenario.system.n_drones)[0]
    level = np.linalg.norm(found.offsets_m[1:, :2] - stays[:2], axis=1)
    assert level.min() > 2 * tip_radius_m(scenario.system.drones[0]) + 0.2 - 0.01


def test_rigid_links_that_do_not_twist_are_warned_of():
    def told(**changes):
        return [
            c
            for c in findings(load_scenario("hexa_survives", changes).brief)
            if "twist: free" in c.text
        ]

    assert not told()
    assert len(told(cable_model="rigid_links")) == 1
    assert not told(cable_model="rigid_links", **{"system.cables.twist": "free"})


def watching(n, slack_s, least_n=0.5):
    """Looks at drones and cables; returns numbers (from 0) of what falls, and of what is slack."""
    losses, times_s = np.zeros(n, LOSS), iter(0.02 * np.arange(1, 100))
    losses["drop"], losses["sink"], losses["least"] = 0.5, 1.0, least_n
    losses["longest"] = slack_s

    def look(estimate, wanted, lifting=False):
        time_s = next(times_s)
        for _ in range(2):  # what was looked at already is not looked at again
            arrays = losses, estimate.data, estimate.tension_n, wanted
            news = look_for_losses(*arrays, time_s, lifting)
        found = [np.flatnonzero(losses[name]).tolist() for name in ("falls", "slackened")]
        assert news == any(found)
        return found

    return look


def test_what_counts_as_lost():
    look, estimate, wanted = watching(4, slack_s=0.09), Estimate.zeros(4), np.zeros((4, 3))
    estimate.tension_n[:] = 5.0
    estimate.drones.position_enu_m[:, 2] = [-0.6, -0.6, -0.4, 0.6]
    estimate.drones.velocity_enu_m_s[:, 2] = [-1.5, -0.5, -1.5, -1.5]
    assert look(estimate, wanted) == [[0], []]
    wanted[:, 2] = np.nan  # landing
    assert look(estimate, wanted) == [[], []]
    estimate.tension_n[:, 0] = [5.0, 0.4, 0.6, 5.0]
    seen = [look(estimate, wanted)[1] for k in range(5)]
    assert seen == [[]] * 4 + [[1]]


def test_a_cable_that_is_late_to_take_up_its_load_is_not_lost():
    """Real PX4s lift unevenly; what has carried and is slack again is lost in the lift, too."""
    look, estimate, wanted = watching(2, slack_s=0.1), Estimate.zeros(2), np.zeros((2, 3))

    def slackened(tensions, lifting=True):
        estimate.tension_n[:, 0] = tensions
        return [i for _ in range(7) for i in look(estimate, wanted, lifting)[1]]

    assert slackened([5.0, 0.0]) == []
    assert 0 in slackened([0.0, 0.0])
    assert 1 in slackened([5.0, 0.0], lifting=False)


def test_five_of_six_carry_on():
    """Noticed after the fall it takes, no jerk, no collision, the load hardly moves."""
    scenario = hovering("hexa")
    flight = Watched(scenario)
    noticed = flight.events["drone_given_up"].time_s - 2.0
    assert noticed == pytest.approx(GIVEN_S, abs=0.04)
    opened = flight.events["hook_opened"].time_s - 2.0
    assert opened - noticed == pytest.approx(scenario.contingency.delay_s, abs=0.005)
    assert "the mission goes on" in flight.events["reallocated"].what
    assert flight.session.stage == "hold" and flight.session.finished
    assert flight.apart_m > 0.1
    assert flight.tension_n < 0.8 * BREAK_N
    assert flight.off_m < 0.4
    assert flight.session.command.throttle[0].max() == 0.0
    (found,) = flight.session.contingency.answers
    # Its own last word about the forces: those that the cables have.
    carried_n = flight.session.state.tension_n[1:, 0].sum()
    assert carried_n == pytest.approx(found.tension_n.sum(), rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("ground_m", [0.0, 4.0])
def test_three_of_four_set_the_load_down(ground_m):
    """On the ground, wherever that is: the flight has begun in the air."""
    place = [{"kind": "hold", "position_m": [0, 0, ground_m + 2.5], "duration_s": 3}]
    world = {"world.ground.height_m": ground_m, "mission.stages": place}
    flight = Watched(hovering("quad", **world))
    assert "too little thrust" in flight.events["reallocated"].what
    assert flight.session.guidance.landed
    assert flight.session.stage == "disarmed"
    assert 0.02 < flight.sinks_m_s < 0.5
    assert flight.load_m[2] == pytest.approx(ground_m + 0.04, abs=0.01)
    assert flight.apart_m > 0.1
    assert flight.tension_n < 0.8 * BREAK_N


@pytest.mark.slow
def test_drone_without_cable_goes_aside_and_lands():
    cut = {"kind": "cable_cut", "cable": 2, "when": {"time_s": 2}}
    flight = Watched(hovering("hexa", events=[cut], contingency={"then": "land"}))
    noticed = flight.events["drone_given_up"]
    assert noticed.what.startswith("drone_2")
    assert noticed.time_s == pytest.approx(2.0 + 1.0, abs=0.1)
    assert flight.events["hook_opened"].time_s == pytest.approx(noticed.time_s + 0.1, abs=0.01)
    assert flight.session.guidance.landed
    assert flight.apart_m > 0.1 and flight.sinks_m_s < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_any_drone_at_any_time_in_wind(seed):
    """Property: no collision, no cable near its break force, load down slowly."""
    random = np.random.default_rng(seed)
    name = ("quad", "hexa")[seed % 2]
    count = {"quad": 4, "hexa": 6}[name]
    scenario = hovering(
        name,
        **{
            "events": [
                {
                    "kind": "drone_lost",
                    "drone": int(random.integers(1, count + 1)),
                    "when": {"time_s": float(random.uniform(2, 8))},
                },
                {
                    "kind": "poke",
                    "when": {"time_s": float(random.uniform(2, 8))},
                    "force_enu_n": random.uniform(-2, 2, 3).tolist(),
                    "duration_s": 0.5,
                },
            ],
            "wind.mean_enu_m_s": [*random.uniform(-1.5, 1.5, 2).tolist(), 0.0],
            "wind.gust_std_m_s": [0.5, 0.5, 0.2],
            "contingency": {"then": "land"},
            "mission.stages": [{"kind": "circle", "height_m": 2.0, "radius_m": 1.0}],
            "seed": seed,
        },
    )
    flight = Watched(scenario)
    assert "reallocated" in flight.events
    assert flight.session.guidance.landed
    assert flight.apart_m > 0.05
    assert flight.tension_n < BREAK_N
    assert 0.02 < flight.sinks_m_s < 0.5


@pytest.mark.parametrize(
    ("name", "changes", "says"),
    [
        ("circle", ["contingency={}"], "has 3 drones; the loss of one"),
        ("quad", ["contingency.drop_m=-1"], "drop_m"),
        ("quad", ["contingency.margin=0.9"], "margin"),
        ("quad", ["contingency={}", "controller.kind=pid"], "controller.kind: formation"),
    ],
)
def test_what_cannot_be_survived_is_refused_in_one_line(name, changes, says, capsys, tmp_path):
    words = ["fly", name, "--out", str(tmp_path / "out")]
    for change in changes:
        words += ["--set", change]
    assert run(words) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert says in error and not (tmp_path / "out").exists()


def test_drones_land_beside_what_lies_on_the_ground():
    """Three spots and a wreck on one of them: apart, within reach, without a jump."""
    places = np.array([[2.0, 0.0], [-1.0, 1.7], [-1.0, -1.7], [1.9, 0.3]])
    rows = np.zeros((11, 4, 3))
    rows[:, :, :2] = places
    zeros = np.zeros((11, 4))
    plan = FlightPlan(5.0, Reference.rest(np.zeros(4)), rows, zeros, np.array([0] * 10 + [1]),
                      ("spread", "land"), 0.5)  # fmt: skip
    lost = np.array([False, False, False, True])
    apart, reach = np.full((4, 4), 1.0), np.full(4, 2.3)
    clear = landed_clear(plan, np.zeros(2), lost, rows[0], apart, reach)
    steps = np.linalg.norm(np.diff(clear.drone_position_enu_m, axis=0), axis=2)
    assert steps.max() < 0.3
    end = clear.drone_position_enu_m[-1, :, :2]
    assert np.array_equal(end[3], places[3])
    distances = np.linalg.norm(end[:, None] - end[None], axis=2) + 9.0 * np.eye(4)
    assert distances.min() > 0.999
    assert np.linalg.norm(end[:3], axis=1).max() < 2.301
    assert np.abs(end[1:3] - places[1:3]).max() < 1e-9
    room = landed_clear(plan, np.zeros(2), lost, rows[0], np.full((4, 4), 0.2), reach)
    assert np.array_equal(room.drone_position_enu_m, plan.drone_position_enu_m)
