"""`musls fly --plan` and `--dry-run`: what would be flown."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from musls_bringup.plan import Phase
    from musls_sim.scenario.scenario import Scenario


def show_plan(
    scenario: Scenario, out: Path | None, *, force: bool, overwrite: bool, table: bool
) -> None:
    """Check a scenario and print what it would do; nothing is flown.

    Args:
        scenario: What would be flown.
        out: Folder that the flight would write; only looked at.
        force: In spite of too little thrust.
        overwrite: An older result would be replaced.
        table: Print the phases.

    Raises:
        ConfigError: It cannot be flown.
    """
    from rich.console import Console

    from musls_bringup.plan import phases, prepare
    from musls_bringup.results import check_folder

    if out is not None:
        check_folder(out, overwrite=overwrite)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        parts = prepare(scenario, force=force)
    for warning in caught:
        print("musls: warning:", warning.message, file=sys.stderr)
    console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 120)
    if table:
        console.print(_table(phases(parts.plan)))
        places = scenario.formation
        drones = scenario.system.n_drones
        if parts.hover is not None and places.places_m is None:
            console.print(
                f"formation: {drones} drone{'' if drones == 1 else 's'} at radius "
                f"{places.radius_m:.2f} m, {places.height_m:.2f} m above the load's set-point, "
                f"drone 1 at {places.first_azimuth_rad:.2f} rad"
            )
    margin = "" if parts.hover is None else f", thrust margin {parts.hover.thrust_margin:.2f}"
    console.print(
        f"{scenario.name} can be flown: {parts.plan.duration_s:.1f} s{margin}; nothing was flown. "
        f"musls view SCENARIO --gif draws its set-points"
    )


def _table(found: list[Phase]) -> Table:
    from rich.table import Table

    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    made.add_column("phase", no_wrap=True)
    for name, unit in (
        ("begins", "s"), ("lasts", "s"), ("load's set-point from", "m, deg"), ("to", "m, deg"),
        ("at most", "m/s"),
    ):  # fmt: skip
        made.add_column(f"{name}\n{unit}", justify="right", no_wrap=True)
    for phase in found:
        made.add_row(
            phase.name.replace("_", " "), f"{phase.start_s:.1f}", f"{phase.duration_s:.1f}",
            _pose(phase.first), _pose(phase.last), f"{phase.speed_m_s:.2f}",
        )  # fmt: skip
    return made


def _pose(pose: object) -> str:
    import numpy as np

    x, y, z, yaw_rad = np.asarray(pose, float)
    x, y, z = np.round([x, y, z], 2) + 0.0  # no minus before a zero
    return f"{x:.2f} {y:.2f} {z:.2f} {np.round(np.degrees(yaw_rad)) + 0.0:4.0f}"
