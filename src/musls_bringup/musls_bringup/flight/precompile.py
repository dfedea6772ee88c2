"""`musls compile`: compile what flights need before anybody flies, for this or other machines.

Each piece of work is a process that flies, checks or learns shortly and so compiles what it calls.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from musls_bringup.catalogue.shipped import VERSION
from musls_description.config.errors import ConfigError, MuslsError, writing
from musls_description.numerics.code_cache import CODE, NATIVE, CodeTarget, compiled_files


@dataclass(frozen=True)
class Work:
    """Something that compiles what it needs.

    Attributes:
        what: Description in words.
        words: Words after `musls`; "{out}" stands for a folder of its own.
        python: Python code instead of them.
    """

    what: str
    words: str = ""
    python: str = ""


_LEARNING = """
import gymnasium
import musls.learning
import numpy as np
from musls_control.controllers.learned import ActionLevel
for level in ActionLevel:
    envs = gymnasium.make_vec("musls/Transport-v0", num_envs=2, level=level)
    envs.reset(seed=0)
    envs.step(np.zeros(envs.action_space.shape, envs.action_space.dtype))
"""

WORK = (
    Work("cables of rigid links", "fly circle --out {out}/circle"),
    Work("replay", "replay {out}/circle --out {out}/replay"),
    Work("massless cables", "fly hold --set cable_model=massless --out {out}/massless"),
    Work("elastic cables", "fly engage_elastic --out {out}/elastic"),
    Work("elastic cables with a load law", "fly shm_elastic --out {out}/shm_elastic"),
    Work("a load that is flown through a gate", "fly gate --out {out}/gate"),
    Work("the load's controller and estimator", "fly circle_payload --out {out}/payload"),
    Work(
        "feedback of the cables' directions, drones kept apart",
        "fly circle_payload --set controller.feedback=directions --set controller.allocation=qp"
        " --out {out}/directions",
    ),
    Work("drones that are lost", "fly quad_survives --out {out}/survives"),
    Work("wind", "fly wind --out {out}/wind"),
    Work("winches", "fly winch_delivery --out {out}/winches"),
    Work("rigs", "fly cdpr_reel --out {out}/rig"),
    Work("check", "check circle --out {out}/check"),
    Work("studies of many worlds", "montecarlo hold --worlds 4 --worst 0 --out {out}/worlds"),
    Work("drones that are tilted through a gate", "fly tilted_gate --out {out}/tilted"),
    Work("RotorTM's controller", "fly rotortm_cables_circle6 --out {out}/rotortm"),
    Work("the same with drones fixed to the load", "fly rotortm_rods_circle6 --out {out}/rods"),
    Work("a parcel that is hooked up and let go", "fly delivery --out {out}/delivery"),
    Work("a slope", "fly slope --out {out}/slope"),
    Work("environments for learning", python=_LEARNING),
)
"""Parts to compile, in this order; each uses what the parts before it have compiled."""


@dataclass(frozen=True)
class Done:
    """A piece of work that is done.

    Attributes:
        what: Description in words.
        seconds: Time that it took.
        compiled: Number of functions that it compiled.
    """

    what: str
    seconds: float
    compiled: int


def precompile(
    target: str, into: Path | None, done: Callable[[Done], None] = lambda _: None
) -> CodeTarget:
    """Compile what flights need.

    Args:
        target: Processor, see `code_cache.TARGETS`, or "native".
        into: New folder, for `MUSLS_COMPILED`; None for the cache of this account.
        done: Told each piece of work that is done.

    Raises:
        ConfigError: The folder is there already, or code for another processor has no folder.
        MuslsError: A piece of work failed; the folder is not made then.
    """
    made_for = CodeTarget.here(target)
    if into is None:
        if target != NATIVE:
            raise ConfigError(f"--target {target} needs --into: name a folder for the code")
        _work({}, None, done)
        return made_for
    if into.exists():
        raise ConfigError(f"--into {into}: is there already: name a new folder")
    if obstacle := made_for.obstacle():
        raise ConfigError(f"--target {target}: {obstacle}, so the code cannot be tried here")
    with writing(into):
        into.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=into.parent, prefix=f".{into.name}-") as beside:
            folder = Path(beside) / into.name
            (folder / CODE).mkdir(parents=True)
            own = {"NUMBA_CACHE_DIR": str((folder / CODE).absolute()), "MUSLS_COMPILED": ""}
            _work(made_for.environment() | own, folder / CODE, done)
            made_for.write(folder)
            folder.rename(into)
    return made_for


_SETUP = """\
[metadata]
name = musls-compiled
version = {version}
description = Compiled code of musls {version} for {processor}

[options]
packages = musls_compiled
install_requires =
    musls == {version}
    numba == {numba}

[options.package_data]
musls_compiled = compiled.json, {code}/**

[bdist_wheel]
python_tag = {tag}
plat_name = {platform}
"""


def write_wheel(folder: Path, into: Path) -> Path:
    """Write the wheel musls-compiled of a folder that `precompile` made; returns its file.

    It is for this version of musls, Python and numba: pip takes no other one.

    Raises:
        MuslsError: The wheel could not be built.
    """
    target = CodeTarget.read(folder)
    platform = f"manylinux_2_17_{target.machine}" if target.system == "Linux" else "any"
    with tempfile.TemporaryDirectory() as beside:
        project = Path(beside)
        shutil.copytree(folder, project / "musls_compiled")
        (project / "musls_compiled" / "__init__.py").touch()
        (project / "pyproject.toml").write_text(
            '[build-system]\nrequires = ["setuptools"]\n', encoding="utf-8"
        )
        tag = target.python.replace("cpython-", "cp")
        text = _SETUP.format(
            version=VERSION,
            processor=target.processor,
            numba=target.numba,
            code=CODE,
            tag=tag,
            platform=platform,
        )
        (project / "setup.cfg").write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", beside, beside]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(project.glob("musls_compiled-*.whl"))
        if process.returncode != 0 or not wheels:
            last = (process.stderr.strip() or "pip wheel wrote none").splitlines()[-1]
            raise MuslsError(f"the wheel of {folder} could not be built: {last}")
        into.mkdir(parents=True, exist_ok=True)
        return Path(shutil.move(str(wheels[0]), str(into / wheels[0].name)))


def _work(own: Mapping[str, str], code: Path | None, report: Callable[[Done], None]) -> None:
    """Do all the work with environment variables; `code`: folder in which code is counted."""
    environment = {**os.environ, **own}
    with tempfile.TemporaryDirectory() as out:
        for work in WORK:
            begun_s = time.monotonic()
            before = compiled_files(code)
            words = work.words.format(out=out).split()
            what = ["-c", work.python] if work.python else ["-m", "musls", *words]
            command = [sys.executable, *what]
            process = subprocess.run(
                command, env=environment, cwd=out, capture_output=True, text=True, check=False
            )
            if process.returncode != 0:
                last = (process.stderr.strip() or "no message").splitlines()[-1]
                raise MuslsError(f"compiling {work.what} failed: {last}")
            report(Done(work.what, time.monotonic() - begun_s, compiled_files(code) - before))
