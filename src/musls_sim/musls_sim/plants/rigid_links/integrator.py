"""A time step of the rigid-link mechanism: second order, one evaluation of the dynamics.

Drift, kick, drift: positions q go to the middle of the step with the rates v that are known,
accelerations a are those there, and

    q' = q + h/2 v,   v+ = v + h a(q', v'),   q+ = q' + h/2 v+.

The velocity terms (gyroscopic and Coriolis moments, air) need the rates v' in the middle of the
step, which are carried on there by the accelerations of the last two steps, a1 and a2:

    v' = v + h/2 (2 a1 - a2).

Where they turn out to have been guessed badly (in the first step, in an impact) the dynamics are
evaluated again with v' = v + h/2 a.

Corners on the ground and pieces of cable that lie on it act with the place and velocity that they
have at the end of the step, linearised: a force F - B a with B = h c + h^2/2 k, so B joins the
articulated inertia. Which corners push and which slip is found by evaluating again.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numba import types

from musls_description.numerics.compiled import CompiledStage, compiled
from musls_description.numerics.records import address_of, record_at
from musls_description.numerics.vectors import (
    add,
    add_scaled,
    cross,
    from_matrix,
    from_rotation_vector,
    increase,
    put,
    put_quaternion,
    quaternion_product,
    rotate_back,
    rotation_between,
    scale,
    sub,
)
from musls_description.system.obstacles import move_solids
from musls_sim.plants.rigid_body import (
    add_body_drag,
    add_inputs,
    add_rotors,
    clear,
    power_of,
    settle_corners,
    spin_rotors,
)
from musls_sim.plants.rigid_links.articulated import (
    accelerate,
    eliminate,
    own_inertia,
    read3,
    transmitted_force,
)
from musls_sim.plants.rigid_links.constraints.closing import (
    add_closing_forces,
    closings_hold,
    forget_forces,
    reply,
)
from musls_sim.plants.rigid_links.constraints.contact import (
    add_contacts,
    contacts_hold,
    find_contacts,
    power_of_ground,
)
from musls_sim.plants.rigid_links.constraints.slack import (
    begin_slack,
    end_slack,
    move_slack,
    slacks_hold,
)
from musls_sim.plants.rigid_links.mechanism import (
    STRETCHED,
    SYSTEM,
    angle_of,
    backwards_of,
    beyond_of,
    bodies_of,
    change_of,
    closings_of,
    compliance_of,
    coordinates_of,
    drift,
    earlier_change_of,
    edges_of,
    first_links_of,
    force_of,
    guide_of,
    last_change_of,
    last_links_of,
    middle_rate_of,
    move_bodies,
    own_command_of,
    own_wrench_body_of,
    own_wrench_enu_of,
    peak_of,
    place_bodies,
    rate_of,
    rotors_of,
    selected_of,
    slacks_of,
    solids_of,
    speed_of,
    target_of,
    unwind,
)
from musls_sim.plants.rigid_links.momentum import add_impulses, keep_momenta, note_momenta

MAX_EVALUATIONS = 12
"""Largest number of evaluations of the dynamics in a step."""

MISS = 0.5
"""Error of an angular acceleration by badly guessed rates that calls for another evaluation, over
the fastest rate there is or 1 rad/s: rate times rate [rad/s^2]."""


@compiled()
def step(t, h):
    """Advance by a time step with the inputs held; whether forces are finite."""
    begin_step(address_of(t), h)
    for turn in range(MAX_EVALUATIONS):
        if not evaluate(t, h):
            return False
        settled = contacts_hold(t, h, turn) if t.touches != 0 else True
        settled &= slacks_hold(t, h, turn)
        if rates_hold(t, h) and settled:
            break
    end_step(address_of(t), h)
    return True


@compiled()
def guided_step(t, h):
    """Finish a step after `begin_step`, drones on prescribed paths; not compiled for flights."""
    corrections = 0
    for turn in range(MAX_EVALUATIONS):
        if not evaluate(t, h):
            return False
        settled = contacts_hold(t, h, turn) if t.touches != 0 else True
        settled &= slacks_hold(t, h, turn)
        settled &= rates_hold(t, h)
        if poses_hold(t, h, corrections):
            if settled:
                break
        else:
            corrections += 1
    end_step(address_of(t), h)
    return True


@partial(CompiledStage, takes=(types.float64,))
def begin_step(address, h):
    """Positions and rotors in the middle of the step, and what is guessed before it."""
    t = record_at(address, SYSTEM)
    note_momenta(t)
    begin_slack(t, h)
    spin_rotors(speed_of(t), own_command_of(t), rotors_of(t), 0.5 * h)
    move_slack(t, 0.5 * h)
    drift(t, 0.5 * h)
    place_bodies(address)
    move_solids(solids_of(t), t.now + h)
    find_contacts(t, h)
    guess_rates(t, h)


@compiled()
def guess_rates(t, h):
    """Rates in the middle of the step, carried on from the last two; the first time as they are."""
    rate = rate_of(t)
    middle = middle_rate_of(t)
    last = last_change_of(t)
    earlier = earlier_change_of(t)
    ahead = 0.0
    if t.fresh == 0:
        ahead = (h + t.last_step) / (t.last_step + t.earlier_step)
    for d in range(rate.shape[0]):
        middle[d] = rate[d] + 0.5 * h * (last[d] + ahead * (last[d] - earlier[d]))


@compiled()
def rates_hold(t, h):
    """Whether the rates in the middle of the step were guessed well; corrects them if not."""
    rate = rate_of(t)
    middle = middle_rate_of(t)
    change = change_of(t)
    last = last_change_of(t)
    miss = 0.0
    fastest = 1.0
    for d in range(rate.shape[0]):
        then = rate[d] + 0.5 * h * change[d]
        miss = max(miss, abs(then - middle[d]))
        fastest = max(fastest, abs(then))
    if t.fresh == 0 and miss * fastest <= MISS:
        return True
    for d in range(rate.shape[0]):
        middle[d] = rate[d] + 0.5 * h * change[d]
        if t.fresh != 0:
            last[d] = change[d]
    if t.fresh == 1:
        t.fresh = 2
        return False
    return miss * fastest <= MISS


@compiled()
def evaluate(t, h):
    """Accelerations of all coordinates with the present guess of the rates; whether finite."""
    finite = evaluate_tree(address_of(t), h)
    if closings_of(t).shape[0] != 0 and not closings_hold(address_of(t)):
        finite = evaluate_tree(address_of(t), h)
    return finite


@partial(CompiledStage, gives=types.boolean, takes=(types.float64,))
def evaluate_tree(address, h):
    """The same with the forces at closings as they are."""
    t = record_at(address, SYSTEM)
    bodies = bodies_of(t)
    move_bodies(address, True)
    finite = add_outside(t)
    for k in range(bodies.shape[0]):
        own_inertia(bodies[k], t.gravity)
    if t.touches != 0:
        add_contacts(t, h)
    if closings_of(t).shape[0] != 0:
        add_closing_forces(t)
    for k in range(bodies.shape[0] - 1, -1, -1):
        if bodies[k].parent >= 0:
            eliminate(t, k, h)
    for k in range(bodies.shape[0]):
        accelerate(t, k)
    t.evaluations += 1
    return finite


@compiled()
def add_outside(t):
    """Wrenches of rotors, air and inputs on load and drones; whether they are finite."""
    bodies = bodies_of(t)
    selected = selected_of(t)
    rotors = rotors_of(t)
    speed = speed_of(t)
    in_body = own_wrench_body_of(t)
    in_world = own_wrench_enu_of(t)
    guide = guide_of(t)
    total = air = 0.0
    for i in range(selected.shape[0]):
        body = bodies[selected[i]]
        wrench = body.wrench
        clear(wrench)
        add_body_drag(body, body.drag, t.wind, wrench)
        air += power_of(body, wrench)
        if i > 0:
            add_rotors(body, rotors[i - 1], speed[i - 1], t.wind, wrench)
            if t.guided != 0:
                increase(wrench.moment, guide[i - 1])
                increase(wrench.force, guide[i - 1, 3:])
        add_inputs(body, in_body[i], in_world[i], wrench)
        for k in range(3):
            total += wrench.force[k] + wrench.moment[k]
    t.air = air
    return math.isfinite(total)


@partial(CompiledStage, takes=(types.float64,))
def end_step(address, h):
    """Update tensions, work, rates and positions after the last evaluation of a step."""
    t = record_at(address, SYSTEM)
    rate = rate_of(t)
    change = change_of(t)
    last = last_change_of(t)
    earlier = earlier_change_of(t)
    note_cable_forces(t)
    add_work(t, h)
    add_impulses(t, h)
    end_slack(t, h)
    if t.touches != 0:
        move_solids(solids_of(t), t.now + 0.5 * h)  # as the bodies are
        settle_corners(bodies_of(t), edges_of(t), solids_of(t), t.friction)
    t.now += h
    if t.fresh != 0:
        t.last_step = h
        t.fresh = 0
        for d in range(rate.shape[0]):
            last[d] = change[d]
    t.earlier_step = t.last_step
    t.last_step = h
    for d in range(rate.shape[0]):
        rate[d] += h * change[d]
        earlier[d] = last[d]
        last[d] = change[d]
    spin_rotors(speed_of(t), own_command_of(t), rotors_of(t), 0.5 * h)
    move_slack(t, 0.5 * h)
    drift(t, 0.5 * h)
    unwind(t)
    place_bodies(address)
    move_bodies(address, False)
    keep_momenta(t)


@compiled()
def note_cable_forces(t):
    """Force at both ends of all cables in the frames of their links, and the largest tensions.

    And the largest change of a tension from the last step to this one; a cable that stretches has
    a limit of its own, `SYSTEM.stiff`.
    """
    bodies = bodies_of(t)
    first = first_links_of(t)
    last = last_links_of(t)
    beyond = beyond_of(t)
    closings = closings_of(t)
    backwards = backwards_of(t)
    force = force_of(t)
    peak = peak_of(t)
    rows = slacks_of(t)
    for i in range(first.shape[0]):
        for side in range(2):
            link = bodies[last[i]] if side == 1 else bodies[first[i]]
            x, y, z = 0.0, 0.0, 0.0
            if side == 1 and beyond[i] < 0:
                x, y, z = scale(-1.0, read3(closings[-1 - beyond[i]].force))
            else:
                body = bodies[beyond[i]] if side == 1 else link
                if body.parent >= 0:
                    x, y, z = transmitted_force(body)
            end = side
            tension, y, z = scale(-1.0, rotate_back(link.rotation, (x, y, z)))
            if backwards[i] != 0:  # in a frame whose x and y axes are turned round
                end = 1 - side
                z = -z
            before = force[i, end, 0]
            put(force[i, end], (tension, y, z))
            peak[i] = max(peak[i], tension)
            if rows[i].state != STRETCHED:
                t.jump = max(t.jump, abs(tension - before))


# ---------- Work of all forces


@compiled()
def add_work(t, h):
    """Add work and losses of a step to those of the period.

    All forces work along the mean of the rates before and after, which for the kinetic energy is
    exact.
    """
    bodies = bodies_of(t)
    edges = edges_of(t)
    selected = selected_of(t)
    rows = coordinates_of(t)
    rate = rate_of(t)
    change = change_of(t)
    drive_power = -t.air
    loss_power = -t.air
    for d in range(rate.shape[0]):
        torque = rows[d].torque - rows[d].felt * change[d]
        loss_power -= torque * (rate[d] + 0.5 * h * change[d])
    for i in range(selected.shape[0]):
        body = bodies[selected[i]]
        drive_power += power_of(body, body.wrench)
    if t.touches != 0:
        for k in range(bodies.shape[0]):
            loss_power -= power_of_ground(bodies[k], edges, h)
    t.work += h * drive_power
    t.loss += h * loss_power
    t.absolute_work += h * abs(drive_power)
    t.exchanged += h * (abs(drive_power) + abs(loss_power))


# ---------- Drones that are moved along prescribed paths
#
# Wrenches on the drones are found that bring each drone to its prescribed pose: not at the end of
# the step but in the middle of the next one, where positions are that the rates of this step's end
# lead to. Accelerations are linear in the wrenches, and their responses to unit wrenches give one
# linear system of 6 equations a drone. What is missing to the pose is found from the coordinates
# there, and the wrenches are corrected until nothing is missing (SHAKE; Ryckaert, Ciccotti and
# Berendsen, J. Comput. Phys. 23, 1977). The wrenches are the reaction of the motion: force, moment
# and power that a drone (or a hand) would need.

POSE_MISS = 1e-9
"""Miss of a pose [m, rad] that is not corrected any more."""


@compiled()
def off_paths(t, poses, off):
    """Turns and ways from poses of the drones, (n, 7), to where they are, (n, 6) [rad, m]."""
    bodies = bodies_of(t)
    selected = selected_of(t)
    for i in range(1, selected.shape[0]):
        body = bodies[selected[i]]
        pose = poses[i - 1]
        put(off[i - 1, :3], rotation_between(pose[3:7], from_matrix(body.rotation)))
        put(off[i - 1, 3:6], sub(body.position, pose))


@compiled()
def aim(target, poses, off, share):
    """Set the drones' targets, (n, 7), that are off poses by a share of turns and ways."""
    for i in range(target.shape[0]):
        put(target[i, :3], add_scaled(poses[i], share, off[i, 3:6]))
        turn = from_rotation_vector(scale(share, off[i, :3]))
        put_quaternion(target[i, 3:7], quaternion_product(turn, poses[i, 3:7]))


@compiled()
def poses_hold(t, h, corrections):
    """Whether the drones come to their poses; corrects the wrenches on them if not.

    The responses are found for the first correction of a step, and serve the later ones.
    """
    guide = guide_of(t)
    target = target_of(t)
    inverse = compliance_of(t)
    miss = np.empty(inverse.shape[0])
    misses(t, h, target, miss)
    if np.abs(miss).max() < POSE_MISS:
        return True
    if corrections == 0:
        respond(t, inverse)
        inverse[:] = np.linalg.inv(inverse)
    for i in range(miss.shape[0]):
        for j in range(miss.shape[0]):
            guide[i // 6, i % 6] += inverse[i, j] * miss[j] / (h * h)
    return False


@compiled()
def misses(t, h, target, miss):
    """Turns and ways that are missing to the drones' poses in the middle of the next step."""
    bodies = bodies_of(t)
    selected = selected_of(t)
    angle = angle_of(t)
    rate = rate_of(t)
    change = change_of(t)
    kept_angle = angle.copy()
    kept_rate = rate.copy()
    kept_place = read3(bodies[0].place)
    kept_attitude = bodies["attitude"].copy()
    slacks = slacks_of(t)
    kept_slack = slacks["length"].copy()
    kept_slide = slacks["rate"].copy()
    for d in range(rate.shape[0]):
        rate[d] += h * change[d]
    for i in range(slacks.shape[0]):
        slacks[i].rate += h * slacks[i].change
    move_slack(t, h)
    drift(t, h)
    place_bodies(address_of(t))
    for i in range(1, selected.shape[0]):
        body = bodies[selected[i]]
        pose = target[i - 1]
        now = from_matrix(body.rotation)
        row = 6 * (i - 1)
        put(miss[row : row + 3], rotation_between(now, pose[3:7]))
        put(miss[row + 3 : row + 6], sub(pose, body.position))
    for d in range(rate.shape[0]):
        angle[d] = kept_angle[d]
        rate[d] = kept_rate[d]
    for i in range(slacks.shape[0]):
        slacks[i].length = kept_slack[i]
        slacks[i].rate = kept_slide[i]
    put(bodies[0].place, kept_place)
    for k in range(bodies.shape[0]):
        put_quaternion(bodies[k].attitude, kept_attitude[k])
    place_bodies(address_of(t))


@compiled()
def respond(t, response):
    """Accelerations of all drones by unit moments and forces on each, (6 n, 6 n)."""
    bodies = bodies_of(t)
    selected = selected_of(t)
    for one in range(response.shape[0]):
        forget_forces(bodies)
        drone = bodies[selected[1 + one // 6]]
        if one % 6 < 3:
            drone.moment[one % 6] = -1.0
        else:
            drone.force[one % 6 - 3] = -1.0
            put(drone.moment, cross(sub(drone.position, drone.joint), drone.force))
        reply(t)
        for i in range(1, selected.shape[0]):
            body = bodies[selected[i]]
            row = 6 * (i - 1)
            arm = sub(body.position, body.joint)
            put(response[row : row + 3, one], body.angular)
            put(response[row + 3 : row + 6, one], add(body.linear, cross(body.angular, arm)))
