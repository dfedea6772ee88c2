"""Systems, starts and sums that several plant tests need."""

import dataclasses

import numpy as np

from musls_description.hanging.equilibrium import hanging_equilibrium
from musls_description.system.slung_system import CableEnd, RigSystem
from musls_description.system.system_files import load_system
from musls_sim.plants.interface import PlantInputs, PrescribedMotion
from musls_sim.plants.rigid_links.mechanism import set_positions
from musls_sim.plants.rigid_links.plant import RigidLinksPlant
from musls_sim.plants.trim import trim_speeds_rad_s

G = 9.80665
STILL = np.zeros(3)


def advance(plant, rotor_speed_rad_s, wind_enu_m_s=STILL):
    """One control period with commanded rotor speeds in a wind."""
    inputs = PlantInputs.zeros(plant.system)
    inputs.rotor_command_rad_s[:] = rotor_speed_rad_s
    inputs.wind_enu_m_s[:] = wind_enu_m_s
    plant.step(inputs)


def follow(plant, path, load_wrench=None):
    """One control period with the drones on a path, and a wrench on the load."""
    inputs = PlantInputs.zeros(plant.system)
    inputs.motion = PrescribedMotion(path, load_wrench)
    plant.step(inputs)


def formation(system, radius=1.0, height=3.2):
    """Drone positions evenly on a circle, (n, 3)."""
    n = system.n_drones
    azimuth = np.arange(n) * 2.0 * np.pi / n
    radius = radius if n > 1 else 0.0
    return np.column_stack([radius * np.cos(azimuth), radius * np.sin(azimuth), np.full(n, height)])


def hovering_plant(system, make=RigidLinksPlant, **options):
    """A plant at rest in the air and the rotor speeds that hold it."""
    share = min(1.0, system.cables[0].length_m / 2.0)  # short cables: a small formation
    drones = formation(system, radius=share, height=1.2 + 2.0 * share)
    rest = hanging_equilibrium(system, drones)
    speeds = trim_speeds_rad_s(system, rest)
    plant = make(system, rest.configuration, rotor_speed_rad_s=speeds, **options)
    return plant, speeds, rest


class UniversalLinks(RigidLinksPlant):
    """The joints of the other engines, whose cables that twist freely have universal joints."""

    bends_evenly = False


def with_cables(system, joint=None, **changes):
    """The system with all cables (and their joints) changed."""

    def change(cable):
        new_joint = dataclasses.replace(cable.joint, **(joint or {}))
        return dataclasses.replace(cable, joint=new_joint, **changes)

    return dataclasses.replace(system, cables=tuple(change(c) for c in system.cables))


def without_drag(system):
    """Of rotors and cables, which depends on the motion: rotors' forces are a function of time."""

    def bare(drone):
        rotors = tuple(dataclasses.replace(r, drag_n_s2_m_rad=0.0) for r in drone.rotors)
        return dataclasses.replace(drone, rotors=rotors)

    line = dataclasses.replace(system.cables[0].elastic, drag_across_n_s2_m3=0.0)
    drones = tuple(bare(drone) for drone in system.drones)
    return with_cables(dataclasses.replace(system, drones=drones), elastic=line)


def trio(joint=None, **changes):
    """The paper's system with changed cables."""
    return with_cables(load_system("x500_trio"), joint, **changes)


def momenta(plant):
    """Total linear momentum and angular momentum about the centre of mass."""
    bodies = plant.records.bodies
    mass, turn = bodies["mass"], bodies["rotation"]
    arm = np.einsum("kij,kj->ki", turn, bodies["com"])
    com, velocity = bodies["position"] + arm, bodies["velocity"] + np.cross(bodies["omega"], arm)
    center = mass @ com / mass.sum()
    angular = np.cross(com - center, mass[:, None] * velocity).sum(axis=0)
    angular += np.einsum("kij,kjl,kml,km->i", turn, bodies["inertia"], turn, bodies["omega"])
    return mass @ velocity, angular


def kinetic_energy(plant):
    """Kinetic energy [J]."""
    bodies = plant.records.bodies
    turn, omega = bodies["rotation"], bodies["omega"]
    velocity = bodies["velocity"] + np.cross(omega, np.einsum("kij,kj->ki", turn, bodies["com"]))
    spin = np.einsum("kji,kj->ki", turn, omega)
    turning = np.einsum("ki,kij,kj", spin, bodies["inertia"], spin)
    return 0.5 * float(bodies["mass"] @ np.sum(velocity**2, axis=1) + turning)


def energy(plant):
    """Kinetic plus potential energy [J]."""
    bodies = plant.records.bodies
    arm = np.einsum("kij,kj->ki", bodies["rotation"], bodies["com"])
    height = (bodies["position"] + arm)[:, 2]
    return kinetic_energy(plant) + plant.gravity_m_s2 * float(bodies["mass"] @ height)


SINKING_M_S = -0.24
TILT_RAD = (0.012, -0.008, 0.0)


def sinking_plant(links, **options):
    """The trio sinking, the load half a millimetre above the ground and tilted by a degree."""
    system = trio(links=links)
    plant, speeds, rest = hovering_plant(system)
    bottom = rest.configuration.load_position_enu_m[2] + system.load.collision.bottom_m
    plant, speeds, _ = hovering_plant(system, ground_height_enu_m=float(bottom) - 5e-4, **options)
    velocities = np.zeros_like(plant.velocities)
    velocities[5] = SINKING_M_S
    positions = plant.positions
    positions[:3] += TILT_RAD
    set_positions(plant.records, positions)
    plant.start_moving(velocities)
    return plant, speeds


def as_rig(system):
    """A slung load whose cables say where their ends are."""
    cables = tuple(
        dataclasses.replace(
            cable,
            ends=(
                CableEnd(body="load", point_m=system.load.cable_attachments_m[i]),
                CableEnd(body=f"drone_{i + 1}", point_m=system.drones[i].cable_attachment_m),
            ),
        )
        for i, cable in enumerate(system.cables)
    )
    load = dataclasses.replace(system.load, cable_attachments_m=())
    return RigSystem(name="rig", load=load, drones=system.drones, cables=cables)
