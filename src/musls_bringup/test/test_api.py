"""A recording of `import musls` knows its errors and figures, wherever it comes from."""

from io import StringIO

import numpy as np
import pytest
from rich.console import Console

import musls
from musls_analysis.recordings.recording import Event, PoseTrack, Stage
from musls_bringup.api import Recording


@pytest.fixture
def run():
    time_s = np.linspace(0.0, 2.0, 41)
    level = np.tile([1.0, 0.0, 0.0, 0.0], (41, 1))
    load = PoseTrack(time_s, np.column_stack([time_s, 0.0 * time_s, 0.0 * time_s]), level)
    wanted = PoseTrack(time_s[:1], np.zeros((1, 3)), level[:1])
    return Recording(
        {"load": load, "drone_1": load}, {"load": wanted},
        stages=[Stage("lift", 0.0, 1.0), Stage("hold", 1.0, 2.0)],
        events=[Event(0.5, "gust", "east")], warnings=["1 row dropped"],
    )  # fmt: skip


def test_errors_and_figures(run):
    assert musls.Recording is Recording and Recording.of(run).errors()[0] == run.errors()[0]
    assert run.errors().by_body()["load"]["hold"]["translational_error_m"] == pytest.approx(1.5)
    assert run.plot().axes and run.plot("pose_load").axes
    with pytest.raises(musls.ConfigError, match="no figure 'tensions' of this recording; it has"):
        run.plot("tensions")


def test_notebooks_and_terminals_show_it(run):
    html = run._repr_html_()
    assert html.count("<tr>") == 1 + len(run.errors()) and "1 event" in html
    assert "<p>1 row dropped</p>" in html
    console = Console(width=120, record=True, file=StringIO())
    console.print(run)
    assert "lift" in console.export_text()
