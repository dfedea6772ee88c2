"""Draws the films of docs/tasks: `python docs/pictures/tasks.py [TASK ...]`.

An episode each, flown by the controller `formation` (action 0) and by the shipped policy, if there
is one: where load and drones are, and how far the load is from its goal.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
from PIL import Image

from musls.learning import TASKS, TransportVectorEnv
from musls_analysis.figures import style
from musls_control.controllers.learned import Policy, shipped_policies

HERE = Path(__file__).parent
SEED, STEPS_PER_FRAME, DPI, COLOURS, LARGEST_BYTES = 3, 4, 90, 10, 110_000
FROM_ABOVE = ("track",)

Row = tuple[np.ndarray, np.ndarray, float]
"""Places of load and drones, of the goal, distance."""


def flown(task: str, policy: Policy | None) -> list[Row]:
    """An episode, a row a step of 0.08 s, until it ends."""
    env = TransportVectorEnv(1, task, autoreset_mode="Disabled")
    if policy is not None:
        policy.check(env.observations.size, env.action_space.shape[1], "this task", "this task")
    seen, _ = env.reset(seed=SEED)
    rows, over = [], False
    while not over:
        action = np.zeros(env.action_space.shape) if policy is None else policy(seen[0])
        seen, _, failed, cut, _ = env.step(action.reshape(env.action_space.shape))
        goal = env.goal.position_enu_m[0].copy()
        rows.append((env.batch.position_enu_m[0].copy(), goal, float(env.distance_m[0])))
        over = bool(failed[0] or cut[0])
    env.close()
    return rows


def draw(task: str, episodes: dict[str, list[Row]], k: int) -> Image.Image:
    """The frame after step k."""
    axes = (0, 1) if task in FROM_ABOVE else (0, 2)
    figure = style.new_figure(1.9)
    scene, chart = figure.subplots(1, 2)
    every = np.concatenate([[*row[0], row[1]] for rows in episodes.values() for row in rows])
    low, high = every[:, axes].min(axis=0) - 0.3, every[:, axes].max(axis=0) + 0.3
    for colour, (who, rows) in zip(
        ("0.55", style.colour("drone_1")), episodes.items(), strict=False
    ):
        now = min(k, len(rows) - 1)
        bodies, goal = rows[now][0][:, axes], rows[now][1][list(axes)]
        trail = np.array([row[0][0, axes] for row in rows[: now + 1]])
        scene.plot(*trail.T, color=colour, lw=0.8)
        for drone in bodies[1:]:
            scene.plot(*np.stack([bodies[0], drone]).T, color=colour, lw=0.8)
        scene.plot(*bodies[1:].T, "o", color=colour, ms=4)
        scene.plot(*bodies[0], "s", color=colour, ms=7)
        scene.plot(*goal, "x", color="k", ms=7)
        times_s = 0.08 * np.arange(1, now + 2)
        chart.plot(times_s, [row[2] for row in rows[: now + 1]], color=colour, label=who)
    scene.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    scene.set(xlabel="x [m]", ylabel=f"{'xyz'[axes[1]]} [m]")
    most_m = max(row[2] for rows in episodes.values() for row in rows)
    chart.set(xlim=(0, 10), ylim=(0, 1.1 * most_m), xlabel="time [s]")
    chart.set(ylabel="load to goal [m]")
    chart.legend(loc="upper right", frameon=False)
    figure.set_layout_engine("tight")
    out = io.BytesIO()
    figure.savefig(out, dpi=DPI, format="png")
    return Image.open(out).convert("RGB")


def main() -> None:
    """Draw those that are named, or all."""
    for task in sys.argv[1:] or TASKS:
        episodes = {"formation": flown(task, None)}
        if f"{task}_policy" in shipped_policies():
            episodes["learned"] = flown(task, Policy(f"{task}_policy"))
        steps = max(map(len, episodes.values()))
        with style.styled():
            film = [draw(task, episodes, k) for k in range(0, steps, STEPS_PER_FRAME)]
        palette = film[-1].quantize(COLOURS)  # one for all: what stays takes no room
        film = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in film]
        path, lasts_ms = HERE / f"task_{task}.gif", 80 * STEPS_PER_FRAME
        film[0].save(path, save_all=True, append_images=film[1:], duration=lasts_ms, loop=0)
        if path.stat().st_size > LARGEST_BYTES:
            raise SystemExit(f"{path}: {path.stat().st_size} bytes, at most {LARGEST_BYTES}")


if __name__ == "__main__":
    main()
