"""Rigid-link cables on a Gazebo server, stepped in lockstep with our own session.

Gazebo brings joints, rigid bodies and contacts (its DART plugin); rotors, drag, wind, pushes and
the soft ground under the cables are the functions of the other plants, put on its links as forces.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Condition
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from musls_description.compiled import compiled
from musls_description.errors import ConfigError
from musls_description.models import world_sdf
from musls_description.models.sdf import PIVOT, Link, build_mechanism, drone_name
from musls_description.spawn import Configuration
from musls_description.system import SlungLoadSystem
from musls_description.tree import build_tree
from musls_sim.plants.changes import RotorEfficiency, scale_rotors
from musls_sim.plants.interface import (
    Change,
    Plant,
    PlantInputs,
    PlantState,
    Reaction,
    SimulationDiverged,
)
from musls_sim.plants.rigid_links.rows import (
    OMEGA,
    POSITION,
    VELOCITY,
    add_body_drag,
    add_inputs,
    add_rotors,
    add_soft_ground,
    collect_state,
    fastest_body,
    rotor_table,
    spin_rotors,
)
from musls_sim.scenario.physics import CONTROL_PERIOD_S

# ---------- Forces on the links of a Gazebo server and in its cables, in compiled functions


@compiled()
def outside_forces(moving, command, constants, wind, inputs, step_s):
    """Everything that acts on the links from outside but Gazebo's contacts."""
    motion, wrench, speed = moving
    rotors, drag, length, selected = constants
    body, enu = inputs
    spin_rotors(speed, command, rotors, step_s)
    wrench[:] = 0.0
    for k in range(motion.shape[0]):
        if length[k] > 0.0:
            add_soft_ground(motion[k], 0.0, length[k], wrench[k])
    for i in range(selected.shape[0]):
        k = selected[i]
        if i > 0:
            add_rotors(motion[k], speed[i - 1], rotors[i - 1], wind, wrench[k])
        add_body_drag(motion[k], drag[i], wind, wrench[k])
        add_inputs(motion[k], body[i], enu[i], wrench[k])


@compiled()
def _com_velocity(m, com, out):
    """Velocity of a point fixed in a body, world."""
    x = m[0] * com[1] + m[1] * com[2] + m[2] * com[3]
    y = m[3] * com[1] + m[4] * com[2] + m[5] * com[3]
    z = m[6] * com[1] + m[7] * com[2] + m[8] * com[3]
    out[0] = m[VELOCITY] + m[OMEGA + 1] * z - m[OMEGA + 2] * y
    out[1] = m[VELOCITY + 1] + m[OMEGA + 2] * x - m[OMEGA] * z
    out[2] = m[VELOCITY + 2] + m[OMEGA] * y - m[OMEGA + 1] * x


@compiled()
def cable_forces(moving, constants, reach, step_s, gravity, force, peak):
    """Forces at both ends of all cables, the mean over a step, by Newton's law."""
    before, after, wrench = moving
    mass, first, drone = constants
    total, old, new = np.empty(3), np.empty(3), np.empty(3)
    for i in range(first.shape[0]):
        total[:] = 0.0
        force[i] = 0.0
        if after[drone[i], POSITION + 2] < reach[i]:
            continue
        for body in range(drone[i], first[i] - 1, -1):
            _com_velocity(before[body], mass[body], old)
            _com_velocity(after[body], mass[body], new)
            for k in range(3):
                total[k] += mass[body, 0] * (new[k] - old[k]) / step_s - wrench[body, k]
            total[2] += mass[body, 0] * gravity
            if body == drone[i] or body == first[i]:
                end = 1 if body == drone[i] else 0
                m = after[drone[i] - 1 if end else body]
                for k in range(3):
                    force[i, end, k] = -(
                        m[k] * total[0] + m[3 + k] * total[1] + m[6 + k] * total[2]
                    )
                peak[i] = max(peak[i], force[i, end, 0])


# ---------- A Gazebo Harmonic server in this process, by Gazebo's own Python bindings

LinkName = tuple[str, str]
"""Model and link."""


# The server runs the systems of the world file (for us: the physics alone). Links get their
# forces before each step and are read after it, in callbacks of the server, so that nothing is
# lost to transport or threads.


def bindings() -> tuple[Any, Any]:
    """Gazebo's modules `gz.sim8` and `gz.math7`.

    Raises:
        ConfigError: They are not installed for this Python.
    """
    try:
        return importlib.import_module("gz.sim8"), importlib.import_module("gz.math7")
    except ImportError as error:
        raise ConfigError(
            "physics.engine = gazebo: Gazebo Harmonic's Python bindings (gz.sim8, gz.math7; Debian "
            "and Ubuntu: python3-gz-sim8) are not on the path of "
            f"Python {sys.version_info.major}.{sys.version_info.minor} ({error})"
        ) from None


class GazeboServer:
    """Steps a world; what belongs to links is in the order of the links given.

    Attributes:
        motion: Motion of the links' origins in the columns of `plants.rigid_body`, (n_links, 18).
        every: Steps for which forces hold and after which the links are read, which takes a third
            of a step's time.
    """

    every = 1

    def __init__(
        self,
        world_sdf: str,
        links: Sequence[LinkName],
        forces: Callable[[], Array],
        watch: Callable[[], None],
    ) -> None:
        """Load a world.

        `forces` is called before each step and gives force and moment about its origin of each
        link, world, (n_links, 6); `watch` is called after each step, when `motion` is up to date.

        Raises:
            ConfigError: There are no bindings, or the server does not have these links.
        """
        # No other machine is to hear of this server, nor another server on this one.
        os.environ.setdefault("GZ_IP", "127.0.0.1")
        os.environ.setdefault("GZ_PARTITION", f"musls_{os.getpid()}")
        self._sim, self._math = bindings()
        self._names = list(links)
        self._links: list[Any] = []
        self._forces, self._watch = forces, watch
        self._held: list[tuple[Any, list[float]]] = []
        self._steps = 0
        self._failure: BaseException | None = None
        self.motion = np.zeros((len(links), 18))
        with tempfile.TemporaryDirectory(prefix="musls_gazebo_") as folder:
            path = Path(folder) / "world.sdf"
            path.write_text(world_sdf, encoding="utf-8")
            with _quiet_stdout():
                self._fixture = self._sim.TestFixture(str(path))
                self._fixture.on_pre_update(self._before)
                self._fixture.on_post_update(self._after)
                self._fixture.finalize()
                self._server = self._fixture.server()

    def run(self, steps: int) -> None:
        """Make steps of the world's step size.

        Raises:
            ConfigError: The server did not load the world, or not with these links.
        """
        with contextlib.nullcontext() if self._links else _quiet_stdout():
            self._server.run(True, steps, False)
        self._raise_failure()
        if not self._links:
            raise ConfigError("physics.engine = gazebo: the server did not load the world")

    def _raise_failure(self) -> None:
        """An error in a callback must not pass through Gazebo's C++."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _before(self, info: Any, ecm: Any) -> None:
        try:
            if not self._links:
                self._find(ecm)
            if self._steps % self.every == 0:
                rows = self._forces().tolist()
                self._held = [pair for pair in zip(self._links, rows, strict=True) if any(pair[1])]
            vector = self._math.Vector3d
            for link, wrench in self._held:
                link.add_world_wrench(ecm, vector(*wrench[:3]), vector(*wrench[3:]))
        except BaseException as error:
            self._failure = self._failure or error

    def _after(self, info: Any, ecm: Any) -> None:
        try:
            self._steps += 1
            if self._steps % self.every == 0:
                self._read(ecm)
                self._watch()
        except BaseException as error:
            self._failure = self._failure or error

    def _find(self, ecm: Any) -> None:
        sim = self._sim
        world = sim.World(sim.world_entity(ecm))
        for model_name, name in self._names:
            model = sim.Model(world.model_by_name(ecm, model_name))
            link = sim.Link(model.link_by_name(ecm, name))
            if not link.valid(ecm):
                raise ConfigError(f"Gazebo: the world has no link {model_name}::{name}")
            link.enable_velocity_checks(ecm, True)
            self._links.append(link)

    def _read(self, ecm: Any) -> None:
        numbers = np.empty((len(self._links), 13))
        for row, link in zip(numbers, self._links, strict=True):
            pose = link.world_pose(ecm)
            place, turn = pose.pos(), pose.rot()
            row[:7] = place.x(), place.y(), place.z(), turn.w(), turn.x(), turn.y(), turn.z()
            velocity, omega = link.world_linear_velocity(ecm), link.world_angular_velocity(ecm)
            if velocity is None or omega is None:  # before the first step
                row[7:] = 0.0
            else:
                row[7:10] = velocity.x(), velocity.y(), velocity.z()
                row[10:] = omega.x(), omega.y(), omega.z()
        turns = Rotation.from_quat(numbers[:, 3:7], scalar_first=True)
        self.motion[:, :9] = turns.as_matrix().reshape(-1, 9)
        self.motion[:, 9:12] = numbers[:, :3]
        self.motion[:, 12:15] = numbers[:, 10:]
        self.motion[:, 15:18] = numbers[:, 7:10]


@contextlib.contextmanager
def _quiet_stdout() -> Iterator[None]:
    """Send what C++ prints on standard output (DART, of equal names) nowhere."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


Array = NDArray[np.float64]

LOST_SPEED_M_S = 1e3
"""A link this fast was lost: Gazebo puts a model that is not finite back, and goes on."""

DRONE_TOUCHES_M = 0.02
"""Clearance below which a drone may stand on the ground."""


class GazeboPlant(Plant):
    """Rigid-link chains in Gazebo, see `interface.Plant`.

    The step is fixed: nothing refines it where a cable is jerked. Tensions follow from Newton's law
    for all that is beyond a cable's end, which needs the drone in the air: while it touches the
    ground the tensions of its cable are given as 0. The energy that the integration makes is not
    known here.
    """

    cable_model = "rigid_links"
    changes: tuple[type[Change], ...] = (RotorEfficiency,)
    spurious_energy_j = 0.0
    system: SlungLoadSystem

    def __init__(
        self,
        system: SlungLoadSystem,
        start: Configuration,
        *,
        physics_step_s: float,
        gravity_m_s2: float = 9.80665,
        rotor_speed_rad_s: Array | None = None,
    ) -> None:
        """Load the system into a server of its own, at rest.

        The time step divides the control period. Rotor speeds, (n_drones, n_rotors), are 0 by
        default.

        Raises:
            ConfigError: Gazebo's Python bindings are missing, or a system that SDF cannot say.
        """
        self.system = system
        self.period_s = CONTROL_PERIOD_S
        self.substeps = round(self.period_s / physics_step_s)
        self.physics_step_s = self.period_s / self.substeps
        self._hold_s = self.physics_step_s  # time for which forces hold
        self._gravity_m_s2 = gravity_m_s2
        tree = build_tree(system)
        self._first, self._drone = tree.first_link, tree.drone
        self._selected = np.array([0, *tree.drone])
        links = [link for link in build_mechanism(system, start) if link.name != PIVOT]
        self._mass = np.array([[body.mass_kg, *body.com_m] for body in tree.bodies])
        self._length = np.zeros(len(links))
        for i, cable in enumerate(system.cables):
            self._length[tree.first_link[i] : tree.drone[i]] = cable.link_length_m
        self._rotors = rotor_table(system)
        drones = [drone.drag_n_s_m for drone in system.drones]
        self._drag = np.array([system.load.drag_n_s_m, *drones])
        self._reach = np.array(
            [float(np.linalg.norm(np.abs(d.collision.center_m) + np.array(d.collision.size_m) / 2))
             for d in system.drones]
        )  # fmt: skip
        text = self._world(start)
        names = [(link.model, link.name) for link in links]
        self._server = GazeboServer(text, names, self._forces, self._after_step)
        self.state = PlantState.zeros(system)
        if rotor_speed_rad_s is not None:
            self.state.rotor_speed_rad_s[:] = rotor_speed_rad_s
        self.reaction = Reaction.zeros(system)
        self._inputs = PlantInputs.zeros(system)
        self._wrench = np.zeros((len(links), 6))
        self._motion = _placed(build_mechanism(system, start))
        self._before = self._motion.copy()
        self._periods = 0
        collect_state(self._motion, self._selected, 0.0, self.state.motion)

    def _world(self, start: Configuration) -> str:
        """Text of the world: links and joints without motors, sensors and other systems."""
        return world_sdf(
            self.system, start, drones="rigid", step_s=self.physics_step_s,
            gravity_m_s2=self._gravity_m_s2, physics_only=True,
        )  # fmt: skip

    @property
    def time_s(self) -> float:
        """Simulated time, exact multiple of the period."""
        return self._periods * self.period_s

    def step(self, inputs: PlantInputs) -> None:
        """Advance one control period, see `interface.Plant.step`; no prescribed motion."""
        if inputs.motion is not None:
            raise ConfigError(
                "physics.engine = gazebo: drones cannot be moved along a recording in Gazebo; "
                "choose physics.engine: embedded"
            )
        self._inputs = inputs
        self.state.tension_peak_n[:] = 0.0
        self._server.run(self.substeps)
        self._periods += 1
        body, speed = fastest_body(self._motion)
        if not speed < LOST_SPEED_M_S:
            raise SimulationDiverged(
                f"Gazebo's state is not physical at {self.time_s:.3f} s: body {body} moves at "
                f"{speed:.3g} m/s; take a smaller physics.step_size_s"
            )
        collect_state(self._motion, self._selected, self.period_s, self.state.motion)

    def _forces(self) -> Array:
        """Forces on all links for the coming step."""
        inputs, speed = self._inputs, self.state.rotor_speed_rad_s
        outside_forces(
            (self._motion, self._wrench, speed), inputs.rotor_command_rad_s,
            (self._rotors, self._drag, self._length, self._selected), inputs.wind_enu_m_s,
            (inputs.wrench_body, inputs.wrench_enu), self._hold_s,
        )  # fmt: skip
        self._before[:] = self._motion
        return self._wrench

    def _after_step(self) -> None:
        self._motion[:] = self._server.motion
        cable_forces(
            (self._before, self._motion, self._wrench), (self._mass, self._first, self._drone),
            self._reach + DRONE_TOUCHES_M, self._hold_s, self._gravity_m_s2,
            self.state.cable_force_n, self.state.tension_peak_n,
        )  # fmt: skip

    def apply(self, change: Change) -> None:
        """Change the system between two periods, see `interface.Plant.apply`."""
        if isinstance(change, RotorEfficiency):
            scale_rotors(self.system, self._rotors, change)
        else:
            super().apply(change)

    def cable_nodes_enu_m(self, index: int) -> Array:
        """Joints of cable `index` (from 0) from the load to the drone, (links + 1, 3)."""
        first, drone = self._first[index], self._drone[index]
        m = self._motion[drone]
        hook = m[:9].reshape(3, 3) @ np.array(self.system.drones[index].cable_attachment_m)
        return np.vstack([self._motion[first:drone, 9:12], m[9:12] + hook])

    def cable_end_rotations(self, index: int) -> Array:
        """See `interface.Plant`."""
        ends = [self._first[index], self._drone[index] - 1]
        return self._motion[ends, :9].reshape(2, 3, 3)


def _placed(links: list[Link]) -> Array:
    """Motion of all links but the pivots at rest where the world file puts them."""
    poses: list[tuple[Array, Array]] = []
    rows = []
    for link in links:
        place, turn = poses[link.parent] if link.parent >= 0 else (np.zeros(3), np.eye(3))
        poses.append((place + turn @ link.position_m, turn @ link.rotation))
        if link.name != PIVOT:
            rows.append([*poses[-1][1].ravel(), *poses[-1][0], *np.zeros(6)])
    return np.array(rows)


# ---------- Motor commands of PX4's bridges, from Gazebo's transport

TOPIC = "/{}/command/motor_speed"
MESSAGE = "gz.msgs.Actuators"

_VARINT, _DOUBLE, _BYTES, _FLOAT = 0, 1, 2, 5
_VELOCITY = 3
"""Number of the field `velocity` of gz.msgs.Actuators."""


def velocities(message: bytes) -> list[float]:
    """Field `velocity` of a gz.msgs.Actuators [rad/s], read without protobuf's Python package.

    Raises:
        ValueError: It is no such message.
    """
    found: list[float] = []
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        size = {_DOUBLE: 8, _FLOAT: 4}.get(kind, 0)
        if kind == _BYTES:
            size, at = _varint(message, at)
        elif kind == _VARINT:
            _, at = _varint(message, at)
        elif not size:
            raise ValueError(f"no protobuf message: wire type {kind}")
        if at + size > len(message):
            raise ValueError("no protobuf message: it ends within a field")
        if number == _VELOCITY and kind in (_BYTES, _DOUBLE):  # packed, or one by one
            found += struct.unpack(f"<{size // 8}d", message[at : at + size // 8 * 8])
        at += size
    return found


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number of variable length and where the next thing begins."""
    value = shift = 0
    while at < len(message):
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    raise ValueError("no protobuf message: it ends within a number")


class MotorListener:
    """Hears the motor commands of all drones and waits for them.

    Attributes:
        speed_rad_s: Latest commands, (n_drones, n_rotors).
        heard: Whether any command has come, (n_drones,) bool.
    """

    def __init__(self, models: Sequence[str], n_rotors: int) -> None:
        """Subscribe to the commands for each drone's model.

        Raises:
            ConfigError: Gazebo's Python bindings are missing.
        """
        self.speed_rad_s = np.zeros((len(models), n_rotors))
        self.heard = np.zeros(len(models), dtype=bool)
        self._new = np.zeros(len(models), dtype=bool)
        self._changed = Condition()
        transport = _transport()
        self._node = transport.Node()
        options = transport.SubscribeOptions()
        for i, model in enumerate(models):
            self._node.subscribe_raw(
                TOPIC.format(model), lambda data, _, i=i: self._take(i, data), MESSAGE, options
            )

    def _take(self, index: int, data: bytes) -> None:
        """Called by Gazebo's transport in a thread of its own."""
        speeds = velocities(data)
        with self._changed:
            row = self.speed_rad_s[index]
            row[: len(speeds)] = speeds[: len(row)]
            self.heard[index] = self._new[index] = True
            self._changed.notify()

    def begin(self) -> None:
        """From now on new commands are waited for."""
        with self._changed:
            self._new[:] = False

    def wait(self, patience_s: float, *, running: bool = False) -> list[int]:
        """Wait until a new command of each drone has come; the drones, from 0, without one.

        `patience_s` is wall-clock time. `running`: wait for those only whose motors have been told
        to run.
        """
        deadline = monotonic() + patience_s
        with self._changed:
            while True:
                silent = ~self._new
                if running:
                    silent &= self.speed_rad_s.any(axis=1)
                left = deadline - monotonic()
                if not silent.any() or left <= 0.0:
                    return [int(i) for i in np.flatnonzero(silent)]
                self._changed.wait(left)


def _transport() -> Any:
    try:
        return importlib.import_module("gz.transport13._transport")
    except ImportError as error:
        raise ConfigError(
            "physics.engine = gazebo_px4: the Python bindings of Gazebo Harmonic's transport "
            f"(gz.transport13; Debian and Ubuntu: python3-gz-transport13) are missing ({error})"
        ) from None


# ---------- Generated world, flown by real PX4s over their bridge

WORLD = "musls"

ANSWER_LIMIT_S = 20.0
"""Wall-clock time for a motor command; usual is a fraction of a millisecond."""


# PX4 does not hold Gazebo back: a Gazebo that runs by itself runs away from a PX4 whose processor
# is busy. Here the server is in this process and does a control period only when every PX4 that
# flies has answered the sensors of the last one. So the pace follows the machine, not the other
# way round.


class BridgedPlant(GazeboPlant):
    """Rigid-link chains and flying drones in Gazebo, see `interface.Plant`.

    Gazebo brings all but the soft ground under the cables and the pushes of events: motors,
    sensors, contacts. There is no wind and no drag of load and bodies. Tensions, means over a
    control period, are Newton's law with the thrust that the commands to the motors give; rotor
    speeds follow from the same commands.

    Attributes:
        motors: What the PX4s command.
        silent: Drones, from 0, that have not answered for `ANSWER_LIMIT_S`.
        flown: Whether an autopilot listens to `silent` and moves the world before the mission.
    """

    changes = ()

    def __init__(
        self,
        system: SlungLoadSystem,
        start: Configuration,
        *,
        physics_step_s: float,
        gravity_m_s2: float = 9.80665,
        rotor_speed_rad_s: Array | None = None,
    ) -> None:
        """Load the world into a server of its own; args and errors as of `GazeboPlant`."""
        super().__init__(
            system,
            start,
            physics_step_s=physics_step_s,
            gravity_m_s2=gravity_m_s2,
            rotor_speed_rad_s=rotor_speed_rad_s,
        )
        self._drag[:] = 0.0
        self._pushes = np.zeros_like(self._wrench)
        self._idle = self._inputs
        self._server.every, self._hold_s = self.substeps, self.period_s
        models = [drone_name(system, i) for i in range(system.n_drones)]
        self.motors = MotorListener(models, system.n_rotors)
        self.silent: list[int] = []
        self.flown = False

    def _world(self, start: Configuration) -> str:
        return world_sdf(
            self.system, start, name=WORLD, step_s=self.physics_step_s,
            gravity_m_s2=self._gravity_m_s2, lean=True, pace=0.0,
            imu_rate_hz=1.0 / self.physics_step_s,
        )  # fmt: skip

    def stand(self) -> None:
        """Let a control period pass before the mission begins, while the drones stand."""
        super().step(self._idle)
        self._periods -= 1
        self._await_motors()

    def step(self, inputs: PlantInputs) -> None:
        """Advance one control period and wait for the PX4s, see `interface.Plant.step`.

        Raises:
            ConfigError: Nobody flies the drones, or there is wind.
        """
        if not self.flown:
            raise ConfigError(
                "physics.engine = gazebo_px4: only real PX4s fly there; choose autopilot.kind: px4"
            )
        if np.any(inputs.wind_enu_m_s):
            raise ConfigError("physics.engine = gazebo_px4: there is no wind; leave it out")
        super().step(inputs)
        self._await_motors()

    def _await_motors(self) -> None:
        # Before it arms, a PX4 does not answer every time; then time goes no faster than real.
        if self.motors.wait(self.period_s):
            self.silent = self.motors.wait(ANSWER_LIMIT_S, running=True)
        else:
            self.silent = []
        self.motors.begin()

    def _forces(self) -> Array:
        """Soft ground and pushes for the coming period; the rest is noted for the tensions only."""
        self._pushes[:] = super()._forces()
        self._pushes[self._selected] = 0.0  # Gazebo's motors move the drones
        inputs = self._inputs
        if np.any(inputs.wrench_body) or np.any(inputs.wrench_enu):
            for row, k in enumerate(self._selected):
                add_inputs(
                    self._motion[k], inputs.wrench_body[row], inputs.wrench_enu[row],
                    self._pushes[k],
                )  # fmt: skip
        return self._pushes
