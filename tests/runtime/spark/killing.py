"""``python -m tests.runtime.spark.killing METHOD:NAME COMMAND ...``: a `vsc` command that is killed (``kill -9``) as
soon as `METHOD` of `Files` has written the file `NAME`, which may be a pattern (``*-quiet.txt``), of a checkpoint."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from fnmatch import fnmatch
from typing import Any

from vsc.cli import main
from vsc.runtime.spark.base.hadoop import Files


def killing(point: str, kill: Callable[[], None]) -> tuple[str, Callable[..., Any]]:
    """The method of `Files` at a point, ``METHOD:NAME``, and one in its place that kills behind it."""
    method, _, name = point.partition(":")
    done = getattr(Files, method)

    def ended(files: Files, *names: Any) -> Any:
        found = done(files, *names)
        if any(fnmatch(str(given), name) for given in names):
            kill()
        return found

    return method, ended


if __name__ == "__main__":
    setattr(Files, *killing(sys.argv[1], lambda: os.kill(os.getpid(), signal.SIGKILL)))
    sys.exit(main(sys.argv[2:]))
