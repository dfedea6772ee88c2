"""All numbers of one plant in two blocks of memory, which compiled code takes apart again.

Handing an array from Python to compiled code costs about 0.1 us; the functions that run in every
physics step need some thirty. They get two: the numbers and the indices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from musls_control.estimate import MOTION_COLUMNS as STATE_COLUMNS
from musls_description.compiled import compiled
from musls_description.system import SlungLoadSystem
from musls_description.tree import Tree
from musls_sim.plants.rigid_links.dynamics import (
    ARM_COLUMNS,
    ARTICULATED_COLUMNS,
    ELIMINATED_COLUMNS,
)
from musls_sim.plants.rigid_links.multibody import (
    JOINT_COLUMNS,
    MOTION_COLUMNS,
    joint_table,
    mass_table,
)
from musls_sim.plants.rigid_links.rows import rotor_table

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_ROTOR_COLUMNS, _MASS_COLUMNS, _WRENCH_COLUMNS = 8, 13, 6
_COUNTS = 4

ENERGY, BALANCE, LOW, SPURIOUS, EXCHANGED, KINETIC, RECENT, RECENT_EXCHANGED = range(8)
LEDGER_COLUMNS = 8
"""Columns of the ledger, see `judge.account`: mechanical energy now; that less the work of all
forces; its lowest value so far; its largest rise above that; work exchanged so far, without regard
to sign; largest kinetic energy; rise of the balance and exchange of about the last second [J]."""


class Views(NamedTuple):
    """The plant's arrays, all views into its two blocks.

    Attributes:
        motion: From `kinematics.body_motion`, (n_bodies, 27).
        wrench: Outside force and moment on each body and all beyond it, world, (n_bodies, 6).
        joints: From `kinematics.joint_table`, (n_bodies, 25).
        masses: From `inertia.mass_table`, (n_bodies, 13).
        link_length: Length of cable for which a body stands [m], (n_bodies,).
        drag: Of load and drones, (1 + n_drones, 3) [N s/m].
        rotors: From `rotor_table`, changed by failures, (n_drones, n_rotors, 8).
        box: Centre and half the size of the collision boxes of load and drones,
            (1 + n_drones, 6) [m].
        speed: Rotor speeds, (n_drones, n_rotors) [rad/s].
        state: `PlantState.motion`, (1 + n_drones, 16).
        cable_force: `PlantState.cable_force_n`, (n_drones, 2, 3).
        peak: `PlantState.tension_peak_n`, (n_drones,).
        end_wrench: DART's body force of each cable's first link and of its drone, for
            `tension.cable_forces_from_joints`, (n_drones, 2, 6).
        q: Coordinates after the last step, the load's rotation vector and place first, (n_dofs,).
        dq: Their rates, (n_dofs,).
        tau: Generalised forces of everything outside, (n_dofs,).
        own_damping: Damping of the joints as specified, (n_dofs,).
        own_stiffness: Springs of the joints as specified, (n_dofs,).
        friction: Coulomb friction that is regularised, (n_dofs,).
        damping: Damping of the joints now, stops and friction included, (n_dofs,).
        extra_damping: The stops' part of it, (n_dofs,).
        stiffness: Springs of the joints now, stops included, (n_dofs,).
        rest: Their rest positions, (n_dofs,).
        ledger: Energy balance, see the column constants, (8,).
        begin: Ledger, then rotor speeds at the beginning of the period, (8 + all rotors,).
        begin_q: Coordinates at the beginning of the period, (n_dofs,).
        begin_dq: Their rates, (n_dofs,).
        next_q: Coordinates after a step, from `dynamics.dynamics_step`, (n_dofs,).
        next_dq: Their rates, (n_dofs,).
        articulated: Work space of `dynamics`, (n_bodies, 27).
        arms: The same, (n_bodies, 15).
        eliminated: The same, (n_dofs, 11).
        solved: The same, (7, 6).
        parents: Parent of each body, (n_bodies,).
        first: First coordinate of each body, then their number, (n_bodies + 1,).
        drone_of: Drone (from 0) of each body, -1 for links, -2 for the load, (n_bodies,).
        selected: Body index of load and drones, (1 + n_drones,).
        first_links: Body index of each cable's first link, (n_drones,).
        side: Stop at which each body's joint is: -1, 0 or 1, (n_bodies,).
        changes: How often damping, stiffness or rest have changed, (1,).
    """

    motion: Array
    wrench: Array
    joints: Array
    masses: Array
    link_length: Array
    drag: Array
    rotors: Array
    box: Array
    speed: Array
    state: Array
    cable_force: Array
    peak: Array
    end_wrench: Array
    q: Array
    dq: Array
    tau: Array
    own_damping: Array
    own_stiffness: Array
    friction: Array
    damping: Array
    extra_damping: Array
    stiffness: Array
    rest: Array
    ledger: Array
    begin: Array
    begin_q: Array
    begin_dq: Array
    next_q: Array
    next_dq: Array
    articulated: Array
    arms: Array
    eliminated: Array
    solved: Array
    parents: Indices
    first: Indices
    drone_of: Indices
    selected: Indices
    first_links: Indices
    side: Indices
    changes: Indices


@compiled()
def _size(counts):
    """Lengths of the two blocks for numbers of bodies, drones, rotors and coordinates."""
    bodies, drones, rotors, dofs = counts[0], counts[1], counts[2], counts[3]
    per_body = MOTION_COLUMNS + _WRENCH_COLUMNS + JOINT_COLUMNS + _MASS_COLUMNS + 1
    per_drone = rotors * (_ROTOR_COLUMNS + 2) + 6 + 1 + 12
    both = (1 + drones) * (3 + STATE_COLUMNS + 6)
    numbers = bodies * per_body + drones * per_drone + both + 14 * dofs + 2 * LEDGER_COLUMNS
    numbers += bodies * (ARTICULATED_COLUMNS + ARM_COLUMNS) + dofs * ELIMINATED_COLUMNS + 42
    return numbers, _COUNTS + 4 * bodies + 1 + 1 + 2 * drones + 1


@register_jitable(inline="always")
def cut(numbers, indices):
    """Take the two blocks apart, see `Views`.

    Becomes part of the compiled functions that call it: those that are not used are not cut out.
    """
    bodies, drones, rotors, dofs = indices[0], indices[1], indices[2], indices[3]
    at = 0
    motion = numbers[at : at + bodies * MOTION_COLUMNS].reshape(bodies, MOTION_COLUMNS)
    at += motion.size
    wrench = numbers[at : at + bodies * _WRENCH_COLUMNS].reshape(bodies, _WRENCH_COLUMNS)
    at += wrench.size
    joints = numbers[at : at + bodies * JOINT_COLUMNS].reshape(bodies, JOINT_COLUMNS)
    at += joints.size
    masses = numbers[at : at + bodies * _MASS_COLUMNS].reshape(bodies, _MASS_COLUMNS)
    at += masses.size
    link_length = numbers[at : at + bodies]
    at += bodies
    drag = numbers[at : at + (1 + drones) * 3].reshape(1 + drones, 3)
    at += drag.size
    table = numbers[at : at + drones * rotors * _ROTOR_COLUMNS].reshape(
        drones, rotors, _ROTOR_COLUMNS
    )
    at += table.size
    box = numbers[at : at + (1 + drones) * 6].reshape(1 + drones, 6)
    at += box.size
    speed = numbers[at : at + drones * rotors].reshape(drones, rotors)
    at += speed.size
    state = numbers[at : at + (1 + drones) * STATE_COLUMNS].reshape(1 + drones, STATE_COLUMNS)
    at += state.size
    cable_force = numbers[at : at + drones * 6].reshape(drones, 2, 3)
    at += cable_force.size
    peak = numbers[at : at + drones]
    at += drones
    end_wrench = numbers[at : at + drones * 12].reshape(drones, 2, 6)
    at += end_wrench.size
    per_dof = numbers[at : at + 10 * dofs].reshape(10, dofs)
    at += per_dof.size
    ledger = numbers[at : at + LEDGER_COLUMNS]
    at += LEDGER_COLUMNS
    begin = numbers[at : at + LEDGER_COLUMNS + drones * rotors]
    at += begin.size
    more = numbers[at : at + 4 * dofs].reshape(4, dofs)
    at += more.size
    articulated = numbers[at : at + bodies * ARTICULATED_COLUMNS].reshape(
        bodies, ARTICULATED_COLUMNS
    )
    at += articulated.size
    arms = numbers[at : at + bodies * ARM_COLUMNS].reshape(bodies, ARM_COLUMNS)
    at += arms.size
    eliminated = numbers[at : at + dofs * ELIMINATED_COLUMNS].reshape(dofs, ELIMINATED_COLUMNS)
    at += eliminated.size
    solved = numbers[at : at + 42].reshape(7, 6)
    parents = indices[_COUNTS : _COUNTS + bodies]
    at = _COUNTS + bodies
    first = indices[at : at + bodies + 1]
    at += bodies + 1
    drone_of = indices[at : at + bodies]
    at += bodies
    selected = indices[at : at + 1 + drones]
    at += 1 + drones
    first_links = indices[at : at + drones]
    at += drones
    side = indices[at : at + bodies]
    at += bodies
    return Views(
        motion, wrench, joints, masses, link_length, drag, table, box, speed, state,
        cable_force, peak, end_wrench, per_dof[0], per_dof[1], per_dof[2], per_dof[3], per_dof[4],
        per_dof[5], per_dof[6], per_dof[7], per_dof[8], per_dof[9], ledger, begin,
        more[0], more[1], more[2], more[3], articulated, arms, eliminated, solved, parents, first,
        drone_of, selected, first_links, side, indices[at : at + 1],
    )  # fmt: skip


class Tables:
    """The blocks of one plant, filled with its constants.

    Compiled functions take `blocks`, numbers and indices; `views` are their parts.
    """

    def __init__(self, system: SlungLoadSystem, tree: Tree, *, regularised_friction: bool) -> None:
        """Lay out the blocks; regularised joint friction acts as damping, else DART solves it."""
        bodies, rotors = tree.bodies, rotor_table(system)
        counts = np.array([len(bodies), *rotors.shape[:2], tree.n_coordinates])
        # Joints that open make more coordinates; what is shown of the state stays where it is.
        numbers, indices = _size(np.array([*counts[:3], 6 * len(bodies)]))
        self._regularised = regularised_friction
        self.blocks = np.zeros(numbers), np.zeros(indices, np.int64)
        self.blocks[1][:_COUNTS] = counts
        self.views = views = cut(*self.blocks)
        views.masses[:] = mass_table(tree)
        views.drag[:] = [system.load.drag_n_s_m, *(d.drag_n_s_m for d in system.drones)]
        views.rotors[:] = rotors
        for first, last, cable in zip(tree.first_link, tree.drone, system.cables, strict=True):
            views.link_length[first:last] = cable.link_length_m
        boxes = [system.load.collision, *(drone.collision for drone in system.drones)]
        for i, box in enumerate(boxes):
            views.box[i] = *box.center_m, *(0.5 * np.array(box.size_m))
        views.state[:, 6] = 1.0
        views.selected[0], views.selected[1:] = 0, tree.drone
        views.first_links[:] = tree.first_link
        views.drone_of[:] = -1
        views.drone_of[views.selected] = np.arange(len(views.selected)) - 1
        views.drone_of[0] = -2
        self.lay_joints(tree)

    def lay_joints(self, tree: Tree) -> None:
        """Enter the joints of the tree: at the beginning, and when one has opened or closed.

        Coordinates, rates and generalised forces are left to be set.
        """
        self.blocks[1][_COUNTS - 1] = tree.n_coordinates
        self.views = views = cut(*self.blocks)
        views.joints[:] = joint_table(tree)
        views.parents[:] = [body.parent for body in tree.bodies]
        views.first[:-1], views.first[-1] = tree.first_coordinate, tree.n_coordinates
        # What follows in memory has moved: other numbers stand where free bodies have zeros.
        for column in (
            views.friction, views.own_damping, views.extra_damping, views.own_stiffness,
            views.rest, views.tau,
        ):  # fmt: skip
            column[:] = 0.0
        views.side[:] = 0  # stops are found anew
        axes = [
            (body, axis) for body in tree.bodies[1:] for axis in body.axes or body.freedom * "x"
        ]
        views.own_damping[6:] = [body.damping_n_m_s_rad for body, _ in axes]
        # A rope resists bending, not turning about itself.
        views.own_stiffness[6:] = [
            0.0 if axis == "x" else body.stiffness_n_m_rad for body, axis in axes
        ]
        views.damping[:], views.stiffness[:] = views.own_damping, views.own_stiffness
        if self._regularised:
            views.friction[6:] = [body.friction_n_m for body, _ in axes]
            views.damping[views.friction > 0.0] = 0.0  # computed before the first step
