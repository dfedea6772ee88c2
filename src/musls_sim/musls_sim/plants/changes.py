"""Sudden changes of a system that a plant can be asked to make, see `Plant.apply`."""

from __future__ import annotations

from dataclasses import dataclass

from musls_sim.plants.interface import Change


@dataclass(frozen=True)
class RotorEfficiency(Change):
    """A rotor gives less thrust and torque from now on.

    Attributes:
        drone: Number of the drone, from 1.
        rotor: Number of the rotor, from 1; None for all rotors of the drone.
        efficiency: Share of thrust and torque that is left, 0 for a stopped rotor.
    """

    drone: int
    rotor: int | None
    efficiency: float
