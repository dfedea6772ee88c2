"""One trajectory of every kind, none with default values alone."""

from pathlib import Path

from musls_control.trajectories import (
    Circle,
    Engage,
    FigureEight,
    Helix,
    Hold,
    Line,
    Quintic,
    Shm,
    SmoothCircle,
    Step,
    Waypoint,
    Waypoints,
)
from musls_control.trajectories.min_derivative import MinDerivative
from musls_control.trajectories.recorded import RecordedTrajectory

SETPOINTS = Path(__file__).parent / "data" / "setpoints.csv"

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
    "min_derivative": MinDerivative(
        points=[[0, 0, 1], [1, 0, 1.5, 0.4], {"position_m": [1, 2, 1], "hold_s": 2.0}, [3, 2, 2]],
        order=4,
        speed_m_s=1.0,
        acceleration_m_s2=1.0,
        tilts_rad=[[0.1, 0.0], [0.8, -0.3], [0.4, 0.0], [0.0, 0.2]],
    ),
    "quintic": Quintic(points=[[0, 0, 1], [2, 0, 1.5, 1.0], [2, 3, 1]], speed_m_s=0.8),
    "smooth_circle": SmoothCircle(
        turn_s=6.0, ramp_s=7.0, cruise_s=5.0, center_m=(0.3, -0.4), rotation_rad=(0.1, -0.2, 0.3)
    ),
    "figure_eight": FigureEight(axis_yaw_rad=0.4, rise_m=0.2, rotation_rad=(0.2, 0.0, 0.5)),
    "helix": Helix(radius_m=0.8, rise_m=-0.1, height_m=2.0, center_m=(1.0, 0.0)),
    "step": Step(end_rotation_rad=(0.1, 0.2, 0.3), wait_s=3.0),
    "recorded": RecordedTrajectory(path=str(SETPOINTS)),
}
