"""Types calls of the functions in `vsc.plan.functions`, by Spark SQL's rules in ANSI mode.

This module has the rules for functions whose types depend on their arguments. For all others, `vsc.plan.functions`
records the types.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from vsc.compiler.expressions.array_rules import ARRAY_RULES
from vsc.compiler.expressions.call_site import CallSite, Rule
from vsc.compiler.expressions.coercion import INTEGERS, convert, is_numeric, is_orderable
from vsc.compiler.expressions.operators import (
    compare,
    concatenate,
    condition,
    divide,
    map_key,
    unify,
)
from vsc.compiler.expressions.refusal import refuse
from vsc.compiler.expressions.regex_rules import REGEX_RULES
from vsc.compiler.expressions.schema_text import parse_schema
from vsc.compiler.expressions.time_rules import TIME_RULES
from vsc.plan.expressions import Call, Column, Expr, Literal
from vsc.plan.functions import FUNCTIONS, SHA2_BITS
from vsc.plan.json_paths import parse_json_path
from vsc.plan.types import (
    BIGINT,
    BINARY,
    DOUBLE,
    INT,
    INTERVAL,
    STRING,
    VOID,
    ArrayType,
    DecimalType,
    Field,
    MapType,
    StructType,
    other_key,
)

__all__ = ["RULES", "typed_call"]

RULES: dict[str, Rule] = {**ARRAY_RULES, **REGEX_RULES, **TIME_RULES}
"""The rules, by function name. ``event_time`` has no rule, since its argument is not an expression."""


def _types(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: registers the function as the rule for calls of `names`."""

    def add(rule: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, rule))
        return rule

    return add


def typed_call(call: CallSite) -> Expr:
    """The plan of a call; raises Refused for arguments that the function does not take."""
    function = FUNCTIONS[call.name]
    if function.gives is None:
        return RULES[call.name](call)
    return call.result(tuple(call.implied(i, function.takes[i]) for i in range(len(call))), function.gives)


# ---------------------------------------------------------------------------------------------------------- numbers


def _number(call: CallSite) -> Expr:
    """The first argument as a number; text and null become a double."""
    if call.type(0) in (STRING, VOID):
        return convert(call.args[0].expr, DOUBLE)
    if not is_numeric(call.type(0)):
        raise call.wrong(0, "a number")
    return call.args[0].expr


@_types("abs")
def _abs(call: CallSite) -> Expr:
    arg = _number(call)
    return call.result((arg,), arg.type)


@_types("ceil", "floor")
def _whole(call: CallSite) -> Expr:
    """``ceil`` and ``floor``: a decimal loses its fraction, everything else becomes a bigint."""
    arg = _number(call)
    if isinstance(arg.type, DecimalType):
        p, s = arg.type.precision, arg.type.scale
        return call.result((arg,), DecimalType(min(38, p - s + 1), 0) if s else arg.type)
    return call.result((convert(arg, BIGINT if arg.type in INTEGERS else DOUBLE),), BIGINT)


@_types("round")
def _round(call: CallSite) -> Expr:
    arg = _number(call)
    digits = _digits(call)
    result = arg.type
    if isinstance(result, DecimalType):
        whole = result.precision - result.scale + 1
        if digits < 0:
            result = DecimalType(min(38, max(whole, 1 - digits)), 0)
        else:
            scale = min(result.scale, digits)
            result = DecimalType(min(38, whole + scale), scale)
    return call.result((arg, Literal(digits, INT)), result)


def _digits(call: CallSite) -> int:
    if len(call) < 2:
        return 0
    arg = call.args[1].expr
    if isinstance(arg, Literal) and isinstance(arg.value, int) and arg.type in INTEGERS:
        if -38 <= arg.value <= 38:
            return arg.value
        raise call.bad_constant(1, "`round` takes -38 to 38 digits", "write a smaller number")
    message = "the digits of `round` must be an integer literal"
    raise refuse("VSC225", call.args[1].span, message, "write the number, as in `round(x, 2)`")


@_types("try_divide")
def _try_divide(call: CallSite) -> Expr:
    return divide(call.args[0], call.args[1], call.span, "try_divide")


@_types("e", "pi")
def _number_of_mathematics(call: CallSite) -> Expr:
    return Literal(math.e if call.name == "e" else math.pi, DOUBLE)


@_types("log")
def _log(call: CallSite) -> Expr:
    numbers = tuple(call.implied(i, DOUBLE) for i in range(len(call)))
    return Call("ln", numbers, DOUBLE) if len(numbers) == 1 else call.result(numbers, DOUBLE)


# -------------------------------------------------------------------------------------------------- choosing values


@_types("greatest", "least")
def _extreme(call: CallSite) -> Expr:
    args = unify(call.args, f"`{call.name}`", call.span, strings=False)
    if not is_orderable(args[0].type):
        raise call.wrong(0, "values that can be compared")
    return call.result(tuple(args), args[0].type)


@_types("coalesce")
def _coalesce(call: CallSite) -> Expr:
    args = unify(call.args, "`coalesce`", call.span)
    return call.result(tuple(args), args[0].type)


@_types("nullif")
def _nullif(call: CallSite) -> Expr:
    value = call.args[0].expr
    equal = compare("=", call.args[0], call.args[1], call.span)
    return Call("if", (equal, Literal(None, value.type), value), value.type)


@_types("if")
def _if(call: CallSite) -> Expr:
    when = condition(call.args[0], "`if`")
    then, otherwise = unify(call.args[1:], "`if`", call.span)
    return call.result((when, then, otherwise), then.type)


# ------------------------------------------------------------------------------------------------------------- text


@_types("concat")
def _concat(call: CallSite) -> Expr:
    return concatenate(call.args)


@_types("concat_ws")
def _concat_ws(call: CallSite) -> Expr:
    texts = ArrayType(STRING)
    args = [convert(a.expr, texts) if a.type == ArrayType(VOID) else a.expr for a in call.args]
    return call.result(
        tuple(a if a.type == texts and i else call.implied(i, STRING) for i, a in enumerate(args)), STRING
    )


@_types("length")
def _length(call: CallSite) -> Expr:
    if call.type(0) == BINARY:
        return call.result((call.args[0].expr,), INT)
    return call.result((call.implied(0, STRING),), INT)


@_types("hex")
def _hex(call: CallSite) -> Expr:
    if call.type(0) in (BINARY, STRING, VOID):
        return call.result((_text_or_binary(call),), STRING)
    if not is_numeric(call.type(0)):
        raise call.wrong(0, "a number, text or binary")
    return call.result((call.implied(0, BIGINT),), STRING)


@_types("lpad", "rpad")
def _pad(call: CallSite) -> Expr:
    if call.type(0) == BINARY:
        raise call.wrong(0, "text")
    pad = call.implied(2, STRING) if len(call) == 3 else Literal(" ", STRING)
    return call.result((call.implied(0, STRING), call.implied(1, INT), pad), STRING)


@_types("parse_url")
def _parse_url(call: CallSite) -> Expr:
    return call.result(tuple(call.implied(i, STRING) for i in range(len(call))), STRING)


@_types("substring")
def _substring(call: CallSite) -> Expr:
    text = call.args[0].expr if call.type(0) == BINARY else call.implied(0, STRING)
    return call.result((text, *(call.implied(i, INT) for i in range(1, len(call)))), text.type)


@_types("replace")
def _replace(call: CallSite) -> Expr:
    args = [call.implied(i, STRING) for i in range(len(call))]
    return call.result(tuple(args) if len(args) == 3 else (*args, Literal("", STRING)), STRING)


def _text_or_binary(call: CallSite) -> Expr:
    if call.type(0) not in (STRING, BINARY, VOID):
        raise call.wrong(0, "text or binary")
    return convert(call.args[0].expr, BINARY)


@_types("md5")
def _md5(call: CallSite) -> Expr:
    return call.result((_text_or_binary(call),), STRING)


@_types("sha2")
def _sha2(call: CallSite) -> Expr:
    bits = call.implied(1, INT)
    if isinstance(bits, Literal) and isinstance(bits.value, int) and bits.value not in SHA2_BITS:
        known = ", ".join(str(bit) for bit in sorted(SHA2_BITS))
        raise call.bad_constant(1, f"`sha2` cannot make a hash of {bits.value} bits", f"use one of {known} (0 is 256)")
    return call.result((_text_or_binary(call), bits), STRING)


@_types("xxhash64")
def _hash(call: CallSite) -> Expr:
    for arg in call.args:
        if "map<" in str(arg.type) or arg.type == INTERVAL:
            raise refuse("VSC221", arg.span, f"`xxhash64` does not take a value of type {arg.type}", "hash parts of it")
    return call.result(tuple(arg.expr for arg in call.args), BIGINT)


# --------------------------------------------------------------------------------------------------- nested values


@_types("size")
def _size(call: CallSite) -> Expr:
    if not isinstance(call.type(0), ArrayType | MapType):
        raise call.wrong(0, "an array or a map")
    return call.result((call.args[0].expr,), INT)


@_types("element_at")
def _element_at(call: CallSite) -> Expr:
    base, index = call.args
    if isinstance(base.type, MapType):
        return call.result((base.expr, map_key(base, index)), base.type.value)
    if not isinstance(base.type, ArrayType):
        raise call.wrong(0, "an array or a map")
    if index.type == BIGINT or index.type not in (*INTEGERS, VOID):
        raise call.wrong(1, "an int (counted from 1; negative: from the end)")
    if isinstance(index.expr, Literal) and index.expr.value == 0:
        raise call.bad_constant(1, "`element_at` counts from 1", "write 1 for the first element")
    return call.result((base.expr, convert(index.expr, INT)), base.type.element)


@_types("array")
def _array(call: CallSite) -> Expr:
    if not call.args:
        return call.result((), ArrayType(VOID))
    items = unify(call.args, "`array`", call.span)
    return call.result(tuple(items), ArrayType(items[0].type))


@_types("struct")
def _struct(call: CallSite) -> Expr:
    fields = []
    for i, arg in enumerate(call.args):
        if arg.type == INTERVAL:
            raise call.wrong(i, "a value")
        given = call.names[i] if call.names else None
        fields.append(Field(given or _own_name(arg.expr) or f"col{i + 1}", arg.type))
    names = [f.name.lower() for f in fields]
    for i, name in enumerate(names):
        if name in names[:i]:
            message = f"the struct would have two fields called `{fields[i].name}`"
            raise refuse("VSC221", call.args[i].span, message, "give one of them another name: `... as NAME`")
    return call.result(tuple(arg.expr for arg in call.args), StructType(tuple(fields)))


def _own_name(expr: Expr) -> str | None:
    """The name that a struct's field inherits from a plain column or field; None for any other expression."""
    if isinstance(expr, Column):
        return expr.name
    if isinstance(expr, Call) and expr.function == "get_field":
        name = expr.args[1]
        return str(name.value) if isinstance(name, Literal) else None
    return None


@_types("from_json")
def _from_json(call: CallSite) -> Expr:
    schema = call.constant(1, "the schema")
    try:
        type = parse_schema(schema)
    except ValueError:
        help = "write it as columns, like 'id bigint, name string', or as one type"
        raise call.bad_constant(1, f"'{schema}' is not a schema", help) from None
    if not isinstance(type, StructType | ArrayType | MapType):
        raise call.bad_constant(1, f"`from_json` does not read a bare {type}", "cast the text instead")
    if other_key(type) is not None:
        raise call.bad_constant(1, "the keys of a JSON map are strings", "write map<string, ...>")
    return call.result((call.implied(0, STRING),), type)


@_types("get_json_object")
def _get_json_object(call: CallSite) -> Expr:
    path = call.constant(1, "the path")
    try:
        parse_json_path(path)
    except ValueError as error:
        help = "write names and places, as in '$.orders[0].id'; for all elements, `from_json` and `transform`"
        raise call.bad_constant(1, f"`get_json_object` does not read the path '{path}': {error}", help) from None
    return call.result((call.implied(0, STRING), call.args[1].expr), STRING)


@_types("to_json")
def _to_json(call: CallSite) -> Expr:
    if not isinstance(call.type(0), StructType | ArrayType | MapType):
        raise call.wrong(0, "a struct, an array or a map")
    return call.result((call.args[0].expr,), STRING)
