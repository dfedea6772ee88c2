"""What PX4 is told about an airframe: rotor layout and gains from the drone's true properties.

PX4's gains act on normalised torques and were made for airframes like the x500. A drone that is
lighter, larger or has slower rotors answers a unit of torque command differently, so its gains are
chosen such that its rate loops move as those of the x500 do, as far as its rotors allow.

One axis of the rate loop, with the angular acceleration b per unit of torque command, rotors of
first order with time constant tau, and gains P and D (Franklin, Powell, Emami-Naeini, "Feedback
Control of Dynamic Systems", proportional and rate feedback):

    tau s^2 + (1 + b D) s + b P = 0,   so   wn^2 = b P / tau,   2 zeta wn = (1 + b D) / tau.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from musls_control.px4_cascade.allocation import (
    MIX_PITCH,
    MIX_ROLL,
    MIX_YAW,
    RotorLayout,
    build_mixer,
)
from musls_control.px4_cascade.parameters import PX4_PARAMETERS
from musls_description.drone import Drone

Array = NDArray[np.float64]

X500 = "x500"
"""Model whose layout and gains are PX4's own (airframe 4001)."""

X500_AUTHORITY_RAD_S2 = (254.0, 254.0, 17.89)
"""Angular acceleration per unit of roll, pitch and yaw torque command of a hovering x500 (true
geometry of the Gazebo model): what PX4's default gains are good for."""
X500_ROTOR_LAG_S = 0.01875
"""Mean time constant of its rotors, up 12.5 and down 25 ms."""

MAX_RATE_GAIN = {"ROLL": 1.0, "PITCH": 1.0, "YAW": 0.6}
"""Above these an ordinary error would ask for more torque than there is."""
MAX_RATE_D_GAIN = 0.05


def rotor_layout(drone: Drone) -> RotorLayout:
    """Rotor geometry for PX4's control allocation.

    PX4's own x500 airframe (4001) holds other arm lengths than its Gazebo model; a drone of that
    model is flown with PX4's numbers, any other with its true geometry, scaled to the size that
    PX4's rules expect.
    """
    if drone.model == X500:
        return RotorLayout.x500()
    spin = [1.0 if rotor.spin == "ccw" else -1.0 for rotor in drone.rotors]
    first = drone.rotors[0]
    return RotorLayout(
        px_m=tuple(rotor.position_m[0] for rotor in drone.rotors),
        py_m=tuple(-rotor.position_m[1] for rotor in drone.rotors),
        km=tuple(s * r.moment_ratio_m for s, r in zip(spin, drone.rotors, strict=True)),
        ct=tuple(r.thrust_coefficient_n_s2 for r in drone.rotors),
        omega_min_rad_s=first.speed_min_rad_s,
        omega_max_rad_s=first.speed_max_rad_s,
    ).normalised()


def torque_authority_rad_s2(drone: Drone, gravity_m_s2: float) -> Array:
    """Angular acceleration of a hovering drone per unit of torque command, roll, pitch, yaw (3,).

    Args:
        drone: Airframe.
        gravity_m_s2: Gravity.
    """
    mixer = build_mixer(rotor_layout(drone))
    k = np.array([rotor.thrust_coefficient_n_s2 for rotor in drone.rotors])
    hover_n = drone.mass_kg * gravity_m_s2 * k / k.sum()
    speed = np.sqrt(hover_n / k)
    span = np.array([rotor.speed_max_rad_s - rotor.speed_min_rad_s for rotor in drone.rotors])
    thrust_n = (2.0 * k * speed * span)[:, None] * mixer[:, [MIX_ROLL, MIX_PITCH, MIX_YAW]]
    place = np.array([rotor.position_m for rotor in drone.rotors])
    spin = np.array([1.0 if rotor.spin == "ccw" else -1.0 for rotor in drone.rotors])
    ratio = spin * np.array([rotor.moment_ratio_m for rotor in drone.rotors])
    # PX4's axes are FRD: pitch and yaw are about the negative y and z axes of FLU.
    moment = np.array(
        [place[:, 1] @ thrust_n[:, 0], place[:, 0] @ thrust_n[:, 1], ratio @ thrust_n[:, 2]]
    )
    return moment / np.diag(np.array(drone.inertia_kg_m2))


def rotor_lag_s(drone: Drone) -> float:
    """Mean time constant of the rotors."""
    return float(
        np.mean([(r.time_constant_up_s + r.time_constant_down_s) / 2.0 for r in drone.rotors])
    )


def gains(drone: Drone, gravity_m_s2: float) -> dict[str, float]:
    """PX4 gains for an airframe; none for an x500, which flies with PX4's defaults.

    b P is kept from the x500. With slower rotors the natural frequency then falls with the root of
    the lag, b D is raised so that the damping stays, and attitude and horizontal motion are slowed
    down alike; the loop of the height is slow enough.

    Args:
        drone: Airframe.
        gravity_m_s2: Gravity.
    """
    if drone.model == X500:
        return {}
    slower = max(1.0, math.sqrt(rotor_lag_s(drone) / X500_ROTOR_LAG_S))
    found = {}
    authority = torque_authority_rad_s2(drone, gravity_m_s2)
    for axis, reference, own in zip(
        ("ROLL", "PITCH", "YAW"), X500_AUTHORITY_RAD_S2, authority, strict=True
    ):
        p, i, d = (PX4_PARAMETERS[f"MC_{axis}RATE_{term}"].default for term in "PID")
        ratio = min(reference / own, MAX_RATE_GAIN[axis] / p)
        found[f"MC_{axis}RATE_P"] = p * ratio
        found[f"MC_{axis}RATE_I"] = i * ratio / slower
        if d > 0.0:
            wanted = (1.0 + reference * d) * slower - 1.0
            found[f"MC_{axis}RATE_D"] = min(wanted / reference * ratio, MAX_RATE_D_GAIN)
    for name, power in (
        ("MC_ROLL_P", 1), ("MC_PITCH_P", 1), ("MC_YAW_P", 1),
        ("MPC_XY_P", 1), ("MPC_XY_VEL_P_ACC", 1), ("MPC_XY_VEL_I_ACC", 2),
    ):  # fmt: skip
        if slower > 1.0:
            found[name] = PX4_PARAMETERS[name].default / slower**power
    return {name: float(f"{value:.4g}") for name, value in found.items()}
