"""How a flight starts: on the ground, hanging in formation, or in any state."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from musls_description.schema import Quaternion, Vector3, spec


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
class StartSpec:
    """How a flight starts.

    Attributes:
        kind: "ground": all standing, cables slack; "air": hanging in equilibrium at the first
            stage's first set-point; "state": as given by `load` and `drones`.
        load: Motion of the load, for "state".
        drones: Motion of the drones, for "state", one each.
    """

    kind: Literal["ground", "air", "state"] = "ground"
    load: BodyState | None = None
    drones: tuple[BodyState, ...] | None = None

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        given = self.load is not None or self.drones is not None
        if self.kind == "state" and (self.load is None or self.drones is None):
            raise ValueError("kind: state needs load and drones")
        if self.kind != "state" and given:
            raise ValueError(f"load and drones belong to kind: state, not to {self.kind}")


def _from_text(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value


Start = Annotated[StartSpec, BeforeValidator(_from_text)]
"""A scenario's start: a mapping, or its kind alone."""
