"""Commented files to start from: systems, scenarios, controllers and sweeps of one's own."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from pathlib import Path

from musls_description.errors import ConfigError
from musls_description.names import near_names
from musls_description.strict_yaml import shown

FOLDER = Path(__file__).parent

LONGEST_NAME = 80
"""Letters of a name; folders of results add date and time."""


@dataclass(frozen=True)
class Template:
    """A file to start from.

    Attributes:
        file: Of the template, in this folder.
        suffix: Of the new file.
        use: Commands that use it, with {file} and {class_name}.
    """

    file: str
    suffix: str
    use: tuple[str, ...]


TEMPLATES = {
    "system": Template(
        "system.yaml.j2",
        ".yaml",
        ("musls fly hold --set system={file}", "musls new scenario NAME --system {file}"),
    ),
    "scenario": Template(
        "scenario.yaml.j2",
        ".yaml",
        ("musls fly {file} --plan", "musls check {file}", "musls fly {file}"),
    ),
    "controller": Template(
        "controller.py.j2", ".py", ("musls fly circle --controller {file}:{class_name}",)
    ),
    "sweep": Template("sweep.yaml.j2", ".yaml", ("musls sweep {file}",)),
}
"""By what they are for."""


def write_new(kind: str, name: str, system: str = "x500_trio") -> tuple[Path, list[str]]:
    """Write a template under a name of one's own.

    Args:
        kind: One of `TEMPLATES`.
        name: Of the new thing; folders that exist may stand before it, and its suffix after it.
        system: That a scenario flies: a shipped name or a file.

    Returns:
        The file, and commands that use it.

    Raises:
        ConfigError: No such template, no name for it, or there is such a file already.
    """
    if kind not in TEMPLATES:
        raise ConfigError(f"no template for '{shown(kind)}': {near_names(kind, TEMPLATES)}")
    template = TEMPLATES[kind]
    path = _path(name, template.suffix)
    texts = {"name": path.stem, "system": system, "class_name": class_name(path.stem)}
    if kind == "controller" and keyword.iskeyword(texts["class_name"]):
        raise ConfigError(f"'{path.stem}' is no name for a class in Python")
    from jinja2 import Environment, StrictUndefined

    source = (FOLDER / template.file).read_text(encoding="utf-8")
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    text = environment.from_string(source).render(texts)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(f"{path} exists already: choose another name or remove it") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from None
    return path, [use.format(file=path, class_name=texts["class_name"]) for use in template.use]


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
