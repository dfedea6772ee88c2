"""Control in compiled code: a stage for each level of what is commanded, down to the rotors.

The functions are those that `session.control.Control` calls from Python.
"""

from __future__ import annotations

import numpy as np
from numba import carray

from musls_control.chain import DRONE, ROTOR, THRUST, ask_autopilot, attitude_moments, mix
from musls_control.controllers import ControlLevel
from musls_control.px4.allocation import MIXER_COLUMNS
from musls_control.px4.cascade import step_drones
from musls_control.px4.layout import PARAMETER_DTYPE, STATE_DTYPE
from musls_description.numerics.compiled import CompiledStage, compiled
from musls_description.numerics.records import (
    beyond,
    grid_at,
)
from musls_description.numerics.vectors import put
from musls_sim.session.compiled_stages.world import (
    asked_of,
    estimate_of,
    sent_of,
    setpoint_of,
    throttle_of,
    world_at,
)


@compiled()
def release_bodies(w):
    """Clear the wrenches of the last period."""
    wrench = grid_at(w, w.wrench_body, 1 + w.n_drones, 6)
    for i in range(1 + w.n_drones):
        for k in range(6):
            wrench[i, k] = 0.0


@CompiledStage
def fly_autopilots(address):
    """PX4's cascade of all drones."""
    w = world_at(address)
    release_bodies(w)
    n, rotors = w.n_drones, w.n_rotors
    constants = carray(beyond(w, w.constants), (n,), PARAMETER_DTYPE)
    states = carray(beyond(w, w.state), (n,), STATE_DTYPE)
    mixers = carray(beyond(w, w.mixers), (n, rotors, MIXER_COLUMNS), np.float64)
    known = estimate_of(w)
    step_drones(setpoint_of(w), known[1:], constants, states, mixers, throttle_of(w))


@CompiledStage
def ask_for_places(address):
    """Write places and yaws that are commanded, those that are not NaN, into the set-points."""
    w = world_at(address)
    sent, asked = sent_of(w), asked_of(w)
    for i in range(w.n_drones):
        if np.isfinite(asked[i, 0]):
            put(sent[i], asked[i])
            sent[i, 9] = asked[i, 3]


@CompiledStage
def ask_for_forces(address):
    """Ask the autopilots for forces."""
    w = world_at(address)
    thrust = carray(beyond(w, w.thrust), (w.n_drones,), THRUST)
    throttle = throttle_of(w)
    ask_autopilot(sent_of(w), asked_of(w), throttle[:, 0], thrust)


@compiled()
def mix_all(w, thrust, moment):
    """Turn thrusts (n,) and moments (n, 3) into speeds of the rotors."""
    shares, throttle = carray(beyond(w, w.shares), (w.n_drones, w.n_rotors), ROTOR), throttle_of(w)
    mix(shares, thrust, moment, throttle[:, 1])


@CompiledStage
def turn_drones(address):
    """Turn the drones so that their thrust is the force."""
    w = world_at(address)
    release_bodies(w)
    n, asked, sent, estimate = w.n_drones, asked_of(w), sent_of(w), estimate_of(w)
    drones = carray(beyond(w, w.attitude), (n,), DRONE)
    gains = carray(beyond(w, w.gains), (2, 3), np.float64)
    for i in range(n):
        drones[i].yaw = asked[i, 3] if np.isfinite(asked[i, 3]) else sent[i, 9]
        for k in range(3):
            drones[i].force[k] = asked[i, k]
    attitude_moments(drones, gains, estimate[1:, 6:10], estimate[1:, 10:13])
    thrust, moment = np.empty(n), np.empty((n, 3))
    for i in range(n):
        thrust[i] = drones[i].thrust
        for k in range(3):
            moment[i, k] = drones[i].moment[k] + asked[i, 4 + k]
    mix_all(w, thrust, moment)


@CompiledStage
def give_thrust(address):
    """Mix thrust and moment."""
    w = world_at(address)
    release_bodies(w)
    n, asked = w.n_drones, asked_of(w)
    thrust, moment = np.empty(n), np.empty((n, 3))
    for i in range(n):
        thrust[i] = asked[i, 0]
        for k in range(3):
            moment[i, k] = asked[i, 1 + k]
    mix_all(w, thrust, moment)


@CompiledStage
def turn_rotors(address):
    """Hand rotor speeds on as they are."""
    w = world_at(address)
    release_bodies(w)
    asked, throttle = asked_of(w), throttle_of(w)
    for i in range(w.n_drones):
        for j in range(w.n_rotors):
            throttle[i, 1, j] = asked[i, j]


@CompiledStage
def push_bodies(address):
    """Put thrust and moment on the bodies at once; the rotors rest."""
    w = world_at(address)
    release_bodies(w)
    asked, wrench = asked_of(w), grid_at(w, w.wrench_body, 1 + w.n_drones, 6)
    for i in range(w.n_drones):
        put(wrench[1 + i], asked[i, 1:])
        wrench[1 + i, 5] = asked[i, 0]


OF_LEVEL: dict[ControlLevel, tuple[CompiledStage, ...]] = {
    ControlLevel.DRONE_SETPOINTS: (ask_for_places,),
    ControlLevel.AUTOPILOT_FORCES: (ask_for_forces,),
    ControlLevel.FORCES: (turn_drones,),
    ControlLevel.THRUST_MOMENT: (give_thrust,),
    ControlLevel.ROTOR_SPEEDS: (turn_rotors,),
    ControlLevel.IDEAL_THRUST_MOMENT: (push_bodies,),
}
"""What turns commands of a level into speeds of the rotors, wrenches, or what autopilots follow."""
