"""Checks before a flight: do the cables reach, can the rotors lift, is the load off the ground."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from musls_control.contingency.loss import MIN_THRUST_MARGIN
from musls_control.mission.plan import closest_pair, estimated_duration_s
from musls_control.mission.spec import FASTEST_M_S, LONGEST_S, MissionSpec
from musls_control.trajectories import Trajectory
from musls_description.config.errors import ConfigError
from musls_description.hanging.cone import Cone
from musls_description.hanging.equilibrium import (
    HangingEquilibrium,
    NoEquilibriumError,
    freed,
    hanging_equilibrium,
)
from musls_description.hanging.fitting import fitting_formation, why_none
from musls_description.hanging.ground import highest_rise_m
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.numerics.rotations import yaw_of
from musls_description.system.drone import tip_radius_m
from musls_description.system.slung_system import SlungLoadSystem, formation_of
from musls_sim.plants.interface import substeps
from musls_sim.plants.massless.start import motion_of
from musls_sim.plants.rigid_links.step_control import (
    ENGAGEMENT_MARGIN,
    TENSION_MARGIN,
    design_tension_n,
    largest_stable_step_s,
)
from musls_sim.plants.trim import drag_n_s_m
from musls_sim.scenario.scenario import Scenario

# ---------- Mission: length, size, speed, and whether cables stay slack

LONG_FLIGHT_S = 3600.0
LARGE_BAG_BYTES = 1e9
"""A longer flight, or a larger bag, is announced before it starts."""

SLOW_SUBSTEPS = 4
"""So many steps of rigid links in a control period are announced before a flight."""

LIGHT_SEGMENT_KG = 2e-5
"""Mass of a segment below which a slack elastic cable flies at less than 30 times real time."""

FARTHEST_M = 10_000.0
"""Of the load from the origin: the world is flat, and the plants lose digits farther out."""

FASTEST_TURN_RAD_S = 50.0
"""Of the load's set-point; drones would have to go round it once in an eighth of a second."""

ROW_BYTES, ROW_DRONE_BYTES = 640, 780
"""Of one sample of everything that is recorded at `recording.rate_hz`: once, and per drone."""

SHAPE_BYTES, SHAPE_POINT_BYTES = 200, 24
"""Of one sample of a cable's shape, and of each point of it."""

PX4_TILT_RAD = np.deg2rad(45.0)
"""PX4's MPC_TILTMAX_AIR: how far a drone leans against the wind."""


def check_mission(scenario: Scenario) -> None:
    """Refuse a mission that never ends, or that no system can follow (raises ConfigError)."""
    for k, stage in enumerate(scenario.mission.stages):
        _check_stage(f"mission.stages.{k}", stage)
    if scenario.start.kind == "ground":
        _check_rise(formation_of(scenario.system, "start = ground"), scenario.mission)
    duration_s = flight_duration_s(scenario)
    if duration_s > LONGEST_S:
        raise ConfigError(
            f"mission: the flight would last about {duration_s:.3g} s, at most {LONGEST_S:g} s "
            "(a day) are possible"
        )


def cautions(scenario: Scenario) -> Iterator[str]:
    """Cautions of a flight that is possible, one line each."""
    duration_s, size = flight_duration_s(scenario), bag_bytes_per_s(scenario)
    if duration_s > LONG_FLIGHT_S or duration_s * size > LARGE_BAG_BYTES:
        yield (
            f"a long flight: about {duration_s / 60.0:.0f} min of simulated time, and a bag of "
            f"about {_size_text(duration_s * size)} (recording.rate_hz and "
            "recording.shape_rate_hz make it smaller)"
        )
    yield from _slack_caution(scenario)
    yield from _wind_caution(scenario)
    yield from _twist_caution(scenario)
    yield from _step_caution(scenario)
    yield from _light_cable_caution(scenario)


def flight_duration_s(scenario: Scenario) -> float:
    """About how long the flight of a scenario takes, in simulated time [s]."""
    return estimated_duration_s(scenario.mission, lands=scenario.start.kind == "ground")


def bag_bytes_per_s(scenario: Scenario) -> float:
    """About how many bytes are recorded in a second of simulated time."""
    system, recording = scenario.system, scenario.recording
    row = ROW_BYTES + ROW_DRONE_BYTES * system.n_drones
    shapes = sum(SHAPE_BYTES + SHAPE_POINT_BYTES * (c.links + 2) for c in system.cables)
    return recording.rate_hz * row + recording.shape_rate_hz * shapes


def _size_text(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def _check_stage(where: str, stage: Trajectory) -> None:
    """Refuse a stage that is endless, too far away or too fast."""
    duration_s = stage.duration_s
    if not duration_s <= LONGEST_S:
        raise ConfigError(
            f"{where}: lasts {duration_s:g} s, at most {LONGEST_S:g} s (a day) are possible"
        )
    motion = stage.derivatives(np.linspace(0.0, min(duration_s, stage.period_s), 200))
    if not np.isfinite(motion[:, :2]).all():
        raise ConfigError(f"{where}: the set-point is not finite")
    distance_m = float(np.abs(motion[:, 0, :3]).max())
    if distance_m > FARTHEST_M:
        raise ConfigError(
            f"{where}: the set-point goes {distance_m:g} m away from the origin, at most "
            f"{FARTHEST_M:g} m are possible (the world is flat)"
        )
    speed_m_s = float(np.linalg.norm(motion[:, 1, :3], axis=1).max())
    turn_rad_s = float(np.abs(motion[:, 1, 3]).max())
    if speed_m_s > FASTEST_M_S:
        raise ConfigError(
            f"{where}: the set-point moves at {speed_m_s:.4g} m/s, faster than multirotors fly "
            f"(at most {FASTEST_M_S:g} m/s)"
        )
    if turn_rad_s > FASTEST_TURN_RAD_S:
        raise ConfigError(
            f"{where}: the set-point turns at {turn_rad_s:.4g} rad/s, at most "
            f"{FASTEST_TURN_RAD_S:g} rad/s are possible"
        )


def _check_rise(system: SlungLoadSystem, mission: MissionSpec) -> None:
    """Refuse a rise beyond the cables: the drones would be stopped with a jerk."""
    for i, highest_m in enumerate(highest_rise_m(system)):
        if mission.rise_m > highest_m:
            raise ConfigError(
                f"mission.rise_m = {mission.rise_m:g}: the cable of drone_{i + 1} "
                f"({system.cables[i].length_m:g} m) is taut {highest_m:.3f} m above its place on "
                "the ground; the drones form up with slack cables"
            )


def _slack_caution(scenario: Scenario) -> Iterator[str]:
    """Whether the cables hang slack when the drones have formed up over the standing load."""
    if scenario.start.kind != "ground":
        return
    system, mission = formation_of(scenario.system, "start = ground"), scenario.mission
    places = scenario.formation.offsets_m(system.n_drones)
    for i, (drone, cable) in enumerate(zip(system.drones, system.cables, strict=True)):
        at_load = np.array(system.load.cable_attachments_m[i])
        rise_m = (
            mission.slack_height_m + places[i, 2] + drone.cable_attachment_m[2]
            - (at_load[2] - system.load.collision.bottom_m)
        )  # fmt: skip
        apart_m = np.linalg.norm(places[i, :2]) - np.linalg.norm(at_load[:2])
        if np.hypot(rise_m, apart_m) >= cable.length_m:
            yield (
                f"mission.slack_height_m = {mission.slack_height_m:g}: cable_{i + 1} is taut "
                "before the load is to be lifted; choose a lower one"
            )
            return


def _twist_caution(scenario: Scenario) -> Iterator[str]:
    """Whether a load that leans after a loss turns the drones against their yaw control."""
    stiff = any(cable.twist != "free" for cable in scenario.system.cables)
    if scenario.contingency is not None and scenario.cable_model == "rigid_links" and stiff:
        yield (
            "contingency: rigid links that do not twist turn the drones when the load leans, which "
            "takes their thrust; choose system.cables.twist: free"
        )


def _step_caution(scenario: Scenario) -> Iterator[str]:
    """Whether light links ask for steps so short that the flight is slow, and which would not."""
    if scenario.cable_model != "rigid_links" or scenario.physics.step_size_s != "auto":
        return
    system = formation_of(scenario.system, "formation")
    snaps = any(stage.snaps_taut for stage in scenario.mission.stages)
    margin = ENGAGEMENT_MARGIN if snaps else TENSION_MARGIN
    tension_n = design_tension_n(system, scenario.physics.gravity_m_s2, margin)
    steps_s = [largest_stable_step_s(cable, tension_n) for cable in system.cables]
    k = int(np.argmin(steps_s))
    if substeps(steps_s[k]) < SLOW_SUBSTEPS:
        return
    cable = system.cables[k]
    fewer = [
        links
        for links in range(2, cable.links)
        if substeps(largest_stable_step_s(replace(cable, links=links), tension_n)) <= 2
    ]
    cure = f"system.cables.links = {fewer[-1]} is fast, so is " if fewer else "fast is "
    yield (
        f"a slow flight: the {cable.links} links of cable_{k + 1}, {cable.link_mass_kg:.2g} kg "
        f"each, ask for steps of {1e3 * steps_s[k]:.2g} ms, {substeps(steps_s[k])} in a control "
        f"period; {cure}cable_model = massless"
    )


def _light_cable_caution(scenario: Scenario) -> Iterator[str]:
    """Whether elastic cables are so light that while they are slack they ask for tiny steps."""
    if scenario.cable_model != "elastic" or scenario.start.kind != "ground":
        return
    for k, cable in enumerate(scenario.system.cables, start=1):
        if cable.links > 1 and cable.link_mass_kg < LIGHT_SEGMENT_KG:
            fewer = max(1, int(cable.mass_kg / LIGHT_SEGMENT_KG))
            yield (
                f"a slow flight: the {cable.links} segments of cable_{k}, "
                f"{cable.link_mass_kg:.2g} kg each, take tiny steps as long as they are slack; "
                f"system.cables.links = {fewer} is fast, so is cable_model = massless"
            )
            return


def _wind_caution(scenario: Scenario) -> Iterator[str]:
    """Whether the drones can hold against the wind, gusts of two standard deviations included."""
    wind, system = scenario.wind, scenario.system
    gust = 2.0 * np.array(wind.gust_std_m_s)
    speed_m_s = float(np.linalg.norm((np.abs(wind.mean_enu_m_s) + gust)[:2]))
    if speed_m_s == 0.0:
        return
    gravity = scenario.physics.gravity_m_s2
    weight_n = system.mass_kg * gravity
    load_n_s_m = 0.0 if system.load is None else max(system.load.drag_n_s_m[:2])
    hover_n = weight_n / system.n_drones
    drag_n = speed_m_s * (load_n_s_m + sum(max(drag_n_s_m(d, hover_n)[:2]) for d in system.drones))
    most_n = sum(drone.max_thrust_n for drone in system.drones)
    held_n = min(weight_n * np.tan(PX4_TILT_RAD), np.sqrt(max(most_n**2 - weight_n**2, 0.0)))
    if drag_n > held_n:
        yield (
            f"wind of {speed_m_s:.3g} m/s pushes with about {drag_n:.3g} N, but the drones hold "
            f"against {held_n:.3g} N at most: they will be blown away"
        )


# ---------- Hover: how the system hangs in formation

MAX_SAG_M = 0.5
"""Distance of the hanging load from its set-point beyond which the formation does not fit."""


NAMED_MISFIT_M = 0.01
"""From where a drone carries its share; a place farther away is named."""

MOST_PULL = 2.0
"""Tension of all cables over the weight beyond which a formation is named as the cause."""


LARGEST_TURN_RAD = np.radians(5.0)
"""Yaw of the hanging load, or of a drone on its cable, from its set-point that is named; and
tilt of the load."""

STEEPEST_LOAD_RAD = np.radians(45.0)
"""Tilt of a load beyond which a formation does not hold it."""


@dataclass(frozen=True)
class Hover:
    """Equilibrium of the system in formation.

    Attributes:
        thrust_margin: Largest over needed thrust of the drone that works hardest.
        weakest: Number of that drone, from 1.
        sag_m: How much lower the load hangs than its set-point.
        turn_rad: By how much the load is turned from its set-point's yaw.
        tilt_rad: Angle of the load's z axis from upright; 0 of a point mass.
        drone_turn_rad: By how much the cables turn the drones from their set-points' yaws,
            (n_drones,).
    """

    equilibrium: HangingEquilibrium
    thrust_margin: float
    weakest: int
    sag_m: float
    turn_rad: float
    tilt_rad: float
    drone_turn_rad: np.ndarray


def formation_refusal(system: SlungLoadSystem, cone: Cone, reason: str) -> str:
    """Why a formation is refused: what is wrong with the one that was given, or why there is none.

    One that follows from the system has no key that anybody set.
    """
    none = why_none(system)
    if none is not None and fitting_formation(system, {}) == cone:
        return f"formation: {none}"
    key = f"formation.radius_m = {cone.radius_m:g}, formation.height_m = {cone.height_m:g}"
    key = key if cone.places_m is None else "formation.places_m"
    return f"{key}: {reason}; {none or '`musls formation` proposes places that fit'}"


def hover_in_formation(scenario: Scenario, load_pose: np.ndarray) -> Hover:
    """Hang the system below its formation.

    `load_pose`: set-point of the load: x, y, z [m], yaw [rad], (4,).
    """
    cone = scenario.formation
    system = freed(formation_of(scenario.system, "formation"))
    drones, yaws = cone.poses(load_pose[:3], load_pose[3], system.n_drones)
    try:
        equilibrium = hanging_equilibrium(
            system, drones, scenario.physics.gravity_m_s2, float(load_pose[3]), yaws
        )
    except NoEquilibriumError as error:
        raise ConfigError(formation_refusal(system, cone, str(error))) from None
    needed = np.linalg.norm(equilibrium.drone_force_n, axis=1)
    margins = np.array([d.max_thrust_n for d in system.drones]) / needed
    sag = load_pose[2] - equilibrium.configuration.load_position_enu_m[2]
    hanging = yaw_of(motion_of(system, equilibrium.configuration).orientation_wxyz)
    turns = np.angle(np.exp(1j * (hanging - [load_pose[3], *yaws])))
    upright = 1.0 if system.load.point_mass else equilibrium.configuration.load_rotation[2, 2]
    return Hover(
        equilibrium, float(margins.min()), int(margins.argmin()) + 1, float(sag),
        float(turns[0]), float(np.arccos(np.clip(upright, -1.0, 1.0))), turns[1:],
    )  # fmt: skip


def check_hover(scenario: Scenario, hover: Hover, *, force: bool = False) -> None:
    """Refuse a flight that cannot work.

    Warns:
        UserWarning: A very long flight, wind the drones cannot hold against, cables not slack.
    """
    check_mission(scenario)
    if hover.thrust_margin < MIN_THRUST_MARGIN and not force:
        _check_pull(scenario, hover)
        gravity = scenario.physics.gravity_m_s2
        raise ConfigError(
            f"the rotors cannot lift the load: thrust margin {hover.thrust_margin:.2f} (largest "
            f"over hover thrust of drone_{hover.weakest}), at least {MIN_THRUST_MARGIN} is needed"
            f"{'' if gravity == STANDARD_GRAVITY_M_S2 else f' at gravity {gravity:g} m/s2'}; "
            "--force flies anyway"
        )
    _check_discs(scenario, force=force)
    if hover.tilt_rad > STEEPEST_LOAD_RAD and not force:
        reason = f"the load would hang tilted by {np.degrees(hover.tilt_rad):.0f} deg"
        system = formation_of(scenario.system, "formation")
        raise ConfigError(formation_refusal(system, scenario.formation, reason))
    if abs(hover.sag_m) > MAX_SAG_M:
        where = "below" if hover.sag_m > 0.0 else "above"
        fitting = scenario.formation.height_m + hover.sag_m
        raise ConfigError(
            f"formation.height_m = {scenario.formation.height_m:g}: the load would hang "
            f"{abs(hover.sag_m):.2f} m {where} its set-point; about {fitting:.2f} fits these cables"
        )
    _check_ground(scenario, hover)
    for text in [
        *_misfit_caution(scenario, hover),
        *_tilt_caution(hover),
        *_turn_caution(scenario, hover),
        *_drone_turn_caution(scenario, hover),
        *cautions(scenario),
    ]:
        warnings.warn(text, stacklevel=2)


def _check_pull(scenario: Scenario, hover: Hover) -> None:
    """Refuse cables that pull at each other with much more than the weight of the load."""
    system = formation_of(scenario.system, "formation")
    weight_n = system.carried_mass_kg * scenario.physics.gravity_m_s2
    pull_n = float(hover.equilibrium.load_end_tension_n.sum())
    if pull_n > MOST_PULL * weight_n:
        reason = (
            f"the cables would pull at each other, with {pull_n:.3g} N in all for a load of "
            f"{weight_n:.3g} N; drone_{hover.weakest} has a thrust margin of "
            f"{hover.thrust_margin:.2f}"
        )
        raise ConfigError(formation_refusal(system, scenario.formation, reason))


def _check_discs(scenario: Scenario, *, force: bool) -> None:
    """Refuse a formation in which rotors would hit each other."""
    system = formation_of(scenario.system, "formation")
    places = scenario.formation.offsets_m(system.n_drones)
    radii = np.array([tip_radius_m(drone) for drone in system.drones])
    _, i, j, centres_m, tips_m = closest_pair(places[None], radii)
    if tips_m < 0.0 and not force:
        reason = (
            f"the rotor discs of drone_{i + 1} and drone_{j + 1} overlap, {centres_m:.2f} m from "
            "centre to centre (--force flies anyway)"
        )
        raise ConfigError(formation_refusal(system, scenario.formation, reason))


def _misfit_caution(scenario: Scenario, hover: Hover) -> Iterator[str]:
    """Whether a place that was given makes its drone carry all, or nothing."""
    off = hover.equilibrium.misfit_m
    k = int(np.linalg.norm(off, axis=1).argmax())
    if np.linalg.norm(off[k]) < NAMED_MISFIT_M:
        return
    too_far = float(off[k] @ hover.equilibrium.cable_force_n[k]) < 0.0
    what = f"formation.places_m.{k}" if scenario.formation.places_m is not None else "formation"
    yield (
        f"{what}: drone_{k + 1} is {np.linalg.norm(off[k]):.3f} m too "
        f"{'far from' if too_far else 'near to'} the load for its cable beside the others: "
        f"exactly there it carries {'much more than' if too_far else 'little of'} its share; "
        f"[{', '.join(f'{v:.3f}' for v in off[k])}] m from there it carries its share"
    )


def _tilt_caution(hover: Hover) -> Iterator[str]:
    """Whether the load hangs askew."""
    if hover.tilt_rad > LARGEST_TURN_RAD:
        yield (
            f"formation: the load will hang tilted by {np.degrees(hover.tilt_rad):.0f} deg; "
            "`musls formation` proposes places that hold it level, if there are any"
        )


def _turn_caution(scenario: Scenario, hover: Hover) -> list[str]:
    """Whether the formation turns the load away from the yaw that it is to have."""
    system = formation_of(scenario.system, "formation")
    places = np.array(system.load.cable_attachments_m)[:, :2]
    if system.n_drones == 1 or system.load.point_mass or not places.any():
        return []  # nothing, or only the cables' twist, holds its yaw
    if abs(hover.turn_rad) < LARGEST_TURN_RAD:
        return []
    if scenario.formation.places_m is not None:
        remedy = "turn formation.places_m back by it"
    else:
        fitting = scenario.formation.first_azimuth_rad - hover.turn_rad
        fitting = float(np.angle(np.exp(1j * fitting)))
        remedy = f"formation.first_azimuth_rad = {fitting:.3f} fits its attachments"
    return [
        f"formation: the load will hang turned by {np.degrees(hover.turn_rad):.1f} deg from the "
        f"yaw of its set-point; {remedy}"
    ]


def _drone_turn_caution(scenario: Scenario, hover: Hover) -> Iterator[str]:
    """Whether a cable that does not twist turns its drone away from the yaw that it is to have."""
    turned = np.abs(hover.drone_turn_rad)
    k = int(turned.argmax())
    if scenario.cable_model == "rigid_links" and turned[k] > LARGEST_TURN_RAD:
        yield (
            f"system.cables.{k}.twist = {scenario.system.cables[k].twist}: the cable turns "
            f"drone_{k + 1} by {np.degrees(turned[k]):.1f} deg from the yaw of its set-point; "
            "with system.cables.twist = free it looks where it is to"
        )


def _check_ground(scenario: Scenario, hover: Hover) -> None:
    """Refuse a load that would drag over the ground; a flight from there may set it down."""
    heights = [
        (stage.pose(np.linspace(0.0, stage.duration_s, 200))[:, 2].min(), k)
        for k, stage in enumerate(scenario.mission.stages)
        if not stage.sets_load_down or scenario.start.kind != "ground"
    ]
    if not heights:
        return
    lowest = min(heights)
    system = formation_of(scenario.system, "formation")
    clearance = lowest[0] - hover.sag_m + system.load.collision.bottom_m
    if clearance < 0.0:
        raise ConfigError(
            f"mission.stages.{lowest[1]}: the load would touch the ground: lowest set-point "
            f"{lowest[0]:g} m, and it hangs {hover.sag_m:.2f} m lower than its set-point in this "
            "formation; raise the stage or formation.height_m"
        )
