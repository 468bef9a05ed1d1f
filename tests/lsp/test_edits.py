"""Edits in a real session: completion, rename, formatting, fixes."""

from __future__ import annotations

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from tests.lsp.client import URI, Editor, session

START = """stream payments (id string, currency string, amount double, paid_at timestamp)
from memory () key id timestamp paid_at;
table rates (currency string, rate double, valid_at timestamp)
from memory () key currency timestamp valid_at materialize versioned (retention = 7 days);
"""


async def offered(editor: Editor, place: str) -> dict[str, types.CompletionItem]:
    params = types.CompletionParams(**editor.at(place))
    found = await editor.client.text_document_completion_async(params)
    assert isinstance(found, list)
    return {item.label: item for item in found}


async def take(editor: Editor, label: str) -> None:
    """Takes a completion at the end of the text."""
    line = editor.text[-40:]
    item = (await offered(editor, f"{line}|"))[label]
    assert isinstance(item.text_edit, types.TextEdit)
    editor.type(editor.edited([item.text_edit]))


async def rename(editor: Editor, place: str, new: str) -> str:
    found = await editor.client.text_document_rename_async(types.RenameParams(new_name=new, **editor.at(place)))
    assert found is not None and found.changes is not None
    return editor.edited(list(found.changes[URI]))


def test_a_session_that_writes_a_join_with_completions_and_renames_a_column() -> None:
    async def play(editor: Editor) -> None:
        await editor.open(START)
        for typed, label in [
            ("str", "stream"), (" priced = le", "left"), (" jo", "join"), (" pa", "payments"), (" wi", "with"),
            (" ", "rates"), (" o", "on"), (" cur", "currency"), (" sel", "select"), (" i", "id"), (", rou", "round"),
            ("amo", "amount"), (" * rates.", "rate"),
        ]:  # fmt: skip
            editor.type(editor.text + typed)
            await take(editor, label)
        editor.type(editor.text + ", 2) as usd;\n")
        written = editor.text.removeprefix(START)
        assert written == (
            "stream priced = left join payments with rates on currency "
            "select id, round(amount * rates.rate, 2) as usd;\n"
        )
        for typed, label in [("si", "sink"), (" ", "priced"), (" t", "to"), (" fi", "files"), (" (", "path")]:
            editor.type(editor.text + typed)
            await take(editor, label)
        editor.type(editor.text + "'out', format = 'json');\n")
        assert await editor.settled() == []
        editor.type(await rename(editor, "rates.ra|te", "dollars"))
        assert editor.text == (
            START.replace("rate double", "dollars double")
            + written.replace("rates.rate", "rates.dollars")
            + "sink priced to files (path = 'out', format = 'json');\n"
        )
        editor.type(await rename(editor, "table ra|tes", "order"))
        assert "table order (" in editor.text and "with order on" in editor.text and "order.dollars" in editor.text

    session(play)


@pytest.mark.slow
def test_completion_knows_the_place() -> None:
    async def play(editor: Editor) -> None:
        async def labels(written: str) -> list[str]:
            editor.type(START + written.replace("|", ""))
            return list(await offered(editor, written if "|" in written else f"{written}|"))

        await editor.open(START)
        assert await labels("table t = suppress ") == ["rates"]
        assert await labels("stream x = rekey ") == ["payments"]
        assert await labels("stream x = join payments with rates as r on curr")  # the left input only
        assert "rate" not in await labels("stream x = join payments with rates as r on r")
        assert await labels("stream x = join payments with rates as r on currency select r.") == [
            "currency", "rate", "valid_at",
        ]  # fmt: skip
        window = "table t = aggregate payments group by currency window "
        assert await labels(window) == ["tumbling", "hopping", "sliding", "session"]
        assert await labels(window + "hopping (size = 1 hour, ") == ["advance", "offset", "grace"]
        assert await labels("table r = materialize rates unversioned (") == ["expire"]
        found = await labels(window + "tumbling (size = 1 hour) select ")
        assert found[:6] == ["id", "currency", "amount", "paid_at", "window_start", "window_end"]
        assert "max_by" in found and "case" in found
        assert "max_by" not in await labels("stream x = map payments select ")
        assert await labels("stream s (k string) from files (path = 'x', format = ") == [
            "'parquet'", "'json'", "'csv'", "'orc'", "'debezium'",
        ]  # fmt: skip
        assert await labels("sink rates to files (") == [
            "path",
            "format",
            "append",
            "partition_by",
            "target_size",
        ]  # no with_timestamp for a table
        assert await labels("sink ") == ["payments", "rates", "dropped", "missed"]
        assert await labels("sink missed of ") == ["payments", "rates"]
        assert await labels("sink missed ") == ["of", "to"]
        assert await labels("sink dropped to files (") == [
            "path", "format", "with_timestamp", "append", "partition_by", "target_size",
        ]  # fmt: skip
        assert await labels("stream s (k de") == [
            "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date",
            "timestamp", "decimal", "array", "map", "struct",
        ]  # fmt: skip
        assert await labels("stream s (k string, `a b` int) from memory () key ") == ["k", "a b"]
        assert await labels("topology t (") == ["clock", "quiet"]
        assert await labels("topology t (clock = ") == ["'input'", "'records'"]
        assert await labels("-- a comm") == []
        assert await labels("stream x = filter payments where id = 'a") == []

    session(play)


@pytest.mark.slow
def test_a_function_comes_with_its_signature_and_a_node_with_its_columns() -> None:
    async def play(editor: Editor) -> None:
        await editor.open(START + "stream x = map payments select rou")
        item = (await offered(editor, "select rou|"))["round"]
        assert item.detail == "round(number [, digits])"
        editor.type(START + "stream x = join payments with ra")
        documentation = (await offered(editor, "with ra|"))["rates"].documentation
        assert isinstance(documentation, types.MarkupContent)
        assert "**versioned**: it is materialized versioned" in documentation.value

    session(play)


RENAMES = (
    START
    + """stream priced = left join payments as p with rates on currency select p.amount, rates.rate as usd;
stream big = filter priced where usd > 10 and amount > 1;
stream all_of_it = map big select *;
sink all_of_it to noop ();
"""
)


@pytest.mark.slow
def test_a_rename_changes_every_place_that_means_the_same() -> None:
    async def play(editor: Editor) -> None:
        await editor.open(RENAMES)
        for place, new, changed in [
            ("on |currency", "cur", {"string, currency string, amount": "string, cur string, amount",
                                     "on currency": "on cur"}),
            ("where |usd", "euros", {"as usd": "as euros", "usd > 10": "euros > 10"}),
            ("and |amount", "sum", {"amount double": "sum double", "p.amount": "p.sum", "amount > 1": "sum > 1"}),
            ("table |rates", "all rates", {"table rates": "table `all rates`", "with rates": "with `all rates`",
                                           "rates.rate": "`all rates`.rate"}),
            ("payments as |p", "q", {"as p with": "as q with", "p.amount": "q.amount"}),
        ]:  # fmt: skip
            expected = RENAMES
            for old, now in changed.items():
                assert old in expected
                expected = expected.replace(old, now)
            after = await rename(editor, place, new)
            assert after == expected
            editor.type(after)
            assert await editor.settled() == []
            editor.type(RENAMES)

    session(play)


@pytest.mark.slow
def test_a_rename_that_would_break_the_topology_is_refused_with_the_reason() -> None:
    async def play(editor: Editor) -> None:
        await editor.open(RENAMES)
        with pytest.raises(JsonRpcException, match="with the name `payments`, `payments` is declared twice"):
            await rename(editor, "stream b|ig", "payments")
        with pytest.raises(JsonRpcException, match="there is no name here"):
            await rename(editor, "le|ft join", "x")
        prepared = await editor.client.text_document_prepare_rename_async(
            types.PrepareRenameParams(**editor.at("stream b|ig"))
        )
        assert isinstance(prepared, types.PrepareRenamePlaceholder) and prepared.placeholder == "big"

    session(play)


@pytest.mark.slow
def test_formatting_is_that_of_vsc_fmt_and_leaves_a_broken_text_alone() -> None:
    async def play(editor: Editor) -> None:
        async def edits() -> list[types.TextEdit]:
            options = types.FormattingOptions(2, True)
            params = types.DocumentFormattingParams(types.TextDocumentIdentifier(URI), options)
            return list(await editor.client.text_document_formatting_async(params) or [])

        await editor.open("stream   s (k string)\n from memory() key k; -- 💶\nsink s to noop();")
        formatted = editor.edited(await edits())
        assert formatted == "stream s (k string) from memory () key k; -- 💶\nsink s to noop ();\n"
        editor.type(formatted)
        assert await edits() == []
        editor.type("stream   s (")
        assert await edits() == []

    session(play)


FIXES = [
    ("stream x = filter s where nn > 1;", "VSC110", "Replace `nn` with `n`", "stream x = filter s where n > 1;"),
    ("stream x = filter s where n == 1;", "VSC008", "Replace `==` with `=`", "stream x = filter s where n = 1;"),
    ("stream x = map s select n m;", "VSC009", "Replace `m` with `as m`", "stream x = map s select n as m;"),
    ("stream x = filter s where n > 1", "VSC006", "Add `;`", "stream x = filter s where n > 1;"),
    ("table x (k string) from files (path = 'p', format = 'jsn') key k;", "VSC505",
     "Replace `'jsn'` with `'json'`", "table x (k string) from files (path = 'p', format = 'json') key k;"),
    ("table x (k string) from files (path = 'p') key k;", "VSC504", None, None),  # so is the format
    ("table x (k string) from memory () key k, k;", "VSC206", "Remove `, k`",
     "table x (k string) from memory () key k;"),
    ("stream x = rekey s by n + 1;", "VSC207", None, None),  # the name is the user's to find
]  # fmt: skip


@pytest.mark.slow
def test_a_help_that_says_what_to_write_is_an_action() -> None:
    async def play(editor: Editor) -> None:
        head, tail = "stream s (k string, n int) from memory () key k;\n", "\nsink x to noop (); sink s to noop ();"
        await editor.open(head)
        for written, code, title, fixed in FIXES:
            found = await editor.write(f"{head}{written}{tail}")
            [wrong] = [one for one in found if one.code == code]
            params = types.CodeActionParams(
                types.TextDocumentIdentifier(URI), wrong.range, types.CodeActionContext(list(found))
            )
            actions = await editor.client.text_document_code_action_async(params) or []
            assert [action.title for action in actions] == ([] if title is None else [title])
            for action in actions:
                assert isinstance(action, types.CodeAction) and list(action.diagnostics or []) == [wrong]
                assert action.edit is not None and action.edit.changes is not None
                assert editor.edited(list(action.edit.changes[URI])) == f"{head}{fixed}{tail}"

    session(play)


@pytest.mark.slow
def test_a_node_without_a_sink_gets_one() -> None:
    async def play(editor: Editor) -> None:
        [_, wrong] = await editor.open(
            "stream s (k string) from memory () key k;\nstream x = filter s where k > 'a';\n"
        )
        params = types.CodeActionParams(types.TextDocumentIdentifier(URI), wrong.range, types.CodeActionContext([]))
        [action] = await editor.client.text_document_code_action_async(params) or []
        assert isinstance(action, types.CodeAction) and action.edit is not None and action.edit.changes is not None
        assert await editor.write(editor.edited(list(action.edit.changes[URI]))) == []
        assert editor.text.endswith("where k > 'a';\nsink x to console ();\n")

    session(play)
