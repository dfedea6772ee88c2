"""Rigs flown by the one session: anchors, cables without a load, drones that hold a cable."""

import numpy as np
import pytest

from musls_description.config.errors import ConfigError
from musls_description.config.schema import to_yaml
from musls_description.config.strict_yaml import parse_yaml
from musls_sim.plants.elastic.cables.line import linear_strain
from musls_sim.plants.elastic.start import nodes_between
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session

G = 9.80665

BOX = (
    "inertia_kg_m2: [[0.01, 0, 0], [0, 0.01, 0], [0, 0, 0.01]], "
    "collision: {size_m: [0.2, 0.2, 0.1]}"
)
LINE = "mass_kg: 0.06, length_m: 2.0, radius_m: 0.002, links: 8, elastic: {ea_n: 2.0e4}"

SWING = f"""
system:
  name: swing
  load: {{mass_kg: 1.0, {BOX}}}
  anchors:
    - {{position_enu_m: [-0.3, 0, 4], mass_kg: 0.4}}
    - {{position_enu_m: [0.3, 0, 4], mass_kg: 0.4}}
  cables:
    - {{{LINE}, ends: [{{body: anchor_1}}, {{body: load, point_m: [-0.1, 0, 0.05]}}]}}
    - {{{LINE}, ends: [{{body: load, point_m: [0.1, 0, 0.05]}}, {{body: anchor_2}}]}}
cable_model: elastic
start: equilibrium
mission: {{duration_s: 1.0}}
"""

SLING = f"""
system:
  name: line between two anchors
  anchors: [{{position_enu_m: [0, 0, 3]}}, {{position_enu_m: [1.6, 0, 3.4]}}]
  cables: [{{{LINE}, ends: [{{body: anchor_1}}, {{body: anchor_2}}]}}]
cable_model: elastic
start: equilibrium
mission: {{duration_s: 0.2}}
"""

CARRIED = f"""
system:
  name: line between two drones
  drones: [{{from: x500}}, {{from: x500}}]
  cables:
    - {LINE.replace("mass_kg: 0.06", "mass_kg: 0.4").replace(", ", chr(10) + "      ")}
      ends: [{{body: drone_1}}, {{body: drone_2, point_m: [0.05, 0, -0.1]}}]
cable_model: elastic
start:
  kind: equilibrium
  drones: [{{position_enu_m: [0, 0, 3]}}, {{position_enu_m: [1.6, 0, 3.2]}}]
mission: {{duration_s: 2.0}}
estimation: {{kind: truth}}
"""

TIMES = [0.0, 0.5, 1.0]
WAY = {
    "kind": "path", "time_s": TIMES, "relative": True,
    "position_enu_m": [[0, 0, 0], [0.05, 0.03, 0.03], [0.1, 0.03, 0.0]],
    "velocity_enu_m_s": [[0, 0, 0], [0.15, 0.03, 0.0], [0, 0, 0]],
    "acceleration_enu_m_s2": [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
}  # fmt: skip


OPEN_LOOP = {"kind": "open_loop", "thrust_n": []}
ONE_NODE = {"shape": "nodes", "nodes_enu_m": [[0, 0, 0]]}
PUSH = {"kind": "force", "time_s": [0], "force_enu_n": [[0, 0, 1]]}


def scenario(tmp_path, text, **changes):
    """Scenario of a text with changes at its top level."""
    file = tmp_path / "rig.yaml"
    file.write_text(to_yaml({**parse_yaml(text, "text"), **changes}))
    return load_scenario(file)


def flown(made, periods):
    """The plant, and anchors' motion, wrenches and the first row after every period."""
    rows = []
    with Session(made) as session:
        state = session.state
        rows.append(
            [state.anchor_motion.copy(), state.anchor_wrench_n.copy(), state.motion[0].copy()]
        )
        for _ in range(periods):
            session.advance(1)
            rows.append(
                [state.anchor_motion.copy(), state.anchor_wrench_n.copy(), state.motion[0].copy()]
            )
        return session.plant, *map(np.array, zip(*rows, strict=True))


def test_an_equilibrium_starts_at_rest_and_carries_the_weights(tmp_path):
    with Session(scenario(tmp_path, SWING)) as session:
        t, state = session.plant.tables, session.state
        assert np.abs(t.bodies["acceleration"]).max() < 1e-6 * G
        assert np.abs(t.nodes["acceleration"]).max() < 1e-6 * G
        held = state.anchor_wrench_n[:, :3].sum(axis=0)
        assert held == pytest.approx([0.0, 0.0, (1.12 + 0.8) * G], abs=1e-6)
        # The second cable runs the other way: its end 1 is at the load, as end 2 of the first.
        assert state.tension_n[0] == pytest.approx(state.tension_n[1, ::-1], rel=1e-6)
        near, far = (session.plant.cable_nodes_enu_m(1)[k] for k in (0, -1))
        assert far == pytest.approx([0.3, 0.0, 4.0], abs=1e-6) and near[2] < 2.2
        first = state.motion.copy()
        session.advance(50)
        assert state.motion[0, :3] == pytest.approx(first[0, :3], abs=1e-6)


def test_forces_at_the_ends_are_those_that_hold_the_load(tmp_path):
    """In the frames of the end segments, whichever way a cable runs in the core."""
    with Session(scenario(tmp_path, SWING)) as session:
        plant, force = session.plant, session.state.cable_force_n
        total = np.zeros(3)
        for i, end in ((0, 1), (1, 0)):  # the ends at the load
            nodes = plant.cable_nodes_enu_m(i)
            x = np.diff(nodes, axis=0)[-1 if end else 0]
            x = x / np.linalg.norm(x)
            y = np.cross([0.0, 0.0, 1.0], x) / np.hypot(x[0], x[1])
            world = force[i, end] @ np.array([x, y, np.cross(x, y)])
            total += -world if end else world  # upper side on lower side, seen from end 1 to 2
        assert total == pytest.approx([0.0, 0.0, G], abs=1e-6)


def test_work_at_the_anchors_is_energy_and_loss(tmp_path):
    made = scenario(tmp_path, SWING, rig={"anchors": {"anchor_1": WAY, "anchor_2": WAY}})
    plant, motion, wrench, _ = flown(made, 200)
    power = (wrench[:, :, :3] * motion[:, :, 3:6]).sum(axis=(1, 2))
    work = 0.004 * (power[1:] + power[:-1]).sum() / 2.0
    audit = plant.audit
    taken = audit.energy_j - audit.start_j + audit.loss_j
    assert work == pytest.approx(taken, rel=1e-4)
    assert audit.work_j == pytest.approx(taken, rel=1e-4)


def test_recorded_forces_drive_free_anchors_along_the_path(tmp_path):
    drives = {"anchor_1": WAY, "anchor_2": WAY}
    _, motion, wrench, load = flown(scenario(tmp_path, SWING, rig={"anchors": drives}), 250)
    times = [0.004 * k for k in range(251)]
    forces = {
        f"anchor_{i + 1}": {
            "kind": "force", "time_s": times,
            "force_enu_n": wrench[:, i, :3].tolist(),
        }
        for i in range(2)
    }  # fmt: skip
    _, free, _, there = flown(scenario(tmp_path, SWING, rig={"anchors": forces}), 250)
    assert np.abs(motion[-1, :, :3] - motion[0, :, :3]).max() > 0.09
    assert np.abs(free[:, :, :3] - motion[:, :, :3]).max() < 1e-5
    assert np.abs(there[:, :3] - load[:, :3]).max() < 1e-5


def test_a_line_without_a_load_shows_its_middle_node(tmp_path):
    with Session(scenario(tmp_path, SLING)) as session:
        nodes = nodes_between(
            np.array([0.0, 0, 3]), np.array([1.6, 0, 3.4]), 8, 2.0, 0.06, G, linear_strain(2e4)
        )
        assert session.plant.cable_nodes_enu_m(0) == pytest.approx(nodes, abs=1e-8)
        session.advance(50)
        assert session.state.position_enu_m[0] == pytest.approx(nodes[4], abs=1e-6)
        assert session.state.motion.shape == (1, 16)
        assert session.state.anchor_wrench_n[:, 2].sum() == pytest.approx(0.06 * G, rel=1e-6)


def test_drones_hold_a_heavy_line_between_them(tmp_path):
    with Session(scenario(tmp_path, CARRIED)) as session:
        first = session.state.position_enu_m.copy()
        t = session.plant.tables
        assert np.abs(t.bodies[1:]["acceleration"]).max() < 1e-5 * G
        while not session.finished:
            session.advance(1)
        assert session.state.position_enu_m == pytest.approx(first, abs=0.02)


def test_a_thrust_carries_an_anchor_along_its_z_axis(tmp_path):
    """A single line with a load: the whole accelerates by thrust / mass - g."""
    text = SWING.replace("position_enu_m: [-0.3, 0, 4]", "position_enu_m: [0, 0, 4]")
    data = parse_yaml(text, "text")
    data["system"]["anchors"] = data["system"]["anchors"][:1]
    data["system"]["cables"] = data["system"]["cables"][:1]
    data["system"]["cables"][0]["ends"][1]["point_m"] = [0, 0, 0.05]
    thrust = {"kind": "thrust", "time_s": [0.0], "thrust_n": [20.0]}
    made = scenario(tmp_path, to_yaml(data), rig={"anchors": {"anchor_1": thrust}})
    with Session(made) as session:
        session.advance(250)
        t = session.plant.tables
        momentum = (
            1.0 * session.state.velocity_enu_m_s[0] + 0.4 * session.state.anchor_motion[0, 3:6]
        )
        momentum += t.nodes["mass"] @ t.nodes["velocity"]
        assert momentum[2] / 1.46 == pytest.approx(20.0 / 1.46 - G, rel=1e-9)


@pytest.mark.parametrize(
    ("text", "changes", "words"),
    [
        (SWING, {"rig": {"anchors": {"anchor_3": WAY}}}, "unknown anchor 'anchor_3'"),
        (
            SLING,
            {"rig": {"anchors": {"anchor_1": PUSH}}},
            "rig.anchors.anchor_1: only an anchor with mass_kg can be pushed or free",
        ),
        (SWING, {"start": "ground"}, "start.kind = ground: mission.duration_s needs start.kind"),
        (SWING, {"mission": {"stages": [{"kind": "hold"}]}}, "has no drones that could fly it"),
        (SWING, {"start": {"kind": "state", "drones": []}}, "start.load is missing"),
        (CARRIED, {"start": "equilibrium"}, "start.drones has 0 entries for 2 drones"),
        (
            SLING, {"start": {"kind": "equilibrium", "cables": ONE_NODE}},
            "start.cables.0.nodes_enu_m has 1 rows, not 9",
        ),
        (SWING, {"controller": OPEN_LOOP}, "controller.kind = open_loop: "),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_before_the_flight(tmp_path, text, changes, words):
    with pytest.raises(ConfigError) as error:
        Session(scenario(tmp_path, text, **changes))
    assert words in str(error.value) and "\n" not in str(error.value)


def test_a_line_that_would_break_at_the_start_is_refused(tmp_path):
    data = parse_yaml(SWING, "text")
    data["system"]["cables"][1]["elastic"]["break_force_n"] = 4.0
    with pytest.raises(ConfigError, match=r"cables\.1\.elastic\.break_force_n = 4: .* 5\.\d+ N"):
        Session(scenario(tmp_path, to_yaml(data)))


def test_start_shapes(tmp_path):
    straight = {"kind": "equilibrium", "cables": {"shape": "straight", "strain": 0.001}}
    made = scenario(tmp_path, SLING, start={**straight, "kind": "equilibrium"})
    with Session(made) as session:
        length = session.plant.rig.cables[0].length_m
        assert length == pytest.approx(np.hypot(1.6, 0.4) / 1.001)
        # EA times strain, and what the weight adds: w times the height from segment to segment.
        tension = session.plant.segment_tensions_n(0)
        assert tension == pytest.approx(0.001 * 2.0e4, rel=0.03)
        assert np.ptp(tension) == pytest.approx(0.03 * G * 0.4 * 7 / 8, rel=0.01)
    nodes = np.linspace([0.0, 0, 3], [1.6, 0, 3.4], 9)
    nodes[4, 2] -= 0.1
    given = {"kind": "equilibrium", "cables": {"shape": "nodes", "nodes_enu_m": nodes.tolist()}}
    scenario(tmp_path, SLING, start=given)


def test_cuts_and_breaks_are_told_with_segments_counted_from_end_1(tmp_path):
    data = parse_yaml(SWING, "text")
    data["system"]["cables"][1]["elastic"]["break_force_n"] = 9.0
    cut = {"kind": "cable_cut", "when": {"time_s": 0.1}, "cable": 1, "segment": 8}
    with Session(scenario(tmp_path, to_yaml(data), events=[cut])) as session:
        assert session.state.tension_n.max() < 9.0
        session.advance(150)
        happened = session.events.happened
        # The load hangs on the second cable alone, which is too much for it.
        assert [event.kind for event in happened] == ["cable_cut", "cable_broken"]
        assert happened[1].what.startswith("cable_2: segment")
        middle = session.plant.cable_nodes_enu_m(0)
        steps = np.linalg.norm(np.diff(middle, axis=0), axis=1)
        assert steps[:-1].max() < 0.26 and steps[-1] > 0.26  # cut at the load, its end 2


def test_a_winch_that_has_no_cable_left_stops_and_says_so(tmp_path):
    """Two drums let a load fall until they are empty; other events can wait for that."""
    data = parse_yaml(SWING, "text")
    drum = {"kind": "drum", "radius_m": 0.05, "inertia_kg_m2": 1e-4, "stored_length_m": 0.5}
    data["system"]["winches"] = [
        {"cable": 1, "end": 1, "axis": [0, 1, 0], **drum},
        {"cable": 2, "end": 2, "axis": [0, 1, 0], **drum},
    ]
    free = {"time_s": [0.0, 0.1], "torque_n_m": [0.0, 0.0], "brake": [True, False]}
    data["rig"] = {"winches": {"winch_1": free, "winch_2": free}}
    after = {"event": "winch_stopped", "after_s": 0.1}
    data["events"] = [{"kind": "poke", "when": after, "force_enu_n": [1, 0, 0], "duration_s": 0.1}]
    with Session(scenario(tmp_path, to_yaml(data))) as session:
        session.run()
        happened = session.events.happened
        lengths = session.state.free_length_m
    first, second = (event for event in happened[:2] if event.kind == "winch_stopped")
    assert {first.what, second.what} == {f"winch_{i}: no cable left" for i in (1, 2)}
    poke = next(event for event in happened if event.kind == "poke")
    # Free fall of 1.06 kg that turns two drums of 1e-4 kg m2 (0.04 kg at their rim each).
    assert first.time_s - 0.1 == pytest.approx(np.sqrt(2.0 * 0.5 * 1.14 / 1.06 / G), rel=0.05)
    assert poke.time_s == pytest.approx(first.time_s + 0.1, abs=0.0041)
    np.testing.assert_allclose(lengths, 2.5, atol=0.01)  # the drums rebound a little


def test_wheels_share_their_line_out_before_an_equilibrium_starts(tmp_path):
    """A line over a pulley on the load: it hangs in the middle, whatever was on either side."""
    data = parse_yaml(SWING, "text")
    data["system"]["load"]["cable_attachments_m"] = []
    for k, cable in enumerate(data["system"]["cables"]):
        cable["length_m"], cable["mass_kg"] = (1.95, 0.0585) if k else (2.05, 0.0615)
        for end in cable["ends"]:
            if end["body"] == "load":
                end["point_m"] = [0.0, 0.0, 0.05]
    sides = [{"cable": 1, "end": 2}, {"cable": 2, "end": 1}]
    pulley = {"body": "load", "position_m": [0, 0, 0.05], "radius_m": 0.02, "inertia_kg_m2": 1e-4}
    data["system"]["pulleys"] = [{**pulley, "cables": sides}]
    with Session(scenario(tmp_path, to_yaml(data))) as session:
        state = session.state
        np.testing.assert_allclose(state.free_length_m, 2.0, atol=1e-6)
        assert state.position_enu_m[0, 0] == pytest.approx(0.0, abs=1e-6)
        session.run()
        np.testing.assert_allclose(state.free_length_m, 2.0, atol=1e-5)
        assert np.abs(state.velocity_enu_m_s[0]).max() < 1e-4


def test_runs_of_compiled_periods_are_single_steps_in_python(tmp_path):
    """Paths, thrusts, feeds and drums that stop, and an event that takes a winch over."""
    data = parse_yaml(SWING, "text")
    data["system"]["winches"] = [
        {"cable": 1, "end": 1, "kind": "feed", "stored_length_m": 0.21},
        {"cable": 2, "end": 2, "axis": [0, 1, 0], "kind": "drum", "radius_m": 0.05,
         "inertia_kg_m2": 1e-4, "stored_length_m": 0.5, "brake_torque_n_m": 3.0},
    ]  # fmt: skip
    times = [0.0, 0.2, 0.4]
    data["rig"] = {
        "anchors": {
            "anchor_1": WAY,
            "anchor_2": {"kind": "thrust", "time_s": [0, 1], "thrust_n": [9, 9]},
        },
        "winches": {
            "winch_1": {"time_s": times, "feed_m_s": [0.0, 0.4, 0.4]},
            "winch_2": {"time_s": times, "torque_n_m": [0, 0, 0.1], "brake": [True, False, False]},
        },
    }
    data["events"] = [
        {"kind": "winch", "when": {"time_s": 0.6}, "winch": 1, "feed_m_s": 0.5, "ramp_s": 0.1}
    ]
    seen, told = [], []
    for compiled in (True, False):
        with Session(scenario(tmp_path, to_yaml(data))) as session:
            plant, step = session.plant, session.plant.step
            if not compiled:
                plant.step = lambda inputs, step=step: step(inputs)
            assert (plant.compiled_step is not None) == compiled
            runs, account = [], plant.account
            plant.account = lambda *of, runs=runs, account=account: runs.append(of) or account(*of)
            session.advance(250)
            assert (len(runs) <= 12) == compiled
            state, happened = session.state, session.events.happened
            seen.append([state.motion, state.anchor_motion, state.anchor_wrench_n])
            seen[-1] += [state.free_length_m, state.cable_force_n, session.inputs.winch]
            told.append([(event.time_s, event.kind, event.what) for event in happened])
    for one, other in zip(*seen, strict=True):
        np.testing.assert_array_equal(one, other)
    assert told[0] == told[1]
    assert {"winch", "winch_stopped"} <= {kind for _, kind, _ in told[0]}


SOLO = """
system: x500_solo
start:
  kind: state
  load: {position_enu_m: [0, 0, 1]}
  drones: [{position_enu_m: [0.4, 0, 2.9], orientation_wxyz: [0, 0, 0, 1]}]
mission: {duration_s: 0.1}
"""


@pytest.mark.parametrize("model", ["rigid_links", "massless", "elastic"])
def test_a_slung_load_may_start_in_a_state_without_a_mission(tmp_path, model):
    with Session(scenario(tmp_path, SOLO, cable_model=model)) as session:
        session.advance(25)
        assert session.state.position_enu_m[1, 2] == pytest.approx(2.9, abs=0.1)


@pytest.mark.parametrize("model", ["rigid_links", "massless", "rigid_rods"])
def test_a_start_in_equilibrium_is_of_elastic_cables(tmp_path, model):
    start = {**parse_yaml(SOLO, "text")["start"], "kind": "equilibrium"}
    with pytest.raises(ConfigError, match=r"start.kind = equilibrium: it is of .* elastic"):
        Session(scenario(tmp_path, SOLO, cable_model=model, start=start))
