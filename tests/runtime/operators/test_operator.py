"""Every operation of the plan has an operator of its name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, get_args

import pytest

from vsc.plan.facts import Facts
from vsc.plan.nodes import DeadLetters, Operation
from vsc.runtime.operators.operator import Operator, operator_of


def named(operation: type) -> Operator:
    fields: Any = operation.__dataclass_fields__  # type: ignore[attr-defined]
    found: Any = SimpleNamespace(op=fields["op"].default)
    return operator_of(found)


OPERATIONS = [operation for operation in get_args(Operation) if operation is not DeadLetters]  # which no record enters


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: o.__name__)
def test_an_operation_has_its_operator(operation: type) -> None:
    assert type(named(operation)) is Operator


def test_those_that_hold_something_back_say_where() -> None:
    waiting = [operation for operation in get_args(Operation) if operation.waits is not Facts.waits]
    assert {o.__name__ for o in waiting} == {
        "Grace", "StreamTableJoin", "StreamStreamJoin", "Aggregate", "Suppress", "Reorder", "WithinAggregate"
    }  # fmt: skip
    assert all(named(operation).side_store for operation in waiting)
