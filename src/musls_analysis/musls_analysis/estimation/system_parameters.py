"""Parameters that can be fitted: of a slung-load system, and of the points that were recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from musls_analysis.replay.motion import DRONES, ReplaySpec, Vector
from musls_description.config.errors import ConfigError, near_names
from musls_description.numerics.arrays import Array
from musls_description.system.slung_system import Cable, SlungLoadSystem
from musls_description.tables import ShownResult
from musls_sim.plants.elastic.cables.line import line_of

AXES = "xyz"

OF_ELASTIC = ("ea", "axial_damping")
"""Parameters of elastic cables alone."""

OF_LINKS = ("damping", "twist_damping", "stiffness", "friction")
"""Parameters of cables of links alone."""


@dataclass(frozen=True)
class Setup:
    """System and options of a replay."""

    system: SlungLoadSystem
    spec: ReplaySpec


@dataclass(frozen=True, repr=False)
class SystemParameter(ShownResult):
    """One number of a setup.

    Attributes:
        unit: Unit; "" for a factor.
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

    def shown(self) -> Iterator[str]:
        """Name, bounds and unit."""
        yield f"{self.name}: {self.lower:.4g} to {self.upper:.4g} {self.unit}".rstrip()

    def to_scale(self, value: float) -> float:
        """Value on the scale of the fit."""
        return float(np.log(value)) if self.log else value

    def from_scale(self, x: float) -> float:
        """The inverse."""
        return float(np.exp(x)) if self.log else float(x)

    def slope(self, value: float) -> float:
        """Change [its unit] by one of its scale."""
        return self.scale * (value if self.log else 1.0)

    def inside(self, value: float) -> float:
        """A start strictly within the bounds; far from an end, where a logarithm would be flat."""
        if self.lower < value < self.upper:
            return value
        return self.from_scale((self.to_scale(self.lower) + self.to_scale(self.upper)) / 2.0)


GROUPS = {
    "damping": "viscous damping of the cables' joints [N m s/rad]",
    "twist_damping": "viscous damping of cables that turn about themselves [N m s/rad]",
    "stiffness": "spring of the cables' joints [N m/rad]",
    "friction": "Coulomb friction of the cables' joints [N m]",
    "ea": "axial stiffness of elastic cables [N]",
    "axial_damping": "axial damping of elastic cables, force per rate of strain [N s]",
    "length": "length of the cables, length_1 of one [m]",
    "rope_mass": "mass of the cables [kg]",
    "attachment": "cable's end on the drone, in its frame, x y z; attachment_1 of one [m]",
    "load_attachment_1": "end of cable 1 on the load, in its frame, x y z [m]; others likewise",
    "load_com": "shift of the load's centre of mass against the rest of it, x y z [m]",
    "load_inertia": "factor of the load's inertia",
    "load_drag": "linear air drag of the load, alike in all directions [N s/m]",
    "load_origin": "recorded point of the load from its centre of mass, x y z [m]",
    "drone_origin": "recorded point of the drones from theirs, x y z; drone_origin_1 of one [m]",
    "load_tilt": "recorded frame of the load against the load's, rotation vector x y z [rad]",
    "load_delay": "how much later the load's poses are stamped than the drones' [s]",
}
"""Parameters of a fit. A group with x y z stands for its components (`load_com_z` for one)."""


def parameters(names: Iterable[str], setup: Setup) -> dict[str, list[SystemParameter]]:
    """Look up parameters by names of groups or single ones; a setup gives some their bounds.

    Returns:
        The members of each name.
    """
    available = _all(setup)
    groups: dict[str, list[SystemParameter]] = {}
    earlier: set[str] = set()
    for name in names:
        members = [name] if name in available else [f"{name}_{axis}" for axis in AXES]
        if members[0] not in available:
            raise ConfigError(f"nothing to fit called '{name}': {near_names(name, GROUPS)}")
        for member in members:
            if member in earlier:
                raise ConfigError(f"parameter '{member}' is given twice")
            earlier.add(member)
        groups[name] = [available[member] for member in members]
    return groups


def put_all(setup: Setup, values: Mapping[str, float]) -> Setup:
    """The setup with parameters set, in the order given."""
    for (parameter,), value in zip(
        parameters(values, setup).values(), values.values(), strict=True
    ):
        setup = parameter.put(setup, value)
    return setup


def _all(setup: Setup) -> dict[str, SystemParameter]:
    each = range(setup.system.n_drones)
    entries = [
        _of_cables(
            "damping",
            "N m s/rad",
            (1e-5, 0.1),
            each,
            lambda c: c.joint_damping_n_m_s_rad,
            _with_damping,
        ),
        _of_cables(
            "twist_damping",
            "N m s/rad",
            (1e-5, 0.1),
            each,
            lambda c: c.free_twist_damping_n_m_s_rad,
            lambda c, value, _: replace(c, twist_damping_n_m_s_rad=value),
        ),
        _of_cables(
            "stiffness",
            "N m/rad",
            (1e-4, 1.0),
            each,
            lambda c: c.joint.stiffness_n_m_rad,
            lambda c, value, _: replace(c, joint=replace(c.joint, stiffness_n_m_rad=value)),
        ),
        _of_cables(
            "friction",
            "N m",
            (1e-6, 0.02),
            each,
            lambda c: c.joint.friction_n_m,
            lambda c, value, _: replace(c, joint=replace(c.joint, friction_n_m=value)),
        ),
        _of_cables("ea", "N", (1e2, 1e6), each, lambda c: line_of(c).ea_n, _with_ea),
        _of_cables(
            "axial_damping",
            "N s",
            (0.1, 1e5),
            each,
            lambda c: line_of(c).damping_n_s,
            lambda c, value, _: replace(c, elastic=replace(c.elastic, damping_n_s=value)),
        ),
        _length("length", each, setup),
        *(_length(f"length_{i + 1}", [i], setup) for i in each),
        _rope_mass(each, setup),
        *_attachments("attachment", each),
        *(p for i in each for p in _attachments(f"attachment_{i + 1}", [i])),
        *(p for i in each for p in _load_attachment(i)),
        *_origins("load_origin", "load"),
        *_origins("drone_origin", DRONES),
        *(p for i in each for p in _origins(f"drone_origin_{i + 1}", f"drone_{i + 1}")),
        *_vector("load_com", "m", 0.1, 0.005, lambda _: np.zeros(3), _com_shifted),
        *_vector("load_tilt", "rad", 0.5, 0.05, lambda s: s.spec.load_tilt_rad, _load_turned),
        SystemParameter(
            "load_inertia", "", 0.2, 5.0, 0.2, lambda _: 1.0, _inertia_scaled, log=True
        ),
        SystemParameter(
            "load_drag",
            "N s/m",
            1e-3,
            2.0,
            0.3,
            lambda s: float(np.mean(s.system.load.drag_n_s_m)),
            lambda s, v: _with_load(s, drag_n_s_m=(v, v, v)),
            log=True,
        ),
        SystemParameter(
            "load_delay",
            "s",
            -0.3,
            0.3,
            0.02,
            lambda s: s.spec.load_delay_s,
            lambda s, v: replace(s, spec=replace(s.spec, load_delay_s=v)),
        ),
    ]
    return {parameter.name: parameter for parameter in entries}


def _of_cables(
    name: str,
    unit: str,
    bounds: tuple[float, float],
    which: Sequence[int],
    read: Callable[[Cable], float],
    change: Callable[[Cable, float, float], Cable],
    scale: float = 0.5,
    *,
    log: bool = True,
) -> SystemParameter:
    """The mean of a number of some cables; `change` is given its new and its present value."""

    def mean(at: Setup) -> float:
        return float(np.mean([read(at.system.cables[i]) for i in which]))

    def put(at: Setup, value: float) -> Setup:
        now = mean(at)
        cables = tuple(
            change(cable, value, now) if i in which else cable
            for i, cable in enumerate(at.system.cables)
        )
        return replace(at, system=replace(at.system, cables=cables))

    return SystemParameter(name, unit, *bounds, scale, mean, put, log)


def _length(name: str, which: Sequence[int], setup: Setup) -> SystemParameter:
    now = np.mean([setup.system.cables[i].length_m for i in which])
    return _of_cables(
        name,
        "m",
        (0.9 * now, 1.1 * now),
        which,
        lambda c: c.length_m,
        lambda c, value, mean: replace(c, length_m=c.length_m * value / mean),
        0.02,
        log=False,
    )


def _rope_mass(which: Sequence[int], setup: Setup) -> SystemParameter:
    now = np.mean([setup.system.cables[i].mass_kg for i in which])
    return _of_cables(
        "rope_mass",
        "kg",
        (0.1 * now, 10.0 * now),
        which,
        lambda c: c.mass_kg,
        lambda c, value, mean: replace(c, mass_kg=c.mass_kg * value / mean),
        0.3,
    )


def _with_damping(cable: Cable, value: float, _: float) -> Cable:
    if cable.joint.bending_damping_n_m2_s is None:
        return replace(cable, joint=replace(cable.joint, damping_n_m_s_rad=value))
    of_bending = value * cable.link_length_m
    return replace(cable, joint=replace(cable.joint, bending_damping_n_m2_s=of_bending))


def _with_ea(cable: Cable, value: float, _: float) -> Cable:
    if cable.elastic.law is not None:
        raise ConfigError("ea cannot be fitted to cables with a table (elastic.law)")
    return replace(cable, elastic=replace(cable.elastic, ea_n=value))


def _with_load(setup: Setup, **changes: Any) -> Setup:
    load = replace(setup.system.load, **changes)
    return replace(setup, system=replace(setup.system, load=load))


def _vector(
    name: str,
    unit: str,
    limit: float,
    scale: float,
    read: Callable[[Setup], Sequence[float] | Array],
    shift: Callable[[Setup, Array], Setup],
) -> list[SystemParameter]:
    """Three components, x y z, of what `shift` moves by a vector."""

    def component(axis: int) -> SystemParameter:
        return SystemParameter(
            f"{name}_{AXES[axis]}",
            unit,
            -limit,
            limit,
            scale,
            lambda at: float(read(at)[axis]),
            lambda at, value: shift(at, np.eye(3)[axis] * (value - read(at)[axis])),
        )

    return [component(axis) for axis in range(3)]


def _attachments(name: str, which: Sequence[int]) -> list[SystemParameter]:
    """Cable's end on some drones."""

    def moved(at: Setup, by: Array) -> Setup:
        drones = tuple(
            replace(d, cable_attachment_m=_sum(d.cable_attachment_m, by)) if i in which else d
            for i, d in enumerate(at.system.drones)
        )
        return replace(at, system=replace(at.system, drones=drones))

    return _vector(
        name,
        "m",
        0.2,
        0.01,
        lambda at: np.mean([at.system.drones[i].cable_attachment_m for i in which], axis=0),
        moved,
    )


def _load_attachment(index: int) -> list[SystemParameter]:
    """End of one cable on the load."""

    def read(at: Setup) -> Vector:
        return at.system.load.cable_attachments_m[index]

    def moved(at: Setup, by: Array) -> Setup:
        points = list(at.system.load.cable_attachments_m)
        points[index] = _sum(points[index], by)
        return _with_load(at, cable_attachments_m=tuple(points))

    return _vector(f"load_attachment_{index + 1}", "m", 5.0, 0.01, read, moved)


def _origins(name: str, body: str) -> list[SystemParameter]:
    """Recorded point of a body."""
    return _vector(
        name,
        "m",
        0.2,
        0.01,
        lambda at: at.spec.offset_m(body),
        lambda at, by: _with_offset(at, body, by),
    )


def _with_offset(setup: Setup, body: str, by: Array) -> Setup:
    offsets = {**setup.spec.offsets_m, body: _sum(setup.spec.offset_m(body), by)}
    return replace(setup, spec=replace(setup.spec, offsets_m=offsets))


def _com_shifted(setup: Setup, by: Array) -> Setup:
    """Everything of the load but its centre of mass moves the other way in the load's frame."""
    load = setup.system.load
    with_load = _with_load(
        setup,
        cable_attachments_m=tuple(_sum(p, -by) for p in load.cable_attachments_m),
        collision=replace(load.collision, center_m=_sum(load.collision.center_m, -by)),
    )
    return _with_offset(with_load, "load", -by)


def _load_turned(setup: Setup, by: Array) -> Setup:
    tilt = _sum(setup.spec.load_tilt_rad, by)
    return replace(setup, spec=replace(setup.spec, load_tilt_rad=tilt))


def _inertia_scaled(setup: Setup, factor: float) -> Setup:
    inertia = factor * np.array(setup.system.load.inertia_kg_m2)
    return _with_load(setup, shape=None, inertia_kg_m2=tuple(map(tuple, inertia.tolist())))


def _sum(vector: Sequence[float] | Array, by: Array) -> Vector:
    x, y, z = (np.asarray(vector) + by).tolist()
    return x, y, z
