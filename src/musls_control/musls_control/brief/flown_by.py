"""Controller and contingency of a brief, the same for session and ROS graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

from musls_control.brief.brief import Brief
from musls_control.controllers import USUAL_LATENCY_S, Controller, ControlSetup
from musls_control.controllers.payload.controller import flying_controller
from musls_control.mission.contingency import Contingency
from musls_description.config.errors import ConfigError
from musls_description.hanging.reallocation import Reallocation


def controller_of(
    brief: Brief,
    period_s: float,
    given: Controller | Callable[..., Controller] | None = None,
    *,
    incremental: bool = False,
    latency_s: float = USUAL_LATENCY_S,
    setpoint_delay_s: float = 0.0,
) -> Controller | None:
    """Make the controller of a flight, None for the formation's set-points alone.

    Args:
        brief: Record of the planned flight.
        period_s: Time between two calls.
        given: Another controller than the brief's, an object or what makes it.
        incremental: Whether an incremental law (INDI) tracks its forces.
        latency_s: Time by which the load's measured motion is late.
        setpoint_delay_s: Time from a command until the autopilot has it.

    Raises:
        ConfigError: It cannot fly this system, or is no controller.
    """
    if given is None and brief.follows_plan:
        return None
    kind = f"controller.kind = {brief.controller.kind}"
    setup = setup_of(
        brief,
        period_s,
        incremental=incremental,
        latency_s=latency_s,
        setpoint_delay_s=setpoint_delay_s,
    )
    maker = kind if given is None else repr(given)
    if given is None:
        controller = brief.controller.build(setup)
        if controller is None:
            return None
    else:
        controller = given() if callable(given) and not isinstance(given, Controller) else given
    if not isinstance(controller, Controller):
        raise ConfigError(f"{maker} makes a {type(controller).__name__}, not a musls.Controller")
    return flying_controller(controller, setup)


def setup_of(
    brief: Brief,
    period_s: float,
    *,
    incremental: bool = False,
    latency_s: float = USUAL_LATENCY_S,
    setpoint_delay_s: float = 0.0,
) -> ControlSetup:
    """Setup of a flight's controller, known before the flight; arguments as of `controller_of`.

    Raises:
        ConfigError: There are no drones.
    """
    kind = f"controller.kind = {brief.controller.kind}"
    system = brief.system
    if not system.n_drones:
        raise ConfigError(f"{kind}: system {system.name} has no drones that it could fly")
    setup = ControlSetup(
        system.formation or system,
        brief.formation,
        brief.gravity_m_s2,
        period_s,
        rods=brief.cable_model == "rigid_rods",
        obstacles=brief.world.obstacles,
        incremental=incremental,
        seed=brief.seed,
        twist_held=brief.cable_model == "rigid_links",
        latency_s=latency_s,
        setpoint_delay_s=setpoint_delay_s,
    )
    way = brief.contingency
    if way is not None and brief.controller.kind == "agents":
        hanging = brief.hanging_for("contingency")

        @cache  # all drones ask the same
        def without(lost: tuple[int, ...]) -> Reallocation | None:
            hung = () if way.hook == "release" else lost
            # Nearest to level: a larger margin than 1 is bought with a load that leans.
            return hanging.without(lost, margin=1.0, clearance_m=way.clearance_m, hanging=hung)

        setup = replace(setup, silent_s=way.silent_s, without=without)
    return setup


def contingency_of(brief: Brief, *, ahead: bool = False) -> Contingency | None:
    """Make what answers the loss of a drone, None without one.

    `ahead`: as a flight in real time needs it, see `Contingency`; its messages come late already,
    so that no delay is added.

    Raises:
        ConfigError: There is no formation, or too few drones.
    """
    spec = brief.contingency
    if spec is None:
        return None
    if ahead:
        spec = replace(spec, delay_s=0.0)
    hanging = brief.hanging_for("contingency")
    return Contingency(spec, hanging, brief.mission, ahead=ahead)
