"""What a physics step costs DART alone."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from musls_sim.plants.rigid_links.dart_plant import DartPlant


def bare_step_us(plant: DartPlant, repetitions: int = 20, batch: int = 10) -> float:
    """Time DART alone needs for a physics step of a plant's skeleton, in flight [us].

    Steps a copy in the present configuration, lifted clear of the ground, and takes the median over
    batches, short ones because a busy machine slows the long ones.
    """
    start = plant.skeleton.getPositions()
    world = plant.world.clone()
    skeleton = world.getSkeleton("musls")
    start[5] += 1000.0
    rest = np.zeros_like(start)
    times = []
    for _ in range(repetitions):
        skeleton.setPositions(start)
        skeleton.setVelocities(rest)
        begin = perf_counter()
        for _ in range(batch):
            world.step()
        times.append((perf_counter() - begin) / batch)
    return float(np.median(times) * 1e6)
