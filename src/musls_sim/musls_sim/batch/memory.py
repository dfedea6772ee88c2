"""Memory of a world: the arrays and numbers of a session; which sessions can be a world."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_control.controllers import ControlLevel
from musls_control.px4_cascade.cascade import Px4Cascade
from musls_description.config.errors import ConfigError
from musls_description.numerics.records import pack
from musls_sim.batch.world import (
    AUTOPILOT_FORCES,
    CHANGE,
    FORCES,
    IDEAL_THRUST_MOMENT,
    ROTOR_SPEEDS,
    SETPOINTS,
    THRUST_MOMENT,
)
from musls_sim.scenario.scenario import Scenario
from musls_sim.sensors.estimation import MotionCapture, Truth
from musls_sim.session.guidance import MissionGuidance
from musls_sim.session.session import Session

KERNELS = {
    "massless": "massless",
    "rigid_rods": "massless",
    "rigid_links": "rigid_links",
    "elastic": "elastic",
}
"""Module of this package that advances worlds of a cable model."""

LEVELS = {
    ControlLevel.DRONE_SETPOINTS: SETPOINTS,
    ControlLevel.FORCES: FORCES,
    ControlLevel.THRUST_MOMENT: THRUST_MOMENT,
    ControlLevel.ROTOR_SPEEDS: ROTOR_SPEEDS,
}

ALL_LEVELS = LEVELS | {
    ControlLevel.AUTOPILOT_FORCES: AUTOPILOT_FORCES,
    ControlLevel.IDEAL_THRUST_MOMENT: IDEAL_THRUST_MOMENT,
}

CONTROLLERS = ("formation", "payload", "rotortm")
"""Kinds that fly in compiled code."""

PIECE = 50
"""Control periods of one call into compiled code, for which noise is drawn and Ctrl-C waits."""

STEPS = {
    "contingency": "contingency",
    "rig": "rig",
    "motors": "system.drones.propulsion",
    "tilted_thrust": "imperfections.drones.thrust_tilt_rad",
    "aerodynamics": "aerodynamics",
    "load_estimation": "estimation.load",
    "sensors": "sensors, system.cables.load_cell",
}
"""Steps of a session that compiled code does not have, and the keys that ask for them."""


def kernel_of(cable_model: str) -> Callable[[int, int, int, int], None]:
    """The function that advances worlds, see `massless.advance_worlds`."""
    kernel: Callable[[int, int, int, int], None] = import_module(
        f"musls_sim.batch.{KERNELS[cable_model]}"
    ).advance_worlds
    return kernel


def motion_capture_of(session: Session) -> MotionCapture | None:
    """Motion capture of a session, None where it knows the truth."""
    estimator = session.components.estimator
    return estimator if isinstance(estimator, MotionCapture) else None


def arrays_of(session: Session, level: int) -> dict[str, NDArray[Any]]:
    """Arrays of a world by their names in `WORLD`, commanded at a level."""
    components, wind, latency = session.components, session.components.wind, session.latency
    cascade, mocap = components.autopilot, motion_capture_of(session)
    assert isinstance(cascade, Px4Cascade)
    n, rotors = session.scenario.system.n_drones, session.scenario.system.n_rotors
    control, steps, nothing = session.control, session.plant.step_arrays, np.zeros(0)
    return {
        "thrust": control.ask.thrust if level == AUTOPILOT_FORCES else nothing,
        "attitude": control.attitude.drones if level == FORCES else nothing,
        "gains": control.attitude.gains if level == FORCES else nothing,
        "shares": control.mixer.rotors if level in (FORCES, THRUST_MOMENT) else nothing,
        "estimate": components.estimator.estimate.data,
        "constants": cascade.constants,
        "state": cascade.state,
        "mixers": cascade.mixers,
        "throttle": session.command.data,
        "delayed": nothing if latency is None else latency.ring,
        "asked": np.zeros((n, max(rotors, 7))),
        "motors": np.ones(n),
        "wind": wind.velocity_enu_m_s,
        "mean_wind": wind.mean_enu_m_s,
        "gust": wind.gust_enu_m_s,
        "wrench_body": session.inputs.wrench_body,
        "wrench_enu": session.inputs.wrench_enu,
        "largest": session.max_tension_n,
        "sensors": nothing if mocap is None else mocap.sensors,
        "ring": nothing if mocap is None else mocap.ring,
        "gusts_ahead": np.zeros((0 if wind.steady else PIECE, 3)),
        "noise_ahead": np.ones((0 if mocap is None else PIECE, 1 + n, 13)),
        "levels": steps.get("levels", nothing),
        "limits": steps.get("limits", nothing),
    }


def numbers_of(session: Session) -> dict[str, float]:
    """Numbers of a world that do not change in a flight, by their names in `WORLD`."""
    system, wind, latency = session.scenario.system, session.components.wind, session.latency
    mocap = motion_capture_of(session)
    return {
        "period": session.plant.period_s,
        "n_drones": system.n_drones,
        "n_rotors": system.n_rotors,
        "latency": 0 if latency is None else len(latency.ring),
        "gusty": not wind.steady,
        "keep": wind.keep,
        "first": -1 if mocap is None else mocap.first,
        "ring_size": 0 if mocap is None else len(mocap.ring),
        "substeps": session.plant.substeps,
    }


def changes_of(
    session: Session, arrays: dict[str, NDArray[Any]], mission: bool
) -> NDArray[np.void]:
    """Changes of the arrays by the events of a flight, rows of `CHANGE`; places from their start.

    The events happen here one after another, at their times and without a flight between them:
    what they write depends on numbers that no flight changes. The arrays are then those of the end.
    """
    if not session.scenario.events:
        return np.zeros(0, CHANGE)
    guidance, events = session.guidance, session.events
    assert isinstance(guidance, MissionGuidance)
    rows, tick, end_s = [], 0, guidance.planned_s if mission else 0.0
    while True:
        time_s = tick * session.plant.period_s
        if tick == 0 or time_s < end_s:
            guidance.step(tick)
        before = pack(arrays)[0].view(np.int64)
        events.step(tick)
        after = pack(arrays)[0].view(np.int64)
        rows += [(tick, 8 * word, after[word]) for word in np.flatnonzero(after != before)]
        next_s = min(events.next_s, guidance.next_s if time_s < end_s else np.inf)
        if np.isinf(next_s):
            return np.array(rows, CHANGE)
        tick = max(tick + 1, ceil(next_s / session.plant.period_s))


# ---------- What has no compiled code


def refuse(scenario: Scenario, key: str, value: object, allowed: str) -> None:
    """Refuse a scenario for a key that must be something else."""
    raise ConfigError(f"a batch of {scenario.name}: {key} = {value}: must be {allowed}")


def check_scenario(scenario: Scenario) -> None:
    """Refuse what shows before anything is built."""
    faults, physics = scenario.imperfections, scenario.physics
    if scenario.cable_model not in KERNELS:
        refuse(scenario, "cable_model", scenario.cable_model, ", ".join(KERNELS))
    if physics.engine != "embedded":
        refuse(scenario, "physics.engine", physics.engine, "embedded")
    if physics.exact_friction:
        refuse(scenario, "physics.exact_friction", "true", "false")
    if scenario.autopilot.kind != "builtin":
        refuse(scenario, "autopilot.kind", scenario.autopilot.kind, "builtin")
    if scenario.autopilot.tracker != "geometric":
        refuse(scenario, "autopilot.tracker", scenario.autopilot.tracker.value, "geometric")
    if scenario.mission.kind == "delivery":
        refuse(scenario, "mission.kind", "delivery", "a flight, not a delivery")
    if faults.setpoint_delay_s or faults.setpoint_jitter_s:
        late = max(faults.setpoint_delay_s, faults.setpoint_jitter_s)
        refuse(scenario, "imperfections.setpoint_delay_s, setpoint_jitter_s", late, "0")
    if any(cable.elastic.break_force_n for cable in scenario.system.cables):
        key = "system.cables.elastic.break_force_n"
        refuse(scenario, key, "a force", "left out: nothing may break")


def check_events(scenario: Scenario) -> None:
    """Refuse events that do more than change numbers at times that are known before the flight."""
    for event in scenario.events:
        when = event.when
        if not event.changes_numbers_only or when.condition is not None or when.event is not None:
            allowed = "rotors, motion capture, pokes and gusts, at a time or in a stage"
            refuse(scenario, "events", event.kind, allowed)


def check_session(session: Session) -> None:
    """Refuse what shows only when all is built."""
    scenario, components = session.scenario, session.components
    staged = {event.when.stage is not None for event in scenario.events}
    if len(components.plan.waits) and len(staged) > 1:
        allowed = "all by stages or all by times: how long the plan waits shows in flight"
        refuse(scenario, "events.when", "stages and times", allowed)
    for step, key in STEPS.items():
        if step in session.step_names:
            raise ConfigError(f"a batch of {scenario.name}: {key}: must be left out")
    if components.sensed is not None:
        raise ConfigError(
            f"a batch of {scenario.name}: imperfections.drones.level_tilt_rad, mocap_offset_m: "
            "must be 0"
        )
    if isinstance(components.estimator, Truth) and components.estimator.noise > 0.0:
        refuse(scenario, "estimation.noise", f"{components.estimator.noise:g}", "0")
