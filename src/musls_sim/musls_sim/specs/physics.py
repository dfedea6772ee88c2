"""Scenario keys of the physics: steps, start, wind."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from musls_description.config.schema import (
    Fraction,
    NonNegative,
    Number,
    Quaternion,
    Vector3,
    spec,
)
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2

CONTROL_PERIOD_S = 0.004
"""Period of the autopilot and sensors, PX4's 250 Hz; the largest step that is ever chosen."""

MIN_STEP_S = 1e-6
"""Smallest physics step that may be asked for; smaller ones would never end."""

MAX_GRAVITY_M_S2 = 100.0
"""Four times Jupiter's; no multirotor lifts itself beyond."""

MIN_GRAVITY_M_S2 = 1e-6
"""Less than that of any asteroid; cables have no shape to hang in without it."""

Gravity = Annotated[
    float, Field(ge=MIN_GRAVITY_M_S2, le=MAX_GRAVITY_M_S2, allow_inf_nan=False), Number
]


def _divides_period(step_s: float | str) -> float | str:
    if isinstance(step_s, str):
        return step_s
    in_range = MIN_STEP_S <= step_s <= CONTROL_PERIOD_S
    ratio = CONTROL_PERIOD_S / step_s if in_range else 0.0
    if not in_range or abs(ratio - round(ratio)) > 1e-6:
        raise ValueError(
            f"the step must divide the control period {CONTROL_PERIOD_S:g} s: "
            f"0.004, 0.002, 0.001, 0.0005, ... down to {MIN_STEP_S:g}, or auto"
        )
    return step_s


Step = Annotated[float | Literal["auto"], AfterValidator(_divides_period)]


FINEST_ACCURACY = 1e-8
"""Rounding errors are larger than what is finer."""

Accuracy = Annotated[float, Field(ge=FINEST_ACCURACY, le=0.1, allow_inf_nan=False), Number]


@spec
class PhysicsSpec:
    """Engine, step size and gravity of the plant.

    Attributes:
        engine: "embedded" steps in our own plant. Rigid-link cables have others besides: "dart"
            steps in DART with its hard contacts, first order in the step, as Gazebo does; "gazebo"
            on a Gazebo Harmonic server in this process, in lockstep (needs Gazebo's Python
            bindings). "gazebo_px4" is the generated world with Gazebo's own motors and sensors,
            flown by real PX4s over PX4's Gazebo bridge.
        step_size_s: Time step that divides 4 ms, or "auto" for the largest one that is stable and
            as accurate as asked for.
        accuracy: Largest error by the time step that "auto" takes: of smooth motion as a share of
            its way. What moves faster (a jerk, a load that tilts) is followed with finer steps for
            as long as it carries energy, whatever the step; a load that tilts at 10 to 30 rad/s
            errs up to 2.5 times as much at 1e-4 and below. DART and Gazebo, first order in the
            step, do not follow it.
        gravity_m_s2: Gravity.
        exact_friction: Joint friction as exact constraints of DART (slow) instead of regularised.
        refine: Halve the step for the moments in which a jerk asks for it.
        inextensible: Rigid links do not stretch when they jerk, as in DART and Gazebo. Their peaks
            are then several times those of a rope.
        cable_restitution: Share of the rate of separation with which the ends of a massless cable
            come back after a jerk; 0 for none.
        contact: Bodies that ground and obstacles hold up with dry friction: load, drones, cables.
            Without "cables" these lie on soft ground and hang through obstacles; with it each of
            their nodes is a ball of the cable's radius. In rigid_links and elastic.
    """

    engine: Literal["embedded", "dart", "gazebo", "gazebo_px4"] = "embedded"
    step_size_s: Step = "auto"
    accuracy: Accuracy = 1e-3
    gravity_m_s2: Gravity = STANDARD_GRAVITY_M_S2
    exact_friction: bool = False
    refine: bool = True
    inextensible: bool = False
    cable_restitution: Fraction = 0.0
    contact: tuple[Literal["load", "drones", "cables"], ...] = ("load", "drones")

    def __post_init__(self) -> None:
        in_dart = self.exact_friction or self.engine != "embedded"
        if in_dart and set(self.contact) != {"load", "drones"}:
            raise ValueError(
                f"contact: [{', '.join(self.contact)}] needs engine: embedded without "
                "exact_friction, must be [load, drones] with others"
            )


# ---------- Start of a flight


@spec
class BodyState:
    """Motion of one body at the start.

    Attributes:
        position_enu_m: Centre of mass, world.
        velocity_enu_m_s: World.
        orientation_wxyz: Body FLU to world ENU; by default that of kind "air" where the mission is
            flown in formation, else level with the nose to the east.
        omega_body_rad_s: Body frame.
        rotor_speed_rad_s: Speeds of a drone's rotors; by default those of hover in this pose, or
            zero where it stands on something.
    """

    position_enu_m: Vector3
    velocity_enu_m_s: Vector3 = (0.0, 0.0, 0.0)
    orientation_wxyz: Quaternion | None = None
    omega_body_rad_s: Vector3 = (0.0, 0.0, 0.0)
    rotor_speed_rad_s: tuple[NonNegative, ...] | None = None

    @property
    def attitude_wxyz(self) -> tuple[float, float, float, float]:
        """The orientation; level where none is given."""
        return self.orientation_wxyz or (1.0, 0.0, 0.0, 0.0)


@spec
class CableStart:
    """Shape of a cable between its ends at the start.

    Attributes:
        shape: "equilibrium": as it hangs at rest between its ends; "straight": along the line
            between them, whatever its length; "nodes": as given.
        strain: Strain of a straight cable: its free length becomes the distance over 1 + strain.
        nodes_enu_m: Nodes for "nodes": all of them from end 1 to end 2, world, (segments + 1, 3).
    """

    shape: Literal["equilibrium", "straight", "nodes"] = "equilibrium"
    strain: Annotated[float, Field(gt=-0.5, le=10.0, allow_inf_nan=False), Number] | None = None
    nodes_enu_m: tuple[Vector3, ...] | None = None

    def __post_init__(self) -> None:
        if self.strain is not None and self.shape != "straight":
            raise ValueError(f"strain belongs to shape: straight, not to {self.shape}")
        if (self.nodes_enu_m is None) == (self.shape == "nodes"):
            raise ValueError("nodes_enu_m belongs to shape: nodes, which needs it")


SwingAngle = Annotated[float, Field(ge=0.0, le=80.0), Number]


@spec
class StartSpec:
    """Start of a flight: on the ground, hanging in the air, at rest in equilibrium or as given.

    Attributes:
        kind: "ground": all standing, cables slack; "air": hanging in equilibrium at the first
            stage's first set-point; "state": as given by `load` and `drones`; "equilibrium", of
            rigs and elastic cables: drones at rest as given, the load where it hangs at rest.
        load: Motion of the load, for "state"; where to look for the place at which it hangs.
        drones: Motion of the drones, for "state" and "equilibrium", one each.
        cables: Shapes of the cables of a rig: one for all, or one each.
        swing_deg: Angle, for "air", by which load, cables and drones' places are turned about the
            middle of the drones from hanging at rest; cables are taut.
        heading_deg: Direction in which the load is swung out, from east to north.
    """

    kind: Literal["ground", "air", "state", "equilibrium"] = "ground"
    load: BodyState | None = None
    drones: tuple[BodyState, ...] | None = None
    cables: CableStart | tuple[CableStart, ...] | None = None
    swing_deg: SwingAngle = 0.0
    heading_deg: Annotated[float, Field(ge=-360.0, le=360.0), Number] = 0.0

    def __post_init__(self) -> None:
        if self.kind != "air" and (self.swing_deg or self.heading_deg):
            raise ValueError(f"swing_deg and heading_deg belong to kind: air, not to {self.kind}")
        if self.load is not None and self.load.rotor_speed_rad_s is not None:
            raise ValueError("load.rotor_speed_rad_s: a load has no rotors")
        has_state = self.load is not None or self.drones is not None
        if self.kind == "state" and not has_state:
            raise ValueError("kind: state needs load and drones")
        if self.kind in ("ground", "air") and (has_state or self.cables is not None):
            raise ValueError(f"load, drones and cables belong to kind: state, not to {self.kind}")


def _from_text(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


Start = Annotated[StartSpec, BeforeValidator(_from_text)]
"""A scenario's start: a mapping, or its kind alone."""
