"""Node `formation`: the load's set-point over time becomes set-points of all drones.

Reads where load and drones stand, makes the flight plan of the mission and streams its set-points;
what is decided on the way is `musls_control.mission.guidance`'s.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import Accel, AccelStamped, Pose, PoseStamped, Transform, Twist, TwistStamped
from rcl_interfaces.msg import SetParametersResult
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.subscription import Subscription
from sensor_msgs.msg import BatteryState, JointState
from std_msgs.msg import Float64MultiArray, Header, String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

from musls_control.brief.brief import Brief, read_brief
from musls_control.brief.findings import Finding
from musls_control.controllers import FormationSpec
from musls_control.guard import LOOK_EVERY_S, Guard, GuardSettings, GuardStep, Health
from musls_control.mission.contingency import Contingency
from musls_control.mission.delivery import Outlet
from musls_control.mission.guidance import (
    AIRBORNE,
    OFFBOARD,
    POSE_AGE_S,
    READY,
    TOO_OLD_S,
    FlightGuidance,
    health_of,
)
from musls_control.mission.phase_end import ALL_DISARMED, DISARMED, PHASE
from musls_control.mission.plan import FlightPlan
from musls_control.mission.player import (
    CommandRefusal,
    FlightPlayer,
    FormationSetpoint,
    GoalSettings,
    PlayState,
)
from musls_control.nodes.stepped_node import (
    LATCHED,
    TIME_BACK_S,
    ManagedNode,
    SteppedNode,
    duration,
    in_world,
    level,
    newest,
    place_and_yaw,
    point,
    quaternion,
    quaternion_of,
    run,
    steady_clock,
    time_of,
    unattended,
    vector,
    vector_of,
)
from musls_control.px4.offboard import HEARTBEAT
from musls_control.real_flight.before_arming import ArmingLimits, check_before_arming
from musls_control.real_flight.graph import (
    STEP_S,
    GraphControl,
    ReceivedMotion,
    control_of,
    graph_contingency,
    guidance_of,
)
from musls_control.reference import LoadReference
from musls_control.trajectories.base import ORDERS
from musls_description.config.errors import ConfigError, MuslsError
from musls_description.numerics.rotations import yaw_of

if TYPE_CHECKING:
    from musls_control.nodes.fly_mission import MissionAction


class HeardTopics:
    """Subscriptions of the node: load, drones and the offboard node."""

    def __init__(self, node: SteppedNode, motion: ReceivedMotion) -> None:
        self._node = node
        self._known = motion
        self._stamps_s: dict[int, float] = {}
        self._motion: list[Subscription] = []
        # Nobody is called for each pose: that would cost more in flight than all the rest.
        self._poses = [unattended(node, PoseStamped, f"{body}/pose") for body in motion.bodies]
        self._heartbeat = unattended(node, Header, HEARTBEAT)
        for body in motion.bodies:
            node.create_subscription(
                String,
                f"{body}/mocap/doubt",
                lambda m, b=body: motion.doubts.__setitem__(b, m.data),
                LATCHED,
            )
        for drone in motion.drones:
            node.create_subscription(
                BatteryState,
                f"{drone}/battery",
                lambda m, d=drone: motion.charge.__setitem__(d, m.percentage),
                LATCHED,
            )
            for name, texts in (("phase", motion.phases), ("reason", motion.reasons)):
                node.create_subscription(
                    String,
                    f"{drone}/offboard/{name}",
                    lambda m, d=drone, t=texts: t.__setitem__(d, m.data),
                    LATCHED,
                )

    def take_newest(self, time_s: float) -> None:
        """Take the newest pose of each body that has come, and the heartbeat."""
        motion = self._known
        for body in self._take_poses():
            motion.heard_s[body] = time_s
        if newest(self._heartbeat) is not None:
            motion.heard_s[OFFBOARD] = time_s

    def tell_time(self, time_s: float) -> bool:
        """Whether the newest poses are of about a time; true where none was heard."""
        bodies = self._take_poses()
        ages_s = [abs(stamp_s - time_s) for stamp_s in self._stamps_s.values()]
        ours = not ages_s or min(ages_s) <= TIME_BACK_S
        for body in bodies:
            self._known.heard_s[body] = time_s if ours else self._node.time_s
        return ours

    def _take_poses(self) -> list[str]:
        """Take the newest poses; returns the bodies of which one has come."""
        bodies = []
        for k, subscription in enumerate(self._poses):
            message = newest(subscription)
            if message is not None:
                self._take_pose(k, message)
                bodies.append(self._known.bodies[k])
        return bodies

    def listen(self, heard: Callable[[], None] | None) -> None:
        """Subscribe to poses, twists and rotor speeds; `heard` is called after each message."""
        for subscription in self._motion:
            self._node.destroy_subscription(subscription)
        self._motion = []
        if heard is None:
            return
        motion = self._known

        def on_pose(body: int, m: PoseStamped) -> None:
            self._take_pose(body, m)
            heard()

        def on_twist(body: int, m: TwistStamped) -> None:
            motion.on_twist(body, time_of(m), vector_of(m.twist.linear), vector_of(m.twist.angular))
            heard()

        def on_rotors(body: int, m: JointState) -> None:
            motion.on_rotors(body, time_of(m), m.velocity)
            heard()

        topics = ((PoseStamped, "pose", on_pose), (TwistStamped, "twist", on_twist))
        rotors = ((JointState, "rotors", on_rotors),)
        self._motion = [
            self._node.create_subscription(kind, f"{body}/{topic}", partial(take, k), 1)
            for k, body in enumerate(motion.bodies)
            for kind, topic, take in (*topics, *(rotors if k else ()))
        ]

    def _take_pose(self, body: int, message: PoseStamped) -> None:
        place = message.pose.position
        turn = message.pose.orientation
        self._stamps_s[body] = time_of(message)
        self._known.on_pose(body, time_of(message), vector_of(place), quaternion_of(turn))


APPLY = "musls/apply_event"
EVENTS = "events"
"""Events that are to happen, such as hooks that open, and what has happened."""

TASK = "formation/task"
"""Task of the agents on the drones: one of the three below, then derivatives and tilt of the
load's set-point, as of `LoadReference`."""

RESTS = 0.0
FLIES = 1.0
OVER = -1.0
"""The formation flies the drones by their places; agents fly them; the flight is over."""

_HAPPENED = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""Stages and events: a new one must not replace one that the network has not sent yet."""

_MAY_BE_ARMED = {"airborne", "arming", "flying", "holding", "released", "silent"}
"""Phases of drones on the ground that have to be disarmed before a start is given up."""

DISARM_S = 10.0
"""Time for that."""

WAITING_HINT_S = 5.0

REPORT_EVERY_S = 1.0
"""Time between two messages on `/diagnostics`."""

LONGEST_GAP_S = 0.5
"""Gap between two steps after which the drones hold already: the plan must not jump ahead."""

_ERRORS = {"guard", "arming", "lost"}
"""Kinds of events that are errors in the log."""


class FormationTopics:
    """Publishers of the node: set-points, stage, state, events, diagnostics."""

    def __init__(
        self, node: SteppedNode, bodies: Sequence[str], action: MissionAction | None
    ) -> None:
        self._node = node
        self._bodies = bodies
        self._action = action
        pub = node.create_publisher
        self._stream = pub(MultiDOFJointTrajectory, "formation/setpoints", 10)
        node.publish_alone("formation/setpoints")
        self._accelerations = [  # for the recorder and for people
            pub(AccelStamped, f"{drone}/setpoint_accel", 10) for drone in bodies[1:]
        ]
        self._setpoints = {body: pub(PoseStamped, f"{body}/setpoint", LATCHED) for body in bodies}
        self._reference = pub(PoseStamped, "load/reference", 10)
        self._task: Publisher | None = None
        self._stage_out = pub(String, "mission/stage", _HAPPENED)
        self._state_out = pub(String, "formation/state", LATCHED)
        self._events = pub(String, EVENTS, _HAPPENED)
        self._diagnostics = pub(DiagnosticArray, "/diagnostics", 10)
        self.stage = ""
        self._state = ""
        self.forget()

    def forget(self) -> None:
        """Forget the flight that has ended."""
        self._row = -1
        self._published = dict[str, tuple[float, ...]]()

    @property
    def listeners(self) -> int:
        """Subscribers of the mission's stage."""
        return self._stage_out.get_subscription_count()

    def tell_event(self, kind: str, what: str) -> None:
        """Publish an event."""
        self._events.publish(String(data=f"{kind}: {what}"))

    def stream(
        self,
        wanted: FormationSetpoint,
        asked: tuple[list, list] | None,
        flight_s: float,
        time_s: float,
    ) -> None:
        """Publish set-points of all drones; last the one that simulated time waits for.

        `asked`: accelerations and yaws of a controller; None while it does not fly.
        """
        header = in_world(time_s)
        pushes, yaws = asked or ([], wanted.drones.yaw_enu_rad.tolist())
        for publisher, push in zip(self._accelerations, pushes, strict=False):
            publisher.publish(AccelStamped(header=header, accel=Accel(linear=vector(push))))
        velocities = wanted.drones.velocity_enu_m_s
        feed_forward = wanted.drones.acceleration_enu_m_s2
        # Beside the places, see `OffboardNode`.
        if asked is None and np.isfinite(feed_forward).any():
            pushes = np.nan_to_num(feed_forward).tolist()
            velocities = np.nan_to_num(velocities)
        now = MultiDOFJointTrajectoryPoint(
            transforms=[
                Transform(translation=vector(position), rotation=level(yaw))
                for position, yaw in zip(wanted.drones.position_enu_m, yaws, strict=True)
            ],
            velocities=[Twist(linear=vector(v)) for v in velocities],
            accelerations=[Twist(linear=vector(push)) for push in pushes],
            time_from_start=duration(flight_s),
        )
        self._stream.publish(
            MultiDOFJointTrajectory(header=header, joint_names=self._bodies[1:], points=[now])
        )

    def give_task(self, flies: float, reference: LoadReference) -> None:
        """Publish the task of the agents."""
        if self._task is None:
            self._task = self._node.create_publisher(Float64MultiArray, TASK, LATCHED)
        numbers = [flies, *reference.derivatives.ravel(), *reference.tilt.ravel()]
        self._task.publish(Float64MultiArray(data=[float(number) for number in numbers]))

    def show_reference(self, player: FlightPlayer, time_s: float) -> None:
        """Publish the load's reference while there are subscribers."""
        if self._reference.get_subscription_count():
            reference = player.reference_at(time_s)
            place = point(reference.position_enu_m)
            turn = quaternion(reference.orientation_wxyz)
            pose = Pose(position=place, orientation=turn)
            self._reference.publish(PoseStamped(header=in_world(time_s), pose=pose))

    def show_setpoint(self, now: FormationSetpoint, plan: FlightPlan, time_s: float) -> None:
        """Publish set-points that have changed, and the stage."""
        if self._row == now.row:
            return
        self._row = now.row
        self._publish_pose("load", now.load_pose[:3], now.load_pose[3], time_s)
        for k, drone in enumerate(self._bodies[1:]):
            position = now.drones.position_enu_m[k]
            yaw = now.drones.yaw_enu_rad[k]
            if np.isnan(position[2]):  # landing: the ground below
                position = np.array([*position[:2], plan.drone_position_enu_m[-1, k, 2]])
            self._publish_pose(drone, position, yaw, time_s)
        self.enter(now.stage)

    def _publish_pose(self, body: str, position: np.ndarray, yaw: float, time_s: float) -> None:
        pose = (*position.tolist(), float(yaw))
        if self._published.get(body) == pose:
            return
        self._published[body] = pose
        place = Pose(position=point(position), orientation=level(yaw))
        self._setpoints[body].publish(PoseStamped(header=in_world(time_s), pose=place))

    def enter(self, stage: str) -> None:
        """Publish that a stage begins."""
        if stage != self.stage:
            self.stage = stage
            self._stage_out.publish(String(data=stage))
            self._node.get_logger().info(f"stage {stage}")

    def show_state(self, state: str) -> None:
        """Publish the state of the formation."""
        if self._action is not None:
            self._action.show_state(state)
        if state != self._state:
            self._state = state
            self._state_out.publish(String(data=state))

    def report(
        self,
        time_s: float,
        bodies: Mapping[str, Health],
        guard: Guard,
        control: GraphControl | None,
        *,
        flying: bool,
    ) -> None:
        """Report the state of all bodies as diagnostic_updater does."""
        statuses = []
        name = self._node.get_name()
        for body, health in bodies.items():
            fault = guard.fault(health)
            level = DiagnosticStatus.OK
            if fault:
                level = DiagnosticStatus.ERROR if flying else DiagnosticStatus.WARN
            entries = {
                "guard": guard.step.value,
                f"{health.news}_age_s": f"{health.age_s:.3f}",
                "tracking_error_m": f"{health.error_m:.3f}",
                "phase": health.phase,
                "charge": f"{health.charge:.2f}",
            }
            statuses.append(
                DiagnosticStatus(
                    level=level,
                    name=f"{name}: {body}",
                    message=fault or "OK",
                    hardware_id=body,
                    values=[KeyValue(key=key, value=value) for key, value in entries.items()],
                )
            )
        if control is not None:
            numbers = control.numbers()
            status = DiagnosticStatus(
                level=DiagnosticStatus.OK,
                name=f"{name}: controller",
                message="flies" if control.flies else "rests",
                values=[KeyValue(key=key, value=f"{v:.6g}") for key, v in numbers.items()],
            )
            statuses.append(status)
        self._diagnostics.publish(DiagnosticArray(header=in_world(time_s), status=statuses))


class FormationNode(ManagedNode):
    """The node: flies the mission's plan through the topics of the offboard node."""

    def __init__(self) -> None:
        super().__init__("formation")
        path = self.value("mission_file", "", "Scenario (resolved) or mission file.", fixed=False)
        if not path:
            raise ConfigError("parameter mission_file is missing: give -p mission_file:=FILE.yaml")
        self._brief = read_brief(Path(path))
        self._starts = self.value("autostart", False, "Start as soon as all drones are ready.")
        self._force = self.value("force", "", "Reason to fly in spite of what speaks against it.")
        self._statistics = self.value("statistics_file", "", "JSON of the controller's numbers.")
        self._listeners = self.count(
            "start_with_listeners", 0, 0, 10, "Subscribers of /mission/stage to wait for at first."
        )
        self._agents = self.value(
            "agents", False, "Whether nodes `agent` fly the drones of controller.kind: agents."
        )
        self._agents_fly = self._by_agents = False
        self._known = ReceivedMotion(self._brief.system.n_drones, self._brief.system.n_rotors)
        self._known.opens_hooks = self._opens_hooks
        self._control: GraphControl | None
        self._contingency: Contingency | None
        self._flight: FlightGuidance | None = None
        self._out = Outlet(
            self._tell, self._request, lambda time_s, what: self._tell(time_s, PHASE, what)
        )
        self._refusal = ""
        self._refused_s = 0.0
        self._begun_s = 0.0
        self._action = self._mission_action()
        self._shows = FormationTopics(self, self._known.bodies, self._action)
        self._hears = HeardTopics(self, self._known)
        self._apply_out: Publisher | None = None
        self._pending = False
        self._pending_since_s = -1.0
        self._looked_s = -np.inf
        self._reported_s = -np.inf
        self._stepped_s = np.inf
        self._guard = Guard()
        self.create_subscription(PoseStamped, "load/goal", self._on_goal, 10)
        names = {drone: f"offboard/land_{drone}" for drone in self._known.drones}
        names["all"] = "offboard/land"
        self._land = {who: self.create_client(Trigger, name) for who, name in names.items()}
        self.create_service(Trigger, "~/start", self._on_start)
        self.create_service(SetBool, "~/pause", self._on_pause)
        self.create_service(Trigger, "~/abort", lambda _, answer: self._ask("abort", answer))
        self._take_file(self._brief)
        self._goals = GoalSettings()
        self.settings(GoalSettings, self._take_goals)
        self.value("guard", True, "Pause, lower and land when something is wrong in flight.")
        self.settings(GuardSettings, lambda values: setattr(self._guard, "settings", values))
        self.settings(ArmingLimits, lambda limits: setattr(self, "_limits", limits))
        self.add_on_set_parameters_callback(self._on_parameters)  # asked first
        self._shows.show_state("idle")
        self.create_timer(WAITING_HINT_S, self._explain_waiting, clock=steady_clock())
        self.come_up()

    @property
    def _player(self) -> FlightPlayer | None:
        return None if self._flight is None else self._flight.player

    def _mission_action(self) -> MissionAction | None:
        """The action, where its type is built."""
        if find_spec("musls_interfaces") is None:
            return None
        from musls_control.nodes.fly_mission import MissionAction

        return MissionAction(self, self._fly, self._turn_back, "idle")

    def _fly(self, mission_file: str) -> str:
        """Start a mission; returns why not, or ""."""
        if mission_file:
            parameter = Parameter("mission_file", value=mission_file)
            (result,) = self.set_parameters([parameter])
            if not result.successful:
                return result.reason
        answer = self._on_start(Trigger.Request(), Trigger.Response())
        return "" if answer.success else answer.message

    def _turn_back(self) -> str:
        """Abort the flight, or the start that waits; returns why not, or ""."""
        if self._player is None or self._player.state is PlayState.IDLE:
            self._give_up()
            return ""
        answer = self._ask("abort", Trigger.Response())
        return "" if answer.success else answer.message

    @property
    def busy(self) -> str:
        """Why the node must not end now: a mission is flown."""
        return "" if self._player is None else f"a mission is {self._player.state.value}"

    def _explain_waiting(self) -> None:
        """Log what a start that was asked for waits for, and the end of a flight."""
        flight = self._flight
        if flight is not None and flight.player.touches_down and flight.end.waits_for:
            phases = [f"{drone} is {phase}" for drone, phase in flight.end.waits_for.items()]
            self.get_logger().info(f"not over: {', '.join(phases)}")
        waits = self._starts and flight is None and self.active
        if reasons := self._missing() if waits else []:
            self.get_logger().warning(f"not started: {', '.join(reasons)}")

    def _missing(self) -> list[str]:
        """Conditions that a start waits for."""
        motion = self._known
        lands = self._brief.lands
        ready = (READY,) if lands else (READY, AIRBORNE)
        charge = self._guard.settings.charge_to_start
        reasons = motion.missing(self.time_s, ready, charge)
        if self._brief.delivers and motion.oldest_s(self.time_s) > POSE_AGE_S:
            reasons.append("no twists or rotor speeds of all bodies")
        if self._brief.delivers and not self._opens_hooks():
            reasons.append(f"nobody listens to {APPLY}")
        if self._shows.listeners < self._listeners:
            reasons.append("too few listen to mission/stage")
        return reasons

    def destroy_node(self) -> None:
        """Write the controller's numbers for the command that started the node."""
        if self._statistics:
            numbers = {} if self._control is None else self._control.numbers()
            Path(self._statistics).write_text(json.dumps(numbers), encoding="utf-8")
        super().destroy_node()

    def _take_file(self, brief: Brief) -> None:
        """Fly this mission from the next start on; a controller or a delivery always listens."""
        begin = time.perf_counter()
        if not isinstance(brief.controller, FormationSpec):
            self.get_logger().info("building the controller; compiling it may take a minute")
        self._by_agents = bool(self._agents) and brief.controller.kind == "agents"
        if self._by_agents:
            self._end_task()
        control = None if self._by_agents else control_of(brief, STEP_S)
        contingency = graph_contingency(brief)
        if control is not None:
            self.get_logger().info(f"controller ready after {time.perf_counter() - begin:.1f} s")
        self._brief = brief
        self._control = control
        self._contingency = contingency
        self._known.expect_rotors(brief.system.n_rotors)
        self._hears_motion = control is not None or brief.delivers
        self._hears.listen(self._heard if self._hears_motion else None)
        if (brief.delivers or contingency is not None) and self._apply_out is None:
            self._apply_out = self.create_publisher(String, APPLY, 10)
            self.create_subscription(String, EVENTS, self._on_event, 100)

    def step(self, time_s: float) -> None:
        """Make the plan when all poses are known, start it when all drones fly, stream it.

        A controller or a delivery waits for the motion of that time, at most until the next step.
        """
        gap_s = time_s - self._stepped_s
        self._stepped_s = time_s
        if gap_s > LONGEST_GAP_S and self._flight is not None:
            self._flight.stand_still(time_s, gap_s)
        if not self._looked_s <= time_s < self._looked_s + LOOK_EVERY_S:
            self._looked_s = time_s
            self._look(time_s)
        self._pending = False
        if (
            self._flight is not None
            and self._hears_motion
            and not self._known.is_complete_until(time_s)
            and self._pending_since_s != time_s
        ):
            self._pending = True
            self._pending_since_s = time_s
            return
        self._step(time_s)

    def _heard(self) -> None:
        """Continue a step that waited, once all of its motion is there."""
        if self._pending and self._known.is_complete_until(self.time_s):
            self._pending = False
            self._step(self.time_s)

    def _step(self, time_s: float) -> None:
        if self._refusal and self.get_parameter("autostart").value:
            phases = self._known.phases
            armed = [d for d in self._known.drones if phases.get(d) in _MAY_BE_ARMED]
            if not armed or time_s - self._refused_s > DISARM_S:  # nobody is there to start again
                raise ConfigError(
                    f"not started: {self._refusal}" + (f"; armed: {', '.join(armed)}" * bool(armed))
                )
            return
        if self._flight is None:
            if not self._starts or self._missing():
                return
            try:
                self._flight = self._begin_flight()
            except ConfigError as error:
                if self.get_parameter("autostart").value:  # nobody is there to start it again
                    raise
                self.get_logger().error(f"not started: {error}")
                return self._give_up()
        flight = self._flight
        player = self._flight.player
        if player.state is PlayState.IDLE:
            self._begun_s = time_s
            if why := flight.begin(time_s):
                return self._refuse(why, time_s)
        elif flight.is_over(time_s):
            player.finish()
        if player.state is PlayState.DONE and self._brief.lands:
            flight.enter(time_s, DISARMED, ALL_DISARMED)
            self._shows.enter(DISARMED)
            return self._give_up("done")
        setpoint = flight.step(time_s)
        waits = player.state is PlayState.IDLE
        if not waits:  # before the stream, which lets simulated time go on
            self._shows.show_reference(player, time_s)
            self._shows.show_setpoint(setpoint, player.plan, time_s)
        if self._by_agents:
            self._give_task(flight, time_s, waits=waits)
        flight_s = 0.0 if waits else time_s - self._begun_s + STEP_S
        self._shows.stream(setpoint, self._asked(flight, time_s), flight_s, time_s)
        self._shows.show_state("arming" if waits else player.state.value)

    def _give_task(self, flight: FlightGuidance, time_s: float, *, waits: bool) -> None:
        """Tell the agents where the load is to be, and whether they fly it."""
        flies = not waits and flight.controls()
        if self._agents_fly and not flies:
            flight.hand_back()
        self._agents_fly = flies
        reference = flight.player.reference_at(time_s)
        self._shows.give_task(FLIES if flies else RESTS, reference)

    def _end_task(self) -> None:
        """Tell the agents that there is no flight."""
        self._agents_fly = False
        self._shows.give_task(OVER, LoadReference(np.zeros((ORDERS, 4))))

    def _refuse(self, why: str, time_s: float) -> None:
        """Give the start up, because drones cannot be armed: the offboard node disarms all."""
        self._tell(time_s, "arming", why)
        self._give_up()
        self._refusal = why
        self._refused_s = time_s

    def _look(self, time_s: float) -> None:
        """Take the poses, let the guard act on faults, and report the state."""
        self._hears.take_newest(time_s)
        flight = self._flight
        shows = self._shows
        if flight is None:
            self._guard.step = GuardStep.WATCH
            bodies = health_of(self._known, time_s)
        else:
            flight.watches = self.get_parameter("guard").value
            flight.look(time_s)
            bodies = flight.health(time_s)
        if not self._reported_s <= time_s < self._reported_s + REPORT_EVERY_S:
            self._reported_s = time_s
            shows.report(time_s, bodies, self._guard, self._control, flying=flight is not None)
            if self._action is not None and flight is not None:
                player = flight.player
                left_s = (len(player.plan.stage) - 1 - player.row) / player.plan.rate_hz
                errors_m = [bodies[drone].error_m for drone in self._known.drones]
                self._action.show_progress(shows.stage, player.state.value, left_s, errors_m)

    def follows(self, time_s: float) -> bool:
        """Whether a time that jumps is that of this node's own simulator.

        See `SteppedNode`.
        """
        return self._hears.tell_time(time_s)

    def start_over(self) -> None:
        """Wait for drones and load of the new simulation.

        The phases stay: the offboard node may have noticed first and told the new ones.
        """
        self._give_up()
        self._shows.stage = ""
        self._starts = self.get_parameter("autostart").value

    def _opens_hooks(self) -> bool:
        """Whether a node is there that carries out events, such as hooks that open."""
        return self._apply_out is not None and self._apply_out.get_subscription_count() > 0

    def _checked_plan(self) -> tuple[FlightPlan, list[Finding]]:
        """Plan from where load and drones stand, and what is forced.

        Raises:
            ConfigError: It must not be flown.
        """
        estimate = self._known.estimate
        places = estimate.position_enu_m.copy()
        yaw = float(yaw_of(estimate.orientation_wxyz[0]))
        plan = self._brief.plan_from(places[0], yaw, places[1:])
        forced = check_before_arming(self._brief, plan, self._limits, force=bool(self._force))
        return plan, forced

    def _begin_flight(self) -> FlightGuidance:
        plan, forced = self._checked_plan()
        for finding in forced:
            self._tell(self.time_s, "forced", f"{finding.text} (force: {self._force})")
        self.get_logger().info(f"{self._brief.name}: {plan.duration_s:.0f} s planned")
        resume = f"ros2 service call {self.resolve_service_name('~/pause')} std_srvs/srv/SetBool"
        return guidance_of(
            self._brief,
            plan,
            self._known,
            self._out,
            goals=self._goals,
            guard=self._guard,
            contingency=self._contingency,
            resume_by=f'resume ({resume} "{{data: false}}", or musls ros ask resume)',
        )

    def _tell(self, time_s: float, kind: str, what: str) -> None:
        """Publish and log an event."""
        self._shows.tell_event(kind, what)
        text = f"not started: {what}" if kind == "arming" else f"{kind}: {what}"
        self.say(text, error=kind in _ERRORS)

    def _request(self, request: dict[str, Any]) -> None:
        """Request landings of autopilots, or an event."""
        if request["kind"] == "land":
            who = f"drone_{request['drone']}" if "drone" in request else "all"
            self._land[who].call_async(Trigger.Request())
        elif self._apply_out is not None:
            self._apply_out.publish(String(data=json.dumps(request)))

    def _on_event(self, message: String) -> None:
        if self._player is not None and self._player.keeper is not None:
            self._player.keeper.on_event(message.data.partition(":")[0])

    def _take_goals(self, goals: GoalSettings) -> None:
        self._goals = goals
        if self._player is not None:
            self._player.goals = goals

    def _give_up(self, state: str = "idle") -> None:
        """End the stream; the next start makes a new plan."""
        self._flight = None
        self._starts = False
        self._refusal = ""
        if self._by_agents:
            self._end_task()
        self._shows.forget()
        self._known.forget()
        self._shows.show_state(state)

    def _asked(self, flight: FlightGuidance, time_s: float) -> tuple[list, list] | None:
        """Accelerations and yaws that the controller asks for, None while it does not fly."""
        control = self._control
        if control is None:
            return None
        flew = control.flies
        commands = control.asked(flight, self._known, time_s)
        if flew and self._known.oldest_s(time_s) > TOO_OLD_S:
            self.get_logger().error("motion of load or drones is missing: formation instead")
        for kind, what in control.take_events():
            self._tell(time_s, kind, what)
        return commands and (commands[0].tolist(), commands[1].tolist())

    def _on_goal(self, message: PoseStamped) -> None:
        try:
            if message.header.frame_id not in ("", "world"):
                raise CommandRefusal(f"goal in frame {message.header.frame_id}: must be world")
            if self._player is None:
                raise CommandRefusal("no goal accepted: not flying")
            self._player.go_to(place_and_yaw(message), self.time_s)
        except CommandRefusal as refusal:
            self.get_logger().warning(str(refusal))

    def _on_start(self, _: Trigger.Request, answer: Trigger.Response) -> Trigger.Response:
        if self._player is not None:
            answer.message = f"cannot start: {self._player.state.value}"
            return answer
        if not self.active:
            answer.message = "cannot start: the node is not active"
            return answer
        ready = not self._missing()
        bodies = self._known.unseen(self.time_s)
        answer.message = "starting" if ready else "starts when all drones are ready"
        if bodies:
            answer.message += f"; no pose of {', '.join(bodies)}"
        try:
            if ready:
                self._checked_plan()
            answer.success = self._starts = True
        except ConfigError as error:
            answer.message = f"cannot start: {error}"
        return answer

    def _on_pause(self, ask: SetBool.Request, answer: SetBool.Response) -> SetBool.Response:
        return self._ask("pause" if ask.data else "resume", answer)

    def _ask(self, what: str, answer: SetBool.Response | Trigger.Response):
        """Pass a request to the player; its refusal is the answer."""
        try:
            if self._player is None:
                raise CommandRefusal(f"cannot {what}: not flying")
            getattr(self._player, what)(self.time_s)
            answer.success = True
            answer.message = self._player.state.value
        except CommandRefusal as refusal:
            answer.success = False
            answer.message = str(refusal)
        return answer

    def _on_parameters(self, changed: list) -> SetParametersResult:
        values = {parameter.name: parameter.value for parameter in changed}
        try:
            if "mission_file" in values:
                self._take_file(self._chosen_mission(Path(values["mission_file"])))
        except (MuslsError, CommandRefusal) as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    def _chosen_mission(self, path: Path) -> Brief:
        if self._player is not None:
            raise CommandRefusal("mission_file cannot be changed while a mission is flown")
        brief = read_brief(path)
        if brief.system.n_drones != self._brief.system.n_drones:
            raise CommandRefusal(
                f"mission_file: {path} is for {brief.system.n_drones} drones, but this node flies "
                f"{self._brief.system.n_drones}"
            )
        return brief


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run(FormationNode, args)


if __name__ == "__main__":
    sys.exit(main())
