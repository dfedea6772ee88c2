"""Controllers of the load in compiled code: in each period they write what is commanded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import carray
from numpy.typing import NDArray

from musls_control.controllers import Controller
from musls_control.controllers.payload.cable_law import LAW as CABLE_LAW
from musls_control.controllers.payload.cable_law import commands_of, payload_step
from musls_control.controllers.payload.controller import PayloadController, RodController
from musls_control.controllers.payload.load_law import LOAD, attitude_reference
from musls_control.controllers.payload.rods import rod_commands
from musls_control.controllers.rotortm import (
    DRONE,
    LAW,
    RotorTmCables,
    RotorTmRods,
    cable_commands,
    structure_commands,
)
from musls_control.estimate import MOTION
from musls_control.reference import Reference
from musls_description.numerics.arrays import Array
from musls_description.numerics.compiled import CompiledStage, compiled
from musls_description.numerics.records import address_of, beyond, pointer, record_beyond
from musls_description.numerics.vectors import put
from musls_sim.session.compiled_stages.world import asked_of, world_at

COLUMNS = 30
"""Of a `LoadReference`: derivatives of position and yaw, (5, 4), then of the tilt, (5, 2)."""

PARTS = ("law", "law_drones", "law_shares")
"""Arrays of `WORLD` that a law works on."""


class Law(NamedTuple):
    """A controller in compiled code.

    Attributes:
        fly: Writes what is commanded.
        arrays: What it works on, by `PARTS`.
    """

    fly: CompiledStage
    arrays: dict[str, NDArray[Any]]


def has_law(controller: Controller) -> bool:
    """Whether there is compiled code for a controller; a class derived from ours has its own."""
    return type(controller) in (PayloadController, RodController, RotorTmCables, RotorTmRods)


def law_of(controller: Controller) -> Law:
    """The law of a controller that has taken over."""
    match controller:
        case PayloadController():
            return Law(fly_payload, {"law": controller.memory})
        case RodController():
            shares = controller.structure.shares
            return Law(fly_payload_rods, {"law": _record(controller.load), "law_shares": shares})
        case RotorTmCables():
            law, drones = _record(controller.constants), controller.drones
            arrays = {"law": law, "law_drones": drones, "law_shares": controller.shares}
            return Law(fly_rotortm, arrays)
        case RotorTmRods():
            arrays = {"law": _record(controller.constants), "law_shares": controller.shares}
            return Law(fly_rotortm_rods, arrays)
    raise TypeError(f"{type(controller).__name__} has no compiled code: see has_law")


def _record(one: np.void) -> NDArray[np.void]:
    return np.asarray(one).reshape(1)


def sampled(reference: Reference, period_s: float, duration_s: float) -> Array:
    """The load's reference at each period of a flight, (periods, `COLUMNS`)."""
    stepped = reference.stepped(period_s)
    each = (stepped.at(tick) for tick in range(round(duration_s / period_s) + 2))
    return np.array([[*now.derivatives.ravel(), *now.tilt.ravel()] for now in each])


@compiled()
def reference_of(w):
    """The load's reference now: derivatives 0 to 4 of x, y, z, yaw and of roll, pitch."""
    in_plan = max(w.tick - round(w.begun / w.period), 0)
    row = w.reference + 8 * COLUMNS * min(in_plan, w.reference_rows - 1)
    tilt = carray(pointer(row + 8 * 20), (5, 2), np.float64)
    return carray(pointer(row), (5, 4), np.float64), tilt


@compiled()
def bodies_of(w):
    """Estimated motion of load and drones."""
    return carray(beyond(w, w.estimate), (1 + w.n_drones,), MOTION)


@CompiledStage
def fly_payload(address):
    """Forces, yaws and moments of `PayloadController`."""
    w = world_at(address)
    asked, (reference, tilt) = asked_of(w), reference_of(w)
    payload_step(address_of(w) + w.law, bodies_of(w), reference, tilt)
    commands = commands_of(record_beyond(w, w.law, CABLE_LAW))
    for k in range(w.n_drones):
        put(asked[k], commands[k].force)
        asked[k, 3] = commands[k].yaw
        put(asked[k, 4:], commands[k].moment)


@CompiledStage
def fly_payload_rods(address):
    """Thrusts and moments of `RodController`."""
    w = world_at(address)
    shares = carray(beyond(w, w.law_shares), (4 * w.n_drones, 4), np.float64)
    law = carray(beyond(w, w.law), (1,), LOAD)[0]
    rod_commands(law, bodies_of(w)[0], reference_of(w)[0], shares, asked_of(w)[:, :4])


@CompiledStage
def fly_rotortm(address):
    """Thrusts and moments of `RotorTmCables`."""
    w = world_at(address)
    law = carray(beyond(w, w.law), (1,), LAW)[0]
    drones = carray(beyond(w, w.law_drones), (w.n_drones,), DRONE)
    shares = carray(beyond(w, w.law_shares), (3 * w.n_drones, 6), np.float64)
    reference, tilt = reference_of(w)
    attitude_reference(law.load, reference, tilt)
    cable_commands(law, drones, shares, bodies_of(w), reference, asked_of(w)[:, :4])


@CompiledStage
def fly_rotortm_rods(address):
    """Thrusts and moments of `RotorTmRods`."""
    w = world_at(address)
    law = carray(beyond(w, w.law), (1,), LAW)[0]
    shares = carray(beyond(w, w.law_shares), (4 * w.n_drones, 4), np.float64)
    structure_commands(law, shares, bodies_of(w)[0], reference_of(w)[0], asked_of(w)[:, :4])
