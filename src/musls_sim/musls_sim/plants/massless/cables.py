"""Massless cables: geometry, tensions, impacts, and which cables are taut, in compiled code.

With u the direction of a cable from the load to its drone, d the distance of its ends and T its
tension, the load is pulled by T u at its attachment, the drone by -T u at its hook. All bodies free
otherwise, the second derivatives of the distances are linear in the tensions,

    d'' = b - D T,   D = E + G G^T,   E_k = 1 / m_k + s J_k^-1 s,   g_k = (u_k / sqrt m_L, R^T s_k),

s the moment of a unit tension about a body's centre, E diagonal, g_k the rows of G, R R^T = J_L^-1.
Taut cables have d'' = 0: D T = b, positive definite whatever the geometry, because every cable has
a drone of its own (`rig_cables` has those that share drones and other bodies). What couples the
cables is the load alone, so six unknowns are enough for any number of them (Li et al., "RotorTM",
IEEE T-RO 2023, eq. 18 to 21, with drones that are not held in their centres of mass):

    (I + G^T E^-1 G) y = G^T E^-1 b,   T = E^-1 (b - G y).
"""

from __future__ import annotations

import math
from functools import partial

from numba import types

from musls_description.numerics.compiled import CompiledStage, compiled
from musls_description.numerics.records import address_of, record_at
from musls_description.numerics.vectors import (
    add,
    cross,
    dot,
    increase,
    put,
    rotate,
    rotate_back,
    scale,
    sub,
    times,
    unit,
)
from musls_sim.plants.massless.bodies import (
    accelerate,
    collect_wrench,
    follow,
    move_structure,
    place,
    point_acceleration,
    rod_forces,
    shift,
)
from musls_sim.plants.massless.records import (
    IMPACT,
    MAX_EVENTS,
    SLACKENED,
    SYSTEM,
    TIGHTENED,
    bodies_of,
    cables_of,
    coupling_of,
    ends_of,
    events_of,
)
from musls_sim.plants.massless.rig_cables import SOFT as RIG_SOFT
from musls_sim.plants.massless.rig_cables import (
    find_rig_cables,
    pull_rig,
    shift_rig,
    solve_rig_active,
    solve_rig_with_factor,
    sum_rig_pulls,
)
from musls_sim.plants.rigid_body import arm_velocity

SOFT = 1e-9
"""Share by which the cables of prescribed drones give way: their matrix may be singular."""

# ---------- Motion with the tensions of given cables


@compiled()
def rates(t, speed, now):
    """Derivatives in a state, with the cables taut that are marked so, or with rods.

    Tensions, gaps and rates are left in the cables, powers in the system.
    """
    if t.rigid != 0:
        move_structure(t, speed)
        return
    free_motion(t, speed, now)
    gather(t, False)
    solve_active(t.load, cables_of(t), coupling_of(t))
    share_tensions(t)


@compiled()
def free_motion(t, speed, now):
    """Derivatives without cables; directions, gaps and free accelerations of the cables."""
    t.driven = t.lost = 0.0
    bodies = bodies_of(t)
    for i in range(len(bodies)):
        body = bodies[i]
        if body.free != 0:
            place(body)
            collect_wrench(t, body, i, speed)
            accelerate(body, t.gravity)
        else:
            follow(body, now)
            place(body)
    find_cables(t)


@compiled()
def find_cables(t):
    """Direction, gap, rate, free acceleration and levers of all cables."""
    if len(ends_of(t)) != 0:
        find_rig_cables(t)
        return
    bodies = bodies_of(t)
    cables = cables_of(t)
    load = bodies[0]
    root = t.load
    root.soft = 0
    for k in range(len(cables)):
        cable = cables[k]
        drone = bodies[k + 1]
        low = rotate(load.rotation, cable.load_point)
        high = rotate(drone.rotation, cable.drone_point)
        along, distance = unit(sub(sub(add(drone.position, high), load.position), low))
        v = sub(arm_velocity(drone, high), arm_velocity(load, low))
        rate = dot(along, v)
        across = max(dot(v, v) - rate * rate, 0.0)
        a = sub(
            point_acceleration(drone, cable.drone_point), point_acceleration(load, cable.load_point)
        )
        cable.gap = distance - cable.length
        cable.rate = rate
        cable.free_acceleration = dot(along, a) + (across / distance if distance > 0.0 else 0.0)
        put(cable.along, along)
        arm = cross(cable.load_point, rotate_back(load.rotation, along))
        turn = rotate_back(root.angular, arm)
        for i in range(3):
            cable.lever[i] = root.linear * along[i]
            cable.lever[3 + i] = turn[i]
        arm = cross(cable.drone_point, rotate_back(drone.rotation, along))
        put(cable.drone_turn, times(drone.inverse_inertia, arm))
        cable.own = drone.inverse_mass + dot(arm, cable.drone_turn)
        if cable.own == 0.0:
            cable.own = SOFT * product(cable.lever, cable.lever)
            root.soft = 1


@compiled()
def gather(t, impulses):
    """Set up the problem of the cables that are marked taut, for impulses or tensions."""
    for c in cables_of(t):
        c.active = c.taut
        c.right = c.rate if impulses else c.free_acceleration


@compiled()
def share_tensions(t):
    """Give the tensions to the cables, and their accelerations to the bodies."""
    bodies = bodies_of(t)
    cables = cables_of(t)
    if len(ends_of(t)) != 0:
        for cable in cables:
            cable.tension = cable.solution
        pull_rig(t, False)
        return
    pull_load(t.load, bodies[0].rate)
    for k in range(len(cables)):
        cable = cables[k]
        drone = bodies[k + 1]
        cable.tension = cable.solution
        pull_drone(cable, drone, drone.rate)
        if drone.free == 0:  # the drone's power goes into the cable
            arm = rotate(drone.rotation, cable.drone_point)
            t.driven += cable.tension * dot(cable.along, arm_velocity(drone, arm))


@compiled()
def pull_states(t):
    """Give load and drones the velocities of the impulses."""
    if len(ends_of(t)) != 0:
        pull_rig(t, True)
        return
    bodies = bodies_of(t)
    cables = cables_of(t)
    pull_load(t.load, bodies[0].state)
    for k in range(len(cables)):
        pull_drone(cables[k], bodies[k + 1], bodies[k + 1].state)


@compiled()
def pull_load(load, out):
    """Add the accelerations by all tensions to a rate, or the velocities by impulses to a state."""
    p = load.pull
    increase(out.velocity, scale(load.linear, (p[0], p[1], p[2])))
    increase(out.omega, rotate(load.angular, (p[3], p[4], p[5])))


@compiled()
def pull_drone(cable, drone, out):
    """Add the pull of a cable to the rate, or its impulse to the state, of its drone."""
    if drone.free != 0:
        increase(out.velocity, scale(-cable.solution * drone.inverse_mass, cable.along))
        increase(out.omega, scale(-cable.solution, cable.drone_turn))


# ---------- The linear complementarity problem of all cables at their length
#
# 0 <= z, D z - b >= 0, z (D z - b) = 0 with D symmetric and positive definite: one solution,
# whatever the order of the cables. Tensions (b: how fast the ends would separate) and impulses (b:
# how fast they do) are the same problem.


@compiled()
def product(a, b):
    """Scalar product of six numbers."""
    total = 0.0
    for i in range(6):
        total += a[i] * b[i]
    return total


@compiled()
def solve_active(load, cables, rig):
    """Solve D z = b for the active cables, z = 0 for the others."""
    if rig.shape[1] != 0:
        solve_rig_active(load, cables, rig)
        return
    factor = load.factor
    for i in range(6):
        for j in range(i + 1):
            factor[i, j] = 1.0 if i == j else 0.0
    for c in cables:
        if c.active != 0:
            for i in range(6):
                weighted = c.lever[i] / c.own
                for j in range(i + 1):
                    factor[i, j] += weighted * c.lever[j]
    for i in range(6):
        for j in range(i + 1):
            s = factor[i, j]
            for k in range(j):
                s -= factor[i, k] * factor[j, k]
            factor[i, j] = 1.0 / math.sqrt(s) if i == j else s * factor[j, j]
    solve_with_factor(load, cables, rig)


@compiled()
def solve_with_factor(load, cables, rig):
    """Solve the active cables' equations with the present factor."""
    if rig.shape[1] != 0:
        solve_rig_with_factor(load, cables, rig)
        return
    for c in cables:
        c.solution = 0.0
        c.left = c.right
    solve_for_left(load, cables)
    if load.soft != 0:  # with cables that hardly give way rounding leaves much
        sum_pulls(load, cables, rig)
        for c in cables:
            c.left = c.right - c.own * c.solution - product(c.lever, load.pull)
        solve_for_left(load, cables)
    sum_pulls(load, cables, rig)


@compiled(inlined=True)
def solve_for_left(load, cables):
    """Add to the solution what is left of the right-hand side asks for."""
    y = load.right
    for i in range(6):
        y[i] = 0.0
    for c in cables:
        if c.active != 0:
            weighted = c.left / c.own
            for i in range(6):
                y[i] += c.lever[i] * weighted
    back_substitute(load.factor, y)
    for c in cables:
        if c.active != 0:
            c.solution += (c.left - product(c.lever, y)) / c.own


@compiled()
def sum_pulls(load, cables, rig):
    """Wrench of all cables on the load, G^T z."""
    if rig.shape[1] != 0:
        sum_rig_pulls(load, cables, rig)
        return
    for i in range(6):
        load.pull[i] = 0.0
    for c in cables:
        for i in range(6):
            load.pull[i] += c.lever[i] * c.solution


@compiled(inlined=True)
def back_substitute(factor, y):
    """Solve with a Cholesky factor whose diagonal is inverted, in place."""
    for i in range(6):
        for k in range(i):
            y[i] -= factor[i, k] * y[k]
        y[i] *= factor[i, i]
    for i in range(5, -1, -1):
        for k in range(i + 1, 6):
            y[i] -= factor[k, i] * y[k]
        y[i] *= factor[i, i]


@compiled()
def solve_complementarity(load, cables, rig):
    """Solve 0 <= z, D z - b >= 0, z (D z - b) = 0 of the taut cables, from those that are active.

    All that violate their condition change sides at once while that leaves fewer of them; otherwise
    the last of them alone, which ends for every matrix of this kind (Judice and Pires, Computers
    and Operations Research 21, 1994; Murty 1974).
    """
    largest = 0.0
    m = 0
    for c in cables:
        if c.taut != 0:
            largest = max(largest, abs(c.right))
            m = m + 1
    noise = 1e-14 * largest
    fewest = m + 1
    patience = 3
    for _ in range(100 * (m + 1) + 2**m if m < 12 else 5000):
        solve_active(load, cables, rig)
        wrong = 0
        last = -1
        for k in range(len(cables)):
            if violates(load, cables[k], noise):
                wrong += 1
                last = k
        if wrong == 0:
            break
        if wrong < fewest:
            fewest = wrong
            patience = 3
        elif patience > 0:
            patience -= 1
        for k in range(len(cables)):
            if (patience > 0 or k == last) and violates(load, cables[k], noise):
                cables[k].active = 1 - cables[k].active
    for c in cables:
        c.solution = max(c.solution, 0.0)
    sum_pulls(load, cables, rig)


@compiled()
def violates(load, cable, noise):
    """Whether a taut cable breaks its condition by more than rounding."""
    if cable.active != 0:
        return cable.solution * (cable.own + product(cable.lever, cable.lever)) < -noise
    return cable.taut != 0 and product(cable.lever, load.pull) - cable.right < -noise


# ---------- Impacts: cables that reach their length while their ends separate
#
# All cables at their length take part: 0 <= lambda, d'+ <= 0, lambda d'+ = 0 with
# d'+ = d'- - D lambda. It has one solution, whatever the order of the cables; a cable never pushes,
# momentum is kept and energy can only be lost. (Li et al., RotorTM, eq. 40 to 43, solve for
# equality over the cables that lengthen; some of them then push.)
#
# With a coefficient of restitution e the velocities are those of Moreau's law, v+ = v- + (1 + e)
# (v0 - v-) with v0 those of the inelastic impact: energy is lost for every e < 1 and any number of
# cables, where Newton's law for each cable by itself can make some.

AT_LENGTH_M = 1e-10
"""Gap below which a cable is at its length."""

STILL_M_S = 1e-11
"""Rate of separation that counts as none."""

BOUNCE_M_S = 1e-3
"""Rate of separation below which nothing bounces: it would never end."""

TOLD_M_S = 1e-9
"""Rate of separation below which an impact on a taut cable is no event."""


@compiled()
def mark_at_length(t):
    """Mark the cables at their length as taut, and keep which were so."""
    for c in cables_of(t):
        c.was_taut = c.taut
        c.taut = 1 if c.gap >= -AT_LENGTH_M or c.was_taut != 0 else 0


@compiled()
def separation(t):
    """Largest rate at which the ends of a marked cable separate."""
    worst = 0.0
    for c in cables_of(t):
        if c.taut != 0 and c.rate > worst:
            worst = c.rate
    return worst


@partial(CompiledStage, takes=(types.float64,))
def impact(address, now):
    """Apply impacts to the marked cables until none of them separates."""
    t = record_at(address, SYSTEM)
    for bounce in range(20):
        fastest = separation(t)
        if fastest <= STILL_M_S:
            break
        elastic = t.restitution if fastest > BOUNCE_M_S and bounce < 19 else 0.0
        gather(t, True)
        solve_complementarity(t.load, cables_of(t), coupling_of(t))
        for c in cables_of(t):
            c.solution *= 1.0 + elastic
        sum_pulls(t.load, cables_of(t), coupling_of(t))
        pull_states(t)
        for body in bodies_of(t):
            place(body)
        find_cables(t)
        _count_impulses(t, now)


@compiled()
def _count_impulses(t, now):
    """Sum up impulses and losses, write the events; `right` still has the rates before."""
    cables = cables_of(t)
    for k in range(len(cables)):
        c = cables[k]
        impulse = cables[k].solution
        if impulse <= 0.0:
            continue
        loss = impulse * 0.5 * (c.right + c.rate)
        t.impact_loss += loss
        increase(c.impulse, scale(impulse, c.along))
        change = impulse * max(c.own, 1e-9)
        if change < (TOLD_M_S if c.was_taut != 0 else 1e-3 * TOLD_M_S):
            continue
        write_event(t, now, IMPACT if c.was_taut != 0 else TIGHTENED, k, impulse, loss)
        c.was_taut = 1


@compiled()
def write_event(t, now, kind, k, impulse, loss):
    """Write one event where there is room, and count it."""
    if t.happened < MAX_EVENTS:
        e = events_of(t)[t.happened]
        e.time = now
        e.kind = kind
        e.cable = k
        e.impulse = impulse
        e.loss = loss
    t.happened += 1


# ---------- Which cables are taut: decided at events, kept at their length between

SHALLOW_M = 1e-11
RATTLE_M = 1e-6
"""Excursion of a slack cable from its length that is not followed: while events are located in
time, and once a period has had more of them than are."""

SHALLOW_RATE_M_S = 3e-3
"""Largest rate at its begin."""

LEAVING_M_S = 1e-9
"""Rate of approach of the ends of a cable at its length that makes it slack."""


@compiled()
def decide(t, speed, now, moving, shallow_m):
    """Find which cables are taut, by impacts, then tensions; leaves the derivatives there.

    `shallow_m`: the excursion of a slack cable that is not followed, see `capture`.
    """
    if t.rigid != 0:
        move_structure(t, speed)
        rod_forces(t)
        return
    free_motion(t, speed, now)
    mark_at_length(t)
    cables = cables_of(t)
    if not moving:  # before the flight: what is at its length counts as taut, nothing happens
        for c in cables:
            c.taut = 0 if abs(c.rate) > STILL_M_S else c.taut
            c.value = c.taut
        tensions_by_complementarity(address_of(t))
        for c in cables:
            c.taut = int(c.value)
        return
    if separation(t) > STILL_M_S:
        impact(address_of(t), now)
        free_motion(t, speed, now)
    for c in cables:
        if c.rate < -LEAVING_M_S:
            c.taut = 0
    tensions_by_complementarity(address_of(t))
    for _ in cables:
        if not capture(t, shallow_m):
            break
        stop_separation(t)
        free_motion(t, speed, now)
        tensions_by_complementarity(address_of(t))
    for k in range(len(cables)):
        c = cables[k]
        if c.taut != c.was_taut:
            write_event(t, now, TIGHTENED if c.taut != 0 else SLACKENED, k, 0.0, 0.0)


@CompiledStage
def tensions_by_complementarity(address):
    """Decide which of the cables at their length stay so, and apply their tensions.

    The cables marked taut are at their length and do not separate. Of them those become taut whose
    tension is positive when all together satisfy 0 <= T, d'' <= 0, T d'' = 0. A tension that is
    zero but for rounding leaves a taut cable taut and a slack one slack.
    """
    t = record_at(address, SYSTEM)
    load = t.load
    noise = t.tension_noise
    gather(t, False)
    solve_complementarity(load, cables_of(t), coupling_of(t))
    share_tensions(t)
    for c in cables_of(t):
        if c.taut != 0 and c.was_taut == 0:
            c.taut = 1 if c.tension > noise else 0
        elif c.taut != 0:
            closing = c.own * c.tension + product(c.lever, load.pull) - c.right
            least = noise * c.own
            if len(ends_of(t)) != 0:  # its tension may be determined by how it gives way alone
                least *= RIG_SOFT
            c.taut = 1 if c.tension > 0.0 or closing <= least else 0


@compiled()
def capture(t, shallow_m):
    """Mark slack cables that would come back from an excursion too shallow to follow.

    Cables that pull each other slack by turns do so ever faster, infinitely often in a finite
    time, after which all are taut: two within few events, eleven on one load within thousands. A
    slack cable that would be at most so much short of its length before it is back is taken as
    taut, with what is left of its rate removed.
    """
    any_captured = False
    for c in cables_of(t):
        short_m = max(-c.gap - AT_LENGTH_M, 0.0)
        if c.taut != 0 or short_m > shallow_m or not -SHALLOW_RATE_M_S < c.rate < 0.0:
            continue
        separating = c.free_acceleration - product(c.lever, t.load.pull)
        if separating > 0.0 and c.rate**2 < 2.0 * (shallow_m - short_m) * separating:
            c.taut = 1
            any_captured = True
    return any_captured


@compiled()
def stop_separation(t):
    """Remove the separation rates of the cables that are marked, by masses."""
    gather(t, True)
    solve_active(t.load, cables_of(t), coupling_of(t))
    pull_states(t)


@compiled()
def project(t):
    """Remove what the step has added to length and separation rate of the taut cables.

    Along the cables, by masses: the centre of mass stays, momentum too, and of all velocities
    without separation these are the nearest, so that energy is only taken.
    """
    bodies = bodies_of(t)
    cables = cables_of(t)
    load = t.load
    rig = coupling_of(t)
    for c in cables:
        c.right = c.gap
    solve_with_factor(load, cables, rig)
    if len(ends_of(t)) != 0:
        shift_rig(t)
    else:
        p = load.pull
        way = (p[0], p[1], p[2])
        turn = (p[3], p[4], p[5])
        shift(bodies[0], scale(load.linear, way), rotate(load.angular, turn))
        for k in range(len(cables)):
            c = cables[k]
            drone = bodies[k + 1]
            if drone.free != 0:
                way = scale(-c.solution * drone.inverse_mass, c.along)
                shift(drone, way, scale(-c.solution, c.drone_turn))
    for c in cables:
        c.right = c.rate
    solve_with_factor(load, cables, rig)
    pull_states(t)
