"""A controller that asks for the load's acceleration; the rest of the chain is ours."""

from pathlib import Path

import numpy as np
import pytest

import musls
from musls_analysis.comparison.summary import facts, summarise
from musls_description.config.schema import to_data

EXAMPLE = Path(__file__).parents[3] / "examples" / "lqr_controller.py"
HOLD = {
    "system": "x500_trio",
    "cable_model": "rigid_links",
    "start": "air",
    "mission": {"stages": [{"kind": "hold", "position_m": [0, 0, 1.5], "duration_s": 4.0}]},
}


class Push(musls.Controller):
    """Asks for one acceleration all the time, and perhaps a yaw."""

    level = "load_acceleration"

    def __init__(self, *asked):
        self.asked = asked

    def step(self, time_s, reference, estimate):
        return np.array(self.asked)


def without_drag_and_noise():
    data = to_data(musls.load_scenario(HOLD, {"estimation": {"kind": "truth"}}))
    for drone in data["system"]["drones"]:
        for rotor in drone["rotors"]:
            rotor["drag_n_s2_m_rad"] = 0.0
    return data


@pytest.mark.parametrize("asked", [(0.0, 0.0, 0.0), (0.3, -0.2, 0.1), (1.0, 0.0, 0.0)])
def test_the_load_accelerates_as_asked(asked):
    run = musls.fly(without_drag_and_noise(), controller=Push(*asked))
    load = run.body("load")
    hold = next(stage for stage in run.stages if stage.name == "hold")
    late = (load.time_s > hold.start_s + 2.0) & (load.time_s < hold.start_s + 3.5)
    time_s, place = load.time_s[late], load.position_enu_m[late]
    found = 2.0 * np.polyfit(time_s - time_s[0], place, 2)[0]
    np.testing.assert_allclose(found, asked, atol=0.02)


def test_the_load_turns_as_asked():
    run = musls.fly(HOLD, controller=Push(0.0, 0.0, 0.0, 0.5))
    assert musls.rotations.yaw_of(run.body("load").orientation_wxyz[-1]) == pytest.approx(
        0.5, abs=0.05
    )


def test_the_regulator_of_the_examples_flies_ground_to_ground():
    run = musls.fly("circle", set={"controller": {"kind": "python", "source": f"{EXAMPLE}:Lqr"}})
    assert run.warnings == ()
    assert run.errors().by_body()["load"]["circle"]["translational_error_m"] < 0.15


class Stiff(musls.Controller):
    """Hardly damped."""

    level = "load_acceleration"

    def __init__(self, stiffness_1_s2):
        self.stiffness_1_s2 = stiffness_1_s2

    def step(self, time_s, reference, estimate):
        error = reference.position_enu_m - estimate.position_enu_m[0]
        return self.stiffness_1_s2 * error - 2.4 * estimate.velocity_enu_m_s[0]


def test_a_controller_that_oscillates_is_told_so():
    still, swinging = (
        musls.fly(HOLD, controller=Stiff(k), set={"mission.stages.0.duration_s": 20.0})
        for k in (2.0, 5.5)
    )
    assert summarise(still)["oscillations"] == []
    (found,) = summarise(swinging)["oscillations"]
    assert found["stage"] == "hold" and found["frequency_hz"] == pytest.approx(0.4, abs=0.1)
    load = swinging.body("load")
    ways_m = load.position_enu_m[load.time_s > load.time_s[-1] - 6.0, :2]
    assert found["amplitude_m"] < np.ptp(ways_m, axis=0).max() < 4.0 * found["amplitude_m"]
    told = dict(facts(summarise(swinging)))["the load oscillates in hold"]
    assert "Hz" in told


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ((0.0, 0.0), r"Push.step at .* shape \(2,\), must be \(3,\) or \(4,\)"),
        ((0.0, np.nan, 0.0), r"Push.step at .* returned nan in column 1; must be finite"),
    ],
)
def test_mistakes_are_the_controllers(asked, told):
    with pytest.raises(musls.UserCodeError, match=told):
        musls.fly(HOLD, controller=Push(*asked))
