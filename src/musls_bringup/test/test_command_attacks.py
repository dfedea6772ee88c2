"""Commands with odd options and files, from a seed: a result, or one line and nothing written.

Attack k of the seed is always the same: `attack(k)`. Whatever would take long (a flight, compiling)
is ended by Ctrl-C after a few seconds, which has to be answered at once, too.
"""

import os
import random
import re
import signal
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import yaml
from bad_inputs import NUMBERS, SCENARIOS, SYSTEMS, TEXTS, mutated_text

from musls_bringup.cli import main
from musls_description.config.errors import MAX_LENGTH

# Python drops a Ctrl-C that comes while it tidies a weak reference away.
pytestmark = pytest.mark.filterwarnings("ignore:Exception ignored in. <function Weak")

SEED = 20261125
CHUNK = 15
FAST, ALL = 30, int(os.environ.get("MUSLS_ATTACKS", "150"))
LONGEST_S = 6.0

OBSTACLE = {
    "size_m": 3, "position_enu_m": 3, "orientation_wxyz": 4, "radius_m": 1, "height_m": 1,
    "width_m": 1, "frame_m": 1, "point_enu_m": 3, "normal_enu": 3,
}  # fmt: skip
NEEDED = {
    "box": ["size_m", "position_enu_m"],
    "cylinder": ["radius_m", "height_m", "position_enu_m"],
    "plane": ["point_enu_m", "normal_enu"],
    "gate": ["width_m", "height_m", "position_enu_m"],
}
ODD = [0, -1, 1e9, 1e-9, 1e300, float("nan"), "x", [], [1, 2], [0, 0, 0], None, True]
CLASSES = [
    "1 / 0", "import sys; sys.exit(0)", "class Mine: pass", "\0", "def (", "Mine = 3",
    "import musls\nclass Mine(musls.Controller):\n    level = 'x'",
    "import musls\nclass Mine(musls.Controller):\n    pass",
    "import musls\nclass Mine(musls.Controller):\n    def __init__(self): raise SystemExit",
]  # fmt: skip


def options(rng, share, values):
    """Some of the options, each as `--name value` or `--name=value`."""
    words = []
    for name, usual in values.items():
        if rng.random() < share:
            value = rng.choice([*NUMBERS, *TEXTS]) if rng.random() < 0.15 else str(usual(rng))
            words += [f"{name}={value}"] if value.startswith("-") else [name, value]
    return words


def between(low, high):
    return lambda rng: f"{rng.uniform(low, high):.3g}"


def one_of(*values):
    return lambda rng: rng.choice(values)


def new_system(rng):
    name = [] if rng.random() < 0.7 else [rng.choice(["mine", "a-b", *TEXTS])]
    return ["new", "system", *name] + options(rng, 0.45, {
        "--load": one_of("box", "beam", "plate", "ring", "L", "point"),
        "--length": between(0.01, 5), "--width": between(0.01, 2), "--height": between(0.01, 1),
        "--mass": between(0.01, 8), "--drones": lambda rng: rng.randint(1, 12),
        "--cable": between(0.3, 10), "--drone": one_of("x500", "crazyflie", "racer", "no.yaml"),
    }), {}  # fmt: skip


def new_drone(rng):
    return ["new", "drone", rng.choice(["mine"] * 9 + TEXTS)] + options(rng, 0.4, {
        "--mass": between(0.02, 20), "--rotors": one_of(4, 6, 8, 3), "--rpm": between(500, 3e4),
        "--wheelbase": between(0.05, 3), "--height": between(0.01, 1), "--torque": between(0.1, 5),
        "--propeller": between(2, 40), "--thrust": between(0.1, 300),
    }), {}  # fmt: skip


def import_load(rng):
    def number(usual):
        return usual if rng.random() < 0.93 else rng.choice(NUMBERS)

    hooks = rng.randint(1, 6)
    shape = rng.choice(['<box size="1 1 .2"/>', '<sphere radius=".3"/>', '<mesh filename="a"/>'])
    text = (
        f'<robot name="a"><link name="base"><inertial><mass value="{number("1")}"/><inertia '
        f'ixx="{number(".1")}" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial>'
        f"<collision><geometry>{shape}</geometry></collision></link>"
    )
    for k in range(hooks):
        kind = rng.choice(["fixed"] * 20 + ["continuous", "floating", "x"])
        x, y = 0.4 * np.cos(2 * np.pi * k / hooks), 0.4 * np.sin(2 * np.pi * k / hooks)
        text += (
            f'<link name="h{k}"/><joint name="j{k}" type="{kind}"><parent link="base"/>'
            f'<child link="h{k}"/><origin xyz="{x} {y} {number("0.1")}"/></joint>'
        )
    data = bytearray(f"{text}</robot>".encode())
    if rng.random() < 0.2:
        for _ in range(3):
            data[rng.randrange(len(data))] = rng.randrange(256)
    names = ",".join(f"h{k}" for k in range(hooks)) if rng.random() < 0.9 else rng.choice(TEXTS)
    words = ["import", rng.choice(["a.urdf"] * 9 + ["a.mjcf", "b.urdf"]), f"--attach={names}"]
    return words + options(rng, 0.2, {"--cable": between(0.3, 8)}), {"a.urdf": bytes(data)}


def places(rng):
    system = rng.choice(["a.yaml"] * 3 + [path.stem for path in SYSTEMS] + TEXTS)
    command = rng.choice(["draw", "formation"])
    values = {"--out": one_of("o.png", "o/p.png", "o.jpg", *TEXTS)}
    if command == "formation":
        values["--drones"] = lambda rng: rng.randint(1, 12)
    return [command, system, *options(rng, 0.5, values)], mutated(rng, SYSTEMS)


def flights(rng):
    modes = ["modes", "--set", "cable_model=massless"]
    command = rng.choice([["check"], ["check", "--json"], modes, ["fly", "--plan"]])
    scenario = rng.choice(["a.yaml"] * 2 + [path.stem for path in SCENARIOS])
    words = options(rng, 0.3, {
        "--set": lambda rng: rng.choice([
            f"system.load.mass_kg={between(0.01, 9)(rng)}", f"seed={rng.choice(NUMBERS)}",
            f"system.cables.links={rng.randint(0, 30)}", f"world.obstacles={rng.choice(TEXTS)}",
            f"cable_model={rng.choice(['massless', 'elastic', 'rigid_rods', 'x'])}",
            f"controller={rng.choice(['payload', 'learned', '{kind: learned, policy: a.yaml}'])}",
        ]),
        "--out": one_of("o", "o/p", *TEXTS),
    })  # fmt: skip
    return [command[0], scenario, *command[1:], *words], mutated(rng, SCENARIOS)


def mutated(rng, sources):
    return {"a.yaml": mutated_text(rng, rng.choice(sources).read_text()).encode("utf-8", "replace")}


def benchmark(rng):
    who = rng.choice(["own.py:Mine"] * 6 + ["own.py:No", "none.py:A", "own.py", *TEXTS])
    words = options(rng, 0.3, {"--workers": one_of(1, 2), "--out": one_of("/dev/null/x", *TEXTS)})
    return ["benchmark", who, "--quick", *words], {"own.py": rng.choice(CLASSES).encode()}


def recorded(rng):
    """Recordings of noise."""
    parts = ("x", "y", "z", "roll", "pitch", "yaw")
    bodies = [f"{body}_{part}" for body in ("load", "d1", "d2", "d3") for part in parts]
    rows = [[0.1 * k, *(rng.uniform(-2, 2) for _ in bodies)] for k in range(rng.choice([0, 1, 50]))]
    lines = [",".join(["t", *bodies]), *(",".join(f"{v:.4g}" for v in row) for row in rows)]
    text = "\n".join(lines).encode()
    command = rng.choice(["identify", "replay", "reproduce", "fit-drones"])
    offset = one_of("load=0,0,1", "load", "load=a,b,c", "drones=1e300,0,0", "x=0,0,0")
    words = options(rng, 0.3, {"--offset": offset, "--out": one_of("o", *TEXTS)})
    where = rng.choice(["f", "f", "f/a_circle.csv", "none", "/dev/null"])
    return [command, where, *words], {"f/a_circle.csv": text, "f/a_shm.csv": text}


def obstacles(rng):
    """Worlds whose obstacles are sound but for one value."""
    found = []
    for i in range(rng.randint(1, 3)):
        kind = rng.choice(list(NEEDED))
        one = {"kind": kind, "name": f"it_{i}"}
        for key in NEEDED[kind]:
            row = [round(rng.uniform(0.3, 3.0), 3) for _ in range(OBSTACLE[key])]
            one[key] = row if len(row) > 1 else row[0]
        if rng.random() < 0.4:
            one[rng.choice([*one, *OBSTACLE])] = rng.choice(ODD)
        found.append(one)
    stage = {"kind": "hold", "duration_s": 0.2}
    data = {
        "system": "x500_trio",
        "cable_model": "massless",
        "start": rng.choice(["air", "ground"]),
    }
    data |= {"world": {"obstacles": found}, "mission": {"stages": [stage]}}
    words = rng.choice([["check", "a.yaml"], ["fly", "a.yaml", "--plan"], ["fly", "a.yaml"]])
    return words, {"a.yaml": yaml.safe_dump(data).encode()}


SHORT = {"cable_model": "massless", "start": "air", "mission.stages.0.duration_s": 0.1}
VARY = f"""\
parameters:
  system.load.mass_kg: {{mean: 1.66, std: 0.05, min: 1.5}}
  wind.mean_enu_m_s.0: {{min: -1, max: 1}}
  system.cables.length_m: [2.4, 2.42]
correlations:
  - {{keys: [system.load.mass_kg, wind.mean_enu_m_s.0], value: 0.8}}
set: {SHORT | {"wind.mean_enu_m_s": [0, 0, 0]}}
metrics:
  - {{name: sway_m, signal: load.x_m, stage: hold, reduce: range}}
"""
PAPER = f"""\
title: A paper
source: Somebody, 2026
notes: [a note]
groups:
  - title: A table
    unit: m
    scenario: hold
    set: {SHORT}
    value: {{path: "errors.load.*.translational_error_m"}}
    why: another model
    rows:
      - {{what: one, paper: 0.1}}
      - {{what: two, paper: 0.2, set: {{seed: 3}},
         value: {{signal: load.x_m, against: setpoint, stage: hold, reduce: rms}}}}
"""
ESTIMATORS = [
    "1 / 0", "import sys; sys.exit(0)", "class Mine: pass",
    "import musls\nclass Mine(musls.LoadEstimator):\n    pass",
    *(f"import musls\nimport numpy as np\nclass Mine(musls.LoadEstimator):\n"
      f"    def step(self, sensors, estimate):\n        {line}"
      for line in ("return 3", "1 / 0", "estimate.data[:] = np.nan", "estimate.data[0, 2] = 1e300",
                   "raise SystemExit", "del self.setup", "estimate.load = None")),
]  # fmt: skip


def monte_carlo(rng):
    text = mutated_text(rng, VARY) if rng.random() < 0.8 else VARY
    words = options(rng, 0.4, {
        "--seed": lambda rng: rng.randint(0, 9), "--worst": one_of(0, 1),
        "--by": one_of("max_tension_n", "x", *TEXTS), "--out": one_of("o", "/dev/null/x", *TEXTS),
    })  # fmt: skip
    worlds = rng.choice(["1", "2", "3", *NUMBERS])
    given = ["montecarlo", rng.choice(["hold"] * 5 + TEXTS), "--workers", "1", f"--worlds={worlds}"]
    return [*given, "--vary", rng.choice(["v.yaml"] * 9 + ["none"]), *words], {
        "v.yaml": text.encode("utf-8", "replace")
    }


def paper(rng):
    text = mutated_text(rng, PAPER) if rng.random() < 0.9 else PAPER
    words = options(rng, 0.3, {"--out": one_of("o", "o/p", "/dev/null/x", *TEXTS)})
    name = rng.choice(["p.yaml"] * 9 + ["999", *TEXTS[:8]])
    return ["paper", name, *words], {"p.yaml": text.encode("utf-8", "replace")}


def estimators(rng):
    """Flights whose load is estimated, with odd settings and classes of one's own."""
    kind = rng.choice(["quasi_static", "ekf", "own.py:Mine", "own.py:No", "python", *TEXTS[:9]])
    load = {"kind": "python", "source": kind} if kind.startswith("own") else {"kind": kind}
    if rng.random() < 0.5:
        load[
            rng.choice(
                ["load_imu", "source", "parameters", "lag_s", "correlation_s", "start_noise_m", "x"]
            )
        ] = rng.choice([*ODD, {}, {"x": 1}])
    data = {"system": "x500_trio", **{k: v for k, v in SHORT.items() if "." not in k}}
    data |= {"mission": {"settle_s": 0.1, "stages": [{"kind": "hold", "duration_s": 0.1}]}}
    data["estimation"] = {"kind": rng.choice(["mocap", "truth"]), "load": load}
    if rng.random() < 0.2:
        data["controller"] = "payload"
    return ["fly", "a.yaml", "--no-report", "--out", "o"], {
        "a.yaml": yaml.safe_dump(data).encode(), "own.py": rng.choice(ESTIMATORS).encode(),
    }  # fmt: skip


QUICK = (
    new_system, new_drone, import_load, places, flights, benchmark, recorded, obstacles,
)  # fmt: skip
KINDS = (*QUICK, monte_carlo, paper, estimators)


def attack(k):
    """Words of the command and files of attack k."""
    rng = random.Random(f"{SEED}-{k}")
    return rng.choice(QUICK if k < FAST else KINDS)(rng)


@pytest.fixture(scope="module", autouse=True)
def warm(tmp_path_factory):
    """Import and compile, with time for it: Ctrl-C in an import leaves half a module behind."""
    for module in ("sweep.run", "replay.identify", "linear"):
        import_module(f"musls_analysis.{module}")
    for module in ("benchmark", "check", "formation", "papers.reproduce"):
        import_module(f"musls_bringup.{module}")
    out = str(tmp_path_factory.mktemp("warm") / "run")
    given = ["--set", "cable_model=massless"]
    assert main(["modes", "hold", *given]) == 0
    assert (
        main(["fly", "hold", "--set", "mission.stages.0.duration_s=0.2", *given, "--out", out]) == 0
    )


def press(*_):
    raise KeyboardInterrupt


def check(words, files, capsys):
    """Run one; returns the exit code."""
    for name, content in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(content)
    before = {str(path) for path in Path().rglob("*")}
    capsys.readouterr()
    signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            status = main([word.replace("\0", "") for word in words])
    except KeyboardInterrupt:
        status = 130
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    out, err = capsys.readouterr()
    assert status in (0, 1, 2, 130), status
    assert "Traceback" not in out + err, err[-2000:]
    assert status != 0 or not re.search(r"\b(nan|inf)\b", out), out[-2000:]
    if status == 2:
        lines = err.splitlines()
        assert lines[-1].startswith("musls: error: "), err[-2000:]
        assert len(lines[-1]) <= MAX_LENGTH + 500 and sum("error: " in line for line in lines) == 1
        kept = "what was flown is kept" in lines[-1]  # code of a user's has failed in flight
        assert kept or {str(path) for path in Path().rglob("*")} == before
    return status


def run_chunk(chunk, tmp_path, capsys, monkeypatch):
    previous, ends = signal.signal(signal.SIGALRM, press), []
    try:
        for k in range(CHUNK * chunk, CHUNK * (chunk + 1)):
            folder = tmp_path / str(k)
            folder.mkdir()
            monkeypatch.chdir(folder)
            words, files = attack(k)
            try:
                ends.append(check(words, files, capsys))
            except BaseException as error:  # whatever it is, say which attack makes it again
                error.args = (f"attack({k}), {' '.join(words)[:300]}: {error!s:.2000}",)
                raise
    finally:
        signal.signal(signal.SIGALRM, previous)
    return ends


@pytest.mark.parametrize("chunk", range(FAST // CHUNK))
def test_attacks_on_commands(chunk, tmp_path, capsys, monkeypatch):
    assert {0, 2} <= set(run_chunk(chunk, tmp_path, capsys, monkeypatch))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(FAST // CHUNK, ALL // CHUNK))
def test_more_attacks_on_commands(chunk, tmp_path, capsys, monkeypatch):
    run_chunk(chunk, tmp_path, capsys, monkeypatch)
