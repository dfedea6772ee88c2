"""Mistakes that people make: each is one line that says what is wrong, where, and what is right.

And a property of the schema: what stands at a key of a scenario is read or refused in one line.
"""

import copy
import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from musls_bringup.catalogue.shipped import find_scenario
from musls_bringup.cli import main
from musls_description.config.errors import MAX_LENGTH, MuslsError
from musls_description.config.schema import to_data
from musls_sim.scenario.scenario import load_scenario

HOLD = "system: x500_trio\nmission:\n  stages:\n  - {kind: hold, duration_s: 1}\n"
STUDY = "name: s\nscenario: hold\nparameters: {KEY: VALUES}\n"
OWN = "import musls\nclass Mine(musls.Controller):\n"
STEP = "    def step(self, time_s, reference, estimate): return 0\n"
SET = "fly circle --dry-run --set "
MINE = "fly circle --dry-run --controller a.py:Mine"

MISTAKES = [
    # A letter is wrong, or a word.
    ("fly circel", "", ["unknown scenario 'circel'", "'circle'"]),
    ("flyy circle", "", ["no such command 'flyy'", "'fly'"]),
    ("design --shape plat --mass 4", "", ["for '--shape': 'plat' is not one of", "'plate'"]),
    ("fly circle --overwrit", "", ["no such option: --overwrit", "--overwrite"]),
    ("describe system.load.mas_kg", "", ["no key 'system.load.mas_kg'", "mass_kg'"]),
    (SET + "system.load.mas_kg=2", "", ["unknown key 'system.load.mas_kg'", "'mass_kg'"]),
    (SET + "sytem.load.mass_kg=2", "", ["unknown key 'sytem'", "'system'"]),
    (SET + "step_size_s=0.002", "", ["unknown key 'step_size_s'", "'physics.step_size_s'"]),
    (SET + "cable_model=rigid_link", "", ["unknown cable model 'rigid_link'", "'rigid_links'"]),
    (SET + "controller=paylod", "", ["unknown controller 'paylod'", "'payload'"]),
    (SET + "start=sky", "", ["start = 'sky'", "'ground', 'air', 'state'"]),
    ("fly a.yaml", HOLD.replace("trio", "tri"), ["line 1: unknown system 'x500_tri'", "_trio'"]),
    ("fly a.yaml", HOLD.replace("hold", "hover"), ["line 4", "unknown trajectory 'hover'", "hold"]),
    ("fly a.yaml", HOLD.replace("_s", ""), ["line 4: unknown key", "stages.0.duration", "_s'"]),
    # A number is wrong: its sign, unit or comma, or it is none.
    (SET + "system.load.mass_kg=-1.66", "", ["mass_kg = -1.66", "greater than 0"]),
    (SET + "system.load.mass_kg=1660", "", ["cannot lift the load", "thrust margin 0.00"]),
    (SET + "system.load.mass_kg=1.66kg", "", ["mass_kg = '1.66kg': must be a number"]),
    (SET + "system.load.mass_kg=1,66", "", ["mass_kg = '1,66': must be a number"]),
    (SET + "system.load.mass_kg=.nan", "", ["mass_kg = nan: must be finite"]),
    (SET + "formation.height_m=.inf", "", ["height_m = inf: must be finite"]),
    (SET + "system.cables.length_m=0", "", ["cables.0.length_m = 0", "greater than 0"]),
    (SET + "physics.step_size_s=4", "", ["step_size_s = 4", "0.004, 0.002"]),
    (SET + "seed=1.5", "", ["seed = 1.5: must be a whole number"]),
    ("montecarlo hold --worlds 0", "", ["worlds = 0: must be at least 2"]),
    # A list is wrong.
    (SET + "wind.mean_enu_m_s=3", "", ["wind.mean_enu_m_s = 3: must be a list of three"]),
    (SET + "system.load.inertia_kg_m2=[1,1,1]", "", ["inertia_kg_m2.0 = 1", "list of three"]),
    (SET + "system.drones.7.mass_kg=2", "", ["index 7 does not exist", "3 elements"]),
    (SET + "system.cables.length_m", "", ["expected key.path=value"]),
    (SET + "events=[{kind:gust}]", "", ["events.0: kind is missing", "cable_cut"]),
    ("sweep a.yaml", STUDY.replace("VALUES", "[1, 2]").replace("KEY", "system.load.mas_kg"),
     ["mas_kg = 1", "unknown key", "'mass_kg'"]),
    ("sweep a.yaml", STUDY.replace("VALUES", "{min: 2, max: 1}").replace("KEY", "seed"),
     ["a.yaml, line 3", "min 2 must be below max 1"]),
    # A file is wrong, missing, or another one than was meant.
    ("fly missing.yaml", "", ["missing.yaml: no such file"]),
    ("fly a.yaml", "", ["a.yaml: expected a mapping of Scenario"]),
    ("fly a.yaml", "system: x500_trio\n  mission: 3\n", ["a.yaml, line 2: mapping values"]),
    ("fly a.yaml", HOLD + "system: x500_duo\n", ["line 5: key 'system' is given twice"]),
    ("fly a.yaml", "load: {mass_kg: 1}\ncables: []\ndrones: []\n", ["a system, no scenario"]),
    ("fly circle --out here", "x", ["here exists", "--overwrite replaces it"]),
    ("fly circle --out here --overwrite", "x", ["here is not a result of musls"]),
    ("figures nowhere", "", ["nowhere: no such file or folder"]),
    ("recordings a.csv", "time,x\n1,2\n", ["a.csv", "column y is missing"]),
    # Code of one's own is wrong.
    (MINE.replace("a.py", "b.py"), "", ["b.py: no such Python file"]),
    (MINE, "class Yours: pass\n", ["a.py has no class Mine: known: Yours"]),
    (MINE, OWN.replace(":", ""), ["a.py, line 2: SyntaxError: expected ':'"]),
    (MINE, "import numppy\n", ["a.py, line 1: ModuleNotFoundError: No module named 'numppy'"]),
    (MINE, "class Mine: pass\n", ["the class must inherit musls.Controller"]),
    (MINE, OWN + "    level = 'motor'\n" + STEP, ["Mine.level = 'motor'", "rotor_speeds"]),
]  # fmt: skip


@pytest.mark.parametrize(("command", "text", "words"), MISTAKES)
def test_a_mistake_is_one_good_line(tmp_path, monkeypatch, capsys, command, text, words):
    monkeypatch.chdir(tmp_path)
    arguments = command.split(" ")
    names = {"here/a.txt", *(word.partition(":")[0] for word in arguments if word[:2] == "a.")}
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("musls: error: ") and len(line) < 800
    assert all(word in line for word in words), line
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")} - {
        str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.pyc")
    } == names


# ---------- Anything at any key

SCENARIOS = ("circle", "circle_elastic", "circle_payload", "crane", "gate")


@functools.cache
def data_of(name):
    return to_data(find_scenario(name, []))


def places(data, path=()):
    """Paths of all values in plain data."""
    parts = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in parts:
        yield (*path, key)
        if isinstance(value, (dict, list, tuple)):
            yield from places(value, (*path, key))


plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
anything = st.recursive(
    plain, lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=8), below)
)
numbers = st.sampled_from([0, -1, 1, 2, 1e-12, 1e-6, 1e-3, 0.1, 10, 100, 1e3, 1e6, 1e9, 1e300])


@pytest.mark.parametrize("name", SCENARIOS)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(choice=st.randoms(use_true_random=False), value=numbers | anything, count=st.integers(1, 3))
def test_what_stands_at_a_key_is_read_or_refused_in_one_line(name, choice, value, count):
    data = copy.deepcopy(data_of(name))
    for _ in range(count):
        *above, key = choice.choice(list(places(data)))
        holder = functools.reduce(lambda part, name: part[name], above, data)
        if isinstance(holder, tuple):
            continue
        if choice.random() < 0.1 and isinstance(holder, dict):
            del holder[key]
        else:
            holder[key] = copy.deepcopy(value)
    try:
        scenario = load_scenario(data, [])
    except MuslsError as error:
        assert "\n" not in str(error) and 10 < len(str(error)) <= MAX_LENGTH + 20
        return
    assert to_data(load_scenario(to_data(scenario), [])) == to_data(scenario)
