"""Errors that a user can mend; the command line shows them as one line."""

MAX_LENGTH = 2000
"""Of a message; what a user gave in, such as a name of a million letters, stands in it."""


def one_line(text: str) -> str:
    """Write a text on one line: white space becomes a blank, control characters are escaped."""
    text = " ".join(text.split())
    if len(text) > MAX_LENGTH:
        half = MAX_LENGTH // 2
        text = f"{text[:half]} ... {text[-half:]}"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class MuslsError(Exception):
    """Base of all errors that end a command with one clear line and exit code 2."""

    def __init__(self, message: str = "") -> None:
        """Keep the message on one line."""
        super().__init__(one_line(str(message)))


class ConfigError(MuslsError, ValueError):
    """A file, key or value is wrong; the message names it, its value and what is allowed."""
