"""The memory of a world, and the stages of its control period in compiled code.

A world is one record, `WORLD`, which says how far from it its arrays are. A stage is a function of
the record's address; `advance_worlds` calls those of a run one after another, for as many periods
as nothing in Python is due. The table of all stages is `session.stages`.
"""

from __future__ import annotations

import numpy as np
from numba import carray

from musls_control.autopilot import LANDING_TIMEOUT_S
from musls_control.estimate import MOTION
from musls_control.mission.contingency import LOSS, look_for_losses
from musls_control.mission.rows import (
    ASIDE,
    DOWN,
    ENDING,
    FOUND_COLUMNS,
    PLAY,
    ROW,
    TAKEN_UP,
    UNWATCHED,
    WAIT,
    due_row,
    give_back,
    look_down,
    move_aside,
    wait_for_landing,
)
from musls_control.px4.layout import STATE_DTYPE
from musls_description.numerics.compiled import CompiledStage, compiled
from musls_description.numerics.records import (
    beyond,
    call_at,
    copy_numbers,
    grid_at,
    pointer,
    vector_at,
)
from musls_description.numerics.vectors import add, cross, increase, put, scale
from musls_description.system.contacts import (
    CABLE,
    CABLE_PERIODS,
    CLOSEST,
    OWN,
    TOUCHING,
    find_contacts,
    find_near_cables,
    watch_bodies,
)
from musls_description.system.obstacles import SOLID
from musls_sim.imperfections import LINK, UNDER_WAY, bring_setpoints
from musls_sim.plants.driving import TARGET, write_inputs
from musls_sim.plants.interface import STEP
from musls_sim.plants.rigid_body import ROTOR
from musls_sim.power import BATTERY, run_motors
from musls_sim.power import ROTOR as MOTOR
from musls_sim.scenario.aerodynamics import (
    CELL,
    DOWNWASH,
    NEAR_GROUND,
    WAKE,
    add_downwash,
    add_ground_effect,
)
from musls_sim.sensors.estimation import (
    FAULT,
    LOAD_CELL,
    PREDICTION,
    SENSORS,
    add_noise,
    copy_truth,
    read_load_cells,
    sense,
    step_estimates,
)
from musls_sim.wind import blow

PIECE = 50
"""Control periods of one call into compiled code, for which noise is drawn and Ctrl-C waits."""

KEPT = 5 * PIECE
"""Control periods (1 s) of which what is recorded is kept before observers get it."""

ANNOUNCE_EVERY = 5
"""Control periods between two set-points of a controller that are announced: 50 Hz."""

COMMAND_COLUMNS = 10
"""Least number of columns of commands: those of `ControlLevel.FORCES`."""

NEVER = 2**62
"""Period that does not come."""

LOOK_EVERY = 5
"""Control periods between two looks for losses, likewise."""

WORLD = np.dtype(
    [
        *STEP.descr,  # what the plant is given
        ("tick", np.int64),  # control periods so far
        ("due", np.int64),  # period before which Python has something to decide
        ("watch", np.int64),  # whether losses are looked for in it, see `ROW`
        ("finished", np.int64),
        ("drawn", np.int64),  # periods whose noise was used since it was drawn
        ("touches", np.int64),  # whether bodies touched, or a cable was near a rotor, then
        ("emptied", np.int64),  # whether a battery became empty then
        ("on_ground", np.int64),  # drones that the autopilots find landed
        ("landing", np.int64),  # whether their number has changed then
        ("recorded", np.int64),  # rows since they were read
        ("announced", np.int64),  # rows of accelerations, likewise
        ("kept", np.int64),  # copies of what cables' shapes are made of, likewise
        ("is_new", np.int64),  # whether a row of the plan has begun in this period
        ("ended", np.int64),  # whether its last one is over
        ("asked_in", np.int64),  # its last row in which Python was asked, -1 for none
        ("played", np.int64),  # rows of the plan since they were told
        # What does not change in a flight.
        ("reference", np.int64),  # address of the load's, a row a period, which worlds share
        ("reference_rows", np.int64),
        ("table", np.int64),  # address of the plan's set-points, (rows, n, 12), which worlds share
        ("rows", np.int64),
        ("waits", np.int64),  # address of its rows that wait, which worlds share
        ("n_waits", np.int64),
        ("plan_rows", np.int64),  # address of what else is known of its rows, which worlds share
        ("lies", float, 4),  # set-point of the load when the drones land
        ("carried_length", float),  # of the longest cable that a load is carried by
        ("lands", np.int64),
        ("latency", np.int64),  # of motor commands, in periods
        ("gusty", np.int64),
        ("keep", float),  # share of a gust that is left after a period
        ("gust_scale", float, 3),  # of what joins it
        ("first", np.int64),  # body that motion capture estimates; -1 where the truth is known
        ("deviation", float),  # of the noise that is added to the truth
        ("ring_size", np.int64),  # of motion capture, in periods
        ("n_cells", np.int64),
        ("way_size", np.int64),  # of set-points that come late, in periods; 0 for none
        ("jitters", np.int64),  # whether each takes another time
        ("watched", np.int64),  # whether a run ends after a period of which there is much to tell
        ("every", np.int64),  # periods between two rows that are recorded; 0 for none
        ("keeps_every", np.int64),  # between two copies of `Plant.shaping`, likewise
        ("words", np.int64),  # numbers in it
        ("reacts", np.int64),  # whether the spin of propellers turns the drones
        ("peak_periods", np.int64),  # after which the recent peaks begin anew
        ("n_solids", np.int64),
        ("n_fastened", np.int64),
        ("n_obstacles", np.int64),
        ("n_targets", np.int64),  # of `RigDriver`
        ("rig_numbers", np.int64),  # address of its numbers, which worlds share
        ("rig_size", np.int64),
        ("n_lengths", np.int64),  # cables whose free length is shown
        ("obstacle_solids", np.int64),
        # Where things are, in bytes from this record. In the plant's memory:
        ("motion", np.int64),  # `PlantState.motion`, (1 + n, 16)
        ("peak", np.int64),  # largest tension in the period, so many numbers apart
        ("peak_apart", np.int64),
        ("anchors", np.int64),  # `PlantState.anchor_motion`, `anchor_wrench_n`, `free_length_m`
        ("held", np.int64),
        ("free_length", np.int64),
        ("speed", np.int64),  # `PlantState.rotor_speed_rad_s`
        ("force", np.int64),  # `PlantState.cable_force_n`
        # In the world's own, see `Parts`:
        ("sent", np.int64),  # set-points that are handed out
        ("wanted", np.int64),  # those of guidance, whatever the drones hear of them
        ("setpoint", np.int64),  # those that the autopilots have
        ("links", np.int64),  # by which they come late, and those under way
        ("under_way", np.int64),
        ("sensed", np.int64),  # motion as sensors find it, and their faults
        ("faults", np.int64),
        ("play", np.int64),  # where it is in the plan, what was looked at and found on the way down
        ("down", np.int64),
        ("found", np.int64),
        ("ending", np.int64),  # what comes after the plan
        ("played_rows", np.int64),  # periods and rows of the plan that began in them
        ("estimate", np.int64),
        ("tension", np.int64),  # estimated, (n_cables, 2)
        ("constants", np.int64),
        ("state", np.int64),
        ("mixers", np.int64),
        ("throttle", np.int64),
        ("told", np.int64),  # what the motors are told, (n, n_rotors), rows so many numbers apart
        ("told_apart", np.int64),
        ("late", np.int64),  # commands that come late, and those under way
        ("delayed", np.int64),
        ("asked", np.int64),
        ("losses", np.int64),  # of `Contingency`
        ("motors", np.int64),
        ("drives", np.int64),  # of `Power`
        ("batteries", np.int64),
        ("reaction", np.int64),
        ("tilted_rotors", np.int64),  # of `TiltedThrust`
        ("tilt_health", np.int64),
        ("tilt_shift", np.int64),
        ("air_rotors", np.int64),  # of `Air`
        ("downwash", np.int64),
        ("wakes", np.int64),
        ("wake_cells", np.int64),
        ("near_ground", np.int64),
        ("law", np.int64),  # records of a controller, and what else it works on
        ("law_drones", np.int64),
        ("law_shares", np.int64),
        ("thrust", np.int64),
        ("attitude", np.int64),
        ("measured", np.int64),
        ("rotor_wrench", np.int64),
        ("rates", np.int64),
        ("gains", np.int64),
        ("shares", np.int64),
        ("mean_wind", np.int64),
        ("gust", np.int64),
        ("largest", np.int64),
        ("recent", np.int64),  # largest tensions since they began anew
        ("motion_rows", np.int64),  # of what is recorded
        ("speed_rows", np.int64),
        ("force_rows", np.int64),
        ("recent_rows", np.int64),
        ("shown_rows", np.int64),
        ("anchors_rows", np.int64),
        ("held_rows", np.int64),
        ("free_length_rows", np.int64),
        ("asked_rows", np.int64),
        ("shaping", np.int64),  # `Plant.shaping`, and its copies
        ("kept_rows", np.int64),
        ("solids", np.int64),  # what `CollisionWatch` looks at
        ("first_solid", np.int64),
        ("reach", np.int64),
        ("contact_speed", np.int64),
        ("fastened", np.int64),
        ("cable_length", np.int64),
        ("near", np.int64),
        ("obstacles", np.int64),
        ("closest", np.int64),
        ("touching", np.int64),
        ("sensors", np.int64),
        ("ring", np.int64),
        ("cells", np.int64),  # load cells, and what they show
        ("shown", np.int64),
        ("winch_taken", np.int64),  # of `PlantInputs`
        ("winch_ramp", np.int64),
        ("targets", np.int64),
        ("streams", np.int64),  # of a batch's world: of its noise, see `batch.noise`
        ("gusts_ahead", np.int64),
        ("noise_ahead", np.int64),
        ("cells_ahead", np.int64),
        ("jitter_ahead", np.int64),
    ]
)


@compiled()
def advance_worlds(stages, address, apart, count, periods):
    """Advance worlds, a number of bytes apart in memory, each until it finishes or fails.

    `stages`: addresses of what is done in a period, or in a part of one, in its order. A world
    that is watched rests after a period of which there is something to tell, too; each where
    Python has to decide something, in a period that then begins anew. Returns whether the last one
    came to its end.
    """
    ended = False
    for i in range(count):
        at = address + i * apart
        w, ended = world_at(at), False
        for _ in range(periods):
            if w.finished != 0 or w.failed != 0 or w.tick >= w.due:
                break
            for s in range(len(stages)):
                call_at(stages[s], at)
                if w.failed != 0 or w.tick >= w.due:
                    break
            told = w.verdict != 0 or w.touches != 0 or w.emptied != 0 or w.landing != 0
            if w.watched != 0 and told:
                break
        else:
            ended = True
    return ended


@compiled()
def world_at(address):
    """The record of a world."""
    return carray(pointer(address), (1,), WORLD)[0]


@compiled()
def sent_of(w):
    """Set-points that guidance sends to the autopilots, (n, 12)."""
    return carray(beyond(w, w.sent), (w.n_drones, 12), np.float64)


@compiled()
def setpoint_of(w):
    """Set-points that have arrived at the autopilots, (n, 12)."""
    return carray(beyond(w, w.setpoint), (w.n_drones, 12), np.float64)


@compiled()
def motion_of(w):
    """True motion of load and drones, (1 + n, 16)."""
    return carray(beyond(w, w.motion), (1 + w.n_drones, 16), np.float64)


@compiled()
def sensed_of(w):
    """Motion of load and drones as the sensors measure it, (1 + n, 16)."""
    return carray(beyond(w, w.sensed), (1 + w.n_drones, 16), np.float64)


@compiled()
def estimate_of(w):
    """Estimate of the motion, (1 + n, 16)."""
    return carray(beyond(w, w.estimate), (1 + w.n_drones, 16), np.float64)


@compiled()
def throttle_of(w):
    """Throttle and speed that the autopilots command, (n, 2, n_rotors)."""
    return carray(beyond(w, w.throttle), (w.n_drones, 2, w.n_rotors), np.float64)


@compiled()
def asked_of(w):
    """Commands at the world's level, (n, at least `COMMAND_COLUMNS`), see `ControlLevel`."""
    return carray(beyond(w, w.asked), (w.n_drones, max(w.n_rotors, COMMAND_COLUMNS)), np.float64)


# ---------- Before the plant


@compiled()
def play_of(w):
    """State of the plan of a world."""
    return carray(beyond(w, w.play), (1,), PLAY)[0]


@CompiledStage
def play_plan(address):
    """Send the plan's row that is due."""
    w = world_at(address)
    time, setpoint, play = w.tick * w.period, sent_of(w), play_of(w)
    planned = carray(pointer(w.table), (w.rows, w.n_drones, 12), np.float64)
    waits = carray(pointer(w.waits), (w.n_waits,), WAIT)
    places = estimate_of(w)
    due = due_row(play, waits, planned, places, time)
    row = max(0, min(due, w.rows - 1))
    w.is_new, w.ended = 1 if row != play.row else 0, 1 if due >= w.rows else 0
    if w.is_new != 0:
        planned_row = carray(pointer(w.plan_rows), (w.rows,), ROW)[row]
        if planned_row.asks != 0 and w.asked_in != row:
            w.asked_in, w.due = row, w.tick
            return
        play.row = row
        for i in range(w.n_drones):
            for k in range(12):
                setpoint[i, k] = planned[row, i, k]
        copy_row(w, w.wanted, 0, w.sent, 12 * w.n_drones)  # two arrays where links may be lost
        w.watch = planned_row.watch
        if w.watched != 0:
            played = carray(beyond(w, w.played_rows), (KEPT, 2), np.int64)
            played[w.played, 0], played[w.played, 1] = w.tick, row
            w.played += 1


@CompiledStage
def come_down(address):
    """Change the set-points of a new row by what was found on the way down, and look for more."""
    w = world_at(address)
    if w.is_new == 0:
        return
    planned, row = carray(pointer(w.table), (w.rows, w.n_drones, 12), np.float64), play_of(w).row
    rows = carray(pointer(w.plan_rows), (w.rows,), ROW)
    found = grid_at(w, w.found, w.n_drones, FOUND_COLUMNS)
    down = carray(beyond(w, w.down), (1,), DOWN)[0]
    setpoint, fed, spots = sent_of(w), planned[row, :, 6:], planned[w.rows - 1]
    if down.spread_from >= 0:
        move_aside(setpoint, found[:, ASIDE:], down.spread_from, down.spread_rows, row)
    give_back(setpoint[:, 6:], found, rows[row].share)
    places = estimate_of(w)
    look_down(down, found, rows, row, fed, spots, w.lies, w.carried_length, places)


@CompiledStage
def end_flight(address):
    """Wait for the landing after the plan's last row, and disarm."""
    w = world_at(address)
    if w.ended == 0 or w.is_new != 0:
        return
    if w.lands == 0:
        w.finished = 1
        return
    time, setpoint, play = w.tick * w.period, sent_of(w), play_of(w)
    ending = carray(beyond(w, w.ending), (1,), ENDING)[0]
    states = carray(beyond(w, w.state), (w.n_drones,), STATE_DTYPE)
    down = True
    for i in range(w.n_drones):
        down &= states[i].land.landed.state != 0 or setpoint[i, 11] == 0.0
    late = time - play.begun - w.rows / play.rate > LANDING_TIMEOUT_S
    w.finished = 1 if wait_for_landing(ending, down, late, time) else 0
    if np.isfinite(ending.disarmed_at):
        for i in range(w.n_drones):
            setpoint[i, 11] = 0.0


@CompiledStage
def record(address):
    """Copy what is recorded into the next row, if it is time to."""
    w = world_at(address)
    if w.every == 0 or w.tick % w.every != 0:
        return
    row, bodies, rotors = w.recorded, 16 * (1 + w.n_drones), w.n_drones * w.n_rotors
    copy_row(w, w.motion_rows, row, w.motion, bodies)
    copy_row(w, w.speed_rows, row, w.speed, rotors)
    copy_row(w, w.force_rows, row, w.force, 6 * w.n_cables)
    copy_row(w, w.recent_rows, row, w.recent, w.n_cables)
    copy_row(w, w.shown_rows, row, w.shown, 2 * w.n_cells)
    copy_row(w, w.anchors_rows, row, w.anchors, 16 * w.n_anchors)
    copy_row(w, w.held_rows, row, w.held, 6 * w.n_anchors)
    copy_row(w, w.free_length_rows, row, w.free_length, w.n_lengths)
    w.recorded = row + 1
    if w.keeps_every != 0 and w.tick % w.keeps_every == 0:
        copy_row(w, w.kept_rows, w.kept, w.shaping, w.words)
        w.kept += 1


@CompiledStage
def announce(address):
    """Copy the accelerations that a controller asks of the autopilots, if it is time to."""
    w = world_at(address)
    if w.asked_rows == 0 or w.tick % ANNOUNCE_EVERY != 0:
        return
    sent, rows = sent_of(w), grid_at(w, w.asked_rows, KEPT // ANNOUNCE_EVERY * w.n_drones, 3)
    for i in range(w.n_drones):
        put(rows[w.announced * w.n_drones + i], sent[i, 6:])
    w.announced += 1


@compiled()
def copy_row(w, rows, row, source, count):
    """Copy a number of values from a place of the world into a row of a table."""
    copy_numbers(
        carray(beyond(w, rows + 8 * row * count), (count,), np.float64),
        carray(beyond(w, source), (count,), np.float64),
    )


@CompiledStage
def delay_setpoints(address):
    """Hand set-points on when they arrive, see `SetpointLink`."""
    w = world_at(address)
    n = w.n_drones
    links = carray(beyond(w, w.links), (n,), LINK)
    under_way = carray(beyond(w, w.under_way), (w.way_size, n), UNDER_WAY)
    luck = carray(beyond(w, w.jitter_ahead + 8 * n * w.drawn * w.jitters), (n,), np.float64)
    bring_setpoints(sent_of(w), links, under_way, luck, w.tick, setpoint_of(w))


@CompiledStage
def delay_commands(address):
    """Pass on the motor commands of some periods ago, see `CommandLatency`."""
    w = world_at(address)
    throttle = throttle_of(w)
    ring = carray(beyond(w, w.delayed), (w.latency, w.n_drones, w.n_rotors), np.float64)
    late = carray(beyond(w, w.late), (w.n_drones, w.n_rotors), np.float64)
    slot = ring[w.tick % w.latency]
    for i in range(w.n_drones):
        for j in range(w.n_rotors):
            late[i, j] = slot[i, j]
            slot[i, j] = throttle[i, 1, j]


@CompiledStage
def let_wind_blow(address):
    """Advance the gust, see `Wind.step`."""
    w = world_at(address)
    change = vector_at(w, w.gusts_ahead + 24 * w.drawn)
    blow(vector_at(w, w.wind), vector_at(w, w.mean_wind), vector_at(w, w.gust), w.keep, change)


@CompiledStage
def drive_rig(address):
    """Write what anchors and winches do in the period, see `RigDriver`."""
    w = world_at(address)
    anchors, winches = w.n_anchors, w.n_winches
    write_inputs(
        carray(beyond(w, w.targets), (w.n_targets,), TARGET),
        carray(pointer(w.rig_numbers), (w.rig_size,), np.float64),
        w.tick * w.period,
        (w.tick + 1) * w.period,
        grid_at(w, w.anchors, anchors, 16),
        carray(beyond(w, w.anchor_motion), (anchors, 2, 18), np.float64),
        grid_at(w, w.anchor_wrench, anchors, 6),
        grid_at(w, w.winch, winches, 2),
        carray(beyond(w, w.winch_brake), (winches,), np.int64),
        carray(beyond(w, w.winch_taken), (winches,), np.int64),
        grid_at(w, w.winch_ramp, winches, 2),
    )


@CompiledStage
def drive_rotors(address):
    """Apply motors and batteries, see `power.run_motors`."""
    w = world_at(address)
    told = carray(beyond(w, w.told), (w.n_drones, w.told_apart), np.float64)
    w.emptied = run_motors(
        grid_at(w, w.speed, w.n_drones, w.n_rotors),
        told[:, : w.n_rotors],
        motion_of(w),
        carray(beyond(w, w.drives), (w.n_drones, w.n_rotors), MOTOR),
        carray(beyond(w, w.batteries), (w.n_drones,), BATTERY),
        w.period,
        w.reacts != 0,
        grid_at(w, w.reaction, w.n_drones, 3),
        grid_at(w, w.wrench_body, 1 + w.n_drones, 6),
    )


@CompiledStage
def tilt_thrust(address):
    """Add moment and force of the shift of tilted rotors' thrusts, see `TiltedThrust`."""
    w = world_at(address)
    n, rotors = w.n_drones, w.n_rotors
    speed, health = grid_at(w, w.speed, n, rotors), grid_at(w, w.tilt_health, n, rotors)
    records = carray(beyond(w, w.tilted_rotors), (n, rotors), ROTOR)
    shift, wrench = grid_at(w, w.tilt_shift, n, 3), grid_at(w, w.wrench_body, 1 + n, 6)
    for i in range(n):
        for j in range(rotors):
            rotor, squared = records[i, j], health[i, j] * speed[i, j] * speed[i, j]
            force = scale(rotor.thrust * squared, shift[i])
            reaction = scale(rotor.torque * squared, shift[i])
            increase(wrench[1 + i, :3], add(cross(rotor.place, force), reaction))
            increase(wrench[1 + i, 3:], force)


@compiled()
def air_around(w):
    """Arrays that aerodynamic models read and write: motion, rotors, wrenches in body frames."""
    n, rotors = w.n_drones, w.n_rotors
    return (
        motion_of(w),
        carray(beyond(w, w.air_rotors), (n, rotors), ROTOR),
        grid_at(w, w.speed, n, rotors),
        grid_at(w, w.wrench_body, 1 + n, 6),
    )


@CompiledStage
def blow_down(address):
    """Apply the drag of rotor wakes on bodies below, see `Downwash`."""
    w = world_at(address)
    motion, rotors, speed, wrench = air_around(w)
    law = carray(beyond(w, w.downwash), (1,), DOWNWASH)[0]
    wakes = carray(beyond(w, w.wakes), (w.n_drones, w.n_rotors), WAKE)
    cells = carray(beyond(w, w.wake_cells), (law.cells,), CELL)
    add_downwash(motion, rotors, speed, vector_at(w, w.wind), law, wakes, cells, wrench)


@CompiledStage
def lift_near_ground(address):
    """Add the thrust of rotors near the ground, see `GroundEffect`."""
    w = world_at(address)
    motion, rotors, speed, wrench = air_around(w)
    near = carray(beyond(w, w.near_ground), (w.n_drones,), NEAR_GROUND)
    add_ground_effect(motion, rotors, speed, near, wrench)


OF_AIR = {"downwash": blow_down, "ground_effect": lift_near_ground}
"""Stages of aerodynamic models by their kinds."""


# ---------- Around the plant


@CompiledStage
def tell_motors(address):
    """Write the rotor speeds that follow from the motor commands."""
    w = world_at(address)
    command = grid_at(w, w.command, w.n_drones, w.n_rotors)
    motors = carray(beyond(w, w.motors), (w.n_drones,), np.float64)
    for i in range(w.n_drones):
        told = carray(beyond(w, w.told + 8 * w.told_apart * i), (w.n_rotors,), np.float64)
        for j in range(w.n_rotors):
            command[i, j] = motors[i] * told[j]


@CompiledStage
def note_peaks(address):
    """Take in the largest tensions of the period, see `TensionPeaks`."""
    w = world_at(address)
    peak = carray(beyond(w, w.peak), (w.n_cables * w.peak_apart,), np.float64)
    largest = carray(beyond(w, w.largest), (w.n_cables,), np.float64)
    recent = carray(beyond(w, w.recent), (w.n_cables,), np.float64)
    for i in range(w.n_cables):
        now = peak[i * w.peak_apart]
        largest[i] = max(largest[i], now)
        before = 0.0 if w.tick % w.peak_periods == 0 else recent[i]
        recent[i] = max(before, now)


# ---------- After the plant


@CompiledStage
def look_for_contacts(address):
    """Note whether bodies touch, or a cable is near a rotor: see `CollisionWatch.look`."""
    w = world_at(address)
    bodies, motion = 1 + w.n_drones, motion_of(w)
    reach = carray(beyond(w, w.reach), (bodies,), np.float64)
    solids = carray(beyond(w, w.solids), (w.n_solids,), OWN)
    first = carray(beyond(w, w.first_solid), (bodies + 1,), np.int64)
    speed = carray(beyond(w, w.contact_speed), (bodies, bodies), np.float64)
    w.touches = 0
    if find_contacts(solids, first, reach, motion, w.period, speed):
        w.touches = 1
    elif (w.tick + 1) % CABLE_PERIODS == 0:
        cables = carray(beyond(w, w.fastened), (w.n_fastened,), CABLE)
        lengths = carray(beyond(w, w.cable_length), (w.n_cables,), np.float64)
        near = carray(beyond(w, w.near), (w.n_fastened, bodies), np.bool_)
        if find_near_cables(cables, reach, motion, lengths, near):
            w.touches = 1


@CompiledStage
def look_at_obstacles(address):
    """Note whether load or drones touch an obstacle, see `CollisionWatch.look`."""
    w = world_at(address)
    bodies, time = 1 + w.n_drones, (w.tick + 1) * w.period
    own = carray(beyond(w, w.solids), (w.n_solids,), OWN)
    first = carray(beyond(w, w.first_solid), (bodies + 1,), np.int64)
    reach = carray(beyond(w, w.reach), (bodies,), np.float64)
    solids = carray(beyond(w, w.obstacles), (w.obstacle_solids,), SOLID)
    closest = carray(beyond(w, w.closest), (w.n_obstacles,), CLOSEST)
    touching = carray(beyond(w, w.touching), (bodies, w.n_obstacles), TOUCHING)
    if watch_bodies(own, first, reach, motion_of(w), solids, closest, touching, time, w.period):
        w.touches = 1


@compiled()
def feel_tension(w):
    """Take the true tensions for the estimated ones."""
    force = carray(beyond(w, w.force), (w.n_cables, 2, 3), np.float64)
    tension = carray(beyond(w, w.tension), (w.n_cables, 2), np.float64)
    for i in range(w.n_cables):
        for end in range(2):
            tension[i, end] = force[i, end, 0]


@CompiledStage
def sense_motion(address):
    """Write the motion that tilted boards and displaced markers sense: `SensedState`."""
    w = world_at(address)
    n = w.n_drones
    true, sensed = (
        carray(beyond(w, w.motion), (1 + n,), MOTION),
        carray(beyond(w, w.sensed), (1 + n,), MOTION),
    )
    sense(true, carray(beyond(w, w.faults), (n,), FAULT), sensed)


@compiled()
def noise_of(w):
    """Noise of this period, (1 + n, 13)."""
    bodies = 1 + w.n_drones
    return carray(beyond(w, w.noise_ahead + 8 * 13 * bodies * w.drawn), (bodies, 13), np.float64)


@CompiledStage
def know_truth(address):
    """Take the truth for what is known, see `Truth`."""
    w = world_at(address)
    copy_truth(sensed_of(w), estimate_of(w))
    if w.deviation > 0.0:
        add_noise(estimate_of(w), noise_of(w), w.deviation)
    feel_tension(w)


@CompiledStage
def capture_motion(address):
    """Integrate the IMUs and fuse samples, see `MotionCapture`."""
    w = world_at(address)
    bodies = 1 + w.n_drones
    sensors = carray(beyond(w, w.sensors), (bodies,), SENSORS)
    ring = carray(beyond(w, w.ring), (w.ring_size, bodies), PREDICTION)
    step_estimates(sensed_of(w), estimate_of(w), noise_of(w), sensors, ring, w.tick, w.first)
    if w.first == 0:
        feel_tension(w)


@CompiledStage
def measure_tensions(address):
    """Show the tensions of load cells in the place of the estimated ones, see `LoadCells`."""
    w = world_at(address)
    read_load_cells(
        carray(beyond(w, w.cells), (w.n_cells,), LOAD_CELL),
        carray(beyond(w, w.force), (w.n_cables, 2, 3), np.float64),
        grid_at(w, w.cells_ahead + 16 * w.n_cells * w.drawn, w.n_cells, 2),
        w.tick,
        grid_at(w, w.shown, w.n_cells, 2),
        grid_at(w, w.tension, w.n_cables, 2),
    )


@CompiledStage
def watch_losses(address):
    """Look for drones that do not carry any more, if it is time to, see `Contingency`."""
    w = world_at(address)
    if w.watch == UNWATCHED or (w.tick + 1) % LOOK_EVERY != 0:
        return
    losses = carray(beyond(w, w.losses), (w.n_drones,), LOSS)
    tension, wanted = grid_at(w, w.tension, w.n_cables, 2), grid_at(w, w.wanted, w.n_drones, 12)
    time, lifting = (w.tick + 1) * w.period, w.watch == TAKEN_UP
    if look_for_losses(losses, estimate_of(w), tension, wanted, time, lifting):
        w.due = min(w.due, w.tick + 1)


@CompiledStage
def end_period(address):
    """Count the period."""
    w = world_at(address)
    w.drawn += 1
    w.tick += 1
