"""Events: commands to winches."""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

from musls_description.errors import ConfigError
from musls_description.schema import Finite, spec
from musls_description.system import RigSystem
from musls_sim.events import Scene
from musls_sim.failures import Lasting
from musls_sim.triggers import One, When

INPUTS = ("feed_m_s", "torque_n_m", "speed_rad_s")


@runtime_checkable
class Winched(Protocol):
    """A plant whose winches take commands."""

    def winch_input(self, winch: int) -> str:
        """Which of `INPUTS` a winch (from 0) takes."""


@spec
class WinchCommand(Lasting):
    """A winch does something else from now on than the scenario's `rig` says.

    Attributes:
        kind: "winch".
        name: By which other events can follow it.
        when: What triggers it.
        winch: Number of the winch, from 1.
        feed_m_s: Rate of the free length of a winch of kind feed, positive pays out.
        torque_n_m: Of the motor of a drum, positive pays out.
        speed_rad_s: Of a drum that the scenario drives by its speed.
        brake: Whether a drum's brake is closed; left out to leave it as it is.
    """

    kind: Literal["winch"] = "winch"
    name: str | None = None
    when: When
    winch: One = 1
    feed_m_s: Finite | None = None
    torque_n_m: Finite | None = None
    speed_rad_s: Finite | None = None
    brake: bool | None = None

    def __post_init__(self) -> None:
        """Check what concerns more than one field."""
        if len(self._given) > 1 or not (self._given or self.brake is not None):
            raise ValueError("give one of feed_m_s, torque_n_m and speed_rad_s, or brake alone")

    @property
    def _given(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in INPUTS if getattr(self, name) is not None}

    def check(self, system: RigSystem) -> None:
        """See `EventSpec.check`."""
        count = len(system.winches)
        if self.winch > count:
            there = f"there are {count}" if count else f"{system.name} has none"
            raise ConfigError(f"events: winch {self.winch}, but {there}")
        if self.brake is not None and system.winches[self.winch - 1].kind != "drum":
            raise ConfigError(f"events: winch_{self.winch} is a feed, which has no brake")

    def fits(self, scene: Scene) -> None:
        """See `EventSpec`."""
        plant = scene.plant
        if not isinstance(plant, Winched):
            raise ConfigError(
                f"events: winch: the cable model '{plant.cable_model}' has no winches; choose "
                "cable_model: elastic"
            )
        takes = plant.winch_input(self.winch - 1)
        for name in self._given:
            if name != takes:
                raise ConfigError(f"events: winch_{self.winch} takes {takes} here, not {name}")

    def begin(self, scene: Scene) -> str:
        """See `EventSpec.begin`."""
        i, inputs, said = self.winch - 1, scene.inputs, []
        for name, value in self._given.items():
            inputs.winch[i] = value
            said.append(f"{name} = {value:g}")
        if self.brake is not None:
            inputs.winch_brake[i] = self.brake
            if not self._given:
                inputs.winch[i] = 0.0
            said.append("brake closed" if self.brake else "brake open")
        inputs.winch_taken[i] = True
        return f"winch_{self.winch}: {', '.join(said)}"
