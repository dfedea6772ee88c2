"""Checks of a mission before its flight: length, size, speed, and whether cables stay slack."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from musls_control.delivery import extra_duration_s
from musls_control.mission import estimated_duration_s
from musls_control.mission_spec import FASTEST_M_S, LONGEST_S, MissionSpec
from musls_control.trajectories import Trajectory
from musls_description.errors import ConfigError
from musls_description.slung import formation_of
from musls_description.spawn.ground import ground_radius_m
from musls_description.system import SlungLoadSystem
from musls_sim.scenario import Scenario

LONG_FLIGHT_S = 3600.0
LARGE_BAG_BYTES = 1e9
"""A longer flight, or a larger bag, is announced before it starts."""

FARTHEST_M = 10_000.0
"""Of the load from the origin: the world is flat, and the plants lose digits farther out."""

FASTEST_TURN_RAD_S = 50.0
"""Of the load's set-point; drones would have to go round it once in an eighth of a second."""

ROW_BYTES, ROW_DRONE_BYTES = 640, 780
"""Of one sample of everything that is recorded at `recording.rate_hz`: once, and per drone."""

SHAPE_BYTES, SHAPE_POINT_BYTES = 200, 24
"""Of one sample of a cable's shape, and of each point of it."""

PX4_TILT_RAD = np.deg2rad(45.0)
"""PX4's MPC_TILTMAX_AIR: how far a drone leans against the wind."""


def check_mission(scenario: Scenario) -> None:
    """Refuse a mission that never ends, or that no system can follow.

    Raises:
        ConfigError: Names the stage or key.
    """
    for k, stage in enumerate(scenario.mission.stages):
        _check_stage(f"mission.stages.{k}", stage)
    if scenario.start.kind == "ground":
        _check_rise(formation_of(scenario.system, "start = ground"), scenario.mission)
    duration_s = flight_duration_s(scenario)
    if duration_s > LONGEST_S:
        raise ConfigError(
            f"mission: the flight would last about {duration_s:.3g} s, at most {LONGEST_S:g} s "
            "(a day) are possible"
        )


def cautions(scenario: Scenario) -> Iterator[str]:
    """What a user should know before a flight that is possible, one line each."""
    duration_s, size = flight_duration_s(scenario), bag_bytes_per_s(scenario)
    if duration_s > LONG_FLIGHT_S or duration_s * size > LARGE_BAG_BYTES:
        yield (
            f"a long flight: about {duration_s / 60.0:.0f} min of simulated time, and a bag of "
            f"about {_size_text(duration_s * size)} (recording.rate_hz and "
            "recording.shape_rate_hz make it smaller)"
        )
    yield from _slack_caution(scenario)
    yield from _wind_caution(scenario)


def flight_duration_s(scenario: Scenario) -> float:
    """About how long the flight of a scenario takes, in simulated time [s]."""
    lands = scenario.start.kind == "ground"
    extra_s = extra_duration_s(scenario.mission) if lands else 0.0
    return estimated_duration_s(scenario.mission, lands=lands) + extra_s


def bag_bytes_per_s(scenario: Scenario) -> float:
    """About how many bytes are recorded in a second of simulated time."""
    system, recording = scenario.system, scenario.recording
    row = ROW_BYTES + ROW_DRONE_BYTES * system.n_drones
    shapes = sum(SHAPE_BYTES + SHAPE_POINT_BYTES * (c.links + 2) for c in system.cables)
    return recording.rate_hz * row + recording.shape_rate_hz * shapes


def _size_text(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def _check_stage(where: str, stage: Trajectory) -> None:
    """Refuse a stage that is endless, too far away or too fast."""
    duration_s = stage.duration_s
    if not duration_s <= LONGEST_S:
        raise ConfigError(
            f"{where}: lasts {duration_s:g} s, at most {LONGEST_S:g} s (a day) are possible"
        )
    motion = stage.derivatives(np.linspace(0.0, min(duration_s, stage.period_s), 200))
    if not np.isfinite(motion[:, :2]).all():
        raise ConfigError(f"{where}: the set-point is not finite")
    distance_m = float(np.abs(motion[:, 0, :3]).max())
    if distance_m > FARTHEST_M:
        raise ConfigError(
            f"{where}: the set-point goes {distance_m:g} m away from the origin, at most "
            f"{FARTHEST_M:g} m are possible (the world is flat)"
        )
    speed_m_s = float(np.linalg.norm(motion[:, 1, :3], axis=1).max())
    turn_rad_s = float(np.abs(motion[:, 1, 3]).max())
    if speed_m_s > FASTEST_M_S:
        raise ConfigError(
            f"{where}: the set-point moves at {speed_m_s:.4g} m/s, faster than multirotors fly "
            f"(at most {FASTEST_M_S:g} m/s)"
        )
    if turn_rad_s > FASTEST_TURN_RAD_S:
        raise ConfigError(
            f"{where}: the set-point turns at {turn_rad_s:.4g} rad/s, at most "
            f"{FASTEST_TURN_RAD_S:g} rad/s are possible"
        )


def _check_rise(system: SlungLoadSystem, mission: MissionSpec) -> None:
    """Refuse a rise beyond the cables: the drones would be stopped with a jerk."""
    for i, (drone, cable) in enumerate(zip(system.drones, system.cables, strict=True)):
        load_end_m = system.load.cable_attachments_m[i][2] - system.load.collision.bottom_m
        drone_end_m = drone.cable_attachment_m[2] - drone.collision.bottom_m
        reach_m = np.sqrt(max(cable.length_m**2 - ground_radius_m(system, i) ** 2, 0.0))
        highest_m = float(load_end_m + reach_m - drone_end_m)
        if mission.rise_m > highest_m:
            raise ConfigError(
                f"mission.rise_m = {mission.rise_m:g}: the cable of drone_{i + 1} "
                f"({cable.length_m:g} m) is taut {highest_m:.2f} m above its place on the ground; "
                "the drones form up with slack cables"
            )


def _slack_caution(scenario: Scenario) -> Iterator[str]:
    """Whether the cables hang slack when the drones have formed up over the standing load."""
    if scenario.start.kind != "ground":
        return
    system, mission = formation_of(scenario.system, "start = ground"), scenario.mission
    places = scenario.formation.offsets_m(system.n_drones)
    for i, (drone, cable) in enumerate(zip(system.drones, system.cables, strict=True)):
        at_load = np.array(system.load.cable_attachments_m[i])
        rise_m = (
            mission.slack_height_m + places[i, 2] + drone.cable_attachment_m[2]
            - (at_load[2] - system.load.collision.bottom_m)
        )  # fmt: skip
        apart_m = np.linalg.norm(places[i, :2]) - np.linalg.norm(at_load[:2])
        if np.hypot(rise_m, apart_m) >= cable.length_m:
            yield (
                f"mission.slack_height_m = {mission.slack_height_m:g}: cable_{i + 1} is taut "
                "before the load is to be lifted; choose a lower one"
            )
            return


def _wind_caution(scenario: Scenario) -> Iterator[str]:
    """Whether the drones can hold against the wind, gusts of two standard deviations included."""
    wind, system = scenario.wind, scenario.system
    gust = 2.0 * np.array(wind.gust_std_m_s)
    speed_m_s = float(np.linalg.norm((np.abs(wind.mean_enu_m_s) + gust)[:2]))
    if speed_m_s == 0.0:
        return
    gravity = scenario.physics.gravity_m_s2
    weight_n = system.mass_kg * gravity
    drag_n_s_m = 0.0 if system.load is None else max(system.load.drag_n_s_m[:2])
    for drone in system.drones:
        hover_n = weight_n / system.n_drones / len(drone.rotors)
        drag_n_s_m += max(drone.drag_n_s_m[:2]) + sum(
            r.drag_n_s2_m_rad * np.sqrt(hover_n / r.thrust_coefficient_n_s2) for r in drone.rotors
        )
    drag_n = speed_m_s * drag_n_s_m
    most_n = sum(drone.max_thrust_n for drone in system.drones)
    held_n = min(weight_n * np.tan(PX4_TILT_RAD), np.sqrt(max(most_n**2 - weight_n**2, 0.0)))
    if drag_n > held_n:
        yield (
            f"wind of {speed_m_s:.3g} m/s pushes with about {drag_n:.3g} N, but the drones hold "
            f"against {held_n:.3g} N at most: they will be blown away"
        )
