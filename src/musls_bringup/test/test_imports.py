"""What is imported and compiled when nothing flies: counted, in processes of their own."""

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import musls
from musls._deprecated import ALL
from musls_bringup.cli.options import OLD_OPTIONS
from musls_description.config.deprecation import Deprecation


def reported(script, tmp_path):
    """Words that a script prints last, run with empty caches."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1].split()


def test_import_is_for_nothing_until_a_name_is_used(tmp_path):
    script = "import sys, musls; print(musls.__name__, 'numpy' in sys.modules)"
    assert reported(script, tmp_path) == ["musls", "False"]


TOGETHER = """\
import threading
import musls

start = threading.Barrier(16)
failed = []

def use(first):
    start.wait()
    for name in musls.__all__[first:] + musls.__all__[:first]:
        try:
            getattr(musls, name)
        except Exception as error:
            failed.append(error)

threads = [threading.Thread(target=use, args=(3 * i,)) for i in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(failed))
"""


def test_threads_that_use_names_first_at_once_all_get_them(tmp_path):
    """Modules that import each other in circles would be half imported for one of them."""
    assert reported(TOGETHER, tmp_path) == ["0"]


EVERYTHING = """\
import numba, sys
from numba.core.event import Listener, register

class Count(Listener):
    compilations = 0

    def on_start(self, event):
        self.compilations += 1

    def on_end(self, event):
        pass

count = Count()
register("numba:compile", count)
from musls import *
import musls

slow = [name for name in sys.modules if name.startswith(("scipy.", "matplotlib"))]
assert not {"scipy.stats", "scipy.optimize", "scipy.interpolate", "matplotlib"} & {*slow}, slow
assert Session is musls.Session and "musls_sim.batch.host" in sys.modules
imported = count.compilations
musls.rotations.from_yaw(0.1)
musls.load_scenario("solo")
print(imported, count.compilations)
"""


def test_no_module_compiles_when_it_is_imported(tmp_path):
    imported, counted = map(int, reported(EVERYTHING, tmp_path))
    assert imported == 0 < counted  # to read a scenario compiles: the counter counts


COMMAND = """\
import sys
from musls_bringup.cli.app import run
assert run(sys.argv[1:] or {words}) == 0
slow = "numba", "scipy.stats", "scipy.optimize", "scipy.interpolate", "matplotlib.figure"
print("imported", *(name for name in slow if name in sys.modules))
"""


@pytest.mark.parametrize(
    "words",
    ["--help", "fly --help", "view --help", "compare --help", "describe --help"],
)
def test_help_brings_no_simulator(words, tmp_path):
    assert reported(COMMAND.format(words=words.split()), tmp_path) == ["imported"]


@pytest.mark.parametrize("words", ["list", "describe mission.stages.circle"])
def test_lists_do_not_bring_what_flies_use(words, tmp_path):
    """They name functions of plants and controllers, so that numba has to be there."""
    assert reported(COMMAND.format(words=words.split()), tmp_path) == ["imported", "numba"]


ENDED = """\
import gc, sys
from musls_bringup.cli import main
sys.argv = ["musls", "--version"]
assert main() == 0
print(gc.get_freeze_count() > 0)
"""


def test_the_end_of_a_command_looks_for_no_garbage(tmp_path):
    assert reported(ENDED, tmp_path) == ["True"]


@pytest.mark.parametrize("name", ["musls", "musls.learning", "musls.recordings", "musls.types"])
def test_the_stub_says_all_names(name):
    """Also for those who read only its `__all__`, as type checkers do."""
    if name == "musls.learning":
        pytest.importorskip("gymnasium", reason="the extra rl is not installed")
    module = importlib.import_module(name)
    stub = Path(module.__file__).with_suffix(".pyi")
    (said,) = (
        ast.literal_eval(line.value)
        for line in ast.parse(stub.read_text()).body
        if isinstance(line, ast.Assign)
    )
    assert sorted(said) == sorted(module.__all__) and {*said} <= {*dir(module)}
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'fly_circle'"):
        module.fly_circle  # noqa: B018


OF_EXTRAS = {"PPO_SETTINGS", "TransportParallelEnv", "for_sb3", "save_policy"}


def test_all_names_of_the_door_are_there_and_have_one_place():
    pytest.importorskip("gymnasium", reason="the extra rl is not installed")
    places = {}
    for title in ("musls", *(f"musls.{module}" for module in musls.MODULES)):
        module = importlib.import_module(title)
        for name in {*module.__all__} - {*musls.MODULES} - OF_EXTRAS:
            places.setdefault(id(getattr(module, name)), []).append(f"{title}.{name}")
    assert len(places) > 100
    assert not [names for names in places.values() if len(names) > 1]


DEPRECATED = """\
import importlib, warnings, musls

def warned(act):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FutureWarning)
        assert act()
    assert {warning.category for warning in caught} == {musls.MuslsDeprecationWarning}
    (text,) = {str(warning.message) for warning in caught}
    return text, caught[0].filename

mapping = {
    "plants": [lambda: musls.plants["elastic"], lambda: list(musls.plants)],
    "events": [lambda: "gust" in musls.events, lambda: musls.events.get("gust")],
}
for name, acts in mapping.items():
    old, new = f"musls.{name} as a mapping", f"musls.{name}.{name.upper()}"
    for act in acts:
        text, file = warned(act)
        assert text == f"{old} is deprecated and ends with musls 0.3: use {new}", text
        assert file == "<string>", file
for name, word in {"envs": "TransportEnv", "agents": "TransportParallelEnv"}.items():
    text, _ = warned(lambda: getattr(importlib.import_module(f"musls.{name}"), word))
    assert text == f"musls.{name} is deprecated and ends with musls 0.3: use musls.learning", text
print("works")
"""


def test_an_old_name_works_and_warns(tmp_path):
    pytest.importorskip("pettingzoo", reason="the extra rl is not installed")
    assert reported(DEPRECATED, tmp_path) == ["works"]


def test_old_names_go_one_release_after_their_first_warning():
    def number(text):
        return tuple(int(part) for part in text.split(".")[:2])

    overdue = [
        old.old
        for old in (*ALL, *OLD_OPTIONS.values())
        if number(old.ends) <= number(musls.__version__)
    ]
    assert not overdue, "remove them"
    assert [Deprecation("a", "b", "0.9").ends, Deprecation("a", "b", "1.12").ends] == [
        "0.10",
        "1.13",
    ]
