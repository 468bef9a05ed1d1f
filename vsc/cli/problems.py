"""Problems as every command reports them on standard error: in the form of the compiler's findings."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TextIO

if TYPE_CHECKING:
    from vsc.compiler.diagnostics.model import Diagnostic
    from vsc.compiler.source import SourceFile
    from vsc.runtime.errors import VscRuntimeError

__all__ = ["Problem", "discard", "of_disk", "tell", "tell_findings", "use_color"]


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_TEMPORARY = "No usable temporary directory"
"""How Python begins to say that it can write to none of the temporary folders that it knows."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A sentence that says what is wrong, one that says what to do, and a code if it has one."""

    message: str
    help: str | None = None
    code: str | None = None
    severity: Literal["error", "warning"] = "error"

    @classmethod
    def of(cls, error: VscRuntimeError) -> Problem:
        """The problem that an error of the runtime reports."""
        return cls(error.message, error.help, error.code)

    def __str__(self) -> str:
        """The text to show, in colours if standard error has them."""
        from vsc.compiler.diagnostics.render import render_problem

        return render_problem(self.severity, self.code, self.message, self.help, use_color(sys.stderr))


def of_disk(error: OSError) -> Problem | None:
    """The problem that an error of this machine's disks reports: one that is full. None for any other error."""
    if _NO_TEMPORARY in str(error):
        return Problem(
            "no temporary folder can be written: TMPDIR, /tmp and /var/tmp are full, or closed to this user",
            "free some space, or set TMPDIR to a folder that can be written",
            "VSC907",
        )
    if error.errno not in _FULL:
        return None
    file = "a file" if error.filename is None else error.filename
    return Problem(f"{file} cannot be written: {error.strerror}", "free some space there, then try again", "VSC906")


def tell(text: object) -> None:
    """Writes a line to standard error. A failure to write is ignored, since nobody would see it."""
    if sys.stderr is None:  # closed
        return
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def tell_findings(found: Sequence[Diagnostic], source: SourceFile) -> None:
    """Shows the compiler's findings about `source` on standard error."""
    from vsc.compiler.diagnostics.render import render_text

    tell(render_text(found, source.files(), use_color(sys.stderr)).removesuffix("\n"))


def discard(stream: TextIO) -> None:
    """Discards what is written to `stream` from now on: otherwise Python would complain about it again at exit."""
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), stream.fileno())


def use_color(stream: TextIO | None) -> bool:
    """Whether to write colours to `stream`: only on a terminal, and never with NO_COLOR."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not plain and stream is not None and stream.isatty()
