"""The `musls` command."""

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code, see `musls_bringup.cli.app.main`.

    Its modules take some time to import; Ctrl-C in that time ends it without a traceback.
    """
    try:
        from musls_bringup.cli import app
    except KeyboardInterrupt:
        return 130
    return app.main(argv)
