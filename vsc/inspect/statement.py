"""The source statement, and the findings in words, which go above it as comments."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from vsc.compiler import check_topology
from vsc.inspect.changes import changed_key
from vsc.inspect.clock import words_of
from vsc.inspect.keys import Entity, liking
from vsc.inspect.model import DataColumn, InspectError, Kind, Wanted
from vsc.inspect.profile import Times
from vsc.inspect.survey import Survey
from vsc.inspect.wording import moment, roomy, share, string, type_text, written
from vsc.plan.types import BOOLEAN, STRING
from vsc.plan.words import bytes_text, counted, duration, rounded_duration

__all__ = ["Statement", "statement"]

_WEEK = 7 * 86_400_000
_FEW_ROWS = 100
_DELETED = {"deleted", "gone", "removed", "withdrawn", "tombstone", "cancelled"}


@dataclass(frozen=True, slots=True)
class Statement:
    """A source statement: `text`, with the findings as comments; the decisions in it; what the user should know."""

    name: str
    kind: Kind
    key: tuple[str, ...]
    text: str
    warnings: tuple[str, ...]


def statement(survey: Survey, wanted: Wanted, taken: Container[str] = ()) -> Statement:
    """The statement for what was found, under a name not in `taken`; the compiler checks it. Raises InspectError."""
    name = wanted.name or _free(_name(survey.found.path), taken)
    kind: Kind = wanted.kind or ("table" if survey.of_changes else "stream")
    key = _key(survey, wanted.key, kind)
    warnings = tuple(_warnings(survey, key))
    comments = [*_about(survey), *warnings, *_time_words(survey), *_disorder_words(survey, kind)]
    comments += _key_words(survey)
    if kind == "stream":
        comments += [*_repeat_words(survey, name, key), *_change_words(survey, name)]
    lines = [f"-- {comment}" for comment in comments]
    lines += _declaration(survey, kind, name, key)
    text = "\n".join(lines) + "\n"
    errors = [found for found in check_topology(text, f"{name}.vdsl") if found.severity == "error"]
    if errors:
        raise InspectError(f"{survey.found.path}: {errors[0].message}", errors[0].help)
    return Statement(name, kind, key, text, warnings)


def _free(name: str, taken: Container[str]) -> str:
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}" if name in taken else name


def _name(path: str) -> str:
    """A name for the source: the last part of the path that can be one."""
    for part in reversed(os.path.normpath(path).split(os.sep)):
        stem = part.partition(".")[0] if part not in (".", "..") else ""
        name = re.sub(r"\W+", "_", stem, flags=re.ASCII).strip("_").lower()
        if name and "=" not in part and not re.search(r"[*?\[{]", part):
            return name if not name[0].isdigit() else f"data_{name}"
    return "data"


def _key(survey: Survey, wanted: tuple[str, ...], kind: Kind) -> tuple[str, ...]:
    """The columns of the key clause: the user's choice, else an id, else columns that say what the rows are about."""
    for name in wanted:
        survey.headers.column(name)
    if wanted:
        return wanted
    keys = survey.profile.keys
    by_name = {column.name: column for column in survey.columns}
    first = survey.columns[0].name
    ids = [names for names in keys.unique if names == (first,) or _is_id(names, by_name)]
    if keys.repeats is not None and kind == "stream":
        ids.append((keys.repeats.column,))
    entities = [entity.columns for entity in keys.entities if kind == "table" or len(entity.columns) == 1]
    candidates = [*ids, *entities, *(keys.unique if kind == "table" else ())]
    if not candidates and kind == "table":
        if (path := changed_key(survey.columns)) is not None:
            raise InspectError(
                f"{survey.found.path} holds change events, whose rows are in `before` and `after`",
                f"inspect it as a stream; then `rekey` it by {path}, and read it with `to_table`",
            )
        raise InspectError(
            f"{survey.found.path}: no columns were found that say what a row is about", "name them with --key"
        )
    return candidates[0] if candidates else ()


def _is_id(names: tuple[str, ...], columns: Mapping[str, DataColumn]) -> bool:
    return len(names) == 1 and liking(columns[names[0]]) == 0


def _about(survey: Survey) -> Iterator[str]:
    input, sample = survey.found, survey.sample
    bytes, files = bytes_text(sum(f.size for f in input.files)), counted(len(input.files), "file")
    what = f"{input.path}: {input.format}, {files}, {bytes}"
    rows = counted(survey.profile.rows, "row")
    if sample.complete:
        yield f"{what}, {rows}."
    else:
        files = "the file" if len(input.files) == 1 else f"each of {len(sample.files)} of them"
        yield f"{what}. A sample: the first rows of {files}, {rows} in all. What follows is true of these."


def _warnings(survey: Survey, key: tuple[str, ...]) -> Iterator[str]:
    """What would make a run drop rows, stop, or read less than the data holds."""
    headers, profile = survey.headers, survey.profile
    if headers.unreadable:
        yield f"{counted(headers.unreadable, 'row')} cannot be read, first {headers.first_unreadable}."
    if survey.found.skipped:
        names = ", ".join(os.path.basename(path) for path in survey.found.skipped[:3])
        more = f" and {len(survey.found.skipped) - 3} more" if len(survey.found.skipped) > 3 else ""
        yield f"Files of another format are left out: {names}{more}."
    for name, why in headers.left_out:
        yield f"Column {name or '(no name)'} is left out: {why}."
    if sum(column.absent > 0 for column in headers.columns) * 2 > len(headers.columns):
        yield "The files have little in common: if they are not one source, inspect them one by one."
    yield from (f"{note[0].upper()}{note[1:]}." for note in headers.notes)
    for name in key:
        if profile.nulls[name]:
            yield f"{counted(profile.nulls[name], 'row')} without {name}: a run drops rows without a key."
    if profile.times is not None:
        yield from _time_warnings(survey, profile.times)


def _time_warnings(survey: Survey, times: Times) -> Iterator[str]:
    name = survey.clocks[0].column.name
    if times.failed:
        yield f"The timestamp clause fails on some rows, which stops a run: {times.failed}."
    if times.nulls:
        yield f"{counted(times.nulls, 'row')} without {name}: a run drops rows without an event time."
    if times.before_1970:
        yield f"{counted(times.before_1970, 'row')} before 1970: a run drops them."
    if times.before_1990 - times.before_1970:
        aside = ", left aside below" if survey.clocks[0].since else ""
        yield f"{counted(times.before_1990 - times.before_1970, 'row')} with {name} between 1970 and 1990{aside}."
    if times.future and times.farthest is not None:
        until = moment(times.farthest)
        what = f"{counted(times.future, 'row')} more than a day in the future, up to {until}"
        yield f"{what}: a run drops such rows (`max_ahead`)."


def _time_words(survey: Survey) -> Iterator[str]:
    times = survey.profile.times
    if times is None and survey.of_changes:
        yield "Event time: `source.ts_ms`, the time of a change in its database."
        return
    if times is None:
        yield "Event time: no column looks like one, so it is the time at which a row's file was last changed."
        return
    clock = survey.clocks[0]
    unit = f" ({clock.unit} since 1970)" if clock.unit else ""
    if times.first is not None and times.last is not None:
        yield f"Event time: {clock.column.name}{unit}, from {moment(times.first)} to {moment(times.last)}."
    else:
        yield f"Event time: {clock.column.name}{unit}; no row has one that a run takes."
    if clock.column.local:
        otherwise = "`time_zone = 'Europe/Berlin'` in the source's options says otherwise"
        yield f"  Its texts have no offset and are read as UTC ({otherwise})."
    elif clock.column.patterns and clock.column.type == STRING:
        yield "  Its texts have no offset and are read as UTC, with `time_zone` too: other times are in ISO form."
    if len(clock.column.patterns) > 1:
        yield f"  They could also be {' or '.join(clock.column.patterns[1:])}."
    others = [other.column.name for other in survey.clocks[1:4]]
    if others:
        yield f"  Times too: {', '.join(others)} (--timestamp {others[0]})."


def _disorder_words(survey: Survey, kind: Kind) -> Iterator[str]:
    lateness = survey.profile.lateness
    if lateness is None or not lateness.rows:
        return
    if not lateness.late:
        yield "Disorder: none, rows come in order of event time."
        return
    yield f"Disorder: {share(lateness.late, lateness.rows)} of the rows come after a newer one."
    median, most, longest = map(rounded_duration, (lateness.median, lateness.most, lateness.longest))
    if lateness.median == lateness.longest:
        yield f"  They are {longest} late."
    else:
        yield f"  They are {median} late in the middle, {most} for 99 % of them, {longest} at most."
    enough, all = duration(roomy(lateness.covers_most)), duration(roomy(lateness.longest))
    first = f"{enough} covers 99 % of all rows, " if lateness.covers_most and enough != all else ""
    yield f"  A retention or grace of {first}{all} covers all."
    if kind == "table":
        yield f"  A stream that joins it misses such rows, unless it waits (`grace {all}`) or is corrected: `correct by"
        yield f"  ID within {all}`."
    if len(survey.sample.files) > 1 and lateness.late_in_file < lateness.late:
        inside = share(lateness.late_in_file, lateness.rows) if lateness.late_in_file else "none"
        yield f"  Within their own file: {inside}. Files overlap in time, in the order of reading."


def _key_words(survey: Survey) -> Iterator[str]:
    keys = survey.profile.keys
    if keys.unique:
        yield f"Key: unique in {counted(keys.rows, 'row')}: {'; '.join(map(' + '.join, keys.unique))}."
    else:
        yield "Key: no column is unique, and no combination of up to three."
    if keys.entities:
        time = "" if survey.profile.times is None else f", unique with {survey.clocks[0].column.name}"
        yield f"  As a table's key{time}: {'; '.join(_entity_words(e) for e in keys.entities)}."
    if keys.rows < _FEW_ROWS:
        yield "  So few rows say little about keys."
    gone = [c.name for c in survey.columns if c.type == BOOLEAN and words_of(c.name) & _DELETED]
    if gone:
        yield f"  Of a table: if {gone[0]} means that the row is removed, add `delete when {written(gone[0])}`."


def _repeat_words(survey: Survey, name: str, key: tuple[str, ...]) -> Iterator[str]:
    """That an id comes more than once, and what drops the repeats."""
    keys, late = survey.profile.keys, survey.profile.lateness
    if (repeats := keys.repeats) is None:
        return
    column, longest = written(repeats.column), 0 if late is None else late.longest
    apart = "" if not repeats.span else f", up to {rounded_duration(repeats.span)} after the first"
    unique = share(keys.rows - repeats.rows, keys.rows)
    again = f"{counted(repeats.rows, 'row')} repeat{'s' * (repeats.rows == 1)}"
    yield f"Repeats: {column} is {unique} unique; {again} one that came before{apart}."
    by = "" if key == (repeats.column,) else f" by {column}"
    within = duration(roomy(max((repeats.span or 0) + 1, longest)))
    yield f"  If they are the same event again, `distinct {written(name)}{by} within {within}` drops them."
    if longest:
        late_by = rounded_duration(longest)
        yield f"  A shorter `within` also drops rows later than that, repeated or not: here rows are {late_by} late."


def _change_words(survey: Survey, name: str) -> Iterator[str]:
    """What to do with change events, whose key is inside."""
    if (path := changed_key(survey.columns)) is not None:
        yield "Change events: the rows are in `before` and `after`, and so is their key."
        yield f"  Take it out with `rekey {written(name)} by {path}`, then `to_table ... delete when op = 'd'`."


def _entity_words(entity: Entity) -> str:
    values = f"{' + '.join(entity.columns)} ({counted(entity.values, 'value')}"
    return f"{values}, {counted(entity.shared, 'row')} repeated)" if entity.shared else f"{values})"


def _declaration(survey: Survey, kind: Kind, name: str, key: tuple[str, ...]) -> list[str]:
    lines = [f"{kind} {written(name)} ("]
    declared = [(written(c.name), type_text(c.type), _remark(survey, c)) for c in survey.columns]
    widest = max(len(column) for column, _, _ in declared)
    texts = [
        f"  {column:<{widest}} {type}" + "," * (i + 1 < len(declared)) for i, (column, type, _) in enumerate(declared)
    ]
    end = max((len(t) for t, (_, _, remark) in zip(texts, declared, strict=True) if remark and len(t) < 60), default=0)
    lines += [
        f"{text:<{end}}  -- {remark}" if remark else text for text, (_, _, remark) in zip(texts, declared, strict=True)
    ]
    options = "".join(f", {string(option)} = {string(value)}" for option, value in _options(survey))
    lines.append(")")
    lines.append(f"from files (path = {string(survey.found.path)}, format = {string(survey.found.format)}{options})")
    clauses = [f"key {', '.join(map(written, key))}"] if key else []
    if survey.clocks:
        clauses.append(f"timestamp {survey.clocks[0].clause}")
    if kind == "table" and (survey.clocks or survey.of_changes):
        clauses.append(f"materialize versioned (retention = {duration(_retention(survey))})")
    lines += clauses
    lines[-1] += ";"
    return lines


def _options(survey: Survey) -> tuple[tuple[str, str], ...]:
    return (*survey.headers.options, *survey.found.options)


def _retention(survey: Survey) -> int:
    """A week, or longer if the table's own rows need it."""
    found = survey.profile.lateness
    return max(_WEEK, roomy(found.longest)) if found is not None else _WEEK


def _remark(survey: Survey, column: DataColumn) -> str:
    nulls, rows = survey.profile.nulls[column.name], survey.profile.rows
    notes = [note for note in column.notes if note != "without a value"]
    if column.absent:
        notes.append(f"not in {column.absent} of {len(survey.sample.files)} files")
    if column.from_path:
        notes.append("from the path")
    if nulls:
        notes.insert(0, "only nulls" if nulls == rows else f"{share(nulls, rows)} null")
    return "; ".join(notes)
