"""Cuts data/px4_x500_excerpt.npz from the full log of a real PX4, see data/README.md.

python src/musls_control/test/make_px4_excerpt.py x500_offboard_full_rate.npz
"""

import sys
from pathlib import Path

import numpy as np

from musls_control.px4 import PX4_PARAMETERS

EXCERPT = Path(__file__).parent / "data" / "px4_x500_excerpt.npz"

POSITION = {
    "vehicle_local_position": "x y z vx vy vz heading",
    "vehicle_local_position_setpoint": "thrust[0] thrust[1] thrust[2]",
    "trajectory_setpoint": "position[0] position[1] position[2] velocity[0] velocity[1] "
    "velocity[2] acceleration[0] acceleration[1] acceleration[2] yaw",
    "vehicle_land_detected": "landed ground_contact",
    "hover_thrust_estimate": "hover_thrust valid",
}
SLOW = {
    **POSITION,
    "vehicle_local_position": "x y z vx vy vz ax ay az heading dist_bottom",
    "hover_thrust_estimate": "hover_thrust hover_thrust_var valid",
    "takeoff_status": "tilt_limit takeoff_state",
}
STEP = {
    **POSITION,
    "vehicle_local_position_setpoint": "thrust[0] thrust[1] thrust[2] acceleration[0] "
    "acceleration[1] acceleration[2]",
}
FAST = {
    "sensor_gyro": "x y z",
    "estimator_sensor_bias": "gyro_bias[0] gyro_bias[1] gyro_bias[2]",
    "vehicle_angular_velocity": "xyz[0] xyz[1] xyz[2] xyz_derivative[0] xyz_derivative[1] "
    "xyz_derivative[2]",
    "vehicle_attitude": "q[0] q[1] q[2] q[3]",
    "vehicle_attitude_setpoint": "q_d[0] q_d[1] q_d[2] q_d[3] thrust_body[2]",
    "vehicle_local_position_setpoint": "thrust[0] thrust[1] thrust[2] yaw",
    "vehicle_rates_setpoint": "roll pitch yaw thrust_body[2]",
    "rate_ctrl_status": "rollspeed_integ pitchspeed_integ yawspeed_integ",
    "vehicle_torque_setpoint": "xyz[0] xyz[1] xyz[2]",
    "vehicle_thrust_setpoint": "xyz[2]",
    "actuator_motors": "control[0] control[1] control[2] control[3]",
    "control_allocator_status": "unallocated_torque[0] unallocated_torque[1] unallocated_torque[2]",
}
LEAVING = {
    "vehicle_local_position": "vx vy vz ax ay az",
    "vehicle_land_detected": "ground_contact maybe_landed landed",
    "vehicle_thrust_setpoint": "xyz[2]",
    "vehicle_angular_velocity": "xyz[0] xyz[1] xyz[2]",
}
PARTS = {  # seconds of the log, topics
    "take_off": (5.9, 13.2, SLOW),
    "leaving": (7.4, 8.2, LEAVING),
    "step": (25.3, 28.6, STEP),
    "climb": (25.9, 26.9, FAST),
    "turn": (33.7, 35.0, FAST),
}
HELD = ("trajectory_setpoint", "vehicle_land_detected", "estimator_sensor_bias", "takeoff_status")
"""Topics whose last message before a part still holds in it."""


def cut(log):
    """Tables of all parts: "part:topic" (fields, messages), with its times [us] and field names."""
    rotors = [f"CA_ROTOR{i}_{q}" for i in range(4) for q in ("PX", "PY", "KM", "CT")]
    names = [name for name in [*PX4_PARAMETERS, *rotors] if f"param/{name}" in log]
    tables = {
        "param": np.array([log[f"param/{name}"] for name in names], np.float32),
        "param/names": np.array(" ".join(names)),
    }
    for part, (start_s, end_s, topics) in PARTS.items():
        for topic, names in topics.items():
            time_us = log[f"{topic}/timestamp"].astype(np.int64)
            rows = np.flatnonzero((time_us >= start_s * 1e6) & (time_us <= end_s * 1e6))
            if topic in HELD:
                before = int(np.searchsorted(time_us, start_s * 1e6)) - 1
                rows = np.append(before, rows)
            if topic == "trajectory_setpoint":  # sent again and again: changes are enough
                values = np.nan_to_num(
                    np.stack([log[f"{topic}/{n}"][rows] for n in names.split()], axis=1)
                )
                rows = rows[np.append(True, (np.diff(values, axis=0) != 0.0).any(axis=1))]
            known = [name for name in names.split() if f"{topic}/{name}" in log]
            columns = [log[f"{topic}/{name}"][rows].astype(np.float32) for name in known]
            tables[f"{part}:{topic}"] = np.stack(columns)
            tables[f"{part}:{topic}/time"] = time_us[rows].astype(np.uint32)
            tables[f"{part}:{topic}/names"] = np.array(" ".join(known))
    return tables


if __name__ == "__main__":
    with np.load(sys.argv[1]) as full:
        np.savez_compressed(EXCERPT, **cut({name: full[name] for name in full.files}))
    print(EXCERPT, EXCERPT.stat().st_size)
