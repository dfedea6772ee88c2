"""What differs in the graph when real PX4s fly the embedded simulator's drones."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from musls_bringup.ros import graph
from musls_bringup.ros.interfaces import px4_interface, px4_msgs
from musls_bringup.ros.workspace import installed_px4
from musls_description.errors import MuslsError
from musls_sim.scenario.scenario import Scenario


def offboard_of(scenario: Scenario) -> graph.NodeSpec:
    """The offboard node of a flight in the embedded simulator.

    A real PX4's local frame begins where the drone stands when it starts, the built-in
    autopilot's at the world's origin.
    """
    n = scenario.system.n_drones
    if scenario.autopilot.kind != "px4":
        return graph.offboard(n)
    from musls_bringup.gazebo.run import drone_places_enu_m  # imports `graph` in turn

    places = (drone_places_enu_m(scenario).round(4) + 0.0).ravel().tolist()  # no -0.0
    return graph.offboard(n, local_origin_enu_m=places)


def check_px4(scenario: Scenario) -> None:
    """See that PX4 and its agent are here, before anything starts.

    Raises:
        Px4Error: One is missing.
    """
    if scenario.autopilot.kind == "px4":
        from musls_sim.px4.install import find_px4, read_firmware
        from musls_sim.px4.process import find_agent

        firmware = read_firmware(find_px4().binary)
        find_agent()
        if firmware.release is not None:
            check_messages(firmware.text, "v{}.{}".format(*firmware.release), installed_px4())


def check_messages(px4: str, release: str, installed: str | None) -> None:
    """Refuse messages that are surely not those of the PX4 that is to fly.

    Args:
        px4: Version and path, for the message.
        release: Of the PX4.
        installed: See `installed_px4`; only a release can be compared.

    Raises:
        Px4Error: They are of another release.
    """
    from musls_sim.px4.install import Px4Error

    known = px4_interface().releases
    if {release, installed} <= set(known) and installed is not None:
        ours, theirs = px4_msgs(installed).messages, px4_msgs(release).messages
        if ours != theirs:
            raise Px4Error(
                f"{px4} does not speak the messages of {installed} that px4_msgs has here: "
                f"run ./musls ros setup --px4 {release}"
            )


@contextmanager
def px4_consoles(out: Path, work: Path) -> Iterator[Path]:
    """Gives the folder for what real PX4s and their agent print.

    It joins the results, or stays beside them where the error of a failed flight says.

    Args:
        out: Folder of the results.
        work: Folder that it is until they are finished.
    """
    logs = Path(f"{os.path.realpath(out)}.px4-logs")
    shutil.rmtree(logs, ignore_errors=True)  # of an earlier failure
    try:
        yield logs
    except MuslsError:
        raise
    except BaseException:
        shutil.rmtree(logs, ignore_errors=True)
        raise
    if logs.is_dir():
        shutil.move(logs, work / "px4")
