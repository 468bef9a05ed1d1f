"""Names that vsc uses for columns of its own (VSC229).

On their way through Spark SQL, rows have more columns than the declared ones, and Spark ignores the case of names. A
name is refused where a column gets it, not where it is used.
"""

from __future__ import annotations

from collections.abc import Iterator

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.topology import Declaration, Topology

__all__ = ["check_reserved"]

_PREFIX = "_vsc_"
_EVENT_TIME = "event_time()"


def check_reserved(topology: Topology) -> tuple[Finding, ...]:
    """A finding for each reserved name that a node gives a column."""
    return tuple(
        Finding("VSC229", name.span, f"a column cannot be called `{name.text}`: vsc reserves such names", (),
                "give it another name")
        for declaration in topology.nodes.values() for name in _given(declaration) if _is_reserved(name.text)
    )  # fmt: skip


def _is_reserved(name: str) -> bool:
    return name.lower().startswith(_PREFIX) or name.lower() == _EVENT_TIME


def _given(declaration: Declaration) -> Iterator[syntax.Name]:
    """The names that a statement gives to columns: declared ones, and those after `as`."""
    if isinstance(declaration, syntax.SourceDecl):
        yield from (column.name for column in declaration.columns)
        return
    items: tuple[syntax.Item | syntax.KeyItem, ...] = ()
    match declaration.operation:
        case syntax.Explode(names=names):
            yield from names
        case syntax.Map(items=items) | syntax.Rekey(keys=items):
            pass
        case syntax.Join(on=keys, items=selected) | syntax.Aggregate(group=keys, items=selected):
            items = (*keys, *selected)
    for item in items:
        if not isinstance(item, syntax.StarItem) and item.alias is not None:
            yield item.alias
