"""Runs all passes over a topology, in the order in which they depend on each other; proves that they found no error."""

from __future__ import annotations

from dataclasses import dataclass, fields

from vsc.compiler.diagnostics.codes import CODES
from vsc.compiler.diagnostics.model import Finding
from vsc.compiler.passes.ages import check_ages
from vsc.compiler.passes.clock import DEFAULT_CLOCK, check_clock, check_quiet
from vsc.compiler.passes.complete import check_complete
from vsc.compiler.passes.connectors import check_connectors
from vsc.compiler.passes.constants import check_constants
from vsc.compiler.passes.correct import check_correct
from vsc.compiler.passes.cycles import check_cycles
from vsc.compiler.passes.dead_letters import check_dead_letters
from vsc.compiler.passes.expiry import check_expiry
from vsc.compiler.passes.formats import check_formats
from vsc.compiler.passes.functions import check_functions
from vsc.compiler.passes.histories import check_histories
from vsc.compiler.passes.kinds import check_kinds
from vsc.compiler.passes.lateness import check_lateness
from vsc.compiler.passes.nulls import check_nulls
from vsc.compiler.passes.patterns import check_patterns
from vsc.compiler.passes.places import check_places
from vsc.compiler.passes.quiet import check_waiting
from vsc.compiler.passes.record_times import check_record_times
from vsc.compiler.passes.removals import check_removals
from vsc.compiler.passes.reorder import check_reorder
from vsc.compiler.passes.reserved import check_reserved
from vsc.compiler.passes.retention import check_retention
from vsc.compiler.passes.schemas import check_schemas
from vsc.compiler.passes.stores import check_stores
from vsc.compiler.passes.suppress import check_suppress
from vsc.compiler.passes.survey import Survey
from vsc.compiler.passes.upserts import check_upserts
from vsc.compiler.passes.usage import check_usage
from vsc.compiler.passes.versioning import check_versioning
from vsc.compiler.passes.windows import check_windows
from vsc.compiler.passes.zones import check_zones
from vsc.compiler.source import SourceFile
from vsc.compiler.topology import Topology

__all__ = ["CheckedTopology", "check", "survey"]

_SEAL = object()


@dataclass(frozen=True, slots=True)
class CheckedTopology(Survey):
    """A survey of a topology without an error. Only `check` can make one."""

    seal: object

    def __post_init__(self) -> None:
        if self.seal is not _SEAL:
            raise TypeError("a CheckedTopology comes from vsc.compiler.passes.check.check alone")


def check(
    source: SourceFile, topology: Topology, before: tuple[Finding, ...] = ()
) -> tuple[CheckedTopology | None, tuple[Finding, ...]]:
    """The checked topology (None if there is an error, also one in `before`), and `before` with the new findings."""
    found, of_passes = survey(source, topology)
    findings = (*before, *of_passes)
    if any(_is_error(finding) for finding in findings):
        return None, findings
    facts = {field.name: getattr(found, field.name) for field in fields(found)}
    return CheckedTopology(**facts, seal=_SEAL), findings


def survey(source: SourceFile, topology: Topology) -> tuple[Survey, tuple[Finding, ...]]:
    """What the passes find out about a topology, right or wrong, and everything that is wrong with it."""
    clock, of_clock = check_clock(topology)
    quiet, of_quiet = check_quiet(topology, clock or DEFAULT_CLOCK)
    cyclic = check_cycles(topology)
    order = topology.order()
    kinds, of_kinds = check_kinds(topology, order)
    stores, of_stores = check_stores(topology, order, kinds)
    windows, of_windows = check_windows(topology, order, kinds)
    statuses, of_versioning = check_versioning(topology, order, kinds, stores, windows)
    suppressed, of_suppress = check_suppress(topology, order, clock or DEFAULT_CLOCK, kinds, statuses, windows)
    shapes, of_schemas = check_schemas(source, topology, order, kinds, windows)
    connectors, of_connectors = check_connectors(topology, kinds)
    found = Survey(
        source, topology, clock, quiet, order, kinds, shapes, stores, statuses, connectors, windows, suppressed
    )
    of_retention = check_retention(found)
    findings = (
        *check_functions(topology), *check_constants(topology), *of_clock, *of_quiet, *cyclic, *of_kinds, *of_stores,
        *of_versioning, *of_windows, *of_suppress, *of_schemas, *of_connectors,
        *of_retention,
        *check_correct(found),
        *check_expiry(topology, order, kinds, stores, windows),
        *check_complete(found),
        *check_ages(topology, order, kinds, stores),
        *check_formats(found),
        *check_histories(topology, shapes, stores, statuses, connectors),
        *check_patterns(topology),
        *check_record_times(topology, order, kinds, shapes),
        *check_places(topology, connectors),
        *check_nulls(topology, order, shapes),
        *check_upserts(topology, order, kinds, shapes),
        *check_removals(found),
        *check_reserved(topology),
        *check_zones(topology, shapes, connectors.sources),
        *check_usage(topology, order, of_retention),
        *check_dead_letters(topology, kinds, stores),
        *check_reorder(found),
        *check_waiting(found),
        *check_lateness(found),
    )  # fmt: skip
    return found, _certain(topology, findings)


def _certain(topology: Topology, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The findings, without those in statements that read an unfinished one: what it will give is not known yet."""
    if not topology.unfinished:
        return findings
    readers = topology.readers(topology.unfinished) - topology.unfinished
    sinks = [sink.span for sink in topology.sinks if sink.name.text in {*readers, *topology.unfinished}]
    spans = [*sinks, *(topology.nodes[name].span for name in readers)]
    return tuple(f for f in findings if not any(span.start <= f.span.start < span.end for span in spans))


def _is_error(finding: Finding) -> bool:
    return CODES[finding.code].severity == "error"
