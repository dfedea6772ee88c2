"""The system in MuJoCo, an engine that shares no code with ours or with DART.

The model is written from the same `Tree` as the DART skeleton: the load on a free joint, every
other joint as a hinge for each of its axes. Rotors are actuators at sites on their hubs, so MuJoCo
turns thrust and reaction torque with the drone within a step and maps them to joint torques by
its own Jacobians. Integrated with RK4 at a short step it is as good as exact.
"""

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from musls_description.hanging.tree import build_tree

STEP_S = 4e-4

# MuJoCo would write its warnings into a file in the current folder.
mujoco.set_mju_user_warning(lambda message: None)


def _text(values):
    return " ".join(repr(float(v)) for v in np.ravel(values))


def quaternion(rotation):
    """Quaternion [w, x, y, z] of a rotation matrix."""
    return Rotation.from_matrix(rotation).as_quat(scalar_first=True)


def _inertial(body):
    (ixx, ixy, ixz), (_, iyy, iyz), (_, _, izz) = body.inertia_kg_m2
    return (
        f'<inertial pos="{_text(body.com_m)}" mass="{body.mass_kg!r}" '
        f'fullinertia="{_text([ixx, iyy, izz, ixy, ixz, iyz])}"/>'
    )


def _hinges(body):
    """The axes of a joint, given in the frame of the body that hangs on it."""
    frame = dict(zip("xyz", body.joint_in_child_rotation.T, strict=True))
    return "".join(
        f'<joint type="hinge" pos="{_text(body.joint_in_child_position_m)}" '
        f'axis="{_text(frame[axis])}" damping="{body.damping_n_m_s_rad!r}" '
        f'stiffness="{0.0 if axis == "x" else body.stiffness_n_m_rad!r}"/>'
        for axis in body.axes
    )


def model_xml(system, gravity_m_s2, step_s, balls=False):
    """MJCF of a whole system, without contacts, ground and drag; with balls for other joints."""
    tree = build_tree(system)
    sites, actuators, sensors = {k: "" for k in range(len(tree.bodies))}, "", ""
    for i, (first, drone) in enumerate(zip(tree.first_link, tree.drone, strict=True)):
        for end, index in enumerate((first, drone)):
            body = tree.bodies[index]
            sites[index] += (
                f'<site name="end_{i}_{end}" pos="{_text(body.joint_in_child_position_m)}"/>'
            )
            sensors += f'<force site="end_{i}_{end}"/>'
        for j, rotor in enumerate(system.drones[i].rotors):
            name = f"rotor_{i}_{j}"
            # The air turns the drone against the rotor.
            turn = rotor.moment_ratio_m * {"ccw": -1.0, "cw": 1.0}[rotor.spin]
            sites[drone] += f'<site name="{name}" pos="{_text(rotor.position_m)}"/>'
            actuators += f'<general site="{name}" gear="0 0 1 0 0 {turn!r}"/>'

    children = {k: [] for k in range(-1, len(tree.bodies))}
    for k, body in enumerate(tree.bodies):
        children[body.parent].append(k)

    def element(k):
        body = tree.bodies[k]
        # Pose in the parent at zero angles: parent to joint, and back from joint to child.
        rotation = body.joint_in_parent_rotation @ body.joint_in_child_rotation.T
        position = body.joint_in_parent_position_m - rotation @ body.joint_in_child_position_m
        joints = "<freejoint/>" if body.parent < 0 else _hinges(body)
        if balls and body.parent >= 0:
            joints = f'<joint type="ball" pos="{_text(body.joint_in_child_position_m)}"/>'
        inside = "".join(element(child) for child in children[k])
        pose = f'pos="{_text(position)}" quat="{_text(quaternion(rotation))}"'
        content = f"{joints}{_inertial(body)}{sites[k]}{inside}"
        return f'<body name="{body.name}" {pose}>{content}</body>'

    return (
        '<mujoco><compiler angle="radian"/>'
        f'<option integrator="RK4" timestep="{step_s!r}" gravity="0 0 {-gravity_m_s2!r}">'
        '<flag contact="disable" constraint="disable"/></option>'
        f"<worldbody>{element(0)}</worldbody>"
        f"<actuator>{actuators}</actuator><sensor>{sensors}</sensor></mujoco>"
    )


class MujocoModel:
    """A system that flies in MuJoCo; the interface is as much of a plant's as the tests need."""

    def __init__(
        self, system, start, speed_rad_s, gravity_m_s2=9.80665, step_s=STEP_S, *, balls=False
    ):
        self.system, self.tree, self._balls = system, build_tree(system), balls
        self.model = mujoco.MjModel.from_xml_string(model_xml(system, gravity_m_s2, step_s, balls))
        self.data = mujoco.MjData(self.model)
        self.names = [body.name for body in self.tree.bodies]
        self.bodies = np.array([self.model.body(name).id for name in self.names])
        # Where the load's six and, in the order of the tree, all joint angles are in MuJoCo.
        first = self.model.body_jntadr[self.bodies]
        self._q, self._v = (
            np.concatenate(
                [
                    np.arange(start, start + len(body.axes))
                    for start, body in zip(table[first], self.tree.bodies, strict=True)
                ]
            )
            for table in (self.model.jnt_qposadr, self.model.jnt_dofadr)
        )
        self._load_q, self._load_v = (
            self.model.jnt_qposadr[first[0]],
            self.model.jnt_dofadr[first[0]],
        )
        rotors = [drone.rotors for drone in system.drones]
        self._thrust, self._up, self._down = (
            np.array([[getattr(rotor, field) for rotor in drone] for drone in rotors])
            for field in ("thrust_coefficient_n_s2", "time_constant_up_s", "time_constant_down_s")
        )
        self.rotor_speed_rad_s = np.array(speed_rad_s)
        self._set_positions(start.coordinates)
        mujoco.mj_forward(self.model, self.data)

    def _set_positions(self, coordinates):
        rotation = Rotation.from_rotvec(coordinates[:3]).as_quat(scalar_first=True)
        pose = slice(self._load_q, self._load_q + 7)
        self.data.qpos[pose] = [*coordinates[3:6], *rotation]
        if not self._balls:
            self.data.qpos[self._q] = coordinates[6:]
            return
        turns = self.tree.poses(coordinates)[0]
        for k, body in enumerate(self.tree.bodies[1:], start=1):
            still = body.joint_in_parent_rotation @ body.joint_in_child_rotation.T
            first = self.model.jnt_qposadr[self.model.body_jntadr[self.bodies[k]]]
            turn = still.T @ turns[body.parent].T @ turns[k]
            self.data.qpos[first : first + 4] = quaternion(turn)

    def set_velocities(self, rates):
        """Set the rates of all coordinates, given in the tree's order (load: world frame)."""
        rotation = self.data.xmat[self.bodies[0]].reshape(3, 3)
        twist = slice(self._load_v, self._load_v + 6)
        self.data.qvel[twist] = [*rates[3:6], *(rotation.T @ rates[:3])]
        if not self._balls:
            self.data.qvel[self._v] = rates[6:]
        mujoco.mj_forward(self.model, self.data)

    def _spin(self, command, dt):
        """Let the rotors follow for a time (first-order lag); returns the mean squared speeds."""
        gap = command - self.rotor_speed_rad_s
        lag = np.where(gap > 0.0, self._up, self._down)
        left = np.exp(-dt / lag)
        self.rotor_speed_rad_s = command - gap * left
        first, second = lag * (1.0 - left) / dt, lag * (1.0 - left**2) / (2.0 * dt)
        return command**2 - 2.0 * command * gap * first + gap**2 * second

    def step(self, command_rad_s, period_s):
        """Advance one control period with the rotor commands held."""
        dt = self.model.opt.timestep
        for _ in range(round(period_s / dt)):
            self.data.ctrl[:] = (self._thrust * self._spin(command_rad_s, dt)).ravel()
            mujoco.mj_step(self.model, self.data)
        self.data.ctrl[:] = (self._thrust * self.rotor_speed_rad_s**2).ravel()
        mujoco.mj_forward(self.model, self.data)

    def poses(self):
        """Origins (n_bodies, 3) and rotations (n_bodies, 3, 3) in the order of the tree."""
        return self.data.xpos[self.bodies].copy(), self.data.xmat[self.bodies].reshape(
            -1, 3, 3
        ).copy()

    def cable_force_n(self):
        """Cable forces in the frames of the end links, as in `PlantState`, (n, 2, 3).

        MuJoCo takes actuators for inner forces, so for the transmitted forces the rotors are
        handed over once more, as outside wrenches on the drones.
        """
        data, ctrl = self.data, self.data.ctrl.copy()
        for i, k in enumerate(self.bodies[self.tree.drone]):
            rotation = data.xmat[k].reshape(3, 3)
            thrusts = ctrl.reshape(len(self.tree.drone), -1)[i]
            force, moment = np.zeros(3), np.zeros(3)
            for rotor, thrust in zip(self.system.drones[i].rotors, thrusts, strict=True):
                push = np.array([0.0, 0.0, thrust])
                force += push
                turn = rotor.moment_ratio_m * (1.0 if rotor.spin == "cw" else -1.0)
                moment += np.cross(rotor.position_m, push) + turn * push
            data.xfrc_applied[k] = [*(rotation @ force), *(rotation @ moment)]
        data.ctrl[:] = 0.0
        mujoco.mj_forward(self.model, data)
        result = np.empty((len(self.tree.drone), 2, 3))
        for i, (first, drone) in enumerate(zip(self.tree.first_link, self.tree.drone, strict=True)):
            for end, link_index in enumerate((first, drone - 1)):
                link = data.xmat[self.bodies[link_index]].reshape(3, 3)
                site = data.site(f"end_{i}_{end}").xmat.reshape(3, 3)
                sensor = data.sensordata[3 * (2 * i + end) :][:3]
                result[i, end] = -link.T @ (site @ sensor)
        data.xfrc_applied[:] = 0.0
        data.ctrl[:] = ctrl
        mujoco.mj_forward(self.model, data)
        return result
