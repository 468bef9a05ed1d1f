"""Comments that allow a warning: where they count, and what is said of those that have no effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from vsc.compiler.driver import check_source, survey_topology

VERSIONED = "materialize versioned (retention = 1 day)"
TABLE = f"table {{}} (k string) from memory () key k {VERSIONED};"
SINK = "sink {} to console ();\n"
MIXED = f"""table u (k string, n int) from memory () key k; table v (k string) from memory () key k {VERSIONED};
table c =
  join u with v
  select n
  {VERSIONED};"""


def found(text: str) -> list[tuple[str, int]]:
    return [(one.code, one.line) for one in check_source(text)[1]]


@pytest.mark.parametrize(
    "text",
    [
        f"{TABLE.format('t')}  -- vsc: allow VSC313\n",
        f"{TABLE.format('t')}  --vsc:allow VSC313: looked into by hand\n",
        f"-- vsc: allow VSC313\n{TABLE.format('t')}\n",
        f"-- vsc: allow VSC313\n-- the table of rates\n\n{TABLE.format('t')}\n",
        f"{TABLE.format('t').replace(' key', ' -- vsc: allow VSC313' + chr(10) + 'key')}\n",
        f"let a = 1; {TABLE.format('t')} let b = 'x;y';  -- vsc: allow VSC313\n",
    ],
)
def test_a_comment_allows_a_warning_in_its_statement(text: str) -> None:
    assert found(text + SINK.format("t")) == []
    assert [one.code for one in survey_topology(text + SINK.format("t")).findings] == []
    assert found(text.replace("vsc:", "") + SINK.format("t")) != []


def test_it_counts_for_the_lines_of_a_statement_and_no_other() -> None:
    assert found(f"{MIXED}  -- vsc: allow VSC312, VSC313\n{SINK.format('c')}") == []
    assert found(f"{MIXED}  -- vsc: allow VSC312\n{SINK.format('c')}") == [("VSC313", 5)]
    two = f"{TABLE.format('t')}  -- vsc: allow VSC313\n{TABLE.format('u')}\n{SINK.format('t')}{SINK.format('u')}"
    assert found(two) == [("VSC313", 2)]


@pytest.mark.parametrize(
    ("comment", "message", "help"),
    [
        ("allow", "this comment allows nothing", "name a code, as in `-- vsc: allow VSC313`"),
        ("allow vsc313", "`vsc313` is not a code", "write `VSC313`"),
        ("allow VSC000", "`VSC000` is not a code", "write one, as in `VSC313`"),
        ("allow VSC103", "VSC103 is an error, which cannot be allowed", "correct what it tells of"),
        ("allow VSC311", "VSC311 is allowed, but nothing here is one", "remove it"),
    ],
)
def test_an_allowance_without_effect_is_a_warning(comment: str, message: str, help: str) -> None:
    text = f"stream s (k string) from memory ();  -- vsc: {comment}\n{SINK.format('s')}"
    (one,) = check_source(text)[1]
    assert (one.code, one.severity, one.line, one.message, one.help) == ("VSC029", "warning", 1, message, help)


def test_an_error_stays_and_hides_what_is_allowed_in_vain() -> None:
    text = f"stream s = filter nobody where true;  -- vsc: allow VSC103, VSC123\n{SINK.format('s')}"
    assert found(text) == [("VSC103", 1), ("VSC029", 1)]


def test_a_text_is_no_comment() -> None:
    text = "stream s (k string) from memory ();\nstream t = filter s where k = '-- vsc: allow VSC000';\n"
    assert found(text + SINK.format("t")) == []


def test_it_counts_in_included_files(tmp_path: Path) -> None:
    (tmp_path / "rates.vdsl").write_text(f"{TABLE.format('t')}  -- vsc: allow VSC313")
    text = f"include 'rates.vdsl';\n{SINK.format('t')}"
    assert check_source(text, str(tmp_path / "main.vdsl"))[1] == ()
