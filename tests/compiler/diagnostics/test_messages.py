"""What findings say beside their place: the cause in labels, one thing to do, what near name was meant."""

from __future__ import annotations

import pytest

from vsc.compiler import check_topology, compile_topology
from vsc.compiler.diagnostics.model import Diagnostic
from vsc.plan import Source

SOURCES = """\
stream s (k string, n bigint) from memory () key k;
table v (k string, n bigint) from memory () key k materialize versioned (retention = 1 hour);
table u (k string, n bigint) from memory () key k;
"""


AS_OF = "leave it out: a join with a versioned table finds the row that was valid at the record's own time"


def one(text: str, code: str) -> Diagnostic:
    (found,) = [d for d in check_topology(SOURCES + text, path="t.vdsl") if d.code == code]
    return found


def labels(diagnostic: Diagnostic) -> list[tuple[int, str]]:
    return [(related.line, related.message) for related in diagnostic.related]


def test_grace_on_an_unversioned_table_shows_who_decides_that_and_the_way_to_it() -> None:
    tables = "table f = filter u where n > 0;\ntable m = map f select n;\n"
    text = tables + "stream j = join s with m grace 1 s select m.n as o;"
    found = one(text, "VSC303")
    assert found.message == "`grace` needs a versioned table, but `m` is unversioned"
    assert labels(found) == [
        (3, "`u` is unversioned: it is a source table without a `materialize` clause"),
        (5, "`m` has the status of `f`"),
        (4, "`f` has the status of `u`"),
    ]
    assert found.help == "materialize `u` versioned, with a `retention` of at least this grace, or remove `grace`"


def test_grace_longer_than_the_history_shows_the_retention_and_the_way_to_it() -> None:
    found = one("table f = filter v where n > 0;\nstream j = join s with f grace 90 m select f.n as o;", "VSC304")
    assert found.message == "a `grace` of 1 hour 30 minutes is longer than the history that `f` keeps, 1 hour"
    assert labels(found) == [(2, "`v` keeps its history for no longer than this"), (4, "`f` has the status of `v`")]
    assert found.help == "lower the grace to 1 hour or less, or raise the retention of `v` to 1 hour 30 minutes or more"


def test_suppress_of_an_inherited_history_shows_the_clause() -> None:
    found = one("table f = filter v where n > 0;\ntable x = suppress f until time limit 1 s;", "VSC301")
    assert labels(found) == [(2, "`v` is versioned: it is materialized versioned"), (4, "`f` has the status of `v`")]


def test_two_streams_are_shown_how_to_say_how_far_apart_records_may_be() -> None:
    found = one("stream s2 (k string) from memory () key k;\nstream j = left join s with s2 select 1 as x;", "VSC108")
    assert found.message == "a join of two streams needs `within`: `s` and `s2`"
    assert found.help == ("say how far apart in time records may be that meet: `left join s with s2 within 1 hour ...`")


@pytest.mark.parametrize(
    ("other", "message", "form"),
    [
        ("k string, m int, o int", "`b` lacks `n`; `s` lacks `m`, `o`, which `b` has",
         "bring it into the same form: `map b select * except (m, o), cast(null as bigint) as n`"),
        ("k string, n int", "`n` is an int in `b` and a bigint in `s`",
         "bring it into the same form: `map b select * except (n), cast(n as bigint) as n`"),
        ("k string, N bigint", "`b` lacks `n`; `s` lacks `N`, which `b` has",
         "bring it into the same form: `map b select * except (N), cast(null as bigint) as n`"),
        ("k int, n bigint", "`b` has the key (k int), and `s` has the key (k string)",
         "give it the same key: `rekey b by cast(k as string) as k`"),
    ],
)  # fmt: skip
def test_a_merge_says_which_column_differs_and_what_to_write(other: str, message: str, form: str) -> None:
    source = f"stream b ({other}) from memory () key k;\n"
    found = one(source + "stream x = merge s, b;", "VSC218")
    assert (found.message, found.help) == (message, form)
    fixed = f"stream c = {form.split('`')[1]};\nstream x = merge s, c;"
    assert [d.code for d in check_topology(SOURCES + source + fixed) if d.severity == "error"] == []


def test_a_merge_says_that_a_key_is_missing() -> None:
    found = one("stream b (k string, n bigint) from memory ();\nstream x = merge s, b;", "VSC218")
    assert found.message == "`b` has no key, and `s` has the key (k string)"
    assert found.help == "give it the same key: `rekey b by k`"
    found = one("stream b (k string, n bigint) from memory ();\nstream x = merge b, s;", "VSC218")
    assert found.message == "`s` has the key (k string), and `b` has no key"


def test_a_circle_is_shown_with_the_way_round() -> None:
    text = "stream a = filter c where true;\nstream b = filter a where true;\nstream c = filter b where true;"
    found = one(text, "VSC105")
    assert found.message == "these nodes read one another: `a` -> `b` -> `c` -> `a`"
    assert (found.line, found.column) == (4, 19)
    assert labels(found) == [(5, "`b` reads `a`"), (6, "`c` reads `b`")]


def test_near_names_are_suggested() -> None:
    assert one("stream a = filter S where true;", "VSC103").help == "write `s`"
    assert one("stream a = map s select * except (nn);", "VSC209").help == "write `n`"
    assert one("stream a (k string) from memori () key k;", "VSC501").help == "write `memory`"
    assert one("sink s to files (paht = 'x', path = 'x', format = 'json');", "VSC503").help == "write `path`"
    assert one("sink s to files (path = 'x', format = 'jso');", "VSC505").help == "write 'json'"


def test_columns_of_one_name_are_told_apart() -> None:
    found = one("stream j = join s with u select s.n, u.n;", "VSC203")
    assert found.help == "write `u.n as u_n`"
    starred = one("stream j = join s with u select *;", "VSC203")
    assert starred.help == "write `u.n as u_n`, or leave it out: `u.* except (n)`"


def test_one_mistake_is_one_finding() -> None:
    text = (
        "stream a = filter nobody where zzz;\nstream b = map a select yyy as x;\nstream c = join b with v select xxx;"
    )
    assert [d.code for d in check_topology(SOURCES + text)] == ["VSC103"]


def test_several_mistakes_are_told_in_the_order_of_their_places() -> None:
    text = (
        "stream a = filter s where m > 0;\n"
        "stream b = map s select k, n + 1;\n"
        "stream c = join s with u grace 1 second select u.n as o;\n"
        "sink c to consol ();\n"
    )
    found = [d for d in check_topology(SOURCES + text) if d.severity == "error"]
    assert [(d.line, d.code) for d in found] == [(4, "VSC110"), (5, "VSC207"), (6, "VSC303"), (7, "VSC501")]


def test_a_type_has_its_article() -> None:
    found = one("stream f = filter s where n;", "VSC214")
    assert found.message == "`where` takes a boolean, but this is a bigint"
    found = one("stream f = filter s where cast(n as int);", "VSC214")
    assert found.message == "`where` takes a boolean, but this is an int"
    found = one("stream f = map s select cast(array(1) as int) as x;", "VSC223")
    assert found.message == "`cast` cannot turn a value of type array<int> into an int"


def test_slips_of_who_knows_sql_are_told_the_right_form() -> None:
    filter = "filter in a separate statement, as in `stream NAME = filter INPUT where ...;`"
    assert one("stream a = map s select n where n > 1;", "VSC005").help == filter
    assert one("table a = aggregate s group by k where n > 1 select sum(n) as m;", "VSC005").help == filter
    assert one("sink s to noop;", "VSC005").help == "write `noop ()`"
    assert one("stream j = left outer join s with u select s.n;", "VSC005").help == "write `left join`"
    assert one("stream f as filter s where n > 1;", "VSC005").help == "write `=`"


@pytest.mark.parametrize(
    ("text", "where", "help"),
    [
        ("stream j = join s with v on k as of at select v.n as o;", "at", AS_OF),
        ("stream j = join s with v for system_time as of at on k select v.n as o;", "for", AS_OF),
        ("stream j = left asof join s with v select v.n as o;", "asof",
         "write `join`: with a versioned table, a record finds the row of its own time"),
        ("stream f = map s select n from s;", "from",
         "write the input before `select`, as in `map INPUT select ...`"),
        ("table m = materialize u versioned (retention: 1 hour);", ":", "write `=`"),
        ("stream f (k string) from files ('in', format = 'json');", "'in'", "write `path = 'in'`"),
    ],
)  # fmt: skip
def test_forms_of_other_languages(text: str, where: str, help: str) -> None:
    found = one(text, "VSC005")
    assert (text[found.column - 1 : found.end_column - 1], found.help) == (where, help)


PAYMENTS = "stream p (id string, a string, n double, ok boolean, at timestamp) from memory () key id timestamp at;\n"


def errors(text: str) -> list[tuple[str, str | None]]:
    return [(d.code, d.help) for d in check_topology(text, path="t.vdsl") if d.severity == "error"]


@pytest.mark.parametrize(
    ("wrong", "help", "right"),
    [
        ("table r = aggregate p group by a select sum(n) as total having sum(n) > 10 and a <> 'x';",
         "filter the table in a separate statement: `{}`",
         "table r_having = filter r where total > 10 and a <> 'x';"),
        ("table r = aggregate p group by a HAVING total > 10 select sum(n) as total;",
         "filter the table in a separate statement: `{}`", "table r_having = filter r where total > 10;"),
        ("table r = aggregate p group by a select sum(n) as total having count(*) > 1;",
         "select `count(*) as value`, and filter the table in a separate statement: `{}`",
         "table r_having = filter r where value > 1;"),
        ("stream x = map p select sum(n) over (partition by a) as sums;",
         "aggregate and join: `{}`, then `join p with sums_table on a select ...`",
         "table sums_table = aggregate p group by a select sum(n) as sums;"),
        ("stream x = map p select sum(n) over (partition by a) as sums;",
         "aggregate and join: `table sums_table = aggregate p group by a select sum(n) as sums;`, then `{}...`",
         "join p with sums_table on a select "),
        ("table x = aggregate p group by a select count(*) filter (where ok) as c;",
         "write `{}`", "count(case when ok then 1 end)"),
        ("table x = aggregate p group by a select sum(n + 1) filter (where ok and (n > 1)) as c;",
         "write `{}`", "sum(case when ok and (n > 1) then n + 1 end)"),
        ("table x = aggregate p group by a select first(n) filter (where ok) as c;",
         "aggregate what is left of the input: `{}`", "filter p where ok"),
        ("stream q (id string, b string) from memory () key coalesce(id, b);",
         "remove it, and compute the key after the source: `{}`",
         "stream q_by = rekey q by coalesce(id, b) as k;"),
        ("table q (id string, b string) from memory () key id, lower(b) delete when b = '';",
         "declare a stream `rows` without a key, then `{}` and `table NAME = to_table keyed;`",
         "stream keyed = rekey rows by lower(b) as k;"),
    ],
)  # fmt: skip
def test_clauses_of_sql_are_answered_with_text_that_compiles(wrong: str, help: str, right: str) -> None:
    assert errors(PAYMENTS + wrong) == [("VSC010", help.format(right))]
    around = {
        "table": "table r = aggregate p group by a select sum(n) as total, count(*) as value;\n{}",
        "count": "table y = aggregate p group by a select {} as c;",
        "sum(c": "table y = aggregate p group by a select {} as c;",
        "filte": "stream y = {};",
        "join ": "table sums_table = aggregate p group by a select sum(n) as sums;\nstream y = {} sums;",
        "strea": "stream q (id string, b string) from memory ();\nstream rows (b string) from memory ();\n{}",
    }
    assert errors(PAYMENTS + around[right[:5]].format(right)) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stream x = map p select id order by n limit 10;", "there is no `order by`"),
        ("stream x = map p select id limit 10;", "there is no `limit`"),
        ("stream x = map p select distinct n;", "there is no `select distinct`"),
        ("stream x = map p select n, row_number() over (partition by a order by at) as r;",
         "there are no window functions"),
        ("table t = aggregate payments over (5 minutes) group by currency select currency, count(*) as n;",
         "there is no `over`"),
    ],
)  # fmt: skip
def test_other_clauses_of_sql(text: str, message: str) -> None:
    assert [(d.code, d.message) for d in check_topology(PAYMENTS + text) if d.severity == "error"] == [
        ("VSC010", message)
    ]


def test_create_is_left_out_and_what_it_would_make_is_not_missed() -> None:
    text = "create stream f (k string) from memory ();\nstream g = filter f where k = '';"
    errors = [d for d in check_topology(text, path="t.vdsl") if d.severity == "error"]
    assert [(d.code, d.help) for d in errors] == [("VSC010", "leave out `create`")]


@pytest.mark.parametrize(
    ("call", "help"),
    [
        ("nvl(n, 0)", "write `coalesce(value, ...)`"),
        ("NAMED_STRUCT('a', n)", "write `struct(x as a, y as b)`"),
        ("window(k, '1 hour')", "write `aggregate ... group by ... window tumbling (size = 1 hour)`"),
        ("now()", "use `event_time()`: a result does not depend on when it is computed"),
        ("uper(k)", "did you mean `upper`?"),
        ("frobnicate(k)", "`vsc explain VSC112` lists the functions; write others in Python (docs/own-functions.md)"),
    ],
)
def test_a_function_of_spark_is_shown_what_means_the_same(call: str, help: str) -> None:
    assert one(f"stream f = map s select {call} as o;", "VSC112").help == help


def test_what_a_star_has_already_is_left_out() -> None:
    assert one("stream f = map s select *, n;", "VSC203").help == "remove it: `*` already includes it"
    assert one("stream f = map s select n, n;", "VSC203").help == "write `n as n_2`"


def test_a_column_that_is_called_much_as_an_input() -> None:
    text = "table us (k string, u bigint, m bigint) from memory () key k;\nstream j = join s with us select u.m as o;"
    found = one(text, "VSC114")
    assert (found.message, found.help) == ("`u` is a column of type bigint, and has no fields", "did you mean `us.m`?")
    assert one("stream f = map s select n.m as o;", "VSC114").help == "only a struct has fields"


def test_a_versioned_windowed_table_shows_the_window_and_the_way_to_it() -> None:
    found = one(
        "table w = aggregate s group by k window tumbling (size = 1 s) select count(*) as c;\n"
        "table f = filter w where c > 1;\ntable m = materialize f versioned (retention = 1 hour);",
        "VSC306",
    )
    assert labels(found) == [
        (4, "`w` is windowed here"), (6, "`m` has the windows of `f`"), (5, "`f` has the windows of `w`"),
    ]  # fmt: skip


def test_why_an_aggregate_has_no_event_time() -> None:
    outside = one("table a = aggregate s group by k select event_time() as at;", "VSC116")
    assert (outside.message, outside.help) == (
        "the rows of a group have different event times", "write `max(event_time())`",
    )  # fmt: skip
    table = one("table a = aggregate u group by n select max(event_time()) as at;", "VSC116")
    assert table.message.startswith("an aggregate over a table has the columns of its rows")
    assert table.help == "make it a column first, as in `map u select *, event_time() as at`"


UNITS = [
    ("5 mins", "did you mean `minutes`?"),
    ("1 min", "did you mean `minute`?"),
    ("5 SEC", "did you mean `seconds`?"),
    ("3 hrs", "did you mean `hours`?"),
    ("2 weeks", "write `14 days`"),
    ("5 hourss", "did you mean `hours`?"),
    ("5 fortnights", "units are `ms`, `seconds`, `minutes`, `hours` and `days`"),
    ("1.5 hours", "use a smaller unit as well, as in `1 hour 30 minutes`"),
    ("'5 minutes'", "write `5 minutes`, without quotes"),
    ("5", "write the unit as well, as in `5 minutes`"),
]


@pytest.mark.parametrize(("written", "help"), UNITS)
def test_a_duration_that_is_none_is_shown_how_to_be_one(written: str, help: str) -> None:
    assert one(f"stream j = join s with v grace {written} select v.n as o;", "VSC004").help == help


FORMS = [
    ("filter s where n > 1 select n;", "a `filter` has no `select`",
     "select in a separate statement: `stream NAME = map j select n;`"),
    ("filter s where !(n > 1);", "`!` is not an operator here", "write `not`"),
    ("map s select n::string as o;", "there is no `::`", "write `cast(n as string)`"),
    ("aggregate s group by k emit final select count(*) as o;", "`emit` needs a window",
     "write the window in front of it, as in `window tumbling (size = 1 hour) emit final`, or remove it"),
    ("aggregate s group by window tumbling (size = 1 hour) select count(*) as o;",
     "`group by` needs an expression", "write it in front, as in `group by account window ...`"),
    ("map s select case n end as o;", "a `case` has at least one `when`",
     "write `case when CONDITION then VALUE else VALUE end`"),
    ("map s select case when true then 1 as o;", "a `case` is not closed", "write `end` before `as`"),
    ("map s select cast(n, string) as o;", "the type of a cast follows `as`", "write `cast(n as string)`"),
    ("map s select try_cast(n) as o;", "`try_cast` needs a type", "write `try_cast(... as TYPE)`"),
    ("map s select upper(k as o);", "`as` inside a call belongs to `cast`, `try_cast` and `struct`, not to `upper`",
     "write `upper(...) as NAME` for a name, `cast(... as TYPE)` for a type"),
    ("map s select struct(n as decimal(9, 2)) as o;", "a field of a struct has a name, and no type of its own",
     "write `cast(... as TYPE) as NAME`"),
    ("map s select try_cast(n as int, 0) as o;", "`try_cast` takes one value and one type",
     "write `try_cast(... as TYPE)`"),
    ("filter s where event_time() > t + interval 1 day;",
     "a duration is written without `interval`", "write `1 day`"),
    ("map s select cast(n as struct<a int>) as o;", "a `:` stands between a member and its type", "write `a: int`"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "message", "help"), FORMS)
def test_a_habit_from_elsewhere_is_shown_the_right_form(form: str, message: str, help: str | None) -> None:
    (found,) = [d for d in check_topology(SOURCES + "stream j = " + form, path="t.vdsl") if d.severity == "error"]
    assert (found.line, found.message, found.help) == (4, message, help)


TIMES = [
    ("at", "if `at` is in seconds, write `timestamp cast(at as bigint) * 1000`"),
    ("at * 1000", "if `at` is in seconds, write `timestamp cast(at as bigint) * 1000`"),
    ("at + 1", "if `at + 1` is in seconds, write `timestamp cast(at + 1 as bigint) * 1000`"),
]


@pytest.mark.parametrize(("written", "help"), TIMES)
def test_an_event_time_that_is_an_int_is_shown_in_milliseconds(written: str, help: str) -> None:
    source = f"stream e (k string, at int) from memory () key k timestamp {written};"
    found = one(source, "VSC402")
    assert found.message == "event time must be a timestamp or a bigint of milliseconds, which an int cannot hold"
    assert found.help == help
    assert not check_topology(source.replace(f"timestamp {written}", help.split("`")[3]) + "sink e to noop ();")


ZONES = [
    ("Europe/Berln", "write 'Europe/Berlin'"),
    ("europe/berlin", "write 'Europe/Berlin'"),
    ("Berlin", "write 'Europe/Berlin'"),
    ("new york", "write 'America/New_York'"),
    ("+02:00", "write an IANA name, such as 'Europe/Berlin' or 'UTC'"),
]


@pytest.mark.parametrize(("zone", "help"), ZONES)
def test_an_unknown_time_zone_is_shown_the_nearest_one(zone: str, help: str) -> None:
    found = one(f"stream z (k string) from files (path = 'x', format = 'csv', time_zone = '{zone}');", "VSC511")
    assert (found.message, found.help) == (f"there is no time zone '{zone}'", help)


def test_without_a_time_zone_database_every_zone_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zoneinfo.available_timezones", set)
    text = "stream z (k timestamp) from files (path = 'x', format = 'csv', time_zone = 'Mars/Base'); sink z to noop ();"
    assert check_topology(text) == ()


def test_max_ahead_is_a_fact_of_the_plan() -> None:
    def bound(option: str, **variables: str) -> int | None:
        plan = compile_topology(f"stream s (k string) from memory ({option}); sink s to noop ();", variables=variables)
        source = plan.node("s").operation
        assert isinstance(source, Source) and source.connector.options == ()
        return source.max_ahead

    assert bound("") == 86_400_000
    assert bound("max_ahead = 1 hour 30 minutes") == 5_400_000
    assert bound("max_ahead = none") is None
    assert bound("max_ahead = ${x}", x="2 hours") == 7_200_000
    assert bound("max_ahead = ${x}", x="none") is None
    found = one("stream m (k string) from memory (max_ahead = 7);", "VSC505")
    assert found.message == "`max_ahead` is a duration, a number with its unit, or `none`"
    assert found.help == "write one, such as `max_ahead = 1 day`"


def test_of_two_equal_arguments_the_wrong_one_is_shown() -> None:
    text = "\nstream w (k string, m map<string, int>) from memory () key k;\n"
    found = one(text + "table a = aggregate w group by k select max_by(m, m) as o;", "VSC221")
    assert found.column == 1 + "table a = aggregate w group by k select max_by(m, m)".rindex("m")


@pytest.mark.parametrize(
    ("option", "written"),
    [
        ("'kafka.ssl.key.password' = 'x'", "write `'kafka.ssl.key.password' = '${password}'`"),
        ("""'kafka.sasl.jaas.config' = 'Login required password = "x";'""", 'write `password="${password}"`'),
    ],
)
def test_a_password_is_a_variable_that_a_shell_can_have(option: str, written: str) -> None:
    options = f"bootstrap_servers = 'b', topic = 't', format = 'json', {option}"
    found = one(f"stream p (k string) from kafka ({options}) key k;", "VSC505")
    assert found.help == f"{written}, and give it in the environment"


@pytest.mark.parametrize(
    ("text", "code", "help"),
    [
        ("stream x = filter o where unitprice > 1;", "VSC110", "did you mean `` `unit price` ``?"),
        ("stream x = filter o where o.unitprice > 1;", "VSC110", "did you mean `` `unit price` ``?"),
        ("stream x = map o select * except (unitprice);", "VSC209", "write `` `unit price` ``"),
        ("stream x = filter `my order` where true;", "VSC103", "write `` `my orders` ``"),
        ("stream x = merge o, `my orders`;", "VSC218",
         "bring it into the same form: "
         "`` map `my orders` select * except (`a b`), cast(null as int) as `unit price`, "
         "cast(null as int) as `end` ``"),
        ("stream x = map o select `unit price` as `k k`;", "VSC208",
         "give the new column another name, or give the stream another key: `rekey o by ...`"),
        ("table x = aggregate o group by `k k` select `unit price`;", "VSC117",
         "write `` max(`unit price`) ``, or group by `` `unit price` `` as well"),
        ("stream x = map o select endd as y;", "VSC110", "did you mean `` `end` ``?"),
        ("stream x = map o select `unit price`, `unit price`;", "VSC203", "write `` `unit price` as `unit price_2` ``"),
        ("table x = to_table `my orders`; table y = filter x where true; stream z = to_stream `my orders`;", "VSC107",
         "use `` `my orders` `` as it is: it is a stream already"),
    ],
)  # fmt: skip
def test_names_in_a_help_are_quoted_where_they_need_it(text: str, code: str, help: str) -> None:
    sources = (
        "stream o (`k k` string, `unit price` int, `end` int) from memory () key `k k`;\n"
        "stream `my orders` (`k k` string, `a b` int) from memory () key `k k`;\n"
    )
    [found] = [d for d in check_topology(sources + text, path="t.vdsl") if d.code == code]
    assert found.help == help


IN_TEXT = [(5, "the times are in this text, and expressions take them for UTC")]


@pytest.mark.parametrize(
    ("column", "time", "label", "help"),
    [
        ("n bigint", "n", [], "declare the times as `timestamp`, or remove it"),
        ("at string", "to_timestamp(at, 'dd.MM.yyyy')", IN_TEXT,
         "write `at timestamp`, and `'timestampFormat' = 'dd.MM.yyyy'` among the options"),
        ("at string", "cast(at as timestamp)", IN_TEXT, "write `at timestamp`"),
    ],
)  # fmt: skip
def test_a_time_zone_that_applies_to_no_column_is_shown_the_text_with_the_times(
    column: str, time: str, label: list[tuple[int, str]], help: str
) -> None:
    files = "files (path = 'x', format = 'csv', time_zone = 'UTC')"
    found = one(f"stream z (k string,\n{column}) from {files} timestamp {time};", "VSC321")
    assert found.message == "this `time_zone` changes nothing: `z` has no `timestamp` column"
    assert (labels(found), found.help) == (label, help)
