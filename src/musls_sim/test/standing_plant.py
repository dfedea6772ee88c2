"""A plant at rest that only has a state, for tests of recording."""

import numpy as np

from musls_sim.plants.interface import Plant, PlantState


def standing_plant(system):
    nodes = [np.zeros((cable.links + 1, 3)) for cable in system.cables]
    plant = Plant()
    plant.system, plant.state = system, PlantState.zeros(system)
    plant.cable_nodes_enu_m = nodes.__getitem__
    return plant
