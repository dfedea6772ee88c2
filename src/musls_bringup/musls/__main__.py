"""`python -m musls`: the command line."""

import sys

from musls_bringup.cli import main

if __name__ == "__main__":
    sys.exit(main())
