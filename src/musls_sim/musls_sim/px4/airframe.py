"""The airframe that PX4 flies, and the folder in which one instance runs.

Nothing is written into PX4's installation. The folder of an instance has an `etc` of its own that
consists of links into the installation, except for the airframe and for the script that opens the
MAVLink links (which PX4 leaves to the user to replace).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from musls_description.errors import ConfigError
from musls_sim.px4.install import Firmware, Px4Error, Px4Install

if TYPE_CHECKING:
    from musls_control.px4_cascade import RotorLayout

AUTOSTART_ID = 22001
"""From the range that PX4 leaves to custom airframes."""

SIM_MODEL = "none_musls"
MAX_MAIN_OUTPUTS = 8
FIRST_MOTOR_FUNCTION = 101

_LINKS = """\
#!/bin/sh
# The links of musls: one for a ground station to look on, one for set-points and commands.
offboard_port=$((14580+px4_instance))
mavlink start -x -u $((18570+px4_instance)) -r 40000
mavlink start -x -u $offboard_port -r 400000 -m custom -o $((14540+px4_instance)) -t 127.0.0.1
mavlink stream -r 10 -s EXTENDED_SYS_STATE -u $offboard_port
mavlink stream -r 30 -s LOCAL_POSITION_NED -u $offboard_port
mavlink stream -r 10 -s STATUSTEXT -u $offboard_port
"""


def airframe_script(
    layout: RotorLayout, defaults: Mapping[str, float], chosen: Mapping[str, float]
) -> str:
    """Write the airframe as a PX4 start-up script.

    `layout`: rotors as the flight stack is to believe them to be.
    `chosen`: parameters that the user set; they win.

    Raises:
        ConfigError: More rotors than PX4's simulated outputs.
    """
    if layout.n_rotors > MAX_MAIN_OUTPUTS:
        raise ConfigError(
            f"drones have {layout.n_rotors} rotors, PX4 SITL drives at most {MAX_MAIN_OUTPUTS}"
        )
    values: dict[str, float] = {"CA_AIRFRAME": 0, "CA_ROTOR_COUNT": layout.n_rotors}
    for k in range(layout.n_rotors):
        values[f"CA_ROTOR{k}_PX"] = layout.px_m[k]
        values[f"CA_ROTOR{k}_PY"] = layout.py_m[k]
        values[f"CA_ROTOR{k}_KM"] = layout.km[k]
        values[f"CA_ROTOR{k}_CT"] = layout.ct[k]
        values[f"PWM_MAIN_FUNC{k + 1}"] = FIRST_MOTOR_FUNCTION + k
    values |= defaults
    return "\n".join(
        [
            "#!/bin/sh",
            "# @name musls multicopter in lockstep",
            "# @type Multicopter",
            ". ${R}etc/init.d/rc.mc_defaults",
            *(f"param set-default {name} {_number(value)}" for name, value in values.items()),
            *(f"param set {name} {_number(value)}" for name, value in chosen.items()),
            "",
        ]
    )


def airframe_scripts(
    firmware: Firmware,
    layouts: Sequence[RotorLayout],
    defaults: Sequence[Mapping[str, float]],
    chosen: Sequence[Mapping[str, float]],
) -> list[str]:
    """Write the airframe of each drone, with parameters that the firmware knows.

    `chosen`: parameters that win over PX4's start-up scripts, too.

    Raises:
        ConfigError: See `airframe_script`.
        Px4Error: The firmware lacks a parameter.
    """
    for name in (name for own in (*defaults, *chosen) for name in own):
        if firmware.lacks(name):
            raise Px4Error(
                f"{firmware.text} has no parameter {name}, which musls sets: releases v1.15 to "
                "v1.18 have it"
            )
    return [airframe_script(*each) for each in zip(layouts, defaults, chosen, strict=True)]


def make_root(folder: Path, install: Px4Install, airframe: str) -> None:
    """Fill the folder of one instance.

    `folder`: empty, or made here.
    """
    scripts = folder / "etc" / "init.d-posix"
    (scripts / "airframes").mkdir(parents=True)
    _link_entries(install.etc, folder / "etc", without={"init.d-posix"})
    _link_entries(install.etc / "init.d-posix", scripts, without={"airframes", "px4-rc.mavlink"})
    (scripts / "airframes" / f"{AUTOSTART_ID}_musls").write_text(airframe, encoding="utf-8")
    (scripts / "px4-rc.mavlink").write_text(_LINKS, encoding="utf-8")
    # PX4 looks for this one on PATH and runs it as a program in some versions.
    (scripts / "px4-rc.mavlink").chmod(0o755)


def _link_entries(source: Path, target: Path, without: set[str]) -> None:
    for entry in source.iterdir():
        if entry.name not in without:
            (target / entry.name).symlink_to(entry)


def _number(value: float) -> str:
    """PX4's shell reads whole numbers for either type of parameter, fractions for floats only."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))
