"""Worker processes end with the one that started them, in silence, however that ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from musls_control.child_processes import worker_processes
from musls_description.config.errors import MuslsError

PARENT = """\
import os, sys, time
from musls_control.child_processes import worker_processes

if __name__ == "__main__":
    with worker_processes(2) as pool:
        with open(f"/proc/self/task/{os.getpid()}/children") as children:
            print(children.read(), flush=True)
        if sys.argv[1] == "busy":
            for work in [pool.submit(time.sleep, 0.0), pool.submit(time.sleep, 0.0)]:
                work.result()
        waiting = [pool.submit(time.sleep, 600.0) for _ in range(4)]
        print("busy", flush=True)
        waiting[0].result()
"""


def lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("when", ["busy", "starting"])
def test_no_worker_outlives_its_parent(tmp_path, number, when):
    (tmp_path / "parent.py").write_text(PARENT)
    with subprocess.Popen(
        [sys.executable, "parent.py", when], cwd=tmp_path, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as parent:  # fmt: skip
        pids = parent.stdout.readline().split()
        assert len(pids) == 2 and parent.stdout.readline() == "busy\n"
        # As a terminal does it: to all processes of the group.
        (os.killpg if number == signal.SIGINT else os.kill)(parent.pid, number)
        assert parent.wait(120) in (-number, 130, 1)
        until = time.monotonic() + 120.0
        while any(map(lives, pids)):
            assert time.monotonic() < until, "a worker is left"
            time.sleep(0.05)
        said = parent.stderr.read()
    assert said.count("Traceback") == (number == signal.SIGINT), said


def test_a_worker_that_dies_is_one_line():
    with (
        pytest.raises(MuslsError, match="a worker process ended with code 3"),
        worker_processes(1) as pool,
    ):
        pool.submit(os._exit, 3).result()
