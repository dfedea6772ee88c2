"""Where the load stood and how it was turned before the engagement: what does it change?

    .venv/bin/python benchmarks/engagement_starts.py ../shared/flights --imperfections FILE

Before the engagement the load stands on the ground, and the cables lie as they fell. The recorded
cycle has one such start; the simulated load is pushed and turned on the ground, some centimetres
and degrees each way, and the engagement that follows is compared with the recorded one.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from musls_analysis.comparison.compare import CompareOptions, compare_stage
from musls_analysis.comparison.cycles import CutStage, cut
from musls_bringup.api import fly
from musls_bringup.fly import find_scenario
from musls_bringup.recorded_flights import some_cycles
from musls_description.rotations import yaw_of

PUSHES_N = [(0.0, 0.0, 0.0), (40.0, 0.0, 0.0), (-40.0, 0.0, 0.0), (0.0, 40.0, 0.0),
            (0.0, -40.0, 0.0), (0.0, 0.0, 4.0), (0.0, 0.0, -4.0)]  # fmt: skip
"""Force along x and y [N] and moment about z [N m], for a tenth of a second."""


VARIANTS = {
    "as given": [],
    "ground friction 0.2 instead of 0.8": ["system.ground_friction=0.2"],
    "ground friction 1": ["system.ground_friction=1.0"],
    "cable 2 25 mm shorter": ["system.cables.1.length_m=2.395"],
    "elastic cables that rub on the ground": ["cable_model=elastic"],
    "load stands on 12 x 12 cm, 8 cm high": ["system.load.collision.size_m=[0.12,0.12,0.08]"],
    "drop-outs of motion capture, 30 %": ["estimation={kind: mocap, dropout_fraction: 0.3}"],
    "five times the joints' damping": ["system.cables.joint.damping_n_m_s_rad=0.01"],
    "friction of the joints, 1e-3 N m": ["system.cables.joint.friction_n_m=0.001"],
    "jitter of set-points, 50 ms": ["imperfections.setpoint_jitter_s=0.05"],
}
"""What else may be behind the load's error: overrides of the scenario by name."""


def main() -> None:
    """Fly all starts, then all variants, and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("flights", type=Path)
    parser.add_argument("--imperfections", default="")
    parser.add_argument("--offset", default="-0.0285,0.0067,-0.06", help="recorded point [m]")
    options = parser.parse_args()
    real = some_cycles([options.flights])["engage"]
    how = CompareOptions(offsets_m={"load": [float(x) for x in options.offset.split(",")]})
    plain = ["system.cables.links=5"]
    if options.imperfections:
        plain.append(f"imperfections={options.imperfections}")
    print("| pushed by | stood at, turned by | load | drones |\n|---|---|---|---|")
    for x, y, z in PUSHES_N:
        poke = (
            f"{{kind: poke, when: {{time_s: 2.0}}, duration_s: 0.1, body: load, "
            f"force_enu_n: [{x}, {y}, 0], moment_enu_n_m: [0, 0, {z}]}}"
        )
        flown = cut(fly(find_scenario("engage", [*plain, f"events=[{poke}]"])), "engage")
        load, begin = flown.recording.bodies["load"], flown.cycles[0].start_s
        row = int(np.searchsorted(load.time_s, begin))
        place = 1e3 * load.position_enu_m[row, :2]
        turned = np.degrees(yaw_of(load.orientation_wxyz[row]))
        print(
            f"| {x:g}, {y:g} N, {z:g} N m | {place[0]:.0f}, {place[1]:.0f} mm, {turned:.0f} deg | "
            f"{_errors(real, flown, how)} |",
            flush=True,
        )
    print("\n| variant | load | drones |\n|---|---|---|")
    for name, overrides in VARIANTS.items():
        flown = cut(fly(find_scenario("engage", [*plain, *overrides])), "engage")
        print(f"| {name} | {_errors(real, flown, how)} |", flush=True)


def _errors(real: list[CutStage], flown: CutStage, how: CompareOptions) -> str:
    """Cells of a table: load, drones."""
    errors = compare_stage("engage", real, [flown], how).errors
    drones = [f"{1e3 * e.translational_error_m:.0f}" for b, e in errors.items() if b != "load"]
    its = errors["load"]
    return (
        f"{1e3 * its.translational_error_m:.1f} mm, {its.geodesic_error_deg:.1f} deg | "
        f"{', '.join(drones)} mm"
    )


if __name__ == "__main__":
    main()
