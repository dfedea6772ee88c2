"""`musls ros rehearse`: nodes of a real flight, and a capture that lies to them."""

import csv

import pytest
from ros_probe import needs_ros

from musls_bringup.catalogue.shipped import find_scenario
from musls_bringup.ros.rehearsal import chosen_faults, rehearse

pytestmark = [needs_ros(), pytest.mark.timeout(2400), pytest.mark.slow]


def flown(domain, out, faults, name="circle", *more):
    overrides = ["system.cables.links=7", *more]
    # Poses may be late on a loaded machine, which is no fault here.
    patience = {"mocap_relay": {"longest_latency_s": 2.0}, "formation": {"pose_age_s": 2.0}}
    chosen = chosen_faults(faults)
    return rehearse(
        find_scenario(name, overrides), chosen, out, print, domain=domain, parameters=patience
    )


@pytest.mark.parametrize(
    ("name", "word"),
    [("frozen", "frozen"), ("origin", "jump"), ("swapped", ""), ("turned", "turn")],
)
def test_a_capture_that_lies_is_answered_within_a_second_and_all_land(domain, tmp_path, name, word):
    """The wrong poses do not reach PX4, and nothing is hit."""
    (row,) = flown(domain, tmp_path / "out", name)
    assert row.broken == "" and word in row.seen_by and row.seen_by.startswith("mocap_relay: ")
    assert 0.0 < row.within_s < row.answer_s < 1.0
    assert row.misled_m < 0.3 and row.load_moved_m < 1.0 and row.apart_m > 0.3
    assert "all land after" in row.outcome and row.outcome.endswith("all are down")
    table = (tmp_path / "out" / "rehearsal.md").read_text()
    assert f"| {name} | {row.what} | " in table and "| kept |" in table


def test_axes_keep_all_from_being_armed_and_a_dead_relay_has_them_land(domain, tmp_path):
    axes, relay = flown(domain, tmp_path / "out", "axes,relay")
    assert "axes" in axes.seen_by and axes.outcome.startswith("nobody is armed")
    assert relay.seen_by.startswith("guard: ") and "no pose" in relay.seen_by
    assert "the load is lowered" in relay.outcome and "all land" in relay.outcome
    with (tmp_path / "out" / "rehearsal.csv").open() as file:
        assert [row["fault"] for row in csv.DictReader(file)] == ["axes", "relay"]
