"""Pictures and films of `musls view`, looked at pixel by pixel."""

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_up_recordings import flight
from matplotlib.colors import to_rgb
from PIL import Image

from musls_analysis.figures.style import SECOND, colour
from musls_analysis.recordings.recording import RecordedEvent
from musls_analysis.scene import Subject, sample
from musls_analysis.view.film import FilmOptions, ffmpeg_program, write_film, write_png
from musls_analysis.view.opened import open_subject
from musls_analysis.view.picture import WIDE, Picture, PictureOptions
from musls_description.config.errors import ConfigError, MuslsError, whole_file
from musls_description.system.system_files import load_system

LOOKS = PictureOptions()


def made_up(kind="circle", **fields):
    return Subject(flight(kind), load_system("x500_trio"), kind, **fields)


def near(picture, at, reach=4):
    """Pixels round a picture point (n, 3), 0 to 1."""
    x, y = np.round(at).astype(int)
    return picture[y - reach : y + reach + 1, x - reach : x + reach + 1].reshape(-1, 3) / 255.0


def hue_distance(pixels, wanted):
    """Least angle between pixels' and a colour's difference from grey [rad]."""
    tint = pixels - pixels.mean(axis=1, keepdims=True)
    want = np.array(wanted) - np.mean(wanted)
    norm = np.linalg.norm(tint, axis=1) * np.linalg.norm(want)
    cosine = (tint @ want)[norm > 0.02] / norm[norm > 0.02]
    return np.arccos(np.clip(cosine.max(initial=-1.0), -1.0, 1.0))


@pytest.mark.parametrize("follow", [False, True])
def test_bodies_are_seen_where_the_camera_projects_them(follow):
    its = made_up()
    picture = Picture([its], (7.0, 30.0), PictureOptions(follow=follow, trail_s=0.0))
    for time_s in (9.0, 17.3):
        pixels = picture.draw(time_s)
        for body, track in sample(its, np.array([time_s])).bodies.items():
            at, _ = picture.camera.project(track.position_enu_m[0])
            assert hue_distance(near(pixels, at), to_rgb(colour(body))) < 0.25, (body, time_s)


def test_a_body_that_is_not_known_is_not_drawn():
    its = made_up()
    track = its.recording.bodies["load"]
    part = track.time_s < 15.0
    short = type(track)(
        track.time_s[part], track.position_enu_m[part], track.orientation_wxyz[part]
    )
    gone = replace(
        its.recording, bodies={**its.recording.bodies, "load": short}, setpoints={}, stages=()
    )
    picture = Picture([replace(its, recording=gone)], (7.0, 30.0), PictureOptions(trail_s=0.0))
    load = sample(its, np.array([20.0])).bodies["load"].position_enu_m[0]
    pixels = picture.draw(20.0)
    assert hue_distance(near(pixels, picture.camera.project(load)[0]), to_rgb(colour("load"))) > 1.0
    picture = Picture(
        [replace(its, shift_s=100.0)], (7.0, 30.0), PictureOptions(), framed_s=(110, 110)
    )
    assert (picture.draw(9.0) > 200).mean() > 0.9  # nothing is known at this time


def test_the_second_recording_has_a_colour_of_its_own():
    first = made_up()
    moved = made_up(offsets_m={b: (0.0, 0.0, -1.2) for b in first.recording.bodies})
    picture = Picture([first, moved], (7.0, 30.0), PictureOptions(trail_s=0.0))
    pixels = picture.draw(12.0)
    for its, shade in ((first, colour("load")), (moved, SECOND)):
        load = sample(its, np.array([12.0])).bodies["load"].position_enu_m[0]
        at, _ = picture.camera.project(load)
        assert hue_distance(near(pixels, at), to_rgb(shade)) < 0.3


def test_cables_have_the_colours_of_their_tension(flight_bag):
    its = open_subject(flight_bag)
    window_s = 0.0, its.end_s
    picture = Picture([its], window_s, PictureOptions(trail_s=0.0))
    pixels = picture.draw(40.0)
    cable = sample(its, np.array([40.0])).cables["cable_1"]
    middle, _ = picture.camera.project(cable.points_enu_m[0][7:9].mean(axis=0))
    assert cable.tension_n[0] > 4.0
    assert hue_distance(near(pixels, middle, 2), picture._scale.colours(cable.tension_n[0])) < 0.2


def test_the_mark_in_the_strip_moves_with_time():
    picture = Picture([made_up()], (7.0, 30.0))
    strips = [picture.draw(t)[514:594, 60:931].mean(axis=(0, 2)) for t in (10.0, 25.0)]
    places = [int(np.argmin(strip)) / 870.0 for strip in strips]
    assert places == pytest.approx([3.0 / 23.0, 18.0 / 23.0], abs=0.004)


def test_events_are_marked_in_the_strip():
    subject = made_up()
    events = (RecordedEvent(12.0, "release", "cable_1"), RecordedEvent(20.0, "poke", "over"))
    seen = []
    for happened in ((), events):
        recording = replace(subject.recording, events=happened)
        picture = Picture([replace(subject, recording=recording)], (7.0, 30.0))
        seen.append(picture.draw(28.0)[514:594, 60:931].astype(float).mean(axis=0))
    redder = (seen[1] - seen[0]) @ np.array([1.0, -0.5, -0.5])
    assert np.argmax(redder) / 870.0 == pytest.approx(5.0 / 23.0, abs=0.006)
    assert redder[round(870 * 13 / 23)] < 1.0


def test_png(tmp_path):
    path = tmp_path / "a.png"
    write_png([made_up()], (7.0, 30.0), 9.0, path, LOOKS)
    with Image.open(path) as image:
        assert image.size == (2 * WIDE.width_px, 2 * WIDE.height_px) and image.mode == "RGB"
    with pytest.raises(ConfigError, match=r"picture at 31 s: must be a time from 7.00 to 30.00 s"):
        write_png([made_up()], (7.0, 30.0), 31.0, tmp_path / "b.png", LOOKS)
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]


def test_gif_frames_duration_and_content(tmp_path):
    path, shares = tmp_path / "a.gif", []
    film = FilmOptions(fps=15.0, speed=2.0)
    write_film([made_up()], (7.0, 10.0), path, LOOKS, film, shares.append)
    picture = Picture([made_up()], (7.0, 10.0), LOOKS)
    with Image.open(path) as image:
        assert image.n_frames == len(shares) == 22  # 3 s at twice the speed and 15 frames/s
        durations = []
        for k in range(image.n_frames):
            image.seek(k)
            durations.append(image.info["duration"])
            if k in (0, 9, 21):
                drawn = picture.draw(7.0 + k * 2.0 / 15.0, 2.0).astype(float)
                shown = np.asarray(image.convert("RGB"), float)
                assert np.abs(shown - drawn).mean() < 1.5
                assert np.percentile(np.abs(shown - drawn).max(axis=2), 99.9) < 64
        assert sum(durations) == pytest.approx(1000.0 * 22 / 15.0, abs=5.0)
        assert image.info["loop"] == 0
    assert shares[-1] == 1.0


def test_mp4_frames_and_size(tmp_path):
    try:
        program = ffmpeg_program()
    except MuslsError as error:
        pytest.skip(str(error))
    path = tmp_path / "a.mp4"
    write_film([made_up()], (7.0, 8.0), path, LOOKS, FilmOptions(fps=10.0), lambda share: None)
    raw = subprocess.run(
        [program, "-loglevel", "error", "-i", path, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"],
        capture_output=True, check=True,
    ).stdout  # fmt: skip
    frames = np.frombuffer(raw, np.uint8).reshape(-1, 960, 1440, 3)
    assert len(frames) == 10
    drawn = Picture([made_up()], (7.0, 8.0), LOOKS, 1.5).draw(7.5)
    assert np.abs(frames[5].astype(float) - drawn).mean() < 4.0
    assert [p.name for p in tmp_path.iterdir()] == ["a.mp4"]


def test_ffmpeg_failing_is_said_and_leaves_nothing(tmp_path, monkeypatch):
    program = tmp_path / "ffmpeg"
    program.write_text("#!/bin/sh\necho 'no space left' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr("musls_analysis.view.film.ffmpeg_program", lambda: str(program))
    with pytest.raises(MuslsError, match="ffmpeg failed: no space left"):
        write_film([made_up()], (7.0, 8.0), tmp_path / "a.mp4", LOOKS, FilmOptions(), print)
    assert [p.name for p in tmp_path.iterdir()] == ["ffmpeg"]


def test_a_file_that_fails_leaves_the_old_one(tmp_path):
    path = tmp_path / "a.gif"
    path.write_text("old")

    def fail(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_film([made_up()], (7.0, 8.0), path, LOOKS, FilmOptions(), fail)
    assert [p.name for p in tmp_path.iterdir()] == ["a.gif"] and path.read_text() == "old"


def test_unwritable_file(tmp_path):
    with (
        pytest.raises(MuslsError, match="cannot be written: No such file"),
        whole_file(tmp_path / "absent" / "a.png") as work,
    ):
        work.write_text("x")


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"fps": 0.0}, "fps is 0"), ({"fps": 500.0}, "from 0.001 to 120"),
     ({"speed": -1.0}, "speed is -1"),
     ({"speed": np.nan}, "speed is nan")],
)  # fmt: skip
def test_film_options(fields, words):
    with pytest.raises(ConfigError, match=words):
        FilmOptions(**fields)


def test_film_length():
    assert len(FilmOptions(20.0).times_s((0.0, 20.0))) == 400
    with pytest.raises(ConfigError, match="at most 20000"):
        FilmOptions(60.0).times_s((0.0, 3600.0))
    with pytest.raises(ConfigError, match="at most 4000"):
        FilmOptions(20.0).times_s((0.0, 201.0), "gif")
    with pytest.raises(ConfigError, match="at most 50"):
        write_film([made_up()], (7.0, 8.0), Path("a.gif"), LOOKS, FilmOptions(60.0), print)
