"""Old names that keep working for one release, with a warning that says what to use instead."""

from __future__ import annotations

import warnings
from dataclasses import dataclass


class MuslsDeprecationWarning(FutureWarning):
    """A name, key or option of musls is replaced by another and ends with the next release.

    A `FutureWarning`, so that Python shows it to users whose code is no main script, too.
    """


@dataclass(frozen=True)
class Deprecation:
    """An old way that still works, and what replaces it.

    Attributes:
        old: Text that users have written so far: "musls.envs".
        new: Text to write instead.
        since: First version that warns, "MAJOR.MINOR".
    """

    old: str
    new: str
    since: str

    @property
    def ends(self) -> str:
        """First version without the old way, "MAJOR.MINOR": one release after the first warning."""
        major, minor = self.since.split(".")
        return f"{major}.{int(minor) + 1}"

    def warn(self, stacklevel: int = 2) -> None:
        """Issue the warning, by default at the line that called the caller of this method."""
        text = f"{self.old} is deprecated and ends with musls {self.ends}: use {self.new}"
        warnings.warn(text, MuslsDeprecationWarning, stacklevel=stacklevel + 1)
