"""Systems, formations and missions as people get them wrong, with the line that each gives.

A line that is read here should tell a user which key is at fault, and what would do.
"""

from __future__ import annotations

import warnings

import pytest

from musls_bringup.catalogue.shipped import SCENARIOS
from musls_description.config.errors import ConfigError
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.session import Session

PROPOSES = "; `musls formation` proposes places that fit"
FORCED = "; --force flies anyway"
OUTSIDE = (
    "the load's centre of mass is not between its cable_attachments_m, so that no formation holds "
    "it level"
)
SQUARE = [[0.3, 0.3, 0.05], [-0.3, 0.3, 0.05], [-0.3, -0.3, 0.05], [0.3, -0.3, 0.05]]
PLACES = [[1.0, 0.8, 1.9], [-1.0, 0.8, 1.9], [-1.0, -0.8, 1.9], [1.0, -0.8, 1.9]]
ASIDE = [[0.1, 0.2, 0.05], [0.3, 0.2, 0.05], [0.3, -0.2, 0.05]]
ENDS = [[0.5, 0.1, 0.05], [-0.5, 0.1, 0.05]]
PLANK = [[0.5, 0.1, 0.05], [-0.5, 0.1, 0.05], [-0.5, -0.1, 0.05], [0.5, -0.1, 0.05]]


def row(count, step_m):
    """Attachments along a beam."""
    return [[round(step_m * (i - (count - 1) / 2), 3), 0.0, 0.05] for i in range(count)]


def own(points_m, *, mass_kg=1.2, length_m=2.0, size_m=(0.6, 0.6, 0.1), **keys):
    """A scenario of a box on ropes below x500s, in the air."""
    return {
        "name": "own",
        "start": "air",
        "system": {
            "name": "own",
            "load": {
                "mass_kg": mass_kg,
                "shape": {"kind": "box", "size_m": list(size_m)},
                "cable_attachments_m": points_m,
            },
            "drones": {"from": "x500"},
            "cables": {"mass_kg": 0.02, "radius_m": 0.002, "links": 4, "length_m": length_m},
        },
        "mission": {"stages": [{"kind": "hold", "position_m": [0, 0, 2], "duration_s": 1}]},
        **keys,
    }


def places(first_m):
    """Places over the square whose first is another one."""
    return f"formation.places_m={[first_m, *PLACES[1:]]}"


WRONG = [
    pytest.param(
        "hold",
        ["formation.radius_m=3.0"],
        (
            "formation.radius_m = 3: cables do not reach: drone_1 would be 2.95 m from its "
            "attachment on the load, its cable has 2.42 m; choose a smaller radius, or longer"
            " cables" + PROPOSES
        ),
        id="radius beyond the cables",
    ),
    pytest.param(
        "hold",
        ["formation.radius_m=0"],
        (
            "formation.radius_m = 0: the rotor discs of drone_1 and drone_2 overlap, 0.00 m "
            "from centre to centre" + PROPOSES + FORCED
        ),
        id="three drones in one place",
    ),
    pytest.param(
        "hold",
        ["formation.radius_m=0.3", "formation.height_m=2.5"],
        (
            "formation.radius_m = 0.3, formation.height_m = 2.5: the rotor discs of drone_1 "
            "and drone_2 overlap, 0.52 m from centre to centre" + PROPOSES + FORCED
        ),
        id="rotor discs overlap",
    ),
    pytest.param(
        "hold",
        ["formation.height_m=1.0"],
        (
            "formation.height_m = 1: the load would hang 1.29 m below its set-point; about "
            "2.29 fits these cables"
        ),
        id="height too low",
    ),
    pytest.param(
        "hold",
        ["formation.height_m=1.6", "formation.radius_m=1.0"],
        (
            "formation.height_m = 1.6: the load would hang 0.69 m below its set-point; about "
            "2.29 fits these cables"
        ),
        id="load below its set-point",
    ),
    pytest.param(
        "hold",
        ["formation.places_m=[[1,0,-1],[-0.5,0.87,-1],[-0.5,-0.87,-1]]"],
        (
            "formation.places_m: the load would hang 3.29 m below its set-point; move all of "
            "them 3.29 m up"
        ),
        id="drones below the load",
    ),
    pytest.param(
        "hold",
        ["system.load.mass_kg=8"],
        (
            "the rotors cannot lift the load: thrust margin 0.63 (drone_2; "
            "at least 1.1 is needed); --force flies anyway"
        ),
        id="load too heavy",
    ),
    pytest.param(
        "hold",
        ["system.load.mass_kg=1.4", "physics.gravity_m_s2=30"],
        (
            "the rotors cannot lift the load: thrust margin 0.42 (drone_2; "
            "at least 1.1 is needed) at gravity 30 m/s2; --force flies anyway"
        ),
        id="load too heavy on another planet",
    ),
    pytest.param(
        "hold",
        ["formation.places_m=[[1,0,2],[-1,0,2]]"],
        ("formation.places_m has 2 places for 3 drones"),
        id="two places for three drones",
    ),
    pytest.param(
        "hold",
        ["system=x500_trio_unequal", "formation.radius_m=1.0", "formation.height_m=2.3"],
        (
            "formation: the load will hang tilted by 25 deg; `musls formation` proposes "
            "places that hold it level, if there are any"
        ),
        id="places that tilt the load",
    ),
    pytest.param(
        own(SQUARE),
        [places([1.0, 0.8, 1.96])],
        (
            "formation: the load will hang turned by -6.1 deg from the yaw of its set-point; "
            "turn formation.places_m back by it"
        ),
        id="one place too high",
    ),
    pytest.param(
        "circle",
        ["system.cables.length_m=0.05"],
        (
            "cable 1 of 0.05 m does not reach from the load to its drone where both stand on "
            "the ground: its ends are 0.08 m and 0.24 m high; choose a longer cable, lower "
            "attachments or a start in the air"
        ),
        id="cables too short for the ground",
    ),
    pytest.param(
        "hold",
        ["system.cables.length_m=0.2"],
        (
            "formation: no places side by side were found for 3 rotor discs of 0.84 m, 0.2 m "
            "apart, above these attachments on cables of 0.2 m" + FORCED
        ),
        id="cables too short for the rotors",
    ),
    pytest.param(
        "hold",
        ["system.cables.0.length_m=1.0", "formation.radius_m=1.0", "formation.height_m=2.3"],
        (
            "the rotors cannot lift the load: thrust margin 0.83 (drone_1; "
            "at least 1.1 is needed); --force flies anyway"
        ),
        id="one cable short",
    ),
    pytest.param(
        own(ASIDE),
        [],
        ("formation: " + OUTSIDE + FORCED),
        id="centre of mass outside of the attachments",
    ),
    pytest.param(
        own(ASIDE),
        ["formation.radius_m=1.0"],
        ("formation.radius_m = 1: the load would hang tilted by 85 deg; " + OUTSIDE + FORCED),
        id="centre of mass outside, radius given",
    ),
    pytest.param(
        own(row(6, 0.4), mass_kg=3.0, length_m=0.3, size_m=(2.4, 0.1, 0.1)),
        [],
        (
            "formation: no places side by side were found for 6 rotor discs of 0.84 m, 0.2 m "
            "apart, above these attachments on cables of 0.3 m"
        ),
        id="no room for six discs",
    ),
    pytest.param(
        "hold",
        ["formation.first_azimuth_rad=0.3"],
        (
            "formation: the load will hang turned by 17.2 deg from the yaw of its set-point; "
            "formation.first_azimuth_rad = 0.000 fits its attachments"
        ),
        id="formation turned by 17 degrees",
    ),
    pytest.param(
        "hold",
        ["formation.first_azimuth_rad=1.5"],
        (
            "formation: the load will hang turned by 85.9 deg from the yaw of its set-point; "
            "formation.first_azimuth_rad = 0.000 fits its attachments"
        ),
        id="formation turned by 86 degrees",
    ),
    pytest.param(
        own(SQUARE),
        ["formation.places_m=[[1.2,0.3,1.9],[-0.3,1.2,1.9],[-1.2,-0.3,1.9],[0.3,-1.2,1.9]]"],
        (
            "formation: the load will hang turned by -31.0 deg from the yaw of its set-point;"
            " turn formation.places_m back by it"
        ),
        id="places turned",
    ),
    pytest.param(
        own(PLANK),
        [
            "system.cables.twist=locked",
            "formation.places_m=[[1,0.7,1.86],[-1,0.7,1.86],[-1,-0.7,1.86],[1,-0.7,1.86]]",
        ],
        (
            "system.cables.0.twist = locked: the cable turns drone_1 by 19.7 deg from the yaw"
            " of its set-point; with system.cables.twist = free it looks where it is to"
        ),
        id="cables that turn the drones",
    ),
    pytest.param(
        "circle",
        ["mission.rise_m=3.0"],
        (
            "mission.rise_m = 3: the cable of drone_1 (2.42 m) is taut 0.905 m above its "
            "place on the ground; the drones form up with slack cables"
        ),
        id="rise beyond the cables",
    ),
    pytest.param(
        "circle",
        ["mission.slack_height_m=0.5"],
        (
            "mission.slack_height_m = 0.5: cable_1 is taut before the load is to be lifted; "
            "choose a lower one"
        ),
        id="taut before the lift",
    ),
    pytest.param(
        "hold",
        [
            "mission.stages.0.position_m=[0,0,0.2]",
            "formation.radius_m=1.0",
            "formation.height_m=2.1",
        ],
        (
            "mission.stages.0: the load would touch the ground: lowest set-point 0.2 m, and "
            "it hangs 0.19 m lower than its set-point in this formation; raise the stage or "
            "formation.height_m"
        ),
        id="load drags over the ground",
    ),
    pytest.param(
        "hold",
        ["mission.stages.0.duration_s=1e6"],
        ("mission.stages.0: lasts 1e+06 s, at most 86400 s (a day) are possible"),
        id="stage without end",
    ),
    pytest.param(
        "hold",
        ["mission.stages.0.position_m=[20000,0,1]"],
        (
            "mission.stages.0: the set-point goes 20000 m away from the origin, at most 10000"
            " m are possible (the world is flat)"
        ),
        id="stage far away",
    ),
    pytest.param(
        "hold",
        ["mission.stages.0.duration_s=7200"],
        (
            "a long flight: about 120 min of simulated time, and a bag of about 1.2 GB "
            "(recording.rate_hz and recording.shape_rate_hz make it smaller)"
        ),
        id="long flight",
    ),
    pytest.param(
        "hold",
        ["system.cables.joint.stiffness_n_m_rad=0.1"],
        (
            "start.kind = air: hanging chains are solved for free joints, and "
            "system.cables.joint.stiffness_n_m_rad is not 0; start on the ground"
        ),
        id="stiff cables in the air",
    ),
    pytest.param(
        "hold",
        ["system.load.point_mass=true"],
        (
            "--set system.load.point_mass=true: system.load: give one of shape (box, "
            "cylinder, rod or plate), inertia_kg_m2 and point_mass: true"
        ),
        id="point mass on rigid links",
    ),
    pytest.param(
        own(ENDS),
        [],
        (
            "formation: the load will hang tilted by 63 deg; `musls formation` proposes places "
            "that hold it level, if there are any"
        ),
        id="two cables beside the centre of mass",
    ),
    pytest.param(
        own([[0.2, 0.0, 0.05]]),
        [],
        (
            "the rotors cannot lift the load: thrust margin 1.06 (drone_1; "
            "at least 1.1 is needed); --force flies anyway"
        ),
        id="one cable beside the centre of mass",
    ),
    pytest.param(
        "winch_delivery",
        ["cable_model=rigid_links"],
        ("cable_model = rigid_links: system winch_drone has winches; choose cable_model: elastic"),
        id="winch on rigid links",
    ),
    pytest.param(
        "gravity_rig",
        ["mission={stages: [{kind: hold}]}"],
        (
            "mission: system gravity_rig has no drones that could fly it; choose "
            "mission: {duration_s: ...}"
        ),
        id="mission for a rig",
    ),
    pytest.param(
        "hold",
        ["start.kind=equilibrium"],
        (
            "start.kind = equilibrium: it is of cable_model = elastic, must be ground, air or"
            " state with rigid_links"
        ),
        id="equilibrium of rigid links",
    ),
    pytest.param(
        "circle",
        ["mission={duration_s: 3}"],
        ("start.kind = ground: mission.duration_s needs start.kind: state or equilibrium"),
        id="no mission, start on the ground",
    ),
    pytest.param(
        "circle",
        ["cable_model=elastic", "system.cables.mass_kg=0.0001"],
        (
            "a slow flight: the 15 segments of cable_1, 6.7e-06 kg each, take tiny steps as "
            "long as they are slack; system.cables.links = 5 is fast, so is cable_model = "
            "massless"
        ),
        id="light segments",
    ),
    pytest.param(
        "hold",
        ["system.drones.mass_kg=0.2"],
        (
            "system.drones.0.mass_kg = 0.2: drone_1 alone hovers at 10.5 % of its throttle, "
            "below 12 %, PX4's least thrust: more weight is needed, weaker rotors or lower "
            "autopilot.parameters.MPC_THR_MIN and MPC_THR_HOVER"
        ),
        id="drone too light for its autopilot",
    ),
    pytest.param(
        "hold",
        ["physics.gravity_m_s2=0.5"],
        (
            "physics.gravity_m_s2 = 0.5: drone_1 alone hovers at 3.02 % of its throttle, "
            "below 12 %, PX4's least thrust: more weight is needed, weaker rotors or lower "
            "autopilot.parameters.MPC_THR_MIN and MPC_THR_HOVER"
        ),
        id="too little gravity for the autopilot",
    ),
    pytest.param(
        "circle",
        ["system.cables.length_m=0.4"],
        (
            "formation: no places side by side were found for 3 rotor discs of 0.84 m, 0.2 m "
            "apart, above these attachments on cables of 0.4 m" + FORCED
        ),
        id="drones lie on the load",
    ),
    pytest.param(
        own(row(2, 1.0), mass_kg=6.0, size_m=(1.2, 0.1, 0.1)),
        [],
        (
            "the rotors cannot lift the load: thrust margin 0.67 (drone_1; "
            "at least 1.1 is needed); --force flies anyway"
        ),
        id="load heavier than all at the ends of a bar",
    ),
    pytest.param(
        own([[0.05, 0.0, 0.05], [-0.05, 0.0, 0.05]], size_m=(0.2, 0.2, 0.1)),
        ["formation.places_m=[[1.95,0,0.35],[-1.95,0,0.35]]"],
        (
            "formation.places_m: the cables would pull at each other, with 38.3 N in all for "
            "a load of 12.2 N; drone_1 has a thrust margin of 1.07" + PROPOSES + FORCED
        ),
        id="cables pull at each other",
    ),
    pytest.param(
        own(SQUARE),
        ["formation.places_m=[[0.8,0.6,2.9],[-0.8,0.6,1.2],[-0.8,-0.6,1.2],[0.8,-0.6,2.9]]"],
        ("formation.places_m: the load would hang tilted by 79 deg" + PROPOSES + FORCED),
        id="steep load",
    ),
    pytest.param(
        own(SQUARE),
        [places([0.9, 0.8, 1.6])],
        (
            "formation: the load will hang turned by 6.1 deg from the yaw of its set-point; "
            "turn formation.places_m back by it"
        ),
        id="zero weight on a side",
    ),
    pytest.param(
        "winch_delivery",
        ["formation.height_m=3.0"],
        (
            "formation.height_m = 3: the load would hang 1.95 m above its set-point; about "
            "1.05 fits these cables"
        ),
        id="controller for a winch",
    ),
]


@pytest.mark.parametrize(("scenario", "overrides", "line"), WRONG)
def test_the_line_of_a_wrong_system(scenario, overrides, line):
    source = SCENARIOS / f"{scenario}.yaml" if isinstance(scenario, str) else scenario
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            with Session(load_scenario(source, overrides)):
                said = " | ".join(str(warning.message) for warning in warned)
        except ConfigError as error:
            said = str(error)
    assert said.partition("hold.yaml ")[2] == line if "hold.yaml" in said else said == line
