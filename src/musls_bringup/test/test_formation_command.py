"""`musls formation`: places to paste, margins, a picture, true reasons."""

from __future__ import annotations

import numpy as np
import pytest
import yaml
from PIL import Image

from musls_bringup.before.formation import propose, with_drones
from musls_bringup.catalogue.shipped import SCENARIOS
from musls_bringup.cli.app import main
from musls_description.hanging.equilibrium import freed, hanging_equilibrium
from musls_description.system.system_files import load_system
from musls_sim.scenario.scenario import load_scenario


def beam(path, count, length_m):
    """A beam with attachments in a row."""
    x = 0.4 * (np.arange(count) - (count - 1) / 2.0)
    path.write_text(
        yaml.safe_dump(
            {
                "name": "beam",
                "load": {
                    "mass_kg": 0.5 * count,
                    "shape": {"kind": "box", "size_m": [0.4 * count, 0.1, 0.1]},
                    "cable_attachments_m": [[round(float(v), 2), 0.0, 0.05] for v in x],
                },
                "drones": {"from": "x500"},
                "cables": {"mass_kg": 0.02, "radius_m": 0.002, "links": 1, "length_m": length_m},
            }
        )
    )
    return path


def test_what_is_printed_can_be_pasted(tmp_path, capsys):
    system = beam(tmp_path / "beam.yaml", 5, 2.0)
    assert main(["formation", str(system), "--out", str(tmp_path / "out")]) == 0
    text = (tmp_path / "out" / "formation.yaml").read_text()
    assert capsys.readouterr().out.find(text) > 0
    with Image.open(tmp_path / "out" / "formation.png") as picture:
        assert np.ptp(np.asarray(picture)) > 100
    scenario = {"name": "own", "system": str(system), "start": "air", **yaml.safe_load(text)}
    scenario["mission"] = {"stages": [{"kind": "hold"}]}
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(scenario))
    given = load_scenario(tmp_path / "own.yaml").formation.places_m
    assert given is not None and list(map(list, given)) == scenario["formation"]["places_m"]
    assert main(["check", str(tmp_path / "own.yaml")]) == 0
    assert main(["formation", str(system), "--out", str(tmp_path / "out")]) == 2
    assert "--overwrite" in capsys.readouterr().err


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_any_number_of_drones(count):
    found = propose(with_drones(load_system("x500_trio"), count))
    assert len(found.places_m) == count
    np.testing.assert_allclose(found.hanging.shares, 1.0, atol=0.25)
    assert count == 1 or found.hanging.thrust_margin > 1.05  # two carry what three should
    assert count == 1 or found.hanging.tips_apart_m > 0.2


SHAPES = {
    "beam": ("--load", "beam", "--length", "2", "--cable", "2"),
    "plate": ("--load", "plate", "--length", "2", "--width", "1.2", "--cable", "3"),
    "ring": ("--load", "ring", "--length", "4", "--cable", "3"),
}


@pytest.mark.parametrize("links", [10, 1])
@pytest.mark.parametrize(
    ("load", "count"),
    [
        ("plate", 4),
        *(
            pytest.param(load, count, marks=pytest.mark.slow)
            for load, count in (
                ("beam", 3), ("beam", 5), ("beam", 8), ("plate", 6), ("plate", 8), ("ring", 12)
            )
        ),
    ],
)  # fmt: skip
def test_shares_do_not_hang_on_the_last_digits_of_places(tmp_path, monkeypatch, load, count, links):
    """0.1 mm beside its place: 1e-3 of a share, where exact places said up to half of one."""
    monkeypatch.chdir(tmp_path)
    assert main(["new", "system", "own", *SHAPES[load], "--drones", str(count)]) == 0
    settings = [f"system.cables.links={links}", "system=own.yaml"]
    scenario = load_scenario(SCENARIOS / "hold.yaml", settings[::-1])
    n, cone = count, scenario.formation
    system = freed(scenario.system)

    def shares(places_m):
        yaws = np.arctan2(places_m[:, 1], places_m[:, 0]) + np.pi
        rest = hanging_equilibrium(system, places_m, drone_yaws_rad=yaws)
        upright = rest.cable_force_n[:, 2]
        assert np.linalg.norm(rest.misfit_m, axis=1).max() < 3e-3
        weight = [0.0, 0.0, system.load.mass_kg * 9.80665]
        np.testing.assert_allclose(rest.cable_force_n.sum(axis=0), weight, atol=1e-6)
        return upright / upright.mean()

    places_m, draw = cone.offsets_m(n), np.random.default_rng(24)
    asked = shares(places_m)
    assert np.ptp(asked) < 0.05
    for _ in range(5):
        moved = shares(places_m + draw.uniform(-1e-4, 1e-4, (n, 3)))
        np.testing.assert_allclose(moved, asked, atol=2e-3)
    # `new system`, `draw` and `formation` say what `check` and `fly` say.
    proposed = propose(scenario.system)
    least = min(m.thrust_margin for m in proposed.margins)
    assert least == pytest.approx(scenario.hanging.thrust_margin, abs=2e-3)
    np.testing.assert_allclose(proposed.hanging.shares, asked, atol=2e-3)


def test_places_of_the_paper_are_kept():
    found = propose(load_system("x500_trio"))
    np.testing.assert_allclose(
        found.places_m, load_scenario(SCENARIOS / "hold.yaml").formation.offsets_m(3), atol=1e-4
    )


def test_discs_that_do_not_fit_are_told(tmp_path, capsys):
    assert main(["formation", str(beam(tmp_path / "beam.yaml", 6, 0.3))]) == 2
    assert "no places side by side were found for 6 rotor discs" in capsys.readouterr().err
