"""Builds the forms of ``forms.json`` from ``vsc.lark``: how operations and statements look, and their clauses in order.

The format of ``forms.json``, by the name of a rule: the ``words`` that it can begin with, its ``form``, and its
``clauses``, each ``[rule, words, form, optional]``; the rule is ``""`` if the clause has none of its own.
`vsc.grammar.forms` reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from lark.load_grammar import load_grammar

__all__ = ["build_forms"]

_STATEMENTS = ("source", "sink", "topology", "include")
_SHOWN = {
    **dict.fromkeys(("input", "node"), "INPUT"), "name": "NAME", "expression": "EXPRESSION", "_duration": "DURATION",
    "_item": "EXPRESSION [as NAME]", "options": "(...)", "connector": "CONNECTOR (...)", "type": "TYPE",
    "kind": "stream|table",
}  # fmt: skip
"""What forms show for a rule; other rules are written out, and terminals with their names."""

Clause = list[Any]
Part = Any
"""A tree of lark, or the name of a rule or a terminal."""


def build_forms(grammar: str) -> str:
    """The text of ``forms.json`` for `grammar`."""
    load: Any = load_grammar  # has no types
    rules = load(grammar, "vsc.lark", [], False)[0].rule_defs
    forms = _Forms({str(name): [_parts(one) for one in tree.children] for name, _, tree, _ in rules})
    operations = [parts[0].name for parts in forms.rules["_operation"]]
    return json.dumps({name: forms.described(name) for name in (*operations, *_STATEMENTS)}, indent=1) + "\n"


class _Forms:
    """`rules` has the alternatives of each rule, each as its parts."""

    def __init__(self, rules: dict[str, list[list[Part]]]) -> None:
        self.rules = rules

    def described(self, name: str) -> dict[str, Any]:
        first, *others = self.rules[name][0]
        begins = [_word(first)] if _word(first) else [" ".join(map(_word, parts)) for parts in self.rules[first.name]]
        form = self.alternatives(self.rules[name]).removesuffix(" ;")
        return {"words": [word for word in begins if word], "form": form, "clauses": list(self.clauses(others))}

    # how it looks

    def shown(self, part: Part) -> str:
        if word := _literal(part):
            return word
        if (name := getattr(part, "name", None)) is not None:
            return _SHOWN.get(name) or (self.rule(name) if name in self.rules else name)
        match part.data:
            case "template_usage":
                return f"{self.shown(_inner(part.children[1]))}, ..."
            case "maybe":
                return f"[{self.alternatives([_parts(one) for one in part.children[0].children])}]"
            case "expr":  # any of them, each at most once
                return " ".join(f"[{self.sequence(parts)}]" for parts in self.rules[_inner(part.children[0]).name])
            case other:
                raise ValueError(f"forms do not know how to show {other}")

    def rule(self, name: str) -> str:
        """A rule inside another one: only its words if all else can be left out."""
        words, others = self.words(name), self.rules[name][0]
        rest = others[len(words) :]
        if words and len(self.rules[name]) == 1 and rest and all(getattr(one, "data", "") == "maybe" for one in rest):
            return f"{' '.join(words)} ..."
        return self.alternatives(self.rules[name])

    def alternatives(self, found: list[list[Part]]) -> str:
        """``emit changes|final``, ``[left|outer] join``: what all of them begin or end with stands once."""
        rows = [[self.shown(part) for part in parts] for parts in found]
        if len(rows) == 1:
            return _tidy(rows[0])
        before = _common(rows)
        rows = [row[len(before) :] for row in rows]
        behind = _common([row[::-1] for row in rows])[::-1]
        middle = [_tidy(row[: len(row) - len(behind)]) for row in rows]
        choice = "|".join(filter(None, middle))
        return _tidy([*before, choice if all(middle) else f"[{choice}]", *behind])

    def sequence(self, parts: Sequence[Part]) -> str:
        return _tidy([self.shown(part) for part in parts])

    # clauses

    def words(self, name: str) -> list[str]:
        """The words that all alternatives of a rule begin with."""
        return _common([[*takewhile(bool, map(_word, parts))] for parts in self.rules.get(name, [[]])])

    def clauses(self, parts: Sequence[Part]) -> Iterator[Clause]:
        """The clauses of a statement after its first words."""
        begun: list[Part] = []
        for part in parts:
            has_words_only = begun and all(map(_word, begun))  # what follows belongs to it: ``until window closes``
            alone = [] if has_words_only else list(self.alone(part))
            begins = not has_words_only and _word(part) not in ("", "as")
            if begun and (alone or begins):
                yield self.clause("", begun, False)
                begun = []
            yield from alone
            if begins or (begun and not alone):
                begun.append(part)
        if begun:
            yield self.clause("", [part for part in begun if _literal(part) != ";"], False)

    def alone(self, part: Part) -> Iterator[Clause]:
        """The clauses of a part that has words and a place of its own: a rule, or what can be left out."""
        data = getattr(part, "data", "")
        if data == "expr":
            for parts in self.rules[_inner(part.children[0]).name]:
                yield from self.alone_as(parts, True)
        elif data == "maybe":
            yield from self.alone_as(_parts(part.children[0].children[0]), True)
        elif not data:
            yield from self.alone_as([part], False)

    def alone_as(self, parts: list[Part], optional: bool) -> Iterator[Clause]:
        name = getattr(parts[0], "name", "")
        if name and name not in _SHOWN and self.words(name):
            yield [name, " ".join(self.words(name)), self.alternatives(self.rules[name]), optional]
        elif _word(parts[0]) not in ("", "as"):
            yield self.clause("", parts, optional)

    def clause(self, rule: str, parts: list[Part], optional: bool) -> Clause:
        return [rule, " ".join(takewhile(bool, map(_word, parts))), self.sequence(parts), optional]


def _parts(tree: Any) -> list[Part]:
    """The parts of an alternative, which may have an alias."""
    expansion = tree.children[0] if tree.data == "alias" else tree
    return [_inner(one) for one in expansion.children]


def _inner(tree: Any) -> Part:
    while getattr(tree, "data", "") == "value":
        tree = tree.children[0]
    return tree


def _literal(part: Part) -> str:
    return str(part.children[0])[1:-1] if getattr(part, "data", "") == "literal" else ""


def _word(part: Part) -> str:
    """The keyword that a part is; empty if it is something else."""
    text = _literal(part)
    return text if text[:1].isalpha() else ""


def _tidy(parts: Sequence[str]) -> str:
    return " ".join(filter(None, parts)).replace("( ", "(").replace(" )", ")").replace(" ,", ",")


def _common(rows: Sequence[Sequence[str]]) -> list[str]:
    """What all rows begin with."""
    return [column[0] for column in takewhile(lambda column: len(set(column)) == 1, zip(*rows, strict=False))]
