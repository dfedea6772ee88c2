"""Compiled functions follow every file they are made of: an edit of a helper is never ignored."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
import zipfile
from dataclasses import replace

import numba
import pytest
from numba.core.event import Listener, install_listener

from musls_description.config.errors import MuslsError
from musls_description.numerics import code_cache
from musls_description.numerics.compiled import compiled

CALLER = """\
from musls_description.numerics.compiled import compiled
{imports}

@compiled()
def answer(x):
    return {expression}
"""
HELPER = """\
from musls_description.numerics.compiled import compiled

FACTOR = 2.0

@compiled()
def twice(x):
    return FACTOR * x
"""
SAY = """\
from importlib import import_module
from pathlib import Path

for file in sorted(Path("{folder}").glob("caller_*.py")):
    caller = import_module("{package}." + file.stem)
    value, stats = caller.answer(10.0), caller.answer.from_python.stats
    print(file.stem, value, sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


@pytest.fixture
def package(tmp_path):
    """A package of its own with its own cache; returns what edits it and what runs it."""

    class Package:
        def __init__(self, name="musls_of_tests"):
            self.name, self.folder = name, tmp_path / name
            (self.folder / "parts").mkdir(parents=True)
            for folder in (self.folder, self.folder / "parts"):
                (folder / "__init__.py").write_text("")

        def write(self, name, text):
            file = self.folder / name
            older = file.stat().st_mtime_ns if file.exists() else 0
            file.write_text(textwrap.dedent(text))
            stat = file.stat()  # coarse clocks: an edit is later than what it edits
            later = max(stat.st_mtime_ns, older + 2_000_000_000)
            os.utime(file, ns=(stat.st_atime_ns, later))

        def move(self, place):
            """Into another folder."""
            place.mkdir()
            self.folder = self.folder.rename(place / self.name)

        def run(self, script=None, **variables):
            """Value, hits and misses of the cache of each caller, in a process of their own.

            What it says on standard error is kept in `said`.
            """
            say = SAY.format(package=self.name, folder=self.folder)
            env = {
                **os.environ,
                "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
                "PYTHONPATH": os.pathsep.join([str(self.folder.parent), *filter(None, sys.path)]),
                "PYTHONDONTWRITEBYTECODE": "1",
                **variables,
            }
            command = [sys.executable, "-c", script or say]
            done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300)
            assert done.returncode == 0, done.stderr
            self.said = done.stderr
            rows = map(str.split, done.stdout.splitlines())
            return {row[0].removeprefix("caller_"): tuple(map(float, row[1:])) for row in rows}

    return Package


IMPORTS = {
    "name": ("from {p}.helper import twice", "twice(x) + 1.0"),
    "lines": ("from {p}.helper import (\n    FACTOR,\n    twice,\n)", "FACTOR * x + 1.0"),
    "module": ("from {p} import helper", "helper.twice(x) + 1.0"),
    "module_on_lines": ("from {p} import (\n    helper,\n)", "helper.twice(x) + 1.0"),
    "alias": ("import {p}.helper as h", "h.twice(x) + 1.0"),
    "relative": ("from .helper import twice", "twice(x) + 1.0"),
    "sibling": ("from . import helper as h", "h.twice(x) + 1.0"),
    "through": ("from {p}.parts import twice", "twice(x) + 1.0"),
}


@pytest.mark.parametrize(
    "name", ["musls_of_tests", pytest.param("their_plants", marks=pytest.mark.slow)]
)
def test_an_edit_of_a_helper_is_seen_by_its_callers(package, name):
    """Whichever way they import it, in this distribution and in other people's packages."""
    made = package(name)
    made.write("helper.py", HELPER)
    # What a package hands on counts as well: parts/__init__.py imports the helper.
    made.write("parts/__init__.py", f"from {name}.helper import twice\n")
    for case, (imports, expression) in IMPORTS.items():
        text = CALLER.format(imports=imports.format(p=name), expression=expression)
        made.write(f"caller_{case}.py", text)
    made.write("caller_alone.py", CALLER.format(imports="", expression="x"))

    def expect(value, hits, misses):
        everyone = dict.fromkeys(IMPORTS, (value, hits, misses))
        assert made.run() == everyone | {"alone": (10.0, 1 - first, first)}

    first = 1
    expect(21.0, 0, 1)
    first = 0
    expect(21.0, 1, 0)  # from the cache
    made.write("helper.py", HELPER.replace("2.0", "3.0"))
    expect(31.0, 0, 1)  # but for the one that does not use it
    expect(31.0, 1, 0)


def test_an_edit_of_a_helpers_helper_is_seen_too(package):
    made = package()
    made.write("constant.py", "FACTOR = 2.0\n")
    made.write(
        "helper.py",
        HELPER.replace("FACTOR = 2.0", f"from {made.name}.constant import FACTOR"),
    )
    imports = f"from {made.name}.helper import twice"
    made.write("caller_one.py", CALLER.format(imports=imports, expression="twice(x)"))
    assert made.run() == {"one": (20.0, 0, 1)}
    made.write("constant.py", "FACTOR = 5.0\n")
    assert made.run() == {"one": (50.0, 0, 1)}


def test_what_code_is_counts_not_where_it_lies_nor_what_is_said_of_it(package, tmp_path):
    """Docstrings, comments, empty lines, and the place of the checkout."""
    made = package()
    made.write("helper.py", HELPER)
    caller = CALLER.format(imports=f"from {made.name}.helper import twice", expression="twice(x)")
    made.write("caller_one.py", caller)
    assert made.run() == {"one": (20.0, 0, 1)}
    made.write("helper.py", '"""About it."""\n\n# Why.\n' + HELPER)
    made.write("caller_one.py", caller.replace("    return", '    """Twice x."""\n    return'))
    assert made.run() == {"one": (20.0, 1, 0)}
    made.move(tmp_path / "elsewhere")
    assert made.run() == {"one": (20.0, 1, 0)}
    made.write("helper.py", HELPER.replace("FACTOR * x", "x * FACTOR * 2.0"))
    assert made.run() == {"one": (40.0, 0, 1)}


@pytest.fixture
def shipped(package, tmp_path):
    """A package, and its compiled code in a folder as `musls compile` makes one."""
    made = package()
    made.write("caller_one.py", CALLER.format(imports="", expression="2.0 * x"))
    folder = tmp_path / "shipped"
    folder.mkdir()
    assert made.run(NUMBA_CACHE_DIR=str(folder / code_cache.CODE)) == {"one": (20.0, 0, 1)}
    code_cache.CodeTarget.here().write(folder)
    return made, folder


def test_compiled_code_that_came_with_the_installation_is_used(shipped, tmp_path):
    """And code that is changed later is compiled, and said once."""
    made, folder = shipped
    before = sorted(folder.rglob("*"))
    for _ in range(2):
        assert made.run(MUSLS_COMPILED=str(folder)) == {"one": (20.0, 1, 0)}
        assert not made.said
        assert not [*(tmp_path / "cache").rglob(code_cache._KEPT)]  # no source is parsed again
    made.write("caller_one.py", CALLER.format(imports="", expression="3.0 * x"))
    assert made.run(MUSLS_COMPILED=str(folder)) == {"one": (30.0, 0, 1)}
    assert made.said.count("has been changed since; compiling") == 1
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("ending", ["nbc", "nbi"])
def test_compiled_code_that_was_copied_by_half_is_not_used(shipped, ending):
    made, folder = shipped
    file = next(folder.rglob(f"*.{ending}"))
    file.write_bytes(file.read_bytes()[:-9])
    assert made.run(MUSLS_COMPILED=str(folder)) == {"one": (20.0, 0, 1)}
    assert made.said.count("is not whole; compiling what is not") == 1
    assert made.run(MUSLS_COMPILED=str(folder)) == {"one": (20.0, 1, 0)}  # from its own cache


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, ""),
        ({"python": "cpython-27"}, "it is for python cpython-27"),
        ({"numba": "0.1"}, "it is for numba 0.1"),
        ({"processor": "pdp11"}, "it is for processor pdp11"),
        ({"features": "+warp"}, "this processor has other abilities"),
    ],
)
def test_why_compiled_code_does_not_fit(change, reason):
    for target in (code_cache.NATIVE, *code_cache.TARGETS):
        here = code_cache.CodeTarget.here(target)
        obstacle = replace(here, **change).obstacle()
        assert obstacle.startswith(reason) or obstacle.startswith(f"it is for {target}, and")


def test_a_processor_that_cannot_do_enough_is_told_what_it_lacks(monkeypatch):
    monkeypatch.setattr(code_cache.llvm, "get_host_cpu_features", dict)
    assert (
        "this processor has no cx16, popcnt" in code_cache.CodeTarget.here("x86-64-v3").obstacle()
    )


def test_compiled_code_that_does_not_fit_is_not_used(shipped):
    made, folder = shipped
    replace(code_cache.CodeTarget.here(), numba="0.1").write(folder)
    assert made.run(MUSLS_COMPILED=str(folder)) == {"one": (20.0, 0, 1)}
    assert made.said.count("it is for numba 0.1") == 1
    (folder / code_cache.MANIFEST).unlink()
    assert made.run(MUSLS_COMPILED=str(folder)) == {"one": (20.0, 1, 0)}  # from its own cache
    assert made.said.count("no compiled.json that can be read") == 1
    replace(code_cache.CodeTarget.here(), processor=["a"]).write(folder)
    made.run(MUSLS_COMPILED=str(folder))
    assert made.said.count("no compiled.json that can be read") == 1


STAMPS = """\
import sys
from {name} import caller_one
from musls_description.numerics.code_cache import source_state

print("alone", int(source_state(caller_one.__name__)[0], 16))
print("imported", float("{name}.helper" in sys.modules or "{name}.parts" in sys.modules))
from {name} import helper, parts
print("later", int(source_state(caller_one.__name__)[0], 16))
"""
LATE = """\
def answer():
    from {name}.parts import twice
    return twice
"""


def test_a_stamp_does_not_depend_on_what_a_process_has_imported(package):
    """What a function imports when it runs counts before it runs, and is not imported for that."""
    made = package()
    made.write("helper.py", HELPER)
    made.write("parts/__init__.py", "from ..helper import twice\n")
    made.write("caller_one.py", LATE.format(name=made.name))
    before = made.run(STAMPS.format(name=made.name))
    assert before["alone"] == before["later"] and before["imported"] == (0.0,)
    made.write("helper.py", HELPER.replace("2.0", "3.0"))
    after = made.run(STAMPS.format(name=made.name))
    assert after["alone"] == after["later"] != before["alone"]


TYPED = """\
from typing import NamedTuple
from {name} import caller_one

class {kind}(NamedTuple):
    x: float
"""


@pytest.mark.slow
def test_a_type_that_is_gone_does_no_harm(package, tmp_path):
    """The index of a function names the types of its arguments, wherever they were defined."""
    made = package()
    made.write("caller_one.py", CALLER.format(imports="", expression="x"))
    made.write("types_.py", TYPED.format(name=made.name, kind="Old"))
    script = f"from {made.name} import caller_one, types_; caller_one.answer(types_.{{}}(1.0))"
    made.run(script.format("Old"))
    made.write("types_.py", TYPED.format(name=made.name, kind="New"))
    made.run(script.format("New"))


@pytest.mark.slow
def test_caches_of_former_sources_are_deleted_after_a_while(package, tmp_path):
    made = package()
    made.write("caller_one.py", CALLER.format(imports="", expression="x"))
    made.run()
    (first,) = (tmp_path / "cache").glob("*.caller_one-*")
    made.write("caller_one.py", CALLER.format(imports="", expression="2.0 * x"))
    assert made.run() == {"one": (20.0, 0, 1)}
    assert first.is_dir()
    os.utime(first, (0.0, 0.0))
    made.write("caller_one.py", CALLER.format(imports="", expression="3.0 * x"))
    assert made.run() == {"one": (30.0, 0, 1)}
    assert not first.is_dir()


def test_what_is_kept_is_made_once(monkeypatch, tmp_path):
    monkeypatch.setattr(code_cache, "_USERS_FOLDER", str(tmp_path))
    calls = []

    def make():
        calls.append(1)
        return b"made"

    assert [code_cache.kept("a", make), code_cache.kept("a", make)] == 2 * [b"made"]
    assert len(calls) == 1
    (tmp_path / code_cache._KEPT / "b").mkdir()  # a place that cannot be written
    assert code_cache.kept("b", make) == b"made"


@compiled()
def doubled(x):
    return 2.0 * x


@compiled()
def applied(function, x):
    return function(x) + doubled(x)


def test_python_and_compiled_code_call_the_same_function():
    """Each by its own entry, also as an argument, in processes that find it compiled, and sent."""
    assert applied(doubled, 3.0) == 12.0 and doubled(3.0) == 6.0
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    assert len(doubled.from_python.signatures) == len(doubled.from_compiled.signatures) == 1
    assert applied.from_python.signatures and not applied.from_compiled.signatures


def test_stages_call_each_other_by_name_also_from_the_cache(package):
    package = package()
    package.write(
        "stages.py",
        """\
        from functools import partial

        from numba import types

        from musls_description.numerics.compiled import CompiledStage, compiled
        from musls_of_tests import more

        @partial(CompiledStage, gives=types.float64, takes=(types.float64,))
        def half(address, x):
            return x / address

        @compiled()
        def quarter(address, x):
            return half(address, half(address, x)) if x > 0.0 else more.rare(address)

        @partial(CompiledStage, gives=types.float64, takes=(types.float64,))
        def whole(address, x):
            return quarter(address, x) + more.one(address)
        """,
    )
    package.write(
        "more.py",
        """\
        from functools import partial

        from numba import types

        from musls_description.numerics.compiled import CompiledStage

        @partial(CompiledStage, gives=types.float64)
        def one(address):
            return 1.0

        @partial(CompiledStage, gives=types.float64, on_demand=True)
        def rare(address):
            return -5.0
        """,
    )
    script = textwrap.dedent(
        """\
        from musls_description.numerics.code_cache import compiled_files
        from musls_of_tests import more, stages

        value = stages.whole(2, 8.0)
        before = compiled_files()
        more.rare.address
        print("value", value, stages.whole(2, -1.0), before, compiled_files())
        """
    )
    assert package.run(script) == {"value": (3.0, -4.0, 4, 5)}
    assert package.run(script) == {"value": (3.0, -4.0, 5, 5)}  # from the cache


def test_an_array_in_a_record_makes_no_function_of_its_own(package):
    package = package()
    package.write(
        "fields.py",
        """\
        from musls_description.numerics.compiled import compiled

        @compiled()
        def last(x):
            return x[x.shape[0] - 1]

        @compiled()
        def last_of_both(row, other):
            return last(row.numbers) + last(other)
        """,
    )
    script = textwrap.dedent(
        """\
        import numpy as np

        from musls_of_tests.fields import last, last_of_both

        row = np.zeros(1, [("before", float), ("numbers", float, 3)])
        row["numbers"] = [1.0, 2.0, 3.0]
        value = last_of_both(row[0], np.array([4.0, 5.0]))
        print("value", value, len(last.from_compiled.signatures))
        """
    )
    assert package.run(script) == {"value": (8.0, 1.0)}


def test_ctrl_c_while_compiling_is_not_lost(monkeypatch, tmp_path):
    """Where Python drops exceptions, as in the deletion of LLVM's objects and its calls back."""

    class Dying:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    class InAPass(Listener):
        def on_start(self, event):
            Dying()

        def on_end(self, event):
            pass

    # Not where an earlier run of this test left its code.
    monkeypatch.setattr(code_cache, "_USERS_FOLDER", str(tmp_path))

    @compiled()
    def plus_one(x):
        return x + 1.0

    with install_listener("numba:run_pass", InAPass()), pytest.raises(KeyboardInterrupt):
        plus_one(1.0)
    assert signal.getsignal(signal.SIGINT) == signal.default_int_handler
    assert plus_one(1.0) == 2.0


def test_without_a_home_the_cache_is_temporary_and_nobody_elses(monkeypatch, tmp_path):
    monkeypatch.setattr(code_cache, "_USERS_FOLDER", "/dev/null/no")
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/no")
    monkeypatch.setattr(code_cache.tempfile, "tempdir", str(tmp_path))
    own = tmp_path / f"musls-{os.getuid()}"

    def forget():
        code_cache._temporary.cache_clear()
        code_cache._writable.cache_clear()

    for made_by_others in (False, True):
        forget()
        if made_by_others:
            own.chmod(0o777)
        folder = code_cache.folder_of(code_cache.folder_of, time.time_ns())
        assert folder.is_dir() and folder.is_relative_to(tmp_path)
        assert folder.is_relative_to(own) != made_by_others
    forget()


def _beside(folder):
    """What runs a script in a folder, with a cache of its own, and what writes a file there."""

    def run(script):
        env = {
            **os.environ,
            "NUMBA_CACHE_DIR": str(folder / "cache"),
            "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [sys.executable, "-c", script]
        done = subprocess.run(
            command, capture_output=True, text=True, env=env, timeout=300, cwd=folder
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def write(name, text, encoding="utf-8"):
        file = folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(textwrap.dedent(text).encode(encoding))

    return run, write


TELL = "print(answer(10.0), *answer.from_python.stats.cache_hits.values())"


@pytest.mark.parametrize("changed", ["factor", "own"])
def test_modules_beside_a_script_are_seen(tmp_path, changed):
    """Scripts and their helpers are in no package."""
    run, write = _beside(tmp_path)
    write("factor.py", "FACTOR = 2.0\n")
    write("own.py", CALLER.format(imports="from factor import FACTOR", expression="FACTOR * x"))
    script = (
        "import own; print(own.answer(10.0), *own.answer.from_python.stats.cache_hits.values())"
    )
    assert [run(script), run(script)] == ["20.0", "20.0 1"]
    if changed == "factor":
        write("factor.py", "FACTOR = 3.0\n")
    else:
        own = CALLER.format(imports="from factor import FACTOR", expression="FACTOR * x * 1.5")
        write("own.py", own)
    assert [run(script), run(script)] == ["30.0", "30.0 1"]


EXECUTED = """\
from musls_description.numerics.compiled import compiled

text = '''
@compiled()
def answer(x):
    return {factor} * x
'''
exec(text, names := {{"__name__": "__main__", "compiled": compiled}})
print(names["answer"](10.0))
"""


def test_code_of_no_file_is_not_taken_for_other_code(tmp_path):
    """In a notebook, or given to Python as a text: numba compares neither numbers nor files."""
    run, _ = _beside(tmp_path)
    assert [run(EXECUTED.format(factor=factor)) for factor in (2.0, 3.0)] == ["20.0", "30.0"]


def test_a_file_that_is_edited_during_a_run_does_not_keep_what_it_said_before(tmp_path):
    run, write = _beside(tmp_path)
    write("factor.py", "FACTOR = 2.0\n")
    write("own.py", CALLER.format(imports="from factor import FACTOR", expression="FACTOR * x"))
    edit = "import own; open('factor.py', 'w').write('FACTOR = 3.0'); print(own.answer(10.0))"
    assert run(edit) == "20.0"
    assert run("import own; print(own.answer(10.0))") == "30.0"
    assert run("import own; open('factor.py', 'w').write('FACTOR ='); print(own.answer(10.0))")


def test_sources_of_any_kind_are_no_obstacle(tmp_path):
    """An editor's lock, another encoding, a compiled extension, an archive, text like imports."""
    run, write = _beside(tmp_path)
    odd = "# coding: latin-1\nfrom their import binary\nimport a..b, ...\n"
    write("their/__init__.py", "")
    write("their/odd.py", "# coding: latin-1\n# \u00fc\n", "latin-1")
    (tmp_path / "their" / ".#own.py").symlink_to("nobody@nowhere")
    (tmp_path / "their" / "binary.so").write_bytes(b"\xfc\x80")
    text = CALLER.format(imports=f'"""\n{odd}"""', expression="2.0 * x")
    write("their/own.py", f"# coding: latin-1\n# \u00fc\n{text}", "latin-1")
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("packed.py", text)
    assert run("from their import own; print(own.answer(10.0))") == "20.0"
    search = "import sys; sys.path.append('packed.zip'); "
    assert run(f"{search}import packed; print(packed.answer(10.0))") == "20.0"


def test_a_cache_that_is_deleted_during_a_run_is_made_again(tmp_path):
    run, write = _beside(tmp_path)
    write("own.py", CALLER.format(imports="", expression="2.0 * x"))
    delete = "import own, shutil; own.answer(1.0); shutil.rmtree('cache'); print(own.answer(1))"
    assert run(delete) == "2.0"


def test_a_file_that_is_named_by_its_path_is_compiled_once(tmp_path):
    run, write = _beside(tmp_path)
    write("own.py", CALLER.format(imports="", expression="2.0 * x"))
    load = "from musls_description.config.registry import load_file"
    script = f"{load}; answer = load_file('own.py').answer; {TELL}"
    assert [run(script), run(script)] == ["20.0", "20.0 1"]


def test_a_full_disk_is_said_of_the_cache(monkeypatch, tmp_path):
    monkeypatch.setattr(code_cache, "_USERS_FOLDER", str(tmp_path))
    monkeypatch.setattr(code_cache, "ROOM_BYTES", 10**18)

    @compiled()
    def plus_two(x):
        return x + 2.0

    with pytest.raises(MuslsError, match=f"no room for compiled code in {tmp_path}"):
        plus_two(1.0)


SAME_NAMES = """\
import numpy as np

from musls_description.numerics.compiled import compiled

def choose(kind):
    if kind == "twice":
        @compiled()
        def answer(x):
            return 2.0 * x
    elif kind == "thrice":
        @compiled()
        def answer(x):
            return 3.0 * x
    elif kind == "sine":
        @compiled()
        def answer(x):
            return np.sin(0.0 * x)
    else:
        @compiled()
        def answer(x):
            return np.cos(0.0 * x)
    return answer
"""


def test_functions_of_one_name_are_told_apart(tmp_path):
    """Also where they differ in numbers and names alone."""
    run, write = _beside(tmp_path)
    write("own.py", SAME_NAMES)
    kinds = ["twice", "thrice", "sine", "cosine"]
    script = f"import own; print(*[own.choose(kind)(10.0) for kind in {kinds}])"
    assert [run(script), run(script)] == 2 * ["20.0 30.0 0.0 1.0"]


def test_what_cannot_be_kept_is_compiled_each_time(tmp_path):
    """A table too large for numba's files: it warns and goes on."""
    run, write = _beside(tmp_path)
    imports = "import numpy as np\nTABLE = np.arange(300_000.0)"
    write("own.py", CALLER.format(imports=imports, expression="TABLE[int(x)]"))
    script = "import own; print(own.answer(10.0))"
    assert [run(script), run(script)] == ["10.0", "10.0"]


TWO_THREADS = """\
import os, threading, time
from numba.core.compiler_lock import global_compiler_lock
import own

def compile_callers():
    with global_compiler_lock:
        held.set()
        time.sleep(0.5)  # meanwhile the other one begins
        own.answer.from_compiled

held = threading.Event()
threads = [threading.Thread(target=compile_callers, daemon=True)]
threads[0].start()
held.wait()
threads.append(threading.Thread(target=lambda: own.answer(1.0), daemon=True))
threads[1].start()
for thread in threads:
    thread.join(30.0)
print(any(thread.is_alive() for thread in threads), flush=True)
os._exit(0)
"""


def test_threads_that_compile_at_once_do_not_wait_for_each_other(tmp_path):
    """Each would hold what the other needs, numba's lock and ours."""
    run, write = _beside(tmp_path)
    write("own.py", CALLER.format(imports="", expression="2.0 * x"))
    assert run(TWO_THREADS) == "False"


def test_numba_that_is_told_not_to_compile_is_one_line(monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)

    @compiled()
    def plus_five(x):
        return x + 5.0

    with pytest.raises(MuslsError, match="NUMBA_DISABLE_JIT is set"):
        plus_five(1.0)
