"""JSON schema of a specification: types, ranges, defaults, and the docstrings' meanings.

pydantic knows types, ranges and defaults; the meanings are in the "Attributes:" of the classes.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, PydanticJsonSchemaWarning

from musls_description.docstrings import explanation, meanings
from musls_description.schema import to_data

DIALECT = "http://json-schema.org/draft-07/schema#"
"""The dialect that every editor knows; nothing newer is used."""

FOLLOWS = "x-follows"
"""Key of a JSON schema: left out, the value follows from other keys."""


class _Documented(GenerateJsonSchema):
    """Adds what the docstrings say, and the defaults that a factory makes."""

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        """The schema of one specification."""
        made = super().dataclass_schema(schema)
        kind: type = schema["cls"]
        made["description"] = explanation(kind)
        told = meanings(kind)
        found = made.get("properties", {})
        names = [field.name for field in dataclasses.fields(kind)]
        made["properties"] = {name: found[name] for name in names if name in found}
        for field in dataclasses.fields(kind):
            entry = made.get("properties", {}).get(field.name)
            if entry is None:
                continue
            if field.name in told:
                entry["description"] = told[field.name]
            pydantic_field = getattr(kind, "__pydantic_fields__", {}).get(field.name)
            if pydantic_field is not None and pydantic_field.default_factory is not None:
                default = pydantic_field.get_default(call_default_factory=True, validated_data={})
                entry["default"] = to_data(default)
            if _is_nan(getattr(kind, field.name, None)):
                entry[FOLLOWS] = True
        return made

    def tuple_schema(self, schema: Any) -> dict[str, Any]:
        """A list of equal items in the form that old editors know too."""
        made = super().tuple_schema(schema)
        items = made.get("prefixItems")
        if items and all(item == items[0] for item in items):
            del made["prefixItems"]
            made["items"] = items[0]
        return made


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def json_schema(kind: type) -> dict[str, Any]:
    """Make the JSON schema of a specification.

    Args:
        kind: Class made with `spec`.

    Returns:
        A schema in draft 7; fields that take one of several kinds have `x-kinds` too.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PydanticJsonSchemaWarning)  # NaN as a default
        made = TypeAdapter(kind).json_schema(
            schema_generator=_Documented, ref_template="#/$defs/{model}"
        )
    return {"$schema": DIALECT, **made}
