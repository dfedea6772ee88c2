"""Layouts: what is declared once is what Python finds, what lies in memory and what stages open."""

import numba
import numpy as np
import pytest

from musls_bringup.catalogue.shipped import SCENARIOS
from musls_description.numerics.layout import Field, Gathered, Layout, Number
from musls_sim.batch.batch import Batch
from musls_sim.scenario.scenario import load_scenario
from musls_sim.session.compiled_stages.fields import ALONE, LAYOUT
from musls_sim.session.session import Session

BOARDS = "drones: [{level_tilt_rad: [0.02, 0.01], thrust_tilt_rad: [0.02, 0]}, {}, {}]"
FLIGHTS = {
    "late, tilted, weighed": (
        "circle",
        "cable_model=massless",
        "imperfections={setpoint_delay_s: 0.02, setpoint_jitter_s: 0.05, "
        f"command_latency_s: 0.012, {BOARDS}}}",
        "system.cables.load_cell={}",
        "aerodynamics=[downwash, ground_effect]",
    ),
    "payload": ("circle_payload", "cable_model=massless", "start=air"),
    "forces": ("circle_payload", "start=air", "autopilot.tracker=indi", "controller.output=direct"),
    "rods": ("rotortm_rods_circle6",),
    "strings": ("rotortm_cables_circle6",),
    "batteries": (
        "hold",
        "cable_model=massless",
        "system.drones.propulsion={motor: {speed_constant_rpm_v: 920, resistance_ohm: 0.1}, "
        "battery: {cells: 3, capacity_ah: 2}}",
    ),
    "losses": ("hexa_survives",),
    "winches and obstacles": ("winch_delivery",),
    "obstacles": ("gate",),
    "a crane": ("crane",),
    "a bridle": ("bridle", "cable_model=massless"),
    "its chains": ("bridle", "cable_model=rigid_links"),
}
BY_STAGES = {"rates", "own"}
"""Fields of commands from outside, and of somebody's own stages."""


def record_of(name, *keys):
    """Record of a flight that has begun, and its arrays by name."""
    session = Session(load_scenario(SCENARIOS / f"{name}.yaml", list(keys)))
    with session:
        session.advance(2)
        world = session._world
        return session, world._record, LAYOUT.arrays_of(session) | world._own


@pytest.fixture(scope="module")
def flights():
    return {name: record_of(*keys) for name, keys in FLIGHTS.items()}


def test_every_field_has_one_owner(flights):
    """A way that is misspelt would lead to nothing in any flight."""
    owners = [field.owner for field in LAYOUT.fields.values() if field.owner]
    assert len(owners) == len(set(owners))
    found = set().union(*(arrays for _, _, arrays in flights.values()))
    made = {name for name, field in LAYOUT.fields.items() if not field.owner}
    assert {name for name in LAYOUT.fields if name not in found | made} <= BY_STAGES
    numbers = [number.owner for number in LAYOUT.numbers.values() if number.owner]
    sessions = [session for session, _, _ in flights.values()]
    told = set().union(*(LAYOUT.numbers_of(session) for session in sessions))
    assert {n for n, number in LAYOUT.numbers.items() if number.owner} == told
    assert len(numbers) == len(set(numbers))


def opened(layout):
    """Compiled function that opens every field: address, bytes between two rows, shape."""
    from musls_description.numerics.records import address_of, record_at

    scope = {"record_at": record_at, "address_of": address_of, "RECORD": layout.record}
    lines = ["def opened(address, out):", "    w = record_at(address, RECORD)"]
    for k, field in enumerate(layout.fields.values()):
        if field.type is None:
            continue
        scope[field.name] = layout.opener(field.name)
        if field.shape:
            lines += [f"    a = {field.name}(w)", f"    out[{k}, 0] = a.ctypes.data"]
            lines += [f"    out[{k}, 1] = a.strides[0]"]
            lines += [f"    out[{k}, {2 + i}] = a.shape[{i}]" for i in range(len(field.shape))]
        else:
            lines += [f"    out[{k}, 0] = address_of({field.name}(w))"]
    exec("\n".join(lines), scope)
    return numba.njit(scope["opened"])


def check_opened(layout, function, record, arrays):
    """Compare what is opened with arrays by name; returns the names of those."""
    out = np.zeros((len(layout.fields), 6), np.int64)
    function(record.ctypes.data, out)
    seen = set()
    for field, (address, apart, *shape) in zip(layout.fields.values(), out.tolist(), strict=True):
        array = arrays.get(field.name)
        if field.type is None or array is None or not array.size:
            continue
        seen.add(field.name)
        assert address == array.ctypes.data, field.name
        if field.shape:
            assert tuple(shape[: array.ndim]) == array.shape, field.name
            assert apart == array.strides[0], field.name
    return seen


def test_every_field_is_opened_with_its_own_shape(flights):
    function = opened(LAYOUT)
    seen = set()
    for _, record, arrays in flights.values():
        seen |= check_opened(LAYOUT, function, record, arrays)
    assert len(seen) > 75


NEVER = {"laws", "compliance"}
"""Tables that these flights do not have."""


def test_every_table_of_a_plant_is_opened_with_its_own_shape(flights):
    plants = [session.plant for session, *_ in flights.values()]
    layouts = {plant.layout for plant in plants}
    assert len(layouts) == 3
    for layout in layouts:
        function = opened(layout)
        seen = set()
        for plant in plants:
            if plant.layout is layout:
                tables = vars(getattr(plant, plant.shape_table[0]))
                moving = {"moving": getattr(plant, "moving", None)}
                seen |= check_opened(layout, function, plant.record, tables | moving)
        assert layout.fields.keys() - seen <= NEVER


def test_tables_are_built_with_the_sizes_of_those_that_are_given():
    rows = Field("rows", ("n", 3), float, "rows")
    marks = Field("marks", ("n",), np.int64, "marks")
    some = Field("some", ("n_some", 3), float, "those that count", "rows")
    layout = Layout([Number("time", float, "time")], [rows, marks, some])
    memory, tables = layout.build({"rows": np.ones((2, 3)), "time": 3.0})
    system = tables.system
    assert memory.nbytes == layout.record.itemsize + 8 * (2 * 3 + 2)
    assert system["time"] == 3.0 and tables.marks.shape == (2,)
    assert system["marks"] == tables.marks.ctypes.data - memory.ctypes.data
    assert system["some"] == system["rows"] and system["n_some"] == 2
    with pytest.raises(AttributeError, match="no table other"):
        _ = tables.other


def test_a_batch_has_what_the_flight_has_but_what_is_for_flights_alone():
    scenario = load_scenario(SCENARIOS / "circle.yaml", ["cable_model=massless"])
    start, shared = Batch(scenario, worlds=1)._starts[0], {"reference", "rig_numbers"}
    with Session(scenario) as session:
        arrays = LAYOUT.arrays_of(session)
    here = {name for name in arrays if LAYOUT.fields[name].group != ALONE} - shared
    assert here <= set(start.parts)
    assert not any(LAYOUT.fields[name].group == ALONE for name in start.parts)
    for name in here:
        assert start.parts[name].shape == arrays[name].shape, name
        assert start.parts[name].tobytes() == arrays[name].tobytes(), name


SMALL = Layout(
    [Number("time", float, "time"), Number("place", (float, 3), "place", "at")],
    [
        Field("rows", ("n", 3), float, "rows", "table"),
        Field("firsts", ("n",), float, "their first column", "table.first", apart="width"),
        Field("marks", ("n",), np.int64, "marks"),
    ],
)


def test_arrays_are_checked_when_they_are_placed():
    record, rows = np.zeros(1, SMALL.record), np.arange(12.0).reshape(4, 3)
    SMALL.fill(record, {"rows": rows, "firsts": rows[:, 0], "time": 2.0, "place": (1, 2, 3)})
    assert (record["n"], record["width"], record["time"]) == (4, 3, 2.0)
    assert record["rows"] == rows.ctypes.data - record.ctypes.data
    assert SMALL.zeros("marks", record).shape == (4,)
    wrong = {"rows": rows[:, :2].copy()}, {"rows": rows.astype(int)}, {"rows": rows[:, ::-1]}
    for values in (*wrong, {"rows": rows, "marks": np.zeros(3, np.int64)}):
        with pytest.raises(ValueError, match=r"^(rows|marks): "):
            SMALL.fill(record, values)


def test_arrays_that_share_memory_share_it_in_one_piece():
    whole = np.arange(10.0)
    one = Gathered({"a": whole[2:5], "b": whole, "c": whole[3:9:2], "d": np.ones(3, bool)})
    assert len(one.memory) == 11 and (one.views["c"] == [3.0, 5.0, 7.0]).all()
    one.views["b"][3] = -1.0
    assert one.views["a"][1] == one.views["c"][0] == -1.0 and whole[3] == 3.0
    whole[:] = 0.0
    one.read(one.memory)
    assert not one.views["b"].any() and one.views["d"].all()
