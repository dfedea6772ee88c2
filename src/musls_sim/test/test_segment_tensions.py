"""Tensions along a cable, `/cable_i/tensions`, against the weight that hangs below each segment."""

import numpy as np
import pytest
from plant_helpers import G, hovering_plant, trio

from musls_bringup.api.simulation import fly
from musls_description.config.errors import ConfigError
from musls_sim.plants.elastic.plant import ElasticPlant
from musls_sim.plants.rigid_links.plant import RigidLinksPlant

ROPE_KG, LINKS = 0.3, 6


@pytest.mark.parametrize("make", [RigidLinksPlant, ElasticPlant])
def test_what_hangs_below_a_segment_is_its_pull(make):
    """Upright parts of the tensions grow by the weight of a segment from each to the next."""
    system = trio(mass_kg=ROPE_KG, links=LINKS)
    plant, _, _ = hovering_plant(system, make)
    below = (np.arange(LINKS) + 0.5) * ROPE_KG / LINKS * G
    uprights = []
    for i in range(3):
        way = np.diff(plant.cable_nodes_enu_m(i), axis=0)
        upright = way[:, 2] / np.linalg.norm(way, axis=1)
        uprights.append(plant.segment_tensions_n(i) * upright - below)
        assert np.ptp(uprights[-1]) < 2e-3 * uprights[-1].mean()
    assert np.sum(uprights, axis=0) == pytest.approx(system.load.mass_kg * G, rel=2e-3)


@pytest.mark.parametrize("model", ["rigid_links", "massless"])
def test_they_are_recorded_where_they_are_asked_for(tmp_path, model):
    hover = "mission.stages=[{kind: hold, position_m: [0, 0, 1.5], duration_s: 0.5}]"
    choices = ["start=air", hover, "recording.rate_hz=250", f"cable_model={model}"]
    run = fly("circle", set=[*choices, "recording.tensions=true"], out=tmp_path / "run")
    told, ends = run.signal("cable_2", "tensions"), run.cable(2).tension_n
    links = told.tension_n.shape[1]
    share = (np.arange(links) + 0.5) / links
    assert told.place_m[0] == pytest.approx(share * 2.42)
    between = ends[:, :1] + share * np.diff(ends, axis=1)
    np.testing.assert_allclose(told.tension_n, between, rtol=2e-3)
    if model == "rigid_links":  # of a hanging cable the upper end pulls most
        assert (told.tension_n.argmax(axis=1) == links - 1).all()
    with pytest.raises(ConfigError, match="no signal of cable_2: tensions"):
        fly("circle", set=choices).signal("cable_2", "tensions")
