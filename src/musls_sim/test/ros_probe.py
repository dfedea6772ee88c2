"""Helpers of the ROS tests: a domain of their own, and a node that listens."""

import fcntl
import os
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

REASON = "needs ROS 2 (./musls ros setup): "
FIRST_DOMAIN, LAST_DOMAIN = 1, 101


def needs_ros():
    """Mark of a test that needs rclpy and the messages."""
    from musls_bringup.ros.workspace import RosSetupError, check_ros

    try:
        check_ros()
    except RosSetupError as error:
        return pytest.mark.skip(reason=REASON + str(error))
    return pytest.mark.ros


@contextmanager
def own_domain():
    """A ROS domain that no other test on this machine uses; discovery on loopback only."""
    for domain in range(FIRST_DOMAIN, LAST_DOMAIN + 1):
        path = Path(tempfile.gettempdir()) / f"musls_ros_domain_{domain}.lock"
        lock = path.open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError:
            lock.close()
    else:
        pytest.fail("no free ROS domain")
    before = dict(os.environ)
    os.environ.update(ROS_DOMAIN_ID=str(domain), ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST")
    try:
        yield domain
    finally:
        os.environ.clear()
        os.environ.update(before)
        lock.close()


class Probe:
    """A node of the test itself; keeps the last message of what it listens to, all of texts."""

    def __init__(self):
        import rclpy
        from rclpy.executors import SingleThreadedExecutor

        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.node = rclpy.create_node("probe", context=self.context)
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        self.last, self.count, self.told = {}, {}, {}

    def listen(self, kind, topic, profile=10):
        def keep(message):
            self.last[topic] = message
            self.count[topic] = self.count.get(topic, 0) + 1
            if hasattr(message, "data"):
                self.told.setdefault(topic, []).append(message.data)

        self.node.create_subscription(kind, topic, keep, profile)

    def until(self, condition, within_s=200.0):
        """Spin until something is true; returns whether it came true.

        The limit is for a machine with ten times as much work as it can do.
        """
        end = time.monotonic() + within_s
        while time.monotonic() < end:
            if condition():
                return True
            self._executor.spin_once(timeout_sec=0.05)
        return False

    def spin(self, seconds):
        self.until(lambda: False, seconds)

    def call(self, kind, service, request, *, again=False, within_s=100.0):
        """Answer of a service.

        An answer is lost if the server has not found the client yet, which it is given a moment
        for; a request that does the same at a second time may be sent `again`.
        """
        client = self.node.create_client(kind, service)
        assert client.wait_for_service(within_s), f"no service {service}"
        self.spin(0.5)
        for _ in range(5 if again else 1):
            future = client.call_async(request)
            if self.until(future.done, within_s / 5 if again else within_s):
                return future.result()
        raise AssertionError(f"no answer from {service}")

    def close(self):
        self._executor.shutdown()
        self.node.destroy_node()
        self.context.try_shutdown()


class FlightProbe(Probe):
    """Listens to what tells how a flight of three drones goes."""

    def __init__(self):
        from geometry_msgs.msg import PoseStamped
        from px4_msgs.msg import VehicleStatus
        from rclpy.qos import DurabilityPolicy, QoSProfile
        from std_msgs.msg import String

        from musls_control.nodes.stepped_node import FROM_PX4, LATCHED
        from musls_control.px4.offboard import px4_topic

        every = QoSProfile(depth=50, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        super().__init__()
        self.status_topics = [px4_topic(i, "out", VehicleStatus) for i in (1, 2, 3)]
        for i, status in enumerate(self.status_topics, start=1):
            self.listen(String, f"/drone_{i}/offboard/phase", LATCHED)
            self.listen(VehicleStatus, status, FROM_PX4)
            self.listen(PoseStamped, f"/drone_{i}/pose")
        self.listen(PoseStamped, "/load/pose")
        self.listen(String, "/formation/state", LATCHED)
        self.listen(String, "/mission/stage", every)

    @property
    def phases(self):
        """What the offboard node says of the drones."""
        return {self.text(f"/drone_{i}/offboard/phase") for i in (1, 2, 3)}

    @property
    def statuses(self):
        """Status of each drone that is heard."""
        return [self.last[topic] for topic in self.status_topics if topic in self.last]

    @property
    def stage(self):
        return self.text("/mission/stage")

    @property
    def time_s(self):
        stamp = self.last["/load/pose"].header.stamp
        return stamp.sec + stamp.nanosec * 1e-9

    def text(self, topic):
        return getattr(self.last.get(topic), "data", None)

    def positions(self):
        """Load and drones, ENU, (4, 3); waits until all are heard."""
        topics = [f"/{body}/pose" for body in ("load", "drone_1", "drone_2", "drone_3")]
        assert self.until(lambda: all(topic in self.last for topic in topics)), self.last.keys()
        found = [self.last[topic].pose.position for topic in topics]
        return np.array([[p.x, p.y, p.z] for p in found])

    def wait_for_flight(self):
        """Until all fly and are heard."""
        assert self.until(lambda: self.phases == {"flying"}, 150.0), self.phases
        self.positions()
