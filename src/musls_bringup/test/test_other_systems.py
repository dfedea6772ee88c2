"""Without what Linux alone has musls is imported and reads scenarios."""

import os
import subprocess
import sys

import pytest

CODE = """
import signal, sys
for name in ("SIGHUP", "SIGALRM"):
    delattr(signal, name)
signal.Signals = [n for n in signal.Signals if n.name not in ("SIGHUP", "SIGALRM")]
import builtins, pathlib
read = pathlib.Path.read_text
def read_text(path, *args, **kwargs):
    if str(path).startswith("/proc"):
        raise FileNotFoundError(path)
    return read(path, *args, **kwargs)
pathlib.Path.read_text = read_text
sys.modules["fcntl"] = None
"""


@pytest.mark.skipif(sys.platform != "linux", reason="takes away what Linux has")
def test_no_import_needs_what_linux_alone_has(tmp_path):
    code = CODE + "import musls; run = musls.load_scenario('circle'); print(run.name)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, cwd=tmp_path
    )
    assert (run.returncode, run.stdout) == (0, "circle\n"), run.stderr
