"""`musls studio` over HTTP and in a browser: what is served, to whom, flights from its page."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from time import monotonic, sleep
from urllib.error import HTTPError
from urllib.parse import quote_plus
from urllib.request import HTTPCookieProcessor, Request, build_opener, install_opener, urlopen

import pytest

from musls_bringup.cli import main
from musls_description.config.errors import ConfigError

pytest.importorskip("dash")
from musls_bringup.studio import app as studio


@pytest.fixture
def invitation(here, older_result):
    """Address with its token of a server whose runs are "old" and "older"."""
    for name in ("old", "older"):
        shutil.copytree(older_result, here / "runs" / name)
    server, address = studio.start(here / "runs", 0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield address
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def site(invitation):
    """Address of the server for who was let in once and keeps cookies, as browsers do."""
    install_opener(build_opener(HTTPCookieProcessor()))
    get(invitation)
    yield invitation.partition("/?")[0]
    install_opener(build_opener())


def get(address, **headers):
    with urlopen(Request(address, headers=headers)) as answer:
        return answer.read().decode()


def refusal(address, **headers):
    with pytest.raises(HTTPError) as refused:
        get(address, **headers)
    refused.value.close()
    return refused.value.code


def callback(site, outputs, inputs, changed, state=()):
    """Do what the browser does when something changes; returns the outputs by id and property."""
    split = [name.split(".") for name in outputs]
    body = {
        "output": f"..{'...'.join(outputs)}..",
        "outputs": [{"id": i, "property": p} for i, p in split],
        "inputs": [{"id": i, "property": p, "value": v} for i, p, v in inputs],
        "state": [{"id": i, "property": p, "value": v} for i, p, v in state],
        "changedPropIds": [changed],
    }
    request = Request(
        f"{site}/_dash-update-component", json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )  # fmt: skip
    with urlopen(request) as answer:
        found = json.load(answer)["response"]
    return [found.get(i, {}).get(p) for i, p in split]


def test_it_serves_runs_and_nothing_else(site):
    assert "musls studio" in get(site)
    page = get(f"{site}/run?show=old&with=older")
    assert "(2, dotted) older" in page and not re.search(r"(?:src|href)=.?https?:", page)
    assert '"distance between the two [mm]"' in page
    for wrong in ("/run?show=..", "/run?show=../runs/old", "/assets/tiny.yaml"):
        assert refusal(site + wrong) == 404
    assert "a test" not in get(f"{site}/tiny.yaml")  # an unknown path shows the page itself
    assert refusal(site, Host="elsewhere.example") == 400
    assert refusal(site, Origin="http://elsewhere.example") == 403
    assert "musls studio" in get(site, Origin=site)


def test_other_accounts_are_kept_out(site):
    install_opener(build_opener())  # no cookies
    for path in ("", "/run?show=old", "/?token=", "/?token=guess", "/_dash-layout"):
        assert refusal(site + path) == 403
    assert refusal(site, Cookie=f"musls_studio_{site.rpartition(':')[2]}=guess") == 403


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("/tmp/other.yaml", ""), ("../other.yaml", ""), ("tiny.yaml", "extensions=[/tmp/evil.py]"),
        ("tiny.yaml", "system=~/evil.yaml"), ("tiny.yaml", "extensions=['..']"),
    ],
)  # fmt: skip
def test_files_elsewhere_are_not_taken(here, name, line):
    with pytest.raises(ConfigError, match=r"the studio takes files below .* only"):
        studio.chosen_scenario(name, [line])


def test_runs_of_any_name_are_shown(site, here):
    name = "a+b #1 & 50%"
    (here / "runs" / "old").rename(here / "runs" / name)
    address, _, file, *_ = callback(
        site, ["page.src", "save.href", "save.download", "report.href", "report.hidden"],
        [("show", "value", name), ("with", "value", "older")], "show.value",
    )  # fmt: skip
    assert quote_plus(name) in address and "(2, dotted) older" in get(site + address)
    assert file == f"{name}_and_older.html"


STUDIO = """\
import sys
from musls_bringup.studio import app as studio
server, address = studio.start(studio.Path("runs"), 0)
long = ["mission.stages.0.duration_s=600"]
flight = studio.FlightProcess("tiny.yaml", long, studio.Path("runs/long"))
print(flight._process.pid, flush=True)
server.serve_forever()
"""


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)]
)
def test_its_flight_ends_with_it(here, number):
    words = [sys.executable, "-c", STUDIO]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True) as running:
        pid = int(running.stdout.readline())
        bag = here / "runs" / "long" / "bag" / "bag.mcap"
        until = monotonic() + 60.0
        while not bag.is_file() or bag.stat().st_size < 100_000:
            assert monotonic() < until
            sleep(0.05)
        running.send_signal(number)
    until = monotonic() + 60.0
    while os.path.exists(f"/proc/{pid}") and monotonic() < until:
        sleep(0.05)
    summary = json.loads((here / "runs" / "long" / "summary.json").read_text())
    assert summary["ended_by"] == "SIGTERM" and summary["interrupted"]


@pytest.mark.slow
def test_a_flight_from_the_page_is_listed_and_shown(site, here):
    outputs = [
        "status.children", "status.className", "fly.disabled", "stop.disabled", "show.options",
        "with.options", "show.value", "tab.data", "live.src", "live.hidden",
    ]  # fmt: skip
    inputs = [("fly", "n_clicks", 1), ("stop", "n_clicks", None), ("look", "n_intervals", 0)]
    scenario = ("scenario", "value", "tiny.yaml")

    def press(changed, lines, tab="mine"):
        state = [
            scenario, ("overrides", "value", lines), ("show", "value", "old"),
            ("status", "children", ""), ("tab", "data", tab), ("watch", "value", []),
        ]  # fmt: skip
        return callback(site, outputs, inputs, changed, state)

    said, look, busy, *_ = press("fly.n_clicks", "system.load.mass_kg=heavy")
    assert "system.load.mass_kg = 'heavy'" in said and look == "warning" and not busy
    said, look, busy, *_ = press("fly.n_clicks", "system.cables.links=5\ncable_model=massless\n")
    assert busy and look == "note"
    said_there, _, busy_there, *_, tab, _, _ = press("look.n_intervals", "", tab="another")
    assert not said_there and not busy_there and tab == "another"
    begun = monotonic()
    while busy and monotonic() < begun + 120.0:
        sleep(0.2)
        said, look, busy, _, options, _, shown, *_ = press("look.n_intervals", "")
    assert look == "note" and said.startswith("flown") and shown.startswith("tiny_")
    assert {option["value"] for option in options} == {"old", "older", shown}
    assert (here / "runs" / shown / "report.html").is_file()
    address, _, file, report, hidden = callback(
        site, ["page.src", "save.href", "save.download", "report.href", "report.hidden"],
        [("show", "value", shown), ("with", "value", "old")], "show.value",
    )  # fmt: skip
    assert file == f"{shown}_and_old.html" and shown in get(site + address)
    assert not hidden and "Flight tiny" in get(site + report)


DESIGN = ("size", "mass", "wind", "gusts", "drones", "require")


def press_design(site, changed, values, shape="box"):
    """Press the button of a design, or look at it; status, its look, busy, names, the shown one."""
    outputs = [
        "design_status.children", "design_status.className", "design.disabled",
        "design_stop.disabled", "designs.options", "designs.value",
    ]  # fmt: skip
    inputs = [
        ("design", "n_clicks", 1), ("design_stop", "n_clicks", None), ("look", "n_intervals", 1),
    ]  # fmt: skip
    state = [
        ("shape", "value", shape), ("designs", "value", None), ("design_status", "children", ""),
        ("tab", "data", "mine"),
        *((f"design_{name}", "value", value) for name, value in zip(DESIGN, values, strict=True)),
    ]  # fmt: skip
    said, look, busy, _, names, shown = callback(site, outputs, inputs, changed, state)
    return said, look, busy, names, shown


def test_a_design_takes_no_files_from_elsewhere(site):
    values = ["0.05", "0.05", "0", "0", "/etc/frame.yaml", ""]
    said, look, busy, _, _ = press_design(site, "design.n_clicks", values)
    assert "takes files below" in said and look == "warning" and not busy
    assert refusal(f"{site}/design?of=old") == 404


@pytest.mark.slow
def test_a_design_from_the_page_is_shown(site, here):
    values = ["0.05,0.05,0.03", "0.05", "0", "0", "crazyflie", "margin=1.12"]
    said, look, busy, *_ = press_design(site, "design.n_clicks", values)
    assert busy and look == "note"
    begun = monotonic()
    while busy and monotonic() < begun + 300.0:
        sleep(0.5)
        said, look, busy, names, shown = press_design(site, "look.n_intervals", values)
    assert look == "note" and said.startswith("designed") and names == [shown]
    address, hidden = callback(
        site, ["design_page.src", "design_page.hidden"], [("designs", "value", shown)],
        "designs.value",
    )  # fmt: skip
    assert not hidden and "Lifting a box" in get(site + address)


def test_a_key_shows_its_present_value_and_none_is_asked_for(site):
    name = ("scenario", "value", "circle")
    meaning, value = callback(
        site, ["meaning.children", "value.value"], [("key", "value", "system.load.mass_kg")],
        "key.value", [name],
    )  # fmt: skip
    assert value == "1.66" and "now `1.66` kg" in meaning
    pressed = [("add", "n_clicks", 1), ("value", "n_submit", None)]
    state = [("key", "value", None), ("value", "value", "3"), ("overrides", "value", "seed=1")]
    _, told = callback(site, ["overrides.value", "hint.children"], pressed, "add.n_clicks", state)
    assert "Choose a key first" in told


def test_keys_of_a_scenario_are_what_overrides_take(here):
    found = studio.settings("circle")
    value, key = found["mission.stages.0.radius_m"]
    assert value == 1.5 and key.unit == "m"
    told = studio.explained(*found["system.load.mass_kg"])
    assert told.startswith("now `1.66` kg; allowed: number > 0.")
    described = [name for name, (_, key) in found.items() if key]
    assert len(described) > 0.95 * len(found)
    for name in ("system.cables.length_m", "mission.stages.0.speed_m_s", "physics.wind.mean_m_s"):
        if name in found:
            studio.find_scenario("circle", [f"{name}={json.dumps(found[name][0])}"])
    assert studio.scenarios()[0] == "tiny.yaml"


def test_a_port_in_use_is_told_in_one_line(site, capsys):
    port = site.rpartition(":")[2]
    assert main(["studio", "--port", port, "--no-browser"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"musls: error: --port {port}: Address already in use")


# ---------- In a browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: apt install chromium")
    software = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=software)
        yield started
        started.close()


@pytest.fixture
def page(browser, invitation):
    """The studio with its newest run shown."""
    errors = []
    page = browser.new_page()
    page.set_default_timeout(90_000)  # busy machines
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(invitation)
    page.frame_locator("#page").locator("svg.main-svg").first.wait_for()
    yield page
    page.close()
    assert not errors


@pytest.mark.slow
def test_a_flight_by_keyboard_alone(page, here):
    keys = page.keyboard

    def tab_to(name):
        for _ in range(12):
            keys.press("Tab")
            if page.evaluate("document.activeElement.id") == name:
                return
        raise AssertionError(f"Tab does not lead to {name}")

    def focus_on(what):
        page.wait_for_function(f"document.activeElement.matches('{what}')")

    tab_to("scenario")
    keys.press("Enter")  # the list opens at the present choice; its search is on top
    focus_on("[value=circle]")
    keys.press("Home")
    focus_on("[type=search]")
    keys.type("tiny")
    page.wait_for_function("document.querySelectorAll('[type=radio]').length == 1")
    keys.press("ArrowDown")
    focus_on("[value^=tiny]")
    keys.press("Enter")
    page.locator("#about").get_by_text("a test").wait_for()
    tab_to("overrides")
    keys.type("system.cables.links=5\ncable_model=massless")
    tab_to("fly")
    keys.press("Enter")
    stop = "document.getElementById('stop').disabled"
    page.wait_for_function(f"!{stop}")
    page.wait_for_function(stop, timeout=120_000)
    assert page.inner_text("#status").startswith("flown: ")
    (run,) = (path for path in (here / "runs").iterdir() if path.name.startswith("tiny_"))
    shown = page.frame_locator("#page")
    shown.get_by_role("heading", name=run.name).wait_for()
    shown.locator("svg.main-svg .scatterlayer path.js-line").first.wait_for()
    drawn = shown.locator("canvas").first.evaluate("c => c.width * c.height")  # in WebGL
    assert drawn > 10_000


@pytest.mark.slow
def test_on_a_phone_in_the_dark(page):
    """Nothing is wider than the screen; text stands out from the page by 7 to 1 (WCAG, AAA)."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(500)

    def luminance(colour):
        parts = [int(part) / 255.0 for part in re.findall(r"\d+", colour)[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    for frame in page.frames:
        if frame.url == "about:blank":  # the live view before a flight
            continue
        wide, screen = frame.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert wide <= screen
        style = frame.evaluate("(({color, backgroundColor}) => [color, backgroundColor])"
                               "(getComputedStyle(document.body))")  # fmt: skip
        ink, paper = map(luminance, style)
        assert paper < 0.05 and (ink + 0.05) / (paper + 0.05) > 7.0
