"""Which parameters of a system several recordings tell, chosen by cross-validation.

Every recording is replayed with the starting values and with each parameter changed a little. With
its residuals r and derivatives J, what parameters fitted to some recordings leave of another
follows from linear least squares. So groups of parameters are chosen one by one: each time the one
with which the recordings left out are predicted best by the others, while that helps. Those chosen
are fitted to all recordings by non-linear least squares, and the choice is made again there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from musls_analysis.figures import style
from musls_analysis.replay import fit
from musls_analysis.replay.replay import RIGID_LINKS, Replay
from musls_control.child_processes import worker_processes
from musls_description.config.errors import ConfigError
from musls_description.config.schema import to_yaml
from musls_description.numerics.arrays import Array
from musls_description.system.slung_system import SlungLoadSystem
from musls_description.tables import Shown, Table
from musls_sim.scenario.physics import CONTROL_PERIOD_S

WORTH = 0.01
"""Share of the error of the recordings left out that a group must take away to be kept."""

MAX_FITS = 3
"""Times that the choice is made: at the start, and where the fits have gone."""

INTERVAL = 1.645
"""Standard deviations of a 90 % interval on either side."""

ERRORS = "as_given", "fitted_to_all", "fitted_to_the_others"
"""Errors that each recording has."""


def candidates(system: SlungLoadSystem, cable_model: str) -> tuple[str, ...]:
    """Groups of parameters among which is chosen if none are named."""
    each = range(1, system.n_drones + 1)
    return (
        "load_origin", "load_tilt", "load_delay", "load_inertia", "load_drag",
        *(("damping",) if cable_model.startswith(RIGID_LINKS) else ()),
        *(f"length_{i}" for i in each),
        *(f"load_attachment_{i}" for i in each),
        *(f"drone_origin_{i}" for i in each),
    )  # fmt: skip


def best_change(found: Sequence[fit.Derivatives], columns: Sequence[int]) -> Array:
    """Change of parameters (p,) of minimum norm that fits recordings best, weighted alike."""
    weights = [len(one.residual) ** -0.5 for one in found]
    jacobian = [w * one.jacobian[:, columns] for w, one in zip(weights, found, strict=True)]
    residual = [w * one.residual for w, one in zip(weights, found, strict=True)]
    solved = np.linalg.lstsq(np.vstack(jacobian), -np.concatenate(residual), rcond=1e-3)
    return np.asarray(solved[0])


def left_out(found: Sequence[fit.Derivatives], columns: Sequence[int]) -> list[Array]:
    """Residuals of each recording with parameters that were fitted to the others, (6 k,) each."""
    return [
        one.changed(columns, best_change([*found[:i], *found[i + 1 :]], columns))
        for i, one in enumerate(found)
    ]


def choose(found: Sequence[fit.Derivatives], groups: dict[str, list[int]]) -> dict[str, float]:
    """Choose groups of columns one by one, the most helpful first, with the error left out [m]."""
    kept: dict[str, float] = {}
    error = fit.rms_m(left_out(found, []))
    while rest := [name for name in groups if name not in kept]:
        columns = [c for name in kept for c in groups[name]]
        errors = {name: fit.rms_m(left_out(found, [*columns, *groups[name]])) for name in rest}
        best = min(rest, key=errors.__getitem__)
        if errors[best] > (1.0 - WORTH) * error:
            break
        error = kept[best] = errors[best]
    return kept


@dataclass(frozen=True, repr=False)
class Identified(Shown):
    """Parameters of a system identified from recordings.

    Attributes:
        recordings: Names of the r recordings.
        parameters: Those that are kept, p.
        start: Values at the beginning, (p,).
        value: Fitted to all recordings, (p,).
        std: Standard deviations, (p,).
        own: What each recording says alone, to first order, (r, p).
        own_std: Standard deviations of these, infinite where it says nothing, (r, p).
        errors: Mean errors (12), (13) of each recording: as given, fitted to all, and fitted to the
            others, (r, 3, 2) [m, rad].
        error_m: Error of the recordings left out with the kept parameters.
        dropped: Groups that are not kept, with that error if they were [m].
        setup: The fitted system, and how to replay with it.
    """

    recordings: tuple[str, ...]
    parameters: tuple[fit.Parameter, ...]
    start: Array
    value: Array
    std: Array
    own: Array
    own_std: Array
    errors: Array
    error_m: float
    dropped: dict[str, float]
    setup: fit.Setup

    @property
    def differs(self) -> Array:
        """Whether a recording alone contradicts all, beyond both 90 % intervals, (r, p)."""
        apart = np.abs(self.own - self.value)
        told = self.own_std < [(p.upper - p.lower) / 2.0 for p in self.parameters]
        return np.asarray(told & (apart > INTERVAL * np.hypot(self.own_std, self.std)))

    def shown(self) -> Iterator[str | Table]:
        """Parameters with intervals, then errors of each recording, then what was left away."""
        names = [f"{i}" for i in range(1, len(self.recordings) + 1)]
        rows = []
        for k, p in enumerate(self.parameters):
            cells = [p.name, f"{self.value[k]:.4g}", f"{INTERVAL * self.std[k]:.2g}", p.unit]
            for own, std, off in zip(
                self.own[:, k], self.own_std[:, k], self.differs[:, k], strict=True
            ):
                told = std < (p.upper - p.lower) / 2.0
                cells.append(f"{own:.4g}{' !' if off else ''}" if told else "-")
            rows.append(cells)
        yield Table(("parameter", "value", "+- (90 %)", "unit", *names), rows)
        yield "columns by number: what each recording says alone; - nothing, ! otherwise than all"
        yield Table(
            ("", "recording", "as given", "fitted to all", "fitted to the others"),
            [
                (
                    name, source,
                    *(f"{1e3 * m:.1f} mm {np.degrees(rad):.1f}°" for m, rad in self.errors[i]),
                )
                for i, (name, source) in enumerate(zip(names, self.recordings, strict=True))
            ],
            names=2,
        )  # fmt: skip
        for name, error_m in self.dropped.items():
            yield (
                f"{name} is left as it is: recordings left out would be predicted within "
                f"{1e3 * error_m:.1f} instead of {1e3 * self.error_m:.1f} mm"
            )


def identify(
    replays: Sequence[Replay],
    system: SlungLoadSystem,
    names: Sequence[str] | None = None,
    *,
    cable_model: str = RIGID_LINKS,
    workers: int = 1,
    progress: Callable[[str], None] = lambda text: None,
) -> Identified:
    """Choose and fit groups of parameters, see above; all are replayed as the first is."""
    if len(replays) < 2:
        raise ConfigError(
            "identify: takes two recordings or more, since parameters are held against recordings "
            "that they were not fitted to; for one take `musls replay --fit`"
        )
    setup = fit.Setup(system, replace(replays[0].spec, physics_step_s=CONTROL_PERIOD_S))
    groups = list(names if names is not None else candidates(system, cable_model))
    fit.check_model(groups, cable_model)
    chosen = fit.parameters(groups, setup)
    columns: dict[str, list[int]] = {name: [] for name in groups}
    for k, p in enumerate(chosen):
        columns[p.name if p.name in columns else p.name[: -len("_x")]].append(k)
    start = np.array([fit.inside(p, p.read(setup)) for p in chosen])
    problems = [fit.Problem(r, setup, tuple(p.name for p in chosen), cable_model) for r in replays]
    with worker_processes(workers) if workers > 1 else nullcontext() as pool:
        study = fit.Study(problems, chosen, pool.map if pool else map, progress)
        value, kept = start.copy(), dict[str, float]()
        before = found = study.derivatives(value, range(len(chosen)))
        for _ in range(MAX_FITS):
            again = choose(at_start(found, chosen, start, value), columns)
            if list(again) and set(again) == set(kept):
                break
            kept = again
            free = [c for name in kept for c in columns[name]]
            value = study.fitted(start, free)[0] if free else start.copy()
            found = study.derivatives(value, range(len(chosen)))
    return _identified(replays, study, before, found, columns, list(kept), start, value, setup)


def at_start(
    found: Sequence[fit.Derivatives], chosen: Sequence[fit.Parameter], start: Array, value: Array
) -> list[fit.Derivatives]:
    """Derivatives at values, with residuals as they are, to first order, at the start."""
    back = np.array([
        (p.to_scale(a) - p.to_scale(b)) / p.scale
        for p, a, b in zip(chosen, start, value, strict=True)
    ])  # fmt: skip
    return [fit.Derivatives(one.residual + one.jacobian @ back, one.jacobian) for one in found]


def _identified(
    replays: Sequence[Replay],
    study: fit.Study,
    before: Sequence[fit.Derivatives],
    found: Sequence[fit.Derivatives],
    columns: dict[str, list[int]],
    kept: list[str],
    start: Array,
    value: Array,
    setup: fit.Setup,
) -> Identified:
    free = [c for name in kept for c in columns[name]]
    chosen = [study.chosen[c] for c in free]
    slope = fit.slopes(chosen, value[free])

    def std(some: Sequence[fit.Derivatives]) -> Array:
        if not free:
            return np.zeros(0)
        jacobian = np.vstack([one.jacobian[:, free] for one in some]).reshape(-1, 6, len(free))
        residual = np.concatenate([one.residual for one in some]).reshape(-1, 6)
        return fit.uncertainty(jacobian, residual).std * slope

    own = [value[free] + slope * best_change([one], free) for one in found]
    others = left_out(found, free)
    stages = zip(
        (one.residual for one in before), (one.residual for one in found), others, strict=True
    )
    dropped = {
        name: fit.rms_m(left_out(found, [*free, *columns[name]]))
        for name in columns
        if name not in kept
    }
    named = {p.name: float(v) for p, v in zip(chosen, value[free], strict=True)}
    return Identified(
        tuple(Path(r.recorded.source).name for r in replays),
        tuple(chosen),
        start[free],
        value[free],
        std(found),
        np.array(own).reshape(len(replays), -1),
        np.array([std([one]) for one in found]).reshape(len(replays), -1),
        np.array([[_errors(r) for r in recording] for recording in stages]),
        fit.rms_m(others),
        dropped,
        fit.put_all(setup, named),
    )


def _errors(residual: Array) -> tuple[float, float]:
    """Mean distance [m] and angle [rad] of residuals (6 k,)."""
    away, turned = np.linalg.norm(residual.reshape(-1, 2, 3), axis=2).mean(axis=0)
    return float(away), float(turned / fit.ATTITUDE_ARM_M)


# ---------- Files


def write_identified(result: Identified, folder: Path) -> None:
    """Write identified.json, system.yaml to fly with, and a figure of the intervals."""

    def number(value: float) -> float | None:
        return float(value) if np.isfinite(value) else None

    found = {
        "recordings": list(result.recordings),
        "parameters": {
            p.name: {
                "value": float(result.value[k]),
                "std": number(result.std[k]),
                "unit": p.unit,
                "start": float(result.start[k]),
                "of_each_recording": [
                    {"value": float(own), "std": number(std), "differs": bool(off)}
                    for own, std, off in zip(
                        result.own[:, k], result.own_std[:, k], result.differs[:, k], strict=True
                    )
                ],
            }
            for k, p in enumerate(result.parameters)
        },
        "error_of_recordings_left_out_m": result.error_m,
        "left_as_they_are": {
            name: {"error_of_recordings_left_out_m": error_m}
            for name, error_m in result.dropped.items()
        },
        "errors": [
            {
                name: {"translational_error_m": m, "geodesic_error_deg": float(np.degrees(rad))}
                for name, (m, rad) in zip(ERRORS, rows.tolist(), strict=True)
            }
            for rows in result.errors
        ],
    }
    (folder / "identified.json").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    (folder / fit.SYSTEM).write_text(to_yaml(result.setup.system), encoding="utf-8")
    if result.parameters:
        with style.styled():
            style.save(intervals_figure(result), folder / "intervals.png")


def intervals_figure(result: Identified) -> Figure:
    """Draw each parameter: 90 % interval of all recordings as a band, of each as a point."""
    n, each = len(result.parameters), len(result.recordings)
    height_in = 0.16 * each + 0.42
    figure = style.new_figure(height_in * n + 0.5)
    axes = figure.subplots(n, 1, squeeze=False)[:, 0]
    style.margins(figure, 2.3, 0.2, 0.3, 0.3, hspace=0.9)
    rows = np.arange(each)
    for k, (ax, p) in enumerate(zip(axes, result.parameters, strict=True)):
        low, high = result.value[k] + INTERVAL * result.std[k] * np.array([-1.0, 1.0])
        ax.axvspan(low, high, color=style.BAND)
        ax.axvline(result.value[k], color=style.INK, linewidth=1.0)
        told = result.own_std[:, k] < (p.upper - p.lower) / 2.0
        ax.errorbar(
            result.own[told, k], rows[told], xerr=INTERVAL * result.own_std[told, k], fmt="o",
            ms=3.5, color=style.colour("drone_1"), elinewidth=1.0,
        )  # fmt: skip
        ax.set_yticks(rows, result.recordings, fontsize=6)
        ax.set(ylim=(each - 0.5, -0.5))
        ax.set_title(f"{p.name} [{p.unit}]" if p.unit else p.name, loc="left", fontsize=8)
    return figure
