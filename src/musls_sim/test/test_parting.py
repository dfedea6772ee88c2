"""Cables that are cut or break, hooks that open and close: momentum, energy, and what follows."""

import numpy as np
import pytest

from musls_bringup.catalogue.scenarios import load_scenario
from musls_description.config.errors import ConfigError
from musls_sim.plants.interface import (
    AttachHook,
    CutCable,
    PlantInputs,
    ReleaseHook,
    RotorEfficiency,
)
from musls_sim.session.session import Session

from plant_helpers import energy, kinetic_energy, momenta  # isort: skip

G = 9.80665
PERIOD_S = 0.004


def flight(*events, model="rigid_links", name="hold", seconds=0.0, **changes):
    """A flight in the air, swinging: pushed for its first tenth of a second."""
    push = {"kind": "poke", "when": {"time_s": 0.0}, "force_enu_n": [3, 1, 1], "duration_s": 0.1,
            "moment_enu_n_m": [0, 0.1, 0.2]}  # fmt: skip
    links = {"system.cables.links": 4} if model == "rigid_links" else {}
    stages = [{"kind": "hold", "position_m": [0, 0, 1.5], "duration_s": 3.0}]
    session = Session(
        load_scenario(
            name,
            {"cable_model": model, "mission.stages": stages, "events": [push, *events]}
            | links | changes,
        )
    )  # fmt: skip
    session.start()
    session.advance(round(seconds / PERIOD_S))
    return session


def motion(plant):
    """Rotation, place, angular velocity and velocity of all bodies, (n_bodies, 18)."""
    fields = ("rotation", "position", "omega", "velocity")
    return np.hstack([plant.records.bodies[f].reshape(len(plant.tree.bodies), -1) for f in fields])


# ---------- The change itself


@pytest.mark.parametrize(
    "change", [CutCable(2, 3), CutCable(1, 1), ReleaseHook(1, "load"), ReleaseHook(3, "drone")]
)
def test_chains_part_without_a_change_of_motion(change):
    """Momentum to 1e-9, energy and every body's motion to rounding."""
    with flight(seconds=0.3) as session:
        plant = session.plant
        linear, angular = momenta(plant)
        before, bodies = energy(plant), motion(plant)
        assert np.abs(linear).max() > 0.2
        plant.apply(change)
        parted = momenta(plant)
        assert np.abs(parted[0] - linear).max() < 1e-9
        assert np.abs(parted[1] - angular).max() < 1e-9
        assert energy(plant) == pytest.approx(before, abs=1e-9)
        assert np.abs(motion(plant) - bodies).max() < 1e-12
        plant.apply(change)  # once more changes nothing
        assert sum(body.parent < 0 for body in plant.tree.bodies) == 2


@pytest.mark.parametrize("at", ["load", "drone"])
def test_pieces_hang_fall_and_carry_nothing(at):
    """The load falls with g, loose ends have no tension, a hanging chain weighs what it weighs."""
    with flight(seconds=0.4) as session:
        plant, state = session.plant, session.state
        for cable in (1, 2, 3):
            plant.apply(ReleaseHook(cable, at))
        place, speed = state.position_enu_m[0].copy(), state.velocity_enu_m_s[0].copy()
        still = PlantInputs.zeros(plant.system)
        still.rotor_command_rad_s[:] = state.rotor_speed_rad_s
        count = 50
        for _ in range(count):
            plant.step(still)
        fallen = place + speed * count * PERIOD_S
        fallen[2] -= 0.5 * G * (count * PERIOD_S) ** 2
        assert np.abs(state.position_enu_m[0] - fallen).max() < 0.03  # air; the chains' weight
        loose = state.cable_force_n[:, 0 if at == "load" else 1]
        assert np.abs(loose).max() == 0.0
        held = state.tension_n[:, 1 if at == "load" else 0]
        assert np.abs(held).max() < 3.0 * plant.system.cables[0].mass_kg * G


def test_total_momentum_follows_the_forces_from_outside():
    """With four drones and one cut off: the impulse of a second is that of thrust and weight."""
    with flight(name="quad", seconds=0.1, start="air") as session:
        plant = session.plant
        session.apply({"kind": "cable_cut", "cable": 1, "segment": 2})
        session.advance(1)
        mass, begin, impulse = plant.records.bodies["mass"].sum(), momenta(plant)[0], np.zeros(3)
        roots = [k for k, body in enumerate(plant.tree.bodies) if body.parent < 0]
        assert len(roots) == 2
        for _ in range(250):
            session.advance(1)
            impulse += PERIOD_S * plant.records.bodies["wrench"]["force"].sum(axis=0)
        gained = momenta(plant)[0] - begin
        gained[2] += mass * G * 250 * PERIOD_S
        assert np.abs(gained - impulse).max() < 2e-3 * mass * G


# ---------- One model against others


def test_cable_models_agree_on_what_follows():
    """One of three hooks opens: load and drones go the same way in all models.

    Chains are free to twist here: two bent ones that are not hold the load's tilt back.
    """
    own = {
        "rigid_links": {"system.cables.twist": "free"},
        "massless": {},
        "elastic": {"system.cables.elastic.ea_n": 2e4},
    }
    paths = []
    for model, extra in own.items():
        changes = {"system.cables.mass_kg": 0.002, "system.cables.links": 8} | extra
        release = {"kind": "release", "when": {"time_s": 0.2}, "cable": 1}
        with flight(release, model=model, **changes) as session:
            path = []
            for _ in range(150):
                session.advance(1)
                path.append(session.state.position_enu_m.copy())
        paths.append(np.array(path))
    chains, massless, elastic = paths
    assert np.abs(massless[-1, 0] - massless[50, 0]).max() > 0.08
    assert np.abs(elastic - massless).max() < 0.003
    assert np.abs(chains - massless).max() < 0.02


def test_release_in_hover_accelerates_the_drone_by_the_load_it_carried():
    """C8: at the first instant m_p g / (m - m_p) upwards, here of a cable without mass."""
    with Session(load_scenario("solo", {"cable_model": "massless", "start": "air"})) as session:
        session.advance(5)
        system, state = session.scenario.system, session.state
        session.plant.apply(ReleaseHook(1, "load"))
        session.advance(1)
        expected = system.load.mass_kg / system.drones[0].mass_kg * G
        assert state.acceleration_enu_m_s2[1, 2] == pytest.approx(expected, rel=0.02)
        assert state.acceleration_enu_m_s2[0, 2] == pytest.approx(-G, rel=1e-3)
        assert np.abs(state.tension_n).max() == 0.0


@pytest.mark.parametrize("model", ["rigid_links", "massless"])
def test_a_load_let_go_on_the_ground_holds_and_slides_by_its_friction(model):
    """C16: a push under mu m g holds it; with a speed v it slides v^2 / (2 mu g)."""
    with Session(load_scenario("solo", {"cable_model": model})) as session:
        system, state = session.scenario.system, session.state
        mu, mass = system.ground_friction, system.load.mass_kg
        session.apply({"kind": "release"})
        push = {"kind": "poke", "force_enu_n": [0, 0.8 * mu * mass * G, 0], "duration_s": 0.2}
        session.apply(push)
        session.advance(50)
        assert np.abs(state.position_enu_m[0, :2]).max() < 2e-3
        session.apply(push | {"force_enu_n": [0, 4.0 * mu * mass * G, 0]})
        session.advance(51)
        speed, place = state.velocity_enu_m_s[0, 1], state.position_enu_m[0, 1]
        assert speed == pytest.approx(0.2 * 3.0 * mu * G, rel=0.05)
        session.advance(250)
        assert np.abs(state.velocity_enu_m_s[0]).max() < 1e-2
        slid = state.position_enu_m[0, 1] - place
        assert slid == pytest.approx(speed**2 / (2.0 * mu * G), rel=0.05)


# ---------- Breaks


def test_a_chain_breaks_at_its_force():
    push = {"kind": "poke", "when": {"time_s": 0.1}, "force_enu_n": [0, 0, -30], "duration_s": 1}
    with flight(push, **{"system.cables.elastic.break_force_n": 12.0}) as session:
        while not (told := [e for e in session.events.happened if e.kind == "cable_broken"]):
            before = session.state.tension_n.max()
            session.advance(1)
            assert session.time_s < 1.0
        assert before < 12.0 < session.max_tension_n.max() < 17.0
        assert "broke at the" in told[0].what
        cable = int(told[0].what[6]) - 1
        session.advance(1)
        assert session.state.tension_n[cable].min() < 1.0


def test_a_cable_is_cut_at_a_tension():
    push = {"kind": "poke", "when": {"time_s": 0.1}, "force_enu_n": [0, 0, -30], "duration_s": 1}
    cut = {"kind": "cable_cut", "when": {"tension": {"cable": 2, "above_n": 11}}, "cable": 2,
           "segment": 3}  # fmt: skip
    with flight(push, cut, model="massless") as session:
        session.advance(150)
        (event,) = [e for e in session.events.happened if e.kind == "cable_cut"]
        assert event.what == "cable_2: cut in segment 3"
        assert session.max_tension_n[1] > 11.0
        assert session.state.tension_n[1].max() == 0.0


# ---------- Hooks that close


def test_a_hook_closes_as_an_inelastic_impact():
    """Momentum stays, energy is lost, the hook is where it belongs, tension comes back."""
    with flight(seconds=0.4) as session:
        plant = session.plant
        plant.apply(ReleaseHook(1, "load"))
        session.advance(10)
        distance, speed = plant.hook_gap(0)
        assert 0.001 < distance < 0.2
        linear, angular = momenta(plant)
        kinetic = kinetic_energy(plant)
        drones = session.state.position_enu_m[1:].copy()
        plant.apply(AttachHook(1))
        closed = momenta(plant)
        assert np.abs(closed[0] - linear).max() < 1e-9
        assert np.abs(closed[1] - angular).max() < 0.02 * distance  # links drawn into place
        lost = kinetic - kinetic_energy(plant)
        assert -0.05 * kinetic < lost < 0.5 * speed**2 * 3.0
        assert plant.hook_gap(0)[0] < 1e-9
        assert plant.hook_gap(0)[1] < 1e-9
        session.advance(1)
        assert np.abs(session.state.position_enu_m[1:] - drones).max() < 0.1 * distance + 0.01
        session.advance(100)
        assert session.state.tension_n[0].min() > 1.0


def test_a_flight_with_a_closed_hook_loses_no_energy_by_its_motion():
    """The joints take what their dampers take; a body that flies has none."""
    with flight(seconds=0.4) as session:
        plant = session.plant
        plant.apply(ReleaseHook(1, "load"))
        session.advance(10)
        plant.apply(AttachHook(1))
        session.inputs.wrench_enu[0, 3] = 4.0
        session.advance(250)  # some 0.6 m/s
        assert np.linalg.norm(session.state.velocity_enu_m_s[0]) > 0.3
        assert abs(plant.records.system[0]["ledger"]["balance"]) < 0.05


def test_an_elastic_hook_closes_while_slack_and_changes_nothing():
    """Momentum and energy to the last bit; then the cable carries again, and no energy is made."""
    with flight(model="elastic", seconds=0.2) as session:
        plant = session.plant
        plant.apply(ReleaseHook(1, "load"))
        assert plant.hook_is_open(0)
        plant.apply(RotorEfficiency(1, None, 0.0))  # the drone falls: the hook comes to its place
        session.advance(1)
        assert plant.hook_gap(0)[0] == np.inf  # the cable does not reach
        while not np.isfinite(plant.hook_gap(0)[0]):
            session.advance(1)
            assert session.time_s < 1.0
        tables, energy_j = plant.tables, plant.energy_j().sum()
        nodes, bodies = tables.nodes["velocity"].copy(), tables.bodies.copy()
        plant.apply(AttachHook(1))
        assert not plant.hook_is_open(0)
        assert np.array_equal(tables.nodes["velocity"], nodes)
        for name in ("velocity", "angular_momentum"):
            assert np.array_equal(tables.bodies[name], bodies[name])
        assert plant.energy_j().sum() == energy_j
        plant.apply(RotorEfficiency(1, None, 1.0))
        largest = 0.0
        for _ in range(400):
            session.advance(1)
            largest = max(largest, session.state.tension_n[0].max())
        assert largest > 3.0
        assert plant.spurious_energy_j < 0.01
        plant.apply(ReleaseHook(1, "load"))
        assert plant.hook_is_open(0)


@pytest.mark.parametrize("model", ["rigid_links", "massless", "elastic"])
def test_attach_waits_until_the_hook_is_close_and_slow(model):
    events = (
        {"kind": "release", "when": {"time_s": 0.1}, "cable": 1},
        {"kind": "attach", "when": {"event": "release", "after_s": 0.02}, "cable": 1,
         "distance_m": 0.5, "speed_m_s": 0.001},
    )  # fmt: skip
    with flight(*events, model=model) as session:
        session.advance(100)
        kinds = [e.kind for e in session.events.happened]
        assert "release" in kinds
        assert "attach" not in kinds
        assert session.plant.hook_is_open(0)


def test_same_events_same_bits():
    events = (
        {"kind": "release", "when": {"time_s": 0.1}, "cable": 1},
        {"kind": "attach", "when": {"event": "release"}, "cable": 1, "distance_m": 0.3,
         "speed_m_s": 3},
        {"kind": "cable_cut", "when": {"event": "attach", "after_s": 0.1}, "cable": 2},
    )  # fmt: skip
    ends = []
    for _ in range(2):
        with flight(*events, seconds=0.6) as session:
            ends.append((session.plant.positions.tobytes(), session.events.happened))
    assert ends[0] == ends[1]
    assert {"attach", "cable_cut"} <= {e.kind for e in ends[0][1]}


# ---------- Refusals


@pytest.mark.parametrize(
    ("model", "event", "words"),
    [
        ("rigid_links", {"kind": "attach", "cable": 1}, "two hooks on cable 1"),
        ("rigid_links", {"kind": "release", "cable": 9}, "cable 9, but there are 3"),
        ("rigid_rods", {"kind": "release"}, "release: the cable model 'rigid_rods' cannot"),
        ("rigid_rods", {"kind": "cable_cut", "cable": 1}, "choose cable_model: rigid_links or"),
    ],
)
def test_refused_before_the_flight_in_one_line(model, event, words):
    changes = {"estimation.kind": "truth"} if model == "rigid_rods" else {}
    with pytest.raises(ConfigError, match=words) as caught:
        flight({"when": {"time_s": 1.0}} | event, model=model, **changes)
    assert "\n" not in str(caught.value)
