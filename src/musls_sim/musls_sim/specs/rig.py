"""Specifications of a scenario's `rig`: what anchors and winches do in time."""

from __future__ import annotations

import os
from typing import Annotated, ClassVar, Literal

import numpy as np
import scipy
from pydantic import Field

from musls_description.config.errors import ConfigError, near_names
from musls_description.config.schema import Finite, NonNegative, Vector3, spec
from musls_description.system.slung_system import RigSystem

MAX_KNOTS = 1_000_000

Times = Annotated[tuple[NonNegative, ...], Field(min_length=1, max_length=MAX_KNOTS)]
Numbers = Annotated[tuple[Finite, ...], Field(min_length=1, max_length=MAX_KNOTS)]
Vectors = Annotated[tuple[Vector3, ...], Field(min_length=1, max_length=MAX_KNOTS)]


class _Knots:
    """Base of specifications that are tables: columns of numbers, one row for each time (knot).

    Attributes:
        jumps: Whether a time may be given twice.
    """

    jumps: ClassVar[bool] = True
    time_s: tuple[float, ...]

    def __post_init__(self) -> None:
        time_s = self.time_s
        for name, rows in vars(self).items():
            if isinstance(rows, tuple) and len(rows) != len(time_s):
                raise ValueError(f"{name} has {len(rows)} rows, but time_s has {len(time_s)}")
        steps = np.diff(time_s)
        if (steps < 0.0).any() or (not self.jumps and (steps == 0.0).any()):
            k = int(np.argmin(steps)) + 1
            raise ValueError(f"time_s must increase, but {time_s[k]:g} follows {time_s[k - 1]:g}")


@spec
class AnchorPath(_Knots):
    """An anchor moves along a path: piecewise polynomials between knots, at rest after the last.

    With velocities cubic, with accelerations too quintic; the accelerations of the polynomials are
    what moves the anchor.

    Attributes:
        kind: "path".
        time_s: Times of the knots.
        position_enu_m: World, or with `relative` from where the anchor is at the start, (k, 3).
        velocity_enu_m_s: (k, 3); left out for a stop at every knot.
        acceleration_enu_m_s2: (k, 3); makes the path quintic.
        linear: Straight between the knots, as a table is often meant: velocities jump at them.
        relative: Positions are relative to the anchor's initial position.
    """

    kind: Literal["path"] = "path"
    time_s: Times
    position_enu_m: Vectors
    velocity_enu_m_s: Vectors | None = None
    acceleration_enu_m_s2: Vectors | None = None
    linear: bool = False
    relative: bool = False

    jumps: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.linear and (self.velocity_enu_m_s or self.acceleration_enu_m_s2):
            raise ValueError(
                "linear: true follows from the places alone: leave out velocities and accelerations"
            )


@spec
class AnchorRecording:
    """An anchor moves as recorded: a cubic spline through samples.

    Attributes:
        kind: "recording".
        file: CSV with a head line and the columns time_s, x_enu_m, y_enu_m, z_enu_m; or a bag or
            result folder with poses of `body`, whose first one is at time 0. A relative path counts
            from the scenario's folder.
        body: Body in the bag: "load", "drone_1", "anchor_1", ...
        relative: Positions are relative to the anchor's initial position.
    """

    kind: Literal["recording"] = "recording"
    file: str
    body: str | None = None
    relative: bool = False


@spec
class AnchorForce(_Knots):
    """A force pushes an anchor, straight between the knots; a time given twice is a jump.

    Attributes:
        kind: "force".
        time_s: Times of the knots; before the first and after the last the force is held.
        force_enu_n: World, (k, 3).
    """

    kind: Literal["force"] = "force"
    time_s: Times
    force_enu_n: Vectors


@spec
class AnchorThrust(_Knots):
    """A scripted driver carries an anchor: thrust along its z axis, as `AnchorForce` in time.

    Attributes:
        kind: "thrust".
        time_s: Times of the knots; a time given twice is a jump.
        thrust_n: (k,).
        moment_body_n_m: Moments in the anchor's frame, (k, 3).
    """

    kind: Literal["thrust"] = "thrust"
    time_s: Times
    thrust_n: Numbers
    moment_body_n_m: Vectors | None = None


@spec
class AnchorFree:
    """An anchor on which only cables, its weight and the ground act: a second load.

    Attributes:
        kind: "free".
    """

    kind: Literal["free"] = "free"


AnchorDrive = Annotated[
    AnchorPath | AnchorRecording | AnchorForce | AnchorThrust | AnchorFree,
    Field(discriminator="kind"),
]
PUSHED = (AnchorForce, AnchorThrust, AnchorFree)
"""Motions of an anchor by forces; the others prescribe its path."""


@spec
class WinchDrive(_Knots):
    """Drive of a winch: one of its inputs over time, linear between the knots.

    Attributes:
        time_s: Times of the knots; a time given twice is a jump.
        feed_m_s: Rate of the free length of a winch of kind: feed, positive pays out, (k,).
        torque_n_m: Torque of the motor of a drum, positive pays out, (k,).
        speed_rad_s: Speed of a drum, positive pays out, (k,).
        brake: Whether a drum's brake is closed, from each knot on, (k,).
    """

    time_s: Times
    feed_m_s: Numbers | None = None
    torque_n_m: Numbers | None = None
    speed_rad_s: Numbers | None = None
    brake: Annotated[tuple[bool, ...], Field(max_length=MAX_KNOTS)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        count = sum(map(bool, (self.feed_m_s, self.torque_n_m, self.speed_rad_s)))
        if count > 1 or not (count or self.brake):
            raise ValueError("give one of feed_m_s, torque_n_m and speed_rad_s, or brake alone")

    @property
    def value(self) -> tuple[float, ...]:
        """The input, whichever it is; zero for a brake alone."""
        values = self.feed_m_s or self.torque_n_m or self.speed_rad_s
        return values or (0.0,) * len(self.time_s)


@spec
class RigSpec:
    """Drives of anchors and winches over time.

    Attributes:
        anchors: Anchors by name; one that is not named is fixed.
        winches: Winches by name; one that is not named stands still.
    """

    anchors: dict[str, AnchorDrive] = Field(default_factory=dict)
    winches: dict[str, WinchDrive] = Field(default_factory=dict)

    def pushed(self, number: int) -> bool:
        """Whether an anchor, from 1, is moved by forces."""
        return isinstance(self.anchors.get(f"anchor_{number}"), PUSHED)

    def free(self, number: int) -> bool:
        """Whether an anchor, from 1, is a load that hangs and falls."""
        return isinstance(self.anchors.get(f"anchor_{number}"), AnchorFree)

    def free_anchors(self, system: RigSystem) -> list[int]:
        """Numbers of a system's anchors that hang, from 1."""
        return [i for i in range(1, len(system.anchors) + 1) if self.free(i)]

    def held_anchors(self, system: RigSystem, cable_model: str) -> list[int]:
        """Numbers of the anchors that do not move, from 1.

        Raises:
            ConfigError: What only elastic cables can be; names this cable model.
        """
        numbers = range(1, len(system.anchors) + 1)
        driven = [i for i in numbers if f"anchor_{i}" in self.anchors and not self.free(i)]
        clamped = any(end.clamped for k in range(system.n_cables) for end in system.ends(k))
        for is_there, what in (
            (system.load is None, "no load"),
            (bool(system.winches), "winches"),
            (bool(system.pulleys), "pulleys"),
            (bool(driven), f"rig.anchors.anchor_{driven[0] if driven else 1} that is driven"),
            (clamped, "clamped cable ends"),
        ):
            if is_there:
                raise ConfigError(
                    f"cable_model = {cable_model}: system {system.name} has {what}; choose "
                    "cable_model: elastic"
                )
        return [i for i in numbers if not self.free(i)]

    def check(self, system: RigSystem) -> None:
        """Refuse what the system cannot do (raises ConfigError)."""
        for part, single, entries, count in (
            ("anchors", "anchor", self.anchors, len(system.anchors)),
            ("winches", "winch", self.winches, len(system.winches)),
        ):
            names = [f"{single}_{i + 1}" for i in range(count)]
            for name in entries:
                if name not in names:
                    near = near_names(name, names)
                    raise ConfigError(f"rig.{part}: unknown {single} '{name}': {near}")
        for i, anchor in enumerate(system.anchors, start=1):
            if self.pushed(i) and anchor.mass_kg is None:
                raise ConfigError(
                    f"rig.anchors.anchor_{i}: only an anchor with mass_kg can be pushed or free "
                    f"(system.anchors.{i - 1})"
                )
        for i, winch in enumerate(system.winches, start=1):
            self._check_winch(f"rig.winches.winch_{i}", winch.kind, winch.stored_length_m, i)

    def _check_winch(self, where: str, kind: str, stored_m: float | None, number: int) -> None:
        drive = self.winches.get(f"winch_{number}")
        if drive is None:
            return
        if (kind == "feed") != (drive.feed_m_s is not None):
            keys = "feed_m_s" if kind == "feed" else "torque_n_m or speed_rad_s"
            raise ConfigError(f"{where}: a winch of kind: {kind} takes {keys}")
        if drive.feed_m_s is None or stored_m is None:
            return
        out = scipy.integrate.cumulative_trapezoid(drive.feed_m_s, drive.time_s, initial=0.0)
        if out.max() > stored_m * (1.0 + 1e-9):
            k = int(np.argmax(out > stored_m))
            raise ConfigError(
                f"{where}: pays out {out.max():.4g} m, but stored_length_m = {stored_m:g}; it runs "
                f"out before {drive.time_s[k]:g} s"
            )


def resolve_files(data: object, folder: os.PathLike[str]) -> None:
    """Make the paths of recorded motions in a scenario's `rig` absolute, in place.

    They are relative to the scenario's folder.
    """
    anchors = data.get("anchors") if isinstance(data, dict) else None
    for drive in anchors.values() if isinstance(anchors, dict) else ():
        if isinstance(drive, dict) and isinstance(drive.get("file"), str):
            drive["file"] = os.path.abspath(os.path.join(folder, drive["file"]))
