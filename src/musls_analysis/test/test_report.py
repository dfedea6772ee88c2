import json
import re
import shutil

import numpy as np
import pytest
from PIL import Image

from musls_analysis.comparison.summary import summarise
from musls_analysis.figures.flight import write_for_paper
from musls_analysis.recordings.bag import read_bag
from musls_analysis.recordings.recording import PoseTrack, RecordedStage, Recording
from musls_analysis.report.report import number, write_report
from musls_analysis.scene import Subject
from musls_description.config.schema import build, to_data
from musls_description.system.system_files import load_system
from musls_sim.scenario.scenario import Scenario

SPEED = {"sim_time_s": 75.0, "real_time_factor": 25.73, "steps": 18750, "links_per_cable": [15] * 3}


HAPPENED = {
    "separation": {"time_s": 12.34, "pair": [1, 3], "centres_m": 1.25, "tips_m": 0.41},
    "events": [{"time_s": 20.0, "kind": "drone_lost", "what": "drone_1: all motors stopped"}],
}


@pytest.fixture(scope="module")
def recording(flight_bag):
    return read_bag(flight_bag)


@pytest.fixture(scope="module")
def report(recording, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report") / "new"
    scenario = build(
        Scenario,
        {
            "name": "test",
            "description": "A <circle>",
            "system": to_data(load_system("x500_trio")),
            "mission": {"stages": [{"kind": "circle", "radius_m": 1.5}]},
        },
        "test",
    )
    summary = summarise(recording) | SPEED | HAPPENED | {"seed": 42}
    again = "./musls fly scenario.yaml --out again"
    page = write_report(recording, summary, folder, scenario, again)
    return folder, summary, page.read_text("utf-8")


def test_summary_is_json_and_agrees_with_the_flight(recording, made_up_flight):
    f, summary = made_up_flight, summarise(recording, slack_threshold_n=0.5)
    assert json.loads(json.dumps(summary)) == summary
    k = (f.time_s >= 15.0) & (f.time_s < 60.0)
    held = np.arange(len(f.time_s)) // 10 * 10
    for body in f.actual:
        away = np.linalg.norm(f.actual[body][0] - f.wanted[body][0][held], axis=1)[k]
        entry = summary["errors"][body]["circle"]
        assert entry["translational_error_m"] == pytest.approx(away.mean())
        assert entry["translational_error_max_m"] == pytest.approx(away.max())
    for i, cable in enumerate(summary["cables"].values()):
        assert cable["max_tension_n"] == pytest.approx(f.tension[i].max())
        assert cable["slack_fraction"] == pytest.approx((f.tension[i][:, 0] < 0.5).mean())
        assert cable["stages"]["circle"]["slack_fraction"] == 0.0
        assert cable["stages"]["spool_up"]["slack_fraction"] == 1.0


def test_report_shows_the_numbers(report):
    _, summary, html = report
    circle = summary["errors"]["load"]["circle"]
    assert f">{1000 * circle['translational_error_m']:.1f}</td>" in html
    assert f">{circle['geodesic_error_deg']:.2f}</td>" in html
    assert f"<b>{summary['cables']['cable_2']['max_tension_n']:.2f}</b>" in html
    again = "./musls fly scenario.yaml --out again"
    facts = ("25.7 ×", "18\u202f750", "<td>42</td>", "1.66 kg", "15 links", "radius_m: 1.5")
    closest = "1 and 3 at 12.3 s: rotor tips 0.41 m apart, centres 1.25 m"
    event = "<th>drone lost at 20.00 s</th><td>drone_1: all motors stopped</td>"
    for text in (*facts, again, closest, event):
        assert text in html
    for stage in summary["stages"]:
        assert f"<tr><th>{stage['name'].replace('_', ' ')}</th>" in html


def test_report_is_self_contained_and_escapes_text(report):
    _, _, html = report
    assert not re.search(r"https?://|<script[^>]* src|<link|@import|url\(", html)
    data = json.loads(re.search(r'id="flight-data">(.*?)</script>', html, re.DOTALL)[1])
    titles = [panel["title"] for panel in data["panels"]]
    assert {"height [m]", "largest tension [N]", "rotors [rpm]", "yaw [°]"} < set(titles)
    assert "A &lt;circle&gt;" in html and "<circle>" not in html
    assert len(html) < 5_000_000


@pytest.fixture(scope="module")
def figures(recording, tmp_path_factory):
    folder = tmp_path_factory.mktemp("figures")
    write_for_paper(recording, summarise(recording), folder, ["png"])
    return folder


def test_figures_are_pictures_with_ink(figures):
    files = sorted(figures.glob("*.png"))
    assert [p.stem for p in files] == [
        "paths_3d", "pose_drone_1", "pose_drone_2", "pose_drone_3", "pose_load", "rotors",
        "stage_errors", "tensions", "top_view",
    ]  # fmt: skip
    for path in files:
        picture = np.asarray(Image.open(path).convert("L"))
        assert 0.01 < (picture < 200).mean() < 0.5, path


def test_every_pose_figure_shows_its_own_body(figures):
    for body, rgb in (("load", (0xD5, 0x5E, 0)), ("drone_1", (0, 0x72, 0xB2))):
        picture = np.asarray(Image.open(figures / f"pose_{body}.png").convert("RGB"))
        assert np.all(picture == rgb, axis=-1).sum() > 1000


def test_another_recording_is_laid_over_it(recording, tmp_path):
    later = Subject(recording, load_system("x500_trio"), "later", shift_s=2.0)
    names = ["pose_load", "tensions"]
    written = write_for_paper(
        recording, summarise(recording), tmp_path, ["png"], names, 0.088, other=later
    )
    for path in written:
        picture = np.asarray(Image.open(path).convert("RGB"))
        assert np.all(picture == (0x4D, 0x7C, 0x0F), axis=-1).sum() > 300, path


def test_a_bare_recording_still_gives_a_report(tmp_path):
    """No set-points, cables, rotors or further knowledge; the report leaves them out."""
    t = np.arange(100) / 50.0
    track = PoseTrack(t, np.column_stack([t, t, t]), np.tile([1.0, 0, 0, 0], (100, 1)))
    recording = Recording(
        {"load": track, "drone_1": track}, stages=(RecordedStage("flight", 0.0, 1.98),)
    )
    html = write_report(recording, summarise(recording), tmp_path).read_text("utf-8")
    assert "Errors against" not in html and "Cable tension" not in html
    assert "height [m]" in html and not (tmp_path / "figures").exists()


def test_errors_of_zero_can_be_drawn(tmp_path):
    """A flight without any error has no place on a logarithmic axis."""
    t = np.arange(100) / 50.0
    track = PoseTrack(t, np.zeros((100, 3)), np.tile([1.0, 0, 0, 0], (100, 1)))
    recording = Recording(
        {"load": track}, {"load": track}, stages=(RecordedStage("flight", 0.0, 1.98),)
    )
    written = write_for_paper(recording, summarise(recording), tmp_path, ["svg"])
    assert [path.stem for path in written] == ["paths_3d", "top_view", "stage_errors", "pose_load"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(25.73, "25.7"), (0.004, "0.004"), (1234.5, "1234"), (18750, "18\u202f750"), (0.0, "0"),
     (15, "15"), (0.00001234, "0.0000123"), (999.6, "1000"), (100.0, "100")],
)  # fmt: skip
def test_numbers_for_people(value, text):
    assert number(value) == text


def test_no_picture_is_inverted_and_a_wide_table_shows_that_it_goes_on(report):
    """Colours of pictures are scales; a shadow at a table's edge lies behind what scrolls."""
    text = report[2]
    assert "invert(" not in text
    table = re.search(r"\.panel:has\(table\) \{(.*?)\}", text, re.S)[1]
    assert table.count("no-repeat local") == table.count("no-repeat scroll") == 2


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

PLACES = """() => ['space', 'curves', 'over-time'].map(name => {
  const box = document.getElementById(name).getBoundingClientRect();
  return [box.left, box.top, box.width, box.height]; })"""


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_flight_in_space_and_curves_fill_the_same_height(report, scheme):
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: apt install chromium")
    software = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=software)
        page = browser.new_page(viewport={"width": 1400, "height": 900}, color_scheme=scheme)
        page.goto((report[0] / "report.html").as_uri())
        page.wait_for_selector("html[data-live=ready]")
        space, curves, over_time = page.evaluate(PLACES)
        assert space[1] == curves[1] and space[3] == curves[3] > 500
        assert space[2] == pytest.approx(curves[2], abs=1.0) and space[2] > 600
        assert over_time[3] > curves[3], "they scroll"
        assert page.evaluate("document.documentElement.scrollWidth") == 1400
        scale = page.evaluate("document.getElementById('space').data.at(-1).line.colorscale[3]")
        assert scale == [0.4, "#9c179e"], "the same in both schemes"
        page.set_viewport_size({"width": 600, "height": 900})
        page.wait_for_function("document.getElementById('space').clientHeight < 410")
        _, curves, over_time = page.evaluate(PLACES)
        assert curves[3] >= over_time[3], "on a phone the page scrolls, not the curves"
        browser.close()
