"""The `musls` command."""

import gc
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line and returns the exit code, see `musls_bringup.cli.app.main`.

    Its modules take some time to import; Ctrl-C in that time ends it without a traceback.
    """
    if argv is None:
        gc.set_threshold(500_000)  # next to nothing is garbage; the default looks for it for 0.5 s
    try:
        from musls_bringup.cli import app
    except KeyboardInterrupt:
        return 130
    return app.main(argv)
