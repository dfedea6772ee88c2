"""Slack of straight cables: a chain does not push.

Links do not shorten, so a chain that is nearly straight would hold like a strut until it has
buckled; a rope folds at once, in waves shorter than a link. For these stands the slack s of a
cable, a length by which its first link slides into its joint at the load. There the chain has
either no slack, or it pushes with no more than the cable's weight w:

    s = 0 and T >= -w,   or   s > 0 and T = -w.

The weight keeps a chain from sliding that only leans or lies. Where slack runs out the slide is
braked evenly and comes to rest at s = 0 after `BRAKE_S`, about as soon as by the stretch of a rope,
so that a jerk has a height that does not grow with finer steps.

The slide is the last axis of the joint, into it along the link, and a coordinate of the
articulated-body algorithm while there is slack (`articulated.slide_below`).
"""

from __future__ import annotations

from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import column, dot, put, scale
from musls_sim.plants.rigid_links.articulated import transmitted_force
from musls_sim.plants.rigid_links.mechanism import bodies_of, first_links_of, slacks_of

BRAKE_S = 0.01
"""See above; at least half of it where a cable comes taut before it was braked."""

NO_SLACK_M = 1e-9
"""Less is none; and so for rates [m/s]."""

CHANGES = 6
"""Maximum changes between sliding and sticking in a step."""


@compiled()
def begin_slack(t, h):
    """Note which cables have slack, and how it is braked in this step."""
    bodies, first, rows = bodies_of(t), first_links_of(t), slacks_of(t)
    for i in range(first.shape[0]):
        row, body = rows[i], bodies[first[i]]
        body.slides = -1
        if body.parent < 0:
            row.length = row.rate = 0.0
        if max(abs(row.length), abs(row.rate)) < NO_SLACK_M:
            row.length = row.rate = row.change = row.braked_s = 0.0
            continue
        body.slides = i
        runs_out = row.length < max(-(0.5 * BRAKE_S + h) * row.rate, 0.0)
        row.middle_rate = row.rate + 0.5 * h * row.change
        if row.braked_s > 0.0 or runs_out:
            brake(row, row.length, h)


@compiled()
def brake(row, s, h):
    """Choose the acceleration that leads to no slack and no rate in a whole number of steps n.

    Of all that do, the one whose rates differ least from a straight ramp: with s and v at the
    begin of the step, v+ = v (1 - 1 / n) - 6 / (n (n + 1)) (s / h + n v / 2).
    """
    v = row.rate
    if row.braked_s <= 0.0:
        row.braked_s = BRAKE_S
        if v < 0.0:
            row.braked_s = max(-2.0 * s / v, 0.5 * BRAKE_S)
    n = max(round(row.braked_s / h), 1)
    then = 0.0
    if n > 1 or abs(s + 0.5 * h * v) > NO_SLACK_M:
        n = max(n, 2)
        then = v * (1.0 - 1.0 / n) - 6.0 / (n * (n + 1.0)) * (s / h + 0.5 * n * v)
    row.braked_s = n * h
    row.change = (then - v) / h
    row.middle_rate = 0.5 * (v + then)


@compiled()
def slacks_hold(t, h, turn):
    """Whether the right cables had slack in this evaluation; corrects that if not."""
    bodies, first, rows = bodies_of(t), first_links_of(t), slacks_of(t)
    hold = True
    for i in range(first.shape[0]):
        row, body = rows[i], bodies[first[i]]
        if body.parent < 0:
            continue
        along = scale(-1.0, column(body.rotation, 0))
        row.tension = dot(along, transmitted_force(body))
        if body.slides >= 0 and row.braked_s == 0.0:
            then = row.rate + h * row.change
            row.middle_rate = 0.5 * (row.rate + then)
            middle, begin = row.length, row.length - 0.5 * h * row.rate
            if turn < CHANGES and begin >= 0.0 and middle + 0.5 * h * then < 0.0:
                brake(row, begin, h)
                hold = False
        elif turn < CHANGES and row.tension < -row.weight:
            body.slides, row.braked_s, row.middle_rate = i, 0.0, row.rate
            put(row.along, along)
            hold = False
    return hold


@compiled()
def move_slack(t, h):
    """Move the slack of all cables on with its rate."""
    rows = slacks_of(t)
    for i in range(rows.shape[0]):
        rows[i].length += h * rows[i].rate


@compiled()
def end_slack(t, h):
    """Rates at the end of the step, and the work of the tensions along the slides."""
    bodies, first, rows = bodies_of(t), first_links_of(t), slacks_of(t)
    for i in range(first.shape[0]):
        row = rows[i]
        if bodies[first[i]].slides < 0:
            continue
        work = h * row.tension * (row.rate + 0.5 * h * row.change)
        t.loss -= work
        t.exchanged += abs(work)
        row.rate += h * row.change
        row.braked_s -= h
        if row.braked_s < 0.5 * h:
            row.braked_s = 0.0


@compiled()
def keep_slack(t):
    """Keep the slack of all cables to go back to it."""
    rows = slacks_of(t)
    for i in range(rows.shape[0]):
        row = rows[i]
        row.begin_length, row.begin_rate = row.length, row.rate
        row.begin_braked_s, row.begin_change = row.braked_s, row.change


@compiled()
def rewind_slack(t):
    """Go back to it."""
    rows = slacks_of(t)
    for i in range(rows.shape[0]):
        row = rows[i]
        row.length, row.rate = row.begin_length, row.begin_rate
        row.braked_s, row.change = row.begin_braked_s, row.begin_change
