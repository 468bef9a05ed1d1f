"""Builds statements, operations and their clauses, with one method for each grammar rule, as in `expressions`."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import replace
from typing import Any, NamedTuple

from vsc.compiler import syntax
from vsc.compiler.diagnostics.model import Finding, Label
from vsc.compiler.diagnostics.wording import code, named
from vsc.compiler.parser.expressions import ExpressionBuilder, Value
from vsc.compiler.parser.folding import folded
from vsc.compiler.parser.lexer import CALENDAR_UNITS
from vsc.compiler.parser.types import is_type_name
from vsc.compiler.parser.variables import REFERENCE
from vsc.compiler.source import Span

__all__ = ["StatementBuilder"]

_COMPILED = {"max_ahead"}
"""Connector options that become part of the plan, so a variable in them needs its value at compile time."""


class _Clause(NamedTuple):
    """A source clause: its keyword, its value and its place."""

    word: str
    value: Any
    span: Span


class _StoreKind(NamedTuple):
    kind: Any
    options: tuple[syntax.Option, ...]
    span: Span


class StatementBuilder(ExpressionBuilder):
    """Builds whole statements."""

    def _on_topology(
        self, span: Span, name: syntax.Name, options: tuple[syntax.Option, ...] | None
    ) -> syntax.TopologyName:
        return syntax.TopologyName(name, options or (), span)

    def _on_constant_declaration(self, span: Span, name: syntax.Name, value: syntax.Expression) -> syntax.ConstantDecl:
        computed = folded(value)
        shown = computed if isinstance(computed, syntax.Duration | syntax.CalendarLength) else value
        declared = syntax.ConstantDecl(name, shown, span, computed, self._of_variables(value.span))
        self.constants.setdefault(name.text, None if self.flawed else declared)
        return declared

    def _on_function_declaration(self, span: Span, name: syntax.Name, *rest: Any) -> syntax.FunctionDecl:
        *parameters, returns, token, vectorized = rest
        place = self.tokens.span(token)
        reference = str(self._on_string(place, token).value)
        declared = tuple(one for one in parameters if one is not None)
        return syntax.FunctionDecl(name, declared, returns, reference, place, vectorized is not None, span)

    def _on_vectorized(self, span: Span) -> Span:
        return span

    def _on_include(self, span: Span, token: int) -> syntax.Include:
        place = self.tokens.span(token)
        path = self._on_string(place, token).value
        return syntax.Include(str(path), place, span)

    def _on_constant_name(self, span: Span, token: int) -> Value:
        """The value of a constant that stands for a literal."""
        declared = self.constant(self.word(token))
        if declared is None:
            return syntax.Literal(None, span)
        value = declared.literal
        if value is None:
            message = f"the constant `{declared.name.text}` is not known before a run, as the value here must be"
            help = "give it a literal, or numbers, durations or texts with `+`, `-`, `*` and `||`"
            label = Label(declared.value.span, "its value")
            self.findings.append(Finding("VSC133", span, message, (label,), help))
            self.flawed = True
            return syntax.Literal(None, span)
        return replace(value, span=span)

    def _on_source(self, span: Span, kind: tuple[Any, Span], name: syntax.Name, *rest: Any) -> syntax.SourceDecl | None:
        columns = tuple(part for part in rest if isinstance(part, syntax.ColumnDecl))
        clauses: dict[str, _Clause] = {}
        for part in rest[len(columns) :]:
            clause = part if isinstance(part, _Clause) else _Clause("materialize", part, part.span)
            first = clauses.setdefault(clause.word, clause)
            if first is not clause:
                self._duplicate(first, clause)
        if "from" not in clauses:
            help = "write `from CONNECTOR (...)` after the columns, as in `from files (path = '...', format = 'json')`"
            self.report("VSC012", name.span, f"`{name.text}` does not say where its rows come from", help)
            return None
        values = {word: clause.value for word, clause in clauses.items()}
        timestamp, reordered = values.get("timestamp", (None, None))
        return syntax.SourceDecl(
            kind[0], name, columns, values["from"], values.get("key", ()), timestamp, values.get("delete when"),
            values.get("materialize"), span, kind[1], reordered,
        )  # fmt: skip

    def _duplicate(self, first: _Clause, second: _Clause) -> None:
        label = Label(first.span, f"the first `{first.word}`")
        message = f"a second `{second.word}` in one statement"
        self.findings.append(Finding("VSC011", second.span, message, (label,), "keep one of them"))

    def _on_derived(
        self, span: Span, kind: tuple[Any, Span], name: syntax.Name, operation: syntax.Operation
    ) -> syntax.DerivedDecl | None:
        if kind[0] == "global table":
            self.report("VSC018", kind[1], "a global table is always a source: it cannot be computed",
                        f"write {code(f'table {named(name.text)} = ...')}", "table")  # fmt: skip
            return None
        return syntax.DerivedDecl(kind[0], name, operation, span, kind[1])

    def _on_sink(
        self, span: Span, name: syntax.Name, of: syntax.Name | None, connector: syntax.ConnectorClause
    ) -> syntax.SinkDecl | None:
        if of is not None and name.text not in syntax.LOST:
            forms = [code(f"sink {lost} of {named(of.text)}") for lost in syntax.LOST]
            help = f"write {' or '.join(forms)}, or {code(f'sink {named(name.text)} to')} for a node"
            self.report("VSC021", name.span, f"`{name.text}` cannot be followed by `of`", help)
            return None
        return syntax.SinkDecl(name, of, connector, span)

    def _on_stream_kind(self, span: Span) -> tuple[str, Span]:
        return "stream", span

    def _on_table_kind(self, span: Span) -> tuple[str, Span]:
        return "table", span

    def _on_global_table_kind(self, span: Span) -> tuple[str, Span]:
        return "global table", span

    # clauses

    def _on_column(self, span: Span, name: syntax.Name, type: syntax.WrittenType) -> syntax.ColumnDecl:
        self._check_order(name, type.span)
        return syntax.ColumnDecl(name, type, span)

    def _check_order(self, name: syntax.Name, type_: Span) -> None:
        """For ``string id``, says that the name comes first, once, in place of what is wrong with the type."""
        if not self.findings or self.findings[-1].span != type_ or not is_type_name(name.text):
            return
        message = "the name of a column comes before its type"
        del self.findings[-1]
        if not any(finding.message == message for finding in self.findings):
            new = f"{self.tokens.text[type_.start : type_.end]} {name.text}"
            self.report("VSC016", name.span.to(type_), message, f"write `{new}`", new)

    def _on_from_clause(self, span: Span, connector: syntax.ConnectorClause) -> _Clause:
        return _Clause("from", connector, span)

    def _on_key_clause(self, span: Span, *names: syntax.Name) -> _Clause:
        return _Clause("key", names, span)

    def _on_timestamp_clause(
        self, span: Span, expression: syntax.Expression, reordered: syntax.Reordered | None
    ) -> _Clause:
        return _Clause("timestamp", (expression, reordered), span)

    def _on_reordered(self, span: Span, within: Value) -> syntax.Reordered:
        return syntax.Reordered(self._duration(within), span)

    def _on_delete_clause(self, span: Span, condition: syntax.Expression) -> _Clause:
        return _Clause("delete when", condition, span)

    def _on_connector(self, span: Span, kind: syntax.Name, *options: syntax.Option) -> syntax.ConnectorClause:
        for option in options:
            self._check_kept(option)
        return syntax.ConnectorClause(kind, options, span)

    def _check_kept(self, option: syntax.Option) -> None:
        """Refuses a constant made of variables: a connector's variables get their values when it runs, not before."""
        value = option.value
        if not isinstance(value, syntax.Literal):
            return
        declared = self.constants.get(self.tokens.text[value.span.start : value.span.end].strip("`"))
        if declared is not None and declared.of_variables:
            message = f"the constant `{declared.name.text}` is made of variables, whose values the plan would then hold"
            label = Label(declared.value.span, "its value")
            help = f"write the variables here, in quotes: `{option.name.text} = '${{...}}'`"
            self.findings.append(Finding("VSC133", value.span, message, (label,), help))
            self.flawed = True

    def _of_variables(self, span: Span) -> bool:
        """Whether a variable is part of an expression, or of a constant in it."""
        starts = self.tokens.starts
        words = map(self.tokens.word, range(bisect_left(starts, span.start), bisect_left(starts, span.end)))
        parts = ((word, self.constants.get(word.strip("`"))) for word in words)
        return any(REFERENCE.search(word) or (known is not None and known.of_variables) for word, known in parts)

    def _on_options(self, span: Span, *options: syntax.Option) -> tuple[syntax.Option, ...]:
        return options

    def _on_option(self, span: Span, name: tuple[syntax.Name, bool], value: Any) -> syntax.Option:
        if isinstance(value, syntax.Variable) and name[0].text in _COMPILED and not name[1]:
            value = self.value_of(value.name, value.span)
        return syntax.Option(name[0], value, name[1], span)

    def _on_column_names(self, span: Span, *names: syntax.Name) -> syntax.ColumnNames:
        return syntax.ColumnNames(names, span)

    def _on_calendar_length(self, span: Span, token: int) -> syntax.CalendarLength:
        number, *_, unit = re.findall(r"[0-9]+|[a-z]+", self.word(token))  # there may be a comment in between
        weeks, months = CALENDAR_UNITS[unit]
        return syntax.CalendarLength(int(number) * weeks, int(number) * months, span)

    def _on_option_name(self, span: Span, written: syntax.Name | int) -> tuple[syntax.Name, bool]:
        if isinstance(written, syntax.Name):
            return written, False
        return syntax.Name(self.word(written)[1:-1].replace("''", "'"), span), True

    def _on_materialized(
        self, span: Span, store: syntax.Name | None, kind: _StoreKind | None
    ) -> syntax.MaterializeClause:
        if kind is None:
            return syntax.MaterializeClause(store, None, (), span, span)
        return syntax.MaterializeClause(store, kind.kind, kind.options, kind.span, span)

    def _on_versioned(self, span: Span, options: tuple[syntax.Option, ...] | None) -> _StoreKind:
        return _StoreKind("versioned", options or (), span)

    def _on_unversioned(self, span: Span, options: tuple[syntax.Option, ...] | None) -> _StoreKind:
        return _StoreKind("unversioned", options or (), span)

    def _on_node(self, span: Span, name: syntax.Name) -> syntax.Input:
        return syntax.Input(name, None, span)

    def _on_input(self, span: Span, name: syntax.Name, alias: syntax.Name | None) -> syntax.Input:
        return syntax.Input(name, alias, span)

    def _on_keys(self, span: Span, *keys: syntax.KeyItem) -> tuple[syntax.KeyItem, ...]:
        return keys

    def _on_key_item(self, span: Span, expression: syntax.Expression, alias: syntax.Name | None) -> syntax.KeyItem:
        return syntax.KeyItem(expression, alias, span)

    def _on_items(self, span: Span, *items: syntax.Item) -> tuple[syntax.Item, ...]:
        return items

    def _on_select_item(
        self, span: Span, expression: syntax.Expression, alias: syntax.Name | None
    ) -> syntax.SelectItem:
        return syntax.SelectItem(expression, alias, span)

    def _on_star(self, span: Span, excluded: tuple[syntax.Name, ...] | None) -> syntax.StarItem:
        return syntax.StarItem(None, excluded or (), span)

    def _on_qualified_star(
        self, span: Span, base: syntax.Expression, excluded: tuple[syntax.Name, ...] | None
    ) -> syntax.StarItem:
        if isinstance(base, syntax.ColumnRef) and len(base.parts) == 1:
            return syntax.StarItem(base.parts[0], excluded or (), span)
        self.report("VSC005", base.span, "`.*` only follows the name of an input",
                    "write `INPUT.*`, or name each member")  # fmt: skip
        return syntax.StarItem(None, excluded or (), span)

    def _on_except(self, span: Span, *names: syntax.Name) -> tuple[syntax.Name, ...]:
        return names

    def _on_within(self, span: Span, duration: Value) -> syntax.Within:
        return syntax.Within(self._duration(duration), (), span)

    def _on_within_sides(self, span: Span, sides: tuple[syntax.Option, ...]) -> syntax.Within:
        return syntax.Within(None, sides, span)

    def _on_grace(self, span: Span, duration: Value) -> syntax.Grace:
        return syntax.Grace(self._duration(duration), span)

    def _on_strictly_before(self, span: Span) -> Span:
        return span

    def _on_drop_older(self, span: Span) -> Span:
        return span

    def _on_correct(self, span: Span, by: tuple[syntax.KeyItem, ...] | None, within: Value) -> syntax.Correct:
        return syntax.Correct(by or (), self._duration(within), span)

    def _on_max_age(self, span: Span, duration: Value) -> syntax.MaxAge:
        return syntax.MaxAge(self._duration(duration), span)

    def _duration(self, value: Value) -> syntax.Duration:
        if isinstance(value, syntax.Duration):
            return value
        if not self.flawed:
            of_variable = self.tokens.text.startswith("$", value.span.start)
            whose = "variable" if of_variable else "constant"
            given = repr(value.value) if isinstance(value, syntax.Literal) else "a length by the calendar"
            message = f"a duration is needed here, and the {whose}'s value is {given}"
            code = "VSC014" if of_variable else "VSC133"
            self.report(code, value.span, message, "give it a value such as `5 minutes`")
        return syntax.Duration(0, value.span)

    def _on_call_over(self, span: Span, call: syntax.Expression, length: Value) -> syntax.Expression:
        if isinstance(call, syntax.FunctionCall):
            return replace(call, over=self._duration(length), span=span)
        self.report("VSC005", span, "only a call of an aggregate has an `over`", "remove the `over`")
        return call

    def _on_window(
        self, span: Span, kind: syntax.Name, options: tuple[syntax.Option, ...], emit: tuple[Any, Span] | None
    ) -> syntax.Window:
        word, place = emit or (None, None)
        return syntax.Window(kind, options, word, place, span)

    def _on_emit_changes(self, span: Span) -> tuple[str, Span]:
        return "changes", span

    def _on_emit_final(self, span: Span) -> tuple[str, Span]:
        return "final", span

    # operations

    def _on_filter(
        self, span: Span, input: syntax.Input, predicate: syntax.Expression, clause: syntax.MaterializeClause | None
    ) -> syntax.Filter:
        return syntax.Filter(input, predicate, clause, span)

    def _on_map(
        self, span: Span, input: syntax.Input, items: tuple[syntax.Item, ...], timestamp: syntax.Expression | None,
        clause: syntax.MaterializeClause | None,
    ) -> syntax.Map:  # fmt: skip
        return syntax.Map(input, items, timestamp, clause, span)

    def _on_explode(
        self, span: Span, input: syntax.Input, expression: syntax.Expression, alias: syntax.Name,
        clause: syntax.MaterializeClause | None,
    ) -> syntax.Explode:  # fmt: skip
        return syntax.Explode(input, expression, None, alias, clause, span)

    def _on_explode_positions(
        self, span: Span, input: syntax.Input, expression: syntax.Expression, position: syntax.Name,
        alias: syntax.Name, clause: syntax.MaterializeClause | None,
    ) -> syntax.Explode:  # fmt: skip
        return syntax.Explode(input, expression, position, alias, clause, span)

    def _on_rekey(self, span: Span, input: syntax.Input, keys: tuple[syntax.KeyItem, ...]) -> syntax.Rekey:
        return syntax.Rekey(input, keys, span)

    def _on_merge(self, span: Span, *inputs: syntax.Input) -> syntax.Merge:
        return syntax.Merge(inputs, span)

    def _on_to_table(
        self, span: Span, input: syntax.Input, delete: _Clause | None, clause: syntax.MaterializeClause | None
    ) -> syntax.ToTable:
        return syntax.ToTable(input, None if delete is None else delete.value, clause, span)

    def _on_to_stream(self, span: Span, input: syntax.Input) -> syntax.ToStream:
        return syntax.ToStream(input, span)

    def _on_join(
        self,
        span: Span,
        mode: tuple[Any, Span],
        left: syntax.Input,
        right: syntax.Input,
        on: tuple[syntax.KeyItem, ...] | None,
        within: syntax.Within | None,
        grace: syntax.Grace | None,
        correct: syntax.Correct | None,
        strictly_before: Span | None,
        max_age: syntax.MaxAge | None,
        drop_older: Span | None,
        items: tuple[syntax.Item, ...],
        clause: syntax.MaterializeClause | None,
    ) -> syntax.Join:
        for key in on or ():
            self._check_on(key, left, right)
        return syntax.Join(
            mode[0], left, right, on or (), within, grace, correct, strictly_before, max_age, drop_older, items, clause,
            span, mode[1],
        )  # fmt: skip

    def _check_on(self, key: syntax.KeyItem, left: syntax.Input, right: syntax.Input) -> None:
        """Refuses SQL's ``on a.x = b.x``. In this language the right side is always the table's key."""
        sides = _equated(key.expr, (left.alias or left.name).text, (right.alias or right.name).text)
        if sides:
            written = ", ".join(self.tokens.text[side.span.start : side.span.end] for side in sides)
            message = "`on` takes the key of the left input, not a condition: the right side is always the table's key"
            self.report("VSC010", key.expr.span, message, f"write {code(f'on {written}')}", written)

    def _on_inner_join(self, span: Span) -> tuple[str, Span]:
        return "inner", span

    def _on_left_join(self, span: Span) -> tuple[str, Span]:
        return "left", span

    def _on_outer_join(self, span: Span) -> tuple[str, Span]:
        return "outer", span

    def _on_aggregate(
        self,
        span: Span,
        input: syntax.Input,
        group: tuple[syntax.KeyItem, ...],
        window: syntax.Window | None,
        items: tuple[syntax.Item, ...],
        clause: syntax.MaterializeClause | None,
    ) -> syntax.Aggregate:
        return syntax.Aggregate(input, group, window, items, clause, span)

    def _on_suppress(
        self, span: Span, input: syntax.Input, limit: syntax.Duration | None, options: tuple[syntax.Option, ...] | None
    ) -> syntax.Suppress:
        return syntax.Suppress(input, limit, options or (), span)

    def _on_window_closes(self, span: Span) -> None:
        return None

    def _on_time_limit(self, span: Span, duration: Value) -> syntax.Duration:
        return self._duration(duration)

    def _on_materialize(
        self, span: Span, input: syntax.Input, store: syntax.Name | None, kind: _StoreKind | None
    ) -> syntax.Materialize:
        return syntax.Materialize(input, self._on_materialized(span, store, kind), span)

    def _on_distinct(
        self, span: Span, input: syntax.Input, by: tuple[syntax.Expression, ...] | None, within: Any, grace: Any
    ) -> syntax.Distinct:
        return syntax.Distinct(input, by or (), self._duration(within), grace, span)

    def _on_reorder(self, span: Span, input: syntax.Input, within: Value) -> syntax.Reorder:
        return syntax.Reorder(input, self._duration(within), span)

    def _on_values(self, span: Span, *expressions: syntax.Expression) -> tuple[syntax.Expression, ...]:
        return expressions


def _equated(expression: syntax.Expression, left: str, right: str) -> list[syntax.Expression]:
    """The left input's side of each equation of columns in ``a.x = b.x and a.y = b.y``; empty if there is none."""
    pending, sides = [expression], []
    while pending:
        part = pending.pop()
        if isinstance(part, syntax.Chain) and part.rest[0].op == "and":
            pending += [*(link.operand for link in reversed(part.rest)), part.first]
        elif isinstance(part, syntax.Comparison) and part.op == "=" and isinstance(part.right, syntax.ColumnRef):
            swapped = _qualifier(part.left) == right or _qualifier(part.right) == left
            sides.append(part.right if swapped else part.left)
        elif part is expression:
            return []
    return sides


def _qualifier(expression: syntax.Expression) -> str | None:
    if isinstance(expression, syntax.ColumnRef) and len(expression.parts) > 1:
        return expression.parts[0].text
    return None
