"""Case 1 of Robotica 2024 (cable-driven parallel robot, prescribed exits) with elastic rods.

Four vertical rods (EI 1.747 N m2, 50 g each) carry a platform; their upper ends are moved along
the same path: up, along two cubic segments, down. The rods' tops keep their direction. Published:
the platform deviates from the exits by at most 44.6 mm in x. An independent planar model of the
paper's own elements gives 44.49 mm; in z it gives 1.45 mm, of which x and y together make twice.
"""

import numpy as np
import pytest
from elastic_rigs import straight

from musls_sim.plants.elastic.engine import Engine
from musls_sim.plants.elastic.rig import Rig, RigBody, RigCable

CORNERS = np.array([[-0.3, -0.4, 0.1], [0.3, -0.4, 0.1], [-0.3, 0.4, 0.1], [0.3, 0.4, 0.1]])
DIRECTIONS = np.array(
    [
        [0.0, 0.0, 1.0],
        [np.sqrt(0.125), np.sqrt(0.125), np.sqrt(0.75)],
        [np.sqrt(0.125), np.sqrt(0.125), -np.sqrt(0.75)],
        [0.0, 0.0, -1.0],
    ]
)
TIMES = np.array([0.0, 2.0, 3.0, 4.0, 6.0])


def displacement(begin, end):
    """Rest-to-rest cubics of unit length: motion at both ends of a period, (2, 9)."""
    k = min(np.searchsorted(TIMES, begin + 1e-9) - 1, 3)
    before = DIRECTIONS[:k].sum(axis=0)
    out = np.zeros((2, 18))
    span = TIMES[k + 1] - TIMES[k]
    for row, time in zip(out, (begin, end), strict=True):
        s = (time - TIMES[k]) / span
        shape = np.array([s * s * (3 - 2 * s), 6 * s * (1 - s) / span, 6 * (1 - 2 * s) / span**2])
        row[:9] = np.outer(shape, DIRECTIONS[k]).ravel()
        row[:3] += before
    return out


def largest_deviation(segments, factor, mass=0.05, until=4.4):
    """Largest deviation of the platform in x, y, z [m], in velocity [m/s], and its rotation."""
    inertia = np.diag([0.028333, 0.016667, 0.041667])
    platform = RigBody(0.5, inertia, np.array([0.7, 1.0, 0.1]))
    bodies, cables = [platform], []
    down = np.array([0.0, 0.0, -1.0])
    for k, corner in enumerate(CORNERS):
        foot = platform.position_enu_m + corner
        top = foot - 0.75 * down
        bodies.append(RigBody(prescribed=True, position_enu_m=top))
        cables.append(
            RigCable(
                (1 + k, 0),
                np.array([[0.0, 0.0, 0.0], corner]),
                straight(top, foot, segments),
                0.75,
                mass,
                ea_n=1.74673e6,
                damping_n_s=2.87e9 * 1.25664e-5,
                slack=False,
                ei_n_m2=1.74673,
                bending_damping_n_m2_s=2.87e9 * 1.25664e-11,
                clamps=(down, None),
                clamp_factor=factor,
            )
        )
    engine = Engine(Rig(bodies, cables, gravity_m_s2=9.81))
    for k in range(4):
        top = bodies[1 + k].position_enu_m

        def path(begin, end, top=top):
            out = displacement(begin, end)
            out[:, :3] += top
            return out

        engine.paths[1 + k] = path
    engine.restart()
    worst, fastest, turned = np.zeros(3), np.zeros(3), 0.0
    while engine.time_s < until - 1e-9:
        engine.advance()
        moved = displacement(engine.time_s - engine.period_s, engine.time_s)[1]
        gap = engine.body(0, "position") - platform.position_enu_m - moved[:3]
        worst = np.maximum(worst, np.abs(gap))
        fastest = np.maximum(fastest, np.abs(engine.body(0, "velocity") - moved[3:6]))
        turned = max(turned, np.abs(engine.tables.bodies[0]["rotation"] - np.eye(3)).max())
    return worst, fastest, turned, engine


@pytest.mark.slow
def test_case_1_deviates_as_the_paper_says_and_by_less_with_the_second_order_clamp():
    worst, fastest, turned, engine = largest_deviation(5, 1.0)
    assert worst[0] == pytest.approx(worst[1], rel=1e-3)  # an isotropic model: x = y
    assert worst[0] == pytest.approx(44.5e-3, rel=0.01)
    assert worst[2] == pytest.approx(2.9e-3, rel=0.1)
    assert fastest[0] == pytest.approx(0.336, rel=0.03)
    assert turned < 1e-3
    assert abs(engine.missing_energy_j()) < 0.01 * engine.sums["absolute_work"]
    first = [largest_deviation(n, 1.0)[0][0] for n in (10, 20)]
    second = [largest_deviation(n, 2.0)[0][0] for n in (5, 10, 20)]
    assert abs(second[0] - second[2]) < 0.1 * abs(worst[0] - first[1])
    assert first[1] > second[2], "a hinge of EI / l at the clamp is too soft"
