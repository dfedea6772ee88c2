"""Rotors of a drone as its flight stack has them: PX4, ArduPilot, Betaflight, Agilicious."""

from __future__ import annotations

import math
import re

import numpy as np

from musls_description.config.errors import ConfigError
from musls_description.config.strict_yaml import shown
from musls_description.numerics.arrays import Array

Hubs = list[tuple[Array, str]]
"""Place of each rotor [m, body FLU] and how it spins, in the order of the motors."""

CW = "cw"
CCW = "ccw"

Arms = tuple[tuple[float, str], ...]
"""Angle of each arm, clockwise from ahead seen from above [deg], and how its rotor spins."""

QUAD_X: Arms = ((45, CCW), (-135, CCW), (-45, CW), (135, CW))
ARDUPILOT: dict[tuple[int, int], Arms] = {
    (1, 0): ((90, CCW), (-90, CCW), (0, CW), (180, CW)),
    (1, 1): QUAD_X,
    (2, 0): ((0, CW), (180, CCW), (-120, CW), (60, CCW), (-60, CCW), (120, CW)),
    (2, 1): ((90, CW), (-90, CCW), (-30, CW), (150, CCW), (30, CCW), (-150, CW)),
}
"""Arms by FRAME_CLASS (1: quad, 2: hexa) and FRAME_TYPE (0: plus, 1: X), from the pages of
ArduPilot's copter on connecting motors."""

BETAFLIGHT: dict[str, Arms] = {
    "QUADX": ((135, CW), (45, CCW), (-135, CCW), (-45, CW)),
    "QUADP": ((180, CW), (90, CCW), (-90, CCW), (0, CW)),
}
"""Arms by mixer, with propellers in; yaw_motors_reversed turns all of them round."""

AGILICIOUS = {"fr": (45, CCW), "bl": (-135, CCW), "br": (135, CW), "fl": (-45, CW)}
"""Arms by the names of rotors, in the order of the motors, and spins: those of the first two turn
the body clockwise (`Quadrotor::getAllocationMatrix`)."""

OTHER = {CW: CCW, CCW: CW}


def hubs_of(text: str, file: str, wheelbase_m: float, above_m: float) -> Hubs:
    """Rotors from a file of a flight stack: PX4, ArduPilot, Betaflight, Agilicious, Flightmare.

    ArduPilot and Betaflight say where motors are by names of frames alone: arms are
    `wheelbase_m` long together, `above_m` above the centre of mass.

    Raises:
        ConfigError: A frame that is not known, or none in the file.
    """
    values = dict(_VALUE.findall("\n".join(_without_comments(text))))
    if "FRAME_CLASS" in values:
        frame = _number(values, "FRAME_CLASS", file), _number(values, "FRAME_TYPE", file)
        if (arms := ARDUPILOT.get(frame)) is None:
            raise ConfigError(
                f"{file}: FRAME_CLASS {frame[0]}, FRAME_TYPE {frame[1]}: must be a quad (1) or "
                "hexa (2), plus (0) or X (1); for others give --rotors, or edit the file"
            )
        return _at_ends(arms, wheelbase_m, above_m)
    if (mixer := _MIXER.search(text)) is not None:
        if (arms := BETAFLIGHT.get(mixer[1].upper())) is None:
            choices = " or ".join(BETAFLIGHT)
            raise ConfigError(f"{file}: mixer {mixer[1]}: must be {choices}, or give --rotors")
        if _REVERSED.search(text):
            arms = tuple((angle, OTHER[spin]) for angle, spin in arms)
        return _at_ends(arms, wheelbase_m, above_m)
    return agilicious_hubs(text, file, above_m) or px4_hubs(text, file)


_PLACE = re.compile(r"^[ \t]*tbm_(fr|bl|br|fl)[ \t]*:[ \t]*\[([^\]\n]*)\]", re.MULTILINE)
_ARM = re.compile(r"^[ \t]*(arm_l|l)[ \t]*:[ \t]*([^\s#]+)", re.MULTILINE)


def agilicious_hubs(text: str, file: str, above_m: float) -> Hubs | None:
    """Rotors of a quadrotor of Agilicious (`tbm_fr`, ...) or Flightmare (`arm_l`); None of others.

    Places are from the centre of mass, x ahead, y to the left, z up; arms of one length, `above_m`
    above it, are in an X.
    """
    text = "\n".join(_without_comments(text))
    places = dict(_PLACE.findall(text))
    arm = _ARM.search(text)
    if not places and (arm is None or "thrust_map" not in text):
        return None
    if not places and arm is not None:
        try:
            length_m = float(arm[2])
        except ValueError:
            length_m = math.nan
        if not 0.0 < length_m < math.inf:
            raise ConfigError(f"{file}: {arm[1]} = {shown(arm[2])}: must be a length in metres")
        return _at_ends(tuple(AGILICIOUS.values()), 2.0 * length_m, above_m)
    if missing := [f"tbm_{name}" for name in AGILICIOUS if name not in places]:
        raise ConfigError(f"{file}: {', '.join(missing)} missing: places of all four rotors")
    hubs = []
    for name, (_, spin) in AGILICIOUS.items():
        try:
            place = np.array([float(number) for number in places[name].split(",")])
        except ValueError:
            place = np.zeros(0)
        if len(place) != 3 or not np.isfinite(place).all():
            raise ConfigError(
                f"{file}: tbm_{name} = [{shown(places[name])}]: must be three numbers"
            )
        hubs.append((place, spin))
    return hubs


def _without_comments(text: str) -> list[str]:
    return [line.partition("#")[0] for line in text.splitlines()]


_VALUE = re.compile(r"\b(FRAME_CLASS|FRAME_TYPE)\b[\s,:=]+([^\s,;]+)")
_MIXER = re.compile(r"^\s*mixer\s+(\w+)", re.MULTILINE)
_REVERSED = re.compile(r"^\s*set\s+yaw_motors_reversed\s*=\s*ON\b", re.MULTILINE | re.IGNORECASE)


def _number(values: dict[str, str], name: str, file: str) -> int:
    """Whole number of a parameter, as files have them: 1 or 1.000000."""
    value = values.get(name, "0")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not number.is_integer():
        raise ConfigError(f"{file}: {name} = {shown(value)}: must be a whole number")
    return int(number)


def _at_ends(arms: Arms, wheelbase_m: float, above_m: float) -> Hubs:
    """Rotors at the ends of arms."""
    hubs = []
    for angle_deg, spin in arms:
        angle = -math.radians(angle_deg)  # anti-clockwise, as FLU has it
        flat = 0.5 * wheelbase_m * np.array([math.cos(angle), math.sin(angle)])
        hubs.append((np.array([*flat, above_m]), spin))
    return hubs


_PARAMETER = re.compile(r"\bCA_ROTOR(_COUNT|\d+_(?:PX|PY|PZ|KM|AX|AY))\b[\s,:=]+([^\s,;]+)")


def px4_hubs(text: str, file: str) -> list[tuple[Array, str]]:
    """Place and spin of each rotor from PX4's CA_ROTOR parameters.

    `text` is an airframe of PX4 (`param set-default CA_ROTOR0_PX 0.15`), what QGroundControl saves,
    or the table of `ulog_params`; comments do not count. PX4's x is forward, y right, z down from
    the centre of mass.
    """
    parameters: dict[str, float] = {}
    for line in text.splitlines():
        for name, value in _PARAMETER.findall(line.partition("#")[0]):
            try:
                parameters[name.lstrip("_")] = float(value)
            except ValueError:
                raise ConfigError(
                    f"{file}: CA_ROTOR{name} = {shown(value)}: must be a number"
                ) from None
    numbers = sorted({int(name.split("_")[0]) for name in parameters if name[0].isdigit()})
    count = int(parameters.get("COUNT", len(numbers)))
    if count < 4 or len(numbers) < count:
        raise ConfigError(
            f"{file}: CA_ROTOR... of {len(numbers)} rotors in it, at least 4 of each; read are "
            "parameters of PX4 (CA_ROTOR...) and ArduPilot (FRAME_CLASS), Betaflight's dump "
            "(mixer), and quadrotors of Agilicious (tbm_fr, ...)"
        )
    hubs = []
    for i in numbers[:count]:
        if parameters.get(f"{i}_AX", 0.0) or parameters.get(f"{i}_AY", 0.0):
            raise ConfigError(f"{file}: CA_ROTOR{i}_AX, _AY: tilted rotors are not modelled")
        x, y, z = (parameters.get(f"{i}_{axis}", 0.0) for axis in ("PX", "PY", "PZ"))
        km = parameters.get(f"{i}_KM", 0.05)  # PX4's own default
        if km == 0.0:
            raise ConfigError(
                f"{file}: CA_ROTOR{i}_KM = 0 does not say how the rotor spins: give a positive "
                "number (anti-clockwise) or a negative one"
            )
        hubs.append((np.array([x, -y, -z]), "ccw" if km > 0.0 else "cw"))
    return hubs
