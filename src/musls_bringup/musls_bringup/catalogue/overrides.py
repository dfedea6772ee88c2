"""Overrides of a scenario that options of the command line stand for."""

from __future__ import annotations

from pathlib import Path

from musls_description.config.errors import ConfigError
from musls_description.config.strict_yaml import shown


def flight_overrides(
    settings: list[str] | None,
    seed: int | None,
    autopilot: str | None,
    controller: str | None,
) -> list[str]:
    """Overrides that the options of a flight stand for, as for `--set`."""
    overrides = [*(settings or []), *([f"seed={seed}"] if seed is not None else [])]
    if autopilot is not None:
        overrides.append(f"autopilot.kind={autopilot}")
    # Which controller comes first: what is set of it (`--set controller.output=direct`) is its.
    return overrides if controller is None else [*_named(controller, overrides), *overrides]


def _named(controller: str, settings: list[str]) -> list[str]:
    """Overrides that name a controller (raises ConfigError if settings name another)."""
    for setting in settings:
        key, _, value = setting.partition("=")
        if key.strip() in ("controller", "controller.kind") and value.strip() != controller:
            raise ConfigError(
                f"--controller {shown(controller)} and --set {shown(setting)}: give one of them"
            )
    if controller.endswith(".onnx"):
        policy = Path(controller).absolute()
        return ["controller.kind=learned", f"controller.policy={policy}"]
    if controller.endswith(".py"):
        raise ConfigError(
            f"--controller {shown(controller)}: name the class in the file: "
            f"{shown(controller)}:CLASS"
        )
    if ":" not in controller:
        below = any(setting.strip().startswith("controller.") for setting in settings)
        return [f"controller={{kind: {controller}}}" if below else f"controller={controller}"]
    source = Path(controller).absolute() if ".py:" in controller else controller
    return ["controller.kind=python", f"controller.source={source}"]
