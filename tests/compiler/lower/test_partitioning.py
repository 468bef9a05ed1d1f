"""By which key columns records are partitioned: rows of a windowed table stay with their group."""

from __future__ import annotations

from tests.runtime.operators.driving import rows
from vsc.compiler import compile_topology
from vsc.plan import Plan
from vsc.testing import TopologyTestDriver

TOPOLOGY = """
stream s (k string, g string, n bigint) from memory () key k;
stream q (id string, k string, start timestamp, until timestamp) from memory () key id;
table other (k string, a timestamp, b timestamp, x bigint) from memory () key k, a, b;
table w = aggregate s group by g window tumbling (size = 10 ms, grace = 1 hour) select sum(n) as n;
stream o = to_stream w;
stream r = rekey q by k, start, until;
stream j = left join r with w select w.n as n;
stream p = left join o with other select x;
table by_g = aggregate w group by g select sum(n) as n;
"""


def widths_of(plan: Plan) -> dict[str, int]:
    return {node.name: len(node.schema.key) - node.bounds for node in plan.nodes}


def test_what_meets_a_windowed_table_is_partitioned_without_the_bounds() -> None:
    widths = widths_of(compile_topology(TOPOLOGY))
    assert {name: widths[name] for name in ("w", "o", "r", "j", "p", "other")} == dict.fromkeys(
        ("w", "o", "r", "j", "p", "other"), 1
    )
    assert (widths["s"], widths["w#rekey"], widths["q"], widths["by_g"]) == (1, 1, 1, 1)


def test_other_keys_of_three_columns_count_whole() -> None:
    text = (
        "table t (a int, b timestamp, c timestamp, n int) from memory () key a, b, c; table f = filter t where n > 0;"
    )
    assert widths_of(compile_topology(text)) == {"t": 3, "f": 3}


def test_a_stream_finds_the_rows_of_a_windowed_table_in_any_number_of_partitions() -> None:
    found = []
    for partitions in (1, 5):
        with TopologyTestDriver(TOPOLOGY, partitions=partitions) as driver:
            for number in range(40):
                driver.pipe("s", {"k": str(number), "g": f"g{number % 7}", "n": number}, timestamp=number)
            groups = [record.key for record in driver.read("w")]
            for number, key in enumerate(groups):
                driver.pipe(
                    "q",
                    {"id": str(number), "k": key["g"], "start": key["window_start"], "until": key["window_end"]},
                    timestamp=100,
                )
            joined = [value for _, value, _ in rows(driver, "j")]
        assert len(joined) == len(groups) and all(row["n"] is not None for row in joined)
        found.append(joined)
    assert found[0] == found[1]
