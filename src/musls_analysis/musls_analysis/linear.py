"""Linear models of a plant around a state, and their modes.

With x' = f(x, u) and y = g(x, u), small deviations from a state follow x' = A x + B u,
y = C x + D u. The flow over a short time h has the Jacobian exp(h [[A, B], [0, 0]]), which central
differences of one step of the plant give; its logarithm over h is A and B without the error of a
finite step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from matplotlib.scale import SymmetricalLogScale
from matplotlib.ticker import FuncFormatter
from scipy.linalg import eig, logm

from musls_analysis.figures import style
from musls_description.config.errors import ConfigError
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import relative, rotation_vector
from musls_description.system.slung_system import SlungLoadSystem, slung_system
from musls_description.tables import ShownResult, Table
from musls_sim.plants.interface import LocalState, Plant, PlantInputs
from musls_sim.scenario.scenario import Scenario
from musls_sim.session.session import Session

INPUTS = ("rotor_speeds", "forces")
"""Kinds of input: commanded rotor speeds, or thrust and moments of each drone."""

FLOW_S = 1e-5
"""Time of the flow that is differentiated."""

INSTANT_S = 1e-9
"""Time in which nothing moves, to see forces."""

SHIFTS = (4e-3, 1e-3, 2.5e-4)
"""Sizes of the differences that are tried, as a share of each state's scale."""

KINK = 1e-3
"""Share of the largest slope by which those ahead and behind may differ where this does not shrink
with the size of the difference: second differences of a kink halve with it, smooth ones quarter."""

DRIFT_RAD_S = 0.05
"""Size of an eigenvalue below which a mode is free motion: rounding splits repeated zeros."""


@dataclass(frozen=True)
class Mode:
    """One eigenvalue, or a pair of conjugate ones.

    Attributes:
        name: Dominant motion: "pendulum" (all drones against the load), "yaw", "tilt" (of the
            load), "spread" (drones against each other), "cable" (between its ends), "attitude" (of
            drones), "rotor" (their lag), "drift" (free motion, no restoring force).
        eigenvalue: The one with the positive imaginary part [rad/s].
        shares: Kinetic energy of the mode by name, sum 1; that of a rotor's lag has none.
        shape: Eigenvector of the states, (n_states,) complex.
    """

    name: str
    eigenvalue: complex
    shares: dict[str, float]
    shape: Array

    @property
    def frequency_hz(self) -> float:
        """Frequency of the oscillation, 0 for none."""
        return float(abs(self.eigenvalue.imag) / (2.0 * np.pi))

    @property
    def damping_ratio(self) -> float:
        """Damping over the critical one; negative grows, 0 for free motion."""
        size = abs(self.eigenvalue)
        return float(-self.eigenvalue.real / size) if self.name != "drift" and size else 0.0


@dataclass(frozen=True, repr=False)
class LinearModel(ShownResult):
    """x' = A x + B u, y = C x + D u around a state; deviations, SI units, see `docs/linear.md`.

    Attributes:
        states: Names of coordinates, their rates ("... rate") and rotor speeds, (n_states,).
        inputs: Names, (n_inputs,).
        outputs: Names, (n_outputs,).
        residual: x' in the state itself; 0 in an equilibrium, (n_states,).
        error: Estimated relative error of the derivatives with respect to each state and input,
            from two sizes of the differences, (n_states + n_inputs,).
        kinked: States and inputs whose slopes ahead and behind differ, such as rotors that speed up
            faster than they slow down; the mean stands in the matrices.
        time_s: Time in the flight.
    """

    A: Array
    B: Array
    C: Array
    D: Array
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    residual: Array
    error: Array
    kinked: tuple[str, ...]
    time_s: float
    modes: tuple[Mode, ...] = ()

    @property
    def named_modes(self) -> list[Mode]:
        """Modes but for free motion and the lag of rotors, slowest first."""
        return [mode for mode in self.modes if mode.name not in ("drift", "rotor")]

    def shown(self) -> Iterator[str | Table]:
        """The modes with the parts that hold their kinetic energy, then counts."""
        rows = [
            (
                mode.name,
                f"{mode.frequency_hz:.3f}",
                f"{mode.damping_ratio:.3f}",
                f"{mode.eigenvalue.real:.3g}",
                f"{mode.eigenvalue.imag:.3g}",
                ", ".join(f"{n} {share:.2f}" for n, share in mode.shares.items() if share > 0.05),
            )
            for mode in self.named_modes
        ]
        heads = ("mode", "frequency [Hz]", "damping ratio", "real [1/s]", "imag [1/s]", "energy in")
        yield Table(heads, rows)
        free = sum(mode.name == "drift" for mode in self.modes)
        yield (
            f"{len(self.states)} states, {len(self.inputs)} inputs; {free} eigenvalues of free "
            f"motion are not shown; derivatives to {self.error.max():.1g}"
        )


def linear_model(
    plant: Plant, system: SlungLoadSystem, held: PlantInputs, inputs: str = "rotor_speeds"
) -> LinearModel:
    """Open-loop linear model of a plant in its present state, in which the inputs `held` act."""
    if inputs not in INPUTS:
        raise ConfigError(f"inputs = {inputs!r} is unknown: allowed are {', '.join(INPUTS)}")
    return _Point(plant, system, held, inputs == "forces").model()


def linearise(
    scenario: Scenario, at: float | None = None, inputs: str = "rotor_speeds"
) -> LinearModel:
    """Linear model of a scenario's plant, see `musls.linearise`."""
    system = slung_system(scenario.system, "linear model")
    if at is None:
        scenario = replace(scenario, start=replace(scenario.start, kind="air"))
    elif not (np.isfinite(at) and at >= 0.0):
        raise ConfigError(f"at = {at:g}: a time of the flight is 0 s or later")
    with Session(scenario) as session:
        while at is not None and session.time_s < at - 1e-9:
            if session.finished:
                raise ConfigError(f"at = {at:g} s: the flight is over at {session.time_s:.2f} s")
            session.advance(1)
        if not at:  # nothing is commanded yet
            session.inputs.rotor_command_rad_s[:] = session.state.rotor_speed_rad_s
        return linear_model(session.plant, system, session.inputs, inputs)


class _Point:
    """A plant in a state, and what differences of its step give there."""

    def __init__(
        self, plant: Plant, system: SlungLoadSystem, held: PlantInputs, by_forces: bool
    ) -> None:
        self.plant = plant
        self.system = system
        self.speed = plant.state.rotor_speed_rad_s.copy()
        self.local: LocalState = plant.local_state()
        self.by_forces = by_forces
        command = np.array(self.speed if by_forces else held.rotor_command_rad_s)
        self.held = replace(
            held,
            rotor_command_rad_s=command,
            wind_enu_m_s=held.wind_enu_m_s.copy(),
            wrench_body=held.wrench_body.copy(),
            wrench_enu=held.wrench_enu.copy(),
        )
        self.first_push = self.held.wrench_body.copy()
        n, rotors = self.speed.shape
        names = self.local.names
        turns = system.load.point_mass
        indices = [
            k for k, name in enumerate(names) if not (turns and name.startswith("load turn"))
        ]
        self.kept = np.array(indices)
        drones = [f"drone_{i + 1}" for i in range(n)]
        coordinates = tuple(names[k] for k in indices)
        spin = tuple(f"{drone} rotor_{j + 1}" for drone in drones for j in range(rotors))
        self.states: tuple[str, ...] = (*coordinates, *(f"{name} rate" for name in coordinates))
        if by_forces:
            pushes = ("thrust_n", "moment_x_n_m", "moment_y_n_m", "moment_z_n_m")
            self.inputs = tuple(f"{drone} {push}" for drone in drones for push in pushes)
            scale = np.tile([1.0, 0.1, 0.1, 0.1], n)
        else:
            self.states += spin
            self.inputs = tuple(f"{name} command" for name in spin)
            scale = np.maximum(command.ravel(), 1.0)
        rows = np.ones(len(self.states))
        rows[2 * len(indices) :] = np.maximum(self.speed.ravel(), 1.0)[
            : len(rows) - 2 * len(indices)
        ]
        self.scale = np.concatenate([rows, scale])
        self.outputs = (
            *(f"load p_{axis}" for axis in "xyz"),
            *(f"load turn_{axis}" for axis in "xyz"),
            *(f"{drone} p_{axis}" for drone in drones for axis in "xyz"),
            *(f"cable_{i + 1} tension_n" for i in range(n)),
        )
        self._pose = plant.state.motion[:, :10].copy()

    def set(self, shift: Array) -> None:
        """Set state and inputs, deviations (n_states + n_inputs,)."""
        k = len(self.kept)
        full = np.zeros((2, len(self.local.names)))
        full[0, self.kept] = shift[:k]
        full[1, self.kept] = shift[k : 2 * k]
        self.local.move(full[0], full[1])
        n = len(self.states)
        spin = self.speed.copy()
        input_shift = shift[n:]
        if self.by_forces:
            push = input_shift.reshape(len(spin), 4)
            self.held.wrench_body[1:, 5] = self.first_push[1:, 5] + push[:, 0]
            self.held.wrench_body[1:, :3] = self.first_push[1:, :3] + push[:, 1:]
            command = self.speed
        else:
            spin += shift[2 * k : n].reshape(spin.shape)
            command = self.command + input_shift.reshape(spin.shape)
        self.plant.state.rotor_speed_rad_s[:] = spin
        self.held.rotor_command_rad_s[:] = command

    def flow(self, shift: Array) -> Array:
        """State after `FLOW_S`, then outputs now, as deviations from the point."""
        self.set(shift)
        self.local.advance(self.held, INSTANT_S)
        outputs = self.see()
        self.set(shift)
        self.local.advance(self.held, FLOW_S)
        coordinates, rates = self.local.read()
        parts = [coordinates[self.kept], rates[self.kept]]
        if not self.by_forces:
            parts.append((self.plant.state.rotor_speed_rad_s - self.speed).ravel())
        return np.concatenate([*parts, outputs])

    def see(self) -> Array:
        """Outputs, see `self.outputs`, places and turns as deviations."""
        state = self.plant.state
        first = self._pose
        shifts = state.position_enu_m - first[:, :3]
        rotation = rotation_vector(relative(state.orientation_wxyz[0], first[0, 6:10]))
        return np.concatenate([shifts[0], rotation, shifts[1:].ravel(), state.tension_n[:, 0]])

    def shape(self, shift: Array) -> tuple[Array, Array, list[Array]]:
        """Places of load and drones, their turns, cable nodes, with a deviation of the state."""
        self.set(np.concatenate([shift, np.zeros(len(self.inputs))]))
        self.local.advance(self.held, INSTANT_S)
        state = self.plant.state
        plant = self.plant
        rotations = rotation_vector(relative(state.orientation_wxyz, self._pose[:, 6:10]))
        cables = [plant.cable_nodes_enu_m(i) for i in range(self.system.n_drones)]
        return state.position_enu_m - self._pose[:, :3], rotations, cables

    def model(self) -> LinearModel:
        """Differences by all states and inputs, then modes."""
        self.command = self.held.rotor_command_rad_s.copy()
        n = len(self.states)
        total = len(self.scale)
        base = self.flow(np.zeros(total))
        slope = np.empty((len(base), total))
        error = np.empty(total)
        kinked = []
        for k in range(total):
            slope[:, k], error[k], kink = _slope(self.flow, base, k, self.scale[k], total)
            if kink:
                kinked.append((self.states + self.inputs)[k])
        whole = np.zeros((total, total))
        whole[:n] = slope[:n]
        whole[n:, n:] = np.eye(total - n)
        rates = np.real(logm(whole)) / FLOW_S
        model = LinearModel(
            rates[:n, :n],
            rates[:n, n:],
            slope[n:, :n],
            slope[n:, n:],
            self.states,
            self.inputs,
            self.outputs,
            base[:n] / FLOW_S,
            error,
            tuple(kinked),
            self.plant.time_s,
        )
        modes = self.modes(model.A)
        self.set(np.zeros(total))
        return replace(model, modes=modes)

    # ------------------------------------------------------------------------------------ modes

    def modes(self, A: Array) -> tuple[Mode, ...]:
        """Eigenvalues with a name by what carries their kinetic energy, slowest first."""
        values, vectors = eig(A)
        k = len(self.kept)
        modes = []
        for value, vector in zip(values, vectors.T, strict=True):
            if value.imag < 0.0:
                continue
            shares = self.shares(vector)
            rotor = np.abs(vector[2 * k :] / self.scale[2 * k : len(vector)])
            moves = np.abs(vector[k : 2 * k])
            if abs(value) < DRIFT_RAD_S:
                name = "drift"
            elif rotor.size and rotor.max() > 0.03 * moves.max():
                name = "rotor"
            else:
                name = max(shares, key=lambda part: shares[part])
            modes.append(Mode(name, complex(value), shares, vector))
        return tuple(sorted(modes, key=lambda mode: abs(mode.eigenvalue)))

    def shares(self, vector: Array) -> dict[str, float]:
        """Shares of kinetic energy by what moves; both phases of a mode count as displacements."""
        k = len(self.kept)
        sums = dict.fromkeys(NAMES, 0.0)
        size = np.abs(vector[k : 2 * k]).max()
        if size == 0.0:
            return sums
        for part in (vector.real, vector.imag):
            shift = np.zeros(len(self.states))
            shift[:k] = part[k : 2 * k] / size
            for name, energy in self._energies(shift).items():
                sums[name] += energy
        whole = sum(sums.values()) or 1.0
        return {name: energy / whole for name, energy in sums.items()}

    def _energies(self, shift: Array) -> dict[str, float]:
        """Twice the kinetic energies if the coordinates move at these rates."""
        system = self.system
        small = 1e-4
        ahead = self.shape(small * shift)
        behind = self.shape(-small * shift)
        v = (ahead[0] - behind[0]) / (2.0 * small)
        w = (ahead[1] - behind[1]) / (2.0 * small)
        masses = np.array([drone.mass_kg for drone in system.drones])
        out = dict.fromkeys(NAMES, 0.0)
        # All drones together, against the load; turning about it; the rest.
        together = masses @ v[1:] / masses.sum()
        load = system.load.mass_kg
        out["pendulum"] = load * (v[0] @ v[0]) + masses.sum() * (together @ together)
        beside = v[1:] - together
        arm = self._pose[1:, :2] - masses @ self._pose[1:, :2] / masses.sum()
        tangential = np.column_stack([-arm[:, 1], arm[:, 0], np.zeros(len(arm))])
        inertia = masses @ np.sum(tangential**2, axis=1)
        spin = masses @ np.sum(tangential * beside, axis=1) / inertia if inertia > 1e-9 else 0.0
        out["yaw"] = inertia * spin**2
        beside = beside - spin * tangential
        out["spread"] = masses @ np.sum(beside**2, axis=1)
        if not system.load.point_mass:
            turning = np.array(system.load.inertia_kg_m2)
            upright = np.array([0.0, 0.0, w[0, 2]])
            out["yaw"] += upright @ turning @ upright
            out["tilt"] = (w[0] - upright) @ turning @ (w[0] - upright)
        out["attitude"] = sum(
            a @ np.array(drone.inertia_kg_m2) @ a
            for a, drone in zip(w[1:], system.drones, strict=True)
        )
        for cable, high, low in zip(system.cables, ahead[2], behind[2], strict=True):
            nodes = (high - low) / (2.0 * small)
            straight = np.linspace(nodes[0], nodes[-1], len(nodes))
            out["cable"] += cable.mass_kg / len(nodes) * np.sum((nodes - straight) ** 2)
        return out


NAMES = ("pendulum", "yaw", "tilt", "spread", "cable", "attitude")
"""Motions that a mode can be named after, see `Mode`."""


def _slope(
    f: Callable[[Array], Array], base: Array, k: int, scale: float, total: int
) -> tuple[Array, float, bool]:
    """Derivative of f by variable k, its relative error, and whether there is a kink.

    Central differences at each of `SHIFTS` and half of it, extrapolated to fourth order; that size
    is taken at which both agree best.
    """
    best: tuple[Array, float, bool] | None = None
    unit = np.zeros(total)
    unit[k] = scale
    for size in SHIFTS:
        ahead, behind, near, close = (f(s * size * unit) for s in (1.0, -1.0, 0.5, -0.5))
        wide = (ahead - behind) / (2.0 * size * scale)
        narrow = (near - close) / (size * scale)
        miss = float(np.abs(narrow - wide).max() / max(np.abs(narrow).max(), 1e-12))
        if best is None or miss < best[1]:
            bend = np.abs(ahead + behind - 2.0 * base)
            bent_half = np.abs(near + close - 2.0 * base)
            jump = bent_half / (0.5 * size * scale)
            kink = (bent_half > 0.4 * bend) & (
                jump > KINK * max(np.abs(narrow).max() * FLOW_S, 0.0)
            )
            best = (4.0 * narrow - wide) / 3.0, miss, bool(kink.any())
    assert best is not None
    return best


# ---------- Figure

COLOURS = {
    "pendulum": "#d55e00",
    "yaw": "#0072b2",
    "tilt": "#009e73",
    "spread": "#cc79a7",
    "cable": "#e69f00",
    "attitude": "#56b4e9",
    "rotor": "#882255",
    "drift": "#8b949e",
}


def draw(model: LinearModel, title: str, path: Path) -> None:
    """Write a picture: eigenvalues in the complex plane, and the kinetic energy of each mode."""
    modes = model.named_modes[:16]
    with style.styled():
        figure = style.new_figure(3.8)
        plane, bars = figure.subplots(1, 2)
        parts = {m.name for m in model.modes}.union(*(m.shares for m in modes))
        for name, ink in COLOURS.items():
            values = np.array([m.eigenvalue for m in model.modes if m.name == name], complex)
            if name in parts:
                plane.scatter(values.real, values.imag / (2.0 * np.pi), s=22, color=ink, label=name)
        plane.set(xlabel="real part [1/s]", ylabel="frequency [Hz]", title=f"{title}: eigenvalues")
        for axis, name in ((plane.xaxis, "x"), (plane.yaxis, "y")):
            plane.set(**{f"{name}scale": SymmetricalLogScale(axis, linthresh=0.1)})
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        plane.set_ylim(bottom=-0.02)
        for row, mode in enumerate(modes):
            start = 0.0
            for name, share in mode.shares.items():
                bars.barh(row, share, left=start, color=COLOURS[name])
                start += share
        bars.set(xlim=(0.0, 1.0), xlabel="share of the kinetic energy", title="slowest modes")
        bars.set_yticks(range(len(modes)), [f"{m.frequency_hz:.2f} Hz" for m in modes])
        bars.invert_yaxis()
        top_in = style.legend_on_top(figure, plane.get_legend_handles_labels()[0])
        style.margins(figure, 0.6, 0.15, 0.45, 0.3 + top_in, wspace=0.35)
        style.save(figure, path)
