"""Loads and drones from URDF, SDF and MJCF: masses, inertias, boxes, rotors, and flights."""

import os

import numpy as np
import pytest

import musls
from musls_bringup.cli import main
from musls_bringup.new.import_body import read_rigid_body
from musls_bringup.new.templates import imported_load
from musls_description.config.strict_yaml import parse_yaml

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


@pytest.mark.parametrize(
    "moments", [(0.2, 0.2, 6.1e-6), (0.2, 0.2, 2e-6), (0.12345674, 0.23456784, 0.35802458)]
)
def test_moments_of_rods_and_plates_keep_their_digits(crate, moments):
    hooks = "".join(
        f'<link name="h{i}"/>' + fixed(f"h{i}", (0.0, 0.0, z)) for i, z in enumerate((0.0, 0.5))
    )
    text = link("base", 0.5, moments, "0.01 0.01 2") + hooks
    crate.write_text(f'<robot name="rod">{text}</robot>')
    body = read_rigid_body(crate)
    (line,) = imported_load(body, ["h0", "h1"], "crate.urdf").body[:1]
    inertia = parse_yaml(line, "test")["inertia_kg_m2"]
    np.testing.assert_allclose(inertia, np.diag(moments), rtol=1e-9, atol=0.0)
    assert np.diag(inertia)[:2].sum() >= inertia[2][2] * (1.0 - 1e-9)


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


def test_sdf_as_gazebo_gets_it(crate):
    """The load that `musls model` writes for Gazebo is read as the description has it."""
    assert main(["model", "x500_trio", "--format", "sdf", "--out", "models"]) == 0
    body = read_rigid_body(crate.parent / "models" / "load" / "model.sdf")
    load = musls.load_system("x500_trio").load
    assert body.mass_kg == load.mass_kg
    np.testing.assert_allclose(body.inertia_kg_m2, load.inertia_kg_m2, atol=1e-12)
    np.testing.assert_allclose(body.box_m, load.collision.size_m, atol=1e-12)
    np.testing.assert_allclose(body.box_middle_m, load.collision.center_m, atol=1e-12)


def test_sdf_with_turned_links_and_frames(crate):
    """The crate once more: its nose on a link that is turned and hangs on a frame."""
    box = "<collision name='c'><geometry><box><size>0.8 0.4 0.1</size></box></geometry></collision>"
    hooks = "".join(
        f'<frame name="hook_{i}" attached_to="nose"><pose>{y} {0.3 - x} 0.05 0 0 0</pose></frame>'
        for i, (x, y) in enumerate(HOOKS, start=1)
    )

    def inertial(mass, moments, pose):
        parts = zip(("ixx", "iyy", "izz"), moments, strict=True)
        return (
            f"<inertial><pose>{pose}</pose><mass>{mass}</mass><inertia>"
            + "".join(f"<{name}>{value}</{name}>" for name, value in parts)
            + "</inertia></inertial>"
        )

    base = inertial(1.0, (0.02, 0.01, 0.03), "0 0 0 0 0 1.5707963267948966")
    crate.with_name("crate.sdf").write_text(
        '<sdf version="1.9"><world name="w"><model name="crate"><pose>5 6 7 0 0 1</pose>'
        f'<link name="base">{base}{box}'
        '</link><frame name="ahead"><pose degrees="true">0.3 0 0 0 0 90</pose></frame>'
        '<link name="nose"><pose relative_to="ahead">0 0 0 0 0 0</pose>'
        f"{inertial(0.5, (0.001, 0.001, 0.001), '0 0 0 0 0 0')}</link>"
        '<joint name="j" type="fixed"><parent>base</parent><child>nose</child></joint>'
        f"{hooks}</model></world></sdf>"
    )
    for name in ("crate.urdf", "crate.sdf"):
        args = ["--attach", "hook_1,hook_2,hook_3", "--name", f"from_{name[-4:].strip('.')}"]
        assert main(["import", name, *args]) == 0
    one, other = (musls.load_system(f"from_{kind}.yaml").load for kind in ("urdf", "sdf"))
    np.testing.assert_allclose(one.inertia_kg_m2, other.inertia_kg_m2, atol=2e-6)
    np.testing.assert_allclose(one.cable_attachments_m, other.cable_attachments_m, atol=1e-9)
    assert one.mass_kg == other.mass_kg and one.collision.size_m == other.collision.size_m
    np.testing.assert_allclose(one.collision.center_m, other.collision.center_m, atol=1e-9)


def test_what_is_no_load_is_refused_in_one_line(crate, capsys):
    text = crate.read_text()
    crate.with_name("broken.urdf").write_text(text[:200])
    place = text.index('<origin xyz="') + len('<origin xyz="')
    for name in ("nan", "inf", "1e300"):
        crate.with_name(f"x{name}.urdf").write_text(text[:place] + name + text[place + 3 :])
    crate.with_name("bare.urdf").write_text(text.replace("collision", "visual"))
    sdf = '<sdf version="1.9"><model name="m">{}</model></sdf>'
    lost = '<link name="a"><pose relative_to="nobody">0 0 0 0 0 0</pose></link>'
    crate.with_name("lost.sdf").write_text(sdf.format(lost))
    for name, inside in (
        ("turned", "<pose>0 0 0 nan 0 0</pose>"),
        ("heavy", "<inertial><inertia><ixx>inf</ixx></inertia></inertial>"),
        ("far", "<inertial><pose>1e300 0 0 0 0 0</pose></inertial>"),
    ):
        box = "<collision><geometry><box><size>1 1 1</size></box></geometry></collision>"
        crate.with_name(f"{name}.sdf").write_text(
            sdf.format(f'<link name="a">{inside}{box}</link>')
        )
    crate.with_name("bent.sdf").write_text(sdf[:30])
    for words, reason in (
        (["crate.urdf", "--attach", "hook_1,hok_2"], "hook_2"),
        (["broken.urdf", "--attach", "hook_1"], "broken.urdf"),
        (["bare.urdf", "--attach", "hook_1"], "collides"),
        (["nowhere.urdf", "--attach", "a"], "no such file"),
        (["crate.dae", "--attach", "a"], "must be one of"),
        (["turned.sdf", "--attach", "a"], "<pose>0 0 0 nan 0 0</pose>: must be finite"),
        (["heavy.sdf", "--attach", "a"], "<inertia>: must be finite"),
        (["far.sdf", "--attach", "a"], "far.sdf: "),
        (["lost.sdf", "--attach", "a"], "relative to 'nobody'"),
        (["bent.sdf", "--attach", "a"], "unclosed token"),
        (["xnan.urdf", "--attach", "hook_1"], "xnan.urdf: "),
        (["xinf.urdf", "--attach", "hook_1"], "is not below 1e+06"),
        (["x1e300.urdf", "--attach", "hook_1"], "is not below 1e+06"),
    ):
        assert main(["import", *words]) == 2
        error = capsys.readouterr().err
        assert reason in error and len(error.splitlines()) == 1
    assert {path.suffix for path in crate.parent.iterdir()} == {".urdf", ".sdf"}


# ---------- Airframes


def test_a_drone_of_gazebo_is_the_one_that_was_written_for_it(crate):
    """What `musls model` writes with motor plugins, read again: the same drone, the same flight."""
    assert main(["model", "x500_trio", "--format", "sdf", "--out", "models"]) == 0
    file = "models/x500_1/model.sdf"
    assert main(["import", file, "--as", "drone", "--attach", "base_link", "--name", "frame"]) == 0
    assert main(["new", "system", "mine", "--drone", "frame.yaml"]) == 0
    known, read = musls.load_system("x500_trio").drones[0], musls.load_system("mine.yaml").drones[0]
    assert read.rotors == known.rotors and read.mass_kg == known.mass_kg
    np.testing.assert_allclose(read.inertia_kg_m2, known.inertia_kg_m2, atol=1e-6)
    np.testing.assert_allclose(read.collision.corners_m, known.collision.corners_m, atol=1e-6)
    changes = {"system": "mine.yaml", "cable_model": "massless", "mission.stages.0.duration_s": 2}
    run = musls.fly(musls.load_scenario("hold", changes))
    errors = [row for row in run.errors() if row.body == "load"]
    assert max(row.translational_error_max_m for row in errors) < 0.03


def motor(i, spin, extra=""):
    return (
        f"<plugin name='gz::sim::systems::MulticopterMotorModel'><jointName>spin_{i}</jointName>"
        f"<linkName>rotor_{i}</linkName><turningDirection>{spin}</turningDirection>{extra}"
        f"<motorConstant>1e-5</motorConstant><momentConstant>0.02</momentConstant>"
        f"<maxRotVelocity>900</maxRotVelocity><motorNumber>{i}</motorNumber></plugin>"
    )


PLACES = [(0.2, -0.2), (-0.2, 0.2), (0.2, 0.2), (-0.2, -0.2)]
SPINS = ("ccw", "ccw", "cw", "cw")
MOTORS = "".join(motor(i, spin) for i, spin in reversed(list(enumerate(SPINS))))


def frames(folder):
    """One drone as URDF, as SDF that merges another model, and as MJCF; a hook 0.1 m below."""
    wheels = "".join(
        f'<link name="rotor_{i}"><inertial><mass value="0.05"/><inertia ixx="1e-5" ixy="0" ixz="0" '
        'iyy="1e-5" iyz="0" izz="1e-5"/></inertial></link>'
        f'<joint name="spin_{i}" type="continuous"><parent link="base"/><child link="rotor_{i}"/>'
        f'<origin xyz="{x} {y} 0.05"/><axis xyz="0 0 1"/></joint>'
        for i, (x, y) in enumerate(PLACES)
    )
    hook = '<link name="hook"/>' + fixed("hook", (0, 0, -0.1))
    base = link("base", 1.8, (0.02, 0.02, 0.03), "0.4 0.4 0.2")
    text = f'<robot name="m">{base}{wheels}{hook}<gazebo>{MOTORS}</gazebo></robot>'
    (folder / "one.urdf").write_text(text)
    inertia = "<inertia><ixx>{0}</ixx><iyy>{0}</iyy><izz>{1}</izz></inertia>"
    turning = "".join(
        f"<link name='rotor_{i}'><pose>{x} {y} 0.05 0 0 0</pose><inertial><mass>0.05</mass>"
        f"{inertia.format(1e-5, 1e-5)}</inertial></link><joint name='spin_{i}' type='revolute'>"
        f"<parent>base</parent><child>rotor_{i}</child></joint>"
        for i, (x, y) in enumerate(PLACES)
    )
    box = "<collision><geometry><box><size>0.4 0.4 0.2</size></box></geometry></collision>"
    sdf = '<sdf version="1.9"><model name="m">{}</model></sdf>'
    for name, inside in (
        ("two", f"<include merge='true'><uri>model://base</uri></include>{MOTORS}"),
        (
            "base",
            "<pose>0 0 3 0 0 0</pose><link name='base'><inertial><mass>1.8</mass>"
            f"{inertia.format(0.02, 0.03)}</inertial>{box}</link>{turning}"
            "<frame name='hook'><pose>0 0 -0.1 0 0 0</pose></frame>",
        ),
    ):
        (folder / name).mkdir()
        (folder / name / "model.sdf").write_text(sdf.format(inside))
    sites = "".join(f'<site name="r{i}" pos="{x} {y} 0.05"/>' for i, (x, y) in enumerate(PLACES))
    wheels = "".join(
        f'<body pos="{x} {y} 0.05"><inertial pos="0 0 0" mass="0.05" diaginertia="1e-5 1e-5 1e-5"/>'
        "</body>"
        for x, y in PLACES
    )
    acts = "".join(
        f'<motor name="a{i}" site="r{i}" ctrlrange="0 8.1" gear="0 0 1 0 0 {sign}"/>'
        for i, sign in enumerate((-0.02, -0.02, 0.02, 0.02))
    )
    (folder / "three.xml").write_text(
        '<mujoco><compiler inertiagrouprange="0 0"/><worldbody><body pos="0 0 1"><freejoint/>'
        '<inertial pos="0 0 0" mass="1.8" diaginertia="0.02 0.02 0.03"/>'
        f'<geom type="box" size="0.2 0.2 0.1"/>{sites}<site name="hook" pos="0 0 -0.1"/>{wheels}'
        f"</body></worldbody><actuator>{acts}</actuator></mujoco>"
    )


def test_one_drone_from_three_kinds_of_file(crate):
    frames(crate.parent)
    rpm = str(900.0 * 30.0 / np.pi)
    made = []
    for file in ("one.urdf", "two/model.sdf", "three.xml"):
        name = file[:3]
        words = ["import", file, "--as", "drone", "--attach", "hook", "--name", name]
        assert main([*words, "--rpm", rpm]) == 0
        assert main(["new", "system", f"of_{name}", "--drone", f"{name}.yaml"]) == 0
        made.append(musls.load_system(f"of_{name}.yaml").drones[0])
    for drone in made:
        assert drone.mass_kg == 2.0
        below = 0.2 * 0.05 / 2.0  # of the common centre of mass, by the rotors above
        assert drone.cable_attachment_m == pytest.approx((0.0, 0.0, -0.1 - below), abs=1e-9)
        assert drone.collision.size_m == pytest.approx((0.4, 0.4, 0.2))
        across = 0.2 * (0.2**2 + 0.05**2) + 4e-5 + 0.02 - 2.0 * below**2
        assert drone.inertia_kg_m2[0][0] == pytest.approx(across, abs=1e-6)
        for rotor, place, spin in zip(drone.rotors, PLACES, SPINS, strict=True):
            assert rotor.position_m == pytest.approx((*place, 0.05 - below), abs=1e-9)
            assert rotor.spin == spin and rotor.max_thrust_n == pytest.approx(8.1)
            assert rotor.moment_ratio_m == 0.02 and rotor.speed_max_rad_s == pytest.approx(900.0)


def test_what_is_no_drone_is_refused_in_one_line(crate, capsys):
    frames(crate.parent)
    text = (crate.parent / "one.urdf").read_text()
    for name, old, new in (
        ("lost", "<linkName>rotor_1<", "<linkName>rotor_9<"),
        ("spin", "Direction>cw<", "Direction>left<"),
        ("weak", "1e-5</motorConstant>", "1e-6</motorConstant>"),
        ("empty", "1e-5</motorConstant>", "</motorConstant>"),
        ("nameless", "<linkName>rotor_1<", "<linkName><"),
        ("numberless", "<motorNumber>1<", "<motorNumber>one<"),
        ("twisted", "Direction>ccw<", "Direction>cw<"),
        ("yawless", "<momentConstant>0.02<", "<momentConstant>0<"),
        ("leans", '0.05"/><axis', '0.05" rpy="0.1 0 0"/><axis'),
    ):
        crate.with_name(f"{name}.urdf").write_text(text.replace(old, new))
    tilted = (crate.parent / "three.xml").read_text().replace('gear="0 0 1', 'gear="0.1 0 1')
    crate.with_name("tilted.xml").write_text(tilted)
    (crate.parent / "base" / "model.sdf").rename(crate.parent / "base" / "gone.sdf")
    for file, reason in (
        ("crate.urdf", "no rotors in it"),
        ("lost.urdf", "<linkName>rotor_9</linkName>: no such link"),
        ("spin.urdf", "must be cw or ccw"),
        ("empty.urdf", "<motorConstant></motorConstant>: must be a finite number"),
        ("nameless.urdf", "<linkName></linkName>: no such link"),
        ("numberless.urdf", "<motorNumber>one</motorNumber>: must be a finite number"),
        ("twisted.urdf", "cannot control roll, pitch, yaw and thrust independently"),
        ("yawless.urdf", "cannot control roll, pitch, yaw and thrust independently"),
        ("weak.urdf", "0.17 times its weight"),
        ("leans.urdf", "rotor_0 is tilted"),
        ("tilted.xml", "actuator a0: must be a motor"),
        ("two/model.sdf", "../base/model.sdf"),
    ):
        hook = "base" if file == "crate.urdf" else "hook"
        assert main(["import", file, "--as", "drone", "--attach", hook, "--name", "out"]) == 2
        error = capsys.readouterr().err
        assert reason in error and len(error.splitlines()) == 1
    assert main(["import", "one.urdf", "--as", "drone", "--attach", "hook,base"]) == 2
    assert "number of names of a drone" in capsys.readouterr().err
    assert not (crate.parent / "out.yaml").exists()


@pytest.mark.parametrize("line", ["param set-default {} {}", "1\t1\t{}\t{}\t9"])
def test_places_of_rotors_from_px4(crate, line, capsys):
    """PX4's x is forward, y right, z down; KM > 0 turns anti-clockwise."""
    values = {"CA_ROTOR_COUNT": 4}
    for i, ((x, y), spin) in enumerate(zip(PLACES, SPINS, strict=True)):
        for key, value in (("PX", x), ("PY", -y), ("PZ", -0.03), ("KM", 0.05)):
            values[f"CA_ROTOR{i}_{key}"] = -value if key == "KM" and spin == "cw" else value
    text = "\n".join(line.format(*item) for item in values.items())
    crate.with_name("frame.params").write_text(text)
    words = ["--px4", "frame.params", "--mass", "1.5", "--thrust", "9"]
    assert main(["new", "drone", "frame", *words]) == 0
    assert main(["new", "system", "mine", "--drone", "frame.yaml"]) == 0
    for rotor, place, spin in zip(
        musls.load_system("mine.yaml").drones[0].rotors, PLACES, SPINS, strict=True
    ):
        assert rotor.position_m == (*place, 0.03) and rotor.spin == spin
    crate.with_name("tilted.params").write_text(text + "\n" + line.format("CA_ROTOR1_AX", 0.1))
    crate.with_name("few.params").write_text(text.replace("CA_ROTOR3", "CA_ROTER3"))
    for file, reason in (("tilted", "CA_ROTOR1_AX"), ("few", "of 3 rotors"), ("none", "no such")):
        assert main(["new", "drone", "other", "--px4", f"{file}.params"]) == 2
        error = capsys.readouterr().err
        assert reason in error and len(error.splitlines()) == 1


# ---------- Models as they are published: includes, gimbals, densities

CUBE = "<collision><geometry><box><size>0.4 0.3 0.2</size></box></geometry></collision>"


def sdf_link(name, mass, moments=(0.01, 0.02, 0.025), pose="0 0 0 0 0 0", more=CUBE):
    xx, yy, zz = moments
    return (
        f"<link name='{name}'><pose>{pose}</pose><inertial><mass>{mass}</mass><inertia><ixx>{xx}"
        f"</ixx><iyy>{yy}</iyy><izz>{zz}</izz></inertia></inertial>{more}</link>"
    )


def sdf_model(folder, name, inside):
    (folder / name).mkdir()
    path = folder / name / "model.sdf"
    path.write_text(f"<sdf version='1.11'><model name='{name}'>{inside}</model></sdf>")
    return path


def include(uri, pose, more="", merge="false", relative_to=""):
    frame = f" relative_to='{relative_to}'" if relative_to else ""
    inside = f"<uri>{uri}</uri>{more}<pose{frame}>{pose}</pose>"
    return f"<include merge='{merge}'>{inside}</include>"


def test_included_and_nested_models_stand_at_their_poses(tmp_path):
    """A camera of 0.1 kg at (0.5, 0, 0.25), turned by a quarter about z, in four ways."""
    camera = sdf_link("lens", 0.1, (1e-4, 2e-4, 3e-4), "0 0 0.05 0 0 0", "")
    sdf_model(tmp_path, "camera", camera)
    sdf_model(tmp_path, "mount", include("model://camera", "0 0 0.1 0 0 0"))
    base = sdf_link("base", 1.0) + "<frame name='front'><pose>0.5 0 0.1 0 0 0</pose></frame>"
    turn = "0 0 1.5707963267948966"
    cam = "<name>cam</name>"
    inside = {
        "merged": include("model://camera", f"0.5 0 0.2 {turn}", merge="true"),
        "named": include("camera", f"0 0 0.1 {turn}", cam, relative_to="front"),
        "nested": f"<model name='inner'><pose>0.5 0 0.2 {turn}</pose>{camera}</model>",
        "twice": include("model://mount", f"0.5 0 0.1 {turn}"),
        # A link that another included model has, and a prefix that nobody declares.
        "after": include("camera", f"0 0 0.1 {turn}", cam, relative_to="rack")
        + include("rack", "0.5 0 0.1 0 0 0", merge="true")
        + "<gz:note>one</gz:note><frame name='end' gz:hidden='true'/>",
    }
    rack = "<link name='rack'><inertial><mass>1e-9</mass><inertia><ixx>1e-12</ixx><iyy>1e-12</iyy>"
    sdf_model(tmp_path, "rack", f"{rack}<izz>1e-12</izz></inertia></inertial></link>")
    links = {"merged": "lens", "named": "cam::lens", "nested": "inner::lens",
             "twice": "mount::camera::lens", "after": "cam::lens"}  # fmt: skip
    for name, text in inside.items():
        body = read_rigid_body(sdf_model(tmp_path, name, base + text))
        assert body.mass_kg == pytest.approx(1.1)
        centre = np.array([0.5, 0.0, 0.25]) / 11.0
        np.testing.assert_allclose(body.points_m[links[name]], [0.5, 0, 0.25] - centre, atol=1e-12)
        arm = np.array([0.5, 0.0, 0.25])
        steiner = 0.1 / 1.1 * (arm @ arm * np.eye(3) - np.outer(arm, arm))
        own = np.diag([0.01 + 2e-4, 0.02 + 1e-4, 0.025 + 3e-4])
        np.testing.assert_allclose(body.inertia_kg_m2, own + steiner, atol=1e-12)


def bladed_quad(gain, damping):
    """Half of a frame as ArduPilot's models have it: two rotors of two blades, an included body."""
    places = [(0.2, -0.2), (-0.2, 0.2), (0.2, 0.2), (-0.2, -0.2)]
    body, plugins, controls = sdf_link("base", 1.0), "", ""
    for i, (x, y) in enumerate(places):
        name = f"frame::rotor_{i}"
        body += sdf_link(f"rotor_{i}", 0.02, (1e-5, 1e-4, 1.1e-4), f"{x} {y} 0.03 0 0 0")
        body += (
            f"<joint name='rotor_{i}_joint' type='revolute'><parent>base</parent>"
            f"<child>rotor_{i}</child><axis><xyz>0 0 1</xyz><dynamics><damping>{damping}</damping>"
            "</dynamics></axis></joint>"
        )
        for side in (0.1, -0.1):
            plugins += (
                "<plugin name='LiftDrag' filename='LiftDrag'><a0>0.25</a0><cla>4</cla>"
                "<cda>0.2</cda><area>0.003</area><air_density>1.2</air_density>"
                f"<cp>{side} 0 0</cp><link_name>{name}</link_name></plugin>"
            )
        turns = 900 if i < 2 else -900
        controls += (
            f"<control channel='{i}'><jointName>{name}_joint</jointName><type>VELOCITY</type>"
            f"<useForce>1</useForce><multiplier>{turns}</multiplier><p_gain>{gain}</p_gain>"
            "<cmd_max>2</cmd_max></control>"
        )
    ardupilot = f"<plugin name='ArduPilotPlugin' filename='ArduPilotPlugin'>{controls}</plugin>"
    return body, include("model://frame", "0 0 0 0 0 0") + plugins + ardupilot


@pytest.mark.parametrize("damping", [0.0, 0.004])
def test_blades_that_ardupilot_turns_are_rotors(tmp_path, recwarn, damping):
    """Thrust rho S cla a0 r^2 w^2 / 2 a blade; the controller's torque balances drag and joint."""
    frame, outer = bladed_quad(0.2, damping)
    sdf_model(tmp_path, "frame", frame)
    body = read_rigid_body(sdf_model(tmp_path, "outer", outer), 800.0)
    lift = 2 * 0.5 * 1.2 * 0.003 * 4 * 0.25 * 0.1**2
    drag = 2 * 0.5 * 1.2 * 0.003 * 0.2 * 0.25 * 0.1**3
    assert [rotor["spin"] for rotor in body.rotors] == ["ccw", "ccw", "cw", "cw"]
    places = np.array([rotor["position_m"] for rotor in body.rotors])
    np.testing.assert_allclose(places[:, :2], [(0.2, -0.2), (-0.2, 0.2), (0.2, 0.2), (-0.2, -0.2)])
    for rotor in body.rotors:
        assert rotor["thrust_coefficient_n_s2"] == pytest.approx(lift)
        assert rotor["moment_ratio_m"] == pytest.approx(drag / lift)
        speed = rotor["speed_max_rad_s"]
        torque = drag * speed**2 + damping * speed
        assert torque == pytest.approx(min(2.0, 0.2 * (900.0 - speed)), rel=1e-6)
    assert body.mass_kg == pytest.approx(1.08)
    assert not [str(w.message) for w in recwarn if "can move" in str(w.message)]


def test_one_model_of_a_world(tmp_path):
    """Of Gazebo's worlds what is not static; comments may hold dashes there."""
    ground = "<model name='ground'><static>true</static><link name='plane'/></model>"
    box = f"<model name='crate'>{sdf_link('base', 1.5)}</model>"
    path = tmp_path / "world.sdf"
    path.write_text(
        f"<sdf version='1.9'><!-- gz topic --msgs 1 --><world>{ground}{box}</world></sdf>"
    )
    assert read_rigid_body(path).mass_kg == pytest.approx(1.5)
    path.write_text(f"<sdf version='1.9'><world>{box}{box}</world></sdf>")
    with pytest.raises(musls.MuslsError, match="it has crate, crate"):
        read_rigid_body(path)


def test_meshes_of_ros_packages(tmp_path, monkeypatch):
    """Found in the package that the file is in or that ROS knows; else left out with a word."""
    corners = [(x, y, z) for x in (-0.2, 0.2) for y in (-0.1, 0.1) for z in (-0.05, 0.05)]
    faces = ["1 2 4 3", "5 7 8 6", "1 5 6 2", "3 4 8 7", "1 3 7 5", "2 6 8 4"]
    for folder in (tmp_path / "crates" / "meshes", tmp_path / "other" / "share" / "far" / "meshes"):
        folder.mkdir(parents=True)
        lines = [*("v {} {} {}".format(*corner) for corner in corners), *(f"f {f}" for f in faces)]
        (folder / "a.obj").write_text("\n".join(lines))
    (tmp_path / "crates" / "urdf").mkdir()
    path = tmp_path / "crates" / "urdf" / "crate.urdf"

    def read(mesh):
        mesh = f'<geometry><mesh filename="{mesh}"/></geometry>'
        text = link("base", 1.0, (0.0, 0.0, 0.0), "0.1 0.1 0.1").replace(
            "</link>", f"<visual>{mesh}</visual><collision>{mesh}</collision></link>"
        )
        path.write_text(f'<robot name="crate">{text}</robot>')
        return read_rigid_body(path)

    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "other"))
    for mesh in ("package://crates/meshes/a.obj", "package://far/meshes/a.obj", "../meshes/a.obj"):
        with pytest.warns(UserWarning, match="that of a homogeneous box is taken"):
            body = read(mesh)
        assert body.box_m == pytest.approx([0.4, 0.2, 0.1], abs=1e-6)
        assert np.diag(body.inertia_kg_m2) == pytest.approx([0.05 / 12, 0.17 / 12, 0.2 / 12])
    with pytest.warns(UserWarning, match="package://lost/a.stl left out|homogeneous"):
        assert read("package://lost/a.stl").box_m == pytest.approx([0.1, 0.1, 0.1])


def test_joints_that_can_move_are_frozen_with_a_word(tmp_path, crate):
    gimbal = sdf_link("base", 1.0) + sdf_link("imu", 0.02, (1e-5,) * 3, "0 0 0.1 0 0 0", "")
    joint = "<joint name='{}' type='revolute'><parent>base</parent><child>imu</child>{}</joint>"
    limits = "<axis><limit><lower>0</lower><upper>0</upper></limit></axis>"
    fixed_model = sdf_model(tmp_path, "stiff", gimbal + joint.format("j", limits))
    assert read_rigid_body(fixed_model).mass_kg == pytest.approx(1.02)
    with pytest.warns(UserWarning, match="pitch can move: fixed where they are at zero"):
        loose = read_rigid_body(sdf_model(tmp_path, "loose", gimbal + joint.format("pitch", "")))
    assert loose.mass_kg == pytest.approx(1.02)
    crate.write_text(crate.read_text().replace('"fixed"', '"continuous"', 1))
    with pytest.warns(UserWarning, match="to_nose can move"):
        assert read_rigid_body(crate).mass_kg == pytest.approx(1.5)
    stuck, kind = '<limit effort="1" velocity="1"{}/></joint>', 'type="revolute"'
    text = crate.read_text().replace('type="continuous"', kind, 1)
    crate.write_text(text.replace("</joint>", stuck.format(' lower="0.0" upper="0"'), 1))
    assert read_rigid_body(crate).mass_kg == pytest.approx(1.5)  # fixed without a word
    crate.write_text(text.replace("</joint>", stuck.format(""), 1))  # both are 0 by default
    assert read_rigid_body(crate).mass_kg == pytest.approx(1.5)
    crate.write_text(text.replace("</joint>", stuck.format(' lower="0.5" upper="0.5"'), 1))
    with pytest.warns(UserWarning, match="to_nose can move"):
        read_rigid_body(crate)


@pytest.mark.parametrize("kind", ["urdf", "sdf", "xml"])
def test_an_inertia_that_no_body_has_names_link_and_axis(tmp_path, kind):
    for moments, words in (
        ((0.01, 0.05, 0.02), "arm: inertia about y: 0.05 kg m2, more than about the other two"),
        ((0.01, -0.05, 0.02), "arm: inertia about y: -0.05 kg m2, must be above 0"),
    ):
        path = tmp_path / f"a.{kind}"
        sdf = f"{sdf_link('base', 1.0)}{sdf_link('arm', 1.0, moments)}"
        urdf = link("base", 1.0, (0.01, 0.02, 0.02), "1 1 1") + link("arm", 1.0, moments)
        numbers = " ".join(map(str, moments))
        mjcf = f"<inertial pos='0 0 0' mass='1' diaginertia='{numbers}'/>"
        path.write_text(
            {
                "urdf": f"<robot name='r'>{urdf}{fixed('arm', (0, 0, 0))}</robot>",
                "sdf": f"<sdf version='1.9'><model name='m'>{sdf}</model></sdf>",
                "xml": f"<mujoco><worldbody><body name='arm'>{mjcf}</body></worldbody></mujoco>",
            }[kind]
        )
        with pytest.raises(musls.ConfigError, match=words):
            read_rigid_body(path)


def test_mass_and_inertia_from_densities(tmp_path):
    auto = "<link name='body'><inertial auto='true'>{}</inertial>{}</link>"
    given = CUBE.replace("<geometry>", "<density>50</density><geometry>")
    for name, text in (
        ("collision", auto.format("", given)),
        ("inertial", auto.format("<density>50</density>", CUBE)),
    ):
        body = read_rigid_body(sdf_model(tmp_path, name, text))
        assert body.mass_kg == pytest.approx(1.2)  # 0.024 m3
        squares = np.array([0.16, 0.09, 0.04])
        expected = 1.2 / 12.0 * np.diag(squares.sum() - squares)
        np.testing.assert_allclose(body.inertia_kg_m2, expected, atol=1e-12)
    with_mass = auto.format("<mass>0.9</mass>", CUBE)  # the mass stays, the inertia is scaled
    body = read_rigid_body(sdf_model(tmp_path, "with_mass", with_mass))
    assert body.mass_kg == pytest.approx(0.9)
    np.testing.assert_allclose(body.inertia_kg_m2, expected * 0.9 / 1.2, atol=1e-12)
    two = CUBE + CUBE.replace("<geometry>", "<density>3000</density><geometry>")
    two = auto.format(
        "<mass>2</mass>", two.replace("<collision>", "<collision><pose>0 0 1 0 0 0</pose>", 1)
    )
    body = read_rigid_body(sdf_model(tmp_path, "two_shapes", two))  # 1 : 3, 1 m apart
    assert body.mass_kg == pytest.approx(2.0)
    assert body.box_middle_m[2] == pytest.approx(0.25)
    for text in ("0", "-1", "nan", "x", ""):
        wrong = auto.format(f"<mass>{text}</mass>", CUBE)
        with pytest.raises(musls.ConfigError, match=r"model.sdf"):
            read_rigid_body(sdf_model(tmp_path, f"wrong{text}", wrong))
    with pytest.raises(musls.ConfigError, match="its inertia follows from shapes, it has none"):
        read_rigid_body(sdf_model(tmp_path, "empty", auto.format("", "")))


def test_an_inertia_that_no_body_of_that_size_has_is_questioned(tmp_path):
    bare = f"<link name='body'><inertial><mass>1</mass></inertial>{CUBE}</link>"
    with pytest.warns(UserWarning, match=r"1 kg m2 is 14 times .* SDF takes 1 kg m2"):
        read_rigid_body(sdf_model(tmp_path, "bare", bare))
    read_rigid_body(sdf_model(tmp_path, "usual", sdf_link("body", 1.0)))  # no warning


def test_includes_that_lead_nowhere(tmp_path):
    sdf_model(tmp_path, "a", "<include><uri>model://b</uri></include>" + sdf_link("body", 1.0))
    sdf_model(tmp_path, "b", "<include><uri>model://a</uri></include>")
    with pytest.raises(musls.ConfigError, match=r"a/model\.sdf includes itself"):
        read_rigid_body(tmp_path / "a" / "model.sdf")
    with pytest.raises(musls.ConfigError, match=r"there is no \.\./gone/model.sdf"):
        read_rigid_body(sdf_model(tmp_path, "c", "<include><uri>model://gone</uri></include>"))
    broken = '<mujoco><worldbody><body><inertial pos="0 0 0" mass="1" diaginertia="1 1 9"/>'
    (tmp_path / "broken.xml").write_text(broken + "</body></worldbody></mujoco>")
    with pytest.raises(musls.ConfigError) as error:
        read_rigid_body(tmp_path / "broken.xml")
    assert "balanceinertia" not in str(error.value)


HUGE = '<mujoco><size nuser_body="2000000000"/><worldbody><body/></worldbody></mujoco>'
GRID = "<mujoco><worldbody><flexcomp count='50 50 50'/></worldbody></mujoco>"
NESTED = (
    "<mujoco><worldbody><replicate count='200'><replicate count='200'><body/></replicate>"
    "</replicate></worldbody></mujoco>"
)
GROUND = "<mujoco><asset><hfield nrow='90000' ncol='90000' size='1 1 1 1'/></asset></mujoco>"
COPIES = '<mujoco><worldbody><replicate count="2e9"><body/></replicate></worldbody></mujoco>'
PIPE = '<mujoco><asset><mesh file="pipe.stl"/></asset><worldbody/></mujoco>'


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("a.xml", HUGE, "<size nuser_body=2000000000>: must be at most 10000"),
        ("a.xml", COPIES, "<replicate count=2e9>: must be at most 10000"),
        ("a.xml", GRID, "<flexcomp count=50 50 50>: must be at most 10000, together"),
        ("a.xml", NESTED, "<replicate count=200>: must be at most 10000, together"),
        ("a.xml", GROUND, "<hfield> of 8.1e+09 cells (nrow, ncol): must be at most 1000000"),
        ("a.xml", PIPE, "pipe.stl is no file"),
        ("a.urdf", "<?xml version='1.0' encoding='no-such'?><robot/>", "cannot be read as XML"),
        ("a.sdf", "<?xml version='1.0' encoding='utf-32'?><sdf/>", "cannot be read as XML"),
        ("a.sdf", "<sdf><model><link><inertial><mass/></inertial></link></model></sdf>", "a.sdf"),
        ("a.sdf", "<sdf><model><link/><link/><frame/></model></sdf>", "a.sdf"),
        ("a.urdf", "<robot><link/></robot>", "a.urdf"),
    ],
)
def test_files_that_nobody_can_read_are_one_line(crate, capsys, file, text, words):
    os.mkfifo("pipe.stl")
    crate.with_name(file).write_text(text)
    assert main(["import", file, "--attach", "x"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
