"""Equilibria of a rig along a plan, each computed from the last one.

Drones stand still at the places of their set-points, anchors where their paths have them, and so
much cable is out as the winches have paid out by then. Accelerations are left out.
"""

from __future__ import annotations

import copy
import functools
from dataclasses import replace

import numpy as np

from musls_control.mission.carrying import Held
from musls_control.mission.plan import FlightPlan
from musls_description.config.errors import ConfigError
from musls_description.hanging.rig_places import hanging_m, with_anchors
from musls_description.numerics.arrays import Array
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.numerics.rotations import from_matrix, from_yaw, matrix, wrapped, yaw_of
from musls_description.system.obstacles import GROUND
from musls_description.system.slung_system import ElasticLine, RigSystem
from musls_sim.plants.driving import path_motion, straight
from musls_sim.plants.elastic.plant import ElasticPlant
from musls_sim.plants.elastic.reels import radius_at
from musls_sim.plants.elastic.rig import Rig
from musls_sim.plants.elastic.start import RigRest, settle
from musls_sim.specs.physics import BodyState, StartSpec
from musls_sim.specs.rig import AnchorPath, AnchorRecording, RigSpec

MOST_RESTS = 60
"""Equilibria of a plan; between them its rows are straight."""

CLEAR_M = 0.05
"""Height of all parts over the ground from which a rig that moves as one hangs as before."""


LIGHT_KG = 1e-5
STIFF_N = 1e8
"""Mass and stiffness of cables that stand for those without mass and stretch."""

HARDLY = 1e-3
"""Strain of those that have mass under the weight of the rig: with less, rounding accelerates their
nodes."""


def weightless_rig(system: RigSystem) -> RigSystem:
    """The rig on cables of one straight segment that hardly weigh and stretch."""
    line = ElasticLine(ea_n=STIFF_N, damping_n_s=0.0)
    cables = [
        replace(cable, mass_kg=LIGHT_KG, links=1, elastic=line, material=None)
        for cable in system.cables
    ]
    return replace(system, cables=tuple(cables))


def unstretched_rig(system: RigSystem) -> RigSystem:
    """The rig on cables that hardly stretch: at rest they hang as chains of rigid links do."""
    line = ElasticLine(ea_n=system.mass_kg * STANDARD_GRAVITY_M_S2 / HARDLY, damping_n_s=0.0)
    cables = [replace(cable, elastic=line, material=None) for cable in system.cables]
    return replace(system, cables=tuple(cables))


def resting_rig(system: RigSystem, cable_model: str) -> RigSystem:
    """The rig on elastic cables that hangs at rest as it does with a cable model."""
    if cable_model == "massless":
        return weightless_rig(system)
    return unstretched_rig(system) if cable_model == "rigid_links" else system


def hung_plant(
    system: RigSystem,
    start: StartSpec,
    drives: RigSpec,
    gravity_m_s2: float,
    cable_model: str,
    ground_height_enu_m: float | None = 0.0,
) -> ElasticPlant:
    """A rig on elastic cables in its start, at rest as with a cable model, see `resting_rig`.

    Of the ground only level one is there; None for none. Where an equilibrium says nothing of the
    load, it is looked for below the drones.
    """
    if (
        system.load is not None
        and start.kind == "equilibrium"
        and start.load is None
        and len(start.drones or ()) == system.n_drones
    ):
        free = drives.free_anchors(system)
        first = 1 + system.n_drones
        bodies = np.zeros((first + len(system.anchors), 3))
        bodies[1:first] = [drone.position_enu_m for drone in start.drones or ()]
        for row, anchor in zip(bodies[first:], system.anchors, strict=True):
            row[:] = anchor.position_enu_m
        turns = np.array([drone.attitude_wxyz for drone in start.drones or ()]).reshape(-1, 4)
        yaws = np.zeros(len(bodies))
        yaws[1:first] = yaw_of(turns)
        hangs = hanging_m(system, free, bodies, yaws)
        system = with_anchors(system, free, hangs[first:])
        start = replace(start, load=BodyState(position_enu_m=tuple(hangs[0].tolist())))
    rig = resting_rig(system, cable_model)
    make = functools.partial(
        ElasticPlant,
        gravity_m_s2=gravity_m_s2,
        drives=drives,
        ground_height_enu_m=ground_height_enu_m,
    )
    hung = make(rig, start)
    if cable_model != "rigid_links" or start.kind != "equilibrium":
        return hung
    tension_n = hung.state.tension_n.mean(axis=1)
    strains = [f / cable.ea_n for f, cable in zip(tension_n, rig.cables, strict=True)]
    cables = [  # so much shorter that the stretched cable has its length
        replace(cable, length_m=cable.length_m / (1.0 + strain))
        for cable, strain in zip(rig.cables, strains, strict=True)
    ]
    rig = with_anchors(rig, drives.free_anchors(rig), hung.state.anchor_motion[:, :3])
    load = BodyState(
        position_enu_m=tuple(hung.state.position_enu_m[0].tolist()),
        orientation_wxyz=tuple(hung.state.orientation_wxyz[0].tolist()),
    )
    rig = replace(rig, cables=tuple(cables))
    return make(rig, replace(start, load=load))


def rests_along(
    plant: ElasticPlant, drives: RigSpec, plan: FlightPlan, begin_s: float = 0.0
) -> Held:
    """Find how a rig hangs at the rows of a plan; rows after one without rest are as the last.

    `begin_s`: time of the flight at the first row.
    """
    k = len(plan.stage)
    rows = np.unique(np.linspace(0, k - 1, min(k, MOST_RESTS)).round().astype(np.int64))
    times_s = begin_s + rows / plan.rate_hz
    moves = _Moves(plant, drives, times_s)
    rig = copy.deepcopy(plant.rig)
    poses = list[Array]()
    rests = list[RigRest]()
    reason = ""
    for at, row in enumerate(rows):
        target = plan.drone_position_enu_m[row], plan.drone_yaw_rad[row]
        if moves.to(rig, at, *target) or not rests:
            try:
                rests.append(settle(rig, plant.system, drives))
            except ConfigError as error:
                reason = f"{times_s[at]:.1f} s ({plan.stage_at(row)}): {error}"
                break
        else:
            rests.append(rests[-1])
        poses.append(_load_pose(rig, plant))
    if not rests:
        n = plan.drone_yaw_rad.shape[1]
        nothing = np.zeros((k, n, 3))
        return Held(plan.load_pose, nothing, nothing, np.zeros((k, plant.system.n_cables)), reason)

    def at_rows(values: list[Array]) -> Array:
        table = np.array(values).reshape(len(values), -1)
        columns = [np.interp(np.arange(k), rows[: len(values)], column) for column in table.T]
        between: Array = np.array(columns).T.reshape(k, *np.shape(values[0]))
        return between

    poses_of = np.array(poses)
    poses_of[:, 3] = np.unwrap(poses_of[:, 3])
    return Held(
        at_rows(list(poses_of)),
        at_rows([rest.thrust_enu_n for rest in rests]),
        at_rows([rest.moment_body_n_m for rest in rests]),
        at_rows([rest.tension_n for rest in rests]),
        reason,
    )


class _Moves:
    """Moves drones and anchors of a rig, and turns its winches, from time to time."""

    def __init__(self, plant: ElasticPlant, drives: RigSpec, times_s: Array) -> None:
        system = plant.system
        first = 1 + plant.system.n_drones
        rows = range(len(plant.rig.bodies))
        self._held = np.array(
            [r > 0 and not (r >= first and drives.free(r - first + 1)) for r in rows]
        )
        self._paths: dict[int, Array] = {}
        around = np.append(times_s, times_s[-1] + 1.0)
        for i, anchor in enumerate(system.anchors):
            drive = drives.anchors.get(f"anchor_{i + 1}")
            if isinstance(drive, (AnchorPath, AnchorRecording)):
                motion = path_motion(drive, anchor.position_enu_m)
                self._paths[first + i] = motion.ends(around)[:, 0, :3]
        self._out_m = np.zeros((len(times_s), len(system.winches)))
        for w in range(len(system.winches)):
            drive_of = drives.winches.get(f"winch_{w + 1}")
            if drive_of is None or drive_of.torque_n_m is not None:
                continue  # where a torque brings it nobody knows beforehand
            course = straight(drive_of.time_s, drive_of.value)
            borders = np.append(0.0, times_s)
            spans = np.diff(borders)
            means = course.means(borders + 1e-9 * np.arange(len(borders)))[:, 0]
            shaft = plant.tables.shafts[w]
            angles = np.cumsum(means * spans)
            self._out_m[:, w] = [radius_at(shaft, float(angle))[2] for angle in angles]

    def to(self, rig: Rig, at: int, drones_enu_m: Array, yaws_rad: Array) -> bool:
        """Go to a time; whether the rig hangs otherwise there, not only elsewhere."""
        any_turned = _turn(rig, yaws_rad)
        shifts = np.zeros((len(rig.bodies), 3))
        for row, place in enumerate(drones_enu_m, start=1):
            shifts[row] = place - rig.bodies[row].position_enu_m
        for row, path in self._paths.items():
            shifts[row] = path[at] - rig.bodies[row].position_enu_m
        held_shifts = shifts[self._held]
        shifts[~self._held] = held_shifts.mean(axis=0)  # where to look for what is free
        before_m = lowest_m(rig)
        for cable in rig.cables:
            begin, end = shifts[list(cable.bodies)]
            cable.nodes_enu_m = cable.nodes_enu_m + np.linspace(begin, end, cable.segments + 1)
        for body, shift in zip(rig.bodies, shifts, strict=True):
            body.position_enu_m = body.position_enu_m + shift
        paid_m = self._out_m[at] - (self._out_m[at - 1] if at else 0.0)
        winches = list(rig.winches)
        for w, (winch, out_m) in enumerate(zip(winches, paid_m, strict=True)):
            cable = rig.cables[winch.cable - 1]
            longer = (cable.length_m + out_m) / cable.length_m
            cable.length_m = cable.length_m * longer
            cable.mass_kg = cable.mass_kg * longer
            winches[w] = replace(winch, stored_length_m=(winch.stored_length_m or 0.0) - out_m)
        rig.winches = winches
        as_one = np.ptp(held_shifts, axis=0).max() < 1e-9 and np.abs(paid_m).max(initial=0.0) < 1e-9
        as_one &= not any_turned
        if as_one and not held_shifts.any():
            return False
        return not (as_one and min(before_m, lowest_m(rig)) > CLEAR_M)


def _turn(rig: Rig, yaws_rad: Array) -> bool:
    """Turn drones to yaws, (n,), and the cables' ends with them; whether any turned."""
    any_turned = False
    for row, yaw in enumerate(yaws_rad, start=1):
        body = rig.bodies[row]
        by = wrapped(yaw - yaw_of(from_matrix(body.rotation[None])))
        if abs(by[0]) < 1e-9:
            continue
        any_turned = True
        before = body.rotation
        body.rotation = matrix(from_yaw(by))[0] @ before
        for cable in rig.cables:
            for end, node in ((0, 0), (1, -1)):
                if cable.bodies[end] == row:
                    shift = (body.rotation - before) @ cable.points_m[end]
                    cable.nodes_enu_m[node] = cable.nodes_enu_m[node] + shift
    return any_turned


def lowest_m(rig: Rig) -> float:
    """Height of the lowest part over level ground; infinite without ground, -inf if not known."""
    if rig.ground_height_enu_m is None:
        uneven = any(obstacle.name == GROUND for obstacle in rig.obstacles)
        return -np.inf if uneven else np.inf
    return lowest_part_m(rig) - rig.ground_height_enu_m


def lowest_part_m(rig: Rig) -> float:
    """Height of the lowest corner or node."""
    corners = [body.position_enu_m + body.corners_m @ body.rotation.T for body in rig.bodies]
    parts = [*corners, *(cable.nodes_enu_m for cable in rig.cables)]
    return min(float(part[:, 2].min()) for part in parts if len(part))


def _load_pose(rig: Rig, plant: ElasticPlant) -> Array:
    """Pose of the load, or of the middle of the first cable in its place: x, y, z, yaw, (4,)."""
    if plant.system.load is None:
        cable = rig.cables[0]
        return np.append(cable.nodes_enu_m[cable.segments // 2], 0.0)
    load = rig.bodies[0]
    return np.append(load.position_enu_m, yaw_of(from_matrix(load.rotation[None]))[0])
