"""What an unfinished statement says so far: its inputs, its declared columns, the options of its open list.

It works on the tokens before the cursor, since an unfinished statement has no syntax tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from vsc.compiler.passes.clock import TOPOLOGY_OPTIONS
from vsc.compiler.passes.connectors import connector_options
from vsc.compiler.passes.stores import UNVERSIONED_OPTIONS, VERSIONED_OPTIONS
from vsc.compiler.passes.stream_joins import WITHIN_OPTIONS
from vsc.compiler.passes.suppress import suppress_options
from vsc.compiler.passes.windows import WINDOW_OPTIONS
from vsc.compiler.syntax import LOST
from vsc.plan.connectors.facts import OptionSpec, Role
from vsc.plan.record import record

__all__ = ["Unfinished", "read_unfinished"]

_MODES = ("left", "outer")


@record
class Unfinished:
    """`name` is the node that the statement declares, empty for a sink; `word` its operation, empty for a source.

    `inputs` are the nodes that it reads, by the names that it uses for them; `columns` are the columns that a source
    declares, with the texts of their types; `options` are those that can be added to the open list.
    """

    name: str
    kind: str
    word: str
    inputs: Mapping[str, str]
    columns: Mapping[str, str]
    options: Mapping[str, OptionSpec]


def read_unfinished(before: Sequence[str], kinds: Mapping[str, str]) -> Unfinished:
    """What the tokens `before` the cursor say. `kinds` are the kinds of the nodes."""
    kind = "global table" if before[:1] == ["global"] else before[0] if before else ""
    place = 2 if kind == "global table" else 1
    name = before[place] if len(before) > place and kind != "sink" else ""
    if "=" in before and before.index("=") == place + 1:
        body = [token for token in before[place + 2 :] if token not in _MODES]
        inputs, word, columns = dict(_inputs(body)), body[0] if body else "", {}
        if word == "join" and "on" in body and "select" not in body:  # its expressions see the left input only
            inputs = dict(list(inputs.items())[:1])
    else:
        inputs, word, columns = {}, "", dict(_columns(before))
    written = before[1] if kind == "sink" and len(before) > 1 else name
    stream = kinds.get(_unquoted(written), "stream" if written in LOST else kind) == "stream"
    return Unfinished(_unquoted(name), kind, word, inputs, columns, _options(before, stream))


def _inputs(body: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The inputs of an operation: after its word, after ``with``, and the further ones of a `merge`."""
    for index, token in enumerate(body[1:], 1):
        starts = index == 1 or body[index - 1] == "with" or (body[0] == "merge" and body[index - 1] == ",")
        if starts:
            alias = body[index + 2] if body[index + 1 : index + 2] == ["as"] and len(body) > index + 2 else token
            yield _unquoted(alias), _unquoted(token)


def _columns(before: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The columns that a source declares in its first parentheses."""
    depth, column = 0, list[str]()
    for token in before:
        opens, closes = token in ("(", "<"), token in (")", ">")
        if depth == 1 and (token in (",", ")")):
            if len(column) > 1:
                yield _unquoted(column[0]), "".join(column[1:])
            column = []
        elif depth:
            column.append(token)
        depth += opens - closes
        if closes and depth == 0:
            return


def _options(before: Sequence[str], stream: bool) -> Mapping[str, OptionSpec]:
    """The options of the list that is still open, without those that it already has."""
    depth, given = 0, set[str]()
    for index in range(len(before) - 1, -1, -1):
        token = before[index]
        if token == "=" and depth == 0 and index < len(before) - 1:
            given.add(before[index - 1])
        depth += (token == ")") - (token == "(")
        if depth < 0:
            every = _owned(before[:index], stream)
            return {name: spec for name, spec in every.items() if name not in given}
    return {}


def _owned(before: Sequence[str], stream: bool) -> Mapping[str, OptionSpec]:
    """The options of what precedes a parenthesis."""
    *_, marker, word = ("", "", *before)
    roles: dict[str, Role] = {"from": "source", "to": "sink"}
    if marker in roles:
        return connector_options(word, roles[marker], stream)
    if marker == "topology":
        return TOPOLOGY_OPTIONS
    if marker == "window" and word != "closes":
        return WINDOW_OPTIONS.get(word, {})
    if word == "within":
        return WITHIN_OPTIONS
    if word == "versioned":
        return VERSIONED_OPTIONS
    if word == "unversioned":
        return UNVERSIONED_OPTIONS
    return suppress_options(word == "closes") if "suppress" in before and "until" in before else {}


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
