"""Currents, charge and voltage of the drones in flight, and what they do to the rotors.

Independent of the plants: once per control period, before the plant moves, the rotor speeds give
the currents of the motors, these the sag of the batteries, and the voltage the top speed that
limits what is commanded. Where propellers have an inertia, their angular momentum acts on the
drones (Pappalardo et al., Machines 2023: with H the sum of J w about the
body's z axis, the drone feels -dH/dt e3 - omega x H e3).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from musls_description.numerics.arrays import Array, Records
from musls_description.numerics.compiled import compiled
from musls_description.system.drone import Drone
from musls_description.system.propulsion import Motor
from musls_description.system.slung_system import RigSystem
from musls_sim.plants.interface import PlantState, RotorEfficiency

# ---------- Compiled: currents, charge, and the reaction of the rotors

ROTOR = np.dtype(
    [
        ("moment", float),  # torque per squared speed [N m s^2]
        ("torque_constant", float),  # of the motor [N m/A]
        ("gear", float),
        ("resistance", float),  # [ohm]
        ("idle", float),  # current [A]
        ("limit", float),  # largest current [A]
        ("inertia", float),  # of the propeller, positive for counter-clockwise rotors [kg m^2]
        ("up", float),  # time constants [s]
        ("down", float),
        ("health", float),  # share that works
    ],
    align=True,
)

BATTERY = np.dtype(
    [
        ("capacity", float),  # [A s]; 0 for a drone without a battery
        ("empty", float),  # voltage at rest [V]
        ("span", float),  # full minus empty [V]
        ("resistance", float),  # [ohm]
        ("electronics", float),  # power [W]
        ("voltage", float),  # now; NaN without a battery
        ("current", float),
        ("charge", float),  # share
        ("power", float),  # [W]
        ("energy", float),  # drawn so far [J]
    ],
    align=True,
)


@compiled()
def draw(speed, command, rotors, batteries, dt):
    """Draw the current of a period from all batteries and limit the commanded speeds."""
    empty = 0
    for i in range(speed.shape[0]):
        battery = batteries[i]
        if battery.capacity == 0.0:
            continue
        if battery.charge <= 0.0:
            for j in range(speed.shape[1]):
                command[i, j] = 0.0
            continue
        power = battery.electronics
        for j in range(speed.shape[1]):
            c = rotors[i, j]
            w = speed[i, j]
            if w > 0.0 and c.health > 0.0:
                current = c.gear * c.health * c.moment * w * w / c.torque_constant + c.idle
                power += (c.torque_constant * w / c.gear + c.resistance * current) * current
        rest = battery.empty + battery.span * battery.charge
        # P = (U - R I) I; more than U^2 / 4 R no battery gives.
        root = math.sqrt(max(rest * rest - 4.0 * battery.resistance * power, 0.0))
        if battery.resistance > 0.0:
            power = min(power, rest * rest / (4.0 * battery.resistance))
        current = 2.0 * power / (rest + root)
        voltage = rest - battery.resistance * current
        battery.voltage = voltage
        battery.current = current
        battery.power = power
        battery.energy += power * dt
        battery.charge -= current * dt / battery.capacity
        if battery.charge <= 0.0:
            battery.charge = battery.voltage = battery.current = battery.power = 0.0
            empty |= 1 << i
            voltage = 0.0
        for j in range(speed.shape[1]):
            top = top_speed(rotors[i, j], voltage)
            if command[i, j] > top:
                command[i, j] = top
    return empty


@compiled()
def top_speed(rotor, voltage):
    """Compute the highest speed of a rotor at a voltage, by its motor's torque and current."""
    a = rotor.resistance * rotor.gear * rotor.moment / rotor.torque_constant
    b = rotor.torque_constant / rotor.gear
    over = max(voltage - rotor.resistance * rotor.idle, 0.0)
    top = 2.0 * over / (b + math.sqrt(b * b + 4.0 * a * over))
    if rotor.limit < np.inf and rotor.moment > 0.0:
        reserve = max(rotor.limit - rotor.idle, 0.0)
        top = min(top, math.sqrt(reserve * rotor.torque_constant / (rotor.gear * rotor.moment)))
    return top


@compiled()
def react(speed, command, motion, rotors, dt, moment):
    """Moment of the spinning rotors on the drones, the mean over a period.

    The speeds follow their commands as in the plants, so that the change of their
    angular momentum in a period is exact.
    """
    for i in range(speed.shape[0]):
        change = 0.0
        momentum = 0.0
        for j in range(speed.shape[1]):
            c = rotors[i, j]
            gap = command[i, j] - speed[i, j]
            lag = c.up if gap > 0.0 else c.down
            step = gap * (1.0 - math.exp(-dt / lag))
            change += c.inertia * step
            momentum += c.inertia * (speed[i, j] + 0.5 * step)
        moment[i, 0] = -motion[1 + i, 11] * momentum
        moment[i, 1] = motion[1 + i, 10] * momentum
        moment[i, 2] = -change / dt


@compiled(shared=True)
def run_motors(speed, command, motion, rotors, batteries, dt, reacts, reaction, wrench):
    """Draw a period's current, limit the commands, let the rotors turn the drones.

    Returns a bit for each drone whose battery is empty now.
    """
    empty = draw(speed, command, rotors, batteries, dt)
    if reacts:
        react(speed, command, motion, rotors, dt, reaction)
        for i in range(speed.shape[0]):
            for k in range(3):
                wrench[1 + i, k] += reaction[i, k]
    return empty


def has_power(drone: Drone) -> bool:
    """Whether there is something to compute for a drone."""
    propulsion = drone.propulsion
    if propulsion is None:
        return False
    spins = propulsion.propeller is not None and propulsion.propeller.inertia_kg_m2 > 0.0
    return propulsion.battery is not None or spins


class Power:
    """Motors and batteries of all drones.

    Attributes:
        batteries: Battery of each drone, (n_drones,) of `BATTERY`.
        rotors: Motors, (n_drones, n_rotors) of `ROTOR`.
        reacts: Whether any propeller has an inertia.
    """

    def __init__(self, system: RigSystem) -> None:
        self.rotors = np.zeros((system.n_drones, system.n_rotors), ROTOR)
        self.batteries = np.zeros(system.n_drones, BATTERY)
        for rotors, battery, drone in zip(self.rotors, self.batteries, system.drones, strict=True):
            _fill(rotors, battery, drone)
        self.reacts = bool(self.rotors["inertia"].any())
        self.reaction: Array = np.zeros((system.n_drones, 3))
        self._told_empty = self._empty

    @classmethod
    def of(cls, system: RigSystem) -> Power | None:
        """The motors and batteries of a system, None where no drone has any."""
        return cls(system) if any(map(has_power, system.drones)) else None

    def look(self, state: PlantState) -> None:
        """Update the voltages for the present speeds without advancing time."""
        speed = state.rotor_speed_rad_s
        draw(speed, speed.copy(), self.rotors, self.batteries, 0.0)

    def apply(self, change: RotorEfficiency) -> None:
        """Scale the torque of a damaged rotor, and with it its current."""
        self.rotors["health"][change.rows] = change.efficiency

    def newly_empty(self) -> list[int]:
        """Numbers of the drones, from 1, whose batteries have become empty since the last call."""
        before = self._told_empty
        self._told_empty = self._empty
        return (np.flatnonzero(self._told_empty & ~before) + 1).tolist()

    @property
    def _empty(self) -> NDArray[np.bool_]:
        return (self.batteries["capacity"] > 0.0) & (self.batteries["charge"] <= 0.0)


def _fill(rotors: Records, battery: np.void, drone: Drone) -> None:
    """Write the constants of a drone and the state at its start."""
    propulsion = drone.propulsion
    motor = (propulsion.motor if propulsion else None) or Motor(
        speed_constant_rpm_v=1.0, resistance_ohm=0.0
    )
    propeller = propulsion.propeller if propulsion else None
    inertia = propeller.inertia_kg_m2 if propeller else 0.0
    rotors["torque_constant"] = motor.torque_constant_n_m_a
    rotors["gear"] = motor.gear_ratio
    rotors["resistance"] = motor.resistance_ohm
    rotors["idle"] = motor.idle_current_a
    rotors["limit"] = motor.max_current_a or math.inf
    rotors["health"] = 1.0
    for row, rotor in zip(rotors, drone.rotors, strict=True):
        row["moment"] = rotor.moment_coefficient_n_m_s2
        row["inertia"] = inertia if rotor.spin == "ccw" else -inertia
        row["up"] = rotor.time_constant_up_s
        row["down"] = rotor.time_constant_down_s
    battery["voltage"] = np.nan
    if propulsion is not None and (pack := propulsion.battery) is not None:
        battery["capacity"] = 3600.0 * pack.capacity_ah
        battery["empty"] = pack.rest_v(0.0)
        battery["span"] = pack.cells * (pack.cell_full_v - pack.cell_empty_v)
        battery["resistance"] = pack.resistance_ohm
        battery["electronics"] = propulsion.electronics_w
        battery["charge"] = pack.start_charge
        battery["voltage"] = pack.rest_v(pack.start_charge)
