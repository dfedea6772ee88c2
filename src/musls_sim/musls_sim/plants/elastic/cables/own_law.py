"""A user's cable law, compiled from its file.

The elastic cables call it by its address, so that nothing of ours is compiled anew for it.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from dataclasses import fields
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
import scipy
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from musls_description.config.errors import ConfigError, near_names
from musls_description.config.registry import file_of
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import compiled
from musls_description.numerics.records import memory_at, record_at
from musls_description.system.cable_law import CableLaw

MOST_NUMBERS = 4
"""Numbers that a segment may remember."""

LONG_S = 1e9
"""Time after which a segment at rest is taken as settled."""

LARGEST_STRAIN = 0.5
"""Up to which a law is tried out before a flight."""


class Places(NamedTuple):
    """Addresses of a law's compiled function and of its parameters."""

    function: int
    parameters: int


def places(law: CableLaw) -> Places:
    """Compile a law, once per class, and keep its parameters in memory.

    Raises:
        ConfigError: It cannot be compiled, is no axial law, or remembers too much.
    """
    kind: Any = type(law)
    return Places(_compiled(kind).address, _parameters(law).ctypes.data)


def strain_at_rest(law: CableLaw, tension_n: float) -> float:
    """Strain at which a settled line carries a tension."""
    at = places(law)
    far = 0.01
    while settled_tension(*at, far) < tension_n and far < LARGEST_STRAIN:
        far *= 2.0

    def excess(strain: float) -> float:
        return float(settled_tension(*at, strain)) - tension_n

    if excess(far) < 0.0:
        raise ConfigError(f"{_named(type(law))} gives less than {tension_n:.4g} N up to {far:.0%}")
    return float(scipy.optimize.brentq(excess, 0.0, far, xtol=1e-15))


def stiffness_at_rest(law: CableLaw) -> float:
    """Force per strain of a settled line at small strains [N]; tries the law out."""
    at = places(law)
    name = _named(type(law))
    strains = np.linspace(0.0, 0.02, 9)
    forces = np.array([settled_tension(*at, strain) for strain in strains])
    for strain, force in zip(strains, forces, strict=True):
        if not np.isfinite(force):
            raise ConfigError(f"{name} gives {force} N at strain {strain:g}: must be finite")
    if abs(forces[0]) > 1e-6 * abs(forces[-1]):
        raise ConfigError(f"{name} gives {forces[0]:.4g} N at strain 0: must be 0")
    if (np.diff(forces) <= 0.0).any():
        k = int(np.argmax(np.diff(forces) <= 0.0))
        raise ConfigError(
            f"{name} gives {forces[k + 1]:.4g} N at strain {strains[k + 1]:g} after "
            f"{forces[k]:.4g} N at {strains[k]:g}, at rest: must increase"
        )
    return float(forces[1] / strains[1])


def _named(kind: Any) -> str:
    line = inspect.getsourcelines(kind.tension)[1]
    return f"{file_of(kind)}, line {line}: {kind.__name__}.tension"


def _numbers(kind: type) -> list[str]:
    """Fields of a law that are numbers; not `kind`."""
    return [f.name for f in fields(kind) if f.name != "kind"]


@cache
def _parameters(law: CableLaw) -> Array:
    """Numbers of a law for compiled code, kept as long as the program runs."""
    values = [getattr(law, name) for name in _numbers(type(law))]
    if any(not isinstance(value, (bool, int, float)) for value in values):
        raise ConfigError(f"{file_of(type(law))}: {type(law).__name__}: fields must be numbers")
    return np.array([*values, 0.0], float)


@cache
def _compiled(kind: Any) -> Any:
    """The law as a C function of addresses and numbers, which returns the tension."""
    names = kind.remembered
    if len(names) > MOST_NUMBERS:
        raise ConfigError(
            f"{file_of(kind)}: {kind.__name__}.remembered has {len(names)} names: at most "
            f"{MOST_NUMBERS} are allowed"
        )
    _check_names(kind)
    law_type = _record_of(_numbers(kind))
    memory_type = _record_of(names)
    own = numba.njit(error_model="numpy", nogil=True)(kind.tension)

    def tension(law, before, after, strain, strain_rate, dt, energy):
        result, stored_energy = own(
            record_at(law, law_type),
            record_at(before, memory_type),
            record_at(after, memory_type),
            strain,
            strain_rate,
            dt,
        )
        memory_at(energy, 1)[0] = stored_energy
        return result

    address = types.intp
    number = types.float64
    signature = number(address, address, address, number, number, number, address)
    try:
        return numba.cfunc(signature, error_model="numpy", nogil=True)(tension)
    except Exception as error:  # numba fails at some code with errors of Python's
        raise ConfigError(_one_line(kind, str(error))) from error


def _record_of(names: Any) -> np.dtype[Any]:
    return np.dtype([(name, float) for name in [*names, "_"]], align=True)


def _check_names(kind: Any) -> None:
    """Refuse a name that `law`, `before` or `after` do not have; numba tells no line of it."""
    try:
        lines, first = inspect.getsourcelines(kind.tension)
    except OSError:  # written where no file is
        return
    tree = ast.parse(textwrap.dedent("".join(lines)))
    law, *memory = list(inspect.signature(kind.tension).parameters)[:3]
    names_of = {law: _numbers(kind), **dict.fromkeys(memory, kind.remembered)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Raise, ast.Assert)):
            raise ConfigError(
                f"{file_of(kind)}, line {first + node.lineno - 1}: {kind.__name__}.tension: a law "
                "cannot raise, since compiled code calls it: return NaN"
            )
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names = names_of.get(node.value.id)
            if names is not None and node.attr not in names:
                raise ConfigError(
                    f"{file_of(kind)}, line {first + node.lineno - 1}: {kind.__name__}.tension: "
                    f"{node.value.id} has no '{node.attr}': {near_names(node.attr, names)}"
                )


def _one_line(kind: type, text: str) -> str:
    """Message of the compiler, with the line of the user's file that it means."""
    file = file_of(kind)
    name = re.escape(re.split(r"[\\/]", file)[-1])
    lines = re.findall(rf'{name}(?:", line |\D{{1,3}})(\d+)', text)
    place = f"{file}, line {lines[-1]}" if lines else file
    messages = [line.strip() for line in text.splitlines()]
    messages = [
        line
        for line in messages
        if line and not line.startswith(("Failed in", "During", "File ", "["))
    ]
    return (
        f"{place}: {kind.__name__}.tension cannot be compiled: {messages[0] if messages else text}"
    )


# ---------- Called from compiled code


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def call(typing_context, function, law, before, after, strain, strain_rate, dt, energy):
    """Call the C function of a law at its address."""
    address = types.intp
    number = types.float64

    def generate(context, builder, signature, arguments):
        kind = ir.FunctionType(ir.DoubleType(), [value.type for value in arguments[1:]])
        place = builder.inttoptr(arguments[0], kind.as_pointer())
        return builder.call(place, arguments[1:])

    parameters = address, address, address, address, number, number, number, address
    return number(*parameters), generate


@compiled()
def settled_tension(function, parameters, strain):
    """Tension of a line that has been at rest for long [N]."""
    before = np.zeros(8)
    after = np.zeros(8)
    energy = np.zeros(1)
    return call(
        function,
        parameters,
        before.ctypes.data,
        after.ctypes.data,
        strain,
        0.0,
        LONG_S,
        energy.ctypes.data,
    )
