"""`vsc lsp` as an editor sees it: a server process, and a real client."""

from __future__ import annotations

import pytest
from lsprotocol import types

from tests.lsp.client import URI, Editor, session

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


async def hovered(editor: Editor, place: str) -> str:
    found = await editor.client.text_document_hover_async(types.HoverParams(**editor.at(place)))
    assert found is None or isinstance(found.contents, types.MarkupContent)
    return "" if found is None else found.contents.value


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
        assert await hovered(editor, "sel|ect id") == ""
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
