"""Air that rotors move: downwash on what is below them, and the ground's effect on their thrust.

Momentum theory gives the wake of a rotor of thrust T and radius R: v = sqrt(T / (2 rho pi R^2)) at
its disc, 2 v below (J. G. Leishman, Principles of Helicopter Aerodynamics, 2nd ed. 2006, sec. 2.2).
Further down it is a turbulent jet, as below real quadrotors (L. Bauersfeld et al., RA-L 2025,
arXiv:2403.13321): a Gaussian that widens linearly and carries the same momentum T at any distance,

    u^2 = 2 T / (pi rho b^2) exp(-2 r^2 / b^2),   b^2 = R^2 + (growth z)^2,

so that u = 2 v in its middle near the rotor. Near the disc it builds up as on the axis of a vortex
tube, (1 + z / sqrt(z^2 + R^2)) / 2 of that. Wakes that meet add up in u^2, their momentum
(H. Reichardt's hypothesis). A wake leaves along the sum of 2 v and the air that meets the rotor.

What acts within a control period is taken at its begin, and turns with the body.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from musls_description.config.errors import ConfigError
from musls_description.config.registry import (
    AnyOf,
    Registry,
    UserCodeError,
    file_of,
    requires,
    user_code,
)
from musls_description.config.schema import Fraction, NonNegative, Number, Positive, spec
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import compiled
from musls_description.numerics.vectors import (
    add,
    add_scaled,
    body_z_in_world,
    cross,
    dot,
    elementwise,
    increase,
    norm,
    put,
    rotate_back_by,
    rotate_by,
    scale,
    sub,
    unit,
)
from musls_description.system.drone import Box, Drone, impossible_radius, propeller_radius_m
from musls_description.system.obstacles import SOLID, depth_and_normal, ground_at
from musls_description.system.slung_system import RigSystem
from musls_sim.plants.interface import PlantInputs, PlantState, RotorEfficiency
from musls_sim.plants.rigid_body import Records, rotor_records

AERODYNAMICS: Registry[Any] = Registry(
    "aerodynamic model",
    "musls.aerodynamics",
    {},
    requires("build", base=lambda: AerodynamicModel),
)
"""Specifications by kind: classes made with `spec` derived from `AerodynamicModel`."""

AnyAerodynamics = Annotated[Any, AnyOf(AERODYNAMICS)]
"""Type of an entry of a scenario's `aerodynamics`."""


class Air:
    """Inputs of aerodynamic models. Row 0 of bodies is the load, row i drone i.

    Attributes:
        state: True motion and rotor speeds; the memory stays the same.
        wind_enu_m_s: Velocity of the air, world, (3,); the memory stays the same.
        rotors: Constants of the rotors with what failures left of their thrust, (n, n_rotors).
        grounds: Solids that are ground, records of `SOLID`; none where it is flat, at z = 0.
    """

    def __init__(
        self,
        system: RigSystem,
        state: PlantState,
        wind_enu_m_s: Array,
        grounds: Records | None = None,
    ) -> None:
        self.grounds = np.zeros(0, SOLID) if grounds is None else grounds
        self.system = system
        self.state = state
        self.wind_enu_m_s = wind_enu_m_s
        self.rotors = rotor_records(system)
        self._whole: Array = self.rotors["thrust"].copy()

    @property
    def thrust_n(self) -> Array:
        """Thrust of each rotor in free air, (n, n_rotors)."""
        thrust: Array = self.rotors["thrust"] * self.state.rotor_speed_rad_s**2
        return thrust

    def apply(self, change: RotorEfficiency) -> None:
        """Scale the effect of a damaged rotor."""
        self.rotors["thrust"][change.rows] = change.efficiency * self._whole[change.rows]


AddWrench = Callable[[Array], None]
"""Adds moment about the centre of mass and force of each body, world, to (1 + n, 6)."""


@spec
class AerodynamicModel:
    """Base of aerodynamic models; a `spec` class derived from it needs `kind` and `build`.

    Attributes:
        kind: Kind of the model.
    """

    kind: str

    @abstractmethod
    def build(self, air: Air) -> AddWrench:
        """Make the function that is called at the begin of each control period."""
        raise NotImplementedError


class CompiledModel(AerodynamicModel):
    """Base of those that compiled code does, in the bodies' frames."""

    def build(self, air: Air) -> Any:
        """Make what its stage works on, by the names in `WORLD`."""
        raise NotImplementedError


class Aerodynamics:
    """Inputs of a scenario's aerodynamic models; models in Python are a stage of the session.

    Attributes:
        arrays: Arrays of the models in compiled code, by their names in `WORLD`.
        kinds: Theirs, in the scenario's order.
        own: The others.
    """

    def __init__(self, models: Sequence[AerodynamicModel], air: Air, inputs: PlantInputs) -> None:
        self._target = inputs.wrench_enu
        self.wrench_enu = np.zeros_like(inputs.wrench_enu)
        self.arrays: dict[str, Records] = {}
        compiled = [model for model in models if isinstance(model, CompiledModel)]
        self.kinds = [model.kind for model in compiled]
        for model in compiled:
            if self.kinds.count(model.kind) > 1:
                raise ConfigError(f"aerodynamics: {model.kind} is there twice, must be once")
            self.arrays |= {"air_rotors": air.rotors} | model.build(air)
        self.own = [model for model in models if not isinstance(model, CompiledModel)]
        self._models: list[tuple[type, Callable[[Array], None]]] = []
        for own in self.own:
            with user_code(lambda: " before the flight", type(own), "build"):
                self._models.append((type(own), own.build(air)))

    def step(self, tick: int) -> None:
        """Replace the forces of the last period by those of this one."""
        self._target -= self.wrench_enu
        self.wrench_enu.fill(0.0)
        for kind, add_wrench in self._models:
            with user_code(lambda: ": its function", kind, "build"):
                add_wrench(self.wrench_enu)
            if not np.isfinite(self.wrench_enu.sum()):
                raise UserCodeError(f"{file_of(kind)}: {kind.__name__} gave a force that is NaN")
        self._target += self.wrench_enu


# ---------- Downwash

DragCoefficient = Annotated[float, Field(ge=0.0, le=2.0, allow_inf_nan=False), Number]
"""Drag coefficient, at most 2: a surface that turns a wake by 90 degrees takes all of its
momentum."""

LIFT_SLOPE = 5.7
"""Lift slope of a blade's profile [1/rad]."""

CELLS = 16
"""Most pieces along an edge of a body's box, each with the air at its middle."""

WAKE = np.dtype(
    [
        ("hub", float, 3),  # world
        ("axis", float, 3),  # where the air goes, world
        ("radius", float),
        ("momentum", float),  # 2 T / (pi rho)
        ("coefficient", float),  # of thrust in free air, T / (rho pi R^4 omega^2)
        ("drone", np.int64),  # row of its body
    ],
    align=True,
)

DOWNWASH = np.dtype(
    [
        ("growth", float),
        ("slope", float),  # of the blades' lift times solidity / 4; 0 for no loss of thrust
        ("density", float),
        ("cells", np.int64),
    ],
    align=True,
)

NEAR_GROUND = np.dtype([("radius", float), ("body_lift", float)], align=True)

CELL = np.dtype(
    [
        ("body", np.int64),
        ("reach", float),  # from the body's centre of mass to its farthest cell
        ("place", float, 3),  # in its frame
        ("drag", float, 3),  # rho C A / 2 along its axes
    ],
    align=True,
)


def _radius_m(drone: Drone, given_m: float | None) -> float:
    """Radius of a drone's propellers; one that no propeller can have is refused."""
    if given_m is None:
        return propeller_radius_m(drone)
    if wrong := impossible_radius(drone, given_m):
        raise ConfigError(f"aerodynamics: propeller_radius_m = {given_m:g}: {wrong}")
    return given_m


@AERODYNAMICS.register("downwash")
@spec
class Downwash(CompiledModel):
    """Wakes of the rotors press on load and drones below, whose rotors give less thrust.

    A drone's own frame is left out (its thrust is measured with it), cables too. Bodies do not
    shade each other.

    Attributes:
        kind: "downwash".
        growth: Half-width of a wake (1/e) per distance; 0.113 are a half-width (1/2) of 0.094.
        load_drag: Drag coefficient of the load's box: 2 would turn the wake by 90 degrees.
        drone_drag: Drag coefficient of the drones' boxes, which are mostly empty.
        solidity: Blade area over disc area of rotors that lose thrust in another drone's wake; 0
            for no loss.
        propeller_radius_m: Left out, it follows from the propulsion or the room for the rotors.
        air_density_kg_m3: Density of the air.
    """

    kind: Literal["downwash"] = "downwash"
    growth: Fraction = 0.113
    load_drag: DragCoefficient = 1.1
    drone_drag: DragCoefficient = 0.3
    solidity: Fraction = 0.1
    propeller_radius_m: Positive | None = None
    air_density_kg_m3: Positive = 1.225

    def build(self, air: Air) -> Any:
        """Make what its stage works on, by the names in `WORLD`; see `CompiledModel`."""
        system = air.system
        rho = self.air_density_kg_m3
        wakes = np.zeros(air.rotors.shape, WAKE)
        for i, drone in enumerate(system.drones):
            wakes[i]["radius"] = _radius_m(drone, self.propeller_radius_m)
            wakes[i]["drone"] = i + 1
        piece_m = float(wakes["radius"].min()) / 2.0 if wakes.size else 1.0
        boxes = [(i, d.collision, self.drone_drag) for i, d in enumerate(system.drones, 1)]
        if system.load is not None:
            boxes.append((0, system.load.collision, self.load_drag))
        cells = np.concatenate([_cells(i, box, rho * drag, piece_m) for i, box, drag in boxes])
        wakes["coefficient"] = air.rotors["thrust"] / (rho * np.pi * wakes["radius"] ** 4)
        slope = self.solidity * LIFT_SLOPE / 4.0
        law = np.array([(self.growth, slope, rho, len(cells))], DOWNWASH)
        return {"downwash": law, "wakes": wakes, "wake_cells": cells}


def _cells(body: int, box: Box, rho_drag: float, piece_m: float) -> Records:
    """A body's box in pieces along x and y, seen from all sides."""
    size = np.array(box.size_m)
    x, y = np.clip(np.ceil(size[:2] / piece_m), 1, CELLS).astype(int)
    cells = np.zeros((x, y), CELL)
    cells["body"] = body
    cells["place"] = box.center_m
    cells["place"][..., 0] += (((np.arange(x) + 0.5) / x - 0.5) * size[0])[:, None]
    cells["place"][..., 1] += ((np.arange(y) + 0.5) / y - 0.5) * size[1]
    cells["drag"] = 0.5 * rho_drag * np.prod(size) / size / (x * y)
    cells["reach"] = np.linalg.norm(cells["place"], axis=-1).max()
    return cells.reshape(-1)


@compiled()
def shed_wakes(motion, rotors, speed, wind, density, wakes):
    """Write hub, axis and momentum of all rotors' wakes, (n, n_rotors)."""
    for i in range(wakes.shape[0]):
        body = motion[i + 1]
        q = body[6:10]
        down = scale(-1.0, body_z_in_world(q))
        for j in range(wakes.shape[1]):
            rotor = rotors[i, j]
            wake = wakes[i, j]
            put(wake.hub, add(body, rotate_by(q, rotor.place)))
            wake.momentum = 2.0 * rotor.thrust * speed[i, j] ** 2 / (np.pi * density)
            turn = rotate_by(q, cross(body[10:13], rotor.place))
            meets = sub(wind, add(body[3:6], turn))
            axis, _ = unit(add_scaled(meets, math.sqrt(wake.momentum) / wake.radius, down))
            put(wake.axis, axis)


FAINT = 20.0
"""Exponent 2 r^2 / b^2 beyond which a wake has less than 5e-5 of its speed and is left out."""


@compiled()
def find_wakes(wakes, body, place, reach, growth, near):
    """Note the other drones' wakes that come within `reach` of a place; returns their number.

    `body`: row of what is there, whose own wakes are left out; `near`: indices, written.
    """
    count = 0
    for k in range(len(wakes)):
        wake = wakes[k]
        if wake.drone == body:
            continue
        way = sub(place, wake.hub)
        z = dot(way, wake.axis)
        r2 = wake.radius * wake.radius
        b2 = r2 + (growth * max(z + reach, 0.0)) ** 2
        off = max(math.sqrt(max(dot(way, way) - z * z, 0.0)) - reach, 0.0)
        if 2.0 * off * off <= FAINT * b2:
            near[count] = k
            count += 1
    return count


@compiled()
def wake_velocity(wakes, near, point, growth):
    """Velocity of the wakes of some indices at a point, world [m/s]."""
    flux = 0.0
    way = (0.0, 0.0, 0.0)
    for index in near:
        wake = wakes[index]
        reach = sub(point, wake.hub)
        z = dot(reach, wake.axis)
        r2 = wake.radius * wake.radius
        b2 = r2 + (growth * max(z, 0.0)) ** 2
        off2 = dot(reach, reach) - z * z
        if 2.0 * off2 > FAINT * b2:
            continue
        share = 0.5 * (1.0 + z / math.sqrt(z * z + r2))
        u2 = wake.momentum / b2 * math.exp(-2.0 * off2 / b2) * share * share
        flux += u2
        way = add_scaled(way, u2, wake.axis)
    size = norm(way)
    return scale(math.sqrt(flux) / size, way) if size > 0.0 else way


@compiled()
def add_downwash(motion, rotors, speed, wind, law, wakes, cells, wrench):
    """Add moments and forces of wakes on load and drones, bodies' frames, (1 + n, 6).

    `rotors`, `speed`, `wakes`: (n, n_rotors); `law`: of `DOWNWASH`; `cells`: of `CELL`.
    """
    shed_wakes(motion, rotors, speed, wind, law.density, wakes)
    press_on_bodies(motion, cells, wakes.reshape(-1), wind, law.growth, wrench)
    if law.slope > 0.0:
        lose_thrust(motion, rotors, speed, law, wakes, wrench)


@compiled()
def press_on_bodies(motion, cells, wakes, wind, growth, wrench):
    """Add the drag of all cells in the wakes minus their drag without wakes."""
    near = np.empty(len(wakes), np.int64)
    row = -1
    count = 0
    for k in range(len(cells)):
        cell = cells[k]
        body = motion[cell.body]
        if cell.body != row:
            row = cell.body
            count = find_wakes(wakes, row, body, cell.reach, growth, near)
        if count == 0:
            continue
        q = body[6:10]
        wake = wake_velocity(wakes, near[:count], add(body, rotate_by(q, cell.place)), growth)
        turn = rotate_by(q, cross(body[10:13], cell.place))
        before = rotate_back_by(q, sub(wind, add(body[3:6], turn)))
        now = add(before, rotate_back_by(q, wake))
        more = sub(scale(norm(now), now), scale(norm(before), before))
        force = elementwise(cell.drag, more)
        increase(wrench[cell.body, 3:], force)
        increase(wrench[cell.body, :3], cross(cell.place, force))


@compiled()
def lose_thrust(motion, rotors, speed, law, wakes, wrench):
    """Take the thrust that rotors lose in others' wakes.

    Blade elements of ideal twist against momentum (Leishman, sec. 3.3): with s = solidity times
    lift slope / 4, inflow ratios l of the rotor itself and w of the wake,

        C = s (theta - l - w) = 2 l (l + w),   theta from C and w = 0 in free air.
    """
    every = wakes.reshape(-1)
    slope = law.slope
    near = np.empty(len(every), np.int64)
    for i in range(wakes.shape[0]):
        up = body_z_in_world(motion[i + 1, 6:10])
        reach = 0.0
        for j in range(wakes.shape[1]):
            reach = max(reach, norm(rotors[i, j].place))
        count = find_wakes(every, i + 1, motion[i + 1], reach, law.growth, near)
        for j in range(wakes.shape[1] if count > 0 else 0):
            wake = wakes[i, j]
            down = -dot(up, wake_velocity(every, near[:count], wake.hub, law.growth))
            if down > 0.0 and speed[i, j] > 0.0:
                free = math.sqrt(0.5 * wake.coefficient)
                theta = wake.coefficient / slope + free
                w = min(down / (speed[i, j] * wake.radius), theta)
                b = 2.0 * w + slope
                inflow = 0.25 * (math.sqrt(b * b + 8.0 * slope * (theta - w)) - b)
                share = 2.0 * inflow * (inflow + w) / wake.coefficient
                add_thrust(rotors[i, j], speed[i, j], share - 1.0, wrench[i + 1])


@compiled()
def add_thrust(rotor, speed, share, wrench):
    """Add a share of a rotor's thrust to its drone's moment and force, body frame, (6,)."""
    force = (0.0, 0.0, share * rotor.thrust * speed * speed)
    increase(wrench[3:], force)
    increase(wrench[:3], cross(rotor.place, force))


# ---------- Ground effect


@AERODYNAMICS.register("ground_effect")
@spec
class GroundEffect(CompiledModel):
    """Rotors near the ground give more thrust.

    Each rotor has an image below the ground, which takes from the air that it moves (I. Cheeseman
    and W. Bennett, ARC R&M 3021, 1955); those of the drone's other rotors, and the fountain of air
    between them that lifts the frame, come with P. Sanchez-Cuevas et al., Int. J. Aerospace Eng.
    2017, 1823056. Of a single rotor at height z that is T / T_free = 1 / (1 - (R / 4z)^2).

    The five terms agree with two public programs that cite the paper, whose own text was not at
    hand; the fountain's strength 2 and its length b, the distance of opposite rotors, with one of
    them (the other has 0.5 and the width of the body).

    Attributes:
        kind: "ground_effect".
        body_lift: Strength of the fountain, 2 for the quadrotor measured there; 0 for none.
        propeller_radius_m: Left out, it follows from the propulsion or the room for the rotors.
    """

    kind: Literal["ground_effect"] = "ground_effect"
    body_lift: NonNegative = 2.0
    propeller_radius_m: Positive | None = None

    def build(self, air: Air) -> Any:
        """Make what its stage works on, by the names in `WORLD`; see `CompiledModel`."""
        radius_m = [_radius_m(drone, self.propeller_radius_m) for drone in air.system.drones]
        near = np.array([(r, self.body_lift) for r in radius_m], NEAR_GROUND)
        return {"near_ground": near, "grounds": air.grounds}


@compiled()
def from_image(height, aside2):
    """Upward share of what an image so far below and aside gives, over the square of the way."""
    far2 = aside2 + height * height
    return height / (far2 * math.sqrt(far2))


@compiled()
def add_ground_effect(motion, rotors, speed, near_ground, grounds, wrench):
    """Add moments and forces of the ground on drones, bodies' frames, (1 + n, 6).

    With the sum h of the heights of a rotor and of another one at a distance d, the image of the
    other takes R^2 h / (4 sqrt(d^2 + h^2)^3) of the air. Below half a radius it stays as there.
    Heights count along the normal of the ground below the drone.
    `rotors`, `speed`: (n, n_rotors); `near_ground`: (n,) of `NEAR_GROUND`; `grounds`: see `Air`.
    """
    for i in range(len(near_ground)):
        q = motion[i + 1, 6:10]
        radius = near_ground[i].radius
        z = motion[i + 1, 2]
        normal = (0.0, 0.0, 1.0)
        if len(grounds) > 0:
            x = motion[i + 1, 0]
            y = motion[i + 1, 1]
            height, which = ground_at(grounds, x, y)
            if which < 0:
                continue
            normal = depth_and_normal(grounds[which], (x, y, height))[1]
            z = (z - height) * normal[2]
        up = rotate_back_by(q, normal)
        r2 = radius * radius
        for j in range(speed.shape[1]):
            hub = rotors[i, j].place
            above = dot(up, hub)
            share = 0.0
            widest = 0.0
            for k in range(speed.shape[1]):
                other = rotors[i, k].place
                way = sub(hub, other)
                aside = add_scaled(way, -dot(up, way), up)
                d2 = dot(aside, aside)
                h = max(2.0 * z + above + dot(up, other), radius)
                share += 0.25 * r2 * from_image(h, d2)
                widest = max(widest, d2)
            if widest > 0.0:
                h = max(2.0 * z + 2.0 * above, radius)
                share += r2 * from_image(h, widest) * near_ground[i].body_lift
            more = 1.0 / (1.0 - min(share, 0.5)) - 1.0
            add_thrust(rotors[i, j], speed[i, j], more, wrench[i + 1])
