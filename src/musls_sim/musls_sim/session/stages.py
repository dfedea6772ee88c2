"""The table of stages: all that is done in a control period, in its order.

A stage is there if a flight needs it. Compiled code does it where there is such for what this
flight has, and Python where not: see `runs`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

from musls_description.system.slung_system import SlungLoadSystem
from musls_sim.power import Power
from musls_sim.scenario.aerodynamics import Aerodynamics
from musls_sim.scenario.scenario import Scenario
from musls_sim.scenario.sensors import TruthSpec
from musls_sim.sensors.estimation import MotionCapture, Truth
from musls_sim.session.compiled_stages import world as compiled
from musls_sim.session.driving import RigDriver
from musls_sim.session.loop import NEVER, Parts, Stage, never

Session = Any
"""A `session.Session`, whose module imports this one."""

Due = Callable[[int], float]

ENERGY_PERIODS = 250
"""Control periods between two looks at the energy balance."""


@dataclass(frozen=True)
class Entry:
    """A row of the table.

    Attributes:
        what: It does, for the documentation.
        where: It stands, likewise.
        make: The stage of a session; None where it needs none.
        asks: Key and value of a scenario that ask for it in Python where many worlds at once, which
            have no Python, cannot do without; "" for none.
    """

    name: str
    what: str
    where: str
    make: Callable[[Session], Stage | None]
    asks: Callable[[Scenario], str] = lambda scenario: ""


def every(periods: int) -> Due:
    """In each period whose number is a multiple."""
    return lambda tick: -(-tick // periods) * periods


# ---------- Stages before the plant


def _reference(session: Session) -> Stage:
    guidance, period_s = session.guidance, session.plant.period_s
    return Stage("reference", guidance.step, lambda tick: _tick_of(guidance.next_s, period_s))


def _events(session: Session) -> Stage:
    events, period_s = session.events, session.plant.period_s
    return Stage("events", events.step, lambda tick: _tick_of(events.next_s, period_s))


def _tick_of(time_s: float, period_s: float) -> float:
    return time_s if time_s == NEVER else ceil(time_s / period_s)


def _links(session: Session) -> Stage:
    links = session.links
    return Stage("links", links.step, lambda tick: tick if links.any_lost else NEVER)


def _late_setpoints(session: Session) -> Stage | None:
    link = session.setpoint_link
    return None if link is None else Stage("late_setpoints", link.step, link.next_arrival)


def _contingency(session: Session) -> Stage | None:
    contingency = session.contingency
    if contingency is None:
        return None
    return Stage("contingency", contingency.step, contingency.next_look)


def _separation(session: Session) -> Stage | None:
    return None if session.separation is None else Stage("separation")


def _observers(session: Session) -> Stage:
    observers = session.observers

    def due(tick: int) -> float:
        return min((observer.next_look(tick) for observer in observers), default=NEVER)

    return Stage("observers", session.look, due)


def _control(session: Session) -> Stage:
    control = session.control
    return Stage("control", control.step, choose=control.choose)


def _announcements(session: Session) -> Stage | None:
    control = session.control
    if not control.announces:
        return None
    return Stage("announcements", control.announce, control.next_announcement)


def _command_latency(session: Session) -> Stage | None:
    if session.latency is None:
        return None
    return Stage("command_latency", compiled=(compiled.delay_commands,))


def _wind(session: Session) -> Stage | None:
    if session.components.wind.steady:
        return None
    return Stage("wind", compiled=(compiled.let_wind_blow,))


def _rig(session: Session) -> Stage | None:
    plant, inputs = session.plant, session.inputs
    rig = RigDriver(session.scenario.rig, plant.system, inputs, plant.state, plant.period_s)
    if rig.idle:
        return None
    rig.step(0)
    plant.start_driving(inputs)
    return Stage("rig", rig.step)


def _motors(session: Session) -> Stage | None:
    return None if session.power is None else Stage("motors", session.run_motors)


def _tilted_thrust(session: Session) -> Stage | None:
    tilted, state, inputs = session.tilted, session.plant.state, session.inputs
    if tilted is None:
        return None
    return Stage("tilted_thrust", lambda tick: tilted.step(state, inputs))


def _aerodynamics(session: Session) -> Stage | None:
    models = session.scenario.aerodynamics
    if not models:
        return None
    return Stage("aerodynamics", Aerodynamics(models, session.air, session.inputs).step)


# ---------- The plant and what comes after it


def _plant(session: Session) -> Stage:
    plant, inputs, parts = session.plant, session.inputs, dict[int, Parts]()

    def choose(tick: int) -> Parts:
        step = plant.compiled_step if inputs.motion is None else None
        if step is None:
            return ()
        return parts.setdefault(id(step), (compiled.tell_motors, step, compiled.note_peaks))

    return Stage("plant", session.move, choose=choose)


COMPILED_PLANTS = ("massless", "rigid_rods", "rigid_links", "elastic")
"""Cable models with a compiled step."""


def _energy(session: Session) -> Stage | None:
    if session.plant.audit is None:
        return None
    return Stage("energy", session.watch_energy, every(ENERGY_PERIODS))


def _collisions(session: Session) -> Stage | None:
    watch = session.collisions
    if watch is None:
        return None
    if watch.obstacles or session.plant.state.reels:
        return Stage("collisions", session.watch_collisions)
    look = (compiled.look_for_contacts,)
    return Stage("collisions", session.watch_collisions, compiled=look, tells=True)


def _controller_events(session: Session) -> Stage | None:
    if session.flying is None:
        return None
    return Stage("controller_events", session.note_controller_events, session.control.next_events)


def _estimation(session: Session) -> Stage:
    estimator = session.components.estimator
    parts: Parts = ()
    if session.components.sensed is None:
        if type(estimator) is MotionCapture:
            parts = (compiled.capture_motion,)
        elif type(estimator) is Truth and estimator.noise == 0.0:
            parts = (compiled.know_truth,)
    return Stage("estimation", None if parts else session.estimate_state, compiled=parts)


def _load_estimation(session: Session) -> Stage | None:
    estimation = session.components.load_estimation
    if estimation is None:
        return None
    estimation.check(session.flying)
    return Stage("load_estimation", estimation.step)


def _load_estimator_doubt(session: Session) -> Stage | None:
    if session.components.load_estimation is None:
        return None
    return Stage("load_estimator_doubt", session.doubt_estimator)


def _sensors(session: Session) -> Stage | None:
    if not len(session.load_cells.cables) and not session.scenario.sensors:
        return None
    return Stage("sensors", session.sensors.step)


# ---------- What asks for Python, which many worlds at once have not


def _mission_asks(scenario: Scenario) -> str:
    return "mission.kind = delivery" if scenario.mission.kind == "delivery" else ""


def _events_ask(scenario: Scenario) -> str:
    for event in scenario.events:
        when = event.when
        if not event.changes_numbers_only or when.condition is not None or when.event is not None:
            return (
                f"events = {event.kind} (rotors, motion capture, pokes and gusts, at a time or in "
                "a stage, do not)"
            )
    return ""


def _late_setpoints_ask(scenario: Scenario) -> str:
    faults = scenario.imperfections
    for name in ("setpoint_delay_s", "setpoint_jitter_s"):
        if late_s := getattr(faults, name):
            return f"imperfections.{name} = {late_s:g}"
    return ""


def _control_asks(scenario: Scenario) -> str:
    if scenario.autopilot.kind != "builtin":
        return f"autopilot.kind = {scenario.autopilot.kind}"
    if scenario.autopilot.tracker != "geometric":
        return f"autopilot.tracker = {scenario.autopilot.tracker.value}"
    return ""


def _plant_asks(scenario: Scenario) -> str:
    physics = scenario.physics
    if scenario.cable_model not in COMPILED_PLANTS:
        return f"cable_model = {scenario.cable_model}"
    if physics.engine != "embedded":
        return f"physics.engine = {physics.engine}"
    if physics.exact_friction:
        return "physics.exact_friction = true"
    if any(cable.elastic.break_force_n for cable in scenario.system.cables):
        return "system.cables.elastic.break_force_n"
    if not isinstance(scenario.system, SlungLoadSystem) or not scenario.system.drones:
        return f"system = {scenario.system.name} (drones with a load do not)"
    return ""


def _estimation_asks(scenario: Scenario) -> str:
    faults = scenario.imperfections
    if any(any(drone.level_tilt_rad) or any(drone.mocap_offset_m) for drone in faults.drones):
        return "imperfections.drones.level_tilt_rad, mocap_offset_m"
    estimation = scenario.estimation
    if isinstance(estimation, TruthSpec) and estimation.noise > 0.0:
        return f"estimation.noise = {estimation.noise:g}"
    return ""


def _sensors_ask(scenario: Scenario) -> str:
    if scenario.sensors:
        return "sensors"
    cells = any(cable.load_cell is not None for cable in scenario.system.cables)
    return "system.cables.load_cell" if cells else ""


def _motors_ask(scenario: Scenario) -> str:
    return "system.drones.propulsion" if Power.needed(scenario.system) else ""


def _tilted_thrust_asks(scenario: Scenario) -> str:
    tilted = any(any(drone.thrust_tilt_rad) for drone in scenario.imperfections.drones)
    return "imperfections.drones.thrust_tilt_rad" if tilted else ""


TABLE: tuple[Entry, ...] = (
    Entry(
        "reference",
        "hands out the mission's set-points, disarms after landing, says when the flight is over",
        "session/guidance.py",
        _reference,
        _mission_asks,
    ),
    Entry(
        "events",
        "lets a motor fail, pushes a body, ...",
        "session/event_queue.py, scenario/events.py",
        _events,
        _events_ask,
    ),
    Entry("links", "lost links", "session/imperfections.py", _links),
    Entry(
        "contingency",
        "lost drones",
        "session/contingency.py",
        _contingency,
        lambda scenario: "contingency" if scenario.contingency is not None else "",
    ),
    Entry("separation", "drones too close to each other", "session/collisions.py", _separation),
    Entry(
        "observers",
        "look at the state and the set-points that hold from now on",
        "session/loop.py",
        _observers,
    ),
    Entry(
        "late_setpoints",
        "set-points on their way to the autopilots",
        "session/imperfections.py",
        _late_setpoints,
        _late_setpoints_ask,
    ),
    Entry(
        "rows",
        "keeps the state for recorders and for the watch over the drones' distances",
        "session/world.py",
        lambda session: Stage("rows", compiled=(compiled.record,)),
    ),
    Entry(
        "control",
        "controller and autopilot, down to rotor speeds",
        "session/control.py",
        _control,
        _control_asks,
    ),
    Entry(
        "announcements",
        "tells observers what a compiled controller asks of the autopilots",
        "session/control.py",
        _announcements,
    ),
    Entry(
        "command_latency",
        "motor commands that come late",
        "session/imperfections.py",
        _command_latency,
    ),
    Entry("wind", "gusts", "scenario/physics.py", _wind),
    Entry(
        "rig",
        "moves anchors and winches",
        "session/driving.py",
        _rig,
        lambda scenario: "rig" if scenario.rig.anchors or scenario.rig.winches else "",
    ),
    Entry("motors", "batteries and rotors", "power.py", _motors, _motors_ask),
    Entry(
        "tilted_thrust",
        "rotors that are not upright",
        "session/imperfections.py",
        _tilted_thrust,
        _tilted_thrust_asks,
    ),
    Entry(
        "aerodynamics",
        "downwash, ground effect and models of one's own, as forces of the period",
        "scenario/aerodynamics.py",
        _aerodynamics,
        lambda scenario: "aerodynamics" if scenario.aerodynamics else "",
    ),
    Entry("plant", "one control period of physics", "plants/", _plant, _plant_asks),
    Entry(
        "cable_events",
        "notes what happened to cables by itself",
        "session/session.py",
        lambda session: Stage("cable_events", session.note_cable_events, never, tells=True),
    ),
    Entry(
        "energy",
        "notes when the integration makes energy from nothing",
        "session/session.py",
        _energy,
    ),
    Entry("collisions", "notes what hits what", "session/collisions.py", _collisions),
    Entry(
        "controller_events",
        "notes what a controller reports",
        "session/session.py",
        _controller_events,
    ),
    Entry(
        "estimation",
        "what motion capture and IMU make of the state",
        "sensors/",
        _estimation,
        _estimation_asks,
    ),
    Entry(
        "load_estimation",
        "the load from the drones' motion alone",
        "sensors/load.py, musls_control/estimators/",
        _load_estimation,
        lambda scenario: "estimation.load" if scenario.estimation.load.kind != "mocap" else "",
    ),
    Entry(
        "load_estimator_doubt",
        "in the last period: whether that estimate can be trusted",
        "session/session.py",
        _load_estimator_doubt,
    ),
    Entry(
        "sensors",
        "load cells and sensors of one's own",
        "sensors/estimation.py",
        _sensors,
        _sensors_ask,
    ),
)
"""All stages, in their order."""


def stages_of(session: Session) -> list[Stage]:
    """The stages that a session needs, in their order."""
    made = (entry.make(session) for entry in TABLE)
    return [stage for stage in made if stage is not None]


def asks_for_python(scenario: Scenario) -> str | None:
    """The first stage that a scenario needs in Python, and the key that asks for it; None: none."""
    for entry in TABLE:
        if key := entry.asks(scenario):
            return f"{key}: needs the stage '{entry.name}' in Python"
    return None
