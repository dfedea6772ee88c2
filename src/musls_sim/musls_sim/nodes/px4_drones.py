"""PX4's topics of one drone, from the embedded simulator's state."""

from __future__ import annotations

from typing import Any

import numpy as np
from px4_msgs.msg import (
    ActuatorMotors,
    OffboardControlMode,
    VehicleAttitude,
    VehicleCommandAck,
    VehicleControlMode,
    VehicleLocalPosition,
    VehicleOdometry,
    VehicleStatus,
)
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from musls_control.nodes.stepped_node import FROM_PX4
from musls_control.offboard import px4_topic, target_system
from musls_control.px4_frames import body_flu_frd, orientation_enu_ned, world_enu_ned, yaw_enu_ned
from musls_description.rotations import yaw_of
from musls_sim.nodes.polling import Poller
from musls_sim.px4.graph_session import GraphSession
from musls_sim.px4.install import Px4Error
from musls_sim.px4_stand_in.commander import Commander, DisarmReason, NavState

PX4_WRITER = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
    reliability=ReliabilityPolicy.BEST_EFFORT,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
"""As PX4's DDS client offers its topics."""

STATUS_PERIOD_US = 200_000
ARMED, DISARMED = 2, 1
_MOTION_TOPICS = (
    "vehicle_local_position",
    "vehicle_attitude",
    "vehicle_odometry",
    "actuator_motors",
)
_MOTION = ("x", "y", "z", "vx", "vy", "vz", "ax", "ay", "az")


class Px4Outputs:
    """Publishers of one instance; local frame origin is the world's."""

    def __init__(self, node: Node, instance: int) -> None:
        self._system = target_system(instance)
        kinds = {
            "vehicle_local_position": VehicleLocalPosition,
            "vehicle_attitude": VehicleAttitude,
            "vehicle_odometry": VehicleOdometry,
            "vehicle_status": VehicleStatus,
            "vehicle_control_mode": VehicleControlMode,
            "vehicle_command_ack": VehicleCommandAck,
            "actuator_motors": ActuatorMotors,
        }
        self._pub = {
            name: node.create_publisher(kind, px4_topic(instance, "out", name, kind), PX4_WRITER)
            for name, kind in kinds.items()
        }
        self._status_us = -STATUS_PERIOD_US
        self._status_of: tuple[bool, NavState, bool] | None = None
        self._motors = np.full(12, np.nan, np.float32)
        self._fixed_local = {
            "xy_valid": True, "z_valid": True, "v_xy_valid": True, "v_z_valid": True,
            "heading_good_for_control": True, "dist_bottom": float("nan"),
            "ref_lat": float("nan"), "ref_lon": float("nan"), "ref_alt": float("nan"),
            "vxy_max": float("inf"), "vz_max": float("inf"),
            "hagl_min": float("inf"), "hagl_max_z": float("inf"), "hagl_max_xy": float("inf"),
        }  # fmt: skip

    def publish(
        self, time_us: int, measured: np.ndarray, throttle: np.ndarray, commander: Commander
    ) -> None:
        """Publish the motion if anybody listens, and the status when it is due.

        `measured`: row of `Estimate`, (16,).
        `throttle`: motor commands, (n_rotors,).
        """
        if any(self._pub[name].get_subscription_count() for name in _MOTION_TOPICS):
            self._publish_motion(time_us, measured, throttle, commander.armed)
        self._publish_status(time_us, commander)

    def _publish_motion(
        self, time_us: int, measured: np.ndarray, throttle: np.ndarray, armed: bool
    ) -> None:
        at = {"timestamp": time_us, "timestamp_sample": time_us}
        position, velocity = world_enu_ned(measured[0:6].reshape(2, 3))
        acceleration = world_enu_ned(measured[13:16])
        q = orientation_enu_ned(measured[6:10]).astype(np.float32)
        yaw = yaw_of(measured[6:10])
        motion = np.concatenate([position, velocity, acceleration]).tolist()
        self._pub["vehicle_local_position"].publish(
            VehicleLocalPosition(
                **at,
                **self._fixed_local,
                **dict(zip(_MOTION, motion, strict=True)),
                z_deriv=motion[5],
                heading=float(yaw_enu_ned(yaw)),
            )
        )
        self._pub["vehicle_attitude"].publish(VehicleAttitude(**at, q=q))
        self._pub["vehicle_odometry"].publish(
            VehicleOdometry(
                **at,
                pose_frame=VehicleOdometry.POSE_FRAME_NED,
                position=position.astype(np.float32),
                q=q,
                velocity_frame=VehicleOdometry.VELOCITY_FRAME_NED,
                velocity=velocity.astype(np.float32),
                angular_velocity=body_flu_frd(measured[10:13]).astype(np.float32),
            )
        )
        self._motors[: len(throttle)] = throttle if armed else np.nan
        self._pub["actuator_motors"].publish(ActuatorMotors(**at, control=self._motors))

    def acknowledge(self, time_us: int, command: int, result: int, to_system: int) -> None:
        """Answer a command."""
        self._pub["vehicle_command_ack"].publish(
            VehicleCommandAck(
                timestamp=time_us, command=command, result=result, target_system=to_system
            )
        )

    def _publish_status(self, time_us: int, commander: Commander) -> None:
        state = (commander.armed, commander.nav_state, commander.failsafe)
        if state == self._status_of and time_us - self._status_us < STATUS_PERIOD_US:
            return
        self._status_of, self._status_us = state, time_us
        offboard = commander.nav_state is NavState.OFFBOARD
        took_off = commander.took_off_at_s
        self._pub["vehicle_status"].publish(
            _message(
                VehicleStatus,
                timestamp=time_us,
                armed_time=round((commander.armed_at_s or 0.0) * 1e6),
                takeoff_time=round((took_off or 0.0) * 1e6),
                arming_state=ARMED if commander.armed else DISARMED,
                latest_arming_reason=DisarmReason.COMMAND,
                latest_disarming_reason=commander.disarm_reason,
                nav_state_user_intention=commander.wanted,
                nav_state=commander.nav_state,
                vehicle_type=VehicleStatus.VEHICLE_TYPE_ROTARY_WING,
                failsafe=commander.failsafe,
                system_type=2,
                system_id=self._system,
                component_id=1,
                pre_flight_checks_pass=True,
            )
        )
        self._pub["vehicle_control_mode"].publish(
            _message(
                VehicleControlMode,
                timestamp=time_us,
                flag_armed=commander.armed,
                flag_multicopter_position_control_enabled=True,
                flag_control_auto_enabled=not offboard,
                flag_control_offboard_enabled=offboard,
                flag_control_position_enabled=True,
                flag_control_velocity_enabled=True,
                flag_control_altitude_enabled=True,
                flag_control_climb_rate_enabled=True,
                flag_control_attitude_enabled=True,
                flag_control_rates_enabled=True,
                flag_control_allocation_enabled=True,
            )
        )


def _message(kind: Any, **fields: Any) -> Any:
    """A message with those of the fields that it has in the release of PX4 that is installed."""
    known = kind.get_fields_and_field_types()
    return kind(**{name: value for name, value in fields.items() if name in known})


# ---------- A drone of `embedded_sim` flown by a real PX4, which is on the graph through its agent

SHOW_UP_S = 20.0
"""Time for PX4's first status to come: so much of it both really and in the simulation."""


class RealDrone:
    """Listens to who guides the drone, so that simulated time can wait for him.

    Attributes:
        inputs: Topics to PX4 that are watched, and their types.
    """

    def __init__(self, node: Node, index: int, session: GraphSession, poller: Poller) -> None:
        self._node, self._index, self._session = node, index, session
        self._status_topic = px4_topic(index + 1, "out", "vehicle_status", VehicleStatus)
        self._heard = False
        poller.subscribe(VehicleStatus, self._status_topic, self._on_status, FROM_PX4)
        topic = px4_topic(index + 1, "in", "offboard_control_mode", OffboardControlMode)
        self.inputs = {topic: "px4_msgs/msg/OffboardControlMode"}
        poller.subscribe(OffboardControlMode, topic, self._on_mode, FROM_PX4)

    @property
    def armed(self) -> bool:
        """Whether the motors may turn."""
        return bool(self._session.px4s.armed[self._index])

    def publish(self, time_us: int) -> None:
        """PX4 speaks for itself."""

    def check(self, age_s: float) -> None:
        """See that PX4 is on the graph.

        Raises:
            Px4Error: Its status did not come in time.
        """
        if not self._heard and age_s > SHOW_UP_S:
            raise Px4Error(
                f"drone_{self._index + 1}: PX4 runs, but nothing comes on {self._status_topic} "
                f"for {SHOW_UP_S:g} s: another ROS_DOMAIN_ID, or a PX4 release with another "
                "version of this message than px4_msgs here"
            )

    def _on_status(self, _: VehicleStatus) -> None:
        self._heard = True

    def _on_mode(self, message: OffboardControlMode) -> None:
        self._node.lockstep.answer(self._index, message.timestamp)
