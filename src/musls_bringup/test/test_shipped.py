"""Files of scenarios by name."""

from pathlib import Path

import pytest

from musls_bringup.catalogue.shipped import SCENARIOS, named_file, names_in
from musls_description.config.errors import ConfigError


@pytest.mark.parametrize("name", names_in(SCENARIOS))
def test_a_scenario_is_found_by_name(name):
    assert named_file("scenario", name, SCENARIOS) == SCENARIOS / f"{name}.yaml"


def test_a_scenario_is_found_by_file_or_result_folder(tmp_path):
    file = tmp_path / "tiny.yaml"
    file.touch()
    assert named_file("scenario", str(file), SCENARIOS) == file
    result = tmp_path / "runs" / "first"
    result.mkdir(parents=True)
    (result / "scenario.yaml").touch()
    assert named_file("scenario", str(result), SCENARIOS) == result / "scenario.yaml"


def test_a_shipped_name_is_the_shipped_scenario_whatever_lies_around(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hold").mkdir()
    (tmp_path / "hold" / "scenario.yaml").touch()
    assert named_file("scenario", "hold", SCENARIOS) == SCENARIOS / "hold.yaml"
    assert named_file("scenario", "./hold", SCENARIOS) == Path("hold/scenario.yaml")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (".", ["scenario.yaml", "folder"]),
        ("n" * 300, ["circle", "paper"]),
        ("n" * 300 + ".yaml", ["no such file"]),
        ("circl", ["'circl'", "'circle'"]),
        ("Hold", ["'Hold'", "'hold'"]),
        ("xyzzy", ["'xyzzy'", "circle", "paper"]),
        ("absent.yaml", ["absent.yaml", "no such file"]),
        ("", ["circle", "paper"]),
    ],
)
def test_an_unknown_scenario_names_the_near_ones(name, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as error:
        named_file("scenario", name, SCENARIOS)
    assert all(word in str(error.value) for word in words), error.value
