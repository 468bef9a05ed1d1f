"""Reports the outcomes of scenarios: as text with a diff of expected and seen records, and as JUnit XML.

Guarantees: the same outcomes give the same text, without any clock times. The XML is well-formed whatever the values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from vsc.compiler.source import Position
from vsc.scenario.differences import BOLD, GREEN, RED, answer_difference, in_color, painted, record_difference
from vsc.scenario.player import Disordered, Outcome, Stopped, Wrong, WrongAnswer, WrongCount, WrongRecords
from vsc.scenario.written import written

__all__ = ["junit", "summary", "text"]

_ACCEPT = "`vsc test --accept` writes it"
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def summary(outcomes: Sequence[Outcome]) -> str:
    """One line: how many scenarios passed and failed."""
    failed = sum(1 for outcome in outcomes if outcome.wrong)
    return f"{len(outcomes) - failed} passed, {failed} failed"


def text(outcomes: Sequence[Outcome], color: bool) -> str:
    """One line for each scenario, under its file; below a failed scenario, the differences."""
    lines: list[str] = []
    path = None
    for outcome in outcomes:
        scenario = outcome.scenario
        if scenario.path != path:
            path = scenario.path
            lines.append(path)
        word = in_color("FAILED", RED, color) if outcome.wrong else in_color("ok    ", GREEN, color)
        lines.append(f"  {word} {_one_line(scenario.name)}")
        lines.extend(f"    {told}" for told in _dropped(outcome, color))
        for wrong in outcome.wrong:
            lines.extend(f"    {line}" for line in _told(scenario.path, wrong, color))
        lines.extend(f"    {told}" for told in _lost(outcome))
    return "".join(f"{line}\n" for line in lines)


def junit(outcomes: Sequence[Outcome]) -> str:
    """JUnit XML: one suite for each file, one case for each scenario."""
    files: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        files.setdefault(outcome.scenario.path, []).append(outcome)
    root = ElementTree.Element("testsuites", {"name": "vsc test", **_counts(outcomes)})
    for path, found in files.items():
        suite = ElementTree.SubElement(root, "testsuite", {"name": _clean(path), **_counts(found)})
        for outcome in found:
            scenario = outcome.scenario
            case = ElementTree.SubElement(
                suite,
                "testcase",
                classname=_clean(path.removesuffix(".scenario.yaml").lstrip("./").replace("/", ".")),
                name=_clean(scenario.name),
                file=_clean(path),
                line=str(scenario.position.line),
            )
            if outcome.wrong:
                told = [*(list(_told(path, wrong, False)) for wrong in outcome.wrong), list(_lost(outcome))]
                kind = "error" if _broken(outcome) else "failure"
                wrong = ElementTree.SubElement(case, kind, message=_clean(told[0][0]), type=kind)
                wrong.text = _clean("\n".join(line for lines in told for line in lines))
            if outcome.dropped:
                ElementTree.SubElement(case, "system-out").text = _clean("\n".join(_dropped(outcome, False)))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _counts(outcomes: Sequence[Outcome]) -> dict[str, str]:
    errors = sum(1 for outcome in outcomes if _broken(outcome))
    failures = sum(1 for outcome in outcomes if outcome.wrong) - errors
    return {"tests": str(len(outcomes)), "failures": str(failures), "errors": str(errors)}


def _broken(outcome: Outcome) -> bool:
    return any(isinstance(wrong, Stopped) for wrong in outcome.wrong)


def _clean(value: str) -> str:
    return _NOT_IN_XML.sub(lambda found: f"\\u{ord(found.group()):04x}", value)


def _one_line(value: str) -> str:
    return " ".join(value.split())


# ---------------------------------------------------------------------------------------------------------- differences


def _dropped(outcome: Outcome, color: bool) -> Iterator[str]:
    for position, told in outcome.dropped:
        yield f"{_place(outcome.scenario.path, position, color)} {told}"


def _lost(outcome: Outcome) -> Iterator[str]:
    """What else has become of the records of a scenario that failed."""
    if outcome.lost:
        yield "until then:"
        yield from (f"  {told}" for told in outcome.lost)


def _place(path: str, position: Position, color: bool) -> str:
    return in_color(f"{path}:{position.line}:{position.column}:", BOLD, color)


def _told(path: str, wrong: Wrong, color: bool) -> Iterator[str]:
    where = _place(path, wrong.position, color)
    match wrong:
        case Stopped(_, step, reason):
            first, *rest = reason.splitlines() or [""]
            yield f"{where} step {step} failed: {first}"
            yield from (f"  {line}" for line in rest)
        case Disordered(_, _, run, told):
            yield f"{where} results depend on the order of arrival, as run {run} shows"
            yield from (f"  {line}" for line in told.splitlines())
        case WrongCount(_, step, expected, number):
            told = ".".join(expected.path)
            yield f"{where} after step {step} `{told}` is {number:,}, not {expected.number:,}"
        case WrongRecords(_, step, node, None, seen):
            yield f"{where} after step {step} nothing is expected of `{node}` yet; {_ACCEPT}"
            yield from painted(record_difference((), seen), color)
        case WrongAnswer(_, step, question, seen) if question.missing:
            yield f"{where} after step {step} nothing is expected of the store `{question.store}` yet; {_ACCEPT}"
            yield from painted(list(answer_difference(None, seen))[1:], color)
        case WrongRecords(_, step, node, tuple(expected), seen):
            yield f"{where} after step {step} `{node}` gave other records: {len(expected)} expected, {len(seen)} seen"
            yield from painted(record_difference(expected, seen), color)
        case WrongAnswer(_, step, question, seen):
            as_of = "" if question.as_of is None else f" as of {question.as_of}"
            asked = f"{written(dict(question.key))}{as_of}"
            yield f"{where} after step {step} the store `{question.store}` gave another answer for {asked}"
            yield from painted(answer_difference(question.answer, seen), color)
