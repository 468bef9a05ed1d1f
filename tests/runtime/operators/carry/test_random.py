"""Random topologies and random changes of them, by seed: what keeps its meaning goes on as if nothing had happened.

``VSC_TOPOLOGIES=1000`` runs more, ``5000:5100`` others.
"""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from tests.oracle import Stores, by_key, chunks
from tests.oracle.playing import shown_records
from tests.random_topologies.records import History, history
from tests.random_topologies.seeds import seeds
from tests.random_topologies.shapes import Generated
from tests.random_topologies.topology import Sizes, generate
from tests.runtime.operators.carry.carrying import SENT, carried, compiled, content
from tests.runtime.operators.carry.test_waiting import Waits
from vsc.changes import Verdict, compare
from vsc.changes.nodes import Nodes
from vsc.compiler import TopologyError
from vsc.plan.nodes import Aggregate, Node, Plan
from vsc.runtime.errors import ConfigurationError
from vsc.runtime.local import LocalRuntime
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.in_step import Frontier

pytestmark = pytest.mark.long


def played(
    plan: Plan, epochs: History, stores: Stores, partitions: int, drain: bool, later_stage: type[Waits] = Waits
) -> SENT:
    """All that comes out, by node and key."""
    nodes = [node.name for node in plan.nodes if node.part_of is None]
    runtime = LocalRuntime(plan, stores, nodes, partitions, RunOptions(on_error="drop"), later_stage, stores.starts)
    found: dict[str, list[tuple[Any, ...]]] = {}
    known = {node.name for node in plan.sources}
    given = [runtime.process(chunks(plan, [row for row in rows if row.source in known])) for rows in epochs]
    stores.starts = runtime.starts
    for sent in [*given, *([runtime.drain()] if drain else [])]:
        for name, batch in sent.items():
            found.setdefault(name, []).extend(shown_records(batch))
    return {name: by_key(records) for name, records in found.items()}


def cut(rng: random.Random, topology: Generated) -> str:
    """The topology with some of its nodes, some of which have other names."""
    statements = {re.split(r"\s+", one)[1]: one for one in topology.statements}
    for _ in range(rng.randint(0, 4)):
        unread = [
            name for name in statements
            if not any(re.search(rf"(?<![\w.']){name}\b", other) for n, other in statements.items() if n != name)
        ]  # fmt: skip
        if len(statements) > 1 and unread:
            del statements[rng.choice(unread)]
    read = "".join(statements.values())
    unread = [n for n in statements if len(re.findall(rf"(?<![\w.']){n}\b", read)) == 1]
    text = Generated(topology.sources, tuple(statements.values()), tuple(unread)).text()
    for name in statements:
        if rng.random() < 0.2:
            text = re.sub(rf"(?<![\w.']){name}(?![\w'])", f"other_{name}", text)
    return widened(rng, topology, text)


def widened(rng: random.Random, topology: Generated, text: str) -> str:
    """With a column more in one of the sources, now and then; not where its records are merged with others."""
    if rng.random() < 0.6:
        return text
    name = rng.choice(topology.sources).name
    wide = re.sub(rf"^(\w[\w ]* {name} \()", r"\1zz bigint, ", text, count=1, flags=re.MULTILINE)
    assert wide != text
    try:
        compiled(wide)
    except TopologyError:
        return text
    return wide


def rewritten(rng: random.Random, topology: Generated) -> str:
    """The topology in other words: maps in between, conditions said twice, lost records kept, other names."""
    statements: list[str] = []
    for number, one in enumerate(topology.statements):
        found = re.match(r"(.* = (?:filter|map|explode|aggregate) )([sx]\d+)\b(.*)$", one, re.DOTALL)
        if found and rng.random() < 0.5:
            statements.append(f"stream via{number} = map {found[2]} select *;")
            one = f"{found[1]}via{number}{found[3]}"
        condition = re.match(r"(.* = filter \S+ where )(.*);\s*$", one, re.DOTALL)
        if condition and " materialize" not in one and rng.random() < 0.5:
            one = f"{condition[1]}not not ({condition[2]}) and ({condition[2]});"
        statements.append(one)
    text = Generated(topology.sources, tuple(statements), topology.sinks).text()
    if rng.random() < 0.3:
        text += "\nsink dropped to noop ();"
    for name in re.findall(r"^(?:stream|table) ([xy]\d+) =", text, re.MULTILINE):
        if rng.random() < 0.3:
            text = re.sub(rf"(?<![\w.']){name}(?![\w'])", f"other_{name}", text)
    return text


def sizes(seed: int) -> Sizes:
    """Every third topology has tables with complete histories."""
    return Sizes(derived=(4, 9), complete=4 * (seed % 3 == 2))


def cut_at(epochs: History) -> type[Waits]:
    """A stage in which the later half of these records waits for others."""
    times = sorted(row.timestamp for rows in epochs for row in rows if row.timestamp is not None)
    limit = Frontier(times[len(times) // 2], 0, "") if times else None
    return type("Cut", (Waits,), {"frontier": limit})


@pytest.mark.quick(2)
@pytest.mark.parametrize("seed", seeds("VSC_TOPOLOGIES", 12))
def test_what_is_said_in_other_words_goes_on_while_records_wait(seed: int) -> None:
    rng = random.Random(seed)
    topology = generate(rng, sizes(seed))
    rows = history(rng, topology)
    old, new = compiled(topology.text()), compiled(rewritten(rng, topology))
    changes = [c for c in compare(old, new) if c.kind == "store"]
    assert {c.verdict for c in changes} <= {Verdict.KEEP, Verdict.RENAMED, Verdict.WIDENED}, changes
    partitions, half = rng.choice((1, 2, 3)), len(rows) // 2
    cut, stores, whole = cut_at(rows[:half]), Stores(), Stores()
    played(old, rows[:half], stores, partitions, False, cut)
    try:
        state = carried(old, new, stores, partitions, partitions)
    except ConfigurationError as error:
        assert "records wait for others" in error.message  # under the name of a node that is no longer there
        return
    sent = played(new, rows[half:], state, partitions, True)
    played(new, rows[:half], whole, partitions, False, cut)
    expected = played(new, rows[half:], whole, partitions, True)
    for name in kept(old, new):
        assert sent.get(name) == expected.get(name), name


@pytest.mark.parametrize("seed", seeds("VSC_TOPOLOGIES", 30))
def test_no_record_is_lost_that_waits_for_a_grace_which_goes(seed: int) -> None:
    rng = random.Random(seed)
    topology = generate(rng, sizes(seed))
    rows, text = history(rng, topology), topology.text()
    graces = re.findall(r"^stream (x\d+) = left join [sx]\d+ [^;]*? grace \d+ ms", text, re.MULTILINE)
    if not graces:
        return
    name = rng.choice(graces)
    old = compiled(text)
    new = compiled(re.sub(rf"(stream {name} = [^;]*?) grace \d+ ms", r"\1", text, count=1))
    partitions, half = rng.choice((1, 2, 3)), len(rows) // 2
    stores, whole = Stores(), Stores()
    first = played(old, rows[:half], stores, partitions, False)
    reset = [c.name for c in compare(old, new) if c.kind == "store" and c.verdict is Verdict.REBUILD]
    second = played(new, rows[half:], carried(old, new, stores, partitions, partitions, reset), partitions, True)
    expected = played(new, rows, whole, partitions, True)
    counts = [sum(len(records) for records in sent.get(name, {}).values()) for sent in (first, second, expected)]
    assert counts[0] + counts[1] == counts[2], name


def kept(old: Plan, new: Plan) -> list[str]:
    """The nodes of the new plan that mean what they meant, and all of whose state is carried."""
    nodes = Nodes(old, new)
    begun = {c.node for c in compare(old, new) if c.kind == "store" and c.verdict in (Verdict.NEW, Verdict.REBUILD)}
    found: list[str] = []
    behind = {name for name in (node.name for node in new.nodes) if new.node(name).owner in begun}
    for _ in new.nodes:
        behind |= {node.name for node in new.nodes if behind & set(node.inputs)}
    for node in new.nodes:
        same = node.name in nodes.meanings and nodes.meanings[node.name].state == "same"
        if same and node.part_of is None and node.name not in behind:
            found.append(node.name)
    return found


@pytest.mark.quick(2)
@pytest.mark.parametrize("seed", seeds("VSC_TOPOLOGIES", 12))
def test_what_means_the_same_goes_on(seed: int) -> None:
    rng = random.Random(seed)
    topology = generate(rng, sizes(seed))
    rows = history(rng, topology)
    old, new = (compiled(cut(rng, topology)) for _ in range(2))
    partitions, half = rng.choice((1, 1, 2, 3)), len(rows) // 2
    rebuilt = [c.name for c in compare(old, new) if c.kind == "store" and c.verdict is Verdict.REBUILD]
    stores, whole = Stores(), Stores()
    played(old, rows[:half], stores, partitions, False)
    state = carried(old, new, stores, partitions, partitions, reset=rebuilt)
    sent = played(new, rows[half:], state, partitions, True)
    played(new, rows[:half], whole, partitions, False)
    expected = played(new, rows[half:], whole, partitions, True)
    for name in kept(old, new):
        assert sent.get(name) == expected.get(name), name


MUTATIONS = (
    ("> 1", "> 2"), ("% 3", "% 4"), ("'a'", "'b'"), (" and ", " or "), ("first(", "last("), ("max(", "min("),
    (" left join ", " join "), ("l.", "r."), ("at", "n"), ("size = 10 ms", "size = 20 ms"), ("sum(", "count("),
    ("r.n", "r.at"), (" within 3 ms", " within 5 ms"), ("distinct ", ""), ("else ", "else null and "),
)  # fmt: skip


def mutated(rng: random.Random, topology: Generated) -> Plan | None:
    """The topology with one thing that may mean something else."""
    statements = list(topology.statements)
    place, (was, now) = rng.randrange(len(statements)), rng.choice(MUTATIONS)
    head, _, body = statements[place].partition(" = ")
    spots = [found.start() for found in re.finditer(re.escape(was), body)]
    if not spots:
        return None
    spot = rng.choice(spots)
    statements[place] = f"{head} = {body[:spot]}{now}{body[spot + len(was) :]}"
    try:
        return compiled(Generated(topology.sources, tuple(statements), topology.sinks).text())
    except TopologyError:
        return None


@pytest.mark.quick(2)
@pytest.mark.parametrize("seed", seeds("VSC_TOPOLOGIES", 20))
def test_what_is_kept_beside_a_change_goes_on(seed: int) -> None:
    rng = random.Random(seed)
    topology = generate(rng, sizes(seed))
    rows, old = history(rng, topology), compiled(topology.text())
    new = next(filter(None, (mutated(rng, topology) for _ in range(30))), None)
    if new is None:
        return
    partitions, half = rng.choice((1, 2, 3)), len(rows) // 2
    rebuilt = [c.name for c in compare(old, new) if c.kind == "store" and c.verdict is Verdict.REBUILD]
    stores, whole = Stores(), Stores()
    played(old, rows[:half], stores, partitions, False)
    sent = played(new, rows[half:], carried(old, new, stores, partitions, partitions, rebuilt), partitions, True)
    played(new, rows[:half], whole, partitions, False)
    expected = played(new, rows[half:], whole, partitions, True)
    for name in kept(old, new):
        assert sent.get(name) == expected.get(name), name


IN_ANY_ORDER = {"count", "sum", "min", "max", "collect_set", "stddev", "variance", "approx_percentile"}


def exact(plan: Plan, node: Node) -> bool:
    """Whether what a node that is filled keeps depends on the newest rows alone: not on their order, nor on windows
    that its table has forgotten, nor on what a versioned table refuses or has had before."""
    calls = node.operation.calls if isinstance(node.operation, Aggregate) else ()
    behind = [plan.node(name) for name in node.inputs[:1]]
    while behind[-1].part_of is not None or behind[-1].store is None:
        behind.append(plan.node(behind[-1].inputs[0]))
    tables = (node, behind[-1])
    of_kind = all(one.store is None or one.store.kind == "unversioned" for one in tables)
    return of_kind and behind[-1].bounds == 0 and all(call.function in IN_ANY_ORDER for call in calls)


@pytest.mark.quick(3)
@pytest.mark.parametrize("seed", seeds("VSC_TOPOLOGIES", 30))
def test_what_is_filled_is_as_if_it_had_read_everything(seed: int) -> None:
    rng = random.Random(seed)
    topology = generate(rng, sizes(seed))
    rows = history(rng, topology)
    old, new = (compiled(cut(rng, topology)) for _ in range(2))
    changes = [c for c in compare(old, new) if c.kind == "store"]
    filled = [c.name for c in changes if c.reason.startswith("filled with") and exact(new, beside(new, c.node))]
    if not filled:
        return
    partitions, half = rng.choice((1, 2, 3)), len(rows) // 2
    stores, whole = Stores(), Stores()
    played(old, rows[:half], stores, partitions, False)
    rebuilt = [c.name for c in changes if c.verdict is Verdict.REBUILD]
    state = carried(old, new, stores, partitions, partitions, reset=rebuilt)
    played(new, rows[half:], state, partitions, True)
    played(new, rows[:half], whole, partitions, False)
    played(new, rows[half:], whole, partitions, True)
    kept, expected = content(new, state, partitions), content(new, whole, partitions)
    for name in kept:
        if name.rpartition(" in ")[0] in filled:
            assert [row[1:3] for row in kept[name]] == [row[1:3] for row in expected[name]], name


def beside(plan: Plan, owner: str) -> Node:
    """The node that keeps what it needs all rows for."""
    (found,) = (node for node in plan.nodes if node.owner == owner and node.operation.of_all_rows)
    return found


@pytest.mark.quick(2)
@pytest.mark.parametrize("seed", seeds("VSC_TOPOLOGIES", 10))
def test_there_and_back_again(seed: int) -> None:
    """One partition, several, one: nothing shows."""
    rng = random.Random(seed)
    topology = generate(rng, sizes(seed))
    rows, plan = history(rng, topology), compiled(topology.text())
    half, between = len(rows) // 2, rng.choice((2, 3, 8))
    stores = Stores()
    played(plan, rows[:half], stores, 1, False)
    back = carried(plan, plan, carried(plan, plan, stores, 1, between), between, 1)
    assert content(plan, back, 1) == content(plan, stores, 1)
    assert played(plan, rows[half:], back, 1, True) == played(plan, rows[half:], stores, 1, True)


@pytest.mark.slow
def test_the_pairs_say_something() -> None:
    """Among the few that always run are topologies that lose, gain and keep nodes with state."""
    verdicts: set[str] = set()
    for seed in range(40):
        rng = random.Random(seed)
        topology = generate(rng, sizes(seed))
        history(rng, topology)
        old, new = (compiled(cut(rng, topology)) for _ in range(2))
        verdicts |= {c.verdict.value for c in compare(old, new) if c.kind == "store"}
    assert {"keep", "renamed", "new", "dropped", "widened"} <= verdicts
