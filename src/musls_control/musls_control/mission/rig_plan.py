"""Plans of systems that are no cone: drones in a formation of any shape, and on paths of their own.

The formation is what stands at the start: it moves and turns as one with the set-point of the load,
or of what stands for it (row 0). Drones that `mission.drones` names fly their own paths instead.
How the rig hangs along such a plan its plant knows; `hung` takes that in.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_control.mission.carrying import Held
from musls_control.mission.plan import Draft, FlightPlan, fly_stages
from musls_control.mission.spec import OWN_PATHS, MissionSpec
from musls_control.px4.position_control import GRAVITY_M_S2
from musls_control.reference import Piece, Polyline, Reference
from musls_description.config.errors import ConfigError, near_names
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import from_yaw, rotate


def compile_rig_plan(
    mission: MissionSpec, load_pose: Array, drones_enu_m: Array, yaws_rad: Array
) -> FlightPlan:
    """Sample the set-points of a rig that begins and ends in the air.

    Args:
        mission: Stages, paths of drones, or both.
        load_pose: Of the load at the start: x, y, z [m], yaw [rad], (4,).
        drones_enu_m: Places of the drones at the start, (n, 3).
        yaws_rad: Their yaws, (n,).
    """
    back = from_yaw(np.full(len(drones_enu_m), -load_pose[3]))
    # `formed` lets drones face the load: these azimuths keep the yaws of the start.
    azimuths = yaws_rad - load_pose[3] - np.pi
    draft = Draft(mission, rotate(back, drones_enu_m - load_pose[:3]), azimuths)
    draft.hold("settle", load_pose, max(mission.settle_s, 0.2), "mission.settle_s")
    fly_stages(draft, None)
    return with_own_paths(draft.plan(), mission)


def with_own_paths(plan: FlightPlan, mission: MissionSpec) -> FlightPlan:
    """The plan with drones on the paths of `mission.drones`; it lasts until the last one is flown.

    Raises:
        ConfigError: Paths of a drone that is not there.
    """
    n, paths = plan.drone_yaw_rad.shape[1], dict[int, tuple[Array, Array]]()
    names = [f"drone_{i + 1}" for i in range(n)]
    for name, stages in mission.drones.items():
        if name not in names:
            raise ConfigError(f"mission.drones: unknown drone '{name}': {near_names(name, names)}")
        i = names.index(name)
        alone = Draft(
            replace(mission, stages=stages, drones={}), np.zeros((1, 3)), np.array([-np.pi])
        )
        first = np.array([*plan.drone_position_enu_m[0, i], plan.drone_yaw_rad[0, i]])
        alone.hold("settle", first, max(mission.settle_s, 0.2), "mission.settle_s")
        fly_stages(alone, None, f"mission.drones.{name}")
        paths[i] = np.vstack(alone.drones)[:, 0], np.vstack(alone.yaw)[:, 0]
    if not paths:
        return plan
    begun = len(plan.stage)
    rows = max(begun, *(len(places) for places, _ in paths.values()))

    def lasting(values: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([values, np.repeat(values[-1:], rows - len(values), axis=0)])

    places, yaws = lasting(plan.drone_position_enu_m), lasting(plan.drone_yaw_rad)
    for i, (own, heading) in paths.items():
        places[:, i], yaws[:, i] = lasting(own), lasting(heading)
    stage, stage_names = lasting(plan.stage), plan.stage_names
    if rows > begun:
        stage[begun:] = len(stage_names)
        stage_names = (*stage_names, OWN_PATHS)
    return replace(
        plan, drone_position_enu_m=places, drone_yaw_rad=yaws, stage=stage, stage_names=stage_names
    )


def hung(plan: FlightPlan, held: Held, *, follows: bool) -> FlightPlan:
    """The plan with what the drones hold along it: what changes of their pull is fed forward.

    `follows`: the load's set-point is where it hangs, as nothing else is asked of it.
    """
    up = held.thrust_enu_n[..., 2:]
    lean = held.thrust_enu_n[..., :2] / np.maximum(up, 1e-9)
    fed = np.zeros_like(held.thrust_enu_n)
    fed[..., :2] = GRAVITY_M_S2 * (lean - lean[0])
    reference = plan.reference
    if follows:
        times_s = np.arange(len(plan.stage)) / plan.rate_hz
        path = Polyline(times_s, held.load_pose, float(times_s[-1]))
        reference = Reference([Piece(0.0, 0.0, path)])
    return replace(plan, reference=reference, drone_acceleration_enu_m_s2=fed, held=held)
