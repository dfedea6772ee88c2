"""Interface of all plants: a state of contiguous arrays and a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import field as attribute
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Self

from musls_control.estimate import MOTION_COLUMNS, BodyMotion
from musls_description.config.errors import ConfigError, MuslsError
from musls_description.hanging.hang import Hanging
from musls_description.hanging.tree import Tree
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import CompiledStage
from musls_description.numerics.layout import Field, Layout, Number, fields_of
from musls_description.numerics.records import TiedToMemory
from musls_description.system.obstacles import AnyObstacle
from musls_description.system.slung_system import RigSystem
from musls_description.tables import ShownResult
from musls_sim.plants.rigid_body import rotor_records
from musls_sim.specs.physics import CONTROL_PERIOD_S, PhysicsSpec, StartSpec
from musls_sim.specs.rig import RigSpec

SPEED_LIMIT_M_S = 100.0
"""No body of a slung-load system gets that fast; beyond it the integration has failed."""

# ---------- The energy balance of a driven system: what holds an integration to account

DOUBTFUL_SHARE = 0.01
FLOOR_LIFT_M = 0.01
"""Energy made from nothing or lost by the integration from which a run is doubtful, for all plants:
a share of the energy exchanged, beyond what lifts the whole system by this height."""

DOUBTFUL_FORCE_SHARE = 0.01
"""Mean force without a source over about a second from which a run is doubtful: a share of the
weight of the whole system."""


@dataclass(kw_only=True)
class EnergyAudit:
    """Balance of work and energy of the system, summed over time [J].

    Attributes:
        work_j: Work of the drones' wrenches (and of a load guide).
        absolute_work_j: Sum of the absolute work, the scale of the audit.
        loss_j: Energy lost in joints (damping, friction), air and ground.
        break_j: Strain energy of cable segments that broke or were cut.
        start_j: Kinetic and potential energy at the beginning.
        energy_j: Kinetic and potential energy now.
    """

    work_j: float = 0.0
    absolute_work_j: float = 0.0
    loss_j: float = 0.0
    break_j: float = 0.0
    start_j: float = 0.0
    energy_j: float = 0.0

    @property
    def missing_j(self) -> float:
        """Work that is not accounted for."""
        return self.work_j - self.loss_j - self.break_j - (self.energy_j - self.start_j)

    @property
    def spurious_j(self) -> float:
        """Energy that came from nothing; 0 if some only went."""
        return max(0.0, -self.missing_j)

    @property
    def relative_error(self) -> float:
        """Missing work over the absolute work."""
        return self.missing_j / max(self.absolute_work_j, 1e-12)

    def add(self, later: EnergyAudit) -> None:
        """Append the audit of the time that follows."""
        self.work_j += later.work_j
        self.absolute_work_j += later.absolute_work_j
        self.loss_j += later.loss_j
        self.break_j += later.break_j
        self.energy_j = later.energy_j


class SimulationDiverged(MuslsError):  # noqa: N818 (the name says what happened)
    """The state became non-finite or left all physical bounds."""


@dataclass(eq=False, repr=False)
class PlantState(BodyMotion):
    """State after the last step. Row 0 is the load, row i drone i. The plant writes in place.

    Row 0 of a system without a load is the middle node of its first cable, upright. Accelerations
    are means over the last step.

    Attributes:
        motion: Memory behind the views, (1 + n, 16).
        rotor_speed_rad_s: (n, n_rotors).
        cable_force_n: Force in each cable at its ends 1 and 2 (the load and the drone of a slung
            load), in the frame of the link there: x is the tension (negative: the chain pushes), y
            and z the force across, (n_cables, 2, 3).
        tension_peak_n: Largest tension of each cable within the last step, either end,
            (n_cables,).
        anchor_motion: Anchors, columns as `motion`, (n_anchors, 16).
        anchor_wrench_n: Force and moment that each anchor needs to be where it is, or is pushed
            by, world, (n_anchors, 6) [N, N m].
        free_length_m: Unstretched length of each cable that is not on a winch, (n_cables,).
        reels: Whether free lengths change.
    """

    motion: Array
    rotor_speed_rad_s: Array
    cable_force_n: Array
    tension_peak_n: Array
    anchor_motion: Array = attribute(default_factory=lambda: np.zeros((0, MOTION_COLUMNS)))
    anchor_wrench_n: Array = attribute(default_factory=lambda: np.zeros((0, 6)))
    free_length_m: Array = attribute(default_factory=lambda: np.zeros(0))
    reels: bool = False

    @classmethod
    def zeros(cls, system: RigSystem) -> PlantState:  # type: ignore[override]
        """State with everything zero and upright."""
        n = system.n_drones
        cables = system.n_cables
        anchors = BodyMotion.zeros(len(system.anchors)).data
        return cls(
            BodyMotion.zeros(1 + n).data,
            np.zeros((n, system.n_rotors)),
            np.zeros((cables, 2, 3)),
            np.zeros(cables),
            anchors,
            np.zeros((len(anchors), 6)),
            np.array([cable.length_m for cable in system.cables]),
            bool(system.winches or system.pulleys),
        )

    def __post_init__(self) -> None:
        super().__init__(self.motion)

    @property
    def tension_n(self) -> Array:
        """Tension of each cable at its ends: at the load and at the drone, (n_cables, 2) [N]."""
        return self.cable_force_n[:, :, 0]


Pose = tuple[Array, Array]
"""Positions (n, 3) [m, ENU] and quaternions (n, 4) [w, x, y, z] of all drones."""


@dataclass(frozen=True)
class PrescribedMotion:
    """Motion that is forced upon the drones, as in a replay of a recorded flight.

    Attributes:
        pose: Pose of all drones at a time [s].
        load_wrench: Additional wrench on the load at a time [s]: moment about its centre of mass
            and force, world, (6,) [N m, N]; None for none.
    """

    pose: Callable[[float], Pose]
    load_wrench: Callable[[float], Array] | None = None


@dataclass(repr=False)
class PlantInputs(ShownResult):
    """Inputs of a plant during one control period. Row 0 is the load.

    The arrays keep their memory: a caller sets an input in place.

    Attributes:
        rotor_command_rad_s: Commanded rotor speeds, (n_drones, n_rotors).
        wind_enu_m_s: Air velocity, world, (3,).
        wrench_body: Moment about the centre of mass and force on each body, in the body's frame:
            ideal thrust and moment of a controller, (1 + n_drones, 6) [N m, N].
        wrench_enu: Moment and force in the world frame: pushes, gusts, (1 + n_drones, 6) [N m, N].
        motion: Prescribed motion of the drones, None for drones that fly.
        anchor_motion: Position, velocity, acceleration of each anchor that is not pushed, and its
            turn, angular velocity and acceleration since the begin, at the begin and at the end
            of the period, world, (n_anchors, 2, 18).
        anchor_wrench_enu: Moment and force on each anchor that is pushed, (n_anchors, 6) [N m, N].
        winch: Drives at begin and end of the period, linear between: rate of the free length of a
            winch of kind feed [m/s], torque [N m] or speed [rad/s] of a drum, positive pays out,
            (n_winches, 2).
        winch_brake: Brake of each drum: 1 closed, 0 open, (n_winches,).
        winch_taken: Source of a winch's command: 1 an event, 0 the scenario, (n_winches,).
        winch_ramp: Value towards which an event moves `winch`, and the change in each period (0:
            it is there), (n_winches, 2).
        surface_motion: Pose of each surface that moves (shift, world; roll, pitch, yaw), and its
            rates, at the begin and the end of the period, (n_surfaces, 2, 12); none: they stand
            still.
    """

    rotor_command_rad_s: Array
    wind_enu_m_s: Array
    wrench_body: Array
    wrench_enu: Array
    motion: PrescribedMotion | None = None
    anchor_motion: Array = attribute(default_factory=lambda: np.zeros((0, 2, 18)))
    anchor_wrench_enu: Array = attribute(default_factory=lambda: np.zeros((0, 6)))
    winch: Array = attribute(default_factory=lambda: np.zeros((0, 2)))
    winch_brake: NDArray[np.int64] = attribute(default_factory=lambda: np.zeros(0, np.int64))
    winch_taken: NDArray[np.int64] = attribute(default_factory=lambda: np.zeros(0, np.int64))
    winch_ramp: Array = attribute(default_factory=lambda: np.zeros((0, 2)))
    surface_motion: Array = attribute(default_factory=lambda: np.zeros((0, 2, 12)))

    @classmethod
    def zeros(cls, system: RigSystem, surfaces: int = 0) -> PlantInputs:
        """Inputs with rotors at rest and still air; `surfaces`: number of those that move."""
        n = system.n_drones
        anchors = len(system.anchors)
        winches = len(system.winches)
        motion = np.zeros((anchors, 2, 18))
        for row, anchor in zip(motion, system.anchors, strict=True):
            row[:, :3] = anchor.position_enu_m
        return cls(
            np.zeros((n, system.n_rotors)),
            np.zeros(3),
            np.zeros((1 + n, 6)),
            np.zeros((1 + n, 6)),
            anchor_motion=motion,
            anchor_wrench_enu=np.zeros((anchors, 6)),
            winch=np.zeros((winches, 2)),
            winch_brake=np.zeros(winches, np.int64),
            winch_taken=np.zeros(winches, np.int64),
            winch_ramp=np.zeros((winches, 2)),
            surface_motion=np.zeros((surfaces, 2, 12)),
        )


@dataclass(frozen=True)
class Reaction:
    """Reaction forces to prescribed motion of the drones, written in place.

    Attributes:
        end_force_n: Force that moves each cable's end, the mean over the last period, world,
            (n, 3).
        audit: Energy balance so far.
    """

    end_force_n: Array
    audit: EnergyAudit

    @classmethod
    def zeros(cls, system: RigSystem) -> Reaction:
        """Start without any change of the bodies."""
        return cls(np.zeros((system.n_drones, 3)), EnergyAudit())


REFINEMENTS = 12
"""Largest number of times that the step of a period of elastic cables is halved."""

_input = fields_of("inputs")

STEP_LAYOUT = Layout(
    [
        Number("period", float, "control period [s]", "plant.period_s"),
        Number("substeps", int, "steps in it", "plant.substeps"),
        Number("refinements", int, "how often steps may be halved, of elastic cables"),
        Number("prescribed", int, "whether drones are moved along paths"),
        Number("verdict", int, "on the period, 0 if it was as usual, see `Plant.account`"),
        Number("failed", int, "whether the state is not physical any more"),
    ],
    [
        Field("plant", (), None, "record of the plant's memory", "plant.record"),
        Field("command", ("n_drones", "n_rotors"), float, "rotor speeds that are commanded"),
        _input("wind", (3,), float, "velocity of the air", "wind_enu_m_s"),
        _input("wrench_body", ("n_bodies", 6), float, "moment and force on each body, its frame"),
        _input("wrench_enu", ("n_bodies", 6), float, "the same, world frame"),
        _input("anchor_motion", ("n_anchors", 2, 18), float, "motion of anchors"),
        _input("anchor_wrench", ("n_anchors", 6), float, "on pushed anchors", "anchor_wrench_enu"),
        _input("winch", ("n_winches", 2), float, "drives of winches"),
        _input("winch_brake", ("n_winches",), int, "whether the brake of a drum is closed"),
        _input("surface_motion", ("n_surfaces", 2, 12), float, "motion of surfaces"),
    ],
)
"""Inputs and results of a plant's compiled step: the begin of a session's record."""

STEP = STEP_LAYOUT.record

command_of = STEP_LAYOUT.opener("command")
wind_of = STEP_LAYOUT.opener("wind")
wrench_body_of = STEP_LAYOUT.opener("wrench_body")
wrench_enu_of = STEP_LAYOUT.opener("wrench_enu")
anchor_motion_of = STEP_LAYOUT.opener("anchor_motion")
anchor_wrench_of = STEP_LAYOUT.opener("anchor_wrench")
winch_of = STEP_LAYOUT.opener("winch")
winch_brake_of = STEP_LAYOUT.opener("winch_brake")
surface_motion_of = STEP_LAYOUT.opener("surface_motion")


class Change:
    """A sudden change of the system itself, such as a motor that fails, see the end of this module.

    Attributes:
        what: Name in messages.
        cable_models: Names of the cable models that can make it.
    """

    what: ClassVar[str] = "this change"
    cable_models: ClassVar[tuple[str, ...]] = ()


class LocalState:
    """Minimal coordinates of a plant around the state that it had when this was made.

    The load's rotation is a rotation vector from that state, world; rates are those of the
    coordinates, but angular velocities of free bodies.

    Attributes:
        names: Names of the coordinates; their rates follow in the same order, (n,).
    """

    names: tuple[str, ...]

    def move(self, shift: Array, rate_shift: Array) -> None:
        """Set the plant to the first state moved by these, (n,) each; rotors as they were."""
        raise NotImplementedError

    def read(self) -> tuple[Array, Array]:
        """Coordinates and rates minus those of the first state, (n,) each."""
        raise NotImplementedError

    def advance(self, inputs: PlantInputs, time_s: float) -> None:
        """Advance the plant by a short time, in one step, with the inputs held."""
        raise NotImplementedError


def given_motion(system: RigSystem, start: StartSpec) -> BodyMotion:
    """Motion of load and drones of a start of kind "state"."""
    drones = start.drones or ()
    if len(drones) != system.n_drones:
        raise ConfigError(f"start.drones has {len(drones)} entries for {system.n_drones} drones")
    if start.load is None:
        raise ConfigError("start.load is missing: give the position_enu_m of the load")
    bodies = (start.load, *drones)
    return BodyMotion.of(
        np.array([b.position_enu_m for b in bodies], float),
        np.array([b.attitude_wxyz for b in bodies], float),
        np.array([b.velocity_enu_m_s for b in bodies], float),
        np.array([b.omega_body_rad_s for b in bodies], float),
    )


@dataclass(frozen=True)
class PlantSetup:
    """Inputs of a plant's factory.

    Attributes:
        hanging: Equilibrium of the system in formation, and on the ground; None where no
            formation is flown.
        snaps_taut: Whether slack cables snap taut in the mission, which asks for finer steps.
        rig: Motion of anchors and winches; the plant needs to know which anchors are pushed.
        ground_height_enu_m: Height of level ground; None where it is one of the surfaces.
        surfaces: Surfaces that bodies touch besides: `WorldSpec.surfaces`.
    """

    system: RigSystem
    start: StartSpec
    physics: PhysicsSpec
    hanging: Hanging | None
    snaps_taut: bool = False
    rig: RigSpec = attribute(default_factory=RigSpec)
    ground_height_enu_m: float | None = 0.0
    surfaces: Sequence[AnyObstacle] = ()


@dataclass(frozen=True)
class EventRecord:
    """Something that happened.

    Attributes:
        time_s: Simulated time; what cables do by themselves is found within a control period.
        kind: Kind of event, one word: "cable_taut", "cable_slack", "cable_broken", ...
        what: Object and details, for people: "cable_2: impulse 0.31 N s, 0.012 J lost".
    """

    time_s: float
    kind: str
    what: str


class Plant(TiedToMemory):
    """Base of all plants: the physics of one system with one cable model.

    A plant has `step`, `cable_nodes_enu_m` and the attributes; the other methods say
    what it can do beyond that, and by default that is nothing.

    Attributes:
        changes: Kinds of changes it makes; None for all that name its cable model.
        state: State after the last step; the memory stays the same.
        period_s: Time that one call of `step` advances, the control period.
        physics_step_s: Time step of the physics, `period_s` / `substeps`.
        reaction: Reaction forces of prescribed motion.
        memory: All numbers that a compiled step reads and writes, (words,).
        record: Record in the memory that leads to all else, (1,), if there is a compiled step.
        layout: Layout of that memory.
        shape_table: Attribute with tables, and the one of which cables' shapes are made.
        rotors: The drones' rotors, (n_drones, n_rotors) of `ROTOR`.
        tree: Mechanism whose joint angles are `positions`, as it is now (another object when
            something has come loose); None for a model without joints.
    """

    cable_model: str
    changes: tuple[type[Change], ...] | None = None
    system: RigSystem
    state: PlantState
    period_s: float
    physics_step_s: float
    substeps: int
    reaction: Reaction
    memory: Array
    record: NDArray[Any] = np.zeros(1)
    layout: ClassVar[Layout]
    shape_table: ClassVar[tuple[str, str]]
    rotors: NDArray[Any]
    tree: Tree | None = None
    _periods = 0  # flown, to be counted by each plant
    _motion: PrescribedMotion | None = None

    def __init__(self, system: RigSystem, longest_step_s: float, gravity_m_s2: float) -> None:
        """Divide the control period into the fewest steps that are not longer."""
        self.system = system
        self.gravity_m_s2 = gravity_m_s2
        self.period_s = CONTROL_PERIOD_S
        self.substeps = substeps(longest_step_s)
        self.physics_step_s = self.period_s / self.substeps
        self.reaction = Reaction.zeros(system)

    @property
    def address(self) -> int:
        """Address of the plant's record, for compiled code."""
        return int(self.record.ctypes.data)

    @property
    def time_s(self) -> float:
        """Simulated time, exact multiple of the period [s]."""
        return self._periods * self.period_s

    @property
    def refined_periods(self) -> int:
        """Periods that needed finer steps than the usual."""
        return 0

    @property
    def compiled_step(self) -> CompiledStage | None:
        """Compiled function of a `STEP` that does `step` but for `account`; None: Python is needed.

        Then the session calls it as one of its compiled stages, and `account` alone.
        """
        return None

    def _move(self, move: CompiledStage, inputs: PlantInputs, **others: Any) -> int:
        """Advance in compiled code with the inputs held, see `STEP`; returns the verdict.

        `others`: fields of the `STEP` that are not the plant's own, and arrays.
        """
        command = np.ascontiguousarray(inputs.rotor_command_rad_s)
        record = np.zeros(1, STEP)
        owner = {"plant": self, "inputs": inputs}
        arguments = {"command": command, **others}
        values = STEP_LAYOUT.numbers_of(owner) | STEP_LAYOUT.arrays_of(owner) | arguments
        STEP_LAYOUT.fill(record, values | {"refinements": REFINEMENTS})
        move(record.ctypes.data)
        return int(record["verdict"][0])

    def _has(self, step: object) -> bool:
        """Whether `step` is this one, replaced neither by a subclass nor on the instance."""
        return getattr(self.step, "__func__", None) is step

    @property
    def spurious_energy_j(self) -> float | None:
        """Energy that the integration made from nothing so far [J]; None where it is not known."""
        return None if self.audit is None else self.audit.spurious_j

    @property
    def audit(self) -> EnergyAudit | None:
        """Balance of work and energy since the start, None where the plant keeps none."""
        return None

    @cached_property
    def happened(self) -> list[EventRecord]:
        """Events of the cables, in order of time.

        The plant appends to it during a step; the caller of `step` empties it.
        """
        return []

    @property
    def positions(self) -> Array:
        """Coordinates of `tree`: the load's rotation vector and place, joint angles."""
        return np.zeros(0)

    def lead(self) -> None:
        """Write the places of tables into the record, where these may lie elsewhere now."""

    def set_rotor_speeds(self, speed_rad_s: Array) -> None:
        """Set the rotor speeds, (n_drones, n_rotors), and find the forces of the start again."""
        self.state.rotor_speed_rad_s[:] = speed_rad_s

    def start_driving(self, inputs: PlantInputs) -> None:
        """Take the anchors and winches of the first period into account in the start's state."""

    def step(self, inputs: PlantInputs) -> None:
        """Advance one control period with the inputs held.

        Raises:
            SimulationDiverged: The state is not physical any more.
            ConfigError: An input that this cable model does not have.
        """
        raise NotImplementedError

    def account(self, verdict: int, inputs: PlantInputs, periods: int = 1) -> None:
        """Take note of periods that compiled code advanced, and of how the last of them ended.

        The periods before it were normal and need no report.

        Raises:
            SimulationDiverged: The state is not physical any more.
        """
        raise NotImplementedError

    def apply(self, change: Change) -> None:
        """Change the system between two periods.

        Raises:
            ConfigError: This cable model cannot do it; names one that can.
        """
        self.check(change)
        if isinstance(change, RotorEfficiency):
            scale_rotors(self.system, self.rotors, change)
        elif isinstance(change, LoadMass):
            self._change_load(change.mass_kg)
        elif isinstance(change, CutCable | ReleaseHook | AttachHook):
            check_cut(self.system, change)
            self._change_cable(change)
        else:
            raise NotImplementedError

    def _change_load(self, mass_kg: float) -> None:
        """Change the load's mass; velocities stay, and the energy balance restarts."""
        raise NotImplementedError

    def _change_cable(self, change: CutCable | ReleaseHook | AttachHook) -> None:
        """Part a cable, or hang it on the load again; what is so already stays so."""
        raise NotImplementedError

    def check(self, change: Change) -> None:
        """Refuse a change that this plant cannot make (raises ConfigError)."""
        if self.cable_model not in change.cable_models:
            able = " or ".join(change.cable_models)
            raise ConfigError(
                f"{change.what}: the cable model '{self.cable_model}' cannot do this; "
                + (f"choose cable_model: {able}" if able else "no cable model can")
            )
        if self.changes is not None and not isinstance(change, self.changes):
            raise ConfigError(
                f"{change.what}: this physics.engine cannot do it; choose physics.engine: embedded"
            )

    @property
    def shaping(self) -> NDArray[Any]:
        """The part of the memory of which cables' shapes are made."""
        tables, name = self.shape_table
        table: NDArray[Any] = getattr(getattr(self, tables), name)
        return table

    def recalled(self, copies: Array) -> Self:
        """Copy of this plant whose cable shapes are those in `copies` of `shaping`, (times, words).

        `cable_nodes_enu_m` and `cable_end_rotations` have the times as their first axis.
        """
        tables, name = self.shape_table
        table = copies.view(self.shaping.dtype).reshape(len(copies), *self.shaping.shape)
        then = object.__new__(type(self))
        vars(then).update(vars(self) | {tables: getattr(self, tables).replaced(**{name: table})})
        return then

    def cable_nodes_enu_m(self, index: int) -> Array:
        """Nodes of cable `index` (from 0) from the load to the drone, (nodes, 3)."""
        raise NotImplementedError

    def segment_tensions_n(self, index: int) -> Array:
        """Tension in the middle of each link or segment of cable `index` (from 0), (links,) [N].

        From end 1 (the load) to end 2. Here: of cables that are straight.
        """
        links = self.system.cables[index].links
        low, high = self.state.tension_n[index]
        tensions: Array = low + (high - low) * (np.arange(links) + 0.5) / links
        return tensions

    def cable_end_rotations(self, index: int) -> Array | None:
        """Rotations of a cable's rigid links at load and drone, world, (2, 3, 3), if it has any."""
        return None

    def hook_is_open(self, cable: int) -> bool:
        """Whether a cable (from 0) has let go of the load."""
        return False

    def hook_gap(self, cable: int) -> tuple[float, float]:
        """Distance and relative speed of an open hook and its place on the load [m, m/s]."""
        return np.inf, np.inf

    def parts_at_n(self, cable: int) -> float | None:
        """Tension at which a cable (from 0) parts; None: it holds whatever it is pulled with."""
        return None

    def local_state(self) -> LocalState:
        """Coordinates around the present state, for linear models.

        Raises:
            ConfigError: This plant has none, or not in this state.
        """
        raise ConfigError(
            f"cable_model = {self.cable_model}: no linear model; choose rigid_links (engine "
            "embedded), massless or rigid_rods"
        )

    def winch_input(self, winch: int) -> str | None:
        """Command of a winch (from 0): feed_m_s, torque_n_m or speed_rad_s; None for no winches."""
        return None


def substeps(step_s: float) -> int:
    """Number of equal physics steps in a control period, each at most `step_s` long."""
    return max(1, int(np.ceil(CONTROL_PERIOD_S / step_s - 1e-9)))


# ---------- The longest step that is as accurate as asked for, `physics.accuracy`
#
# What decides is how far a step goes into the fastest swing of load and drones, with the frequency
#
#     w = sqrt(g / L (1 + m / M)),
#
# L the shortest cable, m the mass of load and cables, M that of the drones. In 2 s of a free swing
# from 40 degrees a method of order p is off by at most 2 (w h)^p of the way, measured for the
# plants and for cables from 0.5 to 2.4 m (`test_accuracy.py`). Flights that an autopilot holds are
# ten times better. Jerks are not counted: `musls fly --verify` shows their effect.

SWING_ERROR = 2.0
"""Error of a swing as a share of its way, over (w h)^p."""


def swing_rad_s(system: RigSystem, gravity_m_s2: float) -> float:
    """Frequency of the fastest swing w [rad/s]."""
    shortest = min(cable.length_m for cable in system.cables)
    drones = sum(drone.mass_kg for drone in system.drones)
    between = 1.0 + system.carried_mass_kg / drones if drones else 1.0
    return float(np.sqrt(gravity_m_s2 / shortest * between))


def accurate_step_s(system: RigSystem, physics: PhysicsSpec, order: int) -> float:
    """Longest step, up to the control period, for a plant that steps by a method of this order."""
    turn = (physics.accuracy / SWING_ERROR) ** (1.0 / order)
    return float(min(turn / swing_rad_s(system, physics.gravity_m_s2), CONTROL_PERIOD_S))


def step_s(system: RigSystem, physics: PhysicsSpec, order: int) -> float:
    """Step of a plant that is stable with any: the one given, or as accurate as asked for."""
    setting = physics.step_size_s
    return accurate_step_s(system, physics, order) if isinstance(setting, str) else setting


# ---------- Sudden changes of a system that a plant can be asked to make, see `Plant.apply`


@dataclass(frozen=True)
class RotorEfficiency(Change):
    """A rotor gives less thrust and torque from now on.

    Attributes:
        drone: Number of the drone, from 1.
        rotor: Number of the rotor, from 1; None for all rotors of the drone.
        efficiency: Share of thrust and torque that is left, 0 for a stopped rotor.
    """

    what: ClassVar[str] = "rotor failure"
    cable_models: ClassVar[tuple[str, ...]] = ("rigid_links", "elastic", "massless", "rigid_rods")

    drone: int
    rotor: int | None
    efficiency: float

    @property
    def rows(self) -> tuple[int, slice]:
        """Index of what it concerns in arrays (n_drones, n_rotors)."""
        some = slice(None) if self.rotor is None else slice(self.rotor - 1, self.rotor)
        return self.drone - 1, some


@dataclass(frozen=True)
class LoadMass(Change):
    """The load has another mass from now on; its inertia changes in proportion."""

    what: ClassVar[str] = "load_mass"
    cable_models: ClassVar[tuple[str, ...]] = ("rigid_links", "elastic")

    mass_kg: float


@dataclass(frozen=True)
class CutCable(Change):
    """A cable parts in one of its segments from now on; both pieces move on.

    A chain of rigid links parts at the joint at the lower end of the link (the segment). A massless
    cable is gone.

    Attributes:
        cable: Number of the cable, from 1.
        segment: Number of the segment, from 1 at end 1 of the cable (the load).
    """

    what: ClassVar[str] = "cable_cut"
    cable_models: ClassVar[tuple[str, ...]] = ("rigid_links", "elastic", "massless")

    cable: int
    segment: int


@dataclass(frozen=True)
class ReleaseHook(Change):
    """The hook at an end of a cable opens; the cable goes with what holds its other end.

    Elastic cables part in the segment next to the hook.

    Attributes:
        cable: Number of the cable, from 1.
        at: "load" or "drone".
    """

    what: ClassVar[str] = "release"
    cable_models: ClassVar[tuple[str, ...]] = ("rigid_links", "elastic", "massless")

    cable: int
    at: str


@dataclass(frozen=True)
class AttachHook(Change):
    """The open hook of a cable closes on its place at the load.

    In rigid links an inelastic impact; elastic and massless cables are slack then, and nothing
    changes.

    Attributes:
        cable: Number of the cable, from 1.
    """

    what: ClassVar[str] = "attach"
    cable_models: ClassVar[tuple[str, ...]] = ("rigid_links", "elastic", "massless")

    cable: int


def check_cut(system: RigSystem, change: CutCable | ReleaseHook | AttachHook) -> None:
    """Refuse a change of a cable or segment that is not there with a ConfigError."""
    what = change.what
    if not 1 <= change.cable <= len(system.cables):
        raise ConfigError(
            f"{what}: cable {change.cable}: there are cables 1 to {len(system.cables)}"
        )
    links = system.cables[change.cable - 1].links
    if isinstance(change, CutCable) and not 1 <= change.segment <= links:
        raise ConfigError(
            f"{what}: segment {change.segment}: cable {change.cable} has segments 1 to {links}"
        )


def scale_rotors(system: RigSystem, rotors: NDArray[Any], change: RotorEfficiency) -> None:
    """Make the change in a plant's table of rotors, (n_drones, n_rotors) of `ROTOR`.

    The change is relative to the intact rotor, even after earlier failures.
    """
    n_drones, n_rotors = rotors.shape
    if not 1 <= change.drone <= n_drones:
        raise ConfigError(f"drone {change.drone}: {system.name} has drones 1 to {n_drones}")
    if change.rotor is not None and not 1 <= change.rotor <= n_rotors:
        raise ConfigError(f"rotor {change.rotor}: the drones have rotors 1 to {n_rotors}")
    if not 0.0 <= change.efficiency <= 1.0:
        raise ConfigError(f"efficiency {change.efficiency:g}: must be between 0 and 1")
    intact = rotor_records(system)
    for name in ("thrust", "torque"):
        rotors[name][change.rows] = change.efficiency * intact[name][change.rows]
