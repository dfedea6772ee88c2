"""Rigid-link cables on a Gazebo server, stepped in lockstep with our own session.

Gazebo brings joints, rigid bodies and contacts (its DART plugin); rotors, drag, wind, pushes and
the soft ground under the cables are the functions of the other plants, put on its links as forces.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_description.compiled import compiled
from musls_description.errors import ConfigError
from musls_description.models import world_sdf
from musls_description.models.mechanism import PIVOT, build_mechanism
from musls_description.spawn import Configuration
from musls_description.system import SlungLoadSystem
from musls_description.tree import build_tree
from musls_sim.physics import CONTROL_PERIOD_S
from musls_sim.plants.aerodynamics import (
    add_body_drag,
    add_inputs,
    add_rotors,
    spin_rotors,
)
from musls_sim.plants.bodies import OMEGA, POSITION, VELOCITY, collect_state, fastest_body
from musls_sim.plants.changes import RotorEfficiency, refusal, scale_rotors
from musls_sim.plants.gazebo_server.server import GazeboServer
from musls_sim.plants.ground import add_soft_ground
from musls_sim.plants.interface import Change, PlantInputs, PlantState, Reaction, SimulationDiverged
from musls_sim.plants.rotors import rotor_table

Array = NDArray[np.float64]

SPEED_LIMIT_M_S = 1e3
"""No link of a flight is faster; Gazebo itself puts a model that is not finite back and goes on."""

DRONE_TOUCHES_M = 0.02
"""Clearance below which a drone may stand on the ground."""


class GazeboPlant:
    """Rigid-link chains in Gazebo, see `interface.Plant`.

    The step is fixed: nothing refines it where a cable is jerked. Tensions follow from Newton's law
    for all that is beyond a cable's end, which needs the drone in the air: while it touches the
    ground the tensions of its cable are given as 0. The energy that the integration makes is not
    known here.
    """

    cable_model = "rigid_links"
    refined_periods = 0
    spurious_energy_j = 0.0

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

        Args:
            system: What to build.
            start: Configuration at time 0.
            physics_step_s: Time step that divides the control period.
            gravity_m_s2: Gravity.
            rotor_speed_rad_s: Rotor speeds at time 0, (n_drones, n_rotors); default at rest.

        Raises:
            ConfigError: Gazebo's Python bindings are missing, or a system that SDF cannot say.
        """
        self.system = system
        self.period_s = CONTROL_PERIOD_S
        self.substeps = round(self.period_s / physics_step_s)
        self.physics_step_s = self.period_s / self.substeps
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
        self._drag = np.array([part.drag_n_s_m for part in (system.load, *system.drones)])
        self._reach = np.array(
            [float(np.linalg.norm(np.abs(d.collision.center_m) + np.array(d.collision.size_m) / 2))
             for d in system.drones]
        )  # fmt: skip
        text = world_sdf(
            system, start, drones="rigid", step_s=self.physics_step_s,
            gravity_m_s2=gravity_m_s2, physics_only=True,
        )  # fmt: skip
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

    @property
    def time_s(self) -> float:
        """Simulated time, exact multiple of the period."""
        return self._periods * self.period_s

    def step(self, inputs: PlantInputs) -> None:
        """Advance one control period, see `interface.Plant.step`.

        Raises:
            ConfigError: Prescribed motion, which a Gazebo server does not have.
        """
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
        if not speed < SPEED_LIMIT_M_S:
            raise SimulationDiverged(
                f"Gazebo's state is not physical at {self.time_s:.3f} s: body {body} moves at "
                f"{speed:.3g} m/s; take a smaller physics.step_size_s"
            )
        collect_state(self._motion, self._selected, self.period_s, self.state.motion)

    def _forces(self) -> Array:
        """Forces on all links for the coming step."""
        inputs, speed = self._inputs, self.state.rotor_speed_rad_s
        _outside_forces(
            (self._motion, self._wrench, speed), inputs.rotor_command_rad_s,
            (self._rotors, self._drag, self._length, self._selected), inputs.wind_enu_m_s,
            (inputs.wrench_body, inputs.wrench_enu), self.physics_step_s,
        )  # fmt: skip
        self._before[:] = self._motion
        return self._wrench

    def _after_step(self) -> None:
        self._motion[:] = self._server.motion
        _cable_forces(
            (self._before, self._motion, self._wrench), (self._mass, self._first, self._drone),
            self._reach + DRONE_TOUCHES_M, self.physics_step_s, self._gravity_m_s2,
            self.state.cable_force_n, self.state.tension_peak_n,
        )  # fmt: skip

    def apply(self, change: Change) -> None:
        """Change the system between two periods, see `interface.Plant.apply`."""
        if not isinstance(change, RotorEfficiency):
            raise ConfigError(refusal(change, self.cable_model))
        scale_rotors(self.system, self._rotors, change)

    def cable_nodes_enu_m(self, index: int) -> Array:
        """Joints of cable `index` (from 0) from the load to the drone, (links + 1, 3)."""
        first, drone = self._first[index], self._drone[index]
        m = self._motion[drone]
        hook = m[:9].reshape(3, 3) @ np.array(self.system.drones[index].cable_attachment_m)
        return np.vstack([self._motion[first:drone, 9:12], m[9:12] + hook])


def _placed(links: list) -> Array:
    """Motion of all links but the pivots at rest where the world file puts them."""
    poses: list[tuple[Array, Array]] = []
    rows = []
    for link in links:
        place, turn = poses[link.parent] if link.parent >= 0 else (np.zeros(3), np.eye(3))
        poses.append((place + turn @ link.position_m, turn @ link.rotation))
        if link.name != PIVOT:
            rows.append([*poses[-1][1].ravel(), *poses[-1][0], *np.zeros(6)])
    return np.array(rows)


@compiled()
def _outside_forces(moving, command, constants, wind, inputs, step_s):
    """Everything that acts on the links from outside but Gazebo's contacts.

    Args:
        moving: Motion of all links, (n_links, 18); wrench of each about its origin (force, moment,
            world), overwritten, (n_links, 6); rotor speeds, advanced in place.
        command: Commanded rotor speeds.
        constants: Rotors, drag, length of cable per link, rows of load and drones.
        wind: Air velocity, world, (3,) [m/s].
        inputs: `PlantInputs.wrench_body` and `wrench_enu`.
        step_s: Time step [s].
    """
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
def _cable_forces(moving, constants, reach, step_s, gravity, force, peak):
    """Forces at both ends of all cables, the mean over a step, by Newton's law.

    Args:
        moving: Motion of the links before and after the step, their outside wrenches in it.
        constants: Mass and centre of mass of each link, (n_links, 4); first link and drone of each
            cable.
        reach: Height of each drone below which it may touch the ground, (n,) [m].
        step_s: Time step [s].
        gravity: Gravity [m/s2].
        force: `PlantState.cable_force_n`, overwritten.
        peak: `PlantState.tension_peak_n`, raised.
    """
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
