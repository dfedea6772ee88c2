"""`musls test`: the test suite of this checkout."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from musls_description.errors import ConfigError, MuslsError

EXAMPLE = "musls test -k catenary"

# Whatever is not an option of ours goes to pytest.
CONTEXT_SETTINGS = {"ignore_unknown_options": True}


def run(
    pytest_args: Annotated[
        list[str] | None, typer.Argument(metavar="[PYTEST ARGS]...", help="Handed to pytest.")
    ] = None,
    slow: Annotated[bool, typer.Option("--slow", help="Run the slow tests only.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Run the slow tests too.")] = False,
) -> int:
    """Runs the test suite; skipped tests are listed with what they lack."""
    if slow and every:
        raise ConfigError("--slow and --all exclude each other: --slow runs the slow tests only")
    if find_spec("pytest") is None:
        raise MuslsError("pytest is missing: pip install 'musls[test]'")
    selection = ["-m", "slow"] if slow else ["-m", ""] if every else []
    command = [sys.executable, "-m", "pytest", "-rs", *selection]
    command += [absolute_path(arg) for arg in pytest_args or []]
    return subprocess.run(command, cwd=checkout(), check=False).returncode


def checkout() -> Path:
    """Returns the checkout that holds this module; tests are not installed with the packages."""
    root = Path(__file__).resolve().parents[4]
    if not (root / "pyproject.toml").is_file():
        raise MuslsError(f"no tests beside {Path(__file__).parent}: they come with a checkout")
    return root


def absolute_path(arg: str) -> str:
    """Makes a test file named from the user's folder absolute: pytest runs in the checkout."""
    path = arg.partition("::")[0]
    if ("/" in path or path.endswith(".py")) and Path(path).exists():
        return str(Path(path).resolve()) + arg[len(path) :]
    return arg
