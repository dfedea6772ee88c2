"""Stands in for the `px4` program: speaks PX4's side of both links and flies `Px4Cascade`.

Started with PX4's command line. It reads its airframe from its working folder, connects to the
simulator and finds its state from the sensors alone: attitude from magnetometer and gyro, place
and speed from the fixes and the accelerometer, in a local frame that begins at its first fix, as
PX4's does. MUSLS_PEER makes it misbehave, see the tests.
"""

import os
import socket
import sys
import time
from pathlib import Path

import numpy as np
from pymavlink.dialects.v20 import common as mavlink

from musls_control.autopilot import DroneSetpoints, MotorCommands
from musls_control.estimate import Estimate

DT_S, GRAVITY_M_S2, EARTH_RADIUS_M = 0.004, 9.80665, 6371000.0
DECLINATION_RAD = np.deg2rad(3.33)
FIX_GAIN_POSITION, FIX_GAIN_VELOCITY = 0.2, 0.3


def read_airframe(root):
    """Parameters of the airframe script that PX4 would run."""
    (script,) = (root / "etc" / "init.d-posix" / "airframes").glob(
        f"{os.environ['PX4_SYS_AUTOSTART']}_*"
    )
    lines = [line.split() for line in script.read_text().splitlines()]
    return {line[2]: float(line[3]) for line in lines if line[:1] == ["param"]}


def build_cascade(parameters):
    """The flight stack that the airframe describes."""
    from musls_control.px4 import PX4_PARAMETERS, Px4Cascade, RotorLayout

    count = int(parameters["CA_ROTOR_COUNT"])
    motors = [parameters[f"PWM_MAIN_FUNC{k + 1}"] for k in range(count)]
    assert motors == [101.0 + k for k in range(count)]
    columns = {
        field: [parameters[f"CA_ROTOR{k}_{name}"] for k in range(count)]
        for field, name in {"px_m": "PX", "py_m": "PY", "km": "KM", "ct": "CT"}.items()
    }
    known = {name: value for name, value in parameters.items() if name in PX4_PARAMETERS}
    return Px4Cascade(RotorLayout(**columns), parameters=known)


def multiply(a, b):
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return np.array(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ]
    )


def rotate(q, v):
    """Body FLU to world ENU."""
    w, a, b, c = q.tolist()
    x, y, z = v
    tx, ty, tz = 2.0 * (b * z - c * y), 2.0 * (c * x - a * z), 2.0 * (a * y - b * x)
    return np.array(
        [x + w * tx + b * tz - c * ty, y + w * ty + c * tx - a * tz, z + w * tz + a * ty - b * tx]
    )


class Estimator:
    """State in the local frame, ENU and FLU, from what the simulator sends."""

    def __init__(self):
        self.estimate = Estimate.zeros(1)
        self.origin = None
        self.has_heading = False

    def imu(self, m):
        """Take a HIL_SENSOR."""
        row = self.estimate.drones
        q, position, velocity = (
            row.orientation_wxyz[0],
            row.position_enu_m[0],
            row.velocity_enu_m_s[0],
        )
        if not self.has_heading and m.fields_updated & 0x1C0:
            # Level on the ground: the field's horizontal part gives the heading from north.
            heading = DECLINATION_RAD - np.arctan2(m.ymag, m.xmag)
            yaw = np.pi / 2.0 - heading
            q[:] = np.cos(yaw / 2.0), 0.0, 0.0, np.sin(yaw / 2.0)
            self.has_heading = True
        omega = np.array([m.xgyro, -m.ygyro, -m.zgyro])
        turn = multiply(q, np.array([1.0, *(0.5 * DT_S * omega)]))
        q[:] = turn / np.linalg.norm(turn)
        force = rotate(q, (m.xacc, -m.yacc, -m.zacc))
        acceleration = force - [0.0, 0.0, GRAVITY_M_S2]
        velocity += DT_S * acceleration
        position += DT_S * velocity
        row.omega_body_rad_s[0] = omega
        row.acceleration_enu_m_s2[0] = acceleration

    def fix(self, m):
        """Take a HIL_GPS."""
        place = np.array([m.lon * 1e-7, m.lat * 1e-7, m.alt * 1e-3])
        if self.origin is None:
            self.origin = place
        east, north, up = place - self.origin
        scale = np.deg2rad(EARTH_RADIUS_M)
        local = np.array([east * scale * np.cos(np.deg2rad(self.origin[1])), north * scale, up])
        speed = np.array([m.ve, m.vn, -m.vd]) / 100.0
        row = self.estimate.drones
        row.position_enu_m[0] += FIX_GAIN_POSITION * (local - row.position_enu_m[0])
        row.velocity_enu_m_s[0] += FIX_GAIN_VELOCITY * (speed - row.velocity_enu_m_s[0])


class Peer:
    def __init__(self, instance, root, behaviour):
        self.behaviour, _, at = behaviour.partition(":")
        self.at = int(at or 0)
        self.instance = instance
        self.parameters = read_airframe(root)
        self.n_rotors = int(self.parameters["CA_ROTOR_COUNT"])
        self.system = int(self.parameters.get("MAV_SYS_ID", instance + 1))
        self.cascade = None  # slow to import: only when there is something to fly to
        for name in self.parameters:
            if name.startswith("NO_SUCH"):
                print(f"ERROR [param] Parameter {name} not found.", flush=True)
        if self.behaviour == "no_dds":
            print("ERROR [param] Parameter UXRCE_DDS_SYNCT not found.", flush=True)
        self.setpoint = DroneSetpoints.unset(1)
        self.command = MotorCommands.zeros(1, self.n_rotors)
        self.estimator = Estimator()
        self.armed = self.offboard = self.guided = False
        self.frames, self.time_us, self.armed_us = 0, 0, 0
        self.api = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.api.bind(("127.0.0.1", 14580 + instance))
        self.api.setblocking(False)
        self.to_api = mavlink.MAVLink(None, srcSystem=self.system, srcComponent=1)
        self.from_api = mavlink.MAVLink(None)

    def run(self):
        link = socket.create_connection(("127.0.0.1", 4560 + self.instance))
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        parser = mavlink.MAVLink(None, srcSystem=self.instance + 1, srcComponent=1)
        hello = mavlink.MAVLink_heartbeat_message(2, 12, 1, 0, 0, 3)
        link.sendall(hello.pack(parser))
        while data := link.recv(4096):
            for message in parser.parse_buffer(data) or ():
                if message.get_type() == "HIL_GPS":
                    self.estimator.fix(message)
                elif message.get_type() == "HIL_SENSOR":
                    answer = self.frame(message)
                    if answer is not None:
                        link.sendall(answer.pack(parser))

    def frame(self, message):
        """One control period: the answer to a HIL_SENSOR."""
        assert self.time_us in (0, message.time_usec - 4000), "frames are 4 ms apart"
        self.frames += 1
        self.time_us = message.time_usec
        self.estimator.imu(message)
        self.listen()
        self.misbehave()
        if self.armed and self.time_us == self.armed_us + 1_000_000:
            print("INFO armed for a second", flush=True)
        if self.guided:
            self.cascade = self.cascade or build_cascade(self.parameters)
            self.setpoint.armed[:] = self.armed
            self.cascade.step(0.0, self.setpoint, self.estimator.estimate, self.command)
        if self.frames % 10 == 0:
            self.report()
        if self.frames < 12:  # PX4's outputs take a while to come up
            return None
        controls = np.round(self.command.throttle[0], 3).tolist() + [0.0] * (16 - self.n_rotors)
        return mavlink.MAVLink_hil_actuator_controls_message(
            self.time_us, controls, 1 | (128 if self.armed else 0), 1
        )

    def misbehave(self):
        if not self.at or self.frames != self.at:
            return
        if self.behaviour == "die":
            print("ERROR [scripted] stack smashed", flush=True)
            os._exit(3)
        if self.behaviour == "hang":
            time.sleep(3600)
        if self.behaviour == "disarm":
            self.armed = False
            self.say("Critical battery, shutting down")
        if self.behaviour == "hold":
            self.offboard = False
            self.say("Failsafe activated: switching to Hold")

    def say(self, text):
        self.send(mavlink.MAVLink_statustext_message(2, text.encode()))

    def listen(self):
        while True:
            try:
                data = self.api.recv(65535)
            except BlockingIOError:
                return
            for message in self.from_api.parse_buffer(data) or ():
                if message.get_type() == "SET_POSITION_TARGET_LOCAL_NED":
                    self.guide(message)
                elif message.get_type() == "SET_GPS_GLOBAL_ORIGIN":
                    place = np.array([message.longitude, message.latitude]) * 1e-7
                    self.estimator.origin = np.array([*place, message.altitude * 1e-3])
                elif message.get_type() == "COMMAND_LONG":
                    self.obey(message)

    def guide(self, m):
        assert (m.target_system, m.coordinate_frame) == (self.system, 1)
        values = np.array(
            [
                m.y,
                m.x,
                -m.z,
                m.vy,
                m.vx,
                -m.vz,
                m.afy,
                m.afx,
                -m.afz,
                np.pi / 2 - m.yaw,
                -m.yaw_rate,
            ]
        )
        ignored = [2, 1, 4, 16, 8, 32, 128, 64, 256, 1024, 2048]
        values[[bool(m.type_mask & bit) for bit in ignored]] = np.nan
        self.setpoint.data[0, :11] = values
        self.guided = True

    def obey(self, m):
        accepted = m.target_system == self.system
        if m.command == 176:
            accepted &= self.guided and (m.param1, m.param2) == (1.0, 6.0)
            self.offboard |= accepted
        elif m.command == 400:
            wanted = m.param1 == 1.0
            if wanted and self.behaviour == "refuse":
                self.say("Preflight Fail: Compass needs calibration")
                accepted = False
            accepted &= self.offboard or not wanted
            if accepted and wanted and not self.armed:
                print("INFO armed", flush=True)
                self.armed_us = self.time_us
            self.armed = wanted if accepted else self.armed
        self.send(mavlink.MAVLink_command_ack_message(m.command, 0 if accepted else 1))

    def report(self):
        row = self.estimator.estimate.drones
        x, y, z = row.position_enu_m[0].tolist()
        vx, vy, vz = row.velocity_enu_m_s[0].tolist()
        if self.estimator.origin is not None and self.behaviour != "lost":
            self.send(
                mavlink.MAVLink_local_position_ned_message(
                    self.time_us // 1000, y, x, -z, vy, vx, -vz
                )
            )
        landed = self.cascade is None or bool(self.cascade.landed[0])
        self.send(mavlink.MAVLink_extended_sys_state_message(0, 1 if landed else 2))
        mode = 1 | (128 if self.armed else 0)
        main_mode = 6 if self.offboard else 4
        self.send(mavlink.MAVLink_heartbeat_message(2, 12, mode, main_mode << 16, 4, 3))

    def send(self, message):
        self.api.sendto(message.pack(self.to_api), ("127.0.0.1", 14540 + self.instance))


def main(arguments):
    options = dict(zip(arguments[1::2], arguments[2::2], strict=True))
    assert arguments[0] == "-d" and options["-s"] == "etc/init.d-posix/rcS"
    behaviour = os.environ.get("MUSLS_PEER", "")
    if behaviour == "exit":
        print("ERROR [init] no airframe for you", flush=True)
        return 7
    if behaviour == "deaf":
        time.sleep(3600)
    dds = [os.environ.get(f"PX4_UXRCE_DDS_{name}", "-") for name in ("NS", "PORT")]
    print("INFO instance", options["-i"], "dds", *dds, flush=True)
    Peer(int(options["-i"]), Path(options["-w"]), behaviour).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
