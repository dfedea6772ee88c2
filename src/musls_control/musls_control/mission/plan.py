"""A mission: the phases of a flight, compiled into set-points for load and drones.

Phases as in the real flights: spool up, take off with slack cables into the formation, take up
the tension, lift, the stages with transits between them, lower, slacken, land, disarm. All
set-points are known beforehand, so they are sampled once at the set-point rate (5 Hz in the real
flights) and held in between; only the end, landing and disarming, waits for the drones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_control.autopilot import DroneSetpoints
from musls_control.mission.carrying import (
    LOAD_SHARE,
    LONGEST_SWINGS,
    LONGEST_WAIT_S,
    STILL_S,
    STILL_SHARE,
    TAKE_UP_S,
    Carried,
    Held,
)
from musls_control.mission.rows import (
    CARRIES,
    LOWERS,
    ROW,
    SPREADS,
    TAKEN_UP,
    UNWATCHED,
    WAIT,
    WATCHED,
    give_back,
    move_aside,
)
from musls_control.mission.spec import (
    GROUND_PHASES,
    LANDING,
    LONGEST_S,
    LOWERING,
    MAX_SETPOINTS,
    OWN_PATHS,
    MissionSpec,
)
from musls_control.px4.position_control import GRAVITY_M_S2
from musls_control.reference import Piece, Polyline, Reference, Rest, StraightMove
from musls_control.trajectories.base import smoothstep
from musls_description.config.errors import ConfigError, near_names
from musls_description.hanging.cone import Cone, drone_poses
from musls_description.hanging.ground import Ground, landing_places_m
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import compiled
from musls_description.numerics.rotations import (
    from_roll_pitch_yaw,
    from_yaw,
    rotate,
    whole_turns,
    wrapped,
)
from musls_description.system.drone import tip_radius_m
from musls_description.system.slung_system import RigSystem, SlungLoadSystem

HOOKED = "hooked"
RESTED = "rested"
RELEASED = "released"
"""Gates wait for: all hooks are closed; the load rests and the cables are slack, then the hooks
are opened; nothing hangs on the drones any more."""

WEIGHED = "weighed"
"""Gate without a wait, at which the weighed mass is reported."""


@dataclass(frozen=True)
class DeliveryGate:
    """A row of a plan that waits until something has happened.

    Attributes:
        timeout_s: Time after which the flight is aborted instead.
    """

    row: int
    what: str
    timeout_s: float


@dataclass(frozen=True)
class GroundSpot:
    """Places of load and drones on the ground before the flight.

    Attributes:
        load_position_enu_m: (3,).
        drone_position_enu_m: (n, 3).
        landing_offset_m: Landing places of the drones after the flight, load frame, (n, 3);
            None for the places of the start.
        system: Load and drones, where the ground is not flat.
        ground: The ground; None where it is as high everywhere as at these places.
    """

    load_position_enu_m: Array
    load_yaw_rad: float
    drone_position_enu_m: Array
    landing_offset_m: Array | None = None
    system: RigSystem | None = None
    ground: Ground | None = None

    @classmethod
    def of(
        cls,
        system: SlungLoadSystem,
        load_position_enu_m: Array,
        load_yaw_rad: float,
        drone_position_enu_m: Array,
        ground: Ground | None = None,
    ) -> GroundSpot:
        """Choose places to land with slack cables, see `landing_places_m`."""
        places = load_position_enu_m, load_yaw_rad, drone_position_enu_m
        spot = cls(*places, system=system, ground=ground)
        return replace(spot, landing_offset_m=landing_places_m(system, spot.offsets_m))

    @property
    def offsets_m(self) -> Array:
        """Places of the drones in the frame of the load, (n, 3)."""
        back = from_yaw(np.full(len(self.drone_position_enu_m), -self.load_yaw_rad))
        return rotate(back, self.drone_position_enu_m - self.load_position_enu_m)

    @property
    def start_m(self) -> float:
        """Height of the ground below the load at the start; 0 if flat."""
        return self.height_m(self.load_position_enu_m)

    def height_m(self, load_pose: Array) -> float:
        """Height of the ground below a set-point of the load; 0 if it is flat."""
        return 0.0 if self.ground is None else self.ground.height_m(*load_pose[:2])

    def rests_m(self, load_pose: Array) -> float:
        """Height of the load where it stands below a set-point, (4,)."""
        start = self.load_position_enu_m
        if self.ground is None or self.system is None or self.system.load is None:
            return float(start[2])
        box = self.system.load.collision
        here, _ = self.ground.stand(box, "load", load_pose[0], load_pose[1], load_pose[3])
        there, _ = self.ground.stand(box, "load", start[0], start[1], self.load_yaw_rad)
        return float(start[2] + here[2] - there[2])

    def lands_m(self, places_enu_m: Array, yaws_rad: Array) -> Array:
        """Heights of drones that stand at places, (n, 3) with the height where it is flat, (n,)."""
        if self.ground is None or self.system is None:
            return places_enu_m[:, 2]
        return np.array(
            [
                self.ground.stand(drone.collision, f"drone_{i}", x, y, yaw)[0][2]
                for i, (drone, (x, y, _), yaw) in enumerate(
                    zip(self.system.drones, places_enu_m, yaws_rad, strict=True), 1
                )
            ]
        )


LEAST_RETURN_S = 3.0
RETURN_M_S = 0.1
"""Time in which drones go to their places after a controller has flown them, and mean speed."""


@dataclass(frozen=True)
class FlightPlan:
    """Set-points of a whole flight, sampled; row k holds from k / rate_hz to the next.

    Attributes:
        reference: Set-point of the load over time: its rows are samples of it, held in between.
        drone_position_enu_m: (k, n, 3).
        drone_yaw_rad: (k, n).
        stage: Index into `stage_names`, (k,).
        stage_names: Phases and stages in the order flown, e.g. "take_off", "circle", "transit".
        landing_speed_m_s: Descent in the last row, in which the drones come down to their places
            and are disarmed when they have landed; None for a plan that ends in the air.
        gates: Rows that wait for something, see `delivery`.
        ground: Places of load and drones before; None for a plan that begins in the air.
        drone_acceleration_enu_m_s2: Feed-forward against the cables' pull, (k, n, 3), see
            `carrying`; None for none.
        share: Share of the load's weight that is fed forward, (k,); None for nothing.
        carried: Forces of the drones while the load hangs; None where not known.
        waits: Rows that wait until load and drones are in place, records of `WAIT`.
        held: Equilibria of a rig along the plan; None where not known.
        feeds_flight: Whether the cables' pull is fed forward in the stages, too.
    """

    rate_hz: float
    reference: Reference
    drone_position_enu_m: Array
    drone_yaw_rad: Array
    stage: NDArray[np.int64]
    stage_names: tuple[str, ...]
    landing_speed_m_s: float | None = None
    gates: tuple[DeliveryGate, ...] = ()
    ground: GroundSpot | None = None
    drone_acceleration_enu_m_s2: Array | None = None
    share: Array | None = None
    carried: Carried | None = None
    waits: NDArray[np.void] = field(default_factory=lambda: np.zeros(0, WAIT))
    held: Held | None = None
    feeds_flight: bool = False

    @property
    def duration_s(self) -> float:
        """Time to the last planned set-point."""
        return len(self.stage) / self.rate_hz

    def from_places(self, row: int, places_enu_m: Array) -> FlightPlan:
        """The same plan with drones that are elsewhere in a row, places (n, 3), NaN if not known.

        It begins where they are, so that the load hangs on as it does, and leads them to where
        they should be. What has been flown before the row stays.
        """
        off_m = np.nan_to_num(places_enu_m - self.drone_position_enu_m[row])
        takes_s = max(LEAST_RETURN_S, float(np.linalg.norm(off_m, axis=1).max()) / RETURN_M_S)
        share = np.arange(len(self.stage) - row) / (takes_s * self.rate_hz)
        fade = np.where(share < 1.0, 1.0 - share**3 * (10.0 - 15.0 * share + 6.0 * share**2), 0.0)
        places = self.drone_position_enu_m.copy()
        places[row:] += fade[:, None, None] * off_m
        return replace(self, drone_position_enu_m=places)

    @cached_property
    def load_pose(self) -> Array:
        """Set-points of the load: x, y, z [m, ENU], yaw [rad], (k, 4)."""
        return self.reference.samples(self._times_s)[:, 0].copy()

    @cached_property
    def load_orientation_wxyz(self) -> Array:
        """Attitude of the load's set-point, roll and pitch included, (k, 4)."""
        tilt = self.reference.tilts(self._times_s)[:, 0]
        return from_roll_pitch_yaw(np.column_stack([tilt, self.load_pose[:, 3]]))

    @cached_property
    def poses(self) -> tuple[Array, Array]:
        """Places and attitudes of load and drones by rows, (k, 1 + n, 3) and (k, 1 + n, 4)."""
        load = self.load_pose[:, None, :3]
        turn = self.load_orientation_wxyz[:, None]
        return (
            np.concatenate([load, self.drone_position_enu_m], axis=1),
            np.concatenate([turn, from_yaw(self.drone_yaw_rad)], axis=1),
        )

    @cached_property
    def setpoints(self) -> Array:
        """`DroneSetpoints` of all rows, armed, as places, (k, n, columns)."""
        rows, n = self.drone_yaw_rad.shape
        drones = DroneSetpoints.unset(rows * n)
        drones.position_enu_m[:] = self.drone_position_enu_m.reshape(-1, 3)
        drones.yaw_enu_rad[:] = self.drone_yaw_rad.ravel()
        drones.armed[:] = 1.0
        if self.drone_acceleration_enu_m_s2 is not None:
            feed_forward = self.drone_acceleration_enu_m_s2.reshape(-1, 3)
            drones.acceleration_enu_m_s2[:] = np.where(
                np.any(feed_forward, axis=1, keepdims=True), feed_forward, np.nan
            )
        return drones.data.reshape(rows, n, drones.data.shape[1])

    @property
    def _times_s(self) -> Array:
        return np.arange(len(self.stage)) / self.rate_hz

    def stage_at(self, row: int) -> str:
        """Phase or stage of a row."""
        return self.stage_names[self.stage[row]]

    def lands_in(self, row: int) -> bool:
        """Whether the drones touch down in a row: the last one of a plan that lands."""
        return self.landing_speed_m_s is not None and row == len(self.stage) - 1

    @property
    def begins(self) -> NDArray[np.bool_]:
        """Rows in which a stage begins, (k,)."""
        return np.diff(self.stage, prepend=-1) != 0

    @cached_property
    def plain(self) -> NDArray[np.bool_]:
        """Rows that nothing but time leads away from: the load is carried, no row waits, (k,)."""
        plain = self.rows["phase"] == CARRIES
        plain[np.clip(self.waits["row"] - 1, 0, len(plain) - 1)] = plain[-1] = False
        return plain

    def drone_setpoints(self, row: int, *, touches_down: bool) -> DroneSetpoints:
        """Set-points of the drones, armed; as a place, or to sink to the ground below it."""
        setpoints = DroneSetpoints(self.setpoints[row].copy())
        if touches_down:
            assert self.landing_speed_m_s is not None
            # As PX4's land mode: hold the place, sink at a speed. A position below the ground
            # alone would never count as a wish to land.
            setpoints.position_enu_m[:, 2] = np.nan
            setpoints.velocity_enu_m_s[:, 2] = -self.landing_speed_m_s
        return setpoints

    @cached_property
    def rows(self) -> NDArray[np.void]:
        """Records of the rows, `ROW`."""
        phases = {**dict.fromkeys(LOWERING, LOWERS), LANDING[0]: SPREADS}
        # Nothing is watched while the load stands, or is being set down.
        watch = dict.fromkeys(GROUND_PHASES, UNWATCHED) | {"lift": TAKEN_UP, "abort": WATCHED}
        rows = np.zeros(len(self.stage), ROW)
        names = self.stage_names
        rows["phase"] = np.array([phases.get(name, CARRIES) for name in names])[self.stage]
        rows["watch"] = np.array([watch.get(name, WATCHED) for name in names])[self.stage]
        if self.share is not None:
            rows["share"] = self.share
        return rows

    def moved(self, way_m: Array, begun: int = 0, rows: int | None = None) -> FlightPlan:
        """The plan with drones moved aside by (n, 2), smoothly from a row on.

        `rows`: in so many; by default in the first phase.
        """
        rows = max(int((self.stage == self.stage[0]).sum()) - 1, 1) if rows is None else rows
        drones = self.drone_position_enu_m.copy()
        for k in range(begun + 1, len(drones)):
            move_aside(drones[k], way_m, begun, rows, k)
        return replace(self, drone_position_enu_m=drones)

    def given_back(self, found: Array, row: int) -> FlightPlan:
        """The plan after a row in which the drones' pull was found, given back from there on."""
        assert self.drone_acceleration_enu_m_s2 is not None
        assert self.share is not None
        feed_forward = self.drone_acceleration_enu_m_s2.copy()
        for k in range(row + 1, len(feed_forward)):
            give_back(feed_forward[k], found, self.share[k])
        return replace(self, drone_acceleration_enu_m_s2=feed_forward)

    def part(self, first: int) -> FlightPlan:
        """Rows from the first one on."""
        feed_forward = self.drone_acceleration_enu_m_s2
        share = self.share
        waits = self.waits.copy()
        waits["row"] -= first
        return replace(
            self,
            drone_acceleration_enu_m_s2=None if feed_forward is None else feed_forward[first:],
            share=None if share is None else share[first:],
            waits=waits[waits["row"] > 0],
            drone_position_enu_m=self.drone_position_enu_m[first:],
            drone_yaw_rad=self.drone_yaw_rad[first:],
            stage=self.stage[first:],
            reference=self.reference.since(first / self.rate_hz),
        )


class Draft:
    """Rows of a plan while it is being made.

    Attributes:
        offsets: Places of the drones in the frame of the load's set-point, (n, 3); NaN for those
            that do not fly any more.
        azimuth: Directions of these places, (n,).
        lost_enu_m: Set-points of drones that do not fly any more, (n, 3).
        last: Last set-point of the load: x, y, z [m], yaw [rad], (4,).
        gates: Conditions that its rows wait for.
        carried: Forces of the drones while the load hangs; None where not known.
        share: Share of the load's weight that is fed forward now.
        fed_m_s2: Accelerations that are asked for now, (n, 3).
        feeds_flight: Whether they turn with the load in the stages, too.
    """

    def __init__(
        self,
        mission: MissionSpec,
        offsets_m: Array,
        azimuths_rad: Array,
        carried: Carried | None = None,
    ) -> None:
        self.mission = mission
        self.rate_hz = mission.setpoint_rate_hz
        self.n = len(offsets_m)
        self.carried = carried
        self.share = 0.0
        self.fed_m_s2 = np.zeros((self.n, 3))
        self.feeds_flight = mission.feed_forward == "flight"
        self.offsets = offsets_m
        self.azimuth = azimuths_rad
        self.lost_enu_m = np.zeros((self.n, 3))
        self.last = np.zeros(4)
        self.drones: list[Array] = []
        self.yaw: list[Array] = []
        self.stage: list[int] = []
        self.names: list[str] = []
        self.pieces: list[Piece] = []
        self.gates: list[DeliveryGate] = []
        self.fed: list[Array] = []
        self.shares: list[float] = []
        self.waits: list[tuple[int, int, float, float, float, int]] = []

    @classmethod
    def of(
        cls, mission: MissionSpec, cone: Cone, n_drones: int, carried: Carried | None = None
    ) -> Draft:
        """Begin a plan of drones in formation."""
        return cls(mission, cone.offsets_m(n_drones), cone.azimuths_rad(n_drones), carried)

    def go_on_from(self, plan: FlightPlan, row: int) -> None:
        """Feed forward what a row of another plan does."""
        self.carried = plan.carried
        self.feeds_flight = plan.feeds_flight
        if plan.drone_acceleration_enu_m_s2 is not None and plan.share is not None:
            self.fed_m_s2 = plan.drone_acceleration_enu_m_s2[row].copy()
            self.share = float(plan.share[row])

    @property
    def now_s(self) -> float:
        """Time of the next row."""
        return len(self.stage) / self.rate_hz

    def times(self, duration_s: float, what: str) -> Array:
        """Times of the set-points of a phase from its beginning."""
        end_s = self.now_s + duration_s
        if not end_s <= LONGEST_S:
            raise ConfigError(
                f"{what}: lasts {duration_s:g} s and would end {end_s:g} s after the start; a "
                f"flight lasts at most {LONGEST_S:g} s (a day)"
            )
        rows = max(1, int(np.ceil(duration_s * self.rate_hz - 1e-9)))
        if (len(self.stage) + rows) * self.n > MAX_SETPOINTS:
            raise ConfigError(
                f"{what}: lasts {duration_s:g} s, which makes more than {MAX_SETPOINTS} set-points"
                f" of the drones: lower mission.setpoint_rate_hz ({self.rate_hz:g}) or the duration"
            )
        return np.arange(rows) / self.rate_hz

    def formed(self, pose: Array) -> tuple[Array, Array]:
        """Places (k, n, 3) and yaws (k, n) of the drones round set-points of the load, (k, 4)."""
        position, yaw = drone_poses(pose[:, :3], pose[:, 3], self.offsets, self.azimuth)
        return np.where(np.isnan(position), self.lost_enu_m, position), yaw

    def add(
        self, name: str, pose: Array, drones: Array | None = None, piece: Piece | None = None
    ) -> None:
        """Append rows of one phase: set-points of the load, (k, 4), the drones in formation.

        `drones`, (k, n, 3), are set-points of drones that are not in formation. `piece` is the path
        that the load's set-points sample; without it they stay where they are.
        """
        self.pieces.append(piece or Piece(self.now_s, self.now_s, Rest(pose[0])))
        position, yaw = self.formed(pose)
        if self.names[-1:] != [name]:
            self.names.append(name)
        feed_forward = np.repeat(self.fed_m_s2[None], len(pose), axis=0)
        if self.feeds_flight and self.carried is not None:
            before = self.carried.aside_m_s2(self.share, float(self.last[3]))
            feed_forward[:, :, :2] += [
                self.carried.aside_m_s2(self.share, y) - before for y in pose[:, 3]
            ]
        self.fed.append(feed_forward)
        self.fed_m_s2 = feed_forward[-1].copy()
        self.last = pose[-1]
        self.drones.append(position if drones is None else drones)
        self.yaw.append(yaw)
        self.stage += [len(self.names) - 1] * len(pose)
        self.shares += [self.share] * len(pose)

    def hold(self, name: str, pose: Array, duration_s: float, what: str) -> None:
        """Append a rest of the load's set-point at a pose, (4,), the drones in formation."""
        self.add(name, np.tile(pose, (len(self.times(duration_s, what)), 1)))

    def move(self, name: str, target: Array, speed: float, yaw_rate: float, hold_s: float) -> None:
        """Append a straight move of the load's set-point and a hold at its end."""
        start = self.last
        duration = max(
            np.linalg.norm(target[:3] - start[:3]) / speed, abs(target[3] - start[3]) / yaw_rate
        )
        if duration + hold_s < 1e-9:
            return
        # The first row already moves: the last one of the move is then its end, without a jump.
        times = self.times(duration + hold_s, f"mission: {name}") + 1.0 / self.rate_hz
        share = np.clip(times / max(duration, 1e-9), 0.0, 1.0)
        begin_s = self.now_s - 1.0 / self.rate_hz
        move = StraightMove(start, target.copy(), float(duration))
        pose = start + share[:, None] * (target - start)
        self.add(name, pose, piece=Piece(begin_s, begin_s, move))

    def carry(self, name: str, target: Array) -> None:
        """Append a move of the load's set-point to a pose, (4,), as between stages, and a rest."""
        mission = self.mission
        speed = mission.transit_speed_m_s
        yaw_rate = mission.transit_yaw_rate_rad_s
        self.move(name, target, speed, yaw_rate, mission.settle_s)

    def rise(
        self,
        name: str,
        height_m: float,
        hold_s: float | None = None,
        speed_m_s: float | None = None,
    ) -> None:
        """Append a move of the load's set-point straight up or down, and a rest.

        Both are the mission's where they are not given.
        """
        mission = self.mission
        speed = mission.vertical_speed_m_s if speed_m_s is None else speed_m_s
        hold_s = mission.settle_s if hold_s is None else hold_s
        target = np.array([*self.last[:2], height_m, self.last[3]])
        self.move(name, target, speed, mission.transit_yaw_rate_rad_s, hold_s)

    def fly_drones(
        self,
        name: str,
        load: Array,
        start: Array,
        end: Array,
        duration_s: float,
        load_end: Array | None = None,
    ) -> None:
        """Append a smooth move of the drones, (n, 3) each, above a resting load set-point.

        `load_end`, (4,): where the load's set-point moves straight meanwhile, if it does not rest.
        """
        times = self.times(duration_s, f"mission: {name}") + 1.0 / self.rate_hz
        share = (times / duration_s).clip(0.0, 1.0)
        drones = start + smoothstep(share)[:, None, None] * (end - start)
        if load_end is None:
            self.add(name, np.tile(load, (len(times), 1)), drones)
            return
        begin_s = self.now_s - 1.0 / self.rate_hz
        move = StraightMove(load, load_end, duration_s)
        pose = load + share[:, None] * (load_end - load)
        self.add(name, pose, drones, Piece(begin_s, begin_s, move))

    def wait(
        self, lowest_m: float = -np.inf, highest_m: float = np.inf, still_s: float = 0.0
    ) -> None:
        """Make the next row wait until all drones are in place and the load is at a height.

        `still_s`: for so long the load has to stay near a place, whichever.
        """
        if self.carried is not None and self.stage:
            longest_s = LONGEST_WAIT_S
            near_m = self.carried.near_m
            if still_s > 0.0:
                longest_s = max(longest_s, LONGEST_SWINGS * self.carried.swing_s)
                near_m = max(near_m, STILL_SHARE * self.carried.length_m)
            longest = int(np.ceil(longest_s * self.rate_hz))
            still = int(np.ceil(still_s * self.rate_hz))
            self.waits.append((len(self.stage), longest, near_m, lowest_m, highest_m, still))

    def floor_m(self, resting_m: float) -> float:
        """Set-point at which the load hangs as high as it stands."""
        return resting_m + (0.0 if self.carried is None else self.carried.sag_m)

    def carry_share(self, name: str, share: float) -> None:
        """Move the load's weight to the drones up to a share, or back."""
        carried = self.carried
        begin = self.share
        if carried is None or share == begin:
            return
        upwards = carried.taken_up_m_s2 if share > begin else carried.set_down_m_s2
        yaw = float(self.last[3])
        rows = len(self.times(TAKE_UP_S, f"mission: {name}"))
        shares: Array = begin + (share - begin) * np.arange(1, rows + 1) / rows
        self.hold(name, self.last, TAKE_UP_S, f"mission: {name}")
        feed_forward = self.fed[-1]
        feed_forward[:, :, :2] += carried.aside_m_s2(shares, yaw) - carried.aside_m_s2(begin, yaw)
        feed_forward[:, :, 2] += upwards(shares) - upwards(begin)
        self.shares[-rows:] = shares.tolist()
        self.fed_m_s2 = feed_forward[-1].copy()
        self.share = share

    def let_go(self) -> None:
        """Stop feeding pulls forward from the next row on: the load is dropped."""
        if self.carried is not None:
            self.fed_m_s2 = self.fed_m_s2.copy()
            self.fed_m_s2[:, :2] -= self.carried.aside_m_s2(self.share, float(self.last[3]))
            self.share = 0.0

    def plan(self, ground: GroundSpot | None = None) -> FlightPlan:
        """Put the rows together; the drones land if there is a ground."""
        return FlightPlan(
            self.rate_hz,
            Reference(self.pieces),
            np.vstack(self.drones),
            np.vstack(self.yaw),
            np.array(self.stage),
            tuple(self.names),
            None if ground is None else self.mission.landing_speed_m_s,
            tuple(self.gates),
            ground,
            np.vstack(self.fed),
            np.array(self.shares),
            self.carried,
            np.array(self.waits, WAIT),
            feeds_flight=self.feeds_flight,
        )


def fed_as_needed(mission: MissionSpec, make: Callable[[MissionSpec], FlightPlan]) -> FlightPlan:
    """A plan whose pull is fed forward in the stages, too, where its turns ask for it."""
    plan = make(mission)
    if mission.feed_forward != "auto" or plan.carried is None or plan.share is None:
        return plan
    if not plan.carried.comes_close(plan.share, plan.load_pose[:, 3], plan.rate_hz):
        return plan
    return make(replace(mission, feed_forward="flight"))


def compile_plan(
    mission: MissionSpec, cone: Cone, ground: GroundSpot, carried: Carried | None = None
) -> FlightPlan:
    """Sample all set-points of a mission that starts and ends on the ground.

    `carried`: what is fed forward and waited for; None for nothing.
    """

    def make(mission: MissionSpec) -> FlightPlan:
        n_drones = len(ground.drone_position_enu_m)
        return _there_and_back(Draft.of(mission, cone, n_drones, carried), ground)

    return fed_as_needed(mission, make)


def _there_and_back(draft: Draft, ground: GroundSpot) -> FlightPlan:
    """Take off, fly the stages, set the load down and land."""
    take_off(draft, ground, draft.mission.slack_height_m + ground.start_m)
    fly_stages(draft, ground)
    set_load_down(draft, ground)
    spread_and_land(draft, ground)
    return draft.plan(ground)


def compile_air_plan(
    mission: MissionSpec, cone: Cone, load_pose: Array, n_drones: int
) -> FlightPlan:
    """Sample all set-points of a mission that starts and ends hanging in the air.

    The load's set-point begins at x, y, z [m], yaw [rad], (4,); ground phases are left out.
    """
    draft = Draft.of(mission, cone, n_drones)
    draft.hold("settle", load_pose, max(mission.settle_s, 0.2), "mission.settle_s")
    fly_stages(draft, None)
    return with_own_paths(draft.plan(), mission)


# ---------- Systems that are no cone: formations of any shape, drones on paths of their own
#
# The formation is what stands at the start: it moves and turns as one with the set-point of the
# load, or of what stands for it (row 0). Drones that `mission.drones` names fly their own paths.
# How a rig hangs along such a plan its plant knows; `hung` takes that in.


def compile_rig_plan(
    mission: MissionSpec, load_pose: Array, drones_enu_m: Array, yaws_rad: Array
) -> FlightPlan:
    """Sample the set-points of a rig that begins and ends in the air.

    Args:
        mission: Stages, paths of drones, or both.
        load_pose: Pose of the load at the start: x, y, z [m], yaw [rad], (4,).
        drones_enu_m: Places of the drones at the start, (n, 3).
        yaws_rad: Yaws of the drones, (n,).
    """
    back = from_yaw(np.full(len(drones_enu_m), -load_pose[3]))
    # `formed` lets drones face the load: these azimuths keep the yaws of the start.
    azimuths = yaws_rad - load_pose[3] - np.pi
    draft = Draft(mission, rotate(back, drones_enu_m - load_pose[:3]), azimuths)
    draft.hold("settle", load_pose, max(mission.settle_s, 0.2), "mission.settle_s")
    fly_stages(draft, None)
    return with_own_paths(draft.plan(), mission)


def compile_rig_from_ground(
    mission: MissionSpec,
    places_m: Array,
    yaws_rad: Array,
    ground: GroundSpot,
    carried: Carried | None,
) -> FlightPlan:
    """Sample the set-points of a rig that begins and ends on the ground.

    Args:
        mission: Stages of the load, or of the middle of the first cable.
        places_m: Places of the drones round the set-point, its frame, (n, 3).
        yaws_rad: Yaws of the drones relative to it, (n,).
        ground: Places of load and drones on the ground.
        carried: What is fed forward and waited for.
    """

    def make(mission: MissionSpec) -> FlightPlan:
        # `formed` lets drones face the load: these azimuths give the yaws that are asked for.
        return _there_and_back(Draft(mission, places_m, yaws_rad - np.pi, carried), ground)

    return fed_as_needed(mission, make)


def compile_paths_from_ground(
    mission: MissionSpec, places_m: Array | None, ground: GroundSpot, *, returns: bool
) -> FlightPlan:
    """Sample the set-points of drones that take off, fly paths of their own, and land again.

    Args:
        mission: Paths of all drones.
        places_m: Places over the load, its frame, (n, 3), where cables are slack: the drones lift
            it from there and set it down so; None without a load.
        ground: Places of load and drones on the ground.
        returns: Whether they land where they stood, as what holds them does not move; else beside
            where they have flown to.
    """
    standing = ground.drone_position_enu_m
    paths = [_own_path(mission, f"drone_{i + 1}", None) for i in range(len(standing))]
    rows = max(len(places) for places, _ in paths)
    places = np.stack([_lasting(path, rows) for path, _ in paths], axis=1)
    yaws = np.stack([_lasting(yaw, rows) for _, yaw in paths], axis=1)
    draft = Draft(mission, np.zeros_like(standing), np.zeros(len(standing)))
    load = np.append(ground.load_position_enu_m, ground.load_yaw_rad)
    up = [0.0, 0.0, mission.rise_m]
    low = standing + up

    def rest(name: str, drones: Array, duration_s: float) -> None:
        count = len(draft.times(duration_s, f"mission: {name}"))
        draft.add(name, np.tile(load, (count, 1)), np.tile(drones, (count, 1, 1)))

    def fly(name: str, begin: Array, end: Array, *, slowly: bool = False) -> None:
        takes_s = _way_s(mission, begin, end)
        if slowly:
            far_m = float(np.linalg.norm(end - begin, axis=1).max())
            takes_s = max(takes_s, far_m / mission.vertical_speed_m_s)
        draft.fly_drones(name, load, begin, end, takes_s)
        rest(name, end, mission.settle_s)

    moved = np.zeros(3)
    if not returns:
        moved[:2] = (places[-1] - places[0]).mean(axis=0)[:2]
    rest("spool_up", standing, mission.spool_up_s)
    draft.fly_drones("take_off", load, low, low, mission.take_off_s)
    first = low
    if places_m is not None:
        first = load[:3] + places_m
        fly("form_up", low, first)
    fly("lift" if places_m is not None else "form_up", first, places[0], slowly=True)
    begin = len(draft.stage)
    draft.add(OWN_PATHS, np.tile(load, (rows, 1)), places)
    if places_m is not None:
        above = first + moved
        fly("lower", places[-1], above, slowly=True)
    else:
        above = places[-1]
    offsets = ground.landing_offset_m
    offsets = ground.offsets_m if offsets is None else offsets
    end = ground.load_position_enu_m + moved + offsets
    end[:, 2] = ground.lands_m(end, yaws[-1])
    takes_s = _way_s(mission, above, end + up)
    if places_m is None:
        takes_s = max(
            takes_s,
            float(np.linalg.norm(end + up - above, axis=1).max()) / mission.vertical_speed_m_s,
        )
    draft.fly_drones("spread", load, above, end + up, takes_s)
    rest("spread", end + up, mission.settle_s)
    draft.add("land", load[None], end[None])
    plan = draft.plan(ground)
    after = len(plan.stage) - begin - rows
    headings = np.concatenate([np.tile(yaws[0], (begin, 1)), yaws, np.tile(yaws[-1], (after, 1))])
    return replace(plan, drone_yaw_rad=headings)


def _own_path(mission: MissionSpec, name: str, first: Array | None) -> tuple[Array, Array]:
    """Places (k, 3) and yaws (k,) of a drone on the path of its own.

    It is at `first`, (4,), before; by default where its path begins.
    """
    stages = mission.drones[name]
    alone = Draft(replace(mission, stages=stages, drones={}), np.zeros((1, 3)), np.array([-np.pi]))
    if first is None:
        first = stages[0].pose(np.zeros(1))[0]
    alone.hold("settle", first, max(mission.settle_s, 0.2), "mission.settle_s")
    fly_stages(alone, None, f"mission.drones.{name}")
    return np.vstack(alone.drones)[:, 0], np.vstack(alone.yaw)[:, 0]


def _lasting(values: NDArray[Any], rows: int) -> NDArray[Any]:
    """Values, (k, ...), of which the last one stays until there are so many rows."""
    return np.concatenate([values, np.repeat(values[-1:], rows - len(values), axis=0)])


def with_own_paths(plan: FlightPlan, mission: MissionSpec) -> FlightPlan:
    """The plan with drones on the paths of `mission.drones`; it lasts until the last one is flown.

    Raises:
        ConfigError: Paths of a drone that is not there.
    """
    n = plan.drone_yaw_rad.shape[1]
    paths = dict[int, tuple[Array, Array]]()
    names = [f"drone_{i + 1}" for i in range(n)]
    for name in mission.drones:
        if name not in names:
            raise ConfigError(f"mission.drones: unknown drone '{name}': {near_names(name, names)}")
        i = names.index(name)
        first = np.array([*plan.drone_position_enu_m[0, i], plan.drone_yaw_rad[0, i]])
        paths[i] = _own_path(mission, name, first)
    if not paths:
        return plan
    n_before = len(plan.stage)
    rows = max(n_before, *(len(places) for places, _ in paths.values()))
    places = _lasting(plan.drone_position_enu_m, rows)
    yaws = _lasting(plan.drone_yaw_rad, rows)
    for i, (own, heading) in paths.items():
        places[:, i] = _lasting(own, rows)
        yaws[:, i] = _lasting(heading, rows)
    stage = _lasting(plan.stage, rows)
    stage_names = plan.stage_names
    if rows > n_before:
        stage[n_before:] = len(stage_names)
        stage_names = (*stage_names, OWN_PATHS)
    feed_forward = plan.drone_acceleration_enu_m_s2
    share = plan.share
    return replace(
        plan,
        drone_position_enu_m=places,
        drone_yaw_rad=yaws,
        stage=stage,
        stage_names=stage_names,
        drone_acceleration_enu_m_s2=None if feed_forward is None else _lasting(feed_forward, rows),
        share=None if share is None else _lasting(share, rows),
    )


def hung(plan: FlightPlan, held: Held, *, follows: bool) -> FlightPlan:
    """The plan with the forces that the drones hold along it, whose changes are fed forward.

    `follows`: the load's set-point is where it hangs, as nothing else is asked of it.
    """
    up = held.thrust_enu_n[..., 2:]
    lean = held.thrust_enu_n[..., :2] / np.maximum(up, 1e-9)
    feed_forward = np.zeros_like(held.thrust_enu_n)
    feed_forward[..., :2] = GRAVITY_M_S2 * (lean - lean[0])
    reference = plan.reference
    if follows:
        times_s = np.arange(len(plan.stage)) / plan.rate_hz
        path = Polyline(times_s, held.load_pose, float(times_s[-1]))
        reference = Reference([Piece(0.0, 0.0, path)])
    return replace(plan, reference=reference, drone_acceleration_enu_m_s2=feed_forward, held=held)


# ---------- Durations, and plans in which nothing moves


def estimated_duration_s(mission: MissionSpec, *, lands: bool) -> float:
    """Estimated duration of a flight that starts and ends on the ground (`lands`) or in the air."""
    if mission.duration_s is not None:
        return mission.duration_s
    if mission.drones:
        each = (*mission.drones.values(), *([mission.stages] if mission.stages else []))
        alone = (replace(mission, stages=stages, drones={}) for stages in each)
        return max(estimated_duration_s(one, lands=lands) for one in alone)
    start = mission.stages[0].pose(np.zeros(1))[0]
    last = np.array([0.0, 0.0, start[2], 0.0]) if lands else start
    total_s = mission.settle_s
    for stage in mission.stages:
        begin, end = stage.pose(np.array([0.0, stage.duration_s]))
        way = begin - last
        turn_rad = abs(wrapped(way[3]))
        transit_s = max(
            np.linalg.norm(way[:3]) / mission.transit_speed_m_s,
            turn_rad / mission.transit_yaw_rate_rad_s,
        )
        total_s += stage.duration_s + (transit_s + mission.settle_s if transit_s > 0.0 else 0.0)
        last = end
    if lands:
        slack_m = mission.slack_height_m
        total_s += mission.spool_up_s + mission.take_off_s
        total_s += 2.0 * (mission.form_up_s + mission.settle_s)
        up_and_down_m = abs(start[2] - slack_m) + abs(last[2] - slack_m)
        total_s += up_and_down_m / mission.vertical_speed_m_s
        if (delivery := mission.delivery) is not None:  # there and back, up and down once more
            ways_m = [np.linalg.norm(end[:2] - delivery.place_m) for end in (start, last)]
            total_s += sum(ways_m) / mission.transit_speed_m_s
            total_s += 2.0 * abs(last[2] - slack_m) / mission.vertical_speed_m_s
            total_s += 2.0 * delivery.weigh_s + 8.0 * mission.settle_s
    return float(total_s)


def hold_plan(mission: MissionSpec, load_pose: Array, drones: Array, yaws: Array) -> FlightPlan:
    """Plan in which load (4,) and drones (n, 3), (n,) stay for the mission's `duration_s`."""
    assert mission.duration_s is not None  # what asks for it has looked
    rows = max(1, int(np.ceil(mission.duration_s * mission.setpoint_rate_hz - 1e-9)))
    if rows * max(len(drones), 1) > MAX_SETPOINTS:
        raise ConfigError(
            f"mission.duration_s = {mission.duration_s:g}: makes more than {MAX_SETPOINTS} "
            f"set-points: lower mission.setpoint_rate_hz ({mission.setpoint_rate_hz:g})"
        )
    return FlightPlan(
        rows / mission.duration_s,
        Reference.rest(load_pose),
        np.tile(drones, (rows, 1, 1)),
        np.tile(yaws, (rows, 1)),
        np.zeros(rows, np.int64),
        ("hold",),
    )


def take_off(draft: Draft, ground: GroundSpot, slack_height_m: float) -> None:
    """Append spool-up, take-off and the way into the formation, cables slack."""
    mission = draft.mission
    if mission.drones:
        raise ConfigError(
            f"mission.drones: {', '.join(mission.drones)} fly paths of their own in flights that "
            "start in the air, choose start: air, state or equilibrium"
        )
    slack = np.array([*ground.load_position_enu_m[:2], slack_height_m, ground.load_yaw_rad])
    standing = ground.drone_position_enu_m
    rows = len(draft.times(mission.spool_up_s, "mission.spool_up_s"))
    draft.add("spool_up", np.tile(slack, (rows, 1)), np.tile(standing, (rows, 1, 1)))
    low = standing + [0.0, 0.0, mission.rise_m]
    formation, _ = draft.formed(slack[None])
    # One step up: PX4's own ramp shapes the take-off, and a slow set-point only delays it.
    draft.fly_drones("take_off", slack, low, low, mission.take_off_s)
    draft.fly_drones("form_up", slack, low, formation[0], _way_s(mission, low, formation[0]))
    draft.hold("form_up", slack, mission.settle_s, "mission.settle_s")


def fly_stages(draft: Draft, ground: GroundSpot | None, where: str = "mission.stages") -> None:
    """Append the stages with the ways between them; `where` they stand in the scenario."""
    for k, stage in enumerate(draft.mission.stages):
        first = stage.pose(np.zeros(1))[0]
        # The shorter way round: whole turns of the load are left as they are.
        turns_rad = float(whole_turns(draft.last[3] - first[3]))
        first[3] += turns_rad
        if ground is not None:
            if draft.last[2] < ground.rests_m(draft.last) < first[2]:
                lift(draft, ground, first[2])
            if (
                first[2] < ground.rests_m(first) < draft.last[2]
            ):  # set the load down where the stage begins
                draft.carry("transit", np.array([*first[:2], draft.last[2], first[3]]))
                set_load_down(draft, ground, "lower", slack_m=first[2], hold_s=None)
        if np.abs(draft.last - first).max() > 1e-9:
            draft.carry("transit", first)
        pose = stage.pose(draft.times(stage.duration_s, f"{where}.{k}"))
        pose[:, 3] += turns_rad
        draft.add(stage.kind, pose, piece=Piece(draft.now_s, draft.now_s, stage, turns_rad))


def lift(draft: Draft, ground: GroundSpot, height: float) -> None:
    """Take up the tension, then lift to a height, on the spot."""
    resting_m = ground.rests_m(draft.last)
    draft.wait()
    draft.rise("tension", draft.floor_m(resting_m), hold_s=0.0)
    draft.wait()
    draft.carry_share("tension", 1.0)
    draft.rise("lift", height)
    hangs_m = height - draft.floor_m(0.0)
    near_m = LOAD_SHARE * (hangs_m - resting_m)
    draft.wait(hangs_m - near_m, hangs_m + near_m)


def set_load_down(
    draft: Draft,
    ground: GroundSpot,
    slack: str = "slacken",
    *,
    slack_m: float | None = None,
    hold_s: float | None = 1.0,
) -> None:
    """Lower the load to the ground, give its weight back, go on down until the cables are slack.

    `slack` is the name of that phase and `slack_m` the set-point at its end, `hold_s` the rest
    then; None for the mission's.
    """
    resting_m = ground.rests_m(draft.last)
    if draft.last[2] > draft.floor_m(resting_m):
        if draft.carried is not None and draft.share > 0.0:
            draft.hold("lower", draft.last, 2.0 / draft.rate_hz, "mission: lower")
            draft.wait(still_s=STILL_S)
        draft.rise("lower", draft.floor_m(resting_m), hold_s=0.0 if hold_s is not None else None)
    if draft.carried is not None and draft.share > 0.0:
        draft.wait(highest_m=resting_m + draft.carried.near_m)
        draft.carry_share("lower", 0.0)
    if slack_m is None:
        slack_m = draft.mission.slack_height_m + ground.height_m(draft.last)
    if draft.last[2] > slack_m + 1e-9:
        draft.rise(slack, slack_m, hold_s=hold_s)


def spread_and_land(draft: Draft, ground: GroundSpot) -> None:
    """Spread out to places round the load, in the directions of the start, and come down."""
    last = draft.last
    offsets = ground.landing_offset_m
    offsets = ground.offsets_m if offsets is None else offsets
    end = rotate(from_yaw(np.full(len(offsets), last[3])), offsets)
    end += [*last[:2], ground.load_position_enu_m[2]]
    end[:, 2] = ground.lands_m(end, draft.yaw[-1][-1])
    land_at(draft, end, end + [0.0, 0.0, draft.mission.rise_m])


FORM_UP_M_S = 1.0
"""Mean speed of drones on their way to and from a formation, at most."""


def _way_s(mission: MissionSpec, begin: Array, end: Array) -> float:
    """Time for the drones' way between two places, (n, 3) each; longer where these are far off."""
    farthest_m = float(np.linalg.norm(end - begin, axis=1).max())
    return max(mission.form_up_s, farthest_m / FORM_UP_M_S)


def land_at(draft: Draft, end: Array, low: Array) -> None:
    """Append the drones' way to low places, (n, 3), a rest there, and the way down to others."""
    mission = draft.mission
    last = draft.last
    draft.wait()
    begin = draft.drones[-1][-1]
    draft.fly_drones("spread", last, begin, low, _way_s(mission, begin, low))
    # What is left of the upright part goes: on the ground it would ask for a take-off. Aside stays
    # what is left: the autopilots' integrators hold against it, and forget both on the ground.
    vertical = draft.fed[-1][:, :, 2]
    vertical *= 1.0 - np.arange(1, len(vertical) + 1)[:, None] / len(vertical)
    draft.fed_m_s2[:, 2] = 0.0
    rows = len(draft.times(mission.settle_s, "mission.settle_s"))
    draft.add("spread", np.tile(last, (rows, 1)), np.tile(low, (rows, 1, 1)))
    draft.add("land", last[None], end[None])


# ---------- The least distance between two drones, between centres and between rotor tips


@compiled()
def closest_pair(places, radii):
    """Find the two drones whose rotor tips come closest."""
    best = np.inf
    centres = np.inf
    row = 0
    first = 0
    second = 1
    for k in range(places.shape[0]):
        for i in range(places.shape[1]):
            for j in range(i + 1, places.shape[1]):
                square = 0.0
                for c in range(3):
                    gap = places[k, i, c] - places[k, j, c]
                    square += gap * gap
                distance = np.sqrt(square)
                if distance - radii[i] - radii[j] < best:
                    best = distance - radii[i] - radii[j]
                    centres = distance
                    row = k
                    first = i
                    second = j
    return row, first, second, centres, best


@dataclass(frozen=True)
class Closest:
    """The two drones that come closest.

    Attributes:
        pair: Numbers of the two drones, from 1.
        centres_m: Distance of their centres of mass.
        tips_m: Distance of their rotor tips in the worst attitude; negative where discs may touch.
    """

    time_s: float
    pair: tuple[int, int]
    centres_m: float
    tips_m: float


def closest_in_plan(system: RigSystem, plan: FlightPlan) -> Closest | None:
    """The closest that a plan brings two drones, None for one drone."""
    if system.n_drones < 2:
        return None
    radii = np.array([tip_radius_m(drone) for drone in system.drones])
    row, i, j, centres_m, tips_m = closest_pair(
        np.ascontiguousarray(plan.drone_position_enu_m), radii
    )
    return Closest(row / plan.rate_hz, (i + 1, j + 1), centres_m, tips_m)
