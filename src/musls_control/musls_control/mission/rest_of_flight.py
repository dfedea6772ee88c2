"""The rest of a flight after a loss as set-points: new formation, then on, or down."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from musls_control.mission.plan import Draft, FlightPlan, land_at
from musls_control.mission.spec import ContingencySpec, MissionSpec
from musls_control.trajectories.base import smoothstep
from musls_description.hanging.cone import Cone
from musls_description.hanging.ground import Ground, ground_radius_m, landing_places_m
from musls_description.hanging.hang import margin_text
from musls_description.hanging.reallocation import Reallocation
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import from_yaw, rotate
from musls_description.system.drone import tip_radius_m
from musls_description.system.slung_system import SlungLoadSystem

TAUT_SHARE = 0.95
"""Drones land no farther from the load than this share of their cable."""

ASIDE_M = np.array([1.0, 1.0])
"""Outwards and upwards: where a drone without cable goes, out of the others' way."""


@dataclass(frozen=True)
class Situation:
    """State of a flight at the moment its plan is replaced.

    Attributes:
        drones_enu_m: Present set-points of the drones, (n, 3).
        offsets_m: New places in the frame of the load's set-point, (n, 3); NaN for drones that
            do not fly any more.
        ground: The ground; None where it is flat, at z = 0.
        shift_m: Way of the load's set-point while the drones take their new places, (2,), where
            the load is set down then.
    """

    plan: FlightPlan
    row: int
    drones_enu_m: Array
    offsets_m: Array
    ground: Ground | None = None
    shift_m: Array = field(default_factory=lambda: np.zeros(2))

    @property
    def pose(self) -> Array:
        """Set-point of the load: x, y, z [m], yaw [rad], (4,)."""
        return self.plan.load_pose[self.row]

    def draft(self, mission: MissionSpec) -> Draft:
        """Draft of a plan that begins here, the drones in their new places."""
        azimuths = self.plan.drone_yaw_rad[self.row] - self.pose[3] - np.pi
        draft = Draft(mission, self.offsets_m, azimuths)
        draft.rate_hz = self.plan.rate_hz
        draft.last = self.pose
        draft.go_on_from(self.plan, self.row)
        draft.fed_m_s2[np.isnan(self.offsets_m[:, 0])] = 0.0
        draft.lost_enu_m = self.drones_enu_m
        return draft


def rest_of_flight(
    now: Situation,
    found: Reallocation | None,
    system: SlungLoadSystem,
    mission: MissionSpec,
    spec: ContingencySpec,
) -> FlightPlan:
    """The rest of a flight with the formation that was found, or down without one."""
    if goes_on(found, spec):
        return continued(now, mission, spec.speed_m_s)
    reforms = found is not None and found.thrust_margin > 1.0
    return landed(now, system, mission, spec, reforms=reforms)


def sentence(reallocation: Reallocation | None, spec: ContingencySpec) -> str:
    """One line about what a loss leads to."""
    if reallocation is None:
        return "no formation holds the load: it is set down at once"
    least = margin_text(reallocation.thrust_margin)
    margin = f"thrust margin {least}, load leans {reallocation.load_tilt_deg:.0f} deg"
    if reallocation.thrust_margin < spec.margin:
        return f"too little thrust to go on ({margin}): the load is set down"
    return f"new formation ({margin}): " + (
        "the mission goes on" if spec.then == "continue" else "landing"
    )


def goes_on(reallocation: Reallocation | None, spec: ContingencySpec) -> bool:
    """Whether the mission goes on in a new formation."""
    return (
        reallocation is not None
        and reallocation.thrust_margin >= spec.margin
        and spec.then == "continue"
    )


def continued(now: Situation, mission: MissionSpec, speed_m_s: float) -> FlightPlan:
    """New formation, then the rest of the plan in it."""
    old = now.plan
    begin = min(now.row + 1, len(now.plan.stage) - 1)
    pose = old.load_pose[begin:]
    targets = old.drone_position_enu_m[begin:]
    # Where the drones leave the formation, to land, the way there starts at the new places.
    leaves = np.isin([old.stage_names[k] for k in old.stage[begin:]], ("spread", "land"))
    draft = now.draft(mission)
    drones, _ = draft.formed(pose)
    if leaves.any():
        row = int(leaves.argmax())
        count = min(max(1, int(mission.form_up_s * old.rate_hz)), len(pose) - row)
        ahead = np.arange(len(pose) - row) + 1.0
        fade = smoothstep(np.clip(1.0 - ahead / count, 0.0, 1.0))
        shift = drones[row] - targets[row]
        drones[row:] = targets[row:] + fade[:, None, None] * shift
        is_gone = np.isnan(now.offsets_m[:, 0])
        drones[row:, is_gone] = now.drones_enu_m[is_gone]
    rest = replace(old.part(begin), drone_position_enu_m=drones)
    _reform(now, draft, speed_m_s)
    first = draft.plan()
    feed_forward = rest.drone_acceleration_enu_m_s2
    waits = rest.waits.copy()
    waits["row"] += len(first.stage)
    if feed_forward is not None:
        feed_forward = np.where(np.isnan(now.offsets_m[:, :1]), 0.0, feed_forward)
    return replace(
        rest,
        drone_acceleration_enu_m_s2=feed_forward
        if feed_forward is None or first.drone_acceleration_enu_m_s2 is None
        else np.vstack([first.drone_acceleration_enu_m_s2, feed_forward]),
        share=None
        if rest.share is None or first.share is None
        else np.concatenate([first.share, rest.share]),
        waits=waits,
        reference=first.reference.then(rest.reference, first.duration_s),
        drone_position_enu_m=np.vstack([first.drone_position_enu_m, rest.drone_position_enu_m]),
        drone_yaw_rad=np.vstack([first.drone_yaw_rad, rest.drone_yaw_rad]),
        stage=np.concatenate([first.stage, rest.stage + len(first.stage_names)]),
        stage_names=(*first.stage_names, *rest.stage_names),
    )


def landed(
    now: Situation,
    system: SlungLoadSystem,
    mission: MissionSpec,
    spec: ContingencySpec,
    *,
    reforms: bool,
) -> FlightPlan:
    """Set the load down where it is, then land around it."""
    draft = now.draft(mission)
    if reforms:
        _reform(now, draft, spec.speed_m_s)
    else:  # the move down begins where the set-points are
        draft.add("lower", now.pose[None], now.drones_enu_m[None])
    ground = now.ground
    height_m = 0.0 if ground is None else ground.height_m(*now.pose[:2])
    resting_m = min(height_m - system.load.collision.bottom_m, now.pose[2])
    draft.rise("lower", resting_m, hold_s=0.0, speed_m_s=spec.lower_speed_m_s)
    slack_m = min(mission.slack_height_m + height_m, resting_m)
    draft.carry_share("lower", 0.0)
    draft.rise("slacken", slack_m, hold_s=0.0, speed_m_s=spec.lower_speed_m_s)
    start = draft.drones[-1][-1]
    slack = draft.last
    survivors = np.flatnonzero(~np.isnan(now.offsets_m[:, 0])).tolist()
    few = system.carried_by(survivors)
    load = from_yaw(np.full(len(survivors), slack[3]))
    out = rotate(from_yaw(np.full(len(survivors), -slack[3])), start[survivors] - slack[:3])
    hooks = np.array(few.load.cable_attachments_m)[:, :2]
    out[:, :2] /= np.maximum(np.linalg.norm(out[:, :2], axis=1), 1e-9)[:, None]
    out[:, :2] *= [[np.hypot(*hooks[i]) + ground_radius_m(few, i)] for i in range(len(survivors))]
    places = rotate(load, landing_places_m(few, out))
    end = start.copy()
    end[survivors, :2] = slack[:2] + places[:, :2]
    end[survivors, 2] = [-drone.collision.bottom_m for drone in few.drones]
    if ground is not None:
        end[survivors, 2] += [ground.height_m(x, y) for x, y, _ in end[survivors]]
    low = end + [0.0, 0.0, mission.rise_m]
    low = np.where(np.isnan(now.offsets_m), start, low)
    land_at(draft, end, low)
    return replace(draft.plan(), landing_speed_m_s=mission.landing_speed_m_s)


def _reform(now: Situation, draft: Draft, speed_m_s: float) -> None:
    """Append the way to the new formation."""
    target = now.pose + [*now.shift_m, 0.0, 0.0]
    (places,), _ = draft.formed(target[None])
    farthest = float(np.linalg.norm(places - now.drones_enu_m, axis=1).max())
    # A smooth move is 1.5 times as fast in its middle as on average.
    duration_s = max(1.0, 1.5 * farthest / speed_m_s)
    moves = target if now.shift_m.any() else None
    draft.fly_drones("reform", now.pose, now.drones_enu_m, places, duration_s, moves)
    draft.hold("reform", target, draft.mission.settle_s, "mission.settle_s")


def room_to_land(system: SlungLoadSystem, clearance_m: float) -> tuple[Array, Array]:
    """Least level distance of each two drones, (n, n), and farthest from the load, (n,) [m]."""
    radii = np.array([tip_radius_m(drone) for drone in system.drones])
    hooks = np.array(system.load.cable_attachments_m)[:, :2]
    lengths = np.array([cable.length_m for cable in system.cables])
    reach_m = np.linalg.norm(hooks, axis=1) + TAUT_SHARE * lengths
    return radii[:, None] + radii[None] + clearance_m, reach_m


def landed_clear(
    plan: FlightPlan,
    load_enu_m: Array,
    lost: NDArray[np.bool_],
    drones_enu_m: Array,
    apart_m: Array,
    reach_m: Array,
) -> FlightPlan:
    """The rest of a landing with places that keep clear of the drones that lie on the ground.

    `plan`: begins where its drones spread out.
    `load_enu_m`: where the load lies, (2,).
    `lost`: drones that do not fly any more, (n,).
    `drones_enu_m`: where all drones are, (n, 3).
    `apart_m`, `reach_m`: see `room_to_land`.
    """
    spots = plan.drone_position_enu_m[-1, :, :2].copy()
    spots[lost] = drones_enu_m[lost, :2]
    clear = _moved_apart(spots, lost, apart_m, load_enu_m, reach_m)
    shift = np.where(lost[:, None], 0.0, clear - spots)
    return plan.moved(shift)


def _moved_apart(
    spots: Array, fixed: NDArray[np.bool_], apart_m: Array, load_enu_m: Array, reach_m: Array
) -> Array:
    """Move places within reach of the load, by little, until they are apart; (n, 2)."""
    places = spots.copy()
    for _ in range(300):
        way = places[:, None] - places[None]
        distance = np.linalg.norm(way, axis=2) + 1e9 * np.eye(len(places))
        shortage_m = np.maximum(apart_m - distance, 0.0)
        shortage_m[np.ix_(fixed, fixed)] = 0.0
        if shortage_m.max() < 1e-4:
            break
        # Each of two gives way by half, one beside a fixed place by all of it.
        share = np.where(fixed[:, None], 0.0, np.where(fixed[None], 1.0, 0.5))
        places += ((share * shortage_m / np.maximum(distance, 1e-9))[:, :, None] * way).sum(axis=1)
        out = places - load_enu_m
        too_far = reach_m / np.maximum(np.linalg.norm(out, axis=1), 1e-9)
        places[~fixed] = (load_enu_m + np.minimum(too_far, 1.0)[:, None] * out)[~fixed]
    return places


def aside(formation: Cone, n_drones: int, drone: int) -> Array:
    """Place of a drone (from 0) that has lost its cable, in the frame of the load's set-point."""
    place: Array = formation.offsets_m(n_drones)[drone].copy()
    outward = place[:2] / max(float(np.linalg.norm(place[:2])), 1e-9)
    place[:2] += ASIDE_M[0] * outward
    place[2] += ASIDE_M[1]
    return place
