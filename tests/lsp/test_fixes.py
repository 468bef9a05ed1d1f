"""Every fix of a corpus of mistakes: it is what was meant, or none is offered."""

from __future__ import annotations

import pytest

from vsc.compiler.diagnostics.codes import CODES
from vsc.compiler.source import Span
from vsc.lsp.document import Document
from vsc.lsp.fixes import offers

HEAD = """\
stream orders (id string, customer string, quantity int, price double, tags array<string>, at timestamp) from memory ()
  key id timestamp at;
table customers (customer string, name string, `unit price` double) from memory () key customer;
"""
TAIL = "\nsink orders to noop (); sink customers to noop ();"

FIXED = [
    ("stream x = filter orders where quantty > 1;", "stream x = filter orders where quantity > 1;"),
    ("stream x = filter orders where Price > 1;", "stream x = filter orders where price > 1;"),
    ("stream x = filter order where price > 1;", "stream x = filter orders where price > 1;"),
    ("stream x = filter orders where price == 1;", "stream x = filter orders where price = 1;"),
    ("stream x = filter orders where price > 1 && quantity > 1;",
     "stream x = filter orders where price > 1 and quantity > 1;"),
    ("stream x = filter orders where price > .5;", "stream x = filter orders where price > 0.5;"),
    ("stream x = FILTER orders where price > 1;", "stream x = filter orders where price > 1;"),
    ("stream x = filtr orders where price > 1;", "stream x = filter orders where price > 1;"),
    ("stream x = filter orders where customer is NULL;", "stream x = filter orders where customer is null;"),
    ("table x = filter customers where name = null;", "table x = filter customers where name is null;"),
    ("table x = filter customers where name <> null;", "table x = filter customers where name is not null;"),
    ("table x = filter customers where unit_price > 1;", "table x = filter customers where `unit price` > 1;"),
    ("stream x = map orders select quantity total;", "stream x = map orders select quantity as total;"),
    ("stream x = map orders select quantity * price total;", "stream x = map orders select quantity * price as total;"),
    ("table x = aggregate orders group by customer select sum(quantity) total;",
     "table x = aggregate orders group by customer select sum(quantity) as total;"),
    ("stream x = join orders o with customers on customer select name;",
     "stream x = join orders as o with customers on customer select name;"),
    ("stream x = inner join orders with customers on customer select name;",
     "stream x = join orders with customers on customer select name;"),
    ("stream x = left outer join orders with customers on customer select name;",
     "stream x = left join orders with customers on customer select name;"),
    ("stream x = join orders with customers on orders.customer = customers.customer select name;",
     "stream x = join orders with customers on orders.customer select name;"),
    ("table x = filter orders where price > 1;", "stream x = filter orders where price > 1;"),
    ("stream x = map orders select nvl(price, 0) as p;", "stream x = map orders select coalesce(price, 0) as p;"),
    ("stream x = map orders select substr(customer, 1, 2) as p;",
     "stream x = map orders select substring(customer, 1, 2) as p;"),
    ("stream x = map orders select uper(customer) as p;", "stream x = map orders select upper(customer) as p;"),
    ("stream x = map orders select at + interval 5 minutes as p;", "stream x = map orders select at + 5 minutes as p;"),
    ("stream x = map orders select at + 2 weeks as p;", "stream x = map orders select at + 14 days as p;"),
    ("stream x = map orders select at + 5 mins as p;", "stream x = map orders select at + 5 minutes as p;"),
    ("stream x = distinct orders within '5 minutes';", "stream x = distinct orders within 5 minutes;"),
    ("stream x = distinct orders within 5 minuts;", "stream x = distinct orders within 5 minutes;"),
    ("table x (k string) from files (path = 'p', format = json) key k;",
     "table x (k string) from files (path = 'p', format = 'json') key k;"),
    ("table x (k string) from files (path = 'p', format = 'jsn') key k;",
     "table x (k string) from files (path = 'p', format = 'json') key k;"),
    ("table x (k string) from files (paht = 'p', format = 'json') key k;",
     "table x (k string) from files (path = 'p', format = 'json') key k;"),
    ("table x (k string) from memory () key k, k;", "table x (k string) from memory () key k;"),
    ("table x (k strng) from memory () key k;", "table x (k string) from memory () key k;"),
    ("table x (k long) from memory () key k;", "table x (k bigint) from memory () key k;"),
    ("table x (k varchar) from memory () key k;", "table x (k string) from memory () key k;"),
    ("table x (value int) from rate (rows_per_second = 1) key value;",
     "table x (value bigint) from rate (rows_per_second = 1) key value;"),
    ("table x (k string) from memory () key k materialize versioned (retention = '7 days');",
     "table x (k string) from memory () key k materialize versioned (retention = 7 days);"),
    ("table x (k string) from memory () key k materialize versoned (retention = 7 days);",
     "table x (k string) from memory () key k materialize versioned (retention = 7 days);"),
    ("sink orders to noop;", "sink orders to noop ();"),
    ("table x = filter customers where name is None;", "table x = filter customers where name is null;"),
    ("table x = filter customers where name is not unknown;", "table x = filter customers where name is not null;"),
    ("stream x = map orders select transform(tags, lambda t: upper(t)) as p;",
     "stream x = map orders select transform(tags, t -> upper(t)) as p;"),
    ("stream x = map orders select transform(tags, t => upper(t)) as p;",
     "stream x = map orders select transform(tags, t -> upper(t)) as p;"),
    ("stream x = map orders select date_trunc(Day, at) as p;",
     "stream x = map orders select date_trunc('day', at) as p;"),
    ("stream x = map orders select mid(customer, 1, 2) as p;",
     "stream x = map orders select substring(customer, 1, 2) as p;"),
    ("stream x = map orders select round(price, 2 as p;", "stream x = map orders select round(price, 2) as p;"),
    ("table x = aggregate orders group by customer select list(price) as p;",
     "table x = aggregate orders group by customer select collect_list(price) as p;"),
    ("stream x = map orders select at + '5 minutes' as p;", "stream x = map orders select at + 5 minutes as p;"),
    ("stream x = map orders select price price;", "stream x = map orders select price;"),
    ("stream x = join orders with with customers on customer select name;",
     "stream x = join orders with customers on customer select name;"),
    ("stream: x = filter orders where price > 1;", "stream x = filter orders where price > 1;"),
    ("sink orders to files (path = 'p', format = 'json', partition_by = customer);",
     "sink orders to files (path = 'p', format = 'json', partition_by = (customer));"),
    ("sink orders to files (path = 'p', format = 'json', partition_by = ('customer'));",
     "sink orders to files (path = 'p', format = 'json', partition_by = (customer));"),
    ("stream x = filter orders where price > 1; sink x to consol ();",
     "stream x = filter orders where price > 1; sink x to console ();"),
]  # fmt: skip

UNSURE = [
    # two columns, or another name for the first
    "stream x = map orders select quantity price;",
    # a clause is missing, and what follows is not a name
    "table x = map customers materialize;",
    "table x = aggregate orders group by customer materialize as y;",
    "stream x = filter orders where price > 1 grace 5 minutes;",
    # names that are as near to one as to the other, or that are different things
    "stream x = map orders select quantity as q1, price as q2; stream y = map x select q3;",
    "stream x = map orders select quantity as ip; stream y = map x select ix;",
    # words of other systems, similar to words of the language
    "stream x = filter orders where customer ilike 'a%';",
    "stream x = filter orders where ilike(customer, 'a%');",
    "stream x = filter orders where customer rlike 'a%';",
    "stream x = map orders select to_unix_timestamp(at) as p;",
    "stream x = map orders select sha1(customer) as p;",
    "stream x = map orders select sha256(customer) as p;",
    "stream x = map orders select timestamp_micros(quantity) as p;",
    "stream x = map orders select countif(price > 1) as p;",
    "stream x = map orders select dayofyear(at) as p;",
    "stream x = map orders select at + 5 us as p;",
    "stream x = map orders select at + 5 microseconds as p;",
    "stream x = map orders select at + 5 months as p;",
    "stream x = distinct orders within 5 months;",
    "table x (k uint) from memory () key k;",
    "table x (k char) from memory () key k;",
    # values that only the user knows
    "table x (k string) from files (format = 'json') key k;",
    "table x (k string) from files (path = 'p') key k;",
    "table x (k string) from kafka (bootstrap_servers = 'b:1', format = 'json') key k;",
    "table x (k string) from delta () key k;",
    "table x (k string) from memory () key k materialize versioned;",
    "table x (value bigint) from rate (rows_per_second = 0) key value;",
    "table x (k string) from memory ();",
    "table x = aggregate orders group by customer select sum(quantity);",
    "table x = aggregate orders group by customer select price;",
    "stream x = rekey orders by quantity + 1;",
    "stream x (at string) from memory () timestamp at;",
    "stream x = join orders with customers on quantity select name;",
    "table x (k string) from files (path = 'p', format = 'parquet', time_zone = 'Europe/Berlin') key k;",
    'stream x = filter orders where customer = "a";',
    "sink orders to files (path = 'p', format = 'json', append = yes);",
    "sink orders to files (path = 'a', path = 'b', format = 'json');",
    "stream x = filter orders where customer = f'{id}';",
    "table x = filter customers where name is nan;",
    "stream x = filter orders where customer in tags;",
    "stream x = map orders select quantity // 10 as p;",
    "stream x = map orders select quantity if quantity > 1 else 0 as p;",
    "table x = aggregate orders group by customer select bool_xor(price > 1) as p;",
    "stream x = filter {{ ref('orders') }} where price > 1;",
]


def errors(document: Document) -> list[str]:
    return [f.message for f in document.known.findings if CODES[f.code].severity == "error"]


@pytest.mark.parametrize(("written", "fixed"), FIXED, ids=[written for written, _ in FIXED])
def test_a_fix_is_what_was_meant(written: str, fixed: str) -> None:
    document = Document("file:///t.vdsl", f"{HEAD}{written}{TAIL}")
    found = offers(document, Span(len(HEAD), len(HEAD) + len(written)))
    [fix] = [offer.fix for offer in found if offer.finding.code != "VSC123"]
    after = document.changed([(fix.span, fix.new)])
    assert after.text == f"{HEAD}{fixed}{TAIL}"
    assert errors(after) == []


@pytest.mark.parametrize("written", UNSURE)
def test_no_fix_is_offered_where_something_else_can_be_meant(written: str) -> None:
    document = Document("file:///t.vdsl", f"{HEAD}{written}{TAIL}")
    assert errors(document)
    found = offers(document, Span(len(HEAD), len(HEAD) + len(written)))
    assert [offer.title for offer in found if offer.finding.code != "VSC123"] == []
