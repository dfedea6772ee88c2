"""What PX4's Gazebo bridges tell the motors, heard from Gazebo's transport in this process."""

from __future__ import annotations

import importlib
import struct
from collections.abc import Sequence
from threading import Condition
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_description.errors import ConfigError

Array = NDArray[np.float64]

TOPIC = "/{}/command/motor_speed"
MESSAGE = "gz.msgs.Actuators"

_VARINT, _DOUBLE, _BYTES, _FLOAT = 0, 1, 2, 5
_VELOCITY = 3
"""Number of the field `velocity` of gz.msgs.Actuators."""


def velocities(message: bytes) -> list[float]:
    """Field `velocity` of a gz.msgs.Actuators [rad/s], read without protobuf's Python package.

    Raises:
        ValueError: It is no such message.
    """
    found: list[float] = []
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        size = {_DOUBLE: 8, _FLOAT: 4}.get(kind, 0)
        if kind == _BYTES:
            size, at = _varint(message, at)
        elif kind == _VARINT:
            _, at = _varint(message, at)
        elif not size:
            raise ValueError(f"no protobuf message: wire type {kind}")
        if at + size > len(message):
            raise ValueError("no protobuf message: it ends within a field")
        if number == _VELOCITY and kind in (_BYTES, _DOUBLE):  # packed, or one by one
            found += struct.unpack(f"<{size // 8}d", message[at : at + size // 8 * 8])
        at += size
    return found


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number of variable length and where the next thing begins."""
    value = shift = 0
    while at < len(message):
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError("no protobuf message: it ends within a number")


class MotorListener:
    """Hears the motor commands of all drones and waits for them.

    Attributes:
        speed_rad_s: Latest commands, (n_drones, n_rotors).
        heard: Whether any command has come, (n_drones,) bool.
    """

    def __init__(self, models: Sequence[str], n_rotors: int) -> None:
        """Subscribe.

        Args:
            models: Name of each drone's model.
            n_rotors: Of each drone.

        Raises:
            ConfigError: Gazebo's Python bindings are missing.
        """
        self.speed_rad_s = np.zeros((len(models), n_rotors))
        self.heard = np.zeros(len(models), dtype=bool)
        self._new = np.zeros(len(models), dtype=bool)
        self._changed = Condition()
        transport = _transport()
        self._node = transport.Node()
        options = transport.SubscribeOptions()
        for i, model in enumerate(models):
            self._node.subscribe_raw(
                TOPIC.format(model), lambda data, _, i=i: self._take(i, data), MESSAGE, options
            )

    def _take(self, index: int, data: bytes) -> None:
        """Called by Gazebo's transport in a thread of its own."""
        speeds = velocities(data)
        with self._changed:
            row = self.speed_rad_s[index]
            row[: len(speeds)] = speeds[: len(row)]
            self.heard[index] = self._new[index] = True
            self._changed.notify()

    def begin(self) -> None:
        """From now on new commands are waited for."""
        with self._changed:
            self._new[:] = False

    def wait(self, patience_s: float, *, running: bool = False) -> list[int]:
        """Wait until a new command of each drone has come.

        Args:
            patience_s: Wall-clock time.
            running: Wait for those only whose motors have been told to run.

        Returns:
            Drones, from 0, whose command has not come.
        """
        deadline = monotonic() + patience_s
        with self._changed:
            while True:
                silent = ~self._new
                if running:
                    silent &= self.speed_rad_s.any(axis=1)
                left = deadline - monotonic()
                if not silent.any() or left <= 0.0:
                    return [int(i) for i in np.flatnonzero(silent)]
                self._changed.wait(left)


def _transport() -> Any:
    try:
        return importlib.import_module("gz.transport13._transport")
    except ImportError as error:
        raise ConfigError(
            "physics.engine = gazebo_px4: the Python bindings of Gazebo Harmonic's transport "
            f"(gz.transport13; Debian and Ubuntu: python3-gz-transport13) are missing ({error})"
        ) from None
