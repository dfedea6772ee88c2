"""Imperfections of real drones and of their links: scenario key `imperfections`.

Everything is zero by default, and then nothing is computed. Whatever flies the drones, built-in
or real PX4s, and whatever the cable model, the same imperfections act: on what sensors are told
(`SensedState`), on the thrust (`TiltedThrust`, `weakened`), on the way of set-points and motor
commands (`SetpointLink`, `CommandLatency`). docs/imperfections.md has typical sizes.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from musls_description.config.errors import ConfigError
from musls_description.config.schema import Number, spec

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
        drones: Imperfections of each drone, or one entry for all of them.
        motor_spread: Standard deviation of the rotors' thrust and torque from rotor to rotor, as a
            share; drawn once, cut at three deviations.
        motor_seed: Seed of that draw; another seed of the scenario flies the same motors.
        setpoint_delay_s: Time from sending a set-point until the autopilot has it.
        setpoint_jitter_s: A further delay, evenly spread from 0 to this, fresh for each set-point
            and drone; none overtakes another.
        command_latency_s: Time from a motor command until the motor has it.
    """

    drones: tuple[DroneImperfections, ...] = ()
    motor_spread: Annotated[float, Field(ge=0.0, le=0.2, allow_inf_nan=False), Number] = 0.0
    motor_seed: Annotated[int, Field(ge=0, lt=2**64), Number] = 0
    setpoint_delay_s: _Delay = 0.0
    setpoint_jitter_s: _Delay = 0.0
    command_latency_s: Annotated[float, Field(ge=0.0, le=0.2, allow_inf_nan=False), Number] = 0.0

    def of_each(self, n_drones: int) -> tuple[DroneImperfections, ...]:
        """One entry per drone."""
        entries = self.drones or (DroneImperfections(),)
        if len(entries) == 1:
            return entries * n_drones
        if len(entries) != n_drones:
            raise ConfigError(
                f"imperfections.drones has {len(entries)} entries, must be one for all or one for "
                f"each of the {n_drones} drones"
            )
        return entries
