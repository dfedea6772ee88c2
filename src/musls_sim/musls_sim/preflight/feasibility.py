"""Can a scenario be flown, and for how long? Margins in the formation and at its hardest moment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from musls_control.px4_cascade.parameters import PX4_PARAMETERS
from musls_description.errors import ConfigError
from musls_description.schema import build, to_data
from musls_description.slung import formation_of
from musls_description.system import Drone
from musls_sim.preflight.checks import MIN_THRUST_MARGIN, Hover
from musls_sim.preflight.hardware import hardware_cautions, hardware_problems
from musls_sim.preflight.mission_checks import flight_duration_s
from musls_sim.preflight.separation import Closest
from musls_sim.preflight.statics import Forces, Motion, forces_of
from musls_sim.preflight.thrust import full_thrust_n
from musls_sim.preflight.worst_point import Moment, hard_moments
from musls_sim.scenario import Scenario

Array = NDArray[np.float64]

LOWEST_M, HIGHEST_M = -500.0, 20_000.0
"""Ceilings are looked for between these."""
CEILING_TOLERANCE_M = 1e-3


@dataclass(frozen=True)
class DroneMargins:
    """What is left of a drone's possibilities.

    Attributes:
        thrust_n: What its rotors give.
        thrust_margin: Full thrust over that.
        empty_margin: The same at the battery's reserve, with the voltage that is left; None
            without a battery.
        tilt_deg: How far it leans.
        level_tilt_deg: How far it could lean without sinking, at full thrust.
        hover_throttle: Motor command in [0, 1] that gives the thrust.
        tension_n: Of its cable at the load.
        power_w: Electrical; None without a motor.
        minutes: From the battery's start to its reserve at that power; None without a battery.
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
class Feasibility:
    """What `musls check` says.

    Attributes:
        scenario: What was judged.
        at_rest: Forces of the formation at rest.
        formation: In the formation at rest, of each drone.
        hardest: At the mission's hardest moment, of each drone; empty where it cannot be solved.
        moment: That moment.
        tilt_limit_deg: As far as the autopilot leans.
        lowest_m: Height of the load's set-point at which the load touches the ground.
        separation: The closest that the plan brings two drones; None for one drone.
        flight_s: How long the flight takes.
        problems: Why it cannot be flown, one line each; empty if it can.
        cautions: What one should know.
    """

    scenario: Scenario
    at_rest: Forces
    formation: Sequence[DroneMargins]
    hardest: Sequence[DroneMargins]
    moment: Moment | None
    tilt_limit_deg: float
    lowest_m: float
    separation: Closest | None
    flight_s: float
    problems: Sequence[str] = field(default_factory=list)
    cautions: Sequence[str] = field(default_factory=list)

    @cached_property
    def ceiling_m(self) -> float:
        """Height above sea level at which the weakest drone's full thrust just carries it."""
        return ceiling_m(self.scenario, self.at_rest)

    @property
    def can_be_flown(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.problems

    @property
    def weakest(self) -> int:
        """Number of the drone with the least thrust margin at the hardest moment."""
        margins = [m.thrust_margin for m in self.hardest or self.formation]
        return int(np.argmin(margins)) + 1

    @property
    def thrust_margin(self) -> float:
        """Least thrust margin."""
        return min(m.thrust_margin for m in [*self.formation, *self.hardest])

    @property
    def first_empty(self) -> tuple[int, float] | None:
        """Number of the drone whose battery is at its reserve first, and when [min], in hover."""
        return first_empty(self.formation)

    @property
    def sentence(self) -> str:
        """The worst of it in one line."""
        moment = "in the formation"
        if self.hardest and self.moment is not None:
            moment = f"in {self.moment.stage} at {self.moment.time_s:.1f} s"
        parts = [f"least thrust margin {self.thrust_margin:.2f} (drone_{self.weakest}, {moment})"]
        if self.separation is not None:
            parts.append(f"rotor tips at least {self.separation.tips_m:.2f} m apart")
        if self.first_empty is not None:
            number, minutes = self.first_empty
            parts.append(f"drone_{number} runs out first, after {minutes:.1f} min of hover")
        return "; ".join([*self.problems, *parts])


def assess(
    scenario: Scenario,
    hover: Hover,
    separation: Closest | None,
    moments: int = 3,
    problems: Sequence[str] = (),
) -> Feasibility:
    """Judge a scenario before its flight.

    Args:
        scenario: What is to be flown.
        hover: How the system hangs in formation.
        separation: The closest in the plan.
        moments: So many of the mission's hard moments are solved exactly.
        problems: Found already.
    """
    rest = Motion.at_rest(scenario.mission.stages[0].pose(np.zeros(1))[0])
    at_rest = Forces(hover.equilibrium.drone_force_n, hover.equilibrium.load_end_tension_n)
    formation = margins(scenario, at_rest, rest)
    found, hardest, moment = list(problems), list[DroneMargins](), None
    for candidate in hard_moments(scenario, hover, moments):
        try:
            forces = forces_of(scenario, candidate.motion)
        except ConfigError as error:
            why = str(error).split(":")[0]
            found.append(f"{candidate.stage} at {candidate.time_s:.1f} s: {why}")
            continue
        of = margins(scenario, forces, candidate.motion)
        if not hardest or _least(of) < _least(hardest):
            hardest, moment = of, candidate
    limit_deg = scenario.autopilot.parameters.get(
        "MPC_TILTMAX_AIR", PX4_PARAMETERS["MPC_TILTMAX_AIR"].default
    )
    flight_s = flight_duration_s(scenario)
    places = (("formation", formation), (_where(moment), hardest))
    for where, of in places:
        found += _problems(where, of, limit_deg)
    found += hardware_problems(scenario, places, flight_s)
    if separation is not None and separation.tips_m <= 0.0:
        i, j = separation.pair
        found.append(f"rotors of drone_{i} and drone_{j} overlap by {-separation.tips_m:.2f} m")
    empty = first_empty(formation)
    if empty is not None and 60.0 * empty[1] < flight_s:
        found.append(
            f"the flight takes {flight_s / 60.0:.1f} min, drone_{empty[0]} hovers "
            f"{empty[1]:.1f} min"
        )
    return Feasibility(
        scenario, at_rest, formation, hardest, moment, limit_deg,
        hover.sag_m - formation_of(scenario.system, "formation").load.collision.bottom_m,
        separation, flight_s, list(dict.fromkeys(found)),
        [*_cautions(formation, hardest), *hardware_cautions(scenario)],
    )  # fmt: skip


def first_empty(formation: Sequence[DroneMargins]) -> tuple[int, float] | None:
    """Number of the drone whose battery is at its reserve first, and when [min]; None without."""
    minutes = [(m.minutes, i) for i, m in enumerate(formation, 1) if m.minutes is not None]
    return (min(minutes)[1], min(minutes)[0]) if minutes else None


def _least(of: Sequence[DroneMargins]) -> float:
    return min(m.thrust_margin for m in of)


def _where(moment: Moment | None) -> str:
    return "" if moment is None else f"{moment.stage} at {moment.time_s:.1f} s"


def _problems(where: str, of: Sequence[DroneMargins], limit_deg: float) -> list[str]:
    found = []
    for i, m in enumerate(of, start=1):
        if m.thrust_margin < MIN_THRUST_MARGIN:
            found.append(
                f"{where}: drone_{i} has a thrust margin of {m.thrust_margin:.2f}, at least "
                f"{MIN_THRUST_MARGIN} is needed"
            )
        if m.tilt_deg > limit_deg:
            found.append(
                f"{where}: drone_{i} would lean {m.tilt_deg:.0f} degrees, the autopilot leans "
                f"{limit_deg:g} at most (MPC_TILTMAX_AIR)"
            )
    return found


def _cautions(formation: Sequence[DroneMargins], hardest: Sequence[DroneMargins]) -> list[str]:
    found = []
    for i, m in enumerate(formation, start=1):
        if m.empty_margin is not None and m.empty_margin < MIN_THRUST_MARGIN:
            found.append(
                f"drone_{i} has a thrust margin of {m.empty_margin:.2f} when its battery is at the "
                "reserve"
            )
    for i, (rest, m) in enumerate(zip(formation, hardest, strict=False), start=1):
        if m.tension_n < 0.1 * rest.tension_n:
            found.append(f"cable_{i} nearly goes slack at the hardest moment")
    return found


def margins(scenario: Scenario, forces: Forces, motion: Motion) -> list[DroneMargins]:
    """Margins of all drones for given forces.

    Args:
        scenario: The drones.
        forces: What they must give.
        motion: Where.
    """
    return [
        drone_margins(drone, thrust, float(tension))
        for drone, thrust, tension in zip(
            scenario.system.drones, forces.thrust_enu_n, forces.tension_n, strict=True
        )
    ]


def drone_margins(drone: Drone, thrust_enu_n: Array, tension_n: float) -> DroneMargins:
    """Margins of one drone.

    Args:
        drone: Its rotors, motors and battery.
        thrust_enu_n: Force that its rotors must give, (3,).
        tension_n: Of its cable at the load.
    """
    thrust_n = float(np.linalg.norm(thrust_enu_n))
    most_n = drone.max_thrust_n
    share = thrust_n / most_n
    speeds = [rotor.speed_max_rad_s * math.sqrt(share) for rotor in drone.rotors]
    throttle = np.mean([
        (w - r.speed_min_rad_s) / (r.speed_max_rad_s - r.speed_min_rad_s)
        for w, r in zip(speeds, drone.rotors, strict=True)
    ])  # fmt: skip
    power_w = electrical_power_w(drone, speeds)
    battery = drone.propulsion.battery if drone.propulsion else None
    minutes = empty = None
    if battery is not None and power_w is not None:
        minutes = battery.duration_s(power_w) / 60.0
        empty = full_thrust_n(drone, battery.reserve) / thrust_n
    return DroneMargins(
        thrust_n, most_n / thrust_n, empty,
        math.degrees(math.acos(np.clip(thrust_enu_n[2] / thrust_n, -1.0, 1.0))),
        math.degrees(math.acos(np.clip(thrust_enu_n[2] / most_n, -1.0, 1.0))),
        float(throttle), tension_n, power_w, minutes,
    )  # fmt: skip


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


def ceiling_m(scenario: Scenario, at_rest: Forces) -> float:
    """Height above sea level where the first drone's full thrust is what the formation needs.

    Thrust constants of rotors without a propeller are taken as those at sea level and 15 degrees.
    """
    # Drones that are alike differ only in what they must give.
    needed_n: dict[Drone, float] = {}
    for drone, force in zip(scenario.system.drones, at_rest.thrust_enu_n, strict=True):
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
    moved = build(Drone, data, "altitude")
    if moved.rotors[0].thrust_coefficient_n_s2 != drone.rotors[0].thrust_coefficient_n_s2:
        return moved.max_thrust_n
    assert moved.propulsion is not None
    at_home = drone.propulsion.air if drone.propulsion else type(moved.propulsion.air)()
    return drone.max_thrust_n * moved.propulsion.air.density_kg_m3 / at_home.density_kg_m3
