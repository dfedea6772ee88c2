"""One control period of a world of a batch, in compiled code: everything around the plant.

The functions are those that a single flight calls from Python, in the order of its loop's steps.
A world is one record, `WORLD`, which says where its arrays are.
"""

from __future__ import annotations

import numpy as np
from numba import carray

from musls_control.autopilot import DISARM_AFTER_LANDING_S
from musls_control.geometric_attitude import DRONE, attitude_moments
from musls_control.mission.waiting import WAIT, due_row
from musls_control.mixing import ROTOR, mix
from musls_control.payload.actuation import THRUST, ask_autopilot
from musls_control.px4_cascade.allocation import MIXER_COLUMNS
from musls_control.px4_cascade.cascade import step_drones
from musls_control.px4_cascade.layout import PARAMETER_DTYPE, STATE_DTYPE
from musls_description.numerics.compiled import compiled
from musls_description.numerics.records import copy_numbers, pointer
from musls_description.numerics.vectors import put
from musls_sim.scenario.physics import blow
from musls_sim.sensors.estimation import PREDICTION, SENSORS, step_estimates
from musls_sim.session.collisions import (
    CABLE,
    CABLE_PERIODS,
    OWN,
    find_contacts,
    find_near_cables,
)
from musls_sim.session.guidance import AFTER_DISARM_S, LANDING_TIMEOUT_S

SETPOINTS, FORCES, THRUST_MOMENT, ROTOR_SPEEDS, AUTOPILOT_FORCES, IDEAL_THRUST_MOMENT = range(6)
"""Levels of what is commanded, the first four from outside, too; see `ControlLevel`."""


WORLD = np.dtype(
    [
        ("tick", np.int64),  # control periods so far
        ("row", np.int64),  # of the plan; -1 before the first
        ("finished", np.int64),
        ("failed", np.int64),
        ("landed", np.int64),
        ("down_since", float),  # NaN in the air
        ("disarmed_at", float),  # NaN before
        ("drawn", np.int64),  # periods whose noise was used since it was drawn
        ("halted", np.int64),  # after a period of which there is something to tell
        ("verdict", np.int64),  # of the plant on the last period, 0 if it was as usual
        ("recorded", np.int64),  # rows since they were read
        ("changed", np.int64),  # rows of `changes` that are done
        ("begun", float),  # the plan, and its waits: see `musls_control.mission.waiting.PLAY`
        ("next_wait", np.int64),
        ("waited", np.int64),
        ("missed", np.int64),
        # What does not change in a flight.
        ("period", float),
        ("level", np.int64),
        ("n_drones", np.int64),
        ("n_rotors", np.int64),
        ("reference", np.int64),  # address of the load's, a row a period, which worlds share
        ("reference_rows", np.int64),
        ("table", np.int64),  # address of the plan's set-points, (rows, n, 12), which worlds share
        ("rows", np.int64),
        ("rate", float),  # of the rows [Hz]
        ("waits", np.int64),  # address of its rows that wait, which worlds share
        ("n_waits", np.int64),
        ("lands", np.int64),
        ("latency", np.int64),  # of motor commands, in periods
        ("gusty", np.int64),
        ("keep", float),  # share of a gust that is left after a period
        ("first", np.int64),  # body that motion capture estimates; -1 where the truth is known
        ("ring_size", np.int64),  # of motion capture, in periods
        ("substeps", np.int64),  # of the plant
        ("watched", np.int64),  # whether it halts, and what touches is looked for
        ("every", np.int64),  # periods between two rows that are recorded; 0 for none
        ("peak_periods", np.int64),  # after which the recent peaks begin anew
        ("n_cables", np.int64),
        ("n_solids", np.int64),
        ("n_fastened", np.int64),
        ("n_changes", np.int64),
        ("in_plan", np.int64),  # whether they come later by what the plan has waited
        # Where things are. In the plant's memory:
        ("plant", np.int64),
        ("motion", np.int64),  # `PlantState.motion`, (1 + n, 16)
        ("peak", np.int64),  # largest tension in the period, so many numbers apart
        ("peak_apart", np.int64),
        ("speed", np.int64),  # `PlantState.rotor_speed_rad_s`
        ("force", np.int64),  # `PlantState.cable_force_n`
        # In the world's own, see `Parts`:
        ("setpoint", np.int64),
        ("estimate", np.int64),
        ("constants", np.int64),
        ("state", np.int64),
        ("mixers", np.int64),
        ("throttle", np.int64),
        ("command", np.int64),
        ("delayed", np.int64),
        ("asked", np.int64),
        ("motors", np.int64),
        ("law", np.int64),  # records of a controller, and what else it works on
        ("law_places", np.int64),
        ("law_drones", np.int64),
        ("law_shares", np.int64),
        ("thrust", np.int64),
        ("attitude", np.int64),
        ("gains", np.int64),
        ("shares", np.int64),
        ("wind", np.int64),
        ("mean_wind", np.int64),
        ("gust", np.int64),
        ("wrench_body", np.int64),
        ("wrench_enu", np.int64),
        ("largest", np.int64),
        ("recent", np.int64),  # largest tensions since they began anew
        ("motion_rows", np.int64),  # of what is recorded
        ("speed_rows", np.int64),
        ("force_rows", np.int64),
        ("recent_rows", np.int64),
        ("solids", np.int64),  # what `CollisionWatch` looks at
        ("first_solid", np.int64),
        ("reach", np.int64),
        ("contact_speed", np.int64),
        ("fastened", np.int64),
        ("cable_length", np.int64),
        ("near", np.int64),
        ("sensors", np.int64),
        ("ring", np.int64),
        ("gusts_ahead", np.int64),
        ("noise_ahead", np.int64),
        ("levels", np.int64),  # of the refinement of rigid links
        ("limits", np.int64),
        ("begin", np.int64),  # of the world's memory
        ("changes", np.int64),  # what events make of it, in the order of time; worlds share them
    ]
)

CHANGE = np.dtype([("tick", np.int64), ("place", np.int64), ("word", np.int64)])
"""A word that an event writes: control period, place in the world's memory, its eight bytes."""


@compiled()
def world_at(address):
    """The record of a world."""
    return carray(pointer(address), (1,), WORLD)[0]


@compiled()
def vector_at(address):
    """Three numbers, such as `w.wind`."""
    return carray(pointer(address), (3,), np.float64)


@compiled()
def wrenches_at(w, address):
    """`w.wrench_body` or `w.wrench_enu`, (1 + n, 6)."""
    return carray(pointer(address), (1 + w.n_drones, 6), np.float64)


@compiled()
def command_of(w):
    """Rotor speeds that the motors are told, (n, n_rotors)."""
    return carray(pointer(w.command), (w.n_drones, w.n_rotors), np.float64)


@compiled()
def asked_of(w):
    """Commands at the world's level, (n, at least 7), see `Batch.command`."""
    return carray(pointer(w.asked), (w.n_drones, max(w.n_rotors, 7)), np.float64)


@compiled()
def begin_period(w):
    """The steps before the plant: set-points, a row of the recording, control, wind."""
    time = w.tick * w.period
    setpoint = carray(pointer(w.setpoint), (w.n_drones, 12), np.float64)
    if w.rows > 0:
        follow_plan(w, time, setpoint)
    if w.changed < w.n_changes:
        let_events_happen(w)
    if w.every > 0 and w.tick % w.every == 0:
        record(w)
    control(w, setpoint)
    if w.gusty != 0:
        change = vector_at(w.gusts_ahead + 24 * w.drawn)
        blow(vector_at(w.wind), vector_at(w.mean_wind), vector_at(w.gust), w.keep, change)


@compiled()
def follow_plan(w, time, setpoint):
    """Hand out the row that is due; after the last one wait for the landing and disarm."""
    planned = carray(pointer(w.table), (w.rows, w.n_drones, 12), np.float64)
    waits = carray(pointer(w.waits), (w.n_waits,), WAIT)
    places = carray(pointer(w.estimate), (1 + w.n_drones, 16), np.float64)
    due = due_row(w, waits, planned, places, time)
    row = max(0, min(due, w.rows - 1))
    if row != w.row:
        w.row = row
        for i in range(w.n_drones):
            for k in range(12):
                setpoint[i, k] = planned[row, i, k]
        return
    if due < w.rows:
        return
    if w.lands == 0:
        w.finished = 1
    elif np.isfinite(w.disarmed_at):
        w.finished = 1 if time - w.disarmed_at >= AFTER_DISARM_S else 0
    else:
        states = carray(pointer(w.state), (w.n_drones,), STATE_DTYPE)
        down = True
        for i in range(w.n_drones):
            down &= states[i].land.landed.state != 0
        if not down:
            w.down_since = np.nan
        elif not np.isfinite(w.down_since):
            w.down_since = time
        w.landed = 1 if down and time - w.down_since >= DISARM_AFTER_LANDING_S else 0
        if w.landed != 0 or time - w.begun - w.rows / w.rate > LANDING_TIMEOUT_S:
            w.disarmed_at = time
            for i in range(w.n_drones):
                setpoint[i, 11] = 0.0


@compiled()
def let_events_happen(w):
    """Write the words of `CHANGE` that are due."""
    tick = w.tick - round(w.begun / w.period) if w.in_plan != 0 else w.tick
    changes = carray(pointer(w.changes), (w.n_changes,), CHANGE)
    while w.changed < w.n_changes and changes[w.changed].tick <= tick:
        change = changes[w.changed]
        carray(pointer(w.begin + change.place), (1,), np.int64)[0] = change.word
        w.changed += 1


@compiled()
def control(w, setpoint):
    """Turn commands at the world's level into speeds of the rotors."""
    n, rotors = w.n_drones, w.n_rotors
    throttle = carray(pointer(w.throttle), (n, 2, rotors), np.float64)  # and speed
    command = command_of(w)
    estimate = carray(pointer(w.estimate), (1 + n, 16), np.float64)
    asked = asked_of(w)
    if w.level == SETPOINTS or w.level == AUTOPILOT_FORCES:
        if w.level == AUTOPILOT_FORCES:
            ask_autopilot(setpoint, asked, throttle[:, 0], carray(pointer(w.thrust), (n,), THRUST))
        for i in range(n):
            if w.level == SETPOINTS and np.isfinite(asked[i, 0]):
                put(setpoint[i], asked[i])
                setpoint[i, 9] = asked[i, 3]
        constants = carray(pointer(w.constants), (n,), PARAMETER_DTYPE)
        states = carray(pointer(w.state), (n,), STATE_DTYPE)
        mixers = carray(pointer(w.mixers), (n, rotors, MIXER_COLUMNS), np.float64)
        step_drones(setpoint, estimate[1:], constants, states, mixers, throttle)
    elif w.level == IDEAL_THRUST_MOMENT:
        wrench = wrenches_at(w, w.wrench_body)
        for i in range(n):
            put(wrench[1 + i], asked[i, 1:])
            wrench[1 + i, 5] = asked[i, 0]
    elif w.level == ROTOR_SPEEDS:
        for i in range(n):
            for j in range(rotors):
                throttle[i, 1, j] = asked[i, j]
    else:
        shares = carray(pointer(w.shares), (n, rotors), ROTOR)
        thrust, moment = np.empty(n), np.empty((n, 3))
        if w.level == FORCES:
            drones = carray(pointer(w.attitude), (n,), DRONE)
            gains = carray(pointer(w.gains), (2, 3), np.float64)
            for i in range(n):
                drones[i].yaw = asked[i, 3] if np.isfinite(asked[i, 3]) else setpoint[i, 9]
                for k in range(3):
                    drones[i].force[k] = asked[i, k]
            attitude_moments(drones, gains, estimate[1:, 6:10], estimate[1:, 10:13])
            for i in range(n):
                thrust[i] = drones[i].thrust
                for k in range(3):
                    moment[i, k] = drones[i].moment[k] + asked[i, 4 + k]
        else:
            for i in range(n):
                thrust[i] = asked[i, 0]
                for k in range(3):
                    moment[i, k] = asked[i, 1 + k]
        mix(shares, thrust, moment, throttle[:, 1])
    motors = carray(pointer(w.motors), (n,), np.float64)
    if w.latency > 0:
        ring = carray(pointer(w.delayed), (w.latency, n, rotors), np.float64)
        delayed = ring[w.tick % w.latency]
        for i in range(n):
            for j in range(rotors):
                command[i, j] = motors[i] * delayed[i, j]
                delayed[i, j] = throttle[i, 1, j]
    else:
        for i in range(n):
            for j in range(rotors):
                command[i, j] = motors[i] * throttle[i, 1, j]


@compiled()
def record(w):
    """Copy what is recorded into the next row."""
    row, bodies, rotors = w.recorded, 16 * (1 + w.n_drones), w.n_drones * w.n_rotors
    copy_row(w.motion_rows, row, w.motion, bodies)
    copy_row(w.speed_rows, row, w.speed, rotors)
    copy_row(w.force_rows, row, w.force, 6 * w.n_cables)
    copy_row(w.recent_rows, row, w.recent, w.n_cables)
    w.recorded = row + 1


@compiled()
def copy_row(rows, row, source, count):
    """Copy so many numbers from an address into a row of a table at another."""
    copy_numbers(
        carray(pointer(rows + 8 * row * count), (count,), np.float64),
        carray(pointer(source), (count,), np.float64),
    )


@compiled()
def anything_touches(w):
    """Whether bodies touch, or a cable is near a rotor: see `CollisionWatch.look`."""
    bodies = 1 + w.n_drones
    motion = carray(pointer(w.motion), (bodies, 16), np.float64)
    reach = carray(pointer(w.reach), (bodies,), np.float64)
    solids = carray(pointer(w.solids), (w.n_solids,), OWN)
    first = carray(pointer(w.first_solid), (bodies + 1,), np.int64)
    speed = carray(pointer(w.contact_speed), (bodies, bodies), np.float64)
    if find_contacts(solids, first, reach, motion, speed):
        return True
    if (w.tick + 1) % CABLE_PERIODS != 0:
        return False
    cables = carray(pointer(w.fastened), (w.n_fastened,), CABLE)
    lengths = carray(pointer(w.cable_length), (w.n_cables,), np.float64)
    near = carray(pointer(w.near), (w.n_fastened, bodies), np.bool_)
    return find_near_cables(cables, reach, motion, lengths, near)


@compiled()
def end_period(w):
    """The steps after the plant: largest tensions, what touches, estimates."""
    bodies = 1 + w.n_drones
    peak = carray(pointer(w.peak), (w.n_drones * w.peak_apart,), np.float64)
    largest = carray(pointer(w.largest), (w.n_drones,), np.float64)
    for i in range(w.n_drones):
        largest[i] = max(largest[i], peak[i * w.peak_apart])
    if w.watched != 0:
        recent = carray(pointer(w.recent), (w.n_drones,), np.float64)
        for i in range(w.n_drones):
            before = 0.0 if w.tick % w.peak_periods == 0 else recent[i]
            recent[i] = max(before, peak[i * w.peak_apart])
        w.halted = 1 if w.verdict != 0 or anything_touches(w) else 0
    motion = carray(pointer(w.motion), (bodies, 16), np.float64)
    estimate = carray(pointer(w.estimate), (bodies, 16), np.float64)
    if w.first < 0:
        for i in range(bodies):
            for k in range(16):
                estimate[i, k] = motion[i, k]
    else:
        noise = carray(pointer(w.noise_ahead + 8 * 13 * bodies * w.drawn), (bodies, 13), np.float64)
        sensors = carray(pointer(w.sensors), (bodies,), SENSORS)
        ring = carray(pointer(w.ring), (w.ring_size, bodies), PREDICTION)
        step_estimates(motion, estimate, noise, sensors, ring, w.tick, w.first)
    w.drawn += 1
    w.tick += 1
