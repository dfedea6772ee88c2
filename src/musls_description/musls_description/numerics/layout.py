"""Layouts: what lies in a piece of memory that compiled code and Python share, declared once.

A layout names numbers, which stand in one record, and fields, arrays that lie anywhere: the record
says how far they are from it, or from the begin of what several records share. All else follows
from the declaration: the record's type, the functions by which compiled code opens a field with its
own shape, and the checks of the arrays that Python puts there. Sizes have names; they are numbers
of the record, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from musls_description.numerics.arrays import Array
from musls_description.numerics.records import generate_view, load_word

WORD = np.dtype(np.int64)

TABLES = "tables"
"""Number of a record that says how far from it the begin of what many records share is."""


@dataclass(frozen=True)
class Number:
    """A number, or a few, in the record itself.

    Attributes:
        type: Type, with a shape where it is no single number: `(float, 3)`.
        owner: Attributes that lead from the owner of the memory to its value; "" where it is
            written otherwise.
    """

    name: str
    type: Any
    meaning: str
    owner: str = ""


@dataclass(frozen=True)
class Field:
    """An array.

    Attributes:
        shape: Numbers, and names of sizes; () for a single record.
        type: Type of its numbers or records; None where only its place is known: whoever opens it
            knows the type.
        owner: Attributes, or keys, that lead from the owner of the memory to the array, several
            such ways with " or " between them; "" for one that is made from the layout.
        group: Use, for those that leave a part of the fields out; "shared" for an array that many
            worlds read, which the record leads to by way of its number `tables`.
        apart: Size that says how many numbers its first index is apart; "" where all lie closely.
        recorded: Whether its rows are kept for recorders.
    """

    name: str
    shape: tuple[str | int, ...]
    type: Any
    meaning: str
    owner: str = ""
    group: str = ""
    apart: str = ""
    recorded: bool = False

    @property
    def shared(self) -> bool:
        """Whether worlds share it."""
        return self.group == "shared"

    @property
    def sizes(self) -> list[str]:
        """Names of its sizes."""
        return [size for size in (*self.shape, self.apart) if isinstance(size, str) and size]


def fields_of(owner: str, group: str = "") -> Callable[..., Field]:
    """Function that makes rows of fields of an owner, by default attributes of their names.

    `owner`: attributes that lead from the owner of the memory to it; "" for fields that are made.
    """

    def row(
        name: str,
        shape: tuple[str | int, ...],
        kind: Any,
        meaning: str,
        attribute: str = "",
        *,
        apart: str = "",
        recorded: bool = False,
    ) -> Field:
        way = f"{owner}.{attribute or name}" if owner else ""
        return Field(name, shape, kind, meaning, way, group, apart, recorded)

    return row


class Layout:
    """Numbers and fields.

    Attributes:
        numbers: Numbers by name, those of `begin` first.
        fields: Fields by name, likewise.
        sizes: Names of all sizes.
        record: Type of the record: numbers, sizes, places of the fields; aligned.
    """

    def __init__(
        self, numbers: Sequence[Number], fields: Sequence[Field], begin: Layout | None = None
    ) -> None:
        """`begin`: layout whose record is the begin of this one's."""
        self.record: np.dtype[np.void]
        self.numbers = {number.name: number for number in numbers}
        self.fields = {field.name: field for field in fields}
        self.sizes = list(dict.fromkeys(size for field in fields for size in field.sizes))
        columns: list[Any] = []
        if begin is not None:
            self.numbers = begin.numbers | self.numbers
            self.fields = begin.fields | self.fields
            self.sizes = list(dict.fromkeys([*begin.sizes, *self.sizes]))
            columns += begin.record.descr
        for number in numbers:
            kind = number.type if isinstance(number.type, tuple) else (number.type,)
            columns.append((number.name, *kind))
        names = {name for name, *_ in columns}
        columns += [(name, WORD) for name in self.sizes if name not in names]
        self.record = np.dtype([*columns, *((field.name, WORD) for field in fields)], align=True)

    def arrays_of(self, owner: object, without: Sequence[str] = ()) -> dict[str, NDArray[Any]]:
        """Arrays of all fields that an owner has, by name; `without`: groups to leave out."""
        ways = ((f.name, f.owner) for f in self.fields.values() if f.group not in without)
        arrays = ((name, follow(owner, way)) for name, way in ways if way)
        return {name: array for name, array in arrays if array is not None}

    def numbers_of(self, owner: object) -> dict[str, Any]:
        """Numbers that an owner has, by name."""
        ways = ((number.name, number.owner) for number in self.numbers.values() if number.owner)
        values = ((name, follow(owner, way)) for name, way in ways)
        return {name: value for name, value in values if value is not None}

    def fill(self, record: NDArray[np.void], values: Mapping[str, Any]) -> None:
        """Write numbers, places and sizes of arrays into a record, (1,).

        Raises:
            ValueError: An array's shape or type is not the declared one; names it.
        """
        sizes = {name: int(values[name]) for name in self.sizes if name in values}
        own = record.ctypes.data
        shared = own + int(values.get(TABLES, record[TABLES][0])) if TABLES in self.numbers else own
        for name, value in values.items():
            if (field := self.fields.get(name)) is None:
                record[name] = value
            else:
                _check(field, value, sizes)
                record[name] = value.ctypes.data - (shared if field.shared else own)
        for name, size in sizes.items():
            record[name] = size

    def zeros(self, name: str, record: NDArray[np.void]) -> NDArray[Any]:
        """Array of a field with the sizes in a record, (1,)."""
        field = self.fields[name]
        shape = [int(record[size][0]) if isinstance(size, str) else size for size in field.shape]
        return np.zeros(shape or 1, field.type)

    def build(self, values: Mapping[str, Any]) -> tuple[Array, Tables]:
        """Memory of a record and, behind it, of all fields; the tables there.

        `values`: numbers, sizes and arrays of eight-byte numbers, or of records of them; other
        arrays are zeros of these sizes, or with an owner lie where that one, a table, lies.
        """
        record = np.zeros(1, self.record)
        self.fill(record, values)
        names = [name for name, field in self.fields.items() if not field.owner]
        arrays = {"system": record} | {
            name: values[name] if name in values else self.zeros(name, record) for name in names
        }
        memory = np.zeros(sum(array.nbytes for array in arrays.values()) // 8)
        tables = Tables({})
        at = 0
        for name, array in arrays.items():
            end = at + array.nbytes // 8
            vars(tables)[name] = view = memory[at:end].view(array.dtype).reshape(array.shape)
            view[...] = array
            at = end
        own = {name: view for name, view in vars(tables).items() if name in self.fields}
        self.fill(tables.system, own | self.arrays_of(tables))
        return memory, tables

    def opener(self, name: str) -> Any:
        """Function of a record, for compiled code, that opens a field: a view of its own shape."""
        field = self.fields[name]

        @intrinsic  # type: ignore[untyped-decorator, unused-ignore]
        def opened(typing_context, record):
            item = from_dtype(np.dtype(field.type))
            layout = "A" if field.apart else "C"
            view = types.Array(item, len(field.shape), layout) if field.shape else item

            def generate(context, builder, signature, arguments):
                def number(name: str | int) -> Any:
                    if isinstance(name, int):
                        return context.get_constant(types.intp, name)
                    return load_word(builder, arguments[0], record.offset(name))

                begin = builder.ptrtoint(arguments[0], ir.IntType(64))
                if field.shared:
                    begin = builder.add(begin, number(TABLES))
                place = builder.add(begin, number(field.name))
                if not field.shape:
                    return builder.inttoptr(place, context.get_value_type(item))
                pointer = builder.inttoptr(place, context.get_value_type(types.voidptr))
                shape = [number(size) for size in field.shape]
                apart = number(field.apart) if field.apart else None
                return generate_view(context, builder, view, pointer, shape, apart)

            return view(record), generate

        return opened

    def page(self) -> Iterator[str]:
        """Lines of a table in Markdown: all fields, their shapes and meanings."""
        yield from ("| field | shape | meaning |", "|---|---|---|")
        for field in self.fields.values():
            shape = ", ".join(str(size).removeprefix("n_") for size in field.shape)
            yield f"| `{field.name}` | {shape or 'a record'} | {field.meaning} |"


class Tables:
    """Arrays of a layout by their names, and `system`, the record that leads to them, (1,)."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        vars(self).update(arrays)

    def __getattr__(self, name: str) -> NDArray[Any]:
        """Refuse what is no array of the layout: those that there are were found before."""
        raise AttributeError(f"there is no table {name}")

    def replaced(self, **others: NDArray[Any]) -> Tables:
        """The same with other arrays in the place of some."""
        return Tables(vars(self) | others)


def _check(field: Field, array: NDArray[Any], sizes: dict[str, int]) -> None:
    """Compare an array with its declaration, and take over the sizes that it has."""
    if field.type is None:
        return
    wanted = [
        sizes.setdefault(size, n) if isinstance(size, str) else size
        for size, n in zip(field.shape or (1,), array.shape, strict=False)
    ]
    if list(array.shape) != wanted or array.dtype != np.dtype(field.type):
        raise ValueError(
            f"{field.name}: {array.dtype} {array.shape}, must be {np.dtype(field.type)} "
            f"{tuple(field.shape)} with {sizes}"
        )
    if field.apart:
        sizes[field.apart] = array.strides[0] // array.itemsize
    elif not array.flags.c_contiguous:
        raise ValueError(f"{field.name}: must lie closely, strides are {array.strides}")


def follow(owner: object, ways: str) -> Any:
    """What attributes or keys, `a.b.c or a.d`, lead to; the first that is there, None for none."""
    for way in ways.split(" or "):
        value: Any = owner
        for name in way.split("."):
            value = value.get(name) if isinstance(value, dict) else getattr(value, name, None)
            if value is None:
                break
        else:
            return value
    return None


# ---------- Arrays of many owners in one piece


def root_of(array: NDArray[Any]) -> NDArray[Any]:
    """The array that owns the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


class Gathered:
    """Arrays in one piece of memory, those that are views of one array as views of its copy.

    Attributes:
        memory: All of it, (words,).
        roots: Arrays that own memory, and where their copies begin, in bytes.
        views: The arrays there, by name.
    """

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Copy them."""
        self.roots: dict[int, tuple[NDArray[Any], int]] = {}
        at = 0
        for array in arrays.values():
            root = root_of(array)
            if root.size and id(root) not in self.roots:
                self.roots[id(root)] = root, at
                at += -(-root.nbytes // 8) * 8
        self.memory = np.zeros(at // 8)
        self.read(self.memory)
        self.views = {name: self._view(array) for name, array in arrays.items()}

    def _view(self, array: NDArray[Any]) -> NDArray[Any]:
        """The array in this memory."""
        root = root_of(array)
        if not array.size:
            return array
        at = self.roots[id(root)][1] + array.ctypes.data - root.ctypes.data
        return np.ndarray(array.shape, array.dtype, self.memory.data, at, array.strides)

    def read(self, memory: NDArray[Any]) -> None:
        """Copy the arrays into a memory like this one."""
        for root, copy in self._pairs(memory):
            copy[:] = root

    def write(self, memory: NDArray[Any]) -> None:
        """Copy a memory like this one into the arrays."""
        for root, copy in self._pairs(memory):
            root[:] = copy

    def _pairs(self, memory: NDArray[Any]) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
        """Bytes of each array that owns memory, and of its copy in a memory like this one."""
        every = memory.view(np.uint8)
        for root, at in self.roots.values():
            own = root.reshape(-1).view(np.uint8)
            yield own, every[at : at + root.nbytes]
