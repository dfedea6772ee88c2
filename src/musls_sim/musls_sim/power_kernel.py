"""Currents and charge of all drones for one control period, and the reaction of the rotors."""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled

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

    The speeds follow their commands as in `aerodynamics.spin_rotors`, so that the change of their
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
