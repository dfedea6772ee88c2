"""Batches, environments and the studio's page with odd arguments, from a seed.

Each call gives something sound, or one error of ours or a TypeError that names the argument.
Attack k of the seed is always the same: `attack(k)`.
"""

import json
import os
import random
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from bad_inputs import TEXTS, mutated_text

import musls
from musls_description.config.errors import MAX_LENGTH, MuslsError

SEED = 20261126
CHUNK = 10
FAST, ALL = 20, int(os.environ.get("MUSLS_ATTACKS", "100"))

ODD = [
    0, -1, 1, 2, 3, 7, 10**9, 10**30, 1.5, float("nan"), True, None, "x", "", b"x", [], [0], [1, 0],
    [-1], [0.5], ["a"], [None], (0, 1), {}, {"a": 1}, np.int64(2), np.float64(1.5), np.zeros(0),
    np.array([True, False, True]), np.array([0, 2]), np.array([[0]]), np.array("x"), range(3),
    object, print,
]  # fmt: skip
LEVELS = ["drone_setpoints", "forces", "thrust_moment", "rotor_speeds"]


@cache
def flown(kind="truth"):
    """A scenario that a batch flies."""
    given = {"cable_model": "massless", "start": "air", "estimation.kind": kind}
    return musls.load_scenario("hold", given)


def odd(rng, share=0.15, given=0.8, **usual):
    """Arguments, some of them odd, some left out."""
    return {
        name: rng.choice(ODD) if rng.random() < share else value
        for name, value in usual.items()
        if rng.random() < given
    }


def refused(call, *args, **kwargs):
    """What a call gives, None where it is refused in one line."""
    try:
        return call(*args, **kwargs)
    except MuslsError as error:
        assert len(str(error)) <= MAX_LENGTH and "\n" not in str(error)
    except TypeError as error:
        assert " must be " in str(error), error
    return None


def check_worlds(batch):
    """Worlds that have not failed are sound."""
    flies = ~batch.failed
    assert np.isfinite(batch.motion[flies]).all() and np.isfinite(batch.tension_n[flies]).all()
    assert np.abs(batch.position_enu_m[flies]).max(initial=0.0) < 1e6


def batches(rng, _):
    scenario = flown(rng.choice(["truth", "mocap"]))
    given = rng.choice([scenario, scenario, [scenario, scenario], [], [scenario, "x"]])
    batch = refused(musls.Batch, given, **odd(
        rng, 0.1, worlds=rng.randint(1, 4), level=rng.choice(LEVELS), threads=rng.randint(1, 3),
        seeds=list(range(3)), mission=rng.random() < 0.7,
    ))  # fmt: skip
    if batch is None or batch.worlds > 1000:
        return
    kept = refused(batch.snapshot, **odd(rng, given=1.0, worlds=0))
    for _ in range(4):
        if rng.random() < 0.3:
            batch.command[rng.randrange(batch.worlds)] = rng.choice([np.nan, 1e300, -1e9, 0.0, 5.0])
        for call, usual in (
            (batch.advance, {"periods": rng.randint(0, 20)}),
            (batch.reset, {"worlds": 0, "seeds": [1], "scenarios": [0]}),
            (batch.restore, {"given": 1.0, "worlds": [0], "snapshot": kept}),
        ):
            if rng.random() < 0.5:
                refused(call, **short(odd(rng, **usual)))
        check_worlds(batch)


def short(given):
    """Not the flight of 10**30 periods that some are asked for and that would take its time."""
    periods = given.get("periods", 0)
    long = isinstance(periods, (int, np.integer)) and periods > 100
    return {**given, "periods": 60} if long else given


def environments(rng, _):
    envs = pytest.importorskip("musls.envs", exc_type=ImportError)
    ranges = {"system.load.mass_kg": rng.choice([[1.5, 2.0], [2.0, 1.5], [-1, 1], ["a", 1], 3, []])}
    env = refused(envs.TransportVectorEnv, **odd(
        rng, 0.06, num_envs=rng.randint(1, 3), task=rng.choice(["transport", "hover", "track"]),
        overrides={"cable_model": "massless"}, level=rng.choice(["accelerations", "setpoints"]),
        randomise=rng.choice([None, ranges]), variants=2, history=rng.randint(0, 3),
        duration_s=0.2, periods_per_step=5, threads=1, dict_observations=rng.random() < 0.3,
        autoreset_mode=rng.choice(["NextStep", "SameStep", "Disabled"]),
    ))  # fmt: skip
    if env is None or env.num_envs > 1000:
        return
    options = odd(rng, reset_mask=np.ones(env.num_envs, bool), goal_position_enu_m=[0, 0, 1])
    refused(env.reset, **odd(rng, seed=3, options=options))
    for _ in range(6):
        actions = rng.choice([0.0, 1.0, -1e300, np.nan]) * np.ones(env.action_space.shape)
        told = refused(env.step, rng.choice(ODD) if rng.random() < 0.1 else actions)
        for part in () if told is None else told[:2]:
            parts = part.values() if isinstance(part, dict) else [part]
            assert all(np.isfinite(one).all() for one in parts)
    env.close()


def pages(rng, folder):
    """Requests to the studio, among runs that are damaged."""
    pytest.importorskip("dash")
    from musls_bringup import studio

    for name in ("old", "bad"):
        shutil.copytree(folder, name)
    bag = sorted(str(path) for path in Path("bad/bag").iterdir())
    damaged = rng.choice(["bad/summary.json", "bad/summary.json", "bad/scenario.yaml", *bag])
    with open(damaged, "rb+") as file:
        data = file.read()
        file.seek(0)
        file.truncate()
        file.write(rng.choice([
            b"", b"[]", b"{}", b"3", b"null", data[: len(data) // 2], b'{"errors": 3}',
            b'{"errors": {"load": {"hold": {}}}, "stages": [{"name": "hold"}]}', b"\0" * 99,
            mutated_text(rng, data.decode("latin-1")).encode("latin-1", "replace")
            if not damaged.endswith("mcap") else b"x",
        ]))  # fmt: skip
    client = studio.build_app(studio.Runs(Path()), "secret").server.test_client()
    client.get("/", query_string={"token": "secret"})  # sets the cookie
    names = ["old", "bad", "", "..", "../..", "/etc", "old/..", *TEXTS]
    for _ in range(2):
        first, other = rng.choice(names), rng.choice(names)
        query = rng.choice([{"show": first}, {"show": first, "with": other}, {}, {"with": other}])
        assert client.get("/run", query_string=query).status_code in (200, 400, 404, 422)
    assert client.get("/").status_code == 200
    scenario = rng.choice(["circle", "hold", "a.yaml", *TEXTS])
    key = rng.choice(["seed", "system.load.mass_kg", "x", None])
    for outputs, inputs, state, changed in (
        (["about.children", "key.options"], {"scenario.value": scenario}, {}, "scenario.value"),
        (["meaning.children"], {"key.value": key}, {"scenario.value": scenario}, "key.value"),
        (["overrides.value", "value.value"], {"add.n_clicks": 1, "value.n_submit": None},
         {"key.value": key, "value.value": rng.choice(TEXTS), "overrides.value": rng.choice(TEXTS)},
         "add.n_clicks"),
        (["status.children", "fly.disabled", "stop.disabled", "show.options", "with.options",
          "show.value", "tab.data"],
         {"fly.n_clicks": 1, "stop.n_clicks": None, "look.n_intervals": 1},
         {"scenario.value": scenario, "overrides.value": rng.choice(TEXTS) + "=x",
          "show.value": None, "status.children": "", "tab.data": rng.choice([None, "a", ""])},
         "fly.n_clicks"),
        (["page.src", "save.href", "save.download"],
         {"show.value": rng.choice(names), "with.value": rng.choice(names)}, {}, "show.value"),
    ):  # fmt: skip
        told = client.post("/_dash-update-component", data=body(outputs, inputs, state, changed),
                           content_type="application/json")  # fmt: skip
        assert told.status_code in (200, 204), (outputs, inputs, state)


def body(outputs, inputs, state, changed):
    """Request of the page when an input has changed."""

    def listed(given):
        return [{**place(name), "value": value} for name, value in given.items()]

    def place(name):
        return dict(zip(("id", "property"), name.split("."), strict=True))

    split = [place(name) for name in outputs]
    several = len(outputs) > 1
    return json.dumps({
        "output": f"..{'...'.join(outputs)}.." if several else outputs[0],
        "outputs": split if several else split[0],
        "inputs": listed(inputs), "state": listed(state), "changedPropIds": [changed],
    })  # fmt: skip


KINDS = (batches, environments, pages)


def attack(k, folder):
    """Make attack k; `folder` is a result."""
    rng = random.Random(f"{SEED}-{k}")
    rng.choice(KINDS)(rng, folder)


def run_chunk(chunk, tmp_path, monkeypatch, folder):
    for k in range(CHUNK * chunk, CHUNK * (chunk + 1)):
        here = tmp_path / str(k)
        here.mkdir()
        monkeypatch.chdir(here)
        try:
            attack(k, folder)
        except BaseException as error:  # whatever it is, say which attack makes it again
            error.add_note(f"attack({k})") if hasattr(error, "add_note") else None
            raise


@pytest.mark.parametrize("chunk", range(FAST // CHUNK))
def test_attacks_on_the_interface(chunk, tmp_path, monkeypatch, older_result):
    run_chunk(chunk, tmp_path, monkeypatch, older_result)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(FAST // CHUNK, ALL // CHUNK))
def test_more_attacks_on_the_interface(chunk, tmp_path, monkeypatch, older_result):
    run_chunk(chunk, tmp_path, monkeypatch, older_result)
