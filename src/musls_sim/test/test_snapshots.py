"""Snapshots of flights: what is restored flies on bit for bit, here and in another process."""

import copy
import hashlib
import pickle
import subprocess
import sys

import numpy as np
import pytest
from flight_helpers import session_with_bag

from musls_bringup.catalogue.shipped import SCENARIOS
from musls_control.controllers import Controller
from musls_description.config.errors import ConfigError
from musls_description.numerics.snapshots import Keeper
from musls_sim.recording.recorder import MemoryRecorder
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.loop import Observer
from musls_sim.session.session import Session

LATE = (
    "imperfections={setpoint_delay_s: 0.02, setpoint_jitter_s: 0.05, command_latency_s: 0.012}",
    "wind.gust_std_m_s=[0.5, 0.5, 0.2]",
    "estimation={kind: mocap, dropout_fraction: 0.1}",
    "system.cables.load_cell={}",
)
FLIGHTS = {
    "gusts, late and lost samples": ("hold", 600, 500, "cable_model=massless", *LATE),
    "a cable that parts": ("cable_cut", 700, 500, "start=air"),
    "a controller in Python": ("hold", 500, 300, "cable_model=massless", "controller=pid"),
    "a payload": ("circle_payload", 900, 400, "cable_model=massless", "start=air"),
    "a drone that is lost": ("drone_lost", 1500, 800),
    "losses that are answered": ("hexa_survives", 2500, 1500),
    "losses of four": ("quad_survives", 2500, 1500),
    "a delivery": ("delivery", 8000, 3000),
    "a load that is carried off": ("delivery_carried", 2500, 1500),
    "jerks": ("engage", 4000, 1500),
    "wind": ("wind", 3000, 1000),
    "ropes that break": ("snap_and_break", 800, 600),
    "elastic cables": ("circle_elastic", 2000, 500),
    "winches": ("winch_delivery", 1000, 1000),
    "a robot on strings": ("cdpr_strings_drone_fails", 1000, 600),
    "captures that lie": (
        "hexa_survives",
        2000,
        1500,
        "events=[{kind: mocap_frozen, drone: 2, when: {time_s: 7.9}, duration_s: 3}]",
    ),
    "obstacles": ("gate", 3000, 1000),
    "rods": ("rotortm_rods_circle6", 1000, 500),
    "strings": ("rotortm_poke", 800, 600),
    "downwash": ("hold", 600, 400, "aerodynamics=[downwash, ground_effect]"),
    "motors": ("motor_out", 1200, 800),
    "a tether": ("tether", 1500, 800),
    "agents over a network": (
        "hold",
        700,
        400,
        "cable_model=massless",
        "start=air",
        "controller={kind: agents, agent: consensus, knows: [load], "
        "network: {delay_s: 0.02, loss: 0.1}}",
    ),
}
QUICK = ("gusts, late and lost samples", "a cable that parts", "a controller in Python")
CHOSEN = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in FLIGHTS]


def flight(name, *keys):
    session = Session(load_scenario(SCENARIOS / f"{name}.yaml", list(keys)))
    recorder = MemoryRecorder(session.scenario.system, step_period_s=0.004)
    session.observe_with(recorder)
    return session, recorder


def flown_on(session, recorder, periods):
    """Digest of all that happens, and is recorded, in the next periods."""
    seen = hashlib.sha256()
    for _ in range(4):
        session.advance(periods // 4)
        state = session.state
        arrays = state.motion, state.cable_force_n, session.estimate.data, session.max_tension_n
        for array in arrays:
            seen.update(array.tobytes())
    for rows in recorder.rows.values():
        for column in (rows.stamps_ns(), *rows.columns().values()):
            seen.update(np.ascontiguousarray(column).tobytes())
    told = recorder.texts, session.events.happened, session.tick, session.guidance.landed
    seen.update(repr(told).encode())
    return seen.hexdigest()


ELSEWHERE = """
import pickle, sys
sys.path.insert(0, sys.argv[1])
from test_snapshots import FLIGHTS, flight, flown_on
for name, snapshot in pickle.load(sys.stdin.buffer).items():
    scenario, _, periods, *keys = FLIGHTS[name]
    session, recorder = flight(scenario, *keys)
    with session:
        session.restore(snapshot)
        print(flown_on(session, recorder, periods))
"""


def flown_elsewhere(request, snapshots):
    """Digests of what snapshots, by name, become in another process."""
    words = [sys.executable, "-c", ELSEWHERE, str(request.path.parent)]
    ended = subprocess.run(words, input=pickle.dumps(snapshots), capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode()
    return ended.stdout.decode().split()


@pytest.mark.parametrize("name", CHOSEN)
def test_what_is_restored_flies_on_bit_for_bit(request, name):
    """Also from a time before the structure changed, and where the state is held by somebody."""
    scenario, before, periods, *keys = FLIGHTS[name]
    session, recorder = flight(scenario, *keys)
    with session:
        session.advance(before)
        state, place = session.state, session.state.position_enu_m[0].copy()
        kept = session.snapshot()
        once = flown_on(session, recorder, periods)
        again = session.snapshot()
        session.restore(kept)
        assert session.tick == before and session.state is state
        np.testing.assert_array_equal(session.state.position_enu_m[0], place)
        assert flown_on(session, recorder, periods) == once
        later = flown_on(session, recorder, 200)
        session.restore(again)
        assert flown_on(session, recorder, 200) == later
    if name != QUICK[0]:
        assert flown_elsewhere(request, {name: kept}) == [once]


def test_a_flight_goes_on_in_another_process(request):
    name = QUICK[0]
    scenario, before, periods, *keys = FLIGHTS[name]
    session, recorder = flight(scenario, *keys)
    with session:
        session.advance(before)
        kept = session.snapshot()
        assert flown_elsewhere(request, {name: kept}) == [flown_on(session, recorder, periods)]


def test_a_flight_that_has_not_begun_can_be_kept():
    """It is flown twice more: by the session itself, and by another one."""
    one, recorder = flight("hold", "cable_model=massless")
    other, its_recorder = flight("hold", "cable_model=massless")
    with one, other:
        kept = one.snapshot()
        flown = flown_on(one, recorder, 2900)
        one.restore(kept)
        assert flown_on(one, recorder, 2900) == flown
        other.restore(kept)
        assert flown_on(other, its_recorder, 2900) == flown


def test_branches_of_a_flight_do_not_know_of_each_other():
    """What if: the same time with and without a push, as often as one likes."""
    session, _ = flight("hold", "cable_model=massless", "start=air")
    with session:
        session.advance(100)
        kept, ends = session.snapshot(), []
        for push in (0.0, 2.0, 0.0):
            session.restore(kept)
            session.inputs.wrench_enu[0, 3] = push
            session.advance(50)
            ends.append(session.state.position_enu_m[0].copy())
    assert (ends[0] == ends[2]).all() and ends[1][0] > ends[0][0] + 1e-3


class Mine(Controller):
    """Remembers something that nobody can pickle."""

    level = "drone_setpoints"

    def start(self, time_s, estimate):
        self.file = open(__file__)  # noqa: SIM115 (what cannot be kept)

    def step(self, time_s, reference, estimate):
        return np.full((3, 4), np.nan)


def test_what_cannot_be_kept_is_named():
    scenario = load_scenario(SCENARIOS / "hold.yaml", ["cable_model=massless", "start=air"])
    with Session(scenario, controller=Mine()) as session:
        session.advance(500)
        with pytest.raises(ConfigError, match=r"^a snapshot cannot hold Mine\.file: "):
            session.snapshot()
        session.flying.file.close()


def test_a_bag_cannot_go_back_in_time(tmp_path):
    scenario = load_scenario(SCENARIOS / "hold.yaml", ["cable_model=massless", "start=air"])
    refused = pytest.raises(ConfigError, match=r"cannot hold BagRecorder\._bag: .*in memory")
    with session_with_bag(scenario, tmp_path / "bag") as session, refused:
        session.snapshot()


def test_snapshots_of_other_flights_are_refused():
    one, _ = flight("hold", "cable_model=massless", "start=air")
    other = Session(load_scenario(SCENARIOS / "solo.yaml", ["cable_model=massless"]))
    with one, other:
        with pytest.raises(ConfigError, match="of another scenario"):
            other.restore(one.snapshot())
        with pytest.raises(ConfigError, match="snapshot: of another flight"):
            Session(one.scenario).restore(one.snapshot())
        for way in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(ConfigError, match=r"cannot be copied or pickled: .* snapshot"):
                way(one)


class Part:
    """Arrays, views and functions that share."""

    def __init__(self):
        self.whole = np.arange(12.0).reshape(3, 4)
        self.row, self.records = self.whole[1], np.zeros(2, [("x", float)])
        self.record, self.other, count = self.records[1], None, 0

        def counted():
            nonlocal count
            count += 1
            return count

        self.counted = counted


def test_views_records_and_functions_keep_what_they_share():
    part, held = Part(), []
    part.other, held = part, part.whole[2]
    keeper = Keeper({"part": part}, {}, ())
    kept = keeper.keep()
    part.whole[:], part.record["x"], part.row = 0.0, 3.0, None
    assert part.counted() == 1 and part.counted() == 2
    keeper.put_back(pickle.loads(pickle.dumps(kept)))
    assert held.tolist() == [8.0, 9.0, 10.0, 11.0] and part.other is part
    part.row[0], part.record["x"] = 7.0, 5.0
    assert part.whole[1, 0] == 7.0 and part.records["x"].tolist() == [0.0, 5.0]
    assert part.counted() == 1
    fresh = Part()
    Keeper({"part": fresh}, {}, ()).put_back(kept)
    fresh.row[0] = 6.0
    assert fresh.whole[1, 0] == 6.0 and fresh.other is fresh and fresh.counted() == 1


class Looking(Observer):
    """Counts; a snapshot does not hold it."""

    def __init__(self):
        self.looks = 0

    def observe(self, time_s, loop):
        self.looks += 1


def test_observers_that_only_look_stay_as_they_are():
    session, _ = flight("hold", "cable_model=massless", "start=air")
    looking = Looking()
    session.observe_with(looking)
    with session:
        kept = session.snapshot()
        session.advance(10)
        session.restore(kept)
        session.advance(10)
    assert looking.looks == 20
