"""What can go wrong with a real autopilot."""

from __future__ import annotations

from musls_description.errors import MuslsError


class Px4Error(MuslsError):
    """PX4 is missing, did not start, refused, failed or died; the message holds its own words."""
