"""What is imported and compiled when nothing flies: counted, in processes of their own."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import musls


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


def test_the_stub_says_all_names():
    """Also for those who read only its `__all__`, as type checkers do."""
    stub = Path(musls.__file__).with_suffix(".pyi")
    (said,) = (
        ast.literal_eval(line.value)
        for line in ast.parse(stub.read_text()).body
        if isinstance(line, ast.Assign)
    )
    assert sorted(said) == musls.__all__ and {*said} <= {*dir(musls)}
    assert all(getattr(musls, name) is not None for name in said)
    with pytest.raises(AttributeError, match="module 'musls' has no attribute 'fly_circle'"):
        musls.fly_circle  # noqa: B018
