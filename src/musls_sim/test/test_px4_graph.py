"""PX4s that somebody else commands, with the scripted peer and a program in the agent's place."""

import os
import signal
import socket
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from px4_helpers import HOP, SHIPPED, children_of, install_agent, install_peer

from musls_control.px4.offboard import target_system
from musls_sim.px4 import sitl
from musls_sim.px4.build import GraphSession
from musls_sim.px4.install import Px4Error
from musls_sim.px4.process import VARIABLE, XrceAgent, claim_instances, find_agent
from musls_sim.scenario.scenario import load_scenario


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The stand-ins for PX4 and agent."""
    monkeypatch.setenv("PX4_BIN", str(install_peer(tmp_path / "px4")))
    monkeypatch.setenv(VARIABLE, str(install_agent(tmp_path)))
    monkeypatch.setattr(sitl, "ALIGN_S", 1.5)  # the peer needs less than PX4
    monkeypatch.setattr(sitl, "OFFSET_S", 0.5)


@contextmanager
def vehicles(tmp_path, name="solo"):
    with GraphSession(load_scenario(SHIPPED / f"{name}.yaml", HOP), tmp_path / "logs") as flown:
        yield flown


def test_up_and_standing_with_px4s_clock_and_nothing_left(tmp_path, installed):
    before = children_of(os.getpid())
    with vehicles(tmp_path, "duo") as flown:
        assert len(children_of(os.getpid())) == len(before) + 3  # two PX4s and the agent
        start = flown.plant.state.position_enu_m.copy()
        flown.advance(100)
        assert flown.tick == 100
        assert flown.graph_time_s == pytest.approx(flown.px4s.clock_s, abs=1e-6)
        assert np.abs(flown.plant.state.position_enu_m - start).max() < 0.02
        assert not flown.px4s.armed.any()
        # Told to begin there to 1 cm; 20 fixes of 2 and 3 cm noise, smoothed, say the rest.
        assert (flown.px4s.origin_error_m < 0.06).all() and (flown.px4s.origin_error_m > 0.0).all()
        port = flown.px4s.agent.port
    assert children_of(os.getpid()) == before
    logs = [(tmp_path / "logs" / f"drone_{i}.log").read_text() for i in (1, 2)]
    assert f"dds px4_1 {port}" in logs[0] and f"dds px4_2 {port}" in logs[1]
    assert f"running on {port}" in (tmp_path / "logs" / "agent.log").read_text()


def test_drones_keep_their_names_on_other_instances_and_fly_where_others_say(tmp_path, installed):
    """Instance 1 is taken: the drone is px4_1 and system 2 on its graph all the same."""
    blocked = claim_instances(1)
    try:
        with vehicles(tmp_path) as flown:
            (vehicle,) = flown.px4s._vehicles
            assert vehicle._instance.number > 1
            flown.advance(250)
            assert not flown.px4s.armed.any()  # nobody has asked
            nan = np.full(3, np.nan)
            ground = flown.plant.state.position_enu_m[1, 2]
            for k in range(1000):
                time_ms = round(flown.graph_time_s * 1e3)
                vehicle.commands.send_setpoint(time_ms, np.array([0, 0, -1.0]), nan, nan, 1.5, 0.0)
                if k % 50 == 0:
                    vehicle.commands.ask_offboard()
                    vehicle.commands.ask_arm()
                flown.advance(1)
            assert vehicle.commands._system == target_system(1) == 2
            assert flown.px4s.armed.all()
            assert flown.plant.state.position_enu_m[1, 2] > ground + 0.2
    finally:
        for instance in blocked:
            instance.close()


def test_a_dead_agent_ends_the_flight_with_its_words(tmp_path, installed):
    with vehicles(tmp_path) as flown:
        os.kill(flown.px4s.agent._process.pid, signal.SIGTERM)
        flown.px4s.agent._process.wait(10)
        with pytest.raises(Px4Error, match=r"MicroXRCEAgent was ended by SIGTERM: running on"):
            flown.advance(5)


def test_a_px4_without_the_client_is_named(tmp_path, installed, monkeypatch):
    monkeypatch.setenv("MUSLS_PEER", "no_dds")
    before = children_of(os.getpid())
    with (
        pytest.raises(Px4Error, match=r"drone_1: .* has no uxrce_dds_client"),
        vehicles(tmp_path),
    ):
        pass
    assert children_of(os.getpid()) == before


def test_the_agent_takes_a_free_port_and_ends(tmp_path):
    program = install_agent(tmp_path)
    first, second = (XrceAgent(program, tmp_path / f"{k}.log") for k in (1, 2))
    try:
        end = time.monotonic() + 20.0
        while not all("running" in (tmp_path / f"{k}.log").read_text() for k in (1, 2)):
            assert time.monotonic() < end
            time.sleep(0.02)
        assert first.port != second.port
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, pytest.raises(OSError):
            probe.bind(("127.0.0.1", first.port))
    finally:
        first.close()
        second.close()
    assert not Path(f"/proc/{first._process.pid}").exists()
    first.close()  # once more does no harm


def test_without_an_agent_it_says_how_to_get_one(tmp_path):
    with pytest.raises(Px4Error, match=r"no MicroXRCEAgent found .*Micro-XRCE-DDS-Agent"):
        find_agent({"PATH": str(tmp_path)})
    with pytest.raises(Px4Error, match=rf"{VARIABLE} = .*missing: no such program"):
        find_agent({VARIABLE: str(tmp_path / "missing")})
    program = install_agent(tmp_path)
    assert find_agent({"PATH": str(tmp_path)}) == find_agent({VARIABLE: str(program)}) == program
