"""Node `embedded_sim`: the embedded simulator where PX4 and Gazebo stand on the ROS graph.

Each drone is a PX4 instance i from 1: `/px4_i/fmu/in/*` to it, `/px4_i/fmu/out/*` from it. Load,
cables and drones are published as in a bag, with /clock and /tf. Time is real time, or with
`realtime: false` as fast as those who answer each clock message allow (see `lockstep`). With
`autopilot.kind: px4` in the scenario real PX4s fly, and their topics are theirs (`real_px4`).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from geometry_msgs.msg import TransformStamped
from px4_msgs.msg import OffboardControlMode, TrajectorySetpoint, VehicleCommand
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger
from tf2_msgs.msg import TFMessage

from musls_control.nodes.stepped_node import (
    DUPLICATE_CHECK_S,
    FROM_PX4,
    DescribedNode,
    DuplicateNode,
    Interrupt,
    microseconds,
    run,
    stamp,
)
from musls_control.offboard import px4_topic, target_system
from musls_description.errors import ConfigError
from musls_description.models.urdf import joint_coordinates
from musls_sim.nodes.polling import Poller, message_class, profile_of
from musls_sim.nodes.px4_drones import Px4Outputs
from musls_sim.plants.interface import Plant
from musls_sim.px4_stand_in.commander import Commander, NavState, TrajectoryInput
from musls_sim.px4_stand_in.guidance import PERIODS_PER_WINDOW, Lockstep, stand_in_session
from musls_sim.recording.graph import StateMessages
from musls_sim.recording.signals import CLOCK, EVENTS, MODEL_PREFIX, STAGE, Rate, event_text
from musls_sim.scenario.scenario import Scenario, load_scenario
from musls_sim.session.event_queue import names_of
from musls_sim.session.loop import Observer
from musls_sim.session.session import Session

if TYPE_CHECKING:
    from musls_sim.nodes.px4_drones import RealDrone
    from musls_sim.px4.graph_session import GraphSession


# ---------- Events on the ROS graph: let one of the scenario happen now, or one that is described

TRIGGER, APPLY = "/musls/trigger_event", "/musls/apply_event"
"""A service for each event of the scenario is below the first one; the second one is a topic."""


class EventServices:
    """Services `/musls/trigger_event/NAME` (std_srvs/Trigger) and topic `/musls/apply_event`.

    NAME is that of an event of the scenario, or its kind where it has no name. The topic
    (std_msgs/String) takes the fields of any event as JSON.
    """

    def __init__(self, node: Node, session: Session, poller: Poller) -> None:
        """Offer them."""
        self._node, self._session = node, session
        names = dict.fromkeys(names_of(event)[0] for event in session.scenario.events)
        for name in names:
            if name.isidentifier():  # what ROS allows as a part of a name
                poller.serve(Trigger, f"{TRIGGER}/{name}", self._trigger(name))
        poller.subscribe(String, APPLY, self._apply, QoSProfile(depth=10))

    def _trigger(self, name: str):
        def answer(_: Trigger.Request, answer: Trigger.Response) -> Trigger.Response:
            try:
                self._session.trigger(name)
                answer.success, answer.message = True, f"{name}: now"
            except ConfigError as error:
                answer.success, answer.message = False, str(error)
            return answer

        return answer

    def _apply(self, message: String) -> None:
        try:
            fields = json.loads(message.data)
            if not isinstance(fields, dict):
                raise ConfigError("expected a mapping of an event's fields")
            self._session.apply(fields)
        except (ValueError, ConfigError) as error:
            self._node.get_logger().error(f"{APPLY}: {error}")


# ---------- Joint angles of the cables, for robot_state_publisher and a URDF

TOPIC = "/joint_states"


class JointStates:
    """Publishes `/joint_states`, where the plant has joints, while somebody listens.

    The URDF's root is the load: `/tf_static` says that `model/load` is `load`.
    """

    def __init__(self, node: Node, plant: Plant) -> None:
        """Offer the topic, or nothing if the cable model has no joints."""
        self._plant = None if plant.tree is None else plant
        self._tree: object = None
        if self._plant is None:
            return
        self._out = node.create_publisher(JointState, TOPIC, 10)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._static = node.create_publisher(TFMessage, "/tf_static", latched)
        same = TransformStamped(child_frame_id=f"{MODEL_PREFIX}load")
        same.header.frame_id, same.transform.rotation.w = "load", 1.0
        self._static.publish(TFMessage(transforms=[same]))

    def publish(self, time_s: float) -> None:
        """Publish the present angles."""
        if self._plant is None or not self._out.get_subscription_count():
            return
        tree = self._plant.tree
        if tree is not None and tree is not self._tree:
            self._tree, self._coordinates = tree, joint_coordinates(tree)
        message = JointState(name=list(self._coordinates))
        stamp(message.header.stamp, time_s)
        message.position = self._plant.positions[list(self._coordinates.values())].tolist()
        self._out.publish(message)


WINDOWS_PER_SHAPE = 5
WRITER_QUEUE = 500
LATE_REPORT_S = 10.0
POLL_S = 0.0001
GRAPH_CHECK_S = 0.5
ANY_SYSTEM = 0
LOSS_ACTIONS = {"hold": NavState.LOITER, "land": NavState.LAND}


class EmbeddedSim(DescribedNode):
    """See the module's text."""

    def __init__(self) -> None:
        super().__init__("embedded_sim")
        path = self.value("scenario_file", "", "Scenario (resolved).")
        if not path:
            raise ConfigError("parameter scenario_file: which? -p scenario_file:=FILE.yaml")
        loss = self.value("offboard_loss_action", "hold", "hold or land; PX4's COM_OBL_RC_ACT.")
        if loss not in LOSS_ACTIONS:
            raise ConfigError(f"parameter offboard_loss_action = {loss}: must be hold or land")
        self._realtime = self.value(
            "realtime", True, "Real time; false: as fast as those who send set-points allow."
        )
        self.number("patience_s", 3.0, 0.05, 60.0, "Real time to wait for a set-point [s].")
        self._statistics = self.value("statistics_file", "", "JSON of the flight's numbers.")
        force = self.value("force", False, "Fly in spite of too little thrust.")
        logs = self.value("px4_logs", "", "Folder for real PX4s' consoles; default px4 beside.")
        scenario = load_scenario(Path(path))
        system = scenario.system
        self.lockstep = Lockstep(system.n_drones)
        self._lost = [0] * system.n_drones
        self._said_late, self._next_late_s = list(self._lost), 0.0
        self._state = StateMessages(system, Rate.STATE)
        self._shapes = StateMessages(system, Rate.SHAPE)
        self._pub = {
            topic: self.create_publisher(message_class(kind), topic, _writer(topic))
            for topic, kind in (self._state.topics | self._shapes.topics).items()
        }
        self._poller = Poller(self)
        self.session: Session
        self._drones: Sequence[Drone | RealDrone]
        if scenario.autopilot.kind == "px4":
            folder = Path(logs) if logs else Path(path).with_name("px4")
            self.session, self._drones = self._with_px4(scenario, folder.absolute(), force)
        else:
            self.session, commanders = stand_in_session(scenario, LOSS_ACTIONS[loss], force=force)
            self._drones = [
                Drone(self, k, commander, self._poller) for k, commander in enumerate(commanders)
            ]
        self.session.observe_with(EventPublisher(self))
        self._events = EventServices(self, self.session, self._poller)
        self._joints = JointStates(self, self.session.plant)
        self._poller.subscribe(String, STAGE, self._on_stage, profile_of(STAGE))
        self._window = 0
        self._warned: set[str] = set()
        self._next_graph_check_s, self._checks = 0.0, 0
        self._begin_time_s = self.time_s
        self._behind_s = self._begin_s = time.perf_counter()

    @property
    def time_s(self) -> float:
        """Time of the graph: simulated time, with real PX4s theirs."""
        session = self.session
        return getattr(session, "graph_time_s", session.time_s)

    def _with_px4(
        self, scenario: Scenario, logs: Path, force: bool
    ) -> tuple[GraphSession, list[RealDrone]]:
        """Real PX4s, up and waiting, and what is heard of them."""
        from musls_sim.nodes.px4_drones import RealDrone
        from musls_sim.px4.graph_session import GraphSession  # pymavlink is slow to import

        log = self.get_logger()
        log.info("starting PX4s and agent")
        session = GraphSession(scenario, logs, force=force)
        session.start()
        errors = ", ".join(f"{error:.3f}" for error in session.px4s.origin_error_m)
        log.info(f"PX4s are up; their local frames miss the drones' places by {errors} m")
        n = scenario.system.n_drones
        return session, [RealDrone(self, k, session, self._poller) for k in range(n)]

    def _on_stage(self, message: String) -> None:
        """Events wait for the stages of whoever flies the mission."""
        self.session.guidance.stage = message.data

    def destroy_node(self) -> None:
        """End what was started."""
        self.session.close()
        super().destroy_node()

    def run(self, interrupt: Interrupt) -> None:
        """Fly until interrupted."""
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
        """Say who did not answer; on the ground that is how flights end.

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
        late = [n - said for n, said in zip(self._lost, self._said_late, strict=True)]
        now = time.perf_counter()
        if self._realtime and any(late) and now >= self._next_late_s:
            self._next_late_s, self._said_late = now + LATE_REPORT_S, list(self._lost)
            text = ", ".join(f"{count} of drone_{k + 1}" for k, count in enumerate(late) if count)
            self.get_logger().warning(f"set-points came later than 20 ms: {text}")

    def _write_statistics(self) -> None:
        """Leave the numbers of the flight for whoever started the node."""
        session = self.session
        plant, hover = session.plant, session.parts.hover
        firmware = session.parts.autopilot.firmware
        numbers = {
            "sim_time_s": self.time_s,
            "wall_time_s": time.perf_counter() - self._begin_s,
            "periods": session.tick,
            "step_size_s": plant.physics_step_s,
            "steps": session.tick * plant.substeps,
            "refined_periods": plant.refined_periods,
            "plant_step_us": session.plant_s / max(session.tick - 1, 1) * 1e6,
            "bare_dart_step_us": plant.bare_step_us(),
            "max_tension_n": session.max_tension_n.tolist(),
            "thrust_margin": None if hover is None else hover.thrust_margin,
            "sag_m": None if hover is None else hover.sag_m,
            "lost_answers": self._lost,
            "firmware": None if firmware is None else [str(firmware.binary), firmware.version],
            "landed": bool(session.parts.autopilot.landed.all()),
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
        """One window of real time; with `realtime` set-points take effect within 4 ms."""
        period = self.session.plant.period_s
        now = time.perf_counter()
        if now - self._behind_s > 1.0:  # too slow a machine: no catching up in a rush
            self._behind_s = now
        for _ in range(PERIODS_PER_WINDOW):
            self._behind_s += period
            while True:
                self._poller.poll()
                left = self._behind_s - time.perf_counter()
                if left <= 0.0:
                    break
                time.sleep(min(left, 0.001))
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
        if self._checks * GRAPH_CHECK_S <= DUPLICATE_CHECK_S and self.count_publishers(CLOCK) > 1:
            raise DuplicateNode("embedded_sim: another node publishes /clock already")
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
        """Report what somebody does wrong."""
        if text not in self._warned:
            self._warned.add(text)
            self.get_logger().error(text)


def _writer(topic: str) -> QoSProfile:
    """Deep queues of what a recorder wants to have whole: in lockstep time does not wait for it."""
    latched = profile_of(topic).durability is DurabilityPolicy.TRANSIENT_LOCAL
    return profile_of(topic, None if latched else WRITER_QUEUE)


class EventPublisher(Observer):
    """Publishes what happens to the system on `/events`, as text `kind: what`."""

    def __init__(self, node: EmbeddedSim) -> None:
        """Offer the topic: late subscribers get what happened before."""
        self._out = node.create_publisher(String, EVENTS, profile_of(EVENTS))

    def on_event(self, time_s: float, kind: str, what: str) -> None:
        """Publish one."""
        self._out.publish(String(data=event_text(kind, what)))


class Drone:
    """Inputs and outputs of one drone."""

    def __init__(self, node: EmbeddedSim, index: int, commander: Commander, poller: Poller) -> None:
        self.index, self.commander, self._node = index, commander, node
        self.instance = index + 1
        self.outputs = Px4Outputs(node, self.instance)
        self.inputs = {}
        for name, kind, take in (
            ("trajectory_setpoint", TrajectorySetpoint, self._on_trajectory),
            ("vehicle_command", VehicleCommand, self._on_command),
            ("offboard_control_mode", OffboardControlMode, self._on_mode),
        ):
            topic = px4_topic(self.instance, "in", name, kind)
            self.inputs[topic] = f"px4_msgs/msg/{kind.__name__}"
            poller.subscribe(kind, topic, take, FROM_PX4)

    @property
    def armed(self) -> bool:
        """Whether the motors may turn."""
        return self.commander.armed

    def publish(self, time_us: int) -> None:
        """Publish what PX4 would."""
        session, k = self._node.session, self.index
        measured = session.estimate.drones.data[k]
        self.outputs.publish(time_us, measured, session.command.throttle[k], self.commander)

    def check(self, age_s: float) -> None:
        """Nothing of it can be missing."""

    def _on_mode(self, message: OffboardControlMode) -> None:
        if message.position or message.velocity or message.acceleration:
            self.commander.heartbeat(self._node.time_s)
            self._node.lockstep.answer(self.index, message.timestamp)
        else:
            self._node.say_once(
                f"drone_{self.instance}: only position, velocity and acceleration can be controlled"
            )

    def _on_trajectory(self, message: TrajectorySetpoint) -> None:
        self.commander.trajectory(
            TrajectoryInput(
                np.array(message.position, np.float64),
                np.array(message.velocity, np.float64),
                np.array(message.acceleration, np.float64),
                message.yaw,
                message.yawspeed,
            )
        )

    def _on_command(self, message: VehicleCommand) -> None:
        if message.target_system not in (ANY_SYSTEM, target_system(self.instance)):
            self._node.get_logger().warning(
                f"drone_{self.instance}: command {message.command} is for system "
                f"{message.target_system}, this is {target_system(self.instance)}: ignored"
            )
            return
        time_s = self._node.time_s
        result = self.commander.command(
            time_s, message.command, message.param1, message.param2, message.param3
        )
        self.outputs.acknowledge(
            microseconds(time_s), message.command, result, message.source_system
        )


def main(args: list[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM; returns the exit code."""
    return run(EmbeddedSim, args, EmbeddedSim.run)


if __name__ == "__main__":
    sys.exit(main())
