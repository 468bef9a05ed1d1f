"""Translates published cases of OpenMLDB into `openmldb.json`, once: ``python -m tests.within.translate FOLDER``.

FOLDER is a clone of ``4paradigm/OpenMLDB`` (Apache License 2.0). Of each of its cases over ``ROWS_RANGE`` the facts are
kept: the rows, the window, the calls, and what they give; and of each that is not ours, why.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

TARGET = Path(__file__).with_name("openmldb.json")
_MS = {"": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_TYPES = {"bool": "boolean", "int16": "smallint", "int32": "int", "int64": "bigint", "int": "int", "bigint": "bigint",
          "smallint": "smallint", "float": "float", "double": "double", "string": "string", "date": "date",
          "timestamp": "timestamp"}  # fmt: skip
_CALLS = {"sum": "sum({})", "count": "count({})", "min": "min({})", "max": "max({})", "avg": "avg({})",
          "distinct_count": "count(distinct {})"}  # fmt: skip
_BOUND = re.compile(r"between (\S+) preceding and (current row|\S+ preceding) ?(.*)$")
_WINDOW = re.compile(r"(\w+) as \( ?(union .+? )?partition by (.+?) order by (\S+) (rows_range .+?) ?\)(?=,| ?;| ?$)")
_CALL = re.compile(r"^(\w+) ?\( ?([^()]*) ?\) over (\w+)(?: (?:as )?(\w+))?$")
_WHERE = re.compile(r"^([\w*]+) ?, ?(?:(\w+)|(\w+) ?(<=|>=|!=|=|<|>) ?(\w+))$")
_COLUMN = re.compile(r"^(?:[\w{}]+\.)?(\w+)$")


class NotOurs(Exception):
    """Why a case is not translated."""


def translated(case: dict[str, Any]) -> list[dict[str, Any]]:
    """The facts of a case, by window. Raises `NotOurs`."""
    expected, inputs = case.get("expect") or {}, case.get("inputs") or []
    if expected.get("success") is False:
        raise NotOurs("it expects an error")
    if case.get("dataProvider"):
        raise NotOurs("it stands for several, made by templates")
    if "sql" not in case or not inputs or not (rows := _rows(inputs[0])) or not (right := _rows(expected)):
        raise NotOurs("it has no rows, or expects none")
    if "batch_request" in case or len(right) != len(rows):
        raise NotOurs("it asks with rows of its own, or for some of them")
    if "batch-unsupport" in str(case.get("mode", "")):
        raise NotOurs("it is only right in the order of its own requests")
    sql = " ".join(re.sub(r"--[^\n]*", "", case["sql"]).replace("`", "").split()).strip()
    sql = re.sub(rf"\b{re.escape(inputs[0].get('name') or '{0}')}\b", "{0}", sql)
    head = re.match(r"^select (.+?) from \{0\} window (.+)$", sql, re.IGNORECASE)
    if head is None or set(re.findall(r"\{\d\}", sql)) != {"{0}"}:
        raise NotOurs("it joins, filters, groups or nests queries, or has a window over several tables")
    columns = {name: _type(type) for name, type in (one.rsplit(" ", 1) for one in _listed(inputs[0]["columns"]))}
    windows = {
        found.group(1): found.groups()[1:] for found in _WINDOW.finditer(head.group(2).lower().rstrip("; ") + ";")
    }
    plain, calls = dict[int, str](), dict[str, dict[int, str]]()
    for place, item in enumerate(re.split(r",(?![^()]*\))", head.group(1))):
        column, call = _COLUMN.match(item.strip()), _CALL.match(item.strip().lower())
        if column is not None:
            plain[place] = column.group(1)
        elif call is not None:
            calls.setdefault(call.group(3), {})[place] = _call(call.group(1), call.group(2).strip())
        else:
            raise NotOurs("its items are expressions of its own language")
    if not calls.keys() <= windows.keys():
        raise NotOurs("its window counts rows, or has attributes of its own")
    return [
        _windowed(columns, rows, list(plain.values()), list(own.values()), windows[name],
                  [[row[place] for place in (*plain, *own)] for row in right])
        for name, own in calls.items()
    ]  # fmt: skip


def _made(case: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The cases that a template stands for, or the case itself, with what their names end with."""
    words, expected = case.get("dataProvider") or [], case.get("expectProvider") or {}
    if len(words) != 1 or not expected:
        return [("", case)]
    whole = {name: part for name, part in case.items() if name != "dataProvider"}
    return [
        (
            f" {word}",
            {
                **whole,
                "sql": case["sql"].replace("d[0]", word),
                "expect": {**(case.get("expect") or {}), **expected.get(n, {})},
            },
        )
        for n, word in enumerate(words[0])
    ]


def _rows(table: dict[str, Any]) -> list[list[Any]]:
    """The rows of a table, written as a list or as lines."""
    if "columns" not in table:
        return []
    if table.get("rows") is not None or not isinstance(table.get("data"), str):
        return table.get("rows") or []
    types = [one.rsplit(" ", 1)[1].lower() for one in _listed(table["columns"])]
    lines = [line.split(",") for line in table["data"].splitlines() if line.strip()]
    return [[_read(text.strip(), type) for text, type in zip(line, types, strict=False)] for line in lines]


def _read(text: str, type: str) -> Any:
    if text.lower() == "null":
        return None
    if type in ("float", "double"):
        return float(text)
    if type == "bool":
        return text.lower() == "true"
    return text if type in ("string", "date") else int(text)


def _windowed(
    columns: dict[str, str], rows: list[list[Any]], items: list[str], calls: list[str], window: tuple[str, ...],
    expected: list[list[Any]],
) -> dict[str, Any]:  # fmt: skip
    _, keyed, ordered, bounds = window
    keys, time = [_column(one) for one in keyed.split(",")], _column(ordered)
    bound = _BOUND.search(bounds)
    if bound is None:
        raise NotOurs("its window has no bound, or one that is not part of it")
    attributes = bound.group(3).strip()
    wanted = {*keys, time, *items, *re.findall(r"r\.(\w+)", " ".join(calls))}
    if not wanted <= set(columns):
        raise NotOurs("it has columns with names of its own")
    if columns.get(time) not in ("timestamp", "bigint") or any(columns.get(k) in ("float", "double") for k in keys):
        raise NotOurs("its key or its order is of a type that is none here")
    added = re.findall(r"(?:sum|avg)\(r\.(\w+)", " ".join(calls))
    if any(columns[name] in ("string", "date", "timestamp", "boolean") for name in added):
        raise NotOurs("it adds up what are no numbers here")
    order = list(columns)
    taken = [{name: row[order.index(name)] for name in order if name in wanted} for row in rows]
    if any(row[name] is None for row in taken for name in (*keys, time)):
        raise NotOurs("a key or a time is null")
    if any(row[time] < 0 for row in taken):
        raise NotOurs("a time lies before 1970")
    ties = Counter((*(str(row[k]) for k in keys), row[time]) for row in taken).most_common(1)[0][1] > 1
    strictly = bound.group(2) == "1 preceding"
    if attributes == "exclude current_row" and not ties:
        strictly = True
    elif attributes:
        raise NotOurs(f"`{attributes.split(' ')[0]}` is an attribute of its own")
    if bound.group(2) not in ("current row", "0 preceding", "0s preceding", "1 preceding"):
        raise NotOurs("its window ends some time before the row")
    taken.sort(key=lambda row: row[time])
    return {
        "columns": {name: columns[name] for name in order if name in wanted}, "keys": keys, "time": time,
        "before": _length(bound.group(1)), "strictly": strictly, "items": items, "calls": calls, "rows": taken,
        "expected": expected,
    }  # fmt: skip


def _listed(columns: Any) -> list[str]:
    return [one.strip() for one in (columns.split(",") if isinstance(columns, str) else columns)]


def _type(name: str) -> str:
    if name.lower() not in _TYPES:
        raise NotOurs(f"its type {name} is none here")
    return _TYPES[name.lower()]


def _column(text: str) -> str:
    found = _COLUMN.match(text.strip())
    if found is None:
        raise NotOurs("its key or its order is an expression")
    return found.group(1)


def _call(function: str, argument: str) -> str:
    plain, _, where = function.partition("_")
    found = _WHERE.match(argument)
    if where == "where" and plain in _CALLS and found is not None:
        column, flag, one, sign, other = found.groups()
        if not any((text or "").isdigit() for text in (one, other)) and flag is None:
            raise NotOurs("its items are expressions of its own language")
        condition = f"r.{flag}" if flag else " ".join(t if t.isdigit() else f"r.{t}" for t in (one, other))
        condition = condition if flag else f" {sign} ".join(condition.split(" "))
        return _CALLS[plain].format(f"if({condition}, {'1' if column == '*' else f'r.{column}'}, null)")
    if function not in _CALLS:
        raise NotOurs(f"`{function}` is a function of its own, or counts rows")
    if argument == "*":
        return "count(*)"
    found = _COLUMN.match(argument)
    if found is None:
        raise NotOurs("its items are expressions of its own language")
    return _CALLS[function].format(f"r.{found.group(1)}")


def _length(text: str) -> int:
    found = re.match(r"^(\d+)([smhd]?)$", text)
    if found is None or not int(found.group(1)):
        raise NotOurs("its window has no bound, or one that is not part of it")
    return int(found.group(1)) * _MS[found.group(2)]


def main(folder: Path) -> None:
    """Writes the file."""
    ours: dict[str, dict[str, Any]] = {}
    others: dict[str, str] = {}
    seen = set[str]()
    for path in sorted((folder / "cases").rglob("*.yaml")):
        text = path.read_text()
        if "rows_range" not in text.lower():
            continue
        for number, case in enumerate((yaml.safe_load(text) or {}).get("cases") or []):
            if "rows_range" not in str(case.get("sql", "")).lower():
                continue
            name = f"{path.relative_to(folder / 'cases')}#{case.get('id', number)}"
            facts = json.dumps([case.get(part) for part in ("sql", "inputs", "expect")], sort_keys=True, default=str)
            if facts in seen:
                continue
            seen.add(facts)
            for more, one in _made(case):
                try:
                    parts = translated(one)
                    ours |= {f"{name}{more} {n}" if len(parts) > 1 else f"{name}{more}": p for n, p in enumerate(parts)}
                except NotOurs as error:
                    others[f"{name}{more}"] = str(error)
    lines = [f"{json.dumps(name)}: {json.dumps(case, default=str)}" for name, case in sorted(ours.items())]
    reasons = [f"{json.dumps(name)}: {json.dumps(why)}" for name, why in sorted(others.items())]
    body = '{"ours": {\n' + ",\n".join(lines) + '\n},\n"not ours": {\n' + ",\n".join(reasons) + "\n}}\n"
    TARGET.write_text(body)
    print(len(ours), "ours", len(others), "not")
    for why, count in Counter(others.values()).most_common():
        print(f"{count:4} {why}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
