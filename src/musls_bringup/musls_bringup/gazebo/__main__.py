"""Write the files of a flight in Gazebo: `python -m musls_bringup.gazebo circle --out FOLDER`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from musls_bringup.catalogue.shipped import find_scenario
from musls_bringup.flight.results import result_folder
from musls_bringup.gazebo.files import gazebo_files
from musls_control.px4.offboard import other_loss_parameters
from musls_description.config.errors import MuslsError


def main(argv: Sequence[str] | None = None) -> int:
    """Write the files of a flight into a new folder; returns the exit code."""
    parser = argparse.ArgumentParser(prog="musls_bringup.gazebo", description=main.__doc__)
    parser.add_argument("scenario", help="shipped scenario, file or result folder")
    parser.add_argument("--out", type=Path, required=True, help="folder, must not exist")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--force", action="store_true", help="fly in spite of too little thrust")
    arguments = parser.parse_args(argv)
    out = arguments.out.absolute()
    try:
        if os.path.lexists(out):
            raise MuslsError(f"{out} exists: name another flight or move it away")
        scenario = find_scenario(arguments.scenario, arguments.overrides)
        files = gazebo_files(scenario, out, force=arguments.force)
        if word := other_loss_parameters(scenario.autopilot.parameters):
            print("musls: warning:", word, file=sys.stderr)
        with result_folder(out, overwrite=False) as work:
            for name, text in files.items():
                (work / name).write_text(text, encoding="utf-8")
    except MuslsError as error:
        print("musls: error:", " ".join(str(error).split()), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
