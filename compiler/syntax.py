"""The syntax tree: what was written, with the place of every part. Nothing is resolved yet.

There is one frozen class per form, named as in ``docs/language.md``. Names have no backticks, strings are unescaped,
durations are milliseconds. A variable ``${name}`` that was not given stays a `Variable`, or stays inside the text of a
connector option's string.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from typing import Literal as Choice

from vsc.compiler.source import Span
from vsc.plan.record import record
from vsc.plan.types import DataType

# ---------------------------------------------------------------------------------------------- names and literals


@record
class Name:
    """An identifier; `quoted` if it was written in backticks."""

    text: str
    span: Span
    quoted: bool = False


@record
class Literal:
    """A constant. `value`: None, bool, int, Decimal (``1.5``), float (``1e6``), str.

    `of_variables`: whether a ``${name}`` is part of it.
    """

    value: bool | int | Decimal | float | str | None
    span: Span
    of_variables: bool = False


@record
class Duration:
    """A duration in milliseconds. It is negative only if an option's literal was written with ``-``."""

    milliseconds: int
    span: Span


@record
class CalendarLength:
    """``2 weeks``, ``1 month``, ``1 year``: the size of a window by the calendar. Either `weeks` or `months` is 0.

    As an expression it is only the value of a constant or a variable.
    """

    weeks: int
    months: int
    span: Span


@record
class Variable:
    """``${name}`` in place of a whole literal."""

    name: str
    span: Span


@record
class WrittenType:
    """A type and its place."""

    type: DataType
    span: Span


# ------------------------------------------------------------------------------------------------------ expressions


@record
class ColumnRef:
    """``a`` or ``a.b.c``: what each part means (input, column, struct field) is decided by `resolve`."""

    parts: tuple[Name, ...]
    span: Span


@record
class Constant:
    """The name of a constant in an expression, the `value` that ``let`` gives it, and the `literal` that this makes."""

    name: Name
    value: Expression
    span: Span
    literal: Literal | Duration | CalendarLength | None


@record
class FieldOf:
    """``(e).f``: a member of a struct that is given by an expression other than a plain path."""

    base: Expression
    name: Name
    span: Span


@record
class Element:
    """``e[i]``."""

    base: Expression
    index: Expression
    span: Span


@record
class FunctionCall:
    """``f(a, b)``, ``count(*)`` (`star`), ``count(distinct e)`` (`distinct`).

    `names` has one entry per argument of ``struct(a, b as c)``, None without ``as``. No other call has names.
    ``collect_top(a, 3 by b desc)`` has three arguments and an `order`; ``last(e) ignore nulls`` is `ignoring_nulls`,
    ``max(e) over 1 day`` has `over`.
    """

    name: Name
    args: tuple[Expression, ...]
    span: Span
    distinct: bool = False
    star: bool = False
    names: tuple[Name | None, ...] = ()
    order: Choice["", "asc", "desc"] = ""
    ignoring_nulls: bool = False
    over: Duration | None = None


@record
class Lambda:
    """``x -> e``, ``(x, i) -> e``: what a function does with each element of an array."""

    parameters: tuple[Name, ...]
    body: Expression
    span: Span


@record
class Unary:
    """``not e``, ``-e``."""

    op: Choice["not", "-"]
    arg: Expression
    span: Span


@record
class Link:
    """An operator of a chain with its right operand. `op_span` is the place of the operator itself."""

    op: Choice["or", "and", "+", "-", "||", "*", "/", "%"]
    op_span: Span
    operand: Expression


@record
class Chain:
    """Operators of the same precedence, read from left to right: ``a + b - c``. Any chain is one level deep."""

    first: Expression
    rest: tuple[Link, ...]
    span: Span


@record
class Comparison:
    """A comparison of two values; ``!=`` is read as ``<>``. `op_span` is the place of the operator itself."""

    op: Choice["=", "<>", "<", "<=", ">", ">="]
    left: Expression
    right: Expression
    span: Span
    op_span: Span


@record
class IsNull:
    """``e is [not] null``."""

    arg: Expression
    negated: bool
    span: Span


@record
class In:
    """``e [not] in (a, b)``."""

    arg: Expression
    options: tuple[Expression, ...]
    negated: bool
    span: Span


@record
class Between:
    """``e [not] between low and high``."""

    arg: Expression
    low: Expression
    high: Expression
    negated: bool
    span: Span


@record
class Like:
    """``e [not] like pattern``."""

    arg: Expression
    pattern: Expression
    negated: bool
    span: Span


@record
class When:
    """One branch of a ``case``."""

    condition: Expression
    value: Expression


@record
class Case:
    """``case [operand] when .. then .. else .. end``."""

    operand: Expression | None
    branches: tuple[When, ...]
    otherwise: Expression | None
    span: Span


@record
class CastTo:
    """``cast(e as t)`` or ``try_cast(e as t)`` (`safe`)."""

    arg: Expression
    type: WrittenType
    safe: bool
    span: Span


Expression = (
    Literal | Duration | CalendarLength | Variable | ColumnRef | Constant | FieldOf | Element | FunctionCall | Lambda
    | Unary | Chain | Comparison | IsNull | In | Between | Like | Case | CastTo
)  # fmt: skip


# ------------------------------------------------------------------------------------------------- parts of clauses


@record
class ColumnNames:
    """``(a, b)``, the value of an option that names columns."""

    names: tuple[Name, ...]
    span: Span


@record
class Option:
    """``name = literal`` in an options list; `quoted` names (in ``'...'``) are Spark options."""

    name: Name
    value: Literal | Duration | CalendarLength | Variable | ColumnNames
    quoted: bool
    span: Span


@record
class ConnectorClause:
    """``kind (options)`` after ``from`` or ``to``."""

    kind: Name
    options: tuple[Option, ...]
    span: Span


@record
class ColumnDecl:
    """A declared column."""

    name: Name
    type: WrittenType
    span: Span


@record
class MaterializeClause:
    """``materialize [as STORE] [versioned (...) | unversioned [(...)]]``.

    `kind` is None if neither word was written. `kind_span` covers the word and its options.
    """

    store: Name | None
    kind: Choice["versioned", "unversioned"] | None
    options: tuple[Option, ...]
    kind_span: Span
    span: Span


@record
class SelectItem:
    """An expression with the name given by ``as``, if any."""

    expr: Expression
    alias: Name | None
    span: Span


@record
class StarItem:
    """``*`` or ``a.*``, each optionally with ``except (c, ...)``."""

    qualifier: Name | None
    excluded: tuple[Name, ...]
    span: Span


Item = SelectItem | StarItem


@record
class KeyItem:
    """``EXPR [as NAME]`` in ``on``, ``by`` and ``group by``."""

    expr: Expression
    alias: Name | None
    span: Span


@record
class Input:
    """An input node, with its alias, if any. The alias hides the node's name."""

    name: Name
    alias: Name | None
    span: Span


@record
class Within:
    """``within DURATION``, or ``within (before = D, after = D)``: `sides` are then these options, at least one of them,
    and `duration` is None."""

    duration: Duration | None
    sides: tuple[Option, ...]
    span: Span


@record
class Grace:
    """``grace DURATION`` of a join."""

    duration: Duration | Variable
    span: Span


@record
class Correct:
    """``correct [by EXPR [as NAME], ...] within DURATION`` of a join."""

    by: tuple[KeyItem, ...]
    within: Duration
    span: Span


@record
class MaxAge:
    """``max_age DURATION`` of a join."""

    duration: Duration
    span: Span


@record
class Window:
    """``window KIND (options)`` and the emit clause after it (None: not written)."""

    kind: Name
    options: tuple[Option, ...]
    emit: Choice["changes", "final"] | None
    emit_span: Span | None
    span: Span


# ------------------------------------------------------------------------------------------------------- operations


class Facts:
    """What the passes need to know about an operation.

    `word` is the keyword that it begins with. `reads` is the only kind of node that it takes (None: more than one).
    `makes` is the kind of node that it makes (None: this depends on its inputs). With `keeps_windows`, the table that
    it makes has the windows of its input. With `row_by_row`, each of its rows is computed from one row of the input.
    """

    __slots__ = ()

    word: str
    reads: Choice["stream", "table"] | None = None
    makes: Choice["stream", "table"] | None = None
    keeps_windows = False
    row_by_row = False

    inputs: Any = property(lambda self: (self.input,), doc="The nodes that it reads, as they are written.")
    materialize: Any = None


@record
class Filter(Facts):
    """``filter X where EXPR [MATERIALIZE]``."""

    word = "filter"
    row_by_row = keeps_windows = True

    input: Input
    predicate: Expression
    materialize: MaterializeClause | None
    span: Span


@record
class Map(Facts):
    """``map X select ITEMS [timestamp EXPR] [MATERIALIZE]``."""

    word = "map"
    row_by_row = keeps_windows = True

    input: Input
    items: tuple[Item, ...]
    timestamp: Expression | None
    materialize: MaterializeClause | None
    span: Span


@record
class Explode(Facts):
    """``explode S by EXPR as NAME``, or ``as (POSITION, NAME)``; ``explode T by EXPR as (POSITION, NAME)
    [MATERIALIZE]``."""

    word = "explode"
    keeps_windows = True

    input: Input
    expr: Expression
    position: Name | None
    alias: Name
    materialize: MaterializeClause | None
    span: Span

    @property
    def names(self) -> tuple[Name, ...]:
        """The names of the columns that it gives."""
        return (self.alias,) if self.position is None else (self.position, self.alias)


@record
class Rekey(Facts):
    """``rekey S by EXPR [as NAME], ...``."""

    word = "rekey"
    reads = makes = "stream"

    input: Input
    keys: tuple[KeyItem, ...]
    span: Span


@record
class Merge(Facts):
    """``merge S1, S2, ...``."""

    word = "merge"
    reads = makes = "stream"

    inputs: tuple[Input, ...]
    span: Span


@record
class ToTable(Facts):
    """``to_table S [delete when EXPR] [MATERIALIZE]``."""

    word = "to_table"
    reads = "stream"
    makes = "table"

    input: Input
    delete_when: Expression | None
    materialize: MaterializeClause | None
    span: Span


@record
class ToStream(Facts):
    """``to_stream T``."""

    word = "to_stream"
    reads = "table"
    makes = "stream"

    input: Input
    span: Span


@record
class Join(Facts):
    """``[left|outer] join A with B [on ...] [within ...] [grace ...] [correct ...] [strictly before] [max_age ...]
    [drop older_than_retention] select ITEMS [MATERIALIZE]``: every join. A clause without a value is the place where it
    is.
    """

    word = "join"

    mode: Choice["inner", "left", "outer"]
    left: Input
    right: Input
    on: tuple[KeyItem, ...]
    within: Within | None
    grace: Grace | None
    correct: Correct | None
    strictly_before: Span | None
    max_age: MaxAge | None
    drop_older: Span | None
    items: tuple[Item, ...]
    materialize: MaterializeClause | None
    span: Span
    mode_span: Span

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Its left and its right input."""
        return self.left, self.right


@record
class Aggregate(Facts):
    """``aggregate X group by ... [WINDOW] select ITEMS [MATERIALIZE]``."""

    word = "aggregate"
    makes = "table"

    input: Input
    group: tuple[KeyItem, ...]
    window: Window | None
    items: tuple[Item, ...]
    materialize: MaterializeClause | None
    span: Span


@record
class Suppress(Facts):
    """``suppress T until window closes`` (`limit` is None) or ``until time limit D``, with its bounds."""

    word = "suppress"
    reads = makes = "table"
    keeps_windows = True

    input: Input
    limit: Duration | Variable | None
    options: tuple[Option, ...]
    span: Span


@record
class Materialize(Facts):
    """``materialize T [as NAME] [versioned (...) | unversioned [(...)]]`` as a separate node."""

    word = "materialize"
    reads = makes = "table"
    keeps_windows = True

    input: Input
    materialize: MaterializeClause
    span: Span


@record
class Distinct(Facts):
    """``distinct S [by EXPR, ...] within D [grace D]``."""

    word = "distinct"
    reads = makes = "stream"

    input: Input
    by: tuple[Expression, ...]
    within: Duration
    grace: Grace | None
    span: Span


@record
class Reorder(Facts):
    """``reorder S within D``."""

    word = "reorder"
    reads = makes = "stream"

    input: Input
    within: Duration
    span: Span


Operation = (
    Distinct | Filter | Map | Explode | Rekey | Merge | ToTable | ToStream | Join | Aggregate | Suppress | Materialize
    | Reorder
)  # fmt: skip


# ------------------------------------------------------------------------------------------------------- statements


@record
class TopologyName:
    """``topology NAME [(clock = '...')];``."""

    name: Name
    options: tuple[Option, ...]
    span: Span


@record
class ConstantDecl:
    """``let NAME = EXPR;``. Where it is a computed duration or length by the calendar, `value` is the result.

    `literal`: what it amounts to where the language takes a literal, if anything. `of_variables`: whether a ``${name}``
    is part of it, or of a constant in it.
    """

    name: Name
    value: Expression
    span: Span
    literal: Literal | Duration | CalendarLength | None
    of_variables: bool


@record
class FunctionDecl:
    """``function NAME (columns) returns TYPE from 'MODULE:NAME' [vectorized];``."""

    name: Name
    parameters: tuple[ColumnDecl, ...]
    returns: WrittenType
    reference: str
    reference_span: Span
    vectorized: bool
    span: Span


@record
class Include:
    """``include 'PATH';``. The statements of that file are read in its place."""

    path: str
    path_span: Span
    span: Span


@record
class Reordered:
    """``reorder within D`` behind the event time of a source."""

    within: Duration
    span: Span


@record
class SourceDecl:
    """``stream|table|global table NAME (columns) from CONNECTOR ...;``. `kind_span` covers the words of the kind."""

    kind: Choice["stream", "table", "global table"]
    name: Name
    columns: tuple[ColumnDecl, ...]
    connector: ConnectorClause
    key: tuple[Name, ...]
    timestamp: Expression | None
    delete_when: Expression | None
    materialize: MaterializeClause | None
    span: Span
    kind_span: Span
    reordered: Reordered | None = None


@record
class DerivedDecl:
    """``stream|table NAME = OPERATION;``. `kind_span` covers the word ``stream`` or ``table``."""

    kind: Choice["stream", "table"]
    name: Name
    operation: Operation
    span: Span
    kind_span: Span


LOST = ("dropped", "missed")
"""What a sink can write instead of a node: the records that were dropped, or that found no row."""


@record
class SinkDecl:
    """``sink NAME to CONNECTOR;``, or ``sink dropped|missed of NODE to CONNECTOR;``.

    Without `of`, the name can be that of a node or one of `LOST`; `Topology.lost` decides.
    """

    name: Name
    of: Name | None
    connector: ConnectorClause
    span: Span


Statement = TopologyName | ConstantDecl | FunctionDecl | SourceDecl | DerivedDecl | SinkDecl


@record
class File:
    """A parsed file: its statements in order, without those that could not be parsed.

    `broken` has the names that the missing statements would have declared, if they can be read; `begun` the beginnings
    of names on which a statement breaks off, empty if it does so before its name. Uses of these names must not be
    reported. `unfinished` has the names of nodes whose statements lack their ``;``: what is wrong with a statement that
    reads one of them is not known yet.
    """

    statements: tuple[Statement, ...]
    broken: tuple[Name, ...] = ()
    begun: tuple[str, ...] = ()
    unfinished: frozenset[str] = frozenset()
