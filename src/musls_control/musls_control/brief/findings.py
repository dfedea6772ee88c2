"""Findings against a flight: the one list that is checked before drones start.

Each check looks at how the system hangs, at the plan and at the brief, and tells a `Finding`, or
nothing; `AT_REST` and `IN_PLAN` list them all in the order in which they are told.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from musls_control.brief.brief import Brief
from musls_control.brief.margins import forces_at_rest, margins, rig_margins, why_uneven
from musls_control.mission.plan import FlightPlan, closest_in_plan, closest_pair
from musls_control.mission.spec import FASTEST_M_S, GROUND_PHASES, LONGEST_S
from musls_control.trajectories import Trajectory
from musls_description.config.errors import ConfigError
from musls_description.hanging.hang import MIN_THRUST_MARGIN, Hanging, margin_text, shown_beside
from musls_description.numerics.arrays import Array
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.numerics.rotations import from_yaw, rotate, wrapped
from musls_description.system.contacts import (
    CLOSEST,
    TOUCHING,
    own_solids,
    watch_bodies,
    watch_cable,
)
from musls_description.system.drone import drag_n_s_m, tip_radius_m
from musls_description.system.obstacles import ground_at, solids_of
from musls_description.system.slung_system import RigSystem


@dataclass(frozen=True)
class Finding:
    """One thing that speaks against a flight, or is to be known of it.

    Attributes:
        text: Description in one line.
        refuses: Whether the flight is refused for it; False for a caution.
        can_be_forced: Whether who knows better may fly nevertheless.
        key: Name of the check that found it.
    """

    text: str
    refuses: bool = True
    can_be_forced: bool = False
    key: str = ""


Check = Callable[[Hanging, Brief], Finding | None]
"""A look at how the system hangs; None where nothing is wrong."""


def findings(brief: Brief, plan: FlightPlan | None = None) -> Iterator[Finding]:
    """All findings before a flight, in the order in which they are reported.

    Without a `plan` how the system hangs is looked at, with one what happens along it.
    """
    if plan is not None:
        for look in IN_PLAN:
            for finding in look(brief, plan):
                yield _named(finding, look)
        return
    if brief.hanging is None or not brief.in_formation:
        return
    hanging = brief.hanging
    if hanging.refusal is not None:  # a stage too far away leaves no digits for a formation
        yield check_stages(hanging, brief) or Finding(str(hanging.refusal), key="formation")
        return
    for check in AT_REST:
        if found_one := check(hanging, brief):
            yield _named(found_one, check)


def _named(finding: Finding, check: Callable[..., object]) -> Finding:
    key = check.__name__.removeprefix("check_")
    return Finding(finding.text, finding.refuses, finding.can_be_forced, key)


def refuse_or_warn(brief: Brief, *, force: bool = False, plan: FlightPlan | None = None) -> None:
    """Refuse a flight that cannot work, and warn of doubtful ones; see `findings`.

    Raises:
        ConfigError: The flight cannot work; for some reasons it is flown with `force`.

    Warns:
        UserWarning: What is to be known of a flight that is possible, or is forced.
    """
    cautions = []
    for finding in findings(brief, plan):
        if not finding.refuses:
            cautions.append(finding.text)
        elif not finding.can_be_forced:
            raise ConfigError(finding.text)
        elif not force:
            raise ConfigError(f"{finding.text}; --force flies anyway")
    for text in cautions:
        warnings.warn(text, stacklevel=2)


def refuse_standing(brief: Brief, *, force: bool = False) -> None:
    """Check equilibrium and plan from places on the ground, without a plant, and refuse or warn."""
    refuse_or_warn(brief, force=force)
    hanging = brief.hanging_for("start = ground")
    places, _ = hanging.on_ground.bodies(hanging.system)
    refuse_or_warn(brief, force=force, plan=brief.plan_from(places[0], 0.0, places[1:]))


def refuse_stages(brief: Brief) -> None:
    """Refuse stages of rigs, and of drones on their own, that no system flies (ConfigError)."""
    mission = brief.mission
    lists = {f"mission.drones.{name}": own for name, own in mission.drones.items()}
    if brief.hanging is None:  # those of a formation are among its findings
        lists["mission.stages"] = mission.stages
    for where, stages in lists.items():
        for k, stage in enumerate(stages):
            if wrong := _wrong_stage(stage):
                raise ConfigError(f"{where}.{k}: {wrong}")


# ---------- Mission: length, size, speed

LONG_FLIGHT_S = 3600.0
LARGE_BAG_BYTES = 1e9
"""A longer flight, or a larger bag, is announced before it starts."""

LIGHT_SEGMENT_KG = 2e-5
"""Mass of a segment below which a slack elastic cable flies at less than 30 times real time."""

FARTHEST_M = 10_000.0
"""Largest distance of the load from the origin: the world is flat, and the plants lose digits
farther out."""

FASTEST_TURN_RAD_S = 50.0
"""Largest yaw rate of the load's set-point; drones would have to go round it once in an eighth of a
second."""

ROW_BYTES = 640
ROW_DRONE_BYTES = 780
"""Size of one sample of everything that is recorded at `recording.rate_hz`: fixed part, and part
per drone."""

SHAPE_BYTES = 200
SHAPE_POINT_BYTES = 24
"""Size of one sample of a cable's shape: fixed part, and part per point."""

PX4_TILT_RAD = np.deg2rad(45.0)
"""PX4's MPC_TILTMAX_AIR: how far a drone leans against the wind."""


def check_stages(hanging: Hanging, brief: Brief) -> Finding | None:
    """Stages that are endless, too far away or too fast for any system."""
    for k, stage in enumerate(brief.mission.stages):
        if wrong := _wrong_stage(stage):
            return Finding(f"mission.stages.{k}: {wrong}")
    return None


def _wrong_stage(stage: Trajectory) -> str | None:
    duration_s = stage.duration_s
    if not duration_s <= LONGEST_S:
        return f"lasts {duration_s:g} s, at most {LONGEST_S:g} s (a day) are possible"
    motion = stage.derivatives(np.linspace(0.0, min(duration_s, stage.period_s), 200))
    if not np.isfinite(motion[:, :2]).all():
        return "the set-point is not finite"
    distance_m = float(np.abs(motion[:, 0, :3]).max())
    if distance_m > FARTHEST_M:
        return (
            f"the set-point goes {distance_m:g} m away from the origin, at most "
            f"{FARTHEST_M:g} m are possible (the world is flat)"
        )
    speed_m_s = float(np.linalg.norm(motion[:, 1, :3], axis=1).max())
    turn_rad_s = float(np.abs(motion[:, 1, 3]).max())
    if speed_m_s > FASTEST_M_S:
        return (
            f"the set-point moves at {speed_m_s:.4g} m/s, faster than multirotors fly "
            f"(at most {FASTEST_M_S:g} m/s)"
        )
    if turn_rad_s > FASTEST_TURN_RAD_S:
        return (
            f"the set-point turns at {turn_rad_s:.4g} rad/s, at most "
            f"{FASTEST_TURN_RAD_S:g} rad/s are possible"
        )
    return None


def check_rise(hanging: Hanging, brief: Brief) -> Finding | None:
    """A rise beyond the cables: the drones would be stopped with a jerk."""
    if not brief.lands:
        return None
    for i, highest_m in enumerate(hanging.highest_rise_m):
        if brief.mission.rise_m > highest_m:
            return Finding(
                f"mission.rise_m = {brief.mission.rise_m:g}: the cable of drone_{i + 1} "
                f"({hanging.system.cables[i].length_m:g} m) is taut {highest_m:.3f} m above its "
                "place on the ground; the drones form up with slack cables"
            )
    return None


def check_duration(hanging: Hanging, brief: Brief) -> Finding | None:
    """A flight that never ends, or takes long."""
    duration_s = brief.flight_s
    size = bag_bytes_per_s(brief)
    if duration_s > LONGEST_S:
        return Finding(
            f"mission: the flight would last about {duration_s:.3g} s, at most {LONGEST_S:g} s "
            "(a day) are possible"
        )
    if duration_s > LONG_FLIGHT_S or duration_s * size > LARGE_BAG_BYTES:
        return Finding(
            f"a long flight: about {duration_s / 60.0:.0f} min of simulated time, and a bag of "
            f"about {_size_text(duration_s * size)} (recording.rate_hz and "
            "recording.shape_rate_hz make it smaller)",
            refuses=False,
        )
    return None


def bag_bytes_per_s(brief: Brief) -> float:
    """Estimated size of the recording of one second of simulated time."""
    system = brief.system
    rate_hz, shape_rate_hz = brief.rates_hz
    row = ROW_BYTES + ROW_DRONE_BYTES * system.n_drones
    shapes = sum(SHAPE_BYTES + SHAPE_POINT_BYTES * (c.links + 2) for c in system.cables)
    return rate_hz * row + shape_rate_hz * shapes


def _size_text(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


# ---------- Formation: how the system hangs

MAX_SAG_M = 0.5
"""Distance of the hanging load from its set-point beyond which the formation does not fit."""

NAMED_MISFIT_M = 0.01
"""Distance between a drone's place and the place where it carries its share, from which the drone
is named."""

MOST_PULL = 2.0
"""Tension of all cables over the weight beyond which a formation is named as the cause."""

LARGEST_TURN_RAD = np.radians(5.0)
"""Yaw of the hanging load, or of a drone on its cable, from its set-point that is named; and
tilt of the load."""

STEEPEST_LOAD_RAD = np.radians(45.0)
"""Tilt of a load beyond which a formation does not hold it."""


def check_lift(hanging: Hanging, brief: Brief) -> Finding | None:
    """Rotors that cannot lift the load, or cables that pull at each other with more than it."""
    margin = hanging.thrust_margin
    weakest = hanging.weakest
    if margin >= MIN_THRUST_MARGIN:
        return None
    gravity = hanging.gravity_m_s2
    weight_n = hanging.system.carried_mass_kg * gravity
    pull_n = float(hanging.rest.load_end_tension_n.sum())
    if pull_n > MOST_PULL * weight_n:
        reason = (
            f"the cables would pull at each other, with {pull_n:.3g} N in all for a load of "
            f"{weight_n:.3g} N; drone_{weakest} has a thrust margin of {margin_text(margin)}"
        )
        return Finding(str(hanging.refuse(reason)), can_be_forced=True)
    thrust_n = float(np.linalg.norm(hanging.rest.drone_force_n[weakest - 1]))
    return Finding(
        f"the rotors cannot lift the load: {hanging.margin_sentence}"
        f"{'' if gravity == STANDARD_GRAVITY_M_S2 else f' at gravity {gravity:g} m/s2'}"
        f"{why_uneven(hanging.system.drones[weakest - 1], thrust_n, margin)}",
        can_be_forced=True,
    )


def check_discs(hanging: Hanging, brief: Brief) -> Finding | None:
    """A formation in which rotors would hit each other."""
    system = hanging.system
    places = hanging.formation.offsets_m(system.n_drones)
    radii = np.array([tip_radius_m(drone) for drone in system.drones])
    _, i, j, centres_m, tips_m = closest_pair(places[None], radii)
    if tips_m >= 0.0:
        return None
    reason = (
        f"the rotor discs of drone_{i + 1} and drone_{j + 1} overlap, {centres_m:.2f} m from "
        "centre to centre"
    )
    return Finding(str(hanging.refuse(reason)), can_be_forced=True)


def check_upright(hanging: Hanging, brief: Brief) -> Finding | None:
    """RotorTM's law above attachments that are closer together than its drones may fly.

    Of the forces that hold the load it takes the least: cables upright, drones above attachments.
    """
    controller = brief.controller
    system = hanging.system
    if controller.kind != "rotortm" or getattr(controller, "links", "") != "cables":
        return None
    places = np.array(system.load.cable_attachments_m)[None, : system.n_drones]
    radii = np.array([tip_radius_m(drone) for drone in system.drones])
    _, i, j, centres_m, tips_m = closest_pair(places, radii)
    if system.n_drones < 2 or tips_m >= 0.0:
        return None
    return Finding(
        f"controller.kind = rotortm: its cables stand upright, and above these attachments the "
        f"rotor discs of drone_{i + 1} and drone_{j + 1} overlap, {centres_m:.2f} m from centre to "
        f"centre: give system.load.cable_attachments_m at least {centres_m - tips_m:.2f} m apart, "
        "smaller drones, or controller.kind = formation or payload"
    )


def check_tilt(hanging: Hanging, brief: Brief) -> Finding | None:
    """A load that hangs askew: below one hook, or hooks in a line, it may."""
    tilt_deg = np.degrees(hanging.tilt_rad)
    system = hanging.system
    hooks = np.array(system.load.cable_attachments_m)[: system.n_drones]
    swings_free = np.linalg.matrix_rank(hooks - hooks.mean(axis=0), tol=1e-6) < 2
    if hanging.tilt_rad > STEEPEST_LOAD_RAD and not swings_free:
        reason = f"the load would hang tilted by {tilt_deg:.0f} deg"
        return Finding(str(hanging.refuse(reason)), can_be_forced=True)
    if hanging.tilt_rad > LARGEST_TURN_RAD:
        return Finding(
            f"formation: the load will hang tilted by {tilt_deg:.0f} deg; "
            "`musls formation` proposes places that hold it level, if there are any",
            refuses=False,
        )
    return None


def check_sag(hanging: Hanging, brief: Brief) -> Finding | None:
    """A formation that is too high or too low for its cables."""
    sag_m = hanging.sag_m
    cone = hanging.formation
    if abs(sag_m) <= MAX_SAG_M:
        return None
    where = "below" if sag_m > 0.0 else "above"
    move = f"move all of them {abs(sag_m):.2f} m {'up' if sag_m > 0.0 else 'down'}"
    key = "formation.places_m"
    remedy = move
    if cone.places_m is None:
        key = f"formation.height_m = {cone.height_m:g}"
        remedy = f"about {cone.height_m + sag_m:.2f} fits these cables"
    return Finding(f"{key}: the load would hang {abs(sag_m):.2f} m {where} its set-point; {remedy}")


def check_ground(hanging: Hanging, brief: Brief) -> Finding | None:
    """A load that would drag over flat ground; a flight from there may set it down."""
    if hanging.ground is not None:
        return None  # see `check_uneven_ground`
    heights = [
        (stage.pose(np.linspace(0.0, stage.duration_s, 200))[:, 2].min(), k)
        for k, stage in enumerate(brief.mission.stages)
        if not stage.sets_load_down or not brief.lands
    ]
    if not heights:
        return None
    lowest = min(heights)
    sag_m = hanging.sag_m
    if lowest[0] - sag_m + hanging.system.load.collision.bottom_m >= 0.0:
        return None
    return Finding(
        f"mission.stages.{lowest[1]}: the load would touch the ground: lowest set-point "
        f"{lowest[0]:g} m, and it hangs {sag_m:.2f} m lower than its set-point in this "
        "formation; raise the stage or formation.height_m"
    )


def check_misfit(hanging: Hanging, brief: Brief) -> Finding | None:
    """A place that was given and makes its drone carry all, or nothing."""
    off = hanging.rest.misfit_m
    k = int(np.linalg.norm(off, axis=1).argmax())
    if np.linalg.norm(off[k]) < NAMED_MISFIT_M:
        return None
    too_far = float(off[k] @ hanging.rest.cable_force_n[k]) < 0.0
    what = f"formation.places_m.{k}" if hanging.formation.places_m is not None else "formation"
    return Finding(
        f"{what}: drone_{k + 1} is {np.linalg.norm(off[k]):.3f} m too "
        f"{'far from' if too_far else 'near to'} the load for its cable beside the others: "
        f"exactly there it carries {'much more than' if too_far else 'little of'} its share; "
        f"[{', '.join(f'{v:.3f}' for v in off[k])}] m from there it carries its share",
        refuses=False,
    )


def check_turn(hanging: Hanging, brief: Brief) -> Finding | None:
    """A formation that turns the load away from the yaw that it is to have."""
    system = hanging.system
    cone = hanging.formation
    places = np.array(system.load.cable_attachments_m)[:, :2]
    if system.n_drones == 1 or system.load.point_mass or not places.any():
        return None  # nothing, or only the cables' twist, holds its yaw
    if abs(hanging.turn_rad) < LARGEST_TURN_RAD:
        return None
    remedy = "turn formation.places_m back by it"
    if cone.places_m is None:
        fitting = float(wrapped(cone.first_azimuth_rad - hanging.turn_rad))
        remedy = f"formation.first_azimuth_rad = {fitting:.3f} fits its attachments"
    return Finding(
        f"formation: the load will hang turned by {np.degrees(hanging.turn_rad):.1f} deg from the "
        f"yaw of its set-point; {remedy}",
        refuses=False,
    )


def check_drone_turn(hanging: Hanging, brief: Brief) -> Finding | None:
    """A cable that does not twist and turns its drone away from the yaw that it is to have."""
    turn_rad = np.abs(hanging.drone_turn_rad).round(9)  # the first one of equals, not by rounding
    k = int(turn_rad.argmax())
    if brief.cable_model != "rigid_links" or turn_rad[k] <= LARGEST_TURN_RAD:
        return None
    return Finding(
        f"system.cables.{k}.twist = {hanging.system.cables[k].twist}: the cable turns "
        f"drone_{k + 1} by {np.degrees(turn_rad[k]):.1f} deg from the yaw of its set-point; "
        "with system.cables.twist = free it looks where it is to",
        refuses=False,
    )


# ---------- Cables and wind


def check_slack(hanging: Hanging, brief: Brief) -> Finding | None:
    """Cables that are taut before the drones have formed up over the standing load."""
    if not brief.lands:
        return None
    system = hanging.system
    mission = brief.mission
    places = hanging.formation.offsets_m(system.n_drones)
    for i, (drone, cable) in enumerate(zip(system.drones, system.cables, strict=True)):
        at_load = np.array(system.load.cable_attachments_m[i])
        rise_m = (
            mission.slack_height_m
            + places[i, 2]
            + drone.cable_attachment_m[2]
            - (at_load[2] - system.load.collision.bottom_m)
        )
        apart_m = np.linalg.norm(places[i, :2]) - np.linalg.norm(at_load[:2])
        if np.hypot(rise_m, apart_m) >= cable.length_m:
            return Finding(
                f"mission.slack_height_m = {mission.slack_height_m:g}: cable_{i + 1} is taut "
                "before the load is to be lifted; choose a lower one",
                refuses=False,
            )
    return None


def check_wind(hanging: Hanging, brief: Brief) -> Finding | None:
    """Warn of a wind, gusts of two standard deviations included, that the drones cannot resist.

    None where they hold their places.
    """
    wind = brief.wind
    system = hanging.system
    gust = 2.0 * np.array(wind.gust_std_m_s)
    speed_m_s = float(np.linalg.norm((np.abs(wind.mean_enu_m_s) + gust)[:2]))
    if speed_m_s == 0.0:
        return None
    weight_n = brief.system.mass_kg * hanging.gravity_m_s2
    hover_n = weight_n / system.n_drones
    drag_n_s = max(system.load.drag_n_s_m[:2])
    drag_n_s += sum(max(drag_n_s_m(drone, hover_n)[:2]) for drone in system.drones)
    drag_n = speed_m_s * drag_n_s
    most_n = sum(drone.max_thrust_n for drone in system.drones)
    held_n = min(weight_n * np.tan(PX4_TILT_RAD), np.sqrt(max(most_n**2 - weight_n**2, 0.0)))
    if drag_n <= held_n:
        return None
    return Finding(
        f"wind of {speed_m_s:.3g} m/s pushes with about {drag_n:.3g} N, but the drones hold "
        f"against {held_n:.3g} N at most: they will be blown away",
        refuses=False,
    )


def check_twist(hanging: Hanging, brief: Brief) -> Finding | None:
    """A load that leans after a loss turns the drones against their yaw control."""
    stiff = any(cable.twist != "free" for cable in hanging.system.cables)
    if brief.contingency is None or brief.cable_model != "rigid_links" or not stiff:
        return None
    return Finding(
        "contingency: rigid links that do not twist turn the drones when the load leans, which "
        "takes their thrust; choose system.cables.twist: free",
        refuses=False,
    )


LEAST_TURN_RAD = 0.01
"""Turn of a set-point that cables cannot give the load, from which it is said."""


def check_within_reach(hanging: Hanging, brief: Brief) -> Finding | None:
    """Turns of the load that its cables cannot give, asked of a controller that knows the load."""
    system = hanging.system
    blind = brief.follows_plan or brief.controller.kind in ("pid", "open_loop")
    if blind or brief.cable_model == "rigid_rods" or system.load.point_mass:
        return None
    beyond = np.eye(3) - system.turnable(twist_held=brief.cable_model == "rigid_links")
    for stage in brief.mission.stages:
        times_s = np.linspace(0.0, min(stage.duration_s, stage.period_s), 200)
        yaw = stage.derivatives(times_s)[:, 0, 3]
        turns = np.column_stack([stage.tilt(times_s)[:, 0], yaw - yaw[0]])
        left_out = np.abs(turns @ beyond).max(axis=0) > LEAST_TURN_RAD
        if left_out.any():
            axes = zip(("roll", "pitch", "yaw"), left_out, strict=True)
            names = " and ".join(name for name, is_out in axes if is_out)
            return Finding(
                f"the set-point turns the load in {names}, which {system.n_drones} cable"
                f"{'' if system.n_drones == 1 else 's'} cannot give: it is left out of what the "
                "controller follows, the drones' headings follow it",
                refuses=False,
            )
    return None


def check_bare_links(hanging: Hanging, brief: Brief) -> Finding | None:
    """Links that touch things and have joints without damping: such a chain cracks like a whip."""
    if brief.cable_model != "rigid_links" or "cables" not in brief.contact:
        return None
    for k, cable in enumerate(hanging.system.cables, start=1):
        if cable.is_hardly_damped:
            usual = cable.usual_joint_damping_n_m_s_rad
            return Finding(
                f"physics.contact: the joints of cable_{k} have hardly any damping "
                f"({cable.joint_damping_n_m_s_rad:.2g} N m s/rad, a rope like this "
                f"{usual:.2g}); such links whip when they are pulled over something, and the "
                "flight may end as diverged; leave out system.cables.joint.damping_n_m_s_rad",
                refuses=False,
            )
    return None


def check_segment_mass(hanging: Hanging, brief: Brief) -> Finding | None:
    """Elastic cables so light that while they are slack they ask for tiny steps."""
    if brief.cable_model != "elastic" or not brief.lands:
        return None
    for k, cable in enumerate(hanging.system.cables, start=1):
        if cable.links > 1 and cable.link_mass_kg < LIGHT_SEGMENT_KG:
            fewer = max(1, int(cable.mass_kg / LIGHT_SEGMENT_KG))
            return Finding(
                f"a slow flight: the {cable.links} segments of cable_{k}, "
                f"{cable.link_mass_kg:.2g} kg each, take tiny steps as long as they are slack; "
                f"system.cables.links = {fewer} is fast, so is cable_model = massless",
                refuses=False,
            )
    return None


AT_REST: tuple[Check, ...] = (
    check_stages,
    check_rise,
    check_lift,
    check_discs,
    check_upright,
    check_misfit,
    check_tilt,
    check_sag,
    check_ground,
    check_turn,
    check_drone_turn,
    check_duration,
    check_slack,
    check_wind,
    check_twist,
    check_within_reach,
    check_bare_links,
    check_segment_mass,
)
"""Looks at how the system hangs."""


# ---------- Along the plan

PLAN_PERIOD_S = 0.04
"""Time between two looks at a plan for obstacles."""


def check_rig(brief: Brief, plan: FlightPlan) -> Iterator[Finding]:
    """A rig that does not hang along its plan, or pulls with more than its drones have."""
    rests = plan.held
    if rests is None:
        return
    if rests.reason:
        yield Finding(
            f"the rig does not hang along the plan: at {rests.reason}", can_be_forced=True
        )
        return
    of_rows, (row, drone) = rig_margins(brief.system, rests)
    margin = float(of_rows[row, drone])
    if margin < MIN_THRUST_MARGIN:
        needed_n = float(np.linalg.norm(rests.thrust_enu_n[row, drone]))
        why = why_uneven(brief.system.drones[drone], needed_n, margin)
        yield Finding(
            f"at {row / plan.rate_hz:.1f} s ({plan.stage_at(row)}) drone_{drone + 1} has to give "
            f"{needed_n:.4g} N: thrust margin {margin_text(margin)}, at least "
            f"{MIN_THRUST_MARGIN:g} is needed{why}",
            can_be_forced=True,
        )


def check_separation(brief: Brief, plan: FlightPlan) -> Iterator[Finding]:
    """Drones that a plan brings closer than the limit, or into each other."""
    closest = closest_in_plan(brief.system, plan)
    limit_m = brief.limits.separation_m
    if closest is None or closest.tips_m >= (limit_m or 0.0):
        return
    one, other = (f"drone_{i}" for i in closest.pair)
    row = min(int(closest.time_s * plan.rate_hz), len(plan.stage) - 1)
    where = f"at {closest.time_s:.1f} s, in '{plan.stage_at(row)}'"
    if limit_m is not None:
        within = shown_beside(closest.tips_m, limit_m)
        yield Finding(
            f"limits.separation_m = {limit_m:g}: the plan brings the rotor tips of {one} and "
            f"{other} within {within} m (centres {closest.centres_m:.2f} m) {where}; choose a "
            "wider formation"
        )
    elif brief.follows_plan:
        yield Finding(
            f"the plan has the rotor discs of {one} and {other} overlap by "
            f"{-closest.tips_m:.2g} m {where}; choose a wider formation",
            can_be_forced=True,
        )


def check_obstacles(brief: Brief, plan: FlightPlan) -> Iterator[Finding]:
    """Obstacles in the way of level drones, of the load at its set-points and of taut cables.

    Laws that choose places of their own may fly round them: there the load's is a caution.
    """
    obstacles = brief.world.surfaces
    if not obstacles:
        return
    plan = _load_on_ground(plan)
    names = ["load", *(f"drone_{i}" for i in range(1, brief.system.n_drones + 1))]
    n = len(names)
    rows = np.arange(0, len(plan.stage), _looks(plan))
    fastened, lines, taut = taut_cables(brief.system, plan, rows)
    names += [f"cable_{k + 1}" for k in fastened]
    own, first = own_solids(brief.system)
    reach = np.full(n, np.inf)
    closest = np.zeros(len(obstacles), CLOSEST)
    closest["gap"] = np.inf
    touching = np.zeros((len(names), len(obstacles)), TOUCHING)
    touching["speed"] = -1.0
    touching["body"] = np.arange(len(names))[:, None]
    solids = solids_of(obstacles)
    motion = np.zeros((n, 16))
    first_rows = dict[tuple[int, int], int]()
    for at, k in enumerate(rows):
        motion[0, :3] = plan.load_pose[k, :3]
        motion[0, 6:10] = plan.load_orientation_wxyz[k]
        motion[1:, :3] = plan.drone_position_enu_m[k]
        motion[1:, 6:10] = from_yaw(plan.drone_yaw_rad[k])
        touches = watch_bodies(own, first, reach, motion, solids, closest, touching[:n], 0.0, 0.0)
        touching["speed"][n:] = -1.0
        for cable in np.flatnonzero(taut[at]):
            touches |= watch_cable(lines[at, cable], solids, closest, touching[n + cable], 0.0)
        if touches:
            for i, j in np.argwhere(touching["speed"] >= 0.0):
                first_rows.setdefault((int(i), int(j)), int(k))
    # Cables last.
    for (i, j), row in sorted(first_rows.items(), key=lambda entry: entry[0][0] >= n):
        if i > 0 and not brief.follows_plan:  # such drones are not where the plan has them
            continue
        yield Finding(
            f"the plan brings {names[i]} into {obstacles[j].name} "
            f"at {row / plan.rate_hz:.1f} s, in '{plan.stage_at(row)}'",
            refuses=brief.follows_plan,
            can_be_forced=True,
        )


def _load_on_ground(plan: FlightPlan) -> FlightPlan:
    """The plan with a load that stands where its set-point is below ground that is not flat."""
    ground = plan.ground
    if ground is None or ground.ground is None or ground.system is None:
        return plan
    if ground.system.load is None:
        return plan
    on_ground = [name in GROUND_PHASES for name in plan.stage_names]
    pose = plan.load_pose.copy()
    heights_m = dict[tuple[float, float], float]()
    for row in np.flatnonzero(np.array(on_ground)[plan.stage]):
        x, y = pose[row, :2].tolist()
        if (x, y) not in heights_m:
            heights_m[x, y] = ground.height_m(pose[row]) - ground.system.load.collision.bottom_m
        pose[row, 2] = max(pose[row, 2], heights_m[x, y])
    standing = replace(plan)
    vars(standing)["load_pose"] = pose
    return standing


FOOT = np.array([(0.0, 0.0), (1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)])
"""Points of a box's foot below which the ground is looked at, as shares of half its edges."""

STANDING = ("spool_up", "take_off", "land", "disarmed")
"""Phases in which drones are at the ground."""


def check_uneven_ground(brief: Brief, plan: FlightPlan) -> Iterator[Finding]:
    """Ground that is not flat in the way of the load that is carried, or of the drones."""
    hanging = brief.hanging
    if hanging is None or hanging.ground is None:
        return
    solids = hanging.ground.solids
    kinds = {stage.kind for stage in brief.mission.stages if stage.sets_load_down and brief.lands}
    boxes = [hanging.system.load.collision, *(d.collision for d in hanging.system.drones)]
    told = set[int]()
    for row in range(0, len(plan.stage), _looks(plan)):
        stage = plan.stage_at(row)
        kind = stage.rstrip("0123456789").rstrip("_")
        drones_enu_m = plan.drone_position_enu_m[row] if brief.follows_plan else ()
        carried = plan.load_pose[row, :3] - [0.0, 0.0, hanging.sag_m]
        for i, place in enumerate([carried, *drones_enu_m]):
            left_out = {*GROUND_PHASES, *kinds} if i == 0 else STANDING
            if i in told or stage in left_out or kind in left_out:
                continue
            box = boxes[i]
            reach = 0.5 * np.array(box.size_m[:2])
            for x, y in place[:2] + reach * FOOT:
                height, which = ground_at(solids, x, y)
                if which >= 0 and place[2] + box.bottom_m < height - 1e-6:
                    told.add(i)
                    yield Finding(
                        f"the plan brings {'load' if i == 0 else f'drone_{i}'} "
                        f"{height - place[2] - box.bottom_m:.2g} m below the ground at "
                        f"({x:.2f}, {y:.2f}) m at {row / plan.rate_hz:.1f} s, in '{stage}'; "
                        "heights of set-points count from z = 0",
                        refuses=brief.follows_plan,
                        can_be_forced=True,
                    )
                    break
    for motion in brief.world.motions:
        if motion.end_s < plan.duration_s:
            yield Finding(
                f"world: a table of motion ends at {motion.end_s:g} s, the flight takes "
                f"{plan.duration_s:.3g} s: the surface stands still from then on",
                refuses=False,
            )


def _looks(plan: FlightPlan) -> int:
    return max(1, round(PLAN_PERIOD_S * plan.rate_hz))


TAUT_SHARE = 0.995
"""Distance of a cable's ends, as a share of its length, from which the cable is nearly straight:
its middle sags by 4 % of the length."""


def taut_cables(
    system: RigSystem, plan: FlightPlan, rows: NDArray[np.int64]
) -> tuple[list[int], Array, NDArray[np.bool_]]:
    """Straight cables between load and level drones at rows of a plan.

    Returns:
        The numbers of those cables, from 0; their ends, (rows, cables, 2, 3), ENU [m]; and whether
        they are taut, (rows, cables). The shape of a slack one is not known.
    """
    numbers = {"load": 0} | {f"drone_{i + 1}": i + 1 for i in range(system.n_drones)}
    of = [k for k in range(system.n_cables) if all(e.body in numbers for e in system.ends(k))]
    places = np.concatenate([plan.load_pose[:, None, :3], plan.drone_position_enu_m], axis=1)
    turns = np.concatenate(
        [plan.load_orientation_wxyz[:, None], from_yaw(plan.drone_yaw_rad)], axis=1
    )
    lines = np.zeros((len(rows), len(of), 2, 3))
    for at, k in enumerate(of):
        for side, end in enumerate(system.ends(k)):
            body = numbers[end.body]
            arm = rotate(turns[rows, body], np.tile(end.point_m, (len(rows), 1)))
            lines[:, at, side] = places[rows, body] + arm
    lengths_m = np.array([system.cables[k].length_m for k in of])
    apart_m = np.linalg.norm(lines[:, :, 1] - lines[:, :, 0], axis=2)
    return of, lines, apart_m >= TAUT_SHARE * lengths_m


def check_charge(brief: Brief, plan: FlightPlan) -> Iterator[Finding]:
    """A battery that is empty before the plan ends, in hover all the time: the flight decides."""
    forces = None
    if any(drone.propulsion and drone.propulsion.battery for drone in brief.system.drones):
        forces = forces_at_rest(brief, plan)
    if forces is None:
        return
    minutes = [(m.minutes, i) for i, m in enumerate(margins(brief.system, forces), 1) if m.minutes]
    first_min, drone = min(minutes, default=(np.inf, 0))
    if 60.0 * first_min < plan.duration_s:
        yield Finding(
            f"the flight takes {plan.duration_s:.3g} s, the battery of drone_{drone} lasts for "
            f"{60.0 * first_min:.3g} s of hover",
            refuses=False,
        )


IN_PLAN = (check_rig, check_separation, check_obstacles, check_uneven_ground, check_charge)
"""Looks along the plan."""
