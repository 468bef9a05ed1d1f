"""The compiler as Python code calls it: a plan, or one error with every finding."""

from __future__ import annotations

import pickle

import pytest

from vsc.compiler import TopologyError, compile_topology, resolve
from vsc.compiler.diagnostics.suggest import nearest
from vsc.compiler.driver import survey_topology
from vsc.compiler.passes.clock import DEFAULT_CLOCK

GOOD = "stream s (k string, n int) from memory () key k;\nstream f = filter s where n > ${least};\nsink f to noop ();\n"


def test_a_topology_is_called_as_it_says_or_as_its_file() -> None:
    assert compile_topology("topology t;\n" + GOOD, path="a/b.vdsl", variables={"least": "1"}).name == "t"
    assert compile_topology(GOOD, path="a/b-c.vdsl", variables={"least": "1"}).name == "b-c"
    assert compile_topology(GOOD, variables={"least": "1"}).name == "topology"


def test_a_topology_says_what_stream_time_is_and_otherwise_gets_the_default() -> None:
    for clock in ("input", "records"):
        header = "topology t (clock = '${clock}');\n"
        assert compile_topology(header + GOOD, variables={"least": "1", "clock": clock}).clock == clock
    assert compile_topology("topology t ();\n" + GOOD, variables={"least": "1"}).clock == DEFAULT_CLOCK
    assert compile_topology(GOOD, variables={"least": "1"}).clock == DEFAULT_CLOCK


def test_a_variable_whose_value_looks_like_one_is_not_taken_for_a_clock() -> None:
    with pytest.raises(TopologyError) as caught:
        compile_topology("topology t (clock = '${c}');\n" + GOOD, variables={"least": "1", "c": "${d}"})
    assert [one.code for one in caught.value.diagnostics] == ["VSC125"]


def test_what_is_given_counts_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("least", "7")
    assert compile_topology(GOOD) != compile_topology(GOOD, variables={"least": "1"})
    assert compile_topology(GOOD) == compile_topology(GOOD, variables={"least": "7"})


def test_an_error_holds_all_findings_and_outlives_its_process() -> None:
    text = GOOD.replace("${least}", "x").replace("sink f", "stream g = filter s where y;\nsink f")
    with pytest.raises(TopologyError) as caught:
        compile_topology(text, path="t.vdsl")
    found = caught.value
    assert [(d.code, d.severity, d.path, d.line, d.column, d.end_line, d.end_column) for d in found.diagnostics] == [
        ("VSC110", "error", "t.vdsl", 2, 31, 2, 32),
        ("VSC123", "warning", "t.vdsl", 3, 8, 3, 9),
        ("VSC110", "error", "t.vdsl", 3, 27, 3, 28),
    ]
    assert str(found) == "t.vdsl:2:31: VSC110: there is no column `x` (and 1 more)"
    again = pickle.loads(pickle.dumps(found))
    assert isinstance(again, TopologyError)
    assert (again.diagnostics, str(again)) == (found.diagnostics, str(found))


def test_a_long_value_is_cut_in_a_message_and_the_fix_is_not() -> None:
    text = GOOD.replace("${least}", f"cast('{'9' * 5000}x' as int)").replace("noop", f"`{'n' * 300}`")
    with pytest.raises(TopologyError) as caught:
        compile_topology(text)
    messages = {d.code: d.message for d in caught.value.diagnostics}
    assert messages["VSC333"] == f"'{'9' * 79}...' is not an int: this always fails"


def test_names_near_an_unknown_one_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(name: str, known: list[str]) -> str | None:
        asked.append(name)
        return nearest(name, known)

    monkeypatch.setattr(resolve, "nearest", counted)
    nodes = "".join(f"stream node{n} = filter sourc where true;\n" for n in range(50))
    text = f"stream source (k string) from memory () key k;\n{nodes}stream sourcd = filter sourc where true;\n"
    found = [one for one in survey_topology(text, "t.vdsl").findings if one.code == "VSC103"]
    assert [(one.help, one.fix and one.fix.new) for one in found] == [
        *([("write `sourcd`", None)] * 50), ("write `source`", "source"),
    ]  # fmt: skip
    assert asked == ["sourc", "sourc"]


def _of_each_other(first: str, step: str, count: int, use: str) -> list[tuple[str, str]]:
    """The findings about constants each of which is made of the one before, the last of which stands in `use`."""
    lets = [f"let a0 = {first};", *(f"let a{n + 1} = {step.replace('_', f'a{n}')};" for n in range(count))]
    source = "stream s (k string, n bigint, at timestamp) from memory () key k timestamp at;"
    text = "\n".join([*lets, source, use.replace("_", f"a{count}"), "sink o to memory ();"])
    found = survey_topology(text, "t.vdsl").findings
    return sorted({(one.code, text[one.span.start : one.span.end]) for one in found})


@pytest.mark.slow
def test_constants_that_are_made_of_each_other_are_computed_once() -> None:
    used, window = "stream o = filter s where n = _;", "select count(*) as n;"
    window = f"table o = aggregate s group by k window tumbling (size = _) {window}"
    assert _of_each_other("0", "_ + _", 12, used) == []
    assert ("VSC228", "a29 + a29") in _of_each_other("0", "_ + _", 30, used)
    assert ("VSC228", "a2999 + 1") in _of_each_other("0", "_ + 1", 3_000, used)
    assert _of_each_other("1 ms", "_ + 1 ms", 3_000, window) == []
    assert _of_each_other("7 days", "_ + _", 400, window) == [("VSC125", "a400")]
    path = "stream o (k string) from files (path = _, format = 'json');"
    assert ("VSC133", "a40") in _of_each_other("'a'", "_ || _", 40, path)
