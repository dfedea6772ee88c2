"""The fields of a world: all that compiled stages read and write, declared once.

`WORLD` is the record with which the memory of a world begins: its numbers, and how far from it its
arrays are. A stage opens an array as an attribute of this module: `fields.setpoint(w)`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from musls_control.chain import DRONE, RATE, ROTOR, SENSED, THRUST
from musls_control.controllers.rotortm import DRONE as ROTORTM_DRONE
from musls_control.estimate import MOTION
from musls_control.mission.contingency import LOSS
from musls_control.mission.rows import DOWN, ENDING, FOUND_COLUMNS, PLAY, ROW, WAIT
from musls_control.px4.allocation import MIXER_COLUMNS
from musls_control.px4.layout import PARAMETER_DTYPE, STATE_DTYPE
from musls_description.numerics.layout import TABLES, Field, Layout, Number, fields_of
from musls_description.system.contacts import CABLE, CLOSEST, OWN, TOUCHING
from musls_description.system.obstacles import SOLID
from musls_sim.imperfections import LINK, UNDER_WAY
from musls_sim.plants.driving import TARGET
from musls_sim.plants.interface import STEP_LAYOUT
from musls_sim.plants.rigid_body import ROTOR as AIR_ROTOR
from musls_sim.power import BATTERY
from musls_sim.power import ROTOR as MOTOR
from musls_sim.scenario.aerodynamics import CELL, DOWNWASH, NEAR_GROUND, WAKE
from musls_sim.sensors.estimation import FAULT, LOAD_CELL, PREDICTION, SENSORS

KEPT = 250
"""Control periods (1 s) of which what is recorded is kept before observers get it."""

ANNOUNCE_EVERY = 5
"""Control periods between two set-points of a controller that are announced: 50 Hz."""

STREAMS = GUSTS, DRONES, LUCK, LOAD, CELLS, JITTER = range(6)
"""Rows of a world's streams, each the state and the increment of a generator, low words first."""

REFERENCE = np.dtype([("derivatives", float, (5, 4)), ("tilt", float, (5, 2))], align=True)
"""The load's reference in a period: derivatives 0 to 4 of x, y, z, yaw and of roll, pitch."""

COPY = np.dtype([("source", np.int64), ("rows", np.int64), ("words", np.int64)], align=True)
"""What is recorded: where it is, and where the first row of its copies is, in bytes from here."""

NUMBERS = [
    Number(TABLES, int, "begin of the tables that worlds share, in bytes from here"),
    Number("tick", int, "control periods so far"),
    Number("due", int, "period before which Python has something to decide"),
    Number("watch", int, "whether losses are looked for in it, see `ROW`"),
    Number("finished", int, "whether the flight is over"),
    Number("touches", int, "whether bodies touched, or a cable was near a rotor, in the period"),
    Number("emptied", int, "whether a battery became empty then"),
    Number("on_ground", int, "drones that the autopilots find landed"),
    Number("landing", int, "whether their number has changed then"),
    Number("recorded", int, "rows since they were read"),
    Number("announced", int, "rows of accelerations, likewise"),
    Number("kept", int, "copies of what cables' shapes are made of, likewise"),
    Number("played", int, "rows of the plan since they were told"),
    Number("is_new", int, "whether a row of the plan has begun in this period"),
    Number("ended", int, "whether its last one is over"),
    Number("asked_in", int, "its last row in which Python was asked, -1 for none"),
    Number("lies", (float, 4), "set-point of the load when the drones land"),
    Number("carried_length", float, "length of the longest cable that a load is carried by [m]"),
    Number("lands", int, "whether the plan ends with a landing"),
    Number("steady", int, "whether there are no gusts", "components.wind.steady"),
    Number("keep", float, "share of a gust that is left after a period", "components.wind.keep"),
    Number("gust_scale", (float, 3), "deviation of what joins it", "components.wind.scale_m_s"),
    Number("gust_std", (float, 3), "deviation of gusts", "components.wind.std_m_s"),
    Number("first", int, "first body of motion capture, -1 for none", "components.estimator.first"),
    Number("deviation", float, "noise added to the truth", "components.estimator.noise"),
    Number("jitters", int, "whether each set-point takes another time", "setpoint_link.jitters"),
    Number("watched", int, "whether a run ends after a period of which there is much to tell"),
    Number("every", int, "periods between two rows that are recorded; 0 for none"),
    Number("keeps_every", int, "periods between two copies of `Plant.shaping`; 0 for none"),
    Number("reacts", int, "whether the spin of propellers turns the drones", "power.reacts"),
    Number("peak_periods", int, "periods of recent peaks", "tension_peaks.periods"),
]

ALONE = "alone"
"""Fields of flights alone: a batch neither records nor watches collisions."""

_world = fields_of("")
_alone = fields_of("", ALONE)
_shared = fields_of("", "shared")
_plant = fields_of("plant.state")
_peaks = fields_of("tension_peaks")
_guided = fields_of("guidance.arrays")
_estimator = fields_of("components.estimator")
_cascade = fields_of("components.autopilot")
_commanded = fields_of("control.arrays")
_power = fields_of("power")
_tilted = fields_of("tilted")
_air = fields_of("aerodynamics.arrays")
_wind = fields_of("components.wind")
_inputs = fields_of("inputs")
_sensed = fields_of("components.sensed.state")
_cells = fields_of("load_cells")
_rig = fields_of("driver", "shared")
_watch = fields_of("collisions.arrays", ALONE)

BODIES = ("n_bodies", 16)
ROTORS = ("n_drones", "n_rotors")
ROWS = ("n_drones", 12)
PLACES = "components.sensed.state.motion or plant.state.motion"

TRUTH = [
    _plant("motion", BODIES, float, "true motion, see `BodyMotion.data`", recorded=True),
    _plant("true", ("n_bodies",), MOTION, "the same as records", "records"),
    _plant("speed", ROTORS, float, "speeds of rotors", "rotor_speed_rad_s", recorded=True),
    _plant("force", ("n_cables", 2, 3), float, "of cables", "cable_force_n", recorded=True),
    _plant("peak", ("n_cables",), float, "tensions", "tension_peak_n", apart="peak_apart"),
    _plant("anchors", ("n_anchors", 16), float, "motion", "anchor_motion", recorded=True),
    _plant("held", ("n_anchors", 6), float, "forces on anchors", "anchor_wrench_n", recorded=True),
    _plant("free_length", ("n_lengths",), float, "of cables", "free_length_m", recorded=True),
    _peaks("largest", ("n_cables",), float, "largest tensions so far", "largest_n"),
    _peaks("recent", ("n_cables",), float, "since they began anew", "recent_n", recorded=True),
]

GUIDANCE = [
    _shared("table", ("rows", "n_drones", 12), float, "set-points of the plan"),
    _shared("waits", ("n_waits",), WAIT, "rows of the plan that wait"),
    _shared("plan_rows", ("rows",), ROW, "what else is known of its rows"),
    fields_of("control", "shared")("reference", ("reference_rows",), REFERENCE, "of the load"),
    Field("wanted", ROWS, float, "set-points of guidance", "guidance.setpoint.data"),
    Field("sent", ROWS, float, "those that are handed out", "control.sent.data"),
    Field("setpoint", ROWS, float, "those that the autopilots have", "control.heard.data"),
    Field("links", ("n_drones",), LINK, "by which they come late", "setpoint_link.links"),
    fields_of("setpoint_link")("under_way", ("way_size", "n_drones"), UNDER_WAY, "those under way"),
    _guided("play", (), PLAY, "where the world is in its plan"),
    _guided("down", (), DOWN, "what was looked at on the way down"),
    _guided("found", ("n_drones", FOUND_COLUMNS), float, "what was found there"),
    _guided("ending", (), ENDING, "what comes after the plan"),
    _alone("played_rows", (KEPT, 2), int, "periods and rows of the plan that began"),
    Field("losses", ("n_drones",), LOSS, "drones that do not carry", "contingency.losses"),
]

KNOWN = [
    Field("sensed", BODIES, float, "motion as sensors measure it", PLACES),
    _sensed("sensed_bodies", ("n_bodies",), MOTION, "as records", "records"),
    Field("faults", ("n_drones",), FAULT, "faults of these sensors", "components.sensed.faults"),
    _estimator("sensors", ("n_bodies",), SENSORS, "motion capture and IMUs"),
    _estimator("ring", ("ring_size", "n_bodies"), PREDICTION, "samples under way"),
    _estimator("estimate", BODIES, float, "estimated motion", "estimate.data"),
    _estimator("bodies", ("n_bodies",), MOTION, "the same as records", "estimate.records"),
    _estimator("tension", ("n_cables", 2), float, "estimated tensions", "estimate.tension_n"),
    _cells("cells", ("n_cells",), LOAD_CELL, "load cells", "records"),
    _cells("shown", ("n_cells", 2), float, "tensions", "measured_n", recorded=True),
]

CONTROL = [
    _cascade("constants", ("n_drones",), PARAMETER_DTYPE, "parameters of autopilots"),
    _cascade("state", ("n_drones",), STATE_DTYPE, "their state"),
    _cascade("mixers", (*ROTORS, MIXER_COLUMNS), float, "their allocation"),
    Field("throttle", ("n_drones", 2, "n_rotors"), float, "throttle and speeds", "command.data"),
    _inputs("told", ROTORS, float, "for motors", "rotor_command_rad_s", apart="told_apart"),
    Field("late", ROTORS, float, "commands that come late", "latency.delayed_rad_s"),
    Field("delayed", ("latency", *ROTORS), float, "commands under way", "latency.ring"),
    _commanded("asked", ("n_drones", "n_columns"), float, "commands, see `ControlLevel`"),
    _alone("asked_rows", ("n_announced", "n_drones", 3), float, "accelerations to be announced"),
    _commanded("law", (), None, "record of a controller"),
    _commanded("law_drones", ("n_drones",), ROTORTM_DRONE, "its drones"),
    _commanded("law_shares", ("n_law_rows", "n_law_columns"), float, "its shares of a wrench"),
    _commanded("thrust", ("n_drones",), THRUST, "forces for autopilots"),
    _commanded("attitude", ("n_drones",), DRONE, "tilt of the drones"),
    _commanded("measured", ("n_drones",), SENSED, "forces and moments, see `Incremental`"),
    _commanded("rotor_wrench", ("n_drones", 4, "n_rotors"), float, "wrenches of their rotors"),
    _commanded("rates", ("n_drones",), RATE, "rates of the drones"),
    _commanded("gains", (2, 3), float, "gains of their tilt"),
    _commanded("shares", ROTORS, ROTOR, "shares of rotors"),
]

ACTING = [
    _world("motors", ("n_drones",), float, "share of their speed at which motors turn"),
    _power("drives", ROTORS, MOTOR, "motors", "rotors"),
    _power("batteries", ("n_drones",), BATTERY, "batteries"),
    _power("reaction", ("n_drones", 3), float, "moments of propellers"),
    _tilted("tilted_rotors", ROTORS, AIR_ROTOR, "rotors that are not upright", "rotors"),
    _tilted("tilt_health", ROTORS, float, "what is left of their thrust", "health"),
    _tilted("tilt_shift", ("n_drones", 3), float, "their axes minus upright ones", "shift"),
    _air("air_rotors", ROTORS, AIR_ROTOR, "rotors in air"),
    _air("downwash", (), DOWNWASH, "law of wakes"),
    _air("wakes", ROTORS, WAKE, "wakes of rotors"),
    _air("wake_cells", ("n_met",), CELL, "what they meet"),
    _air("near_ground", ("n_drones",), NEAR_GROUND, "rotors near the ground"),
    _air("grounds", ("n_grounds",), SOLID, "ground that is not flat"),
    _wind("mean_wind", (3,), float, "constant part of the wind", "mean_enu_m_s"),
    _wind("gust", (3,), float, "present gust", "gust_enu_m_s"),
    _inputs("winch_taken", ("n_winches",), int, "see `PlantInputs`"),
    _inputs("winch_ramp", ("n_winches", 2), float, "likewise"),
    Field("targets", ("n_targets",), TARGET, "what moves anchors and winches", "driver.targets"),
    _rig("rig_numbers", ("rig_size",), float, "numbers of these", "numbers"),
]

CHANCE = [
    _world("streams", (len(STREAMS), 4), np.uint64, "generators of noise, see `STREAMS`"),
    _world("generator", (7,), int, "functions that draw from them, see `noise`"),
    _world("gust_noise", (3,), float, "numbers of this period for gusts"),
    _world("noise", ("n_bodies", 13), float, "for motion capture and IMUs, see `NOISE`"),
    _world("cell_noise", ("n_cells", 2), float, "for load cells"),
    _world("jitter", ("n_drones",), float, "for set-points that come late"),
]

WATCHED = [
    _watch("solids", ("n_solids",), OWN, "parts of bodies"),
    _watch("first_solid", ("n_firsts",), int, "first of each body"),
    _watch("reach", ("n_bodies",), float, "radius of each body"),
    _watch("contact_speed", ("n_bodies", "n_bodies"), float, "speeds at which they touch"),
    _watch("fastened", ("n_fastened",), CABLE, "cables between them"),
    _watch("cable_length", ("n_cables",), float, "lengths of cables"),
    _watch("near", ("n_fastened", "n_bodies"), np.bool_, "whether a cable is near rotors"),
    _watch("obstacles", ("obstacle_solids",), SOLID, "parts of obstacles"),
    _watch("closest", ("n_obstacles",), CLOSEST, "how close something came"),
    _watch("touching", ("n_bodies", "n_obstacles"), TOUCHING, "what touches which obstacle"),
]

OWN_FIELDS = [Field("own", ("n_own",), float, "numbers of your own compiled stages", "own")]

RECORDED = [
    _alone("copies", ("n_copies",), COPY, "what is copied into rows"),
    _alone("shapes", (), COPY, "`Plant.shaping`, of which cables' shapes are made"),
]

LAYOUT = Layout(
    NUMBERS,
    [*TRUTH, *GUIDANCE, *KNOWN, *CONTROL, *ACTING, *CHANCE, *WATCHED, *OWN_FIELDS, *RECORDED],
    begin=STEP_LAYOUT,
)
"""Numbers and arrays of a world; owners are parts of a `Session`."""

WORLD = LAYOUT.record


globals().update({name: LAYOUT.opener(name) for name in LAYOUT.fields})


def __getattr__(name: str) -> Any:
    """Opener of a field, for compiled code: those that there are stand in this module already."""
    raise AttributeError(f"a world has no field {name}")
