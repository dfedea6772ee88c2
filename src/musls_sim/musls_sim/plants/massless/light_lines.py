"""Load and drones on inextensible massless cables, the plant `cable_model: massless`."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from musls_control.estimate import BodyMotion
from musls_description.config.errors import ConfigError
from musls_description.hanging.rig_places import Incidence
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import CompiledStage
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.numerics.rotations import (
    from_rotation_vector,
    matrix,
    product,
    rotation_vector,
)
from musls_description.system.obstacles import AnyObstacle, ground_heights
from musls_description.system.slung_system import RigSystem, slung_system
from musls_sim.plants.drone_paths import PoseEnds
from musls_sim.plants.elastic.rests import hung_plant
from musls_sim.plants.interface import (
    SPEED_LIMIT_M_S,
    AttachHook,
    Change,
    CutCable,
    EnergyAudit,
    EventRecord,
    LocalState,
    Plant,
    PlantInputs,
    PlantSetup,
    PlantState,
    PrescribedMotion,
    ReleaseHook,
    SimulationDiverged,
    given_motion,
    step_s,
)
from musls_sim.plants.massless.records import LAYOUT, MAX_EVENTS, SLACKENED, build_records
from musls_sim.plants.massless.step import move_plant
from musls_sim.plants.trim import trim_speeds_rad_s
from musls_sim.specs.physics import CONTROL_PERIOD_S

Records = NDArray[np.void]

ENDLESS_M = 1e6
"""Length of a cable that is not held at both ends."""

EVENT_KINDS = ("cable_slack", "cable_taut", "cable_impact")
"""Kinds of events, by their number in the records."""

UP = np.array([0.0, 0.0, 1.0])

REACH_M = 1e-6
"""Largest distance of a cable's ends beyond its length at the start."""


class LightLinesPlant(Plant):
    """Load and drones joined by cables or rods without mass, see `interface.Plant`.

    Attributes:
        moving: Records of what is integrated: load and drones, or the one body that they make.
    """

    system: RigSystem
    layout = LAYOUT
    shape_table = "records", "bodies"
    moving: Records

    def __init__(
        self,
        system: RigSystem,
        start: BodyMotion,
        *,
        held: Collection[int] = (),
        physics_step_s: float | None = None,
        gravity_m_s2: float = STANDARD_GRAVITY_M_S2,
        ground_height_enu_m: float | None = 0.0,
        rotor_speed_rad_s: Array | None = None,
        restitution: float = 0.0,
        obstacles: Sequence[AnyObstacle] = (),
    ) -> None:
        """Build the records in the start, of load, drones and anchors.

        `held` are the anchors, from 1, that do not move. The longest time step in the air is 4 ms
        by default. Rotor speeds, (n_drones, n_rotors), are 0 by default; a ground height of None
        means no ground. `restitution` is the share of the separation rate with which a cable's ends
        come back after an impact, from 0 to 1.
        """
        super().__init__(system, physics_step_s or CONTROL_PERIOD_S, gravity_m_s2)
        self.memory, self.records = build_records(
            system,
            start,
            held=held,
            gravity_m_s2=gravity_m_s2,
            ground_height_enu_m=ground_height_enu_m,
            step_s=self.physics_step_s,
            restitution=restitution,
            obstacles=obstacles,
        )
        t = self.records
        self.record = t.system
        self.rotors = t.rotors
        self.moving = t.bodies
        if rotor_speed_rad_s is not None:
            t.speed[:] = rotor_speed_rad_s
        t.end_speed[:] = t.speed
        n = system.n_drones
        self.state = PlantState(
            t.shown[: 1 + n],
            t.speed,
            t.force,
            t.cables["peak"],
            t.shown[1 + n :],
            np.zeros((len(system.anchors), 6)),
            np.array([cable.length_m for cable in system.cables]),
        )
        self._ground = ground_height_enu_m
        uneven = ground_height_enu_m is None or t.solids["ground"].sum() > 1
        self._grounds = t.solids if uneven else None
        self._begin(start)

    def _begin(self, start: BodyMotion) -> None:
        """Find tensions and energy of the start; a plant of a stiff structure joins it first."""
        self._find_forces()

    def _find_forces(self) -> None:
        self._advance(PlantInputs.zeros(self.system), 0.0)
        self.forget_inputs()
        self._start_j = self.energy_j

    def set_rotor_speeds(self, speed_rad_s: Array) -> None:
        """Set the rotor speeds, (n_drones, n_rotors), and find the forces of the start again.

        See `interface.Plant`.
        """
        super().set_rotor_speeds(speed_rad_s)
        self.records.end_speed[:] = speed_rad_s
        self._find_forces()

    @property
    def refined_periods(self) -> int:
        """Periods with an event or with steps shorter than the usual."""
        return int(self.records.system[0]["refined"])

    def _advance(self, inputs: PlantInputs, period_s: float) -> int:
        """Advance a time with the inputs held; returns the number of events."""
        prescribed = self._motion is not None
        return self._checked(self._move(move_plant, inputs, period=period_s, prescribed=prescribed))

    def _checked(self, count: int) -> int:
        """Refuse to go on after a period that has failed (-1)."""
        if count < 0:
            raise SimulationDiverged(
                f"simulation diverged at {self.time_s:.3f} s: a body moves faster than "
                f"{SPEED_LIMIT_M_S:g} m/s, or turns too fast to be followed; check sizes, rotor "
                "commands, wind and forces"
            )
        return int(count)

    def account(self, verdict: int, inputs: PlantInputs, periods: int = 1) -> None:
        """See `interface.Plant.account`; the verdict is the number of events, or -1."""
        self._periods += periods - 1
        if self._checked(verdict):
            self._tell(verdict)
        self._periods += 1

    def _tell(self, count: int) -> None:
        """Record the events of the period; rods have none."""

    def apply(self, change: Change) -> None:
        """Change the system between two periods, see `interface.Plant.apply`."""
        super().apply(change)
        self.forget_inputs()

    def local_state(self) -> LocalState:
        """Coordinates around the present state, for linear models; see `interface.Plant`."""
        slung_system(self.system, "linear model")
        return LineState(self)

    def forget_inputs(self) -> None:
        """Check in the next step which cables are taut: something was changed from outside."""
        self.records.system["wind"] = np.nan

    @property
    def energy_j(self) -> float:
        """Kinetic and potential energy of what moves by itself [J]."""
        free = self.moving[self.moving["free"] != 0]
        mass = free["mass"]
        y = free["state"]
        kinetic = mass @ np.sum(y["velocity"] ** 2, axis=1)
        kinetic += np.einsum("ni,nij,nj", y["omega"], free["inertia"], y["omega"])
        return float(0.5 * kinetic + self.gravity_m_s2 * mass @ y["position"][:, 2])

    @property
    def audit(self) -> EnergyAudit:
        """Work, losses and energies since the start."""
        world = self.records.system[0]
        return EnergyAudit(
            work_j=float(world["work"]),
            absolute_work_j=float(world["absolute_work"]),
            loss_j=float(world["loss"] + world["impact_loss"]),
            start_j=self._start_j,
            energy_j=self.energy_j,
        )


class MasslessPlant(LightLinesPlant):
    """Cables without mass, stretch and bending between load and drones, see `interface.Plant`.

    Of the cables only length and ends count. See `docs/massless.md`.

    Attributes:
        happened: Cables that went slack or taut, see `interface.Plant`.
        held_by: Holder of each cable: "both" ends, the "drone", the "load", or "nobody", (n,).
    """

    cable_model = "massless"

    def _begin(self, start: BodyMotion) -> None:
        self._rows = Incidence.of(self.system).row
        self.held_by = ["both"] * self.system.n_cables
        self._paths: PoseEnds | None = None
        super()._begin(start)
        gaps = self.records.cables["gap"]
        worst = int(gaps.argmax())
        if gaps[worst] > REACH_M:
            length = self.system.cables[worst].length_m
            ends = [end.body for end in self.system.ends(worst)]
            one, other = ("the load" if name == "load" else name for name in ends)
            raise ConfigError(
                f"cable_{worst + 1} of {length:g} m does not reach over "
                f"{length + gaps[worst]:.6g} m from {one} to {other}"
            )

    @property
    def compiled_step(self) -> CompiledStage | None:
        """Compiled function of a `STEP` that does `step` but for `account`; None: Python is needed.

        See `interface.Plant`.
        """
        return move_plant if self._motion is None and self._has(MasslessPlant.step) else None

    def step(self, inputs: PlantInputs) -> None:
        """Advance one control period, see `interface.Plant.step`."""
        if inputs.motion is not self._motion:
            self._prescribe(inputs.motion)
        if self._motion is None:
            count = self._advance(inputs, self.period_s)
        else:
            count = self._follow(inputs, self._motion)
        self.account(count, inputs)

    def _follow(self, inputs: PlantInputs, motion: PrescribedMotion) -> int:
        """One period with the drones on their paths."""
        assert self._paths is not None
        begin_s = self.time_s
        t = self.records
        drones = t.bodies[1:]
        drones["path"], drones["turning"], drones["attitude"] = self._paths.cubics(
            begin_s, begin_s + self.period_s
        )
        enu = inputs.wrench_enu
        if motion.load_wrench is not None:
            enu = enu.copy()
            enu[0] += motion.load_wrench(begin_s + self.period_s / 2)
        plant_inputs = PlantInputs(
            np.zeros_like(t.speed), inputs.wind_enu_m_s, inputs.wrench_body, enu
        )
        count = self._advance(plant_inputs, self.period_s)
        self.reaction.end_force_n[:] = t.cables["impulse"] / self.period_s
        vars(self.reaction.audit).update(vars(self.audit))
        return count

    def _prescribe(self, motion: PrescribedMotion | None) -> None:
        """Move the drones along given paths from now on, or let them fly again."""
        self._motion = motion
        free = motion is None
        self._paths = None if motion is None else PoseEnds(motion.pose)
        for body, drone in zip(self.records.bodies[1:], self.system.drones, strict=True):
            body["free"] = free
            body["inverse_mass"] = free / drone.mass_kg
            body["inverse_inertia"] = free * np.linalg.inv(np.array(drone.inertia_kg_m2))
        self.forget_inputs()
        for name in ("work", "loss", "absolute_work", "impact_loss"):
            self.records.system[name] = 0.0
        self._start_j = self.energy_j

    def _tell(self, count: int) -> None:
        """Report the events of the period as text."""
        begin_s = self.time_s
        for event in self.records.events[: min(count, MAX_EVENTS)]:
            cable = f"cable_{event['cable'] + 1}"
            if event["kind"] != SLACKENED:
                cable += f": impulse {event['impulse']:.4g} N s, {event['loss']:.4g} J lost"
            time_s = begin_s + float(event["time"])
            self.happened.append(EventRecord(time_s, EVENT_KINDS[event["kind"]], cable))

    # ------------------------------------------------- cables that are cut, let go and hooked up
    #
    # Of a cable without mass that is not held at both ends nothing is left but its picture: it
    # pulls at nothing. In the records it becomes so long that it is never taut. A hook that is open
    # at the load hangs straight below the drone, wherever that goes.

    def _change_cable(self, change: CutCable | ReleaseHook | AttachHook) -> None:
        i = change.cable - 1
        cables = self.records.cables
        holder = self.held_by[i]
        if isinstance(change, AttachHook):
            if holder == "drone":
                cables["length"][i] = self.system.cables[i].length_m
                self.held_by[i] = "both"
            return
        for field, value in (("length", ENDLESS_M), ("taut", 0), ("tension", 0.0)):
            cables[field][i] = value
        next_holder = "drone"
        if isinstance(change, CutCable):
            next_holder = "nobody"
        elif change.at == "drone":
            next_holder = "load"
        self.held_by[i] = next_holder if holder in ("both", next_holder) else "nobody"

    def hook_is_open(self, cable: int) -> bool:
        """Whether a cable (from 0) has let go of the load; see `interface.Plant`."""
        return self.held_by[cable] == "drone"

    def hook_gap(self, cable: int) -> tuple[float, float]:
        """See `interface.Plant`: the hook hangs straight below the drone.

        Infinitely far as long as the cable does not reach from the drone.
        """
        low, high = self._ends(cable)
        length = self.system.cables[cable].length_m
        miss = float(np.linalg.norm(high - [0.0, 0.0, length] - low))
        if np.linalg.norm(high - low) > length:
            miss = np.inf
        bodies = self.records.bodies[self._rows[cable]]
        velocities = [
            body["velocity"] + np.cross(body["omega"], end - body["position"])
            for body, end in zip(bodies, (low, high), strict=True)
        ]
        return miss, float(np.linalg.norm(velocities[1] - velocities[0]))

    def _ends(self, cable: int) -> tuple[Array, Array]:
        """Places of a cable's ends on load and drone, world, (3,) each."""
        points = self.records.cables[cable]
        first, second = self._rows[cable]
        load = self.records.bodies[..., first]
        drone = self.records.bodies[..., second]
        return (
            load["position"] + load["rotation"] @ points["load_point"],
            drone["position"] + drone["rotation"] @ points["drone_point"],
        )

    # --------------------------------------------------------------------------- what it shows

    def cable_nodes_enu_m(self, index: int) -> Array:
        """Points of cable `index` (from 0) from the load to the drone, (links + 1, 3).

        A massless line has no shape of its own while it is slack; it is drawn hanging. One that is
        not held at both ends hangs from its drone, or lies as a point.
        """
        cable = self.system.cables[index]
        holder = self.held_by[index]
        points = cable.links + 1
        low, high = self._ends(index)
        if holder == "both":
            lines = hanging_line(low, high, cable.length_m, points, self._ground)
            if self._grounds is not None:
                _lay_on(self._grounds, lines)
            return lines
        top = low if holder == "load" else high
        along = np.linspace(cable.length_m if holder == "drone" else 0.0, 0.0, points)
        line: Array = top[..., None, :] - along[:, None] * UP
        return line

    @property
    def taut(self) -> Array:
        """Taut cables, (n,) of bool."""
        flags: Array = self.records.cables["taut"] != 0
        return flags


# ---------- Coordinates around a state


class LineState(LocalState):
    """Load, directions of the taut cables, drones; or the whole of a structure of rods.

    See `interface.LocalState`. A cable's direction turns about two axes across it, a drone about
    its own axes.
    """

    def __init__(self, plant: LightLinesPlant) -> None:
        self._plant = plant
        self._kept = plant.memory.copy()
        y = plant.moving["state"].copy()
        self._first = y
        self._free = len(y) - 1
        turns, places = (tuple(f"load {kind}_{axis}" for axis in "xyz") for kind in ("turn", "p"))
        cables = [f"cable_{k + 1} {axis}" for k in range(self._free) for axis in "ab"]
        drones = [f"drone_{k + 1} turn_{axis}" for k in range(self._free) for axis in "xyz"]
        self.names = (*turns, *places, *cables, *drones)
        if self._free:
            slack = np.flatnonzero(plant.records.cables["taut"] == 0)
            if len(slack):
                raise ConfigError(
                    f"linear model: cable_{slack[0] + 1} is slack at {plant.time_s:.3f} s; choose "
                    "a time at which all cables are taut"
                )
            along, _ = self._cables()
            level = np.cross(along, [[0.0, 1.0, 0.0]])  # a: about y, b: about x, for a cable that
            level /= np.linalg.norm(level, axis=1)[:, None]  # points up
            self._along = along
            self._axes = np.stack([np.cross(along, -level), level], axis=-1)  # (n, 3, 2)
        self._rates = np.zeros(len(self.names))
        self._rates = self.read()[1]

    def _arms(self) -> tuple[Array, Array, Array, Array]:
        """Arms of the cables' ends on load and drones and how fast they turn, (n, 3) each."""
        y = self._plant.moving["state"]
        cables = self._plant.records.cables
        turn = matrix(y["attitude"])
        omega = np.einsum("nij,nj->ni", turn, y["omega"])
        load = cables["load_point"] @ turn[0].T
        drone = np.einsum("nij,nj->ni", turn[1:], cables["drone_point"])
        return load, np.cross(omega[0], load), drone, np.cross(omega[1:], drone)

    def _cables(self) -> tuple[Array, Array]:
        """Directions of the cables from load to drone, and their rates, (n, 3) each."""
        y = self._plant.moving["state"]
        length = self._plant.records.cables["length"][:, None]
        load, load_rate, drone, drone_rate = self._arms()
        reach = y["position"][1:] + drone - y["position"][0] - load
        rate = y["velocity"][1:] + drone_rate - y["velocity"][0] - load_rate
        return reach / np.linalg.norm(reach, axis=1)[:, None], rate / length

    def move(self, shift: Array, rate_shift: Array) -> None:
        """Set the plant to the first state moved by these, (n,) each; rotors as they were.

        See `interface.LocalState`.
        """
        plant = self._plant
        n = self._free
        plant.memory[:] = self._kept
        y = plant.moving["state"]
        first = self._first
        rates = self._rates + rate_shift
        y["position"][0] = first["position"][0] + shift[3:6]
        y["velocity"][0] = rates[3:6]
        world = from_rotation_vector(shift[:3])
        y["attitude"][0] = product(world, first["attitude"][0])
        y["omega"][0] = matrix(y["attitude"][0]).T @ rates[:3]
        if n:
            turns = shift[6 + 2 * n :].reshape(n, 3)
            spins = rates[6 + 2 * n :].reshape(n, 3)
            y["attitude"][1:] = product(first["attitude"][1:], from_rotation_vector(turns))
            y["omega"][1:] = spins
            angles = np.einsum("nij,nj->ni", self._axes, shift[6 : 6 + 2 * n].reshape(n, 2))
            sweep = np.einsum("nij,nj->ni", self._axes, rates[6 : 6 + 2 * n].reshape(n, 2))
            rotation = matrix(from_rotation_vector(angles))
            along = np.einsum("nij,nj->ni", rotation, self._along)
            length = plant.records.cables["length"][:, None]
            load, load_rate, drone, drone_rate = self._arms()
            y["position"][1:] = y["position"][0] + load + length * along - drone
            swept = length * np.cross(sweep, along)
            y["velocity"][1:] = y["velocity"][0] + load_rate + swept - drone_rate
        plant.forget_inputs()

    def read(self) -> tuple[Array, Array]:
        """Coordinates and rates minus those of the first state, (n,) each.

        See `interface.LocalState`.
        """
        n = self._free
        y = self._plant.moving["state"]
        first = self._first
        back = first["attitude"] * [1.0, -1.0, -1.0, -1.0]
        shift = np.empty(len(self.names))
        rates = np.empty(len(self.names))
        shift[:3] = rotation_vector(product(y["attitude"][0], back[0]))
        shift[3:6] = y["position"][0] - first["position"][0]
        rates[:3] = matrix(y["attitude"][0]) @ y["omega"][0]
        rates[3:6] = y["velocity"][0]
        if n:
            along, rate = self._cables()
            across = np.cross(self._along, along)
            sine = np.linalg.norm(across, axis=1)
            angle = np.arctan2(sine, np.sum(self._along * along, axis=1))
            ratio = np.divide(angle, sine, out=np.ones(n), where=sine > 0.0)
            shift[6 : 6 + 2 * n] = np.einsum("nij,n,ni->nj", self._axes, ratio, across).ravel()
            # u x u' = w - u (u . w), and w has parts along the two axes alone
            tilt = np.einsum("nij,ni->nj", self._axes, along)
            gram = np.eye(2) - tilt[:, :, None] * tilt[:, None, :]
            right_side = np.einsum("nij,ni->nj", self._axes, np.cross(along, rate))
            sweep = np.linalg.solve(gram, right_side[..., None])
            rates[6 : 6 + 2 * n] = sweep.ravel()
            turns = rotation_vector(product(back[1:], y["attitude"][1:]))
            shift[6 + 2 * n :] = turns.ravel()
            rates[6 + 2 * n :] = y["omega"][1:].ravel()
        return shift, rates - self._rates

    def advance(self, inputs: PlantInputs, time_s: float) -> None:
        """Advance the plant by a short time, in one step, with the inputs held.

        See `interface.LocalState`.
        """
        self._plant._advance(inputs, time_s)


# ---------- The shape of a slack cable: that of a fine line

STRAIGHT = 1e-6
"""Share of the length by which the ends are closer, below which the line is drawn straight."""


def hanging_line(
    a_enu_m: Array, b_enu_m: Array, length_m: float, points: int, ground_enu_m: float | None
) -> Array:
    """Points of a line of a length from a to b, (points, 3): a catenary, cut off at the ground.

    The points are evenly spaced along the line where it hangs free. Ends may be those at many
    times, (times, 3), as then the lines, (times, points, 3).
    """
    span = b_enu_m - a_enu_m
    along = _shares(points)
    lines: Array = a_enu_m[..., None, :] + along[:, None] * span[..., None, :]
    slack = np.linalg.norm(span, axis=-1) <= length_m * (1.0 - STRAIGHT)
    for k in zip(*np.atleast_1d(slack).nonzero(), strict=True):
        at = k if slack.ndim else ()
        lines[at] = _slack_line(a_enu_m[at], b_enu_m[at], length_m, along, ground_enu_m)
    return lines


@functools.cache
def _shares(points: int) -> Array:
    """Shares of a length at which points are, (points,)."""
    return np.linspace(0.0, 1.0, points)


def _slack_line(
    a_enu_m: Array, b_enu_m: Array, length_m: float, along: Array, ground_enu_m: float | None
) -> Array:
    """Points of a slack line at shares of its length, (points, 3)."""
    span = b_enu_m - a_enu_m
    flat = float(np.hypot(*span[:2]))
    rise = float(span[2])
    if flat < 1e-3 * length_m:  # a loop straight down
        low = 0.5 * (length_m - rise)
        height = np.where(along * length_m < low, -along * length_m, along * length_m - 2.0 * low)
        line = a_enu_m + np.column_stack([along * span[0], along * span[1], height])
    else:
        # sqrt(l^2 - h^2) = 2 c sinh(w / 2 c) with w the width, h the rise: find 1 / c.
        ratio = np.sqrt(length_m**2 - rise**2) / flat
        c = 0.5 * flat / scipy.optimize.brentq(lambda s: math.sinh(s) - ratio * s, 1e-6, 20.0)
        middle = 0.5 * flat - c * np.arctanh(rise / length_m)
        begin = np.sinh(-middle / c)
        x = middle + c * np.arcsinh(begin + along * length_m / c)
        z = c * (np.cosh((x - middle) / c) - np.cosh(middle / c))
        line = a_enu_m + np.column_stack([x / flat * span[0], x / flat * span[1], z])
    if ground_enu_m is not None:
        line[:, 2] = np.maximum(line[:, 2], min(ground_enu_m, a_enu_m[2], b_enu_m[2]))
    shape: Array = line
    return shape


def _lay_on(grounds: Records, lines: Array) -> None:
    """Raise lines to ground that is not flat, but not beyond their straight way, (..., k, 3)."""
    low = lines[..., :1, 2]
    straight = low + _shares(lines.shape[-2]) * (lines[..., -1:, 2] - low)
    heights = ground_heights(grounds, np.ascontiguousarray(lines).reshape(-1, 3))
    floor = np.minimum(heights.reshape(lines.shape[:-1]), straight)
    lines[..., 2] = np.maximum(lines[..., 2], floor)


# ---------- The plant of a scenario


def build(setup: PlantSetup) -> MasslessPlant:
    """Inextensible cables without mass that go slack and snap taut; compiled, the fastest.

    They start on the ground, hanging in the air, or in a given state; rigs, whose anchors hang or
    do not move, in equilibrium, too.
    """
    physics = setup.physics
    system = setup.system
    if system.formation is None or system.winches:
        return _build_rig(setup)
    system = slung_system(system, "cable_model = massless")
    make = functools.partial(
        MasslessPlant,
        system,
        physics_step_s=step_s(system, physics, order=4),
        gravity_m_s2=physics.gravity_m_s2,
        restitution=physics.cable_restitution,
        ground_height_enu_m=setup.ground_height_enu_m,
        obstacles=setup.surfaces,
    )
    if setup.start.kind == "state":
        motion = given_motion(system, setup.start)
        try:
            return make(motion)
        except ConfigError as error:
            raise ConfigError(f"start.drones: {error}") from None
    hanging = setup.hanging
    assert hanging is not None  # such a flight begins in formation
    if setup.start.kind == "ground":
        twists = hanging.on_ground_twists
        standing = BodyMotion.of(*hanging.on_ground.bodies(system), twists[:, 3:])
        standing.omega_enu_rad_s = twists[:, :3]
        return make(standing)
    rest = hanging.on_massless_cables
    return make(BodyMotion.of(*rest.bodies), rotor_speed_rad_s=trim_speeds_rad_s(system, rest))


def _build_rig(setup: PlantSetup) -> MasslessPlant:
    """Several cables to a body, and free or fixed anchors."""
    system = setup.system
    physics = setup.physics
    held = setup.rig.held_anchors(system, "massless")
    start = setup.start
    speeds = None
    if start.kind == "equilibrium":
        rest = hung_plant(system, start, setup.rig, physics.gravity_m_s2, "massless")
        motion = BodyMotion(np.vstack([rest.state.motion, rest.state.anchor_motion]))
        speeds = rest.state.rotor_speed_rad_s
    else:
        moving = given_motion(system, start)
        motion = BodyMotion.zeros(1 + system.n_drones + len(system.anchors))
        motion.data[: 1 + system.n_drones] = moving.data
        for row, anchor in zip(motion.data[1 + system.n_drones :], system.anchors, strict=True):
            row[:3] = anchor.position_enu_m
            row[6:10] = anchor.orientation_wxyz
    try:
        return MasslessPlant(
            system,
            motion,
            held=held,
            physics_step_s=step_s(system, physics, order=4),
            gravity_m_s2=physics.gravity_m_s2,
            rotor_speed_rad_s=speeds,
            restitution=physics.cable_restitution,
            ground_height_enu_m=setup.ground_height_enu_m,
            obstacles=setup.surfaces,
        )
    except ConfigError as error:
        raise ConfigError(f"start.drones: {error}") from None
