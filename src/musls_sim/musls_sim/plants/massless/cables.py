"""Massless cables: geometry, tensions, impacts, and which cables are taut, in compiled code.

With u the direction of a cable from the load to its drone, d the distance of its ends and T its
tension, the load is pulled by T u at its attachment, the drone by -T u at its hook. All bodies free
otherwise, the second derivatives of the distances are linear in the tensions,

    d'' = b - D T,   D_jk = u_j u_k / m_L + s_j J_L^-1 s_k + delta_jk (1 / m_k + s J_k^-1 s),

s the moment of a unit tension about a body's centre. Taut cables have d'' = 0: D T = b, symmetric
and positive definite whatever the geometry, because every cable has a drone of its own. (The
6 x 6 matrix of Li et al., "RotorTM", IEEE T-RO 2023, eq. 18 to 21, in its dual form, with drones
that are not held in their centres of mass.)
"""

from __future__ import annotations

import numpy as np

from musls_description.compiled import compiled
from musls_description.vectors import (
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
    rod_forces,
)
from musls_sim.plants.massless.records import (
    IMPACT,
    MAX_EVENTS,
    SLACKENED,
    TIGHTENED,
    bodies_of,
    cables_of,
    events_of,
    factor_of,
    matrix_of,
    rows_of,
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
    m = gather(t, False)
    solve_active(matrix_of(t), factor_of(t), rows_of(t), m)
    share_tensions(t, m)


@compiled()
def free_motion(t, speed, now):
    """Derivatives without cables; directions, gaps and free accelerations of the cables."""
    t.driven = t.lost = 0.0
    bodies, cables = bodies_of(t), cables_of(t)
    for i in range(len(bodies)):
        body = bodies[i]
        if body.free != 0:
            place(body)
            collect_wrench(t, body, i, speed)
            accelerate(body, t.gravity)
        else:
            follow(body, now)
            place(body)
    for k in range(len(cables)):
        find_cable(cables[k], bodies[0], bodies[k + 1])


@compiled()
def find_cable(cable, load, drone):
    """Direction, gap, rate, free acceleration and levers of a cable."""
    low = rotate(load.rotation, cable.load_point)
    high = rotate(drone.rotation, cable.drone_point)
    along, distance = unit(sub(sub(add(drone.position, high), load.position), low))
    v = sub(arm_velocity(drone, high), arm_velocity(load, low))
    rate = dot(along, v)
    across = max(dot(v, v) - rate * rate, 0.0)
    a = sub(
        point_acceleration(drone, cable.drone_point), point_acceleration(load, cable.load_point)
    )
    cable.gap, cable.rate = distance - cable.length, rate
    cable.free_acceleration = dot(along, a) + (across / distance if distance > 0.0 else 0.0)
    put(cable.along, along)
    put(cable.load_arm, cross(cable.load_point, rotate_back(load.rotation, along)))
    put(cable.load_turn, times(load.inverse_inertia, cable.load_arm))
    arm = cross(cable.drone_point, rotate_back(drone.rotation, along))
    put(cable.drone_turn, times(drone.inverse_inertia, arm))
    cable.own = drone.inverse_mass + dot(arm, cable.drone_turn)


@compiled()
def point_acceleration(body, point):
    """Acceleration of a point r of a body: a + alpha x r + w x (w x r), in the world."""
    w, alpha = body.state.omega, body.rate.omega
    turning = add(cross(alpha, point), cross(w, cross(w, point)))
    return add(body.rate.velocity, rotate(body.rotation, turning))


@compiled()
def gather(t, impulses):
    """Write the problem of the cables that are marked taut, for impulses or tensions; its size."""
    m, load = 0, bodies_of(t)[0]
    cables, rows, matrix = cables_of(t), rows_of(t), matrix_of(t)
    for k in range(len(cables)):
        c = cables[k]
        if c.taut == 0:
            continue
        row = rows[m]
        row.cable, row.active = k, 1
        row.right = c.rate if impulses else c.free_acceleration
        for j in range(m):
            matrix[m, j] = matrix[j, m] = coupling(load, c, cables[rows[j].cable])
        d = load.inverse_mass + dot(c.load_arm, c.load_turn)
        matrix[m, m] = d + (c.own if c.own > 0.0 else SOFT * d)
        m += 1
    t.taut = m
    return m


@compiled()
def coupling(load, one, other):
    """Effect of the tension of one cable on the distance of another one, D_jk [1/kg]."""
    return load.inverse_mass * dot(one.along, other.along) + dot(one.load_arm, other.load_turn)


@compiled()
def share_tensions(t, m):
    """Give the tensions of the rows to the cables, and their accelerations to the bodies."""
    bodies, cables, rows = bodies_of(t), cables_of(t), rows_of(t)
    for cable in cables:
        cable.tension = 0.0
    load = bodies[0]
    for i in range(m):
        k, tension = rows[i].cable, rows[i].solution
        cable, drone = cables[k], bodies[k + 1]
        cable.tension = tension
        pull(cable, load, drone, tension, load.rate, drone.rate)
        if drone.free == 0:  # the drone's power goes into the cable
            arm = rotate(drone.rotation, cable.drone_point)
            t.driven += tension * dot(cable.along, arm_velocity(drone, arm))


@compiled()
def pull(cable, load, drone, amount, on_load, on_drone):
    """Add a tension's accelerations to rates, or an impulse's velocities to states."""
    increase(on_load.velocity, scale(amount * load.inverse_mass, cable.along))
    increase(on_load.omega, scale(amount, cable.load_turn))
    if drone.free != 0:
        increase(on_drone.velocity, scale(-amount * drone.inverse_mass, cable.along))
        increase(on_drone.omega, scale(-amount, cable.drone_turn))


@compiled()
def pull_states(t, row):
    """Give load and drone the velocities of the impulse in a row."""
    load, drone = bodies_of(t)[0], bodies_of(t)[row.cable + 1]
    pull(cables_of(t)[row.cable], load, drone, row.solution, load.state, drone.state)


# ---------- The linear complementarity problem of all cables at their length
#
# 0 <= z, D z - b >= 0, z (D z - b) = 0 with D symmetric and positive definite: one solution,
# whatever the order of the cables. Tensions (b: how fast the ends would separate) and impulses (b:
# how fast they do) are the same problem.


@compiled()
def solve_active(d, factor, rows, m):
    """Solve D z = b for the active rows, z = 0 for the others."""
    for i in range(m):
        if rows[i].active == 0:
            continue
        for j in range(i + 1):
            if rows[j].active == 0:
                continue
            s = d[i, j]
            for k in range(j):
                if rows[k].active != 0:
                    s -= factor[i, k] * factor[j, k]
            factor[i, j] = np.sqrt(s) if i == j else s / factor[j, j]
    back_substitute(factor, rows, m)


@compiled()
def back_substitute(factor, rows, m):
    """Solve with the factor of `solve_active`; rows that are not active get 0."""
    for i in range(m):
        s = 0.0
        if rows[i].active != 0:
            s = rows[i].right
            for k in range(i):
                if rows[k].active != 0:
                    s -= factor[i, k] * rows[k].solution
            s /= factor[i, i]
        rows[i].solution = s
    for i in range(m - 1, -1, -1):
        if rows[i].active != 0:
            s = rows[i].solution
            for k in range(i + 1, m):
                if rows[k].active != 0:
                    s -= factor[k, i] * rows[k].solution
            rows[i].solution = s / factor[i, i]


@compiled()
def solve_complementarity(d, factor, rows, m):
    """Solve 0 <= z, D z - b >= 0, z (D z - b) = 0, beginning with the rows that are active.

    All rows that violate their condition change sides at once while that leaves fewer of them;
    otherwise the last of them alone, which ends for every matrix of this kind (Judice and Pires,
    Computers and Operations Research 21, 1994; Murty 1974).
    """
    largest = 0.0
    for i in range(m):
        largest = max(largest, abs(rows[i].right))
    noise = 1e-14 * largest
    fewest, patience = m + 1, 3
    for _ in range(100 * (m + 1) + 2**m if m < 12 else 5000):
        solve_active(d, factor, rows, m)
        wrong, last = 0, -1
        for i in range(m):
            if violates(d, rows, m, i, noise):
                wrong += 1
                last = i
        if wrong == 0:
            for i in range(m):
                rows[i].solution = max(rows[i].solution, 0.0)
            return
        if wrong < fewest:
            fewest, patience = wrong, 3
        elif patience > 0:
            patience -= 1
        if patience > 0:
            flip_violators(d, rows, m, noise)
        else:
            rows[last].active = 1 - rows[last].active


@compiled()
def violates(d, rows, m, i, noise):
    """Whether row i breaks its condition by more than rounding."""
    if rows[i].active != 0:
        return rows[i].solution * d[i, i] < -noise
    w = -rows[i].right
    for j in range(m):
        w += d[i, j] * rows[j].solution
    return w < -noise


@compiled()
def flip_violators(d, rows, m, noise):
    """Change the side of all rows that break their condition."""
    joins, leaves = -1, 2  # marks until all are judged; z of a row that joins is 0
    for i in range(m):
        if violates(d, rows, m, i, noise):
            rows[i].active = leaves if rows[i].active != 0 else joins
    for i in range(m):
        if rows[i].active == leaves:
            rows[i].active = 0
        elif rows[i].active == joins:
            rows[i].active = 1


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


@compiled()
def impact(t, now):
    """Let the marked cables take up impacts until none of them separates."""
    bodies, cables, rows = bodies_of(t), cables_of(t), rows_of(t)
    for bounce in range(20):
        fastest = separation(t)
        if fastest <= STILL_M_S:
            break
        elastic = t.restitution if fastest > BOUNCE_M_S and bounce < 19 else 0.0
        m = gather(t, True)
        solve_complementarity(matrix_of(t), factor_of(t), rows, m)
        for row in rows[:m]:
            row.solution *= 1.0 + elastic
            pull_states(t, row)
        for body in bodies:
            place(body)
        for k in range(len(cables)):
            c = cables[k]
            before = c.rate
            find_cable(c, bodies[0], bodies[k + 1])
            c.mean_rate = 0.5 * (before + c.rate)
        _count_impulses(t, m, now)


@compiled()
def _count_impulses(t, m, now):
    """Sum up impulses and losses, write the events."""
    for row in rows_of(t)[:m]:
        k, impulse = row.cable, row.solution
        c = cables_of(t)[k]
        if impulse <= 0.0:
            continue
        loss = impulse * c.mean_rate
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
        e.time, e.kind, e.cable, e.impulse, e.loss = now, kind, k, impulse, loss
    t.happened += 1


# ---------- Which cables are taut: decided at events, kept at their length between

SHALLOW_M = 1e-11
"""Excursion of a slack cable from its length that is not followed."""

SHALLOW_RATE_M_S = 1e-3
"""Largest rate at its begin."""

LEAVING_M_S = 1e-9
"""Rate of approach of the ends of a cable at its length that makes it slack."""


@compiled()
def decide(t, speed, now, moving):
    """Find anew which cables are taut: impacts, then tensions; leaves the derivatives there."""
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
        tensions_by_complementarity(t)
        for c in cables:
            c.taut = int(c.value)
        return
    if separation(t) > STILL_M_S:
        impact(t, now)
        free_motion(t, speed, now)
    for c in cables:
        if c.rate < -LEAVING_M_S:
            c.taut = 0
    tensions_by_complementarity(t)
    while capture(t):
        stop_separation(t)
        free_motion(t, speed, now)
        tensions_by_complementarity(t)
    for k in range(len(cables)):
        c = cables[k]
        if c.taut != c.was_taut:
            write_event(t, now, TIGHTENED if c.taut != 0 else SLACKENED, k, 0.0, 0.0)


@compiled()
def tensions_by_complementarity(t):
    """Decide which of the cables at their length stay so, and apply their tensions.

    The cables marked taut are at their length and do not separate. Of them those become taut whose
    tension is positive when all together satisfy 0 <= T, d'' <= 0, T d'' = 0. A tension that is
    zero but for rounding leaves a taut cable taut and a slack one slack.
    """
    m, noise = gather(t, False), t.tension_noise
    matrix, rows = matrix_of(t), rows_of(t)
    solve_complementarity(matrix, factor_of(t), rows, m)
    share_tensions(t, m)
    for i in range(m):
        row = rows[i]
        c = cables_of(t)[row.cable]
        if c.was_taut == 0:
            c.taut = 1 if row.solution > noise else 0
            continue
        closing = -row.right
        for j in range(m):
            closing += matrix[i, j] * rows[j].solution
        c.taut = 1 if row.solution > 0.0 or closing <= noise * c.own else 0


@compiled()
def capture(t):
    """Mark slack cables that would come back from an excursion too shallow to follow.

    Two cables that pull each other slack by turns do so ever faster, infinitely often in a finite
    time, after which both are taut. A slack cable at its length that would be at most `SHALLOW_M`
    short of it before it is back is taken as taut, with what is left of its rate removed.
    """
    m, cables, found = gather(t, False), cables_of(t), False
    for c in cables:
        if c.taut != 0 or c.gap < -AT_LENGTH_M or not -SHALLOW_RATE_M_S < c.rate < 0.0:
            continue
        separating = c.free_acceleration
        for row in rows_of(t)[:m]:
            other = cables[row.cable]
            separating -= coupling(bodies_of(t)[0], c, other) * other.tension
        if separating > 0.0 and c.rate**2 < 2.0 * SHALLOW_M * separating:
            c.taut, found = 1, True
    return found


@compiled()
def stop_separation(t):
    """Remove the separation rates of the cables that are marked, by masses."""
    m, rows = gather(t, True), rows_of(t)
    solve_active(matrix_of(t), factor_of(t), rows, m)
    for row in rows[:m]:
        pull_states(t, row)


@compiled()
def project(t):
    """Remove what the step has added to length and separation rate of the taut cables.

    Along the cables, by masses: the centre of mass stays, momentum too, and of all velocities
    without separation these are the nearest, so that energy is only taken.
    """
    bodies, cables, rows, factor = bodies_of(t), cables_of(t), rows_of(t)[: t.taut], factor_of(t)
    for row in rows:
        row.right = cables[row.cable].gap
    back_substitute(factor, rows, t.taut)
    for row in rows:
        k, amount = row.cable, row.solution
        c, load, drone = cables[k], bodies[0], bodies[k + 1]
        _shift(load, amount * load.inverse_mass, c.along, amount, c.load_turn)
        if drone.free != 0:
            _shift(drone, -amount * drone.inverse_mass, c.along, -amount, c.drone_turn)
    for row in rows:
        row.right = cables[row.cable].rate
    back_substitute(factor, rows, t.taut)
    for row in rows:
        pull_states(t, row)


@compiled()
def _shift(body, distance, along, angle, turn):
    """Move a state along a direction and turn it about a vector in its frame, both tiny."""
    q = body.state.attitude
    increase(body.state.position, scale(distance, along))
    a, b, c = angle * turn[0], angle * turn[1], angle * turn[2]
    q0, q1, q2, q3 = q[0], q[1], q[2], q[3]
    q[0] -= 0.5 * (a * q1 + b * q2 + c * q3)
    q[1] += 0.5 * (a * q0 + c * q2 - b * q3)
    q[2] += 0.5 * (b * q0 + a * q3 - c * q1)
    q[3] += 0.5 * (c * q0 + b * q1 - a * q2)
