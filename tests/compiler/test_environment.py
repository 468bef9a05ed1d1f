"""What comes from the environment is not shown, and an expression does not take a secret."""

from __future__ import annotations

import pytest

from vsc.compiler import check_topology

TOPOLOGY = """stream s (n int, k string) from files (path = '${{data}}', format = 'json') key n;
stream a = filter s where {condition};
sink a to console ();
"""


def found(condition: str, **variables: str) -> list[tuple[str, str]]:
    return [
        (f.code, f"{f.message}; {f.help}")
        for f in check_topology(TOPOLOGY.format(condition=condition), variables=variables)
    ]


@pytest.mark.parametrize(
    "condition", ["n = ${WHO}", "n = '${WHO}'", "date_trunc('${WHO}', at) is null", "n in (1, ${WHO})"]
)
def test_a_value_of_the_environment_is_not_shown(monkeypatch: pytest.MonkeyPatch, condition: str) -> None:
    monkeypatch.setenv("WHO", "hunter2 of mine")
    monkeypatch.setenv("data", "in")
    findings = found(condition)
    assert findings and "hunter2" not in repr(findings)


def test_a_value_that_was_given_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHO", "hunter2")
    assert found("n = ${WHO}") == [
        ("VSC333", "'${WHO}' is not a bigint: this always fails; write a value that is a bigint")
    ]
    assert found("n = ${WHO}", WHO="somebody") == [
        ("VSC333", "'somebody' is not a bigint: this always fails; write a value that is a bigint")
    ]


@pytest.mark.parametrize("form", ["n = ${GITHUB_TOKEN}", "k = '${GITHUB_TOKEN}'", "k = 'a ${DB_PASSWORD}'"])
def test_a_variable_with_the_name_of_a_secret_is_refused(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_1")
    [(code, message)] = found(form, DB_PASSWORD="given")
    assert code == "VSC014" and "has the name of a secret, and the plan would hold its value" in message
