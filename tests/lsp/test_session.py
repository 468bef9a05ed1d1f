"""`vsc lsp` as an editor sees it: a server process, and a real client."""

from __future__ import annotations

import pytest
from lsprotocol import types

from tests.lsp.client import URI, Editor, session
from vsc.lsp.colors import TOKEN_TYPES

pytestmark = pytest.mark.slow

PAYMENTS = """topology payments;
stream payments (id string, currency string, amount double, paid_at timestamp)
from memory () key id timestamp paid_at;
table rates (currency string, rate double, valid_at timestamp)
from memory () key currency timestamp valid_at
materialize versioned (retention = 7 days, grace = 1 day);
stream priced = left join payments with rates as r on payments.currency
  select id, round(amount * r.rate, 2) as usd;
table per_currency = aggregate priced group by currency select sum(usd) as total;
table newest = filter rates where rate > 0;
sink priced to console ();
sink per_currency to noop ();
sink newest to noop ();
"""


def test_findings_are_told_when_a_file_is_opened_and_changed_and_taken_back_when_it_is_closed() -> None:
    async def play(editor: Editor) -> None:
        assert await editor.open(PAYMENTS) == []
        [wrong] = await editor.write(PAYMENTS.replace("with rates", "with rats"))
        assert (wrong.code, wrong.severity, wrong.source) == ("VSC103", types.DiagnosticSeverity.Error, "vsc")
        assert wrong.message == "there is no node `rats`\nhelp: write `rates`"
        assert editor.shown(wrong.range) == "7: rats"
        [label] = wrong.related_information or []
        assert (label.message, editor.shown(label.location.range)) == ("`rates` is declared here", "4: rates")
        assert await editor.write(PAYMENTS) == []
        assert await editor.close() == []

    session(play)


@pytest.mark.parametrize(("encoding", "character"), [("utf-16", 37), ("utf-8", 41), ("utf-32", 35)])
def test_places_are_counted_as_the_editor_does(encoding: str, character: int) -> None:
    async def play(editor: Editor) -> None:
        [wrong] = await editor.open(
            "stream s (k string) from memory () key k;\nstream `a💶` = filter s where '💶' = kk; sink `a💶` to noop ();"
        )
        assert editor.shown(wrong.range) == "2: kk"
        assert wrong.range.start.character == character
        assert "key: `k`" in await hovered(editor, "sink |`a💶`")

    session(play, encoding)


@pytest.mark.parametrize("known", [[], ["utf-7"]])
def test_an_editor_that_names_no_known_encoding_counts_in_utf_16(known: list[str]) -> None:
    async def play(editor: Editor) -> None:
        [wrong] = await editor.open(
            "stream `💶` (k string) from memory () key k; sink `💶` to noop (); sink x to noop ();"
        )
        assert editor.shown(wrong.range) == "1: x"

    session(play, known=known)


def test_findings_wait_for_a_pause_in_typing() -> None:
    async def play(editor: Editor) -> None:
        await editor.open(PAYMENTS)
        for end in range(len(PAYMENTS) - 20, len(PAYMENTS) - 1):
            editor.type(PAYMENTS[:end])
        assert await editor.write(PAYMENTS) == []  # which fails if the findings of an earlier text come

    session(play)


def test_a_message_beyond_all_measure_is_refused_and_the_next_one_is_answered() -> None:
    async def play(editor: Editor) -> None:
        editor.send(b"Content-Length: 99999999999\r\n\r\n")
        assert await editor.open(PAYMENTS) == []
        assert editor.shown_messages == ["a message of 99999999999 bytes is not read: the limit is 67,108,864"]

    session(play)


async def hovered(editor: Editor, place: str) -> str:
    found = await editor.client.text_document_hover_async(types.HoverParams(**editor.at(place)))
    if found is None:
        return ""
    assert isinstance(found.contents, types.MarkupContent)
    return found.contents.value


def test_a_node_shows_its_columns_its_key_whether_it_is_versioned_and_why_and_its_retention() -> None:
    async def play(editor: Editor) -> None:
        await editor.open(PAYMENTS)
        assert await hovered(editor, "with ra|tes") == (
            "```vdsl\ntable rates (\n  currency string  -- key\n  rate double\n  valid_at timestamp\n)\n```\n\n"
            "key: `currency`\n\n**versioned**: it is materialized versioned\n\n"
            "retention 7 days, grace 1 day, segment 7 hours"
        )
        assert "stream priced (\n  currency string  -- key\n  id string\n  usd double\n)" in await hovered(
            editor, "aggregate |priced"
        )
        assert "**versioned**: it has the status of `rates`: it is materialized versioned (decided by `rates`)" in (
            await hovered(editor, "table new|est")
        )
        assert "**unversioned**: it is the result of an aggregate without `materialize versioned`" in (
            await hovered(editor, "table per_curr|ency")
        )
        await editor.write("table t (k string) from memory () key k materialize unversioned (expire = 30 days);")
        assert "rows expire 30 days behind the clock" in await hovered(editor, "table |t")

    session(play)


def test_a_column_shows_its_type_and_a_function_its_signature() -> None:
    async def play(editor: Editor) -> None:
        await editor.open(PAYMENTS)
        assert await hovered(editor, "amo|unt * r") == "```vdsl\namount double\n```\n\ncolumn of `payments`"
        assert await hovered(editor, "sum(us|d)") == "```vdsl\nusd double\n```\n\ncolumn of `priced`"
        assert await hovered(editor, "id, rou|nd(") == (
            "```vdsl\nround(number [, digits])\n```\n\n"
            "the number rounded half up to `digits` decimals, or to none\n\nFails on: overflow."
        )
        assert "table rates" in await hovered(editor, "* r|.rate")  # the alias of an input
        assert await hovered(editor, "sel|ect id") == "```vdsl\nselect EXPRESSION [as NAME], ...\n```"
        assert await hovered(editor, "= fil|ter") == "```vdsl\nfilter INPUT where EXPRESSION [materialize ...]\n```"
        assert (
            await hovered(editor, "materi|alize v")
            == "```vdsl\nmaterialize [as NAME] [versioned|unversioned [(...)]]\n```"
        )
        assert await hovered(editor, "to con|sole") == ""
        # a statement with a mistake takes nothing from the others
        assert len(await editor.write(PAYMENTS.replace("sum(usd)", "sum("))) == 1
        assert "**versioned**" in await hovered(editor, "with ra|tes")

    session(play)


async def defined(editor: Editor, place: str) -> list[str]:
    found = await editor.client.text_document_definition_async(types.DefinitionParams(**editor.at(place)))
    assert isinstance(found, list)
    return [editor.shown(one.range) for one in found if isinstance(one, types.Location)]


def test_a_name_leads_to_its_declaration() -> None:
    async def play(editor: Editor) -> None:
        await editor.open(PAYMENTS)
        assert await defined(editor, "with rat|es") == ["4: rates"]
        assert await defined(editor, "* r|.rate") == ["7: r"]
        assert await defined(editor, "r.ra|te") == ["4: rate"]
        assert await defined(editor, "sum(us|d)") == ["8: usd"]
        assert await defined(editor, "group by |currency") == ["4: currency"]  # through the join, from the table's key
        assert await defined(editor, "payments.curr|ency") == ["2: currency"]
        assert await defined(editor, "sink pri|ced") == ["7: priced"]
        assert await defined(editor, "left jo|in") == []

    session(play)


def test_lost_records_lead_to_the_node_that_loses_them() -> None:
    async def play(editor: Editor) -> None:
        await editor.open(PAYMENTS + "sink missed of priced to noop ();\nsink dropped to noop ();\n")
        assert await defined(editor, "missed of pri|ced") == ["7: priced"]
        assert await defined(editor, "sink drop|ped") == []

    session(play)


def test_a_name_is_found_wherever_it_is_used() -> None:
    async def play(editor: Editor) -> None:
        await editor.open(PAYMENTS)

        async def found(place: str, declarations: bool) -> list[str]:
            context = types.ReferenceContext(declarations)
            params = types.ReferenceParams(context, **editor.at(place))
            every = await editor.client.text_document_references_async(params)
            return [editor.shown(one.range) for one in every or []]

        assert await found("table ra|tes", True) == ["4: rates", "7: rates", "10: rates"]
        assert await found("table ra|tes", False) == ["7: rates", "10: rates"]
        assert await found("r.ra|te", True) == ["4: rate", "8: rate", "10: rate"]

    session(play)


def test_the_outline_has_every_statement_with_the_columns_that_it_declares() -> None:
    async def play(editor: Editor) -> None:
        await editor.open(PAYMENTS)
        document = types.TextDocumentIdentifier(URI)
        found = await editor.client.text_document_document_symbol_async(types.DocumentSymbolParams(document))
        shown = [(s.name, s.detail) for s in found or [] if isinstance(s, types.DocumentSymbol)]
        assert shown == [
            ("payments", "topology"), ("payments", "stream from memory"), ("rates", "table from memory"),
            ("priced", "stream = join"), ("per_currency", "table = aggregate"), ("newest", "table = filter"),
            ("priced", "sink to console"), ("per_currency", "sink to noop"), ("newest", "sink to noop"),
        ]  # fmt: skip
        rates = (found or [])[2]
        assert isinstance(rates, types.DocumentSymbol)
        assert [(c.name, c.detail) for c in rates.children or []] == [
            ("currency", "string"), ("rate", "double"), ("valid_at", "timestamp"),
        ]  # fmt: skip

    session(play)


def test_the_server_tells_the_colours_of_words_and_names() -> None:
    async def play(editor: Editor) -> None:
        await editor.open(
            "stream s (key string, `💶` int) from files (path = 'a\nb', format = 'json') key key;\n"
            "stream t = map s as x select key, round(x.`💶` + 1.5) as n; -- 5 days\nsink t to noop ();\n"
        )
        params = types.SemanticTokensParams(types.TextDocumentIdentifier(URI))
        found = await editor.client.text_document_semantic_tokens_full_async(params)
        assert found is not None
        shown, line, character = [], 0, 0
        for at in range(0, len(found.data), 5):
            down, right, length, kind, _ = found.data[at : at + 5]
            line, character = line + down, right if down else character + right
            place = types.Range(types.Position(line, character), types.Position(line, character + length))
            shown.append(f"{editor.shown(place)} {TOKEN_TYPES[kind]}")
        assert shown == [
            "1: stream keyword", "1: s class", "1: key property", "1: string type", "1: `💶` property", "1: int type",
            "1: from keyword", "1: = operator", "1: 'a string", "2: b' string", "2: = operator", "2: 'json' string",
            "2: key keyword", "2: key property",
            "3: stream keyword", "3: t class", "3: = operator", "3: map keyword", "3: s class", "3: as keyword",
            "3: x parameter", "3: select keyword", "3: key property", "3: round function", "3: x parameter",
            "3: `💶` property", "3: + operator", "3: 1.5 number", "3: as keyword", "3: n property",
            "3: -- 5 days comment", "4: sink keyword", "4: t class", "4: to keyword",
        ]  # fmt: skip

    session(play)
