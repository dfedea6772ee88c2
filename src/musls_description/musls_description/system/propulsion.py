"""Air, propellers, motors and batteries: where the constants of a rotor come from.

Equations and default coefficients are those of the delivery quadcopter of Pappalardo et al.
("Computer-Aided Design, Multibody Dynamic Modeling, and Motion Control Analysis of a Quadcopter
System for Delivery Applications", Machines 2023; here "paper"): density of the air (eq. 3, 4),
thrust and torque of a propeller from its geometry (eq. 1, 2, 5 to 7, after Quan, "Introduction to
Multicopter Design and Control"). The motor is a permanent-magnet machine with a winding
resistance and an idle current, the battery a voltage that falls linearly with the charge behind a
resistance. Speeds are those of the propeller unless a name says "motor".
"""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from musls_description.config.schema import Finite, Fraction, NonNegative, Number, Positive, spec

LAPSE_K_M = 0.0065
"""Fall of the temperature with the height, as it enters the barometric formula (eq. 3)."""
ZERO_C_K = 273.0
"""The paper's 0 degree Celsius."""
DENSITY_0C_KG_M3 = 1.293
"""Density of air at sea level and 0 degrees Celsius (eq. 4)."""
STANDARD_DENSITY_KG_M3 = 1.225
"""Density of the standard atmosphere at sea level, for which thrust constants are usually given."""


@spec
class Atmosphere:
    """Air at the place of the flight: its density follows.

    Attributes:
        altitude_m: Height of the world's origin above sea level.
        temperature_c: Temperature of the air at that height.
    """

    altitude_m: Annotated[float, Field(ge=-500.0, le=20_000.0), Number] = 0.0
    temperature_c: Annotated[float, Field(ge=-80.0, le=60.0), Number] = 15.0

    @property
    def density_kg_m3(self) -> float:
        """Density of the air (eq. 3 and 4) [kg/m3]."""
        kelvin = ZERO_C_K + self.temperature_c
        pressure_ratio = (1.0 - LAPSE_K_M * self.altitude_m / kelvin) ** 5.2561
        return ZERO_C_K / kelvin * pressure_ratio * DENSITY_0C_KG_M3


@spec
class PropellerGeometry:
    """A propeller described by its geometry.

    The coefficients follow from blade theory with the paper's ranges (section 2.2): only hover,
    without advance ratio. With the defaults C_T is 13 % below UIUC's measurement of a propeller of
    two blades, and 44 to 64 % above that of two propellers of three: take measured constants there.

    Attributes:
        kind: "geometry".
        diameter_m: D_p.
        pitch_m: H_p, advance per turn.
        blades: B_p.
        aspect_ratio: A, of a blade, 5 to 8.
        downwash: epsilon, 0.85 to 0.95.
        correction: lambda, of the blade's area, 0.7 to 0.9.
        effective_speed: zeta, share of the tip's speed that counts, 0.4 to 0.7.
        oswald: e, 0.7 to 0.9.
        zero_lift_drag: C_fD.
        zero_lift_angle_rad: alpha_0, -pi/36 to 0.
        lift_slope: K_0, lift per angle [1/rad].
        inertia_kg_m2: Inertia of all rotating parts about the axis; its reaction turns the drone.
    """

    kind: Literal["geometry"] = "geometry"
    diameter_m: Positive
    pitch_m: Positive
    blades: Annotated[int, Field(ge=1, le=12), Number] = 2
    aspect_ratio: Positive = 5.0
    downwash: Fraction = 0.85
    correction: Positive = 0.75
    effective_speed: Fraction = 0.5
    oswald: Positive = 0.83
    zero_lift_drag: NonNegative = 0.015
    zero_lift_angle_rad: Finite = 0.0
    lift_slope: Positive = 6.11
    inertia_kg_m2: NonNegative = 0.0

    def __post_init__(self) -> None:
        if self.blade_angle_rad <= 0.0:
            raise ValueError("zero_lift_angle_rad is larger than the blade's angle: no thrust")

    @property
    def blade_angle_rad(self) -> float:
        """Effective angle of the blade, downwash and zero-lift angle taken off [rad]."""
        angle = math.atan(self.pitch_m / (math.pi * self.diameter_m))
        return self.downwash * angle - self.zero_lift_angle_rad

    @property
    def thrust_number(self) -> float:
        """C_T (eq. 5)."""
        slope = self.lift_slope / (math.pi * self.aspect_ratio + self.lift_slope)
        shape = self.correction * self.effective_speed**2 * self.blades
        return 0.25 * math.pi**3 * shape * slope * self.blade_angle_rad

    @property
    def drag_number(self) -> float:
        """C_d of a blade (eq. 7)."""
        slope = self.lift_slope * self.blade_angle_rad
        slope /= math.pi * self.aspect_ratio + self.lift_slope
        return self.zero_lift_drag + math.pi * self.aspect_ratio / self.oswald * slope**2

    @property
    def moment_number(self) -> float:
        """C_M (eq. 6)."""
        shape = self.correction * self.effective_speed**2 * self.blades**2
        return math.pi**2 * self.drag_number * shape / (8.0 * self.aspect_ratio)

    @property
    def moment_ratio_m(self) -> float:
        """Torque per thrust, C_M / C_T times the diameter [m]."""
        return self.moment_number / self.thrust_number * self.diameter_m

    def thrust_coefficient_n_s2(self, density_kg_m3: float) -> float:
        """Thrust per squared speed (eq. 1 with the speed in rad/s) [N s2/rad2]."""
        return density_kg_m3 * self.thrust_number * self.diameter_m**4 / (4.0 * math.pi**2)


@spec
class PropellerConstants:
    """A propeller described by its measured thrust constants.

    Attributes:
        kind: "constants".
        thrust_n_s2: Thrust per squared speed at `density_kg_m3` [N s2/rad2].
        moment_ratio_m: Torque per thrust.
        density_kg_m3: Density of the air in which the constants were measured.
        diameter_m: Diameter, for the distance between drones; None where it is not known.
        inertia_kg_m2: Inertia about the axis; its reaction turns the drone.
    """

    kind: Literal["constants"] = "constants"
    thrust_n_s2: Positive
    moment_ratio_m: NonNegative
    density_kg_m3: Positive = STANDARD_DENSITY_KG_M3
    diameter_m: Positive | None = None
    inertia_kg_m2: NonNegative = 0.0

    def thrust_coefficient_n_s2(self, density_kg_m3: float) -> float:
        """Thrust per squared speed in air of another density [N s2/rad2]."""
        return self.thrust_n_s2 * density_kg_m3 / self.density_kg_m3


Propeller = Annotated[PropellerGeometry | PropellerConstants, Field(discriminator="kind")]
"""Model that a rotor's thrust and torque follow from."""


@spec
class Motor:
    """A brushless motor; all rotors of a drone have the same.

    Attributes:
        speed_constant_rpm_v: K_V, speed per volt without load.
        resistance_ohm: Resistance of the winding and its controller.
        idle_current_a: I_0, current without load.
        max_current_a: Largest current of motor and controller; None for no limit.
        gear_ratio: Speed of the propeller over that of the motor, 2/3 for a belt 2:3.
    """

    speed_constant_rpm_v: Positive
    resistance_ohm: NonNegative
    idle_current_a: NonNegative = 0.0
    max_current_a: Positive | None = None
    gear_ratio: Positive = 1.0

    @property
    def torque_constant_n_m_a(self) -> float:
        """K_t, torque per current and voltage per speed of the motor [N m/A, V s/rad]."""
        return 60.0 / (2.0 * math.pi * self.speed_constant_rpm_v)

    def current_a(self, moment_n_m: float) -> float:
        """Current of a motor that turns."""
        return self.gear_ratio * moment_n_m / self.torque_constant_n_m_a + self.idle_current_a

    def voltage_v(self, speed_rad_s: float, current_a: float) -> float:
        """Voltage that turns the propeller at a speed with a current."""
        back = self.torque_constant_n_m_a * speed_rad_s / self.gear_ratio
        return back + self.resistance_ohm * current_a

    def top_speed_rad_s(self, moment_n_m_s2: float, voltage_v: float) -> float:
        """Speed of the propeller at a voltage: V = K_t w / n + R (n k_m w^2 / K_t + I_0)."""
        k_t = self.torque_constant_n_m_a
        n = self.gear_ratio
        a = self.resistance_ohm * n * moment_n_m_s2 / k_t
        b = k_t / n
        over = max(voltage_v - self.resistance_ohm * self.idle_current_a, 0.0)
        top = 2.0 * over / (b + math.sqrt(b * b + 4.0 * a * over))
        if self.max_current_a is not None and moment_n_m_s2 > 0.0:
            left_a = max(self.max_current_a - self.idle_current_a, 0.0)
            top = min(top, math.sqrt(left_a * k_t / (n * moment_n_m_s2)))
        return top


@spec
class Battery:
    """A battery of cells in series.

    Its voltage without load falls linearly from full to empty; with a current it sags by the
    resistance times the current. With the default cell voltages the energy is capacity times
    nominal voltage.

    Attributes:
        capacity_ah: Charge from full to empty.
        cells: Number of cells in series.
        resistance_ohm: Resistance of the whole battery and its wires.
        cell_full_v: Voltage of a full cell without load.
        cell_nominal_v: Voltage of a cell by which motors are chosen.
        cell_empty_v: Voltage of an empty cell without load.
        start_charge: Share of the charge at the beginning of the flight.
        reserve: Share of the charge that is to be left after a flight.
    """

    capacity_ah: Positive
    cells: Annotated[int, Field(ge=1, le=1000), Number]
    resistance_ohm: NonNegative = 0.0
    cell_full_v: Positive = 4.2
    cell_nominal_v: Positive = 3.7
    cell_empty_v: Positive = 3.2
    start_charge: Fraction = 1.0
    reserve: Fraction = 0.0

    def __post_init__(self) -> None:
        if not self.cell_empty_v <= self.cell_nominal_v <= self.cell_full_v:
            raise ValueError(
                "cell voltages must satisfy cell_empty_v <= cell_nominal_v <= cell_full_v, not "
                f"{self.cell_empty_v:g}, {self.cell_nominal_v:g}, {self.cell_full_v:g}"
            )
        if self.reserve >= self.start_charge:
            raise ValueError(
                f"reserve {self.reserve:g} must be below start_charge {self.start_charge:g}"
            )

    @property
    def nominal_v(self) -> float:
        """Nominal voltage of all cells [V]."""
        return self.cells * self.cell_nominal_v

    def rest_v(self, charge: float) -> float:
        """Voltage without load at a share of the charge [V]."""
        return self.cells * (self.cell_empty_v + (self.cell_full_v - self.cell_empty_v) * charge)

    def current_a(self, charge: float, power_w: float) -> float:
        """Current that gives a power; the largest possible power's if that is less."""
        rest_v = self.rest_v(charge)
        r = self.resistance_ohm
        root = math.sqrt(max(rest_v * rest_v - 4.0 * r * power_w, 0.0))
        return 2.0 * min(power_w, rest_v**2 / (4.0 * r) if r else power_w) / (rest_v + root)

    def duration_s(self, power_w: float) -> float:
        """Time from the start to the reserve at a constant power.

        From the current at a charge, dt = -capacity ds / I(s), by Simpson's rule.
        """
        if power_w <= 0.0:
            return math.inf
        from scipy.integrate import simpson  # a moment to import, not for `musls --help`

        charges = np.linspace(self.reserve, self.start_charge, 65)
        slowness = [1.0 / self.current_a(charge, power_w) for charge in charges]
        return 3600.0 * self.capacity_ah * float(simpson(slowness, x=charges))


@spec
class Propulsion:
    """Propellers, motors and battery of a drone.

    A rotor that gives no constants of its own takes thrust and torque from `propeller` in the
    density of `air`, and its top speed from `motor` at the nominal voltage of `battery`. With motor
    and battery a flight has currents, powers and a charge, and the voltage limits the speed.

    Attributes:
        air: Altitude and temperature, which give the density of the air.
        propeller: The propeller of all rotors: by its geometry or by measured constants.
        motor: The motor of each rotor.
        battery: The battery of the drone.
        electronics_w: Power of everything but the motors.
    """

    air: Atmosphere = Field(default_factory=Atmosphere)
    propeller: Propeller | None = None
    motor: Motor | None = None
    battery: Battery | None = None
    electronics_w: NonNegative = 0.0

    def __post_init__(self) -> None:
        if self.battery is not None and self.motor is None:
            raise ValueError("a battery needs a motor: give motor, or leave battery out")

    def rotor_constants(self) -> dict[str, float]:
        """Fields of a rotor that follow from this: only those that do."""
        constants: dict[str, float] = {}
        if self.propeller is not None:
            density = self.air.density_kg_m3
            constants["thrust_coefficient_n_s2"] = self.propeller.thrust_coefficient_n_s2(density)
            constants["moment_ratio_m"] = self.propeller.moment_ratio_m
        return constants

    def top_speed_rad_s(self, moment_n_m_s2: float) -> float | None:
        """Speed at the battery's nominal voltage; None without motor and battery."""
        if self.motor is None or self.battery is None:
            return None
        return self.motor.top_speed_rad_s(moment_n_m_s2, self.battery.nominal_v)

    def sagged_speed_rad_s(self, moment_n_m_s2: float, charge: float, rotors: int) -> float:
        """Speed of all rotors at full voltage of a battery that sags by their currents.

        At full voltage the battery's current is the sum of the motors', so its resistance counts
        as often as there are rotors; the electronics are left out.
        """
        if self.motor is None or self.battery is None:
            raise ValueError("no battery")
        together = self.motor.resistance_ohm + rotors * self.battery.resistance_ohm
        motor = dataclasses.replace(self.motor, resistance_ohm=together)
        return motor.top_speed_rad_s(moment_n_m_s2, self.battery.rest_v(charge))
