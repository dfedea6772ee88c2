"""Real PX4s of a scenario: their airframes, and the session that a ROS graph commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from musls_control.px4 import RotorLayout
from musls_control.px4.allocation import rotor_layout
from musls_control.px4.offboard import LOSS_PARAMETERS
from musls_description.config.errors import ConfigError
from musls_sim.autopilots import AutopilotSetup, loaded_hover_parameters, parameter_text
from musls_sim.plants.gazebo import BridgedPlant
from musls_sim.px4.install import Firmware, Px4Error, find_px4
from musls_sim.px4.process import XrceAgent, find_agent
from musls_sim.px4.sensors import RATE_HZ, Px4Sensors
from musls_sim.px4_stand_in import check_hooks, flown_by_graph
from musls_sim.scenario.scenario import Scenario
from musls_sim.session.guidance import Guidance
from musls_sim.session.session import Session

if TYPE_CHECKING:
    from musls_sim.px4.sitl import GraphPx4, Px4Sitl

MAX_MAIN_OUTPUTS = 8
FIRST_MOTOR_FUNCTION = 101

_LOGGING = ("SDLOG_MODE", "SDLOG_BACKEND")
"""Parameters by which a user asks for a flight log of another kind."""

ALWAYS = {
    **LOSS_PARAMETERS,
    # How long a mission stands armed before it takes off is the mission's affair.
    "COM_DISARM_PRFLT": -1.0,
    # At arming gyro_calibration gives itself another interval in its own Run(). If PX4's timer
    # thread is still between the callout and its return, it enters the same call a second time
    # (drv_hrt.cpp: hrt_call_invoke): the list of timers then ends in a loop, and all that runs by
    # timer stops. The simulated gyros have no bias to be found.
    "IMU_GYRO_CAL_EN": 0.0,
}
"""Parameters of every airframe."""


MOTION_CAPTURE = {
    "EKF2_EV_CTRL": 15.0,
    "EKF2_HGT_REF": 3.0,
    "EKF2_GPS_CTRL": 0.0,
    "EKF2_BARO_CTRL": 0.0,
    "EKF2_MAG_TYPE": 5.0,
}
"""EKF2 takes the world's odometry as motion capture, and nothing else for place and heading.

The bridge calls every satellite fix good to 0.9 m. With these, drones are decimetres from where
they believe to be, and cables are jerked taut one by one.
"""


def bridge_parameters(layout: RotorLayout) -> dict[str, float]:
    """Parameters of an airframe whose motors are behind PX4's Gazebo bridge.

    The bridge commands whole rad/s. The world's IMUs tell every step; PX4 sums them up and
    steers once in a control period.
    """
    values: dict[str, float] = {
        "SIM_GZ_EN": 1,
        "NAV_DLL_ACT": 0,
        "IMU_GYRO_RATEMAX": round(RATE_HZ),
        "IMU_INTEG_RATE": round(RATE_HZ),
    } | MOTION_CAPTURE
    for k in range(1, layout.n_rotors + 1):
        values[f"PWM_MAIN_FUNC{k}"] = 0
        values[f"SIM_GZ_EC_FUNC{k}"] = FIRST_MOTOR_FUNCTION + k - 1
        values[f"SIM_GZ_EC_MIN{k}"] = round(layout.omega_min_rad_s)
        values[f"SIM_GZ_EC_MAX{k}"] = round(layout.omega_max_rad_s)
    return values


def airframe_script(
    layout: RotorLayout, defaults: Mapping[str, float], chosen: Mapping[str, float]
) -> str:
    """Write the airframe as a PX4 start-up script.

    `layout`: rotors as the flight stack is to believe them to be.
    `chosen`: parameters that the user set; they win.
    """
    if layout.n_rotors > MAX_MAIN_OUTPUTS:
        raise ConfigError(
            f"drones have {layout.n_rotors} rotors, PX4 SITL drives at most {MAX_MAIN_OUTPUTS}"
        )
    values: dict[str, float] = {"CA_AIRFRAME": 0, "CA_ROTOR_COUNT": layout.n_rotors}
    for k in range(layout.n_rotors):
        values[f"CA_ROTOR{k}_PX"] = layout.px_m[k]
        values[f"CA_ROTOR{k}_PY"] = layout.py_m[k]
        values[f"CA_ROTOR{k}_KM"] = layout.km[k]
        values[f"CA_ROTOR{k}_CT"] = layout.ct[k]
        values[f"PWM_MAIN_FUNC{k + 1}"] = FIRST_MOTOR_FUNCTION + k
    values |= defaults
    return "\n".join(
        [
            "#!/bin/sh",
            "# @name musls multicopter in lockstep",
            "# @type Multicopter",
            ". ${R}etc/init.d/rc.mc_defaults",
            *(
                f"param set-default {name} {parameter_text(value)}"
                for name, value in values.items()
            ),
            *(f"param set {name} {parameter_text(value)}" for name, value in chosen.items()),
            "",
        ]
    )


def airframe_scripts(
    firmware: Firmware,
    layouts: Sequence[RotorLayout],
    defaults: Sequence[Mapping[str, float]],
    chosen: Sequence[Mapping[str, float]],
) -> list[str]:
    """Write the airframe of each drone, with parameters that the firmware knows.

    `chosen`: parameters that win over PX4's start-up scripts, too.
    """
    for name in (name for own in (*defaults, *chosen) for name in own):
        if firmware.lacks(name):
            raise Px4Error(
                f"{firmware.text} has no parameter {name}, which musls sets: releases v1.15 to "
                "v1.18 have it"
            )
    return [airframe_script(*each) for each in zip(layouts, defaults, chosen, strict=True)]


def build(setup: AutopilotSetup, agent: XrceAgent | None = None) -> Px4Sitl:
    """One real PX4 SITL per drone, over MAVLink in lockstep; nothing is started yet.

    `agent`: brings them into a ROS graph, from where they are then flown.
    """
    from musls_sim.px4.in_gazebo import Px4InGazebo  # these need pymavlink
    from musls_sim.px4.sitl import GraphPx4, Px4Sitl

    scenario = setup.scenario
    if scenario.start.kind != "ground":
        raise ConfigError(
            f"start: {scenario.start.kind} with autopilot.kind: px4: a real PX4 finds its "
            "attitude standing on the ground; choose start: ground, or the built-in autopilot"
        )
    firmware = find_px4()
    parameters = scenario.autopilot.parameters
    logs = scenario.autopilot.flight_log or any(name in parameters for name in _LOGGING)
    # PX4's own flight log costs time, and the simulated receiver has no delay.
    switches = firmware.switches(flight_log=logs)
    firmware.refuse_unknown(parameters)
    layouts = [rotor_layout(drone) for drone in scenario.system.drones]
    defaults = [own | ALWAYS for own in loaded_hover_parameters(scenario)]
    if isinstance(setup.plant, BridgedPlant):
        if firmware.lacks("SIM_GZ_EN"):
            raise Px4Error(f"{firmware.text} has no Gazebo bridge (gz_bridge)")
        if agent is not None:
            raise ConfigError(
                "physics.engine = gazebo_px4: is flown by musls fly, not from a ROS graph"
            )
        defaults = [
            own | bridge_parameters(layout) for own, layout in zip(defaults, layouts, strict=True)
        ]
    wins = switches | parameters
    each = [wins | (agent.parameters(i) if agent else {}) for i in range(len(layouts))]
    options: dict[str, Any] = {"parameters": parameters, "log_folder": setup.logs}
    airframes = airframe_scripts(firmware, layouts, defaults, each)
    if isinstance(setup.plant, BridgedPlant):
        return Px4InGazebo(setup.plant, firmware, layouts, airframes, **options)
    sensors = Px4Sensors(
        scenario.autopilot.sensors,
        scenario.physics.gravity_m_s2,
        1.0 / RATE_HZ,
        setup.generator,
    )
    if agent is not None:
        return GraphPx4(agent, firmware, layouts, airframes, sensors, **options)
    return Px4Sitl(firmware, layouts, airframes, sensors, **options)


# ---------- Session whose drones are flown by real PX4s that a ROS graph commands


class GraphSession(Session):
    """Plant and PX4s in lockstep; simulated time is PX4's.

    Attributes:
        px4s: The PX4s and their agent.
    """

    def __init__(self, scenario: Scenario, logs: Path, *, force: bool = False) -> None:
        """The agent runs from now on; `start` brings the PX4s up."""
        super().__init__(
            flown_by_graph(scenario),
            force=force,
            autopilot_logs=logs,
            make_autopilot=_px4s,
            make_guidance=lambda components, observers: Guidance(
                scenario.system.n_drones, can_abort=scenario.brief.delivers
            ),
        )
        check_hooks(self, scenario)
        self.px4s = cast("GraphPx4", self.components.autopilot)
        self._begin_of_px4_s = 0.0

    def start(self) -> None:
        """Bring the PX4s up (raises Px4Error)."""
        super().start()
        self._begin_of_px4_s = self.px4s.clock_s

    def advance(self, periods: int = 1) -> None:
        """Fly a number of control periods."""
        self.px4s.agent.check_alive()
        super().advance(periods)

    @property
    def graph_time_s(self) -> float:
        """PX4's time, which is that of the graph: PX4 refuses what is stamped otherwise."""
        return self._begin_of_px4_s + self.time_s


def _px4s(setup: AutopilotSetup) -> GraphPx4:
    agent = XrceAgent(find_agent(), setup.logs / "agent.log")
    try:
        return cast("GraphPx4", build(setup, agent))
    except BaseException:
        agent.close()
        raise
