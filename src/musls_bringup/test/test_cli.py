"""The command line's boundary: one line for bad input, quick help, exit codes."""

import os
import pty
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Annotated

import pytest
import typer

import musls
from musls_bringup.cli import app, main
from musls_bringup.cli.app import COMMANDS, SECTIONS
from musls_bringup.cli.test import absolute_path, parallel
from musls_description.config.errors import ConfigError, MuslsError

SLOW_TO_IMPORT = {"dartpy", "matplotlib", "numba", "rosbags", "scipy"}


def run_python(code, *args, **kwargs):
    """Runs code in a fresh interpreter, as the console script would."""
    return subprocess.run(
        [sys.executable, "-c", code, *args], capture_output=True, text=True, timeout=60, **kwargs
    )


@pytest.fixture
def use_command(monkeypatch):
    """Puts a function in the place of all subcommands, under the name `fly`."""

    def use(function):
        module = ModuleType("fake")
        module.run = function
        monkeypatch.setitem(sys.modules, "musls_bringup.cli.fake", module)
        fake = "fake:run", "fly circle"
        monkeypatch.setattr(app, "COMMANDS", {"fly": fake, "list": fake})

    return use


def error_line(capsys):
    """Returns the one line on stderr."""
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("musls: error: ")
    assert captured.err.count("\n") == 1, captured.err
    return captured.err


@pytest.mark.parametrize("error", [MuslsError, ConfigError])
def test_bad_input_ends_with_one_line(use_command, capsys, error):
    def fly():
        raise error("mass_kg of drone_1\nis -1.0")

    use_command(fly)
    assert main(["fly"]) == 2
    assert error_line(capsys) == "musls: error: mass_kg of drone_1 is -1.0\n"


@pytest.mark.parametrize("args", [["--debug", "fly"], ["fly", "--debug"]])
def test_debug_shows_the_traceback_in_any_place(use_command, capsys, args):
    def fly():
        raise MuslsError("no such system")

    use_command(fly)
    assert main(args) == 2
    err = capsys.readouterr().err
    assert "Traceback" in err and err.endswith("musls: error: no such system\n")


def test_debug_after_two_dashes_belongs_to_the_subcommand():
    assert app.split_debug(["test", "--", "--debug"]) == (["test", "--", "--debug"], False)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["flyy"], ["'flyy'", "'fly'?"]),
        (["xyzzy"], ["'xyzzy'", "fly, list"]),
        (["--colour"], ["--colour", "musls --help"]),
        (["fly", "--step", "1"], ["--step", "musls fly --help"]),
        (["fly", "--count", "many"], ["--count", "integer", "musls fly --help"]),
        (["fly", "circle", "extra"], ["extra", "musls fly --help"]),
    ],
)
def test_usage_errors_are_one_line(use_command, capsys, args, words):
    def fly(scenario: str = "circle", count: Annotated[int, typer.Option()] = 1):
        pass

    use_command(fly)
    assert main(args) == 2
    line = error_line(capsys)
    assert all(word in line for word in words), line


def test_missing_argument_is_one_line(use_command, capsys):
    def fly(scenario: Annotated[str, typer.Argument()]):
        pass

    use_command(fly)
    assert main(["fly"]) == 2
    assert "scenario" in error_line(capsys).lower()


def test_exit_codes(use_command):
    def interrupted():
        raise KeyboardInterrupt

    use_command(lambda: None)
    assert main(["fly"]) == 0
    use_command(lambda: 3)
    assert main(["fly"]) == 3
    use_command(interrupted)
    assert main(["fly"]) == 130


def test_a_bug_keeps_its_traceback(use_command):
    def fly():
        raise ZeroDivisionError

    use_command(fly)
    with pytest.raises(ZeroDivisionError):
        main(["fly"])


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_help_shows_an_example(capsys, command, flag):
    assert main([*command, flag]) == 0
    captured = capsys.readouterr()
    assert "Example:\n" in captured.out
    assert f"musls {' '.join(command)}".strip() in captured.out.partition("Example:")[2]
    assert captured.err == ""


def test_no_argument_prints_the_help(capsys):
    assert main([]) == 0
    out = capsys.readouterr().out
    assert all(f"\n  {name} " in out for name in COMMANDS)


def test_version(capsys):
    try:
        expected = version("musls")
    except PackageNotFoundError:
        expected = version("musls_bringup")
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"musls {expected}\n"


def test_help_imports_nothing_slow():
    """One process for all commands; the first that imports something slow is named."""
    code = (
        "import sys; from musls_bringup.cli import main\n"
        f"for name in {['--help', *COMMANDS]}:\n"
        "    status = main([name] if name == '--help' else [name, '--help'])\n"
        f"    slow = {SLOW_TO_IMPORT} & set(sys.modules)\n"
        "    if status or slow: sys.exit(f'{name}: status {status}, imports {slow}')\n"
    )
    result = run_python(code)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("Usage:") == 1 + len(COMMANDS)


def test_test_command_refuses_a_contradiction(capsys):
    assert main(["test", "--slow", "--all"]) == 2
    assert "--slow" in error_line(capsys)


def test_test_command_hands_its_arguments_to_pytest(monkeypatch):
    commands = []

    def record(command, **kwargs):
        commands.append(command)
        return subprocess.CompletedProcess(command, 5)

    monkeypatch.setattr(subprocess, "run", record)
    assert main(["test", "-x", "-k", "catenary", "--all", "--lf"]) == 5
    assert commands[0][1:] == ["-m", "pytest", "-rs", "-m", "", "-x", "-k", "catenary", "--lf"]


@pytest.mark.parametrize(
    ("args", "wanted"),
    [
        ([], True),
        (["--durations=5", "-x"], True),
        (["-n0"], False),
        (["-k", "catenary"], False),
        (["src/musls_sim/test/test_flight.py::test_x"], False),
        (["--pdb"], False),
    ],
)
def test_many_tests_run_in_parallel_unless_told_otherwise(args, wanted):
    pytest.importorskip("xdist")
    assert parallel(args) == (["-n", "auto", "--dist", "worksteal"] if wanted else [])


def test_test_files_are_named_from_the_users_folder(tmp_path, monkeypatch):
    (tmp_path / "test_x.py").touch()
    monkeypatch.chdir(tmp_path)
    assert absolute_path("test_x.py::test_y") == f"{tmp_path.resolve()}/test_x.py::test_y"
    assert absolute_path("test_absent.py") == "test_absent.py"
    assert absolute_path("catenary") == "catenary"


def test_a_script_beside_a_folder_of_that_name(tmp_path):
    """A clone is called musls: a script beside it imports the package, not an empty namespace."""
    (tmp_path / "musls").mkdir()
    (tmp_path / "script.py").write_text("import musls; print(musls.__version__, musls.rotations)")
    command = [sys.executable, "script.py"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ended.stdout.startswith(musls.__version__)
    command = [sys.executable, "-m", "musls", "--version"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ended.stdout == f"musls {musls.__version__}\n"


def test_the_help_shows_each_command_in_one_section(capsys):
    shown = [name for names in SECTIONS.values() for name in names]
    assert sorted(shown) == sorted(COMMANDS)
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"\n{title}:\n" in text for title in SECTIONS)
    assert text.index("  fly ") < text.index("Build a system:")


def test_a_terminal_shows_a_sign_of_life_until_the_first_line():
    ours, theirs = pty.openpty()
    code = "import sys; from musls_bringup.cli import main; sys.exit(main())"
    words = [sys.executable, "-c", code, "fly", "circel"]
    with subprocess.Popen(words, stdout=theirs, stderr=theirs) as process:
        assert os.read(ours, 99) == b"musls ..."
        said = os.read(ours, 99) + os.read(ours, 99)
    assert process.returncode == 2
    assert said.startswith(b"\r         \rmusls: error: ")
