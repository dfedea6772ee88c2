"""The phases that every mission has around its stages: one table, and what follows from it."""

from __future__ import annotations

_CARRIED = {
    "settle": "hang in formation before the first stage of a flight that begins in the air",
    "transit": "carry the load from one stage to the next",
    "reform": "fly to another formation after a drone was lost",
    "weigh": "hover with the load, and weigh it",
    "approach": "carry the load to the place of delivery",
}
"""Phases in which the load hangs in the air."""

_AT_GROUND = {
    "spool_up": "stand armed, the rotors spin up",
    "take_off": "rise, the cables slack",
    "form_up": "fly into the formation, the cables slack",
    "tare": "hover with slack cables: the drones weigh themselves",
    "pick_up": "bring open hooks down to the load, wait until they have closed",
    "tension": "take up the tension of the cables",
    "lift": "lift the load off the ground",
    "lower": "bring the load down to the ground",
    "slacken": "go on down until the cables are slack",
    "set_down": "go on down at the place of delivery until the load rests",
    "release": "open the hooks",
    "climb": "rise without the load",
    "return": "fly back, without the load or with one that was not delivered",
    "descend": "come down without the load",
    "abort": "turn back",
    "spread": "fly apart, to land clear of the load",
    "land": "come down to the ground",
    "disarmed": "stand on the ground, the rotors off",
}
"""Phases in which the load stands, or goes to or from the ground."""

GROUND_PHASES = frozenset(_AT_GROUND)
PHASES = GROUND_PHASES | frozenset(_CARRIED)
"""Phases on the way to and from what a mission is about; its stages have other names."""

BELOW_FORMATION = ("spool_up", "take_off")
"""Phases from which the drones can land where they are."""

BEFORE_FORMATION = ("", *BELOW_FORMATION, "form_up")
"""The drones are not yet in formation; "" before the first phase."""

LOWERING = ("lower", "slacken")
"""A plan that ends on the ground sets the load down so, in this order ..."""

LANDING = ("spread", "land", "disarmed")
"""... and then lands the drones so; nothing is left to give up."""
