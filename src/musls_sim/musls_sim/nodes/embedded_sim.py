"""Node `embedded_sim`: the embedded simulator where PX4 and Gazebo stand on the ROS graph.

Each drone is a PX4 instance i from 1: `/px4_i/fmu/in/*` to it, `/px4_i/fmu/out/*` from it. Load,
cables and drones are published as in a bag, with /clock and /tf. Time is real time, or with
`realtime: false` as fast as the nodes that answer each clock message allow (see `lockstep`). With
`autopilot.kind: px4` in the scenario real PX4s fly, and their topics are theirs (`real_px4`).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from px4_msgs import msg as px4
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from musls_control.nodes.stepped_node import (
    BASE_LINKS,
    DUPLICATE_CHECK_S,
    FROM_PX4,
    LATCHED,
    DescribedNode,
    DuplicateNode,
    Interrupt,
    microseconds,
    publish_same_frames,
    relative,
    run,
    stamp,
)
from musls_control.px4.frames import body_flu_frd, orientation_enu_ned, world_enu_ned, yaw_enu_ned
from musls_control.px4.offboard import other_loss_parameters, px4_topic, target_system
from musls_description.config.errors import ConfigError
from musls_description.numerics.rotations import yaw_of
from musls_description.writers.urdf import joint_coordinates
from musls_sim.nodes.polling import Poller, message_class, profile_of
from musls_sim.plants.interface import Plant
from musls_sim.px4.install import Px4Error
from musls_sim.px4_stand_in import (
    PERIODS_PER_WINDOW,
    Commander,
    DisarmReason,
    Lockstep,
    NavState,
    TrajectoryInput,
    stand_in_session,
)
from musls_sim.recording.graph_signals import StateMessages
from musls_sim.recording.signals import CLOCK, EVENTS, MODEL_PREFIX, STAGE, Rate, event_text
from musls_sim.scenario.scenario import Scenario, load_scenario
from musls_sim.sensors.estimation import MotionCapture
from musls_sim.session.loop import Observer
from musls_sim.session.session import Session

if TYPE_CHECKING:
    from musls_sim.px4.build import GraphSession


# ---------- Joint angles of the cables, for robot_state_publisher and a URDF

TOPIC = "joint_states"


class JointStates:
    """Publishes `/joint_states`, where the plant has joints, while there are subscribers.

    `/tf_static` says that the URDF's root `model/base_link` is `load`.
    """

    def __init__(self, node: Node, plant: Plant) -> None:
        """Offer the topic, or nothing if the cable model has no joints."""
        self._plant = None if plant.tree is None else plant
        self._tree: object = None
        if self._plant is None:
            return
        self._out = node.create_publisher(JointState, TOPIC, 10)
        publish_same_frames(node, {f"{MODEL_PREFIX}base_link": "load"})

    def publish(self, time_s: float) -> None:
        """Publish the present angles."""
        if self._plant is None or not self._out.get_subscription_count():
            return
        tree = self._plant.tree
        if tree is not None and tree is not self._tree:
            self._tree = tree
            self._coordinates = joint_coordinates(tree)
        message = JointState(name=list(self._coordinates))
        message.header.stamp = stamp(time_s)
        message.position = self._plant.positions[list(self._coordinates.values())].tolist()
        self._out.publish(message)


# ---------- PX4's topics of the drones

PX4_WRITER = QoSProfile(
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
    reliability=ReliabilityPolicy.BEST_EFFORT,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
"""Quality of service with which PX4's DDS client offers its topics."""

STATUS_PERIOD_US = 200_000
ARMED = 2
DISARMED = 1
ANY_SYSTEM = 0
_MOTION_TOPICS = (
    px4.VehicleLocalPosition,
    px4.VehicleAttitude,
    px4.VehicleOdometry,
    px4.ActuatorMotors,
)
_MOTION = ("x", "y", "z", "vx", "vy", "vz", "ax", "ay", "az")


class StandInDrone:
    """Inputs and outputs of one drone; the origin of its local frame is the world's.

    Attributes:
        inputs: Topics to it, and their types.
    """

    def __init__(self, node: EmbeddedSim, index: int, commander: Commander, poller: Poller) -> None:
        self._node = node
        self._index = index
        self._commander = commander
        self._name = f"drone_{index + 1}"
        instance = index + 1
        self._system = target_system(instance)
        self.inputs = {}
        for kind, take in (
            (px4.TrajectorySetpoint, self._on_trajectory),
            (px4.VehicleCommand, self._on_command),
            (px4.OffboardControlMode, self._on_mode),
        ):
            topic = node.resolve_topic_name(px4_topic(instance, "in", kind))
            self.inputs[topic] = f"px4_msgs/msg/{kind.__name__}"
            poller.subscribe(kind, topic, take, FROM_PX4)
        self._pub = {
            kind: node.create_publisher(kind, px4_topic(instance, "out", kind), PX4_WRITER)
            for kind in (
                *_MOTION_TOPICS,
                px4.VehicleStatus,
                px4.VehicleControlMode,
                px4.VehicleCommandAck,
            )
        }
        self._status_us = -STATUS_PERIOD_US
        self._status_of: tuple[bool, NavState, bool] | None = None
        self._motors = np.full(12, np.nan, np.float32)
        self._fixed_local = {
            "xy_valid": True,
            "z_valid": True,
            "v_xy_valid": True,
            "v_z_valid": True,
            "heading_good_for_control": True,
            "dist_bottom": float("nan"),
            "ref_lat": float("nan"),
            "ref_lon": float("nan"),
            "ref_alt": float("nan"),
            "vxy_max": float("inf"),
            "vz_max": float("inf"),
            "hagl_min": float("inf"),
            "hagl_max_z": float("inf"),
            "hagl_max_xy": float("inf"),
        }

    @property
    def armed(self) -> bool:
        """Whether the motors may turn."""
        return self._commander.armed

    def check(self, age_s: float) -> None:
        """Check no topics: those of a built-in autopilot cannot be missing."""

    def publish(self, time_us: int) -> None:
        """Publish the motion if there are subscribers, and the status at its rate."""
        kinds = [kind for kind in _MOTION_TOPICS if self._pub[kind].get_subscription_count()]
        if kinds:
            self._publish_motion(time_us, kinds)
        self._publish_status(time_us)

    def _publish(self, message: Any) -> None:
        self._pub[type(message)].publish(message)

    def _publish_motion(self, time_us: int, kinds: Sequence[type]) -> None:
        session = self._node.session
        estimate = session.estimate.drones.data[self._index]
        throttle = session.command.throttle[self._index]
        at = {"timestamp": time_us, "timestamp_sample": time_us}
        position, velocity = world_enu_ned(estimate[0:6].reshape(2, 3))
        acceleration = world_enu_ned(estimate[13:16])
        q = orientation_enu_ned(estimate[6:10]).astype(np.float32)
        yaw = yaw_of(estimate[6:10])
        motion = np.concatenate([position, velocity, acceleration]).tolist()
        if px4.VehicleLocalPosition in kinds:
            self._publish(
                px4.VehicleLocalPosition(
                    **at,
                    **self._fixed_local,
                    **dict(zip(_MOTION, motion, strict=True)),
                    z_deriv=motion[5],
                    heading=float(yaw_enu_ned(yaw)),
                )
            )
        if px4.VehicleAttitude in kinds:
            self._publish(px4.VehicleAttitude(**at, q=q))
        if px4.VehicleOdometry in kinds:
            self._publish(
                px4.VehicleOdometry(
                    **at,
                    pose_frame=px4.VehicleOdometry.POSE_FRAME_NED,
                    position=position.astype(np.float32),
                    q=q,
                    velocity_frame=px4.VehicleOdometry.VELOCITY_FRAME_NED,
                    velocity=velocity.astype(np.float32),
                    angular_velocity=body_flu_frd(estimate[10:13]).astype(np.float32),
                )
            )
        if px4.ActuatorMotors in kinds:
            self._motors[: len(throttle)] = throttle if self.armed else np.nan
            self._publish(px4.ActuatorMotors(**at, control=self._motors))

    def _publish_status(self, time_us: int) -> None:
        commander = self._commander
        state = (commander.armed, commander.nav_state, commander.failsafe)
        if state == self._status_of and time_us - self._status_us < STATUS_PERIOD_US:
            return
        self._status_of = state
        self._status_us = time_us
        offboard = commander.nav_state is NavState.OFFBOARD
        self._publish(
            _message(
                px4.VehicleStatus,
                timestamp=time_us,
                armed_time=_time_us(commander.armed_at_s),
                takeoff_time=_time_us(commander.took_off_at_s),
                arming_state=ARMED if commander.armed else DISARMED,
                latest_arming_reason=DisarmReason.COMMAND,
                latest_disarming_reason=commander.disarm_reason,
                nav_state_user_intention=commander.wanted,
                nav_state=commander.nav_state,
                vehicle_type=px4.VehicleStatus.VEHICLE_TYPE_ROTARY_WING,
                failsafe=commander.failsafe,
                system_type=2,
                system_id=self._system,
                component_id=1,
                pre_flight_checks_pass=True,
            )
        )
        self._publish(
            _message(
                px4.VehicleControlMode,
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

    def _on_mode(self, message: px4.OffboardControlMode) -> None:
        if message.position or message.velocity or message.acceleration:
            self._commander.heartbeat(self._node.time_s)
            self._node.lockstep.answer(self._index, message.timestamp)
        else:
            self._node.say_once(
                f"{self._name}: only position, velocity and acceleration can be controlled"
            )

    def _on_trajectory(self, message: px4.TrajectorySetpoint) -> None:
        self._commander.trajectory(
            TrajectoryInput(
                np.array(message.position, np.float64),
                np.array(message.velocity, np.float64),
                np.array(message.acceleration, np.float64),
                message.yaw,
                message.yawspeed,
            )
        )

    def _on_command(self, message: px4.VehicleCommand) -> None:
        if message.target_system not in (ANY_SYSTEM, self._system):
            self._node.get_logger().warning(
                f"{self._name}: command {message.command} is for system "
                f"{message.target_system}, this is {self._system}: ignored"
            )
            return
        time_s = self._node.time_s
        command = message.command
        result = self._commander.command(
            time_s, command, message.param1, message.param2, message.param3
        )
        self._publish(
            px4.VehicleCommandAck(
                timestamp=microseconds(time_s),
                command=command,
                result=result,
                target_system=message.source_system,
            )
        )


def _time_us(time_s: float | None) -> int:
    """PX4's time of a moment [us]; 0 stands for one that has not come."""
    return 0 if time_s is None else max(microseconds(time_s), 1)


def _message(kind: Any, **fields: Any) -> Any:
    """Message with those of the given fields that the installed release of PX4 has."""
    names = kind.get_fields_and_field_types()
    return kind(**{name: value for name, value in fields.items() if name in names})


STATUS_LIMIT_S = 20.0
"""Time for PX4's first status to come: so much of it both really and in the simulation."""


class RealDrone:
    """Listens to the node that guides a drone, so that simulated time can wait for it.

    Attributes:
        inputs: Topics to PX4 that are watched, and their types.
    """

    def __init__(
        self, node: EmbeddedSim, index: int, session: GraphSession, poller: Poller
    ) -> None:
        self._node = node
        self._index = index
        self._session = session
        # Of PX4's own client, whose namespace begins at the root.
        self._status_topic = f"/{px4_topic(index + 1, 'out', px4.VehicleStatus)}"
        self._heard = False
        poller.subscribe(px4.VehicleStatus, self._status_topic, self._on_status, FROM_PX4)
        topic = f"/{px4_topic(index + 1, 'in', px4.OffboardControlMode)}"
        self.inputs = {topic: "px4_msgs/msg/OffboardControlMode"}
        poller.subscribe(px4.OffboardControlMode, topic, self._on_mode, FROM_PX4)

    @property
    def armed(self) -> bool:
        """Whether the motors may turn."""
        return bool(self._session.px4s.armed[self._index])

    def publish(self, time_us: int) -> None:
        """Nothing: the real PX4 publishes its topics itself."""

    def check(self, age_s: float) -> None:
        """Raise `Px4Error` if no status of PX4 has come since the start, `age_s` ago [s]."""
        if not self._heard and age_s > STATUS_LIMIT_S:
            raise Px4Error(
                f"drone_{self._index + 1}: PX4 runs, but nothing comes on {self._status_topic} "
                f"for {STATUS_LIMIT_S:g} s: another ROS_DOMAIN_ID, or a PX4 release with another "
                "version of this message than px4_msgs here"
            )

    def _on_status(self, _: px4.VehicleStatus) -> None:
        self._heard = True

    def _on_mode(self, message: px4.OffboardControlMode) -> None:
        self._node.lockstep.answer(self._index, message.timestamp)


# ---------- The node

TRIGGER = "musls/trigger_event"
APPLY = "musls/apply_event"
WINDOWS_PER_SHAPE = 5
WRITER_QUEUE = 500
LATE_REPORT_S = 10.0
POLL_S = 0.0001
GRAPH_CHECK_S = 0.5
DISCOVERY_S = 1.0
"""Real time in which nodes of a graph find each other."""
LOSS_ACTIONS = {"hold": NavState.LOITER, "land": NavState.LAND}


class EmbeddedSim(DescribedNode):
    """The node: steps the session and publishes its state, PX4's topics and the clock."""

    def __init__(self) -> None:
        super().__init__("embedded_sim")
        path = self.value("scenario_file", "", "Scenario (resolved).")
        if not path:
            raise ConfigError("parameter scenario_file: which? -p scenario_file:=FILE.yaml")
        loss = self.value("offboard_loss_action", "land", "hold or land; PX4's COM_OBL_RC_ACT.")
        if loss not in LOSS_ACTIONS:
            raise ConfigError(f"parameter offboard_loss_action = {loss}: must be hold or land")
        self._realtime = self.value(
            "realtime", True, "Real time; false: as fast as the nodes that send set-points allow."
        )
        self.number("patience_s", 3.0, 0.05, 60.0, "Real time to wait for a set-point [s].")
        self._statistics = self.value("statistics_file", "", "JSON of the flight's numbers.")
        based = self.value("base_links", False, BASE_LINKS)
        force = self.value("force", False, "Fly in spite of too little thrust.")
        logs = self.value("px4_logs", "", "Folder for real PX4s' consoles; default px4 beside.")
        scenario = load_scenario(Path(path))
        system = scenario.system
        self.lockstep = Lockstep(system.n_drones)
        self._lost = [0] * system.n_drones
        self._said_late = list(self._lost)
        self._next_late_s = 0.0
        self._state = StateMessages(system, Rate.STATE)
        self._shapes = StateMessages(system, Rate.SHAPE)
        self._pub = {
            topic: self.create_publisher(message_class(kind), relative(topic), _writer(topic))
            for topic, kind in (self._state.topics | self._shapes.topics).items()
        }
        self._poller = Poller(self)
        self._look_for_another()
        self.session: Session
        self._drones: Sequence[StandInDrone | RealDrone]
        if scenario.autopilot.kind == "px4":
            folder = Path(logs) if logs else Path(path).with_name("px4")
            self.session, self._drones = self._with_px4(scenario, folder.absolute(), force)
        else:
            self.session, commanders = stand_in_session(scenario, LOSS_ACTIONS[loss], force=force)
            self._drones = [
                StandInDrone(self, k, commander, self._poller)
                for k, commander in enumerate(commanders)
            ]
        self.session.observe_with(EventPublisher(self))
        self._offer_events()
        self._joints = JointStates(self, self.session.plant)
        if based:
            names = ["load", *(f"drone_{i + 1}" for i in range(system.n_drones))]
            publish_same_frames(self, {f"{name}/base_link": name for name in names})
        self._poller.subscribe(String, relative(STAGE), self._on_stage, profile_of(STAGE))
        self._window = 0
        self._warned: set[str] = set()
        self._next_graph_check_s = 0.0
        self._checks = 0
        self._begin_time_s = self.time_s
        self._behind_s = self._begin_s = time.perf_counter()

    @property
    def time_s(self) -> float:
        """Time of the graph: simulated time, with real PX4s theirs."""
        return self.session.graph_time_s

    def _with_px4(
        self, scenario: Scenario, logs: Path, force: bool
    ) -> tuple[GraphSession, list[RealDrone]]:
        """Start the real PX4s, and subscribe to their topics."""
        from musls_sim.px4.build import GraphSession  # pymavlink is slow to import

        log = self.get_logger()
        log.info("starting PX4s and agent")
        session = GraphSession(scenario, logs, force=force)
        session.start()
        errors = ", ".join(f"{error:.3f}" for error in session.px4s.origin_error_m)
        if word := other_loss_parameters(scenario.autopilot.parameters):
            log.warning(word)
        log.info(f"PX4s are up; their local frames miss the drones' places by {errors} m")
        n = scenario.system.n_drones
        return session, [RealDrone(self, k, session, self._poller) for k in range(n)]

    def _offer_events(self) -> None:
        """Offer the scenario's events as services, and a topic for any other event.

        The services are `/musls/trigger_event/NAME` (std_srvs/Trigger) with the name of an event,
        or its kind where it has none; the topic takes the fields of an event as JSON.
        """
        for name in dict.fromkeys(event.names[0] for event in self.session.scenario.events):
            if name.isidentifier():  # what ROS allows as a part of a name
                self._poller.serve(Trigger, f"{TRIGGER}/{name}", partial(self._trigger, name))
        self._poller.subscribe(String, APPLY, self._apply_event, QoSProfile(depth=10))

    def _trigger(self, name: str, _: Trigger.Request, answer: Trigger.Response) -> Trigger.Response:
        try:
            self.session.trigger(name)
            answer.success = True
            answer.message = f"{name}: now"
        except ConfigError as error:
            answer.success = False
            answer.message = str(error)
        return answer

    def _apply_event(self, message: String) -> None:
        try:
            fields = json.loads(message.data)
            if not isinstance(fields, dict):
                raise ConfigError("expected a mapping of an event's fields")
            self.session.apply(fields)
        except (ValueError, ConfigError) as error:
            self.get_logger().error(f"{APPLY}: {error}")

    def _on_stage(self, message: String) -> None:
        """Events wait for the stages that the formation node publishes."""
        self.session.guidance.stage = message.data

    def destroy_node(self) -> None:
        """End the processes and threads that this node started."""
        self.session.close()
        super().destroy_node()

    def _look_for_another(self) -> None:
        """End before anything is published or started where another simulator runs."""
        until = time.perf_counter() + DISCOVERY_S
        while time.perf_counter() < until:
            self._refuse_another()
            time.sleep(0.05)

    def _refuse_another(self) -> None:
        if self.count_publishers(CLOCK) > 1:
            raise DuplicateNode(
                "embedded_sim: another node publishes /clock already; a simulation beside it needs "
                "a ROS_DOMAIN_ID of its own"
            )

    def run(self, interrupt: Interrupt) -> None:
        """Fly until interrupted."""
        self._refuse_another()  # one that was found while this one was built
        while not interrupt.came:
            self._publish()
            if self._realtime or not self.lockstep.locked:
                self._wait_for_real_time()
            else:
                self._wait_for_answers()
            self._note_lost(self.lockstep.close())
            self._check_graph()
            if not self._realtime:
                self.session.advance(PERIODS_PER_WINDOW)
        if self._statistics:
            self._write_statistics()

    def _note_lost(self, drones: list[int]) -> None:
        """Log who did not answer; after a landing that is the flight's usual end.

        In real time nobody is waited for, and a set-point that comes late is taken all the same:
        a word now and then is enough.
        """
        for drone in drones:
            if not self._drones[drone].armed:
                continue
            self._lost[drone] += 1
            if not self._realtime:
                self.get_logger().warning(
                    f"drone_{drone + 1}: no set-point for the last clock message: not waited for"
                )
        late = [n - before for n, before in zip(self._lost, self._said_late, strict=True)]
        now = time.perf_counter()
        if self._realtime and any(late) and now >= self._next_late_s:
            self._next_late_s = now + LATE_REPORT_S
            self._said_late = list(self._lost)
            text = ", ".join(f"{count} of drone_{k + 1}" for k, count in enumerate(late) if count)
            self.get_logger().warning(f"set-points came later than 20 ms: {text}")

    def _write_statistics(self) -> None:
        """Write the numbers of the flight's summary, for the command that started the node."""
        autopilot = self.session.components.autopilot
        firmware = autopilot.firmware
        numbers = self.session.numbers() | {
            "landed": bool(autopilot.landed.all()),
            "lost_answers": self._lost,
            "firmware": None if firmware is None else [str(firmware.binary), firmware.version],
        }
        Path(self._statistics).write_text(json.dumps(numbers), encoding="utf-8")

    def _publish(self) -> None:
        """State, PX4's topics, and last the clock, which asks for the answers."""
        time_s = self.time_s
        (_, clock), *messages = self._state.render(time_s, self.session)
        if self._window % WINDOWS_PER_SHAPE == 0:
            messages += self._shapes.render(time_s, self.session)
        for topic, data in messages:
            if self._pub[topic].get_subscription_count():
                self._pub[topic].publish(data)
        self._joints.publish(time_s)
        time_us = microseconds(time_s)
        for drone in self._drones:
            drone.publish(time_us)
        self.lockstep.ask(time_us)
        self._pub[CLOCK].publish(clock)
        self._window += 1

    def _wait_for_answers(self) -> None:
        until = time.perf_counter() + self.get_parameter("patience_s").value
        while not self.lockstep.complete and time.perf_counter() < until:
            if not self._poller.poll():
                time.sleep(POLL_S)
        self._behind_s = time.perf_counter()

    def _wait_for_real_time(self) -> None:
        """Wait for real time once a window; with `realtime` set-points take effect within 4 ms."""
        period = self.session.plant.period_s
        now = time.perf_counter()
        if now - self._behind_s > 1.0:  # too slow a machine: no catching up in a rush
            self._behind_s = now
        for _ in range(PERIODS_PER_WINDOW):
            self._behind_s += period
            while True:
                self._poller.poll()
                wait_s = self._behind_s - time.perf_counter()
                if wait_s <= 0.0:
                    break
                time.sleep(min(wait_s, 0.001))
            if self._realtime:
                self.session.advance(1)

    def _check_graph(self) -> None:
        """Look for a second simulator and for publishers of a wrong type."""
        now = time.perf_counter()
        if now < self._next_graph_check_s:
            return
        self._next_graph_check_s = now + GRAPH_CHECK_S
        # Counted, not timed: the first step may be compiled for longer than all of it shall take.
        self._checks += 1
        if self._checks * GRAPH_CHECK_S <= DUPLICATE_CHECK_S:
            self._refuse_another()
        for drone in self._drones:
            # PX4's clock is ours: it stands still while the first step is compiled.
            drone.check(min(now - self._begin_s, self.time_s - self._begin_time_s))
            for topic, kind in drone.inputs.items():
                for info in self.get_publishers_info_by_topic(topic):
                    if info.topic_type != kind:
                        self.say_once(
                            f"{topic}: {info.node_name} publishes {info.topic_type}, not {kind}"
                        )

    def say_once(self, text: str) -> None:
        """Log a mistake of another node once."""
        if text not in self._warned:
            self._warned.add(text)
            self.get_logger().error(text)


def _writer(topic: str) -> QoSProfile:
    """Quality of service for recorders: a deep queue, since lockstep does not wait for them."""
    latched = profile_of(topic).durability is DurabilityPolicy.TRANSIENT_LOCAL
    return profile_of(topic, None if latched else WRITER_QUEUE)


class EventPublisher(Observer):
    """Publishes events on `/events`, as text `kind: details`, and doubts as `mocap_relay` does."""

    def __init__(self, node: EmbeddedSim) -> None:
        """Offer the topic: late subscribers get what happened before."""
        self._out = node.create_publisher(String, relative(EVENTS), profile_of(EVENTS))
        self._node = node
        self._doubts = dict[str, Any]()

    def on_event(self, time_s: float, kind: str, what: str) -> None:
        """Publish one."""
        self._out.publish(String(data=event_text(kind, what)))
        estimator = self._node.session.components.estimator
        if kind == "mocap" and isinstance(estimator, MotionCapture) and estimator.relay is not None:
            body = what.partition(":")[0]
            if body not in self._doubts:
                topic = f"{body}/mocap/doubt"
                self._doubts[body] = self._node.create_publisher(String, topic, LATCHED)
            self._doubts[body].publish(String(data=estimator.relay.judge.doubts[body]))


def main(args: list[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM; returns the exit code."""
    return run(EmbeddedSim, args, EmbeddedSim.run)


if __name__ == "__main__":
    sys.exit(main())
