"""Flights of absurd scenarios and of users' code that fails in every way: what comes of them.

Each is a flight whose numbers are sound, or one clear line and what was flown until then; never a
traceback, silent nonsense or a process left behind. Attack k of the seed is always the same, so
that one that gets through can be made again alone: `attack(k)`.
"""

import copy
import os
import random
import signal
from contextlib import suppress
from functools import cache
from multiprocessing import active_children
from pathlib import Path

import numpy as np
import pytest
import yaml

import musls
from musls_control.trajectories import TRAJECTORIES
from musls_description.config.errors import MAX_LENGTH
from musls_description.config.schema import to_yaml
from musls_sim.scenario.events import EVENTS

SEED = 20261123
CHUNK = 20
FAST, ALL = 20, int(os.environ.get("MUSLS_ATTACKS", "120"))
LONGEST_S = 10.0
"""A flight of absurd numbers may take for ever: then comes Ctrl-C."""

BASES = [
    ("x500_duo", "rigid_links", {"start": "air", "formation": {"radius_m": 1.0, "height_m": 2.38}}),
    ("x500_solo", "rigid_links", {"start": "air"}),
    ("x500_trio", "rigid_links", {"start": "ground"}),
    ("x500_trio", "massless", {"start": "air"}),
    ("x500_trio", "elastic", {"start": "air"}),
    ("x500_trio", "rigid_rods", {"start": "air"}),
    ("x500_quad", "rigid_links", {"start": "air"}),
]
EVENTS_OF_OURS = [
    {"kind": "poke", "when": {"time_s": 0.1}, "force_enu_n": [1.0, 2.0, 3.0], "duration_s": 0.1},
    {"kind": "rotor_failure", "when": {"time_s": 0.1}, "drone": 1, "rotor": 2, "efficiency": 0.5},
    {"kind": "cable_cut", "when": {"time_s": 0.1}, "cable": 1},
    {
        "kind": "gust",
        "when": {"time_s": 0.1},
        "velocity_enu_m_s": [3.0, 0.0, 0.0],
        "duration_s": 0.1,
    },
]
NUMBERS = [
    0, -1, 1, 2, 3, 1e-300, 1e-12, 1e-6, 1e-3, 0.1, 10.0, 100.0, 1e3, 1e6, 1e9, 1e12, 1e100, 1e300,
]  # fmt: skip

STATEMENTS = [
    "1 / 0",
    "sys.exit()",
    "sys.exit(3)",
    "sys.exit('no more')",
    "raise BaseException('own')",
    "raise StopIteration",
    "raise GeneratorExit",
    "raise RecursionError",
    "raise MemoryError",
    "raise ValueError('x' * 10**5)",
    "raise ValueError('\\x1b[31m\\n\\0')",
    "raise musls.ConfigError('a\\nb')",
    "raise KeyError",
    "assert False",
    "return",
    "return 'far'",
    "return []",
    "return object()",
    "return 1j * np.ones((2, 4))",
    "return np.full((2, 4), np.nan)",
    "return np.full((2, 4), 1e300)",
    "return np.full((2, 4), -1e5)",
    "return np.zeros((0, 4))",
    "return np.array([['a'] * 4] * 2)",
    "return {1: 2}",
    "return np.ones(7)",
    "yield 1",
    "return -1.0",
    "return np.inf",
    "return 1e300",
    "del self.kind",
    "undefined",
    "return self.no_such",
    "return lambda: 3",
]

HOOKS = [
    "head", "controller_init", "prepare", "start", "step", "happened", "check", "fits", "ready",
    "begin", "end", "lasts_s", "pose", "derivatives", "duration_s",
]  # fmt: skip

OWN = """\
import sys
import numpy as np
import musls

{head}

class Mine(musls.Controller):
    level = "rotor_speeds"

    def __init__(self):
        {controller_init}

    def prepare(self, setup):
        super().prepare(setup)
        {prepare}

    def start(self, time_s, estimate):
        {start}

    def step(self, time_s, reference, estimate):
        if time_s > 0.1:
            {step}
            {happened}
        return np.full((2, 4), 700.0)


@musls.events.register("{name}")
@musls.spec
class Own(musls.Event):
    kind: str = "{name}"

    def check(self, system):
        {check}

    def fits(self, context):
        {fits}

    def ready(self, context):
        {ready}
        return True

    @property
    def lasts_s(self):
        {lasts_s}
        return 0.1

    def begin(self, context):
        {begin}
        return "done"

    def end(self, context):
        {end}


@musls.trajectories.register("{name}")
@musls.spec
class Way(musls.Trajectory):
    kind: str = "{name}"

    @property
    def duration_s(self):
        {duration_s}
        return 0.3

    @property
    def period_s(self):
        return self.duration_s

    def pose(self, time_s):
        {pose}
        return np.tile([0.0, 0.0, 1.5, 0.0], (len(time_s), 1))

    def derivatives(self, time_s):
        {derivatives}
        rows = np.zeros((len(time_s), 5, 4))
        rows[:, 0] = [0.0, 0.0, 1.5, 0.0]
        return rows
"""


def attack(k):
    """Files of attack k, by name; "a.yaml" is the scenario."""
    rng = random.Random(f"{SEED}-{k}")
    return of_users_code(rng, f"own_{SEED}_{k}") if rng.random() < 0.4 else of_numbers(rng)


@cache
def warm():
    """Compile, with time for it."""
    for choice in BASES:
        data = scenario_of(choice) | {"events": EVENTS_OF_OURS}
        Path("a.yaml").write_text(yaml.safe_dump(data))
        with suppress(musls.MuslsError):  # not every model has every event
            musls.fly("a.yaml")


def scenario_of(choice):
    system, model, more = choice
    stage = {"kind": "hold", "duration_s": 0.3, "position_m": [0.0, 0.0, 1.5]}
    mission = {"settle_s": 0.2, "stages": [stage]}
    return {"system": system, "cable_model": model, "mission": mission} | copy.deepcopy(more)


def of_numbers(rng):
    """Some numbers of a resolved scenario far from what they were."""
    data = scenario_of(rng.choice(BASES)) | {
        "events": rng.sample(EVENTS_OF_OURS, rng.choice([0, 1, 2]))
    }
    Path("a.yaml").write_text(yaml.safe_dump(data))
    overrides = ["system.cables.links=3"] if data["cable_model"] == "rigid_links" else []
    data = yaml.safe_load(to_yaml(musls.load_scenario("a.yaml", overrides)))
    places = [(h, key) for h, key in leaves(data) if type(h[key]) in (int, float)]
    for holder, key in rng.sample(places, rng.choice([1, 1, 2, 5])):
        factor, number = rng.choice(NUMBERS), rng.choice(NUMBERS)
        holder[key] = rng.choice([holder[key] * factor, number])
    return {"a.yaml": yaml.safe_dump(data)}


def of_users_code(rng, name):
    """A controller, an event and a trajectory, one of whose methods does what it must not."""
    hook = rng.choice(HOOKS)
    statements = dict.fromkeys(HOOKS, "pass")
    statements[hook] = rng.choice(STATEMENTS)
    if hook == "head" and statements[hook].startswith(("return", "yield")):
        statements[hook] = "sys.exit()"
    if hook == "happened":
        things = ["3", "'poke'", "(1, 2)", "('a:b', 'c')", "('a', object())", "None"]
        statements[hook] = f"self.happened.append({rng.choice(things)})"
    data = {
        "system": "x500_duo",
        "start": "air",
        "formation": {"radius_m": 1.0, "height_m": 2.38},
        "extensions": ["own.py"],
        "controller": {"kind": "python", "source": "own.py:Mine"},
        "mission": {"settle_s": 0.1, "stages": [{"kind": name}]},
        "events": [{"kind": name, "when": {"time_s": 0.15}}],
    }
    return {"a.yaml": yaml.safe_dump(data), "own.py": OWN.format(name=name, **statements)}


def leaves(data):
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        if isinstance(value, (dict, list)):
            yield from leaves(value)
        else:
            yield data, key


def check(files):
    """Fly, and see that what comes of it is sound; returns the error, if there is one."""
    for name, text in files.items():
        Path(name).write_text(text)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
    try:
        recording = musls.fly("a.yaml")
    except (musls.MuslsError, KeyboardInterrupt) as error:
        if isinstance(error, musls.MuslsError):
            said = str(error)
            assert said and said.isprintable() and len(said) <= MAX_LENGTH + 200, said
            if "own.py" in files:
                assert "own.py" in said or isinstance(error, musls.ConfigError), said
        recording = getattr(error, "recording", None)
        ended = error
    else:
        ended = None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    if recording is not None:
        for name, track in recording.bodies.items():
            assert np.isfinite(track.position_enu_m).all(), name
            assert np.abs(np.linalg.norm(track.orientation_wxyz, axis=1) - 1.0).max() < 1e-6, name
        for name, cable in recording.cables.items():
            assert np.isfinite(cable.tension_n).all(), name
            # Chains of rigid links push, too; massless cables never do.
            assert "massless" not in files["a.yaml"] or cable.tension_n.min() >= 0.0, name
    assert not active_children()
    return ended


def press(*_):
    raise KeyboardInterrupt


@pytest.fixture
def arena(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for registry in (TRAJECTORIES, EVENTS):
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    before = signal.signal(signal.SIGALRM, press)
    warm()
    yield
    signal.signal(signal.SIGALRM, before)


def run_chunk(chunk):
    ends = []
    for k in range(CHUNK * chunk, CHUNK * (chunk + 1)):
        try:
            ends.append(check(attack(k)))
        except BaseException as error:  # whatever it is, say which attack makes it again
            error.args = (f"attack({k}): {error!s:.2000}",)
            raise
    return ends


@pytest.mark.filterwarnings("ignore::UserWarning", "error::RuntimeWarning")
@pytest.mark.parametrize("chunk", range(FAST // CHUNK))
def test_attacks(arena, chunk):
    ends = run_chunk(chunk)
    assert None in ends and len({str(error).partition(": ")[2] for error in ends}) > 5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning", "error::RuntimeWarning")
@pytest.mark.parametrize("chunk", range(FAST // CHUNK, ALL // CHUNK))
def test_more_attacks(arena, chunk):
    run_chunk(chunk)
