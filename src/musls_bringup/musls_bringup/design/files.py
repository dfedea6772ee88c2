"""Files of a choice: a system and a scenario that fly, with comments."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from musls_bringup.design.question import Question
from musls_bringup.design.search import Design
from musls_bringup.new.templates import Rope, rendered, rows
from musls_description.config.schema import to_yaml


def system_text(question: Question, design: Design, name: str) -> str:
    """The system of a design as its file."""
    cargo = question.cargo
    cable = design.system.cables[0]
    airframe = design.airframe
    if airframe.endswith((".yaml", ".yml")):
        airframe = os.path.abspath(airframe)
    return rendered(
        "system.yaml",
        {
            "name": name,
            "more": "",
            "what": cargo.what,
            "body": to_yaml(cargo.keys).rstrip().splitlines(),
            "mass": f"{cargo.mass_kg:g}",
            "drag": [float(part) for part in cargo.drag_n_s_m],
            "attachments": rows(np.array(design.system.load.cable_attachments_m)),
            "drones": design.number,
            "airframe": airframe,
            "drone": Path(design.airframe).stem,
            "cable": f"{design.length_m:g}",
            "rope": Rope(design.material, design.diameter_m, cable.links),
        },
    )


def scenario_text(question: Question, data: Mapping[str, Any], system: Path, scenario: Path) -> str:
    """The flight of a design as its file; it names the system's file."""
    return rendered(
        "design.yaml",
        {
            "name": scenario.stem,
            "description": data["description"],
            "system": os.path.relpath(system, scenario.parent),
            "places": [[round(part, 4) for part in row] for row in data["formation"]["places_m"]],
            "stages": data["mission"]["stages"],
            "controller": data["controller"],
            "parameters": data["autopilot"]["parameters"],
            "cable_model": data["cable_model"],
            "wind": data["wind"],
            "strongest": question.strongest_m_s,
            "contingency": data.get("contingency"),
            "seed": data["seed"],
        },
    )
