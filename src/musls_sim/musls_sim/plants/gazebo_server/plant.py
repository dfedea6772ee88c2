"""Rigid-link cables on a Gazebo server, stepped in lockstep with our own session.

Gazebo brings joints, rigid bodies and contacts (its DART plugin); rotors, drag, wind, pushes and
the soft ground under the cables are the functions of the other plants, put on its links as forces.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_description.errors import ConfigError
from musls_description.models import world_sdf
from musls_description.models.mechanism import PIVOT, Link, build_mechanism
from musls_description.spawn import Configuration
from musls_description.system import SlungLoadSystem
from musls_description.tree import build_tree
from musls_sim.physics import CONTROL_PERIOD_S
from musls_sim.plants.bodies import collect_state, fastest_body
from musls_sim.plants.changes import RotorEfficiency, refusal, scale_rotors
from musls_sim.plants.gazebo_server.forces import cable_forces, outside_forces
from musls_sim.plants.gazebo_server.server import GazeboServer
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
        self._hold_s = self.physics_step_s  # time for which forces hold
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
        drones = [drone.drag_n_s_m for drone in system.drones]
        self._drag = np.array([system.load.drag_n_s_m, *drones])
        self._reach = np.array(
            [float(np.linalg.norm(np.abs(d.collision.center_m) + np.array(d.collision.size_m) / 2))
             for d in system.drones]
        )  # fmt: skip
        text = self._world(start)
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

    def _world(self, start: Configuration) -> str:
        """Text of the world: links and joints without motors, sensors and other systems."""
        return world_sdf(
            self.system, start, drones="rigid", step_s=self.physics_step_s,
            gravity_m_s2=self._gravity_m_s2, physics_only=True,
        )  # fmt: skip

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
        outside_forces(
            (self._motion, self._wrench, speed), inputs.rotor_command_rad_s,
            (self._rotors, self._drag, self._length, self._selected), inputs.wind_enu_m_s,
            (inputs.wrench_body, inputs.wrench_enu), self._hold_s,
        )  # fmt: skip
        self._before[:] = self._motion
        return self._wrench

    def _after_step(self) -> None:
        self._motion[:] = self._server.motion
        cable_forces(
            (self._before, self._motion, self._wrench), (self._mass, self._first, self._drone),
            self._reach + DRONE_TOUCHES_M, self._hold_s, self._gravity_m_s2,
            self.state.cable_force_n, self.state.tension_peak_n,
        )  # fmt: skip

    changes: tuple[type[Change], ...] = (RotorEfficiency,)
    """What `apply` can do."""

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

    def cable_end_rotations(self, index: int) -> Array:
        """See `interface.Linked`."""
        ends = [self._first[index], self._drone[index] - 1]
        return self._motion[ends, :9].reshape(2, 3, 3)


def _placed(links: list[Link]) -> Array:
    """Motion of all links but the pivots at rest where the world file puts them."""
    poses: list[tuple[Array, Array]] = []
    rows = []
    for link in links:
        place, turn = poses[link.parent] if link.parent >= 0 else (np.zeros(3), np.eye(3))
        poses.append((place + turn @ link.position_m, turn @ link.rotation))
        if link.name != PIVOT:
            rows.append([*poses[-1][1].ravel(), *poses[-1][0], *np.zeros(6)])
    return np.array(rows)
