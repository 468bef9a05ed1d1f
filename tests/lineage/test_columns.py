"""The columns of sources that each column of a sink depends on, over topologies with every operation."""

from __future__ import annotations

from typing import get_args

import pytest

from vsc.compiler import compile_topology
from vsc.lineage.columns import _Nodes, sink_lineages
from vsc.lineage.inputs import Inputs
from vsc.plan import Operation

SOURCES = """
stream orders (id bigint, customer string, product string, amount int, note string, lines array<int>, at bigint)
from files (path = 'orders', format = 'json') key id timestamp at;
stream returns (id bigint, customer string, product string, amount int, note string, lines array<int>, back bigint)
from files (path = 'returns', format = 'json') key id timestamp back;
table customers (customer string, name string, region string, since bigint, gone boolean)
from files (path = 'customers', format = 'json') key customer timestamp since delete when gone
materialize versioned (retention = 7 days);
table regions (region string, title string, set bigint)
from files (path = 'regions', format = 'json') key region timestamp set;
global table products (product string, label string, made bigint)
from files (path = 'products', format = 'json') key product timestamp made;
"""
SHORT = {"IDENTITY": "=", "TRANSFORMATION": "~", "AGGREGATION": "+"}


def _shown(inputs: Inputs) -> str:
    """``=orders.id``: the value itself; ``~``: made of it, ``+``: aggregated; ``#``: masked; else how it decides."""
    found = []
    for (source, column), transformations in inputs.items():
        for kind, subtype, masking in transformations:
            how = SHORT[subtype] if kind == "DIRECT" else f"{subtype} "
            found.append(f"{how}{'#' * masking}{source}.{column}")
    return ", ".join(sorted(found))


def lineage(text: str, options: str = "path = 'out', format = 'json'", kind: str = "files") -> dict[str, str]:
    """What each column of the sink of `found` depends on, and ``rows``."""
    plan = compile_topology(f"{SOURCES}{text} sink found to {kind} ({options});", path="t.vdsl", variables={})
    [sink] = sink_lineages(plan)
    assert list(sink.fields) == [column.name for column in sink.columns]
    return {name: _shown(inputs) for name, inputs in sink.fields.items()} | {"rows": _shown(sink.rows)}


def test_there_is_a_rule_for_every_operation() -> None:
    operations = {cls.__dataclass_fields__["op"].default for cls in get_args(Operation)}
    assert [name for name in operations - {"dead_letters"} if not hasattr(_Nodes, f"_{name}")] == []


def test_a_filter_decides_and_a_map_computes() -> None:
    text = """
    stream large = filter orders where amount > 100 and customer is not null;
    stream found = map large select customer, amount * 2 as twice, upper(note) as note, 7 as seven;
    """
    assert lineage(text) == {
        "id": "=orders.id", "customer": "=orders.customer", "twice": "~orders.amount", "note": "~orders.note",
        "seven": "", "rows": "FILTER orders.amount, FILTER orders.customer",
    }  # fmt: skip


def test_what_decides_about_a_value() -> None:
    text = """
    stream found = map orders select
      case when amount > 1 then note when customer = 'a' then product else 'x' end as one,
      if(amount > 2, amount, id) as two,
      coalesce(note, product) as three,
      filter(lines, l -> l > amount) as four,
      transform(lines, (l, i) -> l + id) as five,
      exists(lines, l -> l = amount) as six;
    """
    assert lineage(text) == {
        "id": "=orders.id",
        "one": "CONDITIONAL orders.amount, CONDITIONAL orders.customer, ~orders.note, ~orders.product",
        "two": "CONDITIONAL orders.amount, ~orders.amount, ~orders.id",
        "three": "CONDITIONAL orders.note, ~orders.note, ~orders.product",
        "four": "CONDITIONAL orders.amount, ~orders.lines",
        "five": "~orders.id, ~orders.lines",
        "six": "~orders.amount, ~orders.lines",
        "rows": "",
    }


def test_a_hash_is_masked_as_far_as_it_goes() -> None:
    text = """
    stream hashed = map orders select md5(note) as h, amount;
    stream found = map hashed select concat(h, 'x') as h, if(amount > 0, h, '') as g;
    """
    found = lineage(text)
    assert (found["h"], found["g"]) == ("~#orders.note", "CONDITIONAL orders.amount, ~#orders.note")


def test_a_time_is_the_column_that_it_is_read_from() -> None:
    text = "stream found = map orders select unix_millis(event_time()) + 1 as later;"
    assert lineage(text, "path = 'out', format = 'json', with_timestamp = true") == {
        "id": "=orders.id", "later": "~orders.at", "_timestamp": "=orders.at", "rows": "",
    }  # fmt: skip


def test_a_new_time_decides_whether_a_record_stays() -> None:
    text = "stream found = map orders select note timestamp at - amount;"
    assert lineage(text, "path = 'out', format = 'json', with_timestamp = true") == {
        "id": "=orders.id", "note": "=orders.note", "_timestamp": "~orders.amount, ~orders.at",
        "rows": "FILTER orders.amount, FILTER orders.at",
    }  # fmt: skip


def test_a_join_as_of_finds_by_key_and_times() -> None:
    text = """
    stream found = left join orders with customers on customer select note, customers.region as region,
      case when customers.name is null then amount else 0 end as open;
    """
    assert lineage(text) == {
        "customer": "=orders.customer", "note": "=orders.note", "region": "=customers.region",
        "open": "CONDITIONAL customers.name, ~orders.amount",
        "rows": "FILTER customers.gone, JOIN customers.customer, JOIN customers.since, JOIN orders.at, "
        "JOIN orders.customer",
    }  # fmt: skip


def test_a_join_with_the_newest_row_finds_by_the_key_alone() -> None:
    text = """
    stream noted = map orders select note;
    stream found = join noted with regions on note select title;
    """
    assert lineage(text) == {
        "region": "=orders.note",
        "title": "=regions.title",
        "rows": "JOIN orders.note, JOIN regions.region",
    }


def test_a_join_with_a_global_table() -> None:
    text = "stream found = join orders with products on lower(product) max_age 1 day select label, amount;"
    assert lineage(text) == {
        "id": "=orders.id", "label": "=products.label", "amount": "=orders.amount",
        "rows": "JOIN orders.at, JOIN orders.product, JOIN products.made, JOIN products.product",
    }  # fmt: skip


@pytest.mark.parametrize(("mode", "key"), [("", "=orders.id"), ("outer ", "=orders.id, =returns.id")])
def test_a_join_of_two_streams(mode: str, key: str) -> None:
    text = f"""
    stream found = {mode}join orders with returns within 1 hour
      select orders.amount as was, returns.amount as now;
    """
    assert lineage(text, "path = 'out', format = 'json', with_timestamp = true") == {
        "id": key, "was": "=orders.amount", "now": "=returns.amount", "_timestamp": "=orders.at, =returns.back",
        "rows": "JOIN orders.at, JOIN orders.id, JOIN returns.back, JOIN returns.id",
    }  # fmt: skip


def test_a_join_of_tables_by_their_key() -> None:
    text = """
    table named = map customers select name;
    table found = outer join customers with named select customers.region as region, named.name as name;
    """
    assert lineage(text) == {
        "customer": "=customers.customer", "region": "=customers.region", "name": "=customers.name", "_change": "",
        "_timestamp": "=customers.since", "rows": "FILTER customers.gone, JOIN customers.customer",
    }  # fmt: skip


def test_a_join_of_tables_by_a_foreign_key() -> None:
    text = "table found = left join customers with regions on region select name, regions.title as title;"
    assert lineage(text, "path = 'out'", "delta") == {
        "customer": "=customers.customer", "name": "=customers.name", "title": "=regions.title",
        "rows": "FILTER customers.gone, JOIN customers.region, JOIN regions.region",
    }  # fmt: skip


def test_an_aggregate_of_a_stream_in_windows() -> None:
    text = """
    table sums = aggregate orders group by customer, upper(product) as product
      window tumbling (size = 1 hour, grace = 1 minute)
      select sum(amount) as total, count(*) as n, count(note) as notes, min_by(note, amount) as cheapest,
        first(id) as first, sum(amount) / count(*) as mean, collect_top(note, 2 by amount desc) as top;
    table found = suppress sums until window closes;
    """
    found = lineage(text)
    bounds = [name for name in found if name.startswith("window")]
    assert {found[name] for name in bounds} == {"~orders.at"} and len(bounds) == 2
    assert {name: value for name, value in found.items() if name not in bounds} == {
        "customer": "=orders.customer", "product": "~orders.product", "total": "+orders.amount", "n": "",
        "notes": "+#orders.note", "cheapest": "+orders.note, SORT orders.amount", "first": "+orders.id, SORT orders.at",
        "mean": "+orders.amount", "top": "+orders.note, SORT orders.amount", "_change": "", "_timestamp": "=orders.at",
        "rows": "GROUP_BY orders.customer, GROUP_BY orders.product, WINDOW orders.at",
    }  # fmt: skip


def test_an_aggregate_of_a_table() -> None:
    text = "table found = aggregate customers group by region select count(*) as n, max(name) as last;"
    assert lineage(text) == {
        "region": "=customers.region", "n": "", "last": "+customers.name", "_change": "",
        "_timestamp": "=customers.since", "rows": "FILTER customers.gone, GROUP_BY customers.region",
    }  # fmt: skip


def test_a_merge_has_both() -> None:
    text = """
    stream sold = map orders select note;
    stream real = filter returns where amount > 0;
    stream returned = map real select lower(product) as note;
    stream found = merge sold, returned;
    """
    found = lineage(text)
    assert found["id"] == "=orders.id, =returns.id"
    assert (found["note"], found["rows"]) == ("=orders.note, ~returns.product", "FILTER returns.amount")


def test_a_stream_as_a_table_and_back() -> None:
    text = """
    stream by_customer = rekey orders by customer;
    table newest = to_table by_customer delete when amount = 0;
    table kept = materialize newest versioned (retention = 1 day);
    stream found = to_stream kept;
    """
    found = lineage(text)
    assert (found["customer"], found["note"]) == ("=orders.customer", "=orders.note")
    assert found["rows"] == "FILTER orders.amount, FILTER orders.customer"


def test_elements_and_their_places() -> None:
    text = "stream found = explode orders by transform(lines, l -> l + amount) as (place, line);"
    found = lineage(text)
    assert found["line"] == found["place"] == "~orders.amount, ~orders.lines"
    assert (found["note"], found["rows"]) == ("=orders.note", "FILTER orders.amount, FILTER orders.lines")


def test_a_stream_without_repeats() -> None:
    text = "stream found = distinct orders by customer within 1 hour;"
    found = lineage(text)
    assert (found["note"], found["rows"]) == ("=orders.note", "GROUP_BY orders.customer, WINDOW orders.at")


def test_a_function_of_ones_own() -> None:
    text = """
    function risk (amount int, note string) returns double from 'scoring:risk';
    stream found = map orders select risk(amount, note) as risk;
    """
    assert lineage(text)["risk"] == "~orders.amount, ~orders.note"


def test_a_history_adds_when_rows_are_valid() -> None:
    text = "table found = filter customers where name <> '';"
    assert lineage(text, "path = 'out', history = 'scd2', valid_to = 'until'", "delta") == {
        "customer": "=customers.customer", "name": "=customers.name", "region": "=customers.region",
        "since": "=customers.since", "gone": "=customers.gone", "valid_from": "=customers.since",
        "until": "~customers.since", "rows": "FILTER customers.gone, FILTER customers.name",
    }  # fmt: skip


def test_what_is_lost_has_what_came_to_its_node() -> None:
    text = f"""{SOURCES}
    stream noted = map orders select upper(note) as note;
    stream found = join noted with customers on note select name;
    sink found to noop ();
    sink dropped of orders to files (path = 'a', format = 'json');
    sink missed of found to files (path = 'b', format = 'json');
    sink dropped to files (path = 'c', format = 'json');
    """
    _, dropped, missed, every = sink_lineages(compile_topology(text, path="t.vdsl", variables={}))
    assert _shown(dropped.fields["key"]) == "~orders.id"
    assert _shown(dropped.fields["value"]) == _shown(dropped.fields["raw"]).replace("~orders.id, ", "")
    assert "~orders.lines" in _shown(dropped.fields["raw"])
    assert _shown(dropped.fields["event_time"]) == "=orders.at"
    assert _shown(missed.fields["value"]) == "~orders.id, ~orders.note"  # with the one key, then with the other
    assert _shown(missed.fields["raw"]) == ""
    assert "~customers.name" in _shown(every.fields["value"])
    assert {_shown(every.fields[name]) for name in ("node", "reason", "source", "position", "message")} == {""}
