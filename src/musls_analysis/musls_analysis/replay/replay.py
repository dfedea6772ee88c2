"""Predict the load of a recording from the motion of its drones: the cable model alone.

The drones are moved along their recorded (smoothed) poses, see
`musls_sim.plants.rigid_links.plant`. A recording starts in the middle of a motion that says
nothing about the cables, so the load is first drawn along its recorded pose by a soft spring and
damper (the lead-in) and then let go; only the time after that counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from musls_analysis.cable_models import CABLE_MODELS, ELASTIC, MASSLESS, RIGID_LINKS
from musls_analysis.comparison.errors import geodesic_error_rad, translational_error_m
from musls_analysis.recordings.recording import LOAD, PoseTrack, Recording
from musls_analysis.replay.motion import RecordedPaths, ReplayMotion, ReplaySpec
from musls_control.estimate import BodyMotion
from musls_control.trajectories.base import smoothstep
from musls_description.config.errors import ConfigError, near_names
from musls_description.hanging.equilibrium import hanging_equilibrium, slung_state, weightless
from musls_description.numerics.arrays import Array
from musls_description.numerics.rotations import from_yaw, roll_pitch_yaw, yaw_of
from musls_description.system.slung_system import SlungLoadSystem, slung_system
from musls_description.tables import ShownResult, Table
from musls_sim.plants.elastic.plant import ElasticPlant
from musls_sim.plants.interface import EnergyAudit, Plant, PlantInputs, Pose, PrescribedMotion
from musls_sim.plants.massless.light_lines import MasslessPlant
from musls_sim.plants.rigid_links.plant import RigidLinksPlant
from musls_sim.session.loop import Loop


def _kind_and_links(model: str) -> tuple[str, int | None]:
    kind, colon, number = model.partition(":")
    if kind == "rigid_rods":
        raise ConfigError(
            "cable model 'rigid_rods': rods make one rigid body of load and drones, so drones "
            "that move as recorded leave nothing to predict; choose rigid_links:1 for bars "
            "between joints"
        )
    if kind not in CABLE_MODELS or (colon and f"{kind}:N" not in CABLE_MODELS):
        raise ConfigError(f"unknown cable model '{model}': {near_names(model, CABLE_MODELS)}")
    if not colon:
        return kind, None
    if not number.isdecimal() or not 1 <= int(number) <= 1000:
        raise ConfigError(f"cable model '{model}': links must be a number from 1 to 1000")
    return kind, int(number)


def with_links(system: SlungLoadSystem, model: str) -> SlungLoadSystem:
    """The system with as many links per cable as a model asks for."""
    _, links = _kind_and_links(model)
    if links is None:
        return system
    cables = tuple(replace(cable, links=links) for cable in system.cables)
    return replace(system, cables=cables)


def plant_at_start(
    model: str, system: SlungLoadSystem, motion: ReplayMotion, spec: ReplaySpec
) -> tuple[Plant, Array]:
    """The load at rest below the drones' first poses, or lying below slack cables.

    The system is as the model wants it (`with_links`); also the drones' attitudes (n, 4). Places
    are those of the recording, which are in no formation: no `Hanging` knows how the load hangs.
    """
    kind, _ = _kind_and_links(model)
    position, orientation = motion.drones_at(0.0)
    load, load_orientation = motion.load_at(0.0)
    yaw = float(yaw_of(load_orientation))
    yaws = yaw_of(orientation)
    if not motion.load_has_attitude:
        yaw = _yaw_below(system, position - load)
    options: Any = {"physics_step_s": spec.physics_step_s, "gravity_m_s2": spec.gravity_m_s2}
    slack = starts_slack(system, motion)
    ground = load[2] + system.load.collision.bottom_m if slack else None
    if kind == MASSLESS:
        if slack:
            flat = Rotation.from_euler("z", yaw).as_quat(scalar_first=True)
            start = BodyMotion.of(np.vstack([load, position]), np.vstack([flat, orientation]))
        else:
            light = weightless(system)
            rest = hanging_equilibrium(light, position, spec.gravity_m_s2, yaw, yaws)
            start = BodyMotion.of(*rest.bodies)
        light_plant = MasslessPlant(system, start, ground_height_enu_m=ground, **options)
        return light_plant, start.orientation_wxyz[1:].copy()
    if slack:
        flat = Rotation.from_quat(from_yaw(np.array([yaw, *yaws])), scalar_first=True).as_matrix()
        lying, _ = slung_state(system, load, flat[0], position, flat[1:], spec.gravity_m_s2)
    else:
        rest = hanging_equilibrium(system, position, spec.gravity_m_s2, yaw, yaws)
        lying = rest.configuration
    make: type[RigidLinksPlant | ElasticPlant] = (
        ElasticPlant if kind == ELASTIC else RigidLinksPlant
    )
    plant = make(system, lying, ground_height_enu_m=ground, **options)
    return plant, plant.state.orientation_wxyz[1:].copy()


def _yaw_below(system: SlungLoadSystem, drones_m: Array) -> float:
    """Yaw [rad] of a load whose attachments point to drones at places from it on, (n, 3)."""
    arms = np.array(system.load.cable_attachments_m)
    inwards = arms[:, 0] - 1j * arms[:, 1]
    outwards = drones_m[:, 0] + 1j * drones_m[:, 1]
    return float(np.angle(np.sum(inwards * outwards)))


def starts_slack(system: SlungLoadSystem, motion: ReplayMotion) -> bool:
    """Whether all cables are slack in the first poses, so that the load stands on the ground."""
    far = np.linalg.norm(motion.drones_at(0.0)[0] - motion.load_at(0.0)[0], axis=1)
    return bool(far.max() < 0.95 * min(cable.length_m for cable in system.cables))


GUIDE_RAD_S = 2.0 * np.pi * 1.5
"""Natural frequency of the spring that draws the load along during the lead-in."""

GUIDE_FADES_S = 0.25
"""Time in which that spring takes hold and lets go: at once it would jerk taut cables, which do not
let the load go where they are not as long as the flown ones."""

PROGRESS_EVERY = 50
"""Periods between two reports of progress."""

NOTE_EVERY = 5
"""Periods between two rows of a result (20 ms)."""


UNKNOWN_ATTITUDE = "an attitude that was not recorded"


@dataclass(frozen=True, repr=False)
class LoadPrediction(ShownResult):
    """Load predicted from the drones' motion, and the recorded load.

    Attributes:
        load: Predicted pose as recorded (reference point, frame and time stamps), from
            the end of the lead-in.
        measured: Recorded load at the same times.
    """

    load: PoseTrack
    measured: PoseTrack

    def shown(self) -> Iterator[str | Table]:
        """Error of the load."""
        time_s = self.load.time_s
        angle = f"{np.degrees(self.geodesic_error_rad):.1f}°"
        yield (
            f"load predicted within {1e3 * self.translational_error_m:.1f} mm and "
            f"{angle if self.measured.has_attitude else UNKNOWN_ATTITUDE} "
            f"(mean over {time_s[-1] - time_s[0]:.1f} s)"
        )

    @property
    def translational_error_m(self) -> float:
        """Mean distance (12) between predicted and measured load."""
        off = translational_error_m(self.load.position_enu_m, self.measured.position_enu_m)
        return float(off.mean())

    @property
    def geodesic_error_rad(self) -> float:
        """Mean angle (13) between predicted and measured load; NaN if none was measured."""
        off = geodesic_error_rad(self.load.orientation_wxyz, self.measured.orientation_wxyz)
        return float(off.mean())

    def errors(self) -> dict[str, Any]:
        """Errors of the load, JSON-ready; the angle is None if no attitude was measured."""
        difference = self.load.position_enu_m - self.measured.position_enu_m
        without_mean = difference - difference.mean(axis=0)
        return {
            "translational_error_m": self.translational_error_m,
            "geodesic_error_deg": (
                float(np.degrees(self.geodesic_error_rad)) if self.measured.has_attitude else None
            ),
            "mean_difference_m": difference.mean(axis=0).tolist(),
            "translational_error_without_mean_m": float(
                np.linalg.norm(without_mean, axis=1).mean()
            ),
        }


@dataclass(frozen=True, repr=False)
class ReplayResult(LoadPrediction):
    """Result of a replay.

    Attributes:
        end_force_n: Force that moved each cable's end (the cable's pull is the opposite), world,
            (k, n, 3).
        end_power_w: Power put in at each end, (k, n).
        tension_n: Tension at load and drone, (k, n, 2).
        max_tension_n: Largest tension of each cable over all steps, (n,).
        position_miss_m: Largest distance between prescribed and reached drone positions.
        attitude_miss_rad: Largest angle between prescribed and reached attitudes.
    """

    end_force_n: Array
    end_power_w: Array
    tension_n: Array
    max_tension_n: Array
    audit: EnergyAudit
    position_miss_m: float
    attitude_miss_rad: float

    def shown(self) -> Iterator[str | Table]:
        """Errors of the predicted place and attitude, then the largest tension of each cable."""
        yield from super().shown()
        rows = [(f"cable {i}", f"{n:.1f}") for i, n in enumerate(self.max_tension_n, start=1)]
        yield Table(("", "largest tension [N]"), rows)


class Replay:
    """One recording, ready to be replayed with one system or many.

    `recorded` is the smoothed motion of the recorded points, `rotors` are the recorded speeds.
    """

    def __init__(self, recording: Recording, spec: ReplaySpec) -> None:
        """Smooth the recorded motion, of the load and all drones."""
        self.spec = spec
        self.recorded = RecordedPaths(recording)
        self.rotors = recording.rotors
        ReplayMotion(self.recorded, spec)  # raises now, not in the first run

    def check(self, system: SlungLoadSystem) -> None:
        """Refuse a system with another number of drones than the recording has."""
        if system.n_drones != len(self.recorded.drones):
            raise ConfigError(
                f"{system.name} has {system.n_drones} drones, "
                f"the recording {len(self.recorded.drones)}"
            )

    def run(
        self,
        system: SlungLoadSystem,
        progress: Callable[[float], None] | None = None,
        *,
        spec: ReplaySpec | None = None,
        cable_model: str = RIGID_LINKS,
    ) -> ReplayResult:
        """Replay with a system and one of `CABLE_MODELS`; `progress` gets the share done."""
        self.check(system)
        spec = spec or self.spec
        system = with_links(system, cable_model)
        motion = ReplayMotion(self.recorded, spec)
        plant, attitudes = plant_at_start(cable_model, system, motion, spec)
        path = motion.eased_in(attitudes)
        guide = _guide(plant, motion, spec.lead_in_s)
        track = _Track(spec, plant, motion.load_has_attitude)
        inputs = PlantInputs.zeros(system)
        guided = PrescribedMotion(path, guide)
        free = PrescribedMotion(path)
        loop = Loop(plant)

        def prescribe(tick: int) -> None:
            inputs.motion = guided if loop.time_s < spec.lead_in_s else free

        def move(tick: int) -> None:
            plant.step(inputs)
            plant.happened.clear()

        def note(tick: int) -> None:
            if inputs.motion is guided:
                return
            now = plant.time_s
            track.meet(path(now))
            if tick % NOTE_EVERY == 0:
                track.note(motion.clock_s(now), motion.load_at(now))

        loop.set_steps({"prescribe": prescribe, "plant": move, "note": note})
        periods = int(motion.duration_s / plant.period_s) - 1
        with loop:
            while loop.tick < periods:
                loop.advance(min(PROGRESS_EVERY, periods - loop.tick))
                if progress is not None:
                    progress(loop.tick / periods)
        return track.result()


def _guide(plant: Plant, motion: ReplayMotion, lead_in_s: float) -> Callable[[float], Array]:
    """Spring and damper, critically damped, from the load to its recorded motion."""
    load = slung_system(plant.system, "replay").load
    inertia = np.mean(np.diag(load.inertia_kg_m2))

    def wrench(time_s: float) -> Array:
        state = plant.state
        position, orientation = motion.load_at(time_s)
        velocity = motion.load_velocity_at(time_s)
        present = Rotation.from_quat(state.orientation_wxyz[0], scalar_first=True)
        omega = present.apply(state.omega_body_rad_s[0])
        turn = (Rotation.from_quat(orientation, scalar_first=True) * present.inv()).as_rotvec()
        w = GUIDE_RAD_S
        force = w**2 * (position - state.position_enu_m[0])
        force += 2.0 * w * (velocity - state.velocity_enu_m_s[0])
        moment = w**2 * turn - 2.0 * w * omega
        if not motion.load_has_attitude:
            moment *= 0.0
        share = smoothstep(min(time_s / GUIDE_FADES_S, (lead_in_s - time_s) / GUIDE_FADES_S, 1.0))
        return share * np.concatenate([inertia * moment, load.mass_kg * force])

    return wrench


class _Track:
    """Collects a replay's results."""

    def __init__(self, spec: ReplaySpec, plant: Plant, from_recording: bool) -> None:
        self._spec = spec
        self._plant = plant
        self._measured = from_recording
        self._hooks = np.array([drone.cable_attachment_m for drone in plant.system.drones])
        self._rows: list[tuple] = []
        self._miss = np.zeros(2)
        self._largest_n = np.zeros(plant.system.n_cables)

    def meet(self, drones: Pose) -> None:
        """Note how well the drones are where they are to be, and the largest tensions."""
        state = self._plant.state
        np.maximum(self._largest_n, state.tension_peak_n, out=self._largest_n)
        distance = np.linalg.norm(state.position_enu_m[1:] - drones[0], axis=1)
        angle = geodesic_error_rad(state.orientation_wxyz[1:], drones[1])
        self._miss = np.maximum(self._miss, [distance.max(), angle.max()])

    def note(self, clock_s: float, load: tuple[Array, Array]) -> None:
        """Keep the present state together with the recorded load."""
        state = self._plant.state
        force = self._plant.reaction.end_force_n.copy()
        turns = Rotation.from_quat(state.orientation_wxyz[1:], scalar_first=True)
        arms = np.cross(state.omega_body_rad_s[1:], self._hooks)
        power = np.sum(force * (state.velocity_enu_m_s[1:] + turns.apply(arms)), axis=1)
        self._rows.append(
            (
                clock_s,
                state.position_enu_m[0].copy(),
                state.orientation_wxyz[0].copy(),
                *load,
                force,
                power,
                state.tension_n.copy(),
            )
        )

    def result(self) -> ReplayResult:
        columns = [np.array(column) for column in zip(*self._rows, strict=True)]
        time, position, quaternion, true_position, true_quaternion, force, power, tension = columns
        return ReplayResult(
            as_recorded(self._spec, time, position, quaternion),
            as_recorded(self._spec, time, true_position, true_quaternion, known=self._measured),
            force,
            power,
            tension,
            self._largest_n,
            self._plant.reaction.audit,
            *map(float, self._miss),
        )


def as_recorded(
    spec: ReplaySpec, time_s: Array, position: Array, quaternion: Array, *, known: bool = True
) -> PoseTrack:
    """Poses of the load as the recording would have them: its reference point, frame, stamps.

    With attitudes, if these are known.
    """
    turn = Rotation.from_quat(quaternion, scalar_first=True)
    attitude = turn * Rotation.from_rotvec(spec.load_tilt_rad)
    return PoseTrack(
        time_s + spec.load_delay_s,
        position + turn.apply(spec.offset_m(LOAD)),
        attitude.as_quat(scalar_first=True) if known else np.full((len(time_s), 4), np.nan),
    )


# ---------- Files: tables, numbers and a figure


def summary(replay: Replay, result: ReplayResult) -> dict[str, Any]:
    """The numbers of a replay, JSON-ready."""
    paths = replay.recorded.paths.items()
    return {
        **result.errors(),
        "prescribed_position_miss_m": result.position_miss_m,
        "prescribed_attitude_miss_deg": float(np.degrees(result.attitude_miss_rad)),
        "energy_audit_relative_error": float(result.audit.relative_error),
        "work_j": float(result.audit.work_j),
        "loss_j": float(result.audit.loss_j),
        "max_tension_n": result.max_tension_n.tolist(),
        "compared_from_s": float(result.load.time_s[0]),
        "compared_to_s": float(result.load.time_s[-1]),
        "jumps_left_out": {name: path.jumps for name, path in paths},
        "path_residual_m": {name: path.residual_m for name, path in paths},
        "path_residual_deg": {
            name: float(np.degrees(path.residual_rad)) if path.has_attitude else None
            for name, path in paths
        },
    }


def write_replay(replay: Replay, result: ReplayResult, folder: Path) -> dict[str, Any]:
    """Write load.csv, ends.csv, summary.json and load.png; returns the summary."""
    numbers = summary(replay, result)
    (folder / "summary.json").write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")
    write_load(result, folder / "load.csv")
    names = ["t_s"]
    columns = [result.load.time_s[:, None]]
    for i, drone in enumerate(replay.recorded.drones):
        names += [f"{drone}_force_{axis}_n" for axis in "xyz"]
        names += [f"{drone}_power_w", f"{drone}_load_end_tension_n", f"{drone}_drone_end_tension_n"]
        power = result.end_power_w[:, i : i + 1]
        columns += [result.end_force_n[:, i], power, result.tension_n[:, i]]
    _table(folder / "ends.csv", names, columns)
    # Imported here, because matplotlib is slow to import.
    from musls_analysis.figures import style
    from musls_analysis.figures.over_time import pose_figure

    with style.styled():
        figure = pose_figure(Recording({LOAD: result.load}, {LOAD: result.measured}), LOAD)
        for text, name in zip(
            figure.legends[0].get_texts(), ("predicted", "measured"), strict=True
        ):
            text.set_text(name)
        style.save(figure, folder / "load.png")
    return numbers


def write_load(result: LoadPrediction, path: Path) -> None:
    """Write the load's pose, predicted and measured, as CSV."""
    pose = ("x_m", "y_m", "z_m", "roll_rad", "pitch_rad", "yaw_rad")
    names = ["t_s", *(f"predicted_{c}" for c in pose), *(f"measured_{c}" for c in pose)]
    columns = [_columns(result.load), _columns(result.measured)]
    _table(path, names, [result.load.time_s[:, None], *columns])


def _columns(track: PoseTrack) -> np.ndarray:
    return np.hstack([track.position_enu_m, roll_pitch_yaw(track.orientation_wxyz)])


def _table(path: Path, names: Sequence[str], columns: Sequence[np.ndarray]) -> None:
    np.savetxt(path, np.hstack(columns), "%.9g", ",", header=",".join(names), comments="")
