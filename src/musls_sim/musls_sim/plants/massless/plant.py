"""Load and drones on inextensible massless cables, the plant `cable_model: massless`."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import NDArray

from musls_description.errors import ConfigError
from musls_description.rotations import yaw_of
from musls_description.spawn import HangingEquilibrium, ground_spawn, hanging_equilibrium
from musls_description.system import SlungLoadSystem, slung_system
from musls_sim.plants.changes import (
    AttachHook,
    CutCable,
    ReleaseHook,
    RotorEfficiency,
    check_cut,
    scale_rotors,
)
from musls_sim.plants.drone_paths import DronePaths
from musls_sim.plants.interface import (
    Change,
    EnergyAudit,
    Plant,
    PlantEvent,
    PlantInputs,
    PlantSetup,
    PlantState,
    PrescribedMotion,
    Reaction,
    SimulationDiverged,
)
from musls_sim.plants.massless import records as c
from musls_sim.plants.massless.records import packed
from musls_sim.plants.massless.start import Motion, build_tables, freed, motion_of, weightless
from musls_sim.plants.massless.step import SPEED_LIMIT_M_S, advance
from musls_sim.plants.rigid_links.rows import OMEGA, POSITION, VELOCITY
from musls_sim.plants.rigid_links.step_control import substeps
from musls_sim.preflight.trim import trim_speeds_rad_s
from musls_sim.scenario.physics import CONTROL_PERIOD_S, StartSpec

# ---------- Cables without mass that are cut, let go of and hooked up again.

ENDLESS_M = 1e6
"""Length of a cable that is not held at both ends."""


def let_go(plant: MasslessPlant, change: CutCable | ReleaseHook) -> None:
    """Take a cable off the load, the drone, or both; nothing else changes.

    Raises:
        ConfigError: There is no such cable or segment.
    """
    check_cut(plant.system, change)
    i = change.cable - 1
    row, held = plant.tables.cables[i], plant.held_by[i]
    row[c.LENGTH], row[c.TAUT], row[c.TENSION] = ENDLESS_M, 0.0, 0.0
    other = "drone"
    if isinstance(change, CutCable):
        other = "nobody"
    elif change.at == "drone":
        other = "load"
    plant.held_by[i] = other if held in ("both", other) else "nobody"


def hook_up(plant: MasslessPlant, change: AttachHook) -> None:
    """Hang a cable that only its drone holds on the load again: slack, it changes nothing."""
    check_cut(plant.system, change)
    i = change.cable - 1
    if plant.held_by[i] == "drone":
        plant.tables.cables[i, c.LENGTH] = plant.system.cables[i].length_m
        plant.held_by[i] = "both"


def hook_miss(plant: MasslessPlant, cable: int) -> tuple[float, float]:
    """Distance and speed of an open hook from its place on the load [m, m/s].

    Infinitely far as long as the cable does not reach from the drone.
    """
    low, high = _ends(plant, cable)
    length = plant.system.cables[cable].length_m
    miss = float(np.linalg.norm(high - [0.0, 0.0, length] - low))
    if np.linalg.norm(high - low) > length:
        miss = np.inf
    row, speeds = plant.tables.cables[cable], []
    for body, at in ((0, c.POINT_LOAD), (cable + 1, c.POINT_DRONE)):
        m = plant.tables.motion[body]
        arm = m[:9].reshape(3, 3) @ row[at : at + 3]
        speeds.append(m[VELOCITY : VELOCITY + 3] + np.cross(m[OMEGA : OMEGA + 3], arm))
    return miss, float(np.linalg.norm(speeds[1] - speeds[0]))


def loose_line(plant: MasslessPlant, cable: int, points: int) -> Array:
    """A cable that is not held at both ends: hangs from its drone, or lies as a point."""
    low, high = _ends(plant, cable)
    held = plant.held_by[cable]
    length = plant.system.cables[cable].length_m if held == "drone" else 0.0
    top = low if held == "load" else high
    along = np.linspace(length, 0.0, points)
    line: Array = top - np.column_stack([0.0 * along, 0.0 * along, along])
    return line


def _ends(plant: MasslessPlant, cable: int) -> tuple[Array, Array]:
    """Both places where a cable hangs, world, (3,) each."""
    row = plant.tables.cables[cable]
    ends = []
    for body, at in ((0, c.POINT_LOAD), (cable + 1, c.POINT_DRONE)):
        m = plant.tables.motion[body]
        ends.append(m[POSITION : POSITION + 3] + m[:9].reshape(3, 3) @ row[at : at + 3])
    return ends[0], ends[1]


# ---------- What a massless cable looks like: straight when taut, hanging like a fine line when slack.

STRAIGHT = 1e-6
"""Share of the length by which the ends are closer, below which the line is drawn straight."""

MOST_STEPS = 20
"""Of Newton's method; it takes 6."""


def hanging_line(
    a_enu_m: Array, b_enu_m: Array, length_m: float, points: int, ground_enu_m: float | None
) -> Array:
    """Points of a line of a length between two ends: a catenary, cut off at the ground.

    Args:
        a_enu_m: One end, (3,).
        b_enu_m: The other, (3,).
        length_m: Length of the line.
        points: Number of points.
        ground_enu_m: Height of the ground, None for none.

    Returns:
        From a to b, evenly along the line where it hangs free, (points, 3).
    """
    span = b_enu_m - a_enu_m
    along = np.linspace(0.0, 1.0, points)
    flat, rise = float(np.hypot(*span[:2])), float(span[2])
    if np.hypot(flat, rise) > length_m * (1.0 - STRAIGHT):
        straight: Array = a_enu_m + along[:, None] * span
        return straight
    if flat < 1e-3 * length_m:  # a loop straight down
        low = 0.5 * (length_m - rise)
        height = np.where(along * length_m < low, -along * length_m, along * length_m - 2.0 * low)
        line = a_enu_m + np.column_stack([along * span[0], along * span[1], height])
    else:
        # sqrt(l^2 - h^2) = 2 c sinh(w / 2 c) with w the width, h the rise: find 1 / c.
        ratio = np.sqrt(length_m**2 - rise**2) / flat
        c = 0.5 * flat / _arc(float(ratio))
        middle = 0.5 * flat - c * np.arctanh(rise / length_m)
        begin = np.sinh(-middle / c)
        x = middle + c * np.arcsinh(begin + along * length_m / c)
        z = c * (np.cosh((x - middle) / c) - np.cosh(middle / c))
        line = a_enu_m + np.column_stack([x / flat * span[0], x / flat * span[1], z])
    if ground_enu_m is not None:
        line[:, 2] = np.maximum(line[:, 2], min(ground_enu_m, a_enu_m[2], b_enu_m[2]))
    shape: Array = line
    return shape


def _arc(ratio: float) -> float:
    """Solve sinh(s) / s = ratio > 1 by Newton's method for its logarithm, which is convex in s."""
    s = math.sqrt(6.0 * math.log(ratio))
    for _ in range(MOST_STEPS):
        step = (math.log(math.sinh(s) / s) - math.log(ratio)) / (1.0 / math.tanh(s) - 1.0 / s)
        s -= step
        if abs(step) < 1e-14 * s:
            break
    return s


Array = NDArray[np.float64]

REACH_M = 1e-6
"""By how much the ends of a cable may be further apart than its length at the start."""


class MasslessPlant(Plant):
    """Cables without mass, stretch and bending between load and drones, see `interface.Plant`.

    Of the cables only length and ends count. See `docs/massless.md`.

    Attributes:
        tables: All arrays.
        happened: Cables that went slack or taut, see `interface.Plant`.
        held_by: What holds each cable: "both" ends, the "drone", the "load", or "nobody", (n,).
    """

    cable_model = "massless"

    def __init__(
        self,
        system: SlungLoadSystem,
        start: Motion,
        *,
        physics_step_s: float | None = None,
        gravity_m_s2: float = 9.80665,
        ground_height_enu_m: float | None = 0.0,
        rotor_speed_rad_s: Array | None = None,
        restitution: float = 0.0,
    ) -> None:
        """Build the tables in the start.

        Args:
            system: What to build.
            start: Motion of load and drones at time 0.
            physics_step_s: Longest time step in the air; None takes 4 ms.
            gravity_m_s2: Gravity.
            ground_height_enu_m: Height of the ground, None for no ground.
            rotor_speed_rad_s: Rotor speeds at time 0, (n_drones, n_rotors); default at rest.
            restitution: Share of the separation rate with which a cable's ends come back after
                a jerk, from 0 to 1.

        Raises:
            ConfigError: A cable does not reach.
        """
        self.system = system
        self.gravity_m_s2 = gravity_m_s2
        self.period_s = CONTROL_PERIOD_S
        self.substeps = substeps(CONTROL_PERIOD_S if physics_step_s is None else physics_step_s)
        self.physics_step_s = self.period_s / self.substeps
        self._ground = ground_height_enu_m
        tables = build_tables(
            system,
            start,
            gravity_m_s2=gravity_m_s2,
            ground_height_enu_m=ground_height_enu_m,
            step_s=self.physics_step_s,
            restitution=restitution,
        )
        self._memory, self._places, self.tables = packed(tables)
        t, n = self.tables, system.n_drones
        if rotor_speed_rad_s is not None:
            t.speed[:] = rotor_speed_rad_s
        t.speed_end[:] = t.speed
        self.state = PlantState(t.shown, t.speed, t.force.reshape(n, 2, 3), t.peak)
        self.reaction = Reaction.zeros(system)
        self.happened: list[PlantEvent] = []
        self.held_by = ["both"] * n
        self._periods = 0
        self._motion: PrescribedMotion | None = None
        self._paths: DronePaths | None = None
        self._first_look()

    def _first_look(self) -> None:
        """Check the lengths, find tensions and energy of the start."""
        t = self.tables
        self._advance(PlantInputs.zeros(self.system), 0.0)
        gaps = t.cables[:, c.GAP]
        worst = int(gaps.argmax())
        if gaps[worst] > REACH_M:
            length = self.system.cables[worst].length_m
            raise ConfigError(
                f"cable_{worst + 1} of {length:g} m does not reach over "
                f"{length + gaps[worst]:.6g} m from the load to drone_{worst + 1}"
            )
        self.forget_inputs()
        self._start_j = self.energy_j

    def forget_inputs(self) -> None:
        """Look at the cables anew in the next step: something was changed from outside."""
        self.tables.held[0] = np.nan

    # -------------------------------------------------------------------------------- the step

    @property
    def time_s(self) -> float:
        """Simulated time, exact multiple of the period."""
        return self._periods * self.period_s

    @property
    def refined_periods(self) -> int:
        """Periods with an event or with steps shorter than the usual."""
        return int(self.tables.sums[c.REFINED])

    def step(self, inputs: PlantInputs) -> None:
        """Advance one control period, see `interface.Plant.step`."""
        if inputs.motion is not self._motion:
            self._prescribe(inputs.motion)
        if self._motion is None:
            count = self._advance(inputs, self.period_s)
        else:
            count = self._follow(inputs, self._motion)
        if count < 0:
            raise SimulationDiverged(
                f"simulation diverged at {self.time_s:.3f} s: a body moves faster than "
                f"{SPEED_LIMIT_M_S:g} m/s; check rotor commands, wind and forces"
            )
        if count:
            self._tell(count)
        self._periods += 1

    def _advance(self, inputs: PlantInputs, period_s: float) -> int:
        return int(
            advance(
                self._memory,
                self._places,
                period_s,
                self._motion is not None,
                inputs.rotor_command_rad_s,
                inputs.wind_enu_m_s,
                inputs.wrench_body,
                inputs.wrench_enu,
            )
        )

    def _follow(self, inputs: PlantInputs, motion: PrescribedMotion) -> int:
        """One period with the drones on their paths."""
        assert self._paths is not None
        begin_s = self.time_s
        self.tables.path[:] = self._paths.table(begin_s, begin_s + self.period_s)
        enu = inputs.wrench_enu
        if motion.load_wrench is not None:
            enu = enu.copy()
            enu[0] += motion.load_wrench(begin_s + self.period_s / 2)
        held = PlantInputs(
            np.zeros_like(self.tables.speed), inputs.wind_enu_m_s, inputs.wrench_body, enu
        )
        count = self._advance(held, self.period_s)
        force = self.tables.cables[:, c.FORCE_SUM : c.FORCE_SUM + 3]
        self.reaction.end_force_n[:] = force / self.period_s
        self._write_audit(self.reaction.audit)
        return count

    def _prescribe(self, motion: PrescribedMotion | None) -> None:
        """Let the drones follow a path, or fly again."""
        self._motion, t = motion, self.tables
        self._paths = None if motion is None else DronePaths(motion.pose)
        for row, drone in zip(t.bodies[1:], self.system.drones, strict=True):
            row[c.FREE] = 1.0 if motion is None else 0.0
            row[c.INVERSE_MASS] = row[c.FREE] / drone.mass_kg
            inverse = row[c.FREE] * np.linalg.inv(np.array(drone.inertia_kg_m2))
            row[c.INVERSE : c.INVERSE + 9] = inverse.ravel()
        self.forget_inputs()
        t.sums[:4] = 0.0
        self._start_j = self.energy_j

    def _tell(self, count: int) -> None:
        """Turn the events of the period into text."""
        begin_s = self.time_s
        for row in self.tables.events[: min(count, c.MOST_EVENTS)]:
            cable, kind = f"cable_{int(row[c.EVENT_CABLE]) + 1}", int(row[c.EVENT_KIND])
            time_s = begin_s + float(row[c.EVENT_TIME])
            if kind != c.SLACKENED:
                impulse, loss = row[c.EVENT_IMPULSE], row[c.EVENT_LOSS]
                cable += f": impulse {impulse:.4g} N s, {loss:.4g} J lost"
            self.happened.append(PlantEvent(time_s, KINDS[kind], cable))

    def apply(self, change: Change) -> None:
        """Change the system between two periods, see `interface.Plant.apply`."""
        if isinstance(change, CutCable | ReleaseHook):
            let_go(self, change)
        elif isinstance(change, AttachHook):
            hook_up(self, change)
        elif isinstance(change, RotorEfficiency):
            scale_rotors(self.system, self.tables.rotors, change)
        else:
            super().apply(change)
        self.forget_inputs()

    def hook_is_open(self, cable: int) -> bool:
        """See `interface.Plant`."""
        return self.held_by[cable] == "drone"

    def hook_miss(self, cable: int) -> tuple[float, float]:
        """See `interface.Plant`: the hook hangs straight below the drone."""
        return hook_miss(self, cable)

    # --------------------------------------------------------------------------- what it shows

    def cable_nodes_enu_m(self, index: int) -> Array:
        """Points of cable `index` (from 0) from the load to the drone, (links + 1, 3).

        A massless line has no shape of its own while it is slack; it is drawn hanging.
        """
        cable = self.system.cables[index]
        if self.held_by[index] != "both":
            return loose_line(self, index, cable.links + 1)
        load, drone = (self.tables.motion[i] for i in (0, 1 + index))
        row = self.tables.cables[index]
        ends = [
            m[9:12] + m[:9].reshape(3, 3) @ row[at : at + 3]
            for m, at in ((load, c.POINT_LOAD), (drone, c.POINT_DRONE))
        ]
        points = cable.links + 1
        return hanging_line(ends[0], ends[1], cable.length_m, points, self._ground)

    @property
    def taut(self) -> Array:
        """Which cables are taut, (n,) of bool."""
        flags: Array = self.tables.cables[:, c.TAUT] != 0.0
        return flags

    @property
    def energy_j(self) -> float:
        """Kinetic and potential energy of load and drones that fly [J]."""
        total = 0.0
        for row, y in zip(self.tables.bodies, self.tables.state, strict=True):
            if row[c.FREE] != 0.0:
                inertia = row[c.INERTIA : c.INERTIA + 9].reshape(3, 3)
                v, omega = y[c.V : c.V + 3], y[c.W : c.W + 3]
                total += 0.5 * (row[c.MASS] * v @ v + omega @ inertia @ omega)
                total += row[c.MASS] * self.gravity_m_s2 * y[c.X + 2]
        return float(total)

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
        sums = self.tables.sums
        audit.work_j, audit.absolute_work_j = float(sums[c.WORK]), float(sums[c.ABSOLUTE_WORK])
        audit.loss_j = float(sums[c.LOSS] + sums[c.JERK_LOSS])
        audit.start_j, audit.energy_j = self._start_j, self.energy_j


KINDS = ("cable_slack", "cable_taut", "cable_jerked")
"""Kinds of events, by their number in the tables."""

# ---------- Builds the plant with massless cables of a scenario.


def build(setup: PlantSetup) -> MasslessPlant:
    """Inextensible cables without mass that go slack and snap taut; compiled, the fastest.

    They start on the ground, hanging in the air, or in a given state.

    Raises:
        ConfigError: The start cannot be reached with these cables.
    """
    physics = setup.physics
    system = slung_system(setup.system, "cable_model = massless")
    assert setup.equilibrium is not None  # every slung load has one
    step = physics.step_size_s
    make = functools.partial(
        MasslessPlant,
        system,
        physics_step_s=None if isinstance(step, str) else step,
        gravity_m_s2=physics.gravity_m_s2,
        restitution=physics.cable_restitution,
    )
    if setup.start.kind == "ground":
        return make(motion_of(system, ground_spawn(system)))
    if setup.start.kind == "air":
        rest, motion = hanging(system, setup.equilibrium, physics.gravity_m_s2)
        return make(motion, rotor_speed_rad_s=trim_speeds_rad_s(system, rest))
    motion = given_motion(system, setup.start)
    try:
        return make(motion)
    except ConfigError as error:
        raise ConfigError(f"start.drones: {error}") from None


def hanging(
    system: SlungLoadSystem, chains: HangingEquilibrium, gravity_m_s2: float
) -> tuple[HangingEquilibrium, Motion]:
    """How a system hangs on massless cables below drones where chains have them.

    Args:
        system: The system.
        chains: Its equilibrium on chains of rigid links.
        gravity_m_s2: Gravity.

    Raises:
        ConfigError: The cables do not reach.
    """
    before = motion_of(freed(system), chains.configuration)
    yaws = yaw_of(before.orientation_wxyz)
    light = weightless(freed(system))
    places = before.position_enu_m[1:]
    rest = hanging_equilibrium(light, places, gravity_m_s2, float(yaws[0]), yaws[1:])
    return rest, motion_of(light, rest.configuration)


def given_motion(system: SlungLoadSystem, start: StartSpec) -> Motion:
    """Motion of load and drones of a start of kind "state".

    Raises:
        ConfigError: The number of drones is wrong.
    """
    if start.load is None or start.drones is None or len(start.drones) != system.n_drones:
        raise ConfigError(f"start.drones must have {system.n_drones} entries")
    bodies = (start.load, *start.drones)
    return Motion(
        np.array([b.position_enu_m for b in bodies], float),
        np.array([b.orientation_wxyz for b in bodies], float),
        np.array([b.velocity_enu_m_s for b in bodies], float),
        np.array([b.omega_body_rad_s for b in bodies], float),
    )
