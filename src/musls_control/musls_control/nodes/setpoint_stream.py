"""The message that streams set-points from `formation` to `offboard`."""

from __future__ import annotations

from geometry_msgs.msg import Transform, Twist
from trajectory_msgs.msg import MultiDOFJointTrajectory, MultiDOFJointTrajectoryPoint

from musls_control.nodes.poses import turn_to
from musls_control.plan_player import FormationSetpoint


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
