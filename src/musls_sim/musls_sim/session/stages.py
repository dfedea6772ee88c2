"""The table of stages: all that is done in a control period, in its order.

A stage is there if a flight needs it. Compiled code does it where there is such for what this
flight has, and Python where not: see `runs`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from musls_sim.scenario.aerodynamics import CompiledModel
from musls_sim.scenario.events import AUTOMATIC_KINDS, CableCut
from musls_sim.scenario.scenario import Scenario
from musls_sim.sensors.estimation import MotionCapture
from musls_sim.session.compiled_stages import world as compiled
from musls_sim.session.compiled_stages.noise import draw_noise
from musls_sim.session.flight import ENERGY_PERIODS, STRENGTH_PERIODS, Flight
from musls_sim.session.loop import NEVER, Parts, Stage, Step, never

COMPILED_PLANTS = ("massless", "rigid_rods", "rigid_links", "elastic")
"""Cable models with a compiled step."""

NUMBERS_ONLY = CableCut.changes_numbers_only
"""Cable models in which a cable is cut or let go by changing numbers."""

COMPILED_CONTROLLERS = ("formation", "payload", "rotortm")
"""Kinds of controllers with a compiled law, or without any."""

Due = Callable[[int], float]
Asks = Callable[[Scenario], str]


@dataclass(frozen=True)
class Entry:
    """A row of the table: condition, and function that makes the stage.

    Attributes:
        what: Description for the documentation.
        where: Place of the code in the period, in the same form.
        make: Function that makes the stage of a flight; None where it needs none.
        asks: Key and value of a scenario that ask for it in Python where many worlds at once, which
            have no Python, cannot do without; "" for none.
    """

    name: str
    what: str
    where: str
    make: Callable[[Flight], Stage | None]
    asks: Asks


TABLE: list[Entry] = []
"""All stages, in their order, which is that of the functions below."""


def entry(
    what: str, where: str, asks: Asks = lambda scenario: ""
) -> Callable[[Callable[[Flight], Stage | None]], None]:
    """Add the decorated function, which makes the stage of its name, to the table."""

    def add(make: Callable[[Flight], Stage | None]) -> None:
        TABLE.append(Entry(make.__name__.strip("_"), what, where, make, asks))

    return add


def in_python(name: str, step: Step | None) -> Stage | None:
    """Stage in Python, None where there is nothing to do."""
    return None if step is None else Stage(name, step)


def last_of(periods: int) -> Due:
    """Schedule that is due in the last period of each group of `periods`."""

    def due(tick: int) -> float:
        return -(-(tick + 1) // periods) * periods - 1

    return due


def at_times(flight: Flight, next_s: Callable[[], float]) -> Due:
    """Schedule of a stage in Python: the first period at or after the next of some times."""
    period_s = flight.plant.period_s

    def due(tick: int) -> float:
        time_s = next_s()
        return time_s if time_s == NEVER else ceil(time_s / period_s)

    return due


# ---------- Stages before the plant


def _mission_asks(scenario: Scenario) -> str:
    if scenario.mission.kind == "delivery":
        return "mission.kind = delivery"
    way = scenario.contingency
    if way is not None and way.hook == "release" and scenario.cable_model not in NUMBERS_ONLY:
        return (
            f"contingency.hook = release: with cable_model = {scenario.cable_model} (hold does not)"
        )
    return ""


@entry(
    "hands out the mission's set-points, answers lost drones, disarms after landing, says when "
    "the flight is over",
    "session/guidance.py, musls_control/mission/guidance.py",
    _mission_asks,
)
def _reference(flight: Flight) -> Stage:
    guidance = flight.guidance
    return Stage("reference", guidance.step, at_times(flight, lambda: guidance.asks_s))


def _events_ask(scenario: Scenario) -> str:
    for event in scenario.events:
        when = event.when
        numbers = event.changes_numbers_only
        if isinstance(numbers, tuple) and scenario.cable_model not in numbers:
            return f"events = {event.kind}: with cable_model = {scenario.cable_model}"
        if not numbers:
            return f"events = {event.kind}"
        if when.condition is not None or when.event in AUTOMATIC_KINDS:
            return f"events.when: of {event.kind} (a time, a stage or another event do not)"
    return ""


@entry(
    "lets a motor fail, pushes a body, ...",
    "session/event_queue.py, scenario/events.py",
    _events_ask,
)
def _events(flight: Flight) -> Stage:
    queue = flight.events
    return Stage("events", queue.step, at_times(flight, lambda: queue.next_s), changes=True)


@entry("lost links", "imperfections.py")
def _links(flight: Flight) -> Stage:
    links = flight.links
    return Stage("links", links.step, lambda tick: tick if links.any_lost else NEVER)


@entry("drones too close to each other", "session/collisions.py")
def _separation(flight: Flight) -> Stage | None:
    return None if flight.separation is None else Stage("separation")


@entry("look at the state and the set-points that hold from now on", "session/loop.py")
def _observers(flight: Flight) -> Stage:
    def due(tick: int) -> float:
        return min([NEVER, *[observer.next_look(tick) for observer in flight.observers]])

    return Stage("observers", flight.look, due)


@entry("plays the plan between two looks of the guidance", "session/compiled_stages/world.py")
def _plan(flight: Flight) -> Stage:
    guidance = flight.guidance
    return Stage("plan", choose=lambda tick: (compiled.play_plan,) if guidance.plays else ())


@entry("noise of sensors, gusts and late set-points", "session/compiled_stages/noise.py")
def _noise(flight: Flight) -> Stage | None:
    estimator = flight.components.estimator
    link = flight.setpoint_link
    sensors = isinstance(estimator, MotionCapture) or getattr(estimator, "noise", 0.0) > 0.0
    others = len(flight.load_cells.records) or (link is not None and link.jitters)
    needs_noise = sensors or others or not flight.components.wind.steady
    return Stage("noise", compiled=(draw_noise,)) if needs_noise else None


@entry(
    "keeps the state for recorders and for the watch over the drones' distances",
    "session/compiled_stages/session_memory.py",
)
def _rows(flight: Flight) -> Stage:
    return Stage("rows", compiled=(compiled.record,))


def _controller_asks(scenario: Scenario) -> str:
    kind = scenario.controller.kind
    return f"controller.kind = {kind}" if kind not in COMPILED_CONTROLLERS else ""


@entry("controller of the load: its commands", "session/control.py", _controller_asks)
def _controller(flight: Flight) -> Stage | None:
    control = flight.control
    if flight.flying is None:
        return None
    return Stage("controller", control.command, control.next_command, choose=control.choose_law)


@entry(
    "set-points of the autopilots: a controller's forces as accelerations, those that come late",
    "session/control.py, imperfections.py",
)
def _setpoints(flight: Flight) -> Stage | None:
    control = flight.control
    asks = control.setpoints or control.late
    return Stage("setpoints", choose=control.choose_setpoints) if asks else None


def _control_asks(scenario: Scenario) -> str:
    kind = scenario.autopilot.kind
    return f"autopilot.kind = {kind}" if kind != "builtin" else ""


@entry(
    "autopilot, or what follows a controller's commands, down to rotor speeds",
    "session/control.py",
    _control_asks,
)
def _control(flight: Flight) -> Stage:
    return Stage("control", flight.control.step, choose=flight.control.choose)


@entry("motor commands that come late", "imperfections.py")
def _command_latency(flight: Flight) -> Stage | None:
    late = flight.latency is not None
    return Stage("command_latency", compiled=(compiled.delay_commands,)) if late else None


@entry("gusts", "wind.py")
def _wind(flight: Flight) -> Stage | None:
    steady = flight.components.wind.steady
    return None if steady else Stage("wind", compiled=(compiled.let_wind_blow,))


@entry(
    "moves anchors and winches",
    "plants/driving.py",
)
def _rig(flight: Flight) -> Stage | None:
    has_drives = len(flight.driver.targets) or flight.plant.system.winches
    return Stage("rig", compiled=(compiled.drive_rig,)) if has_drives else None


@entry("batteries and rotors", "power.py")
def _motors(flight: Flight) -> Stage | None:
    if flight.power is None:
        return None
    drive = (compiled.drive_rotors,)
    return Stage("motors", flight.note_empty_batteries, never, drive, tells=True)


@entry("rotors that are not upright", "imperfections.py")
def _tilted_thrust(flight: Flight) -> Stage | None:
    is_tilted = flight.tilted is not None
    return Stage("tilted_thrust", compiled=(compiled.tilt_thrust,)) if is_tilted else None


@entry("downwash and ground effect", "scenario/aerodynamics.py")
def _aerodynamics(flight: Flight) -> Stage | None:
    parts = tuple(compiled.OF_AIR[kind] for kind in flight.aerodynamics.kinds)
    if "ground_effect" in flight.aerodynamics.kinds and len(flight.inputs.surface_motion):
        parts = (compiled.move_grounds, *parts)
    return Stage("aerodynamics", compiled=parts) if parts else None


def _own_aerodynamics_ask(scenario: Scenario) -> str:
    own = [model.kind for model in scenario.aerodynamics if not isinstance(model, CompiledModel)]
    return f"aerodynamics = {own[0]}" if own else ""


@entry("your own models of the air", "scenario/aerodynamics.py", _own_aerodynamics_ask)
def _own_aerodynamics(flight: Flight) -> Stage | None:
    air = flight.aerodynamics
    return in_python("own_aerodynamics", air.step if air.own else None)


# ---------- The plant and what comes after it


def _plant_asks(scenario: Scenario) -> str:
    physics = scenario.physics
    if scenario.cable_model not in COMPILED_PLANTS:
        return f"cable_model = {scenario.cable_model}"
    if physics.engine != "embedded":
        return f"physics.engine = {physics.engine}"
    if physics.exact_friction:
        return "physics.exact_friction = true"
    breaks = any(cable.elastic.break_force_n for cable in scenario.system.cables)
    if breaks and scenario.cable_model != "elastic":
        return "system.cables.elastic.break_force_n"
    return ""


@entry("one control period of physics", "plants/", _plant_asks)
def _plant(flight: Flight) -> Stage:
    inputs = flight.inputs
    parts = dict[int, Parts]()

    def choose(tick: int) -> Parts:
        step = flight.plant.compiled_step if inputs.motion is None else None
        if step is None:
            return ()
        return parts.setdefault(id(step), (compiled.tell_motors, step, compiled.note_peaks))

    return Stage("plant", flight.move, choose=choose)


@entry("notes what happened to cables by itself", "session/flight.py")
def _cable_events(flight: Flight) -> Stage:
    return Stage("cable_events", flight.note_cable_events, never, tells=True)


@entry("notes when the integration makes or loses energy", "session/flight.py")
def _energy(flight: Flight) -> Stage | None:
    if flight.plant.audit is None:
        return None
    return Stage("energy", flight.watch_energy, last_of(ENERGY_PERIODS), tells=True)


@entry("notes cables that are pulled by more than they hold", "session/flight.py")
def _strength(flight: Flight) -> Stage | None:
    if all(cable.break_force_n is None for cable in flight.scenario.system.cables):
        return None
    return Stage("strength", flight.watch_strength, last_of(STRENGTH_PERIODS), tells=True)


@entry(
    "notes what hits what",
    "session/collisions.py",
    lambda s: "limits.collision = end" if s.limits.collision == "end" else "",
)
def _collisions(flight: Flight) -> Stage | None:
    watch = flight.collisions
    if watch is None:
        return None
    obstacles = (compiled.look_at_obstacles,) if watch.obstacles else ()
    moves = (compiled.move_obstacles,) if len(flight.inputs.surface_motion) else ()
    look = (compiled.look_for_contacts, *moves, *obstacles)
    return Stage("collisions", flight.watch_collisions, never, look, tells=True)


@entry("notes which cables hit obstacles", "session/collisions.py")
def _cable_collisions(flight: Flight) -> Stage | None:
    watch = flight.collisions
    if watch is None or not watch.obstacles:
        return None
    return Stage("cable_collisions", flight.watch_cables, watch.next_look_at_cables)


@entry("notes what a controller reports", "session/flight.py")
def _controller_events(flight: Flight) -> Stage | None:
    if flight.flying is None:
        return None
    due = flight.control.next_events
    return Stage("controller_events", flight.note_controller_events, due, tells=True)


@entry("what the relay believes of motion capture", "sensors/relay.py, musls_control/real_flight/")
def _capture(flight: Flight) -> Stage | None:
    estimator = flight.components.estimator
    relay = estimator.relay if isinstance(estimator, MotionCapture) else None
    if relay is None:
        return None
    return Stage("capture", flight.judge_capture, relay.next_arrival)


@entry("what motion capture and IMU make of the state", "sensors/estimation.py")
def _estimation(flight: Flight) -> Stage:
    sensed = flight.components.sensed
    estimator = flight.components.estimator
    sense = () if sensed is None else (compiled.sense_motion,)
    capture = isinstance(estimator, MotionCapture)
    know = compiled.capture_motion if capture else compiled.know_truth
    return Stage("estimation", compiled=(*sense, know))


@entry(
    "the load from the drones' motion alone",
    "session/load_estimation.py, musls_control/estimators/",
    lambda s: "estimation.load" if s.estimation.load.kind != "mocap" else "",
)
def _load_estimation(flight: Flight) -> Stage | None:
    estimator = flight.components.load_estimation
    if estimator is None:
        return None
    estimator.check(flight.flying)
    return Stage("load_estimation", estimator.step)


@entry("in the last period: whether that estimate can be trusted", "session/flight.py")
def _load_estimator_doubt(flight: Flight) -> Stage | None:
    estimator = flight.components.load_estimation
    return in_python("load_estimator_doubt", None if estimator is None else flight.doubt_estimator)


@entry("load cells", "sensors/estimation.py")
def _load_cells(flight: Flight) -> Stage | None:
    cells = len(flight.load_cells.records)
    return Stage("load_cells", compiled=(compiled.measure_tensions,)) if cells else None


@entry("drones that do not carry any more", "musls_control/mission/contingency.py")
def _losses(flight: Flight) -> Stage | None:
    watches = flight.contingency is not None
    return Stage("losses", compiled=(compiled.watch_losses,)) if watches else None


@entry("your own sensors", "sensors/estimation.py", lambda s: "sensors" if s.sensors else "")
def _sensors(flight: Flight) -> Stage | None:
    return in_python("sensors", flight.sensors.step if flight.scenario.sensors else None)


def stages_of(flight: Flight) -> list[Stage]:
    """The stages that a flight needs, in their order."""
    stages = (row.make(flight) for row in TABLE)
    return [stage for stage in stages if stage is not None]


def asks_for_python(scenario: Scenario) -> str | None:
    """The first stage that needs Python in a scenario, and its key; None if all are compiled."""
    for row in TABLE:
        if key := row.asks(scenario):
            return f"{key}: needs the stage '{row.name}' in Python"
    return None
