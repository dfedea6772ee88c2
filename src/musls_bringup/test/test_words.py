"""Words of messages: figures on the right side of a limit, keys that exist, names of stages."""

import pytest

import musls
from musls_bringup.before.verdict import _stage_at
from musls_bringup.new.templates import FOLDER
from musls_control.controllers import ControlLevel
from musls_description.hanging.hang import margin_sentence, margin_text


@pytest.mark.parametrize(
    ("margin", "text"),
    [
        (1.0967, "1.097"),
        (1.09996, "1.09996"),
        (1.0999999999, "just below 1.1"),
        (1.1, "1.10"),
        (1.1004, "1.10"),
        (0.98, "0.98"),
        (2.345, "2.35"),
    ],
)
def test_a_margin_is_shown_on_its_side_of_the_limit(margin, text):
    assert margin_text(margin) in (text, text.replace("2.35", "2.34"))
    assert f"thrust margin {margin_text(margin)} (drone_2" in margin_sentence(margin, 2)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ({"load.mass": 2}, "did you mean 'system.load.mass_kg'"),
        ({"load.masskg": 2}, "did you mean 'system.load.mass_kg'"),
        ({"cables.length": 2}, "did you mean 'system.cables"),
        ({"system.drones": 4}, "must be a list .* `musls new system --drones 4`"),
        ({"system.drones": "four"}, "must be a list .* `musls new system`"),
    ],
)
def test_keys_that_are_proposed_exist(override, words):
    with pytest.raises(musls.ConfigError, match=words) as error:
        musls.load_scenario("circle", override)
    names = str(error.value).partition("did you mean")[2].split(" or ")
    assert len(set(names)) == len(names)


class Stage:
    def __init__(self, name, start_s, end_s):
        self.name, self.start_s, self.end_s = name, start_s, end_s


def test_every_time_has_a_stage():
    class Flown:
        stages = (Stage("lift", 0.0, 2.0), Stage("circle", 2.5, 9.0))

    times = {-1.0: "lift", 0.0: "lift", 2.0: "lift", 2.4: "lift", 2.5: "circle", 9.0: "circle"}
    assert {time_s: _stage_at(Flown, time_s) for time_s in times} == times


def test_the_template_of_a_controller_names_all_levels():
    text = (FOLDER / "controller.py.j2").read_text()
    levels = {level.value for level in ControlLevel} - {"ideal_thrust_moment"}
    assert all(level in text for level in levels) and len(levels) == 7
