"""The massless model in CasADi against the compiled plant."""

import numpy as np
import pytest

import musls
from musls_sim.plants.interface import PlantInputs
from musls_sim.session.session import Session

pytest.importorskip("casadi")


@pytest.mark.parametrize("name", ["solo", "duo", "circle", "hexa", "rotortm_single_circle6"])
def test_rates_and_tensions_are_those_of_the_compiled_plant(name):
    scenario = musls.load_scenario(name, {"cable_model": "massless", "start": "air"})
    rng = np.random.default_rng(3)
    with Session(scenario) as session:
        plant, system = session.plant, scenario.system
        functions = musls.symbolic(system, gravity_m_s2=scenario.physics.gravity_m_s2)
        local, trim = plant.local_state(), plant.state.rotor_speed_rad_s.copy()
        n, size = system.n_drones, len(local.names)
        turns = slice(3, None) if system.load.point_mass else slice(None)
        hover = scenario.physics.gravity_m_s2 * (system.load.mass_kg / n + system.drones[0].mass_kg)
        for _ in range(20):
            shift, rates = 0.2 * rng.standard_normal(size), 0.5 * rng.standard_normal(size)
            kept = np.zeros(size)
            kept[turns] = 1.0
            held, wind = PlantInputs.zeros(system), rng.standard_normal(3)
            held.wind_enu_m_s[:] = wind
            u = rng.standard_normal((n, 4)) * [1.0, 0.1, 0.1, 0.1] + [1.5 * hover, 0, 0, 0]
            for speeds in (np.zeros_like(trim), trim * rng.uniform(1.1, 1.4, trim.shape)):
                spun = bool(speeds.any())
                held.wrench_body[1:, 5] = 0.0 if spun else u[:, 0]
                held.wrench_body[1:, :3] = 0.0 if spun else u[:, 1:]
                local.move(kept * shift, kept * rates)
                plant.state.rotor_speed_rad_s[:] = speeds
                held.rotor_command_rad_s[:] = speeds
                y = plant.records.bodies["state"]
                x = np.hstack([y[f] for f in ("position", "attitude", "velocity", "omega")]).ravel()
                local.advance(held, 0.0)
                rate = plant.records.bodies["rate"]
                flown = np.hstack(
                    [rate[f] for f in ("position", "attitude", "velocity", "omega")]
                ).ravel()
                tension = plant.records.cables["tension"]
                assert (tension > 0.0).all()  # else the plant has let a cable go slack
                if spun:
                    found = functions.rotor_dynamics(x, speeds.ravel(), wind)
                else:
                    found = functions.dynamics(x, u.ravel(), wind)
                    told = np.array(functions.tensions(x, u.ravel(), wind)).ravel()
                    np.testing.assert_allclose(told, tension, rtol=1e-12, atol=1e-12)
                scale = np.abs(flown).max()
                np.testing.assert_allclose(
                    np.array(found).ravel(), flown, rtol=0.0, atol=1e-12 * max(scale, 1.0)
                )
                gap, opening = (np.array(value) for value in functions.stretch(x))
                assert np.abs(gap).max() < 1e-12 and np.abs(opening).max() < 1e-12


def test_a_rig_has_no_such_model():
    with pytest.raises(musls.ConfigError, match="symbolic"):
        musls.symbolic("crane")
