"""Every diagnostic code, with its severity and title. A code is never reused with another meaning.

The first digit is the area: 0 syntax, 1 names, kinds and structure, 2 schemas, types and keys, 3 versioning, 4 time,
5 connectors, 9 run time. Each code has a page, ``docs/diagnostics/VSCnnn.md``, which `vsc explain` prints.
VSC190 is retired; it meant "a form that is not supported yet".
"""

from __future__ import annotations

from typing import NamedTuple

from vsc.compiler.diagnostics.model import Severity

__all__ = ["CODES", "Code"]


class Code(NamedTuple):
    """The severity of a code's findings, and a one-line title."""

    severity: Severity
    title: str


def _errors(titles: dict[str, str]) -> dict[str, Code]:
    return {code: Code("error", title) for code, title in titles.items()}


def _warnings(titles: dict[str, str]) -> dict[str, Code]:
    return {code: Code("warning", title) for code, title in titles.items()}


_SYNTAX = {
    "VSC001": "a character that is not part of the language",
    "VSC002": "an unclosed string or backtick name",
    "VSC003": "a malformed number, or one that runs into a word",
    "VSC004": "a malformed duration",
    "VSC005": "something else was expected here",
    "VSC006": "a missing semicolon",
    "VSC007": "a keyword that is not in lower case",
    "VSC008": "a sign from another language",
    "VSC009": "a missing `as`",
    "VSC010": "SQL that is written differently here",
    "VSC011": "a clause that is given twice",
    "VSC012": "a source without `from`",
    "VSC013": "a file that declares nothing",
    "VSC014": "a variable without a value, or with the wrong kind of value",
    "VSC015": "a text that is too long or nested too deeply",
    "VSC016": "an unknown or malformed type",
    "VSC017": "a reserved word as a name",
    "VSC018": "a computed global table",
    "VSC019": "chained comparisons",
    "VSC020": "a number or a duration that is too large",
    "VSC021": "`of` after a sink's node",
    "VSC022": "a missing comma",
    "VSC023": "brackets that do not match",
    "VSC024": "a merge conflict that is not resolved",
    "VSC025": "an operation or a query inside another one",
    "VSC026": "a placeholder of another tool",
    "VSC027": "a file that cannot be included",
    "VSC028": "a statement that an included file cannot have",
}

_STRUCTURE = {
    "VSC101": "a name that is declared twice",
    "VSC102": "`topology` twice, or not first in the file",
    "VSC103": "an unknown node",
    "VSC105": "nodes that read each other in a circle",
    "VSC106": "a node declared as the wrong kind",
    "VSC107": "an operation on the wrong kind of input",
    "VSC108": "a join of two streams without `within`",
    "VSC109": "a clause that does not apply here",
    "VSC110": "an unknown column",
    "VSC111": "a name that means several things",
    "VSC112": "an unknown function",
    "VSC113": "a name that is used as something else",
    "VSC114": "an unknown field of a struct",
    "VSC115": "an aggregate of a single row",
    "VSC116": "`event_time` or `revision` where there is none",
    "VSC117": "a column that is not in `group by`",
    "VSC118": "an aggregate inside an aggregate",
    "VSC120": "a global table is not allowed here",
    "VSC121": "two join inputs with the same name",
    "VSC122": "two stores with the same name",
    "VSC124": "an unknown option of a clause",
    "VSC125": "an option with an unsuitable value",
    "VSC126": "an option that is given twice",
    "VSC127": "an unknown kind of window",
    "VSC128": "a missing option of a clause",
    "VSC130": "`window closes` on a table without windows",
    "VSC131": "a join of tables with different windows",
    "VSC132": "lost records of a node that loses none",
    "VSC133": "a constant that cannot stand here",
    "VSC134": "a function with the name of a built-in one",
    "VSC135": "a reference that names no function",
}

_SCHEMAS = {
    "VSC201": "a column that is declared twice",
    "VSC202": "two names that differ only in case",
    "VSC203": "two columns with the same name",
    "VSC204": "a key column that is not declared",
    "VSC205": "a type that cannot be a key",
    "VSC206": "a column that is twice in the key",
    "VSC207": "a computed column without a name",
    "VSC208": "a key column that would change",
    "VSC209": "an unknown column in `except`",
    "VSC210": "a missing key",
    "VSC211": "inputs with different keys",
    "VSC212": "an `on` that does not match the right side's key",
    "VSC214": "a condition that is not boolean",
    "VSC215": "a type that no column can have",
    "VSC216": "an unknown input",
    "VSC217": "an `explode` of something that is neither an array nor a map",
    "VSC218": "a `merge` of streams with different columns or keys",
    "VSC220": "an operator on types that it does not support",
    "VSC221": "a function argument of the wrong type",
    "VSC222": "a function with the wrong number of arguments",
    "VSC223": "an impossible cast",
    "VSC225": "a function argument with an unsupported value",
    "VSC226": "values without a common type",
    "VSC227": "a branch of `case` or `if` whose condition is not boolean",
    "VSC228": "an expression that is too deep or too large",
    "VSC229": "a column name that vsc reserves",
}

_VERSIONING = {
    "VSC301": "`suppress` on a versioned table",
    "VSC302": "a versioned global table",
    "VSC303": "`grace` on a join with an unversioned table",
    "VSC304": "`grace` longer than the table's history retention",
    "VSC305": "wrong settings of a versioned store",
    "VSC306": "a versioned windowed table",
    "VSC307": "a clause about history on a join with an unversioned table",
    "VSC308": "`max_age` of rows whose times are not known",
    "VSC309": "a complete history where there can be none",
    "VSC310": "a complete history of inputs whose own is not",
    "VSC317": "`correct` on a join that cannot be corrected",
    "VSC318": "`correct` with a length that does not fit",
    "VSC315": "`expire` on a table whose rows do not expire",
    "VSC316": "an `expire` that cannot be",
}

_TIME = {
    "VSC402": "an event time of an unsuitable type",
    "VSC403": "rows without a time of their own",
    "VSC406": "an event time that is always later than the record's own",
    "VSC407": "a form that needs the clock of the input",
}

_CONNECTORS = {
    "VSC501": "an unknown connector",
    "VSC502": "a connector that cannot be used in this direction",
    "VSC503": "an unknown option of a connector",
    "VSC504": "a missing option of a connector",
    "VSC505": "a connector option with an unsuitable value",
    "VSC506": "connector options that exclude each other",
    "VSC507": "columns that `rate` does not provide",
    "VSC508": "columns that do not fit a Kafka format",
    "VSC509": "a column that the format cannot hold",
    "VSC510": "a column that clashes with one the sink adds",
    "VSC511": "an unknown time zone",
    "VSC512": "a time zone for a format without text",
    "VSC513": "a column that cannot hold what Kafka gives it",
    "VSC514": "options of a message format that do not fit",
    "VSC517": "a history of a table without versions",
    "VSC518": "unsuitable names for the times of a history",
    "VSC519": "a `timestamp` beside a history",
    "VSC520": "an upsert of records without a key",
}

_RUN_TIME = {
    "VSC900": "an error at run time",
    "VSC901": "a row that cannot be used",
    "VSC902": "an expression that failed on a record",
    "VSC903": "state that cannot be read",
    "VSC904": "a checkpoint that does not belong to this run",
    "VSC905": "a source that cannot be read",
    "VSC906": "a sink that cannot be written to",
    "VSC907": "a run that cannot start as requested",
    "VSC908": "a `suppress` that is full",
    "VSC909": "impossible event times",
    "VSC910": "an upgrade that cannot be done as requested",
    "VSC911": "a declared column that no file has",
    "VSC913": "a Spark without the jars of a connector",
    "VSC914": "a message schema that does not fit",
    "VSC915": "a position at which a source cannot begin",
    "VSC918": "a database that cannot be used",
    "VSC919": "a table that does not fit",
    "VSC920": "a row that a sink refuses",
    "VSC921": "a Spark without a lake format",
    "VSC922": "a lake table that does not fit",
    "VSC923": "a lake table that cannot be opened",
    "VSC924": "a lake table that cannot be read further",
    "VSC925": "a function that cannot be used",
    "VSC926": "a process of Spark's that was lost",
}

_WARNINGS = {
    "VSC029": "an `allow` that allows nothing",
    "VSC123": "a node that reaches no sink",
    "VSC311": "versions that are results, not history",
    "VSC312": "a versioned store after a join with an unversioned table",
    "VSC313": "a history that nothing reads",
    "VSC314": "a store whose grace is shorter than that of a join that reads it",
    "VSC321": "a time zone that applies to no column",
    "VSC331": "a comparison with null",
    "VSC332": "a value that is always null",
    "VSC333": "an expression that always fails",
    "VSC334": "a condition that is always the same",
    "VSC335": "a pattern that is probably a mistake",
    "VSC341": "a stream that is merged with itself",
    "VSC342": "two sinks that write to one place",
    "VSC343": "a sink that writes to its own source",
    "VSC344": "a record in too many windows",
    "VSC345": "a key that is null where a left join found nothing",
    "VSC346": "changes of a table that are lost in a stream",
    "VSC401": "a history without a time",
    "VSC404": "a grace that is shorter than records are held back",
    "VSC405": "a bound that makes results depend on the number of partitions",
    "VSC408": "a table that is behind the stream that looks into it",
    "VSC409": "a source whose last rows come out with the next ones",
}

CODES: dict[str, Code] = {
    **_errors(_SYNTAX),
    **_errors(_STRUCTURE),
    **_errors(_SCHEMAS),
    **_errors(_VERSIONING),
    **_errors(_TIME),
    **_errors(_CONNECTORS),
    **_errors(_RUN_TIME),
    **_warnings(_WARNINGS),
}
"""All codes."""
