"""Gazebo's physics: our program `gazebo_physics/step_world`, which drives Gazebo's DART plugin.

The program is built once per process into a temporary folder (about ten seconds). It needs the
packages cmake, make, g++ and libignition-physics-dev, which brings the plugin and libsdformat.
"""

import atexit
import functools
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from model_helpers import sdf_names
from scipy.spatial.transform import Rotation

from musls_description.hanging.tree import build_tree
from musls_description.writers.sdf import single_model_sdf
from musls_sim.plants.rigid_body import rotor_records, spin_rotors
from musls_sim.specs.physics import CONTROL_PERIOD_S

SOURCE = Path(__file__).parent / "gazebo_physics"
NOT_FOUND = re.compile(r"package configuration file provided by\s+\"(\S+)\"")


class GazeboMissingError(Exception):
    """What is not installed."""


@dataclass(frozen=True)
class GazeboRun:
    """Motion of all bodies of the tree, in its order.

    Attributes:
        time_s: (samples,), from 0.
        position_m: Origins of the bodies, world, (samples, n_bodies, 3).
        rotation: Body frames to world, (samples, n_bodies, 3, 3).
        step_us: Duration of each of the engine's steps, (steps,).
        messages: Lines that Gazebo's libraries wrote, without colours.
    """

    time_s: np.ndarray
    position_m: np.ndarray
    rotation: np.ndarray
    step_us: np.ndarray
    messages: list[str]


@functools.cache
def build():
    """Build the program.

    Raises:
        GazeboMissingError: CMake, the compiler or a library is not installed.
    """
    for tool in ("cmake", "make", "c++"):
        if shutil.which(tool) is None:
            raise GazeboMissingError(f"{tool} is not installed")
    folder = Path(tempfile.mkdtemp(prefix="musls_gazebo_physics_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    configured = _run(["cmake", "-S", str(SOURCE), "-B", str(folder)])
    if configured.returncode:
        missing = NOT_FOUND.search(configured.stderr)
        if missing:
            raise GazeboMissingError(f"{missing[1]} is not installed")
        raise RuntimeError(configured.stderr)
    built = _run(["cmake", "--build", str(folder)])
    if built.returncode:
        raise RuntimeError(built.stdout + built.stderr)
    return folder / "step_world"


def _run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **options)


def rotor_wrenches(system, command, start_rad_s, step_s, steps):
    """What the rotors do to each drone as a function of time alone.

    `system`: its drones' rotors must have no drag, which depends on the motion.
    `command`: rotor commands by the time of the control period, (n_drones, n_rotors).
    `start_rad_s`: rotor speeds at time 0.

    Returns:
        Force and moment about the drone's origin in its frame, (steps, n_drones, 6).
    """
    table, speed = rotor_records(system), np.array(start_rad_s)
    place, thrust_n_s2, torque_n_m_s2 = table["place"], table["thrust"], table["torque"]
    assert not table["drag"].any(), "rotor drag depends on the motion"
    per_period = round(CONTROL_PERIOD_S / step_s)
    wrenches = np.zeros((steps, system.n_drones, 6))
    for k in range(steps):
        spin_rotors(speed, command(k // per_period * CONTROL_PERIOD_S), table, step_s)
        thrust = thrust_n_s2 * speed**2
        wrenches[k, :, 2] = thrust.sum(axis=1)
        wrenches[k, :, 3] = (place[..., 1] * thrust).sum(axis=1)
        wrenches[k, :, 4] = -(place[..., 0] * thrust).sum(axis=1)
        wrenches[k, :, 5] = (torque_n_m_s2 * speed**2).sum(axis=1)
    return wrenches


def fly(system, spawn, wrenches, step_s, every, *, edit=None):
    """Fly a system's SDF in Gazebo's physics.

    `spawn`: its configuration at time 0, at rest.
    `wrenches`: from `rotor_wrenches`.
    `every`: steps from one sample to the next.

    Raises:
        GazeboMissingError: See `build`.
    """
    program = build()
    text = single_model_sdf(system, spawn, drones="rigid", step_s=step_s)
    names = [f"{system.name}::{name}" for name in sdf_names(system)]
    pushed = [names[k] for k in build_tree(system).drone]
    pushes = [f"{len(pushed)} {' '.join(pushed)}"]
    pushes += [" ".join(map(repr, row.ravel().tolist())) for row in wrenches]
    with tempfile.TemporaryDirectory() as folder:
        world, poses = Path(folder) / "world.sdf", Path(folder) / "poses.txt"
        world.write_text(edit(text) if edit else text)
        done = _run(
            [program, world, repr(step_s), str(len(wrenches)), str(every), poses],
            input="\n".join(pushes),
        )
        said = re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr)
        if done.returncode:
            raise RuntimeError(f"step_world ended with {done.returncode}: {said[-2000:]}")
        links, *rows, durations = poses.read_text().splitlines()
    table = np.array([row.split() for row in rows], float)
    order = [links.split()[1:].index(name) for name in names]
    motion = table[:, 1:].reshape(len(table), -1, 7)[:, order]
    rotation = Rotation.from_quat(motion[..., 3:].reshape(-1, 4), scalar_first=True).as_matrix()
    return GazeboRun(
        table[:, 0],
        motion[..., :3],
        rotation.reshape(*motion.shape[:2], 3, 3),
        np.array(durations.split()[1:], float),
        said.splitlines(),
    )
