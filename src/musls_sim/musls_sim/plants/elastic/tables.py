"""All arrays of one system, as the compiled step takes them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Tables(NamedTuple):
    """State, constants and work space; columns in `columns`.

    Attributes:
        kinds: Integers of the cables, (n_cables, CABLE_INTEGERS).
        cables: Numbers of the cables, (n_cables, CABLE_COLUMNS).
        laws: Rows of all tabulated axial laws, (k, LAW_COLUMNS).
        nodes: (n_nodes, NODE_COLUMNS).
        segments: (n_segments, SEGMENT_COLUMNS).
        bodies: (n_bodies, BODY_COLUMNS).
        numbers: Integers of the bodies, (n_bodies, BODY_INTEGERS).
        motion: Motion of the bodies in the columns of `rigid_links.kinematics`, (n_bodies, 27).
        corners: Corners of all boxes, (k, CORNER_COLUMNS).
        path: Motion of the bodies within a period where prescribed, (n_bodies, 2, 18).
        rotors: From `rotor_table`, (n_drones, n_rotors, 8).
        speed: Rotor speeds, (n_drones, n_rotors).
        stage_speed: The same within a stage.
        parameters: Numbers of the whole system, (PARAMETERS,).
        band: See `blocks`.
        border: See `blocks`.
        right: See `blocks`.
        corner: Border of each cable with itself, (n_cables, WIDEST_BORDER, WIDEST_BORDER).
        edge: Its right-hand side, (n_cables, WIDEST_BORDER).
        small: Tail and border of each cable after elimination, (n_cables, SMALL, SMALL).
        small_right: Its right-hand side, (n_cables, SMALL).
        matrix: Matrix of the bodies, (n_dofs, n_dofs).
        envelope: First column of each of its rows, (n_dofs,).
        unknown: Right-hand side and solution of the bodies, (n_dofs,).
        sums: Energy sums and counts, (SUMS,).
        losses: Powers at the end of the last step, (3,) [W].
        work: Work space, (64,).
        own: Work space, (6, 6).
        blocks: Work space, (3, 3, 3).
        old_nodes: Copies of what a step changes, from the begin of the period.
        old_segments: The same.
        old_bodies: The same.
        old_motion: The same.
        old_corners: The same.
        old_speed: The same.
        old_sums: The same.
        old_losses: The same.
    """

    kinds: Integers
    cables: Array
    laws: Array
    nodes: Array
    segments: Array
    bodies: Array
    numbers: Integers
    motion: Array
    corners: Array
    path: Array
    rotors: Array
    speed: Array
    stage_speed: Array
    parameters: Array
    band: Array
    border: Array
    right: Array
    corner: Array
    edge: Array
    small: Array
    small_right: Array
    matrix: Array
    envelope: Integers
    unknown: Array
    sums: Array
    losses: Array
    work: Array
    own: Array
    blocks: Array
    old_nodes: Array
    old_segments: Array
    old_bodies: Array
    old_motion: Array
    old_corners: Array
    old_speed: Array
    old_sums: Array
    old_losses: Array
