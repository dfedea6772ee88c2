"""Noise of the worlds of a batch, drawn in compiled code from the streams of single flights."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from musls_description.numerics.compiled import compiled
from musls_description.numerics.records import grid_at
from musls_sim.scenario.scenario import Scenario
from musls_sim.sensors.estimation import SensorNoise
from musls_sim.session.compiled_stages.world import world_at
from musls_sim.session.compose import streams
from musls_sim.specs.estimation import MotionCaptureSpec
from musls_sim.wind import Wind

STREAM = np.dtype(
    [
        ("gusts", np.int64),
        ("drones", np.int64),
        ("luck", np.int64),
        ("load", np.int64),
        ("cells", np.int64),
        ("jitter", np.int64),
    ]
)
"""Addresses of a world's generators (`bitgen_t` of NumPy), 0 for none."""


# NumPy documents how its C functions are called in "Extending via CFFI"; numba calls them without
# Python's lock, and gets their addresses with each call, so that it keeps what it compiled.
def _filling(name: str) -> Any:
    function = ctypes.CDLL(np.random._generator.__file__)[name]
    function.argtypes = ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_void_p
    function.restype = None
    return function


FILL_NORMAL = _filling("random_standard_normal_fill")
FILL_UNIFORM = _filling("random_standard_uniform_fill")


@compiled()
def draw(fill_normal, fill_uniform, streams, address, apart, periods):
    """Draw the noise of the next periods of worlds that lie `apart`, as `Wind` and `SensorNoise`.

    `streams`: (worlds,) of `STREAM`; `address` of the first world, `apart` in bytes; at most as
    many `periods` as there is room for. The addresses of `FILL_NORMAL` and `FILL_UNIFORM` are
    arguments since they differ from process to process.
    """
    for i in range(len(streams)):
        at, stream = address + i * apart, streams[i]
        w = world_at(at)
        w.drawn = 0
        if w.finished != 0 or w.failed != 0:
            continue
        if w.gusty != 0:
            fill_normal(stream.gusts, 3 * periods, at + w.gusts_ahead)
            changes = grid_at(w, w.gusts_ahead, periods, 3)
            for p in range(periods):
                for k in range(3):
                    changes[p, k] *= w.gust_scale[k]
        if w.n_cells > 0:
            fill_normal(stream.cells, 2 * w.n_cells * periods, at + w.cells_ahead)
        if w.jitters != 0:
            fill_uniform(stream.jitter, w.n_drones * periods, at + w.jitter_ahead)
        if stream.drones == 0:
            continue
        row = at + w.noise_ahead  # of `NOISE`, 13 numbers
        for _ in range(periods):
            if w.first < 0:
                fill_normal(stream.drones, 12, row)
            elif stream.load != 0:
                fill_normal(stream.load, 6, row + 8 * 6)
            row += 8 * 13
            for _ in range(w.n_drones):
                fill_normal(stream.drones, 12, row)
                if stream.luck != 0:
                    fill_uniform(stream.luck, 1, row + 8 * 12)
                row += 8 * 13


class Noise:
    """Generators of a world's noise, as in a session.

    Attributes:
        stream: For `draw`, a row of `STREAM`.
    """

    def __init__(
        self, scenario: Scenario, period_s: float, seed: int, *, with_load: bool = False
    ) -> None:
        """`with_load`: the load's motion is estimated, too."""
        self._wind, self._period_s, estimation = scenario.wind, period_s, scenario.estimation
        gusts, mocap, _, jitter = streams(seed)
        (cells,) = jitter.spawn(1)
        self._generators = {"gusts": gusts}
        if any(cable.load_cell is not None for cable in scenario.system.cables):
            self._generators["cells"] = cells
        if scenario.imperfections.setpoint_jitter_s > 0.0:
            self._generators["jitter"] = jitter
        if not isinstance(estimation, MotionCaptureSpec):
            if estimation.noise > 0.0:
                self._generators["drones"] = mocap
        else:
            # Luck is drawn where no sample is lost, too, so that worlds can go on from each other.
            self._generators |= SensorNoise(mocap, lossy=True, with_load=with_load).generators
        self.stream = np.zeros(1, STREAM)[0]
        for name, generator in self._generators.items():
            self.stream[name] = generator.bit_generator.ctypes.bit_generator.value

    @property
    def state(self) -> dict[str, Any]:
        """State of the generators; that of another world can be set."""
        return {name: g.bit_generator.state for name, g in self._generators.items()}

    @state.setter
    def state(self, state: dict[str, Any]) -> None:
        for name, generator in self._generators.items():
            generator.bit_generator.state = state[name]

    def begin(self) -> Wind:
        """The wind at the start of a flight."""
        return Wind(self._wind, self._period_s, self._generators["gusts"])
