"""Missions of ground stations: places from latitudes, heights, headings, and what is wrong."""

import json
import math

import pytest

import musls
from musls_bringup.cli.app import run
from musls_bringup.new.ground_station import read_mission
from musls_description.config.errors import ConfigError

HOME = [47.0, 8.0, 400.0]
NULL = [0.0, 0.0, 0.0, None]


def item(command, *values, frame=3):
    return {"type": "SimpleItem", "command": command, "frame": frame, "params": list(values)}


def plan(tmp_path, *items, **changes):
    file = tmp_path / "mission.plan"
    mission = {"plannedHomePosition": HOME, "hoverSpeed": 3, "items": list(items), **changes}
    file.write_text(json.dumps({"fileType": "Plan", "mission": mission}))
    return file


WPL = """QGC WPL 110
0 1 0 16 0 0 0 0 47.0 8.0 400.0 1
1 0 3 22 0 0 0 0 0 0 5 1
2 0 3 16 4 0 0 nan 47.001 8.0 5 1
3 0 3 178 0 2.5 0 0 0 0 0 1
4 0 3 16 0 0 0 0 47.001 8.001 6 1
"""


def test_places_are_metres_east_and_north_of_home(tmp_path):
    """A degree at 47 degrees: 111 170 m of a meridian, 76 057 m of the parallel (WGS 84)."""
    found = read_mission(
        plan(
            tmp_path,
            item(22, *NULL, 47.0, 8.0, 5.0),
            item(16, 2.0, 0.0, 0.0, 0.0, 47.001, 8.0, 5.0),
            item(16, 0.0, 0.0, 0.0, 90.0, 47.001, 8.001, 407.0, frame=0),
            item(20, *[0.0] * 7, frame=2),
        )
    )
    one, two, back = found.points
    assert one == pytest.approx((0.0, 111.170, 5.0, math.pi / 2.0, 2.0), abs=2e-3)
    assert two == pytest.approx((76.057, 111.170, 7.0, 0.0, 0.0), abs=2e-3)
    assert back == pytest.approx((0.0, 0.0, 7.0, 0.0, 0.0), abs=1e-9)
    assert found.speed_m_s == 3.0
    assert [text.partition(":")[0] for text in found.left_out] == ["1", "4"]


def test_the_text_format_says_the_same(tmp_path):
    file = tmp_path / "mission.waypoints"
    file.write_text(WPL)
    found = read_mission(file)
    assert found.points[0] == pytest.approx((0.0, 111.170, 5.0, 0.0, 4.0), abs=2e-3)
    assert found.points[1][3] == pytest.approx(math.pi / 2.0) and found.speed_m_s == 2.5


def test_a_survey_is_flown_by_the_items_that_it_is_made_of(tmp_path):
    inner = [item(16, *NULL, 47.0, 8.0 + 1e-4 * k, 5.0) for k in range(3)]
    survey = {"type": "ComplexItem", "TransectStyleComplexItem": {"Items": inner}}
    assert len(read_mission(plan(tmp_path, survey)).points) == 3


PLACE = (47.0001, 8.0, 5.0)


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([], "no way-point in it"),
        ([item(22, *NULL, *PLACE)], "no way-point in it"),
        ([item(16, *NULL, 47.0001, 8.0, -1.0)], "item 1: height -1 m over home, must be > 0"),
        ([item(16, *NULL, 91.0, 8.0, 5.0)], "latitude 91, longitude 8 is no place"),
        ([item(16, *NULL, 48.0, 8.0, 5.0)], "item 1: 111 km from home, at most 20 km"),
        ([item(16, *NULL, *PLACE, frame=1)], "frame 1 is not of places on the earth"),
        ([item(16, 0.0)], "each item has seven params"),
        ([{"type": "ComplexItem", "complexItemType": "fwLandingPattern"}], "a fwLandingPattern"),
        ([{"type": "SimpleItem"}], "'command' is missing"),
    ],
)
def test_a_mission_that_cannot_be_flown_is_named(tmp_path, items, words):
    with pytest.raises(ConfigError, match=words):
        read_mission(plan(tmp_path, *items))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{}", "'mission' is missing"),
        ("[1]", "no plan of a ground station"),
        ("nothing", "no plan of a ground station"),
        ("QGC WPL 110\n1 2 3\n", "has 12 columns"),
        ("QGC WPL 110\n0 1 0 16 0 0 0 0 x 8.0 400.0 1\n", "could not convert"),
    ],
)
def test_a_file_that_is_no_mission_is_named(tmp_path, text, words):
    file = tmp_path / "mission.plan"
    file.write_text(text)
    with pytest.raises(ConfigError, match=words):
        read_mission(file)


def test_a_scenario_made_of_it_is_flown_by_the_load(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    plan(tmp_path, item(16, *NULL, 47.00001, 8.0, 1.5), item(16, *NULL, 47.0, 8.00002, 1.5))
    assert run(["new", "scenario", "field", "--mission", "mission.plan"]) == 0
    stage = musls.load_scenario("field.yaml").mission.stages[0]
    assert [point.position_m for point in stage.points] == [(0.0, 1.112, 1.5), (1.521, 0.0, 1.5)]
    assert run(["new", "scenario", "no", "--mission", "none.plan"]) == 2
    assert "none.plan cannot be read: No such file" in capsys.readouterr().err
    assert not (tmp_path / "no.yaml").exists()
