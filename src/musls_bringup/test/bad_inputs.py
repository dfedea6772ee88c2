"""Generates bad input: broken YAML, wrong types, absurd numbers, damaged recordings, odd options.

Most of it comes from mutations of what is shipped. Case k of a seed is always the same, so that a
case that fails can be made again alone: `BadInputs(seed).case(k)`.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from musls_description.config.errors import ConfigError
from musls_description.config.schema import to_data
from musls_description.config.strict_yaml import parse_yaml

SOURCES = Path(__file__).parents[2]
SCENARIOS = sorted((SOURCES / "musls_bringup/musls_bringup/scenarios").glob("*.yaml"))
SWEEPS = sorted((SOURCES / "musls_bringup/musls_bringup/sweeps").glob("*.yaml"))
SYSTEMS = sorted((SOURCES / "musls_description/musls_description/systems").glob("*.yaml"))

NUMBERS = [
    "0", "-1", "-0", "1", "2", "3.7", "1e-300", "1e300", "-1e300", "1e9", "1e99", "1e999", "1e-9",
    ".nan", ".inf", "-.inf", "nan", "9223372036854775808", "-9223372036854775809", "1" * 400,
    "1" * 5000, "0x" + "f" * 4000, "0b_", "010", "0o9", "1_", "1:30", "1:30.5", "5e", "1e5e5",
    "1,5", "1.5 m", "2 kg", "45deg", "٣", "²", "½", "1e-3", "100000", "4294967296",
]  # fmt: skip
TEXTS = [
    "", "x", "true", "yes", "null", "~", "=", "<<", "-", "?", "a b", "..", "../..", "/",
    "/dev/null",
    "n" * 400, "n" * 400 + ".yaml", "k" * 20_000, "\u202eevil", "é", "💥", '"\\0"', '"\\uD800"',
    '"\\UFFFFFFFF"', "'a\nb'", '"\\e[31m"', "2024-99-99", "2024-01-01", "circle", "rigid_links",
    "air", "state", "python", "a:b", "%s", "{}", "{0}", "\\", "#", "@", "`", "!", "&", "*", "*a",
]  # fmt: skip
HOSTILE = [
    "!!int x", "!!float x", "!!bool x", "!!map 3", "!!seq 3", "!!str [1]", "!!null x", "!!set {1}",
    "!!binary x", "!!timestamp 2024-99-99", "!own x", "!!python/object:os.system x", "{[1]: 2}",
    "{{a: 1}: 2}", "{1: 2, null: 3, 1.5: 4}", "{? [1] : 2}", "[" * 900, "[" * 900 + "]" * 900,
    "{a: " * 900, "- " * 900, "[" * 30_000, "&a [*a]", "&a {b: *a}", "{<<: 3}", "{<<: [3]}",
    "{<<: *nothing}", "{a: 1, a: 2}", "[1, 2", "{a: 1", "'", '"', "|", ">\n x", "[]", "{}", "[[]]",
    "[{}]", "[null]", "{kind: null}", "{kind: [1]}", "{kind: nothing}", "{kind: 3, x: 1}",
    "[" + "1, " * 5000 + "1]", "[&x [1], *x, *x]", "{a: {b: {c: {d: {}}}}}", "[0, 0, 1e200]",
    "&b [" + ", ".join(["&c [1, 1]"] + ["*c"] * 9) + "]", "%YAML 9.9", "---", "...", "\t", "\x00",
    "\x07", "\ufeff", "\u0085", "\u2028",
]  # fmt: skip
BOMB = "a0: &a0 [1, 1]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
)


@dataclass
class Case:
    """One bad (or by chance good) input: arguments of a command, and the present folder's files.

    Attributes:
        kind: "scenario", "system", "sweep", "recording" or "command".
        files: Content by name.
    """

    kind: str
    files: dict[str, bytes] = field(default_factory=dict)
    argv: list[str] = field(default_factory=list)


class BadInputs:
    """Cases by their number."""

    def __init__(self, seed: int) -> None:
        """Choose the seed of all cases."""
        self.seed = seed

    def case(self, k: int) -> Case:
        """Make case k."""
        rng = random.Random(f"{self.seed}-{k}")
        makers: list[tuple[int, Callable[[random.Random], Case]]] = [
            (5, _scenario), (3, _system), (2, _sweep), (4, _recording), (4, _overrides),
            (4, _options),
        ]  # fmt: skip
        (maker,) = rng.choices([m for _, m in makers], [w for w, _ in makers])
        return maker(rng)


# -------------------------------------------------------------------------------------------- YAML


def _scenario(rng: random.Random) -> Case:
    text = mutated_text(rng, rng.choice(SCENARIOS).read_text())
    return Case("scenario", {"a.yaml": _encoded(rng, text)}, ["fly", "a.yaml", "--out", "out"])


def _system(rng: random.Random) -> Case:
    text = mutated_text(rng, rng.choice(SYSTEMS).read_text())
    scenario = "system: sys.yaml\nmission: {stages: [{kind: hold}]}\nstart: air\n"
    files = {"a.yaml": scenario.encode(), "sys.yaml": _encoded(rng, text)}
    argv = rng.choice([["fly", "a.yaml", "--out", "out"], ["model", "sys.yaml"]])
    return Case("system", files, argv)


def _sweep(rng: random.Random) -> Case:
    text = mutated_text(rng, rng.choice(SWEEPS).read_text())
    return Case("sweep", {"a.yaml": _encoded(rng, text)})


def mutated_text(rng: random.Random, text: str) -> str:
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        mutations = [_with_value] * 3 + [_with_number] * 5 + [_with_key, _with_characters]
        text = rng.choice(mutations)(rng, text)
    return text


def _with_value(rng: random.Random, text: str) -> str:
    """Another value, in place of one that is there or of a field that the file leaves out."""
    value = rng.choice(rng.choice([NUMBERS, NUMBERS, TEXTS, HOSTILE]))
    try:
        data = parse_yaml(text, "")
    except ConfigError:  # of an earlier mutation
        return text + f"\n{rng.choice(FIELDS)}: {value}\n"
    if not isinstance(data, dict):
        return f"{rng.choice(FIELDS)}: {value}\n"
    if rng.random() < 0.4:
        fields = [f for f in FIELDS if f.partition(".")[0] in {*data, "seed", "physics", "wind"}]
        *parents, last = rng.choice(fields or FIELDS).split(".")
        place: Any = data
        for parent in parents:
            if not isinstance(place.get(parent), dict):
                place[parent] = {}
            place = place[parent]
        place[last] = "PLACEHOLDER"
    else:
        holder, key = rng.choice(_places(data))
        holder[key] = "PLACEHOLDER"
    return _dumped(data).replace("PLACEHOLDER", value, 1)


def _with_number(rng: random.Random, text: str) -> str:
    """A number of the right kind, but far from what is there: what only later checks can see."""
    try:
        places = _places(parse_yaml(text, ""))
    except (ConfigError, AttributeError, TypeError):  # of an earlier mutation
        return text
    numbers = [(h, k) for h, k in places if type(h[k] if h else None) in (int, float)]
    if not numbers:
        return _with_value(rng, text)
    holder, key = rng.choice(numbers)
    factor = rng.choice([0, -1, 0.5, 2, 10, 100, 1e3, 1e6, 1e-1, 1e-3, 1e-6])
    old = holder[key]
    new = old * factor
    marked = text.replace(str(old), str(round(new) if type(old) is int else new), 1)
    return marked if rng.random() < 0.8 else marked + f"seed: {rng.choice(NUMBERS)}\n"


def _with_key(rng: random.Random, text: str) -> str:
    """A key deleted, misspelt, doubled, or one too many."""
    lines = text.splitlines()
    k = rng.randrange(len(lines)) if lines else 0
    action = rng.choice(["delete", "misspell", "double", "add", "indent"])
    if not lines:
        return BOMB
    if action == "delete":
        del lines[k]
    elif action == "misspell":
        lines[k] = lines[k].replace(":", rng.choice(["x:", " :", "", "::", ": :"]), 1)
    elif action == "double":
        lines.insert(k, lines[k])
    elif action == "indent":
        lines[k] = rng.choice([" ", "   ", "\t", "- ", "? "]) + lines[k]
    else:
        key = rng.choice([*TEXTS, *NUMBERS, "[1]", "system", "seed"])
        lines.insert(k, f"{key}: {rng.choice(TEXTS)}" if rng.random() < 0.9 else BOMB)
    return "\n".join(lines) + "\n"


def _with_characters(rng: random.Random, text: str) -> str:
    """Characters deleted, put in or cut off."""
    k = rng.randrange(len(text) + 1)
    end = min(len(text), k + rng.choice([1, 5, 50]))
    more = rng.choice([*"[]{}:,-?&*!|>%@`'\"#\t\n", *HOSTILE, *TEXTS])
    return rng.choice([text[:k], text[:k] + text[end:], text[:k] + more + text[k:]])


def _places(data: Any) -> list[tuple[Any, Any]]:
    """All mappings and lists with their keys and indices."""
    found = []
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        found.append((data, key))
        if isinstance(value, (dict, list)):
            found += _places(value)
    return found or [({}, "x")]


def _dumped(data: Any) -> str:
    return yaml.safe_dump(to_data(data), sort_keys=False, allow_unicode=True)


def _encoded(rng: random.Random, text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return rng.choice([data] * 20 + [data[: len(data) // 2] + b"\xff\xfe", b"", b"\0" * 50])


# ---------- Commands

FIELDS = [
    "name", "description", "system", "system.load.mass_kg", "system.load.inertia_kg_m2",
    "system.load.cable_attachments_m", "system.drones", "system.drones.mass_kg",
    "system.drones.rotors", "system.drones.rotors.thrust_coefficient_n_s2", "system.drones.model",
    "system.drones.0.rotors.3.spin", "system.cables.links", "system.cables.length_m",
    "system.cables.joint.friction_n_m", "system.cables.from", "system.cables.²", "start",
    "start.kind", "start.load", "formation.radius_m", "formation.height_m", "formation", "mission",
    "mission.stages", "mission.stages.0", "mission.stages.9", "mission.stages.kind",
    "mission.stages.repetitions", "mission.stages.0.speed_m_s", "mission.stages.0.radius_m",
    "mission.stages.0.height_m", "mission.stages.0.duration_s", "mission.setpoint_rate_hz",
    "mission.take_off_s", "mission.rise_m", "mission.settle_s", "mission.transit_speed_m_s",
    "mission.slack_height_m", "controller", "controller.kind", "autopilot.kind", "autopilot",
    "imperfections", "imperfections.drones", "imperfections.setpoint_delay_s",
    "autopilot.parameters.MPC_XY_P", "autopilot.parameters.MPC_THR_MIN",
    "autopilot.parameters.CA_ROTOR99999_PX", "autopilot.sensors.gps_rate_hz", "estimation",
    "estimation.rate_hz", "estimation.latency_s", "cable_model", "events", "events.0.when.time_s",
    "wind.mean_enu_m_s", "wind.gust_std_m_s", "wind.gust_time_s", "physics.step_size_s",
    "physics.gravity_m_s2", "physics.refine", "recording.rate_hz", "recording.shape_rate_hz",
    "seed", "nothing", "nothing.at.all", "extensions", "parameters", "sampling", "repetitions",
    "metrics", "figures", "keep", "series", "workers", "timeout_s", "scenario", "set", "load",
    "load.mass_kg", "drones", "cables", "ground_friction", "load.collision.size_m",
]  # fmt: skip


def _overrides(rng: random.Random) -> Case:
    argv = ["fly", rng.choice(SCENARIOS).stem, "--out", "out"]
    for _ in range(rng.choice([1, 1, 2, 3])):
        key = rng.choice([*FIELDS, *FIELDS, *TEXTS])
        value = rng.choice(rng.choice([NUMBERS, NUMBERS, TEXTS, HOSTILE]))
        argv += ["--set", rng.choice([f"{key}={value}"] * 9 + [key, f"={value}"])]
    return Case("command", argv=[_argument(word) for word in argv])


COMMANDS = {
    "fly": ["--seed", "--autopilot", "--out", "--set", "--nothing", "--realtime"],
    "model": ["--format", "--spawn", "--radius", "--drones", "--world", "--step"],
    "compare": ["--stage", "--lag-limit", "--offset", "--only", "--bodies", "--units", "--clock",
                "--skip-real",
                "--skip-sim", "--real-cycle", "--sim-cycle", "--out"],
    "replay": ["--system", "--cable-model", "--offset", "--fit", "--bounds", "--with-fit",
               "--workers", "--lead-in", "--step", "--out"],
    "view": ["--with", "--stage", "--shift", "--skip-with", "--png", "--fps", "--speed",
             "--azimuth", "--elevation", "--zoom", "--trail", "--system", "--offset", "--bodies",
             "--out", "--save", "--gif"],
    "sweep": ["--workers", "--out", "--scheduler", "--resume"],
    "reproduce": ["--system", "--seeds", "--set", "--offset", "--workers", "--out", "--fit-on"],
    "fit-drones": ["--system", "--set", "--out"],
    "list": [],
    "nothing": ["--x"],
}  # fmt: skip
FLAGS = ("--realtime", "--resume", "--gif")
NAMED = ["load={n},0,0", "load=0,0", "drones={n},{n},{n}", "load={n}", "damping={n},1", "{n}:{n}",
         "load=a,drone_1=b", "drone_{n}=x", "x={n},{n},{n}", "={n}", "load="]  # fmt: skip


def _options(rng: random.Random) -> Case:
    """Odd options; the recording or sweep that is named is never one, so nothing is done."""
    command = rng.choice(list(COMMANDS))
    main = rng.choice(["absent.csv", "n" * 400, "n" * 5000, "a\nb", "bad.csv", ".", "", "é", "-"])
    if command == "model":
        main = rng.choice([main, "x500_solo", "x500_duo"])
    more = {"compare": ["bad.csv", "--stage", "flight"], "view": ["--png", "1"]}
    argv = [command, main, *(more.get(command, []) if rng.random() < 0.8 else [])]
    for option in rng.sample(COMMANDS[command], min(len(COMMANDS[command]), rng.choice([0, 1, 3]))):
        number = rng.choice(NUMBERS)
        value = rng.choice([
            number, rng.choice(TEXTS), rng.choice(NAMED).replace("{n}", number),
            rng.choice(["n" * 400, "n/" * 2500, "out", "x500_trio", "sdf", "rigid", "hover"]),
        ])  # fmt: skip
        argv += [option] if option in FLAGS else [option, value]
    return Case("command", {"bad.csv": b"load_x,\n1,2\n"}, [_argument(word) for word in argv])


def _argument(word: str) -> str:
    """What a command line can hold: no NUL."""
    return word.replace("\0", "").encode("utf-8", "surrogateescape").decode("utf-8", "replace")


# ---------- Recordings

CELLS = [
    "", " ", "nan", "inf", "-inf", "1e300", "-1e300", "1e-300", "1e999", "x", "1" * 5000, "٣", "0",
    "1_0", "0x10", "1,5", "\x00", "é", "-", "1e9", "1e18", "-1e18", "1e-18", '"', "1d5", "(1+2j)",
]  # fmt: skip


def _recording(rng: random.Random) -> Case:
    if rng.random() < 0.5:
        rows, separator, name = _excerpt_rows(rng), ",", "a.csv"
    else:
        rows, separator, name = _log_rows(rng), " ", "a.log"
    for _ in range(rng.choice([1, 1, 2, 5])):
        rng.choice(TABLE_MUTATIONS)(rng, rows)
    text = "\n".join(separator.join(row) for row in rows) + rng.choice(["\n", "\n", "", "\r\n\r\n"])
    if rng.random() < 0.15:
        text = _with_characters(rng, text)
    data = text.encode("utf-8", "surrogatepass")
    data = rng.choice([data] * 20 + [data[:-7] + b"\xff\xfe\n", b"", b"\n\n", data[:10]])
    names = [name] * 9 + ["a.mcap", "a.db3", "a"]
    return Case("recording", {rng.choice(names): data})


def _excerpt_rows(rng: random.Random) -> list[list[str]]:
    pose = ("x", "y", "z", "roll", "pitch", "yaw")
    drones = rng.choice([1, 3])
    header = ["t", *(f"load_des_{part}" for part in ("x", "y", "z", "yaw"))]
    for body in ("load", *(f"d{i + 1}" for i in range(drones))):
        header += [f"{body}_{part}" for part in pose]
    return [header, *_smooth_rows(rng, len(header))]


def _log_rows(rng: random.Random) -> list[list[str]]:
    columns = 35 + 20 * rng.choice([1, 3])
    rows = _smooth_rows(rng, columns)
    rows.insert(0, ["MISSION_STAGE", "1", "CIRCLE"])
    rows.insert(20, ["MISSION_STAGE", rng.choice(["2", "9", "-3", "1" * 5000, "٣", ""]), "SHM"])
    return rows


def _smooth_rows(rng: random.Random, columns: int) -> list[list[str]]:
    """Four seconds of a motion that a real flight could have."""
    phases = [rng.uniform(0.0, 6.0) for _ in range(columns)]
    return [
        [f"{0.1 * k:.1f}", *(f"{0.3 * math.sin(0.1 * k + p):.5f}" for p in phases[1:])]
        for k in range(40)
    ]


def _cell(rng: random.Random, rows: list[list[str]]) -> None:
    row = rng.choice(rows) if rows else []
    if row:
        row[rng.randrange(len(row))] = rng.choice(CELLS)


def _column(rng: random.Random, rows: list[list[str]]) -> None:
    """A whole column of one value: all rows at one time, a body without a pose."""
    k = rng.choice([0, 0, rng.randrange(max(map(len, rows), default=1) or 1)])
    cell = rng.choice([*CELLS, "1.0", "0.5"])
    for row in rows[1:]:
        if k < len(row):
            row[k] = cell


def _rows(rng: random.Random, rows: list[list[str]]) -> None:
    cut = slice(rng.randrange(1, 5), None)
    actions: list[Callable[[], Any]] = [
        rows.reverse, lambda: rng.shuffle(rows), rows.clear, lambda: rows.__delitem__(cut),
        lambda: rows.extend(copy.deepcopy(rows)), lambda: rows.insert(5, []),
    ]  # fmt: skip
    rng.choice(actions)()


def _shape(rng: random.Random, rows: list[list[str]]) -> None:
    """Columns deleted or doubled."""
    k, double = rng.randrange(10), rng.random() < 0.5
    for row in rows:
        if k < len(row):
            row[k : k + 1] = [row[k]] * 2 if double else []


def _head(rng: random.Random, rows: list[list[str]]) -> None:
    if rows and rows[0]:
        names = ["d²_x", "d0_x", "d9999_x", "d" + "1" * 5000 + "_x", "t", "load_x", "", "d-1_x"]
        rows[0][rng.randrange(len(rows[0]))] = rng.choice(names)


TABLE_MUTATIONS = (_cell, _cell, _column, _column, _rows, _shape, _head)
