"""``python -m tests.runtime.spark.killing METHOD:NAME COMMAND ...``: a `vsc` command that is killed (``kill -9``) as
soon as `METHOD` of `Files` has written the file `NAME` of a checkpoint."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from vsc.cli import main
from vsc.runtime.spark.base.hadoop import Files


def _kill_after(method: str, name: str) -> None:
    done = getattr(Files, method)

    def killing(files: Files, *names: Any) -> Any:
        found = done(files, *names)
        if name in names:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(Files, method, killing)


if __name__ == "__main__":
    _kill_after(*sys.argv[1].split(":"))
    sys.exit(main(sys.argv[2:]))
