"""What the declaration of a function may say; its module is never imported here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from keyword import iskeyword

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.passes.columns import equal_names
from vsc.compiler.topology import Topology
from vsc.plan.functions import AGGREGATES, FUNCTIONS
from vsc.plan.parts import MODULE

__all__ = ["check_functions"]

_REFERENCE = re.compile(rf"{MODULE.pattern}:[A-Za-z_]\w*", re.ASCII)
_TAKEN = {*FUNCTIONS, *AGGREGATES, "try_cast"}


def check_functions(topology: Topology) -> tuple[Finding, ...]:
    """What is wrong with the functions of a topology, used or not."""
    return tuple(finding for function in topology.functions.values() for finding in _problems(function))


def _problems(function: syntax.FunctionDecl) -> Iterator[Finding]:
    name = function.name.text
    if name in _TAKEN:
        message = f"`{name}` is a function of the language"
        yield Finding("VSC134", function.name.span, message, (), "give yours another name")
    if not _is_reference(function.reference):
        message = f"'{function.reference}' does not name a function in a module"
        help = "write 'MODULE:NAME', as in 'scoring.rules:risk'"
        yield Finding("VSC135", function.reference_span, message, (), help)
    names = [(one.name.text, one.name.span) for one in function.parameters]
    yield from (finding for finding, _ in equal_names(names, "VSC201"))


def _is_reference(text: str) -> bool:
    return _REFERENCE.fullmatch(text) is not None and not any(map(iskeyword, re.split(r"[.:]", text)))
