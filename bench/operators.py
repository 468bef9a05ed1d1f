"""Every operator's stage alone, in one process without Spark: rows a CPU-second over ten epochs, and the plain join's.

``python -m bench.operators [--rows N] [NAME ...]``. As on Spark, an epoch's writes stay in an overlay above RocksDB and
become one changelog at its end. It measures this process's CPU time, so other work on the machine matters little.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vsc.compiler import compile_topology
from vsc.plan.nodes import Plan, Source
from vsc.runtime.local import LocalRuntime
from vsc.runtime.operators.context import RunOptions
from vsc.runtime.operators.source.rows import SourceRows
from vsc.runtime.records import Origin
from vsc.runtime.state.kv import OverlayKV, RocksKV, apply_changelog
from vsc.runtime.values import to_array

__all__ = ["EPOCHS", "FLOORS", "OPERATORS", "PLAIN", "Rates", "columns_of", "measure", "topology"]

PLAIN = "plain versioned join"

SOURCES = """
table t (k string, n bigint, x double, g string, at bigint) from memory () key k timestamp at MATERIALIZE;
table u (k string, y double, at bigint) from memory () key k timestamp at materialize versioned (retention = 1 hour);
global table gt (k string, y double, at bigint) from memory () key k timestamp at;
stream s (k string, n bigint, x double, g string, at bigint) from memory () key k timestamp at;
stream r (k string, n bigint, x double, g string, at bigint) from memory () key k timestamp at;
"""
SIZE = "tumbling (size = 1 minute"
WINDOW = f"aggregate s group by k window {SIZE}, grace = 10 seconds) select count(*) as c, sum(x) as x"

CORRECT = "table o = left join s with u correct by k, n within 10 seconds select u.y as y;"
IN_ORDER = (
    "correct, none late", "correct for a minute",
    "table aggregate kept, versioned", "table aggregate, complete",
    "join of tables, versioned", "join of tables, complete", "foreign-key join, versioned",
    "foreign-key join, complete",
)  # fmt: skip
LATE = {"correct, 1 % late": 0.01, **dict.fromkeys(IN_ORDER, 0.0)}
"""The share of rows that come late, by as much as 3 s; 5 % of them for the others."""
KEPT = "materialize versioned (retention = 1 hour)"
COMPLETE = "materialize versioned (retention = 1 hour, history = 'complete')"

OPERATORS = {
    PLAIN: "stream o = left join s with u select n, u.y as y;",
    "join with grace": "stream o = left join s with u grace 5 seconds select n, u.y as y;",
    "correct, none late": CORRECT,
    "correct, 1 % late": CORRECT,
    "correct for a minute": CORRECT.replace("10 seconds", "1 minute"),
    "reorder": "stream o = reorder s within 5 seconds;",
    "join with a global table": "stream o = left join s with gt on k select n, gt.y as y;",
    "join of a table with itself": "table o = join t as a with t as b select a.x + b.x as x;",
    "explode": "stream j = join s with u select n, g; stream o = explode j by split(g, '-') as w;",
    "join of two streams": "stream o = join s with r within 1 second select s.n as n, r.x as x;",
    "outer join of two streams": "stream o = outer join s with r within 1 second grace 3 seconds "
    "select s.n as n, r.x as x;",
    "what came before": "stream o = left join s as l with s as r within (before = 100 seconds) "
    "select count(*) as c, sum(r.n) as n, max(r.x) as x;",
    "distinct": "stream o = distinct s within 5 seconds;",
    "merge": "stream j = join s with u select n, g; stream l = join r with u select n, g; stream o = merge j, l;",
    "count by key": "table o = aggregate s group by k select count(*) as c;",
    "count(distinct)": "table o = aggregate s group by k select count(distinct n) as c;",
    "collect_list": "table o = aggregate s group by k select collect_list(n) as c;",
    "collect_set": "table o = aggregate s group by k select collect_set(n % 50) as c;",
    "collect_top": "table o = aggregate s group by k select collect_top(n, 5 by x desc) as c;",
    "table aggregate": "table o = aggregate t group by g select sum(n) as n, count(*) as c;",
    "table aggregate, versioned": "table o = aggregate t group by g select sum(n) as n, count(*) as c;",
    "table aggregate, min and last": "table o = aggregate t group by g select min(x) as n, last(n) as c;",
    "table aggregate kept, versioned": f"table o = aggregate t group by g select sum(n) as n, count(*) as c {KEPT};",
    "table aggregate, complete": f"table o = aggregate t group by g select sum(n) as n, count(*) as c {COMPLETE};",
    "join of tables, versioned": f"table o = join t with u select n, u.y as y {KEPT};",
    "join of tables, complete": f"table o = join t with u select n, u.y as y {COMPLETE};",
    "foreign-key join, versioned": f"table o = join t with u on k select n, u.y as y {KEPT};",
    "foreign-key join, complete": f"table o = join t with u on k select n, u.y as y {COMPLETE};",
    "tumbling": f"table o = {WINDOW};",
    "hopping": f"table o = {WINDOW.replace(SIZE, 'hopping (size = 1 minute, advance = 20 seconds')};",
    "emit final": f"table o = {WINDOW.replace(' select', ' emit final select')};",
    "session": "table o = aggregate s group by k window session (gap = 5 s) select count(*) as c, sum(x) as x;",
    "sliding": "table o = aggregate s group by k window sliding (difference = 5 seconds) select count(*) as c;",
    "suppress until window closes": f"table w = {WINDOW}; table o = suppress w until window closes;",
    "suppress, time limit": "table c = aggregate s group by k select count(*) as c; "
    "table o = suppress c until time limit 10 seconds;",
}  # fmt: skip
FLOORS = {
    **dict.fromkeys(("correct, none late", "correct, 1 % late", "correct for a minute"), 0.3),  # each record is kept
    "reorder": 0.2,  # each record that waits is a row of the state
    "what came before": 0.3,  # 50 records are read for each
    "session": 0.2, "sliding": 0.2, "collect_list": 0.2, "collect_set": 0.2, "collect_top": 0.2,
    "table aggregate kept, versioned": 0.15, "table aggregate, complete": 0.1,
    "join of tables, versioned": 0.15, "join of tables, complete": 0.1,
    "foreign-key join, versioned": 0.15, "foreign-key join, complete": 0.05,
    "outer join of two streams": 0.2,  # a record that waits is in the state twice, and comes out on its own
}  # fmt: skip
EPOCHS = 10
SPAN_MS = 20_000
"""How much event time an epoch spans."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Rows a CPU-second: over all epochs except the first two, and of the third and the tenth; and how many bytes the
    keys and values of the state have in the end."""

    rows: float
    third: float
    tenth: float
    state: int


def topology(name: str, statements: str) -> str:
    """The statements of operator `name`, with the sources that they read."""
    clause = KEPT if name.endswith(("versioned", "complete")) else ""
    lines = SOURCES.replace("MATERIALIZE", clause).strip().splitlines()
    words = set(statements.replace(",", " ").replace("(", " ").replace(";", " ").split())
    used = [line for line in lines if line.split("(")[0].split()[-1] in words]
    return "\n".join([*used, statements])


def plan_of(name: str) -> Plan:
    """The plan of an operator."""
    return compile_topology(f"{topology(name, OPERATORS[name])} sink o to memory ();", path="bench.vdsl")


def measure(name: str, rows: int) -> Rates:
    """Runs ten epochs of `rows` rows with rows / 10 keys. Tables beside a stream have a tenth as many rows."""
    plan = plan_of(name)
    spent = []
    with tempfile.TemporaryDirectory(prefix="vsc-bench-") as folder:
        stores = {s.id: RocksKV(Path(folder) / str(s.id)) for s in plan.stages[1:]}
        for epoch in range(EPOCHS):
            chunks = _rows(plan, epoch, rows, LATE.get(name, 0.05))
            began = time.process_time()
            overlays = {stage: OverlayKV(kv) for stage, kv in stores.items()}
            runtime = LocalRuntime(plan, lambda stage, _, kvs=overlays: kvs[stage], ["o"], 1, RunOptions())  # type: ignore[misc]
            runtime.process(chunks)
            for stage, overlay in overlays.items():
                apply_changelog(stores[stage], overlay.changelog())
            spent.append(time.process_time() - began)
        state = sum(len(key) + len(value) for kv in stores.values() for key, value in kv.scan(b"", None))
        for kv in stores.values():
            kv.close()
    return Rates(rows * (EPOCHS - 2) / sum(spent[2:]), rows / spent[2], rows / spent[9], state)


def columns_of(
    epoch: int, count: int, rows: int, seed: tuple[int, ...], late_rows: float = 0.05
) -> dict[str, list[Any]]:
    """The columns of `count` of the `rows` rows of an epoch, of which a share are `late_rows`."""
    rng = np.random.default_rng((epoch, *seed))
    late = np.where(rng.random(count) < late_rows, rng.integers(0, 3000, count), 0)
    at = epoch * SPAN_MS + np.sort(rng.integers(0, SPAN_MS, count)) - late
    number = rng.integers(0, rows // 10, count)
    return {
        "k": [f"key-{i:06d}" for i in number.tolist()], "n": rng.integers(0, 1000, count).tolist(),
        "x": rng.random(count).tolist(), "y": rng.random(count).tolist(),
        "g": [f"g-{i % 997}" for i in number.tolist()], "at": np.maximum(at, 0).tolist(),
    }  # fmt: skip


def _rows(plan: Plan, epoch: int, rows: int, late: float) -> list[tuple[str, SourceRows]]:
    sources = [(n, n.operation) for n in plan.nodes if isinstance(n.operation, Source)]
    streams = [n.name for n, _ in sources if n.kind == "stream"]
    found = []
    for place, (node, source) in enumerate(sources):
        count = rows // max(len(streams), 1) if node.kind == "stream" or not streams else rows // 10
        columns = columns_of(epoch, count, rows, (place,), late)
        arrays = tuple(to_array(columns[c.name], c.type) for c in source.columns)
        offsets = epoch * rows + np.arange(count, dtype=np.int64)
        found.append((node.name, SourceRows(Origin(node.name, source.rank, ""), arrays, offsets)))
    return found


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.operators", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these, beside the plain join")
    parser.add_argument("--rows", type=int, default=20_000, help="rows an epoch")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(OPERATORS))
    if unknown:
        parser.error(f"unknown operator {', '.join(unknown)}")
    names = arguments.names or list(OPERATORS)
    plain = measure("plain versioned join", arguments.rows)
    print("| operator | rows a CPU-second | of the plain join | floor | tenth epoch, of the third | KiB of state |")
    print("|---|---:|---:|---:|---:|---:|")
    for name in names:
        found = plain if name == "plain versioned join" else measure(name, arguments.rows)
        floor, share = FLOORS.get(name, 0.4), found.rows / plain.rows
        growth, state = found.tenth / found.third, found.state / 1024
        print(f"| {name} | {found.rows:,.0f} | {share:.2f} | {floor} | {growth:.2f} | {state:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
