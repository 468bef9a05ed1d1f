"""``vsc fmt``: formats a topology in the standard style and keeps every comment where it was.

`format_topology` guarantees the same statements, the same comments in the same order, and a text that formatting again
does not change. It checks the first two before it returns. It knows the grammar, not the operators: a new statement
needs no change here unless it has a clause that should begin a line (`vsc.compiler.format.style`).
"""

from __future__ import annotations

from vsc.compiler.diagnostics.codes import CODES
from vsc.compiler.diagnostics.model import TopologyError, locate
from vsc.compiler.format.forms import Forms, read_forms
from vsc.compiler.format.style import render_file
from vsc.compiler.source import SourceFile

__all__ = ["format_topology"]


def format_topology(text: str, path: str = "topology.vdsl") -> str:
    """The text in the standard style. Raises `TopologyError` for a syntax error; its diagnostics show `path`."""
    read = _read(text, path)
    formatted = render_file(read)
    if formatted != text and not read.same_as(_read(formatted, path)):
        raise AssertionError(f"formatting would change what {path} says")
    return formatted


def _read(text: str, path: str) -> Forms:
    forms, findings = read_forms(text)
    if findings:
        source = SourceFile(path, text)
        raise TopologyError(tuple(locate(one, CODES[one.code].severity, source) for one in findings))
    return forms
