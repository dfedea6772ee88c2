"""Where in a mission the drones work hardest, found before the flight."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from musls_control.formation import drone_poses
from musls_description.slung import formation_of
from musls_sim.preflight.checks import Hover
from musls_sim.preflight.statics import Motion, drag_n_s_m
from musls_sim.scenario import Scenario

Array = NDArray[np.float64]

SAMPLES = 2000
"""Moments of each stage that are looked at."""

GUST_DEVIATIONS = 2.0
"""Gusts of so many standard deviations are counted on."""


@dataclass(frozen=True)
class Moment:
    """A moment of a mission.

    Attributes:
        stage: Its kind.
        number: Of the stage, from 0.
        time_s: Since the stage began.
        motion: How the formation moves then.
    """

    stage: str
    number: int
    time_s: float
    motion: Motion


def strong_wind_enu_m_s(scenario: Scenario) -> Array:
    """Mean wind with gusts that blow in its direction (to the east where there is none)."""
    mean = np.array(scenario.wind.mean_enu_m_s)
    gust = GUST_DEVIATIONS * np.array(scenario.wind.gust_std_m_s)
    speed = float(np.linalg.norm(mean))
    along = mean / speed if speed > 0.0 else np.array([1.0, 0.0, 0.0])
    return mean + along * float(np.linalg.norm(gust * along))


def hard_moments(scenario: Scenario, hover: Hover, count: int = 3) -> list[Moment]:
    """Moments at which thrust, tilt and slack come closest to their limits, hardest first.

    They are found by an estimate: cable forces keep their directions and sizes seen in the frame
    of the felt gravity. Steps of the set-point have no acceleration and are not counted.

    Args:
        scenario: Stages, drones, wind.
        hover: How the system hangs at rest.
        count: At most so many.
    """
    found: list[tuple[float, Moment]] = []
    for number, stage in enumerate(scenario.mission.stages):
        end_s = min(stage.duration_s, stage.period_s)
        times = np.linspace(0.0, end_s, SAMPLES)
        samples = stage.derivatives(times)
        share, tilt, felt = _estimates(scenario, hover, samples)
        wind = strong_wind_enu_m_s(scenario)
        for score, k in {
            (float(share[k]), int(k)) for k in (share.argmax(), tilt.argmax(), felt.argmin())
        }:
            moment = Moment(stage.kind, number, float(times[k]), Motion.of(samples[k], wind))
            found.append((score, moment))
    found.sort(key=lambda pair: -pair[0])
    return [moment for _, moment in _distinct(found)][:count]


def _distinct(found: list[tuple[float, Moment]]) -> Iterator[tuple[float, Moment]]:
    """Moments that differ in what they ask for; places do not matter, headings do not either."""
    seen = set()
    for score, moment in found:
        m = moment.motion
        key = (round(score, 3), round(float(m.acceleration_enu_m_s2[2]), 3))
        if key not in seen:
            seen.add(key)
            yield score, moment


def _estimates(scenario: Scenario, hover: Hover, samples: Array) -> tuple[Array, Array, Array]:
    """Largest share of the full thrust, largest tilt and vertical felt gravity, (k,) each."""
    system = formation_of(scenario.system, "formation")
    gravity = scenario.physics.gravity_m_s2
    n = system.n_drones
    wind = strong_wind_enu_m_s(scenario)
    felt = samples[:, 2, :3] + np.array([0.0, 0.0, gravity])  # (k, 3)
    load_drag = np.array(system.load.drag_n_s_m) * (wind - samples[:, 1, :3])
    carried = felt - load_drag / system.carried_mass_kg
    places, _ = drone_poses(
        np.zeros((len(samples), 3)), samples[:, 0, 3],
        scenario.formation.offsets_m(n), scenario.formation.azimuths_rad(n),
    )  # fmt: skip
    share, tilt = np.zeros(len(samples)), np.zeros(len(samples))
    for i, drone in enumerate(system.drones):
        at_rest = hover.equilibrium.drone_force_n[i] - [0.0, 0.0, drone.mass_kg * gravity]
        pull = at_rest[2] / gravity * carried  # what the cable carries
        across = places[:, i] * [1.0, 1.0, 0.0]
        radius = np.linalg.norm(across, axis=1, keepdims=True)
        outward = across / np.maximum(radius, 1e-9)
        pull = pull + np.linalg.norm(at_rest[:2]) * outward
        rate, gain = samples[:, 1, 3:4], samples[:, 2, 3:4]
        sideways = np.stack([-across[:, 1], across[:, 0], np.zeros(len(samples))], axis=1)
        around = -(rate**2) * across + gain * sideways
        drag = drag_n_s_m(drone, float(np.linalg.norm(hover.equilibrium.drone_force_n[i])))
        blown = drag * (wind - samples[:, 1, :3] - rate * sideways)
        thrust = pull + drone.mass_kg * (felt + around) - blown
        size = np.linalg.norm(thrust, axis=1)
        share = np.maximum(share, size / drone.max_thrust_n)
        tilt = np.maximum(tilt, np.arccos(np.clip(thrust[:, 2] / size, -1.0, 1.0)))
    return share, tilt, carried[:, 2]
