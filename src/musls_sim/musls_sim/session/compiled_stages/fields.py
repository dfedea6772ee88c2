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
from musls_description.numerics.layout import Field, Layout, Number
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

REFERENCE = np.dtype([("derivatives", float, (5, 4)), ("tilt", float, (5, 2))])
"""The load's reference in a period: derivatives 0 to 4 of x, y, z, yaw and of roll, pitch."""

COPY = np.dtype([("source", np.int64), ("rows", np.int64), ("words", np.int64)])
"""What is recorded: where it is, and where the first row of its copies is, in bytes from here."""

NUMBERS = [
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


def _recorded(name: str, shape: tuple[str | int, ...], meaning: str, owner: str) -> Field:
    return Field(name, shape, float, meaning, owner, recorded=True)


def _alone(name: str, shape: tuple[str | int, ...], kind: Any, meaning: str, owner: str) -> Field:
    return Field(name, shape, kind, meaning, owner, group=ALONE)


def _shared(name: str, shape: tuple[str | int, ...], kind: Any, meaning: str, owner: str) -> Field:
    return Field(name, shape, kind, meaning, owner, group="shared")


BODIES = ("n_bodies", 16)
DRONES_ROWS, ROTORS = ("n_drones", 12), ("n_drones", "n_rotors")

TRUTH = [
    _recorded("motion", BODIES, "true motion, see `BodyMotion.data`", "plant.state.motion"),
    Field("true", ("n_bodies",), MOTION, "the same as records", "plant.state.records"),
    _recorded("speed", ROTORS, "speeds of the rotors", "plant.state.rotor_speed_rad_s"),
    _recorded(
        "force", ("n_cables", 2, 3), "forces at the ends of cables", "plant.state.cable_force_n"
    ),
    Field(
        "peak", ("n_cables",), float, "largest tensions in the period",
        "plant.state.tension_peak_n", apart="peak_apart",
    ),
    _recorded("anchors", ("n_anchors", 16), "motion of anchors", "plant.state.anchor_motion"),
    _recorded("held", ("n_anchors", 6), "what holds them", "plant.state.anchor_wrench_n"),
    _recorded(
        "free_length", ("n_lengths",), "lengths of cables off winches", "plant.state.free_length_m"
    ),
    Field("largest", ("n_cables",), float, "largest tensions so far", "tension_peaks.largest_n"),
    _recorded(
        "recent", ("n_cables",), "largest since they began anew", "tension_peaks.recent_n"
    ),
]  # fmt: skip

GUIDANCE = [
    _shared("table", ("rows", "n_drones", 12), float, "set-points of the plan", ""),
    _shared("waits", ("n_waits",), WAIT, "rows of the plan that wait", ""),
    _shared("plan_rows", ("rows",), ROW, "what else is known of its rows", ""),
    _shared(
        "reference", ("reference_rows",), REFERENCE, "of the load, a row a period",
        "control.reference",
    ),
    Field("wanted", DRONES_ROWS, float, "set-points of guidance", "guidance.setpoint.data"),
    Field("sent", DRONES_ROWS, float, "those that are handed out", "control.sent.data"),
    Field("setpoint", DRONES_ROWS, float, "those of the autopilots", "control.heard.data"),
    Field("links", ("n_drones",), LINK, "by which they come late", "setpoint_link.links"),
    Field(
        "under_way", ("way_size", "n_drones"), UNDER_WAY, "set-points under way",
        "setpoint_link.under_way",
    ),
    Field("play", (), PLAY, "where the world is in its plan", "guidance.arrays.play"),
    Field("down", (), DOWN, "what was looked at on the way down", "guidance.arrays.down"),
    Field(
        "found", ("n_drones", FOUND_COLUMNS), float, "what was found there",
        "guidance.arrays.found",
    ),
    Field("ending", (), ENDING, "what comes after the plan", "guidance.arrays.ending"),
    _alone("played_rows", (KEPT, 2), int, "periods and rows of the plan that began", ""),
    Field("losses", ("n_drones",), LOSS, "drones that do not carry", "contingency.losses"),
]  # fmt: skip

KNOWN = [
    Field(
        "sensed", BODIES, float, "motion as sensors measure it",
        "components.sensed.state.motion or plant.state.motion",
    ),
    Field(
        "sensed_bodies", ("n_bodies",), MOTION, "the same as records",
        "components.sensed.state.records",
    ),
    Field("faults", ("n_drones",), FAULT, "faults of these sensors", "components.sensed.faults"),
    Field(
        "sensors", ("n_bodies",), SENSORS, "motion capture and IMUs", "components.estimator.sensors"
    ),
    Field(
        "ring", ("ring_size", "n_bodies"), PREDICTION, "samples under way",
        "components.estimator.ring",
    ),
    Field("estimate", BODIES, float, "estimated motion", "components.estimator.estimate.data"),
    Field(
        "bodies", ("n_bodies",), MOTION, "the same as records",
        "components.estimator.estimate.records",
    ),
    Field(
        "tension", ("n_cables", 2), float, "estimated tensions",
        "components.estimator.estimate.tension_n",
    ),
    Field("cells", ("n_cells",), LOAD_CELL, "load cells", "load_cells.records"),
    _recorded("shown", ("n_cells", 2), "tensions that they show", "load_cells.measured_n"),
]  # fmt: skip

CONTROL = [
    Field(
        "constants", ("n_drones",), PARAMETER_DTYPE, "autopilots",
        "components.autopilot.constants",
    ),
    Field("state", ("n_drones",), STATE_DTYPE, "their state", "components.autopilot.state"),
    Field(
        "mixers", (*ROTORS, MIXER_COLUMNS), float, "their allocation",
        "components.autopilot.mixers",
    ),
    Field("throttle", ("n_drones", 2, "n_rotors"), float, "throttle and speeds", "command.data"),
    Field(
        "told", ROTORS, float, "speeds that the motors are told", "inputs.rotor_command_rad_s",
        apart="told_apart",
    ),
    Field("late", ROTORS, float, "commands that come late", "latency.delayed_rad_s"),
    Field("delayed", ("latency", *ROTORS), float, "commands under way", "latency.ring"),
    Field(
        "asked", ("n_drones", "n_columns"), float, "commands at the world's level, see "
        "`ControlLevel`", "control.arrays.asked",
    ),
    _alone(
        "asked_rows", ("n_announced", "n_drones", 3), float, "accelerations to be announced", ""
    ),
    Field("law", (), None, "record of a controller", "control.arrays.law"),
    Field(
        "law_drones", ("n_drones",), ROTORTM_DRONE, "its drones", "control.arrays.law_drones"
    ),
    Field(
        "law_shares", ("n_law_rows", "n_law_columns"), float, "its shares of a wrench",
        "control.arrays.law_shares",
    ),
    Field("thrust", ("n_drones",), THRUST, "forces for autopilots", "control.arrays.thrust"),
    Field("attitude", ("n_drones",), DRONE, "tilt of the drones", "control.arrays.attitude"),
    Field("measured", ("n_drones",), SENSED, "of `Incremental`", "control.arrays.measured"),
    Field(
        "rotor_wrench", ("n_drones", 4, "n_rotors"), float, "wrenches of its rotors",
        "control.arrays.rotor_wrench",
    ),
    Field("rates", ("n_drones",), RATE, "rates of the drones", "control.arrays.rates"),
    Field("gains", (2, 3), float, "gains of their tilt", "control.arrays.gains"),
    Field("shares", ROTORS, ROTOR, "shares of rotors", "control.arrays.shares"),
]  # fmt: skip

ACTING = [
    Field("motors", ("n_drones",), float, "share of their speed at which motors turn"),
    Field("drives", ROTORS, MOTOR, "motors", "power.rotors"),
    Field("batteries", ("n_drones",), BATTERY, "batteries", "power.batteries"),
    Field("reaction", ("n_drones", 3), float, "moments of propellers", "power.reaction"),
    Field("tilted_rotors", ROTORS, AIR_ROTOR, "rotors that are not upright", "tilted.rotors"),
    Field("tilt_health", ROTORS, float, "what is left of their thrust", "tilted.health"),
    Field("tilt_shift", ("n_drones", 3), float, "their axes minus upright ones", "tilted.shift"),
    Field("air_rotors", ROTORS, AIR_ROTOR, "rotors in air", "aerodynamics.arrays.air_rotors"),
    Field("downwash", (), DOWNWASH, "law of wakes", "aerodynamics.arrays.downwash"),
    Field("wakes", ROTORS, WAKE, "wakes of rotors", "aerodynamics.arrays.wakes"),
    Field("wake_cells", ("n_met",), CELL, "what they meet", "aerodynamics.arrays.wake_cells"),
    Field("near_ground", ("n_drones",), NEAR_GROUND, "rotors", "aerodynamics.arrays.near_ground"),
    Field("mean_wind", (3,), float, "constant part of the wind", "components.wind.mean_enu_m_s"),
    Field("gust", (3,), float, "present gust", "components.wind.gust_enu_m_s"),
    Field("winch_taken", ("n_winches",), int, "see `PlantInputs`", "inputs.winch_taken"),
    Field("winch_ramp", ("n_winches", 2), float, "likewise", "inputs.winch_ramp"),
    Field("targets", ("n_targets",), TARGET, "what moves anchors and winches", "driver.targets"),
    _shared("rig_numbers", ("rig_size",), float, "their numbers over time", "driver.numbers"),
]

CHANCE = [
    Field("streams", (len(STREAMS), 4), np.uint64, "generators of noise, see `STREAMS`"),
    Field("generator", (7,), int, "functions that draw from them, see `noise`"),
    Field("gust_noise", (3,), float, "numbers of this period for gusts"),
    Field("noise", ("n_bodies", 13), float, "for motion capture and IMUs, see `NOISE`"),
    Field("cell_noise", ("n_cells", 2), float, "for load cells"),
    Field("jitter", ("n_drones",), float, "for set-points that come late"),
]

WATCHED = [
    _alone("solids", ("n_solids",), OWN, "parts of bodies", "collisions.arrays.solids"),
    _alone("first_solid", ("n_firsts",), int, "first of each", "collisions.arrays.first_solid"),
    _alone("reach", ("n_bodies",), float, "radius of each", "collisions.arrays.reach"),
    _alone(
        "contact_speed", ("n_bodies", "n_bodies"), float, "speeds at which they touch",
        "collisions.arrays.contact_speed",
    ),
    _alone("fastened", ("n_fastened",), CABLE, "cables between them", "collisions.arrays.fastened"),
    _alone("cable_length", ("n_cables",), float, "lengths", "collisions.arrays.cable_length"),
    _alone("near", ("n_fastened", "n_bodies"), np.bool_, "near rotors", "collisions.arrays.near"),
    _alone("obstacles", ("obstacle_solids",), SOLID, "obstacles", "collisions.arrays.obstacles"),
    _alone("closest", ("n_obstacles",), CLOSEST, "how close", "collisions.arrays.closest"),
    _alone(
        "touching", ("n_bodies", "n_obstacles"), TOUCHING, "what touches which obstacle",
        "collisions.arrays.touching",
    ),
]  # fmt: skip

OWN_FIELDS = [Field("own", ("n_own",), float, "numbers of your own compiled stages", "own")]

RECORDED = [
    _alone("copies", ("n_copies",), COPY, "what is copied into rows", ""),
    _alone("shapes", (), COPY, "`Plant.shaping`, of which cables' shapes are made", ""),
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
