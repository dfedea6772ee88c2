"""`musls design`: the static search against closed forms, and small searches that fly."""

import json
import math
import shlex
from dataclasses import replace

import numpy as np
import pytest

import musls
from musls_bringup.cli import main
from musls_bringup.design.flights import HARDEST_M_S, Outcome, Trial, fly_and_watch_load, touches_of
from musls_bringup.design.question import FACE_DRAG, ask
from musls_bringup.design.search import (
    PEAK,
    STATIC_SLACK,
    Fleet,
    _directions,
    _to_both_sides,
    diameters_m,
    search,
)
from musls_bringup.design.study import design
from musls_description.config.errors import ConfigError
from musls_description.hanging.ground import ground_spawn
from musls_description.hanging.hang import MIN_THRUST_MARGIN
from musls_description.hanging.tree import beside_load_m, tips_apart_m
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2 as G
from musls_description.system.drone import tip_radius_m
from musls_description.system.propulsion import STANDARD_DENSITY_KG_M3
from musls_description.system.rope_materials import MATERIALS

PLATE = {"load": "plate", "size_m": [1.2, 0.8], "mass_kg": 4.0, "drones": "x500,typhoon"}
BOX = {"load": "box", "size_m": [0.05, 0.05, 0.03], "mass_kg": 0.05, "drones": "crazyflie"}


def designs_of(question):
    return [design for fleet in search(question).fleets for design in fleet]


# ---------- The static search against closed forms


def test_thrust_is_that_of_symmetrical_straight_cables():
    """F = m g + T (sin, cos) with T cos = W / n + half of the rest; T grows with 1 / cos."""
    found = designs_of(ask(**PLATE | {"fixed": {"number": 4, "length_m": 2.0}, "drones": "x500"}))
    assert len(found) >= 2
    for one in found:
        drone, cable = one.system.drones[0], one.system.cables[0]
        share_n = (4.0 + 4.0 * cable.mass_kg) * G / 4.0
        # Hooks at the corners of a rectangle are all as far out: each cable leans by the cone.
        across_n = (4.0 * G / 4.0 + 0.5 * cable.mass_kg * G) * math.tan(math.radians(one.cone_deg))
        thrust_n = math.hypot(drone.mass_kg * G + share_n, across_n)
        assert one.hanging.thrust_margin == pytest.approx(drone.max_thrust_n / thrust_n, rel=2e-3)
    tensions = {d.cone_deg: d.hanging.rest.load_end_tension_n.max() for d in found}
    (narrow, low_n), (wide, high_n) = sorted(tensions.items())[:2]
    ratio = math.cos(math.radians(narrow)) / math.cos(math.radians(wide))
    assert high_n / low_n == pytest.approx(ratio, rel=2e-3)


@pytest.mark.parametrize("number", [3, 5, 6, 7])
@pytest.mark.parametrize("size_m", [[1.2, 0.8], [2.0, 0.4]])
def test_cables_that_lean_either_way_hold_the_load_level_in_even_shares(number, size_m):
    cargo = ask("plate", size_m=size_m, mass_kg=4.0).cargo
    hooks = cargo.hooks(number)
    for slopes in _directions(hooks):
        assert np.abs(np.linalg.norm(slopes, axis=1).max()) == pytest.approx(1.0)
        force = np.column_stack([0.3 * slopes, np.ones(number)])
        moment = np.cross(hooks, force).sum(axis=0)
        assert np.abs(force.sum(axis=0)[:2]).max() < 2e-3 * number
        assert np.abs(moment).max() < 2e-3 * number


@pytest.mark.parametrize("number", range(4, 10))
def test_drones_above_a_beam_lean_to_both_sides_in_even_shares(number):
    """Where one may be lost: it would else fall on the beam. They stand beside it on the ground."""
    question = ask("beam", size_m=[5.0], mass_kg=30.0, drones="typhoon", require="survives_one")
    hooks = question.cargo.hooks(number)
    turn = np.array([[0.6, -0.8, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, 1.0]])
    for turned in (hooks, hooks @ turn.T):
        (slopes,) = _to_both_sides(turned)
        assert np.linalg.norm(slopes, axis=1).max() == pytest.approx(1.0)
        assert slopes.sum(axis=0) == pytest.approx(0.0, abs=1e-9)
        force = np.column_stack([slopes, np.zeros(number)])
        assert np.cross(turned, force).sum(axis=0)[2] == pytest.approx(0.0, abs=1e-9)
    assert _to_both_sides(ask(**PLATE).cargo.hooks(6)) == []
    designs, why = Fleet(question, "typhoon_h480", number).best()
    assert designs or "they could not set the load down" in why
    for one in designs:
        off_m = 0.01 * np.cos(np.arange(number))  # hooks as they are measured
        hooked = np.array(one.system.load.cable_attachments_m) + np.outer(off_m, [0.0, 1.0, 0.0])
        load = replace(one.system.load, cable_attachments_m=tuple(map(tuple, hooked)))
        for system in (one.system, replace(one.system, load=load)):
            places, _ = ground_spawn(system).bodies(system)
            assert beside_load_m(system, places[1:]) > 0.0
            assert tips_apart_m(system, places[1:]) >= 0.5 * tip_radius_m(system.drones[0])
            flown = one.hanging.formation.offsets_m(number)
            aside = np.abs(places[1:, 1]) > 0.1  # others lie along the beam's axis
            assert (flown[:, 1] * places[1:, 1])[aside].min(initial=1.0) > 0.0  # none crosses it


def test_too_few_drones_are_told_with_thrust_over_weight():
    question = ask(**PLATE | {"drones": "x500"})
    drone = question.fleet["x500"]
    rejected = {entry.number: entry for entry in search(question).rejections}
    for number in (1, 2, 3):
        margin = drone.max_thrust_n / (G * (drone.mass_kg + 4.0 / number))
        assert margin < STATIC_SLACK * 1.15
        assert f"thrust margin {margin:.2f} with upright cables" in rejected[number].why
    assert 4 not in rejected  # 1.14 at rest: flights decide


def test_wind_pushes_a_load_as_its_faces_do():
    """The margin in the wind is that of the resultant of weight and drag, for any direction."""
    four = PLATE | {"drones": "typhoon", "fixed": {"number": 4, "length_m": 2.0}}
    question = ask(**four | {"wind_m_s": 6.0, "gusts_m_s": 3.0})
    x, y, z = 1.2, 0.8, 0.02
    scale = 0.5 * STANDARD_DENSITY_KG_M3 * FACE_DRAG * 9.0
    expected = scale * np.array([y * z, x * z, x * y])
    assert question.cargo.drag_n_s_m == pytest.approx(expected, rel=5e-3)
    calm = {d.name: d for d in designs_of(ask(**four))}
    for one in designs_of(question):
        assert one.wind_margin < one.hanging.thrust_margin
        assert one.hanging.thrust_margin == pytest.approx(calm[one.name].wind_margin, rel=1e-9)


@pytest.mark.parametrize("pull_n", [0.2, 8.0, 60.0, 900.0])
def test_the_next_thinner_rope_that_is_sold_would_not_do(pull_n):
    needed_n = PEAK * 5.0 * pull_n
    for name, diameter_m in diameters_m(pull_n, needed_n).items():
        rope = MATERIALS[name]
        assert diameter_m in rope.diameters_m and rope.break_force_n(diameter_m) >= needed_n
        thinner = [d for d in rope.diameters_m if d < diameter_m]
        if thinner and rope.break_force_n(thinner[-1]) >= needed_n:  # hard to handle then
            assert thinner[-1] < 0.5 * 0.003 * (pull_n / 6.0) ** 0.25
    with pytest.raises(ConfigError, match="no rope that is sold holds"):
        diameters_m(1e6, 1e8)


def test_a_factor_is_kept_by_the_breaking_force():
    """Section, and with it strength, goes with the factor once handling does not count."""
    heavy = {"load": "box", "size_m": [1.0, 0.8], "mass_kg": 20.0, "drones": "typhoon"}
    fixed = {"material": "cord", "number": 5, "length_m": 3.0}
    few, many = (
        designs_of(ask(**heavy, require=f"factor={factor}", fixed=fixed))[0] for factor in (5, 20)
    )
    assert many.diameter_m > few.diameter_m
    assert many.break_force_n >= PEAK * 20.0 * many.hanging.rest.load_end_tension_n.max() * 0.9


def test_the_loss_of_one_needs_four_and_thrust_for_the_rest():
    question = ask(**PLATE | {"drones": "x500", "require": "survives_one"})
    found = search(question)
    rejected = {entry.number: entry.why for entry in found.rejections}
    assert all("4 drones or more" in rejected[number] for number in (1, 2, 3))
    fixed = {"number": 4}
    light, heavy = (
        search(ask(**PLATE | {"mass_kg": mass, "fixed": fixed, "require": "survives_one,margin=1.1",
                              "drones": "typhoon"}))
        for mass in (24.0, 28.0)
    )  # fmt: skip
    drone = musls.load_system("typhoon_trio").drones[0]
    left = [drone.max_thrust_n / (G * (drone.mass_kg + mass / 3.0)) for mass in (24.0, 28.0)]
    assert left[0] > 1.02 > left[1]
    assert light.fleets and not heavy.fleets
    assert f"margin of the others is {left[1]:.2f}" in heavy.rejections[0].why


def test_what_is_fixed_stays_fixed():
    kept = {"number": 5, "cone_deg": 33.0, "length_m": 3.3, "material": "steel",
            "diameter_m": 0.004, "controller": "payload"}  # fmt: skip
    found = designs_of(ask(**PLATE | {"drones": "typhoon", "fixed": kept}))
    (one,) = found
    assert (one.number, one.cone_deg, one.length_m) == (5, 33.0, 3.3)
    assert (one.material, one.diameter_m, one.controller) == ("steel", 0.004, "payload")


def test_hooks_of_a_file_are_its_hooks():
    """A shipped system is a load with hooks: as many cables, at the same places."""
    question = ask("x500_quad", drones="x500")
    assert len(question.cargo.hooks_m) == 4
    for one in designs_of(question):
        np.testing.assert_allclose(
            one.system.load.cable_attachments_m, question.cargo.hooks_m, atol=1e-12
        )
    moved = ask("x500_quad", hooks_m=[[0.3, 0.0, 0.1], [-0.3, 0.0, 0.1]], drones="typhoon")
    assert {one.number for one in designs_of(moved)} == {2}


def test_longer_cables_just_bring_rotors_apart_above_a_ring():
    """On a circle of n places two are 2 (r + L sin a) sin(pi / n) apart; lengths of two digits."""
    fleet = Fleet(ask("ring", size_m=[0.6], mass_kg=20.0, drones="typhoon"), "typhoon_h480", 8)
    tip_m = tip_radius_m(fleet.drone)
    found = list(fleet._roomy(fleet.question.cargo.hooks(8)))
    assert found
    for one in found:
        radius_m = (2.0 + 0.5 + 0.3) * tip_m / (2.0 * math.sin(math.pi / 8))
        least_m = (radius_m - 0.3) / math.sin(math.radians(one.cone_deg))
        assert least_m <= one.length_m <= 1.1 * least_m


def test_where_one_may_be_lost_none_is_above_the_load():
    """It would fall on it: four typhoons that may be above this box lean by 5 degrees."""
    box = {"load": "box", "size_m": [1.94, 1.32, 0.68], "mass_kg": 7.7, "drones": "typhoon",
           "fixed": {"number": 4}}  # fmt: skip
    least = [
        min(d.cone_deg for d in designs_of(ask(**box, require=r))) for r in ("", "survives_one")
    ]
    assert least == [5.0, 10.0]
    for one in designs_of(ask(**box, require="survives_one")):
        places = one.hanging.formation.offsets_m(4)
        assert beside_load_m(one.system, places) >= 1.3 * tip_radius_m(one.system.drones[0])


def test_many_drones_above_a_small_heavy_load_get_longer_cables_than_usual():
    """Issue 71: ten of them carry this beam on 7 m; 5 m, twice the usual length, was the end."""
    question = ask("beam", size_m=[0.64], mass_kg=44.3, wind_m_s=3.8, gusts_m_s=1.4,
                   drones="typhoon", require="survives_one")  # fmt: skip
    found, _ = Fleet(question, "typhoon_h480", 10).best()
    assert max(one.length_m for one in found) > 6.0
    assert len({one.length_m for one in found}) >= 3


def test_hover_and_room_are_required_of_what_is_known():
    none = search(ask(**PLATE | {"require": "hover_min=8"}))
    assert not none.fleets and any("no battery" in entry.why for entry in none.rejections)
    small = search(ask(**PLATE | {"require": "room=2", "drones": "typhoon"}))
    assert not small.fleets and any("room on the ground" in e.why for e in small.rejections)
    own = {"load": "box", "size_m": [0.5, 0.4, 0.2], "mass_kg": 2.0, "drones": "delivery",
           "fixed": {"number": 2}}  # fmt: skip
    known = designs_of(ask(**own))
    assert known and all(one.minutes > 1.0 for one in known)
    least = min(one.minutes for one in known)
    assert len(designs_of(ask(**own, require=f"hover_min={2.0 * least:g}"))) < len(known)


# ---------- What a flight lacks


def test_a_flight_lacks_what_is_required_of_it():
    question = ask(**BOX)
    one = designs_of(question)[0]
    good = Outcome(
        Trial(one), "run", "", margin=1.3, peak_n=1.0, tips_m=0.2, error_m=0.1, way=True,
        landed=True,
    )  # fmt: skip
    assert good.lacks(question.requirements) == []
    for change, words in (
        ({"margin": 1.1499}, "thrust margin 1.150, 1.15"),
        ({"peak_n": one.break_force_n}, "breaks at"),
        ({"tips_m": 0.01}, "rotor tips"),
        ({"landed": False}, "not landed"),
        ({"way": False}, "broken off"),
        (
            {
                "waited": [
                    "drone_3 is 0.26 m from its place, the load is 4.3 m high, not 0.9 to 1 m "
                    "after 10 s: hold begins all the same"
                ]
            },
            "4.3 m high, not 0.9 to 1 m",
        ),
        ({"error_m": 1.01 * one.length_m}, "m from its place, its cables are"),
        ({"given_up": ["drone_2: slack"]}, "given up: drone_2"),
        ({"warnings": ["doubtful"]}, "doubtful"),
        ({"touches": [(9.0, "drone_1 and drone_2 at 2.0 m/s")]}, "drone_1 and drone_2"),
        ({"failure": "diverged"}, "diverged"),
    ):
        lacks = replace(good, **change).lacks(question.requirements)
        assert any(words in text for text in lacks) or words == "thrust margin 1.150, 1.15", lacks
        assert lacks
    lost = replace(good, trial=Trial(one, lost=1), margin=1.0, events=["1 s: all motors stopped"])
    assert lost.lacks(question.requirements) == []
    late = replace(good, waited=["drone_3 is 0.26 m from its place after 10 s: hold begins"])
    assert late.lacks(question.requirements) == []
    assert "comes down at 1.4" in replace(lost, sink_m_s=1.4).lacks(question.requirements)[0]
    assert "turns over" in replace(lost, lean_deg=146.0).lacks(question.requirements)[0]
    falls = [(20.0, "drone_1 and ground at 6.3 m/s")]
    for touch, allowed in (
        ((50.1, "load and drone_1 at 0.3 m/s"), True),
        ((50.1, "load and drone_1 at 1.3 m/s"), False),
        ((50.1, "load and drone_2 at 0.3 m/s"), False),
        ((50.1, "drone_1 and cable_2"), True),
        ((20.4, "drone_1 and cable_2"), False),  # it falls into it, or rolls
        ((50.1, "drone_2 and cable_2"), False),
    ):
        touched = replace(lost, touches=[*falls, touch], warnings=["collision at 50.1 s: ..."])
        assert (touched.lacks(question.requirements) == []) == allowed, touch
    assert "hold does not come" in replace(lost, events=[]).lacks(question.requirements)[0]


# ---------- Mistakes in one line


MISTAKES = [
    ([], "name a LOAD"),
    (["x500_trio", "--shape", "box"], "one of both"),
    (["--shape", "blob", "--mass", "1"], "blob"),
    (["--shape", "box"], "mass"),
    (["--shape", "box", "--mass", "1", "--size", "a,b"], "--size"),
    (["--shape", "box", "--mass", "1", "--size", "1,1,1,1"], "size"),
    (["--shape", "box", "--mass", "1", "--drones", "y500"], "'x500'"),
    (["--shape", "box", "--mass", "1", "--drones", "rope"], "no airframe"),
    (["--shape", "box", "--mass", "1", "--drones", "none.yaml"], "none.yaml"),
    (["--shape", "box", "--mass", "1", "--require", "surives_one"], "survives_one"),
    (["--shape", "box", "--mass", "1", "--require", "gap"], "needs a number"),
    (["--shape", "box", "--mass", "1", "--require", "margin=1"], "margin"),
    (["--shape", "box", "--mass", "1", "--material", "silk"], "silk"),
    (["--shape", "box", "--mass", "1", "--number", "99"], "number"),
    (["--shape", "box", "--mass", "1", "--wind", "80"], "wind"),
    (["--shape", "box", "--mass", "1", "--model", "string"], "string"),
    (["--shape", "box", "--mass", "1", "--controller", "pidd"], "pidd"),
    (["--shape", "box", "--mass", "1", "--hooks", "0,0;1"], "hooks"),
    (["x500_trio", "--number", "5"], "3 hooks"),
    (["none.yaml"], "none.yaml"),
]


@pytest.mark.parametrize(("words", "message"), MISTAKES, ids=[m for _, m in MISTAKES])
def test_mistakes_are_one_line(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["design", *words]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 and message in told
    assert not list(tmp_path.glob("runs/*/runs/*"))


# ---------- Searches that fly


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A search that is narrow: two Crazyflies, one cone and length, massless, few worlds."""
    folder = tmp_path_factory.mktemp("design") / "small"
    fixed = {"number": 2, "cone_deg": 20.0, "length_m": 0.4, "controller": "formation"}
    found = design(
        **BOX, fixed=fixed, cable_model="massless", worlds=2, workers=1, out=folder,
        made_as="musls design",
    )  # fmt: skip
    return found, folder


@pytest.mark.slow
def test_commands_of_the_page_repeat_its_numbers(small, monkeypatch, capsys):
    found, folder = small
    (choice,) = found.choices
    monkeypatch.chdir(folder.parent)
    run = musls.fly(str(folder / "choice_1.yaml"), out="again")
    summary = json.loads((folder.parent / "again" / "summary.json").read_text())
    assert summary["least_thrust_margin"] == choice.margin
    assert max(c.tension_n.max() for c in run.cables.values()) <= choice.peak_n
    html = (folder / "design.html").read_text()
    told = {part.split("</code>")[0] for part in html.split('<code class="cmd">')[1:]}
    told |= {part.split("</code>")[0] for part in html.split('<td class="cmd"><code>')[1:]}
    commands = [shlex.split(text.replace("&#39;", "'").replace("&#34;", '"')) for text in told]
    kinds = {words[1] for words in commands}
    assert {"fly", "draw", "montecarlo", "check"} <= kinds
    for words in commands:
        if words[1] in ("check", "draw"):
            assert main(words[1:]) == 0, words
    assert "can be flown" in capsys.readouterr().out


@pytest.mark.slow
def test_the_page_is_one_file_for_print_and_dark(small):
    found, folder = small
    html = (folder / "design.html").read_text()
    assert "http" not in html.replace("http-equiv", "") and "<script" not in html
    assert "prefers-color-scheme: dark" in html and "@media print" in html
    for words in ("Asked and assumed", "What was not looked at", "Rejected", "Ask again"):
        assert words in html
    assert html.count("data:image/png;base64,") >= 3
    assert found.rows[0]["thrust_margin"] == pytest.approx(found.choice.margin, abs=1e-3)
    assert found.worlds is not None and len(found.worlds.outcomes) == 2


@pytest.mark.slow
def test_asked_again_nothing_is_flown_twice(small, monkeypatch, capsys, tmp_path):
    _, folder = small
    before = {path: path.stat().st_mtime_ns for path in (folder / "runs").iterdir()}
    monkeypatch.chdir(tmp_path)
    assert main(["design", str(folder), "--pick", "1", "--workers", "1"]) == 0
    assert {path: path.stat().st_mtime_ns for path in (folder / "runs").iterdir()} == before
    assert main(["check", "box_2_crazyflie_lift.yaml"]) == 0
    assert "keep what is required" in capsys.readouterr().out
    assert main(["design", str(folder), "--pick", "1", "--workers", "1"]) == 2  # files are kept
    assert main(["design", str(folder), "--pick", "2", "--workers", "1"]) == 2


@pytest.mark.slow
def test_a_load_that_nothing_lifts_is_refused_with_reasons(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["design", "--shape", "box", "--mass", "50", "--drones", "crazyflie"]
    assert main([*words, "--workers", "1"]) == 1
    out = capsys.readouterr().out
    assert "no fleet of these drones carries the load" in out and "thrust margin" in out
    assert (tmp_path / "runs" / "design_box" / "design.html").is_file()


LOADS = {
    "box": BOX,
    "plate": PLATE | {"wind_m_s": 6.0, "require": "survives_one"},
    "beam": {"load": "beam", "size_m": [5.0], "mass_kg": 30.0, "drones": "typhoon",
             "wind_m_s": 3.0, "gusts_m_s": 2.0, "require": "survives_one"},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", LOADS)
def test_the_choice_flies_and_the_next_cheaper_one_fails_as_told(name, tmp_path):
    """With noise of another seed: no warning with all drones, and no load falls after a loss."""
    found = design(**LOADS[name], worlds=0, out=tmp_path / name)
    choice = found.choice
    question = replace(found.question, seed=11)
    for outcome in choice.flights:
        run = musls.fly(musls.load_scenario(outcome.trial.data(question)), quiet=True)
        assert not run.warnings, outcome.trial.name
    for outcome in choice.losses:
        _, summary = fly_and_watch_load(musls.load_scenario(outcome.trial.data(question)))
        assert summary["sink_m_s"] <= HARDEST_M_S, outcome.trial.name
        again = {"warnings": summary["warnings"], "touches": touches_of(summary)}
        assert not replace(outcome, **again).faults, outcome.trial.name
    assert choice.margin >= found.question.requirements.margin > MIN_THRUST_MARGIN
    cheaper = choice.cheaper
    assert cheaper is not None and cheaper.flown
    forced = Fleet(found.question, cheaper.airframe, cheaper.number).forced()
    assert forced is not None
