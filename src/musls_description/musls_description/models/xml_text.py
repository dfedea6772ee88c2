"""XML with numbers: readable text with full precision, the same in every run."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

import numpy as np
from numpy.typing import ArrayLike

from musls_description.errors import ConfigError


def number(value: float) -> str:
    """Shortest text that reads back as the same float; whole numbers without a point.

    Raises:
        ConfigError: The number is not finite.
    """
    value = float(value)
    if not math.isfinite(value):
        raise ConfigError(f"a model file cannot contain the number {value}: it must be finite")
    whole = value == int(value) and abs(value) < 1e6
    return str(int(value)) if whole else repr(value)


def numbers(*values: ArrayLike) -> str:
    """Numbers, and those of arrays, with a space between.

    Raises:
        ConfigError: One is not finite.
    """
    return " ".join(number(v) for value in values for v in np.ravel(value))


def add(
    parent: Element, tag: str, content: str | float | None = None, /, **attributes: str
) -> Element:
    """Append an element with text or a number in it."""
    element = SubElement(parent, tag, attributes)
    if content is not None:
        element.text = content if isinstance(content, str) else number(content)
    return element


def add_all(parent: Element, /, **contents: str | float) -> None:
    """Append an element for each keyword."""
    for tag, content in contents.items():
        add(parent, tag, content)


def read_part(name: str) -> Element:
    """Read a file of the folder `parts`, which holds what is the same for every system."""
    builder = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    return ElementTree.parse(Path(__file__).parent / "parts" / name, builder).getroot()


def find(root: Element, path: str) -> Element:
    """Find an element of a part by its path.

    Raises:
        LookupError: There is no such element.
    """
    element = root.find(path)
    if element is None:
        raise LookupError(f"<{root.tag}> has no {path}")
    return element


def to_text(root: Element, title: str) -> str:
    """A whole document, indented, with a comment on what it is."""
    ElementTree.indent(root)
    title = title.replace("--", "-")
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0"?>\n<!-- {title} Written by `musls model`. -->\n{text}\n'
