"""Real PX4 SITL as the autopilot: one `px4` process per drone, flown in lockstep over MAVLink."""
