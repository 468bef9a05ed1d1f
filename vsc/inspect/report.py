"""The findings about a source as JSON, for tools."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from vsc.inspect.statement import Statement
from vsc.inspect.survey import Survey
from vsc.inspect.wording import moment, roomy, type_text
from vsc.plan.words import duration

__all__ = ["report"]


def report(survey: Survey, made: Statement) -> dict[str, Any]:
    """One source. Times are in ms since 1970 and as ISO text, durations in ms and as the language writes them."""
    input, sample, profile = survey.found, survey.sample, survey.profile
    return {
        "path": input.path,
        "format": input.format,
        "options": dict((*survey.headers.options, *input.options)),
        "files": len(input.files),
        "bytes": sum(file.size for file in input.files),
        "rows_read": profile.rows,
        "complete": sample.complete,
        "files_read": len(sample.files),
        "unreadable_rows": survey.headers.unreadable,
        "columns": [
            {"name": c.name, "type": type_text(c.type), "nulls": profile.nulls[c.name], "notes": list(c.notes)}
            for c in survey.columns
        ],
        "left_out": [{"name": name, "reason": why} for name, why in survey.headers.left_out],
        "keys": {
            "rows": profile.keys.rows,
            "unique": [list(names) for names in profile.keys.unique],
            "entities": [
                {"columns": list(e.columns), "values": e.values, "repeated": e.shared} for e in profile.keys.entities
            ],
            "repeats": None if profile.keys.repeats is None else asdict(profile.keys.repeats),
        },
        "event_time": _event_time(survey),
        "disorder": _disorder(survey),
        "kind": made.kind,
        "name": made.name,
        "key": list(made.key),
        "warnings": list(made.warnings),
        "statement": made.text,
    }


def _event_time(survey: Survey) -> dict[str, Any] | None:
    times = survey.profile.times
    if times is None:
        return None
    chosen = survey.clocks[0]
    return {
        "column": chosen.column.name,
        "clause": chosen.clause,
        "unit": chosen.unit,
        "local": chosen.column.local,
        "others": [clock.column.name for clock in survey.clocks[1:]],
        **asdict(times),
        "first_iso": None if times.first is None else moment(times.first),
        "last_iso": None if times.last is None else moment(times.last),
    }


def _disorder(survey: Survey) -> dict[str, Any] | None:
    lateness = survey.profile.lateness
    if lateness is None:
        return None
    return {
        "rows": lateness.rows,
        "late": lateness.late,
        "late_in_file": lateness.late_in_file,
        "median_ms": lateness.median,
        "p99_ms": lateness.most,
        "max_ms": lateness.longest,
        "covers_99": duration(roomy(lateness.covers_most)) if lateness.covers_most else None,
        "covers_all": duration(roomy(lateness.longest)) if lateness.longest else None,
    }
