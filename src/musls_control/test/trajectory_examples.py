"""One trajectory of every kind, none with default values alone."""

from musls_control.trajectories import Circle, Engage, Hold, Line, Shm, Waypoint, Waypoints

EXAMPLES = {
    "circle": Circle(radius_m=1.2, speed_m_s=0.5, center_m=(0.3, -0.4), repetitions=2),
    "shm": Shm(amplitude_m=0.8, omega_rad_s=1.5, center_m=(0.3, -0.4), repetitions=3),
    "engage": Engage(repetitions=2, center_m=(0.3, -0.4)),
    "hold": Hold(duration_s=4.0, position_m=(1.0, 2.0, 3.0), yaw_rad=0.4),
    "line": Line(start_m=(-1.0, 0.0, 1.0), end_m=(1.0, 1.0, 2.0), repetitions=2),
    "waypoints": Waypoints(
        points=[
            Waypoint(position_m=(0.0, 0.0, 1.0), hold_s=1.0),
            Waypoint(position_m=(3.0, 0.0, 1.0), yaw_rad=0.6, hold_s=0.5),
        ],
        repetitions=2,
    ),
}
