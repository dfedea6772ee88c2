"""What the formation needs of a scenario file: mission, formation, start, number of drones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_control.formation import Cone
from musls_control.mission import FlightPlan, GroundSpot, compile_air_plan, compile_plan
from musls_control.mission_spec import MissionSpec
from musls_description.errors import ConfigError
from musls_description.schema import build, parse_yaml, read_text

Array = NDArray[np.float64]


@dataclass(frozen=True)
class MissionFile:
    """Mission and formation as a file gives them.

    Attributes:
        name: Of the scenario.
        n_drones: Number of drones.
        mission: What is to be flown.
        formation: Places of the drones around the load.
        lands: Whether the flight starts and ends on the ground.
    """

    name: str
    n_drones: int
    mission: MissionSpec
    formation: Cone
    lands: bool

    def plan(self, load_enu_m: Array, load_yaw_rad: float, drones_enu_m: Array) -> FlightPlan:
        """Sample the set-points of the whole flight.

        Args:
            load_enu_m: Where the load stands, (3,).
            load_yaw_rad: Its heading.
            drones_enu_m: Where the drones stand, (n, 3).

        Raises:
            ConfigError: A stage is too long, or it is a delivery.
        """
        if self.mission.kind == "delivery" and self.lands:
            raise ConfigError(
                f"{self.name}: mission.kind = delivery is flown by musls fly, not by the ROS graph"
            )
        if self.lands:
            spot = GroundSpot(load_enu_m, load_yaw_rad, drones_enu_m)
            return compile_plan(self.mission, self.formation, spot)
        first = self.mission.stages[0].pose(np.zeros(1))[0]
        return compile_air_plan(self.mission, self.formation, first, self.n_drones)


def read_mission_file(path: Path) -> MissionFile:
    """Read a resolved scenario (as `musls fly` saves it beside every result).

    Raises:
        ConfigError: No such file, or something in it is wrong or missing.
    """
    text = read_text(path)
    data = parse_yaml(text, str(path))
    system = data.get("system") if isinstance(data, Mapping) else None
    drones = system.get("drones") if isinstance(system, Mapping) else None
    if not isinstance(drones, list):
        raise ConfigError(
            f"{path}: system.drones is missing: a resolved scenario is needed, such as the "
            "scenario.yaml in a result folder of musls fly"
        )
    if "mission" not in data:
        raise ConfigError(f"{path}: mission is missing")
    return MissionFile(
        str(data.get("name", path.stem)),
        len(drones),
        build(MissionSpec, data["mission"], f"{path}: mission"),
        build(Cone, data.get("formation") or {}, f"{path}: formation"),
        _starts_on_ground(data.get("start", "ground")),
    )


def _starts_on_ground(start: Any) -> bool:
    """Whether a scenario's start, a kind or a mapping with one, is on the ground."""
    return (start.get("kind", "ground") if isinstance(start, Mapping) else start) == "ground"
