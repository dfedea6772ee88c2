"""Simulates several quadrotors that carry one slung load by flexible cables.

    import musls

    scenario = musls.load_scenario("circle", {"system.cables.links": 29})
    run = musls.fly(scenario)
    run.body("load").position_enu_m, run.cable(1).tension_n, run.errors()

Nothing is written unless a folder is named.

What this package and its modules list in `__all__` is public; the packages `musls_*` are internal.
The names lie in `__init__.pyi`, which editors and type checkers read; the module of a name is
imported when the name is first used.
"""

from musls._lazy import attach

MODULES = ("control", "events", "learning", "plants", "recordings", "stages", "types")
"""Public modules; `learning` needs the extra `rl`, so that `import *` leaves it out."""

__getattr__, __dir__, __all__ = attach(__name__, __file__, MODULES)
__all__ = sorted({*__all__, *MODULES} - {"learning"})
