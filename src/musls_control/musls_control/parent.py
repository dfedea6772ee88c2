"""End a process when the process that started it has ended, for any reason."""

from __future__ import annotations

import ctypes
import os
import signal

VARIABLE = "MUSLS_PARENT"
"""Environment variable with the process id of who started a node and wants it to end with him."""

_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Get SIGINT when the process named in MUSLS_PARENT ends; at once if it has ended already.

    After SIGKILL it cannot end what it started. SIGINT lets a recorder finish its bag.
    """
    wanted = os.environ.get(VARIABLE, "")
    if not wanted.isdigit():
        return
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
    except (OSError, AttributeError):  # not Linux
        return
    if os.getppid() != int(wanted):
        os.kill(os.getpid(), signal.SIGINT)
