"""Our CDR is that of rosbags, for every message type of ROS 2."""

import numpy as np
import pytest
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_typestore

from musls_sim.recording.cdr import to_cdr

STORE = get_typestore(Stores.ROS2_JAZZY)


def random_message(name, rng):
    fields = STORE.fielddefs[name][1]
    return STORE.types[name](*(random_value(description, rng) for _, description in fields))


def random_value(description, rng):
    kind, what = description
    if kind == Nodetype.NAME:
        return random_message(what, rng)
    if kind == Nodetype.BASE:
        return random_base(what[0], rng)
    part, length = what
    count = length if kind == Nodetype.ARRAY else int(rng.integers(0, 4))
    if part[0] == Nodetype.BASE and part[1][0] != "string":
        kind = {"byte": "uint8", "char": "uint8", "octet": "uint8"}.get(part[1][0], part[1][0])
        return rng.integers(0, 2, count).astype(kind)
    return [random_value(part, rng) for _ in range(count)]


def random_base(kind, rng):
    if kind == "string":
        return "abc\u00e9"[: int(rng.integers(0, 5))]
    return bool(rng.integers(0, 2)) if kind == "bool" else int(rng.integers(0, 100))


@pytest.mark.parametrize("package", sorted({name.partition("/")[0] for name in STORE.types}))
def test_bytes_are_those_of_rosbags(package):
    rng = np.random.default_rng(7)
    names = [name for name in STORE.types if name.startswith(f"{package}/")]
    assert names
    for name in names:
        for _ in range(3):
            message = random_message(name, rng)
            assert to_cdr(message, STORE) == bytes(STORE.serialize_cdr(message, name)), name
