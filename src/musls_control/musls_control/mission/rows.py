"""Conditions of a plan's rows in flight: whether a row is due, and how the descent goes.

The same functions for a flight, a world of a batch and the ROS graph, numbers in and numbers out:
once in a row load and drones are looked at. A row waits until they are in their places, which may
be where the plan begins, and on the way down the rows that follow are changed:

- While the load is lowered: what the drones hold aside of what is fed forward. Their autopilots'
  integrators have learned it and keep it when nothing pulls any more, which drew small drones on
  short cables together; it is fed forward as the load is given back. What all hold alike is wind.
- When the drones spread out: they land round the load where it lies, turned as it is.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from musls_control.autopilot import AFTER_DISARM_S, DISARM_AFTER_LANDING_S
from musls_control.px4.position_control import GRAVITY_M_S2
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import body_z_in_world, wrapped, yaw_of

ROUNDING_ROWS = 1e-6
"""A row counts as due this much early, so that rounding of times delays none."""

PLAY = np.dtype(
    [
        ("row", np.int64),  # -1 before the first
        ("begun", float),  # when the plan began, or would have begun without its waits [s]
        ("rate", float),  # rows in a second
        ("next_wait", np.int64),  # of the waits
        ("waited", np.int64),  # rows at it
        ("missed", np.int64),  # waits that ended before everything was in place
        ("still", np.int64),  # rows for which the load has stayed where it was seen
        ("seen_x", float),  # [m]
        ("seen_y", float),
    ],
    align=True,
)
"""State of a plan that is being flown."""

WAIT = np.dtype(
    [
        ("row", np.int64),  # that waits
        ("longest", np.int64),  # rows
        ("near", float),  # distance at which a drone is in its place [m]
        ("lowest", float),  # height of the load [m]
        ("highest", float),
        ("still", np.int64),  # rows for which the load has to stay near a place
    ],
    align=True,
)
"""A row that waits until load and drones are in their places."""


ARMED = 11
"""Column of a drone's set-points that says whether its motors turn."""


@compiled()
def in_place(wait, planned, places):
    """Whether the drones are at planned places (n, 3), the load at its height.

    `places` are those of all bodies, (1 + n, 3) or more columns; what is not known (NaN) is not
    waited for, nor a drone that does not fly (`planned` may have the columns of set-points).
    """
    if places[0, 2] < wait.lowest or places[0, 2] > wait.highest:
        return False
    for i in range(planned.shape[0]):
        if planned.shape[1] > ARMED and planned[i, ARMED] == 0.0:
            continue
        square = 0.0
        for k in range(3):
            gap = places[1 + i, k] - planned[i, k]
            square += gap * gap
        if square > wait.near * wait.near:
            return False
    return True


@compiled()
def rests(play, wait, places):
    """Whether the load has stayed near the place where it was seen, for the rows of a wait.

    Any place: wind may hold it aside. A load that swings leaves each place within that time.
    """
    if wait.still == 0 or math.isnan(places[0, 0]):
        return True
    away = math.hypot(places[0, 0] - play.seen_x, places[0, 1] - play.seen_y)
    play.still += 1
    if play.waited == 0 or away > wait.near:
        play.seen_x = places[0, 0]
        play.seen_y = places[0, 1]
        play.still = 0
    return play.still >= wait.still


@compiled(shared=True)
def due_row(play, waits, planned, places, time):
    """The row of a plan that is due; a row that waits delays itself and all that follow.

    `planned` are the places of the drones by rows, (k, n, 3) or more columns. Once in the time of a
    row is looked whether all is in place. The number may be beyond the last row.
    """
    due = np.int64(math.floor((time - play.begun) * play.rate + ROUNDING_ROWS))
    if play.next_wait < waits.shape[0]:
        wait = waits[play.next_wait]
        if due >= wait.row:
            last = min(max(wait.row - 1, 0), planned.shape[0] - 1)
            still = rests(play, wait, places)
            there = still and in_place(wait, planned[last], places)
            if there or play.waited >= wait.longest:
                if not there:
                    play.missed += 1
                play.next_wait += 1
                play.waited = 0
            else:
                play.waited += 1
                play.begun += (due - wait.row + 1) / play.rate
                due = wait.row - 1
    return due


# ---------- The way down

LIES_ASIDE_M = 0.05
MOST_TURNED_RAD = np.pi / 6.0
"""Drones land round a load that lies or is turned so that their places are farther off than this,
and follow its turn so far."""

CARRIES = 0
LOWERS = 1
SPREADS = 2

UNWATCHED = 0
WATCHED = 1
TAKEN_UP = 2
"""Whether losses are looked for; of a load that is only taken up, see `look_for_losses`."""

ROW = np.dtype(
    [("share", float), ("phase", np.int64), ("watch", np.int64), ("asks", np.int64)], align=True
)
"""Row of a plan: share of the load's weight that is fed forward; phases as above; whether Python is
asked what to do in it."""

DOWN = np.dtype(
    [
        ("looked", np.int64),  # row that was looked at last; -1 for none
        ("looks", np.int64),  # in which what the drones hold was seen
        ("spread_from", np.int64),  # row after which places are shifted sideways; -1 before
        ("spread_rows", np.int64),  # in which they do
    ],
    align=True,
)
"""Observations on the way down; see `nothing_found`."""

SEEN = 0
HELD = 2
ASIDE = 4
FOUND_COLUMNS = 6
"""Columns x, y of what was found, a row for each drone: sum of what it was seen to hold [m/s^2];
what it holds when nothing pulls; how far its place to land is aside of the planned one [m]."""


def nothing_found(n_drones: int) -> tuple[NDArray[np.void], Array]:
    """Arrays for the places found before the descent: (1,) and (n, 6), nothing found yet."""
    down = np.zeros(1, DOWN)
    down["looked"] = down["spread_from"] = -1
    return down, np.zeros((n_drones, FOUND_COLUMNS))


@compiled()
def look_down(down, found, rows, row, fed, spots, lies, length_m, motion):
    """Look at load and drones in a row; says of which phase something was found, or `CARRIES`.

    `rows`: of the plan, `ROW`. `fed`: what the row feeds forward, NaN for nothing; `spots`: places
    where the drones are to land; (n, 2) or more columns. `lies`: set-point of the load then, (4,).
    `length_m`: of the longest cable; a load farther off is left alone. `motion`, (1 + n, 16).
    """
    phase = rows[row].phase
    share = rows[row].share
    if phase == CARRIES or row == down.looked:
        return CARRIES
    down.looked = row
    if phase == SPREADS:
        if down.spread_from >= 0:
            return CARRIES
        down.spread_from = row
        last = row
        while last + 1 < rows.shape[0] and rows[last + 1].phase == SPREADS:
            last += 1
        down.spread_rows = max(last - row, 1)
        find_places(found, spots, lies, length_m, motion[0])
        return SPREADS
    if share == 1.0:
        down.looks += 1
        add_held(found, fed, motion)
    elif down.looks > 0:
        for i in range(found.shape[0]):
            for k in range(2):
                mean = found[i, SEEN + k] / down.looks
                found[i, SEEN + k] = 0.0
                found[i, HELD + k] = mean if math.isfinite(mean) else 0.0
        down.looks = 0
        return LOWERS
    return CARRIES


@compiled()
def add_held(found, fed, motion):
    """Add the drones' forces beyond the feed-forward and the mean of all drones."""
    n = found.shape[0]
    for k in range(2):
        mean = 0.0
        for turn in range(2):  # first the mean, then what is beside it
            for i in range(n):
                up = body_z_in_world(motion[1 + i, 6:10])
                acceleration = GRAVITY_M_S2 * up[k] / up[2]
                if not math.isnan(fed[i, k]):
                    acceleration -= fed[i, k]
                if turn == 0:
                    mean += acceleration / n
                else:
                    found[i, SEEN + k] += acceleration - mean


@compiled()
def find_places(found, spots, lies, length_m, load):
    """Shift the landing places sideways, so that they are around the load where it lies."""
    away = math.hypot(load[0] - lies[0], load[1] - lies[1])
    turn = wrapped(yaw_of(load[6:10]) - lies[3])
    turn = min(max(turn, -MOST_TURNED_RAD), MOST_TURNED_RAD)
    c = math.cos(turn)
    s = math.sin(turn)
    farthest = 0.0
    for i in range(found.shape[0]):
        x, y = spots[i, 0] - lies[0], spots[i, 1] - lies[1]
        found[i, ASIDE] = load[0] + (c * x - s * y) - spots[i, 0]
        found[i, ASIDE + 1] = load[1] + (s * x + c * y) - spots[i, 1]
        farthest = max(farthest, math.hypot(found[i, ASIDE], found[i, ASIDE + 1]))
    if not (away < length_m and farthest > LIES_ASIDE_M):
        found[:, ASIDE:] = 0.0


@compiled(shared=True)
def give_back(fed, found, share):
    """Feed forward what the drones hold too, as far as the load is given back in a row, (n, 3)."""
    for i in range(found.shape[0]):
        x, y = (1.0 - share) * found[i, HELD], (1.0 - share) * found[i, HELD + 1]
        if x != 0.0 or y != 0.0:
            for k in range(3):
                if math.isnan(fed[i, k]):
                    fed[i, k] = 0.0
            fed[i, 0] -= x
            fed[i, 1] -= y


@compiled(shared=True)
def move_aside(places, aside, begun, rows, row):
    """Move the places of a row, (n, 2) or more columns, smoothly from row `begun` on."""
    share = min(max((row - begun) / rows, 0.0), 1.0)
    part = share * share * (3.0 - 2.0 * share)  # `smoothstep`
    for i in range(aside.shape[0]):
        for k in range(2):
            places[i, k] += part * aside[i, k]


# ---------- After the last row

ENDING = np.dtype([("since", float), ("disarmed_at", float), ("landed", np.int64)], align=True)
"""Time since which all drones are found landed, and time when they were disarmed [s], NaN for not
yet; whether they had landed by then."""


def not_landed() -> NDArray[np.void]:
    """The end of a flight before it comes, `ENDING`, (1,)."""
    return np.array([(np.nan, np.nan, 0)], ENDING)


@compiled(shared=True)
def wait_for_landing(landing, down, late, time):
    """Whether a flight is over; disarms what is `down` for long enough, or `late`."""
    if math.isfinite(landing.disarmed_at):
        return time - landing.disarmed_at >= AFTER_DISARM_S
    if not down:
        landing.since = math.nan
    elif not math.isfinite(landing.since):
        landing.since = time
    landing.landed = 1 if down and time - landing.since >= DISARM_AFTER_LANDING_S else 0
    if landing.landed != 0 or late:
        landing.disarmed_at = time
    return False
