"""Builds the real autopilot of a scenario."""

from __future__ import annotations

from musls_control.px4_cascade.allocation import rotor_layout
from musls_description.errors import ConfigError
from musls_sim.autopilots import AutopilotSetup
from musls_sim.plants.gazebo import BridgedPlant
from musls_sim.preflight.airframe import loaded_hover_parameters
from musls_sim.px4.airframe import airframe_scripts
from musls_sim.px4.in_gazebo import Px4InGazebo, bridge_parameters
from musls_sim.px4.install import Px4Error, find_px4, read_firmware
from musls_sim.px4.process import DdsLink
from musls_sim.px4.sensors import Sensors
from musls_sim.px4.sitl import RATE_HZ, Px4Sitl

_LOGGING = ("SDLOG_MODE", "SDLOG_BACKEND")
"""Who sets one of them wants a flight log of his own kind."""

ALWAYS = {
    # How long a mission stands armed before it takes off is the mission's affair.
    "COM_DISARM_PRFLT": -1.0,
    # At arming gyro_calibration gives itself another interval in its own Run(). If PX4's timer
    # thread is still between the callout and its return, it enters the same call a second time
    # (drv_hrt.cpp: hrt_call_invoke): the list of timers then ends in a loop, and all that runs by
    # timer stops. The simulated gyros have no bias to be found.
    "IMU_GYRO_CAL_EN": 0.0,
}
"""Parameters of every airframe."""


def build(setup: AutopilotSetup, dds: DdsLink | None = None) -> Px4Sitl:
    """One real PX4 SITL per drone, over MAVLink in lockstep.

    Nothing is started yet.

    `dds`: link to a ROS graph, from where they are then flown.

    Raises:
        ConfigError: The scenario starts in the air, or has drones that PX4 SITL cannot fly.
        Px4Error: There is no PX4 here.
    """
    scenario = setup.scenario
    if scenario.start.kind != "ground":
        raise ConfigError(
            f"start: {scenario.start.kind} with autopilot.kind: px4: a real PX4 finds its "
            "attitude standing on the ground; choose start: ground, or the built-in autopilot"
        )
    hover = setup.hover
    assert hover is not None  # a start on the ground flies in formation
    install = find_px4()
    firmware = read_firmware(install.binary)
    parameters = scenario.autopilot.parameters
    logs = scenario.autopilot.flight_log or any(name in parameters for name in _LOGGING)
    # PX4's own flight log costs time, and the simulated receiver has no delay.
    switches = firmware.switches(flight_log=logs)
    firmware.refuse_unknown(parameters)
    layouts = [rotor_layout(drone) for drone in scenario.system.drones]
    defaults = [own | ALWAYS for own in loaded_hover_parameters(scenario, hover)]
    if isinstance(setup.plant, BridgedPlant):
        if firmware.lacks("SIM_GZ_EN"):
            raise Px4Error(f"{firmware.text} has no Gazebo bridge (gz_bridge)")
        defaults = [
            own | bridge_parameters(layout) for own, layout in zip(defaults, layouts, strict=True)
        ]
    each = [switches | parameters | (dds.parameters(i) if dds else {}) for i in range(len(layouts))]
    airframes = airframe_scripts(firmware, layouts, defaults, each)
    hover_thrust = [(own | parameters)["MPC_THR_HOVER"] for own in defaults]
    if isinstance(setup.plant, BridgedPlant):
        return Px4InGazebo(
            setup.plant,
            install,
            layouts,
            airframes,
            chosen=parameters,
            hover_thrust=hover_thrust,
            log_folder=setup.logs,
        )
    return Px4Sitl(
        install,
        layouts,
        airframes,
        Sensors(
            scenario.autopilot.sensors,
            scenario.physics.gravity_m_s2,
            1.0 / RATE_HZ,
            setup.generator,
        ),
        chosen=parameters,
        hover_thrust=hover_thrust,
        log_folder=setup.logs,
        dds=dds,
    )
