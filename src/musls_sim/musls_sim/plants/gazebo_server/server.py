"""A Gazebo Harmonic server in this process, by Gazebo's own Python bindings.

The server runs the systems of the world file (for us: the physics alone). Links get their forces
before each step and are read after it, in callbacks of the server, so that nothing is lost to
transport or threads.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from musls_description.errors import ConfigError

Array = NDArray[np.float64]

LinkName = tuple[str, str]
"""Model and link."""


def bindings() -> tuple[Any, Any]:
    """Gazebo's modules `gz.sim8` and `gz.math7`.

    Raises:
        ConfigError: They are not installed for this Python.
    """
    try:
        return importlib.import_module("gz.sim8"), importlib.import_module("gz.math7")
    except ImportError as error:
        raise ConfigError(
            "physics.engine = gazebo: Gazebo Harmonic's Python bindings (gz.sim8, gz.math7; Debian "
            "and Ubuntu: python3-gz-sim8) are not on the path of "
            f"Python {sys.version_info.major}.{sys.version_info.minor} ({error})"
        ) from None


class GazeboServer:
    """Steps a world; what belongs to links is in the order of the links given.

    Attributes:
        motion: Motion of the links' origins in the columns of `plants.bodies`, (n_links, 18).
        every: Steps for which forces hold and after which the links are read, which takes a third
            of a step's time.
    """

    every = 1

    def __init__(
        self,
        world_sdf: str,
        links: Sequence[LinkName],
        forces: Callable[[], Array],
        watch: Callable[[], None],
    ) -> None:
        """Load a world.

        Args:
            world_sdf: Text of the world.
            links: Links to be read and pushed.
            forces: Gives force and moment about its origin of each link for the coming step,
                world, (n_links, 6); called before each step.
            watch: Called after each step, when `motion` is up to date.

        Raises:
            ConfigError: There are no bindings, or the server does not have these links.
        """
        # No other machine is to hear of this server, nor another server on this one.
        os.environ.setdefault("GZ_IP", "127.0.0.1")
        os.environ.setdefault("GZ_PARTITION", f"musls_{os.getpid()}")
        self._sim, self._math = bindings()
        self._names = list(links)
        self._links: list[Any] = []
        self._forces, self._watch = forces, watch
        self._held: list[tuple[Any, list[float]]] = []
        self._steps = 0
        self._failure: BaseException | None = None
        self.motion = np.zeros((len(links), 18))
        with tempfile.TemporaryDirectory(prefix="musls_gazebo_") as folder:
            path = Path(folder) / "world.sdf"
            path.write_text(world_sdf, encoding="utf-8")
            with _quiet_stdout():
                self._fixture = self._sim.TestFixture(str(path))
                self._fixture.on_pre_update(self._before)
                self._fixture.on_post_update(self._after)
                self._fixture.finalize()
                self._server = self._fixture.server()

    def run(self, steps: int) -> None:
        """Make steps of the world's step size.

        Raises:
            ConfigError: The server did not load the world, or not with these links.
        """
        with contextlib.nullcontext() if self._links else _quiet_stdout():
            self._server.run(True, steps, False)
        self._raise_failure()
        if not self._links:
            raise ConfigError("physics.engine = gazebo: the server did not load the world")

    def _raise_failure(self) -> None:
        """An error in a callback must not pass through Gazebo's C++."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _before(self, info: Any, ecm: Any) -> None:
        try:
            if not self._links:
                self._find(ecm)
            if self._steps % self.every == 0:
                rows = self._forces().tolist()
                self._held = [pair for pair in zip(self._links, rows, strict=True) if any(pair[1])]
            vector = self._math.Vector3d
            for link, wrench in self._held:
                link.add_world_wrench(ecm, vector(*wrench[:3]), vector(*wrench[3:]))
        except BaseException as error:
            self._failure = self._failure or error

    def _after(self, info: Any, ecm: Any) -> None:
        try:
            self._steps += 1
            if self._steps % self.every == 0:
                self._read(ecm)
                self._watch()
        except BaseException as error:
            self._failure = self._failure or error

    def _find(self, ecm: Any) -> None:
        sim = self._sim
        world = sim.World(sim.world_entity(ecm))
        for model_name, name in self._names:
            model = sim.Model(world.model_by_name(ecm, model_name))
            link = sim.Link(model.link_by_name(ecm, name))
            if not link.valid(ecm):
                raise ConfigError(f"Gazebo: the world has no link {model_name}::{name}")
            link.enable_velocity_checks(ecm, True)
            self._links.append(link)

    def _read(self, ecm: Any) -> None:
        numbers = np.empty((len(self._links), 13))
        for row, link in zip(numbers, self._links, strict=True):
            pose = link.world_pose(ecm)
            place, turn = pose.pos(), pose.rot()
            row[:7] = place.x(), place.y(), place.z(), turn.w(), turn.x(), turn.y(), turn.z()
            velocity, omega = link.world_linear_velocity(ecm), link.world_angular_velocity(ecm)
            if velocity is None or omega is None:  # before the first step
                row[7:] = 0.0
            else:
                row[7:10] = velocity.x(), velocity.y(), velocity.z()
                row[10:] = omega.x(), omega.y(), omega.z()
        turns = Rotation.from_quat(numbers[:, 3:7], scalar_first=True)
        self.motion[:, :9] = turns.as_matrix().reshape(-1, 9)
        self.motion[:, 9:12] = numbers[:, :3]
        self.motion[:, 12:15] = numbers[:, 10:]
        self.motion[:, 15:18] = numbers[:, 7:10]


@contextlib.contextmanager
def _quiet_stdout() -> Iterator[None]:
    """Send what C++ prints on standard output (DART, of equal names) nowhere."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
