"""Static search: every fleet, cone, length and material, by how the load hangs in the wind.

For each airframe and number of drones all cones and lengths are solved exactly (`hang`). Cables
lean outwards as their hooks lie (`_directions`). Of the formations that keep what is required those
are kept that differ: of each length the narrowest cone and a wider one. Flights decide, so that
here a little less than what is required passes (`STATIC_SLACK`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from musls_bringup.design.question import MOST_DRONES, Question, battery_of
from musls_bringup.new.templates import ROPE_LINKS, cable_length_m, rope_for
from musls_control.brief.findings import LIGHT_SEGMENT_KG
from musls_control.brief.margins import FormationMotion, forces_of, hanging_forces, margins
from musls_control.mission.contingency import MIN_DRONES
from musls_description.config.errors import ConfigError
from musls_description.hanging.cone import with_places
from musls_description.hanging.fitting import CENTRAL_M, proposed_places_m
from musls_description.hanging.hang import Hanging, hang, shown_beside
from musls_description.hanging.tree import beside_load_m, tips_apart_m
from musls_description.numerics.arrays import Array
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.system.drone import tip_radius_m
from musls_description.system.rope_materials import MATERIALS, Material
from musls_description.system.slung_system import Cable, Load, SlungLoadSystem

STATIC_SLACK = 0.95
"""Share of a required margin that a formation at rest in the strongest wind must have."""

CONES_DEG = (5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0)
LENGTHS = (0.6, 0.8, 1.0, 1.4, 2.0)
"""Lengths of cables over the usual one of an airframe."""

DIRECTIONS_DEG = (0.0, 90.0, 180.0, 270.0)
"""Directions of the wind, from the load's x axis."""

PEAK = 1.6
"""Largest tension of a flight over that at rest in the strongest wind, by which a diameter is first
chosen; flights tell the tension itself."""

HANDLED = 0.5
"""Diameter of a cable over the usual one, below which it is hard to handle."""

NEARLY_THE_SAME = 0.005
"""Share of the fleet's mass within which cables of two materials weigh the same."""

WANDER = 0.3
"""Distance that drones come nearer to each other, and in a fall to the load, than planned, over
that of a tip from its axis."""

LEAST_SHARE = 0.4
"""Least force of a cable, over an even share, at rest."""

STEEPEST_RAD = math.radians(3.0)
"""Largest tilt of the load at rest."""

LONGEST_M = 100.0
"""Length beyond which no cable is looked at, that of `Fixed.length_m`."""

LENGTHS_KEPT = 3
"""Lengths of cables below which longer ones than usual are looked at, too."""

SHORT = 2
"""Lengths for which a wider cone is looked at, too."""

WIDER_DEG = 10.0
"""Angle by which a second cone for the same length is wider than the narrowest, at least."""

MOST_PROPOSED = 6
"""Drones for which places beside each other are searched where no cone has any; it takes long."""

MORE_DRONES = 2
"""Drones by which a fleet may be larger than the smallest one of an airframe that is possible."""

LEFT_OVER = 1.02
"""Thrust margin with upright cables that those who are left need, at least, to set a load down."""


@dataclass(frozen=True)
class Design:
    """One way to carry a load.

    Attributes:
        airframe: Name of the airframe.
        cone_deg: Angle of the outermost cable from the vertical.
        material: Material of the cables.
        diameter_m: Nominal diameter of the cables.
        hanging: Load, drones and cables at rest in formation.
        controller: Kind of controller.
        wind_margin: Least thrust margin at rest in the strongest wind, of all directions.
        tension_n: Largest tension at rest in the strongest wind, of all directions.
        minutes: Time of hover of the drone that is empty first; None without batteries.
    """

    airframe: str
    cone_deg: float
    material: Material
    diameter_m: float
    hanging: Hanging
    controller: str = "formation"
    wind_margin: float = math.nan
    tension_n: float = math.nan
    minutes: float | None = None

    @property
    def system(self) -> SlungLoadSystem:
        """Load, drones and cables."""
        return self.hanging.system

    @property
    def number(self) -> int:
        """Number of drones."""
        return self.system.n_drones

    @property
    def length_m(self) -> float:
        """Length of the cables."""
        return self.system.cables[0].length_m

    @property
    def cost_kg(self) -> float:
        """Mass of drones and cables."""
        return self.system.mass_kg - self.system.load.mass_kg

    @property
    def break_force_n(self) -> float:
        """Breaking force of a cable."""
        return MATERIALS[self.material].break_force_n(self.diameter_m)

    @property
    def apart_m(self) -> float:
        """Least distance of rotor tips, in formation and on the ground."""
        on_ground_m = tips_apart_m(self.system, _standing_m(self.hanging))
        return min(self.hanging.tips_apart_m, on_ground_m)

    @cached_property
    def room_m(self) -> float:
        """Diameter of the circle on the ground in which the drones stand before the flight."""
        reach = np.linalg.norm(_standing_m(self.hanging)[:, :2], axis=1)
        return float(2.0 * (reach + [tip_radius_m(d) for d in self.system.drones]).max())

    @property
    def name(self) -> str:
        """Numbers that tell one design from another."""
        return (
            f"{self.number} {self.airframe}, cone {self.cone_deg:g} deg, {self.length_m:g} m of "
            f"{self.material} {1e3 * self.diameter_m:g} mm, {self.controller}"
        )


@dataclass(frozen=True)
class Rejection:
    """A fleet that was rejected.

    Attributes:
        airframe: Name of the airframe.
        number: Number of drones.
        why: Reason.
        cost_kg: Mass of the drones, and of their cables where these are known.
        design: The best formation of it; None where none was composed.
        flown: Whether flights rejected it.
    """

    airframe: str
    number: int
    why: str
    cost_kg: float
    design: Design | None = None
    flown: bool = False

    @property
    def name(self) -> str:
        """Number and airframe."""
        return f"{self.number} {self.airframe}"


@dataclass(frozen=True)
class Static:
    """Outcome of the static search.

    Attributes:
        fleets: Formations of each fleet that may do, best first.
        rejections: Fleets that do not.
        looked_at: Number of formations that were solved.
        largest: Largest number of drones that was looked at, by airframe.
    """

    fleets: Sequence[Sequence[Design]]
    rejections: Sequence[Rejection]
    looked_at: int
    largest: Mapping[str, int]


def search(
    question: Question,
    progress: Callable[[str, float], None] | None = None,
    beyond: Mapping[str, int] | None = None,
) -> Static:
    """Look at fleets from the smallest that may do, up to `MORE_DRONES` more.

    `progress` is told what is done and the share of it; `beyond` are numbers of drones, by
    airframe, up to which everything was looked at before.
    """
    fleets: list[list[Design]] = []
    rejected: list[Rejection] = []
    looked_at = 0
    largest = dict(beyond or {})
    names = list(question.fleet)
    for k, name in enumerate(names):
        first: int | None = None
        for number in _numbers(question, largest.get(name, 0)):
            if first is not None and number > first + MORE_DRONES:
                break
            largest[name] = number
            if progress is not None:
                share = (k + number / MOST_DRONES) / len(names)
                progress(f"static: {number} {name}, {looked_at} formations", share)
            fleet = Fleet(question, name, number)
            designs, why = fleet.best()
            looked_at += fleet.looked_at
            if designs:
                fleets.append(designs)
                first = number if first is None else first
            else:
                rejected.append(Rejection(name, number, why, fleet.cost_kg, fleet.nearest))
            if fleet.too_wide:  # more drones need more room
                largest[name] = MOST_DRONES
                break
    return Static(fleets, rejected, looked_at, largest)


def _numbers(question: Question, beyond: int) -> Iterator[int]:
    """Numbers of drones larger than one: those that are fixed, or all."""
    cargo = question.cargo
    fixed = question.fixed
    number = len(cargo.hooks_m) if cargo.hooks_m is not None else fixed.number
    every = range(1, MOST_DRONES + 1) if number is None else [number]
    yield from (count for count in every if count > beyond)


class Fleet:
    """Formations of so many drones of an airframe."""

    def __init__(self, question: Question, airframe: str, number: int) -> None:
        self.question = question
        self.airframe = airframe
        self.number = number
        self.drone = question.fleet[airframe]
        self.looked_at = 0
        self.nearest: Design | None = None
        self.cost_kg = number * self.drone.mass_kg
        self.needed = STATIC_SLACK * question.requirements.margin
        self.too_wide = False

    def best(self) -> tuple[list[Design], str]:
        """Best formations, or why there is none."""
        if why := self._too_few():
            return [], why
        hooks = self.question.cargo.hooks(self.number)
        if hooks is None:
            return [], "the load has no hooks for so many cables"
        windy = [self._in_wind(design) for design in _spread(list(self._formations(hooks)))]
        kept = [design for design in windy if not self._lacks(design)]
        for design in self._roomy(hooks):  # the shortest first, which needs the most thrust
            if len({one.length_m for one in kept}) >= LENGTHS_KEPT:
                break
            windy.append(self._in_wind(design))
            kept += [] if self._lacks(windy[-1]) else windy[-1:]
        if not windy:
            return [], self._no_places()
        self.nearest = self._strongest(kept or windy)
        self.cost_kg = self.nearest.cost_kg
        why = "" if kept else self._lacks(self.nearest)
        self.too_wide = "of room on the ground" in why
        return kept, why

    def _strongest(self, designs: Sequence[Design]) -> Design:
        """The design with the largest margin in the wind, of some that were looked at in part."""
        best: Design | None = None
        for design in sorted(designs, key=lambda one: -one.wind_margin):
            if best is not None and best.wind_margin >= design.wind_margin:
                break
            whole = self._in_wind(design, whole=True)
            if best is None or whole.wind_margin > best.wind_margin:
                best = whole
        assert best is not None
        return best

    def forced(self) -> Design | None:
        """The best formation even if it lacks something; None if nothing hangs."""
        self.best()
        hooks = self.question.cargo.hooks(self.number)
        if self.nearest is None and hooks is not None:
            designs = sorted(self._formations(hooks), key=lambda d: -d.hanging.thrust_margin)
            self.nearest = self._in_wind(designs[0], whole=True) if designs else None
        return self.nearest

    def _too_few(self) -> str:
        """Why so few drones cannot carry it in any formation; empty where they may."""
        required = self.question.requirements
        if required.hover_min is not None and battery_of(self.drone) is None:
            return "the airframe's file has no battery: minutes of hover are not known"
        if required.survives_one and self.number < MIN_DRONES:
            return f"the loss of one can be survived by {MIN_DRONES} drones or more"
        upright = self._upright(self.number)
        if upright < self.needed:
            return (
                f"thrust margin {shown_beside(upright, required.margin)} with upright cables in "
                f"still air, {required.margin:g} is required"
            )
        if required.survives_one and self._upright(self.number - 1) < LEFT_OVER:
            left = self._upright(self.number - 1)
            return (
                f"without one drone the thrust margin of the others is {left:.2f} with upright "
                "cables: they could not set the load down"
            )
        return ""

    def _upright(self, number: int) -> float:
        """Thrust margin of so many drones on massless upright cables: thrust over weight."""
        weight_kg = self.drone.mass_kg + self.question.cargo.mass_kg / number
        return self.drone.max_thrust_n / (STANDARD_GRAVITY_M_S2 * weight_kg)

    def _no_places(self) -> str:
        gap_m = self.question.requirements.gap_m(self.drone)
        survives = self.question.requirements.survives_one
        beside = " and beside the load, on which a lost drone would fall" if survives else ""
        return (
            f"no places side by side for {self.number} rotor discs of "
            f"{2.0 * tip_radius_m(self.drone):.2f} m, {gap_m:.2g} m apart, above these hooks"
            f"{beside}"
        )

    def _lacks(self, design: Design) -> str:
        """Requirement that a formation at rest does not keep; empty where it keeps all."""
        required = self.question.requirements
        if design.wind_margin < self.needed:
            return (
                f"thrust margin {shown_beside(design.wind_margin, required.margin)} at rest in "
                f"{self.question.strongest_m_s:g} m/s of wind, {required.margin:g} is required"
            )
        minutes = design.minutes
        least = required.hover_min
        if minutes is not None and least is not None and minutes < least:
            return f"{minutes:.1f} min of hover, {least:g} min are required"
        if required.room is not None and design.room_m > required.room:
            return f"{design.room_m:.1f} m of room on the ground, {required.room:g} m are there"
        return ""

    # ---------- Formations

    def _formations(self, hooks_m: Array) -> Iterator[Design]:
        """Formations of usual lengths that hold the load level, rotors apart."""
        load = self.question.cargo.load(hooks_m)
        found = False
        for length_m in self._lengths_m:
            for cone_deg in self._cones_deg:
                design = self._leaning_out(hooks_m, load, length_m, cone_deg)
                if design is not None:
                    found = True
                    yield design
        if not found and self.question.fixed.cone_deg is None:
            yield from self._proposed(hooks_m, load)

    def _proposed(self, hooks_m: Array, load: Load) -> Iterator[Design]:
        """Formations where no cone has places beside each other, on the longer cables."""
        if not 1 < self.number <= MOST_PROPOSED:
            return
        for length_m in self._lengths_m[len(self._lengths_m) // 2 :]:
            system = self._system(hooks_m, load, length_m, CONES_DEG[3])
            proposed = proposed_places_m(system)
            if proposed is not None:
                lean_deg = math.degrees(_steepest_rad(system, proposed))
                design = self._hung(system, proposed, round(lean_deg, 1))
                if design is not None:
                    yield design

    @property
    def _lengths_m(self) -> list[float]:
        usual_m = cable_length_m(tip_radius_m(self.drone))
        fixed = self.question.fixed.length_m
        return [float(f"{share * usual_m:.2g}") for share in LENGTHS] if fixed is None else [fixed]

    @property
    def _cones_deg(self) -> Sequence[float]:
        fixed = self.question.fixed.cone_deg
        return (0.0,) if self.number == 1 else CONES_DEG if fixed is None else (fixed,)

    def _ways(self, hooks_m: Array) -> list[Array]:
        """Slopes of the cables for a cone of 45 degrees, (n, 2) each, the best first."""
        aside = _to_both_sides(hooks_m) if self.question.requirements.survives_one else []
        return [*aside, *_directions(hooks_m)]

    def _leaning_out(
        self, hooks_m: Array, load: Load, length_m: float, cone_deg: float
    ) -> Design | None:
        """The design of the first way to lean cables outwards in which the load hangs well."""
        system = self._system(hooks_m, load, length_m, cone_deg)
        for slopes in self._ways(hooks_m):
            places = _leaning(system, math.tan(math.radians(cone_deg)) * slopes)
            design = self._hung(system, places, cone_deg)
            if design is not None:
                return design
        return None

    def _roomy(self, hooks_m: Array) -> Iterator[Design]:
        """Formations on longer cables than usual, for each cone the shortest that leave room.

        Above a small load many rotors have no room on usual cables but in a wide cone, which takes
        much thrust.
        """
        if self.question.fixed.length_m is not None:
            return
        load = self.question.cargo.load(hooks_m)
        way = self._ways(hooks_m)[0]
        longest_m = max(self._lengths_m)
        for cone_deg in sorted(self._cones_deg, reverse=True):
            slopes = math.tan(math.radians(cone_deg)) * way

            def fits(length_m: float, cone_deg: float = cone_deg, slopes: Array = slopes) -> bool:
                system = self._system(hooks_m, load, length_m, cone_deg)
                return self._fits(system, _leaning(system, slopes))

            length_m = None if fits(longest_m) else _least_length_m(fits, longest_m)
            design = length_m and self._leaning_out(hooks_m, load, length_m, cone_deg)
            if design:
                yield design

    def _fits(self, system: SlungLoadSystem, places_m: Array) -> bool:
        """Whether rotors above places, (n, 3), are apart, and drones that may fall beside the load.

        In flight they come somewhat nearer to each other and to it.
        """
        tip_m = tip_radius_m(self.drone)
        required = self.question.requirements
        if tips_apart_m(system, places_m) < required.gap_m(self.drone) + WANDER * tip_m:
            return False
        return not required.survives_one or (
            beside_load_m(system, places_m) >= (1.0 + WANDER) * tip_m
        )

    def _hung(self, system: SlungLoadSystem, places_m: Array, cone_deg: float) -> Design | None:
        """The design with drones at places, (n, 3); None where the load does not hang well."""
        if not self._fits(system, places_m):
            return None
        self.looked_at += 1
        hanging = hang(system, with_places(np.round(places_m, 4) + 0.0))
        if hanging.refusal is not None:
            return None
        if hanging.tilt_rad > STEEPEST_RAD or hanging.shares.min() < LEAST_SHARE:
            return None
        standing_m = _standing_m(hanging)
        if beside_load_m(system, standing_m) == 0.0:
            return None
        if tips_apart_m(system, standing_m) < self.question.requirements.gap_m(self.drone):
            return None
        cable = system.cables[0]
        assert cable.material is not None
        return Design(
            self.airframe,
            cone_deg,
            cable.material,
            cable.nominal_diameter_m,
            hanging,
            self.question.fixed.controller or "formation",
        )

    def _system(
        self, hooks_m: Array, load: Load, length_m: float, cone_deg: float
    ) -> SlungLoadSystem:
        pull_n = self.question.cargo.mass_kg * STANDARD_GRAVITY_M_S2 / self.number
        pull_n /= math.cos(math.radians(cone_deg))
        cable = self._cable(pull_n, length_m)
        return SlungLoadSystem(
            name=f"{self.question.cargo.name}_{self.number}",
            load=load,
            drones=(self.drone,) * self.number,
            cables=(cable,) * self.number,
        )

    def _cable(self, pull_n: float, length_m: float) -> Cable:
        """The lightest cable that holds a pull; of those that weigh nearly the same the best."""
        fixed = self.question.fixed
        factor = self.question.requirements.factor
        sizes = diameters_m(pull_n, PEAK * factor * pull_n, fixed.diameter_m)
        if fixed.material is not None:
            sizes = {fixed.material: sizes[fixed.material]}
        mass = {name: MATERIALS[name].mass_kg_m(d) * length_m for name, d in sizes.items()}
        light = min(mass.values()) + NEARLY_THE_SAME * self.drone.mass_kg
        name = max(
            (name for name in sizes if mass[name] <= light),
            key=lambda name: MATERIALS[name].break_force_n(sizes[name]),
        )
        links = max(1, min(ROPE_LINKS, int(mass[name] / LIGHT_SEGMENT_KG)))
        return Cable(material=name, diameter_m=sizes[name], length_m=length_m, links=links)

    # ---------- Wind

    def _in_wind(self, design: Design, *, whole: bool = False) -> Design:
        """The design with its margin and tension at rest in the strongest wind.

        Unless it is looked at as a `whole`, directions end where one needs too much thrust.
        """
        hanging = design.hanging
        speed = self.question.strongest_m_s
        margin = hanging.thrust_margin
        tension_n = float(hanging.rest.load_end_tension_n.max())
        still = np.zeros(3)
        for angle in np.radians(DIRECTIONS_DEG) if speed > 0.0 else ():
            if margin < self.needed and not whole:
                break
            wind = speed * np.array([math.cos(angle), math.sin(angle), 0.0])
            motion = FormationMotion(np.zeros(4), still, still, 0.0, 0.0, wind)
            try:
                forces = forces_of(hanging, motion)
            except ConfigError:  # nothing hangs there in such a wind
                margin = 0.0
                continue
            of = margins(design.system, forces)
            margin = min(margin, *(one.thrust_margin for one in of))
            tension_n = max(tension_n, float(forces.tension_n.max()))
        at_rest = margins(design.system, hanging_forces(hanging))
        hovering = [drone.minutes for drone in at_rest]
        known = [minutes for minutes in hovering if minutes is not None]
        least = min(known) if len(known) == len(hovering) else None
        return replace(design, wind_margin=margin, tension_n=tension_n, minutes=least)


def _spread(designs: Sequence[Design]) -> list[Design]:
    """Of each length the narrowest cone, of short ones also a wider one; the shortest first."""
    found: list[Design] = []
    for k, length_m in enumerate(dict.fromkeys(design.length_m for design in designs)):
        same = [design for design in designs if design.length_m == length_m]
        narrow = min(same, key=lambda design: design.cone_deg)
        wider = [d for d in same if d.cone_deg >= narrow.cone_deg + WIDER_DEG]
        found += [narrow, *(wider[:1] if k < SHORT else ())]
    return found


def _standing_m(hanging: Hanging) -> Array:
    """Places in which the drones stand on the ground round the load, (n, 3), from the load."""
    places, _ = hanging.on_ground.bodies(hanging.system)
    return np.asarray(places[1:] - places[0])


def diameters_m(
    pull_n: float, needed_n: float, fixed_m: float | None = None
) -> dict[Material, float]:
    """Diameter of each material that is sold and has a breaking force.

    At least `HANDLED` of the usual diameter for a pull; materials without any are left out.
    """
    handled_m = HANDLED * rope_for(pull_n).diameter_m
    found: dict[Material, float] = {}
    for name, rope in MATERIALS.items():
        if fixed_m is not None:
            found[name] = fixed_m
            continue
        for diameter_m in rope.diameters_m:
            if diameter_m >= handled_m and rope.break_force_n(diameter_m) >= needed_n:
                found[name] = diameter_m
                break
    if not found:
        raise ConfigError(f"no rope that is sold holds {needed_n:.3g} N: more drones are needed")
    return found


def _directions(hooks_m: Array) -> list[Array]:
    """Ways in which cables may lean outwards, (n, 2) each, the largest of length 1.

    In proportion to the hooks' distances from the middle: with even shares such forces balance for
    hooks of any shape. Or all alike, as on an ellipse of hooks in even steps: that balances there,
    and brings rotors above a narrow load apart.
    """
    n = len(hooks_m)
    outwards = hooks_m[:, :2] - hooks_m[:, :2].mean(axis=0)
    farthest = float(np.linalg.norm(outwards, axis=1).max())
    if farthest < CENTRAL_M:  # hooks in one place have no directions
        azimuth = 2.0 * np.pi * np.arange(n) / n
        around = np.column_stack([np.cos(azimuth), np.sin(azimuth)])
        return [around if n > 1 else 0.0 * around]
    _, sizes, axes = np.linalg.svd(outwards, full_matrices=False)
    found = [outwards / farthest]
    if n > 2 and sizes[1] > 1e-3 * sizes[0]:
        alike = (outwards @ axes.T / sizes) @ axes
        lengths = np.linalg.norm(alike, axis=1, keepdims=True)
        found.append(alike / np.maximum(lengths, 1e-9))
    return found


def _to_both_sides(hooks_m: Array) -> list[Array]:
    """Slopes of cables of hooks in a line to alternate sides of it, (n, 2); none for others.

    A drone above a beam that is lost would fall on it. The forces of even shares balance: the part
    that would push or turn the load is taken from the alternating signs. These are the sides to
    which the drones fan out on the ground (`tree.cable_azimuths_rad`): none crosses the beam.
    """
    n = len(hooks_m)
    outwards = hooks_m[:, :2] - hooks_m[:, :2].mean(axis=0)
    _, sizes, axes = np.linalg.svd(outwards, full_matrices=False)
    if n < 4 or sizes[0] < CENTRAL_M or sizes[1] > 1e-3 * sizes[0]:
        return []
    axis = axes[0] * np.sign(axes[0][np.argmax(np.abs(axes[0]))])
    along = outwards @ axis
    order = np.argsort(np.argsort(along))
    signs = np.where(order % 2, 1.0, -1.0)
    signs -= signs.mean() + along * (along @ signs) / (along @ along)
    across = np.array([-axis[1], axis[0]])
    slopes = outwards / np.abs(along).max() + np.outer(signs / np.abs(signs).max(), across)
    return [slopes / np.linalg.norm(slopes, axis=1).max()]


def _leaning(system: SlungLoadSystem, slopes: Array) -> Array:
    """Places of drones whose cables have slopes, (n, 2): (n, 3)."""
    hooks = np.array(system.load.cable_attachments_m)
    along = np.column_stack([slopes, np.ones(len(slopes))])
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    lengths = np.array([cable.length_m for cable in system.cables])
    ends = hooks + lengths[:, None] * along
    at_drone = np.array([drone.cable_attachment_m for drone in system.drones])
    return np.asarray(ends - at_drone * [0.0, 0.0, 1.0])


def _least_length_m(fits: Callable[[float], bool], from_m: float) -> float | None:
    """The shortest length of cable that fits, of two digits; None where none does.

    `fits` holds for all longer ones, too: cables that lean outwards bring drones apart.
    """
    if not fits(LONGEST_M):
        return None
    low = from_m
    high = LONGEST_M
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if fits(middle) else (middle, high)
    digit = 10.0 ** (math.floor(math.log10(high)) - 1)
    return float(f"{digit * math.ceil(high / digit):.2g}")


def _steepest_rad(system: SlungLoadSystem, places_m: Array) -> float:
    """Largest angle of a cable from the vertical."""
    at_drone = np.array([drone.cable_attachment_m for drone in system.drones])
    along = places_m + at_drone * [0.0, 0.0, 1.0] - np.array(system.load.cable_attachments_m)
    return float(np.arctan2(np.linalg.norm(along[:, :2], axis=1), along[:, 2]).max())


def materials_for(
    design: Design, factor: float, largest_n: float
) -> list[tuple[str, float, float]]:
    """Material, diameter [m] and mass of all cables [kg] that would hold a tension, by mass."""
    pull_n = float(design.hanging.rest.load_end_tension_n.max())
    sizes = diameters_m(pull_n, factor * largest_n)
    metres = design.number * design.length_m
    rows = [(name, d, MATERIALS[name].mass_kg_m(d) * metres) for name, d in sizes.items()]
    return sorted(rows, key=lambda row: row[2])
