"""The script ./musls, with this Python in the place of the .venv that it would make."""

import hashlib
import os
import shutil
import subprocess
import sys
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
