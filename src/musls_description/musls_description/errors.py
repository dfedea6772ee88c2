"""Errors that a user can mend; the command line shows them as one line."""


class MuslsError(Exception):
    """Base of all errors that end a command with one clear line and exit code 2."""


class ConfigError(MuslsError, ValueError):
    """A file, key or value is wrong; the message names it, its value and what is allowed."""
