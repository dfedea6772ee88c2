"""A plant at rest that only has a state, for tests of recording."""

from types import SimpleNamespace

import numpy as np

from musls_sim.plants.interface import Plant, PlantState
from musls_sim.session.flight import TensionPeaks


def standing_plant(system):
    nodes = [np.zeros((cable.links + 1, 3)) for cable in system.cables]
    plant = Plant(system, 0.004, 9.81)
    plant.state = PlantState.zeros(system)
    plant.cable_nodes_enu_m = nodes.__getitem__
    return plant


def session_of(plant, **more):
    """What a recorder asks of a session."""
    peaks = TensionPeaks(len(plant.state.tension_peak_n), periods=5)
    return SimpleNamespace(plant=plant, tension_peaks=peaks, **more)
