"""Load and drones on inextensible massless cables, the plant `cable_model: massless`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_description.errors import ConfigError
from musls_description.system import SlungLoadSystem
from musls_sim.plants.changes import (
    AttachHook,
    CutCable,
    ReleaseHook,
    RotorEfficiency,
    refusal,
    scale_rotors,
)
from musls_sim.plants.energy import EnergyAudit
from musls_sim.plants.interface import (
    Change,
    PlantEvent,
    PlantInputs,
    PlantState,
    PrescribedMotion,
    Reaction,
    SimulationDiverged,
)
from musls_sim.plants.massless import columns as c
from musls_sim.plants.massless.build_tables import build_tables
from musls_sim.plants.massless.hooks import hook_miss, hook_up, let_go, loose_line
from musls_sim.plants.massless.paths import DronePaths
from musls_sim.plants.massless.shape import hanging_line
from musls_sim.plants.massless.start import Motion
from musls_sim.plants.massless.step import SPEED_LIMIT_M_S, advance
from musls_sim.plants.massless.tables import packed
from musls_sim.plants.rigid_links.step_control import substeps
from musls_sim.scenario.physics import CONTROL_PERIOD_S

Array = NDArray[np.float64]

REACH_M = 1e-6
"""By how much the ends of a cable may be further apart than its length at the start."""


class MasslessPlant:
    """Cables without mass, stretch and bending between load and drones, see `interface.Plant`.

    Of the cables only length and ends count. See `docs/massless.md`.

    Attributes:
        tables: All arrays.
        happened: Cables that went slack or taut, see `interface.EventSource`.
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
            raise ConfigError(refusal(change, self.cable_model))
        self.forget_inputs()

    def hook_is_open(self, cable: int) -> bool:
        """See `interface.Hooked`."""
        return self.held_by[cable] == "drone"

    def hook_miss(self, cable: int) -> tuple[float, float]:
        """See `interface.Hooked`: the hook hangs straight below the drone."""
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
