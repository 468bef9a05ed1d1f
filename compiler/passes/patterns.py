"""Patterns of times in the options of connectors that are probably mistakes (VSC335)."""

from __future__ import annotations

from collections.abc import Iterator

from vsc.compiler import syntax
from vsc.compiler.diagnostics.date_patterns import pattern_finding
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.topology import Topology
from vsc.plan.connectors.files import TEXT_FORMATS

__all__ = ["check_patterns"]


def check_patterns(topology: Topology) -> Iterator[Finding]:
    """A finding for each pattern with a month for a minute, or the other way round."""
    sources = (node for node in topology.nodes.values() if isinstance(node, syntax.SourceDecl))
    for clause in (*(source.connector for source in sources), *(sink.connector for sink in topology.sinks)):
        for option in clause.options:
            text = option.value.value if isinstance(option.value, syntax.Literal) else None
            if option.name.text.lower() in TEXT_FORMATS and isinstance(text, str):
                finding = pattern_finding(text, option.value.span)
                if finding is not None:
                    yield finding
