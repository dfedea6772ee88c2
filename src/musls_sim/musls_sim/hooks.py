"""Events: hooks that open and close."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from musls_description.errors import ConfigError
from musls_description.schema import Positive, spec
from musls_description.system import RigSystem
from musls_sim.events import Scene
from musls_sim.failures import Lasting
from musls_sim.plants.changes import AttachHook, ReleaseHook
from musls_sim.plants.interface import Hooked
from musls_sim.triggers import One, When, check_cable


@spec
class Release(Lasting):
    """The hook of a cable opens: the load is let go.

    Attributes:
        kind: "release".
        name: By which other events can follow it.
        when: What triggers it.
        cable: Number of the cable, from 1; left out for all cables.
        at: Which end: "load" (the cable goes with the drone) or "drone" (with the load).
    """

    kind: Literal["release"] = "release"
    name: str | None = None
    when: When
    cable: One | None = None
    at: Literal["load", "drone"] = "load"

    def check(self, system: RigSystem) -> None:
        """See `EventSpec.check`."""
        if self.cable is not None:
            check_cable(self.cable, system)
        if not system.cables:
            raise ConfigError(f"events: release, but {system.name} has no cables")
        for cable in self.cables(system):
            _check_hook("release", cable, system)

    def cables(self, system: RigSystem) -> tuple[int, ...]:
        """Numbers of the cables whose hooks open."""
        return tuple(range(1, len(system.cables) + 1)) if self.cable is None else (self.cable,)

    def fits(self, scene: Scene) -> None:
        """See `EventSpec`."""
        scene.check(ReleaseHook(self.cable or 1, self.at))

    def begin(self, scene: Scene) -> str:
        """See `EventSpec.begin`."""
        for cable in self.cables(scene.plant.system):
            scene.apply(ReleaseHook(cable, self.at))
        which = "all cables" if self.cable is None else f"cable_{self.cable}"
        return f"{which}: let go at the {self.at}{'s' * (self.at == 'drone' and not self.cable)}"


@spec
class Attach(Lasting):
    """The open hook of a cable closes on the load, once it is close enough and slow enough.

    Attributes:
        kind: "attach".
        name: By which other events can follow it.
        when: From when on the hook is ready to close.
        cable: Number of the cable, from 1.
        distance_m: Largest distance of the hook from its place on the load.
        speed_m_s: Largest speed relative to it.
    """

    kind: Literal["attach"] = "attach"
    name: str | None = None
    when: When
    cable: One = 1
    distance_m: Positive = 0.1
    speed_m_s: Positive = 0.3

    def check(self, system: RigSystem) -> None:
        """See `EventSpec.check`."""
        check_cable(self.cable, system)
        if system.load is None:
            raise ConfigError(f"events: attach, but {system.name} has no load")
        _check_hook("attach", self.cable, system)
        if system.winches or system.wheels:
            raise ConfigError(
                f"events: attach: {system.name} has winches or wheels: only cables of fixed length "
                "can be hooked up"
            )

    def fits(self, scene: Scene) -> None:
        """See `EventSpec`."""
        scene.check(AttachHook(self.cable))

    def ready(self, scene: Scene) -> bool:
        """See `EventSpec`."""
        plant = scene.plant
        if not isinstance(plant, Hooked) or not plant.hook_is_open(self.cable - 1):
            return False
        distance, speed = plant.hook_miss(self.cable - 1)
        return distance <= self.distance_m and speed <= self.speed_m_s

    def begin(self, scene: Scene) -> str:
        """See `EventSpec.begin`."""
        plant = scene.plant
        assert isinstance(plant, Hooked)  # see `fits`
        distance, speed = plant.hook_miss(self.cable - 1)
        scene.apply(AttachHook(self.cable))
        return f"cable_{self.cable}: hooked up from {distance:.3f} m at {speed:.3f} m/s"


def _check_hook(what: str, cable: int, system: RigSystem) -> None:
    """Refuse a rod: it is fixed at its ends, and has no hook."""
    if system.cables[cable - 1].elastic.rod:
        raise ConfigError(
            f"events: {what}: cable {cable} of {system.name} is a rod (elastic.rod), which has no "
            "hook; cable_cut can part it"
        )


def check_hooks(events: Sequence[Any], n_cables: int) -> None:
    """Refuse hooks that would close twice without opening, or open twice without closing.

    Args:
        events: Of a scenario.
        n_cables: Number of cables.

    Raises:
        ConfigError: More hooks close on a cable than have opened before, or more than one opens.
    """
    for cable in range(1, n_cables + 1):
        closing = sum(isinstance(e, Attach) and e.cable == cable for e in events)
        opening = sum(
            isinstance(e, Release) and e.at == "load" and e.cable in (None, cable) for e in events
        )
        if closing > opening:
            raise ConfigError(
                f"events: attach: two hooks on cable {cable}: it hangs on the load until a release "
                "lets it go there"
            )
        if opening > closing + 1:
            raise ConfigError(
                f"events: release: cable {cable} is let go at the load {opening} times; attach it "
                "in between"
            )
