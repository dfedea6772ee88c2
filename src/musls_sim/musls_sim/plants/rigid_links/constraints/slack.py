"""Slack and stretch of cables: a chain does not push, and it yields when it jerks.

Links neither shorten nor stretch. A chain that is nearly straight would hold like a strut until it
has buckled, where a rope folds at once, in waves shorter than a link; and a chain that comes taut
would stop its ends within a step, where a rope stretches. For both stands the length s by which the
first link of a cable has slid into its joint at the load, negative where the cable is stretched:

    T = max(-w, T0 - k s - c s'),   k = EA / L,   c = EA-damping / L.

It begins when the chain would push with more than the cable's weight w (T0 = -w), or when its
tension rises in a moment by more than `jerk` (T0 is the tension before): s = 0 is the cable at
T0. The weight keeps a chain from sliding that only leans or lies. Steps follow the swing of the
spring about its mean while it is more than `jerk`. Once the swing is over, T0 follows the tension
until s is back at zero, and the chain has no slide any more: a calm flight has none, and costs
nothing. T0 that follows feeds each swing that is slower than sqrt(k / (c time)), so it waits.

A taut chain has waves, and a step that is too long for the shortest of them is unstable. There the
joints of the cable have as much damping as such a step needs (`steadying`). It does away with waves
that the step cannot follow, hardly acts on the longer ones, and goes with the step: periods with a
jerk, which are refined, have none.

The slide is the last axis of the joint, into it along the link, and a coordinate of the
articulated-body algorithm while there is one (`articulated.slide_below`). The spring acts with the
mean place of the step, the damper with the mean rate.
"""

from __future__ import annotations

from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import column, dot, put, scale
from musls_sim.plants.rigid_links.articulated import pull_of, transmitted_force
from musls_sim.plants.rigid_links.mechanism import (
    NONE,
    SLACK,
    STRETCHED,
    bodies_of,
    closings_of,
    first_links_of,
    force_of,
    slacks_of,
)

FOLLOW_S = 0.05
"""Time constant of the mean of the tension, and least one with which T0 follows the tension, by
`jerk` in this time at most."""

FOLLOW_RATIO = 3.0
"""And over m / c of the spring's swing: following takes m / time from its damping c."""

MOMENT_S = 0.002
"""Time in which a tension rises by a jerk: however fine the steps are, a rope stretches."""

FADES = 0.05
RESTS = 0.01
"""Shares of `jerk` below which the swing of the tension is over, and makes no difference."""

CHANGES = 6
"""Maximum changes between sliding and sticking in a step."""


WAVE_MARGIN = 1.5
"""Tension over that of the last step for which a step is to hold."""


@compiled()
def steadying(tension, mass, length, h):
    """Joint damping without which a step is too long for the waves of a taut chain [N m s/rad].

    The modes of `step_control` are stable if h^2 K <= 4 M + 2 h C; of all s^2 up to 1 the worst is
    the shortest wave, or one between. Steps that follow the shortest wave need none.
    """
    pull = h * h * tension / length
    if 3.0 * pull <= mass:
        return 0.0
    if 3.0 * pull <= 4.0 * mass:
        return length * length / h * (pull / 8.0 - mass / 24.0)
    return (pull + mass / 1.5) ** 2 * length * length / (32.0 * h * mass)


@compiled()
def begin_slack(t, h):
    """Note which cables slide, how fast they will in the middle of the step, and what steadies."""
    bodies = bodies_of(t)
    first = first_links_of(t)
    rows = slacks_of(t)
    force = force_of(t)
    for i in range(first.shape[0]):
        row = rows[i]
        body = bodies[first[i]]
        tension = WAVE_MARGIN * max(force[i, 0, 0], force[i, 1, 0])
        row.steadying = steadying(tension, row.link_mass, row.link_length, h)
        if body.parent < 0:
            row.state = NONE
        if row.state == NONE:
            row.length = row.rate = row.change = 0.0
        body.slides = -1 if row.state == NONE else i
        row.middle_rate = row.rate + 0.5 * h * row.change


@compiled()
def slacks_hold(t, h, turn):
    """Whether the right cables slid in this evaluation, by the right law; corrects that if not."""
    bodies = bodies_of(t)
    first = first_links_of(t)
    rows = slacks_of(t)
    hold = True
    for i in range(first.shape[0]):
        row = rows[i]
        body = bodies[first[i]]
        if body.parent < 0:
            continue
        along = scale(-1.0, column(body.rotation, 0))
        row.tension = dot(along, transmitted_force(body))
        if row.state == NONE:
            before = max(row.before, -row.weight)
            rises = row.tension - before
            pushes = row.tension < -row.weight
            jerks = row.stretches != 0 and t.fresh == 0 and rises > row.jerk
            if turn < CHANGES and (pushes or jerks):
                row.state = SLACK
                row.rest = -row.weight
                if not pushes:
                    row.state = STRETCHED
                    row.rest = before
                row.mean = row.rest
                body.slides = i
                row.middle_rate = row.rate
                put(row.along, along)
                hold = False
            continue
        row.middle_rate = row.rate + 0.5 * h * row.change
        pull, loss = pull_of(row, h)
        state = STRETCHED if pull - loss * row.change > -row.weight else SLACK
        if turn < CHANGES and state != row.state:
            row.state = state
            hold = False
    return hold


@compiled()
def move_slack(t, h):
    """Move the slides of all cables on with their rates."""
    rows = slacks_of(t)
    for i in range(rows.shape[0]):
        rows[i].length += h * rows[i].rate


@compiled()
def end_slack(t, h):
    """Rates at the end of the step, work of the tensions along the slides, and where those end."""
    bodies = bodies_of(t)
    first = first_links_of(t)
    rows = slacks_of(t)
    force = force_of(t)
    t.stiff = 0.0
    for i in range(first.shape[0]):
        row = rows[i]
        since = 1.0 if t.fresh != 0 else min(h / MOMENT_S, 1.0)
        row.before += since * (force[i, 0, 0] - row.before)
        if bodies[first[i]].slides < 0:
            continue
        if closings_of(t).shape[0] == 0:  # else `closing.find_lightness` knows
            share = first.shape[0] / bodies[0].mass  # of the load
            row.lightness = 1.0 / row.beyond + share
        work = h * row.tension * (row.rate + 0.5 * h * row.change)
        t.loss -= work
        t.exchanged += abs(work)
        row.rate += h * row.change
        pull = max(row.rest - row.stiffness * (row.length + 0.5 * h * row.rate), -row.weight)
        row.mean += min(h / FOLLOW_S, 1.0) * (pull - row.mean)
        moving = row.rate**2 * row.stiffness / row.lightness
        swing = (pull - row.mean) ** 2 + moving  # of the tension, squared
        if pull > -row.weight and swing > row.jerk**2:
            t.stiff = max(t.stiff, row.stiffness * row.lightness)
        if row.state == STRETCHED and swing < (FADES * row.jerk) ** 2:
            gap = min(max(row.tension - row.rest, -row.jerk), row.jerk)
            inertia = FOLLOW_RATIO / row.lightness
            row.rest += h * gap * min(1.0 / FOLLOW_S, row.damping / inertia)
            if gap**2 + moving < (RESTS * row.jerk) ** 2:
                row.state = NONE


@compiled()
def keep_slack(t):
    """Keep the slides of all cables to go back to them."""
    bodies = bodies_of(t)
    first = first_links_of(t)
    rows = slacks_of(t)
    for i in range(rows.shape[0]):
        row = rows[i]
        row.begin_state = row.state
        row.begin_rest = row.rest
        row.begin_mean = row.mean
        row.begin_length = row.length
        row.begin_rate = row.rate
        row.begin_change = row.change
        row.begin_before = row.before
        row.begin_slides = bodies[first[i]].slides


@compiled()
def rewind_slack(t):
    """Go back to them."""
    bodies = bodies_of(t)
    first = first_links_of(t)
    rows = slacks_of(t)
    for i in range(rows.shape[0]):
        row = rows[i]
        row.state = row.begin_state
        row.rest = row.begin_rest
        row.mean = row.begin_mean
        row.length = row.begin_length
        row.rate = row.begin_rate
        row.change = row.begin_change
        row.before = row.begin_before
        bodies[first[i]].slides = row.begin_slides
