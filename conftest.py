"""Shared by all tests: Ctrl-C in runs in the background, no deadlines, turns at PX4's ports."""

import fcntl
import os
import signal
import tempfile

import pytest
from hypothesis import HealthCheck, settings

# A test run started in the background inherits an ignored SIGINT; some tests press Ctrl-C.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is slower, not wrong; and the first call of a compiled function compiles it.
settings.register_profile("musls", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("musls")

USING_PX4_PORTS = {
    "test_fly_px4",
    "test_px4_binary",
    "test_px4_graph",
    "test_px4_protocol",
    "test_ros_px4",
}


@pytest.fixture(autouse=True)
def one_px4_test_at_a_time(request):
    """PX4's ports are the same for all processes: tests that use them take turns."""
    if request.path.stem not in USING_PX4_PORTS:
        yield
        return
    path = os.path.join(tempfile.gettempdir(), f"musls-px4-tests-{os.getuid()}.lock")
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
