"""Rigid-link cables on a Gazebo server, stepped in lockstep with our own session.

Gazebo brings joints, rigid bodies and contacts (its DART plugin); rotors, drag, wind, pushes and
the soft ground under the cables are the functions of the other plants, put on its links as forces.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Condition, current_thread, main_thread
from time import monotonic
from typing import Any

import numpy as np
import scipy

from musls_description.config.errors import ConfigError
from musls_description.hanging.tree import Configuration, build_tree
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import compiled
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.numerics.vectors import add, put, rotate, rotate_back, scale, sub
from musls_description.system.obstacles import AnyObstacle
from musls_description.system.slung_system import SlungLoadSystem
from musls_description.writers.sdf import drone_name, link_names, world_sdf
from musls_sim.plants.interface import (
    Change,
    Plant,
    PlantInputs,
    PlantState,
    RotorEfficiency,
    SimulationDiverged,
)
from musls_sim.plants.rigid_body import (
    MOTION,
    WRENCH,
    add_body_drag,
    add_inputs,
    add_rotors,
    add_soft_ground,
    arm_velocity,
    clear,
    collect_state,
    fastest_body,
    rotor_records,
    soft_ground,
    spin_rotors,
    surfaces_of,
)

# ---------- Forces on the links of a Gazebo server and in its cables, in compiled functions


LINK = np.dtype(
    [
        *MOTION,
        ("mass", float),
        ("com", float, 3),  # centre of mass in the link
        ("com_velocity", float, 3),  # at the begin of the step
        ("lies", float),  # mass of cable that a link lays on soft ground
        ("drag", float, 3),
        ("wrench", WRENCH),  # from outside
    ]
)


@compiled()
def outside_forces(links, selected, rotors, speed, grounds, inputs, step_s):
    """Everything that acts on the links from outside but Gazebo's contacts."""
    command, wind, in_body, in_world = inputs
    spin_rotors(speed, command, rotors, step_s)
    for k in range(links.shape[0]):
        link = links[k]
        clear(link.wrench)
        put(link.com_velocity, arm_velocity(link, rotate(link.rotation, link.com)))
        if link.lies > 0.0:
            add_soft_ground(link, grounds, link.lies, link.wrench)
    for i in range(selected.shape[0]):
        link = links[selected[i]]
        if i > 0:
            add_rotors(link, rotors[i - 1], speed[i - 1], wind, link.wrench)
        add_body_drag(link, link.drag, wind, link.wrench)
        add_inputs(link, in_body[i], in_world[i], link.wrench)


@compiled()
def cable_forces(links, first, drone, reach, grounds, step_s, gravity, force, peak):
    """Forces at both ends of all cables, the mean over a step, by Newton's law."""
    for i in range(first.shape[0]):
        total = (0.0, 0.0, 0.0)
        for end in range(2):
            put(force[i, end], total)
        if soft_ground(grounds, links[drone[i]].position)[0] > -reach[i]:
            continue
        for k in range(drone[i], first[i] - 1, -1):
            link = links[k]
            now = arm_velocity(link, rotate(link.rotation, link.com))
            gain = scale(link.mass / step_s, sub(now, link.com_velocity))
            total = add(total, sub(gain, link.wrench.force))
            total = (total[0], total[1], total[2] + link.mass * gravity)
            if k == drone[i] or k == first[i]:
                end = 1 if k == drone[i] else 0
                end_link = links[drone[i] - 1 if end == 1 else k]
                put(force[i, end], scale(-1.0, rotate_back(end_link.rotation, total)))
                peak[i] = max(peak[i], force[i, end, 0])


# ---------- A Gazebo Harmonic server in this process, by Gazebo's own Python bindings

LinkName = tuple[str, str]
"""Model and link."""


# The server runs the systems of the world file (for us: the physics alone). Links get their
# forces before each step and are read after it, in callbacks of the server, so that nothing is
# lost to transport or threads.


def bindings() -> tuple[Any, Any]:
    """Import Gazebo's modules `gz.sim8` and `gz.math7` (raises ConfigError without them)."""
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
        motion: Motion of the links' origins, (n_links,) of `rigid_body.MOTION`.
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
        """
        # No other machine is to hear of this server, nor another server on this one.
        os.environ.setdefault("GZ_IP", "127.0.0.1")
        os.environ.setdefault("GZ_PARTITION", f"musls_{os.getpid()}")
        self._sim, self._math = bindings()
        self._names = list(links)
        self._links: list[Any] = []
        self._forces = forces
        self._watch = watch
        self._holds: list[tuple[Any, list[float]]] = []
        self._steps = 0
        self._failure: BaseException | None = None
        self.motion = np.zeros(len(links), MOTION)
        with tempfile.TemporaryDirectory(prefix="musls_gazebo_") as folder:
            path = Path(folder) / "world.sdf"
            path.write_text(world_sdf, encoding="utf-8")
            with _quiet_stdout():
                self._fixture = self._sim.TestFixture(str(path))
                self._fixture.on_pre_update(self._before)
                self._fixture.on_post_update(self._after)
                self._fixture.finalize()
                self._server = self._fixture.server()
        _take_signals_back()

    def run(self, steps: int) -> None:
        """Make steps of the world's step size; who pauses or stops the server delays them only."""
        end = self._steps + steps
        with contextlib.nullcontext() if self._links else _quiet_stdout():
            self._server.run(True, steps, False)
            while self._links and self._steps < end and self._failure is None:
                self._server.run(True, end - self._steps, False)
        self._raise_failure()
        if not self._links:
            raise ConfigError("physics.engine = gazebo: the server did not load the world")

    def _raise_failure(self) -> None:
        """An error in a callback must not pass through Gazebo's C++."""
        if self._failure is not None:
            failure = self._failure
            self._failure = None
            raise failure

    def _before(self, info: Any, ecm: Any) -> None:
        try:
            if not self._links:
                self._find(ecm)
            if info.paused:  # forces would add up until the next step
                return
            if self._steps % self.every == 0:
                rows = self._forces().tolist()
                self._holds = [pair for pair in zip(self._links, rows, strict=True) if any(pair[1])]
            vector = self._math.Vector3d
            for link, wrench in self._holds:
                link.add_world_wrench(ecm, vector(*wrench[:3]), vector(*wrench[3:]))
        except BaseException as error:
            self._failure = self._failure or error

    def _after(self, info: Any, ecm: Any) -> None:
        if info.paused:
            return
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
            place = pose.pos()
            turn = pose.rot()
            row[:7] = place.x(), place.y(), place.z(), turn.w(), turn.x(), turn.y(), turn.z()
            velocity = link.world_linear_velocity(ecm)
            omega = link.world_angular_velocity(ecm)
            if velocity is None or omega is None:  # before the first step
                row[7:] = 0.0
            else:
                row[7:10] = velocity.x(), velocity.y(), velocity.z()
                row[10:] = omega.x(), omega.y(), omega.z()
        turns = scipy.spatial.transform.Rotation.from_quat(numbers[:, 3:7], scalar_first=True)
        self.motion["rotation"] = turns.as_matrix()
        self.motion["position"] = numbers[:, :3]
        self.motion["omega"] = numbers[:, 10:]
        self.motion["velocity"] = numbers[:, 7:10]


def _take_signals_back() -> None:
    """Let Python hear Ctrl-C again: a Gazebo server takes these signals for itself."""
    if current_thread() is main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if handler is not None:
                signal.signal(number, handler)


@contextlib.contextmanager
def _quiet_stdout() -> Iterator[None]:
    """Send what C++ prints on standard output (DART, of equal names) nowhere."""
    sys.stdout.flush()
    original = os.dup(1)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        yield
    finally:
        os.dup2(original, 1)
        os.close(original)


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
        gravity_m_s2: float = STANDARD_GRAVITY_M_S2,
        rotor_speed_rad_s: Array | None = None,
        ground_height_enu_m: float | None = 0.0,
        obstacles: Sequence[AnyObstacle] = (),
    ) -> None:
        """Load the system into a server of its own, at rest.

        The time step divides the control period. Rotor speeds, (n_drones, n_rotors), are 0 by
        default.
        """
        super().__init__(system, physics_step_s, gravity_m_s2)
        self._hold_s = self.physics_step_s  # time for which forces hold
        self._obstacles = obstacles
        self._grounds = surfaces_of(ground_height_enu_m, obstacles)
        tree = build_tree(system)
        self._first = tree.first_link
        self._drone = tree.drone
        self._selected = np.array([0, *tree.drone])
        self._links = np.zeros(len(tree.bodies), LINK)
        self._links["mass"] = [body.mass_kg for body in tree.bodies]
        self._links["com"] = [body.com_m for body in tree.bodies]
        for i, cable in enumerate(system.cables):
            self._links["lies"][tree.first_link[i] : tree.drone[i]] = cable.link_mass_kg
        self.rotors = rotor_records(system)
        drones = [drone.drag_n_s_m for drone in system.drones]
        self._links["drag"][self._selected] = [system.load.drag_n_s_m, *drones]
        self._reach = np.array(
            [
                float(
                    np.linalg.norm(np.abs(d.collision.center_m) + np.array(d.collision.size_m) / 2)
                )
                for d in system.drones
            ]
        )
        text = self._world(start)
        self._server = GazeboServer(text, link_names(system), self._forces, self._after_step)
        self.state = PlantState.zeros(system)
        if rotor_speed_rad_s is not None:
            self.state.rotor_speed_rad_s[:] = rotor_speed_rad_s
        self._inputs = PlantInputs.zeros(system)
        self._links["rotation"], self._links["position"] = tree.poses(start.coordinates)
        self._collect(0.0)

    def _collect(self, period_s: float) -> None:
        """Write the motion of load and drones into the state."""
        for body, row in zip(self._selected, self.state.motion, strict=True):
            collect_state(self._links[body], period_s, row)

    def _world(self, start: Configuration) -> str:
        """Text of the world: links and joints without motors, sensors and other systems."""
        return world_sdf(
            self.system,
            start,
            drones="rigid",
            step_s=self.physics_step_s,
            gravity_m_s2=self.gravity_m_s2,
            physics_only=True,
            obstacles=self._obstacles,
        )

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
        body, speed = fastest_body(self._links)
        if not speed < LOST_SPEED_M_S:
            raise SimulationDiverged(
                f"Gazebo's state is not physical at {self.time_s:.3f} s: body {body} moves at "
                f"{speed:.3g} m/s; take a smaller physics.step_size_s"
            )
        self._collect(self.period_s)

    def _forces(self) -> Array:
        """Forces on all links for the coming step."""
        last = self._inputs
        inputs = last.rotor_command_rad_s, last.wind_enu_m_s, last.wrench_body, last.wrench_enu
        speed = self.state.rotor_speed_rad_s
        grounds = self._grounds
        held_s = self._hold_s
        outside_forces(self._links, self._selected, self.rotors, speed, grounds, inputs, held_s)
        return self._rows()

    def _rows(self) -> Array:
        """Force and moment on each link, (n_links, 6)."""
        wrench = self._links["wrench"]
        return np.hstack([wrench["force"], wrench["moment"]])

    def _after_step(self) -> None:
        motion = self._server.motion
        for name, *_ in MOTION:
            self._links[name] = motion[name]
        cable_forces(
            self._links,
            self._first,
            self._drone,
            self._reach + DRONE_TOUCHES_M,
            self._grounds,
            self._hold_s,
            self.gravity_m_s2,
            self.state.cable_force_n,
            self.state.tension_peak_n,
        )

    def cable_nodes_enu_m(self, index: int) -> Array:
        """Joints of cable `index` (from 0) from the load to the drone, (links + 1, 3)."""
        first = self._first[index]
        drone = self._drone[index]
        top = self._links[drone]
        hook = top["rotation"] @ np.array(self.system.drones[index].cable_attachment_m)
        return np.vstack([self._links["position"][first:drone], top["position"] + hook])

    def cable_end_rotations(self, index: int) -> Array:
        """Rotations of a cable's rigid links at load and drone, world, (2, 3, 3), if it has any.

        See `interface.Plant`.
        """
        ends = [self._first[index], self._drone[index] - 1]
        return self._links["rotation"][ends]


# ---------- Motor commands of PX4's bridges, from Gazebo's transport

TOPIC = "/{}/command/motor_speed"
MESSAGE = "gz.msgs.Actuators"

_VARINT = 0
_DOUBLE = 1
_BYTES = 2
_FLOAT = 5
_VELOCITY = 3
"""Number of the field `velocity` of gz.msgs.Actuators."""


def velocities(message: bytes) -> list[float]:
    """Field `velocity` of a gz.msgs.Actuators [rad/s], read without protobuf's Python package."""
    numbers: list[float] = []
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number = key >> 3
        kind = key & 7
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
            numbers += struct.unpack(f"<{size // 8}d", message[at : at + size // 8 * 8])
        at += size
    return numbers


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number of variable length and where the next thing begins."""
    value = shift = 0
    while at < len(message):
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at = at + 1
        shift = shift + 7
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
        """Subscribe to the commands for each drone's model."""
        self.speed_rad_s = np.zeros((len(models), n_rotors))
        self.heard = np.zeros(len(models), dtype=bool)
        self._new = np.zeros(len(models), dtype=bool)
        self._changes = Condition()
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
        with self._changes:
            row = self.speed_rad_s[index]
            row[: len(speeds)] = speeds[: len(row)]
            self.heard[index] = self._new[index] = True
            self._changes.notify()

    def begin(self) -> None:
        """Begin to wait for new commands."""
        with self._changes:
            self._new[:] = False

    def wait(self, patience_s: float, *, running: bool = False) -> list[int]:
        """Wait until a new command of each drone has come; the drones, from 0, without one.

        `patience_s` is wall-clock time. `running`: wait for those only whose motors have been told
        to run.
        """
        deadline = monotonic() + patience_s
        with self._changes:
            while True:
                silent = ~self._new
                if running:
                    silent &= self.speed_rad_s.any(axis=1)
                wait_s = deadline - monotonic()
                if not silent.any() or wait_s <= 0.0:
                    return [int(i) for i in np.flatnonzero(silent)]
                self._changes.wait(wait_s)


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

ASK_EVERY_S = 1.0
"""Wall-clock time to wait for motor commands; usual is a fraction of a millisecond."""


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
        motors: Motor commands of the PX4s.
        ask: Called now and then with the drones, from 0, whose commands are waited for, and for how
            long; raises when they will not come. The autopilot's, which moves the world before the
            mission; None where nobody flies.
    """

    changes = ()

    def __init__(self, system: SlungLoadSystem, start: Configuration, **options: Any) -> None:
        """Load the world into a server of its own; options as of `GazeboPlant`."""
        super().__init__(system, start, **options)
        self._links["drag"] = 0.0
        self._idle = self._inputs
        self._server.every = self.substeps
        self._hold_s = self.period_s
        models = [drone_name(system, i) for i in range(system.n_drones)]
        self.motors = MotorListener(models, system.n_rotors)
        self.ask: Callable[[list[int], float], None] | None = None

    def _world(self, start: Configuration) -> str:
        return world_sdf(
            self.system,
            start,
            name=WORLD,
            step_s=self.physics_step_s,
            gravity_m_s2=self.gravity_m_s2,
            lean=True,
            pace=0.0,
            imu_rate_hz=1.0 / self.physics_step_s,
            obstacles=self._obstacles,
        )

    def stand(self) -> None:
        """Advance a control period before the mission, while the drones stand."""
        super().step(self._idle)
        self._periods -= 1
        self._await_motors()

    def step(self, inputs: PlantInputs) -> None:
        """Advance one control period and wait for the PX4s, see `interface.Plant.step`."""
        if self.ask is None:
            raise ConfigError(
                "physics.engine = gazebo_px4: only real PX4s fly there; choose autopilot.kind: px4"
            )
        if np.any(inputs.wind_enu_m_s):
            raise ConfigError("physics.engine = gazebo_px4: there is no wind; leave it out")
        super().step(inputs)
        self._await_motors()

    def _await_motors(self) -> None:
        # Before it arms, a PX4 does not answer every time; then time goes no faster than real.
        waited_s = 0.0  # not by the clock, which goes on while this process is stopped
        if self.motors.wait(self.period_s):
            while self.ask and (silent := self.motors.wait(ASK_EVERY_S, running=True)):
                waited_s += ASK_EVERY_S
                self.ask(silent, waited_s)
        self.motors.begin()

    def _forces(self) -> Array:
        """Soft ground and pushes for the coming period; the rest is noted for the tensions only."""
        rows = super()._forces()
        for i, k in enumerate(self._selected):  # Gazebo's motors move the drones
            turn = self._links[k]["rotation"]
            enu = self._inputs.wrench_enu[i]
            body = self._inputs.wrench_body[i]
            rows[k] = np.hstack([turn @ body[3:] + enu[3:], turn @ body[:3] + enu[:3]])
        return rows
