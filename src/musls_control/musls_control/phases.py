"""Names of the phases that every mission has around its stages."""

PHASES = frozenset(
    {
        "settle",
        "spool_up",
        "take_off",
        "form_up",
        "tension",
        "lift",
        "transit",
        "reform",
        "lower",
        "slacken",
        "spread",
        "land",
        "disarmed",
        "tare",
        "pick_up",
        "weigh",
        "approach",
        "set_down",
        "release",
        "climb",
        "return",
        "descend",
        "abort",
    }
)
"""Phases on the way to and from what a mission is about; its stages have other names."""

GROUND_PHASES = PHASES - {"settle", "transit", "reform", "weigh", "approach"}
"""Phases in which the load stands, or goes to or from the ground."""
