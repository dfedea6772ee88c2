"""How the wrench of the load is shared out to its cables.

Cable forces mu_k in the load's frame give the force sum mu_k and the moment sum rho_k x mu_k. With
mu_k = F / n + delta_k, sum delta_k = 0, the force is exact and the moment asks for

    sum (rho_k - rho_mean) x delta_k = M - rho_mean x F,

whose smallest solution is a pseudo-inverse. Where the cables can give all six components this is
the minimum norm solution of both together (eq. 72 of RotorTM). Where they cannot (one cable: no
moment; two: none about the line through both attachments) the force stays exact and the component
that does not exist is left out, instead of trading newtons for newton metres.

What is left open, the null space, decides how far the cables are spread. `preferred` forces are
kept as far as the wrench leaves them free: the solution is the one nearest to them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_description.compiled import compiled

Array = NDArray[np.float64]


def wrench_matrix(attachments_m: Array) -> Array:
    """Force and moment of cable forces, all in the load's frame, (6, 3 n).

    Args:
        attachments_m: About the load's centre of mass, (n, 3).
    """
    return np.hstack([np.vstack([np.eye(3), hat(arm)]) for arm in attachments_m])


def hat(v: Array) -> Array:
    """Matrix of the cross product with a vector, (3, 3)."""
    return np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])


def shares_of(attachments_m: Array, preferred_n: Array | None = None) -> Array:
    """How a wrench is shared out: mu = shares[:, :6] wrench + shares[:, 6].

    Args:
        attachments_m: About the load's centre of mass, load frame, (n, 3).
        preferred_n: Cable forces to stay near to, load frame, (n, 3); None for zero, which gives
            the minimum norm solution.

    Returns:
        (3 n, 7).
    """
    n = len(attachments_m)
    mean = attachments_m.mean(axis=0)
    spread = np.hstack([hat(arm) for arm in attachments_m - mean])  # (3, 3 n)
    turning = np.linalg.pinv(spread, rcond=1e-6)
    shares = np.zeros((3 * n, 7))
    shares[:, 3:6] = turning
    shares[:, 0:3] = np.tile(np.eye(3) / n, (n, 1)) - turning @ hat(mean)
    if preferred_n is not None:
        flat = np.ascontiguousarray(preferred_n, np.float64).ravel()
        shares[:, 6] = flat - shares[:, :6] @ (wrench_matrix(attachments_m) @ flat)
    return shares


@compiled()
def share_out(shares, wrench, order, out):
    """Write the cable forces of a wrench, or of a derivative of it."""
    for i in range(out.shape[0]):
        for k in range(3):
            row = shares[3 * i + k]
            total = row[6] if order == 0 else 0.0
            for c in range(6):
                total += row[c] * wrench[c]
            out[i, k] = total
