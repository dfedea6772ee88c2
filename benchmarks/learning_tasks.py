"""Returns at the tasks for learning: random actions, formation, payload and trained policies.

    .venv/bin/python benchmarks/learning_tasks.py             # extras rl and learned
    .venv/bin/python benchmarks/learning_tasks.py --tasks track --policy mine.onnx
    .venv/bin/python benchmarks/learning_tasks.py --tasks hover transport track --seeds runs

Mean and worst over episodes whose goals and pushes were not trained on, 125 at most; `payload`
acts every 4 ms, knows the goal's motion and pays nothing for changes of its action.

`--seeds FOLDER` takes the policies TASK_1.onnx, TASK_2.onnx, ... there, which examples/train_sb3.py
made, gives the returns of each, and ships the one whose mean is the median over other episodes.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import sys
from pathlib import Path

import numpy as np

from musls.learning import TASKS, TransportVectorEnv
from musls_control.controllers import ControlSetup
from musls_control.controllers.learned import (
    ACCELERATION_M_S2,
    POLICIES,
    POSITION_M,
    SETPOINT_REACH_M,
    VELOCITY_M_S,
    Policy,
    shipped_policies,
)
from musls_control.controllers.payload.controller import PayloadSpec
from musls_control.estimate import Estimate
from musls_control.reference import LoadReference
from musls_description.config.errors import MuslsError
from musls_sim.specs.physics import CONTROL_PERIOD_S

STEPS = 125

REPORTED, CHOOSING = 1000, 2000
"""Seeds of the episodes that the table is of, and of those by which a policy is chosen."""


class ByPayload:
    """Mixed into a task: the controller `payload` flies instead of the action."""

    _flown: list | None = None

    def begin(self, env, worlds):
        """Begin the episode as the task does."""
        super().begin(env, worlds)
        self._flown = None

    def command(self, env):
        """What the controllers command, one a world."""
        data, goal = env.batch.estimate, env.goal
        if new := self._flown is None:
            nominal = env.nominal
            setup = ControlSetup(
                env.system, nominal.formation, nominal.physics.gravity_m_s2, CONTROL_PERIOD_S
            )
            self._flown = [PayloadSpec(output="direct").build(setup) for _ in data]
        commands = np.zeros((len(data), data.shape[1] - 1, 7))
        for i, controller in enumerate(self._flown):
            estimate = Estimate(data[i])
            estimate.tension_n[:] = env.batch.tension_n[i]
            wanted = np.zeros((5, 4))
            wanted[0], wanted[1, :3] = [*goal.position_enu_m[i], goal.yaw_rad[i]], goal[1][i]
            wanted[2, :3] = goal.acceleration_enu_m_s2[i]
            time_s = float(env.batch.time_s[i])
            if new:
                controller.start(time_s, estimate)
            asked = controller.step(time_s, LoadReference(wanted), estimate)[:, :7]
            commands[i, :, : asked.shape[1]] = asked
        return commands


def returns(task, act, number, seed=REPORTED, **given):
    """Return of an episode in each world."""
    env = TransportVectorEnv(number, task, **given)
    seen, _ = env.reset(seed=seed)
    total, alive = np.zeros(number), np.ones(number, bool)
    share = env.step_s / env.duration_s * STEPS
    while alive.any():
        seen, reward, failed, over, _ = env.step(act(env, seen))
        total += alive * reward * np.where(reward < 0.0, 1.0, share)  # a fall costs what it costs
        alive &= ~(failed | over)
    env.close()
    return total


def nothing(env, seen):
    """Actions of 0."""
    return np.zeros(env.action_space.shape)


GAINS, LARGEST_LEAD_M = (0.72, 0.78, 0.27, 0.45), 1.5
"""Of the goal's velocity [s] and acceleration [s2], the load's error and its rate [s]: found by a
random search of 300 000 steps at Track, and nearly the best that these four can."""


def four_gains(env, seen):
    """All drones lead by a shift that is linear in goal and error."""
    error_m, rate_m_s = POSITION_M * seen[:, 0:3], VELOCITY_M_S * seen[:, 3:6]
    goal_m_s, goal_m_s2 = VELOCITY_M_S * seen[:, -6:-3], ACCELERATION_M_S2 * seen[:, -3:]
    lead_m = np.tensordot(GAINS, [goal_m_s, goal_m_s2, -error_m, -rate_m_s], axes=1)
    lead_m = lead_m.clip(-LARGEST_LEAD_M, LARGEST_LEAD_M)
    return np.tile(lead_m / (SETPOINT_REACH_M * env.action_scale), env.actions.shape[0])


def of_policy(task, path, number, seed=REPORTED):
    """Returns of a policy from a file or of a shipped one."""
    policy, env = Policy(str(path)), TransportVectorEnv(1, task)
    inputs, outputs = env.single_observation_space.shape[0], env.action_space.shape[1]
    policy.check(inputs, outputs, "this system", "this system")
    return returns(
        task, lambda e, seen: np.array([policy(one).ravel() for one in seen]), number, seed
    )


def ship_median(name, files, number):
    """Ship the policy in the middle of an odd number of them, by episodes that are not reported."""
    means = [of_policy(TASKS[name], file, number, CHOOSING).mean() for file in files]
    chosen = files[int(np.argsort(means)[len(means) // 2])]
    shutil.copy(chosen, POLICIES / f"{name}_policy.onnx")
    told = ", ".join(f"{file.stem} {mean:.2f}" for file, mean in zip(files, means, strict=True))
    print(f"{name}: {told}: shipped is {chosen.stem}", file=sys.stderr)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    parser.add_argument("--policy", help="instead of the shipped TASK_policy")
    parser.add_argument("--seeds", type=Path, metavar="FOLDER", help="of TASK_1.onnx, ...")
    parser.add_argument("--worlds", type=int, default=64)
    given = parser.parse_args()
    rng, out = np.random.default_rng(1), csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(("task", "controller", "mean", "worst"))
    for name in given.tasks:
        kind = TASKS[name]

        def tell(who, found, task=name):
            out.writerow((task, who, f"{found.mean():.1f}", f"{found.min():.1f}"))
            sys.stdout.flush()

        tell(
            "random",
            returns(kind, lambda e, _: rng.uniform(-1, 1, e.action_space.shape), given.worlds),
        )
        tell("formation", returns(kind, nothing, given.worlds))
        tell("four gains", returns(kind, four_gains, given.worlds))
        flown = type(kind.__name__, (ByPayload, kind), {})
        try:
            tell(
                "payload", returns(flown, nothing, given.worlds, level="forces", periods_per_step=1)
            )
        except MuslsError as error:
            print(f"{name}: payload: {error}", file=sys.stderr)
        files = sorted(given.seeds.glob(f"{name}_*.onnx")) if given.seeds else []
        if files:
            ship_median(name, files, given.worlds)
        shipped = f"{name}_policy"
        if given.policy or shipped in shipped_policies():
            tell("learned", of_policy(kind, given.policy or shipped, given.worlds))
        for file in files:
            tell(f"seed {file.stem.removeprefix(f'{name}_')}", of_policy(kind, file, given.worlds))


if __name__ == "__main__":
    main()
