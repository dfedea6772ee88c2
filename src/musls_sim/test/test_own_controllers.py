"""Controllers, trajectories and events that users write, from their files into the flight."""

import textwrap
from pathlib import Path

import numpy as np
import pytest
from flight_helpers import session_with_bag
from rosbags.highlevel import AnyReader

from musls_control.trajectories import TRAJECTORIES
from musls_description.config.errors import ConfigError
from musls_description.config.registry import UserCodeError, load_file
from musls_description.config.schema import to_yaml
from musls_sim.recording import MemoryRecorder
from musls_sim.recording.signals import Rate
from musls_sim.scenario.events import EVENTS
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session

SHIPPED = Path(__file__).parents[2] / "musls_bringup" / "musls_bringup" / "scenarios"
HOLD = (
    "system.cables.links=3", "estimation.kind=truth", "mission.settle_s=0.2",
    "mission.stages.0.duration_s=0.4",
)  # fmt: skip
HEAD = """\
    import numpy as np
    from musls_control.controllers import Controller, ControlLevel
    from musls_description.hanging.cone import drone_poses
"""


@pytest.fixture
def own(tmp_path):
    """Writes a controller's file; returns what makes a session that flies it, and the file."""

    def write(text, *overrides, name="hold", head=HEAD):
        file = tmp_path / "mine.py"
        file.write_text(textwrap.dedent(head) + textwrap.dedent(text))
        chosen = [f"controller={{kind: python, source: '{file}:Mine'}}"]
        return load_scenario(SHIPPED / f"{name}.yaml", [*HOLD, *chosen, *overrides])

    return write


def motion_after(session, seconds):
    with session:
        session.advance(round(seconds / session.plant.period_s))
    return session.state.motion.copy()


# ---------- Levels


@pytest.mark.parametrize("columns", [4, 12])
def test_set_points_of_the_formation_fly_as_the_formation_bit_for_bit(own, columns):
    mine = own(
        """
        class Mine(Controller):
            level = "drone_setpoints"

            def __init__(self, columns: int):
                self.columns = columns

            def step(self, time_s, reference, estimate):
                cone, n = self.setup.formation, self.setup.system.n_drones
                places, yaws = drone_poses(
                    reference.position_enu_m[None], np.array([reference.yaw_rad]),
                    cone.offsets_m(n), cone.azimuths_rad(n),
                )
                rows = np.full((n, self.columns), np.nan)
                rows[:, 0:3], rows[:, 3 if self.columns == 4 else 9] = places[0], yaws[0]
                if self.columns == 12:
                    rows[:, 10] = 0.0
                return rows
        """,
        f"controller.parameters.columns={columns}",
    )
    formation = load_scenario(SHIPPED / "hold.yaml", HOLD)
    flown = motion_after(Session(mine), 0.6)
    assert np.array_equal(flown, motion_after(Session(formation), 0.6))


def test_rotors_follow_commanded_speeds_with_their_lag(own):
    """First order: w(t) = c + (w0 - c) exp(-t/T), T of the way up or down."""
    mine = own(
        """
        class Mine(Controller):
            level = ControlLevel.ROTOR_SPEEDS

            def step(self, time_s, reference, estimate):
                return np.tile([600.0, 900.0, 700.0, 500.0], (self.setup.system.n_drones, 1))
        """
    )
    session = Session(mine)
    first, command = session.state.rotor_speed_rad_s.copy(), np.array([600.0, 900.0, 700.0, 500.0])
    seen = []
    with session:
        for _ in range(10):
            session.advance(1)
            seen.append(session.state.rotor_speed_rad_s.copy())
    time_s = 0.004 * np.arange(1, 11)[:, None, None]
    constant_s = np.where(command > first, 0.0125, 0.025)
    assert (command > first).any() and (command < first).any()
    expected = command + (first - command) * np.exp(-time_s / constant_s)
    assert np.array(seen) == pytest.approx(expected, rel=1e-12)
    assert session.control.mean_step_us > 0.0


def test_body_rates_are_followed(own):
    """Drones that carry their share turn as wanted, against the pull of their cables."""
    mine = own(
        """
        class Mine(Controller):
            level = "thrust_rates"

            def start(self, time_s, estimate):
                system = self.setup.system
                self.thrust_n = system.mass_kg / system.n_drones * self.setup.gravity_m_s2

            def step(self, time_s, reference, estimate):
                return np.tile([self.thrust_n, 0.2, -0.1, 0.3], (self.setup.system.n_drones, 1))
        """,
        "system=x500_trio_swivel",
    )
    flown = Session(mine)
    with flown:
        flown.advance(200)
    assert flown.state.omega_body_rad_s[1:] == pytest.approx(
        np.tile([0.2, -0.1, 0.3], (3, 1)), abs=0.03
    )


def test_ideal_thrust_and_moment_act_as_open_loop_does(own):
    """The same wrench by a class of one's own and by the shipped kind."""
    thrust, moments = [25.0, 26.0, 27.0], [[0.01, 0, 0], [0, 0.02, 0], [0, 0, 0.03]]
    mine = own(
        f"""
        class Mine(Controller):
            level = "ideal_thrust_moment"

            def step(self, time_s, reference, estimate):
                return np.column_stack([{thrust}, {moments}])
        """
    )
    shipped = f"controller={{kind: open_loop, thrust_n: {thrust}, moment_body_nm: {moments}}}"
    open_loop = load_scenario(SHIPPED / "hold.yaml", [*HOLD, shipped])
    flown = motion_after(Session(mine), 0.4)
    assert np.array_equal(flown, motion_after(Session(open_loop), 0.4))
    assert not np.array_equal(flown[1, 6:10], flown[2, 6:10])  # the moments did turn them


def test_rotors_carry_what_ideal_wrenches_carried(own):
    """When the autopilot takes over nobody drops: the rotors give the same thrust at once."""
    mine = own(
        """
        class Mine(Controller):
            level = "ideal_thrust_moment"

            def step(self, time_s, reference, estimate):
                system, g = self.setup.system, self.setup.gravity_m_s2
                drone, share = system.drones[0], system.load.mass_kg / len(system.drones)
                thrust = np.full(3, (drone.mass_kg + share) * g)
                return np.column_stack([thrust, np.zeros((len(thrust), 3))])
        """
    )
    with Session(mine) as session:
        session.advance(5)
        rotors = session.state.rotor_speed_rad_s
        assert not rotors.any()
        wrench = session.inputs.wrench_body[1:].copy()
        session.guidance.stage = "land"
        session.control.choose_law(session.tick)
        coefficient = [r.thrust_coefficient_n_s2 for r in mine.system.drones[0].rotors]
        assert (coefficient * rotors**2).sum(axis=1) == pytest.approx(wrench[:, 5], rel=1e-9)
        sinking = session.state.velocity_enu_m_s[:, 2].copy()
        session.advance(10)
        assert not session.inputs.wrench_body.any()
        # 40 ms of free fall would be 0.4 m/s.
        assert np.abs(session.state.velocity_enu_m_s[:, 2] - sinking).max() < 0.05


def test_what_a_controller_asks_of_the_drones_is_recorded(own):
    """Not the formation's poses; the load's set-point stays the mission's."""
    mine = own(
        """
        class Mine(Controller):
            level = "drone_setpoints"

            def step(self, time_s, reference, estimate):
                n = self.setup.system.n_drones
                cone = self.setup.formation
                position, yaw = drone_poses(
                    reference.position_enu_m[None], np.array([reference.yaw_rad]),
                    cone.offsets_m(n), cone.azimuths_rad(n),
                )
                return np.column_stack([position[0] + [0.0, 0.0, 0.01 + time_s / 100], yaw[0]])
        """
    )
    recorder = MemoryRecorder(mine.system, step_period_s=0.004)
    with Session(mine, observers=[recorder]) as session:
        session.advance(120)
        planned = session.components.plan
    recorded = recorder.rows[Rate.SETPOINT]
    rows, stamps = recorded.columns()["setpoint.position_enu_m"], recorded.stamps_ns()
    asked = np.diff(stamps) > 0  # at the start the formation's are announced first
    assert len(rows) >= 24
    assert rows[:, 0] == pytest.approx(np.tile(planned.load_pose[0, :3], (len(rows), 1)))
    above = rows[:-1][asked][:, 1:, 2] - planned.drone_position_enu_m[0, :, 2]
    times = stamps[:-1][asked] / 1e9
    assert above == pytest.approx(np.tile((0.01 + times / 100)[:, None], (1, above.shape[1])))


@pytest.mark.parametrize("columns", [3, 4])
def test_forces_hold_a_load(own, columns):
    """The forces of the equilibrium and springs to the formation: nothing leaves its place."""
    mine = own(
        """
        class Mine(Controller):
            level = ControlLevel.FORCES

            def __init__(self, columns: int):
                self.columns = columns

            def start(self, time_s, estimate):
                self.place = estimate.drones.position_enu_m.copy()
                w, z = estimate.drones.orientation_wxyz[:, [0, 3]].T
                self.yaw = 2.0 * np.arctan2(z, w)

            def step(self, time_s, reference, estimate):
                system, g = self.setup.system, self.setup.gravity_m_s2
                drones = estimate.drones
                cables = drones.position_enu_m - estimate.position_enu_m[0]
                pull = system.load.mass_kg * g / len(cables) * cables / cables[:, 2:]
                weight = np.array([[0.0, 0.0, d.mass_kg * g] for d in system.drones])
                off = self.place - drones.position_enu_m
                force = weight + pull + 8.0 * off - 6.0 * drones.velocity_enu_m_s
                return np.column_stack([force, self.yaw])[:, : self.columns]
        """,
        f"controller.parameters.columns={columns}",
        "mission.stages.0.duration_s=3",
    )
    session = Session(mine)
    start = session.state.position_enu_m.copy()
    with session:
        session.advance(750)
    assert np.linalg.norm(session.state.position_enu_m - start, axis=1).max() < 0.15
    assert np.abs(session.state.velocity_enu_m_s).max() < 0.1


def test_thrust_and_moment_are_what_the_rotors_then_give(own):
    """Sums over the rotors: thrust, rolling and pitching moments by the lever arms, yaw by drag."""
    wanted = [26.0, 0.05, -0.08, 0.02]
    mine = own(
        f"""
        class Mine(Controller):
            level = ControlLevel.THRUST_MOMENT

            def step(self, time_s, reference, estimate):
                return np.tile({wanted}, (self.setup.system.n_drones, 1))
        """
    )
    session = Session(mine)
    with session:
        session.advance(25)
    for given in commanded_wrenches(session):
        assert given == pytest.approx(wanted, rel=1e-9)


def commanded_wrenches(session):
    """Thrusts and moments that the commanded rotor speeds give, (n, 4)."""
    given = np.zeros((3, 4))
    for row, drone, speeds in zip(
        given, session.scenario.system.drones, session.command.omega_cmd_rad_s, strict=True
    ):
        for rotor, speed in zip(drone.rotors, speeds, strict=True):
            thrust = rotor.thrust_coefficient_n_s2 * speed**2
            x, y, _ = rotor.position_m
            sign = -1.0 if rotor.spin == "ccw" else 1.0
            row += [thrust, y * thrust, -x * thrust, sign * rotor.moment_ratio_m * thrust]
    return given


def test_incremental_control_takes_off_what_was_measured(own):
    """From the force before the drone turns there, and from the moment; what is added stays."""
    mine = own(
        """
        class Mine(Controller):
            level = ControlLevel.FORCES

            def step(self, time_s, reference, estimate):
                row = [0.2, 0.1, 26.0, 0.4, 0.01, 0.02, 0.003, 0.0, 0.0, -6.0]
                return np.tile(row, (self.setup.system.n_drones, 1))
        """,
        "autopilot.tracker=indi",
    )
    with Session(mine) as session:
        session.advance(5)
    arrays = session.control.arrays
    attitude, measured = arrays["attitude"], arrays["measured"]
    force, moment = measured["force"]["value"], measured["moment"]["value"]
    assert np.abs(force).min() > 0.0 and np.abs(moment[:, :2]).min() > 1e-5
    assert attitude["force"] == pytest.approx(np.array([0.2, 0.1, 26.0]) - force)
    left = attitude["moment"] + [0.01, 0.02, 0.003] - moment
    given = commanded_wrenches(session)
    assert given[:, 0] == pytest.approx(attitude["thrust"], rel=1e-9)
    assert given[:, 1:3] == pytest.approx(left[:, :2], rel=1e-9)  # not all of the yaw fits


@pytest.mark.parametrize("level", ["forces", "autopilot_forces"])
def test_columns_that_are_left_out_ask_for_nothing(own, level):
    """Also where they were given in the period before; the yaw stays as it was asked for."""
    mine = own(
        f"""
        class Mine(Controller):
            level = "{level}"

            def step(self, time_s, reference, estimate):
                columns = 7 if time_s == 0.0 else 3
                return np.tile([[0.0, 0.0, 26.0, 0.1, 0.2, 0.3, 0.4][:columns]], (3, 1))
        """
    )
    with Session(mine) as session:
        session.advance(1)
        given = session.control.arrays["asked"][0].copy()
        session.advance(1)
        left = session.control.arrays["asked"][0]
        assert np.isfinite(session.guidance.setpoint.yaw_enu_rad).all()
    none = np.nan
    assert np.array_equal(given[3:], [0.1, 0.2, 0.3, 0.4, none, none, none], equal_nan=True)
    assert np.array_equal(left[3:], [none, 0.0, 0.0, 0.0, none, none, none], equal_nan=True)


def test_from_the_ground_a_controller_takes_over_between_lift_and_lowering(tmp_path, own):
    mine = own(
        """
        LOG = []

        class Mine(Controller):
            level = ControlLevel.DRONE_SETPOINTS

            def start(self, time_s, estimate):
                LOG.append(("start", time_s))

            def step(self, time_s, reference, estimate):
                LOG.append(("step", time_s))
                n = self.setup.system.n_drones
                offsets = self.setup.formation.offsets_m(n)
                return np.column_stack([reference.position_enu_m + offsets, np.zeros(n)])
        """,
        "start=ground",
        "mission.stages=[{kind: hold, duration_s: 1, position_m: [0, 0, 0.5]}]",
        "mission.form_up_s=3",
    )
    session = Session(mine)
    stages = {}
    with session:
        while not session.finished:
            session.advance(1)
            stages.setdefault(session.stage, session.time_s)
            if session.stage == "slacken":
                break
    log = load_file(tmp_path / "mine.py").LOG
    times = [time_s for what, time_s in log if what == "step"]
    assert [what for what, _ in log].count("start") == 1 and log[0] == ("start", times[0])
    assert times[0] == pytest.approx(stages["settle" if "settle" in stages else "hold"], abs=0.005)
    assert times[-1] == pytest.approx(stages["lower"], abs=0.009)
    assert len(times) == round((times[-1] - times[0]) / 0.004) + 1


# ---------- Errors


@pytest.mark.parametrize("method", ["start", "step"])
def test_an_error_in_flight_names_file_and_line_and_keeps_the_bag(tmp_path, own, method):
    mine = own(
        f"""
        class Mine(Controller):
            level = "rotor_speeds"

            def start(self, time_s, estimate):
                if "{method}" == "start":
                    self.help()

            def step(self, time_s, reference, estimate):
                if time_s > 0.1:
                    self.help()
                return np.full((3, 4), 700.0)

            def help(self):
                gain = {{}}
                return gain["missing"]
        """
    )
    run = session_with_bag(mine, tmp_path / "bag")
    file = tmp_path / "mine.py"
    line = next(k for k, text in enumerate(file.read_text().splitlines(), 1) if '"missing"' in text)
    with pytest.raises(UserCodeError) as error:
        run.run()
    when = "0.000" if method == "start" else "0.104"
    assert str(error.value) == (
        f"{file}, line {line}: Mine.{method} failed at {when} s: KeyError: 'missing'"
    )
    with AnyReader([tmp_path / "bag"]) as reader:
        chosen = [c for c in reader.connections if c.topic == "/load/pose"]
        times = [t * 1e-9 for _, t, _ in reader.messages(chosen)]
    assert times == pytest.approx([0.0] if method == "start" else np.arange(0.0, 0.105, 0.02))


@pytest.mark.parametrize(
    ("returns", "words"),
    [
        ("np.zeros((3, 5))", "returned an array of shape (3, 5), must be (3, 4)"),
        ("None", "returned an array of shape (), must be (3, 4)"),
        ("[[1, 2], [3]]", "Mine.step failed at 0.000 s: ValueError"),
        ("np.full((3, 4), 700.0) * [1, 1, np.nan, 1]", "returned nan for drone_1 in column 2"),
    ],
)
def test_commands_that_cannot_be_flown(own, returns, words):
    mine = own(
        f"""
        class Mine(Controller):
            level = "rotor_speeds"

            def step(self, time_s, reference, estimate):
                return {returns}
        """
    )
    with pytest.raises(UserCodeError) as error:
        Session(mine).run()
    assert words in str(error.value) and "mine.py" in str(error.value)
    assert "\n" not in str(error.value)


STEP = "    def step(self, time_s, reference, estimate): ...\n"


@pytest.mark.parametrize(
    ("text", "override", "words"),
    [
        (f"class Other(Controller):\n{STEP}", "", ["mine.py has no class Mine", "Other"]),
        (f"class Mine:\n{STEP}", "", ["must inherit musls.Controller"]),
        ("class Mine(Controller):\n    level = 'forces'\n", "", ["has no method step"]),
        (f"class Mine(Controller):\n{STEP}", "", ["Mine.level = None", "rotor_speeds"]),
        (
            f"class Mine(Controller):\n    level = 'rotors'\n{STEP}",
            "",
            ["Mine.level = 'rotors'", "rotor_speeds"],
        ),
        (
            f"class Mine(Controller):\n    def __init__(self, gain: float): ...\n{STEP}",
            "controller.parameters={gian: 1}",
            ["mine.py: Mine.__init__ failed before the flight", "argument 'gian'"],
        ),
        (
            f"class Mine(Controller):\n    def __init__(self, gain: float): ...\n{STEP}",
            "",
            ["Mine.__init__ failed before the flight", "'gain'"],
        ),
        (
            f"class Mine(Controller):\n    def __init__(self): self.x = 1 / 0\n{STEP}",
            "",
            ["mine.py, line 5: Mine.__init__ failed before the flight: ZeroDivisionError"],
        ),
        (
            f"class Mine(Controller):\n    def prepare(self, setup): self.x = 1 / 0\n{STEP}",
            "",
            ["mine.py, line 5: Mine.prepare failed before the flight: ZeroDivisionError"],
        ),
        ("1 / 0\n", "", ["mine.py, line 4: ZeroDivisionError"]),
        ("def (\n", "", ["mine.py, line 4: SyntaxError"]),
    ],
)
def test_a_controller_that_cannot_be_made(own, text, override, words):
    mine = own(text, *([override] if override else []), head=textwrap.dedent(HEAD))
    with pytest.raises((ConfigError, UserCodeError)) as error:
        Session(mine)
    assert all(word in str(error.value) for word in words), error.value
    assert "\n" not in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    source = f"controller={{kind: python, source: '{tmp_path / 'none.py'}:Mine'}}"
    with pytest.raises(ConfigError, match=r"none\.py: no such Python file"):
        Session(load_scenario(SHIPPED / "hold.yaml", [*HOLD, source]))


# ---------- Extensions

EXTENSION = """\
from typing import Literal

import numpy as np

from musls_control.trajectories import TRAJECTORIES, Trajectory
from musls_control.trajectories.base import at_rest
from musls_description.config.schema import Positive, spec
from musls_sim.scenario.events import EVENTS, Event


@TRAJECTORIES.register("zigzag_of_test")
@spec
class Zigzag(Trajectory):
    kind: Literal["zigzag_of_test"] = "zigzag_of_test"
    width_m: Positive = 1.0
    duration_s: Positive = 0.4

    @property
    def period_s(self):
        return self.duration_s

    def pose(self, time_s):
        x = self.width_m * (time_s > self.duration_s / 2)
        return np.column_stack([x, 0 * x, 1 + 0 * x, 0 * x])

    def derivatives(self, time_s):
        return at_rest(self.pose(time_s))


@EVENTS.register("gust_of_test")
@spec
class Gust(Event):
    kind: Literal["gust_of_test"] = "gust_of_test"
    force_n: float
    duration_s: Positive = 0.1

    def begin(self, scene):
        scene.inputs.wrench_enu[0, 4] += self.force_n
        return f"gust of {self.force_n:g} N"

    def end(self, scene):
        scene.inputs.wrench_enu[0, 4] -= self.force_n
"""
MISSION = """\
system: x500_trio
start: air
extensions: [mine.py]
estimation: {kind: truth}
mission:
  settle_s: 0.2
  setpoint_rate_hz: 50
  stages:
    - {kind: zigzag_of_test, width_m: 0.5}
events:
  - {kind: gust_of_test, when: {stage: zigzag_of_test}, force_n: 3}
"""


@pytest.fixture
def registries(monkeypatch):
    """What a test registers is gone after it."""
    for registry in (TRAJECTORIES, EVENTS):
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))


@pytest.fixture
def study(tmp_path, request, registries):
    """A folder with the extension and its mission, under names that no other test takes."""

    def write(change=lambda text: text, folder="study"):
        kinds = f"of_{abs(hash(request.node.name))}"
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(EXTENSION.replace("of_test", kinds))
        mission = tmp_path / folder / "mission.yaml"
        mission.write_text(change(MISSION).replace("of_test", kinds))
        return mission, kinds

    return write


def test_an_own_trajectory_and_an_own_event_fly_and_fly_again(tmp_path, study):
    mission, _ = study()
    session = Session(load_scenario(mission))
    pushes = []
    with session:
        while not session.finished:
            session.advance(1)
            pushes.append(session.inputs.wrench_enu[0, 4])
    assert sum(pushes) * 0.004 == pytest.approx(3.0 * 0.1, rel=0.05)
    assert [event.what for event in session.events.happened] == ["gust of 3 N", "over"]
    asked = session.components.plan.load_pose[session.components.plan.stage == 1]
    assert set(asked[:, 0]) == {0.0, 0.5}
    (tmp_path / "scenario.yaml").write_text(to_yaml(session.scenario))
    again = load_scenario(tmp_path / "scenario.yaml")  # from elsewhere
    assert again == session.scenario
    assert np.array_equal(motion_after(Session(again), session.time_s), session.state.motion)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("width_m: 0.5", "width_m: -1", ["mission.yaml, line 9", "width_m = -1", "greater than 0"]),
        ("zigzag_of_test, w", "zigzg_of_test, w", ["line 9", "'zigzag_of_test'"]),
        ("force_n: 3", "force_n: strong", ["line 11", "events.0.force_n = 'strong'"]),
        ("gust_of_test, when", "gsut_of_test, when", ["line 11", "'gust_of_test'"]),
        (", force_n: 3", "", ["events.0.force_n", "missing"]),
        ("extensions: [mine.py]", "extensions: [yours.py]", ["yours.py: no such Python file"]),
    ],
)
def test_own_kinds_are_checked_as_shipped_ones_are(study, old, new, words):
    assert old in MISSION
    mission, kinds = study(lambda text: text.replace(old, new, 1))
    with pytest.raises(ConfigError) as error:
        load_scenario(mission)
    said = str(error.value).replace(kinds, "of_test")
    assert all(word in said for word in words), said


def test_an_extension_that_was_edited_is_read_again(study):
    mission, _ = study()
    before = load_scenario(mission).mission.stages[0]
    file = mission.with_name("mine.py")
    file.write_text(file.read_text().replace("self.width_m *", "2.0 * self.width_m *"))
    after = load_scenario(mission).mission.stages[0]
    late = np.array([0.4])
    assert (before.pose(late)[0, 0], after.pose(late)[0, 0]) == (0.5, 1.0)


def test_two_files_cannot_register_the_same_kind(study):
    """The second would change what scenarios of the first mean, without a word."""
    mission, _ = study()
    load_scenario(mission)
    copy, _ = study(folder="copy")
    with pytest.raises(ConfigError, match=r"copy/mine\.py, line \d+: .*exists already"):
        load_scenario(copy)
    load_scenario(mission)


def test_an_extension_that_takes_a_shipped_name_is_refused(tmp_path, registries):
    (tmp_path / "mine.py").write_text(EXTENSION.replace("zigzag_of_test", "circle"))
    (tmp_path / "mission.yaml").write_text(MISSION.replace("zigzag_of_test", "circle"))
    with pytest.raises(
        ConfigError, match=r"mine\.py, line 1\d: .*trajectory 'circle' exists already"
    ):
        load_scenario(tmp_path / "mission.yaml")


# ---------- Failing trajectories

_FAULTY = """\
    import numpy as np
    import musls

    @musls.trajectories.register("{name}")
    @musls.spec
    class Faulty(musls.Trajectory):
        kind: str = "{name}"
        duration_s: float = 1.0

        @property
        def period_s(self):
            return self.duration_s

        def pose(self, time_s):
            return {pose}

        def derivatives(self, time_s):
            return {derivatives}
"""


@pytest.mark.parametrize(
    ("name", "pose", "derivatives", "said"),
    [
        ("f1", "[][1]", "1", "line 15: Faulty.pose failed: IndexError: list index out of range"),
        ("f2", "np.zeros((1, 3))", "1", "line 14: Faulty.pose returned an array of shape (1, 3)"),
        ("f3", "'far'", "1", "line 14: Faulty.pose returned str, must be numbers of shape (1, 4)"),
        (
            "f4", "np.tile([0.0, 0.0, 1.5, 0.0], (len(time_s), 1))",
            "np.full((len(time_s), 5, 4), np.inf)",
            "line 17: Faulty.derivatives returned inf at 0.000 s",
        ),
    ],
)  # fmt: skip
def test_an_own_trajectory_that_fails_says_where(
    registries, tmp_path, name, pose, derivatives, said
):
    file = tmp_path / "faulty.py"
    text = textwrap.dedent(_FAULTY).format(name=name, pose=pose, derivatives=derivatives)
    file.write_text(text)
    overrides = [f"extensions=['{file}']", "system.cables.links=3", "start=air"]
    with pytest.raises(UserCodeError) as caught:
        scenario = load_scenario(
            SHIPPED / "hold.yaml", [*overrides, f"mission.stages=[{{kind: {name}}}]"]
        )
        with Session(scenario) as session:
            assert session.reference is None
    assert str(caught.value).startswith(f"{file}, {said}")


def test_an_own_trajectory_without_pose_is_refused(registries, tmp_path):
    file = tmp_path / "short.py"
    head = "import musls\n\n@musls.trajectories.register('short')\n"
    file.write_text(f"{head}class Short:\n    duration_s = 1.0\n")
    with pytest.raises(ConfigError, match="Short has no pose"):
        load_scenario(SHIPPED / "hold.yaml", [f"extensions=['{file}']"])
