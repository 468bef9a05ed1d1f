"""``python -m vsc``: the same as the command ``vsc``."""

import sys

from vsc.cli import main

if __name__ == "__main__":
    sys.exit(main())
