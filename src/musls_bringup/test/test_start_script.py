"""The script ./musls, with this Python in the place of the .venv that it would make."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

if not (ROOT / "musls").is_file():
    pytest.skip("not in a checkout", allow_module_level=True)


@pytest.fixture
def script(tmp_path):
    """A copy of the script whose .venv is ready, but for what tests, ROS and viewer need."""
    for name in ("musls", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    binaries = tmp_path / ".venv" / "bin"
    binaries.mkdir(parents=True)
    (binaries / "python").symlink_to(sys.executable)
    paths = [path for path in sys.path if path]
    (binaries / "musls").write_text(
        f"#!{sys.executable}\nimport sys; sys.path += {paths!r}\n"
        "from musls_bringup.cli import main\nsys.exit(main())\n"
    )
    (binaries / "musls").chmod(0o755)
    texts = [(tmp_path / name).read_bytes() for name in ("pyproject.toml", "constraints.txt")]
    (tmp_path / ".venv" / ".musls-stamp").write_text(
        f"{tmp_path.resolve()} {os.path.realpath(sys.executable)}\n"
        f"{hashlib.sha256(b''.join(texts)).hexdigest()}  -\n"
    )
    return tmp_path / "musls"


def started(script, *args, **more):
    env = {k: v for k, v in os.environ.items() if k not in ("ROS_DISTRO", "MUSLS_PYTHON")}
    return subprocess.run(
        [script, *args], capture_output=True, text=True, cwd=script.parent, env=env | more
    )


def test_another_numpy_and_yaml_on_pythonpath_do_not_matter(script):
    other = script.parent / "other"
    other.mkdir()
    for name in ("numpy", "yaml"):
        (other / f"{name}.py").write_text("raise ImportError('of somebody else')\n")
    ended = started(script, "list", "systems", PYTHONPATH=str(other))
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == "" and "x500_trio" in ended.stdout


@pytest.mark.parametrize(
    "args",
    [["ros", "--help"], ["ros"], ["ros", "fly", "-h"], ["test", "--help"], ["view", "--help"]],
    ids=" ".join,
)
def test_help_starts_no_installation(script, args):
    ended = started(script, *args)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "Usage: musls" in ended.stdout


# A Python that does next to nothing, and at one step of the installation takes for ever.
PYTHON = """\
#!/bin/sh
case $* in
*ensurepip*) echo 3.11.0; exit ;;
*"-m venv"*) mkdir -p .venv/bin; cp "$0" .venv/bin/python ;;
*"-m pip"*) printf '#!/bin/sh\\necho started\\n' >.venv/bin/musls; chmod +x .venv/bin/musls ;;
esac
echo "$*" >>steps
[ "$(wc -l <steps)" != "$(cat hold)" ] || { touch held; exec sleep 60; }
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("step", [1, 2, 4])
def test_an_interrupted_installation_goes_on_with_the_next_start(tmp_path, number, step):
    for name in ("musls", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    (tmp_path / "hold").write_text(str(step))
    env = {"MUSLS_PYTHON": str(tmp_path / "python")}
    with subprocess.Popen(
        [tmp_path / "musls", "list"], cwd=tmp_path, env=os.environ | env, start_new_session=True,
        stderr=subprocess.PIPE, text=True,
    ) as first:  # fmt: skip
        while not (tmp_path / "held").exists():
            assert first.poll() is None
            time.sleep(0.01)
        os.killpg(first.pid, number)
        said = first.stderr.read()
    assert first.returncode == (130 if number == signal.SIGINT else -number)
    assert ("interrupted; the next start goes on" in said) == (number == signal.SIGINT)
    ended = started(tmp_path / "musls", "list", **env)
    assert (ended.returncode, ended.stdout) == (0, "started\n"), ended.stderr
    assert "failed" not in said + ended.stderr


@pytest.mark.parametrize("moved", [False, True])
def test_a_venv_whose_removal_was_interrupted_is_made_again(tmp_path, moved):
    """It was moved away before; in its own place it is never without its mark."""
    test_an_interrupted_installation_goes_on_with_the_next_start(tmp_path, signal.SIGKILL, 1)
    (tmp_path / ".venv" / ".musls-stamp").unlink()
    if moved:
        shutil.move(tmp_path / ".venv", tmp_path / ".venv.partial")
        (tmp_path / ".venv.partial" / ".musls-made").unlink()
    ended = started(tmp_path / "musls", "list", MUSLS_PYTHON=str(tmp_path / "python"))
    assert (ended.returncode, ended.stdout) == (0, "started\n"), ended.stderr
    assert not (tmp_path / ".venv.partial").exists()
