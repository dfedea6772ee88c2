"""Noise of the worlds of a batch, drawn in compiled code from the streams of single flights.

The states of a world's generators, PCG64 of NumPy, are numbers in its memory like all others.
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
from musls_description.numerics.records import grid_at, vector_at
from musls_sim.sensors.estimation import SensorNoise
from musls_sim.session.compiled_stages.world import world_at
from musls_sim.session.compose import streams

STREAMS = GUSTS, DRONES, LUCK, LOAD, CELLS, JITTER = range(6)
"""Rows of a world's streams, each the state and the increment of a generator, low words first."""

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
        wide, word = ir.IntType(128), ir.IntType(64)
        at = builder.inttoptr(arguments[0], wide.as_pointer())
        before, increment = (builder.load(builder.gep(at, [word(k)]), align=8) for k in (0, 1))
        state = builder.add(builder.mul(before, wide(MULTIPLIER)), increment)
        builder.store(state, at, align=8)
        high = builder.trunc(builder.lshr(state, wide(64)), word)
        mixed = builder.xor(high, builder.trunc(state, word))
        turn = builder.lshr(high, word(58))
        left = builder.shl(mixed, builder.and_(builder.neg(turn), word(63)))
        return builder.or_(builder.lshr(mixed, turn), left)

    return types.uint64(types.int64), generate


@partial(CompiledStage, gives=types.uint64)
def next_uint64(stream):
    """Next word of a stream."""
    return next_word(stream)


@partial(CompiledStage, gives=types.float64)
def next_double(stream):
    """Next number of a stream in [0, 1)."""
    return (next_word(stream) >> np.uint64(11)) * 2.0**-53


def generator() -> NDArray[np.int64]:
    """`bitgen_t` of NumPy's C functions, but for its first word, the address of a stream."""
    word = next_uint64.address
    return np.array([0, word, 0, next_double.address, word])  # no function here asks for 32 bits


def streams_of(seed: int) -> NDArray[np.uint64]:
    """Streams of a world's noise at its start, as in a session."""
    gusts, mocap, _, jitter = streams(seed)
    (cells,) = jitter.spawn(1)
    sensors = SensorNoise(mocap, lossy=True, with_load=True).generators
    states = [
        one.bit_generator.state["state"]
        for one in (gusts, sensors["drones"], sensors["luck"], sensors["load"], cells, jitter)
    ]
    numbers = [one[name].to_bytes(16, "little") for one in states for name in ("state", "inc")]
    return np.frombuffer(b"".join(numbers), np.uint64).reshape(len(STREAMS), 4)


@compiled()
def drawing_from(generator, streams, which):
    """Have a generator draw from one of a world's streams; returns its address."""
    generator[0] = streams + 32 * which
    return generator.ctypes.data


@compiled()
def begin_gusts(fill_normal, generator, addresses, deviation):
    """Begin the wind of worlds, as `Wind`; `deviation` of gusts is (3,)."""
    for at in addresses:
        w = world_at(at)
        fill_normal(drawing_from(generator, at + w.streams, GUSTS), 3, at + w.gust)
        wind, mean, gust = vector_at(w, w.wind), vector_at(w, w.mean_wind), vector_at(w, w.gust)
        for k in range(3):
            gust[k] *= deviation[k]
            wind[k] = mean[k] + gust[k]


@compiled()
def draw(fill_normal, fill_uniform, generator, address, apart, count, periods):
    """Draw the noise of the next periods of worlds, as `Wind` and `SensorNoise`.

    `address` of the first world, `apart` in bytes; at most as many `periods` as there is room for.
    The addresses of `FILL_NORMAL`, `FILL_UNIFORM` and in `generator()`, which each thread has for
    itself, are arguments since they differ from process to process.
    """
    for i in range(count):
        at = address + i * apart
        w = world_at(at)
        w.drawn, streams = 0, at + w.streams
        if w.finished != 0 or w.failed != 0:
            continue
        if w.gusty != 0:
            gusts = drawing_from(generator, streams, GUSTS)
            fill_normal(gusts, 3 * periods, at + w.gusts_ahead)
            changes = grid_at(w, w.gusts_ahead, periods, 3)
            for p in range(periods):
                for k in range(3):
                    changes[p, k] *= w.gust_scale[k]
        if w.n_cells > 0:
            cells = drawing_from(generator, streams, CELLS)
            fill_normal(cells, 2 * w.n_cells * periods, at + w.cells_ahead)
        if w.jitters != 0:
            jitter = drawing_from(generator, streams, JITTER)
            fill_uniform(jitter, w.n_drones * periods, at + w.jitter_ahead)
        if w.first < 0 and w.deviation == 0.0:
            continue
        row = at + w.noise_ahead  # of `NOISE`, 13 numbers
        for _ in range(periods):
            if w.first < 0:
                fill_normal(drawing_from(generator, streams, DRONES), 12, row)
            elif w.first == 0:
                fill_normal(drawing_from(generator, streams, LOAD), 6, row + 8 * 6)
            row += 8 * 13
            for _ in range(w.n_drones):
                fill_normal(drawing_from(generator, streams, DRONES), 12, row)
                if w.first >= 0:  # where no sample is lost, too: worlds go on from each other
                    fill_uniform(drawing_from(generator, streams, LUCK), 1, row + 8 * 12)
                row += 8 * 13
