"""Data for rerun's viewer, read back from the file with rerun's own reader."""

import socket
import subprocess
import sys
import urllib.request
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from musls_analysis.recordings.recording import RecordedEvent
from musls_analysis.scene import sample
from musls_analysis.view.opened import open_subject
from musls_description.config.errors import MuslsError
from musls_description.system.obstacles import BoxObstacle

pytest.importorskip("rerun", reason="rerun-sdk is not installed: pip install 'musls[view]'")
from musls_analysis.view import live
from musls_analysis.view.rerun_log import new_stream, save, serve, show

SHIFT_S = 2.0


def chunks(path):
    """Record batches of a file by entity."""
    reader = pytest.importorskip("rerun.chunk", reason="this rerun-sdk has no reader").RrdReader
    found = {}
    for chunk in reader(path).stream().to_chunks():
        found.setdefault(chunk.entity_path, []).append(chunk.to_record_batch())
    return found


def column(batches, component):
    """Times [s] and values of a component of one entity."""
    rows = []
    for batch in batches:
        if component in batch.schema.names and "time" in batch.schema.names:
            times = batch.column("time").cast("int64").to_pylist()
            rows += zip(times, batch.column(component).to_pylist(), strict=True)
    rows.sort(key=lambda row: row[0])
    return np.array([time for time, _ in rows]) / 1e9, [value for _, value in rows]


@pytest.fixture(scope="module")
def saved(flight_bag, tmp_path_factory):
    first = open_subject(flight_bag)
    path = tmp_path_factory.mktemp("rrd") / "both.rrd"
    save([first, replace(first, shift_s=SHIFT_S)], path)
    return first, path


def test_file_is_sound_and_alone(saved):
    _, path = saved
    command = Path(sys.executable).with_name("rerun")
    subprocess.run([command, "rrd", "verify", path], check=True, capture_output=True)
    assert [p.name for p in path.parent.iterdir()] == ["both.rrd"]


def test_obstacles_stand_there_all_the_time(flight_bag, tmp_path):
    crate = BoxObstacle(name="crate", size_m=(1.0, 1.0, 1.0), position_enu_m=(0.0, 2.0, 0.5))
    first = open_subject(flight_bag)
    recording = replace(first.recording, obstacles=(crate,))
    save([replace(first, recording=recording)], tmp_path / "crate.rrd")
    (mesh,) = chunks(tmp_path / "crate.rrd")["/world/crate"]
    (corners,) = mesh.column("Mesh3D:vertex_positions").to_pylist()
    assert np.ptp(corners, axis=0) == pytest.approx([1.0, 1.0, 1.0])
    assert np.mean(corners, axis=0) == pytest.approx([0.0, 2.0, 0.5])


def test_entities(saved):
    paths = set(chunks(saved[1]))
    drones = ("drone_1", "drone_2", "drone_3")
    for root in ("run", "with"):
        wanted = {f"/{root}/load", f"/{root}/load/box"}
        wanted |= {f"/{root}/{drone}/{part}" for drone in drones for part in ("frame", "rotors")}
        wanted |= {f"/{root}/cable_{i}" for i in (1, 2, 3)}
        wanted |= {f"/{root}/trail/{body}" for body in ("load", *drones)}
        assert wanted <= paths, wanted - paths
    assert {"/run/setpoint/load/box", "/run/setpoint/drone_1/outline"} <= paths
    assert not any(path.startswith("/with/setpoint") for path in paths)
    for group in ("error", "angle", "difference"):
        assert {f"/{group}/{body}" for body in ("load", *drones)} <= paths
    assert {"/tension/cable_1", "/phase", "/legend"} <= paths


def test_events_stand_in_a_log(flight_bag, tmp_path):
    subject = open_subject(flight_bag)
    events = (RecordedEvent(subject.start_s + 1.5, "release", "cable_1: let go at the load"),)
    path = tmp_path / "events.rrd"
    save([replace(subject, recording=replace(subject.recording, events=events))], path)
    times, texts = column(chunks(path)["/events"], "TextLog:text")
    assert times == pytest.approx([subject.start_s + 1.5], abs=1e-6)
    assert texts == [["release: cable_1: let go at the load"]]


def test_poses_lie_on_the_time_line_as_recorded(saved):
    first, path = saved
    found = chunks(path)
    for root, shift_s in (("run", 0.0), ("with", SHIFT_S)):
        for body, track in first.recording.bodies.items():
            times, places = column(found[f"/{root}/{body}"], "Transform3D:translation")
            np.testing.assert_allclose(times, track.time_s + shift_s, atol=1e-6)
            np.testing.assert_allclose(np.squeeze(places), track.position_enu_m, atol=1e-5)
    _, turns = column(found["/run/drone_2"], "Transform3D:quaternion")
    wxyz = np.squeeze(turns)[:, [3, 0, 1, 2]]
    np.testing.assert_allclose(wxyz, first.recording.bodies["drone_2"].orientation_wxyz, atol=1e-6)


def test_cables_have_their_shapes_and_colours(saved):
    first, path = saved
    batches = chunks(path)["/run/cable_2"]
    times, strips = column(batches, "LineStrips3D:strips")
    _, colours = column(batches, "LineStrips3D:colors")
    cable = sample(first, times).cables["cable_2"]
    for k in (0, len(times) // 2, len(times) - 1):
        np.testing.assert_allclose(strips[k][0], cable.points_enu_m[k], atol=1e-5)
    slack = cable.tension_n < 0.5
    assert slack.any() and not slack.all()
    assert len({c[0] for c, s in zip(colours, slack, strict=True) if s}) == 1
    assert len({c[0] for c, s in zip(colours, slack, strict=True) if not s}) > 10


def test_plots(saved):
    first, path = saved
    found = chunks(path)
    times, tensions = column(found["/tension/cable_3"], "Scalars:scalars")
    cable = first.recording.cables["cable_3"]
    np.testing.assert_allclose(times, cable.time_s, atol=1e-6)
    np.testing.assert_allclose(np.squeeze(tensions), cable.tension_n[:, 0])
    # The second is the first, two seconds later: the difference is the way of two seconds.
    times, differences = column(found["/difference/load"], "Scalars:scalars")
    load = first.recording.bodies["load"]
    by_time = {round(t, 6): p for t, p in zip(load.time_s, load.position_enu_m, strict=True)}
    way = [np.linalg.norm(by_time[round(t, 6)] - by_time[round(t - SHIFT_S, 6)]) for t in times]
    np.testing.assert_allclose(np.squeeze(differences), way, atol=1e-9)
    _, phases = column(found["/phase"], "TextDocument:text")
    stages = first.recording.stages
    assert [p[0].removeprefix("# ").replace(" ", "_") for p in phases] == [s.name for s in stages]


def test_serving_to_a_browser_of_this_machine_alone(flight_bag):
    with serve([open_subject(flight_bag)]) as address:
        page, data = urlsplit(address), urlsplit(parse_qs(urlsplit(address).query)["url"][0])
        assert data.scheme == "rerun+http" and data.path == "/proxy"
        with urllib.request.urlopen(f"http://{page.netloc}/", timeout=20) as answer:
            assert b"<html" in answer.read().lower()
        listening = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
        for place in (page, data):
            rows = [row.split()[1] for row in listening.splitlines() if " 0A " in row]
            bound = {row.split(":")[0] for row in rows if int(row.split(":")[1], 16) == place.port}
            assert bound == {"0100007F"}  # 127.0.0.1
            assert place.hostname == "127.0.0.1"
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", page.port), 1.0)


def test_no_display(flight_bag, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(MuslsError, match=r"no display for the viewer: --web"):
        show([open_subject(flight_bag)])


def test_a_display_that_cannot_be_opened(flight_bag, monkeypatch):
    """One line with the way that works; rerun is found although the PATH does not lead to it."""
    monkeypatch.setenv("DISPLAY", ":4711")
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_SOCKET", raising=False)
    with pytest.raises(MuslsError, match=r"cannot open a window on display :4711: --web shows it"):
        show([open_subject(flight_bag)])


def test_missing_rerun(monkeypatch):
    monkeypatch.setitem(sys.modules, "rerun", None)
    monkeypatch.delitem(sys.modules, "musls_analysis.view.rerun_log", raising=False)
    with pytest.raises(MuslsError, match=r"needs rerun-sdk: `.*python.* -m pip install rerun-sdk`"):
        import_module("musls_analysis.view.rerun_log")


def test_unwritable_file(flight_bag, tmp_path):
    with pytest.raises(MuslsError, match="cannot be written"):
        save([open_subject(flight_bag)], tmp_path / "absent" / "a.rrd")


def test_a_flight_is_sent_while_it_flies(tmp_path, monkeypatch):
    from musls_analysis.recordings.bag import recording_from
    from musls_sim.recording.recorder import MemoryRecorder
    from musls_sim.scenario.scenario import load_scenario
    from musls_sim.session.session import Session

    monkeypatch.setattr(live, "SEND_EVERY_S", 0.0)  # a packet a row
    path, stream = tmp_path / "live.rrd", new_stream("live")
    stream.save(path)
    scenario = load_scenario(
        {
            "system": "x500_solo",
            "start": {"kind": "air"},
            "mission": {"stages": [{"kind": "hold", "position_m": [0, 0, 1], "duration_s": 0.2}]},
            "physics": {"step_size_s": 0.004},
            "cable_model": "massless",
        }
    )
    session = Session(scenario)
    whole = MemoryRecorder(scenario.system, step_period_s=session.plant.period_s)
    session.observe_with(whole)
    session.observe_with(live.LiveView(session, stream, 10.0))
    session.run()
    stream.disconnect()
    recording, found = recording_from(whole), chunks(path)
    for body, track in recording.bodies.items():
        times, places = column(found[f"/run/{body}"], "Transform3D:translation")
        by_time = dict(zip(np.round(times, 6), map(tuple, np.squeeze(places)), strict=True))
        for time_s, place in zip(np.round(track.time_s, 6), track.position_enu_m, strict=True):
            np.testing.assert_allclose(by_time[time_s], place, atol=1e-5)
    _, phases = column(found["/phase"], "TextDocument:text")
    assert {text[0] for text in phases} == {f"# {s.name}" for s in recording.stages}
    assert {"/run/cable_1", "/run/setpoint/load", "/tension/cable_1", "/legend"} <= set(found)
