"""Checks whether the parts of a plan fit together. A plan from the compiler always does; an edited one may not.

Guarantees for a plan without a mistake: every name refers to something that exists, and that comes earlier where it has
to; each operation has the inputs that it takes; expressions use only columns that they see, with the right types, and
call functions that exist, with a valid number of arguments. It does not check whether the compiler would have made that
plan: an edited plan may compute something else.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Set

from vsc.plan import expressions as exprs
from vsc.plan import nodes
from vsc.plan.functions import CALLS
from vsc.plan.types import DataType

__all__ = ["Mistake", "first_mistake"]

Mistake = tuple[str, str]
"""The place of a mistake in the plan's JSON (a JSON pointer), and what is wrong there."""

Scope = dict[tuple[int, str], DataType]
"""The columns that an expression sees, by the number of the input and the column's name."""

_Called = tuple[str, tuple[DataType, ...], DataType, bool]
"""What a call of a user's function has of its declaration."""

_LITERALS: dict[str, type] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "interval"), int),
    "boolean": bool,
    "double": float,
    "string": str,
    "decimal": str,
}
"""The Python type of a literal's value, by the name of the literal's type."""


def first_mistake(plan: nodes.Plan) -> Mistake | None:
    """The first mistake in `plan`, names before expressions; None if everything fits together."""
    return next(_references(plan), None) or next(_contents(plan), None)


def _references(plan: nodes.Plan) -> Iterator[Mistake]:
    """Names that occur twice, refer to nothing, or refer to something that comes later."""
    seen: set[str] = set()
    for index, node in enumerate(plan.nodes):
        if node.name in seen:
            yield f"/nodes/{index}/name", f"node {node.name!r} occurs twice"
        yield from _unknown(node.inputs, seen, f"/nodes/{index}/inputs", "an earlier node")
        seen.add(node.name)
    for index, sink in enumerate(plan.sinks):
        yield from _unknown((sink.node,), seen, f"/sinks/{index}/node", "a node")
    emitted: set[str] = set()
    placed: set[str] = set()
    for index, stage in enumerate(plan.stages):
        path = f"/stages/{index}"
        if stage.id != index:
            yield f"{path}/id", f"expected {index}, found {stage.id}"
        yield from _unknown(stage.nodes, seen, f"{path}/nodes", "a node")
        yield from _unknown((i.node for i in stage.inputs), placed, f"{path}/inputs", "a node of an earlier stage")
        yield from _unreachable(plan, stage, path)
        for member in ("moved", "old", "latest"):
            yield from _unknown(getattr(stage, member), set(stage.nodes), f"{path}/{member}", "a node of this stage")
        for number, given in enumerate(stage.hands_on):
            where = f"{path}/hands_on/{number}"
            yield from _unknown((given.node,), set(stage.nodes), where, "a node of this stage")
            yield from _unknown(given.stages, range(index + 1, len(plan.stages)), f"{where}/stages", "a later stage")
        yield from _unknown(stage.emits, set(stage.nodes) - emitted, f"{path}/emits", "a node of this stage alone")
        emitted.update(stage.emits)
        placed.update(stage.nodes)
    everywhere = {node.name for node in plan.dead_letters}
    if missing := [node.name for node in plan.nodes if node.name not in emitted | everywhere]:
        yield "/stages", f"no stage emits node {missing[0]!r}"


def _unreachable(plan: nodes.Plan, stage: nodes.Stage, path: str) -> Iterator[Mistake]:
    """Inputs of a stage's nodes that are neither in the stage nor among its inputs."""
    entering = {i.node for i in stage.inputs}
    here = {node.name: node for node in plan.nodes if node.name in stage.nodes}
    for index, name in enumerate(stage.nodes):
        absent = [read for read in here[name].inputs if read not in here and read not in entering]
        if absent and name not in entering:
            yield f"{path}/nodes/{index}", f"{name!r} reads {absent[0]!r}, which does not enter the stage"


def _unknown(names: Iterable[object], known: Container[object], path: str, what: str) -> Iterator[Mistake]:
    return ((f"{path}/{index}", f"{name!r} is not {what}") for index, name in enumerate(names) if name not in known)


def _contents(plan: nodes.Plan) -> Iterator[Mistake]:
    """Mistakes inside the nodes of a plan whose references are valid."""
    before: dict[str, nodes.Node] = {}
    own = {_called(function) for function in plan.functions}
    for index, node in enumerate(plan.nodes):
        yield from _node(node, before, own, f"/nodes/{index}")
        before[node.name] = node


def _called(function: nodes.OwnFunction) -> _Called:
    return function.reference, tuple(one.type for one in function.parameters), function.returns, function.vectorized


def _node(node: nodes.Node, before: dict[str, nodes.Node], own: Set[_Called], path: str) -> Iterator[Mistake]:
    ahead = node.operation.max_ahead if isinstance(node.operation, nodes.Source) else None
    if ahead is not None and ahead < 0:
        yield f"{path}/operation/max_ahead", f"{ahead} is negative"
    if node.expire is not None and not _expires(node):
        yield f"{path}/store/expire", f"the rows of node {node.name!r} cannot expire after {node.expire} ms"
    if node.forget is not None and not (node.store is not None and node.store.implied and node.forget > 0):
        yield f"{path}/store/forget", f"the rows of node {node.name!r} cannot be forgotten after {node.forget} ms"
    if not 0 <= node.bounds <= len(node.schema.key):
        yield f"{path}/bounds", f"{node.bounds} is not a number of key columns"
    names = [column.name for column in (*node.schema.key, *node.schema.value)]
    if len(set(names)) < len(names):
        yield f"{path}/schema", f"two columns of node {node.name!r} have one name"
    inputs = [before[name] for name in node.inputs]
    kinds = tuple(read.kind for read in inputs)
    wanted = _kinds(node, kinds)
    if kinds != wanted:
        reads = f"a {' and a '.join(wanted)}" if wanted else "nothing"
        yield f"{path}/inputs", f"{node.operation.op} reads {reads}, not {len(kinds)} inputs ({', '.join(kinds)})"
        return
    schemas = tuple(read.schema for read in inputs)
    if not node.operation.fits(schemas, node.schema):
        yield f"{path}/schema", f"the columns of node {node.name!r} are not those that its operation makes"
    for place, expr, seen in node.operation.expressions(schemas, node.schema):
        yield from _expression(expr, _scope(seen), own, f"{path}/operation/{place}")


def _expires(node: nodes.Node) -> bool:
    """Whether the rows of a table can expire."""
    operation, store = node.operation, node.store
    unversioned = store is not None and store.kind == "unversioned" and (store.expire or 0) > 0
    return unversioned and operation.can_expire and not operation.global_ and not node.bounds


def _kinds(node: nodes.Node, found: tuple[str, ...]) -> tuple[str, ...]:
    """The kinds that a node's inputs have to be of."""
    reads = node.operation.reads
    return ("stream",) * max(1, len(found)) if "streams" in reads else tuple(
        node.kind if kind == "own" else kind for kind in reads
    )  # fmt: skip


def _scope(schemas: tuple[nodes.Schema, ...]) -> Scope:
    return {(number, c.name): c.type for number, s in enumerate(schemas) for c in (*s.key, *s.value)}


def _expression(expr: exprs.Expr, scope: Scope, own: Set[_Called], path: str) -> Iterator[Mistake]:
    """What is wrong with an expression and its parts. Not recursive: it may be nested deeply."""
    waiting: list[tuple[exprs.Expr, str, tuple[tuple[DataType, ...], ...]]] = [(expr, path, ())]
    while waiting:
        part, place, elements = waiting.pop()
        match part:
            case exprs.Column(number, name, of):
                found = scope.get((number, name))
                if found is None:
                    yield place, f"input {number} has no column {name!r}"
                elif found != of:
                    yield place, f"column {name!r} of input {number} is {found}, not {of}"
            case exprs.Literal(value, of) if not _is_value(value, of):
                yield f"{place}/literal", f"{value!r} is not a literal of {of}"
            case exprs.Cast(arg=argument):
                waiting.append((argument, f"{place}/cast", elements))
            case exprs.Parameter(number, depth, of):
                known = elements[depth] if depth < len(elements) else ()
                if of not in known[number : number + 1] or number < 0:
                    yield place, f"no lambda has this parameter of type {of}"
            case exprs.Lambda():
                yield place, "a lambda stands here"
            case exprs.Call(function, args):
                if part.is_own:
                    if (function, tuple(one.type for one in args), part.type, part.vectorized) not in own:
                        yield f"{place}/call", f"no function {function!r} is declared that takes and gives these types"
                else:
                    yield from _call(function, len(args), place)
                for index, argument in enumerate(args):
                    inner = f"{place}/args/{index}"
                    if index in exprs.LAMBDAS.get(function, ()):
                        given = exprs.parameters_of(function, index, [one.type for one in args])
                        if isinstance(argument, exprs.Lambda) and given is not None:
                            if argument.depth != len(elements):
                                yield inner, f"{len(elements)} lambdas are around this one, not {argument.depth}"
                                return
                            waiting.append((argument.body, f"{inner}/lambda", (*elements, given)))
                        else:
                            what = "a map" if function == "transform_values" else "an array"
                            yield inner, f"{function} takes {what} and a lambda"
                    else:
                        waiting.append((argument, inner, elements))


def _is_value(value: object, of: DataType) -> bool:
    """Whether a literal of type `of` can have `value` (see `vsc.plan.expressions.Literal`). Every type has null."""
    return value is None or type(value) is _LITERALS.get(str(of).partition("(")[0])


def _call(name: str, count: int, place: str) -> Iterator[Mistake]:
    function = CALLS.get(name)
    if function is None:
        yield f"{place}/call", f"there is no function {name!r}"
    elif count < function.least or (function.most is not None and count > function.most):
        yield f"{place}/args", f"{name} does not take {count} arguments"
