"""Writes the page of the functions, and the list in the page of VSC112, from the catalogue.

``python -m tools.docs.functions``; a test says when that has been forgotten.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from pathlib import Path

from vsc.plan.functions import AGGREGATES, FUNCTIONS, TOPICS, Function

__all__ = ["pages"]

DOCS = Path(__file__).resolve().parents[2] / "docs"
INTRODUCTION = """\
# Functions

Every function of the language means what it means in Spark SQL in ANSI mode. Unless its line says otherwise, it is null
if an argument is null. What *fails* on a row stops the query, or drops the row with `vsc run --on-error drop`: see
[expressions](language.md#expressions). Text is cast to what a function takes, as in Spark, and may fail in that.

A call also fails if it would make a text or binary of more than 100 million characters or bytes. Unlike in Spark, a
date or timestamp out of range fails where Spark wraps around or takes the last one there is: in `cast`, `date_add`,
`datediff`, `from_unixtime`. So does binary that is not UTF-8 where it is cast to text; `try_cast` makes null of it. In
`from_json` a time out of range is null, and so is JSON that is nested more than 200 deep. Half an emoji (`"\\ud83d"`)
is read as `?`, as in Spark.

A *regex* means what it means in Java. It takes time in proportion to the text, whatever the pattern,
and so does `like`: RE2 matches it. So it has what both have: `[...]`, `(...)`, `(?:...)`, `|`, `*`, `+`, `?`, `{n,m}`,
the same with `?` behind them, `.`, `^`, `$`, `\\d \\w \\s \\A \\z`, escapes of characters, and `(?i)` in front of the
whole, for ASCII letters. Refused are references to groups, what looks ahead or behind, a repeated part that can be
empty, and in `split` and `regexp_replace` also `$` and a pattern that can match nothing. One that is not a literal,
such as a column, is read for each record: what would be refused fails, and so does a group that it does not have.

A *pattern* of times has `yyyy yy M MM MMM MMMM d dd H HH h hh a m mm s ss S X XX XXX x xx xxx Z`, text in single
quotes, and punctuation. In `date_format` and `from_unixtime` it may also have `E` to `EEEE` (the day of the week), `D`
to `DDD` (the day of the year) and `Q` to `QQQQ` (the quarter). All of them mean what they mean in Java, in English. A
pattern that is not a literal is read for each record, and fails if it has other letters.

A *zone* is an IANA name (`'Europe/Berlin'`), a distance from UTC (`'+02:00'`) or `'UTC'`, which it is if there is none.
With a zone, a part of a time is what clocks there show: `hour(at, 'Europe/Berlin')`, and the local day is
`cast(from_utc_timestamp(at, 'Europe/Berlin') as date)`. The compiler knows a wrong constant; one that a row has fails.
Unlike in Spark, so do abbreviations (`'PST'`, `'IST'`). A local time that clocks skip is as much later as they are put
forward, one that they show twice is the earlier one: in `to_utc_timestamp`, and in `date_trunc` with a zone, where the
start of a day or less that they show twice is the one as far from UTC as the timestamp. All of it is as in Spark.

`python -m tools.docs.functions` writes this page from the catalogue.
"""


def pages() -> dict[Path, str]:
    """The pages that hold something from the catalogue, as they should be."""
    unknown = DOCS / "diagnostics" / "VSC112.md"
    return {DOCS / "functions.md": _reference(), unknown: _with_lists(unknown.read_text(encoding="utf-8"))}


def _reference() -> str:
    parts = [INTRODUCTION]
    parts += [_section(topic, functions) for topic, functions in TOPICS.items()]
    aggregates = (
        "They stand in an [`aggregate`](language.md#aggregates-and-windows) only. A variance beyond the range of a\n"
        "double is infinite; in Spark it may also be NaN. Spark has no `collect_top`: it takes 1 to 1,000 rows,\n"
        "without those whose `order` is null.\n"
    )
    return "\n".join([*parts, _section("Aggregates", AGGREGATES.values(), aggregates)])


def _section(title: str, functions: Iterable[Function], text: str = "") -> str:
    lines = [f"## {title}", "", *([text] if text else []), "| call | gives | fails on |", "|---|---|---|"]
    lines += [f"| `{f.signature}` | {f.about} | {f.fails} |" for f in functions]
    return "\n".join(lines).replace(" |  |", " | |") + "\n"


def _with_lists(page: str) -> str:
    """A page with both its lists of names, of functions and of aggregates, in their order."""
    lists = iter((FUNCTIONS, AGGREGATES))

    def written(match: re.Match[str]) -> str:
        return textwrap.fill(" ".join(f"`{name}`" for name in sorted(next(lists))), 118) + "\n"

    return re.sub(r"^(?:(?:`\w+` ?)+\n)+", written, page, flags=re.MULTILINE)


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
