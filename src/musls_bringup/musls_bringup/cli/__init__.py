"""The `musls` command."""

from musls_bringup.cli.app import main

__all__ = ["main"]
