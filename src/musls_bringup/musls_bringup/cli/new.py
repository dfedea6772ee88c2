"""`musls new`: commented templates to start from."""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from typing import Annotated

import typer

from musls_description.errors import ConfigError, near_names
from musls_description.strict_yaml import shown


def run(
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help="system, scenario, controller or sweep.")
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new file.")],
    system: Annotated[
        str, typer.Option(help="System that the new scenario flies: a shipped one or a file.")
    ] = "x500_trio",
) -> None:
    """Writes a commented template that works as it is; never replaces a file."""
    from musls_description.library import system_path

    if system != "x500_trio" and kind != "scenario":
        raise ConfigError("--system belongs to `musls new scenario`")
    folder = Path(name).parent
    if kind == "scenario":
        system_path(system, relative_to=folder)  # its file counts from the scenario's folder
    path, uses = write_new(kind, name, system)
    typer.echo(f"{path} written. Next:")
    for use in uses:
        typer.echo(f"    {use}")


FOLDER = Path(__file__).parents[1] / "templates"

LONGEST_NAME = 80
"""Letters of a name; folders of results add date and time."""


TEMPLATES = {
    "system": ("musls fly hold --set system={file}", "musls new scenario NAME --system {file}"),
    "scenario": ("musls fly {file} --plan", "musls check {file}", "musls fly {file}"),
    "controller": ("musls fly circle --controller {file}:{class_name}",),
    "sweep": ("musls sweep {file}",),
}
"""Commands that use what is made from each template."""


def write_new(kind: str, name: str, system: str = "x500_trio") -> tuple[Path, list[str]]:
    """Write a template under a name of one's own."""
    if kind not in TEMPLATES:
        raise ConfigError(f"no template for '{shown(kind)}': {near_names(kind, TEMPLATES)}")
    suffix = ".py" if kind == "controller" else ".yaml"
    path = _path(name, suffix)
    texts = {"name": path.stem, "system": system, "class_name": class_name(path.stem)}
    if kind == "controller" and keyword.iskeyword(texts["class_name"]):
        raise ConfigError(f"'{path.stem}' is no name for a class in Python")
    from jinja2 import Environment, StrictUndefined

    source = (FOLDER / f"{kind}{suffix}.j2").read_text(encoding="utf-8")
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    text = environment.from_string(source).render(texts)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"{path} exists already: choose another name or remove it") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from None
    return path, [use.format(file=path, class_name=texts["class_name"]) for use in TEMPLATES[kind]]


def _path(name: str, suffix: str) -> Path:
    path = Path(name.strip())
    if path.suffix == suffix or (suffix == ".yaml" and path.suffix == ".yml"):
        stem = path.stem
    else:
        stem = path.name
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", stem) or len(stem) > LONGEST_NAME:
        raise ConfigError(
            f"'{shown(name)}' is no name: a letter, then letters, digits, _ and -, at most "
            f"{LONGEST_NAME} of them"
        )
    if suffix == ".py" and "-" in stem:
        raise ConfigError(f"'{shown(name)}': a name in Python has no -, write _ instead")
    return path.with_name(stem + suffix)


def class_name(name: str) -> str:
    """Name of a class in Python: "LoadFeedback" for "load_feedback"."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[_-]+", name) if part)
