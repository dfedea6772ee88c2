"""Drones flown by the PIDs of 002, with rotors, motion capture and cables."""

from pathlib import Path

import numpy as np
import pytest

from musls_description.config.errors import ConfigError
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session

SHIPPED = Path(__file__).parents[2] / "musls_bringup" / "musls_bringup" / "scenarios"
HOLD = "mission.stages=[{kind: hold, duration_s: 9, position_m: [0, 0, 1]}]"


def scenario(name, *overrides):
    return load_scenario(SHIPPED / f"{name}.yaml", ["start.kind=air", "controller=pid", *overrides])


def places_missed(session, chosen):
    """Distance of each drone to its place in the formation, (n,) [m]."""
    n, reference = session.plant.system.n_drones, session.reference
    places, _ = chosen.formation.poses(reference.position_enu_m, reference.yaw_rad, n)
    return np.linalg.norm(session.state.position_enu_m[1:] - places, axis=1)


@pytest.mark.parametrize("name", ["solo", "hold"])
def test_drones_keep_their_places(name):
    chosen = scenario(name, HOLD, "cable_model=massless")
    with Session(chosen) as session:
        session.advance(round(6.0 / session.plant.period_s))
        assert places_missed(session, chosen).max() < 0.05
        assert session.state.tension_n.min() > 0.0


@pytest.mark.slow
def test_drones_follow_a_circle_that_turns_the_formation():
    """The velocity jumps at the start, and the pull of the cables turns with the formation."""
    chosen = scenario("circle", "system.cables.links=3")
    missed = []
    with Session(chosen) as session:
        for _ in range(12):
            session.advance(round(1.0 / session.plant.period_s))
            missed.append(places_missed(session, chosen).max())
    assert max(missed[2:]) < 0.12


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("height: [2.0, 9.0, 1.0]", r"controller.*height = \[2\.0, 9\.0, 1\.0\] is unstable"),
        ("yaw: [-1.0, 0.0, 1.0]", r"controller\.yaw\.0 = -1\.0"),
        ("roll: [1.0, 0.0]", r"controller\.roll"),
        ("largest_tilt_rad: 2.0", r"controller\.largest_tilt_rad = 2\.0"),
        ("heihgt: [1, 0, 1]", r"controller\.heihgt.*height"),
    ],
)
def test_bad_gains_are_named_in_one_line(keys, message):
    with pytest.raises(ConfigError, match=message) as error:
        scenario("hold", f"controller={{kind: pid, {keys}}}")
    assert "\n" not in str(error.value)
