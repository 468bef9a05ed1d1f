"""The style: how the pieces of a statement are spaced, and where a statement that is longer than a line breaks.

A statement stands on one line if it fits. If not, each of its clauses begins a line, and so does each column of a
source. A clause that is still too long breaks at its commas, at its operators, or inside its last brackets.
"""

from __future__ import annotations

from collections.abc import Iterable

from vsc.compiler.format.forms import Form, Forms, Piece
from vsc.compiler.format.layout import SOFT, SPACE, Comment, Doc, Group, Indent, Line, Sequence, layout
from vsc.grammar.forms import clause_words

__all__ = ["WIDTH", "render_file"]

WIDTH = 100

_HEAD = frozenset({"with", "on", "by", "group", "window", "within", "until"})
"""Words of clauses that stay on the operation's line if they fit there."""
_CLAUSES = (clause_words() - _HEAD, _HEAD, frozenset({"emit"}))
"""Words that begin a line, by level: in a statement that is too long, in a clause that still is, and in its parts."""
_GLUED = frozenset({"call", "call_star", "call_distinct", "call_ignoring_nulls", "cast", "sized_type"})
"""Rules without a blank before their bracket."""
_BRACKETS = {"(": ")", "[": "]", "<": ">"}
_BREAK = Line(" ")


def render_file(forms: Forms) -> str:
    """The whole file."""
    style = _Style(forms)
    parts: list[str] = []
    for statement in forms.statements:
        parts += style.before(statement.start)
        parts.append(layout(style.statement(statement), WIDTH) + "\n")
    parts += style.before(len(forms.words) - 1)
    return "".join(parts).lstrip("\n")


class _Style:
    def __init__(self, forms: Forms) -> None:
        self.forms = forms
        self.words, self.rules = forms.words, forms.rules
        self.comments = [list(comments) for comments in forms.comments]

    def before(self, token: int) -> Iterable[str]:
        """Removes the comments between statements before a token and returns them, with their empty lines."""
        for comment in self.comments[token]:
            if not comment.inline:
                yield "\n" * comment.blank + comment.text + "\n"
        self.comments[token] = []
        if self.words[token] and self.forms.blank[token]:
            yield "\n"

    # statements and clauses

    def statement(self, form: Form) -> Doc:
        """A statement and the comment after it."""
        *pieces, end = self.forms.pieces(form)
        signs = [self.words[piece] if isinstance(piece, int) else "" for piece in pieces]
        if "=" in signs:
            place = signs.index("=") + 1
            operation = [inner for piece in pieces[place:] for inner in self.inside(piece)]
            body = _sequence(self.sequence(pieces[:place]), Indent(_sequence(_BREAK, self.clauses(operation))))
        else:
            body = self.clauses(pieces)
        closing, *behind = self.bare(end)
        return _sequence(_group(body, Indent(_sequence(*self.own(end))), closing), *behind)

    def clauses(self, pieces: list[Piece], level: int = 0) -> Doc:
        """Clauses, each on its own line if the group around them does not fit; then those of the next level inside."""
        pieces = self.opened(pieces)
        if level == len(_CLAUSES):
            return self.clause(pieces)
        parts: list[list[Piece]] = [[]]
        for piece in pieces:
            if parts[-1] and self.begins(piece, level) and not self.is_keyword(parts[-1][-1]):
                parts.append([])
            parts[-1].append(piece)
        if level == 0:
            return _joined([self.clauses(part, 1) for part in parts])
        first, *others = (self.clauses(part, level + 1) for part in parts)
        if not others:
            return first
        return _group(first, Indent(_sequence(*(one for other in others for one in (_BREAK, other)))))

    def begins(self, piece: Piece, level: int) -> bool:
        """Whether the piece begins a clause."""
        token = self.first(piece)
        return self.words[token] in _CLAUSES[level] and token in self.forms.keywords

    def opened(self, pieces: list[Piece]) -> list[Piece]:
        """The pieces inside, if `pieces` is a single form that begins a clause; else `pieces`."""
        while (
            len(pieces) == 1
            and isinstance(pieces[0], Form)
            and any(self.begins(pieces[0], n) for n in range(len(_CLAUSES)))
        ):
            pieces = self.forms.pieces(pieces[0])
        return pieces

    def clause(self, pieces: list[Piece]) -> Doc:
        """A clause without inner clauses: its words, followed by a list, an expression or brackets."""
        if self.rules[self.last(pieces[-1])] == "source":
            return self.columns(pieces)
        words = 0
        while words < len(pieces) and self.is_keyword(pieces[words]):
            words += 1
        body = pieces[words:]
        if not words or not body:
            return self.sequence(pieces)
        if len(body) == 1 and isinstance(body[0], Form) and self.commas(self.forms.pieces(body[0])):
            body = self.forms.pieces(body[0])
        if not self.commas(body) and self.is_bracketed(body[-1:]):
            return self.sequence(pieces)
        return _group(self.sequence(pieces[:words]), Indent(_sequence(_BREAK, self.content(body))))

    def columns(self, pieces: list[Piece]) -> Doc:
        """The columns of a source. If the statement breaks, each stands on its own line, with the types aligned."""
        open = next(n for n, piece in enumerate(pieces) if isinstance(piece, int) and self.words[piece] == "(")
        inner, close = pieces[open + 1 : -1], pieces[-1]
        names = [self.forms.pieces(piece)[0] for piece in inner if isinstance(piece, Form)]
        width = max(len(self.words[self.first(name)]) for name in names)
        parts: list[Doc] = []
        for piece in inner:
            if isinstance(piece, Form):
                name, type_ = self.forms.pieces(piece)
                pad = " " * (1 + width - len(self.words[self.first(name)]))
                parts += (SOFT if not parts else _BREAK, self.piece(name), Line(" ", pad), self.piece(type_))
            else:
                parts.append(self.token(self.first(piece)))
        parts += self.own(close)
        head = _sequence(self.sequence(pieces[:open]), SPACE, self.piece(pieces[open]))
        return _sequence(head, Indent(_sequence(*parts)), SOFT, *self.bare(close))

    # pieces

    def piece(self, piece: Piece) -> Doc:
        """A token or a form."""
        if isinstance(piece, int):
            return self.token(piece)
        pieces = self.forms.pieces(piece)
        if piece.rule == "chain":
            return _group(self.piece(pieces[0]), Indent(self.links(pieces[1:])))
        if piece.rule == "case":
            return self.case(pieces)
        return self.sequence(pieces)

    def links(self, pieces: list[Piece]) -> Doc:
        """The operators of a chain with their right operands. If the chain breaks, each pair is on its own line."""
        return _sequence(
            *(part for n, piece in enumerate(pieces) for part in ((SPACE if n % 2 else _BREAK), self.piece(piece)))
        )

    def case(self, pieces: list[Piece]) -> Doc:
        """``case ... end``. If it breaks, each ``when`` is on its own line."""
        parts: list[Doc] = []
        for piece in pieces[1:-1]:
            value = isinstance(piece, Form) and piece.rule not in ("when", "otherwise")
            parts += (SPACE if value else _BREAK, self.piece(piece))
        return _group(
            self.piece(pieces[0]), Indent(_sequence(*parts, *self.own(pieces[-1]))), _BREAK, *self.bare(pieces[-1])
        )

    def sequence(self, pieces: list[Piece]) -> Doc:
        """Pieces on one line, except that brackets among them may break."""
        parts: list[Doc] = []
        place = 0
        while place < len(pieces):
            piece = pieces[place]
            if place and self.is_apart(self.last(pieces[place - 1]), self.first(piece)):
                parts.append(SPACE)
            if isinstance(piece, int) and self.opens(piece):
                close = next(n for n in range(place, len(pieces)) if self.closes(pieces[n], piece))
                parts.append(self.bracketed(piece, pieces[place + 1 : close], pieces[close]))
                place = close
            else:
                parts.append(self.piece(piece))
            place += 1
        return _sequence(*parts)

    def bracketed(self, open: int, inner: list[Piece], close: Piece) -> Doc:
        """Brackets and their content. Brackets whose only content is brackets add no break of their own."""
        opening, own = self.token(open), self.own(close)
        if not own and (not inner or (isinstance(opening, str) and self.is_bracketed(inner))):
            return _sequence(opening, *map(self.piece, inner), *self.bare(close))
        content = [SOFT, self.content(inner)] if inner else []
        return _group(opening, Indent(_sequence(*content, *own)), SOFT, *self.bare(close))

    def content(self, pieces: list[Piece]) -> Doc:
        """A list or an expression that stands on its own lines if it breaks."""
        if _chained(pieces):
            (chain,) = pieces
            assert isinstance(chain, Form)
            first, *others = self.forms.pieces(chain)
            return _group(self.piece(first), self.links(others))
        ends = [place + 1 for place in self.commas(pieces)]
        return _joined([self.sequence(pieces[a:b]) for a, b in zip([0, *ends], [*ends, len(pieces)], strict=True)])

    # tokens

    def token(self, token: int) -> Doc:
        """A token, with the comments before it on their own lines and the one after it on the token's line."""
        return _sequence(*self.own(token), *self.bare(token))

    def own(self, piece: Piece) -> list[Doc]:
        return [Comment(one.text, False) for one in self.comments[self.first(piece)] if not one.inline]

    def bare(self, piece: Piece) -> list[Doc]:
        token = self.first(piece)
        behind = token + 1
        while behind in self.forms.dropped:
            behind += 1
        return [self.words[token], *(Comment(one.text, True) for one in self.comments[behind][:1] if one.inline)]

    def inside(self, piece: Piece) -> list[Piece]:
        return [piece] if isinstance(piece, int) else self.forms.pieces(piece)

    def first(self, piece: Piece) -> int:
        return piece if isinstance(piece, int) else piece.start

    def last(self, piece: Piece) -> int:
        return piece if isinstance(piece, int) else self.last(self.forms.pieces(piece)[-1])

    def opens(self, token: int) -> bool:
        word = self.words[token]
        return word in _BRACKETS and (word != "<" or self.rules[token] == "nested_type")

    def closes(self, piece: Piece, open: int) -> bool:
        return isinstance(piece, int) and self.words[piece] == _BRACKETS[self.words[open]]

    def is_bracketed(self, pieces: list[Piece]) -> bool:
        """Whether `pieces` is a single piece that ends with a bracket inside which it can break."""
        return len(pieces) == 1 and not _chained(pieces) and self.words[self.last(pieces[0])] in _BRACKETS.values()

    def is_keyword(self, piece: Piece) -> bool:
        return isinstance(piece, int) and piece in self.forms.keywords

    def commas(self, pieces: list[Piece]) -> list[int]:
        """The places of the commas among the pieces that are outside brackets."""
        places, depth = [], 0
        for place, piece in enumerate(pieces):
            if isinstance(piece, int):
                depth += self.opens(piece) - (self.words[piece] in _BRACKETS.values())
                if not depth and self.words[piece] == ",":
                    places.append(place)
        return places

    def is_apart(self, left: int, right: int) -> bool:
        """Whether a blank separates two tokens."""
        before, after = self.words[left], self.words[right]
        rules = self.rules
        if before == "-" and rules[left] in ("minus", "negative"):
            return after == "-"
        if after == ".":
            return left in self.forms.numbers
        if after == "(":
            return before not in ("(", "[") and rules[right] not in _GLUED
        if after in (",", ";", ")", "]", "[", ":") or before in ("(", "[", "."):
            return False
        return not (
            (after in ("<", ">") and rules[right] == "nested_type") or (before == "<" and rules[left] == "nested_type")
        )


# docs


def _sequence(*parts: Doc) -> Doc:
    return parts[0] if len(parts) == 1 else Sequence(parts)


def _group(*parts: Doc) -> Doc:
    """A group. Comments before its first token are moved in front of the group."""
    before, inner = _parted(_sequence(*parts))
    group = Group(inner, _has_comment(inner))
    return _sequence(*before, group) if before else group


def _parted(doc: Doc) -> tuple[list[Doc], Doc]:
    """The comments at the beginning of `doc`, and the rest."""
    if isinstance(doc, Comment):
        return [doc], _sequence()
    before: list[Doc] = []
    if isinstance(doc, Sequence):
        for place, part in enumerate(doc.parts):
            found, rest = _parted(part)
            before += found
            if rest != _sequence():
                return before, _sequence(rest, *doc.parts[place + 1 :])
        return before, _sequence()
    return before, doc


def _joined(parts: list[Doc]) -> Doc:
    return _sequence(*(one for n, part in enumerate(parts) for one in ((_BREAK, part) if n else (part,))))


def _has_comment(doc: Doc) -> bool:
    if isinstance(doc, Sequence):
        return any(map(_has_comment, doc.parts))
    if isinstance(doc, Group):
        return doc.breaks
    return isinstance(doc, Comment) or (isinstance(doc, Indent) and _has_comment(doc.inner))


def _chained(pieces: list[Piece]) -> bool:
    return len(pieces) == 1 and isinstance(pieces[0], Form) and pieces[0].rule == "chain"
