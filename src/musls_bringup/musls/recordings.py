"""Recordings: own readers (`READERS.register`), own signals (`SIGNALS`), parts of a recording."""

from musls._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
