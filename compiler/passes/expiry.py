"""Which tables can forget: VSC315 for an `expire` on any other.

Source tables, `to_table` and `materialize` store rows as they come. What computes rows of its own would have to say
what an expired one means for those that it is computed from.
"""

from __future__ import annotations

from collections.abc import Iterator

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.passes.kinds import Kinds
from vsc.compiler.passes.stores import Stores
from vsc.compiler.passes.windows import Windows
from vsc.compiler.topology import Topology

__all__ = ["check_expiry"]


def check_expiry(
    topology: Topology, order: tuple[str, ...], kinds: Kinds, stores: Stores, windows: Windows
) -> Iterator[Finding]:
    """An `expire` of a table that cannot forget."""
    for name in order:
        clause = stores.clauses.get(name)
        if clause is None or clause.expire_span is None:
            continue
        declaration = topology.nodes[name]
        if kinds.get(name) == "global table":
            yield Finding(
                "VSC315", clause.expire_span, f"the rows of the global table `{name}` do not expire",
                (Label(declaration.kind_span, "a global table keeps the newest row of each key"),),
                "remove `expire`, or declare it as `table`",
            )  # fmt: skip
        elif isinstance(declaration, syntax.DerivedDecl):
            if isinstance(declaration.operation, syntax.ToTable | syntax.Materialize):
                continue
            if name in windows.begun and isinstance(declaration.operation, syntax.Aggregate):
                message = f"the rows of the windowed table `{name}` do not expire"
                help = f"remove `expire`: it keeps a window for its size and `grace`; or write {_copy(name)}"
            else:
                message = "only a source table, `to_table` and `materialize` have rows that expire"
                help = f"instead of this clause, write {_copy(name)}"
            yield Finding("VSC315", clause.expire_span, message, (), help)


def _copy(name: str) -> str:
    return code(f"table {named(f'{name}_recent')} = materialize {named(name)} unversioned (expire = ...);")
