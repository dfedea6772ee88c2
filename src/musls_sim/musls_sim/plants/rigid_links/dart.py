"""Writer of the system's tree as one DART skeleton, and of the world around it."""

from __future__ import annotations

import dartpy
import numpy as np
from dartpy.dynamics import Skeleton
from numpy.typing import NDArray

from musls_description.compiled import compiled
from musls_description.drone import Box
from musls_description.errors import ConfigError
from musls_description.system import SlungLoadSystem
from musls_description.tree import STOP_RAD, Body, Tree
from musls_sim.plants.rigid_links.tables import Views

Array = NDArray[np.float64]


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


def _set_joint(joint: dartpy.dynamics.Joint, body: Body, friction: bool) -> None:
    joint.setTransformFromParentBodyNode(
        _isometry(body.joint_in_parent_rotation, body.joint_in_parent_position_m)
    )
    joint.setTransformFromChildBodyNode(
        _isometry(body.joint_in_child_rotation, body.joint_in_child_position_m)
    )
    for k, axis in enumerate(body.axes):
        joint.setDampingCoefficient(k, body.damping_n_m_s_rad)
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


def add_ground_contact(
    world: dartpy.simulation.World,
    skeleton: dartpy.dynamics.Skeleton,
    tree: Tree,
    system: SlungLoadSystem,
    height_m: float,
) -> None:
    """Add a flat ground that load and drones touch with their collision boxes."""
    ground = dartpy.dynamics.Skeleton("ground")
    _, node = ground.createWeldJointAndBodyNodePair(None)
    plane = node.createShapeNode(dartpy.dynamics.PlaneShape([0.0, 0.0, 1.0], height_m))
    plane.createCollisionAspect()
    plane.createDynamicsAspect()
    plane.getDynamicsAspect().setFrictionCoeff(system.ground_friction)
    ground.setMobile(False)
    world.addSkeleton(ground)
    _add_box(skeleton.getBodyNode(0), system.load.collision, system.ground_friction)
    for index, drone in zip(tree.drone, system.drones, strict=True):
        _add_box(skeleton.getBodyNode(int(index)), drone.collision, system.ground_friction)
    # Of DART's collision detectors only ODE's handles boxes on an infinite plane well.
    world.getConstraintSolver().setCollisionDetector(dartpy.collision.OdeCollisionDetector())


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


# ---------- Friction and stops of cable joints, which DART integrates implicitly

CHANGE = 0.01
"""Relative change of an axis' damping from which it counts: telling DART of it costs time."""

STICK_RATE_RAD_S = 0.02
"""Rate w_s below which a joint counts as stuck (creep)."""

STIFFNESS_N_M_RAD = 5.0
DAMPING_N_M_S_RAD = 0.01

START_SLACK_RAD = np.radians(5.0)
"""How far beyond a stop a flight may start."""


# Coulomb friction. DART's own joint friction is a constraint per axis, solved exactly in an LCP
# that grows with the number of joints (the seed paper measured that it halves the speed). Here
# each axis gets the torque -tau_f w / sqrt(w^2 + w_s^2), which tends to Coulomb's law for rates
# above w_s and creeps at w_s r / sqrt(1 - r^2), r = tau / tau_f, when it sticks. It enters as
# additional joint damping tau_f / sqrt(w^2 + w_s^2) with w from the beginning of the step; DART
# integrates damping implicitly, so any step is stable.
#
# Stops. Beyond `tree.STOP_RAD` a spring and a damper hold a joint's second axis back from where
# it is singular, only while it is there.


@compiled()
def joint_changes(t, q, dq):
    """Springs and damping of all joints for the coming step, in the tables."""
    for k in range(1, t.side.shape[0]):
        if t.parents[k] < 0:
            continue
        second = t.first[k] + 1
        angle = q[second]
        now = 1 if angle > STOP_RAD else (-1 if angle < -STOP_RAD else 0)
        turned = now != t.side[k]
        if turned:
            t.side[k] = now
            t.rest[second] = now * STOP_RAD
            t.stiffness[second] = STIFFNESS_N_M_RAD if now else t.own_stiffness[second]
            t.extra_damping[second] = DAMPING_N_M_S_RAD if now else 0.0
        for c in range(t.first[k], t.first[k + 1]):
            spring = turned and c == second
            if not spring and t.friction[c] == 0.0:
                continue
            damping = t.own_damping[c] + t.extra_damping[c]
            if t.friction[c] > 0.0:
                damping += t.friction[c] / np.sqrt(dq[c] ** 2 + STICK_RATE_RAD_S**2)
            if spring or np.abs(damping - t.damping[c]) > CHANGE * t.damping[c]:
                t.damping[c] = damping
                t.changes[0] += 1


class JointForces:
    """Hands the joints' springs and damping to DART."""

    def __init__(self, skeleton: Skeleton, tree: Tree, views: Views) -> None:
        """Find the joints; none is at its stop yet."""
        self._views, self._bodies = views, tree.bodies
        self._axes = [(skeleton.getJoint(0), axis) for axis in range(6)]
        for k, body in enumerate(tree.bodies[1:], 1):
            self._axes += [(skeleton.getJoint(k), axis) for axis in range(body.freedom)]
        self._told = views.own_damping.copy(), views.own_stiffness.copy(), views.rest.copy()
        self._seen = -1

    def check_start(self, positions: Array) -> None:
        """Refuse a start at rest, coordinates (n_dofs,), in which a stop would kick the cable.

        Raises:
            ConfigError: A second axis is well beyond its stop.
        """
        angles = np.abs(positions[self._views.first[1:-1] + 1])
        worst = int(angles.argmax())
        if angles[worst] > STOP_RAD + START_SLACK_RAD:
            raise ConfigError(
                f"{self._bodies[1 + worst].name}: at the start the joint below it is bent sideways "
                f"by {np.degrees(angles[worst]):.0f} degrees, its stop is at "
                f"{np.degrees(STOP_RAD):.0f}: slack cables with so few links cannot be laid out, "
                "choose more links per cable (or start in the air)"
            )

    def apply(self, positions: Array, velocities: Array) -> None:
        """Set springs and damping for the coming step from coordinates and rates, (n_dofs,)."""
        joint_changes(self._views, positions, velocities)
        self.hand_over()

    def hand_over(self) -> None:
        """Tell DART of what has changed since it was told last."""
        views = self._views
        if views.changes[0] == self._seen:
            return
        self._seen = int(views.changes[0])
        now = views.damping, views.stiffness, views.rest
        damping, stiffness, rest = map(np.not_equal, now, self._told)
        for c in np.flatnonzero(damping | stiffness | rest).tolist():
            joint, axis = self._axes[c]
            if damping[c]:
                joint.setDampingCoefficient(axis, views.damping[c])
            if stiffness[c] or rest[c]:
                joint.setRestPosition(axis, views.rest[c])
                joint.setSpringStiffness(axis, views.stiffness[c])
        for told, value in zip(self._told, now, strict=True):
            told[:] = value
