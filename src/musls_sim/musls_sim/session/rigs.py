"""Starts of rigs on the ground and in formation, and their plans.

A rig has no closed form of how it hangs, as `Hanging` of a load on one cable to each drone: here
elastic cables find it, of a rig with another cable model such that hardly stretch.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from musls_control.estimate import BodyMotion
from musls_control.mission.carrying import Carried, Held
from musls_control.mission.plan import (
    FlightPlan,
    GroundSpot,
    compile_paths_from_ground,
    compile_rig_from_ground,
    compile_rig_plan,
    hung,
)
from musls_control.mission.spec import OWN_PATHS
from musls_description.config.errors import ConfigError
from musls_description.hanging.ground import LANDING_RATIO, Ground
from musls_description.hanging.rig_places import (
    KNOT_M,
    hanging_m,
    rig_on_ground,
    rig_yaws_rad,
    tip_gaps_m,
    with_anchors,
)
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import from_yaw, rotate, yaw_of
from musls_description.system.drone import Box
from musls_description.system.slung_system import RigSystem
from musls_sim.plants.elastic.plant import ElasticPlant
from musls_sim.plants.elastic.rests import hung_plant, lowest_part_m, rests_along
from musls_sim.plants.elastic.start import settle
from musls_sim.plants.interface import Plant
from musls_sim.scenario.scenario import Scenario
from musls_sim.specs.physics import BodyState, CableStart, StartSpec
from musls_sim.specs.rig import RigSpec

BESIDE_M = 0.15
"""Room between a load and a second one beside which it is set down."""

REACH_SHARE = 0.9
"""Largest way aside of a load over the height at which it hangs above a second one."""

CLEAR_M = 0.05
"""Height over the ground from which a rig that is lifted counts as hanging."""


def is_formed(scenario: Scenario) -> bool:
    """Whether a rig starts on the ground or in its formation."""
    return scenario.system.formation is None and scenario.start.kind in ("ground", "air")


def body_states(
    places_enu_m: Array, attitudes_wxyz: Array, twists: Array | None = None
) -> tuple[BodyState, ...]:
    """Bodies at places, (k, 3), with attitudes, (k, 4), as a start has them.

    At rest, or with angular velocities and velocities, world, (k, 6).
    """
    motion = BodyMotion.of(places_enu_m, attitudes_wxyz)
    if twists is not None:
        motion.omega_enu_rad_s = twists[:, :3]
        motion.velocity_enu_m_s[:] = twists[:, 3:]
    return tuple(
        BodyState(
            position_enu_m=tuple(row[:3]),
            velocity_enu_m_s=tuple(row[3:6]),
            orientation_wxyz=tuple(row[6:10]),
            omega_body_rad_s=tuple(row[10:13]),
        )
        for row in motion.data.tolist()
    )


# ---------- Where the drones fly and stand


def _first_poses(scenario: Scenario) -> Array:
    """Where the paths of the drones begin, x, y, z [m], yaw [rad], (n, 4)."""
    own = scenario.mission.drones
    names = [f"drone_{i + 1}" for i in range(scenario.system.n_drones)]
    if missing := [name for name in names if name not in own]:
        raise ConfigError(
            f"start.kind = {scenario.start.kind}: mission.stages is missing, or mission.drones."
            f"{missing[0]}: without stages of the load each drone needs a path of its own"
        )
    return np.array([own[name][0].pose(np.zeros(1))[0] for name in names])


def _middle_enu_m(scenario: Scenario) -> Array:
    """Place on the ground round which the drones stand, (2,): that of the load."""
    system = scenario.system
    fixed = set(range(1, len(system.anchors) + 1)) - set(scenario.rig.free_anchors(system))
    if system.load is None and fixed:
        anchors = np.array([system.anchors[i - 1].position_enu_m[:2] for i in sorted(fixed)])
        return np.asarray(anchors.mean(axis=0))
    if scenario.mission.stages:
        return np.zeros(2)
    middle: Array = _first_poses(scenario)[:, :2].mean(axis=0)
    return middle


def _places(scenario: Scenario) -> tuple[Array, Array]:
    """Places, (n, 3), and yaws, (n,), of the drones relative to the set-point or the middle."""
    system = scenario.system
    if scenario.mission.stages or system.load is not None:
        places = scenario.formation.offsets_m(system.n_drones)
        yaws = rig_yaws_rad(system, places)[1 : 1 + system.n_drones]
    else:
        places = _first_poses(scenario)[:, :3] - [*_middle_enu_m(scenario), 0.0]
        yaws = np.zeros(system.n_drones)
    if not scenario.mission.stages:
        yaws = _first_poses(scenario)[:, 3]
    return places, yaws


# ---------- Starts


def rig_start(scenario: Scenario, system: RigSystem) -> tuple[RigSystem, StartSpec]:
    """The start of a rig as a state or an equilibrium, and the rig with its free anchors there."""
    free = scenario.rig.free_anchors(system)
    n = system.n_drones
    places, yaws = _places(scenario)
    if scenario.start.kind == "air":
        if scenario.start.swing_deg:
            raise ConfigError("start.swing_deg: a rig does not swing as one, must be 0 with it")
        if not scenario.mission.stages:
            raise ConfigError(
                "start.kind = air: mission.stages is missing: without a set-point of the load "
                "choose start: equilibrium"
            )
        pose = scenario.mission.stages[0].pose(np.zeros(1))[0]
        return _hung_at(system, free, pose, places, yaws)
    ground = rig_on_ground(
        system,
        free,
        places,
        _middle_enu_m(scenario),
        yaws_rad=yaws,
        ground=Ground.of(scenario.world, system),
    )
    states = body_states(ground.place_enu_m, ground.orientation_wxyz, ground.twists)
    start = StartSpec(
        kind="state",
        load=None if system.load is None else states[0],
        drones=states[1 : 1 + n],
        cables=tuple(
            CableStart(shape="nodes", nodes_enu_m=tuple(map(tuple, nodes.tolist())))
            for nodes in ground.nodes_enu_m
        ),
    )
    return with_anchors(_with_knots(system, free), free, ground.place_enu_m[1 + n :]), start


def _with_knots(system: RigSystem, free: list[int]) -> RigSystem:
    """The rig whose free anchors without a box are knots that lie on the ground."""
    knot = Box(size_m=(KNOT_M, KNOT_M, KNOT_M))
    anchors = list(system.anchors)
    for i in free:
        anchors[i - 1] = replace(anchors[i - 1], collision=anchors[i - 1].collision or knot)
    return replace(system, anchors=tuple(anchors))


def _hung_at(
    system: RigSystem, free: list[int], pose: Array, places: Array, yaws: Array
) -> tuple[RigSystem, StartSpec]:
    """The start of a rig that hangs at rest below drones round a set-point, (4,)."""
    n = system.n_drones
    turn = from_yaw(np.full(n, pose[3]))
    drones = pose[:3] + rotate(turn, places)
    bodies = np.zeros((1 + n + len(system.anchors), 3))
    bodies[1 : 1 + n] = drones
    for row, anchor in enumerate(system.anchors, start=1 + n):
        bodies[row] = anchor.position_enu_m
    headings = np.concatenate([[pose[3]], pose[3] + yaws, np.zeros(len(system.anchors))])
    hangs = hanging_m(system, free, bodies, headings)
    states = body_states(hangs, from_yaw(headings))
    start = StartSpec(
        kind="equilibrium",
        load=None if system.load is None else states[0],
        drones=states[1 : 1 + n],
    )
    return with_anchors(system, free, hangs[1 + n :]), start


# ---------- Plans


def rig_plan(scenario: Scenario, plant: Plant) -> FlightPlan:
    """The set-points of a rig from the start of its plant."""
    mission = scenario.mission
    state = plant.state
    yaws = yaw_of(state.orientation_wxyz)
    load = np.append(state.position_enu_m[0], yaws[0])
    if scenario.start.kind == "ground":
        return _from_ground(scenario, plant, load)
    plan = compile_rig_plan(mission, load, state.position_enu_m[1:], yaws[1:])
    resting = plant if isinstance(plant, ElasticPlant) else _at_rest_like(scenario, plant)
    return hung(plan, rests_along(resting, scenario.rig, plan), follows=not mission.stages)


def _at_rest_like(scenario: Scenario, plant: Plant) -> ElasticPlant:
    """The rig at rest below its drones where they are now, on cables that hardly stretch."""
    state = plant.state
    states = body_states(state.position_enu_m, state.orientation_wxyz)
    start = StartSpec(kind="equilibrium", load=states[0], drones=states[1:])
    anchors = state.anchor_motion[:, :3]
    system = with_anchors(plant.system, scenario.rig.free_anchors(plant.system), anchors)
    gravity = scenario.physics.gravity_m_s2
    return hung_plant(system, start, scenario.rig, gravity, scenario.cable_model)


def _from_ground(scenario: Scenario, plant: Plant, load: Array) -> FlightPlan:
    """The plan of a rig whose load stands at a pose, x, y, z [m], yaw [rad], (4,)."""
    system = plant.system
    mission = scenario.mission
    places, yaws = _places(scenario)
    spot = _spot(scenario, plant, load)
    resting, pose = _in_formation(scenario, system, places, yaws)
    weights = np.array([drone.mass_kg for drone in system.drones]) * resting.gravity_m_s2
    up_n = np.outer(weights, [0.0, 0.0, 1.0])
    if mission.stages:
        carried = _carried(resting, scenario.rig, pose, places, up_n)
        spot = replace(spot, beside_m=_beside(resting, scenario.rig, spot))
        plan = compile_rig_from_ground(mission, places, yaws, spot, carried)
        assert plan.share is not None
        clear_m = float(pose[2]) - lowest_part_m(resting.rig) + CLEAR_M
        floors_m = np.array([spot.height_m(place) for place in plan.load_pose])
        rows = np.flatnonzero((plan.share == 1.0) & (plan.load_pose[:, 2] >= floors_m + clear_m))
    else:
        slack = None
        if system.load is not None:
            slack = places + [0.0, 0.0, mission.slack_height_m + spot.start_m - load[2]]
        tied = len(scenario.rig.free_anchors(system)) < len(system.anchors)
        plan = compile_paths_from_ground(mission, slack, spot, returns=tied)
        rows = np.flatnonzero(plan.stage == plan.stage_names.index(OWN_PATHS))
    if not len(rows):  # a load that is not lifted as high as what hangs below it
        return plan
    flown = slice(int(rows[0]), int(rows[-1]) + 1)
    part = replace(
        plan,
        drone_position_enu_m=plan.drone_position_enu_m[flown],
        drone_yaw_rad=plan.drone_yaw_rad[flown],
        stage=plan.stage[flown],
    )
    held = rests_along(resting, scenario.rig, part, rows[0] / plan.rate_hz)
    held = _filled(plan, held, rows, load, up_n)
    return replace(plan, held=held) if mission.stages else hung(plan, held, follows=True)


def _spot(scenario: Scenario, plant: Plant, load: Array) -> GroundSpot:
    """Where a rig stands, and where its drones land: nearer to the load where there is room."""
    places, yaws = _places(scenario)
    ground = Ground.of(scenario.world, plant.system)
    standing = plant.state.position_enu_m[1:].copy()
    spot = GroundSpot(load[:3], float(load[3]), standing, system=plant.system, ground=ground)
    try:
        near = rig_on_ground(
            plant.system,
            scenario.rig.free_anchors(plant.system),
            places,
            _middle_enu_m(scenario),
            yaws_rad=yaws,
            ratio=LANDING_RATIO,
            ground=ground,
        )
    except ConfigError:
        return spot
    landing = replace(spot, drone_position_enu_m=near.place_enu_m[1 : 1 + plant.system.n_drones])
    return replace(spot, landing_offset_m=landing.offsets_m)


def _beside(resting: ElasticPlant, drives: RigSpec, spot: GroundSpot) -> tuple[Array, float] | None:
    """How the load is lowered beside second loads below it, see `GroundSpot.beside_m`.

    Raises:
        ConfigError: A second load hangs too close below the load.
    """
    system = resting.system
    load = resting.rig.bodies[0]
    if system.load is None:
        return None
    below = list[tuple[float, float]]()  # widths, and heights of the load where they stand
    for number in drives.free_anchors(system):
        body = resting.rig.bodies[system.n_drones + number]
        box = system.anchors[number - 1].collision
        depth_m = float(load.position_enu_m[2] - body.position_enu_m[2])
        if box is None or depth_m <= 0.0:
            continue
        wide_m = 0.5 * float(np.hypot(*box.size_m[:2])) + BESIDE_M
        wide_m += 0.5 * float(np.hypot(*system.load.collision.size_m[:2]))
        if wide_m > REACH_SHARE * depth_m:
            raise ConfigError(
                f"mission: anchor_{number} hangs {depth_m:.2g} m below the load, which takes "
                f"{wide_m / REACH_SHARE:.2g} m to be set down beside it; choose a longer cable, or "
                "start: equilibrium, which ends in the air"
            )
        below.append((wide_m, depth_m - box.bottom_m + system.load.collision.bottom_m))
    if not below:
        return None
    wide_m, begin_m = np.max(below, axis=0).tolist()
    landing = spot.offsets_m if spot.landing_offset_m is None else spot.landing_offset_m
    angles = np.linspace(0.0, 2.0 * np.pi, 16, endpoint=False)
    ways = wide_m * np.column_stack([np.cos(angles), np.sin(angles)])
    rooms = np.linalg.norm(ways[:, None] + landing[:, :2], axis=2).min(axis=1)
    return ways[int(rooms.argmax())], begin_m


def _in_formation(
    scenario: Scenario, system: RigSystem, places: Array, yaws: Array
) -> tuple[ElasticPlant, Array]:
    """The rig at rest in the air where its mission begins, and the set-point there, (4,)."""
    mission = scenario.mission
    if mission.stages:
        pose = mission.stages[0].pose(np.zeros(1))[0]
        hung_system, start = _hung_at(system, scenario.rig.free_anchors(system), pose, places, yaws)
    else:
        firsts = _first_poses(scenario)
        pose = np.append(firsts[:, :3].mean(axis=0) - places.mean(axis=0), 0.0)
        around = firsts[:, :3] - pose[:3]
        hung_system, start = _hung_at(system, scenario.rig.free_anchors(system), pose, around, yaws)
    gravity = scenario.physics.gravity_m_s2
    floor_m = 0.0 if scenario.world.is_flat else None
    return hung_plant(
        hung_system, start, scenario.rig, gravity, scenario.cable_model, floor_m
    ), pose


def _carried(
    resting: ElasticPlant, drives: RigSpec, pose: Array, places: Array, up_n: Array
) -> Carried:
    """Forces that drones hold at rest, where the set-point is at a pose, (4,)."""
    system = resting.system
    rest = settle(copy.deepcopy(resting.rig), system, drives)
    return Carried.by_pull(
        system.drones,
        resting.gravity_m_s2,
        rest.thrust_enu_n - up_n,
        float(pose[3]),
        sag_m=float(pose[2] - resting.state.position_enu_m[0, 2]),
        gap_m=float(tip_gaps_m(system, places).min(initial=np.inf)),
        length_m=float(np.linalg.norm(places, axis=1).max()),
    )


def _filled(
    plan: FlightPlan, held: Held, rows: NDArray[np.int64], load: Array, up_n: Array
) -> Held:
    """Equilibria at all rows of a plan, of which those from `rows` are known.

    In the others the drones carry themselves, and what the plan says of the load's weight; it
    stands where it stood, (4,), or where it was set down.
    """
    k = len(plan.stage)
    first = int(rows[0])
    end = int(rows[-1]) + 1
    share = np.zeros(k) if plan.share is None else plan.share.copy()
    share[first:end] = 1.0

    def stretched(values: Array) -> Array:
        return np.concatenate(
            [
                np.repeat(values[:1], first, axis=0),
                values,
                np.repeat(values[-1:], k - end, axis=0),
            ]
        )

    part = share[:, None, None]
    pose = stretched(held.load_pose)
    pose[:first] = load
    pose[end:, 2] = load[2]
    return Held(
        pose,
        up_n + part * (stretched(held.thrust_enu_n) - up_n),
        part * stretched(held.moment_body_n_m),
        part[:, 0] * stretched(held.tension_n),
        held.reason,
    )
