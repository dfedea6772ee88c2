"""Interface of autopilots: set-points of all drones and the estimate in, motor commands out.

The containers hold one contiguous float64 array each (one row per drone); the named fields are
views into it. A compiled autopilot then receives one array instead of six, which matters at
250 Hz because every array argument of a compiled call costs Python time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from musls_control.estimate import Estimate, check_memory

SETPOINT_COLUMNS = 12


class DroneSetpoints:
    """Trajectory set-points of all drones, world frame ENU.

    A NaN means "not given": the autopilot then leaves that part of the chain out, as PX4 does.
    Each axis needs at least one of position, velocity and acceleration; x and y go in pairs.

    Attributes:
        data: The memory behind the views, (n_drones, 12), C-contiguous.
        position_enu_m: (n_drones, 3).
        velocity_enu_m_s: (n_drones, 3).
        acceleration_enu_m_s2: (n_drones, 3).
        yaw_enu_rad: (n_drones,), from east, counter-clockwise.
        yaw_rate_enu_rad_s: (n_drones,), counter-clockwise.
        armed: (n_drones,), 1.0 armed, 0.0 disarmed (assign True and False freely).
    """

    def __init__(self, data: np.ndarray) -> None:
        """Make the views."""
        check_memory(data, (SETPOINT_COLUMNS,), "DroneSetpoints")
        self.data = data
        self.position_enu_m = data[:, 0:3]
        self.velocity_enu_m_s = data[:, 3:6]
        self.acceleration_enu_m_s2 = data[:, 6:9]
        self.yaw_enu_rad = data[:, 9]
        self.yaw_rate_enu_rad_s = data[:, 10]
        self.armed = data[:, 11]

    @classmethod
    def zeros(cls, n_drones: int) -> DroneSetpoints:
        """Return set-points that are all zero (every part given) and disarmed."""
        return cls(np.zeros((n_drones, SETPOINT_COLUMNS)))

    @classmethod
    def unset(cls, n_drones: int) -> DroneSetpoints:
        """Return disarmed set-points with nothing given but a zero yaw rate."""
        setpoints = cls(np.full((n_drones, SETPOINT_COLUMNS), np.nan))
        setpoints.yaw_rate_enu_rad_s[:] = 0.0
        setpoints.armed[:] = 0.0
        return setpoints


class MotorCommands:
    """Motor commands of all drones.

    Attributes:
        data: The memory behind the views, (n_drones, 2, n_rotors), C-contiguous.
        throttle: (n_drones, n_rotors), normalised motor command u in [0, 1].
        omega_cmd_rad_s: (n_drones, n_rotors), rotor speed the ESC is asked for.
    """

    def __init__(self, data: np.ndarray) -> None:
        """Make the views."""
        check_memory(data, (2, data.shape[-1]), "MotorCommands")
        self.data = data
        self.throttle = data[:, 0]
        self.omega_cmd_rad_s = data[:, 1]

    @classmethod
    def zeros(cls, n_drones: int, n_rotors: int) -> MotorCommands:
        """Return commands with all motors off."""
        return cls(np.zeros((n_drones, 2, n_rotors)))


class Autopilot:
    """Base of flight stacks; one object flies all drones of a system.

    Attributes:
        rate_hz: Rate at which `step` is to be called, in simulated time.
        has_sensors: Whether it has its own sensors and estimator; it then gets the true motion.
        has_failsafe: Whether it knows by itself what to do without set-points, see `listen`.
        firmware: Version and path of a real PX4; None otherwise.
    """

    rate_hz: float = 250.0
    has_sensors = False
    has_failsafe = False
    firmware: Any = None

    @property
    def landed(self) -> np.ndarray:
        """The land detector's verdict, (n_drones,) bool."""
        raise NotImplementedError

    @property
    def takeoff_state(self) -> np.ndarray:
        """PX4's take-off states, 1 disarmed to 5 flight, (n_drones,) int."""
        raise NotImplementedError

    def reset(self) -> None:
        """Go back to the state after power-up."""

    def start(self, setpoint: DroneSetpoints, estimate: Estimate) -> None:
        """Get ready to fly, while the drones stand still; called once before the first step."""

    def close(self) -> None:
        """End what `start` started; called once after the last step, also after an error."""

    def step(
        self,
        time_s: float,
        setpoint: DroneSetpoints,
        estimate: Estimate,
        out: MotorCommands,
    ) -> MotorCommands:
        """Advance by one period 1/rate_hz and write the motor commands into `out`."""
        raise NotImplementedError

    @property
    def hover_thrust(self) -> np.ndarray | None:
        """Collective commands that it takes for hover, (n_drones,); None where it does not tell."""
        return None

    def resume(
        self,
        rotor_speed_rad_s: np.ndarray,
        estimate: Estimate,
        fed_enu_m_s2: np.ndarray,
        aside_enu_m_s2: np.ndarray | None = None,
    ) -> None:
        """Take over in flight from rotor speeds (n_drones, n_rotors) that have long been held.

        `fed_enu_m_s2`: accelerations in the set-points that come, (n_drones, 3); its integrators
        have the rest of what the drones need. Aside that is `aside_enu_m_s2`, (n_drones, 2), where
        it is known; else what the present tilt gives, a manoeuvre's too.
        """

    def scale_load(self, ratio: np.ndarray) -> None:
        """The drones weigh this share (n_drones,) of what they carried until now."""

    def listen(self, drone: int, *, hears: bool) -> None:
        """Block the set-points to a drone (from 0), or let them pass again."""


class NoAutopilot(Autopilot):
    """Autopilot of a system without drones: it does nothing."""

    has_sensors = True
    landed = np.ones(0, bool)
    takeoff_state = np.zeros(0, np.int64)

    def step(
        self, time_s: float, setpoint: DroneSetpoints, estimate: Estimate, out: MotorCommands
    ) -> MotorCommands:
        """Leave the commands of no motors as they are."""
        return out


# ---------- PX4's rules for missions, lost links and the stand-in on the ROS graph

COM_OF_LOSS_T_S = 1.0
"""Time without set-points after which an offboard flight is left for PX4's own failsafe."""

MPC_LAND_SPEED_M_S = 0.7


def hold_or_land(row: np.ndarray, place: np.ndarray, *, lands: bool, landed: bool = False) -> None:
    """Write the set-point of PX4's own modes: stay at a place, or go down there.

    `row` is one of `DroneSetpoints`, (12,), whose `armed` stays; `place` is position, world [m],
    and yaw [rad], (4,). A drone that has `landed` does not take off again.
    """
    row[0:11] = np.nan
    row[0:3] = place[:3]
    row[9] = place[3]
    row[10] = 0.0
    if landed:
        row[2] = np.nan
        row[5] = 0.0
    elif lands:
        row[2] = np.nan
        row[5] = -MPC_LAND_SPEED_M_S


DISARM_AFTER_LANDING_S = 2.0
"""Time landed before a drone is disarmed, PX4's COM_DISARM_LAND."""

AFTER_DISARM_S = 0.4
"""Time that a flight goes on after that."""

LANDING_TIMEOUT_S = 20.0
"""Time after its plan at which a flight ends with drones that were not found landed."""


class LandingTimer:
    """Counts how long something has stood on the ground without a break."""

    def __init__(self) -> None:
        self._since_s: float | None = None

    @property
    def landed(self) -> bool:
        """Whether the last report said so."""
        return self._since_s is not None

    def reset(self) -> None:
        """Begin again, in the air."""
        self._since_s = None

    def update(self, time_s: float, landed: bool) -> bool:
        """Take a report of the land detector; returns whether it is time to disarm."""
        if not landed:
            self._since_s = None
        elif self._since_s is None:
            self._since_s = time_s
        return self._since_s is not None and time_s - self._since_s >= DISARM_AFTER_LANDING_S
