"""Four hundred YAML texts in files and --set: one line with its place, or the value as YAML has it.

Values are put into a scenario's file and into an override; the other texts are whole files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import musls
import musls_bringup
from musls_description.config.schema import to_data

SCENARIOS = Path(musls_bringup.__file__).parent / "scenarios"
DEEP = "[" * 400 + "]" * 400
LAYERS = [f"k{k}: &k{k} [{', '.join([f'*k{k - 1}'] * 10)}]" for k in range(1, 12)]
GROWING = "\n".join(["k0: &k0 [1]", *LAYERS])
VALUES = (
    "&a [*a]", "&a {b: *a}", "&a {*a : 1}", "*nothing", "!!bool x", "!!bool 1", "!!bool ''",
    "!!null x", "!!int x", "!!int 1.5", "!!int ''", "!!float x", "!!float ''", "!!float [1]",
    "!!str [1]", "!!map x", "!!map [1]", "!!map", "!!seq x", "!!seq {a: 1}", "!!timestamp x",
    "!!timestamp 2024-01-01", "!!binary x", "!!binary aGk=", "!!set {a, b}", "!!set x",
    "!!omap [a: 1]", "!!omap x", "!!pairs [a: 1]", "!!merge x", "!!value =", "!!python/name:os.x",
    "!!python/object/apply:os.getcwd []", "!own x", "! x", "!<x> y", '"\\ud800"', '"\\udfff x"',
    '"\\ud83d\\ude00"', '"\\x00"', '"\\u0085"', "\x80", "\x07", "0x" + "f" * 5000, "9" * 5000,
    "-" + "9" * 200, "0o" + "7" * 3000, "1e999", "-1e999", "1e-999", ".inf", "-.inf", ".nan",
    "1_000", "1:30", "010", "0b101", "1,5", "yes", "~", "", "''", "[]", "{}", "[[]]", "[1, 2",
    "{a: 1", "'open", '"open', "a: b: c", "- 1", "? x", "@x", "`x", "%x", "|", ">", "|9", "--- x",
    "...", "<<", "{<<: 3}", "{<<: [3]}", "{<<: *a}", "{[1]: 2}", "{{a: 1}: 2}", "{a: 1, a: 2}",
    "{1: 2, 1.0: 3}", "{null: 1}", "{true: 1}", DEEP, "{a: " * 300 + "1" + "}" * 300, "\t1",
    "1 # one", "1 2", "0.1.2", "٣", "１２", "½", "∞", "-", "+", ".", "..", "1.", "1e", "0x", "0xg",
)  # fmt: skip
KINDS = ("read", "refused", "traceback", "silent")
KEYS = ("seed", "mission.stages.0.duration_s", "wind.mean_enu_m_s", "description")

WHOLE = (
    "", "\n", "---", "--- 1", "[]", "3", "text", "null", "a: 1\n---\nb: 2\n", 
    "%YAML 3.0\n---\na: 1",
    "%TAG ! x\n---\na: 1", "\ufeffname: x", "a: 1\n b: 2", "a:\n\tb: 1", "? [a]\n: b", "- a\nb: c",
    "&a a: *a", "a: &x 1\nb: *y", "a: 1\r\na: 2", "{", "}", "\x00", "a: \ud7ff", "'", DEEP,
    GROWING,
)  # fmt: skip


def texts() -> list[tuple[str, str, str]]:
    """Way, what is tried and the text."""
    base = (SCENARIOS / "hold.yaml").read_text(encoding="utf-8")
    _, _, rest = base.partition("\n")  # its first line is the description
    found = [("file", "whole", text) for text in WHOLE]
    for number, value in enumerate(VALUES):
        found += [("set", key, value) for key in KEYS[: 2 + number % 2]]
        found.append(("file", "seed", f"{base}\nseed: {value}\n"))
        found.append(("file", "description", f"description: {value}\n{rest}"))
    return found


def _number(text: str) -> float | None:
    """The number that a text is; None of what is none."""
    text = text.partition(" #")[0].strip()
    try:
        return int(text, 0) if text[:2] in ("0x", "0o") else float(text)
    except ValueError:
        return None


def outcome(way: str, key: str, text: str, folder: Path) -> tuple[str, str]:
    """Refused, read, traceback or silent; and why."""
    try:
        if way == "set":
            musls_scenario = musls.load_scenario("hold", [f"{key}={text}"])
        else:
            path = folder / "tried.yaml"
            path.write_bytes(text.encode("utf-8", "surrogatepass"))
            musls_scenario = musls.load_scenario(path)
    except musls.MuslsError as error:
        said = str(error)
        if "\n" in said or len(said) > 2100:
            return "traceback", said
        place = "--set " + key if way == "set" else "tried.yaml"
        placed = place in said.replace("override", "--set")
        return ("refused", said) if placed else ("silent", f"without its place: {said}")
    except Exception as error:
        return "traceback", f"{type(error).__name__}: {error}"
    seed = to_data(musls_scenario)["seed"]
    value = text.rpartition("seed: ")[2].strip() if way == "file" else text
    if key == "seed" and seed != _number(value):
        return "silent", f"seed: {value[:40]!r} is read as {seed}"
    return "read", ""


def tried(chosen: Callable[[int], bool], folder: Path) -> Counter[str]:
    """Outcomes of the chosen texts; tracebacks and the silent are printed."""
    found: Counter[str] = Counter()
    for k, (way, key, text) in enumerate(texts()):
        if chosen(k):
            kind, why = outcome(way, key, text, folder)
            found[kind] += 1
            if kind in ("silent", "traceback"):
                print(f"{kind}: {way}, {key}, {text[-60:]!r}: {why[:200]}")
    print("tried {}, read {read}, refused in one line {refused}, wrong {traceback}, silent {silent}"
          .format(found.total(), **{k: found[k] for k in KINDS}))  # fmt: skip
    return found


def test_a_few_yaml_texts(tmp_path):
    found = tried(lambda k: k % 13 == 0, tmp_path)
    assert not found["traceback"] and not found["silent"]


@pytest.mark.slow
def test_four_hundred_yaml_texts(tmp_path):
    found = tried(lambda k: True, tmp_path)
    assert found.total() >= 400
    assert not found["traceback"] and not found["silent"]
