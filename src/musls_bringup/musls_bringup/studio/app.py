"""`musls studio`: one local page to fly scenarios, look at runs and lay one over another.

Dash serves it to browsers of this machine only; nothing is fetched from anywhere. A scenario may
name files of Python, so whoever may fly runs code in the name of the account that started the
studio: other accounts of the machine, and pages of other sites in the same browser, are kept out by
a token in the address, which becomes a cookie. A flight is a process of its own, `musls fly`, of
the tab that started it. Runs are shown by the page that `musls view --out FILE.html` writes.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from dash import Dash, Input, Output, State, ctx, dcc, html, no_update
from flask import Response, abort, redirect, request, send_file
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from musls_analysis.recordings.readers import read_recording
from musls_analysis.scene import aligning_shift_s
from musls_analysis.view.page import page_html, templates
from musls_bringup.catalogue.keys import schema_of
from musls_bringup.catalogue.shipped import SCENARIOS, find_scenario, names_in
from musls_bringup.flight.results import default_folder
from musls_bringup.new.templates import LoadKind
from musls_control.child_processes import ending_with_us
from musls_description.config.documented_keys import Key, Keys, short
from musls_description.config.errors import ConfigError, MuslsError
from musls_description.config.schema import to_data
from musls_description.config.strict_yaml import read_json, read_yaml
from musls_sim.scenario.scenario import Scenario, load_scenario

HOST = "127.0.0.1"
HOSTS = (HOST, "localhost")
LOOK_EVERY_MS = 1000

# ---------- Runs


class RunFolders:
    """The result folders in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def names(self) -> list[str]:
        """Names of the runs, newest first."""
        paths = [path for path in self.folder.glob("*/summary.json") if _is_flight(path.parent)]
        return [p.parent.name for p in sorted(paths, key=lambda p: -p.stat().st_mtime)]

    def options(self) -> list[dict[str, str]]:
        """Names with the load's error in the longest stage, for a list to choose from."""
        return [{"value": name, "label": f"{name}{self._error(name)}"} for name in self.names()]

    def _error(self, name: str) -> str:
        path = self.folder / name / "summary.json"
        return _load_error(path, path.stat().st_mtime)

    def page(self, *names: str) -> str:
        """The page of one run or of two; other folders than runs are not served."""
        if not set(names) <= set(self.names()):
            abort(404)
        folders = [self.folder / name for name in names]
        return _page(tuple((folder, folder.stat().st_mtime) for folder in folders))

    def designs(self) -> list[str]:
        """Names of the folders of `musls design`, newest first."""
        pages = sorted(self.folder.glob("*/design.html"), key=lambda p: -p.stat().st_mtime)
        return [path.parent.name for path in pages]

    def design(self, name: str) -> Path:
        """The page of a design; other folders than these are not served."""
        if name not in self.designs():
            abort(404)
        return self.folder / name / "design.html"

    def report(self, name: str) -> Path:
        """The report of a run."""
        path = self.folder / name / "report.html"
        if name not in self.names() or not path.is_file():
            abort(404)
        return path


def _is_flight(folder: Path) -> bool:
    return (folder / "bag").is_dir() and not folder.name.startswith(".")


@lru_cache(maxsize=1000)
def _load_error(summary: Path, changed: float) -> str:
    """The load's mean error in the longest stage that has one, in words."""
    try:
        content = read_json(summary)
        errors = content.get("errors", {}).get("load", {})
        stages = [stage for stage in content.get("stages", ()) if stage["name"] in errors]
        if not stages:
            return ""
        longest = max(stages, key=lambda stage: stage["end_s"] - stage["start_s"])["name"]
        return f": load {1e3 * errors[longest]['translational_error_m']:.0f} mm in {longest}"
    except (MuslsError, AttributeError, KeyError, TypeError, ValueError):  # not as we wrote it
        return f": {summary.name} is damaged"


@lru_cache(maxsize=8)
def _page(folders: tuple[tuple[Path, float], ...]) -> str:
    recordings = [read_recording(folder) for folder, _ in folders]
    notes = [f"{r.source}: {line}" for r in recordings for line in r.warnings]
    shift_s = 0.0
    if len(recordings) == 2:
        try:
            shift_s, doubts = aligning_shift_s(recordings[0], recordings[1])
            notes += doubts
        except ConfigError as error:
            notes.append(f"both are shown by their own clocks: {error}")
    systems = [load_scenario(folder / "scenario.yaml").system for folder, _ in folders]
    names = [folder.name for folder, _ in folders]
    return page_html(names, recordings, shift_s, notes, systems)


# ---------- Scenarios and their keys


def scenarios() -> list[str]:
    """Shipped ones, after the files in the present folder that hold a mission."""
    own = []
    for path in sorted(Path().glob("*.yaml")):
        try:
            content = read_yaml(path)
        except ConfigError:
            continue
        if isinstance(content, Mapping) and "mission" in content:
            own.append(path.name)
    return [*own, *names_in(SCENARIOS)]


def chosen_scenario(name: str, overrides: Sequence[str] = ()) -> Scenario:
    """A scenario of the page.

    Raises:
        ConfigError: It is none, or takes files that are neither shipped nor below this folder.
    """
    check_files(name, *overrides)
    return find_scenario(name, list(overrides), "change")


def check_files(*texts: str) -> None:
    """Refuse texts that name files elsewhere than below the present folder (ConfigError)."""
    here = os.path.realpath(".")
    for text in texts:
        for word in re.split(r"[\s,=:\[\]{}'\"]+", text):
            place = os.path.realpath(os.path.expanduser(word))
            if ("/" in word or word == "..") and os.path.commonpath([here, place]) != here:
                raise ConfigError(f"{word}: the studio takes files below {here} only")


@lru_cache(maxsize=1)
def reference() -> dict[str, Key]:
    """The reference of all keys, by path."""
    return {key.path: key for key in Keys(schema_of("scenario")).all()}


def settings(scenario: str) -> dict[str, tuple[Any, Key | None]]:
    """Keys of a scenario as `--set` takes them: the value, and what the reference says."""
    return dict(_settings(to_data(chosen_scenario(scenario)), "", ""))


def _settings(
    value: Any, path: str, described: str
) -> Iterator[tuple[str, tuple[Any, Key | None]]]:
    """Keys below one; `described` is its path in the reference, where kinds stand for indices."""
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        alike = path in ("system.cables", "system.drones") and all(v == value[0] for v in value)
        if alike:
            yield from _settings(value[0], path, described)
        else:
            for i, item in enumerate(value):
                yield from _settings(item, f"{path}.{i}", described)
    elif isinstance(value, Mapping) and value:
        for name, item in value.items():
            place = f"{described}.{value.get('kind')}.{name}"
            if place not in reference():
                place = f"{described}.{name}".lstrip(".")
            yield from _settings(item, f"{path}.{name}".lstrip("."), place)
    else:
        yield path, (value, reference().get(described))


def explained(value: Any, key: Key | None) -> str:
    """Value of a setting, its meaning, unit and range, in Markdown."""
    if key is None:
        return f"now `{short(value)}`"
    unit = f" {key.unit}" if key.unit else ""
    return f"now `{short(value)}`{unit}; allowed: {key.allowed}. {key.meaning}"


# ---------- A flight


INVALID = "invalid flight: "
ERROR = "musls: error: "
"""Prefixes of lines that are shown in red."""

MUSLS = "import sys; from musls_bringup.cli import main; sys.exit(main())"

PAGE = re.compile(r"(http://127\.0\.0\.1:\S+) shows the flight")
"""Line by which `musls fly --live` announces the address of its viewer."""

FOR_A_SHELL = re.compile(r"; --\S+ [\w ]+$| \(--[^)]*\)", re.MULTILINE)
"""Advice in messages that does not apply here: options of the command line."""


_STARTER = ThreadPoolExecutor(1)
"""Thread that starts flights: it lives as long as the studio, see `ending_with_us`."""


class CommandProcess:
    """A command of musls in a process of its own; `said` is its last line, or all of an error.

    It is asked to end when the studio has ended, for any reason. `page` shows a flight in 3-D if it
    is to be `live`.
    """

    def __init__(self, words: Sequence[str], out: Path, live: bool = False) -> None:
        self.out = out
        self.said = "starting"
        self.page = ""
        hidden = {"DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"}  # a page here, not a window
        environment = {k: v for k, v in os.environ.items() if k not in hidden}
        words = [sys.executable, "-c", MUSLS, *words, "--out", str(out)]
        self._process = _STARTER.submit(
            subprocess.Popen,
            ending_with_us(words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=environment | {"BROWSER": "true"} if live else None,
        ).result()
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for line in lines:
                if match := PAGE.search(line):
                    self.page = match[1]
                elif self.said.startswith(ERROR):
                    self.said += f"\n{line.rstrip()}"
                else:
                    self.said = FOR_A_SHELL.sub("", line.strip()) or self.said

    @property
    def goes_on(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End it; what was flown is kept."""
        self._process.terminate()

    def last_words(self) -> str:
        """Last line that it has said, once it has ended."""
        self._reader.join(timeout=5.0)
        return self.said


class FlightProcess(CommandProcess):
    """`musls fly`."""

    def __init__(self, scenario: str, overrides: list[str], out: Path, live: bool = False) -> None:
        words = [word for override in overrides for word in ("--set", override)]
        super().__init__(["fly", scenario, *words, *["--live"] * live], out, live)

    def result(self) -> str:
        """Outcome, once it has ended."""
        self.last_words()
        if not (self.out / "summary.json").is_file():
            return self.said
        summary = read_json(self.out / "summary.json")
        lines = [f"{'stopped' if summary['interrupted'] else 'flown'}: {self.out}"]
        return "\n".join([*lines, *(f"{INVALID}{line}" for line in summary["warnings"])])


# ---------- The page

CHOOSE = "Choose a key first: its meaning and present value are shown then."
WATCH = "Watch it in 3-D, in real time"


def build_app(runs: RunFolders, token: str) -> Dash:
    """The page and what it does, for those who have the token."""
    app = Dash(
        "musls studio",
        title="musls studio",
        update_title="",
        assets_folder=str(Path(__file__).parent / "no_assets"),
    )
    app.server.config["TRUSTED_HOSTS"] = HOSTS  # no other site's name leads here
    app.server.before_request(lambda: _refusal(token))
    app.index_string = app.index_string.replace(
        "</head>", templates().get_template("style.html.j2").render() + STYLE + "</head>"
    )
    app.layout = lambda: _layout(runs)
    _add_files(app, runs)
    _add_settings(app)
    _add_flights(app, runs)
    _add_comparison(app, runs)
    _add_designs(app, runs)
    return app


def _add_files(app: Dash, runs: RunFolders) -> None:
    """Pages of runs and their reports, by address."""

    @app.server.get("/run")
    def page() -> str | Response:
        names = [request.args["show"], *filter(None, [request.args.get("with")])]
        try:
            return runs.page(*names)
        except MuslsError as error:  # a damaged recording
            return Response(str(error), 422, mimetype="text/plain")

    @app.server.get("/design")
    def design() -> Response:
        return send_file(os.path.abspath(runs.design(request.args["of"])))

    @app.server.get("/report")
    def report() -> Response:
        return send_file(os.path.abspath(runs.report(request.args["of"])))


def _add_settings(app: Dash) -> None:
    """Choice of a scenario, and of values for its keys."""

    @app.callback(Output("about", "children"), Output("key", "options"), Input("scenario", "value"))
    def choose_scenario(name: str) -> tuple[str, list[str]]:
        try:
            return chosen_scenario(name).description, sorted(settings(name))
        except MuslsError as error:
            return str(error), []

    @app.callback(
        Output("meaning", "children"),
        Output("value", "value"),
        Input("key", "value"),
        State("scenario", "value"),
    )
    def choose_key(key: str | None, scenario: str) -> tuple[str, str]:
        try:
            all_settings = settings(scenario) if key else {}
        except MuslsError as error:
            return str(error), ""
        if key not in all_settings:
            return CHOOSE, ""
        value = all_settings[key][0]
        return explained(*all_settings[key]), value if isinstance(value, str) else json.dumps(value)

    @app.callback(
        Output("overrides", "value"),
        Output("hint", "children"),
        Input("add", "n_clicks"),
        Input("value", "n_submit"),
        State("key", "value"),
        State("value", "value"),
        State("overrides", "value"),
        prevent_initial_call=True,
    )
    def add(_: int, __: int, key: str | None, value: str | None, lines: str) -> Any:
        if not key or not value:
            return no_update, "Give the key a value first." if key else CHOOSE
        rest = [line for line in lines.splitlines() if line.partition("=")[0] != key]
        return "\n".join([*rest, f"{key}={value}"]), ""


def _add_flights(app: Dash, runs: RunFolders) -> None:
    """Start, progress and end of a flight; each tab of a browser has its own."""
    flights: dict[str, FlightProcess] = {}  # by tab

    @app.callback(
        Output("status", "children"),
        Output("status", "className"),
        Output("fly", "disabled"),
        Output("stop", "disabled"),
        Output("show", "options"),
        Output("with", "options"),
        Output("show", "value"),
        Output("tab", "data"),
        Output("live", "src"),
        Output("live", "hidden"),
        Input("fly", "n_clicks"),
        Input("stop", "n_clicks"),
        Input("look", "n_intervals"),
        State("scenario", "value"),
        State("overrides", "value"),
        State("show", "value"),
        State("status", "children"),
        State("tab", "data"),
        State("watch", "value"),
    )
    def fly(
        _: int,
        __: int,
        looks: int,
        name: str,
        lines: str,
        selection: str | None,
        message: str,
        tab: str | None,
        watch: list[str],
    ) -> Any:
        pressed = ctx.triggered_prop_ids.values()  # a slow browser joins a press with a look
        if tab is None and (looks or "fly" in pressed):  # before, it may not have been read yet
            tab = secrets.token_hex(8)
        own = flights.get(tab or "")
        if "fly" in pressed and tab and own is None:
            overrides = [line.strip() for line in lines.splitlines() if line.strip()]
            try:
                scenario = chosen_scenario(name, overrides)
                out = runs.folder / default_folder(scenario.name).name
                own = flights[tab] = FlightProcess(name, overrides, out, bool(watch))
            except MuslsError as error:
                message = FOR_A_SHELL.sub("", f"{ERROR}{error}")
        if "stop" in pressed and own:
            own.stop()
        if own and own.goes_on:
            message = own.said
        elif own and tab:
            del flights[tab]
            message = own.result()
            selection = own.out.name if own.out.name in runs.names() else selection
        options = runs.options()
        busy = tab in flights
        wrong = any(line.startswith((INVALID, ERROR)) for line in message.splitlines())
        look = "warning" if wrong else "note"
        live = own.page if own and busy else ""
        return message, look, busy, not busy, options, options, selection, tab, live, not live


def _add_comparison(app: Dash, runs: RunFolders) -> None:
    """Choice of the runs that are shown."""

    @app.callback(
        Output("page", "src"),
        Output("save", "href"),
        Output("save", "download"),
        Output("report", "href"),
        Output("report", "hidden"),
        Input("show", "value"),
        Input("with", "value"),
    )
    def show(name: str | None, other: str | None) -> tuple[str, str, str, str, bool]:
        if not name:
            return "", "", "", "", True
        query = {"show": name} | ({"with": other} if other and other != name else {})
        address = f"/run?{urlencode(query)}"
        file = "_and_".join(query.values()) + ".html"
        report = runs.folder / name / "report.html"
        link = f"/report?{urlencode({'of': name})}"
        return address, address, file, link, not report.is_file()


# ---------- A design


ASKED = {
    "size": ("Length, width, height [m]", "1.2,0.8"),
    "mass": ("Mass [kg]", "4"),
    "wind": ("Wind [m/s]", "6"),
    "gusts": ("Gusts add [m/s]", "0"),
    "drones": ("Drones", "x500,typhoon"),
    "require": ("Required, such as survives_one", ""),
}
"""Options of `musls design` on the page: label and first value."""


def _add_designs(app: Dash, runs: RunFolders) -> None:
    """Start, progress and end of a search for a fleet, and its page."""
    searches: dict[str, CommandProcess] = {}  # by tab

    @app.callback(
        Output("design_status", "children"),
        Output("design_status", "className"),
        Output("design", "disabled"),
        Output("design_stop", "disabled"),
        Output("designs", "options"),
        Output("designs", "value"),
        Input("design", "n_clicks"),
        Input("design_stop", "n_clicks"),
        Input("look", "n_intervals"),
        State("shape", "value"),
        State("designs", "value"),
        State("design_status", "children"),
        State("tab", "data"),
        *(State(f"design_{name}", "value") for name in ASKED),
    )
    def search(
        _: int,
        __: int,
        ___: int,
        shape: str,
        selection: str | None,
        message: str,
        tab: str | None,
        *values: str | None,
    ) -> Any:
        pressed = ctx.triggered_prop_ids.values()
        own = searches.get(tab or "")
        if "design" in pressed and tab and own is None:
            texts = dict(zip(ASKED, [(value or "").strip() for value in values], strict=True))
            words = [word for name, text in texts.items() if text for word in (f"--{name}", text)]
            try:
                check_files(*texts.values())
                out = runs.folder / default_folder(f"design_{shape}").name
                own = searches[tab] = CommandProcess(["design", "--shape", shape, *words], out)
            except MuslsError as error:
                message = f"{ERROR}{error}"
        if "design_stop" in pressed and own:
            own.stop()
        if own and own.goes_on:
            message = own.said
        elif own and tab:
            del searches[tab]
            message = own.last_words()
            if own.out.name in runs.designs():
                message = f"designed: {own.out}"
                selection = own.out.name
        look = "warning" if message.startswith(ERROR) else "note"
        return message, look, tab in searches, tab not in searches, runs.designs(), selection

    @app.callback(
        Output("design_page", "src"), Output("design_page", "hidden"), Input("designs", "value")
    )
    def show(name: str | None) -> tuple[str, bool]:
        return (f"/design?{urlencode({'of': name})}", False) if name else ("", True)


def _design_section() -> html.Section:
    labels = [
        part
        for name, (label, first) in ASKED.items()
        for part in (
            html.Label(label, htmlFor=f"design_{name}"),
            html.Div(dcc.Input(first, id=f"design_{name}", type="text"), className="row"),
        )
    ]
    return html.Section(
        [
            html.H2("Design"),
            html.Label("Load", htmlFor="shape"),
            dcc.Dropdown([kind.value for kind in LoadKind], "plate", id="shape", clearable=False),
            *labels,
            html.Div(
                [
                    html.Button("Design", id="design", className="main"),
                    html.Button("Stop", id="design_stop"),
                ],
                className="row",
            ),
            html.P("", id="design_status", className="note", role="status"),
            html.Label("Page of a design", htmlFor="designs"),
            dcc.Dropdown([], id="designs", placeholder="none shown"),
        ]
    )


def _refusal(token: str) -> Any:
    """Refuse a request without the address's secret; None for all others."""
    host = request.host  # one that is not trusted is refused here
    cookie = f"musls_studio_{host.rpartition(':')[2]}"  # ports of a host share their cookies
    if request.headers.get("Origin", f"http://{host}") != f"http://{host}":
        return Response("musls studio: asked by a page of another site\n", 403)
    if secrets.compare_digest(request.args.get("token", "").encode(), token.encode()):
        answer = redirect("/")
        answer.set_cookie(cookie, token, httponly=True, samesite="Lax")
        return answer
    if secrets.compare_digest(request.cookies.get(cookie, "").encode(), token.encode()):
        return None
    text = "musls studio: open the address that it printed, which ends in ?token=...\n"
    return Response(text, 403, mimetype="text/plain")


def _layout(runs: RunFolders) -> html.Main:
    names = runs.names()
    fly = html.Section(
        [
            html.H2("Fly"),
            html.Label("Scenario", htmlFor="scenario"),
            dcc.Dropdown(scenarios(), "circle", id="scenario", clearable=False),
            html.P(id="about", className="note"),
            html.Label("Key to change", htmlFor="key"),
            dcc.Dropdown([], id="key", placeholder="such as system.load.mass_kg"),
            dcc.Markdown(id="meaning", className="note"),
            html.Label("Value", htmlFor="value"),
            html.Div(
                [
                    dcc.Input(id="value", type="text"),
                    html.Button("Add", id="add"),
                ],
                className="row",
            ),
            html.P(id="hint", className="warning", role="status"),
            html.Label("Changes, one key=value a line", htmlFor="overrides"),
            dcc.Textarea(id="overrides", value="", rows=4),
            dcc.Checklist({"live": WATCH} if find_spec("rerun") else {}, [], id="watch"),
            html.Div(
                [
                    html.Button("Fly", id="fly", className="main"),
                    html.Button("Stop", id="stop"),
                ],
                className="row",
            ),
            html.P("", id="status", className="note", role="status"),
        ]
    )
    look = html.Section(
        [
            html.H2("Look"),
            html.Label("Run", htmlFor="show"),
            dcc.Dropdown(
                [], names[0] if names else None, id="show", placeholder="nothing flown yet"
            ),
            html.Label("Compare with", htmlFor="with"),
            dcc.Dropdown([], id="with", placeholder="no other run"),
            html.P(
                [
                    html.A("Report of this run", id="report", target="_blank", hidden=True),
                    " ",
                    html.A("Save this page as one file", id="save"),
                ],
                className="note",
            ),
        ]
    )
    return html.Main(
        [
            html.H1("musls studio"),
            html.P(f"Runs in {runs.folder}", className="lead"),
            html.Div(
                [
                    html.Div([fly, look, _design_section()], className="side"),
                    html.Div(
                        [
                            html.Iframe(id="live", title="Flight", hidden=True),
                            html.Iframe(id="page", title="Run"),
                            html.Iframe(id="design_page", title="Design", hidden=True),
                        ]
                    ),
                ],
                className="studio",
            ),
            dcc.Interval(id="look", interval=LOOK_EVERY_MS),
            dcc.Store(id="tab", storage_type="session"),
        ]
    )


STYLE = """
<style>
body { --Dash-Text-Primary: var(--ink); --Dash-Text-Strong: var(--ink);
  --Dash-Text-Weak: var(--soft); --Dash-Text-Disabled: var(--soft);
  --Dash-Stroke-Strong: var(--line); --Dash-Stroke-Weak: var(--line);
  --Dash-Fill-Inverse-Strong: var(--card); --Dash-Fill-Interactive-Strong: var(--accent); }
main { max-width: none; padding: 18px 20px; } section h2 { margin-top: 18px; }
.studio { display: grid; grid-template-columns: 360px minmax(0, 1fr); gap: 20px; }
#status, #design_status { white-space: pre-wrap; overflow-wrap: anywhere; }
#watch { margin-top: 8px; }
.side section > label { display: block; font-weight: 600; margin: 10px 0 4px; }
.row { display: flex; gap: 8px; margin-top: 8px; } .row > div { flex: 1; min-width: 0; }
textarea, .row input { width: 100%; padding: 6px 8px; color: var(--ink); background: var(--card);
  font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace;
  border: 1px solid var(--line); border-radius: 8px; }
button { font: inherit; padding: 6px 18px; border-radius: 8px; border: 1px solid var(--line);
  background: var(--card); color: var(--accent); cursor: pointer; }
button:disabled { opacity: .45; cursor: default; }
button.main { background: var(--accent); color: var(--page); }
:focus-visible { outline: 3px solid var(--accent); }
iframe { width: 100%; height: 92vh; border: 1px solid var(--line); border-radius: 10px;
  background: var(--page); }
a { color: var(--accent); }
@media (max-width: 820px) { .studio { grid-template-columns: minmax(0, 1fr); } }
</style>
"""


class Quiet(WSGIRequestHandler):
    """Says nothing of requests that went well."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """A request was answered."""


def start(folder: Path, port: int) -> tuple[BaseWSGIServer, str]:
    """The server, bound to this machine, and its address with a token; port 0 takes a free one.

    Its method `serve_forever` runs it.
    """
    token = secrets.token_urlsafe(24)
    app = build_app(RunFolders(folder), token)
    try:
        with socket.create_server((HOST, port)) as server_socket:
            server = make_server(
                HOST,
                port,
                app.server,
                threaded=True,
                request_handler=Quiet,
                fd=server_socket.fileno(),
            )
        return server, f"http://{HOST}:{server.port}/?token={token}"
    except OSError as error:
        raise MuslsError(f"--port {port}: {error.strerror}; --port 0 takes a free one") from None
