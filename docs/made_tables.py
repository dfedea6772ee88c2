"""Tables that stand in pages and are made from the code and from results that are kept.

A page says where one belongs: `<!-- made: NAME -->`, the table, `<!-- end -->`. docs/build.py fills
them in for the site; those of `FILLED` are filled in the repository, too, by
`python docs/made_tables.py`, so that they can be read there.
"""

from __future__ import annotations

import ast
import csv
import inspect
import json
import re
from collections.abc import Iterable
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from musls_control.controllers import learned
from musls_description.config.documented_keys import short
from musls_description.config.errors import MuslsError
from musls_description.config.registry import Registry

DOCS = Path(__file__).parent
BENCHMARKS = DOCS.parent / "benchmarks"
RETURNS = BENCHMARKS / "learning_tasks.csv"
"""What benchmarks/learning_tasks.py prints."""

LEADERBOARD = BENCHMARKS / "leaderboard"
"""Files results.json of `musls benchmark`, renamed."""

REHEARSALS = BENCHMARKS / "rehearsals"
"""Files rehearsal.csv of `musls ros rehearse`, with the names of their scenarios."""

FILLED = ("learning.md", "leaderboard.md", "power.md", "real_flights.md")
"""Pages whose tables stand in the repository."""

BLOCK = re.compile(r"<!-- made: (\w+) ?(\w*) -->\n(?:.*?\n)?<!-- end -->", re.S)


def filled(text: str) -> str:
    """A page with all its tables as they are now."""

    def fill(found: re.Match[str]) -> str:
        name = f"{found[1]} {found[2]}".strip()
        made = MADE[found[1]](*found.groups()[1:] if found[2] else ())
        return f"<!-- made: {name} -->\n\n{made}\n\n<!-- end -->"

    return BLOCK.sub(fill, text)


def stages() -> str:
    """The stages of a control period; a file that one of them names has to be there."""
    from musls_sim.session.stages import TABLE

    rows = []
    for entry in TABLE:
        places = entry.where.split(", ")
        for place in places:
            folder = "" if place.startswith("musls_") else "musls_sim/"
            if not list((DOCS.parent / "src").glob(f"*/{folder}{place}")):
                raise ValueError(f"stage {entry.name}: no file {place}")
        rows.append((f"`{entry.name}`", entry.what, ", ".join(f"`{p}`" for p in places)))
    return _table(("stage", "what it does", "in"), rows)[0]


def world() -> str:
    """The fields of a world."""
    from musls_sim.session.compiled_stages.fields import LAYOUT

    return "\n".join(LAYOUT.page())


def api() -> str:
    """All public names, from `__all__` of `musls` and its modules, for mkdocstrings.

    Raises:
        ValueError: A public name has no docstring to show.
    """
    import musls

    public = {
        name: import_module(name) for name in ("musls", *map("musls.{}".format, musls.MODULES))
    }
    lines = []
    for title, module in public.items():
        about = (module.__doc__ or "").partition("\n")[0]
        lines += [f"## {title}", about if module is not musls else "Flights, bases of own classes."]
        places = _imports(Path(str(module.__file__)))
        for name in sorted({*module.__all__} - {*musls.MODULES, "__version__"}):
            lines.append(_entry(module, name, places.get(name, f"{title}.{name}")))
    return "\n\n".join(lines)


def _imports(file: Path) -> dict[str, str]:
    """Place of each name that a module imports, or its stub where it has one."""
    stub = file.with_suffix(".pyi")
    source = ast.parse((stub if stub.is_file() else file).read_text(encoding="utf-8"))
    return {
        alias.asname or alias.name: f"{line.module}.{alias.name}"
        for line in source.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }


def _entry(module: ModuleType, name: str, place: str) -> str:
    """A public name on the page: what mkdocstrings is to show, or a line about a registry."""
    try:
        thing = getattr(module, name)
    except (ImportError, MuslsError):  # an extra that is not needed for the page
        return f"::: {place}"
    registry = getattr(thing, "__self__", thing)
    if isinstance(registry, Registry):
        kinds = ", ".join(f"`{kind}`" for kind in sorted(registry)) or "none is shipped"
        entries = f"Registry, {registry.what} by name: {kinds}."
        enters = f'`@register("name")` enters a class or function as {registry.what}.'
        return f"### {name}\n\n{entries if thing is registry else enters}"
    if inspect.ismodule(thing):
        return f"### {name}\n\n{(thing.__doc__ or '').partition(chr(10))[0]}"
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return f"::: {place}"
    if not thing.__doc__:
        raise ValueError(f"{module.__name__}.{name} has no docstring")
    options = []
    if any(base.__name__ == name for base in getattr(thing, "__bases__", ())):
        options.append("inherited_members: true")
    if thing.__name__ != name:
        options.append(f"heading: {name}")
    shown = "".join(f"\n      {option}" for option in options)
    return f"::: {thing.__module__}.{thing.__qualname__}" + f"\n    options:{shown}" * bool(shown)


def doors() -> str:
    """Ways to start drones, and what each asks before."""
    from musls_bringup.before.verdict import DOORS

    rows = [
        (
            door.name,
            "yes" if door.flies_before else "no",
            f"`{door.force}`" if door.force else "-",
            str(door.refuses_with),
        )
        for door in DOORS
    ]
    told = ("door", "flies it in memory first", "overrules what can be", "exit code when refused")
    return _table(told, rows)[0]


# ---------- Tasks for learning


def observed(env: Any) -> list[tuple[int, int, str, str, float | None, str]]:
    """What stands where in an observation: first number, how many, part, what, a 1, its unit."""
    n, share_n = len(env.system.drones), env.weight_n / len(env.system.drones)
    same = f"the same {learned.BODY_COLUMNS} of drone 1 to {n} in turn; position relative to its "
    known = {
        "load": [
            (count, f"{what}{', relative to the goal' if unit in ('m', 'm/s') else ''}", one, unit)
            for what, count, one, unit in learned.BODY_SEEN
        ],
        "drones": [
            (
                n * learned.BODY_COLUMNS,
                f"{same}place in the formation round the load, velocity relative to the load",
                None,
                "",
            )
        ],
        "tension": [
            (2 * n, f"of cable 1 to {n} in turn, at the load and at the drone", share_n, "N")
        ],
        "goal": [
            (3, "its velocity", learned.VELOCITY_M_S, "m/s"),
            (3, "its acceleration", learned.ACCELERATION_M_S2, "m/s²"),
        ],
    }
    found, first = [], 0
    for name, shape in env.observations.shapes.items():
        rows = known[name]
        if sum(row[0] for row in rows) != np.prod(shape):
            raise ValueError(f"{name}: the table has not {np.prod(shape)} numbers")
        for count, what, one, unit in rows:
            found.append((first, count, name, what, one, unit))
            first += count
    return found


def tables(task: str) -> str:
    """Observation, action, reward, episode and returns of a task."""
    from musls.learning import TransportVectorEnv

    env = TransportVectorEnv(1, task)
    drones, columns = env.actions.shape
    scenario, steps = env.nominal, round(env.duration_s / env.step_s)
    reach_m = learned.SETPOINT_REACH_M * env.action_scale
    seen = [
        (
            f"{first} to {first + count - 1}",
            name,
            what,
            "" if one is None else f"{one:.3g} {unit}".strip().replace(" ", "&nbsp;"),
        )
        for first, count, name, what, one, unit in observed(env)
    ]
    own = [(f"`{field.name}`", short(getattr(env.task, field.name))) for field in fields(env.task)]
    text = inspect.cleandoc(type(env.task).reward.__doc__ or "").partition("\n\n")[2]
    ends = " ".join((env.task.failed.__doc__ or "").split()).removeprefix("Whether ")
    lines = [
        "## Observation",
        f"{env.observations.size} numbers, float32, in axes turned by the goal's yaw; none beyond "
        f"±{learned.LARGEST_SEEN:g}. `dict_observations=True` hands them out by part.",
        *_table(("numbers", "part", "what", "a 1 is"), seen),
        "## Action",
        f"{drones * columns} numbers in [-1, 1], {columns} a drone, held for {env.step_s:g} s: "
        f"shift of its place in the formation round the goal along the same axes; a 1 is "
        f"{reach_m:g} m, 0 is the controller `formation`. "
        "[Other levels](../learning.md#what-a-policy-sees-and-does)",
        "## Reward",
        " ".join(text.split()) + f" A failed episode costs {env.task.fall_penalty:g}.",
        "## Episode",
        f"Scenario `{scenario.name}`: {drones} drones, a load of {env.system.load.mass_kg:g} kg. "
        f"{env.duration_s:g} s, {steps} steps, so that {steps} is the largest return. "
        f"Before that it fails where this is true: {ends[0].lower()}{ends[1:]}",
        *_table(("argument of the task", "default"), own),
        "## Returns",
        *returns(task),
    ]
    env.close()
    return "\n\n".join(lines)


def returns(task: str) -> list[str]:
    """Table of mean and worst returns, and the spread over the seeds of the training."""
    shown, seeds = _returns(task)
    lines = _table(("controller", "mean", "worst"), [(f"`{k}`", *v) for k, v in shown.items()])
    if seeds:
        lines.append(f"All {len(seeds)} seeds that were trained: {_spread(seeds)}.")
    return lines


def overview() -> str:
    """Mean and worst returns of all tasks, a line each."""
    with RETURNS.open(encoding="utf-8", newline="") as file:
        tasks = list(dict.fromkeys(row["task"] for row in csv.DictReader(file)))
    who = ("random", "formation", "payload", "learned")
    lines = []
    for task in tasks:
        shown, seeds = _returns(task)
        cells = [f"{shown[k][0]} ({shown[k][1]})" if k in shown else "" for k in who]
        lines.append((f"[`{task}`](tasks/{task}.md)", *cells, _spread(seeds) if seeds else ""))
    return _table(("task", *who, "all seeds"), lines)[0]


def _returns(task: str) -> tuple[dict[str, tuple[str, str]], list[float]]:
    """Mean and worst by controller, and the means of all seeds that were trained."""
    with RETURNS.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["task"] == task]
    shown = {r["controller"]: (r["mean"], r["worst"]) for r in rows}
    seeds = [float(shown.pop(name)[0]) for name in list(shown) if name.startswith("seed ")]
    return shown, seeds


def _spread(means: list[float]) -> str:
    """Mean and standard deviation over seeds, with the least and the largest."""
    about = f"{np.mean(means):.1f} ± {np.std(means, ddof=1):.1f}"
    return f"{about} ({min(means):.1f} to {max(means):.1f})"


# ---------- The leaderboard of `musls benchmark`


def leaderboard() -> str:
    """Rms error of the load, a line a task and system, a column a controller; the least is bold."""
    rows: list[dict[str, Any]] = []
    for path in sorted(LEADERBOARD.glob("*.json")):
        rows += json.loads(path.read_text(encoding="utf-8"))["rows"]
    names = list(dict.fromkeys(row["controller"] for row in rows))
    lines = []
    for task, system in dict.fromkeys((row["task"], row["system"]) for row in rows):
        own = [row for row in rows if (row["task"], row["system"]) == (task, system)]
        cells = [_cell([row for row in own if row["controller"] == name]) for name in names]
        best = min((cell for cell in cells if cell[0].isdigit()), key=float, default="")
        shown = [f"**{cell}**" if cell == best else cell for cell in cells]
        lines.append((f"{task.replace('_', ' ')}, {system}", *shown))
    flown = [
        str(sum(cell.strip("*")[0].isdigit() for cell in column))
        for column in list(zip(*lines, strict=True))[1:]
    ]
    lines.append((f"succeeded, of {len(lines)}", *flown))
    return _table(("task, drones", *(f"`{name}`" for name in names)), lines)[0]


def _cell(flights: list[dict[str, Any]]) -> str:
    """Mean of the rms error [m] over the seeds; "-" where the system is refused."""
    if not flights or all(f["reason"].startswith("controller.") for f in flights):
        return "-"
    if not all(flight["success"] for flight in flights):
        return "failed"
    return f"{np.mean([flight['rms_m'] for flight in flights]):.3f}"


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = [heads, ("---",) * len(heads), *rows]
    return ["\n".join(f"|{'|'.join(line)}|" for line in lines)]


def rehearsal(scenario: str) -> str:
    """What a rehearsal wrote, with the reason alone of what was seen."""
    heads = ("what happens", "seen as", "within", "farthest drone", "load moved", "what was done")
    rows = []
    with (REHEARSALS / f"{scenario}.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            who, _, why = row["seen_by"].partition(": ")
            seen = f"{who}: {why.split(':')[0] if who == 'mocap_relay' else why.split(',')[0]}"
            within = float(row["within_s"])
            done = row["outcome"] + f" (**{row['broken']}**)" * bool(row["broken"])
            moved = (f"{float(row[name]):.2f} m" for name in ("farthest_m", "load_moved_m"))
            shown = "" if np.isnan(within) else f"{within:.2f} s"
            rows.append((row["what"], seen, shown, *moved, done))
    return "\n".join(_table(heads, rows))


MADE = {
    "api": api,
    "stages": stages,
    "rehearsal": rehearsal,
    "doors": doors,
    "world": world,
    "task": tables,
    "returns": overview,
    "leaderboard": leaderboard,
}


def main() -> None:
    """Fill in the pages of the repository."""
    for name in FILLED:
        page = DOCS / name
        page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
