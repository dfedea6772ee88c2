"""Adapters from the levels of controllers to rotor speeds (to be completed)."""

from __future__ import annotations

from typing import Any


class ThrustMomentToRotors:
    def __init__(self, system: Any) -> None:
        pass


class ForcesToRotors:
    def __init__(self, system: Any, mixing: Any) -> None:
        pass
