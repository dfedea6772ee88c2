"""Downwash and ground effect against momentum theory, published formulas and sums of momentum."""

import dataclasses
import math
from typing import Literal

import numpy as np
import pytest

import musls
from musls_description.system.drone import Box, BoxShape
from musls_description.system.system_files import load_system
from musls_sim.plants.interface import PlantState, RotorEfficiency
from musls_sim.scenario.aerodynamics import (
    WAKE,
    Air,
    Downwash,
    GroundEffect,
    add_downwash,
    add_ground_effect,
    find_wakes,
    wake_velocity,
)

RHO, RADIUS_M, THRUST_N = 1.225, 0.127, 5.0
DISC_M2 = math.pi * RADIUS_M**2
INDUCED_M_S = math.sqrt(THRUST_N / (2.0 * RHO * DISC_M2))
GROWTH = Downwash().growth
HUB_M = 0.06  # above the x500's centre of mass

pure = dataclasses.replace(Downwash(propeller_radius_m=RADIUS_M), drone_drag=0.0, solidity=0.0)


def air_around(heights_m, *, rotors=4, load_m=(0.3, 0.3, 0.1), wind=(0.0, 0.0, 0.0)):
    """A load at the origin and x500s on its axis; so many rotors of each give 5 N."""
    system, n = load_system("x500_trio"), len(heights_m)
    load = dataclasses.replace(
        system.load,
        shape=BoxShape(size_m=load_m),
        inertia_kg_m2=((0.0,) * 3,) * 3,
        collision=Box(size_m=load_m),
        cable_attachments_m=((0.0, 0.0, 0.0),) * n,
    )
    drones, cables = system.drones[:1] * n, system.cables[:1] * n
    system = dataclasses.replace(system, load=load, drones=drones, cables=cables)
    state = PlantState.zeros(system)
    state.position_enu_m[1:, 2] = heights_m
    k = drones[0].rotors[0].thrust_coefficient_n_s2
    state.rotor_speed_rad_s[:, :rotors] = math.sqrt(THRUST_N / k)
    return Air(system, state, np.array(wind, float))


def wrench_of(model, air):
    """Moments and forces on load and drones, their frames, (1 + n, 6)."""
    wrench, own = np.zeros((1 + air.system.n_drones, 6)), model.build(air)
    acts = air.state.motion, air.rotors, air.state.rotor_speed_rad_s
    if isinstance(model, GroundEffect):
        add_ground_effect(*acts, own["near_ground"], own["grounds"], wrench)
    else:
        law = own["downwash"][0]
        add_downwash(*acts, air.wind_enu_m_s, law, own["wakes"], own["wake_cells"], wrench)
    return wrench


def speed_below(z_m, off_m=0.0, wakes=1):
    """Speed of so many wakes of the same rotor below its disc."""
    table = np.zeros(wakes, WAKE)
    table["axis"], table["radius"], table["drone"] = (0.0, 0.0, -1.0), RADIUS_M, 1
    table["momentum"] = 2.0 * THRUST_N / (math.pi * RHO)
    return -wake_velocity(table, np.arange(wakes), (off_m, 0.0, -z_m), GROWTH)[2]


def test_wake_has_the_speeds_of_momentum_theory():
    assert speed_below(0.0) == pytest.approx(INDUCED_M_S)
    assert speed_below(4.0 * RADIUS_M) == pytest.approx(2.0 * INDUCED_M_S, rel=0.12)
    assert speed_below(-8.0 * RADIUS_M) < 0.01 * INDUCED_M_S
    # Jet of a thrust: 5.8 to 6.1 diameters of a nozzle over the distance (Pope 2000, sec. 5.1).
    far_m = 30.0
    nozzle = 6.0 * math.sqrt(4.0 / math.pi) * math.sqrt(THRUST_N / RHO) / far_m
    assert speed_below(far_m) == pytest.approx(nozzle, rel=0.06)
    half_m = math.hypot(RADIUS_M, GROWTH * far_m)
    peak = math.sqrt(2.0 * THRUST_N / (math.pi * RHO)) / half_m
    assert speed_below(far_m, half_m) == pytest.approx(peak / math.e, rel=1e-4)


@pytest.mark.parametrize("wakes", [1, 4])
@pytest.mark.parametrize("z_m", [1.0, 3.0, 20.0])
def test_wake_carries_the_momentum_of_the_thrust(z_m, wakes):
    radii = np.linspace(0.0, 5.0 * (RADIUS_M + GROWTH * z_m), 400)
    squared = [speed_below(z_m, r, wakes) ** 2 * r for r in radii]
    force_n = RHO * 2.0 * math.pi * np.trapezoid(squared, radii)
    assert force_n == pytest.approx(wakes * THRUST_N, rel=0.01)


@pytest.mark.parametrize(("drag", "taken"), [(2.0, 1.0), (1.1, 0.55), (0.0, 0.0)])
def test_a_wide_load_takes_the_momentum_that_it_turns(drag, taken):
    air = air_around([1.5], load_m=(3.0, 3.0, 0.01))
    wrench = wrench_of(dataclasses.replace(pure, load_drag=drag), air)
    assert wrench[0, 5] == pytest.approx(-taken * 4.0 * THRUST_N, rel=0.02, abs=1e-9)
    assert wrench[0, :5] == pytest.approx(0.0, abs=1e-9)
    assert not wrench[1].any()  # not in its own wake


def test_a_small_load_feels_the_drag_of_the_air_at_its_place():
    air = air_around([1.0], load_m=(0.02, 0.02, 0.02))
    sideways = math.hypot(0.174, 0.174)
    speed = math.sqrt(4.0) * speed_below(1.0 + HUB_M, sideways)
    pressed = 0.5 * RHO * 1.1 * 0.02**2 * speed**2
    assert wrench_of(pure, air)[0, 5] == pytest.approx(-pressed, rel=1e-6)


def test_one_rotor_off_the_middle_turns_the_load():
    air = air_around([0.5], rotors=1)  # ahead, right
    moment, force = wrench_of(pure, air)[0].reshape(2, 3)
    assert force[2] < -0.2 and moment[0] > 0.0 and moment[1] > 0.0
    assert moment[0] == pytest.approx(moment[1])


def test_wind_carries_the_wake_off():
    # One wake: it goes along 2 v down and the wind.
    wind = 0.5 * 2.0 * INDUCED_M_S
    air = air_around([1.0], rotors=1, load_m=(0.01, 0.01, 0.01), wind=(-wind, 0.0, 0.0))
    below = air.state.position_enu_m
    x = np.linspace(-1.0, 0.5, 301)
    pressed = []
    for place in x:
        below[0] = (place, -0.174, 0.0)
        pressed.append(wrench_of(pure, air)[0, 5])
    assert x[np.argmin(pressed)] == pytest.approx(0.174 - 0.5 * (1.0 + HUB_M), abs=0.05)


def test_drag_in_a_wake_damps_a_swing():
    """Across a wake w the drag of a slow body is linear: rho C A w / 2 times its speed."""
    size_m, speed = 0.02, 0.1
    air = air_around([1.0], load_m=(size_m,) * 3)
    air.state.velocity_enu_m_s[0, 0] = speed
    wake = 2.0 * speed_below(1.0 + HUB_M, math.hypot(0.174, 0.174))
    damping = 0.5 * RHO * 1.1 * size_m**2 * (wake - speed)  # that without a wake is not counted
    assert -wrench_of(pure, air)[0, 3] / speed == pytest.approx(damping, rel=0.02)


def test_rotors_in_a_wake_give_the_thrust_of_blades_and_momentum():
    model = dataclasses.replace(pure, solidity=0.1, load_drag=0.0)
    air = air_around([3.0, 1.0])
    lost = -wrench_of(model, air)[2, 5] / (4.0 * THRUST_N)
    # The rotor's own inflow that makes blade elements and momentum agree, by bisection.
    omega = air.state.rotor_speed_rad_s[0, 0]
    tip, s = omega * RADIUS_M, 0.1 * 5.7 / 4.0
    side, across = 0.348, math.hypot(0.348, 0.348)
    w = math.sqrt(sum(speed_below(2.0, r) ** 2 for r in (0.0, side, side, across))) / tip
    coefficient = THRUST_N / (RHO * DISC_M2 * tip**2)
    theta = coefficient / s + math.sqrt(coefficient / 2.0)
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        blades, momentum = s * (theta - middle - w), 2.0 * middle * (middle + w)
        low, high = (middle, high) if blades > momentum else (low, middle)
    assert 0.1 < lost < 0.6
    assert lost == pytest.approx(1.0 - blades / coefficient, rel=1e-6)


def test_a_single_rotor_near_the_ground_follows_cheeseman_and_bennett():
    model = GroundEffect(body_lift=0.0, propeller_radius_m=RADIUS_M)
    for over_radius in (0.5, 1.0, 2.0, 4.0):
        air = air_around([over_radius * RADIUS_M - HUB_M])
        # Rotors far from each other: only their own images are left.
        air.rotors["place"][..., :2] *= 1e3
        more = wrench_of(model, air)[1, 5] / (4.0 * THRUST_N)
        assert 1.0 + more == pytest.approx(1.0 / (1.0 - (0.25 / over_radius) ** 2), rel=1e-6)


@pytest.mark.parametrize("z_m", [0.1, 0.3, 1.0])
def test_a_quadrotor_near_the_ground_follows_sanchez_cuevas(z_m):
    air, r, d = air_around([z_m - HUB_M]), RADIUS_M, 0.348
    b, body_lift = math.sqrt(2.0) * d, 2.0
    taken = (
        (r / (4.0 * z_m)) ** 2
        + r**2 * z_m / math.sqrt((d**2 + 4.0 * z_m**2) ** 3)
        + 0.5 * r**2 * z_m / math.sqrt((2.0 * d**2 + 4.0 * z_m**2) ** 3)
        + 2.0 * r**2 * z_m / math.sqrt((b**2 + 4.0 * z_m**2) ** 3) * body_lift
    )
    found = wrench_of(GroundEffect(propeller_radius_m=RADIUS_M), air)[1]
    assert found[5] == pytest.approx(4.0 * THRUST_N * (1.0 / (1.0 - taken) - 1.0), rel=1e-6)
    assert found[:5] == pytest.approx(0.0, abs=1e-12)


def test_a_failed_rotor_has_no_wake_and_no_ground():
    air = air_around([0.5])
    before = wrench_of(pure, air)
    air.apply(RotorEfficiency(1, None, 0.0))
    for model in (Downwash(), GroundEffect()):
        assert not wrench_of(model, air).any()
    air.apply(RotorEfficiency(1, None, 1.0))
    assert np.array_equal(wrench_of(pure, air), before)


# ---------- In flights


@musls.aerodynamics.register("updraught")
@musls.spec
class Updraught(musls.AerodynamicModel):
    """Lifts the load by a force.

    Attributes:
        force_n: Upward.
    """

    kind: Literal["updraught"] = "updraught"
    force_n: float = 3.0

    def build(self, air):
        def add(wrench):
            wrench[0, 5] += self.force_n

        return add


@pytest.mark.parametrize("model", ["rigid_links", "massless", "rigid_rods", "elastic"])
def test_a_force_of_the_air_moves_every_plant_as_a_push_does(model):
    def poke(force_n, time_s, duration_s):
        return {
            "kind": "poke",
            "when": {"time_s": time_s},
            "duration_s": duration_s,
            "force_enu_n": [0, 0, force_n],
        }

    def fly(changes, periods=60):
        given = {"cable_model": model, "system.cables.links": 4}
        with musls.Session(musls.load_scenario("hold", given | changes)) as session:
            session.advance(periods)
            return session.state.motion.copy(), session.inputs.wrench_enu.copy()

    lifted = {"aerodynamics": [{"kind": "updraught", "force_n": 3.0}]}
    of_air, _ = fly(lifted)
    pushed, _ = fly({"events": [poke(3.0, 0.0, 9.0)]})
    assert np.array_equal(of_air, pushed)
    assert not np.allclose(of_air, fly({})[0], atol=1e-3)
    for periods, force_n in ((20, 2.0), (40, 3.0)):  # a push for a while beside the air's
        both = fly(lifted | {"events": [poke(-1.0, 0.04, 0.08)]}, periods)[1]
        assert both[0, 5] == pytest.approx(force_n)


def test_what_is_wrong_is_named():
    air = [{"kind": "downwash", "propeller_radius_m": RADIUS_M}]
    with pytest.raises(musls.ConfigError, match="load_drag"):
        musls.load_scenario("hold", {"aerodynamics": [{"kind": "downwash", "load_drag": 3}]})
    with pytest.raises(musls.ConfigError, match="unknown aerodynamic model 'downwosh'"):
        musls.load_scenario("hold", {"aerodynamics": ["downwosh"]})
    with pytest.raises(musls.ConfigError, match="aerodynamics: downwash is there twice"):
        musls.Session(musls.load_scenario("hold", {"aerodynamics": [*air, "downwash"]}))
    stage = r"aerodynamics = updraught: needs the stage .own_aerodynamics. in Python"
    own = {"cable_model": "massless", "aerodynamics": [*air, {"kind": "updraught"}]}
    with pytest.raises(musls.ConfigError, match=stage):
        musls.Batch(musls.load_scenario("hold", own))


@pytest.mark.parametrize("kind", ["downwash", "ground_effect"])
@pytest.mark.parametrize(
    ("radius_m", "message"),
    [(1e-6, "ideal ones need 6.*e.04 times the power .* at least 0.066 m"), (5.0, "hub beside")],
)
def test_propellers_that_nobody_can_build_are_refused(kind, radius_m, message):
    """A figure of merit above 1 (x500: sqrt(k / (2 rho pi)) / c R), or blades through a hub."""
    air = [{"kind": kind, "propeller_radius_m": radius_m}]
    with pytest.raises(musls.ConfigError, match=message):
        musls.Session(musls.load_scenario("hold", {"aerodynamics": air}))


def test_wakes_that_are_left_out_are_not_felt():
    """At random places of a body of 0.3 m, beside wakes of 40 rotors that lean."""
    draw = np.random.default_rng(3)
    table = np.zeros(40, WAKE)
    table["radius"], table["drone"] = RADIUS_M, 1
    table["momentum"] = 2.0 * THRUST_N / (math.pi * RHO)
    near, reach_m, counts = np.empty(len(table), np.int64), 0.3, []
    for _ in range(100):
        table["hub"] = draw.uniform(-2.0, 2.0, (len(table), 3))
        axes = draw.normal((0.0, 0.0, -3.0), 1.0, (len(table), 3))
        table["axis"] = axes / np.linalg.norm(axes, axis=1, keepdims=True)
        counts.append(find_wakes(table, 2, np.zeros(3), reach_m, GROWTH, near))
        away = draw.normal(size=3)
        point = tuple(reach_m * draw.uniform() * away / np.linalg.norm(away))
        chosen = wake_velocity(table, near[: counts[-1]], point, GROWTH)
        assert chosen == pytest.approx(
            wake_velocity(table, np.arange(len(table)), point, GROWTH), abs=1e-3
        )
    assert find_wakes(table, 1, np.zeros(3), reach_m, GROWTH, near) == 0  # its own
    assert 2 < np.mean(counts) < 20
