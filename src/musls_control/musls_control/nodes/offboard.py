"""Node `offboard`: flies PX4 drones along the formation's set-points in offboard mode.

One node serves any number of drones. It answers each message of `/formation/setpoints` with
OffboardControlMode and TrajectorySetpoint for every drone; when the formation falls silent it goes
on by itself with the last place of each drone, so that the drones hover.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from geometry_msgs.msg import PoseStamped
from px4_msgs import msg as px4
from sensor_msgs.msg import BatteryState
from std_msgs.msg import Header, String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import MultiDOFJointTrajectory

from musls_control.nodes.stepped_node import (
    FROM_PX4,
    LATCHED,
    TIME_BACK_S,
    ManagedNode,
    SteppedNode,
    in_world,
    microseconds,
    newest,
    quaternion_of,
    run,
    steady_clock,
    time_of,
    unattended,
    vector_of,
    yaw_of,
)
from musls_control.px4.frames import orientation_enu_ned, world_enu_ned, yaw_enu_ned
from musls_control.px4.offboard import (
    ARMING_STATE_ARMED,
    HEARTBEAT,
    Command,
    OffboardSession,
    OffboardSettings,
    Phase,
    Placement,
    Setpoint,
    Status,
    Vehicle,
    belief_error,
    px4_topic,
    stand_down_together,
    vehicles,
)
from musls_description.config.errors import ConfigError

_STREAMED = (
    Phase.STREAMING,
    Phase.TAKING_MODE,
    Phase.ARMING,
    Phase.FLYING,
    Phase.HOLDING,
    Phase.RELEASED,
    Phase.SILENT,  # it may still hear
    Phase.DOUBTED,
    Phase.LANDED,  # others may still fly, and simulated time waits for all
)
_GUIDED = frozenset(_STREAMED) - {Phase.LANDED}
_NOT_GIVEN = np.full(3, np.nan, np.float32)
WAITING_HINT_S = 5.0
COMPARE_EVERY_S = 0.1
BELIEF_AGE_S = 1.0
"""Older estimates and poses do not say where a drone is."""
NAMESPACES = 'Namespace of each PX4, relative or from /; [""]: px4_i of instance i.'


class DroneLink:
    """Topics and session of one drone."""

    def __init__(self, node: SteppedNode, vehicle: Vehicle, origin_enu_m: np.ndarray) -> None:
        self.node = node
        self.vehicle = vehicle
        self.origin_enu_m = origin_enu_m
        self.name = f"drone_{vehicle.drone}"
        px4_of = vehicle.namespace
        self.session = OffboardSession(system_id=vehicle.system_id)
        self._last_status: tuple[Phase | None, str] = (None, "")
        self._failsafe_word = ""
        self._compared_s = -np.inf
        pub = node.create_publisher
        sub = node.create_subscription
        self._phase = pub(String, f"{self.name}/offboard/phase", LATCHED)
        self._reason = pub(String, f"{self.name}/offboard/reason", LATCHED)
        self._pub = {
            kind: pub(kind, px4_topic(px4_of, "in", kind), 10)
            for kind in (px4.OffboardControlMode, px4.TrajectorySetpoint, px4.VehicleCommand)
        }
        self.status_topic = node.resolve_topic_name(px4_topic(px4_of, "out", px4.VehicleStatus))
        ack_topic = px4_topic(px4_of, "out", px4.VehicleCommandAck)
        sub(px4.VehicleStatus, self.status_topic, self._on_status, FROM_PX4)
        sub(px4.VehicleCommandAck, ack_topic, self._on_ack, FROM_PX4)
        self.odometry_topic = node.resolve_topic_name(px4_topic(px4_of, "out", px4.VehicleOdometry))
        self._odometry = unattended(node, px4.VehicleOdometry, self.odometry_topic)
        battery_topic = px4_topic(px4_of, "out", px4.BatteryStatus)
        self._battery = unattended(node, px4.BatteryStatus, battery_topic)
        self._battery_out = pub(BatteryState, f"{self.name}/battery", LATCHED)
        self._pose = unattended(node, PoseStamped, f"{self.name}/pose")
        self._believed: Placement | None = None
        self._seen: Placement | None = None
        self._believed_s = self._seen_s = -np.inf

    def _take_pose(self, time_s: float) -> None:
        if (pose := newest(self._pose)) is not None:
            place = pose.pose.position
            turn = pose.pose.orientation
            self._seen_s = time_s
            at = np.array(vector_of(place))
            self._seen = Placement(time_of(pose), at, np.array(quaternion_of(turn)))

    def pose_s(self) -> float | None:
        """Time of the newest pose of its drone; None before the first."""
        self._take_pose(self.node.time_s)
        return None if self._seen is None else self._seen.stamp_s

    def compare(self, time_s: float) -> None:
        """Hold the vehicle's estimate against the poses of its drone."""
        if self._compared_s <= time_s < self._compared_s + COMPARE_EVERY_S:
            return
        self._compared_s = time_s
        self._take_pose(time_s)
        if (message := newest(self._odometry)) is not None:
            place = np.array(message.position, np.float64)
            turn = np.array(message.q, np.float64)
            speed_m_s = float(np.linalg.norm(np.nan_to_num(message.velocity)))
            self._believed_s = time_s if np.isfinite([*place, *turn]).all() else -np.inf
            self._believed = Placement(
                1e-6 * message.timestamp_sample,
                world_enu_ned(place) + self.origin_enu_m,
                orientation_enu_ned(turn),
                speed_m_s,
            )
        believed = self._believed
        poses = self._seen
        if min(self._believed_s, self._seen_s) >= time_s - BELIEF_AGE_S and believed and poses:
            error = belief_error(believed, poses, self.session.settings)
            self.session.on_belief(time_s, error)

    def step(self, time_s: float) -> None:
        """Advance the protocol and send what it asks for."""
        self.compare(time_s)
        if (battery := newest(self._battery)) is not None:
            self._battery_out.publish(battery_state(battery, time_s))
        command = self.session.step(time_s)
        if command is not None:
            self._send_command(command, time_s)

    def show(self, time_s: float) -> None:
        """Publish the drone's phase, and send PX4 its heartbeat and set-point where it is due."""
        if self.session.phase in _STREAMED and self.session.heartbeat_due(time_s):
            self.stream(time_s)
        self._show(self.session.phase, self.session.reason)

    def _show(self, phase: Phase, reason: str) -> None:
        if (phase, reason) == self._last_status:
            return
        if phase is not self._last_status[0]:
            self._phase.publish(String(data=phase.name.lower()))
        if reason != self._last_status[1]:
            self._reason.publish(String(data=reason))
        self._last_status = (phase, reason)
        text = ": ".join(part for part in (self.name, phase.value, reason) if part)
        self.node.say(text, error=bool(reason))

    def stream(self, time_s: float) -> None:
        """Send set-point and heartbeat; the heartbeat comes last and completes the answer."""
        setpoint = self.session.setpoint
        now_us = microseconds(time_s)
        if setpoint is None:  # nothing was asked for yet
            return
        position = world_enu_ned(setpoint.position_enu_m - self.origin_enu_m).astype(np.float32)
        velocity = world_enu_ned(setpoint.velocity_enu_m_s).astype(np.float32)
        acceleration = _NOT_GIVEN
        push = setpoint.acceleration_enu_m_s2
        flies = self.session.phase in (Phase.FLYING, Phase.SILENT)
        pushed = setpoint.pushed and flies
        if push is not None and (flies or not setpoint.pushed):
            acceleration = world_enu_ned(push).astype(np.float32)
        if pushed:  # a controller's; a drone that holds keeps its place
            position = velocity = _NOT_GIVEN
        self._pub[px4.TrajectorySetpoint].publish(
            px4.TrajectorySetpoint(
                timestamp=now_us,
                position=position,
                velocity=velocity,
                acceleration=acceleration,
                jerk=_NOT_GIVEN,
                yaw=float(yaw_enu_ned(setpoint.yaw_enu_rad)),
                yawspeed=0.0,
            )
        )
        self._pub[px4.OffboardControlMode].publish(
            px4.OffboardControlMode(timestamp=now_us, position=not pushed, acceleration=pushed)
        )
        self.session.sent(time_s)

    def _send_command(self, command: Command, time_s: float) -> None:
        self._pub[px4.VehicleCommand].publish(
            px4.VehicleCommand(
                timestamp=microseconds(time_s),
                command=command.number,
                param1=command.param1,
                param2=command.param2,
                target_system=self.vehicle.system_id,
                target_component=1,
                source_system=self.vehicle.system_id,
                source_component=1,
                from_external=True,
            )
        )

    def _on_status(self, message: px4.VehicleStatus) -> None:
        status = Status(
            armed=message.arming_state == ARMING_STATE_ARMED,
            nav_state=message.nav_state,
            intention=message.nav_state_user_intention,
            took_off=message.takeoff_time > 0,
            failsafe=message.failsafe,
            system_id=message.system_id,
        )
        self.session.on_status(self.node.time_s, status)
        if (word := status.failsafe_word) != self._failsafe_word:
            self._failsafe_word = word
            if word:
                self.node.get_logger().error(f"{self.name}: {word}")

    def _on_ack(self, message: px4.VehicleCommandAck) -> None:
        self.session.on_ack(message.command, message.result)

    @property
    def guided(self) -> bool:
        """Whether the drone hears set-points."""
        session = self.session
        return session.phase in _GUIDED and (
            session.phase is not Phase.DOUBTED or session.status.armed
        )

    def start_over(self) -> None:
        """Forget the vehicle."""
        before = self.session
        self.session = OffboardSession(before.settings, system_id=before.system_id)
        self._believed = self._seen = None
        self._believed_s = self._seen_s = self._compared_s = -np.inf

    def unproved(self) -> str:
        """Evidence that is still missing that the vehicle is the drone of its poses."""
        topics = [
            name
            for name, value in (
                (self.odometry_topic, self._believed),
                (f"{self.name}/pose", self._seen),
            )
            if value is None
        ]
        return f"nothing on {' and '.join(topics)}" if topics else "estimate not valid yet"


def battery_state(message: px4.BatteryStatus, time_s: float) -> BatteryState:
    """PX4's battery as a ROS message: NaN where unknown, discharging is negative."""

    def known(value: float, least: float) -> float:
        return float(value) if value >= least else np.nan

    return BatteryState(
        header=in_world(time_s),
        voltage=known(message.voltage_v, 0.1),
        current=-known(message.current_a, 0.0),
        percentage=known(message.remaining, 0.0),
        charge=np.nan,
        capacity=np.nan,
        design_capacity=np.nan,
        temperature=float(message.temperature),
        present=message.connected,
    )


class OffboardNode(ManagedNode):
    """The node: sends set-points to PX4s, arms and lands them."""

    def __init__(self) -> None:
        super().__init__("offboard")
        instances = self.value("drones", [1, 2, 3], "PX4 instances, from 1.")
        fleet = vehicles(
            instances,
            self.value("px4_namespaces", [""], NAMESPACES),
            self.value("system_ids", [0], "MAV_SYS_ID of each PX4; [0]: instance + 1."),
        )
        origins = self.value(
            "local_origin_enu_m",
            [0.0] * (3 * len(instances)),
            "Origin of each drone's local frame in the world: x, y, z of drone 1, 2, ... [m].",
        )
        if len(origins) != 3 * len(instances):
            raise ConfigError(
                f"parameter local_origin_enu_m has {len(origins)} numbers, must have "
                f"{3 * len(instances)}: x, y, z of each drone"
            )
        self.value("auto_arm", True, "Take the mode and arm; false leaves both to the pilot.")
        proof = "Arm only PX4s whose estimates agree with the poses of their drones."
        self.value("prove_identity", True, proof)
        places = np.array(origins).reshape(-1, 3)
        self._links = {
            f"drone_{vehicle.drone}": DroneLink(self, vehicle, place)
            for vehicle, place in zip(fleet, places, strict=True)
        }
        self._beat_s = -np.inf
        self._beat_every_s = 0.0
        self.settings(OffboardSettings, self._take_settings)
        self.create_subscription(
            MultiDOFJointTrajectory, "formation/setpoints", self._on_setpoints, 10
        )
        self._heartbeat_out = self.create_publisher(Header, HEARTBEAT, 1)
        self.create_service(Trigger, "~/land", self._on_land)
        for name in self._links:
            self.create_service(
                Trigger, f"~/land_{name}", lambda _, answer, n=name: self._land([n], answer)
            )
        self.create_timer(WAITING_HINT_S, self._explain_silence, clock=steady_clock())
        self.publish_alone(px4_topic(fleet[0].namespace, "in", px4.TrajectorySetpoint))
        self.come_up()

    @property
    def busy(self) -> str:
        """Why the node must not end now: drones follow set-points."""
        guided = [name for name, link in self._links.items() if link.guided]
        return f"set-points go to {', '.join(guided)}" if guided else ""

    def step(self, time_s: float) -> None:
        """Advance every drone's protocol."""
        for link in self._links.values():
            with self.surviving():
                link.step(time_s)
        stand_down_together(link.session for link in self._links.values())
        for link in self._links.values():
            with self.surviving():
                link.show(time_s)
        if not self._beat_s <= time_s < self._beat_s + self._beat_every_s:
            self._beat_s = time_s
            self._heartbeat_out.publish(in_world(time_s))

    def follows(self, time_s: float) -> bool:
        """Whether a time that jumps is that of this node's own simulator.

        See `SteppedNode`.
        """
        poses_s = [link.pose_s() for link in self._links.values()]
        ages_s = [abs(pose_s - time_s) for pose_s in poses_s if pose_s is not None]
        return not ages_s or min(ages_s) <= TIME_BACK_S

    def start_over(self) -> None:
        """Restart with all vehicles."""
        for link in self._links.values():
            link.start_over()

    def _on_land(self, _: Trigger.Request, answer: Trigger.Response) -> Trigger.Response:
        """PX4's own landing of all drones where they are, for when no formation flies them."""
        return self._land(list(self._links), answer)

    def _land(self, names: Sequence[str], answer: Trigger.Response) -> Trigger.Response:
        links = {name: self._links[name] for name in names}
        reachable = [n for n, link in links.items() if link.session.heard(self.time_s)]
        silent = [name for name in links if name not in reachable]
        for link in links.values():
            link.session.land = link.session.land or link.session.may_fly
        answer.success = bool(reachable)
        answer.message = f"landing {', '.join(reachable)}" if reachable else "nothing landed"
        if silent:
            answer.message += f"; not heard: {', '.join(silent)}"
        return answer

    def _on_setpoints(self, message: MultiDOFJointTrajectory) -> None:
        time_s = time_of(message)
        if not message.points or not self.active:
            return
        point = message.points[0]
        since_start = point.time_from_start
        flight_s = since_start.sec + since_start.nanosec * 1e-9
        pushes = point.accelerations or [None] * len(message.joint_names)
        for name, place, move, push in zip(
            message.joint_names, point.transforms, point.velocities, pushes, strict=False
        ):
            link = self._links.get(name)
            if link is None:
                continue
            link.session.on_setpoint(
                time_s,
                Setpoint(
                    np.array(vector_of(place.translation)),
                    np.array(vector_of(move.linear)),
                    yaw_of(place.rotation),
                    None if push is None else np.array(vector_of(push.linear)),
                    flight_s,
                ),
            )
            if link.session.phase in _STREAMED:
                link.stream(time_s)

    def _explain_silence(self) -> None:
        """Log why a vehicle may be silent."""
        if self.time_s == 0.0:
            self.get_logger().warning("nothing on /clock: does the simulator run?")
            return
        for link in self._links.values():
            if link.session.phase is not Phase.WAITING:
                continue
            if link.session.heard(self.time_s):
                self.get_logger().warning(
                    f"{link.name}: not known to be the drone of its poses: {link.unproved()} "
                    "(prove_identity)"
                )
                continue
            topic = link.status_topic
            base = topic.rsplit("_v", 1)[0]
            others = [t for t, _ in self.get_topic_names_and_types() if t.startswith(base)]
            others = [t for t in others if t != topic and self.count_publishers(t)]
            self.get_logger().warning(
                f"{link.name}: nothing on {topic}; "
                + (
                    f"there is {others[0]}: PX4 of another release than px4_msgs"
                    if others
                    else f"does PX4 instance {link.vehicle.drone} run "
                    f"(px4 -i {link.vehicle.drone})?"
                )
            )

    def _take_settings(self, settings: OffboardSettings) -> None:
        self._beat_every_s = settings.heartbeat_s
        for link in self._links.values():
            link.session.settings = settings


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run(OffboardNode, args)


if __name__ == "__main__":
    sys.exit(main())
