"""What the passes find out about right topologies: ``facts/<subject>.vdsl``, each node with its fact.

A fact stands on the line on which its node is named, after ``--=``. A node without one has none: a pair of input and
output is complete.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from vsc.compiler.driver import compile_topology, survey_topology
from vsc.compiler.passes.survey import Survey
from vsc.plan import Column, Plan, Store
from vsc.plan.clocks import node_clocks
from vsc.plan.words import duration, window

FILES = sorted((Path(__file__).parent / "facts").glob("*.vdsl"))
_FACT = re.compile(r" *--= (.*)$", re.MULTILINE)
Describe = Callable[[Survey, Plan, str], str | None]


def _columns(columns: tuple[Column, ...]) -> str:
    return ", ".join(f"{column.name} {column.type}" for column in columns)


def _kind(survey: Survey, plan: Plan, name: str) -> str | None:
    return survey.kinds.get(name)


def _schema(survey: Survey, plan: Plan, name: str) -> str | None:
    schema = survey.shapes[name].schema
    return f"{_columns(schema.key)} | {_columns(schema.value)}"


def _store_words(store: Store) -> str:
    times = [
        ("retention", store.retention),
        ("grace", store.grace),
        ("segment", store.segment),
        ("expire", store.expire),
    ]
    return ", ".join([store.kind, *(f"{name} {duration(ms)}" for name, ms in times if ms is not None)])


def _store(survey: Survey, plan: Plan, name: str) -> str | None:
    if name in survey.stores.implied:
        return "implied"
    clause = survey.stores.clauses.get(name)
    return None if clause is None or clause.store is None else _store_words(clause.store)


def _status(survey: Survey, plan: Plan, name: str) -> str | None:
    status = survey.statuses.get(name)
    if status is None:
        return None
    return f"{'versioned' if status.versioned else 'unversioned'} by {status.decided_by}: {status.reason}"


def _window(survey: Survey, plan: Plan, name: str) -> str | None:
    of_table = survey.windows.tables.get(name)
    return None if of_table is None else f"{window(of_table)} of {survey.windows.begun[name]}"


def _suppress(survey: Survey, plan: Plan, name: str) -> str | None:
    held = survey.suppressed.get(name)
    if held is None:
        return None
    bounds = [f"{bound} = {getattr(held, bound)}" for bound in ("max_records", "max_bytes", "when_full")]
    return ", ".join([f"{held.until} {duration(held.wait)}", *(one for one in bounds if not one.endswith("None"))])


def _connector(survey: Survey, plan: Plan, name: str) -> str | None:
    connector = survey.connectors.sources.get(name)
    if connector is None:
        return None
    ahead = survey.connectors.ahead.get(name)
    options = [f"{option} = {value}" for option, value in (*connector.options, *connector.spark_options)]
    return f"{connector.kind}: {', '.join(options)}; {'any time' if ahead is None else f'{duration(ahead)} ahead'}"


def _clock(survey: Survey, plan: Plan, name: str) -> str | None:
    clock = node_clocks(plan)[name]
    words = f"{', '.join(sorted(clock.sources))} less {duration(clock.hold)}"
    return f"{words}, holds {duration(clock.holds)}" if clock.holds else words


def _stages(survey: Survey, plan: Plan, name: str) -> str | None:
    return ", ".join(f"{stage.id}{' moved' * (name in stage.moved)}" for stage in plan.stages if name in stage.nodes)


SUBJECTS: dict[str, Describe] = {
    "clocks": _clock, "connectors": _connector, "kinds": _kind, "schemas": _schema, "stages": _stages,
    "stores": _store, "suppress": _suppress, "versioning": _status, "windows": _window,
}  # fmt: skip


def test_every_file_has_a_subject() -> None:
    assert {path.stem for path in FILES} == SUBJECTS.keys()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_node_has_the_fact_that_is_written_beside_it(path: Path) -> None:
    written = path.read_text(encoding="utf-8")
    lines = enumerate(written.split("\n"), 1)
    expected = {number: note[1] for number, line in lines for note in _FACT.finditer(line)}
    surveyed = survey_topology(_FACT.sub("", written))
    sinks = "".join(
        f"sink {name} to noop ();" for name, kind in surveyed.survey.kinds.items() if kind != "global table"
    )
    plan = compile_topology(_FACT.sub("", written) + sinks)
    found = {
        surveyed.source.position(node.name.span.start).line: fact
        for name, node in surveyed.survey.topology.nodes.items()
        if (fact := SUBJECTS[path.stem](surveyed.survey, plan, name)) is not None
    }
    assert found == expected
