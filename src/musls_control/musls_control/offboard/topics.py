"""Names of PX4's topics, and which vehicle is meant.

Instance i (from 1; PX4's own numbering begins with 0, which has no namespace) has the namespace
`px4_i` and the MAVLink system id i + 1. A message of version v > 0 has `_v` and its version
behind the topic's name (PX4 v1.16 and later).
"""

from __future__ import annotations

from musls_description.errors import ConfigError

FIRST_INSTANCE, LAST_INSTANCE = 1, 253


def px4_namespace(instance: int) -> str:
    """ROS namespace of an instance.

    Raises:
        ConfigError: The instance is not in 1 to 253 (system ids end at 254).
    """
    if not FIRST_INSTANCE <= instance <= LAST_INSTANCE:
        raise ConfigError(
            f"PX4 instance {instance}: must be {FIRST_INSTANCE} to {LAST_INSTANCE} "
            "(instance 0 has no namespace of its own)"
        )
    return f"px4_{instance}"


def target_system(instance: int) -> int:
    """MAVLink system id of an instance."""
    return instance + 1


def px4_topic(instance: int, direction: str, name: str, message: type) -> str:
    """Full name of a topic.

    Args:
        instance: PX4's instance, from 1.
        direction: "in" to PX4 or "out" of it.
        name: Such as "vehicle_status".
        message: Type of the message; its MESSAGE_VERSION makes the suffix.

    Raises:
        ConfigError: See `px4_namespace`.
    """
    version = getattr(message, "MESSAGE_VERSION", 0)
    suffix = f"_v{version}" if version else ""
    return f"/{px4_namespace(instance)}/fmu/{direction}/{name}{suffix}"
