"""A flown scenario as motion capture sees it, with noise and latency, and what can go wrong."""

from dataclasses import dataclass

import numpy as np

import musls
from musls_control.real_flight.capture import CaptureFilter
from musls_control.real_flight.mocap import MocapLimits, Sample
from musls_description.numerics.rotations import from_rotation_vector, product

RATE_HZ, LATENCY_S = 100.0, 0.02
NOISE_M, NOISE_RAD = 0.0005, np.radians(0.1)


@dataclass
class CapturedFlight:
    """Poses of load and drones at the capture's rate.

    Attributes:
        time_s: (k,).
        position_enu_m: Truth, (k, 1 + n, 3).
        orientation_wxyz: Truth, (k, 1 + n, 4).
        armed: Whether motors turn, (k, n).
    """

    system: object
    time_s: np.ndarray
    position_enu_m: np.ndarray
    orientation_wxyz: np.ndarray
    armed: np.ndarray
    events: list
    stages: dict

    @property
    def bodies(self):
        return ["load", *(f"drone_{i}" for i in range(1, self.armed.shape[1] + 1))]


def flown(name, overrides=None):
    """A flight of a scenario."""
    scenario = musls.load_scenario(name, overrides or {})
    run = musls.fly(scenario)
    n = scenario.system.n_drones
    bodies = [run.body(b) for b in ("load", *(f"drone_{i}" for i in range(1, n + 1)))]
    begin_s, end_s = bodies[0].time_s[[0, -1]]
    time_s = np.arange(begin_s, end_s, 1.0 / RATE_HZ)
    tracks = [body.pose.at(time_s) for body in bodies]
    rotors = [np.interp(time_s, b.rotors.time_s, b.rotor_speed_rad_s.mean(1)) for b in bodies[1:]]
    return CapturedFlight(
        scenario.system,
        time_s,
        np.stack([t.position_enu_m for t in tracks], axis=1),
        np.stack([t.orientation_wxyz for t in tracks], axis=1),
        np.stack(rotors, axis=1) > 1.0,
        list(run.events),
        {stage.name: stage.start_s for stage in run.stages},
    )


def unspoilt(k, body, position, turn):
    """What the capture sees where nothing is wrong."""
    return position, turn


def watch(flight, spoil=unspoilt, *, seed=1, drop_outs=True, limits=None, imu=True, tied=True):
    """Feed the flight to the filter; the filter, and samples: (time, body, used, off [m], why).

    `spoil(k, body, position, turn)`: what the capture sends, None for nothing.
    """
    random, limits = np.random.default_rng(seed), limits or MocapLimits()
    capture = CaptureFilter.of(flight.bodies, limits, flight.system, tied=tied)
    shape = flight.position_enu_m.shape
    places = flight.position_enu_m + NOISE_M * random.standard_normal(shape)
    turns = product(
        flight.orientation_wxyz, from_rotation_vector(NOISE_RAD * random.standard_normal(shape))
    )
    seen = np.ones(shape[:2], bool)
    for body in range(shape[1] if drop_outs else 0):  # occlusions of up to 0.3 s
        for begin in random.integers(0, shape[0], shape[0] // 500):
            seen[begin : begin + random.integers(1, 30), body] = False
    opened = [e for e in flight.events if e.kind in ("hook_opened", "cable_broken")]
    told = []
    for k, time_s in enumerate(flight.time_s.tolist()):
        now_s = time_s + LATENCY_S
        while opened and opened[0].time_s <= time_s:
            for cable in range(1, shape[1] + 1):
                if f"cable_{cable}" in opened[0].what:
                    capture.untie(cable)
            del opened[0]
        for body, name in enumerate(flight.bodies):
            if body:
                capture.on_armed(name, armed=bool(flight.armed[k, body - 1]))
                if imu and k % 2 == 0:
                    capture.on_attitude(now_s, name, flight.orientation_wxyz[k, body])
            sent = spoil(k, body, places[k, body], turns[k, body]) if seen[k, body] else None
            if sent is None:
                continue
            used = capture.take(now_s, name, Sample(time_s, *sent))
            off_m = float(np.linalg.norm(sent[0] - flight.position_enu_m[k, body]))
            why = "" if used else capture.filters[name].reason
            told.append((time_s, body, used, off_m, why))
    return capture, told
