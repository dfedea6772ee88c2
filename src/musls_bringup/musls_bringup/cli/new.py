"""`musls new`: commented files to start from."""

from __future__ import annotations

import keyword
import math
import re
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from musls_bringup.cli.options import FlyOnce, within
from musls_bringup.new.flight_stack_files import hubs_of
from musls_bringup.new.rotors import MOST_THRUST_N, SPEEDS_RPM
from musls_bringup.new.templates import (
    EDGES_M,
    INCH_M,
    LOAD_SHARE,
    ROTORS_ABOVE,
    Airframe,
    LoadKind,
    StartingLoad,
    airframe,
    cable_length_m,
    imported_drone,
    imported_load,
    rendered,
    rope_for,
    rows,
    starting_load,
)
from musls_description.config.errors import ConfigError
from musls_description.config.strict_yaml import parse_yaml, read_text, shown
from musls_description.config.text_tables import naming
from musls_description.numerics.constants import STANDARD_GRAVITY_M_S2
from musls_description.system.drone import tip_radius_m

app = typer.Typer(
    name="new",
    help="Writes a commented file that works as it is; never replaces one.",
    add_completion=False,
    rich_markup_mode=None,
    no_args_is_help=True,
)

INCHES = (0.5, 200.0)
"""Diameters of propellers [inch]."""

LARGEST_M = 100.0
LARGEST_KG = 1000.0

_Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the new file.")]


@app.command("system", epilog="\b\nExample:\n  musls new system --load beam --length 2 --drones 5")
def system(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Name of the new file.", show_default="LOAD_DRONES"),
    ] = None,
    load: Annotated[LoadKind, typer.Option(help="What is carried.")] = LoadKind.box,
    length: Annotated[
        float | None,
        typer.Option(help="Of the load; of a ring its diameter, of an L each arm [m]."),
    ] = None,
    width: Annotated[float | None, typer.Option(help="Of the load, ring or arms [m].")] = None,
    height: Annotated[float | None, typer.Option(help="Of the load [m].")] = None,
    mass: Annotated[
        float | None,
        typer.Option(help="Of the load [kg].", show_default=f"{LOAD_SHARE:g} x that of the drones"),
    ] = None,
    drones: Annotated[int, typer.Option(help="Number of drones, each with a cable.")] = 3,
    cable: Annotated[
        float | None,
        typer.Option(help="Length of the cables [m].", show_default="2.5, by the airframe's size"),
    ] = None,
    drone: Annotated[
        str, typer.Option(help="Airframe: a shipped one, or a file (musls new drone).")
    ] = "x500",
    fly: FlyOnce = False,
) -> None:
    """Load, drones and cables that hang level and can fly."""
    from musls_description.system.slung_system import MAX_CABLES

    within("--drones", drones, 1, MAX_CABLES)
    edges = [
        usual if own is None else within(f"--{option}", own, 0.001, LARGEST_M, " m")
        for option, own, usual in zip(
            ("length", "width", "height"), (length, width, height), EDGES_M[load], strict=True
        )
    ]
    path = _path(f"{load.value}_{drones}" if name is None else name, ".yaml")
    frame = airframe(drone, path)
    if mass is None:
        mass = float(f"{LOAD_SHARE * drones * frame.mass_kg:.2g}")
    if cable is None:
        cable = cable_length_m(tip_radius_m(frame))
    within("--cable", cable, 0.1, LARGEST_M, " m")
    start = starting_load(load, edges, within("--mass", mass, 0.001, LARGEST_KG, " kg"), drones)
    more = " --set cable_model=massless" if load == LoadKind.point else ""
    write_system(path, start, mass, drone, cable, more, fly=fly)


def write_system(
    path: Path,
    starting: StartingLoad,
    mass_kg: float,
    drone: str,
    cable_m: float,
    more: str = "",
    *,
    fly: bool = False,
) -> None:
    """Write a system file, if what is in it hangs level and can be lifted."""
    from musls_bringup.before.formation import propose
    from musls_bringup.before.verdict import judge_system
    from musls_description.hanging.hang import MIN_THRUST_MARGIN
    from musls_description.system.slung_system import formation_of
    from musls_description.system.system_files import build_system

    count = len(starting.attachments_m)
    kind = Path(drone).stem
    text = rendered(
        "system.yaml",
        {
            "name": path.stem,
            "more": more,
            "what": starting.what,
            "body": starting.body,
            "mass": f"{mass_kg:g}",
            "drag": None,
            "attachments": rows(starting.attachments_m),
            "drones": count,
            "airframe": drone,
            "drone": kind,
            "cable": f"{cable_m:g}",
            "rope": rope_for(mass_kg * STANDARD_GRAVITY_M_S2 / count),
        },
    )
    hung = propose(formation_of(build_system(parse_yaml(text, str(path)), str(path)), str(path)))
    margin = hung.hanging.margin_sentence
    if hung.hanging.thrust_margin < MIN_THRUST_MARGIN:
        raise ConfigError(
            f"{path.stem}: {count} {kind} cannot lift {mass_kg:g} kg on these cables: {margin}; "
            "less mass, more drones or longer cables"
        )
    _write(path, text)
    _tell(
        path,
        [
            f"musls draw {path}",
            f"musls fly hold --set system={path}{more}",
            f"musls new scenario NAME --system {path.name}",
        ],
    )
    typer.echo(judge_system(hung.system, flown=fly).sentence)


class ImportAs(str, Enum):
    """Role of an imported body."""

    load = "load"
    drone = "drone"


def import_body(
    file: Annotated[Path, typer.Argument(metavar="FILE.urdf|sdf|xml", help="URDF, SDF or MJCF.")],
    attach: Annotated[
        str,
        typer.Option(metavar="NAME,...", help="Links, frames, bodies or sites where cables pull."),
    ],
    kind: Annotated[ImportAs, typer.Option("--as", help="What it is.")] = ImportAs.load,
    name: Annotated[
        str | None, typer.Option(help="Name of the new file.", show_default="FILE's")
    ] = None,
    cable: Annotated[float, typer.Option(help="Length of the cables [m]; for a load.")] = 2.5,
    drone: Annotated[
        str, typer.Option(help="Airframe below which a load hangs: a shipped one, or a file.")
    ] = "x500",
    rpm: Annotated[
        float, typer.Option(help="Speed at full thrust [1/min]; for a drone of MuJoCo's motors.")
    ] = 8500.0,
    fly: FlyOnce = False,
) -> None:
    """Makes a system with a load, or an airframe, of a URDF, SDF or MJCF file.

    Everything in the file is one rigid body: mass, inertia, box, attachments. Rotors of a drone are
    Gazebo's motor plugins, or MuJoCo's motors at sites. Needs MuJoCo (extra import).
    """
    from musls_bringup.new.import_body import read_rigid_body
    from musls_description.config.schema import to_yaml
    from musls_description.system.slung_system import MAX_CABLES

    within("--cable", cable, 0.1, LARGEST_M, " m")
    speed = within("--rpm", rpm, *SPEEDS_RPM, " rpm") * math.pi / 30.0
    path = _path(file.stem if name is None else name, ".yaml")
    names = [part.strip() for part in attach.split(",")]
    if kind is ImportAs.load:
        within("--attach: number of names", len(names), 1, MAX_CABLES)
        body = read_rigid_body(file)
        start = imported_load(body, names, file.name)
        write_system(path, start, body.mass_kg, drone, cable, fly=fly)
        return
    within("--attach: number of names of a drone", len(names), 1, 1)
    model = path.stem.replace("-", "_")
    new_airframe = imported_drone(read_rigid_body(file, speed), names[0], model, str(file))
    _write(path, f"# The airframe of {file.name}; docs/own_drone.md\n{to_yaml(new_airframe)}")
    _tell(path, [f"musls new system mine --drone {path.name}"])
    hover = new_airframe.mass_kg * STANDARD_GRAVITY_M_S2 / new_airframe.max_thrust_n
    typer.echo(
        f"{len(new_airframe.rotors)} rotors; it hovers with {100 * hover:.0f} % of its full thrust"
    )


@app.command("drone", epilog="\b\nExample:\n  musls new drone frame --mass 1.8 --thrust 14")
def drone(
    name: _Name,
    mass: Annotated[float, typer.Option(help="Ready to fly, without load [kg].")] = 1.5,
    rotors: Annotated[int, typer.Option(help="4, 6 or 8.")] = 4,
    wheelbase: Annotated[float, typer.Option(help="Distance of opposite motors [m].")] = 0.45,
    height: Annotated[float, typer.Option(help="From the feet to the rotors [m].")] = 0.25,
    propeller: Annotated[
        str,
        typer.Option(
            metavar="INCH|FILE",
            help="Diameter [inch], or the propeller's file of UIUC (static: RPM, CT, CP) or APC "
            "(PER3_....dat), instead of --thrust and --torque.",
        ),
    ] = "10",
    diameter: Annotated[
        float | None,
        typer.Option(help="Diameter [inch] of a propeller whose file does not tell it."),
    ] = None,
    thrust: Annotated[
        float, typer.Option(help="Of one rotor at full throttle [N]; 1000 g are 9.81 N.")
    ] = 9.0,
    rpm: Annotated[float, typer.Option(help="Speed at full throttle [1/min].")] = 8500.0,
    torque: Annotated[
        float | None,
        typer.Option(help="Of one rotor at full throttle [N m].", show_default="a usual one"),
    ] = None,
    parameters: Annotated[
        Path | None,
        typer.Option(
            "--parameters",
            "--px4",
            metavar="FILE",
            help="Parameters of PX4 (CA_ROTOR...; also a log, .ulg), for places and spins of the "
            "rotors; a quadrotor of Agilicious (tbm_fr, ...); of ArduPilot (FRAME_CLASS) or "
            "Betaflight's dump (mixer), for spins: places are by --wheelbase. Instead of --rotors.",
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Test table of the motor with its propeller (thrust, RPM, torque, power of each "
            "throttle), instead of --thrust, --rpm and --torque.",
        ),
    ] = None,
    kv: Annotated[
        float | None,
        typer.Option(
            help="Speed per volt [rpm/V]: the motor is fitted to --table, for powers; with "
            "--cells it turns a propeller of a file."
        ),
    ] = None,
    cells: Annotated[
        int | None, typer.Option(min=1, max=100, help="Cells of the battery in series, with --kv.")
    ] = None,
    resistance: Annotated[
        float | None,
        typer.Option(
            help="Of motor and controller [ohm], with --kv and --cells.", show_default="a usual one"
        ),
    ] = None,
) -> None:
    """An airframe from weights, sizes and a motor's data."""
    wheelbase_m = within("--wheelbase", wheelbase, 0.01, 20.0, " m")
    height_m = within("--height", height, 0.001, 10.0, " m")
    hubs = None
    if parameters is not None:
        above_m = ROTORS_ABOVE * height_m
        hubs = hubs_of(parameters_in(parameters), str(parameters), wheelbase_m, above_m)
    inches = _inches(propeller)
    file = inches is None
    if file and table is not None:
        raise ConfigError("--propeller: a file and --table both give the thrust; take one")
    if not file and (diameter, cells, resistance) != (None, None, None):
        raise ConfigError("--diameter, --cells and --resistance are for --propeller FILE")
    if file and (kv is None) != (cells is None):
        raise ConfigError("--kv and --cells: a propeller's file needs both, or --rpm alone")
    if resistance is not None and kv is None:
        raise ConfigError("--resistance: needs --kv and --cells")
    kv = None if kv is None else within("--kv", kv, 1.0, 1e5, " rpm/V")
    frame = Airframe(
        mass_kg=within("--mass", mass, 0.005, LARGEST_KG, " kg"),
        rotors=rotors,
        wheelbase_m=wheelbase_m,
        height_m=height_m,
        propeller_in=inches or 10.0,
        thrust_n=within("--thrust", thrust, 0.001, MOST_THRUST_N, " N"),
        speed_rpm=within("--rpm", rpm, *SPEEDS_RPM, " rpm"),
        torque_n_m=None if torque is None else within("--torque", torque, 1e-6, 1e3, " N m"),
        hubs=hubs,
    )
    remark = ""
    if kv is not None and table is None and not file:
        raise ConfigError("--kv: needs --table, to which the motor is fitted, or --propeller FILE")
    if table is not None:
        from musls_bringup.new.motor_table import MotorTable  # imports SciPy

        motor_table = MotorTable(table)
        frame = frame.by(motor_table)
        if kv is not None:
            motor, misfit = motor_table.motor(kv)
            frame = replace(frame, motor=motor)
            remark = f"power of the fitted motor: within {100 * misfit:.1f} % of each row"
    if file:
        frame, remark = _with_propeller(frame, Path(propeller), diameter, kv, cells, resistance)
    path = _path(name, ".yaml")
    values = frame.as_text()
    _write(
        path,
        rendered("drone.yaml", {"name": path.stem, "model": path.stem.replace("-", "_"), **values}),
    )
    _tell(path, [f"musls new system mine --drone {path.name}"])
    typer.echo(f"it hovers with {100 * float(values['hover']):.0f} % of its full thrust")
    if remark:
        typer.echo(remark)


def _inches(propeller: str) -> float | None:
    """Diameter of a propeller; None for the name of a file."""
    try:
        inches = float(propeller)
    except ValueError:
        return None
    return within("--propeller", inches, *INCHES, " inch")


def _with_propeller(
    frame: Airframe,
    path: Path,
    diameter_in: float | None,
    kv: float | None,
    cells: int | None,
    resistance_ohm: float | None,
) -> tuple[Airframe, str]:
    """The airframe with a propeller's file, and how fast it turns at full throttle, in words."""
    from musls_bringup.new.propeller_file import LOADED, RPM, PropellerFile
    from musls_description.system.propulsion import Battery

    if diameter_in is not None:
        within("--diameter", diameter_in, *INCHES, " inch")
    if resistance_ohm is not None:
        within("--resistance", resistance_ohm, 0.0, 100.0, " ohm")
    file = PropellerFile(path, diameter_in)
    motor = None
    top_rad_s = RPM * frame.speed_rpm
    why = "by --rpm"
    if kv is not None and cells is not None:
        nominal_v = Battery(capacity_ah=1.0, cells=cells).nominal_v
        motor, top_rad_s = file.motor(kv, nominal_v, resistance_ohm)
        why = f"by {kv:g} rpm/V and {nominal_v:g} V"
        if resistance_ohm is None:
            why += f", {100 * LOADED:.0f} % of the speed without load as usual (or --resistance)"
    within("--propeller: its speed at full throttle", top_rad_s / RPM, *SPEEDS_RPM, " rpm")
    new_frame = replace(
        frame.by(file.table(top_rad_s)),
        propeller_in=file.diameter_m / INCH_M,
        motor=motor,
        cells=cells,
        source=path.name,
    )
    remark = f"full throttle: {top_rad_s / RPM:.0f} rpm {why}"
    return new_frame, "; ".join(filter(None, [remark, file.beyond(top_rad_s)]))


def parameters_in(file: Path) -> str:
    """Text of a file of PX4's parameters; of a log those with which it began."""
    if file.suffix != ".ulg":
        return read_text(file)
    from musls_analysis.recordings.formats.ulog import open_ulog  # imports Numba

    with naming(file):
        parameters = open_ulog(file, [], []).initial_parameters
    return "\n".join(f"{name} {value}" for name, value in parameters.items())


@app.command("scenario", epilog="\b\nExample:\n  musls new scenario first --system box.yaml")
def scenario(
    name: _Name,
    system: Annotated[
        str, typer.Option(help="System that it flies: a shipped one or a file.")
    ] = "x500_trio",
    mission: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Mission of a ground station (.plan, or QGC WPL): the load's way-points.",
        ),
    ] = None,
) -> None:
    """A flight: its mission, flight stack and disturbances."""
    from musls_bringup.new.ground_station import read_mission
    from musls_description.system.slung_system import formation_of
    from musls_description.system.system_files import load_system, system_path

    # Its file is relative to the scenario's folder.
    place = system_path(system, relative_to=Path(name).parent)
    load = formation_of(load_system(str(place)), f"a scenario of {system}").load
    path = _path(name, ".yaml")
    _write(
        path,
        rendered(
            "scenario.yaml",
            {
                "name": path.stem,
                "system": system,
                "point": load.point_mass,
                "mission": None if mission is None else read_mission(mission),
                "file": mission,
            },
        ),
    )
    _tell(path, [f"musls fly {path} --plan", f"musls check {path}", f"musls fly {path}"])


@app.command("controller", epilog="\b\nExample:\n  musls new controller my_law")
def controller(name: _Name) -> None:
    """A control law in Python."""
    path, controller_class = _class_in(name, "controller.py")
    _tell(path, [f"musls fly circle --controller {path}:{controller_class}"])


@app.command("agent", epilog="\b\nExample:\n  musls new agent my_drone")
def agent(name: _Name) -> None:
    """Decisions of each drone, in Python."""
    path, agent_class = _class_in(name, "agent.py")
    keys = f"{{kind: agents, agent: {path}:{agent_class}, knows: [reference]}}"
    _tell(path, [f"musls fly circle --set 'controller={keys}'"])


def _class_in(name: str, template: str) -> tuple[Path, str]:
    """Write a module with one class; returns its path and the name of the class."""
    path = _path(name, ".py")
    identifier = class_name(path.stem)
    if keyword.iskeyword(identifier):
        raise ConfigError(f"'{path.stem}' is no name for a class in Python")
    _write(path, rendered(template, {"name": path.stem, "class_name": identifier}))
    return path, identifier


@app.command("sweep", epilog="\b\nExample:\n  musls new sweep study")
def sweep(name: _Name) -> None:
    """A parameter study."""
    path = _path(name, ".yaml")
    _write(path, rendered("sweep.yaml", {"name": path.stem}))
    _tell(path, [f"musls sweep {path}"])


def _write(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"{path} exists already: choose another name or remove it") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from None


def _tell(path: Path, uses: list[str]) -> None:
    typer.echo(f"{path} written. Next:")
    for use in uses:
        typer.echo(f"    {use}")


def _path(name: str, suffix: str) -> Path:
    path = Path(name.strip())
    if path.suffix == suffix or (suffix == ".yaml" and path.suffix == ".yml"):
        stem = path.stem
    else:
        stem = path.name
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", stem):
        raise ConfigError(f"'{shown(name)}' is no name: a letter, then letters, digits, _ and -")
    if suffix == ".py" and "-" in stem:
        raise ConfigError(f"'{shown(name)}': a name in Python has no -, write _ instead")
    return path.with_name(stem + suffix)


def class_name(name: str) -> str:
    """Name of a class in Python: "LoadFeedback" for "load_feedback"."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[_-]+", name) if part)
