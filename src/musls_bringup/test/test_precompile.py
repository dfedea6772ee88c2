"""`musls compile`: flights on another machine compile nothing, and what it refuses."""

import os
import subprocess
import sys

import pytest

from musls_bringup.cli.app import run
from musls_bringup.flight import precompile as precompiled
from musls_description.config.errors import MuslsError
from musls_description.numerics.code_cache import CODE, TARGETS, CodeTarget, compiled_files

FLY = ("fly", "hold", "--set", "cable_model=massless", "--no-report", "--quiet")
HOLD = precompiled.Work("massless cables", f"{' '.join(FLY)} --out {{out}}/massless")
HERE = [name for name in TARGETS if not CodeTarget.here(name).obstacle()]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["native", *HERE[-1:]])
def test_a_flight_with_code_from_elsewhere_compiles_nothing(tmp_path, monkeypatch, target):
    monkeypatch.setattr(precompiled, "WORK", (HOLD,))
    folder, done = tmp_path / "made" / "compiled", []
    made_for = precompiled.precompile(target, folder, done.append)
    assert (target == "native") == (made_for.processor not in TARGETS)
    assert done[0].compiled == compiled_files(folder / CODE) > 100
    elsewhere = folder.rename(tmp_path / "elsewhere")
    own = tmp_path / "cache"
    own.mkdir()
    variables = {"MUSLS_COMPILED": str(elsewhere), "NUMBA_CACHE_DIR": str(own)}
    flown = subprocess.run(
        [sys.executable, "-m", "musls", *FLY, "--out", str(tmp_path / "run")],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert flown.returncode == 0 and "compiled code" not in flown.stderr
    made = {file.name: file.read_bytes() for file in (elsewhere / CODE).rglob("*.nbc")}
    copied = {file.name: file.read_bytes() for file in own.rglob("*.nbc")}
    assert len(copied) > 30 and copied.items() <= made.items()


@pytest.mark.slow
def test_the_wheel_is_for_this_python_alone(tmp_path):
    folder = tmp_path / "compiled"
    (folder / CODE / "module-0").mkdir(parents=True)
    (folder / CODE / "module-0" / "x.nbc").touch()
    target = CodeTarget.here()
    target.write(folder)
    wheel = precompiled.write_wheel(folder, tmp_path / "dist")
    tag = target.python.replace("cpython-", "cp")
    assert wheel.name.startswith(f"musls_compiled-{precompiled.VERSION}-{tag}-")
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target"]
    subprocess.run([*install, str(tmp_path / "site"), str(wheel)], check=True)
    package = tmp_path / "site" / "musls_compiled"
    assert CodeTarget.read(package) == target
    assert (package / CODE / "module-0" / "x.nbc").is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--target", "x86-64-v9", "--into", "code"), "--target x86-64-v9: did you mean"),
        (("--target", "x86-64-v2"), "--target x86-64-v2 needs --into: name a folder"),
        (("--wheel",), "--wheel needs --into"),
        (("--into", "."), "--into .: is there already: name a new folder"),
        (("--into", "/dev/null/code"), "/dev/null/code cannot be written"),
    ],
)
def test_what_cannot_be_compiled_is_one_line(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert run(["compile", *words]) == 2
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_work_that_fails_leaves_no_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(precompiled, "WORK", (precompiled.Work("nothing", "fly no_such_flight"),))
    with pytest.raises(MuslsError, match=r"compiling nothing failed: .*no_such_flight"):
        precompiled.precompile("native", tmp_path / "compiled")
    assert not list(tmp_path.iterdir())
