"""A cable that is not fixed in a drone's centre of mass turns it: the moment against that."""

from __future__ import annotations

from musls_control.vectors import cross
from musls_description.compiled import compiled
from musls_description.compiled_rotations import rotate_back


@compiled()
def hook_moments(estimate, cables, pull, commands):
    """Write the moments against those of the cables on the drones, columns 4 to 6.

    Args:
        estimate: (1 + n, 16).
        cables: Columns 3 to 5 are the attachments on the drones, (n, 6 or more).
        pull: Force of each cable on the load, world, (n, 3); the drone feels the opposite.
        commands: Result, (n, 7) [N m, FLU].
    """
    for i in range(pull.shape[0]):
        q, c = estimate[1 + i], cables[i]
        x, y, z = rotate_back(q[6], q[7], q[8], q[9], pull[i, 0], pull[i, 1], pull[i, 2])
        moment = cross(c[3], c[4], c[5], x, y, z)
        commands[i, 4], commands[i, 5], commands[i, 6] = moment
