"""Registries: how things get in, what a look-up says, and fields that hold any of them."""

import sys
from dataclasses import field
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from musls_description.config import registry as registry_module
from musls_description.config.errors import ConfigError
from musls_description.config.registry import AnyOf, Registry, UnknownName
from musls_description.config.schema import Positive, build, spec, to_data
from musls_description.config.strict_yaml import parse_yaml

GROUP = "musls.things_of_tests"


def make_registry(**shipped):
    return Registry("thing", GROUP, shipped)


def install(folder, monkeypatch, entry_points, **modules):
    """A distribution as pip lays it out, on the path of this process."""
    info = folder / "other_things-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-things\nVersion: 1.2\n")
    lines = [f"{name} = {value}" for name, value in entry_points.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines, ""]))
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(folder))


def test_a_decorator_enters_what_it_decorates():
    registry = make_registry()

    @registry.register("bolt")
    class Bolt:
        pass

    assert registry["bolt"] is Bolt and "bolt" in registry
    assert list(registry) == ["bolt"] and len(registry) == 1 and dict(registry) == {"bolt": Bolt}


def test_shipped_things_are_imported_when_they_are_asked_for(tmp_path, monkeypatch):
    (tmp_path / "late_module_of_tests.py").write_text("class Late: pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = make_registry(late="late_module_of_tests:Late")
    assert "late" in registry and list(registry) == ["late"]
    assert "late_module_of_tests" not in sys.modules
    assert registry["late"].__name__ == "Late"
    assert registry["late"] is sys.modules["late_module_of_tests"].Late
    del sys.modules["late_module_of_tests"]


def test_installed_packages_bring_things(tmp_path, monkeypatch):
    install(
        tmp_path, monkeypatch, {"gear": "gears_of_tests:Gear"}, gears_of_tests="class Gear: pass\n"
    )
    registry = make_registry(bolt=object)
    assert sorted(registry) == ["bolt", "gear"] and len(registry) == 2 and "gear" in registry
    assert "gears_of_tests" not in sys.modules  # until it is asked for
    assert registry["gear"].__name__ == "Gear"


def test_entry_points_may_be_those_of_the_backport(monkeypatch):
    """Once somebody imports importlib_metadata, the standard library gives objects of its class."""

    class Point:
        name, value, dist, module = "gear", "gears_of_tests:Gear", None, "gears_of_tests"

        def load(self):
            return dict

    monkeypatch.setattr(registry_module, "entry_points", lambda group: [Point()])
    assert make_registry()["gear"] is dict


def test_an_installed_package_cannot_replace_what_is_shipped(tmp_path, monkeypatch):
    install(
        tmp_path, monkeypatch, {"bolt": "bolts_of_tests:Bolt"}, bolts_of_tests="class Bolt: pass\n"
    )
    registry = make_registry(bolt=object)
    assert registry["bolt"] is object and list(registry) == ["bolt"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 / 0\n", "ZeroDivisionError: division by zero"),
        (
            "raise ImportError('first line\\n  second line')\n",
            "ImportError: first line second line",
        ),
        ("Gear = 1 +\n", "SyntaxError"),
        ("class Wheel: pass\n", "AttributeError"),
    ],
)
def test_a_broken_package_is_named_in_one_line(tmp_path, monkeypatch, text, words):
    install(tmp_path, monkeypatch, {"gear": "broken_of_tests:Gear"}, broken_of_tests=text)
    registry = make_registry()
    assert "gear" in registry
    with pytest.raises(ConfigError) as error:
        registry["gear"]
    message = str(error.value)
    assert message.startswith("thing 'gear' of other-things cannot be imported: "), message
    assert words in message and "\n" not in message


def test_an_unknown_name_is_answered_with_the_near_ones():
    registry = make_registry(sprocket=object, spring=object, bolt=object)
    with pytest.raises(UnknownName) as error:
        registry["sprokcet"]
    assert str(error.value) == "unknown thing 'sprokcet': did you mean 'sprocket'?"
    with pytest.raises(KeyError, match="known: bolt, spring, sprocket"):
        registry["zzz"]
    assert registry.get("zzz") is None and "zzz" not in registry


def test_a_taken_name_is_refused_and_kept():
    registry = make_registry(bolt="musls_description.config.errors:ConfigError", nut=ConfigError)
    for name in ("bolt", "nut"):
        with pytest.raises(ConfigError, match=f"thing '{name}' exists already"):
            registry.register(name)(type(name, (), {}))
        assert registry[name] is ConfigError


def class_of(module, version):
    return type("Mine", (), {"__module__": module, "__qualname__": "Mine", "version": version})


def test_a_cell_of_a_notebook_may_run_twice_but_no_other_file_takes_the_name():
    registry = make_registry()
    registry.register("mine")(class_of("__main__", 1))
    registry.register("mine")(class_of("__main__", 2))
    assert registry["mine"].version == 2
    with pytest.raises(ConfigError, match="exists already"):
        registry.register("mine")(class_of("another_file", 3))
    assert registry["mine"].version == 2


# ---------- Any_of

SHAPES = Registry("shape", "musls.shapes_of_tests", {})


@spec
class Core:
    depth_m: Positive = 1.0


@SHAPES.register("ball")
@spec
class Ball:
    kind: Literal["ball"] = "ball"
    radius_m: Positive
    core: Core = field(default_factory=Core)


@SHAPES.register("brick")
@spec
class Brick:
    kind: Literal["brick"] = "brick"
    edges_m: tuple[Positive, Positive, Positive] = (1.0, 1.0, 1.0)
    label: Annotated[str, Field(max_length=5)] = ""


@SHAPES.register("bar")
@spec
class Bar:
    kind: Literal["bar"] = "bar"
    length_m: Positive
    width_m: Positive


AnyShape = Annotated[Any, AnyOf(SHAPES)]


@spec
class Heap:
    name: str = ""
    top: AnyShape = field(default_factory=Brick)
    rest: tuple[AnyShape, ...] = ()


TEXT = """\
name: heap
top: {kind: brick, label: red}
rest:
  - {kind: ball, radius_m: 2}
  - brick
  - {kind: brick, edges_m: [1, 2, 3]}
  - kind: bar
    length_m: 1
    width_m: 2
"""


def read(text):

    return build(Heap, parse_yaml(text, "heap.yaml"), "heap.yaml")


def test_a_field_holds_any_of_a_registry():
    heap = read(TEXT)
    assert heap.top == Brick(label="red")
    assert heap.rest[:3] == (Ball(radius_m=2), Brick(), Brick(edges_m=(1, 2, 3)))
    assert build(Heap, to_data(heap), "again") == heap
    assert Heap(rest=[Ball(radius_m=1)]).rest == (Ball(radius_m=1),)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("radius_m: 2", "radius_m: -2", 4, ["rest.0.radius_m = -2", "greater than 0"]),
        ("[1, 2, 3]", "[1, 2, up]", 6, ["rest.2.edges_m.2 = 'up'", "number"]),
        ("kind: ball", "kind: bal", 4, ["unknown shape 'bal'", "'ball'"]),
        ("- brick", "- brik", 3, ["unknown shape 'brik'", "'brick'"]),
        ("kind: ball, ", "", 4, ["kind is missing", "ball, bar, brick"]),
        ("- brick", "- 7", 3, ["rest.1 = 7", "a mapping with a kind"]),
        ("kind: ball", "kind: [ball]", 4, ["unknown shape"]),
        ("radius_m: 2", "radus_m: 2", 4, ["unknown key 'rest.0.radus_m'", "'radius_m'"]),
        (", radius_m: 2", "", 4, ["rest.0.radius_m is missing"]),
        ("label: red", "label: too long", 2, ["top.label", "5 characters"]),
        ("    width_m", "    wide_m", 9, ["unknown key 'rest.3.wide_m'", "'width_m'"]),
        ("    length_m: 1\n    width_m: 2\n", "", 7, ["rest.3.length_m, rest.3.width_m are miss"]),
        ("radius_m: 2", "radius_m: 2, core: {deep_m: 2}", 4, ["'rest.0.core.deep_m'", "depth_m"]),
        ("name: heap", "nme: heap", 1, ["unknown key 'nme'", "did you mean 'name'"]),
    ],
)
def test_an_error_inside_keeps_its_place_in_the_file(old, new, line, words):
    assert old in TEXT
    with pytest.raises(ConfigError) as error:
        read(TEXT.replace(old, new, 1))
    message = str(error.value)
    assert message.startswith(f"heap.yaml, line {line}: "), message
    assert all(word in message for word in words), message
    assert "\n" not in message


def test_classes_inherit_the_base_that_their_registry_needs():
    class Base:
        def begin(self):
            pass

    registry = Registry("thing", GROUP, {}, registry_module.requires("begin", base=lambda: Base))
    registry.register("good")(type("Good", (Base,), {}))
    with pytest.raises(ConfigError, match=r"Bad must be a class that inherits musls\.Base"):
        registry.register("bad")(type("Bad", (), {"begin": print}))
    with pytest.raises(ConfigError, match=r"print must be a class that inherits musls\.Base"):
        registry.register("worse")(print)


def test_a_kind_that_is_no_specification_is_told_in_one_line():
    registry = make_registry(bolt=type("Bolt", (), {"kind": "bolt"}))

    @spec
    class Holder:
        thing: Annotated[Any, AnyOf(registry)]

    with pytest.raises(ConfigError, match=r"bolt: Bolt must be a class made with musls\.spec"):
        build(Holder, {"thing": "bolt"}, "f.yaml")
