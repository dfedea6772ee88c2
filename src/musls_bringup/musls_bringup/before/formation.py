"""Places for the drones of any system, with margins and a picture: what `musls formation` shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from musls_control.brief.margins import DroneMargins, hanging_forces, margins
from musls_description.config.errors import ConfigError
from musls_description.hanging.cone import with_places
from musls_description.hanging.hang import Hanging, hang, margin_text
from musls_description.numerics.arrays import Array
from musls_description.system.drone import tip_radius_m
from musls_description.system.slung_system import SlungLoadSystem
from musls_description.tables import ShownResult, Table

STARTS = 240
"""Number of start points of attachments along a closed line; the set whose middle is nearest the
load's is kept."""


@dataclass(frozen=True, repr=False)
class Proposal(ShownResult):
    """Places that hold a load level.

    Attributes:
        hanging: Equilibrium of the system there.
        margins: Margins of each drone at rest there.
    """

    hanging: Hanging
    margins: Sequence[DroneMargins]

    @property
    def system(self) -> SlungLoadSystem:
        """Load, drones and cables."""
        return self.hanging.system

    @property
    def places_m(self) -> Array:
        """Places of the drones in the frame of the load's set-point, (n, 3)."""
        return self.hanging.formation.offsets_m(self.system.n_drones)

    def shown(self) -> Iterator[str | Table]:
        """Place, cable, share of the weight and margins of each drone."""
        yield f"{self.system.name}: places over the load"
        rows = [
            (
                str(i),
                *(f"{v:.3f}" for v in place),
                f"{m.tension_n:.2f}",
                f"{share:.2f}",
                f"{margin_text(m.thrust_margin)}",
                f"{m.tilt_deg:.1f}",
            )
            for i, (place, m, share) in enumerate(
                zip(self.places_m, self.margins, self.hanging.shares, strict=True), start=1
            )
        ]
        heads = ("drone", "x [m]", "y [m]", "z [m]", "cable [N]", "share", "margin", "tilt [deg]")
        yield Table(heads, rows)
        if len(rows) > 1:
            apart_m = self.hanging.tips_apart_m
            yield f"rotor tips at least {apart_m:.2f} m apart, seen from above"


def propose(system: SlungLoadSystem) -> Proposal:
    """Find the formation that a scenario of this system gets if it gives none."""
    places = hang(system, {}).formation.offsets_m(system.n_drones)
    hanging = hang(system, with_places(np.round(places, 4) + 0.0))
    reason = None if hanging.is_balanced else hanging.why_none
    if reason is None and hanging.refusal is not None:
        reason = hanging.refusal.reason
    if reason is not None:
        raise ConfigError(f"{system.name}: {reason}")
    return Proposal(hanging, margins(system, hanging_forces(hanging)))


def with_drones(system: SlungLoadSystem, count: int) -> SlungLoadSystem:
    """The system with a number of drones, and cables like its first.

    The attachments are spread evenly along the line that joins those of the system: a closed one,
    or from end to end where they stand in a row. A single one is above the centre of mass, two are
    on both sides of it.
    """
    at_load = np.array(system.load.cable_attachments_m)
    points = _along(at_load, count) if count > 1 else at_load.mean(axis=0)[None] * [0.0, 0.0, 1.0]
    places = tuple((float(x), float(y), float(z)) for x, y, z in np.round(points, 4) + 0.0)
    return replace(
        system,
        load=replace(system.load, cable_attachments_m=places),
        drones=(system.drones[0],) * count,
        cables=(system.cables[0],) * count,
    )


def _along(corners_m: Array, count: int) -> Array:
    """Points at even distances along the line through given ones, (count, 3)."""
    centre = corners_m.mean(axis=0)
    _, sizes, axes = np.linalg.svd(corners_m - centre, full_matrices=False)
    if count == 2 and sizes[0] > 1e-6:  # on both sides of the centre of mass
        half = 0.5 * np.ptp((corners_m - centre) @ axes[0]) * axes[0]
        return np.array([half, -half]) * [1.0, 1.0, 0.0] + [0.0, 0.0, centre[2]]
    if len(corners_m) < 3 or sizes[1] < 1e-6:  # in a row, or all in one place
        path = corners_m[np.argsort((corners_m - centre) @ axes[0])]
        begins = [np.linspace(0.0, 1.0, count)]
    else:
        azimuth = np.arctan2(corners_m[:, 1] - centre[1], corners_m[:, 0] - centre[0])
        path = corners_m[np.argsort(azimuth)]
        path = np.vstack([path, path[:1]])
        begins = [(np.arange(count) + k / STARTS) / count for k in range(STARTS)]
    arc = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(path, axis=0), axis=1)))
    candidates = [
        np.column_stack([np.interp(at * arc[-1], arc, path[:, k]) for k in range(3)])
        for at in begins
    ]
    return min(candidates, key=lambda points: float(np.linalg.norm(points[:, :2].mean(axis=0))))


def pasted(proposal: Proposal, *, attachments: bool) -> str:
    """YAML text to paste into a scenario; with the load's attachments where they are new."""
    lines = ["formation:", "  places_m:"]
    lines += [f"    - [{', '.join(f'{v:g}' for v in place)}]" for place in proposal.places_m]
    if attachments:
        lines += ["# and in the system:", "load:", "  cable_attachments_m:"]
        lines += [
            f"    - [{', '.join(f'{v:g}' for v in place)}]"
            for place in proposal.system.load.cable_attachments_m
        ]
    return "\n".join(lines) + "\n"


def draw(proposal: Proposal, path: Path) -> None:
    """Write a picture from above and from the side: load, cables, rotor discs, shares."""
    from matplotlib.patches import Circle, Polygon

    from musls_analysis.figures import style

    system = proposal.system
    places = proposal.places_m
    corners = system.load.collision.corners_m
    tips = [tip_radius_m(drone) for drone in system.drones]
    margins = [margin.thrust_margin for margin in proposal.margins]
    reach = 1.05 * float((np.abs(places[:, :2]).max(axis=1) + tips).max())
    top = float(places[:, 2].max()) + 0.3
    bottom = float(corners[:, 2].min()) - 0.2
    with style.styled():
        side = style.WIDTH_IN * 0.5 * (top - bottom) / (2.0 * reach)
        figure = style.new_figure(max(style.WIDTH_IN * 0.5, side) + 0.3)
        views = figure.subplots(1, 2)
        for ax, up in zip(views, (1, 2), strict=True):
            low, high = corners.min(axis=0)[[0, up]], corners.max(axis=0)[[0, up]]
            box = [low, (high[0], low[1]), high, (low[0], high[1])]
            ax.add_patch(Polygon(box, color=style.colour("load"), alpha=0.25))
            for i, place in enumerate(places):
                ink = style.colour(f"drone_{i + 1}")
                cable = proposal.hanging.rest.cable_nodes_enu_m(i)
                ax.plot(*cable.T[[0, up]], color=style.CABLE, lw=1.0)
                if up == 1:
                    ax.add_patch(Circle(place[:2], tips[i], color=ink, alpha=0.3))
                    text = f"drone {i + 1}\n{proposal.hanging.shares[i]:.2f} / {margins[i]:.2f}"
                    ax.annotate(text, place[:2], ha="center", va="center", fontsize=6)
                else:
                    ax.plot([place[0] - tips[i], place[0] + tips[i]], [place[2]] * 2, color=ink)
            ax.annotate("load", (low + high) / 2.0, ha="center", va="center", fontsize=6)
            ax.set_aspect("equal")
            ax.set(xlim=(-reach, reach), xlabel="x [m]", ylabel="yz"[up - 1] + " [m]")
        views[0].set(ylim=(-reach, reach), title="From above: share of the weight / thrust margin")
        views[1].set(ylim=(bottom, top), title="From the side")
        style.margins(figure, 0.6, 0.15, 0.45, 0.3, wspace=0.25)
        style.save(figure, path)
