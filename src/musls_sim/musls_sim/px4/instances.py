"""Free PX4 instance numbers: claimed by their ports, so that runs side by side do not collide."""

from __future__ import annotations

import fcntl
import os
import socket
from contextlib import suppress
from dataclasses import dataclass

from musls_sim.px4.errors import Px4Error

HIL_PORT = 4560
API_PORT = 14540
PX4_API_PORT = 14580
PX4_GCS_PORT = 18570
LAST_INSTANCE = 250
"""System identifiers are instance numbers plus one, and one byte."""

LOCK_FILE = "/tmp/px4_lock-{}"
"""What a running PX4 holds a lock on."""

SOCKET_FILE = "/tmp/px4-sock-{}"
"""Where its programs speak to it. It stays behind, and another user's cannot be replaced."""


@dataclass
class Instance:
    """One claimed instance.

    Attributes:
        number: PX4's instance number, from 1.
        listener: Listens on 127.0.0.1 for PX4's simulator link (TCP).
        api: Bound on 127.0.0.1 where PX4 sends its MAVLink to (UDP).
    """

    number: int
    listener: socket.socket
    api: socket.socket

    @property
    def system_id(self) -> int:
        """MAVLink system identifier."""
        return self.number + 1

    def remove_socket(self) -> None:
        """Remove what an ended PX4 leaves behind; while the ports are held, so nobody else's."""
        with suppress(OSError):
            os.unlink(SOCKET_FILE.format(self.number))

    def close(self) -> None:
        """Free the ports."""
        self.listener.close()
        self.api.close()


def claim_instances(count: int) -> list[Instance]:
    """Claim the lowest free instances.

    The listening sockets are the claim: two processes cannot hold the same.

    Raises:
        Px4Error: There are not that many free.
    """
    claimed: list[Instance] = []
    for number in range(1, LAST_INSTANCE + 1):
        if len(claimed) == count:
            break
        instance = _claim(number)
        if instance is not None:
            claimed.append(instance)
    if len(claimed) < count:
        for instance in claimed:
            instance.close()
        raise Px4Error(
            f"{count} free PX4 instances are needed, only {len(claimed)} of 1 to {LAST_INSTANCE} "
            f"have their ports free (TCP {HIL_PORT} + i, UDP {API_PORT} + i, {PX4_API_PORT} + i, "
            f"{PX4_GCS_PORT} + i)"
        )
    return claimed


def _claim(number: int) -> Instance | None:
    """Claim one instance, or None if anything of it is in use."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    api = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        # Connections of an ended run linger; without this their port counts as in use.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", HIL_PORT + number))
        listener.listen(1)
        api.bind(("127.0.0.1", API_PORT + number))
        for port in (PX4_API_PORT, PX4_GCS_PORT):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                probe.bind(("", port + number))  # PX4 binds all interfaces
        if _running(number) or _of_somebody_else(SOCKET_FILE.format(number)):
            raise OSError
    except OSError:
        listener.close()
        api.close()
        return None
    return Instance(number, listener, api)


def _of_somebody_else(path: str) -> bool:
    """Whether a file is there that is not ours."""
    try:
        return os.lstat(path).st_uid != os.geteuid()
    except OSError:
        return False


def _running(number: int) -> bool:
    """Whether a PX4 of this instance number runs, be it without any of our ports."""
    try:
        lock = os.open(LOCK_FILE.format(number), os.O_RDWR)
    except FileNotFoundError:
        return False
    except OSError:  # another user's: it cannot be locked by our PX4 either
        return True
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(lock)
