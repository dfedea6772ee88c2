import numpy as np
import pytest

from musls_analysis.comparison.summary import slack_intervals, slack_mask
from musls_analysis.figures.over_time import spread
from musls_analysis.recordings.recording import (
    CableTrack,
    PoseTrack,
    RecordedStage,
    Recording,
    main_stages,
    stages_from_changes,
)
from musls_description.config.errors import ConfigError


def cable(tension, period=0.1):
    tension = np.asarray(tension, float)
    t = period * np.arange(len(tension))
    return CableTrack(t, np.column_stack([tension, tension + 9.0]), np.empty(0))


def test_slack_is_judged_at_the_load_end_and_strictly_below():
    assert slack_mask(cable([0.4, 0.5, 0.6]), 0.5).tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("tension", "expected"),
    [
        ([5, 5, 5], []),
        ([0, 0, 5, 5], [(0.0, 0.2)]),
        ([5, 0, 5, 0, 0], [(0.1, 0.2), (0.3, 0.4)]),
        ([0, 0, 0], [(0.0, 0.2)]),
    ],
)
def test_slack_intervals(tension, expected):
    found = slack_intervals(cable(tension), 0.5)
    assert [pytest.approx(pair) for pair in found] == expected


def test_stages_are_cut_where_the_name_changes():
    stages = stages_from_changes([0.0, 1.0, 2.0, 5.0, 6.0], ["a", "a", "b", "a", "c"], 0.0, 9.0)
    assert stages == (
        RecordedStage("a", 0.0, 2.0), RecordedStage("b", 2.0, 5.0),
        RecordedStage("a_2", 5.0, 6.0), RecordedStage("c", 6.0, 9.0),
    )  # fmt: skip


def test_a_stage_replaced_at_once_does_not_exist():
    assert stages_from_changes([0.0, 0.0], ["a", "b"], 0.0, 1.0) == (RecordedStage("b", 0.0, 1.0),)


def test_without_stages_the_flight_is_one():
    assert stages_from_changes([], [], 1.0, 4.0) == (RecordedStage("flight", 1.0, 4.0),)


def test_main_stages_leave_out_the_ground():
    stages = [RecordedStage(n, 0.0, 1.0) for n in ("take_off", "circle", "land_2", "hold")]
    assert [s.name for s in main_stages(stages)] == ["circle", "hold"]
    assert main_stages(stages[:1]) == stages[:1]


def test_a_body_without_poses_is_an_error():
    nothing = PoseTrack(np.empty(0), np.empty((0, 3)), np.empty((0, 4)))
    with pytest.raises(ConfigError, match="without poses"):
        Recording({"load": nothing})


def test_wrong_shapes_are_refused():
    with pytest.raises(ValueError, match="shapes"):
        PoseTrack(np.zeros(3), np.zeros((3, 3)), np.zeros((2, 4)))


def test_labels_keep_their_distance_and_order():
    places = spread(np.array([0.0, 0.1, 0.2, 3.0, 3.9, 4.0]), 0.5, 4.0)
    assert np.all(np.diff(places) >= 0.5 - 1e-12)
    assert places.min() >= 0.0 and places.max() <= 4.0
    assert np.allclose(spread(np.array([1.0, 2.0]), 0.5, 4.0), [1.0, 2.0])
