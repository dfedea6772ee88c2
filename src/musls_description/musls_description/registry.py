"""Open registries: kinds of trajectories, controllers, plants, events and readers by their names.

What users write themselves is a peer of what the distribution ships. It gets into a registry in
one of three ways:

- the decorator `REGISTRY.register("name")` in a module that is imported, such as a file that a
  scenario lists under `extensions`,
- an entry point of an installed package in the registry's group (`musls.controllers = ...`),
- an entry of the distribution itself, given as "module:attribute" and imported when it is
  asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any, Generic, TypeVar

from pydantic import GetJsonSchemaHandler, PlainSerializer, PlainValidator
from pydantic_core import PydanticCustomError

from musls_description.errors import ConfigError
from musls_description.names import near_names
from musls_description.schema import adapter
from musls_description.user_code import describe_error

T = TypeVar("T")


class UnknownName(ConfigError, KeyError):  # noqa: N818 (an answer to a look-up)
    """Nothing in a registry has this name; the message names the near ones."""

    __str__ = Exception.__str__


class Registry(Mapping[str, T], Generic[T]):
    """Things of one sort by name; looking one up imports it if needed."""

    def __init__(
        self,
        what: str,
        group: str,
        shipped: Mapping[str, str | T],
        prepare: Callable[[Any], Any] = lambda thing: thing,
    ) -> None:
        """Prepare; nothing is imported yet.

        Args:
            what: What it holds, in the singular, for messages: "controller".
            group: Group of entry points that installed packages may use: "musls.controllers".
            shipped: The distribution's own, as objects or as "module:attribute".
            prepare: Checks what users bring and makes it fit.
        """
        self.what, self.group, self._prepare = what, group, prepare
        self._entries: dict[str, Any] = dict(shipped)

    def register(self, name: str) -> Callable[[Any], Any]:
        """Make the decorator that enters something under a name.

        Raises:
            ConfigError: The name is taken by something else.
        """

        def enter(thing: Any) -> Any:
            known = self._entries.get(name)
            if known is not None and not _is_same(known, thing):
                raise ConfigError(f"{self.what} '{name}' exists already: choose another name")
            self._entries[name] = self._prepare(thing)
            return thing

        return enter

    def __getitem__(self, name: str) -> T:
        """The thing of a name.

        Raises:
            UnknownName: No such name; names the near ones.
            ConfigError: It cannot be imported.
        """
        entry: Any = self._entries.get(name)
        if entry is None:  # only now: to look through the installed packages takes 15 ms
            if (point := self._installed.get(name)) is None:
                raise UnknownName(self.unknown(name))
            entry = self._prepare(self._load(point))
        elif isinstance(entry, str):
            module, _, attribute = entry.partition(":")
            entry = getattr(import_module(module), attribute)
        thing: T = entry
        self._entries[name] = thing
        return thing

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self._installed

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._entries, *self._installed]))

    def __len__(self) -> int:
        return len(dict.fromkeys([*self._entries, *self._installed]))

    def unknown(self, name: object) -> str:
        """Text for a name that is not known."""
        return f"unknown {self.what} '{name}': {near_names(str(name), sorted(self))}"

    @cached_property
    def _installed(self) -> dict[str, EntryPoint]:
        """Entry points of installed packages; our own names cannot be replaced by them."""
        return {point.name: point for point in entry_points(group=self.group)}

    def _load(self, point: EntryPoint) -> Any:
        try:
            return point.load()
        except Exception as error:
            source = point.dist.name if point.dist else point.value
            raise ConfigError(
                f"{self.what} '{point.name}' of {source} cannot be imported: "
                f"{describe_error(error)}"
            ) from error


def _is_same(known: Any, thing: Any) -> bool:
    """Whether something is entered again under its name, as when a notebook's cell runs twice."""
    return known is thing or _origin(known) == _origin(thing) is not None


def _origin(thing: Any) -> tuple[str, str] | None:
    """Module and name of a class or function."""
    name = getattr(thing, "__qualname__", None)
    return None if name is None else (thing.__module__, name)


def any_of(registry: Registry[Any], default_kind: str | None = None) -> Any:
    """Type of a field that holds any specification of a registry, told apart by its `kind`.

    Args:
        registry: Classes made with `schema.spec`, by their kind.
        default_kind: Kind of a mapping that names none.
    """

    def validate(value: Any) -> Any:
        if is_dataclass(value) and getattr(value, "kind", None) in registry:
            return value
        if isinstance(value, str):
            value = {"kind": value}
        if not isinstance(value, Mapping):
            raise PydanticCustomError(
                "mapping_expected", "expected a mapping with a kind ({kinds})",
                {"kinds": ", ".join(sorted(registry))},
            )  # fmt: skip
        kind = value.get("kind", default_kind)
        if kind is None:
            raise PydanticCustomError(
                "kind_missing", "kind is missing: choose one of {kinds}",
                {"kinds": ", ".join(sorted(registry))},
            )  # fmt: skip
        if not isinstance(kind, str) or kind not in registry:
            raise PydanticCustomError("kind_unknown", "{text}", {"text": registry.unknown(kind)})
        return adapter(registry[kind]).validate_python(dict(value))

    return Annotated[
        Any,
        PlainValidator(validate),
        PlainSerializer(lambda value: value),
        OneOf(registry, default_kind),
    ]


class OneOf:
    """Says in a JSON schema what a field made by `any_of` takes."""

    def __init__(self, registry: Registry[Any], default_kind: str | None = None) -> None:
        """Remember the registry; its classes are imported only for a schema."""
        self._registry, self._default_kind = registry, default_kind

    def __get_pydantic_json_schema__(
        self, core_schema: Any, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """A kind alone, or a mapping whose `kind` decides on the other keys."""
        kinds = {
            name: handler(adapter(thing).core_schema)
            for name, thing in self._registry.items()
            if is_dataclass(thing)
        }
        rules: list[dict[str, Any]] = [
            {"if": {"properties": {"kind": {"const": name}}, "required": ["kind"]}, "then": below}
            for name, below in kinds.items()
        ]
        mapping: dict[str, Any] = {
            "type": "object",
            "properties": {"kind": {"enum": sorted(self._registry)}},
            "allOf": rules,
        }
        if self._default_kind is None:
            mapping["required"] = ["kind"]
        return {
            "anyOf": [{"type": "string", "enum": sorted(self._registry)}, mapping],
            KINDS: kinds,
        }


class NameIn:
    """Says in a JSON schema that a text is a name in a registry."""

    def __init__(self, registry: Registry[Any]) -> None:
        """Remember the registry."""
        self._registry = registry

    def __get_pydantic_json_schema__(
        self, core_schema: Any, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """All names that are known."""
        return {"type": "string", "enum": sorted(self._registry)}


KINDS = "x-kinds"
"""Key of a JSON schema under which a field with a `kind` has the schema of each."""
