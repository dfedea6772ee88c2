"""Control in compiled code: from the commands of a controller, whichever it is, to the rotors.

Commands stand in the world's `asked`, see `no_commands`; there is a stage for each level of them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_control.chain import (
    ask_autopilot,
    attitude_moments,
    measure,
    mix,
    rate_moments,
)
from musls_control.controllers import Controller, ControlLevel
from musls_control.controllers.payload.cable_law import LAW as CABLE_LAW
from musls_control.controllers.payload.cable_law import (
    command_drones,
    hold_places,
    look_at_load,
    open_law,
    place_drones,
    turn_cables,
)
from musls_control.controllers.payload.controller import PayloadController, RodController
from musls_control.controllers.payload.load_law import LOAD, attitude_reference
from musls_control.controllers.payload.places import share_apart, share_evenly
from musls_control.controllers.payload.rods import rod_commands
from musls_control.controllers.rotortm import (
    LAW,
    RotorTmCables,
    RotorTmRods,
    cable_commands,
    structure_commands,
)
from musls_control.px4.cascade import step_drones
from musls_control.reference import Reference
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import CompiledStage, compiled
from musls_description.numerics.records import record_beyond
from musls_description.numerics.vectors import add, put, sub
from musls_sim.session.compiled_stages import fields
from musls_sim.session.compiled_stages.fields import REFERENCE
from musls_sim.session.compiled_stages.world import COMMAND_COLUMNS, world_at
from musls_sim.session.loop import Parts


@CompiledStage
def release_bodies(address):
    """Clear the wrenches of the last period."""
    w = world_at(address)
    wrench = fields.wrench_body(w)
    for i in range(1 + w.n_drones):
        for k in range(6):
            wrench[i, k] = 0.0


@CompiledStage
def fly_autopilots(address):
    """PX4's cascade of all drones."""
    w = world_at(address)
    n = w.n_drones
    constants = fields.constants(w)
    states = fields.state(w)
    mixers = fields.mixers(w)
    estimate = fields.estimate(w)
    step_drones(fields.setpoint(w), estimate[1:], constants, states, mixers, fields.throttle(w))
    before = w.on_ground
    w.on_ground = 0
    for i in range(n):
        w.on_ground += states[i].land.landed.state
    w.landing = 1 if w.on_ground != before else 0


def no_commands(level: ControlLevel, n_drones: int, n_rotors: int) -> Array:
    """Commands of a level that ask for nothing, (n, at least `COMMAND_COLUMNS`).

    What a controller leaves out is 0, or NaN where the mission has it or nothing is counted on.
    """
    commands = np.zeros((n_drones, max(n_rotors, COMMAND_COLUMNS)))
    if level is ControlLevel.DRONE_SETPOINTS:
        commands[:, :4] = np.nan
    elif level in (ControlLevel.FORCES, ControlLevel.AUTOPILOT_FORCES):
        commands[:, 3] = commands[:, 7:10] = np.nan
    return commands


@CompiledStage
def ask_for_places(address):
    """Write places and yaws that are commanded, those that are not NaN, into the set-points."""
    w = world_at(address)
    setpoint = fields.sent(w)
    command = fields.asked(w)
    for i in range(w.n_drones):
        if math.isfinite(command[i, 0]):
            put(setpoint[i], command[i])
            setpoint[i, 9] = command[i, 3]


@CompiledStage
def ask_for_forces(address):
    """Ask the autopilots for forces."""
    w = world_at(address)
    thrust = fields.thrust(w)
    throttle = fields.throttle(w)
    ask_autopilot(fields.sent(w), fields.asked(w), throttle[:, 0], thrust)


@compiled()
def mix_all(w, thrust, moment):
    """Turn thrusts (n,) and moments (n, 3) into speeds of the rotors."""
    shares = fields.shares(w)
    throttle = fields.throttle(w)
    mix(shares, thrust, moment, throttle[:, 1])


@CompiledStage
def measure_drones(address):
    """Find the forces and moments on the drones that are not counted on, see `Incremental`."""
    w = world_at(address)
    n = w.n_drones
    drones = fields.attitude(w)
    records = fields.measured(w)
    wrenches = fields.rotor_wrench(w)
    speeds = fields.speed(w)
    measure(records, fields.bodies(w)[1:], speeds, wrenches, fields.asked(w), w.period)
    for i in range(n):
        put(drones[i].unmodelled_force, records[i].force.value)
        put(drones[i].unmodelled_moment, records[i].moment.value)


@CompiledStage
def turn_drones(address):
    """Turn the drones so that their thrust is the force."""
    w = world_at(address)
    n = w.n_drones
    command = fields.asked(w)
    setpoint = fields.sent(w)
    estimate = fields.estimate(w)
    drones = fields.attitude(w)
    gains = fields.gains(w)
    for i in range(n):
        drones[i].yaw = command[i, 3] if math.isfinite(command[i, 3]) else setpoint[i, 9]
        put(drones[i].force, sub(command[i], drones[i].unmodelled_force))
    attitude_moments(drones, gains, estimate[1:, 6:10], estimate[1:, 10:13])
    moment = np.empty((n, 3))
    for i in range(n):
        total = add(drones[i].moment, command[i, 4:])
        put(moment[i], sub(total, drones[i].unmodelled_moment))
    mix_all(w, drones["thrust"].copy(), moment)


@CompiledStage
def hold_rates(address):
    """Turn the drones at the body rates."""
    w = world_at(address)
    n = w.n_drones
    command = fields.asked(w)
    drones = fields.rates(w)
    moment = np.empty((n, 3))
    rate_moments(drones, command[:, 1:], fields.estimate(w)[1:, 10:], w.period, moment)
    mix_all(w, command[:, 0].copy(), moment)


@CompiledStage
def give_thrust(address):
    """Mix thrust and moment."""
    w = world_at(address)
    command = fields.asked(w)
    mix_all(w, command[:, 0].copy(), command[:, 1:4].copy())


@CompiledStage
def turn_rotors(address):
    """Hand rotor speeds on as they are."""
    w = world_at(address)
    command = fields.asked(w)
    throttle = fields.throttle(w)
    for i in range(w.n_drones):
        for j in range(w.n_rotors):
            throttle[i, 1, j] = command[i, j]


@CompiledStage
def push_bodies(address):
    """Put thrust and moment on the bodies at once; the rotors rest."""
    w = world_at(address)
    command = fields.asked(w)
    wrench = fields.wrench_body(w)
    for i in range(w.n_drones):
        put(wrench[1 + i], command[i, 1:])
        wrench[1 + i, 5] = command[i, 0]


OF_LEVEL: dict[ControlLevel, CompiledStage] = {
    ControlLevel.FORCES: turn_drones,
    ControlLevel.THRUST_MOMENT: give_thrust,
    ControlLevel.THRUST_RATES: hold_rates,
    ControlLevel.ROTOR_SPEEDS: turn_rotors,
    ControlLevel.IDEAL_THRUST_MOMENT: push_bodies,
}
"""Stages that convert commands of a level into rotor speeds or wrenches, without an autopilot."""


# ---------- Controllers of the load: in each period they write what is commanded


def law_arrays(controller: Controller) -> dict[str, NDArray[Any]]:
    """Arrays of the law of a controller that has taken over, by their names in `WORLD`."""
    match controller:
        case PayloadController():
            return {"law": controller.memory}
        case RodController():
            return {"law": _record(controller.load), "law_shares": controller.structure.shares}
        case RotorTmCables():
            law = _record(controller.constants)
            return {"law": law, "law_drones": controller.drones, "law_shares": controller.shares}
        case RotorTmRods():
            return {"law": _record(controller.constants), "law_shares": controller.shares}
    return {}


def _record(one: np.void) -> NDArray[np.void]:
    return np.asarray(one).reshape(1)


def sampled(reference: Reference, period_s: float, duration_s: float) -> NDArray[np.void]:
    """The load's reference at each period of a flight, (periods,) of `REFERENCE`."""
    stepped = reference.stepped(period_s)
    each = (stepped.at(tick) for tick in range(round(duration_s / period_s) + 2))
    return np.array([(now.derivatives, now.tilt) for now in each], REFERENCE)


@compiled()
def reference_of(w, ahead):
    """The load's reference some periods ahead, a record of `REFERENCE`."""
    in_plan = max(w.tick + ahead - round(fields.play(w).begun / w.period), 0)
    return fields.reference(w)[min(in_plan, w.reference_rows - 1)]


@compiled()
def payload_law(w):
    """All records of the law of a `PayloadController`."""
    return open_law(record_beyond(w, w.law, CABLE_LAW))


@CompiledStage
def begin_payload(address):
    """Errors of the load and disturbances of `PayloadController`."""
    w = world_at(address)
    now = reference_of(w, 0)
    law = payload_law(w)
    load = law.load[0]
    coming = reference_of(w, round(load.ahead_s / w.period)).derivatives
    if load.observes_drones == 0.0:
        drones = fields.attitude(w)
        for k in range(w.n_drones):
            put(law.cables[k].unmodelled, drones[k].unmodelled_force)
    look_at_load(law, fields.bodies(w), now.derivatives, now.tilt, coming)


@CompiledStage
def share_payload(address):
    """Forces of the cables for the planned wrench."""
    law = payload_law(world_at(address))
    share_evenly(law.load[0], law.sharing, law.forces)


@CompiledStage
def spread_payload(address):
    """The same, with the least tensions and distances."""
    law = payload_law(world_at(address))
    share_apart(law.load[0], law.cables, law.sharing, law.forces)


@CompiledStage
def place_payload(address):
    """Places of the drones, and the wrench of the present reference."""
    w = world_at(address)
    now = reference_of(w, 0)
    place_drones(payload_law(w), now.derivatives, now.tilt)


@CompiledStage
def hold_payload(address):
    """Forces of drones whose places are fed back."""
    w = world_at(address)
    hold_places(payload_law(w), fields.bodies(w), reference_of(w, 0).derivatives)


@CompiledStage
def turn_payload(address):
    """Forces of drones whose cables' directions are fed back."""
    w = world_at(address)
    turn_cables(payload_law(w), fields.bodies(w))


@CompiledStage
def end_payload(address):
    """Forces, yaws and moments of `PayloadController`."""
    w = world_at(address)
    output = fields.asked(w)
    law = payload_law(w)
    command_drones(law, fields.bodies(w))
    commands = law.commands
    for k in range(w.n_drones):
        put(output[k], commands[k].force)
        output[k, 3] = commands[k].yaw
        put(output[k, 4:], commands[k].moment)
        put(output[k, 7:], commands[k].counted)


@CompiledStage
def fly_payload_rods(address):
    """Thrusts and moments of `RodController`."""
    w = world_at(address)
    shares = fields.law_shares(w)
    law = record_beyond(w, w.law, LOAD)
    load = fields.bodies(w)[0]
    reference = reference_of(w, 0).derivatives
    rod_commands(law, load, reference, shares, fields.asked(w)[:, :4])


@CompiledStage
def fly_rotortm(address):
    """Thrusts and moments of `RotorTmCables`."""
    w = world_at(address)
    law = record_beyond(w, w.law, LAW)
    drones = fields.law_drones(w)
    shares = fields.law_shares(w)
    now = reference_of(w, 0)
    attitude_reference(law.load, now.derivatives, now.tilt)
    cable_commands(law, drones, shares, fields.bodies(w), now.derivatives, fields.asked(w)[:, :4])


@CompiledStage
def fly_rotortm_rods(address):
    """Thrusts and moments of `RotorTmRods`."""
    w = world_at(address)
    law = record_beyond(w, w.law, LAW)
    shares = fields.law_shares(w)
    load = fields.bodies(w)[0]
    reference = reference_of(w, 0).derivatives
    structure_commands(law, shares, load, reference, fields.asked(w)[:, :4])


def law_of(controller: Controller) -> Parts:
    """Compiled stages of a controller, none for one of another class than ours.

    A class derived from one of ours has code of its own.
    """
    if type(controller) is PayloadController:
        if not controller.holds_places:
            return begin_payload, turn_payload, end_payload
        share = spread_payload if controller.keeps_apart else share_payload
        return begin_payload, share, place_payload, share, hold_payload, end_payload
    return _LAWS.get(type(controller), ())


_LAWS: dict[type[Controller], Parts] = {
    RodController: (fly_payload_rods,),
    RotorTmCables: (fly_rotortm,),
    RotorTmRods: (fly_rotortm_rods,),
}
