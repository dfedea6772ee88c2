"""Your own cable law: an axial law with memory, from a user's file."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, ClassVar

from musls_description.config.registry import AnyOf, Registry, requires
from musls_description.config.schema import spec

CABLE_LAWS: Registry[Any] = Registry(
    "cable law", "musls.cable_laws", {}, requires("tension", base=lambda: CableLaw)
)
"""Specifications by kind: classes made with `spec` derived from `CableLaw`."""

AnyCableLaw = Annotated[Any, AnyOf(CABLE_LAWS)]
"""Type of `own_law` of a cable."""


@spec
class CableLaw:
    """Base of cable laws; a `spec` class derived from it needs `kind` and `tension`.

    Attributes:
        kind: Kind of the law.
        remembered: Names of the numbers that a segment remembers, at most 4.
    """

    kind: str
    remembered: ClassVar[tuple[str, ...]] = ()

    @staticmethod
    @abstractmethod
    def tension(law, before, after, strain, strain_rate, dt):
        """Tension [N], and energy stored per unstretched length [J/m], of a segment.

        Is compiled by numba. Pure: it is called several times for each step.

        Args:
            law: The fields of the class that are numbers, as floats: `law.ea_n`.
            before: State of the segment at `dt` ago, 0 at first: `before.plastic_strain`.
            after: State of the segment now, to be written; the same names.
            strain: Now.
            strain_rate: Now [1/s].
            dt: Time since then [s]; very long where a cable at rest is asked for.
        """
        raise NotImplementedError
