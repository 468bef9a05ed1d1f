"""A YAML file as nodes that know their places, read strictly.

Guarantees: every error names path, line and column; tags give only plain values; a mapping has each key once; aliases
can neither form cycles nor make a small file large. Values keep their text, since the type of a scalar depends on its
column (`NO` is a string in a string column).

What a scenario means is in `vsc.scenario.loader`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import yaml

from vsc.compiler.diagnostics.suggest import nearest
from vsc.plan.words import cut

__all__ = ["Document", "ScenarioError"]

_TAG = "tag:yaml.org,2002:"
_SCALARS = frozenset(_TAG + name for name in ("null", "bool", "int", "float", "str", "binary", "timestamp", "value"))
_DEEPEST = 64
_LARGEST = 1_000_000  # nodes, each alias counted with everything that it refers to
_INTEGER = re.compile(r"[-+]?[0-9]+")
_REST = "..."
"""Of a mapping: the rest of it may be anything."""


class ScenarioError(Exception):
    """A scenario file cannot be used: where (1-based), what is wrong, and what to do about it."""

    def __init__(self, path: str, line: int, column: int, message: str, help: str | None = None) -> None:
        self.path, self.line, self.column = path, line, column
        self.message, self.help = cut(message), help and cut(help)
        super().__init__(self.message)

    def __str__(self) -> str:
        text = f"{self.path}:{self.line}:{self.column}: {self.message}"
        return text if self.help is None else f"{text}\n  help: {self.help}"


class Document:
    """The nodes of one file. Raises `ScenarioError` if the text is not a single document of plain YAML."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        try:
            root = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line, column = (0, 0) if mark is None else (mark.line, mark.column)
            raise ScenarioError(path, line + 1, column + 1, f"this is not YAML: {error.problem}") from None
        except yaml.reader.ReaderError as error:
            before = text[: error.position]
            column = len(before) - before.rfind("\n")
            raise ScenarioError(
                path, before.count("\n") + 1, column, f"this is not YAML: a character U+{error.character:04X}"
            ) from None
        except RecursionError:
            raise ScenarioError(path, 1, 1, "this is nested too deeply") from None
        if root is None:
            raise ScenarioError(path, 1, 1, "the file is empty", "it needs `topology` and `scenarios`")
        self.root: yaml.Node = root
        self._check(root, {}, 0)

    # ------------------------------------------------------------------------------------------------------ places

    def error(self, node: yaml.Node, message: str, help: str | None = None) -> ScenarioError:
        """An error at `node`, for the caller to raise."""
        return ScenarioError(self.path, *self.place(node), message, help)

    def unknown(self, node: yaml.Node, what: str, name: str, known: Iterable[str]) -> ScenarioError:
        """The error for a `name` at `node` that is not in `known`; it suggests the nearest one."""
        names = list(known)
        near = nearest(name, names)
        help = f"did you mean `{near}`?" if near else f"there are {', '.join(names)}" if names else None
        if name == _REST:
            help = f"for the rest, write `{_REST}` without quotes"
        return self.error(node, f"there is no {what} `{name}`", help)

    @staticmethod
    def place(node: yaml.Node) -> tuple[int, int]:
        """Line and column where `node` begins, counted from 1."""
        return node.start_mark.line + 1, node.start_mark.column + 1

    # ------------------------------------------------------------------------------------------------------ shapes

    def mapping(
        self, node: yaml.Node, what: str, partial: bool = False
    ) -> dict[str, tuple[yaml.ScalarNode, yaml.Node]]:
        """The entries of a mapping by the text of their keys: the key's node and the value's.

        `partial`: it may have a `...`, which is left out (`is_partial`).
        """
        if not isinstance(node, yaml.MappingNode):
            rest = isinstance(node, yaml.ScalarNode) and node.value == _REST
            help = f"for one of which everything may be anything, write `{{{_REST}}}`" if rest else None
            raise self.error(node, f"{what} is a mapping, not {_shape(node)}", help)
        found = {}
        for key, value in self.entries(node, partial):
            if not isinstance(key, yaml.ScalarNode):
                raise self.error(key, f"a name in {what} is text, not {_shape(key)}")
            found[key.value] = (key, value)
        return found

    def entries(self, node: yaml.MappingNode, partial: bool) -> Iterator[tuple[yaml.Node, yaml.Node]]:
        """The entries of a mapping except for `...`, which only a mapping that may be `partial` has."""
        for key, value in node.value:
            if not _is_rest(key):
                yield key, value
            elif not partial:
                raise self.error(key, "`...` is for what is expected", "name all; if it is a name, put it in quotes")
            elif not self.is_null(value):
                raise self.error(value, "`...` has no value: it stands for all that is not named")

    @staticmethod
    def is_partial(node: yaml.Node) -> bool:
        """Whether a mapping has a `...`: a key without quotes, so a column of that name can be written in quotes."""
        return isinstance(node, yaml.MappingNode) and any(_is_rest(key) for key, _ in node.value)

    def fields(
        self,
        node: yaml.Node,
        what: str,
        required: tuple[str, ...],
        optional: tuple[str, ...] = (),
        partial: bool = False,
    ) -> dict[str, yaml.Node]:
        """The values of a mapping that has all `required` keys, any of the `optional` ones, and no others.

        `partial`: with a `...` in it, it needs none.
        """
        entries = self.mapping(node, what, partial)
        for name, (key, _) in entries.items():
            if name not in required and name not in optional:
                raise self.unknown(key, f"key in {what}:", name, (*required, *optional))
        for name in () if self.is_partial(node) else required:
            if name not in entries:
                raise self.error(node, f"{what} lacks `{name}`")
        return {name: value for name, (_, value) in entries.items()}

    def sequence(self, node: yaml.Node, what: str) -> list[yaml.Node]:
        """The elements of a list."""
        if not isinstance(node, yaml.SequenceNode):
            raise self.error(node, f"{what} is a list, not {_shape(node)}")
        return list(node.value)

    def scalar(self, node: yaml.Node, what: str) -> yaml.ScalarNode:
        """`node`, if it is a single value other than null."""
        if not isinstance(node, yaml.ScalarNode) or self.is_null(node):
            raise self.error(node, f"{what}, not {_shape(node)}")
        return node

    def text(self, node: yaml.Node, what: str) -> str:
        """The text of a single non-empty value."""
        text: str = self.scalar(node, f"{what} is text").value
        if not text.strip():
            raise self.error(node, f"{what} is empty")
        return text

    def integer(self, node: yaml.Node, what: str) -> int:
        """The value of a plain whole number."""
        scalar = self.scalar(node, f"{what} is a whole number")
        if scalar.style is not None or len(scalar.value) > 30 or not _INTEGER.fullmatch(scalar.value):
            raise self.error(node, f"{what} is a whole number, not {scalar.value!r}")
        return int(scalar.value)

    @staticmethod
    def is_null(node: yaml.Node) -> bool:
        """Whether `node` is ``null``, ``~`` or nothing at all."""
        return isinstance(node, yaml.ScalarNode) and node.tag == _TAG + "null"

    # ------------------------------------------------------------------------------------------------------ checks

    def _check(self, node: yaml.Node, sizes: dict[int, int | None], depth: int) -> int:
        """Checks `node` and everything below it; returns the number of nodes. `sizes`: None for a node in progress."""
        if id(node) in sizes:
            done = sizes[id(node)]
            if done is None:
                raise self.error(node, "an alias is inside the value that it names")
            return done
        if depth > _DEEPEST:
            raise self.error(node, "this is nested too deeply")
        sizes[id(node)] = None
        size = 1
        if isinstance(node, yaml.ScalarNode):
            allowed = node.tag in _SCALARS or node.tag == _TAG + "merge"
        elif isinstance(node, yaml.SequenceNode):
            allowed = node.tag == _TAG + "seq"
            size += sum(self._check(element, sizes, depth + 1) for element in node.value)
        else:
            assert isinstance(node, yaml.MappingNode)
            allowed = node.tag == _TAG + "map"
            self._check_keys(node)
            size += sum(self._check(part, sizes, depth + 1) for entry in node.value for part in entry)
        if not allowed:
            raise self.error(node, f"the tag {node.tag.replace(_TAG, '!!')} is not for scenario files")
        if size > _LARGEST:
            raise self.error(node, f"with its aliases this is more than {_LARGEST} values")
        sizes[id(node)] = size
        return size

    def _check_keys(self, node: yaml.MappingNode) -> None:
        first: dict[tuple[str, bool], yaml.Node] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.tag == _TAG + "merge":
                raise self.error(key, "merge keys (`<<`) are not for scenario files", "write the entries out")
            before = first.setdefault((key.value, _is_rest(key)), key)
            if before is not key:
                line, column = self.place(before)
                raise self.error(key, f"`{key.value}` is here a second time; the first is at {line}:{column}")


def _is_rest(key: yaml.Node) -> bool:
    return isinstance(key, yaml.ScalarNode) and key.style is None and key.value == _REST


def _shape(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return "null" if Document.is_null(node) else repr(node.value)
