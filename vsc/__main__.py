"""``python -m vsc``: the same as the command ``vsc``, which imports nothing from the working directory either."""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the working directory: a json.py in it is not Python's

    from vsc.cli import main

    sys.exit(main())
