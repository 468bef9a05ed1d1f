"""What is held back by the clocks of different sources, and meets where it matters how late it is (VSC410).

What is held back by the clock of one source goes on with the records of that source, however far another one has gone
on by then. Where the two meet, time is that of both: the records that waited are late, although they came in time. So
are final windows that are joined, for a `suppress` that closes the windows of their join.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.passes.holds import held_by, takes
from vsc.compiler.passes.kinds import join_form
from vsc.compiler.passes.survey import Survey
from vsc.compiler.source import Span
from vsc.compiler.topology import Declaration

__all__ = ["check_meeting"]


def check_meeting(survey: Survey) -> Iterator[Finding]:
    """The merges and joins of which one input is held back by the clock of some of their sources only."""
    if survey.settled_clock != "input":
        return
    topology, kinds = survey.topology, survey.kinds
    sources: dict[str, frozenset[str]] = {}
    held: dict[str, tuple[str, Span]] = {}
    late = _telling_time(survey)
    for name in (name for name in survey.order if name in survey.shapes):
        declaration = topology.nodes[name]
        above = [read for read in takes(declaration, kinds) if read in sources]
        own = frozenset((name,)) if isinstance(declaration, syntax.SourceDecl) else frozenset[str]()
        sources[name] = own.union(*(sources[read] for read in above))
        meets = [read for read in above if read in held and sources[read] != sources[name]]
        if meets and name in late and (kinds.get(name) == "stream" or _is_suppress(topology.nodes[late[name]])):
            yield _finding(survey, name, meets[0], sources, held[meets[0]], late[name])
        here = next((span for span, ms in _held_by(survey, name, declaration) if ms), None)
        waits = [held[read] for read in above if read in held]
        if here is not None or waits:
            held[name] = (name, here) if here is not None else waits[0]


def _held_by(survey: Survey, name: str, declaration: Declaration) -> Iterator[tuple[Span, int]]:
    return held_by(name, declaration, survey.shapes, survey.windows, survey.suppressed)


def _telling_time(survey: Survey) -> Mapping[str, str]:
    """By node, the first node from it on to which it matters how late a record is; none where there is none."""
    found: dict[str, str] = {}
    for name in reversed([name for name in survey.order if name in survey.shapes]):
        declaration = survey.topology.nodes[name]
        if name in found or _tells_time(survey, name, declaration):
            found.setdefault(name, name)
            for read in takes(declaration, survey.kinds):
                found[read] = found[name]
    return found


def _tells_time(survey: Survey, name: str, declaration: Declaration) -> bool:
    if isinstance(declaration, syntax.SourceDecl):
        return False
    operation, clause = declaration.operation, survey.stores.clauses.get(name)
    if isinstance(operation, syntax.Join):
        return operation.correct is not None or join_form(survey.kinds, operation) == "stream-stream"
    windowed = isinstance(operation, syntax.Aggregate) and operation.window is not None
    return (
        windowed
        or _is_suppress(declaration)
        or isinstance(operation, syntax.Distinct | syntax.Reorder)
        or bool(clause and clause.versioned)
    )


def _is_suppress(declaration: Declaration) -> bool:
    """Whether it waits until windows close."""
    operation = declaration.operation if isinstance(declaration, syntax.DerivedDecl) else None
    return isinstance(operation, syntax.Suppress) and operation.limit is None


def _finding(
    survey: Survey, name: str, read: str, sources: Mapping[str, frozenset[str]], by: tuple[str, Span], late: str
) -> Finding:
    topology = survey.topology
    declaration = topology.nodes[name]
    assert isinstance(declaration, syntax.DerivedDecl)
    place = next(one for one in declaration.operation.inputs if one.name.text == read)
    others = " and ".join(code(named(one)) for one in sorted(sources[name] - sources[read]))
    own = " and ".join(code(named(one)) for one in sorted(sources[read]))
    if survey.kinds.get(name) == "table":
        help = f"join windows with `emit changes`: {code(named(late))} alone waits until they close"
    elif isinstance(declaration.operation, syntax.Join):
        help = f"let the join wait, by its {code('grace')}, and nothing in front of it"
    else:
        help = f"merge first, and hold back what {code(named(name))} gives: it goes by the clock of both"
    return Finding(
        "VSC410", place.span,
        f"records of `{read}` wait for the next ones of {own}, however far {others} has gone on by then: they come "
        f"late to `{late}`",
        (Label(by[1], f"`{by[0]}` holds them back"),), help,
    )  # fmt: skip
