"""`pid`: cascaded PIDs that keep the drones in formation, see `musls_control.cascaded_pid`.

Table 6 of 002 gives newtons per rotor for its own drone of m = 10.0224 kg and J = (0.27, 0.26,
0.42) kg m2. The paper leaves open whether the height's output is meant per rotor; with one per
rotor a step overshoots by 16 %, else by 46 %. The defaults are the accelerations that follow:

    height          4 (28, 22, 18) / m
    sideways        (0.52, 0.037, 0.74)
    roll, pitch     4 a (3.93, 0.09, 15.68) / J,  4 a (3.93, 0.089, 15.68) / J,  a = 0.3517 m
    yaw             4 b (129.11, 81.29, 7.17) / J,  b = 0.0381 m (from the propeller's geometry)
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from musls_control.cascaded_pid import LEAST_COSINE, CascadedPid, DroneReference, PidLimits
from musls_control.controllers.interface import Controller, ControlLevel, ControlSetup
from musls_control.estimate import Estimate
from musls_control.formation import drone_poses
from musls_control.reference import LoadReference
from musls_description.rotations import matrix_to_body
from musls_description.schema import NonNegative, Positive, spec
from musls_description.slung import formation_of

Array = NDArray[np.float64]

Pid = tuple[Positive, NonNegative, Positive]
"""Gains of proportion, integral and derivative."""

EARTH_M_S2 = 9.81


@spec
class PidSpec:
    """Cascaded PIDs of 002 keep the drones in their places, without feedback of the load.

    Each key holds the proportional, integral and derivative gain.

    Attributes:
        kind: "pid".
        height: Vertical acceleration per error [1/s2, 1/s3, 1/s].
        sideways: Tilt per error of the horizontal position [rad/m, rad/(m s), rad s/m].
        roll: Angular acceleration per error of the angle [1/s2, 1/s3, 1/s].
        pitch: As for roll.
        yaw: As for roll.
        largest_tilt_rad: Largest tilt (roll and pitch together) that is asked for.
    """

    kind: Literal["pid"] = "pid"
    height: Pid = (11.175, 8.780, 7.184)
    sideways: Pid = (0.52, 0.037, 0.74)
    roll: Pid = (20.48, 0.469, 81.70)
    pitch: Pid = (21.27, 0.482, 84.84)
    yaw: Pid = (46.86, 29.50, 2.602)
    largest_tilt_rad: Annotated[float, Field(gt=0.0, le=1.0)] = 0.6

    def __post_init__(self) -> None:
        """Refuse gains that no drone can fly with (Routh: P D > I for a mass and for a tilt)."""
        for name in ("height", "sideways", "roll", "pitch", "yaw"):
            p, i, d = getattr(self, name)
            tilts = EARTH_M_S2 if name == "sideways" else 1.0
            if p * d * tilts <= i:
                raise ValueError(
                    f"{name} = {[p, i, d]} is unstable on any drone: the integral's gain must be "
                    f"below {p * d * tilts:.4g}"
                )

    def build(self, setup: ControlSetup) -> Controller:
        """Make the controller.

        Raises:
            ConfigError: The system has no formation.
        """
        return _FormationByPid(self, formation_of(setup.system, "controller.kind = pid").n_drones)


class _FormationByPid(Controller):
    """Every drone follows its place in the formation round the load's set-point."""

    level = ControlLevel.THRUST_MOMENT

    def __init__(self, given: PidSpec, n_drones: int) -> None:
        self._given, self._n = given, n_drones

    def prepare(self, setup: ControlSetup) -> None:
        """See `Controller.prepare`."""
        super().prepare(setup)
        system, given = setup.system, self._given
        mass = np.array([drone.mass_kg for drone in system.drones])
        hanging = system.load.mass_kg + sum(cable.mass_kg for cable in system.cables)
        mass = mass + hanging / self._n
        self._share_n = hanging / self._n * setup.gravity_m_s2
        self._attachments_m = np.array(system.load.cable_attachments_m)
        self._hooks_m = np.array([drone.cable_attachment_m for drone in system.drones])
        self._offsets_m = setup.formation.offsets_m(self._n)
        self._azimuths_rad = setup.formation.azimuths_rad(self._n)
        self._pid = CascadedPid(
            [given.height, given.sideways, given.roll, given.pitch, given.yaw],
            mass,
            [drone.inertia_kg_m2 for drone in system.drones],
            PidLimits.of(system.drones, mass * setup.gravity_m_s2),
            gravity_m_s2=setup.gravity_m_s2,
            period_s=setup.period_s,
            largest_tilt_rad=given.largest_tilt_rad,
        )

    def start(self, time_s: float, estimate: Estimate) -> None:
        """Begin as after a long hover: with the present tilts, and moments against the cables'."""
        turn = matrix_to_body(estimate.orientation_wxyz)
        at_load = estimate.position_enu_m[0] + self._attachments_m @ turn[0]
        hooks = np.einsum("nij,ni->nj", turn[1:], self._hooks_m)
        along = at_load - estimate.position_enu_m[1:] - hooks
        along /= np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-9)
        # No tension is measured yet: that of a load at rest, its weight shared evenly.
        tension_n = self._share_n / np.maximum(-along[:, 2:], LEAST_COSINE)
        pull = np.einsum("nij,nj->ni", turn[1:], tension_n * along)
        self._pid.start(estimate.drones, -np.cross(self._hooks_m, pull))

    def step(self, time_s: float, reference: LoadReference, estimate: Estimate) -> Array:
        """Thrust and moment of each drone, (n, 4)."""
        return self._pid.step(self._places(reference), estimate.drones)

    def _places(self, reference: LoadReference) -> DroneReference:
        """The formation round the load's reference, with the motion that its turning gives."""
        positions, yaws = drone_poses(
            reference.position_enu_m[None],
            np.array([reference.yaw_rad]),
            self._offsets_m,
            self._azimuths_rad,
        )
        arms = positions[0] - reference.position_enu_m
        rate = reference.yaw_rate_rad_s
        across = np.column_stack([-arms[:, 1], arms[:, 0], np.zeros(self._n)])
        return DroneReference(
            positions[0],
            reference.velocity_enu_m_s + rate * across,
            yaws[0],
            np.full(self._n, rate),
        )
