"""Returns at the tasks for learning: random actions, formation, payload and trained policies.

    .venv/bin/python benchmarks/learning_tasks.py             # extras rl and learned
    .venv/bin/python benchmarks/learning_tasks.py --tasks track --policy mine.onnx

Mean and worst over episodes whose goals and pushes were not trained on, 125 at most; `payload`
acts every 4 ms, knows the goal's motion and pays nothing for changes of its action.
"""

from __future__ import annotations

import argparse

import numpy as np

from musls.envs import TASKS, TransportVectorEnv
from musls_control.controllers import ControlSetup
from musls_control.controllers.learned import Policy, shipped_policies
from musls_control.controllers.payload.controller import PayloadSpec
from musls_control.estimate import Estimate
from musls_control.reference import LoadReference
from musls_description.config.errors import MuslsError
from musls_sim.specs.physics import CONTROL_PERIOD_S

STEPS = 125


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


def returns(task, act, number, **given):
    """Return of an episode in each world."""
    env = TransportVectorEnv(number, task, **given)
    seen, _ = env.reset(seed=1000)
    total, alive = np.zeros(number), np.ones(number, bool)
    share = env.step_s / env.duration_s * STEPS
    while alive.any():
        seen, reward, failed, over, _ = env.step(act(env, seen))
        total += alive * reward * np.where(reward < 0.0, 1.0, share)  # a fall costs what it costs
        alive &= ~(failed | over)
    env.close()
    return total


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    parser.add_argument("--policy", help="instead of the shipped TASK_policy")
    parser.add_argument("--worlds", type=int, default=20)
    given = parser.parse_args()
    rng = np.random.default_rng(1)
    print("task,random,worst,formation,worst,payload,worst,learned,worst")
    for name in given.tasks:
        kind = TASKS[name]
        rows = {
            "random": returns(
                kind, lambda e, _: rng.uniform(-1, 1, e.action_space.shape), given.worlds
            ),
            "formation": returns(kind, lambda e, _: np.zeros(e.action_space.shape), given.worlds),
        }
        flown = type(kind.__name__, (ByPayload, kind), {})
        try:
            rows["payload"] = returns(
                flown, lambda e, _: np.zeros(e.action_space.shape), given.worlds,
                level="forces", periods_per_step=1,
            )  # fmt: skip
        except MuslsError as error:
            print(f"{name}: payload: {error}")
        shipped = f"{name}_policy"
        if given.policy or shipped in shipped_policies():
            policy = Policy(given.policy or shipped)
            env = TransportVectorEnv(1, kind)
            inputs, outputs = env.single_observation_space.shape[0], env.action_space.shape[1]
            policy.check(inputs, outputs, "this system", "this system")
            rows["learned"] = returns(
                kind,
                lambda e, seen, p=policy: np.array([p(one).ravel() for one in seen]),
                given.worlds,
            )
        each = [rows.get(who) for who in ("random", "formation", "payload", "learned")]
        cells = ["," if v is None else f"{v.mean():.1f},{v.min():.1f}" for v in each]
        print(",".join([name, *cells]), flush=True)


if __name__ == "__main__":
    main()
