"""`musls studio` over HTTP: what is served, to whom, and a flight from its page."""

import json
import re
import shutil
import threading
from time import monotonic, sleep
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from musls_bringup.cli import main

pytest.importorskip("dash")
from musls_bringup import studio


@pytest.fixture
def site(here, older_result):
    """Address of a server whose runs are "old" and "older"."""
    for name in ("old", "older"):
        shutil.copytree(older_result, here / "runs" / name)
    server = studio.start(here / "runs", 0)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.port}"
    server.shutdown()
    thread.join()
    server.server_close()


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


@pytest.mark.slow
def test_a_flight_from_the_page_is_listed_and_shown(site, here):
    outputs = [
        "status.children", "fly.disabled", "stop.disabled", "show.options", "with.options",
        "show.value",
    ]  # fmt: skip
    inputs = [("fly", "n_clicks", 1), ("stop", "n_clicks", None), ("look", "n_intervals", 0)]
    scenario = ("scenario", "value", "tiny.yaml")

    def press(changed, lines):
        state = [
            scenario, ("overrides", "value", lines), ("show", "value", "old"),
            ("status", "children", ""),
        ]  # fmt: skip
        return callback(site, outputs, inputs, changed, state)

    said, busy, *_ = press("fly.n_clicks", "system.load.mass_kg=heavy")
    assert "system.load.mass_kg = 'heavy'" in said and not busy
    said, busy, *_ = press("fly.n_clicks", "system.cables.links=5\ncable_model=massless\n")
    assert busy
    begun = monotonic()
    while busy and monotonic() < begun + 120.0:
        sleep(0.2)
        said, busy, _, options, _, shown = press("look.n_intervals", "")
    assert said.startswith("flown") and shown.startswith("tiny_")
    assert {option["value"] for option in options} == {"old", "older", shown}
    assert (here / "runs" / shown / "report.html").is_file()
    address, _, file = callback(
        site, ["page.src", "save.href", "save.download"],
        [("show", "value", shown), ("with", "value", "old")], "show.value",
    )  # fmt: skip
    assert file == f"{shown}_and_old.html" and shown in get(site + address)


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
