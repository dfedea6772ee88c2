"""Imperfections of real drones and of their links: scenario key `imperfections`.

Everything is zero by default, and then nothing is computed. Whatever flies the drones, built-in
or real PX4s, and whatever the cable model, the same imperfections act: on what sensors are told
(`SensedState`), on the thrust (`TiltedThrust`, `weakened`), on the way of set-points and motor
commands (`SetpointLink`, `CommandLatency`). docs/imperfections.md has typical sizes.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated

import numpy as np
from pydantic import Field

from musls_description.config.errors import ConfigError
from musls_description.config.schema import Number, spec
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import from_rotation_vector, matrix
from musls_description.system.drone import Drone
from musls_description.system.slung_system import RigSystem

LARGEST_TILT_RAD = 0.3
LARGEST_OFFSET_M = 1.0

_Tilt = Annotated[
    float, Field(ge=-LARGEST_TILT_RAD, le=LARGEST_TILT_RAD, allow_inf_nan=False), Number
]
_Offset = Annotated[
    float, Field(ge=-LARGEST_OFFSET_M, le=LARGEST_OFFSET_M, allow_inf_nan=False), Number
]
_Delay = Annotated[float, Field(ge=0.0, le=2.0, allow_inf_nan=False), Number]


@spec
class DroneImperfections:
    """Faults of one drone; angles are rotations about the body's x (left up) and y (nose down).

    A hovering drone whose position loop had no integrator would drift with the acceleration
    g tan(angle); the integrator takes that up, but it does so in the world's axes: the drone
    turns, and it has to learn again.

    Attributes:
        thrust_tilt_rad: Rotation of the rotors' axes from the body's z axis, about x and y.
        level_tilt_rad: Rotation from the body to what the autopilot takes for the body: a board
            that is not mounted level, or levelled on a slope. The drone leans by its opposite.
        thrust_scale: Thrust of all rotors relative to what the system's file says.
        mocap_offset_m: Point that motion capture reports, from the centre of mass, body frame.
    """

    thrust_tilt_rad: tuple[_Tilt, _Tilt] = (0.0, 0.0)
    level_tilt_rad: tuple[_Tilt, _Tilt] = (0.0, 0.0)
    thrust_scale: Annotated[float, Field(ge=0.5, le=1.5, allow_inf_nan=False), Number] = 1.0
    mocap_offset_m: tuple[_Offset, _Offset, _Offset] = (0.0, 0.0, 0.0)


@spec
class Imperfections:
    """Faults of the drones and of their links.

    Attributes:
        drones: Of each drone, or one entry for all of them.
        motor_spread: Standard deviation of the rotors' thrust and torque from rotor to rotor, as a
            share; drawn once, cut at three deviations.
        motor_seed: Of that draw; another seed of the scenario flies the same motors.
        setpoint_delay_s: From handing out a set-point until the autopilot has it.
        setpoint_jitter_s: A further delay, evenly spread from 0 to this, fresh for each set-point
            and drone; none overtakes another.
        command_latency_s: From a motor command until the motor has it.
    """

    drones: tuple[DroneImperfections, ...] = ()
    motor_spread: Annotated[float, Field(ge=0.0, le=0.2, allow_inf_nan=False), Number] = 0.0
    motor_seed: Annotated[int, Field(ge=0, lt=2**64), Number] = 0
    setpoint_delay_s: _Delay = 0.0
    setpoint_jitter_s: _Delay = 0.0
    command_latency_s: Annotated[float, Field(ge=0.0, le=0.2, allow_inf_nan=False), Number] = 0.0

    def of_each(self, n_drones: int) -> tuple[DroneImperfections, ...]:
        """One entry per drone."""
        given = self.drones or (DroneImperfections(),)
        if len(given) == 1:
            return given * n_drones
        if len(given) != n_drones:
            raise ConfigError(
                f"imperfections.drones has {len(given)} entries, must be one for all or one for "
                f"each of the {n_drones} drones"
            )
        return given


def weakened(system: RigSystem, faults: Imperfections) -> RigSystem:
    """The system as it really is: rotors with other thrusts. The same object without faults."""
    drones = faults.of_each(system.n_drones)
    if faults.motor_spread == 0.0 and all(fault.thrust_scale == 1.0 for fault in drones):
        return system
    draws = np.random.default_rng(faults.motor_seed).standard_normal(
        (system.n_drones, system.n_rotors)
    )
    share = 1.0 + faults.motor_spread * np.clip(draws, -3.0, 3.0)
    return dataclasses.replace(
        system,
        drones=tuple(
            _with_thrust(drone, fault.thrust_scale * row)
            for drone, fault, row in zip(system.drones, drones, share, strict=True)
        ),
    )


def _with_thrust(drone: Drone, share: Array) -> Drone:
    """A drone whose rotors give a share of their thrust; torque per thrust stays."""
    rotors = tuple(
        dataclasses.replace(rotor, thrust_coefficient_n_s2=rotor.thrust_coefficient_n_s2 * part)
        for rotor, part in zip(drone.rotors, share.tolist(), strict=False)
    )
    return dataclasses.replace(drone, rotors=rotors)


def tilt_matrix(tilt_rad: tuple[float, float]) -> Array:
    """Rotation matrix of a rotation about the body's x and y axes, (3, 3)."""
    return matrix(from_rotation_vector(np.array([*tilt_rad, 0.0])))
