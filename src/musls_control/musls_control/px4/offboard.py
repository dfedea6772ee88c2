"""PX4's offboard protocol from the side of the companion computer, without ROS.

PX4 wants a stream of OffboardControlMode for a second before it accepts the mode, and leaves it
after COM_OF_LOSS_T without one. Times are those of the vehicle's clock (simulated or not).

Instance i (from 1; PX4's own numbering begins with 0, which has no namespace) has the namespace
`px4_i` and the MAVLink system id i + 1, if nothing else is given. A message of version v > 0 has
`_v` and its version behind the topic's name (PX4 v1.16 and later).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Annotated

import numpy as np
from pydantic import Field

from musls_description.config.errors import ConfigError
from musls_description.config.schema import spec
from musls_description.numerics.arrays import Array
from musls_description.numerics.vectors import body_z_in_world

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

HEARTBEAT = "offboard/heartbeat"
"""Topic on which the offboard node tells that it lives."""

CLOCKS_APART_S = 0.5
"""Stamps of PX4 and motion capture that differ by more are of clocks that are not in step."""

LOSS_PARAMETERS: Mapping[str, float] = MappingProxyType(
    {"COM_OF_LOSS_T": 1.0, "COM_OBL_RC_ACT": 4.0}
)
"""PX4 parameters of the failsafe when nobody guides a drone any more: after 1 s it lands.

With PX4's default (position mode) a drone without remote control returns home, with the load on
its cable.
"""

_RESULTS = ("accepted", "temporarily rejected", "denied", "unsupported", "failed", "in progress")
"""Words for the results of a VehicleCommandAck."""


class Phase(str, Enum):
    """Phase of a drone in the offboard protocol."""

    WAITING = "waiting for the vehicle"
    IDLE = "idle"
    AIRBORNE = "in the air already, without set-points"
    STREAMING = "streaming"
    TAKING_MODE = "taking offboard mode"
    ARMING = "arming"
    FLYING = "flying"
    HOLDING = "holding: no set-points"
    RELEASED = "released: the vehicle left offboard mode"
    SILENT = "silent: no status of the vehicle, set-points go on"
    DOUBTED = "doubted: not the drone of its poses"
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
        belief_error_m: Distance between a drone's place in its PX4's estimate and in its poses at
            which they are of two drones.
        belief_error_rad: Angle between the vertical axes of the drone in both, likewise.
        belief_lasts_s: Time that one of them lasts before it counts.
        auto_arm: Take the mode and arm; otherwise stream only and leave both to the pilot.
        prove_identity: Wait on the ground until each PX4's estimate has agreed with the poses of
            its drone.
    """

    stream_before_mode_s: Annotated[float, Field(ge=0.0, le=10.0)] = 1.0
    retry_s: Annotated[float, Field(ge=0.05, le=10.0)] = 0.5
    tries: int = 20
    setpoint_timeout_s: Annotated[float, Field(ge=0.05, le=5.0)] = 0.5
    status_timeout_s: Annotated[float, Field(ge=0.5, le=30.0)] = 3.0
    status_age_s: Annotated[float, Field(ge=0.6, le=30.0)] = 1.5
    heartbeat_s: Annotated[float, Field(ge=0.01, le=0.4)] = 0.1
    belief_error_m: Annotated[float, Field(ge=0.05, le=100.0)] = 0.8
    belief_error_rad: Annotated[float, Field(ge=0.02, le=3.2)] = 0.15
    belief_lasts_s: Annotated[float, Field(ge=0.0, le=10.0)] = 0.5
    auto_arm: bool = True
    prove_identity: bool = True


@dataclass(frozen=True)
class Setpoint:
    """Set-point of a drone, ENU; NaN means "not given".

    Attributes:
        position_enu_m: (3,).
        velocity_enu_m_s: (3,).
        acceleration_enu_m_s2: Feed-forward beside place and velocity, (3,). Without a velocity it
            is a controller's command instead of the place, which holds the drone when the
            controller sends nothing.
        flight_s: Time since the flight began; 0 while the formation waits for armed drones.
    """

    position_enu_m: Array
    velocity_enu_m_s: Array
    yaw_enu_rad: float
    acceleration_enu_m_s2: Array | None = None
    flight_s: float = 0.0

    @property
    def pushed(self) -> bool:
        """Whether the acceleration stands in the place of everything else."""
        return self.acceleration_enu_m_s2 is not None and bool(
            np.isnan(self.velocity_enu_m_s).all()
        )


@dataclass(frozen=True)
class Command:
    """A VehicleCommand to send.

    Attributes:
        number: MAV_CMD.
    """

    number: int
    param1: float = 0.0
    param2: float = 0.0

    @property
    def name(self) -> str:
        """The command in words."""
        if self.number == COMMAND_ARM_DISARM:
            return "arm" if self.param1 else "disarm"
        return {COMMAND_LAND: "land", COMMAND_SET_MODE: "take offboard mode"}[self.number]


@dataclass(frozen=True)
class Status:
    """A vehicle's state as its VehicleStatus gives it.

    Attributes:
        nav_state: Mode that is flown.
        intention: Mode that was asked for; another than `nav_state` in a failsafe.
        took_off: Whether it is in the air, or was since it was armed.
        system_id: MAV_SYS_ID of the vehicle.
    """

    armed: bool = False
    nav_state: int = 0
    intention: int = NAVIGATION_STATE_OFFBOARD
    took_off: bool = False
    failsafe: bool = False
    system_id: int = 0

    @property
    def failsafe_word(self) -> str:
        """Text about the failsafe in force; "" where it is the expected landing."""
        if not (self.armed and self.took_off and self.failsafe):
            return ""
        if self.nav_state in (NAVIGATION_STATE_LAND, NAVIGATION_STATE_OFFBOARD):
            return ""
        parameters = ", ".join(f"{name} {value:g}" for name, value in LOSS_PARAMETERS.items())
        return (
            f"its failsafe flies mode {self.nav_state}, not {NAVIGATION_STATE_LAND} (land); where "
            f"guidance was lost, PX4 ought to have {parameters}"
        )


def other_loss_parameters(parameters: Mapping[str, float]) -> str:
    """Warning of a user's PX4 parameters that change what happens without guidance; "" for none."""
    others = [
        f"{name} = {parameters[name]:g} (docs: {value:g})"
        for name, value in LOSS_PARAMETERS.items()
        if name in parameters and parameters[name] != value
    ]
    if not others:
        return ""
    return f"{', '.join(others)}: without the offboard node PX4 does not land after 1 s"


@dataclass(frozen=True)
class Placement:
    """Pose of a drone by an estimate or by motion capture.

    Attributes:
        stamp_s: Time of which this is true.
        position_enu_m: (3,).
        orientation_wxyz: Orientation of the body (FLU) in ENU, (4,).
        speed_m_s: Speed; 0 where it is not known.
    """

    stamp_s: float
    position_enu_m: Array
    orientation_wxyz: Array
    speed_m_s: float = 0.0


def belief_error(believed: Placement, seen: Placement, settings: OffboardSettings) -> str:
    """Contradiction between a PX4's estimate and the poses of its drone; "" if they agree.

    On a busy computer one may be older than the other: the way that the drone flies meanwhile is no
    contradiction. Headings are not compared: they depend on the frame of the estimate.
    """
    away_m = float(np.linalg.norm(believed.position_enu_m - seen.position_enu_m))
    apart_s = min(abs(believed.stamp_s - seen.stamp_s), CLOCKS_APART_S)
    if away_m > settings.belief_error_m + believed.speed_m_s * apart_s:
        return f"its PX4's estimate is {away_m:.2f} m from its poses"
    upright = np.dot(
        body_z_in_world(believed.orientation_wxyz), body_z_in_world(seen.orientation_wxyz)
    )
    tilt_rad = float(np.arccos(np.clip(upright, -1.0, 1.0)))
    if tilt_rad > settings.belief_error_rad:
        return f"its PX4's estimate is tilted by {np.degrees(tilt_rad):.0f} degrees from its poses"
    return ""


@dataclass
class OffboardSession:
    """Protocol state of one drone.

    Attributes:
        setpoint: Last set-point that was requested; None before.
        reason: Why a command failed, or why the vehicle is doubted.
        land: Set to have PX4 land in its own land mode, from wherever it flies.
        disarm: Set to have PX4 disarm; it refuses that in the air.
        system_id: MAV_SYS_ID that the vehicle must have; 0 for any.
        proved: Whether its estimate has agreed with the poses of its drone.
    """

    settings: OffboardSettings = field(default_factory=OffboardSettings)
    phase: Phase = Phase.WAITING
    setpoint: Setpoint | None = None
    reason: str = ""
    land: bool = False
    disarm: bool = False
    system_id: int = 0
    proved: bool = False
    status: Status = field(default_factory=Status)
    _doubt: str = ""
    _doubt_since_s: float = np.inf
    _stream_since_s: float = np.inf
    _stream_s: float = -np.inf
    _status_s: float = -np.inf
    _is_flown: bool = False
    _barred: bool = False
    _armed_here: bool = False
    _sent_s: float = -np.inf
    _tried_s: float = -np.inf
    _tries: int = 0
    _result: int | None = None

    def on_status(self, time_s: float, status: Status) -> None:
        """Take note of a VehicleStatus."""
        self._status_s = time_s
        self.status = status
        if not status.armed or status.nav_state == NAVIGATION_STATE_LAND:
            self.land = False
        self.disarm = self.disarm and status.armed

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

    def on_belief(self, time_s: float, error: str) -> None:
        """Take note of how the vehicle's estimate contradicts its poses, see `belief_error`."""
        if not error:
            self.proved = True
            self._doubt = ""
            self._doubt_since_s = np.inf
            return
        self._doubt_since_s = min(self._doubt_since_s, time_s)
        if time_s - self._doubt_since_s >= self.settings.belief_lasts_s:
            self._doubt = self._doubt or error

    @property
    def doubt(self) -> str:
        """Why the vehicle may not be the drone that it is taken for; "" without a reason."""
        system_id = self.status.system_id
        if self.settings.prove_identity and self.system_id and system_id not in (0, self.system_id):
            return f"its PX4 has MAV_SYS_ID {system_id}, not {self.system_id} (system_ids)"
        return self._doubt if self.settings.prove_identity else ""

    def stand_down(self) -> None:
        """Stay on the ground until the next start, because another drone cannot take off."""
        if not self._underway and (self._armed_here or not self.status.took_off):
            self._barred = True
            self._get_down()

    def _get_down(self) -> None:
        """Disarm on the ground.

        Set-points at its height can make PX4 count a drone as in the air: then it refuses to
        disarm, and lands and disarms in its own land mode.
        """
        status = self.status
        if status.took_off:
            self.land = status.armed and status.nav_state != NAVIGATION_STATE_LAND
        else:
            self.disarm = status.armed

    def heard(self, time_s: float) -> bool:
        """Whether the vehicle's status arrives."""
        return time_s - self._status_s <= self.settings.status_timeout_s

    @property
    def may_fly(self) -> bool:
        """Whether a land command can reach this vehicle: its status has arrived at least once."""
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
        if time_s - self._stream_s >= NEW_FLIGHT_S:
            self._barred = False
            if self._armed_here and self._is_flown and not self._underway:
                self._get_down()  # nobody will take off any more
        self.phase = self._next_phase(time_s)
        if self.phase is Phase.ARMING:
            self._armed_here = True
        elif self.phase in (Phase.WAITING, Phase.IDLE, Phase.AIRBORNE, Phase.LANDED):
            self._armed_here = False
        if self.phase is not before:
            self._tried_s = -np.inf
            self._tries = 0
            self._result = None
            self.reason = ""
        if self.phase is Phase.DOUBTED:
            self.reason = self.doubt
        if self.disarm:
            return self._tried(time_s, Command(COMMAND_ARM_DISARM, 0.0))
        if self.phase is Phase.TAKING_MODE:
            return self._tried(
                time_s, Command(COMMAND_SET_MODE, CUSTOM_MODE_ENABLED, MAIN_MODE_OFFBOARD)
            )
        if self.phase is Phase.ARMING:
            return self._tried(time_s, Command(COMMAND_ARM_DISARM, 1.0))
        if self.land:
            return self._tried(time_s, Command(COMMAND_LAND))
        return None

    @property
    def _offboard(self) -> bool:
        return self.status.nav_state == NAVIGATION_STATE_OFFBOARD

    def _next_phase(self, time_s: float) -> Phase:
        if self.phase in (Phase.LANDED, Phase.FAILED):
            if time_s - self._stream_s < NEW_FLIGHT_S:
                return self.phase
            self._is_flown = False
        if self._is_flown:  # a drone that is not heard may still hear
            return self._phase_in_flight(time_s)
        if time_s - self._status_s > self.settings.status_timeout_s:
            return Phase.WAITING
        armed = self.status.armed
        took_off = self.status.took_off
        if self.doubt and not took_off:
            return Phase.DOUBTED
        if self.settings.prove_identity and not (self.proved or took_off):
            return Phase.WAITING
        if self._barred:
            return Phase.IDLE
        if self._silent(time_s):  # nobody who starts a flight may take it for one on the ground
            return Phase.AIRBORNE if armed and took_off else Phase.IDLE
        if armed and self._offboard:
            self._is_flown = True
            return self._phase_in_flight(time_s)
        if self._underway and not self._is_ours_in_flight:
            return Phase.RELEASED if armed else Phase.LANDED
        streamed_s = time_s - self._stream_since_s
        if not self.settings.auto_arm or streamed_s < self.settings.stream_before_mode_s:
            return Phase.STREAMING
        return Phase.ARMING if self._offboard else Phase.TAKING_MODE

    @property
    def _underway(self) -> bool:
        """Whether the set-points are of a flight that has begun: on the ground none is armed."""
        return self.setpoint is not None and self.setpoint.flight_s > 0.0

    @property
    def _is_ours_in_flight(self) -> bool:
        """Whether it is in the air without a pilot, whose mode would be what is asked for."""
        status = self.status
        return status.armed and status.took_off and status.intention == NAVIGATION_STATE_OFFBOARD

    def _phase_in_flight(self, time_s: float) -> Phase:
        if not self.status.armed:
            return Phase.LANDED
        if time_s - self._status_s > self.settings.status_age_s:
            return Phase.SILENT
        if not self._offboard:
            return Phase.RELEASED
        if self._silent(time_s):
            return Phase.HOLDING
        return Phase.DOUBTED if self.doubt else Phase.FLYING

    def _silent(self, time_s: float) -> bool:
        return time_s - self._stream_s > self.settings.setpoint_timeout_s

    def _tried(self, time_s: float, command: Command) -> Command | None:
        if time_s - self._tried_s < self.settings.retry_s:
            return None
        if self._tries >= self.settings.tries:
            answer = "no answer"
            if self._result is not None:
                has_name = self._result < len(_RESULTS)
                answer = f"result {self._result}" + (f" ({_RESULTS[self._result]})" * has_name)
            tries = self.settings.tries
            self.reason = f"could not {command.name}: {tries} tries, {answer}"
            # In the air the stream must not end, and a landing is asked for again.
            if self.disarm:
                self.disarm = False
                return None
            if command.number != COMMAND_LAND:
                self.phase = Phase.FAILED
                return None
        self._tried_s = time_s
        self._tries += 1
        return command


def stand_down_together(sessions: Iterable[OffboardSession]) -> None:
    """Keep all on the ground that have not taken off, when one of them could not be commanded."""
    sessions = list(sessions)
    if any(session.phase is Phase.FAILED for session in sessions):
        for session in sessions:
            session.stand_down()


def start_refusal(
    phases: Mapping[str, str], reasons: Mapping[str, str], *, guided: bool = True
) -> str:
    """Why a start that waits for armed drones must be given up; "" while it may go on.

    Args:
        phases: Phase of each drone, as on its topic.
        reasons: What the offboard node says of each drone.
        guided: Whether the offboard node lives; if not, that is the reason.
    """
    if not guided:
        return "the offboard node is silent"
    words = {"failed": "could not be commanded", "doubted": "doubted", "landed": "was disarmed"}
    stuck = [f"{d}: {reasons.get(d) or words[p]}" for d, p in sorted(phases.items()) if p in words]
    return "; ".join(stuck)


# ---------- Names of PX4's topics, and which vehicle is meant

FIRST_INSTANCE = 1
LAST_INSTANCE = 253
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
    names = [px4_namespace(i) for i in drones] if list(namespaces) == [""] else list(namespaces)
    ids = [target_system(i) for i in drones] if list(system_ids) == [0] else list(system_ids)
    for name, values in (("drones", drones), ("px4_namespaces", names), ("system_ids", ids)):
        if len(values) != len(drones):
            raise ConfigError(
                f"parameter {name} has {len(values)} values, must have {len(drones)}: one a drone"
            )
        if len(set(values)) != len(values):
            raise ConfigError(
                f"parameter {name} = {list(values)}: each instance may be given only once"
            )
    for name in names:
        if not re.fullmatch(r"/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*", name):
            raise ConfigError(f"parameter px4_namespaces: {name!r} is no namespace of ROS")
    for number in ids:
        if not 1 <= number <= LAST_SYSTEM:
            raise ConfigError(f"parameter system_ids: {number}: must be 1 to {LAST_SYSTEM}")
    return [Vehicle(*row) for row in zip(drones, names, ids, strict=True)]


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
