"""One rigid body of a URDF or MJCF file, for a load: what `musls import` reads.

MuJoCo's compiler reads the file: masses, inertias (also those that follow from shapes), meshes and
frames are as it has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from musls_description.arrays import Array
from musls_description.errors import ConfigError, install_command, near_names
from musls_description.strict_yaml import is_file, read_text, shown

KINDS = (".urdf", ".xml", ".mjcf")


@dataclass(frozen=True)
class RigidBody:
    """Everything in a file as one rigid body; places from its centre of mass, axes of its root.

    Attributes:
        inertia_kg_m2: About the centre of mass, (3, 3).
        box_m: Edges of the box around what collides, (3,).
        box_middle_m: Its centre, (3,).
        points_m: Places of named links, bodies and sites, (3,) each.
    """

    mass_kg: float
    inertia_kg_m2: Array
    box_m: Array
    box_middle_m: Array
    points_m: dict[str, Array]

    def chosen(self, names: Sequence[str]) -> Array:
        """Places of attachments, (n, 3)."""
        for name in names:
            if name not in self.points_m:
                raise ConfigError(
                    f"--attach: no '{shown(name)}': {near_names(name, self.points_m)}"
                )
        return np.array([self.points_m[name] for name in names])


def read_rigid_body(path: Path) -> RigidBody:
    """Read a file whose joints are all fixed.

    Raises:
        ConfigError: Missing, of another kind, damaged, without mass or shape, or it moves.
    """
    try:
        import mujoco
    except ImportError:
        raise ConfigError(f"musls import needs MuJoCo: {install_command('mujoco')}") from None
    if path.suffix.lower() not in KINDS:
        raise ConfigError(f"{path}: must be one of {', '.join(KINDS)}; `gz sdf` converts SDF")
    if not is_file(path):
        raise ConfigError(f"{shown(str(path), 200)}: no such file")
    read_text(path)
    try:
        spec = mujoco.MjSpec.from_file(str(path))
        spec.compiler.fusestatic = False  # names of links without mass stay
        model = spec.compile()
    except (ValueError, mujoco.FatalError) as error:
        raise ConfigError(f"{path}: {' '.join(str(error).split())}") from None
    moving = [
        model.joint(i).name or f"joint {i}"
        for i in range(model.njnt)
        if model.jnt_type[i] != mujoco.mjtJoint.mjJNT_FREE
    ]
    if moving or model.njnt > 1:
        names = ", ".join(moving[:5]) or "two free bodies"
        raise ConfigError(f"{path}: {names} can move: a load is one rigid body, fix its joints")
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    return _merged(model, data, path)


def _merged(model: Any, data: Any, path: Path) -> RigidBody:
    mass = np.array(model.body_mass[1:])
    if mass.sum() <= 0.0:
        raise ConfigError(f"{path}: nothing in it has a mass")
    root = np.array(data.xmat[1]).reshape(3, 3)
    centres = data.xipos[1:] @ root
    centre = mass @ centres / mass.sum()
    inertia = np.zeros((3, 3))
    for k, (m, at) in enumerate(zip(mass, centres - centre, strict=True), start=1):
        turn = root.T @ data.ximat[k].reshape(3, 3)
        inertia += turn @ np.diag(model.body_inertia[k]) @ turn.T
        inertia += m * (at @ at * np.eye(3) - np.outer(at, at))
    solid = (model.geom_contype | model.geom_conaffinity) > 0
    corners = []
    for i in np.flatnonzero(solid & (model.geom_bodyid > 0)):
        middle, half = model.geom_aabb[i, :3], model.geom_aabb[i, 3:]
        signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        turn = data.geom_xmat[i].reshape(3, 3)
        corners.append((data.geom_xpos[i] + (middle + signs * half) @ turn.T) @ root - centre)
    if not corners:
        raise ConfigError(f"{path}: no shape in it collides: give one link a collision")
    low, high = np.min(np.vstack(corners), axis=0), np.max(np.vstack(corners), axis=0)
    points = {model.body(i).name: data.xpos[i] for i in range(1, model.nbody)}
    points |= {model.site(i).name: data.site_xpos[i] for i in range(model.nsite)}
    places = {name: place @ root - centre for name, place in points.items() if name}
    return RigidBody(
        float(mass.sum()), 0.5 * (inertia + inertia.T), high - low, 0.5 * (low + high), places
    )
