"""Rotors of a drone in a URDF, SDF or MJCF file, as the keys of an airframe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from musls_description.config.strict_yaml import shown
from musls_description.numerics.arrays import Array

MOTOR = {
    "motorConstant": "thrust_coefficient_n_s2",
    "momentConstant": "moment_ratio_m",
    "timeConstantUp": "time_constant_up_s",
    "timeConstantDown": "time_constant_down_s",
    "maxRotVelocity": "speed_max_rad_s",
    "rotorDragCoefficient": "drag_n_s2_m_rad",
}
"""Elements of Gazebo's motor plugin and the keys of a rotor; rolling moments are left out."""

IDLE = 0.15
"""Speed at zero command over the largest, as of PX4's x500."""

SPEEDS_RPM = (100.0, 2e5)
MOST_THRUST_N = 1e4
"""Speeds of propellers at full throttle, and the largest thrust of one."""


def motor_plugins(root: Element) -> list[Element]:
    """Gazebo's motor plugins of an SDF or URDF file, in the order of the motors."""
    plugins = [plugin for plugin in root.iter("plugin") if plugin.find("motorConstant") is not None]

    def number(plugin: Element) -> int:
        tag = "motorNumber" if plugin.find("motorNumber") is not None else "actuator_number"
        return int(_number(plugin, tag, 0.0))

    return sorted(plugins, key=number)


def plugin_rotor(motor: Element, points_m: Mapping[str, Array]) -> dict[str, Any]:
    """A rotor of Gazebo's motor plugin, with its defaults."""
    link = motor.findtext("linkName", "").strip()
    if not link or link not in points_m:
        raise ValueError(f"<linkName>{link}</linkName>: no such link")
    spin = motor.findtext("turningDirection", "").strip()
    if spin not in ("cw", "ccw"):
        raise ValueError(f"<turningDirection>{spin}</turningDirection>: must be cw or ccw")
    usual = {"timeConstantUp": 0.0125, "timeConstantDown": 0.025, "momentConstant": 0.016}
    usual |= {"maxRotVelocity": 838.0, "rotorDragCoefficient": 1e-4}
    rotor: dict[str, Any] = {"position_m": points_m[link], "spin": spin}
    for element, key in MOTOR.items():
        rotor[key] = _number(motor, element, usual.get(element))
    return rotor | {"speed_min_rad_s": IDLE * rotor["speed_max_rad_s"]}


# ---------- Blades that ArduPilot turns


@dataclass(frozen=True)
class BladedRotor:
    """A rotor as ArduPilot's models have it: blades of LiftDrag on a joint that a controller turns.

    In still air the blades of a level rotor meet it at their own angle `a0`: lift and drag go with
    the squared speed. The controller turns the joint by a torque in proportion to what is missing
    of the speed, against the joint's damping and the drag, and up to a largest torque.

    Attributes:
        lift_n_s2: Thrust over squared speed.
        drag_n_m_s2: Torque of the blades over squared speed.
        gain_n_m_s: Torque over missing speed.
        most_n_m: Largest torque.
        damping_n_m_s: Damping of the joint.
        inertia_kg_m2: Inertia about the joint's axis.
        command_rad_s: Speed of the largest command; positive turns counter-clockwise.
    """

    joint: str
    link: str
    lift_n_s2: float
    drag_n_m_s2: float
    gain_n_m_s: float
    most_n_m: float
    damping_n_m_s: float
    inertia_kg_m2: float
    command_rad_s: float

    def keys(self, points_m: Mapping[str, Array]) -> dict[str, Any]:
        """Keys of the rotor."""
        if not self.link or self.link not in points_m:
            raise ValueError(f"<link_name>{self.link}</link_name>: no such link")
        if not self.lift_n_s2 > 0.0:
            raise ValueError(f"{self.link}: its blades lift nothing (a0, cla, area)")
        fastest = abs(self.command_rad_s)
        slowing = self.gain_n_m_s + self.damping_n_m_s
        if np.isfinite(self.gain_n_m_s):
            fastest = min(
                _speed_rad_s(self.drag_n_m_s2, slowing, self.gain_n_m_s * fastest),
                _speed_rad_s(self.drag_n_m_s2, self.damping_n_m_s, self.most_n_m),
            )
        lag_s = self.inertia_kg_m2 / slowing if np.isfinite(slowing) else 0.0
        return {
            "position_m": points_m[self.link],
            "spin": "ccw" if self.command_rad_s > 0.0 else "cw",
            "thrust_coefficient_n_s2": self.lift_n_s2,
            "moment_ratio_m": self.drag_n_m_s2 / self.lift_n_s2,
            "time_constant_up_s": max(lag_s, QUICKEST_S),
            "time_constant_down_s": max(lag_s, QUICKEST_S),
            "speed_min_rad_s": 0.0,
            "speed_max_rad_s": fastest,
        }


QUICKEST_S = 1e-3
"""Time constant of a rotor, at least: less makes no difference to a drone."""


def _speed_rad_s(drag: float, damping: float, torque_n_m: float) -> float:
    """Speed at which drag w^2 + damping w is a torque; infinite where nothing brakes."""
    if not np.isfinite(torque_n_m) or (drag == 0.0 and damping == 0.0):
        return np.inf
    return 2.0 * torque_n_m / (damping + float(np.sqrt(damping**2 + 4.0 * drag * torque_n_m)))


def bladed_rotors(root: Element) -> list[BladedRotor]:
    """Rotors of ArduPilot's models in the order of the channels."""
    joints = {joint.get("name", ""): joint for joint in root.iter("joint")}
    links = {link.get("name", ""): link for link in root.iter("link")}
    blades: dict[str, list[Element]] = {}
    for plugin in root.iter("plugin"):
        if plugin.find("cla") is not None and plugin.find("cp") is not None:
            blades.setdefault(plugin.findtext("link_name", "").strip(), []).append(plugin)
    pairs = list[tuple[int, BladedRotor]]()
    for control in root.iter("control"):
        name = control.findtext("jointName", "").strip()
        joint = joints.get(name)
        link = "" if joint is None else joint.findtext("child", "").strip()
        if joint is None or link not in blades or control.findtext("type") != "VELOCITY":
            continue
        forced = _number(control, "useForce", 1.0) > 0.0  # else the joint has its speed at once
        slower = _number(control, "rotorVelocitySlowdownSim", 1.0) or 1.0
        most = _number(
            control, "cmd_max", 0.0
        )  # PID without a limit: as Gazebo, zero or less is none
        rotor = BladedRotor(
            name,
            link,
            *_lift_and_drag(blades[link]),
            _number(control, "p_gain", 0.1) if forced else np.inf,
            most if most > 0.0 else np.inf,
            _number(joint, "axis/dynamics/damping", 0.0),
            _number(links[link], "inertial/inertia/izz", 1.0),
            _number(control, "multiplier", 1.0) * (1.0 + _number(control, "offset", 0.0)) / slower,
        )
        channel = control.get("channel") or control.findtext("channel", "").strip() or "0"
        if not channel.isdecimal():
            raise ValueError(f"channel {shown(channel)}: must be a whole number")
        pairs.append((int(channel), rotor))
    return [rotor for _, rotor in sorted(pairs, key=lambda pair: pair[0])]


def _number(element: Element, tag: str, usual: float | None) -> float:
    """Number of an element's child, or the usual one, if there is any, where it is not given."""
    text = element.findtext(tag, "").strip()
    if not text and usual is not None:
        return usual
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        name = tag.rpartition("/")[2]
        raise ValueError(f"<{name}>{shown(text)}</{name}>: must be a finite number")
    return number


def _lift_and_drag(blades: Sequence[Element]) -> tuple[float, float]:
    """Thrust [N s2] and torque [N m s2] of a rotor's blades over its squared speed."""
    lift = drag = 0.0
    for blade in blades:
        radius = float(np.hypot(*np.array(blade.findtext("cp", "").split(), float)[:2]))
        pressure = (
            0.5 * _number(blade, "air_density", 1.2041) * _number(blade, "area", 1.0) * radius**2
        )
        angle = _number(blade, "a0", 0.0)
        lift += pressure * _number(blade, "cla", 1.0) * angle
        drag += pressure * abs(_number(blade, "cda", 0.01) * angle) * radius
    return lift, drag


# ---------- MuJoCo's actuators


def actuator_rotors(
    model: Any, points_m: Mapping[str, Array], speed_max_rad_s: float
) -> list[dict[str, Any]]:
    """Rotors of MuJoCo's motors at sites: a force along z and a moment about it."""
    import mujoco

    rotors = []
    for i in np.flatnonzero(model.actuator_trntype == mujoco.mjtTrn.mjTRN_SITE):
        force = model.actuator_gear[i, :3]
        moment = model.actuator_gear[i, 3:]
        name = model.actuator(i).name
        site = model.site(model.actuator_trnid[i, 0]).name
        is_tilted = np.abs(model.site_quat[model.actuator_trnid[i, 0], 1:3]).max() > 1e-6
        full_n = model.actuator_ctrlrange[i, 1] * force[2] * model.actuator_gainprm[i, 0]
        along_z = not (is_tilted or force[:2].any() or moment[:2].any())
        if not along_z or not full_n > 0.0 or site not in points_m:
            raise ValueError(
                f"actuator {name}: must be a motor at a named site with ctrlrange, that pushes "
                "along z and turns about it"
            )
        rotors.append(
            {
                "position_m": points_m[site],
                "spin": "cw" if moment[2] > 0.0 else "ccw",
                "thrust_coefficient_n_s2": full_n / speed_max_rad_s**2,
                "moment_ratio_m": abs(moment[2]) / force[2],
                "time_constant_up_s": 0.0125,
                "time_constant_down_s": 0.025,
                "speed_min_rad_s": IDLE * speed_max_rad_s,
                "speed_max_rad_s": speed_max_rad_s,
            }
        )
    return rotors
