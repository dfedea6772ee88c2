"""`musls.design`: one question, its flights and its page in a folder."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from musls_bringup.design import WORLDS
from musls_description.config.errors import check_present_folder
from musls_description.config.schema import to_yaml

if TYPE_CHECKING:
    from musls_bringup.design.answer import Answer


def design(
    load: str | Mapping[str, Any],
    *,
    size_m: Sequence[float] = (),
    mass_kg: float | None = None,
    hooks_m: Sequence[Sequence[float]] | None = None,
    wind_m_s: float = 0.0,
    gusts_m_s: float = 0.0,
    drones: Sequence[str] | str = ("x500",),
    require: str | Mapping[str, Any] = "",
    fixed: Mapping[str, Any] | None = None,
    cable_model: str = "elastic",
    worlds: int = WORLDS,
    seed: int = 0,
    settings: Sequence[str] = (),
    out: str | Path | None = None,
    pick: int | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[str, float], None] | None = None,
    made_as: str = "",
) -> Answer:
    """Choose drones, cone and cables for a load and a wind.

    Args:
        load: Shape ("plate", "box", ...), file or shipped system with the load, or its keys.
        size_m: Length, width and height of a shape, or the first of them.
        mass_kg: Mass of the load; by default that of its file.
        hooks_m: Places of its hooks from its centre, (n, 3), one for each cable; by default those
            of its file, or proposed.
        wind_m_s: Mean wind.
        gusts_m_s: Speed that gusts add to it at two standard deviations.
        drones: Airframes: shipped ones by name, or files.
        require: Requirements, as text ("survives_one, hover_min=8") or by name, see
            `Requirements`.
        fixed: Parts of the answer that are chosen: number, cone_deg, length_m, material,
            diameter_m, controller.
        cable_model: Model of the last flights: elastic, rigid_links or massless.
        worlds: Worlds of the Monte Carlo; 0 for none.
        seed: Seed of all noise.
        settings: Keys of the scenario that differ in all flights, "KEY=VALUE" each.
        out: Folder that keeps flights, choices and `design.html`, so that the search can be
            continued; None keeps nothing.
        pick: Number of the choice that is shown in detail and flown in many worlds; by default the
            first that most worlds do not break.
        workers: Processes; by default as many as there are cores.
        scheduler: Address of a Dask scheduler to use instead.
        progress: Told what is done and the share of it.
        made_as: Command that asks the same, for the page.

    Returns:
        The choices, cheapest first, and why the others were rejected.

    Raises:
        ConfigError: Something that is asked is wrong.
    """
    from musls_analysis.sweep.store import Store
    from musls_bringup.design.answer import answer
    from musls_bringup.design.question import ask

    asked: dict[str, Any] = {
        "size_m": list(size_m),
        "mass_kg": mass_kg,
        "hooks_m": hooks_m,
        "wind_m_s": wind_m_s,
        "gusts_m_s": gusts_m_s,
        "drones": drones if isinstance(drones, str) else list(drones),
        "require": require,
        "fixed": dict(fixed or {}),
        "cable_model": cable_model,
        "worlds": worlds,
        "seed": seed,
        "settings": list(settings),
    }
    question = ask(load, **asked)
    check_present_folder()
    keep = nullcontext(str(out)) if out is not None else tempfile.TemporaryDirectory()
    with keep as folder:
        place = Path(folder) / "design" if out is None else Path(folder)
        store = Store(place)
        kept = {"load": load, **asked, "made_as": made_as}
        with store.opened(to_yaml({"design": kept})):
            found = answer(question, store, pick, progress, workers, scheduler, made_as)
            if out is not None:
                from musls_bringup.design.page import write_page  # imports matplotlib

                write_page(found, store)
            return found
