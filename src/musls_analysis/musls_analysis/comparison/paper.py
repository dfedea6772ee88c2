"""What the seed paper reports of its own simulator (Merton et al., Tables II and III)."""

from __future__ import annotations

TABLE_III: dict[str, dict[str, tuple[float, float]]] = {
    "circle": {
        "load": (67.8, 9.7),
        "drone_1": (74.8, 1.7),
        "drone_2": (68.3, 1.8),
        "drone_3": (204.1, 2.1),
    },
    "shm": {
        "load": (118.5, 11.4),
        "drone_1": (95.1, 4.1),
        "drone_2": (118.0, 3.0),
        "drone_3": (110.5, 2.6),
    },
    "engage": {
        "load": (38.7, 17.2),
        "drone_1": (78.0, 1.3),
        "drone_2": (43.5, 1.6),
        "drone_3": (132.4, 1.4),
    },
}
"""Translational [mm] and geodesic [deg] error by stage and body."""

FIRST_CYCLES_DROPPED = {"circle": 1, "shm": 2, "engage": 0}
"""Cycles at the start of a stage that its authors leave out (their processing scripts)."""
