"""How the physics of a scenario is stepped."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from musls_description.schema import Fraction, Number, spec

CONTROL_PERIOD_S = 0.004
"""Period of the autopilot and sensors, PX4's 250 Hz; the largest step that is ever chosen."""

MIN_STEP_S = 1e-6
"""Smallest physics step that may be asked for; smaller ones would never end."""


STANDARD_GRAVITY_M_S2 = 9.80665

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
    allowed = MIN_STEP_S <= step_s <= CONTROL_PERIOD_S
    ratio = CONTROL_PERIOD_S / step_s if allowed else 0.0
    if not allowed or abs(ratio - round(ratio)) > 1e-6:
        raise ValueError(
            f"the step must divide the control period {CONTROL_PERIOD_S:g} s: "
            f"0.004, 0.002, 0.001, 0.0005, ... down to {MIN_STEP_S:g}, or auto"
        )
    return step_s


Step = Annotated[float | Literal["auto"], AfterValidator(_divides_period)]


@spec
class PhysicsSpec:
    """How the plant is stepped.

    Attributes:
        engine: "embedded" steps in our own plant, "gazebo" on a Gazebo Harmonic server in this
            process, in lockstep, with rigid-link cables (needs Gazebo's Python bindings).
            "gazebo_px4" is the generated world with Gazebo's own motors and sensors, flown by real
            PX4s over PX4's Gazebo bridge.
        step_size_s: Time step that divides 4 ms, or "auto" for the largest stable one.
        gravity_m_s2: Gravity.
        exact_friction: Joint friction as exact constraints (slow) instead of regularised.
        refine: Halve the step for the moments in which a jerk asks for it.
        cable_restitution: Share of the rate of separation with which the ends of a massless cable
            come back after a jerk; 0 for none.
    """

    engine: Literal["embedded", "gazebo", "gazebo_px4"] = "embedded"
    step_size_s: Step = "auto"
    gravity_m_s2: Gravity = STANDARD_GRAVITY_M_S2
    exact_friction: bool = False
    refine: bool = True
    cable_restitution: Fraction = 0.0
