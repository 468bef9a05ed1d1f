"""What people read, as texts with their places: documents, messages and help texts, docstrings, comments.

Documents are Markdown without code; strings are the literals of the package, with ``{}`` for what an f-string fills in.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "bench/README.md", "vsc/template/*.md")
    for page in ROOT.glob(pattern)
)
MODULES = sorted(
    module for folder in ("compiler", "runtime", "vsc", "grammar") for module in (ROOT / folder).rglob("*.py")
)
ROWS = sorted((ROOT / "compiler/parser/rows").glob("*.txt"))
"""What findings say about mistakes of syntax."""
SOURCES = sorted(
    {*MODULES}.union(*((ROOT / folder).rglob("*.py") for folder in ("tests", "soak", "bench", "servers", "tools")))
    - {Path(__file__)}
)
_CODE = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"(?:^|\s)#\s*(.*)")
_SPAN = re.compile(r"`[^`\n]*`")

STILTED = {
    r"(?<!there )(?<!There )\b(?:is|are) no (?!longer|further|later|more\b|earlier)": "is not a ...",
    r"\bwhich is no\b": "unknown ...",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"\blets? (?:\S+ ){0,3}out\b": "emit",
    r"\bwhat waits\b": "what is held",
    r"\b(?:is|are|be) told\b(?! apart)": "is reported",
    r"\b(?:expensive|needed) are\b": "the verb early: small batches are expensive",
    r"\bunless given\b": "by default",
    r"\bat one time\b": "at the same time",
    r"\banew\b": "again",
    r"\bspelt wrongly\b": "misspelt",
    r"\bof (?:up to )?some (?:hundred|GiB|MiB|seconds|minutes)\b": "a few",
    r"\bwhatever has become of\b": "whatever happened to",
    r"\bgives? rise to\b": "causes",
    r"\bis called (?:as|like)\b": "has the name of",
    r"\bnot used rightly\b": "used wrongly",
    r"\bof others\b": "for others",
    r"\bas it happens\b": "in no particular order",
    r"\bin silence\b": "silently",
    r"\bthrow(?:s|n)? (?:\w+ ){0,3}away\b": "discard, delete",
    r"\bhand(?:s|ed)? (?:\w+ )?through\b": "pass on",
    r"\bwithout more\b": "automatically",
    r"\blet (?:\S+ ){1,6}be\b": "make ...",
    r"\bstands? alone\b": "cannot be combined with",
    r"\bare in lower case\b": "are written in lower case",
    r"\bhardly meant\b": "probably a mistake",
}
"""Phrases that must not come back, and what to write."""


def prose(page: Path) -> str:
    """A document with code and names in backticks left blank, so that places stay."""
    text = _CODE.sub(lambda code: re.sub(r"[^\n]", " ", code.group()), page.read_text(encoding="utf-8"))
    return _SPAN.sub(lambda span: "`" + "x" * (len(span.group()) - 2) + "`", text)


@cache
def messages(module: Path) -> list[tuple[int, str]]:
    """The strings of a module, or the texts of rows of mistakes, that hold several words, with their lines."""
    if module.suffix == ".txt":
        lines = module.read_text(encoding="utf-8").split("\n")
        return [(n, line.strip()) for n, line in enumerate(lines, 1) if line.startswith("  ")]
    found: list[tuple[int, str]] = []
    passed: set[int] = set()  # docstrings, and the parts of f-strings: ast.walk comes to what holds them first
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Expr):
            passed.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            passed.update(map(id, node.values))
            parts = (str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
            found.append((node.lineno, "".join(parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed:
            found.append((node.lineno, node.value))
    return [(line, text) for line, text in found if text.count(" ") > 1]


def remarks(module: Path) -> Iterator[tuple[int, str]]:
    """The docstrings and comments of a module, with their lines; lines of comments that follow each other are one.

    What looks like a comment inside of a text counts as one: it is English, too.
    """
    source = module.read_text(encoding="utf-8")
    for node in _statements(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value
    last, text = 0, ""
    for line, code in enumerate(source.splitlines(), 1):
        comment = _COMMENT.search(code) if "#" in code else None
        if comment is None:
            continue
        if line != last + 1 and text:
            yield last, text
            text = ""
        last, text = line, f"{text} {comment[1]}"
    if text:
        yield last, text


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements inside of a node: a walk that leaves expressions out."""
    for part in ("body", "handlers", "cases", "orelse", "finalbody"):
        for statement in getattr(node, part, ()):
            yield statement
            yield from _statements(statement)
