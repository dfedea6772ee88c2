"""The messages that stream set-points from `formation` to `offboard`, and to whoever looks on."""

from __future__ import annotations

from geometry_msgs.msg import AccelStamped, Transform, Twist
from rclpy.node import Node
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

from musls_control.nodes.poses import turn_to
from musls_control.nodes.stepped_node import stamp
from musls_control.plan_player import FormationSetpoint


class SetpointStream:
    """Publishes what all drones are to do now.

    `/formation/setpoints` is for `offboard`; `/drone_i/setpoint_accel` are the accelerations in it
    that a controller asks for, for the recorder and for people.
    """

    def __init__(self, node: Node, drones: list[str]) -> None:
        """Make the publishers.

        Args:
            node: Has them.
            drones: Names.
        """
        self._drones = drones
        self._all = node.create_publisher(MultiDOFJointTrajectory, "/formation/setpoints", 10)
        self._accelerations = [
            node.create_publisher(AccelStamped, f"/{drone}/setpoint_accel", 10) for drone in drones
        ]

    def send(
        self, wanted: FormationSetpoint, asked: tuple[list, list] | None, time_s: float
    ) -> None:
        """Publish; last what simulated time waits for.

        Args:
            wanted: See `stream_of`.
            asked: See `stream_of`.
            time_s: Now.
        """
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

    Args:
        drones: Their names.
        wanted: Places and yaws of the formation.
        asked: Accelerations and yaws of a controller, None while it does not fly.
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
