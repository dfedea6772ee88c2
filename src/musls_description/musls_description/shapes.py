"""Homogeneous shapes, from which inertia and box of a body follow instead of being given."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from musls_description.schema import Edges, Matrix3, Positive, Vector3, spec

Axis = Literal["x", "y", "z"]


@spec
class BoxShape:
    """A solid box.

    Attributes:
        kind: "box".
        size_m: Edges along x, y, z.
    """

    kind: Literal["box"] = "box"
    size_m: Edges

    @property
    def squares_m2(self) -> Vector3:
        """Mean squares of x, y and z over the mass."""
        x, y, z = self.size_m
        return (x * x / 12.0, y * y / 12.0, z * z / 12.0)

    @property
    def edges_m(self) -> Vector3:
        """Edges of the box around it."""
        return self.size_m


@spec
class CylinderShape:
    """A solid cylinder.

    Attributes:
        kind: "cylinder".
        radius_m: Radius.
        length_m: Length along its axis.
        axis: Axis of the body's frame along which the cylinder lies.
    """

    kind: Literal["cylinder"] = "cylinder"
    radius_m: Positive
    length_m: Positive
    axis: Axis = "z"

    @property
    def squares_m2(self) -> Vector3:
        """Mean squares of x, y and z over the mass."""
        return _along(self.axis, self.length_m**2 / 12.0, self.radius_m**2 / 4.0)

    @property
    def edges_m(self) -> Vector3:
        """Edges of the box around it."""
        return _along(self.axis, self.length_m, 2.0 * self.radius_m)


@spec
class RodShape(CylinderShape):
    """A thin straight rod: a cylinder with other defaults.

    Attributes:
        kind: "rod".
        length_m: Length.
    """

    kind: Literal["rod"] = "rod"  # type: ignore[assignment]  # pydantic tells the classes by it
    radius_m: Positive = 0.01
    axis: Axis = "x"


@spec
class PlateShape:
    """A flat, level plate.

    Attributes:
        kind: "plate".
        length_m: Along x.
        width_m: Along y.
        thickness_m: Along z.
    """

    kind: Literal["plate"] = "plate"
    length_m: Positive
    width_m: Positive
    thickness_m: Positive = 0.01

    @property
    def squares_m2(self) -> Vector3:
        """Mean squares of x, y and z over the mass."""
        return BoxShape(size_m=self.edges_m).squares_m2

    @property
    def edges_m(self) -> Vector3:
        """Edges of the box around it."""
        return (self.length_m, self.width_m, self.thickness_m)


AnyShape = Annotated[BoxShape | CylinderShape | RodShape | PlateShape, Field(discriminator="kind")]
"""Type of a body's `shape`."""


def _along(axis: Axis, along: float, across: float) -> Vector3:
    values = [across] * 3
    values["xyz".index(axis)] = along
    return (values[0], values[1], values[2])


def inertia_of(shape: AnyShape, mass_kg: float) -> Matrix3:
    """Inertia of a homogeneous body about its centre [kg m2].

    Args:
        shape: Its shape.
        mass_kg: Its mass.
    """
    x, y, z = shape.squares_m2
    moments = mass_kg * np.array([y + z, z + x, x + y])
    rows = [tuple(float(v) for v in row) for row in np.diag(moments)]
    return (rows[0], rows[1], rows[2])  # type: ignore[return-value]


def inertia_instead_of(given_kg_m2: Matrix3, shape: AnyShape, mass_kg: float) -> Matrix3:
    """Inertia of a body that has a shape [kg m2].

    Args:
        given_kg_m2: Its field `inertia_kg_m2`: zero, or from the same shape with another mass, as
            a copy with a new mass brings it along.
        shape: Its shape.
        mass_kg: Its mass.

    Raises:
        ValueError: Another inertia is given as well.
    """
    follows = inertia_of(shape, mass_kg)
    given = np.array(given_kg_m2)
    scaled = np.array(follows) * np.trace(given) / np.trace(follows)
    if given.any() and not np.allclose(given, scaled, rtol=1e-9, atol=0.0):
        raise ValueError("give either shape or inertia_kg_m2, not both")
    return follows
