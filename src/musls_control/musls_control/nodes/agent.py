"""Node `agent`: one drone decides for itself, on its own computer; in the drone's namespace.

It runs the scenario's agent for this drone (`controller.kind: agents`), hears the messages of the
others and gives set-points to this drone's own offboard node. The formation node gives the task:
the load's set-point, whether agents fly, and the drone's place while they do not (lift, landing).

The guard stays with the drone. Without a task the agents go on and the set-point stands; after
`task_s`, or where it hears too few of the others, the drone holds its place, then lands beside the
load. Nothing that another computer does or does not makes it fall.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, Transform, Twist, TwistStamped
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

from musls_control.agents.single import SingleAgent
from musls_control.agents.team import AgentsSpec
from musls_control.autopilot import DroneSetpoints
from musls_control.brief.brief import read_brief
from musls_control.brief.flown_by import setup_of
from musls_control.chain import ForcesToSetpoints
from musls_control.controllers import ControlLevel
from musls_control.estimate import BodyMotion
from musls_control.nodes.formation import EVENTS, FLIES, OVER, RESTS, TASK
from musls_control.nodes.stepped_node import (
    LATCHED,
    TIME_BACK_S,
    ManagedNode,
    duration,
    in_world,
    level,
    quaternion_of,
    run,
    time_of,
    vector,
    vector_of,
)
from musls_control.real_flight.graph import STEP_S, ReceivedMotion
from musls_control.reference import LoadReference
from musls_control.trajectories.base import ORDERS
from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Array

LATEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
"""Messages between agents: what is lost is lost, a newer one comes soon."""

SMOOTHING_S = 0.1
"""Time constant of the acceleration, from differences of the velocity."""

ON_GROUND_M = 1.0
"""Depth of the place that is asked for below the drone at which it stands on something."""


class AgentNode(ManagedNode):
    """The node: what one drone knows and decides."""

    def __init__(self) -> None:
        super().__init__("agent")
        path = self.value("mission_file", "", "Scenario (resolved) with controller.kind: agents.")
        number = self.value("drone", 1, "Number of the drone, from 1.")
        silent_s = self.value("silent_s", 1.0, "Silence after which a neighbour is lost [s].")
        task_s = self.value("task_s", 10.0, "Time without a task after which it lands [s].")
        brief = read_brief(Path(path))
        if not isinstance(brief.controller, AgentsSpec):
            raise ConfigError(
                f"parameter mission_file = {path}: controller.kind = {brief.controller.kind}, "
                "must be agents"
            )
        setup = setup_of(brief, STEP_S)
        self._single, first = (
            SingleAgent(brief.controller, setup, number, silent_s=silent_s, task_s=task_s)
            for _ in range(2)
        )
        system = setup.slung
        self._k = number - 1
        self._name = f"drone_{number}"
        self._motion = ReceivedMotion(system.n_drones, system.n_rotors)
        self._rotors = system.drones[self._k].rotors
        self._rest_n = system.drones[self._k].mass_kg + system.load.mass_kg / system.n_drones
        self._rest_n *= setup.gravity_m_s2
        self._setpoint = DroneSetpoints.unset(1)
        self._ask = ForcesToSetpoints(system.carried_by([self._k]), self._setpoint, STEP_S)
        self._try_out(first)
        self._flew = self._has_told = False
        self._row: tuple[Transform, Twist, Twist | None] | None = None
        self._task: tuple[float, LoadReference] = RESTS, LoadReference(np.zeros((ORDERS, 4)))
        self._task_s = self._row_s = self._flown_s = self._before_s = -np.inf
        self._velocity = np.full(3, np.nan)
        self._pose_s = -np.inf
        self._flight_s = 0.0
        self._connect(number)
        self.come_up()

    def _try_out(self, first: SingleAgent) -> None:
        """Let another agent decide once before arming, yours too: that may compile for a minute."""
        self.get_logger().info("trying the agent out; compiling it may take a minute")
        motion = BodyMotion.zeros(2)
        motion.position_enu_m[1] = first.agent.post.place_m
        reference = LoadReference(np.zeros((ORDERS, 4)))
        load, own = motion.data
        command, _ = first.step(0.0, own, load, self._rest_n, reference, 0.0)
        self._ask.start(np.full((1, len(self._rotors)), 0.0), BodyMotion(motion.data[1:].copy()))
        self._ask(
            np.resize(command, (1, max(len(command), 4))), np.full((1, len(self._rotors)), 0.5)
        )
        self.get_logger().info(f"agent of {self._name} ready")

    def _connect(self, number: int) -> None:
        """Topics: absolute names below the namespace that holds all drones."""
        base = self.get_namespace().rstrip("/").removesuffix(f"/{self._name}")
        sub = self.create_subscription
        pub = self.create_publisher
        for body, name in ((0, "load"), (number, self._name)):
            sub(PoseStamped, f"{base}/{name}/pose", partial(self._on_pose, body), 1)
            sub(TwistStamped, f"{base}/{name}/twist", partial(self._on_twist, body), 1)
        sub(JointState, f"{base}/{self._name}/rotors", self._on_rotors, 1)
        sub(Float64MultiArray, f"{base}/{TASK}", self._on_task, LATCHED)
        sub(MultiDOFJointTrajectory, f"{base}/formation/setpoints", self._on_setpoints, 10)
        for other in self._single.hears:
            topic = f"{base}/drone_{other}/agent/sent"
            sub(Float64MultiArray, topic, partial(self._on_message, other), LATEST)
        own = f"{base}/{self._name}/agent"
        self._sent = pub(Float64MultiArray, f"{own}/sent", LATEST)
        self._out = pub(MultiDOFJointTrajectory, f"{own}/setpoints", 10)
        self._events = pub(String, f"{base}/{EVENTS}", 10)
        self._land = self.create_client(Trigger, f"{base}/offboard_{number}/land")
        self.publish_alone(f"{own}/setpoints")

    @property
    def busy(self) -> str:
        """Why the node must not end now: it flies the drone."""
        return f"it flies {self._name}" if self._flew else ""

    def step(self, time_s: float) -> None:
        """Go on without the formation where that is silent."""
        if self._row is not None and self._row_s < time_s - 1.5 * STEP_S:
            self._fly(time_s)

    def follows(self, time_s: float) -> bool:
        """Whether a time that jumps is that of this node's own simulator.

        See `SteppedNode`.
        """
        return self._pose_s == -np.inf or abs(self._pose_s - time_s) <= TIME_BACK_S

    def start_over(self) -> None:
        """Forget the flight."""
        self._forget()

    def _forget(self) -> None:
        self._row = None
        self._flew = False
        self._single.alone = None
        self._task_s = self._row_s = self._flown_s = self._before_s = -np.inf
        self._single.rest()

    def _fly(self, time_s: float) -> None:
        """Give the drone its set-point of this time."""
        if self._row is None or time_s <= self._flown_s:
            return
        self._flown_s = time_s
        flies, reference = self._task
        age_s = time_s - self._task_s
        alone = self._single.alone is not None or age_s > self._single.task_s
        if not alone and (flies != FLIES or not self._knows_itself()):
            self._flew = False
            self._single.rest()
            self._publish(time_s, *self._row)
            return
        motion = self._motion
        speeds = self._motion.rotor_speed_rad_s[self._k]
        motion.turn_rates()
        own = self._own(time_s)
        if not self._flew:
            self._ask.start(speeds[None], BodyMotion(own[None].copy()))
            self._flew = True
        command, messages = self._single.step(
            time_s, own, motion.estimate.data[0], self._thrust_n(speeds), reference, age_s
        )
        for to, numbers in messages:
            self._sent.publish(Float64MultiArray(data=[time_s, float(to), *numbers.tolist()]))
        if self._single.alone is not None:
            self._land_alone(time_s, command)
        elif self._single.level is ControlLevel.DRONE_SETPOINTS:
            self._publish_place(time_s, command)
        else:
            self._ask(command[None], self._ask.throttle(speeds[None]))
            row = self._setpoint.data[0]
            place = Transform(
                translation=vector(own[0:3]), rotation=level(row[9] if row[9] == row[9] else 0.0)
            )
            nothing = Twist(linear=vector(np.full(3, np.nan)))
            self._publish(time_s, place, nothing, Twist(linear=vector(row[6:9])))

    def _land_alone(self, time_s: float, command: Array) -> None:
        if not self._has_told:
            self._has_told = True
            self.say(f"{self._single.why}: it holds its place, then lands", error=True)
            text = f"cut_off: {self._name}: {self._single.why}: it holds its place, then lands"
            self._events.publish(String(data=text))
        self._publish_place(time_s, command)
        height_m = float(self._motion.estimate.position_enu_m[1 + self._k, 2])
        if command[2] < height_m - ON_GROUND_M and self._land.service_is_ready():
            self._land.call_async(Trigger.Request())  # PX4 finds out that it is down, and disarms

    def _publish_place(self, time_s: float, place_and_yaw: Array) -> None:
        place = Transform(
            translation=vector(place_and_yaw[:3]), rotation=level(float(place_and_yaw[3]))
        )
        self._publish(time_s, place, Twist(), None)

    def _publish(self, time_s: float, place: Transform, move: Twist, push: Twist | None) -> None:
        point = MultiDOFJointTrajectoryPoint(
            transforms=[place],
            velocities=[move],
            accelerations=[] if push is None else [push],
            time_from_start=duration(self._flight_s),
        )
        self._out.publish(
            MultiDOFJointTrajectory(
                header=in_world(time_s), joint_names=[self._name], points=[point]
            )
        )

    # ---------- What the drone knows

    def _knows_itself(self) -> bool:
        rows = self._motion.estimate.data[[0, 1 + self._k], :6]
        return bool(np.isfinite(rows).all())

    def _own(self, time_s: float) -> Array:
        """Motion of the drone, with its acceleration by differences of the velocity, (16,)."""
        row: Array = self._motion.estimate.data[1 + self._k]
        since_s = time_s - self._before_s
        if np.isfinite(self._velocity).all() and STEP_S / 2 < since_s < 1.0:
            change = (row[3:6] - self._velocity) / since_s
            row[13:16] += min(since_s / SMOOTHING_S, 1.0) * (change - row[13:16])
        self._velocity = row[3:6].copy()
        self._before_s = time_s
        return row.copy()

    def _thrust_n(self, speeds: Array) -> float:
        """Thrust of the rotors; that of rest where their speeds are not published."""
        if not speeds.any():
            return float(self._rest_n)
        return float(
            sum(
                rotor.thrust_coefficient_n_s2 * speed**2
                for rotor, speed in zip(self._rotors, speeds, strict=False)
            )
        )

    def _on_pose(self, body: int, m: PoseStamped) -> None:
        self._pose_s = time_of(m)
        place = vector_of(m.pose.position)
        turn = quaternion_of(m.pose.orientation)
        self._motion.on_pose(body, time_of(m), place, turn)

    def _on_twist(self, body: int, m: TwistStamped) -> None:
        twist = vector_of(m.twist.linear), vector_of(m.twist.angular)
        self._motion.on_twist(body, time_of(m), *twist)

    def _on_rotors(self, m: JointState) -> None:
        self._motion.on_rotors(1 + self._k, time_of(m), m.velocity)

    def _on_message(self, source: int, m: Float64MultiArray) -> None:
        sent_s, to, *numbers = m.data
        self._single.hear(source, int(to), sent_s, numbers)

    def _on_task(self, m: Float64MultiArray) -> None:
        flies = m.data[0]
        numbers = np.array(m.data[1:])
        if flies == OVER:
            self._forget()
            return
        derivatives, tilt = np.split(numbers, [4 * ORDERS])
        self._task = flies, LoadReference(derivatives.reshape(ORDERS, 4), tilt.reshape(ORDERS, 2))
        self._task_s = self.time_s

    def _on_setpoints(self, m: MultiDOFJointTrajectory) -> None:
        if not m.points or self._name not in m.joint_names or not self.active:
            return
        point = m.points[0]
        i = m.joint_names.index(self._name)
        push: Any = point.accelerations[i] if point.accelerations else None
        self._row = (point.transforms[i], point.velocities[i], push)
        self._row_s = time_of(m)
        self._flight_s = point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec
        self.time_s = max(self.time_s, self._row_s)
        if self._task_s == -np.inf:  # the first task comes on another topic, later perhaps
            self._task_s = self._row_s
        self._fly(self._row_s)


def main(args: list[str] | None = None) -> int:
    """Run the node."""
    return run(AgentNode, args)


if __name__ == "__main__":
    sys.exit(main())
