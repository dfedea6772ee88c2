"""A plant at rest that only has a state, for tests of recording."""

from types import SimpleNamespace

import numpy as np

from musls_sim.plants.interface import PlantState


def standing_plant(system):
    nodes = [np.zeros((cable.links + 1, 3)) for cable in system.cables]
    state = PlantState.zeros(system)
    return SimpleNamespace(system=system, state=state, cable_nodes_enu_m=nodes.__getitem__)
