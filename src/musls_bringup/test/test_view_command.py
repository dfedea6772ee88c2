"""`musls view` from the command line: files come out, bad input ends with one line and no file."""

import json
import os
import re

import pytest
from fly_helpers import error_line
from made_up_recordings import excerpt_lines, flight, write_lines
from PIL import Image

from musls_bringup.cli import main


@pytest.fixture
def csv(tmp_path, monkeypatch):
    """A folder, which is entered, with one excerpt in it."""
    monkeypatch.chdir(tmp_path)
    return str(write_lines(tmp_path / "real.csv", excerpt_lines(flight("shm", rate_hz=10.0))))


def test_png_of_a_csv_beside_it(csv, capsys):
    assert main(["view", csv, "--png", "9"]) == 0
    assert capsys.readouterr().out == "picture in real.png\n"
    with Image.open("real.png") as image:
        assert image.size == (1920, 1280)


@pytest.mark.filterwarnings("always::FutureWarning")
def test_old_options_work_and_say_what_replaces_them(csv, capsys):
    assert main(["view", csv, "--out", "new.png", "--at", "9", "--camera", "-10,30,1.5"]) == 0
    assert "warning" not in capsys.readouterr().err
    old = ["--azimuth", "-10", "--elevation", "30", "--zoom", "1.5"]
    assert main(["view", csv, "--png", "9", "--out", "old.png", *old]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "warning" in line]
    assert lines == [
        f"musls: warning: musls view {option} is deprecated and ends with musls 0.3: "
        "use --camera AZ,EL,ZOOM"
        for option in old[::2]
    ]
    with Image.open("new.png") as new, Image.open("old.png") as old_image:
        assert new.tobytes() == old_image.tobytes()
    assert main(["view", csv, "--html", "page.html"]) == 0
    assert "use --out FILE.html" in capsys.readouterr().err


def test_two_recordings_as_a_gif(csv, tmp_path, capsys):
    late = write_lines(tmp_path / "late.csv", excerpt_lines(flight("shm", start_s=40.0)))
    args = ["view", csv, "--with", str(late), "--stage", "shm", "--gif", "--speed", "8"]
    assert main([*args, "--fps", "5", "--out", "both.gif"]) == 0
    captured = capsys.readouterr()
    assert "late shifted by -33.0" in captured.err and captured.out == "film in both.gif\n"
    with Image.open("both.gif") as image:
        assert image.size == (960, 640) and image.n_frames > 3


def test_two_recordings_as_one_page(csv, tmp_path, capsys):
    late = write_lines(tmp_path / "late.csv", excerpt_lines(flight("shm", start_s=40.0)))
    args = ["view", csv, "--with", str(late), "--shift", "-33", "--out", "both.html"]
    assert main(args) == 0
    assert capsys.readouterr().out == "page in both.html\n"
    page = (tmp_path / "both.html").read_text()
    data = json.loads(re.search(r'id="flight-data">([^<]*)<', page)[1])
    assert {"load", "load (2)"} <= set(data["bodies"])
    apart = data["panels"][-1]
    assert apart["title"] == "distance between the two [mm]"
    # The same flight 33 s later: what is left is a chord of 0.1 s against the arc.
    known = [y for curve in apart["curves"] for y in curve["y"] if y is not None]
    assert len(known) > 1000 and max(known) < 6.0
    assert main(args) == 2  # nothing is overwritten
    assert "--overwrite" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--png", "900"], ["picture at 900 s", "must be a time from"]),
        (["--png", "nan"], ["picture at nan s", "must be a time from"]),
        (["--out", "a.png"], ["--at T", "give both"]),
        (["--gif", "--at", "9"], ["--at T", "give both"]),
        (["--png", "9", "--gif"], ["--png and --gif", "choose one"]),
        (["--png", "9", "--out", "a.jpg"], ["a.jpg", "must end in .png"]),
        (["--png", "9", "--out", "absent/a.png"], ["absent/a.png", "no such folder"]),
        (["--png", "9", "--out", "old.png"], ["old.png exists", "--overwrite"]),
        (["--png", "9", "--fps", "3"], ["--fps and --speed"]),
        (["--png", "9", "--shift", "3"], ["--shift is for --with"]),
        (["--png", "9", "--system", "x500_tri"], ["x500_tri", "x500_trio"]),
        (["--png", "9", "--system", "x500_duo"], ["3 drones recorded", "x500_duo has 2"]),
        (["--png", "9", "--offset", "load=1,2"], ["--offset load=1,2", "BODY=X,Y,Z"]),
        (["--png", "9", "--offset", "cargo=1,2,3"], ["no body 'cargo'"]),
        (["--png", "9", "--with", "absent.csv"], ["absent.csv", "no such file"]),
        (["--png", "9", "--trail", "inf"], ["--trail is inf"]),
        (["--png", "9", "--trail", "1e300"], ["--trail is 1e+300"]),
        (["--png", "9", "--offset", "load=1e300,0,0"], ["--offset load=1e+300,0,0", "100 m"]),
        (["--png", "9", "--with", "real.csv", "--shift", "1e300"], ["--shift is 1e+300"]),
        (["--png", "9", "--out", "n" * 400 + ".png"], ["name too long"]),
        (["--gif", "--fps", "0"], ["fps is 0"]),
        (
            ["--gif", "--stage", "square", "--with", "real.csv"],
            ["cycles of 'square' cannot be found"],
        ),
        (["--out", "a.txt"], ["a.txt", "must end in one of .png, .gif, .mp4, .html, .rrd"]),
        (["--web", "--out", "a.html"], ["--web and --out", "choose one"]),
        (["--png", "9", "--camera", "10"], ["--camera", "AZ,EL or AZ,EL,ZOOM"]),
        (["--png", "9", "--camera", "1,2,3,4"], ["--camera", "AZ,EL or AZ,EL,ZOOM"]),
    ],
)
def test_bad_input_is_one_line_and_no_file(csv, args, words, capsys):
    open("old.png", "w").close()
    assert main(["view", csv, *args]) == 2
    error = error_line(capsys)
    assert all(word in error for word in words), error
    assert sorted(os.listdir()) == ["old.png", "real.csv"]


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "\0\1\2"])
def test_foreign_files(csv, content, capsys):
    with open("foreign.txt", "w") as file:
        file.write(content)
    assert main(["view", "foreign.txt", "--gif"]) == 2
    assert "foreign.txt" in capsys.readouterr().err
    assert sorted(os.listdir()) == ["foreign.txt", "real.csv"]


def test_help_has_sections_and_leaves_old_options_out(capsys):
    assert main(["view", "--help"]) == 0
    text = capsys.readouterr().out
    parts = re.split(r"^([A-Z][^\n]*):\n", text.split("Options:")[1], flags=re.M)
    sections = dict(zip(parts[1::2], parts[2::2], strict=False))
    assert {"Files", "The picture", "What the recording does not say of itself"} <= {*sections}
    own = [parts[0], sections["Files"], sections["The picture"]]
    assert len(re.findall(r"^  --", "\n".join(own), re.M)) <= 13
    assert not {"--azimuth", "--html ", "--save", "--skip-with"} & {
        *re.findall(r"--[a-z-]+ ?", text)
    }
