"""Load and drones joined by rigid rods, the plant `cable_model: rigid_rods`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.spatial.transform import Rotation

from musls_description.drone import Drone
from musls_description.errors import ConfigError
from musls_description.rotations import matrix_to_body, yaw_of
from musls_description.spawn import HangingEquilibrium
from musls_description.system import Load, SlungLoadSystem, slung_system
from musls_sim.plants.changes import RotorEfficiency, scale_rotors
from musls_sim.plants.interface import (
    SPEED_LIMIT_M_S,
    Change,
    EnergyAudit,
    Plant,
    PlantInputs,
    PlantSetup,
    PlantState,
    Reaction,
    SimulationDiverged,
)
from musls_sim.plants.massless.plant import given_motion, hanging
from musls_sim.plants.massless.records import BODY
from musls_sim.plants.massless.start import Motion, build_records
from musls_sim.plants.rigid_body import contact_step_s
from musls_sim.plants.rigid_links.step_control import substeps
from musls_sim.plants.rigid_rods.step import advance
from musls_sim.preflight.trim import trim_speeds_rad_s
from musls_sim.scenario.physics import CONTROL_PERIOD_S

# ---------- One rigid body of load and drones (Li et al., "RotorTM", IEEE T-RO 2023, eq. 24)
#
# In the load's axes, with r the place of a part's centre of mass and R its attitude beside the
# load:
#
#     m_c = sum m,  rho_c = sum m r / m_c,  J_c = sum (R J R^T + m (s.s I - s s^T)),  s = r - rho_c.
#
# (The authors' code keeps the diagonal of the last term alone and forgets the inverse of J_c.)


@dataclass(frozen=True)
class Composite:
    """Masses and places of a rigid structure, in the axes of its load.

    Attributes:
        mass_kg: Of everything.
        inertia_kg_m2: About its centre of mass, (3, 3).
        place_m: Centres of mass of load and drones from that of the whole, (1 + n, 3).
        attitude: Load and drones beside the load, (1 + n, 3, 3).
    """

    mass_kg: float
    inertia_kg_m2: Array
    place_m: Array
    attitude: Array

    @classmethod
    def of(cls, system: SlungLoadSystem, motion: Motion) -> Composite:
        """Structure that a system has where its bodies are now."""
        parts: list[Load | Drone] = [system.load, *system.drones]
        turns = Rotation.from_quat(motion.orientation_wxyz, scalar_first=True)
        place = turns[0].inv().apply(motion.position_enu_m - motion.position_enu_m[0])
        attitude = (turns[0].inv() * turns).as_matrix()
        mass = np.array([part.mass_kg for part in parts])
        place = place - mass @ place / mass.sum()
        inertia = np.zeros((3, 3))
        for part, r, turn in zip(parts, place, attitude, strict=True):
            inertia += turn @ np.array(part.inertia_kg_m2) @ turn.T
            inertia += part.mass_kg * (r @ r * np.eye(3) - np.outer(r, r))
        return cls(float(mass.sum()), inertia, place, attitude)

    def velocities(self, motion: Motion) -> tuple[Array, Array]:
        """Velocities of all parts if they move with the load, world, and body rates, (1 + n, 3)."""
        turn = Rotation.from_quat(motion.orientation_wxyz[0], scalar_first=True)
        omega = motion.omega_body_rad_s[0]
        swept = turn.apply(np.cross(omega, self.place_m - self.place_m[0]))
        rates: Array = np.einsum("nji,j->ni", self.attitude, omega)
        return motion.velocity_enu_m_s[0] + swept, rates


Array = NDArray[np.float64]

MISS_M = 1e-6
MISS_M_S = 1e-6
"""By how much lengths and velocities of a start may miss those of a rigid structure."""


class RigidRodsPlant(Plant):
    """One rigid body of load, massless rods and drones, see `interface.Plant`.

    The structure is the one of the start: whoever builds the plant places the drones. A rod is
    clamped at both ends, so that the force in it follows from its drone's balance.
    """

    system: SlungLoadSystem

    cable_model = "rigid_rods"

    def __init__(
        self,
        system: SlungLoadSystem,
        start: Motion,
        *,
        physics_step_s: float | None = None,
        gravity_m_s2: float = 9.80665,
        ground_height_enu_m: float | None = 0.0,
        rotor_speed_rad_s: Array | None = None,
    ) -> None:
        """Join the bodies where they are; the cables' lengths are those of the rods.

        The longest time step is 4 ms by default. Rotor speeds, (n_drones, n_rotors), are 0 by
        default; a ground height of None means no ground.

        Raises:
            ConfigError: The bodies are not a rod apart, or do not move as one.
        """
        self.system = system
        self.gravity_m_s2 = gravity_m_s2
        self.period_s = CONTROL_PERIOD_S
        self.substeps = substeps(CONTROL_PERIOD_S if physics_step_s is None else physics_step_s)
        self.physics_step_s = self.period_s / self.substeps
        self.composite = whole = Composite.of(system, start)
        _check_rates(whole, start)
        self._memory, self.records = build_records(
            system,
            start,
            gravity_m_s2=gravity_m_s2,
            ground_height_enu_m=ground_height_enu_m,
            step_s=self.physics_step_s,
            restitution=0.0,
        )
        self._address = self._memory.ctypes.data
        t, n = self.records, system.n_drones
        t.bodies["place"], t.bodies["beside"] = whole.place_m, whole.attitude
        self._place_rod_ends(system)
        self._structure = np.zeros(BODY.itemsize // 8)
        self._whole = self._structure.view(BODY)[0]
        self._whole["mass"], self._whole["inverse_mass"] = whole.mass_kg, 1.0 / whole.mass_kg
        self._whole["inertia"] = whole.inertia_kg_m2
        self._whole["inverse_inertia"] = np.linalg.inv(whole.inertia_kg_m2)
        self._set_state(start)
        corners = t.corners["place"][:8] + whole.place_m[0]  # of the load: the whole stands on it
        t.system[0]["contact_step"] = min(
            t.system[0]["contact_step"],
            contact_step_s(whole.mass_kg, whole.inertia_kg_m2, corners),
        )
        t.bodies["stiffness"] *= whole.mass_kg / t.bodies["mass"]
        t.bodies["damping"] *= whole.mass_kg / t.bodies["mass"]
        if rotor_speed_rad_s is not None:
            t.speed[:] = rotor_speed_rad_s
        t.end_speed[:] = t.speed
        self.state = PlantState(t.shown, t.speed, t.force.reshape(n, 2, 3), t.cables["peak"])
        self.reaction = Reaction.zeros(system)
        self._periods = 0
        self._advance(PlantInputs.zeros(system), 0.0)
        self._start_j = self.energy_j

    def _place_rod_ends(self, system: SlungLoadSystem) -> None:
        """Write the ends of the rods on load and drone, from the centre of the whole."""
        place, attitude = self.composite.place_m, self.composite.attitude
        for i, (rod, drone) in enumerate(zip(system.cables, system.drones, strict=True)):
            anchor = place[0] + np.array(system.load.cable_attachments_m[i])
            hook = place[1 + i] + attitude[1 + i] @ np.array(drone.cable_attachment_m)
            length = float(np.linalg.norm(hook - anchor))
            if abs(length - rod.length_m) > MISS_M:
                raise ConfigError(
                    f"rod_{i + 1} of {rod.length_m:g} m (cables.{i}.length_m) does not fit: "
                    f"load and drone_{i + 1} are {length:.6g} m apart"
                )
            cable = self.records.cables[i]
            cable["load_point"], cable["drone_point"] = anchor, hook

    def _set_state(self, start: Motion) -> None:
        """State of the whole from that of the load."""
        y = self._whole["state"]
        turn = matrix_to_body(start.orientation_wxyz[0]).T
        back, omega = -self.composite.place_m[0], start.omega_body_rad_s[0]
        y["position"] = start.position_enu_m[0] + turn @ back
        y["velocity"] = start.velocity_enu_m_s[0] + turn @ np.cross(omega, back)
        y["attitude"], y["omega"] = start.orientation_wxyz[0], omega

    # -------------------------------------------------------------------------------- the step

    @property
    def time_s(self) -> float:
        """Simulated time, exact multiple of the period."""
        return self._periods * self.period_s

    @property
    def refined_periods(self) -> int:
        """Periods with steps shorter than the usual."""
        return int(self.records.system[0]["refined"])

    def step(self, inputs: PlantInputs) -> None:
        """Advance one control period, see `interface.Plant.step`."""
        if inputs.motion is not None:
            raise ConfigError(
                "cable_model: rigid_rods makes one rigid body of load and drones, so drones that "
                "are moved leave nothing to predict; choose cable_model: massless"
            )
        if self._advance(inputs, self.period_s) < 0:
            raise SimulationDiverged(
                f"simulation diverged at {self.time_s:.3f} s: the structure moves faster than "
                f"{SPEED_LIMIT_M_S:g} m/s; check rotor commands, wind and forces"
            )
        self._periods += 1

    def _advance(self, inputs: PlantInputs, period_s: float) -> int:
        return int(
            advance(
                self._address,
                self._structure.ctypes.data,
                period_s,
                inputs.rotor_command_rad_s,
                inputs.wind_enu_m_s,
                inputs.wrench_body,
                inputs.wrench_enu,
            )
        )

    def apply(self, change: Change) -> None:
        """Change the system between two periods, see `interface.Plant.apply`."""
        if isinstance(change, RotorEfficiency):
            scale_rotors(self.system, self.records.rotors, change)
        else:
            super().apply(change)

    def cable_nodes_enu_m(self, index: int) -> Array:
        """Points of rod `index` (from 0) from the load to the drone, (links + 1, 3)."""
        whole, rod = self._whole, self.records.cables[index]
        ends = [
            whole["position"] + whole["rotation"] @ rod[end]
            for end in ("load_point", "drone_point")
        ]
        points: Array = np.linspace(ends[0], ends[1], self.system.cables[index].links + 1)
        return points

    @property
    def energy_j(self) -> float:
        """Kinetic and potential energy [J]."""
        y, whole = self._whole["state"], self.composite
        v, omega = y["velocity"], y["omega"]
        kinetic = 0.5 * (whole.mass_kg * v @ v + omega @ whole.inertia_kg_m2 @ omega)
        return float(kinetic + whole.mass_kg * self.gravity_m_s2 * y["position"][2])

    @property
    def audit(self) -> EnergyAudit:
        """Work, losses and energies since the start."""
        world = self.records.system[0]
        return EnergyAudit(
            work_j=float(world["work"]),
            absolute_work_j=float(world["absolute_work"]),
            loss_j=float(world["loss"]),
            start_j=self._start_j,
            energy_j=self.energy_j,
        )

    @property
    def spurious_energy_j(self) -> float:
        """Energy that the integration made from nothing so far; 0 if it only took some."""
        return self.audit.made_j


def _check_rates(whole: Composite, start: Motion) -> None:
    """Refuse a start in which the drones do not move with the load."""
    velocity, omega = whole.velocities(start)
    miss = np.maximum(
        np.abs(velocity - start.velocity_enu_m_s).max(axis=1),
        np.abs(omega - start.omega_body_rad_s).max(axis=1),
    )
    worst = int(miss.argmax())
    if miss[worst] > MISS_M_S:
        raise ConfigError(
            f"drone_{worst} does not move with the load (off by {miss[worst]:.3g} m/s or rad/s): "
            "rods are rigid"
        )


# ---------- Builds the plant with rigid rods of a scenario


def build(setup: PlantSetup) -> RigidRodsPlant:
    """Rigid rods that make load and drones one body; the cables' lengths are theirs.

    In the air the rods stand where massless cables would hang in formation, the drones level
    beside a level load. A start by state places the drones anywhere. On the ground the structure
    stands on its load.

    Raises:
        ConfigError: The bodies of the start are not a rod's length apart.
    """
    physics, start, chains = setup.physics, setup.start, setup.equilibrium
    system = slung_system(setup.system, "cable_model = rigid_rods")
    assert chains is not None  # every slung load has one
    step = None if isinstance(physics.step_size_s, str) else physics.step_size_s
    gravity = physics.gravity_m_s2
    if start.kind == "state":
        try:
            motion = given_motion(system, start)
            return RigidRodsPlant(system, motion, physics_step_s=step, gravity_m_s2=gravity)
        except ConfigError as error:
            raise ConfigError(f"start: {error}") from None
    rest, motion = hanging(system, chains, gravity)
    motion = levelled(system, motion)
    speeds = None
    if start.kind == "ground":
        motion.position_enu_m[:, 2] += -system.load.collision.bottom_m - motion.position_enu_m[0, 2]
        motion.position_enu_m[:, :2] -= motion.position_enu_m[0, :2].copy()
    else:
        speeds = trim_speeds_rad_s(system, carried(system, motion, rest, gravity))
    return RigidRodsPlant(
        system, motion, physics_step_s=step, gravity_m_s2=gravity, rotor_speed_rad_s=speeds
    )


def levelled(system: SlungLoadSystem, motion: Motion) -> Motion:
    """Structure with load and drones level where they hang in formation, rods as the cables."""
    turns = Rotation.from_quat(motion.orientation_wxyz, scalar_first=True)
    yaw = yaw_of(motion.orientation_wxyz)
    level = Rotation.from_rotvec(np.outer(yaw, [0.0, 0.0, 1.0]))
    position = motion.position_enu_m.copy()
    for i, drone in enumerate(system.drones):
        anchor = np.array(system.load.cable_attachments_m[i])
        hook = np.array(drone.cable_attachment_m)
        rod = position[1 + i] + turns[1 + i].apply(hook) - position[0] - turns[0].apply(anchor)
        rod = (level[0] * turns[0].inv()).apply(rod)
        position[1 + i] = position[0] + level[0].apply(anchor) + rod - level[1 + i].apply(hook)
    return Motion.at_rest(position, level.as_quat(scalar_first=True))


def carried(
    system: SlungLoadSystem, motion: Motion, rest: HangingEquilibrium, gravity_m_s2: float
) -> HangingEquilibrium:
    """Vertical thrusts of the drones that hold a level structure, the smallest that do.

    `motion` is level; `rest` is any equilibrium of the system, its forces of drones are replaced.
    """
    masses = np.array([system.load.mass_kg, *(drone.mass_kg for drone in system.drones)])
    centre = masses @ motion.position_enu_m / masses.sum()
    arms = motion.position_enu_m[1:] - centre
    effect = np.stack([np.ones(len(arms)), arms[:, 1], -arms[:, 0]])
    needed = np.array([masses.sum() * gravity_m_s2, 0.0, 0.0])
    thrust = np.linalg.lstsq(effect, needed, rcond=None)[0]
    if thrust.min() < 0.0:
        thrust = nnls(effect, needed)[0]
    return dataclasses.replace(
        rest,
        drone_force_n=thrust[:, None] * [0.0, 0.0, 1.0],
        drone_moment_n_m=np.zeros((len(arms), 3)),
    )
