"""Checks before a flight: do the cables reach, can the rotors lift, is the load off the ground.

Each check looks at how the system hangs and at the scenario, and refuses the flight, cautions, or
says nothing; `CHECKS` lists them all in the order in which they are told.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from musls_control.mission.carrying import Held
from musls_control.mission.plan import FlightPlan, closest_pair, estimated_duration_s
from musls_control.mission.spec import FASTEST_M_S, LONGEST_S
from musls_control.trajectories import Trajectory
from musls_description.config.errors import ConfigError
from musls_description.hanging.hang import MIN_THRUST_MARGIN, Hanging, margin_text
from musls_description.numerics.arrays import Array
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.system.drone import Drone, thrust_margin, tip_radius_m
from musls_description.system.slung_system import RigSystem
from musls_sim.plants.trim import drag_n_s_m
from musls_sim.scenario.scenario import Scenario


@dataclass(frozen=True)
class Caution:
    """A warning about a flight that is possible, one line."""

    text: str


@dataclass(frozen=True)
class Refusal:
    """Why a flight cannot work, one line.

    Attributes:
        forced: Whether `--force` flies nevertheless.
    """

    text: str
    forced: bool = False


Check = Callable[[Hanging, Scenario], Caution | Refusal | None]
"""A check before a flight; None where nothing is wrong."""


def preflight(scenario: Scenario) -> Iterator[Caution | Refusal]:
    """Everything that is to be said before the flight of a formation."""
    hanging = scenario.hanging_for("a check before the flight")
    if hanging.refusal is not None:  # a stage too far away leaves no digits for a formation
        yield check_stages(hanging, scenario) or Refusal(str(hanging.refusal))
        return
    for check in CHECKS:
        found = check(hanging, scenario)
        if found is not None:
            yield found


def refuse_stages(scenario: Scenario) -> None:
    """Refuse stages of rigs, and of drones on their own, that no system flies (ConfigError)."""
    mission = scenario.mission
    lists = {f"mission.drones.{name}": own for name, own in mission.drones.items()}
    if scenario.hanging is None:  # a formation is looked at by `preflight`
        lists["mission.stages"] = mission.stages
    for where, stages in lists.items():
        for k, stage in enumerate(stages):
            if wrong := _wrong_stage(stage):
                raise ConfigError(f"{where}.{k}: {wrong}")


def plan_checks(scenario: Scenario, plan: FlightPlan) -> Iterator[Refusal]:
    """Refusals and warnings from how a rig hangs along its plan."""
    held = plan.held
    if held is None:
        return
    if held.reason:
        yield Refusal(f"the rig does not hang along the plan: at {held.reason}", forced=True)
        return
    margins, (row, drone) = rig_margins(scenario.system, held)
    if margins[row, drone] < MIN_THRUST_MARGIN:
        needed_n = float(np.linalg.norm(held.thrust_enu_n[row, drone]))
        of, margin = scenario.system.drones[drone], float(margins[row, drone])
        yield Refusal(
            f"at {row / plan.rate_hz:.1f} s ({plan.stage_at(row)}) drone_{drone + 1} has to give "
            f"{needed_n:.4g} N: thrust margin {margin_text(margin)}, at least "
            f"{MIN_THRUST_MARGIN:g} is needed{why_uneven(of, needed_n, margin)}; --force flies "
            "anyway",
            forced=True,
        )


def rig_margins(system: RigSystem, held: Held) -> tuple[Array, tuple[int, int]]:
    """Thrust margins of the drones at the rows of a plan, (k, n), and where the least one is."""
    sizes = np.linalg.norm(held.thrust_enu_n, axis=2)
    margins = np.array([
        [thrust_margin(*one) for one in zip(system.drones, *row, strict=True)]
        for row in zip(sizes.tolist(), held.moment_body_n_m, strict=True)
    ])  # fmt: skip
    row, drone = np.unravel_index(np.argmin(margins), margins.shape)
    return margins, (int(row), int(drone))


def refuse_or_warn(
    scenario: Scenario, *, force: bool = False, plan: FlightPlan | None = None
) -> None:
    """Refuse a flight that cannot work, and warn of doubtful ones.

    Looks at how the formation hangs, or at a `plan` of a rig or of drones on paths of their own.

    Raises:
        ConfigError: The flight cannot work; for some reasons it is flown with `force`.

    Warns:
        UserWarning: What is to be known of a flight that is possible.
    """
    cautions = []
    for found in preflight(scenario) if plan is None else plan_checks(scenario, plan):
        if isinstance(found, Caution):
            cautions.append(found.text)
        elif not (found.forced and force):
            raise ConfigError(found.text)
    for text in cautions:
        warnings.warn(text, stacklevel=2)


# ---------- Mission: length, size, speed

LONG_FLIGHT_S = 3600.0
LARGE_BAG_BYTES = 1e9
"""A longer flight, or a larger bag, is announced before it starts."""

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


def check_stages(hanging: Hanging, scenario: Scenario) -> Refusal | None:
    """Stages that are endless, too far away or too fast for any system."""
    for k, stage in enumerate(scenario.mission.stages):
        if wrong := _wrong_stage(stage):
            return Refusal(f"mission.stages.{k}: {wrong}")
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


def check_rise(hanging: Hanging, scenario: Scenario) -> Refusal | None:
    """A rise beyond the cables: the drones would be stopped with a jerk."""
    if scenario.start.kind != "ground":
        return None
    for i, highest_m in enumerate(hanging.highest_rise_m):
        if scenario.mission.rise_m > highest_m:
            return Refusal(
                f"mission.rise_m = {scenario.mission.rise_m:g}: the cable of drone_{i + 1} "
                f"({hanging.system.cables[i].length_m:g} m) is taut {highest_m:.3f} m above its "
                "place on the ground; the drones form up with slack cables"
            )
    return None


def check_duration(hanging: Hanging, scenario: Scenario) -> Caution | Refusal | None:
    """A flight that never ends, or takes long."""
    duration_s, size = flight_duration_s(scenario), bag_bytes_per_s(scenario)
    if duration_s > LONGEST_S:
        return Refusal(
            f"mission: the flight would last about {duration_s:.3g} s, at most {LONGEST_S:g} s "
            "(a day) are possible"
        )
    if duration_s > LONG_FLIGHT_S or duration_s * size > LARGE_BAG_BYTES:
        return Caution(
            f"a long flight: about {duration_s / 60.0:.0f} min of simulated time, and a bag of "
            f"about {_size_text(duration_s * size)} (recording.rate_hz and "
            "recording.shape_rate_hz make it smaller)"
        )
    return None


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


# ---------- Formation: how the system hangs

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


def check_lift(hanging: Hanging, scenario: Scenario) -> Refusal | None:
    """Rotors that cannot lift the load, or cables that pull at each other with more than it."""
    margin, weakest = hanging.thrust_margin, hanging.weakest
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
        return Refusal(str(hanging.refuse(reason)), forced=True)
    thrust_n = float(np.linalg.norm(hanging.rest.drone_force_n[weakest - 1]))
    return Refusal(
        f"the rotors cannot lift the load: {hanging.margin_sentence}"
        f"{'' if gravity == STANDARD_GRAVITY_M_S2 else f' at gravity {gravity:g} m/s2'}"
        f"{why_uneven(hanging.system.drones[weakest - 1], thrust_n, margin)}; --force flies anyway",
        forced=True,
    )


def why_uneven(drone: Drone, thrust_n: float, margin: float) -> str:
    """Why a thrust margin is small though all rotors together give more than enough, or empty."""
    if margin == 0.0:
        return ": its rotors cannot give the thrust without turning it"
    if drone.max_thrust_n / thrust_n < MIN_THRUST_MARGIN:
        return ""
    return ": rotors, centre of mass and cable do not balance, one rotor works harder than others"


def check_discs(hanging: Hanging, scenario: Scenario) -> Refusal | None:
    """A formation in which rotors would hit each other."""
    system = hanging.system
    places = hanging.formation.offsets_m(system.n_drones)
    radii = np.array([tip_radius_m(drone) for drone in system.drones])
    _, i, j, centres_m, tips_m = closest_pair(places[None], radii)
    if tips_m >= 0.0:
        return None
    reason = (
        f"the rotor discs of drone_{i + 1} and drone_{j + 1} overlap, {centres_m:.2f} m from "
        "centre to centre (--force flies anyway)"
    )
    return Refusal(str(hanging.refuse(reason)), forced=True)


def check_upright(hanging: Hanging, scenario: Scenario) -> Refusal | None:
    """RotorTM's law above attachments that are closer together than its drones may fly.

    Of the forces that hold the load it takes the least: cables upright, drones above attachments.
    """
    controller, system = scenario.controller, hanging.system
    if controller.kind != "rotortm" or getattr(controller, "links", "") != "cables":
        return None
    places = np.array(system.load.cable_attachments_m)[None, : system.n_drones]
    radii = np.array([tip_radius_m(drone) for drone in system.drones])
    _, i, j, centres_m, tips_m = closest_pair(places, radii)
    if system.n_drones < 2 or tips_m >= 0.0:
        return None
    return Refusal(
        f"controller.kind = rotortm: its cables stand upright, and above these attachments the "
        f"rotor discs of drone_{i + 1} and drone_{j + 1} overlap, {centres_m:.2f} m from centre to "
        f"centre: give system.load.cable_attachments_m at least {centres_m - tips_m:.2f} m apart, "
        "smaller drones, or controller.kind = formation or payload"
    )


def check_tilt(hanging: Hanging, scenario: Scenario) -> Caution | Refusal | None:
    """A load that hangs askew."""
    tilt_deg = np.degrees(hanging.tilt_rad)
    if hanging.tilt_rad > STEEPEST_LOAD_RAD:
        reason = f"the load would hang tilted by {tilt_deg:.0f} deg"
        return Refusal(str(hanging.refuse(reason)), forced=True)
    if hanging.tilt_rad > LARGEST_TURN_RAD:
        return Caution(
            f"formation: the load will hang tilted by {tilt_deg:.0f} deg; "
            "`musls formation` proposes places that hold it level, if there are any"
        )
    return None


def check_sag(hanging: Hanging, scenario: Scenario) -> Refusal | None:
    """A formation that is too high or too low for its cables."""
    sag_m, cone = hanging.sag_m, hanging.formation
    if abs(sag_m) <= MAX_SAG_M:
        return None
    where = "below" if sag_m > 0.0 else "above"
    move = f"move all of them {abs(sag_m):.2f} m {'up' if sag_m > 0.0 else 'down'}"
    key, remedy = "formation.places_m", move
    if cone.places_m is None:
        key = f"formation.height_m = {cone.height_m:g}"
        remedy = f"about {cone.height_m + sag_m:.2f} fits these cables"
    return Refusal(f"{key}: the load would hang {abs(sag_m):.2f} m {where} its set-point; {remedy}")


def check_ground(hanging: Hanging, scenario: Scenario) -> Refusal | None:
    """A load that would drag over the ground; a flight from there may set it down."""
    heights = [
        (stage.pose(np.linspace(0.0, stage.duration_s, 200))[:, 2].min(), k)
        for k, stage in enumerate(scenario.mission.stages)
        if not stage.sets_load_down or scenario.start.kind != "ground"
    ]
    if not heights:
        return None
    lowest, sag_m = min(heights), hanging.sag_m
    if lowest[0] - sag_m + hanging.system.load.collision.bottom_m >= 0.0:
        return None
    return Refusal(
        f"mission.stages.{lowest[1]}: the load would touch the ground: lowest set-point "
        f"{lowest[0]:g} m, and it hangs {sag_m:.2f} m lower than its set-point in this "
        "formation; raise the stage or formation.height_m"
    )


def check_misfit(hanging: Hanging, scenario: Scenario) -> Caution | None:
    """A place that was given and makes its drone carry all, or nothing."""
    off = hanging.rest.misfit_m
    k = int(np.linalg.norm(off, axis=1).argmax())
    if np.linalg.norm(off[k]) < NAMED_MISFIT_M:
        return None
    too_far = float(off[k] @ hanging.rest.cable_force_n[k]) < 0.0
    what = f"formation.places_m.{k}" if hanging.formation.places_m is not None else "formation"
    return Caution(
        f"{what}: drone_{k + 1} is {np.linalg.norm(off[k]):.3f} m too "
        f"{'far from' if too_far else 'near to'} the load for its cable beside the others: "
        f"exactly there it carries {'much more than' if too_far else 'little of'} its share; "
        f"[{', '.join(f'{v:.3f}' for v in off[k])}] m from there it carries its share"
    )


def check_turn(hanging: Hanging, scenario: Scenario) -> Caution | None:
    """A formation that turns the load away from the yaw that it is to have."""
    system, cone = hanging.system, hanging.formation
    places = np.array(system.load.cable_attachments_m)[:, :2]
    if system.n_drones == 1 or system.load.point_mass or not places.any():
        return None  # nothing, or only the cables' twist, holds its yaw
    if abs(hanging.turn_rad) < LARGEST_TURN_RAD:
        return None
    remedy = "turn formation.places_m back by it"
    if cone.places_m is None:
        fitting = cone.first_azimuth_rad - hanging.turn_rad
        fitting = float(np.angle(np.exp(1j * fitting)))
        remedy = f"formation.first_azimuth_rad = {fitting:.3f} fits its attachments"
    return Caution(
        f"formation: the load will hang turned by {np.degrees(hanging.turn_rad):.1f} deg from the "
        f"yaw of its set-point; {remedy}"
    )


def check_drone_turn(hanging: Hanging, scenario: Scenario) -> Caution | None:
    """A cable that does not twist and turns its drone away from the yaw that it is to have."""
    turned = np.abs(hanging.drone_turn_rad)
    k = int(turned.argmax())
    if scenario.cable_model != "rigid_links" or turned[k] <= LARGEST_TURN_RAD:
        return None
    return Caution(
        f"system.cables.{k}.twist = {hanging.system.cables[k].twist}: the cable turns "
        f"drone_{k + 1} by {np.degrees(turned[k]):.1f} deg from the yaw of its set-point; "
        "with system.cables.twist = free it looks where it is to"
    )


# ---------- Cables and wind


def check_slack(hanging: Hanging, scenario: Scenario) -> Caution | None:
    """Cables that are taut before the drones have formed up over the standing load."""
    if scenario.start.kind != "ground":
        return None
    system, mission = hanging.system, scenario.mission
    places = hanging.formation.offsets_m(system.n_drones)
    for i, (drone, cable) in enumerate(zip(system.drones, system.cables, strict=True)):
        at_load = np.array(system.load.cable_attachments_m[i])
        rise_m = (
            mission.slack_height_m + places[i, 2] + drone.cable_attachment_m[2]
            - (at_load[2] - system.load.collision.bottom_m)
        )  # fmt: skip
        apart_m = np.linalg.norm(places[i, :2]) - np.linalg.norm(at_load[:2])
        if np.hypot(rise_m, apart_m) >= cable.length_m:
            return Caution(
                f"mission.slack_height_m = {mission.slack_height_m:g}: cable_{i + 1} is taut "
                "before the load is to be lifted; choose a lower one"
            )
    return None


def check_wind(hanging: Hanging, scenario: Scenario) -> Caution | None:
    """Wind that the drones cannot hold against, gusts of two standard deviations included."""
    wind, system = scenario.wind, hanging.system
    gust = 2.0 * np.array(wind.gust_std_m_s)
    speed_m_s = float(np.linalg.norm((np.abs(wind.mean_enu_m_s) + gust)[:2]))
    if speed_m_s == 0.0:
        return None
    weight_n = scenario.system.mass_kg * hanging.gravity_m_s2
    hover_n = weight_n / system.n_drones
    drag_n_s = max(system.load.drag_n_s_m[:2])
    drag_n_s += sum(max(drag_n_s_m(drone, hover_n)[:2]) for drone in system.drones)
    drag_n = speed_m_s * drag_n_s
    most_n = sum(drone.max_thrust_n for drone in system.drones)
    held_n = min(weight_n * np.tan(PX4_TILT_RAD), np.sqrt(max(most_n**2 - weight_n**2, 0.0)))
    if drag_n <= held_n:
        return None
    return Caution(
        f"wind of {speed_m_s:.3g} m/s pushes with about {drag_n:.3g} N, but the drones hold "
        f"against {held_n:.3g} N at most: they will be blown away"
    )


def check_twist(hanging: Hanging, scenario: Scenario) -> Caution | None:
    """A load that leans after a loss turns the drones against their yaw control."""
    stiff = any(cable.twist != "free" for cable in hanging.system.cables)
    if scenario.contingency is None or scenario.cable_model != "rigid_links" or not stiff:
        return None
    return Caution(
        "contingency: rigid links that do not twist turn the drones when the load leans, which "
        "takes their thrust; choose system.cables.twist: free"
    )


def check_bare_links(hanging: Hanging, scenario: Scenario) -> Caution | None:
    """Links that touch things and have joints without damping: such a chain cracks like a whip."""
    if scenario.cable_model != "rigid_links" or "cables" not in scenario.physics.contact:
        return None
    for k, cable in enumerate(hanging.system.cables, start=1):
        if cable.is_hardly_damped:
            usual = cable.usual_joint_damping_n_m_s_rad
            return Caution(
                f"physics.contact: the joints of cable_{k} have hardly any damping "
                f"({cable.joint_damping_n_m_s_rad:.2g} N m s/rad, a rope like this "
                f"{usual:.2g}); such links whip when they are pulled over something, and the "
                "flight may end as diverged; leave out system.cables.joint.damping_n_m_s_rad"
            )
    return None


def check_segment_mass(hanging: Hanging, scenario: Scenario) -> Caution | None:
    """Elastic cables so light that while they are slack they ask for tiny steps."""
    if scenario.cable_model != "elastic" or scenario.start.kind != "ground":
        return None
    for k, cable in enumerate(hanging.system.cables, start=1):
        if cable.links > 1 and cable.link_mass_kg < LIGHT_SEGMENT_KG:
            fewer = max(1, int(cable.mass_kg / LIGHT_SEGMENT_KG))
            return Caution(
                f"a slow flight: the {cable.links} segments of cable_{k}, "
                f"{cable.link_mass_kg:.2g} kg each, take tiny steps as long as they are slack; "
                f"system.cables.links = {fewer} is fast, so is cable_model = massless"
            )
    return None


CHECKS: tuple[Check, ...] = (
    check_stages, check_rise, check_lift, check_discs, check_upright, check_misfit, check_tilt,
    check_sag, check_ground, check_turn, check_drone_turn, check_duration, check_slack, check_wind,
    check_twist, check_bare_links, check_segment_mass,
)  # fmt: skip
