"""The engine `physics.engine: gazebo`: flights on a Gazebo server against `engine: dart`.

Both integrate with DART, Gazebo's 6.12 by way of its DART plugin, which reports poses only when
they moved by 1e-6: the controllers see that.
"""

from __future__ import annotations

import importlib
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from musls_description.config.errors import ConfigError
from musls_description.hanging.tree import build_tree
from musls_description.numerics.rotations import matrix
from musls_sim.plants import gazebo as server
from musls_sim.plants.interface import PlantInputs, PrescribedMotion
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session

SHIPPED = Path(__file__).parents[2] / "musls_bringup" / "musls_bringup" / "scenarios"


def _missing() -> bool:
    try:
        server.bindings()
    except ConfigError:
        return True
    return False


gazebo = pytest.mark.skipif(_missing(), reason="Gazebo Harmonic's Python bindings are missing")


def _session(name: str, engine: str, *settings: str) -> Session:
    return Session(
        load_scenario(
            SHIPPED / f"{name}.yaml",
            [f"physics.engine={engine}", "physics.step_size_s=0.004", *settings],
        )
    )


def _flown(name: str, engine: str, periods: int, *settings: str) -> dict[str, np.ndarray]:
    with _session(name, engine, *settings) as session:
        rows: dict[str, list[np.ndarray]] = {"position": [], "velocity": [], "tension": []}
        for _ in range(periods):
            session.advance(1)
            state = session.state
            rows["position"].append(state.position_enu_m.copy())
            rows["velocity"].append(state.velocity_enu_m_s.copy())
            rows["tension"].append(state.tension_n.copy())
        rows["nodes"] = [session.plant.cable_nodes_enu_m(i) for i in range(len(state.tension_n))]
    return {key: np.array(value) for key, value in rows.items()}


@pytest.mark.gazebo
@gazebo
def test_ctrl_c_reaches_python() -> None:
    """A Gazebo server takes SIGINT for itself: a flight would go on."""
    with _session("solo", "gazebo") as session, pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        session.advance(1)


@pytest.mark.gazebo
@gazebo
@pytest.mark.parametrize("name", ["hold", "duo"])
def test_a_flight_is_the_same_on_the_server(name: str) -> None:
    """Rotors, autopilot, drag and cables through Gazebo, 1 s from the hanging start."""
    settings = ["start=air"] if name == "duo" else []
    ours = _flown(name, "dart", 250, *settings)
    theirs = _flown(name, "gazebo", 250, *settings)
    assert np.ptp(ours["position"][:, 0], axis=0).max() > 1e-4  # it moves at all
    np.testing.assert_allclose(theirs["position"], ours["position"], atol=2e-5)
    np.testing.assert_allclose(theirs["velocity"], ours["velocity"], atol=1e-3)
    np.testing.assert_allclose(theirs["tension"][5:], ours["tension"][5:], atol=0.05)
    np.testing.assert_allclose(theirs["nodes"], ours["nodes"], atol=5e-5)


@pytest.mark.gazebo
@gazebo
def test_a_system_without_control_falls_alike() -> None:
    """Thrust and moments that are held: no controller evens out a difference.

    DART's step is 0.2 nm from Gazebo after 0.4 s.
    """
    held = (
        "controller={kind: open_loop, thrust_n: [24.0, 26.0, 25.0], "
        "moment_body_nm: [[0.02, 0.0, 0.0], [0.0, 0.01, 0.0], [0.0, 0.0, 0.02]]}"
    )
    ours = _flown("hold", "dart", 200, held)
    theirs = _flown("hold", "gazebo", 200, held)
    assert np.linalg.norm(np.ptp(ours["position"], axis=0), axis=-1).min() > 0.1
    np.testing.assert_allclose(theirs["position"], ours["position"], atol=5e-8)


def _sideways(session: Session) -> float:
    """Angle of the second axis of the joint below drone 1 [degrees]."""
    body = build_tree(session.plant.system).bodies[session.plant.system.cables[0].links + 1]
    assert body.name == "drone_1"
    held = session.plant.cable_end_rotations(0)[1] @ body.joint_in_parent_rotation
    turned = matrix(session.state.orientation_wxyz[1]) @ body.joint_in_child_rotation
    relative = held.T @ turned
    return float(np.degrees(np.arctan2(relative[1, 0], relative[1, 1])))


@pytest.mark.gazebo
@gazebo
def test_a_joint_stops_before_it_is_singular() -> None:
    """A drone that is rolled over meets the stop at 60 degrees and takes its cable with it."""
    rolled = (
        "controller={kind: open_loop, thrust_n: [26.0, 26.0, 26.0], "
        "moment_body_nm: [[0.2, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]}"
    )
    angles = []
    with _session("hold", "gazebo", rolled) as session:
        for _ in range(180):
            session.advance(1)
            angles.append(abs(_sideways(session)))
    assert angles[0] < 1.0
    np.testing.assert_allclose(angles[140:], 60.0, atol=0.2)  # without it 75 to 120 degrees


@pytest.mark.gazebo
@gazebo
def test_drones_on_the_ground_have_no_tension() -> None:
    """What the ground carries is not known there."""
    flown = _flown("circle", "gazebo", 10)
    assert not flown["tension"].any()
    assert flown["position"][:, 1:, 2].min() > 0.0


@pytest.mark.gazebo
@gazebo
def test_what_gazebo_cannot_do_is_refused() -> None:
    """Prescribed motion and velocities at the start."""
    with _session("hold", "gazebo") as session:
        inputs = PlantInputs.zeros(session.plant.system)
        inputs.motion = PrescribedMotion(lambda time_s: (np.zeros((3, 3)), np.zeros((3, 4))))
        with pytest.raises(ConfigError, match="along a recording"):
            session.plant.step(inputs)


def test_other_cable_models_do_not_run_on_gazebo() -> None:
    """SDF knows rigid links only."""
    with pytest.raises(ConfigError, match=r"physics\.engine = gazebo: .* cable_model = elastic"):
        _session("hold", "gazebo", "cable_model=elastic")


def test_missing_bindings_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line that says what is to be installed."""
    real = importlib.import_module

    def without_gazebo(name: str, package: str | None = None) -> Any:
        if name.startswith("gz."):
            raise ImportError(f"No module named '{name}'")
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", without_gazebo)
    with pytest.raises(ConfigError, match=r"physics\.engine = gazebo: .*gz\.sim8"):
        _session("hold", "gazebo")
