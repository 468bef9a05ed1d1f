"""``python -m tests.random_topologies SEED partitions``: a seed of `test_partitions`; if it fails, a smaller case.

``FIRST:LAST partitions`` runs many seeds and names those that fail. ``records`` behind either: with Kafka's clock, by
which many do. A smaller case need not fail in the same way, it only has to fail: nodes, epochs and rows are left out,
ever fewer at once, then restarts, partitions and the end of the input.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests.oracle.epochs import EpochRow
from tests.random_topologies.partitions import Case
from vsc.compiler import TopologyError
from vsc.plan.nodes import Clock

__all__ = ["main", "outcome", "shrunk", "told"]

_NAMED = re.compile(r"(?:stream|table|global table) (\w+)\b")
_LATER = 10_000
"""What is added to offsets of an epoch that is appended to another one."""


def outcome(case: Case) -> str:
    """What differs, or the error that ends the run; nothing if all is equal."""
    try:
        return case.difference()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def shrunk(case: Case) -> Case:
    """The smallest case that still fails: nothing can be left out of it any more."""
    before = None
    while case is not before:
        before = case
        for steps in (_fewer_nodes, _fewer_epochs, _fewer_rows, _plainer_runs):
            while (smaller := next((one for one in steps(case) if _fails(one)), None)) is not None:
                case = smaller
    return case


def told(case: Case) -> str:
    """The case as text: its topology, and the rows of each epoch."""
    lines = [case.text, f"now {case.now}"]
    for number, epoch in enumerate(case.epochs):
        restarted, drained = ", restarted" if case.restarts[number] else "", ", drained" if case.drains[number] else ""
        lines.append(f"epoch {number} on {case.partitions[number]} partitions{restarted}{drained}")
        lines += [f"  {row.source} {row.part} {row.offset} {row.row}" for row in epoch]
    return "\n".join(lines)


def _fails(case: Case) -> bool:
    try:
        case.plan  # noqa: B018
    except TopologyError:
        return False
    return bool(outcome(case))


def _fewer_nodes(case: Case) -> Iterator[Case]:
    lines = case.text.splitlines()
    made = [(line, _NAMED.match(line)) for line in lines if not line.startswith("sink ")]
    for line, name in reversed(made):
        assert name is not None, line
        rest = [other for other, _ in made if other != line]
        if not any(re.search(rf"\b{name[1]}\b", other) for other in rest):
            epochs = [[row for row in epoch if row.source != name[1]] for epoch in case.epochs]
            yield replace(case, text=_with_sinks(rest), epochs=epochs)


def _with_sinks(lines: list[str]) -> str:
    """The statements, with a sink for each node that nothing reads."""
    names = [(line, found[1]) for line in lines if (found := _NAMED.match(line)) and not line.startswith("global ")]
    unread = [n for line, n in names if not any(re.search(rf"\b{n}\b", other) for other in lines if other != line)]
    return "\n".join([*lines, *(f"sink {name} to memory ();" for name in unread)]) + "\n"


def _fewer_epochs(case: Case) -> Iterator[Case]:
    if len(case.epochs) > 1:
        yield from (_joined(case, number, []) for number in range(len(case.epochs)))
    for number in range(1, len(case.epochs)):
        before = case.epochs[number - 1]
        later = [row._replace(offset=row.offset + _LATER) for row in case.epochs[number]]
        yield _joined(case, number, [*before, *later])


def _joined(case: Case, number: int, rows: list[EpochRow]) -> Case:
    """Without an epoch; `rows` are those of the one before it, unless it goes with all that it has."""
    epochs = [rows or epoch if i == number - 1 else epoch for i, epoch in enumerate(case.epochs) if i != number]
    runs = zip(case.partitions, case.restarts, case.drains, strict=True)
    left = [run for i, run in enumerate(runs) if i != number]
    partitions, restarts, drains = zip(*left, strict=True)
    return replace(case, epochs=epochs, partitions=partitions, restarts=restarts, drains=drains)


def _fewer_rows(case: Case) -> Iterator[Case]:
    size = max(map(len, case.epochs), default=0)
    while size:
        for number, epoch in enumerate(case.epochs):
            for start in range(0, len(epoch), size):
                fewer = epoch[:start] + epoch[start + size :]
                yield replace(case, epochs=[fewer if i == number else e for i, e in enumerate(case.epochs)])
        size //= 2


def _plainer_runs(case: Case) -> Iterator[Case]:
    if case.now is not None:
        yield replace(case, now=None)
    for number in range(len(case.epochs)):
        if case.drains[number]:
            yield replace(case, drains=[drain and i != number for i, drain in enumerate(case.drains)])
        if case.restarts[number]:
            yield replace(case, restarts=[restart and i != number for i, restart in enumerate(case.restarts)])
    if len(set(case.partitions)) > 1:
        for count in sorted(set(case.partitions)):
            yield replace(case, partitions=[count] * len(case.partitions))
    elif case.partitions and case.partitions[0] > 2:
        yield replace(case, partitions=[case.partitions[0] - 1] * len(case.partitions))


def main(arguments: Sequence[str]) -> int:
    """See the module. Returns the exit status: 1 if a case fails."""
    seeds, _, *given = arguments
    clock: Clock = "records" if given == ["records"] else "input"
    first, several, last = seeds.partition(":")
    if not several:
        return _one(Case.of(int(first), clock))
    failed = []
    for seed in range(int(first), int(last)):
        if told := outcome(Case.of(seed, clock)):
            failed.append(seed)
            print(f"{seed}: {told.splitlines()[0]}", flush=True)
    print(f"{len(failed)} of {int(last) - int(first)} seeds differ: {failed}")
    return int(bool(failed))


def _one(case: Case) -> int:
    if not outcome(case):
        print(told(case))
        print("equal")
        return 0
    case = shrunk(case)
    print(told(case))
    print(outcome(case))
    return 1
