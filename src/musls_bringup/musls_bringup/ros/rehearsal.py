"""`musls ros rehearse`: the nodes of a real flight, one fault after another, before the hardware.

The chain is that of `real.launch.py`: truth of the plant, poses, `mocap_relay`, visual odometry,
`offboard`, `formation` with its guard. Stand-ins fly in the place of PX4s.
"""

from __future__ import annotations

import csv
import itertools
import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from musls_bringup.ros import processes
from musls_bringup.ros.launching import REAL_ARGUMENTS, real_nodes
from musls_bringup.ros.workspace import check_ros
from musls_control.guard import GuardStep
from musls_control.mission.spec import PHASES
from musls_control.real_flight import capture_faults as lies
from musls_description.config.errors import ConfigError, near_names
from musls_description.config.schema import to_yaml
from musls_description.numerics.arrays import Array
from musls_description.system.drone import tip_radius_m
from musls_sim.scenario.scenario import Scenario

if TYPE_CHECKING:
    from musls_sim.nodes.hall import Hall

# ---------- What goes wrong

WITHIN_S = 1.0
LATER_S = 2.5
"""Longest time to the guard's first word: for a wrong capture; for a link, a drone, a node."""

MOVED_M = 1.0
"""Farthest from where it hung that the load may be set down."""

DRONE = 2
"""The drone that things happen to, where there are two."""


@dataclass(frozen=True)
class Scene:
    """Simulated hall, graph of nodes and drones that a fault acts on."""

    hall: Hall
    nodes: processes.Graph
    drone: int
    other: int


Begin = Callable[[Scene], None]


@dataclass(frozen=True)
class Fault:
    """A fault of the rehearsal.

    Attributes:
        name: Name for `--faults`.
        what: Description in words; {drone} and {other} stand for drones.
        begin: Brings it about.
        within_s: Longest time until the guard acts.
        lasts_s: Duration of a wrong capture.
        stays: Whether it is there before the drones are armed, and must keep them from it.
        cuts: Whether it cuts the link of a drone.
        drones: Least number of drones.
        falls: Whether the drone falls, and hits the ground for that.
        pilot: Whether a pilot lands the drone after the others.
    """

    name: str
    what: str
    begin: Begin
    within_s: float = WITHIN_S
    lasts_s: float = np.inf
    stays: bool = False
    cuts: bool = False
    drones: int = 1
    falls: bool = False
    pilot: bool = False


def _sends(make: Callable[[str, str], lies.Fault]) -> Begin:
    """The capture sends something else, made of the names of two drones."""

    def begin(scene: Scene) -> None:
        scene.hall.fault = make(f"drone_{scene.drone}", f"drone_{scene.other}")

    return begin


def _late(scene: Scene) -> None:
    scene.hall.late_s = 0.5


def _motors_stop(scene: Scene) -> None:
    scene.hall.apply_event(json.dumps({"kind": "drone_lost", "drone": scene.drone}))


def _dies(name: str) -> Begin:
    def begin(scene: Scene) -> None:
        os.kill(scene.nodes.pid(name), signal.SIGKILL)

    return begin


_UP = np.array([0.0, 0.0, 1.0])
_X = np.array([1.0, 0.0, 0.0])

FAULTS: dict[str, Fault] = {
    fault.name: fault
    for fault in (
        Fault(
            "frozen",
            "the capture repeats the last pose of {drone}",
            _sends(lambda a, b: lies.frozen(a)),
        ),
        Fault(
            "origin",
            "the capture sends the origin for {drone}",
            _sends(lambda a, b: lies.at_place(a, np.zeros(3))),
        ),
        Fault(
            "origin_2s",
            "the same for 2 s",
            _sends(lambda a, b: lies.at_place(a, np.zeros(3))),
            lasts_s=2.0,
        ),
        Fault("jump", "the capture sees {drone} 1 m off", _sends(lambda a, b: lies.jumped(a, _X))),
        Fault(
            "swapped",
            "the capture takes {drone} and {other} for each other",
            _sends(lies.swapped),
            drones=2,
        ),
        Fault(
            "turned",
            "the capture turns {drone} by 90 degrees",
            _sends(lambda a, b: lies.turned(a, np.pi / 2.0, _UP)),
        ),
        Fault(
            "turned_over",
            "the capture turns {drone} over for 1 s",
            _sends(lambda a, b: lies.turned(a, np.pi, _X)),
            lasts_s=1.0,
        ),
        Fault("unseen", "the capture does not see {drone}", _sends(lambda a, b: lies.unseen(a))),
        Fault(
            "load_frozen",
            "the capture repeats the last pose of the load",
            _sends(lambda a, b: lies.frozen("load")),
        ),
        Fault(
            "load_jump",
            "the capture sees the load 1 m off",
            _sends(lambda a, b: lies.jumped("load", _X)),
        ),
        Fault(
            "load_unseen",
            "the capture does not see the load",
            _sends(lambda a, b: lies.unseen("load")),
        ),
        Fault("late", "poses come 0.5 s late", _late),
        Fault(
            "axes",
            "y is up in the capture's world",
            _sends(lambda a, b: lies.other_axes(np.pi / 2.0 * _X)),
            stays=True,
        ),
        Fault("relay", "the relay dies", _dies("mocap_relay")),
        Fault("offboard", "the offboard node dies", _dies("offboard"), LATER_S),
        Fault(
            "link",
            "the link to {drone} is cut",
            lambda s: s.hall.cut_link(),
            LATER_S,
            cuts=True,
            drones=2,
        ),
        Fault(
            "pilot",
            "a pilot takes {drone}",
            lambda s: s.hall.as_pilot(s.drone, lands=False),
            LATER_S,
            drones=2,
            pilot=True,
        ),
        Fault("motors", "all motors of {drone} stop", _motors_stop, LATER_S, falls=True),
    )
}
"""Faults by name, in the order in which they are flown."""


def chosen_faults(names: str) -> list[Fault]:
    """Faults of a list of names with commas, or `all` (raises ConfigError)."""
    if names == "all":
        return list(FAULTS.values())
    keys = [name.strip() for name in names.split(",")]
    for name in keys:
        if name not in FAULTS:
            raise ConfigError(f"--faults {name}: {near_names(name, FAULTS)}")
    return [FAULTS[name] for name in keys]


# ---------- What came of it


@dataclass
class Row:
    """A row of the table.

    Attributes:
        fault: Name of the fault.
        what: Description in words.
        seen_by: Node or guard that reported it first, and the reason.
        within_s: Time from the fault to the guard's first word; NaN if it said nothing.
        answer_s: Time to its last word.
        farthest_m: Largest level distance of a drone from where it was when the fault began.
        load_moved_m: Largest level distance of the load from where it was then.
        misled_m: Largest distance from the truth of what an armed PX4 was sent as its place; the
            age of the pose counts.
        apart_m: Smallest distance of the rotor tips of two drones.
        outcome: Outcome of the flight.
        broken: Limits that it broke, in words; "" for none.
    """

    fault: str
    what: str
    seen_by: str = "nobody"
    within_s: float = np.nan
    answer_s: float = np.nan
    farthest_m: float = 0.0
    load_moved_m: float = 0.0
    misled_m: float = 0.0
    apart_m: float = np.inf
    outcome: str = ""
    broken: str = ""


@dataclass
class _Watch:
    """Looks at a flight from a fault on."""

    hall: Hall
    tips_m: Array
    begin_s: float = 0.0
    hung: Array = field(default_factory=lambda: np.zeros(0))
    farthest_m: float = 0.0
    load_moved_m: float = 0.0
    apart_m: float = np.inf
    _events_told: int = 0

    def begin(self) -> None:
        """The fault begins."""
        self.begin_s, self.hung = self.hall.time_s, self._places()
        self._events_told = len(self.hall.events)
        self.hall.misled_m = 0.0

    def look(self) -> None:
        """Note distances."""
        places = self._places()
        moved_m = np.linalg.norm((places - self.hung)[:, :2], axis=1)
        self.load_moved_m = max(self.load_moved_m, float(moved_m[0]))
        self.farthest_m = max(self.farthest_m, float(moved_m[1:].max()))
        for i, j in itertools.combinations(range(1, len(places)), 2):
            gap_m = float(np.linalg.norm(places[i] - places[j])) - self.tips_m[i - 1]
            self.apart_m = min(self.apart_m, gap_m - self.tips_m[j - 1])

    def told(self, kind: str) -> list[tuple[float, str]]:
        """Events of a kind since the fault: seconds after it, and their words."""
        return [
            (at_s - self.begin_s, text.partition(": ")[2])
            for at_s, text in self.hall.events[self._events_told :]
            if text.startswith(f"{kind}: ")
        ]

    def _places(self) -> Array:
        return np.array([self.hall.truth[body][0] for body in self.hall.bodies])


START_S = 600.0
"""Real time in which a flight must come to its mission; the first run compiles."""

INTO_MISSION_S = 2.0
"""Time in the mission's first stage after which the fault begins."""

LONGEST_S = 150.0
"""Simulated time after the fault for all to be down: a pause that ends is followed by the way back
after a minute."""

UNARMED_S = 10.0
"""Time for which nobody must be armed."""

_WENT_ON = GuardStep.SURVIVE
_LANDED = GuardStep.LAND
_LOWERED = GuardStep.LOWER

Say = Callable[[str], None]


def rehearse(
    scenario: Scenario,
    faults: Sequence[Fault],
    out: Path,
    say: Say = lambda text: None,
    done: Callable[[Row], None] = lambda row: None,
    *,
    domain: int,
    force: str = "",
    parameters: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> list[Row]:
    """Fly a scenario's mission with one fault after another, write the table into a folder.

    Events of the scenario are left out. The table is written after each flight.

    Args:
        scenario: Scenario that is flown.
        faults: One a flight.
        out: New folder.
        say: Told how far it is.
        done: Told each row.
        domain: ROS domain in which nobody else is.
        force: Reason to fly in spite of what speaks against it.
        parameters: Parameters of nodes, by their names, beside those of `real.launch.py`.

    Raises:
        ConfigError: The scenario cannot be flown so.
        NodeFailed: A node ended before the fault.
    """
    if scenario.autopilot.kind != "builtin":
        raise ConfigError(
            f"autopilot.kind = {scenario.autopilot.kind}: a rehearsal flies stand-ins for PX4 "
            "(builtin): a PX4 in SITL finds its place by satellites before the capture is there"
        )
    check_ros()
    scenario = replace(scenario, events=())
    out.mkdir(parents=True)
    write_table(scenario, [], out)
    (out / "scenario.yaml").write_text(to_yaml(scenario), encoding="utf-8")
    say("asking the verdict: the mission is flown in memory")
    arguments = {name: default for name, (default, _) in REAL_ARGUMENTS.items()} | {
        "scenario": str(out / "scenario.yaml"),
        "out": str(out / "nodes"),
        "record": "false",
        "auto_arm": "true",
        "autostart": "true",
        "north_aligned": "true",
        "force": force,
    }
    nodes = [
        replace(node, parameters={**node.parameters, **parameters.get(node.executable, {})})
        for node in real_nodes(arguments)
    ]
    rows = []
    with _on_domain(domain):
        for k, fault in enumerate(faults, start=1):
            title = f"{k}/{len(faults)} {fault.name}"
            if scenario.system.n_drones < fault.drones:
                say(f"{title}: left out: needs {fault.drones} drones")
                continue
            rows.append(_fly(scenario, nodes, fault, out, partial(_titled, say, title)))
            write_table(scenario, rows, out)
            done(rows[-1])
    return rows


def _titled(say: Say, title: str, text: str) -> None:
    say(f"{title}: {text}")


@contextmanager
def _on_domain(domain: int) -> Iterator[None]:
    """A ROS domain of this machine alone: real drones may listen on others."""
    own = {"ROS_DOMAIN_ID": str(domain), "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST"}
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _fly(
    scenario: Scenario,
    launched: Sequence[processes.NodeSpec],
    fault: Fault,
    out: Path,
    say: Say,
) -> Row:
    """Fly with a fault."""
    from musls_sim.nodes.hall import Hall  # needs ROS

    n = scenario.system.n_drones
    drone = min(DRONE, n)
    other = DRONE + 1 if n > DRONE else 1
    what = fault.what.format(drone=f"drone_{drone}", other=f"drone_{other}")
    row = Row(fault.name, what)
    file = out / "scenario.yaml"
    tips_m = np.array([tip_radius_m(d) for d in scenario.system.drones])
    with (
        Hall(n, drone if fault.cuts else None) as hall,
        processes.Graph(out / "logs" / fault.name) as nodes,
    ):
        watch = _Watch(hall, tips_m)
        scene = Scene(hall, nodes, drone, other)
        if fault.stays:
            fault.begin(scene)
        sim = processes.simulator(file, realtime=True, offboard_loss_action="land")
        nodes.start(replace(sim, remappings=hall.renamed))
        for node in launched:
            nodes.start(node)
        say("starting")
        if fault.stays:
            _stay_on_ground(row, watch, nodes)
            return row
        _reach_mission(hall, nodes, say)
        if early := [text for _, text in watch.told("guard")]:
            row.outcome = early[0]
            row.broken = "the guard acted before the fault"
            return row
        say(what)
        fault.begin(scene)
        watch.begin()
        over = _watch_to_end(watch, scene, fault, say)
        _conclude(row, watch, fault, over, drone)
    return row


def _reach_mission(hall: Hall, nodes: processes.Graph, say: Say) -> None:
    """Fly into the mission's first stage."""

    def flown() -> bool:
        nodes.check()
        return hall.text("/mission/stage") not in PHASES | {""}

    if not hall.spin(START_S, flown):
        raise processes.NodeFailed(
            f"no mission within {START_S:.0f} s: {nodes.last_line('formation')}"
        )
    since_s = hall.time_s
    say(hall.text("/mission/stage"))
    hall.spin(START_S, lambda: hall.time_s > since_s + INTO_MISSION_S)


def _stay_on_ground(row: Row, watch: _Watch, nodes: processes.Graph) -> None:
    """See that nobody is armed for a while after all have been heard."""
    hall = watch.hall

    def heard() -> bool:
        nodes.check()
        return len(hall.truth) == len(hall.bodies) == len(hall.armed) + 1

    if not hall.spin(START_S, heard):
        raise processes.NodeFailed(f"nothing heard: {nodes.last_line('embedded_sim')}")
    since_s = hall.time_s
    armed = False

    def over() -> bool:
        nonlocal armed
        armed |= any(hall.armed.values())
        return armed or hall.time_s > since_s + UNARMED_S

    hall.spin(START_S, over)
    refusals = [text for _, text in watch.told("mocap")]
    row.seen_by = f"mocap_relay: {refusals[0].partition('refused: ')[2]}" if refusals else "nobody"
    row.outcome = "armed" if armed else f"nobody is armed for {UNARMED_S:g} s"
    row.apart_m = np.nan
    row.broken = "armed" if armed else "" if refusals else "not seen"


def _watch_to_end(watch: _Watch, scene: Scene, fault: Fault, say: Say) -> bool:
    """Look until all are down; returns whether they are."""
    hall = watch.hall
    pilot_lands = False
    others = [body for body in hall.bodies[1:] if body != f"drone_{scene.drone}"]

    def over() -> bool:
        watch.look()
        if hall.time_s > watch.begin_s + fault.lasts_s:
            hall.fault = None
        return hall.text("/formation/state") == "done"

    while not hall.spin(1.0, over) and hall.time_s < watch.begin_s + LONGEST_S:
        say(f"{hall.time_s - watch.begin_s:.0f} s after: {hall.text('/formation/state')}")
        down = [hall.text(f"/{body}/offboard/phase") == "landed" for body in others]
        if fault.pilot and all(down) and not pilot_lands:
            pilot_lands = True
            hall.as_pilot(scene.drone, lands=True)
    return hall.text("/formation/state") == "done"


def _conclude(row: Row, watch: _Watch, fault: Fault, over: bool, drone: int) -> None:
    """Fill in what was seen, and the limits that are broken."""
    guard = watch.told("guard")
    doubts = watch.told("mocap")
    row.farthest_m = watch.farthest_m
    row.load_moved_m = watch.load_moved_m
    row.misled_m = watch.hall.misled_m
    row.apart_m = watch.apart_m
    steps = [text.partition(": ")[0] for _, text in guard]
    refusals = [text for _, text in doubts if "refused: " in text]
    if guard:
        row.within_s = guard[0][0]
        row.answer_s = guard[-1][0]
        row.seen_by = f"guard: {guard[0][1].partition(': ')[2]}"
    if refusals:
        row.seen_by = f"mocap_relay: {refusals[0].partition('refused: ')[2]}"
    at_s = {step: s for (s, _), step in zip(reversed(guard), reversed(steps), strict=True)}
    names = {
        _WENT_ON: "the others go on without it",
        _LOWERED: "the load is lowered",
        _LANDED: "all land",
        GuardStep.RETURN: "the load is brought back",
    }
    answers = [f"{text} after {at_s[s]:.2f} s" for s, text in names.items() if s in at_s]
    ends = "all are down" if over else f"not over after {LONGEST_S:g} s"
    row.outcome = "; ".join([*answers, ends])

    hits = [text for _, text in watch.told("collision")]
    if fault.falls:
        hits = [text for text in hits if f"drone_{drone}" not in text]
    goes_on = _WENT_ON in at_s
    limits = [
        (not row.within_s <= fault.within_s, f"not answered within {fault.within_s:g} s"),
        (bool(hits), f"collision: {'; '.join(hits)}"),
        (row.apart_m < 0.0, "rotor tips overlapped"),
        (not goes_on and row.load_moved_m > MOVED_M, f"the load moved by more than {MOVED_M:g} m"),
        (not over, "not all are known to be down"),
    ]
    row.broken = "; ".join(text for broken, text in limits if broken)


# ---------- The table


HEADINGS = (
    "fault",
    "what happens",
    "seen by",
    "within (s)",
    "farthest drone (m)",
    "load moved (m)",
    "PX4 misled by (m)",
    "outcome",
    "limits",
)


def cells_of(row: Row) -> list[str]:
    """Cells under `HEADINGS`."""
    numbers = [
        "" if np.isnan(number) else f"{number:.2f}"
        for number in (row.within_s, row.farthest_m, row.load_moved_m, row.misled_m)
    ]
    return [row.fault, row.what, row.seen_by, *numbers, row.outcome, row.broken or "kept"]


def write_table(scenario: Scenario, rows: Sequence[Row], out: Path) -> None:
    """Write rehearsal.csv, rehearsal.md and summary.json."""
    names = [f.name for f in fields(Row)]
    with (out / "rehearsal.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)
    lines = [HEADINGS, ["---"] * len(HEADINGS), *map(cells_of, rows)]
    text = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    (out / "rehearsal.md").write_text(f"# Rehearsal of {scenario.name}\n\n{text}", encoding="utf-8")
    report: dict[str, Any] = {
        "scenario": scenario.name,
        "rows": [{k: _number(v) for k, v in asdict(row).items()} for row in rows],
    }
    (out / "summary.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def _number(value: Any) -> Any:
    """A number as JSON knows it."""
    return None if isinstance(value, float) and not np.isfinite(value) else value
