"""Loads from URDF and MJCF: masses, inertias, boxes and attachments, and a flight with them."""

import numpy as np
import pytest

import musls
from musls_bringup.cli import main

mujoco = pytest.importorskip("mujoco")

HOOKS = [(0.3, 0.0), (-0.1, 0.15), (-0.1, -0.15)]


def link(name, mass, inertia, box=None):
    shape = f'<collision><geometry><box size="{box}"/></geometry></collision>' if box else ""
    ixx, iyy, izz = inertia
    return (
        f'<link name="{name}"><inertial><mass value="{mass}"/><inertia ixx="{ixx}" ixy="0" ixz="0" '
        f'iyy="{iyy}" iyz="0" izz="{izz}"/></inertial>{shape}</link>'
    )


def fixed(child, place):
    return (
        f'<joint name="to_{child}" type="fixed"><parent link="base"/><child link="{child}"/>'
        f'<origin xyz="{place[0]} {place[1]} {place[2]}"/></joint>'
    )


@pytest.fixture
def crate(tmp_path, monkeypatch):
    """A box of 1 kg, and 0.5 kg fixed 0.3 m ahead of its middle."""
    monkeypatch.chdir(tmp_path)
    hooks = "".join(
        f'<link name="hook_{i}"/>' + fixed(f"hook_{i}", (x, y, 0.05))
        for i, (x, y) in enumerate(HOOKS, start=1)
    )
    text = link("base", 1.0, (0.01, 0.02, 0.03), "0.8 0.4 0.1")
    text += link("nose", 0.5, (0.001, 0.001, 0.001)) + fixed("nose", (0.3, 0.0, 0.0)) + hooks
    path = tmp_path / "crate.urdf"
    path.write_text(f'<robot name="crate">{text}</robot>')
    return path


def test_urdf_as_one_body_that_flies(crate):
    assert main(["import", "crate.urdf", "--attach", "hook_1,hook_2,hook_3", "--cable", "2"]) == 0
    load = musls.load_system("crate.yaml").load
    assert load.mass_kg == 1.5
    # Steiner: 1 kg at -0.1 m and 0.5 kg at 0.2 m from the common centre.
    further = 1.0 * 0.1**2 + 0.5 * 0.2**2
    inertia = np.diag([0.011, 0.021 + further, 0.031 + further])
    np.testing.assert_allclose(load.inertia_kg_m2, inertia, atol=2e-6)
    assert load.collision.size_m == (0.8, 0.4, 0.1)
    np.testing.assert_allclose(load.collision.center_m, [-0.1, 0.0, 0.0], atol=1e-9)
    hooks = [[x - 0.1, y, 0.05] for x, y in HOOKS]
    np.testing.assert_allclose(load.cable_attachments_m, hooks, atol=1e-9)
    changes = {"system": "crate.yaml", "cable_model": "massless", "mission.stages.0.duration_s": 1}
    run = musls.fly(musls.load_scenario("hold", changes))
    errors = [row for row in run.errors() if row.body == "load"]
    assert max(row.translational_error_max_m for row in errors) < 0.03
    assert max(row.geodesic_error_max_deg for row in errors) < 1.5


def test_mjcf_with_sites_and_a_turned_root(crate):
    sites = "".join(f'<site name="s{i}" pos="{x} {y} 0.05"/>' for i, (x, y) in enumerate(HOOKS))
    crate.with_name("plate.xml").write_text(
        '<mujoco><worldbody><body pos="1 2 3" euler="0 0 40"><freejoint/>'
        f'<geom type="box" size="0.4 0.2 0.05" mass="1.2"/>{sites}</body></worldbody></mujoco>'
    )
    assert main(["import", "plate.xml", "--attach", "s0,s1,s2"]) == 0
    load = musls.load_system("plate.yaml").load
    a, b, c = 0.8, 0.4, 0.1
    moments = 0.1 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])
    np.testing.assert_allclose(load.inertia_kg_m2, np.diag(moments), atol=2e-6)
    np.testing.assert_allclose(load.cable_attachments_m[0], [0.3, 0.0, 0.05], atol=1e-9)


def test_what_is_no_load_is_refused_in_one_line(crate, capsys):
    text = crate.read_text()
    crate.with_name("moves.urdf").write_text(text.replace('"fixed"', '"continuous"', 1))
    crate.with_name("broken.urdf").write_text(text[:200])
    crate.with_name("bare.urdf").write_text(text.replace("collision", "visual"))
    for words, reason in (
        (["crate.urdf", "--attach", "hook_1,hok_2"], "hook_2"),
        (["moves.urdf", "--attach", "hook_1"], "can move"),
        (["broken.urdf", "--attach", "hook_1"], "broken.urdf"),
        (["bare.urdf", "--attach", "hook_1"], "collides"),
        (["nowhere.urdf", "--attach", "a"], "no such file"),
        (["crate.sdf", "--attach", "a"], "must be one of"),
    ):
        assert main(["import", *words]) == 2
        error = capsys.readouterr().err
        assert reason in error and len(error.splitlines()) == 1
    assert not list(crate.parent.glob("*.yaml"))
