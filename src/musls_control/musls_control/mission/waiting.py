"""Which row of a plan is due, and whether load and drones are where it is to begin.

The same function for a flight, a world of a batch and the ROS graph: numbers in, the row out.
"""

from __future__ import annotations

import math

import numpy as np

from musls_description.numerics.compiled import compiled

ROUNDING_ROWS = 1e-6
"""A row counts as due this much early, so that rounding of times delays none."""

PLAY = np.dtype(
    [
        ("begun", float),  # when the plan began, or would have begun without its waits [s]
        ("rate", float),  # rows in a second
        ("next_wait", np.int64),  # of the waits
        ("waited", np.int64),  # rows at it
        ("missed", np.int64),  # waits that ended before everything was in place
        ("still", np.int64),  # rows for which the load has stayed where it was seen
        ("seen_x", float),  # [m]
        ("seen_y", float),
    ]
)
"""Where a plan is."""

WAIT = np.dtype(
    [
        ("row", np.int64),  # that waits
        ("longest", np.int64),  # rows
        ("near", float),  # distance at which a drone is in its place [m]
        ("lowest", float),  # height of the load [m]
        ("highest", float),
        ("still", np.int64),  # rows for which the load has to stay near a place
    ]
)
"""A row that waits until load and drones are in their places."""


@compiled()
def in_place(wait, planned, places):
    """Whether the drones are at planned places (n, 3), the load at its height.

    `places` are those of all bodies, (1 + n, 3) or more columns; what is not known (NaN) is not
    waited for.
    """
    if places[0, 2] < wait.lowest or places[0, 2] > wait.highest:
        return False
    for i in range(planned.shape[0]):
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
        play.seen_x, play.seen_y, play.still = places[0, 0], places[0, 1], 0
    return play.still >= wait.still


@compiled()
def due_row(play, waits, planned, places, time):
    """The row of a plan that is due; a row that waits delays itself and all that follow.

    `planned` are the places of the drones by rows, (k, n, 3) or more columns. Once in the time of a
    row is looked whether all is in place. The number may be beyond the last row.
    """
    due = math.floor((time - play.begun) * play.rate + ROUNDING_ROWS)
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
