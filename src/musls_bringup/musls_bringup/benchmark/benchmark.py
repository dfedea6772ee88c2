"""One benchmark for controllers: a fixed set of flights, scored alike. See `docs/benchmark.md`."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import as_completed
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from musls_analysis.comparison.errors import error_track
from musls_analysis.comparison.summary import flight_warnings, slack_mask
from musls_analysis.recordings.recording import LOAD, Recording, main_stages
from musls_bringup.catalogue.overrides import flight_overrides
from musls_bringup.catalogue.shipped import VERSION
from musls_bringup.flight.fly import fly_in_memory, slack_threshold_n
from musls_control.child_processes import ProcessDied, worker_count, worker_processes
from musls_description.config.errors import ConfigError, MuslsError, near_names, writing
from musls_description.config.strict_yaml import parse_yaml, read_text
from musls_sim.scenario.scenario import Scenario, load_scenario
from musls_sim.session.control import make_controller
from musls_sim.session.session import Session
from musls_sim.specs.physics import CONTROL_PERIOD_S

TASKS = Path(__file__).parent / "v3.yaml"
FLOWN = "flown.jsonl"
"""File in the folder of the results that takes the rows while the benchmark is flown."""

BASELINES = ("formation", "payload")
"""Controllers that fly if none is named."""

SCORES = {
    "rms_m": "rms error of the load [m]",
    "rms_deg": "rms angle of the load [deg]",
    "max_tension_n": "largest tension [N]",
    "slack_share": "share of time in which a cable is slack",
    "energy_j": "mechanical energy of the rotors [J]",
    "effort_rad_s2": "rms rate of the rotor speeds [rad/s^2]",
    "closest_m": "least distance of two drones' centres [m]",
    "controller_us": "mean time of a call of the controller [us]",
}
"""Columns of the table with what they are."""

PACKAGES = ("numpy", "scipy", "numba", "casadi")
"""Packages whose versions are written into the results."""

WARM_PERIODS = 5
"""Flown before each flight, so that what is compiled does not count as time of the controller."""

Row = dict[str, Any]


def file_of(controller: str) -> Path | None:
    """The policy or the Python file that a controller is given by, None for a kind or a setting."""
    source, _, name = controller.rpartition(":")
    if controller.endswith(".onnx"):
        return Path(controller).absolute()
    return Path(source).absolute() if source.endswith(".py") and name else None


def label(controller: str) -> str:
    """Name of a controller in results: without the folder of its file."""
    file = file_of(controller)
    return controller if file is None else controller[controller.rindex(file.name) :]


def cases(controllers: Sequence[str], *, quick: bool) -> list[Row]:
    """All flights: controller, task, system, seed and the content of the scenario."""
    data = parse_yaml(read_text(TASKS), str(TASKS))
    rows = []
    for name, number in Counter(map(label, dict.fromkeys(controllers))).items():
        if number > 1:
            raise ConfigError(f"controllers: {number} files are called {name}: rename all but one")
    for controller in controllers:
        settings = data["controllers"].get(controller)
        overrides = [] if settings else flight_overrides(None, None, None, controller)
        file = file_of(controller)
        for task, entry in data["tasks"].items():
            for system in entry.get("quick", []) if quick else entry["systems"]:
                scenario = {
                    **data["systems"][system],
                    **data["set"],
                    **entry["set"],
                    **(settings or {}),
                }
                for seed in entry.get("seeds", [0])[: 1 if quick else None]:
                    rows.append(
                        {
                            "controller": label(controller),
                            "task": task,
                            "system": str(system),
                            "seed": seed,
                            "limit_m": data["success_m"],
                            "scenario": {**scenario, "seed": seed},
                            "overrides": overrides,
                            "folder": "" if file is None else f"{file.parent}{os.sep}",
                        }
                    )
        example = load_scenario(rows[-1]["scenario"], overrides)
        make_controller(example, CONTROL_PERIOD_S)  # a bad one is told at once
    return rows


def benchmark(
    controllers: Sequence[str] = BASELINES,
    *,
    quick: bool = False,
    workers: int | None = 1,
    progress: Callable[[int, int], None] = lambda count, total: None,
    kept: Path | None = None,
) -> list[Row]:
    """Fly all tasks with all controllers; a row a flight, with `SCORES`, "success" and "reason".

    `kept` is a file that takes each row as it is flown; flights whose row stands there, of the same
    controller, tasks and version, are not flown again.

    Raises:
        ConfigError: A controller that is none.
        KeyboardInterrupt: With the rows that were flown as `rows`.
    """
    for name in controllers:
        if not name.strip():
            raise ConfigError(f"controllers: an empty name; {near_names(name, BASELINES)}")
    all_cases = cases(controllers, quick=quick)
    sources = {label(one): _configuration(one) for one in controllers}
    keys = [_key(case, sources[case["controller"]]) for case in all_cases]
    old_rows = {} if kept is None else _kept_rows(kept)
    rows = {k: old_rows[key] for k, key in enumerate(keys) if key in old_rows}
    progress(len(rows), len(all_cases))
    try:
        with worker_processes(worker_count(workers, len(all_cases))) as pool:
            flights = {
                pool.submit(fly_case, case): k for k, case in enumerate(all_cases) if k not in rows
            }
            for flight in as_completed(flights):
                k = flights[flight]
                try:
                    rows[k] = flight.result()
                    if kept is not None:
                        _keep_row(kept, keys[k], rows[k])
                except ProcessDied as error:  # its controller ended it, or took all memory
                    rows[k] = failed_row(all_cases[k], str(error))
                progress(len(rows), len(all_cases))
    except KeyboardInterrupt as error:
        error.rows = [rows[k] for k in sorted(rows)]  # type: ignore[attr-defined]
        raise
    return [rows[k] for k in sorted(rows)]


def _key(case: Mapping[str, Any], source: Row) -> str:
    """Hash of all inputs of a row: case, controller file or settings, tasks and version."""
    content = {name: value for name, value in case.items() if name != "folder"}
    return _hash(read_text(TASKS) + VERSION, [content | {"overrides": []}, source])


def _kept_rows(file: Path) -> dict[str, Row]:
    """Rows of an unfinished benchmark by their keys; a line that was cut is passed over."""
    if not os.path.isfile(file):
        return {}
    rows = {}
    for line in read_text(file).splitlines():
        with suppress(ValueError, KeyError, TypeError):
            entry = json.loads(line)
            rows[str(entry["key"])] = dict(entry["row"])
    return rows


def _keep_row(file: Path, key: str, row: Row) -> None:
    with writing(file.parent):
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as out:
            out.write(json.dumps({"key": key, "row": row}) + "\n")


def failed_row(case: Mapping[str, Any], reason: str) -> Row:
    """Row of a case that has no scores."""
    row: Row = {name: case[name] for name in ("controller", "task", "system", "seed")}
    return row | {"success": False, "reason": reason, **dict.fromkeys(SCORES)}


def fly_case(case: Mapping[str, Any]) -> Row:
    """Fly one case; what fails is a failed flight with its reason."""
    row = failed_row(case, "")
    try:
        scenario = load_scenario(case["scenario"], case["overrides"])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what makes a flight doubtful is among its reasons
            return row | fly_scored(scenario, case["limit_m"])
    except MuslsError as error:
        reason = " ".join(str(error).split())
        return row | {"reason": reason.replace(case["folder"], "") if case["folder"] else reason}


def fly_scored(scenario: Scenario, limit_m: float = np.inf) -> Row:
    """Fly a scenario; `SCORES`, "success" and the "reason" against it.

    Raises:
        MuslsError: It cannot be flown, or fails.
    """
    with Session(scenario, force=True) as session:
        session.advance(WARM_PERIODS)
    with Session(scenario, force=True) as session:
        recording = fly_in_memory(session)
        row: Row = dict.fromkeys(SCORES)
        row |= scores(recording, scenario)
        if session.separation is not None and session.separation.closest is not None:
            row["closest_m"] = session.separation.closest.centres_m
        row["controller_us"] = session.control.mean_step_us
    # A drone that is lost on purpose is no fault of the controller; `flight_warnings` knows it.
    reasons = list(flight_warnings(recording, scenario.autopilot.parameters))
    if not row["rms_m"] < limit_m:
        reasons.append(f"rms error {row['rms_m']:.2f} m")
    return row | {"success": not reasons, "reason": "; ".join(reasons)}


def scores(recording: Recording, scenario: Scenario) -> Row:
    """Scores of a flight, over the stages of the mission that carry the load."""
    stages = main_stages(recording.stages)

    def during(time_s: np.ndarray) -> np.ndarray:
        return np.any([recording.stage_mask(stage, time_s) for stage in stages], axis=0)

    def rms(values: np.ndarray) -> float:
        values = values[np.isfinite(values)]
        return float(np.sqrt(np.mean(values**2))) if values.size else float("nan")

    track = error_track(recording, LOAD)
    inside = during(track.time_s)
    threshold = slack_threshold_n(scenario)
    tension = 0.0
    slack = []
    for cable in recording.cables.values():
        time_s, peaks = cable.largest()
        tension = max(tension, float(peaks[during(time_s)].max(initial=0.0)))
        slack.append(slack_mask(cable, threshold)[during(cable.time_s)])
    energy = 0.0
    rates = []
    for k, drone in enumerate(scenario.system.drones, start=1):
        spun = recording.rotors[f"drone_{k}"]
        mask = during(spun.time_s)
        torque = [r.thrust_coefficient_n_s2 * r.moment_ratio_m for r in drone.rotors]
        speed = spun.speed_rad_s[mask]
        time_s = spun.time_s[mask]
        energy += float(np.trapezoid(np.abs(speed) ** 3 @ np.array(torque), time_s))
        rates.append(np.diff(speed, axis=0) / np.diff(time_s)[:, None])
    return {
        "rms_m": rms(track.translational_error_m[inside]),
        "rms_deg": float(np.degrees(rms(track.geodesic_error_rad[inside]))),
        "max_tension_n": tension,
        "slack_share": float(np.mean(np.any(slack, axis=0))),
        "energy_j": energy,
        "effort_rad_s2": rms(np.concatenate([rate.ravel() for rate in rates])),
    }


# ---------- Results


def digest(rows: Sequence[Row]) -> str:
    """SHA-256 of the tasks' file and of all that does not depend on the machine's speed."""
    stable_rows = [{k: v for k, v in row.items() if k != "controller_us"} for row in rows]
    return _hash(read_text(TASKS), stable_rows)


def _hash(text: str, content: Any) -> str:
    return hashlib.sha256((text + json.dumps(content, sort_keys=True)).encode()).hexdigest()


def _configuration(controller: str) -> Row:
    """Settings of a controller of the tasks' file, or name and SHA-256 of your own file."""
    entry: Row | None = parse_yaml(read_text(TASKS), str(TASKS))["controllers"].get(controller)
    file = file_of(controller)
    if entry is not None or file is None:
        return entry or {"controller": controller}
    return {"file": label(controller), "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}


def write(rows: Sequence[Row], out: Path, controllers: Sequence[str]) -> list[Path]:
    """Write results.json (see the docs), tables as CSV, HTML, LaTeX, and errors.png.

    `controllers`: as they were given, see `benchmark`.
    """
    heads, cells = table(rows)
    line = " & ".join
    tex = [line(heads).replace("_", r"\_").replace("%", r"\%") + r" \\ \hline"]
    tex += [line(row).replace("_", r"\_") + r" \\" for row in cells]
    html = "".join(
        "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in row) + "</tr>\n"
        for tag, row in [("th", heads), *(("td", row) for row in cells)]
    )
    results = {
        "benchmark": TASKS.stem,
        "musls": VERSION,
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "machine": platform.machine(),
        "controllers": {label(one): _configuration(one) for one in controllers},
        "digest": digest(rows),
        "scores": SCORES,
        "rows": list(rows),
    }
    content = {
        "results.json": json.dumps(results, indent=2) + "\n",
        "results.csv": "\n".join([",".join(rows[0]), *map(_csv, rows)]) + "\n",
        "table.html": f"<table>\n{html}</table>\n",
        "table.tex": "\\begin{tabular}{lll"
        + "r" * (len(heads) - 3)
        + "}\n"
        + "\n".join(tex)
        + "\n\\end{tabular}\n",
    }
    with writing(out):
        out.mkdir(parents=True, exist_ok=True)
        for name, text in content.items():
            (out / name).write_text(text, encoding="utf-8")
        draw(rows, out / "errors.png")
    return [*(out / name for name in content), out / "errors.png"]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw the rms error of the load: a line a task and system, a mark a controller and seed.

    Flights that failed are hollow; those without a figure stand at the right edge.
    """
    from musls_analysis.figures import style

    lines = sorted({(row["task"], row["system"]) for row in rows}, reverse=True)
    names = list(dict.fromkeys(row["controller"] for row in rows))
    with style.styled():
        figure = style.new_figure(1.2 + 0.22 * len(lines))
        ax = figure.add_subplot()
        edge = 3.0 * max((row["rms_m"] for row in rows if row["rms_m"]), default=1.0)
        for k, name in enumerate(names):
            colour = style.colour(f"drone_{k + 1}")
            for success in (True, False):
                own = [r for r in rows if r["controller"] == name and bool(r["success"]) is success]
                height = [lines.index((r["task"], r["system"])) for r in own]
                error = [edge if r["rms_m"] is None else r["rms_m"] for r in own]
                ax.scatter(
                    error,
                    height,
                    s=22,
                    edgecolors=colour,
                    facecolors=colour if success else "none",
                    label=name if success else None,
                )
        style.logarithmic(ax, "x")
        ax.set_ylim(-0.6, len(lines) - 0.4)
        ax.set_xlabel("rms error of the load [m]; hollow: failed")
        ax.set_yticks(range(len(lines)), [f"{task}, {system}" for task, system in lines])
        ax.grid(axis="y", alpha=0.3)
        top = style.legend_on_top(figure, ax.get_legend_handles_labels()[0])
        style.margins(figure, 1.9, 0.15, 0.5, top + 0.1)
        style.save(figure, path)


def _csv(row: Row) -> str:
    return ",".join(
        '"' + str("" if value is None else value).replace('"', "'") + '"' for value in row.values()
    )


def table(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells: a row a task, system and controller; means over the seeds."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["task"], row["system"], row["controller"]), []).append(row)
    cells = []
    for (task, system, controller), flights in groups.items():
        line = [task, system, controller]
        line.append(f"{sum(row['success'] for row in flights)}/{len(flights)}")
        for name in SCORES:
            numbers = [row[name] for row in flights if row[name] is not None]
            line.append(f"{np.mean(numbers):.3g}" if numbers else "-")
        cells.append(line)
    return ["task", "system", "controller", "flown", *SCORES], sorted(cells)
