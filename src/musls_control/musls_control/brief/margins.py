"""Margins of the drones in the formation at rest and at the hardest moment, and flight times."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from musls_control.brief.brief import Brief
from musls_control.mission.carrying import Held
from musls_control.mission.plan import Closest, FlightPlan, closest_in_plan
from musls_control.px4.parameters import PX4_PARAMETERS
from musls_description.config.errors import ConfigError
from musls_description.config.schema import build, to_data
from musls_description.hanging.hang import (
    MIN_THRUST_MARGIN,
    Hanging,
    margin_sentence,
    margin_text,
    weakest_of,
)
from musls_description.numerics.arrays import Array
from musls_description.system.drone import (
    Drone,
    drag_n_s_m,
    hover_throttle,
    impossible_radius,
    propeller_radius_m,
    thrust_margin,
)
from musls_description.system.slung_system import RigSystem

# ---------- Forces in a formation that accelerates as one, in moving air
#
# In the frame of the accelerating load, gravity is g e3 + a. The air's drag on load and cables is
# taken as a further acceleration of the carried bodies. So they hang at rest under a
# gravity g_c = g e3 + a - D_L / m_c of another size and direction (`Hanging.accelerated`). Each
# drone then needs the force of its cable, plus m_i (g e3 + a_i), minus its own drag, where a_i has
# the centripetal and tangential parts of the formation's turn. Left out: that the load swings,
# which a reference without jumps in its acceleration hardly makes it do.


WHAT = "a check before the flight"


@dataclass(frozen=True)
class FormationMotion:
    """Motion of the formation and of the air; many motions at once have a first axis more.

    Attributes:
        pose: Load's set-point: x, y, z [m], yaw [rad], (4,).
        velocity_enu_m_s: (3,).
        acceleration_enu_m_s2: (3,).
        wind_enu_m_s: Wind velocity, (3,).
    """

    pose: Array
    velocity_enu_m_s: Array
    acceleration_enu_m_s2: Array
    yaw_rate_rad_s: ArrayLike
    yaw_acceleration_rad_s2: ArrayLike
    wind_enu_m_s: Array

    @classmethod
    def of(cls, derivatives: Array, wind_enu_m_s: Array) -> FormationMotion:
        """Motion from a reference's derivatives 0 to 2 of x, y, z, yaw, (..., >= 3, >= 4)."""
        pose, rate, gain = (derivatives[..., order, :] for order in range(3))
        return cls(
            pose[..., :4], rate[..., :3], gain[..., :3], rate[..., 3], gain[..., 3], wind_enu_m_s
        )


@dataclass(frozen=True)
class Forces:
    """Thrusts and tensions of a motion.

    Attributes:
        thrust_enu_n: Force that each drone's rotors must give, (n, 3).
        tension_n: Tension of each cable at the load, (n,).
        moment_body_n_m: Moment against the cables' that the rotors must give, drone frames, (n, 3).
    """

    thrust_enu_n: Array
    tension_n: Array
    moment_body_n_m: Array


def forces_of(hanging: Hanging, motion: FormationMotion) -> Forces:
    """Solve for the forces of a motion."""
    system = hanging.system
    yaw = float(motion.pose[3])
    places, _ = hanging.formation.poses(np.zeros(3), yaw, system.n_drones)
    specific_force_m_s2, carried = _felt(hanging, motion)
    if carried[2] <= 0.0:
        raise ConfigError("the load falls faster than gravity: the cables are slack")
    pulls, tension_n = hanging.accelerated(carried, yaw)
    thrust = [
        _thrust(drone, pull, place, motion, specific_force_m_s2)
        for drone, pull, place in zip(system.drones, pulls, places, strict=True)
    ]
    # The cables' moments on the drones go with their tensions.
    more = tension_n / hanging.rest.load_end_tension_n
    return Forces(np.array(thrust), tension_n, more[:, None] * hanging.rest.drone_moment_n_m)


def _felt(hanging: Hanging, motion: FormationMotion) -> tuple[Array, Array]:
    """Gravity that a drone feels, and that what the cables carry feels with its drag, (..., 3)."""
    system = hanging.system
    specific_force_m_s2 = motion.acceleration_enu_m_s2 + np.array([0.0, 0.0, hanging.gravity_m_s2])
    air = motion.wind_enu_m_s - motion.velocity_enu_m_s
    drag_m_s2 = np.array(system.load.drag_n_s_m) * air / system.carried_mass_kg
    return specific_force_m_s2, specific_force_m_s2 - drag_m_s2


def _thrust(
    drone: Drone,
    cable_n: Array,
    place_m: Array,
    motion: FormationMotion,
    specific_force_m_s2: Array,
    hover_n: float | None = None,
) -> Array:
    """Force that a drone's rotors must give, (..., 3).

    `place_m`: from the load, (..., 3).
    `hover_n`: thrust whose drag is taken; default that of this motion.
    """
    rate = np.asarray(motion.yaw_rate_rad_s)
    gain = np.asarray(motion.yaw_acceleration_rad_s2)
    rate = rate[..., None]
    gain = gain[..., None]
    across = place_m * [1.0, 1.0, 0.0]
    sideways = np.cross([0.0, 0.0, 1.0], place_m)
    force_n = cable_n + drone.mass_kg * (specific_force_m_s2 - rate**2 * across + gain * sideways)
    drag = drag_n_s_m(drone, float(np.linalg.norm(force_n)) if hover_n is None else hover_n)
    moving = motion.velocity_enu_m_s + rate * sideways
    thrust: Array = force_n - drag * (motion.wind_enu_m_s - moving)
    return thrust


# ---------- The moments of a mission at which the drones work hardest

SAMPLES = 2000
"""Moments of each stage that are looked at."""

GUST_DEVIATIONS = 2.0
"""Gusts of so many standard deviations are counted on."""


@dataclass(frozen=True)
class Moment:
    """A moment of a mission.

    Attributes:
        number: Number of the stage, from 0.
        time_s: Time since the stage began.
    """

    stage: str
    number: int
    time_s: float
    motion: FormationMotion

    @property
    def where(self) -> str:
        """Stage and time."""
        return f"{self.stage} at {self.time_s:.1f} s"


def strong_wind_enu_m_s(brief: Brief) -> Array:
    """Mean wind with gusts that blow in its direction (to the east where there is none)."""
    mean = np.array(brief.wind.mean_enu_m_s)
    gust = GUST_DEVIATIONS * np.array(brief.wind.gust_std_m_s)
    speed = float(np.linalg.norm(mean))
    along = mean / speed if speed > 0.0 else np.array([1.0, 0.0, 0.0])
    return mean + along * float(np.linalg.norm(gust * along))


def hard_moments(brief: Brief, count: int = 3) -> list[Moment]:
    """Moments at which thrust, tilt and slack come closest to their limits, hardest first.

    They are found by an estimate: cable forces keep their directions and sizes seen in the frame
    of the felt gravity. Steps of the set-point have no acceleration and are not counted.
    """
    ranking: list[tuple[float, Moment]] = []
    wind = strong_wind_enu_m_s(brief)
    hanging = brief.hanging_for(WHAT)
    for number, stage in enumerate(brief.mission.stages):
        times = np.linspace(0.0, min(stage.duration_s, stage.period_s), SAMPLES)
        samples = stage.derivatives(times)
        share, tilt, vertical_m_s2 = _estimates(hanging, FormationMotion.of(samples, wind))
        for score, k in {
            (float(share[k]), int(k))
            for k in (share.argmax(), tilt.argmax(), vertical_m_s2.argmin())
        }:
            moment = Moment(
                stage.kind, number, float(times[k]), FormationMotion.of(samples[k], wind)
            )
            ranking.append((score, moment))
    ranking.sort(key=lambda pair: -pair[0])
    # Those that differ in what they ask for; places do not matter, headings do not either.
    distinct: dict[tuple[float, float], Moment] = {}
    for score, moment in ranking:
        rise = float(moment.motion.acceleration_enu_m_s2[2])
        distinct.setdefault((round(score, 3), round(rise, 3)), moment)
    return list(distinct.values())[:count]


def _estimates(hanging: Hanging, motion: FormationMotion) -> tuple[Array, Array, Array]:
    """Largest share of the full thrust, largest tilt and vertical felt gravity, (k,) each."""
    system = hanging.system
    gravity = hanging.gravity_m_s2
    count = len(motion.pose)
    specific_force_m_s2, carried = _felt(hanging, motion)
    headings = motion.pose[:, 3]
    places, _ = hanging.formation.poses(np.zeros((count, 3)), headings, system.n_drones)
    share = np.zeros(count)
    tilt = np.zeros(count)
    for i, drone in enumerate(system.drones):
        hover_n = hanging.rest.drone_force_n[i]
        at_rest = hover_n - [0.0, 0.0, drone.mass_kg * gravity]
        across = places[:, i] * [1.0, 1.0, 0.0]
        radius = np.linalg.norm(across, axis=1, keepdims=True)
        outward = across / np.maximum(radius, 1e-9)
        pull = at_rest[2] / gravity * carried + np.linalg.norm(at_rest[:2]) * outward
        thrust = _thrust(
            drone, pull, places[:, i], motion, specific_force_m_s2, float(np.linalg.norm(hover_n))
        )
        size = np.linalg.norm(thrust, axis=1)
        share = np.maximum(share, size / drone.max_thrust_n)
        tilt = np.maximum(tilt, np.arccos(np.clip(thrust[:, 2] / size, -1.0, 1.0)))
    return share, tilt, carried[:, 2]


# ---------- Margins

LOWEST_M = -500.0
HIGHEST_M = 20_000.0
"""Ceilings are looked for between these."""
CEILING_TOLERANCE_M = 1e-3

BREAK_SHARE = 0.8
"""Share of its break force that a cable may carry."""


@dataclass(frozen=True)
class DroneMargins:
    """Margins of a drone: thrust, tilt, throttle, energy.

    Attributes:
        thrust_n: Thrust of its rotors.
        thrust_margin: Full over needed thrust of the rotor that works hardest, with the moments
            against the cable's pull; 0 where the rotors cannot give thrust and moments at once.
        empty_margin: Thrust margin at the battery's reserve, with the voltage that is left; None
            without a battery.
        level_tilt_deg: Largest lean without sinking, at full thrust.
        hover_throttle: Motor command in [0, 1] that gives the thrust.
        tension_n: Tension of its cable at the load.
        power_w: Electrical; None without a motor.
        minutes: Time from the battery's start to its reserve at that power; None without a battery.
    """

    thrust_n: float
    thrust_margin: float
    empty_margin: float | None
    tilt_deg: float
    level_tilt_deg: float
    hover_throttle: float
    tension_n: float
    power_w: float | None
    minutes: float | None


@dataclass(frozen=True)
class Margins:
    """Margins of the drones before a flight.

    Attributes:
        formation: Margins of each drone in the formation at rest.
        hardest: Margins of each drone at the mission's hardest moment; empty if not solvable.
        tilt_limit_deg: Largest tilt that the autopilot commands.
        lowest_m: Height of the load's set-point at which the load touches the ground, where the
            stages begin.
        separation: The closest that the plan brings two drones; None for one drone.
        first_empty: Number of the drone whose battery is at its reserve first, and when [min], in
            hover; None without batteries.
        cautions: Doubts about the flight, one line each, which a flight can settle.
    """

    brief: Brief
    at_rest: Forces
    formation: Sequence[DroneMargins]
    hardest: Sequence[DroneMargins]
    moment: Moment | None
    tilt_limit_deg: float
    lowest_m: float
    separation: Closest | None
    flight_s: float
    first_empty: tuple[int, float] | None
    cautions: Sequence[str]

    @cached_property
    def ceiling_m(self) -> float:
        """Height above sea level at which the weakest drone's full thrust just carries it."""
        return ceiling_m(self.brief, self.at_rest)

    @property
    def weakest(self) -> int:
        """Number of the drone with the least thrust margin in the formation at rest."""
        return weakest_of([m.thrust_margin for m in self.formation])

    @property
    def thrust_margin(self) -> float:
        """Least thrust margin in the formation at rest; all commands print this number."""
        return _least(self.formation)

    @property
    def margin_sentence(self) -> str:
        """Least thrust margin in the formation at rest, and at the hardest moment."""
        sentence = margin_sentence(self.thrust_margin, self.weakest)
        if self.hardest and self.moment is not None:
            sentence += f", {_least(self.hardest):.2f} in {self.moment.where}"
        return sentence

    @property
    def sentence(self) -> str:
        """The worst of it in one line."""
        parts = [self.margin_sentence]
        if self.separation is not None:
            parts.append(f"rotor tips at least {self.separation.tips_m:.2f} m apart")
        if self.first_empty is not None:
            number, minutes = self.first_empty
            parts.append(f"drone_{number} runs out first, after {minutes:.1f} min of hover")
        return "; ".join(parts)


def margins_of(brief: Brief, plan: FlightPlan, moments: int = 3) -> Margins | None:
    """Margins of the drones; None where no formation flies and nothing hangs by its plan."""
    if plan.held is None and (brief.hanging is None or not brief.in_formation):
        return None
    return assess(brief, plan, moments)


def assess(brief: Brief, plan: FlightPlan, moments: int = 3) -> Margins:
    """Find the margins of a flight with this plan; of a rig it says how that hangs."""
    separation = closest_in_plan(brief.system, plan)
    cautions = list[str]()
    moment = None
    if plan.held is not None:
        at_rest, hardest, moment = _in_rig(brief, plan, plan.held)
        bottom_m = 0.0 if brief.system.load is None else brief.system.load.collision.bottom_m
        lowest_m = 0.0 - bottom_m
        tension_n = plan.held.tension_n.max(axis=0)
        cautions += _idle_cables(plan.held)
    else:
        at_rest, hardest, moment, unsolved = _in_formation(brief, moments)
        hanging = brief.hanging_for(WHAT)
        lowest_m = hanging.sag_m - hanging.system.load.collision.bottom_m
        if hanging.ground is not None:
            lowest_m += hanging.ground.height_m(*hanging.load_pose[:2])
        cautions += unsolved
        tension_n = np.maximum(at_rest.tension_n, [m.tension_n for m in hardest] or 0.0)
    formation = margins(brief.system, at_rest)
    limit_deg = brief.parameters.get("MPC_TILTMAX_AIR", PX4_PARAMETERS["MPC_TILTMAX_AIR"].default)
    flight_s = brief.flight_s
    weak = list(_doubts(brief, "formation", formation, limit_deg, flight_s))
    if not weak and moment is not None:  # what fails at rest fails when it is hardest
        weak = list(_doubts(brief, moment.where, hardest, limit_deg, flight_s))
    cautions += [*weak, *_breaking(brief, tension_n)]
    minutes = [(m.minutes, i) for i, m in enumerate(formation, 1) if m.minutes is not None]
    first_min, first = min(minutes, default=(math.inf, 0))
    return Margins(
        brief,
        at_rest,
        formation,
        hardest,
        moment,
        limit_deg,
        lowest_m,
        separation,
        flight_s,
        (first, first_min) if minutes else None,
        list(dict.fromkeys([*cautions, *_cautions(brief, formation, hardest)])),
    )


def _in_formation(
    brief: Brief, moments: int
) -> tuple[Forces, list[DroneMargins], Moment | None, list[str]]:
    """Forces at rest, margins at the hardest moment, which that is, and what cannot be solved."""
    at_rest = _hung(brief)
    cautions = list[str]()
    hardest = list[DroneMargins]()
    moment = None
    for candidate in hard_moments(brief, moments):
        try:
            forces = forces_of(brief.hanging_for(WHAT), candidate.motion)
        except ConfigError as error:
            why = str(error).split(":")[0]
            cautions.append(f"{candidate.where}: {why}")
            continue
        of = margins(brief.system, forces)
        if not hardest or _least(of) < _least(hardest):
            hardest = of
            moment = candidate
    return at_rest, hardest, moment, cautions


def forces_at_rest(brief: Brief, plan: FlightPlan) -> Forces | None:
    """Forces of a flight before it moves; None as for `margins_of`."""
    if plan.held is not None:
        return _rig_forces(brief, plan.held, _row_at_rest(plan.held))
    return _hung(brief) if brief.hanging is not None and brief.in_formation else None


def _hung(brief: Brief) -> Forces:
    return hanging_forces(brief.hanging_for(WHAT))


def hanging_forces(hanging: Hanging) -> Forces:
    """Forces of a system that hangs at rest."""
    rest = hanging.rest
    return Forces(rest.drone_force_n, rest.load_end_tension_n, rest.drone_moment_n_m)


def _in_rig(
    brief: Brief, plan: FlightPlan, held: Held
) -> tuple[Forces, list[DroneMargins], Moment]:
    """Prediction for a rig that hangs at rest at the rows of its plan."""
    _, (row, _) = rig_margins(brief.system, held)
    at_rest, hardest = (_rig_forces(brief, held, k) for k in (_row_at_rest(held), row))
    stage = plan.stage_at(row)
    first_row = int(np.argmax(plan.stage == plan.stage[row]))
    still = FormationMotion(held.load_pose[row], *(np.zeros(3),) * 2, 0.0, 0.0, np.zeros(3))
    moment = Moment(stage, int(plan.stage[row]), (row - first_row) / plan.rate_hz, still)
    return at_rest, margins(brief.system, hardest), moment


def _row_at_rest(held: Held) -> int:
    """Row of a plan in which a rig hangs: the first, else the middle one of those that do."""
    hangs = np.flatnonzero(held.tension_n.any(axis=1))
    return 0 if not len(hangs) or hangs[0] == 0 else int(hangs[len(hangs) // 2])


IDLE_SHARE = 0.02
"""Tension of a cable that carries next to nothing, over the largest of all cables."""


def _idle_cables(held: Held) -> list[str]:
    """Cables of a rig that hang slack where it pulls most: others carry what hangs."""
    at = held.tension_n[int(held.tension_n.max(axis=1).argmax())]
    idle = np.flatnonzero(at < IDLE_SHARE * at.max()) + 1
    if not len(idle):
        return []
    names = ", ".join(f"cable_{k}" for k in idle)
    return [f"next to nothing hangs on {names} where the rig pulls most: other cables hold it"]


def rig_margins(system: RigSystem, held: Held) -> tuple[Array, tuple[int, int]]:
    """Thrust margins of the drones at the rows of a plan, (k, n), and where the least one is."""
    sizes = np.linalg.norm(held.thrust_enu_n, axis=2)
    margins = np.array(
        [
            [thrust_margin(*one) for one in zip(system.drones, *row, strict=True)]
            for row in zip(sizes.tolist(), held.moment_body_n_m, strict=True)
        ]
    )
    row, drone = np.unravel_index(np.argmin(margins), margins.shape)
    return margins, (int(row), int(drone))


def why_uneven(drone: Drone, thrust_n: float, margin: float) -> str:
    """Why a thrust margin is small though all rotors together give more than enough, or empty."""
    if margin == 0.0:
        return ": its rotors cannot give the thrust without turning it"
    if drone.max_thrust_n / thrust_n < MIN_THRUST_MARGIN:
        return ""
    return ": rotors, centre of mass and cable do not balance, one rotor works harder than others"


def _rig_forces(brief: Brief, held: Held, row: int) -> Forces:
    """Forces that a rig's drones hold: the pull of its cables on each drone."""
    thrust = held.thrust_enu_n[row]
    weights = [drone.mass_kg * brief.gravity_m_s2 for drone in brief.system.drones]
    pull = thrust - np.outer(weights, [0.0, 0.0, 1.0])
    return Forces(thrust, np.linalg.norm(pull, axis=1), held.moment_body_n_m[row])


def _least(of: Sequence[DroneMargins]) -> float:
    return min(m.thrust_margin for m in of)


def _doubts(
    brief: Brief,
    where: str,
    margins: Sequence[DroneMargins],
    limit_deg: float,
    flight_s: float,
) -> Iterator[str]:
    """Why drones or batteries may not stand a flight, one line each."""
    system = brief.system
    for i, (drone, m) in enumerate(zip(system.drones, margins, strict=False), start=1):
        weak = m.thrust_margin < MIN_THRUST_MARGIN
        if weak:
            why = why_uneven(drone, m.thrust_n, m.thrust_margin)
            yield (
                f"{where}: drone_{i} has a thrust margin of {margin_text(m.thrust_margin)}, at "
                f"least {MIN_THRUST_MARGIN} is needed{why}"
            )
        if m.tilt_deg > limit_deg:
            yield (
                f"{where}: drone_{i} would lean {m.tilt_deg:.0f} degrees, the autopilot leans "
                f"{limit_deg:g} at most (MPC_TILTMAX_AIR)"
            )
        for time, charge in () if weak else _charges(drone, m, flight_s):
            margin = m.thrust_margin * full_thrust_n(drone, charge) / drone.max_thrust_n
            if margin < MIN_THRUST_MARGIN:
                yield (
                    f"{where}: the voltage that is left {time} gives drone_{i} a thrust margin "
                    f"of {margin_text(margin)}, at least {MIN_THRUST_MARGIN} is needed"
                )
                break


def _breaking(brief: Brief, tension_n: Array) -> Iterator[str]:
    """Cables that carry too much at the hardest moment, one line each."""
    for i, (cable, pull_n) in enumerate(zip(brief.system.cables, tension_n, strict=True), 1):
        breaks_n = cable.break_force_n
        if breaks_n is not None and pull_n > BREAK_SHARE * breaks_n:
            yield (
                f"cable_{i} carries {pull_n:.1f} N, more than {100.0 * BREAK_SHARE:g} % of its "
                f"break force of {breaks_n:.5g} N"
            )


def _charges(drone: Drone, m: DroneMargins, flight_s: float) -> Iterator[tuple[str, float]]:
    """Shares of the charge at the begin and at the end of a flight, as in hover all the time."""
    propulsion = drone.propulsion
    if propulsion is None or propulsion.motor is None or propulsion.battery is None:
        return
    battery = propulsion.battery
    yield "at the begin", battery.start_charge
    if m.minutes:
        used_charge = (battery.start_charge - battery.reserve) * flight_s / (60.0 * m.minutes)
        yield "at the end", max(battery.start_charge - used_charge, 0.0)


def _cautions(
    brief: Brief, formation: Sequence[DroneMargins], hardest: Sequence[DroneMargins]
) -> Iterator[str]:
    """Cautions of drones that can be flown, one line each."""
    for i, m in enumerate(formation, start=1):
        if m.empty_margin is not None and m.empty_margin < MIN_THRUST_MARGIN:
            yield (
                f"drone_{i} has a thrust margin of {margin_text(m.empty_margin)} when its battery "
                "is at the reserve"
            )
    for i, (rest, m) in enumerate(zip(formation, hardest, strict=False), start=1):
        if m.tension_n < 0.1 * rest.tension_n:
            yield f"cable_{i} nearly goes slack at the hardest moment"
    windy = any(brief.wind.mean_enu_m_s) or any(brief.wind.gust_std_m_s)
    for i, drone in enumerate(brief.system.drones, start=1):
        if windy and not any(drone.drag_n_s_m) and not any(r.drag_n_s2_m_rad for r in drone.rotors):
            yield f"drone_{i} has no drag (drag_n_s_m, rotors.drag_n_s2_m_rad): no wind pushes it"
        # Hubs that share a place, from above, are coaxial.
        hubs = np.array([rotor.position_m[:2] for rotor in drone.rotors])
        gaps = np.linalg.norm(hubs[:, None] - hubs[None], axis=2)
        gap = gaps[gaps > 1e-6].min(initial=np.inf)
        diameter = 2.0 * propeller_radius_m(drone)
        if diameter > gap * (1.0 + 1e-9):
            yield (
                f"drone_{i}: propellers of {diameter:.3g} m on hubs {gap:.3g} m apart: they "
                "overlap, which its thrust does not know"
            )
        if wrong := impossible_radius(drone, diameter / 2.0) if diameter else "":
            yield f"drone_{i}: propellers of {diameter:.3g} m: {wrong}"


def margins(system: RigSystem, forces: Forces) -> list[DroneMargins]:
    """Margins of all drones of a system for given forces."""
    return [
        drone_margins(drone, thrust, float(tension), moment)
        for drone, thrust, tension, moment in zip(
            system.drones,
            forces.thrust_enu_n,
            forces.tension_n,
            forces.moment_body_n_m,
            strict=True,
        )
    ]


def drone_margins(
    drone: Drone, thrust_enu_n: Array, tension_n: float, moment_body_n_m: Array
) -> DroneMargins:
    """Margins of one drone.

    `thrust_enu_n`: force that its rotors must give, (3,).
    `tension_n`: of its cable at the load.
    `moment_body_n_m`: that its rotors must give, (3,).
    """
    thrust_n = float(np.linalg.norm(thrust_enu_n))
    most_n = drone.max_thrust_n
    margin = float(thrust_margin(drone, thrust_n, moment_body_n_m))
    share = thrust_n / most_n
    speeds = [rotor.speed_max_rad_s * math.sqrt(share) for rotor in drone.rotors]
    power_w = electrical_power_w(drone, speeds)
    battery = drone.propulsion.battery if drone.propulsion else None
    minutes = empty = None
    if battery is not None and power_w is not None:
        minutes = battery.duration_s(power_w) / 60.0
        empty = margin * full_thrust_n(drone, battery.reserve) / most_n
    return DroneMargins(
        thrust_n,
        margin,
        empty,
        math.degrees(math.acos(np.clip(thrust_enu_n[2] / thrust_n, -1.0, 1.0))),
        math.degrees(math.acos(np.clip(thrust_enu_n[2] / most_n, -1.0, 1.0))),
        hover_throttle(drone, thrust_n),
        tension_n,
        power_w,
        minutes,
    )


def full_thrust_n(drone: Drone, charge: float) -> float:
    """Thrust of all rotors at the battery's voltage, and not more than at their top speed."""
    assert drone.propulsion is not None
    total = 0.0
    for rotor in drone.rotors:
        k_m = rotor.moment_coefficient_n_m_s2
        speed = drone.propulsion.sagged_speed_rad_s(k_m, charge, len(drone.rotors))
        total += rotor.thrust_coefficient_n_s2 * min(speed, rotor.speed_max_rad_s) ** 2
    return total


def electrical_power_w(drone: Drone, speeds_rad_s: Sequence[float]) -> float | None:
    """Power of motors and electronics at given rotor speeds, None without a motor."""
    propulsion = drone.propulsion
    if propulsion is None or propulsion.motor is None:
        return None
    power_w = propulsion.electronics_w
    for rotor, speed in zip(drone.rotors, speeds_rad_s, strict=True):
        current_a = propulsion.motor.current_a(rotor.moment_coefficient_n_m_s2 * speed**2)
        power_w += current_a * propulsion.motor.voltage_v(speed, current_a)
    return power_w


def ceiling_m(brief: Brief, at_rest: Forces) -> float:
    """Height above sea level where the first drone's full thrust is what the formation needs.

    Thrust constants of rotors without a propeller are taken as those at sea level and 15 degrees.
    """
    # Drones that are alike differ only in what they must give.
    needed_n: dict[Drone, float] = {}
    for drone, force in zip(brief.system.drones, at_rest.thrust_enu_n, strict=True):
        needed_n[drone] = max(float(np.linalg.norm(force)), needed_n.get(drone, 0.0))
    lowest = HIGHEST_M
    for drone, force_n in needed_n.items():
        low, high = LOWEST_M, HIGHEST_M
        while high - low > CEILING_TOLERANCE_M:
            middle = (low + high) / 2.0
            low, high = (middle, high) if thrust_at_m(drone, middle) > force_n else (low, middle)
        lowest = min(lowest, low)
    return lowest


def thrust_at_m(drone: Drone, altitude_m: float) -> float:
    """Full thrust of a drone in the air of an altitude [N]; the temperature is that of `air`."""
    data = to_data(drone)
    data["propulsion"] = data["propulsion"] or {"air": {"temperature_c": 15.0}}
    data["propulsion"]["air"]["altitude_m"] = altitude_m
    drone_there = build(Drone, data, "altitude")
    if drone_there.rotors[0].thrust_coefficient_n_s2 != drone.rotors[0].thrust_coefficient_n_s2:
        return drone_there.max_thrust_n
    assert drone_there.propulsion is not None
    at_home = drone.propulsion.air if drone.propulsion else type(drone_there.propulsion.air)()
    return drone.max_thrust_n * drone_there.propulsion.air.density_kg_m3 / at_home.density_kg_m3
