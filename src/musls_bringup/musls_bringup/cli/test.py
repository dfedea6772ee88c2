"""`musls test`: the test suite of this checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from musls_description import ONE_THREAD
from musls_description.config.errors import ConfigError, MuslsError, install_command


def run(
    pytest_args: Annotated[
        list[str] | None, typer.Argument(metavar="[PYTEST ARGS]...", help="Handed to pytest.")
    ] = None,
    slow: Annotated[bool, typer.Option("--slow", help="Run the slow tests only.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Run the slow tests too.")] = False,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Leave out whole flights, the command line and ROS: three minutes."
        ),
    ] = False,
) -> int:
    """Runs the test suite; skipped tests are listed with what they lack."""
    flags = {"--slow": slow, "--all": every, "--quick": quick}
    if sum(flags.values()) > 1:
        names = " and ".join(name for name, flag in flags.items() if flag)
        raise ConfigError(f"{names} exclude each other: each chooses what is run")
    if find_spec("pytest") is None:
        raise MuslsError(
            f"pytest is missing: {install_command('pytest', 'pytest-timeout', 'hypothesis')}"
        )
    selection = ["-m", "slow"] if slow else ["-m", ""] if every else []
    args = [absolute_path(arg) for arg in pytest_args or []]
    folders = [f"src/{package}" for package in QUICK] if quick else []
    command = [sys.executable, "-m", "pytest", "-rs", *selection, *parallel(args), *folders, *args]
    if not args:
        typer.echo(next((TAKES[name] for name, flag in flags.items() if flag), TAKES[""]))
    # One thread for linear algebra: matrices are small, and each core has its own tests.
    environment = {**ONE_THREAD, **os.environ}
    return subprocess.run(command, cwd=checkout(), env=environment, check=False).returncode


QUICK = ("musls_description", "musls_control", "musls_analysis")
"""Packages whose tests need no simulator."""

TAKES = {
    "": "some 13 minutes on two cores; slow tests are left out (--all); --quick takes three",
    "--slow": "the slow tests alone: an hour or more on two cores",
    "--all": "all tests: an hour or more on two cores",
    "--quick": "some three minutes on two cores; tests of whole flights, command line and ROS are "
    "left out",
}
"""Duration of the tests by option, and the tests that are left out."""

SERIAL = (
    "-n",
    "-k",
    "-s",
    "-p",
    "--pdb",
    "--trace",
    "--co",
    "--collect-only",
    "--lf",
    "--dist",
)
"""Options for which, as for tests that are named, parallel processes are no gain or in the way."""


def parallel(args: list[str]) -> list[str]:
    """Options that let pytest run the tests in one process per core."""
    has_tests = any("::" in arg or arg.endswith(".py") or Path(arg).is_dir() for arg in args)
    if has_tests or any(arg.startswith(SERIAL) for arg in args) or find_spec("xdist") is None:
        return []
    # Tests of a file mostly share what is slow to make; a process without work takes some over.
    return ["-n", "auto", "--dist", "worksteal"]


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
