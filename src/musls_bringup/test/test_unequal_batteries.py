"""Drones that differ in battery and motor: who runs out first, what the others feel."""

import pytest

import musls
from musls_bringup.before.verdict import judge, look
from musls_description.config.schema import to_data, to_yaml
from musls_description.system.system_files import load_system


@pytest.fixture
def trio(tmp_path):
    """Makes a scenario from the charge of the small battery."""

    def made(start_charge):
        file = tmp_path / "unequal.yaml"
        file.write_text(to_yaml(described(start_charge)))
        return musls.load_scenario(file)

    return made


def described(start_charge):
    """Three delivery drones; the second has a small battery, the third a slower motor."""
    system = to_data(load_system("delivery"))
    (drone,) = system["drones"]
    small = {"capacity_ah": 1.0, "resistance_ohm": 0.05, "start_charge": start_charge}
    power = drone["propulsion"]
    other = {**drone, "propulsion": {**power, "battery": {**power["battery"], **small}}}
    slow = {**power["motor"], "speed_constant_rpm_v": 130.0}
    system["drones"] = [drone, other, {**drone, "propulsion": {**power, "motor": slow}}]
    for each in system["drones"]:  # follow from the propulsion
        for rotor in each["rotors"]:
            for key in ("thrust_coefficient_n_s2", "moment_ratio_m", "speed_max_rad_s"):
                rotor.pop(key, None)
    places = [[0.2, 0.0, 0.1], [-0.1, 0.173, 0.1], [-0.1, -0.173, 0.1]]
    system["load"] |= {"mass_kg": 4.0, "cable_attachments_m": places}
    system["cables"] = system["cables"] * 3
    return {
        "system": {**system, "name": "unequal"}, "cable_model": "massless", "start": "air",
        "formation": {"radius_m": 1.6, "height_m": 2.6},
        "mission": {"stages": [{"kind": "hold", "position_m": [0, 0, 3], "duration_s": 2.0}]},
    }  # fmt: skip


def test_check_names_the_drone_that_runs_out_first(trio):
    _, found = look(trio(start_charge=1.0))
    first, second, third = found.formation
    assert found.first_empty == (2, second.minutes)
    assert second.minutes == pytest.approx(first.minutes / 10.0, rel=0.03)  # sag of 1.2 V of 48
    assert second.thrust_margin == pytest.approx(
        first.thrust_margin, rel=1e-4
    )  # at the nominal voltage
    assert second.empty_margin < first.empty_margin - 0.05  # its battery sags more
    assert third.thrust_margin < first.thrust_margin - 0.3  # 13 % slower at the same voltage
    assert any("drone_2" in line for line in judge(trio(0.01)).problems)


def test_the_one_with_the_small_battery_falls_first(trio):
    with pytest.warns(UserWarning, match="the battery of drone_2 lasts for"):
        run = musls.fly(trio(start_charge=0.01))
    (empty,) = [event for event in run.events if event.kind == "battery_empty"]
    assert empty.what == "drone_2"
    assert 1.0 < empty.time_s < 1.8
    power_w = []
    for drone in (1, 2, 3):
        battery = run.battery(drone)
        flown = (battery.time_s > 0.2) & (battery.time_s < empty.time_s - 0.04)
        power_w.append((battery.voltage_v * battery.current_a)[flown].mean())
    assert power_w == pytest.approx([power_w[0]] * 3, rel=0.02)  # equal thrust, equal power
    assert run.battery(2).charge[-1] == 0.0
    assert run.battery(1).charge[-1] > 0.99
    down = [run.body(f"drone_{i}").position_enu_m[[0, -1], 2] for i in (1, 2, 3)]
    drop = [before - after for before, after in down]
    assert drop[1] > 0.5 and max(drop[0], drop[2]) < 0.3
