"""Load, drones and anchors on elastic cables, the plant `cable_model: elastic`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from musls_description.errors import ConfigError
from musls_description.spawn import Configuration, ground_spawn, slung_state
from musls_description.system import Pulley, RigSystem, SlungLoadSystem, Winch, slung_system
from musls_sim.plants.changes import (
    AttachHook,
    CutCable,
    LoadMass,
    ReleaseHook,
    RotorEfficiency,
    check_cut,
    scale_rotors,
)
from musls_sim.plants.drone_paths import PoseEnds
from musls_sim.plants.elastic.engine import Engine, Path
from musls_sim.plants.elastic.rig import Rig, RigPulley, RigWinch
from musls_sim.plants.elastic.start import (
    ANY_TORQUE_N_M,
    line_of,
    rig_parts,
    rotation_of,
    settle,
    slung_parts,
)
from musls_sim.plants.interface import (
    Change,
    EnergyAudit,
    Plant,
    PlantEvent,
    PlantInputs,
    PlantSetup,
    PlantState,
    Pose,
    PrescribedMotion,
    Reaction,
)
from musls_sim.plants.rigid_body import rotor_records
from musls_sim.plants.rigid_links.step_control import substeps
from musls_sim.preflight.trim import trim_speeds_rad_s
from musls_sim.scenario.physics import CONTROL_PERIOD_S, StartSpec
from musls_sim.scenario.rig import RigSpec
from musls_sim.session.driving import Signal

# ---------- Paths of prescribed drones from their poses


class PosePaths:
    """Motion of all drones within a period from their poses: cubic between the ends."""

    def __init__(self, pose: Callable[[float], Pose]) -> None:
        self._ends = PoseEnds(pose)
        self._begin_s = -1.0
        self.table = np.zeros((0, 2, 18))

    def update(self, begin_s: float, end_s: float) -> None:
        """Fill `table`, (n_drones, 2, 18) as `bodies.follow` takes it, for a period."""
        if begin_s == self._begin_s:
            return
        begin, end, turn = self._ends.of(begin_s, end_s)
        length = end_s - begin_s
        self.table = np.zeros((len(turn), 2, 18))
        moved = (
            (
                begin.position_enu_m,
                begin.velocity_enu_m_s,
                end.position_enu_m,
                end.velocity_enu_m_s,
            ),
            (0.0 * turn, begin.omega_enu_rad_s, turn, end.omega_enu_rad_s),
        )
        for at, (x0, v0, x1, v1) in zip((0, 9), moved, strict=True):
            mean = (x1 - x0) / length
            a0, a1 = 6.0 * mean - 4.0 * v0 - 2.0 * v1, 4.0 * v1 + 2.0 * v0 - 6.0 * mean
            self.table[:, 0, at : at + 9] = np.hstack([x0, v0, a0 / length])
            self.table[:, 1, at : at + 9] = np.hstack([x1, v1, a1 / length])
        self._begin_s = begin_s


class OnePath:
    """The motion of one drone out of `PosePaths`."""

    def __init__(self, poses: PosePaths, drone: int) -> None:
        self._poses, self._drone = poses, drone

    def __call__(self, begin_s: float, end_s: float) -> Array:
        """Motion at the begin and end of a period, (2, 18)."""
        self._poses.update(begin_s, end_s)
        row: Array = self._poses.table[self._drone]
        return row


# ---------- Winches and pulleys of a system in the elastic core

SPARE_SHARE = 1.01
"""Length on a feed that says nothing of it, over what the scenario pays out."""


def rig_winches(system: RigSystem, drives: RigSpec) -> list[RigWinch]:
    """The winches of a system."""
    made = []
    for i, winch in enumerate(system.winches, start=1):
        drive = drives.winches.get(f"winch_{i}")
        made.append(
            RigWinch(
                winch.cable - 1,
                winch.end - 1,
                winch.kind,
                stored_length_m=_stored(winch, drives, i),
                radius_m=winch.radius_m or 1.0,
                inertia_kg_m2=winch.inertia_kg_m2 or 0.0,
                axis=winch.axis,
                by_rate=drive is not None and drive.speed_rad_s is not None,
                friction_nm=winch.friction_n_m,
                viscous_nm_s=winch.damping_n_m_s_rad,
                layer_m=winch.layer_m,
                layer_turns=winch.layer_turns,
                keeps_stretch=winch.keeps_stretch,
            )
        )
    return made


def _pulley(pulley: Pulley) -> RigPulley:
    first, second = ((side.cable - 1, side.end - 1) for side in pulley.cables)
    return RigPulley(
        (first, second),
        radius_m=pulley.radius_m,
        inertia_kg_m2=pulley.inertia_kg_m2,
        axis=pulley.axis,
        friction_nm=pulley.friction_n_m,
        viscous_nm_s=pulley.damping_n_m_s_rad,
        capstan_friction=pulley.capstan_friction,
        efficiency=pulley.efficiency,
        extra_wrap_rad=pulley.extra_wrap_rad,
    )


def _stored(winch: Winch, drives: RigSpec, number: int) -> float:
    """Length on a winch; of a feed that does not say, as much as is asked for."""
    drive = drives.winches.get(f"winch_{number}")
    if winch.stored_length_m is not None:
        return winch.stored_length_m
    if drive is None or drive.feed_m_s is None:
        return 0.0
    times = np.array(drive.time_s)
    rates = Signal(drive.time_s, drive.feed_m_s)
    borders = np.unique(np.concatenate([[0.0], times]))
    if len(borders) < 2:
        return 0.0
    out = np.cumsum(rates.means(borders)[:, 0] * np.diff(borders))
    return float(max(0.0, SPARE_SHARE * out.max()))


class Reels:
    """Hands the inputs of winches on, and tells what becomes of the lengths."""

    def __init__(self, system: RigSystem, engine: Engine, happened: list[PlantEvent]) -> None:
        """Prepare."""
        self._engine, self._happened = engine, happened
        self._limits = np.array([w.brake_torque_n_m or ANY_TORQUE_N_M for w in system.winches])
        self._halted = [0.0] * len(system.winches)
        self._changing = np.flatnonzero(engine.tables.cables["reels"])

    def drive(self, inputs: PlantInputs) -> None:
        """Hand on the inputs of the coming period."""
        if len(self._limits):
            self._engine.feed[:] = inputs.winch
            self._engine.brake_nm[:] = np.where(inputs.winch_brake, self._limits, 0.0)

    def show(self, free_length_m: Array) -> None:
        """Write the free lengths, and note winches that came to their stops."""
        engine = self._engine
        changing = self._changing
        free_length_m[changing] = engine.tables.cables["rest_length"][changing]
        halted = engine.halted[: len(self._halted)].tolist()
        if halted == self._halted:
            return
        for w, (now, before) in enumerate(zip(halted, self._halted, strict=True), start=1):
            if now not in (0.0, before):
                what = "no cable left" if now > 0.0 else "cable reeled in"
                event = PlantEvent(engine.time_s, "winch_stopped", f"winch_{w}: {what}")
                self._happened.append(event)
        self._halted = halted


# ---------- Cuts and breaks as the plant shows them: cables and segments by number, from end 1


def cut(engine: Engine, change: CutCable | ReleaseHook) -> None:
    """Cut a cable now; a hook lets go of the segment next to it.

    Raises:
        ConfigError: There is no such cable or segment.
    """
    n_cables = len(engine.rig.cables)
    if not 1 <= change.cable <= n_cables:
        raise ConfigError(f"cut: cable {change.cable}: there are cables 1 to {n_cables}")
    n = engine.rig.cables[change.cable - 1].segments
    if isinstance(change, CutCable):
        segment = change.segment
    else:
        segment = 1 if change.at == "load" else n
    if not 1 <= segment <= n:
        raise ConfigError(f"cut: segment {segment}: cable {change.cable} has segments 1 to {n}")
    engine.cut(change.cable - 1, segment - 1)


class BreakLog:
    """Turns the breaks of an engine into events of the plant.

    Attributes:
        happened: See `interface.Plant`; cuts that were asked for are not in it.
    """

    def __init__(self) -> None:
        self.happened: list[PlantEvent] = []
        self._seen = 0

    def skip(self, engine: Engine) -> None:
        """Leave out what is known already: cuts that somebody asked for."""
        self._seen = len(engine.breaks)

    def note(self, engine: Engine) -> None:
        """Take over what broke since the last time."""
        for b in engine.breaks[self._seen :]:
            n = engine.rig.cables[b.cable].segments
            what = (
                f"cable_{b.cable + 1}: segment {b.segment + 1} of {n} broke at {b.tension_n:.4g} N"
            )
            self.happened.append(PlantEvent(b.time_s, "cable_broken", what))
        self._seen = len(engine.breaks)


# ---------- Hooks at the load that open and close
#
# A hook that opens takes the segment next to it away; what is left of the cable hangs on its
# drone, one segment shorter. That segment counts as hanging straight down from the free end, with
# the hook at its own end. It closes while it is slack, and only then, so that nothing changes: no
# force, no velocity, no momentum.


def is_open(engine: Engine, cable: int) -> bool:
    """Whether a cable (from 0) hangs whole on its end 2, but for the segment next to the load."""
    alive = engine.segments(cable)["alive"] > 0.0
    return not alive[0] and bool(alive[1:].all())


def hook_miss(engine: Engine, cable: int) -> tuple[float, float]:
    """Distance and speed of an open hook from its place on the load [m, m/s].

    Infinitely far as long as the last segment would be taut.
    """
    place, free = engine.nodes_enu_m(cable)[:2]
    velocity = engine.node_velocities_enu_m_s(cable)
    length_m = float(engine.segments(cable)["rest_length"][0])
    speed = float(np.linalg.norm(velocity[1] - velocity[0]))
    if np.linalg.norm(free - place) > length_m:
        return np.inf, speed
    return float(np.linalg.norm(free - [0.0, 0.0, length_m] - place)), speed


Array = NDArray[np.float64]

LONGEST_STEP_S = CONTROL_PERIOD_S


class ElasticPlant(Plant):
    """Elastic cables between load, drones and anchors, see `interface.Plant`.

    Cables have the segments, length, mass and material of their description, by default that of a
    3 mm braided polyethylene line, see `line`. `cable.joint` (of the rigid links) and `cable.twist`
    have no meaning here: point masses neither turn nor twist.
    """

    cable_model = "elastic"

    def __init__(
        self,
        system: RigSystem,
        start: Configuration | StartSpec,
        *,
        physics_step_s: float | None = None,
        gravity_m_s2: float = 9.80665,
        ground_height_enu_m: float | None = 0.0,
        rotor_speed_rad_s: Array | None = None,
        ea_n: float | None = None,
        damping_n_s: float | None = None,
        ei_n_m2: float | None = None,
        segments: int | None = None,
        shape_of: SlungLoadSystem | None = None,
        drives: RigSpec | None = None,
    ) -> None:
        """Build the tables in the start configuration.

        A configuration of rigid links in which the cables hold the load up (`hanging_equilibrium`)
        becomes an equilibrium of the elastic cables: the drones stand higher by the stretch. In any
        other the nodes are where the joints of the rigid links are. A rig starts as its
        `StartSpec` says.

        The default time step of 4 ms is stable for any cable. Stiffness, damping (force per rate of
        strain) and bending stiffness are those of all cables, by default of what each is made of;
        `segments` are per cable of a slung load, by default the number of links. `shape_of` is the
        system whose rigid links `start` describes, where it is not `system`; `drives` says which
        anchors are pushed. Rotor speeds, (n_drones, n_rotors), are 0 by default; a ground height of
        None means no ground.

        Raises:
            ConfigError: The start does not fit the system.
        """
        self.system = system
        self.gravity_m_s2 = gravity_m_s2
        self.period_s = CONTROL_PERIOD_S
        self.substeps = substeps(LONGEST_STEP_S if physics_step_s is None else physics_step_s)
        self.physics_step_s = self.period_s / self.substeps
        lines = [line_of(k.elastic, ea_n, damping_n_s, ei_n_m2) for k in system.cables]
        if isinstance(start, Configuration):
            plain = _formation(system)
            parts = slung_parts(plain, start, lines, gravity_m_s2, segments, shape_of or plain)
        else:
            parts = rig_parts(system, start, drives or RigSpec(), lines, gravity_m_s2)
        rig = Rig(
            *parts,
            rotors=rotor_records(system),
            gravity_m_s2=gravity_m_s2,
            ground_height_enu_m=ground_height_enu_m,
            ground_friction=system.ground_friction,
            winches=rig_winches(system, drives or RigSpec()),
            pulleys=[_pulley(pulley) for pulley in system.pulleys],
        )
        if not isinstance(start, Configuration) and start.kind == "equilibrium":
            rotor_speed_rad_s = settle(rig, system)
        self.engine = Engine(rig, self.period_s, self.substeps, rotor_speed_rad_s)
        self._first_anchor = first = 1 + system.n_drones
        self._flipped = np.flatnonzero([not cable.reverse for cable in rig.cables])
        self._pushed = [b for b in range(first, len(rig.bodies)) if not rig.bodies[b].prescribed]
        self.state = self._make_state()
        self._breaks = BreakLog()
        self.happened: list[PlantEvent] = self._breaks.happened
        self._reels = Reels(system, self.engine, self.happened)
        self._show_turned = self._turned_forces()
        self._follow_anchors()
        self.reaction = Reaction.zeros(system)
        self._motion: PrescribedMotion | None = None
        self._show()
        self._check_break()

    def _make_state(self) -> PlantState:
        """The state as it is shown: mostly views of the engine's tables."""
        t, rig, first = self.engine.tables, self.engine.rig, self._first_anchor
        return PlantState(
            t.shown[:first],
            t.speed,
            t.force.copy() if len(self._flipped) else t.force,
            t.peak,
            t.shown[first:],
            np.zeros((len(rig.bodies) - first, 6)),
            np.array([cable.length_m for cable in rig.cables]),
            bool(self.system.winches or self.system.pulleys),
        )

    # -------------------------------------------------------------------------------- the step

    @property
    def time_s(self) -> float:
        """Simulated time, exact multiple of the period."""
        return self.engine.time_s

    @property
    def refined_periods(self) -> int:
        """Periods that needed finer steps than the usual."""
        return self.engine.refined_periods

    def step(self, inputs: PlantInputs) -> None:
        """Advance one control period, see `interface.Plant.step`."""
        engine = self.engine
        if inputs.motion is not self._motion:
            self._prescribe(inputs.motion)
        engine.command = inputs.rotor_command_rad_s
        engine.wind_enu_m_s = inputs.wind_enu_m_s
        if len(self._anchor_paths):
            self._drive_anchors(inputs)
        else:
            engine.wrench_body, engine.wrench_enu = inputs.wrench_body, inputs.wrench_enu
        self._reels.drive(inputs)
        if self._motion is not None:
            engine.command = self._rotors_at_rest
            if self._motion.load_wrench is not None:
                engine.wrench_enu = inputs.wrench_enu.copy()
                engine.wrench_enu[0] += self._motion.load_wrench(self.time_s + self.period_s / 2)
        engine.step()
        self._breaks.note(engine)
        self._show()
        if self._motion is not None:
            self._note_reaction()

    def start_driving(self, inputs: PlantInputs) -> None:
        """Find the accelerations of the start with what moves and pushes anchors from then on."""
        if len(self._anchor_paths):
            self._drive_anchors(inputs)
        self._reels.drive(inputs)
        self.engine.restart()
        self._show()

    def _drive_anchors(self, inputs: PlantInputs) -> None:
        """Hand on what acts on bodies, and what moves anchors."""
        engine, first = self.engine, self._first_anchor
        engine.wrench_body[:first], engine.wrench_enu[:first] = (
            inputs.wrench_body,
            inputs.wrench_enu,
        )
        engine.wrench_enu[first:] = inputs.anchor_wrench_enu
        self._anchor_paths[:] = inputs.anchor_motion

    def _follow_anchors(self) -> None:
        """Let the anchors that are not pushed follow their inputs."""
        self._anchor_paths = self.engine.tables.bodies["path"][self._first_anchor :]
        self._own_paths: dict[int, Path | None] = {}
        for b, row in enumerate(self._anchor_paths, start=self._first_anchor):
            row[:] = 0.0
            row[:, :3] = self.engine.rig.bodies[b].position_enu_m
            if b not in self._pushed:
                self._own_paths[b] = None  # `_drive_anchors` writes it
        self.engine.paths.update(self._own_paths)

    def _show(self) -> None:
        """Complete the state: cables that run the other way, anchors, what stands for a load."""
        state, t, first = self.state, self.engine.tables, self._first_anchor
        if len(self._flipped):
            order, signs, shown = self._show_turned
            np.multiply(t.force.ravel()[order], signs, out=shown)
        if len(self._anchor_paths):
            state.anchor_wrench_n[:] = t.bodies["reaction"][first:]
            for b in self._pushed:
                wrench = self.engine.wrench_enu[b]
                state.anchor_wrench_n[b - first] = [*wrench[3:], *wrench[:3]]
        if state.reels:
            self._reels.show(state.free_length_m)
        if self.system.load is None:
            cable = self.engine.tables.cables[0]
            middle = t.nodes[cable["first_node"] + cable["segments"] // 2]
            state.motion[0, 0:3] = middle["position"]
            state.motion[0, 3:6] = middle["velocity"]
            state.motion[0, 13:16] = middle["acceleration"]

    def _turned_forces(self) -> tuple[NDArray[np.intp], Array, Array]:
        """Where each force at an end stands in the engine's, its sign, and where it is shown."""
        force = self.engine.tables.force
        order = np.arange(force.size).reshape(force.shape)
        signs = np.ones(force.shape)
        order[self._flipped] = order[self._flipped, ::-1]
        signs[self._flipped] = _TURNED
        return order.ravel(), signs.ravel(), self.state.cable_force_n.reshape(-1)

    def _check_break(self) -> None:
        """Refuse a line that would break before anything happens."""
        for i, cable in enumerate(self.system.cables):
            strength = cable.elastic.break_force_n
            tension = float(self.engine.tensions_n(i).max())
            if strength is not None and tension >= strength:
                raise ConfigError(
                    f"system.cables.{i}.elastic.break_force_n = {strength:g}: the cable would "
                    f"break at the start, where it carries {tension:.4g} N"
                )

    def start_moving(self, velocity_enu_m_s: Array, omega_enu_rad_s: Array) -> None:
        """Give load and drones velocities before the first step; the cables move along.

        Both are in the world frame, (1 + n_drones, 3).
        """
        t = self.engine.tables
        n = 1 + self.system.n_drones
        for motion in (t.bodies[:n], t.bodies["stage"][:n]):
            motion["velocity"], motion["omega"] = velocity_enu_m_s, omega_enu_rad_s
        for b in range(n):
            inertia = t.bodies["stage"]["inertia"][b]
            t.bodies["angular_momentum"][b] = inertia @ omega_enu_rad_s[b]
        for i, cable in enumerate(self.engine.rig.cables):
            ends = [
                velocity_enu_m_s[b] + np.cross(omega_enu_rad_s[b], t.bodies["rotation"][b] @ point)
                for b, point in zip(cable.bodies, cable.points_m, strict=True)
            ]
            velocity = self.engine.node_velocities_enu_m_s(i)
            velocity[:] = np.linspace(ends[0], ends[1], len(velocity))
        self.engine.restart()

    def _prescribe(self, motion: PrescribedMotion | None) -> None:
        """Let the drones follow a path, or fly again."""
        self._motion = motion
        self._rotors_at_rest = np.zeros_like(self.state.rotor_speed_rad_s)
        paths: dict[int, Path | None] = {}
        if motion is not None:
            poses = PosePaths(motion.pose)
            paths = {1 + i: OnePath(poses, i) for i in range(self.system.n_drones)}
        paths |= self._own_paths
        if self.system.load is None:
            paths[0] = _held(np.zeros((2, 18)))
        self.engine.prescribe(set(paths), paths)

    def apply(self, change: Change) -> None:
        """Change the system between two periods, see `interface.Plant.apply`."""
        if isinstance(change, CutCable | ReleaseHook):
            cut(self.engine, change)
            self._breaks.skip(self.engine)
        elif isinstance(change, AttachHook):
            check_cut(self.system, change)
            if self.hook_is_open(change.cable - 1):
                self.engine.mend(change.cable - 1, 0)
        elif isinstance(change, LoadMass):
            self._change_load(change.mass_kg)
        elif isinstance(change, RotorEfficiency):
            scale_rotors(self.system, self.engine.tables.rotors, change)
        else:
            super().apply(change)

    def hook_is_open(self, cable: int) -> bool:
        """See `interface.Plant`."""
        return is_open(self.engine, cable)

    def hook_miss(self, cable: int) -> tuple[float, float]:
        """See `interface.Plant`: the last segment counts as hanging straight down."""
        return hook_miss(self.engine, cable)

    def winch_input(self, winch: int) -> str:
        """Which input a winch (from 0) takes, see `interface.Plant`."""
        if self.system.winches[winch].kind == "feed":
            return "feed_m_s"
        return "speed_rad_s" if self.engine.by_rate[winch] else "torque_n_m"

    def _change_load(self, mass_kg: float) -> None:
        """Give the load another mass; velocities stay, energy is counted anew."""
        row = self.engine.tables.bodies[0]
        factor = mass_kg / row["mass"]
        row["mass"] = mass_kg
        row["inverse_inertia"] /= factor
        row["inertia"] *= factor
        row["angular_momentum"] *= factor
        stage = self.engine.tables.bodies["stage"]
        stage["inertia"][0] *= factor
        stage["angular_momentum"][0] *= factor
        self.engine.restart()

    def cable_nodes_enu_m(self, index: int) -> Array:
        """Nodes of cable `index` (from 0) from end 1 (the load) to end 2, (segments + 1, 3)."""
        return np.array(self.engine.nodes_enu_m(index))

    def segment_tensions_n(self, index: int) -> Array:
        """Tension of each segment of cable `index` from end 1 (the load) to end 2, (segments,)."""
        return np.array(self.engine.tensions_n(index))

    @property
    def end_wrench(self) -> Array:
        """Moment about its centre and force that moves each prescribed drone, world, (n, 6)."""
        reaction = [self.engine.reaction(1 + i) for i in range(self.system.n_drones)]
        return np.array([[*w[3:], *w[:3]] for w in reaction])

    @property
    def audit(self) -> EnergyAudit:
        """Work, losses and energies since the start."""
        audit = EnergyAudit()
        self._write_audit(audit)
        return audit

    @property
    def spurious_energy_j(self) -> float:
        """Energy that the integration made from nothing so far; 0 if it only took some."""
        return self.audit.made_j

    def _write_audit(self, audit: EnergyAudit) -> None:
        sums = self.engine.sums
        audit.work_j, audit.absolute_work_j = float(sums["work"]), float(sums["absolute_work"])
        audit.loss_j = float(sums["loss_cables"] + sums["loss_ground"])
        audit.break_j = float(sums["loss_breaks"])
        audit.start_j = self.engine.start_energy_j
        audit.energy_j = float(self.engine.energy_j().sum())

    def _note_reaction(self) -> None:
        """Force that moves each cable's end, at the end of the period, and the audit."""
        for i in range(self.system.n_drones):
            self.reaction.end_force_n[i] = -self.engine.end_force_n(
                i, int(self.engine.rig.cables[i].reverse)
            )
        self._write_audit(self.reaction.audit)


_TURNED = np.array([1.0, 1.0, -1.0])
"""Force across at an end seen in the frame that looks the other way."""


def _held(row: Array) -> Path:
    """A path that is what an array holds when it is asked."""

    def path(begin_s: float, end_s: float) -> Array:
        return row

    return path


def _formation(system: RigSystem) -> SlungLoadSystem:
    found = system.formation
    if found is None:
        raise ConfigError(f"system {system.name} has no formation: choose start: state")
    return found


# ---------- Builds the elastic plant of a scenario


def build(setup: PlantSetup) -> ElasticPlant:
    """Cables that stretch and go slack, as lumped nodes; any rig; compiled, fast.

    Slung loads start on the ground, hanging in the air, or in a given state; other rigs in a given
    state or in equilibrium.

    Raises:
        ConfigError: The start cannot be reached with these cables.
    """
    system, physics, start = setup.system, setup.physics, setup.start
    step = physics.step_size_s
    make = functools.partial(
        ElasticPlant,
        system,
        physics_step_s=None if isinstance(step, str) else step,
        gravity_m_s2=physics.gravity_m_s2,
        drives=setup.rig,
    )
    formation = system.formation
    if formation is None and start.kind in ("ground", "air"):
        slung_system(system, f"start.kind = {start.kind}, instead of state or equilibrium")
    if formation is None or start.kind == "equilibrium" or start.cables is not None:
        return make(start)
    if start.kind == "ground":
        return make(ground_spawn(formation))
    if start.kind == "air":
        assert setup.equilibrium is not None  # every formation has one
        return make(
            setup.equilibrium.configuration,
            rotor_speed_rad_s=trim_speeds_rad_s(system, setup.equilibrium),
        )
    return _in_state(setup, formation, make)


def _in_state(
    setup: PlantSetup, formation: SlungLoadSystem, make: functools.partial[ElasticPlant]
) -> ElasticPlant:
    """A slung load in a given state; its cables hang as rigid links would."""
    start = setup.start
    if start.load is None or start.drones is None or len(start.drones) != formation.n_drones:
        raise ConfigError(f"start.drones must have {formation.n_drones} entries, and a load")
    bodies = (start.load, *start.drones)
    rotations = np.array([rotation_of(b.orientation_wxyz) for b in bodies])
    positions = np.array([b.position_enu_m for b in bodies])
    # Point masses do not twist: the drones may look anywhere.
    free = dataclasses.replace(
        formation, cables=tuple(dataclasses.replace(k, twist="free") for k in formation.cables)
    )
    configuration, _ = slung_state(
        free, positions[0], rotations[0], positions[1:], rotations[1:], setup.physics.gravity_m_s2
    )
    plant = make(configuration, shape_of=free)
    plant.start_moving(
        np.array([b.velocity_enu_m_s for b in bodies], float),
        np.einsum("nij,nj->ni", rotations, np.array([b.omega_body_rad_s for b in bodies], float)),
    )
    return plant
