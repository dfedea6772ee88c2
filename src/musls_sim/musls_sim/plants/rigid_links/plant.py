"""The plant of the seed paper: rigid-link cables, articulated bodies from ground to ground.

One tree of bodies, rooted at the load, stepped to second order (`integrator`). Where a period turns
out to have been too coarse for what happened in it, it is repeated with finer steps.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from musls_description.config.errors import ConfigError
from musls_description.hanging.tree import STOP_RAD, Configuration, Tree, build_tree
from musls_description.numerics.arrays import Array, Records
from musls_description.numerics.compiled import CompiledStage
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.numerics.layout import Tables
from musls_description.numerics.rotations import product, rotation_vector
from musls_description.system.obstacles import AnyObstacle
from musls_description.system.slung_system import RigSystem, slung_system
from musls_sim.plants.interface import (
    SPEED_LIMIT_M_S,
    AttachHook,
    CutCable,
    EnergyAudit,
    EventRecord,
    LocalState,
    Plant,
    PlantInputs,
    PlantState,
    PrescribedMotion,
    ReleaseHook,
    SimulationDiverged,
)
from musls_sim.plants.rigid_body import TOUCHING, fastest_body
from musls_sim.plants.rigid_links.constraints.closing import closings_hold
from musls_sim.plants.rigid_links.mechanism import (
    LAYOUT,
    SHOWN,
    build_records,
    drift,
    own_positions_of,
    positions_of,
    set_own_positions,
    set_positions,
    set_rotations,
    share_shown,
    take_over,
)
from musls_sim.plants.rigid_links.period import (
    AT_STOP,
    DOUBTFUL,
    MEMORY_S,
    NOT_FINITE,
    OK,
    RUNAWAY,
    SPURIOUS_ENERGY,
    TOO_COARSE,
    advance_guided,
    find_cable_forces,
    move_plant,
    restart,
    rewind,
)
from musls_sim.plants.rigid_links.pieces import Pieces, closed, opened
from musls_sim.plants.rigid_links.step_control import Levels, settle
from musls_sim.specs.physics import CONTROL_PERIOD_S

ENERGY_SHARE = 0.01
ENERGY_FLOOR_J = 0.002
"""Work of a control period that may be unaccounted for where drones are moved along paths: a share
of the work and a little more. A period with more is repeated with finer steps."""

INSTANT_S = 1e-9
"""Step in which nothing moves, to find the forces of a state."""

TURNED_ROUND = np.array([-1.0, -1.0, 1.0])
"""Signs of the axes of a link that is seen from its other end."""

START_SLACK_RAD = np.radians(5.0)
"""Largest angle beyond a stop at a start."""

# ---------- Messages where a period is doubted: what is wrong, the cause, and what helps
#
# What helps is tried: the plant flies on from where the doubt arose, a while for each remedy, with
# its inputs held; the message names those that at least halve what the integration makes of itself.

WEIGHTS = 20.0
"""Outside forces of so many times the weight of all bodies are named as the cause of a failure."""

MOST_GUIDED = 3
"""Number of taut cables above which the places of drones on paths may need lengths that no pose
has."""

TRIAL_PERIODS = 60
"""Control periods for which a remedy is tried, a quarter of a second."""

HELPS = 0.5
"""Share of the error of the untouched plant that a remedy may leave."""


def message(plant: RigidLinksPlant, inputs: PlantInputs, verdict: int) -> str:
    """Error message for a verdict of `period`: the failure, its cause, and a remedy."""
    when = f"at {plant.time_s:.3f} s"
    t = plant.records
    if verdict == AT_STOP:  # nothing holds a rope so
        return (
            f"{when}: the cable below {plant.tree.bodies[int(t.system[0]['stopped'])].name} is "
            f"bent sideways by {np.degrees(STOP_RAD):.0f} degrees, and the stop of its universal "
            "joint throws it back; choose twist: free, whose joints have no stops, or more links "
            "per cable"
        )
    cause = _cause(plant, inputs)
    if verdict == NOT_FINITE:
        return f"forces are not finite {when}: {cause or _jam(plant)}"
    if verdict == RUNAWAY:
        worst, speed = fastest_body(t.bodies)
        what = "is not finite" if not np.isfinite(speed) else f"moves at {speed:.3g} m/s"
        name = plant.tree.bodies[worst].name
        return f"simulation diverged {when}: {name} {what}; {cause or _calmer(plant)}"
    if verdict == TOO_COARSE:
        tension = plant.state.tension_peak_n
        cable = int(tension.argmax())
        return (
            f"{when}: the finest step of {plant.levels.step_s[-1]:.2g} s is too long for what "
            f"happens (tension of cable_{cable + 1} {tension[cable]:.3g} N, joint rates up to "
            f"{np.abs(plant.velocities[6:]).max():.3g} rad/s), the results are doubtful from here "
            f"on; {cause or remedies(plant, inputs)}"
        )
    diverged = "simulation diverged " * (verdict == SPURIOUS_ENERGY)
    return f"{diverged}{when}: {_error(plant)}; {cause or remedies(plant, inputs)}"


def _error(plant: RigidLinksPlant) -> str:
    """The largest error of the integration: energy made or lost, or impulse without a source."""
    ledger = plant.records.system[0]["ledger"]
    exchanged_j = ledger["kinetic"] + ledger["exchanged"]
    energies = {"made": ledger["spurious"], "lost": ledger["lost"]}
    kind = max(energies, key=lambda name: energies[name])
    energy_share = energies[kind] / max(exchanged_j, 1e-9)
    force_n = float(np.linalg.norm(ledger["recent_impulse"])) / MEMORY_S
    force_share = force_n / _weight_n(plant)
    if force_share > energy_share:
        return (
            f"impulse without a source: the integration pulls with {force_n:.3g} N, "
            f"{100.0 * force_share:.2g} % of the weight"
        )
    what = f"spurious energy: the integration has made {energies[kind]:.3g} J from nothing"
    if kind == "lost":
        what = f"lost energy: {energies[kind]:.3g} J went in the integration"
    return f"{what}, {100.0 * energy_share:.2g} % of the {exchanged_j:.3g} J that were exchanged"


# ---------- Remedies


def remedies(plant: RigidLinksPlant, inputs: PlantInputs) -> str:
    """The remedies that help here, found by trying them; or that none does."""
    if plant.records.system[0]["guided"]:
        return _calmer(plant)
    error = _error_of_trial(plant, inputs, plant.substeps)
    helpful = []
    if _more_damping(plant) is not None:
        with _damped(plant):
            if _error_of_trial(plant, inputs, plant.substeps) < HELPS * error:
                helpful.append("leave out system.cables.joint (usual damping of its joints)")
    if _error_of_trial(plant, inputs, 2 * plant.substeps) < HELPS * error:
        helpful.append(f"physics.step_size_s: {plant.physics_step_s / 2.0:g}")
    if helpful:
        return f"what helps here: {', or '.join(helpful)}"
    return f"{_bare(plant)}neither usual joint damping nor half the step helps here: {_others()}"


def _others() -> str:
    return "choose a calmer motion, or cable_model: elastic"


def _error_of_trial(plant: RigidLinksPlant, inputs: PlantInputs, substeps: int) -> float:
    """Energy made or lost, and work of forces without a source, in a trial; the plant goes back."""
    memory = plant.memory.copy()
    levels = plant.levels.record.copy()
    plant.levels.record["substeps"] = substeps
    try:
        restart(plant.address)
        for _ in range(TRIAL_PERIODS):
            if plant._move(move_plant, inputs) in (RUNAWAY, NOT_FINITE):
                return math.inf
        ledger = plant.records.system[0]["ledger"]
        lift_j = float(np.linalg.norm(ledger["recent_impulse"])) * plant.gravity_m_s2
        return float(ledger["spurious"] + ledger["lost"]) + lift_j
    finally:
        plant.memory[:] = memory
        plant.levels.record[:] = levels


def _more_damping(plant: RigidLinksPlant) -> Array | None:
    """Damping of all coordinates with at least the usual one in cables; None if they have it."""
    t = plant.records
    damping = plant.records.coordinates["damping"].copy()
    for body in t.bodies[1:]:
        joint = slice(int(body["first"]), int(body["first"] + body["freedom"]))
        if body["parent"] >= 0:
            usual = plant.system.cables[int(body["cable"])].usual_joint_damping_n_m_s_rad
            damping[joint] = np.maximum(damping[joint], usual)
    return None if np.array_equal(damping, t.coordinates["damping"]) else damping


@contextmanager
def _damped(plant: RigidLinksPlant) -> Iterator[None]:
    """The plant with at least the usual damping in its joints."""
    own = plant.records.coordinates["damping"].copy()
    plant.records.coordinates["damping"] = _more_damping(plant)
    try:
        yield
    finally:
        plant.records.coordinates["damping"] = own


def _calmer(plant: RigidLinksPlant) -> str:
    """Cures where the state is beyond a trial; a shorter step is one only where none is refined."""
    if not plant.levels.last:
        return (
            f"choose a smaller physics.step_size_s (now {plant.physics_step_s:g} s), or "
            "physics.refine: true, which halves it where needed"
        )
    return f"{_bare(plant)}{_others()}"


def _bare(plant: RigidLinksPlant) -> str:
    """Sentence that joints without damping are the cause, or ""."""
    bare = [k for k, c in enumerate(plant.system.cables, start=1) if c.is_hardly_damped]
    if not bare:
        return ""
    return (
        f"the joints of cable_{bare[0]} have hardly any damping "
        f"({plant.system.cables[bare[0] - 1].joint_damping_n_m_s_rad:.2g} N m s/rad), and for a "
        "chain that cracks like a whip no time step is short enough; "
    )


# ---------- Causes


def _jam(plant: RigidLinksPlant) -> str:
    """Cause of forces that are not finite where all inputs are."""
    if plant.records.system[0]["guided"] and plant.system.n_drones > MOST_GUIDED:
        return (
            f"{plant.system.n_drones} taut cables that do not stretch seldom fit drones on "
            "given paths; choose cable model elastic or massless"
        )
    if _bare(plant):
        return _calmer(plant)
    jammed = "cables that jam in contact (physics.contact), or " * ("cables" in plant.contact)
    return f"{jammed}joints beyond their stops; {_calmer(plant)}"


def _cause(plant: RigidLinksPlant, inputs: PlantInputs) -> str:
    """The input that is no number, or that no time step could follow; empty if there is none."""
    values = {
        "rotor commands": inputs.rotor_command_rad_s,
        "wind": inputs.wind_enu_m_s,
        "wrench_body": inputs.wrench_body,
        "wrench_enu": inputs.wrench_enu,
    }
    if names := [name for name, numbers in values.items() if not np.isfinite(numbers).all()]:
        return f"check {' and '.join(names)}"
    wind = math.hypot(*inputs.wind_enu_m_s)
    if wind > SPEED_LIMIT_M_S:
        return (
            f"the wind of {wind:.3g} m/s is the cause: its drag is too large a force for these "
            f"bodies, and nothing here is made for winds beyond {SPEED_LIMIT_M_S:g} m/s"
        )
    weight_n = plant.gravity_m_s2 * plant.records.bodies["mass"].sum()
    for name in ("wrench_body", "wrench_enu"):
        force = np.abs(values[name][:, 3:]).max(axis=1)
        if force.max() > WEIGHTS * weight_n:
            body = plant.tree.bodies[plant.records.selected[force.argmax()]].name
            return (
                f"the force of {force.max():.3g} N on {body} ({name}) is the cause: all bodies "
                f"together weigh {weight_n:.3g} N"
            )
    return ""


def _weight_n(plant: RigidLinksPlant) -> float:
    """Weight by which forces without a source count, that of Earth where there is no gravity."""
    return float(plant.levels.limits["weight"][0, 0])


# ---------- The plant


@dataclass(frozen=True)
class ChainStart:
    """Start of a rig: a tree, and the attitudes of its bodies.

    Attributes:
        tree: Bodies and closings.
        rotations: Of the links only the x axes, along them, count, (n_bodies, 3, 3).
        places_enu_m: Of those that hang on nothing, (n_bodies, 3).
    """

    tree: Tree
    rotations: Array
    places_enu_m: Array


class RigidLinksPlant(Plant):
    """Chains of rigid links, see `interface.Plant`.

    Attributes:
        whole: The tree as it was built.
        tree: The tree as it is, with what has come loose.
        records: Bodies, coordinates and all else, see `mechanism.Tables`.
        contact: Bodies that touch ground and obstacles, `physics.contact`.
        happened: Cables that broke, see `interface.Plant`.
        bends_evenly: Whether joints of cables that are free to twist are even, see `mechanism`.
    """

    cable_model = "rigid_links"
    layout = LAYOUT
    shape_table = "records", "bodies"
    bends_evenly = True
    tree: Tree

    def __init__(
        self,
        system: RigSystem,
        start: Configuration | ChainStart,
        *,
        physics_step_s: float | None = None,
        gravity_m_s2: float = STANDARD_GRAVITY_M_S2,
        ground_height_enu_m: float | None = 0.0,
        refine: bool = True,
        accuracy: float = 1e-3,
        rotor_speed_rad_s: Array | None = None,
        obstacles: Sequence[AnyObstacle] = (),
        contact: Collection[str] = TOUCHING,
        inextensible: bool = False,
    ) -> None:
        """Build the records in the start configuration, at rest.

        The default time step is the control period. Where a cable's tension or a joint's rate
        turns out too large for it, `refine` halves it (repeatedly) for that period.
        Rotor speeds, (n_drones, n_rotors), are 0 by default; a ground height of None means no
        ground; `contact` and `inextensible` are those of `physics`. A rig starts as a `ChainStart`.
        """
        super().__init__(system, physics_step_s or CONTROL_PERIOD_S, gravity_m_s2)
        self.levels = Levels(
            system, self.period_s, self.substeps, gravity_m_s2, refine=refine, accuracy=accuracy
        )
        self._ground = ground_height_enu_m
        self._obstacles = obstacles
        self.contact = contact
        self._inextensible = inextensible
        if isinstance(start, ChainStart):
            self.whole = self.tree = start.tree
        else:
            self.whole = self.tree = build_tree(slung_system(system, "cable_model = rigid_links"))
            check_stops(system, self.tree, start.coordinates, evenly=self.bends_evenly)
        self.memory, self.records = self._records_of(self.tree)
        self.record = self.records.system
        self.rotors = self.records.rotors
        self.levels.record = self.records.levels
        self.levels.limits = self.records.limits
        self._doubts: set[int] = set()
        self._spurious_before_j = 0.0
        self._fragile = any(self.parts_at_n(i) is not None for i in range(system.n_cables))
        t = self.records
        first_anchor = 1 + system.n_drones
        self.state = PlantState(
            t.shown[:first_anchor],
            t.speed,
            t.force,
            t.peak,
            t.shown[first_anchor:],
            np.zeros((len(system.anchors), 6)),
            np.array([cable.length_m for cable in system.cables]),
        )
        for row, anchor in zip(self.state.anchor_motion, system.anchors, strict=True):
            row[:3] = anchor.position_enu_m
            row[6:10] = anchor.orientation_wxyz
        if rotor_speed_rad_s is not None:
            t.speed[:] = rotor_speed_rad_s
        if isinstance(start, ChainStart):
            set_rotations(t, start.rotations, start.places_enu_m)
        else:
            set_positions(t, start.coordinates)
        self.start_moving(np.zeros(len(t.rate)))

    def _records_of(self, tree: Tree) -> tuple[Array, Tables]:
        memory, records = build_records(
            self.system,
            tree,
            gravity_m_s2=self.gravity_m_s2,
            ground_height_enu_m=self._ground,
            ahead_s=self.period_s,
            obstacles=self._obstacles,
            contact=self.contact,
            inextensible=self._inextensible,
            even=self.bends_evenly,
            levels=self.levels,
        )
        if len(records.closings):
            closings_hold.address  # noqa: B018 (compiles it: few rigs need it)
        return memory, records

    def start_moving(self, rates: Array) -> None:
        """Give all coordinates their rates, before the first step.

        Angular and linear velocity of the load (world), joint rates, (n_dofs,).
        """
        self.records.rate[:] = rates
        find_cable_forces(self.address, INSTANT_S)
        self.records.peak[:] = np.maximum(self.records.force[:, :, 0].max(axis=1), 0.0)
        self.reset_counters()

    def set_rotor_speeds(self, speed_rad_s: Array) -> None:
        """Set the rotor speeds, (n_drones, n_rotors), and find the forces of the start again.

        See `interface.Plant`.
        """
        super().set_rotor_speeds(speed_rad_s)
        self.start_moving(self.velocities)

    def reset_counters(self) -> None:
        """Take over a state that was set in the records and restart the energy balance."""
        self._spurious_before_j = self.spurious_energy_j
        restart(self.address)

    @property
    def positions(self) -> Array:
        """Coordinates of `tree`: the load's rotation vector and place, joint angles, (n_dofs,)."""
        return positions_of(self.records)

    @property
    def velocities(self) -> Array:
        """Rates: the load's angular and linear velocity (world), those of joints, (n_dofs,).

        Those of even joints are along their axes, see `mechanism`.
        """
        return np.array(self.records.rate)

    @property
    def spurious_energy_j(self) -> float:
        """Energy that the integration made from nothing so far, see `period.account`."""
        return self._spurious_before_j + float(self.records.system[0]["ledger"]["spurious"])

    @property
    def compiled_step(self) -> CompiledStage | None:
        """Compiled function of a `STEP` that does `step` but for `account`; None: Python is needed.

        See `interface.Plant`.
        """
        plain = self._motion is None and not self._fragile
        return move_plant if plain and self._has(RigidLinksPlant.step) else None

    def step(self, inputs: PlantInputs) -> None:
        """Advance one control period, see `interface.Plant.step`."""
        if inputs.motion is not self._motion:
            self._prescribe(inputs.motion)
        if self._motion is None:
            self.account(self._move(move_plant, inputs), inputs)
        else:
            level = self.levels.present
            while not self._follow(level, self._motion, inputs):
                level += 1
                rewind(self.records.system[0])
                self.records.guide[:] = 0.0  # corrections of steps too long do not end
            settle(self.levels.record[0], level)
            self._periods += 1
        if self._fragile:
            self._break_overloaded()

    def account(self, verdict: int, inputs: PlantInputs, periods: int = 1) -> None:
        """See `interface.Plant.account`; the verdict is one of `period`'s."""
        self._periods += periods - 1
        if verdict != OK:
            self._act_on(verdict, inputs)
        self._periods += 1

    @property
    def refined_periods(self) -> int:
        """Periods that needed finer steps than the usual."""
        return int(self.levels.record["refined"][0])

    def _follow(self, level: int, motion: PrescribedMotion, inputs: PlantInputs) -> bool:
        """One period with the drones on paths, at a level of refinement; False: too coarse."""
        levels = self.levels
        count = levels.substeps[level]
        step_s = self.period_s / count
        paths = self._paths(motion, step_s, count)
        limits = levels.limits[level]
        command = np.ascontiguousarray(inputs.rotor_command_rad_s)
        input_arrays = command, inputs.wind_enu_m_s, inputs.wrench_body, inputs.wrench_enu
        verdict = advance_guided(self.address, step_s, input_arrays, limits, *paths)
        if verdict not in (OK, DOUBTFUL, AT_STOP) and level < levels.last:
            return False
        if not self._balanced(level):
            return False
        self._act_on(verdict, inputs)
        return True

    def _act_on(self, verdict: int, inputs: PlantInputs) -> None:
        """Raise or warn of what the finest step did not cure; warn once of each kind of doubt."""
        if verdict in (NOT_FINITE, RUNAWAY, SPURIOUS_ENERGY):
            raise SimulationDiverged(message(self, inputs, verdict))
        if verdict == AT_STOP:
            event = EventRecord(self.time_s, "joint_stop", message(self, inputs, verdict))
            self.happened.append(event)
        elif verdict in (DOUBTFUL, TOO_COARSE) and verdict not in self._doubts:
            if verdict == TOO_COARSE and not self.levels.last:
                return  # nothing was refined: the user has chosen the step
            self._doubts.add(verdict)
            text = message(self, inputs, verdict)
            warnings.warn(text, stacklevel=3)
            self.happened.append(EventRecord(self.time_s, "doubtful", text))

    # --------------------------------------------------------------- drones on prescribed paths

    def _prescribe(self, motion: PrescribedMotion | None) -> None:
        """Move the drones along given paths from now on, or let them fly again."""
        if motion is not None and self.tree is not self.whole:
            raise ConfigError("prescribed motion: a cable is cut, or a hook open")
        if motion is not None:
            slung_system(self.system, "prescribed motion")
        if motion is not None and not self.records.compliance.size:
            size = 6 * self.system.n_drones
            self.records = self.records.replaced(compliance=np.zeros((size, size)))
            self.lead()
        self._motion = motion
        system = self.records.system[0]
        audit = self.reaction.audit
        system["guided"] = motion is not None
        energy = float(system["ledger"]["energy"])
        audit.start_j += energy - audit.energy_j
        audit.energy_j = energy

    def _paths(self, motion: PrescribedMotion, step_s: float, count: int) -> tuple[Array, Array]:
        """Poses in the middle of each step and the next, (count + 1, n, 7), and load wrenches."""
        poses = np.zeros((count + 1, self.system.n_drones, 7))
        load = np.zeros((count, 6))
        for k in range(count + 1):
            middle_s = self.time_s + (k + 0.5) * step_s
            poses[k, :, :3], poses[k, :, 3:] = motion.pose(middle_s)
            if k < count and motion.load_wrench is not None:
                load[k] = motion.load_wrench(middle_s)
        poses[:, :, 3:] /= np.linalg.norm(poses[:, :, 3:], axis=-1, keepdims=True)
        return poses, load

    def _balanced(self, level: int) -> bool:
        """Whether the work of the period is accounted for; enters it into the audit if so."""
        system = self.records.system[0]
        audit = self.reaction.audit
        period = EnergyAudit(
            work_j=float(system["work"]),
            absolute_work_j=float(system["absolute_work"]),
            loss_j=float(system["loss"]),
            start_j=audit.energy_j,
            energy_j=float(system["ledger"]["energy"]),
        )
        limit_j = ENERGY_FLOOR_J + ENERGY_SHARE * period.absolute_work_j
        if level < self.levels.last and abs(period.missing_j) > limit_j:
            return False
        audit.add(period)
        links = self.records.bodies["rotation"][self.tree.drone - 1]
        force = self.state.cable_force_n[:, 1]
        self.reaction.end_force_n[:] = np.einsum("nij,nj->ni", links, force)
        return True

    # ------------------------------------------------- cables that are cut, let go and hooked up

    def _change_load(self, mass_kg: float) -> None:
        load = self.records.bodies[0]
        for name in ("inertia", "stiffness", "damping"):  # the contact's: it does not sink deeper
            load[name] *= mass_kg / load["mass"]
        load["mass"] = mass_kg
        self.reset_counters()

    def _change_cable(self, change: CutCable | ReleaseHook | AttachHook) -> None:
        i = change.cable - 1
        if isinstance(change, AttachHook):
            slung_system(self.system, "attach with cable_model = rigid_links")
            self._close(int(self.tree.first_link[i]))
        elif isinstance(change, CutCable):
            backwards = self.tree.backwards[i]
            links = self.system.cables[i].links
            self._open_link(i, links + 1 - change.segment if backwards else change.segment - 1)
        else:
            self._open_end(i, 0 if change.at == "load" else 1)

    def _open_end(self, cable: int, end: int) -> None:
        """Open the joint at end 1 (0) or 2 (1) of a cable."""
        at_first = end == self.tree.backwards[cable]
        self._open_link(cable, 0 if at_first else self.system.cables[cable].links)

    def _open_link(self, cable: int, link: int) -> None:
        """Open the joint before a link of a chain, from 0; after the last one for their number."""
        if link < self.system.cables[cable].links:
            self._open(int(self.tree.first_link[cable]) + link)
        elif (beyond := int(self.tree.beyond[cable])) >= 0:
            self._open(beyond)
        else:
            row = self.records.closings[-1 - beyond]
            row["open"] = 1
            row["force"] = 0.0
            self.reset_counters()

    def _open(self, body: int) -> None:
        if self.tree.bodies[body].parent >= 0:
            self.rebuild(opened(self.pieces, body, self.records))

    def _close(self, body: int) -> None:
        if self.tree.bodies[body].parent < 0:
            self.rebuild(closed(self.pieces, body, self.whole.bodies[body], self._placed))

    def _break_overloaded(self) -> None:
        """Part the cables whose tension was beyond their break force in the last period.

        At the end where it is larger: the links beyond it go on with their joints.
        """
        for i in range(len(self.system.cables)):
            tension = self.records.peak[i]
            limit = self.parts_at_n(i)
            if limit is None or tension <= limit:
                continue
            force = self.state.tension_n[i]
            end = 0 if force[0] >= force[1] else 1
            if self._is_open(i, end):
                continue
            self._open_end(i, end)
            where = self.system.ends(i)[end].body.partition("_")[0]
            what = f"cable_{i + 1}: broke at the {where} at {tension:.4g} N"
            self.happened.append(EventRecord(self.time_s, "cable_broken", what))

    def hook_is_open(self, cable: int) -> bool:
        """Whether a cable (from 0) has let go of the load; see `interface.Plant`."""
        return self._is_open(cable, 0)

    def _is_open(self, cable: int, end: int) -> bool:
        """Whether end 1 (0) or 2 (1) of a cable has let go."""
        body = int(self.tree.first_link[cable])
        if end != self.tree.backwards[cable]:
            body = int(self.tree.beyond[cable])
        if body < 0:
            return bool(self.records.closings["open"][-1 - body])
        return self.tree.bodies[body].parent < 0

    def parts_at_n(self, cable: int) -> float | None:
        """Tension at which a cable (from 0) parts; None: it holds whatever it is pulled with."""
        return self.system.cables[cable].elastic.break_force_n

    def hook_gap(self, cable: int) -> tuple[float, float]:
        """Distance and relative speed of an open hook and its place on the load [m, m/s].

        See `interface.Plant`.
        """
        body = self.tree.first_link[cable]
        load = self.records.bodies[0]
        hook = self.records.bodies[body]
        arm = load["rotation"] @ self.whole.bodies[body].joint_in_parent_position_m
        way = load["position"] + arm - hook["position"]
        speed = load["velocity"] + np.cross(load["omega"], arm) - hook["velocity"]
        return float(np.linalg.norm(way)), float(np.linalg.norm(speed))

    @property
    def pieces(self) -> Pieces:
        """The tree as it is now, and its motion."""
        return Pieces(self.tree, own_positions_of(self.records), self.velocities)

    def _built(self, pieces: Pieces) -> tuple[Array, Tables]:
        """Memory and records of other pieces of the system."""
        memory, records = self._records_of(pieces.tree)
        take_over(records, self.records)
        set_own_positions(records, pieces.positions)
        records.rate[:] = pieces.velocities
        return memory, records

    def _placed(self, pieces: Pieces) -> Tables:
        """Records of the bodies, all placed and moved."""
        records = self._built(pieces)[1]
        restart(records.system.ctypes.data)
        return records

    def rebuild(self, pieces: Pieces) -> None:
        """Continue with another tree; the energy balance restarts."""
        if self._motion is not None:
            raise ConfigError("a cable cannot part while drones are moved along a recording")
        self._spurious_before_j = self.spurious_energy_j
        self.memory, records = self._built(pieces)
        self.records = share_shown(records, self.records)
        self.tree = pieces.tree
        self.record = records.system
        self.reset_counters()

    def lead(self) -> None:
        """See `interface.Plant`: what is shown stays where it was when cables part."""
        LAYOUT.fill(self.record, {name: getattr(self.records, name) for name in SHOWN})

    def local_state(self) -> LocalState:
        """Coordinates around the present state, for linear models; see `interface.Plant`."""
        if self.tree is not self.whole:
            raise ConfigError("linear model: a cable is cut, or a hook open")
        return ChainState(self)

    # --------------------------------------------------------------------------- what it shows

    def cable_nodes_enu_m(self, index: int) -> Array:
        """Joints of a cable (from 0) from its end 1, at the load, to its end 2, (links + 1, 3)."""
        first = self.tree.first_link[index]
        last = first + self.system.cables[index].links - 1
        beyond = self.tree.beyond[index]
        bodies = self.records.bodies
        if beyond < 0 or self.tree.bodies[beyond].parent < 0:
            top = bodies[..., last]
            end = np.array([self.system.cables[index].link_length_m, 0.0, 0.0])
        else:
            top = bodies[..., beyond]
            end = self.tree.bodies[beyond].joint_in_child_position_m
        tip = top["position"] + top["rotation"] @ end
        joints = bodies["position"][..., first : last + 1, :]
        nodes = np.concatenate([joints, tip[..., None, :]], axis=-2)
        return nodes[..., ::-1, :] if self.tree.backwards[index] else nodes

    def segment_tensions_n(self, index: int) -> Array:
        """See `interface.Plant`; the mean of what the joints at both ends of a link transmit."""
        first = self.tree.first_link[index]
        bodies = self.records.bodies[first : first + self.system.cables[index].links]
        force = _joint_forces(bodies)
        beyond = int(self.tree.beyond[index])
        if beyond >= 0:
            end = _joint_forces(self.records.bodies[beyond : beyond + 1])
        else:
            end = -self.records.closings["force"][[-1 - beyond]]
        both = force + np.concatenate([force[1:], end])
        tensions: Array = -0.5 * np.einsum("ki,ki->k", both, bodies["rotation"][:, :, 0])
        return tensions[::-1] if self.tree.backwards[index] else tensions

    def cable_end_rotations(self, index: int) -> Array:
        """Rotations of a cable's links at its ends 1 and 2, world, (2, 3, 3).

        Their x axes lead from end 1 to end 2.
        """
        first = self.tree.first_link[index]
        ends = [first, first + self.system.cables[index].links - 1]
        if not self.tree.backwards[index]:
            return self.records.bodies["rotation"][..., ends, :, :]
        turned: Array = self.records.bodies["rotation"][..., ends[::-1], :, :] * TURNED_ROUND
        return turned


def _joint_forces(bodies: Records) -> Array:
    """Forces that the joints of bodies transmit to them, (k, 3); 0 of free ones."""
    coupling = bodies["coupling"].reshape(-1, 3, 3)
    force: Array = bodies["force"] + np.einsum("kij,ki->kj", coupling, bodies["angular"])
    inert = bodies["inert"][:, [[0, 1, 2], [1, 3, 4], [2, 4, 5]]]
    force += np.einsum("kij,kj->ki", inert, bodies["linear"])
    force[bodies["parent"] < 0] = 0.0
    return force


class ChainState(LocalState):
    """Load and joint angles around a state, see `interface.LocalState`."""

    def __init__(self, plant: RigidLinksPlant) -> None:
        self._plant = plant
        self._kept = plant.memory.copy()
        self._angle = plant.records.angle.copy()
        self._rate = plant.velocities
        self._begin = plant.records.bodies.copy()
        joints = [f"{body.name} {axis}" for body in plant.tree.bodies[1:] for axis in body.axes]
        turns, places = (tuple(f"load {kind}_{axis}" for axis in "xyz") for kind in ("turn", "p"))
        self.names = (*turns, *places, *joints)

    def move(self, shift: Array, rate_shift: Array) -> None:
        """Set the plant to the first state moved by these, (n,) each; rotors as they were.

        See `interface.LocalState`.
        """
        plant = self._plant
        t = self._plant.records
        plant.memory[:] = self._kept
        t.rate[:] = shift
        drift(t.system[0], 1.0)
        t.rate[:] = self._rate + rate_shift
        restart(plant.address)

    def read(self) -> tuple[Array, Array]:
        """Coordinates and rates minus those of the first state, (n,) each.

        See `interface.LocalState`.
        """
        t = self._plant.records
        shift = t.angle - self._angle
        for now, then in zip(t.bodies, self._begin, strict=True):
            here = shift[now["first"] : now["first"] + now["freedom"]]
            p = then["attitude"]
            q = now["attitude"]
            if now["parent"] < 0:
                here[:3] = rotation_vector(product(q, p * [1.0, -1.0, -1.0, -1.0]))
                here[3:] = now["place"] - then["place"]
            elif now["even"] and len(here) == 3:
                here[:] = rotation_vector(product(p * [1.0, -1.0, -1.0, -1.0], q))
            elif now["even"]:  # the way on a sphere, see `mechanism`
                way = q - (q @ p) * p
                here[:] = 2.0 * (way[2:] - way[0] / (1.0 + p[0]) * p[2:])
        return shift, t.rate - self._rate

    def advance(self, inputs: PlantInputs, time_s: float) -> None:
        """Advance the plant by a short time, in one step, with the inputs held.

        See `interface.LocalState`.
        """
        levels = self._plant.levels.record
        backup = levels.copy()
        levels["present"] = levels["last"] = 0
        levels["substeps"] = 1
        levels["period"] = time_s
        self._plant._move(move_plant, inputs)
        levels[:] = backup


def check_stops(system: RigSystem, tree: Tree, positions: Array, *, evenly: bool) -> None:
    """Refuse a start at rest, coordinates (n_dofs,), in which a stop would kick a cable."""
    angles = np.abs(positions[tree.first_coordinate + 1])
    angles[0] = 0.0  # the load
    for first, last, cable in zip(tree.first_link, tree.drone, system.cables, strict=True):
        if evenly and cable.twist == "free":  # no stops
            angles[first : last + 1] = 0.0
    worst = int(angles.argmax())
    if angles[worst] > STOP_RAD + START_SLACK_RAD:
        raise ConfigError(
            f"{tree.bodies[worst].name}: at the start the joint below it is bent sideways "
            f"by {np.degrees(angles[worst]):.0f} degrees, its stop is at "
            f"{np.degrees(STOP_RAD):.0f}: choose more links for cables that hang slack, and for a "
            "load that hangs tilted attachments around its centre of mass"
        )
