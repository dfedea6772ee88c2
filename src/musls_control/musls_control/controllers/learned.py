"""`learned`: a policy of `musls/Transport-v0` as controller, from an ONNX file.

`Observations` and `Actions` say what a policy sees and what its numbers mean; the environment has
them from here.
"""

from __future__ import annotations

import math
from dataclasses import fields
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from musls_control.chain import GeometricAttitude
from musls_control.controllers import Controller, ControlLevel, ControlSetup
from musls_control.estimate import Estimate
from musls_control.reference import LoadReference
from musls_description.config.errors import ConfigError, MuslsError, install_command
from musls_description.config.registry import UserCodeError
from musls_description.config.schema import build, spec
from musls_description.hanging.hang import hang
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import (
    add,
    add_scaled,
    body_axes_in_world,
    cross,
    norm,
    put,
    rotate_back_by,
    rotate_by,
    scale,
    sub,
    wrapped,
)
from musls_description.system.slung_system import formation_of

POSITION_M = 1.0
VELOCITY_M_S = 2.0
RATE_RAD_S = 4.0
ACCELERATION_M_S2 = 4.0
"""Scales that observations are divided by; tensions by an even share of the load's weight."""

BODY_SEEN = (
    ("position", 3, POSITION_M, "m"),
    ("velocity", 3, VELOCITY_M_S, "m/s"),
    ("rotation matrix, row by row", 9, 1.0, ""),
    ("body rate in its own frame", 3, RATE_RAD_S, "rad/s"),
)
"""Observation of a body: quantity, count of numbers, value of a 1, unit."""

BODY_COLUMNS = sum(count for _, count, _, _ in BODY_SEEN)

LARGEST_SEEN = 10.0
"""Observations are cut off there."""

MOMENT_SHARE = 0.1
"""Moment of an action of 1, as a share of largest thrust times the longest rotor arm."""

SETPOINT_REACH_M = 0.5
"""Shift of a drone's set-point by an action of 1 at level drone_setpoints."""

POLICIES = Path(__file__).parent / "policies"
"""Trained policies that are shipped, NAME.onnx."""

Scale = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ActionLevel(str, Enum):
    """Level of a policy's actions; `Actions` says what they mean.

    Attributes:
        ACCELERATIONS: Acceleration of each drone, with rates of roll and pitch.
        FORCES: Force of each drone's rotors.
        THRUST_MOMENT: Thrust and moments of each drone.
        ROTOR_SPEEDS: Speed of each rotor.
        DRONE_SETPOINTS: Shift of each drone's place in the formation.
    """

    ACCELERATIONS = "accelerations"
    FORCES = "forces"
    THRUST_MOMENT = "thrust_moment"
    ROTOR_SPEEDS = "rotor_speeds"
    DRONE_SETPOINTS = "drone_setpoints"

    @property
    def control(self) -> ControlLevel:
        """Level of the commands that come of it."""
        return ControlLevel("forces" if self is ActionLevel.ACCELERATIONS else self.value)

    @property
    def periods_per_step(self) -> int:
        """Control periods (4 ms) that an action is held for unless another number is given.

        80 ms where control below keeps the drones level: the longer an action holds, the better a
        learner can tell what it did from what the others did.
        """
        return 5 if self in (ActionLevel.THRUST_MOMENT, ActionLevel.ROTOR_SPEEDS) else 20


class Goal(NamedTuple):
    """Goal of the load's motion, of one world or of many.

    Attributes:
        position_enu_m: (..., 3).
        velocity_enu_m_s: (..., 3).
        yaw_rad: (...).
        acceleration_enu_m_s2: (..., 3).
    """

    position_enu_m: Array
    velocity_enu_m_s: Array
    yaw_rad: Array
    acceleration_enu_m_s2: Array


class Observations:
    """Makes what a policy sees, of one world or of many.

    All vectors are in axes turned by the goal's yaw about the vertical, so that a policy knows no
    north; positions over 1 m, velocities over 2 m/s, accelerations over 4 m/s2, body rates over
    4 rad/s, and none beyond +-10. In this order:

    - "load", (18,): position and velocity relative to the goal, rotation matrix (row by row),
      body rate in its own frame.
    - "drones", (n, 18): the same; position relative to the drone's place in the formation round
      the load, velocity relative to the load.
    - "tension", (n, 2): of each cable at load and drone, over an even share of the load's weight.
    - "goal", (6,): its velocity and acceleration.
    - "actions", (history, n k): the last ones, the latest first, where there is a history.

    A policy that each drone flies by itself sees less, see `each`.

    Attributes:
        shapes: Shape of each part, by name.
        size: Numbers of all parts.
        size_each: Numbers that one drone sees.
    """

    def __init__(self, setup: ControlSetup, history: int = 0, n_actions: int = 0) -> None:
        n = setup.slung.n_drones
        self._offsets_m = setup.formation.offsets_m(n)
        self._share_n = setup.slung.load.mass_kg * setup.gravity_m_s2 / n
        self.shapes: dict[str, tuple[int, ...]] = {
            "load": (BODY_COLUMNS,),
            "drones": (n, BODY_COLUMNS),
            "tension": (n, 2),
            "goal": (6,),
        }
        if history:
            self.shapes["actions"] = (history, n_actions)
        ends = np.cumsum([math.prod(shape) for shape in self.shapes.values()]).tolist()
        self._places = list(map(slice, [0, *ends], ends))
        self.size = ends[-1]
        self.size_each = BODY_COLUMNS * (1 + n) + 8 + history * n_actions // n

    def parts(
        self, motion: Array, tension_n: Array, goal: Goal, actions: Array
    ) -> dict[str, Array]:
        """Parts by name, float32.

        Args:
            motion: Columns as `Estimate.data`, (..., 1 + n, 16).
            tension_n: (..., n, 2).
            goal: Goal of the load.
            actions: The last ones, (..., history, n k).
        """
        *worlds, bodies, columns = motion.shape
        observation = np.empty((*worlds, self.size), np.float32)
        see(
            _rows(motion, bodies, columns),
            _rows(tension_n, bodies - 1, 2),
            _rows(goal.position_enu_m, 3),
            _rows(goal.velocity_enu_m_s, 3),
            _rows(goal.acceleration_enu_m_s2, 3),
            _rows(goal.yaw_rad),
            self._offsets_m,
            self._share_n,
            observation.reshape(-1, self.size),
        )
        places = zip(self.shapes.items(), self._places, strict=True)
        views = {
            name: observation[..., at].reshape(*worlds, *shape) for (name, shape), at in places
        }
        if "actions" in views:
            views["actions"][...] = actions
        return views

    def each(self, parts: dict[str, Array], worlds: tuple[int, ...]) -> Array:
        """Observation of each drone by itself, (*worlds, n, size_each).

        Its own row, the load's, those of the other drones in their order, its cable's tension, what
        the goal does next, and where there is a history its own last actions.
        """
        drones = parts["drones"]
        n = parts["drones"].shape[-2]
        rows = []
        for i in range(n):
            own = [drones[..., i, :], parts["load"], np.delete(drones, i, axis=-2)]
            own += [parts["tension"][..., i, :], parts["goal"]]
            if "actions" in parts:
                own.append(parts["actions"].reshape(*parts["actions"].shape[:-1], n, -1)[..., i, :])
            rows.append(np.concatenate([part.reshape(*worlds, -1) for part in own], axis=-1))
        return np.stack(rows, axis=-2)


def _rows(values: Array, *shape: int) -> Array:
    """Numbers of one world or of many, contiguous, (worlds, *shape)."""
    return np.ascontiguousarray(values, float).reshape(-1, *shape)


@compiled()
def about_vertical(yaw):
    """Return the unit quaternion of a turn about the vertical."""
    return math.cos(0.5 * yaw), 0.0, 0.0, math.sin(0.5 * yaw)


@compiled()
def see(
    motion, tension, goal_position, goal_velocity, goal_acceleration, goal_yaw, offsets, share, seen
):
    """Write what `Observations` says, but the actions, one part after the other, (worlds, size).

    `motion` is (worlds, 1 + n, 16), `tension` (worlds, n, 2), the goals (worlds, 3) and (worlds,),
    `offsets` (n, 3).
    """
    for i in range(motion.shape[0]):
        turn = about_vertical(goal_yaw[i])
        load = motion[i, 0]
        for k in range(motion.shape[1]):
            body = motion[i, k]
            row = seen[i, BODY_COLUMNS * k :]
            if k == 0:
                place = sub(body, goal_position[i])
                velocity = sub(body[3:6], goal_velocity[i])
            else:
                place = sub(sub(body, load), rotate_by(turn, offsets[k - 1]))
                velocity = sub(body[3:6], load[3:6])
            put(row, scale(1.0 / POSITION_M, rotate_back_by(turn, place)))
            put(row[3:6], scale(1.0 / VELOCITY_M_S, rotate_back_by(turn, velocity)))
            axes = body_axes_in_world(body[6:10])
            for c in range(3):  # columns of the rotation matrix
                axis = axes[3 * c], axes[3 * c + 1], axes[3 * c + 2]
                row[6 + c], row[9 + c], row[12 + c] = rotate_back_by(turn, axis)
            put(row[15:18], scale(1.0 / RATE_RAD_S, body[10:13]))
        row = seen[i, BODY_COLUMNS * motion.shape[1] :]
        for k in range(len(offsets)):
            row[2 * k] = tension[i, k, 0] / share
            row[2 * k + 1] = tension[i, k, 1] / share
        row = row[2 * len(offsets) :]
        put(row, rotate_back_by(turn, scale(1.0 / VELOCITY_M_S, goal_velocity[i])))
        put(row[3:6], rotate_back_by(turn, scale(1.0 / ACCELERATION_M_S2, goal_acceleration[i])))
        for k in range(seen.shape[1]):
            if abs(seen[i, k]) > LARGEST_SEEN:  # what is not a number stays
                seen[i, k] = math.copysign(LARGEST_SEEN, seen[i, k])


def flat(parts: dict[str, Array], worlds: tuple[int, ...]) -> Array:
    """Parts of an observation one after the other, (*worlds, size)."""
    return np.concatenate([part.reshape(*worlds, -1) for part in parts.values()], axis=-1)


class Actions:
    """Turns actions in [-1, 1] into commands of a control level, of one world or of many.

    Each drone's part, (k,), in axes turned by the goal's yaw about the vertical; actions are
    multiplied by a scale before, so that what follows holds for a scale of 1. A learner begins with
    random actions, and large ones end a flight before it has seen anything.

    - "accelerations", k = 5: acceleration of the drone, +-1 is 1 m/s2, and rates of roll and pitch,
      +-1 is 1 rad/s, that the attitude control is to have on its way there. The force of the rotors
      is m (g + a) minus the pull of the cable, which is measured; so 0 hovers, whatever the load
      does (Zeng et al., CoRL 2025: what they find learns best).
    - "forces", k = 3: force of the rotors; 0 is what holds the system in hover, +-1 adds in that
      direction what accelerates the drone alone by 1 m/s2. Here and above, the moment of a cable
      that pulls beside the drone's centre is made up for.
    - "thrust_moment", k = 4: thrust (0 is hover, +-1 half of the largest) and moments.
    - "rotor_speeds", k = number of rotors: -1 and 1 are the slowest and fastest speed.
    - "drone_setpoints", k = 3: shift of the drone's place in the formation round the goal by up to
      0.5 m; PX4's control chain flies there. 0 is the controller `formation`.

    Attributes:
        shape: (n, k).
    """

    def __init__(self, level: ActionLevel, setup: ControlSetup, scale: float) -> None:
        self._level = level
        self._setup = setup
        self._scale = scale
        self._system = system = formation_of(setup.system, "controller.kind = learned")
        columns = {
            ActionLevel.ACCELERATIONS: 5,
            ActionLevel.THRUST_MOMENT: 4,
            ActionLevel.ROTOR_SPEEDS: system.n_rotors,
        }
        self.shape = (system.n_drones, columns.get(level, 3))
        drones = system.drones
        load = system.load
        cables = range(system.n_drones)
        self._most_n = np.array([drone.max_thrust_n for drone in drones])
        arms = [max(np.hypot(*r.position_m[:2]) for r in d.rotors) for d in drones]
        self._moment_n_m = MOMENT_SHARE * self._most_n * np.array(arms)
        speeds = [[(r.speed_min_rad_s, r.speed_max_rad_s) for r in d.rotors] for d in drones]
        self._speeds_rad_s = np.array(speeds)
        attitude = GeometricAttitude.of(drones)
        self._drones = np.zeros(len(drones), DRONE)
        self._drones["mass"] = [drone.mass_kg for drone in drones]
        self._drones["at_load"] = [load.cable_attachments_m[i] for i in cables]
        self._drones["at_drone"] = [drone.cable_attachment_m for drone in drones]
        self._drones["place"] = setup.formation.offsets_m(len(drones))
        self._drones["azimuth"] = setup.formation.azimuths_rad(len(drones))
        self._drones["moment_of_rate"] = attitude.drones["inertia"] * attitude.gains[1]  # J K_w
        if level is ActionLevel.FORCES:
            self._drones["hover"] = self._hover_n

    @cached_property
    def _hover_n(self) -> Array:
        """Forces that hold the system in hover at yaw 0, world ENU, (n, 3)."""
        setup = self._setup
        return hang(self._system, setup.formation, setup.gravity_m_s2).rest.drone_force_n

    def commands(self, action: Array, motion: Array, tension_n: Array, goal: Goal) -> Array:
        """Commands of actions (..., n, k), (..., n, columns); other arguments as observations."""
        level = self._level
        action = self._scale * action
        if level is ActionLevel.THRUST_MOMENT:
            thrust = np.linalg.norm(self._hover_n, axis=1) + 0.5 * self._most_n * action[..., 0]
            moment = self._moment_n_m[:, None] * action[..., 1:]
            return np.concatenate([thrust[..., None], moment], axis=-1)
        if level is ActionLevel.ROTOR_SPEEDS:
            low, high = self._speeds_rad_s[..., 0], self._speeds_rad_s[..., 1]
            speeds: Array = low + 0.5 * (1.0 + action) * (high - low)
            return speeds
        if level is ActionLevel.DRONE_SETPOINTS:
            return self.places(goal.position_enu_m, goal.yaw_rad, SETPOINT_REACH_M * action)
        n, columns = self.shape
        forces = np.empty((*motion.shape[:-2], n, 7))
        ask_forces(
            _rows(action, n, columns),
            _rows(motion, 1 + n, motion.shape[-1]),
            _rows(tension_n, n, 2),
            _rows(goal.yaw_rad),
            self._drones,
            self._setup.gravity_m_s2,
            forces.reshape(-1, n, 7),
        )
        return forces

    def places(self, position_enu_m: Array, yaw_rad: Array, shift_m: Array | float = 0.0) -> Array:
        """Places and yaws of the drones in the formation round a load's, (..., n, 4).

        `shift_m`, (..., n, 3): from their places, in axes turned by the yaw.
        """
        places = np.empty((*position_enu_m.shape[:-1], len(self._drones), 4))
        places[..., :3] = shift_m
        ask_places(
            _rows(position_enu_m, 3),
            _rows(yaw_rad),
            self._drones,
            places.reshape(-1, *places.shape[-2:]),
        )
        return places


DRONE = np.dtype(
    [
        ("mass", float),
        ("at_load", float, 3),  # where its cable is fastened, in the bodies' frames
        ("at_drone", float, 3),
        ("place", float, 3),  # in the formation
        ("azimuth", float),
        ("hover", float, 3),  # force that holds it in hover at yaw 0, world
        ("moment_of_rate", float, (3, 3)),
    ],
    align=True,
)


@compiled()
def ask_places(position, yaw, drones, places):
    """Write places and yaws in the formation over shifts from them, (worlds, n, 4).

    `position` is (worlds, 3), `yaw` (worlds,), `drones` (n,) of `DRONE`.
    """
    for i in range(len(places)):
        turn = about_vertical(yaw[i])
        for k in range(len(drones)):
            drone = drones[k]
            row = places[i, k]
            place = add(position[i], rotate_by(turn, drone.place))
            put(row, add(place, rotate_by(turn, row)))
            row[3] = -wrapped(-(yaw[i] + drone.azimuth + math.pi))  # pi, not -pi, as in a plan


@compiled()
def ask_forces(action, motion, tension, goal_yaw, drones, gravity, forces):
    """Write forces, yaws and moments of actions: with five columns accelerations, else forces.

    `action` is (worlds, n, columns), `motion` (worlds, 1 + n, 16), `tension` (worlds, n, 2),
    `drones` (n,) of `DRONE`, `forces` (worlds, n, 7). A cable pulls as if it were straight.
    """
    for i in range(motion.shape[0]):
        turn = about_vertical(goal_yaw[i])
        load = motion[i, 0]
        for k in range(len(drones)):
            drone = drones[k]
            body = motion[i, 1 + k]
            row = forces[i, k]
            end = add(body, rotate_by(body[6:10], drone.at_drone))
            way = sub(add(load, rotate_by(load[6:10], drone.at_load)), end)
            pull = scale(tension[i, k, 1] / max(norm(way), 1e-6), way)
            acceleration = rotate_by(turn, action[i, k])
            moment = cross(rotate_back_by(body[6:10], pull), drone.at_drone)
            put(row[4:7], moment)
            row[3] = wrapped(goal_yaw[i] + drone.azimuth + math.pi)
            if action.shape[2] < 5:
                put(row, add_scaled(rotate_by(turn, drone.hover), drone.mass, acceleration))
                continue
            put(row, sub(scale(drone.mass, acceleration), pull))
            row[2] += drone.mass * gravity
            for r in range(3):
                for c in range(2):
                    row[4 + r] += drone.moment_of_rate[r, c] * action[i, k, 3 + c]


@spec
class Training:
    """Settings with which a policy was trained; a file says them in its metadata.

    Attributes:
        action_scale: Times that of `Actions` an action is.
        level: Level of the actions.
        periods_per_step: Control periods (4 ms) an action is held for; by default the level's.
        history: Number of last actions that the policy sees.
        decentralised: Whether each drone asks the policy for itself, as in
            `TransportParallelEnv`; else it is asked once for all.
    """

    action_scale: Scale
    level: ActionLevel = ActionLevel.DRONE_SETPOINTS
    periods_per_step: Annotated[int, Field(ge=1)] | None = None
    history: Annotated[int, Field(ge=0)] = 0
    decentralised: bool = False


@spec
class LearnedSpec:
    """A trained policy of the environment `musls/Transport-v0` from a file.

    Observation and action are those of the environment; the goal is the load's reference. What is
    not given of the training is as the file's metadata say, or as by default in the environment;
    but for the scale, which the file or the scenario has to say.

    Attributes:
        kind: "learned".
        policy: ONNX file with one input, an observation, whose first output is an action; or the
            name of a shipped one, such as hover_policy.
        action_scale: Size of an action of 1, times the unit of its level.
        level: Level of the actions.
        periods_per_step: Control periods (4 ms) an action is held for.
        history: Number of last actions that the policy sees.
        decentralised: Whether each drone asks the policy for itself.
    """

    kind: Literal["learned"] = "learned"
    policy: str
    action_scale: Scale | None = None
    level: ActionLevel | None = None
    periods_per_step: Annotated[int, Field(ge=1)] | None = None
    history: Annotated[int, Field(ge=0)] | None = None
    decentralised: bool | None = None

    def build(self, setup: ControlSetup) -> Controller:
        """Load the policy and make the controller."""
        return LearnedController(*self.read(), setup)

    def read(self) -> tuple[Policy, Training]:
        """Load the policy, with the settings of its training."""
        policy = Policy(self.policy)
        settings = {name: getattr(self, name) for name in TRAINING}
        entries: dict[str, Any] = {k: v for k, v in policy.metadata.items() if k in TRAINING}
        entries |= {name: value for name, value in settings.items() if value is not None}
        if "action_scale" not in entries:
            raise ConfigError(
                f"{policy.name}: its metadata lack action_scale, the scale of actions that it was "
                "trained with; say it there or as controller.action_scale"
            )
        trained: Training = build(Training, entries, f"{policy.name}: metadata")
        return policy, trained


TRAINING = tuple(field.name for field in fields(Training))


class _Shipped:
    """A policy of `POLICIES` by its name, which is the kind."""

    kind: str

    def build(self, setup: ControlSetup) -> Controller:
        """Load the policy and make the controller."""
        return LearnedSpec(policy=self.kind).build(setup)


@spec
class HoverPolicy(_Shipped):
    """A policy trained on `musls/Hover-v0` for three x500: holds a load that is pushed.

    Attributes:
        kind: "hover_policy".
    """

    kind: Literal["hover_policy"] = "hover_policy"


@spec
class TrackPolicy(_Shipped):
    """A policy trained on `musls/Track-v0` for three x500: a load follows a figure eight.

    Attributes:
        kind: "track_policy".
    """

    kind: Literal["track_policy"] = "track_policy"


@spec
class TransportPolicy(_Shipped):
    """A policy trained on `musls/Transport-v0` for three x500: a load goes to a place.

    Attributes:
        kind: "transport_policy".
    """

    kind: Literal["transport_policy"] = "transport_policy"


class LearnedController(Controller):
    """Asks the policy for an action every `periods_per_step` control periods."""

    level = ControlLevel.FORCES  # of the class; each object has its own

    def __init__(self, policy: Policy, trained: Training, setup: ControlSetup) -> None:
        self.level = trained.level.control  # type: ignore[misc]  # as it was trained
        self._policy = policy
        self._periods = trained.periods_per_step or trained.level.periods_per_step
        self._actions = Actions(trained.level, setup, trained.action_scale)
        drones, columns = self._actions.shape
        self._observe = Observations(setup, trained.history, drones * columns)
        self._alone = trained.decentralised
        at = f"at level {trained.level.value}"
        if self._alone:
            policy.check(self._observe.size_each, columns, "one drone", f"one drone {at}")
        else:
            what = f"{drones} drones, {columns} each {at}"
            policy.check(self._observe.size, drones * columns, f"{drones} drones", what)
        self._last = np.zeros((trained.history, drones * columns))
        self._calls = 0

    def start(self, time_s: float, estimate: Estimate) -> None:
        """Ask for an action in the first period."""
        self._calls = 0
        self._last[:] = 0.0

    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Commands of the action in force."""
        if self._calls % self._periods == 0:
            goal = Goal(
                reference.position_enu_m,
                reference.velocity_enu_m_s,
                np.array(reference.yaw_rad),
                reference.derivatives[2, :3],
            )
            motion = estimate.data
            tension_n = estimate.tension_n
            parts = self._observe.parts(motion, tension_n, goal, self._last)
            observations = self._observe.each(parts, ()) if self._alone else [flat(parts, ())]
            output = np.concatenate(
                [self._policy(observation).ravel() for observation in observations]
            )
            action = np.clip(output.reshape(self._actions.shape), -1.0, 1.0)
            self._last = np.vstack([action.reshape(1, -1), self._last])[: len(self._last)]
            for drone, column in np.argwhere(~np.isfinite(action))[:1]:
                raise UserCodeError(
                    f"{self._policy.name}: output '{self._policy.output}' at {time_s:.3f} s is "
                    f"{action[drone, column]} for drone_{drone + 1} in column {column}; must "
                    "be finite"
                )
            self._commands = self._actions.commands(action, motion, tension_n, goal)
        self._calls += 1
        return self._commands


def shipped_policies() -> list[str]:
    """Names of the policies that are shipped."""
    return sorted(path.stem for path in POLICIES.glob("*.onnx"))


class Policy:
    """A network from a file: observation in, action out.

    Attributes:
        name: Name in messages.
        output: Name of the network's output that is the action.
        metadata: Other metadata of the file, texts by name.
    """

    def __init__(self, path: str) -> None:
        """Read the file."""
        self.name = f"controller.policy = {path}"
        try:
            import onnxruntime
        except ModuleNotFoundError as error:
            if error.name != "onnxruntime":
                raise
            raise MuslsError(
                f"controller.kind = learned needs ONNX Runtime: {install_command('onnxruntime')}"
            ) from None
        if path in shipped_policies():
            path = str(POLICIES / f"{path}.onnx")
        if not Path(path).is_file():
            names = ", ".join(shipped_policies())
            raise ConfigError(f"{self.name}: there is no such file; shipped are {names}")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # networks of this size are slower on several
        options.log_severity_level = 4
        try:
            self._network = onnxruntime.InferenceSession(
                path, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # its classes of errors are not public
            raise ConfigError(f"{self.name}: not an ONNX model: {_line(error)}") from None
        self.output = self._network.get_outputs()[0].name
        self.metadata = self._network.get_modelmeta().custom_metadata_map

    def check(self, inputs: int, outputs: int, of: str, what: str) -> None:
        """Refuse other sizes; in messages `of` says whose observation, `what` whose action."""
        network_inputs = self._network.get_inputs()
        if len(network_inputs) != 1:
            names = ", ".join(one.name for one in network_inputs)
            raise ConfigError(f"{self.name}: {len(network_inputs)} inputs ({names}), must be one")
        self._input = network_inputs[0].name
        shape = network_inputs[0].shape
        types = {"tensor(float)": np.float32, "tensor(double)": np.float64}
        if network_inputs[0].type not in types:
            raise ConfigError(
                f"{self.name}: input '{self._input}' is a {network_inputs[0].type}, must be "
                "tensor(float) or tensor(double)"
            )
        self._type: Any = types[network_inputs[0].type]
        right_shape = [1, inputs][-len(shape) :] if len(shape) in (1, 2) else None
        if right_shape is None or any(
            isinstance(size, int) and size != right
            for size, right in zip(shape, right_shape, strict=True)
        ):
            raise ConfigError(
                f"{self.name}: input '{self._input}' has shape {shape}, must be [1, {inputs}] or "
                f"[{inputs}], the observation of {of}"
            )
        self._shape = right_shape
        try:
            first = self(np.zeros(inputs))
        except Exception as error:
            raise ConfigError(
                f"{self.name}: fails on an observation of {inputs} numbers: {_line(error)}"
            ) from None
        if first.shape not in ((outputs,), (1, outputs)):
            raise ConfigError(
                f"{self.name}: output '{self.output}' has shape {list(first.shape)}, must be "
                f"[1, {outputs}] or [{outputs}] ({what})"
            )

    def __call__(self, observation: Array) -> Array:
        """Return the network's first output."""
        values = observation.astype(self._type).reshape(self._shape)
        return np.asarray(self._network.run([self.output], {self._input: values})[0], np.float64)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
