"""The table of stages: what it says of scenarios."""

import pytest

from musls_bringup.catalogue.shipped import SCENARIOS
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session
from musls_sim.session.stages import asks_for_python

PYTHON = {
    "a rig": ("cdpr_reel", [], None),
    "contingency": ("quad_survives", [], None),
    "hooks of rigid links": ("quad_survives", ["cable_model=rigid_links"], "reference"),
    "chains that break": ("hold", ["system.cables.elastic.break_force_n=500"], "plant"),
    "collisions that end it": ("hold", ["limits.collision=end"], "collisions"),
    "a controller in Python": ("hold", ["controller=pid"], "controller"),
    "real PX4s": ("hold", ["autopilot.kind=px4"], "control"),
    "another engine": ("hold", ["physics.engine=dart"], "plant"),
    "nothing": ("hold", [], None),
}


@pytest.mark.parametrize(("name", "settings", "stage"), PYTHON.values(), ids=PYTHON)
def test_what_asks_for_a_stage_in_python_is_named(name, settings, stage):
    asked = asks_for_python(load_scenario(SCENARIOS / f"{name}.yaml", settings))
    assert asked is None if stage is None else f"the stage '{stage}'" in asked


def test_stages_in_python_are_those_that_the_table_says():
    """Of a flight that a batch has, Python does no stage but those that the batch replaces."""
    scenario = load_scenario(SCENARIOS / "circle.yaml", ["imperfections.command_latency_s=0.01"])
    assert asks_for_python(scenario) is None
    with Session(scenario) as session:
        by_python = [s.name for s in session.stages if not s.may_be_compiled]
    replaced = {"reference", "events", "links", "separation", "observers", "cable_events", "energy"}
    assert set(by_python) <= replaced
