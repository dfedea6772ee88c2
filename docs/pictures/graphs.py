"""Draws the graphs of the documentation as SVG: `python docs/pictures/graphs.py`."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import NamedTuple

WIDTH, ROW, TOP, BOX_HEIGHT = 600, 104, 14, 50
STYLE = """
    .box { fill: #f2f4f7; stroke: #6e7781; } .ours { fill: #dbeafe; stroke: #3b6fb5; }
    .name { font-weight: 600; fill: #22272e; text-anchor: middle; }
    .small { font-size: 12px; fill: #3f4650; text-anchor: middle; }
    .way { fill: none; stroke: #57606a; stroke-width: 1.5; marker-end: url(#tip); }
"""


class Box(NamedTuple):
    """Middle across [px], row from the top, width [px], name, what it is, whether it is ours."""

    x: float
    row: float
    width: float
    name: str
    what: str
    ours: bool = True

    @property
    def top(self) -> float:
        """Upper edge [px]."""
        return TOP + ROW * self.row


class Way(NamedTuple):
    """From x and row (lower edge of the boxes there) to x and row, with a text beside it."""

    start_x: float
    start_row: float
    end_x: float
    end_row: float
    text: str = ""
    side: int = 1


GRAPHS = {
    "px4": (
        "One PX4 per drone, in lockstep with the plant",
        [
            Box(300, 0, 330, "mission and formation", "set-points of all drones"),
            Box(150, 1, 190, "PX4 1", "its own estimator, control", False),
            Box(450, 1, 190, "PX4 n", "one process a drone", False),
            Box(300, 2, 420, "plant: load, cables, rotors", "sensors, mocap; steps of 4 ms"),
        ],
        [
            Way(200, 0, 150, 1, "set-points (MAVLink, UDP)", -1), Way(400, 0, 450, 1),
            Way(120, 1, 120, 2, "motors", -1), Way(180, 2, 180, 1, "sensors, poses", 1),
            Way(420, 1, 420, 2, "motors", -1), Way(480, 2, 480, 1, "sensors, poses", 1),
        ],
    ),
    "ros2": (
        "Nodes and topics",
        [
            Box(165, 0, 250, "formation", "mission or /load/goal to set-points"),
            Box(460, 0, 200, "recorder", "bag (MCAP)"),
            Box(165, 1, 250, "offboard", "PX4's offboard protocol, all drones"),
            Box(460, 1, 200, "mocap_relay", "real flights: motion capture"),
            Box(300, 2, 540, "embedded_sim, or PX4 (with Gazebo, or real drones)",
                "plant and PX4's topics /px4_i/fmu/out/..."),
        ],
        [
            Way(130, 0, 130, 1, "/formation/setpoints"),
            Way(130, 1, 130, 2, "/px4_i/fmu/in/..."),
            Way(320, 2, 320, 0.24, "", 1), Way(320, 0.24, 292, 0.24, "", 1),
            Way(320, 0.24, 358, 0.24, "", 1),
            Way(470, 1, 470, 2, "visual odometry"),
        ],
    ),
    "gazebo": (
        "One system file, all models",
        [
            Box(300, 0, 300, "system.yaml", "load, drones, cables"),
            Box(300, 1, 300, "musls model", "SDF, Xacro, URDF from one description"),
            Box(105, 2, 180, "world, model", "Gazebo Harmonic, PX4", False),
            Box(300, 2, 180, "xacro, urdf", "RViz, other tools", False),
            Box(495, 2, 180, "sdf, sdf-1.9", "one by one, nested", False),
        ],
        [
            Way(300, 0, 300, 1), Way(200, 1, 105, 2), Way(300, 1, 300, 2), Way(400, 1, 495, 2),
        ],
    ),
}  # fmt: skip


def svg(title: str, boxes: list[Box], ways: list[Way]) -> str:
    """The graph as an SVG file."""
    height = max(box.top for box in boxes) + BOX_HEIGHT + TOP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" '
        'font-family="system-ui, sans-serif" font-size="15" role="img">',
        f"  <title>{escape(title)}</title>",
        '  <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#57606a"/></marker></defs>',
        f"  <style>{STYLE}  </style>",
        f'  <rect width="{WIDTH}" height="{height:g}" fill="#fff"/>',
    ]
    for way in ways:
        down, up = way.end_row > way.start_row, way.end_row < way.start_row
        y0 = TOP + ROW * way.start_row + (BOX_HEIGHT if down else 0)
        y1 = TOP + ROW * way.end_row + (BOX_HEIGHT if up and way.end_row == int(way.end_row) else 0)
        lines.append(f'  <path class="way" d="M{way.start_x} {y0:g}L{way.end_x} {y1:g}"/>')
        if way.text:
            anchor = "start" if way.side > 0 else "end"
            x = 0.5 * (way.start_x + way.end_x) + 9 * way.side
            lines.append(f'  <text class="small" style="text-anchor: {anchor}" x="{x:g}" '
                         f'y="{0.5 * (y0 + y1) + 4:g}">{escape(way.text)}</text>')  # fmt: skip
    for box in boxes:
        left, middle = box.x - 0.5 * box.width, box.top + 0.5 * BOX_HEIGHT
        lines += [
            f'  <rect class="{"ours" if box.ours else "box"}" x="{left:g}" y="{box.top:g}" '
            f'width="{box.width:g}" height="{BOX_HEIGHT}" rx="5"/>',
            f'  <text class="name" x="{box.x:g}" y="{middle - 4:g}">{escape(box.name)}</text>',
            f'  <text class="small" x="{box.x:g}" y="{middle + 14:g}">{escape(box.what)}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


def main() -> None:
    """Write all graphs."""
    for name, (title, boxes, ways) in GRAPHS.items():
        path = Path(__file__).with_name(f"{name}.svg")
        path.write_text(svg(title, boxes, ways), encoding="utf-8")


if __name__ == "__main__":
    main()
