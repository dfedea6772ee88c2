"""Types for annotations: fields of a `musls.spec`, what musls passes to your methods, results."""

from musls._lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
