"""Recordings in Python: read, replayed, compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from musls_analysis.comparison.errors import ErrorTable, error_table
from musls_analysis.comparison.summary import flight_warnings
from musls_analysis.recordings import readers
from musls_analysis.recordings import recording as recordings
from musls_analysis.recordings.contents import columns_of
from musls_analysis.recordings.readers import ReadOptions
from musls_description.config.errors import (
    ConfigError,
    MuslsError,
    install_command,
)
from musls_description.config.strict_yaml import shown
from musls_description.system.slung_system import RigSystem, slung_system
from musls_description.system.system_files import load_system

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame
    from rich.text import Text

    from musls_analysis.comparison.compare import CompareOptions, StageComparison
    from musls_analysis.replay.motion import ReplaySpec
    from musls_analysis.replay.replay import ReplayResult


AnyRecording = recordings.Recording | str | Path
"""A recording, or where to read it."""


class Recording(recordings.Recording):
    """One flight, with its errors and figures; a table in terminals and notebooks."""

    @classmethod
    def of(
        cls, recording: recordings.Recording, parameters: Mapping[str, float] | None = None
    ) -> Recording:
        """Result of a flight, with the warnings of `flight_warnings` added."""
        warnings = (*recording.warnings, *flight_warnings(recording, parameters))
        return cls(**{**vars(recording), "warnings": warnings})

    def errors(self) -> ErrorTable:
        """Distance and angle to the reference, a row per body and stage (`StageError`)."""
        return error_table(self)

    def plot(self, name: str = "paths_3d") -> Figure:
        """Draw one of the report's figures; notebooks show it, `savefig` writes it.

        Args:
            name: Name as of the report's PNG files: "paths_3d", "top_view", "stage_errors",
                "pose_load", "pose_drone_1", ..., "tensions", "rotors", "batteries".

        Raises:
            ConfigError: The recording has no such figure.
        """
        from musls_analysis.figures.flight import plot

        return plot(self, name)

    def to_pandas(self) -> DataFrame:
        """All that was recorded as one table, a row for each time of the load (index `time_s`).

        Columns are named as the arrays, with their component behind: `load.position_enu_m.x`,
        `drone_1.rotors.speed_rad_s.2`, `cable_1.tension_n.1` (at the load), `stage`.

        Raises:
            MuslsError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise MuslsError(f"to_pandas needs pandas: {install_command('pandas')}") from None
        return pd.DataFrame(columns_of(self), pd.Index(self.time_s, name="time_s"))

    def __rich__(self) -> Text:
        """Facts, then errors per body and stage, for a terminal."""
        from rich.text import Text

        return Text("\n".join([repr(self), *self.warnings, repr(self.errors())]), no_wrap=True)

    def _repr_html_(self) -> str:
        """Facts, then errors per body and stage, for a notebook."""
        lines = "".join(f"<p>{escape(line)}</p>" for line in (repr(self)[1:-1], *self.warnings))
        return lines + self.errors()._repr_html_()


def read_recording(path: Path | str, options: ReadOptions | None = None) -> Recording:
    """Read a flight, real or simulated.

    Args:
        path: Bag (folder or .mcap, .db3), result folder of `musls fly`, folder with one storage
            file, log file of the seed paper's flights, or CSV excerpt.
        options: Facts that the recording's file lacks.

    Returns:
        The recording, its poses at strictly increasing times; `warnings` says what was
        dropped, and why the flight is not valid.

    Raises:
        ConfigError: Missing, empty, damaged or of an unknown kind.
    """
    return Recording.of(readers.read_recording(path, options))


def replay(
    recording: AnyRecording,
    system: RigSystem | Mapping[str, Any] | str = "x500_trio_swivel",
    *,
    cable_model: str = "rigid_links",
    spec: ReplaySpec | None = None,
) -> ReplayResult:
    """Predict the load of a recording from the recorded motion of its drones.

    Args:
        recording: Recording with the load and all drones, or its path.
        system: Load, drones and cables, or the name of a shipped system or file.
        cable_model: "rigid_links", "elastic" (also with a number, "rigid_links:5"), or
            "massless".
        spec: Options of the replay: reference points, lead-in, step.

    Raises:
        ConfigError: The recording or the cable model does not fit the system.
        SimulationDiverged: The physics failed.
    """
    from musls_analysis.replay.motion import ReplaySpec
    from musls_analysis.replay.replay import Replay

    slung_load = slung_system(
        system if isinstance(system, RigSystem) else load_system(system), "replay"
    )
    replayed = Replay(_recording(recording), spec or ReplaySpec())
    return replayed.run(slung_load, cable_model=cable_model)


def compare(
    real: AnyRecording,
    sims: AnyRecording | Sequence[AnyRecording],
    stages: str | Sequence[str],
    *,
    options: CompareOptions | None = None,
) -> list[StageComparison]:
    """Compare simulated flights with a real one: mean cycles and their errors (eq. 12 and 13).

    Args:
        real: The real flight, or where to read it.
        sims: One or several simulated flights.
        stages: Stages to compare, such as "circle".
        options: Options of the comparison.

    Returns:
        One comparison a stage.

    Raises:
        ConfigError: A recording has no such stage.
    """
    from musls_analysis.comparison.compare import compare_stage
    from musls_analysis.comparison.cycles import cut_alike

    if isinstance(sims, (recordings.Recording, str, Path)):
        sims = [sims]
    read = _recording(real)
    sim_recordings = [_recording(sim) for sim in sims]
    return [
        compare_stage(stage, cuts[0], cuts[1:], options)
        for stage in ([stages] if isinstance(stages, str) else stages)
        for cuts in [cut_alike([read, *sim_recordings], stage)]
    ]


def _recording(source: AnyRecording) -> recordings.Recording:
    if isinstance(source, (str, Path)):
        return readers.read_recording(source)
    if not isinstance(source, recordings.Recording):
        raise ConfigError(f"recording = {shown(repr(source))}: must be a Recording, or its file")
    return source
