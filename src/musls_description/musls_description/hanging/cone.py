"""The virtual cone: where each drone flies for a pose of the load's set-point (eq. 11).

The tip of the inverted cone is the load's set-point, the drones are spread evenly over its rim
and each faces the load. The paper's flights: radius 1.0 m, height 2.2962 m.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from musls_description.config.errors import ConfigError
from musls_description.config.schema import Finite, NonNegative, Positive, Vector3, spec
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import joined, parts_of, wrapped


@spec
class Cone:
    """Formation of the drones in the frame of the load's set-point.

    What a scenario's file leaves out follows from the system: directions from the attachments,
    radius and height from the lengths of the cables. Where the paper's cone (1.0 m, 2.2962 m) fits
    the system it is taken.

    Attributes:
        radius_m: Distance of the drones from the load's vertical axis.
        height_m: Height of the drones above the load's set-point.
        first_azimuth_rad: Direction of drone 1 in the load's frame, counter-clockwise from its x
            axis; the others follow evenly spaced.
        places_m: Place of each drone in the frame of the load's set-point, instead of the cone.
    """

    radius_m: NonNegative = 1.0
    height_m: Positive = 2.2962
    first_azimuth_rad: Finite = 0.0
    places_m: Annotated[tuple[Vector3, ...], Field(min_length=1)] | None = None

    def azimuths_rad(self, n_drones: int) -> Array:
        """Direction of each drone in the load's frame, (n_drones,)."""
        if self.places_m is not None:
            places = self._places(n_drones)
            return np.arctan2(places[:, 1], places[:, 0])
        return self.first_azimuth_rad + 2.0 * np.pi * np.arange(n_drones) / n_drones

    def offsets_m(self, n_drones: int) -> Array:
        """Place of each drone in the frame of the load's set-point, (n_drones, 3)."""
        if self.places_m is not None:
            return self._places(n_drones)
        azimuth = self.azimuths_rad(n_drones)
        flat = self.radius_m * np.column_stack([np.cos(azimuth), np.sin(azimuth)])
        return np.column_stack([flat, np.full(n_drones, self.height_m)])

    def poses(
        self, load_position_enu_m: Array, load_yaw_rad: Array | float, n_drones: int
    ) -> tuple[Array, Array]:
        """Places (..., n, 3) and yaws (..., n) of the drones in the world, see `drone_poses`."""
        offsets = self.offsets_m(n_drones)
        azimuths = self.azimuths_rad(n_drones)
        return drone_poses(load_position_enu_m, load_yaw_rad, offsets, azimuths)

    def _places(self, n_drones: int) -> Array:
        """The given places, (n_drones, 3)."""
        places = np.array(self.places_m, np.float64)
        if len(places) != n_drones:
            raise ConfigError(
                f"formation.places_m has {len(places)} places for {n_drones} drone"
                f"{'' if n_drones == 1 else 's'}"
            )
        return places


def with_places(places_m: Array) -> Cone:
    """Formation of given places, (n, 3)."""
    return Cone(
        radius_m=float(np.linalg.norm(places_m[:, :2], axis=1).mean()),
        height_m=float(places_m[:, 2].mean()),
        first_azimuth_rad=float(np.arctan2(places_m[0, 1], places_m[0, 0])),
        places_m=tuple((float(x), float(y), float(z)) for x, y, z in places_m),
    )


def drone_poses(
    load_position_enu_m: Array, load_yaw_rad: Array | float, offsets_m: Array, azimuths_rad: Array
) -> tuple[Array, Array]:
    """World poses of all drones for poses of the load's set-point (eq. 11, level set-points).

    Load positions are (..., 3), yaws (...); `offsets_m` are the drones in the load set-point's
    frame, (n, 3) or (..., n, 3), and `azimuths_rad` their directions in it, (n,). Returns positions
    (..., n, 3) and yaws (..., n) in (-pi, pi]; each drone faces the load.
    """
    load_yaw = np.asarray(load_yaw_rad)[..., None]
    cos = np.cos(load_yaw)
    sin = np.sin(load_yaw)
    x, y, z = parts_of(offsets_m)
    offset = joined(cos * x - sin * y, sin * x + cos * y, z)
    position = load_position_enu_m[..., None, :] + offset
    yaw = load_yaw + azimuths_rad + np.pi
    return position, 0.0 - wrapped(-yaw)  # pi, not -pi; 0, not -0
