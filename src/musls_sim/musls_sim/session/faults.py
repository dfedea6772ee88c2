"""The steps of a session that imperfections change; without any, the steps are the plain ones."""

from __future__ import annotations

from collections.abc import Callable

from musls_control.autopilot import DroneSetpoints
from musls_sim.imperfect_thrust import TiltedThrust
from musls_sim.imperfections import Imperfections
from musls_sim.plants.interface import PlantInputs
from musls_sim.session.compose import Parts
from musls_sim.session.delays import CommandLatency, SetpointLink
from musls_sim.session.loop import Step


class FaultySteps:
    """What imperfections do on the way from the set-points to the estimate.

    Attributes:
        link: Brings set-points to the autopilot late; None for at once.
        thrust: Tilted rotors; None where there are none.
    """

    def __init__(self, faults: Imperfections, parts: Parts, setpoint: DroneSetpoints) -> None:
        """Prepare.

        Args:
            faults: What is wrong.
            parts: What the session is made of.
            setpoint: What guidance hands out.
        """
        self._parts, period_s = parts, parts.plant.period_s
        self._latency_periods = round(faults.command_latency_s / period_s)
        self.link = SetpointLink.of(setpoint, faults, period_s, parts.jitter)
        self.thrust = TiltedThrust.of(parts.plant.system, faults)

    def start(self) -> None:
        """The drones know the first set-points."""
        if self.link is not None:
            self.link.start()

    def late(self, inputs: PlantInputs) -> tuple[Step, ...]:
        """Motor commands on their way; nothing to do where they are there at once."""
        if not self._latency_periods:
            return ()
        before = self._parts.plant.state.rotor_speed_rad_s
        latency = CommandLatency(inputs.rotor_command_rad_s, self._latency_periods, before)
        inputs.rotor_command_rad_s = latency.late_rad_s
        return (latency.step,)

    def moving(self) -> Callable[[PlantInputs], None]:
        """The plant's step, with tilted rotors."""
        plant, thrust, state = self._parts.plant, self.thrust, self._parts.plant.state
        if thrust is None:
            return plant.step

        def step(inputs: PlantInputs) -> None:
            thrust.begin(state, inputs)
            plant.step(inputs)
            thrust.end(inputs)

        return step

    def estimating(self) -> Step:
        """Sensors and estimator."""
        estimator, sensed, state = (
            self._parts.estimator,
            self._parts.sensed,
            self._parts.plant.state,
        )

        def estimate(tick: int) -> None:
            estimator.step(state)

        def misled(tick: int) -> None:
            assert sensed is not None
            sensed.update()
            estimator.step(sensed.state)

        return estimate if sensed is None else misled
