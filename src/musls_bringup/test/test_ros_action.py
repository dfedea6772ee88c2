"""The action `fly_mission`, with its built type and real nodes."""

import numpy as np
import pytest
from ros_probe import Probe, needs_ros
from test_ros_real import SHORT

from musls_bringup.catalogue.shipped import find_scenario
from musls_bringup.ros import processes
from musls_description.config.schema import to_yaml

pytestmark = [needs_ros(), pytest.mark.timeout(1200), pytest.mark.slow]


@pytest.mark.parametrize("cancels", [False, True])
def test_a_mission_is_flown_told_of_and_cancelled(nodes, tmp_path, cancels):
    interfaces = pytest.importorskip("musls_interfaces.action", reason="not built: ros setup")
    from action_msgs.msg import GoalStatus
    from rclpy.action import ActionClient

    (tmp_path / "short.yaml").write_text(SHORT)
    file = tmp_path / "solo.yaml"
    file.write_text(to_yaml(find_scenario(str(tmp_path / "short.yaml"), [])))
    for node in (
        processes.simulator(file, realtime=False),
        processes.offboard(1),
        processes.formation(file),
    ):
        nodes.start(node)
    probe, told = Probe(), []
    try:
        client = ActionClient(probe.node, interfaces.FlyMission, "fly_mission")
        assert probe.until(client.server_is_ready), nodes.log("formation")
        probe.spin(1.0)

        def ask(mission_file=""):
            goal = interfaces.FlyMission.Goal(mission_file=mission_file)
            sent = client.send_goal_async(goal, lambda m: told.append(m.feedback))
            assert probe.until(sent.done)
            return sent.result()

        def ended(goal):
            asked = goal.get_result_async()
            assert probe.until(asked.done), nodes.log("formation")
            return asked.result()

        refused = ended(ask(str(tmp_path / "none.yaml")))
        assert refused.status == GoalStatus.STATUS_ABORTED
        assert "none.yaml" in refused.result.message and not refused.result.success

        goal = ask()
        assert goal.accepted
        assert probe.until(lambda: any(m.state == "flying" for m in told)), nodes.log("formation")
        assert not ask().accepted  # one at a time
        if cancels:
            cancelling = goal.cancel_goal_async()
            assert probe.until(cancelling.done) and cancelling.result().goals_canceling
        end = ended(goal)
        statuses = (GoalStatus.STATUS_SUCCEEDED, GoalStatus.STATUS_CANCELED)
        assert end.status == statuses[cancels] and end.result.success == (not cancels)
        flying = [m for m in told if m.state == "flying"]
        assert all(len(m.tracking_error_m) == 1 for m in told)
        left_s = np.array([m.time_left_s for m in flying])
        assert np.all(np.diff(left_s)[left_s[1:] > 0.0] <= 1e-9) and np.all(left_s >= 0.0)
        assert cancels == any(m.state == "aborting" for m in told)
        assert {m.stage for m in told} >= ({"land"} if cancels else {"lift", "land"})
        print([(m.stage, m.state, round(m.time_left_s, 1)) for m in told])
    finally:
        probe.close()
