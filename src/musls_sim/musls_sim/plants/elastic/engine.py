"""Steps a rig: one compiled call per control period, repeated with finer steps where needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Array, Records
from musls_description.numerics.layout import Tables
from musls_sim.plants.elastic.cables.breaks import Break, take_breaks
from musls_sim.plants.elastic.output import energies
from musls_sim.plants.elastic.rig import Rig, build_tables
from musls_sim.plants.elastic.state import SUMS
from musls_sim.plants.elastic.step import move_plant, remember_start
from musls_sim.plants.interface import (
    REFINEMENTS,
    SPEED_LIMIT_M_S,
    STEP,
    STEP_LAYOUT,
    SWING_ERROR,
    EventRecord,
    Plant,
    PlantInputs,
    SimulationDiverged,
)

# ---------- Drums that keep the stretch: cable lies on them as long as it was when it was wound

SAME_STRAIN = 1e-9
"""Difference below which cable is wound to the layer before."""


# A turn of angle y takes radius * y of stretched cable, radius * y / (1 + strain) of its free
# length. What was wound on last comes off first, with the strain that it was wound with. The
# compiled step knows one length of cable per angle and drum; here it is chosen anew before every
# control period, so that the strain on the drum changes from period to period.


class DrumMemory:
    """Strain of the cable on one drum, from the bottom to the top.

    Attributes:
        pieces: Angle at which each piece ends and its strain; the first one is on it from the
            start, without strain, the last one begins at the drum's present angle.
    """

    def __init__(self, tables: Tables, winch: int) -> None:
        """Begin with unstretched cable on the drum."""
        self._row = tables.shafts[winch]
        self._end = self._row["end"][0]
        self._tables = tables
        self._cable = tables.cables[self._row["cable"][0]]
        self._radius_m = float(self._row["radius"])
        self._wound_m = float(self._row["wound"])
        self._start_m = float(self._cable["start_length"])
        self.pieces: list[tuple[float, float]] = [(np.inf, 0.0)]
        self._angle = float(self._row["angle"])
        self._out_m = self._radius_m * self._angle
        self._strain = 0.0

    def begin(self, period_s: float) -> None:
        """Set the cable per angle of the coming period."""
        row = self._row
        y = self._angle
        speed = row["rate"] if row["by_rate"] == 0.0 else row["drive"].mean()
        turn = float(speed) * period_s
        self._strain = self._strain_at_exit()
        if turn > 0.0:
            ratio = self._paid_out(y + turn) / turn
        else:
            ratio = self._radius_m / (1.0 + self._strain)
        shift = self._out_m - ratio * y
        row["radius"] = ratio
        row["wound"] = self._wound_m - shift
        self._cable["start_length"] = self._start_m + shift

    def end(self) -> None:
        """Note what was wound on or came off."""
        y = float(self._row["angle"])
        if y > self._angle:
            self._out_m += self._paid_out(y)
            while self.pieces[-1][0] <= y:
                self.pieces.pop()
        elif y < self._angle:
            self._out_m += self._radius_m * (y - self._angle) / (1.0 + self._strain)
            if abs(self._strain - self.pieces[-1][1]) > SAME_STRAIN:
                self.pieces.append((self._angle, self._strain))
        self._angle = y

    def _paid_out(self, angle: float) -> float:
        """Free length that comes off from the present angle to a larger one [m]."""
        length = 0.0
        at = self._angle
        for end, strain in reversed(self.pieces):
            upto = min(end, angle)
            length += self._radius_m * (upto - at) / (1.0 + strain)
            at = upto
            if at >= angle:
                break
        return length

    def _strain_at_exit(self) -> float:
        """Strain of the segment at the drum; slack cable is wound on without strain."""
        first = self._cable["first_node"]
        count = self._cable["segments"]
        near = first + (count if self._end == 1 else 0)
        far = near + (-1 if self._end == 1 else 1)
        nodes = self._tables.nodes["position"]
        rest = float(self._cable["rest_length"] / count)
        return max(0.0, float(np.linalg.norm(nodes[near] - nodes[far])) / rest - 1.0)


NEAR_M = 1e-3
"""Steps towards an equilibrium that are smaller have to become smaller still."""

MOST_STEPS = 800
"""Towards an equilibrium; ropes that lie on smooth ground take some 300."""

Path = Callable[[float, float], Array]
"""Begin and end of a control period [s] to the motion there, (2, 18), see `bodies.follow`."""


class Engine(Plant):
    """State and step of a rig.

    Attributes:
        tables: All arrays.
        memory: Memory of all arrays.
        period_s: Time of a step.
        substeps: Steps in a period.
        paths: Paths of prescribed bodies by their index; a body without one stands still, None for
            one whose motion somebody writes into `tables.bodies["path"]` before each step.
        wrench_body: Inputs in the bodies' frames, moment and force, (n_bodies, 6).
        wrench_enu: Inputs in the world frame.
        command: Rotor commands, (n_drones, n_rotors) [rad/s].
        wind_enu_m_s: (3,).
        feed: Drives of the winches at begin and end of a period, linear between, (n_winches, 2):
            rate of free length of a feed [m/s], angular rate [rad/s] or torque [N m] of a drum. A
            positive drive pays out.
        brake_nm: Torque up to which the brakes hold, (n_winches,).
        drive_nm: Torques of the drives at the end of the step (force of a feed), positive pays out.
        angle_rad: Angles of winches, then pulleys, since the start (length out of a feed),
            (n_shafts,).
        rate_rad_s: Rates of winches, then pulleys, (n_shafts,).
        halted: Direction in which they cannot turn on, (n_shafts,). 1: no cable left on the winch
            (on the first side of the pulley); -1: reeled in (none left on the second side).
        breaks: Segments that broke or were cut so far, in the order of time.
        can_break: Whether any segment has a break force.
    """

    def __init__(
        self,
        rig: Rig,
        period_s: float = 0.004,
        substeps: int = 1,
        rotor_speed_rad_s: Array | None = None,
        accuracy: float = 0.0,
    ) -> None:
        """Build the tables and find the accelerations of the start; rotors rest by default.

        `accuracy`: `physics.accuracy`, for which steps become shorter; 0 for never.
        """
        self.rig = rig
        self.memory, self.tables = build_tables(rig)
        self.tables.system["turn2"] = accuracy / SWING_ERROR
        if rotor_speed_rad_s is not None:
            self.tables.speed[:] = rotor_speed_rad_s
        self.period_s = period_s
        self.substeps = substeps
        self.paths: dict[int, Path | None] = {}
        self.wrench_body = self.tables.wrench_body
        self.wrench_enu = self.tables.wrench_enu
        self.command = self.tables.command
        self.wind_enu_m_s = self.tables.system["wind"][0]
        shafts = self.tables.shafts
        n = len(rig.winches)
        self.feed = shafts["drive"][:n]
        self.brake_nm = shafts["brake"][:n]
        self.drive_nm = shafts["torque"][:n]
        self.halted = shafts["halted"]
        self.angle_rad = shafts["angle"]
        self.rate_rad_s = shafts["rate"]
        self.breaks: list[Break] = []
        self.can_break = bool(np.isfinite(self.tables.segments["break_force"]).any())
        self.tables.system["can_break"][0] = float(self.can_break)
        self._memories = [
            DrumMemory(self.tables, w) for w, winch in enumerate(rig.winches) if winch.keeps_stretch
        ]
        self.record = self.tables.system
        self.rotors = self.tables.rotors
        self._watch_prescribed()
        remember_start(self.address)
        self.restart()

    @property
    def refined_periods(self) -> int:
        """Periods that needed finer steps than the usual."""
        return int(self.tables.system["refined"][0])

    def restart(self) -> None:
        """Find the accelerations again after the state or the system was changed from outside."""
        self._find_accelerations("for this start")
        self.start_energy_j = float(energies(self.tables).sum())
        self.tables.system["sums"] = np.zeros(1, SUMS)

    def _watch_prescribed(self) -> None:
        """Note what of the tables belongs to the paths of prescribed bodies."""
        self._moved = []
        for b, body in enumerate(self.rig.bodies):
            if body.prescribed:
                p = self.tables.bodies[b]
                rotations = p["reference_rotation"], p["rotation"]
                self._moved.append((b, p["path"], p["position"], *rotations))

    def _set_paths(self, begin_s: float) -> None:
        for b, row, position, reference, rotation in self._moved:
            reference[:] = rotation
            if b not in self.paths:  # stands still
                row[:] = 0.0
                row[:, :3] = position
            elif (path := self.paths[b]) is not None:
                row[:] = path(begin_s, begin_s + self.period_s)

    def prescribe(self, bodies: set[int], paths: Mapping[int, Path | None]) -> None:
        """Choose which bodies are prescribed from now on."""
        old = self.tables
        for b, body in enumerate(self.rig.bodies):
            body.prescribed = b in bodies
        _, fresh = build_tables(self.rig)
        for b, body in enumerate(self.rig.bodies):
            if not body.prescribed:
                inverse = np.linalg.inv(np.asarray(body.inertia_kg_m2, float))
                old.bodies["inverse_inertia"][b] = inverse
        old.system["n_dofs"] = fresh.system["n_dofs"]
        for name in ("cables", "bodies", "shafts", "unknowns"):
            table = getattr(fresh, name)
            for field in table.dtype.names:
                if table.dtype[field].base.kind == "i":
                    getattr(old, name)[field] = table[field]
        old.bodies["shift"] = old.bodies["spin"] = 0.0
        self.paths = dict(paths)
        self._watch_prescribed()
        self._set_paths(self.time_s)

    def advance(self) -> None:
        """Advance one control period, with the inputs as they are."""
        self._set_paths(self.time_s)
        for memory in self._memories:
            memory.begin(self.period_s)
        self.account(self._advance(self.substeps))
        for memory in self._memories:
            memory.end()

    def account(self, verdict: int, inputs: PlantInputs | None = None, periods: int = 1) -> None:
        """See `interface.Plant.account`; a verdict above 0: segments parted, or winches stopped."""
        self._periods += periods - 1
        if verdict == -2:
            raise SimulationDiverged(
                f"simulation diverged at {self.time_s:.3f} s: a body moves faster than "
                f"{SPEED_LIMIT_M_S:g} m/s; check rotor commands, wind and forces"
            )
        if verdict < 0:
            raise SimulationDiverged(
                f"simulation diverged at {self.time_s:.3f} s: the elastic cables found no solution "
                f"with steps of {self.period_s / self.substeps / 2**REFINEMENTS:.2g} s"
            )
        if self.tables.system["can_break"][0]:
            self._note_breaks()
        self._periods += 1
        if verdict > 0:
            self._tell_stops()

    def _tell_stops(self) -> None:
        """Report the winches that came to a stop in the last period."""
        stops = self.tables.shafts["stopped"][: len(self.rig.winches)]
        for w in np.flatnonzero(stops).tolist():
            what = "no cable left" if stops[w] > 0.0 else "cable reeled in"
            event = EventRecord(self.time_s, "winch_stopped", f"winch_{w + 1}: {what}")
            self.happened.append(event)

    def cut(self, cable: int, segment: int) -> None:
        """Cut a segment of a cable, from 0 each. Both pieces move on; what is broken stays so."""
        t = self.tables
        if not 0 <= cable < len(t.cables):
            raise ConfigError(f"cut: cable {cable}: there are cables 0 to {len(t.cables) - 1}")
        first, n = t.cables[["first_segment", "segments"]][cable]
        if not 0 <= segment < n:
            raise ConfigError(f"cut: segment {segment}: cable {cable} has segments 0 to {n - 1}")
        t.segments["cut_at"][int(first) + segment] = 0.0
        self._find_accelerations("after a cut")
        self._note_breaks()

    def mend(self, cable: int, segment: int) -> None:
        """Join a segment that was cut. What that strains or bends counts as work from outside."""
        t = self.tables
        before_j = self.energy_j().sum()
        record = self.segments(cable)[segment]
        record["alive"] = 1.0
        record["cut_at"] = np.inf
        self._find_accelerations("with the hook closed")
        t.system["sums"]["work"][0] += self.energy_j().sum() - before_j

    def _note_breaks(self) -> None:
        """Take over what broke in the last period."""
        self.breaks += take_breaks(self.tables, self.time_s, self.period_s)
        self.tables.system["can_break"][0] = float(self.can_break)

    def _find_accelerations(self, when: str) -> None:
        self._set_paths(self.time_s)
        if self._advance(0) < 0:
            raise SimulationDiverged(f"elastic cables: no accelerations {when}")

    def _advance(self, steps: int) -> int:
        return self._take(steps, REFINEMENTS, self.period_s)

    def _take(self, steps: int, refinements: int, period_s: float) -> int:
        """Run the compiled step; returns the number of steps, see `step.move_plant`."""
        record = np.zeros(1, STEP)
        t = self.tables
        inputs = {name: getattr(t, name) for name in ("command", "wrench_body", "wrench_enu")}
        numbers = {"substeps": steps, "refinements": refinements, "period": period_s}
        places = {"plant": t.system, "wind": self.wind_enu_m_s}
        STEP_LAYOUT.fill(record, inputs | numbers | places)
        move_plant(record.ctypes.data)
        return int(record["verdict"][0])

    def relax(self, step_s: float = 10.0) -> float:
        """Move everything that is free to a static equilibrium under the present inputs.

        Steps so long that inertia does not count, each begun at rest: Newton's method for the
        static problem, which an L-stable step is in the limit. Nothing breaks on the way.
        A step that fails is tried again with a quarter of its length; near the solution, steps
        that do not come nearer become shorter, too. The largest acceleration that is left [m/s2].
        """
        t = self.tables
        before = np.inf
        longest = step_s
        limit = step_s
        lasted = 0
        last_s = step_s
        self.restart()  # the outside wrenches are those of now: no jump to begin with
        t.system["can_break"][0] = 0.0
        for _ in range(MOST_STEPS):
            self._stop()
            self._set_paths(self.time_s)
            backup = self.memory.copy()
            if self._take(1, 0, step_s) == -1:
                self.memory[:] = backup  # far from a solution numbers overflow
                step_s, limit, lasted = step_s / 4.0, step_s / 2.0, 0
                continue
            shift_m = np.abs(t.nodes["velocity"]).max() * step_s
            if shift_m < 1e-13 or (shift_m >= before and shift_m < 1e-11):
                break
            lasted += 1
            if before <= shift_m < NEAR_M and step_s <= last_s:  # goes round the solution
                limit = step_s / 2.0
                lasted = 0
            elif lasted % 16 == 0:  # what was too long may do now
                limit = min(2.0 * limit, longest)
            before = shift_m
            last_s = step_s
            step_s = min(2.0 * step_s, limit)
        t.system["can_break"][0] = float(self.can_break)
        self._stop()
        self.restart()
        accelerations = [
            np.abs(t.nodes["acceleration"]).max(),
            np.abs(t.bodies["acceleration"]).max(),
        ]
        return float(max(accelerations))

    def _stop(self) -> None:
        """Bring everything to rest where it is."""
        t = self.tables
        for name in ("velocity", "acceleration"):
            t.nodes[name] = t.bodies[name] = 0.0
        for name in ("omega", "torque", "angular_momentum"):
            t.bodies[name] = 0.0
        t.shafts["rate"] = t.shafts["acceleration"] = 0.0

    # ------------------------------------------------------------------ what tests and plants read

    def nodes(self, cable: int) -> Records:
        """Nodes of a cable from end 1 to end 2, see `state.NODE`, (segments + 1,)."""
        first, count = self.tables.cables[["first_node", "segments"]][cable]
        return self.tables.nodes[..., first : first + count + 1]

    def nodes_enu_m(self, cable: int) -> Array:
        """Positions of a cable's nodes, (segments + 1, 3)."""
        return self.nodes(cable)["position"]

    def segments(self, cable: int) -> Records:
        """Segments of a cable from end 1 to end 2, see `state.SEGMENT`, (segments,)."""
        first, count = self.tables.cables[["first_segment", "segments"]][cable]
        return self.tables.segments[first : first + count]

    def tensions_n(self, cable: int) -> Array:
        """Tension of every segment of a cable from end 1 to end 2, (segments,)."""
        return self.segments(cable)["tension"]

    def end_force_n(self, cable: int, end: int) -> Array:
        """Force of a cable on the body at its end (0 or 1), world, (3,).

        The weight and inertia of the half segment at the end are included.
        """
        force: Array = self.tables.cables["force"][cable, end]
        return force

    def length_m(self, cable: int) -> float:
        """Free rest length of a cable."""
        record = self.tables.cables[cable]
        return float(record["rest_length"] if record["reels"] else self.rig.cables[cable].length_m)

    def body(self, index: int, name: str) -> Array:
        """Field of a body, see `state.BODY`."""
        values: Array = self.tables.bodies[name][index]
        return values

    @property
    def sums(self) -> np.void:
        """Work and losses since the start, see `state.SUMS`."""
        sums: np.void = self.tables.system["sums"][0]
        return sums

    def holding_wrench(self, index: int) -> Array:
        """Force and moment about its centre that a prescribed body needs, world, (6,)."""
        reaction = self.tables.bodies["reaction"][index]
        return np.concatenate([reaction["force"], reaction["moment"]])

    def energy_j(self) -> Array:
        """Kinetic, potential, axial strain and bending energy, (4,)."""
        return energies(self.tables)

    def missing_energy_j(self) -> float:
        """Work that the integration lost [J]; negative: energy that it made."""
        s = self.sums
        losses = s["loss_cables"] + s["loss_ground"] + s["loss_breaks"]
        return float(s["work"] - losses - (self.energy_j().sum() - self.start_energy_j))
