"""`musls formation`: places for the drones of any system."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from musls_bringup.cli.options import Overwrite, path_of, within
from musls_bringup.cli.terminal import new_console, new_table


def run(
    system: Annotated[str, typer.Argument(help="Shipped system (musls list systems) or file.")],
    drones: Annotated[
        int | None,
        typer.Option(
            help="So many drones, alike, with attachments spread evenly over the load.",
            show_default="the system's",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            parser=path_of, metavar="FOLDER", help="Write formation.yaml and formation.png."
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Proposes places for the drones of a system: level load, even shares, rotor discs apart.

    Prints thrust margins and what to paste into a scenario. Places that a scenario gives itself
    (formation.places_m) are always kept.
    """
    from musls_bringup.formation import draw, pasted, propose, with_drones
    from musls_description.errors import MuslsError, writing
    from musls_description.library import load_system
    from musls_description.system import MAX_CABLES, formation_of

    chosen = formation_of(load_system(system), "musls formation")
    if drones is not None:
        within("--drones", drones, 1, MAX_CABLES)
        chosen = with_drones(chosen, drones)
    files = [out / name for name in ("formation.yaml", "formation.png")] if out else []
    if any(file.exists() for file in files) and not overwrite:
        raise MuslsError(f"{out} holds an older formation; --overwrite replaces it")
    found = propose(chosen)
    text = pasted(found, attachments=drones is not None)
    console = new_console()
    rows = [
        [
            str(i), *(f"{v:.3f}" for v in place), f"{m.tension_n:.2f}", f"{share:.2f}",
            f"{m.thrust_margin:.2f}", f"{m.tilt_deg:.1f}",
        ]
        for i, (place, m, share) in enumerate(
            zip(found.places_m, found.margins, found.shares, strict=True), start=1
        )
    ]  # fmt: skip
    heads = ["drone", "x\nm", "y\nm", "z\nm", "cable\nN", "share", "margin", "tilt\ndeg"]
    console.print(new_table(*heads, title=f"{chosen.name}: places over the load", rows=rows))
    if chosen.n_drones > 1:
        console.print(f"rotor tips at least {found.tips_apart_m:.2f} m apart, seen from above")
    print(text, end="")
    if out is not None:
        with writing(out):
            out.mkdir(parents=True, exist_ok=True)
            (out / "formation.yaml").write_text(text, encoding="utf-8")
            draw(found, out / "formation.png")
        console.print(f"{out / 'formation.yaml'}, {out / 'formation.png'}")


def draw_system(
    system: Annotated[str, typer.Argument(help="Shipped system (musls list systems) or file.")],
    out: Annotated[
        Path | None,
        typer.Option(parser=path_of, metavar="FILE.png", show_default="SYSTEM.png"),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Draws a system at rest from above and from the side: names, shares, thrust margins.

    The drones are in the formation that a scenario without one of its own gets; nothing is flown.
    """
    from musls_bringup.formation import draw, propose
    from musls_description.errors import MuslsError, writing
    from musls_description.library import load_system
    from musls_description.system import formation_of

    chosen = formation_of(load_system(system), "musls draw")
    path = out or Path(f"{Path(system).stem}.png")
    if path.suffix != ".png":
        raise MuslsError(f"--out = {path}: must end in .png")
    if path.exists() and not overwrite:
        raise MuslsError(f"{path} exists already; --overwrite replaces it")
    found = propose(chosen)
    with writing(path):
        draw(found, path)
    print(chosen)
    weakest = min(found.margins, key=lambda m: m.thrust_margin)
    apart = f", rotor tips {found.tips_apart_m:.2f} m apart" if chosen.n_drones > 1 else ""
    print(f"least thrust margin {weakest.thrust_margin:.2f}{apart}; picture in {path}")
