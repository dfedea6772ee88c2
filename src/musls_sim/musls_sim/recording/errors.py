"""The error of this package."""

from musls_description.errors import MuslsError


class RecordingError(MuslsError):
    """A bag cannot be created or written; the message names the path and the reason."""
