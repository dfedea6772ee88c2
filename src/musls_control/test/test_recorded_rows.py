"""Rows of a recorded trajectory that lie too close for a spline."""

import pytest

from musls_control.trajectories.recorded import RecordedTrajectory
from musls_description.config.errors import ConfigError


@pytest.mark.parametrize("scale", [1e-300, 1e-6])
def test_rows_too_close_in_time_are_named(tmp_path, scale):
    path = tmp_path / "path.csv"
    rows = [f"{scale * k / 100},{0.01 * k},0,1" for k in range(20)]
    path.write_text("time_s,x_m,y_m,z_m\n" + "\n".join(rows) + "\n")
    with pytest.raises(ConfigError, match=r"must be at least 0\.0001 s apart \(times are in sec"):
        RecordedTrajectory(path=str(path), columns=("time_s", "x_m", "y_m", "z_m"))
