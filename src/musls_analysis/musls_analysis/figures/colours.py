"""Colours and names of bodies and cables, for pages and figures alike; without matplotlib."""

OBSTACLE = "#a08c72"
LOAD_COLOUR = "#d55e00"
ANCHOR_COLOUR = "#6e7781"
# Okabe and Ito's palette (vermilion is the load's), then muted colours of Tol's.
DRONE_COLOURS = (
    "#0072b2",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#e69f00",
    "#882255",
    "#999933",
    "#332288",
    "#44aa99",
    "#661100",
)


def colour(body: str) -> str:
    """Colour of a body or, for "cable_2", of the drone it hangs on."""
    if body == "load":
        return LOAD_COLOUR
    if body.startswith("anchor"):
        return ANCHOR_COLOUR
    return DRONE_COLOURS[(int(body.rsplit("_", 1)[1]) - 1) % len(DRONE_COLOURS)]


def label(name: str) -> str:
    """Name for people: "drone_1" becomes "drone 1"."""
    return name.replace("_", " ")
