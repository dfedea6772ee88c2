"""Where the 3x3 blocks of a cable stand: a band of interior nodes, a tail and a border.

A cable has the local points 0 (its end on body A), 1 ... n - 1 (free nodes), n (its end on body B)
and, where it is clamped, the directions of its clamps. Point 0 and A's direction are the border,
the rest is the band: rows 3 (i - 1) of point i, B's direction last. Only the upper triangle of the
symmetric matrix is stored: band[row, k] couples row and row + k.
"""

from __future__ import annotations

from musls_description.compiled import compiled

AXIS_A = -1
"""Local index of A's clamp direction; B's is n + 1."""


@compiled()
def add_block(band, border, corner, first, i, j, k3):
    """Add a symmetric 3x3 block that couples the local points i and j (and j and i).

    Args:
        band: Rows of this cable begin at `first`, (rows, 1 + BAND).
        border: Coupling of the same rows to the border, (rows, WIDEST_BORDER).
        corner: Border with itself, (WIDEST_BORDER, WIDEST_BORDER), upper triangle.
        first: First row.
        i: Local point.
        j: Local point, not the same place as i twice.
        k3: Block, (3, 3).
    """
    if i > j:
        i, j = j, i
    if j <= 0:  # both in the border: the point's columns come before the direction's
        p, q = (0 if i == 0 else 3), (0 if j == 0 else 3)
        if p > q:
            p, q = q, p
        for r in range(3):
            for c in range(r if p == q else 0, 3):
                corner[p + r, q + c] += k3[r, c]
    elif i <= 0:
        column, row = (0 if i == 0 else 3), first + 3 * (j - 1)
        for r in range(3):
            for c in range(3):
                border[row + r, column + c] += k3[r, c]
    else:
        row, gap = first + 3 * (i - 1), 3 * (j - i)
        for r in range(3):
            for c in range(r if gap == 0 else 0, 3):
                band[row + r, gap + c - r] += k3[r, c]


@compiled()
def add_right(right, corner_right, first, i, x, y, z):
    """Add a vector to the right-hand side of local point i."""
    if i > 0:
        row = first + 3 * (i - 1)
        right[row] += x
        right[row + 1] += y
        right[row + 2] += z
    else:
        c = 0 if i == 0 else 3
        corner_right[c] += x
        corner_right[c + 1] += y
        corner_right[c + 2] += z


@compiled()
def eliminate(band, border, right, corner, corner_right, first, rows, width, columns):
    """Eliminate the free nodes of one cable (L D L^T along the band).

    What is left of the tail stands in the band below, of the border in `corner`.

    Args:
        band: See `add_block`; the diagonal of eliminated rows becomes its inverse.
        border: Coupling to the border.
        right: Right-hand side, (rows,).
        corner: Border with itself.
        corner_right: Right-hand side of the border.
        first: First row.
        rows: Rows to eliminate, 3 per free node.
        width: Half the band width of the blocks' first rows, 5 or 8.
        columns: Columns of the border in use.
    """
    for k in range(first, first + rows):
        reach = width - (k - first) % 3
        inverse = 1.0 / band[k, 0]
        band[k, 0] = inverse
        for i in range(1, reach + 1):
            factor = band[k, i] * inverse
            for j in range(i, reach + 1):
                band[k + i, j - i] -= factor * band[k, j]
            for c in range(columns):
                border[k + i, c] -= factor * border[k, c]
            right[k + i] -= factor * right[k]
        for c in range(columns):
            factor = border[k, c] * inverse
            for e in range(c, columns):
                corner[c, e] -= factor * border[k, e]
            corner_right[c] -= factor * right[k]


@compiled()
def substitute_back(band, border, right, ends, first, rows, width, columns):
    """Solution of the eliminated rows, in place of the right-hand side.

    Args:
        band: After `eliminate`.
        border: After `eliminate`.
        right: The tail's rows hold the tail's solution.
        ends: Solution of the border, (columns,).
        first: First row.
        rows: Eliminated rows.
        width: As in `eliminate`.
        columns: Columns of the border in use.
    """
    for k in range(first + rows - 1, first - 1, -1):
        reach = width - (k - first) % 3
        s = right[k]
        for i in range(1, reach + 1):
            s -= band[k, i] * right[k + i]
        for c in range(columns):
            s -= border[k, c] * ends[c]
        right[k] = s * band[k, 0]


@compiled()
def solve_envelope(s, first, x, n):
    """Solve a symmetric positive definite system in place (Cholesky within an envelope).

    Args:
        s: Lower triangle, overwritten by the factor, (n, n).
        first: Column of the first entry of each row that is not zero, (n,).
        x: Right-hand side, overwritten by the solution.
        n: Size.

    Returns:
        Whether the matrix is positive definite.
    """
    for i in range(n):
        for j in range(first[i], i + 1):
            a = s[i, j]
            for k in range(max(first[i], first[j]), j):
                a -= s[i, k] * s[j, k]
            if j < i:
                s[i, j] = a * s[j, j]
            elif a > 0.0:
                s[i, i] = 1.0 / a**0.5
            else:
                return False
    for i in range(n):
        a = x[i]
        for k in range(first[i], i):
            a -= s[i, k] * x[k]
        x[i] = a * s[i, i]
    for i in range(n - 1, -1, -1):
        x[i] *= s[i, i]
        for k in range(first[i], i):
            x[k] -= s[i, k] * x[i]
    return True
