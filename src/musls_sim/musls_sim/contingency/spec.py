"""What a scenario says about the loss of a drone: how it is noticed and what is done."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from musls_description.schema import Fraction, NonNegative, Number, Positive, spec

MIN_THRUST_MARGIN = 1.1
"""Least margin with which a multirotor can be controlled, as before every flight."""

LEAST_DRONES = 4
"""From so many on the loss of one can be survived."""


@spec
class ContingencySpec:
    """What the formation does when it has lost a drone or a cable.

    Who guides the formation knows the drones' measured places, their set-points and the forces of
    the hooks' load cells, nothing else.

    Attributes:
        drop_m: A drone this far below its set-point that sinks faster than `sink_m_s` is lost.
        sink_m_s: See there.
        slack_share: A cable that carries less than this share of an even part of the load for
            `slack_s` is lost; its drone flies on without load.
        slack_s: See there.
        delay_s: From the measurement that tells to the first command that follows from it: links,
            filters, decision.
        hook: "release" lets the cable of a lost drone go at the load; "hold" lets it hang there.
        then: "continue" goes on with the mission if the drones that are left carry the load with
            `margin`; "land" sets the load down where it is in any case.
        margin: Full thrust over needed thrust that each drone that is left needs to go on.
        clearance_m: Least distance of rotor tips in the new formation.
        speed_m_s: Of the drones on the way to their new places.
        lower_speed_m_s: Of the load when it is set down.
    """

    drop_m: Positive = 0.5
    sink_m_s: Positive = 1.0
    slack_share: Fraction = 0.1
    slack_s: Positive = 1.0
    delay_s: NonNegative = 0.1
    hook: Literal["release", "hold"] = "release"
    then: Literal["continue", "land"] = "continue"
    margin: Annotated[float, Field(ge=MIN_THRUST_MARGIN, le=10.0, allow_inf_nan=False), Number] = (
        1.15
    )
    clearance_m: NonNegative = 0.2
    speed_m_s: Positive = 0.4
    lower_speed_m_s: Positive = 0.3
