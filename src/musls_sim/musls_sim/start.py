"""How a flight starts: on the ground, hanging in formation, or in any state."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from musls_description.schema import Number, Quaternion, Vector3, spec


@spec
class BodyState:
    """Motion of one body at the start.

    Attributes:
        position_enu_m: Centre of mass, world.
        velocity_enu_m_s: World.
        orientation_wxyz: Body FLU to world ENU.
        omega_body_rad_s: Body frame.
    """

    position_enu_m: Vector3
    velocity_enu_m_s: Vector3 = (0.0, 0.0, 0.0)
    orientation_wxyz: Quaternion = (1.0, 0.0, 0.0, 0.0)
    omega_body_rad_s: Vector3 = (0.0, 0.0, 0.0)


@spec
class CableStart:
    """Shape of a cable between its ends at the start.

    Attributes:
        shape: "equilibrium": as it hangs at rest between its ends; "straight": along the line
            between them, whatever its length; "nodes": as given.
        strain: Of a straight cable: its free length becomes the distance over 1 + strain.
        nodes_enu_m: For "nodes": all of them from end 1 to end 2, world, (segments + 1, 3).
    """

    shape: Literal["equilibrium", "straight", "nodes"] = "equilibrium"
    strain: Annotated[float, Field(gt=-0.5, le=10.0, allow_inf_nan=False), Number] | None = None
    nodes_enu_m: tuple[Vector3, ...] | None = None

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        if self.strain is not None and self.shape != "straight":
            raise ValueError(f"strain belongs to shape: straight, not to {self.shape}")
        if (self.nodes_enu_m is None) == (self.shape == "nodes"):
            raise ValueError("nodes_enu_m belongs to shape: nodes, which needs it")


@spec
class StartSpec:
    """How a flight starts.

    Attributes:
        kind: "ground": all standing, cables slack; "air": hanging in equilibrium at the first
            stage's first set-point; "state": as given by `load` and `drones`; "equilibrium", of
            rigs: drones at rest as given, the load where it hangs at rest.
        load: Motion of the load, for "state"; where to look for the place at which it hangs.
        drones: Motion of the drones, for "state" and "equilibrium", one each.
        cables: Shapes of the cables of a rig: one for all, or one each.
    """

    kind: Literal["ground", "air", "state", "equilibrium"] = "ground"
    load: BodyState | None = None
    drones: tuple[BodyState, ...] | None = None
    cables: CableStart | tuple[CableStart, ...] | None = None

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        given = self.load is not None or self.drones is not None
        if self.kind == "state" and not given:
            raise ValueError("kind: state needs load and drones")
        if self.kind in ("ground", "air") and (given or self.cables is not None):
            raise ValueError(f"load, drones and cables belong to kind: state, not to {self.kind}")


def _from_text(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


Start = Annotated[StartSpec, BeforeValidator(_from_text)]
"""A scenario's start: a mapping, or its kind alone."""
