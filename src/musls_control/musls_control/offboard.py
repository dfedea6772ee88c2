"""PX4's offboard protocol from the side of the companion computer, without ROS.

PX4 wants a stream of OffboardControlMode for a second before it accepts the mode, and leaves it
after COM_OF_LOSS_T without one. Times are those of the vehicle's clock (simulated or not).

Instance i (from 1; PX4's own numbering begins with 0, which has no namespace) has the namespace
`px4_i` and the MAVLink system id i + 1. A message of version v > 0 has `_v` and its version
behind the topic's name (PX4 v1.16 and later).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from musls_description.errors import ConfigError

Array = NDArray[np.float64]

ARMING_STATE_ARMED = 2
NAVIGATION_STATE_OFFBOARD = 14
NAVIGATION_STATE_LAND = 18
COMMAND_LAND = 21
COMMAND_SET_MODE = 176
COMMAND_ARM_DISARM = 400
CUSTOM_MODE_ENABLED = 1.0
MAIN_MODE_OFFBOARD = 6.0
NEW_FLIGHT_S = 2.0
"""Silence of the formation after which its set-points mean another flight."""


_NAMES = {COMMAND_LAND: "land", COMMAND_SET_MODE: "take offboard mode", COMMAND_ARM_DISARM: "arm"}


class Phase(str, Enum):
    """Phase of a drone in the offboard protocol."""

    WAITING = "waiting for the vehicle"
    IDLE = "idle"
    STREAMING = "streaming"
    TAKING_MODE = "taking offboard mode"
    ARMING = "arming"
    FLYING = "flying"
    HOLDING = "holding: no set-points"
    RELEASED = "released: the vehicle left offboard mode"
    LANDED = "landed"
    FAILED = "failed"


@dataclass(frozen=True)
class OffboardSettings:
    """Times and limits of the protocol.

    Attributes:
        stream_before_mode_s: Stream of set-points before the mode is asked for.
        retry_s: Time between two tries of a command.
        tries: Tries of a command before giving up.
        setpoint_timeout_s: Silence of the formation after which the drone holds its place.
        status_timeout_s: Silence of a vehicle on the ground after which it counts as gone.
        heartbeat_s: Longest time between two heartbeats.
        auto_arm: Take the mode and arm; otherwise stream only and leave both to the pilot.
    """

    stream_before_mode_s: float = 1.0
    retry_s: float = 0.5
    tries: int = 20
    setpoint_timeout_s: float = 0.5
    status_timeout_s: float = 3.0
    heartbeat_s: float = 0.1
    auto_arm: bool = True


@dataclass(frozen=True)
class Setpoint:
    """Set-point of a drone, ENU; NaN means "not given".

    Attributes:
        position_enu_m: (3,).
        velocity_enu_m_s: (3,).
        acceleration_enu_m_s2: What a controller asks for instead of place and velocity, (3,); these
            hold the drone when the controller falls silent.
    """

    position_enu_m: Array
    velocity_enu_m_s: Array
    yaw_enu_rad: float
    acceleration_enu_m_s2: Array | None = None


@dataclass(frozen=True)
class Command:
    """A VehicleCommand to send.

    Attributes:
        number: MAV_CMD.
    """

    number: int
    param1: float = 0.0
    param2: float = 0.0


@dataclass
class _Try:
    """A command under way."""

    at_s: float = -np.inf
    count: int = 0


@dataclass
class OffboardSession:
    """Protocol state of one drone.

    Attributes:
        setpoint: What was last asked for; None before.
        reason: Why a command failed.
        land: Set to have PX4 land in its own land mode, from wherever it flies.
    """

    settings: OffboardSettings = field(default_factory=OffboardSettings)
    phase: Phase = Phase.WAITING
    setpoint: Setpoint | None = None
    reason: str = ""
    land: bool = False
    _stream_since_s: float = np.inf
    _stream_s: float = -np.inf
    _status_s: float = -np.inf
    _armed: bool = False
    _offboard: bool = False
    _flown: bool = False
    _sent_s: float = -np.inf
    _try: _Try = field(default_factory=_Try)
    _result: int | None = None

    def on_status(self, time_s: float, arming_state: int, nav_state: int) -> None:
        """Take note of a VehicleStatus."""
        self._status_s = time_s
        self._armed = arming_state == ARMING_STATE_ARMED
        self._offboard = nav_state == NAVIGATION_STATE_OFFBOARD
        if not self._armed or nav_state == NAVIGATION_STATE_LAND:
            self.land = False

    def on_ack(self, command: int, result: int) -> None:
        """Take note of a VehicleCommandAck."""
        if command in (COMMAND_LAND, COMMAND_SET_MODE, COMMAND_ARM_DISARM):
            self._result = result

    def on_setpoint(self, time_s: float, setpoint: Setpoint) -> None:
        """Take a set-point of the formation."""
        if self._silent(time_s):
            self._stream_since_s = time_s
        self._stream_s = time_s
        self.setpoint = setpoint

    def heard(self, time_s: float) -> bool:
        """Whether the vehicle's status comes."""
        return time_s - self._status_s <= self.settings.status_timeout_s

    @property
    def may_fly(self) -> bool:
        """Whether a command to land can be for this vehicle: it was heard at least once."""
        return np.isfinite(self._status_s)

    def heartbeat_due(self, time_s: float) -> bool:
        """Whether heartbeat and set-point have to be sent though none came from the formation."""
        return self.setpoint is not None and time_s - self._sent_s >= self.settings.heartbeat_s

    def sent(self, time_s: float) -> None:
        """Take note that heartbeat and set-point were sent."""
        self._sent_s = time_s

    def step(self, time_s: float) -> Command | None:
        """Advance the protocol; returns a command to send now, if any."""
        before = self.phase
        self.phase = self._next_phase(time_s)
        if self.phase is not before:
            self._try, self._result, self.reason = _Try(), None, ""
        if self.phase is Phase.TAKING_MODE:
            return self._tried(
                time_s, Command(COMMAND_SET_MODE, CUSTOM_MODE_ENABLED, MAIN_MODE_OFFBOARD)
            )
        if self.phase is Phase.ARMING:
            return self._tried(time_s, Command(COMMAND_ARM_DISARM, 1.0))
        if self.land:
            return self._tried(time_s, Command(COMMAND_LAND))
        return None

    def _next_phase(self, time_s: float) -> Phase:
        if self.phase in (Phase.LANDED, Phase.FAILED):
            if time_s - self._stream_s < NEW_FLIGHT_S:
                return self.phase
            self._flown = False
        if self._flown:  # a drone that is not heard may still hear
            return self._phase_in_flight(time_s)
        if time_s - self._status_s > self.settings.status_timeout_s:
            return Phase.WAITING
        if self._silent(time_s):
            return Phase.IDLE
        if self._armed and self._offboard:
            self._flown = True
            return Phase.FLYING
        streamed_s = time_s - self._stream_since_s
        if not self.settings.auto_arm or streamed_s < self.settings.stream_before_mode_s:
            return Phase.STREAMING
        return Phase.ARMING if self._offboard else Phase.TAKING_MODE

    def _phase_in_flight(self, time_s: float) -> Phase:
        if not self._armed:
            return Phase.LANDED
        if not self._offboard:
            return Phase.RELEASED
        return Phase.HOLDING if self._silent(time_s) else Phase.FLYING

    def _silent(self, time_s: float) -> bool:
        return time_s - self._stream_s > self.settings.setpoint_timeout_s

    def _tried(self, time_s: float, command: Command) -> Command | None:
        if time_s - self._try.at_s < self.settings.retry_s:
            return None
        if self._try.count == self.settings.tries:
            answer = "no answer" if self._result is None else f"result {self._result}"
            self.reason = f"could not {_NAMES[command.number]}: {self._try.count} tries, {answer}"
            if command.number == COMMAND_LAND:  # it flies: the stream must not end
                self.land = False
            else:
                self.phase = Phase.FAILED
            return None
        self._try.at_s = time_s
        self._try.count += 1
        return command


# ---------- Names of PX4's topics, and which vehicle is meant

FIRST_INSTANCE, LAST_INSTANCE = 1, 253


def px4_namespace(instance: int) -> str:
    """ROS namespace of an instance.

    Raises:
        ConfigError: The instance is not in 1 to 253 (system ids end at 254).
    """
    if not FIRST_INSTANCE <= instance <= LAST_INSTANCE:
        raise ConfigError(
            f"PX4 instance {instance}: must be {FIRST_INSTANCE} to {LAST_INSTANCE} "
            "(instance 0 has no namespace of its own)"
        )
    return f"px4_{instance}"


def target_system(instance: int) -> int:
    """MAVLink system id of an instance."""
    return instance + 1


def px4_topic(instance: int, direction: str, name: str, message: type) -> str:
    """Full name of a topic "in" to PX4 or "out" of it, such as "vehicle_status".

    The type's MESSAGE_VERSION makes the suffix.

    Raises:
        ConfigError: See `px4_namespace`.
    """
    version = getattr(message, "MESSAGE_VERSION", 0)
    suffix = f"_v{version}" if version else ""
    return f"/{px4_namespace(instance)}/fmu/{direction}/{name}{suffix}"
