"""PX4's offboard protocol from the side of the companion computer, without ROS.

PX4 wants a stream of OffboardControlMode for a second before it accepts the mode, and leaves it
after COM_OF_LOSS_T without one. Times are those of the vehicle's clock (simulated or not).

Instance i (from 1; PX4's own numbering begins with 0, which has no namespace) has the namespace
`px4_i` and the MAVLink system id i + 1, if nothing else is given. A message of version v > 0 has
`_v` and its version behind the topic's name (PX4 v1.16 and later).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated

import numpy as np
from pydantic import Field

from musls_description.config.errors import ConfigError
from musls_description.config.schema import spec
from musls_description.numerics.arrays import Array

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
    SILENT = "silent: no status of the vehicle, set-points go on"
    LANDED = "landed"
    FAILED = "failed"


@spec
class OffboardSettings:
    """Times and limits of the protocol.

    Attributes:
        stream_before_mode_s: Stream of set-points before the mode is asked for.
        retry_s: Time between two tries of a command.
        tries: Tries of a command before giving up.
        setpoint_timeout_s: Silence of the formation after which the drone holds its place.
        status_timeout_s: Silence of a vehicle on the ground after which it counts as gone.
        status_age_s: Silence of a vehicle in flight after which it counts as silent; PX4 sends its
            status twice a second.
        heartbeat_s: Longest time between two heartbeats; PX4 needs two a second.
        auto_arm: Take the mode and arm; otherwise stream only and leave both to the pilot.
    """

    stream_before_mode_s: Annotated[float, Field(ge=0.0, le=10.0)] = 1.0
    retry_s: Annotated[float, Field(ge=0.05, le=10.0)] = 0.5
    tries: int = 20
    setpoint_timeout_s: Annotated[float, Field(ge=0.05, le=5.0)] = 0.5
    status_timeout_s: Annotated[float, Field(ge=0.5, le=30.0)] = 3.0
    status_age_s: Annotated[float, Field(ge=0.6, le=30.0)] = 1.5
    heartbeat_s: Annotated[float, Field(ge=0.01, le=0.4)] = 0.1
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
    _tried_s: float = -np.inf
    _tries: int = 0
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
            self._tried_s, self._tries, self._result, self.reason = -np.inf, 0, None, ""
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
        if time_s - self._status_s > self.settings.status_age_s:
            return Phase.SILENT
        if not self._offboard:
            return Phase.RELEASED
        return Phase.HOLDING if self._silent(time_s) else Phase.FLYING

    def _silent(self, time_s: float) -> bool:
        return time_s - self._stream_s > self.settings.setpoint_timeout_s

    def _tried(self, time_s: float, command: Command) -> Command | None:
        if time_s - self._tried_s < self.settings.retry_s:
            return None
        if self._tries == self.settings.tries:
            answer = "no answer" if self._result is None else f"result {self._result}"
            self.reason = f"could not {_NAMES[command.number]}: {self._tries} tries, {answer}"
            if command.number == COMMAND_LAND:  # it flies: the stream must not end
                self.land = False
            else:
                self.phase = Phase.FAILED
            return None
        self._tried_s = time_s
        self._tries += 1
        return command


# ---------- Names of PX4's topics, and which vehicle is meant

FIRST_INSTANCE, LAST_INSTANCE = 1, 253
LAST_SYSTEM = 255


def px4_namespace(instance: int) -> str:
    """ROS namespace of an instance."""
    if not FIRST_INSTANCE <= instance <= LAST_INSTANCE:
        raise ConfigError(
            f"PX4 instance {instance}: must be {FIRST_INSTANCE} to {LAST_INSTANCE} "
            "(instance 0 has no namespace of its own)"
        )
    return f"px4_{instance}"


def target_system(instance: int) -> int:
    """MAVLink system id of an instance."""
    return instance + 1


@dataclass(frozen=True)
class Vehicle:
    """Namespace and system id of a drone's PX4.

    Attributes:
        drone: Number of the drone, from 1.
        namespace: ROS namespace of its DDS client; relative to the node's unless it begins with /.
        system_id: MAV_SYS_ID.
    """

    drone: int
    namespace: str
    system_id: int


def vehicles(
    drones: Sequence[int], namespaces: Sequence[str] = ("",), system_ids: Sequence[int] = (0,)
) -> list[Vehicle]:
    """PX4s of drones; [""] and [0] stand for those of their instances."""
    found = [px4_namespace(i) for i in drones] if list(namespaces) == [""] else list(namespaces)
    ids = [target_system(i) for i in drones] if list(system_ids) == [0] else list(system_ids)
    for name, values in (("drones", drones), ("px4_namespaces", found), ("system_ids", ids)):
        if len(values) != len(drones):
            raise ConfigError(
                f"parameter {name} has {len(values)} values, must have {len(drones)}: one a drone"
            )
        if len(set(values)) != len(values):
            raise ConfigError(
                f"parameter {name} = {list(values)}: each instance may be given only once"
            )
    for name in found:
        if not re.fullmatch(r"/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*", name):
            raise ConfigError(f"parameter px4_namespaces: {name!r} is no namespace of ROS")
    for number in ids:
        if not 1 <= number <= LAST_SYSTEM:
            raise ConfigError(f"parameter system_ids: {number}: must be 1 to {LAST_SYSTEM}")
    return [Vehicle(*row) for row in zip(drones, found, ids, strict=True)]


def px4_topic(vehicle: int | str, direction: str, message: type, name: str = "") -> str:
    """Name of a topic "in" to PX4 or "out" of it, such as "vehicle_status".

    `vehicle`: instance, or namespace. `name` where it is not the type's in small letters; the
    type's MESSAGE_VERSION makes the suffix.
    """
    name = name or re.sub(r"(?<!^)(?=[A-Z])", "_", message.__name__).lower()
    version = getattr(message, "MESSAGE_VERSION", 0)
    suffix = f"_v{version}" if version else ""
    namespace = px4_namespace(vehicle) if isinstance(vehicle, int) else vehicle
    return f"{namespace}/fmu/{direction}/{name}{suffix}"
