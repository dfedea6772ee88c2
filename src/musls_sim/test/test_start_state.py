"""Starts in any state, open loop and events, against closed forms of mechanics."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from plant_helpers import G, momenta
from scipy.spatial.transform import Rotation

from musls_description.config.errors import ConfigError
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session

SHIPPED = Path(__file__).parents[2] / "musls_bringup" / "musls_bringup" / "scenarios"
DT = 0.004
LOAD_PLACE = np.array([0.02, -0.03, 10.0])


def body(position, velocity=(0, 0, 0), orientation=(1, 0, 0, 0), omega=(0, 0, 0)):
    """A body of `start`."""
    return {
        "position_enu_m": [float(x) for x in position],
        "velocity_enu_m_s": [float(x) for x in velocity],
        "orientation_wxyz": [float(x) for x in orientation],
        "omega_body_rad_s": [float(x) for x in omega],
    }


def free_system(load, drones, *overrides, system="x500_trio_swivel", thrust_n=0.0):
    """A system in the given state without control, without air drag and joint friction."""
    start = {"kind": "state", "load": load, "drones": drones}
    thrust = [thrust_n] * len(drones)
    return Session(
        load_scenario(
            SHIPPED / "hold.yaml",
            [
                f"system={system}",
                "system.cables.links=10",
                "system.cables.joint={damping_n_m_s_rad: 0}",
                "system.drones.rotors.drag_n_s2_m_rad=0",
                f"start={yaml.safe_dump(start, default_flow_style=True, width=10**6).strip()}",
                f"controller={{kind: open_loop, thrust_n: {thrust}}}",
                "estimation.kind=truth",
                "formation={radius_m: 0.8, height_m: 2.2}",
                *overrides,
            ],
        )
    )


def hanging_loosely(velocity=(0, 0, 0), slack=0.003):
    """Load and drones of the trio, cables hardly longer than needed, all with one velocity."""
    system = load_scenario(SHIPPED / "hold.yaml").system
    drones = []
    for i, cable in enumerate(system.cables):
        azimuth = 2.0 * np.pi * i / 3.0
        lean = np.array([0.4 * np.cos(azimuth), 0.4 * np.sin(azimuth), np.sqrt(1.0 - 0.4**2)])
        anchor = np.array(system.load.cable_attachments_m[i]) + LOAD_PLACE
        end = anchor + (1.0 - slack) * cable.length_m * lean
        drones.append(body(end - system.drones[i].cable_attachment_m, velocity))
    return body(LOAD_PLACE, velocity), drones


def momenta_after(periods, *overrides, **options):
    """Momenta after some periods, in steps in which their errors are small."""
    session = free_system(*hanging_loosely(), "physics.step_size_s=0.00025", *overrides, **options)
    with session:
        session.advance(periods)
    return np.array(momenta(session.plant)), session


# ---------- The start


def test_the_start_is_what_was_asked_for():
    load, drones = hanging_loosely()
    tilt = Rotation.from_rotvec([0.05, -0.08, 0.1]).as_quat(scalar_first=True)
    load |= {"orientation_wxyz": tilt.tolist(), "omega_body_rad_s": [0.1, 0.4, -0.2]}
    load |= {"velocity_enu_m_s": [0.3, 0.2, -0.1]}
    for i, drone in enumerate(drones):
        lower = np.array(drone["position_enu_m"]) - [0.0, 0.0, 0.03]
        turn = Rotation.from_euler("y", 0.1 * i).as_quat(scalar_first=True)
        drone |= {"position_enu_m": lower.tolist(), "orientation_wxyz": turn.tolist()}
        drone |= {"velocity_enu_m_s": [0.2 * i, 0.3, -0.1], "omega_body_rad_s": [0.1, -0.2, 0.3]}
    session = free_system(load, drones)
    state = session.state
    for row, wanted in enumerate([load, *drones]):
        for name, value in wanted.items():
            found = getattr(state, name)[row]
            limit = 0.011 if name == "orientation_wxyz" and row else 1e-9
            assert found == pytest.approx(value, abs=limit), (row, name)
    assert session.stage == "" and session.plant.time_s == 0.0


def state_of(start, *overrides, cables=None):
    """Session that starts in the state of another one."""
    rows = zip(start.position_enu_m, start.orientation_wxyz, strict=True)
    load, *drones = (body(place, orientation=turn) for place, turn in rows)
    given = {"kind": "state", "load": load, "drones": drones} | (cables or {})
    text = yaml.safe_dump(given, default_flow_style=True, width=10**6).strip()
    return Session(load_scenario(SHIPPED / "hold.yaml", [f"start={text}", *overrides]))


@pytest.mark.parametrize("model", ["rigid_links", "elastic", "massless", "rigid_rods"])
def test_rotors_of_a_given_pose_turn_as_in_its_hover(model):
    """A pose in which everything hangs: speeds of the equilibrium, and it stays there."""
    model, cables = f"cable_model={model}", {}
    hangs = Session(load_scenario(SHIPPED / "hold.yaml", [model, "start=air"])).state
    if "elastic" in model:
        cables = {"cables": {"shape": "straight"}}
    session = state_of(hangs, model, cables=cables)
    assert session.state.rotor_speed_rad_s == pytest.approx(hangs.rotor_speed_rad_s, rel=1e-5)
    before = session.state.position_enu_m.copy()
    with session:
        session.advance(125)
    assert session.state.position_enu_m == pytest.approx(before, abs=0.005)


@pytest.mark.parametrize("name", ["solo", "duo", "hold"])
@pytest.mark.parametrize("model", ["massless", "rigid_links", "elastic"])
def test_places_alone_begin_the_flight_of_a_start_in_the_air(name, model):
    """Attitudes that are not given are those of the formation, as rotor speeds are of hover."""
    overrides = [f"cable_model={model}", "system.cables.links=5"]
    with Session(load_scenario(SHIPPED / f"{name}.yaml", ["start=air", *overrides])) as air:
        places = air.state.position_enu_m.round(9).tolist()
        air.advance(250)
    load, *drones = [{"position_enu_m": place} for place in places]
    start = {"kind": "state", "load": load, "drones": drones}
    if model == "elastic":  # stretched by the load
        start["cables"] = {"shape": "straight"}
    overrides.append(f"start={json.dumps(start)}")
    with Session(load_scenario(SHIPPED / f"{name}.yaml", overrides)) as stated:
        stated.advance(250)
    assert stated.state.position_enu_m == pytest.approx(air.state.position_enu_m, abs=2e-4)
    assert stated.state.motion[:, :10] == pytest.approx(air.state.motion[:, :10], abs=5e-3)


def test_rotors_turn_as_given_or_rest_on_the_ground():
    ground = Session(load_scenario(SHIPPED / "hold.yaml", ["start=ground"])).state
    assert (state_of(ground).state.rotor_speed_rad_s == 0.0).all()
    given = ["start.drones.1.rotor_speed_rad_s=[500, 600, 700, 800]"]
    assert state_of(ground, *given).state.rotor_speed_rad_s[1].tolist() == [500, 600, 700, 800]
    with pytest.raises(ConfigError, match=r"start\.drones\.1\.rotor_speed_rad_s.*4 speeds"):
        state_of(ground, given[0].replace(", 800", ""))
    with pytest.raises(ConfigError, match="a load has no rotors"):
        state_of(ground, "start.load.rotor_speed_rad_s=[1]")


@pytest.mark.parametrize("model", ["rigid_links", "elastic", "massless"])
def test_a_load_that_is_swung_out_hangs_on_a_taut_cable(model):
    """Below one drone of mass M, which holds its height alone: T = m g cos(a) / (1 + m/M sin2(a)).

    The load goes back down its arc.
    """
    options = [f"cable_model={model}", "start={kind: air, swing_deg: 30, heading_deg: 60}"]
    session = Session(load_scenario(SHIPPED / "solo.yaml", options))
    system, state = session.scenario.system, session.state
    rest = session.scenario.hanging.rest
    assert state.position_enu_m[1] == pytest.approx(rest.bodies[0][1], abs=0.01)
    low, *_, high = session.plant.cable_nodes_enu_m(0)
    out = np.radians([30.0, 60.0])
    direction = [np.cos(out[1]) * np.sin(out[0]), np.sin(out[1]) * np.sin(out[0]), -np.cos(out[0])]
    assert (low - high) / np.linalg.norm(low - high) == pytest.approx(direction, abs=0.01)
    assert (state.rotor_speed_rad_s > 300.0).all()
    share = system.load.mass_kg / system.drones[0].mass_kg
    wanted = system.load.mass_kg * G * np.cos(out[0]) / (1.0 + share * np.sin(out[0]) ** 2)
    with session:
        session.advance(10)
        assert state.tension_n[0, 0] == pytest.approx(wanted, rel=0.03)
        assert state.velocity_enu_m_s[0] @ direction == pytest.approx(0.0, abs=0.05)
        down = -np.sin(out[0]) * G * session.time_s
        assert np.linalg.norm(state.velocity_enu_m_s[0]) == pytest.approx(-down, rel=0.05)


def test_cable_ends_meet_their_bodies():
    session = free_system(*hanging_loosely())
    for i, cable in enumerate(session.scenario.system.cables):
        nodes = session.plant.cable_nodes_enu_m(i)
        assert np.linalg.norm(np.diff(nodes, axis=0), axis=1) == pytest.approx(cable.length_m / 10)
        hook = session.scenario.system.drones[i].cable_attachment_m  # the drones stand upright
        assert nodes[-1] == pytest.approx(session.state.position_enu_m[1 + i] + hook, abs=0.001)


@pytest.mark.parametrize(
    ("move", "words"),
    [
        ({"position_enu_m": [3.0, 0.0, 12.1]}, "cable_1"),
        ({"position_enu_m": [1.0, 0.0, 12.4]}, "cable_1"),
    ],
)
def test_a_cable_that_is_too_short_is_named(move, words):
    load, drones = hanging_loosely()
    drones[0] |= move
    with pytest.raises(ConfigError, match=words):
        free_system(load, drones)


def test_a_taut_cable_does_not_let_its_drone_fly_away():
    load, (one, *others) = hanging_loosely()
    system = load_scenario(SHIPPED / "hold.yaml").system
    length = system.cables[0].length_m
    anchor = np.array(load["position_enu_m"]) + system.load.cable_attachments_m[0]
    hook = system.drones[0].cable_attachment_m
    one["position_enu_m"] = (anchor - hook + [0.0, 0.0, length]).tolist()
    free_system(load, [one, *others]).close()  # at rest it is allowed
    one["velocity_enu_m_s"] = [0.7, 0.0, 0.0]
    free_system(load, [one, *others]).close()  # across the cable, too
    one["velocity_enu_m_s"] = [0.0, 0.0, 0.7]
    with pytest.raises(ConfigError, match=r"start\.drones\.0: cable_1 .*off by 0\.699 .*taut"):
        free_system(load, [one, *others])


@pytest.mark.parametrize(
    ("start", "words"),
    [
        ("{kind: state}", "needs load and drones"),
        ("{kind: air, load: {position_enu_m: [0, 0, 5]}}", "belong to kind: state"),
        ("{kind: ground, swing_deg: 20}", "swing_deg and heading_deg belong to kind: air"),
        (
            "{kind: state, load: {position_enu_m: [0, 0, 5]},"
            " drones: [{position_enu_m: [0, 0, 7]}]}",
            "start.drones has 1 entries for 3 drones",
        ),
        (
            "{kind: state, load: {position_enu_m: [0, 0, 5], orientation_wxyz: [1, 1, 0, 0]},"
            " drones: []}",
            "unit quaternion",
        ),
    ],
)
def test_a_start_that_is_not_whole_is_refused(start, words):
    with pytest.raises(ConfigError, match=words):
        Session(load_scenario(SHIPPED / "hold.yaml", [f"start={start}"]))


# ---------- Mechanics


def test_without_thrust_everything_falls_freely():
    """All bodies on one parabola: p0 + v0 t - g t^2 / 2."""
    velocity = np.array([0.5, -0.3, 2.0])
    session = free_system(*hanging_loosely(velocity))
    start = session.state.position_enu_m.copy()
    with session:
        for _ in range(200):
            session.advance(1)
            t = session.time_s
            fallen = velocity * t - [0.0, 0.0, G * t * t / 2.0]
            assert np.abs(session.state.position_enu_m - start - fallen).max() < 1e-6
    assert session.state.velocity_enu_m_s == pytest.approx(
        np.tile(velocity - [0, 0, G * 0.8], (4, 1)), abs=1e-6
    )
    assert np.abs(session.state.tension_n).max() < 1e-3


def test_open_loop_thrust_gives_the_whole_its_acceleration():
    """Centre of mass: (sum of thrusts - weight) / mass, whatever the cables do."""
    (linear, _), session = momenta_after(5, thrust_n=15.0)
    mass = session.plant.records.bodies["mass"].sum()
    # Each drone is pulled round by its cable, so its thrust leans a little by then.
    assert linear[2] / 0.02 == pytest.approx(45.0 - mass * G, rel=2e-3)


def spinning_duo(rate):
    """Two drones on straight level cables turn with their bar about the vertical, as one body."""
    system = load_scenario(SHIPPED / "hold.yaml", ["system=x500_duo"]).system
    length, drone = system.cables[0].length_m, system.drones[0]
    hook = drone.cable_attachment_m[0]  # in front of the drone's centre
    (x, _, height), _ = system.load.cable_attachments_m
    place = x + length + hook
    rows = []
    for side, facing in ((1.0, (0, 0, 0, 1)), (-1.0, (1, 0, 0, 0))):  # the hook towards the load
        velocity = [0.0, side * rate * place, 0.0]
        rows.append(body([side * place, 0.0, 10.0 + height], velocity, facing, [0, 0, rate]))
    return body([0.0, 0.0, 10.0], omega=[0, 0, rate]), rows, place, drone.mass_kg


def test_a_turning_system_goes_on_turning_with_the_tension_of_its_circle():
    """Drone's end: m w^2 r; the turn w t; the centre of mass falls."""
    rate = 2.0
    load, drones, place, mass = spinning_duo(rate)
    session = free_system(load, drones, system="x500_duo")
    with session:
        session.advance(5)
        assert session.state.tension_n[:, 1] == pytest.approx(mass * rate**2 * place, rel=0.01)
        _, before = momenta(session.plant)
        session.advance(145)
        _, after = momenta(session.plant)
    angle = rate * session.time_s
    along = session.state.position_enu_m[1, :2] - session.state.position_enu_m[2, :2]
    assert np.arctan2(along[1], along[0]) == pytest.approx(angle, abs=0.02)
    assert np.linalg.norm(along) == pytest.approx(2.0 * place, rel=1e-3)
    assert after == pytest.approx(before, rel=1e-3, abs=1e-3)
    falls = -G * session.time_s
    assert session.state.velocity_enu_m_s[0, 2] == pytest.approx(falls, rel=1e-3)


# ---------- Events


@pytest.mark.parametrize("name", ["load", "drone_2"])
def test_a_poke_gives_its_momentum(name):
    """A free system: force times time, and nothing more."""
    force = np.array([3.0, -2.0, 1.0])
    event = (
        f"events=[{{kind: poke, when: {{time_s: 0.04}}, body: {name},"
        f" force_enu_n: {force.tolist()}, duration_s: 0.1}}]"
    )
    (linear, _), session = momenta_after(75, event)
    mass = session.plant.records.bodies["mass"].sum()
    assert linear == pytest.approx(force * 0.1 - [0.0, 0.0, mass * G * 0.3], abs=1e-4)
    assert [event.time_s for event in session.events.happened] == pytest.approx([0.04, 0.14])


def test_a_twist_gives_its_angular_momentum_only():
    moment = np.array([0.02, -0.03, 0.05])
    event = (
        "events=[{kind: poke, when: {time_s: 0.0}, body: load,"
        f" moment_enu_n_m: {moment.tolist()}, duration_s: 0.1}}]"
    )
    (linear, angular), session = momenta_after(25, event)
    mass = session.plant.records.bodies["mass"].sum()
    assert linear == pytest.approx([0.0, 0.0, -mass * G * 0.1], abs=1e-5)
    assert angular == pytest.approx(moment * 0.1, abs=1e-5)


def constant_rotors(tmp_path, *overrides):
    """A hanging trio whose rotors keep the speeds that hold it."""
    (tmp_path / "mine.py").write_text(
        "from musls_control.controllers import Controller\n"
        "class Mine(Controller):\n"
        "    level = 'rotor_speeds'\n"
        "    def __init__(self, speeds: list[list[float]]): self.speeds = speeds\n"
        "    def step(self, time_s, reference, estimate): return self.speeds\n"
    )
    base = ["system.cables.links=3", "estimation.kind=truth"]
    speeds = Session(load_scenario(SHIPPED / "hold.yaml", base)).state.rotor_speed_rad_s.tolist()
    source = f"controller={{kind: python, source: '{tmp_path}/mine.py:Mine'}}"
    parameters = f"controller.parameters.speeds={speeds}"
    return Session(load_scenario(SHIPPED / "hold.yaml", [*base, source, parameters, *overrides]))


@pytest.mark.parametrize("left", [0.0, 0.5])
def test_rotors_that_fail_take_their_share_of_the_thrust_with_them(tmp_path, left):
    """All rotors of all drones for 0.1 s: the whole falls with (1 - left) g meanwhile."""
    failures = ", ".join(
        f"{{kind: rotor_failure, when: {{time_s: 0.1}}, drone: {i}, efficiency: {left},"
        " duration_s: 0.1}"
        for i in (1, 2, 3)
    )
    session = constant_rotors(tmp_path, f"events=[{failures}]")
    mass = session.plant.records.bodies["mass"].sum()
    speeds = {}
    with session:
        for tick in (25, 50, 75):
            session.advance(tick - session.tick)
            speeds[tick] = momenta(session.plant)[0][2] / mass
    fell = -(1.0 - left) * G * 0.1
    assert speeds[25] == pytest.approx(0.0, abs=0.002)
    assert speeds[50] - speeds[25] == pytest.approx(fell, rel=0.02)
    assert speeds[75] - speeds[50] == pytest.approx(0.0, abs=0.05)  # they work again
    whats = [event.what for event in session.events.happened]
    said = "all rotors stopped" if left == 0.0 else "all rotors at 50 %"
    assert whats[:3] == [f"drone_{i}: {said}" for i in (1, 2, 3)] and whats[3:] == ["over"] * 3


def test_one_failed_rotor_rolls_its_drone_away_from_the_others(tmp_path):
    """Moment about x and y of what is missing: -(r x T) of the rotor, over the inertia."""
    event = "events=[{kind: rotor_failure, when: {time_s: 0.0}, drone: 2, rotor: 1}]"
    session = constant_rotors(tmp_path, event)
    drone = session.scenario.system.drones[1]
    rotor, speed = drone.rotors[0], session.state.rotor_speed_rad_s[1, 0]
    thrust = rotor.thrust_coefficient_n_s2 * speed**2
    x, y, _ = rotor.position_m
    inertia = np.diag(drone.inertia_kg_m2)
    expected = -np.array([y * thrust, -x * thrust]) / inertia[:2] * DT
    with session:
        session.advance(1)  # later the tilt against the cable counts
    roll, pitch = session.state.omega_body_rad_s[2, :2]
    assert roll == pytest.approx(expected[0], rel=0.01)
    assert pitch == pytest.approx(expected[1], rel=0.15)  # the cable hangs in front of the centre
    assert np.abs(session.state.omega_body_rad_s[[1, 3]]).max() < 0.02
    with pytest.raises(ConfigError, match="rotor 5, but drone 2 has 4"):
        constant_rotors(tmp_path, event.replace("rotor: 1", "rotor: 5"))
