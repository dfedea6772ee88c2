"""The mechanism in DART: skeleton, contacts, world."""

from __future__ import annotations

from time import perf_counter

import dartpy
import numpy as np

from musls_description.hanging.tree import Tree, TreeBody
from musls_description.numerics.arrays import Array
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.system.drone import Box
from musls_description.system.obstacles import CYLINDER, PLANE
from musls_description.system.slung_system import SlungLoadSystem
from musls_sim.plants.rigid_body import Records, surfaces_of


def _isometry(rotation: Array, position: Array) -> dartpy.math.Isometry3:
    transform = dartpy.math.Isometry3()
    transform.set_rotation(rotation)
    transform.set_translation(position)
    return transform


def build_skeleton(tree: Tree, *, friction_as_constraint: bool = False) -> dartpy.dynamics.Skeleton:
    """Make the skeleton: body k of the tree is body node k, coordinates in the same order.

    Coulomb friction as constraint is solved exactly by DART (slow); else the plant regularises it.
    """
    skeleton = dartpy.dynamics.Skeleton("musls")
    for k, body in enumerate(tree.bodies):
        if body.parent < 0:
            joint, node = skeleton.createFreeJointAndBodyNodePair(None)
        else:
            parent = skeleton.getBodyNode(body.parent)
            if body.axes == "yz":
                joint, node = skeleton.createUniversalJointAndBodyNodePair(parent)
                joint.setAxis1([0.0, 1.0, 0.0])
                joint.setAxis2([0.0, 0.0, 1.0])
            else:  # DART's Euler joint turns about x, y, z
                joint, node = skeleton.createEulerJointAndBodyNodePair(parent)
            _set_joint(joint, body, friction_as_constraint)
        joint.setName(f"{body.name}/joint")
        node.setName(body.name)
        node.setInertia(dartpy.dynamics.Inertia(body.mass_kg, body.com_m, body.inertia_kg_m2))
        if node.getIndexInSkeleton() != k:
            raise AssertionError("DART orders the bodies differently from the tree")
    return skeleton


def _set_joint(joint: dartpy.dynamics.Joint, body: TreeBody, friction: bool) -> None:
    joint.setTransformFromParentBodyNode(
        _isometry(body.joint_in_parent_rotation, body.joint_in_parent_position_m)
    )
    joint.setTransformFromChildBodyNode(
        _isometry(body.joint_in_child_rotation, body.joint_in_child_position_m)
    )
    for k, axis in enumerate(body.axes):
        joint.setDampingCoefficient(k, body.axis_damping_n_m_s_rad(axis))
        if axis != "x":  # a rope resists bending, not turning about itself
            joint.setSpringStiffness(k, body.stiffness_n_m_rad)
        if friction:
            joint.setCoulombFriction(k, body.friction_n_m)


def _add_box(node: dartpy.dynamics.BodyNode, box: Box, friction: float) -> None:
    shape = node.createShapeNode(dartpy.dynamics.BoxShape(list(box.size_m)))
    shape.setRelativeTransform(_isometry(np.eye(3), np.array(box.center_m)))
    shape.createCollisionAspect()
    shape.createDynamicsAspect()
    shape.getDynamicsAspect().setFrictionCoeff(friction)


def add_contact(
    world: dartpy.simulation.World,
    skeleton: dartpy.dynamics.Skeleton,
    tree: Tree,
    system: SlungLoadSystem,
    surfaces: Records,
) -> None:
    """Add surfaces, records of `SOLID`, that load and drones touch with their collision boxes."""
    still = dartpy.dynamics.Skeleton("surfaces")
    _, node = still.createWeldJointAndBodyNodePair(None)
    for solid in surfaces:
        shape = node.createShapeNode(_shape(solid))
        if solid["kind"] != PLANE:
            shape.setRelativeTransform(_isometry(solid["rotation"], solid["position"]))
        shape.createCollisionAspect()
        shape.createDynamicsAspect()
        shape.getDynamicsAspect().setFrictionCoeff(system.ground_friction)
    still.setMobile(False)
    world.addSkeleton(still)
    _add_box(skeleton.getBodyNode(0), system.load.collision, system.ground_friction)
    for index, drone in zip(tree.drone, system.drones, strict=True):
        _add_box(skeleton.getBodyNode(int(index)), drone.collision, system.ground_friction)
    # Of DART's collision detectors only ODE's handles boxes on an infinite plane well.
    world.getConstraintSolver().setCollisionDetector(dartpy.collision.OdeCollisionDetector())


def _shape(solid: np.void) -> dartpy.dynamics.Shape:
    if solid["kind"] == PLANE:
        normal = solid["rotation"][:, 2]
        return dartpy.dynamics.PlaneShape(normal.tolist(), float(normal @ solid["position"]))
    if solid["kind"] == CYLINDER:
        radius = float(solid["size"][0])
        height = 2.0 * float(solid["size"][2])
        return dartpy.dynamics.CylinderShape(radius, height)
    return dartpy.dynamics.BoxShape((2.0 * solid["size"]).tolist())


def build_world(
    skeleton: dartpy.dynamics.Skeleton, step_s: float, gravity_m_s2: float
) -> dartpy.simulation.World:
    """Make a world that steps the skeleton and never puts a resting one to sleep."""
    world = dartpy.simulation.World()
    world.setTimeStep(step_s)
    world.setGravity([0.0, 0.0, -gravity_m_s2])
    world.addSkeleton(skeleton)
    options = world.getDeactivationOptions()
    options.mEnabled = False
    world.setDeactivationOptions(options)
    return world


def bare_step_us(
    system: SlungLoadSystem,
    tree: Tree,
    positions: Array,
    step_s: float,
    repetitions: int = 20,
    batch: int = 10,
) -> float:
    """Time DART alone needs for a physics step of a mechanism, in flight [us]: benchmarks' unit.

    Steps it in a configuration, lifted clear of the ground, and takes the median over
    batches, short ones because a busy machine slows the long ones.
    """
    skeleton = build_skeleton(tree)
    world = build_world(skeleton, step_s, STANDARD_GRAVITY_M_S2)
    add_contact(world, skeleton, tree, system, surfaces_of(0.0, ()))
    start = positions.copy()
    start[5] += 1000.0
    rest = np.zeros_like(start)
    times = []
    for _ in range(repetitions):
        skeleton.setPositions(start)
        skeleton.setVelocities(rest)
        begin = perf_counter()
        for _ in range(batch):
            world.step()
        times.append((perf_counter() - begin) / batch)
    return float(np.median(times) * 1e6)
