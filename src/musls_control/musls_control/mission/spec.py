"""Specifications of missions and of the answer to a loss, with their limits; phases."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from musls_control.trajectories import AnyTrajectory
from musls_description.config.schema import Finite, Fraction, NonNegative, Number, Positive, spec
from musls_description.hanging.hang import MIN_THRUST_MARGIN

LONGEST_S = 86400.0
"""Longest flight: a day. Batteries last half an hour."""

MAX_SETPOINTS = 2_000_000
"""Set-points of all drones together; all are sampled before the flight (some 200 bytes each)."""

LOWEST_RATE_HZ = 0.1
"""Lowest rate of set-points; each phase lasts at least one of their periods, ten seconds."""

LONGEST_PHASE_S = 3600.0
"""Longest spool-up, take-off, forming up or settling: nothing is carried in these phases."""

SLOWEST_M_S = 1e-3
FASTEST_M_S = 30.0
"""Slower moves end never, faster ones no multirotor flies; PX4's own limit is 12 m/s."""

Rate = Annotated[float, Field(ge=LOWEST_RATE_HZ, le=250.0, allow_inf_nan=False), Number]
Settling = Annotated[float, Field(ge=0.0, le=LONGEST_PHASE_S, allow_inf_nan=False), Number]
TurnRate = Annotated[float, Field(ge=1e-3, le=30.0, allow_inf_nan=False), Number]
Phase = Annotated[float, Field(ge=0.01, le=LONGEST_PHASE_S, allow_inf_nan=False), Number]
Speed = Annotated[float, Field(ge=SLOWEST_M_S, le=FASTEST_M_S, allow_inf_nan=False), Number]
Height = Annotated[float, Field(ge=-1000.0, le=1000.0, allow_inf_nan=False), Number]


@spec
class DeliverySpec:
    """Delivery of a load to a place, see `delivery`.

    Attributes:
        place_m: Place where the load is left, x and y.
        pick_up: "attached": the cables hang on the load from the beginning; "hook": they are open
            and are closed from above, once close and slow enough.
        drop: "ground": the load is set down, and let go when it rests and the cables are slack;
            "air": it is let go where it hangs.
        clearance_m: Height of open hooks over the load before they come down to it; height that
            the drones rise after letting go before it counts as gone.
        hook_distance_m: Largest distance at which a hook closes.
        hook_speed_m_s: Largest speed at which a hook closes.
        weigh_s: Time for weighing the load; the same time is taken before it for the drones alone.
        slack_share: Share of the load's weight on the drones below which it counts as set down.
        rest_speed_m_s: Speed of the load below which it rests.
        timeout_s: Longest wait for a hook, for the load to rest, and for it to be gone.
        abort: Reaction at the end of this wait: "return" sets the load down where it came from,
            "land" where it is.
    """

    place_m: tuple[Finite, Finite]
    pick_up: Literal["attached", "hook"] = "attached"
    drop: Literal["ground", "air"] = "ground"
    clearance_m: Positive = 0.4
    hook_distance_m: Positive = 0.1
    hook_speed_m_s: Positive = 0.3
    weigh_s: Phase = 4.0
    slack_share: Fraction = 0.2
    rest_speed_m_s: Positive = 0.05
    timeout_s: Phase = 15.0
    abort: Literal["return", "land"] = "return"


@spec
class MissionSpec:
    """Mission of a scenario: stages, times and speeds.

    Attributes:
        kind: "stages" flies the stages with the load; "delivery" leaves the load at a place and the
            drones come back without it.
        delivery: Settings of a delivery; its stages are flown with the load.
        stages: Trajectories of the load's set-point, one after the other. In a rig the drones keep
            the places round the load that they have at the start; without a load the middle of the
            first cable stands for it.
        drones: Trajectories of single drones, by name, in the place of the formation's or beside
            it; for flights that start in the air.
        duration_s: Instead of both: the drones hold the places where they start for this time.
            For rigs, and for starts in the air or in a state.
        setpoint_rate_hz: Rate at which set-points are updated; they are held in between.
        spool_up_s: Time armed on the ground before take-off (PX4's COM_SPOOLUP_TIME is 1 s of it).
        take_off_s: Time to rise to `rise_m`; PX4's take-off ramp takes 3 s of it.
        rise_m: Height above the ground where the drones form up, low enough to leave the cables
            slack at the distance where they stood. Left out, less for short cables, more beside a
            high load.
        form_up_s: Time to fly from there into the formation.
        slack_height_m: Height of the load's set-point at which the cables hang slack while the
            load stands on the ground. Left out, nearer to it for short cables and wide loads.
        vertical_speed_m_s: Vertical speed in the phases tension, lift, lower and slacken.
        transit_speed_m_s: Speed of the load between stages.
        transit_yaw_rate_rad_s: Yaw rate of the load between stages.
        settle_s: Time to hold after the lift and after each transit.
        landing_speed_m_s: Speed of the descent to the ground at the end (PX4's MPC_LAND_SPEED).
        feed_forward: Phases in which the cables' horizontal pull is fed forward to the autopilots:
            "ground", while the load is taken up and set down; "flight", in the stages too: drones
            of a load that turns are then not pulled together; "auto", in the stages where rotor
            tips would else come closer than half of their planned distance.
    """

    kind: Literal["stages", "delivery"] = "stages"
    delivery: DeliverySpec | None = None
    stages: tuple[AnyTrajectory, ...] = ()
    drones: dict[str, Annotated[tuple[AnyTrajectory, ...], Field(min_length=1)]] = Field(
        default_factory=dict
    )
    duration_s: Annotated[
        float | None, Field(gt=0.0, le=LONGEST_S, allow_inf_nan=False), Number
    ] = None
    setpoint_rate_hz: Rate = 5.0
    spool_up_s: Phase = 1.6
    take_off_s: Phase = 4.6
    rise_m: Annotated[float, Field(gt=0.0, le=1000.0, allow_inf_nan=False), Number] = 0.7
    form_up_s: Phase = 4.0
    slack_height_m: Height = -0.5
    vertical_speed_m_s: Speed = 0.3
    transit_speed_m_s: Speed = 0.4
    transit_yaw_rate_rad_s: TurnRate = 0.3
    settle_s: Settling = 1.5
    landing_speed_m_s: Speed = 0.5
    feed_forward: Literal["auto", "ground", "flight"] = "auto"

    def __post_init__(self) -> None:
        if bool(self.stages or self.drones) == (self.duration_s is not None):
            raise ValueError(
                "give either stages (at least 1) or drones (paths of their own), or duration_s "
                "without them: the drones then hold their places"
            )
        if (self.kind == "delivery") != (self.delivery is not None):
            raise ValueError(
                "kind: delivery and delivery: {place_m: [x, y]} go together: give both or neither"
            )
        if self.delivery is not None and (self.drones or not self.stages):
            raise ValueError(
                "kind: delivery needs stages, the path along which the load is carried, and no "
                "drones on paths of their own"
            )

    @property
    def all_stages(self) -> tuple[AnyTrajectory, ...]:
        """Stages of the load and of drones on paths of their own."""
        return (*self.stages, *(stage for own in self.drones.values() for stage in own))


# ---------- The phases that every mission has around its stages, and what follows from them

OWN_PATHS = "own_paths"
"""Phase in which only drones have something to fly (`mission.drones`)."""

_CARRIED = {
    "settle": "hang in formation before the first stage of a flight that begins in the air",
    "transit": "carry the load from one stage to the next",
    "reform": "fly to another formation after a drone was lost",
    "weigh": "hover with the load, and weigh it",
    OWN_PATHS: "drones fly paths of their own, and the load rests or follows",
    "approach": "carry the load to the place of delivery",
}
"""Phases in which the load hangs in the air."""

_AT_GROUND = {
    "spool_up": "stand armed, the rotors spin up",
    "take_off": "rise, the cables slack",
    "form_up": "fly into the formation, the cables slack",
    "tare": "hover with slack cables: the drones weigh themselves",
    "pick_up": "bring open hooks down to the load, wait until they have closed",
    "tension": "take up the tension of the cables",
    "lift": "lift the load off the ground",
    "lower": "bring the load down to the ground",
    "slacken": "go on down until the cables are slack",
    "set_down": "go on down at the place of delivery until the load rests",
    "release": "open the hooks",
    "climb": "rise without the load",
    "return": "fly back, without the load or with one that was not delivered",
    "descend": "come down without the load",
    "abort": "turn back",
    "spread": "fly apart, to land clear of the load",
    "land": "come down to the ground",
    "disarmed": "stand on the ground, the rotors off",
}
"""Phases in which the load stands, or goes to or from the ground."""

GROUND_PHASES = frozenset(_AT_GROUND)
PHASES = GROUND_PHASES | frozenset(_CARRIED)
"""Phases on the way to and from what a mission is about; its stages have other names."""

BELOW_FORMATION = ("spool_up", "take_off")
"""Phases from which the drones can land where they are."""

BEFORE_FORMATION = ("", *BELOW_FORMATION, "form_up")
"""The drones are not yet in formation; "" before the first phase."""

LOWERING = ("lower", "slacken")
"""A plan that ends on the ground sets the load down so, in this order ..."""

LANDING = ("spread", "land", "disarmed")
"""... and then lands the drones so; nothing is left to give up."""


@spec
class ContingencySpec:
    """Reaction of the formation to the loss of a drone or a cable.

    Who guides the formation knows the drones' measured places, their set-points and the forces of
    the hooks' load cells, nothing else.

    Attributes:
        drop_m: A drone this far below its set-point that sinks faster than `sink_m_s` is lost.
        sink_m_s: Speed of sinking, see `drop_m`.
        slack_share: A cable that carries less than this share of an even part of the load for
            `slack_s` is lost; its drone flies on without load.
        slack_s: Time, see `slack_share`.
        silent_s: Silence after which a drone is lost with `controller.kind: agents`, where
            drones have no other news of each other.
        delay_s: Time from the measurement to the first command in response: links,
            filters, decision.
        hook: "release" lets the cable of a lost drone go at the load; "hold" lets it hang there.
        then: "continue" goes on with the mission if the drones that are left carry the load with
            `margin`; "land" sets the load down where it is in any case.
        margin: Thrust margin that each drone that is left needs to go on.
        clearance_m: Least distance of rotor tips in the new formation.
        speed_m_s: Speed of the drones on the way to their new places.
        lower_speed_m_s: Speed of the load when it is set down.
    """

    drop_m: Positive = 0.5
    sink_m_s: Positive = 1.0
    slack_share: Fraction = 0.1
    slack_s: Positive = 1.0
    silent_s: Positive = 0.5
    delay_s: NonNegative = 0.1
    hook: Literal["release", "hold"] = "release"
    then: Literal["continue", "land"] = "continue"
    margin: Annotated[float, Field(ge=MIN_THRUST_MARGIN, le=10.0, allow_inf_nan=False), Number] = (
        MIN_THRUST_MARGIN
    )
    clearance_m: NonNegative = 0.2
    speed_m_s: Positive = 0.4
    lower_speed_m_s: Positive = 0.3
