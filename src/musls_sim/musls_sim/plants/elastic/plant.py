"""Load, drones and anchors on elastic cables, the plant `cable_model: elastic`."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from musls_description.config.errors import ConfigError
from musls_description.hanging.tree import Configuration
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import CompiledStage
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.system.obstacles import AnyObstacle
from musls_description.system.slung_system import RigSystem, Winch, slung_system
from musls_sim.plants.driving import straight
from musls_sim.plants.drone_paths import PoseEnds
from musls_sim.plants.elastic.cables.line import line_of
from musls_sim.plants.elastic.engine import Engine, Path
from musls_sim.plants.elastic.rig import Rig
from musls_sim.plants.elastic.start import ANY_TORQUE_N_M, move_along, rig_parts, settle
from musls_sim.plants.elastic.state import LAYOUT
from musls_sim.plants.elastic.step import move_plant
from musls_sim.plants.interface import (
    AttachHook,
    CutCable,
    EnergyAudit,
    EventRecord,
    Plant,
    PlantInputs,
    PlantSetup,
    PlantState,
    PrescribedMotion,
    ReleaseHook,
    step_s,
)
from musls_sim.plants.rigid_body import TOUCHING, rotor_records
from musls_sim.plants.trim import speeds_for_rad_s, trim_speeds_rad_s
from musls_sim.specs.physics import CONTROL_PERIOD_S, StartSpec
from musls_sim.specs.rig import RigSpec

# ---------- Winches and pulleys of a system in the elastic core

SPARE_SHARE = 1.01
"""Length on a feed that says nothing of it, over what the scenario pays out."""


def rig_winches(system: RigSystem, drives: RigSpec) -> list[Winch]:
    """The winches of a system, each with the length on it."""
    return [
        replace(winch, stored_length_m=_stored(winch, drives, i))
        for i, winch in enumerate(system.winches, start=1)
    ]


def driven_by_rate(system: RigSystem, drives: RigSpec) -> set[int]:
    """Indices, from 0, of the winches that are driven by their speed."""
    winch_drives = (drives.winches.get(f"winch_{i + 1}") for i in range(len(system.winches)))
    return {i for i, drive in enumerate(winch_drives) if drive and drive.speed_rad_s is not None}


def _stored(winch: Winch, drives: RigSpec, number: int) -> float:
    """Length on a winch; a feed without a given length has the length that is asked for."""
    drive = drives.winches.get(f"winch_{number}")
    if winch.stored_length_m is not None:
        return winch.stored_length_m
    if drive is None or drive.feed_m_s is None:
        return 0.0
    times = np.array(drive.time_s)
    rates = straight(drive.time_s, drive.feed_m_s)
    borders = np.unique(np.concatenate([[0.0], times]))
    if len(borders) < 2:
        return 0.0
    out = np.cumsum(rates.means(borders)[:, 0] * np.diff(borders))
    return float(max(0.0, SPARE_SHARE * out.max()))


def _at_rest(rig: Rig, system: RigSystem, drives: RigSpec) -> Array:
    """Bring a rig to rest; rotor speeds that hold its drones, (n_drones, n_rotors) [rad/s]."""
    try:
        rest = settle(rig, system, drives)
    except ConfigError as error:
        raise ConfigError(f"start.kind = equilibrium: {error}") from None
    needed_n = np.linalg.norm(rest.thrust_enu_n, axis=1)
    for i, (thrust_n, drone) in enumerate(zip(needed_n, system.drones, strict=True), start=1):
        if thrust_n > drone.max_thrust_n:
            k = int(rest.tension_n.argmax())
            nodes = rig.cables[k].nodes_enu_m
            length_m = rig.cables[k].length_m
            raise ConfigError(
                f"start: drone_{i} would have to hold {thrust_n:.4g} N, its rotors give at most "
                f"{drone.max_thrust_n:.4g} N; cable_{k + 1} of {length_m:.4g} m pulls most, "
                f"{rest.tension_n[k]:.4g} N between ends "
                f"{np.linalg.norm(nodes[-1] - nodes[0]):.4g} m apart"
            )
    return speeds_for_rad_s(system, needed_n, rest.moment_body_n_m)


LONGEST_STRETCH = 8.0
"""Length over free length that no rubber reaches."""


class ElasticPlant(Engine):
    """Elastic cables between load, drones and anchors, see `interface.Plant`.

    Cables have the segments, length, mass and material of their description, see `Cable.rope`.
    `cable.joint` (of the rigid links) and `cable.twist` have no meaning here: point masses neither
    turn nor twist.
    """

    cable_model = "elastic"
    layout = LAYOUT
    shape_table = "tables", "nodes"

    def __init__(
        self,
        system: RigSystem,
        start: Configuration | StartSpec,
        *,
        physics_step_s: float | None = None,
        gravity_m_s2: float = STANDARD_GRAVITY_M_S2,
        ground_height_enu_m: float | None = 0.0,
        rotor_speed_rad_s: Array | None = None,
        ea_n: float | None = None,
        damping_n_s: float | None = None,
        ei_n_m2: float | None = None,
        segments: int | None = None,
        drives: RigSpec | None = None,
        obstacles: Sequence[AnyObstacle] = (),
        contact: Collection[str] = TOUCHING,
        accuracy: float = 0.0,
        twists: Array | None = None,
    ) -> None:
        """Build the tables in the start configuration.

        A configuration of rigid links in which the cables hold the load up (`hanging_equilibrium`)
        becomes an equilibrium of the elastic cables: the drones stand higher by the stretch. In any
        other the nodes are where the joints of the rigid links are. A rig starts as its
        `StartSpec` says.

        The default time step of 4 ms is stable for any cable. Stiffness, damping (force per rate of
        strain) and bending stiffness are those of all cables, by default of what each is made of;
        `segments` are per cable of a slung load, by default the number of links. `drives` says
        which anchors are pushed. Rotor speeds, (n_drones, n_rotors), are 0 by default; a ground
        height of None means no ground; `contact` is `physics.contact`, `accuracy` that of
        `physics`, for which steps become shorter (0: they do not). `twists`: angular
        velocity and velocity of load and drones in a configuration, world, (1 + n_drones, 6), 0 by
        default.
        """
        Plant.__init__(self, system, physics_step_s or CONTROL_PERIOD_S, gravity_m_s2)
        lines = [line_of(k, ea_n, damping_n_s, ei_n_m2) for k in system.cables]
        rig = Rig(
            *rig_parts(system, start, lines, drives or RigSpec(), gravity_m_s2, segments),
            rotors=rotor_records(system),
            gravity_m_s2=gravity_m_s2,
            ground_height_enu_m=ground_height_enu_m,
            ground_friction=system.ground_friction,
            obstacles=obstacles,
            winches=rig_winches(system, drives or RigSpec()),
            pulleys=system.pulleys,
            by_rate=driven_by_rate(system, drives or RigSpec()),
            loaded=system.load is not None,
        )
        if twists is not None and twists.any():
            for body, twist in zip(rig.bodies, twists, strict=True):
                body.omega_enu_rad_s = twist[:3]
                body.velocity_enu_m_s = twist[3:]
            for moving in rig.cables:
                move_along(moving, rig.bodies)
        for body in rig.bodies:
            if ("drones" if body.drone >= 0 else "load") not in contact:
                body.corners_m = np.zeros((0, 3))
        for rig_cable, cable in zip(rig.cables, system.cables, strict=True):
            rig_cable.contact_radius_m = cable.radius_m if "cables" in contact else None
        if not isinstance(start, Configuration) and start.kind == "equilibrium":
            rotor_speed_rad_s = _at_rest(rig, system, drives or RigSpec())
        super().__init__(rig, self.period_s, self.substeps, rotor_speed_rad_s, accuracy)
        self._first_anchor = first = 1 + system.n_drones
        self._pushed = [b for b in range(first, len(rig.bodies)) if not rig.bodies[b].prescribed]
        self.state = self._make_state()
        self._wrench_body = self.wrench_body[:first]
        self._wrench_enu = self.wrench_enu[:first]
        self._breaks_told = 0
        self._brakes_nm = self.tables.shafts["brake_torque"][: len(system.winches)]
        self._brakes_nm[:] = [w.brake_torque_n_m or ANY_TORQUE_N_M for w in system.winches]
        self._follow_anchors()
        self._check_tension()

    def _make_state(self) -> PlantState:
        """The state as it is shown: mostly views of the tables."""
        t = self.tables
        first = self._first_anchor
        return PlantState(
            t.shown[:first],
            t.speed,
            t.force,
            t.peak,
            t.shown[first:],
            t.held[first:],
            t.free_length,
            bool(self.system.winches or self.system.pulleys),
        )

    # -------------------------------------------------------------------------------- the step

    @property
    def compiled_step(self) -> CompiledStage | None:
        """Compiled function of a `STEP` that does `step` but for `account`; None: Python is needed.

        See `interface.Plant`.
        """
        plain = self._motion is None and not self._memories
        return move_plant if plain and self._has(ElasticPlant.step) else None

    def step(self, inputs: PlantInputs) -> None:
        """Advance one control period, see `interface.Plant.step`."""
        if inputs.motion is not self._motion:
            self._prescribe(inputs.motion)
        self.command[...] = inputs.rotor_command_rad_s
        self.wind_enu_m_s[...] = inputs.wind_enu_m_s
        self._drive(inputs)
        if self._motion is not None:
            self.command[:] = 0.0
            if self._motion.load_wrench is not None:
                self.wrench_enu[0] += self._motion.load_wrench(self.time_s + self.period_s / 2)
        self.advance()
        if self._motion is not None:
            self._note_reaction()

    def account(self, verdict: int, inputs: PlantInputs | None = None, periods: int = 1) -> None:
        """Take note of periods that compiled code advanced, and of how the last of them ended.

        See `interface.Plant.account`.
        """
        super().account(verdict, inputs, periods)
        if len(self.breaks) > self._breaks_told:
            self._tell_breaks()

    def set_rotor_speeds(self, speed_rad_s: Array) -> None:
        """Set the rotor speeds, (n_drones, n_rotors), and find the forces of the start again.

        See `interface.Plant`.
        """
        super().set_rotor_speeds(speed_rad_s)
        self.restart()

    def start_driving(self, inputs: PlantInputs) -> None:
        """Find the accelerations of the start with what moves and pushes anchors from then on."""
        self._drive(inputs)
        self.restart()

    def _drive(self, inputs: PlantInputs) -> None:
        """Pass on wrenches on bodies, the motion of anchors, and the inputs of winches."""
        self._wrench_body[...] = inputs.wrench_body
        self._wrench_enu[...] = inputs.wrench_enu
        if len(self._anchor_paths):
            self.wrench_enu[self._first_anchor :] = inputs.anchor_wrench_enu
            self._anchor_paths[:] = inputs.anchor_motion
        if len(self._brakes_nm):
            self.feed[:] = inputs.winch
            self.brake_nm[:] = np.where(inputs.winch_brake, self._brakes_nm, 0.0)

    def _follow_anchors(self) -> None:
        """Move the anchors that are not pushed to their inputs."""
        self._anchor_paths = self.tables.bodies["path"][self._first_anchor :]
        self._own_paths: dict[int, Path | None] = {}
        for b, row in enumerate(self._anchor_paths, start=self._first_anchor):
            row[:] = 0.0
            row[:, :3] = self.rig.bodies[b].position_enu_m
            if b not in self._pushed:
                self._own_paths[b] = None  # `_drive` writes it
        self.paths.update(self._own_paths)

    def _tell_breaks(self) -> None:
        """Report the segments that broke since the last period."""
        for b in self.breaks[self._breaks_told :]:
            n = self.rig.cables[b.cable].segments
            what = (
                f"cable_{b.cable + 1}: segment {b.segment + 1} of {n} broke at {b.tension_n:.4g} N"
            )
            self.happened.append(EventRecord(b.time_s, "cable_broken", what))
        self._breaks_told = len(self.breaks)

    def _check_tension(self) -> None:
        """Refuse a line that breaks, or that no material would be, before anything happens."""
        for i, cable in enumerate(self.system.cables):
            strength = cable.break_force_n
            tension = float(self.tensions_n(i).max())
            segments = self.segments(i)
            longer = float((segments["length"] / segments["rest_length"]).max())
            if longer > LONGEST_STRETCH:
                raise ConfigError(
                    f"system.cables.{i}.elastic: {tension:.4g} N at the start would stretch the "
                    f"cable to {longer:.3g} times its length, more than {LONGEST_STRETCH:g}; take "
                    "a stiffer one, or less load"
                )
            if strength is not None and tension >= strength:
                raise ConfigError(
                    f"system.cables.{i}.{cable.break_force_words}: the cable would break at the "
                    f"start, where it carries {tension:.4g} N"
                )

    def _prescribe(self, motion: PrescribedMotion | None) -> None:
        """Move the drones along given paths from now on, or let them fly again."""
        self._motion = motion
        paths: dict[int, Path | None] = dict(self._own_paths)
        if motion is not None:
            poses = PoseEnds(motion.pose)
            for i in range(self.system.n_drones):
                paths[1 + i] = functools.partial(poses.ends, i)
        still = {0} if self.system.load is None else set()
        self.prescribe(set(paths) | still, paths)

    def _change_cable(self, change: CutCable | ReleaseHook | AttachHook) -> None:
        cable = change.cable - 1
        if isinstance(change, AttachHook):
            if self.hook_is_open(cable):
                self.mend(cable, 0)
            return
        if isinstance(change, CutCable):
            segment = change.segment - 1
        else:  # the segment next to the hook
            segment = 0 if change.at == "load" else self.rig.cables[cable].segments - 1
        self.cut(cable, segment)
        self._breaks_told = len(self.breaks)

    # A hook that opens takes the segment next to it away; what is left of the cable hangs on its
    # drone, one segment shorter. That segment counts as hanging straight down from the free end,
    # with the hook at its own end. It closes while it is slack, and only then, so that nothing
    # changes: no force, no velocity, no momentum.

    def hook_is_open(self, cable: int) -> bool:
        """Whether a cable hangs whole on its end 2, but for the segment next to the load."""
        alive = self.segments(cable)["alive"] > 0.0
        return not alive[0] and bool(alive[1:].all())

    def parts_at_n(self, cable: int) -> float | None:
        """Tension at which a cable (from 0) parts; None: it holds whatever it is pulled with."""
        return self.system.cables[cable].break_force_n

    def hook_gap(self, cable: int) -> tuple[float, float]:
        """See `interface.Plant`; infinitely far as long as the last segment would be taut."""
        place, free = self.nodes_enu_m(cable)[:2]
        velocity = self.nodes(cable)["velocity"]
        length_m = float(self.segments(cable)["rest_length"][0])
        speed = float(np.linalg.norm(velocity[1] - velocity[0]))
        if np.linalg.norm(free - place) > length_m:
            return np.inf, speed
        return float(np.linalg.norm(free - [0.0, 0.0, length_m] - place)), speed

    def winch_input(self, winch: int) -> str:
        """Name of the input that a winch (from 0) takes, see `interface.Plant`."""
        if self.system.winches[winch].kind == "feed":
            return "feed_m_s"
        return "speed_rad_s" if self.tables.shafts["by_rate"][winch] else "torque_n_m"

    def _change_load(self, mass_kg: float) -> None:
        row = self.tables.bodies[0]
        factor = mass_kg / row["mass"]
        row["mass"] = mass_kg
        row["inverse_inertia"] /= factor
        row["inertia"] *= factor
        first = row["first_corner"]
        count = row["corners"]
        for name in ("stiffness", "damping"):  # or a heavier load would sink into the ground
            self.tables.corners[name][first : first + count] *= factor
        row["angular_momentum"] *= factor
        stage = self.tables.bodies["stage"]
        stage["inertia"][0] *= factor
        stage["angular_momentum"][0] *= factor
        self.restart()

    def cable_nodes_enu_m(self, index: int) -> Array:
        """Nodes of cable `index` (from 0) from end 1 (the load) to end 2, (segments + 1, 3)."""
        return np.array(self.nodes_enu_m(index))

    def segment_tensions_n(self, index: int) -> Array:
        """Tension in the middle of each link or segment of cable `index` (from 0), (links,) [N].

        See `interface.Plant`.
        """
        return np.array(self.tensions_n(index))

    @property
    def audit(self) -> EnergyAudit:
        """Work, losses and energies since the start."""
        sums = self.sums
        return EnergyAudit(
            work_j=float(sums["work"]),
            absolute_work_j=float(sums["absolute_work"]),
            loss_j=float(sums["loss_cables"] + sums["loss_ground"]),
            break_j=float(sums["loss_breaks"]),
            start_j=self.start_energy_j,
            energy_j=float(self.energy_j().sum()),
        )

    def _note_reaction(self) -> None:
        """Force that moves each cable's end, at the end of the period, and the audit."""
        for i in range(self.system.n_drones):
            self.reaction.end_force_n[i] = -self.end_force_n(i, 1)
        vars(self.reaction.audit).update(vars(self.audit))


# ---------- Builds the elastic plant of a scenario


def build(setup: PlantSetup) -> ElasticPlant:
    """Cables that stretch and go slack, as lumped nodes; any rig; compiled, fast.

    Slung loads start on the ground, hanging in the air, or in a given state; other rigs in a given
    state or in equilibrium.
    """
    system = setup.system
    physics = setup.physics
    start = setup.start
    make = functools.partial(
        ElasticPlant,
        system,
        physics_step_s=step_s(system, physics, order=2),
        gravity_m_s2=physics.gravity_m_s2,
        drives=setup.rig,
        ground_height_enu_m=setup.ground_height_enu_m,
        obstacles=setup.surfaces,
        contact=physics.contact,
        accuracy=physics.accuracy if physics.refine else 0.0,
    )
    formation = system.formation
    if formation is None and start.kind in ("ground", "air"):
        slung_system(system, f"start.kind = {start.kind}, instead of state or equilibrium")
    if start.kind not in ("ground", "air"):
        return make(start)
    assert setup.hanging is not None  # every formation has one
    if start.kind == "ground":
        return make(setup.hanging.on_ground, twists=setup.hanging.on_ground_twists)
    rest = setup.hanging.rest
    return make(rest.configuration, rotor_speed_rad_s=trim_speeds_rad_s(system, rest))
