"""ROS 2 nodes of the simulator's side; thin, their logic is in plain classes."""

from musls_control.child_processes import end_quietly_while_starting

end_quietly_while_starting()
