"""The colours of topologies in documents and notebooks: a lexer for Pygments, which knows it as ``vdsl``."""

from __future__ import annotations

from typing import Any, ClassVar

from pygments.lexer import RegexLexer, bygroups
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, Punctuation, String, Whitespace, _TokenType

from vsc.compiler.coloring import Kind, Rule, coloring

__all__ = ["VdslLexer"]

_TOKENS: dict[Kind, _TokenType] = {
    "comment": Comment.Single,
    "string": String.Single,
    "variable": Name.Variable,
    "declaration": Keyword.Declaration,
    "node": Name.Class,
    "name": Name,
    "float": Number.Float,
    "integer": Number.Integer,
    "unit": Keyword.Type,
    "function": Name.Builtin,
    "operator": Operator,
    "word operator": Operator.Word,
    "constant": Keyword.Constant,
    "type": Keyword.Type,
    "keyword": Keyword,
    "punctuation": Punctuation,
}


def _rule(rule: Rule) -> tuple[str, Any]:
    if len(rule.kinds) == 1:
        return rule.pattern, _TOKENS[rule.kinds[0]]
    first, second = rule.kinds
    tokens = bygroups(_TOKENS[first], Whitespace, _TOKENS[second])  # type: ignore[no-untyped-call]
    return rule.pattern.replace(r"\s+", r"(\s+)", 1), tokens


class VdslLexer(RegexLexer):
    """Topologies of vsc."""

    name = "vsc topology"
    url = "https://github.com/vsc-project/vsc"
    aliases: ClassVar[list[str]] = ["vdsl"]
    filenames: ClassVar[list[str]] = ["*.vdsl"]
    tokens: ClassVar[dict[str, Any]] = {"root": [(r"\s+", Whitespace), *map(_rule, coloring()), (r".", Error)]}
