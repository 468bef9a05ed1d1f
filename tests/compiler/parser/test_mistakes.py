"""Mistakes that people make, by family: each file of ``mistakes`` notes the findings beside the lines.

Below a mistake, ``--: `` begins what its finding says, with its help after a semicolon. The form of an operation is
noted as ``{form:filter}``.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.compiler.notes import finding, noted
from tests.compiler.passes.test_passes import cases
from vsc.compiler import check_topology
from vsc.compiler.driver import survey_topology
from vsc.compiler.parser import mistake_rows, mistakes, parse
from vsc.compiler.parser.mistake_rows import Row
from vsc.compiler.parser.place import WrongPlace
from vsc.compiler.parser.row_holes import HOLES, SPANS
from vsc.compiler.parser.row_tests import TESTS
from vsc.compiler.parser.row_words import CLASSES
from vsc.compiler.parser.wording import form_of
from vsc.compiler.source import SourceFile

FILES = sorted((Path(__file__).parent / "mistakes").glob("*.vdsl"))
_SAID = re.compile("^--: (.*)", re.MULTILINE)
_FORM = re.compile(r"\{form:(\w+)\}")
_UNUSED = ("VSC123", "VSC313")


@pytest.mark.parametrize(
    "text", [pytest.param(text, id=f"{path.stem}: {title}") for path in FILES for title, text in cases(path)]
)
def test_a_mistake_has_one_finding_that_says_the_fact_and_the_fix(text: str) -> None:
    plain, expected = noted(_SAID.sub("", text))
    source = SourceFile("case.vdsl", plain)
    findings = [one for one in survey_topology(plain, "case.vdsl").findings if one.code not in _UNUSED]
    assert sorted(finding(source, one.code, one.span) for one in findings) == expected
    said = [_FORM.sub(lambda form: form_of(form[1]), one) for one in _SAID.findall(text)]
    assert sorted(f"{one.message}; {one.help}" for one in findings) == sorted(said)


def test_every_row_explains_a_noted_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that another one hides, or that no text reaches, explains none. So each row has an example."""
    found: set[tuple[str, int]] = set()

    def seen(family: str, place: WrongPlace) -> Row | None:
        row = mistake_rows.row_for(family, place)
        found.update([(family, row.line)] if row is not None else [])
        return row

    monkeypatch.setattr(mistakes, "row_for", seen)
    for path in FILES:
        for _, text in cases(path):
            parse(noted(_SAID.sub("", text))[0])
    families = [family for family in mistakes.MISTAKES if isinstance(family, str)]
    every = {(family, row.line) for family in families for row in mistake_rows.rows(family)}
    assert every - found == set()


def test_every_name_that_rows_can_use_is_used() -> None:
    families = [family for family in mistakes.MISTAKES if isinstance(family, str)]
    written = "\n".join(Path(mistake_rows.__file__).parent.joinpath(f"rows/{one}.txt").read_text() for one in families)
    signs = ((HOLES, r"\{%s[}+:-]"), (SPANS, r"[/%%]:%s\b"), (TESTS, r"\?%s\b"), (CLASSES, r"[@<>|]:%s\b"))
    assert [name for names, sign in signs for name in names if not re.search(sign % name, written)] == []


OPEN = """\
stream a (k string) from files (path = 'x', format = 'json);
key k;
-- nobody's comment
stream b = filter a where k = 'y';
sink b to files (path = 'z', format = 'json');
"""


@pytest.mark.parametrize(
    ("text", "line", "place"),
    [
        (OPEN, 1, "'json);"),
        (OPEN.replace("'json);", "'json'\n)").replace("'x'", "'x"), 1, "'x, format = 'json'"),
        (OPEN.replace("'json);", "'json')").replace("= 'y'", "= 'it's'"), 4, "'it's';"),
        (OPEN.replace("'json);", "'json')").replace("'z'", "'z"), 5, "'z, format = 'json');"),
        (OPEN.replace("'json);", "'json')").replace("= 'y'", "= 'y"), 4, "'y;"),
    ],
)
def test_a_string_without_its_end_is_blamed_at_its_start(text: str, line: int, place: str) -> None:
    [found] = check_topology(text.replace(")\nkey k;", ")\nkey k;"), path="t.vdsl")
    shown = text.splitlines()[found.line - 1][found.column - 1 : found.end_column - 1]
    assert (found.code, found.line, shown) == ("VSC002", line, place)


def test_a_string_of_several_lines_is_a_string() -> None:
    text = "stream a (k string) from memory () key k;\nstream b = filter a where k = '\nstream c = (\n';\n"
    assert check_topology(text + "sink b to noop ();") == ()


CONFLICT = """\
stream a (k string) from memory () key k;
<<<<<<< HEAD
stream b = filter a where k = 'x';
||||||| base
stream b = filter a where k = 'w';
=======
stream b = filter a where k = 'y';
stream c = filter b where k = 'z';
>>>>>>> other
sink b to noop ();
sink c to noop ();
"""


def test_a_merge_conflict_is_one_finding_and_its_first_version_is_read() -> None:
    assert [(d.code, d.line) for d in check_topology(CONFLICT)] == [("VSC024", 2)]
    nodes = [s.name.text for s in parse(CONFLICT).file.statements if hasattr(s, "kind")]
    assert nodes == ["a", "b"]


CASCADES = [
    # a broken declaration, and all that reads it
    ("stream x = filter s where;\nstream y = map x select k as o;\nsink y to noop ();", ["VSC005"]),
    ("view x = filter s where true;\nstream y = map x select k as o;", ["VSC010"]),
    ("stream my-x (k string) from memory ();\nstream y = map x select k as o;", ["VSC005"]),
    # a bad type does not hide the rest
    ("stream x (k strin) from memory () key k;\nstream y = filter x where z > 1;", ["VSC016", "VSC110"]),
    ("stream x (k varchar(10)) from memory () key k;\nstream y = filter x where k;", ["VSC016", "VSC214"]),
    # a missing option beside a misspelt one
    ("stream x (k string) from kafka (bootstrap_server = 'b', topic = 't', format = 'json') key k;", ["VSC503"]),
    ("sink s to files (location = 'x', format = 'json');", ["VSC503"]),
    # an unknown aggregate
    ("table x = aggregate s group by k select median(n) as m;\nstream y = to_stream x;", ["VSC112"]),
    ("table x = aggregate s group by k select totl(n) as m;", ["VSC112"]),
    # a semicolon for a comma
    ("stream x (k string; n int; m int) from memory () key k;", ["VSC022", "VSC022"]),
    ("table x = aggregate s group by k window tumbling (1 hour; grace = 1 m) select count(*) as c;", ["VSC005"]),
    # a reserved word is one finding
    ("stream x (end string, k string) from memory () key end;\nstream y = map x select end as e, end;", ["VSC017"]),
    # an unknown word of an operator
    ("stream x = filter s where k = 'a' adn n = 1;", ["VSC005"]),
]


@pytest.mark.parametrize(("text", "codes"), CASCADES)
def test_one_mistake_is_one_finding(text: str, codes: list[str]) -> None:
    source = "stream s (k string, n bigint) from memory () key k;\n"
    found = [d.code for d in check_topology(source + text) if d.severity == "error"]
    assert found == codes


EXAMPLE = """\
stream s (id string, k string, n bigint) from memory () key id;
stream big = filter s where n > 10 and k is not null;
table t (k string, v string, at timestamp) from files (path = 'x', format = 'json') key k timestamp at
  materialize versioned (retention = 7 days);
stream joined = join big with t on k grace 1 hour select n, coalesce(v, 'none') as v;
table sums = aggregate joined group by v window tumbling (size = 1 hour)
  select sum(n) as total, count(*) as rows;
sink sums to files (path = 'y', format = 'json');
"""


@pytest.mark.quick(1)
@pytest.mark.parametrize("first", range(6))
def test_while_a_statement_is_typed_its_findings_stay_inside_it(first: int) -> None:
    for statement in parse(EXAMPLE).file.statements:
        start, end = statement.span.start, statement.span.end
        for cut in range(start + 1 + first, end, 6):
            text = EXAMPLE[:cut] + EXAMPLE[end:]
            outside = [f for f in survey_topology(text, "x").findings if not start <= f.span.start <= f.span.end <= cut]
            assert outside == [], text[start:cut]


QUERIES = (
    "table x = select k, count(*), sum(n) as total from s where n > 1 group by k having count(*) > 2;",
    "table x = select max(n) from s group by k window tumbling (size = 5 minutes);",
    "stream x = select k, upper(k) from s where n > 1;",
    "stream x = select * from s where n > 1;",
    "table x = SELECT k, COUNT(*) FROM s GROUP BY k HAVING max(n) > 3 and COUNT(*) > 1;",
    "table x = select distinct k from s;",
    "stream x = select k from s order by n;",
    "stream x = select o.k, upper(o.k), 'o.k' as t from s o where o.n > 1 limit 10;",
    "table x = select o.k, count(*), max(o.n) from s as o group by o.k having max(o.n) > 3 order by o.k limit 3;",
    "table x as select v, count(*) from t group by v;",
    "select k, count(*) from s where n > 1 group by k;",
    "select v from t where v > 'a';",
)


@pytest.mark.parametrize("query", QUERIES)
def test_what_a_query_becomes_compiles(query: str) -> None:
    sources = (
        "stream s (id string, k string, n bigint) from memory () key id;\n"
        "table t (k string, v string) from memory () key k;\n"
    )
    (found,) = (one for one in check_topology(sources + query, "case.vdsl") if one.code in ("VSC005", "VSC010"))
    statements = re.findall(
        r"`([^`]*;)`", (found.help or "").replace("NAME to CONNECTOR (...);", "").replace("NAME", "x")
    )
    assert statements
    left = check_topology(sources + "\n".join(statements) + "\nsink x to noop ();", "case.vdsl")
    assert [one for one in left if one.code not in _UNUSED] == []


def test_an_aggregate_over_what_came_before_compiles() -> None:
    source = "stream s (id string, n bigint, at timestamp) from memory () key id timestamp at;\n"
    for call in ("sum(n)", "count(*)"):
        query = f"stream x = map s select {call} over (partition by id order by at) as c;"
        (found,) = (one for one in check_topology(source + query) if one.code == "VSC010")
        (join,) = re.findall(r"`(join [^`]*)`", found.help or "")
        assert [one.code for one in check_topology(f"{source}stream x = {join};\nsink x to noop ();")] == []
