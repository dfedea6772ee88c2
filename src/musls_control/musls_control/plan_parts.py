"""Flight plans cut and put together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from musls_control.mission import FlightPlan


def part_of(plan: FlightPlan, first: int, end: int) -> FlightPlan:
    """Rows of a plan, from the first one up to, without, an end."""
    part = slice(first, end)
    return replace(
        plan,
        load_pose=plan.load_pose[part],
        drone_position_enu_m=plan.drone_position_enu_m[part],
        drone_yaw_rad=plan.drone_yaw_rad[part],
        stage=plan.stage[part],
        reference=plan.reference.since(first / plan.rate_hz),
    )


def joined(first: FlightPlan, second: FlightPlan) -> FlightPlan:
    """Two plans of the same rate, one after the other."""
    return replace(
        second,
        load_pose=np.concatenate([first.load_pose, second.load_pose]),
        drone_position_enu_m=np.concatenate(
            [first.drone_position_enu_m, second.drone_position_enu_m]
        ),
        drone_yaw_rad=np.concatenate([first.drone_yaw_rad, second.drone_yaw_rad]),
        stage=np.concatenate([first.stage, second.stage + len(first.stage_names)]),
        stage_names=(*first.stage_names, *second.stage_names),
        reference=first.reference.then(second.reference, first.duration_s),
    )
