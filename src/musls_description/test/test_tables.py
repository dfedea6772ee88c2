from dataclasses import dataclass

import numpy as np

from musls_description.system.drone import Box
from musls_description.system.system_files import load_system
from musls_description.tables import MAX_ROWS, Rows, ShownResult, Table, vector


@dataclass
class Moment:
    name: str
    time_s: float
    seed: int = 3


@dataclass(repr=False)
class Series(ShownResult):
    time_s: np.ndarray
    place: str | None = None


def test_columns_line_up_and_html_is_escaped():
    table = Table(("body", "mean [m]"), [("load", "0.25"), ("<b>", "12.5")])
    assert str(table).splitlines() == ["body  mean [m]", "load      0.25", "<b>       12.5"]
    assert table.html().count("<tr>") == 3 and "&lt;b&gt;" in table.html()


def test_records_as_rows_that_stay_a_tuple():
    rows = Rows([Moment("lift", 0.5), Moment("hold", np.float64(2.0 / 3.0))])
    assert rows == (Moment("lift", 0.5), Moment("hold", 2.0 / 3.0))
    lines = ["in all rows seed = 3", "name  time_s", "lift     0.5", "hold  0.6667"]
    assert str(rows).splitlines() == lines
    assert repr(Rows()) == "none" and Rows()._repr_html_() == "<p>none</p>"
    assert (
        "1" in str(Rows([{"a": 1, "b": None}])) and "<td>1</td>" in Rows([{"a": 1}])._repr_html_()
    )
    assert repr(Rows([Moment(str(k), k) for k in range(MAX_ROWS + 7)])).endswith("... and 7 more")


def test_arrays_by_shape_and_range():
    text = repr(Series(np.array([0.0, np.nan, 2.5])))
    assert "time_s" in text and "(3,)" in text and "2.5" in text and "place" not in text
    assert "-" in repr(Series(np.array([np.nan])))
    assert vector([-1e-9, 1.0]) == "0.000 1.000"


def test_specifications_say_what_was_given():
    assert repr(Box(size_m=(1, 2, 3))) == "Box(size_m=(1.0, 2.0, 3.0))"
    system = load_system("x500_trio_unequal")
    assert "array(" not in repr(system) and "mass of each [kg]" in repr(system)
    for drone in system.drones:  # what is shown makes the same again
        assert "propulsion" not in repr(drone)
    for name in ("cdpr_winches", "rotortm_single", "crane"):
        assert "<table>" in load_system(name)._repr_html_()
