"""Pages and examples use what `musls` and its modules list, and nothing else."""

import ast
import importlib
import json
import re
import runpy
from pathlib import Path

import pytest

import musls

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = [p for p in sorted((ROOT / "examples").glob("*.*")) if p.suffix in (".py", ".ipynb")]
TEMPLATES = sorted((ROOT / "src/musls_bringup/musls_bringup/templates").rglob("*.py.j2"))

pytestmark = pytest.mark.skipif(not EXAMPLES, reason="docs/ and examples/ come with a checkout")

INTERNAL = re.compile(r"musls_(description|control|sim|analysis|bringup)$")


def blocks(path):
    """Python code of a page, a script, a notebook or a template."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return [text]
    if path.suffix == ".j2":
        return [
            re.sub(r"{%.*?%}|{#.*?#}", "", text, flags=re.S).replace("{{", "").replace("}}", "")
        ]
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return re.findall(r"^```py(?:thon)?(?: [^\n]*)?\n(.*?)^```", text, re.S | re.M)


def dotted(node):
    """The words of `a.b.c`, empty for all else."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return [*before, node.attr] if before else []
    return []


def used(code):
    """Dotted names of ours that code imports or names, as "musls.events.register"."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute) and (words := dotted(node))[:1] == ["musls"]:
            yield ".".join(words)


def outside(name):
    """Why a dotted name is not of the door; empty if it is."""
    first, *rest = name.split(".")
    if INTERNAL.match(first):
        return f"{name} is internal"
    if first != "musls" or not rest:
        return ""
    module = musls
    if rest[0] in musls.MODULES:
        module = importlib.import_module(f"musls.{rest.pop(0)}")
    if rest and rest[0] not in module.__all__:
        return f"{module.__name__} has no {rest[0]}"
    return ""


@pytest.mark.parametrize("path", [*PAGES, *EXAMPLES, *TEMPLATES], ids=lambda path: path.stem)
def test_code_uses_only_the_door(path):
    pytest.importorskip("gymnasium", reason="the extra rl is not installed")
    names = {name for code in blocks(path) for name in used(code)}
    assert not list(filter(None, map(outside, sorted(names))))


INLINE = re.compile(r"`(musls(?:_\w+)?\.[\w.]+)")
NO_NAMES = re.compile(r"musls\.(py|ya?ml|md|rviz|whl)$")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_sentences_name_only_the_door(path):
    """In backquotes; groups of entry points have the names of registries of the door."""
    pytest.importorskip("gymnasium", reason="the extra rl is not installed")
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
    names = {name.rstrip(".") for name in INLINE.findall(text) if not NO_NAMES.match(name)}
    assert not list(filter(None, map(outside, sorted(names - ENTRY_POINTS - NODES))))


ENTRY_POINTS = {"musls.readers", "musls.agents"}
"""Groups of entry points whose registries lie in modules of the door."""

NODES = {"musls_sim.nodes.embedded_sim", "musls_bringup.gazebo"}
"""Programs that are started by `python -m`."""


def test_the_check_sees_what_is_internal():
    code = "from musls_sim.plants import PLANTS\nmusls.events.nothing()\nmusls.fly('hold')"
    wrong = [outside(name) for name in used(code)]
    assert {*wrong} == {
        "",
        "musls_sim.plants.PLANTS is internal",
        "musls.events has no nothing",
    }


def test_the_page_of_all_names_has_them():
    pytest.importorskip("gymnasium", reason="the extra rl is not installed")
    page = runpy.run_path(str(ROOT / "docs/made_tables.py"))["api"]()
    names = {
        name
        for module in ("musls", *(f"musls.{module}" for module in musls.MODULES))
        for name in importlib.import_module(module).__all__
    } - {*musls.MODULES, "__version__"}
    shown = {
        re.split(r"[ .]", title)[-1]
        for title in re.findall(r"^(?:###|:::|      heading:) (.+)$", page, re.M)
    }
    assert names <= shown
