"""A drone written with rotor links weighs what the description says, and has its motors."""

import dataclasses

import numpy as np
import pytest
from model_helpers import make_spawn
from sdf_reader import SdfScene

from musls_description.config.errors import ConfigError
from musls_description.system.system_files import load_system, system_names
from musls_description.writers import sdf
from musls_description.writers.sdf import drone_name


def composite(parts):
    """Mass, centre of mass and inertia about it of several links, in the world."""
    mass = sum(p.mass_kg for p in parts)
    places = [p.position_m + p.rotation @ p.com_m for p in parts]
    com = sum(p.mass_kg * x for p, x in zip(parts, places, strict=True)) / mass
    inertia = np.zeros((3, 3))
    for part, place in zip(parts, places, strict=True):
        arm = place - com
        inertia += part.rotation @ part.inertia_kg_m2 @ part.rotation.T
        inertia += part.mass_kg * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    return mass, com, inertia


@pytest.mark.parametrize("name", system_names(slung=True))
def test_body_and_rotors_together_are_the_drone(name):
    system = load_system(name)
    scene = SdfScene(sdf.world_sdf(system, make_spawn(system, "hover"), drones="motors"))
    for i, drone in enumerate(system.drones, start=1):
        name = drone_name(system, i - 1)
        parts = [v for k, v in scene.links.items() if k.startswith(f"{name}::")]
        assert len(parts) == 1 + len(drone.rotors)
        base = scene.links[f"{name}::base_link"]
        mass, com, inertia = composite(parts)
        assert mass == pytest.approx(drone.mass_kg, rel=1e-14)
        assert np.allclose(com, base.position_m, rtol=0.0, atol=1e-14)
        in_drone = base.rotation.T @ inertia @ base.rotation
        size = np.linalg.norm(drone.inertia_kg_m2)
        assert np.allclose(in_drone, drone.inertia_kg_m2, rtol=0.0, atol=1e-14 * size)


def test_rotors_are_at_the_hubs_and_turn_about_their_axis():
    system = load_system("x500_trio")
    scene = SdfScene(sdf.world_sdf(system, make_spawn(system, "ground")))
    base = scene.links["x500_2::base_link"]
    for j, rotor in enumerate(system.drones[1].rotors):
        link, joint = scene.links[f"x500_2::rotor_{j}"], scene.joints[f"x500_2::rotor_{j}_joint"]
        hub = base.position_m + base.rotation @ rotor.position_m
        assert np.allclose(link.position_m, hub, rtol=0.0, atol=1e-14)
        assert (joint.kind, joint.parent) == ("revolute", "x500_2::base_link")
        assert np.allclose(joint.rotation @ joint.axes[0], base.rotation[:, 2], atol=1e-14)
        # A disc: its inertia stays the same as it turns.
        i = link.inertia_kg_m2
        assert i[0, 0] == i[1, 1] > 0.0 and i[2, 2] == 2.0 * i[0, 0]


def test_motors_have_the_rotors_values_in_px4s_order():
    system = load_system("x500_duo")
    world = SdfScene(sdf.world_sdf(system, make_spawn(system, "ground"))).world
    for i, drone in enumerate(system.drones, start=1):
        motors = [
            {value.tag: value.text for value in plugin}
            for plugin in world.findall(f"model[@name='x500_{i}']/plugin")
            if plugin.get("name") == "gz::sim::systems::MulticopterMotorModel"
        ]
        assert [m["actuator_number"] for m in motors] == ["0", "1", "2", "3"]
        for j, (motor, rotor) in enumerate(zip(motors, drone.rotors, strict=True)):
            assert motor["jointName"] == f"rotor_{j}_joint"
            assert motor["linkName"] == f"rotor_{j}"
            assert motor["turningDirection"] == rotor.spin
            assert motor["commandSubTopic"] == "command/motor_speed"
            assert float(motor["motorConstant"]) == rotor.thrust_coefficient_n_s2
            assert float(motor["momentConstant"]) == rotor.moment_ratio_m
            assert float(motor["maxRotVelocity"]) == rotor.speed_max_rad_s
            assert float(motor["timeConstantUp"]) == rotor.time_constant_up_s
            assert float(motor["timeConstantDown"]) == rotor.time_constant_down_s
            assert float(motor["rotorDragCoefficient"]) == rotor.drag_n_s2_m_rad


def test_inertia_that_leaves_nothing_for_the_body_is_said():
    system = load_system("x500_solo")
    drone = dataclasses.replace(
        system.drones[0], inertia_kg_m2=((1e-4, 0, 0), (0, 1e-4, 0), (0, 0, 2e-4))
    )
    system = dataclasses.replace(system, drones=(drone,))
    spawn = make_spawn(system, "ground")
    with pytest.raises(ConfigError, match=r"drones\.0\.inertia_kg_m2 is too small.*'rigid'"):
        sdf.world_sdf(system, spawn)
    assert sdf.world_sdf(system, spawn, drones="rigid")
