"""The stages of a world's control period in compiled code.

A stage is a function of the address of a world's record, `fields.WORLD`; `advance_worlds` calls
those of a run one after another, for as many periods as nothing in Python is due. The table of all
stages is `session.stages`.
"""

from __future__ import annotations

import math

from musls_control.autopilot import LANDING_TIMEOUT_S
from musls_control.mission.contingency import look_for_losses
from musls_control.mission.rows import (
    ASIDE,
    TAKEN_UP,
    UNWATCHED,
    due_row,
    give_back,
    look_down,
    move_aside,
    wait_for_landing,
)
from musls_description.numerics.compiled import CompiledStage, compiled
from musls_description.numerics.records import (
    address_of,
    call_at,
    copy_numbers,
    copy_table,
    memory_at,
    record_at,
)
from musls_description.numerics.vectors import add, cross, increase, put, scale
from musls_description.system.contacts import (
    CABLE_PERIODS,
    find_contacts,
    find_near_cables,
    watch_bodies,
)
from musls_description.system.obstacles import begin_motion, move_solids
from musls_sim.imperfections import bring_setpoints
from musls_sim.plants.driving import write_inputs
from musls_sim.power import run_motors
from musls_sim.scenario.aerodynamics import add_downwash, add_ground_effect
from musls_sim.sensors.estimation import (
    add_noise,
    copy_truth,
    read_load_cells,
    sense,
    step_estimates,
)
from musls_sim.session.compiled_stages import fields
from musls_sim.session.compiled_stages.fields import ANNOUNCE_EVERY, WORLD
from musls_sim.wind import blow

PIECE = 50
"""Control periods of one call into compiled code, after which Ctrl-C is heard."""

COMMAND_COLUMNS = 10
"""Least number of columns of commands: those of `ControlLevel.FORCES`."""

NEVER = 2**62
"""Period that does not come."""

LOOK_EVERY = 5
"""Control periods between two looks for losses, likewise."""


@compiled()
def advance_worlds(stages, address, apart, count, periods):
    """Advance worlds, a number of bytes apart in memory, each until it finishes or fails.

    `stages`: addresses of what is done in a period, or in a part of one, in its order. A world
    that is watched rests after a period of which there is something to tell, too; each where
    Python has to decide something, in a period that then begins anew. Returns whether the last one
    came to its end.
    """
    complete = False
    for i in range(count):
        at = address + i * apart
        w = world_at(at)
        complete = False
        for _ in range(periods):
            if w.finished != 0 or w.failed != 0 or w.tick >= w.due:
                break
            for s in range(len(stages)):
                call_at(stages[s], at)
                if w.failed != 0 or w.tick >= w.due:
                    break
            has_news = w.verdict != 0 or w.touches != 0 or w.emptied != 0 or w.landing != 0
            if w.watched != 0 and has_news:
                break
        else:
            complete = True
    return complete


@compiled()
def world_at(address):
    """The record of a world."""
    return record_at(address, WORLD)


# ---------- Before the plant


@CompiledStage
def play_plan(address):
    """Send the plan's row that is due."""
    w = world_at(address)
    time = w.tick * w.period
    setpoint = fields.sent(w)
    play = fields.play(w)
    table = fields.table(w)
    waits = fields.waits(w)
    places = fields.estimate(w)
    due = due_row(play, waits, table, places, time)
    row = max(0, min(due, w.rows - 1))
    w.is_new = 1 if row != play.row else 0
    w.ended = 1 if due >= w.rows else 0
    if w.is_new != 0:
        planned_row = fields.plan_rows(w)[row]
        if planned_row.asks != 0 and w.asked_in != row:
            w.asked_in = row
            w.due = w.tick
            return
        play.row = row
        for i in range(w.n_drones):
            for k in range(12):
                setpoint[i, k] = table[row, i, k]
        copy_table(fields.wanted(w), setpoint)  # two arrays where links may be lost
        w.watch = planned_row.watch
        if w.watched != 0:
            played = fields.played_rows(w)
            played[w.played, 0] = w.tick
            played[w.played, 1] = row
            w.played += 1


@CompiledStage
def come_down(address):
    """Change the set-points of a new row by what was found on the way down, and look for more."""
    w = world_at(address)
    if w.is_new == 0:
        return
    table = fields.table(w)
    row = fields.play(w).row
    rows = fields.plan_rows(w)
    findings = fields.found(w)
    down = fields.down(w)
    setpoint = fields.sent(w)
    feed = table[row, :, 6:]
    spots = table[w.rows - 1]
    if down.spread_from >= 0:
        move_aside(setpoint, findings[:, ASIDE:], down.spread_from, down.spread_rows, row)
    give_back(setpoint[:, 6:], findings, rows[row].share)
    places = fields.estimate(w)
    look_down(down, findings, rows, row, feed, spots, w.lies, w.carried_length, places)


@CompiledStage
def end_flight(address):
    """Wait for the landing after the plan's last row, and disarm."""
    w = world_at(address)
    if w.ended == 0 or w.is_new != 0:
        return
    if w.lands == 0:
        w.finished = 1
        return
    time = w.tick * w.period
    setpoint = fields.sent(w)
    play = fields.play(w)
    ending = fields.ending(w)
    states = fields.state(w)
    down = True
    for i in range(w.n_drones):
        down &= states[i].land.landed.state != 0 or setpoint[i, 11] == 0.0
    late = time - play.begun - w.rows / play.rate > LANDING_TIMEOUT_S
    w.finished = 1 if wait_for_landing(ending, down, late, time) else 0
    if math.isfinite(ending.disarmed_at):
        for i in range(w.n_drones):
            setpoint[i, 11] = 0.0


@CompiledStage
def record(address):
    """Copy what is recorded into the next row, if it is time to."""
    w = world_at(address)
    if w.every == 0 or w.tick % w.every != 0:
        return
    for copy in fields.copies(w):
        copy_row(copy, w.recorded)
    w.recorded += 1
    if w.keeps_every != 0 and w.tick % w.keeps_every == 0:
        copy_row(fields.shapes(w), w.kept)
        w.kept += 1


@compiled()
def copy_row(copy, row):
    """Copy an array of the world into a row of its recorded copies; `copy` is a `COPY`."""
    into = memory_at(address_of(copy) + copy.rows + 8 * row * copy.words, copy.words)
    copy_numbers(into, memory_at(address_of(copy) + copy.source, copy.words))


@CompiledStage
def announce(address):
    """Copy the accelerations that a controller asks of the autopilots, if it is time to."""
    w = world_at(address)
    if w.n_announced == 0 or w.tick % ANNOUNCE_EVERY != 0:
        return
    setpoint = fields.sent(w)
    row = fields.asked_rows(w)[w.announced]
    for i in range(w.n_drones):
        put(row[i], setpoint[i, 6:])
    w.announced += 1


@CompiledStage
def delay_setpoints(address):
    """Hand set-points on when they arrive, see `SetpointLink`."""
    w = world_at(address)
    links = fields.links(w)
    under_way = fields.under_way(w)
    luck = fields.jitter(w)
    bring_setpoints(fields.sent(w), links, under_way, luck, w.tick, fields.setpoint(w))


@CompiledStage
def delay_commands(address):
    """Pass on the motor commands of some periods ago, see `CommandLatency`."""
    w = world_at(address)
    throttle = fields.throttle(w)
    ring = fields.delayed(w)
    late = fields.late(w)
    slot = ring[w.tick % w.latency]
    for i in range(w.n_drones):
        for j in range(w.n_rotors):
            late[i, j] = slot[i, j]
            slot[i, j] = throttle[i, 1, j]


@CompiledStage
def let_wind_blow(address):
    """Advance the gust, see `Wind.step`."""
    w = world_at(address)
    mean = fields.mean_wind(w)
    gust = fields.gust(w)
    change = fields.gust_noise(w)
    blow(fields.wind(w), mean, gust, w.keep, change)


@CompiledStage
def drive_rig(address):
    """Write what anchors, winches and surfaces do in the period, see `RigDriver`."""
    w = world_at(address)
    write_inputs(
        fields.targets(w),
        fields.rig_numbers(w),
        w.tick * w.period,
        (w.tick + 1) * w.period,
        fields.anchors(w),
        fields.anchor_motion(w),
        fields.anchor_wrench(w),
        fields.winch(w),
        fields.winch_brake(w),
        fields.winch_taken(w),
        fields.winch_ramp(w),
        fields.surface_motion(w),
    )


@CompiledStage
def move_grounds(address):
    """Move the ground of rotors to where it is at the begin of the period."""
    w = world_at(address)
    solids = fields.grounds(w)
    begin_motion(solids, fields.surface_motion(w), w.period)
    move_solids(solids, 0.0)


@CompiledStage
def move_obstacles(address):
    """Move surfaces to where they are at the end of the period, before bodies meet them."""
    w = world_at(address)
    solids = fields.obstacles(w)
    begin_motion(solids, fields.surface_motion(w), w.period)
    move_solids(solids, w.period)


@CompiledStage
def drive_rotors(address):
    """Apply motors and batteries, see `power.run_motors`."""
    w = world_at(address)
    w.emptied = run_motors(
        fields.speed(w),
        fields.told(w),
        fields.motion(w),
        fields.drives(w),
        fields.batteries(w),
        w.period,
        w.reacts != 0,
        fields.reaction(w),
        fields.wrench_body(w),
    )


@CompiledStage
def tilt_thrust(address):
    """Add moment and force of the shift of tilted rotors' thrusts, see `TiltedThrust`."""
    w = world_at(address)
    n = w.n_drones
    rotors = w.n_rotors
    speed = fields.speed(w)
    health = fields.tilt_health(w)
    records = fields.tilted_rotors(w)
    shift = fields.tilt_shift(w)
    wrench = fields.wrench_body(w)
    for i in range(n):
        for j in range(rotors):
            rotor = records[i, j]
            squared = health[i, j] * speed[i, j] * speed[i, j]
            force = scale(rotor.thrust * squared, shift[i])
            reaction = scale(rotor.torque * squared, shift[i])
            increase(wrench[1 + i, :3], add(cross(rotor.place, force), reaction))
            increase(wrench[1 + i, 3:], force)


@compiled()
def air_around(w):
    """Arrays that aerodynamic models read and write: motion, rotors, wrenches in body frames."""
    return (
        fields.motion(w),
        fields.air_rotors(w),
        fields.speed(w),
        fields.wrench_body(w),
    )


@CompiledStage
def blow_down(address):
    """Apply the drag of rotor wakes on bodies below, see `Downwash`."""
    w = world_at(address)
    motion, rotors, speed, wrench = air_around(w)
    law = fields.downwash(w)
    wakes = fields.wakes(w)
    cells = fields.wake_cells(w)
    add_downwash(motion, rotors, speed, fields.wind(w), law, wakes, cells, wrench)


@CompiledStage
def lift_near_ground(address):
    """Add the thrust of rotors near the ground, see `GroundEffect`."""
    w = world_at(address)
    motion, rotors, speed, wrench = air_around(w)
    near = fields.near_ground(w)
    add_ground_effect(motion, rotors, speed, near, fields.grounds(w), wrench)


OF_AIR = {"downwash": blow_down, "ground_effect": lift_near_ground}
"""Stages of aerodynamic models by their kinds."""


# ---------- Around the plant


@CompiledStage
def tell_motors(address):
    """Write the rotor speeds that follow from the motor commands."""
    w = world_at(address)
    command = fields.command(w)
    motors = fields.motors(w)
    speeds = fields.told(w)
    for i in range(w.n_drones):
        for j in range(w.n_rotors):
            command[i, j] = motors[i] * speeds[i, j]


@CompiledStage
def note_peaks(address):
    """Take in the largest tensions of the period, see `TensionPeaks`."""
    w = world_at(address)
    peak = fields.peak(w)
    largest = fields.largest(w)
    recent = fields.recent(w)
    for i in range(w.n_cables):
        now = peak[i]
        largest[i] = max(largest[i], now)
        before = 0.0 if w.tick % w.peak_periods == 0 else recent[i]
        recent[i] = max(before, now)


# ---------- After the plant


@CompiledStage
def look_for_contacts(address):
    """Note whether bodies touch, or a cable is near a rotor: see `CollisionWatch.look`."""
    w = world_at(address)
    motion = fields.motion(w)
    reach = fields.reach(w)
    solids = fields.solids(w)
    first = fields.first_solid(w)
    speed = fields.contact_speed(w)
    w.touches = 0
    if find_contacts(solids, first, reach, motion, w.period, speed):
        w.touches = 1
    elif (w.tick + 1) % CABLE_PERIODS == 0:
        cables = fields.fastened(w)
        lengths = fields.cable_length(w)
        near = fields.near(w)
        if find_near_cables(cables, reach, motion, lengths, near):
            w.touches = 1


@CompiledStage
def look_at_obstacles(address):
    """Note whether load or drones touch an obstacle, see `CollisionWatch.look`."""
    w = world_at(address)
    time = (w.tick + 1) * w.period
    own = fields.solids(w)
    first = fields.first_solid(w)
    reach = fields.reach(w)
    solids = fields.obstacles(w)
    closest = fields.closest(w)
    touching = fields.touching(w)
    if watch_bodies(own, first, reach, fields.motion(w), solids, closest, touching, time, w.period):
        w.touches = 1


@compiled()
def feel_tension(w):
    """Take the true tensions for the estimated ones."""
    force = fields.force(w)
    tension = fields.tension(w)
    for i in range(w.n_cables):
        for end in range(2):
            tension[i, end] = force[i, end, 0]


@CompiledStage
def sense_motion(address):
    """Write the motion that tilted boards and displaced markers sense: `SensedState`."""
    w = world_at(address)
    sense(fields.true(w), fields.faults(w), fields.sensed_bodies(w))


@CompiledStage
def know_truth(address):
    """Take the truth for what is known, see `Truth`."""
    w = world_at(address)
    copy_truth(fields.sensed(w), fields.estimate(w))
    if w.deviation > 0.0:
        add_noise(fields.estimate(w), fields.noise(w), w.deviation)
    feel_tension(w)


@CompiledStage
def capture_motion(address):
    """Integrate the IMUs and fuse samples, see `MotionCapture`."""
    w = world_at(address)
    sensors = fields.sensors(w)
    ring = fields.ring(w)
    estimate = fields.estimate(w)
    noise = fields.noise(w)
    step_estimates(fields.sensed(w), estimate, noise, sensors, ring, w.tick, w.first)
    if w.first == 0:
        feel_tension(w)


@CompiledStage
def measure_tensions(address):
    """Show the tensions of load cells in the place of the estimated ones, see `LoadCells`."""
    w = world_at(address)
    read_load_cells(
        fields.cells(w),
        fields.force(w),
        fields.cell_noise(w),
        w.tick,
        fields.shown(w),
        fields.tension(w),
    )


@CompiledStage
def watch_losses(address):
    """Look for drones that do not carry any more, if it is time to, see `Contingency`."""
    w = world_at(address)
    if w.watch == UNWATCHED or (w.tick + 1) % LOOK_EVERY != 0:
        return
    losses = fields.losses(w)
    tension = fields.tension(w)
    setpoint = fields.wanted(w)
    time = (w.tick + 1) * w.period
    lifting = w.watch == TAKEN_UP
    if look_for_losses(losses, fields.estimate(w), tension, setpoint, time, lifting):
        w.due = min(w.due, w.tick + 1)


@CompiledStage
def end_period(address):
    """Count the period."""
    w = world_at(address)
    w.tick += 1
