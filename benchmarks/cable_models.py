"""Cost and accuracy of the cable models: error against real flights, and time of a period.

Errors are those of `musls replay`: the drones are moved as recorded, the load is predicted and
compared with the recorded one. Every flight is replayed with every model, once with nothing known
of the recording but where its origin lies ("start"), once with origin, tilt and delay of the
recorded load as a fit to the SHM found them ("recording").

The cost is that of a whole control period of the plant with flying drones (paper's trio, hovering
start, push on the load), of fresh plants in turns with the bare DART step of the trio with 15
links, so that a noisy machine slows all alike; and of the same lying on the ground, cables slack.

    .venv/bin/python benchmarks/cable_models.py ../shared/flights/flight_2136_*.csv
    .venv/bin/python benchmarks/cable_models.py --models massless elastic --rounds 0 flight.csv
    .venv/bin/python benchmarks/cable_models.py --drones 1 3 6 12 24 48 --models elastic massless
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from time import process_time

import numpy as np

from musls_analysis.comparison.errors import geodesic_error_rad
from musls_analysis.recordings.readers import read_recording
from musls_analysis.replay import Replay, ReplaySpec
from musls_analysis.replay.replay import ReplayResult, with_links
from musls_description.config.errors import ConfigError
from musls_description.hanging.cone import with_places
from musls_description.hanging.hang import hang
from musls_description.system.slung_system import SlungLoadSystem, slung_system
from musls_description.system.system_files import build_system, load_system
from musls_sim.plants import PLANTS
from musls_sim.plants.interface import Plant, PlantInputs, PlantSetup
from musls_sim.plants.rigid_links.plant import RigidLinksPlant
from musls_sim.scenario.physics import PhysicsSpec, StartSpec

REPLAYED = [
    "rigid_links",
    "rigid_links:5",
    "rigid_links:1",
    "elastic",
    "elastic:5",
    "massless",
]
FLOWN = [
    "rigid_links",
    "rigid_links:5",
    "rigid_links:1",
    "elastic",
    "elastic:5",
    "massless",
    "rigid_rods",
]

ORIGIN = {"load": (0.0, 0.0, -0.07)}
KNOWN = {
    "start": ReplaySpec(physics_step_s=0.004, offsets_m=ORIGIN),
    "recording": ReplaySpec(
        physics_step_s=0.004,
        offsets_m={"load": (-0.025, 0.026, -0.073)},
        load_tilt_rad=(0.134, 0.052, 0.012),
        load_delay_s=-0.05,
    ),
}
TURN = 125  # control periods, half a second


def replayed(path: Path, known: str, models: list[str]) -> None:
    """Print a row per model for one flight."""
    engaging = "engage" in path.stem  # its cables go taut within the first second
    spec = dataclasses.replace(KNOWN[known], lead_in_s=0.5 if engaging else 2.0)
    replay = Replay(read_recording(path), spec)
    system = load_system("x500_trio_swivel")
    first: ReplayResult | None = None
    for model in models:
        try:
            result = replay.run(system, cable_model=model)
        except ConfigError as error:  # bars do not lie slack on the ground
            print(f"{path.stem:20} {known:10} {model:13} {error}", flush=True)
            continue
        first = first or result
        apart = result.load.position_enu_m - first.load.position_enu_m
        turned = geodesic_error_rad(result.load.orientation_wxyz, first.load.orientation_wxyz)
        print(
            f"{path.stem:20} {known:10} {model:13} "
            f"{1e3 * result.translational_error_m:7.1f} mm "
            f"{np.degrees(result.geodesic_error_rad):6.1f} deg   "
            f"{1e3 * np.linalg.norm(apart, axis=1).mean():7.1f} mm "
            f"{np.degrees(turned.mean()):6.1f} deg   "
            f"{np.quantile(result.tension_n, 0.99):6.1f} N   "
            f"{100 * result.audit.relative_error:6.2f} %",
            flush=True,
        )


def ring(drones: int) -> tuple[SlungLoadSystem, np.ndarray]:
    """Drones that carry a ring of 0.55 kg each and a meter apart, and their places, (drones, 3)."""
    azimuth = np.arange(drones) * 2.0 * np.pi / drones
    circle = np.column_stack([np.cos(azimuth), np.sin(azimuth), np.zeros(drones)])
    radius = drones / (2.0 * np.pi) if drones > 1 else 0.0
    mass = 0.55 * drones
    inertia = np.diag([0.5, 0.5, 1.0]) * mass * (0.05 + radius**2)
    data = {
        "name": f"ring of {drones}",
        "load": {
            "mass_kg": mass,
            "inertia_kg_m2": inertia.tolist(),
            "cable_attachments_m": (radius * circle).tolist(),
            "collision": {"size_m": [2.0 * radius + 0.2, 2.0 * radius + 0.2, 0.1]},
        },
        "drones": {"from": "x500"},
        "cables": {"from": "rope"},
    }
    system = build_system(data, "benchmark")
    assert isinstance(system, SlungLoadSystem)
    return system, (radius + (0.3 if drones > 1 else 0.0)) * circle + [0.0, 0.0, 3.2]


def flown(model: str, start: str, drones: int = 0) -> tuple[Plant, PlantInputs]:
    """A plant of the trio or of a ring, and what holds it where it hangs or lies on the ground."""
    if drones:
        system, places = ring(drones)
    else:
        system = slung_system(load_system("x500_trio"), "benchmark")
        azimuth = np.arange(3) * 2.0 * np.pi / 3.0
        places = np.column_stack([np.cos(azimuth), np.sin(azimuth), np.full(3, 3.2)])
    kind = model.partition(":")[0]
    if kind not in ("massless", "rigid_rods"):
        system = with_links(system, model)
    hanging = hang(system, with_places(places))
    setup = PlantSetup(system, StartSpec(kind=start), PhysicsSpec(step_size_s=0.004), hanging)
    plant, inputs = PLANTS[kind](setup), PlantInputs.zeros(system)
    inputs.rotor_command_rad_s[:] = plant.state.rotor_speed_rad_s
    return plant, inputs


def turn_us(model: str, start: str) -> float:
    """Mean time of a control period in a turn, of a fresh plant whose first period is over."""
    plant, inputs = flown(model, start)
    plant.step(inputs)
    inputs.wrench_enu[0, 3] = 0.3 if start == "air" else 0.0
    begin = process_time()
    for _ in range(TURN):
        plant.step(inputs)
    spent = process_time() - begin
    assert start == "ground" or not plant.happened, "a cable went slack in hover"
    return 1e6 * spent / TURN


def over_drones(models: list[str], numbers: list[int], rounds: int) -> None:
    """Print the time of a period over the number of drones, fastest turns, in all and per drone."""
    print("us a period, in brackets per drone: " + ", ".join(models))
    for drones in numbers:
        cells = []
        for model in models:
            plant, inputs = flown(model, "air", drones)
            inputs.wrench_enu[0, 3] = 0.3
            turns = []
            for _ in range(rounds):
                begin = process_time()
                for _ in range(TURN):
                    plant.step(inputs)
                turns.append(1e6 * (process_time() - begin) / TURN)
            cells.append(f"{min(turns):8.1f} ({min(turns) / drones:.2f})")
        print(f"{drones:3d} drones  " + "  ".join(cells), flush=True)


def costs(models: list[str], rounds: int) -> None:
    """Print time of a period and its ratio to the bare DART step."""
    yardstick, _ = flown("rigid_links", "air")
    assert isinstance(yardstick, RigidLinksPlant)
    for start in ("air", "ground"):
        times: dict[str, list[float]] = {model: [] for model in models}
        bare = []
        for _ in range(rounds):
            bare.append(yardstick.bare_step_us(repetitions=15))
            for model in models:
                times[model].append(turn_us(model, start))
        print(f"{start}: bare DART step {np.median(bare):.1f} us, fastest {min(bare):.1f}")
        for model, us in times.items():
            print(
                f"  {model:13} {np.median(us):8.1f} us, fastest {min(us):8.1f}   over bare: "
                f"{np.median(np.array(us) / bare):6.2f}, fastest {min(us) / min(bare):6.2f}",
                flush=True,
            )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("flights", nargs="*", type=Path)
    parser.add_argument("--models", nargs="*", help="of the replays and of the flown plants")
    parser.add_argument("--known", nargs="*", default=list(KNOWN), choices=list(KNOWN))
    parser.add_argument("--drones", type=int, nargs="*", help="cost over numbers of drones")
    parser.add_argument("--rounds", type=int, default=30, help="turns of the cost; 0 for none")
    given = parser.parse_args()
    if given.flights:
        print(
            "flight               known      model      load error           "
            "from the first model   99 % tension   energy audit"
        )
    for path in given.flights:
        for known in given.known:
            replayed(path, known, given.models or REPLAYED)
    if given.drones:
        over_drones(
            given.models or ["rigid_links", "elastic", "massless"], given.drones, given.rounds
        )
    elif given.rounds:
        costs(given.models or FLOWN, given.rounds)


if __name__ == "__main__":
    main()
