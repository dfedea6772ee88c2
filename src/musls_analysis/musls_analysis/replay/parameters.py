"""What a fit may change: physical parameters of the system, and what the recorded poses are of.

Each has a name, a unit, bounds, and a way to be read from and put into a `Setup`. Parameters that
belong to several bodies (`length`, `attachment_x`) change all of them alike and keep their
differences; with a number (`length_2`, `attachment_2_x`) they change one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from musls_analysis.replay.motion import DRONES, ReplaySpec
from musls_description.drone import Drone
from musls_description.errors import ConfigError, near_names
from musls_description.system import Cable, SlungLoadSystem
from musls_sim.plants.elastic.start import line_of

AXES = "xyz"

OF_ELASTIC = ("ea", "axial_damping")
"""What only elastic cables have."""

OF_LINKS = ("damping", "stiffness", "friction")
"""What only cables of links have."""


@dataclass(frozen=True)
class Setup:
    """What a replay is run with."""

    system: SlungLoadSystem
    spec: ReplaySpec


@dataclass(frozen=True)
class Parameter:
    """One number of a setup.

    Attributes:
        name: As the user writes it.
        unit: Its unit, "" for a factor.
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
"""What may be fitted. A group with x y z stands for its three components (`load_com_z` for one)."""


def parameters(names: Iterable[str], setup: Setup) -> list[Parameter]:
    """Look parameters up.

    Args:
        names: Of groups or single parameters.
        setup: Where the fit starts; length and rope_mass take their bounds from it.

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
    n = range(setup.system.n_drones)
    made = [
        *_joint_parameters(),
        *_line_parameters(),
        _cable_parameter("length", "length_m", (0.9, 1.1), 0.02, n, setup),
        *(_cable_parameter(f"length_{i + 1}", "length_m", (0.9, 1.1), 0.02, [i], setup) for i in n),
        _cable_parameter("rope_mass", "mass_kg", (0.1, 10.0), 0.3, n, setup, log=True),
        *_attachments("attachment", n),
        *(p for i in n for p in _attachments(f"attachment_{i + 1}", [i])),
        *_origins("load_origin", "load"),
        *_origins("drone_origin", DRONES),
        *(p for i in n for p in _origins(f"drone_origin_{i + 1}", f"drone_{i + 1}")),
        *(_load_com(axis) for axis in range(3)),
        *(_load_tilt(axis) for axis in range(3)),
        Parameter("load_inertia", "", 0.2, 5.0, 0.2, lambda _: 1.0, _scale_inertia, log=True),
        Parameter("load_drag", "N s/m", 1e-3, 2.0, 0.3, _drag, _put_drag, log=True),
        Parameter(
            "load_delay", "s", -0.3, 0.3, 0.02,
            lambda s: s.spec.load_delay_s,
            lambda s, v: replace(s, spec=replace(s.spec, load_delay_s=v)),
        ),
    ]  # fmt: skip
    return {parameter.name: parameter for parameter in made}


def _with_cables(setup: Setup, change: Callable[[Cable], Cable], which: Sequence[int]) -> Setup:
    cables = tuple(change(c) if i in which else c for i, c in enumerate(setup.system.cables))
    return replace(setup, system=dataclasses.replace(setup.system, cables=cables))


def _cable_parameter(
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
        return _with_cables(
            at, lambda c: dataclasses.replace(c, **{field: getattr(c, field) * factor}), which
        )

    unit = "m" if field.endswith("_m") else "kg"
    lower, upper = (factor * read(setup) for factor in factors)
    return Parameter(name, unit, lower, upper, scale, read, put, log)


def _joint_parameters() -> list[Parameter]:
    def make(name: str, unit: str, lower: float, upper: float) -> Parameter:
        field = f"{name}_{unit.replace(' ', '_').replace('/', '_').lower()}"

        def value(cable: Cable) -> float:
            return (
                cable.joint_damping_n_m_s_rad if name == "damping" else getattr(cable.joint, field)
            )

        def read(at: Setup) -> float:
            return float(np.mean([value(cable) for cable in at.system.cables]))

        def put(at: Setup, wanted: float) -> Setup:
            def change(cable: Cable) -> Cable:
                key, new = field, wanted
                if name == "damping" and cable.joint.bending_damping_n_m2_s is not None:
                    key, new = "bending_damping_n_m2_s", wanted * cable.link_length_m
                return dataclasses.replace(
                    cable, joint=dataclasses.replace(cable.joint, **{key: new})
                )

            return _with_cables(at, change, range(at.system.n_drones))

        return Parameter(name, unit, lower, upper, 0.5, read, put, log=True)

    return [
        make("damping", "N m s/rad", 1e-5, 0.1),
        make("stiffness", "N m/rad", 1e-4, 1.0),
        make("friction", "N m", 1e-6, 0.02),
    ]


def _line_parameters() -> list[Parameter]:
    """Material of elastic cables; all cables get the same."""

    def make(name: str, unit: str, lower: float, upper: float, field: str) -> Parameter:
        def read(at: Setup) -> float:
            lines = (line_of(cable.elastic) for cable in at.system.cables)
            return float(np.mean([getattr(line, field) for line in lines]))

        def put(at: Setup, value: float) -> Setup:
            def change(cable: Cable) -> Cable:
                if field == "ea_n" and cable.elastic.law is not None:
                    raise ConfigError("ea cannot be fitted to cables with a table (elastic.law)")
                new: dict[str, Any] = {field: value}
                line = dataclasses.replace(cable.elastic, **new)
                return dataclasses.replace(cable, elastic=line)

            return _with_cables(at, change, range(at.system.n_drones))

        return Parameter(name, unit, lower, upper, 0.5, read, put, log=True)

    return [
        make("ea", "N", 1e2, 1e6, "ea_n"),
        make("axial_damping", "N s", 0.1, 1e5, "damping_n_s"),
    ]


def _attachments(name: str, which: Sequence[int]) -> list[Parameter]:
    def make(axis: int) -> Parameter:
        def read(at: Setup) -> float:
            return float(np.mean([at.system.drones[i].cable_attachment_m[axis] for i in which]))

        def put(at: Setup, value: float) -> Setup:
            shift = value - read(at)

            def change(drone: Drone) -> Drone:
                moved = _moved(drone.cable_attachment_m, axis, shift)
                return dataclasses.replace(drone, cable_attachment_m=moved)

            drones = tuple(change(d) if i in which else d for i, d in enumerate(at.system.drones))
            return replace(at, system=dataclasses.replace(at.system, drones=drones))

        return Parameter(f"{name}_{AXES[axis]}", "m", -0.2, 0.2, 0.01, read, put)

    return [make(axis) for axis in range(3)]


def _origins(name: str, body: str) -> list[Parameter]:
    def make(axis: int) -> Parameter:
        def read(at: Setup) -> float:
            return float(at.spec.offset_m(body)[axis])

        def put(at: Setup, value: float) -> Setup:
            offset = _moved(tuple(at.spec.offset_m(body)), axis, value - read(at))
            offsets = {**at.spec.offsets_m, body: offset}
            return replace(at, spec=replace(at.spec, offsets_m=offsets))

        return Parameter(f"{name}_{AXES[axis]}", "m", -0.2, 0.2, 0.01, read, put)

    return [make(axis) for axis in range(3)]


def _load_com(axis: int) -> Parameter:
    """Everything of the load but its centre of mass moves the other way in the load's frame."""

    def put(at: Setup, value: float) -> Setup:
        load = at.system.load
        box = load.collision
        moved = dataclasses.replace(
            load,
            cable_attachments_m=tuple(_moved(p, axis, -value) for p in load.cable_attachments_m),
            collision=dataclasses.replace(box, center_m=_moved(box.center_m, axis, -value)),
        )
        origin = _moved(tuple(at.spec.offset_m("load")), axis, -value)
        spec = replace(at.spec, offsets_m={**at.spec.offsets_m, "load": origin})
        return Setup(dataclasses.replace(at.system, load=moved), spec)

    return Parameter(f"load_com_{AXES[axis]}", "m", -0.1, 0.1, 0.005, lambda _: 0.0, put)


def _load_tilt(axis: int) -> Parameter:
    def put(at: Setup, value: float) -> Setup:
        tilt = _moved(at.spec.load_tilt_rad, axis, value - at.spec.load_tilt_rad[axis])
        return replace(at, spec=replace(at.spec, load_tilt_rad=tilt))

    return Parameter(
        f"load_tilt_{AXES[axis]}", "rad", -0.5, 0.5, 0.05,
        lambda s: s.spec.load_tilt_rad[axis], put,
    )  # fmt: skip


def _scale_inertia(setup: Setup, factor: float) -> Setup:
    load = setup.system.load
    x, y, z = (_scaled(row, factor) for row in load.inertia_kg_m2)
    return replace(
        setup,
        system=dataclasses.replace(
            setup.system, load=dataclasses.replace(load, shape=None, inertia_kg_m2=(x, y, z))
        ),
    )


def _drag(setup: Setup) -> float:
    return float(np.mean(setup.system.load.drag_n_s_m))


def _put_drag(setup: Setup, value: float) -> Setup:
    load = dataclasses.replace(setup.system.load, drag_n_s_m=(value,) * 3)
    return replace(setup, system=dataclasses.replace(setup.system, load=load))


def _moved(vector: Sequence[float], axis: int, by: float) -> tuple[float, float, float]:
    moved = [float(value) for value in vector]
    moved[axis] += by
    x, y, z = moved
    return x, y, z


def _scaled(vector: Sequence[float], factor: float) -> tuple[float, float, float]:
    x, y, z = vector
    return factor * x, factor * y, factor * z
