"""Noise of a world, drawn in compiled code for each period.

The states of its generators, PCG64 of NumPy, are numbers in its memory like all others.
"""

from __future__ import annotations

import ctypes
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from musls_description.numerics.compiled import CompiledStage, compiled
from musls_description.numerics.layout import follow
from musls_description.numerics.records import address_of
from musls_sim.sensors.estimation import sensor_noise
from musls_sim.session.compiled_stages import fields
from musls_sim.session.compiled_stages.fields import CELLS, DRONES, GUSTS, JITTER, LOAD, LUCK
from musls_sim.session.compiled_stages.world import world_at
from musls_sim.session.compose import streams

MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645


# NumPy documents how its C functions are called in "Extending via CFFI"; numba calls them without
# Python's lock, and gets their addresses with each call, so that it keeps what it compiled.
def _filling(name: str) -> Any:
    function = ctypes.CDLL(np.random._generator.__file__)[name]
    function.argtypes = ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p
    function.restype = None
    return function


FILL_NORMAL = _filling("random_standard_normal_fill")
FILL_UNIFORM = _filling("random_standard_uniform_fill")


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def next_word(typing_context, stream):
    """Step the generator whose row of `STREAMS` is at an address (PCG XSL RR, O'Neill 2014)."""

    def generate(context, builder, signature, arguments):
        wide = ir.IntType(128)
        word = ir.IntType(64)
        at = builder.inttoptr(arguments[0], wide.as_pointer())
        before, increment = (builder.load(builder.gep(at, [word(k)]), align=8) for k in (0, 1))
        state = builder.add(builder.mul(before, wide(MULTIPLIER)), increment)
        builder.store(state, at, align=8)
        high = builder.trunc(builder.lshr(state, wide(64)), word)
        mixed = builder.xor(high, builder.trunc(state, word))
        turn = builder.lshr(high, word(58))
        upper = builder.shl(mixed, builder.and_(builder.neg(turn), word(63)))
        return builder.or_(builder.lshr(mixed, turn), upper)

    return types.uint64(types.int64), generate


@partial(CompiledStage, gives=types.uint64)
def next_uint64(stream):
    """Next word of a stream."""
    return next_word(stream)


@partial(CompiledStage, gives=types.float64)
def next_double(stream):
    """Next number of a stream in [0, 1)."""
    return (next_word(stream) >> np.uint64(11)) * 2.0**-53


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def call_filling(typing_context, function, generator, count, out):
    """Call a function of NumPy's at an address: fill numbers at another one."""

    def generate(context, builder, signature, arguments):
        word = ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [word] * 3).as_pointer()
        builder.call(builder.inttoptr(arguments[0], kind), arguments[1:])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), generate


def generator() -> NDArray[np.int64]:
    """Addresses of what draws, in this process: two functions, and `bitgen_t` of NumPy's C code.

    The first word of the latter is the address of the stream that is drawn from.
    """
    fill = [ctypes.cast(one, ctypes.c_void_p).value or 0 for one in (FILL_NORMAL, FILL_UNIFORM)]
    word = next_uint64.address
    return np.array([*fill, 0, word, 0, next_double.address, word])  # none asks for 32 bits


def numbers_of(generator: np.random.Generator) -> NDArray[np.uint64]:
    """Row of `STREAMS` of a generator: its state and increment, low words first, (4,)."""
    now: Any = generator.bit_generator.state["state"]
    words = b"".join(now[name].to_bytes(16, "little") for name in ("state", "inc"))
    return np.frombuffer(words, np.uint64)


OWNERS = (
    "components.wind.generator",
    "components.estimator.generators.drones",
    "components.estimator.generators.luck",
    "components.estimator.generators.load",
    "load_cells.generator",
    "setpoint_link.generator",
)
"""Owners of the generators of `STREAMS` in a session."""


def streams_in(session: object) -> NDArray[np.uint64]:
    """Streams of a session's noise; zeros where it draws none."""
    generators = (follow(session, owner) for owner in OWNERS)
    return np.array(
        [np.zeros(4, np.uint64) if one is None else numbers_of(one) for one in generators]
    )


def streams_of(seed: int) -> NDArray[np.uint64]:
    """Streams of a world's noise at its start, as in a session."""
    gusts, mocap, _, jitter = streams(seed)
    (cells,) = jitter.spawn(1)
    sensors = sensor_noise(mocap)
    every = gusts, sensors["drones"], sensors["luck"], sensors["load"], cells, jitter
    return np.array([numbers_of(one) for one in every])


@compiled()
def draw(w, which, normal, place, count):
    """Draw numbers of one of a world's streams, normal or uniform ones, to a place in its memory.

    `place`: in bytes from the record.
    """
    at = address_of(w)
    functions = fields.generator(w)
    functions[2] = at + w.streams + 32 * which
    function = functions[0] if normal else functions[1]
    call_filling(function, at + w.generator + 16, count, at + place)


@CompiledStage
def begin_gust(address):
    """Begin the wind of a world, as `Wind`."""
    w = world_at(address)
    wind = fields.wind(w)
    mean = fields.mean_wind(w)
    gust = fields.gust(w)
    draw(w, GUSTS, True, w.gust, 3)
    for k in range(3):
        gust[k] *= w.gust_std[k]
        wind[k] = mean[k] + gust[k]


@CompiledStage
def draw_noise(address):
    """Draw the noise of a period: of gusts, sensors, load cells and late set-points."""
    w = world_at(address)
    if w.steady == 0:
        change = fields.gust_noise(w)
        draw(w, GUSTS, True, w.gust_noise, 3)
        for k in range(3):
            change[k] *= w.gust_scale[k]
    if w.n_cells > 0:
        draw(w, CELLS, True, w.cell_noise, 2 * w.n_cells)
    if w.jitters != 0:
        draw(w, JITTER, False, w.jitter, w.n_drones)
    if w.first < 0 and w.deviation == 0.0:
        return
    if w.first < 0:
        draw(w, DRONES, True, w.noise, 12)
    elif w.first == 0:
        draw(w, LOAD, True, w.noise + 8 * 6, 6)
    for i in range(1, w.n_bodies):
        row = w.noise + 8 * 13 * i
        draw(w, DRONES, True, row, 12)
        if w.first >= 0:  # where no sample is lost, too: worlds go on from each other
            draw(w, LUCK, False, row + 8 * 12, 1)
