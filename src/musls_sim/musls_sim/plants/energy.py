"""The energy balance of a driven system: what holds an integration to account."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(kw_only=True)
class EnergyAudit:
    """Where the work done on the system went, summed over time [J].

    Attributes:
        work_j: Work of the drones' wrenches (and of a load guide).
        absolute_work_j: The same without regard to sign, the scale of the audit.
        loss_j: Taken by joints (damping, friction), air and ground.
        break_j: Strain energy of cable segments that broke or were cut.
        start_j: Kinetic and potential energy at the beginning.
        energy_j: The same now.
    """

    work_j: float = 0.0
    absolute_work_j: float = 0.0
    loss_j: float = 0.0
    break_j: float = 0.0
    start_j: float = 0.0
    energy_j: float = 0.0

    @property
    def missing_j(self) -> float:
        """Work that is not accounted for."""
        return self.work_j - self.loss_j - self.break_j - (self.energy_j - self.start_j)

    @property
    def made_j(self) -> float:
        """Energy that came from nothing; 0 if some only went."""
        return max(0.0, -self.missing_j)

    @property
    def relative_error(self) -> float:
        """The same over the absolute work."""
        return self.missing_j / max(self.absolute_work_j, 1e-12)

    def add(self, later: EnergyAudit) -> None:
        """Go on with the audit of the time that follows."""
        self.work_j += later.work_j
        self.absolute_work_j += later.absolute_work_j
        self.loss_j += later.loss_j
        self.break_j += later.break_j
        self.energy_j = later.energy_j
