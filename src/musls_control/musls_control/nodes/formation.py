"""Node `formation`: the load's set-point over time becomes set-points of all drones.

Reads where load and drones stand, makes the flight plan of the mission and streams its set-points;
what happens on the way (pause, goals, abort) is `musls_control.mission.player`'s.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import AccelStamped, PoseStamped, Transform, Twist, TwistStamped
from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

from musls_control.graph_flight import (
    STEP_S,
    GraphControl,
    GraphDelivery,
    HeardMotion,
    MissionFile,
    read_mission_file,
    takes_part,
)
from musls_control.mission.plan import FlightPlan, GroundSpot
from musls_control.mission.player import (
    FlightPlayer,
    FormationSetpoint,
    GoalSettings,
    PlayState,
    Refused,
)
from musls_control.nodes.stepped_node import (
    LATCHED,
    NEWEST,
    SteppedNode,
    place_and_yaw,
    run,
    stamp,
    steady_clock,
    time_of,
    turn_to,
)
from musls_description.errors import ConfigError, MuslsError

# ---------- Topics of a delivery: events that are to happen, and what has happened

APPLY, EVENTS = "/musls/apply_event", "/events"
_HAPPENED = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class DeliveryTopics:
    """Asks for events on `/musls/apply_event`; hears and tells on `/events` what has happened."""

    def __init__(self, node: Node, heard: Callable[[str], None]) -> None:
        """Begin to listen; `heard` is told the kind of each event that happens from now on."""
        self._ask = node.create_publisher(String, APPLY, QoSProfile(depth=10))
        self._tell = node.create_publisher(String, EVENTS, _HAPPENED)
        node.create_subscription(
            String, EVENTS, lambda m: heard(m.data.partition(":")[0]), QoSProfile(depth=100)
        )

    @property
    def heard_by_hooks(self) -> bool:
        """Whether any node subscribes to the events."""
        return self._ask.get_subscription_count() > 0

    def send(self, event: dict[str, Any]) -> None:
        """Let an event happen, given by its fields."""
        self._ask.publish(String(data=json.dumps(event)))

    def tell(self, kind: str, what: str) -> None:
        """Say what has happened."""
        self._tell.publish(String(data=f"{kind}: {what}"))


# ---------- Subscriptions to the motion of load and drones, for nodes that need it all the time


class MotionInputs:
    """Listens to poses, twists and rotor speeds."""

    def __init__(
        self, node: Node, bodies: Sequence[str], motion: HeardMotion, heard: Callable[[], None]
    ) -> None:
        """Begin to listen to load and drones; `heard` is called after each message."""
        self._node, self._motion, self._heard = node, motion, heard
        self._inputs = []
        for k, body in enumerate(bodies):
            inputs = [
                (PoseStamped, "pose", lambda m, k=k: self._on_pose(k, m)),
                (TwistStamped, "twist", lambda m, k=k: self._on_twist(k, m)),
            ]
            if k:
                inputs.append((JointState, "rotors", lambda m, k=k: self._on_rotors(k, m)))
            self._inputs += [
                node.create_subscription(kind, f"/{body}/{topic}", take, 1)
                for kind, topic, take in inputs
            ]

    def end(self) -> None:
        """End the subscriptions."""
        for subscription in self._inputs:
            self._node.destroy_subscription(subscription)

    def _on_pose(self, body: int, message: PoseStamped) -> None:
        p, q = message.pose.position, message.pose.orientation
        self._motion.on_pose(body, time_of(message), (p.x, p.y, p.z), (q.w, q.x, q.y, q.z))
        self._heard()

    def _on_twist(self, body: int, message: TwistStamped) -> None:
        v, w = message.twist.linear, message.twist.angular
        self._motion.on_twist(body, time_of(message), (v.x, v.y, v.z), (w.x, w.y, w.z))
        self._heard()

    def _on_rotors(self, body: int, message: JointState) -> None:
        self._motion.on_rotors(body, time_of(message), message.velocity)
        self._heard()


# ---------- The messages that stream set-points from `formation` to `offboard`


class SetpointStream:
    """Publishes what all drones are to do now.

    `/formation/setpoints` is for `offboard`; `/drone_i/setpoint_accel` are the accelerations in it
    that a controller asks for, for the recorder and for people.
    """

    def __init__(self, node: Node, drones: list[str]) -> None:
        """Make the publishers."""
        self._drones = drones
        self._all = node.create_publisher(MultiDOFJointTrajectory, "/formation/setpoints", 10)
        self._accelerations = [
            node.create_publisher(AccelStamped, f"/{drone}/setpoint_accel", 10) for drone in drones
        ]

    def send(
        self, wanted: FormationSetpoint, asked: tuple[list, list] | None, time_s: float
    ) -> None:
        """Publish, see `stream_of`; last what simulated time waits for."""
        pushes = asked[0] if asked is not None else []
        for publisher, push in zip(self._accelerations, pushes, strict=False):
            told = AccelStamped()
            told.header.frame_id = "world"
            stamp(told.header.stamp, time_s)
            told.accel.linear = _push(push).linear
            publisher.publish(told)
        message = stream_of(self._drones, wanted, asked)
        stamp(message.header.stamp, time_s)
        self._all.publish(message)


def stream_of(
    drones: list[str], wanted: FormationSetpoint, asked: tuple[list, list] | None
) -> MultiDOFJointTrajectory:
    """Set-points of all drones as one message.

    `asked` are accelerations and yaws of a controller, None while it does not fly.
    """
    point = MultiDOFJointTrajectoryPoint()
    yaws = wanted.drone_yaw_rad.tolist()
    if asked is not None:
        point.accelerations = [_push(push) for push in asked[0]]
        yaws = asked[1]
    point.velocities = [_push(v) for v in wanted.drone_velocity_enu_m_s.tolist()]
    for position, yaw in zip(wanted.drone_position_enu_m.tolist(), yaws, strict=True):
        place = Transform()
        t, q = place.translation, place.rotation
        t.x, t.y, t.z = position
        turn_to(q, yaw)
        point.transforms.append(place)
    message = MultiDOFJointTrajectory(joint_names=drones, points=[point])
    message.header.frame_id = "world"
    return message


def _push(vector: list[float]) -> Twist:
    twist = Twist()
    twist.linear.x, twist.linear.y, twist.linear.z = vector
    return twist


WAITING_HINT_S = 5.0
READY = "idle"
POSE_AGE_S = 1.0
"""Older poses do not say where load and drones stand."""

TOO_OLD_S = 0.1
"""Age of the motion of load or drones at which a controller gives way to the formation."""

_GOAL_SETTINGS = {
    "goal_speed_m_s": (0.05, 2.0, "Speed of the load on the way to a goal or when aborting [m/s]."),
    "goal_yaw_rate_rad_s": (0.05, 1.5, "Its turning then [rad/s]."),
    "goal_radius_m": (0.1, 1000.0, "Goals farther from the origin of the world are refused [m]."),
    "goal_height_m": (0.1, 1000.0, "Goals higher above the world's ground are refused [m]."),
}
"""Changeable in flight; the next goal or abort takes them."""


class FormationNode(SteppedNode):
    """See the module's text."""

    def __init__(self) -> None:
        super().__init__("formation")
        path = self.value("mission_file", "", "Scenario (resolved) or mission file.", fixed=False)
        if not path:
            raise ConfigError("parameter mission_file is missing: give -p mission_file:=FILE.yaml")
        self._file: MissionFile = read_mission_file(Path(path))
        self._wanted = self.value("autostart", False, "Start as soon as all drones are ready.")
        self._listeners = self.count(
            "start_with_listeners", 0, 0, 10, "Subscribers of /mission/stage to wait for at first."
        )
        for name, (low, high, text) in _GOAL_SETTINGS.items():
            self.number(name, getattr(GoalSettings, name), low, high, text)
        self._bodies = ["load", *(f"drone_{i + 1}" for i in range(self._file.n_drones))]
        self._control: GraphControl | None
        self._delivery: GraphDelivery | None
        self._poses: dict[str, np.ndarray] = {}
        self._heard_s: dict[str, float] = {}
        self._phases: dict[str, str] = {}
        self._player: FlightPlayer | None = None
        self._shown: FormationSetpoint | None = None
        self._published: dict[str, tuple[float, ...]] = {}
        self._stage, self._state = "", ""
        self._motion_inputs: MotionInputs | None = None
        self._happenings: DeliveryTopics | None = None
        self._pending, self._pending_since_s = False, -1.0
        self._make_topics()
        self._listen_to_poses()
        self._take_file(self._file)
        self.add_on_set_parameters_callback(self._on_parameters)
        self._show_state("idle")
        self.create_timer(WAITING_HINT_S, self._explain_waiting, clock=steady_clock())

    def _explain_waiting(self) -> None:
        """Say what a start that was asked for waits for."""
        if not self._wanted or self._player is not None:
            return
        phases = {d: self._phases.get(d, "not heard") for d in self._bodies[1:]}
        waits = [f"no pose of {body}" for body in self._without_pose()]
        waits += [] if self._knows_enough() else ["no twists or rotor speeds of all bodies"]
        waits += [f"{drone} is {phase}" for drone, phase in phases.items() if phase != READY]
        if waits:
            self.get_logger().warning(f"not started: {', '.join(waits)}")

    def _make_topics(self) -> None:
        for drone in self._bodies[1:]:
            self.create_subscription(
                String,
                f"/{drone}/offboard/phase",
                lambda m, d=drone: self._phases.__setitem__(d, m.data),
                LATCHED,
            )
        self.create_subscription(PoseStamped, "/load/goal", self._on_goal, 10)
        self._stream = SetpointStream(self, self._bodies[1:])
        self.publish_alone("/formation/setpoints")
        self._setpoints = {
            body: self.create_publisher(PoseStamped, f"/{body}/setpoint", LATCHED)
            for body in self._bodies
        }
        self._stage_out = self.create_publisher(String, "/mission/stage", LATCHED)
        self._state_out = self.create_publisher(String, "/formation/state", LATCHED)
        self.create_service(Trigger, "~/start", self._on_start)
        self.create_service(SetBool, "~/pause", self._on_pause)
        self.create_service(Trigger, "~/abort", self._on_abort)

    def _listen_to_poses(self) -> None:
        """Only until the plan is made: in flight they would cost more than all the rest."""
        self._pose_inputs = [
            self.create_subscription(
                PoseStamped, f"/{body}/pose", lambda m, b=body: self._on_pose(b, m), NEWEST
            )
            for body in self._bodies
        ]

    def _take_file(self, file: MissionFile) -> None:
        """Fly this mission from the next start on; a controller or a delivery always listens."""
        control, delivery = file.control(STEP_S), file.delivery()
        self._file, self._control, self._delivery = file, control, delivery
        self._motion: HeardMotion | None = control or delivery
        if self._motion_inputs is not None:
            self._motion_inputs.end()
            self._motion_inputs = None
        if self._motion is not None:
            self._motion_inputs = MotionInputs(self, self._bodies, self._motion, self._heard)
        if delivery is not None and self._happenings is None:
            self._happenings = DeliveryTopics(self, self._on_event)

    def step(self, time_s: float) -> None:
        """Make the plan when everybody is there, start it when all fly, stream it.

        A controller or a delivery waits for the motion of that time, at most until the next step.
        """
        self._pending = False
        motion = self._motion if self._player is not None else None
        if motion is not None and not motion.knows(time_s) and self._pending_since_s != time_s:
            self._pending, self._pending_since_s = True, time_s
            return
        self._step(time_s)

    def _heard(self) -> None:
        """Go on with a step that waited, if all of its motion is there."""
        if self._pending and self._motion is not None and self._motion.knows(self.time_s):
            self._pending = False
            self._step(self.time_s)

    def _step(self, time_s: float) -> None:
        if self._player is None:
            if self._wanted and self._everybody_is_ready():
                self._player = self._make_player()
            else:
                return
        player, phases = self._player, set(self._phases.values())
        if player.state is PlayState.IDLE:
            if "failed" in phases:
                self.get_logger().error("not started: a drone could not be armed")
                return self._give_up()
            if phases == {"flying"}:
                player.start(time_s)
        elif phases == {"landed"}:
            player.finish()
        elif "released" in phases and player.moving:
            self.get_logger().error("paused: a drone has left offboard mode")
            player.pause(time_s)
        if player.state is PlayState.DONE and self._file.lands:
            self._enter("disarmed")
            return self._give_up("done")
        setpoint = self._next_setpoint(player, time_s)
        if player.state is not PlayState.IDLE:  # before the stream, which lets simulated time go on
            self._show_setpoint(setpoint, player.plan, time_s)
        self._send_stream(setpoint, time_s)
        self._show_state("arming" if player.state is PlayState.IDLE else player.state.value)

    def _next_setpoint(self, player: FlightPlayer, time_s: float) -> FormationSetpoint:
        """Set-point of the player; a delivery weighs and watches meanwhile."""
        delivery = self._delivery
        if delivery is None:
            return player.at(time_s)
        delivery.weigh(time_s)
        setpoint = player.at(time_s)
        if player.state is not PlayState.IDLE:
            delivery.watch.enter(setpoint.stage)
        if player.state is PlayState.ABORTING:
            delivery.tell_abort()
        return setpoint

    def start_over(self) -> None:
        """Wait for drones and load of the new simulation.

        The phases stay: the offboard node may have noticed first and told the new ones.
        """
        self._give_up()
        self._stage = ""
        self._wanted = self.get_parameter("autostart").value

    def _everybody_is_ready(self) -> bool:
        if self._stage_out.get_subscription_count() < self._listeners:
            return False
        phases = [self._phases.get(drone) for drone in self._bodies[1:]]
        heard = not self._without_pose() and self._knows_enough()
        return heard and all(p == READY for p in phases)

    def _knows_enough(self) -> bool:
        """Whether a delivery can be watched: its motion is known, somebody opens hooks."""
        delivery, topics = self._delivery, self._happenings
        if delivery is None or topics is None:
            return True
        return topics.heard_by_hooks and delivery.age_s(self.time_s) < POSE_AGE_S

    def _without_pose(self) -> list[str]:
        """Bodies of which no pose has come of late."""
        oldest_s = self.time_s - POSE_AGE_S
        return [b for b in self._bodies if self._heard_s.get(b, -np.inf) < oldest_s]

    def _make_player(self) -> FlightPlayer:
        places = np.array([self._poses[body][:3] for body in self._bodies])
        yaw = float(self._poses["load"][3])
        plan = self._file.plan(places[0], yaw, places[1:])
        for subscription in self._pose_inputs:
            self.destroy_subscription(subscription)
        self.get_logger().info(f"{self._file.name}: {plan.duration_s:.0f} s planned")
        settings = self._goal_settings({})
        if self._delivery is not None and self._happenings is not None:
            ground = GroundSpot(places[0], yaw, places[1:])
            self._delivery.begin(plan, ground, self._happenings.send, self._happenings.tell)
        file = self._file
        keeper = None if self._delivery is None else self._delivery.watch
        return FlightPlayer(plan, file.formation, file.mission, settings, keeper)

    def _on_event(self, kind: str) -> None:
        if self._delivery is not None and self._player is not None:
            self._delivery.on_event(kind)

    def _goal_settings(self, changed: dict[str, float]) -> GoalSettings:
        return GoalSettings(
            **{name: changed.get(name, self.get_parameter(name).value) for name in _GOAL_SETTINGS}
        )

    def _give_up(self, state: str = "idle") -> None:
        """End the stream; the next start makes a new plan."""
        if self._player is not None:
            self._listen_to_poses()
        self._player, self._wanted, self._shown = None, False, None
        self._published.clear()
        self._poses.clear()
        self._heard_s.clear()
        self._show_state(state)

    def _asked(self, wanted: FormationSetpoint, time_s: float) -> tuple[list, list] | None:
        """Accelerations and yaws that the controller asks for, None while it does not fly."""
        control, player = self._control, self._player
        if control is None or player is None:
            return None
        flying = player.state in (PlayState.FLYING, PlayState.GOAL, PlayState.PAUSED)
        if not (flying and takes_part(wanted.stage)):
            control.rest()
            return None
        if control.age_s(time_s) > TOO_OLD_S:
            if control.flies:
                self.get_logger().error("motion of load or drones is missing: formation instead")
            control.rest()
            return None
        acceleration, yaw = control.step(time_s, player.reference_at(time_s))
        return acceleration.tolist(), yaw.tolist()

    def _send_stream(self, wanted: FormationSetpoint, time_s: float) -> None:
        self._stream.send(wanted, self._asked(wanted, time_s), time_s)

    def _show_setpoint(self, now: FormationSetpoint, plan: FlightPlan, time_s: float) -> None:
        """Publish what has changed."""
        before = self._shown
        if before is not None and before.row == now.row:
            return
        self._shown = now
        self._publish_pose("load", now.load_pose[:3], now.load_pose[3], time_s)
        for k, drone in enumerate(self._bodies[1:]):
            position, yaw = now.drone_position_enu_m[k], now.drone_yaw_rad[k]
            if np.isnan(position[2]):  # landing: the ground below
                position = np.array([*position[:2], plan.drone_position_enu_m[-1, k, 2]])
            self._publish_pose(drone, position, yaw, time_s)
        self._enter(now.stage)

    def _publish_pose(self, body: str, position: np.ndarray, yaw: float, time_s: float) -> None:
        pose = (*position.tolist(), float(yaw))
        if self._published.get(body) == pose:
            return
        self._published[body] = pose
        message = PoseStamped()
        message.header.frame_id = "world"
        stamp(message.header.stamp, time_s)
        p, q = message.pose.position, message.pose.orientation
        p.x, p.y, p.z, _ = pose
        turn_to(q, yaw)
        self._setpoints[body].publish(message)

    def _enter(self, stage: str) -> None:
        if stage != self._stage:
            self._stage = stage
            self._stage_out.publish(String(data=stage))
            self.get_logger().info(f"stage {stage}")

    def _show_state(self, state: str) -> None:
        if state != self._state:
            self._state = state
            self._state_out.publish(String(data=state))

    def _on_pose(self, body: str, message: PoseStamped) -> None:
        self._poses[body] = place_and_yaw(message)
        self._heard_s[body] = self.time_s

    def _on_goal(self, message: PoseStamped) -> None:
        try:
            if message.header.frame_id not in ("", "world"):
                raise Refused(f"goal in frame {message.header.frame_id}: must be world")
            if self._player is None:
                raise Refused("no goal accepted: not flying")
            self._player.go_to(place_and_yaw(message), self.time_s)
        except Refused as refusal:
            self.get_logger().warning(str(refusal))

    def _on_start(self, _: Trigger.Request, answer: Trigger.Response) -> Trigger.Response:
        answer.success = self._player is None
        self._wanted = True
        ready, missing = self._everybody_is_ready(), self._without_pose()
        answer.message = "starting" if ready else "starts when all drones are ready"
        if missing:
            answer.message += f"; no pose of {', '.join(missing)}"
        if self._player is not None:
            answer.message = f"cannot start: {self._player.state.value}"
        return answer

    def _on_pause(self, ask: SetBool.Request, answer: SetBool.Response) -> SetBool.Response:
        return self._ask("pause" if ask.data else "resume", answer)

    def _on_abort(self, _: Trigger.Request, answer: Trigger.Response) -> Trigger.Response:
        return self._ask("abort", answer)

    def _ask(self, what: str, answer: SetBool.Response | Trigger.Response):
        """Ask the player; its refusal is the answer."""
        try:
            if self._player is None:
                raise Refused(f"cannot {what}: not flying")
            getattr(self._player, what)(self.time_s)
            answer.success, answer.message = True, self._player.state.value
        except Refused as refusal:
            answer.success, answer.message = False, str(refusal)
        return answer

    def _on_parameters(self, changed: list) -> SetParametersResult:
        values = {parameter.name: parameter.value for parameter in changed}
        try:
            if "mission_file" in values:
                self._take_file(self._chosen_mission(Path(values["mission_file"])))
        except (MuslsError, Refused) as error:
            return SetParametersResult(successful=False, reason=str(error))
        if self._player is not None:
            self._player.goals = self._goal_settings(values)
        return SetParametersResult(successful=True)

    def _chosen_mission(self, path: Path) -> MissionFile:
        """The mission to fly from now on."""
        if self._player is not None:
            raise Refused("mission_file cannot be changed while a mission is flown")
        chosen = read_mission_file(path)
        if chosen.n_drones != self._file.n_drones:
            raise Refused(
                f"mission_file: {path} is for {chosen.n_drones} drones, but this node flies "
                f"{self._file.n_drones}"
            )
        return chosen


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run(FormationNode, args)


if __name__ == "__main__":
    sys.exit(main())
