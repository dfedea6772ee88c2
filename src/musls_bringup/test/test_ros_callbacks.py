"""What goes wrong in a callback does not end a node that guides drones."""

import pytest
from ros_probe import needs_ros

pytestmark = [needs_ros(), pytest.mark.timeout(300)]


@pytest.fixture
def ros(domain):
    import rclpy

    rclpy.init()
    yield
    rclpy.try_shutdown()


class Until:
    """Stands for signals: comes when a condition holds."""

    def __init__(self, condition):
        self._condition = condition

    @property
    def came(self):
        return self._condition()


def make(fails, busy=""):
    from musls_control.nodes.stepped_node import SteppedNode

    class Stumbles(SteppedNode):
        steps = 0

        @property
        def busy(self):
            return busy

        def step(self, time_s):
            self.steps += 1
            fails(self.steps)

    return Stumbles("stumbles")


def test_one_line_of_code_logs_with_any_severity(ros, capfd):
    node = make(lambda _: None)
    for error in (False, True, False, True):
        node.say(f"severity {error}", error=error)
    node.destroy_node()
    told = capfd.readouterr().err
    assert told.count("[INFO]") == told.count("[ERROR]") == 2


def test_an_exception_in_a_callback_is_told_once_counted_and_survived(ros, domain, capfd):
    from diagnostic_msgs.msg import DiagnosticArray
    from ros_probe import Probe

    from musls_control.nodes.stepped_node import _spin

    def fails(step):
        if step % 2:
            raise ValueError("an odd step")

    node, probe = make(fails), Probe()
    probe.listen(DiagnosticArray, "/diagnostics")
    _spin(node, Until(lambda: probe.spin(0.01) or (node.steps >= 40 and bool(probe.last))))
    (what, count), *others = node.errors.counts.items()
    assert what.startswith("ValueError: an odd step (test_ros_callbacks.py:") and not others
    assert count >= 20
    (status,) = probe.last["/diagnostics"].status
    assert status.name == "stumbles: callbacks" and status.level == b"\2"
    assert status.values[0].key == what and int(status.values[0].value) <= count
    node.destroy_node()
    probe.close()
    assert capfd.readouterr().err.count("an odd step") == 1


@pytest.mark.parametrize("busy", ["", "a mission is flown"])
def test_an_error_of_ours_ends_a_node_only_on_the_ground(ros, busy):
    from musls_control.nodes.stepped_node import _spin
    from musls_description.config.errors import ConfigError

    def fails(step):
        raise ConfigError("no such file")

    node = make(fails, busy)
    if busy:
        _spin(node, Until(lambda: node.steps >= 5))
        assert node.errors.counts.total() >= 5
    else:
        with pytest.raises(ConfigError, match="no such file"):
            _spin(node, Until(lambda: node.steps >= 5))
    node.destroy_node()
