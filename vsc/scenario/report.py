"""Reports the outcomes of scenarios: as text with a diff of expected and seen records, and as JUnit XML.

Guarantees: the same outcomes give the same text, without any clock times. The XML is well-formed whatever the values.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from difflib import SequenceMatcher
from typing import Any
from xml.etree import ElementTree

from vsc.scenario.player import Outcome, Stopped, WrongAnswer, WrongRecords
from vsc.scenario.values import is_same
from vsc.testing import Record, VersionedRecord

__all__ = ["junit", "summary", "text"]

_RED, _GREEN, _BOLD, _PLAIN = "\033[31m", "\033[32m", "\033[1m", "\033[0m"
_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SPECIAL = re.compile(r"[\s,:{}\[\]'\"#]|^$|^[-+.0-9]|^(?:null|true|false|~)$", re.IGNORECASE)


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
        word = _painted("FAILED", _RED, color) if outcome.wrong else _painted("ok    ", _GREEN, color)
        lines.append(f"  {word} {_one_line(scenario.name)}")
        for wrong in outcome.wrong:
            lines.extend(f"    {line}" for line in _told(scenario.path, wrong, color))
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
                told = [list(_told(path, wrong, False)) for wrong in outcome.wrong]
                kind = "error" if _broken(outcome) else "failure"
                wrong = ElementTree.SubElement(case, kind, message=_clean(told[0][0]), type=kind)
                wrong.text = _clean("\n".join(line for lines in told for line in lines))
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


def _painted(value: str, code: str, color: bool) -> str:
    return f"{code}{value}{_PLAIN}" if color else value


# ---------------------------------------------------------------------------------------------------------- differences


def _told(path: str, wrong: WrongRecords | WrongAnswer | Stopped, color: bool) -> Iterator[str]:
    where = _painted(f"{path}:{wrong.position.line}:{wrong.position.column}:", _BOLD, color)
    match wrong:
        case Stopped(_, step, reason):
            first, *rest = reason.splitlines() or [""]
            yield f"{where} step {step} failed: {first}"
            yield from (f"  {line}" for line in rest)
        case WrongRecords(_, step, node, expected, seen):
            yield f"{where} after step {step} `{node}` gave other records: {len(expected)} expected, {len(seen)} seen"
            yield from _difference(expected, seen, color)
        case WrongAnswer(_, step, question, seen):
            as_of = "" if question.as_of is None else f" as of {question.as_of}"
            asked = f"{_shown(question.key)}{as_of}"
            yield f"{where} after step {step} the store `{question.store}` gave another answer for {asked}"
            yield _line("-", "expected", _version(question.answer), color)
            yield _line("+", "seen", _version(seen), color)


def _difference(expected: Sequence[Record], seen: Sequence[Record], color: bool) -> Iterator[str]:
    """The records of both sides in one order; for a matching pair, the columns that differ."""
    left, right = [_record(r) for r in expected], [_record(r) for r in seen]
    for kind, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from (_line("=", "", one, False) for one in left[a:b])
            continue
        for one, other in _paired(expected[a:b], seen[c:d]):
            if one is not None:
                yield _line("-", "expected", _record(one), color)
            if other is not None:
                yield _line("+", "seen", _record(other), color)
            if one is not None and other is not None:
                yield from _columns(one, other)


def _paired(expected: Sequence[Record], seen: Sequence[Record]) -> Iterator[tuple[Record | None, Record | None]]:
    """Each expected record with the next seen record of its key. Records without a partner keep their places."""
    at = 0
    for one in expected:
        found = next((i for i in range(at, len(seen)) if is_same(seen[i].key, one.key)), None)
        if found is None:
            yield one, None
            continue
        yield from ((None, other) for other in seen[at:found])
        yield one, seen[found]
        at = found + 1
    yield from ((None, other) for other in seen[at:])


def _columns(expected: Record, seen: Record) -> Iterator[str]:
    if expected.value is not None and seen.value is not None:
        for name, value in expected.value.items():
            if not is_same(value, seen.value[name]):
                yield f"      {name}: {_shown(value)} expected, {_shown(seen.value[name])} seen"
    if expected.timestamp != seen.timestamp:
        yield f"      timestamp: {expected.timestamp} expected, {seen.timestamp} seen"


def _line(mark: str, word: str, shown: str, color: bool) -> str:
    line = f"  {mark} {word:<8} {shown}"
    return _painted(line, _RED if mark == "-" else _GREEN, color) if mark != "=" else line


def _record(record: Record) -> str:
    value = "null" if record.value is None else _shown(record.value)
    return f"key: {_shown(record.key)}, value: {value}, timestamp: {record.timestamp}"


def _version(version: VersionedRecord | None) -> str:
    if version is None:
        return "null"
    return f"value: {_shown(version.value)}, valid_from: {version.valid_from}, valid_to: {_shown(version.valid_to)}"


def _shown(value: Any) -> str:
    """A value as a scenario file writes it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return value if value.isprintable() and not _SPECIAL.search(value) else _quoted(value)
        case bytes():
            return f"!!binary {base64.b64encode(value).decode()}"
        case float() if value != value:
            return ".nan"
        case float() if value in (float("inf"), float("-inf")):
            return ".inf" if value > 0 else "-.inf"
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case Mapping():
            return "{" + ", ".join(f"{_shown(k)}: {_shown(v)}" for k, v in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_shown, value)) + "]"
    return str(value)


def _quoted(value: str) -> str:
    if value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    return ascii(value)
