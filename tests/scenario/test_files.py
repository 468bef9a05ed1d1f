"""What is wrong with a scenario file is reported before anything runs: path, line, column, what was probably meant."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from vsc.scenario import RefusedTopology, ScenarioError, ScenarioFile, load
from vsc.scenario.model import Delete, Drain, Pipe, Quiet
from vsc.scenario.values import Partial, is_expected

TOPOLOGY = """\
stream orders (id string, amount int) from memory () key id;
table rates (
  currency string, rate decimal(6, 2), day date, at timestamp, ok boolean, ratio double, small float, raw binary,
  tags array<string>, more struct<a: int, b: string>, counts map<string, bigint>,
  sizes map<decimal(3, 1), string>
)
from memory () key currency timestamp at materialize versioned (retention = 1 day);
table names (id string, name string) from memory () key id materialize as by_id;
stream large = filter orders where amount > ${smallest};
sink large to console ();
"""
HEAD = "topology: t.vdsl\nvariables: {smallest: 5}\nscenarios:\n  - name: a\n    steps:\n"

Read = Callable[[str], ScenarioFile]


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    (tmp_path / "t.vdsl").write_text(TOPOLOGY)
    (tmp_path / "bad.vdsl").write_text("stream s (id strin) from memory () key id;\nsink s to console ();\n")
    monkeypatch.chdir(tmp_path)
    return lambda text: load("a.scenario.yaml", text)


def _step(read: Read, text: str) -> Any:
    file = read(HEAD + "".join(f"      {line}\n" for line in text.splitlines()))
    return file.scenarios[0].steps[0]


RATES = ("rate", "day", "at", "ok", "ratio", "small", "raw", "tags", "more", "counts", "sizes")
EXPECTED = """\
- drain: true
  expect: {rates: [{key: {currency: a}, value: {ok: true, more: {a: 1}}, timestamp: 1}]}
"""
ROW = """\
- rates:
    currency: NO
    rate: 1.1
    day: 2026-03-02
    at: 2026-03-02T10:00:00.0000000+01:00
    ok: true
    ratio: 1e3
    small: 0.1
    raw: !!binary aGk=
    tags: [a, 12, null, 'null']
    more: {b: yes}
    counts: {x: 1}
    sizes: {2.50: b}
"""


def test_values_are_those_of_their_columns_whatever_yaml_would_make_of_them(read: Read) -> None:
    action = _step(read, ROW).action
    assert isinstance(action, Pipe) and action.timestamp is None
    assert action.rows[0] == {
        "currency": "NO",
        "rate": Decimal("1.10"),
        "day": date(2026, 3, 2),
        "at": datetime(2026, 3, 2, 9, tzinfo=UTC),
        "ok": True,
        "ratio": 1000.0,
        "small": 0.10000000149011612,
        "raw": b"hi",
        "tags": ["a", "12", None, "null"],
        "more": {"a": None, "b": "yes"},
        "counts": {"x": 1},
        "sizes": {Decimal("2.5"): "b"},
    }


def test_steps_pipe_delete_and_drain(read: Read) -> None:
    assert _step(read, "- orders: [{id: a}, {id: b}]\n  timestamp: 7").action == Pipe(
        "orders", ({"id": "a"}, {"id": "b"}), 7
    )
    assert _step(read, "- pipe: {orders: {id: a}}\n  timestamp: 1970-01-01").action == Pipe("orders", ({"id": "a"},), 0)
    assert _step(read, "- delete: {rates: {currency: EUR}}\n  timestamp: 7").action == Delete(
        "rates", ({"currency": "EUR"},), 7
    )
    assert _step(read, "- drain: true").action == Drain()
    assert _step(read, "- quiet: 1970-01-01T00:00:05Z").action == Quiet(5000)
    with pytest.raises(ScenarioError, match="a quiet has no timestamp"):
        _step(read, "- quiet: 7\n  timestamp: 7")
    with pytest.raises(ScenarioError, match="`quiet` is a time in milliseconds or as ISO text"):
        _step(read, "- quiet: soon")


def test_a_scenario_has_its_own_variables_and_partitions(read: Read) -> None:
    text = HEAD.replace("- name: a", "- name: a\n    variables: {smallest: 9}\n    partitions: 3")
    (scenario,) = read(text + "      - drain: true\n").scenarios
    assert (scenario.variables, scenario.partitions, scenario.position.line) == ({"smallest": "9"}, 3, 4)
    assert scenario.now is None


def test_a_scenario_may_have_a_clock(read: Read) -> None:
    for written, now in (("2026-03-02T10:00:00+01:00", 1_772_442_000_000), ("7", 7)):
        text = HEAD.replace("- name: a", f"- name: a\n    now: {written}")
        (scenario,) = read(text + "      - drain: true\n").scenarios
        assert scenario.now == now
    with pytest.raises(ScenarioError, match="`now` is a time in milliseconds or as ISO text") as caught:
        read(HEAD.replace("- name: a", "- name: a\n    now: soon") + "      - drain: true\n")
    assert (caught.value.line, caught.value.column) == (5, 10)


def test_a_column_that_an_expected_value_leaves_out_is_null(read: Read) -> None:
    ((record,),) = (e.records for e in _step(read, EXPECTED).expect)
    value = {**dict.fromkeys(RATES), "ok": True, "more": {"a": 1, "b": None}}
    assert record.fields == {"key": {"currency": "a"}, "value": value, "timestamp": 1}
    ((record,),) = (e.records for e in _step(read, EXPECTED.replace("{ok: true, more: {a: 1}}", "null")).expect)
    assert record.fields["value"] is None


PARTIAL = """\
- drain: true
  expect: {rates: [{key: {...}, value: {ok: null, more: {a: 1, ...}, counts: {x: 1, '...': 2, ...}, ...}, ...}]}
  stores: [{store: rates, key: {currency: a}, expect: {value: {...}, valid_to: null, ...}}]
"""


def test_three_dots_leave_the_rest_open(read: Read) -> None:
    step = _step(read, PARTIAL)
    ((record,),) = (e.records for e in step.expect)
    value = {"ok": None, "more": {"a": 1}, "counts": {"x": 1, "...": 2}}
    assert record.fields == {"key": {}, "value": value}
    parts = (record.fields, record.fields["key"], *(record.fields["value"][name] for name in ("more", "counts")))
    assert all(isinstance(part, Partial) for part in parts)
    (question,) = step.stores
    assert question.answer.fields == {"value": {}, "valid_to": None}
    assert isinstance(question.answer.fields["value"], Partial)
    ((record,),) = (
        e.records for e in _step(read, EXPECTED.replace("{ok: true, more", "{...: , ok: true, more")).expect
    )
    assert record.fields["value"] == {"ok": True, "more": {"a": 1, "b": None}}


@pytest.mark.parametrize(
    ("expected", "seen", "met"),
    [
        (Partial(), {}, True),
        (Partial(), None, False),
        (Partial(a=1), {"a": 1, "b": 2}, True),
        (Partial(a=1), {"a": 2, "b": 2}, False),
        (Partial(a=None), {"b": 2}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"a": [Partial(b=float("nan"))]}, {"a": [{"b": float("nan"), "c": 1}]}, True),
        ({"a": [Partial(b=1)]}, {"a": [{"b": 1}, {"b": 1}]}, False),
    ],
)
def test_only_what_is_named_is_compared(expected: Any, seen: Any, met: bool) -> None:
    assert is_expected(expected, seen) == met


def test_variables_that_the_file_leaves_open_can_be_given(read: Read) -> None:
    text = HEAD.replace("variables: {smallest: 5}\n", "") + "      - drain: true\n"
    with pytest.raises(RefusedTopology):
        read(text)
    (scenario,) = load("a.scenario.yaml", text, {"smallest": "7"}).scenarios
    assert scenario.variables == {"smallest": "7"}
    (scenario,) = load("a.scenario.yaml", HEAD + "      - drain: true\n", {"smallest": "7"}).scenarios
    assert scenario.variables == {"smallest": "5"}


WRONG_STEPS = [
    ("- ^ordrs: {id: a}", "there is no source `ordrs`", "did you mean `orders`?"),
    ("- ^large: {id: a}", "`large` is not a source", "orders"),
    ("- ^orders: {id: a}", "`orders` has no `timestamp` clause", "`timestamp:`"),
    ("- orders: {id: a}\n  ^rates: {}", "a step takes one source; the second here is `rates`", "each step has"),
    ("- ^expect: {}", "a step takes one source; there is no source here", "drain"),
    ("- orders: {id: a, ^amont: 1}\n  timestamp: 1", "no column in a row of `orders`: `amont`", "`amount`"),
    ("- orders: {id: a, amount: ^1.5}\n  timestamp: 1", "`amount` is int: '1.5'", ""),
    ("- orders: {id: a, amount: ^'1'}\n  timestamp: 1", "`amount` is int: '1'", "leave out the quotes"),
    ("- orders: {id: a, amount: ^3000000000}\n  timestamp: 1", "`amount` is int: '3000000000'", ""),
    ("- orders: {id: a, amount: ^[1]}\n  timestamp: 1", "`amount` is int, not a list", ""),
    ("- orders: {id: a}\n  timestamp: ^soon", "`timestamp` is a time in milliseconds", ""),
    ("- orders: {id: a}\n  timestamp: ^2026-03-02T10:00:00.0019Z", "digits beyond", "leave them out"),
    ("- rates: {currency: a, at: ^'2026-03-02T10:00:00.0000019Z'}", "`at` is a time in microseconds", "leave them"),
    ("- rates: {currency: a, at: 1, counts: {1: 1, ^'1': 2}}", "`1` is here a second time; the first is at 6:46", ""),
    ("- rates: {currency: a, at: 1, sizes: {1: a, ^01: b}}", "'01' is the key at 6:45 of `sizes` a second time", ""),
    ("- rates: {currency: a, at: 1, more: {a: 1, ^'a': 2}}", "`a` is here a second time; the first is at 6:44", ""),
    ("- orders: {id: a, ^id: b}\n  timestamp: 1", "`id` is here a second time; the first is at 6:18", ""),
    ("- rates: {currency: a, rate: ^1.234}", "`rate` is decimal(6,2): '1.234'", ""),
    ("- rates: {currency: a, rate: ^12345}", "`rate` is decimal(6,2): '12345'", ""),
    ("- rates: {currency: a, ratio: ^1e400}", "`ratio` is double: '1e400'", ""),
    ("- rates: {currency: a, ok: ^yes}", "`ok` is boolean: 'yes'", "true or false"),
    ("- rates: {currency: a, raw: ^abc}", "`raw` is binary: 'abc'", "!!binary"),
    ("- rates: {currency: a, more: {^c: 1}}", "there is no key in `more`: `c`", ""),
    ("- ^rates: [{currency: a, at: 1}, {currency: a}]", "a row of `rates` lacks `at`", "`timestamp:`"),
    ("- orders: {id: a}\n  timestamp: ^9007199254740993", "`timestamp` is too far from 1970", ""),
    ("- delete: {^rates: {currency: a}}", "a delete needs its time", "`timestamp:`"),
    ("- delete: {rates: ^{}}\n  timestamp: 1", "the key of `rates` lacks `currency`", ""),
    ("- delete: {rates: {currency: a, ^ok: true}}\n  timestamp: 1", "no column in a key of `rates`: `ok`", ""),
    ("- drain: ^false", "`drain` is `true`", ""),
    ("- drain: true\n  timestamp: ^1", "a drain has no timestamp", ""),
    ("- drain: true\n  expect: {^larg: []}", "there is no node `larg`", "`large`"),
    ("- drain: true\n  expect: {large: ^{}}", "what `large` gives is a list, not a mapping", ""),
    ("- drain: true\n  expect: {large: [^{key: {id: a}, value: {}}]}", "lacks `timestamp`", ""),
    (
        "- drain: true\n  expect: {large: [{key: ^{}, value: {}, timestamp: 1}]}",
        "the key of a record of `large` lacks `id`",
        "all of its columns",
    ),
    (f"- rates: {{currency: a, at: ^{'9' * 5000}x}}", f"`at` is timestamp: '{'9' * 79}...' is not a", ""),
    ("- orders: {id: a, ^...}\n  timestamp: 1", "`...` is for what is expected", "in quotes"),
    ("- rates: {currency: a, at: 1, counts: {^...}}", "`...` is for what is expected", "in quotes"),
    ("- drain: true\n  stores: [{store: rates, key: {^...}, expect: null}]", "`...` is for what is expected", ""),
    ("- drain: true\n  expect: {large: [{value: {...: ^1}, ...}]}", "`...` has no value", ""),
    (
        "- drain: true\n  expect: {large: [{value: {^'...': 1, ...}, ...}]}",
        "no column in the value of",
        "for the rest, write `...` without quotes",
    ),
    ("- drain: true\n  expect: {large: [{value: ^'...', ...}]}", "is a mapping, not '...'", "write `{...}`"),
    ("- drain: true\n  expect: {^..., large: []}", "`...` is for what is expected", ""),
    ("- drain: true\n  stores: [{store: ^rate, key: {}, expect: null}]", "there is no store `rate`", "`rates`"),
    ("- drain: true\n  stores: [{store: by_id, key: {id: a}, as_of: ^1, expect: null}]", "`by_id` is unversioned", ""),
]


@pytest.mark.parametrize(("text", "message", "help"), WRONG_STEPS)
def test_a_wrong_step_is_told_with_its_place(read: Read, text: str, message: str, help: str) -> None:
    """A caret in the text stands in front of the place that is wrong."""
    before = text[: text.index("^")].split("\n")
    with pytest.raises(ScenarioError) as caught:
        _step(read, text.replace("^", ""))
    error = caught.value
    assert message in error.message
    assert (error.line, error.column) == (5 + len(before), 7 + len(before[-1]))
    assert help in (error.help or "")


WRONG_FILES = [
    ("", 1, 1, "the file is empty"),
    ("- a\n", 1, 1, "the file is a mapping, not a list"),
    ("topology: [\n", 2, 1, "this is not YAML"),
    ("topology: a\x01b\n", 1, 12, "U+0001"),
    ("a: " + "[" * 5000, 1, 1, "nested too deeply"),
    ("a: " + "[" * 80 + "]" * 80, 1, 68, "nested too deeply"),
    ("topology: t.vdsl\n---\na: 1\n", 2, 1, "this is not YAML"),
    ("topologi: t.vdsl\nscenarios: []\n", 1, 1, "there is no key in the file: `topologi`"),
    ("topology: t.vdsl\n", 1, 1, "the file lacks `scenarios`"),
    ("topology: t.vdsl\ntopology: t.vdsl\n", 2, 1, "`topology` is here a second time; the first is at 1:1"),
    ("topology: t.vdsl\nscenarios: []\n", 2, 12, "there is no scenario"),
    ("topology: !!python/name:os.system x\nscenarios: []\n", 1, 11, "the tag !!python/name:os.system"),
    ("topology: !own x\nscenarios: []\n", 1, 11, "the tag !own"),
    ("topology: t.vdsl\nscenarios: &a [*a]\n", 2, 12, "an alias is inside the value that it names"),
    ("topology: t.vdsl\nscenarios: [{<<: {}}]\n", 2, 14, "merge keys"),
    ("topology: no.vdsl\nscenarios: []\n", 1, 11, "there is no file no.vdsl"),
    (HEAD.replace("- name: a", "- name: ''") + "      - drain: true\n", 4, 11, "`name` is empty"),
    (HEAD.replace("- name: a", "- name: a\n    partitions: 0") + "      - drain: true\n", 5, 17, "`partitions`"),
    (HEAD.replace("- name: a", "- name: a\n    partitions: 1001") + "      - drain: true\n", 5, 17, "from 1 to 1000"),
    (
        HEAD + "      - drain: true\n  - {name: a, steps: [{drain: true}]}\n",
        7,
        5,
        "already is a scenario `a`, on line 4",
    ),
]


@pytest.mark.parametrize(("text", "line", "column", "message"), WRONG_FILES)
def test_a_wrong_file_is_told_with_its_place(read: Read, text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read(text)
    assert message in caught.value.message
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).startswith(f"a.scenario.yaml:{line}:{column}: ")


def test_aliases_are_fine_while_they_do_not_explode(read: Read) -> None:
    text = "- orders: [&one {id: a, amount: 9}, *one]\n  timestamp: 1\n  expect: {large: []}"
    assert len(_step(read, text).action.rows) == 2
    layers = ["x0: &x0 [1,1,1,1,1,1,1,1,1,1]"]
    layers += [f"x{n}: &x{n} [{','.join([f'*x{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(ScenarioError, match="more than 1000000 values"):
        read("\n".join(layers))


def test_a_refused_topology_brings_its_findings(read: Read) -> None:
    with pytest.raises(RefusedTopology) as caught:
        read("topology: bad.vdsl\nscenarios: [{name: a, steps: [{drain: true}]}]\n")
    assert (caught.value.line, caught.value.column) == (1, 11)
    assert [found.code for found in caught.value.error.diagnostics] == ["VSC016"]
