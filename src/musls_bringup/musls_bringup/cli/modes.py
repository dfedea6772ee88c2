"""`musls modes`: linear model and modes of a scenario's system."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from musls_bringup.cli.options import Overwrite, ScenarioName, Settings, path_of
from musls_bringup.cli.terminal import new_console, new_table


def run(
    scenario: ScenarioName,
    settings: Settings = None,
    at: Annotated[
        float | None,
        typer.Option(help="Time of the flight [s].", show_default="hanging in formation, at rest"),
    ] = None,
    inputs: Annotated[
        str, typer.Option(help="Inputs of the model: rotor_speeds or forces.")
    ] = "rotor_speeds",
    out: Annotated[
        Path | None,
        typer.Option(
            parser=path_of,
            metavar="FOLDER",
            help="Write modes.png and model.npz (A, B, C, D, names of states, inputs, outputs).",
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Shows the modes of load, cables and drones: open loop, around a state of the flight."""
    import numpy as np

    from musls_analysis.linear import draw, linearise
    from musls_bringup.shipped import find_scenario
    from musls_description.errors import MuslsError, writing

    if out is not None and (out / "model.npz").exists() and not overwrite:
        raise MuslsError(f"{out} holds an older model; --overwrite replaces it")
    chosen = find_scenario(scenario, list(settings or []))
    model = linearise(chosen, at, inputs)
    shown = [mode for mode in model.modes if mode.name not in ("drift", "rotor")]
    rows = [
        [
            mode.name, f"{mode.frequency_hz:.3f}", f"{mode.damping_ratio:.3f}",
            f"{mode.eigenvalue.real:.3g}", f"{mode.eigenvalue.imag:.3g}",
            ", ".join(f"{name} {share:.2f}" for name, share in mode.shares.items() if share > 0.05),
        ]
        for mode in shown
    ]  # fmt: skip
    heads = ["mode", "frequency\nHz", "damping\nratio", "real\n1/s", "imag\n1/s", "energy in"]
    console = new_console()
    where = "at rest in formation" if at is None else f"at {model.time_s:.3f} s"
    console.print(new_table(*heads, title=f"{chosen.name}: open loop, {where}", rows=rows))
    free = sum(mode.name == "drift" for mode in model.modes)
    console.print(
        f"{len(model.states)} states, {len(model.inputs)} inputs; {free} eigenvalues of free "
        f"motion are not shown; derivatives to {model.error.max():.1g}"
    )
    if out is None:
        return
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        np.savez(
            out / "model.npz", A=model.A, B=model.B, C=model.C, D=model.D, states=model.states,
            inputs=model.inputs, outputs=model.outputs, residual=model.residual,
        )  # fmt: skip
        draw(model, chosen.name, out / "modes.png")
    console.print(f"{out / 'model.npz'}, {out / 'modes.png'}")
