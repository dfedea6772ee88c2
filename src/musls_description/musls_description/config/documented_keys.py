"""Keys of a specification for people: meaning, unit, default and range of each, by its path.

A path is what `--set` takes, with the kind in place of an index where a list holds several kinds:
`system.cables.length_m`, `mission.stages.circle.radius_m`. A key whose name the user chooses is
`NAME`.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, PydanticJsonSchemaWarning

from musls_description.config.errors import ConfigError, near_names
from musls_description.config.schema import LARGEST, to_data
from musls_description.config.strict_yaml import shown

# ---------- Docstrings of classes (Google style): summary, explanation, meaning of each field


def summary(thing: object) -> str:
    """First line of a docstring; "" if there is no docstring."""
    return (thing.__doc__ or "").strip().partition("\n")[0]


def explanation(kind: type) -> str:
    """Text of a class's docstring before its sections, on one line."""
    text = re.split(r"\n\n(?=\w+:\n)", inspect.cleandoc(kind.__doc__ or ""))[0]
    return " ".join(text.split())


def meanings(kind: type) -> dict[str, str]:
    """Meaning of each field from "Attributes:", on one line, those of base classes included."""
    texts: dict[str, str] = {}
    for cls in reversed(kind.__mro__[:-1]):
        texts |= _own_meanings(cls)
    return texts


def _own_meanings(kind: type) -> dict[str, str]:
    texts: dict[str, str] = {}
    name = ""
    text = inspect.cleandoc(vars(kind).get("__doc__") or "")
    for line in text.partition("Attributes:\n")[2].split("\n"):
        match = re.fullmatch(r" {4}(\w+): (.*)", line)
        if match:
            name = match[1]
            texts[name] = match[2]
        elif name and line.startswith(" " * 8):
            texts[name] += " " + line.strip()
        elif line.strip():
            break
    return texts


# ---------- JSON schema of a specification: types, ranges, defaults, and the docstrings' meanings

DIALECT = "http://json-schema.org/draft-07/schema#"
"""The dialect that every editor knows; nothing newer is used."""

FOLLOWS = "x-follows"
"""Key of a JSON schema: left out, the value follows from other keys."""


class _Documented(GenerateJsonSchema):
    """Adds what the docstrings say, and the defaults that a factory makes."""

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        """The schema of one specification."""
        result = super().dataclass_schema(schema)
        kind: type = schema["cls"]
        result["description"] = explanation(kind)
        texts = meanings(kind)
        properties = result.get("properties", {})
        names = [field.name for field in dataclasses.fields(kind)]
        result["properties"] = {name: properties[name] for name in names if name in properties}
        for field in dataclasses.fields(kind):
            entry = result.get("properties", {}).get(field.name)
            if entry is None:
                continue
            if field.name in texts:
                entry["description"] = texts[field.name]
            pydantic_field = getattr(kind, "__pydantic_fields__", {}).get(field.name)
            if pydantic_field is not None and pydantic_field.default_factory is not None:
                default = pydantic_field.get_default(call_default_factory=True, validated_data={})
                entry["default"] = to_data(default)
            if _is_nan(getattr(kind, field.name, None)):
                entry[FOLLOWS] = True
        return result

    def tuple_schema(self, schema: Any) -> dict[str, Any]:
        """A list of equal items in the form that old editors know too."""
        result = super().tuple_schema(schema)
        items = result.get("prefixItems")
        if items and all(item == items[0] for item in items):
            del result["prefixItems"]
            result["items"] = items[0]
        return result


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def json_schema(kind: type) -> dict[str, Any]:
    """JSON schema of a specification, draft 7."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PydanticJsonSchemaWarning)  # NaN as a default
        schema = TypeAdapter(kind).json_schema(
            schema_generator=_Documented, ref_template="#/$defs/{model}"
        )
    return {"$schema": DIALECT, **schema}


ANY_NAME = "NAME"
"""Part of a path that stands for a key whose name the user chooses."""

NO_DEFAULT = object()

_UNITS = {
    "m": "m",
    "m2": "m²",
    "m_s": "m/s",
    "m_s2": "m/s²",
    "m_s3": "m/s³",
    "m_s4": "m/s⁴",
    "s": "s",
    "ms": "ms",
    "us": "µs",
    "hz": "Hz",
    "kg": "kg",
    "kg_m3": "kg/m³",
    "kg_m2": "kg m²",
    "n": "N",
    "n_m": "N m",
    "nm": "N m",
    "n_s": "N s",
    "n_s_m": "N s/m",
    "n_m2": "N m²",
    "n_m2_s": "N m² s",
    "n_m_rad": "N m/rad",
    "n_m_s_rad": "N m s/rad",
    "n_s2": "N s²",
    "n_s2_m_rad": "N s²/(m rad)",
    "n_s2_m3": "N s²/m³",
    "n_m_s2": "N m s²",
    "rad": "rad",
    "rad_s": "rad/s",
    "rad_s2": "rad/s²",
    "rpm_v": "rpm/V",
    "deg": "°",
    "c": "°C",
    "k": "K",
    "v": "V",
    "a": "A",
    "ah": "A h",
    "ohm": "Ω",
    "w": "W",
    "j": "J",
    "hpa": "hPa",
    "pa": "Pa",
    "1_s": "1/s",
    "1_s2": "1/s²",
    "1_s3": "1/s³",
    "gauss": "gauss",
    "n_m_a": "N m/A",
    "wxyz": "w, x, y, z",
}


def split_unit(name: str) -> tuple[str, str]:
    """Words and unit of a quantity's name: "speed", "m/s" for "speed_m_s"."""
    parts = name.split("_")
    for start in range(1, len(parts)):
        unit = _UNITS.get("_".join(parts[start:]))
        if unit is not None:
            return " ".join(parts[:start]), unit
    return " ".join(parts), ""


def unit_of(name: str) -> str:
    """Unit of a quantity from its name: "m/s" for "speed_m_s", "" where there is none."""
    return split_unit(name)[1]


@dataclass(frozen=True)
class Key:
    """One key: meaning, type, range and default.

    Attributes:
        path: Keys from the root, joined by dots; "" for the root.
        allowed: Type and range: "number > 0", "one of air, ground".
        default: Default as plain data; `NO_DEFAULT` for one of several kinds, and your own names.
        has_default: Whether it may be left out.
        node: JSON schema of the key.
    """

    path: str
    meaning: str
    allowed: str
    default: Any
    has_default: bool
    node: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]

    @property
    def unit(self) -> str:
        """Unit of its numbers, "" where it has none."""
        return unit_of(self.name)

    @property
    def default_text(self) -> str:
        """The default as in YAML, "needed" where there is none."""
        if FOLLOWS in self.node:
            return "follows"
        if not self.has_default:
            return "needed"
        return "" if self.default is NO_DEFAULT else short(self.default)


def short(value: Any) -> str:
    """A default as it is written in YAML; mappings are left to their own keys."""
    if isinstance(value, Mapping):
        return "{...}" if value else "{}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(short, value)) + "]"
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


class Keys:
    """All keys of a specification, read from its JSON schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema

    @property
    def root(self) -> Key:
        """The specification itself."""
        text = self._schema.get("description", "")
        return Key("", text, "mapping", NO_DEFAULT, False, self._schema)

    def below(self, key: Key) -> list[Key]:
        """The keys directly below one, in the order of their declaration.

        Where there are several kinds these are the kinds.
        """
        keys: dict[str, Key] = {}
        for name, node, is_required in self._children(key.node):
            path = f"{key.path}.{name}" if key.path else name
            if path in keys:  # of another alternative
                continue
            target = self._resolved(node)
            meaning = node.get("description") or target.get("description", "")
            default = node.get("default", target.get("const", NO_DEFAULT))
            has_default = not is_required
            keys[path] = Key(path, meaning, self.allowed(node), default, has_default, node)
        return list(keys.values())

    def all(self) -> Iterator[Key]:
        """Every key, each before those below it."""
        yield from self._walk(self.root, ())

    def _walk(self, key: Key, above: tuple[int, ...]) -> Iterator[Key]:
        for child in self.below(key):
            yield child
            target = id(self._resolved(child.node))
            if target not in above:  # a specification that holds itself
                yield from self._walk(child, (*above, target))

    @functools.cached_property
    def _by_path(self) -> dict[str, Key]:
        return {key.path: key for key in self.all()}

    def find(self, text: str) -> list[Key]:
        """Find keys by a path, by the end of a path, by words of a path or of their meaning.

        Indices of lists in the text are ignored.
        """
        parts = [part for part in text.strip().split(".") if not part.isdigit()]
        path = ".".join(parts)
        if not path:
            return [self.root]
        exact = self._exact(parts)
        if exact is not None:
            return [exact]
        keys = list(self._by_path.values())
        ends = [key for key in keys if f".{key.path}".endswith(f".{path}")]
        across = [key for key in keys if _in_order(parts, key.path.split("."))]
        if len(path) >= 3:
            words = [key for key in keys if path.lower() in key.name.lower()]
        else:
            words = []
        query = text.lower().split()
        by_meaning = [key for key in keys if len(query) > 1 and _has_words(key.meaning, query)]
        matches = ends or across or words or by_meaning
        if not matches:
            names = sorted({key.name for key in keys} | set(self._by_path))
            raise ConfigError(f"no key '{shown(text)}': {near_names(path, names)}")
        return matches

    def _exact(self, parts: list[str]) -> Key | None:
        key = self.root
        for part in parts:
            below = {child.name: child for child in self.below(key)}
            child = below.get(part) or below.get(ANY_NAME)
            if child is None:
                return None
            key = child
        return key

    def allowed(self, node: Mapping[str, Any]) -> str:
        """Type and range of a node in words."""
        node = self._resolved(node)
        if kinds := self._kinds(node):
            return f"one kind of {', '.join(kinds)}"
        if "anyOf" in node or "oneOf" in node:
            alternatives = [self.allowed(part) for part in node.get("anyOf") or node["oneOf"]]
            real = [text for text in dict.fromkeys(alternatives) if text != "none"]
            return " or ".join([*real, *(["none"] if "none" in alternatives else [])])
        if "enum" in node or "const" in node:
            values = node.get("enum") or [node["const"]]
            return ("one of " if len(values) > 1 else "") + ", ".join(map(short, values))
        kind = node.get("type")
        if kind in ("number", "integer"):
            return _number(node)
        if kind == "array":
            return self._list(node)
        words = {"string": "text", "boolean": "true or false", "null": "none", "object": "mapping"}
        return words.get(str(kind), "any value")

    def _list(self, node: Mapping[str, Any]) -> str:
        inner = self.allowed(node.get("items", {}))
        least, most = node.get("minItems"), node.get("maxItems")
        if least == most and least is not None:
            return f"{least} × {inner}"
        return f"list of {inner}" + _count(least, most)

    def _resolved(self, node: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in node:
            reference = node["$ref"].rpartition("/")[2]
            if node["$ref"] == "#":
                return self._schema
            node = self._schema["$defs"][reference]
        return node

    def _kinds(self, node: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
        """Alternatives of a node that their `kind` tells apart, by it."""
        kinds: dict[str, Mapping[str, Any]] = {}
        for part in node.get("anyOf") or node.get("oneOf", ()):
            kind = self._resolved(part).get("properties", {}).get("kind", {})
            names = [kind["const"]] if "const" in kind else kind.get("enum", ())
            kinds |= dict.fromkeys(names, part)
        return dict(sorted(kinds.items()))

    def _children(self, node: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
        """Name, schema and whether it is needed, of all that is below a node."""
        node = self._resolved(node)
        if kinds := self._kinds(node):
            for name, below in kinds.items():
                yield name, below, False
        elif "properties" in node or isinstance(node.get("additionalProperties"), Mapping):
            required_names = node.get("required", ())
            for name, below in node.get("properties", {}).items():
                yield name, below, name in required_names
            if isinstance(node.get("additionalProperties"), Mapping):
                yield ANY_NAME, node["additionalProperties"], False
        else:
            parts = [*node.get("anyOf", ()), *node.get("oneOf", ())]
            if isinstance(node.get("items"), Mapping):
                parts.append(node["items"])
            for part in parts:
                yield from self._children(part)


def _has_words(meaning: str, words: Sequence[str]) -> bool:
    """Whether a text has all words, in any order."""
    there = re.findall(r"\w+", meaning.lower())
    return all(word in there for word in words)


def _in_order(parts: list[str], path: list[str]) -> bool:
    """Whether a path ends with the last part and has the others before it, in this order."""
    if not parts or len(parts) < 2 or path[-1] != parts[-1]:
        return False
    names = iter(path)
    return all(part in names for part in parts)


def _number(node: Mapping[str, Any]) -> str:
    word = "whole number" if node["type"] == "integer" else "number"
    low, high = node.get("minimum"), node.get("maximum")
    above = node.get("exclusiveMinimum")
    below = node.get("exclusiveMaximum")
    if low is not None and low <= -LARGEST:
        low = None
    if high is not None and high >= LARGEST:
        high = None
    if low is not None and high is not None:
        return f"{word} from {low:g} to {high:g}"
    limits = [
        f"{sign} {limit:g}"
        for sign, limit in ((">", above), ("≥", low), ("<", below), ("≤", high))
        if limit is not None
    ]
    return " ".join([word, " and ".join(limits)]).strip()


def _count(least: int | None, most: int | None) -> str:
    if least and most:
        return f", {least} to {most} of them"
    if least:
        return f", at least {least}"
    return f", at most {most}" if most else ""
