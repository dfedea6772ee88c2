"""YAML that is broken or surprising: one line with file and line, never a traceback."""

import copy
from typing import Literal

import pytest

from musls_description.config.errors import MAX_LENGTH, ConfigError, MuslsError, near_names
from musls_description.config.schema import Positive, build, spec
from musls_description.config.strict_yaml import (
    Override,
    Place,
    located,
    parse_yaml,
    place_of,
    read_text,
)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("!!seq 3", ["sequence"]),
        ("!!str [1]", ["scalar"]),
        ("!!python/object/apply:os.getcwd []", ["python"]),
        ("!own x", ["'!own'"]),
        ("{[1]: 2}", ["unhashable key"]),
        ("{{a: 1}: 2}", ["unhashable key"]),
        ("{<<: 3}", ["merging"]),
        ("{<<: [3]}", ["merging"]),
        ("{a: 1, a: 2}", ["'a'", "twice"]),
        ("*nothing", ["'nothing'"]),
        ("[1, 2", ["expected"]),
        ("&a [*a]", ["contains itself"]),
        ("&a {b: {c: *a}}", ["contains itself"]),
        ("&a {*a : 1}", ["contains itself"]),
        ("!!bool x", ["'x'", "bool"]),
        ("!!bool 1", ["'1'", "bool"]),
        ("!!null x", ["'x'", "null"]),
        ("!!int 1.5", ["'1.5'", "int"]),
        ("!!float ''", ["''", "float"]),
        ("!!map x", ["mapping", "scalar"]),
        ("!!map [1]", ["mapping", "sequence"]),
        ("!!timestamp 2024-01-01", ["timestamp"]),
        ("!!binary x", ["binary"]),
        ("!!set {a}", ["set"]),
        ("!!omap [a: 1]", ["omap"]),
        ("!!merge <<", ["merge"]),
        ('"\\ud800"', ["half of a character"]),
        ("0x" + "f" * 5000, ["5002 digits"]),
        ("9" * 5000, ["5000 digits"]),
        ("[" * 60 + "]" * 60, ["levels"]),
        ("\x80", ["unacceptable character"]),
    ],
)
def test_what_is_wrong_is_said_in_one_line_with_its_place(value, words):
    with pytest.raises(ConfigError) as error:
        parse_yaml(f"name: x\n\nseed: {value}\n", "f.yaml")
    message = str(error.value)
    assert "\n" not in message and len(message) < 200
    assert message.startswith(("f.yaml, line 3: ", "f.yaml, line 4: ")), message
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-01-01", "2024-01-01"),  # no dates
        ("2024-99-99", "2024-99-99"),
        ("0o17", 15),
        ("010", 10),
        ("1:30", "1:30"),  # no numbers in base 60
        ("=", "="),
        ("1e-3", 1e-3),
        ("-.5E+2", -50.0),
        ("1_000", "1_000"),
        ("0x1F", 31),
        ("0", 0),
        ("-.inf", float("-inf")),
        ("no", "no"),
        ("True", True),
        ("~", None),
        ("[&a {x: 1}, {<<: *a, y: 2}]", [{"x": 1}, {"x": 1, "y": 2}]),
    ],
)
def test_plain_values(text, value):
    found = parse_yaml(f"key: {text}", "f.yaml")["key"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("name", ["n" * 400, "n" * 5000, "a\0b", "no/such/file"])
def test_names_that_no_file_can_have(tmp_path, name):
    with pytest.raises(ConfigError) as error:
        read_text(tmp_path / name)
    assert "\n" not in str(error.value) and len(str(error.value)) < 400


def test_files_that_are_no_text(tmp_path):
    (tmp_path / "binary").write_bytes(b"a: 1\nb: \xff\xfe\n")
    with pytest.raises(ConfigError, match=r"line 2: .*UTF-8"):
        read_text(tmp_path / "binary")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_text(tmp_path)


def test_messages_are_one_line_of_bounded_length():
    message = str(MuslsError("two\nlines \x1b[31m\u202e and " + "a" * 10**6))
    assert "\n" not in message and "\x1b" not in message and "\u202e" not in message
    assert len(message) < MAX_LENGTH + 20


@pytest.mark.parametrize("name", ["b" * 10**6, 3, None, [1], ""])
def test_near_names_of_anything(name):
    assert near_names(name, ["one", "two"]) == "known: one, two"
    assert near_names("on", []) == "known: none"


FILE = """a:
  b: 1
list:
- {x: 1}
- x: 2
  y: 3
all: {x: 1}
<<: {merged: 4}
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a", 1),
        ("a.b", 2),
        ("a.missing", 1),  # of the mapping that lacks it
        ("list.1.y", 6),
        ("list.7.y", 3),
        ("list.1", 5),
        ("list.0.missing.x", 4),
        ("all.x", 7),
        ("merged", 8),
        ("missing", 0),
    ],
)
def test_a_value_knows_its_line(path, line):
    keys = [int(key) if key.isdigit() else key for key in path.split(".")]
    data = copy.deepcopy(parse_yaml(FILE, "f.yaml"))
    place, found = place_of({"in": {"scenario": data}}, ["in", "scenario", *keys], "f.yaml")
    assert (place, found) == (f"f.yaml, line {line}" if line else "f.yaml", tuple(keys))


# ---------- Where it came from


@pytest.mark.parametrize(
    ("key", "path", "told"),
    [
        ("a.b", "a.b", True),
        ("a.b", "a.b.c", True),
        ("a.b", "a", True),  # a part of it
        ("a.c", "a.b", False),
        ("a.c", "list", False),
        ("list.x", "list.1.x", True),
        ("list.1.x", "list.1.x", True),
        ("list.1.x", "list.0.x", False),
        ("list.1", "list.0", False),
        ("list.1", "list.1", True),
        ("list.1", "list", True),
        ("new.b.c", "new.b.d", True),  # its mapping came with the override
    ],
)
def test_an_override_is_told_with_what_it_set(key, path, told):
    data = parse_yaml(FILE, "f.yaml")
    Override.parse(f"{key}=9").apply(data)
    keys = [int(part) if part.isdigit() else part for part in path.split(".")]
    assert (f"--set {key}=9" in place_of(data, keys, "")[0]) is told


@pytest.mark.parametrize("index", ["²", "-1", "+1", "1_0", " 1"])
def test_only_plain_digits_are_an_index(index):
    data = located({"list": [[1, 2], [3, 4]]}, Place("f.yaml"))
    with pytest.raises(ConfigError, match="plain value"):
        Override.parse(f"list.{index}.x=3").apply(data)
    assert data == {"list": [[1, 2], [3, 4]]}


@pytest.mark.parametrize("text", ["", "=", "=1", "a"])
def test_overrides_that_are_none(text):
    with pytest.raises(ConfigError, match=r"^--set "):
        Override.parse(text)


# ---------- Specifications


@spec
class _Inner:
    size_m: Positive = 1.0


@spec
class _Bar:
    kind: Literal["test_bar"] = "test_bar"
    length_m: Positive
    width_m: Positive


@pytest.mark.parametrize("value", [True, 1e300, -1e300, 1e-300, float("nan"), float("inf"), "x"])
def test_numbers_that_are_none_or_absurd(value):
    with pytest.raises(ConfigError, match="size_m"):
        _Inner(size_m=value)


def test_missing_keys_are_said_together_and_of_their_files():
    @spec
    class Pair:
        first: _Bar
        second: _Bar
        third: int

    data = {"first": parse_yaml("kind: test_bar", "b.yaml")}
    with pytest.raises(ConfigError) as error:
        build(Pair, data, "a.yaml")
    assert str(error.value) == (
        "b.yaml: length_m, width_m are missing; a.yaml: second, third are missing"
    )


def test_aliases_that_grow_without_bounds_are_refused():
    rows = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    rows += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]" for k in range(1, 9)]
    with pytest.raises(ConfigError, match=r"f.yaml, line \d: more than 1000000 values"):
        parse_yaml("\n".join(rows), "f.yaml")


@pytest.mark.parametrize("value", ["&a [*a]", "!!bool x", "!!float ''", "[" * 2000])
def test_an_override_goes_through_the_same_door(value):
    with pytest.raises(ConfigError, match="--set seed"):
        Override.parse(f"seed={value}").apply(parse_yaml("a: 1", "f.yaml"))


def test_a_path_of_an_override_has_an_end():
    with pytest.raises(ConfigError, match="more than 50 levels"):
        Override.parse(".".join(["a"] * 3000) + "=1")
