"""Swinging elastic lines against MuJoCo and MoorDyn, engines that share no code with ours.

In MuJoCo lumps on three slides each, joined by spatial tendons as springs that cannot push; in
MoorDyn a line in air. Both integrate with RK4 at a short step: as good as exact for the same lumps.
Then: other threads run during a step.
"""

from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np
import pytest
from elastic_rigs import G, anchor, hanging_rig, point_mass, run, straight

from musls_sim.plants.elastic.engine import Engine
from musls_sim.plants.elastic.rig import Rig, RigCable

SEGMENTS, EA_N, MASS_KG, TIP_KG = 6, 80.0, 0.3, 0.5


def swinging(period_s):
    """A line of 1 m with a load, let go sideways with a push across."""
    begin, end = np.zeros(3), np.array([0.44, 0.0, -1.14])
    speeds = straight((0, 0, 0), (0.0, 0.7, 0.0), SEGMENTS)
    cable = RigCable(
        (0, 1), np.zeros((2, 3)), straight(begin, end, SEGMENTS), 1.0, MASS_KG, ea_n=EA_N,
        velocities_enu_m_s=speeds,
    )  # fmt: skip
    load = point_mass(end, TIP_KG)
    load.velocity_enu_m_s = speeds[-1]
    return Engine(Rig([anchor(begin), load], [cable], gravity_m_s2=G), period_s=period_s)


def swung_in_mujoco(engine, time_s, step_s=1e-4):
    """Positions of the nodes after a time, the first one fixed."""
    mujoco = pytest.importorskip("mujoco", reason="the second engine, MuJoCo, is not installed")
    nodes, speeds = engine.nodes_enu_m(0), engine.nodes(0)["velocity"]
    masses = engine.tables.nodes["mass"].copy()
    masses[-1] += TIP_KG
    rest = 1.0 / SEGMENTS
    bodies = '<site name="s0" pos="0 0 0"/>'
    for k in range(1, SEGMENTS + 1):
        slides = "".join(f'<joint type="slide" axis="{a}"/>' for a in ("1 0 0", "0 1 0", "0 0 1"))
        place = " ".join(repr(float(x)) for x in nodes[k])
        bodies += (
            f'<body pos="{place}">{slides}<inertial pos="0 0 0" mass="{float(masses[k])!r}" '
            f'diaginertia="1e-3 1e-3 1e-3"/><site name="s{k}"/></body>'
        )
    springs = "".join(
        f'<spatial springlength="0 {rest!r}" stiffness="{EA_N / rest!r}" '
        f'damping="0"><site site="s{k}"/><site site="s{k + 1}"/></spatial>'
        for k in range(SEGMENTS)
    )
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option integrator="RK4" timestep="{step_s!r}" gravity="0 0 {-G!r}">'
        f'<flag contact="disable" constraint="disable"/></option><worldbody>{bodies}</worldbody>'
        f"<tendon>{springs}</tendon></mujoco>"
    )
    data = mujoco.MjData(model)
    data.qvel[:] = speeds[1:].ravel()
    for _ in range(round(time_s / step_s)):
        mujoco.mj_step(model, data)
    return nodes[1:] + data.qpos.reshape(-1, 3)


def test_a_swinging_line_moves_as_in_mujoco():
    """No damping, which MuJoCo lets act on slack lines too; converges to its motion."""
    wanted = swung_in_mujoco(swinging(0.004), 0.6)
    errors = []
    for period in (0.004, 0.002, 0.001):
        engine = swinging(period)
        run(engine, 0.6)
        errors.append(np.abs(engine.nodes_enu_m(0)[1:] - wanted).max())
    assert np.abs(wanted[-1] - [0.44, 0.0, -1.14]).max() > 0.4
    assert errors[2] < 5e-4
    assert errors[0] / errors[1] > 3.0
    assert errors[1] / errors[2] > 3.0


MOORDYN = f"""MoorDyn v2 input
--- LINE TYPES ---
TypeName Diam Mass/m EA BA EI Cd Ca CdAx CaAx
(-) (m) (kg/m) (N) (-) (N-m2) (-) (-) (-) (-)
line 0.001 {MASS_KG} {EA_N} 0 0 0 0 0 0
--- POINTS ---
ID Type X Y Z Mass Volume CdA Ca
(-) (-) (m) (m) (m) (kg) (m3) (m2) (-)
1 Coupled 0 0 5 0 0 0 0
2 Free 0.44 0 3.86 {TIP_KG} 0 0 0
--- LINES ---
ID LineType AttachA AttachB UnstrLen NumSegs Outputs
(-) (-) (-) (-) (m) (-) (-)
1 line 1 2 1.0 {SEGMENTS} -
--- OPTIONS ---
0 writeLog
5e-5 dtM
rk4 tScheme
{G} g
1e-9 rho
100 WtrDpth
--- END ---
"""
"""A line of 1 m in air, its upper end moved; the load is let go at rest, pulled aside."""


def moved_end(time_s):
    """Position, velocity and acceleration of the upper end: it shakes across the swing."""
    wave, rate = 0.1, 4.0
    c, s = np.cos(rate * time_s), np.sin(rate * time_s)
    return np.array([0, wave * (1 - c), 5, 0, wave * rate * s, 0, 0, wave * rate**2 * c, 0])


def swung_in_moordyn(folder, time_s, step_s=2e-4):
    """Positions of the nodes at the begin and after a time."""
    moordyn = pytest.importorskip("moordyn", reason="the second engine, MoorDyn, is not installed")
    (folder / "line.txt").write_text(MOORDYN)
    system = moordyn.Create(str(folder / "line.txt"))
    try:
        moordyn.Init_NoIC(system, list(moved_end(0.0)[:3]), list(moved_end(0.0)[3:6]))
        line = moordyn.GetLine(system, 1)
        shapes = [[moordyn.GetLineNodePos(line, k) for k in range(SEGMENTS + 1)]]
        for k in range(round(time_s / step_s)):
            end = moved_end(k * step_s)
            moordyn.Step(system, list(end[:3]), list(end[3:6]), k * step_s, step_s)
        shapes.append([moordyn.GetLineNodePos(line, k) for k in range(SEGMENTS + 1)])
    finally:
        moordyn.Close(system)
    return np.array(shapes)


@pytest.mark.slow
def test_a_driven_line_moves_as_in_moordyn(tmp_path, capfd):
    """From the shape that MoorDyn begins with; converges to its motion."""
    begin, wanted = swung_in_moordyn(tmp_path, 0.6)
    capfd.readouterr()  # it tells every step
    errors = []
    for period in (0.004, 0.002, 0.001):
        cable = RigCable((0, 1), np.zeros((2, 3)), begin.copy(), 1.0, MASS_KG, ea_n=EA_N)
        rig = Rig([anchor(begin[0]), point_mass(begin[-1], TIP_KG)], [cable], gravity_m_s2=G)
        engine = Engine(rig, period_s=period)
        engine.paths[0] = lambda *ends: np.array([[*moved_end(t), *np.zeros(9)] for t in ends])
        engine.restart()
        run(engine, 0.6)
        errors.append(np.abs(engine.nodes_enu_m(0) - wanted).max())
    assert np.abs(wanted - begin).max() > 0.2
    assert errors[2] < 5e-4
    assert errors[0] / errors[1] > 3.0
    assert errors[1] / errors[2] > 3.0


def test_the_step_lets_other_threads_run():
    """While one thread is in the compiled step, Python goes on in another."""
    engine = Engine(hanging_rig(200, mass=0.2, tip=0.5, ea=1e4))
    engine.substeps = 4000
    seen = []
    with ThreadPoolExecutor(1) as pool:
        begin = perf_counter()
        stepping = pool.submit(engine.advance)
        while not stepping.done():
            seen.append(perf_counter() - begin)
        whole = perf_counter() - begin
        stepping.result()
    # With the lock held, this thread would see nothing between begin and end of the call.
    gaps = np.diff([0.0, *seen, whole])
    assert gaps.max() < 0.5 * whole
    assert len(seen) > 20
