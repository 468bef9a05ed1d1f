"""`tools.test_costs` on reports that are none of a whole run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.test_costs import measured


def test_costs_are_seconds_by_file(tmp_path: Path) -> None:
    report = tmp_path / "rest.xml"
    cases = "".join(f'<testcase classname="tests.a.test_{name}" time="{time}"/>' for name, time in (("b", 2), ("b", 3)))
    report.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    assert measured(report) == {"tests/a/test_b.py": 5.0}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, "No such file"),
        ("", "no element found"),
        ('<testsuites><testcase classname="tests.a" time="1"/>', "no element found"),
        ('<testsuites><testcase time="1"/></testsuites>', "a test has no 'classname'"),
    ],
)
def test_the_report_of_an_interrupted_run_says_so(tmp_path: Path, text: str | None, why: str) -> None:
    report = tmp_path / "rest.xml"
    if text is not None:
        report.write_text(text)
    with pytest.raises(SystemExit, match=f"rest.xml is not the report of a whole run .*{why}.*: run `make rest`"):
        measured(report)
