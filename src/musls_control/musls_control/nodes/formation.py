"""Node `formation`: the load's set-point over time becomes set-points of all drones.

Reads where load and drones stand, makes the flight plan of the mission and streams its set-points;
what happens on the way (pause, goals, abort) is `musls_control.mission.player`'s.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import (
    Accel,
    AccelStamped,
    Pose,
    PoseStamped,
    Transform,
    Twist,
    TwistStamped,
)
from rcl_interfaces.msg import SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from std_msgs.msg import Header, String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

from musls_control.contingency.rest_of_flight import UNWATCHED
from musls_control.graph_flight import (
    STEP_S,
    GraphContingency,
    GraphControl,
    GraphDelivery,
    MissionFile,
    ReceivedMotion,
    read_mission_file,
)
from musls_control.guard import (
    LAG_S,
    RELEASED,
    FlightEnd,
    Guard,
    GuardSettings,
    GuardStep,
    Health,
    tracking_error_m,
)
from musls_control.mission.before_arming import ArmingLimits
from musls_control.mission.plan import FlightPlan
from musls_control.mission.player import (
    FlightPlayer,
    FormationSetpoint,
    GoalSettings,
    PlayState,
    Refused,
)
from musls_control.mission.spec import BEFORE_FORMATION, GROUND_PHASES, LANDING
from musls_control.nodes.stepped_node import (
    LATCHED,
    ManagedNode,
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
from musls_control.offboard import HEARTBEAT, start_refusal
from musls_description.config.errors import ConfigError, MuslsError

if TYPE_CHECKING:
    from musls_control.nodes.fly_mission import MissionAction


def listen_to_motion(
    node: Node, bodies: Sequence[str], motion: ReceivedMotion, heard: Callable[[], None]
) -> list[Subscription]:
    """Listen to poses, twists and rotor speeds; `heard` is called after each message."""

    def on_pose(body: int, m: PoseStamped) -> None:
        pose = m.pose
        motion.on_pose(body, time_of(m), vector_of(pose.position), quaternion_of(pose.orientation))
        heard()

    def on_twist(body: int, m: TwistStamped) -> None:
        motion.on_twist(body, time_of(m), vector_of(m.twist.linear), vector_of(m.twist.angular))
        heard()

    def on_rotors(body: int, m: JointState) -> None:
        motion.on_rotors(body, time_of(m), m.velocity)
        heard()

    topics = ((PoseStamped, "pose", on_pose), (TwistStamped, "twist", on_twist))
    rotors = ((JointState, "rotors", on_rotors),)
    return [
        node.create_subscription(kind, f"{body}/{topic}", partial(take, k), 1)
        for k, body in enumerate(bodies)
        for kind, topic, take in (*topics, *(rotors if k else ()))
    ]


APPLY, EVENTS = "musls/apply_event", "events"
"""Topics of a delivery: events that are to happen, and what has happened."""

_HAPPENED = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""Stages and events: a new one must not replace one that the network has not sent yet."""

OFFBOARD = "offboard"
"""The node that guides the drones, among the bodies that are watched."""

_MAY_BE_ARMED = {"arming", "flying", "holding", RELEASED, "silent"}
"""Phases of drones on the ground that have to be disarmed before a start is given up."""

SILENT_S = 5.0
"""Silence of the offboard node after which a start is given up; on the ground there is time."""

DISARM_S = 10.0
"""Time for that."""

WAITING_HINT_S = 5.0
READY = "idle"
POSE_AGE_S = 1.0
"""Older poses do not say where load and drones stand."""

TOO_OLD_S = 0.1
"""Age of the motion of load or drones at which a controller gives way to the formation."""

LOOK_EVERY_S, REPORT_EVERY_S = 0.1, 1.0
"""Of the guard, and of `/diagnostics`."""

LONGEST_GAP_S = 0.5
"""After a longer gap between two steps the drones hold already: the plan must not jump ahead."""

HELD_LOOKS = 10
"""Looks in a row at which a drone holds that are no fault: a node was late, it goes on at once."""


class FormationNode(ManagedNode):
    """See the module's text."""

    def __init__(self) -> None:
        super().__init__("formation")
        path = self.value("mission_file", "", "Scenario (resolved) or mission file.", fixed=False)
        if not path:
            raise ConfigError("parameter mission_file is missing: give -p mission_file:=FILE.yaml")
        self._file: MissionFile = read_mission_file(Path(path))
        self._wanted = self.value("autostart", False, "Start as soon as all drones are ready.")
        self._statistics = self.value("statistics_file", "", "JSON of the controller's numbers.")
        self._listeners = self.count(
            "start_with_listeners", 0, 0, 10, "Subscribers of /mission/stage to wait for at first."
        )
        self._bodies = ["load", *(f"drone_{i + 1}" for i in range(self._file.n_drones))]
        self._control: GraphControl | None
        self._delivery: GraphDelivery | None
        self._contingency: GraphContingency | None
        self._given_up, self._lands_beside = "", False
        self._poses: dict[str, np.ndarray] = {}
        self._heard_s: dict[str, float] = {}
        self._phases: dict[str, str] = {}
        self._reasons: dict[str, str] = {}
        self._refusal, self._refused_s = "", 0.0
        self._end, self._said_lost = FlightEnd(), set[str]()
        self._begun_s = 0.0
        self._player: FlightPlayer | None = None
        self._shown: FormationSetpoint | None = None
        self._recent: deque[np.ndarray] = deque(maxlen=1 + round(LAG_S / LOOK_EVERY_S))
        self._published: dict[str, tuple[float, ...]] = {}
        self._stage, self._state = "", ""
        self._action = self._mission_action()
        self._motion_inputs: list[Subscription] = []
        self._apply_out: Publisher | None = None
        self._pending, self._pending_since_s = False, -1.0
        self._looked_s, self._reported_s, self._stepped_s = -np.inf, -np.inf, np.inf
        self._held_looks = dict.fromkeys(self._bodies, 0)
        self._guard = Guard()
        self._make_topics()
        self._listen_to_poses()
        self._take_file(self._file)
        self._goals = GoalSettings()
        self.settings(GoalSettings, self._take_goals)
        self.value("guard", True, "Pause, lower and land when something is wrong in flight.")
        self.settings(GuardSettings, self._take_guard)
        self.settings(ArmingLimits, lambda limits: setattr(self, "_limits", limits))
        self.add_on_set_parameters_callback(self._on_parameters)  # asked first
        self._show_state("idle")
        self.create_timer(WAITING_HINT_S, self._explain_waiting, clock=steady_clock())
        self.come_up()

    def _mission_action(self) -> MissionAction | None:
        """The action, where its type is built."""
        if find_spec("musls_interfaces") is None:
            return None
        from musls_control.nodes.fly_mission import MissionAction

        return MissionAction(self, self._fly, self._turn_back, "idle")

    def _fly(self, mission_file: str) -> str:
        """Start a mission; returns why not, or ""."""
        if mission_file:
            chosen = Parameter("mission_file", value=mission_file)
            (taken,) = self.set_parameters([chosen])
            if not taken.successful:
                return taken.reason
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
        """A mission is flown."""
        return "" if self._player is None else f"a mission is {self._player.state.value}"

    def _explain_waiting(self) -> None:
        """Say what a start that was asked for waits for, and the end of a flight."""
        if self._player is not None and self._player.touches_down and self._end.waits_for:
            waits = ", ".join(f"{drone} is {phase}" for drone, phase in self._end.waits_for.items())
            self.get_logger().info(f"not over: {waits}")
        if not self._wanted or self._player is not None or not self.active:
            return
        phases = {d: self._phases.get(d, "not heard") for d in self._bodies[1:]}
        missing = [f"no pose of {body}" for body in self._without_pose()]
        missing += [] if self._is_guided() else ["no heartbeat of the offboard node"]
        missing += [] if self._knows_enough() else ["no twists or rotor speeds of all bodies"]
        missing += [
            f"{drone} is {phase}" + (f": {why}" if (why := self._reasons.get(drone)) else "")
            for drone, phase in phases.items()
            if phase != READY
        ]
        if missing:
            self.get_logger().warning(f"not started: {', '.join(missing)}")

    def destroy_node(self) -> None:
        """Write the controller's numbers for the command that started the node."""
        if self._statistics:
            numbers = {} if self._control is None else self._control.numbers()
            Path(self._statistics).write_text(json.dumps(numbers), encoding="utf-8")
        super().destroy_node()

    def _make_topics(self) -> None:
        for drone in self._bodies[1:]:
            for name, told in (("phase", self._phases), ("reason", self._reasons)):
                self.create_subscription(
                    String,
                    f"{drone}/offboard/{name}",
                    lambda m, d=drone, t=told: t.__setitem__(d, m.data),
                    LATCHED,
                )
        self.create_subscription(PoseStamped, "load/goal", self._on_goal, 10)
        self._stream = self.create_publisher(MultiDOFJointTrajectory, "formation/setpoints", 10)
        self.publish_alone("formation/setpoints")
        self._accelerations = [  # for the recorder and for people
            self.create_publisher(AccelStamped, f"{drone}/setpoint_accel", 10)
            for drone in self._bodies[1:]
        ]
        self._setpoints = {
            body: self.create_publisher(PoseStamped, f"{body}/setpoint", LATCHED)
            for body in self._bodies
        }
        self._reference_out = self.create_publisher(PoseStamped, "load/reference", 10)
        self._stage_out = self.create_publisher(String, "mission/stage", _HAPPENED)
        self._state_out = self.create_publisher(String, "formation/state", LATCHED)
        self._events_out = self.create_publisher(String, EVENTS, _HAPPENED)
        self._diagnostics_out = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._land = self.create_client(Trigger, "offboard/land")
        self.create_service(Trigger, "~/start", self._on_start)
        self.create_service(SetBool, "~/pause", self._on_pause)
        self.create_service(Trigger, "~/abort", self._on_abort)

    def _listen_to_poses(self) -> None:
        """Not called for each: that would cost more in flight than all the rest."""
        self._pose_inputs = {
            body: unattended(self, PoseStamped, f"{body}/pose") for body in self._bodies
        }
        self._heartbeat = unattended(self, Header, HEARTBEAT)

    def _take_poses(self) -> None:
        """Take the newest pose of each body that has come."""
        for body, subscription in self._pose_inputs.items():
            message = newest(subscription)
            if message is not None:
                self._poses[body] = place_and_yaw(message)
                self._heard_s[body] = self.time_s
        if newest(self._heartbeat) is not None:
            self._heard_s[OFFBOARD] = self.time_s

    def _take_file(self, file: MissionFile) -> None:
        """Fly this mission from the next start on; a controller or a delivery always listens."""
        control, delivery, contingency = file.control(STEP_S), file.delivery(), file.contingency()
        self._contingency = contingency
        self._file, self._control, self._delivery = file, control, delivery
        self._motion: ReceivedMotion | None = control or delivery
        for subscription in self._motion_inputs:
            self.destroy_subscription(subscription)
        self._motion_inputs = []
        if self._motion is not None:
            self._motion_inputs = listen_to_motion(self, self._bodies, self._motion, self._heard)
        if (delivery or self._contingency) is not None and self._apply_out is None:
            self._apply_out = self.create_publisher(String, APPLY, 10)
            self.create_subscription(String, EVENTS, self._on_event, 100)

    def step(self, time_s: float) -> None:
        """Make the plan when everybody is there, start it when all fly, stream it.

        A controller or a delivery waits for the motion of that time, at most until the next step.
        """
        gap_s, self._stepped_s = time_s - self._stepped_s, time_s
        if gap_s > LONGEST_GAP_S and self._player is not None:
            self._player.stand_still(gap_s)
            if self._player.state is not PlayState.IDLE:
                self._tell_event("late", f"no set-points for {gap_s:.1f} s: the plan goes on later")
        if not self._looked_s <= time_s < self._looked_s + LOOK_EVERY_S:
            self._looked_s = time_s
            self._look(time_s)
        self._pending = False
        motion = self._motion if self._player is not None else None
        if (
            motion is not None
            and not motion.is_complete_until(time_s)
            and self._pending_since_s != time_s
        ):
            self._pending, self._pending_since_s = True, time_s
            return
        self._step(time_s)

    def _heard(self) -> None:
        """Go on with a step that waited, if all of its motion is there."""
        if (
            self._pending
            and self._motion is not None
            and self._motion.is_complete_until(self.time_s)
        ):
            self._pending = False
            self._step(self.time_s)

    def _step(self, time_s: float) -> None:
        if self._refusal and self.get_parameter("autostart").value:
            armed = [d for d in self._bodies[1:] if self._phases.get(d) in _MAY_BE_ARMED]
            if not armed or time_s - self._refused_s > DISARM_S:  # nobody is there to start again
                raise ConfigError(
                    f"not started: {self._refusal}" + (f"; armed: {', '.join(armed)}" * bool(armed))
                )
            return
        if self._player is None:
            if not (self._wanted and self._everybody_is_ready()):
                return
            try:
                self._player = self._make_player()
            except ConfigError as error:
                if self.get_parameter("autostart").value:  # nobody is there to start it again
                    raise
                self.get_logger().error(f"not started: {error}")
                return self._give_up()
        player = self._player
        if player.state is PlayState.IDLE:
            guided = self._age_s(OFFBOARD, time_s) < SILENT_S
            if why := start_refusal(self._phases, self._reasons, guided=guided):
                return self._refuse(why, time_s)
            if set(self._phases.values()) == {"flying"}:
                player.start(time_s)
                self._begun_s = time_s
        elif self._is_over(player, time_s):
            player.finish()
        if player.state is PlayState.DONE and self._file.lands:
            self._enter("disarmed")
            return self._give_up("done")
        setpoint = self._next_setpoint(player, time_s)
        if player.state is not PlayState.IDLE and self._looked_s == time_s:
            self._recent.append(setpoint.drone_position_enu_m)
        if player.state is not PlayState.IDLE:  # before the stream, which lets simulated time go on
            self._show_reference(player, time_s)
            self._show_setpoint(setpoint, player.plan, time_s)
        self._send_stream(setpoint, time_s)
        self._show_state("arming" if player.state is PlayState.IDLE else player.state.value)

    def _refuse(self, why: str, time_s: float) -> None:
        """Give the start up, because drones cannot be armed: the offboard node disarms all."""
        self._tell_event("arming", why)
        self.get_logger().error(f"not started: {why}")
        self._give_up()
        self._refusal, self._refused_s = why, time_s

    def _is_over(self, player: FlightPlayer, time_s: float) -> bool:
        """Whether all drones are disarmed, or lost and said so."""
        over = self._end.look(
            time_s,
            {drone: self._phases.get(drone, "") for drone in self._bodies[1:]},
            lost_after_s=self._guard.settings.lost_after_s,
            heard=self._age_s(OFFBOARD, time_s) <= self._guard.settings.pose_age_s,
            descends=player.touches_down or self._guard.step is GuardStep.LAND,
            given_up=self._given_up,
        )
        for drone in sorted(self._end.lost - self._said_lost):
            seen = self._poses.get(drone)
            place = "never seen" if seen is None else f"last seen {seen[2]:.2f} m high"
            what = f"{drone}: not known to be disarmed, {place}"
            self._tell_event("lost", what)
            self.get_logger().error(f"lost: {what}")
        self._said_lost = set(self._end.lost)
        return over

    def _age_s(self, body: str, time_s: float) -> float:
        """Age of the newest pose of a body, or of the offboard node's heartbeat."""
        return time_s - self._heard_s.get(body, -np.inf)

    def _look(self, time_s: float) -> None:
        """Take the poses; let the guard act on what is wrong, and tell how all are."""
        self._take_poses()
        bodies = {body: self._health(body, time_s) for body in self._bodies}
        bodies[OFFBOARD] = Health(self._age_s(OFFBOARD, time_s), news="heartbeat")
        player = self._player
        if player is None or player.state in (PlayState.IDLE, PlayState.DONE):
            self._guard.step = GuardStep.WATCH
        elif self.get_parameter("guard").value and not player.touches_down:
            watched = {body: h for body, h in bodies.items() if body != self._given_up}
            survives = self._survive(player, time_s, watched)
            waits = player.state is PlayState.PAUSED and not player.held
            carries = self._stage not in (*BEFORE_FORMATION, *LANDING)
            step = None
            if not survives:
                step = self._guard.look(time_s, watched, waits=waits, carries=carries)
            if step is not None:
                self._act(step, player, time_s, watched)
        if not self._reported_s <= time_s < self._reported_s + REPORT_EVERY_S:
            self._reported_s = time_s
            self._diagnostics_out.publish(self._report(time_s, bodies))
            if self._action is not None and player is not None:
                left_s = (len(player.plan.stage) - 1 - player.row) / player.plan.rate_hz
                errors_m = [bodies[drone].error_m for drone in self._bodies[1:]]
                self._action.show_progress(self._stage, player.state.value, left_s, errors_m)

    def _survive(self, player: FlightPlayer, time_s: float, bodies: dict[str, Health]) -> bool:
        """Go on without a drone that is lost, where there is a way; only one is given up."""
        way, hooks = self._contingency, self._apply_out
        if way is None or hooks is None or not self._recent or self._without_pose():
            return False
        places = np.array([self._poses[drone][:3] for drone in self._bodies[1:]])
        if self._given_up:
            self._land_beside(way, player, time_s, places)
            return False
        falls = way.fallen(time_s, places, self._recent[-1])
        name = f"drone_{falls[0] + 1}" if falls else self._guard.given_up(time_s, bodies)
        if not name or self._stage in UNWATCHED or not hooks.get_subscription_count():
            return False
        lost = self._bodies.index(name) - 1
        found = way.without(player.plan, player.row, lost, places[lost], falls=bool(falls))
        if found is None:
            text = f"{name} is lost where no way of the others keeps clear of it"
            self.get_logger().warning(text, once=True)
            return False
        plan, goes_on, what = found
        self._apply_event({"kind": "release", "cable": lost + 1})
        holds = goes_on and player.held  # a person decides when the mission goes on
        reformed = int((plan.stage == plan.stage[0]).sum()) - 1
        player.swap(plan, time_s, way.down, hold_row=reformed if holds else -1)
        self._given_up = name
        self._tell_step(
            self._guard.survive(time_s),
            f"{name}: {'falls' if falls else self._guard.fault(bodies[name])}; its hook opens; "
            + what
            + (" after the pause" if holds else ""),
        )
        return True

    def _land_beside(
        self, way: GraphContingency, player: FlightPlayer, time_s: float, places: np.ndarray
    ) -> None:
        """Land clear of the drone that was given up, once the others begin to spread out."""
        if self._stage != "spread" or self._lands_beside:
            return
        self._lands_beside = True
        lost = self._bodies.index(self._given_up) - 1
        plan = way.beside(player.plan, player.row, lost, places)
        if plan is not None:
            player.swap(plan, time_s, hold_row=0)

    def _health(self, body: str, time_s: float) -> Health:
        """Health of a body; a drone's distance from its set-point only in flight."""
        age_s, error_m = self._age_s(body, time_s), 0.0
        if self._recent and body in self._poses and body != "load":
            wanted = np.stack(self._recent)[:, self._bodies.index(body) - 1]
            error_m = tracking_error_m(wanted, self._poses[body][:3])
        phase = self._phases.get(body, "")
        self._held_looks[body] = self._held_looks[body] + 1 if phase == "holding" else 0
        if 0 < self._held_looks[body] <= HELD_LOOKS:
            phase = "flying"
        return Health(age_s, error_m, phase)

    def _act(
        self, step: GuardStep, player: FlightPlayer, time_s: float, bodies: dict[str, Health]
    ) -> None:
        """Do what the guard says, and tell it."""
        if step is GuardStep.PAUSE and player.moving:
            player.pause(time_s, by_guard=True)
        elif step is GuardStep.LOWER:
            player.set_down(time_s)
        elif step is GuardStep.RETURN:
            player.turn_back(time_s)
        elif step is GuardStep.LAND:
            self._land.call_async(Trigger.Request())
        faults = [f"{b}: {what}" for b, h in bodies.items() if (what := self._guard.fault(h))]
        self._tell_step(step, ", ".join(faults) or self._after_faults(step))

    def _after_faults(self, step: GuardStep) -> str:
        """What is to be done by people when the faults are over."""
        after_s = self._guard.settings.abort_after_s
        if step is GuardStep.RETURN:
            return f"nobody resumed or aborted for {after_s:g} s"
        pause = self.resolve_service_name("~/pause")
        return (
            "faults are over: resume (ros2 service call "
            f'{pause} std_srvs/srv/SetBool "{{data: false}}", or musls ros ask resume) or abort; '
            f"aborted in {after_s:g} s"
        )

    def _tell_step(self, step: GuardStep, why: str) -> None:
        self._tell_event("guard", f"{step.value}: {why}")
        self.get_logger().error(f"guard: {step.value}: {why}")

    def _report(self, time_s: float, bodies: dict[str, Health]) -> DiagnosticArray:
        """State of all bodies, as diagnostic_updater tells it."""
        flying = self._player is not None
        statuses = []
        for body, health in bodies.items():
            fault = self._guard.fault(health)
            level = DiagnosticStatus.OK
            if fault:
                level = DiagnosticStatus.ERROR if flying else DiagnosticStatus.WARN
            told = {
                "guard": self._guard.step.value,
                f"{health.news}_age_s": f"{health.age_s:.3f}",
                "tracking_error_m": f"{health.error_m:.3f}",
                "phase": health.phase,
            }
            values = [KeyValue(key=key, value=value) for key, value in told.items()]
            statuses.append(
                DiagnosticStatus(
                    level=level,
                    name=f"{self.get_name()}: {body}",
                    message=fault or "OK",
                    hardware_id=body,
                    values=values,
                )
            )
        if (control := self._control) is not None:
            values = [KeyValue(key=key, value=f"{v:.6g}") for key, v in control.numbers().items()]
            name, flies = f"{self.get_name()}: controller", "flies" if control.flies else "rests"
            statuses.append(
                DiagnosticStatus(level=DiagnosticStatus.OK, name=name, message=flies, values=values)
            )
        return DiagnosticArray(header=in_world(time_s), status=statuses)

    def _next_setpoint(self, player: FlightPlayer, time_s: float) -> FormationSetpoint:
        """Set-point of the player; a delivery weighs and watches meanwhile."""
        delivery = self._delivery
        places = np.full((len(self._bodies), 3), np.nan)
        for k, body in enumerate(self._bodies):
            if body in self._poses and body != self._given_up:
                places[k] = self._poses[body][:3]
        if delivery is not None:
            delivery.weigh(time_s)
        setpoint = player.at(time_s, places)
        if missed := player.missed(places):
            self._tell_event("not_in_place", missed)
            self.get_logger().warning(missed)
        if delivery is None:
            return setpoint
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
        heard = not self._without_pose() and self._knows_enough() and self._is_guided()
        return heard and all(p == READY for p in phases)

    def _is_guided(self) -> bool:
        """Whether the offboard node lives: its last words on phases outlive it."""
        return self._age_s(OFFBOARD, self.time_s) < POSE_AGE_S

    def _knows_enough(self) -> bool:
        """Whether a delivery can be watched: its motion is known, and hooks can be opened."""
        delivery, hooks = self._delivery, self._apply_out
        if delivery is None or hooks is None:
            return True
        heard = hooks.get_subscription_count() > 0
        return heard and delivery.age_s(self.time_s) < POSE_AGE_S

    def _without_pose(self) -> list[str]:
        """Bodies of which no pose has come of late."""
        oldest_s = self.time_s - POSE_AGE_S
        return [b for b in self._bodies if self._heard_s.get(b, -np.inf) < oldest_s]

    def _checked_plan(self) -> FlightPlan:
        """Plan from where load and drones stand (raises ConfigError if it must not be flown)."""
        places = np.array([self._poses[body][:3] for body in self._bodies])
        plan = self._file.plan(places[0], float(self._poses["load"][3]), places[1:])
        self._file.check(plan, self._limits)
        return plan

    def _make_player(self) -> FlightPlayer:
        plan = self._checked_plan()
        self.get_logger().info(f"{self._file.name}: {plan.duration_s:.0f} s planned")
        if self._delivery is not None:
            self._delivery.begin(plan, self._apply_event, self._tell_event)
        file = self._file
        keeper = None if self._delivery is None else self._delivery.watch
        return FlightPlayer(plan, file.formation, file.mission, self._goals, keeper)

    def _apply_event(self, event: dict[str, Any]) -> None:
        assert self._apply_out is not None  # a delivery is flown
        self._apply_out.publish(String(data=json.dumps(event)))

    def _tell_event(self, kind: str, what: str) -> None:
        self._events_out.publish(String(data=f"{kind}: {what}"))

    def _on_event(self, message: String) -> None:
        if self._delivery is not None and self._player is not None:
            self._delivery.on_event(message.data.partition(":")[0])

    def _take_guard(self, settings: GuardSettings) -> None:
        self._guard.settings = settings

    def _take_goals(self, goals: GoalSettings) -> None:
        self._goals = goals
        if self._player is not None:
            self._player.goals = goals

    def _give_up(self, state: str = "idle") -> None:
        """End the stream; the next start makes a new plan."""
        self._player, self._wanted, self._shown = None, False, None
        self._given_up, self._lands_beside = "", False
        self._end, self._said_lost, self._refusal = FlightEnd(), set(), ""
        self._recent.clear()
        self._published.clear()
        self._poses.clear()
        self._heard_s.clear()
        self._show_state(state)

    def _asked(self, wanted: FormationSetpoint, time_s: float) -> tuple[list, list] | None:
        """Accelerations and yaws that the controller asks for, None while it does not fly.

        Where the guard acts, the drones hold the formation: a controller relies on all of them.
        """
        control, player = self._control, self._player
        if control is None or player is None:
            return None
        flying = player.state in (PlayState.FLYING, PlayState.GOAL, PlayState.PAUSED)
        guarded = self._guard.step in (GuardStep.PAUSE, GuardStep.LOWER, GuardStep.LAND)
        if not flying or guarded or wanted.stage in GROUND_PHASES:
            control.rest()
            return None
        if control.age_s(time_s) > TOO_OLD_S:
            if control.flies:
                self.get_logger().error("motion of load or drones is missing: formation instead")
            control.rest()
            return None
        acceleration, yaw = control.step(time_s, player.reference_at(time_s))
        for kind, what in control.take_events():
            self._tell_event(kind, what)
        return acceleration.tolist(), yaw.tolist()

    def _send_stream(self, wanted: FormationSetpoint, time_s: float) -> None:
        """Say what all drones are to do now; last what simulated time waits for."""
        asked, header = self._asked(wanted, time_s), in_world(time_s)
        pushes, yaws = asked or ([], wanted.drone_yaw_rad.tolist())
        for publisher, push in zip(self._accelerations, pushes, strict=False):
            publisher.publish(AccelStamped(header=header, accel=Accel(linear=vector(push))))
        velocities, fed = wanted.drone_velocity_enu_m_s, wanted.drone_acceleration_enu_m_s2
        if asked is None and np.isfinite(fed).any():  # beside the places, see `OffboardNode`
            pushes = np.nan_to_num(fed).tolist()
            velocities = np.nan_to_num(velocities)
        now = MultiDOFJointTrajectoryPoint(
            transforms=[
                Transform(translation=vector(position), rotation=level(yaw))
                for position, yaw in zip(wanted.drone_position_enu_m, yaws, strict=True)
            ],
            velocities=[Twist(linear=vector(v)) for v in velocities],
            accelerations=[Twist(linear=vector(push)) for push in pushes],
            time_from_start=duration(self._flight_s(time_s)),
        )
        self._stream.publish(
            MultiDOFJointTrajectory(header=header, joint_names=self._bodies[1:], points=[now])
        )

    def _flight_s(self, time_s: float) -> float:
        """Time since the flight began; 0 while drones are being armed."""
        player = self._player
        waits = player is None or player.state is PlayState.IDLE
        return 0.0 if waits else time_s - self._begun_s + STEP_S

    def _show_reference(self, player: FlightPlayer, time_s: float) -> None:
        if self._reference_out.get_subscription_count():
            asked = player.reference_at(time_s)
            place, turn = point(asked.position_enu_m), quaternion(asked.orientation_wxyz)
            pose = Pose(position=place, orientation=turn)
            self._reference_out.publish(PoseStamped(header=in_world(time_s), pose=pose))

    def _show_setpoint(self, now: FormationSetpoint, plan: FlightPlan, time_s: float) -> None:
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
        place = Pose(position=point(position), orientation=level(yaw))
        self._setpoints[body].publish(PoseStamped(header=in_world(time_s), pose=place))

    def _enter(self, stage: str) -> None:
        if stage != self._stage:
            self._stage = stage
            self._stage_out.publish(String(data=stage))
            self.get_logger().info(f"stage {stage}")

    def _show_state(self, state: str) -> None:
        if self._action is not None:
            self._action.show_state(state)
        if state != self._state:
            self._state = state
            self._state_out.publish(String(data=state))

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
        if self._player is not None:
            answer.message = f"cannot start: {self._player.state.value}"
            return answer
        if not self.active:
            answer.message = "cannot start: the node is not active"
            return answer
        ready, missing = self._everybody_is_ready(), self._without_pose()
        answer.message = "starting" if ready else "starts when all drones are ready"
        if missing:
            answer.message += f"; no pose of {', '.join(missing)}"
        try:
            if ready:
                self._checked_plan()
            answer.success = self._wanted = True
        except ConfigError as error:
            answer.message = f"cannot start: {error}"
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
        return SetParametersResult(successful=True)

    def _chosen_mission(self, path: Path) -> MissionFile:
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
