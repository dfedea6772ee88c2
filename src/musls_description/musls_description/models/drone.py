"""The drones' SDF models: with motors and sensors for PX4, as one rigid body, or PX4's own."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from musls_description.drone import Drone, Rotor
from musls_description.errors import ConfigError
from musls_description.models.elements import add_contact_box, add_inertial, add_visual
from musls_description.models.xml_text import add, add_all, numbers, read_part

Array = NDArray[np.float64]

# A rotor's mass over the drone's and its radius of gyration over the arm's length: PX4's x500
# (16 g of 2.06 kg, 41 mm of 246 mm).
ROTOR_MASS_SHARE = 1.0 / 128.0
ROTOR_GYRATION_SHARE = 1.0 / 6.0

# Gazebo turns the rotors' joints slower than the motor model, so that the steps can resolve them.
SLOWDOWN = 10


def add_rigid_body(model: Element, drone: Drone, friction: float) -> None:
    """Add the drone as the description has it: one body, no motors, no sensors."""
    link = add(model, "link", name="base_link")
    add_inertial(link, drone.mass_kg, np.zeros(3), np.array(drone.inertia_kg_m2))
    _add_shape(link, drone, friction)


def add_flying_body(
    model: Element, drone: Drone, friction: float, where: str, *, flat: bool
) -> None:
    """Add the drone with rotor links, motor plugins and PX4's sensors.

    The rotors' masses are taken off the body, so that both together have the description's mass,
    centre of mass and inertia.

    Args:
        model: The drone's model, changed.
        drone: The drone.
        friction: Coefficient of friction on the ground.
        where: Key of the drone in the system, for errors.
        flat: The model is at the top of a world under its own name, which its motors then listen
            to; in a model of one's own they take the name that it gets there.

    Raises:
        ConfigError: The inertia is too small for rotors with a mass at these positions.
    """
    rotor_mass, rotor_inertia = _rotor_body(drone)
    link = add(model, "link", name="base_link")
    add_inertial(link, *_without_rotors(drone, rotor_mass, rotor_inertia, where))
    _add_shape(link, drone, friction)
    link.extend(read_part("sensors.sdf").findall("sensor"))
    for j, rotor in enumerate(drone.rotors):
        disc = add(model, "link", name=f"rotor_{j}")
        add(disc, "pose", numbers(rotor.position_m, np.zeros(3)))
        add_inertial(disc, rotor_mass, np.zeros(3), rotor_inertia)
        joint = add(model, "joint", name=f"rotor_{j}_joint", type="revolute")
        add_all(joint, parent="base_link", child=f"rotor_{j}")
        add(add(joint, "axis"), "xyz", "0 0 1")
    for j, rotor in enumerate(drone.rotors):
        _add_motor(model, j, rotor, flat=flat)


def _add_motor(model: Element, number: int, rotor: Rotor, *, flat: bool) -> None:
    """Add Gazebo's motor model, which listens on MODEL/command/motor_speed."""
    plugin = add(
        model,
        "plugin",
        filename="gz-sim-multicopter-motor-model-system",
        name="gz::sim::systems::MulticopterMotorModel",
    )
    if flat:
        add(plugin, "robotNamespace", model.attrib["name"])
    add_all(
        plugin,
        jointName=f"rotor_{number}_joint",
        linkName=f"rotor_{number}",
        turningDirection=rotor.spin,
        timeConstantUp=rotor.time_constant_up_s,
        timeConstantDown=rotor.time_constant_down_s,
        maxRotVelocity=rotor.speed_max_rad_s,
        motorConstant=rotor.thrust_coefficient_n_s2,
        momentConstant=rotor.moment_ratio_m,
        commandSubTopic="command/motor_speed",
        actuator_number=number,
        motorNumber=number,  # the same for Gazebo before Harmonic
        rotorDragCoefficient=rotor.drag_n_s2_m_rad,
        rollingMomentCoefficient=0.0,
        rotorVelocitySlowdownSim=SLOWDOWN,
        motorType="velocity",
    )


def _rotor_body(drone: Drone) -> tuple[float, Array]:
    """Mass and inertia of a rotor: a flat disc, whose inertia does not change as it turns."""
    mass = ROTOR_MASS_SHARE * drone.mass_kg
    spin = mass * (ROTOR_GYRATION_SHARE * _arm_m(drone)) ** 2
    return mass, np.diag([spin / 2.0, spin / 2.0, spin])


def _arm_m(drone: Drone) -> float:
    return max(float(np.hypot(*rotor.position_m[:2])) for rotor in drone.rotors)


def _without_rotors(
    drone: Drone, rotor_mass: float, rotor_inertia: Array, where: str
) -> tuple[float, Array, Array]:
    """Mass, centre of mass and inertia of what is left when the rotors are taken off."""
    hubs = np.array([rotor.position_m for rotor in drone.rotors])
    mass = drone.mass_kg - len(hubs) * rotor_mass
    com = -rotor_mass * hubs.sum(axis=0) / mass
    inertia = np.array(drone.inertia_kg_m2) - len(hubs) * rotor_inertia
    inertia -= rotor_mass * sum(_steiner(hub) for hub in hubs) + mass * _steiner(com)
    a, b, c = np.linalg.eigvalsh(inertia)
    if a <= 0.0 or a + b < c:
        raise ConfigError(
            f"{where}.inertia_kg_m2 is too small for {len(hubs)} rotors of {rotor_mass:.3g} kg "
            f"(1/128 of the drone) at rotors.*.position_m; write the drones as 'rigid'"
        )
    return mass, com, inertia


def _steiner(offset_m: Array) -> Array:
    """What a unit mass at an offset adds to the inertia (parallel axis theorem), (3, 3) [m2]."""
    return offset_m @ offset_m * np.eye(3) - np.outer(offset_m, offset_m)


def _add_shape(link: Element, drone: Drone, friction: float) -> None:
    """Add the landing gear's box and something to see."""
    add_contact_box(link, drone.collision, friction)
    arm = _arm_m(drone)
    body = add_visual(link, "body", np.zeros(3), "0.2 0.2 0.25")
    add(add(body, "box"), "size", numbers([0.8 * arm, 0.5 * arm, 0.2 * arm]))
    for j, rotor in enumerate(drone.rotors):
        colour = "0.8 0.3 0.2" if rotor.position_m[0] > 0.0 else "0.3 0.3 0.3"
        disc = add_visual(link, f"rotor_{j}", rotor.position_m, colour)
        add_all(add(disc, "cylinder"), radius=0.45 * arm, length=0.02 * arm)
