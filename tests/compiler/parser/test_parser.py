"""Text to syntax tree: what each form of the language becomes."""

from __future__ import annotations

from decimal import Decimal

import pytest

from vsc.compiler import syntax
from vsc.compiler.parser import MAX_CHARACTERS, parse, parse_expression
from vsc.compiler.source import Span

SOURCE = "stream s (a string) from memory () key a;"


def shown(expression: object) -> str:
    """An expression with all its parentheses."""
    match expression:
        case syntax.Literal(value):
            return repr(value)
        case syntax.Duration(milliseconds):
            return f"{milliseconds}ms"
        case syntax.Variable(name):
            return f"${name}"
        case syntax.ColumnRef(parts):
            return ".".join(part.text for part in parts)
        case syntax.FieldOf(base, name):
            return f"({shown(base)}).{name.text}"
        case syntax.Element(base, index):
            return f"{shown(base)}[{shown(index)}]"
        case syntax.FunctionCall(name, args):
            names = [f" as {n.text}" if n is not None else "" for n in expression.names] or [""] * len(args)
            inside = "*" if expression.star else ", ".join(shown(a) + n for a, n in zip(args, names, strict=True))
            return f"{name.text}({'distinct ' if expression.distinct else ''}{inside})"
        case syntax.Unary(op, arg):
            return f"({op} {shown(arg)})"
        case syntax.Comparison(op, left, right):
            return f"({shown(left)} {op} {shown(right)})"
        case syntax.Chain(first, rest):
            text = shown(first)
            for link in rest:
                text = f"({text} {link.op} {shown(link.operand)})"
            return text
        case syntax.IsNull(arg, negated):
            return f"({shown(arg)} is {'not ' if negated else ''}null)"
        case syntax.In(arg, options, negated):
            return f"({shown(arg)} {'not ' if negated else ''}in [{', '.join(map(shown, options))}])"
        case syntax.Between(arg, low, high, negated):
            return f"({shown(arg)} {'not ' if negated else ''}between {shown(low)} and {shown(high)})"
        case syntax.Like(arg, pattern, negated):
            return f"({shown(arg)} {'not ' if negated else ''}like {shown(pattern)})"
        case syntax.Case(operand, branches, otherwise):
            whens = "".join(f" when {shown(b.condition)} then {shown(b.value)}" for b in branches)
            head = "" if operand is None else f" {shown(operand)}"
            return f"case{head}{whens}{'' if otherwise is None else f' else {shown(otherwise)}'} end"
        case syntax.CastTo(arg, written, safe):
            return f"{'try_cast' if safe else 'cast'}({shown(arg)} as {written.type})"
    raise AssertionError(expression)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a or b and not c = d + e * - f", "(a or (b and (not (c = (d + (e * (- f)))))))"),
        ("a - b - c || d", "(((a - b) - c) || d)"),
        ("a / b % c * d", "(((a / b) % c) * d)"),
        ("not a is null", "(not (a is null))"),
        ("not not a", "(not (not a))"),
        ("a != b", "(a <> b)"),
        ("a between b + 1 and c and d", "((a between (b + 1) and c) and d)"),
        ("a not between 1 and 2 or b not in (1, 2,) and c not like 'x%'",
         "((a not between 1 and 2) or ((b not in [1, 2]) and (c not like 'x%')))"),
        ("a is not null", "(a is not null)"),
        ("(a + b) * c", "((a + b) * c)"),
        ("(a = b) = c", "((a = b) = c)"),
        ("case when a then 1 end", "case when a then 1 end"),
        ("case a when 1 then 'x' when 2 then 'y' else null end",
         "case a when 1 then 'x' when 2 then 'y' else None end"),
        ("cast(a as decimal(12, 2))", "cast(a as decimal(12,2))"),
        ("try_cast(a as map<string, array<struct<x: int, `y z`: date>>>)",
         "try_cast(a as map<string,array<struct<x:int,`y z`:date>>>)"),
        ("try_cast(a as int)", "try_cast(a as int)"),
        ("struct(a + 1 as int, b, struct(c as `d e`,) as key,)", "struct((a + 1) as int, b, struct(c as d e) as key)"),
        ("a.b.c", "a.b.c"),
        ("(a).b", "(a).b"),
        ("f(a).b[1]['k']", "(f(a)).b[1]['k']"),
        ("count(*) + count(distinct a) + count(distinct) + now()",
         "(((count(*) + count(distinct a)) + count(distinct)) + now())"),
        ("count(distinct (a))", "count(distinct a)"),
        ("count(distinct.a)", "count(distinct.a)"),
        ("paid_at + 1 hour 30 minutes", "(paid_at + 5400000ms)"),
        ("a--b\n+ c -- d", "(a + c)"),
        ("key + timestamp + window + day + first(last) + from + stream",
         "((((((key + timestamp) + window) + day) + first(last)) + from) + stream)"),
        ("`order-id` + `a``b`", "(order-id + a`b)"),
        ("asusd", "asusd"),
        ("trueish", "trueish"),
    ],
)  # fmt: skip
def test_an_expression(text: str, tree: str) -> None:
    parsed = parse_expression(text)
    assert parsed.findings == ()
    assert shown(parsed.expression) == tree


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("1.50", Decimal("1.50")),
        ("1e6", 1e6),
        ("1.5E-3", 0.0015),
        ("'it''s'", "it's"),
        (r"'a\n'", r"a\n"),
        ("'two\nlines'", "two\nlines"),
        ("''", ""),
        ("true", True),
        ("null", None),
    ],
)
def test_a_literal(text: str, value: object) -> None:
    expression = parse_expression(text).expression
    assert isinstance(expression, syntax.Literal)
    assert (expression.value, type(expression.value)) == (value, type(value))
    assert expression.span == Span(0, len(text))


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("500 ms", 500), ("1 millisecond", 1), ("2 milliseconds", 2), ("3 s", 3_000), ("1 second", 1_000),
        ("2 seconds", 2_000), ("5 m", 300_000), ("1 minute", 60_000), ("2 minutes", 120_000), ("1 h", 3_600_000),
        ("1 hour 30 minutes", 5_400_000), ("2 hours", 7_200_000), ("7 d", 604_800_000), ("1 day", 86_400_000),
        ("7 days", 604_800_000), ("1 -- one\n day", 86_400_000), ("0 ms", 0),
    ],
)  # fmt: skip
def test_a_duration(text: str, milliseconds: int) -> None:
    expression = parse_expression(text).expression
    assert isinstance(expression, syntax.Duration)
    assert expression.milliseconds == milliseconds
    assert expression.span == Span(0, len(text))


def test_variables_are_resolved_where_they_mean_something_and_kept_in_connector_options() -> None:
    text = """
        table t (a string) from kafka (topic = '${topic}', bootstrap_servers = ${brokers}) key a
        materialize versioned (retention = ${keep});
        stream s = join x with t grace ${wait} select a || 'in ${word} ''${word}''' as b, ${limit} as c, ${text} as d;
    """
    variables = {"topic": "x", "brokers": "y", "keep": "-7 days", "wait": "1 hour 30 minutes", "word": "it's",
                 "limit": "-1.5", "text": "a b"}  # fmt: skip
    parsed = parse(text, variables)
    assert parsed.findings == ()
    table, join = parsed.file.statements
    assert isinstance(table, syntax.SourceDecl) and isinstance(join, syntax.DerivedDecl)
    topic, brokers = (option.value for option in table.connector.options)
    assert isinstance(topic, syntax.Literal) and topic.value == "${topic}"
    assert isinstance(brokers, syntax.Variable) and brokers.name == "brokers"
    assert table.materialize is not None
    keep = table.materialize.options[0].value
    assert isinstance(keep, syntax.Duration) and keep.milliseconds == -604_800_000
    operation = join.operation
    assert isinstance(operation, syntax.Join) and operation.grace is not None
    assert isinstance(operation.grace.duration, syntax.Duration) and operation.grace.duration.milliseconds == 5_400_000
    written = [shown(item.expr) for item in operation.items if isinstance(item, syntax.SelectItem)]
    assert written == ["(a || \"in it's 'it's'\")", "Decimal('-1.5')", "'a b'"]


@pytest.mark.parametrize("text", ["let x = ${p};", "table w = aggregate s group by k window tumbling (size = ${p});"])
@pytest.mark.parametrize(("value", "weeks", "months"), [("2 weeks", 2, 0), ("1  year", 0, 12), ("1 month ", 0, 1)])
def test_a_variable_may_be_a_length_by_the_calendar(text: str, value: str, weeks: int, months: int) -> None:
    text = text.replace(");", ") select count(*) as n;")
    (statement,) = parse(text, {"p": value}).file.statements
    if isinstance(statement, syntax.ConstantDecl):
        found: object = statement.value
    else:
        assert isinstance(statement, syntax.DerivedDecl) and isinstance(statement.operation, syntax.Aggregate)
        assert statement.operation.window is not None
        found = statement.operation.window.options[0].value
    start = text.index("$")
    assert found == syntax.CalendarLength(weeks, months, Span(start, start + 4))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("key a, b", ["a", "b"]),
        ("key a, b,", ["a", "b"]),
        ("key a, timestamp", ["a", "timestamp"]),
        ("key a, timestamp timestamp timestamp", ["a", "timestamp"]),
        ("key a, timestamp b", ["a"]),
        ("key key key2", None),
        ("key from, key", ["from", "key"]),
        ("key a, materialize versioned (retention = 1 day)", ["a"]),
        ("timestamp timestamp key timestamp", ["timestamp"]),
    ],
)
def test_a_word_behind_the_comma_of_a_list_is_what_lets_the_statement_go_on(text: str, names: list[str] | None) -> None:
    parsed = parse(f"table s (a string) from memory () {text};")
    if names is None:
        assert parsed.findings
        return
    assert parsed.findings == ()
    (statement,) = parsed.file.statements
    assert isinstance(statement, syntax.SourceDecl)
    assert [name.text for name in statement.key] == names


def test_source_clauses_come_in_any_order() -> None:
    clauses = [
        "from memory ()",
        "key a",
        "timestamp b + 1 hour",
        "delete when c",
        "materialize as x versioned (retention = 1 d,)",
    ]
    trees = set()
    for shift in range(len(clauses)):
        turned = clauses[shift:] + clauses[:shift]
        parsed = parse(f"table s (a string, b timestamp, c boolean,) {' '.join(turned)};")
        assert parsed.findings == ()
        (statement,) = parsed.file.statements
        assert isinstance(statement, syntax.SourceDecl) and statement.materialize is not None
        assert statement.materialize.store is not None and statement.timestamp and statement.delete_when
        trees.add((statement.connector.kind.text, statement.key[0].text, shown(statement.timestamp),
                   shown(statement.delete_when), statement.materialize.store.text))  # fmt: skip
    assert trees == {("memory", "a", "(b + 3600000ms)", "c", "x")}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("filter a where b materialize as c", syntax.Filter),
        ("map a as b select *, b.* except (c, d,), e as f, g,", syntax.Map),
        ("explode a by b as c", syntax.Explode),
        ("rekey a by b as c, d,", syntax.Rekey),
        ("merge a, b, c", syntax.Merge),
        ("to_table a delete when b materialize unversioned", syntax.ToTable),
        ("to_stream a", syntax.ToStream),
        ("join a as x with b as y on c, d as e, grace 1 hour select *", syntax.Join),
        ("left join a with b select * materialize as s versioned (retention = 1 day, grace = - 1 ms)", syntax.Join),
        ("outer join a with b select *", syntax.Join),
        ("aggregate a group by b, window session (gap = 1 h) emit final select count(*) as n", syntax.Aggregate),
        ("suppress a until window closes (max_records = 10)", syntax.Suppress),
        ("suppress a until time limit 5 seconds", syntax.Suppress),
        ("materialize a as b versioned (retention = 1 day)", syntax.Materialize),
        ("materialize materialize", syntax.Materialize),
    ],
)
def test_an_operation(text: str, kind: type) -> None:
    parsed = parse(f"table t = {text};")
    assert parsed.findings == ()
    (statement,) = parsed.file.statements
    assert isinstance(statement, syntax.DerivedDecl) and isinstance(statement.operation, kind)
    assert statement.operation.span == Span(10, 10 + len(text))


def test_the_parts_of_a_join() -> None:
    parsed = parse("stream t = left join a as x with b on c, d as e grace 1 hour select x.*, f as g materialize as s;")
    (statement,) = parsed.file.statements
    assert isinstance(statement, syntax.DerivedDecl) and isinstance(statement.operation, syntax.Join)
    join = statement.operation
    assert (join.mode, join.left.name.text, join.left.alias and join.left.alias.text) == ("left", "a", "x")
    assert (join.right.name.text, join.right.alias) == ("b", None)
    assert [(shown(key.expr), key.alias and key.alias.text) for key in join.on] == [("c", None), ("d", "e")]
    star, item = join.items
    assert isinstance(star, syntax.StarItem) and star.qualifier and star.qualifier.text == "x"
    assert isinstance(item, syntax.SelectItem) and item.alias and item.alias.text == "g"
    assert join.materialize and join.materialize.store and join.materialize.store.text == "s"


def test_an_aggregate_with_a_window() -> None:
    parsed = parse(
        "table t = aggregate a group by b as c window hopping (size = 1 h, advance = 5 m) emit changes select d;"
    )
    (statement,) = parsed.file.statements
    assert isinstance(statement, syntax.DerivedDecl) and isinstance(statement.operation, syntax.Aggregate)
    window = statement.operation.window
    assert window is not None and (window.kind.text, window.emit) == ("hopping", "changes")
    assert [option.name.text for option in window.options] == ["size", "advance"]


def test_a_broken_statement_is_left_out_and_its_name_is_known() -> None:
    parsed = parse(f"stream x = filter ;\n{SOURCE}\nglobal table `y z` = ;\nsink = 1;")
    assert [type(statement) for statement in parsed.file.statements] == [syntax.SourceDecl]
    assert [name.text for name in parsed.file.broken] == ["x", "y z"]
    assert [finding.code for finding in parsed.findings] == ["VSC005"] * 3


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000, "(" * 5000 + "a" + ")" * 5000, "not " * 5000 + "a", "- " * 5000 + "a", "a" + "[a" * 5000,
        "f(" * 5000, "case when " * 5000, "a + (" * 5000, "a and (" * 5000, "a" + ".a" * 5000,
        "cast(a as " + "array<" * 5000, "cast(a as " + "array<" * 5000 + "int" + ">" * 5000 + ")",
    ],
)  # fmt: skip
def test_nesting_without_end_is_a_finding(text: str) -> None:
    findings = parse_expression(text).findings
    assert len(findings) == 1 and findings[0].code == "VSC015"


@pytest.mark.quick(2)
@pytest.mark.parametrize("op", ["or", "+", "and", "-", "||", "*", "/", "%"])
def test_a_chain_is_as_deep_as_its_operands_however_long(op: str) -> None:
    parsed = parse_expression(f"a{f' {op} a' * 5000}")
    assert parsed.findings == ()
    assert isinstance(parsed.expression, syntax.Chain)
    assert [link.op for link in parsed.expression.rest] == [op] * 5000


def test_parentheses_on_the_left_say_nothing_new_and_others_do() -> None:
    assert shown(parse_expression("((a - b) + c) - d").expression) == "(((a - b) + c) - d)"
    assert shown(parse_expression("a - (b - c)").expression) == "(a - (b - c))"
    left = parse_expression("(a or b) or c").expression
    assert isinstance(left, syntax.Chain) and len(left.rest) == 2


def test_the_deepest_type_is_one_that_a_plan_can_hold() -> None:
    from vsc.plan.types import parse_type

    parsed = parse_expression("cast(a as " + "array<" * 31 + "int" + ">" * 31 + ")")
    assert isinstance(parsed.expression, syntax.CastTo)
    assert parse_type(str(parsed.expression.type.type)) == parsed.expression.type.type


def test_a_text_beyond_all_measure_is_a_finding() -> None:
    assert [finding.code for finding in parse("-" * (MAX_CHARACTERS + 1)).findings] == ["VSC015"]


def test_a_large_file_is_read() -> None:
    count = 2_000
    parsed = parse("".join(f"stream s{n} (a string) from memory () key a;\n" for n in range(count)))
    assert parsed.findings == () and len(parsed.file.statements) == count


def test_line_ends_and_a_byte_order_mark_do_not_matter() -> None:
    parsed = parse("\ufeff" + SOURCE.replace(" ", "\r\n"))
    assert parsed.findings == () and len(parsed.file.statements) == 1
