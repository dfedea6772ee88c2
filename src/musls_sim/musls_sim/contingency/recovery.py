"""The rest of a flight after a loss, as set-points: new formation, then on, or down."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from musls_control.formation import drone_poses
from musls_control.mission.plan import FlightPlan
from musls_control.mission.spec import MissionSpec
from musls_control.reference import Piece, Reference, StraightMove
from musls_control.trajectories.base import smoothstep
from musls_description.spawn import ground_radius_m
from musls_description.system import formation_of
from musls_sim.scenario.scenario import Scenario

Array = NDArray[np.float64]

ASIDE_M = np.array([1.0, 1.0])
"""Outwards and upwards: where a drone without cable goes, out of the others' way."""


@dataclass(frozen=True)
class Situation:
    """Where a flight is when its plan is given up.

    Attributes:
        drones_enu_m: Present set-points of the drones, (n, 3).
        offsets_m: New places in the frame of the load's set-point, (n, 3); NaN for drones that
            do not fly any more.
    """

    plan: FlightPlan
    row: int
    drones_enu_m: Array
    offsets_m: Array

    @property
    def pose(self) -> Array:
        """Set-point of the load: x, y, z [m], yaw [rad], (4,)."""
        pose: Array = self.plan.load_pose[self.row]
        return pose

    def places(self, pose: Array) -> Array:
        """Places of the drones for poses of the load, (k, 4) to (k, n, 3); those lost stay."""
        found, _ = drone_poses(
            pose[:, :3], pose[:, 3], self.offsets_m, np.zeros(len(self.offsets_m))
        )
        return np.where(np.isnan(found), self.drones_enu_m, found)


class _Rows:
    """Rows of a plan while it is being made; the drones' headings stay."""

    def __init__(self, now: Situation) -> None:
        self.rate_hz = now.plan.rate_hz
        self.yaw = now.plan.drone_yaw_rad[now.row]
        self.load = now.pose.copy()
        self.drones: list[Array] = []
        self.stage: list[int] = []
        self.names: list[str] = []
        self.pieces: list[Piece] = [*Reference.rest(now.pose).pieces]

    def add(self, name: str, pose: Array, drones: Array) -> None:
        """Append rows."""
        if self.names[-1:] != [name]:
            self.names.append(name)
        self.drones.append(drones)
        self.stage += [len(self.names) - 1] * len(pose)
        self.load = pose[-1].copy()

    def shares(self, duration_s: float) -> Array:
        """Share of a move at each of its rows; the first one already moves, (k,)."""
        count = max(1, int(np.ceil(duration_s * self.rate_hz - 1e-9)))
        return (1.0 + np.arange(count)) / count

    def carry(self, name: str, now: Situation, end: Array, speed_m_s: float) -> None:
        """Move the load straight, in formation."""
        start = self.load
        share = self.shares(float(np.linalg.norm(end[:3] - start[:3])) / speed_m_s)
        begin_s = (len(self.stage) - 1) / self.rate_hz
        self.pieces.append(
            Piece(begin_s, begin_s, StraightMove(start, end.copy(), len(share) / self.rate_hz))
        )
        pose = start + share[:, None] * (end - start)
        self.add(name, pose, now.places(pose))

    def fly(self, name: str, start: Array, end: Array, duration_s: float, hold_s: float) -> None:
        """Move the drones smoothly, (n, 3) to (n, 3), with the load's set-point at rest."""
        share = self.shares(duration_s)
        share = np.append(smoothstep(share), np.ones(int(hold_s * self.rate_hz)))
        drones = start + share[:, None, None] * (end - start)
        self.add(name, np.tile(self.load, (len(share), 1)), drones)

    def plan(self, landing_speed_m_s: float | None) -> FlightPlan:
        """What has been put together."""
        return FlightPlan(
            self.rate_hz,
            Reference(self.pieces),
            np.vstack(self.drones),
            np.tile(self.yaw, (len(self.stage), 1)),
            np.array(self.stage),
            tuple(self.names),
            landing_speed_m_s,
        )


def continued(now: Situation, mission: MissionSpec, speed_m_s: float) -> FlightPlan:
    """New formation, then the rest of the plan in it."""
    rows = _Rows(now)
    _reform(rows, now, mission, speed_m_s)
    first = rows.plan(None)
    old, begin = now.plan, min(now.row + 1, len(now.plan.stage) - 1)
    pose, planned = old.load_pose[begin:], old.drone_position_enu_m[begin:]
    # Where the drones leave the formation, to land, the way there starts at the new places.
    leaves = np.isin([old.stage_names[k] for k in old.stage[begin:]], ("spread", "land"))
    drones = now.places(pose)
    if leaves.any():
        row = int(leaves.argmax())
        count = min(max(1, int(mission.form_up_s * old.rate_hz)), len(pose) - row)
        ahead = np.arange(len(pose) - row) + 1.0
        left = np.clip(1.0 - ahead / count, 0.0, 1.0)
        left = smoothstep(left)
        shift = drones[row] - planned[row]
        drones[row:] = planned[row:] + left[:, None, None] * shift
        gone = np.isnan(now.offsets_m[:, 0])
        drones[row:, gone] = now.drones_enu_m[gone]
    stage = old.stage[begin:]
    return replace(
        old,
        drone_position_enu_m=np.concatenate([first.drone_position_enu_m, drones]),
        drone_yaw_rad=np.vstack([first.drone_yaw_rad, old.drone_yaw_rad[begin:]]),
        stage=np.concatenate([first.stage, stage - stage[0] + len(first.stage_names)]),
        stage_names=(*first.stage_names, *old.stage_names[stage[0] :]),
        reference=first.reference.then(
            old.reference.since(begin / old.rate_hz), first.duration_s
        ),
    )  # fmt: skip


def landed(
    now: Situation, scenario: Scenario, *, reforms: bool, speed_m_s: float, lower_m_s: float
) -> FlightPlan:
    """Set the load down where it is, then land around it."""
    system = formation_of(scenario.system, "contingency")
    mission, rows = scenario.mission, _Rows(now)
    if reforms:
        _reform(rows, now, mission, speed_m_s)
    else:  # the move down begins where the set-points are
        rows.add("lower", now.pose[None], now.drones_enu_m[None])
    resting = now.pose.copy()
    resting[2] = min(-system.load.collision.bottom_m, now.pose[2])
    rows.carry("lower", now, resting, lower_m_s)
    slack = resting.copy()
    slack[2] = min(mission.slack_height_m, resting[2])
    rows.carry("slacken", now, slack, lower_m_s)
    start = rows.drones[-1][-1]
    end = start.copy()
    for i in np.flatnonzero(~np.isnan(now.offsets_m[:, 0])):
        outward = start[i, :2] - slack[:2]
        outward /= max(float(np.linalg.norm(outward)), 1e-9)
        anchor_m = float(np.hypot(*system.load.cable_attachments_m[i][:2]))
        end[i, :2] = slack[:2] + outward * (anchor_m + ground_radius_m(system, int(i)))
        end[i, 2] = -system.drones[i].collision.bottom_m
    low = end + [0.0, 0.0, mission.rise_m]
    low = np.where(np.isnan(now.offsets_m), start, low)
    rows.fly("spread", start, low, mission.form_up_s, mission.settle_s)
    rows.add("land", rows.load[None], end[None])
    return rows.plan(mission.landing_speed_m_s)


def landed_clear(
    now: Situation,
    lost: NDArray[np.bool_],
    drones_enu_m: Array,
    apart_m: Array,
    reach_m: Array,
) -> FlightPlan | None:
    """The rest of a landing with places that keep clear of the drones that lie on the ground.

    Args:
        now: Where the flight is: its drones begin to spread out.
        lost: Drones that do not fly any more, (n,).
        drones_enu_m: Where all drones are, (n, 3).
        apart_m: Least level distance of each two, (n, n).
        reach_m: Largest level distance of each from the load, (n,).

    Returns:
        None where the places are clear already.
    """
    plan = now.plan.part(now.row)
    planned = plan.drone_position_enu_m
    spots = planned[-1, :, :2].copy()
    spots[lost] = drones_enu_m[lost, :2]
    clear = _moved_apart(spots, lost, apart_m, plan.load_pose[-1, :2], reach_m)
    shift = np.where(lost[:, None], 0.0, clear - spots)
    if np.abs(shift).max() < 1e-3:
        return None
    spreading = max(int((plan.stage == plan.stage[0]).sum()) - 1, 1)
    share = np.minimum(np.arange(len(planned)) / spreading, 1.0)
    moved = planned.copy()
    moved[:, :, :2] += smoothstep(share)[:, None, None] * shift
    return replace(plan, drone_position_enu_m=moved)


def _moved_apart(
    spots: Array, fixed: NDArray[np.bool_], apart_m: Array, load_enu_m: Array, reach_m: Array
) -> Array:
    """Move places within reach of the load, by little, until they are apart; (n, 2)."""
    places = spots.copy()
    for _ in range(300):
        way = places[:, None] - places[None]
        distance = np.linalg.norm(way, axis=2) + 1e9 * np.eye(len(places))
        missing = np.maximum(apart_m - distance, 0.0)
        missing[np.ix_(fixed, fixed)] = 0.0
        if missing.max() < 1e-4:
            break
        # Each of two gives way by half, one beside a fixed place by all of it.
        share = np.where(fixed[:, None], 0.0, np.where(fixed[None], 1.0, 0.5))
        places += ((share * missing / np.maximum(distance, 1e-9))[:, :, None] * way).sum(axis=1)
        out = places - load_enu_m
        too_far = reach_m / np.maximum(np.linalg.norm(out, axis=1), 1e-9)
        places[~fixed] = (load_enu_m + np.minimum(too_far, 1.0)[:, None] * out)[~fixed]
    return places


def _reform(rows: _Rows, now: Situation, mission: MissionSpec, speed_m_s: float) -> None:
    places = now.places(now.pose[None])[0]
    farthest = float(np.linalg.norm(places - now.drones_enu_m, axis=1).max())
    # A smooth move is 1.5 times as fast in its middle as on average.
    duration_s = max(1.0, 1.5 * farthest / speed_m_s)
    rows.fly("reform", now.drones_enu_m, places, duration_s, mission.settle_s)


def aside(scenario: Scenario, drone: int) -> Array:
    """Place of a drone (from 0) that has lost its cable, in the frame of the load's set-point."""
    place: Array = scenario.formation.offsets_m(scenario.system.n_drones)[drone].copy()
    outward = place[:2] / max(float(np.linalg.norm(place[:2])), 1e-9)
    place[:2] += ASIDE_M[0] * outward
    place[2] += ASIDE_M[1]
    return place
