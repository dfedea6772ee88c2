"""What the formation needs of a scenario file: mission, formation, start, number of drones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musls_control.controllers import AnyController, ControlLevel, ControlSetup
from musls_control.controllers.kinds import FormationSpec
from musls_control.controllers.user import level_of, prepare_controller
from musls_control.delivery import compile_delivery
from musls_control.formation import Cone
from musls_control.graph_control import GraphControl
from musls_control.graph_delivery import GraphDelivery
from musls_control.mission import FlightPlan, GroundSpot, compile_air_plan, compile_plan
from musls_control.mission_spec import MissionSpec
from musls_description.errors import ConfigError
from musls_description.schema import Positive, build, parse_yaml, read_text, spec
from musls_description.slung import formation_of, slung_system
from musls_description.system import AnySystem

Array = NDArray[np.float64]


@spec
class Gravity:
    """What a controller must know of the physics.

    Attributes:
        gravity_m_s2: Gravity.
    """

    gravity_m_s2: Positive = 9.80665


@spec
class Flown:
    """What a controller must know of a scenario.

    Attributes:
        controller: Which one.
        system: Masses, inertias, cables.
        physics: Gravity.
    """

    controller: AnyController
    system: AnySystem
    physics: Gravity


@dataclass(frozen=True)
class MissionFile:
    """Mission and formation as a file gives them.

    Attributes:
        name: Of the scenario.
        n_drones: Number of drones.
        mission: What is to be flown.
        formation: Places of the drones around the load.
        lands: Whether the flight starts and ends on the ground.
        flown: What a controller or a delivery must know; None where the formation's set-points of
            a plan without gates fly.
    """

    name: str
    n_drones: int
    mission: MissionSpec
    formation: Cone
    lands: bool
    flown: Flown | None = None

    def control(self, period_s: float) -> GraphControl | None:
        """Make the scenario's controller, None for the formation's set-points alone.

        Args:
            period_s: Time between two steps.

        Raises:
            ConfigError: It cannot fly this system, or not as acceleration set-points.
        """
        flown = self.flown
        if flown is None:
            return None
        kind = flown.controller.kind
        if kind == FormationSpec().kind:
            return None
        if self.mission.kind == "delivery" and self.lands:
            raise ConfigError(
                f"controller.kind = {kind}: mission.kind = delivery is flown by the formation; "
                "choose controller.kind: formation"
            )
        system = formation_of(flown.system, f"controller.kind = {kind}")
        gravity = flown.physics.gravity_m_s2
        setup = ControlSetup(system, self.formation, gravity, period_s)
        controller = flown.controller.build(setup)
        if level_of(controller) is not ControlLevel.AUTOPILOT_FORCES:
            raise ConfigError(
                f"controller.kind = {kind} (level {level_of(controller).value}) cannot fly through "
                f"the ROS graph: choose formation or a controller of level "
                f"{ControlLevel.AUTOPILOT_FORCES.value}, such as payload with output: autopilot"
            )
        prepare_controller(controller, setup)
        return GraphControl(controller, system, period_s)

    def delivery(self) -> GraphDelivery | None:
        """What watches over a delivery, None for other missions and for a start in the air.

        Raises:
            ConfigError: It has more than load, cables and drones.
        """
        flown = self.flown
        if self.mission.kind != "delivery" or not self.lands or flown is None:
            return None
        system = slung_system(flown.system, "mission.kind = delivery")
        gravity = flown.physics.gravity_m_s2
        return GraphDelivery(self.mission, self.formation, system, gravity)

    def plan(self, load_enu_m: Array, load_yaw_rad: float, drones_enu_m: Array) -> FlightPlan:
        """Sample the set-points of the whole flight.

        Args:
            load_enu_m: Where the load stands, (3,).
            load_yaw_rad: Its heading.
            drones_enu_m: Where the drones stand, (n, 3).

        Raises:
            ConfigError: A stage is too long.
        """
        if self.lands:
            spot = GroundSpot(load_enu_m, load_yaw_rad, drones_enu_m)
            if self.mission.kind == "delivery":
                return compile_delivery(self.mission, self.formation, spot)
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
        _flown(data, str(path)),
    )


def _flown(data: Mapping[str, Any], where: str) -> Flown | None:
    """What the controller or the delivery of a scenario must know, None for other missions."""
    controller = data.get("controller", "formation")
    kind = controller.get("kind") if isinstance(controller, Mapping) else controller
    mission = data["mission"]
    delivers = isinstance(mission, Mapping) and mission.get("kind") == "delivery"
    if kind == FormationSpec().kind and not delivers:
        return None
    physics = data.get("physics")
    gravity = physics.get("gravity_m_s2") if isinstance(physics, Mapping) else None
    given = {"controller": controller, "system": data["system"]}
    return build(
        Flown, {**given, "physics": {} if gravity is None else {"gravity_m_s2": gravity}}, where
    )


def _starts_on_ground(start: Any) -> bool:
    """Whether a scenario's start, a kind or a mapping with one, is on the ground."""
    return (start.get("kind", "ground") if isinstance(start, Mapping) else start) == "ground"
