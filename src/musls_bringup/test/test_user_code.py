"""What users' own classes give, or fail to give, is told in one line that names the class."""

import pytest

import musls
from musls_description.config.errors import ConfigError, MuslsError

OWN = """\
import numpy as np
import musls

@musls.{registry}.register("{kind}")
@musls.spec
class Own(musls.{base}):
    kind: str = "{kind}"
    {body}
"""
BASES = {
    "sensors": "SensorModel",
    "aerodynamics": "AerodynamicModel",
    "events": "Event",
    "cable_laws": "CableLaw",
}
MEASURES = "readings = ('a',)\n    def build(self, setup):\n        return lambda estimate: {}"
BLOWS = "def build(self, air):\n        def blow(w):\n            w[0, 3] = {}\n        return blow"
BEGINS = "def begin(self, context):\n        {}"
PULLS = "@staticmethod\n    def tension(law, before, after, strain, strain_rate, dt):\n        {}"
CASES = [
    *(("sensors", MEASURES.format(answer), words) for answer, words in (
        ("None", "must return 1 numbers, those of readings, not 0"),
        ("'text'", "Own.build failed: its function: ValueError"),
        ("(i for i in [1])", "its function: TypeError"),
        ("10**400", "Own.build failed: its function: OverflowError"),
        ("estimate.tension_n.fill(np.nan) or 1.0", "wrote nan into estimate.tension_n"),
    )),
    ("sensors", "def build(self, setup):\n        return 3", "its function: TypeError"),
    ("sensors", "pass", "Own has no method build"),
    ("sensors", "readings = 'force'\n    build = 3", "Own.readings = 'force': must be a tuple"),
    ("aerodynamics", BLOWS.format("10**400"), "Own.build failed: its function: OverflowError"),
    ("aerodynamics", BLOWS.format("np.nan"), "Own gave a force that is NaN"),
    ("aerodynamics", "def build(self, air):\n        return None", "its function: TypeError"),
    ("aerodynamics", "pass", "Own has no method build"),
    ("events", "pass", "Own has no method begin"),
    ("events", "def begin(self):\n        return ''", "Own.begin failed at 0.000 s: TypeError"),
    ("events", BEGINS.format("return 3"), "Own.begin gave 3, must be text"),
    ("events", BEGINS.format("return ''\n    lasts_s = 10**400"), "Own.lasts_s failed at 0.000 s"),
    ("events", BEGINS.format("return ''\n    names = 3"), "Own.names gave 3, must be a tuple"),
    ("cable_laws", "pass", "Own has no method tension"),
    ("cable_laws", PULLS.format("return [1, 'a']"), "Own.tension cannot be compiled"),
    ("cable_laws", PULLS.format("raise ValueError"), "a law cannot raise"),
]  # fmt: skip


@pytest.mark.parametrize(("registry", "body", "words"), CASES)
def test_what_own_classes_give_is_checked(tmp_path, monkeypatch, request, registry, body, words):
    monkeypatch.chdir(tmp_path)
    kind = f"own_{abs(hash(request.node.name))}"
    text = OWN.format(registry=registry, base=BASES[registry], kind=kind, body=body)
    (tmp_path / "own.py").write_text(text)
    own = {"kind": kind} | ({"when": {"time_s": 0.0}} if registry == "events" else {})
    keys = {"extensions": ["own.py"], "start": "air", "cable_model": "massless"}
    keys |= {"mission.stages.0.duration_s": 0.1, "mission.settle_s": 0.1}
    if registry == "cable_laws":
        keys |= {"cable_model": "elastic", "system.cables.elastic.own_law": own}
    else:
        keys[registry] = [own]
    with pytest.raises(MuslsError) as told:
        musls.fly(musls.load_scenario("hold", keys))
    assert words in str(told.value)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("estimate.data[0, 3] = float('nan')", "Own.step at 0.000 s wrote nan into estimate.data"),
        ("estimate.data[0] = 'text'", "Own.step failed at 0.000 s: ValueError"),
        ("pass\n    load_imu = 3", "Own.load_imu = 3: must be a musls.LoadImuSpec or None"),
        ("pass\n    def prepare(self):\n        pass", "Own.prepare failed before the flight"),
    ],
)
def test_an_own_estimator_is_named_and_not_the_controller(tmp_path, monkeypatch, body, words):
    monkeypatch.chdir(tmp_path)
    step = "def step(self, sensors, estimate):\n        "
    (tmp_path / "own.py").write_text(
        f"import musls\nclass Own(musls.LoadEstimator):\n    {step}{body}\n"
    )
    keys = {"start": "air", "cable_model": "massless", "controller": "payload"}
    keys["estimation.load"] = {"kind": "python", "source": "own.py:Own"}
    with pytest.raises((MuslsError, ConfigError)) as told:
        musls.fly(musls.load_scenario("hold", keys))
    assert words in str(told.value)
