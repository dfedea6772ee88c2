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

from musls_description.compiled import compiled
from musls_description.drone import Drone
from musls_description.propulsion import Battery, Motor
from musls_description.system import RigSystem
from musls_sim.plants.changes import RotorEfficiency
from musls_sim.plants.interface import PlantInputs, PlantState

# ---------- Compiled: currents, charge, and the reaction of the rotors

MOMENT, TORQUE, GEAR, OHM, IDLE, LIMIT, INERTIA, UP, DOWN, HEALTH = range(10)
"""Columns of a rotor: torque per squared speed, torque constant, gear ratio, resistance, idle
current, largest current, inertia with the sign of the spin, time constants, share that works."""

CAPACITY, EMPTY, SPAN, SAG, OTHERS, HAS_MOTOR, HAS_BATTERY = range(7)
"""Columns of a drone: capacity [A s], voltage empty, full minus empty, resistance, power of the
electronics, whether it has motors and a battery."""

VOLTAGE, CURRENT, CHARGE, POWER, ENERGY, TOP_CURRENT, LEAST_VOLTAGE = range(7)
"""Columns of the state: [V, A, share, W, J drawn so far, A, V], of a battery."""


@compiled()
def draw(speed, command, rotors, drones, dt, state):
    """Draw the current of a period from all batteries and limit the commanded speeds."""
    empty = 0
    for i in range(speed.shape[0]):
        d = drones[i]
        s = state[i]
        if d[HAS_BATTERY] == 0.0:
            continue
        if s[CHARGE] <= 0.0:
            for j in range(speed.shape[1]):
                command[i, j] = 0.0
            continue
        power = d[OTHERS]
        for j in range(speed.shape[1]):
            c = rotors[i, j]
            w = speed[i, j]
            if w > 0.0 and c[HEALTH] > 0.0:
                current = c[GEAR] * c[HEALTH] * c[MOMENT] * w * w / c[TORQUE] + c[IDLE]
                power += (c[TORQUE] * w / c[GEAR] + c[OHM] * current) * current
        rest = d[EMPTY] + d[SPAN] * s[CHARGE]
        # P = (U - R I) I; more than U^2 / 4 R no battery gives.
        root = np.sqrt(max(rest * rest - 4.0 * d[SAG] * power, 0.0))
        if d[SAG] > 0.0:
            power = min(power, rest * rest / (4.0 * d[SAG]))
        current = 2.0 * power / (rest + root)
        voltage = rest - d[SAG] * current
        s[VOLTAGE], s[CURRENT], s[POWER] = voltage, current, power
        s[ENERGY] += power * dt
        s[TOP_CURRENT] = max(s[TOP_CURRENT], current)
        s[LEAST_VOLTAGE] = min(s[LEAST_VOLTAGE], voltage)
        s[CHARGE] -= current * dt / d[CAPACITY]
        if s[CHARGE] <= 0.0:
            s[CHARGE] = s[VOLTAGE] = s[CURRENT] = s[POWER] = 0.0
            empty |= 1 << i
            voltage = 0.0
        for j in range(speed.shape[1]):
            c = rotors[i, j]
            a = c[OHM] * c[GEAR] * c[MOMENT] / c[TORQUE]
            b = c[TORQUE] / c[GEAR]
            over = max(voltage - c[OHM] * c[IDLE], 0.0)
            top = 2.0 * over / (b + np.sqrt(b * b + 4.0 * a * over))
            if c[LIMIT] < np.inf and c[MOMENT] > 0.0:
                left = max(c[LIMIT] - c[IDLE], 0.0)
                top = min(top, np.sqrt(left * c[TORQUE] / (c[GEAR] * c[MOMENT])))
            if command[i, j] > top:
                command[i, j] = top
    return empty


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
            lag = c[UP] if gap > 0.0 else c[DOWN]
            step = gap * (1.0 - np.exp(-dt / lag))
            change += c[INERTIA] * step
            momentum += c[INERTIA] * (speed[i, j] + 0.5 * step)
        moment[i, 0] = -motion[1 + i, 11] * momentum
        moment[i, 1] = motion[1 + i, 10] * momentum
        moment[i, 2] = -change / dt


Array = NDArray[np.float64]


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
        state: Of each drone, see the columns above, (n_drones, 7); NaN voltage without
            a battery.
    """

    def __init__(self, system: RigSystem, period_s: float) -> None:
        """Begin with the charge at the start."""
        self._system, self._period_s = system, period_s
        self._rotors = np.array([_rotor_rows(drone) for drone in system.drones])
        self._drones = np.array([_drone_row(drone) for drone in system.drones])
        self.state: Array = np.zeros((system.n_drones, 7))
        self.state[:, VOLTAGE] = np.nan
        for row, drone in zip(self.state, system.drones, strict=True):
            battery = drone.propulsion.battery if drone.propulsion else None
            if battery is not None:
                row[CHARGE] = battery.start_charge
                row[VOLTAGE] = row[LEAST_VOLTAGE] = battery.rest_v(battery.start_charge)
        self._reaction: Array = np.zeros((system.n_drones, 3))
        self.reacts = bool(np.any(self._rotors[:, :, INERTIA]))
        self._kept: Array = np.zeros((system.n_drones, 3))

    @classmethod
    def of(cls, system: RigSystem, period_s: float) -> Power | None:
        """The motors and batteries of a system, None where no drone has any."""
        return cls(system, period_s) if any(map(has_power, system.drones)) else None

    def look(self, state: PlantState) -> None:
        """Let the voltages follow the present speeds; no time passes."""
        commands = state.rotor_speed_rad_s.copy()
        draw(
            state.rotor_speed_rad_s, commands, self._rotors, self._drones, 0.0, self.state,
        )  # fmt: skip

    def apply(self, change: RotorEfficiency) -> None:
        """Let a rotor that gives less torque draw less; a stopped one draws nothing."""
        some = slice(None) if change.rotor is None else change.rotor - 1
        self._rotors[change.drone - 1, some, HEALTH] = change.efficiency

    def begin(self, state: PlantState, inputs: PlantInputs) -> list[int]:
        """Draw the period's current, limit the commands, let the rotors turn the drones."""
        empty = draw(
            state.rotor_speed_rad_s, inputs.rotor_command_rad_s, self._rotors, self._drones,
            self._period_s, self.state,
        )  # fmt: skip
        if self.reacts:
            react(
                state.rotor_speed_rad_s, inputs.rotor_command_rad_s, state.motion, self._rotors,
                self._period_s, self._reaction,
            )  # fmt: skip
            moment = inputs.wrench_body[1:, 0:3]
            self._kept[:] = moment
            moment += self._reaction
        return [i + 1 for i in range(len(self.state)) if empty >> i & 1] if empty else []

    def end(self, inputs: PlantInputs) -> None:
        """Take the rotors' reaction back after the plant has moved."""
        if self.reacts:
            inputs.wrench_body[1:, 0:3] = self._kept


def _rotor_rows(drone: Drone) -> list[list[float]]:
    propulsion = drone.propulsion
    motor = (propulsion.motor if propulsion else None) or Motor(
        speed_constant_rpm_v=1.0, resistance_ohm=0.0
    )
    propeller = propulsion.propeller if propulsion else None
    inertia = propeller.inertia_kg_m2 if propeller else 0.0
    return [
        [
            rotor.moment_coefficient_n_m_s2, motor.torque_constant_n_m_a, motor.gear_ratio,
            motor.resistance_ohm, motor.idle_current_a, motor.max_current_a or math.inf,
            inertia if rotor.spin == "ccw" else -inertia,
            rotor.time_constant_up_s, rotor.time_constant_down_s, 1.0,
        ]
        for rotor in drone.rotors
    ]  # fmt: skip


def _drone_row(drone: Drone) -> list[float]:
    propulsion = drone.propulsion
    battery: Battery | None = propulsion.battery if propulsion else None
    if propulsion is None or battery is None:
        return [1.0, 0.0, 0.0, 0.0, 0.0, float(bool(propulsion and propulsion.motor)), 0.0]
    span_v = battery.cells * (battery.cell_full_v - battery.cell_empty_v)
    return [
        3600.0 * battery.capacity_ah, battery.rest_v(0.0), span_v, battery.resistance_ohm,
        propulsion.electronics_w, 1.0, 1.0,
    ]  # fmt: skip
