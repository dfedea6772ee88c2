"""Events: a cable cut, a drone lost, no motion capture, a gust, another load, a link lost."""

from __future__ import annotations

from typing import ClassVar, Literal

from musls_description.errors import ConfigError
from musls_description.schema import Positive, Vector3, spec
from musls_description.system import RigSystem
from musls_sim.events import Scene
from musls_sim.plants.changes import CutCable, LoadMass, RotorEfficiency
from musls_sim.sensors.estimation import MotionCapture
from musls_sim.triggers import One, When, check_cable, check_drone


class Lasting:
    """What stays for the rest of the flight."""

    duration_s: ClassVar[float | None] = None

    def end(self, scene: Scene) -> None:
        """Never called."""


@spec
class DroneLost(Lasting):
    """All motors of a drone stop for good.

    Attributes:
        kind: "drone_lost".
        name: By which other events can follow it.
        when: What triggers it.
        drone: Number of the drone, from 1.
    """

    kind: Literal["drone_lost"] = "drone_lost"
    name: str | None = None
    when: When
    drone: One

    def check(self, system: RigSystem) -> None:
        """See `EventSpec.check`."""
        check_drone(self.drone, system)

    def begin(self, scene: Scene) -> str:
        """See `EventSpec.begin`."""
        scene.apply(RotorEfficiency(self.drone, None, 0.0))
        return f"drone_{self.drone}: all motors stopped"


@spec
class MocapOutage:
    """Motion capture sees nothing for a while; the drones go on by their IMUs.

    Attributes:
        kind: "mocap_outage".
        name: By which other events can follow it.
        when: What triggers it.
        drones: Numbers of those that are not seen; left out for all.
        load: Whether the load is not seen either.
        duration_s: How long.
    """

    kind: Literal["mocap_outage"] = "mocap_outage"
    name: str | None = None
    when: When
    drones: tuple[One, ...] = ()
    load: bool = True
    duration_s: Positive

    def check(self, system: RigSystem) -> None:
        """See `EventSpec.check`."""
        for drone in self.drones:
            check_drone(drone, system)

    def fits(self, scene: Scene) -> None:
        """See `EventSpec`."""
        if not isinstance(scene.estimator, MotionCapture):
            raise ConfigError(
                "events: mocap_outage needs motion capture: estimation.kind: mocap and "
                "autopilot.kind: builtin"
            )

    def begin(self, scene: Scene) -> str:
        """See `EventSpec.begin`."""
        self._see(scene, seen=False)
        whom = ", ".join(f"drone_{i}" for i in self.drones) if self.drones else "all drones"
        return f"{whom}{' and load' if self.load else ''} not seen for {self.duration_s:g} s"

    def end(self, scene: Scene) -> None:
        """See `EventSpec.end`."""
        self._see(scene, seen=True)

    def _see(self, scene: Scene, *, seen: bool) -> None:
        assert isinstance(scene.estimator, MotionCapture)  # see `fits`
        rows = [i - 1 for i in self.drones] or list(range(scene.plant.system.n_drones))
        scene.estimator.see(rows, seen=seen, load=self.load)


@spec
class Gust:
    """More wind for a while.

    Attributes:
        kind: "gust".
        name: By which other events can follow it.
        when: What triggers it.
        velocity_enu_m_s: Added to the wind.
        duration_s: How long.
    """

    kind: Literal["gust"] = "gust"
    name: str | None = None
    when: When
    velocity_enu_m_s: Vector3
    duration_s: Positive

    def check(self, system: RigSystem) -> None:
        """See `EventSpec.check`."""

    def begin(self, scene: Scene) -> str:
        """See `EventSpec.begin`."""
        self._blow(scene, 1.0)
        return f"{list(self.velocity_enu_m_s)} m/s for {self.duration_s:g} s"

    def end(self, scene: Scene) -> None:
        """See `EventSpec.end`."""
        self._blow(scene, -1.0)

    def _blow(self, scene: Scene, sign: float) -> None:
        assert scene.wind is not None
        scene.wind.add(sign, self.velocity_enu_m_s)
        scene.inputs.wind_enu_m_s[:] = scene.wind.velocity_enu_m_s


@spec
class LoadMassChange(Lasting):
    """The load is heavier or lighter from now on: filled, emptied.

    Its velocity stays, its inertia changes in proportion.

    Attributes:
        kind: "load_mass".
        name: By which other events can follow it.
        when: What triggers it.
        mass_kg: New mass of the load.
    """

    kind: Literal["load_mass"] = "load_mass"
    name: str | None = None
    when: When
    mass_kg: Positive

    def check(self, system: RigSystem) -> None:
        """See `EventSpec.check`."""
        if system.load is None:
            raise ConfigError(f"events: load_mass, but {system.name} has no load")

    def fits(self, scene: Scene) -> None:
        """See `EventSpec`."""
        scene.check(LoadMass(self.mass_kg))

    def begin(self, scene: Scene) -> str:
        """See `EventSpec.begin`."""
        scene.apply(LoadMass(self.mass_kg))
        return f"load: {self.mass_kg:g} kg from now on"


@spec
class CableCut(Lasting):
    """A cable is cut in one of its segments.

    Elastic cables part in the segment, chains of rigid links at the lower end of the link, massless
    cables are gone.

    Attributes:
        kind: "cable_cut".
        name: By which other events can follow it.
        when: What triggers it.
        cable: Number of the cable, from 1.
        segment: Number of the segment, from 1 at the load (end 1 of the cable).
    """

    kind: Literal["cable_cut"] = "cable_cut"
    name: str | None = None
    when: When
    cable: One
    segment: One = 1

    def check(self, system: RigSystem) -> None:
        """See `EventSpec.check`."""
        check_cable(self.cable, system)
        segments = system.cables[self.cable - 1].links
        if self.segment > segments:
            raise ConfigError(
                f"events: segment {self.segment}, but cable {self.cable} has {segments}"
            )

    def fits(self, scene: Scene) -> None:
        """See `EventSpec`."""
        scene.check(CutCable(self.cable, self.segment))

    def begin(self, scene: Scene) -> str:
        """See `EventSpec.begin`."""
        scene.apply(CutCable(self.cable, self.segment))
        return f"cable_{self.cable}: cut in segment {self.segment}"


@spec
class LinkLost:
    """A drone hears nothing from who guides it.

    As PX4 in offboard mode: for COM_OF_LOSS_T (1 s) it follows the last set-point, then its own
    failsafe (COM_OBL_RC_ACT) holds its place or lands; landed it disarms. The built-in autopilot
    does what PX4 does; to a real PX4 no set-points are sent, and its own parameters decide.

    Attributes:
        kind: "link_lost".
        name: By which other events can follow it.
        when: What triggers it.
        drone: Number of the drone, from 1.
        action: What the built-in autopilot does then: "land" or "hold".
        duration_s: Time after which the link is back; left out for never.
    """

    kind: Literal["link_lost"] = "link_lost"
    name: str | None = None
    when: When
    drone: One
    action: Literal["land", "hold"] = "land"
    duration_s: Positive | None = None

    def check(self, system: RigSystem) -> None:
        """See `EventSpec.check`."""
        check_drone(self.drone, system)

    def fits(self, scene: Scene) -> None:
        """See `EventSpec`."""
        why = "nobody guides the drones" if scene.links is None else scene.links.refusal()
        if why is not None:
            raise ConfigError(f"events: link_lost: {why}")

    def begin(self, scene: Scene) -> str:
        """See `EventSpec.begin`."""
        assert scene.links is not None
        scene.links.lose(self.drone - 1, self.action)
        return f"drone_{self.drone}: no set-points"

    def end(self, scene: Scene) -> None:
        """See `EventSpec.end`."""
        assert scene.links is not None
        scene.links.restore(self.drone - 1)


@spec
class Abort(Lasting):
    """A delivery is given up: the load comes back, or is landed where it is.

    Attributes:
        kind: "abort".
        name: By which other events can follow it.
        when: What triggers it.
    """

    kind: Literal["abort"] = "abort"
    name: str | None = None
    when: When

    def check(self, system: RigSystem) -> None:
        """See `EventSpec.check`."""

    def fits(self, scene: Scene) -> None:
        """See `EventSpec`."""
        if scene.abort is None:
            raise ConfigError("events: abort: only mission.kind: delivery can be aborted")

    def begin(self, scene: Scene) -> str:
        """See `EventSpec.begin`."""
        assert scene.abort is not None  # see `fits`
        scene.abort("asked for")
        return "asked for"
