"""Simulates several quadrotors that carry one slung load by flexible cables.

    import musls

    scenario = musls.load_scenario("circle", {"system.cables.links": 29})
    run = musls.fly(scenario)
    run.body("load").position_enu_m, run.cable(1).tension_n, run.errors()

Nothing is written unless a folder is named.

The names lie in `__init__.pyi`, which editors and type checkers read; the module of a name is
imported when the name is first used.
"""

import ast
from pathlib import Path
from typing import Any


def _origins() -> dict[str, tuple[str, str]]:
    """Module and name there of all that the stub imports, by the name here."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [line for line in stub.body if isinstance(line, ast.ImportFrom) and line.module]
    return {
        name.asname or name.name: (str(line.module), name.name)
        for line in imports
        for name in line.names
    }


_ORIGINS = _origins()
__all__ = sorted(_ORIGINS)


def __getattr__(name: str) -> Any:
    """Import what a name stands for, once."""
    if name not in _ORIGINS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, origin = _ORIGINS[name]
    value = getattr(__import__(module, fromlist=[origin]), origin)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All names, for completion."""
    return sorted({*globals(), *_ORIGINS})
