"""Builds the LALR tables of ``tables.json`` from ``vsc.lark``. The only module that uses lark.

The tables depend on the grammar alone: states are numbered in the order in which they are reached from the start
symbols, so the same grammar gives the same bytes with every version of lark and every hash seed.

The format of ``tables.json``, version 1:

* ``terminals``: ``[name, "word" or "sign" or "pattern", text, reserved]``, sorted by name; ``$END`` has no text. A
  terminal's number is its index in this list; the numbers of nonterminals follow.
* ``nonterminals``: their names, sorted.
* ``rules``: ``[nonterminal, length, action, children]``. The action is the name of a builder's function, ``""`` (pass
  on the only child) or ``"*"`` (a list). A child is ``2 * position``, plus one if it is a list to flatten, or -1 for an
  optional part that was not written.
* ``start``: the first state of each start symbol. Reading is complete when ``$END`` has been shifted.
* ``states``: for each state ``symbol, action, symbol, action, ...``, sorted. An action of 0 or more is the next state;
  -1 - n means: reduce by rule n.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lark import Lark
from lark.grammar import Rule
from lark.lexer import PatternStr

__all__ = ["START", "build_tables"]

START = ("expression", "option_value", "statement")
"""The symbols with which parsing can start."""


def build_tables(grammar: str) -> str:
    """The text of ``tables.json`` for `grammar`. Raises lark's `GrammarError` if the grammar is not LALR(1)."""
    lark = Lark(grammar, parser="lalr", lexer="contextual", start=list(START), maybe_placeholders=True)
    parse_table: Any = lark.parser.parser._parse_table
    terminals = _terminals(lark)
    nonterminals = sorted({rule.origin.name for rule in lark.rules})
    numbers = {name: n for n, name in enumerate([row[0] for row in terminals] + nonterminals)}
    texts = {row[0] for row in terminals if row[1] in ("word", "sign")}
    rules = sorted(lark.rules, key=lambda rule: (rule.origin.name, [symbol.name for symbol in rule.expansion]))
    rule_numbers = {rule: n for n, rule in enumerate(rules)}
    order = _order(parse_table, numbers)
    ends = set(parse_table.end_states.values())
    states = [_state(parse_table.states[state], order, numbers, rule_numbers, state in ends) for state in order]
    states.append([])  # the final state: everything is read
    tables = {
        "version": 1,
        "terminals": terminals,
        "nonterminals": nonterminals,
        "rules": [_rule(rule, numbers, texts) for rule in rules],
        "start": {name: order[parse_table.start_states[name]] for name in START},
        "states": states,
    }
    return _text(tables)


def _terminals(lark: Lark) -> list[list[Any]]:
    rows: list[list[Any]] = [["$END", "sign", "", 0]]
    for terminal in lark.terminals:
        text = terminal.pattern.value
        if not isinstance(terminal.pattern, PatternStr):
            rows.append([terminal.name, "pattern", text, 0])
        else:
            word = text[0].isalpha()
            rows.append([terminal.name, "word" if word else "sign", text, int(word and terminal.priority > 0)])
    return sorted(rows, key=lambda row: (row[0], row[2]))


def _order(parse_table: Any, numbers: dict[str, int]) -> dict[Any, int]:
    """The number of each state: breadth-first from the start symbols, by symbol."""
    order: dict[Any, int] = {}
    waiting = [parse_table.start_states[name] for name in START]
    for state in waiting:  # the list grows during the loop
        if state in order:
            continue
        order[state] = len(order)
        for symbol in sorted(parse_table.states[state], key=lambda name: numbers.get(name, -1)):
            action, target = parse_table.states[state][symbol]
            if action.name == "Shift":
                waiting.append(target)
    return order


def _rule(rule: Rule, numbers: dict[str, int], texts: set[str]) -> list[Any]:
    name = rule.origin.name
    if rule.alias or not (name.startswith("_") or rule.options.expand1):
        action = rule.alias or name
    else:
        action = "*" if name.startswith("_") else ""
    return [numbers[name], len(rule.expansion), action, _children(rule, texts)]


def _children(rule: Rule, texts: set[str]) -> list[int]:
    children: list[int] = []
    marks: Sequence[bool] = rule.options.empty_indices or (False,) * len(rule.expansion)
    symbols = iter(enumerate(rule.expansion))
    for missing in marks:
        if missing:
            children.append(-1)
            continue
        position, symbol = next(symbols)
        if symbol.is_term and symbol.name in texts and not rule.options.keep_all_tokens:
            continue
        children.append(2 * position + int(not symbol.is_term and symbol.name.startswith("_")))
    return children


def _state(
    actions: dict[str, Any], order: dict[Any, int], numbers: dict[str, int], rules: dict[Rule, int], end: bool
) -> list[int]:
    row = [(numbers["$END"], len(order))] if end else []
    for symbol, (action, target) in actions.items():
        row.append((numbers[symbol], order[target] if action.name == "Shift" else -1 - rules[target]))
    return [number for pair in sorted(row) for number in pair]


def _text(tables: dict[str, Any]) -> str:
    """JSON with one line per row, so that changes are readable in a diff."""
    parts = []
    for key, value in tables.items():
        if isinstance(value, list):
            rows = ",\n".join("    " + json.dumps(row, separators=(",", ":")) for row in value)
            parts.append(f"  {json.dumps(key)}: [\n{rows}\n  ]")
        else:
            parts.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
