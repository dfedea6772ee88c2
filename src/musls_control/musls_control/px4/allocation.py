"""Control allocation: effectiveness, normalised mixer, sequential desaturation.

Source: PX4 v1.15 source, control_allocator (ActuatorEffectivenessRotors,
ControlAllocationPseudoInverse, ControlAllocationSequentialDesaturation with MC_AIRMODE 0).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from musls_control.px4.parameters import MAX_ROTORS, PX4_PARAMETERS
from musls_description.config.errors import ConfigError
from musls_description.config.schema import Finite, NonNegative, Positive, spec
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import compiled
from musls_description.system.drone import CANNOT_STEER, Drone, wrench_of_thrusts

MIN_ROTORS = 4

# Columns of a drone's mixer, one row per rotor.
MIX_ROLL = 0
MIX_PITCH = 1
MIX_YAW = 2
MIX_THRUST = 3
EFFECT_ROLL = 4
EFFECT_PITCH = 5
EFFECT_YAW = 6
OMEGA_MIN = 7
OMEGA_MAX = 8
MIXER_COLUMNS = 9

#: A motor that acts on an axis by less than this is not used to desaturate it.
WEAK_EFFECT = 0.2
#: Room above full throttle that yaw may use to keep some authority at full thrust.
YAW_HEADROOM = 0.15
#: An axis on which all rotors together act by no more than this is dropped (PX4's rule).
HARDLY_ACTS = 0.05
#: Size of the numbers in PX4's own airframe files, for which that rule was made.
USUAL_ARM_M = 0.25
USUAL_CT = 6.5
USUAL_KM_M = 0.05

Column = Annotated[tuple[Finite, ...], Field(max_length=MAX_ROTORS)]


@spec
class RotorLayout:
    """Rotors as the flight stack believes them to be (PX4's CA_ROTORn_*), and the ESC map.

    The lengths need not match the physical ones: PX4's x500 airframe itself differs from its model.

    Attributes:
        px_m: Rotor positions forward of the centre of mass, FRD x, one per rotor (CA_ROTORn_PX).
        py_m: Positions to the right, FRD y (CA_ROTORn_PY).
        km: Moment over thrust, positive for rotors that turn anti-clockwise seen from above
            (CA_ROTORn_KM); m.
        ct: Thrust coefficients (CA_ROTORn_CT); only ratios between rotors matter.
        omega_min_rad_s: Rotor speed at command 0 while armed.
        omega_max_rad_s: Rotor speed at command 1.
    """

    px_m: Column
    py_m: Column
    km: Column
    ct: Column
    omega_min_rad_s: NonNegative = 150.0
    omega_max_rad_s: Positive = 1000.0

    def __post_init__(self) -> None:
        if self.n_rotors < MIN_ROTORS:
            raise ValueError(
                f"a multicopter needs {MIN_ROTORS} to {MAX_ROTORS} rotors, got {self.n_rotors}"
            )
        if len({len(column) for column in (self.px_m, self.py_m, self.km, self.ct)}) > 1:
            raise ValueError("px_m, py_m, km and ct need one number a rotor")
        if self.omega_min_rad_s >= self.omega_max_rad_s:
            raise ValueError(
                f"omega_min_rad_s ({self.omega_min_rad_s:g}) must be below omega_max_rad_s "
                f"({self.omega_max_rad_s:g})"
            )

    @property
    def n_rotors(self) -> int:
        """Number of rotors."""
        return len(self.px_m)

    @classmethod
    def x500(cls) -> RotorLayout:
        """Return the geometry of PX4's x500 airframe 4001."""
        return cls(
            px_m=(0.13, -0.13, 0.13, -0.13),
            py_m=(0.22, -0.20, -0.22, 0.20),
            km=(0.05, 0.05, -0.05, -0.05),
            ct=(6.5, 6.5, 6.5, 6.5),
        )

    def normalised(self) -> RotorLayout:
        """Return the same geometry in the size of PX4's own airframe files.

        Mean arm length, thrust coefficient and moment ratio become those of an ordinary airframe,
        as PX4's users enter them. The mixer does not depend on these scales, but PX4's rule which
        axes can be controlled does: true constants of a small drone would fall below it.
        """
        arm = np.hypot(self.px_m, self.py_m).mean()
        sizes = {
            "px_m": (USUAL_ARM_M, arm),
            "py_m": (USUAL_ARM_M, arm),
            "km": (USUAL_KM_M, np.abs(self.km).mean()),
            "ct": (USUAL_CT, np.abs(self.ct).mean()),
        }
        changes: dict[str, Any] = {
            name: [usual / present * value for value in getattr(self, name)]
            for name, (usual, present) in sizes.items()
            if present > 0.0
        }
        return replace(self, **changes)

    def with_parameters(self, parameters: Mapping[str, float]) -> RotorLayout:
        """Return the layout with the CA_ROTORn_* of a parameter set in place."""
        columns = {"PX": "px_m", "PY": "py_m", "KM": "km", "CT": "ct"}
        changed: dict[str, Any] = {}
        for name, value in parameters.items():
            if not name.startswith("CA_ROTOR"):
                continue
            rotor, quantity = name.removeprefix("CA_ROTOR").split("_")
            if int(rotor) >= self.n_rotors:
                raise ConfigError(f"PX4 parameter {name}: the drone has {self.n_rotors} rotors")
            column = columns[quantity]
            changed.setdefault(column, list(getattr(self, column)))[int(rotor)] = value
        return replace(self, **changed) if changed else self


def effectiveness(rotors: RotorLayout) -> np.ndarray:
    """Return the effectiveness matrix (6, n_rotors): moments and forces, FRD, per unit command."""
    n = rotors.n_rotors
    axis = np.array([0.0, 0.0, -1.0])
    position = np.column_stack([rotors.px_m, rotors.py_m, np.zeros(n)])
    ct = np.array(rotors.ct)[:, None]
    km = np.array(rotors.km)[:, None]
    moment = ct * np.cross(position, axis) - ct * km * axis
    force = ct * axis
    matrix = np.vstack([moment.T, force.T])
    matrix[np.abs(matrix).max(axis=1) <= HARDLY_ACTS] = 0.0
    return matrix


@cache
def build_mixer(rotors: RotorLayout) -> np.ndarray:
    """Return a drone's mixer (n_rotors, MIXER_COLUMNS), not to be written.

    The pseudo-inverse of the effectiveness, with columns normalised so that a unit command means
    the same on every airframe, the scaled effectiveness, and the ESC map.
    """
    matrix = effectiveness(rotors)
    controlled = matrix[[0, 1, 2, 5]]
    if np.linalg.matrix_rank(controlled, tol=1e-6 * np.abs(controlled).max()) < 4:
        raise ConfigError(CANNOT_STEER)
    inverse = np.linalg.pinv(matrix)
    n_rotors = np.maximum((np.abs(inverse[:, :2]) > 1e-3).sum(axis=0), 1)
    roll_pitch = np.sqrt((inverse[:, :2] ** 2).sum(axis=0) / (n_rotors / 2.0)).max()
    yaw = inverse[:, 2].max()
    thrust_column = np.abs(inverse[:, 5])
    thrust = thrust_column.sum() / max((thrust_column > 1.2e-7).sum(), 1)
    scale = np.array([roll_pitch, roll_pitch, yaw, thrust])
    mix = inverse[:, [0, 1, 2, 5]] / scale
    mix[np.abs(mix) < 1e-3] = 0.0

    mixer = np.empty((rotors.n_rotors, MIXER_COLUMNS))
    mixer[:, MIX_ROLL : MIX_THRUST + 1] = mix
    mixer[:, EFFECT_ROLL : EFFECT_YAW + 1] = matrix[:3].T * scale[:3]
    mixer[:, OMEGA_MIN] = rotors.omega_min_rad_s
    mixer[:, OMEGA_MAX] = rotors.omega_max_rad_s
    return mixer


@compiled()
def desaturation_gain(u, mixer, column, upper):
    """Return how far to move along a mixer column to bring all motors between 0 and `upper`."""
    k_min = 0.0
    k_max = 0.0
    for i in range(mixer.shape[0]):
        effect = mixer[i, column]
        if abs(effect) < WEAK_EFFECT:
            continue
        if u[i] < 0.0:
            k = -u[i] / effect
        elif u[i] > upper:
            k = (upper - u[i]) / effect
        else:
            continue
        k_min = min(k_min, k)
        k_max = max(k_max, k)
    return k_min + k_max


@compiled()
def desaturate(u, mixer, column, upper, only_lower):
    """Move motor commands along a mixer column to bring them within the limits, in place.

    First by the whole way, then by half of what is left, as PX4 does.
    """
    gain = desaturation_gain(u, mixer, column, upper)
    if only_lower and gain < 0.0:
        return
    for i in range(mixer.shape[0]):
        u[i] += gain * mixer[i, column]
    gain = 0.5 * desaturation_gain(u, mixer, column, upper)
    for i in range(mixer.shape[0]):
        u[i] += gain * mixer[i, column]


@compiled()
def allocate(u, mixer, torque, thrust_z):
    """Distribute torque and thrust over the motors; roll and pitch go before yaw."""
    n_rotors = mixer.shape[0]
    for i in range(n_rotors):
        u[i] = (
            mixer[i, MIX_ROLL] * torque[0]
            + mixer[i, MIX_PITCH] * torque[1]
            + mixer[i, MIX_THRUST] * thrust_z
        )
    desaturate(u, mixer, MIX_THRUST, 1.0, True)
    desaturate(u, mixer, MIX_ROLL, 1.0, False)
    desaturate(u, mixer, MIX_PITCH, 1.0, False)
    for i in range(n_rotors):
        u[i] += mixer[i, MIX_YAW] * torque[2]
    desaturate(u, mixer, MIX_YAW, 1.0 + YAW_HEADROOM, False)
    desaturate(u, mixer, MIX_THRUST, 1.0, True)
    for i in range(n_rotors):
        u[i] = min(max(u[i], 0.0), 1.0)


@compiled()
def unallocated_torque(result, u, mixer, torque):
    """Write the part of a torque (3,) that motor commands u (n_rotors,) do not produce."""
    for axis in range(3):
        produced = 0.0
        for i in range(mixer.shape[0]):
            produced += mixer[i, EFFECT_ROLL + axis] * u[i]
        result[axis] = torque[axis] - produced


@compiled()
def output_motors(u, omega, mixer, armed, thrust_model_factor):
    """Apply the thrust curve and the ESC map in place; all zero while disarmed."""
    for i in range(mixer.shape[0]):
        if armed == 0:
            u[i] = 0.0
            omega[i] = 0.0
            continue
        if thrust_model_factor > 1e-6:
            half_b = 0.5 * (1.0 - thrust_model_factor) / thrust_model_factor
            u[i] = -half_b + math.sqrt(half_b * half_b + u[i] / thrust_model_factor)
        omega[i] = mixer[i, OMEGA_MIN] + u[i] * (mixer[i, OMEGA_MAX] - mixer[i, OMEGA_MIN])


# ---------- Rotor layout and gains from a drone's true properties
#
# PX4's gains act on normalised torques and were made for airframes like the x500. A drone that is
# lighter, larger or has slower rotors answers a unit of torque command differently, so its gains
# are chosen such that its rate loops move as those of the x500 do, as far as its rotors allow.
#
# One axis of the rate loop, with the angular acceleration b per unit of torque command, rotors of
# first order with time constant tau, and gains P and D (Franklin, Powell, Emami-Naeini, "Feedback
# Control of Dynamic Systems", proportional and rate feedback):
#
#     tau s^2 + (1 + b D) s + b P = 0,   so   wn^2 = b P / tau,   2 zeta wn = (1 + b D) / tau.

X500 = "x500"
"""Model whose layout and gains are PX4's own (airframe 4001)."""

X500_AUTHORITY_RAD_S2 = (254.0, 254.0, 17.89)
"""Angular acceleration per unit of roll, pitch and yaw torque command of a hovering x500 (true
geometry of the Gazebo model): what PX4's default gains are good for."""
X500_ROTOR_LAG_S = 0.01875
"""Mean time constant of its rotors, up 12.5 and down 25 ms."""

MAX_RATE_GAIN = {"ROLL": 1.0, "PITCH": 1.0, "YAW": 0.6}
"""Largest rate gains; above them an ordinary error would ask for more torque than there is."""
MAX_RATE_D_GAIN = 0.05


def rotor_layout(drone: Drone) -> RotorLayout:
    """Rotor geometry for PX4's control allocation.

    PX4's own x500 airframe (4001) holds other arm lengths than its Gazebo model; a drone of that
    model is flown with PX4's numbers, any other with its true geometry, scaled to the size that
    PX4's rules expect.
    """
    if drone.model == X500:
        return RotorLayout.x500()
    rotors = drone.rotors
    return RotorLayout(
        px_m=tuple(rotor.position_m[0] for rotor in rotors),
        py_m=tuple(-rotor.position_m[1] for rotor in rotors),
        km=tuple(r.moment_ratio_m if r.spin == "ccw" else -r.moment_ratio_m for r in rotors),
        ct=tuple(rotor.thrust_coefficient_n_s2 for rotor in rotors),
        omega_min_rad_s=rotors[0].speed_min_rad_s,
        omega_max_rad_s=rotors[0].speed_max_rad_s,
    ).normalised()


def torque_authority_rad_s2(drone: Drone, gravity_m_s2: float) -> Array:
    """Angular acceleration in hover per unit of torque command, roll, pitch, yaw (3,)."""
    mixer = build_mixer(rotor_layout(drone))
    k = np.array([rotor.thrust_coefficient_n_s2 for rotor in drone.rotors])
    hover_n = drone.mass_kg * gravity_m_s2 * k / k.sum()
    speed = np.sqrt(hover_n / k)
    span = np.array([rotor.speed_max_rad_s - rotor.speed_min_rad_s for rotor in drone.rotors])
    thrust_n = (2.0 * k * speed * span)[:, None] * mixer[:, [MIX_ROLL, MIX_PITCH, MIX_YAW]]
    # PX4's axes are FRD: pitch and yaw are about the negative y and z axes of FLU.
    moment = np.diag(wrench_of_thrusts(drone)[1:] @ thrust_n) * [1.0, -1.0, -1.0]
    return moment / np.diag(np.array(drone.inertia_kg_m2))


def rotor_lag_s(drone: Drone) -> float:
    """Mean time constant of the rotors."""
    return float(np.mean([(r.time_constant_up_s, r.time_constant_down_s) for r in drone.rotors]))


def gains(drone: Drone, gravity_m_s2: float) -> dict[str, float]:
    """PX4 gains for an airframe; none for an x500, which flies with PX4's defaults.

    b P is kept from the x500. With slower rotors the natural frequency then falls with the root of
    the lag, b D is raised so that the damping stays, and attitude and horizontal motion are slowed
    down alike; the loop of the height is slow enough.
    """
    if drone.model == X500:
        return {}
    slower = max(1.0, math.sqrt(rotor_lag_s(drone) / X500_ROTOR_LAG_S))
    values = {}
    authority = torque_authority_rad_s2(drone, gravity_m_s2)
    for axis, reference, own in zip(
        ("ROLL", "PITCH", "YAW"), X500_AUTHORITY_RAD_S2, authority, strict=True
    ):
        p, i, d = (PX4_PARAMETERS[f"MC_{axis}RATE_{term}"].default for term in "PID")
        ratio = min(reference / own, MAX_RATE_GAIN[axis] / p)
        values[f"MC_{axis}RATE_P"] = p * ratio
        values[f"MC_{axis}RATE_I"] = i * ratio / slower
        if d > 0.0:
            target = (1.0 + reference * d) * slower - 1.0
            values[f"MC_{axis}RATE_D"] = min(target / reference * ratio, MAX_RATE_D_GAIN)
    for name, power in (
        ("MC_ROLL_P", 1),
        ("MC_PITCH_P", 1),
        ("MC_YAW_P", 1),
        ("MPC_XY_P", 1),
        ("MPC_XY_VEL_P_ACC", 1),
        ("MPC_XY_VEL_I_ACC", 2),
    ):
        if slower > 1.0:
            values[name] = PX4_PARAMETERS[name].default / slower**power
    return {name: float(f"{value:.4g}") for name, value in values.items()}
