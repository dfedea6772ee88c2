"""The generated Gazebo world with its own motors and sensors, flown by real PX4s over their bridge.

PX4 does not hold Gazebo back: a Gazebo that runs by itself runs away from a PX4 whose processor is
busy. Here the server is in this process and does a control period only when every PX4 that flies
has answered the sensors of the last one. So the pace follows the machine, not the other way round.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from musls_description.errors import ConfigError
from musls_description.models import world_sdf
from musls_description.models.mechanism import drone_name
from musls_description.spawn import Configuration
from musls_description.system import SlungLoadSystem
from musls_sim.gazebo.motor_listener import MotorListener
from musls_sim.plants.aerodynamics import add_inputs
from musls_sim.plants.gazebo_server.plant import GazeboPlant
from musls_sim.plants.interface import PlantInputs

Array = NDArray[np.float64]

WORLD = "musls"

ANSWER_LIMIT_S = 20.0
"""Wall-clock time for a motor command; usual is a fraction of a millisecond."""


class BridgedPlant(GazeboPlant):
    """Rigid-link chains and flying drones in Gazebo, see `interface.Plant`.

    Gazebo brings all but the soft ground under the cables and the pushes of events: motors,
    sensors, contacts. There is no wind and no drag of load and bodies. Tensions, means over a
    control period, are Newton's law with the thrust that the commands to the motors give; rotor
    speeds follow from the same commands.

    Attributes:
        motors: What the PX4s command.
        silent: Drones, from 0, that have not answered for `ANSWER_LIMIT_S`.
        flown: Whether an autopilot listens to `silent` and moves the world before the mission.
    """

    changes = ()

    def __init__(
        self,
        system: SlungLoadSystem,
        start: Configuration,
        *,
        physics_step_s: float,
        gravity_m_s2: float = 9.80665,
        rotor_speed_rad_s: Array | None = None,
    ) -> None:
        """Load the world into a server of its own; args and errors as of `GazeboPlant`."""
        super().__init__(
            system,
            start,
            physics_step_s=physics_step_s,
            gravity_m_s2=gravity_m_s2,
            rotor_speed_rad_s=rotor_speed_rad_s,
        )
        self._drag[:] = 0.0
        self._pushes = np.zeros_like(self._wrench)
        self._idle = self._inputs
        self._server.every, self._hold_s = self.substeps, self.period_s
        models = [drone_name(system, i) for i in range(system.n_drones)]
        self.motors = MotorListener(models, system.n_rotors)
        self.silent: list[int] = []
        self.flown = False

    def _world(self, start: Configuration) -> str:
        return world_sdf(
            self.system, start, name=WORLD, step_s=self.physics_step_s,
            gravity_m_s2=self._gravity_m_s2, lean=True, pace=0.0,
        )  # fmt: skip

    def stand(self) -> None:
        """Let a control period pass before the mission begins, while the drones stand."""
        super().step(self._idle)
        self._periods -= 1
        self._await_motors()

    def step(self, inputs: PlantInputs) -> None:
        """Advance one control period and wait for the PX4s, see `interface.Plant.step`.

        Raises:
            ConfigError: Nobody flies the drones, or there is wind.
        """
        if not self.flown:
            raise ConfigError(
                "physics.engine = gazebo_px4: only real PX4s fly there; choose autopilot.kind: px4"
            )
        if np.any(inputs.wind_enu_m_s):
            raise ConfigError("physics.engine = gazebo_px4: there is no wind; leave it out")
        super().step(inputs)
        self._await_motors()

    def _await_motors(self) -> None:
        # Before it arms, a PX4 does not answer every time; then time goes no faster than real.
        if self.motors.wait(self.period_s):
            self.silent = self.motors.wait(ANSWER_LIMIT_S, running=True)
        else:
            self.silent = []
        self.motors.begin()

    def _forces(self) -> Array:
        """Soft ground and pushes for the coming period; the rest is noted for the tensions only."""
        self._pushes[:] = super()._forces()
        self._pushes[self._selected] = 0.0  # Gazebo's motors move the drones
        inputs = self._inputs
        if np.any(inputs.wrench_body) or np.any(inputs.wrench_enu):
            for row, k in enumerate(self._selected):
                add_inputs(
                    self._motion[k], inputs.wrench_body[row], inputs.wrench_enu[row],
                    self._pushes[k],
                )  # fmt: skip
        return self._pushes
