"""A cable law from a user's file: the one of docs/extending.md, and what is wrong with others."""

import re
from pathlib import Path

import numpy as np
import pytest
from elastic_rigs import anchor, point_mass, run, straight

from musls_description.config.errors import ConfigError
from musls_description.config.registry import load_file
from musls_description.config.schema import build
from musls_description.system.cable_law import CABLE_LAWS
from musls_description.system.slung_system import Cable, ElasticLine
from musls_sim.plants.elastic.cables.line import line_of
from musls_sim.plants.elastic.engine import Engine
from musls_sim.plants.elastic.rig import Rig, RigCable

PAGE = Path(__file__).parents[3] / "docs/extending.md"
EA, MORE, RELAXATION = 4000.0, 2000.0, 0.2

pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="docs/ come with a checkout")


@pytest.fixture(scope="module")
def nylon(tmp_path_factory):
    """The standard linear solid of the page."""
    text = PAGE.read_text(encoding="utf-8")
    (code,) = re.findall(r'```python title="my_rope.py"\n(.*?)```', text, re.S)
    file = tmp_path_factory.mktemp("law") / "my_rope.py"
    file.write_text(code, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:  # what the page registers is gone after it
        patch.setattr(CABLE_LAWS, "_entries", dict(CABLE_LAWS._entries))
        load_file(file)
        yield CABLE_LAWS["nylon_of_page"](ea_n=EA, more_ea_n=MORE, relaxation_s=RELAXATION)


def pulled(law, strain, period_s):
    """A light line of 1 m between two anchors, the upper one moved to `strain(t)` (0 to 2nd)."""
    start = 1.0 + strain(0.0)[0]
    cable = RigCable(
        (0, 1), np.zeros((2, 3)), straight((0, 0, 0), (0, 0, start), 1), 1.0, 1e-6, own_law=law
    )
    rig = Rig([anchor(), anchor((0, 0, start))], [cable], gravity_m_s2=0.0)
    engine = Engine(rig, period_s=period_s)

    def path(begin, end):
        rows = np.zeros((2, 18))
        for row, time in zip(rows, (begin, end), strict=True):
            row[:9] = (
                np.outer([1.0, 0.0, 0.0], [0, 0, 1]).ravel()
                + np.outer(strain(time), [0, 0, 1]).ravel()
            )
        return rows

    engine.paths[1] = path
    return engine


@pytest.mark.parametrize("omega", [1.0, 5.0, 25.0])
def test_a_standard_linear_solid_loses_in_each_cycle_what_theory_says(nylon, omega):
    """Of e = m + a sin wt: pi E1 a^2 wT / (1 + (wT)^2) per cycle; the energy audit closes."""
    mean, a, steps = 0.03, 0.01, 2000
    period_s = 2 * np.pi / omega / steps

    def strain(time):
        sine, cosine = np.sin(omega * time), np.cos(omega * time)
        return mean + a * sine, a * omega * cosine, -a * omega**2 * sine

    engine = pulled(nylon, strain, period_s)
    settling = int(np.ceil(10 * RELAXATION * omega / (2 * np.pi)))
    run(engine, settling * steps * period_s)
    before = engine.sums["loss_cables"]
    tensions = []
    for _ in range(steps):
        engine.advance()
        tensions.append(engine.tensions_n(0)[0])
    x = omega * RELAXATION
    lost = np.pi * MORE * a**2 * x / (1 + x**2)
    assert engine.sums["loss_cables"] - before == pytest.approx(lost, rel=5e-3)
    stiffness = abs(EA + MORE * 1j * x / (1 + 1j * x))  # the complex one
    assert np.ptp(tensions) / 2 == pytest.approx(a * stiffness, rel=1e-3)
    assert abs(engine.missing_energy_j()) < 1e-3 * lost
    assert engine.energy_j()[2] > 0.0


def test_a_line_starts_settled_and_creeps_after_a_step(nylon):
    """At rest T = E e; held at a new strain the rest of the stress falls with exp(-t / T)."""
    first, more, ramp = 0.01, 0.005, 0.002

    def strain(time):
        risen = min(time / ramp, 1.0)
        return first + more * risen, (more / ramp if time < ramp else 0.0), 0.0

    engine = pulled(nylon, strain, 2e-4)
    assert engine.tensions_n(0)[0] == pytest.approx(EA * first, rel=1e-6)
    run(engine, ramp + 0.2)
    expected = EA * (first + more) + MORE * more * np.exp(-0.2 / RELAXATION)
    assert engine.tensions_n(0)[0] == pytest.approx(expected, rel=2e-3)


def test_a_mass_on_it_falls_slack_and_comes_to_rest_without_energy_from_nothing(nylon):
    """Thrown up, caught by the rope, at rest where E e = m g; what is missing stays small."""
    mass, g = 1.0, 9.81
    cable = RigCable(
        (0, 1), np.zeros((2, 3)), straight((0, 0, 0), (0, 0, -1), 1), 1.0, 1e-4, own_law=nylon
    )
    rig = Rig([anchor(), point_mass((0, 0, -0.9), mass, 1e-6)], [cable], gravity_m_s2=g)
    engine = Engine(rig, period_s=0.001)
    start = engine.energy_j().sum()
    losses = []
    for _ in range(14000):
        engine.advance()
        losses.append(engine.sums["loss_cables"])
    assert np.diff(losses).min() > -1e-3 * losses[-1]  # where it goes taut within a step
    assert engine.tensions_n(0)[0] == pytest.approx(mass * g, rel=2e-2)
    assert abs(engine.missing_energy_j()) < 1e-3 * (start - engine.energy_j().sum())


LAW = """
import musls

@musls.cable_laws.register("{name}")
@musls.spec
class Law(musls.CableLaw):
    kind: str = "{name}"
    ea_n: float = 1000.0
    remembered = ({names})

    @staticmethod
    def tension(law, before, after, strain, strain_rate, dt):
        {body}
"""


@pytest.mark.parametrize(
    ("name", "names", "body", "message"),
    [
        ("unknown_word", "", "return law.ea * strain, 0.0", r"line 13: Law.tension: law has no"),
        ("one_number", "", "return strain", r"law.py.*Law.tension cannot be compiled"),
        ("not_finite", "", "return strain / 0.0, 0.0", r"line 11: Law.tension gives nan N at str"),
        ("offset", "", "return law.ea_n * (strain + 1), 0.0", "1000 N at strain 0: must be 0"),
        ("falls", "", "return -strain, 0.0", "at rest: must increase"),
        ("much", "'a','b','c','d','e'", "return strain, 0.0", "has 5 names: at most 4"),
    ],
)  # fmt: skip
def test_a_wrong_law_is_told_in_one_line_with_its_place(tmp_path, name, names, body, message):
    """Before the flight."""
    file = tmp_path / "law.py"
    file.write_text(LAW.format(name=name, names=names, body=body), encoding="utf-8")
    load_file(file)
    line = build(ElasticLine, {"own_law": name}, "system.yaml")
    with pytest.raises(ConfigError, match=message) as told:
        line_of(Cable(mass_kg=0.02, length_m=2.42, radius_m=0.0031, links=15, elastic=line))
    assert "\n" not in str(told.value)


def test_only_one_law_is_given(nylon):
    """A stiffness beside a law of one's own is refused."""
    with pytest.raises(ConfigError, match="give either ea_n or own_law"):
        ElasticLine(ea_n=100.0, own_law=nylon)
