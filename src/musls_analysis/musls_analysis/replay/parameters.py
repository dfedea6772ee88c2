"""Parameters of a fit: physical ones of the system, and what the recorded poses are poses of.

Each has a name, a unit, bounds, and a way to be read from and put into a `Setup`. Parameters that
belong to several bodies (`length`, `attachment_x`) change all of them alike and keep their
differences; with a number (`length_2`, `attachment_2_x`) they change one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from musls_analysis.replay.motion import DRONES, ReplaySpec, Vector
from musls_description.errors import ConfigError, near_names
from musls_description.system import Cable, SlungLoadSystem
from musls_sim.plants.elastic.start import line_of

AXES = "xyz"

OF_ELASTIC = ("ea", "axial_damping")
"""Of elastic cables alone."""

OF_LINKS = ("damping", "stiffness", "friction")
"""Of cables of links alone."""


@dataclass(frozen=True)
class Setup:
    """System and options of a replay."""

    system: SlungLoadSystem
    spec: ReplaySpec


@dataclass(frozen=True)
class Parameter:
    """One number of a setup.

    Attributes:
        unit: "" for a factor.
        lower: Least value of a fit.
        upper: Largest value of a fit.
        scale: A change that matters: unit of the optimiser, a tenth of it is the step of finite
            differences. Of the logarithm if `log`.
        read: Value in a setup.
        put: The setup with another value.
        log: Fitted on a logarithmic scale.
    """

    name: str
    unit: str
    lower: float
    upper: float
    scale: float
    read: Callable[[Setup], float]
    put: Callable[[Setup, float], Setup]
    log: bool = False

    def to_scale(self, value: float) -> float:
        """Value on the scale of the fit."""
        return float(np.log(value)) if self.log else value

    def from_scale(self, x: float) -> float:
        """The inverse."""
        return float(np.exp(x)) if self.log else float(x)


GROUPS = {
    "damping": "viscous damping of the cables' joints [N m s/rad]",
    "stiffness": "spring of the cables' joints [N m/rad]",
    "friction": "Coulomb friction of the cables' joints [N m]",
    "ea": "axial stiffness of elastic cables [N]",
    "axial_damping": "axial damping of elastic cables, force per rate of strain [N s]",
    "length": "length of the cables, length_1 of one [m]",
    "rope_mass": "mass of the cables [kg]",
    "attachment": "cable's end on the drone, in its frame, x y z; attachment_1 of one [m]",
    "load_com": "shift of the load's centre of mass against the rest of it, x y z [m]",
    "load_inertia": "factor of the load's inertia",
    "load_drag": "linear air drag of the load, alike in all directions [N s/m]",
    "load_origin": "recorded point of the load from its centre of mass, x y z [m]",
    "drone_origin": "recorded point of the drones from theirs, x y z; drone_origin_1 of one [m]",
    "load_tilt": "recorded frame of the load against the load's, rotation vector x y z [rad]",
    "load_delay": "how much later the load's poses are stamped than the drones' [s]",
}
"""Parameters of a fit. A group with x y z stands for its components (`load_com_z` for one)."""


def parameters(names: Iterable[str], setup: Setup) -> list[Parameter]:
    """Look up parameters by the names of groups or single ones.

    In the setup the fit starts; length and rope_mass take their bounds from it.

    Raises:
        ConfigError: Unknown, or given twice.
    """
    known = _all(setup)
    found: dict[str, Parameter] = {}
    for name in names:
        members = [name] if name in known else [f"{name}_{axis}" for axis in AXES]
        if members[0] not in known:
            raise ConfigError(f"nothing to fit called '{name}': {near_names(name, GROUPS)}")
        for member in members:
            if member in found:
                raise ConfigError(f"parameter '{member}' is given twice")
            found[member] = known[member]
    return list(found.values())


def put_all(setup: Setup, values: Mapping[str, float]) -> Setup:
    """The setup with parameters set, in the order given.

    Raises:
        ConfigError: Unknown name, or a value that the system refuses.
    """
    for parameter, value in zip(parameters(values, setup), values.values(), strict=True):
        setup = parameter.put(setup, value)
    return setup


def _all(setup: Setup) -> dict[str, Parameter]:
    each = range(setup.system.n_drones)
    made = [
        _of_joints("damping", "N m s/rad", 1e-5, 0.1),
        _of_joints("stiffness", "N m/rad", 1e-4, 1.0),
        _of_joints("friction", "N m", 1e-6, 0.02),
        _of_lines("ea", "N", 1e2, 1e6, "ea_n"),
        _of_lines("axial_damping", "N s", 0.1, 1e5, "damping_n_s"),
        _of_cables("length", "length_m", (0.9, 1.1), 0.02, each, setup),
        *(_of_cables(f"length_{i + 1}", "length_m", (0.9, 1.1), 0.02, [i], setup) for i in each),
        _of_cables("rope_mass", "mass_kg", (0.1, 10.0), 0.3, each, setup, log=True),
        *_attachments("attachment", each),
        *(p for i in each for p in _attachments(f"attachment_{i + 1}", [i])),
        *_origins("load_origin", "load"),
        *_origins("drone_origin", DRONES),
        *(p for i in each for p in _origins(f"drone_origin_{i + 1}", f"drone_{i + 1}")),
        *_vector("load_com", "m", 0.1, 0.005, lambda _: (0.0, 0.0, 0.0), _com_shifted),
        *_vector("load_tilt", "rad", 0.5, 0.05, lambda s: s.spec.load_tilt_rad, _load_turned),
        Parameter("load_inertia", "", 0.2, 5.0, 0.2, lambda _: 1.0, _inertia_scaled, log=True),
        Parameter(
            "load_drag", "N s/m", 1e-3, 2.0, 0.3,
            lambda s: float(np.mean(s.system.load.drag_n_s_m)),
            lambda s, v: _with_load(s, drag_n_s_m=(v, v, v)), log=True,
        ),
        Parameter(
            "load_delay", "s", -0.3, 0.3, 0.02, lambda s: s.spec.load_delay_s,
            lambda s, v: replace(s, spec=replace(s.spec, load_delay_s=v)),
        ),
    ]  # fmt: skip
    return {parameter.name: parameter for parameter in made}


def _with_cables(setup: Setup, change: Callable[[Cable], Cable], which: Sequence[int]) -> Setup:
    cables = tuple(change(c) if i in which else c for i, c in enumerate(setup.system.cables))
    return replace(setup, system=replace(setup.system, cables=cables))


def _with_load(setup: Setup, **changes: Any) -> Setup:
    load = replace(setup.system.load, **changes)
    return replace(setup, system=replace(setup.system, load=load))


def _of_cables(
    name: str,
    field: str,
    factors: tuple[float, float],
    scale: float,
    which: Sequence[int],
    setup: Setup,
    *,
    log: bool = False,
) -> Parameter:
    """Length or mass of cables; bounds are factors of the present value."""

    def read(at: Setup) -> float:
        return float(np.mean([getattr(at.system.cables[i], field) for i in which]))

    def put(at: Setup, value: float) -> Setup:
        factor = value / read(at)
        return _with_cables(at, lambda c: replace(c, **{field: getattr(c, field) * factor}), which)

    unit = "m" if field.endswith("_m") else "kg"
    lower, upper = (factor * read(setup) for factor in factors)
    return Parameter(name, unit, lower, upper, scale, read, put, log)


def _of_joints(name: str, unit: str, lower: float, upper: float) -> Parameter:
    """A property of the joints of all cables."""
    field = f"{name}_{unit.replace(' ', '_').replace('/', '_').lower()}"

    def value(cable: Cable) -> float:
        return cable.joint_damping_n_m_s_rad if name == "damping" else getattr(cable.joint, field)

    def put(at: Setup, wanted: float) -> Setup:
        def change(cable: Cable) -> Cable:
            new = {field: wanted}
            if name == "damping" and cable.joint.bending_damping_n_m2_s is not None:
                new = {"bending_damping_n_m2_s": wanted * cable.link_length_m}
            return replace(cable, joint=replace(cable.joint, **new))

        return _with_cables(at, change, range(at.system.n_drones))

    def read(at: Setup) -> float:
        return float(np.mean([value(cable) for cable in at.system.cables]))

    return Parameter(name, unit, lower, upper, 0.5, read, put, log=True)


def _of_lines(name: str, unit: str, lower: float, upper: float, field: str) -> Parameter:
    """Material of elastic cables; all cables get the same."""

    def read(at: Setup) -> float:
        lines = (line_of(cable.elastic) for cable in at.system.cables)
        return float(np.mean([getattr(line, field) for line in lines]))

    def put(at: Setup, value: float) -> Setup:
        def change(cable: Cable) -> Cable:
            if field == "ea_n" and cable.elastic.law is not None:
                raise ConfigError("ea cannot be fitted to cables with a table (elastic.law)")
            new: dict[str, Any] = {field: value}
            return replace(cable, elastic=replace(cable.elastic, **new))

        return _with_cables(at, change, range(at.system.n_drones))

    return Parameter(name, unit, lower, upper, 0.5, read, put, log=True)


def _vector(
    name: str,
    unit: str,
    limit: float,
    scale: float,
    read: Callable[[Setup], Sequence[float]],
    moved: Callable[[Setup, Vector], Setup],
) -> list[Parameter]:
    """Three components, x y z, of what `moved` shifts by a vector."""

    def component(axis: int) -> Parameter:
        def put(at: Setup, value: float) -> Setup:
            by = [0.0, 0.0, 0.0]
            by[axis] = value - read(at)[axis]
            return moved(at, (by[0], by[1], by[2]))

        return Parameter(
            f"{name}_{AXES[axis]}", unit, -limit, limit, scale,
            lambda at: float(read(at)[axis]), put,
        )  # fmt: skip

    return [component(axis) for axis in range(3)]


def _attachments(name: str, which: Sequence[int]) -> list[Parameter]:
    """Cable's end on some drones."""

    def read(at: Setup) -> Sequence[float]:
        places = [at.system.drones[i].cable_attachment_m for i in which]
        return [float(x) for x in np.mean(places, axis=0)]

    def moved(at: Setup, by: Vector) -> Setup:
        drones = tuple(
            replace(d, cable_attachment_m=_sum(d.cable_attachment_m, by)) if i in which else d
            for i, d in enumerate(at.system.drones)
        )
        return replace(at, system=replace(at.system, drones=drones))

    return _vector(name, "m", 0.2, 0.01, read, moved)


def _origins(name: str, body: str) -> list[Parameter]:
    """Recorded point of a body."""
    return _vector(
        name, "m", 0.2, 0.01,
        lambda at: at.spec.offset_m(body).tolist(),
        lambda at, by: _with_offset(at, body, by),
    )  # fmt: skip


def _with_offset(setup: Setup, body: str, by: Vector) -> Setup:
    offsets = {**setup.spec.offsets_m, body: _sum(setup.spec.offset_m(body).tolist(), by)}
    return replace(setup, spec=replace(setup.spec, offsets_m=offsets))


def _com_shifted(setup: Setup, by: Vector) -> Setup:
    """Everything of the load but its centre of mass moves the other way in the load's frame."""
    load, back = setup.system.load, _sum((0.0, 0.0, 0.0), by, -1.0)
    moved = _with_load(
        setup,
        cable_attachments_m=tuple(_sum(p, back) for p in load.cable_attachments_m),
        collision=replace(load.collision, center_m=_sum(load.collision.center_m, back)),
    )
    return _with_offset(moved, "load", back)


def _load_turned(setup: Setup, by: Vector) -> Setup:
    tilt = _sum(setup.spec.load_tilt_rad, by)
    return replace(setup, spec=replace(setup.spec, load_tilt_rad=tilt))


def _inertia_scaled(setup: Setup, factor: float) -> Setup:
    rows = setup.system.load.inertia_kg_m2
    scaled = tuple(tuple(factor * value for value in row) for row in rows)
    return _with_load(setup, shape=None, inertia_kg_m2=scaled)


def _sum(vector: Sequence[float], by: Vector, factor: float = 1.0) -> Vector:
    x, y, z = (float(a) + factor * b for a, b in zip(vector, by, strict=True))
    return x, y, z
