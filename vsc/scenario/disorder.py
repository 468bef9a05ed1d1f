"""``vsc test --disorder``: looks for an order of arrival on which results depend, and makes it small.

Guarantees: the same scenario, number and seed give the same. An arrangement that is reported is one that
`Arrivals.allows`, and nothing can be left out of it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from vsc.scenario.arrivals import Arrangement, Arrivals, Results
from vsc.scenario.model import Scenario
from vsc.scenario.player import Disordered
from vsc.scenario.written import fields_written

__all__ = ["disordered", "other"]

_MOST_PARTITIONS = 5
_SHOWN = 5


def disordered(scenario: Scenario, runs: int, seed: int) -> Disordered | None:
    """What depends on the order in the first of `runs` other arrangements in which anything does."""
    arrivals = Arrivals(scenario)
    chance = random.Random(f"{seed} {scenario.name}")
    for number in range(1, runs + 1):
        arrangement = other(arrivals, chance)
        if _depends(arrivals, arrangement):
            small = _shrunk(arrivals, arrangement)
            told = "\n".join(_told(arrivals, small))
            return Disordered(scenario.position, arrivals.all[small.order[0]].step, number, told)
    return None


def other(arrivals: Arrivals, chance: random.Random) -> Arrangement:
    """One that `Arrivals.allows`, at random."""
    order = list(arrivals.written.order)
    # A single pair changes places once, or not at all: it would be back after eight times.
    tries = chance.randrange(2) if len(order) == 2 else len(order) * 4 if len(order) > 2 else 0
    for _ in range(tries):
        at = chance.randrange(len(order) - 1)
        if arrivals.may_swap(order[at], order[at + 1]):
            order[at : at + 2] = order[at + 1], order[at]
    batch: list[int] = []
    joined, restarted = set(), set()
    together = chance.choice((0.0, 0.5, 0.9))
    for number in order:
        if batch and chance.random() < together and arrivals.in_order([*batch, number]):
            batch.append(number)
            joined.add(number)
            continue
        batch = [number]
        if chance.random() < 0.2:
            restarted.add(number)
    partitions = chance.randint(1, _MOST_PARTITIONS)
    return Arrangement(tuple(order), frozenset(joined), frozenset(restarted), partitions)


def _depends(arrivals: Arrivals, arrangement: Arrangement) -> bool:
    return arrivals.results(arrangement) != arrivals.as_written(arrangement)


def _shrunk(arrivals: Arrivals, case: Arrangement) -> Arrangement:
    """The smallest that still shows it: no row, batch, restart or change of places can be left out."""
    before = None
    while case is not before:
        before = case
        for steps in (_plainer, _fewer, _closer):
            while (smaller := _first(arrivals, steps(arrivals, case))) is not None:
                case = smaller
    return case


def _first(arrivals: Arrivals, cases: Iterator[Arrangement]) -> Arrangement | None:
    return next((one for one in cases if arrivals.allows(one) and _depends(arrivals, one)), None)


def _plainer(arrivals: Arrivals, case: Arrangement) -> Iterator[Arrangement]:
    if case.partitions != arrivals.scenario.partitions:
        yield replace(case, partitions=arrivals.scenario.partitions)
    for number in sorted(case.restarted & set(case.order)):
        yield replace(case, restarted=case.restarted - {number})
    for number in sorted(case.joined & set(case.order)):
        yield replace(case, joined=case.joined - {number})


def _fewer(_: Arrivals, case: Arrangement) -> Iterator[Arrangement]:
    size = len(case.order) // 2
    while size:
        for at in range(0, len(case.order), size):
            rest = case.order[:at] + case.order[at + size :]
            if rest:
                yield replace(case, order=rest)
        size //= 2


def _closer(_: Arrivals, case: Arrangement) -> Iterator[Arrangement]:
    for at, (one, other) in enumerate(zip(case.order, case.order[1:], strict=False)):
        if other < one:
            yield replace(case, order=(*case.order[:at], other, one, *case.order[at + 2 :]))


def _told(arrivals: Arrivals, case: Arrangement) -> Iterator[str]:
    before, after = arrivals.as_written(case), arrivals.results(case)
    yield f"these rows, in this order, on {case.partitions} partition{'s' * (case.partitions > 1)}:"
    steps = {step.number: step for step in arrivals.scenario.steps}
    for number in case.order:
        arrival = arrivals.all[number]
        line = steps[arrival.step].position.line
        what = "drain" if arrival.source is None else f"{arrival.source}: {{{fields_written(arrival.row)}}}"
        how = " (deleted)" if arrival.deleted else ""
        notes = [
            note
            for note, marked in (("restart first", case.restarted), ("same batch", case.joined))
            if number in marked and number != case.order[0]
        ]
        yield f"  {what}{how}  # {', '.join([f'step {arrival.step}, line {line}', *notes])}"
    yield from _difference(before, after)


def _difference(written: Results, reordered: Results) -> Iterator[str]:
    for name in sorted(written.keys() | reordered.keys()):
        before, after = written.get(name, []), reordered.get(name, [])
        if before == after:
            continue
        yield f"{name}:"
        for mark, word, some, rest in (("-", "as written", before, after), ("+", "reordered", after, before)):
            only = list((Counter(some) - Counter(rest)).elements())
            yield from (f"  {mark} {word:<10} {one}" for one in only[:_SHOWN])
            if len(only) > _SHOWN:
                yield f"  {mark} {word:<10} and {len(only) - _SHOWN} more"
