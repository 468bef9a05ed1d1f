"""Which nodes have a store, and what their clauses ask for.

A store is requested by a clause, or implied. A join, a `suppress`, an aggregate and an `explode` of a table read it
from the nearest store upstream; if there is none, the node where the table begins gets one. So does a join of two
tables that change with one record (a table joined with itself), if the rows before its changes are needed: when one
side changes, the other may have changed already, so they cannot be computed from the sides (D27). So does a `suppress`
behind which `event_time()` is read, if the rows before are needed: it holds them without their times. An aggregate and
a global table always have a store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.passes.kinds import Kinds, join_form
from vsc.compiler.passes.options import CLAUSE, lacking, read_options
from vsc.compiler.source import Span
from vsc.compiler.topology import Declaration, Topology
from vsc.plan import Store
from vsc.plan.connectors.facts import OptionSpec
from vsc.plan.record import record

__all__ = [
    "UNVERSIONED_OPTIONS", "VERSIONED_OPTIONS", "Clause", "Stores", "check_stores", "clause_of", "default_segment",
]  # fmt: skip

VERSIONED_OPTIONS = {
    "retention": OptionSpec("duration", "7 days"),
    "segment": OptionSpec("duration", "1 hour"),
    "grace": OptionSpec("duration", "1 day"),
    "history": OptionSpec("string", "'complete'", ("latest", "complete")),
}
"""The options of ``versioned``."""
UNVERSIONED_OPTIONS = {"expire": OptionSpec("duration", "30 days")}
"""The options of ``unversioned``."""


@record
class Clause:
    """What a `materialize` clause asks for, and where.

    `store` is None if the clause is wrong (and reported); `versioned` and `complete` are known even then. The spans are
    where the values of `retention` and `grace`, and the options `expire` and `history`, stand; None if not written.
    """

    written: syntax.MaterializeClause
    versioned: bool
    store: Store | None
    retention_span: Span | None = None
    grace_span: Span | None = None
    expire_span: Span | None = None
    complete: bool = False
    history_span: Span | None = None

    @property
    def span(self) -> Span:
        """What decides whether the store is versioned: the word with its options, or the whole clause."""
        return self.written.span if self.written.kind is None else self.written.kind_span


@record
class Stores:
    """The stores of a topology: those with a clause, and the names of the nodes with an implied one."""

    clauses: Mapping[str, Clause]
    implied: frozenset[str]

    def complete(self, node: str) -> bool:
        """Whether the history of `node` is to be right as of every time."""
        clause = self.clauses.get(node)
        return clause is not None and clause.complete

    def of(self, node: str) -> Store | None:
        """The store of `node`, if it has one."""
        if (clause := self.clauses.get(node)) is not None:
            return clause.store
        return Store(node, "unversioned", implied=True) if node in self.implied else None


def check_stores(topology: Topology, order: tuple[str, ...], kinds: Kinds) -> tuple[Stores, tuple[Finding, ...]]:
    """Every store, and what is wrong with the clauses: options (VSC124 to 126, 305, 315, 316), names that are taken."""
    clauses: dict[str, Clause] = {}
    findings: list[Finding] = []
    for name in order:
        written = clause_of(topology.nodes[name])
        if written is not None and kinds.get(name) not in (None, "stream"):
            clauses[name], wrong = _read(name, written)
            findings.extend(wrong)
    stores = Stores(clauses, _implied(topology, kinds, clauses))
    return stores, (*findings, *_taken_names(topology, order, stores))


def clause_of(declaration: Declaration) -> syntax.MaterializeClause | None:
    """The `materialize` clause of a declaration, if it has one."""
    if isinstance(declaration, syntax.SourceDecl):
        return declaration.materialize
    found: syntax.MaterializeClause | None = declaration.operation.materialize
    return found


def default_segment(retention: int) -> int:
    """The segment interval in milliseconds that Kafka's `Stores` chooses for a history retention (KIP-889)."""
    for longest, parts, least in ((60_000, 3, 2_000), (300_000, 5, 20_000), (3_600_000, 12, 60_000)):
        if retention <= longest:
            return max(retention // parts, least)
    return max(retention // 24, 300_000)


def _read(node: str, written: syntax.MaterializeClause) -> tuple[Clause, list[Finding]]:
    name = written.store.text if written.store is not None else node
    if written.kind != "versioned":
        return _unversioned(name, written)
    expiring = [option for option in written.options if option.name.text == "expire" and not option.quoted]
    others = tuple(option for option in written.options if option not in expiring)
    options, findings = read_options(others, VERSIONED_OPTIONS, "`versioned`", CLAUSE)
    findings.extend(_versioned_expiry(option) for option in expiring)
    if lacking(("retention",), others, VERSIONED_OPTIONS):
        findings.append(
            Finding("VSC305", written.kind_span, "a versioned store needs a `retention`: how far back it can be read",
                    (), "say how far: `versioned (retention = ...)`, such as `7 days`")
        )  # fmt: skip
    findings.extend(f for option in options.values() if (f := _bad_length(option)) is not None)
    millis = {n: o.value.milliseconds for n, o in options.items() if isinstance(o.value, syntax.Duration)}
    retention_span = options["retention"].value.span if "retention" in options else None
    grace_span = options["grace"].value.span if "grace" in options else None
    history = options.get("history")
    complete = history is not None and getattr(history.value, "value", None) == "complete"
    store = None
    if not findings and "retention" in millis:
        retention = millis["retention"]
        grace, segment = millis.get("grace", retention), millis.get("segment", default_segment(retention))
        store = Store(name, "versioned", retention, grace, segment, history="complete" if complete else "latest")
    history_span = history.span if history is not None else None
    return Clause(written, True, store, retention_span, grace_span, None, complete, history_span), findings


def _unversioned(name: str, written: syntax.MaterializeClause) -> tuple[Clause, list[Finding]]:
    options, findings = read_options(written.options, UNVERSIONED_OPTIONS, "`unversioned`", CLAUSE)
    length = options["expire"].value if "expire" in options else None
    if not isinstance(length, syntax.Duration):
        return Clause(written, False, Store(name, "unversioned") if not findings else None), findings
    if length.milliseconds < 1:
        findings.append(
            Finding("VSC316", length.span, "`expire` cannot be zero or negative: no row would ever be seen", (),
                    "make it at least one millisecond, or remove it to keep rows")
        )  # fmt: skip
    store = None if findings else Store(name, "unversioned", expire=length.milliseconds)
    return Clause(written, False, store, expire_span=options["expire"].span), findings


def _versioned_expiry(option: syntax.Option) -> Finding:
    return Finding(
        "VSC315", option.span, "the rows of a versioned table do not expire", (),
        "remove `expire`: `retention` says how far back it can be read; or write `unversioned (expire = ...)`",
    )  # fmt: skip


def _bad_length(option: syntax.Option) -> Finding | None:
    if not isinstance(option.value, syntax.Duration):
        return None
    least = 1 if option.name.text == "segment" else 0
    if option.value.milliseconds >= least:
        return None
    wrong, action = ("negative", "zero or more") if least == 0 else ("zero or negative", "at least one millisecond")
    return Finding(
        "VSC305", option.value.span, f"the `{option.name.text}` of a versioned store cannot be {wrong}", (),
        f"make it {action}",
    )  # fmt: skip


def _implied(topology: Topology, kinds: Kinds, clauses: Mapping[str, Clause]) -> frozenset[str]:
    stored: set[str] = set()
    for name in kinds:
        declaration = topology.nodes[name]
        if isinstance(declaration, syntax.SourceDecl):
            if declaration.kind == "global table":
                stored.add(name)
            continue
        if isinstance(declaration.operation, syntax.Aggregate):
            stored.add(name)
        for read in _looked_into(declaration.operation, kinds):
            needs_before = kinds[name] == "table" and not _only_looked_up(declaration.operation, read)
            reads_time = _reads_event_time(declaration.operation)
            stored.update(_stored_behind(topology, kinds, read.name.text, clauses, needs_before, reads_time))
    return frozenset(stored - clauses.keys())


def _looked_into(operation: syntax.Operation, kinds: Kinds) -> tuple[syntax.Input, ...]:
    """The inputs whose rows an operation looks up, or whose row before a change it needs."""
    match operation:
        case syntax.Join(left=left, right=right):
            form = join_form(kinds, operation)
            if form in (None, "stream-stream"):
                return ()
            return (left, right) if kinds.get(left.name.text) == "table" else (right,)
        case syntax.Suppress(input=read):
            return (read,)
        case syntax.Aggregate(input=read) | syntax.Explode(input=read) if kinds.get(read.name.text) == "table":
            return (read,)
        case _:
            return ()


def _only_looked_up(operation: syntax.Operation, read: syntax.Input) -> bool:
    """Whether an operation that makes a table does not need the rows before the changes of an input."""
    by_other_key = isinstance(operation, syntax.Join) and (bool(operation.on) or operation.correct is not None)
    return by_other_key and read is operation.inputs[-1]


def _stored_behind(
    topology: Topology, kinds: Kinds, table: str, clauses: Mapping[str, Clause], before: bool, reads_time: bool
) -> set[str]:
    """The nodes from whose stores `table` is read: itself, or the nearest upstream that must have one.

    Filters, maps and `suppress` are computed from what they read. So is a join by primary key, whose inputs need stores
    anyway. Unless the rows `before` changes are needed, and the sides of the join change together, or what is computed
    from the `suppress` `reads_time`.
    """
    while table not in clauses:
        declaration = topology.nodes.get(table)
        if declaration is None:
            return set()
        if isinstance(declaration, syntax.SourceDecl):
            break
        match declaration.operation:
            case syntax.Suppress() if before and reads_time:
                break
            case operation if operation.row_by_row or isinstance(operation, syntax.Suppress):
                reads_time = reads_time or _reads_event_time(operation)
                table = operation.inputs[0].name.text
            case syntax.Join(on=on, correct=None) as join if not on:
                return {table} if before and _change_together(topology, kinds, join) else set()
            case _:
                break
    return {table}


def _reads_event_time(part: object) -> bool:
    match part:
        case syntax.FunctionCall(name=name) if name.text == "event_time":
            return True
        case tuple():
            return any(map(_reads_event_time, part))
        case _ if is_dataclass(part):
            return any(_reads_event_time(getattr(part, field.name)) for field in fields(part))
    return False


def _change_together(topology: Topology, kinds: Kinds, join: syntax.Join) -> bool:
    """Whether one record may change both sides of a join of tables, before the join has seen either change."""
    left, right = (_upstream(topology, kinds, side.name.text) for side in (join.left, join.right))
    return not left.isdisjoint(right)


def _upstream(topology: Topology, kinds: Kinds, name: str) -> set[str]:
    """A node and those that it is computed from, as far as records keep their key: what is behind comes on its own."""
    above, waiting = set[str](), [name]
    while waiting:
        declaration = topology.nodes.get(name := waiting.pop())
        if declaration is None or name in above:
            continue
        above.add(name)
        if isinstance(declaration, syntax.DerivedDecl) and not _moves(declaration.operation, kinds):
            waiting.extend(read.name.text for read in declaration.operation.inputs)
    return above


def _moves(operation: syntax.Operation, kinds: Kinds) -> bool:
    """Whether the records get another key for certain."""
    match operation:
        case syntax.Join(on=on, correct=correct):
            return bool(on) or correct is not None
        case syntax.Aggregate(input=read) | syntax.Explode(input=read):
            return kinds.get(read.name.text) == "table"
    return isinstance(operation, syntax.Rekey)


def _taken_names(topology: Topology, order: tuple[str, ...], stores: Stores) -> list[Finding]:
    owners: dict[str, str] = {}
    findings = []
    for node in sorted(order, key=lambda name: topology.nodes[name].span.start):
        clause = stores.clauses.get(node)
        if clause is None and node not in stores.implied:
            continue
        written = clause.written.store if clause is not None else None
        store = written.text if written is not None else node
        if (owner := owners.setdefault(store, node)) == node:
            continue
        span = written.span if written is not None else topology.nodes[node].name.span
        first = stores.clauses.get(owner)
        given = first.written.store if first is not None else None
        label = Label(given.span if given else topology.nodes[owner].name.span, f"the store of `{owner}`")
        findings.append(
            Finding("VSC122", span, f"there are two stores `{store}`", (label,),
                    f"give the store of {code(named(node))} another name: `materialize as ...`")
        )  # fmt: skip
    return findings
