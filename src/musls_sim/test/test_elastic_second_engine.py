"""A swinging elastic line against MuJoCo, an engine that shares no code with ours.

Lumps on three slides each, joined by spatial tendons as springs that cannot push, integrated with
RK4 at a short step: as good as exact for the same lumps. Then: other threads run during a step.
"""

from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np
import pytest
from elastic_rigs import G, anchor, hanging_rig, point_mass, run, straight
from numba.core.runtime import _nrt_python, rtsys

from musls_sim.plants.elastic import columns as c
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
    nodes, speeds = engine.nodes_enu_m(0), engine.node_velocities_enu_m_s(0)
    masses = engine.tables.nodes[:, c.MASS].copy()
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


def test_a_step_allocates_nothing():
    """numba makes a handle for each of the 8 arrays of a call, and nothing else."""
    periods = 50
    for ei in (0.0, 0.01):
        engine = Engine(hanging_rig(10, mass=0.2, tip=0.5, ea=1e4, ei_n_m2=ei))
        engine.step()
        _nrt_python.memsys_enable_stats()
        try:
            before = rtsys.get_allocation_stats()
            run(engine, periods * engine.period_s)
            after = rtsys.get_allocation_stats()
        finally:
            _nrt_python.memsys_disable_stats()
        assert after.alloc - before.alloc == 8 * periods


def test_the_step_lets_other_threads_run():
    """While one thread is in the compiled step, Python goes on in another."""
    engine = Engine(hanging_rig(200, mass=0.2, tip=0.5, ea=1e4))
    engine.substeps = 4000
    seen = []
    with ThreadPoolExecutor(1) as pool:
        begin = perf_counter()
        stepping = pool.submit(engine.step)
        while not stepping.done():
            seen.append(perf_counter() - begin)
        whole = perf_counter() - begin
        stepping.result()
    # With the lock held, this thread would see nothing between begin and end of the call.
    gaps = np.diff([0.0, *seen, whole])
    assert gaps.max() < 0.5 * whole
    assert len(seen) > 20
