"""Whatever is written, and wherever the cursor is, an editor gets an answer."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from vsc.compiler.source import Span
from vsc.lsp.colors import colors
from vsc.lsp.completion import completions
from vsc.lsp.diagnostics import diagnostics
from vsc.lsp.document import Document
from vsc.lsp.fixes import offers
from vsc.lsp.formatting import formatted
from vsc.lsp.hover import hover
from vsc.lsp.navigation import definition, outline, references
from vsc.lsp.renaming import RenameRefused, rename, renamed

TESTS = Path(__file__).parents[1]
TEXTS = [path.read_text(encoding="utf-8") for path in sorted(TESTS.glob("golden/*.vdsl"))]
TOKEN = re.compile(r"\w+|'[^']*'|`[^`]*`|\s+|.", re.DOTALL)


def changed(text: str, chance: random.Random) -> str:
    """The text with a few tokens left out, swapped or doubled, or cut off as it is while it is written."""
    tokens = TOKEN.findall(text)
    for _ in range(chance.randint(0, 3)):
        at, other = chance.randrange(len(tokens)), chance.randrange(len(tokens))
        tokens[at] = chance.choice(["", tokens[other], tokens[at] * 2, "💶"])
    written = "".join(tokens)
    return written[: chance.randrange(len(written) + 1)] if chance.random() < 0.5 else written


def codes(document: Document) -> list[str]:
    return [one.code for one in document.known.findings]


@pytest.mark.quick(1)
@pytest.mark.parametrize("seed", range(3))
def test_every_question_has_an_answer(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(20):
        document = Document("file:///a.vdsl", changed(chance.choice(TEXTS), chance))
        found = diagnostics(document)
        outline(document), formatted(document), colors(document)
        for one in chance.sample(found, min(2, len(found))):
            span = Span(document.positions.offset(one.range.start), document.positions.offset(one.range.end))
            for offer in offers(document, span):
                after = document.changed([(offer.fix.span, offer.fix.new)])
                assert codes(after).count(offer.finding.code) < codes(document).count(offer.finding.code)
        for _ in range(20):
            offset = chance.randrange(len(document.text) + 1)
            assert document.positions.offset(document.positions.position(offset)) in (offset, offset - 1)
            completions(document, offset), hover(document, offset)
            assert set(map(repr, definition(document, offset))) <= set(map(repr, references(document, offset, True)))


@pytest.mark.quick(1)
@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_every_name_can_be_renamed_and_back(text: str) -> None:
    document = Document("file:///a.vdsl", text)
    assert not [one for one in diagnostics(document) if one.severity == 1]
    for one in document.names.occurrences[::7]:
        assert renamed(document, one.span.start) is not None, one
        after = document.changed(rename(document, one.span.start, "renamed"))
        moved = next(o for o in after.names.occurrences if after.text[o.span.start : o.span.end] == "renamed")
        old = document.text[one.span.start : one.span.end].strip("`")
        back = after.changed(rename(after, moved.span.start, old))
        assert back.text == document.text


def test_a_bound_of_a_window_cannot_be_renamed() -> None:
    text = (
        "stream s (k string) from memory () key k;\n"
        "table t = aggregate s group by k window tumbling (size = 1 s) select count(*) as n;\n"
        "table u = filter t where window_start is not null;"
    )
    document = Document("file:///a.vdsl", text)
    place = text.index("window_start")
    assert hover(document, place) is not None
    with pytest.raises(RenameRefused, match="there is no name here"):
        rename(document, place, "begin")
