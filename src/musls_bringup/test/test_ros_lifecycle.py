"""Nodes end with the process that started them; leftovers of an earlier run."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ros_probe import needs_ros

from musls_bringup.cli import main
from musls_bringup.ros import processes
from musls_control.child_processes import VARIABLE

SLEEP = (
    "import signal, time; signal.signal(signal.SIGINT, signal.{}); print('ready', flush=True); "
    "time.sleep(300)"
)


def gone(pid, within_s=60.0):
    end = time.monotonic() + within_s
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        time.sleep(0.05)
    return not Path(f"/proc/{pid}").exists()


def test_a_process_is_told_when_its_parent_is_killed(tmp_path):
    """SIGKILL of `musls ros fly` cannot be caught: the kernel tells its nodes."""
    child = (
        "import time; from musls_control.child_processes import end_with_parent\n"
        "try:\n    end_with_parent(); print('ready', flush=True); time.sleep(60)\n"
        f"except KeyboardInterrupt:\n    open('{tmp_path}/end', 'w')\n"
    )
    code = (
        "import os, subprocess, sys, time\n"
        f"env = os.environ | {{'{VARIABLE}': str(os.getpid())}}\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], env=env,\n"
        "    stdout=subprocess.PIPE, start_new_session=True)\n"
        "child.stdout.readline(); print(child.pid, flush=True); time.sleep(60)\n"
    )
    own = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=own)
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    end = time.monotonic() + 60.0
    while not (tmp_path / "end").exists() and time.monotonic() < end:
        time.sleep(0.02)
    assert (tmp_path / "end").exists(), f"process {pid} was not told"


@pytest.mark.parametrize("hangs", ["while True: pass", "time.sleep(300)"])
def test_a_node_that_hangs_is_killed_after_its_parent(hangs):
    """It does not hear the signal, as one that waits in a library does not."""
    child = (
        "import signal, time; from musls_control import child_processes\n"
        "child_processes.STOP_S = child_processes.LOOK_S = 0.2\n"
        "signal.signal(signal.SIGINT, lambda *_: print('told', flush=True))\n"
        f"child_processes.end_with_parent(); print('ready', flush=True)\n{hangs}\n"
    )
    code = (
        "import os, subprocess, sys, time\n"
        f"env = os.environ | {{'{VARIABLE}': str(os.getpid())}}\n"
        f"child = subprocess.Popen([sys.executable, '-c', {child!r}], env=env)\n"
        "print(child.pid, flush=True); time.sleep(60)\n"
    )
    own = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=own)
    pid = int(parent.stdout.readline())
    assert parent.stdout.readline() == b"ready\n"
    time.sleep(1.0)  # nobody kills it while its parent lives
    assert Path(f"/proc/{pid}").exists()
    parent.kill()
    assert parent.stdout.readline() == b"told\n"
    parent.communicate()  # until the child has closed it, too
    assert gone(pid)


def test_a_node_that_is_told_to_end_while_it_starts_says_nothing():
    """Modules are imported for seconds; then the launch of another node may have failed."""
    code = "import musls_control.nodes, os, signal; os.kill(os.getpid(), signal.SIGINT); print(1)"
    own = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), VARIABLE: str(os.getpid())}
    ended = subprocess.run([sys.executable, "-c", code], env=own, capture_output=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


@needs_ros()
def test_a_parameter_file_that_cannot_be_read_is_one_line(tmp_path, domain):
    file = tmp_path / "params.yaml"
    file.write_text("/offboard:\n  retry_s: 1.0\n")
    command = [sys.executable, "-m", "musls_control.nodes.offboard"]
    own = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        [*command, "--ros-args", "--params-file", str(file)],
        env=own,
        capture_output=True,
        text=True,
    )
    line = ended.stderr.strip().split("\n")[-1]
    assert ended.returncode == 2 and "Traceback" not in ended.stderr
    assert line.startswith("musls: error: ") and f"'--params-file {file}'" in line


@needs_ros()
@pytest.mark.slow
def test_managed_nodes_step_when_they_are_activated(nodes, probe, ground):
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import ChangeState, GetState
    from std_srvs.srv import Trigger

    def change(node, what):
        ask = ChangeState.Request(transition=Transition(id=what))
        return probe.call(ChangeState, f"/{node}/change_state", ask).success

    nodes.start(processes.simulator(ground, realtime=True))
    nodes.start(processes.offboard(3, managed=True))
    nodes.start(processes.formation(ground, managed=True))
    answer = probe.call(Trigger, "/formation/start", Trigger.Request(), again=True)
    assert not answer.success and "not active" in answer.message
    assert probe.until(lambda: len(probe.statuses) == 3) and probe.phases == {None}
    for node in ("offboard", "formation"):
        assert change(node, Transition.TRANSITION_CONFIGURE)
        assert change(node, Transition.TRANSITION_ACTIVATE)
    assert probe.until(lambda: probe.phases == {"idle"})
    assert probe.call(Trigger, "/formation/start", Trigger.Request(), again=True).success
    assert probe.until(lambda: probe.text("/formation/state") == "arming")
    for node in ("offboard", "formation"):
        assert not change(node, Transition.TRANSITION_DEACTIVATE)
        assert not change(node, Transition.TRANSITION_ACTIVE_SHUTDOWN)
        assert not change(node, Transition.TRANSITION_CLEANUP)  # active nodes have no such one
        answer = probe.call(GetState, f"/{node}/get_state", GetState.Request(), again=True)
        assert answer.current_state.label == "active"
        assert "not shut down: " in nodes.log(node) and "refused" in nodes.log(node)
    assert probe.until(lambda: probe.phases == {"flying"})


@needs_ros()
@pytest.mark.slow
def test_a_node_that_is_shut_down_on_the_ground_does_nothing_more(nodes, probe, ground):
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import ChangeState
    from std_srvs.srv import Trigger

    nodes.start(processes.formation(ground, use_sim_time=False))
    ask = ChangeState.Request(transition=Transition(id=Transition.TRANSITION_ACTIVE_SHUTDOWN))
    assert probe.call(ChangeState, "/formation/change_state", ask).success
    answer = probe.call(Trigger, "/formation/start", Trigger.Request(), again=True)
    assert not answer.success and "not active" in answer.message


def stray(folder, reaction="default_int_handler"):
    """A process that looks like a node of a run that is gone."""
    program = folder / "lib" / "musls_sim" / "recorder"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!{sys.executable}\n{SLEEP.format(reaction)}\n")
    program.chmod(0o755)
    process = subprocess.Popen(
        [program], env=os.environ | {VARIABLE: "1"}, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    process.stdout.close()
    return process


def ours(process):
    return [node for node in processes.running_nodes() if node.pid == process.pid]


@pytest.mark.parametrize(("reaction", "killed"), [("default_int_handler", 0), ("SIG_IGN", 1)])
def test_leftovers_are_found_named_and_ended(tmp_path, reaction, killed):
    process = stray(tmp_path, reaction)
    try:
        (node,) = ours(process)
        assert (node.name, node.orphan) == ("recorder", True)
        assert len(processes.end([node], patience_s=1.0 if killed else 60.0)) == killed
        assert process.wait(60.0) != 0
        assert ours(process) == []
    finally:
        process.kill()


def test_stop_ends_only_what_is_left_over(tmp_path, capsys, monkeypatch):
    process = stray(tmp_path)
    try:
        (node,) = ours(process)
        running = processes.NodeProcess("embedded_sim", os.getpid(), orphan=False)
        monkeypatch.setattr(processes, "running_nodes", lambda: [node, running])
        assert main(["ros", "stop"]) == 0
        assert capsys.readouterr().out == f"ended: recorder (process {process.pid})\n"
        monkeypatch.setattr(processes, "running_nodes", lambda: [running])
        assert main(["ros", "stop"]) == 0
        assert "no node is left" in capsys.readouterr().out
    finally:
        process.kill()
        process.wait()


@needs_ros()
@pytest.mark.slow
def test_a_killed_flight_leaves_no_node_and_a_whole_bag(domain, tmp_path):
    out = tmp_path / "flight_killed"
    command = [sys.executable, "-c", "import sys; from musls_bringup.cli import main; main()"]
    words = ["ros", "fly", "hold", "--set", "system.cables.links=3", "--no-report"]
    own = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    flight = subprocess.Popen(
        [*command, *words, "--realtime", "--out", str(out)], env=own, start_new_session=True
    )
    children = Path(f"/proc/{flight.pid}/task/{flight.pid}/children")
    end = time.monotonic() + 400.0
    said = out / "logs" / "formation.log"
    while time.monotonic() < end and not (said.exists() and "stage " in said.read_text()):
        time.sleep(0.1)
    pids = [int(pid) for pid in children.read_text().split()]
    assert len(pids) == 4
    time.sleep(2.0)
    flight.send_signal(signal.SIGKILL)
    flight.wait()
    assert all(gone(pid) for pid in pids)
    assert (out / "bag" / "metadata.yaml").is_file()  # the recorder could finish
